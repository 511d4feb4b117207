// SPDX-License-Identifier: Apache-2.0

//! Quality of service (hw/ip/qos): credits of each master in each channel, and its weight.

use spec::regs::{qos, Field};

/// Credits of a master in each channel, in lines of 64 bytes, and its weight. 0 credits are no
/// limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Credits {
    /// Largest number of lines requested and not received.
    pub reads: u32,
    /// Largest number of lines written and not answered.
    pub writes: u32,
    /// Limit of both directions while the controller has lines outstanding in the channel; 0 adds
    /// none.
    pub beside: u32,
    /// Lines of a round; 0 counts as 1.
    pub weight: u32,
}

/// The registers.
#[derive(Clone, Debug)]
pub(crate) struct Qos([[u32; 4]; MASTERS]);

const MASTERS: usize = 2 + qos::ENGINE_COUNT as usize;

/// Fields of a master's registers.
fn fields(master: usize) -> [Field; 4] {
    use qos::{engine, nvme, pm};
    match master {
        0 => [
            pm::reads::LINES,
            pm::writes::LINES,
            pm::weight::LINES,
            pm::beside::LINES,
        ],
        1 => [
            nvme::reads::LINES,
            nvme::writes::LINES,
            nvme::weight::LINES,
            nvme::beside::LINES,
        ],
        _ => [
            engine::reads::LINES,
            engine::writes::LINES,
            engine::weight::LINES,
            engine::beside::LINES,
        ],
    }
}

impl Qos {
    pub fn new() -> Qos {
        let mut all = [[0; 4]; MASTERS];
        for (master, words) in all.iter_mut().enumerate() {
            *words = fields(master).map(|field| field.reset() as u32);
        }
        Qos(all)
    }

    fn find(offset: u64) -> Option<(usize, usize)> {
        let (master, word) = (
            (offset / qos::ENGINE_STRIDE) as usize,
            (offset % qos::ENGINE_STRIDE / 4) as usize,
        );
        (master < MASTERS).then_some((master, word))
    }

    /// Reads a word.
    pub fn read(&self, offset: u64) -> u32 {
        Qos::find(offset).map_or(0, |(master, word)| self.0[master][word])
    }

    /// Writes the bits of a word that `bits` selects.
    pub fn write(&mut self, offset: u64, value: u32, bits: u32) {
        if let Some((master, word)) = Qos::find(offset) {
            let bits = bits & fields(master)[word].mask() as u32;
            let old = &mut self.0[master][word];
            *old = *old & !bits | value & bits;
        }
    }

    /// The credits of a master.
    pub fn credits(&self, master: usize) -> Credits {
        let [reads, writes, weight, beside] = self.0[master];
        Credits {
            reads,
            writes,
            weight: weight.max(1),
            beside,
        }
    }
}
