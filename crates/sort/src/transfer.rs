//! Bytes to and from a namespace, with many NVMe commands in flight.

use driver::engine::{run, Next, Source};
use driver::{Buffer, Controller, Host, Io};

use crate::watch::Watch;
use crate::Progress;

/// I/O queues in use, each with a CPU of its own.
pub const QUEUES: usize = 4;
/// Commands in flight on each.
const DEPTH: usize = 8;
/// Most bytes of a command.
const MOST: usize = 128 << 10;

/// Memory for the data of the commands in flight.
struct Buffers {
    base: u64,
    each: usize,
    block: usize,
}

impl Buffers {
    fn new<H: Host>(controller: &mut Controller<H>) -> driver::Result<Buffers> {
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

    fn release<H: Host>(self, controller: &mut Controller<H>) {
        controller.give_back(self.base, (self.each * QUEUES * DEPTH) as u64);
    }
}

/// A source whose device is watched.
struct Watched<'a, H: Host> {
    source: &'a mut dyn Source<H>,
    watch: &'a mut Watch,
}

impl<H: Host> Source<H> for Watched<'_, H> {
    fn next(&mut self, host: &mut H, queue: usize, slot: usize) -> driver::Result<Next> {
        self.source.next(host, queue, slot)
    }

    fn completed(&mut self, host: &mut H, slot: usize) -> driver::Result<()> {
        self.source.completed(host, slot)?;
        self.watch.pass(host)
    }
}

/// Runs a source; commands that were sent.
fn drive<H: Host>(
    controller: &mut Controller<H>,
    progress: &Progress,
    watch: &mut Watch,
    source: &mut dyn Source<H>,
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
    data: &'a [u8],
    at: u64,
}

impl<H: Host> Source<H> for Put<'_> {
    fn next(&mut self, host: &mut H, _: usize, slot: usize) -> driver::Result<Next> {
        if self.data.is_empty() {
            return Ok(Next::End);
        }
        let Buffers { each, block, .. } = self.buffers;
        let (here, rest) = self.data.split_at(each.min(self.data.len()));
        let (whole, buffer) = (here.len().next_multiple_of(block), self.buffers.of(slot));
        host.dma_write(buffer, here);
        host.dma_write(buffer + here.len() as u64, &vec![0; whole - here.len()]);
        let io = Io::Write {
            lba: self.at / block as u64,
            blocks: (whole / block) as u32,
        };
        self.data = rest;
        self.at += whole as u64;
        Ok(Next::Command(io, Buffer::Contiguous(buffer)))
    }

    fn completed(&mut self, _: &mut H, _: usize) -> driver::Result<()> {
        Ok(())
    }
}

/// Writes bytes from a place on, a multiple of a block; the last block is filled with zeros. Commands that it took.
pub fn put<H: Host>(
    controller: &mut Controller<H>,
    at: u64,
    data: &[u8],
    progress: &Progress,
    watch: &mut Watch,
) -> driver::Result<u64> {
    if data.is_empty() {
        return Ok(0);
    }
    let buffers = Buffers::new(controller)?;
    let mut put = Put { buffers, data, at };
    let outcome = drive(controller, progress, watch, &mut put);
    put.buffers.release(controller);
    outcome
}

struct Get<'a> {
    buffers: Buffers,
    out: &'a mut [u8],
    /// Where the first byte of `out` stands, and what the next command reads.
    start: u64,
    next: u64,
    flights: Vec<(u64, usize)>,
}

impl<H: Host> Source<H> for Get<'_> {
    fn next(&mut self, _: &mut H, _: usize, slot: usize) -> driver::Result<Next> {
        let end = self.start + self.out.len() as u64;
        if self.next >= end {
            return Ok(Next::End);
        }
        let Buffers { each, block, .. } = self.buffers;
        let left = (end - self.next).next_multiple_of(block as u64);
        let bytes = left.min(each as u64) as usize;
        self.flights[slot] = (self.next, bytes);
        let io = Io::Read {
            lba: self.next / block as u64,
            blocks: (bytes / block) as u32,
        };
        self.next += bytes as u64;
        Ok(Next::Command(io, Buffer::Contiguous(self.buffers.of(slot))))
    }

    fn completed(&mut self, host: &mut H, slot: usize) -> driver::Result<()> {
        let (at, bytes) = self.flights[slot];
        let end = self.start + self.out.len() as u64;
        let (from, to) = (at.max(self.start), (at + bytes as u64).min(end));
        let place = (from - self.start) as usize..(to - self.start) as usize;
        host.dma_read(self.buffers.of(slot) + (from - at), &mut self.out[place]);
        Ok(())
    }
}

/// Reads bytes from any place on. Commands that it took.
pub fn get<H: Host>(
    controller: &mut Controller<H>,
    start: u64,
    out: &mut [u8],
    progress: &Progress,
    watch: &mut Watch,
) -> driver::Result<u64> {
    if out.is_empty() {
        return Ok(0);
    }
    let buffers = Buffers::new(controller)?;
    let block = buffers.block as u64;
    let mut get = Get {
        buffers,
        out,
        start,
        next: start / block * block,
        flights: vec![(0, 0); QUEUES * DEPTH],
    };
    let outcome = drive(controller, progress, watch, &mut get);
    get.buffers.release(controller);
    outcome
}
