// SPDX-License-Identifier: Apache-2.0

// Shadow doorbells (NVMe 1.4, 5.7 and 7.13). After Doorbell Buffer Config the host writes the
// doorbells of I/O queues to a page of its memory. It writes the doorbell register only when a
// doorbell moves beyond the value in the EventIdx page.
//
// A doorbell is awake or asleep. Asleep, its EventIdx holds the value that the controller has read
// last. The host's next change then writes the register, whose value is ignored: it only wakes the
// doorbell. Awake, its EventIdx is older, and the host writes only its memory. The controller reads
// the shadow of a submission queue when it knows of no more commands, and that of a completion
// queue when a command waits for room. If the value is unchanged, the controller writes EventIdx,
// waits for the write's response, and reads once more. No change can be missed: a host that wrote
// its shadow too late for this read sees the new EventIdx, and writes the register. The doorbell
// then sleeps.
//
// New queues, and queues that exist at the configuration, begin asleep. A command that creates them
// waits for their EventIdx (`armed_o`), so the previous content of the EventIdx page is irrelevant.
// The host compares with its last value in the shadow page. A queue's entries there must be
// initialised: to 0 when it is created, to its doorbells at the configuration. The controller never
// writes that page; Linux and SPDK clear it.
//
// All doorbells pass this block, between nvme_bar0 and the queues; those of the admin queue pass
// unchanged. One doorbell at a time. Assumption: a read does not overtake a write that has its
// response. A read that the host refuses is fatal, as for the queues themselves. Values are checked
// by the receivers of doorbells.
`include "ns_assert.svh"

module nvme_shadow
  import ns_axi_pkg::*;
  import nvme_pkg::*;
#(
  /// Queues, the admin queue included.
  parameter int unsigned NumQueues = 17,
  /// ID of the reads.
  parameter logic [IdWidth-1:0] Id = 12'd2
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  /// From registers and enable_i: a further clock edge could change the state without new input.
  /// db_valid_o is not included.
  output logic                 busy_o,
  /// Commands are fetched; otherwise nothing new begins.
  input  logic                 enable_i,
  /// Controller reset: return to doorbell registers.
  input  logic                 clear_i,

  /// Doorbell Buffer Config.
  input  logic                 set_i,
  /// Page of the shadow doorbells.
  input  logic [63:12]         shadow_i,
  /// Page of EventIdx.
  input  logic [63:12]         event_idx_i,
  /// All sleeping doorbells have their EventIdx.
  output logic                 armed_o,
  /// The host refused a read.
  output logic                 error_o,

  /// A queue is created or deleted.
  input  logic                 cfg_fire_i,
  /// Which.
  input  queue_cfg_t           cfg_i,
  /// Submission queues that exist.
  input  logic [NumQueues-1:0] sq_valid_i,
  /// Completion queues that exist.
  input  logic [NumQueues-1:0] cq_valid_i,
  /// Submission queues with known commands.
  input  logic [NumQueues-1:0] nonempty_i,
  /// A command waits for room in a completion queue.
  input  logic                 full_i,
  /// Which.
  input  logic [QidWidth-1:0]  full_qid_i,

  /// Doorbell register written: its queue.
  input  logic [QidWidth-1:0]  reg_qid_i,
  /// A completion queue's head.
  input  logic                 reg_cq_i,
  /// Value.
  input  logic [PtrWidth-1:0]  reg_value_i,
  input  logic                 reg_valid_i,
  output logic                 reg_ready_o,
  /// Doorbell, from a register or from its shadow: its queue.
  output logic [QidWidth-1:0]  db_qid_o,
  /// A completion queue's head.
  output logic                 db_cq_o,
  /// Value.
  output logic [PtrWidth-1:0]  db_value_o,
  /// The value comes from the shadow page; its queue may have been deleted meanwhile.
  output logic                 db_shadow_o,
  /// Valid; stays until it is accepted.
  output logic                 db_valid_o,
  input  logic                 db_ready_i,
  /// There is no such queue, or the value is not one of its entries. With db_ready_i.
  input  logic                 db_bad_i,

  /// Read address.
  output ax_t                  ar_o,
  output logic                 ar_valid_o,
  input  logic                 ar_ready_i,
  /// Read data.
  input  r_t                   r_i,
  /// Valid; always accepted.
  input  logic                 r_valid_i,
  /// EventIdx to write: address.
  output logic [63:2]          msg_addr_o,
  /// Value.
  output logic [31:0]          msg_data_o,
  output logic                 msg_valid_o,
  input  logic                 msg_ready_i,
  /// Its write response has arrived.
  input  logic                 msg_done_i
);

  // Doorbells are numbered by their position in the page.
  localparam int unsigned Num = 2 * NumQueues;
  localparam int unsigned Bits = idx_width(Num);
  typedef logic [Bits-1:0] idx_t;
  typedef logic [Num-1:0] vector_t;

  typedef enum logic [3:0] {
    StIdle,
    StSelect,     // select a doorbell
    StLastValue,  // read its last value
    StRead,       // send the read of its shadow
    StData,       // wait for it
    StCompare,    // has it changed?
    StDoorbell,   // forward a new value
    StArm,        // write EventIdx
    StArmed       // wait for the write's response
  } state_e;

  function automatic vector_t both(logic [NumQueues-1:0] sq, logic [NumQueues-1:0] cq);
    for (int unsigned q = 0; q < NumQueues; q++) both[2*q+:2] = {cq[q], sq[q]};
  endfunction

  state_e state_q;
  logic on_q;    // configured
  logic all_armed_q;  // configured, and all doorbells of that time have their EventIdx
  logic [63:12] shadow_q, event_idx_q;
  vector_t awake_q, arm_q, full_q, zero_q, gnt_q;
  (* ram_style = "distributed" *) logic [PtrWidth-1:0] last_mem[Num];

  // Doorbells with work, a cycle before the choice. They include the effects of the last doorbell
  // by then.
  vector_t exist, request, request_q, gnt;
  logic any_request, choice_fire, choice_stable_q;
  assign exist = both(sq_valid_i, cq_valid_i);
  assign request = (on_q && enable_i) ? arm_q | (awake_q & exist & both(~nonempty_i, '1) & (full_q | both('1, '0))) : '0;
  assign choice_fire = state_q == StIdle && choice_stable_q && any_request && enable_i;

  ns_rr_arbiter #(
    .N(Num)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .req_i  (request_q),
    .next_i (choice_fire),
    .gnt_o  (gnt),
    .idx_o  (),
    .valid_o(any_request)
  );

  // The current doorbell.
  idx_t idx, idx_q;
  logic only_arm_q;  // it begins to sleep without a read
  logic second_read_q;     // it is read for the second time
  logic woken_q;    // its register has been written meanwhile
  logic queue_changed_q;      // its queue has been created or deleted meanwhile
  logic [PtrWidth-1:0] last_q, value_q;

  always_comb begin
    idx = '0;
    for (int unsigned i = 0; i < Num; i++) if (gnt_q[i]) idx |= idx_t'(i);
  end

  // Doorbell registers. If a write may only wake its doorbell, it waits a cycle for the lookup of
  // its queue.
  logic reg_lookup_q, reg_exists_q;
  idx_t reg_idx, cfg_idx, db_idx;
  logic [QidWidth-1:0] db_qid;
  logic [PtrWidth-1:0] db_value;
  logic db_cq, db_valid, db_ready;
  logic
      wake_valid,
      reg_forward,
      reg_shown_q,
      from_shadow,
      shadow_shown_q,
      cfg_current,
      doorbell_dropped,
      db_fire;

  assign reg_idx = idx_t'({reg_qid_i, reg_cq_i});
  assign cfg_idx = idx_t'({cfg_i.qid, cfg_i.cq});
  assign wake_valid = reg_lookup_q && reg_exists_q && all_armed_q && !reg_shown_q;
  assign reg_forward = reg_valid_i && !wake_valid && (reg_lookup_q || !all_armed_q || reg_shown_q);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) reg_lookup_q <= 1'b0;
    else reg_lookup_q <= reg_valid_i && !reg_ready_o;
  end
  always_ff @(posedge clk_i) reg_exists_q <= reg_qid_i != '0 && exist[reg_idx];

  // A valid doorbell stays, except the tail of a deleted queue.
  assign doorbell_dropped = queue_changed_q && !(idx_q[0] && shadow_shown_q);
  assign from_shadow = state_q == StDoorbell && !reg_shown_q && !doorbell_dropped;
  assign db_qid = from_shadow ? QidWidth'(idx_q[Bits-1:1]) : reg_qid_i;
  assign db_cq = from_shadow ? idx_q[0] : reg_cq_i;
  assign db_value = from_shadow ? value_q : reg_value_i;
  assign db_valid = from_shadow || reg_forward;
  assign db_fire = db_valid && db_ready;
  assign db_idx = idx_t'({db_qid, db_cq});
  assign reg_ready_o = wake_valid || (reg_forward && !from_shadow && db_ready);

  ns_skid #(
    .Width(QidWidth + 1 + PtrWidth + 1)
  ) u_doorbell (
    .clk_i,
    .rst_ni,
    .in_valid_i (db_valid),
    .in_ready_o (db_ready),
    .in_data_i  ({db_qid, db_cq, db_value, from_shadow}),
    .out_valid_o(db_valid_o),
    .out_ready_i(db_ready_i),
    .out_data_o ({db_qid_o, db_cq_o, db_value_o, db_shadow_o})
  );

  // A value is applied when it is accepted and legal. From the shadow page every value is applied,
  // since it would be read forever otherwise.
  logic applied, applied_q;
  idx_t applied_idx, applied_idx_q;
  assign applied_idx = idx_t'({db_qid_o, db_cq_o});
  assign applied = db_valid_o && db_ready_i && (db_shadow_o || !db_bad_i);

  always_ff @(posedge clk_i) if (applied) last_mem[applied_idx] <= db_value_o;

  // The choice is stable again a cycle after the last event.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      request_q <= '0;
      choice_stable_q <= 1'b0;
    end else begin
      request_q <= request;
      choice_stable_q <= state_q == StIdle && !choice_fire && !db_valid && !db_valid_o && !applied_q;
    end
  end

  // Effects follow a cycle later.
  logic arm_request, arm_request_q;  // not yet reported to the host
  logic full_valid_q;
  idx_t arm_request_idx_q, full_idx_q;
  assign arm_request = db_fire && on_q && !all_armed_q && !set_i && !clear_i && db_qid != '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      applied_q <= 1'b0;
      arm_request_q <= 1'b0;
      full_valid_q <= 1'b0;
    end else begin
      applied_q <= applied;
      arm_request_q <= arm_request;
      full_valid_q <= full_i;
    end
  end

  always_ff @(posedge clk_i) begin
    applied_idx_q <= applied_idx;
    arm_request_idx_q <= db_idx;
    full_idx_q <= idx_t'({full_qid_i, 1'b1});
  end

  // Reported to the host from a register: a doorbell that begins to wait for its EventIdx in this
  // cycle is included.
  logic armed, armed_q;
  assign armed = arm_q == '0 && !arm_request_q && (state_q == StIdle || !(only_arm_q || state_q == StSelect));
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) armed_q <= 1'b0;
    else armed_q <= armed && !arm_request && !cfg_fire_i && !set_i;
  end

  // The answer of the read.
  logic changed, r_error;
  logic [3:0] lane;
  assign lane = 4'(idx_q);
  assign changed = value_q != last_q;
  assign r_error = r_i.resp[1];
  assign error_o = state_q == StData && r_valid_i && r_error;
  assign cfg_current = cfg_fire_i && cfg_idx == idx_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      reg_shown_q <= 1'b0;
      shadow_shown_q <= 1'b0;
      on_q <= 1'b0;
      all_armed_q <= 1'b0;
      awake_q <= '0;
      arm_q <= '0;
      full_q <= '0;
      zero_q <= '1;
    end else begin
      reg_shown_q <= reg_forward && !from_shadow && !db_ready;
      shadow_shown_q <= from_shadow && !db_ready;

      unique case (state_q)
        StIdle: if (choice_fire) state_q <= StSelect;
        StSelect: state_q <= StLastValue;
        StLastValue: state_q <= only_arm_q ? StArm : StRead;
        StRead: if (ar_ready_i) state_q <= StData;
        StData: if (r_valid_i) state_q <= r_error ? StIdle : StCompare;
        StCompare: begin
          if (queue_changed_q || cfg_current) state_q <= StIdle;
          else if (changed) state_q <= StDoorbell;
          else state_q <= second_read_q ? StIdle : StArm;
        end
        StDoorbell: if (doorbell_dropped || (from_shadow && db_ready)) state_q <= StIdle;
        StArm: if (msg_ready_i) state_q <= StArmed;
        default: if (msg_done_i) state_q <= (only_arm_q || queue_changed_q) ? StIdle : StRead;
      endcase

      // Sleep, unless the doorbell has been woken meanwhile.
      if (state_q == StCompare && second_read_q && !changed && !woken_q) awake_q[idx_q] <= 1'b0;
      if (wake_valid) awake_q[reg_idx] <= 1'b1;
      if (state_q == StSelect) arm_q <= arm_q & ~gnt_q;
      if (full_valid_q) full_q[full_idx_q] <= 1'b1;
      if (applied_q) begin
        full_q[applied_idx_q] <= 1'b0;
        zero_q[applied_idx_q] <= 1'b0;
      end
      if (arm_request_q) arm_q[arm_request_idx_q] <= 1'b1;
      if (on_q && armed) all_armed_q <= 1'b1;

      if (cfg_fire_i) begin
        awake_q[cfg_idx] <= 1'b0;
        full_q[cfg_idx] <= 1'b0;
        zero_q[cfg_idx] <= 1'b1;
        arm_q[cfg_idx] <= on_q && cfg_i.create && cfg_i.qid != '0;
      end
      if (set_i) begin
        on_q <= 1'b1;
        all_armed_q <= 1'b0;
        // Repeated configuration: earlier register writes may have woken doorbells.
        if (!on_q) awake_q <= '0;
        arm_q <= {exist[Num-1:2], 2'b00};
      end
      if (clear_i) begin
        on_q <= 1'b0;
        all_armed_q <= 1'b0;
        awake_q <= '0;
        arm_q <= '0;
        full_q <= '0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (set_i) begin
      shadow_q <= shadow_i;
      event_idx_q <= event_idx_i;
    end
    if (choice_fire) gnt_q <= gnt;
    if (state_q == StSelect) begin
      idx_q <= idx;
      only_arm_q <= (gnt_q & arm_q) != '0;
      second_read_q <= 1'b0;
    end
    if (state_q == StArm) second_read_q <= 1'b1;
    if (state_q == StLastValue) last_q <= zero_q[idx_q] ? '0 : last_mem[idx_q];
    if (state_q == StData) value_q <= r_i.data[32*lane+:PtrWidth];

    // Recorded from before the last value is read.
    if (state_q == StSelect) begin
      woken_q <= wake_valid && reg_idx == idx;
      queue_changed_q <= set_i || (cfg_fire_i && cfg_idx == idx);
    end else begin
      if (wake_valid && reg_idx == idx_q) woken_q <= 1'b1;
      if (set_i || cfg_current) queue_changed_q <= 1'b1;
    end
  end

  assign ar_o = '{
      id: Id,
      len: 8'd0,
      size: 3'd6,
      burst: BurstIncr,
      addr: {shadow_q, 12'(idx_q) << 2}
  };
  assign ar_valid_o = state_q == StRead;
  assign msg_addr_o = {event_idx_q, 10'(idx_q)};
  assign msg_data_o = 32'(last_q);
  assign msg_valid_o = state_q == StArm;

  assign armed_o = armed_q;
  assign busy_o = state_q != StIdle || applied_q || arm_request_q || full_valid_q || request != '0 || request_q != '0 || armed != armed_q;

  logic unused;
  assign unused = ^{r_i.id, r_i.last, r_i.resp[0], cfg_i};

  `NS_ASSERT(one_source, !(from_shadow && reg_shown_q))
  `NS_ASSERT(data_expected, !r_valid_i || state_q == StData)
  `NS_ASSERT(response_expected, !msg_done_i || state_q == StArmed)
  `NS_ASSERT(admin_never_asleep, !awake_q[0] && !awake_q[1] && !arm_q[0] && !arm_q[1])
  `NS_ASSERT(clear_only_when_quiet, !clear_i || state_q == StIdle)

endmodule
