// SPDX-License-Identifier: Apache-2.0

//! Samples the traffic of a device's memory channels, for traces.

use driver::control::{DelayRegisters, Inventory};
use driver::{Host, Result};
use sim::Time;

/// Simulated time between two samples.
pub const INTERVAL: Time = Time::us(20);

/// The counters at one time.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelSample {
    /// Simulated time.
    pub time: Time,
    /// Beats read and written since reset, by channel.
    pub beats: Vec<[u64; 2]>,
}

/// Reads the counters of all channels. Each read takes a CPU of the host some microseconds.
#[derive(Default)]
pub struct ChannelSampler {
    delays: Vec<DelayRegisters>,
    /// In order of time.
    pub samples: Vec<ChannelSample>,
}

impl ChannelSampler {
    /// A sampler of all channels of a device.
    pub fn new<H: Host>(host: &mut H) -> Result<ChannelSampler> {
        let mut sampler = ChannelSampler {
            delays: Inventory::read(host)?.delays(),
            samples: Vec::new(),
        };
        sampler.sample(host)?;
        Ok(sampler)
    }

    /// Takes a sample if the interval has passed.
    pub fn sample_if_due<H: Host>(&mut self, host: &mut H) -> Result<()> {
        match self.samples.last() {
            Some(last) if host.now() >= last.time + INTERVAL => self.sample(host),
            _ => Ok(()),
        }
    }

    /// Takes a sample. Does nothing without channels.
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
