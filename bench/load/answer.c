// Reads answers: HTTP framing, server-sent events, stamps; and judges them.
#include <stdlib.h>
#include <string.h>

#include "load.h"
#include "report.h"

enum { KEPT_MAX = 64 << 10 };

void asker_reset(Asker *a) {
  Buffer kept = a->kept;
  int fd = a->fd;
  kept.len = 0;
  *a = (Asker){.fd = fd, .kept = kept};
}

static void blame(Asker *a, Fault fault) {
  if (!a->fault) a->fault = fault;
}

static bool has(const char *bytes, size_t count, const char *text) {
  return memmem(bytes, count, text, strlen(text)) != NULL;
}

static void hear_stamp(Asker *a, const char *stamp, uint64_t now) {
  if (get_hex(stamp + 1, 4) != a->number++) blame(a, OUT_OF_ORDER);
  uint64_t sent = get_hex(stamp + 6, 16);
  if (a->last && now - a->last > window.worst_gap) window.worst_gap = now - a->last;
  a->last = now;
  window.all_chunks++;
  if (now < window.from || now >= window.to) return;
  window.chunks++;
  samples_add(&window.chunk, now - sent);
}

// The data of one event: stamped chunks (a gateway may join several), the finish chunk, an error, [DONE].
static void hear_data(Asker *a, const char *data, size_t count, uint64_t now) {
  const char *end = data + count, *stamp = data;
  if (count >= 6 && !memcmp(data, "[DONE]", 6)) {
    a->done = true;
    return;
  }
  if (a->done) blame(a, OUT_OF_ORDER);
  while ((stamp = memchr(stamp, '~', (size_t)(end - stamp))) && end - stamp >= STAMP_LEN) {
    hear_stamp(a, stamp, now);
    stamp += STAMP_LEN;
  }
  const char *finish = memmem(data, count, "\"finish_reason\"", 15);
  if (finish)
    for (finish += 15; finish < end && (*finish == ':' || *finish == ' '); finish++) continue;
  if (finish && finish < end && *finish == '"') a->finishes++;
  if (has(data, count < 12 ? count : 12, "{\"error\"")) {
    blame(a, ERROR_EVENT);
    if (!window.complaint.len) buffer_add(&window.complaint, data, count < 400 ? count : 400);
  }
}

static void hear_line(Asker *a, const char *line, size_t count, uint64_t now) {
  if (count < 5 || memcmp(line, "data:", 5)) return; // comments, ids, the empty line
  size_t skip = count > 5 && line[5] == ' ' ? 6 : 5;
  if (!a->begun && a->asked >= window.from) samples_add(&window.first, now - a->asked);
  a->begun = true;
  hear_data(a, line + skip, count - skip, now);
}

static void hear_stream(Asker *a, const char *bytes, size_t count, uint64_t now) {
  const char *end = bytes + count, *stop;
  for (; (stop = memchr(bytes, '\n', (size_t)(end - bytes))); bytes = stop + 1) {
    if (!a->kept.len) {
      hear_line(a, bytes, (size_t)(stop - bytes), now);
      continue;
    }
    buffer_add(&a->kept, bytes, (size_t)(stop - bytes));
    hear_line(a, a->kept.at, a->kept.len, now);
    a->kept.len = 0;
  }
  if (a->kept.len < KEPT_MAX) buffer_add(&a->kept, bytes, (size_t)(end - bytes)); // of a picture's line the beginning is enough
}

static void hear_body(Asker *a, const char *bytes, size_t count, uint64_t now) {
  a->body += count;
  if (now >= window.from && now < window.to) window.bytes += count;
  if (a->status == 200 && !settings.unstreamed) hear_stream(a, bytes, count, now);
  else if (a->kept.len < KEPT_MAX) buffer_add(&a->kept, bytes, count);
}

// Reads a head that may come in pieces. Gives what it took of `bytes`.
static size_t hear_head(Asker *a, const char *bytes, size_t count) {
  size_t before = a->kept.len;
  buffer_add(&a->kept, bytes, count);
  size_t head = head_length(a->kept.at, a->kept.len);
  if (!head) return count;
  a->status = head > 12 ? atoi(a->kept.at + 9) : 0;
  const char *length = head_field(a->kept.at, head, "content-length"), *coding = head_field(a->kept.at, head, "transfer-encoding");
  const char *connection = head_field(a->kept.at, head, "connection");
  a->left = length ? strtoul(length, NULL, 10) : 0;
  if (a->status >= 200) {
    a->part = coding && !strncasecmp(coding, "chunked", 7) ? SIZE : length ? FIXED : TO_THE_END;
    a->close = a->part == TO_THE_END || (connection && !strncasecmp(connection, "close", 5));
  }
  a->kept.len = 0;
  return head - before;
}

// One character of the chunked framing between the data.
static void hear_framing(Asker *a, char letter) {
  switch (a->part) {
    case SIZE:
      if (letter == ';' || letter == '\r') a->part = SIZE_REST;
      else a->left = a->left << 4 | get_hex(&letter, 1);
      break;
    case SIZE_REST:
      if (letter == '\n') a->part = a->left ? DATA : TRAILER;
      break;
    default: // the CR and LF after the data
      if (letter == '\n') a->part = SIZE;
  }
}

bool hear(Asker *a, const char *bytes, size_t count, uint64_t now) {
  const char *end = bytes + count;
  a->heard = true;
  while (bytes < end) {
    size_t here = (size_t)(end - bytes);
    switch (a->part) {
      case HEAD:
        bytes += hear_head(a, bytes, here);
        if (a->part == FIXED && !a->left) return true;
        break;
      case FIXED:
      case DATA:
        if (here > a->left) here = a->left;
        hear_body(a, bytes, here, now);
        bytes += here, a->left -= here;
        if (a->left) break;
        if (a->part == FIXED) return true;
        a->part = DATA_END;
        break;
      case TO_THE_END:
        hear_body(a, bytes, here, now);
        return false;
      case TRAILER: // `left` counts the letters of the line
        if (*bytes == '\n' && !a->left) return true;
        a->left = *bytes == '\n' ? 0 : a->left + (*bytes != '\r');
        bytes++;
        break;
      default: hear_framing(a, *bytes++);
    }
  }
  return false;
}

static Fault judge(const Asker *a) {
  if (a->status != 200) return BAD_STATUS;
  if (a->fault) return a->fault;
  if (a->body < settings.bytes) return TOO_SHORT;
  if (settings.unstreamed) return a->kept.len && has(a->kept.at, a->kept.len, LAST_WORDS) ? NO_FAULT : TOO_SHORT;
  if (a->number < settings.chunks) return CHUNKS_MISSING;
  if (a->finishes != 1) return NO_FINISH;
  return a->done ? NO_FAULT : NO_DONE;
}

void settle(Asker *a, uint64_t now, Fault fault) {
  if (!fault) fault = judge(a);
  window.all_requests++;
  if (fault) {
    window.faulty++, window.faults[fault]++;
    if (!window.complaint.len && a->status != 200) buffer_add(&window.complaint, a->kept.at, a->kept.len < 400 ? a->kept.len : 400);
    return;
  }
  if (now < window.from || now >= window.to) return;
  window.requests++;
  if (a->asked >= window.from) samples_add(&window.whole, now - a->asked);
}
