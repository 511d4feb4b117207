//! One block of the media: what it may hold while commands use it, and what is left of that when
//! they have gone. [`crate::media`] says by which rules.

use crate::block_view::{Candidate, Content, Patch};
use crate::media::BLOCK;

/// A block is of one content.
pub const WHOLE: usize = BLOCK as usize;

/// How a command that writes has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// All of its blocks have their new content.
    Whole,
    /// Any of them may have it.
    Part,
    /// None of them has it.
    Untouched,
    /// As `Whole`, and everything that has ended until now was before it.
    Erased,
}

/// What one block may hold, and who uses it.
#[derive(Clone)]
pub struct Block {
    /// Each of these is possible.
    pub values: Vec<Candidate>,
    /// So many bytes are of one of them: the block, lines, or single bytes.
    pub grain: usize,
    /// The same of those that are old, and of those that will be left when these are gone.
    pub old_grain: usize,
    /// See above.
    pub new_grain: usize,
    /// Commands that use the block now.
    pub users: u32,
    /// Of these, commands that write.
    pub writers: u32,
    /// Of these, commands of engines.
    pub active_engines: u32,
    /// One of them has written all of it.
    pub written: bool,
    /// A store to the PM window is on its way.
    pub stored: bool,
    /// It has met a command.
    pub met: bool,
    /// An engine has written since nobody has used the block.
    pub made: bool,
    /// When a command last began or ended to write.
    pub changed: u64,
}

impl Block {
    /// One that holds this, and that nobody uses.
    pub fn new(content: Content) -> Block {
        Block {
            values: vec![Candidate::new(0, content)],
            grain: WHOLE,
            old_grain: WHOLE,
            new_grain: WHOLE,
            users: 0,
            writers: 0,
            active_engines: 0,
            written: false,
            stored: false,
            met: false,
            made: false,
            changed: 0,
        }
    }

    /// A command begins to use it.
    pub fn add_user(&mut self) {
        if self.users == 0 {
            self.values.iter_mut().for_each(|v| v.old = true);
            (self.old_grain, self.new_grain) = (self.grain, WHOLE);
        }
        self.users += 1;
    }

    /// A command that writes does.
    pub fn add_writer(&mut self, now: u64) {
        self.add_user();
        if self.stored {
            self.met = true;
            self.split(1);
        }
        self.writers += 1;
        self.changed = now;
    }

    /// Pieces of this size may be of different contents, also later.
    pub fn split(&mut self, grain: usize) {
        self.grain = self.grain.min(grain);
        self.new_grain = self.new_grain.min(grain);
    }

    /// It may come to hold this.
    pub fn add(&mut self, writer: u64, content: Content) {
        self.values.push(Candidate::new(writer, content));
    }

    /// A command that writes has ended.
    pub fn end(&mut self, writer: u64, end: WriteOutcome, now: u64) {
        match end {
            WriteOutcome::Whole => self.written = true,
            WriteOutcome::Part => {}
            WriteOutcome::Untouched => self.values.retain(|v| v.writer != writer),
            // What others still do may come behind it.
            WriteOutcome::Erased if self.users == 1 => {
                self.values.retain(|v| v.writer == writer);
                self.written = true;
                self.new_grain = WHOLE;
            }
            WriteOutcome::Erased => self.written = true,
        }
        for value in &mut self.values {
            if value.writer == writer {
                value.writer = 0;
            }
        }
        self.remove_writer(now);
    }

    /// A command of an engine that began at `since` has made this, in pieces of so many bytes.
    pub fn apply(&mut self, made: &DerivedContent, end: WriteOutcome, grain: usize, since: u64) {
        let covers = made.patches.iter().all(|p| p.content.len() == WHOLE);
        let alone = self.writers == 1 && self.changed == since && !self.stored;
        if end == WriteOutcome::Whole && alone {
            // It came behind all else.
            let before: Vec<Candidate> = match covers {
                true => self.values.iter().take(1).cloned().collect(),
                false => self.values.clone(),
            };
            self.values.iter_mut().for_each(|v| v.old = true);
            for value in &before {
                let gone = value.old && self.written && !covers;
                self.values
                    .extend(made.patches.iter().map(|patch| Candidate {
                        old: gone,
                        ..value.patched(0, 0, patch)
                    }));
            }
            self.new_grain = match covers {
                true => made.grain,
                false => self.new_grain.min(self.old_grain),
            };
            self.written = true;
            return;
        }
        let first = self.values[0].clone();
        let patches = made.patches.iter();
        self.values.extend(patches.map(|p| first.patched(0, 0, p)));
        self.split(grain.min(made.grain));
        self.written |= end == WriteOutcome::Whole && covers;
    }

    /// A command that writes uses it no more.
    pub fn remove_writer(&mut self, now: u64) {
        self.writers = self.writers.saturating_sub(1);
        self.changed = now;
        self.remove_user();
    }

    /// A command uses it no more.
    pub fn remove_user(&mut self) {
        self.users = self.users.saturating_sub(1);
        if self.users > 0 {
            return;
        }
        self.grain = match self.written {
            true => self.new_grain,
            false => self.old_grain.min(self.new_grain),
        };
        if self.written {
            self.values.retain(|v| !v.old);
        }
        (self.written, self.met, self.made) = (false, false, false);
        let mut kept: Vec<Candidate> = Vec::new();
        for value in self.values.drain(..) {
            let same = |k: &Candidate| k.content == value.content && k.loose == value.loose;
            if !kept.iter().any(same) {
                kept.push(value);
            }
        }
        self.values = kept;
        if self.is_known() {
            self.grain = WHOLE;
        }
    }

    /// It can hold one content only.
    pub fn is_known(&self) -> bool {
        self.values.len() == 1 && self.values[0].loose.is_none()
    }

    /// It was found to hold this.
    pub fn learn(&mut self, data: &[u8]) {
        self.values = vec![Candidate::new(0, data.into())];
        self.grain = WHOLE;
    }
}

/// What has become of a block, or the first bytes of it.
pub struct DerivedContent {
    /// Each of these is possible.
    pub patches: Vec<Patch>,
    /// So many bytes are of one of them, whoever reads.
    pub grain: usize,
    /// See [`crate::block_view::BlockView::endless`].
    pub endless: bool,
}
