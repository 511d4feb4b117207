//! Shadow doorbells (NVMe 1.4, 5.7 and 7.13; nvme_shadow): which are awake, and what is read or written about them.
//!
//! Asleep, a doorbell's EventIdx holds the value that the controller has seen last, so that the host's next change writes the
//! register, which only wakes it. Awake, the controller reads the shadow when it needs to: that of a submission queue when it
//! knows of no more commands, that of a completion queue when a command waits for room. If that brings nothing new, it
//! writes EventIdx, and once more reads; then the doorbell sleeps. Doorbells that come to be sleep, and have their EventIdx written.

use crate::cx::{Cx, Event};
use crate::port::{Arrival, Post, Purpose, BEAT};

use super::queues::Queues;

#[derive(Clone, Copy, Debug, Default)]
struct Bell {
    awake: bool,
    /// Its EventIdx is to be written.
    arm: bool,
    /// A command waits for room.
    full: bool,
    /// The value seen last.
    last: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    /// The shadow is being read, for the second time or the first.
    Reading {
        again: bool,
    },
    /// EventIdx is on its way; then the shadow is read again, unless that was all.
    Arming {
        only: bool,
    },
}

/// A doorbell's value out of the shadow page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rung {
    pub(crate) qid: usize,
    pub(crate) completion: bool,
    pub(crate) value: u16,
}

pub(crate) struct Shadow {
    /// Configured: pages of shadow doorbells and of EventIdx.
    pages: Option<(u64, u64)>,
    /// All doorbells that there were have their EventIdx.
    live: bool,
    bells: Vec<Bell>,
    state: State,
    /// The doorbell at work.
    at: usize,
    /// Its register has been written meanwhile.
    kicked: bool,
    /// Its queue has been created or deleted meanwhile.
    drop: bool,
    value: u32,
    got: usize,
    planned: bool,
}

impl Shadow {
    pub(crate) fn new(queues: usize) -> Shadow {
        Shadow {
            pages: None,
            live: false,
            bells: vec![Bell::default(); 2 * queues],
            state: State::Idle,
            at: 0,
            kicked: false,
            drop: false,
            value: 0,
            got: 0,
            planned: false,
        }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.state == State::Idle
    }

    /// Controller reset: back to doorbell registers.
    pub(crate) fn clear(&mut self) {
        *self = Shadow::new(self.bells.len() / 2);
    }

    /// Doorbell Buffer Config.
    pub(crate) fn configure(&mut self, shadow: u64, event_idx: u64, queues: &Queues, cx: &mut Cx) {
        let first = self.pages.is_none();
        self.pages = Some((shadow, event_idx));
        self.live = false;
        self.drop = true;
        for n in 2..self.bells.len() {
            if first {
                self.bells[n].awake = false;
            }
            self.bells[n].arm = exists(queues, n);
        }
        self.plan(cx);
    }

    /// A queue is created or deleted.
    pub(crate) fn changed(&mut self, qid: usize, completion: bool, created: bool, cx: &mut Cx) {
        let n = 2 * qid + usize::from(completion);
        self.bells[n] = Bell {
            arm: self.pages.is_some() && created && qid != 0,
            ..Bell::default()
        };
        if self.at == n {
            self.drop = true;
        }
        self.plan(cx);
    }

    /// All sleeping doorbells have their EventIdx.
    pub(crate) fn armed(&self) -> bool {
        self.pages.is_none()
            || !self.bells.iter().any(|bell| bell.arm)
                && !matches!(self.state, State::Arming { only: true })
    }

    /// A doorbell register is written; true if that only wakes the doorbell.
    pub(crate) fn kick(
        &mut self,
        qid: usize,
        completion: bool,
        queues: &Queues,
        cx: &mut Cx,
    ) -> bool {
        let n = 2 * qid + usize::from(completion);
        if self.pages.is_none() || qid == 0 || !exists(queues, n) {
            return false;
        }
        if !self.live {
            // The host has not been told of it yet.
            self.bells[n].arm = true;
            self.plan(cx);
            return false;
        }
        self.bells[n].awake = true;
        if self.at == n {
            self.kicked = true;
        }
        self.plan(cx);
        true
    }

    /// A doorbell's value has been taken by its queue.
    pub(crate) fn taken(&mut self, qid: usize, completion: bool, value: u16, cx: &mut Cx) {
        let bell = &mut self.bells[2 * qid + usize::from(completion)];
        bell.last = value;
        bell.full = false;
        self.plan(cx);
    }

    /// A command waits for room in a completion queue.
    pub(crate) fn full(&mut self, cqid: usize, cx: &mut Cx) {
        self.bells[2 * cqid + 1].full = true;
        self.plan(cx);
    }

    /// Something may be there to do.
    pub(crate) fn plan(&mut self, cx: &mut Cx) {
        if self.pages.is_some() && self.state == State::Idle && !self.planned {
            self.planned = true;
            cx.after(3, Event::Shadow);
        }
    }

    /// Goes on.
    pub(crate) fn go_on(&mut self, queues: &Queues, enabled: bool, cx: &mut Cx) {
        self.planned = false;
        match self.state {
            State::Idle => self.begin(queues, enabled, cx),
            State::Arming { only } => {
                if !cx.port.event_idx_sent {
                    return;
                }
                cx.port.event_idx_sent = false;
                if only || self.drop {
                    self.state = State::Idle;
                    self.settle(cx);
                } else {
                    self.ask(true, cx);
                }
            }
            State::Reading { .. } => {}
        }
    }

    fn settle(&mut self, cx: &mut Cx) {
        if self.armed() {
            self.live = self.pages.is_some();
        }
        self.plan(cx);
    }

    fn begin(&mut self, queues: &Queues, enabled: bool, cx: &mut Cx) {
        if self.armed() {
            self.live = self.pages.is_some();
        }
        if self.pages.is_none() || !enabled {
            return;
        }
        let wants = |n: usize| {
            let bell = &self.bells[n];
            let (qid, completion) = (n / 2, n % 2 == 1);
            let due = match completion {
                true => bell.full,
                false => !queues.sq(qid).is_some_and(|sq| sq.has_commands()),
            };
            bell.arm || bell.awake && exists(queues, n) && due
        };
        let count = self.bells.len();
        let Some(n) = (1..=count)
            .map(|k| (self.at + k) % count)
            .find(|&n| wants(n))
        else {
            return;
        };
        self.at = n;
        (self.kicked, self.drop) = (false, false);
        if std::mem::take(&mut self.bells[n].arm) {
            self.arm(true, cx);
        } else {
            self.ask(false, cx);
        }
    }

    /// Reads the shadow.
    fn ask(&mut self, again: bool, cx: &mut Cx) {
        let Some((page, _)) = self.pages else {
            self.state = State::Idle;
            return;
        };
        self.state = State::Reading { again };
        (self.value, self.got) = (0, 0);
        let addr = page + 4 * self.at as u64;
        let len = BEAT - addr % BEAT;
        cx.read(3, Purpose::Shadow, addr, len as u32);
    }

    /// Writes EventIdx.
    fn arm(&mut self, only: bool, cx: &mut Cx) {
        let Some((_, page)) = self.pages else {
            self.state = State::Idle;
            return;
        };
        self.state = State::Arming { only };
        let value = u32::from(self.bells[self.at].last);
        let cycle = cx.now + 2;
        let addr = page + 4 * self.at as u64;
        cx.port.event_idx_sent = false;
        cx.port.post(cycle, Post::EventIdx(addr, value));
        cx.plan(cycle, Event::Port);
    }

    /// The shadow has come: a value to ring, if it is new. An error: the host refuses the read.
    pub(crate) fn arrived(&mut self, arrival: &Arrival, cx: &mut Cx) -> Result<Option<Rung>, ()> {
        let State::Reading { again } = self.state else {
            return Ok(None);
        };
        let Some(data) = &arrival.data else {
            self.state = State::Idle;
            return Err(());
        };
        for &byte in data {
            if self.got < 4 {
                self.value |= u32::from(byte) << (8 * self.got);
                self.got += 1;
            }
        }
        if !arrival.last {
            return Ok(None);
        }
        let (n, value) = (self.at, self.value as u16);
        if self.drop {
            self.state = State::Idle;
            self.plan(cx);
            return Ok(None);
        }
        if value != self.bells[n].last {
            self.state = State::Idle;
            return Ok(Some(Rung {
                qid: n / 2,
                completion: n % 2 == 1,
                value,
            }));
        }
        if !again {
            self.arm(false, cx);
            return Ok(None);
        }
        // Sleep, unless something has happened meanwhile.
        if !self.kicked {
            self.bells[n].awake = false;
        }
        self.state = State::Idle;
        self.plan(cx);
        Ok(None)
    }
}

fn exists(queues: &Queues, n: usize) -> bool {
    match n % 2 {
        0 => queues.sq(n / 2).is_some(),
        _ => queues.cq(n / 2).is_some(),
    }
}
