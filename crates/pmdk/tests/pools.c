// SPDX-License-Identifier: Apache-2.0

/* Performs steps with pools, one after the other, and prints their results. A pool's name is that
 * of its file; its first letter is the handle's.
 *
 *     pools FOLDER STEP... */
#include <errno.h>
#include <libpmemobj.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Two numbers that are equal after each complete transaction. */
struct pair {
    uint64_t first, rest[40], second;
};

static const char *folder;
static PMEMobjpool *handles[128];
static uint64_t sums[128];

static char *path(const char *name) {
    static char paths[2][1000];
    static int turn;
    turn ^= 1;
    snprintf(paths[turn], sizeof paths[turn], "%s/%s", folder, name);
    return paths[turn];
}

static PMEMobjpool **handle(const char *name) {
    return &handles[name[0] & 127];
}

static struct pair *pair(const char *name) {
    return pmemobj_direct(pmemobj_root(*handle(name), sizeof(struct pair)));
}

static void got(const char *name, PMEMobjpool *pop) {
    if (pop != NULL) *handle(name) = pop;
    else printf("%s: %s\n", name, strerror(errno));
}

static void change(const char *name, uint64_t value, int error) {
    struct pair *it = pair(name);
    TX_BEGIN(*handle(name)) {
        pmemobj_tx_add_range_direct(it, sizeof *it);
        it->first = it->second = value;
        if (error != 0) pmemobj_tx_abort(error);
    }
    TX_ONABORT {
        printf("aborted: %s\n", strerror(errno));
    }
    TX_END
}

static void begin(const char *name, uint64_t value) {
    struct pair *it = pair(name);
    pmemobj_tx_begin(*handle(name), NULL, TX_PARAM_NONE);
    pmemobj_tx_add_range_direct(it, sizeof *it);
    it->first = it->second = value;
}

static void fill(void) {
    for (int n = 0;; n++) {
        char name[20];
        snprintf(name, sizeof name, "filled-%d", n);
        PMEMobjpool *pop = pmemobj_create(path(name), "pools", PMEMOBJ_MIN_POOL, 0600);
        if (pop == NULL) {
            printf("filled by %d: %s\n", n, strerror(errno));
            return;
        }
        pmemobj_close(pop);
    }
}

static uint64_t sum(const char *name) {
    const uint64_t *at = (const uint64_t *)*handle(name);
    uint64_t all = 0;
    for (size_t n = 0; n < PMEMOBJ_MIN_POOL / sizeof *at; n++) all = (all ^ at[n]) * 0x100000001b3u;
    return all;
}

static void child_ended(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) printf("the child ends: %s\n", strsignal(WTERMSIG(status)));
}

/* Children exit as soon as they reach `last`. */
static int run(char **steps, char **last) {
    while (*steps != NULL && steps != last) {
        const char *what = *steps++;
        if (strcmp(what, "fill") == 0) fill();
        else if (strcmp(what, "commit") == 0) pmemobj_tx_commit(), pmemobj_tx_end();
        else if (strcmp(what, "abort") == 0) pmemobj_tx_abort(ECANCELED), (void)pmemobj_tx_end();
        else if (strcmp(what, "kill") == 0) kill(getpid(), SIGKILL);
        else if (strcmp(what, "stay") == 0) {
            printf("stays\n");
            getchar();
        } else if (strcmp(what, "orphan") == 0) {
            /* A child goes on, and this process is killed. */
            pid_t parent = getpid();
            if (fork() != 0) kill(parent, SIGKILL);
            while (getppid() == parent) usleep(1000);
        } else {
            if (*steps == NULL) return fprintf(stderr, "%s: a word lacks\n", what), 2;
            const char *name = *steps++;
            if (strcmp(what, "create") == 0) got(name, pmemobj_create(path(name), "pools", PMEMOBJ_MIN_POOL, 0600));
            else if (strcmp(what, "large") == 0) got(name, pmemobj_create(path(name), "pools", 4 * PMEMOBJ_MIN_POOL, 0600));
            else if (strcmp(what, "open") == 0) got(name, pmemobj_open(path(name), "pools"));
            else if (strcmp(what, "close") == 0) pmemobj_close(*handle(name));
            else if (strcmp(what, "check") == 0) printf("check: %d\n", pmemobj_check(path(name), "pools"));
            else if (strcmp(what, "get") == 0) printf("%s: %d %d\n", name, (int)pair(name)->first, (int)pair(name)->second);
            else if (strcmp(what, "sum") == 0) sums[name[0] & 127] = sum(name);
            else if (strcmp(what, "same") == 0) printf("%s\n", sums[name[0] & 127] == sum(name) ? "unchanged" : "changed");
            else if (strcmp(what, "unlink") == 0) unlink(path(name));
            else if (strcmp(what, "private") == 0) {
                int on = atoi(name);
                pmemobj_ctl_set(NULL, "copy_on_write.at_open", &on);
            } else if (strcmp(what, "fork") == 0) {
                /* A child executes this number of words. */
                char **after = steps + atoi(name);
                pid_t child = fork();
                if (child == 0) _exit(run(steps, after));
                child_ended(child);
                steps = after;
            } else {
                if (*steps == NULL) return fprintf(stderr, "%s %s: a word lacks\n", what, name), 2;
                const char *value = *steps++;
                if (strcmp(what, "set") == 0) change(name, strtoull(value, NULL, 10), 0);
                else if (strcmp(what, "undo") == 0) change(name, strtoull(value, NULL, 10), ECANCELED);
                else if (strcmp(what, "begin") == 0) begin(name, strtoull(value, NULL, 10));
                else if (strcmp(what, "rename") == 0) rename(path(name), path(value));
                else return fprintf(stderr, "%s: no step\n", what), 2;
            }
        }
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    setbuf(stdout, NULL);
    folder = argv[1];
    return run(argv + 2, NULL);
}
