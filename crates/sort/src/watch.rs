//! What passes the channels of a device's memories while it works: for traces.

use driver::control::{DelayRegisters, Inventory};
use driver::{Host, Result};
use sim::Time;

/// Simulated time between two looks.
pub const INTERVAL: Time = Time::us(20);

/// Counters at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// Simulated.
    pub time: Time,
    /// Beats read and written since reset, by channel.
    pub beats: Vec<[u64; 2]>,
}

/// Looks at the counters of all channels. Each takes some microseconds of a CPU of the host.
#[derive(Default)]
pub struct Watch {
    delays: Vec<DelayRegisters>,
    /// In order of time.
    pub looks: Vec<Look>,
}

impl Watch {
    /// Of all channels of a device.
    pub fn new<H: Host>(host: &mut H) -> Result<Watch> {
        let mut watch = Watch {
            delays: Inventory::read(host)?.delays(),
            looks: Vec::new(),
        };
        watch.look(host)?;
        Ok(watch)
    }

    /// Looks, if it is time to.
    pub fn pass<H: Host>(&mut self, host: &mut H) -> Result<()> {
        match self.looks.last() {
            Some(last) if host.now() >= last.time + INTERVAL => self.look(host),
            _ => Ok(()),
        }
    }

    /// Looks; nothing without channels.
    pub fn look<H: Host>(&mut self, host: &mut H) -> Result<()> {
        if self.delays.is_empty() {
            return Ok(());
        }
        let time = host.now();
        let beats: Result<Vec<[u64; 2]>> = self.delays.iter().map(|d| d.beats(host)).collect();
        self.looks.push(Look {
            time,
            beats: beats?,
        });
        Ok(())
    }
}
