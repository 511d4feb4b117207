// The order of a command's moves, and the lines of the log that it writes and reads.
//
// A record is its payload, then its header. Abort and recover first look at all of the records, and change nothing unless all are
// whole: abort from the last one back, recover from the first one on; then they write back, or apply. The descriptor comes last. So
// each command may begin again from its start, wherever it was cut off. Where nobody knows how many records there are, those behind the
// first header that is not there are looked for: one that is there tells of a hole. A command that fails leaves in the descriptor how many
// records the log has to have from now on, so that nothing forgets it.
`include "ns_assert.svh"

module nearpm_control
  import nearpm_pkg::*;
  import nearpm_unit_pkg::*;
  import nearpm_log_pkg::*;
(
  input  logic         clk_i,
  input  logic         rst_ni,
  /// Taken while it rests; not looked at afterwards.
  input  job_t         job_i,
  input  logic         job_valid_i,
  output logic         job_ready_o,
  /// How it ended; stays until it is taken.
  output end_t         end_o,
  output logic         end_valid_o,
  input  logic         end_ready_i,
  /// The mover.
  output move_t        move_o,
  output logic         move_valid_o,
  input  logic         moved_i,
  input  logic         read_error_i,
  input  logic         write_error_i,
  input  logic [511:0] line_i,
  input  logic [31:0]  crc_i,
  input  logic         seen_i
);

  typedef enum logic [4:0] {
    StIdle,
    StBegin,
    StCopy,        // payload, or the bytes of a copy
    StHeader,      // writes a record's
    StDescriptor,  // writes the log's
    StSwitch,
    StFind,        // recover: reads the descriptor
    StFetched,
    StFound,
    StStep,        // in front of a record
    StLoad,        // reads its header
    StLook,
    StJudge,
    StSum,         // first pass: reads its payload
    StBack,        // second pass: copies it to the object
    StSeek,        // nobody knows of further records: looks for one
    StTurn,        // between the passes
    StMark,        // failed: writes the descriptor
    StEnd
  } state_e;

  state_e state_q;
  job_t job_q;
  result_t result_q;
  logic failed, records, ends_log, pends;

  // The walk.
  logic forward_q;  // from the first record on
  logic write_q;  // second pass
  logic committed_q;  // of recover: redo records are applied
  logic [63:0] generation_q;  // of the records
  logic [31:0] at_q;  // offset of the record that is looked at
  logic [31:0] number_q;  // it should have
  logic [31:0] previous_q;  // forward: offset of the record before
  logic [31:0] behind_q;  // backward: offset of the record behind; 0: there is none
  logic [31:0] count_q;  // records written back or applied
  logic limited_q;  // it is known how many records there are
  logic [31:0] limit_q;  // so many
  logic spoils_q;  // that could not be written
  logic marks_q;  // the log has to have its records when this fails
  logic [5:0] seeks_q;  // pieces that have been looked through

  assign records = job_q.op inside {OpUndo, OpRedo, OpCheckpoint};
  // A commit of several devices leaves the log as it is.
  assign pends = has_peers(job_q);
  assign ends_log = job_q.op inside {OpCommit, OpDelete, OpAbort, OpRecover} && !pends;
  assign failed = moved_i && (read_error_i || write_error_i);

  // ---------------------------------------------------------------- lines

  header_t header, seen, wanted;
  descriptor_t descriptor, found;
  kind_e kind;

  always_comb begin
    unique case (job_q.op)
      OpUndo:  kind = KindUndo;
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
        object: job_q.object,
        bytes: 32'(job_q.bytes),
        number: job_q.number,
        previous: 64'(job_q.previous),
        transaction: job_q.transaction,
        payload: crc_i,
        default: '0
    };
    // What the record that is looked for has at least.
    wanted = header;
    wanted.generation = generation_q;
    wanted.number = number_q;
    descriptor = '{
        magic: DescriptorMagic,
        generation: generation_q + 64'(ends_log && state_q != StMark),
        state: {30'd0, pends, job_q.op == OpCommitRedo},
        records: (state_q == StMark && records) ? '1 : (state_q == StMark || pends || job_q.op == OpCommitRedo) ? job_q.number : '0,
        transaction: job_q.transaction,
        participants: pends ? 8'(job_q.bytes[Devices-1:0]) : '0,
        default: '0
    };
  end

  // What has been read. Bytes of the log stand in `object` of a job that walks.
  logic object_ok, before_ok, end_ok, whole;
  logic header_ok_q, place_ok_q, applies_q, wanted_q, log_ok_q;
  logic [16:0] seen_bytes, padded;
  logic [32:0] end_q;  // offset behind the record
  logic [31:0] payload_q, before_q;
  logic [MediaBits-1:0] object_q;
  logic [16:0] bytes_q;
  logic known, again, spoiled, no_room;

  assign seen = line_i;
  assign found = line_i;
  assign seen_bytes = seen.bytes[16:0];
  assign padded = (seen_bytes + 17'd63) & ~17'd63;
  assign object_ok = seen.bytes != '0 && seen.bytes <= 32'(MaxBytes) && seen.object[63:MediaBits] == '0 &&
      (MediaBits + 1)'(seen.object) + (MediaBits + 1)'(seen_bytes) <=
      (MediaBits + 1)'(job_q.pool_last) - (MediaBits + 1)'(job_q.pool) + 1'b1;
  assign before_ok = seen.previous[63:32] == '0 && seen.previous[5:0] == '0 && seen.number == number_q && (
      (number_q == '0) ? seen.previous == '0 : seen.previous != '0 && seen.previous[31:0] < at_q) &&
      (!forward_q || seen.previous[31:0] == previous_q);

  always_ff @(posedge clk_i) begin
    if (state_q == StLook) begin
      header_ok_q <= seen.magic == HeaderMagic && seen.crc == crc_i && seen.zeros == '0 && seen.maker <= MakerCpuBehind &&
          seen.kind inside {KindUndo, KindRedo, KindCheckpoint} && seen.pool == 8'(job_q.log[7:4]) &&
          seen.thread == 8'(job_q.log[3:0]) && seen.generation == generation_q && object_ok;
      place_ok_q <= before_ok;
      applies_q <= seen.kind == KindRedo && seen.object == job_q.object && seen_bytes == job_q.bytes;
      wanted_q <= (seen.kind == KindRedo) == committed_q;
      end_q <= 33'(at_q) + 33'd64 + 33'(padded);
      object_q <= (job_q.op == OpApply) ? job_q.target : job_q.pool + seen.object[MediaBits-1:0];
      bytes_q <= seen_bytes;
      payload_q <= seen.payload;
      before_q <= seen.previous[31:0];
    end
    log_ok_q <= found.magic == DescriptorMagic && found.crc == crc_i && found.zeros == '0 &&
        ((found.participants == '0) ? found.state <= 32'd1 : found.state == 32'd2);
  end

  // It ends where the next one begins, or inside of the log.
  assign end_ok = 64'(end_q) <= job_q.object && (forward_q || behind_q == '0 || end_q == 33'(behind_q));
  assign whole = header_ok_q && place_ok_q && end_ok;
  // What the contexts know of the log that is to be recovered.
  assign known = job_q.number != '1;
  // Closed when its descriptor could not be written.
  assign spoiled = !known && job_q.previous != '0 && found.state == '0 && found.records == '0;
  // It was cut off behind its last line.
  assign again = known && log_ok_q && found.generation == job_q.value + 64'd1 && found.state == '0;
  // What is left to look through, a piece at a time, and only so far as records can have been under way.
  logic [31:0] left;
  logic [16:0] piece;
  logic last_piece;
  assign left = job_q.object[31:0] - at_q;
  assign last_piece = left <= 32'(MaxBytes) || seeks_q == '1;
  assign piece = (left > 32'(MaxBytes)) ? 17'(MaxBytes) : left[16:0];
  // No record fits behind the last one.
  assign no_room = 64'(at_q) + 64'd128 > job_q.object;

  // ---------------------------------------------------------------- states

  logic torn, past;  // past: the record is done with

  always_comb begin
    torn = 1'b0;
    past = 1'b0;
    unique case (state_q)
      StFound: torn = !again && (!log_ok_q || (known ? found.generation != job_q.value : spoiled));
      StStep:  torn = forward_q && limited_q && number_q != limit_q && no_room;
      StJudge: begin
        if (job_q.op == OpApply) torn = !header_ok_q || !applies_q;
        else if (!whole) torn = !forward_q || limited_q;
        else past = write_q && !wanted_q;
      end
      StSum: begin
        torn = moved_i && !failed && crc_i != payload_q;
        past = moved_i;
      end
      StBack:  past = moved_i;
      StSeek:  torn = moved_i && !failed && seen_i;
      default: ;
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= StIdle;
    else if (torn || failed) state_q <= (marks_q && state_q != StMark) ? StMark : StEnd;
    else begin
      unique case (state_q)
        StIdle: if (job_valid_i) state_q <= StBegin;
        StBegin:
        unique case (job_q.op)
          OpUndo, OpRedo, OpCheckpoint, OpCopy: state_q <= StCopy;
          OpLogOpen, OpCommit, OpCommitRedo, OpDelete: state_q <= StDescriptor;
          OpSwitch: state_q <= StSwitch;
          OpApply: state_q <= StLoad;
          OpAbort: state_q <= StStep;
          OpRecover: state_q <= StFind;
          default: state_q <= StEnd;
        endcase
        StCopy: if (moved_i) state_q <= records ? StHeader : StEnd;
        StHeader, StDescriptor, StSwitch, StMark: if (moved_i) state_q <= StEnd;
        StFind: if (moved_i) state_q <= StFetched;
        StFetched: state_q <= StFound;
        StFound: state_q <= again ? StEnd : StStep;
        StStep:
        if (forward_q ? (limited_q && number_q == limit_q) : at_q == '0)
          state_q <= write_q ? StDescriptor : StTurn;
        else state_q <= (forward_q && no_room) ? StTurn : StLoad;
        StLoad: if (moved_i) state_q <= StLook;
        StLook: state_q <= StJudge;
        StJudge:
        if (job_q.op == OpApply) state_q <= StSum;
        else if (!whole) state_q <= StSeek;
        else state_q <= !write_q ? StSum : wanted_q ? StBack : StStep;
        StSum: if (moved_i) state_q <= (job_q.op == OpApply) ? StBack : StStep;
        StSeek: if (moved_i && last_piece) state_q <= StTurn;
        StBack: if (moved_i) state_q <= (job_q.op == OpApply) ? StEnd : StStep;
        StTurn: state_q <= StStep;
        default: if (end_ready_i) state_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      StIdle: begin
        job_q <= job_i;
        result_q <= '0;
        count_q <= '0;
        spoils_q <= 1'b0;
        committed_q <= 1'b0;
        limited_q <= 1'b0;
        seeks_q <= '0;
        write_q <= 1'b0;
        previous_q <= '0;
        behind_q <= '0;
      end
      StBegin: begin
        generation_q <= job_q.value;
        marks_q <= records || (job_q.op == OpAbort && job_q.number != '0);
        forward_q <= job_q.op == OpRecover;
        at_q <= (job_q.op == OpRecover) ? 32'd64 : job_q.previous;
        number_q <= (job_q.op == OpRecover) ? '0 : job_q.number - 1'b1;
      end
      StFound: begin
        generation_q <= found.generation;
        committed_q <= found.state[0];
        limited_q <= known || found.state != '0 || found.records != '0;
        limit_q <= known ? job_q.number : found.records;
        // Else the descriptor says it.
        marks_q <= !torn && known && job_q.number != '0 && found.state == '0;
      end
      StMark: if (failed) spoils_q <= 1'b1;
      StSeek:
      if (moved_i) begin
        at_q <= at_q + 32'(MaxBytes);
        seeks_q <= seeks_q + 1'b1;
      end
      StTurn: begin
        write_q <= 1'b1;
        previous_q <= '0;
        behind_q <= '0;
        if (committed_q) begin
          at_q <= 32'd64;
          number_q <= '0;
        end else begin
          forward_q <= 1'b0;
          at_q <= forward_q ? previous_q : job_q.previous;
          number_q <= (forward_q ? number_q : job_q.number) - 1'b1;
        end
      end
      default: ;
    endcase
    if (past) begin
      if (forward_q) begin
        previous_q <= at_q;
        at_q <= end_q[31:0];
        number_q <= number_q + 1'b1;
      end else begin
        behind_q <= at_q;
        at_q <= before_q;
        number_q <= number_q - 1'b1;
      end
    end
    if (state_q == StBack && moved_i) count_q <= count_q + 1'b1;
    if (torn) result_q.torn <= 1'b1;
    if (moved_i && read_error_i) result_q.read_error <= 1'b1;
    if (moved_i && write_error_i) result_q.write_error <= 1'b1;
  end

  // ---------------------------------------------------------------- moves

  logic [MediaBits-1:0] record;  // the header's address
  assign record = (job_q.op == OpApply) ? job_q.source : job_q.base + MediaBits'(at_q);

  always_comb begin
    move_o = '{kind: MoveStore, seal: 1'b1, bytes: 17'd64, target: job_q.base, line: descriptor, default: '0};
    move_valid_o = 1'b1;
    unique case (state_q)
      StCopy: begin
        move_o.kind = MoveCopy;
        move_o.pad = records;
        move_o.source = job_q.source;
        move_o.target = records ? job_q.target + MediaBits'(64) : job_q.target;
        move_o.bytes = job_q.bytes;
      end
      StHeader: begin
        move_o.target = job_q.target;
        move_o.line = header;
      end
      StDescriptor: ;
      StSwitch: begin
        move_o.seal = 1'b0;
        move_o.target = job_q.target;
        move_o.bytes = 17'd8;
        move_o.line = {8{job_q.value}};
      end
      StFind: begin
        move_o.kind = MoveLoad;
        move_o.source = job_q.base;
      end
      StLoad: begin
        move_o.kind = MoveLoad;
        move_o.source = record;
      end
      StSum: begin
        move_o.kind = MoveSum;
        move_o.source = record + MediaBits'(64);
        move_o.bytes = bytes_q;
      end
      StSeek: begin
        move_o.kind = MoveSeek;
        move_o.source = job_q.base + MediaBits'(at_q);
        move_o.bytes = piece;
        move_o.line = wanted;
      end
      StMark: ;
      StBack: begin
        move_o.kind = MoveCopy;
        move_o.source = record + MediaBits'(64);
        move_o.target = object_q;
        move_o.bytes = bytes_q;
      end
      default: move_valid_o = 1'b0;
    endcase
  end

  assign job_ready_o = state_q == StIdle;
  assign end_valid_o = state_q == StEnd;
  always_comb begin
    end_o = '{spoils: spoils_q, result: result_q, value: '0};
    unique case (job_q.op)
      OpUndo, OpRedo, OpCheckpoint: end_o.value = 64'(job_q.target - job_q.base);
      OpCommit, OpDelete: end_o.value = job_q.value + 64'(ends_log);
      OpAbort, OpRecover: end_o.value = 64'(count_q);
      default: ;
    endcase
    if (result_q != '0) end_o.value = '0;
  end

  logic unused;
  assign unused = ^{seen.transaction, found.transaction};

  `NS_ASSERT(moves_what_was_asked_for, !moved_i || move_valid_o)

endmodule
