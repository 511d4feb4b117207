// SPDX-License-Identifier: Apache-2.0

/* A library that a program loads while it runs, with flush instructions. */
#include "inline.h"

void store_and_flush(uint64_t *at, uint64_t value, int flushes);

void store_and_flush(uint64_t *at, uint64_t value, int flushes) {
    *at = value;
    if (flushes) clwb(at);
    sfence();
}
