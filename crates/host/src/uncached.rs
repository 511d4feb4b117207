// SPDX-License-Identifier: Apache-2.0

//! Uncached stores: from a CPU's store buffer to the devices.

use sim::{Bar, Time};

use crate::machine::Machine;
use crate::store_buffer::BufferedStore;
use crate::{Error, Result, Turn, WakeCondition};

impl Machine {
    /// Buffers a store, which leaves at once if nothing is in front of it.
    fn buffer_store(
        &mut self,
        cpu: usize,
        (device, bar): (usize, Bar),
        offset: u64,
        data: &[u8],
    ) -> Result<()> {
        let data = data.to_vec();
        self.core(cpu).stores.held.push_back(BufferedStore {
            device,
            bar,
            offset,
            data,
        });
        self.post_due_stores().map(drop)
    }

    /// Posts the stores that may leave by now; returns when the next one may. A store that waits
    /// for its link is posted after the event that gives it space.
    pub(crate) fn post_due_stores(&mut self) -> Result<Time> {
        let now = self.system.now();
        loop {
            let heads = (self.cores.iter().enumerate())
                .filter_map(|(cpu, core)| core.stores.held.front().map(|head| (cpu, core, head)));
            // Room is given to the CPU that has waited longest, or others could take it for ever.
            let first = heads
                .filter(|(_, core, head)| {
                    core.stores.next <= now && self.system.has_room(head.device)
                })
                .min_by_key(|(_, core, _)| core.stores.next);
            let Some((cpu, ..)) = first else {
                break;
            };
            self.post_first_store(cpu)?;
        }
        let stores = self.cores.iter().map(|core| &core.stores);
        let next = stores.filter(|stores| !stores.held.is_empty() && stores.next > now);
        Ok(next.map(|stores| stores.next).min().unwrap_or(Time::MAX))
    }

    fn post_first_store(&mut self, cpu: usize) -> Result<()> {
        let now = self.system.now();
        let accepted = now + self.costs.mmio_store;
        let core = &mut self.cores[cpu];
        let Some(store) = core.stores.held.pop_front() else {
            return Ok(());
        };
        core.stores.next = accepted;
        core.stores.left += 1;
        core.accepted = core.accepted.max(accepted);
        self.post(store.device, store.bar, store.offset, &store.data)
    }

    /// True if a store waits for space in the queue of its link.
    pub(crate) fn has_blocked_store(&self) -> bool {
        let now = self.system.now();
        let stores = self.cores.iter().map(|core| &core.stores);
        let mut heads = stores.filter_map(|s| s.held.front().map(|first| (s.next, first.device)));
        heads.any(|(next, device)| next <= now && !self.system.has_room(device))
    }

    /// True if no CPU has a store in its buffer.
    pub(crate) fn store_buffers_are_empty(&self) -> bool {
        self.cores.iter().all(|core| core.stores.held.is_empty())
    }

    /// Uncached stores that have left a CPU since the start.
    pub fn stores_left(&self, cpu: usize) -> u64 {
        self.cores.get(cpu).map_or(0, |core| core.stores.left)
    }

    /// Uncached stores that a CPU has executed since the start; some may not have left.
    pub fn stores_executed(&self, cpu: usize) -> u64 {
        let core = self.cores.get(cpu);
        core.map_or(0, |core| core.stores.executed())
    }
}

/// Executes an uncached store. Waits only while the store buffer is full.
pub(crate) fn store<T: Turn>(
    turn: &mut T,
    cpu: usize,
    window: (usize, Bar),
    offset: u64,
    data: &[u8],
) -> Result<()> {
    let most = turn.machine().costs.store_buffer.max(1);
    drain_to(turn, cpu, most - 1)?;
    turn.machine().buffer_store(cpu, window, offset, data)
}

/// Waits until a CPU's store buffer is empty.
pub(crate) fn drain<T: Turn>(turn: &mut T, cpu: usize) -> Result<()> {
    drain_to(turn, cpu, 0)
}

/// Waits until all store buffers are empty.
pub(crate) fn drain_all<T: Turn>(turn: &mut T) -> Result<()> {
    (0..turn.machine().cores.len()).try_for_each(|cpu| drain(turn, cpu))
}

/// Waits until a CPU's store buffer holds at most `most` stores.
fn drain_to<T: Turn>(turn: &mut T, cpu: usize, most: usize) -> Result<()> {
    let limit = turn.machine().completion_deadline();
    loop {
        let machine = turn.machine();
        machine.post_due_stores()?;
        let now = machine.system.now();
        let stores = &machine.core(cpu).stores;
        let Some(first) = stores.held.front().filter(|_| stores.held.len() > most) else {
            return Ok(());
        };
        let (device, bar, offset) = (first.device, first.bar, first.offset);
        if now >= limit {
            return Err(Error::System(sim::Error::Timeout {
                device,
                bar,
                offset,
            }));
        }
        turn.wait_for(WakeCondition::Buffered(cpu, most, limit))?;
    }
}
