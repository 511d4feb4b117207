// SPDX-License-Identifier: Apache-2.0

// The C ABI of a bitstream (docs/architecture.md), around the model that Verilator made of one top.
//
// ns_ports.inc is generated from the model's header: NS_PORT(member, bits, is_output) for each port
// of the top.
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "Vdut.h"
#include "verilated.h"
#ifdef NS_TRACE
#include "verilated_fst_c.h"
#endif

namespace {

// A fatal error inside the model. Only vl_fatal throws it; ns_eval turns it into a message.
struct Fatal : std::exception {};

// An event of the order in which an engine works: hw/engine/nearpm/rtl/nearpm_order_pkg.sv.
struct ns_order_t {
    uint32_t kind;
    uint32_t small;
    uint64_t values[5];
};

struct Instance {
    VerilatedContext context;
    Vdut *dut = nullptr;
    bool failed = false;
    std::string text;   // what the model printed during the present evaluation
    std::string error;  // the first failure
#ifdef NS_TRACE
    VerilatedFstC *trace = nullptr;
#endif
    uint32_t registers = 0;         // what they hold at power-on: 0 zeros, 1 ones, 2 drawn
    uint64_t random = 0;            // state of what is drawn
    bool watched = false;           // order events are kept
    std::vector<ns_order_t> order;  // events that were not taken yet
};

thread_local Instance *current = nullptr;
thread_local bool trace_lost = false;  // the waveform that was just closed could not be written

void fail(const char *file, int line, const char *what) {
    if (!current || current->failed) return;
    current->failed = true;
    std::string &error = current->error;
    error = current->text;
    while (!error.empty() && (error.back() == '\n' || error.back() == ' ')) error.pop_back();
    if (!error.empty()) return;
    error = std::string(file ? file : "?") + ":" + std::to_string(line) + ": " + what;
}

// 64 bits of a register or a memory at power-on. Drawn ones are those of SplitMix64.
uint64_t initial() {
    if (!current || current->registers == 0) return 0;
    if (current->registers == 1) return ~uint64_t{0};
    uint64_t x = current->random += 0x9E3779B97F4A7C15;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
}

}  // namespace

// The constructor of a model is built to call these for each register, and each element of a
// memory: the runtime's functions give all elements of a memory one value.
IData ns_initial_i(int bits, uint64_t, uint64_t) {
    return static_cast<IData>(initial()) & VL_MASK_I(bits);
}
QData ns_initial_q(int bits, uint64_t, uint64_t) { return initial() & VL_MASK_Q(bits); }
WDataOutP ns_initial_w(int bits, WDataOutP out, uint64_t, uint64_t) {
    const int words = VL_WORDS_I(bits);
    for (int i = 0; i < words; i++) out[i] = static_cast<EData>(initial());
    out[words - 1] &= VL_MASK_E(bits);
    return out;
}

// The Verilated runtime is built to call these instead of printing and ending the process.
extern "C" int ns_print(const char *format, ...) {
    char line[4096];
    va_list args;
    va_start(args, format);
    const int length = std::vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (current && current->text.size() < 65536) current->text += line;
    if (!current || !std::strstr(line, "%Error")) std::fputs(line, stderr);
    return length;
}

// The FST writer is built to call this when its file could not be written, instead of ending the
// process.
extern "C" void ns_trace_lost(void) { trace_lost = true; }

void vl_stop(const char *file, int line, const char *) { fail(file, line, "$stop"); }
void vl_finish(const char *file, int line, const char *) { fail(file, line, "$finish"); }
void vl_fatal(const char *file, int line, const char *, const char *message) {
    fail(file, line, message);
    throw Fatal();
}

#ifdef NS_ORDER
// Called by the recorders in the model.
extern "C" void ns_order(int kind, int small, long long a, long long b, long long c, long long d,
                         long long e) {
    if (!current || !current->watched) return;
    const auto value = [](long long v) { return static_cast<uint64_t>(v); };
    current->order.push_back({static_cast<uint32_t>(kind), static_cast<uint32_t>(small),
                              {value(a), value(b), value(c), value(d), value(e)}});
}
#endif

#ifdef NS_COUNT
// A build that counts what it does, for the compiler. The counts are to be written before the
// process ends.
extern "C" void __gcov_dump(void);
extern "C" void __gcov_reset(void);
#endif

extern "C" {

struct ns_port_t {
    const char *name;
    void *data;
    uint32_t bits;
    uint32_t dir;
};

#define NS_API __attribute__((visibility("default")))

// What Verilator keeps a port in.
static size_t bytes(uint32_t bits) {
    return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : bits <= 64 ? 8 : (bits + 31) / 32 * 4;
}

NS_API uint32_t ns_abi(void) { return 5; }

NS_API const char *ns_build(void) { return NS_BUILD; }

NS_API size_t ns_ports(void *model, ns_port_t *out, size_t max);

NS_API void *ns_new(uint32_t registers, uint64_t seed) {
    Instance *self = new Instance;
    self->registers = registers;
    self->random = seed;
    current = self;
    try {
        // Models have one thread. A copy of the process has no other threads, and would wait for
        // their end.
        self->context.threads(1);
#ifdef NS_TRACE
        self->context.traceEverOn(true);
#endif
        self->dut = new Vdut(&self->context, "top");
        // Inputs are no registers.
        std::vector<ns_port_t> ports(ns_ports(self, nullptr, 0));
        ns_ports(self, ports.data(), ports.size());
        for (const ns_port_t &port : ports) {
            if (port.dir == 0) std::memset(port.data, 0, bytes(port.bits));
        }
    } catch (const Fatal &) {
        self->failed = true;
    }
    current = nullptr;
    return self;
}

NS_API int ns_trace_close(void *model) {
#ifdef NS_TRACE
    Instance *self = static_cast<Instance *>(model);
    if (!self->trace) return 0;
    trace_lost = false;
    self->trace->close();
    delete self->trace;
    self->trace = nullptr;
    return trace_lost ? -1 : 0;
#else
    (void)model;
    return 0;
#endif
}

NS_API void ns_free(void *model) {
    Instance *self = static_cast<Instance *>(model);
    ns_trace_close(self);
    // A model that calls the shim has scopes, which leave the context of the thread. That has to be
    // the context of this model, and not one that was deleted.
    Verilated::threadContextp(&self->context);
    delete self->dut;
    Verilated::threadContextp(nullptr);
    delete self;
#ifdef NS_COUNT
    __gcov_dump();
    __gcov_reset();
#endif
}

NS_API size_t ns_ports(void *model, ns_port_t *out, size_t max) {
    Vdut *dut = static_cast<Instance *>(model)->dut;
    if (!dut) return 0;
    const ns_port_t all[] = {
#define NS_PORT(member, bits, dir) {#member, (void *)&dut->member, bits, dir},
#include "ns_ports.inc"
#undef NS_PORT
    };
    const size_t count = sizeof all / sizeof all[0];
    for (size_t i = 0; i < count && i < max; i++) out[i] = all[i];
    return count;
}

NS_API int ns_eval(void *model, uint64_t time_ps) {
    Instance *self = static_cast<Instance *>(model);
    if (__builtin_expect(self->failed, 0)) return -1;
    current = self;
    self->context.time(time_ps);
    try {
        self->dut->eval();
    } catch (const Fatal &) {
        self->failed = true;
    }
    current = nullptr;
    if (__builtin_expect(!self->text.empty(), 0)) self->text.clear();
    return self->failed ? -1 : 0;
}

NS_API const char *ns_error(void *model) {
    const Instance *self = static_cast<Instance *>(model);
    return self->failed ? self->error.c_str() : nullptr;
}

NS_API int ns_order_watch(void *model, int on) {
#ifdef NS_ORDER
    Instance *self = static_cast<Instance *>(model);
    self->watched = on;
    self->order.clear();
    return 0;
#else
    (void)model;
    (void)on;
    return -1;
#endif
}

NS_API size_t ns_order_take(void *model, ns_order_t *out, size_t max) {
    std::vector<ns_order_t> &order = static_cast<Instance *>(model)->order;
    const size_t count = order.size() < max ? order.size() : max;
    for (size_t i = 0; i < count; i++) out[i] = order[i];
    order.erase(order.begin(), order.begin() + count);
    return count;
}

NS_API int ns_trace_open(void *model, const char *path) {
#ifdef NS_TRACE
    Instance *self = static_cast<Instance *>(model);
    if (!self->dut) return -1;
    ns_trace_close(self);
    self->trace = new VerilatedFstC;
    self->dut->trace(self->trace, 99);
    self->trace->open(path);
    if (self->trace->isOpen()) return 0;
    ns_trace_close(self);
    return -1;
#else
    (void)model;
    (void)path;
    return -1;
#endif
}

NS_API void ns_trace_dump(void *model, uint64_t time_ps) {
#ifdef NS_TRACE
    Instance *self = static_cast<Instance *>(model);
    if (self->trace) self->trace->dump(time_ps);
#else
    (void)model;
    (void)time_ps;
#endif
}

}  // extern "C"
