// SPDX-License-Identifier: Apache-2.0

//! The media of a device: in memory, or in a file that survives a restart.
//!
//! Both start zeroed and are sparse. The media have no timing; see [`crate::dram`].
//!
//! A file occupies disk space where it is written. An access that finds no space or cannot be read
//! fails and changes nothing; later accesses try again.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::{Advice, MmapMut, MmapOptions, MmapRaw, UncheckedAdvice};
use rustix::fs::{
    fcntl_add_seals, flock, ftruncate, memfd_create, seek, FlockOperation, MemfdFlags, SealFlags,
    SeekFrom,
};
use rustix::io::Errno;

use crate::config::escape_controls;
use crate::fork::SharedResource;
use crate::journal::{self, Journal};
use crate::{guard, prefetch};

/// The unit of holes: a page of the machine, and the smallest granule.
const PAGE: u64 = 4096;
/// Bytes per undo entry of the journal.
const UNDO_CHUNK: u64 = 64 << 10;
static ZEROS: [u8; PAGE as usize] = [0; PAGE as usize];
/// The maps of all media of this process: address and bytes.
static MAPS: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// Why media cannot be opened or flushed; one line that names the file.
#[derive(Debug, thiserror::Error)]
pub enum MediaError {
    /// The size is zero, or not a multiple of 64 bytes.
    #[error("media of {0} bytes: the size must be a positive multiple of 64")]
    Size(u64),
    /// The file exists with another size.
    #[error(
        "media file {} has {found} bytes, the design wants {wanted}: name another file or change \
         the size",
        escape_controls(path.display())
    )]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// Its size.
        found: u64,
        /// The size that the design asks for.
        wanted: u64,
    },
    /// The directory of the file does not exist.
    #[error("media file {}: its directory doesn't exist", escape_controls(.0.display()))]
    NoDirectory(PathBuf),
    /// The path is not a regular file.
    #[error("media file {}: not a regular file", escape_controls(.0.display()))]
    NotAFile(PathBuf),
    /// Another device has the file, possibly under another name.
    #[error(
        "media file {}: another device has it, here or in another process; end that one or name \
         another file",
        escape_controls(.0.display())
    )]
    InUse(PathBuf),
    /// The operating system cannot supply memory of that size.
    #[error("media of {len} bytes in memory: {source}")]
    Memory {
        /// The size.
        len: u64,
        /// The system's error.
        source: io::Error,
    },
    /// The operating system refuses.
    #[error("media file {}: can't {action}: {source}", escape_controls(path.display()))]
    Io {
        /// The file.
        path: PathBuf,
        /// The action that failed.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

/// What the map is backed by.
enum Backing {
    Memory,
    /// Memory that other processes can map.
    Shared(OwnedFd),
    /// The file stays open and locked while the media live.
    File {
        path: PathBuf,
        file: File,
    },
}

/// A range of media that can be neither read nor written for now. For tests of a device's error
/// handling.
#[derive(Clone, Debug, Default)]
pub struct FailingRange(Arc<[AtomicU64; 2]>);

impl FailingRange {
    /// Makes exactly this range fail; an empty range makes none fail.
    pub fn set(&self, range: Range<u64>) {
        self.0[0].store(range.start, Ordering::Relaxed);
        self.0[1].store(range.end, Ordering::Relaxed);
    }

    #[inline]
    fn overlaps(&self, addr: u64, len: u64) -> bool {
        let end = self.0[1].load(Ordering::Relaxed);
        addr < end && addr.saturating_add(len) > self.0[0].load(Ordering::Relaxed)
    }
}

/// Byte-addressable storage of a fixed size.
///
/// Accesses past the end read zeros and write nothing. The address decoder is responsible for
/// errors.
pub struct Media {
    map: MmapRaw,
    store: Backing,
    journal: Option<Journal>,
    /// A write to a file with a journal has failed.
    stopped: bool,
    failures: AtomicU64,
    failing: FailingRange,
    _shared: Option<SharedResource>,
}

impl Media {
    fn new(map: MmapMut, store: Backing) -> Media {
        if !matches!(store, Backing::Memory) {
            guard::install_handler();
        }
        let mut maps = MAPS.lock().unwrap_or_else(PoisonError::into_inner);
        maps.push((map.as_ptr() as usize, map.len()));
        drop(maps);
        let shared = match &store {
            Backing::Memory => None,
            Backing::Shared(_) => Some("media in memory that others can map".into()),
            Backing::File { path, .. } => {
                Some(format!("media file {}", escape_controls(path.display())))
            }
        };
        Media {
            map: map.into(),
            _shared: shared.map(SharedResource::new),
            store,
            journal: None,
            stopped: false,
            failures: AtomicU64::new(0),
            failing: FailingRange::default(),
        }
    }

    /// A handle to the range that fails, to be set from outside.
    pub fn failing_range(&self) -> FailingRange {
        self.failing.clone()
    }

    /// Bytes of all media of this process that are resident in memory.
    pub fn resident() -> u64 {
        let maps = MAPS.lock().unwrap_or_else(PoisonError::into_inner);
        let mut pages = Vec::new();
        let mut found = 0;
        for &(at, len) in maps.iter() {
            pages.clear();
            pages.resize(len.div_ceil(PAGE as usize), 0u8);
            let (at, bytes) = (at as *mut libc::c_void, pages.as_mut_ptr().cast());
            // SAFETY: the map lives as long as its entry, and there is a byte for each of its
            // pages.
            if unsafe { libc::mincore(at, len, bytes) } == 0 {
                found += pages.iter().filter(|&page| page & 1 == 1).count() as u64;
            }
        }
        found * PAGE
    }

    /// Zeroed media in memory. Only written pages cost memory.
    pub fn memory(len: u64) -> Result<Media, MediaError> {
        check_size(len)?;
        let map = MmapOptions::new()
            .len(len as usize)
            .no_reserve_swap()
            .map_anon()
            .map_err(|source| MediaError::Memory { len, source })?;
        // With huge pages a single byte would cost 2 MiB. A kernel without them refuses the advice,
        // which is harmless.
        let _ = map.advise(Advice::NoHugePage);
        let store = Backing::Memory;
        Ok(Media::new(map, store))
    }

    /// Zeroed media in memory that other processes can map, by [`Media::shared_file`]. Only touched
    /// pages cost memory.
    pub fn shared(len: u64) -> Result<Media, MediaError> {
        check_size(len)?;
        let fail = |source: io::Error| MediaError::Memory { len, source };
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("nearside-media", flags).map_err(|e| fail(e.into()))?;
        ftruncate(&file, len).map_err(|e| fail(e.into()))?;
        // A process that maps the memory cannot remove pages.
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        fcntl_add_seals(&file, seals).map_err(|e| fail(e.into()))?;
        // SAFETY: the file cannot shrink. Other processes may change its bytes at any moment; the
        // bytes are only copied, and no code relies on their values.
        let map = unsafe { MmapOptions::new().len(len as usize).map_mut(&file) }.map_err(fail)?;
        let store = Backing::Shared(file);
        Ok(Media::new(map, store))
    }

    /// Media in the file `path`, created sparse and zeroed if it does not exist or is empty. Writes
    /// survive this process.
    ///
    /// If the previous process was killed while the media had a journal, the media are first
    /// restored as [`Media::begin_journal`] describes.
    ///
    /// The file is locked (`flock`): only one device, of any process, can have it. A reader needs
    /// no lock.
    pub fn file(path: &Path, len: u64) -> Result<Media, MediaError> {
        check_size(len)?;
        let fail = |action| {
            move |source| MediaError::Io {
                path: path.into(),
                action,
                source,
            }
        };
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
        if parent.is_some_and(|p| !p.is_dir()) {
            return Err(MediaError::NoDirectory(path.into()));
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let (file, new) = match std::fs::metadata(path) {
            Ok(meta) if !meta.is_file() => return Err(MediaError::NotAFile(path.into())),
            Ok(_) => {
                let file = options.open(path);
                (file.map_err(fail("open it for reading and writing"))?, None)
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                // A link to a missing file is kept, and names the file. If another device has just
                // created it, the owner of the lock has it.
                let target = resolve_links(path.into());
                let file = options.clone().create_new(true).open(&target);
                match file {
                    Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                        (options.open(&target).map_err(fail("open it"))?, None)
                    }
                    file => (file.map_err(fail("create it"))?, Some(target)),
                }
            }
            Err(e) => return Err(fail("look at it")(e)),
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(MediaError::InUse(path.into())),
            Err(e) => return Err(fail("lock it")(e.into())),
        }
        let mut found = file.metadata().map_err(fail("look at it"))?.len();
        if found == 0 {
            if let Err(source) = file.set_len(len) {
                let _ = new.map(std::fs::remove_file);
                return Err(fail("give it its size")(source));
            }
            found = len;
        }
        if found > len {
            if let Some(recovered) = journal::recover(&file, len) {
                recovered.map_err(fail("bring it to where its last life has ended"))?;
                found = len;
            }
        }
        if found != len {
            return Err(MediaError::Mismatch {
                path: path.into(),
                found,
                wanted: len,
            });
        }
        // SAFETY: the mapping is shared with the file, which others may change; its bytes are only
        // copied, under a guard.
        let map = unsafe { MmapMut::map_mut(&file) }.map_err(fail("map it"))?;
        let store = Backing::File {
            path: path.into(),
            file,
        };
        Ok(Media::new(map, store))
    }

    /// Starts a journal: from now on writes to a file are permanent only after the next
    /// [`Media::commit`]. Whenever the process ends, the next process finds the media as of the
    /// last commit, with its final image applied. The final image has at most `most` bytes. Nothing
    /// is done for media in memory, which end with the process.
    ///
    /// **A failed write is the last one.** Earlier and later writes together would be a state that
    /// no loss of power could leave. From then on nothing can be read or written, and the file
    /// keeps the last commit.
    ///
    /// The journal follows the media in the file, which is longer until the media are dropped or
    /// opened again.
    pub fn begin_journal(&mut self, most: usize) -> Result<(), MediaError> {
        if let (Backing::File { path, file }, None) = (&self.store, &self.journal) {
            let journal = Journal::new(file, self.size(), most);
            self.journal = Some(journal.map_err(|source| MediaError::Io {
                path: path.clone(),
                action: "append a journal",
                source,
            })?);
        }
        Ok(())
    }

    /// Whether the media are in a file.
    pub fn is_file(&self) -> bool {
        matches!(self.store, Backing::File { .. })
    }

    /// Whether there is a journal: see [`Media::begin_journal`].
    pub fn has_journal(&self) -> bool {
        self.journal.is_some()
    }

    /// Makes all writes so far permanent. If the process ends before the next commit, the next
    /// process finds `last` at `addr` as well. False: the file was truncated, or a write has failed
    /// before. Does nothing without a journal.
    pub fn commit(&mut self, addr: u64, last: &[u8]) -> bool {
        let (Backing::File { file, .. }, Some(journal)) = (&self.store, &mut self.journal) else {
            return true;
        };
        !self.stopped
            && (journal.commit(file, addr, last)
                || self.record_failure("settle what was written", addr))
    }

    /// Bytes that would be undone if the process ended now.
    pub fn uncommitted_bytes(&self) -> u64 {
        self.journal.as_ref().map_or(0, Journal::undo_bytes)
    }

    /// Records the old content of a range in the journal, if there is one. False: there is no
    /// space.
    fn log_undo(&mut self, addr: u64, len: u64) -> bool {
        let Some(mut journal) = self.journal.take() else {
            return true;
        };
        let end = addr + len;
        let kept = (addr..end).step_by(UNDO_CHUNK as usize).all(|at| {
            let bytes = (end - at).min(UNDO_CHUNK) as usize;
            let old = journal.begin_undo(at, bytes);
            // SAFETY: this range is within the media.
            let copy =
                |from: *mut u8| unsafe { from.copy_to_nonoverlapping(old.as_mut_ptr(), bytes) };
            let read = self.copy_guarded(at as usize, bytes, copy) || self.read_file(at, old);
            match &self.store {
                Backing::File { file, .. } => read && journal.append_undo(file),
                _ => true,
            }
        });
        self.journal = Some(journal);
        kept
    }

    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.map.len() as u64
    }

    /// The file that others can map to share these media; only for [`Media::shared`].
    pub fn shared_file(&self) -> Option<BorrowedFd<'_>> {
        match &self.store {
            Backing::Shared(file) => Some(file.as_fd()),
            _ => None,
        }
    }

    /// Accesses that failed because the file had no space or could not be read.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Reads from `addr`. False: the file cannot be read, and `out` is undefined.
    pub fn read(&self, addr: u64, out: &mut [u8]) -> bool {
        if self.failing.overlaps(addr, out.len() as u64) {
            return self.record_failure("read", addr);
        }
        let inside = self.bytes_within(addr, out.len());
        let (out, beyond) = out.split_at_mut(inside);
        beyond.fill(0);
        // SAFETY: this range is within the media.
        let copy = |from: *mut u8| unsafe { from.copy_to_nonoverlapping(out.as_mut_ptr(), inside) };
        inside == 0
            || self.copy_guarded(addr as usize, inside, copy)
            || self.read_file(addr, out)
            || self.record_failure("read", addr)
    }

    /// Writes at `addr`. False: there is no space, and at most a part was written.
    ///
    /// The part of a write within one page of a file is atomic with respect to the end of the
    /// process.
    pub fn write(&mut self, addr: u64, data: &[u8]) -> bool {
        if self.failing.overlaps(addr, data.len() as u64) {
            return self.record_failure("write", addr);
        }
        let inside = self.bytes_within(addr, data.len());
        if inside > 0 && matches!(self.store, Backing::File { .. }) {
            return self.log_undo(addr, inside as u64) && self.write_file(addr, &data[..inside])
                || self.stop_writes("write", addr);
        }
        // SAFETY: this range is within the media.
        let copy = |to: *mut u8| unsafe { to.copy_from_nonoverlapping(data.as_ptr(), inside) };
        inside == 0
            || self.copy_guarded(addr as usize, inside, copy)
            || self.record_failure("write", addr)
    }

    /// The aligned 64-byte line at `addr` (low 6 bits ignored); `None` if the file cannot be read.
    #[inline]
    pub fn read_line(&self, addr: u64) -> Option<[u8; 64]> {
        let mut line = [0; 64];
        let addr = addr & !63;
        if addr >= self.size() {
            return Some(line);
        }
        if self.failing.overlaps(addr, 64) {
            self.record_failure("read", addr);
            return None;
        }
        // SAFETY: the media are whole lines.
        let copy = |from: *mut u8| unsafe { from.copy_to_nonoverlapping(line.as_mut_ptr(), 64) };
        let read = self.copy_guarded(addr as usize, 64, copy) || self.read_file(addr, &mut line);
        (read || self.record_failure("read", addr)).then_some(line)
    }

    /// Writes the bytes of the aligned 64-byte line at `addr` (low 6 bits ignored) whose bit in
    /// `enables` is set. False: there is no space.
    #[inline]
    pub fn write_line(&mut self, addr: u64, data: &[u8; 64], enables: u64) -> bool {
        let addr = addr & !63;
        if enables == 0 || addr >= self.size() {
            return true;
        }
        if self.failing.overlaps(addr, 64) {
            return self.record_failure("write", addr);
        }
        if matches!(self.store, Backing::File { .. }) {
            return self.write_file_line(addr, data, enables) || self.stop_writes("write", addr);
        }
        // SAFETY: the media are whole lines.
        let copy = |to: *mut u8| unsafe {
            if enables == u64::MAX {
                to.copy_from_nonoverlapping(data.as_ptr(), 64);
                return;
            }
            for (i, byte) in data.iter().enumerate() {
                if enables >> i & 1 != 0 {
                    to.add(i).write(*byte);
                }
            }
        };
        self.copy_guarded(addr as usize, 64, copy) || self.record_failure("write", addr)
    }

    /// Writes a line of a file as a whole.
    fn write_file_line(&mut self, addr: u64, data: &[u8; 64], enables: u64) -> bool {
        let mut line = *data;
        if enables != u64::MAX {
            let mut old = [0; 64];
            // SAFETY: the media are whole lines.
            let copy = |from: *mut u8| unsafe { from.copy_to_nonoverlapping(old.as_mut_ptr(), 64) };
            if !self.copy_guarded(addr as usize, 64, copy) && !self.read_file(addr, &mut old) {
                return false;
            }
            for (i, byte) in line.iter_mut().enumerate() {
                if enables >> i & 1 == 0 {
                    *byte = old[i];
                }
            }
        }
        self.log_undo(addr, 64) && self.write_file(addr, &line)
    }

    /// Hints to the machine that `len` bytes from `addr` are needed soon. Pages that were never
    /// touched, or are on disk, are not fetched.
    #[inline]
    pub fn prefetch(&self, addr: u64, len: usize) {
        let inside = self.bytes_within(addr, len);
        let from = addr as usize & !63;
        for at in (from..addr as usize + inside).step_by(64) {
            prefetch::line(self.map.as_ptr().wrapping_add(at));
        }
    }

    /// Zeroes `len` bytes from `addr`. Whole pages become holes where possible, which cost neither
    /// memory nor disk. False: there is no space for some of the zeros.
    pub fn zero(&mut self, addr: u64, len: u64) -> bool {
        let end = addr.saturating_add(len).min(self.size());
        if self.failing.overlaps(addr, len) {
            return self.record_failure("write", addr);
        }
        if !self.log_undo_data(addr, end) {
            return self.stop_writes("write", addr);
        }
        let mut at = addr;
        let mut done = true;
        // Pages per request; if a large request fails, single pages may succeed.
        let mut most = u64::MAX;
        while at < end {
            let next = (at - at % PAGE).saturating_add(PAGE).min(end);
            if next - at == PAGE {
                let pages = (end - at) / PAGE;
                if let Some(holes) = self.punch_holes(at as usize, pages.min(most)) {
                    at += holes * PAGE;
                    continue;
                }
                if pages.min(most) > 1 {
                    most = 1;
                    continue;
                }
            }
            let (from, bytes) = (at as usize, (next - at) as usize);
            // SAFETY: this range is within the media.
            let fill = |to: *mut u8| unsafe { to.write_bytes(0, bytes) };
            done &= match self.store {
                Backing::File { .. } => self.write_file(at, &ZEROS[..bytes]),
                _ => self.copy_guarded(from, bytes, fill),
            } || self.reads_zero(at, bytes);
            at = next;
        }
        done || self.stop_writes("write", addr)
    }

    /// Records the old content of a range that becomes zeros, if there is a journal; holes are
    /// skipped.
    fn log_undo_data(&mut self, addr: u64, end: u64) -> bool {
        let mut at = addr;
        while self.journal.is_some() && at < end {
            let page_end = (at - at % PAGE).saturating_add(PAGE).min(end);
            let (hole, next) = match page_end - at == PAGE {
                true => {
                    let (hole, pages) = self.page_extent(at, (end - at) / PAGE);
                    (hole, at + pages * PAGE)
                }
                false => (false, page_end),
            };
            if !hole && !self.log_undo(at, next - at) {
                return false;
            }
            at = next;
        }
        true
    }

    /// Makes pages from `at` on holes, unless they are. Returns their number, or `None` if that is
    /// impossible. One request for several pages, because the system's cost per request dominates.
    fn punch_holes(&mut self, at: usize, pages: u64) -> Option<u64> {
        let page = PAGE as usize;
        let mut some = pages;
        let advice = match &self.store {
            Backing::Memory => UncheckedAdvice::DontNeed,
            Backing::Shared(_) => UncheckedAdvice::Remove,
            Backing::File { .. } => {
                // The query is cheaper than punching. A read through the map would allocate memory
                // for a hole of a tmpfs.
                let (hole, as_many) = self.page_extent(at as u64, pages);
                some = as_many;
                if hole {
                    return Some(some);
                }
                UncheckedAdvice::Remove
            }
        };
        // SAFETY: no references into the map exist. Both kinds of advice zero the pages of the
        // mapping that each is used for: private and anonymous, or shared with a file.
        let advised = unsafe {
            self.map
                .unchecked_advise_range(advice, at, some as usize * page)
        };
        advised.is_ok().then_some(some)
    }

    /// Whether the page of the file at `at` is a hole, and how many of `pages` pages from there are
    /// alike.
    fn page_extent(&self, at: u64, pages: u64) -> (bool, u64) {
        let count = |end: u64| ((end - at) / PAGE).clamp(1, pages);
        let Some(file) = self.fd() else {
            return (false, pages);
        };
        match seek(file, SeekFrom::Data(at)) {
            Err(Errno::NXIO) => (true, pages),
            Ok(data) if data >= at + PAGE => (true, count(data)),
            Ok(_) => match seek(file, SeekFrom::Hole(at)) {
                Ok(hole) => (false, count(hole)),
                Err(_) => (false, pages),
            },
            // The file system does not support the query.
            Err(_) => (false, pages),
        }
    }

    /// Runs a copy from or to the `len` bytes at `at`, which are within the media. False: a page
    /// was missing.
    #[inline]
    fn copy_guarded(&self, at: usize, len: usize, copy: impl FnOnce(*mut u8)) -> bool {
        let page = PAGE as usize;
        let base = self.map.as_mut_ptr();
        let (from, to) = (at - at % page, (at + len).next_multiple_of(page));
        // SAFETY: whole pages of the map, the last of which may extend past the media; no
        // references into it exist.
        let done = unsafe {
            let pages = base.add(from) as usize..base.add(from) as usize + (to - from);
            guard::guarded(pages, || copy(base.add(at)))
        };
        if !done {
            self.remap_pages(from, to - from);
        }
        done
    }

    /// Maps the file's pages again where the guard has placed zero pages.
    #[cold]
    fn remap_pages(&self, from: usize, len: usize) {
        let Some(file) = self.fd() else { return };
        // SAFETY: the pages are this map's, and are mapped to the file again. No references into
        // them exist.
        let mapped = unsafe {
            libc::mmap(
                self.map.as_mut_ptr().add(from).cast(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_FIXED,
                file.as_raw_fd(),
                from as libc::off_t,
            )
        };
        assert!(mapped != libc::MAP_FAILED, "a page of the media is lost");
    }

    /// Reads without the map: this allocates nothing for holes, and reports errors.
    #[cold]
    fn read_file(&self, addr: u64, out: &mut [u8]) -> bool {
        let mut have = 0;
        while let (Some(file), true) = (self.fd(), have < out.len()) {
            match rustix::io::pread(file, &mut out[have..], addr + have as u64) {
                Err(Errno::INTR) => {}
                Ok(0) | Err(_) => break,
                Ok(more) => have += more,
            }
        }
        have == out.len()
    }

    /// Writes without the map, page by page: the kernel completes the copy of a page even if the
    /// process is killed.
    fn write_file(&self, addr: u64, data: &[u8]) -> bool {
        let Some(file) = self.fd() else {
            return false;
        };
        let (mut at, mut left) = (addr, data);
        while !left.is_empty() {
            let room = (PAGE - at % PAGE) as usize;
            let (page, rest) = left.split_at(room.min(left.len()));
            // Past the end of a truncated file, a write would extend it.
            //
            // SAFETY: the byte is within the media.
            let there = self.copy_guarded(at as usize, 1, |from| unsafe {
                from.read_volatile();
            });
            let write = || rustix::io::retry_on_intr(|| rustix::io::pwrite(file, page, at));
            if !there || write() != Ok(page.len()) {
                return false;
            }
            (at, left) = (at + page.len() as u64, rest);
        }
        true
    }

    /// Whether the range reads as zeros, without allocating space.
    #[cold]
    fn reads_zero(&self, addr: u64, len: usize) -> bool {
        let mut bytes = vec![1; len];
        self.read_file(addr, &mut bytes) && bytes.iter().all(|&byte| byte == 0)
    }

    /// Counts a failed write and returns false. With a journal it is the last write, which is
    /// reported.
    #[cold]
    fn stop_writes(&mut self, what: &str, addr: u64) -> bool {
        if !self.has_journal() {
            return self.record_failure(what, addr);
        }
        self.failures.fetch_add(1, Ordering::Relaxed);
        if !std::mem::replace(&mut self.stopped, true) {
            self.failing.set(0..u64::MAX);
            self.report_failure(
                what,
                addr,
                "As after a loss of power nothing is read or written \
                from now on: make room, and open the file anew",
            );
        }
        false
    }

    /// Counts a failed access, reports the first one, and returns false.
    #[cold]
    fn record_failure(&self, what: &str, addr: u64) -> bool {
        if self.failures.fetch_add(1, Ordering::Relaxed) == 0 {
            self.report_failure(
                what,
                addr,
                "The device answers with errors; further ones are counted",
            );
        }
        false
    }

    fn report_failure(&self, what: &str, addr: u64, then: &str) {
        let name = match &self.store {
            Backing::File { path, .. } => format!("media file {}", escape_controls(path.display())),
            _ => "media in memory".into(),
        };
        eprintln!("{name}: can't {what} at {addr:#x}: is the disk full? {then}");
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.store {
            Backing::Memory => None,
            Backing::Shared(file) => Some(file.as_fd()),
            Backing::File { file, .. } => Some(file.as_fd()),
        }
    }

    /// Flushes everything written to the disk; does nothing for media in memory.
    pub fn flush(&self) -> Result<(), MediaError> {
        let Backing::File { path, .. } = &self.store else {
            return Ok(());
        };
        self.map.flush().map_err(|source| MediaError::Io {
            path: path.clone(),
            action: "flush it",
            source,
        })
    }

    /// The number of the `len` bytes from `addr` that are within the media.
    fn bytes_within(&self, addr: u64, len: usize) -> usize {
        self.size().saturating_sub(addr).min(len as u64) as usize
    }
}

impl Drop for Media {
    fn drop(&mut self) {
        let mut maps = MAPS.lock().unwrap_or_else(PoisonError::into_inner);
        let own = self.map.as_ptr() as usize;
        maps.retain(|&(at, _)| at != own);
        drop(maps);
        // A caller that needs the error calls `flush` itself.
        let _ = self.flush();
        if let (Backing::File { file, .. }, Some(journal)) = (&self.store, &self.journal) {
            if journal.is_empty() {
                let _ = file.set_len(self.size());
            }
        }
        // Closing the file is not enough: a forked process may have the same open file.
        if let Backing::File { file, .. } = &self.store {
            let _ = flock(file, FlockOperation::Unlock);
        }
    }
}

/// Refuses sizes that no device can have.
fn check_size(len: u64) -> Result<(), MediaError> {
    if len == 0 || len % 64 != 0 {
        return Err(MediaError::Size(len));
    }
    Ok(())
}

/// Where symbolic links lead to, one after the other; the kernel follows no more of them.
fn resolve_links(mut path: PathBuf) -> PathBuf {
    for _ in 0..40 {
        let Ok(link) = std::fs::read_link(&path) else {
            break;
        };
        path = path.parent().unwrap_or(Path::new("")).join(link);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn matches_a_vector(mut media: Media) {
        let len = media.size() as usize;
        let mut model = vec![0u8; len];
        let mut random = Random::new(3);
        for _ in 0..3000 {
            let at = random.below(len as u64 + 100) as usize;
            let limit = if random.below(50) == 0 { 200_000 } else { 200 };
            let n = random.below(limit) as usize;
            let visible = len.saturating_sub(at).min(n);
            match random.below(5) {
                4 => {
                    media.zero(at as u64, n as u64);
                    model[at.min(len)..at.min(len) + visible].fill(0);
                }
                0 => {
                    let data: Vec<u8> = (0..n).map(|_| random.next() as u8).collect();
                    media.write(at as u64, &data);
                    model[at.min(len)..at.min(len) + visible].copy_from_slice(&data[..visible]);
                }
                1 => {
                    let mut data = vec![0xEE; n];
                    media.read(at as u64, &mut data);
                    assert_eq!(data[..visible], model[at.min(len)..at.min(len) + visible]);
                    assert!(data[visible..].iter().all(|&b| b == 0));
                }
                2 => {
                    let enables = if random.below(2) == 0 {
                        u64::MAX
                    } else {
                        random.next()
                    };
                    let data: [u8; 64] = std::array::from_fn(|_| random.next() as u8);
                    media.write_line(at as u64, &data, enables);
                    let line = at & !63;
                    if line < len {
                        (0..64)
                            .filter(|i| enables >> i & 1 != 0)
                            .for_each(|i| model[line + i] = data[i]);
                    }
                }
                _ => {
                    let line = at & !63;
                    let expected = if line < len {
                        &model[line..line + 64]
                    } else {
                        &[0; 64]
                    };
                    assert_eq!(media.read_line(at as u64).unwrap(), expected);
                }
            }
        }
        let mut all = vec![0; len];
        media.read(0, &mut all);
        assert!(all == model);
    }

    #[test]
    fn media_in_memory_match_a_vector() {
        matches_a_vector(Media::memory(300 << 10).unwrap());
    }

    #[test]
    fn media_in_shared_memory_match_a_vector() {
        matches_a_vector(Media::shared(300 << 10).unwrap());
    }

    #[test]
    fn media_in_shared_memory_are_shared_and_sealed() {
        let mut media = Media::shared(1 << 20).unwrap();
        let file = media.shared_file().unwrap().try_clone_to_owned().unwrap();
        assert!(ftruncate(&file, 4096).is_err());
        // SAFETY: nobody else writes meanwhile.
        let mut other = unsafe { MmapOptions::new().map_mut(&file) }.unwrap();
        media.write(4095, b"ab");
        assert_eq!(&other[4095..4097], b"ab");
        other[(1 << 20) - 1] = 9;
        assert_eq!(media.read_line((1 << 20) - 64).unwrap()[63], 9);
        assert!(Media::memory(4096).unwrap().shared_file().is_none());
    }

    #[test]
    fn media_in_a_file_match_a_vector() {
        let dir = tempfile::tempdir().unwrap();
        matches_a_vector(Media::file(&dir.path().join("m"), 300 << 10).unwrap());
    }

    #[test]
    fn media_file_survives_and_stays_sparse() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("media");
        let mut media = Media::file(&path, 1 << 30).unwrap();
        media.write((1 << 30) - 5, b"alive");
        media.flush().unwrap();
        drop(media);
        let meta = std::fs::metadata(&path).unwrap();
        assert!(meta.len() == 1 << 30 && meta.blocks() * 512 < 1 << 20);
        let media = Media::file(&path, 1 << 30).unwrap();
        let mut back = [0; 5];
        media.read((1 << 30) - 5, &mut back);
        assert_eq!(&back, b"alive");
    }

    #[test]
    fn media_file_is_locked_under_all_of_its_names() {
        let dir = tempfile::tempdir().unwrap();
        let names = ["m", "hard", "soft"].map(|name| dir.path().join(name));
        let mut media = Media::file(&names[0], 4096).unwrap();
        std::fs::hard_link(&names[0], &names[1]).unwrap();
        std::os::unix::fs::symlink(&names[0], &names[2]).unwrap();
        for name in &names {
            let error = Media::file(name, 4096).err().unwrap().to_string();
            assert!(error.contains(&name.display().to_string()), "{error}");
            assert!(error.contains("another device has it"), "{error}");
        }
        media.write(0, b"mine");
        assert_eq!(
            std::fs::read(&names[1]).unwrap()[..4],
            *b"mine",
            "who reads needs no lock"
        );
        drop(media);
        for name in &names {
            let mut back = [0; 4];
            Media::file(name, 4096).unwrap().read(0, &mut back);
            assert_eq!(&back, b"mine");
        }
    }

    #[test]
    fn media_file_is_created_through_symbolic_links() {
        let dir = tempfile::tempdir().unwrap();
        let [far, near, file] = ["far", "near", "sub/m"].map(|name| dir.path().join(name));
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        std::os::unix::fs::symlink(&near, &far).unwrap();
        std::os::unix::fs::symlink("sub/m", &near).unwrap();
        assert!(Media::file(&far, 1 << 63).is_err());
        assert!(!file.exists(), "no incomplete file is left");
        assert!(Media::file(&far, 4096).unwrap().write(0, b"new"));
        assert!(far.is_symlink() && near.is_symlink());
        assert_eq!(std::fs::read(&file).unwrap()[..3], *b"new");
        let again = dir.path().join("again");
        std::os::unix::fs::symlink("no/such/m", &again).unwrap();
        let error = Media::file(&again, 4096).err().unwrap().to_string();
        let wanted = format!("media file {}: can't create it: No such", again.display());
        assert!(error.starts_with(&wanted), "{error}");
        std::os::unix::fs::symlink("round", dir.path().join("round")).unwrap();
        assert!(Media::file(&dir.path().join("round"), 4096).is_err());
    }

    #[test]
    fn media_file_without_pages_fails_only_these_accesses() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m");
        let mut media = Media::file(&path, 64 << 10).unwrap();
        assert!(media.write(0, &[5; 64 << 10]));
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(32 << 10).unwrap();
        let gone = 40 << 10;
        assert!(
            !media.write_line(gone, &[1; 64], u64::MAX) && !media.write_line(gone, &[1; 64], 1)
        );
        assert!(!media.write(gone, &[1; 9000]) && media.read_line(gone).is_none());
        assert!(!media.read((32 << 10) - 10, &mut [0; 20]) && !media.zero(gone + 7, 100));
        assert_eq!(media.failures(), 6);
        let mut back = [0; 32 << 10];
        assert!(media.read(0, &mut back) && back == [5; 32 << 10]);
        assert!(media.write_line(0, &[6; 64], u64::MAX));
        // With room again, all of it works, and what failed has changed nothing.
        file.set_len(64 << 10).unwrap();
        assert_eq!(media.read_line(gone), Some([0; 64]));
        assert!(media.write_line(gone, &[7; 64], u64::MAX) && media.zero(gone + 64, 4096));
        assert_eq!(media.read_line(gone), Some([7; 64]));
        media.flush().unwrap();
        drop(media);
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes[..64] == [6; 64] && bytes[64..32 << 10].iter().all(|&b| b == 5));
        let at = gone as usize;
        assert!(bytes[at..at + 64] == [7; 64] && bytes[32 << 10..at].iter().all(|&b| b == 0));
    }

    #[test]
    fn media_zeroed_file_pages_become_holes() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("media");
        let mut media = Media::file(&path, 64 << 20).unwrap();
        media.write(0, &vec![7; 4 << 20]);
        media.flush().unwrap();
        let used = || std::fs::metadata(&path).unwrap().blocks() * 512;
        assert!(used() >= 4 << 20);
        media.zero(100, 64 << 20);
        media.flush().unwrap();
        assert!(used() < 1 << 20, "{} bytes on disk", used());
        let mut back = [1; 200];
        media.read(0, &mut back);
        assert!(back[..100] == [7; 100] && back[100..] == [0; 100]);
    }

    /// Files in memory give a page to whoever looks at a hole.
    #[test]
    fn media_zeroed_tmpfs_pages_become_holes() {
        use std::os::unix::fs::MetadataExt;
        let Ok(dir) = tempfile::tempdir_in("/dev/shm") else {
            eprintln!("skipped: no /dev/shm");
            return;
        };
        let path = dir.path().join("media");
        let mut media = Media::file(&path, 8 << 20).unwrap();
        let used = || std::fs::metadata(&path).unwrap().blocks() * 512;
        assert!(media.zero(0, 8 << 20) && used() == 0, "{}", used());
        for at in [0, 20480, 24576, 4 << 20] {
            assert!(media.write(at, &[7; 5000]));
        }
        assert!(media.zero(0, 8 << 20) && used() == 0, "{}", used());
        assert_eq!(media.read_line(20480), Some([0; 64]));
    }

    #[test]
    fn media_resident_bytes_are_counted() {
        // Other tests have media, too: much less than this.
        let most = 64 << 20;
        let before = Media::resident();
        let mut media = Media::memory(1 << 30).unwrap();
        media.write(4096, &vec![7; 256 << 20]);
        let taken = Media::resident() as i64 - before as i64;
        assert!((taken - (256 << 20)).abs() < most, "{taken}");
        drop(media);
        assert!(Media::resident() < before + most as u64);
    }

    #[test]
    fn media_of_huge_size_cost_little_memory() {
        let mut media = Media::memory(1 << 40).unwrap();
        media.write_line((1 << 40) - 64, &[7; 64], u64::MAX);
        assert_eq!(media.read_line((1 << 40) - 1), Some([7; 64]));
    }

    #[test]
    fn media_file_created_concurrently_has_one_owner() {
        let dir = tempfile::tempdir().unwrap();
        for round in 0..200 {
            let path = dir.path().join(round.to_string());
            let start = std::sync::Barrier::new(4);
            let open = || {
                start.wait();
                Media::file(&path, 4096)
            };
            let found: Vec<_> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
                threads.into_iter().map(|t| t.join().unwrap()).collect()
            });
            assert_eq!(found.iter().filter(|f| f.is_ok()).count(), 1);
            for error in found.iter().filter_map(|f| f.as_ref().err()) {
                assert!(matches!(error, MediaError::InUse(_)), "{error}");
            }
        }
    }

    #[test]
    fn media_errors_say_what_is_wrong() {
        let dir = tempfile::tempdir().unwrap();
        let message = |path: &Path, len| {
            Media::file(path, len)
                .err()
                .map(|e| e.to_string())
                .unwrap_or_default()
        };
        let path = dir.path().join("small");
        std::fs::write(&path, [0; 100]).unwrap();
        assert!(message(&path, 128).contains("has 100 bytes, the design wants 128"));
        assert!(message(&dir.path().join("none/m"), 128).contains("directory doesn't exist"));
        assert!(message(dir.path(), 128).contains("not a regular file"));
        let absent = dir.path().join("absent");
        assert!(message(&absent, 100).contains("multiple of 64"));
        assert!(message(&absent, 1 << 63).contains("can't"));
        assert!(!absent.exists(), "no incomplete file is left");
        assert!(matches!(Media::memory(0), Err(MediaError::Size(0))));
    }
}
