// SPDX-License-Identifier: Apache-2.0

//! Random admin commands that depend on the queues of the host.

use spec::nvme::{admin, Sqe};

use super::Bench;
use crate::generate::{Buffer, Command, Surroundings};
use crate::random::{chance, pick};
use crate::PAGE;

impl Bench {
    /// An admin command.
    pub(super) fn admin_command(&mut self) -> Option<Command> {
        let queues = u64::from(self.limits.queues) + 2;
        let sqe = match self.random.below(100) {
            0..=5 => return self.create_cq(),
            6..=14 => return self.create_sq(),
            15..=18 => Sqe::delete_io_sq(self.random.below(queues) as u16),
            19..=22 => Sqe::delete_io_cq(self.random.below(queues) as u16),
            23..=26 => self.abort(),
            27 if self.host.shadow.wanted => return self.shadow(),
            _ => return self.generate().admin(),
        };
        Some(self.generate().with_admin_flags(sqe))
    }

    pub(super) fn create_cq(&mut self) -> Option<Command> {
        let cqs: Vec<u16> = self.host.cqs.keys().copied().collect();
        self.generate().create_cq(&cqs)
    }

    pub(super) fn create_sq(&mut self) -> Option<Command> {
        let sqs: Vec<u16> = self.host.sqs.keys().copied().collect();
        let cqs: Vec<u16> = self.host.cqs.keys().copied().collect();
        self.generate().create_sq(&sqs, &cqs)
    }

    /// An Abort, mostly of a command in flight or of a waiting request.
    fn abort(&mut self) -> Sqe {
        let random = &mut self.random;
        let in_flight = self.host.abortable();
        let waiting = &self.host.model.waiting;
        let (sqid, cid) = if !in_flight.is_empty() && chance(random, 70) {
            pick(random, &in_flight)
        } else {
            let sqid = match chance(random, 80) {
                true => 0,
                false => random.below(8) as u16,
            };
            let cid = match waiting.is_empty() || chance(random, 40) {
                true => random.next() as u16,
                false => pick(random, waiting),
            };
            (sqid, cid)
        };
        Sqe::new(admin::ABORT).with_cdw(10, u32::from(cid) << 16 | u32::from(sqid))
    }

    /// Doorbell Buffer Config, one at a time: of the pages that it offers, the host keeps one pair
    /// up to date. Shadow doorbells at addresses without memory are fatal when they are read. An
    /// EventIdx written there is never seen.
    pub(super) fn shadow(&mut self) -> Option<Command> {
        if !self.host.has_room(0) || self.host.shadow.offered.is_some() {
            return None;
        }
        let (hostile, random) = (!self.host.valid_only, &mut self.random);
        let mut buffer = Buffer::default();
        let mut page = || {
            if hostile && chance(random, 6) {
                return Some((1 << 46) + random.below(1 << 20) * PAGE);
            }
            let page = self.host.memory.alloc(random)?;
            buffer.pages.push(page);
            Some(page)
        };
        let mut pages = [page()?, page()?];
        if hostile && chance(random, 10) {
            let offset = 1 << random.below(12);
            pages[random.below(2) as usize] += offset;
        }
        let sqe = Sqe::new(admin::DOORBELL_BUFFER_CONFIG).with_prps(pages[0], pages[1]);
        Some(Command {
            buffer,
            ..Command::plain(sqe)
        })
    }
}
