// SPDX-License-Identifier: Apache-2.0

/* A vfio-user client that maps BAR2 and submits commands through the engine's page in BAR4. */
#define _GNU_SOURCE
#include "abi.h"
#include "crash.h"
#include "device.h"
#include "memory.h"
#include "persist_points.h"
#include "process.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "nearpm_numbers.h"

/* Commands and flags of vfio-user, and VFIO's region numbers. */
enum { VERSION = 1, GET_REGION_INFO = 5, REGION_READ = 9, REGION_WRITE = 10 };
enum { REPLY = 1, ERROR = 1 << 5, MAPPABLE = 1 << 2 };
enum { BAR2 = 2, BAR4 = 4 };

/* Layout of the status block: `hw/ip/status`. */
enum { BLOCKS = 0x100, BLOCK = 32, COMMAND_PAGE = 5, MOST_BLOCKS = 120 };
#define MAGIC 0x4E534456u

/* The longest time of a command or an answer, in wall-clock time: the device is simulated. */
static long patience_s = 120;
/* How long this client waits for the end of another one. */
enum { BUSY_MS = 10000 };

struct header {
    uint16_t id, command;
    uint32_t size, flags, error;
};

struct access {
    uint64_t offset;
    uint32_t region, count;
};

static int connection = -1;
static uint64_t page;
static struct device device = {.file = -1};

void ns_log(const char *format, ...) {
    char line[512];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    dprintf(STDERR_FILENO, "nearside: %s\n", line);
}

__attribute__((constructor)) static void configure(void) {
    const char *patience = getenv("NEARSIDE_PMDK_PATIENCE");
    if (patience == NULL) return;
    char *end;
    long seconds = strtol(patience, &end, 10);
    if (end == patience || *end != 0 || seconds < 1 || seconds > 86400)
        ns_log("NEARSIDE_PMDK_PATIENCE = %s: allowed are 1 to 86400 seconds; it is %ld", patience, patience_s);
    else
        patience_s = seconds;
}

/* A stopped server neither receives nor answers. */
static bool bound_waits(void) {
    struct timeval longest = {.tv_sec = patience_s};
    return setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest) == 0 &&
           setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof longest) == 0;
}

static bool send_all(const void *from, size_t bytes) {
    for (const char *at = from; bytes > 0;) {
        ssize_t sent = syscall(SYS_sendto, connection, at, bytes, MSG_NOSIGNAL, NULL, 0);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        at += sent;
        bytes -= (size_t)sent;
    }
    return true;
}

/* Receives a file descriptor with the first bytes, if `file` is not NULL. */
static bool receive_all(void *to, size_t bytes, int *file) {
    for (char *at = to; bytes > 0;) {
        union {
            char bytes[CMSG_SPACE(sizeof(int))];
            struct cmsghdr align;
        } control;
        struct iovec part = {at, bytes};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control};
        ssize_t got = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        if (head != NULL && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
            int fd;
            memcpy(&fd, CMSG_DATA(head), sizeof fd);
            if (file != NULL && *file < 0)
                *file = fd;
            else
                close(fd);
        }
        at += got;
        bytes -= (size_t)got;
    }
    return true;
}

/* Sends a message and receives its answer, with a body of at most `room` bytes. False without an
 * answer, or for an error. */
static bool exchange(uint16_t command, const void *body, size_t bytes, void *answer, size_t room, int *file) {
    static uint16_t id;
    char message[128];
    struct header header = {++id, command, (uint32_t)(sizeof header + bytes), 0, 0};
    if (bytes > sizeof message - sizeof header) return false;
    memcpy(message, &header, sizeof header);
    memcpy(message + sizeof header, body, bytes);
    if (!send_all(message, sizeof header + bytes)) return false;
    if (!receive_all(&header, sizeof header, file)) return false;
    if (header.size < sizeof header) return false;
    size_t left = header.size - sizeof header;
    size_t taken = left < room ? left : room;
    if (!receive_all(answer, taken, file)) return false;
    for (left -= taken; left > 0;) {
        size_t part = left < sizeof message ? left : sizeof message;
        if (!receive_all(message, part, NULL)) return false;
        left -= part;
    }
    if (header.flags & ERROR) errno = (int)header.error;
    return header.id == id && !(header.flags & ERROR) && taken == room;
}

static bool bar4_read(uint64_t offset, void *to, uint32_t bytes) {
    struct access access = {offset, BAR4, bytes};
    char answer[sizeof access + 64];
    if (bytes > 64 || !exchange(REGION_READ, &access, sizeof access, answer, sizeof access + bytes, NULL)) return false;
    memcpy(to, answer + sizeof access, bytes);
    return true;
}

static bool bar4_write(uint64_t offset, const void *from, uint32_t bytes) {
    struct {
        struct access access;
        char data[64];
    } body = {.access = {offset, BAR4, bytes}};
    struct access answer;
    memcpy(body.data, from, bytes);
    return exchange(REGION_WRITE, &body, sizeof body.access + bytes, &answer, sizeof answer, NULL);
}

/* Connects and agrees on the protocol's version. The device's last client may still be leaving. */
static const char *connect_to(const char *socket_path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(socket_path) >= sizeof address.sun_path) return "the path of the socket is too long";
    strcpy(address.sun_path, socket_path);
    struct {
        uint16_t major, minor;
        char capabilities[4];
    } version = {0, 1, "{}"};
    uint16_t spoken[2];
    for (int left = BUSY_MS; ; left--) {
        connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connection < 0 || !bound_waits()) return strerror(errno);
        if (connect(connection, (struct sockaddr *)&address, sizeof address) != 0) return errno == EAGAIN ? "it does not answer" : strerror(errno);
        errno = 0;
        if (exchange(VERSION, &version, 7, spoken, sizeof spoken, NULL)) return NULL;
        bool busy = errno == EBUSY, late = errno == EAGAIN;
        close(connection);
        if (!busy) return late ? "it does not answer" : "no vfio-user server";
        if (left == 0) return "it has another client";
        usleep(1000);
    }
}

static const char *attach(const char *socket_path) {
    const char *why = connect_to(socket_path);
    if (why != NULL) return why;
    uint32_t status[7];
    for (uint32_t n = 0; n < 7; n++)
        if (!bar4_read(4 * n, &status[n], 4)) return "it does not answer";
    if (status[0] != MAGIC || status[2] > MOST_BLOCKS) return "it is no Nearside device";
    uint64_t media = (uint64_t)status[5] << 32 | status[4];
    for (uint32_t n = 0; n < status[2] && page == 0; n++) {
        uint32_t block[8];
        for (uint32_t word = 0; word < 8; word++)
            if (!bar4_read(BLOCKS + BLOCK * n + 4 * word, &block[word], 4)) return "it does not answer";
        if (block[0] == COMMAND_PAGE && block[6] == NEARPM_TYPE) page = block[4];
    }
    if (page == 0 || media <= NEARPM_RESERVED_BYTES) return "it has no engine nearpm";

    struct {
        uint32_t argsz, flags, index, cap;
        uint64_t size, offset;
    } region = {.argsz = 32, .index = BAR2};
    if (!exchange(GET_REGION_INFO, &region, sizeof region, &region, sizeof region, &device.file)) return "it does not answer";
    if (device.file < 0 || !(region.flags & MAPPABLE) || region.offset != 0 || region.size < media)
        return "its PM window can't be mapped: media in memory, of profile dram, are needed";
    device.bytes = media - NEARPM_RESERVED_BYTES;
    /* Not followed as memory of the program: stores here are durable at once. */
    void *window = ns_mmap(NULL, device.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, device.file, 0);
    if (window == MAP_FAILED) return strerror(errno);
    device.window = window;
    return NULL;
}

static bool tried;

const struct device *ns_device(void) {
    ns_lock(&ns_locks.device);
    const char *path = getenv("NEARSIDE_PMDK");
    if (!tried && path != NULL) {
        const char *why = attach(path);
        if (why != NULL) ns_log("NEARSIDE_PMDK = %s: %s", path, why);
    }
    tried = true;
    ns_unlock(&ns_locks.device);
    return device.window == NULL ? NULL : &device;
}

void ns_device_leave(void) {
    ns_lock(&ns_locks.device);
    if (device.window != NULL) {
        ns_munmap(device.window, device.bytes);
        close(device.file);
        close(connection);
        device = (struct device){.file = -1};
        connection = -1;
        page = 0;
        tried = false;
    }
    ns_unlock(&ns_locks.device);
}

/* Uses the first line of the page: one command at a time. */
static int64_t launch(const uint8_t line[64], uint64_t *value) {
    if (!bar4_write(page, line, 64)) return -1;
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        uint32_t words[16];
        if (!bar4_read(page, words, sizeof words)) return -1;
        uint32_t state = words[NEARPM_PAGE_STATE / 4];
        if (state & NEARPM_PAGE_DONE) {
            if (value != NULL) *value = (uint64_t)words[NEARPM_PAGE_VALUE_HI / 4] << 32 | words[NEARPM_PAGE_VALUE_LO / 4];
            return words[NEARPM_PAGE_RESULT / 4];
        }
        if (!(state & NEARPM_PAGE_BUSY)) return -1; /* the function was reset */
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - start.tv_sec < patience_s);
    return -1;
}

bool ns_device_store(uint64_t place, const uint8_t line[64]) {
    struct {
        struct access access;
        uint8_t data[NEARPM_LINE];
    } body = {.access = {place, BAR2, NEARPM_LINE}};
    struct access answer;
    memcpy(body.data, line, NEARPM_LINE);
    ns_lock(&ns_locks.device);
    bool stored = exchange(REGION_WRITE, &body, sizeof body, &answer, sizeof answer, NULL);
    ns_unlock(&ns_locks.device);
    return stored;
}

int64_t ns_command(const struct command *c, uint64_t *value) {
    uint64_t words[8] = {0, (uint64_t)c->operation | (uint64_t)c->pool << 8 | (uint64_t)c->thread << 16, c->address, c->bytes,
                         c->target, c->transaction, c->value, c->extra};
    /* The device's writes to the pool are durable at once: the caller records them before the next
     * persist point. */
    bool writes = c->operation == NEARPM_OP_Abort || c->operation == NEARPM_OP_Recover;
    if (!writes) ns_persist_point(AT_COMMAND);
    ns_memory_command(c);
    ns_lock(&ns_locks.device);
    int64_t result = launch((const uint8_t *)words, value);
    ns_unlock(&ns_locks.device);
    if (!writes) ns_persist_point(AT_COMMAND);
    return result;
}
