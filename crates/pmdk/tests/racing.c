// SPDX-License-Identifier: Apache-2.0

/* Two threads open one pool at the same time, repeatedly: one of them gets it.
 *
 *     racing FILE ROUNDS */
#include <errno.h>
#include <libpmemobj.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *path;
static int rounds;
static pthread_barrier_t together;
static PMEMobjpool *had[2];
static int why[2];

/* Of this round: the calls of a thread, and whether its first call has found the file locked. */
static __thread int self, calls;
static int late[2];

/* Interposed before libc, so that the threads meet: the one that has locked the file waits for the
 * other one, lets it continue first, and is slow then. */
int flock(int file, int operation) {
    if (++calls == 2 && late[1 - self]) usleep(20000);
    int result = (int)syscall(SYS_flock, file, operation), error = errno;
    if (calls == 1) late[self] = result != 0;
    usleep(calls > 1 && late[self] && result == 0 ? 40000 : 3000);
    errno = error;
    return result;
}

static void *opener(void *argument) {
    int n = self = (int)(size_t)argument;
    for (int round = 0; round < rounds; round++) {
        calls = late[n] = 0;
        pthread_barrier_wait(&together);
        had[n] = pmemobj_open(path, "racing");
        why[n] = errno;
        pthread_barrier_wait(&together);
        if ((had[0] != NULL) == (had[1] != NULL) || (had[n] == NULL && why[n] != EAGAIN)) {
            fprintf(stderr, "round %d, thread %d: %s\n", round, n, had[n] == NULL ? strerror(why[n]) : "it has it");
            exit(1);
        }
        pthread_barrier_wait(&together);
        if (had[n] != NULL) pmemobj_close(had[n]);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    path = argv[1];
    rounds = atoi(argv[2]);
    PMEMobjpool *pop = pmemobj_create(path, "racing", PMEMOBJ_MIN_POOL, 0600);
    if (pop == NULL) return perror(path), 1;
    pmemobj_close(pop);
    pthread_barrier_init(&together, NULL, 2);
    pthread_t threads[2];
    for (size_t n = 0; n < 2; n++) pthread_create(&threads[n], NULL, opener, (void *)n);
    for (int n = 0; n < 2; n++) pthread_join(threads[n], NULL);
    return 0;
}
