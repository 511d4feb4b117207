/* Traps at a program's own instructions: shim/instructions.h. */
#ifndef NEARSIDE_PMDK_TRAPS_H
#define NEARSIDE_PMDK_TRAPS_H

/* SIGTRAP is the shim's, and is never blocked; a program's own action for it is kept, and called for other traps. */
void ns_traps(void);

#endif
