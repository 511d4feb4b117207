// SPDX-License-Identifier: Apache-2.0

//! Streams of loads and stores of the PM window, as fast as link and device accept them.
//!
//! No CPU time is counted. A stream is bounded by the host's loads and stores in flight
//! ([`sim::HostConfig`]), the link's wire and credits, and the device.

use std::collections::HashSet;

use sim::{Bar, Random, System, Time};

use crate::{Error, Latencies, Result};

/// The addresses of the accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowPattern {
    /// Increasing addresses.
    Sequential,
    /// Random addresses.
    Random,
    /// Dependent loads: the address of each is in the data of the one before. The addresses are
    /// stored first, in a cycle through random addresses.
    Chain,
}

/// A stream of accesses.
#[derive(Clone, Debug)]
pub struct WindowStream {
    /// Stores, else loads.
    pub store: bool,
    /// Bytes of each access, 1 to 4096; each is aligned to the next power of two.
    pub bytes: usize,
    /// Loads in flight. Stores are posted.
    pub in_flight: usize,
    /// A random pause of up to this time precedes each load. Otherwise single loads may synchronise
    /// with the DRAM's refreshes.
    pub pause: Time,
    /// The number of accesses.
    pub count: u64,
    /// The start of the range.
    pub start: u64,
    /// The bytes of the range.
    pub span: u64,
    /// See [`WindowPattern`].
    pub pattern: WindowPattern,
    /// Seed of the addresses, and of the stored data.
    pub seed: u64,
    /// Compare loaded data with a stream of stores of the same seed and size.
    pub verify: bool,
}

/// The result of a stream.
#[derive(Clone, Debug, Default)]
pub struct StreamResult {
    /// Bytes loaded or stored.
    pub bytes: u64,
    /// From the first access to the end of the last one. A load ends with its data, the stores with
    /// a load after them.
    pub elapsed: Time,
    /// Latency of each load.
    pub latency: Latencies,
}

impl StreamResult {
    /// Bandwidth, bytes per ns.
    pub fn gb_s(&self) -> f64 {
        self.bytes as f64 / self.elapsed.as_ns().max(1e-3)
    }
}

/// The addresses of a stream, in order.
struct AddressSequence<'a> {
    stream: &'a WindowStream,
    random: Random,
    next: u64,
}

impl<'a> AddressSequence<'a> {
    fn new(stream: &'a WindowStream) -> AddressSequence<'a> {
        AddressSequence {
            stream,
            random: Random::new(stream.seed),
            next: 0,
        }
    }

    fn next(&mut self) -> u64 {
        let unit = self.stream.bytes.next_power_of_two() as u64;
        let units = self.stream.span / unit;
        let place = match self.stream.pattern {
            WindowPattern::Sequential => self.next % units,
            WindowPattern::Random | WindowPattern::Chain => self.random.below(units),
        };
        self.next += 1;
        self.stream.start + place * unit
    }
}

/// The data that stores write at an address.
fn content(seed: u64, addr: u64, data: &mut [u8]) {
    let mut random = Random::new(seed ^ addr.rotate_left(20));
    for word in data.chunks_mut(8) {
        word.copy_from_slice(&random.next().to_le_bytes()[..word.len()]);
    }
}

/// Runs a stream on a device. `progress` receives the accesses completed and their total, and stops
/// the stream by returning false.
pub fn run(
    system: &mut System,
    device: usize,
    stream: &WindowStream,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<StreamResult> {
    let bad = |text: String| Err(Error::Invalid(text));
    if stream.bytes == 0 || stream.bytes > 4096 {
        return bad(format!("bytes = {}: allowed are 1 to 4096", stream.bytes));
    }
    if stream.in_flight == 0 || stream.count == 0 {
        return bad("in_flight and count must be at least 1".into());
    }
    let unit = stream.bytes.next_power_of_two() as u64;
    if stream.span < unit || stream.start % unit != 0 {
        return bad(format!(
            "start = {}, span = {}: a multiple of {unit}, and at least {unit} bytes are needed",
            stream.start, stream.span
        ));
    }
    let chain = stream.pattern == WindowPattern::Chain;
    if chain && (stream.store || stream.in_flight != 1 || stream.verify || stream.bytes < LINK) {
        return bad(format!(
            "a chain is of loads, one in flight, of at least {LINK} bytes, and verifies itself"
        ));
    }
    match stream.store {
        true => stores(system, device, stream, progress),
        false => {
            let outcome = match chain {
                true => self::chain(system, device, stream, progress),
                false => loads(system, device, stream, progress),
            };
            if outcome.is_err() {
                // Leftover loads must not be taken for those of the next stream.
                while let Ok(Some(_)) = system.wait_load() {}
            }
            outcome
        }
    }
}

/// Bytes of an address in a chain.
const LINK: usize = 8;
/// Most addresses of a chain, which are stored first.
const MOST_PLACES: usize = 4096;

/// Stores a chain and follows it; the loaded addresses are compared with the stored ones.
fn chain(
    system: &mut System,
    device: usize,
    stream: &WindowStream,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<StreamResult> {
    let units = stream.span / stream.bytes.next_power_of_two() as u64;
    let most = units.min(stream.count).min(MOST_PLACES as u64) as usize;
    let mut drawn = AddressSequence::new(stream);
    let (mut places, mut known) = (Vec::with_capacity(most), HashSet::new());
    while places.len() < most {
        let place = drawn.next();
        if known.insert(place) {
            places.push(place);
        }
    }
    let follower = |n: usize| places[(n + 1) % places.len()];
    for (n, &place) in places.iter().enumerate() {
        system.mmio_write(device, Bar::Pm, place, &follower(n).to_le_bytes())?;
    }
    system.mmio_read(device, Bar::Pm, stream.start, 1)?;
    let begin = system.now();
    let mut out = StreamResult::default();
    let mut pauses = RandomPauses::new(stream);
    let mut addr = places[0];
    for done in 0..stream.count {
        pauses.insert_pause(system)?;
        system.load(device, Bar::Pm, addr, stream.bytes)?;
        let load = system.wait_load()?;
        let load = load.ok_or_else(|| Error::Host("a load is lost".into()))?;
        let data = load.data?;
        out.latency.record(load.done - load.issued);
        out.bytes += data.len() as u64;
        let found = data.first_chunk().map(|link| u64::from_le_bytes(*link));
        let expected = follower(done as usize % places.len());
        if found != Some(expected) {
            return Err(Error::Host(format!(
                "the PM window holds something else at {addr:#x} than was stored there"
            )));
        }
        addr = expected;
        if !progress(done + 1, stream.count) {
            return Err(Error::Interrupted);
        }
    }
    out.elapsed = system.now() - begin;
    Ok(out)
}

/// Random pauses before loads.
struct RandomPauses {
    random: Random,
    most: Time,
}

impl RandomPauses {
    fn new(stream: &WindowStream) -> RandomPauses {
        RandomPauses {
            random: Random::new(!stream.seed),
            most: stream.pause,
        }
    }

    fn insert_pause(&mut self, system: &mut System) -> Result<()> {
        if self.most > Time::ZERO {
            let until = system.now() + Time(self.random.below(self.most.0 + 1));
            system.advance_until(until)?;
        }
        Ok(())
    }
}

fn stores(
    system: &mut System,
    device: usize,
    stream: &WindowStream,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<StreamResult> {
    let begin = system.now();
    let mut places = AddressSequence::new(stream);
    let mut data = vec![0; stream.bytes];
    for done in 0..stream.count {
        let addr = places.next();
        content(stream.seed, addr, &mut data);
        system.mmio_write(device, Bar::Pm, addr, &data)?;
        if !progress(done, stream.count) {
            return Err(Error::Interrupted);
        }
    }
    system.mmio_read(device, Bar::Pm, stream.start, 1)?;
    Ok(StreamResult {
        bytes: stream.count * stream.bytes as u64,
        elapsed: system.now() - begin,
        latency: Latencies::default(),
    })
}

fn loads(
    system: &mut System,
    device: usize,
    stream: &WindowStream,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<StreamResult> {
    let begin = system.now();
    let mut places = AddressSequence::new(stream);
    let mut expected = vec![0; stream.bytes];
    let mut under_way: Vec<(u32, u64)> = Vec::new();
    let mut out = StreamResult::default();
    let (mut issued, mut done) = (0, 0);
    let mut pauses = RandomPauses::new(stream);
    while done < stream.count {
        while issued < stream.count && under_way.len() < stream.in_flight {
            pauses.insert_pause(system)?;
            let addr = places.next();
            let tag = system.load(device, Bar::Pm, addr, stream.bytes)?;
            under_way.push((tag, addr));
            issued += 1;
        }
        let load = system.wait_load()?;
        let load = load.ok_or_else(|| Error::Host("a load is lost".into()))?;
        let place = under_way.iter().position(|u| u.0 == load.tag);
        let place = place.ok_or_else(|| Error::Host("a load that nobody issued".into()))?;
        let (_, addr) = under_way.swap_remove(place);
        let data = load.data?;
        if stream.verify {
            content(stream.seed, addr, &mut expected);
            if data != expected {
                return Err(Error::Host(format!(
                    "the PM window holds something else at {addr:#x} than was stored there"
                )));
            }
        }
        out.latency.record(load.done - load.issued);
        out.bytes += data.len() as u64;
        done += 1;
        if !progress(done, stream.count) {
            return Err(Error::Interrupted);
        }
    }
    out.elapsed = system.now() - begin;
    Ok(out)
}
