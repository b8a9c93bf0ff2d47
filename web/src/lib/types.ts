// What the gateway says, as docs/admin-api.md and the contract have it.

export type Kind = "text" | "image" | "video";

export interface ModelFacts {
  kind: Kind;
  provider: string | null;
  name: string | null;
  ratios: string[];
  tiers: string[];
  sizes: string[];
  formats: string[];
  qualities: string[];
  seconds: number[];
  fps: number[];
  max_n: number;
  max_inputs: number;
}

export interface Model {
  id: string;
  owned_by: string;
  trunkline?: ModelFacts;
}

export interface MediaItem {
  type: "image" | "video" | "cover";
  url: string;
  mime_type: string;
  width: number;
  height: number;
  bytes: number;
  sha256: string;
  expires_at: number | null;
}

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  cost?: number;
  prompt_tokens_details?: { cached_tokens?: number };
  completion_tokens_details?: { reasoning_tokens?: number };
}

export interface ToolCall {
  id: string;
  name: string;
  arguments: string;
}

export interface Departure {
  line: number;
  offset: number;
  length?: number;
  rule: string;
  message: string;
}

export interface Row {
  t_ms: number | null;
  line: number;
  offset: number;
  end: number;
  raw: string;
  departures: number[];
  chunks: string[];
}

export type Outcome = "ok" | "degraded" | "error" | "empty";

export interface Inspection {
  dialect: string;
  departures: Departure[];
  text: string;
  reasoning: string;
  tool_calls: unknown[];
  finish_reason: string | null;
  usage: Usage | null;
  media: { type: string; url: string }[];
  events: number;
  verdict: 0 | 1 | 2;
  rows: Row[];
  rows_left_out?: number;
  clients: { mode: string; outcome: Outcome; rules: string[]; says: string | null }[];
}

/** One request of the gateway to a provider, and its answer. */
export interface Exchange {
  request: string;
  /** Since the trace began. */
  asked_ms: number;
  took_ms: number;
  status: number | null;
  headers: [string, string][];
  bytes: number;
  body: string | null;
  truncated: boolean;
  ended: string;
  error: string | null;
}

interface TraceFacts {
  request_id: string;
  model: string;
  provider: string;
  upstream_model: string;
}

export interface TextTrace extends TraceFacts {
  kind: "text";
  status: number;
  content_type: string;
  truncated: boolean;
  ended: string;
  inspection: Inspection;
}

export interface JobTrace extends TraceFacts {
  kind: "image" | "video";
  job_id: string;
  exchanges: Exchange[];
  left_out: number;
}

export type Trace = TextTrace | JobTrace;

export interface Page<T> {
  items: T[];
  next: string | null;
}

export interface KeyRef {
  id: string;
  name: string;
}

export interface Budget {
  limit_microusd: number;
  per: "total" | "day" | "month";
  spent_microusd: number;
  reserved_microusd: number;
  resets_at: number | null;
}

export interface Key {
  id: string;
  name: string;
  prefix: string;
  state: "active" | "blocked" | "revoked" | "expired";
  group: KeyRef | null;
  models: string[];
  budget: Budget | null;
  rpm: number | null;
  tpm: number | null;
  images_per_minute: number | null;
  concurrent_streams: number | null;
  media_style: string | null;
  record: boolean;
  cache: boolean;
  metadata: Record<string, string>;
  created_at: number;
  expires_at: number | null;
  last_used_at: number | null;
  warnings: string[];
  key?: string;
}

export interface Group {
  id: string;
  name: string;
  budget: Budget | null;
  keys: number;
  created_at: number;
}

export interface Call {
  id: string;
  call_id: string;
  replica: string;
  route: string;
  key: KeyRef | null;
  model: string;
  kind: Kind;
  provider: string | null;
  upstream_model: string | null;
  state: "waiting" | "streaming";
  started_at: number;
  first_event_ms: number | null;
  events: number;
  completion_tokens: number;
  attempts: number;
  stream_id: string | null;
  job_id: string | null;
}

export interface StoredMedia {
  id: string;
  kind: "image" | "video";
  mime_type: string;
  width: number;
  height: number;
  duration_s: number | null;
  bytes: number;
  sha256: string;
  url: string;
  cover_url: string | null;
  created_at: number;
  expires_at: number | null;
  key: KeyRef | null;
  model: string;
  job_id: string | null;
}

export interface Job {
  id: string;
  kind: "image" | "video";
  state: string;
  model: string;
  provider: string;
  upstream_model: string;
  upstream_id: string | null;
  key: KeyRef | null;
  stream_id: string | null;
  percent: number | null;
  expected_s: number | null;
  prompt: string | null;
  created_at: number;
  started_at: number | null;
  finished_at: number | null;
  cost_microusd: number | null;
  error: { code: string; message: string } | null;
  media: StoredMedia[];
  history?: { at: number; state: string; text: string }[];
}

export interface Overview {
  version: string;
  uptime_s: number;
  replicas: { id: string; started_at: number; calls: number }[];
  calls_in_flight: number;
  jobs: { queued: number; submitting: number; running: number; storing: number };
  today: Totals & { failed: number };
  media: { count: number; bytes: number; max_bytes: number | null };
  keys: { active: number; blocked: number; over_budget: number };
  providers: { up: number; degraded: number; down: number; unknown: number };
  last_24h: { at: number[]; calls: number[]; failed: number[]; cost_microusd: number[] };
}

export interface Totals {
  calls: number;
  failed: number;
  prompt_tokens: number;
  completion_tokens: number;
  images: number;
  video_s: number;
  cost_microusd: number;
}

export interface UsageSeries {
  id: string | null;
  name: string;
  calls: number[];
  failed: number[];
  prompt_tokens: number[];
  completion_tokens: number[];
  images: number[];
  video_s: number[];
  cost_microusd: number[];
}

export interface UsageAnswer {
  bucket_s: number;
  by: string;
  at: number[];
  series: UsageSeries[];
  totals: Totals & { estimated_calls: number };
}

export interface Quantiles {
  p50: (number | null)[];
  p95: (number | null)[];
  p99: (number | null)[];
}

export interface LatencyAnswer {
  bucket_s: number;
  at: number[];
  first_event_ms: Quantiles;
  token_gap_ms: Quantiles;
  duration_ms: Quantiles;
}

export interface RepairsAnswer {
  bucket_s: number;
  at: number[];
  series: { rule: string; counts: number[] }[];
  by_provider: { provider: string; rule: string; count: number }[];
}

export interface ProviderInfo {
  name: string;
  enabled: boolean;
  why: string | null;
  docs: string;
  base_url: string;
  chat: string | null;
  image: string | null;
  video: string | null;
  credentials: { name: string; set: boolean; state: "ok" | "cooling" | "refused"; until_at: number | null }[];
  health: {
    state: "up" | "degraded" | "down" | "unknown";
    success_rate: number | null;
    first_event_ms: number | null;
    last_error: { code: string; at: number } | null;
  };
  calls_1h: number;
  failed_1h: number;
  models: { id: string; kind: Kind }[];
}
