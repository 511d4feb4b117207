// SPDX-License-Identifier: Apache-2.0

//! Idle times that the RTL model skips, as their end is known.

mod common;

use design::Cpu;
use driver::HostCosts;
use driver::{NvmeDriver, SimHost};
use sim::{Bar, Time};
use spec::nvme::{admin, feature, Sqe};

const MEDIA: u64 = 1 << 30;

/// The controller holds interrupts back for 25.5 ms (coalescing); 50,000 cycles without a handshake
/// are a hang here. The time is exact, and is not simulated clock by clock.
#[test]
fn idle_wait_with_known_end_is_skipped() {
    let costs = HostCosts {
        interrupt_ps: 1_000_000,
        ..testbed::driver_costs(&Cpu::default())
    };
    let mut c = common::controller_with("default", MEDIA, costs, 17);
    let evaluated = |c: &NvmeDriver<SimHost>| {
        let device = c.host().system().device(c.host().device()).unwrap();
        let counters = device.counters();
        let found = counters.iter().find(|x| x.name == "cycles.evaluated");
        found.unwrap().value
    };
    let mut block = vec![0; 512];
    for (units, want) in [(255, 25_500), (10, 1000), (100, 10_000)] {
        let coalescing = Sqe::new(0x09)
            .with_cdw(10, 8)
            .with_cdw(11, units << 8 | 0xFF);
        c.admin(coalescing, "Set Features").unwrap();
        let (start, cycles) = (c.now(), evaluated(&c));
        c.read(7, &mut block).unwrap();
        let micros = (c.now() - start).0 / 1_000_000;
        let cycles = evaluated(&c) - cycles;
        assert!(
            (want..want + 100).contains(&micros),
            "{micros} us instead of {want}"
        );
        assert!(cycles < 20_000.0, "{cycles} cycles simulated");
    }
}

/// A Keep Alive Timeout of minutes. The device rests meanwhile, which is hardly simulated and is no
/// hang (50,000 cycles without a handshake are one here). The timeout comes when it is due.
#[test]
fn idle_until_a_keep_alive_timeout() {
    let mut c = common::controller("default", MEDIA);
    let number = c.host().device();
    let evaluated = |c: &NvmeDriver<SimHost>| {
        let counters = c.host().system().device(number).unwrap().counters();
        let found = counters.iter().find(|x| x.name == "cycles.evaluated");
        found.unwrap().value
    };
    let csts = |c: &mut NvmeDriver<SimHost>| {
        let data = c
            .host_mut()
            .system_mut()
            .mmio_read(number, Bar::Nvme, 0x1C, 4);
        u32::from_le_bytes(data.unwrap().try_into().unwrap())
    };
    let until = |c: &mut NvmeDriver<SimHost>, time: Time| {
        c.host_mut().system_mut().advance_until(time).unwrap();
    };
    let keep_alive = || Sqe::new(admin::KEEP_ALIVE);
    c.admin(keep_alive(), "Keep Alive").unwrap();
    for (ms, kept) in [(600_000, 600_000), (150, 200), (86_400_001, 86_400_100)] {
        let set = Sqe::new(admin::SET_FEATURES)
            .with_cdw(10, feature::KEEP_ALIVE_TIMER.into())
            .with_cdw(11, ms);
        c.admin(set, "Set Features").unwrap();
        let timeout = Time::ms(kept);
        let begin = evaluated(&c);
        for _ in 0..3 {
            let late = c.now() + Time(timeout.0 - Time::us(20).0);
            until(&mut c, late);
            let idle = c.host().system().device(number).unwrap().idle();
            assert!(idle, "it sleeps");
            assert_eq!(csts(&mut c), 1, "{ms} ms");
            c.admin(keep_alive(), "Keep Alive").unwrap();
        }
        let begun = c.now();
        until(&mut c, begun + timeout - Time::us(20));
        assert_eq!(csts(&mut c), 1, "{ms} ms");
        let before = evaluated(&c);
        until(&mut c, begun + timeout + Time::us(1));
        assert!(evaluated(&c) > before, "it wakes by itself");
        assert_eq!(csts(&mut c), 3, "CSTS.CFS after {ms} ms");
        let cycles = evaluated(&c) - begin;
        assert!(cycles < 60_000.0, "{cycles} cycles simulated");
        until(&mut c, begun + timeout + timeout);
        assert_eq!(csts(&mut c), 3);
        c.reset().unwrap();
        let far = c.now() + timeout + timeout;
        until(&mut c, far);
        assert_eq!(csts(&mut c), 1, "a reset stops it");
        let mut block = vec![0; 512];
        c.read(7, &mut block).unwrap();
    }
}
