/* fsync in a signal's handler, as POSIX allows. signals FILE */
#define _GNU_SOURCE
#include <fcntl.h>
#include <libpmem.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>
static int f;
static volatile int calls;
static void handler(int s) { (void)s; fdatasync(f); calls++; }
int main(int argc, char **argv) {
    f = open(argv[1], O_RDWR | O_CREAT, 0600);
    if (argc < 2 || ftruncate(f, 1 << 20)) return 2;
    char *at = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
    fdatasync(f);
    signal(SIGALRM, handler);
    struct itimerval t = {{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &t, 0);
    for (long n = 0; n < 300000; n++) { at[n % (1 << 20)]++; pmem_flush(at + n % (1 << 20), 1); }
    t.it_value.tv_usec = t.it_interval.tv_usec = 0;
    setitimer(ITIMER_REAL, &t, 0);
    printf("done, %d calls\n", calls);
    return 0;
}
