// SPDX-License-Identifier: Apache-2.0

//! One block of the media: what it may hold while commands use it, and what remains possible after
//! they have ended. [`crate::oracle::media`] states the rules.

use crate::oracle::block_view::{Candidate, Content, Patch};
use crate::BLOCK;

/// The grain of a block that holds one content.
pub const WHOLE: usize = BLOCK as usize;

/// How the writes of a command have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// All of its blocks hold the new content.
    Whole,
    /// Any of its blocks may hold the new content.
    Part,
    /// None of its blocks holds the new content.
    Untouched,
    /// As `Whole`, and all writes that have ended by now precede it.
    Erased,
}

/// The possible contents of one block, and its users.
#[derive(Clone)]
pub struct Block {
    /// The possible contents.
    pub values: Vec<Candidate>,
    /// Bytes that hold one content: the block, a line, or a single byte.
    pub grain: usize,
    /// The grain of the old contents, and of the contents that remain after the old ones are
    /// dropped.
    pub old_grain: usize,
    /// See `old_grain`.
    pub new_grain: usize,
    /// Number of commands that use the block now.
    pub users: u32,
    /// Number of users that write.
    pub writers: u32,
    /// Number of users that are engines' commands.
    pub active_engines: u32,
    /// A user has written the whole block.
    pub written: bool,
    /// A store to the PM window is in flight.
    pub stored: bool,
    /// The store overlapped a command in time.
    pub met: bool,
    /// An engine has written since the block was last without users.
    pub made: bool,
    /// When a command last began or ended a write.
    pub changed: u64,
}

impl Block {
    /// A block with one content and without users.
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

    /// A command begins to use the block.
    pub fn add_user(&mut self) {
        if self.users == 0 {
            self.values.iter_mut().for_each(|v| v.old = true);
            (self.old_grain, self.new_grain) = (self.grain, WHOLE);
        }
        self.users += 1;
    }

    /// A command that writes begins to use the block.
    pub fn add_writer(&mut self, now: u64) {
        self.add_user();
        if self.stored {
            self.met = true;
            self.split(1);
        }
        self.writers += 1;
        self.changed = now;
    }

    /// Pieces of this size may hold different contents from now on.
    pub fn split(&mut self, grain: usize) {
        self.grain = self.grain.min(grain);
        self.new_grain = self.new_grain.min(grain);
    }

    /// Adds a possible content.
    pub fn add_candidate(&mut self, writer: u64, content: Content) {
        self.values.push(Candidate::new(writer, content));
    }

    /// A command that writes has ended.
    pub fn end_write(&mut self, writer: u64, end: WriteOutcome, now: u64) {
        match end {
            WriteOutcome::Whole => self.written = true,
            WriteOutcome::Part => {}
            WriteOutcome::Untouched => self.values.retain(|v| v.writer != writer),
            // Other users may still write after it.
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

    /// Applies what an engine's command, begun at `since`, has written in pieces of `grain` bytes.
    pub fn apply(&mut self, made: &DerivedContent, end: WriteOutcome, grain: usize, since: u64) {
        let covers = made.patches.iter().all(|p| p.content.len() == WHOLE);
        let alone = self.writers == 1 && self.changed == since && !self.stored;
        if end == WriteOutcome::Whole && alone {
            // It was the last write.
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

    /// A command that writes stops using the block.
    pub fn remove_writer(&mut self, now: u64) {
        self.writers = self.writers.saturating_sub(1);
        self.changed = now;
        self.remove_user();
    }

    /// A command stops using the block.
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

    /// True if the block can hold one content only.
    pub fn is_known(&self) -> bool {
        self.values.len() == 1 && self.values[0].loose.is_none()
    }

    /// The block was read and held this.
    pub fn learn(&mut self, data: &[u8]) {
        self.values = vec![Candidate::new(0, data.into())];
        self.grain = WHOLE;
    }
}

/// What an engine has made of a block, or of its first bytes.
pub struct DerivedContent {
    /// The possible contents.
    pub patches: Vec<Patch>,
    /// Bytes that hold one content for every reader.
    pub grain: usize,
    /// See [`crate::oracle::block_view::BlockView::endless`].
    pub endless: bool,
}
