// SPDX-License-Identifier: Apache-2.0

/* Instructions that flush, fence and store past the cache in cases that are hard to follow. Each case
 * has to behave as without the shim. With `lost` the counting number is stored without a flush, so it
 * is lost.
 *
 *     corners run|check FILE WAY [lost] [LIBRARY] */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <immintrin.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inline.h"

enum { BYTES = 1 << 16, NUMBER = 42 };

struct memory {
    uint64_t number, rest[7], done, more[7];
    _Alignas(64) uint64_t area[64];
};

static struct memory *at;
static const char *way;
static int lost, failed;
static uint64_t in_program[8] __attribute__((aligned(64)));
static __thread uint64_t of_thread;

static int is(const char *name) {
    return strcmp(way, name) == 0;
}

static void expect(int good, const char *what) {
    if (good) return;
    printf("%s\n", what);
    failed = 1;
}

static void persist_number(void) {
    at->number = NUMBER;
    if (!lost) clwb(&at->number);
    sfence();
}

static void done(void) {
    at->done = 1;
    clwb(&at->done);
    sfence();
}

static void *blocks_all(void *unused) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    persist_number();
    sigprocmask(SIG_BLOCK, &all, NULL);
    done();
    return unused;
}

static volatile sig_atomic_t got;

static void handler(int number) {
    got = number;
    persist_number();
}

static void install(int number) {
    struct sigaction action = {.sa_handler = handler}, old;
    sigfillset(&action.sa_mask);
    expect(sigaction(number, &action, NULL) == 0, "sigaction fails");
    expect(sigaction(number, NULL, &old) == 0 && old.sa_handler == handler, "sigaction tells another handler");
}

/* Registers and flags are unchanged. */
static void keep_registers(void) {
    uint64_t sum = 0, flags;
    __asm__ volatile(
        "mov $1, %%rbx; mov $2, %%r12; mov $3, %%r13; pxor %%xmm7, %%xmm7; stc\n"
        "clwb (%2); sfence; lock orq $0, %3; clflushopt (%2); mfence; movnti %%r13, (%2); sfence\n"
        "pushfq; pop %1; movq %%xmm7, %0; add %%rbx, %0; add %%r12, %0; add %%r13, %0"
        : "=&r"(sum), "=&r"(flags)
        : "r"(&at->area[0]), "m"(in_program[0])
        : "rbx", "r12", "r13", "xmm7", "memory", "cc");
    expect(sum == 6, "registers have changed");
    expect(at->area[0] == 3, "a store has not been done");
    (void)flags;
}

/* All forms of operands, of ordinary and of persistent memory. */
static void operands(void) {
    uint64_t *area = at->area;
    for (uint64_t n = 0; n < 8; n++) __asm__ volatile("movnti %1, (%0,%2,8)" : : "r"(area), "r"(n + 1), "r"(n) : "memory");
    __asm__ volatile("movnti %1, 64(%0)" : : "r"(area), "r"((uint64_t)9) : "memory");
    __asm__ volatile("movnti %k1, 72(%0)" : : "r"(area), "r"((uint64_t)10) : "memory");
    __asm__ volatile("movnti %1, %0" : "=m"(in_program[1]) : "r"((uint64_t)11) : "memory");
    __asm__ volatile("lock addq %1, %0" : "+m"(in_program[1]) : "r"((uint64_t)1) : "memory", "cc");
    __asm__ volatile("lock addq %1, %0" : "+m"(of_thread) : "r"((uint64_t)5) : "memory", "cc");
    uint64_t value = 7;
    __asm__ volatile("xchg %0, %1" : "+r"(value), "+m"(in_program[2]) : : "memory");
    expect(value == 0 && in_program[2] == 7, "xchg");
    expect(in_program[1] == 12 && of_thread == 5, "memory of the program's own");
    __m128i two = _mm_set_epi64x(21, 20);
    _mm_stream_si128((__m128i *)&area[16], two);
    _mm_stream_pd((double *)&area[18], _mm_castsi128_pd(two));
    __asm__ volatile("mov %0, %%rdi; maskmovdqu %1, %2" : : "r"(&area[20]), "x"(_mm_set1_epi8(-1)), "x"(two) : "rdi", "memory");
    if (__builtin_cpu_supports("avx")) __asm__ volatile("vmovdqa %1, %%ymm1; vmovntdq %%ymm1, %0" : "=m"(*(char(*)[32])&area[24]) : "m"(*(char(*)[32])area) : "xmm1", "memory");
    if (__builtin_cpu_supports("avx512f")) __asm__ volatile("vmovdqa64 %1, %%zmm17; vmovntdq %%zmm17, %0" : "=m"(*(char(*)[64])&area[32]) : "m"(*(char(*)[64])area) : "memory");
    sfence();
    persist_number();
}

static int check_operands(void) {
    const uint64_t *area = at->area;
    for (uint64_t n = 0; n < 9; n++)
        if (area[n] != n + 1) return 0;
    for (int n = 16; n < 22; n++)
        if (area[n] != 20u + n % 2) return 0;
    if (__builtin_cpu_supports("avx") && memcmp(&area[24], area, 32) != 0) return 0;
    if (__builtin_cpu_supports("avx512f") && memcmp(&area[32], area, 64) != 0) return 0;
    return (uint32_t)area[9] == 10;
}

enum { THREADS = 4, STEPS = 300 };

static void *counts(void *number) {
    uint64_t *word = &at->area[8 * (uintptr_t)number];
    for (uint64_t step = 1; step <= STEPS; step++) {
        movnti(word, step);
        clwb(word);
        __atomic_fetch_add(&in_program[4], 1, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

static pthread_mutex_t own_lock = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void) {
    pthread_mutex_lock(&own_lock);
}

static void after_fork(void) {
    pthread_mutex_unlock(&own_lock);
}

/* A half of it, then all, which is unmapped and mapped again. */
static void make_writable(void) {
    expect(mprotect(at, BYTES / 2, PROT_READ | PROT_WRITE) == 0, "mprotect of a half");
    expect(mprotect(at, BYTES, PROT_READ | PROT_WRITE) == 0, "mprotect");
    at->area[0] = 1;
    expect(mprotect(at, BYTES, PROT_READ) == 0, "mprotect, to be read");
    expect(mprotect(at, BYTES, PROT_READ | PROT_WRITE) == 0, "mprotect once more");
}

static void run(const char *library) {
    pthread_t thread;
    if (is("plain")) {
        persist_number();
    } else if (is("thread")) {
        pthread_create(&thread, NULL, blocks_all, NULL);
        pthread_join(thread, NULL);
        return;
    } else if (is("handler")) {
        install(SIGUSR1);
        raise(SIGUSR1);
    } else if (is("trap")) {
        install(SIGTRAP);
        __asm__ volatile("int3");
        expect(got == SIGTRAP, "a trap of the program's own");
        got = 0;
        raise(SIGTRAP);
        expect(got == SIGTRAP, "a signal of the program's own");
        signal(SIGTRAP, SIG_IGN);
        raise(SIGTRAP);
    } else if (is("threads")) {
        pthread_t threads[THREADS];
        for (uintptr_t n = 0; n < THREADS; n++) pthread_create(&threads[n], NULL, counts, (void *)n);
        for (int n = 0; n < THREADS; n++) pthread_join(threads[n], NULL);
        expect(in_program[4] == THREADS * STEPS, "a locked instruction was not one");
        persist_number();
    } else if (is("atfork")) {
        /* The power fails where this thread has the lock that a fork needs. */
        pthread_atfork(before_fork, after_fork, after_fork);
        pthread_mutex_lock(&own_lock);
        persist_number();
        done();
        pthread_mutex_unlock(&own_lock);
        return;
    } else if (is("protected")) {
        make_writable();
        persist_number();
    } else if (is("registers")) {
        keep_registers();
        persist_number();
    } else if (is("operands")) {
        operands();
    } else if (is("nowhere")) {
        /* The processor need not have the instruction: it is not executed. */
        if (getenv("NEARSIDE_PMDK_CODE") != NULL) __asm__ volatile("clwb 8");
        persist_number();
    } else if (is("fork")) {
        pid_t child = fork();
        if (child == 0) {
            clwb(&at->area[0]);
            sfence();
            _exit(in_program[3] == 0 ? 7 : 8);
        }
        int status;
        waitpid(child, &status, 0);
        expect(WIFEXITED(status) && WEXITSTATUS(status) == 7, "a child");
        persist_number();
    } else if (is("library")) {
        for (int n = 0; n < 3; n++) {
            void *handle = dlopen(library, RTLD_NOW);
            if (handle == NULL) exit((fprintf(stderr, "%s\n", dlerror()), 1));
            void (*store)(uint64_t *, uint64_t, int);
            *(void **)&store = dlsym(handle, "store_and_flush");
            store(&at->number, n < 2 ? 1 : NUMBER, !lost);
            dlclose(handle);
        }
    }
    done();
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    way = argv[3];
    lost = argc > 4 && strcmp(argv[4], "lost") == 0;
    int runs = strcmp(argv[1], "run") == 0;
    int file = open(argv[2], O_RDWR | O_CREAT, 0600);
    if (file < 0 || (runs && ftruncate(file, BYTES) != 0)) return perror(argv[2]), 1;
    int protection = !runs ? PROT_READ : is("protected") ? PROT_NONE : PROT_READ | PROT_WRITE;
    at = mmap(NULL, BYTES, protection, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) return perror(argv[2]), 1;
    if (runs) return run(argc > 5 ? argv[5] : NULL), failed;
    if (at->done && at->number != NUMBER) return puts("done, and not there"), 1;
    if (at->done && is("operands") && !check_operands()) return puts("what was stored past the cache is not there"), 1;
    return 0;
}
