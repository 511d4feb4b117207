// SPDX-License-Identifier: Apache-2.0

//! Interrupts: the MSI-X table as the host has written it, and the messages due for each vector.
//!
//! A mask that was read back is effective: no message arrives before the host removes the mask.
//! None is sent to an address that the host has replaced meanwhile (PCI Express 4.0, 6.1.4; PCI
//! Local Bus 3.0, 6.8.3.1).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sim::Time;

/// State of the function's messages in configuration space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Function {
    /// Messages are sent.
    #[default]
    On,
    /// All vectors are masked.
    Masked,
    /// MSI-X is disabled, and messages are dropped.
    Disabled,
    /// MSI-X is enabled again; dropped messages do not arrive any more.
    Enabled,
}

/// The host's side of MSI-X.
#[derive(Debug, Default)]
pub struct Messages {
    /// The table: address and data, and the vector.
    table: HashMap<(u64, u32), u16>,
    /// Vectors that are masked.
    masked: BTreeSet<u16>,
    /// Function mask and enable, and whether messages in flight have arrived since the last change.
    function: (Function, bool),
    /// Vectors whose mask is effective from the answer to this read on.
    masking: Option<(u32, u16)>,
    /// Vectors with a completion since the last message, and its time.
    due: BTreeMap<u16, Time>,
    /// Time of each vector's last completion, or of its unmasking with a pending message.
    causes: BTreeMap<u16, Time>,
    /// Completion queues of each vector, by queue.
    queues: BTreeMap<u16, u16>,
    /// Vectors whose pending state is undetermined: they have or had several queues, or lost one.
    unsure: BTreeSet<u16>,
}

impl Messages {
    /// The controller was reset: no queue is left, and nothing is pending.
    pub fn reset(&mut self) {
        self.due.clear();
        self.causes.clear();
        self.queues.clear();
        self.unsure.clear();
    }

    /// The table is rewritten. Queues and their due messages stay.
    pub fn clear(&mut self) {
        self.table.clear();
        self.masked.clear();
        self.masking = None;
    }

    /// True if configuration space permits messages.
    pub fn permitted(&self) -> bool {
        matches!(self.function.0, Function::On | Function::Enabled)
    }

    /// All vectors of the function are masked, or MSI-X is disabled. Messages in flight may still
    /// arrive.
    pub fn suspend(&mut self, disabled: bool) {
        self.function = (Function::Masked, false);
        if disabled {
            self.function.0 = Function::Disabled;
            self.due.clear();
        }
    }

    /// No message is in flight any more.
    pub fn suspended(&mut self) {
        self.function.1 = true;
    }

    /// Messages are permitted again; pending messages are sent.
    pub fn resume(&mut self, now: Time) {
        self.function = match self.function.0 {
            Function::Masked => (Function::On, false),
            _ => (Function::Enabled, false),
        };
        for (&vector, since) in &mut self.due {
            *since = now;
            self.causes.insert(vector, now);
        }
    }

    /// Completions from now on require messages.
    pub fn resumed(&mut self) {
        self.function = (Function::On, false);
    }

    /// Sets an entry of the table.
    pub fn set_entry(&mut self, vector: u16, addr: u64, data: u32) {
        self.table.retain(|_, v| *v != vector);
        self.table.insert((addr, data), vector);
    }

    /// Masks a vector from now on.
    pub fn mask(&mut self, vector: u16) {
        self.masked.insert(vector);
    }

    /// Masks a vector from the answer to this read on.
    pub fn mask_from(&mut self, tag: u32, vector: u16) {
        self.masking = Some((tag, vector));
    }

    /// A read is answered.
    pub fn answered(&mut self, tag: u32) {
        if let Some((_, vector)) = self.masking.take_if(|m| m.0 == tag) {
            self.mask(vector);
        }
    }

    /// Unmasks a vector.
    pub fn unmask(&mut self, vector: u16, now: Time) {
        self.masked.remove(&vector);
        if let Some(since) = self.due.get_mut(&vector) {
            *since = now;
            self.causes.insert(vector, now);
        }
    }

    /// A completion queue was created, with its vector.
    pub fn opened(&mut self, qid: u16, vector: Option<u16>) {
        if let Some(vector) = vector {
            if self.queues.values().any(|&v| v == vector) {
                self.unsure.insert(vector);
            }
            self.queues.insert(qid, vector);
        }
    }

    /// A completion queue was deleted: its pending messages may arrive or not.
    pub fn closed(&mut self, qid: u16) {
        if let Some(vector) = self.queues.remove(&qid) {
            if self.due.remove(&vector).is_some() {
                self.unsure.insert(vector);
            }
        }
    }

    /// A completion has arrived.
    pub fn completed(&mut self, vector: u16, now: Time) {
        if !matches!(self.function.0, Function::Disabled | Function::Enabled) {
            self.due.entry(vector).or_insert(now);
        }
        self.causes.insert(vector, now);
    }

    /// The host has emptied a queue: an interrupt that is not in flight by now may be omitted. A
    /// coalesced interrupt may be delayed for long.
    pub fn emptied(&mut self, vector: u16, now: Time, coalesced: bool) {
        let held = coalesced || self.masked.contains(&vector) || !self.permitted();
        if self
            .due
            .get(&vector)
            .is_some_and(|&since| held || since + Time::us(1) > now)
        {
            self.due.remove(&vector);
        }
    }

    /// Vectors whose interrupt is due for longer than this.
    pub fn overdue(&self, now: Time, bound: Time) -> Vec<u16> {
        if !self.permitted() {
            return Vec::new();
        }
        let late = |&(v, since): &(&u16, &Time)| {
            !self.masked.contains(v) && !self.unsure.contains(v) && *since + bound <= now
        };
        self.due.iter().filter(late).map(|(&v, _)| v).collect()
    }

    /// Checks a message. The controller knows immediately which queues are empty, so a message is a
    /// failure if its last cause is older than `late`.
    pub fn receive(
        &mut self,
        now: Time,
        addr: u64,
        data: &[u8],
        late: Option<Time>,
    ) -> Result<(), String> {
        let word = <[u8; 4]>::try_from(data).map(u32::from_le_bytes);
        let Some(&vector) = word.ok().and_then(|word| self.table.get(&(addr, word))) else {
            return Err(format!(
                "an interrupt message {data:02x?} at {addr:#x} that no table entry holds"
            ));
        };
        if self.masked.contains(&vector) {
            return Err(format!("a message of vector {vector}, which is masked"));
        }
        if !self.permitted() && self.function.1 {
            return Err(format!(
                "a message of vector {vector}, while the function's are masked or disabled"
            ));
        }
        let late = late.filter(|_| !self.unsure.contains(&vector));
        let cause = self.causes.get(&vector);
        let stale = late.is_some_and(|late| cause.is_none_or(|&at| at + late < now));
        if self.due.remove(&vector).is_none() && stale {
            return Err(format!(
                "a message of vector {vector}, whose queue was emptied long ago"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Messages {
        let mut messages = Messages::default();
        messages.opened(1, Some(2));
        messages.set_entry(2, 0xFEE0_0000, 7);
        messages
    }

    fn send(messages: &mut Messages, us: u64) -> Result<(), String> {
        let late = Some(Time::us(10));
        messages.receive(Time::us(us), 0xFEE0_0000, &[7, 0, 0, 0], late)
    }

    #[test]
    fn interrupt_mask_holds_from_its_read_back_on() {
        let mut messages = table();
        messages.completed(2, Time::us(1));
        messages.mask_from(5, 2);
        messages.answered(4);
        assert!(send(&mut messages, 1).is_ok(), "it may be on its way");
        messages.answered(5);
        messages.completed(2, Time::us(2));
        assert!(messages.overdue(Time::us(90), Time::us(5)).is_empty());
        assert!(send(&mut messages, 2).is_err());
        messages.unmask(2, Time::us(50));
        assert!(send(&mut messages, 51).is_ok());
        messages.set_entry(2, 0xFEE0_0010, 8);
        assert!(
            send(&mut messages, 52).is_err(),
            "the entry is another one now"
        );
    }

    #[test]
    fn interrupt_is_not_sent_for_what_was_polled() {
        let mut messages = table();
        messages.mask(2);
        messages.completed(2, Time::us(1));
        messages.emptied(2, Time::us(9), false);
        messages.unmask(2, Time::us(30));
        assert!(messages.overdue(Time::us(90), Time::us(5)).is_empty());
        assert!(send(&mut messages, 31).is_err());
        messages.completed(2, Time::us(40));
        assert_eq!(messages.overdue(Time::us(90), Time::us(5)), [2]);
        messages.closed(1);
        assert!(send(&mut messages, 95).is_ok(), "nobody can tell");
    }

    #[test]
    fn interrupt_queues_that_share_a_vector_are_judged_separately() {
        let mut messages = table();
        messages.completed(2, Time::us(1));
        messages.clear();
        messages.set_entry(2, 0xFEE0_0000, 7);
        messages.opened(3, Some(2));
        messages.mask(2);
        messages.emptied(2, Time::us(2), false);
        messages.unmask(2, Time::us(30));
        assert!(
            send(&mut messages, 31).is_ok(),
            "the other queue may not be empty"
        );
    }

    #[test]
    fn interrupt_that_is_coalesced_need_not_come_once_its_queue_is_empty() {
        for (coalesced, owed) in [(false, vec![2]), (true, vec![])] {
            let mut messages = table();
            messages.completed(2, Time::us(1));
            messages.emptied(2, Time::us(9), coalesced);
            assert_eq!(messages.overdue(Time::us(90), Time::us(5)), owed);
        }
    }

    #[test]
    fn interrupt_held_back_by_the_function_comes_later_or_is_dropped() {
        let mut messages = table();
        messages.suspend(false);
        messages.completed(2, Time::us(1));
        assert!(send(&mut messages, 1).is_ok(), "it may be on its way");
        messages.suspended();
        messages.completed(2, Time::us(2));
        messages.reset();
        messages.clear();
        messages.opened(1, Some(2));
        messages.set_entry(2, 0xFEE0_0000, 7);
        messages.completed(2, Time::us(3));
        assert!(send(&mut messages, 3).is_err());
        messages.completed(2, Time::us(4));
        assert!(messages.overdue(Time::us(90), Time::us(5)).is_empty());
        messages.resume(Time::us(50));
        messages.resumed();
        assert_eq!(messages.overdue(Time::us(90), Time::us(5)), [2]);
        assert!(send(&mut messages, 51).is_ok());
        messages.suspend(true);
        messages.suspended();
        messages.completed(2, Time::us(60));
        messages.resume(Time::us(100));
        messages.completed(2, Time::us(101));
        messages.resumed();
        assert!(messages.overdue(Time::us(190), Time::us(5)).is_empty());
        messages.completed(2, Time::us(200));
        assert_eq!(messages.overdue(Time::us(290), Time::us(5)), [2]);
    }
}
