// SPDX-License-Identifier: Apache-2.0

//! Power cuts: TLPs on the wire arrive, those that waited for it are lost, and the link is clean
//! afterwards.

use std::sync::{Arc, Mutex};

use sim::{Bar, Error, HostConfig, HostPort, LinkConfig, Mmio, System, Time};

use crate::clocked::{Clocked, Step};

/// Writes its clock count into host memory and reads it back, until power fails; fails MMIO reads
/// without power.
struct Writer {
    buffer: u64,
    on: bool,
    tag: u32,
    answers: Arc<Mutex<Vec<(u32, usize)>>>,
}

impl Step for Writer {
    fn step(&mut self, now: Time, host: &mut dyn HostPort) -> bool {
        while let Some(mmio) = host.mmio(now) {
            if let (Mmio::Read { tag, .. }, false) = (mmio, self.on) {
                host.mmio_data(now, tag, None);
            }
        }
        while let Some(piece) = host.read_data(now) {
            self.answers
                .lock()
                .unwrap()
                .push((piece.tag, piece.data.map_or(0, |d| d.len())));
        }
        if self.on {
            host.write(now, self.buffer, &now.0.to_le_bytes());
            if host.read(now, self.tag, self.buffer, 4096) {
                self.tag += 1;
            }
        }
        self.on
    }

    fn power(&mut self, on: bool) {
        self.on = on;
    }
}

#[test]
fn power_cut_leaves_the_link_clean() {
    for cut in [Time::ns(700), Time(1_234_567), Time::us(3)] {
        let answers = Arc::new(Mutex::new(Vec::new()));
        let mut system = System::new(&HostConfig::default()).unwrap();
        let buffer = system.memory_mut().alloc(4096, 1).unwrap();
        let writer = Writer {
            buffer,
            on: true,
            tag: 0,
            answers: answers.clone(),
        };
        let device = Box::new(Clocked::new(Time::ns(4), writer));
        let device = system
            .add_device(device, &LinkConfig::default(), &[(Bar::Nvme, 4096)])
            .unwrap();
        system.advance_until(cut).unwrap();
        system.power_off(device);
        let before = answers.lock().unwrap().len();
        system.advance_by(Time::us(20)).unwrap();
        assert_eq!(
            answers.lock().unwrap().len(),
            before,
            "data for a device without power"
        );
        let mut last = [0; 8];
        system.memory().read(buffer, &mut last).unwrap();
        let last = Time(u64::from_le_bytes(last));
        assert!(
            last <= cut && last + Time::us(1) > cut,
            "{last} cut at {cut}"
        );
        let read = system.mmio_read(device, Bar::Nvme, 0, 4);
        assert!(matches!(read, Err(Error::ReadFailed { .. })));
        // With power restored all tags and credits are available: the device runs for longer than
        // they last.
        system.power_on(device);
        let first = answers.lock().unwrap().len();
        system.advance_by(Time::us(500)).unwrap();
        let answers = answers.lock().unwrap();
        let bytes: usize = answers[first..].iter().map(|a| a.1).sum();
        assert!(bytes > 2_000_000, "{bytes} bytes after power came back");
    }
}

#[test]
fn power_cut_fails_reads_in_flight() {
    // The device accepts the read and loses power before it answers; the reader is another device.
    let got = Arc::new(Mutex::new(Vec::new()));
    let mut system = System::new(&HostConfig::default()).unwrap();
    let silent = |now: Time, port: &mut dyn HostPort| {
        while port.mmio(now).is_some() {}
        false
    };
    let link = LinkConfig::default();
    let target = system
        .add_device(
            Box::new(Clocked::new(Time::ns(4), silent)),
            &link,
            &[(Bar::Pm, 4096)],
        )
        .unwrap();
    let window = system.window(target, Bar::Pm).unwrap();
    let answers = got.clone();
    let reader = move |now: Time, port: &mut dyn HostPort| {
        if now == Time::us(1) {
            assert!(port.read(now, 9, window, 64));
        }
        if let Some(piece) = port.read_data(now) {
            answers
                .lock()
                .unwrap()
                .push((piece.tag, piece.data, piece.last));
        }
        now < Time::us(1)
    };
    system
        .add_device(Box::new(Clocked::new(Time::ns(4), reader)), &link, &[])
        .unwrap();
    system.advance_until(Time::us(5)).unwrap();
    assert!(got.lock().unwrap().is_empty());
    system.power_off(target);
    system.advance_until(Time::us(10)).unwrap();
    assert_eq!(*got.lock().unwrap(), [(9, None, true)]);
}
