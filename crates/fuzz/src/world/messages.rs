//! Interrupts: the table as the host has written it, and what each vector owes.
//!
//! A mask that was read back holds: no message comes before the host takes it away, and none to an address that
//! the host has replaced meanwhile (PCI Express 4.0, 6.1.4; PCI Local Bus 3.0, 6.8.3.1).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sim::Time;

/// A message without a completion is a breach if the last cause is so long ago.
const LATE: Time = Time(10_000_000);

/// The host's side of MSI-X.
#[derive(Debug, Default)]
pub struct Messages {
    /// The table: address and data, and the vector.
    table: HashMap<(u64, u32), u16>,
    /// Vectors that are masked.
    masked: BTreeSet<u16>,
    /// Vectors whose mask holds from the answer to this read on.
    masking: Option<(u32, u16)>,
    /// Vectors with a completion since the last message, and when it came.
    due: BTreeMap<u16, Time>,
    /// When each vector had its last completion, or was freed of its mask with one pending.
    causes: BTreeMap<u16, Time>,
    /// Completion queues of each vector, by queue.
    queues: BTreeMap<u16, u16>,
    /// Vectors of which nobody can say whether they have something pending: they have or had several queues, or lost one.
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

    /// The table is written anew.
    pub fn clear(&mut self) {
        *self = Messages::default();
    }

    /// An entry of the table.
    pub fn set(&mut self, vector: u16, addr: u64, data: u32) {
        self.table.retain(|_, v| *v != vector);
        self.table.insert((addr, data), vector);
    }

    /// A vector is masked from now on.
    pub fn mask(&mut self, vector: u16) {
        self.masked.insert(vector);
    }

    /// A vector is masked from the answer to this read on.
    pub fn mask_from(&mut self, tag: u32, vector: u16) {
        self.masking = Some((tag, vector));
    }

    /// A read is answered.
    pub fn answered(&mut self, tag: u32) {
        if let Some((_, vector)) = self.masking.take_if(|m| m.0 == tag) {
            self.mask(vector);
        }
    }

    /// The mask goes.
    pub fn unmask(&mut self, vector: u16, now: Time) {
        self.masked.remove(&vector);
        if let Some(since) = self.due.get_mut(&vector) {
            *since = now;
            self.causes.insert(vector, now);
        }
    }

    /// A completion queue comes, with its vector.
    pub fn opened(&mut self, qid: u16, vector: Option<u16>) {
        if let Some(vector) = vector {
            if self.queues.values().any(|&v| v == vector) {
                self.unsure.insert(vector);
            }
            self.queues.insert(qid, vector);
        }
    }

    /// A completion queue goes: what it had pending may come, or not.
    pub fn closed(&mut self, qid: u16) {
        if let Some(vector) = self.queues.remove(&qid) {
            if self.due.remove(&vector).is_some() {
                self.unsure.insert(vector);
            }
        }
    }

    /// A completion has come.
    pub fn completed(&mut self, vector: u16, now: Time) {
        self.due.entry(vector).or_insert(now);
        self.causes.insert(vector, now);
    }

    /// The host has emptied a queue: an interrupt that is not on its way by now need not come any more.
    pub fn emptied(&mut self, vector: u16, now: Time) {
        let masked = self.masked.contains(&vector);
        if self
            .due
            .get(&vector)
            .is_some_and(|&since| masked || since + Time::us(1) > now)
        {
            self.due.remove(&vector);
        }
    }

    /// Vectors that owe an interrupt for longer than this.
    pub fn owed(&self, now: Time, patience: Time) -> Vec<u16> {
        let late = |&(v, since): &(&u16, &Time)| {
            !self.masked.contains(v) && !self.unsure.contains(v) && *since + patience <= now
        };
        self.due.iter().filter(late).map(|(&v, _)| v).collect()
    }

    /// A message. `exact`: the controller knows at once which queues are empty.
    pub fn take(&mut self, now: Time, addr: u64, data: &[u8], exact: bool) -> Result<(), String> {
        let word = <[u8; 4]>::try_from(data).map(u32::from_le_bytes);
        let Some(&vector) = word.ok().and_then(|word| self.table.get(&(addr, word))) else {
            return Err(format!(
                "an interrupt message {data:02x?} at {addr:#x} that no table entry holds"
            ));
        };
        if self.masked.contains(&vector) {
            return Err(format!("a message of vector {vector}, which is masked"));
        }
        let known = exact && !self.unsure.contains(&vector);
        let cause = self.causes.get(&vector);
        if self.due.remove(&vector).is_none() && known && cause.is_none_or(|&at| at + LATE < now) {
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
        messages.set(2, 0xFEE0_0000, 7);
        messages
    }

    fn send(messages: &mut Messages, us: u64) -> Result<(), String> {
        messages.take(Time::us(us), 0xFEE0_0000, &[7, 0, 0, 0], true)
    }

    #[test]
    fn a_mask_holds_from_its_read_back_on() {
        let mut messages = table();
        messages.completed(2, Time::us(1));
        messages.mask_from(5, 2);
        messages.answered(4);
        assert!(send(&mut messages, 1).is_ok(), "it may be on its way");
        messages.answered(5);
        messages.completed(2, Time::us(2));
        assert!(messages.owed(Time::us(90), Time::us(5)).is_empty());
        assert!(send(&mut messages, 2).is_err());
        messages.unmask(2, Time::us(50));
        assert!(send(&mut messages, 51).is_ok());
        messages.set(2, 0xFEE0_0010, 8);
        assert!(
            send(&mut messages, 52).is_err(),
            "the entry is another one now"
        );
    }

    #[test]
    fn what_was_polled_is_not_reported() {
        let mut messages = table();
        messages.mask(2);
        messages.completed(2, Time::us(1));
        messages.emptied(2, Time::us(9));
        messages.unmask(2, Time::us(30));
        assert!(messages.owed(Time::us(90), Time::us(5)).is_empty());
        assert!(send(&mut messages, 31).is_err());
        messages.completed(2, Time::us(40));
        assert_eq!(messages.owed(Time::us(90), Time::us(5)), [2]);
        messages.closed(1);
        assert!(send(&mut messages, 95).is_ok(), "nobody can tell");
    }
}
