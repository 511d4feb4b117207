//! What passes the channels of a device's memories while it works: for traces.

use driver::control::{Delay, Inventory};
use driver::{Host, Result};
use sim::Time;

/// Simulated time between two samples.
pub const INTERVAL: Time = Time::us(20);

/// Counters at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelSample {
    /// Simulated.
    pub time: Time,
    /// Beats read and written since reset, by channel.
    pub beats: Vec<[u64; 2]>,
}

/// Looks at the counters of all channels. Each takes some microseconds of a CPU of the host.
#[derive(Default)]
pub struct ChannelSampler {
    delays: Vec<Delay>,
    /// In order of time.
    pub samples: Vec<ChannelSample>,
}

impl ChannelSampler {
    /// Of all channels of a device.
    pub fn new<H: Host>(host: &mut H) -> Result<ChannelSampler> {
        let mut sampler = ChannelSampler {
            delays: Inventory::read(host)?.delays(),
            samples: Vec::new(),
        };
        sampler.sample(host)?;
        Ok(sampler)
    }

    /// Looks, if it is time to.
    pub fn sample_if_due<H: Host>(&mut self, host: &mut H) -> Result<()> {
        match self.samples.last() {
            Some(last) if host.now() >= last.time + INTERVAL => self.sample(host),
            _ => Ok(()),
        }
    }

    /// Looks; nothing without channels.
    pub fn sample<H: Host>(&mut self, host: &mut H) -> Result<()> {
        if self.delays.is_empty() {
            return Ok(());
        }
        let time = host.now();
        let beats: Result<Vec<[u64; 2]>> = self.delays.iter().map(|d| d.beats(host)).collect();
        self.samples.push(ChannelSample {
            time,
            beats: beats?,
        });
        Ok(())
    }
}
