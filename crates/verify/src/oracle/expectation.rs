// SPDX-License-Identifier: Apache-2.0

//! What a command may answer, transfer and change.

use std::rc::Rc;

use spec::nvme::{status, Status};

use crate::commands::Bounds;
use crate::oracle::block::WriteOutcome;
use crate::oracle::engine_output::EngineOutput;
use crate::oracle::shadow::Pages;
use crate::oracle::walk::Walk;
use crate::BLOCK;

/// The data that a command sends to the host.
#[derive(Clone, Debug)]
pub enum DataSource {
    /// The media from this byte on.
    Media(u64),
    /// A known page, from this byte on; zeros past its end.
    Page(Rc<Vec<u8>>, u64),
    /// Undetermined.
    Any,
}

/// Direction of a command's data.
#[derive(Clone, Debug)]
pub enum Direction {
    /// No data.
    None,
    /// To the host.
    ToHost(DataSource),
    /// From the host.
    FromHost,
}

/// Use of the media by a command.
#[derive(Clone, Debug)]
pub enum MediaUse {
    /// Nothing.
    None,
    /// It reads these blocks.
    Read(u64, u64),
    /// It compares these blocks with these bytes of the host.
    Compare(u64, u64, Vec<Option<u8>>),
    /// It counts values in these blocks.
    Count(u64, u64, Bounds),
    /// It writes these bytes from this block on.
    Write(u64, Vec<Option<u8>>),
    /// An engine writes data derived from other blocks.
    Derive(EngineOutput),
    /// An engine writes unknown content to these bytes: first and number.
    WriteUnknown(Vec<(u64, u64)>),
    /// It writes zeros to these ranges.
    Zero(Vec<(u64, u64)>),
}

/// The effect of a command's completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionEffect {
    /// Nothing.
    Nothing,
    /// This submission queue becomes usable.
    SqCreated(u16),
    /// This submission queue, at this address, has nothing in flight.
    SqDeleted(u16, u64),
    /// This completion queue becomes usable.
    CqCreated(u16),
    /// This completion queue, at this address, is deleted.
    CqDeleted(u16, u64),
    /// An Asynchronous Event Request, with the requests that waited before it.
    Event(usize),
    /// This namespace is formatted, or all of them.
    Formatted(u32),
    /// The controller uses these shadow doorbells.
    Shadow(Pages),
    /// An Abort of the waiting command with this identifier.
    Abort(u16),
    /// An Abort of a command of an I/O queue: its submission queue and identifier.
    AbortIo(u16, u16),
    /// A Host Behavior Support, with the possible state before it.
    Behavior(Acre, Acre),
    /// The Keep Alive Timer restarts.
    KeptAlive,
}

/// Possible states of ACRE in the controller: cleared, set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acre {
    /// It may be cleared.
    pub clear: bool,
    /// It may be set.
    pub set: bool,
}

impl Acre {
    /// One state.
    pub fn of(set: bool) -> Acre {
        Acre { clear: !set, set }
    }

    /// One of both.
    pub fn or(self, other: Acre) -> Acre {
        Acre {
            clear: self.clear || other.clear,
            set: self.set || other.set,
        }
    }

    /// The permitted status of a command that the controller cannot continue: Command Interrupted,
    /// after CRDT1, only if the host supports it.
    pub fn interrupted(self) -> impl Iterator<Item = Status> {
        let known = self
            .set
            .then_some(status::COMMAND_INTERRUPTED.with_delay(1));
        let other = self.clear.then_some(status::INTERNAL_ERROR);
        known.into_iter().chain(other)
    }
}

/// The expectation of the model for a command.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// Permitted statuses.
    pub statuses: Vec<Status>,
    /// Dword 0 of its completion, if it is known.
    pub dw0: Option<u32>,
    /// The pages of its data.
    pub walk: Walk,
    /// Direction of the data.
    pub direction: Direction,
    /// Use of the media.
    pub media: MediaUse,
    /// Blocks that it reads as its parameters.
    pub list: Option<(u64, u64)>,
    /// Effect of its completion.
    pub after: CompletionEffect,
    /// True if no error prevents it from reading all of its data from the host.
    pub clean: bool,
    /// It works on ranges of the media without data of the host. That may take long: a controller
    /// that stops ends it.
    pub long: bool,
}

impl Expectation {
    /// No data, and one of these statuses.
    pub fn new(statuses: Vec<Status>) -> Expectation {
        Expectation {
            statuses,
            dw0: Some(0),
            walk: Walk::default(),
            direction: Direction::None,
            media: MediaUse::None,
            list: None,
            after: CompletionEffect::Nothing,
            clean: true,
            long: false,
        }
    }

    /// Bytes of the media that it reads or writes.
    pub fn media_bytes(&self) -> u64 {
        match &self.media {
            MediaUse::None => 0,
            MediaUse::Read(_, count)
            | MediaUse::Compare(_, count, _)
            | MediaUse::Count(_, count, _) => count * BLOCK,
            MediaUse::Write(_, data) => data.len() as u64,
            MediaUse::Derive(product) => product.count * (BLOCK + product.share()),
            MediaUse::WriteUnknown(parts) => parts.iter().map(|part| part.1).sum(),
            MediaUse::Zero(ranges) => ranges.iter().map(|r| r.1 * BLOCK).sum(),
        }
    }

    /// The outcome of its writes if it ends with this status.
    pub fn end(&self, answer: Status) -> WriteOutcome {
        let refused = [
            status::INVALID_FIELD,
            status::LBA_OUT_OF_RANGE,
            status::FORMAT_IN_PROGRESS,
            status::ABORTED_FAILED_FUSED,
            status::ABORTED_MISSING_FUSED,
        ];
        match (answer.bare(), self.after, &self.media) {
            (status::SUCCESS, CompletionEffect::Formatted(_), _) => WriteOutcome::Erased,
            (status::SUCCESS, ..) => WriteOutcome::Whole,
            (status::COMMAND_INTERRUPTED | status::INTERNAL_ERROR, ..) => WriteOutcome::Part,
            // It has waited upstream of the movers, as part of a fused pair or after one.
            (status::ABORTED_SQ_DELETION, _, MediaUse::Write(..)) => WriteOutcome::Untouched,
            (status::ABORTED_SQ_DELETION, ..) => WriteOutcome::Part,
            (status::ABORT_REQUESTED, ..) => WriteOutcome::Part,
            // The data that it read were invalid.
            (status::INVALID_FIELD, _, MediaUse::WriteUnknown(_)) => WriteOutcome::Part,
            // A later entry of a list.
            (status::LBA_OUT_OF_RANGE, _, MediaUse::WriteUnknown(_)) => WriteOutcome::Part,
            // A list of ranges is checked completely before the first block changes.
            (_, CompletionEffect::Nothing, MediaUse::Zero(_)) => WriteOutcome::Untouched,
            (answer, CompletionEffect::Nothing, _) if refused.contains(&answer) => {
                WriteOutcome::Untouched
            }
            _ => WriteOutcome::Part,
        }
    }

    /// A command that succeeds.
    pub fn success() -> Expectation {
        Expectation::new(vec![status::SUCCESS])
    }

    /// A command that is refused.
    pub fn refused(status: Status) -> Expectation {
        Expectation::new(vec![status.dnr()])
    }
}
