//! An AXI4-Lite master: one access at a time.

use super::AxilPorts;
use crate::bitstream::Model;

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Write { aw: bool, w: bool }, // which were taken
    Read { ar: bool },
}

/// Drives an AXI4-Lite slave port of a model.
pub struct AxilMaster {
    ports: AxilPorts,
    state: State,
    started: bool, // the valids were set
}

impl AxilMaster {
    /// A master on these ports.
    pub fn new(ports: AxilPorts) -> AxilMaster {
        AxilMaster {
            ports,
            state: State::Idle,
            started: false,
        }
    }

    /// The ports.
    pub fn ports(&self) -> &AxilPorts {
        &self.ports
    }

    /// True when a new access can begin.
    pub fn idle(&self) -> bool {
        self.state == State::Idle
    }

    /// Begins an access, which [`AxilMaster::sample`] will report done. Only while idle.
    pub fn start(&mut self, model: &mut Model, access: AxilAccess) {
        debug_assert!(self.idle());
        let p = &self.ports;
        match access {
            AxilAccess::Write { addr, data, strb } => {
                model.set(p.awaddr, u64::from(addr));
                model.set(p.wdata, u64::from(data));
                model.set(p.wstrb, u64::from(strb));
                model.set(p.awvalid, 1);
                model.set(p.wvalid, 1);
                self.state = State::Write {
                    aw: false,
                    w: false,
                };
            }
            AxilAccess::Read { addr } => {
                model.set(p.araddr, u64::from(addr));
                model.set(p.arvalid, 1);
                self.state = State::Read { ar: false };
            }
        }
        if !self.started {
            self.started = true;
            model.set(p.bready, 1);
            model.set(p.rready, 1);
        }
    }

    /// Takes back the valids that were accepted at the last edge.
    #[inline]
    pub fn drive(&mut self, model: &mut Model) {
        match self.state {
            State::Idle => {}
            State::Write { aw, w } => {
                if aw {
                    model.set(self.ports.awvalid, 0);
                }
                if w {
                    model.set(self.ports.wvalid, 0);
                }
            }
            State::Read { ar } => {
                if ar {
                    model.set(self.ports.arvalid, 0);
                }
            }
        }
    }

    /// Sees the handshakes of the coming rising edge: their number, and when the access is done, its data (0 for a
    /// write) and response code.
    #[inline]
    pub fn sample(&mut self, model: &Model) -> (u64, Option<(u32, u8)>) {
        let p = &self.ports;
        let mut count = 0;
        match &mut self.state {
            State::Idle => {}
            State::Write { aw, w } => {
                if !*aw && model.is(p.awready) {
                    *aw = true;
                    count += 1;
                }
                if !*w && model.is(p.wready) {
                    *w = true;
                    count += 1;
                }
                // A response comes after both were taken, so never in a cycle with either.
                if count == 0 && model.is(p.bvalid) {
                    let done = (0, model.get(p.bresp) as u8);
                    self.state = State::Idle;
                    return (1, Some(done));
                }
            }
            State::Read { ar } => {
                if !*ar && model.is(p.arready) {
                    *ar = true;
                    count += 1;
                } else if model.is(p.rvalid) {
                    let done = (model.get(p.rdata) as u32, model.get(p.rresp) as u8);
                    self.state = State::Idle;
                    return (1, Some(done));
                }
            }
        }
        (count, None)
    }
}
