// Keeps every sample, so quantiles are exact; prints the line of JSON.
#pragma once
#include "load.h"

void samples_add(Samples *samples, uint64_t ns);
void report(uint64_t end);
