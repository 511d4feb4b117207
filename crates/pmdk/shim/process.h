/* The shim within a process: its locks, and whether it is followed. */
#ifndef NEARSIDE_PMDK_PROCESS_H
#define NEARSIDE_PMDK_PROCESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* Who holds one of these locks asks only for those below it. With the last three nothing is allocated: an allocator unmaps memory with
 * locks of its own held, and asks for these. */
struct locks {
    /* Which pools are open, and their places on the device. */
    pthread_mutex_t pools;
    /* What is durable; also held where the power must not fail. */
    pthread_mutex_t crash;
    /* Which memory is a file's, and the trace. */
    pthread_mutex_t memory;
    /* A message to the device, or a command. */
    pthread_mutex_t device;
};
extern struct locks ns_locks;

/* A signal's handler may have interrupted this thread where it has one of the last three locks, or changes what is its own: what the handler
 * calls is done then, and not followed. */
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

/* The same at the program's end; false if a signal's handler that ends it would wait for the thread that it has interrupted. */
bool ns_lock_at_end(pthread_mutex_t *lock);

enum { PAGE = 4096 };

static inline size_t ns_whole_pages(size_t bytes) {
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* A table with more room than it had, of memory that no allocator has: that may be asked for with any of the locks held. */
void *ns_grow(void *table, size_t *room, size_t item);

/* Children of a program, and the script that starts it, have its environment, too. Of all these one process at a time is followed: the
 * first that maps a file, until it ends. Only its moments count, only it writes trace and report. A child that it forks is not. */
bool ns_followed(void);

/* This process maps a file. */
void ns_follow(void);

#endif
