#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image.h"

#define ID "chatcmpl-D1kBm7uRz0QwX4tYpL9sEaVc2NfGh"
#define USAGE                                                                                                          \
  "{\"prompt_tokens\":212,\"completion_tokens\":%u,\"total_tokens\":%u,"                                               \
  "\"prompt_tokens_details\":{\"cached_tokens\":0,\"audio_tokens\":0},"                                                \
  "\"completion_tokens_details\":{\"reasoning_tokens\":0,\"audio_tokens\":0,"                                          \
  "\"accepted_prediction_tokens\":0,\"rejected_prediction_tokens\":0}}"

Plan *all_plans;

// One server-sent event as one chunk of the HTTP body; tells where in `out` the data begins.
static size_t add_event(Buffer *out, const Buffer *data) {
  buffer_text(out, "%zx\r\ndata: ", data->len + 8);
  size_t begin = out->len;
  buffer_add(out, data->at, data->len);
  buffer_text(out, "\n\n\r\n");
  return begin;
}

static void chunk_begin(Buffer *json, const Plan *plan) {
  buffer_text(json,
              "{\"id\":\"" ID "\",\"object\":\"chat.completion.chunk\",\"created\":1795000000,\"model\":\"%s\","
              "\"service_tier\":\"default\",\"system_fingerprint\":\"fp_51e1070cf2\",\"choices\":[",
              plan->model);
}

static Buffer choice_chunk(const Plan *plan, const char *delta, const char *finish) {
  Buffer json = {0};
  chunk_begin(&json, plan);
  buffer_text(&json, "{\"index\":0,\"delta\":%s,\"logprobs\":null,\"finish_reason\":%s}]}", delta, finish);
  return json;
}

static void render_opening(Plan *plan) {
  buffer_text(&plan->opening, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n"
                              "x-request-id: req_4f1c0d6b\r\nTransfer-Encoding: chunked\r\n\r\n");
  Buffer role = choice_chunk(plan, "{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null}", "null");
  add_event(&plan->opening, &role);
  buffer_free(&role);
}

static void render_delta(Plan *plan) {
  Buffer json = choice_chunk(plan, "{\"content\":\"" STAMP "\"}", "null");
  size_t begin = add_event(&plan->delta, &json);
  plan->number_at = begin + (size_t)((char *)memmem(json.at, json.len, STAMP, STAMP_LEN) - json.at) + 1;
  plan->time_at = plan->number_at + 5;
  buffer_free(&json);
}

static void render_closing(Plan *plan, bool usage) {
  Buffer *out = &plan->closing[usage], finish = choice_chunk(plan, "{}", "\"stop\""), done = {0};
  add_event(out, &finish);
  if (usage) {
    Buffer json = {0};
    chunk_begin(&json, plan);
    buffer_text(&json, "],\"usage\":" USAGE "}", plan->chunks, plan->chunks + 212);
    add_event(out, &json);
    buffer_free(&json);
  }
  buffer_text(&done, "[DONE]");
  add_event(out, &done);
  buffer_text(out, "0\r\n\r\n");
  buffer_free(&finish), buffer_free(&done);
}

static void render_picture(Plan *plan, size_t bytes) {
  Buffer json = {0};
  chunk_begin(&json, plan);
  buffer_text(&json, "{\"index\":0,\"delta\":{\"content\":\"![image](data:image/png;base64,");
  image_base64(&json, bytes);
  buffer_text(&json, ")\"},\"logprobs\":null,\"finish_reason\":null}]}");
  add_event(&plan->picture, &json);
  buffer_free(&json);
}

static void render_answer(Plan *plan) {
  static const char sentence[] = "A proxy reads what the upstream sends and writes it on, and \\\"nothing\\\" may be lost on the way.\\n";
  Buffer body = {0};
  buffer_text(&body, "{\"id\":\"" ID "\",\"object\":\"chat.completion\",\"created\":1795000000,\"model\":\"%s\",\"choices\":[{\"index\":0,"
                     "\"message\":{\"role\":\"assistant\",\"content\":\"", plan->model);
  for (int i = 0; i < 5; i++) buffer_text(&body, "%s", sentence);
  buffer_text(&body, LAST_WORDS "\",\"refusal\":null,\"annotations\":[]},\"logprobs\":null,\"finish_reason\":\"stop\"}],\"usage\":" USAGE
                     ",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_51e1070cf2\"}", 117, 329);
  buffer_text(&plan->answer, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nx-request-id: req_4f1c0d6b\r\nContent-Length: %zu\r\n\r\n", body.len);
  buffer_add(&plan->answer, body.at, body.len);
  buffer_free(&body);
}

static Plan *make_plan(const char *model, size_t count) {
  Plan *plan = calloc(1, sizeof *plan);
  if (!plan) die("memory");
  memcpy(plan->model, model, count);
  unsigned number = 0, pace_ms = 0;
  if (sscanf(plan->model, "chunks-%u", &number) == 1) plan->kind = FAST;
  else if (sscanf(plan->model, "paced-%u-%u", &number, &pace_ms) == 2) plan->kind = PACED;
  else if (!strcmp(plan->model, "held")) plan->kind = HELD;
  else if (sscanf(plan->model, "image-%u", &number) == 1) plan->kind = IMAGE;
  plan->chunks = plan->kind == IMAGE || plan->kind == HELD ? 1 : number;
  plan->pace_ns = pace_ms * MS;
  render_answer(plan);
  render_opening(plan);
  render_delta(plan);
  render_closing(plan, false), render_closing(plan, true);
  if (plan->kind == IMAGE) render_picture(plan, number * 1000000ul);
  return plan;
}

Plan *plan_for(const char *model, size_t count) {
  for (Plan *plan = all_plans; plan; plan = plan->next)
    if (strlen(plan->model) == count && !memcmp(plan->model, model, count)) return plan;
  if (count >= sizeof all_plans->model) return NULL;
  Plan *plan = make_plan(model, count);
  plan->next = all_plans;
  return all_plans = plan;
}
