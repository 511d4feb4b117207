// SPDX-License-Identifier: Apache-2.0

//! Latencies, credits and tags against arithmetic.

use std::sync::{Arc, Mutex};

use sim::{Bar, Error, HostConfig, HostPort, LinkConfig, Mmio, System, Time};

use crate::clocked::Clocked;

const CLOCK: Time = Time(4000);

/// One direction of the default link, and the time of some bytes on it.
fn one_way(link: &LinkConfig) -> Time {
    Time::ns(link.device_phy_ns + link.propagation_ns + link.root_phy_ns)
}

fn wire(link: &LinkConfig, bytes: u64) -> Time {
    Time((bytes as f64 / link.bytes_per_ns() * 1000.0) as u64)
}

fn close(found: Time, expected: Time, what: &str) {
    assert!(
        found.0.abs_diff(expected.0) <= 4,
        "{what}: {found:?}, expected {expected:?}"
    );
}

/// Rounds up to the next clock edge.
fn edge(time: Time) -> Time {
    Time(time.0.div_ceil(CLOCK.0) * CLOCK.0)
}

#[test]
fn timing_of_an_mmio_read_is_the_sum_of_its_parts() {
    for (generation, lanes, len) in [(3u8, 8u8, 4usize), (1, 1, 8), (5, 16, 64), (3, 8, 4096)] {
        let link = LinkConfig {
            generation,
            lanes,
            ..LinkConfig::default()
        };
        let host = HostConfig::default();
        let mut system = System::new(&host).unwrap();
        let echo = |now: Time, port: &mut dyn HostPort| {
            while let Some(Mmio::Read {
                offset, len, tag, ..
            }) = port.mmio(now)
            {
                port.mmio_data(
                    now,
                    tag,
                    Some((0..len).map(|i| (offset + u64::from(i)) as u8).collect()),
                );
            }
            false
        };
        let device = system
            .add_device(
                Box::new(Clocked::new(CLOCK, echo)),
                &link,
                &[(Bar::Control, 1 << 20)],
            )
            .unwrap();
        for start in [0u64, 1_234_567, 5_000_000_001] {
            system.advance_until(Time(start)).unwrap();
            let data = system.mmio_read(device, Bar::Control, 0x1000, len).unwrap();
            assert!(data.iter().enumerate().all(|(i, &b)| b == i as u8));
            let request = Time(start) + Time::ns(host.mmio_ns) + wire(&link, 24) + one_way(&link);
            let answer = wire(&link, len as u64 + 20 * (len as u64).div_ceil(256));
            let expected = edge(request) + answer + one_way(&link) + Time::ns(host.mmio_ns);
            assert!(
                system.now().0.abs_diff(expected.0) <= 4 + 2 * len as u64 / 256,
                "{:?} {expected:?}",
                system.now()
            );
        }
    }
}

#[test]
fn timing_of_dma_is_the_sum_of_its_parts() {
    let (link, host) = (LinkConfig::default(), HostConfig::default());
    let mut system = System::new(&host).unwrap();
    let buffer = system.memory_mut().alloc(4096, 1).unwrap();
    system.memory_mut().write(buffer, &[0x5A; 64]).unwrap();
    let watch = system.memory_mut().watch(buffer + 1024, 8).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    // At 1 us a read of 64 bytes; once its data has arrived, a write of 8 bytes and an interrupt.
    let step = move |now: Time, port: &mut dyn HostPort| {
        if now == Time::us(1) {
            assert!(port.read(now, 77, buffer, 64));
        }
        if let Some(piece) = port.read_data(now) {
            assert_eq!(
                (piece.tag, piece.last, piece.data),
                (77, true, Some(vec![0x5A; 64]))
            );
            log.lock().unwrap().push(now);
            assert!(port.write(now, buffer + 1024, &[1; 8]));
            assert!(port.write(now, 0xFEE0_0010, &[7, 0, 0, 0]));
        }
        now < Time::us(1)
    };
    system
        .add_device(Box::new(Clocked::new(CLOCK, step)), &link, &[])
        .unwrap();
    assert!(system.wait_for_write(watch, Time::us(50)).unwrap());
    let answer = Time::us(1)
        + wire(&link, 24)
        + one_way(&link)
        + Time::ns(host.read_ns)
        + wire(&link, 84)
        + one_way(&link);
    let taken = seen.lock().unwrap()[0];
    assert_eq!(taken, edge(answer));
    close(
        system.now(),
        taken + wire(&link, 32) + one_way(&link),
        "a write",
    );
    assert_eq!(system.memory().slice(buffer + 1024, 8).unwrap(), [1; 8]);
    assert_eq!(system.memory_mut().take_hits(watch), 1);
    assert!(system.wait(Time::us(50)).unwrap());
    let interrupt = system.interrupts(0)[0];
    close(
        interrupt.time,
        taken + wire(&link, 32 + 24) + one_way(&link),
        "an interrupt after it",
    );
    assert_eq!(
        (interrupt.addr, interrupt.data, system.now()),
        (0xFEE0_0010, 7, interrupt.time)
    );
    assert!(!system.wait(Time::us(60)).unwrap());
    assert_eq!(system.now(), Time::us(60));
}

/// A device that reads pages as fast as it may for `span`; returns the bytes it got.
fn read_all(link: &LinkConfig, host: &HostConfig, span: Time) -> (u64, sim::LinkStats) {
    let mut system = System::new(host).unwrap();
    let buffer = system.memory_mut().alloc(4096, 1).unwrap();
    let got = Arc::new(Mutex::new(0u64));
    let count = got.clone();
    let mut tag = 0;
    let step = move |now: Time, port: &mut dyn HostPort| {
        while let Some(piece) = port.read_data(now) {
            *count.lock().unwrap() += piece.data.unwrap().len() as u64;
        }
        while port.read(now, tag, buffer, 512) {
            tag += 1;
        }
        true
    };
    system
        .add_device(Box::new(Clocked::new(Time::ns(1), step)), link, &[])
        .unwrap();
    system.advance_until(span).unwrap();
    let bytes = *got.lock().unwrap();
    (bytes, system.link(0).unwrap().stats())
}

#[test]
fn timing_tags_bound_reads_by_the_round_trip() {
    let link = LinkConfig {
        tags: 8,
        ..LinkConfig::default()
    };
    let host = HostConfig {
        read_ns: 2000,
        ..HostConfig::default()
    };
    let span = Time::us(500);
    let (bytes, stats) = read_all(&link, &host, span);
    // Eight requests of 512 bytes in flight at any time.
    let trip = wire(&link, 24)
        + one_way(&link)
        + Time::ns(host.read_ns)
        + wire(&link, 552)
        + one_way(&link);
    let expected = 8.0 * 512.0 * span.as_ns() / trip.as_ns();
    assert!(
        (bytes as f64 / expected - 1.0).abs() < 0.02,
        "{bytes} of {expected}"
    );
    assert!(stats.refused_tag > 0);
    // With more tags the wire is the bottleneck.
    let (bytes, _) = read_all(&LinkConfig { tags: 256, ..link }, &host, span);
    let expected =
        (span - trip).as_ns() * 512.0 / (552.0 + 4.0) * LinkConfig::default().bytes_per_ns();
    assert!(
        (bytes as f64 / expected - 1.0).abs() < 0.01,
        "{bytes} of {expected}"
    );
}

#[test]
fn timing_completion_buffer_and_credits_bound_reads() {
    let host = HostConfig {
        read_ns: 2000,
        ..HostConfig::default()
    };
    let span = Time::us(200);
    let base = LinkConfig {
        tags: 256,
        ..LinkConfig::default()
    };
    let (free, _) = read_all(&base, &host, span);
    let (buffered, stats) = read_all(
        &LinkConfig {
            device_completion_bytes: 4096,
            ..base.clone()
        },
        &host,
        span,
    );
    assert!(
        buffered < free / 3 && stats.refused_tag > 0,
        "{buffered} of {free}"
    );
    let (credited, stats) = read_all(
        &LinkConfig {
            host_nonposted_headers: 8,
            ..base
        },
        &host,
        span,
    );
    assert!(
        credited < free && stats.refused_credit > 0,
        "{credited} of {free}"
    );
}

#[test]
fn timing_posted_credits_bound_writes_by_the_round_trip() {
    let span = Time::us(500);
    let run = |link: &LinkConfig, host: &HostConfig| {
        let mut system = System::new(host).unwrap();
        let buffer = system.memory_mut().alloc(4096, 1).unwrap();
        let step = move |now: Time, port: &mut dyn HostPort| {
            while port.write(now, buffer, &[1; 256]) {}
            true
        };
        system
            .add_device(Box::new(Clocked::new(Time::ns(1), step)), link, &[])
            .unwrap();
        system.advance_until(span).unwrap();
        system.link(0).unwrap().stats()
    };
    let host = HostConfig {
        write_ns: 3000,
        ..HostConfig::default()
    };
    for (headers, bytes) in [(128, 4352), (16, 1 << 20)] {
        let link = LinkConfig {
            host_posted_headers: headers,
            host_posted_bytes: bytes,
            ..LinkConfig::default()
        };
        let stats = run(&link, &host);
        let writes = f64::from(headers.min(bytes / 256));
        // The credits of a batch return one by one, a TLP time apart.
        let trip = one_way(&link) + Time::ns(3000) + one_way(&link) + wire(&link, 280);
        let expected = writes * 256.0 * span.as_ns() / trip.as_ns();
        let found = stats.up.payload as f64;
        assert!(
            (found / expected - 1.0).abs() < 0.02,
            "{found} of {expected}"
        );
        assert!(stats.refused_credit > 0);
    }
    let stats = run(&LinkConfig::default(), &HostConfig::default());
    let expected = span.as_ns() * LinkConfig::default().bytes_per_ns() * 256.0 / 280.0;
    assert!((stats.up.payload as f64 / expected - 1.0).abs() < 0.001);
    // Two DLLPs of 8 bytes for four TLPs, in the opposite direction.
    assert!(
        stats.down.dllps.abs_diff(stats.up.tlps / 2) <= 200
            && stats.down.wire == stats.down.dllps * 8
    );
}

#[test]
fn timing_device_that_accepts_nothing_stalls_the_cpu() {
    let link = LinkConfig {
        device_posted_headers: 4,
        device_nonposted_headers: 1,
        ..LinkConfig::default()
    };
    let host = HostConfig {
        mmio_queue: 8,
        completion_timeout_us: 5,
        ..HostConfig::default()
    };
    let taken = Arc::new(Mutex::new(Vec::new()));
    let log = taken.clone();
    let step = move |now: Time, port: &mut dyn HostPort| {
        if now > Time::us(10) {
            while let Some(Mmio::Write { data, .. }) = port.mmio(now) {
                log.lock().unwrap().push(data[0]);
            }
        }
        true
    };
    let mut system = System::new(&host).unwrap();
    let device = system
        .add_device(
            Box::new(Clocked::new(CLOCK, step)),
            &link,
            &[(Bar::Nvme, 4096)],
        )
        .unwrap();
    // Four in flight or in the device's buffer, eight in the queue; then the CPU waits without
    // success.
    for i in 0..12 {
        system
            .mmio_write(device, Bar::Nvme, 0, &[i, 0, 0, 0])
            .unwrap();
    }
    assert!(system.now() < Time::us(2));
    assert!(matches!(
        system.mmio_write(device, Bar::Nvme, 0, &[99; 4]),
        Err(Error::Timeout { .. })
    ));
    assert!(system.now() > Time::us(5));
    system.advance_until(Time::us(20)).unwrap();
    assert_eq!(*taken.lock().unwrap(), (0..12).collect::<Vec<_>>());
    system.mmio_write(device, Bar::Nvme, 0, &[12; 4]).unwrap();
    system.advance_by(Time::us(1)).unwrap();
    assert_eq!(taken.lock().unwrap().len(), 13);
}

#[test]
fn timing_unanswered_read_times_out_and_failed_read_reports() {
    let host = HostConfig {
        completion_timeout_us: 5,
        ..HostConfig::default()
    };
    let mut system = System::new(&host).unwrap();
    let step = |now: Time, port: &mut dyn HostPort| {
        while let Some(mmio) = port.mmio(now) {
            if let Mmio::Read { offset: 8, tag, .. } = mmio {
                port.mmio_data(now, tag, None);
            }
        }
        false
    };
    let device = system
        .add_device(
            Box::new(Clocked::new(CLOCK, step)),
            &LinkConfig::default(),
            &[(Bar::Nvme, 4096)],
        )
        .unwrap();
    let error = system.mmio_read(device, Bar::Nvme, 0, 4).unwrap_err();
    assert_eq!(
        (error, system.now()),
        (
            Error::Timeout {
                device,
                bar: Bar::Nvme,
                offset: 0
            },
            Time::us(5)
        )
    );
    let error = system.mmio_read(device, Bar::Nvme, 8, 4).unwrap_err();
    assert_eq!(
        error,
        Error::ReadFailed {
            device,
            bar: Bar::Nvme,
            offset: 8
        }
    );
    assert!(system.now() < Time::us(7));
    for (bar, offset) in [(Bar::Nvme, 4093), (Bar::Pm, 0), (Bar::Nvme, u64::MAX)] {
        assert_eq!(
            system.mmio_read(device, bar, offset, 4),
            Err(Error::NoWindow {
                device,
                bar,
                offset
            })
        );
    }
}

#[test]
fn timing_idle_system_jumps_to_the_limit() {
    let calls = Arc::new(Mutex::new(0));
    let count = calls.clone();
    let step = move |_: Time, _: &mut dyn HostPort| {
        *count.lock().unwrap() += 1;
        false
    };
    let mut system = System::new(&HostConfig::default()).unwrap();
    system
        .add_device(
            Box::new(Clocked::new(CLOCK, step)),
            &LinkConfig::default(),
            &[],
        )
        .unwrap();
    system.advance_until(Time::ms(100_000)).unwrap();
    assert_eq!(system.now(), Time::ms(100_000));
    assert!(*calls.lock().unwrap() < 10);
    // No limit and no future event: no wait.
    assert!(!system.wait(Time::MAX).unwrap());
    assert_eq!(system.now(), Time::ms(100_000));
}

#[test]
fn timing_doorbell_passes_queued_read_data() {
    // A slow wire with 32 KiB of completions waiting for it.
    let link = LinkConfig {
        generation: 1,
        lanes: 1,
        tags: 64,
        ..LinkConfig::default()
    };
    let mut system = System::new(&HostConfig::default()).unwrap();
    let buffer = system.memory_mut().alloc(4096, 1).unwrap();
    let seen = Arc::new(Mutex::new(Time::ZERO));
    let log = seen.clone();
    let step = move |now: Time, port: &mut dyn HostPort| {
        if now == Time::us(1) {
            (0..64).for_each(|tag| while !port.read(now, tag, buffer, 512) && tag < 4 {});
        }
        while port.read_data(now).is_some() {}
        if port.mmio(now).is_some() {
            *log.lock().unwrap() = now;
        }
        now < Time::us(1)
    };
    let device = system
        .add_device(
            Box::new(Clocked::new(CLOCK, step)),
            &link,
            &[(Bar::Nvme, 4096)],
        )
        .unwrap();
    system.advance_until(Time::us(4)).unwrap();
    system.mmio_write(device, Bar::Nvme, 0, &[1; 4]).unwrap();
    system.advance_until(Time::ms(1)).unwrap();
    let alone = Time::us(4) + Time::ns(50) + wire(&link, 28) + one_way(&link);
    let seen = *seen.lock().unwrap();
    assert!(
        seen >= alone && seen <= alone + wire(&link, 2 * 276) + CLOCK,
        "{seen} against {alone}"
    );
}

#[test]
fn timing_reads_and_writes_share_the_link() {
    // Whichever direction it tries first in a clock, a device with endless work for both gets a
    // fair share of each.
    for writes_first in [false, true] {
        let mut system = System::new(&HostConfig::default()).unwrap();
        let buffer = system.memory_mut().alloc(4096, 1).unwrap();
        let mut tag = 0;
        let step = move |now: Time, port: &mut dyn HostPort| {
            while port.read_data(now).is_some() {}
            for turn in [writes_first, !writes_first] {
                if turn {
                    port.write(now, buffer, &[1; 4096]);
                } else if port.read(now, tag, buffer, 4096) {
                    tag += 1;
                }
            }
            true
        };
        let link = LinkConfig::default();
        system
            .add_device(Box::new(Clocked::new(CLOCK, step)), &link, &[])
            .unwrap();
        let span = Time::us(500);
        system.advance_until(span).unwrap();
        let stats = system.link(0).unwrap().stats();
        let share = |payload: u64| payload as f64 / span.as_ns() / link.bytes_per_ns();
        let (written, read) = (share(stats.up.payload), share(stats.down.payload));
        assert!(
            written > 0.75 && read > 0.75,
            "writes {written:.2}, reads {read:.2} of the wire"
        );
    }
}

#[test]
fn timing_cpu_reads_its_earlier_writes() {
    let mut system = System::new(&HostConfig::default()).unwrap();
    let mut bytes = vec![0u8; 65_536];
    let memory = move |now: Time, port: &mut dyn HostPort| {
        while let Some(mmio) = port.mmio(now) {
            match mmio {
                Mmio::Write { offset, data, .. } => {
                    // No TLP exceeds the payload size or crosses a page.
                    assert!(
                        data.len() <= 256
                            && offset / 4096 == (offset + data.len() as u64 - 1) / 4096
                    );
                    bytes[offset as usize..offset as usize + data.len()].copy_from_slice(&data);
                }
                Mmio::Read {
                    offset, len, tag, ..
                } => {
                    let at = offset as usize;
                    port.mmio_data(now, tag, Some(bytes[at..at + len as usize].to_vec()));
                }
            }
        }
        false
    };
    let device = Box::new(Clocked::new(CLOCK, memory));
    let device = system
        .add_device(device, &LinkConfig::default(), &[(Bar::Pm, 65_536)])
        .unwrap();
    let mut random = sim::Random::new(9);
    let mut picture = vec![0u8; 65_536];
    for _ in 0..300 {
        let at = random.below(60_000) as usize;
        let len = 1 + random.below(5000) as usize;
        if random.below(2) == 0 {
            let data: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
            system
                .mmio_write(device, Bar::Pm, at as u64, &data)
                .unwrap();
            picture[at..at + len].copy_from_slice(&data);
        } else {
            let data = system.mmio_read(device, Bar::Pm, at as u64, len).unwrap();
            assert!(data == picture[at..at + len]);
        }
    }
}

#[test]
fn timing_requests_and_completions_split_at_boundaries() {
    // 1016 bytes from offset 4 of a page: requests end at multiples of 512, completions at
    // multiples of 64.
    let lines: Vec<_> = [&[60][..], &[64; 14], &[60]].concat();
    for (largest, sizes) in [(256, vec![252, 256, 256, 252]), (64, lines)] {
        let link = LinkConfig {
            max_completion_bytes: largest,
            ..LinkConfig::default()
        };
        let mut system = System::new(&HostConfig::default()).unwrap();
        let buffer = system.memory_mut().alloc(4096, 1).unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = seen.clone();
        let step = move |now: Time, port: &mut dyn HostPort| {
            if now == Time::us(1) {
                assert!(port.read(now, 0, buffer + 4, 1016));
                assert!(port.write(now, buffer + 4, &[0; 1016]));
            }
            while let Some(piece) = port.read_data(now) {
                log.lock().unwrap().push(piece.data.unwrap().len());
            }
            now < Time::us(1)
        };
        system
            .add_device(Box::new(Clocked::new(CLOCK, step)), &link, &[])
            .unwrap();
        system.advance_until(Time::us(5)).unwrap();
        let seen = seen.lock().unwrap();
        assert_eq!(*seen, sizes);
        let stats = system.link(0).unwrap().stats();
        // Two requests; writes of 252, 256, 256 and 252 bytes.
        assert_eq!((stats.up.tlps, stats.up.payload), (2 + 4, 1016));
        assert_eq!(stats.up.wire, 6 * 24 + 1016 + stats.up.dllps * 8);
        let tlps = seen.len() as u64;
        assert_eq!((stats.down.tlps, stats.down.payload), (tlps, 1016));
        assert_eq!(stats.down.wire, tlps * 20 + 1016 + stats.down.dllps * 8);
    }
}
