// SPDX-License-Identifier: Apache-2.0

//! Accesses of a device at all borders: each is served or counted as refused, and each read is
//! answered.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use sim::{Bar, HostConfig, HostPort, LinkConfig, Mmio, Random, System, Time, MSI_BASE, MSI_LAST};

use crate::clocked::{Clocked, Step};

const PAGE: u64 = 4096;
/// Bytes of the peer's windows: one ends within a page.
const WINDOWS: [(Bar, u64); 2] = [(Bar::Pm, 3 * PAGE), (Bar::Control, 1000)];

/// An access, and its result as the device saw it.
#[derive(Clone, Debug, Default)]
struct Access {
    addr: u64,
    len: u64,
    write: bool,
    sent: bool,
    /// Bytes of good data.
    got: usize,
    failed: bool,
    answers: u32,
}

/// Sends its accesses one by one, and records the results.
struct Prober {
    next: usize,
    list: Arc<Mutex<Vec<Access>>>,
}

impl Step for Prober {
    fn step(&mut self, now: Time, host: &mut dyn HostPort) -> bool {
        let mut list = self.list.lock().unwrap();
        while let Some(piece) = host.read_data(now) {
            let access = &mut list[piece.tag as usize];
            access.got += piece.data.as_ref().map_or(0, Vec::len);
            access.failed |= piece.data.is_none();
            access.answers += u32::from(piece.last);
        }
        if let Some(access) = list.get_mut(self.next) {
            access.sent = if access.write {
                host.write(now, access.addr, &vec![0xA5; access.len as usize])
            } else {
                host.read(now, self.next as u32, access.addr, access.len as u32)
            };
            self.next += usize::from(access.sent);
        }
        self.next < list.len()
    }
}

/// The peer: accepts everything, and answers with the requested number of bytes.
fn peer(writes: Arc<Mutex<u64>>) -> impl FnMut(Time, &mut dyn HostPort) -> bool {
    move |now, host| {
        while let Some(access) = host.mmio(now) {
            match access {
                Mmio::Write { data, .. } => *writes.lock().unwrap() += data.len() as u64,
                Mmio::Read { tag, len, .. } => {
                    host.mmio_data(now, tag, Some(vec![0; len as usize]));
                }
            }
        }
        false
    }
}

/// The expected destination of one TLP.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Place {
    Memory,
    Interrupt,
    Peer,
    Nowhere,
}

struct Machine {
    system: System,
    /// Mapped: first byte, last byte.
    buffer: (u64, u64),
    windows: Vec<(u64, u64)>,
    peer_bytes: Arc<Mutex<u64>>,
    list: Arc<Mutex<Vec<Access>>>,
}

impl Machine {
    fn new(link: &LinkConfig) -> Machine {
        let mut system = System::new(&HostConfig::default()).unwrap();
        let buffer = system.memory_mut().alloc(2 * PAGE, 1).unwrap();
        let list = Arc::new(Mutex::new(Vec::new()));
        let prober = Prober {
            next: 0,
            list: list.clone(),
        };
        let peer_bytes = Arc::new(Mutex::new(0));
        let clock = Time::ns(4);
        let device = Box::new(Clocked::new(clock, prober));
        system.add_device(device, link, &[]).unwrap();
        let device = Box::new(Clocked::new(clock, peer(peer_bytes.clone())));
        let device = system.add_device(device, link, &WINDOWS).unwrap();
        let windows = WINDOWS
            .map(|(bar, size)| {
                let base = system.window(device, bar).unwrap();
                (base, base + (size - 1))
            })
            .to_vec();
        Machine {
            system,
            buffer: (buffer, buffer + (2 * PAGE - 1)),
            windows,
            peer_bytes,
            list,
        }
    }

    /// Addresses at which something ends or begins: the first byte after the border. 0 also stands
    /// for 2^64.
    fn borders(&self) -> Vec<u64> {
        let mut borders = vec![
            0,
            1 << 32,
            sim::WINDOW_BASE,
            MSI_BASE,
            MSI_LAST + 1,
            1 << 63,
        ];
        for &(first, last) in self.windows.iter().chain([&self.buffer]) {
            borders.extend([first, last + 1]);
        }
        borders
    }

    fn place(&self, addr: u64, len: u64) -> Place {
        let Some(last) = addr.checked_add(len - 1) else {
            return Place::Nowhere;
        };
        let within = |&(low, high): &(u64, u64)| addr >= low && last <= high;
        if within(&self.buffer) {
            Place::Memory
        } else if self.windows.iter().any(within) {
            Place::Peer
        } else if (MSI_BASE..=MSI_LAST).contains(&addr) && len >= 4 {
            Place::Interrupt
        } else {
            Place::Nowhere
        }
    }

    /// The TLPs of an access, each within one aligned `unit`.
    fn pieces(&self, access: &Access, unit: u64) -> Vec<(u64, u64)> {
        let (mut done, mut out) = (0, Vec::new());
        while done < access.len {
            // An access without an address reaches nothing.
            let at = access.addr.saturating_add(done);
            let room = unit - access.addr.wrapping_add(done) % unit;
            let len = room.min(access.len - done);
            out.push((at, len));
            done += len;
        }
        out
    }

    /// Runs accesses to their end and compares all counts with the list.
    fn run(&mut self, accesses: Vec<Access>, link: &LinkConfig) {
        *self.list.lock().unwrap() = accesses;
        let limit = self.system.now() + Time::ms(20);
        self.system.advance_until(limit).unwrap();
        let list = self.list.lock().unwrap().clone();
        let mut writes: HashMap<Place, (u64, u64)> = HashMap::new();
        let mut failed_reads = 0;
        for access in &list {
            assert!(access.sent, "not taken: {access:x?}");
            if access.write {
                for (at, len) in self.pieces(access, link.max_payload_bytes.into()) {
                    let sum = writes.entry(self.place(at, len)).or_default();
                    *sum = (sum.0 + 1, sum.1 + len);
                }
                continue;
            }
            assert_eq!(
                access.answers, 1,
                "answered otherwise than once: {access:x?}"
            );
            let pieces = self.pieces(access, link.max_read_request_bytes.into());
            let bad = |&&(at, len): &&(u64, u64)| {
                !matches!(self.place(at, len), Place::Memory | Place::Peer)
            };
            let bad = pieces.iter().filter(bad).count();
            failed_reads += bad as u64;
            assert_eq!(access.failed, bad > 0, "{access:x?}");
            if bad == 0 {
                assert_eq!(access.got as u64, access.len, "{access:x?}");
            }
        }
        let of = |place| writes.get(&place).copied().unwrap_or_default();
        let memory = self.system.memory();
        assert_eq!(memory.dropped_writes(), of(Place::Nowhere).0);
        assert_eq!(memory.failed_reads(), failed_reads);
        assert_eq!(memory.pending_interrupts(0) as u64, of(Place::Interrupt).0);
        assert_eq!(*self.peer_bytes.lock().unwrap(), of(Place::Peer).1);
    }
}

fn links() -> [LinkConfig; 3] {
    [(128, 128), (256, 512), (4096, 4096)].map(|(payload, request)| LinkConfig {
        max_payload_bytes: payload,
        max_read_request_bytes: request,
        max_completion_bytes: payload,
        host_posted_bytes: 65_536,
        ..LinkConfig::default()
    })
}

#[test]
fn borders_every_device_access_is_served_or_refused() {
    for link in links() {
        let mut machine = Machine::new(&link);
        let lengths = [1, 4, 63, 64, 100, 256, 4095, 4096];
        let mut accesses = Vec::new();
        for border in machine.borders() {
            for len in lengths {
                // Before the border, across it, and after it.
                for addr in [
                    border.wrapping_sub(len),
                    border.wrapping_sub(len / 2),
                    border,
                ] {
                    for write in [false, true] {
                        accesses.push(Access {
                            addr,
                            len,
                            write,
                            ..Access::default()
                        });
                    }
                }
            }
        }
        machine.run(accesses, &link);
    }
}

#[test]
fn borders_random_accesses_are_served_or_refused() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let link = &links()[random.below(3) as usize];
        let mut machine = Machine::new(link);
        let borders = machine.borders();
        let accesses = (0..300).map(|_| {
            let border = borders[random.below(borders.len() as u64) as usize];
            let span = [8, 300, 9000][random.below(3) as usize];
            let longest = [8, 300, 4096][random.below(3) as usize];
            Access {
                addr: border
                    .wrapping_add(random.below(2 * span))
                    .wrapping_sub(span),
                len: 1 + random.below(longest),
                write: random.below(2) == 0,
                ..Access::default()
            }
        });
        let accesses = accesses.collect();
        machine.run(accesses, link);
    }
}

#[test]
fn borders_host_accesses_of_windows_are_served_or_refused() {
    let mut machine = Machine::new(&LinkConfig::default());
    let (device, bar, size) = (1, WINDOWS[0].0, WINDOWS[0].1);
    for border in [0, PAGE, size, 1 << 32, 1 << 63] {
        for len in [1u64, 4, 64, 4096, 8192] {
            for offset in [
                border,
                border.wrapping_sub(len),
                border.wrapping_sub(len / 2),
            ] {
                let good = offset.checked_add(len).is_some_and(|end| end <= size);
                let read = machine.system.mmio_read(device, bar, offset, len as usize);
                assert_eq!(read.as_ref().is_ok_and(|d| d.len() as u64 == len), good);
                let data = vec![1; len as usize];
                let written = machine.system.mmio_write(device, bar, offset, &data);
                assert_eq!(written.is_ok(), good, "{offset:#x} + {len}");
            }
        }
    }
    // Longer than any window: no memory is allocated before the refusal.
    for len in [usize::MAX, usize::MAX / 2, 1 << 40] {
        for offset in [0, 64, u64::MAX] {
            assert!(machine.system.mmio_read(device, bar, offset, len).is_err());
        }
    }
}

#[test]
fn borders_windows_beyond_the_address_space_are_refused() {
    let mut system = System::new(&HostConfig::default()).unwrap();
    let link = LinkConfig::default();
    let idle = |_: Time, _: &mut dyn HostPort| false;
    for windows in [
        vec![(Bar::Pm, u64::MAX)],
        vec![(Bar::Pm, (1 << 63) + 1)],
        vec![(Bar::Pm, 1 << 63), (Bar::Control, 1 << 63)],
    ] {
        let device = Box::new(Clocked::new(Time::ns(4), idle));
        let error = system.add_device(device, &link, &windows).unwrap_err();
        assert!(error.to_string().contains("address space"), "{error}");
    }
    let device = Box::new(Clocked::new(Time::ns(4), idle));
    let device = system
        .add_device(device, &link, &[(Bar::Pm, PAGE)])
        .unwrap();
    assert_eq!(
        (device, system.window(device, Bar::Pm)),
        (0, Some(sim::WINDOW_BASE))
    );
}
