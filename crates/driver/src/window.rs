//! Streams of loads and stores of the PM window, as fast as the link and the device take them.
//!
//! As many cores are at work as it takes: no CPU time is counted, and what limits a stream is how many loads and stores the
//! host can have under way ([`sim::HostConfig`]), the link's wire and credits, and the device.

use sim::{Bar, Random, System, Time};

use crate::{Error, Latency, Result};

/// What to do.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Stores, else loads.
    pub store: bool,
    /// Bytes of each, 1 to 4096; each lies at a multiple of the next power of two.
    pub bytes: usize,
    /// Loads under way at a time. Stores are posted.
    pub in_flight: usize,
    /// Before each load time passes at random, up to this: else loads one at a time may fall in step with the DRAM's refreshes.
    pub pause: Time,
    /// How many.
    pub count: u64,
    /// The part of the window that is touched.
    pub start: u64,
    /// Its bytes.
    pub span: u64,
    /// At random places, else one after the other.
    pub random: bool,
    /// Seed of the places, and of what stores write.
    pub seed: u64,
    /// Loads must find what a stream of stores with the same seed and the same number of bytes has written.
    pub verify: bool,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Streamed {
    /// Bytes that were loaded or stored.
    pub bytes: u64,
    /// From the first one to the end of the last one: loads, when their data is there; stores, when a load behind them has
    /// returned.
    pub elapsed: Time,
    /// Of each load.
    pub latency: Latency,
}

impl Streamed {
    /// Bytes a ns.
    pub fn gb_s(&self) -> f64 {
        self.bytes as f64 / self.elapsed.as_ns().max(1e-3)
    }
}

/// Where accesses go, one after the other.
struct Places<'a> {
    stream: &'a Stream,
    random: Random,
    next: u64,
}

impl<'a> Places<'a> {
    fn new(stream: &'a Stream) -> Places<'a> {
        Places {
            stream,
            random: Random::new(stream.seed),
            next: 0,
        }
    }

    fn next(&mut self) -> u64 {
        let unit = self.stream.bytes.next_power_of_two() as u64;
        let units = self.stream.span / unit;
        let place = match self.stream.random {
            true => self.random.below(units),
            false => self.next % units,
        };
        self.next += 1;
        self.stream.start + place * unit
    }
}

/// What stores write at an address.
fn content(seed: u64, addr: u64, data: &mut [u8]) {
    let mut random = Random::new(seed ^ addr.rotate_left(20));
    for word in data.chunks_mut(8) {
        word.copy_from_slice(&random.next().to_le_bytes()[..word.len()]);
    }
}

/// Runs a stream on a device. `tell` hears how many of all are done, and stops the stream by returning false.
pub fn run(
    system: &mut System,
    device: usize,
    stream: &Stream,
    tell: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Streamed> {
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
    match stream.store {
        true => stores(system, device, stream, tell),
        false => {
            let outcome = loads(system, device, stream, tell);
            if outcome.is_err() {
                // Whoever comes next gets only loads of his own.
                while let Ok(Some(_)) = system.loaded() {}
            }
            outcome
        }
    }
}

fn failed(error: sim::Error) -> Error {
    Error::Host(error.to_string())
}

fn stores(
    system: &mut System,
    device: usize,
    stream: &Stream,
    tell: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Streamed> {
    let begin = system.now();
    let mut places = Places::new(stream);
    let mut data = vec![0; stream.bytes];
    for done in 0..stream.count {
        let addr = places.next();
        content(stream.seed, addr, &mut data);
        system
            .mmio_write(device, Bar::Pm, addr, &data)
            .map_err(failed)?;
        if !tell(done, stream.count) {
            return Err(Error::Interrupted);
        }
    }
    system
        .mmio_read(device, Bar::Pm, stream.start, 1)
        .map_err(failed)?;
    Ok(Streamed {
        bytes: stream.count * stream.bytes as u64,
        elapsed: system.now() - begin,
        latency: Latency::default(),
    })
}

fn loads(
    system: &mut System,
    device: usize,
    stream: &Stream,
    tell: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Streamed> {
    let begin = system.now();
    let mut places = Places::new(stream);
    let mut expected = vec![0; stream.bytes];
    let mut under_way: Vec<(u32, u64)> = Vec::new();
    let mut out = Streamed::default();
    let (mut issued, mut done) = (0, 0);
    let mut pauses = Random::new(!stream.seed);
    while done < stream.count {
        while issued < stream.count && under_way.len() < stream.in_flight {
            if stream.pause > Time::ZERO {
                let until = system.now() + Time(pauses.below(stream.pause.0 + 1));
                system.advance_until(until).map_err(failed)?;
            }
            let addr = places.next();
            let tag = system
                .load(device, Bar::Pm, addr, stream.bytes)
                .map_err(failed)?;
            under_way.push((tag, addr));
            issued += 1;
        }
        let load = system.loaded().map_err(failed)?;
        let load = load.ok_or_else(|| Error::Host("a load is lost".into()))?;
        let place = under_way.iter().position(|u| u.0 == load.tag);
        let place = place.ok_or_else(|| Error::Host("a load that nobody issued".into()))?;
        let (_, addr) = under_way.swap_remove(place);
        let data = load.data.map_err(failed)?;
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
        if !tell(done, stream.count) {
            return Err(Error::Interrupted);
        }
    }
    out.elapsed = system.now() - begin;
    Ok(out)
}
