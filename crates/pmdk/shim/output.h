// SPDX-License-Identifier: Apache-2.0

/* Output of a program, and its end: the power may fail in front of output, and at the end. */
#ifndef NEARSIDE_PMDK_OUTPUT_H
#define NEARSIDE_PMDK_OUTPUT_H

/* The program is about to make output: a persist point, except directly after other output. */
void ns_before_output(void);

#endif
