//! Bytes to and from a namespace, with many NVMe commands in flight.

use std::ops::Range;

use driver::io_loop::{run, CommandSource, NextCommand};
use driver::{Buffer, Host, IoCommand, NvmeDriver};

use crate::spill::Spill;
use crate::watch::Watch;
use crate::{Progress, Result};

/// I/O queues in use, each with a CPU of its own.
pub const QUEUES: usize = 4;
/// Commands in flight on each.
const DEPTH: usize = 8;
/// Most bytes of a command.
const MOST: usize = 128 << 10;

/// Bytes that go to a namespace.
pub trait Data {
    /// How many.
    fn bytes(&self) -> u64;
    /// Copies some of them.
    fn copy(&self, at: u64, out: &mut [u8]) -> Result<()>;
}

/// Where bytes of a namespace go.
pub trait Target {
    /// Takes some of them.
    fn take(&mut self, at: u64, bytes: &[u8]) -> Result<()>;
}

impl Data for Vec<u8> {
    fn bytes(&self) -> u64 {
        self.len() as u64
    }

    fn copy(&self, at: u64, out: &mut [u8]) -> Result<()> {
        out.copy_from_slice(&self[at as usize..][..out.len()]);
        Ok(())
    }
}

impl Target for Vec<u8> {
    fn take(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        self[at as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}

impl Data for Spill {
    fn bytes(&self) -> u64 {
        self.len()
    }

    fn copy(&self, at: u64, out: &mut [u8]) -> Result<()> {
        self.read(at, out)
    }
}

impl Target for Spill {
    fn take(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        self.write(at, bytes)
    }
}

/// Ends all devices' work if it is the host that fails.
pub fn or_end<T>(outcome: Result<T>, progress: &Progress) -> driver::Result<T> {
    outcome.map_err(|error| {
        progress.fail(error);
        driver::Error::Interrupted
    })
}

/// Memory for the data of the commands in flight.
struct Buffers {
    base: u64,
    each: usize,
    block: usize,
}

impl Buffers {
    fn new<H: Host>(controller: &mut NvmeDriver<H>) -> driver::Result<Buffers> {
        let block = controller.namespace().block_bytes as usize;
        let most = (controller.max_blocks() as usize).saturating_mul(block);
        let each = most.min(MOST).max(block);
        let base = controller
            .host_mut()
            .alloc((each * QUEUES * DEPTH) as u64, 4096)?;
        Ok(Buffers { base, each, block })
    }

    fn of(&self, slot: usize) -> u64 {
        self.base + (slot * self.each) as u64
    }

    fn release<H: Host>(self, controller: &mut NvmeDriver<H>) {
        controller.free_buffer(self.base, (self.each * QUEUES * DEPTH) as u64);
    }
}

/// A source whose device is watched.
struct Watched<'a, H: Host> {
    source: &'a mut dyn CommandSource<H>,
    watch: &'a mut Watch,
}

impl<H: Host> CommandSource<H> for Watched<'_, H> {
    fn next(&mut self, host: &mut H, queue: usize, slot: usize) -> driver::Result<NextCommand> {
        self.source.next(host, queue, slot)
    }

    fn completed(&mut self, host: &mut H, slot: usize) -> driver::Result<()> {
        self.source.completed(host, slot)?;
        self.watch.pass(host)
    }
}

/// Runs a source; commands that were sent.
fn drive<H: Host>(
    controller: &mut NvmeDriver<H>,
    progress: &Progress,
    watch: &mut Watch,
    source: &mut dyn CommandSource<H>,
) -> driver::Result<u64> {
    let source = &mut Watched { source, watch };
    let queues = QUEUES.min(controller.io_queues());
    let mut told = 0;
    let report = run(controller, source, queues, DEPTH, &mut |bytes| {
        progress.add(bytes - told);
        told = bytes;
        progress.go_on()
    })?;
    Ok(report.commands)
}

struct Put<'a> {
    buffers: Buffers,
    data: &'a dyn Data,
    /// How many of its bytes have gone.
    done: u64,
    at: u64,
    /// A command's data.
    piece: Vec<u8>,
    progress: &'a Progress,
}

impl<H: Host> CommandSource<H> for Put<'_> {
    fn next(&mut self, host: &mut H, _: usize, slot: usize) -> driver::Result<NextCommand> {
        let left = self.data.bytes() - self.done;
        if left == 0 {
            return Ok(NextCommand::End);
        }
        let Buffers { each, block, .. } = self.buffers;
        let here = left.min(each as u64) as usize;
        let (whole, buffer) = (here.next_multiple_of(block), self.buffers.of(slot));
        self.piece.clear();
        self.piece.resize(whole, 0);
        let copied = self.data.copy(self.done, &mut self.piece[..here]);
        or_end(copied, self.progress)?;
        host.dma_write(buffer, &self.piece);
        let io = IoCommand::Write {
            lba: self.at / block as u64,
            blocks: (whole / block) as u32,
        };
        self.done += here as u64;
        self.at += whole as u64;
        Ok(NextCommand::Command(io, Buffer::Contiguous(buffer)))
    }

    fn completed(&mut self, _: &mut H, _: usize) -> driver::Result<()> {
        Ok(())
    }
}

/// Writes bytes from a place on, a multiple of a block; the last block is filled with zeros. Commands that it took.
pub fn put<H: Host>(
    controller: &mut NvmeDriver<H>,
    at: u64,
    data: &dyn Data,
    progress: &Progress,
    watch: &mut Watch,
) -> driver::Result<u64> {
    if data.bytes() == 0 {
        return Ok(0);
    }
    let mut put = Put {
        buffers: Buffers::new(controller)?,
        data,
        done: 0,
        at,
        piece: Vec::new(),
        progress,
    };
    let outcome = drive(controller, progress, watch, &mut put);
    put.buffers.release(controller);
    outcome
}

struct Get<'a> {
    buffers: Buffers,
    out: &'a mut dyn Target,
    /// Where its bytes go there.
    place: Range<u64>,
    /// Where the first one stands, and what the next command reads.
    start: u64,
    next: u64,
    flights: Vec<(u64, usize)>,
    /// A command's data.
    piece: Vec<u8>,
    progress: &'a Progress,
}

impl Get<'_> {
    fn end(&self) -> u64 {
        self.start + (self.place.end - self.place.start)
    }
}

impl<H: Host> CommandSource<H> for Get<'_> {
    fn next(&mut self, _: &mut H, _: usize, slot: usize) -> driver::Result<NextCommand> {
        let end = self.end();
        if self.next >= end {
            return Ok(NextCommand::End);
        }
        let Buffers { each, block, .. } = self.buffers;
        let left = (end - self.next).next_multiple_of(block as u64);
        let bytes = left.min(each as u64) as usize;
        self.flights[slot] = (self.next, bytes);
        let io = IoCommand::Read {
            lba: self.next / block as u64,
            blocks: (bytes / block) as u32,
        };
        self.next += bytes as u64;
        Ok(NextCommand::Command(
            io,
            Buffer::Contiguous(self.buffers.of(slot)),
        ))
    }

    fn completed(&mut self, host: &mut H, slot: usize) -> driver::Result<()> {
        let (at, bytes) = self.flights[slot];
        let (from, to) = (at.max(self.start), (at + bytes as u64).min(self.end()));
        self.piece.resize((to - from) as usize, 0);
        host.dma_read(self.buffers.of(slot) + (from - at), &mut self.piece);
        let place = self.place.start + (from - self.start);
        or_end(self.out.take(place, &self.piece), self.progress)
    }
}

/// Reads bytes from any place on, to a place of the target. Commands that it took.
pub fn get<H: Host>(
    controller: &mut NvmeDriver<H>,
    start: u64,
    out: &mut dyn Target,
    place: Range<u64>,
    progress: &Progress,
    watch: &mut Watch,
) -> driver::Result<u64> {
    if place.is_empty() {
        return Ok(0);
    }
    let buffers = Buffers::new(controller)?;
    let block = buffers.block as u64;
    let mut get = Get {
        buffers,
        out,
        place,
        start,
        next: start / block * block,
        flights: vec![(0, 0); QUEUES * DEPTH],
        piece: Vec::new(),
        progress,
    };
    let outcome = drive(controller, progress, watch, &mut get);
    get.buffers.release(controller);
    outcome
}

/// Reads as many bytes as there are to be.
pub fn get_all<H: Host>(
    controller: &mut NvmeDriver<H>,
    place: &Range<u64>,
    progress: &Progress,
    watch: &mut Watch,
) -> driver::Result<Vec<u8>> {
    let mut out = vec![0; (place.end - place.start) as usize];
    let all = 0..out.len() as u64;
    get(controller, place.start, &mut out, all, progress, watch)?;
    Ok(out)
}
