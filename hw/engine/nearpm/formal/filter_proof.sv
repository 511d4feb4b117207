// SPDX-License-Identifier: Apache-2.0

// The conflict filter of one channel of two, in a small configuration, against a model of its
// ports. The model follows a line of the channel and a command. Of the accesses to that line it
// follows any store, two loads of one ID, and a write and a read of the NVMe controller.
//
// The command keeps the guarantees of nearpm_table; another command arrives and ends at any time.
// Accesses are to two lines on each of two pages, more in bursts. The line of the followed store is
// marked in its data. The followed loads and NVMe accesses are marked in address bits below the
// line.
//
// The memory answers in any order, except lines of the queue, which have one ID. Nothing freezes or
// is restored.
module filter_proof
  import ns_axi_pkg::*;
  import nearpm_pkg::*;
  import nearpm_filter_pkg::*;
#(
  /// Enabled: stores, stores besides the followed one, bursts of two beats, delayed data, loads,
  /// NVMe accesses.
  parameter bit WithStores = 1'b1,
  parameter bit OtherStores = 1'b1,
  parameter bit Bursts = 1'b1,
  parameter bit SlowData = 1'b1,
  parameter bit WithLoads = 1'b1,
  parameter bit WithNvme = 1'b1,
  /// Maximum number of stores, up to 3, with three loads and each command once; 0: no limit.
  parameter int unsigned MaxStores = 0,
  /// Asserted property. 0: safety. 1: liveness. 2: an access without a conflict is forwarded within
  /// a bound, although no command ends. 6: data of stores reach their lines. 7: only the assertions
  /// of the blocks. The others have to fail. 3: no store that waited leaves. 4: no load that waited
  /// leaves. 5: no command waits for the store.
  parameter int unsigned Property = 0,
  /// For property 1: cycles with arbitrary delays, and further cycles after which nothing is left.
  parameter int unsigned ActiveCycles = 6,
  parameter int unsigned DrainCycles = 30
) (
  input logic       clk_i,
  input logic       rst_ni,
  input logic       aw_valid_i,
  input logic       aw_id_i,
  input logic [2:0] aw_line_i,
  input logic       aw_two_i,
  input logic       aw_fixed_i,
  input logic       w_valid_i,
  input logic       b_ready_i,
  input logic       ar_valid_i,
  input logic       ar_id_i,
  input logic [2:0] ar_line_i,
  input logic       ar_two_i,
  input logic       m_aw_ready_i,
  input logic       m_w_ready_i,
  input logic       m_ar_ready_i,
  input logic       m_b_valid_i,
  input logic [1:0] m_b_id_i,
  input logic       m_b_error_i,
  input logic       n_aw_valid_i,
  input logic [2:0] n_aw_line_i,
  input logic       n_aw_two_i,
  input logic       n_w_valid_i,
  input logic       n_ar_valid_i,
  input logic [2:0] n_ar_line_i,
  input logic       n_ar_two_i,
  input logic       n_m_aw_ready_i,
  input logic       n_m_w_ready_i,
  input logic       n_m_ar_ready_i,
  input logic       pick_store_i,
  input logic       pick_load_i,
  input logic       pick_second_i,
  input logic       pick_write_i,
  input logic       pick_read_i,
  input logic       insert_i,
  input logic [9:0] insert_reads_i,
  input logic [9:0] insert_writes_i,
  input logic       end_i,
  input logic       other_i,
  input logic       other_found_i,
  input logic       other_end_i
);

  localparam int unsigned Channel = 1;

  // Starts with a reset.
  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  assume property (@(posedge clk_i) rst_ni == started_q);

  // After `ActiveCycles` nothing new arrives, and the environment responds at once.
  logic [6:0] cycle_q;
  logic draining, prompt;
  assign draining = Property == 1 && cycle_q >= 7'(ActiveCycles);
  assign prompt = draining || Property == 2;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) cycle_q <= '0;
    else if (cycle_q != '1) cycle_q <= cycle_q + 1'b1;
  end

  // ---------------------------------------------------------------- lines

  // Local to the channel: page and one of its first four lines.
  typedef logic [2:0] local_t;
  localparam local_t Followed = 3'd5;

  function automatic logic [AddrWidth-1:0] address_of(local_t line);
    return AddrWidth'(line[2]) << 12 | AddrWidth'(line[1:0]) << 6;
  endfunction

  /// The same line on the media: pages of the channels alternate.
  function automatic line_t media_of(local_t line);
    return line_t'(line[2]) << 7 | line_t'(Channel) << 6 | line_t'(line[1:0]);
  endfunction

  /// Lines of an access.
  function automatic logic [7:0] lines_of(local_t line, logic two);
    return 8'(two ? 2'b11 : 2'b01) << line;
  endfunction

  /// Range of a command: page, channel and line of its first and of its last line.
  function automatic range_t range_of(logic [9:0] ends);
    return
    '{
        valid: ends[9:5] <= ends[4:0],
        first: line_t'(ends[9]) << 7 | line_t'(ends[8]) << 6 | line_t'(ends[6:5]),
        last: line_t'(ends[4]) << 7 | line_t'(ends[3]) << 6 | line_t'(ends[1:0])
    }
    ;
  endfunction

  function automatic logic meets(range_t a, range_t b);
    return a.valid && b.valid && !(a.last < b.first || b.last < a.first);
  endfunction

  function automatic logic holds(range_t range, local_t line);
    return range.valid && range.first <= media_of(line) && media_of(line) <= range.last;
  endfunction

  // ---------------------------------------------------------------- device under test

  ns_axi_if s_pm ();
  ns_axi_if m_pm ();
  ns_axi_if s_nvme ();
  ns_axi_if m_nvme ();
  nearpm_lookup_if lookup ();
  nearpm_order_if order ();

  logic busy, queued, line_error;
  logic [511:0] save_data;
  logic [6:0] lines_there;
  logic [4:0] loads_there;
  commands_t retired;

  nearpm_filter #(
    .NumChannels(2),
    .Granule    (4096),
    .Channel    (Channel)
  ) u_filter (
    .clk_i,
    .rst_ni,
    .freeze_i       (1'b0),
    .busy_o         (busy),
    .retired_i        (retired),
    .lookup         (lookup),
    .order          (order),
    .save_index_i   ('0),
    .save_data_o    (save_data),
    .restore_i      (1'b0),
    .restore_index_i('0),
    .restore_data_i ('0),
    .store_queued_o       (queued),
    .lines_o        (lines_there),
    .loads_o        (loads_there),
    .line_error_o   (line_error),
    .s_pm      (s_pm),
    .m_pm      (m_pm),
    .s_nvme    (s_nvme),
    .m_nvme    (m_nvme)
  );

  // ---------------------------------------------------------------- commands

  // The followed command has number 0. It waits for older accesses, as in the table.
  logic command_retires;  // absent from the next cycle on
  logic present_q, other_q, other_retired_q, stores_wait_q, lines_wait_q, issued_q, retired_q;
  count_t stores_q, lines_q;
  ranges_t ranges_q, new_ranges;
  logic insert_fire, reads_line, writes_line, may_issue;

  assign new_ranges = '{reads: range_of(insert_reads_i), writes: range_of(insert_writes_i)};
  assign order.lines = insert_i ? new_ranges : '0;
  assign insert_fire = insert_i && order.quiet && !present_q && !retired_q && !draining;
  assign may_issue = present_q && !stores_wait_q && !lines_wait_q;
  assign command_retires = may_issue && issued_q && (draining || (end_i && Property != 2));
  assign reads_line = holds(ranges_q.reads, Followed);
  assign writes_line = holds(ranges_q.writes, Followed);
  assign retired = commands_t'({other_retired_q, retired_q});

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      present_q <= 1'b0;
      retired_q <= 1'b0;
      issued_q <= 1'b0;
      other_q <= 1'b0;
      other_retired_q <= 1'b0;
    end else begin
      retired_q <= 1'b0;
      if (insert_fire) begin
        present_q <= 1'b1;
        issued_q <= 1'b0;
      end else if (may_issue) begin
        issued_q <= 1'b1;
        if (command_retires) begin
          present_q <= 1'b0;
          retired_q  <= 1'b1;
        end
      end
      other_retired_q <= 1'b0;
      if (!other_q) other_q <= other_i && !draining;
      else if (draining || (other_end_i && Property != 2)) begin
        other_q <= 1'b0;
        other_retired_q <= 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (order.answered == stores_q) stores_wait_q <= 1'b0;
    if (order.written == lines_q) lines_wait_q <= 1'b0;
    if (insert_fire) begin
      ranges_q <= new_ranges;
      stores_q <= order.stores;
      lines_q <= order.queued;
      stores_wait_q <= order.stores != order.answered;
      lines_wait_q <= order.overlap;
    end
  end

  always_comb begin
    lookup.commands = '0;
    lookup.commands[1] = other_q && other_found_i;
    lookup.commands[0] = lookup.valid && present_q && (meets(ranges_q.writes, lookup.lines) ||
                                                     (lookup.write && meets(ranges_q.reads, lookup.lines)));
  end

  // ---------------------------------------------------------------- stores of the host

  // FIXED bursts: all beats access one line; not queueable.
  logic aw_fire, w_fire, b_fire;
  logic [7:0] aw_lines;
  logic [2:0] beats_q, stores_open_q;  // beats to come; stores without a response
  logic [3:0] two_q;  // bursts with two beats among those with data to come
  logic [2:0] count_q;
  logic second_q;  // second beat of the oldest of these
  logic w_last;

  // The followed store: accepted; its beat of the line sent; address and data at the memory;
  // answered by the memory and by the filter.
  logic f_q, f_sent_q, f_address_q, f_data_q, f_written_q, f_answered_q;
  logic f_id_q, f_error_q, f_line_q;
  logic f_waits_q;  // waits for the command
  logic [2:0] f_beats_q, f_left_q;  // host beats before that of the line, and until the last one
  logic [2:0] f_before_q;  // earlier stores of the line whose address is not at the memory
  logic [2:0] f_open_q;  // earlier stores without a response
  logic takes_f, marks;

  assign aw_lines = lines_of(aw_line_i, aw_two_i && !aw_fixed_i);
  assign s_pm.aw = '{
          id: IdWidth'(aw_id_i),
          len: 8'(aw_two_i),
          size: 3'd6,
          burst: aw_fixed_i ? BurstFixed : BurstIncr,
          addr: address_of(aw_line_i)
      };
  assign s_pm.aw_valid = aw_valid_i;
  assign aw_fire = aw_valid_i && s_pm.aw_ready;
  assign takes_f = aw_fire && pick_store_i && !f_q && aw_lines[Followed];
  assert property (@(posedge clk_i) disable iff (!rst_ni) !aw_fire || stores_open_q < 3'(Stores));

  assign s_pm.w_valid = count_q != '0 && (prompt || !SlowData || w_valid_i);
  assign w_last = second_q || !two_q[0];
  assign marks = f_q && !f_sent_q && f_beats_q == '0;
  assign s_pm.w = '{last: w_last, strb: StrbWidth'(marks), data: DataWidth'(marks)};
  assign w_fire = s_pm.w_valid && s_pm.w_ready;
  assign s_pm.b_ready = prompt || b_ready_i;
  assign b_fire = s_pm.b_valid && s_pm.b_ready;

  // Accepted stores of the line whose address is not at the memory.
  logic [2:0] line_stores_q;
  logic m_aw_fire, m_w_fire, m_of_line, m_line;
  logic f_address;
  logic [7:0] m_lines;
  local_t m_first;
  assign m_first = {m_pm.aw.addr[12], m_pm.aw.addr[7:6]};
  assign m_line = m_pm.aw.id == LineId;
  assign m_lines = lines_of(m_first, m_pm.aw.len[0] && m_pm.aw.burst == BurstIncr);
  assign m_aw_fire = m_pm.aw_valid && m_pm.aw_ready;
  assign m_w_fire = m_pm.w_valid && m_pm.w_ready;
  assign m_of_line = m_aw_fire && m_lines[Followed];
  assign f_address = f_q && !f_address_q && f_before_q == '0 && m_of_line;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      beats_q <= '0;
      stores_open_q <= '0;
      two_q <= '0;
      count_q <= '0;
      second_q <= 1'b0;
      line_stores_q <= '0;
      {f_q, f_sent_q, f_address_q, f_answered_q, f_waits_q} <= '0;
      f_id_q <= 1'b0;
      f_beats_q <= '0;
      f_left_q <= '0;
      f_before_q <= '0;
      f_open_q <= '0;
    end else begin
      beats_q <= beats_q + (aw_fire ? 3'd1 + 3'(aw_two_i) : '0) - 3'(w_fire);
      stores_open_q <= stores_open_q + 3'(aw_fire) - 3'(b_fire);
      if (w_fire) begin
        second_q <= !w_last;
        if (w_last) two_q <= two_q >> 1;
      end
      if (aw_fire) two_q[2'(count_q-3'(w_fire&&w_last))] <= aw_two_i;
      count_q <= count_q + 3'(aw_fire) - 3'(w_fire && w_last);
      line_stores_q <= line_stores_q + 3'(aw_fire && aw_lines[Followed]) - 3'(m_of_line);

      if (takes_f) begin
        f_q <= 1'b1;
        f_id_q <= aw_id_i;
        f_waits_q <= present_q && !retired_q && (reads_line || writes_line) && !command_retires;
        f_beats_q <= beats_q - 3'(w_fire) + 3'(aw_two_i && (aw_fixed_i || aw_line_i != Followed));
        f_left_q <= beats_q - 3'(w_fire) + 3'd1 + 3'(aw_two_i);
        f_before_q <= line_stores_q - 3'(m_of_line);
        f_open_q <= stores_open_q - 3'(b_fire);
      end else if (f_q) begin
        if (w_fire && marks) f_sent_q <= 1'b1;
        else if (w_fire && !f_sent_q) f_beats_q <= f_beats_q - 1'b1;
        if (w_fire && f_left_q != '0) f_left_q <= f_left_q - 1'b1;
        if (m_of_line && !f_address_q) begin
          if (f_before_q == '0) f_address_q <= 1'b1;
          else f_before_q <= f_before_q - 1'b1;
        end
        if (b_fire && !f_answered_q) begin
          if (f_open_q == '0) f_answered_q <= 1'b1;
          else f_open_q <= f_open_q - 1'b1;
        end
      end
      if (retired_q) f_waits_q <= 1'b0;
    end
  end

  // ---------------------------------------------------------------- memory

  // Addresses with data to come: ID and two beats. Then the responses to come.
  logic [1:0] m_id_q[4];
  logic m_two_q[4];
  logic [2:0] m_count_q;
  logic m_second_q, m_last;
  logic [3:0] m_beats_q, m_f_beats_q;
  logic [3:0] m_lines_q;  // lines with data, not answered
  logic [Stores-1:0] m_done_q;
  logic m_any, m_mark;
  logic [1:0] m_b_id;
  logic [3:0] m_f_lines_q;  // lines before that of the followed store
  logic [1:0] m_f_id_q;
  logic m_f_all_q;  // its last beat has arrived

  assign m_pm.aw_ready = (prompt || m_aw_ready_i) && m_count_q != 3'd4;
  assign m_pm.w_ready = m_count_q != '0 && (prompt || !SlowData || m_w_ready_i);
  assign m_last = m_second_q || !m_two_q[0];
  assign m_mark = f_address_q && !f_data_q && m_f_beats_q == '0;
  assign m_any = m_lines_q != '0 || m_done_q != '0;
  always_comb begin
    m_b_id = LineId[1:0];
    for (int unsigned s = 0; s < Stores; s++) if (m_done_q[s]) m_b_id = 2'(s);
    if (m_b_id_i == LineId[1:0] ? m_lines_q != '0 : m_done_q[m_b_id_i]) m_b_id = m_b_id_i;
  end
  assign m_pm.b_valid = m_any && (prompt || m_b_valid_i);
  assign m_pm.b = '{id: IdWidth'(m_b_id), resp: m_b_error_i ? RespSlvErr : RespOkay};

  logic [2:0] m_place;
  assign m_place = m_count_q - 3'(m_w_fire && m_last);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      m_count_q <= '0;
      m_second_q <= 1'b0;
      m_beats_q <= '0;
      m_lines_q <= '0;
      m_done_q <= '0;
      {f_data_q, f_written_q, f_line_q, f_error_q, m_f_all_q} <= '0;
      m_f_beats_q <= '0;
      m_f_lines_q <= '0;
      m_f_id_q <= '0;
      for (int unsigned i = 0; i < 4; i++) begin
        m_id_q[i]  <= '0;
        m_two_q[i] <= 1'b0;
      end
    end else begin
      m_count_q <= m_place + 3'(m_aw_fire);
      m_beats_q <= m_beats_q + (m_aw_fire ? 4'd1 + 4'(m_pm.aw.len[0]) : '0) - 4'(m_w_fire);
      if (m_w_fire) begin
        m_second_q <= !m_last;
        if (m_last) begin
          for (int unsigned i = 0; i < 3; i++) begin
            m_id_q[i]  <= m_id_q[i+1];
            m_two_q[i] <= m_two_q[i+1];
          end
          if (m_id_q[0] != LineId[1:0]) m_done_q[m_id_q[0]] <= 1'b1;
        end
      end
      if (m_aw_fire) begin
        m_id_q[m_place[1:0]]  <= m_pm.aw.id[1:0];
        m_two_q[m_place[1:0]] <= m_pm.aw.len[0];
      end
      m_lines_q <= m_lines_q + 4'(m_w_fire && m_last && m_id_q[0] == LineId[1:0]) -
          4'(m_pm.b_valid && m_b_id == LineId[1:0]);
      if (m_pm.b_valid && m_b_id != LineId[1:0]) m_done_q[m_b_id] <= 1'b0;

      if (f_address) begin
        m_f_beats_q <= m_beats_q - 4'(m_w_fire) +
            4'(m_pm.aw.len[0] && (m_pm.aw.burst == BurstFixed || m_first != Followed));
        f_line_q <= m_line;
        m_f_id_q <= m_pm.aw.id[1:0];
      end else if (f_address_q && !f_data_q && m_w_fire) begin
        if (m_f_beats_q == '0) begin
          f_data_q <= 1'b1;
          m_f_all_q <= m_last;
          m_f_lines_q <= m_lines_q - 4'(m_pm.b_valid && m_b_id == LineId[1:0]);
        end else m_f_beats_q <= m_f_beats_q - 1'b1;
      end
      if (f_data_q && m_w_fire && m_last) m_f_all_q <= 1'b1;
      if (f_data_q && m_f_all_q && !f_written_q && m_pm.b_valid && m_b_id == m_f_id_q) begin
        if (!f_line_q || m_f_lines_q == '0) begin
          f_written_q <= 1'b1;
          f_error_q   <= m_b_error_i;
        end else m_f_lines_q <= m_f_lines_q - 1'b1;
      end
    end
  end

  // ---------------------------------------------------------------- loads

  // Two loads of one ID are followed; the second one may access any line.
  logic ar_fire, takes_g, takes_h, g_q, h_q, g_out_q, h_out_q, g_waits_q, g_after_store_q;
  logic m_ar_fire, m_g, m_h;
  logic [3:0] loads_q;
  logic [1:0][3:0] loads_of_q;  // by ID
  ax_t ar, g_ax_q, h_ax_q;
  logic [7:0] ar_lines;
  assign ar_lines = lines_of(ar_line_i, ar_two_i);
  assign takes_g = ar_fire && pick_load_i && !g_q && ar_lines[Followed];
  assign takes_h = ar_fire && pick_second_i && g_q && !h_q && s_pm.ar.id == g_ax_q.id;
  // The mark is part of the address; acceptance decides whether the load is followed.
  assign s_pm.ar = '{
          id: IdWidth'(ar_id_i),
          len: 8'(ar_two_i),
          size: 3'd6,
          burst: BurstIncr,
          addr: address_of(ar_line_i) | AddrWidth'({pick_second_i && g_q && !h_q && IdWidth'(ar_id_i) == g_ax_q.id,
                                                    pick_load_i && !g_q && ar_lines[Followed]})
      };
  assign s_pm.ar_valid = WithLoads && ar_valid_i;
  assign ar_fire = s_pm.ar_valid && s_pm.ar_ready;
  assign m_pm.ar_ready = prompt || m_ar_ready_i;
  assign m_ar_fire = m_pm.ar_valid && m_pm.ar_ready;
  assign m_g = m_pm.ar_valid && m_pm.ar.addr[0];
  assign m_h = m_pm.ar_valid && m_pm.ar.addr[1];
  assign m_pm.r = '0;
  assign m_pm.r_valid = 1'b0;
  assign s_pm.r_ready = 1'b1;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {g_q, h_q, g_out_q, h_out_q, g_waits_q, g_after_store_q} <= '0;
      loads_q <= '0;
      loads_of_q <= '0;
    end else begin
      for (int unsigned i = 0; i < 2; i++)
      loads_of_q[i] <= loads_of_q[i] + 4'(ar_fire && ar_id_i == 1'(i)) - 4'(m_ar_fire && m_pm.ar.id[0] == 1'(i));
      loads_q <= loads_q + 4'(ar_fire) - 4'(m_ar_fire);
      if (takes_g) begin
        g_q <= 1'b1;
        g_waits_q <= present_q && writes_line && !command_retires;
        // A store that was answered is older.
        g_after_store_q <= f_answered_q;
      end else if (retired_q) g_waits_q <= 1'b0;
      if (takes_h) h_q <= 1'b1;
      if (m_ar_fire && m_g) g_out_q <= 1'b1;
      if (m_ar_fire && m_h) h_out_q <= 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (takes_g) g_ax_q <= s_pm.ar;
    if (takes_h) h_ax_q <= s_pm.ar;
  end

  // ---------------------------------------------------------------- NVMe controller

  // A write, then a read: accepted, forwarded, waits for the command, younger than the followed
  // store.
  logic [1:0] n_fire, n_takes, n_q, n_out_q, n_waits_q, n_after_store_q, n_m_fire, n_m;
  logic [1:0][2:0] n_count_q;
  logic [7:0] n_aw_lines, n_ar_lines;
  logic [2:0] n_data_q;  // addresses with data to come
  ax_t [1:0] n_ax_q;

  assign n_aw_lines = lines_of(n_aw_line_i, n_aw_two_i);
  assign n_ar_lines = lines_of(n_ar_line_i, n_ar_two_i);
  assign s_nvme.aw = '{
          id: '0,
          len: 8'(n_aw_two_i),
          size: 3'd6,
          burst: BurstIncr,
          addr: address_of(n_aw_line_i) | AddrWidth'(pick_write_i && !n_q[0] && n_aw_lines[Followed])
      };
  assign s_nvme.ar = '{
          id: '0,
          len: 8'(n_ar_two_i),
          size: 3'd6,
          burst: BurstIncr,
          addr: address_of(n_ar_line_i) | AddrWidth'(pick_read_i && !n_q[1] && n_ar_lines[Followed])
      };
  assign s_nvme.aw_valid = WithNvme && n_aw_valid_i;
  assign s_nvme.ar_valid = WithNvme && n_ar_valid_i;
  assign s_nvme.w = '{last: 1'b1, strb: '0, data: '0};
  assign s_nvme.w_valid = WithNvme && (n_w_valid_i || draining);
  assign s_nvme.b_ready = 1'b1;
  assign s_nvme.r_ready = 1'b1;
  assign m_nvme.aw_ready = prompt || n_m_aw_ready_i;
  assign m_nvme.ar_ready = prompt || n_m_ar_ready_i;
  assign m_nvme.w_ready = prompt || n_m_w_ready_i;
  assign m_nvme.b = '0;
  assign m_nvme.b_valid = 1'b0;
  assign m_nvme.r = '0;
  assign m_nvme.r_valid = 1'b0;
  assign n_fire = {s_nvme.ar_valid && s_nvme.ar_ready, s_nvme.aw_valid && s_nvme.aw_ready};
  assign n_takes = n_fire & {s_nvme.ar.addr[0], s_nvme.aw.addr[0]};
  assign n_m_fire = {m_nvme.ar_valid && m_nvme.ar_ready, m_nvme.aw_valid && m_nvme.aw_ready};
  assign n_m = {m_nvme.ar_valid && m_nvme.ar.addr[0], m_nvme.aw_valid && m_nvme.aw.addr[0]};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {n_q, n_out_q, n_waits_q, n_after_store_q} <= '0;
      n_count_q <= '0;
      n_data_q <= '0;
    end else begin
      n_data_q <= n_data_q + 3'(n_m_fire[0]) - 3'(m_nvme.w_valid && m_nvme.w_ready);
      for (int unsigned d = 0; d < 2; d++) begin
        n_count_q[d] <= n_count_q[d] + 3'(n_fire[d]) - 3'(n_m_fire[d]);
        if (n_takes[d]) begin
          n_q[d] <= 1'b1;
          n_waits_q[d] <= present_q && (writes_line || (d == 0 && reads_line)) && !command_retires;
          n_after_store_q[d] <= f_answered_q;
        end else if (retired_q) n_waits_q[d] <= 1'b0;
        if (n_m[d] && n_m_fire[d]) n_out_q[d] <= 1'b1;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (n_takes[0]) n_ax_q[0] <= s_nvme.aw;
    if (n_takes[1]) n_ax_q[1] <= s_nvme.ar;
  end

  // ---------------------------------------------------------------- assumptions

  // A valid address is held until it is accepted. At the end nothing new arrives. Bursts cover only
  // the lines of the model.
  logic [3:0] shown_q;
  ax_t [3:0] shown_ax_q;
  logic [3:0] shows;
  assign shows = {s_nvme.ar_valid, s_nvme.aw_valid, s_pm.ar_valid, s_pm.aw_valid};
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) shown_q <= '0;
    else shown_q <= shows & ~{s_nvme.ar_ready, s_nvme.aw_ready, s_pm.ar_ready, s_pm.aw_ready};
  end
  always_ff @(posedge clk_i) shown_ax_q <= {s_nvme.ar, s_nvme.aw, s_pm.ar, s_pm.aw};
  assume property (@(posedge clk_i) (shown_q & ~shows) == '0);
  assume property (@(posedge clk_i) !shown_q[0] || s_pm.aw == shown_ax_q[0]);
  assume property (@(posedge clk_i) !shown_q[1] || s_pm.ar == shown_ax_q[1]);
  assume property (@(posedge clk_i) !shown_q[2] || s_nvme.aw == shown_ax_q[2]);
  assume property (@(posedge clk_i) !shown_q[3] || s_nvme.ar == shown_ax_q[3]);
  assume property (@(posedge clk_i) !draining || (shows & ~shown_q) == '0);
  assume property (@(posedge clk_i) !(aw_two_i && !aw_fixed_i && aw_line_i[1:0] == 2'd3));
  assume property (@(posedge clk_i) !(ar_two_i && ar_line_i[1:0] == 2'd3));
  assume property (@(posedge clk_i) !(n_aw_two_i && n_aw_line_i[1:0] == 2'd3));
  assume property (@(posedge clk_i) !(n_ar_two_i && n_ar_line_i[1:0] == 2'd3));
  logic [1:0] stores_seen_q;
  logic [1:0] loads_seen_q;
  logic present_seen_q, other_seen_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {stores_seen_q, loads_seen_q, present_seen_q, other_seen_q} <= '0;
    else begin
      if (aw_fire && stores_seen_q != '1) stores_seen_q <= stores_seen_q + 1'b1;
      if (ar_fire && loads_seen_q != '1) loads_seen_q <= loads_seen_q + 1'b1;
      if (present_q) present_seen_q <= 1'b1;
      if (other_q) other_seen_q <= 1'b1;
    end
  end
  assume property (@(posedge clk_i) MaxStores == 0 || !aw_valid_i || stores_seen_q < 2'(MaxStores));
  assume property (@(posedge clk_i) WithStores || !aw_valid_i);
  assume property (@(posedge clk_i) MaxStores == 0 || !ar_valid_i || loads_seen_q != '1);
  assume property (@(posedge clk_i) MaxStores == 0 || !insert_i || !present_seen_q);
  assume property (@(posedge clk_i) MaxStores == 0 || !other_i || !other_seen_q);
  assume property (@(posedge clk_i) Bursts || !aw_two_i);
  assume property (@(posedge clk_i) {insert_reads_i[6], insert_reads_i[1], insert_writes_i[6], insert_writes_i[1]} == '0);
  assume property (@(posedge clk_i) {insert_reads_i[7], insert_reads_i[2], insert_writes_i[7], insert_writes_i[2]} == '0);
  assume property (@(posedge clk_i) {aw_line_i[1], ar_line_i[1], n_aw_line_i[1], n_ar_line_i[1]} == '0);
  assume property (@(posedge clk_i) OtherStores || !aw_valid_i || f_q == 1'b0 && aw_lines[Followed] && pick_store_i);

  // ---------------------------------------------------------------- guarantees

  if (Property == 1) begin : gen_liveness
    assert property (@(posedge clk_i) disable iff (!rst_ni) cycle_q < 7'(ActiveCycles + DrainCycles) || (!busy && shows == '0 && !present_q && (!f_q || (f_written_q && f_answered_q)) &&
        g_q == g_out_q && h_q == h_out_q && n_q == n_out_q && stores_open_q == '0 && loads_q == '0 && n_count_q == '0 && !m_any && m_count_q == '0));
  end else if (Property == 2) begin : gen_unblocked
    // The followed store and first load, if they overlap no command and no earlier store. The
    // command is present all the time.
    logic [7:0] touched_q;
    logic [3:0] f_for_q, f_answer_q, g_for_q;
    logic [1:0][1:0] n_for_q;
    logic [3:0] free_q;  // store, load, write, read overlap nothing
    logic [3:0] looks_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        touched_q <= '0;
        f_for_q <= '0;
        f_answer_q <= '0;
        g_for_q <= '0;
        n_for_q <= '0;
        free_q <= '0;
        looks_q <= '0;
      end else begin
        looks_q <= {n_takes[1], n_takes[0], takes_g, takes_f};
        if (aw_fire) touched_q <= touched_q | aw_lines;
        if (takes_f) free_q[0] <= (touched_q & aw_lines) == '0;
        if (takes_g) free_q[1] <= (touched_q & ar_lines) == '0 && loads_of_q[ar_id_i] == '0;
        if (n_takes[0]) free_q[2] <= (touched_q & n_aw_lines) == '0;
        if (n_takes[1]) free_q[3] <= (touched_q & n_ar_lines) == '0;
        for (int unsigned s = 0; s < 4; s++)
        if (looks_q[s] && lookup.commands != '0) free_q[s] <= 1'b0;
        if (f_q && !f_address_q && f_for_q != '1) f_for_q <= f_for_q + 1'b1;
        if (f_q && !f_answered_q && f_answer_q != '1) f_answer_q <= f_answer_q + 1'b1;
        if (g_q && !g_out_q && g_for_q != '1) g_for_q <= g_for_q + 1'b1;
        for (int unsigned d = 0; d < 2; d++)
        if (n_q[d] && !n_out_q[d] && n_for_q[d] != '1) n_for_q[d] <= n_for_q[d] + 1'b1;
      end
    end
    assert property (@(posedge clk_i) disable iff (!rst_ni) !free_q[0] || f_for_q < 4'd6);
    assert property (@(posedge clk_i) disable iff (!rst_ni) !free_q[0] || f_answer_q < 4'd12);
    assert property (@(posedge clk_i) disable iff (!rst_ni) !free_q[1] || g_for_q < 4'd6);
    assert property (@(posedge clk_i) disable iff (!rst_ni) !free_q[2] || n_for_q[0] < 2'd3);
    assert property (@(posedge clk_i) disable iff (!rst_ni) !free_q[3] || n_for_q[1] < 2'd3);
  end else if (Property == 3) begin : gen_no_store_waits
    logic waited_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) waited_q <= 1'b0;
      else if (f_waits_q && f_answered_q) waited_q <= 1'b1;
    end
    assert property (@(posedge clk_i) disable iff (!rst_ni) !(waited_q && f_written_q));
  end else if (Property == 4) begin : gen_no_load_waits
    logic waited_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) waited_q <= 1'b0;
      else if (g_waits_q && h_q) waited_q <= 1'b1;
    end
    assert property (@(posedge clk_i) disable iff (!rst_ni) !(waited_q && g_out_q && h_out_q));
  end else if (Property == 5) begin : gen_no_command_waits
    logic waited_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) waited_q <= 1'b0;
      else if (insert_fire && f_q && !f_written_q && f_answered_q && order.overlap)
        waited_q <= 1'b1;
    end
    assert property (@(posedge clk_i) disable iff (!rst_ni) !(waited_q && issued_q && f_written_q && f_line_q));
  end else if (Property == 6) begin : gen_data
    // Data of a line arrive in order, complete and once: the marked data are at the right address,
    // and nowhere else.
    assert property (@(posedge clk_i) disable iff (!rst_ni) !m_w_fire ||
        (m_pm.w.last == m_last && m_pm.w.data[0] == m_mark && m_pm.w.strb[0] == m_mark));
  end else if (Property == 0) begin : gen_safe
    logic [3:0] m_shown_q;
    ax_t [3:0] m_shown_ax_q;
    logic [3:0] m_shows;
    logic older_q;  // the store is older than the command
    assign m_shows = {m_nvme.ar_valid, m_nvme.aw_valid, m_pm.ar_valid, m_pm.aw_valid};
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        m_shown_q <= '0;
        older_q   <= 1'b0;
      end else begin
        m_shown_q <= m_shows & ~{m_nvme.ar_ready, m_nvme.aw_ready, m_pm.ar_ready, m_pm.aw_ready};
        if (insert_fire) older_q <= f_q || takes_f;
      end
    end
    always_ff @(posedge clk_i) m_shown_ax_q <= {m_nvme.ar, m_nvme.aw, m_pm.ar, m_pm.aw};

    // A store does not reach the memory while an overlapping command is present. No access to the
    // line reaches the memory without a store.
    assert property (@(posedge clk_i) disable iff (!rst_ni) !f_address || !f_waits_q);
    assert property (@(posedge clk_i) disable iff (!rst_ni) !m_of_line || line_stores_q != '0);
    assert property (@(posedge clk_i) disable iff (!rst_ni) !m_aw_fire || (m_pm.aw.size == 3'd6 &&
        m_pm.aw.len[7:1] == '0 && m_pm.aw.addr[AddrWidth-1:13] == '0 && m_pm.aw.addr[11:8] == '0 && m_pm.aw.addr[5:0] == '0));
    // An ID is not used twice at once.
    for (genvar s = 0; s < Stores; s++) begin : gen_id
      assert property (@(posedge clk_i) disable iff (!rst_ni) !(m_aw_fire && m_pm.aw.id == IdWidth'(s)) || (!m_done_q[s] &&
          !(m_count_q > 3'd0 && m_id_q[0] == 2'(s)) && !(m_count_q > 3'd1 && m_id_q[1] == 2'(s)) && !(m_count_q > 3'd2 && m_id_q[2] == 2'(s))));
    end
    // Each store is answered once and in order, after all of its data have arrived. Then either the
    // memory has answered, or the store is in the queue.
    assert property (@(posedge clk_i) disable iff (!rst_ni) !s_pm.b_valid || stores_open_q != '0);
    assert property (@(posedge clk_i) disable iff (!rst_ni) !(s_pm.b_valid && f_q && !f_answered_q && f_open_q == '0) ||
        (s_pm.b.id == IdWidth'(f_id_q) && f_left_q == '0 && (f_written_q || !f_address_q || f_line_q) &&
         s_pm.b.resp == (f_written_q && !f_line_q && f_error_q ? RespSlvErr : RespOkay)));
    // A command is inserted when no store is valid. It is not issued before an older overlapping
    // store is in the memory.
    assert property (@(posedge clk_i) disable iff (!rst_ni) !insert_fire || !aw_valid_i);
    assert property (@(posedge clk_i) disable iff (!rst_ni) !(may_issue && older_q && (reads_line || writes_line)) || f_written_q);
    // A load is not forwarded while a command that writes its line is present, or before an
    // answered store to the line is in the memory. It is forwarded once, unchanged; loads of one ID
    // stay in order.
    assert property (@(posedge clk_i) disable iff (!rst_ni) !m_g || (g_q && !g_out_q && !g_waits_q && (!g_after_store_q || f_written_q) && m_pm.ar == g_ax_q));
    assert property (@(posedge clk_i) disable iff (!rst_ni) !m_h || (h_q && !h_out_q && g_out_q && m_pm.ar == h_ax_q));
    assert property (@(posedge clk_i) disable iff (!rst_ni) !m_pm.ar_valid || loads_q != '0);
    // The same holds for NVMe accesses; data of a write follow its address.
    for (genvar d = 0; d < 2; d++) begin : gen_nvme
      assert property (@(posedge clk_i) disable iff (!rst_ni) !n_m[d] || (n_q[d] && !n_out_q[d] && !n_waits_q[d] && (!n_after_store_q[d] || f_written_q) &&
          (d == 0 ? m_nvme.aw : m_nvme.ar) == n_ax_q[d]));
      assert property (@(posedge clk_i) disable iff (!rst_ni) !m_shows[2+d] || n_count_q[d] != '0);
    end
    assert property (@(posedge clk_i) disable iff (!rst_ni) !m_nvme.w_valid || n_data_q != '0);
    // A valid output is held.
    assert property (@(posedge clk_i) disable iff (!rst_ni) (m_shown_q & ~m_shows) == '0 &&
        (!m_shown_q[0] || m_pm.aw == m_shown_ax_q[0]) && (!m_shown_q[1] || m_pm.ar == m_shown_ax_q[1]) &&
        (!m_shown_q[2] || m_nvme.aw == m_shown_ax_q[2]) && (!m_shown_q[3] || m_nvme.ar == m_shown_ax_q[3]));
  end

endmodule
