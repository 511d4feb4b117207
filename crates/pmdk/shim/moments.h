/* Moments of a program: the power may fail at each. They are counted, and on request told with what happens at them. */
#ifndef NEARSIDE_PMDK_MOMENTS_H
#define NEARSIDE_PMDK_MOMENTS_H

#include <stdbool.h>
#include <stdint.h>

/* What happens at a moment: python/nearside/pmdk_moments.py has their names. */
enum happening {
    AFTER_FLUSH,
    AFTER_FIRST_FLUSH,
    AFTER_STREAM,
    BEFORE_FENCE,
    AFTER_FENCE,
    BEFORE_SYNC,
    BEFORE_UNMAPPING,
    AT_COMMAND,
    AFTER_CALL,
    BEFORE_TELLING,
    AT_END,
};

/* Where a thread is in its outermost transaction of libpmemobj. */
enum phase { NO_TRANSACTION, IN_TRANSACTION, IN_COMMIT, IN_ABORT, BEHIND_TRANSACTION };
void ns_phase(enum phase phase);

/* A moment, at which the program is killed, or loses its power, if it is the one that was asked for. */
void ns_moment(enum happening what);

/* How many there have been. */
uint64_t ns_moments(void);

/* There are none any more: the program has come to its end. What was not told yet is. */
void ns_no_moments(void);

/* Since the last moment the program has told somebody outside. */
bool ns_told(void);
void ns_tells(void);

/* This process is followed from now on, and tells its moments; another one does. */
void ns_moments_follow(void);
void ns_moments_forget(void);

#endif
