/* Calls by which a program tells somebody outside, and its end: the power may fail in front of the one, and at the other. */
#ifndef NEARSIDE_PMDK_OUTSIDE_H
#define NEARSIDE_PMDK_OUTSIDE_H

/* The program is about to tell somebody outside: a moment, unless it has done nothing else since the last one. */
void ns_before_telling(void);

#endif
