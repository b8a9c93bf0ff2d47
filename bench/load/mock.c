// The upstream: every answer is rendered beforehand (plan.c), so what is left to do is to send.
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "plan.h"

enum { REQUEST_MAX = 64 << 20, SEND_MAX = 256 << 10, SENDS_PER_TURN = 64 };

struct Connection {
  int fd;
  Buffer in, rest;        // a request not yet whole; what the socket did not take of a stamped chunk
  const char *left;       // still to be sent: into `rest`, or into a plan
  size_t left_bytes;
  Plan *plan;             // of the stream that is being sent, NULL between requests
  enum { OPENING, MIDDLE, CLOSING } stage;
  bool usage;
  uint32_t number;        // of the next stamped chunk
  uint64_t due;
  Queue *queue;           // where it waits for its next chunk
  Connection *before, *after;
};

static int epoll;
static Queue runnable; // fast streams that can send
static struct { uint64_t connections, requests, chunks, streams; long open; } count;
static char incoming[256 << 10];

static void queue_remove(Connection *c) {
  if (!c->queue) return;
  *(c->before ? &c->before->after : &c->queue->first) = c->after;
  *(c->after ? &c->after->before : &c->queue->last) = c->before;
  c->queue = NULL;
}

// Behind all that are due no later; looked for from the end, where it nearly always belongs.
static void queue_add(Queue *queue, Connection *c) {
  Connection *before = queue->last;
  while (before && before->due > c->due) before = before->before;
  c->queue = queue, c->before = before;
  c->after = before ? before->after : queue->first;
  *(before ? &before->after : &queue->first) = c;
  *(c->after ? &c->after->before : &queue->last) = c;
}

static void hang_up(Connection *c) {
  queue_remove(c);
  if (c->plan) count.open--;
  close(c->fd);
  buffer_free(&c->in), buffer_free(&c->rest);
  free(c);
}

// False: the connection is gone. At most SEND_MAX at once, so that a picture does not hold up the others.
static bool push(Connection *c) {
  size_t size = c->left_bytes < SEND_MAX ? c->left_bytes : SEND_MAX;
  ssize_t sent = send(c->fd, c->left, size, MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN) return hang_up(c), false;
  if (sent > 0) c->left += sent, c->left_bytes -= (size_t)sent;
  return true;
}

static bool put(Connection *c, const Buffer *bytes) {
  c->left = bytes->at, c->left_bytes = bytes->len;
  if (!push(c)) return false;
  if (c->left_bytes) rewatch(epoll, c->fd, EPOLLIN | EPOLLOUT, c);
  return true;
}

static bool put_stamped(Connection *c) {
  Buffer *delta = &c->plan->delta;
  put_hex(delta->at + c->plan->number_at, c->number++, 4);
  put_hex(delta->at + c->plan->time_at, now_ns(), 16);
  count.chunks++;
  if (!put(c, delta)) return false;
  if (c->left_bytes) { // the plan's buffer is the next stream's in a moment
    c->rest.len = 0;
    buffer_add(&c->rest, c->left, c->left_bytes);
    c->left = c->rest.at;
  }
  return true;
}

static bool end_stream(Connection *c) {
  const Buffer *closing = &c->plan->closing[c->usage];
  c->plan = NULL;
  count.open--;
  return put(c, closing);
}

// A stream that the socket lets go on, and that no clock holds back.
static bool can_run(const Connection *c) {
  return c->plan && !c->queue && !c->left_bytes && !(c->plan->kind == HELD && c->number == 1);
}

// Sends the next piece of the stream and puts the connection where its next one will be found. False: gone.
static bool step(Connection *c) {
  Plan *plan = c->plan;
  if (c->number == plan->chunks && c->stage == MIDDLE) c->stage = CLOSING;
  switch (c->stage) {
    case OPENING:
      c->stage = MIDDLE;
      if (!put(c, &plan->opening)) return false;
      if (plan->kind != PACED || c->left_bytes) break;
      [[fallthrough]]; // providers send the role with the first words
    case MIDDLE:
      if (plan->kind == IMAGE) c->number++;
      if (!(plan->kind == IMAGE ? put(c, &plan->picture) : put_stamped(c))) return false;
      break;
    case CLOSING: return end_stream(c);
  }
  if (plan->kind == PACED) c->due += plan->pace_ns, queue_add(&plan->waiting, c);
  else if (can_run(c)) queue_add(&runnable, c);
  return true;
}

static bool refuse(Connection *c, const char *status, const char *message) {
  c->rest.len = 0;
  Buffer body = {0};
  buffer_text(&body, "{\"error\":{\"message\":\"%s\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":null}}", message);
  buffer_text(&c->rest, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n", status, body.len);
  buffer_add(&c->rest, body.at, body.len);
  buffer_free(&body);
  return put(c, &c->rest);
}

static bool tell(Connection *c) {
  Buffer body = {0};
  buffer_text(&body, "{\"status\":\"ok\",\"connections\":%lu,\"requests\":%lu,\"streams\":%lu,\"open\":%ld,\"chunks\":%lu,\"cpu_s\":%.3f}",
              count.connections, count.requests, count.streams, count.open, count.chunks, cpu_seconds());
  c->rest.len = 0;
  buffer_text(&c->rest, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n", body.len);
  buffer_add(&c->rest, body.at, body.len);
  buffer_free(&body);
  return put(c, &c->rest);
}

// Where the value of a JSON member begins, blanks skipped; NULL when there is none. Good enough for our own requests.
static const char *member(const char *body, size_t bytes, const char *quoted) {
  const char *at = memmem(body, bytes, quoted, strlen(quoted)), *end = body + bytes;
  if (!at) return NULL;
  for (at += strlen(quoted); at < end && (*at == ' ' || *at == ':'); at++) continue;
  return at < end ? at : NULL;
}

static bool is_true(const char *body, size_t bytes, const char *quoted) {
  const char *value = member(body, bytes, quoted);
  return value && *value == 't';
}

static bool answer(Connection *c, const char *head, const char *body, size_t bytes) {
  count.requests++;
  if (!strncmp(head, "GET /health", 11)) return tell(c);
  if (strncmp(head, "POST ", 5)) return refuse(c, "404 Not Found", "there is POST …/chat/completions and GET /health");
  const char *model = member(body, bytes, "\"model\""), *end = model ? memchr(model + 1, '"', bytes - (size_t)(model + 1 - body)) : NULL;
  Plan *plan = end ? plan_for(model + 1, (size_t)(end - model) - 1) : NULL;
  if (!plan) return refuse(c, "400 Bad Request", "the request names no model");
  if (!is_true(body, bytes, "\"stream\"")) return put(c, &plan->answer);
  if (plan->kind == UNSTREAMED_ONLY) return refuse(c, "404 Not Found", "streams: chunks-N, paced-N-MS, held, image-MB");
  count.streams++, count.open++;
  c->plan = plan, c->stage = OPENING, c->number = 0;
  c->due = plan->kind == PACED ? now_ns() : 0; // the others take turns
  c->usage = is_true(body, bytes, "\"include_usage\"");
  return step(c);
}

// Joins a chunked body in place. Gives its length, or -1 while it is not whole; `used` is what it took on the wire.
static ssize_t join_chunks(char *body, size_t bytes, size_t *used) {
  size_t from = 0, to = 0;
  for (bool dry = true;; dry = false, from = to = 0) { // first look whether all is there, then move
    for (;;) {
      char *line = memchr(body + from, '\n', bytes - from);
      if (!line) return -1;
      size_t size = strtoul(body + from, NULL, 16), begin = (size_t)(line + 1 - body);
      if (bytes - begin < size + 2) return -1;
      if (!dry) memmove(body + to, body + begin, size);
      to += size, from = begin + size + 2;
      if (!size) break;
    }
    if (!dry) return *used = from, (ssize_t)to;
  }
}

// One request at the beginning of `bytes`: gives what it took, 0 while it is not whole, -1 when the connection is gone.
static ssize_t take_request(Connection *c, char *bytes, size_t size) {
  size_t head = head_length(bytes, size), used = 0;
  if (!head) return 0;
  const char *length = head_field(bytes, head, "content-length"), *coding = head_field(bytes, head, "transfer-encoding");
  ssize_t body = length ? (ssize_t)strtoul(length, NULL, 10) : 0;
  if (coding && !strncasecmp(coding, "chunked", 7)) body = join_chunks(bytes + head, size - head, &used);
  else if (size - head < (used = (size_t)body)) body = -1;
  if (body < 0) {
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    if (size == head && head_field(bytes, head, "expect")) send(c->fd, go_on, sizeof go_on - 1, MSG_NOSIGNAL);
    return 0;
  }
  return answer(c, bytes, bytes + head, (size_t)body) ? (ssize_t)(head + used) : -1;
}

static void hear(Connection *c) {
  ssize_t got = recv(c->fd, incoming, sizeof incoming, 0);
  if (got < 0 && errno == EAGAIN) return;
  if (got <= 0 || c->in.len + (size_t)got > REQUEST_MAX) return hang_up(c);
  char *bytes = incoming;
  size_t size = (size_t)got, done = 0;
  bool kept = c->in.len > 0;
  if (kept) buffer_add(&c->in, incoming, size), bytes = c->in.at, size = c->in.len;
  while (done < size && !c->plan && !c->left_bytes) {
    ssize_t used = take_request(c, bytes + done, size - done);
    if (used < 0) return;
    if (!used) break;
    done += (size_t)used;
  }
  if (kept) buffer_drop(&c->in, done);
  else buffer_add(&c->in, bytes + done, size - done);
}

static void drained(Connection *c) {
  if (!push(c) || c->left_bytes) return;
  rewatch(epoll, c->fd, EPOLLIN, c);
  if (can_run(c)) queue_add(&runnable, c);
}

static void welcome(int listener) {
  for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
    Connection *c = calloc(1, sizeof *c);
    if (!c) die("memory");
    c->fd = fd;
    tcp_no_delay(fd);
    watch(epoll, fd, EPOLLIN, c);
    count.connections++;
  }
}

static uint64_t next_due(void) {
  if (runnable.first) return 0;
  uint64_t due = UINT64_MAX;
  for (Plan *plan = all_plans; plan; plan = plan->next)
    if (plan->waiting.first && plan->waiting.first->due < due) due = plan->waiting.first->due;
  return due;
}

static void step_paced(void) {
  uint64_t now = now_ns();
  for (Plan *plan = all_plans; plan; plan = plan->next)
    for (Connection *c; (c = plan->waiting.first) && c->due <= now;) {
      queue_remove(c);
      if (!c->left_bytes) step(c);
      else c->due += plan->pace_ns, queue_add(&plan->waiting, c); // the gateway does not read: this turn is lost
    }
}

static void step_runnable(void) {
  for (int sends = 0; runnable.first && sends < SENDS_PER_TURN; sends++) {
    Connection *c = runnable.first;
    queue_remove(c);
    step(c);
  }
}

int mock_main(int argc, char **argv) {
  static const struct option options[] = {{"port", required_argument, NULL, 'p'}, {0}};
  int port = 9100;
  for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    if (option != 'p') return 2;
    port = atoi(optarg);
  }
  struct epoll_event events[256];
  int listener = tcp_listen(port);
  epoll = epoll_create1(EPOLL_CLOEXEC);
  watch(epoll, listener, EPOLLIN, NULL);
  for (;;) {
    int ready = wait_until(epoll, events, 256, next_due());
    for (int i = 0; i < ready; i++) {
      Connection *c = events[i].data.ptr;
      if (!c) welcome(listener);
      else if (events[i].events & EPOLLOUT) drained(c);
      else hear(c);
    }
    step_paced();
    step_runnable();
  }
}
