// SPDX-License-Identifier: Apache-2.0

//! AXI4 and AXI4-Lite on the ports of a model: the other ends of a device's buses.
//!
//! Each bus model works in two steps a clock cycle, around the falling edge. `drive` sets the
//! inputs of the model for the next rising edge. `sample` is called when the design has been
//! evaluated with the clock low, and sees which handshakes that edge will perform. This is right
//! whether or not the design has combinational paths from inputs to outputs.

mod block_buffer;
mod ddr;
mod host;
mod lite;
mod master;
mod ports;

pub use ddr::{DdrSlave, DdrStats};
pub use host::HostSlave;
pub use lite::{AxilAccess, AxilMaster};
pub use master::{AxiMaster, Handshakes};
pub use ports::{AxPorts, AxiPorts, AxilPorts, BPorts, FillPorts, RPorts, WPorts};
pub use sim::axi::{burst, resp, Ax, BEAT};
pub use sim::memctrl::{AddressMap, FixedLatency, MemoryTiming, RandomLatency};

/// A beat of write data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WBeat {
    /// Byte lanes.
    pub data: [u8; BEAT],
    /// Which of them count.
    pub strb: u64,
    /// Last of its burst.
    pub last: bool,
}
