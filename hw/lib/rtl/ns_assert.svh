// Assertion macros. Each takes a name and a boolean property, checked at every rising edge of `clk_i` while `rst_ni` is 1.
//
// The property is a plain expression (`!a || b`, `$past(a)`), which both Verilator and the formal front end understand.
// In simulation an assumption is checked like an assertion. Synthesis sees none of them.
// `FORMAL` overrides `SYNTHESIS`, which the synthesis front end defines on its own.
`ifndef NS_ASSERT_SVH
`define NS_ASSERT_SVH

`ifdef FORMAL
  `define NS_ASSERT_ON
`elsif SYNTHESIS
`else
  `define NS_ASSERT_ON
`endif

`ifdef NS_ASSERT_ON
  `define NS_ASSERT(name, prop) name: assert property (@(posedge clk_i) disable iff (!rst_ni) (prop));
  `define NS_ASSUME(name, prop) name: assume property (@(posedge clk_i) disable iff (!rst_ni) (prop));
  `define NS_COVER(name, prop) name: cover property (@(posedge clk_i) disable iff (!rst_ni) (prop));
`else
  `define NS_ASSERT(name, prop)
  `define NS_ASSUME(name, prop)
  `define NS_COVER(name, prop)
`endif

`endif
