// SPDX-License-Identifier: Apache-2.0

//! Writes and reads of a device form one sequence, whatever the link's parameters.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use sim::{HostConfig, HostPort, LinkConfig, Random, System, Time};

use crate::clocked::{Clocked, Step};

const PAGES: u64 = 3;

/// Sends random writes and reads and compares the results with a model of the memory.
struct Mixer {
    random: Random,
    buffer: u64,
    left: u32,
    picture: Vec<u8>,
    /// By tag: the address, the expected data, and the bytes received so far.
    expected: HashMap<u32, (Option<Vec<u8>>, usize)>,
    next: Option<(u64, Option<Vec<u8>>, u32)>,
    tag: u32,
    log: Arc<Mutex<Vec<(Time, u32, usize)>>>,
}

impl Step for Mixer {
    fn step(&mut self, now: Time, host: &mut dyn HostPort) -> bool {
        // Occasional back-pressure.
        while self.random.below(4) > 0 {
            let Some(piece) = host.read_data(now) else {
                break;
            };
            let (whole, got) = self.expected.get_mut(&piece.tag).expect("a tag in use");
            match (&piece.data, whole.as_ref()) {
                (Some(data), Some(whole)) => {
                    assert_eq!(data[..], whole[*got..*got + data.len()], "at {now}");
                    *got += data.len();
                    assert_eq!(piece.last, *got == whole.len());
                }
                (None, None) => assert!(piece.last),
                (found, _) => panic!("wrong kind of answer: data {}", found.is_some()),
            }
            self.log.lock().unwrap().push((now, piece.tag, *got));
            if piece.last {
                self.expected.remove(&piece.tag);
            }
        }
        if self.next.is_none() && self.left > 0 {
            let page = self.random.below(PAGES + 1);
            let at = self.random.below(4096);
            let longest = if self.random.below(3) == 0 { 4096 } else { 100 };
            let len = 1 + self.random.below(longest.min(4096 - at));
            let addr = self.buffer + page * 4096 + at;
            let data = (self.random.below(2) == 0)
                .then(|| (0..len).map(|_| self.random.next() as u8).collect());
            self.next = Some((addr, data, len as u32));
            self.left -= 1;
        }
        if let Some((addr, data, len)) = &self.next {
            let at = (addr - self.buffer) as usize;
            // The last page belongs to no buffer.
            let mapped = at < PAGES as usize * 4096;
            let sent = match data {
                Some(data) => {
                    let sent = host.write(now, *addr, data);
                    if sent && mapped {
                        self.picture[at..at + data.len()].copy_from_slice(data);
                    }
                    sent
                }
                None => {
                    let sent = host.read(now, self.tag, *addr, *len);
                    if sent {
                        let whole = mapped.then(|| self.picture[at..at + *len as usize].to_vec());
                        self.expected.insert(self.tag, (whole, 0));
                        self.tag += 1;
                    }
                    sent
                }
            };
            if sent {
                self.next = None;
            }
        }
        if self.left == 0 && self.next.is_none() && self.expected.is_empty() {
            // An interrupt after everything else marks the end.
            if host.write(now, 0xFEE0_0000, &[1, 0, 0, 0]) {
                self.left = u32::MAX;
            }
        }
        self.left != u32::MAX
    }
}

type Log = Vec<(Time, u32, usize)>;

fn mix(seed: u64) -> (Log, Time) {
    let mut random = Random::new(seed);
    let mut pick = |choices: &[u32]| choices[random.below(choices.len() as u64) as usize];
    let link = LinkConfig {
        generation: pick(&[1, 3, 5]) as u8,
        lanes: pick(&[1, 8, 16]) as u8,
        max_payload_bytes: pick(&[128, 256, 512, 4096]),
        max_read_request_bytes: pick(&[128, 512, 4096]),
        read_completion_boundary_bytes: pick(&[64, 128]),
        max_completion_bytes: pick(&[128, 256, 4096]),
        tags: pick(&[32, 64]),
        host_posted_headers: pick(&[32, 128]),
        host_posted_bytes: pick(&[4608, 32_768]),
        host_nonposted_headers: pick(&[32, 128]),
        device_completion_bytes: pick(&[0, 4096, 16_384]),
        device_tx_buffer_bytes: pick(&[64, 2048]),
        device_phy_ns: pick(&[0, 150]).into(),
        ..LinkConfig::default()
    };
    let host = HostConfig {
        read_jitter_ns: pick(&[0, 50, 1000]).into(),
        seed,
        ..HostConfig::default()
    };
    let mut system = System::new(&host).unwrap();
    let buffer = system.memory_mut().alloc(PAGES * 4096, 1).unwrap();
    let log = Arc::new(Mutex::new(Vec::new()));
    let mixer = Mixer {
        random,
        buffer,
        left: 400,
        picture: vec![0; PAGES as usize * 4096],
        expected: HashMap::new(),
        next: None,
        tag: 0,
        log: log.clone(),
    };
    system
        .add_device(Box::new(Clocked::new(Time::ns(4), mixer)), &link, &[])
        .unwrap();
    assert!(
        system.wait(Time::ms(50)).unwrap(),
        "seed {seed}: it never ends"
    );
    assert_eq!(system.interrupts(0).len(), 1);
    assert!(system.memory().dropped_writes() > 0 && system.memory().failed_reads() > 0);
    let log = log.lock().unwrap().clone();
    (log, system.now())
}

#[test]
fn order_of_device_writes_and_reads_is_kept() {
    for seed in 0..24 {
        let first = mix(seed);
        assert!(first.0.len() > 100);
        if seed % 8 == 0 {
            assert_eq!(first, mix(seed), "seed {seed} isn't repeatable");
        }
    }
}

#[test]
fn order_of_reads_varies_with_jitter() {
    let host = HostConfig {
        read_jitter_ns: 500,
        ..HostConfig::default()
    };
    let mut system = System::new(&host).unwrap();
    let buffer = system.memory_mut().alloc(4096, 1).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let mut tag = 0;
    let step = move |now: Time, port: &mut dyn HostPort| {
        while let Some(piece) = port.read_data(now) {
            log.lock().unwrap().push(piece.tag);
        }
        if tag < 32 && port.read(now, tag, buffer, 64) {
            tag += 1;
        }
        tag < 32
    };
    system
        .add_device(
            Box::new(Clocked::new(Time::ns(4), step)),
            &LinkConfig::default(),
            &[],
        )
        .unwrap();
    system.advance_until(Time::us(10)).unwrap();
    let mut order = seen.lock().unwrap().clone();
    assert!(!order.is_sorted());
    order.sort_unstable();
    assert!(order.into_iter().eq(0..32));
}

#[test]
fn order_read_data_does_not_pass_earlier_writes() {
    // The CPU writes several pages, then a flag in memory; a device that sees the flag must have
    // the data.
    let link = LinkConfig {
        generation: 1,
        lanes: 1,
        ..LinkConfig::default()
    };
    let mut system = System::new(&HostConfig::default()).unwrap();
    let flag = system.memory_mut().alloc(4096, 1).unwrap();
    let seen = Arc::new(Mutex::new(None));
    let log = seen.clone();
    let (mut bytes, mut tag) = (0, 0);
    let step = move |now: Time, port: &mut dyn HostPort| {
        while let Some(sim::Mmio::Write { data, .. }) = port.mmio(now) {
            bytes += data.len();
        }
        let mut flagged = log.lock().unwrap();
        while let Some(piece) = port.read_data(now) {
            if piece.data.unwrap()[0] == 1 && flagged.is_none() {
                *flagged = Some(bytes);
            }
        }
        if flagged.is_none() && port.read(now, tag, flag, 64) {
            tag += 1;
        }
        flagged.is_none()
    };
    let windows = [(sim::Bar::Pm, 65_536)];
    let device = Box::new(Clocked::new(Time::ns(4), step));
    let device = system.add_device(device, &link, &windows).unwrap();
    system.advance_until(Time::us(3)).unwrap();
    system
        .mmio_write(device, sim::Bar::Pm, 0, &[7; 8192])
        .unwrap();
    // Stores of the CPU become visible to devices once its posted writes have left it.
    system.advance_by(Time::ns(system.host().mmio_ns)).unwrap();
    system.memory_mut().write(flag, &[1]).unwrap();
    system.advance_until(Time::us(300)).unwrap();
    assert_eq!(*seen.lock().unwrap(), Some(8192));
}
