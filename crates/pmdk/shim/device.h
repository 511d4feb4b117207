// SPDX-License-Identifier: Apache-2.0

/* A served device with the engine `nearpm`: its mapped PM window, and its commands. */
#ifndef NEARSIDE_PMDK_DEVICE_H
#define NEARSIDE_PMDK_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

/* A command of the engine: `hw/engine/nearpm`. */
struct command {
    uint8_t operation, pool, thread;
    uint64_t address, bytes, target, transaction, value, extra;
};

/* The part of the window for programs: `bytes` from `window` on; `file` is for private mappings. */
struct device {
    uint8_t *window;
    uint64_t bytes;
    int file;
};

/* The device of NEARSIDE_PMDK, attached at the first call. NULL if that fails, which is reported
 * once. */
const struct device *ns_device(void);

/* Detaches this process from the device; it attaches again when it needs the device. */
void ns_device_leave(void);

/* Runs a command; returns the bits of its result, or -1 if the device is gone. `value` may be
 * NULL. */
int64_t ns_command(const struct command *command, uint64_t *value);

/* Stores a line at a place of the window, as a host does; the device may track it. False without an
 * answer. */
bool ns_device_store(uint64_t place, const uint8_t line[64]);

/* Prints a line on standard error. */
void ns_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
