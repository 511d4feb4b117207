// SPDX-License-Identifier: Apache-2.0

/* The interposed parts of libpmemobj's interface, version 1. They are declared here so that the
 * shim is built without PMDK. */
#ifndef NEARSIDE_PMDK_ABI_H
#define NEARSIDE_PMDK_ABI_H

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>
#include <wchar.h>

typedef struct pmemobjpool PMEMobjpool;

typedef struct pmemoid {
    uint64_t pool_uuid_lo;
    uint64_t off;
} PMEMoid;

enum pobj_tx_stage {
    TX_STAGE_NONE,
    TX_STAGE_WORK,
    TX_STAGE_ONCOMMIT,
    TX_STAGE_ONABORT,
    TX_STAGE_FINALLY,
};

enum pobj_tx_param {
    TX_PARAM_NONE,
    TX_PARAM_MUTEX,
    TX_PARAM_RWLOCK,
    TX_PARAM_CB,
};

enum pobj_action_type {
    POBJ_ACTION_TYPE_HEAP,
    POBJ_ACTION_TYPE_MEM,
};

struct pobj_action {
    enum pobj_action_type type;
    uint32_t data[3];
    union {
        struct {
            uint64_t offset;
            uint64_t usable_size;
        } heap;
        uint64_t data2[14];
    };
};

typedef void (*pmemobj_tx_callback)(PMEMobjpool *pop, enum pobj_tx_stage stage, void *arg);
typedef int (*pmemobj_constr)(PMEMobjpool *pop, void *ptr, void *arg);

#define POBJ_XALLOC_ZERO ((uint64_t)1 << 0)
#define POBJ_XADD_NO_SNAPSHOT ((uint64_t)1 << 2)
#define POBJ_XADD_NO_ABORT ((uint64_t)1 << 4)

#define EXPORT __attribute__((visibility("default")))

/* The next function of this name after the shim's. */
#define REAL(name)                                                      \
    ({                                                                  \
        static void *real_;                                             \
        if (__atomic_load_n(&real_, __ATOMIC_RELAXED) == NULL)          \
            __atomic_store_n(&real_, ns_real(#name), __ATOMIC_RELAXED); \
        (__typeof__(&(name)))real_;                                     \
    })

/* Ends the program if there is none. */
void *ns_real(const char *name);

/* System calls: a program's allocator may map memory while symbols can't be looked up. */
static inline void *ns_mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
}

static inline ssize_t ns_write(int file, const void *from, size_t bytes) {
    return (ssize_t)syscall(SYS_write, file, from, bytes);
}

static inline void *ns_mremap(void *old, size_t old_bytes, size_t bytes, int flags, void *to) {
    return (void *)syscall(SYS_mremap, old, old_bytes, bytes, flags, to);
}

static inline int ns_munmap(void *address, size_t bytes) {
    return (int)syscall(SYS_munmap, address, bytes);
}

int pmemobj_tx_begin(PMEMobjpool *pop, jmp_buf env, ...);
enum pobj_tx_stage pmemobj_tx_stage(void);
void pmemobj_tx_abort(int errnum);
int pmemobj_tx_lock(enum pobj_tx_param type, void *lockp);
int pmemobj_tx_add_range(PMEMoid oid, uint64_t off, size_t size);
int pmemobj_tx_add_range_direct(const void *ptr, size_t size);
int pmemobj_tx_xadd_range(PMEMoid oid, uint64_t off, size_t size, uint64_t flags);
int pmemobj_tx_xadd_range_direct(const void *ptr, size_t size, uint64_t flags);
PMEMoid pmemobj_tx_alloc(size_t size, uint64_t type_num);
PMEMoid pmemobj_tx_xalloc(size_t size, uint64_t type_num, uint64_t flags);
PMEMoid pmemobj_tx_zalloc(size_t size, uint64_t type_num);
PMEMoid pmemobj_tx_realloc(PMEMoid oid, size_t size, uint64_t type_num);
PMEMoid pmemobj_tx_zrealloc(PMEMoid oid, size_t size, uint64_t type_num);
PMEMoid pmemobj_tx_strdup(const char *s, uint64_t type_num);
PMEMoid pmemobj_tx_xstrdup(const char *s, uint64_t type_num, uint64_t flags);
PMEMoid pmemobj_tx_wcsdup(const wchar_t *s, uint64_t type_num);
PMEMoid pmemobj_tx_xwcsdup(const wchar_t *s, uint64_t type_num, uint64_t flags);
int pmemobj_tx_free(PMEMoid oid);
int pmemobj_tx_xfree(PMEMoid oid, uint64_t flags);
int pmemobj_tx_publish(struct pobj_action *actv, size_t actvcnt);
int pmemobj_tx_xpublish(struct pobj_action *actv, size_t actvcnt, uint64_t flags);
int pmemobj_publish(PMEMobjpool *pop, struct pobj_action *actv, size_t actvcnt);
void pmemobj_cancel(PMEMobjpool *pop, struct pobj_action *actv, size_t actvcnt);
PMEMoid pmemobj_reserve(PMEMobjpool *pop, struct pobj_action *act, size_t size, uint64_t type_num);
PMEMoid pmemobj_xreserve(PMEMobjpool *pop, struct pobj_action *act, size_t size, uint64_t type_num, uint64_t flags);
void pmemobj_set_value(PMEMobjpool *pop, struct pobj_action *act, uint64_t *ptr, uint64_t value);
PMEMobjpool *pmemobj_create(const char *path, const char *layout, size_t poolsize, mode_t mode);
PMEMobjpool *pmemobj_open(const char *path, const char *layout);
void pmemobj_close(PMEMobjpool *pop);
int pmemobj_check(const char *path, const char *layout);
PMEMoid pmemobj_first(PMEMobjpool *pop);
PMEMoid pmemobj_next(PMEMoid oid);
uint64_t pmemobj_type_num(PMEMoid oid);
PMEMobjpool *pmemobj_pool_by_oid(PMEMoid oid);
size_t pmemobj_alloc_usable_size(PMEMoid oid);
int pmemobj_xalloc(PMEMobjpool *pop, PMEMoid *oidp, size_t size, uint64_t type_num, uint64_t flags, pmemobj_constr constructor, void *arg);
void pmemobj_persist(PMEMobjpool *pop, const void *addr, size_t len);

#endif
