// SPDX-License-Identifier: Apache-2.0

//! The device as an engine sees it: time, and the engine's memory masters with their bounds.

use std::ops::Range;

use crate::config::Config;
use crate::context::{Event, SimContext, TAG_ENGINE};
use crate::memory::master;

use super::event_kind;

/// Bits of a burst's number in a tag. The engine's number is above them.
const BURST_BITS: u32 = 24;
/// Cycles from an engine's master to the channel's multiplexer: register slices of `ns_axi_demux`,
/// and credits.
const ISSUE: u64 = 3;
/// Cycles until a burst outside the bounds is answered, in addition to its beats.
const REFUSED: u64 = 6;

/// Engine and burst of a channel's tag.
pub(super) fn burst_of(tag: u32) -> (usize, u32) {
    ((tag >> BURST_BITS) as usize, tag & ((1 << BURST_BITS) - 1))
}

/// The PM window addresses that an engine may access.
pub(super) struct AccessBounds {
    media: Range<u64>,
    local: Range<u64>,
}

impl AccessBounds {
    /// The bounds of an engine of a design.
    pub(super) fn new(instance: &design::engine::EngineInstance, config: &Config) -> AccessBounds {
        let local = match &config.local {
            Some(local) if instance.local => config.local_base..config.local_base + local.bytes,
            _ => 0..0,
        };
        AccessBounds {
            media: instance.media.clone(),
            local,
        }
    }

    fn contains(&self, addr: u64) -> bool {
        self.media.contains(&addr) || self.local.contains(&addr)
    }
}

/// The device as an engine sees it.
pub(crate) struct EnginePorts<'a, 'b> {
    pub(super) ctx: &'a mut SimContext<'b>,
    pub(super) number: u8,
    pub(super) bounds: &'a AccessBounds,
    /// Bits that are set in the numbers of its wake-ups, to identify a kernel of the engine.
    pub(super) kernel: u32,
}

impl<'b> EnginePorts<'_, 'b> {
    /// The same ports for a kernel whose wake-ups have these bits.
    pub(super) fn for_kernel(&mut self, kernel: u32) -> EnginePorts<'_, 'b> {
        EnginePorts {
            ctx: &mut *self.ctx,
            number: self.number,
            bounds: self.bounds,
            kernel,
        }
    }

    /// The current clock edge.
    pub(crate) fn now(&self) -> u64 {
        self.ctx.now
    }

    /// Schedules a call of [`super::Engine::wake`] at an edge.
    pub(crate) fn wake(&mut self, cycle: u64, number: u32) {
        self.schedule(cycle, event_kind::WAKE, self.kernel | number);
    }

    fn schedule(&mut self, cycle: u64, about: u32, number: u32) {
        let event = Event::Engine(self.number, about << event_kind::BITS | number);
        self.ctx.calendar.schedule(cycle, event);
    }

    /// Reads a burst within a granule. The burst reaches the engine's channel port after `cycles`.
    /// Bursts with the same `id` stay in order. A burst outside the bounds is answered, too.
    pub(crate) fn read(&mut self, cycles: u64, id: u16, addr: u64, bytes: u32, burst: u32) {
        match self.locate(addr) {
            None => {
                let beats = (addr % 64 + u64::from(bytes)).div_ceil(64);
                self.schedule(
                    self.ctx.now + cycles + REFUSED + beats,
                    event_kind::READ,
                    burst,
                );
            }
            Some((channel, local)) => {
                let (at, tag) = (self.ctx.now + cycles + ISSUE, self.tag(burst));
                let master = master::ENGINES + usize::from(self.number);
                self.ctx.memory.channels[channel].read(at, master, id, local, bytes, tag);
                self.ctx.schedule_channel(channel);
            }
        }
    }

    /// Writes a burst, in the same way. [`EnginePorts::store`] writes its bytes. False: the burst
    /// is outside the bounds.
    pub(crate) fn write(
        &mut self,
        cycles: u64,
        id: u16,
        addr: u64,
        bytes: u32,
        burst: u32,
    ) -> bool {
        match self.locate(addr) {
            None => {
                let beats = (addr % 64 + u64::from(bytes)).div_ceil(64);
                self.schedule(
                    self.ctx.now + cycles + REFUSED + beats,
                    event_kind::WRITE,
                    burst,
                );
                false
            }
            Some((channel, local)) => {
                let (at, tag) = (self.ctx.now + cycles + ISSUE, self.tag(burst));
                let master = master::ENGINES + usize::from(self.number);
                self.ctx.memory.channels[channel].write(at, master, id, local, bytes, tag);
                self.ctx.schedule_channel(channel);
                true
            }
        }
    }

    fn tag(&self, burst: u32) -> u64 {
        TAG_ENGINE | u64::from(self.number) << BURST_BITS | u64::from(burst)
    }

    /// Channel and channel address of an address within the bounds.
    fn locate(&self, addr: u64) -> Option<(usize, u64)> {
        if !self.bounds.contains(addr) {
            return None;
        }
        let place = self.ctx.memory.locate(addr)?;
        Some((place.channel, place.addr))
    }

    /// Reads the current bytes of a range within a granule. False: they can't be read.
    pub(crate) fn load(&self, addr: u64, out: &mut [u8]) -> bool {
        self.ctx.memory.read_unfiltered(addr, out)
    }

    /// Writes bytes within a granule. False: there is no space for them.
    pub(crate) fn store(&mut self, addr: u64, data: &[u8]) -> bool {
        self.ctx.memory.write_unfiltered(addr, data)
    }
}
