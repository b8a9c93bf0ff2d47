// What a model of the mock answers, rendered once: the model's name says everything, so any gateway carries it through.
#pragma once
#include "common.h"

typedef struct Connection Connection;

typedef struct {
  Connection *first, *last;
} Queue;

typedef struct Plan {
  char model[96];
  enum { UNSTREAMED_ONLY, FAST, PACED, HELD, IMAGE } kind;
  uint32_t chunks;   // stamped ones in a stream
  uint64_t pace_ns;  // between two of them
  Buffer opening;    // head and role chunk
  Buffer delta;      // one stamped chunk; the digits are filled in when it is sent
  size_t number_at, time_at;
  Buffer picture;    // the one line of IMAGE
  Buffer closing[2]; // finish chunk, usage when asked for, [DONE], end of the body
  Buffer answer;     // unstreamed
  Queue waiting;     // PACED: the next one due first
  struct Plan *next;
} Plan;

Plan *plan_for(const char *model, size_t count); // NULL: too long a name
extern Plan *all_plans;
