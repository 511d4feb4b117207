// SPDX-License-Identifier: Apache-2.0

// engine_launch with three sources, and an engine that runs for any time. Source 0 is the register
// block of an engine, with the parameters of `JOB_PKG`. The others request and stop at any time.
//
// Shown of the sources: one job at a time, with the arguments of a requesting source. Each started
// job ends by the engine's word. A job that has not started ends only when it is stopped, and then
// immediately, whatever the engine works on. The engine receives stops of its current job only. A
// source that does not stop waits for two other jobs at most.
//
// Shown of the registers, for a host with one write and one read in flight, at any time and of any
// word below address 4096. Every access is performed once and answered, and waits for the host
// only. A read returns what the host has written, what the last job has reported, or a word of the
// engine; 0 elsewhere. Only a write of CONTROL requests and stops jobs. A job has the arguments
// that were written. Arguments are shown for one word, which can be any of them. The registers are
// busy during an access, during a job, and until the interrupt has followed its cause.
// engine_axil_proof shows several accesses in flight, and all address bits.
`include "ns_assert.svh"

module launch_proof
  import `JOB_PKG::*;
(
  input logic       clk_i,
  input logic       rst_ni,
  input logic [2:1] request_i,
  input logic [2:1] stop_i,
  input logic       end_i,
  input logic [NumResults-1:0] result_i,
  input logic [NumOutputs-1:0][63:0] outputs_i,
  // The host: an access begins, its channels may be valid, and their answers are accepted.
  input logic        write_i,
  input logic        read_i,
  input logic [9:0]  word_i,
  input logic [31:0] data_i,
  input logic [3:0]  strb_i,
  input logic        aw_i,
  input logic        w_i,
  input logic        b_i,
  input logic        ar_i,
  input logic        r_i,
  // Sampled in reset.
  input logic [2:0]  arg_i,
  input logic        half_i,
  input logic [31:0] engine_word_i
);

  localparam int unsigned WordPorts = (NumWords == 0) ? 1 : NumWords;
  localparam logic [9:0] Control = 10'd0;
  localparam logic [9:0] Interrupt = 10'd1;
  localparam logic [9:0] Sources = 10'd2;
  localparam logic [9:0] Status = 10'd3;
  localparam logic [9:0] Result = 10'd4;
  localparam logic [9:0] FirstValue = 10'd8;
  localparam logic [9:0] FirstWord = 10'd64;

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  InReset :
  assume property (@(posedge clk_i) rst_ni == started_q);

  logic [2:0] n_q;
  logic half_q;
  logic [31:0] engine_word_q;
  always_ff @(posedge clk_i) begin
    if (!started_q) begin
      n_q <= arg_i;
      half_q <= half_i;
      engine_word_q <= engine_word_i;
    end
  end
  ArgExists :
  assume property (@(posedge clk_i) 32'(arg_i) < NumArgs);

  typedef struct packed {
    logic [1:0]  source;
    logic [31:0] arg;  // the word that is watched
  } job_t;

  logic [2:0] request_q, stop_q, done, dropped;
  job_t [2:0] jobs;
  job_t job_full;
  logic [1:0] job;
  logic busy, start, stop, finish;
  logic working_q;  // the engine
  logic [1:0] source_q;
  logic registers_busy, irq;
  logic [NumArgs-1:0][1:0][31:0] args;
  logic [31:0] arg;
  assign arg = args[n_q][half_q];
  assign jobs = {2'd2, 32'd0, 2'd1, 32'd0, 2'd0, arg};
  assign job = job_full.source;
  assign finish = working_q && end_i;

  engine_launch #(
    .N    (3),
    .Width($bits(job_t))
  ) u_launch (
    .clk_i,
    .rst_ni,
    .busy_o   (busy),
    .request_i(request_q),
    .args_i   (jobs),
    .stop_i   (stop_q),
    .done_o   (done),
    .dropped_o(dropped),
    .start_o  (start),
    .args_o   (job_full),
    .stop_o   (stop),
    .done_i   (finish)
  );

  // ---------------------------------------------------------------- registers and their host

  ns_axil_if bus ();
  logic write_q, aw_q, w_q, read_q, ar_q;
  logic [9:0] write_word_q, read_word_q;
  logic [31:0] data_q, mask;
  logic [3:0] strb_q;
  logic b_fire, r_fire;

  assign bus.awvalid = aw_q && aw_i;
  assign bus.awaddr = {12'd0, write_word_q, 2'd0};
  assign bus.wvalid = w_q && w_i;
  assign bus.wdata = data_q;
  assign bus.wstrb = strb_q;
  assign bus.bready = b_i;
  assign bus.arvalid = ar_q && ar_i;
  assign bus.araddr = {12'd0, read_word_q, 2'd0};
  assign bus.rready = r_i;
  assign b_fire = bus.bvalid && b_i;
  assign r_fire = bus.rvalid && r_i;
  assign mask = {{8{strb_q[3]}}, {8{strb_q[2]}}, {8{strb_q[1]}}, {8{strb_q[0]}}};

  engine_registers #(
    .NumArgs   (NumArgs),
    .NumOutputs(NumOutputs),
    .NumResults(NumResults),
    .StoppedBit(StoppedBit),
    .NumWords  (NumWords)
  ) u_registers (
    .clk_i,
    .rst_ni,
    .busy_o   (registers_busy),
    .s_axil   (bus),
    .words_i  ({WordPorts{engine_word_q}}),
    .irq_o    (irq),
    .request_o(request_q[0]),
    .args_o   (args),
    .stop_o   (stop_q[0]),
    .done_i   (done[0]),
    .dropped_i(dropped[0]),
    .result_i,
    .outputs_i
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {write_q, aw_q, w_q, read_q, ar_q} <= '0;
    end else begin
      if (!write_q) {write_q, aw_q, w_q} <= {3{write_i}};
      else begin
        if (bus.awvalid && bus.awready) aw_q <= 1'b0;
        if (bus.wvalid && bus.wready) w_q <= 1'b0;
        if (b_fire) write_q <= 1'b0;
      end
      if (!read_q) {read_q, ar_q} <= {2{read_i}};
      else begin
        if (bus.arvalid && bus.arready) ar_q <= 1'b0;
        if (r_fire) read_q <= 1'b0;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (!write_q) {write_word_q, data_q, strb_q} <= {word_i, data_i, strb_i};
    if (!read_q) read_word_q <= word_i;
  end

  // The host's accesses are performed one after another; what the registers hold then.
  logic perform_write, perform_read, write_performed_q, read_performed_q;
  logic [9:0] arg_word;
  logic [31:0] arg_q;
  logic start_q, stop_request_q, enable_q, source_enable_q, done_q;
  logic [NumResults-1:0] result_q;
  logic [NumOutputs-1:0][1:0][31:0] outputs_q;
  logic [31:0] contents, expected_q;
  assign perform_write = u_registers.u_axil.write_o;
  assign perform_read = u_registers.u_axil.read;
  assign arg_word = FirstValue + {5'd0, n_q, 1'b0, half_q};

  function automatic logic [31:0] merge(logic [31:0] old);
    return (old & ~mask) | (data_q & mask);
  endfunction

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {write_performed_q, read_performed_q} <= '0;
      {arg_q, start_q, stop_request_q, enable_q, source_enable_q, done_q, result_q, outputs_q} <= '0;
    end else begin
      write_performed_q <= write_q && (write_performed_q || perform_write) && !b_fire;
      read_performed_q <= read_q && (read_performed_q || perform_read) && !r_fire;
      {stop_request_q, start_q} <= '0;
      if (perform_write) begin
        unique0 case (write_word_q)
          Control:   {stop_request_q, start_q} <= 2'(merge('0));
          Interrupt: enable_q <= 1'(merge(32'(enable_q)));
          Sources:   source_enable_q <= 1'(merge(32'(source_enable_q)));
          Status:    done_q <= done_q && !(data_q[0] && mask[0]);
          arg_word:  arg_q <= merge(arg_q);
          default:   ;
        endcase
      end
      // An end in the cycle of a write of Status is kept.
      if (done[0]) begin
        done_q <= 1'b1;
        result_q <= dropped[0] ? NumResults'(1) << StoppedBit : result_i;
        outputs_q <= dropped[0] ? '0 : outputs_i;
      end
    end
  end

  always_comb begin
    contents = '0;
    for (int unsigned n = 0; n < NumOutputs; n++)
    for (int unsigned h = 0; h < 2; h++)
    if (read_word_q == FirstValue + 10'(4 * (NumArgs + n) + h)) contents = outputs_q[n][h];
    if (read_word_q >= FirstWord && 32'(read_word_q) < 32'(FirstWord) + NumWords)
      contents = engine_word_q;
    unique0 case (read_word_q)
      Control:   contents = {29'd0, !request_q[0], stop_request_q, start_q};
      Interrupt: contents = 32'(enable_q);
      Sources:   contents = 32'(source_enable_q);
      Status:    contents = 32'(done_q);
      Result:    contents = 32'(result_q);
      arg_word:  contents = arg_q;
      default:   ;
    endcase
  end
  always_ff @(posedge clk_i) if (perform_read) expected_q <= contents;

  logic other_arg;
  assign other_arg = read_word_q >= FirstValue && 32'(read_word_q) < 32'(FirstValue) + 4 * NumArgs && !read_word_q[1] &&
      read_word_q != arg_word;

  // What the registers have requested a cycle before.
  logic
      request_before_q,
      stop_before_q,
      start_before_q,
      stop_request_before_q,
      done_before_q,
      interrupt,
      interrupt_q;
  assign interrupt = enable_q && source_enable_q && done_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {request_before_q, stop_before_q, start_before_q, stop_request_before_q, done_before_q, interrupt_q} <= '0;
    end else begin
      request_before_q <= request_q[0];
      stop_before_q <= stop_q[0];
      start_before_q <= start_q;
      stop_request_before_q <= stop_request_q;
      done_before_q <= done[0];
      interrupt_q <= interrupt;
    end
  end

  // Cycles that an access waits while the host offers all that it can.
  logic [2:0] write_wait_q, read_wait_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {write_wait_q, read_wait_q} <= '0;
    else begin
      write_wait_q <= (write_q && aw_i && w_i && b_i && r_i && !b_fire) ? write_wait_q + 1'b1 : '0;
      read_wait_q <= (read_q && ar_i && b_i && r_i && !r_fire) ? read_wait_q + 1'b1 : '0;
    end
  end

  `NS_ASSERT(write_is_answered, write_wait_q <= 3'd3)
  `NS_ASSERT(read_is_answered, read_wait_q <= 3'd3)
  `NS_ASSERT(write_is_performed_once,
             !perform_write || (write_q && !aw_q && !w_q && !write_performed_q))
  `NS_ASSERT(read_is_performed_once, !perform_read || (read_q && !ar_q && !read_performed_q))
  `NS_ASSERT(answered_when_performed, bus.bvalid == 1'b0 || write_performed_q)
  `NS_ASSERT(read_answered_when_performed, bus.rvalid == 1'b0 || read_performed_q)
  `NS_ASSERT(read_returns_the_contents, !bus.rvalid || other_arg || bus.rdata == expected_q)
  `NS_ASSERT(arguments_are_those_written, arg == arg_q)
  `NS_ASSERT(requested_by_starts_only,
             request_q[0] == (request_before_q ? !done_before_q : start_before_q))
  `NS_ASSERT(
      stopped_by_stops_only,
      stop_q[0] == (request_before_q ? (stop_before_q || stop_request_before_q) && !done_before_q : start_before_q && stop_request_before_q))
  `NS_ASSERT(interrupt_is_enabled, irq == interrupt_q)
  `NS_ASSERT(
      busy_in_a_job_or_access,
      !(request_q[0] || start_q || (write_q && !(aw_q && w_q)) || (read_q && !ar_q)) || registers_busy)
  `NS_ASSERT(busy_until_the_interrupt, irq == interrupt || registers_busy)

  // Invariants that the proof needs: what the slave holds is what the host has sent.
  logic read_slot_q, write_slot_q;
  always_ff @(posedge clk_i) begin
    if (perform_read) read_slot_q <= u_registers.u_axil.issued_q[0];
    if (perform_write) write_slot_q <= u_registers.u_axil.issued_q[0];
  end

  `NS_ASSERT(read_address_held,
             u_registers.u_axil.ar_valid_q == (read_q && !ar_q && !read_performed_q))
  `NS_ASSERT(write_address_held,
             u_registers.u_axil.aw_valid_q == (write_q && !aw_q && !write_performed_q))
  `NS_ASSERT(write_data_held,
             u_registers.u_axil.w_valid_q == (write_q && !w_q && !write_performed_q))
  `NS_ASSERT(read_address_equals,
             !u_registers.u_axil.ar_valid_q || u_registers.u_axil.ar_word_q == read_word_q)
  `NS_ASSERT(write_address_equals,
             !u_registers.u_axil.aw_valid_q || u_registers.u_axil.aw_word_q == write_word_q)
  `NS_ASSERT(
      write_data_equal,
      !u_registers.u_axil.w_valid_q || {u_registers.u_axil.wdata_q, u_registers.u_axil.wstrb_q} == {data_q, strb_q})
  `NS_ASSERT(
      responses_held,
      u_registers.u_axil.issued_q - u_registers.u_axil.answered_q == 2'(write_performed_q) + 2'(read_performed_q))
  `NS_ASSERT(
      response_equals,
      !read_performed_q || (!u_registers.u_axil.is_write_q[read_slot_q] && (other_arg || u_registers.u_axil.rdata_q[read_slot_q] == expected_q)))
  `NS_ASSERT(host_write,
             write_q ? !write_performed_q || !(aw_q || w_q) : !(aw_q || w_q || write_performed_q))
  `NS_ASSERT(host_read, read_q ? !read_performed_q || !ar_q : !(ar_q || read_performed_q))
  `NS_ASSERT(argument_exists, 32'(n_q) < NumArgs)
  `NS_ASSERT(write_response, !write_performed_q || u_registers.u_axil.is_write_q[write_slot_q])
  `NS_ASSERT(
      read_slot,
      !read_performed_q || write_performed_q || read_slot_q == u_registers.u_axil.answered_q[0])
  `NS_ASSERT(
      write_slot,
      !write_performed_q || read_performed_q || write_slot_q == u_registers.u_axil.answered_q[0])
  `NS_ASSERT(slots_differ, !write_performed_q || !read_performed_q || read_slot_q != write_slot_q)
  `NS_ASSERT(
      registers_equal,
      {u_registers.enable_q, u_registers.source_q, u_registers.done_q} == {enable_q, source_enable_q, done_q})
  `NS_ASSERT(results_equal, u_registers.result_q == result_q && u_registers.outputs_q == outputs_q)

  // ---------------------------------------------------------------- sources

  // A source requests until its job has ended, and may stop it early.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      request_q[2:1] <= '0;
      stop_q[2:1] <= '0;
    end else begin
      request_q[2:1] <= (request_q[2:1] & ~done[2:1]) | (~request_q[2:1] & request_i);
      stop_q[2:1] <= request_q[2:1] & ~done[2:1] & (stop_q[2:1] | stop_i);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      working_q <= 1'b0;
      source_q  <= '0;
    end else begin
      if (start) begin
        working_q <= 1'b1;
        source_q  <= job;
      end else if (finish) begin
        working_q <= 1'b0;
      end
    end
  end

  // The current job, from its start on.
  logic [1:0] current;
  logic running;
  assign current = start ? job : source_q;
  assign running = start || working_q;

  `NS_ASSERT(starts_with_the_arguments, !(start && job == 2'd0) || job_full.arg == $past(arg))
  `NS_ASSERT(one_at_a_time, !(start && working_q))
  `NS_ASSERT(job_was_requested, !start || (job != 2'd3 && request_q[job]))
  `NS_ASSERT(busy_while_running, !running || busy)
  `NS_ASSERT(started_ends_by_the_engine, done == ((finish ? 3'd1 << source_q : '0) | dropped))
  `NS_ASSERT(dropped_since_stopped, (dropped & ~(request_q & stop_q)) == '0)
  `NS_ASSERT(dropped_has_not_started, !running || !dropped[current])
  `NS_ASSERT(stop_matches_job, !running || stop == stop_q[current])

  logic [2:0] turn;  // sources not served before the wrap-around
  assign turn = u_launch.u_arbiter.mask_q;
  `NS_ASSERT(job_is_the_granted, u_launch.source_q == (running ? 3'd1 << current : '0))
  `NS_ASSERT(turns_are_in_order, turn == 3'b111 || turn == 3'b110 || turn == 3'b100 || turn == '0)

  for (genvar i = 0; i < 3; i++) begin : gen_source
    `NS_ASSERT(stopped_ends_immediately,
               !(request_q[i] && stop_q[i]) || dropped[i] || (running && current == 2'(i)))

    logic [1:0] passed_q;  // jobs of others started since its request
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) passed_q <= '0;
      else if (!request_q[i] || done[i] || (start && job == 2'(i))) passed_q <= '0;
      else if (start && passed_q != 2'd3) passed_q <= passed_q + 1'b1;
    end
    `NS_ASSERT(wait_is_bounded, passed_q <= 2'd2)

    // Sources whose turn comes before: a job of another source that starts is one of them.
    logic [1:0] ahead;
    assign ahead = turn[i] ? 2'($countones(turn & 3'((1 << i) - 1))) : 2'($countones(turn) + i);
    `NS_ASSERT(turn_comes,
               !request_q[i] || stop_q[i] || (running && current == 2'(i)) || 3'(passed_q) + 3'(start) + 3'(ahead) <= 3'd2)
  end

  logic host_idle;
  assign host_idle = !write_q && !read_q && !request_q[0] && !start_q;
  `NS_COVER(interrupt_rises_after_the_job, host_idle && interrupt && !irq)
  `NS_COVER(interrupt_falls, $past(irq) && !irq)
  `NS_COVER(job_of_registers_stopped, running && current == 2'd0 && stop && finish)
  `NS_COVER(job_of_registers_dropped, dropped[0] && running)

endmodule
