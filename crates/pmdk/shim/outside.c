/* What a program says to files, sockets and whoever waits for its end may rely on what it has stored: it is lost when that is not durable.
 *
 * Behind such a call there is a moment in any case: the next flush, or in front of the next fence, sync, unmapping or the end. In front of
 * one there has to be one for what may have left the cache too early. Of calls with nothing but stores in between the first has one, so
 * that a program that says a lot has not more moments for it. */
#define _GNU_SOURCE
#include "outside.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "abi.h"
#include "device.h"
#include "memory.h"
#include "process.h"
#include "transactions.h"

void ns_before_telling(void) {
    if (ns_followed() && !ns_told()) {
        ns_moment();
        ns_tells();
    }
}

/* What is looked up when the shim is loaded: allocators write, too, while nothing can be looked up for them. */
static struct {
    __typeof__(&write) write;
    __typeof__(&writev) writev;
} behind;

__attribute__((constructor)) static void configure(void) {
    behind.write = (__typeof__(&write))dlsym(RTLD_NEXT, "write");
    behind.writev = (__typeof__(&writev))dlsym(RTLD_NEXT, "writev");
}

EXPORT ssize_t write(int file, const void *from, size_t bytes) {
    ns_before_telling();
    return behind.write != NULL ? behind.write(file, from, bytes) : (ssize_t)syscall(SYS_write, file, from, bytes);
}

EXPORT ssize_t writev(int file, const struct iovec *parts, int count) {
    ns_before_telling();
    return behind.writev != NULL ? behind.writev(file, parts, count) : (ssize_t)syscall(SYS_writev, file, parts, count);
}

EXPORT ssize_t pwrite(int file, const void *from, size_t bytes, off_t offset) {
    ns_before_telling();
    return REAL(pwrite)(file, from, bytes, offset);
}

EXPORT ssize_t pwrite64(int file, const void *from, size_t bytes, off_t offset) {
    return pwrite(file, from, bytes, offset);
}

EXPORT ssize_t send(int file, const void *from, size_t bytes, int flags) {
    ns_before_telling();
    return REAL(send)(file, from, bytes, flags);
}

EXPORT ssize_t sendto(int file, const void *from, size_t bytes, int flags, const struct sockaddr *to, socklen_t room) {
    ns_before_telling();
    return REAL(sendto)(file, from, bytes, flags, to, room);
}

EXPORT ssize_t sendmsg(int file, const struct msghdr *message, int flags) {
    ns_before_telling();
    return REAL(sendmsg)(file, message, flags);
}

EXPORT int rename(const char *from, const char *to) {
    ns_before_telling();
    return REAL(rename)(from, to);
}

EXPORT int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    ns_before_telling();
    return REAL(renameat)(from_folder, from, to_folder, to);
}

EXPORT int link(const char *from, const char *to) {
    ns_before_telling();
    return REAL(link)(from, to);
}

EXPORT int unlink(const char *path) {
    ns_before_telling();
    return REAL(unlink)(path);
}

/* The calls of stdio themselves write by none of the functions above. */
EXPORT int fflush(FILE *file) {
    ns_before_telling();
    return REAL(fflush)(file);
}

EXPORT int fclose(FILE *file) {
    ns_before_telling();
    return REAL(fclose)(file);
}

/* The end of a program is told to whoever waits for it: what it has stored, and not made durable, is lost then. */
static void end(void) {
    if (!ns_followed()) return;
    ns_moment();
    ns_no_moments();
    ns_report();
    ns_memory_end();
}

/* What the program has said, and stdio has not written yet, is out before the power fails. A stream that a thread is at is left alone. */
__attribute__((destructor)) static void leave(void) {
    if (ns_followed() && __fpending(stdout) > 0 && ftrylockfile(stdout) == 0) {
        ns_before_telling();
        fflush_unlocked(stdout);
        funlockfile(stdout);
    }
    end();
}

EXPORT void _exit(int status) {
    end();
    for (;;) syscall(SYS_exit_group, status);
}

EXPORT void _Exit(int status) {
    _exit(status);
}
