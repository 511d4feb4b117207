/* Persistent memory on a simulated host, in this process: systems, pools, transactions, losses of power. See the README beside this folder.
 *
 * Every function returns a code, 0 if all is well; nspm_message() says in one line what was wrong and what is allowed. Offsets and lengths
 * are bytes, times are simulated picoseconds. Handles are numbers that are never given twice: one that was closed, or never given, is an
 * error (NSPM_HANDLE). A pointer must be valid for as many bytes as the function says, or be NULL, which is an error where one is needed.
 * Calls may come from any thread; one at a time acts.
 */
#ifndef NEARSIDE_PM_H
#define NEARSIDE_PM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum nspm_code {
    NSPM_OK = 0,
    NSPM_INVALID = 1,  /* what was asked for can't be; a NULL */
    NSPM_NO_POOL = 2,  /* no pool is there, or another one */
    NSPM_CORRUPT = 3,  /* a pool whose metadata are damaged */
    NSPM_FULL = 4,     /* no room: in the heap, in a log, among the threads */
    NSPM_REFUSED = 5,  /* the engine has refused a command */
    NSPM_ABORTED = 6,  /* the transaction was to be aborted */
    NSPM_POWER = 7,    /* the power has failed: now, or since the pool was opened */
    NSPM_HOST = 8,     /* an access of the host has failed */
    NSPM_HANDLE = 9,   /* no such system, pool or thread */
    NSPM_INTERNAL = 10 /* a fault of the library: nothing of this system is to be used any more */
};

/* The last error of the calling thread, "" if there was none. Valid until its next call. */
const char *nspm_message(void);

typedef struct { uint64_t id; } nspm_system;
typedef struct { uint64_t id; } nspm_pool;
typedef struct { uint64_t id; } nspm_thread;

/* ---- systems: a host with one device, or several ---- */

/* design: the name of a design, or the path of its file. model: "fast" or "rtl" (which compiles the design first), NULL is "fast".
 * values: TOML that is read over the design, as "cpu.profile = \"nearpm\"", or NULL. */
int nspm_system_open(const char *design, const char *model, const char *values, nspm_system *out);
enum nspm_synchronise {
    NSPM_BY_DEVICES = 0, /* they tell each other, and the host waits for none of that */
    NSPM_BY_HOST = 1     /* the host waits for the commit of each, and tells all: for comparison */
};
/* The same with 1, 2 or 4 devices. Each of the system's pools is over all of them: stripes of 4 KiB are on them in turns, so each has an equal part
 * of a pool, a multiple of 4096, at the same place of its window. synchronise: enum nspm_synchronise, who sees to it that logs are deleted when
 * all devices have completed a transaction, where mechanisms are offloaded. Media in a file are for one device. */
int nspm_system_open_over(const char *design, const char *model, const char *values, uint32_t devices, uint32_t synchronise,
                          nspm_system *out);
/* Its pools and threads are void. What its media hold is lost, unless the design has a file for them: then this is a loss of power, as any other
 * end of the process is, and the next system with that file opens the pools again, which recovers them. */
int nspm_system_close(nspm_system system);
int nspm_now(nspm_system system, uint64_t *ps);
/* Bytes of each device's PM window, where pools lie. */
int nspm_window_bytes(nspm_system system, uint64_t *bytes);
/* Bytes of the first device's window outside of pools, past the CPU's cache. A store returns when it is persistent. At most 64 MiB at a time. */
int nspm_load(nspm_system system, uint64_t offset, void *out, size_t bytes);
int nspm_store(nspm_system system, uint64_t offset, const void *data, size_t bytes);

enum nspm_cut {
    NSPM_CUT_HOST = 0, /* the devices take what was posted to them */
    NSPM_CUT_ALL = 1   /* what is on its way is lost, too */
};
/* The power fails, now or as ordered before. lost: lines of stores that the host has lost; may be NULL. */
int nspm_power_cut(nspm_system system, int cut, uint64_t *lost);
/* The power fails so much later, in the middle of whatever is under way then: calls end with NSPM_POWER. */
int nspm_power_cut_after(nspm_system system, uint64_t ps);
/* Power is back. Pools and threads of before are void: close them, open the pools again, which recovers them. All else that is asked of them ends
 * with NSPM_POWER. */
int nspm_power_on(nspm_system system);

/* ---- pools ---- */

enum nspm_mechanism { NSPM_UNDO = 0, NSPM_REDO = 1, NSPM_CHECKPOINT = 2, NSPM_SHADOW = 3 };
enum nspm_fence { NSPM_READ_BACK = 0, NSPM_POSTED = 1, NSPM_COMPLETION = 2 };

/* What a pool is made of. 0 in a number but the mechanism: the default. */
typedef struct {
    const char *name;     /* what the program keeps there, 1 to 47 bytes */
    uint32_t mechanism;   /* enum nspm_mechanism */
    uint32_t threads;     /* 1 to 16, over several devices 1 to 8; 4 */
    uint64_t log_bytes;   /* of each thread, a multiple of 4096; 65536 */
    uint64_t spare_pages; /* for copies, with NSPM_SHADOW; 64 */
} nspm_layout;

/* How a pool is used. NULL, or all 0: by the CPU, with fences that read back. */
typedef struct {
    uint32_t offload;         /* 1: the devices' engines do the mechanism's work */
    uint32_t fence;           /* enum nspm_fence: what a fence waits for; over several devices NSPM_READ_BACK */
    uint32_t number;          /* of the pool on the engine, 0 to 15, the same each time */
    uint32_t engine_recovers; /* 1: the engine recovers its logs when the pool is opened; 0: the CPU */
} nspm_options;

/* Makes a pool at a place of the window, and opens it; what stood there is lost. */
int nspm_pool_create(nspm_system system, uint64_t place, uint64_t bytes, const nspm_layout *layout, const nspm_options *options,
                     nspm_pool *out);
/* Opens a pool, and recovers it: transactions that were under way are brought to their end or their start. */
int nspm_pool_open(nspm_system system, uint64_t place, const char *name, const nspm_options *options, nspm_pool *out);
/* Compares the pool's metadata; NSPM_INVALID while a transaction is under way. objects: how many are taken; may be NULL. */
int nspm_pool_check(nspm_pool pool, uint64_t *objects);
/* Lets it grow to so many bytes, a multiple of 4096. No thread may have it. Pools with NSPM_SHADOW keep their size. */
int nspm_pool_resize(nspm_pool pool, uint64_t bytes);
/* No thread may have it, unless the power has failed since. */
int nspm_pool_close(nspm_pool pool);

/* ---- transactions ---- */

/* A thread with a log of its own, on a CPU of the host, 0 to 63. */
int nspm_thread_open(nspm_pool pool, uint32_t cpu, nspm_thread *out);
/* A transaction that is under way is aborted. */
int nspm_thread_close(nspm_thread thread);
int nspm_begin(nspm_thread thread);
/* All of the transaction is persistent when this returns NSPM_OK. After NSPM_POWER it is there or not; after any other error it is aborted. */
int nspm_commit(nspm_thread thread);
int nspm_abort(nspm_thread thread);
/* Something that is nested in the transaction has failed: its commit aborts it, and returns NSPM_ABORTED. */
int nspm_fail(nspm_thread thread);
/* A range is going to be changed, and is kept as a whole before. */
int nspm_add_range(nspm_thread thread, uint64_t offset, uint64_t bytes);
int nspm_write(nspm_thread thread, uint64_t offset, const void *data, size_t bytes);
/* As the transaction has it; or outside of one. */
int nspm_read(nspm_thread thread, uint64_t offset, void *out, size_t bytes);
/* Room for an object; its offset in the pool. */
int nspm_alloc(nspm_thread thread, uint64_t bytes, uint64_t *offset);
/* Takes effect with the commit. */
int nspm_free(nspm_thread thread, uint64_t offset);
/* The pool's root points to an object; 0 is none. */
int nspm_root(nspm_thread thread, uint64_t *offset);
int nspm_set_root(nspm_thread thread, uint64_t offset);
/* Waits until the engine has done all that was left to it; an error if it has refused any of it. */
int nspm_finish(nspm_thread thread);

/* What a thread has done since it was opened. */
typedef struct {
    uint64_t transactions, aborts, fences, lines, records, payload, commands, allocations;
    uint64_t time_ps;        /* within transactions */
    uint64_t consistency_ps; /* the part of it in what is there for crash consistency only */
} nspm_counts;
int nspm_thread_counts(nspm_thread thread, nspm_counts *out);

/* ---- the engine's commands by the names of the NearPM paper (EuroSys 2023, table 2) ----
 *
 * Each is one command of hw/engine/nearpm, and returns when it has ended. Pools here are ranges of the window that NearPM_pool_map has given to
 * the engine; addresses are offsets in them. The paper's arguments come first, then those that it leaves open. A pool of nspm_pool_create with
 * offload = 1 has its number on the engine for itself: take another one.
 */

/* Starts a system with a device that has the engine, on the fast model. */
int NearPM_init_device(const char *design, nspm_system *out);
/* logs: offset in the pool of as many logs as there are threads, of log_bytes each, which are empty from now on. generation: of the logs,
 * greater than that of any older one at this place; 1 at first. All but it, log_bytes (a multiple of 64) and threads (1 to 16): multiples of 4096. */
int NearPM_pool_map(nspm_system system, uint32_t pool, uint64_t place, uint64_t bytes, uint64_t logs, uint64_t log_bytes, uint32_t threads,
                    uint64_t generation);
int NearPM_pool_unmap(nspm_system system, uint32_t pool);
/* Records of old bytes, 1 to 65,536 (checkpoint: multiples of 4096). record: offset in the log; may be NULL. */
int NearPM_undolog_create(nspm_system system, uint32_t pool, uint32_t thread, uint64_t old_data, uint64_t size, uint64_t *record);
int NearPM_ckpoint_create(nspm_system system, uint32_t pool, uint32_t thread, uint64_t old_data, uint64_t size, uint64_t *record);
/* A record that the bytes at target are to be those at new_data. */
int NearPM_redolog_create(nspm_system system, uint32_t pool, uint32_t thread, uint64_t new_data, uint64_t size, uint64_t target,
                          uint64_t *record);
/* The redo records are to be applied, whatever happens. */
int NearPM_commit_redolog(nspm_system system, uint32_t pool, uint32_t thread);
/* A redo record of a committed log is applied. */
int NearPM_applylog(nspm_system system, uint32_t pool, uint32_t thread, uint64_t record, uint64_t size, uint64_t target);
/* The log's records are void: the transaction has ended. Behind NearPM_commit_redolog: redo records that were applied. */
int NearPM_commit_log(nspm_system system, uint32_t pool, uint32_t thread);
/* Undo records and checkpoints are written back, the newest first. */
int NearPM_abort_log(nspm_system system, uint32_t pool, uint32_t thread);
/* Brings a log to the start of its transaction, or to its end if its redo log was committed. The engine knows pools and logs across a loss of
 * power, so this is all that is needed then. records: applied or written back; may be NULL. */
int NearPM_recover(nspm_system system, uint32_t pool, uint32_t thread, uint64_t *records);
/* Copies page to target. */
int NearPM_shadowcpy(nspm_system system, uint32_t pool, uint32_t thread, uint64_t page, uint64_t size, uint64_t target);

#ifdef __cplusplus
}
#endif

#endif
