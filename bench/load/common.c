#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include "common.h"

static void buffer_room(Buffer *buffer, size_t more) {
  if (buffer->len + more <= buffer->cap) return;
  buffer->cap = (buffer->len + more) * 3 / 2 + 64;
  buffer->at = realloc(buffer->at, buffer->cap);
  if (!buffer->at) die("memory");
}

void buffer_add(Buffer *buffer, const void *bytes, size_t count) {
  if (!count) return;
  buffer_room(buffer, count);
  memcpy(buffer->at + buffer->len, bytes, count);
  buffer->len += count;
}

void buffer_text(Buffer *buffer, const char *format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  int count = vsnprintf(NULL, 0, format, arguments);
  buffer_room(buffer, (size_t)count + 1);
  vsnprintf(buffer->at + buffer->len, (size_t)count + 1, format, again);
  buffer->len += (size_t)count;
  va_end(arguments);
  va_end(again);
}

void buffer_drop(Buffer *buffer, size_t count) {
  buffer->len -= count;
  if (buffer->len && count) memmove(buffer->at, buffer->at + count, buffer->len);
}

void buffer_free(Buffer *buffer) {
  free(buffer->at);
  *buffer = (Buffer){0};
}

uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

double cpu_seconds(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

void die(const char *what) {
  perror(what);
  exit(1);
}

void raise_descriptor_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit)) die("getrlimit");
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit)) die("setrlimit");
}

static struct sockaddr_in loopback(int port) {
  return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

int tcp_listen(int port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), yes = 1;
  if (fd < 0) die("socket");
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  struct sockaddr_in address = loopback(port);
  if (bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 4096)) die("listen");
  return fd;
}

int tcp_connect(int port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) die("socket");
  tcp_no_delay(fd);
  struct sockaddr_in address = loopback(port);
  if (connect(fd, (struct sockaddr *)&address, sizeof address) && errno != EINPROGRESS) die("connect");
  return fd;
}

void tcp_no_delay(int fd) {
  int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

void watch(int epoll, int fd, uint32_t events, void *owner) {
  struct epoll_event event = {.events = events, .data.ptr = owner};
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event)) die("epoll_ctl");
}

void rewatch(int epoll, int fd, uint32_t events, void *owner) {
  struct epoll_event event = {.events = events, .data.ptr = owner};
  if (epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event)) die("epoll_ctl");
}

int wait_until(int epoll, struct epoll_event *events, int room, uint64_t due) {
  struct timespec span = {0}, *limit = &span;
  if (due == UINT64_MAX) {
    limit = NULL;
  } else if (due) {
    uint64_t now = now_ns(), left = due > now ? due - now : 0;
    span = (struct timespec){.tv_sec = (time_t)(left / SECOND), .tv_nsec = (long)(left % SECOND)};
  }
  int count = epoll_pwait2(epoll, events, room, limit, NULL);
  return count < 0 ? 0 : count; // interrupted by a signal: nothing has happened
}

size_t head_length(const char *bytes, size_t count) {
  const char *end = memmem(bytes, count, "\r\n\r\n", 4);
  return end ? (size_t)(end - bytes) + 4 : 0;
}

const char *head_field(const char *head, size_t count, const char *name) {
  size_t width = strlen(name);
  const char *end = head + count, *line = memchr(head, '\n', count);
  for (; line && (size_t)(end - ++line) > width; line = memchr(line, '\n', (size_t)(end - line))) {
    if (line[width] != ':' || strncasecmp(line, name, width)) continue;
    for (line += width + 1; *line == ' '; line++) continue;
    return line;
  }
  return NULL;
}

void put_hex(char *at, uint64_t value, int digits) {
  for (int i = digits; i--; value >>= 4) at[i] = "0123456789abcdef"[value & 15];
}

uint64_t get_hex(const char *at, int digits) {
  uint64_t value = 0;
  for (int i = 0; i < digits; i++) value = value << 4 | (uint64_t)((at[i] & 15) + (at[i] > '9' ? 9 : 0));
  return value;
}
