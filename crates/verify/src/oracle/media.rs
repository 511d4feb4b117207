// SPDX-License-Identifier: Apache-2.0

//! The possible contents of each block of the media.
//!
//! A block is atomic: it holds one of the contents that it had or that a command has written, never
//! a mixture (NVM Express 1.4, 6.4: AWUN, AWUPF). While a command writes a block, the old and the
//! new content are possible. Both stay possible if the command fails or is lost in a reset. Of
//! overlapping commands, each may have been the last. A block that was read without a concurrent
//! writer holds the bytes that were read. Each user of a block has a number other than 0.
//!
//! Writes of engines are not atomic per block. They arrive in lines of 64 bytes (a copy) or bytes
//! (a bitmap), in any order. Each line or value follows from any content that its source has had
//! during the command. So the possible contents of a target are derived from its source until the
//! command ends.
//!
//! Stores to the PM window change bytes, not blocks. Where a store and a command overlap in time on
//! a block, its bytes are checked one by one until the block is read.
//!
//! A Read or Compare beside an engine takes each dword separately: where its pages or descriptors
//! meet within a line, it reads that line twice. After a successful command of an engine without
//! other writers, the target holds exactly the source's content, and bytes past a bitmap are
//! unchanged. Loads of the PM window read 64 bytes at a time beside commands.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use crate::commands::Bounds;
use crate::oracle::block::{Block, DerivedContent, WriteOutcome, WHOLE};
use crate::oracle::block_view::{BlockView, Candidate, Content, Patch, DWORD, LINE};
use crate::oracle::engine_output::{EngineOutput, Transform};
use crate::BLOCK;

/// A command of an engine in flight.
struct ActiveEngine {
    user: u64,
    /// The time of its start.
    since: u64,
    /// A store to the PM window was in flight to its source.
    stored: bool,
    product: EngineOutput,
}

impl ActiveEngine {
    /// Size of the pieces in which its output arrives.
    fn grain(&self) -> usize {
        match self.product.how {
            Transform::Copy => LINE,
            Transform::Bitmap(_) => 1,
        }
    }
}

/// The first block and the number of blocks of a byte range.
fn blocks_of(byte: u64, bytes: u64) -> (u64, u64) {
    (byte / BLOCK, bytes.div_ceil(BLOCK))
}

/// All blocks.
pub struct Media {
    blocks: Vec<Block>,
    active_engines: Vec<ActiveEngine>,
    zeros: Content,
    /// Blocks may be torn.
    torn: bool,
    /// Number of beginnings and ends of writes so far.
    now: u64,
}

impl Media {
    /// A media of `blocks` blocks of zeros.
    pub fn new(blocks: u64) -> Media {
        let zeros: Content = vec![0; WHOLE].into();
        let block = Block::new(zeros.clone());
        Media {
            blocks: vec![block; blocks as usize],
            active_engines: Vec::new(),
            zeros,
            torn: false,
            now: 0,
        }
    }

    /// Permits blocks that hold parts of several contents from now on.
    pub fn tolerate_torn_blocks(&mut self) {
        self.torn = true;
    }

    /// Number of blocks.
    pub fn len(&self) -> u64 {
        self.blocks.len() as u64
    }

    fn range(&mut self, lba: u64, count: u64) -> &mut [Block] {
        let all = self.blocks.len() as u64;
        let end = lba.saturating_add(count).min(all);
        &mut self.blocks[lba.min(end) as usize..end as usize]
    }

    /// The present time, for a later call of [`Media::learn`].
    pub fn now(&self) -> u64 {
        self.now
    }

    /// A command that reads begins.
    pub fn begin_read(&mut self, lba: u64, count: u64) {
        self.range(lba, count).iter_mut().for_each(Block::add_user);
    }

    /// The command has ended.
    pub fn end_read(&mut self, lba: u64, count: u64) {
        self.range(lba, count)
            .iter_mut()
            .for_each(Block::remove_user);
    }

    /// Whole blocks were read, from the time `since` on, and were permitted. Blocks without a
    /// writer since then hold these bytes.
    pub fn learn(&mut self, lba: u64, data: &[u8], since: u64) {
        let count = data.len() as u64 / BLOCK;
        let blocks = self.range(lba, count).iter_mut();
        for (block, piece) in blocks.zip(data.chunks(BLOCK as usize)) {
            let alone = block.users == 0 && block.changed <= since;
            if alone && !block.is_known() {
                block.learn(piece);
            }
        }
    }

    /// A command that writes begins. A block for which not all bytes are available stays unchanged.
    pub fn begin_write(&mut self, writer: u64, lba: u64, data: &[Option<u8>]) {
        self.now += 1;
        let (now, torn) = (self.now, self.torn);
        let count = (data.len() as u64).div_ceil(BLOCK);
        let blocks = self.range(lba, count).iter_mut();
        for (block, piece) in blocks.zip(data.chunks(BLOCK as usize)) {
            block.add_writer(now);
            let mut piece = piece.to_vec();
            if torn {
                let old = block.values[0].content.clone();
                let old = old.iter().map(|&b| Some(b));
                piece.extend(old.clone().skip(piece.len()));
                let pairs = piece.iter_mut().zip(old);
                pairs.for_each(|(new, old)| *new = new.or(old));
            }
            let content: Option<Vec<u8>> = piece.into_iter().collect();
            let content = content.filter(|c| c.len() as u64 == BLOCK);
            content
                .into_iter()
                .for_each(|c| block.add_candidate(writer, c.into()));
        }
    }

    /// A command that writes zeros begins.
    pub fn begin_zero(&mut self, writer: u64, lba: u64, count: u64) {
        self.now += 1;
        let (zeros, now) = (self.zeros.clone(), self.now);
        for block in self.range(lba, count) {
            block.add_writer(now);
            block.add_candidate(writer, zeros.clone());
        }
    }

    /// A command begins that writes unknown content to these bytes.
    pub fn begin_unknown_write(&mut self, writer: u64, byte: u64, bytes: u64) {
        self.now += 1;
        let now = self.now;
        let (first, count) = blocks_of(byte, bytes);
        let end = byte + bytes;
        for (block, lba) in self.range(first, count).iter_mut().zip(first..) {
            block.add_writer(now);
            // The bytes of another writer may end up beside any of these.
            block.split(1);
            let len = (end - lba * BLOCK).min(BLOCK) as usize;
            let patch = Patch {
                content: vec![0; len].into(),
                loose: Some(vec![0xFF; len].into()),
            };
            let spoilt: Vec<Candidate> = block
                .values
                .iter()
                .map(|v| v.patched(writer, 0, &patch))
                .collect();
            block.values.extend(spoilt);
        }
    }

    /// The command has ended.
    pub fn end_unknown_write(&mut self, writer: u64, byte: u64, bytes: u64, end: WriteOutcome) {
        let (first, count) = blocks_of(byte, bytes);
        self.end_write(writer, first, count, end);
    }

    /// A command has ended its writes of these blocks.
    pub fn end_write(&mut self, writer: u64, lba: u64, count: u64, end: WriteOutcome) {
        self.now += 1;
        let now = self.now;
        for block in self.range(lba, count) {
            block.end_write(writer, end, now);
        }
    }

    /// A store to the PM window begins, of blocks without users.
    pub fn begin_store(&mut self, writer: u64, byte: u64, data: &[u8]) {
        self.now += 1;
        let now = self.now;
        let first = byte / BLOCK;
        let count = (byte + data.len() as u64).div_ceil(BLOCK) - first;
        let mut left = data;
        let mut at = (byte % BLOCK) as usize;
        for block in self.range(first, count) {
            block.add_user();
            (block.stored, block.changed) = (true, now);
            let (piece, rest) = left.split_at(left.len().min(BLOCK as usize - at));
            let patch = Patch::of(piece);
            let patched: Vec<Candidate> = block
                .values
                .iter()
                .map(|v| v.patched(writer, at, &patch))
                .collect();
            block.values.extend(patched);
            (left, at) = (rest, 0);
        }
    }

    /// The command has ended.
    pub fn end_store(&mut self, writer: u64, lba: u64, count: u64) {
        self.now += 1;
        let now = self.now;
        for block in self.range(lba, count) {
            block.stored = false;
            block.changed = now;
            if !block.met && block.users == 1 {
                block.values.retain(|v| v.writer == writer);
            } else if !block.met {
                // A concurrent reader may have read before the store.
                block.written = true;
                block.new_grain = block.new_grain.min(block.old_grain);
            }
            block.values.iter_mut().for_each(|v| {
                if v.writer == writer {
                    (v.writer, v.old) = (0, false);
                }
            });
            block.remove_user();
        }
    }

    /// True if a command uses one of the blocks.
    pub fn in_use(&self, lba: u64, count: u64) -> bool {
        let end = lba.saturating_add(count).min(self.len());
        (lba.min(end)..end).any(|b| self.blocks[b as usize].users > 0)
    }

    /// A command of an engine begins.
    pub fn begin_derive(&mut self, user: u64, product: EngineOutput) {
        self.now += 1;
        let now = self.now;
        self.begin_read(product.from, product.count);
        let source = self.range(product.from, product.count);
        let maker = ActiveEngine {
            user,
            since: now,
            stored: source.iter().any(|b| b.stored),
            product,
        };
        let targets = product.targets();
        for block in self.range(targets.start, targets.end - targets.start) {
            block.add_writer(now);
            block.grain = block.grain.min(maker.grain());
            block.active_engines += 1;
            block.made = true;
        }
        self.active_engines.push(maker);
    }

    /// The command has ended.
    pub fn end_derive(&mut self, user: u64, end: WriteOutcome) {
        let Some(at) = self.active_engines.iter().position(|m| m.user == user) else {
            return;
        };
        let maker = &self.active_engines[at];
        let (product, since, grain) = (maker.product, maker.since, maker.grain());
        let targets = product.targets();
        let made: Vec<Option<DerivedContent>> = targets
            .clone()
            .map(|lba| {
                (end != WriteOutcome::Untouched)
                    .then(|| self.derived_content(maker, lba, &mut vec![lba]))
            })
            .collect();
        self.active_engines.swap_remove(at);
        self.now += 1;
        let now = self.now;
        let blocks = self.range(targets.start, targets.end - targets.start);
        for (block, made) in blocks.iter_mut().zip(made) {
            if let Some(made) = made {
                block.apply(&made, end, grain, since);
            }
            block.active_engines -= 1;
            block.remove_writer(now);
        }
        self.end_read(product.from, product.count);
    }

    /// The possible contents of a block now.
    fn view(&self, lba: u64) -> Option<BlockView<'_>> {
        let mut view = self.view_along(lba, &mut Vec::new())?;
        if self.torn {
            view.grain = 1;
        }
        Some(view)
    }

    /// The possible contents for a command with data. Segments of such commands are ordered among
    /// each other, but not with engines.
    fn find(&self, lba: u64) -> Option<BlockView<'_>> {
        let mut view = self.view(lba)?;
        if self.blocks[lba as usize].made {
            view.grain = view.grain.min(DWORD);
        }
        Some(view)
    }

    /// As `view`; `path` holds the blocks that are being derived from this one.
    fn view_along(&self, lba: u64, path: &mut Vec<u64>) -> Option<BlockView<'_>> {
        let block = self.blocks.get(lba as usize)?;
        let mut view = BlockView {
            values: Cow::Borrowed(&block.values),
            grain: block.grain,
            endless: path.contains(&lba),
        };
        if block.active_engines == 0 || view.endless {
            return Some(view);
        }
        path.push(lba);
        for maker in &self.active_engines {
            if maker.product.targets().contains(&lba) {
                let made = self.derived_content(maker, lba, path);
                let values = made.patches.iter();
                let values = values.map(|p| block.values[0].patched(maker.user, 0, p));
                view.values.to_mut().extend(values);
                view.grain = view.grain.min(made.grain);
                view.endless |= made.endless;
            }
        }
        path.pop();
        Some(view)
    }

    /// What a command of an engine may have written to a block.
    fn derived_content(
        &self,
        maker: &ActiveEngine,
        lba: u64,
        path: &mut Vec<u64>,
    ) -> DerivedContent {
        let product = &maker.product;
        let view = |source: u64, path: &mut Vec<u64>| {
            let block = &self.blocks[source as usize];
            let mut view = self.view_along(source, path).expect("it is on the media");
            let changed = block.writers > 0 || block.changed > maker.since;
            if block.stored || changed && maker.stored {
                view.grain = 1;
            } else if changed {
                view.grain = view.grain.min(LINE);
            }
            view
        };
        let bounds = match product.how {
            Transform::Bitmap(bounds) => bounds,
            Transform::Copy => {
                let view = view(product.sources(lba).start, path);
                let values = view.values.iter();
                let patches = values.map(|v| Patch {
                    content: v.content.clone(),
                    loose: v.loose.clone(),
                });
                return DerivedContent {
                    patches: patches.collect(),
                    grain: view.grain,
                    endless: view.endless,
                };
            }
        };
        let (mut ones, mut loose) = (Vec::new(), Vec::new());
        for source in product.sources(lba) {
            let view = view(source, path);
            let places: Vec<usize> = (0..WHOLE).step_by(bounds.bytes()).collect();
            for eight in places.chunks(8) {
                let (mut one, mut either) = (0, 0);
                for (bit, &at) in eight.iter().enumerate() {
                    let (within, without) = view.bounded(at, &bounds);
                    one |= u8::from(within) << bit;
                    either |= u8::from(within && without) << bit;
                }
                ones.push(one);
                loose.push(either);
            }
        }
        let any = loose.iter().any(|&b| b != 0);
        let patch = Patch {
            content: ones.into(),
            loose: any.then(|| loose.into()),
        };
        DerivedContent {
            patches: vec![patch],
            grain: WHOLE,
            endless: false,
        }
    }

    /// True if the media may hold these bytes at this address.
    pub fn permits(&self, byte: u64, data: &[u8]) -> bool {
        self.check_bytes(byte, data, |lba, _, offset, piece| {
            self.permits_some(lba, (offset..).zip(piece.iter().copied()))
        })
    }

    /// As `permits`, for a load from the PM window that began at `since` and reads line by line.
    pub fn permits_load(&self, byte: u64, data: &[u8], since: u64) -> bool {
        self.check_bytes(byte, data, |lba, block, offset, piece| {
            let Some(view) = self.view(lba) else {
                return false;
            };
            if block.writers == 0 && !block.stored && block.changed <= since {
                return view.permits((offset..).zip(piece.iter().copied()));
            }
            // Any part of a store may be visible.
            let unit = if block.stored { 1 } else { LINE };
            let mut units = piece.chunks(unit).enumerate();
            units.all(|(n, part)| {
                let places = offset + n * unit..;
                view.permits(places.zip(part.iter().copied()))
            })
        })
    }

    /// As `permits`, for bytes of one block, each with its offset and in ascending order.
    pub fn permits_some(&self, lba: u64, bytes: impl Iterator<Item = (usize, u8)>) -> bool {
        self.find(lba).is_some_and(|view| view.permits(bytes))
    }

    fn check_bytes(
        &self,
        byte: u64,
        data: &[u8],
        fits: impl Fn(u64, &Block, usize, &[u8]) -> bool,
    ) -> bool {
        let (mut at, mut left) = (byte, data);
        while !left.is_empty() {
            let lba = at / BLOCK;
            let Some(block) = self.blocks.get(lba as usize) else {
                return false;
            };
            let offset = (at % BLOCK) as usize;
            let piece = left.len().min(BLOCK as usize - offset);
            if !fits(lba, block, offset, &left[..piece]) {
                return false;
            }
            at += piece as u64;
            left = &left[piece..];
        }
        true
    }

    /// Whether a comparison with this block may find it equal, and whether it may find a
    /// difference. Writes of the user `but` come later.
    pub fn compares(&self, lba: u64, data: &[Option<u8>], but: Option<u64>) -> (bool, bool) {
        let Some(mut view) = self.find(lba) else {
            return (false, false);
        };
        if view.values.iter().any(|v| but == Some(v.writer)) {
            view.values.to_mut().retain(|v| but != Some(v.writer));
        }
        view.compares(data)
    }

    /// How many values of these blocks may lie between the bounds, for a reader that reads value by
    /// value during writes.
    pub fn counts(&self, lba: u64, count: u64, bounds: &Bounds) -> RangeInclusive<u64> {
        let end = lba.saturating_add(count).min(self.len());
        let (mut least, mut most) = (0, 0);
        for lba in lba.min(end)..end {
            let Some(mut view) = self.view(lba) else {
                continue;
            };
            // Stores may have changed parts of values.
            if self.blocks[lba as usize].stored {
                view.grain = 1;
            }
            for at in (0..WHOLE).step_by(bounds.bytes()) {
                let (within, without) = view.bounded(at, bounds);
                (least, most) = (least + u64::from(!without), most + u64::from(within));
            }
        }
        least..=most
    }

    /// The content of a block, if only one is possible.
    pub fn known(&self, lba: u64) -> Option<&[u8]> {
        let block = self.blocks.get(lba as usize)?;
        block.is_known().then(|| &block.values[0].content[..])
    }

    /// One of the possible contents of a block.
    pub fn any(&self, lba: u64) -> &[u8] {
        self.blocks
            .get(lba as usize)
            .map_or(&self.zeros[..], |b| &b.values[0].content[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(value: u8) -> Vec<Option<u8>> {
        vec![Some(value); 512]
    }

    #[test]
    fn media_write_alone_replaces_the_content() {
        let mut media = Media::new(4);
        media.begin_write(7, 1, &data(5));
        assert!(media.permits(512, &[0; 8]) && media.permits(512, &[5; 8]));
        assert!(!media.permits(512, &[0, 0, 0, 0, 5, 5, 5, 5]));
        media.end_write(7, 1, 1, WriteOutcome::Whole);
        assert!(!media.permits(512, &[0; 8]) && media.known(1) == Some(&[5; 512][..]));
        assert!(media.permits(512 * 4 - 8, &[0; 8]) && !media.permits(512 * 4 - 8, &[0; 9]));
    }

    #[test]
    fn media_failed_write_leaves_both_contents_until_the_next_write() {
        let mut media = Media::new(1);
        media.begin_write(7, 0, &data(5));
        media.end_write(7, 0, 1, WriteOutcome::Part);
        assert!(media.known(0).is_none() && media.permits(0, &[5; 4]) && media.permits(0, &[0; 4]));
        media.begin_zero(7, 0, 1);
        media.end_write(7, 0, 1, WriteOutcome::Whole);
        assert_eq!(media.known(0), Some(&[0; 512][..]));
    }

    #[test]
    fn media_overlapping_writes_may_each_be_the_last() {
        let mut media = Media::new(1);
        media.begin_write(7, 0, &data(1));
        media.begin_write(8, 0, &data(2));
        media.end_write(7, 0, 1, WriteOutcome::Whole);
        assert!(media.permits(0, &[0; 4]), "a reader may still be late");
        media.end_write(8, 0, 1, WriteOutcome::Whole);
        assert!(
            media.permits(0, &[1; 4]) && media.permits(0, &[2; 4]) && !media.permits(0, &[0; 4])
        );
    }

    #[test]
    fn media_read_may_be_late() {
        let mut media = Media::new(1);
        media.begin_read(0, 1);
        media.begin_write(7, 0, &data(9));
        media.end_write(7, 0, 1, WriteOutcome::Whole);
        assert!(media.permits(0, &[0; 512]) && media.permits(0, &[9; 512]));
        media.end_read(0, 1);
        assert!(!media.permits(0, &[0; 512]) && media.permits(0, &[9; 512]));
        assert!(!media.in_use(0, 1));
    }

    #[test]
    fn media_write_that_was_not_done_changes_nothing() {
        let mut media = Media::new(1);
        media.begin_write(7, 0, &data(3));
        media.begin_write(8, 0, &data(4));
        media.end_write(8, 0, 1, WriteOutcome::Untouched);
        assert!(media.permits(0, &[3; 4]) && !media.permits(0, &[4; 4]));
        media.end_write(7, 0, 1, WriteOutcome::Whole);
        assert_eq!(media.known(0), Some(&[3; 512][..]));
    }

    #[test]
    fn media_erasure_follows_writes_that_have_ended() {
        let mut media = Media::new(2);
        media.begin_zero(6, 0, 2);
        for (writer, lba) in [(7, 0), (8, 1)] {
            media.begin_write(writer, lba, &data(3));
        }
        media.end_write(7, 0, 1, WriteOutcome::Whole);
        media.end_write(6, 0, 2, WriteOutcome::Erased);
        assert_eq!(media.known(0), Some(&[0; 512][..]));
        assert!(media.permits(512, &[3; 4]) && media.permits(512, &[0; 4]));
    }

    #[test]
    fn media_block_without_all_of_its_bytes_is_not_written() {
        let mut media = Media::new(2);
        let mut half = data(3);
        half.resize(700, Some(3));
        media.begin_write(7, 0, &half);
        assert!(media.permits(0, &[3; 512]) && !media.permits(512, &[3; 4]));
        half[5] = None;
        media.end_write(7, 0, 2, WriteOutcome::Part);
        media.begin_write(8, 0, &half);
        media.end_write(8, 0, 2, WriteOutcome::Part);
        assert!(media.permits(0, &[3; 512]) && media.permits(0, &[0; 512]));
    }

    #[test]
    fn media_content_that_was_read_alone_stays() {
        let mut media = Media::new(1);
        media.begin_write(7, 0, &data(5));
        let early = media.now();
        media.end_write(7, 0, 1, WriteOutcome::Part);
        media.learn(0, &[5; 512], early);
        assert!(media.known(0).is_none(), "the reader began too early");
        media.learn(0, &[5; 512], media.now());
        assert_eq!(media.known(0), Some(&[5; 512][..]));
    }

    #[test]
    fn media_store_changes_bytes_of_each_content() {
        let mut media = Media::new(1);
        media.begin_write(7, 0, &data(5));
        media.end_write(7, 0, 1, WriteOutcome::Part);
        media.begin_store(8, 3, &[9; 2]);
        assert!(media.permits(0, &[0, 0, 0, 9, 9, 0]) && media.permits(0, &[0; 6]));
        media.end_store(8, 0, 1);
        assert!(media.permits(0, &[5, 5, 5, 9, 9, 5]) && media.permits(0, &[0, 0, 0, 9, 9, 0]));
        assert!(!media.permits(0, &[5; 6]) && !media.permits(0, &[5, 0, 5, 9, 9, 5]));
    }

    #[test]
    fn media_store_beside_a_command_mixes_bytes() {
        let mut media = Media::new(1);
        media.begin_store(8, 0, &[9; 2]);
        media.begin_write(7, 0, &data(5));
        media.end_write(7, 0, 1, WriteOutcome::Whole);
        media.end_store(8, 0, 1);
        assert!(
            media.permits(0, &[9, 5, 5])
                && media.permits(0, &[5, 9, 5])
                && media.known(0).is_none()
        );
        assert!(!media.permits(0, &[0]), "both have been there");
        let mut found = [5; 512];
        found[0] = 9;
        media.learn(0, &found, media.now());
        assert_eq!(media.known(0), Some(&found[..]));
    }

    #[test]
    fn media_load_takes_lines_during_a_write() {
        let mut media = Media::new(1);
        let since = media.now();
        media.begin_write(7, 0, &data(5));
        let mut found = [5; 512];
        found[..64].fill(0);
        assert!(media.permits_load(0, &found, since) && !media.permits(0, &found));
        found[3] = 5;
        assert!(!media.permits_load(0, &found, since));
    }

    #[test]
    fn media_comparison_considers_all_contents() {
        let mut media = Media::new(1);
        assert_eq!(media.compares(0, &data(0), None), (true, false));
        assert_eq!(media.compares(0, &data(1), None), (false, true));
        media.begin_write(7, 0, &data(1));
        assert_eq!(media.compares(0, &data(1), None), (true, true));
        assert_eq!(media.compares(0, &data(1), Some(8)), (true, true));
        assert_eq!(media.compares(0, &data(1), Some(7)), (false, true));
    }

    fn copy(from: u64, count: u64, to: u64) -> EngineOutput {
        EngineOutput {
            from,
            count,
            to,
            how: Transform::Copy,
        }
    }

    /// A bitmap of the 32-bit values that are not 0.
    fn bitmap(from: u64, count: u64, to: u64) -> EngineOutput {
        let sqe = spec::nvme::Sqe::new(0)
            .with_cdw(2, 1)
            .with_cdw(14, u32::MAX);
        EngineOutput {
            how: Transform::Bitmap(Bounds::of(&sqe)),
            ..copy(from, count, to)
        }
    }

    fn write(media: &mut Media, lba: u64, value: u8, end: WriteOutcome) {
        media.begin_write(7, lba, &data(value));
        media.end_write(7, lba, 1, end);
    }

    /// A block with another content in its first line.
    fn torn(first: u8, rest: u8) -> [u8; 512] {
        let mut block = [rest; 512];
        block[..64].fill(first);
        block
    }

    #[test]
    fn media_copy_arrives_line_by_line_and_ends_whole() {
        let mut media = Media::new(4);
        write(&mut media, 0, 5, WriteOutcome::Whole);
        media.begin_derive(8, copy(0, 2, 2));
        for found in [torn(5, 0), torn(0, 5), [0; 512], [5; 512]] {
            assert!(media.permits(1024, &found));
        }
        // Segments of a Read may have read a line at different times.
        let mut half = [0; 512];
        half[..32].fill(5);
        assert!(media.permits(1024, &half) && !media.permits_load(1024, &half, 0));
        assert!(!media.permits(1024, &[5, 5, 0]) && !media.permits(1536, &[5; 8]));
        media.end_derive(8, WriteOutcome::Whole);
        assert_eq!(media.known(2), Some(&[5; 512][..]));
        assert!(!media.in_use(0, 4));
    }

    #[test]
    fn media_copy_that_ends_early_leaves_lines_of_both_until_a_write() {
        let mut media = Media::new(2);
        write(&mut media, 0, 5, WriteOutcome::Whole);
        media.begin_derive(8, copy(0, 1, 1));
        media.end_derive(8, WriteOutcome::Part);
        assert!(media.permits(512, &torn(0, 5)) && media.permits(512, &torn(5, 0)));
        assert!(!media.permits(512, &torn(5, 1)) && media.known(0).is_some());
        assert!(!media.permits(512, &[5, 5, 5, 5, 0, 0, 0, 0]));
        assert_eq!(media.compares(1, &[Some(5); 512], None), (true, true));
        assert_eq!(media.compares(1, &[Some(1); 512], None), (false, true));
        write(&mut media, 1, 6, WriteOutcome::Whole);
        assert_eq!(media.known(1), Some(&[6; 512][..]));
    }

    #[test]
    fn media_copy_that_was_not_begun_changes_nothing() {
        let mut media = Media::new(2);
        write(&mut media, 0, 5, WriteOutcome::Whole);
        write(&mut media, 1, 6, WriteOutcome::Part);
        media.begin_derive(8, copy(0, 1, 1));
        media.end_derive(8, WriteOutcome::Untouched);
        assert!(media.permits(512, &[6; 512]) && media.permits(512, &[0; 512]));
        assert!(!media.permits(512, &torn(6, 0)) && !media.permits(512, &[5; 1]));
    }

    #[test]
    fn media_copy_takes_any_content_that_its_source_held_meanwhile() {
        let mut media = Media::new(3);
        media.begin_derive(8, copy(0, 1, 1));
        media.begin_derive(9, copy(1, 1, 2));
        write(&mut media, 0, 5, WriteOutcome::Whole);
        assert!(media.permits(512, &torn(0, 5)) && media.permits(1024, &torn(0, 5)));
        media.end_derive(8, WriteOutcome::Whole);
        media.end_derive(9, WriteOutcome::Whole);
        assert!(media.known(0).is_some() && media.known(1).is_none());
        assert!(media.permits(1024, &torn(5, 0)) && !media.permits(1024, &[1; 1]));
    }

    #[test]
    fn media_copy_of_one_of_two_contents_is_one_of_them() {
        let mut media = Media::new(2);
        write(&mut media, 0, 5, WriteOutcome::Part);
        media.begin_derive(8, copy(0, 1, 1));
        media.end_derive(8, WriteOutcome::Whole);
        assert!(media.permits(512, &[0; 512]) && media.permits(512, &[5; 512]));
        assert!(!media.permits(512, &torn(0, 5)));
    }

    #[test]
    fn media_write_beside_a_copy_leaves_lines_of_both_and_nothing_old() {
        let mut media = Media::new(2);
        write(&mut media, 0, 5, WriteOutcome::Whole);
        media.begin_derive(8, copy(0, 1, 1));
        write(&mut media, 1, 6, WriteOutcome::Whole);
        media.end_derive(8, WriteOutcome::Whole);
        assert!(media.permits(512, &torn(5, 6)) && media.permits(512, &torn(6, 5)));
        assert!(!media.permits(512, &[0; 1]));
    }

    #[test]
    fn media_read_beside_a_copy_may_be_late() {
        let mut media = Media::new(2);
        write(&mut media, 0, 5, WriteOutcome::Whole);
        media.begin_read(1, 1);
        media.begin_derive(8, copy(0, 1, 1));
        media.end_derive(8, WriteOutcome::Whole);
        assert!(media.permits(512, &torn(5, 0)));
        media.end_read(1, 1);
        assert_eq!(media.known(1), Some(&[5; 512][..]));
    }

    #[test]
    fn media_bitmap_replaces_its_bytes_only() {
        let mut media = Media::new(16);
        write(&mut media, 1, 5, WriteOutcome::Whole);
        write(&mut media, 8, 7, WriteOutcome::Whole);
        media.begin_derive(8, bitmap(0, 3, 8));
        let mut found = [7; 512];
        found[..48].fill(0);
        found[16..32].fill(0xFF);
        assert!(media.permits(8 * 512, &found) && media.permits(8 * 512, &[7; 512]));
        assert!(media.permits(8 * 512, &[0, 7]) && !media.permits(8 * 512, &[1]));
        media.end_derive(8, WriteOutcome::Whole);
        assert_eq!(media.known(8), Some(&found[..]));
    }

    #[test]
    fn media_bitmap_that_ends_early_leaves_bytes_of_both() {
        let mut media = Media::new(16);
        write(&mut media, 8, 7, WriteOutcome::Whole);
        media.begin_derive(8, bitmap(0, 1, 8));
        media.end_derive(8, WriteOutcome::Part);
        assert!(media.permits(8 * 512, &[0, 7, 7, 0]) && !media.permits(8 * 512, &[1]));
        assert!(media.permits(8 * 512 + 16, &[7]) && !media.permits(8 * 512 + 16, &[0]));
    }

    #[test]
    fn media_bitmap_bits_of_changing_values_are_undetermined() {
        let mut media = Media::new(16);
        media.begin_derive(8, bitmap(0, 2, 8));
        let mut piece = data(0);
        piece[4] = Some(1);
        media.begin_write(7, 1, &piece);
        media.end_write(7, 1, 1, WriteOutcome::Whole);
        assert_eq!(
            media.counts(
                0,
                2,
                &Bounds::of(&spec::nvme::Sqe::new(0).with_cdw(2, 1).with_cdw(14, 9))
            ),
            0..=1
        );
        media.end_derive(8, WriteOutcome::Whole);
        // The second value of the second block.
        assert!(media.permits(8 * 512 + 16, &[2]) && media.permits(8 * 512 + 16, &[0]));
        assert!(!media.permits(8 * 512 + 16, &[1]) && !media.permits(8 * 512, &[2]));
        assert!(media.known(8).is_none());
        media.learn(8, &[0; 512], media.now());
        assert!(media.known(8).is_some());
    }

    #[test]
    fn media_bitmap_over_its_source_may_hold_anything() {
        let mut media = Media::new(16);
        media.begin_derive(8, bitmap(0, 1, 8));
        media.begin_derive(9, copy(8, 1, 0));
        assert!(media.permits(8 * 512, &[0x5A; 16]) && !media.permits(8 * 512 + 16, &[1]));
        media.end_derive(8, WriteOutcome::Whole);
        media.end_derive(9, WriteOutcome::Whole);
        assert!(!media.in_use(0, 16));
    }
}
