// SPDX-License-Identifier: Apache-2.0

/* The engine's commands by the paper's names: an undo log, a redo log and a shadow copy, each
 * followed by a power loss.
 *
 *     cc engine.c -lnearside_pm && ./a.out */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nearside_pm.h"

enum { POOL = 3, THREAD = 1, DATA = 0x10000, OTHER = 0x20000, SIZE = 256 };
static const uint64_t PLACE = 1 << 20;

static void must(int code, const char *what) {
    if (code != NSPM_OK) {
        fprintf(stderr, "%s: error %d: %s\n", what, code, nspm_message());
        exit(1);
    }
}

static void fill(nspm_system system, uint64_t at, int value) {
    char bytes[SIZE];
    memset(bytes, value, SIZE);
    must(nspm_store(system, PLACE + at, bytes, SIZE), "store");
}

static int holds(nspm_system system, uint64_t at, int value) {
    char bytes[SIZE], wanted[SIZE];
    memset(wanted, value, SIZE);
    must(nspm_load(system, PLACE + at, bytes, SIZE), "load");
    return memcmp(bytes, wanted, SIZE) == 0;
}

static uint64_t after_power_loss(nspm_system system) {
    uint64_t records;
    must(nspm_power_cut(system, NSPM_CUT_ALL, NULL), "power");
    must(nspm_power_on(system), "power");
    must(NearPM_recover(system, POOL, THREAD, &records), "recover");
    return records;
}

static void expect(int so, const char *what) {
    printf("%s: %s\n", what, so ? "yes" : "NO");
    if (!so) exit(1);
}

int main(void) {
    nspm_system system;
    uint64_t record;
    must(NearPM_init_device("nearpm", &system), "device");
    must(NearPM_pool_map(system, POOL, PLACE, 1 << 20, 0x4000, 0x2000, 2, 1), "map");

    fill(system, DATA, 'a');
    must(NearPM_undolog_create(system, POOL, THREAD, DATA, SIZE, &record), "undo");
    fill(system, DATA, 'b');
    expect(after_power_loss(system) == 1 && holds(system, DATA, 'a'), "without a commit the old bytes are back");

    must(NearPM_undolog_create(system, POOL, THREAD, DATA, SIZE, &record), "undo");
    fill(system, DATA, 'c');
    must(NearPM_commit_log(system, POOL, THREAD), "commit");
    expect(after_power_loss(system) == 0 && holds(system, DATA, 'c'), "after a commit the new bytes stay");

    fill(system, OTHER, 'd');
    must(NearPM_redolog_create(system, POOL, THREAD, OTHER, SIZE, DATA, &record), "redo");
    expect(after_power_loss(system) == 0 && holds(system, DATA, 'c'), "a redo log without a commit does nothing");
    must(NearPM_redolog_create(system, POOL, THREAD, OTHER, SIZE, DATA, &record), "redo");
    must(NearPM_commit_redolog(system, POOL, THREAD), "commit");
    expect(after_power_loss(system) == 1 && holds(system, DATA, 'd'), "a committed one is applied");

    fill(system, OTHER, 'e');
    must(NearPM_redolog_create(system, POOL, THREAD, OTHER, SIZE, DATA, &record), "redo");
    must(NearPM_commit_redolog(system, POOL, THREAD), "commit");
    must(NearPM_applylog(system, POOL, THREAD, record, SIZE, DATA), "apply");
    must(NearPM_commit_log(system, POOL, THREAD), "commit");
    expect(holds(system, DATA, 'e'), "also without a loss of power");

    fill(system, DATA, 'f');
    must(NearPM_ckpoint_create(system, POOL, THREAD, DATA, 4096, &record), "checkpoint");
    fill(system, DATA, 'g');
    must(NearPM_abort_log(system, POOL, THREAD), "abort");
    expect(holds(system, DATA, 'f'), "an abort brings a checkpoint back");

    must(NearPM_shadowcpy(system, POOL, THREAD, DATA, SIZE, OTHER), "copy");
    expect(after_power_loss(system) == 0 && holds(system, OTHER, 'f'), "a shadow copy survives a loss of power");

    expect(NearPM_undolog_create(system, POOL, THREAD, 1 << 20, SIZE, NULL) == NSPM_REFUSED, "a range outside of the pool is refused");
    must(NearPM_pool_unmap(system, POOL), "unmap");
    return 0;
}
