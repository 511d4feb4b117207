// SPDX-License-Identifier: Apache-2.0

//! Runs commands one at a time, to find where the time of a command goes.

use std::sync::{Mutex, PoisonError};

use driver::{Buffer, Host, IoCommand, NvmeDriver, SimHost};
use pyo3::prelude::*;
use serde_json::Value;
use sim::Time;

use crate::error::raise;
use crate::progress::ProgressReporter;
use crate::trace::Events;

/// Most commands whose events are kept, and most bytes that they move. Each beat is an event.
const MOST_SINGLE: u64 = 20_000;
const MOST_SINGLE_BYTES: u64 = 64 << 20;

/// Reads or writes, one at a time, with the device idle before each.
pub struct Single {
    pub write: bool,
    /// Bytes of each command.
    pub bytes: u64,
    pub commands: u64,
    /// Seed of the addresses.
    pub seed: u64,
}

impl Single {
    /// Refuses invalid commands, and more events than fit in memory.
    pub fn check(&self, controller: &NvmeDriver<SimHost>) -> PyResult<()> {
        let Single {
            bytes, commands, ..
        } = *self;
        let block = u64::from(controller.namespace().block_bytes);
        let most = u64::from(controller.max_blocks()) * block;
        if bytes == 0 || bytes % block != 0 || bytes > most {
            return Err(raise(format!(
                "bytes = {bytes}: allowed are multiples of {block} up to {most}"
            )));
        }
        if commands > MOST_SINGLE {
            return Err(raise(format!(
                "commands = {commands}: allowed are 0 to {MOST_SINGLE}"
            )));
        }
        if commands * bytes > MOST_SINGLE_BYTES {
            return Err(raise(format!(
                "{commands} commands of {bytes} bytes: allowed are {MOST_SINGLE_BYTES} bytes in all"
            )));
        }
        Ok(())
    }

    /// Runs the commands, and returns all events of each.
    pub fn run(
        &self,
        controller: &mut NvmeDriver<SimHost>,
        events: &Mutex<Events>,
        reporter: &mut ProgressReporter,
    ) -> driver::Result<Vec<Value>> {
        let Single {
            write,
            bytes,
            commands,
            seed,
        } = *self;
        let block = u64::from(controller.namespace().block_bytes);
        let blocks = u32::try_from(bytes.div_ceil(block)).unwrap_or(u32::MAX);
        let places = (controller.namespace().bytes() / bytes.max(block)).max(1);
        let base = controller.host_mut().alloc(bytes, 4096)?;
        let buffer = Buffer::Contiguous(base);
        let mut random = sim::Random::new(seed);
        let mut out = Vec::new();
        for done in 0..commands {
            let until = controller.now() + Time::us(10);
            let system = controller.host_mut().system_mut();
            system
                .advance_until(until)
                .map_err(|e| driver::Error::Host(e.to_string()))?;
            let lba = random.below(places) * u64::from(blocks);
            let io = if write {
                IoCommand::Write { lba, blocks }
            } else {
                IoCommand::Read { lba, blocks }
            };
            let events = || {
                events
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take_events()
            };
            events();
            let mut outcome = controller.execute(0, io, &buffer).and_then(|c| c.check());
            if outcome.is_ok() && !reporter.report(done, commands) {
                outcome = Err(driver::Error::Interrupted);
            }
            if let Err(error) = outcome {
                controller.free_buffer(base, bytes);
                return Err(error);
            }
            out.push(events());
        }
        controller.free_buffer(base, bytes);
        Ok(out)
    }
}
