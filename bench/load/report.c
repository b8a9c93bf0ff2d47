#include "report.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const fault_names[FAULT_KINDS] = {
    [NOT_CONNECTED] = "not_connected", [CUT] = "cut",           [BAD_STATUS] = "bad_status", [OUT_OF_ORDER] = "out_of_order",
    [CHUNKS_MISSING] = "chunks_missing", [TOO_SHORT] = "too_short", [NO_FINISH] = "no_finish",   [NO_DONE] = "no_done",
    [ERROR_EVENT] = "error_event",     [NOT_ENDED] = "not_ended"};

void samples_add(Samples *samples, uint64_t ns) {
  if (samples->count == samples->cap) {
    samples->cap = samples->cap ? samples->cap * 2 : 1 << 16;
    samples->at = realloc(samples->at, samples->cap * sizeof *samples->at);
    if (!samples->at) die("memory");
  }
  uint64_t tenths = (int64_t)ns < 0 ? 0 : ns / 100;
  samples->at[samples->count++] = tenths > UINT32_MAX ? UINT32_MAX : (uint32_t)tenths;
}

static int by_size(const void *one, const void *other) {
  uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
  return (a > b) - (a < b);
}

static void print_quantiles(const char *name, Samples *samples) {
  if (!samples->count) return;
  qsort(samples->at, samples->count, sizeof *samples->at, by_size);
  size_t last = samples->count - 1;
  printf(",\"%s_ms\":{\"p50\":%.4f,\"p99\":%.4f,\"max\":%.4f}", name, samples->at[last / 2] / 1e4,
         samples->at[(size_t)((double)last * 0.99)] / 1e4, samples->at[last] / 1e4);
}

static void print_text(const char *name, const Buffer *text) {
  printf(",\"%s\":\"", name);
  for (size_t i = 0; i < text->len; i++) {
    unsigned char letter = (unsigned char)text->at[i];
    if (letter == '"' || letter == '\\') printf("\\%c", letter);
    else if (letter < 32 || letter > 126) printf("\\u%04x", letter);
    else putchar(letter);
  }
  putchar('"');
}

void report(uint64_t end) {
  if (window.to > end) window.to = end;
  double seconds = window.to > window.from ? (double)(window.to - window.from) / 1e9 : 0, rate = seconds ? 1 / seconds : 0;
  printf("{\"connections\":%d,\"seconds\":%.3f,\"requests\":%lu,\"requests_s\":%.1f,\"chunks\":%lu,\"chunks_s\":%.1f,\"mb_s\":%.2f,"
         "\"all_requests\":%lu,\"all_chunks\":%lu,\"redials\":%lu,\"cpu_s\":%.3f,\"faulty\":%lu,\"faults\":{",
         settings.connections, seconds, window.requests, (double)window.requests * rate, window.chunks,
         (double)window.chunks * rate, (double)window.bytes * rate / 1e6, window.all_requests, window.all_chunks, window.redials,
         cpu_seconds(), window.faulty);
  const char *comma = "";
  for (int i = 1; i < FAULT_KINDS; i++)
    if (window.faults[i]) printf("%s\"%s\":%lu", comma, fault_names[i], window.faults[i]), comma = ",";
  printf("}");
  if (window.worst_gap) printf(",\"worst_gap_ms\":%.3f", (double)window.worst_gap / 1e6);
  print_quantiles("whole", &window.whole);
  print_quantiles("first", &window.first);
  print_quantiles("chunk", &window.chunk);
  if (window.complaint.len) print_text("complaint", &window.complaint);
  puts("}");
}
