//! What each block of the media may hold.
//!
//! A block is whole: it holds one of the contents that it had, or that a command has brought, never a part of one and a part of
//! another (NVM Express 1.4, 6.4: AWUN, AWUPF). While a command writes it, the old and the new content are possible, and so they
//! stay if the command fails or is gone through a reset. Of commands that overlap, each may have been the last. A block that was
//! read while nobody wrote it holds what was read. Who uses a block says who it is, by a number other than 0.
//!
//! Stores to the PM window change bytes, not blocks. Where one meets a command on the same block, its bytes are judged one by
//! one until somebody has looked.

use std::ops::RangeInclusive;
use std::rc::Rc;

use crate::nvm::Bounds;

/// Bytes of a block.
pub const BLOCK: u64 = 512;
/// Bytes that the PM window brings at once.
const LINE: usize = 64;

type Content = Rc<[u8]>;

/// How a command that writes has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All of its blocks have their new content.
    Whole,
    /// Any of them may have it.
    Part,
    /// None of them has it.
    Untouched,
    /// As `Whole`, and everything that has ended until now was before it.
    Erased,
}

#[derive(Clone)]
struct Value {
    content: Content,
    /// Who writes it; 0 if nobody does any more.
    writer: u64,
    /// It is from before those who use the block now.
    old: bool,
}

#[derive(Clone)]
struct Block {
    values: Vec<Value>,
    /// Commands that use the block now.
    users: u32,
    /// Of these, commands that write.
    writers: u32,
    /// One of them has written all of it.
    written: bool,
    /// A store to the PM window is on its way.
    stored: bool,
    /// A store has met a command: it may hold a mixture.
    mixed: bool,
    /// When a command last began or ended to write.
    changed: u64,
}

impl Block {
    fn enter(&mut self) {
        if self.users == 0 {
            self.values.iter_mut().for_each(|v| v.old = true);
        }
        self.users += 1;
    }

    fn enter_writer(&mut self, now: u64) {
        self.enter();
        self.mixed |= self.stored;
        self.writers += 1;
        self.changed = now;
    }

    fn add(&mut self, writer: u64, content: Content) {
        self.values.push(Value {
            content,
            writer,
            old: false,
        });
    }

    fn end(&mut self, writer: u64, end: End, now: u64) {
        match end {
            End::Whole => self.written = true,
            End::Part => {}
            End::Untouched => self.values.retain(|v| v.writer != writer),
            // What others still do may come behind it.
            End::Erased if self.users == 1 => {
                self.values.retain(|v| v.writer == writer);
                self.written = true;
            }
            End::Erased => self.written = true,
        }
        for value in &mut self.values {
            if value.writer == writer {
                value.writer = 0;
            }
        }
        self.writers = self.writers.saturating_sub(1);
        self.changed = now;
        self.leave();
    }

    fn leave(&mut self) {
        self.users = self.users.saturating_sub(1);
        if self.users == 0 {
            if self.written && !self.mixed {
                self.values.retain(|v| !v.old);
            }
            self.written = false;
            let mut kept: Vec<Value> = Vec::new();
            for value in self.values.drain(..) {
                if !kept.iter().any(|k| k.content == value.content) {
                    kept.push(value);
                }
            }
            self.values = kept;
        }
    }

    /// True if the bytes that are known of a read, each with its place in the block, are those of one content.
    fn permits(&self, bytes: impl Iterator<Item = (usize, u8)> + Clone, torn: bool) -> bool {
        if self.mixed || torn {
            let mut bytes = bytes;
            return bytes.all(|(at, b)| self.values.iter().any(|v| v.content[at] == b));
        }
        let fits = |v: &Value| bytes.clone().all(|(at, b)| v.content[at] == b);
        self.values.iter().any(fits)
    }

    fn learn(&mut self, data: &[u8]) {
        self.values.retain(|v| v.content[..] == *data);
        if self.values.is_empty() {
            self.add(0, data.into());
        }
        self.mixed = false;
    }
}

/// All blocks.
pub struct Media {
    blocks: Vec<Block>,
    zeros: Content,
    /// Blocks may be torn.
    torn: bool,
    /// Counts beginnings and ends of writes.
    now: u64,
}

impl Media {
    /// So many blocks of zeros.
    pub fn new(blocks: u64) -> Media {
        let zeros: Content = Rc::from(vec![0; BLOCK as usize]);
        let value = Value {
            content: zeros.clone(),
            writer: 0,
            old: false,
        };
        let block = Block {
            values: vec![value],
            users: 0,
            writers: 0,
            written: false,
            stored: false,
            mixed: false,
            changed: 0,
        };
        Media {
            blocks: vec![block; blocks as usize],
            zeros,
            torn: false,
            now: 0,
        }
    }

    /// From now on a block may hold parts of several contents.
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

    /// Now, to be told to [`Media::learn`] later.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// A command that reads begins.
    pub fn begin_read(&mut self, lba: u64, count: u64) {
        self.range(lba, count).iter_mut().for_each(Block::enter);
    }

    /// It has ended.
    pub fn end_read(&mut self, lba: u64, count: u64) {
        self.range(lba, count).iter_mut().for_each(Block::leave);
    }

    /// Whole blocks were read by somebody who began at `since`, and were right: where nobody has written from then on, they hold
    /// this.
    pub fn learn(&mut self, lba: u64, data: &[u8], since: u64) {
        let count = data.len() as u64 / BLOCK;
        let blocks = self.range(lba, count).iter_mut();
        for (block, piece) in blocks.zip(data.chunks(BLOCK as usize)) {
            let alone = block.users == 0 && block.changed <= since;
            if alone && (block.values.len() > 1 || block.mixed) {
                block.learn(piece);
            }
        }
    }

    /// A command that writes begins. A block of which it cannot get all bytes stays as it is.
    pub fn begin_write(&mut self, writer: u64, lba: u64, data: &[Option<u8>]) {
        self.now += 1;
        let (now, torn) = (self.now, self.torn);
        let count = (data.len() as u64).div_ceil(BLOCK);
        let blocks = self.range(lba, count).iter_mut();
        for (block, piece) in blocks.zip(data.chunks(BLOCK as usize)) {
            block.enter_writer(now);
            let mut piece = piece.to_vec();
            if torn {
                let old = block.values[0].content.iter().map(|&b| Some(b));
                piece.extend(old.clone().skip(piece.len()));
                let pairs = piece.iter_mut().zip(old);
                pairs.for_each(|(new, old)| *new = new.or(old));
            }
            let content: Option<Vec<u8>> = piece.into_iter().collect();
            let content = content.filter(|c| c.len() as u64 == BLOCK);
            content
                .into_iter()
                .for_each(|c| block.add(writer, c.into()));
        }
    }

    /// A command that writes zeros begins.
    pub fn begin_zero(&mut self, writer: u64, lba: u64, count: u64) {
        self.now += 1;
        let (zeros, now) = (self.zeros.clone(), self.now);
        for block in self.range(lba, count) {
            block.enter_writer(now);
            block.add(writer, zeros.clone());
        }
    }

    /// A command that writes has ended with these blocks.
    pub fn end_write(&mut self, writer: u64, lba: u64, count: u64, end: End) {
        self.now += 1;
        let now = self.now;
        for block in self.range(lba, count) {
            block.end(writer, end, now);
        }
    }

    /// A store to the PM window begins, of blocks that nobody uses.
    pub fn begin_store(&mut self, writer: u64, byte: u64, data: &[u8]) {
        self.now += 1;
        let now = self.now;
        let first = byte / BLOCK;
        let count = (byte + data.len() as u64).div_ceil(BLOCK) - first;
        let mut left = data;
        let mut at = (byte % BLOCK) as usize;
        for block in self.range(first, count) {
            block.enter();
            (block.stored, block.changed) = (true, now);
            let (piece, rest) = left.split_at(left.len().min(BLOCK as usize - at));
            let patched: Vec<Content> = block
                .values
                .iter()
                .map(|v| {
                    let mut content = v.content.to_vec();
                    content[at..at + piece.len()].copy_from_slice(piece);
                    content.into()
                })
                .collect();
            patched.into_iter().for_each(|c| block.add(writer, c));
            (left, at) = (rest, 0);
        }
    }

    /// It has ended.
    pub fn end_store(&mut self, writer: u64, lba: u64, count: u64) {
        self.now += 1;
        let now = self.now;
        for block in self.range(lba, count) {
            block.stored = false;
            block.changed = now;
            if !block.mixed {
                block.values.retain(|v| v.writer == writer);
            }
            block.values.iter_mut().for_each(|v| {
                if v.writer == writer {
                    (v.writer, v.old) = (0, false);
                }
            });
            block.leave();
        }
    }

    /// True if some command uses one of the blocks.
    pub fn in_use(&self, lba: u64, count: u64) -> bool {
        let end = lba.saturating_add(count).min(self.len());
        (lba.min(end)..end).any(|b| self.blocks[b as usize].users > 0)
    }

    /// True if the media may hold these bytes at this address.
    pub fn permits(&self, byte: u64, data: &[u8]) -> bool {
        self.judge(byte, data, |block, offset, piece| {
            block.permits((offset..).zip(piece.iter().copied()), self.torn)
        })
    }

    /// The same for a load from the PM window, which takes a line at a time, and began at `since`.
    pub fn permits_load(&self, byte: u64, data: &[u8], since: u64) -> bool {
        self.judge(byte, data, |block, offset, piece| {
            if block.writers == 0 && !block.stored && block.changed <= since {
                return block.permits((offset..).zip(piece.iter().copied()), self.torn);
            }
            // Of a store, any part may be seen.
            let unit = if block.stored { 1 } else { LINE };
            let mut units = piece.chunks(unit).enumerate();
            units.all(|(n, part)| {
                let places = offset + n * unit..;
                block.permits(places.zip(part.iter().copied()), self.torn)
            })
        })
    }

    /// The same for some bytes of one block, each with its place.
    pub fn permits_some(&self, lba: u64, bytes: impl Iterator<Item = (usize, u8)> + Clone) -> bool {
        self.blocks
            .get(lba as usize)
            .is_some_and(|block| block.permits(bytes, self.torn))
    }

    fn judge(&self, byte: u64, data: &[u8], fits: impl Fn(&Block, usize, &[u8]) -> bool) -> bool {
        let (mut at, mut left) = (byte, data);
        while !left.is_empty() {
            let Some(block) = self.blocks.get((at / BLOCK) as usize) else {
                return false;
            };
            let offset = (at % BLOCK) as usize;
            let piece = left.len().min(BLOCK as usize - offset);
            if !fits(block, offset, &left[..piece]) {
                return false;
            }
            at += piece as u64;
            left = &left[piece..];
        }
        true
    }

    /// Whether a comparison with this block may find it equal, and whether it may find a difference. What `but` writes, if
    /// anybody, comes later.
    pub fn compares(&self, lba: u64, data: &[Option<u8>], but: Option<u64>) -> (bool, bool) {
        let Some(block) = self.blocks.get(lba as usize) else {
            return (false, false);
        };
        let equal = |v: &Value| {
            let mut pairs = v.content.iter().zip(data);
            pairs.all(|(&have, want)| want.is_none_or(|want| want == have))
        };
        let (mut same, mut other) = (block.mixed, block.mixed);
        for value in block.values.iter().filter(|v| but != Some(v.writer)) {
            match equal(value) {
                true => same = true,
                false => other = true,
            }
        }
        (same, other)
    }

    /// How many values of these blocks may lie between the bounds, for somebody who reads them value by value while others write.
    pub fn counts(&self, lba: u64, count: u64, bounds: &Bounds) -> RangeInclusive<u64> {
        let size = bounds.bytes();
        let end = lba.saturating_add(count).min(self.len());
        let (mut least, mut most) = (0, 0);
        for block in &self.blocks[lba.min(end) as usize..end as usize] {
            for at in (0..BLOCK as usize).step_by(size) {
                let mut holds = block
                    .values
                    .iter()
                    .map(|v| bounds.hold(&v.content[at..at + size]));
                // Stores may have left parts of values.
                let (any, all) = match block.mixed || block.stored {
                    true => (true, false),
                    false => (holds.clone().any(|h| h), holds.all(|h| h)),
                };
                (least, most) = (least + u64::from(all), most + u64::from(any));
            }
        }
        least..=most
    }

    /// The content of a block, if it can only be one.
    #[cfg(test)]
    pub fn known(&self, lba: u64) -> Option<&[u8]> {
        let block = self.blocks.get(lba as usize)?;
        (block.values.len() == 1 && !block.mixed).then(|| &block.values[0].content[..])
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
    fn a_write_alone_replaces_what_was_there() {
        let mut media = Media::new(4);
        media.begin_write(7, 1, &data(5));
        assert!(media.permits(512, &[0; 8]) && media.permits(512, &[5; 8]));
        assert!(!media.permits(512, &[0, 0, 0, 0, 5, 5, 5, 5]));
        media.end_write(7, 1, 1, End::Whole);
        assert!(!media.permits(512, &[0; 8]) && media.known(1) == Some(&[5; 512][..]));
        assert!(media.permits(512 * 4 - 8, &[0; 8]) && !media.permits(512 * 4 - 8, &[0; 9]));
    }

    #[test]
    fn a_failed_write_leaves_both_and_the_next_one_settles_it() {
        let mut media = Media::new(1);
        media.begin_write(7, 0, &data(5));
        media.end_write(7, 0, 1, End::Part);
        assert!(media.known(0).is_none() && media.permits(0, &[5; 4]) && media.permits(0, &[0; 4]));
        media.begin_zero(7, 0, 1);
        media.end_write(7, 0, 1, End::Whole);
        assert_eq!(media.known(0), Some(&[0; 512][..]));
    }

    #[test]
    fn of_overlapping_writes_each_may_be_the_last() {
        let mut media = Media::new(1);
        media.begin_write(7, 0, &data(1));
        media.begin_write(8, 0, &data(2));
        media.end_write(7, 0, 1, End::Whole);
        assert!(media.permits(0, &[0; 4]), "a reader may still be late");
        media.end_write(8, 0, 1, End::Whole);
        assert!(
            media.permits(0, &[1; 4]) && media.permits(0, &[2; 4]) && !media.permits(0, &[0; 4])
        );
    }

    #[test]
    fn a_reader_may_be_late() {
        let mut media = Media::new(1);
        media.begin_read(0, 1);
        media.begin_write(7, 0, &data(9));
        media.end_write(7, 0, 1, End::Whole);
        assert!(media.permits(0, &[0; 512]) && media.permits(0, &[9; 512]));
        media.end_read(0, 1);
        assert!(!media.permits(0, &[0; 512]) && media.permits(0, &[9; 512]));
        assert!(!media.in_use(0, 1));
    }

    #[test]
    fn a_write_that_was_not_done_leaves_nothing() {
        let mut media = Media::new(1);
        media.begin_write(7, 0, &data(3));
        media.begin_write(8, 0, &data(4));
        media.end_write(8, 0, 1, End::Untouched);
        assert!(media.permits(0, &[3; 4]) && !media.permits(0, &[4; 4]));
        media.end_write(7, 0, 1, End::Whole);
        assert_eq!(media.known(0), Some(&[3; 512][..]));
    }

    #[test]
    fn an_erasure_comes_behind_what_has_ended() {
        let mut media = Media::new(2);
        media.begin_zero(6, 0, 2);
        for (writer, lba) in [(7, 0), (8, 1)] {
            media.begin_write(writer, lba, &data(3));
        }
        media.end_write(7, 0, 1, End::Whole);
        media.end_write(6, 0, 2, End::Erased);
        assert_eq!(media.known(0), Some(&[0; 512][..]));
        assert!(media.permits(512, &[3; 4]) && media.permits(512, &[0; 4]));
    }

    #[test]
    fn a_block_that_is_not_there_whole_is_not_written() {
        let mut media = Media::new(2);
        let mut half = data(3);
        half.resize(700, Some(3));
        media.begin_write(7, 0, &half);
        assert!(media.permits(0, &[3; 512]) && !media.permits(512, &[3; 4]));
        half[5] = None;
        media.end_write(7, 0, 2, End::Part);
        media.begin_write(8, 0, &half);
        media.end_write(8, 0, 2, End::Part);
        assert!(media.permits(0, &[3; 512]) && media.permits(0, &[0; 512]));
    }

    #[test]
    fn what_was_read_alone_stays() {
        let mut media = Media::new(1);
        media.begin_write(7, 0, &data(5));
        let early = media.now();
        media.end_write(7, 0, 1, End::Part);
        media.learn(0, &[5; 512], early);
        assert!(media.known(0).is_none(), "the reader began too early");
        media.learn(0, &[5; 512], media.now());
        assert_eq!(media.known(0), Some(&[5; 512][..]));
    }

    #[test]
    fn a_store_changes_bytes_of_each_content() {
        let mut media = Media::new(1);
        media.begin_write(7, 0, &data(5));
        media.end_write(7, 0, 1, End::Part);
        media.begin_store(8, 3, &[9; 2]);
        assert!(media.permits(0, &[0, 0, 0, 9, 9, 0]) && media.permits(0, &[0; 6]));
        media.end_store(8, 0, 1);
        assert!(media.permits(0, &[5, 5, 5, 9, 9, 5]) && media.permits(0, &[0, 0, 0, 9, 9, 0]));
        assert!(!media.permits(0, &[5; 6]) && !media.permits(0, &[5, 0, 5, 9, 9, 5]));
    }

    #[test]
    fn a_store_that_meets_a_command_mixes() {
        let mut media = Media::new(1);
        media.begin_store(8, 0, &[9; 2]);
        media.begin_write(7, 0, &data(5));
        media.end_write(7, 0, 1, End::Whole);
        media.end_store(8, 0, 1);
        assert!(
            media.permits(0, &[9, 5, 5]) && media.permits(0, &[0, 5]) && media.known(0).is_none()
        );
        let mut seen = [5; 512];
        seen[0] = 9;
        media.learn(0, &seen, media.now());
        assert_eq!(media.known(0), Some(&seen[..]));
    }

    #[test]
    fn a_load_takes_lines_while_somebody_writes() {
        let mut media = Media::new(1);
        let since = media.now();
        media.begin_write(7, 0, &data(5));
        let mut seen = [5; 512];
        seen[..64].fill(0);
        assert!(media.permits_load(0, &seen, since) && !media.permits(0, &seen));
        seen[3] = 5;
        assert!(!media.permits_load(0, &seen, since));
    }

    #[test]
    fn a_comparison_counts_all_contents() {
        let mut media = Media::new(1);
        assert_eq!(media.compares(0, &data(0), None), (true, false));
        assert_eq!(media.compares(0, &data(1), None), (false, true));
        media.begin_write(7, 0, &data(1));
        assert_eq!(media.compares(0, &data(1), None), (true, true));
        assert_eq!(media.compares(0, &data(1), Some(8)), (true, true));
        assert_eq!(media.compares(0, &data(1), Some(7)), (false, true));
    }
}
