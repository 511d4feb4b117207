// Several devices: what this one and its peers have completed of transactions, and when a log's records may be deleted. README.md, "Several devices".
//
// What is known of a log is a row of a memory. Three things read and write rows, one at a time, three cycles each: what a peer tells, a commit that has ended here,
// and the walk, which has a list of logs that there may be something to do for: peers are told, and once all have completed the transaction a unit writes
// the descriptor of the empty log. Only the walk waits for anything: a unit, or the host port. So whatever a peer tells is taken at once, and no command waits for a peer.
//
// While the walk deletes, `hold_o` keeps units from commands that touch the log as a whole, whose turn may have come meanwhile.
`include "ns_assert.svh"

module nearpm_peers
  import ns_axi_pkg::*;
  import nearpm_pkg::*;
(
  input  logic                 clk_i,
  input  logic                 rst_ni,
  /// Nothing is begun; what has ended is still taken down. From a register.
  input  logic                 freeze_i,
  /// From registers.
  output logic                 busy_o,

  /// Registers: the own number, if there is one; which log is shown; peers' addresses in 4 KiB.
  input  logic                 numbered_i,
  input  logic [DeviceBits-1:0] own_i,
  input  logic [LogBits-1:0]   select_i,
  input  logic [Devices-1:0][51:0] addresses_i,
  /// A peer's address has been written. For one cycle, from registers.
  input  logic [Devices-1:0]   introduced_i,
  /// A peer tells `words_i`: for one cycle, from registers, while `told_o` says that nothing which was told before waits.
  input  logic [Devices-1:0]   told_i,
  output logic                 told_o,
  input  completion_t [Devices-1:0] words_i,
  /// What is known of the selected log, and the highest transaction of all.
  output peers_row_t           view_o,
  output sequence_t            highest_o,
  /// They are of the log that is selected now, and of all that has been told or has ended here. From registers, and `select_i`.
  output logic                 settled_o,

  /// A command's log is looked at; a cycle later, what has been completed of it here.
  input  logic                 look_i,
  input  logic [LogBits-1:0]   look_log_i,
  output sequence_t            completed_o,

  /// A commit has ended without an error. From registers.
  input  logic                 ended_i,
  input  logic [LogBits-1:0]   ended_log_i,
  input  logic [63:0]          ended_generation_i,
  output logic                 ended_ready_o,

  /// Contexts, while no command is judged: a log is read, and comes a cycle later, its pool and whether it is open at once; or it is written.
  input  logic                 rests_i,
  output logic                 read_o,
  output logic                 write_o,
  output logic [LogBits-1:0]   log_o,
  output log_t                 new_log_o,
  input  pool_t                pool_i,
  input  logic                 open_i,
  input  log_t                 log_i,
  /// Others write that log, or its pool, or close it.
  input  logic                 changes_i,
  input  logic [LogBits-1:0]   changes_log_i,
  input  logic                 unmaps_i,
  input  logic                 closes_i,
  input  logic [LogBits-1:0]   closes_log_i,

  /// A unit is to write the descriptor of an empty log. `deleted_i`: it has, or could not; then the log is closed in that cycle.
  output logic                 delete_valid_o,
  output delete_t              delete_o,
  input  logic                 delete_ready_i,
  input  logic                 deleted_i,
  output logic                 hold_o,

  /// Lines of the reserved range: 0 the number, then the logs. Data come a cycle later.
  input  logic [LogBits:0]     save_index_i,
  output logic [511:0]         save_data_o,
  output logic                 restore_own_o,
  output logic                 restored_numbered_o,
  output logic [DeviceBits-1:0] restored_own_o,
  input  logic                 restore_i,
  input  logic [LogBits:0]     restore_index_i,
  input  logic [511:0]         restore_data_i,

  /// To the peers.
  ns_axi_if.master             m_host
);

  localparam int unsigned Logs = Pools * Threads;
  typedef logic [LogBits-1:0] number_t;

  // Not the thread.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic [LogBits-ThreadBits-1:0] pool_of(number_t log);
    // verilator lint_on UNUSEDSIGNAL
    return log[LogBits-1:ThreadBits];
  endfunction

  // ---------------------------------------------------------------- what comes in

  // Under another number nothing is left of what was known.
  logic numbered_q, forget;
  logic [DeviceBits-1:0] own_q;
  assign forget = !freeze_i && (numbered_q != numbered_i || own_q != own_i);

  logic told_q, ended_q, takes_told, takes_ended;
  logic [DeviceBits-1:0] peer_q;
  completion_t word_q;
  number_t ended_log_q;
  logic [63:0] ended_generation_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      numbered_q <= 1'b0;
      own_q <= '0;
      told_q <= 1'b0;
      ended_q <= 1'b0;
    end else begin
      // A number that the host gives before what was kept is back stands against the one that was kept.
      if (restore_own_o) begin
        numbered_q <= restored_numbered_o;
        own_q <= restored_own_o;
      end else if (!freeze_i) begin
        numbered_q <= numbered_i;
        own_q <= own_i;
      end
      if (takes_told || forget) told_q <= 1'b0;
      for (int unsigned n = 0; n < Devices; n++)
      if (told_i[n] && numbered_i && own_i != DeviceBits'(n) && !freeze_i) told_q <= 1'b1;
      // That of a pool which somebody else may have from now on completes nothing.
      if (takes_ended || (unmaps_i && pool_of(changes_log_i) == pool_of(ended_log_q)))
        ended_q <= 1'b0;
      if (ended_i && !(unmaps_i && pool_of(changes_log_i) == pool_of(ended_log_i))) ended_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned n = 0; n < Devices; n++) begin
      if (told_i[n]) begin
        peer_q <= DeviceBits'(n);
        word_q <= words_i[n];
      end
    end
    if (ended_i) begin
      ended_log_q <= ended_log_i;
      ended_generation_q <= ended_generation_i;
    end
  end

  assign told_o = told_q;
  assign ended_ready_o = !ended_q;

  // ---------------------------------------------------------------- rows

  typedef enum logic [2:0] {
    ForNobody,
    ForTold,
    ForEnded,
    ForWalk,   // the walk looks
    ForAll,    // it notes that all are complete
    ForView
  } who_e;

  // A row is read, a cycle later it is here, and another one later it is written.
  who_e who, here_q, writes_q;
  logic walk_looks, walk_empties, write_row, row_valid_q, stale_q, free;
  number_t read_log, here_log_q, writes_log_q, walk_log_q, select_q;
  peers_row_t stored, row, row_q, new_row;
  logic [Logs-1:0] valid_q;  // else nothing is known
  logic restore_row;
  number_t restore_log, save_log;

  assign restore_row = restore_i && restore_index_i != '0;
  assign restore_log = number_t'(restore_index_i - 1'b1);
  assign save_log = number_t'(save_index_i - 1'b1);
  assign free = !look_i && here_q == ForNobody && writes_q == ForNobody && !forget;

  always_comb begin
    who = ForNobody;
    read_log = freeze_i ? save_log : select_i;
    if (look_i) read_log = look_log_i;
    if (free) begin
      if (told_q) begin
        who = ForTold;
        read_log = word_q.log;
      end else if (ended_q && (rests_i || freeze_i)) begin
        who = ForEnded;
        read_log = ended_log_q;
      end else if ((walk_looks || walk_empties) && rests_i && !freeze_i) begin
        who = walk_looks ? ForWalk : ForAll;
        read_log = walk_log_q;
      end else if (stale_q && !freeze_i) who = ForView;
    end
  end

  assign takes_told  = who == ForTold;
  assign takes_ended = here_q == ForEnded;

  ns_ram_1r1w #(
    .Width($bits(peers_row_t)),
    .Depth(Logs),
    .Style("bram")
  ) u_rows (
    .clk_i,
    .we_i   (restore_row || write_row),
    .waddr_i(restore_row ? restore_log : writes_log_q),
    .wdata_i(restore_row ? peers_row_t'(restore_data_i) : new_row),
    .re_i   (1'b1),
    .raddr_i(read_log),
    .rdata_o(stored)
  );

  assign row = row_valid_q ? stored : '0;
  assign completed_o = row.seen[own_q];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      here_q <= ForNobody;
      writes_q <= ForNobody;
      valid_q <= '0;
      stale_q <= 1'b1;
    end else begin
      here_q   <= who;
      writes_q <= forget ? ForNobody : here_q;
      if (write_row) valid_q[writes_log_q] <= 1'b1;
      if (restore_row) valid_q[restore_log] <= 1'b1;
      if (forget) valid_q <= '0;
      if (who == ForView) stale_q <= 1'b0;
      if (write_row || restore_row || forget || select_i != select_q) stale_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    select_q <= select_i;
    here_log_q <= read_log;
    writes_log_q <= here_log_q;
    row_valid_q <= valid_q[read_log];
    row_q <= row;
  end

  // A host may look before anything is restored.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) view_o <= '0;
    else if (here_q == ForView) view_o <= row;
  end

  // While all stands still nothing new is to show.
  assign settled_o = freeze_i || !(told_q || ended_q || stale_q || forget || select_i != select_q || here_q inside {ForTold, ForEnded, ForView} ||
      writes_q inside {ForTold, ForEnded});

  // ---------------------------------------------------------------- what becomes of a row

  logic is_open_q, news_q, completes_q, pending_q;
  logic [Devices-1:0] own, participants_q, complete_q;
  logic [DeviceBits-1:0] teller_q;
  sequence_t number_q, walk_sequence_q;

  assign own = Devices'(1) << own_q;

  always_ff @(posedge clk_i) begin
    if (who == ForTold) begin
      teller_q <= peer_q;
      number_q <= word_q.number;
    end
    news_q <= number_q > row.seen[teller_q];
    if (here_q inside {ForEnded, ForWalk}) begin
      number_q <= log_i.number;
      participants_q <= log_i.participants;
    end
    // Of the transaction that is pending, if it is still that one.
    pending_q <= is_open_q && log_i.pending;
    completes_q <= log_i.generation == ended_generation_q;
    for (int unsigned n = 0; n < Devices; n++)
    complete_q[n] <= !log_i.participants[n] || row.seen[n] >= log_i.number;
  end

  always_comb begin
    new_row   = row_q;
    write_row = 1'b0;
    unique case (writes_q)
      ForTold: begin
        new_row.seen[teller_q] = number_q;
        write_row = news_q;
      end
      ForEnded: begin
        new_row.seen[own_q] = number_q;
        new_row.tell = participants_q & ~own;
        write_row = numbered_q && pending_q && completes_q;
      end
      ForWalk: begin
        new_row.tell = '0;
        write_row = 1'b1;
      end
      ForAll: begin
        new_row.all = walk_sequence_q;
        write_row   = 1'b1;
      end
      default: ;
    endcase
    if (forget) write_row = 1'b0;
  end

  // The highest transaction that was told, or completed here.
  sequence_t highest_q;
  assign highest_o = highest_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) highest_q <= '0;
    else if (forget) highest_q <= '0;
    else if (restore_i && restore_index_i == '0) highest_q <= restore_data_i[64+:SequenceBits];
    else if (write_row && writes_q inside {ForTold, ForEnded} && number_q > highest_q)
      highest_q <= number_q;
  end

  // ---------------------------------------------------------------- logs to look at

  // One by one, the pools and the threads of each in turns; and all of them once, when a peer is introduced, or behind a loss of power.
  logic [Logs-1:0] work_q;
  logic [Pools-1:0] pool_work;
  logic [LogBits-ThreadBits-1:0] pool_turn, pool_q;
  logic [ThreadBits-1:0] thread_turn;
  logic work, sweeps_q, picks_pool, picks_thread, sweeps;
  number_t sweep_log_q;
  logic [Devices-1:0] sweep_peers_q;

  for (genvar p = 0; p < Pools; p++) begin : gen_pool
    assign pool_work[p] = work_q[p*Threads+:Threads] != '0;
  end

  ns_rr_arbiter #(
    .N(Pools)
  ) u_pool (
    .clk_i,
    .rst_ni,
    .req_i  (pool_work),
    .next_i (picks_pool),
    .gnt_o  (),
    .idx_o  (pool_turn),
    .valid_o(work)
  );

  ns_rr_arbiter #(
    .N(Threads)
  ) u_thread (
    .clk_i,
    .rst_ni,
    .req_i  (work_q[{pool_q, ThreadBits'(0)}+:Threads]),
    .next_i (picks_thread),
    .gnt_o  (),
    .idx_o  (thread_turn),
    .valid_o()
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      work_q <= '0;
      sweeps_q <= 1'b0;
      sweep_log_q <= '0;
      sweep_peers_q <= '0;
    end else begin
      // What comes while the walk waits for its look is there when it looks.
      if (walk_looks) work_q[walk_log_q] <= 1'b0;
      if (write_row && writes_q inside {ForTold, ForEnded}) work_q[writes_log_q] <= 1'b1;
      if (sweeps) begin
        sweep_log_q <= sweep_log_q + 1'b1;
        if (sweep_log_q == '1) begin
          sweeps_q <= 1'b0;
          sweep_peers_q <= '0;
        end
      end
      if (introduced_i != '0 || restore_row) begin
        sweeps_q <= 1'b1;
        sweep_log_q <= '0;
        sweep_peers_q <= sweep_peers_q | introduced_i;
      end
      if (forget) begin
        work_q <= '0;
        sweeps_q <= 1'b0;
        sweep_peers_q <= '0;
      end
    end
  end

  // ---------------------------------------------------------------- the walk

  typedef enum logic [3:0] {
    StIdle,
    StPick,      // a thread of the pool
    StLook,
    StHere,
    StLooked,
    StTell,
    StAnswer,    // of the host port
    StDelete,
    StDeleting,
    StEmpty      // the log is of the next generation
  } state_e;

  state_e state_q;
  logic complete, cancelled_q, void_q;
  logic [Devices-1:0] sweep_q, tell, tell_q, turn;
  logic [DeviceBits-1:0] turn_number;
  sequence_t own_sequence_q;
  logic [MediaBits-1:0] logs_q, base_q, product, product_q;
  logic [63:0] walk_generation_q;
  logic [31:0] log_bytes_q;
  logic aw_q, w_q;  // they are still to go
  logic known;

  assign picks_pool = state_q == StIdle && !freeze_i;
  assign picks_thread = state_q == StPick;
  assign sweeps = picks_pool && !work && sweeps_q;
  assign walk_looks = state_q == StLook;
  assign walk_empties = state_q == StEmpty && !void_q;

  assign complete = numbered_q && pending_q && participants_q[own_q] && complete_q == '1;
  // Peers that are told of what there is. When they have been, more may have been completed here.
  assign tell = !numbered_q ? '0 : (row_q.tell | (sweep_q & {Devices{row_q.seen[own_q] != '0}})) & ~own;
  // Who is told next, and whether it is known where it is.
  assign turn = tell_q & (~tell_q + 1'b1);
  always_comb begin
    turn_number = '0;
    for (int unsigned n = 0; n < Devices; n++) if (turn[n]) turn_number |= DeviceBits'(n);
  end
  assign known = addresses_i[turn_number] != '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      aw_q <= 1'b0;
      w_q <= 1'b0;
    end else begin
      if (m_host.aw_ready) aw_q <= 1'b0;
      if (m_host.w_ready) w_q <= 1'b0;
      unique case (state_q)
        StIdle: if (picks_pool && !forget) state_q <= work ? StPick : sweeps_q ? StLook : StIdle;
        StPick: state_q <= forget ? StIdle : StLook;
        StLook:
        if (forget) state_q <= StIdle;
        else if (who == ForWalk) state_q <= StHere;
        StHere: state_q <= forget ? StIdle : StLooked;
        StLooked: state_q <= forget ? StIdle : (tell != '0) ? StTell : complete ? StDelete : StIdle;
        StTell:
        if (tell_q == '0) state_q <= StLook;
        else if (known && !freeze_i) begin
          state_q <= StAnswer;
          aw_q <= 1'b1;
          w_q <= 1'b1;
        end
        StAnswer: if (m_host.b_valid) state_q <= StTell;
        StDelete: if (delete_ready_i) state_q <= StDeleting;
        StDeleting: if (deleted_i) state_q <= StEmpty;
        default: if (void_q || who == ForAll) state_q <= StIdle;
      endcase
    end
  end

  // From the pool's logs to the thread's one.
  always_comb begin
    product = '0;
    for (int unsigned b = 0; b < ThreadBits; b++)
    product += MediaBits'(walk_log_q[b] ? log_bytes_q : '0) << b;
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StIdle) begin
      pool_q <= pool_turn;
      walk_log_q <= sweep_log_q;
      sweep_q <= work ? '0 : sweep_peers_q;
    end
    if (state_q == StPick) walk_log_q <= {pool_q, thread_turn};
    if (read_o) begin
      is_open_q <= open_i && pool_i.mapped;
      logs_q <= pool_i.media + pool_i.logs;
      log_bytes_q <= pool_i.log_bytes[31:0];
    end
    product_q <= product;
    if (state_q == StHere) begin
      walk_sequence_q   <= log_i.number;
      walk_generation_q <= log_i.generation;
    end
    if (state_q == StLooked) begin
      tell_q <= tell;
      own_sequence_q <= row_q.seen[own_q];
      base_q <= logs_q + product_q;
    end
    if (state_q == StTell) begin
      sweep_q <= '0;
      tell_q  <= tell_q & ~turn;
    end
    // Something else has become of the log since it was looked at. A recover, which waits for the walk, leaves it true that all have completed the
    // transaction whose log is empty now.
    if (state_q == StLook) begin
      cancelled_q <= 1'b0;
      void_q <= 1'b0;
    end
    if (changes_i && changes_log_i == walk_log_q) cancelled_q <= 1'b1;
    if ((unmaps_i && pool_of(
            changes_log_i
        ) == pool_of(
            walk_log_q
        )) || (closes_i && closes_log_i == walk_log_q) || forget) begin
      cancelled_q <= 1'b1;
      void_q <= 1'b1;
    end
    if (forget) tell_q <= '0;
  end

  // ---------------------------------------------------------------- contexts, and units

  assign read_o = who inside {ForEnded, ForWalk};
  assign write_o = who == ForAll && !cancelled_q;
  assign log_o = read_log;
  assign new_log_o = '{
          spoiled: 1'b0,
          closed: 1'b0,
          open: 1'b1,
          pending: 1'b0,
          participants: '0,
          number: '0,
          committed: 1'b0,
          generation: walk_generation_q + 64'd1,
          next: 32'd64,
          last: '0,
          records: '0
      };

  assign hold_o = state_q inside {StHere, StLooked, StDelete, StDeleting, StEmpty};
  assign delete_valid_o = state_q == StDelete;
  assign delete_o = '{log: walk_log_q, base: base_q, generation: walk_generation_q, number: walk_sequence_q};

  // ---------------------------------------------------------------- to the peers

  logic [51:0] address_q;
  logic [DeviceBits-1:0] lane_q;
  always_ff @(posedge clk_i) begin
    if (state_q == StTell) begin
      address_q <= addresses_i[turn_number];
      lane_q <= own_q;
    end
  end

  completion_t tells;
  assign tells = '{log: walk_log_q, zero: '0, number: own_sequence_q};

  // Registers of 64 bits, one for each device, in one line.
  assign m_host.aw = '{id: '0, len: '0, size: 3'd6, burst: BurstIncr, addr: {address_q, PeersDone}};
  assign m_host.aw_valid = aw_q;
  assign m_host.w = '{last: 1'b1, strb: StrbWidth'(8'hFF) << {lane_q, 3'd0}, data: {8{tells}}};
  assign m_host.w_valid = w_q;
  assign m_host.b_ready = 1'b1;
  assign m_host.ar = '0;
  assign m_host.ar_valid = 1'b0;
  assign m_host.r_ready = 1'b1;

  // ---------------------------------------------------------------- to the reserved range

  logic save_number_q;
  always_ff @(posedge clk_i) save_number_q <= save_index_i == '0;

  always_comb begin
    save_data_o = 512'(row);
    save_data_o[$bits(peers_row_t)-1-:Devices] = '0;  // those that were to be told are, when they are introduced again
    if (save_number_q) begin
      // The number that the rows are of: one that came too late to forget them is lost.
      save_data_o = '0;
      save_data_o[DeviceBits-1:0] = own_q;
      save_data_o[8] = numbered_q;
      save_data_o[64+:SequenceBits] = highest_q;
    end
  end

  assign restore_own_o = restore_i && restore_index_i == '0;
  assign restored_numbered_o = restore_data_i[8];
  assign restored_own_o = restore_data_i[DeviceBits-1:0];

  assign busy_o = told_q || ended_q || here_q != ForNobody || writes_q != ForNobody || stale_q || work || sweeps_q || state_q != StIdle || numbered_q != numbered_i ||
      own_q != own_i;

  logic unused;
  assign unused = ^{m_host.aw_ready, m_host.b, m_host.ar_ready, m_host.r, m_host.r_valid, pool_i, log_i, restore_data_i, word_q.zero};

  `NS_ASSERT(told_is_taken, told_i == '0 || !told_q || takes_told)
  `NS_ASSERT(ended_is_taken, !ended_i || !ended_q)
  `NS_ASSERT(one_tells, (told_i & (told_i - 1'b1)) == '0)
  `NS_ASSERT(rests_for_contexts, !read_o && !write_o || rests_i || freeze_i)

endmodule
