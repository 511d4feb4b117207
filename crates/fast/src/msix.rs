//! MSI-X: table, pending bits, messages (hw/ip/msix).

/// Bytes of an entry of the table.
const ENTRY: u64 = 16;

/// The bits that the table keeps of each word of an entry: address low and high, data, control.
const KEPT: [u32; 4] = [!3, u32::MAX, u32::MAX, 1];
const CONTROL: usize = 3;

pub(crate) struct Msix {
    /// Vectors of the controller; those of engines come behind.
    own: usize,
    table: Vec<[u32; 4]>,
    pending: Vec<bool>,
    enabled: bool,
    masked: bool,
    /// Messages that are ready to leave: address, data.
    ready: Vec<(u64, u32)>,
}

impl Msix {
    pub(crate) fn new(own: usize, raised: usize, (enabled, masked): (bool, bool)) -> Msix {
        Msix {
            own,
            table: vec![[0, 0, 0, 1]; own + raised],
            pending: vec![false; own + raised],
            enabled,
            masked,
            ready: Vec::new(),
        }
    }

    /// Function-level enable and mask.
    pub(crate) fn set(&mut self, enabled: bool, masked: bool) {
        (self.enabled, self.masked) = (enabled, masked);
        if !enabled {
            self.pending.fill(false);
        }
        (0..self.table.len()).for_each(|vector| self.fire(vector));
    }

    /// Asks for an interrupt.
    pub(crate) fn request(&mut self, vector: usize) {
        if self.enabled && vector < self.pending.len() {
            self.pending[vector] = true;
            self.fire(vector);
        }
    }

    fn masks(&self, vector: usize) -> bool {
        self.masked || self.table[vector][CONTROL] & 1 == 1
    }

    /// Sends the message of a vector that is pending and not masked.
    fn fire(&mut self, vector: usize) {
        if self.pending[vector] && self.enabled && !self.masks(vector) {
            self.pending[vector] = false;
            let [low, high, data, _] = self.table[vector];
            self.ready
                .push((u64::from(high) << 32 | u64::from(low), data));
        }
    }

    /// The cause of a vector's pending bit is no more.
    pub(crate) fn withdraw(&mut self, vector: usize) {
        if vector < self.pending.len() && self.masks(vector) {
            self.pending[vector] = false;
        }
    }

    /// A reset of the controller: its vectors are not pending any more.
    pub(crate) fn clear(&mut self) {
        self.pending[..self.own].fill(false);
    }

    /// Takes the messages that are ready.
    pub(crate) fn take(&mut self) -> Vec<(u64, u32)> {
        std::mem::take(&mut self.ready)
    }

    /// Something is ready.
    pub(crate) fn has_messages(&self) -> bool {
        !self.ready.is_empty()
    }

    /// A word of the table, by its offset in it.
    pub(crate) fn read(&self, offset: u64) -> u32 {
        let entry = self.table.get((offset / ENTRY) as usize);
        entry.map_or(0, |entry| entry[(offset % ENTRY / 4) as usize])
    }

    /// Writes a whole word of the table; vectors that do not exist, and parts of words, change nothing.
    pub(crate) fn write(&mut self, offset: u64, value: u32) {
        let (vector, word) = ((offset / ENTRY) as usize, (offset % ENTRY / 4) as usize);
        if let Some(entry) = self.table.get_mut(vector) {
            entry[word] = value & KEPT[word];
            self.fire(vector);
        }
    }

    /// Pending bits, by word.
    pub(crate) fn pending(&self, word: usize) -> u32 {
        let bits = self.pending.iter().skip(32 * word).take(32);
        (0..)
            .zip(bits)
            .fold(0, |w, (n, &on)| w | u32::from(on) << n)
    }
}
