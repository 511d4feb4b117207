// SPDX-License-Identifier: Apache-2.0

//! Jobs like those of fio, and whole transfers of data, on several queues.

use sim::Random;
use spec::nvme::PAGE_BYTES;

use crate::io_loop::{self, CommandSource, NextCommand, RunReport};
use crate::prp::Buffer;
use crate::{Error, Host, IoCommand, NvmeDriver, Result};

/// The order of the blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockPattern {
    /// Increasing addresses; each queue has a separate part of the span.
    Sequential,
    /// Random addresses in the span, at multiples of the block size.
    Random,
}

/// The placement of a command's data in host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferLayout {
    /// Page-aligned and contiguous.
    Aligned,
    /// At any multiple of 4 in a page, on scattered pages, with lists at any multiple of 8.
    Scattered,
}

/// An I/O job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IoJob {
    /// Share of reads, in percent.
    pub read_percent: u32,
    /// The order of the blocks.
    pub pattern: BlockPattern,
    /// Bytes of the smallest command.
    pub min_bytes: u64,
    /// Bytes of the largest command; sizes are random multiples of a block between the two.
    pub max_bytes: u64,
    /// I/O queues used.
    pub queues: usize,
    /// Commands in flight on each.
    pub depth: usize,
    /// Commands in all.
    pub commands: u64,
    /// Offset of the span in the namespace.
    pub start: u64,
    /// Bytes of the span; 0 is everything from `start`.
    pub span: u64,
    /// The placement of buffers.
    pub layout: BufferLayout,
    /// Place the data in another device's window instead of host memory. Not with `verify`, because
    /// the host does not read it.
    pub peer: Option<PeerMemory>,
    /// Write recognisable data, and compare what is read with it.
    pub verify: bool,
    /// Seed of addresses, sizes, offsets and data.
    pub seed: u64,
}

impl Default for IoJob {
    fn default() -> IoJob {
        IoJob {
            read_percent: 100,
            pattern: BlockPattern::Random,
            min_bytes: 4096,
            max_bytes: 4096,
            queues: 10,
            depth: 8,
            commands: 4000,
            start: 0,
            span: 0,
            layout: BufferLayout::Aligned,
            peer: None,
            verify: false,
            seed: 1,
        }
    }
}

/// Memory in another device's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerMemory {
    /// Bus address of its first byte, page-aligned.
    pub base: u64,
    /// Bytes.
    pub bytes: u64,
}

/// The result of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobResult {
    /// Bandwidth and latency.
    pub report: RunReport,
    /// Bytes that were compared with the data written before.
    pub verified_bytes: u64,
}

/// The content of a block that was written for the `version`-th time.
fn fill(block: &mut [u8], seed: u64, lba: u64, version: u32) {
    let mut random =
        Random::new(seed ^ lba.wrapping_mul(0xD134_2543_DE82_EF95) ^ u64::from(version) << 40);
    for word in block.chunks_mut(8) {
        word.copy_from_slice(&random.next().to_le_bytes()[..word.len()]);
    }
}

/// The memory and the command of a slot.
#[derive(Clone, Debug, Default)]
struct CommandSlot {
    base: u64,
    pages: Vec<u64>,
    offset: u64,
    lba: u64,
    blocks: u32,
    write: bool,
}

impl CommandSlot {
    /// Calls `f` with each segment of the data: bus address, range of the data.
    fn for_each_segment(&self, bytes: u64, mut f: impl FnMut(u64, std::ops::Range<usize>)) {
        let mut at = 0;
        while at < bytes {
            let place = self.offset + at;
            let here = (PAGE_BYTES - place % PAGE_BYTES).min(bytes - at);
            let page = self.pages[(place / PAGE_BYTES) as usize];
            f(page + place % PAGE_BYTES, at as usize..(at + here) as usize);
            at += here;
        }
    }
}

struct JobSource {
    job: IoJob,
    block: u64,
    /// First block of the span, and its blocks.
    first: u64,
    blocks: u64,
    random: Random,
    issued: u64,
    slots: Vec<CommandSlot>,
    /// The next block of each queue, for sequential jobs.
    cursors: Vec<u64>,
    /// Per block of the span: the number of writes.
    versions: Vec<u32>,
    /// Per block of the span: commands in flight on it; the top bit is a write.
    locks: Vec<u8>,
    data: Vec<u8>,
    want: Vec<u8>,
    verified: u64,
}

const WRITING: u8 = 0x80;

impl JobSource {
    fn range(&self, slot: &CommandSlot) -> std::ops::Range<usize> {
        let at = (slot.lba - self.first) as usize;
        at..at + slot.blocks as usize
    }

    /// Chooses address and size. `None` if every attempt hit blocks in use.
    fn choose_blocks(&mut self, queue: usize, write: bool) -> Option<(u64, u32)> {
        let (low, high) = (
            self.job.min_bytes / self.block,
            self.job.max_bytes / self.block,
        );
        let size = if low == high {
            low
        } else {
            low + self.random.below(high - low + 1)
        };
        for _ in 0..64 {
            let at = match self.job.pattern {
                BlockPattern::Random => {
                    let places = (self.blocks - size) / low + 1;
                    self.random.below(places) * low
                }
                BlockPattern::Sequential => {
                    let part = self.blocks / self.job.queues as u64;
                    let at = if self.cursors[queue] + size > part {
                        0
                    } else {
                        self.cursors[queue]
                    };
                    self.cursors[queue] = at + size;
                    at + part * queue as u64
                }
            };
            let free = |lock: &u8| {
                if write {
                    *lock == 0
                } else {
                    *lock & WRITING == 0
                }
            };
            let range = at as usize..(at + size) as usize;
            if self.locks.is_empty() || self.locks[range].iter().all(free) {
                return Some((self.first + at, size as u32));
            }
        }
        None
    }
}

impl<H: Host> CommandSource<H> for JobSource {
    fn next(&mut self, host: &mut H, queue: usize, slot: usize) -> Result<NextCommand> {
        if self.issued == self.job.commands {
            return Ok(NextCommand::End);
        }
        let write = self.random.below(100) >= u64::from(self.job.read_percent);
        let Some((lba, blocks)) = self.choose_blocks(queue, write) else {
            return Ok(NextCommand::Later);
        };
        self.issued += 1;
        let bytes = u64::from(blocks) * self.block;
        let scattered = self.job.layout == BufferLayout::Scattered;
        {
            let slot = &mut self.slots[slot];
            (slot.lba, slot.blocks, slot.write) = (lba, blocks, write);
            if scattered {
                slot.offset = 4 * self.random.below(PAGE_BYTES / 4);
                for i in (1..slot.pages.len()).rev() {
                    slot.pages.swap(i, self.random.below(i as u64 + 1) as usize);
                }
            }
        }
        if self.job.verify {
            let range = self.range(&self.slots[slot]);
            if write {
                for n in range.clone() {
                    self.locks[n] |= WRITING;
                    self.versions[n] += 1;
                    let lba = self.first + n as u64;
                    let at = (n - range.start) * self.block as usize;
                    let block = &mut self.data[at..at + self.block as usize];
                    fill(block, self.job.seed, lba, self.versions[n]);
                }
                let data = &self.data;
                self.slots[slot]
                    .for_each_segment(bytes, |addr, part| host.dma_write(addr, &data[part]));
            } else {
                self.locks[range].iter_mut().for_each(|lock| *lock += 1);
                // Missing data must not look like the buffer's earlier content.
                self.data[..bytes as usize].fill(0xA5);
                let data = &self.data;
                self.slots[slot]
                    .for_each_segment(bytes, |addr, part| host.dma_write(addr, &data[part]));
            }
        }
        let slot = &self.slots[slot];
        let buffer = if scattered {
            Buffer::Pages {
                offset: slot.offset,
                pages: slot.pages.clone(),
            }
        } else {
            Buffer::Contiguous(slot.base)
        };
        let io = if write {
            IoCommand::Write { lba, blocks }
        } else {
            IoCommand::Read { lba, blocks }
        };
        Ok(NextCommand::Command(io, buffer))
    }

    fn completed(&mut self, host: &mut H, slot: usize) -> Result<()> {
        if !self.job.verify {
            return Ok(());
        }
        let slot = self.slots[slot].clone();
        let range = self.range(&slot);
        if slot.write {
            self.locks[range]
                .iter_mut()
                .for_each(|lock| *lock &= !WRITING);
            return Ok(());
        }
        let bytes = u64::from(slot.blocks) * self.block;
        let data = &mut self.data;
        slot.for_each_segment(bytes, |addr, part| host.dma_read(addr, &mut data[part]));
        for n in range.clone() {
            self.locks[n] -= 1;
            if self.versions[n] == 0 {
                continue;
            }
            let lba = self.first + n as u64;
            fill(&mut self.want, self.job.seed, lba, self.versions[n]);
            let at = (n - range.start) * self.block as usize;
            let got = &self.data[at..at + self.block as usize];
            if let Some(i) = got.iter().zip(&self.want).position(|(a, b)| a != b) {
                return Err(Error::Misbehaviour(format!(
                    "wrong data: LBA {lba} byte {i} is {:#04x}, {:#04x} was written (read of {} \
                        blocks at LBA {})",
                    got[i], self.want[i], slot.blocks, slot.lba
                )));
            }
            self.verified += self.block;
        }
        Ok(())
    }
}

/// A source that calls a hook after each completion.
struct HookedSource<'a, H> {
    source: &'a mut JobSource,
    hook: &'a mut dyn FnMut(&mut H, u64) -> Result<()>,
    done: u64,
}

impl<H: Host> CommandSource<H> for HookedSource<'_, H> {
    fn next(&mut self, host: &mut H, queue: usize, slot: usize) -> Result<NextCommand> {
        self.source.next(host, queue, slot)
    }

    fn completed(&mut self, host: &mut H, slot: usize) -> Result<()> {
        self.source.completed(host, slot)?;
        self.done += 1;
        (self.hook)(host, self.done)
    }
}

/// Runs a job. `progress` receives the commands completed and their total, and stops the run by
/// returning false.
pub fn run_job<H: Host>(
    controller: &mut NvmeDriver<H>,
    job: &IoJob,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<JobResult> {
    run_job_with(controller, job, &mut |_, _| Ok(()), progress)
}

/// Runs a job, and calls `hook` after each completion with the number of commands completed. The
/// hook may access the device.
pub fn run_job_with<H: Host>(
    controller: &mut NvmeDriver<H>,
    job: &IoJob,
    hook: &mut dyn FnMut(&mut H, u64) -> Result<()>,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<JobResult> {
    io_loop::check_shape(controller, job.queues, job.depth)?;
    let block = u64::from(controller.namespace().block_bytes);
    let size = controller.namespace().bytes();
    let start = job.start;
    let span = if job.span == 0 {
        size.saturating_sub(start)
    } else {
        job.span
    };
    let most = u64::from(controller.max_blocks()) * block;
    let invalid = |text: String| Err(Error::Invalid(text));
    if job.commands == 0 {
        return invalid("commands = 0: at least 1 is needed".into());
    }
    if job.min_bytes == 0 || job.min_bytes % block != 0 || job.max_bytes % block != 0 {
        return invalid(format!("block size: allowed are multiples of {block}"));
    }
    if job.min_bytes > job.max_bytes {
        return invalid(format!(
            "min_bytes = {}, max_bytes = {}: allowed are pairs with min_bytes <= max_bytes",
            job.min_bytes, job.max_bytes
        ));
    }
    if job.max_bytes > most {
        return invalid(format!(
            "block size {}: allowed are {block} to {most} bytes",
            job.max_bytes
        ));
    }
    if start % block != 0
        || span % block != 0
        || start.checked_add(span).is_none_or(|end| end > size)
    {
        return invalid(format!(
            "span {span} from {start}: the namespace has {size} bytes"
        ));
    }
    let part = if job.pattern == BlockPattern::Sequential {
        span / job.queues.max(1) as u64
    } else {
        span
    };
    if part < job.max_bytes {
        return invalid(format!("a span of {span} bytes is too small for the job"));
    }
    if job.read_percent > 100 {
        return invalid(format!(
            "read_percent = {}: allowed are 0 to 100",
            job.read_percent
        ));
    }
    let slots = job.queues * job.depth;
    let blocks = span / block;
    let tracked = if job.verify { blocks as usize } else { 0 };
    let room = job.max_bytes
        + if job.layout == BufferLayout::Scattered {
            PAGE_BYTES
        } else {
            0
        };
    let pages = room.div_ceil(PAGE_BYTES);
    let each = pages * PAGE_BYTES;
    if let Some(peer) = job.peer {
        if job.verify {
            return invalid("verify: not with data in another device's window".into());
        }
        if peer.base % PAGE_BYTES != 0 || slots as u64 > peer.bytes / each {
            return invalid(format!(
                "{slots} buffers of {each} bytes: another device's window has {} at {:#x}",
                peer.bytes, peer.base
            ));
        }
    }
    let mut source = JobSource {
        job: *job,
        block,
        first: start / block,
        blocks,
        random: Random::new(job.seed),
        issued: 0,
        slots: Vec::with_capacity(slots),
        cursors: vec![0; job.queues],
        versions: vec![0; tracked],
        locks: vec![0; tracked],
        data: vec![0; job.max_bytes as usize],
        want: vec![0; block as usize],
        verified: 0,
    };
    let mut outcome = Ok(());
    for n in 0..slots as u64 {
        let memory = match job.peer {
            Some(peer) => Ok(peer.base + n * each),
            None => controller.host_mut().alloc(each, PAGE_BYTES),
        };
        match memory {
            Ok(base) => source.slots.push(CommandSlot {
                base,
                pages: (0..pages).map(|p| base + p * PAGE_BYTES).collect(),
                ..CommandSlot::default()
            }),
            Err(error) => {
                outcome = Err(error);
                break;
            }
        }
    }
    let result = outcome.and_then(|()| {
        let mut tell =
            |bytes: u64| progress((bytes / job.min_bytes).min(job.commands), job.commands);
        let mut hooked = HookedSource {
            source: &mut source,
            hook,
            done: 0,
        };
        io_loop::run(controller, &mut hooked, job.queues, job.depth, &mut tell)
    });
    if job.peer.is_none() {
        for slot in &source.slots {
            controller.free_buffer(slot.base, each);
        }
    }
    Ok(JobResult {
        report: result?,
        verified_bytes: source.verified,
    })
}

/// Moves data between a byte slice and the namespace, in chunks distributed over the queues.
struct TransferSource<'a> {
    data: TransferData<'a>,
    block: usize,
    chunk: usize,
    first: u64,
    next: usize,
    /// Buffer and range of the data, by slot.
    slots: Vec<(u64, usize, usize)>,
}

enum TransferData<'a> {
    Write(&'a [u8]),
    Read(&'a mut [u8]),
}

impl TransferData<'_> {
    fn len(&self) -> usize {
        match self {
            TransferData::Write(data) => data.len(),
            TransferData::Read(data) => data.len(),
        }
    }
}

impl<H: Host> CommandSource<H> for TransferSource<'_> {
    fn next(&mut self, host: &mut H, _queue: usize, slot: usize) -> Result<NextCommand> {
        let at = self.next;
        if at == self.data.len() {
            return Ok(NextCommand::End);
        }
        let here = self.chunk.min(self.data.len() - at);
        self.next += here;
        let addr = self.slots[slot].0;
        self.slots[slot] = (addr, at, here);
        let (lba, blocks) = (
            self.first + (at / self.block) as u64,
            (here / self.block) as u32,
        );
        let io = match &self.data {
            TransferData::Write(data) => {
                host.dma_write(addr, &data[at..at + here]);
                IoCommand::Write { lba, blocks }
            }
            TransferData::Read(_) => IoCommand::Read { lba, blocks },
        };
        Ok(NextCommand::Command(io, Buffer::Contiguous(addr)))
    }

    fn completed(&mut self, host: &mut H, slot: usize) -> Result<()> {
        let (addr, at, here) = self.slots[slot];
        if let TransferData::Read(data) = &mut self.data {
            host.dma_read(addr, &mut data[at..at + here]);
        }
        Ok(())
    }
}

/// How a whole transfer is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferShape {
    /// I/O queues used.
    pub queues: usize,
    /// Commands in flight on each.
    pub depth: usize,
    /// Bytes of a command.
    pub chunk: usize,
}

impl Default for TransferShape {
    fn default() -> TransferShape {
        TransferShape {
            queues: 4,
            depth: 8,
            chunk: 16 << 10,
        }
    }
}

/// Writes `data` (whole blocks) from `lba` on.
pub fn write_all<H: Host>(
    controller: &mut NvmeDriver<H>,
    lba: u64,
    data: &[u8],
    shape: TransferShape,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<RunReport> {
    stream(controller, lba, TransferData::Write(data), shape, progress)
}

/// Reads whole blocks from `lba` on into `data`.
pub fn read_all<H: Host>(
    controller: &mut NvmeDriver<H>,
    lba: u64,
    data: &mut [u8],
    shape: TransferShape,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<RunReport> {
    stream(controller, lba, TransferData::Read(data), shape, progress)
}

fn stream<H: Host>(
    controller: &mut NvmeDriver<H>,
    lba: u64,
    data: TransferData,
    shape: TransferShape,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<RunReport> {
    io_loop::check_shape(controller, shape.queues, shape.depth)?;
    let block = controller.namespace().block_bytes as usize;
    let most = controller.max_blocks() as usize * block;
    if shape.chunk == 0 || shape.chunk % block != 0 || shape.chunk > most {
        return Err(Error::Invalid(format!(
            "chunk = {}: allowed are multiples of {block} up to {most}",
            shape.chunk
        )));
    }
    let bytes = data.len();
    if bytes == 0 {
        return Err(Error::Invalid("0 bytes: at least 1 is needed".into()));
    }
    let room = controller.namespace().bytes();
    let end = lba
        .checked_mul(block as u64)
        .and_then(|at| at.checked_add(bytes as u64));
    if bytes % block != 0 || end.is_none_or(|end| end > room) {
        return Err(Error::Invalid(format!(
            "{bytes} bytes from LBA {lba} are not whole blocks inside the namespace of {room} bytes"
        )));
    }
    let each = shape.chunk as u64;
    let slots = shape.queues * shape.depth;
    let base = controller
        .host_mut()
        .alloc(each.next_multiple_of(PAGE_BYTES) * slots as u64, PAGE_BYTES)?;
    let step = each.next_multiple_of(PAGE_BYTES);
    let mut source = TransferSource {
        data,
        block,
        chunk: shape.chunk,
        first: lba,
        next: 0,
        slots: (0..slots as u64).map(|n| (base + n * step, 0, 0)).collect(),
    };
    let mut tell = |done: u64| progress(done, bytes as u64);
    let result = io_loop::run(
        controller,
        &mut source,
        shape.queues,
        shape.depth,
        &mut tell,
    );
    controller.free_buffer(base, step * slots as u64);
    result
}
