// SPDX-License-Identifier: Apache-2.0

/* Persistent memory on a simulated host in this process: systems, pools, transactions, power
 * losses. The README of the crate shows how to build a program.
 *
 * Every function returns a code, 0 for success. nspm_message() returns a one-line message with the
 * problem and the allowed values. Offsets and lengths are bytes, times are simulated picoseconds.
 * Handles are numbers that are never reused: a closed or unknown one is an error (NSPM_HANDLE). A
 * pointer must be valid for the number of bytes that the function names, or be NULL, which is an
 * error where a value is required. Calls may come from any thread; one call runs at a time. */
#ifndef NEARSIDE_PM_H
#define NEARSIDE_PM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum nspm_code {
    NSPM_OK = 0,
    NSPM_INVALID = 1,  /* an invalid argument or state, or NULL */
    NSPM_NO_POOL = 2,  /* no pool at this place, or another one than requested */
    NSPM_CORRUPT = 3,  /* a pool whose metadata are damaged */
    NSPM_FULL = 4,     /* no room: in the heap, in a log, among the threads */
    NSPM_REFUSED = 5,  /* the engine has refused a command */
    NSPM_ABORTED = 6,  /* the transaction was aborted: a nested one had failed */
    NSPM_POWER = 7,    /* the power has failed: now, or since the pool was opened */
    NSPM_HOST = 8,     /* an access of the host has failed */
    NSPM_HANDLE = 9,   /* no such system, pool or thread */
    NSPM_INTERNAL = 10 /* a fault of the library: this system can't be used any more */
};

/* The last error of the calling thread, "" without one. Valid until the next call of the thread. */
const char *nspm_message(void);

typedef struct { uint64_t id; } nspm_system;
typedef struct { uint64_t id; } nspm_pool;
typedef struct { uint64_t id; } nspm_thread;

/* ---- systems: a host with one device, or several ---- */

/* design: the name of a design, or the path of its file. model: "fast" or "rtl" (which compiles the
 * design first); NULL is "fast". values: TOML with further values of the design, such as
 * "cpu.profile = \"nearpm\"", or NULL. */
int nspm_system_open(const char *design, const char *model, const char *values, nspm_system *out);
enum nspm_synchronise {
    NSPM_BY_DEVICES = 0, /* by peers: the devices notify each other, and the host does not wait for that */
    NSPM_BY_HOST = 1     /* the host waits for the commit of each device, then notifies all: for comparison */
};
/* The same with 1, 2 or 4 devices, which each of the system's pools spans: stripes of 4 KiB rotate
 * over them. So each device has an equal share of a pool, a multiple of 4096, at the same place of
 * its window. synchronise: enum nspm_synchronise, how offloaded logs are deleted after all devices
 * have completed a transaction. Media in a file are for one device. */
int nspm_system_open_over(const char *design, const char *model, const char *values, uint32_t devices, uint32_t synchronise,
                          nspm_system *out);
/* Its pools and threads become void. The content of its media is lost, unless the design has a file
 * for them. With a file this is a power loss, as any other end of the process is: the next system
 * with that file opens and recovers the pools. */
int nspm_system_close(nspm_system system);
int nspm_now(nspm_system system, uint64_t *ps);
/* Bytes of each device's PM window for pools. */
int nspm_window_bytes(nspm_system system, uint64_t *bytes);
/* Accesses to the first device's window outside of pools, past the CPU's cache. A store returns
 * when it is persistent. At most 64 MiB at a time. */
int nspm_load(nspm_system system, uint64_t offset, void *out, size_t bytes);
int nspm_store(nspm_system system, uint64_t offset, const void *data, size_t bytes);

enum nspm_cut {
    NSPM_CUT_HOST = 0, /* the devices accept what was posted to them */
    NSPM_CUT_ALL = 1   /* posted accesses on their way are lost, too */
};
/* Cuts the power now, or reports a scheduled cut. lost: lines of stores that the host has lost; may
 * be NULL. */
int nspm_power_cut(nspm_system system, int cut, uint64_t *lost);
/* Schedules a power cut after this time, during whatever is under way then: calls end with
 * NSPM_POWER. */
int nspm_power_cut_after(nspm_system system, uint64_t ps);
/* Switches power on. Earlier pools and threads are void: close them, then open the pools again,
 * which recovers them. Any other use of them ends with NSPM_POWER. */
int nspm_power_on(nspm_system system);

/* ---- pools ---- */

enum nspm_mechanism { NSPM_UNDO = 0, NSPM_REDO = 1, NSPM_CHECKPOINT = 2, NSPM_SHADOW = 3 };
enum nspm_fence { NSPM_READ_BACK = 0, NSPM_POSTED = 1, NSPM_COMPLETION = 2 };

/* The layout of a pool. A number of 0 is the default, except for the mechanism. */
typedef struct {
    const char *name;     /* 1 to 47 bytes; a pool is opened with the same name */
    uint32_t mechanism;   /* enum nspm_mechanism */
    uint32_t threads;     /* 1 to 16, over several devices 1 to 8, if tracked 1; 4, or 1 */
    uint64_t log_bytes;   /* of each thread, a multiple of 4096; 65536 */
    uint64_t spare_pages; /* pages for copies, with NSPM_SHADOW; 64 */
    uint32_t tracked;     /* 1: the engine makes records without commands; on one device, not NSPM_REDO */
} nspm_layout;

/* The options of a pool's use. NULL, or all 0: by the CPU, with fences that read back. */
typedef struct {
    uint32_t offload;         /* 1: the devices' engines are the executor */
    uint32_t fence;           /* enum nspm_fence: what a fence waits for; over several devices NSPM_READ_BACK */
    uint32_t number;          /* of the pool on the engine, 0 to 15, the same at each opening */
    uint32_t engine_recovers; /* 1: the engine recovers its logs when the pool is opened; 0: the CPU */
    uint32_t group_commit;    /* nspm_commit_later: the commit that makes this number not durable waits; 0: only the program waits */
    uint32_t words;           /* 1: the engine of one device writes to host memory what is durable; nspm_durable then learns it without a load of the device */
} nspm_options;

/* Creates a pool at a place of the window, and opens it; the former content is lost. */
int nspm_pool_create(nspm_system system, uint64_t place, uint64_t bytes, const nspm_layout *layout, const nspm_options *options,
                     nspm_pool *out);
/* Opens a pool and recovers it: transactions that were under way are completed or undone. */
int nspm_pool_open(nspm_system system, uint64_t place, const char *name, const nspm_options *options, nspm_pool *out);
/* Compares the pool's metadata; NSPM_INVALID while a transaction is under way. objects: the number
 * of allocated objects; may be NULL. */
int nspm_pool_check(nspm_pool pool, uint64_t *objects);
/* Grows a pool to this size, a multiple of 4096. No thread may use it. Pools with NSPM_SHADOW keep
 * their size. */
int nspm_pool_resize(nspm_pool pool, uint64_t bytes);
/* Closes a pool. No thread may use it, unless the power has failed. */
int nspm_pool_close(nspm_pool pool);

/* ---- transactions ---- */

/* A thread with a private log, on a CPU of the host, 0 to 63. */
int nspm_thread_open(nspm_pool pool, uint32_t cpu, nspm_thread *out);
/* Closes a thread, aborts its transaction, and makes all others durable unless the power has failed. */
int nspm_thread_close(nspm_thread thread);
int nspm_begin(nspm_thread thread);
/* The whole transaction is durable when this returns NSPM_OK. After NSPM_POWER it is committed or
 * not; after any other error it is aborted. */
int nspm_commit(nspm_thread thread);
int nspm_abort(nspm_thread thread);
/* Commits; the transaction becomes durable later. ticket: its number. The transactions of a thread
 * become durable in their order: after a power loss a prefix of them is found, with all that were
 * known to be durable. A further thread is refused while any is not durable. Durable on return are
 * those of a pool over several devices, and those by the CPU while several threads use the pool. */
int nspm_commit_later(nspm_thread thread, uint64_t *ticket);
/* Waits until a transaction of the thread is durable, with all before it. */
int nspm_wait(nspm_thread thread, uint64_t ticket);
/* The same for all transactions of the thread so far. */
int nspm_sync(nspm_thread thread);
/* The last ticket that is known to be durable. Does not wait. */
int nspm_durable(nspm_thread thread, uint64_t *ticket);
/* Calls a function once, when a transaction is durable. The C thread whose call has learned it calls
 * the function before that call returns; the function may call the library. A durable ticket's
 * function is called at once. After a power loss it is never called. */
typedef void (*nspm_callback)(uint64_t ticket, void *argument);
int nspm_when_durable(nspm_thread thread, uint64_t ticket, nspm_callback callback, void *argument);
/* A nested transaction has failed: the commit aborts the transaction, and returns NSPM_ABORTED. */
int nspm_fail(nspm_thread thread);
/* Announces changes to a range, which is logged as a whole. */
int nspm_add_range(nspm_thread thread, uint64_t offset, uint64_t bytes);
int nspm_write(nspm_thread thread, uint64_t offset, const void *data, size_t bytes);
/* Reads bytes, with the stores of a transaction under way. */
int nspm_read(nspm_thread thread, uint64_t offset, void *out, size_t bytes);
/* Allocates an object; returns its offset in the pool. */
int nspm_alloc(nspm_thread thread, uint64_t bytes, uint64_t *offset);
/* Takes effect with the commit. */
int nspm_free(nspm_thread thread, uint64_t offset);
/* The offset of the root object; 0 without one. */
int nspm_root(nspm_thread thread, uint64_t *offset);
int nspm_set_root(nspm_thread thread, uint64_t offset);
/* Waits until the engine has done all work of this thread. An error if it has refused any of it. */
int nspm_finish(nspm_thread thread);

/* The counters of a thread since it was opened. */
typedef struct {
    uint64_t transactions, aborts, fences, lines, records, payload, commands, allocations;
    uint64_t time_ps;        /* within transactions */
    uint64_t consistency_ps; /* the part of it for crash consistency */
} nspm_counts;
int nspm_thread_counts(nspm_thread thread, nspm_counts *out);

/* ---- the engine's commands by the names of the NearPM paper (EuroSys 2023, table 2) ----
 *
 * Each function is one command of the engine, and returns when the command has ended. Pools here
 * are ranges of the window that NearPM_pool_map has mapped on the engine; addresses are offsets in
 * them. The paper's arguments come first, then those that it leaves open. A pool of
 * nspm_pool_create with offload = 1 uses its number on the engine exclusively: use another
 * number. */

/* Starts a system with a device that has the engine, on the fast model. */
int NearPM_init_device(const char *design, nspm_system *out);
/* logs: offset in the pool of one log per thread, of log_bytes each, which are emptied. generation:
 * of the logs, greater than that of any older one at this place; 1 at first. pool, threads (1 to
 * 16), generation and log_bytes (a multiple of 64) apart, all numbers are multiples of 4096. */
int NearPM_pool_map(nspm_system system, uint32_t pool, uint64_t place, uint64_t bytes, uint64_t logs, uint64_t log_bytes, uint32_t threads,
                    uint64_t generation);
int NearPM_pool_unmap(nspm_system system, uint32_t pool);
/* Records of old bytes, 1 to 65,536 (checkpoint: multiples of 4096). record: offset in the log; may
 * be NULL. */
int NearPM_undolog_create(nspm_system system, uint32_t pool, uint32_t thread, uint64_t old_data, uint64_t size, uint64_t *record);
int NearPM_ckpoint_create(nspm_system system, uint32_t pool, uint32_t thread, uint64_t old_data, uint64_t size, uint64_t *record);
/* A record of new bytes for the target. */
int NearPM_redolog_create(nspm_system system, uint32_t pool, uint32_t thread, uint64_t new_data, uint64_t size, uint64_t target,
                          uint64_t *record);
/* Commits the redo records. */
int NearPM_commit_redolog(nspm_system system, uint32_t pool, uint32_t thread);
/* Applies a redo record of a committed log. */
int NearPM_applylog(nspm_system system, uint32_t pool, uint32_t thread, uint64_t record, uint64_t size, uint64_t target);
/* Ends the transaction: the log's records are void. After NearPM_commit_redolog: for redo records
 * that were applied. */
int NearPM_commit_log(nspm_system system, uint32_t pool, uint32_t thread);
/* Writes undo records and checkpoints back, the newest first. */
int NearPM_abort_log(nspm_system system, uint32_t pool, uint32_t thread);
/* Undoes a log's transaction, or completes it if its redo log was committed. The engine keeps pools
 * and logs across a power loss, so nothing else is needed then. records: applied or written back;
 * may be NULL. */
int NearPM_recover(nspm_system system, uint32_t pool, uint32_t thread, uint64_t *records);
/* Copies a page to the target. */
int NearPM_shadowcpy(nspm_system system, uint32_t pool, uint32_t thread, uint64_t page, uint64_t size, uint64_t target);

#ifdef __cplusplus
}
#endif

#endif
