// SPDX-License-Identifier: Apache-2.0

/* `fdatasync` in a signal handler while the program flushes. signals FILE */
#include <fcntl.h>
#include <libpmem.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

enum { BYTES = 1 << 20 };

static int file;

static void handler(int signal) {
    (void)signal;
    fdatasync(file);
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    file = open(argv[1], O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, BYTES) != 0) return 2;
    char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) return 2;
    fdatasync(file);
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    for (int n = 0; n < 300000; n++) pmem_flush(at + n % BYTES, 1);
    setitimer(ITIMER_REAL, &never, NULL);
    puts("done");
    return 0;
}
