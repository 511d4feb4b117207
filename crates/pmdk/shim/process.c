// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "process.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi.h"
#include "device.h"
#include "memory.h"
#include "persist_points.h"
#include "pools.h"

struct locks ns_locks = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

__thread unsigned ns_busy;

void *ns_grow(void *table, size_t *room, size_t item) {
    size_t old = *room, larger = old == 0 ? 64 : 2 * old;
    void *grown = old == 0 ? ns_mmap(NULL, larger * item, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                           : ns_mremap(table, old * item, larger * item, MREMAP_MAYMOVE, NULL);
    if (grown == MAP_FAILED) {
        ns_log("no memory to follow what is mapped");
        abort();
    }
    *room = larger;
    return grown;
}

bool ns_lock_at_end(pthread_mutex_t *lock) {
    bool interrupts = ns_busy > 0;
    ns_begin();
    if ((interrupts ? pthread_mutex_trylock(lock) : pthread_mutex_lock(lock)) == 0) return true;
    ns_end();
    return false;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool followed;
/* A child with shared memory, as of `vfork`, is another process. */
static pid_t follower;
/* The locked file that marks this process as the followed one. */
static int claim = -1;

bool ns_followed(void) {
    return __atomic_load_n(&followed, __ATOMIC_RELAXED) && follower == getpid();
}

static void decide_following(void) {
    const char *path = getenv("NEARSIDE_PMDK_REPORT");
    if (path == NULL) path = getenv("NEARSIDE_PMDK_TRACE");
    if (path != NULL) {
        claim = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (claim < 0) ns_log("%s can't be written", path);
        if (claim >= 0 && flock(claim, LOCK_EX | LOCK_NB) != 0) {
            close(claim);
            claim = -1;
            return;
        }
    }
    ns_memory_follow();
    ns_persist_points_follow();
    follower = getpid();
    __atomic_store_n(&followed, true, __ATOMIC_RELAXED);
}

void ns_follow(void) {
    pthread_once(&once, decide_following);
}

/* A child has the memory of its parent, but one thread only: other threads may have held locks. */
static void in_child(void) {
    pthread_mutex_t *locks[] = {&ns_locks.pools, &ns_locks.crash, &ns_locks.memory, &ns_locks.device};
    for (size_t n = 0; n < sizeof locks / sizeof *locks; n++) pthread_mutex_init(locks[n], NULL);
    /* The device belongs to the parent: the server has to detect the parent's end although the
     * child goes on. */
    ns_device_leave();
    if (!followed) return;
    followed = false;
    ns_memory_forget();
    ns_persist_points_forget();
    if (claim >= 0) close(claim);
    claim = -1;
}

__attribute__((constructor)) static void configure(void) {
    pthread_atfork(ns_pools_before_fork, NULL, in_child);
}
