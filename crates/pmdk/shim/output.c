// SPDX-License-Identifier: Apache-2.0

/* Output to files and sockets, and the end of the program, may rely on stored data: such data are
 * lost if they are not durable.
 *
 * A persist point always follows such a call: the next flush, or the one in front of the next
 * fence, sync, unmapping or the end. One in front of the call finds lines that may have left the
 * cache too early. Of several calls with only stores in between the first has a persist point, so
 * that a program with much output does not have more of them. */
#define _GNU_SOURCE
#include "output.h"

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
#include "persist_points.h"
#include "process.h"
#include "transactions.h"

void ns_before_output(void) {
    if (ns_busy == 0 && ns_followed() && !ns_output_noted()) {
        ns_persist_point(BEFORE_OUTPUT);
        ns_note_output();
    }
}

/* Looked up when the shim is loaded: allocators write, too, while symbols can't be looked up for
 * them. */
static struct {
    __typeof__(&write) write;
    __typeof__(&writev) writev;
} interposed;

__attribute__((constructor)) static void configure(void) {
    interposed.write = (__typeof__(&write))dlsym(RTLD_NEXT, "write");
    interposed.writev = (__typeof__(&writev))dlsym(RTLD_NEXT, "writev");
}

EXPORT ssize_t write(int file, const void *from, size_t bytes) {
    ns_before_output();
    return interposed.write != NULL ? interposed.write(file, from, bytes) : (ssize_t)syscall(SYS_write, file, from, bytes);
}

EXPORT ssize_t writev(int file, const struct iovec *parts, int count) {
    ns_before_output();
    return interposed.writev != NULL ? interposed.writev(file, parts, count) : (ssize_t)syscall(SYS_writev, file, parts, count);
}

EXPORT ssize_t pwrite(int file, const void *from, size_t bytes, off_t offset) {
    ns_before_output();
    return REAL(pwrite)(file, from, bytes, offset);
}

EXPORT ssize_t pwrite64(int file, const void *from, size_t bytes, off_t offset) {
    return pwrite(file, from, bytes, offset);
}

EXPORT ssize_t send(int file, const void *from, size_t bytes, int flags) {
    ns_before_output();
    return REAL(send)(file, from, bytes, flags);
}

EXPORT ssize_t sendto(int file, const void *from, size_t bytes, int flags, const struct sockaddr *to, socklen_t room) {
    ns_before_output();
    return REAL(sendto)(file, from, bytes, flags, to, room);
}

EXPORT ssize_t sendmsg(int file, const struct msghdr *message, int flags) {
    ns_before_output();
    return REAL(sendmsg)(file, message, flags);
}

EXPORT int rename(const char *from, const char *to) {
    ns_before_output();
    return REAL(rename)(from, to);
}

EXPORT int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    ns_before_output();
    return REAL(renameat)(from_folder, from, to_folder, to);
}

EXPORT int link(const char *from, const char *to) {
    ns_before_output();
    return REAL(link)(from, to);
}

EXPORT int unlink(const char *path) {
    ns_before_output();
    return REAL(unlink)(path);
}

EXPORT int remove(const char *path) {
    ns_before_output();
    return REAL(remove)(path);
}

EXPORT int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    ns_before_output();
    return REAL(linkat)(from_folder, from, to_folder, to, flags);
}

EXPORT int unlinkat(int folder, const char *path, int flags) {
    ns_before_output();
    return REAL(unlinkat)(folder, path, flags);
}

EXPORT int symlink(const char *to, const char *path) {
    ns_before_output();
    return REAL(symlink)(to, path);
}

EXPORT int mkdir(const char *path, mode_t mode) {
    ns_before_output();
    return REAL(mkdir)(path, mode);
}

EXPORT int rmdir(const char *path) {
    ns_before_output();
    return REAL(rmdir)(path);
}

/* The call creates or empties a file. */
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
    if (changes(flags)) ns_before_output();
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
    if (changes(flags)) ns_before_output();
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
    if (mode[0] != 'r') ns_before_output();
    return REAL(fopen)(path, mode);
}

EXPORT FILE *fopen64(const char *path, const char *mode) {
    return fopen(path, mode);
}

/* The calls of stdio do not write through the functions above. */
EXPORT int fflush(FILE *file) {
    ns_before_output();
    return REAL(fflush)(file);
}

EXPORT int fclose(FILE *file) {
    ns_before_output();
    return REAL(fclose)(file);
}

/* The end of a program is visible to the process that waits for it: data that are not durable are
 * lost then. */
static void end(void) {
    if (!ns_followed()) return;
    ns_persist_point(AT_END);
    ns_end_persist_points();
    ns_report();
    ns_memory_end();
}

/* Output buffered by stdio is written before the power fails. A stream in use by a thread is left
 * alone. */
__attribute__((destructor)) static void flush_output(void) {
    if (ns_followed() && __fpending(stdout) > 0 && ftrylockfile(stdout) == 0) {
        ns_before_output();
        fflush_unlocked(stdout);
        funlockfile(stdout);
    }
    end();
}

/* `quick_exit` reaches none of the above; the program's registered functions come before. */
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
