//! CPU time that a memory channel takes: `cargo run --release -p nearside-fast --example memory_speed`.

use std::path::Path;

use design::media::{Sizes, Turns};
use design::Profile;
use fast::memory::{Channel, ChannelConfig, Event, Stages};
use sim::controller::Memory;
use sim::{Clock, DramConfig, Random};
use spec::regs::nvm_delay;

/// CPU time of this process in ns, which others on the machine don't change.
fn cpu_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ')
        .next()
        .and_then(|ns| ns.parse().ok())
        .unwrap_or(f64::NAN)
}

fn channel(profile: &str) -> Channel {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let profile = Profile::find(&root, profile).expect("it is in media/");
    let clock = Clock::default();
    let turns = Turns {
        channels: 2,
        granule: 4096,
    };
    let registers = &profile.registers(clock, turns).expect("it is valid")[0];
    let mut channel = Channel::new(ChannelConfig {
        masters: 2,
        sizes: Sizes {
            read_slots: 64,
            write_slots: 64,
            buffer_beats: 512,
        },
        clock,
        memory: Memory::Ddr4(DramConfig::default()),
        stages: Stages::DEVICE,
    });
    let mut set = |offset, value| channel.set_register(0, offset, value, 0xF);
    for (n, &time) in registers.timing.iter().enumerate() {
        set(nvm_delay::TIMING + 4 * n as u64, time);
    }
    set(nvm_delay::READ_CAP, registers.read_cap);
    set(nvm_delay::WRITE_CAP, registers.write_cap);
    set(nvm_delay::CONTROL, registers.control);
    set(nvm_delay::COMMAND, nvm_delay::command::COMMIT.mask() as u32);
    channel
}

/// Keeps `depth` bursts of `bytes` in flight; `writes` of 100 are writes.
fn measure(profile: &str, depth: usize, bytes: u32, writes: u64) {
    let mut channel = channel(profile);
    let mut random = Random::new(1);
    let mut events = Vec::new();
    let (mut issued, mut done, mut cycle) = (0u64, 0u64, 1000u64);
    let count = 6_000_000 / u64::from(bytes.div_ceil(64)) + 200_000;
    let start = cpu_ns();
    let mut go = |channel: &mut Channel, cycle: u64| {
        let addr = random.below((4 << 30) / u64::from(bytes)) * u64::from(bytes);
        let id = (issued % 64) as u16;
        if writes > 0 && random.below(100) < writes {
            channel.write(cycle, 1, id, addr, bytes, issued);
        } else {
            channel.read(cycle, 1, id, addr, bytes, issued);
        }
        issued += 1;
    };
    for _ in 0..depth {
        go(&mut channel, cycle);
    }
    while done < count {
        cycle = channel.next_event().expect("something is in flight");
        channel.advance(cycle, &mut events);
        for event in events.drain(..) {
            let (end, at) = match event {
                Event::Read { end, cycle, .. } => (end, cycle),
                Event::Write { cycle, .. } => (true, cycle),
            };
            if end {
                done += 1;
                go(&mut channel, at + 1);
            }
        }
    }
    let ns = cpu_ns() - start;
    println!(
        "{profile:13} {bytes:4} bytes x {depth:2}, {writes:3} % writes: {:5.1} ns a burst, {:5.2} M bursts and {:6.1} M lines per CPU second, {:5.2} GB/s simulated",
        ns / count as f64,
        count as f64 / ns * 1e3,
        count as f64 * f64::from(bytes) / 64.0 / ns * 1e3,
        count as f64 * f64::from(bytes) / (cycle as f64 * 4.0),
    );
}

fn main() {
    for profile in ["optane-dcpmm", "dram"] {
        for (bytes, depth) in [(64, 1), (64, 16), (64, 64), (512, 16), (4096, 8)] {
            measure(profile, depth, bytes, 0);
        }
        measure(profile, 16, 64, 50);
        measure(profile, 16, 64, 100);
        measure(profile, 8, 4096, 50);
    }
}
