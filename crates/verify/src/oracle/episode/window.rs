// SPDX-License-Identifier: Apache-2.0

//! The PM window: loads and stores beside commands, and the comparison of the whole media.

use sim::{Bar, Mmio};

use super::{Bench, LOADS};
use crate::campaign::StepResult;
use crate::oracle::rig::Seat;
use crate::random::{bytes, chance};
use crate::BLOCK;
use crate::PAGE;

/// First block, number of blocks, and their writer.
type Stored = (u64, u64, u64);

impl Bench {
    /// Loads a part of the PM window.
    pub(super) fn load_media(&mut self) -> StepResult {
        self.count("PM window loads");
        if let Seat::Beside(..) = self.seat {
            let idle = self.host.memory.idle_window(&mut self.random);
            if let Some((page, model)) = idle.map(|(page, model)| (page, model.to_vec())) {
                self.check_window(page, &model)?;
            }
        }
        let lba = self.random.below(self.host.media.len());
        self.check_media(lba, 1)
    }

    /// Stores to the PM window, beside commands that may use the same blocks. The content is
    /// determined again after a load.
    pub(super) fn store_media(&mut self) -> StepResult {
        let mut stored = Vec::new();
        for _ in 0..1 + self.random.below(5) {
            stored.extend(self.store());
        }
        if !stored.is_empty() && chance(&mut self.random, 50) {
            let ns = self.random.below(1000);
            self.wait_ns(ns)?;
        }
        self.learn_stored(stored)
    }

    /// From here on the content of stored blocks is determined.
    fn learn_stored(&mut self, stored: Vec<Stored>) -> StepResult {
        let Some(&(lba, ..)) = stored.first() else {
            return Ok(());
        };
        // A load completes after all earlier stores.
        self.check_media(lba, 1)?;
        for &(lba, count, user) in &stored {
            self.host.media.end_store(user, lba, count);
        }
        for (lba, count, ..) in stored {
            self.check_media(lba, count)?;
        }
        Ok(())
    }

    /// Stores to unused blocks, within a page.
    pub(super) fn store_list(&mut self, byte: u64, data: Vec<u8>) -> StepResult {
        let stored = self.store_at(byte, data);
        self.learn_stored(vec![stored])
    }

    /// A single store to unused blocks.
    fn store(&mut self) -> Option<Stored> {
        let media = &self.host.media;
        let mut byte = 0;
        let free = (0..12).any(|_| {
            byte = self.random.below(media.len() * BLOCK);
            !media.in_use(byte / BLOCK, 1)
        });
        if !free {
            return None;
        }
        let most = match chance(&mut self.random, 70) {
            true => 64,
            false => PAGE,
        };
        let (lba, mut len) = (byte / BLOCK, 1 + self.random.below(most));
        // Within a page, and within the unused blocks.
        len = len.min(PAGE - byte % PAGE);
        let end = (byte + len).div_ceil(BLOCK);
        let significant_bits = (lba..end).find(|&b| media.in_use(b, 1));
        len = len.min(significant_bits.unwrap_or(end) * BLOCK - byte);
        let data = bytes(&mut self.random, len);
        Some(self.store_at(byte, data))
    }

    fn store_at(&mut self, byte: u64, data: Vec<u8>) -> Stored {
        let lba = byte / BLOCK;
        let count = (byte + data.len() as u64).div_ceil(BLOCK) - lba;
        let user = self.host.new_user();
        self.host.media.begin_store(user, byte, &data);
        self.count("PM window stores");
        let (bar, offset) = (Bar::Pm, byte);
        self.host.post(self.now, Mmio::Write { bar, offset, data });
        (lba, count, user)
    }

    /// Checks a page of another device's media that belongs to this host.
    fn check_window(&mut self, page: u64, model: &[u8]) -> StepResult {
        let Seat::Beside(rig, n) = &self.seat else {
            return Ok(());
        };
        let data = rig.borrow_mut().load_peer_page(*n, &mut self.host, page)?;
        self.now = self.seat.now();
        self.host.counts.compared_blocks += PAGE / BLOCK;
        let bad = data.iter().zip(model).position(|(a, b)| a != b);
        bad.map_or(Ok(()), |at| {
            let near = at / 16 * 16..at / 16 * 16 + 16;
            Err(format!(
                "the window at {page:#x} holds wrong data at {at:#x}: {:02x?}, not {:02x?}",
                &data[near.clone()],
                &model[near]
            ))
        })
    }

    fn check_media(&mut self, lba: u64, count: u64) -> StepResult {
        let since = self.host.media.now();
        self.host.media.begin_read(lba, count);
        let tag = self.load(Bar::Pm, lba * BLOCK, (count * BLOCK) as u32);
        let data = self.answer(tag)?;
        let fine = self.host.media.permits_load(lba * BLOCK, &data, since);
        self.host.media.end_read(lba, count);
        if !fine {
            return Err(self.wrong_media(lba, &data, since));
        }
        self.host.media.learn(lba, &data, since);
        Ok(())
    }

    fn wrong_media(&self, lba: u64, data: &[u8], since: u64) -> String {
        let media = &self.host.media;
        let mut blocks = (lba..).zip(data.chunks(BLOCK as usize));
        let bad = blocks.find(|&(b, piece)| !media.permits_load(b * BLOCK, piece, since));
        let (lba, block) = bad.unwrap_or((lba, data));
        let lines = block.chunks(64).zip((lba * BLOCK..).step_by(64));
        let known: Vec<&str> = lines
            .map(|(line, at)| match media.permits(at, line) {
                true => "known",
                false => "wrong",
            })
            .collect();
        format!(
            "wrong data, or a mixture, in block {lba} of the media: its lines alone are {}; \
             {:02x?} ...",
            known.join(" "),
            &block[..16.min(block.len())]
        )
    }

    /// Compares the whole media with the reference model.
    pub(super) fn compare_media(&mut self) -> StepResult {
        let per_page = PAGE / BLOCK;
        let pages: Vec<u64> = (0..self.host.media.len() / per_page).collect();
        for group in pages.chunks(LOADS) {
            let tags: Vec<(u64, u32)> = group
                .iter()
                .map(|&p| (p, self.load(Bar::Pm, p * PAGE, PAGE as u32)))
                .collect();
            let since = self.host.media.now();
            for (page, tag) in tags {
                let data = self.answer(tag)?;
                if !self.host.media.permits(page * PAGE, &data) {
                    return Err(self.wrong_media(page * per_page, &data, since));
                }
                self.host.media.learn(page * per_page, &data, since);
                self.host.counts.compared_blocks += per_page;
            }
        }
        self.compare_shared()
    }

    /// Compares the window and the host memory, which are shared with other devices, if there are
    /// any.
    fn compare_shared(&mut self) -> StepResult {
        let Seat::Beside(rig, n) = &self.seat else {
            return Ok(());
        };
        let (rig, n) = (rig.clone(), *n);
        rig.borrow_mut().compare_memory(n, &mut self.host)?;
        let (base, model) = self.host.memory.window().unwrap_or_default();
        let model = model.to_vec();
        if self.host.names_window() {
            return Ok(());
        }
        let pages = (base..)
            .step_by(PAGE as usize)
            .zip(model.chunks(PAGE as usize));
        for (page, model) in pages {
            self.check_window(page, model)?;
        }
        Ok(())
    }
}
