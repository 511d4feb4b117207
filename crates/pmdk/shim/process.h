// SPDX-License-Identifier: Apache-2.0

/* The shim within a process: its locks, and whether the process is followed. */
#ifndef NEARSIDE_PMDK_PROCESS_H
#define NEARSIDE_PMDK_PROCESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* A holder of one of these locks acquires only later ones. No memory is allocated with the last
 * three: an allocator may unmap memory, which acquires them, while it holds its locks. */
struct locks {
    /* Open pools, and their places on the device. */
    pthread_mutex_t pools;
    /* Durable content; also held while the power must not fail. */
    pthread_mutex_t crash;
    /* Mappings of files, and the trace. */
    pthread_mutex_t memory;
    /* A message or a command to the device. */
    pthread_mutex_t device;
};
extern struct locks ns_locks;

/* A signal handler may have interrupted this thread while it holds one of the last three locks, or
 * changes thread-local state. Calls of the handler are executed then, and not followed. */
extern __thread unsigned ns_busy __attribute__((tls_model("initial-exec")));

static inline void ns_begin(void) {
    ns_busy++;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void ns_end(void) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    ns_busy--;
}

static inline void ns_lock(pthread_mutex_t *lock) {
    ns_begin();
    pthread_mutex_lock(lock);
}

static inline void ns_unlock(pthread_mutex_t *lock) {
    pthread_mutex_unlock(lock);
    ns_end();
}

/* The same at the program's end; false if a signal handler that ends the program would wait for the
 * interrupted thread. */
bool ns_lock_at_end(pthread_mutex_t *lock);

enum { PAGE = 4096 };

static inline size_t ns_whole_pages(size_t bytes) {
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* Grows a table, with memory of no allocator: callable with any of the locks held. */
void *ns_grow(void *table, size_t *room, size_t item);

/* Children of a program, and the script that starts it, share its environment. One of these
 * processes is followed at a time: the first that maps a file, until it ends. Only its persist
 * points count, and only it writes trace and report. A forked child is not followed. */
bool ns_followed(void);

/* This process maps a file. */
void ns_follow(void);

#endif
