/* Transactions of libpmemobj whose old bytes the device keeps. */
#ifndef NEARSIDE_PMDK_TRANSACTIONS_H
#define NEARSIDE_PMDK_TRANSACTIONS_H

/* What was done, for whoever has started the program. */
void ns_report(void);

#endif
