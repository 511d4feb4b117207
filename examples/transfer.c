// SPDX-License-Identifier: Apache-2.0

/* Transfers between two accounts in persistent memory, while the power fails. `offload`: the device
 * keeps the undo log. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nearside_pm.h"

#define POOL 0
#define BYTES (8u << 20)
#define BESIDE (16u << 20)

static nspm_system power;
static nspm_options options;

static void must(int code) {
    if (code != NSPM_OK) {
        fprintf(stderr, "%s\n", nspm_message());
        exit(1);
    }
}

/* The accounts are 64 bytes apart, in two cache lines, which become persistent one by one. */
static int amounts(nspm_thread thread, uint64_t *at, uint64_t *one, uint64_t *other) {
    int code;
    if ((code = nspm_root(thread, at)) != NSPM_OK) return code;
    if ((code = nspm_read(thread, *at, one, 8)) != NSPM_OK) return code;
    return nspm_read(thread, *at + 64, other, 8);
}

/* Transfers an amount, atomically. */
static int transfer(nspm_thread thread, uint64_t amount) {
    uint64_t at, one, other;
    int code;
    if ((code = amounts(thread, &at, &one, &other)) != NSPM_OK) return code;
    one -= amount;
    other += amount;
    if ((code = nspm_begin(thread)) != NSPM_OK) return code;
    /* Both lines are logged at once: the CPU waits for its log once, and the device gets one
     * command. */
    if ((code = nspm_add_range(thread, at, 72)) != NSPM_OK) return code;
    if ((code = nspm_write(thread, at, &one, 8)) != NSPM_OK) return code;
    if ((code = nspm_write(thread, at + 64, &other, 8)) != NSPM_OK) return code;
    return nspm_commit(thread);
}

/* Switches power on, opens and recovers the pool, and reads the accounts. */
static nspm_pool recovered(uint64_t *one, uint64_t *other) {
    nspm_pool pool;
    nspm_thread thread;
    uint64_t at;
    must(nspm_power_on(power));
    must(nspm_pool_open(power, POOL, "accounts", &options, &pool));
    must(nspm_thread_open(pool, 0, &thread));
    must(amounts(thread, &at, one, other));
    must(nspm_thread_close(thread));
    return pool;
}

static void print(const char *what, uint64_t one, uint64_t other) {
    printf("%s%" PRIu64 " + %" PRIu64 " = %" PRIu64 "\n", what, one, other, one + other);
}

int main(int argc, char **argv) {
    options.offload = argc > 1 && strcmp(argv[1], "offload") == 0;
    must(nspm_system_open("nearpm", "fast", "cpu.profile = \"nearpm\"", &power));

    /* Two stores, each persistent when it returns; the power fails between them. */
    uint64_t one = 1000, other = 1000, less = 600, at;
    must(nspm_store(power, BESIDE, &one, 8));
    must(nspm_store(power, BESIDE + 64, &other, 8));
    must(nspm_store(power, BESIDE, &less, 8));
    must(nspm_power_cut(power, NSPM_CUT_ALL, NULL));
    must(nspm_power_on(power));
    must(nspm_load(power, BESIDE, &one, 8));
    must(nspm_load(power, BESIDE + 64, &other, 8));
    print("two stores:    ", one, other);

    /* The same in a transaction. */
    nspm_layout layout = {.name = "accounts"};
    nspm_pool pool;
    nspm_thread thread;
    one = other = 1000;
    must(nspm_pool_create(power, POOL, BYTES, &layout, &options, &pool));
    must(nspm_thread_open(pool, 0, &thread));
    must(nspm_begin(thread));
    must(nspm_alloc(thread, 128, &at));
    must(nspm_write(thread, at, &one, 8));
    must(nspm_write(thread, at + 64, &other, 8));
    must(nspm_set_root(thread, at));
    must(nspm_commit(thread));
    must(nspm_begin(thread));
    must(nspm_write(thread, at, &less, 8));
    must(nspm_power_cut(power, NSPM_CUT_ALL, NULL));
    if (nspm_commit(thread) != NSPM_POWER) return 1;
    printf("a transaction: %s\n", nspm_message());
    must(nspm_thread_close(thread));
    must(nspm_pool_close(pool));
    pool = recovered(&one, &other);
    print("recovered:     ", one, other);

    /* The power fails at arbitrary times in further transfers. */
    uint64_t done = 0;
    for (uint64_t moment = 0; moment < 20; moment++) {
        must(nspm_power_cut_after(power, 1000 * (1000 + 777 * moment)));
        int code = nspm_thread_open(pool, 0, &thread);
        bool opened = code == NSPM_OK;
        while (code == NSPM_OK)
            if ((code = transfer(thread, 1)) == NSPM_OK) done++;
        if (code != NSPM_POWER) must(code);
        if (opened) must(nspm_thread_close(thread));
        must(nspm_pool_close(pool));
        pool = recovered(&one, &other);
        /* A transfer that had not returned may be committed, too. */
        if (one + other != 2000 || (1000 - one != done && 1000 - one != done + 1)) return 1;
        done = 1000 - one;
    }
    print("20 losses:     ", one, other);
    must(nspm_system_close(power));
    return 0;
}
