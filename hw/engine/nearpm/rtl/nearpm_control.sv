// SPDX-License-Identifier: Apache-2.0

// Control of a unit: the sequence of moves of a command, and the log lines that it writes and
// checks.
//
// A command whose records are small has the mover make all of them: it reads the ranges ahead and
// writes each record as it lies in the log. Otherwise a record is written payload first, then
// header. Abort and recover first check all records, and
// change nothing unless all are valid. Abort checks from the last record back, recover from the
// first one on. Then they write back or apply, and write the descriptor last. Each command can
// therefore start again after a power cut at any point.
//
// If the number of records is unknown, the lines after the first invalid header are searched. A
// later header proves that a record is missing. A command that fails writes the required number of
// records to the descriptor, so the error persists.
`include "ns_assert.svh"

module nearpm_control
  import nearpm_pkg::*;
  import nearpm_job_pkg::has_ranges;
  import nearpm_unit_pkg::*;
  import nearpm_log_pkg::*;
(
  input  logic         clk_i,
  input  logic         rst_ni,
  /// Accepted while idle; not used afterwards.
  input  job_t         job_i,
  input  logic         job_valid_i,
  output logic         job_ready_o,
  /// Result of the command, held until it is accepted.
  output unit_end_t         end_o,
  output logic         end_valid_o,
  input  logic         end_ready_i,
  /// Mover.
  output move_t        move_o,
  output logic         move_valid_o,
  input  logic         moved_i,
  /// Next range to read of a command with small records; another one follows `read_last_o`.
  output logic [MediaBits-1:0] read_source_o,
  output logic [16:0]  read_bytes_o,
  output logic         read_last_o,
  input  logic         read_next_i,
  /// The mover has made a small record; `record_last_o`: it is the last one.
  output logic         record_last_o,
  input  logic         record_made_i,
  input  logic         read_error_i,
  input  logic         write_error_i,
  input  logic [511:0] line_i,
  input  logic [31:0]  crc_i,
  input  logic         header_found_i
);

  typedef enum logic [4:0] {
    StIdle,
    StDecode,
    StRecords,  // makes small records
    StCopy,  // payload of a record, or data of a copy
    StHeader,  // writes the header of a record
    StDescriptor,  // writes the descriptor
    StSwitch,
    StReadDescriptor,  // recover: reads the descriptor
    StDescriptorRead,
    StCheckDescriptor,
    StNextRecord,  // before each record
    StReadHeader,  // reads the header of a record
    StCheckHeader,
    StDecide,
    StCheckPayload,  // first pass: reads the payload
    StWriteBack,  // second pass: copies the payload to the object
    StSeek,  // number of records unknown: searches for a later header
    StSecondPass,  // between the passes
    StMark,  // after a failure: writes the descriptor
    StEnd
  } state_e;

  state_e state_q;
  job_t job_q;
  result_t result_q;
  logic move_failed, with_ranges, makes_record, no_record, ends_log, multi_device;

  // Walk over the records.
  logic forward_q;  // from the first record on
  logic second_pass_q;
  logic committed_q;  // recover: redo records are applied
  logic [63:0] generation_q;  // of the records
  logic [31:0] offset_q;  // of the current record
  logic [31:0] number_q;  // expected number
  logic [31:0] previous_q;  // forward: offset of the preceding record
  logic [31:0] next_offset_q;  // backward: offset of the following record; 0: none
  logic [31:0] written_count_q;  // records written back or applied
  logic limited_q;  // the number of records is known
  logic [31:0] limit_q;  // that number
  logic mark_failed_q;  // the descriptor could not be written after a failure
  logic mark_on_failure_q;  // a failure must leave the number of records in the descriptor
  logic [5:0] seeks_q;  // pieces that were searched

  assign with_ranges = has_ranges(job_q.op);
  assign makes_record = job_q.op inside {OpUndo, OpRedo, OpCheckpoint} || with_ranges;
  // A commit of several devices leaves the log unchanged.
  assign multi_device = has_peers(job_q);
  assign ends_log = job_q.op inside {OpCommit, OpDelete, OpAbort, OpRecover} && !multi_device;
  // A record that cannot be made has no bytes: the command fails.
  assign no_record = makes_record && !with_ranges && job_q.bytes == '0;
  assign move_failed = moved_i && (read_error_i || write_error_i);

  // ---------------------------------------------------------------- new records

  // Ranges of the command, and the one that is recorded, or read ahead.
  logic all_small, next_record;
  object_range_t [Ranges-1:0] ranges;
  object_range_t record_range, read_range;
  logic [2:0] record_q, read_q;
  logic [MediaBits-1:0] record_source, record_header_q;
  logic [16:0] record_bytes;
  logic [17:0] record_length;  // with the header, in whole lines
  logic [31:0] record_number_q, record_previous_q;

  assign ranges = {job_q.more, job_q.object[$bits(object_range_t)-1:0]};
  assign record_range = ranges[record_q];
  assign read_range = ranges[read_q];
  assign record_source = with_ranges ? job_q.pool + MediaBits'(record_range.offset) : job_q.source;
  assign record_bytes = with_ranges ? 17'(record_range.bytes) : job_q.bytes;
  assign record_length = (18'(record_bytes) + 18'd127) & ~18'd63;
  assign read_source_o = with_ranges ? job_q.pool + MediaBits'(read_range.offset) : job_q.source;
  assign read_bytes_o = with_ranges ? 17'(read_range.bytes) : job_q.bytes;
  assign record_last_o = !with_ranges || record_q == 3'(Ranges - 1) || ranges[record_q+1'b1].bytes == '0;
  assign read_last_o = !with_ranges || read_q == 3'(Ranges - 1) || ranges[read_q+1'b1].bytes == '0;
  assign next_record = record_made_i || (state_q == StHeader && moved_i);

  // A record of this size is a burst with its header.
  always_comb begin
    all_small = makes_record && (with_ranges || job_q.bytes <= 17'(SmallBytes));
    for (int unsigned n = 0; n < Ranges; n++)
    if (with_ranges && ranges[n].bytes > 16'(SmallBytes)) all_small = 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StDecode) begin
      record_q <= '0;
      read_q <= '0;
      record_header_q <= job_q.target;
      record_number_q <= job_q.number;
      record_previous_q <= job_q.previous;
    end else begin
      if (read_next_i && !read_last_o) read_q <= read_q + 1'b1;
      if (next_record && !record_last_o) begin
        record_q <= record_q + 1'b1;
        record_header_q <= record_header_q + MediaBits'(record_length);
        record_number_q <= record_number_q + 1'b1;
        record_previous_q <= 32'(record_header_q - job_q.base);
      end
    end
  end

  // ---------------------------------------------------------------- log lines

  header_t header, read_header, seek_header;
  descriptor_t descriptor, read_descriptor;
  kind_e kind;

  always_comb begin
    unique case (job_q.op)
      OpUndo, OpUndoRanges:  kind = KindUndo;
      OpRedo:  kind = KindRedo;
      default: kind = KindCheckpoint;
    endcase
    header = '{
        magic: HeaderMagic,
        kind: kind,
        pool: 8'(job_q.log[7:4]),
        thread: 8'(job_q.log[3:0]),
        generation: job_q.value,
        maker: MakerEngine,
        object: with_ranges ? 64'(record_range.offset) : job_q.object,
        bytes: 32'(record_bytes),
        number: record_number_q,
        previous: 64'(record_previous_q),
        transaction: job_q.transaction,
        payload: crc_i,
        default: '0
    };
    // Minimum fields of a later header.
    seek_header = header;
    seek_header.generation = generation_q;
    seek_header.number = number_q;
    descriptor = '{
        magic: DescriptorMagic,
        generation: generation_q + 64'(ends_log && state_q != StMark),
        state: {30'd0, multi_device, job_q.op == OpCommitRedo},
        records: (state_q == StMark && makes_record) ? '1 : (state_q == StMark || multi_device || job_q.op == OpCommitRedo) ? job_q.number : '0,
        transaction: job_q.transaction,
        participants: multi_device ? 8'(job_q.bytes[Devices-1:0]) : '0,
        default: '0
    };
  end

  // Checks of a line that was read. For a walk, `object` of the job holds the bytes of the log.
  logic object_ok, place_ok, end_ok, record_ok;
  logic header_ok_q, place_ok_q, apply_match_q, to_write_back_q, log_ok_q;
  logic [16:0] header_bytes, padded;
  logic [32:0] record_end_q;  // offset of the first byte after the record
  logic [31:0] payload_q, read_previous_q;
  logic [MediaBits-1:0] object_q;
  logic [16:0] bytes_q;
  logic count_known, already_done, spoiled, no_room;

  assign read_header = line_i;
  assign read_descriptor = line_i;
  assign header_bytes = read_header.bytes[16:0];
  assign padded = (header_bytes + 17'd63) & ~17'd63;
  assign object_ok = read_header.bytes != '0 && read_header.bytes <= 32'(MaxBytes) && read_header.object[63:MediaBits] == '0 &&
      (MediaBits + 1)'(read_header.object) + (MediaBits + 1)'(header_bytes) <=
      (MediaBits + 1)'(job_q.pool_last) - (MediaBits + 1)'(job_q.pool) + 1'b1;
  assign place_ok = read_header.previous[63:32] == '0 && read_header.previous[5:0] == '0 && read_header.number == number_q && (
      (number_q == '0) ? read_header.previous == '0 : read_header.previous != '0 && read_header.previous[31:0] < offset_q) &&
      (!forward_q || read_header.previous[31:0] == previous_q);

  always_ff @(posedge clk_i) begin
    if (state_q == StCheckHeader) begin
      header_ok_q <= read_header.magic == HeaderMagic && read_header.crc == crc_i && read_header.zeros == '0 && read_header.maker <= MakerCpuFenced &&
          read_header.kind inside {KindUndo, KindRedo, KindCheckpoint} && read_header.pool == 8'(job_q.log[7:4]) &&
          read_header.thread == 8'(job_q.log[3:0]) && read_header.generation == generation_q && object_ok;
      place_ok_q <= place_ok;
      apply_match_q <= read_header.kind == KindRedo && read_header.object == job_q.object && header_bytes == job_q.bytes;
      to_write_back_q <= (read_header.kind == KindRedo) == committed_q;
      record_end_q <= 33'(offset_q) + 33'd64 + 33'(padded);
      object_q <= (job_q.op == OpApply) ? job_q.target : job_q.pool + read_header.object[MediaBits-1:0];
      bytes_q <= header_bytes;
      payload_q <= read_header.payload;
      read_previous_q <= read_header.previous[31:0];
    end
    log_ok_q <= read_descriptor.magic == DescriptorMagic && read_descriptor.crc == crc_i && read_descriptor.zeros == '0 &&
        ((read_descriptor.participants == '0) ? read_descriptor.state <= 32'd1 : read_descriptor.state == 32'd2);
  end

  // The record ends where the next one starts, or inside the log.
  assign end_ok = 64'(record_end_q) <= job_q.object && (forward_q || next_offset_q == '0 || record_end_q == 33'(next_offset_q));
  assign record_ok = header_ok_q && place_ok_q && end_ok;
  // The contexts know the log that is recovered.
  assign count_known = job_q.number != '1;
  // The log was closed without a descriptor.
  assign spoiled = !count_known && job_q.previous != '0 && read_descriptor.state == '0 && read_descriptor.records == '0;
  // The power failed after the descriptor was written.
  assign already_done = count_known && log_ok_q && read_descriptor.generation == job_q.value + 64'd1 && read_descriptor.state == '0;
  // Bytes left to search, piece by piece, limited to the span that records in flight can cover.
  logic [31:0] bytes_left;
  logic [16:0] seek_bytes;
  logic seek_last;
  assign bytes_left = job_q.object[31:0] - offset_q;
  assign seek_last = bytes_left <= 32'(MaxBytes) || seeks_q == '1;
  assign seek_bytes = (bytes_left > 32'(MaxBytes)) ? 17'(MaxBytes) : bytes_left[16:0];
  // No further record fits into the log.
  assign no_room = 64'(offset_q) + 64'd128 > job_q.object;

  // ---------------------------------------------------------------- state machine

  logic torn, record_done;  // record_done: the walk leaves the record

  always_comb begin
    torn = 1'b0;
    record_done = 1'b0;
    unique case (state_q)
      StCheckDescriptor: torn = !already_done && (!log_ok_q || (count_known ? read_descriptor.generation != job_q.value : spoiled));
      StNextRecord:  torn = forward_q && limited_q && number_q != limit_q && no_room;
      StDecide: begin
        if (job_q.op == OpApply) torn = !header_ok_q || !apply_match_q;
        else if (!record_ok) torn = !forward_q || limited_q;
        else record_done = second_pass_q && !to_write_back_q;
      end
      StCheckPayload: begin
        torn = moved_i && !move_failed && crc_i != payload_q;
        record_done = moved_i;
      end
      StWriteBack:  record_done = moved_i;
      StSeek:  torn = moved_i && !move_failed && header_found_i;
      default: ;
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= StIdle;
    else if (torn || move_failed)
      state_q <= (mark_on_failure_q && state_q != StMark) ? StMark : StEnd;
    else begin
      unique case (state_q)
        StIdle: if (job_valid_i) state_q <= StDecode;
        StDecode:
        unique case (job_q.op)
          OpUndo, OpRedo, OpCheckpoint, OpUndoRanges, OpCheckpointRanges: state_q <= no_record ? StMark : all_small ? StRecords : StCopy;
          OpCopy: state_q <= StCopy;
          OpLogOpen, OpCommit, OpCommitRedo, OpDelete: state_q <= StDescriptor;
          OpSwitch: state_q <= StSwitch;
          OpApply: state_q <= StReadHeader;
          OpAbort: state_q <= StNextRecord;
          OpRecover: state_q <= StReadDescriptor;
          default: state_q <= StEnd;
        endcase
        StCopy: if (moved_i) state_q <= makes_record ? StHeader : StEnd;
        StHeader: if (moved_i) state_q <= record_last_o ? StEnd : StCopy;
        StRecords, StDescriptor, StSwitch, StMark: if (moved_i) state_q <= StEnd;
        StReadDescriptor: if (moved_i) state_q <= StDescriptorRead;
        StDescriptorRead: state_q <= StCheckDescriptor;
        StCheckDescriptor: state_q <= already_done ? StEnd : StNextRecord;
        StNextRecord:
        if (forward_q ? (limited_q && number_q == limit_q) : offset_q == '0)
          state_q <= second_pass_q ? StDescriptor : StSecondPass;
        else state_q <= (forward_q && no_room) ? StSecondPass : StReadHeader;
        StReadHeader: if (moved_i) state_q <= StCheckHeader;
        StCheckHeader: state_q <= StDecide;
        StDecide:
        if (job_q.op == OpApply) state_q <= StCheckPayload;
        else if (!record_ok) state_q <= StSeek;
        else state_q <= !second_pass_q ? StCheckPayload : to_write_back_q ? StWriteBack : StNextRecord;
        StCheckPayload: if (moved_i) state_q <= (job_q.op == OpApply) ? StWriteBack : StNextRecord;
        StSeek: if (moved_i && seek_last) state_q <= StSecondPass;
        StWriteBack: if (moved_i) state_q <= (job_q.op == OpApply) ? StEnd : StNextRecord;
        StSecondPass: state_q <= StNextRecord;
        default: if (end_ready_i) state_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      StIdle: begin
        job_q <= job_i;
        result_q <= '0;
        written_count_q <= '0;
        mark_failed_q <= 1'b0;
        committed_q <= 1'b0;
        limited_q <= 1'b0;
        seeks_q <= '0;
        second_pass_q <= 1'b0;
        previous_q <= '0;
        next_offset_q <= '0;
      end
      StDecode: begin
        generation_q <= job_q.value;
        if (no_record) result_q.log_full <= 1'b1;
        mark_on_failure_q <= makes_record || (job_q.op == OpAbort && job_q.number != '0);
        forward_q <= job_q.op == OpRecover;
        offset_q <= (job_q.op == OpRecover) ? 32'd64 : job_q.previous;
        number_q <= (job_q.op == OpRecover) ? '0 : job_q.number - 1'b1;
      end
      StCheckDescriptor: begin
        generation_q <= read_descriptor.generation;
        committed_q <= read_descriptor.state[0];
        limited_q <= count_known || read_descriptor.state != '0 || read_descriptor.records != '0;
        limit_q <= count_known ? job_q.number : read_descriptor.records;
        // Otherwise the descriptor holds the number.
        mark_on_failure_q <= !torn && count_known && job_q.number != '0 && read_descriptor.state == '0;
      end
      StMark: if (move_failed) mark_failed_q <= 1'b1;
      StSeek:
      if (moved_i) begin
        offset_q <= offset_q + 32'(MaxBytes);
        seeks_q <= seeks_q + 1'b1;
      end
      StSecondPass: begin
        second_pass_q <= 1'b1;
        previous_q <= '0;
        next_offset_q <= '0;
        if (committed_q) begin
          offset_q <= 32'd64;
          number_q <= '0;
        end else begin
          forward_q <= 1'b0;
          offset_q <= forward_q ? previous_q : job_q.previous;
          number_q <= (forward_q ? number_q : job_q.number) - 1'b1;
        end
      end
      default: ;
    endcase
    if (record_done) begin
      if (forward_q) begin
        previous_q <= offset_q;
        offset_q <= record_end_q[31:0];
        number_q <= number_q + 1'b1;
      end else begin
        next_offset_q <= offset_q;
        offset_q <= read_previous_q;
        number_q <= number_q - 1'b1;
      end
    end
    if (state_q == StWriteBack && moved_i) written_count_q <= written_count_q + 1'b1;
    if (torn) result_q.torn <= 1'b1;
    if (moved_i && read_error_i) result_q.read_error <= 1'b1;
    if (moved_i && write_error_i) result_q.write_error <= 1'b1;
  end

  // ---------------------------------------------------------------- moves

  logic [MediaBits-1:0] record_address;  // of the header
  assign record_address = (job_q.op == OpApply) ? job_q.source : job_q.base + MediaBits'(offset_q);

  always_comb begin
    move_o = '{kind: MoveStore, seal: 1'b1, bytes: 17'd64, target: job_q.base, line: descriptor, default: '0};
    move_valid_o = 1'b1;
    unique case (state_q)
      StRecords: begin
        move_o.kind = MoveRecords;
        move_o.pad = 1'b1;
        move_o.source = record_source;
        move_o.target = job_q.target;
        move_o.bytes = record_bytes;
        move_o.length = with_ranges ? {job_q.bytes[12:0], 6'd0} : 19'(record_length);
        move_o.line = header;
      end
      StCopy: begin
        move_o.kind = MoveCopy;
        move_o.pad = makes_record;
        move_o.source = record_source;
        move_o.target = makes_record ? record_header_q + MediaBits'(64) : job_q.target;
        move_o.bytes = record_bytes;
      end
      StHeader: begin
        move_o.target = record_header_q;
        move_o.line = header;
      end
      StDescriptor: ;
      StSwitch: begin
        move_o.seal = 1'b0;
        move_o.target = job_q.target;
        move_o.bytes = 17'd8;
        move_o.line = {8{job_q.value}};
      end
      StReadDescriptor: begin
        move_o.kind = MoveLoad;
        move_o.source = job_q.base;
      end
      StReadHeader: begin
        move_o.kind = MoveLoad;
        move_o.source = record_address;
      end
      StCheckPayload: begin
        move_o.kind = MoveSum;
        move_o.source = record_address + MediaBits'(64);
        move_o.bytes = bytes_q;
      end
      StSeek: begin
        move_o.kind = MoveSeek;
        move_o.source = job_q.base + MediaBits'(offset_q);
        move_o.bytes = seek_bytes;
        move_o.line = seek_header;
      end
      StMark: ;
      StWriteBack: begin
        move_o.kind = MoveCopy;
        move_o.source = record_address + MediaBits'(64);
        move_o.target = object_q;
        move_o.bytes = bytes_q;
      end
      default: move_valid_o = 1'b0;
    endcase
  end

  assign job_ready_o = state_q == StIdle;
  assign end_valid_o = state_q == StEnd;
  always_comb begin
    end_o = '{spoiled: mark_failed_q, result: result_q, value: '0};
    unique case (job_q.op)
      OpUndo, OpRedo, OpCheckpoint, OpUndoRanges, OpCheckpointRanges: end_o.value = 64'(job_q.target - job_q.base);
      OpCommit, OpDelete: end_o.value = job_q.value + 64'(ends_log);
      OpAbort, OpRecover: end_o.value = 64'(written_count_q);
      default: ;
    endcase
    if (result_q != '0) end_o.value = '0;
  end

  logic unused;
  assign unused = ^{read_header.transaction, read_descriptor.transaction};

  `NS_ASSERT(moved_on_request, !moved_i || move_valid_o)

endmodule
