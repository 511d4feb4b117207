// SPDX-License-Identifier: Apache-2.0

/* Persist points of a program, at which the power may fail. They are counted, and recorded on
 * request. */
#ifndef NEARSIDE_PMDK_PERSIST_POINTS_H
#define NEARSIDE_PMDK_PERSIST_POINTS_H

#include <stdbool.h>
#include <stdint.h>

/* Kinds of persist points: `python/nearside/pmdk_moments.py` has their names. */
enum persist_point_kind {
    AFTER_FLUSH,
    AFTER_FIRST_FLUSH,
    AFTER_STREAM,
    BEFORE_FENCE,
    AFTER_FENCE,
    BEFORE_SYNC,
    BEFORE_UNMAPPING,
    AT_COMMAND,
    AFTER_CALL,
    BEFORE_OUTPUT,
    AT_END,
};

/* The phase of a thread in its outermost transaction of libpmemobj. */
enum phase { NO_TRANSACTION, IN_TRANSACTION, IN_COMMIT, IN_ABORT, AFTER_TRANSACTION };
void ns_phase(enum phase phase);

/* A persist point. The program is killed, or loses its power, at the requested one. */
void ns_persist_point(enum persist_point_kind what);

/* Number of persist points so far. */
uint64_t ns_persist_point_count(void);

/* Ends the persist points at the end of the program, and writes the rest of their records. */
void ns_end_persist_points(void);

/* True if the program has made output since the last persist point; notes such output. */
bool ns_output_noted(void);
void ns_note_output(void);

/* Starts following this process, which records its persist points; or stops it in a child. */
void ns_persist_points_follow(void);
void ns_persist_points_forget(void);

#endif
