// SPDX-License-Identifier: Apache-2.0

// Data path of the NVMe controller: moves the data of commands between host memory and the media.
//
// The walkers (nvme_walkers) follow a command page by page along its PRPs or its SGL, and cut it
// where it crosses a granule. Then nvme_block_assembler combines the segments into whole logical
// blocks. Movers (nvme_mover) copy them, one for each memory channel and direction. Each direction
// has separate queues, walkers and movers, so that neither can block the other; a comparison uses
// both. Commands without data (zeroing, verifying) reach the movers through nvme_ranges and
// nvme_range_walk.
//
// Assumptions: slots in flight are distinct and below NumSlots; sizes and media addresses lie
// within the namespace, which the front end checks. Two commands that overlap on the media are not
// ordered with respect to each other. Each logical block of 512 bytes is atomic: a Read returns it,
// and several Writes leave it, as one of them wrote it.
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
  /// SGL descriptors of a command that move no data, at most.
  parameter int unsigned MaxEmpty    = 4096,
  /// Namespaces, for ranges from host memory: see nvme_namespace.
  parameter int unsigned NumNamespaces = 1,
  /// See nvme_namespace.
  parameter ns_blocks_t NsBlocks = '0,
  /// See nvme_namespace.
  parameter longint unsigned MediaBytes = 64'h1_0000_0000,
  /// Bytes of data reads outstanding on the host side over all channels, and up to 4 KiB more. The
  /// default covers the round trip (1.2 us at 16 GB/s is 19 KiB). A larger value only delays other
  /// reads (commands, lists).
  parameter int unsigned HostReadBytes = 32768,
  /// 64-byte beats that a mover to the media holds or has in flight, at least 64. 512 is the depth
  /// of a block RAM of this width.
  parameter int unsigned MoverBeats  = 512,
  /// The same for a mover to the host: slow media need a channel's latency times its bandwidth.
  parameter int unsigned MediaReadBeats = 512,
  /// Reads of up to 4 KiB outstanding on a channel's media at most, a power of two.
  parameter int unsigned MediaReads  = 32,
  /// Largest write burst to the media in bytes, a power of two, 1024 to 4096. Longer bursts begin
  /// later, and a slow medium needs fewer of them.
  parameter int unsigned MediaWriteBytes = 1024,
  /// Write bursts outstanding on a channel's media at most, a power of two.
  parameter int unsigned MediaWrites = 32,
  /// 0: all zeros go through the movers, and `fill_*` stay idle.
  parameter bit Fills = 1'b1,
  /// Host-side AXI masters, see host_*.
  localparam int unsigned NumHost    = NumChannels + 1
) (
  input logic clk_i,
  input logic rst_ni,
  /// From registers: a further clock edge could change the state without new input.
  output logic busy_o,
  /// Begin no further burst on the memory side, except one that was granted in the cycle before.
  /// Bursts in flight end without the host: a write's address leaves when all of its data are here,
  /// and read data have room.
  input  logic quiesce_i,
  /// From registers: a burst on the memory side has begun, or begins in the next cycle, and has not
  /// ended.
  output logic media_busy_o,
  /// Only fills are in flight, see fill_*: nothing changes before a memory answers.
  output logic waiting_o,
  /// The controller is being stopped: commands without data (zeroing, verifying), which can take
  /// long, end as soon as possible. Their status is DataInterrupted if work was left. Stays 1 until
  /// no command is inside.
  input  logic stop_i,

  /// Slot of such a command, which is to end as soon as possible, with DataAborted or DataDeleted
  /// if work was left. Stays until the answer, as do the following inputs.
  input  logic                 abort_valid_i,
  input  logic [SlotWidth-1:0] abort_slot_i,
  /// The slot still belongs to that command: 0 from the cycle in which cmd_i shows the slot with
  /// another command.
  input  logic                 abort_current_i,
  /// Reason: its queue is being deleted.
  input  logic                 abort_deleted_i,
  /// Answer, within about as many cycles as there are commands inside.
  output logic                 abort_ready_o,
  /// With the answer: the command was found.
  output logic                 abort_found_o,

  /// Command. Accepted at once, as there is room for all slots, except while an abort is processed.
  input  data_cmd_t  cmd_i,
  /// Command valid.
  input  logic       cmd_valid_i,
  /// Command ready.
  output logic       cmd_ready_o,
  /// End of a command, exactly one for each; all bus transactions of the command have ended.
  output data_done_t done_o,
  /// Done valid.
  output logic       done_valid_o,
  /// Done ready.
  input  logic       done_ready_i,

  /// Host masters. Ports 0 to NumChannels-1: the movers of that channel, all with ID 0. AR/R are
  /// host to device, AW/W/B device to host. Port NumChannels: AR/R for the lists (ID = walker, the
  /// last ID for ranges), AW/W/B from admin buffer to host (ID 0). Write data follow their address
  /// without a gap. R and B are always accepted soon.
  ns_axi_if.master m_host[NumHost],


  /// Memory masters, one a channel, ID 0, media addresses (not local to the channel).
  ns_axi_if.master m_mem[NumChannels],


  /// Requests to the memories to zero blocks, one a channel: address in the channel, a multiple of
  /// 512.
  output logic [NumChannels-1:0][63:0] fill_addr_o,
  output logic [NumChannels-1:0][15:0] fill_blocks_o,
  output logic [NumChannels-1:0] fill_valid_o,
  input  logic [NumChannels-1:0] fill_ready_i,
  /// End the fills in flight at the end of a block.
  output logic fill_stop_o,
  /// A fill has ended; with an error.
  input  logic [NumChannels-1:0] fill_done_i,
  input  logic [NumChannels-1:0] fill_error_i,

  /// Admin buffer: addresses with bit 63 of mem_addr cleared, ID 0.
  ns_axi_if.read_master m_adm,


  /// Trace of descriptors, see nvme_trace_data.
  output logic [39:0] trace_job_o,
  output logic [2*NumChannels:0] trace_read_o,
  output logic [2*NumChannels:0] trace_data_o,
  output logic [2*NumChannels:0] trace_beat_o
);

  // Media to host, admin buffer to host, host to media.
  localparam int unsigned NumMovers = 2 * NumChannels + 1;
  localparam int unsigned Admin = NumChannels;
  localparam int unsigned ToMedia = NumChannels + 1;
  localparam int unsigned NumLists = num_lists(NumWalkers, NumSglWalkers);
  localparam logic [IdWidth-1:0] RangesId = IdWidth'(NumLists);
  localparam int unsigned CountBits = unsigned'($clog2(NumSlots + 1));
  localparam int unsigned GranuleBits = unsigned'($clog2(Granule));
  localparam int unsigned ChannelBits = unsigned'($clog2(NumChannels));
  localparam int unsigned MediaBits = unsigned'($clog2(MediaBytes));
  // For a mover to the media: dropped and compared bursts count as well.
  localparam int unsigned WriteBursts = (MediaWrites > 64) ? MediaWrites : 64;
  localparam int unsigned TagBits = MediaBits > ChannelBits + 13 ? MediaBits - ChannelBits - 12 : 1;

  // Commands inside.
  logic [CountBits-1:0] cmd_count_q;
  logic cmd_fire, done_fire;

  assign busy_o = cmd_count_q != '0;
  assign cmd_fire = cmd_valid_i && cmd_ready_o;
  assign done_fire = done_valid_o && done_ready_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) cmd_count_q <= '0;
    else if (cmd_fire && !done_fire) cmd_count_q <= cmd_count_q + 1'b1;
    else if (!cmd_fire && done_fire) cmd_count_q <= cmd_count_q - 1'b1;
  end

  // Clock gates: blocks that process commands rather than data stop between commands, and a mover
  // stops without descriptors.
  logic [NumMovers-1:0] clk, busy;
  logic clk_walkers, walkers_busy, ranges_busy, walk_busy, route_busy, slots_busy;

  // Of the movers, the walkers, nvme_range_walk, nvme_ranges.
  transfer_event_t [NumMovers+2:0] desc_event;
  logic [NumMovers+2:0] desc_event_valid, desc_event_ready;
  logic [NumMovers-1:0] desc_valid, desc_ready;

  ns_clock_gate u_gate_walk (
    .clk_i,
    .en_i (cmd_valid_i || abort_valid_i || walkers_busy || ranges_busy || walk_busy || route_busy || slots_busy || desc_valid != '0
        || desc_event_valid[NumMovers-1:0] != '0),
    .clk_o(clk_walkers)
  );

  for (genvar m = 0; m < NumMovers; m++) begin : gen_gate
    ns_clock_gate u_gate (
      .clk_i,
      .en_i (busy[m] || desc_valid[m]),
      .clk_o(clk[m])
    );
  end

  // Commands to segments.
  seg_t [1:0] walker_seg;
  seg_t walk_seg;
  logic [1:0] walker_seg_valid, walker_seg_ready;
  logic walk_seg_valid, walk_seg_ready;
  logic has_prps, walkers_ready, ranges_ready;  // data at the host, described by PRPs or an SGL
  data_cmd_t list_cmd;
  seg_t list_seg;
  transfer_event_t list_end;
  logic
      list_cmd_valid,
      list_cmd_ready,
      list_seg_valid,
      list_seg_ready,
      list_end_valid,
      list_end_ready;
  ax_t prp_ar, ranges_ar;
  logic prp_ar_valid, prp_ar_ready, ranges_ar_valid, ranges_ar_ready, ranges_data;

  assign has_prps = cmd_i.op == OpRead || cmd_i.op == OpWrite || cmd_i.op == OpCompare;
  assign cmd_ready_o = has_prps ? walkers_ready : ranges_ready;

  ns_axi_if lists ();

  nvme_walkers #(
    .NumSlots     (NumSlots),
    .NumWalkers   (NumWalkers),
    .NumSglWalkers(NumSglWalkers),
    .MaxEmpty     (MaxEmpty)
  ) u_walkers (
    .clk_i             (clk_walkers),
    .rst_ni,
    .busy_o            (walkers_busy),
    .cmd_i,
    .cmd_valid_i       (cmd_valid_i && has_prps),
    .cmd_ready_o       (walkers_ready),
    .seg_o             (walker_seg),
    .seg_valid_o       (walker_seg_valid),
    .seg_ready_i       (walker_seg_ready),
    .event_o           (desc_event[NumMovers]),
    .event_valid_o     (desc_event_valid[NumMovers]),
    .event_ready_i     (desc_event_ready[NumMovers]),
    .list_cmd_i        (list_cmd),
    .list_cmd_valid_i  (list_cmd_valid),
    .list_cmd_ready_o  (list_cmd_ready),
    .list_seg_o        (list_seg),
    .list_seg_valid_o  (list_seg_valid),
    .list_seg_ready_i  (list_seg_ready),
    .list_event_o      (list_end),
    .list_event_valid_o(list_end_valid),
    .list_event_ready_i(list_end_ready),
    .ar_o              (prp_ar),
    .ar_valid_o        (prp_ar_valid),
    .ar_ready_i        (prp_ar_ready),
    .r_i               (lists.r),
    .r_valid_i         (lists.r_valid && !ranges_data),
    .r_ready_o         (lists.r_ready)
  );

  range_t range;
  logic range_valid, range_ready, ranges_waiting, cancel, cancel_found;
  data_status_e cancel_status;

  nvme_ranges #(
    .NumSlots     (NumSlots),
    .NumNamespaces(NumNamespaces),
    .NsBlocks     (NsBlocks),
    .MediaBytes   (MediaBytes),
    .Id           (RangesId)
  ) u_ranges (
    .clk_i           (clk_walkers),
    .rst_ni,
    .busy_o          (ranges_busy),
    .waiting_o       (ranges_waiting),
    .stop_i,
    .abort_valid_i,
    .abort_slot_i,
    .abort_current_i,
    .abort_deleted_i,
    .abort_ready_o,
    .abort_found_o,
    .cancel_o        (cancel),
    .cancel_status_o (cancel_status),
    .cancel_found_i  (cancel_found),
    .event_o         (desc_event[NumMovers+2]),
    .event_valid_o   (desc_event_valid[NumMovers+2]),
    .event_ready_i   (desc_event_ready[NumMovers+2]),
    .cmd_i,
    .cmd_valid_i     (cmd_valid_i && !has_prps),
    .cmd_ready_o     (ranges_ready),
    .range_o         (range),
    .range_valid_o   (range_valid),
    .range_ready_i   (range_ready),
    .list_cmd_o      (list_cmd),
    .list_cmd_valid_o(list_cmd_valid),
    .list_cmd_ready_i(list_cmd_ready),
    .list_seg_i      (list_seg),
    .list_seg_valid_i(list_seg_valid),
    .list_seg_ready_o(list_seg_ready),
    .list_end_i      (list_end),
    .list_end_valid_i(list_end_valid),
    .list_end_ready_o(list_end_ready),
    .ar_o            (ranges_ar),
    .ar_valid_o      (ranges_ar_valid),
    .ar_ready_i      (ranges_ar_ready),
    .r_i             (lists.r),
    .r_valid_i       (lists.r_valid && ranges_data)
  );

  // Large ranges are zeroed by the memories.
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
      fill_waiting,
      fill_drain,
      fill_hold,
      fill_quiet;

  nvme_fill #(
    .NumChannels(NumChannels),
    .Granule    (Granule)
  ) u_fill (
    .clk_i    (clk_walkers),
    .rst_ni,
    .busy_o   (fill_busy),
    .waiting_o(fill_waiting),
    .lba_i    (fill_lba),
    .blocks_i (fill_blocks),
    .valid_i  (fill_valid),
    .done_o   (fill_done),
    .error_o  (fill_error),
    .stop_i   (fill_stop),
    .drain_o  (fill_drain),
    .hold_o   (fill_hold),
    .quiet_i  (fill_quiet),
    .fill_addr_o,
    .fill_blocks_o,
    .fill_valid_o,
    .fill_ready_i,
    .fill_stop_o,
    .fill_done_i,
    .fill_error_i
  );

  // All other blocks are idle, except for commands that wait for nvme_range_walk.
  assign waiting_o = fill_waiting && ranges_waiting && !cmd_valid_i && !walkers_busy && !route_busy && !slots_busy && busy == '0
      && desc_valid == '0 && desc_event_valid == '0;

  nvme_range_walk #(
    .Fills       (Fills),
    .FillBlocks  (FillBlocks),
    .RegionBlocks(RegionBlocks)
  ) u_range_walk (
    .clk_i          (clk_walkers),
    .rst_ni,
    .busy_o         (walk_busy),
    .stop_i,
    .cancel_i       (cancel),
    .cancel_slot_i  (abort_slot_i),
    .cancel_status_i(cancel_status),
    .cancel_found_o (cancel_found),
    .range_i        (range),
    .range_valid_i  (range_valid),
    .range_ready_o  (range_ready),
    .seg_o          (walk_seg),
    .seg_valid_o    (walk_seg_valid),
    .seg_ready_i    (walk_seg_ready),
    .fill_lba_o     (fill_lba),
    .fill_blocks_o  (fill_blocks),
    .fill_valid_o   (fill_valid),
    .fill_done_i    (fill_done),
    .fill_error_i   (fill_error),
    .fill_stop_o    (fill_stop),
    .event_o        (desc_event[NumMovers+1]),
    .event_valid_o  (desc_event_valid[NumMovers+1]),
    .event_ready_i  (desc_event_ready[NumMovers+1])
  );

  // The lists' reads and the admin buffer's writes share a port.
  ns_axi_connect u_lists (
    .s_axi(lists),
    .m_axi(m_host[Admin])
  );

  // List reads share a port: PRPs have priority. An address that is valid stays.
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

  // Segments to descriptors.
  seg_t [1:0] seg;
  logic [1:0] seg_valid, seg_ready;

  nvme_segment_router u_segment_router (
    .clk_i       (clk_walkers),
    .rst_ni,
    .busy_o      (route_busy),
    .prp_i       (walker_seg),
    .prp_valid_i (walker_seg_valid),
    .prp_ready_o (walker_seg_ready),
    .walk_i      (walk_seg),
    .walk_valid_i(walk_seg_valid),
    .walk_ready_o(walk_seg_ready),
    .seg_o       (seg),
    .seg_valid_o (seg_valid),
    .seg_ready_i (seg_ready)
  );

  desc_t desc_to_host, desc_to_media;

  nvme_splitter #(
    .NumChannels(NumChannels),
    .Granule    (Granule),
    .Write      (1'b0),
    .Admin      (1'b1)
  ) u_splitter_to_host (
    .clk_i       (clk_walkers),
    .rst_ni,
    .seg_i       (seg[0]),
    .seg_valid_i (seg_valid[0]),
    .seg_ready_o (seg_ready[0]),
    .desc_o      (desc_to_host),
    .desc_valid_o(desc_valid[0+:ToMedia]),
    .desc_ready_i(desc_ready[0+:ToMedia])
  );

  nvme_splitter #(
    .NumChannels(NumChannels),
    .Granule    (Granule),
    .Write      (1'b1),
    .Admin      (1'b0)
  ) u_splitter_to_media (
    .clk_i       (clk_walkers),
    .rst_ni,
    .seg_i       (seg[1]),
    .seg_valid_i (seg_valid[1]),
    .seg_ready_o (seg_ready[1]),
    .desc_o      (desc_to_media),
    .desc_valid_o(desc_valid[ToMedia+:NumChannels]),
    .desc_ready_i(desc_ready[ToMedia+:NumChannels])
  );

  // Movers.
  logic [NumChannels-1:0] data_ar_valid, data_ar_gnt;
  logic [NumChannels-1:0] host_ar_fire, host_r_fire, mem_ar_fire, mem_r_fire, host_last, mem_last;
  ax_t [NumChannels-1:0] data_ar;
  logic read_open;
  logic [NumChannels-1:0] read_busy, group_busy, write_busy;

  // A group may need the host between two of its segments. A reset does not wait for that, as the
  // host may be dead. A fill waits, because its blocks must not be zeroed between the two.
  assign media_busy_o = read_busy != '0 || write_busy != '0;
  assign fill_quiet = group_busy == '0 && write_busy == '0;

  // Granule of a media address among those of its channel.
  function automatic logic [TagBits-1:0] tag_of(logic [63:0] addr);
    logic [63:0] local_addr;
    local_addr = ((addr >> (GranuleBits + ChannelBits)) << GranuleBits) | (addr & 64'(Granule - 1));
    return TagBits'(local_addr >> 12);
  endfunction

  // A fill has exclusive access to its region: a block is never half zero for a reader, nor half of
  // a write.
  localparam int unsigned RegionBytesBits = unsigned'($clog2(RegionBlocks)) + 9;
  function automatic logic media_filling(logic [63:0] addr);
    media_filling = fill_hold && (addr >> RegionBytesBits) == (64'({fill_lba, 9'd0}) >> RegionBytesBits);
  endfunction
  function automatic logic media_held(logic [63:0] addr);
    media_held = fill_drain || media_filling(addr);
  endfunction

  for (genvar c = 0; c < NumChannels; c++) begin : gen_channel
    // Comparisons: the beats of both movers meet in the mover that writes the media.
    logic [DataWidth-1:0] media_data, host_data;
    logic media_error, media_valid, host_error, host_valid;
    logic [63:0] read_addr, write_addr;
    logic read_open_channel, read_req, read_begin, read_end;
    logic write_open_channel, write_req, write_begin, write_end;
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
      .en_i (busy[c] || desc_valid[c] || busy[ToMedia+c] || desc_valid[ToMedia+c]),
      .clk_o(clk_hazard)
    );

    nvme_mover #(
      .FifoBeats  (MediaReadBeats),
      .MaxDescs   (MoverBeats / 8),
      .BurstBytes (512),
      .ReadStatus (DataReadError),
      .WriteStatus(DataHostError)
    ) u_to_host (
      .clk_i        (clk[c]),
      .rst_ni,
      .busy_o       (busy[c]),
      .desc_i       (desc_to_host),
      .desc_valid_i (desc_valid[c]),
      .desc_ready_o (desc_ready[c]),
      .event_o      (desc_event[c]),
      .event_valid_o(desc_event_valid[c]),
      .event_ready_i(desc_event_ready[c]),
      .peer_data_i  (host_data),
      .peer_error_i (host_error),
      .peer_valid_i (host_valid),
      .cmp_data_o   (media_data),
      .cmp_error_o  (media_error),
      .cmp_valid_o  (media_valid),
      .read_hold_i  (quiesce_i),
      .read_open_i  (read_open_channel),
      .read_req_o   (read_req),
      .read_addr_o  (read_addr),
      .read_begin_o (read_begin),
      .read_end_o   (read_end),
      .read_busy_o  (read_busy[c]),
      .write_open_i (1'b1),
      .write_req_o  (),
      .write_addr_o (),
      .write_begin_o(),
      .write_end_o  (),
      .m_source     (mem),
      .m_target     (host)
    );

    nvme_mover #(
      .FifoBeats  (MoverBeats),
      .MaxDescs   (MoverBeats / 8),
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
      .desc_i       (desc_to_media),
      .desc_valid_i (desc_valid[ToMedia+c]),
      .desc_ready_o (desc_ready[ToMedia+c]),
      .event_o      (desc_event[ToMedia+c]),
      .event_valid_o(desc_event_valid[ToMedia+c]),
      .event_ready_i(desc_event_ready[ToMedia+c]),
      .peer_data_i  (media_data),
      .peer_error_i (media_error),
      .peer_valid_i (media_valid),
      .cmp_data_o   (host_data),
      .cmp_error_o  (host_error),
      .cmp_valid_o  (host_valid),
      .read_hold_i  (1'b0),
      .read_open_i  (1'b1),
      .read_req_o   (),
      .read_addr_o  (),
      .read_begin_o (),
      .read_end_o   (),
      .read_busy_o  (),
      .write_open_i (write_open_channel),
      .write_req_o  (write_req),
      .write_addr_o (write_addr),
      .write_begin_o(write_begin),
      .write_end_o  (write_end),
      .m_source     (host_read),
      .m_target     (mem)
    );

    // Reads of data wait for the read limit.
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
      .read_req_i   (read_req),
      .read_tag_i   (tag_of(read_addr)),
      .read_hold_i  (quiesce_i || media_held(read_addr)),
      .read_open_o  (read_open_channel),
      .read_begin_i (read_begin),
      .read_end_i   (read_end),
      .write_req_i  (write_req),
      .write_tag_i  (tag_of(write_addr)),
      .write_hold_i (quiesce_i || media_held(write_addr)),
      .write_open_o (write_open_channel),
      .write_begin_i(write_begin),
      .write_end_i  (write_end),
      .read_busy_o  (group_busy[c]),
      .write_busy_o (write_busy[c])
    );

    `NS_ASSERT(fill_alone, !(mem.ar_valid && media_filling(mem.ar.addr
               )) && !(mem.aw_valid && media_filling(mem.aw.addr)))
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
    .desc_i       (desc_to_host),
    .desc_valid_i (desc_valid[Admin]),
    .desc_ready_o (desc_ready[Admin]),
    .event_o      (desc_event[Admin]),
    .event_valid_o(desc_event_valid[Admin]),
    .event_ready_i(desc_event_ready[Admin]),
    .peer_data_i  ('0),
    .peer_error_i (1'b0),
    .peer_valid_i (1'b0),
    .cmp_data_o   (),
    .cmp_error_o  (),
    .cmp_valid_o  (),
    .read_hold_i  (1'b0),
    .read_open_i  (1'b1),
    .read_req_o   (),
    .read_addr_o  (),
    .read_begin_o (),
    .read_end_o   (),
    .read_busy_o  (),
    .write_open_i (1'b1),
    .write_req_o  (),
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
    .ar_req_i  (data_ar_valid),
    .ar_grant_o(data_ar_gnt),
    .ar_open_o (read_open),
    .ar_i      (data_ar),
    .ar_fire_i (host_ar_fire),
    .r_fire_i  (host_r_fire)
  );

  nvme_transfer_tracker #(
    .NumSources(NumMovers + 3),
    .NumSlots  (NumSlots)
  ) u_transfer_tracker (
    .clk_i        (clk_walkers),
    .rst_ni,
    .busy_o       (slots_busy),
    .event_i      (desc_event),
    .event_valid_i(desc_event_valid),
    .event_ready_o(desc_event_ready),
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
    .desc_i(desc_valid & desc_ready),
    .slot_i({desc_to_media.slot, desc_to_host.slot}),
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
    .desc_o(trace_job_o),
    .read_o(trace_read_o),
    .data_o(trace_data_o),
    .beat_o(trace_beat_o)
  );

  // A mover holds fewer descriptors than this, plus one for each burst. A comparison has
  // descriptors in both movers of a channel.
  localparam int unsigned MoverDescs = MoverBeats / 8 + 128;
  if (NumChannels * (2 * MoverDescs + 64 + WriteBursts) > 2 ** DescsWidth) begin : gen_bad_channels
    $error("nvme_data: more descs in NumChannels and MediaWrites than are counted");
  end
  if (MediaWriteBytes < 1024) begin : gen_bad_burst
    $error("nvme_data: MediaWriteBytes must be a power of two from 1024 to 4096");
  end

  `NS_ASSERT(slot_in_range, !cmd_valid_i || 32'(cmd_i.slot) < NumSlots)
  `NS_ASSERT(only_read_admin, !cmd_valid_i || cmd_i.op == OpRead || !cmd_i.mem_addr[63])
  `NS_ASSERT(quiet_when_idle, busy_o || (busy == '0 && !fill_busy))

endmodule
