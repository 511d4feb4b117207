/* Losses of power: which bytes of a program's persistent memory are durable, and what is left when the power fails. */
#ifndef NEARSIDE_PMDK_CRASH_H
#define NEARSIDE_PMDK_CRASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NEARSIDE_PMDK_CRASH: the power is to fail at the last moment. Only then the functions below do anything. */
bool ns_crash_wanted(void);

/* A mapping of a file, which is durable as it is; it is gone. */
void ns_crash_mapped(const void *address, size_t bytes, int file, int64_t offset);
void ns_crash_unmapped(const void *address, size_t bytes);

/* A part of a mapping is at another address, or has another size; `stays`: it is at the old one, too. False if that is not
 * followed. Held. */
bool ns_crash_moved(const void *old, size_t old_bytes, const void *address, size_t bytes, bool stays);

/* This thread has asked for bytes to be written back, `whole_lines` or past the cache; with its next fence they are durable. */
void ns_crash_flushed(const void *address, size_t bytes, bool whole_lines);
void ns_crash_fenced(void);

/* These bytes, of one mapping, are durable as they are: `msync`. */
void ns_crash_synced(const void *address, size_t bytes);

/* The power does not fail between these two. */
void ns_crash_hold(void);
void ns_crash_release(void);

/* The device has written these bytes: held. */
void ns_crash_written(const void *address, size_t bytes);

/* What the device writes in between is durable, in the mapping of that address: held. */
void ns_crash_before_device(const void *address);
void ns_crash_behind_device(const void *address);

/* The power fails: what is not durable is lost, but for lines that are drawn. Does not return. */
void ns_crash(void) __attribute__((noreturn));

#endif
