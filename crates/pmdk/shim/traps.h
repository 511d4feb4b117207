// SPDX-License-Identifier: Apache-2.0

/* Traps in a program's instructions: `shim/instructions.h`. */
#ifndef NEARSIDE_PMDK_TRAPS_H
#define NEARSIDE_PMDK_TRAPS_H

/* SIGTRAP is used by the shim, and is never blocked; the program's action is kept, and called for
 * other traps. */
void ns_traps(void);

#endif
