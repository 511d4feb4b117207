// SPDX-License-Identifier: Apache-2.0

//! Accesses to registers: those of the controller in BAR0, and the control bus in BAR4
//! (nearside_control).

use sim::Bar;
use spec::bar4;

use crate::bridge::RegisterAccess;
use crate::memory::master;

use super::ActiveDevice;

/// Cycles of a register read in BAR0, up to its value.
const READ_BAR0: u64 = 8;
/// Cycles of a register read in BAR4, up to its value.
const READ_BAR4: u64 = 7;
/// Cycles from one word of a register read to the next.
const READ_STEP: u64 = 7;

impl ActiveDevice<'_> {
    pub(super) fn access_registers(&mut self, access: RegisterAccess) {
        match access {
            RegisterAccess::Word(bar, offset, value) => {
                self.write_register(bar, offset, value, u32::MAX);
            }
            RegisterAccess::Write(bar, words) => {
                for (offset, value, bits) in words {
                    self.write_register(bar, offset, value, bits);
                }
            }
            RegisterAccess::Read {
                bar,
                first,
                words,
                skip,
                len,
                tag,
            } => {
                let mut bytes = Vec::new();
                let mut complete = true;
                for n in 0..words {
                    match self.read_register(bar, first + 4 * n) {
                        Some(word) => bytes.extend_from_slice(&word.to_le_bytes()),
                        None => complete = false,
                    }
                }
                let data = complete.then(|| bytes[skip..skip + len].to_vec());
                let further_words = READ_STEP * (words - 1);
                let ctx = &mut self.ctx;
                match bar {
                    Bar::Nvme => {
                        let cycles = READ_BAR0 + further_words;
                        self.controller.answer_read(tag, data, cycles, ctx);
                    }
                    _ => {
                        let cycle = ctx.now + READ_BAR4 + further_words;
                        self.bridge.queue_answer(cycle, tag, data, ctx);
                    }
                }
            }
        }
    }

    fn read_register(&mut self, bar: Bar, offset: u64) -> Option<u32> {
        if bar == Bar::Nvme {
            return Some(self.controller.read_register(offset, &self.ctx));
        }
        let block = offset - offset % bar4::DELAY_STEP;
        let at = offset - block;
        match block {
            bar4::STATUS => Some(self.status.read(at)),
            bar4::QOS => Some(self.qos.read(at)),
            _ => match self.channel_of_delay(block) {
                Some(channel) => Some(self.ctx.memory.channels[channel].register(at)),
                None => {
                    let filter = self.ctx.filter.as_deref();
                    self.engines.read_register(offset, self.ctx.now, filter)
                }
            },
        }
    }

    fn write_register(&mut self, bar: Bar, offset: u64, value: u32, bits: u32) {
        let ctx = &mut self.ctx;
        if bar == Bar::Nvme {
            self.controller.write_register(offset, value, bits, ctx);
            return;
        }
        let block = offset - offset % bar4::DELAY_STEP;
        let at = offset - block;
        match block {
            bar4::STATUS => {}
            bar4::QOS => {
                self.qos.write(at, value, bits);
                self.set_credits();
            }
            _ => match self.channel_of_delay(block) {
                Some(channel) => {
                    let now = self.ctx.now;
                    self.bridge.delay_written(channel, at, value, now);
                    let strobe = (0..4).fold(0, |s, n| s | (bits >> (8 * n) & 1) << n);
                    let delay = &mut self.ctx.memory.channels[channel];
                    delay.set_register(now, at, value, strobe as u8);
                    self.ctx.schedule_channel(channel);
                }
                None => {
                    let ctx = &mut self.ctx;
                    if !self.engines.write_register(offset, value, bits, ctx) {
                        self.bridge.lost_writes += 1;
                    }
                    self.serve_engines();
                }
            },
        }
    }

    /// The channel whose `nvm_delay` has this block of BAR4.
    fn channel_of_delay(&self, block: u64) -> Option<usize> {
        let channel = (block.checked_sub(bar4::DELAY)? / bar4::DELAY_STEP) as usize;
        (channel < self.ctx.memory.channels.len()).then_some(channel)
    }

    /// Applies the credits of the `qos` registers to all channels.
    fn set_credits(&mut self) {
        for channel in 0..self.ctx.memory.channels.len() {
            for master in 0..master::ENGINES + self.config.engines.len() {
                let credits = self.qos.credits(master);
                self.ctx.memory.channels[channel].set_credits(self.ctx.now, master, credits);
            }
            self.ctx.schedule_channel(channel);
        }
    }
}
