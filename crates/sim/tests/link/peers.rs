// SPDX-License-Identifier: Apache-2.0

//! Several devices: peer-to-peer accesses, and independence of their order.

use std::sync::{Arc, Mutex};

use sim::{Bar, Error, Fault, HostConfig, HostPort, LinkConfig, Mmio, Random, System, Time};

use crate::clocked::Clocked;

const CLOCK: Time = Time(4000);

/// The accesses that a memory device has seen: time, offset, first byte of a write or `None` for a
/// read.
type Log = Arc<Mutex<Vec<(Time, u64, Option<u8>)>>>;

/// A device that consists of memory at BAR2.
fn memory_device(log: Log) -> Clocked<impl FnMut(Time, &mut dyn HostPort) -> bool> {
    let mut bytes = vec![0u8; 65_536];
    Clocked::new(CLOCK, move |now: Time, port: &mut dyn HostPort| {
        while let Some(mmio) = port.mmio(now) {
            match mmio {
                Mmio::Write { offset, data, .. } => {
                    log.lock().unwrap().push((now, offset, Some(data[0])));
                    bytes[offset as usize..offset as usize + data.len()].copy_from_slice(&data);
                }
                Mmio::Read {
                    offset, len, tag, ..
                } => {
                    log.lock().unwrap().push((now, offset, None));
                    let data = bytes[offset as usize..offset as usize + len as usize].to_vec();
                    port.mmio_data(now, tag, Some(data));
                }
            }
        }
        false
    })
}

#[test]
fn peers_write_and_read_over_both_links() {
    let (link, host) = (LinkConfig::default(), HostConfig::default());
    let mut system = System::new(&host).unwrap();
    let log = Log::default();
    let target = system
        .add_device(
            Box::new(memory_device(log.clone())),
            &link,
            &[(Bar::Pm, 65_536)],
        )
        .unwrap();
    let window = system.window(target, Bar::Pm).unwrap();
    let got = Arc::new(Mutex::new(Vec::new()));
    let answers = got.clone();
    let step = move |now: Time, port: &mut dyn HostPort| {
        if now == Time::us(1) {
            assert!(port.write(now, window + 0x1000, &[0xC3; 64]));
            assert!(port.read(now, 5, window + 0x1000, 1024));
            // Nothing is mapped past the end of the window.
            assert!(port.read(now, 6, window + (1 << 20), 4));
            assert!(port.write(now, window + (1 << 20), &[0; 4]));
        }
        while let Some(piece) = port.read_data(now) {
            answers.lock().unwrap().push((now, piece));
        }
        now < Time::us(1)
    };
    system
        .add_device(Box::new(Clocked::new(CLOCK, step)), &link, &[])
        .unwrap();
    system.advance_until(Time::us(20)).unwrap();
    let one_way = Time::ns(260);
    let tlp = 88.0 / link.bytes_per_ns();
    let expected = Time::us(1)
        + one_way
        + one_way
        + Time::ns(host.peer_ns)
        + Time((2.0 * tlp * 1000.0) as u64);
    let (at, offset, byte) = log.lock().unwrap()[0];
    assert_eq!((offset, byte), (0x1000, Some(0xC3)));
    assert!(
        at >= expected && at <= expected + CLOCK,
        "{at} against {expected}"
    );
    let got = got.lock().unwrap();
    let (failed, read): (Vec<_>, Vec<_>) = got.iter().partition(|(_, piece)| piece.tag == 6);
    assert!(failed.len() == 1 && failed[0].1.data.is_none() && failed[0].1.last);
    let data: Vec<u8> = read
        .iter()
        .flat_map(|(_, piece)| piece.data.clone().unwrap())
        .collect();
    assert!(data.len() == 1024 && data[..64] == [0xC3; 64] && data[64..].iter().all(|&b| b == 0));
    assert!(read[0].0 > at + one_way + one_way);
    assert_eq!(system.memory().dropped_writes(), 1);
    assert_eq!(
        system.mmio_read(target, Bar::Pm, 0x1000, 3),
        Ok(vec![0xC3; 3])
    );
}

#[test]
fn peers_accesses_are_recorded_in_order() {
    let mut system = System::new(&HostConfig::default()).unwrap();
    let link = LinkConfig::default();
    let target = Box::new(memory_device(Log::default()));
    let windows = [(Bar::Pm, 65_536)];
    let target = system.add_device(target, &link, &windows).unwrap();
    let window = system.window(target, Bar::Pm).unwrap();
    let step = move |now: Time, port: &mut dyn HostPort| {
        if now == Time::us(1) {
            assert!(port.write(now, 0x1_0000_00C0, &[7; 128]));
            assert!(port.read(now, 5, window + 0x1000, 1024));
            assert!(port.write(now, 0xFEE0_0000, &[1, 2, 3, 4]));
        }
        while port.read_data(now).is_some() {}
        now < Time::us(1)
    };
    let sender = Box::new(Clocked::new(CLOCK, step));
    let sender = system.add_device(sender, &link, &[]).unwrap();
    system.advance_until(Time::ns(500)).unwrap();
    assert!(system.take_accesses().is_empty());
    system.record_accesses();
    system.advance_until(Time::us(20)).unwrap();
    let recorded = system.take_accesses();
    let seen: Vec<_> = recorded
        .iter()
        .map(|a| (a.device, a.addr, a.len, a.data.as_ref().map(|d| d[0])))
        .collect();
    // Split at the largest payload and at the largest read request. Answers of the target are not
    // accesses.
    let expected = [
        (sender, 0x1_0000_00C0, 64, Some(7)),
        (sender, 0x1_0000_0100, 64, Some(7)),
        (sender, window + 0x1000, 512, None),
        (sender, window + 0x1200, 512, None),
        (sender, 0xFEE0_0000, 4, Some(1)),
    ];
    assert_eq!(seen, expected);
    assert!(recorded.windows(2).all(|pair| pair[0].time < pair[1].time));
    assert!(system.take_accesses().is_empty(), "accesses are taken once");
}

#[test]
fn peers_that_are_slow_stall_the_sender() {
    let host = HostConfig {
        mmio_queue: 4,
        ..HostConfig::default()
    };
    let mut system = System::new(&host).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let slow = move |now: Time, port: &mut dyn HostPort| {
        if now.0 % 2_000_000 == 0 {
            if let Some(Mmio::Write { data, .. }) = port.mmio(now) {
                log.lock()
                    .unwrap()
                    .push(u32::from_le_bytes(data[..4].try_into().unwrap()));
            }
        }
        true
    };
    let link = LinkConfig {
        device_posted_headers: 2,
        host_posted_headers: 16,
        ..LinkConfig::default()
    };
    let target = system
        .add_device(
            Box::new(Clocked::new(CLOCK, slow)),
            &link,
            &[(Bar::Pm, 4096)],
        )
        .unwrap();
    let window = system.window(target, Bar::Pm).unwrap();
    let sent = Arc::new(Mutex::new(0u32));
    let count = sent.clone();
    let fast = move |now: Time, port: &mut dyn HostPort| {
        let mut number = count.lock().unwrap();
        while *number < 200 && port.write(now, window, &number.to_le_bytes()) {
            *number += 1;
        }
        *number < 200
    };
    system
        .add_device(Box::new(Clocked::new(CLOCK, fast)), &link, &[])
        .unwrap();
    system.advance_until(Time::us(100)).unwrap();
    // One is accepted every 2 us; the others wait in two buffers of the target, the queue, and the
    // root complex's 16.
    assert!(
        *sent.lock().unwrap() <= 50 + 2 + 4 + 16,
        "{} sent",
        sent.lock().unwrap()
    );
    system.advance_until(Time::us(420)).unwrap();
    assert!(seen.lock().unwrap().iter().copied().eq(0..200));
}

/// Three devices that write to host memory, interrupt, and write to each other. Each is identified
/// by its name, not its number.
fn ring(order: [usize; 3]) -> Vec<Vec<(Time, u64, Option<u8>)>> {
    let mut system = System::new(&HostConfig::default()).unwrap();
    let buffer = system.memory_mut().alloc(3 * 4096, 1).unwrap();
    let logs: Vec<Log> = (0..3).map(|_| Log::default()).collect();
    let targets = Arc::new(Mutex::new([0u64; 3]));
    let mut numbers = [0; 3];
    for name in order {
        let (log, targets) = (logs[name].clone(), targets.clone());
        let mut random = Random::new(name as u64);
        let mut tag = 0;
        let step = move |now: Time, port: &mut dyn HostPort| {
            while let Some(mmio) = port.mmio(now) {
                if let Mmio::Write { offset, data, .. } = mmio {
                    log.lock().unwrap().push((now, offset, Some(data[0])));
                }
            }
            while let Some(piece) = port.read_data(now) {
                log.lock().unwrap().push((now, piece.tag.into(), None));
            }
            let byte = random.next() as u8;
            match random.below(40) {
                0 => drop(port.write(
                    now,
                    targets.lock().unwrap()[(name + 1) % 3] + random.below(60) * 64,
                    &[byte; 64],
                )),
                1 => drop(port.write(now, buffer + name as u64 * 4096, &[byte; 1024])),
                2 => drop(port.write(now, 0xFEE0_0000 + name as u64 * 16, &[byte; 4])),
                3 if port.read(now, tag, buffer + name as u64 * 4096, 256) => tag += 1,
                _ => {}
            }
            now < Time::us(100)
        };
        // Different clocks and links, so that no two events coincide.
        let clock = Time([4001, 3989, 4013][name]);
        let link = LinkConfig {
            propagation_ns: [10, 17, 31][name],
            ..LinkConfig::default()
        };
        numbers[name] = system
            .add_device(
                Box::new(Clocked::new(clock, step)),
                &link,
                &[(Bar::Pm, 4096)],
            )
            .unwrap();
    }
    *targets.lock().unwrap() = numbers.map(|number| system.window(number, Bar::Pm).unwrap());
    // The host answers interrupts with a doorbell at once.
    let mut host_log = Vec::new();
    while system.wait(Time::us(150)).unwrap() {
        let arrived: Vec<_> = (0..3)
            .flat_map(|name| {
                system
                    .interrupts(numbers[name])
                    .into_iter()
                    .map(move |i| (name, i))
            })
            .collect();
        for (name, interrupt) in arrived {
            host_log.push((interrupt.time, name as u64, Some(interrupt.data as u8)));
            assert_eq!(interrupt.time, system.now());
            system
                .mmio_write(numbers[name], Bar::Pm, 4000, &[0xDB; 4])
                .unwrap();
        }
    }
    let mut all: Vec<_> = logs.iter().map(|log| log.lock().unwrap().clone()).collect();
    all.push(host_log);
    all
}

#[test]
fn peers_interrupts_are_kept_by_device() {
    let mut system = System::new(&HostConfig::default()).unwrap();
    for device in 0..3 {
        let mut left = 4;
        let step = move |now: Time, port: &mut dyn HostPort| {
            left -=
                u32::from(left > 0 && port.write(now, sim::MSI_BASE, &[device, left as u8, 0, 0]));
            left > 0
        };
        let device = Box::new(Clocked::new(CLOCK, step));
        let link = LinkConfig::default();
        system.add_device(device, &link, &[]).unwrap();
    }
    system.advance_until(Time::us(10)).unwrap();
    for device in [1, 0, 2] {
        let data: Vec<u32> = system.interrupts(device).iter().map(|i| i.data).collect();
        let want: Vec<u32> = (1..=4).rev().map(|n| n << 8 | device as u32).collect();
        assert_eq!(data, want, "of device {device}");
        assert!(system.interrupts(device).is_empty());
    }
    assert!(system.interrupts(3).is_empty());
}

#[test]
fn peers_results_do_not_depend_on_device_order() {
    let first = ring([0, 1, 2]);
    assert!(first.iter().all(|log| log.len() > 300));
    assert_eq!(first, ring([2, 0, 1]));
    assert_eq!(first, ring([1, 0, 2]));
}

#[test]
fn peers_fault_stops_the_run_and_names_the_device() {
    struct Broken;
    impl sim::Device for Broken {
        fn now(&self) -> Time {
            Time::ZERO
        }
        fn advance(&mut self, _: Time, _: &mut dyn HostPort) -> Result<(), Fault> {
            Err(Fault::Assertion("p_never".into()))
        }
        fn idle(&self) -> bool {
            false
        }
        fn power_off(&mut self) {}
        fn power_on(&mut self) {}
        fn counters(&self) -> Vec<sim::Counter> {
            Vec::new()
        }
    }
    let mut system = System::new(&HostConfig::default()).unwrap();
    let log = Log::default();
    system
        .add_device(Box::new(memory_device(log)), &LinkConfig::default(), &[])
        .unwrap();
    system
        .add_device(Box::new(Broken), &LinkConfig::default(), &[])
        .unwrap();
    let error = system.advance_by(Time::us(1)).unwrap_err();
    assert_eq!(
        error,
        Error::Fault {
            device: 1,
            fault: Fault::Assertion("p_never".into())
        }
    );
    assert!(error.to_string().contains("p_never"));
}

#[test]
fn peers_out_of_order_answers_keep_a_read_in_order() {
    for seed in 0..10 {
        let link = LinkConfig::default();
        let mut system = System::new(&HostConfig::default()).unwrap();
        let mut random = Random::new(seed);
        let mut waiting = Vec::new();
        let peer = move |now: Time, port: &mut dyn HostPort| {
            while let Some(mmio) = port.mmio(now) {
                if let Mmio::Read {
                    offset, len, tag, ..
                } = mmio
                {
                    waiting.push((offset, len, tag));
                }
            }
            // Not before all eight have arrived.
            while now > Time::us(5) && !waiting.is_empty() {
                let (offset, len, tag) =
                    waiting.swap_remove(random.below(waiting.len() as u64) as usize);
                let data = (0..len)
                    .map(|i| ((offset + u64::from(i)) / 8) as u8)
                    .collect();
                port.mmio_data(now, tag, Some(data));
            }
            now < Time::us(6)
        };
        let target = system
            .add_device(
                Box::new(Clocked::new(CLOCK, peer)),
                &link,
                &[(Bar::Pm, 4096)],
            )
            .unwrap();
        let window = system.window(target, Bar::Pm).unwrap();
        let got = Arc::new(Mutex::new((Vec::new(), 0)));
        let answer = got.clone();
        let step = move |now: Time, port: &mut dyn HostPort| {
            if now == Time::us(1) {
                assert!(port.read(now, 5, window, 4096));
            }
            while let Some(piece) = port.read_data(now) {
                let mut got = answer.lock().unwrap();
                got.0.extend(piece.data.expect("good data"));
                got.1 += u32::from(piece.last);
            }
            now < Time::us(1)
        };
        system
            .add_device(Box::new(Clocked::new(CLOCK, step)), &link, &[])
            .unwrap();
        system.advance_until(Time::us(50)).unwrap();
        let want: Vec<u8> = (0..4096).map(|at| (at / 8) as u8).collect();
        assert_eq!(*got.lock().unwrap(), (want, 1), "seed {seed}");
    }
}
