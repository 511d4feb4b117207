/* Persistent memory as libpmem has it: what is flushed, fenced and streamed, told to a trace. */
#ifndef NEARSIDE_PMDK_MEMORY_H
#define NEARSIDE_PMDK_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device.h"

/* A shared mapping of a file has been made: its contents have this place in a device's window. 0: one is to be chosen. */
void ns_memory_mapped(void *address, size_t bytes, uint64_t place, int file, int64_t offset);

/* Whether a part of some bytes is a file's. */
bool ns_memory_has(const void *address, size_t bytes);

/* The same, but that memory can't be written to yet. */
void ns_memory_readable(int file);

/* Something else is at these pages, or nothing: what was a file's there counts as durable from then on. */
void ns_memory_gone(const void *address, size_t bytes);

/* The trace is written. */
void ns_memory_end(void);

/* This process is followed from now on, and writes the trace; another one does. */
void ns_memory_follow(void);
void ns_memory_forget(void);

/* Instructions of the program's own, `src/instructions.rs`: `clwb` and `clflushopt`; `clflush`, which needs no fence; stores past the
 * cache; and what is a fence, which counts if this thread has asked for something since the last one. */
void ns_memory_flushed(const void *address);
void ns_memory_flushed_in_order(const void *address);
void ns_memory_streamed(const void *address, size_t bytes);
void ns_memory_fenced(void);

/* A transaction begins. */
void ns_memory_transaction(void);

/* A command is given to the device. */
void ns_memory_command(const struct command *command);

/* Flushes, fences, lines that were flushed, and bytes that were streamed past the cache. */
struct memory_counts {
    uint64_t flushes, fences, lines, streamed;
};
struct memory_counts ns_memory_counts(void);

#endif
