// What the mock and the load generator share: clock, sockets, growing buffers, HTTP heads.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

#define MS 1000000ull // in nanoseconds
#define SECOND 1000000000ull

// A stamped piece of content, "~0007.0123456789abcdef": its number in the stream and when it was sent, both hexadecimal.
#define STAMP "~0000.0000000000000000"
#define STAMP_LEN 22
// The last words of an unstreamed answer: whoever has them has all of it.
#define LAST_WORDS "over and out"

typedef struct {
  char *at;
  size_t len, cap;
} Buffer;

void buffer_add(Buffer *buffer, const void *bytes, size_t count);
void buffer_text(Buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buffer_drop(Buffer *buffer, size_t count); // from its beginning
void buffer_free(Buffer *buffer);

uint64_t now_ns(void); // CLOCK_MONOTONIC: one clock for all processes of a machine
double cpu_seconds(void);
_Noreturn void die(const char *what);
void raise_descriptor_limit(void);

int tcp_listen(int port);  // on loopback, not blocking
int tcp_connect(int port); // to loopback, not blocking, under way
void tcp_no_delay(int fd);
void watch(int epoll, int fd, uint32_t events, void *owner);
void rewatch(int epoll, int fd, uint32_t events, void *owner);
int wait_until(int epoll, struct epoll_event *events, int room, uint64_t due); // due 0: do not wait; UINT64_MAX: for ever

// Length of the HTTP head at the beginning of `bytes` with its empty line, 0 while it is not whole.
size_t head_length(const char *bytes, size_t count);
// The value of a field in a head (name in lower case), NULL when it is not there. It ends at CR.
const char *head_field(const char *head, size_t count, const char *name);

void put_hex(char *at, uint64_t value, int digits);
uint64_t get_hex(const char *at, int digits);

int mock_main(int argc, char **argv);
int load_main(int argc, char **argv);
