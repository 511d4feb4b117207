/* SPDX-License-Identifier: Apache-2.0 */

/* What the parts of the object for simulated time share. clock.c describes it as a whole. */

#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define LOAD(x) __atomic_load_n(&(x), __ATOMIC_SEQ_CST)
#define STORE(x, value) __atomic_store_n(&(x), value, __ATOMIC_SEQ_CST)
/* Everything else is hidden, so that it replaces nothing of QEMU's. */
#define EXPORTED __attribute__((visibility("default")))

static const uint64_t NEVER = (uint64_t)1 << 62;
/* A CPU stops once its counter reaches this. */
static const uint64_t LIMIT = (uint64_t)1 << 62;
enum { MAX_CPUS = 8 };

struct cpu {
    /* Instructions = offset + *counter. */
    volatile uint64_t *counter;
    uint64_t offset, skipped;
    /* WAITING: it halts, or waits for another thread. READY: it runs when its turn comes. */
    enum { ABSENT, WAITING, READY } state;
    /* What it waits for, until its turn comes, and what that does. */
    pthread_cond_t *condition, turn;
    /* The time at which it was woken; its instructions and its skipped time before it resumed. */
    uint64_t woken, count_before, skipped_before;
    /* It has executed instructions since the last common time. */
    bool ran;
};

/* Parameters of the plugin. */
struct parameters {
    uint64_t insn_ps, tsc_ps, quantum_ps, interactive, jitter;
};

struct counts {
    uint64_t stops, timers, halts, accesses, drains, tsc;
};

/* As of the last access to a device. What comes after it, the way to the end of QEMU, is a race
 * between its threads. */
struct report {
    struct counts counts;
    uint64_t time, instructions, skipped;
};

/* Whose turn it is. */
struct turn {
    bool idle;         /* All CPUs wait. */
    bool draining;     /* A CPU waits for the main loop. */
    bool is_free;      /* A CPU is ready, but none has its turn. */
    bool is_main_loop; /* No CPU runs, or the one that does waits for the main loop. */
};

extern struct parameters parameters;
extern struct counts counts;
extern struct report last;
extern struct cpu cpus[MAX_CPUS];
extern unsigned cpu_count;
/* The CPU of this thread, and whether this thread is the main loop. */
extern __thread struct cpu *self;
extern __thread bool is_main_loop;
/* Wakes the main loop out of ppoll. */
extern int wake_fd;

/* The functions of the C library that clock_host.c replaces. */
extern int (*real_wait)(pthread_cond_t *, pthread_mutex_t *);
extern int (*real_signal)(pthread_cond_t *);
extern ssize_t (*real_write)(int, const void *, size_t);
/* Whether QEMU gets those of this object. */
bool is_preloaded(void);

_Noreturn void fail(const char *what);
/* Waits for up to a millisecond of the host, for tests: it must not change any result. */
void disturb(void);

/* Any thread. */
uint64_t now(const struct cpu *cpu);
uint64_t time_of_thread(void);
bool connect_channel(const char *path);
bool is_channel(int file);
/* Wakes CPUs that wait for a condition: all, or one. Returns whether there was one. */
bool wake_cpus(pthread_cond_t *condition, bool all);
struct turn read_turn(void);

/* The thread of a CPU. */
void start_cpu(struct cpu *cpu, uint64_t *counter);
int wait_as_cpu(struct cpu *cpu, pthread_cond_t *condition, pthread_mutex_t *mutex);
void sync_time(struct cpu *cpu);
void request_main_loop(struct cpu *cpu);
void begin_access(struct cpu *cpu);
void end_access(struct cpu *cpu);

/* The main loop. */
void begin_main_wait(void);
void end_main_wait(void);
bool has_news(const struct turn *turn);
void set_next_timer(uint64_t span);
void pass_turn(const struct turn *turn);
uint64_t run_idle(bool *interrupted);
void end_poll(void);
