// SPDX-License-Identifier: Apache-2.0

//! A host that never sends the data of some writes.

use sim::Time;
use spec::nvme::{io, status, Sqe};

use crate::campaign::StepResult;
use crate::generate::Command;
use crate::lockstep::dut::Dut;
use crate::lockstep::host::SILENT;
use crate::lockstep::lifecycle::Reset;
use crate::lockstep::pair::{AllowedDifferences, LockstepPair};
use crate::random::{chance, pick};
use crate::BLOCK;
use crate::PAGE;

/// Most commands of a step.
const MOST: u64 = 3;
/// Longest time until a device gives up (`HostTimeout`: 25 to 50 ms). A small completion queue
/// serialises the commands.
const DEADLINE: Time = Time::ms(60);
/// Interval at which completions are consumed, and the longest time of the last messages.
const POLL: Time = Time::us(200);

impl LockstepPair {
    /// Writes whose data never arrive end as errors, and write nothing. Commands after lost answers
    /// may wait for them, so a reset of the function follows.
    pub fn silence(&mut self) -> StepResult {
        let mut queue_rooms = self.queue_rooms();
        // Coalesced messages would have to be waited for as well.
        if queue_rooms.is_empty() || self.state.coalesced || self.duts[0].shadow.is_some() {
            return Ok(());
        }
        self.count("reads that are never answered");
        let namespaces: Vec<_> = self.shape.limits.namespaces.active().copied().collect();
        let mut sent = Vec::new();
        for _ in 0..1 + self.random.below(MOST) {
            queue_rooms.retain(|room| room.1 > 0);
            let n = self.random.below(queue_rooms.len().max(1) as u64) as usize;
            let Some(room) = queue_rooms.get_mut(n) else {
                break;
            };
            room.1 -= 1;
            let qid = room.0;
            let ns = pick(&mut self.random, &namespaces);
            let count = 1 + self.random.below((PAGE / BLOCK).min(ns.blocks));
            let lba = self.random.below(ns.blocks - count + 1);
            let page = SILENT.start + PAGE * self.random.below(1024);
            let sqe = Sqe::of_blocks(io::WRITE, ns.nsid, lba, count as u32).with_prps(page, 0);
            sent.push(self.push(qid, Command::plain(sqe)));
        }
        for s in &sent {
            self.for_each(|dut| {
                dut.ring_sq(s.sqid);
                Ok(())
            })?;
        }
        self.for_each(|dut| dut.given_up(sent.len()))?;
        self.align_time()?;
        let done = self.compare_step(&sent, &AllowedDifferences::default())?;
        let others = done
            .values()
            .find(|cqe| cqe.status() != status::DATA_TRANSFER_ERROR);
        if let Some(cqe) = others {
            return Err(format!("both: data that never came, and {cqe:x?}"));
        }
        let reset = match chance(&mut self.random, 50) {
            true => Reset::Function,
            false => Reset::Power,
        };
        self.end_by_reset(reset)?;
        self.compare_memory(None)?;
        self.compare_all_media()?;
        self.restart(reset)
    }
}

impl Dut {
    /// Waits until `count` commands have completed; the device is never idle meanwhile.
    fn given_up(&mut self, count: usize) -> Result<(), String> {
        let patience = Time(DEADLINE.0 * count as u64);
        let limit = self.now + patience;
        while self.completed.len() < count {
            if self.now > limit {
                return Err(format!(
                    "{}: hung: reads that nobody answers are not given up within {patience}",
                    self.name
                ));
            }
            let until = self.now + POLL;
            self.advance(until)?;
            self.consume()?;
        }
        let until = self.now + POLL;
        self.advance(until)
    }
}
