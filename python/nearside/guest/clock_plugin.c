/* SPDX-License-Identifier: Apache-2.0 */

/* The TCG plugin: counts instructions, stops CPUs, and reads the time stamp counter. See clock.c. */

#define _GNU_SOURCE
#include "clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <ucontext.h>

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
void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t, cpu_callback *, void *);
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

EXPORTED int qemu_plugin_version = API;

/* Below this address the firmware runs: it reads the time stamp counter by a trap. */
static const uint64_t FIRMWARE_END = 0x100000;

static struct qemu_plugin_scoreboard *board;

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
    uint64_t ns = now(self) / 1000;
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
    self->skipped += parameters.tsc_ps;
    counts.tsc++;
    uint64_t ns = now(self) / 1000, pc;
    set_register(rax, buffer, (uint32_t)ns);
    set_register(rdx, buffer, ns >> 32);
    g_byte_array_set_size(buffer, 0);
    qemu_plugin_read_register(rip, buffer);
    memcpy(&pc, buffer->data, sizeof pc);
    qemu_plugin_set_pc(pc + (((uint64_t)data - pc) & 0xfff));
}

/* ---- the plugin ---- */

/* In the thread of a CPU, before it executes anything. */
static void on_start_of_cpu(unsigned index, void *data) {
    (void)data;
    start_cpu(cpus + index, qemu_plugin_scoreboard_find(board, index));
    struct sigaction action = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
}

static void on_limit(unsigned index, void *data) {
    (void)data;
    sync_time(cpus + index);
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
    qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, on_limit, NO_REGS, COND_GE, count, LIMIT, NULL);
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

#define PARAMETERS "channel=PATH, qemu=VERSION|any, insn_ps=N, tsc_ps=N, quantum_ps=N, interactive=0|1 and jitter=N"

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

EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv) {
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
            if (!parse(value, 1, 1000000, &parameters.insn_ps)) fail("insn_ps: allowed are 1 to 1000000");
        } else if (!strcmp(argv[n], "tsc_ps")) {
            if (!parse(value, 0, 1000000, &parameters.tsc_ps)) fail("tsc_ps: allowed are 0 to 1000000");
        } else if (!strcmp(argv[n], "quantum_ps")) {
            if (!parse(value, 1000, 1000000000, &parameters.quantum_ps)) fail("quantum_ps: allowed are 1000 to 1000000000");
        } else if (!strcmp(argv[n], "jitter")) {
            if (!parse(value, 0, UINT32_MAX, &parameters.jitter)) fail("jitter: allowed are 0 to 4294967295");
        } else if (!strcmp(argv[n], "interactive")) {
            if (!parse(value, 0, 1, &parameters.interactive)) fail("interactive: allowed are 0 and 1");
        } else {
            fail("unknown parameter: allowed are " PARAMETERS);
        }
    }
    if (info->version.cur < API || info->version.min > API) fail("this QEMU has another plugin interface than 7");
    if (!version) fail("the allowed version of QEMU is missing: qemu=VERSION|any");
    if (strcmp(version, "any")) check_version(version);
    if (!info->system_emulation || strcmp(info->target_name, "x86_64")) fail("only qemu-system-x86_64 is supported");
    if (info->system.max_vcpus > MAX_CPUS) fail("at most 8 CPUs are supported: -smp 8");
    cpu_count = info->system.max_vcpus;
    if (!is_preloaded()) fail("the object has to be preloaded, too (ld.so --preload)");
    if (!path || !connect_channel(path)) fail("the channel for time can't be opened: channel=PATH");
    is_main_loop = true;
    wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    board = qemu_plugin_scoreboard_new(sizeof(uint64_t));
    qemu_plugin_register_vcpu_init_cb(id, on_start_of_cpu, NULL);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation, NULL);
    qemu_plugin_register_atexit_cb(id, on_exit_of_qemu, NULL);
    return 0;
}

