// SPDX-License-Identifier: Apache-2.0

//! Submission and completion queues, and the arbitration between them (NVMe 1.4, 4.1 and 4.13).

use spec::nvme::{Priority, Weights};

/// A submission queue.
#[derive(Clone, Debug)]
pub(crate) struct Submission {
    /// The host has not deleted it.
    pub(crate) valid: bool,
    pub(crate) base: u64,
    /// Entries, 0's based.
    pub(crate) size: u32,
    pub(crate) cqid: usize,
    pub(crate) priority: Priority,
    pub(crate) tail: u32,
    /// The next entry to fetch.
    pub(crate) head: u32,
    /// The next entry to arrive, as reported to the host.
    pub(crate) arrived: u32,
    /// Commands that were fetched and have not ended.
    pub(crate) in_flight: u32,
    /// Its completion queue had no room at the last arbitration.
    pub(crate) blocked: bool,
}

/// A completion queue.
#[derive(Clone, Debug)]
pub(crate) struct Completion {
    pub(crate) base: u64,
    /// Entries, 0's based.
    pub(crate) size: u32,
    pub(crate) head: u32,
    pub(crate) tail: u32,
    /// The next entry that is not reserved.
    pub(crate) reserve: u32,
    pub(crate) phase: bool,
    /// The interrupt vector, if interrupts are enabled.
    pub(crate) vector: Option<usize>,
}

/// The next index in a queue whose 0's based size is `size`.
pub(crate) fn next_index(index: u32, size: u32) -> u32 {
    match index == size {
        true => 0,
        false => index + 1,
    }
}

impl Submission {
    /// It has commands to fetch, and its completion queue had room.
    fn is_ready(&self) -> bool {
        self.has_commands() && !self.blocked
    }

    /// It has entries to fetch.
    pub(crate) fn has_commands(&self) -> bool {
        self.valid && self.tail != self.head
    }
}

impl Completion {
    /// Reserves an entry; false if there is none.
    pub(crate) fn reserve(&mut self) -> bool {
        let after = next_index(self.reserve, self.size);
        let room = after != self.head;
        if room {
            self.reserve = after;
        }
        room
    }

    /// Returns the last reservation.
    pub(crate) fn unreserve(&mut self) {
        self.reserve = match self.reserve {
            0 => self.size,
            n => n - 1,
        };
    }

    /// Entries from one index to another.
    fn distance(&self, from: u32, to: u32) -> u32 {
        match to >= from {
            true => to - from,
            false => to + self.size + 1 - from,
        }
    }

    /// Whether the host may set the head to this value.
    pub(crate) fn may_move(&self, head: u32) -> bool {
        head <= self.size && self.distance(self.head, head) <= self.distance(self.head, self.tail)
    }
}

/// All queues; index 0 is the admin queue.
pub(crate) struct Queues {
    pub(crate) submission: Vec<Option<Submission>>,
    pub(crate) completion: Vec<Option<Completion>>,
    arbiter: Arbiter,
}

impl Queues {
    pub(crate) fn new(count: usize) -> Queues {
        Queues {
            submission: vec![None; count],
            completion: vec![None; count],
            arbiter: Arbiter::default(),
        }
    }

    /// Removes all queues.
    pub(crate) fn clear(&mut self) {
        self.submission.fill(None);
        self.completion.fill(None);
    }

    pub(crate) fn count(&self) -> usize {
        self.submission.len()
    }

    /// A submission queue that exists.
    pub(crate) fn sq(&self, qid: usize) -> Option<&Submission> {
        self.submission.get(qid)?.as_ref().filter(|sq| sq.valid)
    }

    /// A submission queue with commands in flight. It may have been deleted by the host.
    pub(crate) fn sq_mut(&mut self, qid: usize) -> &mut Submission {
        let sq = self.submission[qid].as_mut();
        sq.expect("a queue stays until its commands have ended")
    }

    /// The completion queue of a submission queue.
    pub(crate) fn cq_mut(&mut self, cqid: usize) -> &mut Completion {
        let cq = self.completion[cqid].as_mut();
        cq.expect("a completion queue stays while submission queues use it")
    }

    /// A completion queue that exists.
    pub(crate) fn cq(&self, qid: usize) -> Option<&Completion> {
        self.completion.get(qid)?.as_ref()
    }

    /// An I/O queue exists.
    pub(crate) fn any_io(&self) -> bool {
        (1..self.count()).any(|qid| self.sq(qid).is_some() || self.cq(qid).is_some())
    }

    /// Clears the blocked state after heads have moved or queues were created.
    pub(crate) fn unblock(&mut self) {
        self.submission
            .iter_mut()
            .flatten()
            .for_each(|sq| sq.blocked = false);
    }

    /// A queue has a command to fetch: the admin queue if `admin`, an I/O queue if `io`.
    pub(crate) fn any_ready(&self, admin: bool, io: bool) -> bool {
        let wants = |sq: &Option<Submission>| sq.as_ref().is_some_and(Submission::is_ready);
        let (first, others) = self.submission.split_at(1);
        admin && first.iter().any(wants) || io && others.iter().any(wants)
    }

    /// The next queue to fetch from.
    pub(crate) fn arbitrate(
        &mut self,
        admin: bool,
        io: bool,
        weights: Option<Weights>,
    ) -> Option<usize> {
        let submission = &self.submission;
        let wants = |qid: usize| {
            let allowed = if qid == 0 { admin } else { io };
            let sq = submission[qid]
                .as_ref()
                .filter(|sq| allowed && sq.is_ready());
            sq.map(|sq| sq.priority)
        };
        self.arbiter.arbitrate(submission.len(), wants, weights)
    }

    /// Accounts for a command of the queue that was chosen last.
    pub(crate) fn consume_credit(&mut self) {
        self.arbiter.consume_credit();
    }
}

/// Round robin over all queues, or weighted by class (nvme_arbiter.sv).
#[derive(Clone, Debug, Default)]
struct Arbiter {
    /// The queue served last, of all and of each class.
    last: [usize; 5],
    /// Credits left in this round for high, medium and low priority.
    credit: [u32; 3],
    class: Option<usize>,
}

const ALL: usize = 4;

impl Arbiter {
    /// Chooses a queue; `wants` returns the priority of a queue with a command to fetch.
    fn arbitrate(
        &mut self,
        count: usize,
        wants: impl Fn(usize) -> Option<Priority>,
        weights: Option<Weights>,
    ) -> Option<usize> {
        self.class = None;
        let Some(weights) = weights else {
            return self.round_robin(ALL, count, |qid| wants(qid).is_some());
        };
        if wants(0).is_some() {
            return Some(0);
        }
        let has = |class: Priority| (1..count).any(|qid| wants(qid) == Some(class));
        let classes = [Priority::High, Priority::Medium, Priority::Low];
        let class = if has(Priority::Urgent) {
            Priority::Urgent
        } else {
            let some = classes.map(has);
            let left = |c: &usize, credit: &[u32; 3]| some[*c] && credit[*c] > 0;
            if !(0..3).any(|c| left(&c, &self.credit)) {
                self.credit = [weights.high, weights.medium, weights.low].map(u32::from);
            }
            let c = (0..3).find(|c| left(c, &self.credit))?;
            self.class = Some(c);
            classes[c]
        };
        self.round_robin(class as usize, count, |qid| {
            qid > 0 && wants(qid) == Some(class)
        })
    }

    fn round_robin(
        &mut self,
        of: usize,
        count: usize,
        wants: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let last = self.last[of];
        let qid = (last + 1..count).chain(0..=last).find(|&qid| wants(qid))?;
        self.last[of] = qid;
        Some(qid)
    }

    fn consume_credit(&mut self) {
        if let Some(class) = self.class.take() {
            self.credit[class] -= 1;
        }
    }
}
