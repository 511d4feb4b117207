// SPDX-License-Identifier: Apache-2.0

/* Transactions of libpmemobj whose old bytes the device logs.
 *
 * libpmemobj gets each range as one that needs no snapshot, and still flushes it. The device makes
 * the record. A number in the pool, the log's generation, ends the device's log: libpmemobj changes
 * it atomically with the rest of its commit. So a log is valid as long as the pool has its
 * generation.
 *
 * libpmemobj calls back when the outermost transaction has been committed or aborted, for any
 * reason. The callback empties the device's log or writes it back. */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "crash.h"
#include "device.h"
#include "memory.h"
#include "persist_points.h"
#include "pools.h"
#include "process.h"
#include "ranges.h"
#include "reservations.h"
#include "tracked.h"
#include "transactions.h"

/* Bytes before a transaction in a tracked pool has changed them. */
struct old {
    struct old *before;
    struct range range;
    uint8_t bytes[];
};

/* A thread's transaction. */
struct transaction {
    /* NULL: no transaction is under way, or it is not on the device. */
    struct pool *pool;
    /* The device's log, from the first record on. */
    int log;
    bool has_log;
    /* Ranges that need no record: logged, new, or covered by libpmemobj's snapshot. */
    struct ranges covered;
    /* Ranges with a record. */
    struct ranges kept;
    /* Old bytes of a tracked pool, for an abort: the pool's offset, their number, and the bytes. */
    struct old *old;
    /* The program's callback. */
    pmemobj_tx_callback callback;
    void *argument;
};

static __thread struct transaction now;

/* Counts for the report at the end. */
static struct {
    uint64_t transactions, commits, aborts, records, payload, repeated, left;
} counts;

#define COUNT(what, number) __atomic_fetch_add(&counts.what, (number), __ATOMIC_RELAXED)

/* The persist point at which the first transaction has begun. */
static uint64_t first_moment;

/* A fault injection: no old bytes are logged. */
static bool without_snapshots;

__attribute__((constructor)) static void configure(void) {
    const char *without = getenv("NEARSIDE_PMDK_WITHOUT");
    without_snapshots = without != NULL && strcmp(without, "snapshots") == 0;
}

static pthread_key_t at_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void thread_ends(void *transaction) {
    struct transaction *tx = transaction;
    free(tx->covered.list);
    free(tx->kept.list);
}

static void prepare(void) {
    pthread_key_create(&at_end, thread_ends);
}

/* A transaction in which the program has forked belongs to the parent. Ending it in the child as
 * well would change shared data. */
static void must_be_ours(const struct transaction *tx) {
    if (tx->pool == NULL || !ns_pool_inherited(tx->pool)) return;
    ns_log("process %d goes on with a transaction that its parent has begun: it is ended", (int)getpid());
    abort();
}

static struct command command(const struct transaction *tx, uint8_t operation) {
    return (struct command){.operation = operation, .pool = tx->pool->number, .thread = (uint8_t)tx->log};
}

static void free_old(struct transaction *tx) {
    for (struct old *one = tx->old, *before; one != NULL; one = before) {
        before = one->before;
        free(one);
    }
    tx->old = NULL;
}

static void clear_transaction(struct transaction *tx) {
    free_old(tx);
    if (tx->has_log) ns_pool_release_log(tx->pool, tx->log);
    tx->has_log = false;
    tx->pool = NULL;
    ns_ranges_clear(&tx->covered);
    ns_ranges_clear(&tx->kept);
}

/* Ends a transaction in a tracked pool: its old bytes are back if it was aborted. */
static void end_tracked(struct transaction *tx, bool aborted) {
    struct pool *pool = tx->pool;
    if (aborted) COUNT(aborts, 1);
    else COUNT(commits, 1);
    for (const struct old *one = aborted ? tx->old : NULL; one != NULL; one = one->before) {
        uint8_t *at = (uint8_t *)pool->pop + one->range.start;
        memcpy(at, one->bytes, one->range.end - one->range.start);
        ns_tracked_flushed(at, one->range.end - one->range.start);
    }
    ns_tracked_transaction(NULL);
    ns_tracked_commit(pool);
    clear_transaction(tx);
}

static void on_commit(struct transaction *tx) {
    if (tx->has_log) {
        COUNT(commits, 1);
        struct command commit = command(tx, NEARPM_OP_Commit);
        if (ns_command(&commit, NULL) == 0) {
            ns_pool_next_generation(tx->pool, tx->log, true);
        } else {
            /* The pool already says that the log is void. Further records would be void, too, so
             * the log is not used again. */
            ns_log("the device refuses to empty a log; it is void, and left alone");
            tx->has_log = false;
        }
    }
    clear_transaction(tx);
}

static void on_abort(struct transaction *tx) {
    if (tx->has_log) {
        COUNT(aborts, 1);
        struct command abort_it = command(tx, NEARPM_OP_Abort);
        PMEMobjpool *pop = tx->pool->pop;
        ns_crash_hold();
        if (ns_command(&abort_it, NULL) != 0) {
            /* The program must not go on with a partial transaction; the next opening of the pool
             * recovers it. */
            ns_log("the device can't undo a transaction");
            abort();
        }
        for (size_t n = 0; n < tx->kept.count; n++)
            ns_crash_written((const char *)pop + tx->kept.list[n].start, tx->kept.list[n].end - tx->kept.list[n].start);
        ns_crash_release();
        ns_persist_point(AFTER_CALL);
        ns_pool_next_generation(tx->pool, tx->log, false);
    }
    clear_transaction(tx);
}

static void expect(struct transaction *tx, uint64_t lines);

/* Called by libpmemobj for the outermost transaction: before its commit, and at each later
 * stage. */
static void on_stage(PMEMobjpool *pop, enum pobj_tx_stage stage, void *argument) {
    struct transaction *tx = argument;
    must_be_ours(tx);
    if (stage == TX_STAGE_WORK) ns_phase(IN_COMMIT);
    if (stage == TX_STAGE_NONE) ns_phase(NO_TRANSACTION);
    ns_persist_point(AFTER_CALL);
    bool ends = stage == TX_STAGE_ONCOMMIT || stage == TX_STAGE_ONABORT;
    if (tx->pool != NULL && tx->pool->tracked) {
        if (stage == TX_STAGE_WORK) expect(tx, 0);
        if (tx->pool->tracked && stage == TX_STAGE_WORK) tx->pool->commits = true;
        if (ends) end_tracked(tx, stage == TX_STAGE_ONABORT);
    } else if (tx->pool != NULL && ends) {
        if (stage == TX_STAGE_ONCOMMIT) on_commit(tx);
        else on_abort(tx);
    }
    if (stage == TX_STAGE_ONCOMMIT || stage == TX_STAGE_ONABORT) {
        ns_memory_transaction_ended();
        ns_phase(AFTER_TRANSACTION);
    }
    pmemobj_tx_callback callback = tx->callback;
    void *program_argument = tx->argument;
    if (stage == TX_STAGE_NONE) {
        clear_transaction(tx);
        tx->callback = NULL;
    }
    if (callback != NULL) callback(pop, stage, program_argument);
}

static void set_callback(struct transaction *tx, pmemobj_tx_callback callback, void *argument) {
    if (tx->callback != NULL && (tx->callback != callback || tx->argument != argument)) {
        /* As in libpmemobj. */
        ns_log("a transaction's callback is set already, to another one");
        abort();
    }
    tx->callback = callback;
    tx->argument = argument;
}

EXPORT int pmemobj_tx_begin(PMEMobjpool *pop, jmp_buf env, ...) {
    struct transaction *tx = &now;
    bool outermost = REAL(pmemobj_tx_stage)() == TX_STAGE_NONE;
    bool inherited = false;
    if (!outermost) must_be_ours(tx);
    if (outermost) {
        tx->pool = ns_pool(pop);
        inherited = tx->pool != NULL && ns_pool_inherited(tx->pool);
        if (inherited) tx->pool = NULL;
        tx->has_log = false;
        tx->callback = NULL;
        ns_ranges_clear(&tx->covered);
        ns_ranges_clear(&tx->kept);
        if (tx->pool != NULL) {
            pthread_once(&once, prepare);
            pthread_setspecific(at_end, tx);
        }
        if (COUNT(transactions, 1) == 0) first_moment = ns_persist_point_count() + 1;
        if (tx->pool != NULL && tx->pool->tracked) {
            tx->pool->announced = tx->pool->lines;
            tx->pool->overflows = tx->pool->commits = false;
        }
        ns_tracked_transaction(tx->pool);
        ns_memory_transaction();
        ns_phase(IN_TRANSACTION);
    }
    /* libpmemobj has one callback for a transaction and those nested in it. */
    int error = REAL(pmemobj_tx_begin)(pop, env, TX_PARAM_CB, on_stage, tx, TX_PARAM_NONE);
    if (inherited && error == 0) {
        ns_log("process %d has no transactions in a pool that its parent has opened", (int)getpid());
        error = ENOTSUP;
    }
    va_list parameters;
    va_start(parameters, env);
    for (;;) {
        int parameter = va_arg(parameters, int);
        if (parameter == TX_PARAM_NONE) break;
        if (parameter == TX_PARAM_CB) {
            pmemobj_tx_callback callback = va_arg(parameters, pmemobj_tx_callback);
            set_callback(tx, callback, va_arg(parameters, void *));
        } else {
            void *mutex = va_arg(parameters, void *);
            if (error == 0) error = REAL(pmemobj_tx_lock)(parameter, mutex);
        }
    }
    va_end(parameters);
    /* As for a begin that fails, whatever the mode of reporting failures. */
    if (error != 0 && REAL(pmemobj_tx_stage)() == TX_STAGE_WORK) REAL(pmemobj_tx_abort)(error);
    return error;
}

EXPORT void pmemobj_tx_abort(int error) {
    must_be_ours(&now);
    if (REAL(pmemobj_tx_stage)() == TX_STAGE_WORK) ns_phase(IN_ABORT);
    REAL(pmemobj_tx_abort)(error);
}

/* The transaction on the device, if it is in the work stage. */
static struct transaction *current_transaction(void) {
    must_be_ours(&now);
    return now.pool != NULL && REAL(pmemobj_tx_stage)() == TX_STAGE_WORK ? &now : NULL;
}

/* Bytes of log for the uncovered parts of a range, and the bytes of these parts. */
static uint64_t cost(const struct transaction *tx, struct range wanted, uint64_t *payload) {
    uint64_t log = 0;
    *payload = 0;
    for (struct range gap; ns_ranges_gap(&tx->covered, wanted, &gap); wanted.start = gap.end) {
        uint64_t bytes = gap.end - gap.start, records = (bytes + NEARPM_MAX_BYTES - 1) / NEARPM_MAX_BYTES;
        log += records * NEARPM_LINE + (bytes + NEARPM_LINE - 1) / NEARPM_LINE * NEARPM_LINE;
        *payload += bytes;
    }
    return log;
}

/* True if the device can log a range: the transaction has a log with enough room. */
static bool has_room(struct transaction *tx, uint64_t log_bytes) {
    if (!tx->has_log) {
        if (log_bytes > LOG_BYTES - NEARPM_FIRST_RECORD) return false;
        tx->log = ns_pool_acquire_log(tx->pool);
        if (tx->log < 0) return false;
        /* The commit of the transaction makes the records void. */
        struct pobj_action next;
        struct pool *pool = tx->pool;
        REAL(pmemobj_set_value)(pool->pop, &next, &pool->generations[tx->log], pool->logs[tx->log].generation + 1);
        tx->has_log = true;
        if (REAL(pmemobj_tx_publish)(&next, 1) != 0) {
            /* An abort of the transaction has released the log. */
            if (tx->has_log) ns_pool_release_log(pool, tx->log);
            return tx->has_log = false;
        }
    }
    return log_bytes <= LOG_BYTES - tx->pool->logs[tx->log].next;
}

/* Makes records of the uncovered parts of a range; false if the device refuses. */
static bool make_records(struct transaction *tx, struct range wanted) {
    struct log *log = &tx->pool->logs[tx->log];
    for (struct range gap; ns_ranges_gap(&tx->covered, wanted, &gap); wanted.start = gap.end) {
        for (uint64_t at = gap.start; at < gap.end; at += NEARPM_MAX_BYTES) {
            struct command undo = command(tx, NEARPM_OP_Undo);
            undo.address = tx->pool->place + at;
            undo.bytes = gap.end - at < NEARPM_MAX_BYTES ? gap.end - at : NEARPM_MAX_BYTES;
            uint64_t made;
            int64_t result = ns_command(&undo, &made);
            if (result != 0 || made != log->next) {
                ns_log("the device refuses a record of %llu bytes: %lld", (unsigned long long)undo.bytes, (long long)result);
                return false;
            }
            log->next += NEARPM_LINE + (undo.bytes + NEARPM_LINE - 1) / NEARPM_LINE * NEARPM_LINE;
            COUNT(records, 1);
            COUNT(payload, undo.bytes);
        }
        if (ns_crash_wanted() && !ns_ranges_add(&tx->kept, gap)) return false;
    }
    return true;
}

/* Keeps the old bytes of the uncovered parts of a range of a tracked pool. */
static bool keep_old(struct transaction *tx, struct range wanted) {
    for (struct range gap; ns_ranges_gap(&tx->covered, wanted, &gap); wanted.start = gap.end) {
        struct old *one = malloc(sizeof *one + (gap.end - gap.start));
        if (one == NULL) return false;
        one->before = tx->old;
        one->range = gap;
        memcpy(one->bytes, (const uint8_t *)tx->pool->pop + gap.start, gap.end - gap.start);
        tx->old = one;
    }
    return true;
}

void ns_transaction_stops_tracking(struct pool *pool) {
    struct transaction *tx = now.pool == pool && REAL(pmemobj_tx_stage)() == TX_STAGE_WORK ? &now : NULL;
    bool done = true;
    if (tx == NULL) ns_tracked_commit(pool);
    else ns_ranges_clear(&tx->kept);
    done = ns_pool_untrack(pool);
    if (done && tx != NULL && tx->old != NULL) {
        /* The device logs the old bytes, which a write-back may have changed. */
        done = has_room(tx, 0);
        struct ranges covered = tx->covered;
        tx->covered = (struct ranges){0};
        for (const struct old *one = tx->old; done && one != NULL; one = one->before) {
            memcpy(ns_device()->window + pool->place + one->range.start, one->bytes, one->range.end - one->range.start);
            done = make_records(tx, one->range);
        }
        ns_ranges_free(&tx->covered);
        tx->covered = covered;
        free_old(tx);
    }
    if (!done || !ns_pool_untracked(pool)) {
        ns_log("the device can't end the tracking of a pool");
        abort();
    }
    ns_log("a pool is no longer tracked: its program has a second thread, a child, or a transaction with too many lines");
}

/* A transaction is going to store to further lines: tracking ends if these are too many. */
static void expect(struct transaction *tx, uint64_t lines) {
    /* Not again while tracking ends, which adds an action to the transaction. */
    if (tx != NULL && tx->pool->tracked && !tx->pool->ending && ns_tracked_is_full(tx->pool, lines)) ns_transaction_stops_tracking(tx->pool);
}

/* The lines of an object, and those of the allocator. */
static void expect_object(uint64_t bytes) {
    struct transaction *tx = current_transaction();
    /* One that is larger than the pool is refused. */
    expect(tx, (tx != NULL && bytes < tx->pool->bytes ? bytes / NEARPM_LINE : 0) + 6);
}

enum snapshot_owner { LIBPMEMOBJ, DEVICE };

/* Chooses who keeps the old bytes of a range: libpmemobj by its snapshot, or the device. */
static enum snapshot_owner choose(struct transaction *tx, struct range wanted, uint64_t flags) {
    if (tx == NULL || (flags & POBJ_XADD_NO_SNAPSHOT) || wanted.end <= wanted.start || wanted.end > tx->pool->bytes) return LIBPMEMOBJ;
    uint64_t payload, log = cost(tx, wanted, &payload);
    if (payload == 0) {
        COUNT(repeated, 1);
        return DEVICE;
    }
    /* On an abort libpmemobj cancels reservations, and another thread may get the memory before the
     * device has written anything back. */
    if (!ns_reserved(tx->pool, wanted) && (tx->pool->tracked || has_room(tx, log))) return DEVICE;
    COUNT(left, 1);
    return LIBPMEMOBJ;
}

/* Completes the addition of a range after libpmemobj; returns its error, or one of the device. */
static int settle(struct transaction *tx, struct range wanted, enum snapshot_owner way, uint64_t flags, int error) {
    if (error != 0 || tx == NULL || tx->pool == NULL) return error;
    if (way == DEVICE && tx->pool->tracked && !keep_old(tx, wanted)) error = ENOMEM;
    if (way == DEVICE && tx->has_log && !without_snapshots && !make_records(tx, wanted)) error = EIO;
    if (error == 0 && wanted.end <= tx->pool->bytes && !ns_ranges_add(&tx->covered, wanted)) error = ENOMEM;
    if (error == 0) return 0;
    if (!(flags & POBJ_XADD_NO_ABORT)) REAL(pmemobj_tx_abort)(error);
    return errno = error;
}

static int add(struct transaction *tx, uint64_t start, const void *pointer, PMEMoid oid, uint64_t offset, size_t bytes, uint64_t flags) {
    struct range wanted = {start, start + bytes};
    /* libpmemobj's snapshot needs as many lines again. */
    if (tx != NULL && wanted.end > wanted.start && wanted.end <= tx->pool->bytes) expect(tx, 2 * (bytes / NEARPM_LINE + 2));
    enum snapshot_owner way = choose(tx, wanted, flags);
    if (tx != NULL && tx->pool == NULL) return errno = ENOMEM; /* that has aborted it */
    uint64_t forwarded = flags | (way == DEVICE ? POBJ_XADD_NO_SNAPSHOT : 0);
    int error = pointer != NULL ? REAL(pmemobj_tx_xadd_range_direct)(pointer, bytes, forwarded)
                                : REAL(pmemobj_tx_xadd_range)(oid, offset, bytes, forwarded);
    ns_persist_point(AFTER_CALL);
    return settle(tx, wanted, way, flags, error);
}

EXPORT int pmemobj_tx_xadd_range(PMEMoid oid, uint64_t offset, size_t bytes, uint64_t flags) {
    return add(current_transaction(), oid.off + offset, NULL, oid, offset, bytes, flags);
}

EXPORT int pmemobj_tx_add_range(PMEMoid oid, uint64_t offset, size_t bytes) {
    return pmemobj_tx_xadd_range(oid, offset, bytes, 0);
}

EXPORT int pmemobj_tx_xadd_range_direct(const void *pointer, size_t bytes, uint64_t flags) {
    struct transaction *tx = current_transaction();
    if (tx == NULL || pointer == NULL) return REAL(pmemobj_tx_xadd_range_direct)(pointer, bytes, flags);
    return add(tx, (uint64_t)((uintptr_t)pointer - (uintptr_t)tx->pool->pop), pointer, (PMEMoid){0, 0}, 0, bytes, flags);
}

EXPORT int pmemobj_tx_add_range_direct(const void *pointer, size_t bytes) {
    return pmemobj_tx_xadd_range_direct(pointer, bytes, 0);
}

/* A new object needs no record and must not have one: after an abort another thread may get its
 * memory before the device has written anything back. */
static PMEMoid fresh(PMEMoid oid) {
    struct transaction *tx = current_transaction();
    if (tx == NULL || oid.off == 0) return oid;
    struct range range = {oid.off, oid.off + REAL(pmemobj_alloc_usable_size)(oid)};
    if (!ns_ranges_add(&tx->covered, range)) REAL(pmemobj_tx_abort)(ENOMEM);
    ns_persist_point(AFTER_CALL);
    return oid;
}

/* The range of an object of the transaction's pool; empty for an invalid one, which libpmemobj
 * refuses. Called before the object is freed. */
static struct range object(PMEMoid oid) {
    struct transaction *tx = current_transaction();
    if (tx == NULL || oid.off == 0 || REAL(pmemobj_pool_by_oid)(oid) != tx->pool->pop) return (struct range){0, 0};
    return (struct range){oid.off, oid.off + REAL(pmemobj_alloc_usable_size)(oid)};
}

/* A freed new object may be allocated by another thread at once, and come back with other
 * content. */
static void freed(struct range range) {
    struct transaction *tx = current_transaction();
    if (tx != NULL) ns_ranges_remove(&tx->covered, range);
}

EXPORT PMEMoid pmemobj_tx_alloc(size_t bytes, uint64_t type) {
    expect_object(bytes);
    return fresh(REAL(pmemobj_tx_alloc)(bytes, type));
}

EXPORT PMEMoid pmemobj_tx_zalloc(size_t bytes, uint64_t type) {
    expect_object(bytes);
    return fresh(REAL(pmemobj_tx_zalloc)(bytes, type));
}

EXPORT PMEMoid pmemobj_tx_xalloc(size_t bytes, uint64_t type, uint64_t flags) {
    expect_object(bytes);
    return fresh(REAL(pmemobj_tx_xalloc)(bytes, type, flags));
}

/* An object that was moved or freed; a failed call has left it unchanged. */
static PMEMoid moved(struct range old, PMEMoid oid, size_t bytes) {
    if (oid.off != 0 || bytes == 0) freed(old);
    return fresh(oid);
}

EXPORT PMEMoid pmemobj_tx_realloc(PMEMoid oid, size_t bytes, uint64_t type) {
    expect_object(bytes);
    struct range old = object(oid);
    return moved(old, REAL(pmemobj_tx_realloc)(oid, bytes, type), bytes);
}

EXPORT PMEMoid pmemobj_tx_zrealloc(PMEMoid oid, size_t bytes, uint64_t type) {
    expect_object(bytes);
    struct range old = object(oid);
    return moved(old, REAL(pmemobj_tx_zrealloc)(oid, bytes, type), bytes);
}

EXPORT PMEMoid pmemobj_tx_strdup(const char *text, uint64_t type) {
    if (text != NULL) expect_object(strlen(text));
    return fresh(REAL(pmemobj_tx_strdup)(text, type));
}

EXPORT PMEMoid pmemobj_tx_xstrdup(const char *text, uint64_t type, uint64_t flags) {
    if (text != NULL) expect_object(strlen(text));
    return fresh(REAL(pmemobj_tx_xstrdup)(text, type, flags));
}

EXPORT PMEMoid pmemobj_tx_wcsdup(const wchar_t *text, uint64_t type) {
    if (text != NULL) expect_object(wcslen(text) * sizeof *text);
    return fresh(REAL(pmemobj_tx_wcsdup)(text, type));
}

EXPORT PMEMoid pmemobj_tx_xwcsdup(const wchar_t *text, uint64_t type, uint64_t flags) {
    if (text != NULL) expect_object(wcslen(text) * sizeof *text);
    return fresh(REAL(pmemobj_tx_xwcsdup)(text, type, flags));
}

EXPORT int pmemobj_tx_free(PMEMoid oid) {
    expect_object(0);
    struct range old = object(oid);
    int error = REAL(pmemobj_tx_free)(oid);
    if (error == 0) freed(old);
    return error;
}

EXPORT int pmemobj_tx_xfree(PMEMoid oid, uint64_t flags) {
    expect_object(0);
    struct range old = object(oid);
    int error = REAL(pmemobj_tx_xfree)(oid, flags);
    if (error == 0) freed(old);
    return error;
}

/* Reservations that become objects with the transaction are new, too. */
static void on_publish(const struct pobj_action *actions, size_t count) {
    struct transaction *tx = current_transaction();
    bool covered = true;
    for (size_t n = 0; tx != NULL && n < count; n++) {
        struct range range = ns_reservation_ends(tx->pool, &actions[n]);
        covered = ns_ranges_add(&tx->covered, range) && covered;
    }
    if (!covered) REAL(pmemobj_tx_abort)(ENOMEM);
}

EXPORT int pmemobj_tx_publish(struct pobj_action *actions, size_t count) {
    expect(current_transaction(), 4 * count);
    int error = REAL(pmemobj_tx_publish)(actions, count);
    if (error == 0) on_publish(actions, count);
    return error;
}

EXPORT int pmemobj_tx_xpublish(struct pobj_action *actions, size_t count, uint64_t flags) {
    expect(current_transaction(), 4 * count);
    int error = REAL(pmemobj_tx_xpublish)(actions, count, flags);
    if (error == 0) on_publish(actions, count);
    return error;
}

/* A program of a script that has only mapped a file does not overwrite the results of another
 * one. */
static bool has_results(const char *path, const struct memory_counts *memory) {
    struct stat is;
    return counts.transactions > 0 || memory->flushes > 0 || memory->fences > 0 || stat(path, &is) != 0 || is.st_size == 0;
}

void ns_report(void) {
    const char *path = getenv("NEARSIDE_PMDK_REPORT");
    /* After a power loss the report says that there was one. */
    if (path == NULL || ns_persist_point_count() == 0 || ns_crash_wanted()) return;
    struct memory_counts memory = ns_memory_counts();
    FILE *file = has_results(path, &memory) ? fopen(path, "we") : NULL;
    if (file == NULL) return;
    fprintf(file,
            "{\"moments\": %llu, \"first_moment\": %llu, \"transactions\": %llu, \"commits\": %llu, \"aborts\": %llu, \"records\": %llu, \"payload_bytes\": %llu, "
            "\"ranges_repeated\": %llu, \"ranges_left_to_libpmemobj\": %llu, \"flushes\": %llu, \"lines\": %llu, \"fences\": %llu, "
            "\"streamed_bytes\": %llu}\n",
            (unsigned long long)ns_persist_point_count(), (unsigned long long)first_moment, (unsigned long long)counts.transactions, (unsigned long long)counts.commits,
            (unsigned long long)counts.aborts, (unsigned long long)counts.records, (unsigned long long)counts.payload, (unsigned long long)counts.repeated,
            (unsigned long long)counts.left, (unsigned long long)memory.flushes, (unsigned long long)memory.lines,
            (unsigned long long)memory.fences, (unsigned long long)memory.streamed);
    fclose(file);
}
