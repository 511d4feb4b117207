// SPDX-License-Identifier: Apache-2.0

//! Accesses through one channel of a memory: `nvm_delay` with a profile of `media/`, and the DDR4
//! model. Written data reach the media and are compared when they are read.

use design::media::DelaySizes;
use design::Profile;
use fast::memory::{Channel, ChannelConfig, ChannelEvent, ChannelStages};
use hdrhistogram::Histogram;
use sim::memctrl::MemoryModel;
use sim::{Clock, DramConfig, Media};
use spec::nvm_delay::Interleave;
use spec::regs::nvm_delay;

use crate::content::Content;
use crate::places::{Access, Places};
use crate::process::{cpu_seconds, resident_mb};
use crate::run_result::{Hash, RunResult, LONGEST_NS};

/// Size of the accessed range: 512 rows of each bank, so nearly every access opens a row.
pub const SPAN: u64 = 64 << 20;
/// Accesses after which memory is measured for the first time.
pub const WARM: u64 = 8_000_000;

/// Largest access: a burst of AXI.
pub const MOST_BYTES: u32 = 4096;
/// Most accesses in flight.
pub const DEEPEST: u64 = 4096;
// There is always a place that no access is at.
const _: () = assert!(SPAN / MOST_BYTES as u64 > DEEPEST);

/// Whether accesses can have this size. Other numbers of lines would cross 4 KiB boundaries, which
/// no burst does.
pub fn fits(bytes: u32) -> bool {
    bytes.is_power_of_two() && (64..=MOST_BYTES).contains(&bytes)
}

/// The measured load.
#[derive(Clone, Copy)]
pub struct Load<'a> {
    /// A profile of `media/`.
    pub profile: &'a str,
    /// Accesses in flight.
    pub depth: usize,
    /// Bytes of each.
    pub bytes: u32,
    /// Percentage of reads.
    pub percent: u64,
}

fn channel(profile: &str) -> Result<Channel, String> {
    let profile = Profile::find(profile).map_err(|e| e.to_string())?;
    let clock = Clock::default();
    let turns = Interleave {
        channels: 2,
        granule: 4096,
    };
    let registers = &profile.registers(clock, turns).map_err(|e| e.to_string())?[0];
    let mut channel = Channel::new(ChannelConfig {
        masters: 2,
        sizes: DelaySizes {
            read_slots: 64,
            write_slots: 64,
            buffer_beats: 512,
        },
        clock,
        memory: MemoryModel::Ddr4(DramConfig::default()),
        stages: ChannelStages::DEVICE,
    });
    let mut set = |offset, value| channel.set_register(0, offset, value, 0xF);
    for (n, &time) in registers.timing.iter().enumerate() {
        set(nvm_delay::TIMING + 4 * n as u64, time);
    }
    set(nvm_delay::READ_CAP, registers.read_cap);
    set(nvm_delay::WRITE_CAP, registers.write_cap);
    set(nvm_delay::CONTROL, registers.control);
    set(nvm_delay::COMMAND, nvm_delay::command::COMMIT.mask() as u32);
    Ok(channel)
}

/// An access in flight.
#[derive(Clone, Copy, Default)]
struct InFlight {
    place: u64,
    since: u64,
}

/// Keeps accesses in flight until `count` have ended.
pub fn measure(load: Load, count: u64) -> Result<RunResult, String> {
    let mut channel = channel(load.profile)?;
    let mut media = Media::memory(SPAN).map_err(|e| e.to_string())?;
    let bytes = u64::from(load.bytes);
    let content = Content::new(bytes as usize);
    let mut places = Places::new(SPAN / bytes, load.percent);
    let mut in_flight = vec![InFlight::default(); load.depth];
    let mut latency =
        Histogram::<u64>::new_with_bounds(1, LONGEST_NS, 3).map_err(|e| e.to_string())?;
    let mut hash = Hash::default();
    let zeros = vec![0; bytes as usize];
    let mut out = zeros.clone();
    // Data that are only read have to exist.
    let filled = load.percent == 100;
    if filled {
        for place in 0..SPAN / bytes {
            media.write(place * bytes, content.of(place, 0));
        }
    }
    let mut events = Vec::new();
    let (mut issued, mut done, mut cycle, mut compared) = (0, 0, 1000, 0);
    let mut warm_mb = f64::NAN;
    let start = cpu_seconds();
    let mut go = |channel: &mut Channel,
                  media: &mut Media,
                  places: &mut Places,
                  in_flight: &mut InFlight,
                  slot: usize,
                  cycle: u64| {
        let Access {
            place,
            read,
            version,
        } = places.begin();
        media.prefetch(places.upcoming() * bytes, bytes as usize);
        let addr = place * bytes;
        let id = (issued % 64) as u16;
        if read {
            channel.read(cycle, 1, id, addr, load.bytes, slot as u64);
        } else {
            // A store's bytes are there when it stands before the channel.
            media.write(addr, content.of(place, version));
            channel.write(cycle, 1, id, addr, load.bytes, slot as u64);
        }
        *in_flight = InFlight {
            place,
            since: cycle,
        };
        issued += 1;
    };
    for (slot, in_flight) in in_flight.iter_mut().enumerate() {
        go(
            &mut channel,
            &mut media,
            &mut places,
            in_flight,
            slot,
            cycle,
        );
    }
    while done < count {
        cycle = channel.next_event().ok_or("nothing is in flight")?;
        channel.advance(cycle, &mut events);
        for event in events.drain(..) {
            let (read, end, slot, at) = match event {
                ChannelEvent::Read {
                    end, cycle, tag, ..
                } => (true, end, tag as usize, cycle),
                ChannelEvent::Write { cycle, tag } => (false, true, tag as usize, cycle),
            };
            if !end {
                continue;
            }
            let InFlight { place, since } = in_flight[slot];
            let version = places.end(place);
            if read {
                media.read(place * bytes, &mut out);
                let fine = match version {
                    0 if !filled => out == zeros,
                    _ => out == content.of(place, version),
                };
                if !fine {
                    return Err(format!(
                        "place {place} does not hold the data written there"
                    ));
                }
                compared += bytes;
            }
            latency.saturating_record(4 * (at - since));
            hash.add(at << 8 | slot as u64);
            done += 1;
            if done == WARM {
                warm_mb = resident_mb();
            }
            go(
                &mut channel,
                &mut media,
                &mut places,
                &mut in_flight[slot],
                slot,
                at + 1,
            );
        }
    }
    let seconds = cpu_seconds() - start;
    Ok(RunResult {
        per_second: count as f64 / seconds,
        compared,
        simulated: cycle as f64 * 4.0,
        p50_ns: latency.value_at_quantile(0.5),
        p99_ns: latency.value_at_quantile(0.99),
        hash,
        events: f64::NAN,
        warm_mb,
        end_mb: resident_mb(),
    })
}
