// SPDX-License-Identifier: Apache-2.0

//! Resets of all kinds, and invalid settings.

use sim::{Bar, Time};
use spec::nvme::properties::{self, Csts};

use super::{Bench, LINK_DRAIN_NS};
use crate::campaign::StepResult;
use crate::oracle::rig::Seat;
use crate::random::chance;
use crate::PAGE;

/// The value of NSSR that causes a reset: "NVMe".
const SUBSYSTEM_RESET: u32 = 0x4E56_4D65;
/// CSTS.NSSRO.
const RESET_OCCURRED: u32 = 1 << 4;

impl Bench {
    pub(super) fn disable(&mut self) -> StepResult {
        self.cc &= !1;
        self.host.close_down();
        self.write32(properties::CC, self.cc);
        self.csts("not ready", true, |csts| !csts.ready() && !csts.fatal())?;
        self.host.forget();
        Ok(())
    }

    fn shut_down(&mut self) -> StepResult {
        let how = 1 + self.random.below(2) as u32;
        self.host.close_down();
        self.cc |= how << 14;
        self.write32(properties::CC, self.cc);
        self.csts("shut down", true, Csts::shutdown_complete)?;
        let ns = self.random.below(2000);
        self.wait_ns(ns)?;
        self.cc &= !(3 << 14);
        self.disable()
    }

    fn function_reset(&mut self) -> StepResult {
        self.drain_stores()?;
        self.seat.function_reset();
        self.reset_link()?;
        let ns = self.random.below(500);
        self.wait_ns(ns)
    }

    /// Waits until stores to the media have arrived.
    fn drain_stores(&mut self) -> StepResult {
        if matches!(self.seat, Seat::Alone(_)) {
            return Ok(());
        }
        let tag = self.load(Bar::Pm, 0, 64);
        self.answer(tag).map(drop)
    }

    /// Forgets everything in flight, after the link was down.
    fn reset_link(&mut self) -> StepResult {
        match &self.seat {
            Seat::Alone(device) => self.now = self.now.max(device.now()),
            // Transfers that are on the link still arrive.
            Seat::Beside(..) => self.wait_ns(LINK_DRAIN_NS)?,
        }
        self.host.silent = true;
        self.host.forget_link();
        self.host.forget();
        Ok(())
    }

    /// Cuts the power at an arbitrary cycle, and restores it.
    fn power_cut(&mut self) -> StepResult {
        let ps = self.random.below(5_000_000);
        self.advance(self.now + Time(ps), false)?;
        self.drain_stores()?;
        self.seat.power_off();
        self.reset_link()?;
        let ns = self.random.below(500);
        self.wait_ns(ns)?;
        self.seat.power_on();
        self.wait_ns(100)?;
        if !chance(&mut self.random, 25) {
            return Ok(());
        }
        // The media hold what the power cut has left.
        self.compare_media()
    }

    /// An NVM subsystem reset: a disable that resets all properties.
    fn subsystem_reset(&mut self) -> StepResult {
        self.host.close_down();
        self.write32(properties::NSSR, SUBSYSTEM_RESET);
        self.csts("reset", true, |csts| {
            !csts.ready() && csts.0 & RESET_OCCURRED != 0
        })?;
        self.host.forget();
        self.cc = 0;
        for offset in [
            properties::CC,
            properties::AQA,
            properties::ASQ,
            properties::ASQ + 4,
            properties::ACQ,
            properties::ACQ + 4,
            properties::NSSR,
        ] {
            let value = self.read32(offset)?;
            if value != 0 {
                return Err(format!(
                    "property {offset:#x} is {value:#x} after a subsystem reset"
                ));
            }
        }
        self.write32(properties::CSTS, RESET_OCCURRED);
        match self.read32(properties::CSTS)? {
            0 => Ok(()),
            csts => Err(format!("CSTS is {csts:#x} after a subsystem reset")),
        }
    }

    /// Enables with invalid settings: the controller reports CFS instead of ready.
    fn try_unusable_settings(&mut self) -> StepResult {
        let page = 1 << 32;
        let right = properties::Cc::DEFAULT.with_enable(true).0;
        let (mut cc, mut aqa, mut asq, mut acq) = (right, properties::aqa(8, 8), page, page + PAGE);
        match self.random.below(7) {
            0 => cc |= 1 << (7 + self.random.below(4)),
            1 => cc |= 1 << (4 + self.random.below(3)),
            2 => aqa &= 0xFFF,
            3 => aqa &= 0xFFF << 16,
            4 => asq = 0,
            5 => cc |= (2 + self.random.below(6) as u32) << 11,
            _ => acq = 0,
        }
        self.write32(properties::AQA, aqa);
        self.write64(properties::ASQ, asq);
        self.write64(properties::ACQ, acq);
        self.write32(properties::CC, cc);
        self.csts("fatal", true, |csts| csts.fatal() && !csts.ready())?;
        self.cc = cc;
        self.disable()
    }

    pub(super) fn reset(&mut self) -> StepResult {
        let alone = self.seat.is_left_alone();
        match self.random.below(5) {
            0 => {
                self.host.counts.subsystem_resets += 1;
                self.subsystem_reset()?;
            }
            1 => {
                self.host.counts.shutdowns += 1;
                self.shut_down()?;
            }
            2 if alone => {
                self.host.counts.function_resets += 1;
                self.function_reset()?;
            }
            3 if alone => {
                self.host.counts.power_cuts += 1;
                self.power_cut()?;
            }
            _ => {
                self.host.counts.disables += 1;
                self.disable()?;
            }
        }
        if chance(&mut self.random, 20) {
            self.try_unusable_settings()?;
        }
        self.enable()
    }

    /// Recovers after a failed fetch: the controller reports CFS, and only a reset clears it.
    pub(super) fn recover(&mut self) -> StepResult {
        self.host.counts.fatal += 1;
        self.csts("fatal", false, Csts::fatal)?;
        match self.random.below(3) {
            0 => self.disable()?,
            1 if self.seat.is_left_alone() => self.function_reset()?,
            _ => self.subsystem_reset()?,
        }
        self.enable()
    }
}
