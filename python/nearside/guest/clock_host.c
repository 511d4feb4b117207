/* SPDX-License-Identifier: Apache-2.0 */

/* The host as QEMU sees it: functions of the C library in simulated time. See clock.c. */

#define _GNU_SOURCE
#include "clock.h"

#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Of CLOCK_MONOTONIC and of CLOCK_REALTIME (2026-01-01) at time zero, in ns and s. */
static const uint64_t START_NS = 1000000000000;
static const time_t EPOCH = 1767225600;

int (*real_wait)(pthread_cond_t *, pthread_mutex_t *);
int (*real_signal)(pthread_cond_t *);
ssize_t (*real_write)(int, const void *, size_t);
static int (*real_ppoll)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
static int (*real_broadcast)(pthread_cond_t *);
static ssize_t (*real_sendmsg)(int, const struct msghdr *, int);

__attribute__((constructor)) static void find_real_functions(void) {
    if (real_ppoll) return;
    real_wait = dlsym(RTLD_NEXT, "pthread_cond_wait");
    real_broadcast = dlsym(RTLD_NEXT, "pthread_cond_broadcast");
    real_signal = dlsym(RTLD_NEXT, "pthread_cond_signal");
    real_sendmsg = dlsym(RTLD_NEXT, "sendmsg");
    real_write = dlsym(RTLD_NEXT, "write");
    real_ppoll = dlsym(RTLD_NEXT, "ppoll");
}

EXPORTED int clock_gettime(clockid_t id, struct timespec *time) {
    uint64_t ns = time_of_thread() / 1000;
    switch (id) {
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
        ns += START_NS;
        time->tv_sec = ns / 1000000000;
        break;
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
        time->tv_sec = EPOCH + ns / 1000000000;
        break;
    default:
        return syscall(SYS_clock_gettime, id, time);
    }
    time->tv_nsec = ns % 1000000000;
    return 0;
}

EXPORTED int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    (void)zone;
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    time->tv_sec = found.tv_sec;
    time->tv_usec = found.tv_nsec / 1000;
    return 0;
}

EXPORTED int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex) {
    find_real_functions();
    if (self) return wait_as_cpu(self, condition, mutex);
    if (!is_main_loop) return real_wait(condition, mutex);
    begin_main_wait();
    int result = real_wait(condition, mutex);
    end_main_wait();
    return result;
}

EXPORTED int pthread_cond_broadcast(pthread_cond_t *condition) {
    find_real_functions();
    wake_cpus(condition, true);
    return real_broadcast(condition);
}

EXPORTED int pthread_cond_signal(pthread_cond_t *condition) {
    find_real_functions();
    return wake_cpus(condition, false) ? 0 : real_signal(condition);
}

/* Nothing times out in simulated time. A CPU waits here for the reply to an access. */
EXPORTED int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *time) {
    (void)time;
    find_real_functions();
    int result = real_wait(condition, mutex);
    if (self) end_access(self);
    return result;
}

/* A CPU wakes the main loop by an eventfd, for example to set a timer. */
EXPORTED ssize_t write(int file, const void *bytes, size_t length) {
    find_real_functions();
    if (self && length == 8 && file != wake_fd && !is_channel(file)) request_main_loop(self);
    return real_write(file, bytes, length);
}

/* A message to a device carries the CPU's time. */
EXPORTED ssize_t sendmsg(int file, const struct msghdr *message, int flags) {
    find_real_functions();
    if (self) begin_access(self);
    return real_sendmsg(file, message, flags);
}

/* Waits until one of `files` is ready, or it is the main loop's turn. */
static int wait_for_files(struct pollfd *files, nfds_t count, const sigset_t *mask) {
    struct pollfd all[count + 1];
    bool watches;
    int ready;
    memcpy(all + 1, files, count * sizeof *files);
    all[0] = (struct pollfd){wake_fd, POLLIN, 0};
    do {
        /* While a CPU has its turn, what it does for the main loop waits. */
        watches = parameters.interactive || read_turn().is_main_loop;
        ready = real_ppoll(all, watches ? count + 1 : 1, NULL, mask);
        if (ready < 0) return ready;
        uint64_t woken;
        if (all[0].revents && read(wake_fd, &woken, sizeof woken) > 0) ready--;
    } while (!watches && !read_turn().is_main_loop);
    for (nfds_t n = 0; n < count; n++) files[n].revents = watches ? all[n + 1].revents : 0;
    return ready;
}

static int poll_main_loop(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask) {
    static const struct timespec at_once;
    uint64_t span = timeout ? (timeout->tv_sec * 1000000000ull + timeout->tv_nsec) * 1000 : NEVER;
    if (span > NEVER) span = NEVER;
    for (;;) {
        /* Read first, so that what was written before them is seen. */
        struct turn turn = read_turn();
        disturb();
        int ready = real_ppoll(files, count, &at_once, mask);
        if (ready || !span) return ready;
        if (has_news(&turn)) return 0;
        disturb();
        set_next_timer(span);
        pass_turn(&turn);
        if (turn.idle && read_turn().idle) {
            /* No thread runs, so the time may advance. */
            bool interrupted;
            uint64_t ns = run_idle(&interrupted) / 1000;
            if (parameters.interactive && ns > 1000000) {
                /* While a person types, an idle guest is not ahead of the wall clock. */
                struct timespec wait = {ns / 1000000000, ns % 1000000000};
                ready = real_ppoll(files, count, &wait, mask);
                if (ready) return ready;
            }
            if (interrupted) continue;
            if (span < NEVER) return 0;
        }
        disturb();
        ready = wait_for_files(files, count, mask);
        if (ready) return ready;
    }
}

static int poll_files(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask) {
    find_real_functions();
    if (!is_main_loop) return real_ppoll(files, count, timeout, mask);
    int ready = poll_main_loop(files, count, timeout, mask);
    end_poll();
    return ready;
}

/* By its other name, which no other object defines. */
EXPORTED int ppoll(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *)
    __attribute__((alias("poll_files")));

bool is_preloaded(void) { return dlsym(RTLD_DEFAULT, "ppoll") == (void *)poll_files; }
