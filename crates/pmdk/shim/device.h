/* A served device with the engine `nearpm`: its PM window, mapped, and its commands. */
#ifndef NEARSIDE_PMDK_DEVICE_H
#define NEARSIDE_PMDK_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

/* A command of the engine: docs/hardware/nearpm.md. */
struct command {
    uint8_t operation, pool, thread;
    uint64_t address, bytes, target, transaction, value, extra;
};

/* What the window has for programs: `bytes` from `window` on; as a file for mappings of their own. */
struct device {
    uint8_t *window;
    uint64_t bytes;
    int file;
};

/* The device behind NEARSIDE_PMDK, attached to at the first call; NULL if that can't be, which is told once. */
const struct device *ns_device(void);

/* This process has no device any more; it attaches to it anew when it needs it. */
void ns_device_leave(void);

/* Gives a command, and waits for its end: the bits of its return value, or -1 if the device is gone. `value` may be NULL. */
int64_t ns_command(const struct command *command, uint64_t *value);

/* A line on standard error. */
void ns_tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
