// The load generator: asks, reads every answer to its end, checks that nothing is missing, and measures. One line of JSON.
#include "load.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "report.h"

enum { FAULTS_MAX = 1000 };

Settings settings = {.port = 9200, .connections = 1, .seconds = 3, .warm = 0.5, .path = "/v1/chat/completions", .model = "chunks-200"};
Window window;
static Buffer request;
static Asker *askers;
static int epoll, standing_by; // connections opened by the spread so far
static bool stopping;
static char incoming[512 << 10];

static void stop(int signal) {
  (void)signal;
  stopping = true;
}

static void make_request(const Buffer *headers) {
  Buffer body = {0};
  buffer_text(&body, "{\"model\":\"%s\",\"messages\":[{\"role\":\"system\",\"content\":\"You answer briefly and to the point.\"},"
                     "{\"role\":\"user\",\"content\":\"", settings.model);
  for (int i = 0; i < 8; i++) buffer_text(&body, "Tell me what a gateway between clients and \\\"language models\\\" has to do, please.\\n");
  buffer_text(&body, "\"}],\"temperature\":0.7,\"max_tokens\":512%s}", settings.unstreamed ? "" : ",\"stream\":true");
  buffer_text(&request, "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\nAccept: */*\r\n"
                        "User-Agent: streamload\r\n%.*sContent-Length: %zu\r\n\r\n",
              settings.path, settings.port, (int)headers->len, headers->at ? headers->at : "", body.len);
  buffer_add(&request, body.at, body.len);
  buffer_free(&body);
}

static void dial(Asker *a) {
  a->fd = tcp_connect(settings.port);
  a->fresh = true, a->sent = 0;
  watch(epoll, a->fd, EPOLLIN | EPOLLOUT, a);
}

static void ask(Asker *a) {
  asker_reset(a);
  a->asking = true, a->asked = now_ns(), a->sent = 0;
  window.asked++, window.open++;
  if (a->fd < 0) return dial(a);
  a->fresh = false;
  ssize_t sent = send(a->fd, request.at, request.len, MSG_NOSIGNAL);
  a->sent = sent > 0 ? (size_t)sent : 0;
  if (a->sent < request.len) rewatch(epoll, a->fd, EPOLLIN | EPOLLOUT, a);
}

static bool may_ask(uint64_t now) {
  return !stopping && (settings.requests ? window.asked < settings.requests : now < window.to) && window.faulty < FAULTS_MAX;
}

static void drop(Asker *a) {
  close(a->fd);
  a->fd = -1;
}

static void next(Asker *a, uint64_t now) {
  a->asking = false, window.open--;
  if (a->close && a->fd >= 0) drop(a);
  if (!settings.hold && may_ask(now)) ask(a);
}

// The connection ended. A kept one that was closed while we asked again is no fault: it is dialled once more.
static void cut(Asker *a, uint64_t now) {
  drop(a);
  if (!a->asking) return;
  if (!a->fresh && !a->heard) {
    window.redials++;
    return dial(a);
  }
  bool whole = a->part == TO_THE_END && a->heard;
  settle(a, now, whole ? NO_FAULT : a->heard ? CUT : NOT_CONNECTED);
  next(a, now);
}

static void write_on(Asker *a) {
  ssize_t sent = send(a->fd, request.at + a->sent, request.len - a->sent, MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN) return cut(a, now_ns());
  if (sent > 0) a->sent += (size_t)sent;
  if (a->sent == request.len) rewatch(epoll, a->fd, EPOLLIN, a);
}

static void listen_to(Asker *a) {
  ssize_t got = recv(a->fd, incoming, sizeof incoming, 0);
  uint64_t now = now_ns();
  if (got < 0 && errno == EAGAIN) return;
  if (got <= 0) return cut(a, now);
  if (!a->asking || !hear(a, incoming, (size_t)got, now)) return;
  settle(a, now, NO_FAULT);
  next(a, now);
}

// Asks for the first time on those connections whose turn has come; gives the time of the next turn.
static uint64_t open_more(uint64_t begin) {
  uint64_t step = (uint64_t)(settings.spread_ms * (double)MS) / (uint64_t)settings.connections;
  for (; standing_by < settings.connections; standing_by++) {
    uint64_t turn = begin + step * (uint64_t)standing_by, now = now_ns();
    if (turn > now) return turn;
    if (!may_ask(now)) return UINT64_MAX;
    ask(&askers[standing_by]);
  }
  return UINT64_MAX;
}

static bool over(uint64_t now) {
  if (window.faulty >= FAULTS_MAX || (stopping && settings.hold)) return true;
  bool no_more = settings.requests ? window.asked >= settings.requests : now >= window.to;
  return (no_more || stopping) && (!window.open || now > window.give_up);
}

// Held streams: told once all have had their first chunk, or a minute after the last was asked for; then until the input ends.
static void hold(uint64_t begin) {
  static bool told;
  bool all = window.first.count + window.faulty >= (size_t)settings.connections;
  if (told || (!all && now_ns() < begin + 60 * SECOND + (uint64_t)(settings.spread_ms * (double)MS))) return;
  told = true;
  printf("{\"held\":%zu,\"faulty\":%lu,\"seconds\":%.3f}\n", window.first.count, window.faulty, (double)(now_ns() - begin) / 1e9);
  fflush(stdout);
  watch(epoll, STDIN_FILENO, EPOLLIN, NULL);
}

// Reading each piece the moment it comes costs more than all else here; where only the rate counts, let some come together.
static void gather(void) {
  if (settings.gather_ms > 0) nanosleep(&(struct timespec){.tv_nsec = (long)(settings.gather_ms * (double)MS)}, NULL);
}

static void run(uint64_t begin) {
  struct epoll_event events[256];
  for (uint64_t now = begin; !over(now); now = now_ns()) {
    uint64_t turn = open_more(begin), tick = now + 50 * MS;
    gather();
    int ready = wait_until(epoll, events, 256, turn < tick ? turn : tick);
    for (int i = 0; i < ready; i++) {
      Asker *a = events[i].data.ptr;
      if (!a) stopping = true;
      else if (events[i].events & (EPOLLERR | EPOLLHUP) && !(events[i].events & EPOLLIN)) cut(a, now_ns());
      else if (events[i].events & EPOLLOUT) write_on(a);
      else listen_to(a);
    }
    if (settings.hold) hold(begin);
  }
}

static bool read_options(int argc, char **argv, Buffer *headers) {
  static const struct option options[] = {
      {"port", 1, NULL, 'p'},     {"connections", 1, NULL, 'c'}, {"seconds", 1, NULL, 's'}, {"warm", 1, NULL, 'w'},
      {"requests", 1, NULL, 'n'}, {"model", 1, NULL, 'm'},       {"chunks", 1, NULL, 'k'},  {"bytes", 1, NULL, 'b'},
      {"spread", 1, NULL, 'g'},   {"path", 1, NULL, 'u'},        {"header", 1, NULL, 'H'},  {"unstreamed", 0, NULL, 'U'},
      {"hold", 0, NULL, 'h'},     {"gather", 1, NULL, 'G'},      {0}};
  for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) switch (option) {
      case 'p': settings.port = atoi(optarg); break;
      case 'c': settings.connections = atoi(optarg); break;
      case 's': settings.seconds = atof(optarg); break;
      case 'w': settings.warm = atof(optarg); break;
      case 'n': settings.requests = strtoul(optarg, NULL, 10); break;
      case 'm': settings.model = optarg; break;
      case 'k': settings.chunks = (uint32_t)atoi(optarg); break;
      case 'b': settings.bytes = strtoul(optarg, NULL, 10); break;
      case 'g': settings.spread_ms = atof(optarg); break;
      case 'G': settings.gather_ms = atof(optarg); break;
      case 'u': settings.path = optarg; break;
      case 'H': buffer_text(headers, "%s\r\n", optarg); break;
      case 'U': settings.unstreamed = true; break;
      case 'h': settings.hold = true; break;
      default: return false;
    }
  return settings.connections > 0 && optind == argc;
}

int load_main(int argc, char **argv) {
  Buffer headers = {0};
  if (!read_options(argc, argv, &headers)) return 2;
  signal(SIGINT, stop), signal(SIGTERM, stop);
  make_request(&headers);
  if (settings.hold) settings.requests = (uint64_t)settings.connections;
  epoll = epoll_create1(EPOLL_CLOEXEC);
  askers = calloc((size_t)settings.connections, sizeof *askers);
  if (!askers) die("memory");
  for (int i = 0; i < settings.connections; i++) askers[i].fd = -1;
  uint64_t begin = now_ns();
  window.from = settings.requests ? begin : begin + (uint64_t)(settings.warm * 1e9);
  window.to = settings.requests ? UINT64_MAX : window.from + (uint64_t)(settings.seconds * 1e9);
  window.give_up = settings.hold ? UINT64_MAX : begin + (uint64_t)((settings.warm + settings.seconds + 30) * 1e9);
  run(begin);
  uint64_t end = now_ns();
  for (int i = 0; i < settings.connections; i++)
    if (askers[i].asking && !settings.hold) settle(&askers[i], end, NOT_ENDED);
  report(end);
  return 0;
}
