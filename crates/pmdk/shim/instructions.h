/* Instructions of a program's own that flush, fence and store past the cache: where they are, and what their operands are. */
#ifndef NEARSIDE_PMDK_INSTRUCTIONS_H
#define NEARSIDE_PMDK_INSTRUCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What one does: src/instructions.rs. */
enum effect { FLUSH_LINE = 1, FLUSH_LINE_IN_ORDER = 2, FENCE_ALL = 3, LOCKED = 4, STREAM_BYTES = 5 };

enum { NO_REGISTER = 0xFF, LONGEST_INSTRUCTION = 15 };

/* As src/instructions.rs writes them, sorted by their addresses, which are relative to where the file is loaded. */
struct instruction {
    uint64_t address, displacement;
    uint8_t effect, length, bytes;
    /* Numbers of registers as instructions have them; `segment` 1: fs, 2: gs. */
    uint8_t base, index, scale, segment;
    /* Only the lower 32 bits of the address count. */
    uint8_t is_32_bit;
    /* Where in the code the displacement is, if it is relative to the instruction; 0: it is not. */
    uint8_t relative_at;
    uint8_t code[LONGEST_INSTRUCTION];
};
_Static_assert(sizeof(struct instruction) == 40, "as it is read");

/* A file that is loaded. */
struct module {
    struct module *next;
    const void *headers;
    uintptr_t base;
    /* It may be unloaded; whoever looks for an instruction may still look at this. */
    bool loaded, seen;
    size_t count;
    const struct instruction *list;
    /* Copies of instructions that are carried out elsewhere; NULL if there are none. */
    uint8_t *slots;
};

/* A slot: the copy of an instruction, and what goes on behind it: a trap, or a jump back. */
enum { SLOT = 32, TRAP = 0xCC };

/* The instruction at an address, or whose copy ends there; NULL if there is none. */
const struct instruction *ns_instruction_at(uintptr_t address, const struct module **of);
const struct instruction *ns_instruction_copied(uintptr_t end, const struct module **of);

/* The slot of one; NULL if it has none. */
uint8_t *ns_instruction_slot(const struct module *module, const struct instruction *instruction);

/* Has all files that are loaded, and were not before, looked at, and their instructions trap. */
void ns_instructions_look(void);

/* NEARSIDE_PMDK_CODE: who knows where they are. */
bool ns_instructions_wanted(void);

#endif
