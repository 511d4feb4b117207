// SPDX-License-Identifier: Apache-2.0

//! The I/O loop: keeps commands in flight on several queues, each with a separate CPU.

use sim::Time;

use crate::latency::Latencies;
use crate::prp::Buffer;
use crate::{Completion, Error, Host, IoCommand, NvmeDriver, Result};

/// The answer of a command source.
#[derive(Clone, Debug)]
pub enum NextCommand {
    /// A command and its data buffer.
    Command(IoCommand, Buffer),
    /// No command now; ask again after another command has completed.
    Later,
    /// No more commands.
    End,
}

/// A source of commands, which also receives their completions.
///
/// A slot identifies a command in flight: `queue * depth + i`. The source manages the buffers of
/// its slots.
pub trait CommandSource<H: Host> {
    /// The next command of a queue, for `slot`.
    fn next(&mut self, host: &mut H, queue: usize, slot: usize) -> Result<NextCommand>;
    /// The command of `slot` has completed successfully.
    fn completed(&mut self, host: &mut H, slot: usize) -> Result<()>;
}

/// The result of a run. All times are simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct RunReport {
    /// Commands completed.
    pub commands: u64,
    /// Commands completed by each I/O queue in use.
    pub by_queue: Vec<u64>,
    /// Bytes moved.
    pub bytes: u64,
    /// From the first submission to the last observed completion.
    pub elapsed: Time,
    /// Latencies of the reads.
    pub read: Latencies,
    /// Latencies of the writes.
    pub write: Latencies,
}

impl RunReport {
    /// Bytes per second over the whole run, including the filling and draining of the queues.
    pub fn bandwidth(&self) -> f64 {
        rate(self.bytes, self.elapsed)
    }
    /// Commands per second over the whole run.
    pub fn iops(&self) -> f64 {
        rate(self.commands, self.elapsed)
    }
}

fn rate(count: u64, span: Time) -> f64 {
    if span == Time::ZERO {
        return 0.0;
    }
    count as f64 / span.as_secs()
}

/// Refuses numbers of queues and of commands in flight that the controller does not support.
pub(crate) fn check_shape<H: Host>(
    controller: &NvmeDriver<H>,
    queues: usize,
    depth: usize,
) -> Result<()> {
    let have = controller.io_queues();
    if queues == 0 || queues > have {
        return Err(Error::Invalid(format!(
            "queues = {queues}: allowed are 1 to {have}"
        )));
    }
    let most = controller.io_entries().saturating_sub(1) as usize;
    if depth == 0 || depth > most {
        return Err(Error::Invalid(format!(
            "depth = {depth}: allowed are 1 to {most}"
        )));
    }
    Ok(())
}

/// Runs a source on the first `queues` I/O queues, with `depth` commands in flight on each.
/// `progress` is called periodically with the bytes completed, and stops the run by returning
/// false.
///
/// The commands in flight end before the call returns, unless the controller has failed. A later
/// command must not meet completions of this run.
pub fn run<H: Host>(
    controller: &mut NvmeDriver<H>,
    source: &mut dyn CommandSource<H>,
    queues: usize,
    depth: usize,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<RunReport> {
    check_shape(controller, queues, depth)?;
    (0..queues).try_for_each(|queue| controller.check_idle(queue))?;
    let outcome = run_to_end(controller, source, queues, depth, progress);
    // A controller that has timed out or failed completes no more commands.
    let failed = |e: &Error| matches!(e, Error::Timeout { .. } | Error::Gone | Error::Fatal);
    if outcome.as_ref().is_err_and(|e| !failed(e)) {
        // An error here follows from the first one, which is the one to report.
        let _ = drain(controller, queues);
    }
    outcome
}

/// Waits for the end of all commands in flight, whatever their status; an error if one exceeds its
/// time.
pub(crate) fn drain<H: Host>(controller: &mut NvmeDriver<H>, queues: usize) -> Result<()> {
    let mut limit = controller.now() + controller.command_timeout();
    loop {
        let (mut acted, mut left) = (false, false);
        for queue in 0..queues {
            if controller.busy(queue)? {
                left = true;
            } else if controller.poll(queue)?.is_some() {
                limit = controller.now() + controller.command_timeout();
                acted = true;
            } else if controller.unrung(queue) {
                controller.ring_next(queue)?;
                acted = true;
            }
            left |= controller.outstanding(queue) > 0 || controller.unrung(queue);
        }
        if !left {
            return Ok(());
        }
        if !acted {
            controller.wait(limit, "an I/O command")?;
        }
    }
}

fn run_to_end<H: Host>(
    controller: &mut NvmeDriver<H>,
    source: &mut dyn CommandSource<H>,
    queues: usize,
    depth: usize,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<RunReport> {
    let mut run = IoRun::new(
        queues,
        depth,
        controller.now(),
        controller.command_timeout(),
    );
    let mut turns = 0u32;
    while !run.finished() {
        let mut acted = false;
        for queue in 0..queues {
            acted |= run.step_queue(controller, source, queue)?;
        }
        turns = turns.wrapping_add(1);
        if turns % 256 == 0 && !progress(run.report.bytes) {
            return Err(Error::Interrupted);
        }
        // If CPU work is free, all available steps happen at one time.
        if !acted {
            if run.in_flight == 0 && !run.any_busy(controller)? {
                return Err(Error::Invalid(
                    "the source of commands waits for itself".into(),
                ));
            }
            controller.wait(run.limit, "an I/O command")?;
        }
    }
    progress(run.report.bytes);
    Ok(run.into_report())
}

/// A command in flight.
#[derive(Clone, Copy)]
struct CommandInFlight {
    bytes: u64,
    write: bool,
}

struct IoRun {
    timeout: Time,
    /// The time at which a command has timed out.
    limit: Time,
    in_flight: usize,
    /// By slot.
    commands: Vec<Option<CommandInFlight>>,
    /// Free slots by queue.
    free: Vec<Vec<usize>>,
    ended: Vec<bool>,
    start: Time,
    end: Time,
    report: RunReport,
}

impl IoRun {
    fn new(queues: usize, depth: usize, start: Time, timeout: Time) -> IoRun {
        IoRun {
            timeout,
            limit: start + timeout,
            in_flight: 0,
            commands: vec![None; queues * depth],
            free: (0..queues)
                .map(|q| (q * depth..(q + 1) * depth).rev().collect())
                .collect(),
            ended: vec![false; queues],
            start,
            end: start,
            report: RunReport {
                commands: 0,
                by_queue: vec![0; queues],
                bytes: 0,
                elapsed: Time::ZERO,
                read: Latencies::default(),
                write: Latencies::default(),
            },
        }
    }

    fn finished(&self) -> bool {
        self.in_flight == 0 && self.ended.iter().all(|&e| e)
    }

    fn any_busy<H: Host>(&self, controller: &mut NvmeDriver<H>) -> Result<bool> {
        for queue in 0..self.ended.len() {
            if controller.busy(queue)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Performs one step of a queue's CPU, if it is free: reap, else submit, else ring.
    fn step_queue<H: Host>(
        &mut self,
        controller: &mut NvmeDriver<H>,
        source: &mut dyn CommandSource<H>,
        queue: usize,
    ) -> Result<bool> {
        if controller.busy(queue)? {
            return Ok(false);
        }
        if let Some(completion) = controller.poll(queue)? {
            self.completed(controller, source, queue, &completion)?;
            return Ok(true);
        }
        if !self.ended[queue] && controller.has_room(queue) {
            if let Some(slot) = self.free[queue].pop() {
                match source.next(controller.host_mut(), queue, slot)? {
                    NextCommand::Command(io, buffer) => {
                        self.submit(controller, queue, slot, io, &buffer)?;
                        return Ok(true);
                    }
                    NextCommand::Later => self.free[queue].push(slot),
                    NextCommand::End => {
                        self.free[queue].push(slot);
                        self.ended[queue] = true;
                    }
                }
            }
        }
        if controller.unrung(queue) {
            controller.ring_next(queue)?;
            return Ok(true);
        }
        Ok(false)
    }

    fn submit<H: Host>(
        &mut self,
        controller: &mut NvmeDriver<H>,
        queue: usize,
        slot: usize,
        io: IoCommand,
        buffer: &Buffer,
    ) -> Result<()> {
        let (write, blocks) = match io {
            IoCommand::Read { blocks, .. } => (false, blocks),
            IoCommand::Write { blocks, .. } | IoCommand::Compare { blocks, .. } => (true, blocks),
            IoCommand::Flush => (true, 0),
        };
        let bytes = u64::from(blocks) * u64::from(controller.namespace().block_bytes);
        controller.submit(queue, io, buffer, slot as u64)?;
        self.commands[slot] = Some(CommandInFlight { bytes, write });
        self.in_flight += 1;
        Ok(())
    }

    fn completed<H: Host>(
        &mut self,
        controller: &mut NvmeDriver<H>,
        source: &mut dyn CommandSource<H>,
        queue: usize,
        completion: &Completion,
    ) -> Result<()> {
        completion.check()?;
        let slot = completion.tag as usize;
        let flight = self
            .commands
            .get_mut(slot)
            .and_then(Option::take)
            .ok_or_else(|| {
                Error::Misbehaviour(format!(
                    "a completion on queue {queue} for a command of another one"
                ))
            })?;
        source.completed(controller.host_mut(), slot)?;
        self.free[queue].push(slot);
        self.in_flight -= 1;
        self.end = self.end.max(completion.completed);
        self.limit = self.end + self.timeout;
        let latencies = if flight.write {
            &mut self.report.write
        } else {
            &mut self.report.read
        };
        latencies.record(completion.latency());
        self.report.commands += 1;
        self.report.by_queue[queue] += 1;
        self.report.bytes += flight.bytes;
        Ok(())
    }

    fn into_report(mut self) -> RunReport {
        self.report.elapsed = self.end - self.start;
        self.report
    }
}
