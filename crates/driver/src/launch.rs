// SPDX-License-Identifier: Apache-2.0

//! Launches engines by their registers. All engines start with the same registers: control, status,
//! return value, arguments, outputs.

use sim::{Bar, Time};
use spec::regs::engine::{self, ARGUMENTS, ARGUMENTS_STRIDE};

use crate::{Error, Host, Result};

/// Registers of an engine in BAR4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineRegisters {
    /// The offset of the first one.
    pub base: u64,
    /// Their size in bytes.
    pub size: u64,
}

impl EngineRegisters {
    /// Sets the arguments and starts the engine; an error if it is working.
    pub fn start<H: Host>(&self, host: &mut H, arguments: &[u64]) -> Result<()> {
        host.run_on(0);
        let end = ARGUMENTS + ARGUMENTS_STRIDE * arguments.len() as u64;
        if end > self.size {
            let text = format!(
                "{} arguments: more than the engine has registers for",
                arguments.len()
            );
            return Err(Error::Invalid(text));
        }
        let control = host.read32(Bar::Control, self.base + engine::CONTROL)?;
        if !engine::control::IDLE.is_set(control.into()) {
            return Err(Error::Invalid("the engine works already".into()));
        }
        for (at, value) in (ARGUMENTS..)
            .step_by(ARGUMENTS_STRIDE as usize)
            .zip(arguments)
        {
            host.write64(Bar::Control, self.base + at, *value)?;
        }
        let done = engine::status::DONE.mask() as u32;
        host.write32(Bar::Control, self.base + engine::STATUS, done)?;
        let start = engine::control::START.mask() as u32;
        host.write32(Bar::Control, self.base + engine::CONTROL, start)
    }

    /// Requests the engine to end early.
    pub fn stop<H: Host>(&self, host: &mut H) -> Result<()> {
        host.run_on(0);
        let stop = engine::control::STOP.mask() as u32;
        host.write32(Bar::Control, self.base + engine::CONTROL, stop)
    }

    /// The return value, if the engine has ended.
    pub fn ended<H: Host>(&self, host: &mut H) -> Result<Option<u32>> {
        host.run_on(0);
        let status = host.read32(Bar::Control, self.base + engine::STATUS)?;
        if !engine::status::DONE.is_set(status.into()) {
            return Ok(None);
        }
        host.read32(Bar::Control, self.base + engine::RESULT)
            .map(Some)
    }

    /// Output values in addition to the return value: `count` of 64 bits each, after `arguments`
    /// arguments.
    pub fn outputs<H: Host>(
        &self,
        host: &mut H,
        arguments: usize,
        count: usize,
    ) -> Result<Vec<u64>> {
        host.run_on(0);
        (arguments..arguments + count)
            .map(|n| {
                let at = self.base + ARGUMENTS + ARGUMENTS_STRIDE * n as u64;
                let low = host.read32(Bar::Control, at)?;
                let high = host.read32(Bar::Control, at + 4)?;
                Ok(u64::from(high) << 32 | u64::from(low))
            })
            .collect()
    }

    /// Waits for the end until `deadline`, polling every `interval`; the return value. `keep_going`
    /// decides whether to continue waiting.
    pub fn wait<H: Host>(
        &self,
        host: &mut H,
        interval: Time,
        deadline: Time,
        keep_going: &mut dyn FnMut() -> bool,
    ) -> Result<Option<u32>> {
        poll_until(host, interval, deadline, keep_going, |host| {
            self.ended(host)
        })
    }
}

/// Polls every `interval` until there is a result, until `deadline`, or until `keep_going` returns
/// false.
pub(crate) fn poll_until<H: Host, T>(
    host: &mut H,
    interval: Time,
    deadline: Time,
    keep_going: &mut dyn FnMut() -> bool,
    mut probe: impl FnMut(&mut H) -> Result<Option<T>>,
) -> Result<Option<T>> {
    loop {
        if let Some(found) = probe(host)? {
            return Ok(Some(found));
        }
        let now = host.now();
        if now >= deadline || !keep_going() {
            return Ok(None);
        }
        host.wait(deadline.min(now + interval))?;
    }
}
