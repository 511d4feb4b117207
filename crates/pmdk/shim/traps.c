// SPDX-License-Identifier: Apache-2.0

/* Handles traps in place of instructions: records the effect, then executes the instruction here,
 * or a copy of it elsewhere.
 *
 * A write-back has no effect that a program could see, so it is not executed: the processor need
 * not support it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "abi.h"
#include "device.h"
#include "instructions.h"
#include "memory.h"
#include "process.h"
#include "traps.h"

static bool on;
/* The program's action for SIGTRAP. */
static struct sigaction programs;
/* A function that the linker calls after files have been loaded or unloaded, for debuggers. */
static uint8_t *loaded_hook;
static uint8_t hook_byte;

enum { ENDBR64_BYTES = 4, RET = 0xC3, ENDBR64 = 0xF3 };
enum { GET_FS = 0x1003, GET_GS = 0x1004 };

static uintptr_t register_of(const greg_t *registers, uint8_t number) {
    static const int ORDER[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                  REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    return number == NO_REGISTER ? 0 : (uintptr_t)registers[ORDER[number % 16]];
}

static void *operand(const struct module *module, const struct instruction *one, const greg_t *registers) {
    uintptr_t at = one->displacement + register_of(registers, one->base) + register_of(registers, one->index) * one->scale;
    if (one->relative_at != 0 && one->base == NO_REGISTER) at += module->base;
    if (one->is_32_bit) at = (uint32_t)at;
    /* One of the instructions for whole lines ignores the offset in the line; the others require an
     * aligned address. */
    if (one->effect == STREAM_BYTES && one->bytes == 64) at -= at % 64;
    uintptr_t segment = 0;
    if (one->segment != 0) syscall(SYS_arch_prctl, one->segment == 1 ? GET_FS : GET_GS, &segment);
    return (void *)(at + segment);
}

/* Executes a trapped instruction; returns where the program continues. */
static uintptr_t carry_out(const struct module *module, const struct instruction *one, const greg_t *registers) {
    uintptr_t next = module->base + one->address + one->length;
    switch (one->effect) {
    case FLUSH_LINE: ns_memory_flushed(operand(module, one, registers)); return next;
    case FLUSH_LINE_IN_ORDER: ns_memory_flushed_in_order(operand(module, one, registers)); return next;
    case FENCE_ALL:
        ns_memory_fenced();
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        return next;
    /* Requested write-backs are complete when other threads see the store. */
    case LOCKED: ns_memory_fenced(); break;
    default: break;
    }
    return (uintptr_t)ns_instruction_slot(module, one);
}

/* Forwards a trap of the program. */
static void forward(int number, siginfo_t *info, void *context) {
    struct sigaction action = programs;
    if (action.sa_handler == SIG_IGN && info->si_code <= 0) return;
    if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) {
        if (action.sa_flags & SA_SIGINFO)
            action.sa_sigaction(number, info, context);
        else
            action.sa_handler(number);
        return;
    }
    struct sigaction plain = {.sa_handler = SIG_DFL};
    REAL(sigaction)(SIGTRAP, &plain, NULL);
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGTRAP);
}

static void trapped(int number, siginfo_t *info, void *context) {
    int why = errno;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    uintptr_t at = (uintptr_t)registers[REG_RIP] - 1;
    const struct module *module;
    const struct instruction *one = NULL;
    if (info->si_code <= 0) {
        forward(number, info, context); /* sent by a process */
    } else if ((one = ns_instruction_at(at, &module)) != NULL) {
        registers[REG_RIP] = (greg_t)carry_out(module, one, registers);
    } else if ((one = ns_instruction_copied(at, &module)) != NULL) {
        ns_memory_streamed(operand(module, one, registers), one->bytes);
        registers[REG_RIP] = (greg_t)(module->base + one->address + one->length);
    } else if (loaded_hook != NULL && at == (uintptr_t)loaded_hook) {
        if (_r_debug.r_state == RT_CONSISTENT) ns_instructions_scan();
        if (hook_byte == RET) {
            registers[REG_RIP] = *(const greg_t *)registers[REG_RSP];
            registers[REG_RSP] += (greg_t)sizeof(greg_t);
        } else {
            registers[REG_RIP] = (greg_t)(at + ENDBR64_BYTES);
        }
    } else {
        forward(number, info, context);
    }
    errno = why;
}

/* The linker calls an empty function after files have been loaded. */
static void hook_loading(void) {
    static const uint8_t MARK[ENDBR64_BYTES] = {ENDBR64, 0x0F, 0x1E, 0xFA};
    uint8_t *at = (uint8_t *)_r_debug.r_brk;
    if (at == NULL || (at[0] != RET && memcmp(at, MARK, sizeof MARK) != 0)) {
        ns_log("files that are loaded later (dlopen) are not looked at");
        return;
    }
    void *page = (void *)((uintptr_t)at / PAGE * PAGE);
    if (mprotect(page, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return;
    hook_byte = *at;
    loaded_hook = at;
    *at = TRAP;
    mprotect(page, PAGE, PROT_READ | PROT_EXEC);
}

__attribute__((constructor)) static void start(void) {
    if (!ns_instructions_wanted()) return;
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART};
    sigset_t traps;
    sigemptyset(&traps);
    sigaddset(&traps, SIGTRAP);
    REAL(sigaction)(SIGTRAP, &action, &programs);
    REAL(pthread_sigmask)(SIG_UNBLOCK, &traps, NULL);
    on = true;
    ns_instructions_scan();
    hook_loading();
}

/* ---- SIGTRAP is never blocked: a trap in a thread that blocks it ends the program ---- */

EXPORT int sigaction(int number, const struct sigaction *new, struct sigaction *old) {
    if (!on) return REAL(sigaction)(number, new, old);
    if (number == SIGTRAP) {
        struct sigaction before = programs;
        if (new != NULL) programs = *new;
        if (old != NULL) *old = before;
        return 0;
    }
    if (new == NULL) return REAL(sigaction)(number, new, old);
    struct sigaction without = *new;
    sigdelset(&without.sa_mask, SIGTRAP);
    return REAL(sigaction)(number, &without, old);
}

EXPORT sighandler_t signal(int number, sighandler_t handler) {
    if (!on || number != SIGTRAP) return REAL(signal)(number, handler);
    sighandler_t before = programs.sa_handler;
    programs = (struct sigaction){.sa_handler = handler, .sa_flags = SA_RESTART};
    return before;
}

/* The set of signals to block, without this one. */
static const sigset_t *without_traps(int how, const sigset_t *set, sigset_t *room) {
    if (!on || set == NULL || how == SIG_UNBLOCK) return set;
    *room = *set;
    sigdelset(room, SIGTRAP);
    return room;
}

EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *old) {
    sigset_t room;
    return REAL(pthread_sigmask)(how, without_traps(how, set, &room), old);
}

EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *old) {
    sigset_t room;
    return REAL(sigprocmask)(how, without_traps(how, set, &room), old);
}
