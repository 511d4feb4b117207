// SPDX-License-Identifier: Apache-2.0

/* Power losses: the durable bytes of a program's persistent memory, and the state after a power
 * loss. */
#ifndef NEARSIDE_PMDK_CRASH_H
#define NEARSIDE_PMDK_CRASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NEARSIDE_PMDK_CRASH: the power is to fail at the last persist point. Otherwise the functions
 * below do nothing. */
bool ns_crash_wanted(void);

/* A mapping of a file was made, which is durable as it is; or it was removed. */
void ns_crash_mapped(const void *address, size_t bytes, int file, int64_t offset);
void ns_crash_unmapped(const void *address, size_t bytes);

/* A part of a mapping has moved, or changed its size; `stays`: the old mapping stays, too. False if
 * that is not followed. The locks are held. */
bool ns_crash_moved(const void *old, size_t old_bytes, const void *address, size_t bytes, bool stays);

/* This thread has requested write-backs, of `whole_lines` or of streamed bytes; its next fence
 * makes them durable. */
void ns_crash_flushed(const void *address, size_t bytes, bool whole_lines);
void ns_crash_fenced(void);

/* These bytes of one mapping are durable as they are: `msync`. */
void ns_crash_synced(const void *address, size_t bytes);

/* The power does not fail between these two calls. */
void ns_crash_hold(void);
void ns_crash_release(void);

/* The device has written these bytes. The lock is held. */
void ns_crash_written(const void *address, size_t bytes);

/* Writes of the device between these two calls are durable, in the mapping of that address. The
 * lock is held. */
void ns_crash_before_device(const void *address);
void ns_crash_after_device(const void *address);

/* Fails the power: data that are not durable are lost, except for a random choice of lines. Does
 * not return. */
void ns_crash(void) __attribute__((noreturn));

#endif
