// SPDX-License-Identifier: Apache-2.0

//! Properties of a channel that its masters rely on.

use std::collections::BTreeMap;

use design::media::DelaySizes;
use fast::memory::{Channel, ChannelConfig, ChannelEvent, ChannelStages, Credits};
use sim::memctrl::MemoryModel;
use sim::{Clock, DramConfig, Random, Time};
use spec::regs::nvm_delay::{self, command, control, counters, region, timing};

fn channel(memory: MemoryModel) -> Channel {
    Channel::new(ChannelConfig {
        masters: 4,
        sizes: DelaySizes {
            read_slots: 64,
            write_slots: 64,
            buffer_beats: 512,
        },
        clock: Clock::default(),
        memory,
        stages: ChannelStages::DEVICE,
    })
}

fn set(channel: &mut Channel, cycle: u64, writes: &[(u64, u32)]) {
    for &(offset, value) in writes {
        channel.set_register(cycle, offset, value, 0xF);
    }
    let commit = command::COMMIT.mask() as u32;
    channel.set_register(cycle, nvm_delay::COMMAND, commit, 0xF);
}

/// Runs until the channel is idle; returns the events.
fn finish(channel: &mut Channel) -> Vec<ChannelEvent> {
    let mut events = Vec::new();
    while let Some(cycle) = channel.next_event() {
        channel.advance(cycle, &mut events);
    }
    assert!(channel.is_idle());
    events
}

fn ends(events: &[ChannelEvent]) -> BTreeMap<u64, u64> {
    events
        .iter()
        .filter_map(|event| match *event {
            ChannelEvent::Read {
                tag, cycle, end, ..
            } => end.then_some((tag, cycle)),
            ChannelEvent::Write { tag, cycle } => Some((tag, cycle)),
        })
        .collect()
}

#[test]
fn channel_returns_a_read_in_pieces_in_order() {
    let mut channel = channel(MemoryModel::Ddr4(DramConfig::default()));
    channel.read(100, 1, 0, 0x1010, 4000, 7);
    let mut last = 0;
    let (mut beats, mut ended) = (0, 0);
    for event in finish(&mut channel) {
        let ChannelEvent::Read {
            tag,
            cycle,
            beats: n,
            end,
        } = event
        else {
            panic!("{event:?}")
        };
        assert_eq!(tag, 7);
        assert!(cycle > last && n <= 8);
        last = cycle;
        beats += n;
        ended += u32::from(end);
    }
    assert_eq!((beats, ended), (63, 1));
}

#[test]
fn channel_keeps_answers_of_one_id_in_order_and_delays_no_others() {
    let mut channel = channel(MemoryModel::Fixed(Time::ns(40)));
    // The first page is slow.
    let slow = nvm_delay::REGION + region::TIMING;
    set(
        &mut channel,
        0,
        &[
            (
                nvm_delay::CONTROL,
                (control::ENABLE.of(1) | control::REGION_ENABLE.of(1)) as u32,
            ),
            (slow + timing::READ_BASE, 1000 << 12),
            (slow + timing::WRITE_BASE, 1000 << 12),
        ],
    );
    channel.read(100, 1, 5, 0, 64, 0);
    channel.read(101, 1, 5, 4096, 64, 1);
    channel.read(102, 1, 6, 4096, 64, 2);
    channel.read(103, 2, 5, 4096, 64, 3);
    channel.write(104, 1, 5, 0, 64, 4);
    channel.write(105, 1, 5, 4096, 64, 5);
    channel.write(106, 1, 6, 4096, 64, 6);
    let ends = ends(&finish(&mut channel));
    assert!(ends[&0] >= 1100 && ends[&1] > ends[&0]);
    assert!(ends[&4] >= 1100 && ends[&5] > ends[&4]);
    assert!(ends[&2] < 200 && ends[&3] < 200 && ends[&6] < 200);
}

#[test]
fn channel_credits_bound_outstanding_lines() {
    let latency = |credits: u32| {
        let mut channel = channel(MemoryModel::Fixed(Time::ns(400)));
        let credits = Credits {
            reads: credits,
            writes: credits,
            ..Credits::default()
        };
        channel.set_credits(0, 2, credits);
        for n in 0..32 {
            channel.read(100, 2, n as u16, n * 64, 64, n);
            channel.write(100, 2, n as u16, n * 64, 64, 100 + n);
        }
        let ends = ends(&finish(&mut channel));
        (ends[&31], ends[&131])
    };
    let (free, four) = (latency(0), latency(4));
    assert!(free.0 < 300 && free.1 < 300, "{free:?}");
    // Eight rounds of four lines, of at least 100 cycles each.
    assert!((900..1100).contains(&four.0), "{four:?}");
    assert!((900..1100).contains(&four.1), "{four:?}");
}

#[test]
fn channel_credits_shrink_while_the_controller_has_lines_outstanding() {
    // Cycle of the last of 30 lines of an engine, of at least 100 cycles each. They start together
    // with a read of the controller.
    let last = |reads: u32, beside: u32, controller_writes: bool, engine: usize| {
        let mut channel = channel(MemoryModel::Fixed(Time::ns(400)));
        let credits = Credits {
            reads,
            beside,
            ..Credits::default()
        };
        channel.set_credits(0, engine, credits);
        match controller_writes {
            true => channel.write(100, 1, 0, 1 << 20, 64, 1000),
            false => channel.read(100, 1, 0, 1 << 20, 64, 1000),
        };
        for n in 0..30 {
            channel.read(101, engine, n as u16, n * 64, 64, n);
        }
        let ends = ends(&finish(&mut channel));
        assert!(ends[&1000] < 300);
        ends[&29]
    };
    for writes in [false, true] {
        for engine in [0, 2] {
            let [free, beside, lower] =
                [(0, 0), (0, 2), (8, 2)].map(|(reads, beside)| last(reads, beside, writes, engine));
            // Two lines, and after the controller's all others at once or eight at a time.
            assert!(free < 300, "{free}");
            assert!((300..400).contains(&beside), "{beside}");
            assert!((500..700).contains(&lower), "{lower}");
            assert_eq!(last(2, 8, writes, engine), last(2, 0, writes, engine));
        }
        // The limit does not apply to the controller itself.
        assert!(last(0, 2, writes, 1) < 300);
    }
}

#[test]
fn channel_load_waits_only_for_lines_requested_before_it() {
    let mut alone = channel(MemoryModel::Ddr4(DramConfig::default()));
    alone.read(1000, 0, 0, 1 << 20, 64, 0);
    let alone = ends(&finish(&mut alone))[&0] - 1000;
    let mut busy = channel(MemoryModel::Ddr4(DramConfig::default()));
    let mut worst = 0;
    for round in 0..50u64 {
        let start = 1000 + 10_000 * round;
        // As many as fit into the read buffer: a load waits for those that do not.
        for n in 0..7 {
            busy.read(start, 1, n as u16, n << 14, 4096, 1000 + n);
        }
        let mut events = Vec::new();
        let at = start + 60 + round;
        busy.advance(at, &mut events);
        busy.read(at, 0, 0, 1 << 20, 64, 0);
        worst = worst.max(ends(&finish(&mut busy))[&0] - at);
    }
    // 32 lines take 32 cycles of the memory's front end; a refresh takes 40 further cycles.
    assert!(worst <= alone + 32 + 48, "{worst} cycles, {alone} alone");
    assert!(worst > alone + 16, "{worst} cycles, {alone} alone");
}

#[test]
fn channel_flush_lets_writes_pass_their_cap() {
    let cap = [
        (nvm_delay::CONTROL, 1),
        (nvm_delay::WRITE_CAP, 1 << 14), // a quarter of a byte a cycle
    ];
    let mut capped = channel(MemoryModel::Fixed(Time::ns(40)));
    set(&mut capped, 0, &cap);
    capped.write(100, 1, 0, 0, 4096, 0);
    assert!(ends(&finish(&mut capped))[&0] > 15_000);
    let mut flushed = channel(MemoryModel::Fixed(Time::ns(40)));
    set(&mut flushed, 0, &cap);
    flushed.write(100, 1, 0, 0, 4096, 0);
    let mut events = Vec::new();
    flushed.advance(1000, &mut events);
    flushed.flush(1000, true);
    let end = ends(&finish(&mut flushed))[&0];
    assert!((1000..1200).contains(&end), "{end}");
}

#[test]
fn channel_reset_keeps_only_the_memory() {
    let mut channel = channel(MemoryModel::Ddr4(DramConfig::default()));
    set(
        &mut channel,
        0,
        &[(nvm_delay::CONTROL, 1), (nvm_delay::TIMING, 500 << 12)],
    );
    channel.read(100, 1, 0, 0, 4096, 0);
    channel.write(100, 1, 0, 0, 4096, 1);
    let mut events = Vec::new();
    channel.advance(300, &mut events);
    channel.reset();
    assert!(channel.is_idle() && channel.next_event().is_none());
    assert_eq!(channel.register(nvm_delay::TIMING), 0);
    assert_eq!(channel.register(nvm_delay::STATUS), 0);
    channel.set_register(
        400,
        nvm_delay::COMMAND,
        command::SNAPSHOT.mask() as u32,
        0xF,
    );
    assert_eq!(
        channel.register(nvm_delay::COUNTERS + counters::read::MIN),
        u32::MAX
    );
    channel.read(500, 1, 0, 0, 64, 2);
    assert!(ends(&finish(&mut channel))[&2] < 600);
}

#[test]
fn channel_ends_every_burst_whatever_the_registers_hold() {
    for (seed, memory) in [
        MemoryModel::Ddr4(DramConfig::default()),
        MemoryModel::Fixed(Time::ZERO),
        MemoryModel::Random {
            max: Time::us(2),
            seed: 1,
        },
    ]
    .into_iter()
    .enumerate()
    {
        let mut channel = channel(memory);
        let mut random = Random::new(seed as u64);
        let mut events = Vec::new();
        let (mut cycle, mut sent, mut arrived) = (0, 0u64, 0u64);
        for _ in 0..20_000 {
            cycle += random.below(60);
            channel.advance(cycle, &mut events);
            match random.below(8) {
                0 => {
                    let value = (random.next() >> random.below(64)) as u32;
                    let strobe = random.below(32) as u8;
                    channel.set_register(cycle, random.below(0x1400), value, strobe);
                }
                1 => channel.set_register(cycle, nvm_delay::COMMAND, random.next() as u32, 0xF),
                2 => {
                    let master = random.below(10) as usize;
                    let credits = Credits {
                        reads: random.below(80) as u32,
                        writes: random.below(80) as u32,
                        beside: random.below(80) as u32,
                        weight: random.below(300) as u32,
                    };
                    channel.set_credits(cycle, master, credits);
                }
                3 if random.below(100) == 0 => channel.flush(cycle, random.below(2) == 0),
                _ => {
                    let (master, id) = (random.below(5) as usize, random.below(1 << 16) as u16);
                    let bytes = random.below(4200) as u32;
                    let addr = random.next();
                    if random.below(2) == 0 {
                        channel.write(cycle, master, id, addr, bytes, sent);
                    } else {
                        channel.read(cycle, master, id, addr, bytes, sent);
                    }
                    sent += 1;
                }
            }
            for offset in [nvm_delay::STATUS, random.below(0x1400)] {
                channel.register(offset);
            }
        }
        events.extend(finish(&mut channel));
        for event in &events {
            arrived += u64::from(!matches!(event, ChannelEvent::Read { end: false, .. }));
        }
        assert_eq!(arrived, sent);
    }
}

#[test]
fn channel_reads_in_flight_follow_a_cap_that_is_lifted() {
    let mut channel = channel(MemoryModel::Fixed(Time::ns(40)));
    set(
        &mut channel,
        0,
        &[(nvm_delay::CONTROL, 1), (nvm_delay::READ_CAP, 1)],
    );
    channel.read(100, 0, 0, 0, 512, 1);
    channel.read(101, 0, 1, 4096, 1024, 2);
    let mut events = Vec::new();
    channel.advance(1500, &mut events);
    assert!(ends(&events).is_empty());
    set(&mut channel, 1500, &[(nvm_delay::READ_CAP, 0)]);
    let ends = ends(&finish(&mut channel));
    assert!((1501..1510).contains(&ends[&1]), "{ends:?}");
    assert!((1509..1540).contains(&ends[&2]), "{ends:?}");
}
