// SPDX-License-Identifier: Apache-2.0

/* Each loaded file is sent to the server of NEARSIDE_PMDK_CODE, which returns the positions of its
 * instructions. A trap replaces the first byte of each. All other bytes stay, so branches to other
 * instructions are not affected. */
#define _GNU_SOURCE
#include "instructions.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "abi.h"
#include "device.h"
#include "process.h"

/* A large program takes a second. */
enum { LONGEST_ANSWER_S = 60 };

static struct module *modules;

bool ns_instructions_wanted(void) {
    return getenv("NEARSIDE_PMDK_CODE") != NULL;
}

const struct instruction *ns_instruction_at(uintptr_t address, const struct module **of) {
    for (const struct module *m = __atomic_load_n(&modules, __ATOMIC_ACQUIRE); m != NULL; m = m->next) {
        if (!__atomic_load_n(&m->loaded, __ATOMIC_ACQUIRE) || m->count == 0) continue;
        size_t low = 0, high = m->count;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (m->base + m->list[middle].address < address)
                low = middle + 1;
            else
                high = middle;
        }
        *of = m;
        if (low < m->count && m->base + m->list[low].address == address) return &m->list[low];
    }
    return NULL;
}

const struct instruction *ns_instruction_copied(uintptr_t end, const struct module **of) {
    for (const struct module *m = __atomic_load_n(&modules, __ATOMIC_ACQUIRE); m != NULL; m = m->next) {
        uintptr_t first = (uintptr_t)m->slots;
        if (first == 0 || end < first || end >= first + m->count * SLOT) continue;
        const struct instruction *one = &m->list[(end - first) / SLOT];
        *of = m;
        if ((end - first) % SLOT == one->length) return one;
    }
    return NULL;
}

uint8_t *ns_instruction_slot(const struct module *module, const struct instruction *instruction) {
    return module->slots == NULL ? NULL : module->slots + (size_t)(instruction - module->list) * SLOT;
}

/* ---- queries ---- */

static bool send_file(int to, int file, const char *name) {
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    size_t length = strlen(name);
    struct iovec part = {(void *)(uintptr_t)name, length < 4000 ? length : 4000};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &file, sizeof file);
    return syscall(SYS_sendmsg, to, &message, MSG_NOSIGNAL) == (ssize_t)part.iov_len;
}

static bool read_all(int from, void *to, size_t bytes) {
    for (char *at = to; bytes > 0;) {
        ssize_t got = read(from, at, bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += got;
        bytes -= (size_t)got;
    }
    return true;
}

/* Queries the instructions of a file; false if that is not possible. */
static bool query_instructions(const char *name, int file, struct module *module) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("NEARSIDE_PMDK_CODE");
    if (path == NULL || strlen(path) >= sizeof address.sun_path) return false;
    strcpy(address.sun_path, path);
    int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    uint64_t counts[2];
    struct timeval longest = {.tv_sec = LONGEST_ANSWER_S};
    bool known = connection >= 0 && setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest) == 0 &&
                 connect(connection, (struct sockaddr *)&address, sizeof address) == 0 && send_file(connection, file, name) &&
                 read_all(connection, counts, sizeof counts);
    if (known && counts[0] > 0) {
        size_t bytes = counts[0] * sizeof *module->list;
        void *list = ns_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        known = list != MAP_FAILED && read_all(connection, list, bytes);
        module->list = list;
        module->count = known ? counts[0] : 0;
    }
    if (connection >= 0) close(connection);
    return known;
}

/* ---- slots ---- */

static bool needs_slot(const struct instruction *one) {
    return one->effect == LOCKED || one->effect == STREAM_BYTES;
}

/* Reserves memory near a module, so that a copy of an instruction reaches what its operand is
 * relative to. */
static uint8_t *room_near(uintptr_t base, size_t bytes) {
    enum { STEP = 1 << 20, STEPS = 1000 };
    for (uintptr_t n = 1; n < STEPS; n++) {
        for (int below = 0; below < 2; below++) {
            uintptr_t at = below ? base - n * STEP : base + n * STEP;
            at = at / PAGE * PAGE;
            if (below && n * STEP >= base) continue;
            void *got = ns_mmap((void *)at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
            if (got == (void *)at) return got;
            /* A kernel without this flag takes the address as a hint. */
            if (got != MAP_FAILED) ns_munmap(got, bytes);
        }
    }
    return NULL;
}

/* Copies an instruction; false if its relative operand is out of reach. */
static bool fill_slot(const struct module *module, const struct instruction *one, uint8_t *slot) {
    memcpy(slot, one->code, one->length);
    uintptr_t from = module->base + one->address;
    if (one->relative_at != 0) {
        int32_t old;
        memcpy(&old, slot + one->relative_at, sizeof old);
        int64_t moved = old + (int64_t)(from - (uintptr_t)slot);
        int32_t new = (int32_t)moved;
        if (new != moved) return false;
        memcpy(slot + one->relative_at, &new, sizeof new);
    }
    uint8_t *after = slot + one->length;
    if (one->effect == STREAM_BYTES) {
        *after = TRAP;
        return true;
    }
    /* jmp *0(%rip), and the address. */
    static const uint8_t JUMP[6] = {0xFF, 0x25};
    uintptr_t back = from + one->length;
    memcpy(after, JUMP, sizeof JUMP);
    memcpy(after + sizeof JUMP, &back, sizeof back);
    return true;
}

/* ---- modules ---- */

/* Libraries that the shim interposes, or that do not access persistent memory. */
static bool is_of_system(const char *name) {
    static const char *const NAMES[] = {"ld-linux", "libc.so",   "libm.so",     "libpthread.so", "libdl.so",   "librt.so",     "libgcc_s.so",
                                        "libstdc++", "libpmem.so", "libpmemobj.so", "linux-vdso",    "libnearside_pmdk.so"};
    const char *slash = strrchr(name, '/');
    name = slash == NULL ? name : slash + 1;
    for (size_t n = 0; n < sizeof NAMES / sizeof *NAMES; n++)
        if (strncmp(name, NAMES[n], strlen(NAMES[n])) == 0) return true;
    return false;
}

static int protection_of(const ElfW(Phdr) * header) {
    return ((header->p_flags & PF_R) ? PROT_READ : 0) | ((header->p_flags & PF_W) ? PROT_WRITE : 0) | ((header->p_flags & PF_X) ? PROT_EXEC : 0);
}

/* Inserts traps in a loaded part of a file; returns how many instructions differ from the file, or
 * can't be replaced. */
static size_t put_traps(const struct module *module, const ElfW(Phdr) * header) {
    uintptr_t start = module->base + header->p_vaddr, end = start + header->p_memsz;
    size_t first = 0, left = 0;
    while (first < module->count && module->base + module->list[first].address < start) first++;
    size_t last = first;
    while (last < module->count && module->base + module->list[last].address < end) last++;
    if (first == last) return 0;
    void *page = (void *)(start / PAGE * PAGE);
    size_t bytes = ns_whole_pages(end - (uintptr_t)page);
    if (mprotect(page, bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return last - first;
    for (size_t n = first; n < last; n++) {
        const struct instruction *one = &module->list[n];
        uint8_t *at = (uint8_t *)(module->base + one->address), *slot = ns_instruction_slot(module, one);
        bool good = memcmp(at, one->code, one->length) == 0;
        if (good && needs_slot(one)) good = slot != NULL && fill_slot(module, one, slot);
        if (good) *at = TRAP;
        left += !good;
    }
    mprotect(page, bytes, protection_of(header));
    return left;
}

static void install_module(struct module *module, const struct dl_phdr_info *info, const char *name) {
    bool slots = false;
    for (size_t n = 0; n < module->count; n++) slots = slots || needs_slot(&module->list[n]);
    size_t bytes = ns_whole_pages(module->count * SLOT), left = 0;
    if (slots) module->slots = room_near(module->base, bytes);
    module->loaded = true;
    __atomic_store_n(&modules, module, __ATOMIC_RELEASE);
    for (size_t n = 0; n < info->dlpi_phnum; n++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[n];
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_X)) continue;
        left += put_traps(module, header);
    }
    if (module->slots != NULL) mprotect(module->slots, bytes, PROT_READ | PROT_EXEC);
    if (left > 0) ns_log("%s: %zu of its instructions that flush, fence or stream are not followed", name, left);
}

static int visit_module(struct dl_phdr_info *info, size_t bytes, void *unused) {
    (void)bytes;
    (void)unused;
    for (struct module *m = modules; m != NULL; m = m->next) {
        if (!m->loaded || m->headers != info->dlpi_phdr || m->base != info->dlpi_addr) continue;
        m->seen = true;
        return 0;
    }
    const char *name = info->dlpi_name;
    if (name[0] == 0) name = "/proc/self/exe";
    struct module *module = ns_mmap(NULL, sizeof *module, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (module == MAP_FAILED) return 0;
    *module = (struct module){.next = modules, .headers = info->dlpi_phdr, .base = info->dlpi_addr, .seen = true};
    if (!is_of_system(name)) {
        int file = (int)syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC);
        if (file < 0 || !query_instructions(name, file, module)) ns_log("%s: its instructions can't be looked at, and are not followed", name);
        if (file >= 0) close(file);
    }
    install_module(module, info, name);
    return 0;
}

void ns_instructions_scan(void) {
    int why = errno;
    for (struct module *m = modules; m != NULL; m = m->next) m->seen = false;
    dl_iterate_phdr(visit_module, NULL);
    for (struct module *m = modules; m != NULL; m = m->next)
        if (!m->seen) __atomic_store_n(&m->loaded, false, __ATOMIC_RELEASE);
    errno = why;
}
