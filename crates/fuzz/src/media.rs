//! What each block of the media may hold.
//!
//! A block has one possible content as long as nothing overlaps on it. While a command writes it, the old and the new
//! content are possible, dword by dword, and so they stay if the command fails or is gone through a reset. Of
//! commands that overlap, each may have been the last.

use std::rc::Rc;

/// Bytes of a block.
pub const BLOCK: u64 = 512;

type Content = Rc<[u8]>;

#[derive(Clone)]
struct Block {
    values: Vec<Content>,
    /// So many of the values are from before the commands that use the block now.
    old: usize,
    /// Commands that use the block now.
    users: u32,
    /// One of them has written all of it.
    written: bool,
}

impl Block {
    fn enter(&mut self) {
        if self.users == 0 {
            self.old = self.values.len();
        }
        self.users += 1;
    }

    fn leave(&mut self) {
        self.users = self.users.saturating_sub(1);
        if self.users == 0 {
            if self.written {
                self.values.drain(..self.old);
                self.written = false;
            }
            let mut kept: Vec<Content> = Vec::new();
            for value in self.values.drain(..) {
                if !kept.contains(&value) {
                    kept.push(value);
                }
            }
            self.values = kept;
        }
    }

    fn permits(&self, at: usize, data: &[u8]) -> bool {
        let end = at + data.len();
        if self.values.iter().any(|v| &v[at..end] == data) {
            return true;
        }
        // A mixture: dword by dword.
        let mut from = at;
        while from < end {
            let to = (from / 4 * 4 + 4).min(end);
            if !self
                .values
                .iter()
                .any(|v| v[from..to] == data[from - at..to - at])
            {
                return false;
            }
            from = to;
        }
        true
    }
}

/// All blocks.
pub struct Media {
    blocks: Vec<Block>,
    zeros: Content,
}

impl Media {
    /// So many blocks of zeros.
    pub fn new(blocks: u64) -> Media {
        let zeros: Content = Rc::from(vec![0; BLOCK as usize]);
        let block = Block {
            values: vec![zeros.clone()],
            old: 0,
            users: 0,
            written: false,
        };
        Media {
            blocks: vec![block; blocks as usize],
            zeros,
        }
    }

    /// Number of blocks.
    pub fn len(&self) -> u64 {
        self.blocks.len() as u64
    }

    fn range(&mut self, lba: u64, count: u64) -> &mut [Block] {
        let end = (lba + count).min(self.blocks.len() as u64);
        &mut self.blocks[lba as usize..end as usize]
    }

    /// A command that reads begins.
    pub fn begin_read(&mut self, lba: u64, count: u64) {
        self.range(lba, count).iter_mut().for_each(Block::enter);
    }

    /// It has ended.
    pub fn end_read(&mut self, lba: u64, count: u64) {
        self.range(lba, count).iter_mut().for_each(Block::leave);
    }

    /// A command that writes begins. Bytes that it cannot get leave what is there, and the last block may be written in part.
    pub fn begin_write(&mut self, lba: u64, data: &[Option<u8>]) {
        for (n, piece) in data.chunks(BLOCK as usize).enumerate() {
            let block = &mut self.blocks[lba as usize + n];
            block.enter();
            let mut value = block.values[0].to_vec();
            for (byte, new) in value.iter_mut().zip(piece) {
                *byte = new.unwrap_or(*byte);
            }
            block.values.push(value.into());
        }
    }

    /// A command that writes zeros begins.
    pub fn begin_zero(&mut self, lba: u64, count: u64) {
        let zeros = self.zeros.clone();
        for block in self.range(lba, count) {
            block.enter();
            block.values.push(zeros.clone());
        }
    }

    /// A command that writes has ended; `whole` if all of its blocks have their new content.
    pub fn end_write(&mut self, lba: u64, count: u64, whole: bool) {
        for block in self.range(lba, count) {
            block.written |= whole;
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
        let (mut at, mut left) = (byte, data);
        while !left.is_empty() {
            let Some(block) = self.blocks.get((at / BLOCK) as usize) else {
                return false;
            };
            let offset = (at % BLOCK) as usize;
            let piece = left.len().min(BLOCK as usize - offset);
            if !block.permits(offset, &left[..piece]) {
                return false;
            }
            at += piece as u64;
            left = &left[piece..];
        }
        true
    }

    /// The content of a block, if it can only be one.
    pub fn known(&self, lba: u64) -> Option<&[u8]> {
        let block = self.blocks.get(lba as usize)?;
        (block.values.len() == 1).then(|| &block.values[0][..])
    }

    /// One of the possible contents of a block.
    pub fn any(&self, lba: u64) -> &[u8] {
        self.blocks
            .get(lba as usize)
            .map_or(&self.zeros[..], |b| &b.values[0][..])
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
        media.begin_write(1, &data(5));
        assert!(media.permits(512, &[0; 8]) && media.permits(512, &[5; 8]));
        assert!(
            media.permits(512, &[0, 0, 0, 0, 5, 5, 5, 5]) && !media.permits(512, &[0, 5, 5, 5])
        );
        media.end_write(1, 1, true);
        assert!(!media.permits(512, &[0; 8]) && media.known(1) == Some(&[5; 512][..]));
        assert!(media.permits(512 * 4 - 8, &[0; 8]) && !media.permits(512 * 4 - 8, &[0; 9]));
    }

    #[test]
    fn a_failed_write_leaves_both_and_the_next_one_settles_it() {
        let mut media = Media::new(1);
        media.begin_write(0, &data(5));
        media.end_write(0, 1, false);
        assert!(media.known(0).is_none() && media.permits(0, &[5; 4]) && media.permits(0, &[0; 4]));
        media.begin_zero(0, 1);
        media.end_write(0, 1, true);
        assert_eq!(media.known(0), Some(&[0; 512][..]));
    }

    #[test]
    fn of_overlapping_writes_each_may_be_the_last() {
        let mut media = Media::new(1);
        media.begin_write(0, &data(1));
        media.begin_write(0, &data(2));
        media.end_write(0, 1, true);
        assert!(media.permits(0, &[0; 4]), "a reader may still be late");
        media.end_write(0, 1, true);
        assert!(
            media.permits(0, &[1; 4]) && media.permits(0, &[2; 4]) && !media.permits(0, &[0; 4])
        );
    }

    #[test]
    fn a_reader_may_be_late() {
        let mut media = Media::new(1);
        media.begin_read(0, 1);
        media.begin_write(0, &data(9));
        media.end_write(0, 1, true);
        assert!(media.permits(0, &[0; 512]) && media.permits(0, &[9; 512]));
        media.end_read(0, 1);
        assert!(!media.permits(0, &[0; 512]) && media.permits(0, &[9; 512]));
        assert!(!media.in_use(0, 1));
    }
}
