// SPDX-License-Identifier: Apache-2.0

// Included before everything else of the Verilated runtime: the shim handles what would affect the
// whole process.
#pragma once
extern "C" int ns_print(const char *format, ...);
#define VL_PRINTF ns_print

// The models use the shim's functions of these names, the runtime uses its functions.
#undef VL_SCOPED_RAND_RESET_I
#undef VL_SCOPED_RAND_RESET_Q
#undef VL_SCOPED_RAND_RESET_W

#if defined(NS_TRACE) && __has_include("fstcpp/fstcpp_assertion.h")
// The FST writer ignores failed writes (its stream remembers them) up to its last check, of the
// header's length in `os`, which then ends the process. It is the only check of this kind. The rest
// of the header may still be in the stream's buffer.
#include "fstcpp/fstcpp_assertion.h"
extern "C" void ns_trace_lost(void);
#undef FST_DCHECK_EQ
#define FST_DCHECK_EQ(a, b) \
    if (!os.flush() || (a) != (b)) ns_trace_lost()
#endif
