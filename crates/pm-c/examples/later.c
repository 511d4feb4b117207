// SPDX-License-Identifier: Apache-2.0

/* Counts up in transactions that become durable later, and loses the power. */
#include <nearside_pm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int code) {
    if (code != NSPM_OK) {
        fprintf(stderr, "error %d: %s\n", code, nspm_message());
        exit(1);
    }
}

static nspm_thread own;

/* Callbacks may call the library. */
static void answer(uint64_t ticket, void *argument) {
    uint64_t durable, *answered = argument;
    check(nspm_durable(own, &durable));
    if (durable < ticket) exit(2);
    *answered = ticket;
}

static uint64_t count_up(nspm_thread thread, uint64_t at, uint64_t value) {
    uint64_t ticket;
    check(nspm_begin(thread));
    check(nspm_write(thread, at, &value, sizeof value));
    check(nspm_commit_later(thread, &ticket));
    return ticket;
}

int main(int count, char **arguments) {
    nspm_system system;
    nspm_pool pool;
    nspm_layout layout = {.name = "count", .mechanism = count > 2 ? (uint32_t)atoi(arguments[2]) : NSPM_UNDO};
    nspm_options options = {.offload = count > 1 && !strcmp(arguments[1], "offload"), .group_commit = 8};
    uint64_t at, first = 0, durable, ticket = 0, answered = 0, value = 0;
    check(nspm_system_open("nearpm", NULL, NULL, &system));
    check(nspm_pool_create(system, 0, 4 << 20, &layout, &options, &pool));
    check(nspm_thread_open(pool, 0, &own));
    check(nspm_begin(own));
    check(nspm_alloc(own, sizeof first, &at));
    check(nspm_write(own, at, &first, sizeof first));
    check(nspm_set_root(own, at));
    check(nspm_commit(own));
    check(nspm_durable(own, &first));

    /* The library waits with the eighth; the three after it are not durable. */
    for (uint64_t n = 1; n <= 11; n++) {
        ticket = count_up(own, at, n);
        check(nspm_when_durable(own, ticket, answer, &answered));
    }
    check(nspm_durable(own, &durable));
    printf("durable: %d of 11, answered: %d\n", (int)(durable - first), (int)(answered - first));
    check(nspm_wait(own, ticket));
    printf("answered after a wait: %d\n", (int)(answered - first));
    if (nspm_wait(own, ticket + 1) != NSPM_INVALID) return 3;
    printf("%s\n", nspm_message());
    count_up(own, at, 12);
    check(nspm_sync(own));
    count_up(own, at, 13);

    check(nspm_power_cut(system, NSPM_CUT_ALL, NULL));
    check(nspm_power_on(system));
    check(nspm_pool_open(system, 0, layout.name, &options, &pool));
    check(nspm_thread_open(pool, 0, &own));
    check(nspm_root(own, &at));
    check(nspm_read(own, at, &value, sizeof value));
    if (value != 12 && value != 13) return 4;
    printf("recovered: at least 12 of 13\n");
    return 0;
}
