// SPDX-License-Identifier: Apache-2.0

// nvme_decode: each fetched entry becomes one data command, completion, admin command or command
// for nvme_fused_pairing, with its slot. None is lost or duplicated, and none waits when its output
// is free. A data command matches its entry, and lies within its namespace. A completion has the
// first status that applies. An engine receives its entry unchanged.
//
// Any entries (all 64 bytes free), four slots, three queues. Three namespaces, one of them
// inactive. Two opcodes of engines, one of which may not be used in namespace 1. Assumption: slots
// inside are not reused (nvme_slot_table).
`include "ns_assert.svh"

module decode_proof
  import nvme_pkg::*;
  import nvme_ns_pkg::*;
(
  input logic                     clk_i,
  input logic                     rst_ni,
  input logic [1:0]               cmd_qid_i,
  input logic [1:0]               cmd_slot_i,
  input logic [511:0]             cmd_sqe_i,
  input logic                     cmd_error_i,
  input logic                     cmd_more_i,
  input logic                     cmd_valid_i,
  input logic [MaxNamespaces-1:0] formatting_i,
  input logic [2:0]               fused_pending_i,
  input logic                     data_ready_i,
  input logic                     fused_ready_i,
  input logic                     cpl_ready_i,
  input logic                     admin_ready_i,
  input logic [1:0]               watched_i
);

  localparam ns_blocks_t Blocks = {832'd0, 64'd4099, 64'd0, 64'd9};
  localparam longint unsigned MediaBytes = 64'd4128 * 64'd512;

  // Opcodes 81h and FFh.
  localparam engine_route_t Some = '{
      valid: 1'b1,
      changes: 1'b0,
      engine: 3'd2,
      command: 3'd5,
      namespaces: 16'h4
  };
  localparam engine_route_t All = '{
      valid: 1'b1,
      changes: 1'b1,
      engine: 3'd0,
      command: 3'd1,
      namespaces: '1
  };
  localparam engine_routes_t Routes = engine_routes_t'(Some) << $bits(
      engine_route_t
  ) | engine_routes_t'(All) << (127 * $bits(
      engine_route_t
  ));

  logic reset_q = 1'b0;  // has been reset
  always_ff @(posedge clk_i) reset_q <= 1'b1;
  always_comb assume (rst_ni == reset_q);

  // One slot, arbitrary, is watched all the time: its entry is recorded.
  logic [1:0] watched_q;
  always_ff @(posedge clk_i) if (!reset_q) watched_q <= watched_i;

  logic cmd_ready, data_valid, fused_valid, fused_data_op, cpl_valid, admin_valid, owner_valid;
  logic fused_engine, engine_valid;
  logic [511:0] engine_sqe;
  logic [SlotWidth-1:0] engine_slot;
  engine_route_t engine_route;
  logic [NsWidth-1:0] engine_ns;
  owner_t owner;
  logic [QidWidth-1:0] fused_qid;
  logic [7:0] fused_sc;
  logic [1:0] fused_fuse;
  logic fused_more;
  data_cmd_t data;
  cpl_t cpl;
  admin_cmd_t admin;

  nvme_decode #(
    .NumNamespaces(3),
    .NsBlocks     (Blocks),
    .MediaBytes   (MediaBytes),
    .Routes       (Routes),
    .NumQueues    (3)
  ) u_decode (
    .clk_i,
    .rst_ni,
    .cmd_i        ('{
        qid: {5'b0, cmd_qid_i},
        slot: {6'b0, cmd_slot_i},
        error: cmd_error_i,
        more: cmd_more_i,
        sqe: cmd_sqe_i
    }),
    .cmd_valid_i,
    .cmd_ready_o    (cmd_ready),
    .owner_o        (owner),
    .owner_valid_o  (owner_valid),
    .formatting_i,
    .data_o         (data),
    .data_valid_o   (data_valid),
    .data_ready_i,
    .fused_pending_i,
    .fused_qid_o    (fused_qid),
    .fused_fuse_o   (fused_fuse),
    .fused_more_o   (fused_more),
    .fused_sc_o     (fused_sc),
    .fused_data_op_o(fused_data_op),
    .fused_engine_o (fused_engine),
    .fused_valid_o  (fused_valid),
    .fused_ready_i,
    .engine_sqe_o   (engine_sqe),
    .engine_slot_o  (engine_slot),
    .engine_route_o (engine_route),
    .engine_ns_o    (engine_ns),
    .engine_valid_o (engine_valid),
    .cpl_o          (cpl),
    .cpl_valid_o    (cpl_valid),
    .cpl_ready_i,
    .admin_o        (admin),
    .admin_valid_o  (admin_valid),
    .admin_ready_i
  );

  // Slots that are inside.
  logic [3:0]
      inside_q,
      entering,
      leaving_data,
      leaving_fused,
      leaving_cpl,
      leaving_admin,
      leaving_engine,
      leaving;
  logic in_fire;
  assign in_fire = cmd_valid_i && cmd_ready;
  assign entering = in_fire ? 4'd1 << cmd_slot_i : '0;
  assign leaving_data = (data_valid && data_ready_i) ? 4'd1 << data.slot : '0;
  assign leaving_fused = (fused_valid && fused_ready_i) ? 4'd1 << data.slot : '0;
  assign leaving_cpl = (cpl_valid && cpl_ready_i) ? 4'd1 << cpl.slot : '0;
  assign leaving_admin = (admin_valid && admin_ready_i) ? 4'd1 << admin.slot : '0;
  assign leaving_engine = engine_valid ? 4'd1 << engine_slot : '0;
  assign leaving = leaving_data | leaving_fused | leaving_cpl | leaving_admin | leaving_engine;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) inside_q <= '0;
    else inside_q <= (inside_q & ~leaving) | entering;
  end

  `NS_ASSUME(slot_is_free, !cmd_valid_i || (cmd_qid_i != 2'd3 && !inside_q[cmd_slot_i]))

  // The watched entry.
  logic [511:0] sqe_q;
  logic [1:0] qid_q;
  logic error_q, more_q;
  logic format_seen_q, format_always_q, pending_seen_q;  // since its arrival
  logic [1:0] ns_idx;
  logic in_watched;
  assign in_watched = in_fire && cmd_slot_i == watched_q;
  assign ns_idx = sqe_q[33:32] - 1'b1;

  always_ff @(posedge clk_i) begin
    if (in_watched) begin
      {sqe_q, qid_q, error_q, more_q} <= {cmd_sqe_i, cmd_qid_i, cmd_error_i, cmd_more_i};
      format_seen_q <= 1'b0;
      format_always_q <= 1'b1;
      pending_seen_q <= 1'b0;
    end else begin
      format_seen_q <= format_seen_q || formatting_i[ns_idx];
      format_always_q <= format_always_q && formatting_i[ns_idx];
      pending_seen_q <= pending_seen_q || fused_pending_i[qid_q] || (fused_valid && fused_qid == QidWidth'(qid_q));
    end
  end

  // The requirements of the specification, in the documented order; formats separately.
  logic [7:0] opcode, sc;
  logic [31:0] nsid;
  logic [63:0] slba, base, blocks;
  logic [15:0] nlb;
  logic with_lba, with_data, deallocates, for_engine;
  engine_route_t route;
  assign opcode = sqe_q[7:0];
  assign nsid = sqe_q[63:32];
  assign slba = sqe_q[383:320];
  assign nlb = sqe_q[399:384];
  assign with_data = opcode inside {IoRead, IoWrite, IoCompare};
  assign with_lba = with_data || opcode inside {IoWriteZeroes, IoVerify};
  assign deallocates = opcode == IoDatasetManagement && sqe_q[354];

  assign for_engine = opcode == 8'h81 || opcode == 8'hFF;
  assign route = (opcode == 8'h81) ? Some : All;

  always_comb begin
    unique case (nsid)
      32'd1:   {base, blocks} = {64'd0, 64'd9};
      32'd2:   {base, blocks} = {64'd16, 64'd0};
      default: {base, blocks} = {64'd16, 64'd4099};
    endcase
    sc = ScSuccess;
    if (!(with_lba || for_engine || opcode inside {IoFlush, IoDatasetManagement}))
      sc = ScInvalidOpcode;
    else if (sqe_q[9:8] == 2'b11 || sqe_q[15:14] == 2'b11) sc = ScInvalidField;
    else if (opcode == IoFlush && nsid == 32'hFFFF_FFFF) sc = ScSuccess;
    else if (nsid == '0 || nsid > 32'd3) sc = ScInvalidNamespace;
    else if (nsid == 32'd2) sc = ScInvalidField;
    else if (opcode == 8'h81 && nsid == 32'd1) sc = ScInvalidNamespace;
    else if (with_data && 32'(nlb) >= 32'd2048) sc = ScInvalidField;
    else if (with_lba && 66'(slba) + 66'(nlb) + 66'd1 > 66'(blocks)) sc = ScLbaOutOfRange;
  end

  // A data command, or the command for nvme_fused_pairing, matches the entry, and lies within its
  // namespace.
  logic data_matches;
  logic [64:0] data_end;
  assign data_end = 65'(data.mem_addr) + 65'(data.bytes);
  always_comb begin
    data_matches = sc == ScSuccess && data.sgl == (sqe_q[15:14] != '0) &&
        {data.prp2, data.prp1} == sqe_q[319:192] && data.ns == NsWidth'(ns_idx);
    unique case (opcode)
      IoRead:        data_matches &= data.op == OpRead;
      IoWrite:       data_matches &= data.op == OpWrite;
      IoCompare:     data_matches &= data.op == OpCompare;
      IoWriteZeroes: data_matches &= data.op == OpZero;
      IoVerify:      data_matches &= data.op == OpVerify;
      default:       data_matches &= data.op == OpDeallocate && deallocates;
    endcase
    if (with_lba) begin
      data_matches &= 32'(data.bytes) == 32'(nlb) * 32'd512 + 32'd512 && data.mem_addr == {slba[54:0] + base[54:0], 9'd0} &&
          65'(data.mem_addr) >= {1'b0, base[54:0], 9'd0} && data_end <= {1'b0, base[54:0] + blocks[54:0], 9'd0};
    end else begin
      data_matches &= 32'(data.bytes) == 32'(sqe_q[327:320]) * 32'd16 + 32'd16 && data.mem_addr == {base[54:0], 9'd0};
    end
  end
  logic engine_matches;
  assign engine_matches = sc == ScSuccess && for_engine && engine_sqe == sqe_q && engine_route == route && engine_ns == NsWidth'(ns_idx);
  logic may_format, must_format;  // Flush of all namespaces is not affected
  assign may_format = format_seen_q && !(opcode == IoFlush && nsid == '1);
  assign must_format = format_always_q && !(opcode == IoFlush && nsid == '1);
  function automatic logic status_matches(logic [7:0] what, logic [7:0] wanted, logic may_format,
                                          logic must_format);
    if (wanted inside {ScInvalidOpcode, ScInvalidNamespace}) return what == wanted;
    if (what == ScFormatInProgress) return may_format;
    return what == wanted && (!must_format || wanted == ScInvalidField);
  endfunction

  // With all four outputs free, everything inside leaves within three cycles.
  logic [2:0] wait_cycles_q;
  logic free, watched;
  assign free = data_ready_i && fused_ready_i && cpl_ready_i && admin_ready_i;
  assign watched = inside_q[watched_q];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) wait_cycles_q <= '0;
    else if (!free || !watched || leaving[watched_q]) wait_cycles_q <= '0;
    else wait_cycles_q <= wait_cycles_q + 1'b1;
  end

  // What is proven.
  `NS_ASSERT(out_of_inside, (leaving & ~inside_q) == '0)
  `NS_ASSERT(
      one_way,
      (leaving_data & leaving_fused) == '0 && (leaving_data & leaving_cpl) == '0 && (leaving_data & leaving_admin) == '0 && (leaving_fused & leaving_cpl) == '0 && (leaving_fused & leaving_admin) == '0 && (leaving_cpl & leaving_admin) == '0 && (leaving_engine & (leaving_data | leaving_fused | leaving_cpl | leaving_admin)) == '0)
  `NS_ASSERT(
      engine_is_right,
      !(engine_valid && engine_slot == SlotWidth'(watched_q)) || (qid_q != '0 && !error_q && sqe_q[9:8] == '0 && engine_matches && !format_always_q))
  `NS_ASSERT(leaves_in_time, wait_cycles_q < 3'd4)
  `NS_ASSERT(
      owner_written,
      !(owner_valid && owner.slot == SlotWidth'(watched_q)) || (watched && owner.qid == QidWidth'(qid_q) && owner.cid == sqe_q[31:16]))
  `NS_ASSERT(
      data_is_right,
      !(data_valid && data.slot == SlotWidth'(watched_q)) || (qid_q != '0 && !error_q && sqe_q[9:8] == '0 && data_matches && !format_always_q))
  `NS_ASSERT(
      fused_is_right,
      !(fused_valid && data.slot == SlotWidth'(watched_q)) || (qid_q != '0 && !error_q && fused_qid == QidWidth'(qid_q) && fused_fuse == sqe_q[9:8] && fused_more == more_q && (sqe_q[9:8] != '0 || pending_seen_q) && (fused_engine ? engine_matches && fused_sc == ScSuccess && !fused_data_op && data.op == OpDeallocate : fused_data_op ? fused_sc == ScSuccess && data_matches : fused_sc != ScSuccess || !(with_lba || deallocates || for_engine))))
  `NS_ASSERT(
      cpl_is_right,
      !(cpl_valid && cpl.slot == SlotWidth'(watched_q)) || (cpl.silent == error_q && (error_q || (qid_q != '0 && sqe_q[9:8] == '0 && (cpl.status.sc != '0 || !(with_lba || deallocates || for_engine))))))
  `NS_ASSERT(
      admin_is_right,
      !(admin_valid && admin.slot == SlotWidth'(watched_q)) || (qid_q == '0 && !error_q && admin.opcode == opcode && admin.cid == sqe_q[31:16] && admin.nsid == nsid && admin.bad_flags == (sqe_q[9:8] != '0 || sqe_q[15:14] != '0)))
  `NS_ASSERT(
      status_is_right,
      !(cpl_valid && cpl.slot == SlotWidth'(watched_q) && !error_q) || (status_matches(
      cpl.status.sc, sc, may_format, must_format
      ) && cpl.status.sct == '0 && cpl.status.dnr == (cpl.status.sc != '0 && cpl.status.sc != ScFormatInProgress)))

  // Stage of each slot inside; the stages hold the watched entry.
  logic [3:0] stage1, stage2;
  assign stage1 = u_decode.valid1_q ? 4'd1 << u_decode.fields_q.slot : '0;
  assign stage2 = u_decode.valid2_q ? 4'd1 << u_decode.slot_q : '0;
  `NS_ASSERT(
      namespace_known,
      !(u_decode.valid1_q && u_decode.ns_q.valid) || (u_decode.ns_q.idx < NsWidth'(3) && u_decode.ns_q.active == (u_decode.ns_q.idx != NsWidth'(1)) && u_decode.ns_q.base == (u_decode.ns_q.idx == '0 ? LbaWidth'(0) : LbaWidth'(16)) && u_decode.ns_q.blocks == (u_decode.ns_q.idx == '0 ? LbaWidth'(9) : u_decode.ns_q.idx == NsWidth'(1) ? LbaWidth'(0) : LbaWidth'(4099))))
  `NS_ASSERT(five_ways, !u_decode.valid2_q || u_decode.dest_q <= 3'd4)
  `NS_ASSERT(all_somewhere, inside_q == (stage1 | stage2))
  `NS_ASSERT(nowhere_twice, (stage1 & stage2) == '0)
  `NS_ASSERT(
      slots_small,
      !(u_decode.valid1_q && u_decode.fields_q.slot[7:2] != '0) && !(u_decode.valid2_q && u_decode.slot_q[7:2] != '0))
  `NS_ASSERT(
      last_lba_known,
      !u_decode.valid1_q || u_decode.last_lba_q == 65'(u_decode.slba_q) + 65'(u_decode.nlb_q))
  `NS_ASSERT(
      queues_legal,
      !(watched && qid_q == 2'd3) && !(u_decode.valid1_q && u_decode.qid_q > 7'd2) && !(u_decode.valid2_q && u_decode.qid2_q > 7'd2))
  `NS_ASSERT(one_slot_number, !u_decode.valid2_q || u_decode.admin_q.slot == u_decode.slot_q)
  `NS_ASSERT(
      stage1_holds_it,
      !stage1[watched_q] || (u_decode.error_q == error_q && u_decode.qid_q == QidWidth'(qid_q) && u_decode.slba_q == slba && u_decode.nlb_q == nlb && u_decode.more_q == more_q && u_decode.fuse_q == sqe_q[9:8] && u_decode.psdt_q == sqe_q[15:14] && u_decode.fields_q.opcode == opcode && u_decode.fields_q.nsid == nsid && u_decode.fields_q.cid == sqe_q[31:16] && u_decode.fields_q.bad_flags == (sqe_q[9:8] != '0 || sqe_q[15:14] != '0) && {u_decode.fields_q.prp2, u_decode.fields_q.prp1} == sqe_q[319:192] && u_decode.fields_q.cdw10 == sqe_q[351:320] && u_decode.fields_q.cdw11 == sqe_q[383:352] && {u_decode.fields_q.cdw13, u_decode.fields_q.cdw12} == sqe_q[447:384] && u_decode.engine_fields_q == {sqe_q[511:448], sqe_q[191:64], sqe_q[15:8]} && u_decode.route_q == (for_engine ? route : '0) && u_decode.ns_q.valid == (nsid != '0 && nsid < 32'd4) && (!u_decode.ns_q.valid || (u_decode.ns_q.active == (nsid != 32'd2) && u_decode.ns_q.idx == NsWidth'(ns_idx) && u_decode.ns_q.base == base[54:0] && u_decode.ns_q.blocks == blocks[54:0]))))
  `NS_ASSERT(
      stage2_holds_it,
      !(stage2[watched_q] && u_decode.dest_q == 3'd1) || (u_decode.silent_q == error_q && (error_q || (qid_q != '0 && sqe_q[9:8] == '0 && status_matches(
      u_decode.sc_q, sc, may_format, must_format
      ) && (u_decode.sc_q != '0 || !(with_lba || deallocates || for_engine))))))
  `NS_COVER(last_block,
            leaving_data[watched_q] && data.mem_addr == 64'd4114 * 64'd512 && data.op == OpWrite)
  `NS_COVER(wraps,
            leaving_cpl[watched_q] && cpl.status.sc == ScLbaOutOfRange && slba == '1 && nlb != '0)
  `NS_COVER(engine, leaving_engine[watched_q] && opcode == 8'h81)
  `NS_COVER(fused_second_engine, leaving_fused[watched_q] && fused_fuse == '0 && fused_engine)
  `NS_COVER(two_inside, inside_q[1:0] == '1)
  `NS_COVER(format, leaving_cpl[watched_q] && cpl.status.sc == ScFormatInProgress)
  `NS_COVER(fused_second, leaving_fused[watched_q] && fused_fuse == '0 && fused_data_op)
  `NS_COVER(deallocate, leaving_data[watched_q] && data.op == OpDeallocate)
  `NS_COVER(admin_cmd, leaving_admin[watched_q] && !admin.bad_flags)
  `NS_COVER(silent, leaving_cpl[watched_q] && cpl.silent)

endmodule
