// SPDX-License-Identifier: Apache-2.0

//! Quality of service: the outstanding lines and the bandwidth share of each master of a memory
//! channel.

use sim::Bar;
use spec::regs::qos::{self, engine, pm};

use crate::{Error, Host, Result};

/// Masters: the PM window, the NVMe controller, engines.
const MASTERS: u32 = 2 + qos::ENGINE_COUNT as u32;

/// The QoS registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Qos {
    pub(crate) base: u64,
    pub(crate) masters: u32,
}

/// The limits of one master in every channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MasterQos {
    /// Most lines of 64 bytes read and not received, up to 1023; 0: no limit.
    pub reads: u32,
    /// Most lines written without a response, up to 1023; 0: no limit.
    pub writes: u32,
    /// Lines per round, 1 to 255, in competition with other masters. The PM window has none.
    pub weight: u32,
    /// Limit of reads and of writes while the controller has accesses outstanding in the channel;
    /// 0: no additional limit. The controller has none.
    pub beside: u32,
}

impl Qos {
    /// Masters of this device: number 0 is the PM window, number 1 the NVMe controller, then the
    /// engines.
    pub fn masters(&self) -> u32 {
        self.masters.min(MASTERS)
    }

    fn master_base(&self, master: u32) -> Result<u64> {
        let there = self.masters();
        match master {
            _ if master >= there => Err(Error::Invalid(format!(
                "master = {master}: allowed is 0 to {}",
                there - 1
            ))),
            0 => Ok(self.base + qos::PM),
            1 => Ok(self.base + qos::NVME),
            _ => Ok(self.base + qos::ENGINE + qos::ENGINE_STRIDE * u64::from(master - 2)),
        }
    }

    /// Reads the limits of a master.
    pub fn get<H: Host>(&self, host: &mut H, master: u32) -> Result<MasterQos> {
        let at = self.master_base(master)?;
        host.run_on(0);
        let mut read = |offset: u64| host.read32(Bar::Control, at + offset);
        Ok(MasterQos {
            reads: read(engine::READS)?,
            writes: read(engine::WRITES)?,
            weight: read(engine::WEIGHT)?,
            beside: read(engine::BESIDE)?,
        })
    }

    /// Sets the limits of a master, at once, for later bursts.
    pub fn set<H: Host>(&self, host: &mut H, master: u32, values: MasterQos) -> Result<()> {
        let at = self.master_base(master)?;
        let credits = pm::reads::LINES.mask() as u32;
        let weights = pm::weight::LINES.mask() as u32;
        let least = u32::from(master != 0);
        for (name, value, from, to) in [
            ("reads", values.reads, 0, credits),
            ("writes", values.writes, 0, credits),
            ("weight", values.weight, least, weights),
            ("beside", values.beside, 0, credits),
        ] {
            if !(from..=to).contains(&value) {
                let text = format!("{name} = {value}: allowed is {from} to {to}");
                return Err(Error::Invalid(text));
            }
        }
        host.run_on(0);
        for (offset, value) in [
            (engine::READS, values.reads),
            (engine::WRITES, values.writes),
            (engine::WEIGHT, values.weight),
            (engine::BESIDE, values.beside),
        ] {
            host.write32(Bar::Control, at + offset, value)?;
        }
        // The read pushes the posted writes.
        host.read32(Bar::Control, at).map(drop)
    }
}
