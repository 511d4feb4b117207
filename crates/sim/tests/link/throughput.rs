// SPDX-License-Identifier: Apache-2.0

//! Bandwidth of NVMe traffic against the bounds that follow from the sizes of its TLPs.

use std::collections::{HashMap, VecDeque};

use sim::{Bar, HostConfig, HostPort, LinkConfig, Mmio, System, Time};

use crate::clocked::{Clocked, Step};

enum Op {
    Read { tag: u32, addr: u64, len: u32 },
    Write { addr: u64, len: u32 },
    Interrupt,
}

/// An NVMe controller without processing time: every doorbell is one command.
struct Ideal {
    /// Bytes of a command, and whether each command writes to the device, cyclically.
    bytes: u32,
    writes: Vec<bool>,
    commands: usize,
    data: u64,
    /// Fetches of entries and lists, and completions of writes, precede data.
    first: VecDeque<Op>,
    send: VecDeque<Op>,
    next_tag: u32,
    /// Outstanding read data: tag to command; then bytes outstanding by command.
    reads: HashMap<u32, usize>,
    waits: HashMap<usize, (bool, u32)>,
}

impl Ideal {
    fn read(&mut self, command: usize, addr: u64, len: u32) {
        let queue = if self.waits[&command].0 {
            &mut self.send
        } else {
            &mut self.first
        };
        queue.push_back(Op::Read {
            tag: self.next_tag,
            addr,
            len,
        });
        self.reads.insert(self.next_tag, command);
        self.next_tag += 1;
    }

    /// Completion and interrupt, after the data that the command has sent.
    fn finish(&mut self, write: bool) {
        let queue = if write {
            &mut self.first
        } else {
            &mut self.send
        };
        queue.push_back(Op::Write {
            addr: self.data,
            len: 16,
        });
        queue.push_back(Op::Interrupt);
    }

    fn fetched(&mut self, command: usize) {
        let pages = (0..self.bytes)
            .step_by(4096)
            .map(|at| (self.data + u64::from(at), self.bytes.min(4096)));
        let pages: Vec<_> = pages.collect();
        if self.writes[command % self.writes.len()] {
            for (addr, len) in pages {
                self.read(command, addr, len);
            }
        } else {
            self.send
                .extend(pages.into_iter().map(|(addr, len)| Op::Write { addr, len }));
            self.finish(false);
        }
    }
}

impl Step for Ideal {
    fn step(&mut self, now: Time, host: &mut dyn HostPort) -> bool {
        while let Some(mmio) = host.mmio(now) {
            if matches!(mmio, Mmio::Write { offset: 0x1000, .. }) {
                // The entry, and a list for more than two pages.
                let (command, addr) = (self.commands, self.data);
                self.commands += 1;
                let list = if self.bytes > 8192 {
                    self.bytes / 4096 * 8 - 8
                } else {
                    0
                };
                self.waits.insert(command, (false, 64 + list));
                self.read(command, addr, 64);
                if list > 0 {
                    self.read(command, addr, list);
                }
            }
        }
        while let Some(piece) = host.read_data(now) {
            let command = self.reads[&piece.tag];
            if piece.last {
                self.reads.remove(&piece.tag);
            }
            let wait = self.waits.get_mut(&command).unwrap();
            wait.1 -= piece.data.unwrap().len() as u32;
            if wait.1 == 0 {
                let fetched = !wait.0;
                let (write, bytes) = (self.writes[command % self.writes.len()], self.bytes);
                self.waits
                    .insert(command, (true, if write { bytes } else { 0 }));
                if fetched {
                    self.fetched(command);
                } else {
                    self.finish(true);
                }
            }
        }
        let zeros = [0; 4096];
        while let Some(op) = self.first.front().or(self.send.front()) {
            let sent = match *op {
                Op::Read { tag, addr, len } => host.read(now, tag, addr, len),
                Op::Write { addr, len } => host.write(now, addr, &zeros[..len as usize]),
                Op::Interrupt => host.write(now, 0xFEE0_0000, &[1, 0, 0, 0]),
            };
            if !sent {
                break;
            }
            self.first.pop_front().or_else(|| self.send.pop_front());
        }
        !self.send.is_empty() || !self.first.is_empty()
    }
}

/// GB/s of commands of `bytes`, 64 at a time, each with two doorbells, an entry, a completion and
/// an interrupt.
fn bandwidth(link: &LinkConfig, bytes: u32, writes: &[bool]) -> f64 {
    let mut system = System::new(&HostConfig::default()).unwrap();
    let data = system.memory_mut().alloc(64 << 10, 1).unwrap();
    let ideal = Ideal {
        bytes,
        writes: writes.to_vec(),
        commands: 0,
        data,
        first: VecDeque::new(),
        send: VecDeque::new(),
        next_tag: 0,
        reads: HashMap::new(),
        waits: HashMap::new(),
    };
    let device = Box::new(Clocked::new(Time::ns(1), ideal));
    let device = system
        .add_device(device, link, &[(Bar::Nvme, 65_536)])
        .unwrap();
    for _ in 0..64 {
        system
            .mmio_write(device, Bar::Nvme, 0x1000, &[0; 4])
            .unwrap();
    }
    let (warm, total) = (300, 2000);
    let mut done = 0;
    let mut start = Time::ZERO;
    while done < total {
        let limit = system.now() + Time::us(100);
        assert!(system.wait(limit).unwrap(), "nothing completes");
        for interrupt in system.interrupts(device) {
            done += 1;
            if done == warm {
                start = interrupt.time;
            }
            system
                .mmio_write(device, Bar::Nvme, 0x1004, &[0; 4])
                .unwrap();
            system
                .mmio_write(device, Bar::Nvme, 0x1000, &[0; 4])
                .unwrap();
        }
    }
    f64::from(done - warm) * f64::from(bytes) / (system.now() - start).as_ns()
}

fn check(what: &str, link: &LinkConfig, bytes: u32, writes: &[bool], expected: f64) {
    let found = bandwidth(link, bytes, writes);
    println!("{what}: {found:.3} GB/s, bound {expected}");
    assert!(
        (found / expected - 1.0).abs() < 0.01,
        "{what}: {found:.3} GB/s, expected {expected}"
    );
}

#[test]
#[ignore = "takes seconds"]
fn throughput_of_gen3_x8_reaches_its_wire() {
    let link = LinkConfig::default();
    check("4K read", &link, 4096, &[false], 7.03);
    check("4K write", &link, 4096, &[true], 6.99);
    check("16K read", &link, 16_384, &[false], 7.13);
    check("16K write", &link, 16_384, &[true], 7.15);
    check("32K read", &link, 32_768, &[false], 7.16);
    check("32K write", &link, 32_768, &[true], 7.19);
}

#[test]
fn throughput_doubles_with_lanes_or_rate() {
    for (generation, lanes) in [(3, 16), (4, 8), (5, 4)] {
        let link = LinkConfig {
            generation,
            lanes,
            tags: 128,
            ..LinkConfig::default()
        };
        check("4K read", &link, 4096, &[false], 14.05);
        check("4K write", &link, 4096, &[true], 13.99);
    }
}

#[test]
fn throughput_of_64_byte_completions_includes_headers() {
    let link = LinkConfig {
        max_completion_bytes: 64,
        ..LinkConfig::default()
    };
    let found = bandwidth(&link, 4096, &[true]);
    assert!((5.75..5.95).contains(&found), "{found:.3} GB/s");
}

#[test]
fn throughput_of_both_directions_is_independent() {
    let found = bandwidth(&LinkConfig::default(), 4096, &[true, false]);
    assert!((12.6..13.2).contains(&found), "{found:.3} GB/s");
}

#[test]
fn throughput_of_older_generations_includes_8b10b() {
    for (generation, gt) in [(1, 2.5), (2, 5.0)] {
        let link = LinkConfig {
            generation,
            lanes: 4,
            ..LinkConfig::default()
        };
        let wire = gt * 4.0 * 0.8 / 8.0;
        assert!((link.bytes_per_ns() / wire - 1.0).abs() < 0.003);
        check(
            "4K read",
            &link,
            4096,
            &[false],
            link.bytes_per_ns() * 4096.0 / 4580.0,
        );
    }
}
