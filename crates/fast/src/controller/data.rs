//! Transfers: data of commands between host memory and the media (hw/ip/nvme_ctrl/doc_data.md).
//!
//! A transfer is walked into pieces of host pages; pieces that make whole blocks become jobs within 4 KiB of the media, each for
//! the mover of its channel. A read job is one burst of the media, whose blocks leave for the host as they come; a write job
//! fetches its pieces and leaves as bursts of the media, each when it is here whole.

use std::collections::VecDeque;
use std::sync::Arc;

use nvme::{Fault, Step, Walker, BLOCK_BYTES};
use sim::{HostPort, TraceEvent};
use spec::nvme::{status, Status};

use crate::config::Config;
use crate::cx::{Cx, Event, TAG_READ, TAG_WRITE};
use crate::memory::{master, Memories};
use crate::port::{tell_beats, Arrival, Port, Post, Purpose, Taken, BEAT, BURST};
use crate::slab::Slab;

use super::hazard::Hazard;
use super::timing;

/// Jobs within so many bytes of the media.
const SPAN: u64 = 4096;
/// Bursts towards the host end at multiples of so many bytes.
const HOST_BURST: u64 = BURST as u64;
/// Beats that a mover towards the media holds.
const MOVER_BEATS: u32 = 512;
/// Jobs that wait in a mover.
const QUEUE_JOBS: usize = 16;
/// Beats of data reads outstanding at the host, over all channels, and one burst.
const HOST_READ_BEATS: u32 = 512;
/// Walkers a direction.
const WALKERS: usize = 2;
/// Bytes of a list that are read at a time.
const LIST_BYTES: u64 = 128;

/// A mover's accesses to the media have one ID.
const NVME_ID: u16 = 0;

const READ: usize = 0;
const WRITE: usize = 1;

/// What a transfer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Media, or a page, to the host.
    Read,
    /// Host to the media.
    Write,
    /// Both are compared.
    Compare,
    /// Zeros to the media.
    Zero,
    /// The media are read, and that is all.
    Verify,
}

impl Op {
    /// The walkers that it needs: a comparison looks for what comes from the host.
    fn walkers(self) -> usize {
        match self {
            Op::Read => READ,
            _ => WRITE,
        }
    }

    /// The movers.
    fn direction(self) -> usize {
        match self {
            Op::Read | Op::Verify | Op::Compare => READ,
            Op::Write | Op::Zero => WRITE,
        }
    }
}

/// How a transfer has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Ok,
    Walk(Fault),
    HostError,
    ReadError,
    WriteFault,
    Mismatch,
    OutOfRange,
    /// The controller is being stopped.
    Interrupted,
    Aborted,
    Deleted,
}

impl Outcome {
    /// The command's status, for a host that has set ACRE or not (README of nvme_ctrl, "Status codes").
    pub(crate) fn status(self, acre: bool) -> Status {
        match self {
            Outcome::Ok => status::SUCCESS,
            Outcome::Walk(fault) => fault.status(),
            Outcome::HostError => status::DATA_TRANSFER_ERROR,
            Outcome::ReadError => status::UNRECOVERED_READ_ERROR,
            Outcome::WriteFault => status::WRITE_FAULT,
            Outcome::Mismatch => status::COMPARE_FAILURE.dnr(),
            Outcome::OutOfRange => status::LBA_OUT_OF_RANGE.dnr(),
            Outcome::Interrupted => interrupted(acre),
            Outcome::Aborted => status::ABORT_REQUESTED,
            Outcome::Deleted => status::ABORTED_SQ_DELETION,
        }
    }
}

/// The status of what the controller could not go on with (NVMe 1.4, figures 126 and 127): only hosts that have set ACRE get Command
/// Interrupted.
pub(crate) fn interrupted(acre: bool) -> Status {
    match acre {
        true => status::COMMAND_INTERRUPTED.with_delay(1),
        false => status::INTERNAL_ERROR,
    }
}

/// Where the data of a Read come from.
#[derive(Clone)]
pub(crate) enum Source {
    /// The media from this address on.
    Media(u64),
    /// These bytes, and zeros behind them.
    Page(Arc<[u8]>),
}

/// A command's data.
pub(crate) struct Request {
    pub(crate) op: Op,
    pub(crate) source: Source,
    pub(crate) walker: Walker,
}

struct Transfer {
    op: Op,
    source: Source,
    walker: Option<Walker>,
    /// A list read is under way: its first entry's address.
    list: Option<u64>,
    /// It has one of the walkers.
    walking: bool,
    /// Its next step, clock edge.
    step_at: u64,
    /// Pieces that do not make whole blocks yet.
    group: Vec<Piece>,
    /// Where the group begins in the transfer.
    group_at: u64,
    group_len: u64,
    /// Jobs made and not over.
    open: u32,
    walked: bool,
    outcome: Outcome,
    /// What is to become jobs, and waits for room in a mover.
    stalled: VecDeque<Part>,
}

/// A part of a transfer that becomes a job: address on the media, or place in the page; bytes; where in the host.
struct Part {
    at: u64,
    len: u32,
    pieces: Pieces,
}

/// A part of a job in one host page; without an address it goes nowhere.
#[derive(Clone, Copy, Debug)]
struct Piece {
    host: Option<u64>,
    len: u32,
}

struct Job {
    slot: u16,
    op: Op,
    /// Address on the media, or place in the page.
    at: u64,
    len: u32,
    channel: usize,
    pieces: Pieces,
    /// Data that came from the host, or a copy of what goes there where blocks do not lie whole in a page.
    buffer: Vec<u8>,
    /// Bytes of each piece that have come: the first one's, and those of the others.
    got: u32,
    got_others: Vec<u32>,
    /// The host has refused a part of it: from, to.
    bad: Vec<(u32, u32)>,
    /// The next piece to ask the host for, of a write.
    next: u16,
    /// Pieces whose reads are not over.
    asked: u32,
    /// Compare: the media's side is here.
    media_here: bool,
    /// Read: bytes that have left the channel.
    read: u32,
    /// Bytes up to here are in bursts.
    cut: u32,
    /// Bursts, or chunks, that are not over.
    open: u32,
}

/// Mostly one.
#[derive(Clone, Debug)]
enum Pieces {
    One(Piece),
    Many(Vec<Piece>),
}

impl Pieces {
    fn as_slice(&self) -> &[Piece] {
        match self {
            Pieces::One(piece) => std::slice::from_ref(piece),
            Pieces::Many(pieces) => pieces,
        }
    }
}

/// Bytes of a job on their way to the host: at most a burst.
struct Chunk {
    ready: u64,
    job: u32,
    /// Where in the job.
    from: u32,
    len: u32,
    host: u64,
}

/// A burst on its way to the media.
struct Burst {
    job: u32,
    from: u32,
    len: u32,
}

#[derive(Default)]
struct Mover {
    queue: VecDeque<u32>,
    /// Jobs whose data come from the host, in order.
    filling: VecDeque<u32>,
    /// Beats that there is room for.
    room: u32,
    /// Its next job.
    free: u64,
    /// The next beat that it writes.
    beats_free: u64,
}

pub(crate) struct Data {
    transfers: Vec<Option<Box<Transfer>>>,
    jobs: Slab<Job>,
    bursts: Slab<Burst>,
    /// By direction and channel.
    movers: [Vec<Mover>; 2],
    /// What is outstanding on the media of each channel.
    hazards: Vec<Hazard>,
    /// Chunks of each channel, in order.
    outgoing: Vec<VecDeque<Chunk>>,
    /// Whose turn it is at the host port: a channel, or the front end.
    turn: usize,
    /// Transfers that wait for a walker.
    waiting: [VecDeque<u16>; 2],
    walking: [usize; 2],
    /// Transfers that wait for room in a mover.
    stalled: VecDeque<u16>,
    /// Transfers whose jobs come from sweeps, and not all yet.
    sweeps: u32,
    host_beats: u32,
    /// Whose turn it is to ask the host for data, and from when on.
    ask_turn: usize,
    ask_free: u64,
    /// Data from the host on their way through the movers: when they are there, whose.
    landing: VecDeque<(u64, u32, u16, Arrival)>,
    reads: u32,
    write_bytes: u64,
    writes: u32,
    /// Buffers and transfers to use again.
    spare: Vec<Vec<u8>>,
    #[allow(clippy::vec_box, reason = "they go back into their slots as they are")]
    spare_transfers: Vec<Box<Transfer>>,
}

impl Data {
    pub(crate) fn new(config: &Config) -> Data {
        let channels = config.storage.channels as usize;
        let movers = |room| {
            (0..channels)
                .map(|_| Mover {
                    room,
                    ..Mover::default()
                })
                .collect()
        };
        Data {
            transfers: (0..config.slots).map(|_| None).collect(),
            jobs: Slab::new(),
            bursts: Slab::new(),
            movers: [movers(config.media_read_beats), movers(MOVER_BEATS)],
            hazards: (0..channels).map(|_| Hazard::default()).collect(),
            outgoing: (0..channels).map(|_| VecDeque::new()).collect(),
            turn: 0,
            waiting: Default::default(),
            walking: [0; 2],
            stalled: VecDeque::new(),
            sweeps: 0,
            host_beats: 0,
            ask_turn: 0,
            ask_free: 0,
            landing: VecDeque::new(),
            reads: config.media_reads,
            write_bytes: config.media_write_bytes.into(),
            writes: config.media_writes,
            spare: Vec::new(),
            spare_transfers: Vec::new(),
        }
    }

    /// Begins the transfer of a command.
    pub(crate) fn start(&mut self, slot: u16, request: Request, cx: &mut Cx) {
        let direction = request.op.walkers();
        self.open_with(slot, request.op, request.source, Some(request.walker));
        if self.walking[direction] == WALKERS {
            self.waiting[direction].push_back(slot);
            return;
        }
        self.walking[direction] += 1;
        self.begin_walk(slot, cx);
    }

    /// Begins a transfer without a walk: zeros or verification, whose jobs [`Data::sweep`] makes until [`Data::swept`].
    pub(crate) fn open(&mut self, slot: u16, op: Op) {
        self.sweeps += 1;
        self.open_with(slot, op, Source::Media(0), None);
    }

    fn open_with(&mut self, slot: u16, op: Op, source: Source, walker: Option<Walker>) {
        let mut transfer = self.spare_transfers.pop().unwrap_or_else(|| {
            Box::new(Transfer {
                op,
                source: Source::Media(0),
                walker: None,
                list: None,
                walking: false,
                step_at: 0,
                group: Vec::new(),
                group_at: 0,
                group_len: 0,
                open: 0,
                walked: false,
                outcome: Outcome::Ok,
                stalled: VecDeque::new(),
            })
        });
        // What is left of the last one: nothing walks, nothing is open.
        transfer.op = op;
        transfer.source = source;
        transfer.walker = walker;
        transfer.list = None;
        transfer.group.clear();
        transfer.walked = false;
        transfer.outcome = Outcome::Ok;
        self.transfers[usize::from(slot)] = Some(transfer);
    }

    /// A job of zeros or verification within 4 KiB of the media; false: its mover has no room.
    pub(crate) fn sweep(&mut self, slot: u16, at: u64, len: u32, cx: &mut Cx) -> bool {
        let Some(transfer) = &mut self.transfers[usize::from(slot)] else {
            return true;
        };
        let op = transfer.op;
        let channel = channel_of(cx.memory, at);
        let mover = &mut self.movers[op.direction()][channel];
        if mover.queue.len() >= QUEUE_JOBS {
            return false;
        }
        transfer.open += 1;
        let job = Job::new(slot, op, at, len, channel, Pieces::Many(Vec::new()));
        let number = self.jobs.insert(job);
        mover.queue.push_back(number);
        self.issue(op.direction(), channel, cx);
        true
    }

    /// No further job comes.
    pub(crate) fn swept(&mut self, slot: u16, outcome: Outcome, cx: &mut Cx) {
        self.sweeps -= 1;
        if let Some(transfer) = &mut self.transfers[usize::from(slot)] {
            transfer.walked = true;
            if transfer.outcome == Outcome::Ok {
                transfer.outcome = outcome;
            }
        }
        self.look_over(slot, cx);
    }

    fn begin_walk(&mut self, slot: u16, cx: &mut Cx) {
        if let Some(transfer) = &mut self.transfers[usize::from(slot)] {
            transfer.walking = true;
        }
        cx.plan(cx.now + timing::WALK, Event::Walk(slot));
    }

    /// Goes on with a walk, unless it waits for something else.
    pub(crate) fn walk(&mut self, slot: u16, cx: &mut Cx) {
        let place = &mut self.transfers[usize::from(slot)];
        if !place
            .as_ref()
            .is_some_and(|t| t.walking && t.list.is_none())
        {
            return;
        }
        let Some(mut transfer) = place.take() else {
            return;
        };
        let over = self.walk_on(slot, &mut transfer, cx);
        let direction = transfer.op.walkers();
        self.transfers[usize::from(slot)] = Some(transfer);
        if over {
            self.end_walk(slot, direction, cx);
        }
    }

    fn end_walk(&mut self, slot: u16, direction: usize, cx: &mut Cx) {
        if let Some(transfer) = &mut self.transfers[usize::from(slot)] {
            transfer.walked = true;
            transfer.walking = false;
        }
        match self.waiting[direction].pop_front() {
            Some(next) => self.begin_walk(next, cx),
            None => self.walking[direction] -= 1,
        }
        self.look_over(slot, cx);
    }

    /// Walks until there is something to wait for; true when the walk is over.
    fn walk_on(&mut self, slot: u16, transfer: &mut Transfer, cx: &mut Cx) -> bool {
        loop {
            while let Some(part) = transfer.stalled.front() {
                let Some(channel) = self.room_for(transfer, part, cx) else {
                    if !self.stalled.contains(&slot) {
                        self.stalled.push_back(slot);
                    }
                    return false;
                };
                self.hand_over(slot, transfer, channel, cx);
            }
            if transfer.step_at > cx.now {
                return false;
            }
            let Some(walker) = &mut transfer.walker else {
                return true;
            };
            match walker.step() {
                Step::Data(piece) => {
                    let parts = part(transfer, Some(piece.addr), piece.len, piece.offset);
                    let mut step = match piece.offset {
                        0 => timing::FIRST_PAGE,
                        _ => timing::PAGE_STEP,
                    };
                    // Such a group leaves when its last part is here, a part at a time.
                    if parts > 1 {
                        step += timing::PARTS;
                    }
                    transfer.step_at = cx.now + step;
                    cx.plan(transfer.step_at, Event::Walk(slot));
                }
                Step::Drop(piece) => {
                    part(transfer, None, piece.len, piece.offset);
                }
                Step::NeedList(list) => {
                    // Whole lines, two at a time, within the page.
                    let (first, skip) = (list.addr & !(BEAT - 1), list.addr % BEAT);
                    let bytes = (skip + 8 * list.entries.min(LIST_BYTES)).next_multiple_of(BEAT);
                    let len = bytes.min(LIST_BYTES).min(SPAN - first % SPAN) as u32;
                    transfer.list = Some(list.addr);
                    cx.read(timing::LIST, Purpose::List(slot), first, len);
                    return false;
                }
                Step::Done => {
                    transfer.walker = None;
                }
                Step::Fault(fault) => {
                    transfer.walker = None;
                    transfer.group.clear();
                    if transfer.outcome == Outcome::Ok {
                        transfer.outcome = Outcome::Walk(fault);
                    }
                }
            }
        }
    }

    /// A part of a list has come.
    pub(crate) fn list_arrived(&mut self, slot: u16, arrival: &Arrival, cx: &mut Cx) {
        let Some(transfer) = &mut self.transfers[usize::from(slot)] else {
            return;
        };
        let (Some(addr), Some(walker)) = (transfer.list, &mut transfer.walker) else {
            return;
        };
        match &arrival.data {
            None => walker.fail(),
            Some(data) => {
                // What stands before the first entry in its line is not wanted.
                let first = addr & !(BEAT - 1);
                let skip = (addr - first).saturating_sub(arrival.offset.into()) as usize;
                let wanted = data.get(skip..).unwrap_or(&[]);
                for qword in wanted.chunks_exact(8) {
                    let mut bytes = [0; 8];
                    bytes.copy_from_slice(qword);
                    walker.feed(&[u64::from_le_bytes(bytes)]);
                }
            }
        }
        if arrival.last {
            transfer.list = None;
            cx.plan(arrival.cycle + timing::LIST_BACK, Event::Walk(slot));
        }
    }

    /// The channel of a transfer's next job; `None` while its mover has no room.
    fn room_for(&self, t: &Transfer, part: &Part, cx: &Cx) -> Option<usize> {
        let channel = match t.source {
            Source::Media(_) => channel_of(cx.memory, part.at),
            Source::Page(_) => 0,
        };
        let mover = &self.movers[t.op.direction()][channel];
        (mover.queue.len() < QUEUE_JOBS).then_some(channel)
    }

    /// Makes a job of a transfer's next part, for its mover.
    fn hand_over(&mut self, slot: u16, t: &mut Transfer, channel: usize, cx: &mut Cx) {
        let Some(Part { at, len, pieces }) = t.stalled.pop_front() else {
            return;
        };
        let media = matches!(t.source, Source::Media(_));
        let direction = t.op.direction();
        t.open += 1;
        let job = Job::new(slot, t.op, at, len, channel, pieces);
        let number = self.jobs.insert(job);
        if !media {
            // The admin buffer answers at once.
            let slot = slot as u8;
            let ready = cx.now + timing::PAGE;
            let mover = self.outgoing.len() as u8;
            cx.tell(cx.now, || TraceEvent::Segment {
                slot,
                mover,
                to_media: false,
            });
            cx.tell(ready, || TraceEvent::Data { mover });
            if let Some(job) = self.jobs.get_mut(number) {
                job.read = job.len;
            }
            self.make_chunks(number, ready);
            cx.plan(ready, Event::Port);
            return;
        }
        self.movers[direction][channel].queue.push_back(number);
        self.issue(direction, channel, cx);
    }

    /// Begins jobs of a mover, as far as it has room.
    pub(crate) fn issue(&mut self, direction: usize, channel: usize, cx: &mut Cx) {
        let mut taken = false;
        let channels = self.outgoing.len();
        while let Some(&number) = self.movers[direction][channel].queue.front() {
            let Some(job) = self.jobs.get_mut(number) else {
                self.movers[direction][channel].queue.pop_front();
                continue;
            };
            let mover = &mut self.movers[direction][channel];
            let beats = job.len.div_ceil(BEAT as u32);
            let at = mover.free.max(cx.now);
            if mover.room < beats {
                break;
            }
            match job.op {
                Op::Read | Op::Verify | Op::Compare => {
                    let hazard = &mut self.hazards[channel];
                    if hazard.reads() >= self.reads {
                        break;
                    }
                    let (from, len) = (job.at, job.len.into());
                    let hook = cx.hook.as_deref_mut();
                    if hook.is_some_and(|hook| !hook.nvme(false, channel, from, len)) {
                        break;
                    }
                    if !hazard.read_begins(job.at) {
                        break;
                    }
                    let place = cx.memory.place(job.at);
                    let addr = place.map_or(0, |place| place.addr);
                    let tag = TAG_READ | u64::from(number);
                    let cycle = at + timing::READ_ISSUE;
                    cx.memory.prefetch(job.at, job.len);
                    cx.memory.channels[channel].read(
                        cycle,
                        master::NVME,
                        NVME_ID,
                        addr,
                        job.len,
                        tag,
                    );
                    cx.channel_changed(channel);
                    if job.op == Op::Compare {
                        make_buffer(job, &mut self.spare);
                        for piece in 0..job.pieces.as_slice().len() {
                            self.host_beats += ask_host(number, job, piece, at, cx.port);
                        }
                        cx.reads_changed(at + timing::DATA_READ);
                    }
                }
                Op::Write => {
                    taken |= self.ask(cx);
                    let front = self.movers[WRITE][channel].queue.front();
                    if front == Some(&number) {
                        break;
                    }
                    continue;
                }
                Op::Zero => {
                    mover.filling.push_back(number);
                    cx.plan(at + timing::ZERO, Event::Fill(channel as u8));
                }
            }
            mover.room -= beats;
            mover.free = at + 1;
            let (slot, mover) = (job.slot as u8, mover_of(direction, channel, channels));
            let to_media = direction == WRITE;
            cx.tell(at, || TraceEvent::Segment {
                slot,
                mover,
                to_media,
            });
            cx.tell(at, || TraceEvent::Read { mover });
            let mover = &mut self.movers[direction][channel];
            mover.queue.pop_front();
            taken = true;
        }
        if taken {
            self.wake_stalled(cx);
        }
    }

    /// Asks the host for data of writes, a read at a time: channels take turns. True: jobs have left their queues.
    fn ask(&mut self, cx: &mut Cx) -> bool {
        let channels = self.outgoing.len();
        let mut taken = false;
        while self.host_beats < HOST_READ_BEATS {
            let next = (0..channels).find_map(|n| {
                let channel = (self.ask_turn + n) % channels;
                let mover = &self.movers[WRITE][channel];
                let number = *mover.queue.front()?;
                let job = self.jobs.get(number)?;
                let room = job.next > 0 || mover.room >= job.len.div_ceil(BEAT as u32);
                (job.op == Op::Write && room).then_some((channel, number))
            });
            let Some((channel, number)) = next else {
                break;
            };
            let Some(job) = self.jobs.get_mut(number) else {
                break;
            };
            let mover = &mut self.movers[WRITE][channel];
            let at = self.ask_free.max(cx.now);
            if job.next == 0 {
                // What comes in one piece is kept as it comes.
                if job.pieces.as_slice().len() > 1 {
                    make_buffer(job, &mut self.spare);
                }
                mover.room -= job.len.div_ceil(BEAT as u32);
                mover.filling.push_back(number);
                let slot = job.slot as u8;
                let mover = mover_of(WRITE, channel, channels);
                cx.tell(at, || TraceEvent::Segment {
                    slot,
                    mover,
                    to_media: true,
                });
                cx.tell(at, || TraceEvent::Read { mover });
            }
            let beats = ask_host(number, job, job.next.into(), at, cx.port);
            if beats > 0 {
                // What has been asked counts a cycle later.
                self.host_beats += beats;
                self.ask_free = at + 2;
                self.ask_turn = (channel + 1) % channels;
                cx.reads_changed(at + timing::DATA_READ);
            }
            job.next += 1;
            if usize::from(job.next) == job.pieces.as_slice().len() {
                self.movers[WRITE][channel].queue.pop_front();
                taken = true;
            }
        }
        taken
    }

    fn wake_stalled(&mut self, cx: &mut Cx) {
        while let Some(slot) = self.stalled.pop_front() {
            cx.plan(cx.now, Event::Walk(slot));
        }
        if self.sweeps > 0 {
            cx.plan(cx.now, Event::Sweep);
        }
    }

    /// A part of the data of a read of the media, so many beats, has left the channel; the last part of its burst, or not.
    pub(crate) fn media_read(
        &mut self,
        number: u32,
        cycle: u64,
        beats: u32,
        end: bool,
        cx: &mut Cx,
    ) {
        let Some(job) = self.jobs.get_mut(number) else {
            return;
        };
        let (channel, op, from) = (job.channel, job.op, job.read);
        let mover = mover_of(READ, channel, self.outgoing.len());
        let beat = TraceEvent::Beat { mover };
        tell_beats(cx.clock, cycle + 1, beats.into(), beat, cx.tracer);
        if from == 0 {
            let first = cycle.saturating_sub(u64::from(beats));
            cx.tell(first, || TraceEvent::Data { mover });
        }
        job.read = match end {
            true => job.len,
            false => (job.read + beats * BEAT as u32).min(job.len),
        };
        if op == Op::Read {
            self.snapshot(number, from, cx);
            let ready = cycle + timing::READ_BACK;
            self.make_chunks(number, ready);
            cx.plan(ready, Event::Port);
        }
        if !end {
            return;
        }
        // The burst's place is free when its last beat has come.
        cx.plan(cycle, Event::ReadOver(channel as u8));
        let Some(job) = self.jobs.get_mut(number) else {
            return;
        };
        match op {
            Op::Read => self.look_over_job(number, cx),
            Op::Verify => {
                let mut block = [0; SPAN as usize];
                let len = job.len as usize;
                if !cx.memory.read(job.at, &mut block[..len]) {
                    self.fail(number, Outcome::ReadError);
                }
                self.movers[READ][channel].room += (len as u32).div_ceil(BEAT as u32);
                self.job_over(number, cycle, cx);
            }
            _ => {
                job.media_here = true;
                self.compare(number, cycle, cx);
            }
        }
    }

    /// What accesses of the media waited for in the hook may have ended.
    pub(crate) fn hook_changed(&mut self, cx: &mut Cx) {
        for channel in 0..self.outgoing.len() {
            self.fill(channel, cx);
            self.issue(READ, channel, cx);
        }
    }

    /// The place of a read burst is free.
    pub(crate) fn read_over(&mut self, channel: usize, cx: &mut Cx) {
        self.hazards[channel].read_ends();
        self.fill(channel, cx);
        self.issue(READ, channel, cx);
    }

    /// Bursts towards the host of what has been read of a job: those that are there whole.
    fn make_chunks(&mut self, number: u32, ready: u64) {
        let Some(job) = self.jobs.get_mut(number) else {
            return;
        };
        let outgoing = &mut self.outgoing[job.channel];
        let mut begin = 0;
        for piece in job.pieces.as_slice() {
            let end = begin + piece.len;
            while job.cut < end && job.cut >= begin {
                let Some(first) = piece.host else {
                    if job.read < end {
                        return;
                    }
                    job.cut = end;
                    break;
                };
                let host = first.wrapping_add(u64::from(job.cut - begin));
                let len = (end - job.cut).min((HOST_BURST - host % HOST_BURST) as u32);
                if job.cut + len > job.read {
                    return;
                }
                outgoing.push_back(Chunk {
                    ready,
                    job: number,
                    from: job.cut,
                    len,
                    host,
                });
                job.open += 1;
                job.cut += len;
            }
            begin = end;
        }
    }

    /// Where bursts towards the host are no whole blocks, blocks are read when they leave the channel, each at one moment: those from
    /// `from` on that have been read.
    fn snapshot(&mut self, number: u32, from: u32, cx: &mut Cx) {
        let Some(job) = self.jobs.get_mut(number) else {
            return;
        };
        let whole = |piece: &Piece| {
            let at = piece.host.is_none_or(|host| host % BLOCK_BYTES == 0);
            at && u64::from(piece.len) % BLOCK_BYTES == 0
        };
        if job.pieces.as_slice().iter().all(whole) {
            return;
        }
        if job.buffer.is_empty() {
            job.buffer = empty(job.len, &mut self.spare);
        }
        let part = &mut job.buffer[from as usize..job.read as usize];
        if !cx.memory.read(job.at + u64::from(from), part) {
            part.fill(0);
            self.fail(number, Outcome::ReadError);
        }
    }

    /// Sends what is ready to the host, a burst at a time: channels and the front end take turns. When to call again, clock edge.
    pub(crate) fn send(&mut self, now: u64, cx: &mut Cx, host: &mut dyn HostPort) -> Option<u64> {
        loop {
            let next_piece = loop {
                match cx.port.send_piece(now, host) {
                    Ok(Taken::Job(number)) => self.chunk_taken(number, cx),
                    Ok(Taken::EventIdx) => {
                        cx.port.event_idx_sent = true;
                        cx.plan(now, Event::Shadow);
                    }
                    Ok(Taken::AdminEntry) => {
                        cx.port.admin_sent = true;
                        cx.plan(now, Event::Admin);
                    }
                    Ok(_) => {}
                    Err(again) => break again,
                }
            };
            if !cx.port.has_pieces() {
                return next_piece;
            }
            let earlier = |at: u64| Some(next_piece.map_or(at, |piece| piece.min(at)));
            if cx.port.writes_free > now {
                return earlier(cx.port.writes_free);
            }
            let sources = self.outgoing.len() + 1;
            let mut next: Option<u64> = None;
            let mut chosen = None;
            for n in 0..sources {
                let source = (self.turn + n) % sources;
                let ready = match source {
                    0 => cx.port.posts.front().map(|post| post.0),
                    n => self.outgoing[n - 1].front().map(|chunk| chunk.ready),
                };
                let Some(ready) = ready else { continue };
                if ready <= now {
                    chosen = Some(source);
                    break;
                }
                next = Some(next.map_or(ready, |next| next.min(ready)));
            }
            let Some(source) = chosen else {
                return next.map_or(next_piece, earlier);
            };
            let beats = match source {
                0 => pass_post(now, cx.port),
                n => self.pass_chunk(n - 1, now, cx),
            };
            self.turn = (source + 1) % sources;
            let end = cx.port.writes_free;
            tell_beats(cx.clock, end, beats, TraceEvent::HostWrite, cx.tracer);
        }
    }

    /// A channel's first chunk passes the port; the beats that it takes.
    fn pass_chunk(&mut self, channel: usize, now: u64, cx: &mut Cx) -> u64 {
        let Some(chunk) = self.outgoing[channel].pop_front() else {
            return 0;
        };
        let (number, from, len, addr) = (
            chunk.job,
            chunk.from as usize,
            chunk.len as usize,
            chunk.host,
        );
        let Some(job) = self.jobs.get(number) else {
            return 0;
        };
        let mut fine = true;
        let bytes = &mut cx.port.burst()[..len];
        if !job.buffer.is_empty() {
            bytes.copy_from_slice(&job.buffer[from..from + len]);
        } else {
            let source = self.transfers[usize::from(job.slot)]
                .as_deref()
                .map(|t| &t.source);
            match source {
                Some(Source::Page(page)) => {
                    let at = job.at as usize + from;
                    let here = page.get(at..).unwrap_or(&[]);
                    let some = here.len().min(len);
                    bytes[..some].copy_from_slice(&here[..some]);
                    bytes[some..].fill(0);
                }
                _ => fine = cx.memory.read(job.at + from as u64, bytes),
            }
            if !fine {
                bytes.fill(0);
            }
        }
        let beats = cx.port.pass(now, addr, len, Taken::Job(number));
        if !fine {
            self.fail(number, Outcome::ReadError);
        }
        if !self.is_page(number) {
            // Beats of the media, a part of one with the last.
            let before = (from as u64).div_ceil(BEAT);
            let after = ((from + len) as u64).div_ceil(BEAT);
            self.movers[READ][channel].room += (after - before) as u32;
            self.issue(READ, channel, cx);
        }
        beats
    }

    /// The job's data come from a page of the admin buffer.
    fn is_page(&self, number: u32) -> bool {
        let job = self.jobs.get(number);
        let transfer = job.and_then(|job| self.transfers[usize::from(job.slot)].as_ref());
        transfer.is_some_and(|t| matches!(t.source, Source::Page(_)))
    }

    /// The link has taken a chunk of a job.
    fn chunk_taken(&mut self, number: u32, cx: &mut Cx) {
        if let Some(job) = self.jobs.get_mut(number) {
            job.open -= 1;
        }
        self.look_over_job(number, cx);
    }

    /// A job of a Read is over when all of its chunks have left.
    fn look_over_job(&mut self, number: u32, cx: &mut Cx) {
        let done = self
            .jobs
            .get(number)
            .is_some_and(|job| job.open == 0 && job.cut == job.len);
        if !done {
            return;
        }
        // What goes nowhere has held room, too.
        if let Some(job) = self.jobs.get(number) {
            if !self.is_page(number) {
                let mut held = job.len.div_ceil(BEAT as u32);
                let mut from = 0u32;
                for piece in job.pieces.as_slice() {
                    let end = from + piece.len;
                    if piece.host.is_some() {
                        held -= end.div_ceil(BEAT as u32) - from.div_ceil(BEAT as u32);
                    }
                    from = end;
                }
                let channel = job.channel;
                self.movers[READ][channel].room += held;
            }
        }
        let over = cx.now + timing::HOST_RESPONSE;
        self.job_over(number, over, cx);
    }

    /// Data of a job have come from the host, or not.
    pub(crate) fn data_arrived(&mut self, number: u32, piece: u16, arrival: Arrival, cx: &mut Cx) {
        let Some(job) = self.jobs.get_mut(number) else {
            return;
        };
        if piece == 0 && job.got == 0 && job.op == Op::Write {
            let mover = mover_of(WRITE, job.channel, self.outgoing.len());
            cx.tell(cx.now, || TraceEvent::Data { mover });
        }
        self.host_beats = self.host_beats.saturating_sub(arrival.beats);
        if self.host_beats < HOST_READ_BEATS {
            for channel in 0..self.outgoing.len() {
                self.issue(WRITE, channel, cx);
            }
        }
        let Some(job) = self.jobs.get_mut(number) else {
            return;
        };
        if job.op == Op::Write {
            // They are there when their last beat has come.
            let cycle = arrival.cycle + timing::DATA_BACK;
            cx.plan(cycle, Event::Fill(job.channel as u8));
            self.landing.push_back((cycle, number, piece, arrival));
            return;
        }
        self.land(number, piece, arrival, cx);
    }

    /// Data of a job are where bursts are made of them.
    fn land(&mut self, number: u32, piece: u16, arrival: Arrival, cx: &mut Cx) {
        let Some(job) = self.jobs.get_mut(number) else {
            return;
        };
        let pieces = job.pieces.as_slice();
        let before: u32 = pieces[..usize::from(piece)].iter().map(|p| p.len).sum();
        let wanted = pieces[usize::from(piece)].len;
        let got = match piece {
            0 => &mut job.got,
            n => &mut job.got_others[usize::from(n) - 1],
        };
        match arrival.data {
            Some(mut data)
                if *got == 0 && job.buffer.is_empty() && data.len() >= job.len as usize =>
            {
                data.truncate(job.len as usize);
                *got = job.len;
                job.buffer = data;
            }
            Some(data) => {
                if job.buffer.is_empty() {
                    job.buffer = empty(job.len, &mut self.spare);
                }
                let room = (wanted - *got).min(data.len() as u32);
                let from = (before + *got) as usize;
                job.buffer[from..from + room as usize].copy_from_slice(&data[..room as usize]);
                *got += room;
            }
            None => {
                job.bad.push((before + *got, before + wanted));
                *got = wanted;
            }
        }
        if arrival.last {
            // A read that ends early has failed, too.
            if *got < wanted {
                job.bad.push((before + *got, before + wanted));
                *got = wanted;
            }
            job.asked -= 1;
        }
        if job.op == Op::Compare && job.asked == 0 {
            self.compare(number, arrival.cycle, cx);
        }
    }

    /// Sends bursts to a channel's media that are here whole.
    pub(crate) fn fill(&mut self, channel: usize, cx: &mut Cx) {
        while self.landing.front().is_some_and(|data| data.0 <= cx.now) {
            if let Some((_, number, piece, arrival)) = self.landing.pop_front() {
                self.land(number, piece, arrival, cx);
            }
        }
        loop {
            let mover = &mut self.movers[WRITE][channel];
            let Some(&number) = mover.filling.front() else {
                return;
            };
            let Some(job) = self.jobs.get_mut(number) else {
                mover.filling.pop_front();
                continue;
            };
            if job.cut == job.len {
                // What a read has brought beyond its data is still to come, when it failed elsewhere: the job's number is not free before.
                if job.asked > 0 {
                    return;
                }
                mover.filling.pop_front();
                if job.open == 0 {
                    let now = cx.now;
                    self.job_over(number, now, cx);
                }
                continue;
            }
            let at = job.at + u64::from(job.cut);
            let left = u64::from(job.len - job.cut);
            let len = left.min(self.write_bytes - at % self.write_bytes) as u32;
            let end = job.cut + len;
            if job.here() < end || self.hazards[channel].writes() >= self.writes {
                return;
            }
            let bad = job.bad.iter().any(|&(from, to)| from < end && to > job.cut);
            let hook = cx.hook.as_deref_mut().filter(|_| !bad);
            if hook.is_some_and(|hook| !hook.nvme(true, channel, at, len.into())) {
                return;
            }
            if !bad && !self.hazards[channel].write_begins(at) {
                return;
            }
            job.cut = end;
            let cut = end - len;
            let beats = len.div_ceil(BEAT as u32);
            mover.room += beats;
            if bad {
                let slot = job.slot;
                self.fail_transfer(slot, Outcome::HostError);
            } else {
                job.open += 1;
                let burst = Burst {
                    job: number,
                    from: cut,
                    len,
                };
                let tag = TAG_WRITE | u64::from(self.bursts.insert(burst));
                let addr = cx.memory.place(at).map_or(0, |place| place.addr);
                let from = mover.beats_free.max(cx.now);
                let cycle = from + timing::WRITE_ISSUE;
                mover.beats_free = from + u64::from(beats);
                if job.op == Op::Write {
                    cx.memory.prefetch(at, len);
                }
                cx.memory.channels[channel].write(cycle, master::NVME, NVME_ID, addr, len, tag);
                if let Some(hook) = cx.hook.as_deref_mut() {
                    hook.nvme_begins(channel);
                }
                cx.channel_changed(channel);
            }
            self.issue(WRITE, channel, cx);
        }
    }

    /// The response to a burst of the media: what it brought is there.
    pub(crate) fn media_written(&mut self, burst: u32, cx: &mut Cx) {
        let Some(number) = self.apply(burst, cx.memory) else {
            return;
        };
        let Some(job) = self.jobs.get_mut(number) else {
            return;
        };
        let channel = job.channel;
        job.open -= 1;
        let over = job.open == 0 && job.cut == job.len;
        self.hazards[channel].write_ends();
        if let Some(hook) = cx.hook.as_deref_mut() {
            hook.nvme_ends(channel);
            cx.plan(cx.now, Event::Hook);
        }
        if over && self.movers[WRITE][channel].filling.front() != Some(&number) {
            let over = cx.now + timing::MEDIA_RESPONSE;
            self.job_over(number, over, cx);
        }
        self.fill(channel, cx);
        self.issue(WRITE, channel, cx);
        self.issue(READ, channel, cx);
    }

    /// Writes a burst to the media; its job.
    fn apply(&mut self, burst: u32, memory: &mut Memories) -> Option<u32> {
        let burst = self.bursts.remove(burst)?;
        let job = self.jobs.get(burst.job)?;
        let at = job.at + u64::from(burst.from);
        let fine = match job.op {
            Op::Zero => memory.zero(at, burst.len.into()),
            _ => {
                let from = burst.from as usize;
                memory.write(at, &job.buffer[from..from + burst.len as usize])
            }
        };
        if !fine {
            self.fail(burst.job, Outcome::WriteFault);
        }
        Some(burst.job)
    }

    /// The host is gone: bursts of the media that have begun end.
    pub(crate) fn end_bursts(&mut self, memory: &mut Memories) {
        let open: Vec<u32> = self.bursts.iter().map(|(n, _)| n).collect();
        for burst in open {
            self.apply(burst, memory);
        }
    }

    fn compare(&mut self, number: u32, cycle: u64, cx: &mut Cx) {
        let Some(job) = self.jobs.get_mut(number) else {
            return;
        };
        if !job.media_here || job.asked > 0 {
            return;
        }
        let (channel, len) = (job.channel, job.len);
        let mut media = [0; SPAN as usize];
        let fine = cx.memory.read(job.at, &mut media[..len as usize]);
        let outcome = if !job.bad.is_empty() {
            Outcome::HostError
        } else if !fine {
            Outcome::ReadError
        } else if job.buffer[..len as usize] != media[..len as usize] {
            Outcome::Mismatch
        } else {
            Outcome::Ok
        };
        if outcome != Outcome::Ok {
            self.fail(number, outcome);
        }
        self.movers[READ][channel].room += len.div_ceil(BEAT as u32);
        self.job_over(number, cycle, cx);
        self.issue(READ, channel, cx);
    }

    fn fail(&mut self, number: u32, outcome: Outcome) {
        if let Some(slot) = self.jobs.get(number).map(|job| job.slot) {
            self.fail_transfer(slot, outcome);
        }
    }

    /// The first error is the command's.
    fn fail_transfer(&mut self, slot: u16, outcome: Outcome) {
        if let Some(transfer) = &mut self.transfers[usize::from(slot)] {
            if transfer.outcome == Outcome::Ok {
                transfer.outcome = outcome;
            }
        }
    }

    fn job_over(&mut self, number: u32, cycle: u64, cx: &mut Cx) {
        let Some(job) = self.jobs.get_mut(number) else {
            return;
        };
        let (slot, buffer) = (job.slot, std::mem::take(&mut job.buffer));
        if buffer.capacity() > 0 && self.spare.len() < 64 {
            self.spare.push(buffer);
        }
        self.jobs.end(number);
        if let Some(transfer) = &mut self.transfers[usize::from(slot)] {
            transfer.open -= 1;
            if transfer.open == 0 && transfer.walked {
                let cycle = cycle.max(cx.now) + timing::JOB_OVER;
                cx.plan(cycle, Event::Moved(slot));
            }
        }
    }

    fn look_over(&mut self, slot: u16, cx: &mut Cx) {
        if let Some(transfer) = &self.transfers[usize::from(slot)] {
            if transfer.open == 0 && transfer.walked {
                cx.plan(cx.now + timing::JOB_OVER, Event::Moved(slot));
            }
        }
    }

    /// Takes the outcome of a transfer that is over.
    pub(crate) fn take(&mut self, slot: u16) -> Option<Outcome> {
        let place = &mut self.transfers[usize::from(slot)];
        let over = place.as_ref().is_some_and(|t| t.walked && t.open == 0);
        if !over {
            return None;
        }
        let mut transfer = place.take()?;
        let outcome = transfer.outcome;
        transfer.source = Source::Media(0);
        self.spare_transfers.push(transfer);
        Some(outcome)
    }
}

/// A piece of the transfer: cuts it into parts of whole blocks, each within 4 KiB of the media. The parts that it was cut into, and those that
/// waited for it.
fn part(t: &mut Transfer, host: Option<u64>, len: u64, offset: u64) -> usize {
    let mut parts = t.group.len();
    let (mut host, mut left, mut at) = (host, len, offset);
    let base = match t.source {
        Source::Media(addr) => addr,
        Source::Page(_) => 0,
    };
    let media = matches!(t.source, Source::Media(_));
    while left > 0 {
        if t.group.is_empty() {
            (t.group_at, t.group_len) = (at, 0);
        }
        parts += 1;
        let part = left.min(SPAN - (base + at) % SPAN);
        t.group.push(Piece {
            host,
            len: part as u32,
        });
        t.group_len += part;
        host = host.map(|host| host.wrapping_add(part));
        (left, at) = (left - part, at + part);
        let whole = !media || at % BLOCK_BYTES == 0;
        if whole {
            let pieces = match t.group.len() {
                1 => Pieces::One(t.group[0]),
                _ => Pieces::Many(t.group.clone()),
            };
            t.group.clear();
            let (from, len) = (base + t.group_at, t.group_len as u32);
            t.stalled.push_back(Part {
                at: from,
                len,
                pieces,
            });
        }
    }
    parts
}

impl Job {
    fn new(slot: u16, op: Op, at: u64, len: u32, channel: usize, pieces: Pieces) -> Job {
        Job {
            slot,
            op,
            at,
            len,
            channel,
            pieces,
            buffer: Vec::new(),
            got: 0,
            got_others: Vec::new(),
            bad: Vec::new(),
            next: 0,
            asked: 0,
            media_here: false,
            read: 0,
            cut: 0,
            open: 0,
        }
    }

    /// Bytes from the beginning on that are here.
    fn here(&self) -> u32 {
        if self.op == Op::Zero {
            return self.len;
        }
        let mut here = 0;
        let others = self.got_others.iter();
        let got = std::iter::once(&self.got).chain(others);
        for (piece, &got) in self.pieces.as_slice().iter().zip(got) {
            here += got;
            if got < piece.len {
                break;
            }
        }
        here
    }
}

/// So many zeros.
fn empty(len: u32, spare: &mut Vec<Vec<u8>>) -> Vec<u8> {
    let mut buffer = spare.pop().unwrap_or_default();
    buffer.clear();
    buffer.resize(len as usize, 0);
    buffer
}

/// A place for a job's data from the host.
fn make_buffer(job: &mut Job, spare: &mut Vec<Vec<u8>>) {
    job.buffer = empty(job.len, spare);
    let pieces = job.pieces.as_slice().len();
    if pieces > 1 {
        job.got_others = vec![0; pieces - 1];
    }
}

/// Asks the host for a piece of a job; beats that come of it.
fn ask_host(number: u32, job: &mut Job, place: usize, at: u64, port: &mut Port) -> u32 {
    let piece = job.pieces.as_slice()[place];
    let Some(host) = piece.host else {
        return 0;
    };
    // A read goes to the end of its last beat.
    let skip = host % BEAT;
    let bytes = (skip + u64::from(piece.len)).next_multiple_of(BEAT);
    let purpose = Purpose::Data(number, place as u16, job.channel as u8);
    port.read(at + timing::DATA_READ, purpose, host, (bytes - skip) as u32);
    job.asked += 1;
    (bytes / BEAT) as u32
}

/// The number of a mover in a trace: those to the host, that of pages behind them, those to the media.
fn mover_of(direction: usize, channel: usize, channels: usize) -> u8 {
    (direction * (channels + 1) + channel) as u8
}

fn channel_of(memory: &Memories, at: u64) -> usize {
    memory.place(at).map_or(0, |place| place.channel)
}

/// The first of the front end's line passes the port; the beats that it takes.
fn pass_post(now: u64, port: &mut Port) -> u64 {
    let Some((_, post)) = port.posts.pop_front() else {
        return 0;
    };
    match post {
        Post::Write(addr, bytes, len) => {
            port.write(now, addr, &bytes[..usize::from(len)], Taken::Nobody)
        }
        Post::AdminEntry(addr, bytes) => port.write(now, addr, &bytes, Taken::AdminEntry),
        Post::EventIdx(addr, value) => port.write(now, addr, &value.to_le_bytes(), Taken::EventIdx),
        Post::Answer(tag, data) => {
            port.answer(now, tag, data);
            0
        }
    }
}
