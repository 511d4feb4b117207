// SPDX-License-Identifier: Apache-2.0

//! The client's memory, mapped from the file descriptors that it sends.
//!
//! Each access looks its address up, and keeps the table locked while it copies at most 4 KiB. So
//! no access to memory is in flight once the reply to its unmap is sent. Copies use atomic accesses
//! of up to 8 bytes in ascending order, since the client's CPUs use the same memory at the same
//! time.
//!
//! A client can truncate the file of a mapping. The next access then raises SIGBUS, and
//! [`sim::guard`] replaces the mapping with zero pages. From then on accesses to that map fail as
//! unsupported requests.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, AtomicU8, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use memmap2::{MmapOptions, MmapRaw};
use sim::guard;

/// Granularity of maps. An access of a device lies within one page, so it never crosses maps.
const PAGE: u64 = 4096;
/// Most maps of a client.
const MAX_MAPS: usize = 8192;
/// Most bytes of a client's maps. The devices of a process share its address space.
const MAX_BYTES: u64 = 1 << 44;

/// Accesses that a map allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Permissions {
    pub read: bool,
    pub write: bool,
}

/// An error number for replies.
pub(crate) type Errno = i32;

/// Why a map was refused: for the reply, and for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MapError {
    pub errno: Errno,
    pub why: &'static str,
}

fn refused(errno: Errno, why: &'static str) -> MapError {
    MapError { errno, why }
}

struct Map {
    start: u64,
    /// The last byte. The end could be 2^64.
    last: u64,
    allowed: Permissions,
    /// `None`: the client has sent no file for the range, so accesses fail.
    memory: Option<MappedPages>,
    /// The file was truncated, and zero pages replace the mapping.
    broken: std::sync::atomic::AtomicBool,
}

/// Mapped pages, which are huge for a file of huge pages, and the offset of the client's part in
/// them.
struct MappedPages {
    pages: MmapRaw,
    inner: usize,
}

#[derive(Default)]
struct Table {
    /// Sorted by start.
    maps: Vec<Map>,
    bytes: u64,
    bus_master: bool,
}

/// The memory that a client shares with its device.
#[derive(Default)]
pub(crate) struct GuestMemory {
    table: RwLock<Table>,
}

impl GuestMemory {
    fn read_table(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_table(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allows or forbids all accesses. Once it returns, no forbidden access is in flight.
    pub(crate) fn set_bus_master(&self, allowed: bool) {
        self.write_table().bus_master = allowed;
    }

    /// True if accesses are allowed.
    pub(crate) fn bus_master(&self) -> bool {
        self.read_table().bus_master
    }

    /// Maps `len` bytes of a file from `offset` on, at the client's addresses from `start` on.
    pub(crate) fn map(
        &self,
        start: u64,
        len: u64,
        allowed: Permissions,
        file: Option<(OwnedFd, u64)>,
    ) -> Result<(), MapError> {
        let empty = "its range is empty, or ends beyond the last address";
        let last = last_byte(start, len).ok_or(refused(libc::EINVAL, empty))?;
        // Only whole pages can be mapped, and replaced after a truncation.
        let offset = file.as_ref().map_or(0, |(_, offset)| *offset);
        if [start, len, offset].iter().any(|n| n % PAGE != 0) {
            let why = "address, length and offset in the file have to be multiples of 4096";
            return Err(refused(libc::EINVAL, why));
        }
        let mut table = self.write_table();
        let at = table.maps.partition_point(|m| m.start < start);
        let before = at.checked_sub(1).and_then(|i| table.maps.get(i));
        if before.is_some_and(|m| m.last >= start)
            || table.maps.get(at).is_some_and(|m| m.start <= last)
        {
            return Err(refused(libc::EEXIST, "it overlaps one that is there"));
        }
        if table.maps.len() >= MAX_MAPS {
            return Err(refused(libc::ENOSPC, "a client has at most 8192"));
        }
        let mut memory = None;
        if let Some((fd, offset)) = file {
            if table.bytes.saturating_add(len) > MAX_BYTES {
                let why = "those of a client have at most 16 TiB in all";
                return Err(refused(libc::ENOSPC, why));
            }
            memory = Some(map_file(fd, offset, len, allowed)?);
            table.bytes += len;
        }
        let map = Map {
            start,
            last,
            allowed,
            memory,
            broken: false.into(),
        };
        table.maps.insert(at, map);
        Ok(())
    }

    /// Removes the maps within a range. If a map reaches beyond it, nothing is removed, which is an
    /// error. A range without maps is no error, as in VFIO: clients unmap their whole address space
    /// without knowing what was mapped.
    pub(crate) fn unmap(&self, start: u64, len: u64) -> Result<(), Errno> {
        let last = last_byte(start, len).ok_or(libc::EINVAL)?;
        let mut table = self.write_table();
        let touched = |m: &Map| m.start <= last && m.last >= start;
        let whole = |m: &Map| m.start >= start && m.last <= last;
        if table.maps.iter().any(|m| touched(m) && !whole(m)) {
            return Err(libc::EINVAL);
        }
        table.maps.retain(|m| !touched(m));
        table.bytes = mapped_bytes(&table.maps);
        Ok(())
    }

    /// Removes all maps. Bus mastering stays as it is.
    pub(crate) fn unmap_all(&self) {
        let mut table = self.write_table();
        table.maps.clear();
        table.bytes = 0;
    }

    /// Removes all maps, and forbids accesses.
    pub(crate) fn clear(&self) {
        *self.write_table() = Table::default();
    }

    /// True if any map has memory.
    pub(crate) fn has_memory(&self) -> bool {
        self.read_table()
            .maps
            .iter()
            .any(|map| map.memory.is_some())
    }

    /// Why an access fails.
    pub(crate) fn explain_failure(&self, addr: u64, len: usize, write: bool) -> &'static str {
        let table = self.read_table();
        let last = last_byte(addr, len as u64);
        let inside = |m: &&Map| m.start <= addr && last.is_some_and(|last| last <= m.last);
        match table.maps.iter().find(inside) {
            None => "the client has mapped no memory there",
            Some(map) if map.memory.is_none() => {
                "the client has mapped that range, but without a file descriptor: its memory is \
                    not shared (QEMU: share=on)"
            }
            Some(map) if map.broken.load(Ordering::Relaxed) => {
                "the client's file has become \
                shorter"
            }
            Some(_) if write => "the client allows no writes there",
            Some(_) => "the client allows no reads there",
        }
    }

    /// Reads. Returns false where nothing is mapped, or reads are not allowed.
    pub(crate) fn read(&self, addr: u64, out: &mut [u8]) -> bool {
        let table = self.read_table();
        let Some((map, from)) = table.find(addr, out.len()) else {
            return false;
        };
        if !map.allowed.read {
            return false;
        }
        // SAFETY: `find` has checked that all bytes from `from` on are mapped, and the table is
        // locked.
        map.guarded(|| unsafe { copy_in(from, out) })
    }

    /// Writes. Returns false where nothing is mapped, or writes are not allowed.
    pub(crate) fn write(&self, addr: u64, data: &[u8]) -> bool {
        let table = self.read_table();
        let Some((map, to)) = table.find(addr, data.len()) else {
            return false;
        };
        if !map.allowed.write {
            return false;
        }
        // SAFETY: as in `read`. The mapping is writable, as `allowed` says.
        map.guarded(|| unsafe { copy_out(to, data) })
    }
}

impl Table {
    /// The map of an access, and its address in this process.
    fn find(&self, addr: u64, len: usize) -> Option<(&Map, *mut u8)> {
        if !self.bus_master {
            return None;
        }
        let last = last_byte(addr, len as u64)?;
        let at = self.maps.partition_point(|m| m.start <= addr);
        let map = self.maps.get(at.checked_sub(1)?)?;
        if last > map.last {
            return None;
        }
        let memory = map.memory.as_ref()?;
        let at = memory.inner + (addr - map.start) as usize;
        // SAFETY: the offset is below the map's length, and the pages have that many bytes from
        // `inner` on.
        Some((map, unsafe { memory.pages.as_mut_ptr().add(at) }))
    }
}

impl Map {
    /// Runs a copy. Returns false if the memory of the map is gone.
    fn guarded(&self, copy: impl FnOnce()) -> bool {
        if self.broken.load(Ordering::Relaxed) {
            return false;
        }
        let Some(memory) = &self.memory else {
            return false;
        };
        let start = memory.pages.as_mut_ptr() as usize;
        // SAFETY: the pages belong to this map, which outlives the call. Only copies access them,
        // and nothing holds references into them.
        let done = unsafe { guard::guarded(start..start + memory.pages.len(), copy) };
        if !done {
            self.broken.store(true, Ordering::Relaxed);
        }
        done
    }
}

fn mapped_bytes(maps: &[Map]) -> u64 {
    let mapped = maps.iter().filter(|m| m.memory.is_some());
    mapped.map(|m| m.last - m.start + 1).sum()
}

/// The last of `len` bytes from `start` on. `None`: there are no bytes, or the last one is beyond
/// the address space.
fn last_byte(start: u64, len: u64) -> Option<u64> {
    start.checked_add(len.checked_sub(1)?)
}

/// Maps a part of a file.
fn map_file(
    fd: OwnedFd,
    offset: u64,
    len: u64,
    allowed: Permissions,
) -> Result<MappedPages, MapError> {
    guard::install_handler();
    let file = File::from(fd);
    let cannot = |e| refused(errno(e), "its file can't be mapped");
    let meta = file.metadata().map_err(cannot)?;
    // Other files may be devices whose pages have side effects.
    if !meta.is_file() {
        let why = "its file is no regular one (memfd, hugetlbfs)";
        return Err(refused(libc::EINVAL, why));
    }
    let beyond = refused(libc::EINVAL, "it ends beyond the end of its file");
    if offset.checked_add(len).ok_or(beyond)? > meta.len() {
        return Err(beyond);
    }
    let page = page_bytes(&file).map_err(cannot)?;
    let (first, bytes) = whole_pages(offset, len, page).ok_or(beyond)?;
    let mut options = MmapOptions::new();
    options
        .offset(first)
        .len(usize::try_from(bytes).map_err(|_| beyond)?);
    let mapped = if allowed.write {
        options.map_raw(&file)
    } else {
        options.map_raw_read_only(&file)
    };
    Ok(MappedPages {
        pages: mapped.map_err(cannot)?,
        inner: (offset - first) as usize,
    })
}

/// Page size of a file. Smaller parts can neither be mapped nor replaced.
fn page_bytes(file: &File) -> std::io::Result<u64> {
    let system = rustix::fs::fstatfs(file)?;
    let huge = system.f_type as u64 == libc::HUGETLBFS_MAGIC as u64;
    Ok(if huge { system.f_bsize as u64 } else { PAGE })
}

/// The whole pages of a part of a file: their offset, and their bytes.
fn whole_pages(offset: u64, len: u64, page: u64) -> Option<(u64, u64)> {
    let first = offset - offset.checked_rem(page)?;
    let end = offset.checked_add(len)?.checked_next_multiple_of(page)?;
    Some((first, end - first))
}

fn errno(error: std::io::Error) -> Errno {
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// Copies from memory that other processes may change.
///
/// # Safety
/// `from` must be followed by `out.len()` mapped, readable bytes.
unsafe fn copy_in(mut from: *mut u8, mut out: &mut [u8]) {
    while !out.is_empty() {
        if from as usize % 8 == 0 && out.len() >= 8 {
            let (now, rest) = out.split_at_mut(8);
            // SAFETY: aligned, and within the caller's range.
            let word = unsafe { AtomicU64::from_ptr(from.cast()) }.load(Ordering::Acquire);
            now.copy_from_slice(&word.to_ne_bytes());
            (from, out) = (from.wrapping_add(8), rest);
        } else {
            // SAFETY: as above; bytes have no alignment.
            out[0] = unsafe { AtomicU8::from_ptr(from) }.load(Ordering::Acquire);
            (from, out) = (from.wrapping_add(1), &mut out[1..]);
        }
    }
}

/// Copies to memory that other processes read. They never see a later byte before an earlier one.
///
/// # Safety
/// `to` must be followed by `data.len()` mapped, writable bytes.
unsafe fn copy_out(mut to: *mut u8, mut data: &[u8]) {
    while !data.is_empty() {
        if let (0, Some((word, rest))) = (to as usize % 8, data.split_first_chunk::<8>()) {
            // SAFETY: aligned, and within the caller's range.
            unsafe { AtomicU64::from_ptr(to.cast()) }
                .store(u64::from_ne_bytes(*word), Ordering::Release);
            (to, data) = (to.wrapping_add(8), rest);
        } else {
            // SAFETY: as above; bytes have no alignment.
            unsafe { AtomicU8::from_ptr(to) }.store(data[0], Ordering::Release);
            (to, data) = (to.wrapping_add(1), &data[1..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{ftruncate, memfd_create, MemfdFlags};

    const BOTH: Permissions = Permissions {
        read: true,
        write: true,
    };

    fn file(len: u64) -> OwnedFd {
        let fd = memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&fd, len).unwrap();
        fd
    }

    fn memory() -> GuestMemory {
        let memory = GuestMemory::default();
        memory.set_bus_master(true);
        memory
    }

    #[test]
    fn guest_memory_round_trips_at_any_alignment() {
        let memory = memory();
        let fd = file(3 * PAGE);
        memory
            .map(
                0x10_0000,
                2 * PAGE,
                BOTH,
                Some((fd.try_clone().unwrap(), PAGE)),
            )
            .unwrap();
        for at in [0u64, 1, 7, 8, 4000, 4095] {
            for len in [1usize, 3, 8, 9, 64, 100] {
                let data: Vec<u8> = (0..len).map(|i| (i as u64 * 7 + at + 1) as u8).collect();
                assert!(memory.write(0x10_0000 + at, &data));
                let mut back = vec![0; len];
                assert!(memory.read(0x10_0000 + at, &mut back));
                assert_eq!(back, data);
                let mut seen = vec![0; len];
                rustix::io::pread(&fd, &mut seen[..], PAGE + at).unwrap();
                assert_eq!(seen, data, "the client sees it in its file");
            }
        }
    }

    #[test]
    fn guest_memory_ends_at_its_maps() {
        let memory = memory();
        memory
            .map(0x2000, 0x1000, BOTH, Some((file(0x1000), 0)))
            .unwrap();
        memory.map(0x4000, 0x1000, BOTH, None).unwrap();
        let mut byte = [0; 2];
        for addr in [0, 0x1FFF, 0x2FFF, 0x3000, 0x4000, u64::MAX, u64::MAX - 1] {
            assert!(!memory.read(addr, &mut byte), "{addr:#x}");
            assert!(!memory.write(addr, &byte), "{addr:#x}");
        }
        assert!(memory.read(0x2FFE, &mut byte));
        memory.set_bus_master(false);
        assert!(!memory.read(0x2FFE, &mut byte));
    }

    #[test]
    fn guest_memory_rejects_invalid_maps() {
        let memory = memory();
        let fd = || Some((file(0x4000), 0));
        let refused = |start, len, file, errno| {
            assert_eq!(
                memory.map(start, len, BOTH, file).map_err(|r| r.errno),
                Err(errno),
                "{start:#x}+{len:#x}"
            );
        };
        refused(0, 0, fd(), libc::EINVAL);
        refused(0x800, 0x1000, fd(), libc::EINVAL);
        refused(0, 0x800, fd(), libc::EINVAL);
        refused(!0xFFF, 0x2000, fd(), libc::EINVAL);
        refused(0, 0x5000, fd(), libc::EINVAL);
        for offset in [1, 8, 512, 0xFFF, 0x1001, 0x2FFF] {
            refused(0, 0x1000, Some((file(0x4000), offset)), libc::EINVAL);
        }
        refused(0, 0x4000, Some((file(0x4000), 1 << 63)), libc::EINVAL);
        refused(0, 0x4000, Some((file(0x4000), u64::MAX)), libc::EINVAL);
        refused(
            0,
            MAX_BYTES + PAGE,
            Some((file(MAX_BYTES + PAGE), 0)),
            libc::ENOSPC,
        );
        let pipe = rustix::pipe::pipe().unwrap().0;
        refused(0, 0x1000, Some((pipe, 0)), libc::EINVAL);
        memory.map(0x4000, 0x4000, BOTH, fd()).unwrap();
        for (start, len) in [
            (0x4000, 0x1000),
            (0x7000, 0x2000),
            (0x3000, 0x2000),
            (0, 0x10000),
        ] {
            refused(start, len, None, libc::EEXIST);
        }
        assert_eq!(memory.unmap(0x4000, 0x1000), Err(libc::EINVAL));
        // Unmapping empty ranges is no error: before the map, after it, and repeatedly.
        for empty in [0x10000, 0x3000, 0x8000] {
            assert_eq!(memory.unmap(empty, 0x1000), Ok(()));
        }
        for wrong in [(0, 0), (u64::MAX, 2)] {
            assert_eq!(memory.unmap(wrong.0, wrong.1), Err(libc::EINVAL));
        }
        assert!(memory.write(0x4000, &[1]));
        assert_eq!(memory.unmap(0, u64::MAX), Ok(()));
        assert!(!memory.write(0x4000, &[1]));
        memory.map(0x4000, 0x4000, BOTH, fd()).unwrap();
    }

    #[test]
    fn guest_memory_maps_the_last_page() {
        let memory = memory();
        let (last, before) = (0u64.wrapping_sub(PAGE), 0u64.wrapping_sub(2 * PAGE));
        let fd = file(2 * PAGE);
        let again = || Some((fd.try_clone().unwrap(), 0));
        memory.map(last, PAGE, BOTH, again()).unwrap();
        let twice = memory.map(last, PAGE, BOTH, again());
        assert_eq!(twice.map_err(|r| r.errno), Err(libc::EEXIST));
        let overlap = memory.map(before, 2 * PAGE, BOTH, again());
        assert_eq!(overlap.map_err(|r| r.errno), Err(libc::EEXIST));
        memory.map(0, PAGE, BOTH, again()).unwrap();
        memory.map(before, PAGE, BOTH, again()).unwrap();
        assert!(memory.write(u64::MAX, &[5]) && memory.write(last, &[6; 4096]));
        assert!(!memory.write(u64::MAX, &[1; 2]), "it does not go on at 0");
        let mut data = [0; 4096];
        assert!(memory.read(last, &mut data) && data == [6; 4096]);
        assert_eq!(memory.unmap(last, PAGE), Ok(()));
        assert!(!memory.read(u64::MAX, &mut [0]));
        memory.map(last, PAGE, BOTH, again()).unwrap();
        assert_eq!(memory.unmap(before, 2 * PAGE), Ok(()));
        assert!(memory.write(0, &[1]));
        memory.map(before, 2 * PAGE, BOTH, again()).unwrap();
        memory.unmap_all();
        assert!(!memory.write(0, &[1]) && !memory.write(u64::MAX, &[1]));
        memory.map(before, 2 * PAGE, BOTH, again()).unwrap();
    }

    #[test]
    fn guest_memory_enforces_permissions() {
        let memory = memory();
        let (read, write) = (
            Permissions {
                read: true,
                write: false,
            },
            Permissions {
                read: false,
                write: true,
            },
        );
        memory
            .map(0, 0x1000, read, Some((file(0x1000), 0)))
            .unwrap();
        memory
            .map(0x1000, 0x1000, write, Some((file(0x1000), 0)))
            .unwrap();
        let mut byte = [0];
        assert!(memory.read(0, &mut byte) && !memory.write(0, &byte));
        assert!(!memory.read(0x1000, &mut byte) && memory.write(0x1000, &byte));
    }

    #[test]
    fn guest_memory_fails_only_the_map_of_a_truncated_file() {
        let memory = memory();
        let fd = file(0x4000);
        memory
            .map(0, 0x4000, BOTH, Some((fd.try_clone().unwrap(), 0)))
            .unwrap();
        memory
            .map(0x4000, 0x1000, BOTH, Some((file(0x1000), 0)))
            .unwrap();
        assert!(memory.write(0x2000, &[5; 64]));
        ftruncate(&fd, 0x1000).unwrap();
        let mut data = [1; 64];
        assert!(!memory.read(0x2000, &mut data));
        assert!(
            !memory.write(0, &[1; 64]),
            "the whole map is out of service"
        );
        assert!(memory.write(0x4000, &[1; 64]), "others are not");
        assert_eq!(memory.unmap(0, 0x4000), Ok(()));
        memory
            .map(0, 0x1000, BOTH, Some((file(0x1000), 0)))
            .unwrap();
        assert!(memory.write(0, &[1; 64]));
    }

    #[test]
    fn guest_memory_maps_whole_huge_pages() {
        let huge = 2 << 20;
        assert_eq!(whole_pages(0x3000, 0x1000, PAGE), Some((0x3000, 0x1000)));
        assert_eq!(whole_pages(0xC_0000, PAGE, huge), Some((0, huge)));
        assert_eq!(
            whole_pages(huge - PAGE, 2 * PAGE, huge),
            Some((0, 2 * huge))
        );
        assert_eq!(whole_pages(huge, huge, huge), Some((huge, huge)));
        assert_eq!(whole_pages(!0xFFF, PAGE, huge), None);

        let memory = memory();
        let fd = memfd_create("huge", MemfdFlags::CLOEXEC | MemfdFlags::HUGETLB);
        let fd = fd.and_then(|fd| ftruncate(&fd, huge).map(|()| fd));
        let Ok(fd) = fd else {
            eprintln!("skipped: this kernel has no huge pages");
            return;
        };
        let again = || Some((fd.try_clone().unwrap(), 0xC_0000));
        let mapped = memory.map(0x1000, PAGE, BOTH, again());
        if mapped.map_err(|r| r.errno) == Err(libc::ENOMEM) {
            eprintln!("skipped: this machine has no free huge page");
            return;
        }
        assert!(memory.write(0x1FFF, &[5]) && !memory.write(0x2000, &[5]));
        let mut seen = [0];
        rustix::io::pread(&fd, &mut seen[..], 0xC_0FFF).unwrap();
        assert_eq!(seen, [5]);
        assert_eq!(memory.unmap(0x1000, PAGE), Ok(()));
        memory.map(0x1000, PAGE, BOTH, again()).unwrap();
        ftruncate(&fd, 0).unwrap();
        assert!(!memory.write(0x1000, &[5]) && !memory.read(0x1000, &mut [0]));
        assert_eq!(memory.unmap(0x1000, PAGE), Ok(()));
    }

    #[test]
    fn guest_memory_maps_change_during_accesses() {
        let memory = memory();
        let fd = file(0x1000);
        rustix::io::pwrite(&fd, &[3; 256], 0x100).unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..2000 {
                    let again = Some((fd.try_clone().unwrap(), 0));
                    memory.map(0x1000, 0x1000, BOTH, again).unwrap();
                    memory.unmap(0x1000, 0x1000).unwrap();
                }
                stop.store(true, Ordering::Relaxed);
            });
            scope.spawn(|| {
                let mut data = [0; 256];
                while !stop.load(Ordering::Relaxed) {
                    memory.write(0x1100, &[3; 256]);
                    if memory.read(0x1100, &mut data) {
                        assert_eq!(data, [3; 256]);
                    }
                }
            });
        });
    }
}
