/* What a program says to files, sockets and whoever waits for its end may rely on what it has stored: it is lost when that is not durable.
 *
 * Behind such a call there is a moment in any case: the next flush, or in front of the next fence, sync, unmapping or the end. In front of
 * one there has to be one for what may have left the cache too early. Of calls with nothing but stores in between the first has one, so
 * that a program that says a lot has not more moments for it. */
#define _GNU_SOURCE
#include "outside.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "abi.h"
#include "memory.h"
#include "moments.h"
#include "process.h"
#include "transactions.h"

void ns_before_telling(void) {
    if (ns_busy == 0 && ns_followed() && !ns_told()) {
        ns_moment(BEFORE_TELLING);
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

EXPORT int remove(const char *path) {
    ns_before_telling();
    return REAL(remove)(path);
}

EXPORT int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    ns_before_telling();
    return REAL(linkat)(from_folder, from, to_folder, to, flags);
}

EXPORT int unlinkat(int folder, const char *path, int flags) {
    ns_before_telling();
    return REAL(unlinkat)(folder, path, flags);
}

EXPORT int symlink(const char *to, const char *path) {
    ns_before_telling();
    return REAL(symlink)(to, path);
}

EXPORT int mkdir(const char *path, mode_t mode) {
    ns_before_telling();
    return REAL(mkdir)(path, mode);
}

EXPORT int rmdir(const char *path) {
    ns_before_telling();
    return REAL(rmdir)(path);
}

/* A file is new, or empty. */
static bool changes(int flags) {
    return (flags & (O_CREAT | O_TRUNC)) != 0;
}

static mode_t mode_of(int flags, va_list arguments) {
    return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

EXPORT int open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    if (changes(flags)) ns_before_telling();
    return REAL(open)(path, flags, mode);
}

EXPORT int open64(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open(path, flags | O_LARGEFILE, mode);
}

EXPORT int openat(int folder, const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    if (changes(flags)) ns_before_telling();
    return REAL(openat)(folder, path, flags, mode);
}

EXPORT int openat64(int folder, const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return openat(folder, path, flags | O_LARGEFILE, mode);
}

EXPORT int creat(const char *path, mode_t mode) {
    return open(path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

EXPORT FILE *fopen(const char *path, const char *mode) {
    if (mode[0] != 'r') ns_before_telling();
    return REAL(fopen)(path, mode);
}

EXPORT FILE *fopen64(const char *path, const char *mode) {
    return fopen(path, mode);
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
    ns_moment(AT_END);
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

/* By `quick_exit` nothing else of the above is reached; what the program itself has registered comes before. */
__attribute__((constructor)) static void end_quickly(void) {
    at_quick_exit(end);
}

EXPORT void _exit(int status) {
    end();
    for (;;) syscall(SYS_exit_group, status);
}

EXPORT void _Exit(int status) {
    _exit(status);
}
