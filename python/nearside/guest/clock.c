/* SPDX-License-Identifier: Apache-2.0 */

/* Simulated time for an unmodified QEMU (TCG, no -icount) beside a server of Nearside: clock.c has
 * the time and who runs when, clock_host.c the host as QEMU sees it, clock_plugin.c the TCG plugin.
 *
 * The object is loaded twice. ld.so preloads it, so that the clock of the host, the time stamp
 * counter and the waits of QEMU are those of this object. QEMU loads it as a TCG plugin, so that it
 * counts instructions and stops a CPU at a given time.
 *
 * Each CPU has a time: instructions * insn_ps + skipped. Skipped time is that in which the CPU
 * halts, waits for a register, or reads the time stamp counter. All times are in ps, from the start
 * of QEMU.
 *
 * Each CPU has a thread in QEMU (thread=multi). The main loop delivers interrupts and timers. Only
 * one of these threads has its turn at a time, or results would depend on the machine:
 *
 * - A CPU runs to the limit: where the devices or a timer can next do something, and at most a
 *   quantum beyond the last common time. Then the CPU has its turn whose time is the earliest. A CPU
 *   that halts or waits for another thread gives its turn away.
 * - Where all CPUs have come to the limit, the first in time lets the devices run to that time. If
 *   an interrupt or a timer is due, it waits until the main loop has nothing left to do
 *   (drain_main_loop). So it does at its next block of code, too, after it has written to one of
 *   QEMU's eventfds, for example to set a timer.
 * - Where all CPUs wait, the main loop lets the devices run to their first interrupt, or to QEMU's
 *   next timer (run_idle).
 * - A CPU that is woken continues at the time of the one that woke it, unless it is ahead.
 * - During a register access the CPU's thread waits for the server and keeps its turn. The reply is
 *   in the page of the channel: how long the access took, and when the devices can next do
 *   something. A device that is already ahead of that CPU has the access at the device's time.
 *
 * QEMU's exclusive sections need no more: who waits for them gives its turn away, and the others
 * leave their code at the next block, as QEMU has kicked them. Other threads of QEMU (RCU) wake
 * CPUs, too. Such a CPU executes nothing and halts again, so that counts as no time.
 *
 * It relies on how QEMU uses ppoll, condition variables, sendmsg and eventfds, which is no
 * interface. So it refuses another version than the kit's, unless its parameter is qemu=any;
 * `nearside guest check --qemu PATH` tries another one.
 * The channel to the server is described in crates/vfio_user/src/channel.rs.
 */

#define _GNU_SOURCE
#include "clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* The page of the channel. */
struct page {
    uint64_t now, next, stall;
};

struct request {
    uint64_t until, idle;
};

struct reply {
    uint64_t reached, interrupts, next;
};

struct parameters parameters = {.insn_ps = 250, .tsc_ps = 10000, .quantum_ps = 1000000};
struct counts counts;
struct report last;
struct cpu cpus[MAX_CPUS];
unsigned cpu_count;
__thread struct cpu *self;
__thread bool is_main_loop;
int wake_fd = -1;

static int channel = -1;
static struct page *page;
/* The CPU whose turn it is; NULL: the main loop's. */
static struct cpu *running;
/* When the devices can next do something, when QEMU's next timer is due, and the time up to which
 * one CPU may run while others wait for their turn. */
static uint64_t next_event = NEVER, next_timer = NEVER, horizon = NEVER;
/* The time that other threads than the CPUs' see, and that of the devices. */
static uint64_t published, device_time;
/* The time that the main loop sees. It changes only where the main loop has polled: the time until
 * its next timer, which it computes before it polls, is from here. */
static uint64_t main_time;
/* A CPU has executed code. */
static bool started;
/* The main loop has seen the clock since all CPUs wait; a timer is due. */
static bool clock_seen, timer_due;
/* A CPU waits until the main loop has nothing to do; the main loop waits for a CPU. */
static bool draining, main_waits;
/* Something may have woken the main loop: it runs first. */
static bool drain_first = true;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t drained = PTHREAD_COND_INITIALIZER;

void fail(const char *what) {
    fprintf(stderr, "nearside clock: %s\n", what);
    _exit(3);
}

void disturb(void) {
    static __thread unsigned seed;
    if (!parameters.jitter) return;
    if (!seed) seed = parameters.jitter + (unsigned)syscall(SYS_gettid);
    if (rand_r(&seed) % 4 == 0) usleep(rand_r(&seed) % 1000);
}

/* ---- time ---- */

static uint64_t instructions(const struct cpu *cpu) { return cpu->offset + *cpu->counter; }

uint64_t now(const struct cpu *cpu) { return instructions(cpu) * parameters.insn_ps + cpu->skipped; }

uint64_t time_of_thread(void) {
    if (self) return now(self);
    return is_main_loop ? main_time : published;
}

static void publish(uint64_t time) {
    if (time > published) published = time;
}

/* The time at which a CPU has to stop, as something may happen. */
static uint64_t limit(void) {
    uint64_t at = next_event < next_timer ? next_event : next_timer;
    return at < horizon ? at : horizon;
}

/* Sets where a CPU stops. Called by its thread, when it is its turn. */
static void set_stop(struct cpu *cpu) {
    uint64_t at = limit(), time = now(cpu), count = instructions(cpu), left = 0, insn_ps = parameters.insn_ps;
    if (!drain_first && at > time) left = at >= NEVER ? LIMIT : (at - time + insn_ps - 1) / insn_ps;
    if (left > LIMIT) left = LIMIT;
    *cpu->counter = LIMIT - left;
    cpu->offset = count - *cpu->counter;
}

/* ---- the channel to the server ---- */

bool connect_channel(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) return false;
    strcpy(address.sun_path, path);
    channel = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (channel < 0 || connect(channel, (struct sockaddr *)&address, sizeof address)) return false;
    char greeting[8], space[CMSG_SPACE(sizeof(int))];
    struct iovec part = {greeting, sizeof greeting};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    if (recvmsg(channel, &message, MSG_CMSG_CLOEXEC) != sizeof greeting) return false;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (memcmp(greeting, "NSTIME01", sizeof greeting) || !header || header->cmsg_type != SCM_RIGHTS) return false;
    int file;
    memcpy(&file, CMSG_DATA(header), sizeof file);
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return page != MAP_FAILED;
}

bool is_channel(int file) { return file == channel; }

static void transfer(void *bytes, size_t length, bool out) {
    for (char *at = bytes; length > 0;) {
        ssize_t done = out ? real_write(channel, at, length) : read(channel, at, length);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) fail("the server of the device has ended");
        at += done;
        length -= done;
    }
}

/* Lets the devices run until `until`; if all CPUs are idle, at most to their first interrupt. */
static struct reply advance(uint64_t until, bool idle) {
    struct request request = {until, idle};
    struct reply reply;
    transfer(&request, sizeof request, true);
    transfer(&reply, sizeof reply, false);
    next_event = reply.next;
    if (reply.reached < NEVER && reply.reached > device_time) device_time = reply.reached;
    return reply;
}

static uint64_t take_stall(void) { return __atomic_exchange_n(&page->stall, 0, __ATOMIC_SEQ_CST); }

/* A message to a device carries the CPU's time. */
void begin_access(struct cpu *cpu) {
    uint64_t time = now(cpu);
    counts.accesses++;
    /* The devices may already be where a CPU is that is ahead. */
    if (time > device_time) device_time = time;
    STORE(page->now, device_time);
    last.counts = counts;
    last.time = time;
    last.instructions = 0;
    for (struct cpu *other = cpus; other < cpus + cpu_count; other++)
        if (other->counter) last.instructions += instructions(other);
    last.skipped = time - last.instructions * parameters.insn_ps / cpu_count;
}

void end_access(struct cpu *cpu) {
    uint64_t stall = take_stall(), next = LOAD(page->next);
    cpu->skipped += stall;
    device_time += stall;
    if (next < next_event) next_event = next;
    set_stop(cpu);
}

/* ---- turns ---- */

static void wake_main_loop(void) {
    uint64_t one = 1;
    if (real_write(wake_fd, &one, sizeof one) != sizeof one) fail("an eventfd can't be written");
}

/* CPU thread: waits until the main loop has handled all that is pending. */
static void drain_main_loop(void) {
    counts.drains++;
    pthread_mutex_lock(&lock);
    STORE(draining, !main_waits);
    wake_main_loop();
    disturb();
    while (LOAD(draining)) real_wait(&drained, &lock);
    pthread_mutex_unlock(&lock);
}

/* The time at which a CPU continues. */
static uint64_t resume_time(const struct cpu *cpu) {
    uint64_t time = now(cpu);
    return cpu->condition && cpu->woken < NEVER && cpu->woken > time ? cpu->woken : time;
}

/* The CPU with the earliest time of those that can run, or NULL. `count` is without those that only
 * other threads have woken. */
static struct cpu *first_ready(unsigned *count) {
    struct cpu *first = NULL;
    *count = 0;
    for (struct cpu *cpu = cpus; cpu < cpus + cpu_count; cpu++) {
        if (cpu->state != READY) continue;
        if (!cpu->condition || cpu->woken < NEVER) ++*count;
        if (!first || resume_time(cpu) < resume_time(first)) first = cpu;
    }
    return first;
}

/* Lets the next CPU run, if one can. With the lock. */
static void give_turn(void) {
    unsigned count;
    STORE(running, first_ready(&count));
    if (running) real_signal(&running->turn);
}

/* With the lock. */
static void wait_for_turn(struct cpu *cpu) {
    disturb();
    while (running != cpu) real_wait(&cpu->turn, &lock);
}

/* Time goes on from where the first of the CPUs began to wait. With the lock. */
static void begin_idle(void) {
    uint64_t time = NEVER;
    for (struct cpu *cpu = cpus; cpu < cpus + cpu_count; cpu++) {
        if (cpu->ran && now(cpu) < time) time = now(cpu);
        cpu->ran = false;
    }
    if (time < NEVER) publish(time);
    clock_seen = 0;
    wake_main_loop();
}

/* CPU thread: waits for a condition, and then for its turn. */
int wait_as_cpu(struct cpu *cpu, pthread_cond_t *condition, pthread_mutex_t *mutex) {
    pthread_mutex_lock(&lock);
    if (instructions(cpu) != cpu->count_before)
        cpu->ran = true;
    else /* It only did something for another thread of QEMU, which takes no time. */
        cpu->skipped = cpu->skipped_before;
    cpu->state = WAITING;
    cpu->condition = condition;
    cpu->woken = NEVER;
    pthread_mutex_unlock(mutex);
    if (running == cpu) {
        give_turn();
        if (!running) begin_idle();
    }
    wait_for_turn(cpu);
    cpu->count_before = instructions(cpu);
    cpu->skipped_before = cpu->skipped;
    cpu->skipped += resume_time(cpu) - now(cpu);
    cpu->condition = NULL;
    set_stop(cpu);
    pthread_mutex_unlock(&lock);
    return pthread_mutex_lock(mutex);
}

bool wake_cpus(pthread_cond_t *condition, bool all) {
    bool found = false;
    pthread_mutex_lock(&lock);
    for (struct cpu *cpu = cpus; cpu < cpus + cpu_count && (all || !found); cpu++) {
        if (!cpu->condition || cpu->condition != condition) continue;
        found = true;
        cpu->state = READY;
        /* A CPU that another thread has woken halts again. */
        if (!self && !(is_main_loop && started)) continue;
        uint64_t time = self ? now(self) : published;
        if (time < cpu->woken) cpu->woken = time;
        unsigned count;
        first_ready(&count);
        if (count > 1 && time + parameters.quantum_ps < horizon) horizon = time + parameters.quantum_ps;
    }
    if (found && self && running == self) set_stop(self);
    if (found && !running && !is_main_loop) {
        if (main_waits)
            give_turn();
        else
            wake_main_loop();
    }
    pthread_mutex_unlock(&lock);
    return found;
}

/* CPU thread: all CPUs that can run have come to the limit, and this is the first in time. */
static void pass_limit(struct cpu *cpu) {
    uint64_t time = now(cpu);
    struct reply reply = {0};
    if (time > published) counts.stops++;
    publish(time);
    disturb();
    if (time >= next_event) reply = advance(time, false);
    if (time >= next_timer) {
        counts.timers++;
        timer_due = true;
    }
    if (reply.interrupts || timer_due) drain_main_loop();
    pthread_mutex_lock(&lock);
    unsigned count;
    first_ready(&count);
    horizon = count > 1 ? time + parameters.quantum_ps : NEVER;
    for (struct cpu *other = cpus; other < cpus + cpu_count; other++) other->ran = false;
    pthread_mutex_unlock(&lock);
}

/* The first CPU begins when the devices are set up. */
static void start_time(struct cpu *cpu) {
    advance(0, false);
    cpu->skipped = device_time + take_stall();
    publish(cpu->skipped);
    STORE(started, true);
}

/* CPU thread: lets CPUs with an earlier time run first. Returns whether it has waited for them. */
static bool let_others_run(struct cpu *cpu) {
    pthread_mutex_lock(&lock);
    bool first = cpu->state == ABSENT;
    if (first) {
        cpu->state = READY;
        if (!running) wake_main_loop();
    } else {
        give_turn();
    }
    bool waits = running != cpu;
    wait_for_turn(cpu);
    pthread_mutex_unlock(&lock);
    return waits;
}

void start_cpu(struct cpu *cpu, uint64_t *counter) {
    cpu->counter = counter;
    *counter = LIMIT;
    cpu->offset = -LIMIT;
    pthread_cond_init(&cpu->turn, NULL);
    self = cpu;
}

/* The CPU has come to the time at which it was to stop. */
void sync_time(struct cpu *cpu) {
    bool passed = false;
    for (;;) {
        if (let_others_run(cpu)) passed = false;
        if (!started) start_time(cpu);
        if (drain_first) {
            drain_first = false;
            drain_main_loop();
        } else if (passed || now(cpu) < limit()) {
            break;
        } else {
            pass_limit(cpu);
            passed = true;
        }
    }
    cpu->ran = true;
    set_stop(cpu);
}

/* The CPU wakes the main loop, and continues when the main loop has handled it. */
void request_main_loop(struct cpu *cpu) {
    if (cpu != running || !started) return;
    if (!drain_first) publish(now(cpu));
    drain_first = true;
    set_stop(cpu);
}

/* ---- the main loop ---- */

static void end_draining(void) {
    STORE(draining, false);
    real_signal(&drained);
}

struct turn read_turn(void) {
    unsigned count;
    pthread_mutex_lock(&lock);
    bool ready = first_ready(&count);
    struct turn turn = {
        .idle = started && !running && !ready,
        .draining = draining,
        .is_free = !running && ready,
        .is_main_loop = !running || draining,
    };
    pthread_mutex_unlock(&lock);
    return turn;
}

/* The main loop waits for a CPU, which must not wait for the main loop then. */
void begin_main_wait(void) {
    pthread_mutex_lock(&lock);
    main_waits = true;
    if (draining)
        end_draining();
    else if (!running)
        give_turn();
    pthread_mutex_unlock(&lock);
}

void end_main_wait(void) { main_waits = false; }

void end_poll(void) { main_time = published; }

/* Whether a timer is due, or the time has changed by which QEMU sets its timers. */
bool has_news(const struct turn *turn) {
    if (timer_due) {
        timer_due = false;
        return true;
    }
    if (!turn->idle || clock_seen) return false;
    clock_seen = true;
    return true;
}

/* `span`: the time that the main loop would wait. */
void set_next_timer(uint64_t span) { next_timer = span >= NEVER ? NEVER : main_time + span; }

/* The main loop has nothing to do: a CPU has its turn again. */
void pass_turn(const struct turn *turn) {
    pthread_mutex_lock(&lock);
    if (turn->draining)
        end_draining();
    else if (turn->is_free && !running)
        give_turn();
    pthread_mutex_unlock(&lock);
}

/* Lets time pass while all CPUs wait. Returns how much. */
uint64_t run_idle(bool *interrupted) {
    counts.halts++;
    struct reply reply = advance(next_timer, true);
    uint64_t before = published;
    if (reply.reached < NEVER) publish(reply.reached);
    *interrupted = reply.interrupts > 0;
    return published - before;
}
