// SPDX-License-Identifier: Apache-2.0

//! Transfers to and from a namespace, with many NVMe commands in flight.

use std::ops::Range;

use driver::io_loop::{run, CommandSource, NextCommand};
use driver::{Buffer, Host, IoCommand, NvmeDriver};

use crate::sampler::ChannelSampler;
use crate::spill::Spill;
use crate::{Progress, Result};

/// I/O queues in use, each with a dedicated CPU.
pub const QUEUES: usize = 4;
/// Commands in flight of each queue.
const DEPTH: usize = 8;
/// Most bytes of a command.
const MAX_COMMAND_BYTES: usize = 128 << 10;

/// Data that is written to a namespace.
pub trait TransferSource {
    /// Number of bytes.
    fn bytes(&self) -> u64;
    /// Copies the bytes at `at`.
    fn copy(&self, at: u64, out: &mut [u8]) -> Result<()>;
}

/// Receives data that is read from a namespace.
pub trait TransferTarget {
    /// Writes the bytes at `at`.
    fn write_bytes(&mut self, at: u64, bytes: &[u8]) -> Result<()>;
}

impl TransferSource for Vec<u8> {
    fn bytes(&self) -> u64 {
        self.len() as u64
    }

    fn copy(&self, at: u64, out: &mut [u8]) -> Result<()> {
        out.copy_from_slice(&self[at as usize..][..out.len()]);
        Ok(())
    }
}

impl TransferTarget for Vec<u8> {
    fn write_bytes(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        self[at as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}

impl TransferSource for Spill {
    fn bytes(&self) -> u64 {
        self.len()
    }

    fn copy(&self, at: u64, out: &mut [u8]) -> Result<()> {
        self.read(at, out)
    }
}

impl TransferTarget for Spill {
    fn write_bytes(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        self.write(at, bytes)
    }
}

/// Stops the work of all devices after an error of the host.
pub fn or_stop_all<T>(outcome: Result<T>, progress: &Progress) -> driver::Result<T> {
    outcome.map_err(|error| {
        progress.stop();
        driver::Error::caller(error)
    })
}

/// Host memory for the data of the commands in flight.
struct Buffers {
    base: u64,
    each: usize,
    block: usize,
}

impl Buffers {
    fn new<H: Host>(controller: &mut NvmeDriver<H>) -> driver::Result<Buffers> {
        let block = controller.namespace().block_bytes as usize;
        let most = (controller.max_blocks() as usize).saturating_mul(block);
        let each = most.min(MAX_COMMAND_BYTES).max(block);
        let base = controller
            .host_mut()
            .alloc((each * QUEUES * DEPTH) as u64, 4096)?;
        Ok(Buffers { base, each, block })
    }

    fn address(&self, slot: usize) -> u64 {
        self.base + (slot * self.each) as u64
    }

    fn release<H: Host>(self, controller: &mut NvmeDriver<H>) {
        controller.free_buffer(self.base, (self.each * QUEUES * DEPTH) as u64);
    }
}

/// A source that takes samples as commands complete.
struct SampledSource<'a, H: Host> {
    source: &'a mut dyn CommandSource<H>,
    sampler: &'a mut ChannelSampler,
}

impl<H: Host> CommandSource<H> for SampledSource<'_, H> {
    fn next(&mut self, host: &mut H, queue: usize, slot: usize) -> driver::Result<NextCommand> {
        self.source.next(host, queue, slot)
    }

    fn completed(&mut self, host: &mut H, slot: usize) -> driver::Result<()> {
        self.source.completed(host, slot)?;
        self.sampler.sample_if_due(host)
    }
}

/// Runs a source, and returns the number of commands.
fn drive<H: Host>(
    controller: &mut NvmeDriver<H>,
    progress: &Progress,
    sampler: &mut ChannelSampler,
    source: &mut dyn CommandSource<H>,
) -> driver::Result<u64> {
    let source = &mut SampledSource { source, sampler };
    let queues = QUEUES.min(controller.io_queues());
    let mut reported = 0;
    let report = run(controller, source, queues, DEPTH, &mut |bytes| {
        progress.add(bytes - reported);
        reported = bytes;
        progress.should_continue()
    })?;
    Ok(report.commands)
}

struct PutSource<'a> {
    buffers: Buffers,
    data: &'a dyn TransferSource,
    /// Bytes that were sent.
    done: u64,
    at: u64,
    /// The data of one command.
    piece: Vec<u8>,
    progress: &'a Progress,
}

impl<H: Host> CommandSource<H> for PutSource<'_> {
    fn next(&mut self, host: &mut H, _: usize, slot: usize) -> driver::Result<NextCommand> {
        let left = self.data.bytes() - self.done;
        if left == 0 {
            return Ok(NextCommand::End);
        }
        let Buffers { each, block, .. } = self.buffers;
        let here = left.min(each as u64) as usize;
        let (whole, buffer) = (here.next_multiple_of(block), self.buffers.address(slot));
        self.piece.clear();
        self.piece.resize(whole, 0);
        let copied = self.data.copy(self.done, &mut self.piece[..here]);
        or_stop_all(copied, self.progress)?;
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

/// Writes data at `at`, a multiple of a block. The last block is padded with zeros. Returns the
/// number of commands.
pub fn put<H: Host>(
    controller: &mut NvmeDriver<H>,
    at: u64,
    data: &dyn TransferSource,
    progress: &Progress,
    sampler: &mut ChannelSampler,
) -> driver::Result<u64> {
    if data.bytes() == 0 {
        return Ok(0);
    }
    let mut put = PutSource {
        buffers: Buffers::new(controller)?,
        data,
        done: 0,
        at,
        piece: Vec::new(),
        progress,
    };
    let outcome = drive(controller, progress, sampler, &mut put);
    put.buffers.release(controller);
    outcome
}

struct GetSource<'a> {
    buffers: Buffers,
    out: &'a mut dyn TransferTarget,
    /// The range of the target.
    place: Range<u64>,
    /// The first byte in the namespace, and the first byte of the next command.
    start: u64,
    next: u64,
    in_flight: Vec<(u64, usize)>,
    /// The data of one command.
    piece: Vec<u8>,
    progress: &'a Progress,
}

impl GetSource<'_> {
    fn end_address(&self) -> u64 {
        self.start + (self.place.end - self.place.start)
    }
}

impl<H: Host> CommandSource<H> for GetSource<'_> {
    fn next(&mut self, _: &mut H, _: usize, slot: usize) -> driver::Result<NextCommand> {
        let end = self.end_address();
        if self.next >= end {
            return Ok(NextCommand::End);
        }
        let Buffers { each, block, .. } = self.buffers;
        let left = (end - self.next).next_multiple_of(block as u64);
        let bytes = left.min(each as u64) as usize;
        self.in_flight[slot] = (self.next, bytes);
        let io = IoCommand::Read {
            lba: self.next / block as u64,
            blocks: (bytes / block) as u32,
        };
        self.next += bytes as u64;
        Ok(NextCommand::Command(
            io,
            Buffer::Contiguous(self.buffers.address(slot)),
        ))
    }

    fn completed(&mut self, host: &mut H, slot: usize) -> driver::Result<()> {
        let (at, bytes) = self.in_flight[slot];
        let (from, to) = (
            at.max(self.start),
            (at + bytes as u64).min(self.end_address()),
        );
        self.piece.resize((to - from) as usize, 0);
        host.dma_read(self.buffers.address(slot) + (from - at), &mut self.piece);
        let place = self.place.start + (from - self.start);
        or_stop_all(self.out.write_bytes(place, &self.piece), self.progress)
    }
}

/// Reads from any offset of the namespace into a range of the target. Returns the number of
/// commands.
pub fn get<H: Host>(
    controller: &mut NvmeDriver<H>,
    start: u64,
    out: &mut dyn TransferTarget,
    place: Range<u64>,
    progress: &Progress,
    sampler: &mut ChannelSampler,
) -> driver::Result<u64> {
    if place.is_empty() {
        return Ok(0);
    }
    let buffers = Buffers::new(controller)?;
    let block = buffers.block as u64;
    let mut get = GetSource {
        buffers,
        out,
        place,
        start,
        next: start / block * block,
        in_flight: vec![(0, 0); QUEUES * DEPTH],
        piece: Vec::new(),
        progress,
    };
    let outcome = drive(controller, progress, sampler, &mut get);
    get.buffers.release(controller);
    outcome
}

/// Reads a range of the namespace into memory.
pub fn get_all<H: Host>(
    controller: &mut NvmeDriver<H>,
    place: &Range<u64>,
    progress: &Progress,
    sampler: &mut ChannelSampler,
) -> driver::Result<Vec<u8>> {
    let mut out = vec![0; (place.end - place.start) as usize];
    let all = 0..out.len() as u64;
    get(controller, place.start, &mut out, all, progress, sampler)?;
    Ok(out)
}
