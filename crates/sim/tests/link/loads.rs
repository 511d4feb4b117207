// SPDX-License-Identifier: Apache-2.0

//! Loads of a device: several in flight, answers in parts, and the credits and limits that bound
//! them.

use std::collections::VecDeque;

use sim::{Bar, Error, HostConfig, HostPort, LinkConfig, Mmio, System, Time};

use crate::clocked::Clocked;

const CLOCK: Time = Time(4000);
const WINDOW: u64 = 1 << 20;

/// The content of the window.
fn byte(offset: u64) -> u8 {
    (offset ^ offset >> 8) as u8
}

/// A device that answers 64-byte loads after a fixed time, in order. It answers longer loads a line
/// a clock, in parts of 256 bytes.
fn memory(system: &mut System, link: &LinkConfig, latency: Time) -> usize {
    let mut waiting = VecDeque::new();
    let step = move |now: Time, port: &mut dyn HostPort| {
        while let Some(mmio) = port.mmio(now) {
            if let Mmio::Read {
                offset, len, tag, ..
            } = mmio
            {
                let end = offset + u64::from(len);
                let (mut at, mut time) = (offset, now + latency);
                while at < end {
                    let next = ((at | 255) + 1).min(end);
                    time += Time((next - at).div_ceil(64) * CLOCK.0);
                    waiting.push_back((time, tag, at, next, next == end));
                    at = next;
                }
            }
        }
        while waiting.front().is_some_and(|part| part.0 <= now) {
            if let Some((_, tag, at, next, last)) = waiting.pop_front() {
                let data = (at..next).map(byte).collect();
                match last {
                    true => port.mmio_data(now, tag, Some(data)),
                    false => port.mmio_part(now, tag, data),
                }
            }
        }
        !waiting.is_empty()
    };
    system
        .add_device(
            Box::new(Clocked::new(CLOCK, step)),
            link,
            &[(Bar::Pm, WINDOW)],
        )
        .unwrap()
}

/// Simulated GB/s of 64-byte loads, with a number of them in flight.
fn rate(host: &HostConfig, link: &LinkConfig, latency: Time, in_flight: usize) -> f64 {
    let mut system = System::new(host).unwrap();
    let device = memory(&mut system, link, latency);
    let (mut issued, mut ended, count) = (0, 0, 4000);
    while ended < count {
        while issued < count && issued - ended < in_flight {
            let at = issued as u64 * 64 % WINDOW;
            system.load(device, Bar::Pm, at, 64).unwrap();
            issued += 1;
        }
        let load = system.wait_load().unwrap().unwrap();
        let data = load.data.unwrap();
        assert!(data
            .iter()
            .enumerate()
            .all(|(i, &b)| b == data[0] ^ i as u8));
        ended += 1;
    }
    assert_eq!(system.wait_load().unwrap(), None);
    f64::from(64 * count as u32) / system.now().as_ns()
}

/// Little's law: 64-byte loads in flight over the latency of one.
fn little(host: &HostConfig, link: &LinkConfig, latency: Time, in_flight: f64) -> f64 {
    let way = link.device_phy_ns + link.propagation_ns + link.root_phy_ns + host.mmio_ns;
    let wire = (24.0 + 84.0) / link.bytes_per_ns();
    // A request is seen at a clock edge, and answered at one.
    in_flight * 64.0 / (2.0 * way as f64 + wire + latency.as_ns() + 4.0 + 2.0)
}

#[test]
fn loads_in_flight_are_bounded_by_the_cpu() {
    let (host, link) = (HostConfig::default(), LinkConfig::default());
    let latency = Time::ns(400);
    for in_flight in [1, 8, 16, 64] {
        let found = rate(&host, &link, latency, in_flight);
        let expected = little(&host, &link, latency, in_flight as f64);
        assert!(
            (found / expected - 1.0).abs() < 0.02,
            "{in_flight}: {found} of {expected} GB/s"
        );
    }
    let few = HostConfig {
        cpu_loads: 10,
        ..HostConfig::default()
    };
    // A CPU with one core, whatever number is requested.
    let (found, expected) = (
        rate(&few, &link, latency, 64),
        little(&few, &link, latency, 10.0),
    );
    assert!(
        (found / expected - 1.0).abs() < 0.02,
        "{found} of {expected} GB/s"
    );
}

#[test]
fn loads_are_bounded_by_device_credits() {
    let link = LinkConfig {
        device_nonposted_headers: 16,
        ..LinkConfig::default()
    };
    // A credit returns as soon as the device has accepted the request: 2 x 260 ns, 24 bytes and a
    // clock edge.
    let found = rate(&HostConfig::default(), &link, Time::ns(100), 64);
    let round = 520.0 + 24.0 / link.bytes_per_ns() + 2.0;
    let expected = 16.0 * 64.0 / round;
    assert!(
        (found / expected - 1.0).abs() < 0.02,
        "{found} of {expected} GB/s"
    );
}

#[test]
fn loads_of_several_parts_take_first_part_plus_wire() {
    let (host, link) = (HostConfig::default(), LinkConfig::default());
    let mut system = System::new(&host).unwrap();
    let device = memory(&mut system, &link, Time::ns(100));
    for (offset, len) in [(0, 4096), (4, 4088), (8192 + 192, 300), (255, 2), (77, 1)] {
        let begin = system.now();
        let data = system.mmio_read(device, Bar::Pm, offset, len).unwrap();
        assert!((offset..).zip(&data).all(|(at, &b)| b == byte(at)));
        let took = (system.now() - begin).as_ns();
        let end = offset + len as u64;
        let parts = (end - 1) / 256 - offset / 256 + 1;
        let first = ((offset | 255) + 1).min(end) - offset;
        let way = 2 * (260 + host.mmio_ns) + 100 + 4 * first.div_ceil(64);
        let wire = (24 + 20 * parts + len as u64) as f64 / link.bytes_per_ns();
        // Clock edges; the last part may wait for the clocks of its lines; payloads are whole
        // double words.
        let (least, most) = (
            way as f64 + wire - 1.0,
            way as f64 + wire + 4.0 + 16.0 + 4.0,
        );
        assert!(
            (least..most).contains(&took),
            "{len} at {offset}: {took}, {least} to {most}"
        );
    }
    let stats = system.link(device).unwrap().stats();
    assert_eq!(stats.up.tlps, 16 + 16 + 2 + 2 + 1);
}

#[test]
fn loads_of_several_reads_may_interleave() {
    let mut system = System::new(&HostConfig::default()).unwrap();
    let mut open: Vec<(u32, u64, u32)> = Vec::new();
    // The device waits for three reads, then interleaves their lines.
    let step = move |now: Time, port: &mut dyn HostPort| {
        while let Some(mmio) = port.mmio(now) {
            if let Mmio::Read {
                offset, len, tag, ..
            } = mmio
            {
                open.push((tag, offset, len));
            }
        }
        if open.len() == 3 {
            for line in 0..4 {
                for &(tag, offset, _) in &open {
                    let at = offset + 256 * line;
                    let data: Vec<u8> = (at..at + 256).map(byte).collect();
                    match (line, tag == open[1].0) {
                        (3, true) => port.mmio_data(now, tag, None),
                        (3, false) => port.mmio_data(now, tag, Some(data)),
                        _ => port.mmio_part(now, tag, data),
                    }
                }
            }
            open.clear();
        }
        false
    };
    let device = Box::new(Clocked::new(CLOCK, step));
    let device = system
        .add_device(device, &LinkConfig::default(), &[(Bar::Pm, WINDOW)])
        .unwrap();
    let tags: Vec<u32> = (0..3)
        .map(|i| system.load(device, Bar::Pm, i * 4096, 1024).unwrap())
        .collect();
    let mut done = Time::ZERO;
    for (i, &tag) in tags.iter().enumerate() {
        let load = system.wait_load().unwrap().unwrap();
        assert_eq!((load.tag, load.issued), (tag, Time::ZERO));
        assert!(load.done > done && system.now() == load.done);
        done = load.done;
        let offset = i as u64 * 4096;
        let expected = match i {
            // A load that fails at its end fails as a whole.
            1 => Err(Error::ReadFailed {
                device,
                bar: Bar::Pm,
                offset,
            }),
            _ => Ok((offset..offset + 1024).map(byte).collect()),
        };
        assert_eq!(load.data, expected);
    }
}

#[test]
fn loads_that_are_impossible_or_lost_report_it() {
    let host = HostConfig {
        completion_timeout_us: 5,
        ..HostConfig::default()
    };
    let mut system = System::new(&host).unwrap();
    let silent = |now: Time, port: &mut dyn HostPort| {
        while let Some(mmio) = port.mmio(now) {
            if let Mmio::Read { tag, offset, .. } = mmio {
                // Half of an answer does not complete the load.
                port.mmio_part(now, tag, vec![0; 32]);
                if offset == 64 {
                    port.mmio_data(now, tag, Some(vec![0; 31]));
                }
            }
        }
        false
    };
    let device = Box::new(Clocked::new(CLOCK, silent));
    let device = system
        .add_device(device, &LinkConfig::default(), &[(Bar::Pm, WINDOW)])
        .unwrap();
    assert!(matches!(
        system.load(device, Bar::Pm, 0, 0),
        Err(Error::LoadLength { .. })
    ));
    assert!(matches!(
        system.load(device, Bar::Pm, 4032, 65),
        Err(Error::LoadLength { .. })
    ));
    assert!(matches!(
        system.load(device, Bar::Nvme, 0, 4),
        Err(Error::NoWindow { .. })
    ));
    let lost = system.load(device, Bar::Pm, 0, 64).unwrap();
    let short = system.load(device, Bar::Pm, 64, 64).unwrap();
    let load = system.wait_load().unwrap().unwrap();
    assert_eq!(load.tag, short);
    assert!(matches!(
        load.data,
        Err(Error::ReadFailed { offset: 64, .. })
    ));
    let load = system.wait_load().unwrap().unwrap();
    assert_eq!((load.tag, load.done), (lost, Time::us(5)));
    assert!(matches!(load.data, Err(Error::Timeout { offset: 0, .. })));
    assert_eq!(system.wait_load().unwrap(), None);
}
