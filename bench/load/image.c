#include "image.h"

#include <string.h>

enum { WIDTH = 2048, ROW = 1 + WIDTH * 3, STORED_MAX = 65535 };

static uint32_t crc32(uint32_t crc, const uint8_t *bytes, size_t count) {
  static uint32_t table[256];
  for (uint32_t i = 0; !table[255] && i < 256; i++) {
    table[i] = i;
    for (int bit = 0; bit < 8; bit++) table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xEDB88320u : 0);
  }
  for (crc = ~crc; count--; bytes++) crc = crc >> 8 ^ table[(crc ^ *bytes) & 255];
  return ~crc;
}

static uint32_t adler32(const uint8_t *bytes, size_t count) {
  uint32_t low = 1, high = 0;
  while (count--) low = (low + *bytes++) % 65521, high = (high + low) % 65521;
  return high << 16 | low;
}

static void add_u32(Buffer *out, uint32_t value) {
  buffer_add(out, (uint8_t[]){(uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8), (uint8_t)value}, 4);
}

static void add_png_chunk(Buffer *png, const char *type, const Buffer *data) {
  add_u32(png, (uint32_t)data->len);
  size_t begin = png->len;
  buffer_add(png, type, 4);
  buffer_add(png, data->at, data->len);
  add_u32(png, crc32(0, (uint8_t *)png->at + begin, png->len - begin));
}

static void add_noise_rows(Buffer *pixels, uint32_t rows) {
  uint32_t state = 2463534242u;
  for (uint32_t row = 0; row < rows; row++) {
    uint8_t line[ROW] = {0}; // filter byte 0
    for (int i = 1; i < ROW; i++) {
      state ^= state << 13, state ^= state >> 17, state ^= state << 5;
      line[i] = (uint8_t)state;
    }
    buffer_add(pixels, line, ROW);
  }
}

static void add_stored_zlib(Buffer *out, const Buffer *raw) {
  buffer_add(out, "\x78\x01", 2);
  for (size_t at = 0; at < raw->len; at += STORED_MAX) {
    size_t size = raw->len - at < STORED_MAX ? raw->len - at : STORED_MAX;
    uint8_t head[5] = {at + size == raw->len, (uint8_t)size, (uint8_t)(size >> 8), (uint8_t)~size, (uint8_t)(~size >> 8)};
    buffer_add(out, head, sizeof head);
    buffer_add(out, raw->at + at, size);
  }
  add_u32(out, adler32((uint8_t *)raw->at, raw->len));
}

static void add_base64(Buffer *out, const Buffer *raw) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t at = 0; at < raw->len; at += 3) {
    size_t left = raw->len - at;
    const uint8_t *in = (uint8_t *)raw->at + at;
    uint32_t bits = (uint32_t)in[0] << 16 | (left > 1 ? (uint32_t)in[1] << 8 : 0) | (left > 2 ? in[2] : 0);
    char four[4] = {digits[bits >> 18], digits[bits >> 12 & 63], left > 1 ? digits[bits >> 6 & 63] : '=', left > 2 ? digits[bits & 63] : '='};
    buffer_add(out, four, 4);
  }
}

void image_base64(Buffer *out, size_t base64_bytes) {
  Buffer png = {0}, header = {0}, pixels = {0}, packed = {0};
  uint32_t rows = (uint32_t)(base64_bytes / 4 * 3 / ROW) + 1;
  buffer_add(&png, "\x89PNG\r\n\x1a\n", 8);
  add_u32(&header, WIDTH);
  add_u32(&header, rows);
  buffer_add(&header, "\x08\x02\0\0\0", 5); // 8 bits, RGB
  add_png_chunk(&png, "IHDR", &header);
  add_noise_rows(&pixels, rows);
  add_stored_zlib(&packed, &pixels);
  add_png_chunk(&png, "IDAT", &packed);
  add_png_chunk(&png, "IEND", &(Buffer){0});
  add_base64(out, &png);
  buffer_free(&png), buffer_free(&header), buffer_free(&pixels), buffer_free(&packed);
}
