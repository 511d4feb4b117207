// SPDX-License-Identifier: Apache-2.0

/* Persistent memory of the program: flushes, fences and copies, recorded in a trace. */
#ifndef NEARSIDE_PMDK_MEMORY_H
#define NEARSIDE_PMDK_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device.h"

/* A shared mapping of a file was made, at this place of a device's window; 0: a place is chosen. */
void ns_memory_mapped(void *address, size_t bytes, uint64_t place, int file, int64_t offset);

/* True if a part of these bytes is mapped from a file. */
bool ns_memory_has(const void *address, size_t bytes);

/* A mapping of a file that is not writable yet. */
void ns_memory_readable(int file);

/* These pages were unmapped or replaced: their former content counts as durable. */
void ns_memory_unmapped(const void *address, size_t bytes);

/* Writes the rest of the trace. */
void ns_memory_end(void);

/* Starts following this process, which writes the trace; or stops it in a child. */
void ns_memory_follow(void);
void ns_memory_forget(void);

/* Instructions of the program, see `src/instructions.rs`: `clwb` and `clflushopt`; `clflush`, which
 * needs no fence; stores past the cache. A fence counts if this thread has requested a write-back
 * since the last one. */
void ns_memory_flushed(const void *address);
void ns_memory_flushed_in_order(const void *address);
void ns_memory_streamed(const void *address, size_t bytes);
void ns_memory_fenced(void);

/* A transaction begins. */
void ns_memory_transaction(void);

/* It was committed or aborted; the program does not know yet. */
void ns_memory_transaction_ended(void);

/* A command is submitted to the device. */
void ns_memory_command(const struct command *command);

/* Numbers of flushes, fences, flushed lines, and streamed bytes. */
struct memory_counts {
    uint64_t flushes, fences, lines, streamed;
};
struct memory_counts ns_memory_counts(void);

#endif
