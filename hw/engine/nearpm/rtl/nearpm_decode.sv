// SPDX-License-Identifier: Apache-2.0

// Command decode: checks a command, translates its addresses, updates the contexts and inserts it
// into the table. Refused commands, and those that need no unit, are answered here.
//
// Decode takes 6 cycles; the table takes 4 more when no store is in progress.
`include "ns_assert.svh"

module nearpm_decode
  import command_page_pkg::*;
  import nearpm_pkg::*;
  import nearpm_job_pkg::*;
#(
  /// Bytes of the media; the last ReservedBytes belong to no pool.
  parameter longint unsigned MediaBytes = 64'h4000_0000
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  /// No command is started. From a register.
  input  logic                 freeze_i,
  /// The saved state could not be restored: every command is refused. From a register.
  input  logic                 restore_failed_i,
  /// A store is older than the command of the page, and waits for records. No command is started.
  input  logic                 hold_i,
  /// A command is being decoded. From a register.
  output logic                 busy_o,

  /// Command page.
  input  logic [511:0]         cmd_i,
  input  logic [LineWidth-1:0] line_i,
  input  logic                 cmd_valid_i,
  output logic                 cmd_ready_o,
  /// Response to a command that is not inserted into the table.
  output logic                 response_valid_o,
  input  logic                 response_ready_i,
  output result_t              response_o,
  /// Page line of the command and of the response.
  output logic [LineWidth-1:0] line_o,

  /// Contexts.
  output logic                 read_o,
  output logic [LogBits-1:0]   index_o,
  input  pool_t                pool_i,
  input  log_t                 log_i,
  output logic [MediaBits-13:0] first_page_o,
  output logic [MediaBits-13:0] last_page_o,
  input  logic                 pool_overlap_i,
  output logic                 pool_write_o,
  output pool_t                pool_o,
  output logic                 log_write_o,
  output log_t                 log_o,

  /// Transactions of several devices: one-hot number of this device, 0 if it has none.
  /// `completed_i` follows `read_o` by a cycle: the log's last transaction that is complete on this
  /// device.
  input  logic [Devices-1:0]   own_i,
  input  sequence_t            completed_i,

  /// Table: the command is inserted.
  output logic                 insert_valid_o,
  output job_t                 job_o,
  output ranges_t              ranges_o,
  input  logic                 inserted_i
);

  localparam logic [63:0] Usable = MediaBytes - 64'(ReservedBytes);

  typedef enum logic [3:0] {
    StIdle,
    StRead,  // reads the contexts
    StSpan,  // offsets in the pool
    StSum,  // ends of ranges and their bounds
    StCheck,
    StRange,
    StInsert,
    StResponse,
    StAccepted
  } state_e;

  state_e state_q;
  logic [511:0] cmd_q;
  logic [LineWidth-1:0] line_q;

  // ---------------------------------------------------------------- command fields

  logic [63:0] word, address, bytes, target, transaction, value, extra;
  op_e op;
  logic [3:0] thread;
  logic [4:0] threads;  // of a pool to be mapped
  logic [1:0] tracked;
  logic [16:0] padded;

  // Ranges replace all arguments. Each has a byte of the transaction.
  logic with_ranges;
  object_range_t [Ranges-1:0] ranges;
  logic [8*Ranges-1:0] ranges_transaction;
  logic [2:0] range_count;

  assign with_ranges = has_ranges(op);
  assign range_count = word[26:24];
  assign threads = extra[4:0];
  assign tracked = extra[9:8];
  for (genvar n = 0; n < Ranges; n++) begin : gen_range
    localparam int unsigned At = (n == 0) ? 0 : 64 * (n + 1);
    assign ranges[n] = cmd_q[At+:56];
    assign ranges_transaction[8*n+:8] = cmd_q[At+56+:8];
  end

  assign word = cmd_q[127:64];
  always_comb begin
    {extra, value, transaction, target, bytes, address} = cmd_q[511:128];
    if (with_ranges) begin
      {extra, value, target, bytes, address} = '0;
      transaction = 64'(ranges_transaction);
    end
  end
  assign op = op_e'(word[7:0]);
  assign thread = word[19:16];
  assign index_o = {word[11:8], word[19:16]};
  assign padded = (bytes[16:0] + 17'd63) & ~17'd63;
  assign line_o = line_q;

  // Arguments that the operation has. `has_copy_length`: `bytes` is the length of a copy.
  logic has_address, has_bytes, has_target, has_value, has_extra, has_copy_length;
  always_comb begin
    has_address = 1'b0;
    has_bytes = 1'b0;
    has_target = 1'b0;
    has_value = 1'b0;
    has_extra = 1'b0;
    unique case (op)
      OpPoolMap: {has_address, has_bytes, has_target, has_value, has_extra} = '1;
      OpLogOpen, OpCommit: has_value = 1'b1;
      OpUndo, OpCheckpoint: {has_address, has_bytes} = '1;
      OpRedo, OpCopy: {has_address, has_bytes, has_target} = '1;
      OpApply: {has_bytes, has_target, has_value} = '1;
      OpSwitch: {has_target, has_value} = '1;
      default: ;
    endcase
  end
  assign has_copy_length = has_bytes && op != OpPoolMap;

  logic
      op_known,
      reserved,
      unused_argument,
      length_bad,
      unaligned,
      ranges_bad,
      map_bad,
      multi_device,
      multi_device_invalid;
  sequence_t completed_q;
  pool_t pool_q;  // of the command
  assign op_known = op inside {OpPoolMap, OpPoolUnmap, OpLogOpen, OpSync, OpUndo, OpRedo, OpCheckpoint, OpUndoRanges,
                               OpCheckpointRanges, OpCommit, OpCommitRedo, OpApply, OpDelete, OpAbort, OpRecover, OpCopy, OpSwitch};
  assign reserved = word[63:48] != '0 || word[31:27] != '0 || word[23:20] != '0 || word[15:12] != '0 ||
      (!with_ranges && (cmd_q[63:0] != '0 || range_count != '0));
  assign unused_argument = (!has_address && address != '0) || (!has_bytes && bytes != '0) ||
      (!has_target && target != '0) || (!has_value && value != '0) || (!has_extra && extra != '0);
  assign length_bad = has_copy_length && (bytes == '0 || bytes > 64'(MaxBytes));
  assign unaligned = (op == OpCheckpoint && (address[11:0] != '0 || bytes[11:0] != '0)) ||
      (op == OpSwitch && target[2:0] != '0) || (op == OpApply && value[5:0] != '0);
  assign map_bad = op == OpPoolMap && (address[11:0] != '0 || bytes[11:0] != '0 || bytes == '0 || target[11:0] != '0 ||
      transaction[11:0] != '0 || value[5:0] != '0 || value < 64'd192 || value[63:32] != '0 ||
      threads == '0 || threads > 5'(Threads) || extra[63:10] != '0 || extra[7:5] != '0 ||
      (tracked != '0 && (!tracked[0] || threads != 5'd1)));

  // The first `range_count` ranges have bytes, the others are 0.
  always_comb begin
    ranges_bad = with_ranges && range_count == '0;
    for (int unsigned n = 0; n < Ranges; n++) begin
      if (with_ranges && ((32'(range_count) > n) ? ranges[n].bytes == '0 : ranges[n] != '0))
        ranges_bad = 1'b1;
      if (op == OpCheckpointRanges && (ranges[n].bytes[11:0] != '0 || ranges[n].offset[11:0] != '0))
        ranges_bad = 1'b1;
    end
  end

  // Lines of the records of the ranges, and without those of the last record.
  logic [13:0] range_lines, range_lines_q, lines_before, lines_before_q;
  always_comb begin
    range_lines  = '0;
    lines_before = '0;
    for (int unsigned n = 0; n < Ranges; n++) begin
      if (ranges[n].bytes != '0) begin
        lines_before = range_lines;
        range_lines  = range_lines + 14'd1 + 14'((17'(ranges[n].bytes) + 17'd63) >> 6);
      end
    end
  end

  // First and last line of all ranges, from the pool's start on: a stage of a tree each cycle.
  typedef logic [33:0] offset_line_t;
  offset_line_t [7:0] first0_q, last0_q;
  offset_line_t [3:0] first1_q, last1_q;
  offset_line_t [1:0] first2_q, last2_q;
  offset_line_t first3_q, last3_q;

  function automatic offset_line_t lower(offset_line_t a, offset_line_t b);
    return (a < b) ? a : b;
  endfunction

  function automatic offset_line_t higher(offset_line_t a, offset_line_t b);
    return (a > b) ? a : b;
  endfunction

  always_ff @(posedge clk_i) begin
    first0_q[7] <= '1;
    last0_q[7]  <= '0;
    for (int unsigned n = 0; n < Ranges; n++) begin
      first0_q[n] <= (ranges[n].bytes == '0) ? '1 : ranges[n].offset[39:6];
      last0_q[n]  <= (ranges[n].bytes == '0) ? '0 : offset_line_t'((ranges[n].offset + 40'(ranges[n].bytes) - 40'd1) >> 6);
    end
    for (int unsigned n = 0; n < 4; n++) begin
      first1_q[n] <= lower(first0_q[2*n], first0_q[2*n+1]);
      last1_q[n]  <= higher(last0_q[2*n], last0_q[2*n+1]);
    end
    for (int unsigned n = 0; n < 2; n++) begin
      first2_q[n] <= lower(first1_q[2*n], first1_q[2*n+1]);
      last2_q[n]  <= higher(last1_q[2*n], last1_q[2*n+1]);
    end
    first3_q <= lower(first2_q[0], first2_q[1]);
    last3_q  <= higher(last2_q[0], last2_q[1]);
  end

  // A commit of several devices names this device and a transaction above the last complete one. A
  // tracked pool has none.
  assign multi_device = op == OpCommit && value != '0;
  assign multi_device_invalid = multi_device && (value[63:Devices] != '0 || (value[Devices-1:0] & own_i) == '0 ||
      transaction[63:SequenceBits] != '0 || transaction[SequenceBits-1:0] <= completed_q ||
      (pool_q.mapped && pool_q.tracked != '0));

  // ---------------------------------------------------------------- checks against the contexts

  pool_t new_mapping;
  logic mapping_unchanged;
  logic [63:0] address_offset_q, target_offset_q;  // in the pool
  logic [36:0] logs_q;  // bytes of the preceding logs; pool_map: of all logs
  logic [MediaBits-1:0] base_q;  // of the log
  logic [44:0] record_end_q;  // offset in the log of the first byte after the record
  logic
      address_ok_q,
      target_ok_q,
      ranges_ok_q,
      map_ok_q,
      overlap_q,
      invalid_q,
      multi_device_invalid_q;
  result_t refusal, refusal_q;
  job_t job, job_q, job_with_ranges;
  ranges_t ranges_q;

  /// The range lies inside the pool.
  function automatic logic inside_pool(logic [63:0] offset, logic [16:0] count,
                                       logic [MediaBits-1:0] size);
    return offset[63:MediaBits] == '0 &&
        (MediaBits + 1)'(offset[MediaBits-1:0]) + (MediaBits + 1)'(count) <= (MediaBits + 1)'(size);
  endfunction

  assign new_mapping = '{
          mapped: 1'b1,
          process: word[47:32],
          base: address,
          media: target[MediaBits-1:0],
          bytes: bytes[MediaBits-1:0],
          logs: transaction[MediaBits-1:0],
          log_bytes: value[MediaBits-1:0],
          threads: threads,
          tracked: tracked
      };
  assign mapping_unchanged = new_mapping == pool_q;

  logic [36:0] product;
  assign product = 37'((op == OpPoolMap) ? value[31:0] : pool_q.log_bytes[31:0]) *
      37'((op == OpPoolMap) ? threads : {1'b0, thread});

  // Pages of a pool to be mapped.
  logic [MediaBits-13:0] last_page_q;
  assign first_page_o = target[MediaBits-1:12];
  assign last_page_o  = last_page_q;

  always_ff @(posedge clk_i) begin
    last_page_q <= target[MediaBits-1:12] + bytes[MediaBits-1:12] - 1'b1;
    if (state_q == StIdle) begin
      cmd_q  <= cmd_i;
      line_q <= line_i;
    end
    if (state_q == StRead) pool_q <= pool_i;
    if (state_q == StSpan) begin
      address_offset_q <= address - pool_q.base;
      target_offset_q <= target - pool_q.base;
      logs_q <= product;
      invalid_q <= !op_known || reserved || unused_argument || length_bad || unaligned || ranges_bad || map_bad;
      range_lines_q <= range_lines;
      lines_before_q <= lines_before;
      completed_q <= completed_i;
    end
    if (state_q == StSum) begin
      multi_device_invalid_q <= multi_device_invalid;
      base_q <= pool_q.media + pool_q.logs + MediaBits'(logs_q);
      record_end_q <= with_ranges ? 45'(log_i.next) + 45'({range_lines_q, 6'd0}) :
          45'((op == OpApply) ? value[43:0] : 44'(log_i.next)) + 45'd64 + 45'(padded);
      ranges_ok_q <= 1'b1;
      for (int unsigned n = 0; n < Ranges; n++)
      if (with_ranges && !inside_pool(64'(ranges[n].offset), 17'(ranges[n].bytes), pool_q.bytes))
        ranges_ok_q <= 1'b0;
      address_ok_q <= inside_pool(address_offset_q, bytes[16:0], pool_q.bytes);
      target_ok_q <= inside_pool(target_offset_q, (op == OpSwitch) ? 17'd8 : bytes[16:0], pool_q.bytes);
      overlap_q <= 65'(address_offset_q) < 65'(target_offset_q) + 65'(bytes[16:0]) && 65'(target_offset_q) < 65'(address_offset_q) + 65'(bytes[16:0]);
      map_ok_q <= 65'(address) + 65'(bytes) <= {1'b1, 64'd0} && 65'(target) + 65'(bytes) <= 65'(Usable) &&
          65'(transaction) + 65'(logs_q) <= 65'(bytes);
    end
    if (state_q == StCheck) begin
      refusal_q <= refusal;
      job_q <= job;
    end
    if (state_q == StRange) begin
      job_q <= job_with_ranges;
      ranges_q <= ranges_of(job_with_ranges);
    end
  end

  always_comb begin
    refusal = '0;
    if (restore_failed_i) refusal.read_error = 1'b1;
    else if (invalid_q || multi_device_invalid_q) refusal.invalid = 1'b1;
    else if (op == OpPoolMap) begin
      if (!map_ok_q) refusal.out_of_pool = 1'b1;
      else if ((pool_q.mapped && !mapping_unchanged) || pool_overlap_i) refusal.busy = 1'b1;
    end else if (!pool_q.mapped) refusal.unmapped = 1'b1;
    else if (pool_q.process != word[47:32]) refusal.wrong_process = 1'b1;
    else if ((uses_log(op) || op == OpSync) && {1'b0, thread} >= pool_q.threads)
      refusal.unmapped = 1'b1;
    else if ((needs_log(op) || op == OpSync) && !log_i.open) refusal.unmapped = 1'b1;
    else if (op == OpSwitch && log_i.closed) refusal.unmapped = 1'b1;
    else if (has_address && !address_ok_q) refusal.out_of_pool = 1'b1;
    else if (has_target && !target_ok_q) refusal.out_of_pool = 1'b1;
    else if (!ranges_ok_q) refusal.out_of_pool = 1'b1;
    else if (op == OpApply && (value < 64'd64 || value[63:44] != '0 || record_end_q > 45'(log_i.next)))
      refusal.out_of_pool = 1'b1;
    else if (op == OpCopy && overlap_q) refusal.invalid = 1'b1;
    else if (op == OpLogOpen && log_i.open) refusal.busy = 1'b1;
    else if (log_i.committed && (makes_record(op) || op == OpCommit || op == OpAbort))
      refusal.busy = 1'b1;
    else if (log_i.pending && needs_log(op)) refusal.busy = 1'b1;
    else if (makes_record(op) && record_end_q > 45'(pool_q.log_bytes)) refusal.log_full = 1'b1;
  end

  always_comb begin
    job = '{
        more: '0,
        op: op,
        log: index_o,
        source: pool_q.media + address_offset_q[MediaBits-1:0],
        target: pool_q.media + target_offset_q[MediaBits-1:0],
        bytes: multi_device ? 17'(value[Devices-1:0]) : bytes[16:0],
        object: 64'(pool_q.log_bytes),
        value: (op == OpSwitch || op == OpLogOpen) ? value : log_i.generation,
        transaction: transaction,
        number: log_i.records,
        previous: log_i.last,
        base: base_q,
        pool: pool_q.media,
        pool_last: pool_q.media + pool_q.bytes - 1'b1
    };
    if (makes_record(op)) begin
      job.object = (op == OpRedo) ? target_offset_q : address_offset_q;
      job.target = base_q + MediaBits'(log_i.next);
    end
    if (with_ranges) begin
      job.more = ranges[Ranges-1:1];
      job.object = 64'(ranges[0]);
      job.bytes = 17'(range_lines_q);
    end
    if (op == OpApply) begin
      job.object = target_offset_q;
      job.source = base_q + value[MediaBits-1:0];
    end
    if (op == OpRecover && !log_i.open) begin
      job.number = '1;
      job.previous = 32'(log_i.spoiled);
    end
  end

  // The first and the last line of all ranges are known a cycle later.
  always_comb begin
    job_with_ranges = job_q;
    if (with_ranges) begin
      job_with_ranges.source = pool_q.media + MediaBits'({first3_q, 6'd0});
      job_with_ranges.pool_last = pool_q.media + MediaBits'({last3_q, 6'd63});
    end
  end

  assign job_o = job_q;
  assign ranges_o = ranges_q;

  // ---------------------------------------------------------------- state machine

  assign insert_valid_o = state_q == StInsert;
  assign response_valid_o = state_q == StResponse;
  assign response_o = refusal_q;
  assign cmd_ready_o = state_q == StAccepted;
  assign busy_o = state_q != StIdle;
  assign read_o = state_q == StRead;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= StIdle;
    else begin
      unique case (state_q)
        StIdle:   if (cmd_valid_i && !hold_i && (!freeze_i || restore_failed_i)) state_q <= StRead;
        StRead:   state_q <= StSpan;
        StSpan:   state_q <= StSum;
        StSum:    state_q <= StCheck;
        StCheck:  state_q <= StRange;
        StRange:  state_q <= (refusal_q != '0 || op == OpPoolMap) ? StResponse : StInsert;
        StInsert: if (inserted_i) state_q <= StAccepted;
        StResponse: if (response_ready_i && (!freeze_i || restore_failed_i)) state_q <= StAccepted;
        default:  state_q <= StIdle;
      endcase
    end
  end

  // ---------------------------------------------------------------- context update

  logic accepted;  // not refused, in this cycle
  logic [31:0] first;
  assign first = 32'd64;
  assign accepted = insert_valid_o ? inserted_i : response_valid_o && response_ready_i && !freeze_i && refusal_q == '0;

  // Repeating the same mapping changes nothing.
  assign pool_write_o = accepted && (op == OpPoolUnmap || (op == OpPoolMap && !pool_q.mapped));
  always_comb begin
    pool_o = new_mapping;
    pool_o.mapped = op == OpPoolMap;
  end

  assign log_write_o = accepted && uses_log(op) && op != OpApply && (log_i.open || op == OpLogOpen);
  always_comb begin
    log_o = log_i;
    if (makes_record(op)) begin
      log_o.next = record_end_q[31:0];
      log_o.last = log_i.next + (with_ranges ? 32'({lines_before_q, 6'd0}) : '0);
      log_o.records = log_i.records + (with_ranges ? 32'(range_count) : 32'd1);
    end else if (op == OpCommitRedo) log_o.committed = 1'b1;
    else if (multi_device) begin
      log_o.pending = 1'b1;
      log_o.participants = value[Devices-1:0];
      log_o.number = transaction[SequenceBits-1:0];
    end else
      log_o = '{
          spoiled: 1'b0,
          closed: 1'b0,
          open: 1'b1,
          pending: 1'b0,
          participants: '0,
          number: '0,
          committed: 1'b0,
          generation: (op == OpLogOpen) ? value : log_i.generation + 64'd1,
          next: first,
          last: '0,
          records: '0
      };
  end

  `NS_ASSERT(inserted_on_request, !inserted_i || insert_valid_o)

endmodule
