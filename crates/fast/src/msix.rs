// SPDX-License-Identifier: Apache-2.0

//! MSI-X: table, pending bits, messages (hw/ip/msix).

/// Bytes of an entry of the table.
const ENTRY_BYTES: u64 = 16;

/// Writable bits of each word of an entry: address low and high, data, control.
const WRITABLE: [u32; 4] = [!3, u32::MAX, u32::MAX, 1];
const CONTROL: usize = 3;

/// An interrupt message.
pub(crate) struct Message {
    pub(crate) vector: usize,
    pub(crate) addr: u64,
    pub(crate) data: u32,
}

pub(crate) struct Msix {
    /// Vectors of the controller; the vectors of engines follow.
    controller_vectors: usize,
    table: Vec<[u32; 4]>,
    pending: Vec<bool>,
    enabled: bool,
    masked: bool,
    /// Number of pending vectors.
    waiting: usize,
    /// The vector of the last message.
    last: usize,
}

impl Msix {
    pub(crate) fn new(
        controller_vectors: usize,
        engine_vectors: usize,
        (enabled, masked): (bool, bool),
    ) -> Msix {
        Msix {
            controller_vectors,
            table: vec![[0, 0, 0, 1]; controller_vectors + engine_vectors],
            pending: vec![false; controller_vectors + engine_vectors],
            enabled,
            masked,
            waiting: 0,
            last: 0,
        }
    }

    /// Sets function-level enable and mask.
    pub(crate) fn set(&mut self, enabled: bool, masked: bool) {
        (self.enabled, self.masked) = (enabled, masked);
        if !enabled {
            self.pending.fill(false);
            self.waiting = 0;
        }
    }

    fn set_pending(&mut self, vector: usize, pending: bool) {
        let was = std::mem::replace(&mut self.pending[vector], pending);
        self.waiting = self.waiting + usize::from(pending) - usize::from(was);
    }

    /// Requests an interrupt. Requests before the message is sent are merged.
    pub(crate) fn request(&mut self, vector: usize) {
        if self.enabled {
            self.set_pending(vector, true);
        }
    }

    fn masks(&self, vector: usize) -> bool {
        self.masked || self.table[vector][CONTROL] & 1 == 1
    }

    /// Clears a pending bit whose cause is gone.
    pub(crate) fn withdraw(&mut self, vector: usize) {
        if self.masks(vector) {
            self.set_pending(vector, false);
        }
    }

    /// Clears the pending bits of the controller's vectors when it is reset.
    pub(crate) fn clear(&mut self) {
        (0..self.controller_vectors).for_each(|vector| self.set_pending(vector, false));
    }

    /// The next message of a vector that is pending and not masked, in rotation.
    pub(crate) fn next_message(&mut self) -> Option<Message> {
        if self.waiting == 0 || !self.enabled {
            return None;
        }
        let count = self.table.len();
        let fires = |&vector: &usize| self.pending[vector] && !self.masks(vector);
        let vector = (1..=count).map(|n| (self.last + n) % count).find(fires)?;
        self.set_pending(vector, false);
        self.last = vector;
        let [low, high, data, _] = self.table[vector];
        Some(Message {
            vector,
            addr: u64::from(high) << 32 | u64::from(low),
            data,
        })
    }

    /// Reads a word of the table at an offset.
    pub(crate) fn read(&self, offset: u64) -> u32 {
        let entry = self.table.get((offset / ENTRY_BYTES) as usize);
        entry.map_or(0, |entry| entry[(offset % ENTRY_BYTES / 4) as usize])
    }

    /// Writes a whole word of the table. Vectors that do not exist and partial words have no
    /// effect.
    pub(crate) fn write(&mut self, offset: u64, value: u32) {
        let (vector, word) = (
            (offset / ENTRY_BYTES) as usize,
            (offset % ENTRY_BYTES / 4) as usize,
        );
        if let Some(entry) = self.table.get_mut(vector) {
            entry[word] = value & WRITABLE[word];
        }
    }

    /// A word of pending bits.
    pub(crate) fn pending(&self, word: usize) -> u32 {
        let bits = self.pending.iter().skip(32 * word).take(32);
        (0..)
            .zip(bits)
            .fold(0, |w, (n, &on)| w | u32::from(on) << n)
    }
}
