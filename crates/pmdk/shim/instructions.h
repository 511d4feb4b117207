// SPDX-License-Identifier: Apache-2.0

/* A program's instructions that flush, fence and store past the cache: their positions and
 * operands. */
#ifndef NEARSIDE_PMDK_INSTRUCTIONS_H
#define NEARSIDE_PMDK_INSTRUCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Effects: `src/instructions.rs`. */
enum effect { FLUSH_LINE = 1, FLUSH_LINE_IN_ORDER = 2, FENCE_ALL = 3, LOCKED = 4, STREAM_BYTES = 5 };

enum { NO_REGISTER = 0xFF, LONGEST_INSTRUCTION = 15 };

/* As `src/instructions.rs` encodes them, sorted by address, relative to where the file is
 * loaded. */
struct instruction {
    uint64_t address, displacement;
    uint8_t effect, length, bytes;
    /* Register numbers as encoded in instructions; `segment` 1: fs, 2: gs. */
    uint8_t base, index, scale, segment;
    /* Only the lower 32 bits of the address count. */
    uint8_t is_32_bit;
    /* Offset of a displacement that is relative to the instruction; 0: it is not. */
    uint8_t relative_at;
    uint8_t code[LONGEST_INSTRUCTION];
};
_Static_assert(sizeof(struct instruction) == 40, "as it is read");

/* A loaded file. */
struct module {
    struct module *next;
    const void *headers;
    uintptr_t base;
    /* Stays allocated after the file is unloaded, since other threads may still read it. */
    bool loaded, seen;
    size_t count;
    const struct instruction *list;
    /* Copies of instructions that are executed elsewhere; NULL if there are none. */
    uint8_t *slots;
};

/* A slot: the copy of an instruction, followed by a trap, or by a jump back. */
enum { SLOT = 32, TRAP = 0xCC };

/* The instruction at an address, or the one whose copy ends there; NULL if there is none. */
const struct instruction *ns_instruction_at(uintptr_t address, const struct module **of);
const struct instruction *ns_instruction_copied(uintptr_t end, const struct module **of);

/* The slot of an instruction; NULL if it has none. */
uint8_t *ns_instruction_slot(const struct module *module, const struct instruction *instruction);

/* Scans files loaded since the last call, and inserts their traps. */
void ns_instructions_scan(void);

/* NEARSIDE_PMDK_CODE: the server that knows the instructions of files. */
bool ns_instructions_wanted(void);

#endif
