// SPDX-License-Identifier: Apache-2.0

//! Fills that are cut off. `crates/rtl/tests` uses them for the devices that write their zeros
//! themselves.
#![allow(dead_code)]

use driver::{DriverConfig, NvmeDriver, SimHost};
use sim::Time;
use spec::nvme::{io, Sqe};

/// An answer later than a reset waits for.
pub const LATE: Time = Time::us(3100);

fn now(c: &NvmeDriver<SimHost>) -> Time {
    c.host().system().now()
}

/// However a fill is cut off, each block is zero or as before, and the next life zeroes as usual.
pub fn whole_when_cut_off(mut c: NvmeDriver<SimHost>) {
    let blocks = 2048u64;
    let old: Vec<u8> = (0..blocks * 512)
        .map(|i| (i / 512 % 255) as u8 + 1)
        .collect();
    let mut part = [false; 3];
    for phase in 0..18u64 {
        c.write(5, &old).unwrap();
        let sqe = Sqe::of_blocks(io::WRITE_ZEROES, 1, 5, blocks as u32);
        c.submit_raw(0, sqe, 0).unwrap();
        c.ring(0).unwrap();
        advance(&mut c, Time::ns(1000 + 2000 * phase));
        let cut = phase as usize % 3;
        match cut {
            0 => c.reset().unwrap(),
            1 => c = function_reset(c),
            _ => {
                let mut host = c.into_host();
                let number = host.device();
                host.system_mut().power_off(number);
                host.system_mut().power_on(number);
                c = NvmeDriver::start(host, DriverConfig::default()).unwrap();
            }
        }
        let mut is = vec![0; old.len()];
        c.read(5, &mut is).unwrap();
        let mut zeros = 0u64;
        for (at, (is, old)) in is.chunks(512).zip(old.chunks(512)).enumerate() {
            let zero = is.iter().all(|&byte| byte == 0);
            assert!(zero || is == old, "phase {phase}: block {at} is torn");
            zeros += u64::from(zero);
        }
        println!("phase {phase}: {zeros} of {blocks} blocks are zero");
        part[cut] |= 0 < zeros && zeros < blocks;
        c.write_zeroes(5, blocks).unwrap();
        c.read(5, &mut is).unwrap();
        assert!(is.iter().all(|&byte| byte == 0), "phase {phase}");
    }
    assert_eq!(part, [true; 3], "none was cut off in the middle");
    c.shutdown().unwrap();
}

/// Resets the function in the middle of its work, and enables it again.
pub fn function_reset(c: NvmeDriver<SimHost>) -> NvmeDriver<SimHost> {
    let mut host = c.into_host();
    let number = host.device();
    host.system_mut().function_reset(number);
    NvmeDriver::start(host, DriverConfig::default()).unwrap()
}

pub fn advance(c: &mut NvmeDriver<SimHost>, time: Time) {
    let system = c.host_mut().system_mut();
    system.advance_until(system.now() + time).unwrap();
}

/// A memory that answers later than a reset waits for, a Write Zeroes on it, then the reset.
pub fn fill_of_an_earlier_life(mut c: NvmeDriver<SimHost>) -> NvmeDriver<SimHost> {
    let sqe = Sqe::of_blocks(io::WRITE_ZEROES, 1, 0, 2048);
    c.submit_raw(0, sqe, 0).unwrap();
    c.ring(0).unwrap();
    advance(&mut c, Time::us(40));
    function_reset(c)
}

/// A memory, which answers after [`LATE`], still zeroes for an earlier life. Nothing that a later
/// life has written is lost. Until the memory has answered, accesses to it fail at once.
pub fn lives_are_apart(c: NvmeDriver<SimHost>) {
    let mut c = fill_of_an_earlier_life(c);
    let data = [7; 4096];
    let asked = now(&c);
    for outcome in [
        c.write(512, &data),
        c.read(512, &mut [0; 4096]),
        c.write_zeroes(0, 4),
        c.write_zeroes(0, 256),
    ] {
        let error = outcome.unwrap_err().to_string();
        assert!(
            error.contains("Write Fault") || error.contains("Unrecovered Read Error"),
            "{error}"
        );
    }
    let took = now(&c) - asked;
    assert!(took < Time::us(60), "{took}");
    advance(&mut c, Time::ms(4));
    c.write(512, &data).unwrap();
    // What the memory has taken of the earlier life ends within LATE, and each of these reads lasts
    // as long.
    for _ in 0..2 {
        let mut back = [1; 4096];
        c.read(512, &mut back).unwrap();
        assert_eq!(back, data, "at {}", now(&c));
        advance(&mut c, Time::ms(3));
    }
    c.write_zeroes(0, 2048).unwrap();
    c.shutdown().unwrap();
}
