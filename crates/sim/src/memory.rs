// SPDX-License-Identifier: Apache-2.0

//! Host memory: pages, DMA buffers, watches, and the address range where writes are interrupts.
//!
//! Memory is one range of addresses. A device can reach a page only while it belongs to a buffer
//! ([`HostMemory::alloc`]), as with an IOMMU. Reads of other addresses fail; writes to them are
//! dropped and counted. Only touched pages cost memory of the machine.
//!
//! The memory can also belong to another program, such as a virtual machine ([`ExternalMemory`]).
//! Devices then reach what that program has shared with each of them. There are no buffers.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use memmap2::{MmapMut, MmapOptions};

use crate::config::PAGE;
use crate::Time;

/// The first address of the interrupt range.
pub const MSI_BASE: u64 = 0xFEE0_0000;
/// The last address of the interrupt range.
pub const MSI_LAST: u64 = 0xFEEF_FFFF;

const MAPPED: u8 = 1;
const WATCHED: u8 = 2;

/// An access to host memory outside of any buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unmapped {
    /// First address of the access.
    pub addr: u64,
    /// Its length.
    pub len: usize,
}

impl std::fmt::Display for Unmapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "host address {:#x} (+{} bytes) belongs to no buffer",
            self.addr, self.len
        )
    }
}

impl std::error::Error for Unmapped {}

/// A message-signalled interrupt that has reached the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// When it arrived.
    pub time: Time,
    /// The device that sent it.
    pub device: usize,
    /// The address that was written.
    pub addr: u64,
    /// The data that was written.
    pub data: u32,
}

/// Identifies a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Watch(u32);

/// Memory of another program, of which each device reaches a part.
pub trait ExternalMemory: Send {
    /// Writes `data`, which lies in one page and arrives at `time`. False if `device` may not write
    /// there.
    fn write(&mut self, time: Time, device: usize, addr: u64, data: &[u8]) -> bool;

    /// Reads into `out`, which lies in one page. False if `device` may not read there.
    fn read(&mut self, device: usize, addr: u64, out: &mut [u8]) -> bool;
}

#[derive(Debug)]
struct WatchedRange {
    id: u32,
    start: u64,
    end: u64,
    hits: u64,
}

/// Host memory as devices and CPUs see it.
pub struct HostMemory {
    base: u64,
    /// Only touched pages cost memory.
    bytes: MmapMut,
    pages: Vec<u8>,
    /// Free ranges, start to length, in bytes from `base`.
    free: BTreeMap<u64, u64>,
    /// Buffers, start to length, in bytes from `base`.
    used: BTreeMap<u64, u64>,
    /// Memory above this offset was never allocated, so it is still zero.
    fresh: u64,
    watches: Vec<WatchedRange>,
    next_watch: u32,
    /// By device, oldest first.
    interrupts: Vec<VecDeque<Interrupt>>,
    attention: bool,
    dropped_writes: u64,
    failed_reads: u64,
    external: Option<Box<dyn ExternalMemory>>,
    /// The data of the last read of external memory.
    fetched: Vec<u8>,
}

impl HostMemory {
    /// `len` bytes from address `base`, both whole pages, all free. An error if the operating
    /// system cannot supply them.
    pub fn new(base: u64, len: u64) -> io::Result<Self> {
        let len = len.next_multiple_of(PAGE);
        let mut room = MmapOptions::new();
        room.len(len as usize).no_reserve_swap();
        Ok(HostMemory {
            base,
            bytes: room.map_anon()?,
            pages: vec![0; (len / PAGE) as usize],
            free: BTreeMap::from([(0, len)]),
            used: BTreeMap::new(),
            fresh: 0,
            watches: Vec::new(),
            next_watch: 0,
            interrupts: Vec::new(),
            attention: false,
            dropped_writes: 0,
            failed_reads: 0,
            external: None,
            fetched: Vec::new(),
        })
    }

    /// Memory of another program. It has no buffers, so CPUs of this simulation can't access it. An
    /// error if the operating system cannot supply a page.
    pub fn external(memory: Box<dyn ExternalMemory>) -> io::Result<Self> {
        Ok(HostMemory {
            external: Some(memory),
            free: BTreeMap::new(),
            ..HostMemory::new(0, PAGE)?
        })
    }

    /// Whether the memory belongs to another program.
    pub fn is_external(&self) -> bool {
        self.external.is_some()
    }

    /// Allocates a zeroed buffer of whole pages for `len` bytes, aligned to `align` (a power of
    /// two) and at least to a page. `None` if there is no space.
    pub fn alloc(&mut self, len: u64, align: u64) -> Option<u64> {
        if !align.is_power_of_two() || len > self.bytes.len() as u64 {
            return None;
        }
        let align = align.max(PAGE);
        let len = len.max(1).next_multiple_of(PAGE);
        let (hole, hole_len, start) = self.free.iter().find_map(|(&hole, &hole_len)| {
            let start = (self.base + hole).checked_next_multiple_of(align)? - self.base;
            (start + len <= hole + hole_len).then_some((hole, hole_len, start))
        })?;
        self.free.remove(&hole);
        if start > hole {
            self.free.insert(hole, start - hole);
        }
        if start + len < hole + hole_len {
            self.free.insert(start + len, hole + hole_len - start - len);
        }
        self.used.insert(start, len);
        let stale = start.min(self.fresh)..(start + len).min(self.fresh);
        self.bytes[stale.start as usize..stale.end as usize].fill(0);
        self.fresh = self.fresh.max(start + len);
        self.pages[(start / PAGE) as usize..((start + len) / PAGE) as usize].fill(MAPPED);
        Some(self.base + start)
    }

    /// Frees a buffer; devices can no longer reach it. False if no buffer starts at `addr`.
    pub fn free(&mut self, addr: u64) -> bool {
        let Some(mut start) = addr.checked_sub(self.base) else {
            return false;
        };
        let Some(mut len) = self.used.remove(&start) else {
            return false;
        };
        self.pages[(start / PAGE) as usize..((start + len) / PAGE) as usize].fill(0);
        self.watches
            .retain(|w| w.end <= addr || w.start >= addr + len);
        if let Some(after) = self.free.remove(&(start + len)) {
            len += after;
        }
        if let Some((&before, &before_len)) = self.free.range(..start).next_back() {
            if before + before_len == start {
                start = before;
                len += before_len;
            }
        }
        self.free.insert(start, len);
        true
    }

    /// The offset of a mapped range.
    #[inline]
    fn locate(&self, addr: u64, len: usize) -> Option<usize> {
        let offset = addr.checked_sub(self.base)?;
        let end = offset.checked_add(len as u64)?;
        if end > self.bytes.len() as u64 {
            return None;
        }
        let (first, last) = (offset / PAGE, end.saturating_sub(1).max(offset) / PAGE);
        // An access of no bytes at the very end has no page.
        let pages = self.pages.get(first as usize..=last as usize)?;
        pages
            .iter()
            .all(|p| p & MAPPED != 0)
            .then_some(offset as usize)
    }

    /// The bytes of a range within buffers.
    pub fn slice(&self, addr: u64, len: usize) -> Result<&[u8], Unmapped> {
        let at = self.locate(addr, len).ok_or(Unmapped { addr, len })?;
        Ok(&self.bytes[at..at + len])
    }

    /// The bytes of a range within buffers, writable. These are stores of the CPU, so watches do
    /// not see them.
    pub fn slice_mut(&mut self, addr: u64, len: usize) -> Result<&mut [u8], Unmapped> {
        let at = self.locate(addr, len).ok_or(Unmapped { addr, len })?;
        Ok(&mut self.bytes[at..at + len])
    }

    /// CPU load.
    pub fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), Unmapped> {
        out.copy_from_slice(self.slice(addr, out.len())?);
        Ok(())
    }

    /// CPU store.
    pub fn write(&mut self, addr: u64, data: &[u8]) -> Result<(), Unmapped> {
        self.slice_mut(addr, data.len())?.copy_from_slice(data);
        Ok(())
    }

    /// Watches a range within buffers for writes of devices. A hit sets [`HostMemory::attention`].
    pub fn watch(&mut self, addr: u64, len: u64) -> Result<Watch, Unmapped> {
        let at = self.locate(addr, len as usize).ok_or(Unmapped {
            addr,
            len: len as usize,
        })? as u64;
        let id = self.next_watch;
        self.next_watch += 1;
        self.watches.push(WatchedRange {
            id,
            start: addr,
            end: addr + len,
            hits: 0,
        });
        self.pages[(at / PAGE) as usize..(at + len).div_ceil(PAGE) as usize]
            .iter_mut()
            .for_each(|p| *p |= WATCHED);
        Ok(Watch(id))
    }

    /// Ends a watch.
    pub fn unwatch(&mut self, watch: Watch) {
        // The mark of the page may stay: it only costs a search of the list.
        self.watches.retain(|w| w.id != watch.0);
    }

    /// Device writes (TLPs) that hit the watch since the last call.
    pub fn take_hits(&mut self, watch: Watch) -> u64 {
        self.watches
            .iter_mut()
            .find(|w| w.id == watch.0)
            .map_or(0, |w| std::mem::take(&mut w.hits))
    }

    /// True if the watch was hit since its hits were last taken.
    pub fn is_hit(&self, watch: Watch) -> bool {
        self.watches.iter().any(|w| w.id == watch.0 && w.hits > 0)
    }

    /// True once a watched write or an interrupt has arrived since [`HostMemory::clear_attention`].
    #[inline]
    pub fn attention(&self) -> bool {
        self.attention
    }

    /// Clears [`HostMemory::attention`].
    pub fn clear_attention(&mut self) {
        self.attention = false;
    }

    /// Takes the oldest pending interrupt of a device.
    pub fn pop_interrupt(&mut self, device: usize) -> Option<Interrupt> {
        self.interrupts.get_mut(device)?.pop_front()
    }

    /// Number of pending interrupts of a device.
    pub fn pending_interrupts(&self, device: usize) -> usize {
        self.interrupts.get(device).map_or(0, VecDeque::len)
    }

    /// A write TLP of `device` arrives at `time`. It lies in one page.
    #[inline]
    pub fn device_write(&mut self, time: Time, device: usize, addr: u64, data: &[u8]) {
        if let Some(at) = self.locate(addr, data.len()) {
            self.bytes[at..at + data.len()].copy_from_slice(data);
            if self.pages[at / PAGE as usize] & WATCHED != 0 {
                let end = addr + data.len() as u64;
                for watch in &mut self.watches {
                    if addr < watch.end && end > watch.start {
                        watch.hits += 1;
                        self.attention = true;
                    }
                }
            }
        } else if (MSI_BASE..=MSI_LAST).contains(&addr) && data.len() >= 4 {
            let data = u32::from_le_bytes([data[0], data[1], data[2], data[3]]);
            if self.interrupts.len() <= device {
                self.interrupts.resize_with(device + 1, VecDeque::new);
            }
            self.interrupts[device].push_back(Interrupt {
                time,
                device,
                addr,
                data,
            });
            self.attention = true;
        } else {
            let external = self.external.as_mut();
            if !external.is_some_and(|memory| memory.write(time, device, addr, data)) {
                self.dropped_writes += 1;
            }
        }
    }

    /// The data of a read TLP of `device`; `None` is an unsupported request.
    #[inline]
    pub fn device_read(&mut self, device: usize, addr: u64, len: usize) -> Option<&[u8]> {
        if let Some(at) = self.locate(addr, len) {
            return Some(&self.bytes[at..at + len]);
        }
        if let Some(memory) = &mut self.external {
            self.fetched.resize(len, 0);
            if memory.read(device, addr, &mut self.fetched) {
                return Some(&self.fetched);
            }
        }
        self.failed_reads += 1;
        None
    }

    /// Write TLPs of devices that were dropped because nothing is mapped at their address.
    pub fn dropped_writes(&self) -> u64 {
        self.dropped_writes
    }

    /// Read TLPs of devices that failed because nothing is mapped at their address.
    pub fn failed_reads(&self) -> u64 {
        self.failed_reads
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use std::collections::HashMap;

    const BASE: u64 = 1 << 32;

    #[test]
    fn host_memory_buffers_are_aligned_zeroed_and_disjoint() {
        let mut memory = HostMemory::new(BASE, 1 << 20).unwrap();
        let a = memory.alloc(100, 1).unwrap();
        let b = memory.alloc(5000, 65_536).unwrap();
        assert_eq!((a % PAGE, b % 65_536), (0, 0));
        memory.write(a, &[7; 4096]).unwrap();
        assert!(
            memory.write(a + 1, &[7; 4096]).is_err(),
            "the next page belongs to no buffer"
        );
        assert!(memory.free(a) && !memory.free(a));
        assert!(memory.slice(a, 1).is_err());
        let c = memory.alloc(4096, 1).unwrap();
        assert_eq!((c, memory.slice(c, 4096).unwrap()), (a, &[0u8; 4096][..]));
        assert_eq!(memory.alloc(1 << 20, 1), None);
        assert_eq!(memory.alloc(u64::MAX, 1), None);
        assert_eq!(memory.alloc(1, 3), None);
    }

    #[test]
    fn host_memory_random_alloc_and_free_never_overlap() {
        let mut random = Random::new(5);
        let size = 4u64 << 20;
        let mut memory = HostMemory::new(BASE, size).unwrap();
        let mut live: Vec<(u64, u64)> = Vec::new();
        for _ in 0..4000 {
            if random.below(5) < 3 {
                let len = 1 + random.below(40_000);
                let align = PAGE << random.below(5);
                if let Some(addr) = memory.alloc(len, align) {
                    assert_eq!(addr % align, 0);
                    assert!(live.iter().all(|&(a, l)| addr + len <= a || a + l <= addr));
                    assert!(memory
                        .slice(addr, len as usize)
                        .unwrap()
                        .iter()
                        .all(|&b| b == 0));
                    memory.slice_mut(addr, len as usize).unwrap().fill(0xAA);
                    live.push((addr, len));
                }
            } else if !live.is_empty() {
                let (addr, _) = live.swap_remove(random.below(live.len() as u64) as usize);
                assert!(memory.free(addr));
            }
        }
        for (addr, _) in live {
            assert!(memory.free(addr));
        }
        assert_eq!(memory.alloc(size, 1), Some(BASE));
    }

    #[test]
    fn host_memory_watches_see_device_writes_only() {
        let mut memory = HostMemory::new(BASE, 1 << 20).unwrap();
        let queue = memory.alloc(4096, 1).unwrap();
        let watch = memory.watch(queue + 16, 16).unwrap();
        memory.write(queue + 16, &[1; 16]).unwrap();
        memory.device_write(Time::ns(1), 0, queue, &[1; 16]);
        memory.device_write(Time::ns(2), 0, queue + 32, &[1; 16]);
        assert!(!memory.attention() && !memory.is_hit(watch));
        memory.device_write(Time::ns(3), 0, queue + 31, &[9]);
        assert!(memory.attention() && memory.is_hit(watch));
        assert_eq!((memory.take_hits(watch), memory.take_hits(watch)), (1, 0));
        memory.clear_attention();
        memory.unwatch(watch);
        memory.device_write(Time::ns(4), 0, queue + 16, &[1]);
        assert!(!memory.attention());
        assert_eq!(memory.slice(queue + 31, 1).unwrap(), [9]);
        assert!(memory.watch(queue + 4096, 1).is_err());
    }

    #[test]
    fn host_memory_interrupts_and_unmapped_accesses() {
        let mut memory = HostMemory::new(BASE, 1 << 20).unwrap();
        memory.device_write(Time::ns(7), 3, 0xFEE0_1004, &0x4021u32.to_le_bytes());
        assert!(memory.attention());
        let expected = Interrupt {
            time: Time::ns(7),
            device: 3,
            addr: 0xFEE0_1004,
            data: 0x4021,
        };
        assert_eq!(
            (memory.pop_interrupt(3), memory.pop_interrupt(3)),
            (Some(expected), None)
        );
        for addr in [0, BASE - 1, BASE, BASE + (1 << 20), u64::MAX - 3] {
            memory.device_write(Time::ns(8), 0, addr, &[1; 4]);
            assert_eq!(memory.device_read(0, addr, 4), None);
        }
        assert_eq!((memory.dropped_writes(), memory.failed_reads()), (5, 5));
    }

    #[test]
    fn host_memory_random_accesses_match_a_map_of_bytes() {
        let mut random = Random::new(11);
        let mut memory = HostMemory::new(BASE, 1 << 20).unwrap();
        let buffer = memory.alloc(64 << 10, 1).unwrap();
        let mut model: HashMap<u64, u8> = HashMap::new();
        for _ in 0..5000 {
            let at = buffer + random.below(60 << 10);
            let len = 1 + random.below(4096.min(PAGE - at % PAGE)) as usize;
            if random.below(2) == 0 {
                let data: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
                memory.device_write(Time::ZERO, 0, at, &data);
                data.iter()
                    .zip(at..)
                    .for_each(|(&b, a)| _ = model.insert(a, b));
            } else {
                let data = memory.device_read(0, at, len).unwrap();
                assert!(data
                    .iter()
                    .zip(at..)
                    .all(|(&b, a)| model.get(&a).copied().unwrap_or(0) == b));
            }
        }
    }
}
