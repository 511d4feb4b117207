// SPDX-License-Identifier: Apache-2.0

//! An AXI4-Lite master: writes one after the other, reads one at a time.

use super::AxilPorts;
use crate::bitstream::VerilatedModel;

/// An access of one 32-bit word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxilAccess {
    /// Write the bytes of `data` whose bit in `strb` is set.
    Write {
        /// Word-aligned address.
        addr: u32,
        /// The word.
        data: u32,
        /// Byte enables.
        strb: u8,
    },
    /// Read a word.
    Read {
        /// Word-aligned address.
        addr: u32,
    },
}

/// Writes without a response that a master has under way at most.
const MAX_WRITES: u32 = 8;

/// Drives an AXI4-Lite slave port of a model.
///
/// Writes follow each other without waiting for responses, as posted writes do. Reads and writes
/// are never under way at the same time.
pub struct AxilMaster {
    ports: AxilPorts,
    /// Offered and not taken yet: write address, write data, read address.
    aw: bool,
    w: bool,
    ar: bool,
    /// Writes without a response.
    writes: u32,
    reading: bool,
    started: bool, // `bready` and `rready` were set
}

impl AxilMaster {
    /// A master on these ports.
    pub fn new(ports: AxilPorts) -> AxilMaster {
        AxilMaster {
            ports,
            aw: false,
            w: false,
            ar: false,
            writes: 0,
            reading: false,
            started: false,
        }
    }

    /// The ports.
    pub fn ports(&self) -> &AxilPorts {
        &self.ports
    }

    /// True when nothing is under way.
    pub fn idle(&self) -> bool {
        self.writes == 0 && !self.reading
    }

    /// True when the access can begin now.
    pub fn can_start(&self, access: &AxilAccess) -> bool {
        match access {
            AxilAccess::Write { .. } => {
                !self.reading && !self.aw && !self.w && self.writes < MAX_WRITES
            }
            AxilAccess::Read { .. } => self.idle(),
        }
    }

    /// Begins an access, which [`AxilMaster::sample`] reports as done. Call it only if
    /// [`AxilMaster::can_start`].
    pub fn start(&mut self, model: &mut VerilatedModel, access: AxilAccess) {
        debug_assert!(self.can_start(&access));
        let p = &self.ports;
        match access {
            AxilAccess::Write { addr, data, strb } => {
                model.set(p.awaddr, u64::from(addr));
                model.set(p.wdata, u64::from(data));
                model.set(p.wstrb, u64::from(strb));
                model.set(p.awvalid, 1);
                model.set(p.wvalid, 1);
                self.aw = true;
                self.w = true;
                self.writes += 1;
            }
            AxilAccess::Read { addr } => {
                model.set(p.araddr, u64::from(addr));
                model.set(p.arvalid, 1);
                self.ar = true;
                self.reading = true;
            }
        }
        if !self.started {
            self.started = true;
            model.set(p.bready, 1);
            model.set(p.rready, 1);
        }
    }

    /// Deasserts the valids that were accepted at the last edge. AXI demands that responses come
    /// later than that, so none is left when nothing is under way.
    #[inline]
    pub fn drive(&mut self, model: &mut VerilatedModel) {
        if self.idle() {
            return;
        }
        let p = &self.ports;
        if self.reading {
            if !self.ar {
                model.set(p.arvalid, 0);
            }
        } else {
            if !self.aw {
                model.set(p.awvalid, 0);
            }
            if !self.w {
                model.set(p.wvalid, 0);
            }
        }
    }

    /// Performs the handshakes of the coming rising edge. Returns their number and, when an access
    /// is done, its data (0 for a write) and response code. Writes end in order.
    #[inline]
    pub fn sample(&mut self, model: &VerilatedModel) -> (u64, Option<(u32, u8)>) {
        if self.idle() {
            return (0, None);
        }
        let p = &self.ports;
        let mut count = 0;
        let mut taken = |valid: &mut bool, ready| {
            if *valid && model.is(ready) {
                *valid = false;
                count += 1;
            }
        };
        taken(&mut self.aw, p.awready);
        taken(&mut self.w, p.wready);
        taken(&mut self.ar, p.arready);
        let done = if self.reading && model.is(p.rvalid) {
            self.reading = false;
            Some((model.get(p.rdata) as u32, model.get(p.rresp) as u8))
        } else if self.writes > 0 && model.is(p.bvalid) {
            self.writes -= 1;
            Some((0, model.get(p.bresp) as u8))
        } else {
            None
        };
        (count + u64::from(done.is_some()), done)
    }
}
