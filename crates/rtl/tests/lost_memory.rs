// SPDX-License-Identifier: Apache-2.0

//! Memories that answer later than a reset of the function waits for, or never. A reset of the fast
//! model ends what is under way at once, so no memory is late there.

mod common;

use common::cuts::{advance, fill_of_an_earlier_life, function_reset, lives_are_apart, LATE};
use common::Bench;
use design::Cpu;
use driver::{Buffer, Host, IoCommand, NvmeDriver, SimHost};
use rtl::bitstream::stderr_progress;
use rtl::{DeviceConfig, MemoryModel, RtlDevice};
use sim::{Bar, Device, Media, Random, Time};

const MEDIA: u64 = 1 << 30;
const PAGE: u64 = 4096;

fn config(latency: Time) -> DeviceConfig {
    DeviceConfig {
        hang_cycles: 20_000,
        memory: MemoryModel::Fixed(latency),
        ..common::design("default")
    }
}

fn controller(latency: Time) -> NvmeDriver<SimHost> {
    let costs = testbed::driver_costs(&Cpu::default());
    common::controller_of("default", config(latency), MEDIA, costs, 0)
}

fn now(c: &NvmeDriver<SimHost>) -> Time {
    c.host().system().now()
}

fn noise(random: &mut Random, len: u64) -> Vec<u8> {
    (0..len).map(|_| random.next() as u8).collect()
}

/// While a memory takes longer than the reset waits for, accesses to it fail, until it has
/// answered.
#[test]
#[ignore = "takes long on the RTL"]
fn lost_memory_is_an_error() {
    let media = Media::memory(MEDIA).unwrap();
    let mut progress = stderr_progress("default");
    let device = RtlDevice::build(config(Time::ms(3)), media, &mut progress);
    let mut b = Bench::of(Box::new(device.unwrap()));
    let mut random = Random::new(5);
    let (first, second) = (noise(&mut random, 192), noise(&mut random, 192));
    b.device.media_mut().write(0, &first);
    b.device.media_mut().write(PAGE, &second);
    b.run(Time::us(4));
    let start = b.device.now();
    b.host.ask(start, Bar::Pm, 0, 4096);
    b.run(Time::us(1));
    b.function_reset();
    let took = b.device.now() - start;
    assert!(took > Time::ms(1) && took < Time::us(2100), "{took}");
    // Channel 0 owes a page; channel 1 owes nothing.
    for len in [4, 192] {
        let asked = b.device.now();
        assert_eq!(b.read(Bar::Pm, 0, len), None, "of a memory that is lost");
        assert!(b.device.now() - asked < Time::us(2));
    }
    b.post(Bar::Pm, 64, &[1; 640]);
    let now = b.device.now();
    let tag = b.host.ask(now, Bar::Pm, PAGE, 192);
    b.run(Time::ms(4));
    assert_eq!(b.host.answer(tag), Some(Some(second)));
    // The memory has answered, and works again.
    let now = b.device.now();
    let tag = b.host.ask(now, Bar::Pm, 0, 192);
    b.run(Time::ms(4));
    assert_eq!(
        b.host.answer(tag),
        Some(Some(first)),
        "the lost store left nothing"
    );
}

#[test]
#[ignore = "takes long on the RTL"]
fn lost_memory_lives_are_independent() {
    lives_are_apart(controller(LATE));
}

/// It does not answer during the test.
const LOST: Time = Time::ms(400_000);

/// With a memory that never answers, commands still complete and the controller can be disabled.
#[test]
#[ignore = "takes seconds"]
fn lost_memory_stays_an_error() {
    let mut c = fill_of_an_earlier_life(controller(LOST));
    c = function_reset(c);
    for blocks in [4, 128] {
        c.write_zeroes(0, blocks).unwrap_err();
    }
    let cc = c.host_mut().read32(Bar::Nvme, 0x14).unwrap();
    c.host_mut().write32(Bar::Nvme, 0x14, cc & !1).unwrap();
    advance(&mut c, Time::us(100));
    let csts = c.host_mut().read32(Bar::Nvme, 0x1c).unwrap();
    assert_eq!(csts & 1, 0);
}

/// The same with reads that the memory owes.
#[test]
fn lost_memory_fills_queued_after_lost_reads() {
    let mut c = controller(LOST);
    let buffer = c.host_mut().alloc(8192, 4096).unwrap();
    let read = IoCommand::Read { lba: 0, blocks: 16 };
    c.submit(0, read, &Buffer::Contiguous(buffer), 0).unwrap();
    c.ring(0).unwrap();
    advance(&mut c, Time::us(40));
    let mut c = function_reset(c);
    let asked = now(&c);
    for blocks in [4, 128, 2048] {
        let error = c.write_zeroes(0, blocks).unwrap_err().to_string();
        assert!(error.contains("Write Fault"), "{error}");
    }
    let took = now(&c) - asked;
    assert!(took < Time::us(60), "{took}");
}
