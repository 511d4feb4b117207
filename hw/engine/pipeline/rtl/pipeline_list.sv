// SPDX-License-Identifier: Apache-2.0

// Executes a list of kernel commands: reads the list, lets the kernel of each entry check and
// execute it, and writes reports after the list.
//
// The list is read once, before the first entry runs, so writes of entries do not change it. The
// first invalid or failing entry ends the list. Kernels have to be idle after their job is done.
`include "ns_assert.svh"

module pipeline_list
  import ns_axi_pkg::*;
  import nvme_pkg::*;
  import engine_pkg::*;
  import pipeline_pkg::*;
  import pipeline_job_pkg::*;
(
  input  logic                                clk_i,
  input  logic                                rst_ni,
  /// A list is in progress. Driven by registers.
  output logic                                busy_o,

  /// Starts a list, for one cycle.
  input  logic                                start_i,
  /// Arguments, stable until the next list starts: list, count, base, bytes, kind.
  input  logic              [NumArgs-1:0][63:0] args_i,
  /// The list is malformed and ends as invalid.
  input  logic                                malformed_i,
  /// Ends the list early.
  input  logic                                stop_i,
  /// The list ends in this cycle. The outputs up to `status_o` are valid with it.
  output logic                                done_o,
  /// Return value, number of entries that succeeded, and status of an NVMe command that was not
  /// stopped.
  output result_t                             result_o,
  output logic              [4:0]             entries_o,
  output status_t                             status_o,
  /// Current or last entry, and cycles of each entry. Stable until the next list starts.
  output logic              [3:0]             entry_o,
  output logic              [MaxEntries-1:0][31:0] cycles_o,

  /// Entry as an NVMe command, to all kernels.
  output engine_cmd_t                         cmd_o,
  /// Kernel that executes, or has executed, the current entry; 0 if none.
  output logic              [NumKernels-1:0]     select_o,
  /// Status of each kernel's checks. Settled after two cycles.
  input  status_t           [NumKernels-1:0]     refused_i,
  /// Job of a kernel: start for one cycle, early end, end, and result.
  output logic              [NumKernels-1:0]     start_o,
  output logic                                stop_o,
  input  logic              [NumKernels-1:0]     done_i,
  input  kernel_result_t       [NumKernels-1:0]     result_i,

  /// Memory port, used while `axi_active_o` is 1. Addresses are those of the PM window.
  output logic                                axi_active_o,
  ns_axi_if.master                            m_axi
);

  localparam int unsigned EntryBits = unsigned'($clog2(MaxEntries));
  localparam int unsigned BlockBits = 9;
  localparam int unsigned PageBits = 12;  // alignment of a list, so that none crosses a page

  typedef enum logic [3:0] {
    StIdle,
    StSize,     // registers the ends of the ranges
    StCheck,    // registers the checks
    StBegin,
    StReadAddr,      // reads the list: address
    StReadData,
    StFetch,    // registers an entry
    StDecode,     // its kernel checks the entry
    StStatus,  // registers the status of the check
    StDispatch,
    StRun,
    StWriteAddr,     // writes the reports: address
    StWriteData,    // data
    StWriteResp,   // response
    StDone
  } state_e;

  typedef logic [EntryBits-1:0] entry_t;

  state_e state_q;
  logic invalid_q, report, entry_last, fetch;
  entry_t entry_q, line_q;  // current entry; line read or written
  logic [EntryBits:0] count, ended_q, succeeded_q;  // entries that have ended; that have succeeded
  logic [64:0] list_end_q, window_end_q;
  logic [511:0] entry_data_q, report_data;
  logic [NumKernels-1:0] kernel, kernel_q;
  logic r_fire, reserved_set, done, entry_ok;
  status_t entry_status, entry_status_q, status_q;
  result_t result_q;
  kernel_result_t kernel_result;

  assign count = args_i[1][EntryBits:0];
  assign report = args_i[4][0];

  // ---------------------------------------------------------------- list

  assign r_fire = m_axi.r_valid && m_axi.r_ready;
  assign fetch = state_q == StFetch;

  // With reports the list range is twice as long.
  always_ff @(posedge clk_i) begin
    list_end_q <= 65'(args_i[0]) + ((65'(count) << 6) << report);
    window_end_q <= 65'(args_i[2]) + 65'(args_i[3]);
    invalid_q <= malformed_i || args_i[1] == '0 || args_i[1] > 64'(MaxEntries) || args_i[0][PageBits-1:0] != '0 ||
        args_i[2][PageBits-1:0] != '0 || args_i[3][BlockBits-1:0] != '0 || args_i[4][63:1] != '0 || wraps(list_end_q) || wraps(window_end_q);
  end

  logic [511:0] list_q[MaxEntries];
  logic [511:0] list_entry;
  always_ff @(posedge clk_i) begin
    if (r_fire || state_q == StDispatch || done)
      list_q[r_fire?line_q : entry_q] <= r_fire ? m_axi.r.data : report_data;
  end
  assign list_entry = list_q[fetch?entry_q : line_q];

  assign m_axi.ar = '{
          id: '0,
          len: 8'(count - 1'b1),
          size: 3'd6,
          burst: BurstIncr,
          addr: args_i[0]
      };
  assign m_axi.ar_valid = state_q == StReadAddr;
  assign m_axi.r_ready = state_q == StReadData;
  assign m_axi.aw = '{
          id: '0,
          len: 8'(ended_q - 1'b1),
          size: 3'd6,
          burst: BurstIncr,
          addr: args_i[0] + (64'(count) << 6)
      };
  assign m_axi.aw_valid = state_q == StWriteAddr;
  assign m_axi.w = '{last: {1'b0, line_q} + 1'b1 == ended_q, strb: '1, data: list_entry};
  assign m_axi.w_valid = state_q == StWriteData;
  assign m_axi.b_ready = state_q == StWriteResp;
  assign axi_active_o = state_q inside {StReadAddr, StReadData, StWriteAddr, StWriteData, StWriteResp};

  // ---------------------------------------------------------------- entry

  always_comb begin
    for (int unsigned k = 0; k < NumKernels; k++) kernel[k] = entry_data_q[7:0] == Opcodes[k];
    // Namespace and data pointers are given by the list. An entry has 0 there.
    reserved_set = entry_data_q[319:8] != '0 || kernel == '0;
    entry_status = generic_status(ScSuccess);
    kernel_result = '0;
    for (int unsigned k = 0; k < NumKernels; k++) begin
      if (kernel[k]) entry_status = refused_i[k];
      if (kernel_q[k]) kernel_result |= result_i[k];
    end
    if (reserved_set) entry_status = generic_status(ScInvalidField);
  end

  assign cmd_o = '{
          slot: '0,
          command: '0,
          ns_base: args_i[2] >> BlockBits,
          ns_blocks: args_i[3] >> BlockBits,
          sqe: entry_data_q
      };
  assign select_o = kernel_q;
  assign entry_ok = entry_status_q.sct == '0 && entry_status_q.sc == ScSuccess;
  assign start_o = (state_q == StDispatch && entry_ok && !stop_i) ? kernel : '0;
  assign stop_o = stop_i && state_q == StRun;
  assign done = state_q == StRun && (done_i & kernel_q) != '0;
  assign entry_last = {1'b0, entry_q} + 1'b1 == count;

  // Report of an entry: status as in a completion, dword 0, cycles.
  assign report_data = {
    416'd0,
    cycles_o[entry_q],
    done ? kernel_result.value : 32'd0,
    16'd0,
    done ? kernel_result.status : entry_status_q,
    1'b1
  };

  // ---------------------------------------------------------------- sequence

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= StIdle;
    else begin
      unique case (state_q)
        StIdle: if (start_i) state_q <= StSize;
        StSize: state_q <= StCheck;
        StCheck: state_q <= StBegin;
        StBegin: state_q <= (invalid_q || stop_i) ? StDone : StReadAddr;
        StReadAddr: if (m_axi.ar_ready) state_q <= StReadData;
        StReadData:
        if (m_axi.r_valid && m_axi.r.last)
          state_q <= (result_q.read_error || m_axi.r.resp != RespOkay || stop_i) ? StDone : StFetch;
        StFetch: state_q <= stop_i ? StDone : StDecode;
        StDecode: state_q <= StStatus;
        StStatus: state_q <= StDispatch;
        StDispatch: state_q <= stop_i ? StDone : entry_ok ? StRun : report ? StWriteAddr : StDone;
        StRun:
        if (done) begin
          if (kernel_result.stopped) state_q <= StDone;
          else if (entry_last || kernel_result.status.sct != '0 || kernel_result.status.sc != ScSuccess)
            state_q <= report ? StWriteAddr : StDone;
          else state_q <= StFetch;
        end
        StWriteAddr: if (m_axi.aw_ready) state_q <= StWriteData;
        StWriteData: if (m_axi.w_ready && m_axi.w.last) state_q <= StWriteResp;
        StWriteResp: if (m_axi.b_valid) state_q <= StDone;
        default: state_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      result_q    <= '0;
      status_q    <= generic_status(ScSuccess);
      entry_q     <= '0;
      ended_q     <= '0;
      succeeded_q <= '0;
      kernel_q    <= '0;
      cycles_o    <= '0;
    end else if (start_i) begin
      result_q    <= '0;
      status_q    <= generic_status(ScSuccess);
      entry_q     <= '0;
      ended_q     <= '0;
      succeeded_q <= '0;
      kernel_q    <= '0;
      cycles_o    <= '0;
    end else begin
      if (stop_i && state_q inside {StBegin, StFetch, StDispatch}) result_q.stopped <= 1'b1;
      if (state_q == StBegin && invalid_q) begin
        result_q <= '{invalid: 1'b1, default: 1'b0};
        status_q <= generic_status(ScInvalidField);
      end
      if (state_q == StReadData && m_axi.r_valid) begin
        if (m_axi.r.resp != RespOkay) begin
          result_q.read_error <= 1'b1;
          status_q <= data_status(DataReadError, 1'b0);
        end else if (m_axi.r.last && stop_i && !result_q.read_error) result_q.stopped <= 1'b1;
      end
      if (start_o != '0) kernel_q <= kernel;
      if (state_q == StDispatch && !stop_i && !entry_ok) begin
        result_q.bad_entry <= 1'b1;
        status_q <= entry_status_q;
        ended_q <= ended_q + 1'b1;
      end
      if ((start_o != '0 || (state_q == StRun && !done)) && cycles_o[entry_q] != '1)
        cycles_o[entry_q] <= cycles_o[entry_q] + 1'b1;
      if (done) begin
        result_q <= '{
            bad_data: kernel_result.bad_data,
            bad_entry: kernel_result.invalid,
            write_error: kernel_result.write_error,
            invalid: 1'b0,
            stopped: kernel_result.stopped,
            read_error: kernel_result.read_error
        };
        status_q <= kernel_result.status;
        if (!kernel_result.stopped) ended_q <= ended_q + 1'b1;
        if (!kernel_result.stopped && kernel_result.status.sct == '0 && kernel_result.status.sc == ScSuccess) begin
          succeeded_q <= succeeded_q + 1'b1;
          if (!entry_last) begin
            entry_q  <= entry_q + 1'b1;
            kernel_q <= '0;
          end
        end
      end
      if (state_q == StWriteResp && m_axi.b_valid && m_axi.b.resp != RespOkay) begin
        result_q.write_error <= 1'b1;
        if (status_q.sct == '0 && status_q.sc == ScSuccess)
          status_q <= data_status(DataWriteFault, 1'b0);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q inside {StBegin, StWriteAddr}) line_q <= '0;
    else if ((state_q == StReadData && m_axi.r_valid) || (state_q == StWriteData && m_axi.w_ready))
      line_q <= line_q + 1'b1;
    if (fetch) entry_data_q <= list_entry;
    entry_status_q <= entry_status;
  end

  assign done_o = state_q == StDone;
  assign busy_o = state_q != StIdle;
  assign result_o = result_q;
  assign entries_o = succeeded_q;
  assign status_o = status_q;
  assign entry_o = entry_q;

  `NS_ASSERT(one_kernel_selected, $onehot0(select_o))
  `NS_ASSERT(start_when_idle, !start_i || state_q == StIdle)

endmodule
