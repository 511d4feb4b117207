// SPDX-License-Identifier: Apache-2.0

//! What a reader of a block may find.

use std::borrow::Cow;
use std::rc::Rc;

use crate::commands::Bounds;
use crate::BLOCK;

/// Bytes that the memory transfers atomically.
pub const LINE: usize = 64;
/// Bytes that a command with data transfers atomically. A segment of its data may end after any of
/// these, and the next segment is read separately.
pub const DWORD: usize = 4;

/// All bytes of a block, or the first ones of it.
pub type Content = Rc<[u8]>;

/// One possible content of a block.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its bytes.
    pub content: Content,
    /// Undetermined bits, if there are any.
    pub loose: Option<Content>,
    /// The user that writes it; 0 after that user has ended.
    pub writer: u64,
    /// It is older than the present users of the block.
    pub old: bool,
}

impl Candidate {
    /// The content that this writer writes.
    pub fn new(writer: u64, content: Content) -> Candidate {
        Candidate {
            content,
            loose: None,
            writer,
            old: false,
        }
    }

    fn holds(&self, at: usize, byte: u8) -> bool {
        let loose = self.loose.as_ref().map_or(0, |loose| loose[at]);
        (self.content[at] ^ byte) & !loose == 0
    }

    /// The same content with a patch at `at`, as this writer writes it.
    pub fn patched(&self, writer: u64, at: usize, patch: &Patch) -> Candidate {
        let len = patch.content.len();
        if len == BLOCK as usize {
            let loose = patch.loose.clone();
            let content = patch.content.clone();
            return Candidate {
                loose,
                ..Candidate::new(writer, content)
            };
        }
        let mut content = self.content.to_vec();
        content[at..at + len].copy_from_slice(&patch.content);
        let mut loose = match &self.loose {
            Some(loose) => loose.to_vec(),
            None => vec![0; BLOCK as usize],
        };
        match &patch.loose {
            Some(bits) => loose[at..at + len].copy_from_slice(bits),
            None => loose[at..at + len].fill(0),
        }
        let any = loose.iter().any(|&b| b != 0);
        Candidate {
            loose: any.then(|| loose.into()),
            ..Candidate::new(writer, content.into())
        }
    }
}

/// Bytes that a writer writes into a block.
#[derive(Clone, Debug)]
pub struct Patch {
    /// The bytes.
    pub content: Content,
    /// Their undetermined bits, if there are any.
    pub loose: Option<Content>,
}

impl Patch {
    /// A patch of these bytes.
    pub fn of(bytes: &[u8]) -> Patch {
        Patch {
            content: bytes.into(),
            loose: None,
        }
    }
}

/// The possible contents of a block at one time.
#[derive(Clone)]
pub struct BlockView<'a> {
    /// Its contents.
    pub values: Cow<'a, [Candidate]>,
    /// Aligned pieces of this many bytes hold one content each.
    pub grain: usize,
    /// The block is derived from itself, so it may hold anything.
    pub endless: bool,
}

impl BlockView<'_> {
    /// True if these bytes, each with its offset and in ascending order, may be there at the same
    /// time.
    pub fn permits(&self, bytes: impl Iterator<Item = (usize, u8)>) -> bool {
        let bytes: Vec<(usize, u8)> = bytes.collect();
        let mut parts = bytes.chunk_by(|a, b| a.0 / self.grain == b.0 / self.grain);
        parts.all(|part| {
            let fits = |v: &Candidate| part.iter().all(|&(at, byte)| v.holds(at, byte));
            self.values.iter().any(fits)
        })
    }

    /// Whether the wanted bytes may compare equal, and whether they may differ.
    pub fn compares(&self, wanted: &[Option<u8>]) -> (bool, bool) {
        let bytes = wanted.iter().enumerate();
        let bytes = bytes.filter_map(|(at, byte)| byte.map(|b| (at, b)));
        let sure =
            |v: &Candidate| v.loose.is_none() && bytes.clone().all(|(at, b)| v.content[at] == b);
        (
            self.permits(bytes.clone()),
            !self.values.iter().all(sure) || self.endless,
        )
    }

    /// Whether the value at this byte may lie between the bounds, and whether it may lie outside.
    pub fn bounded(&self, at: usize, bounds: &Bounds) -> (bool, bool) {
        let place = at..at + bounds.bytes();
        let loose = |v: &Candidate| {
            let loose = v.loose.as_ref();
            loose.is_some_and(|l| l[place.clone()].iter().any(|&b| b != 0))
        };
        if self.endless || self.grain < bounds.bytes() || self.values.iter().any(loose) {
            return (true, true);
        }
        let mut found = (false, false);
        for value in self.values.iter() {
            match bounds.hold(&value.content[place.clone()]) {
                true => found.0 = true,
                false => found.1 = true,
            }
        }
        found
    }
}
