// SPDX-License-Identifier: Apache-2.0

//! Atomicity of fused pairs (nvme_fused_arbiter), between the decoder and the data path.
//!
//! A pair waits until all overlapping data commands in flight have ended. Then its Compare runs
//! and, if that succeeds, its Write. Until the pair has ended, other commands that overlap it are
//! held in order; all others pass.

use std::collections::VecDeque;

use super::data_path::TransferResult;
use super::decode::{BlockSpan, DataCommand};

enum HeldCommand {
    Single(DataCommand),
    Pair(DataCommand, DataCommand),
}

/// Progress of the first held pair.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PairState {
    Waiting,
    Comparing,
    Writing,
}

/// What the controller has to do next.
pub(crate) enum ArbiterAction {
    /// Start a command.
    Start(DataCommand),
    /// End the Write of a pair whose Compare has failed, in this slot.
    Fail(u16),
}

pub(crate) struct FusedArbiter {
    /// Data commands in flight, by slot.
    in_flight: Vec<Option<BlockSpan>>,
    held: VecDeque<HeldCommand>,
    state: PairState,
    actions: VecDeque<ArbiterAction>,
}

impl FusedArbiter {
    pub(crate) fn new(slots: u16) -> FusedArbiter {
        FusedArbiter {
            in_flight: vec![None; slots.into()],
            held: VecDeque::new(),
            state: PairState::Waiting,
            actions: VecDeque::new(),
        }
    }

    /// The next action.
    pub(crate) fn next_action(&mut self) -> Option<ArbiterAction> {
        self.actions.pop_front()
    }

    /// Submits a data command.
    pub(crate) fn submit(&mut self, command: DataCommand) {
        let held = match self.held.front() {
            Some(HeldCommand::Pair(first, _)) => first.span.overlaps(&command.span),
            _ => false,
        };
        match held {
            true => self.held.push_back(HeldCommand::Single(command)),
            false => self.start_command(command),
        }
    }

    /// Submits a pair of one namespace and range.
    pub(crate) fn submit_pair(&mut self, first: DataCommand, second: DataCommand) {
        self.held.push_back(HeldCommand::Pair(first, second));
        if self.held.len() == 1 {
            self.advance();
        }
    }

    fn start_command(&mut self, command: DataCommand) {
        self.in_flight[usize::from(command.slot)] = Some(command.span);
        self.actions.push_back(ArbiterAction::Start(command));
    }

    /// A data command has ended.
    pub(crate) fn ended(&mut self, slot: u16, outcome: TransferResult) {
        self.in_flight[usize::from(slot)] = None;
        let Some(HeldCommand::Pair(first, second)) = self.held.front() else {
            return;
        };
        if self.state == PairState::Comparing && first.slot == slot {
            if outcome == TransferResult::Ok {
                let second = second.clone();
                self.state = PairState::Writing;
                self.start_command(second);
            } else {
                let slot = second.slot;
                self.actions.push_back(ArbiterAction::Fail(slot));
                self.held.pop_front();
                self.advance();
            }
        } else if self.state == PairState::Writing && second.slot == slot {
            self.held.pop_front();
            self.advance();
        } else if self.state == PairState::Waiting {
            self.begin_pair();
        }
    }

    /// Continues with the next held command or pair.
    fn advance(&mut self) {
        self.state = PairState::Waiting;
        while let Some(held) = self.held.pop_front() {
            match held {
                HeldCommand::Single(command) => self.start_command(command),
                pair => {
                    self.held.push_front(pair);
                    break;
                }
            }
        }
        self.begin_pair();
    }

    fn begin_pair(&mut self) {
        let Some(HeldCommand::Pair(first, _)) = self.held.front() else {
            return;
        };
        let overlaps = |span: &BlockSpan| span.overlaps(&first.span);
        if !self.in_flight.iter().flatten().any(overlaps) {
            let first = first.clone();
            self.state = PairState::Comparing;
            self.start_command(first);
        }
    }

    /// Removes the held commands whose slots `of` selects, pairs as a whole; returns their slots.
    pub(crate) fn abort_waiting(&mut self, of: impl Fn(u16) -> bool) -> Vec<u16> {
        let mut aborted = Vec::new();
        if self.held.is_empty() || self.state != PairState::Waiting {
            return aborted;
        }
        let front =
            matches!(self.held.front(), Some(HeldCommand::Pair(first, _)) if of(first.slot));
        self.held.retain(|held| match held {
            HeldCommand::Single(command) if of(command.slot) => {
                aborted.push(command.slot);
                false
            }
            HeldCommand::Pair(first, second) if of(first.slot) => {
                aborted.extend([first.slot, second.slot]);
                false
            }
            _ => true,
        });
        if front {
            self.advance();
        }
        aborted
    }
}
