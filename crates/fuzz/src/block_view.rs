//! What somebody who looks at a block may find.

use std::borrow::Cow;
use std::rc::Rc;

use crate::engines::Bounds;
use crate::media::BLOCK;

/// Bytes that the memory takes at once.
pub const LINE: usize = 64;
/// Bytes that a command with data takes at once: a piece of its data may end behind any of these,
/// and the next one is read by itself.
pub const DWORD: usize = 4;

/// All bytes of a block, or the first ones of it.
pub type Content = Rc<[u8]>;

/// One content that a block may have.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its bytes.
    pub content: Content,
    /// Bits that nobody can tell, if there are any.
    pub loose: Option<Content>,
    /// Who writes it; 0 if nobody does any more.
    pub writer: u64,
    /// It is from before those who use the block now.
    pub old: bool,
}

impl Candidate {
    /// What this writer brings.
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

    /// The same with other bytes from one on, as this writer brings it.
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

/// Bytes of a block that somebody brings.
#[derive(Clone, Debug)]
pub struct Patch {
    /// The bytes.
    pub content: Content,
    /// Bits of them that nobody can tell, if there are any.
    pub loose: Option<Content>,
}

impl Patch {
    /// These bytes.
    pub fn of(bytes: &[u8]) -> Patch {
        Patch {
            content: bytes.into(),
            loose: None,
        }
    }
}

/// All that a block may hold now.
#[derive(Clone)]
pub struct BlockView<'a> {
    /// Its contents.
    pub values: Cow<'a, [Candidate]>,
    /// So many bytes, from a multiple of that on, are of one of them.
    pub grain: usize,
    /// It is made of itself, so it may hold more.
    pub endless: bool,
}

impl BlockView<'_> {
    /// True if the bytes that are known of it, each with its place and in their order, may be there
    /// at the same time.
    pub fn permits(&self, bytes: impl Iterator<Item = (usize, u8)>) -> bool {
        let bytes: Vec<(usize, u8)> = bytes.collect();
        let mut parts = bytes.chunk_by(|a, b| a.0 / self.grain == b.0 / self.grain);
        parts.all(|part| {
            let fits = |v: &Candidate| part.iter().all(|&(at, byte)| v.holds(at, byte));
            self.values.iter().any(fits)
        })
    }

    /// Whether these bytes, as far as they are wanted, may be found equal, and whether a difference
    /// may be found.
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

    /// Whether the value from this byte on may lie between the bounds, and whether it may not.
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
