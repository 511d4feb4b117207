// SPDX-License-Identifier: Apache-2.0

// Assertion macros: a name and a boolean property, checked at every rising edge of `clk_i` while
// `rst_ni` is 1.
//
// The property is a plain expression (`!a || b`, `$past(a)`), which both Verilator and the formal
// front end understand. In simulation an assumption is checked like an assertion. Synthesis sees
// none of them. `FORMAL` overrides `SYNTHESIS`, which the synthesis front end always defines.
`ifndef NS_ASSERT_SVH
`define NS_ASSERT_SVH

`ifdef FORMAL
  `define NS_ASSERT_ON
`elsif SYNTHESIS
`else
  `define NS_ASSERT_ON
`endif

`ifdef NS_ASSERT_ON
  // Immediate, not concurrent: a simulator would copy every signal of a concurrent property in
  // every cycle.
  `define NS_ASSERT(name, prop) always @(posedge clk_i) if (rst_ni) name: assert (prop);
  `define NS_ASSUME(name, prop) always @(posedge clk_i) if (rst_ni) name: assume (prop);
  `define NS_COVER(name, prop) always @(posedge clk_i) if (rst_ni) name: cover (prop);
`else
  `define NS_ASSERT(name, prop)
  `define NS_ASSUME(name, prop)
  `define NS_COVER(name, prop)
`endif

`endif
