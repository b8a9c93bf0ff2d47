{{- define "trunkline.name" -}}
{{- printf "%s" .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "trunkline.labels" -}}
app.kubernetes.io/name: trunkline
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "trunkline.secret" -}}
{{- .Values.secret.existing | default (include "trunkline.name" .) -}}
{{- end -}}
