// SPDX-License-Identifier: Apache-2.0

//! Which transactions of a thread are durable: tickets, and what waits for them.

/// A transaction that becomes durable later; see [`Thread::run_later`](crate::Thread::run_later).
///
/// The transactions of a thread become durable in their order, so a ticket stands for all up to its
/// own. A transaction that has changed nothing has the ticket of the one before it, whose changes
/// it may have read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

impl Ticket {
    /// The number of the ticket: transactions of the thread that it stands for.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The ticket of this number.
    pub fn from_number(number: u64) -> Ticket {
        Ticket(number)
    }
}

/// Is called once, when its transaction is durable.
pub(crate) type Callback = Box<dyn FnOnce(Ticket) + Send>;

/// The tickets of a thread.
#[derive(Default)]
pub(crate) struct Durability {
    /// The last ticket.
    committed: u64,
    /// The last ticket that is known to be durable.
    durable: u64,
    callbacks: Vec<(Ticket, Callback)>,
    /// Objects whose place is free when the thread's transactions are durable.
    pub freed: Vec<u64>,
}

impl Durability {
    /// Numbers a transaction that has changed something.
    pub fn commit(&mut self) {
        self.committed += 1;
    }

    /// The ticket of the last transaction.
    pub fn last(&self) -> Ticket {
        Ticket(self.committed)
    }

    /// The last ticket that is known to be durable.
    pub fn durable(&self) -> Ticket {
        Ticket(self.durable)
    }

    /// Number of transactions that are not known to be durable.
    pub fn pending(&self) -> u64 {
        self.committed - self.durable
    }

    /// Has a function called when a ticket is durable.
    pub fn add_callback(&mut self, ticket: Ticket, callback: Callback) {
        self.callbacks.push((ticket, callback));
    }

    /// Records that the transactions up to a ticket are durable. Returns the functions to call, in
    /// the order of their tickets.
    pub fn advance(&mut self, to: Ticket) -> Vec<(Ticket, Callback)> {
        self.durable = self.durable.max(to.0);
        let due = |waits: &(Ticket, Callback)| waits.0 .0 <= self.durable;
        let (mut due, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.callbacks)
            .into_iter()
            .partition(due);
        self.callbacks = rest;
        due.sort_by_key(|waits| waits.0);
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn tickets_become_durable_in_order() {
        let called = Arc::<Mutex<Vec<u64>>>::default();
        let mut tickets = Durability::default();
        assert_eq!(tickets.pending(), 0);
        for number in [3, 1, 2] {
            tickets.commit();
            let called = called.clone();
            let callback = move |ticket: Ticket| called.lock().unwrap().push(ticket.number());
            tickets.add_callback(Ticket(number), Box::new(callback));
        }
        let mut advance = |to| {
            let due = tickets.advance(Ticket(to));
            due.into_iter()
                .for_each(|(ticket, callback)| callback(ticket));
            (called.lock().unwrap().clone(), tickets.pending())
        };
        assert_eq!(advance(2), (vec![1, 2], 1));
        assert_eq!(advance(1), (vec![1, 2], 1), "it does not go back");
        assert_eq!(advance(3), (vec![1, 2, 3], 0));
    }
}
