// SPDX-License-Identifier: Apache-2.0

//! The signals of a bus, found by name.

use super::{Ax, WBeat, BEAT};
use crate::bitstream::{Field, VerilatedModel};
use crate::error::{Error, Result};

/// Signals of an address channel.
#[derive(Clone, Copy, Debug)]
pub struct AxPorts {
    id: Field,
    addr: Field,
    len: Field,
    size: Field,
    burst: Field,
    /// Valid.
    pub valid: Field,
    /// Ready.
    pub ready: Field,
}

/// Signals of the write data channel.
#[derive(Clone, Copy, Debug)]
pub struct WPorts {
    data: Field,
    strb: Field,
    last: Field,
    /// Valid.
    pub valid: Field,
    /// Ready.
    pub ready: Field,
}

/// Signals of the write response channel.
#[derive(Clone, Copy, Debug)]
pub struct BPorts {
    id: Field,
    resp: Field,
    /// Valid.
    pub valid: Field,
    /// Ready.
    pub ready: Field,
}

/// Signals of the read data channel.
#[derive(Clone, Copy, Debug)]
pub struct RPorts {
    id: Field,
    data: Field,
    resp: Field,
    last: Field,
    /// Valid.
    pub valid: Field,
    /// Ready.
    pub ready: Field,
}

/// All signals of an AXI4 bus.
#[derive(Clone, Copy, Debug)]
pub struct AxiPorts {
    /// Write address.
    pub aw: AxPorts,
    /// Write data.
    pub w: WPorts,
    /// Write response.
    pub b: BPorts,
    /// Read address.
    pub ar: AxPorts,
    /// Read data.
    pub r: RPorts,
}

impl AxiPorts {
    /// The bus whose ports are named `<prefix>awid` and so on, 512 bits wide.
    pub fn find(model: &VerilatedModel, prefix: &str) -> Result<AxiPorts> {
        AxiPorts::find_lane(model, prefix, 0, 1)
    }

    /// Bus `lane` of `lanes` whose signals are concatenated, the first lowest.
    pub fn find_lane(
        model: &VerilatedModel,
        prefix: &str,
        lane: u32,
        lanes: u32,
    ) -> Result<AxiPorts> {
        let field = |name: &str| model.lane(&format!("{prefix}{name}"), lane, lanes);
        let ax = |c: &str| -> Result<AxPorts> {
            Ok(AxPorts {
                id: field(&format!("{c}id"))?,
                addr: field(&format!("{c}addr"))?,
                len: field(&format!("{c}len"))?,
                size: field(&format!("{c}size"))?,
                burst: field(&format!("{c}burst"))?,
                valid: field(&format!("{c}valid"))?,
                ready: field(&format!("{c}ready"))?,
            })
        };
        let ports = AxiPorts {
            aw: ax("aw")?,
            w: WPorts {
                data: field("wdata")?,
                strb: field("wstrb")?,
                last: field("wlast")?,
                valid: field("wvalid")?,
                ready: field("wready")?,
            },
            b: BPorts {
                id: field("bid")?,
                resp: field("bresp")?,
                valid: field("bvalid")?,
                ready: field("bready")?,
            },
            ar: ax("ar")?,
            r: RPorts {
                id: field("rid")?,
                data: field("rdata")?,
                resp: field("rresp")?,
                last: field("rlast")?,
                valid: field("rvalid")?,
                ready: field("rready")?,
            },
        };
        if ports.w.data.bits() as usize != BEAT * 8 || ports.r.data.bits() as usize != BEAT * 8 {
            return Err(Error::Port(format!(
                "`{prefix}wdata` and `{prefix}rdata` must have 512 bits a lane"
            )));
        }
        Ok(ports)
    }

    /// Deasserts every valid and ready that the master of a slave port of the design drives.
    pub fn deassert_master(&self, model: &mut VerilatedModel) {
        for field in [
            self.aw.valid,
            self.w.valid,
            self.b.ready,
            self.ar.valid,
            self.r.ready,
        ] {
            model.set(field, 0);
        }
    }

    /// Deasserts every valid and ready that the slave of a master port of the design drives.
    pub fn deassert_slave(&self, model: &mut VerilatedModel) {
        for field in [
            self.aw.ready,
            self.w.ready,
            self.b.valid,
            self.ar.ready,
            self.r.valid,
        ] {
            model.set(field, 0);
        }
    }

    /// Names and valid/ready fields of the five channels, for dumps.
    pub fn handshakes(&self) -> [(&'static str, Field, Field); 5] {
        [
            ("aw", self.aw.valid, self.aw.ready),
            ("w", self.w.valid, self.w.ready),
            ("b", self.b.valid, self.b.ready),
            ("ar", self.ar.valid, self.ar.ready),
            ("r", self.r.valid, self.r.ready),
        ]
    }
}

/// Signals by which a device asks a memory to zero blocks of 512 bytes: see `ns_axi_fill`.
#[derive(Clone, Copy, Debug)]
pub struct FillPorts {
    addr: Field,
    blocks: Field,
    error: Field,
    /// Request valid.
    pub valid: Field,
    /// Request ready.
    pub ready: Field,
    /// The request under way is to end at the end of a block.
    pub stop: Field,
    /// The request has ended; for one cycle.
    pub done: Field,
}

impl FillPorts {
    /// The ports of lane `lane` of `lanes`, the first lowest.
    pub fn find_lane(
        model: &VerilatedModel,
        prefix: &str,
        lane: u32,
        lanes: u32,
    ) -> Result<FillPorts> {
        let field = |name: &str| model.lane(&format!("{prefix}{name}"), lane, lanes);
        Ok(FillPorts {
            addr: field("addr")?,
            blocks: field("blocks")?,
            error: field("error")?,
            valid: field("valid")?,
            ready: field("ready")?,
            stop: field("stop")?,
            done: field("done")?,
        })
    }

    /// The request that the design offers: address in the channel, number of blocks.
    #[inline]
    pub fn get(&self, model: &VerilatedModel) -> (u64, u64) {
        (model.get(self.addr), model.get(self.blocks))
    }

    /// Drives whether a request has ended, and whether with an error.
    #[inline]
    pub fn set_done(&self, model: &mut VerilatedModel, done: bool, error: bool) {
        model.set(self.done, u64::from(done));
        model.set(self.error, u64::from(error));
    }
}

impl AxPorts {
    /// Highest ID + 1.
    pub fn ids(&self) -> u32 {
        1 << self.id.bits().min(16)
    }

    /// What the design offers.
    #[inline]
    pub fn get(&self, model: &VerilatedModel) -> Ax {
        Ax {
            id: model.get(self.id) as u16,
            addr: model.get(self.addr),
            len: model.get(self.len) as u8,
            size: model.get(self.size) as u8,
            burst: model.get(self.burst) as u8,
        }
    }

    /// Offers an address to the design.
    #[inline]
    pub fn set(&self, model: &mut VerilatedModel, ax: &Ax) {
        model.set(self.id, u64::from(ax.id));
        model.set(self.addr, ax.addr);
        model.set(self.len, u64::from(ax.len));
        model.set(self.size, u64::from(ax.size));
        model.set(self.burst, u64::from(ax.burst));
    }
}

impl WPorts {
    /// The strobes that the design offers.
    #[inline]
    pub fn strb(&self, model: &VerilatedModel) -> u64 {
        model.get(self.strb)
    }

    /// The data that the design offers.
    #[inline]
    pub fn data(&self, model: &VerilatedModel, out: &mut [u8; BEAT]) {
        model.read(self.data, out);
    }

    /// Whether the design says that this is the last beat.
    #[inline]
    pub fn last(&self, model: &VerilatedModel) -> bool {
        model.is(self.last)
    }

    /// Offers data to the design.
    #[inline]
    pub fn set(&self, model: &mut VerilatedModel, beat: &WBeat) {
        model.write(self.data, &beat.data);
        model.set(self.strb, beat.strb);
        model.set(self.last, u64::from(beat.last));
    }
}

impl BPorts {
    /// The response that the design offers: (ID, code).
    #[inline]
    pub fn get(&self, model: &VerilatedModel) -> (u16, u8) {
        (model.get(self.id) as u16, model.get(self.resp) as u8)
    }

    /// Offers a response to the design.
    #[inline]
    pub fn set(&self, model: &mut VerilatedModel, id: u16, resp: u8) {
        model.set(self.id, u64::from(id));
        model.set(self.resp, u64::from(resp));
    }
}

impl RPorts {
    /// What the design offers besides data: (ID, code, last).
    #[inline]
    pub fn get(&self, model: &VerilatedModel) -> (u16, u8, bool) {
        (
            model.get(self.id) as u16,
            model.get(self.resp) as u8,
            model.is(self.last),
        )
    }

    /// The data that the design offers.
    #[inline]
    pub fn data(&self, model: &VerilatedModel, out: &mut [u8; BEAT]) {
        model.read(self.data, out);
    }

    /// Offers a beat to the design.
    #[inline]
    pub fn set(
        &self,
        model: &mut VerilatedModel,
        id: u16,
        resp: u8,
        last: bool,
        data: &[u8; BEAT],
    ) {
        model.set(self.id, u64::from(id));
        model.set(self.resp, u64::from(resp));
        model.set(self.last, u64::from(last));
        model.write(self.data, data);
    }
}

/// All signals of an AXI4-Lite bus of 32 bits.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // the signals' names say it
pub struct AxilPorts {
    pub awaddr: Field,
    pub awvalid: Field,
    pub awready: Field,
    pub wdata: Field,
    pub wstrb: Field,
    pub wvalid: Field,
    pub wready: Field,
    pub bresp: Field,
    pub bvalid: Field,
    pub bready: Field,
    pub araddr: Field,
    pub arvalid: Field,
    pub arready: Field,
    pub rdata: Field,
    pub rresp: Field,
    pub rvalid: Field,
    pub rready: Field,
}

impl AxilPorts {
    /// The bus whose ports are named `<prefix>awaddr` and so on.
    pub fn find(model: &VerilatedModel, prefix: &str) -> Result<AxilPorts> {
        let field = |name: &str| model.field(&format!("{prefix}{name}"));
        let ports = AxilPorts {
            awaddr: field("awaddr")?,
            awvalid: field("awvalid")?,
            awready: field("awready")?,
            wdata: field("wdata")?,
            wstrb: field("wstrb")?,
            wvalid: field("wvalid")?,
            wready: field("wready")?,
            bresp: field("bresp")?,
            bvalid: field("bvalid")?,
            bready: field("bready")?,
            araddr: field("araddr")?,
            arvalid: field("arvalid")?,
            arready: field("arready")?,
            rdata: field("rdata")?,
            rresp: field("rresp")?,
            rvalid: field("rvalid")?,
            rready: field("rready")?,
        };
        if ports.wdata.bits() != 32 || ports.rdata.bits() != 32 {
            return Err(Error::Port(format!(
                "`{prefix}wdata` and `{prefix}rdata` must have 32 bits"
            )));
        }
        Ok(ports)
    }

    /// Deasserts every valid and ready that the master drives.
    pub fn deassert_master(&self, model: &mut VerilatedModel) {
        for field in [
            self.awvalid,
            self.wvalid,
            self.bready,
            self.arvalid,
            self.rready,
        ] {
            model.set(field, 0);
        }
    }

    /// Names and valid/ready fields of the five channels, for dumps.
    pub fn handshakes(&self) -> [(&'static str, Field, Field); 5] {
        [
            ("aw", self.awvalid, self.awready),
            ("w", self.wvalid, self.wready),
            ("b", self.bvalid, self.bready),
            ("ar", self.arvalid, self.arready),
            ("r", self.rvalid, self.rready),
        ]
    }
}
