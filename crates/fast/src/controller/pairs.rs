//! Makes fused pairs atomic (nvme_pairs): stands between the decoder and the data path.
//!
//! A pair waits until each data command under way that overlaps it has ended; then its Compare runs and, if that ended well, its
//! Write. Until the pair's end, other commands that overlap it are held, in order; all others pass.

use std::collections::VecDeque;

use super::data::Outcome;
use super::io::Command;

/// What a command is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) namespace: u32,
    /// Its ranges are not known: all of the namespace.
    pub(crate) all: bool,
    /// Blocks of the media.
    pub(crate) first: u64,
    pub(crate) blocks: u64,
}

impl Span {
    fn overlaps(&self, other: &Span) -> bool {
        let near =
            self.first < other.first + other.blocks && other.first < self.first + self.blocks;
        match self.all || other.all {
            true => self.namespace == other.namespace,
            false => near,
        }
    }
}

enum Held {
    Single(Command),
    Pair(Command, Command),
}

/// What a pair at the front does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waits,
    Compares,
    Writes,
}

/// What is to be done next.
pub(crate) enum Next {
    /// Start this command.
    Start(Command),
    /// End the command in this slot, as the Write of a pair whose Compare has failed.
    Fail(u16),
}

pub(crate) struct Pairs {
    /// By slot: data commands under way.
    flight: Vec<Option<Span>>,
    inside: VecDeque<Held>,
    state: State,
    next: VecDeque<Next>,
}

impl Pairs {
    pub(crate) fn new(slots: u16) -> Pairs {
        Pairs {
            flight: vec![None; slots.into()],
            inside: VecDeque::new(),
            state: State::Waits,
            next: VecDeque::new(),
        }
    }

    /// Takes what is to be done next.
    pub(crate) fn next(&mut self) -> Option<Next> {
        self.next.pop_front()
    }

    /// A data command.
    pub(crate) fn submit(&mut self, command: Command) {
        let held = match self.inside.front() {
            Some(Held::Pair(first, _)) => first.span.overlaps(&command.span),
            _ => false,
        };
        match held {
            true => self.inside.push_back(Held::Single(command)),
            false => self.start(command),
        }
    }

    /// A pair of the same namespace and range.
    pub(crate) fn submit_pair(&mut self, first: Command, second: Command) {
        self.inside.push_back(Held::Pair(first, second));
        if self.inside.len() == 1 {
            self.go_on();
        }
    }

    fn start(&mut self, command: Command) {
        self.flight[usize::from(command.slot)] = Some(command.span);
        self.next.push_back(Next::Start(command));
    }

    /// A data command has ended.
    pub(crate) fn ended(&mut self, slot: u16, outcome: Outcome) {
        self.flight[usize::from(slot)] = None;
        let Some(Held::Pair(first, second)) = self.inside.front() else {
            return;
        };
        if self.state == State::Compares && first.slot == slot {
            if outcome == Outcome::Ok {
                let second = second.clone();
                self.state = State::Writes;
                self.start(second);
            } else {
                let slot = second.slot;
                self.next.push_back(Next::Fail(slot));
                self.inside.pop_front();
                self.go_on();
            }
        } else if self.state == State::Writes && second.slot == slot {
            self.inside.pop_front();
            self.go_on();
        } else if self.state == State::Waits {
            self.begin_pair();
        }
    }

    /// The oldest of what is inside is another one.
    fn go_on(&mut self) {
        self.state = State::Waits;
        while let Some(Held::Single(_)) = self.inside.front() {
            if let Some(Held::Single(command)) = self.inside.pop_front() {
                self.start(command);
            }
        }
        self.begin_pair();
    }

    fn begin_pair(&mut self) {
        let Some(Held::Pair(first, _)) = self.inside.front() else {
            return;
        };
        let meets = |span: &Span| span.overlaps(&first.span);
        if !self.flight.iter().flatten().any(meets) {
            let first = first.clone();
            self.state = State::Compares;
            self.start(first);
        }
    }

    /// Ends what waits for long of the commands that `of` names by their slots, a pair as a whole; their slots.
    pub(crate) fn cut(&mut self, of: impl Fn(u16) -> bool) -> Vec<u16> {
        let mut cut = Vec::new();
        if self.inside.is_empty() || self.state != State::Waits {
            return cut;
        }
        let front = matches!(self.inside.front(), Some(Held::Pair(first, _)) if of(first.slot));
        self.inside.retain(|held| match held {
            Held::Single(command) if of(command.slot) => {
                cut.push(command.slot);
                false
            }
            Held::Pair(first, second) if of(first.slot) => {
                cut.extend([first.slot, second.slot]);
                false
            }
            _ => true,
        });
        if front {
            self.go_on();
        }
        cut
    }
}
