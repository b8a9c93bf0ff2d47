// A real picture of any size: noise, in a PNG that is not compressed, as base64.
#pragma once
#include "common.h"

void image_base64(Buffer *out, size_t base64_bytes); // at least so many, to within a row
