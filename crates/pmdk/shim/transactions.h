// SPDX-License-Identifier: Apache-2.0

/* Transactions of libpmemobj whose old bytes the device logs. */
#ifndef NEARSIDE_PMDK_TRANSACTIONS_H
#define NEARSIDE_PMDK_TRANSACTIONS_H

/* Writes the report, for the process that has started the program. */
void ns_report(void);

/* The pool is to be tracked no more; a transaction of this thread goes on by commands. */
struct pool;
void ns_transaction_stops_tracking(struct pool *pool);

#endif
