// SPDX-License-Identifier: Apache-2.0

//! Recorded commands, issued again at their times.

use sim::Time;
use spec::nvme::PAGE_BYTES;

use crate::io_loop::{self, RunReport};
use crate::latency::Latencies;
use crate::prp::Buffer;
use crate::{Error, Host, IoCommand, NvmeDriver, Result};

/// A command, and when to issue it after the begin of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedCommand {
    /// The time of its submission.
    pub at: Time,
    /// The command.
    pub io: IoCommand,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayReport {
    /// Bandwidth and latency.
    pub report: RunReport,
    /// The most by which a command was submitted after its time.
    pub late: Time,
}

fn blocks_of(io: IoCommand) -> (u64, u32) {
    match io {
        IoCommand::Read { lba, blocks }
        | IoCommand::Write { lba, blocks }
        | IoCommand::Compare { lba, blocks } => (lba, blocks),
        IoCommand::Flush => (0, 0),
    }
}

/// Issues `commands`, which are in the order of their times, on the first I/O queue. A command does
/// not wait for the ones before it, except for room in the queue. `progress` receives the commands
/// completed and their total, and stops the run by returning false.
///
/// All commands share one buffer: what reads return is lost, and writes write what is there. An
/// error if a command is out of order or outside of the namespace.
pub fn replay<H: Host>(
    controller: &mut NvmeDriver<H>,
    commands: &[TimedCommand],
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<ReplayReport> {
    let most = check(controller, commands)?;
    controller.check_idle(0)?;
    let bytes = (u64::from(most) * u64::from(controller.namespace().block_bytes)).max(1);
    let room = bytes.next_multiple_of(PAGE_BYTES);
    let base = controller.host_mut().alloc(room, PAGE_BYTES)?;
    let outcome = run(controller, commands, base, progress);
    let failed = |e: &Error| matches!(e, Error::Timeout { .. } | Error::Gone | Error::Fatal);
    if outcome.as_ref().is_err_and(|e| !failed(e)) {
        // An error here follows from the first one, which is the one to report.
        let _ = io_loop::drain(controller, 1);
    }
    controller.free_buffer(base, room);
    outcome
}

/// The most blocks of a command.
fn check<H: Host>(controller: &NvmeDriver<H>, commands: &[TimedCommand]) -> Result<u32> {
    io_loop::check_shape(controller, 1, 1)?;
    let (size, allowed) = (controller.namespace().size, controller.max_blocks());
    let mut most = 0;
    for (number, command) in commands.iter().enumerate() {
        let (lba, blocks) = blocks_of(command.io);
        if number > 0 && command.at < commands[number - 1].at {
            return Err(Error::Invalid(format!(
                "command {number}: its time is before that of the previous one"
            )));
        }
        let end = lba.checked_add(u64::from(blocks));
        let fits = (1..=allowed).contains(&blocks) && end.is_some_and(|end| end <= size);
        if command.io != IoCommand::Flush && !fits {
            return Err(Error::Invalid(format!(
                "command {number}: {blocks} blocks from LBA {lba}: allowed are 1 to {allowed} in a \
                    namespace of {size}"
            )));
        }
        most = most.max(blocks);
    }
    Ok(most)
}

fn run<H: Host>(
    controller: &mut NvmeDriver<H>,
    commands: &[TimedCommand],
    base: u64,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<ReplayReport> {
    let start = controller.now();
    let timeout = controller.command_timeout();
    let block = u64::from(controller.namespace().block_bytes);
    let total = commands.len() as u64;
    let (mut read, mut write) = (Latencies::default(), Latencies::default());
    let (mut next, mut done, mut bytes) = (0, 0, 0);
    let (mut late, mut end) = (Time::ZERO, start);
    // When a command in flight has timed out.
    let mut limit = start + timeout;
    while done < total {
        if controller.busy(0)? {
            controller.wait(limit, "the CPU")?;
        } else if let Some(completion) = controller.poll(0)? {
            completion.check()?;
            let io = commands[completion.tag as usize].io;
            let latencies = match io {
                IoCommand::Read { .. } => &mut read,
                _ => &mut write,
            };
            latencies.record(completion.latency());
            bytes += u64::from(blocks_of(io).1) * block;
            done += 1;
            end = end.max(completion.completed);
            limit = end + timeout;
            if done % 256 == 0 && !progress(done, total) {
                return Err(Error::Interrupted);
            }
        } else if controller.unrung(0) {
            controller.ring_next(0)?;
        } else {
            let due = commands.get(next).filter(|_| controller.has_room(0));
            let due = due.map(|command| start + command.at);
            let now = controller.now();
            match due {
                Some(at) if at <= now => {
                    late = late.max(now - at);
                    limit = limit.max(now + timeout);
                    let buffer = Buffer::Contiguous(base);
                    controller.submit(0, commands[next].io, &buffer, next as u64)?;
                    next += 1;
                }
                Some(at) if at < limit || controller.outstanding(0) == 0 => {
                    controller.host_mut().wait(at)?;
                }
                _ => controller.wait(limit, "an I/O command")?,
            }
        }
    }
    progress(done, total);
    let report = RunReport {
        commands: done,
        by_queue: vec![done],
        bytes,
        elapsed: end - start,
        read,
        write,
    };
    Ok(ReplayReport { report, late })
}
