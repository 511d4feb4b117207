// SPDX-License-Identifier: Apache-2.0

/* Write-backs, fences and stores past the cache by instructions, as in libraries without
 * libpmem. */
#ifndef INLINE_H
#define INLINE_H

#include <stdint.h>

static inline void clwb(const void *at) {
    __asm__ volatile("clwb %0" : : "m"(*(const char *)at) : "memory");
}

static inline void clflushopt(const void *at) {
    __asm__ volatile("clflushopt %0" : : "m"(*(const char *)at) : "memory");
}

static inline void clflush(const void *at) {
    __asm__ volatile("clflush %0" : : "m"(*(const char *)at) : "memory");
}

static inline void sfence(void) {
    __asm__ volatile("sfence" : : : "memory");
}

static inline void mfence(void) {
    __asm__ volatile("mfence" : : : "memory");
}

static inline void movnti(uint64_t *at, uint64_t value) {
    __asm__ volatile("movnti %1, %0" : "=m"(*at) : "r"(value) : "memory");
}

#endif
