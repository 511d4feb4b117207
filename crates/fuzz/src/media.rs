//! What each block of the media may hold.
//!
//! A block has one possible content as long as nothing overlaps on it. While a command writes it, the old and the new
//! content are possible, dword by dword, and so they stay if the command fails or is gone through a reset. Of
//! commands that overlap, each may have been the last. Who uses a block says who it is, by a number other than 0.

use std::rc::Rc;

/// Bytes of a block.
pub const BLOCK: u64 = 512;

type Content = Rc<[u8]>;

/// How a command that writes has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All of its blocks have their new content.
    Whole,
    /// Any part of them may have it.
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
    /// One of them has written all of it.
    written: bool,
}

impl Block {
    fn enter(&mut self) {
        if self.users == 0 {
            self.values.iter_mut().for_each(|v| v.old = true);
        }
        self.users += 1;
    }

    fn write(&mut self, writer: u64, content: Content) {
        self.enter();
        self.values.push(Value {
            content,
            writer,
            old: false,
        });
    }

    fn end(&mut self, writer: u64, end: End) {
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
        self.leave();
    }

    fn leave(&mut self) {
        self.users = self.users.saturating_sub(1);
        if self.users == 0 {
            if self.written {
                self.values.retain(|v| !v.old);
                self.written = false;
            }
            let mut kept: Vec<Value> = Vec::new();
            for value in self.values.drain(..) {
                if !kept.iter().any(|k| k.content == value.content) {
                    kept.push(value);
                }
            }
            self.values = kept;
        }
    }

    fn permits(&self, at: usize, data: &[u8]) -> bool {
        let end = at + data.len();
        if self.values.iter().any(|v| &v.content[at..end] == data) {
            return true;
        }
        // A mixture: dword by dword.
        let mut from = at;
        while from < end {
            let to = (from / 4 * 4 + 4).min(end);
            if !self
                .values
                .iter()
                .any(|v| v.content[from..to] == data[from - at..to - at])
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
        let value = Value {
            content: zeros.clone(),
            writer: 0,
            old: false,
        };
        let block = Block {
            values: vec![value],
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
        let all = self.blocks.len() as u64;
        let end = lba.saturating_add(count).min(all);
        &mut self.blocks[lba.min(end) as usize..end as usize]
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
    pub fn begin_write(&mut self, writer: u64, lba: u64, data: &[Option<u8>]) {
        let count = (data.len() as u64).div_ceil(BLOCK);
        let blocks = self.range(lba, count).iter_mut();
        for (block, piece) in blocks.zip(data.chunks(BLOCK as usize)) {
            let mut value = block.values[0].content.to_vec();
            for (byte, new) in value.iter_mut().zip(piece) {
                *byte = new.unwrap_or(*byte);
            }
            block.write(writer, value.into());
        }
    }

    /// A command that writes zeros begins.
    pub fn begin_zero(&mut self, writer: u64, lba: u64, count: u64) {
        let zeros = self.zeros.clone();
        for block in self.range(lba, count) {
            block.write(writer, zeros.clone());
        }
    }

    /// A command that writes has ended with these blocks.
    pub fn end_write(&mut self, writer: u64, lba: u64, count: u64, end: End) {
        for block in self.range(lba, count) {
            block.end(writer, end);
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
        (block.values.len() == 1).then(|| &block.values[0].content[..])
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
        assert!(
            media.permits(512, &[0, 0, 0, 0, 5, 5, 5, 5]) && !media.permits(512, &[0, 5, 5, 5])
        );
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
}
