// Data path of the NVMe controller: moves the data of commands between host memory and the media.
//
// Every command is walked page by page along its PRPs or its SGL (nvme_prp), cut where it crosses a device granule, put
// together to whole logical blocks (nvme_gather) and copied by the mover of its memory channel and direction (nvme_mover). Commands of the two
// directions have their own queues, walkers and movers, so that neither can hold up the other; a comparison uses both.
// Commands without data (zeroing, verifying) go through nvme_ranges and nvme_sweep to the movers.
//
// It assumes that slots in flight are distinct and below NumSlots, and that the sizes and media addresses it is
// given lie within the namespace: the front end checks those. Two commands that overlap on the media are not ordered with
// respect to each other, but each logical block of 512 bytes is atomic: what a Read brings, or is left of Writes, is
// of one of them.
`include "ns_assert.svh"

module nvme_data
  import ns_axi_pkg::*;
  import nvme_pkg::*;
  import nvme_data_pkg::*;
  import nvme_ns_pkg::ns_blocks_t;
#(
  /// Memory channels, a power of two.
  parameter int unsigned NumChannels = 4,
  /// Bytes of consecutive media addresses in one channel, a power of two, at least 4096.
  parameter int unsigned Granule     = 4096,
  /// Commands in flight: slots 0 to NumSlots-1.
  parameter int unsigned NumSlots    = 64,
  /// PRP walkers per direction.
  parameter int unsigned NumWalkers  = 4,
  /// SGL walkers per direction.
  parameter int unsigned NumSglWalkers = 1,
  /// Descriptors in a command's SGL that move nothing.
  parameter int unsigned MaxEmpty    = 4096,
  /// Namespaces, for ranges out of host memory: see nvme_namespace.
  parameter int unsigned NumNamespaces = 1,
  /// See nvme_namespace.
  parameter ns_blocks_t NsBlocks = '0,
  /// See nvme_namespace.
  parameter longint unsigned MediaBytes = 64'h1_0000_0000,
  /// Bytes of data reads outstanding on the host side over all channels, and up to 4 KiB more. Enough for the round
  /// trip (1.2 us at 16 GB/s is 19 KiB); more only makes other reads (commands, lists) wait behind them.
  parameter int unsigned HostReadBytes = 32768,
  /// 64-byte beats that a mover to the media holds or has under way, at least 64. 512 is the depth of a block RAM of this
  /// width.
  parameter int unsigned MoverBeats  = 512,
  /// The same of a mover to the host: slow media need a channel's latency times its bandwidth.
  parameter int unsigned MediaReadBeats = 512,
  /// Reads of up to 4 KiB outstanding on a channel's media at most, a power of two.
  parameter int unsigned MediaReads  = 32,
  /// Largest write burst to the media in bytes, a power of two, 1024 to 4096. Longer ones begin later, and a slow medium needs
  /// fewer of them.
  parameter int unsigned MediaWriteBytes = 1024,
  /// Write bursts outstanding on a channel's media at most, a power of two.
  parameter int unsigned MediaWrites = 32,
  /// 0: all zeros go through the movers, and `fill_*` rest.
  parameter bit Fills = 1'b1,
  /// Host-side AXI masters, see host_*.
  localparam int unsigned NumHost    = NumChannels + 1
) (
  input logic clk_i,
  input logic rst_ni,
  /// From registers: a further clock edge could change the state without new input.
  output logic busy_o,
  /// Begin no further burst on the memory side, but for one that was opened in the cycle before. What has begun there ends
  /// without the host: a write's address leaves when all its data are here, and there is room for what is read.
  input  logic quiesce_i,
  /// From registers: a burst on the memory side has begun, or is to begin in the next cycle, and has not ended.
  output logic media_busy_o,
  /// All that goes on here is that the memories zero blocks, see fill_*: nothing changes before one of them answers.
  output logic waits_o,
  /// The controller is being stopped: commands without data (zeroing, verifying), which can take long, end as soon as they
  /// can, with DataInterrupted if that was too soon. Stays until no command is inside.
  input  logic stop_i,

  /// Such a command is to end as soon as it can, with DataAborted or DataDeleted if that was too soon: its slot. Stays until
  /// the answer, as do the following.
  input  logic                 abort_valid_i,
  input  logic [SlotWidth-1:0] abort_slot_i,
  /// The slot is still that of the command that is meant: 0 from the cycle on in which it is shown at cmd_i for another one.
  input  logic                 abort_same_i,
  /// Why: its queue is being deleted.
  input  logic                 abort_deleted_i,
  /// Answer, within as many cycles as commands are inside, and some.
  output logic                 abort_ready_o,
  /// With the answer: there is such a command.
  output logic                 abort_found_o,

  /// Command; accepted at once, as there is room for all slots, but for the time that an abort takes.
  input  data_cmd_t  cmd_i,
  /// Command valid.
  input  logic       cmd_valid_i,
  /// Command ready.
  output logic       cmd_ready_o,
  /// End of a command, exactly one for each; all its bus transactions have ended.
  output data_done_t done_o,
  /// Done valid.
  output logic       done_valid_o,
  /// Done ready.
  input  logic       done_ready_i,

  /// Host masters. Ports 0 to NumChannels-1: the movers of that channel (AR/R host to device, AW/W/B device to
  /// host), all with ID 0. Port NumChannels: AR/R the lists (ID = walker, or one more for ranges), AW/W/B the
  /// admin buffer to host (ID 0). Write data follows its address without a gap; R and B are always accepted soon.
  ns_axi_if.master m_host[NumHost],


  /// Memory masters, one a channel, ID 0, media addresses (not local to the channel).
  ns_axi_if.master m_mem[NumChannels],


  /// Requests to the memories to zero blocks, one a channel: address in the channel, a multiple of 512.
  output logic [NumChannels-1:0][63:0] fill_addr_o,
  output logic [NumChannels-1:0][15:0] fill_blocks_o,
  output logic [NumChannels-1:0] fill_valid_o,
  input  logic [NumChannels-1:0] fill_ready_i,
  /// End what is under way at a block's end.
  output logic fill_stop_o,
  /// It has ended; with an error.
  input  logic [NumChannels-1:0] fill_done_i,
  input  logic [NumChannels-1:0] fill_error_i,

  /// Admin buffer: addresses with bit 63 of mem_addr cleared, ID 0.
  ns_axi_if.read_master m_adm,


  /// Trace of jobs, see nvme_trace_data.
  output logic [39:0] trace_job_o,
  output logic [2*NumChannels:0] trace_read_o,
  output logic [2*NumChannels:0] trace_data_o,
  output logic [2*NumChannels:0] trace_beat_o
);

  localparam int unsigned NumMovers = 2 * NumChannels + 1;  // media to host, admin buffer to host, host to media
  localparam int unsigned Admin = NumChannels;
  localparam int unsigned ToMedia = NumChannels + 1;
  localparam int unsigned NumLists = num_lists(NumWalkers, NumSglWalkers);
  localparam logic [IdWidth-1:0] RangesId = IdWidth'(NumLists);
  localparam int unsigned CountBits = unsigned'($clog2(NumSlots + 1));
  localparam int unsigned GranuleBits = unsigned'($clog2(Granule));
  localparam int unsigned ChannelBits = unsigned'($clog2(NumChannels));
  localparam int unsigned MediaBits = unsigned'($clog2(MediaBytes));
  // Of a mover to the media: drops and comparisons count, too.
  localparam int unsigned WriteBursts = (MediaWrites > 64) ? MediaWrites : 64;
  localparam int unsigned TagBits = MediaBits > ChannelBits + 13 ? MediaBits - ChannelBits - 12 : 1;

  // Commands inside.
  logic [CountBits-1:0] cmds_q;
  logic cmd_in, cmd_out;

  assign busy_o = cmds_q != '0;
  assign cmd_in = cmd_valid_i && cmd_ready_o;
  assign cmd_out = done_valid_o && done_ready_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) cmds_q <= '0;
    else if (cmd_in && !cmd_out) cmds_q <= cmds_q + 1'b1;
    else if (!cmd_in && cmd_out) cmds_q <= cmds_q - 1'b1;
  end

  // What works on commands rather than on data rests between them, and a mover without jobs, too.
  logic [NumMovers-1:0] clk, busy;
  logic clk_walk, prp_busy, ranges_busy, sweep_busy, route_busy, slots_busy;

  event_t [NumMovers+2:0] job_event;  // of the movers, the walkers, nvme_sweep, nvme_ranges
  logic [NumMovers+2:0] job_event_valid, job_event_ready;
  logic [NumMovers-1:0] job_valid, job_ready;

  ns_clock_gate u_gate_walk (
    .clk_i,
    .en_i (cmd_valid_i || abort_valid_i || prp_busy || ranges_busy || sweep_busy || route_busy || slots_busy || job_valid != '0
        || job_event_valid[NumMovers-1:0] != '0),
    .clk_o(clk_walk)
  );

  for (genvar m = 0; m < NumMovers; m++) begin : gen_gate
    ns_clock_gate u_gate (
      .clk_i,
      .en_i (busy[m] || job_valid[m]),
      .clk_o(clk[m])
    );
  end

  // Commands to segments.
  seg_t [1:0] prp_seg;
  seg_t sweep_seg;
  logic [1:0] prp_seg_valid, prp_seg_ready;
  logic sweep_seg_valid, sweep_seg_ready;
  logic has_prps, prp_ready, ranges_ready;  // with data at the host, described by PRPs or an SGL
  data_cmd_t find;
  seg_t piece;
  event_t list_end;
  logic find_valid, find_ready, piece_valid, piece_ready, list_end_valid, list_end_ready;
  ax_t prp_ar, ranges_ar;
  logic prp_ar_valid, prp_ar_ready, ranges_ar_valid, ranges_ar_ready, ranges_data;

  assign has_prps = cmd_i.op == OpRead || cmd_i.op == OpWrite || cmd_i.op == OpCompare;
  assign cmd_ready_o = has_prps ? prp_ready : ranges_ready;

  ns_axi_if lists ();

  nvme_prp #(
    .NumSlots     (NumSlots),
    .NumWalkers   (NumWalkers),
    .NumSglWalkers(NumSglWalkers),
    .MaxEmpty     (MaxEmpty)
  ) u_prp (
    .clk_i(clk_walk),
    .rst_ni,
    .busy_o(prp_busy),
    .cmd_i,
    .cmd_valid_i  (cmd_valid_i && has_prps),
    .cmd_ready_o  (prp_ready),
    .seg_o        (prp_seg),
    .seg_valid_o  (prp_seg_valid),
    .seg_ready_i  (prp_seg_ready),
    .event_o      (job_event[NumMovers]),
    .event_valid_o(job_event_valid[NumMovers]),
    .event_ready_i(job_event_ready[NumMovers]),
    .list_cmd_i        (find),
    .list_cmd_valid_i  (find_valid),
    .list_cmd_ready_o  (find_ready),
    .list_seg_o        (piece),
    .list_seg_valid_o  (piece_valid),
    .list_seg_ready_i  (piece_ready),
    .list_event_o      (list_end),
    .list_event_valid_o(list_end_valid),
    .list_event_ready_i(list_end_ready),
    .ar_o         (prp_ar),
    .ar_valid_o   (prp_ar_valid),
    .ar_ready_i   (prp_ar_ready),
    .r_i          (lists.r),
    .r_valid_i    (lists.r_valid && !ranges_data),
    .r_ready_o    (lists.r_ready)
  );

  range_t range;
  logic range_valid, range_ready, ranges_waits, cut, cut_found;
  data_status_e cut_status;

  nvme_ranges #(
    .NumSlots     (NumSlots),
    .NumNamespaces(NumNamespaces),
    .NsBlocks     (NsBlocks),
    .MediaBytes   (MediaBytes),
    .Id           (RangesId)
  ) u_ranges (
    .clk_i(clk_walk),
    .rst_ni,
    .busy_o       (ranges_busy),
    .waits_o      (ranges_waits),
    .stop_i,
    .abort_valid_i,
    .abort_slot_i,
    .abort_same_i,
    .abort_deleted_i,
    .abort_ready_o,
    .abort_found_o,
    .cut_o        (cut),
    .cut_status_o (cut_status),
    .cut_found_i  (cut_found),
    .event_o       (job_event[NumMovers+2]),
    .event_valid_o (job_event_valid[NumMovers+2]),
    .event_ready_i (job_event_ready[NumMovers+2]),
    .cmd_i,
    .cmd_valid_i  (cmd_valid_i && !has_prps),
    .cmd_ready_o  (ranges_ready),
    .range_o      (range),
    .range_valid_o(range_valid),
    .range_ready_i(range_ready),
    .find_o       (find),
    .find_valid_o (find_valid),
    .find_ready_i (find_ready),
    .piece_i      (piece),
    .piece_valid_i(piece_valid),
    .piece_ready_o(piece_ready),
    .end_i        (list_end),
    .end_valid_i  (list_end_valid),
    .end_ready_o  (list_end_ready),
    .ar_o         (ranges_ar),
    .ar_valid_o   (ranges_ar_valid),
    .ar_ready_i   (ranges_ar_ready),
    .r_i          (lists.r),
    .r_valid_i    (lists.r_valid && ranges_data)
  );

  // What is large is zeroed by the memories.
  localparam int unsigned FillBlocks = 128;
  localparam int unsigned RegionBlocks = NumChannels * ((Granule > 524_288) ? Granule / 512 : 1024);
  localparam int unsigned FillWidth = unsigned'($clog2(RegionBlocks + 1));
  logic [54:0] fill_lba;
  logic [FillWidth-1:0] fill_blocks;
  logic
      fill_valid,
      fill_done,
      fill_error,
      fill_stop,
      fill_busy,
      fill_waits,
      fill_drain,
      fill_hold,
      fill_quiet;

  nvme_fill #(
    .NumChannels(NumChannels),
    .Granule    (Granule)
  ) u_fill (
    .clk_i(clk_walk),
    .rst_ni,
    .busy_o  (fill_busy),
    .waits_o (fill_waits),
    .lba_i   (fill_lba),
    .blocks_i(fill_blocks),
    .valid_i (fill_valid),
    .done_o  (fill_done),
    .error_o (fill_error),
    .stop_i  (fill_stop),
    .drain_o (fill_drain),
    .hold_o  (fill_hold),
    .quiet_i (fill_quiet),
    .fill_addr_o,
    .fill_blocks_o,
    .fill_valid_o,
    .fill_ready_i,
    .fill_stop_o,
    .fill_done_i,
    .fill_error_i
  );

  // The rest is at rest, but for commands that have to wait for nvme_sweep.
  assign waits_o = fill_waits && ranges_waits && !cmd_valid_i && !prp_busy && !route_busy && !slots_busy && busy == '0
      && job_valid == '0 && job_event_valid == '0;

  nvme_sweep #(
    .Fills       (Fills),
    .FillBlocks  (FillBlocks),
    .RegionBlocks(RegionBlocks)
  ) u_sweep (
    .clk_i(clk_walk),
    .rst_ni,
    .busy_o       (sweep_busy),
    .stop_i,
    .cut_i        (cut),
    .cut_slot_i   (abort_slot_i),
    .cut_status_i (cut_status),
    .cut_found_o  (cut_found),
    .range_i      (range),
    .range_valid_i(range_valid),
    .range_ready_o(range_ready),
    .seg_o        (sweep_seg),
    .seg_valid_o  (sweep_seg_valid),
    .seg_ready_i  (sweep_seg_ready),
    .fill_lba_o   (fill_lba),
    .fill_blocks_o(fill_blocks),
    .fill_valid_o (fill_valid),
    .fill_done_i  (fill_done),
    .fill_error_i (fill_error),
    .fill_stop_o  (fill_stop),
    .event_o      (job_event[NumMovers+1]),
    .event_valid_o(job_event_valid[NumMovers+1]),
    .event_ready_i(job_event_ready[NumMovers+1])
  );

  // The lists' reads and the admin buffer's writes share a port.
  ns_axi_connect u_lists (
    .s_axi(lists),
    .m_axi(m_host[Admin])
  );

  // List reads share a port: PRPs go first. Once shown, an address stays.
  logic ranges_shown_q, prp_first;
  assign prp_first = prp_ar_valid && !ranges_shown_q;
  assign lists.ar = prp_first ? prp_ar : ranges_ar;
  assign lists.ar_valid = prp_ar_valid || ranges_ar_valid;
  assign prp_ar_ready = prp_first && lists.ar_ready;
  assign ranges_ar_ready = !prp_first && lists.ar_ready;
  assign ranges_data = lists.r.id == RangesId;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) ranges_shown_q <= 1'b0;
    else ranges_shown_q <= ranges_ar_valid && !prp_first && !lists.ar_ready;
  end

  // Segments to jobs.
  seg_t [1:0] seg;
  logic [1:0] seg_valid, seg_ready;

  nvme_route u_route (
    .clk_i(clk_walk),
    .rst_ni,
    .busy_o       (route_busy),
    .prp_i        (prp_seg),
    .prp_valid_i  (prp_seg_valid),
    .prp_ready_o  (prp_seg_ready),
    .sweep_i      (sweep_seg),
    .sweep_valid_i(sweep_seg_valid),
    .sweep_ready_o(sweep_seg_ready),
    .seg_o        (seg),
    .seg_valid_o  (seg_valid),
    .seg_ready_i  (seg_ready)
  );

  job_t job_to_host, job_to_media;

  nvme_split #(
    .NumChannels(NumChannels),
    .Granule    (Granule),
    .Write      (1'b0),
    .Admin      (1'b1)
  ) u_split_to_host (
    .clk_i(clk_walk),
    .rst_ni,
    .seg_i      (seg[0]),
    .seg_valid_i(seg_valid[0]),
    .seg_ready_o(seg_ready[0]),
    .job_o      (job_to_host),
    .job_valid_o(job_valid[0+:ToMedia]),
    .job_ready_i(job_ready[0+:ToMedia])
  );

  nvme_split #(
    .NumChannels(NumChannels),
    .Granule    (Granule),
    .Write      (1'b1),
    .Admin      (1'b0)
  ) u_split_to_media (
    .clk_i(clk_walk),
    .rst_ni,
    .seg_i      (seg[1]),
    .seg_valid_i(seg_valid[1]),
    .seg_ready_o(seg_ready[1]),
    .job_o      (job_to_media),
    .job_valid_o(job_valid[ToMedia+:NumChannels]),
    .job_ready_i(job_ready[ToMedia+:NumChannels])
  );

  // Movers.
  logic [NumChannels-1:0] data_ar_valid, data_ar_gnt;
  logic [NumChannels-1:0] host_ar_fire, host_r_fire, mem_ar_fire, mem_r_fire, host_last, mem_last;
  ax_t [NumChannels-1:0] data_ar;
  logic read_open;
  logic [NumChannels-1:0] read_busy, group_busy, write_busy;

  // A group may need the host between two of its pieces. A reset does not wait for that: the host may be what is dead. A
  // fill does: its blocks must not be zeroed between the two.
  assign media_busy_o = read_busy != '0 || write_busy != '0;
  assign fill_quiet = group_busy == '0 && write_busy == '0;

  // Granule of a media address among those of its channel.
  function automatic logic [TagBits-1:0] tag_of(logic [63:0] addr);
    logic [63:0] local_addr;
    local_addr = ((addr >> (GranuleBits + ChannelBits)) << GranuleBits) | (addr & 64'(Granule - 1));
    return TagBits'(local_addr >> 12);
  endfunction

  // A fill has its region for itself: no block is half zero for a reader, nor half of a write.
  localparam int unsigned RegionBytesBits = unsigned'($clog2(RegionBlocks)) + 9;
  function automatic logic filled(logic [63:0] addr);
    filled = fill_hold && (addr >> RegionBytesBits) == (64'({fill_lba, 9'd0}) >> RegionBytesBits);
  endfunction
  function automatic logic held(logic [63:0] addr);
    held = fill_drain || filled(addr);
  endfunction

  for (genvar c = 0; c < NumChannels; c++) begin : gen_channel
    // Comparisons: both movers' beats meet in the one that writes the media.
    logic [DataWidth-1:0] media_data, host_data;
    logic media_error, media_valid, host_error, host_valid;
    logic [63:0] read_addr, write_addr;
    logic read_open_channel, read_want, read_begin, read_end;
    logic write_open_channel, write_want, write_begin, write_end;
    logic clk_hazard;
    ns_axi_if mem ();
    ns_axi_if host ();
    ns_axi_if host_read ();

    ns_axi_connect u_mem (
      .s_axi(mem),
      .m_axi(m_mem[c])
    );
    ns_axi_connect u_host (
      .s_axi(host),
      .m_axi(m_host[c])
    );

    ns_clock_gate u_gate (
      .clk_i,
      .en_i (busy[c] || job_valid[c] || busy[ToMedia+c] || job_valid[ToMedia+c]),
      .clk_o(clk_hazard)
    );

    nvme_mover #(
      .FifoBeats  (MediaReadBeats),
      .MaxJobs    (MoverBeats / 8),
      .BurstBytes (512),
      .ReadStatus (DataReadError),
      .WriteStatus(DataHostError)
    ) u_to_host (
      .clk_i        (clk[c]),
      .rst_ni,
      .busy_o       (busy[c]),
      .job_i        (job_to_host),
      .job_valid_i  (job_valid[c]),
      .job_ready_o  (job_ready[c]),
      .event_o      (job_event[c]),
      .event_valid_o(job_event_valid[c]),
      .event_ready_i(job_event_ready[c]),
      .peer_data_i  (host_data),
      .peer_error_i (host_error),
      .peer_valid_i (host_valid),
      .cmp_data_o   (media_data),
      .cmp_error_o  (media_error),
      .cmp_valid_o  (media_valid),
      .read_hold_i  (quiesce_i),
      .read_open_i  (read_open_channel),
      .read_want_o  (read_want),
      .read_addr_o  (read_addr),
      .read_begin_o (read_begin),
      .read_end_o   (read_end),
      .read_busy_o  (read_busy[c]),
      .write_open_i (1'b1),
      .write_want_o (),
      .write_addr_o (),
      .write_begin_o(),
      .write_end_o  (),
      .m_source     (mem),
      .m_target     (host)
    );

    nvme_mover #(
      .FifoBeats  (MoverBeats),
      .MaxJobs    (MoverBeats / 8),
      .BurstBytes (MediaWriteBytes),
      .MaxBursts  (WriteBursts),
      .ReadStatus (DataHostError),
      .WriteStatus(DataWriteFault),
      .Compare    (1'b1),
      .Merge      (1'b1)
    ) u_to_media (
      .clk_i        (clk[ToMedia+c]),
      .rst_ni,
      .busy_o       (busy[ToMedia+c]),
      .job_i        (job_to_media),
      .job_valid_i  (job_valid[ToMedia+c]),
      .job_ready_o  (job_ready[ToMedia+c]),
      .event_o      (job_event[ToMedia+c]),
      .event_valid_o(job_event_valid[ToMedia+c]),
      .event_ready_i(job_event_ready[ToMedia+c]),
      .peer_data_i  (media_data),
      .peer_error_i (media_error),
      .peer_valid_i (media_valid),
      .cmp_data_o   (host_data),
      .cmp_error_o  (host_error),
      .cmp_valid_o  (host_valid),
      .read_hold_i  (1'b0),
      .read_open_i  (1'b1),
      .read_want_o  (),
      .read_addr_o  (),
      .read_begin_o (),
      .read_end_o   (),
      .read_busy_o  (),
      .write_open_i (write_open_channel),
      .write_want_o (write_want),
      .write_addr_o (write_addr),
      .write_begin_o(write_begin),
      .write_end_o  (write_end),
      .m_source     (host_read),
      .m_target     (mem)
    );

    // Reads of data wait for their turn.
    assign host.ar = host_read.ar;
    assign host.ar_valid = host_read.ar_valid && data_ar_gnt[c] && read_open;
    assign host_read.ar_ready = host.ar_ready && host.ar_valid;
    assign host_read.r = host.r;
    assign host_read.r_valid = host.r_valid;
    assign host.r_ready = host_read.r_ready;
    assign data_ar_valid[c] = host_read.ar_valid;
    assign data_ar[c] = host_read.ar;

    assign host_ar_fire[c] = host.ar_valid && host.ar_ready;
    assign host_r_fire[c] = host.r_valid && host.r_ready;
    assign mem_ar_fire[c] = mem.ar_valid && mem.ar_ready;
    assign mem_r_fire[c] = mem.r_valid && mem.r_ready;
    assign mem_last[c] = mem.r.last;
    assign host_last[c] = host.r.last;

    nvme_hazard #(
      .TagBits(TagBits),
      .Reads  (MediaReads),
      .Writes (MediaWrites)
    ) u_hazard (
      .clk_i        (clk_hazard),
      .rst_ni,
      .read_want_i  (read_want),
      .read_tag_i   (tag_of(read_addr)),
      .read_hold_i  (quiesce_i || held(read_addr)),
      .read_open_o  (read_open_channel),
      .read_begin_i (read_begin),
      .read_end_i   (read_end),
      .write_want_i (write_want),
      .write_tag_i  (tag_of(write_addr)),
      .write_hold_i (quiesce_i || held(write_addr)),
      .write_open_o (write_open_channel),
      .write_begin_i(write_begin),
      .write_end_i  (write_end),
      .read_busy_o  (group_busy[c]),
      .write_busy_o (write_busy[c])
    );

    `NS_ASSERT(fill_alone, !(mem.ar_valid && filled(mem.ar.addr)) && !(mem.aw_valid && filled(
               mem.aw.addr)))
  end

  nvme_mover #(
    .FifoBeats  (64),
    .BurstBytes (512),
    .ReadStatus (DataReadError),
    .WriteStatus(DataHostError)
  ) u_admin (
    .clk_i        (clk[Admin]),
    .rst_ni,
    .busy_o       (busy[Admin]),
    .job_i        (job_to_host),
    .job_valid_i  (job_valid[Admin]),
    .job_ready_o  (job_ready[Admin]),
    .event_o      (job_event[Admin]),
    .event_valid_o(job_event_valid[Admin]),
    .event_ready_i(job_event_ready[Admin]),
    .peer_data_i  ('0),
    .peer_error_i (1'b0),
    .peer_valid_i (1'b0),
    .cmp_data_o   (),
    .cmp_error_o  (),
    .cmp_valid_o  (),
    .read_hold_i  (1'b0),
    .read_open_i  (1'b1),
    .read_want_o  (),
    .read_addr_o  (),
    .read_begin_o (),
    .read_end_o   (),
    .read_busy_o  (),
    .write_open_i (1'b1),
    .write_want_o (),
    .write_addr_o (),
    .write_begin_o(),
    .write_end_o  (),
    .m_source     (m_adm),
    .m_target     (lists)
  );

  // Data reads from the host: one channel at a time, and no more than HostReadBytes outstanding.
  nvme_read_limit #(
    .NumPorts(NumChannels),
    .Bytes   (HostReadBytes)
  ) u_read_limit (
    .clk_i,
    .rst_ni,
    .ar_want_i (data_ar_valid),
    .ar_grant_o(data_ar_gnt),
    .ar_open_o (read_open),
    .ar_i      (data_ar),
    .ar_fire_i (host_ar_fire),
    .r_fire_i  (host_r_fire)
  );

  nvme_slots #(
    .NumSources(NumMovers + 3),
    .NumSlots  (NumSlots)
  ) u_slots (
    .clk_i(clk_walk),
    .rst_ni,
    .busy_o(slots_busy),
    .event_i      (job_event),
    .event_valid_i(job_event_valid),
    .event_ready_o(job_event_ready),
    .done_o,
    .done_valid_o,
    .done_ready_i
  );

  // Trace. Movers to the media read from the host.
  nvme_trace_data #(
    .NumToHost(ToMedia),
    .NumMovers(NumMovers)
  ) u_trace (
    .clk_i,
    .rst_ni,
    .job_i (job_valid & job_ready),
    .slot_i({job_to_media.slot, job_to_host.slot}),
    .read_i({
      host_ar_fire,
      m_adm.ar_valid && m_adm.ar_ready,
      mem_ar_fire
    }),
    .beat_i({
      host_r_fire,
      m_adm.r_valid && m_adm.r_ready,
      mem_r_fire
    }),
    .last_i({host_last, m_adm.r.last, mem_last}),
    .job_o (trace_job_o),
    .read_o(trace_read_o),
    .data_o(trace_data_o),
    .beat_o(trace_beat_o)
  );

  // A mover holds fewer jobs than this, beside one for each burst, and a comparison has jobs in both of a channel.
  localparam int unsigned MoverJobs = MoverBeats / 8 + 128;
  if (NumChannels * (2 * MoverJobs + 64 + WriteBursts) > 2 ** JobsWidth) begin : gen_bad_channels
    $error("nvme_data: more jobs in NumChannels and MediaWrites than are counted");
  end
  if (MediaWriteBytes < 1024) begin : gen_bad_burst
    $error("nvme_data: MediaWriteBytes must be a power of two from 1024 to 4096");
  end

  `NS_ASSERT(slot_in_range, !cmd_valid_i || 32'(cmd_i.slot) < NumSlots)
  `NS_ASSERT(only_read_admin, !cmd_valid_i || cmd_i.op == OpRead || !cmd_i.mem_addr[63])
  `NS_ASSERT(quiet_when_idle, busy_o || (busy == '0 && !fill_busy))

endmodule
