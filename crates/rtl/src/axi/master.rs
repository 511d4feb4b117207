// SPDX-License-Identifier: Apache-2.0

//! A master: issues what is queued, and reports every handshake.

use std::collections::VecDeque;

use super::{Ax, AxiPorts, WBeat, BEAT};
use crate::bitstream::VerilatedModel;

/// The handshakes of one clock edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handshakes {
    /// A write address was taken.
    pub aw: bool,
    /// A beat of write data was taken.
    pub w: bool,
    /// A read address was taken.
    pub ar: bool,
    /// A write response came: (ID, code).
    pub b: Option<(u16, u8)>,
    /// A beat of read data came: (ID, code, last). The data is in [`AxiMaster::rdata`].
    pub r: Option<(u16, u8, bool)>,
}

impl Handshakes {
    /// Number of handshakes.
    pub fn count(&self) -> u64 {
        [self.aw, self.w, self.ar, self.b.is_some(), self.r.is_some()]
            .map(u64::from)
            .iter()
            .sum()
    }
}

/// Drives a slave port of a model. Responses are always taken at once unless `b_ready` or `r_ready`
/// are cleared.
pub struct AxiMaster {
    ports: AxiPorts,
    aw: VecDeque<Ax>,
    w: VecDeque<WBeat>,
    ar: VecDeque<Ax>,
    driven: [bool; 3], // aw, w, ar: valid is 1 and the head of the queue is on the port
    ready: [Option<bool>; 2],
    /// Takes write responses.
    pub b_ready: bool,
    /// Takes read data.
    pub r_ready: bool,
    /// The data of the latest read beat.
    pub rdata: [u8; BEAT],
}

impl AxiMaster {
    /// A master on these ports, with nothing to do.
    pub fn new(ports: AxiPorts) -> AxiMaster {
        AxiMaster {
            ports,
            aw: VecDeque::new(),
            w: VecDeque::new(),
            ar: VecDeque::new(),
            driven: [false; 3],
            ready: [None; 2],
            b_ready: true,
            r_ready: true,
            rdata: [0; BEAT],
        }
    }

    /// The ports.
    pub fn ports(&self) -> &AxiPorts {
        &self.ports
    }

    /// Queues a write address. Its data is queued by [`AxiMaster::queue_w`].
    pub fn queue_aw(&mut self, ax: Ax) {
        self.aw.push_back(ax);
    }

    /// Queues a beat of write data.
    pub fn queue_w(&mut self, beat: WBeat) {
        self.w.push_back(beat);
    }

    /// Queues a read.
    pub fn queue_ar(&mut self, ax: Ax) {
        self.ar.push_back(ax);
    }

    /// Beats queued and not taken yet: (write addresses, write data, read addresses).
    pub fn queued(&self) -> (usize, usize, usize) {
        (self.aw.len(), self.w.len(), self.ar.len())
    }

    /// Sets the inputs for the next rising edge.
    #[inline]
    pub fn drive(&mut self, model: &mut VerilatedModel) {
        let p = &self.ports;
        if self.aw.front().is_some() != self.driven[0] {
            self.driven[0] = !self.driven[0];
            model.set(p.aw.valid, u64::from(self.driven[0]));
        }
        if self.driven[0] {
            p.aw.set(model, &self.aw[0]);
        }
        if self.w.front().is_some() != self.driven[1] {
            self.driven[1] = !self.driven[1];
            model.set(p.w.valid, u64::from(self.driven[1]));
        }
        if self.driven[1] {
            p.w.set(model, &self.w[0]);
        }
        if self.ar.front().is_some() != self.driven[2] {
            self.driven[2] = !self.driven[2];
            model.set(p.ar.valid, u64::from(self.driven[2]));
        }
        if self.driven[2] {
            p.ar.set(model, &self.ar[0]);
        }
        for (i, (field, want)) in [(p.b.ready, self.b_ready), (p.r.ready, self.r_ready)]
            .into_iter()
            .enumerate()
        {
            if self.ready[i] != Some(want) {
                self.ready[i] = Some(want);
                model.set(field, u64::from(want));
            }
        }
    }

    /// Performs the handshakes of the coming rising edge.
    #[inline]
    pub fn sample(&mut self, model: &VerilatedModel) -> Handshakes {
        let p = &self.ports;
        let mut seen = Handshakes::default();
        if self.driven[0] && model.is(p.aw.ready) {
            self.aw.pop_front();
            seen.aw = true;
        }
        if self.driven[1] && model.is(p.w.ready) {
            self.w.pop_front();
            seen.w = true;
        }
        if self.driven[2] && model.is(p.ar.ready) {
            self.ar.pop_front();
            seen.ar = true;
        }
        if self.b_ready && model.is(p.b.valid) {
            seen.b = Some(p.b.get(model));
        }
        if self.r_ready && model.is(p.r.valid) {
            p.r.data(model, &mut self.rdata);
            seen.r = Some(p.r.get(model));
        }
        seen
    }

    /// True when nothing is queued and the design offers nothing.
    pub fn quiet(&self, model: &VerilatedModel) -> bool {
        self.driven == [false; 3]
            && self.aw.is_empty()
            && self.w.is_empty()
            && self.ar.is_empty()
            && !model.is(self.ports.b.valid)
            && !model.is(self.ports.r.valid)
    }
}
