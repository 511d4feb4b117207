/* SPDX-License-Identifier: Apache-2.0 */

/* Simulated time for an unmodified QEMU (TCG, one CPU, no -icount) beside a server of Nearside.
 *
 * The object is loaded twice. ld.so preloads it, so that the clock of the host, the time stamp
 * counter and the waits of QEMU are those below. QEMU loads it as a TCG plugin, so that it counts
 * instructions and stops the CPU at a given time.
 *
 * Time = instructions * insn_ps + skipped. Skipped time is that in which the CPU halts, waits for a
 * register, or reads the time stamp counter. All times are in ps, from the start of QEMU.
 *
 * Two threads of QEMU matter. The CPU thread runs the guest. The main loop delivers interrupts and
 * timers. Only one of them may run at a time, or results would depend on the machine:
 *
 * - A running CPU stops where the devices or a timer can next do something (sync_time). It lets the
 *   devices run to that time. If an interrupt or a timer is due, it waits until the main loop has
 *   nothing left to do (drain_main_loop).
 * - Where the CPU halts, the main loop lets the devices run to their first interrupt, or to QEMU's
 *   next timer (ppoll).
 * - During a register access the CPU thread waits for the server. The reply is in the page of the
 *   channel: how long the access took, and when the devices can next do something.
 *
 * It relies on how QEMU uses ppoll, condition variables, sendmsg and eventfds, which is no
 * interface. So it refuses another version than the kit's, unless its parameter is qemu=any;
 * `nearside guest check --qemu PATH` tries another one.
 * The channel to the server is described in crates/vfio_user/src/channel.rs.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

/* ---- the plugin interface of QEMU, version 7, as far as it is used ---- */

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_scoreboard;
typedef struct {
    struct qemu_plugin_scoreboard *score;
    size_t offset;
} qemu_plugin_u64;
typedef struct {
    const char *target_name;
    struct {
        int min, cur;
    } version;
    bool system_emulation;
    struct {
        int smp_vcpus, max_vcpus;
    } system;
} qemu_info_t;
struct array {
    uint8_t *data;
    unsigned len;
};
struct reg {
    void *handle;
    const char *name, *feature;
    bool is_readonly;
};
enum { API = 7, COND_GE = 7, INLINE_ADD = 0, NO_REGS = 0, RW_REGS = 2, RW_REGS_PC = 3 };
typedef void tb_callback(struct qemu_plugin_tb *, void *);
typedef void cpu_callback(unsigned, void *);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, tb_callback *, void *);
void qemu_plugin_register_vcpu_tb_exec_cond_cb(struct qemu_plugin_tb *, cpu_callback *, int, int, qemu_plugin_u64,
                                               uint64_t, void *);
void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(struct qemu_plugin_insn *, int, qemu_plugin_u64, uint64_t);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, cpu_callback *, int, void *);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(void *), void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *, void *, size_t);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t);
void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *, unsigned);
struct array *qemu_plugin_get_registers(void);
bool qemu_plugin_read_register(void *, struct array *);
bool qemu_plugin_write_register(void *, struct array *);
void qemu_plugin_set_pc(uint64_t);
struct array *g_byte_array_new(void);
struct array *g_byte_array_set_size(struct array *, unsigned);

int qemu_plugin_version = API;

/* ---- state ---- */

#define LOAD(x) __atomic_load_n(&(x), __ATOMIC_SEQ_CST)
#define STORE(x, value) __atomic_store_n(&(x), value, __ATOMIC_SEQ_CST)

static const uint64_t NEVER = (uint64_t)1 << 62;
/* The CPU stops once its counter reaches this. */
static const uint64_t LIMIT = (uint64_t)1 << 62;
/* Of CLOCK_MONOTONIC and of CLOCK_REALTIME (2026-01-01) at time zero, in ns and s. */
static const uint64_t START_NS = 1000000000000;
static const time_t EPOCH = 1767225600;
/* Below this address the firmware runs: it reads the time stamp counter by a trap. */
static const uint64_t FIRMWARE_END = 0x100000;

/* The page of the channel. */
struct page {
    uint64_t now, next, stall;
};

#define PARAMETERS "channel=PATH, qemu=VERSION|any, insn_ps=N, tsc_ps=N, interactive=0|1 and jitter=N"

/* Parameters of the plugin. */
static uint64_t insn_ps = 250, tsc_ps = 10000, interactive, jitter;

static int channel = -1;
static struct page *page;
static struct qemu_plugin_scoreboard *board;
/* The CPU's counter, and what is added to it: instructions = offset + *counter. */
static volatile uint64_t *counter;
static uint64_t offset, skipped;
/* When the devices can next do something, when QEMU's next timer is due, and the time that other
 * threads than the CPU's see. */
static uint64_t next_event = NEVER, next_timer = NEVER, published;
/* The time that the main loop sees. It changes only where the main loop has polled: the time until
 * its next timer, which it computes before it polls, is from here. */
static uint64_t main_time;

/* Wakes the main loop out of ppoll. */
static int wake_fd = -1;
static bool armed;
/* The CPU halts; the main loop has seen the clock since; a timer is due. */
static int halted, clock_seen, timer_due;
/* The CPU waits until the main loop has nothing to do; the main loop waits for the CPU. */
static int draining, main_waits;
/* Something may have woken the main loop: it runs first. */
static int drain_first;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t drained = PTHREAD_COND_INITIALIZER, *halt_condition;
static __thread bool is_cpu;

static struct counts {
    uint64_t stops, timers, halts, accesses, drains, tsc;
} counts;
/* As of the last access to a device. What comes after it, the way to the end of QEMU, is a race between its threads. */
static struct {
    struct counts counts;
    uint64_t time, instructions, skipped;
} last;

static int (*real_ppoll)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
static int (*real_wait)(pthread_cond_t *, pthread_mutex_t *);
static int (*real_broadcast)(pthread_cond_t *);
static int (*real_signal)(pthread_cond_t *);
static ssize_t (*real_sendmsg)(int, const struct msghdr *, int);
static ssize_t (*real_write)(int, const void *, size_t);

__attribute__((constructor)) static void find_real_functions(void) {
    if (real_ppoll) return;
    real_wait = dlsym(RTLD_NEXT, "pthread_cond_wait");
    real_broadcast = dlsym(RTLD_NEXT, "pthread_cond_broadcast");
    real_signal = dlsym(RTLD_NEXT, "pthread_cond_signal");
    real_sendmsg = dlsym(RTLD_NEXT, "sendmsg");
    real_write = dlsym(RTLD_NEXT, "write");
    real_ppoll = dlsym(RTLD_NEXT, "ppoll");
}

static void fail(const char *what) {
    fprintf(stderr, "nearside clock: %s\n", what);
    _exit(3);
}

/* Waits for up to a millisecond of the host, for tests: it must not change any result. */
static void disturb(void) {
    static __thread unsigned seed;
    if (!jitter) return;
    if (!seed) seed = jitter + (unsigned)syscall(SYS_gettid);
    if (rand_r(&seed) % 4 == 0) usleep(rand_r(&seed) % 1000);
}

/* ---- time ---- */

static uint64_t instructions(void) { return counter ? offset + *counter : 0; }

static uint64_t now(void) { return instructions() * insn_ps + skipped; }

/* Sets where the CPU stops: at the next time at which anything can happen. Called by the CPU
 * thread, or while it waits. */
static void set_stop(void) {
    uint64_t at = next_event < next_timer ? next_event : next_timer;
    uint64_t time = now(), count = instructions(), left = 0;
    if (!drain_first && at > time) left = at >= NEVER ? LIMIT : (at - time + insn_ps - 1) / insn_ps;
    if (left > LIMIT) left = LIMIT;
    *counter = LIMIT - left;
    offset = count - *counter;
}

struct request {
    uint64_t until, idle;
};

struct reply {
    uint64_t reached, interrupts, next;
};

static void transfer(void *bytes, size_t length, bool out) {
    for (char *at = bytes; length > 0;) {
        ssize_t done = out ? real_write(channel, at, length) : read(channel, at, length);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) fail("the server of the device has ended");
        at += done;
        length -= done;
    }
}

/* Lets the devices run until `until`; if the CPU is idle, at most to their first interrupt. */
static struct reply advance(uint64_t until, bool idle) {
    struct request request = {until, idle};
    struct reply reply;
    transfer(&request, sizeof request, true);
    transfer(&reply, sizeof reply, false);
    next_event = reply.next;
    if (reply.reached < NEVER) {
        uint64_t time = now();
        if (reply.reached > time) skipped += reply.reached - time;
    }
    return reply;
}

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

static void end_draining(void) {
    pthread_mutex_lock(&lock);
    STORE(draining, 0);
    real_signal(&drained);
    pthread_mutex_unlock(&lock);
}

/* ---- the time stamp counter, in ns ---- */

/* QEMU reads the host's counter for the firmware. */
static void on_segv(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *code = (void *)regs[REG_RIP];
    if (code[0] != 0x0f || code[1] != 0x31) {
        signal(SIGSEGV, SIG_DFL);
        return;
    }
    uint64_t ns = now() / 1000;
    regs[REG_RAX] = (uint32_t)ns;
    regs[REG_RDX] = ns >> 32;
    regs[REG_RIP] += 2;
    counts.tsc++;
}

static void set_register(void *handle, struct array *buffer, uint64_t value) {
    g_byte_array_set_size(buffer, sizeof value);
    memcpy(buffer->data, &value, sizeof value);
    qemu_plugin_write_register(handle, buffer);
}

/* Performs RDTSC or RDTSCP in place of the instruction. `data` is the address after it at the time
 * of translation. A translation serves all addresses at which its page is mapped, so only the low
 * bits count. RDTSCP leaves RCX as it is. */
static void on_rdtsc(unsigned cpu, void *data) {
    static void *rax, *rdx, *rip;
    static struct array *buffer;
    (void)cpu;
    if (!counter) return;
    if (!buffer) {
        buffer = g_byte_array_new();
        struct array *all = qemu_plugin_get_registers();
        struct reg *regs = (struct reg *)all->data;
        for (unsigned n = 0; n < all->len; n++) {
            if (!strcmp(regs[n].name, "rax")) rax = regs[n].handle;
            if (!strcmp(regs[n].name, "rdx")) rdx = regs[n].handle;
            if (!strcmp(regs[n].name, "rip")) rip = regs[n].handle;
        }
        if (!rax || !rdx || !rip) fail("this QEMU has other names of registers");
    }
    skipped += tsc_ps;
    counts.tsc++;
    uint64_t ns = now() / 1000, pc;
    set_register(rax, buffer, (uint32_t)ns);
    set_register(rdx, buffer, ns >> 32);
    g_byte_array_set_size(buffer, 0);
    qemu_plugin_read_register(rip, buffer);
    memcpy(&pc, buffer->data, sizeof pc);
    qemu_plugin_set_pc(pc + (((uint64_t)data - pc) & 0xfff));
}

/* ---- the plugin ---- */

static void start_cpu(void) {
    counter = qemu_plugin_scoreboard_find(board, 0);
    offset = -*counter;
    is_cpu = true;
    struct sigaction action = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
    STORE(armed, true);
    drain_first = 1;
}

/* The CPU has come to the time at which it was to stop. */
static void sync_time(unsigned cpu, void *data) {
    (void)cpu, (void)data;
    counts.stops++;
    if (!counter) start_cpu();
    if (drain_first) {
        drain_main_loop();
        drain_first = 0;
    }
    disturb();
    struct reply reply = advance(now(), false);
    published = now();
    if (published >= next_timer) {
        counts.timers++;
        STORE(timer_due, 1);
    }
    if (reply.interrupts || timer_due) drain_main_loop();
    set_stop();
}

static bool is_rdtsc(struct qemu_plugin_insn *insn, size_t *length) {
    uint8_t code[3];
    *length = qemu_plugin_insn_data(insn, code, sizeof code);
    if (*length < 2 || code[0] != 0x0f) return false;
    return code[1] == 0x31 || (*length == 3 && code[1] == 0x01 && code[2] == 0xf9);
}

static void on_translation(struct qemu_plugin_tb *tb, void *data) {
    (void)data;
    qemu_plugin_u64 count = {board, 0};
    if (!counter) {
        uint64_t *first = qemu_plugin_scoreboard_find(board, 0);
        if (!*first) *first = LIMIT;
    }
    qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, sync_time, NO_REGS, COND_GE, count, LIMIT, NULL);
    for (size_t n = 0; n < qemu_plugin_tb_n_insns(tb); n++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, n);
        qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, INLINE_ADD, count, 1);
        size_t length;
        uint64_t at = qemu_plugin_insn_vaddr(insn);
        if (is_rdtsc(insn, &length) && at >= FIRMWARE_END)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, on_rdtsc, RW_REGS_PC, (void *)(at + length));
    }
}

static void on_exit_of_qemu(void *data) {
    (void)data;
    fprintf(stderr,
            "nearside clock: {\"ps\": %lu, \"instructions\": %lu, \"skipped_ps\": %lu, \"stops\": %lu, \"timers\": %lu, "
            "\"halts\": %lu, \"accesses\": %lu, \"drains\": %lu, \"rdtsc\": %lu}\n",
            last.time, last.instructions, last.skipped, last.counts.stops, last.counts.timers, last.counts.halts,
            last.counts.accesses, last.counts.drains, last.counts.tsc);
}

static bool connect_channel(const char *path) {
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

static bool parse(const char *text, uint64_t low, uint64_t high, uint64_t *value) {
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return !errno && end != text && !*end && *value >= low && *value <= high;
}

/* Refuses another version than `wanted`. The plugin interface gives none, so the function of the QMP
 * command query-version does: QMP's types are stable, and QEMU exports all its functions. */
static void check_version(const char *wanted) {
    struct {
        struct {
            int64_t major, minor, micro;
        } *qemu;
        char *package;
    } *found, *(*query)(void *) = dlsym(RTLD_DEFAULT, "qmp_query_version");
    char version[72] = "unknown", text[200];
    if (query && (found = query(NULL)))
        snprintf(version, sizeof version, "%ld.%ld.%ld", found->qemu->major, found->qemu->minor, found->qemu->micro);
    if (!strcmp(version, wanted)) return;
    snprintf(text, sizeof text, "this is QEMU %s: allowed is %.40s, or any with qemu=any", version, wanted);
    fail(text);
}

static int poll_files(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv) {
    const char *path = NULL, *version = NULL;
    for (int n = 0; n < argc; n++) {
        char *value = strchr(argv[n], '=');
        if (!value) fail("a parameter has no value: allowed are " PARAMETERS);
        *value++ = 0;
        if (!strcmp(argv[n], "channel")) {
            path = value;
        } else if (!strcmp(argv[n], "qemu")) {
            version = value;
        } else if (!strcmp(argv[n], "insn_ps")) {
            if (!parse(value, 1, 1000000, &insn_ps)) fail("insn_ps: allowed are 1 to 1000000");
        } else if (!strcmp(argv[n], "tsc_ps")) {
            if (!parse(value, 0, 1000000, &tsc_ps)) fail("tsc_ps: allowed are 0 to 1000000");
        } else if (!strcmp(argv[n], "jitter")) {
            if (!parse(value, 0, UINT32_MAX, &jitter)) fail("jitter: allowed are 0 to 4294967295");
        } else if (!strcmp(argv[n], "interactive")) {
            if (!parse(value, 0, 1, &interactive)) fail("interactive: allowed are 0 and 1");
        } else {
            fail("unknown parameter: allowed are " PARAMETERS);
        }
    }
    if (info->version.cur < API || info->version.min > API) fail("this QEMU has another plugin interface than 7");
    if (!version) fail("the allowed version of QEMU is missing: qemu=VERSION|any");
    if (strcmp(version, "any")) check_version(version);
    if (!info->system_emulation || strcmp(info->target_name, "x86_64")) fail("only qemu-system-x86_64 is supported");
    if (info->system.max_vcpus != 1) fail("only one CPU is supported: -smp 1");
    /* By its other name, which no other object defines. */
    if (dlsym(RTLD_DEFAULT, "ppoll") != (void *)poll_files) fail("the object has to be preloaded, too (ld.so --preload)");
    if (!path || !connect_channel(path)) fail("the channel for time can't be opened: channel=PATH");
    wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    board = qemu_plugin_scoreboard_new(sizeof(uint64_t));
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation, NULL);
    qemu_plugin_register_atexit_cb(id, on_exit_of_qemu, NULL);
    return 0;
}

/* ---- the host, as QEMU sees it ---- */

static bool is_main_loop(void) { return wake_fd >= 0 && getpid() == (pid_t)syscall(SYS_gettid); }

int clock_gettime(clockid_t id, struct timespec *time) {
    uint64_t ns = (is_cpu ? now() : is_main_loop() ? main_time : published) / 1000;
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

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    (void)zone;
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    time->tv_sec = found.tv_sec;
    time->tv_usec = found.tv_nsec / 1000;
    return 0;
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex) {
    find_real_functions();
    if (is_cpu) {
        /* The CPU thread waits only in HLT. */
        halt_condition = condition;
        published = now();
        clock_seen = 0;
        STORE(halted, 1);
        wake_main_loop();
        disturb();
        int result = real_wait(condition, mutex);
        STORE(halted, 0);
        /* The main loop first finishes what has woken the CPU. */
        drain_first = 1;
        set_stop();
        return result;
    }
    if (!is_main_loop()) return real_wait(condition, mutex);
    /* The main loop waits for the CPU, which must not wait for the main loop then. */
    pthread_mutex_lock(&lock);
    main_waits = 1;
    if (LOAD(draining)) {
        STORE(draining, 0);
        real_signal(&drained);
    }
    pthread_mutex_unlock(&lock);
    int result = real_wait(condition, mutex);
    main_waits = 0;
    return result;
}

int pthread_cond_broadcast(pthread_cond_t *condition) {
    find_real_functions();
    if (condition == halt_condition) STORE(halted, 0);
    return real_broadcast(condition);
}

int pthread_cond_signal(pthread_cond_t *condition) {
    find_real_functions();
    if (condition == halt_condition) STORE(halted, 0);
    return real_signal(condition);
}

/* Nothing times out in simulated time. The CPU thread waits here for the reply to an access. */
int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *limit) {
    (void)limit;
    find_real_functions();
    int result = real_wait(condition, mutex);
    if (is_cpu && page) {
        skipped += __atomic_exchange_n(&page->stall, 0, __ATOMIC_SEQ_CST);
        uint64_t next = LOAD(page->next);
        if (next < next_event) next_event = next;
        set_stop();
    }
    return result;
}

/* The CPU thread wakes the main loop by an eventfd, for example to set a timer. It continues when
 * that was handled. */
ssize_t write(int file, const void *bytes, size_t length) {
    find_real_functions();
    if (is_cpu && length == 8 && file != channel && file != wake_fd && armed) {
        if (!drain_first) published = now();
        drain_first = 1;
        set_stop();
    }
    return real_write(file, bytes, length);
}

/* A message to a device carries the CPU's time. */
ssize_t sendmsg(int file, const struct msghdr *message, int flags) {
    find_real_functions();
    if (is_cpu && page) {
        counts.accesses++;
        STORE(page->now, now());
        last.counts = counts;
        last.time = now(), last.instructions = instructions(), last.skipped = skipped;
    }
    return real_sendmsg(file, message, flags);
}

static int poll_main_loop(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask) {
    static const struct timespec at_once;
    uint64_t span = timeout ? (timeout->tv_sec * 1000000000ull + timeout->tv_nsec) * 1000 : NEVER;
    if (span > NEVER) span = NEVER;
    struct pollfd all[count + 1];
    for (;;) {
        /* Read first, so that what was written before them is seen. */
        bool was_halted = LOAD(halted), was_draining = LOAD(draining);
        disturb();
        int ready = real_ppoll(files, count, &at_once, mask);
        if (ready || !span) return ready;
        if (LOAD(timer_due)) {
            STORE(timer_due, 0);
            return 0;
        }
        if (was_halted && !clock_seen) {
            /* QEMU sets its timers by the present clock. */
            clock_seen = 1;
            return 0;
        }
        disturb();
        next_timer = span >= NEVER ? NEVER : main_time + span;
        if (was_draining) end_draining();
        if (was_halted && LOAD(halted)) {
            /* No thread runs, so the time may advance. */
            counts.halts++;
            struct reply reply = advance(next_timer, true);
            uint64_t passed = now() - published;
            published = now();
            if (interactive && passed > 1000000000 && reply.reached < NEVER) {
                /* While a person types, an idle guest is not ahead of the wall clock. */
                uint64_t ns = passed / 1000;
                struct timespec wait = {ns / 1000000000, ns % 1000000000};
                ready = real_ppoll(files, count, &wait, mask);
                if (ready) return ready;
            }
            if (reply.interrupts) continue;
            if (span < NEVER) return 0;
        }
        disturb();
        memcpy(all, files, count * sizeof *files);
        all[count] = (struct pollfd){wake_fd, POLLIN, 0};
        ready = real_ppoll(all, count + 1, NULL, mask);
        if (ready < 0) return ready;
        for (nfds_t n = 0; n < count; n++) files[n].revents = all[n].revents;
        if (all[count].revents) {
            uint64_t woken;
            if (read(wake_fd, &woken, sizeof woken) < 0) woken = 0;
            ready--;
        }
        if (ready) return ready;
    }
}

static int poll_files(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask) {
    find_real_functions();
    if (!is_main_loop()) return real_ppoll(files, count, timeout, mask);
    int ready = poll_main_loop(files, count, timeout, mask);
    main_time = published;
    return ready;
}

int ppoll(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *) __attribute__((alias("poll_files")));
