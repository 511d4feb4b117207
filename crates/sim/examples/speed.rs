// SPDX-License-Identifier: Apache-2.0

//! CPU time of the link and of the DRAM models: `cargo run --release -p nearside-sim --example
//! speed`.

use sim::dram::{BurstChannel, Channel, DramConfig, Request};
use sim::{Counter, Device, Fault, HostConfig, HostPort, LinkConfig, Media, Random, System, Time};

const CLOCK: u64 = 4000;

/// CPU time of this process in ns, which other processes do not change.
fn cpu_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ')
        .next()
        .and_then(|ns| ns.parse().ok())
        .unwrap_or(f64::NAN)
}

/// A device that polls its link every clock, and writes and reads pages if `active`.
struct Poller {
    now: Time,
    active: bool,
    buffer: u64,
    tag: u32,
}

impl Device for Poller {
    fn now(&self) -> Time {
        self.now
    }
    fn advance(&mut self, until: Time, host: &mut dyn HostPort) -> Result<(), Fault> {
        let page = [7; 4096];
        while self.now.0 + CLOCK <= until.0 {
            self.now += Time(CLOCK);
            while host.mmio(self.now).is_some() {}
            while host.read_data(self.now).is_some() {}
            if host.attention() {
                break;
            }
            if self.active {
                host.write(self.now, self.buffer, &page);
                if host.read(self.now, self.tag, self.buffer, 4096) {
                    self.tag += 1;
                }
            }
        }
        Ok(())
    }
    fn idle(&self) -> bool {
        false
    }
    fn power_off(&mut self) {}
    fn power_on(&mut self) {}
    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }
}

fn link(active: bool) {
    let mut system = System::new(&HostConfig::default()).expect("defaults are valid");
    let buffer = system.memory_mut().alloc(4096, 1).expect("there is room");
    let poller = Poller {
        now: Time::ZERO,
        active,
        buffer,
        tag: 0,
    };
    system
        .add_device(Box::new(poller), &LinkConfig::default(), &[])
        .expect("defaults are valid");
    let span = Time::ms(4);
    let start = cpu_ns();
    system.advance_until(span).expect("no faults");
    let ns = cpu_ns() - start;
    let stats = system.link(0).expect("it is there").stats();
    let tlps = stats.up.tlps + stats.down.tlps;
    let clocks = span.0 / CLOCK;
    println!(
        "link: {clocks} clocks, {tlps} TLPs: {:.1} ns a clock, {:.1} ns a TLP",
        ns / clocks as f64,
        ns / tlps as f64
    );
}

fn dram(what: &str, mut next: impl FnMut(u64) -> (u64, bool)) {
    let mut channel = Channel::new(&DramConfig::default());
    let (mut now, mut done) = (Time::ZERO, 0u64);
    let n = 2_000_000;
    let mut pushed = 0;
    let mut pending = next(0);
    let start = cpu_ns();
    while done < n {
        now += Time(CLOCK);
        for _ in 0..2 {
            let (addr, is_write) = pending;
            if pushed < n
                && channel.push(
                    now,
                    Request {
                        tag: pushed,
                        addr,
                        is_write,
                    },
                )
            {
                pushed += 1;
                pending = next(pushed);
            }
        }
        while channel.poll(now).is_some() {
            done += 1;
        }
    }
    let ns = cpu_ns() - start;
    println!(
        "dram {what}: {:.0} ns a request, {:.1} GB/s simulated, {:.0} k requests per CPU second",
        ns / n as f64,
        n as f64 * 64.0 / now.as_ns(),
        n as f64 / ns * 1e6
    );
}

/// Bursts of `lines` lines, of which `depth` are in flight.
fn bursts(what: &str, lines: u32, depth: usize, mut next: impl FnMut(u64) -> (u64, bool)) {
    let mut channel = BurstChannel::new(&DramConfig::default(), Time(CLOCK));
    let all = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(8_000_000);
    if std::env::args().nth(2).is_some_and(|a| !what.contains(&a)) {
        return;
    }
    let n = all / u64::from(lines);
    let mut ends = vec![Time::ZERO; depth];
    let mut now = Time::ZERO;
    let start = cpu_ns();
    for i in 0..n {
        let (addr, is_write) = next(i);
        let end = &mut ends[i as usize % depth];
        now = Time((now.0 + CLOCK).max(end.0));
        *end = if is_write {
            channel.write(now, addr, lines).safe
        } else {
            channel.read(now, addr, lines).last
        };
    }
    let ns = cpu_ns() - start;
    let count = (n * u64::from(lines)) as f64;
    println!(
        "dram, burst by burst, {what} of {lines} x {depth}: {:.1} ns a line, {:.1} GB/s \
            simulated, {:.1} M lines per CPU second",
        ns / count,
        count * 64.0 / now.as_ns(),
        count / ns * 1e3
    );
}

/// `speed LINES [WHAT]` measures only these bursts: LINES lines each, and only those named WHAT.
fn all_bursts() {
    for depth in [1, 16, 32, 64] {
        let mut random = Random::new(1);
        bursts("random reads", 1, depth, move |_| {
            (random.below(1 << 32), false)
        });
    }
    let mut random = Random::new(1);
    bursts("random writes", 1, 16, move |_| {
        (random.below(1 << 32), true)
    });
    let mut random = Random::new(1);
    bursts("random mix", 1, 16, move |_| {
        (random.below(1 << 32), random.below(3) == 0)
    });
    for lines in [8, 64] {
        let mut random = Random::new(1);
        bursts("random reads", lines, 4, move |_| {
            (random.below(1 << 20) << 12, false)
        });
        bursts("sequential writes", lines, 4, move |i| {
            (i * u64::from(lines) * 64, true)
        });
    }
}

fn main() {
    all_bursts();
    if std::env::args().len() > 1 {
        return;
    }
    link(false);
    link(true);
    dram("sequential reads", |i| (i * 64, false));
    dram("sequential writes", |i| (i * 64, true));
    let mut random = Random::new(1);
    dram("random reads", move |_| (random.below(1 << 32), false));
    let mut random = Random::new(1);
    dram("random mix", move |_| {
        (random.below(1 << 32), random.below(3) == 0)
    });
    let mut channel = Channel::new(&DramConfig::default());
    let start = cpu_ns();
    let mut found = 0;
    for i in 0..20_000_000u64 {
        found += u64::from(channel.poll(Time(i * CLOCK)).is_some());
    }
    println!(
        "dram idle: {:.1} ns a poll ({found} found)",
        (cpu_ns() - start) / 2e7
    );
    let mut media = Media::memory(1 << 30).expect("the size is valid");
    let mut random = Random::new(1);
    let start = cpu_ns();
    let mut sum = 0u64;
    for _ in 0..5_000_000 {
        let addr = random.below(1 << 26);
        media.write_line(addr, &[1; 64], u64::MAX);
        sum += media.read_line(addr).map_or(0, |line| u64::from(line[0]));
    }
    println!(
        "media: {:.1} ns for a write and a read of a random line ({sum})",
        (cpu_ns() - start) / 5e6
    );
}
