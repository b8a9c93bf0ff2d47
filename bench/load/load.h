// One asker is one connection that asks again and again; reading and judging what it hears is answer.c.
#pragma once
#include "common.h"

typedef struct {
  int port, connections;
  double seconds, warm, spread_ms, gather_ms; // measured; before it; over which the connections are opened; see gather()
  uint64_t requests, bytes;        // requests: so many in place of a time; bytes: least size of an answer's body
  uint32_t chunks;                 // stamped chunks that a stream must have
  bool unstreamed, hold;
  const char *path, *model;
} Settings;

typedef enum { NO_FAULT, NOT_CONNECTED, CUT, BAD_STATUS, OUT_OF_ORDER, CHUNKS_MISSING, TOO_SHORT, NO_FINISH, NO_DONE, ERROR_EVENT, NOT_ENDED, FAULT_KINDS } Fault;

typedef struct {
  uint32_t *at; // in tenths of a microsecond, up to 429 s
  size_t count, cap;
} Samples;

typedef struct {
  uint64_t from, to, give_up; // what is measured, when to leave off waiting
  uint64_t requests, chunks, bytes;              // within it
  uint64_t asked, open, all_requests, all_chunks; // from the first to the last
  uint64_t faulty, faults[FAULT_KINDS], redials;
  uint64_t worst_gap;                            // ns between two chunks of one stream
  Samples whole, first, chunk;                   // from asking to the end, to the first chunk; from a chunk's stamp to its arrival
  Buffer complaint;                              // the beginning of the first bad answer
} Window;

typedef struct {
  int fd;
  bool asking, fresh, heard; // fresh: dialled for this question
  uint64_t asked;
  size_t sent;
  enum { HEAD, FIXED, SIZE, SIZE_REST, DATA, DATA_END, TRAILER, TO_THE_END } part;
  int status;
  bool close;
  uint64_t left, body;
  Buffer kept; // a head, a line or an answer of which more will come
  uint32_t number;       // stamped chunks so far
  int finishes;
  bool begun, done;
  uint64_t last;
  Fault fault; // the first
} Asker;

extern Settings settings;
extern Window window;

void asker_reset(Asker *a);
bool hear(Asker *a, const char *bytes, size_t count, uint64_t now); // true: the answer is whole
void settle(Asker *a, uint64_t now, Fault fault);                   // judges and counts it
