// SPDX-License-Identifier: Apache-2.0

//! The progress word of a thread's log: the engine writes there which transaction it has completed.

use std::collections::VecDeque;

use host::Cpu;
use spec::nearpm::LINE;

use crate::{Result, Ticket};

pub(crate) struct Progress {
    /// Address of the word in host memory.
    word: u64,
    /// Its line, as it was loaded last.
    line: [u8; LINE as usize],
    /// Tickets whose commits are posted and not known to be durable, with their transactions. A
    /// transaction of a group has no commit yet: a later one stands for it.
    tickets: VecDeque<(u64, Ticket)>,
}

impl Progress {
    pub fn new(word: u64) -> Progress {
        Progress {
            word,
            line: [0; LINE as usize],
            tickets: VecDeque::new(),
        }
    }

    /// The commit of a transaction is posted.
    pub fn add(&mut self, transaction: u64, ticket: Ticket) {
        self.tickets.push_back((transaction, ticket));
    }

    /// All tickets are known to be durable.
    pub fn clear(&mut self) {
        self.tickets.clear();
    }

    /// Loads the word. Returns the last ticket that has become durable.
    pub fn poll(&mut self, cpu: &Cpu, device: usize) -> Result<Option<Ticket>> {
        let at = (self.word % LINE) as usize;
        cpu.load_host_line(device, self.word - at as u64, &mut self.line)?;
        let bytes = std::array::from_fn(|n| self.line[at + n]);
        let completed = u64::from_le_bytes(bytes);
        let mut durable = None;
        while let Some((transaction, ticket)) = self.tickets.front() {
            if *transaction > completed {
                break;
            }
            durable = Some(*ticket);
            self.tickets.pop_front();
        }
        Ok(durable)
    }
}
