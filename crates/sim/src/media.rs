//! What the device stores: in memory, or in a file that survives a restart.
//!
//! Both start zeroed and are sparse. Timing is none of the media's business: see [`crate::dram`].
//!
//! A file costs disk where it is written. What then finds no room, or can't be read, fails and
//! changes nothing; later accesses try again.

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

use crate::fork::SharedResource;
use crate::journal::{self, Journal};
use crate::{guard, prefetch};

/// What becomes a hole at a time: a page of the machine, and a granule's least.
const PAGE: u64 = 4096;
/// What is kept at a time of what a journal may have to bring back.
const UNDO_CHUNK: u64 = 64 << 10;
static ZEROS: [u8; PAGE as usize] = [0; PAGE as usize];
/// Where the maps of all media of this process are: address and bytes.
static MAPS: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// Why media can't be opened or flushed; one line, naming the file.
#[derive(Debug)]
pub enum MediaError {
    /// The size is zero or not a multiple of 64 bytes.
    Size(u64),
    /// The file exists with another size.
    Mismatch {
        /// The file.
        path: PathBuf,
        /// Its size.
        found: u64,
        /// The size that the design asks for.
        wanted: u64,
    },
    /// The directory of the file doesn't exist.
    NoDirectory(PathBuf),
    /// The path isn't a regular file.
    NotAFile(PathBuf),
    /// Another device has the file, under whatever name.
    InUse(PathBuf),
    /// The operating system has no memory of that size to give.
    Memory {
        /// The size.
        len: u64,
        /// Its answer.
        source: io::Error,
    },
    /// The operating system refuses.
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Its answer.
        source: io::Error,
    },
}

impl std::fmt::Display for MediaError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            MediaError::Size(size) => write!(
                f,
                "media of {size} bytes: the size must be a \
                positive multiple of 64"
            ),
            MediaError::Mismatch {
                path,
                found,
                wanted,
            } => write!(
                f,
                "media file {} has {found} bytes, the design wants {wanted}: name another file or \
                    change the size",
                path.display()
            ),
            MediaError::NoDirectory(path) => {
                write!(
                    f,
                    "media file {}: its directory doesn't exist",
                    path.display()
                )
            }
            MediaError::NotAFile(path) => {
                write!(f, "media file {}: not a regular file", path.display())
            }
            MediaError::InUse(path) => write!(
                f,
                "media file {}: another device has it, here or in another process; end that one \
                    or name another file",
                path.display()
            ),
            MediaError::Memory { len, source } => {
                write!(f, "media of {len} bytes in memory: {source}")
            }
            MediaError::Io {
                path,
                action,
                source,
            } => {
                write!(f, "media file {}: can't {action}: {source}", path.display())
            }
        }
    }
}

impl std::error::Error for MediaError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            MediaError::Io { source, .. } | MediaError::Memory { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Where the bytes behind the map are.
enum Backing {
    Memory,
    /// Memory that others can map, too.
    Shared(OwnedFd),
    /// The file is open, and locked, for as long as the media live.
    File {
        path: PathBuf,
        file: File,
    },
}

/// Bytes of media that can be neither read nor written for now: for tests of what a device does
/// then.
#[derive(Clone, Debug, Default)]
pub struct FailingRange(Arc<[AtomicU64; 2]>);

impl FailingRange {
    /// Those of a range and no others; none of an empty one.
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
/// Accesses beyond the end read zeros and write nothing: whoever decodes addresses answers for
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
            Backing::File { path, .. } => Some(format!("media file {}", path.display())),
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

    /// Which bytes can be neither read nor written for now, to be changed from outside.
    pub fn failing_range(&self) -> FailingRange {
        self.failing.clone()
    }

    /// Bytes of all media of this process that are in memory now: what of a process's memory is its
    /// devices' storage.
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

    /// Zeroed media in memory. They cost memory only where they were written.
    pub fn memory(len: u64) -> Result<Media, MediaError> {
        check_size(len)?;
        let map = MmapOptions::new()
            .len(len as usize)
            .no_reserve_swap()
            .map_anon()
            .map_err(|source| MediaError::Memory { len, source })?;
        // Huge pages would make a single byte cost 2 MiB. A kernel without them refuses the advice,
        // and needs none.
        let _ = map.advise(Advice::NoHugePage);
        let store = Backing::Memory;
        Ok(Media::new(map, store))
    }

    /// Zeroed media in memory that other processes can map, by [`Media::shared_file`]. They cost
    /// memory only where they were touched.
    pub fn shared(len: u64) -> Result<Media, MediaError> {
        check_size(len)?;
        let fail = |source: io::Error| MediaError::Memory { len, source };
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("nearside-media", flags).map_err(|e| fail(e.into()))?;
        ftruncate(&file, len).map_err(|e| fail(e.into()))?;
        // Nobody who maps it can take pages away under us.
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        fcntl_add_seals(&file, seals).map_err(|e| fail(e.into()))?;
        // SAFETY: the file can't shrink. Others may change its bytes at any moment, as devices'
        // memories do; they are only ever copied, never believed.
        let map = unsafe { MmapOptions::new().len(len as usize).map_mut(&file) }.map_err(fail)?;
        let store = Backing::Shared(file);
        Ok(Media::new(map, store))
    }

    /// Media in the file `path`, created sparse and zeroed if it doesn't exist or is empty. What is
    /// written survives this process.
    ///
    /// If the process that had it last was killed while the media had a journal, they are brought
    /// to the state that [`Media::begin_journal`] says.
    ///
    /// The file is locked (`flock`): no two devices, of whatever processes, have one at a time. Who
    /// only reads it needs no lock.
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
                // A link to a file that isn't there yet stays, and names the file. If another
                // device has just made it, whoever gets the lock has it.
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
        // ever copied, under a guard.
        let map = unsafe { MmapMut::map_mut(&file) }.map_err(fail("map it"))?;
        let store = Backing::File {
            path: path.into(),
            file,
        };
        Ok(Media::new(map, store))
    }

    /// From now on what is written to a file stays only with the next [`Media::commit`], if the
    /// process ends however it does: who opens the file next finds the media as they were then, and
    /// of at most `most` bytes what was to be written last. Media in memory end with the process;
    /// nothing is done for them.
    ///
    /// **A write that fails is the last one**: what was written before it and behind it would be of
    /// no moment that a loss of power could have left. From then on nothing can be read or written,
    /// and the file stays as it is; who opens it next finds what was settled.
    ///
    /// The journal stands behind the media in the file, which is longer until these end, or are
    /// opened again.
    pub fn begin_journal(&mut self, most: usize) -> Result<(), MediaError> {
        if let (Backing::File { path, file }, None) = (&self.store, &self.journal) {
            let journal = Journal::new(file, self.size(), most);
            self.journal = Some(journal.map_err(|source| MediaError::Io {
                path: path.clone(),
                action: "make a journal behind its end",
                source,
            })?);
        }
        Ok(())
    }

    /// They are in a file.
    pub fn is_file(&self) -> bool {
        matches!(self.store, Backing::File { .. })
    }

    /// There is a journal: see [`Media::begin_journal`].
    pub fn has_journal(&self) -> bool {
        self.journal.is_some()
    }

    /// All that was written so far stays, and if the process ends without another call, whoever
    /// opens the file next finds `last` at `addr`, too. False: somebody has cut the file, or a
    /// write has failed before. Without a journal nothing is done.
    pub fn commit(&mut self, addr: u64, last: &[u8]) -> bool {
        let (Backing::File { file, .. }, Some(journal)) = (&self.store, &mut self.journal) else {
            return true;
        };
        !self.stopped
            && (journal.commit(file, addr, last)
                || self.record_failure("settle what was written", addr))
    }

    /// Bytes that would be taken back if the process ended now.
    pub fn uncommitted_bytes(&self) -> u64 {
        self.journal.as_ref().map_or(0, Journal::undo_bytes)
    }

    /// Keeps what is about to be overwritten, if there is a journal. False: there is no room for
    /// it.
    fn log_undo(&mut self, addr: u64, len: u64) -> bool {
        let Some(mut journal) = self.journal.take() else {
            return true;
        };
        let end = addr + len;
        let kept = (addr..end).step_by(UNDO_CHUNK as usize).all(|at| {
            let bytes = (end - at).min(UNDO_CHUNK) as usize;
            let old = journal.begin_undo(at, bytes);
            // SAFETY: so many bytes are within the media.
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

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.map.len() as u64
    }

    /// What others can map to share these media; only for [`Media::shared`].
    pub fn shared_file(&self) -> Option<BorrowedFd<'_>> {
        match &self.store {
            Backing::Shared(file) => Some(file.as_fd()),
            _ => None,
        }
    }

    /// Accesses that the file had no room for, or could not give.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Reads from `addr`. False: the file can't give it, and what was read means nothing.
    pub fn read(&self, addr: u64, out: &mut [u8]) -> bool {
        if self.failing.overlaps(addr, out.len() as u64) {
            return self.record_failure("read", addr);
        }
        let inside = self.bytes_within(addr, out.len());
        let (out, beyond) = out.split_at_mut(inside);
        beyond.fill(0);
        // SAFETY: so many bytes are within the media.
        let copy = |from: *mut u8| unsafe { from.copy_to_nonoverlapping(out.as_mut_ptr(), inside) };
        inside == 0
            || self.copy_guarded(addr as usize, inside, copy)
            || self.read_file(addr, out)
            || self.record_failure("read", addr)
    }

    /// Writes at `addr`. False: there is no room for it, and only a part is written, or nothing.
    ///
    /// What lies in a page of a file is written at once: nothing that ends the process leaves a
    /// part of it.
    pub fn write(&mut self, addr: u64, data: &[u8]) -> bool {
        if self.failing.overlaps(addr, data.len() as u64) {
            return self.record_failure("write", addr);
        }
        let inside = self.bytes_within(addr, data.len());
        if inside > 0 && matches!(self.store, Backing::File { .. }) {
            return self.log_undo(addr, inside as u64) && self.write_file(addr, &data[..inside])
                || self.stop_writes("write", addr);
        }
        // SAFETY: so many bytes are within the media.
        let copy = |to: *mut u8| unsafe { to.copy_from_nonoverlapping(data.as_ptr(), inside) };
        inside == 0
            || self.copy_guarded(addr as usize, inside, copy)
            || self.record_failure("write", addr)
    }

    /// The aligned 64-byte line at `addr` (low 6 bits ignored); `None` when the file can't give it.
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

    /// Writes those bytes of the aligned 64-byte line at `addr` (low 6 bits ignored) whose bit in
    /// `enables` is set. False: there is no room for them.
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

    /// A line of a file, whole.
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

    /// Tells the machine that `len` bytes from `addr` are wanted soon: their way from memory can
    /// begin. What has never been touched, or would have to come from a disk, stays where it is.
    #[inline]
    pub fn prefetch(&self, addr: u64, len: usize) {
        let inside = self.bytes_within(addr, len);
        let from = addr as usize & !63;
        for at in (from..addr as usize + inside).step_by(64) {
            prefetch::line(self.map.as_ptr().wrapping_add(at));
        }
    }

    /// Makes `len` bytes from `addr` zeros. Whole pages become holes where the media can have some:
    /// they cost neither memory nor disk then. False: there is no room for some of the zeros.
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
        // Pages that are asked for together; where many can't be had, some may.
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
            // SAFETY: so many bytes are within the media.
            let fill = |to: *mut u8| unsafe { to.write_bytes(0, bytes) };
            done &= match self.store {
                Backing::File { .. } => self.write_file(at, &ZEROS[..bytes]),
                _ => self.copy_guarded(from, bytes, fill),
            } || self.reads_zero(at, bytes);
            at = next;
        }
        done || self.stop_writes("write", addr)
    }

    /// Keeps what is about to become zeros, if there is a journal; holes are zeros.
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

    /// Makes pages from `at` on holes, unless they are; how many of them, or `None` if that can't
    /// be had. In one go: the system's work for a page alone is most of what zeros cost.
    fn punch_holes(&mut self, at: usize, pages: u64) -> Option<u64> {
        let page = PAGE as usize;
        let mut some = pages;
        let advice = match &self.store {
            Backing::Memory => UncheckedAdvice::DontNeed,
            Backing::Shared(_) => UncheckedAdvice::Remove,
            Backing::File { .. } => {
                // To ask is cheaper than the file system's work. A look at the map would give a
                // hole of a tmpfs its memory.
                let (hole, as_many) = self.page_extent(at as u64, pages);
                some = as_many;
                if hole {
                    return Some(some);
                }
                UncheckedAdvice::Remove
            }
        };
        // SAFETY: nobody holds a reference into the map; the pages' bytes become zeros, which is
        // what both kinds of advice do to the mapping that each is given for (private and
        // anonymous; shared with a file).
        let advised = unsafe {
            self.map
                .unchecked_advise_range(advice, at, some as usize * page)
        };
        advised.is_ok().then_some(some)
    }

    /// Whether the page of the file at `at` is a hole, and how many pages from there on are the
    /// same, of so many.
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
            // A file system that can't tell.
            Err(_) => (false, pages),
        }
    }

    /// Runs a copy from or to the `len` bytes at `at`, which are within the media. False: a page
    /// wasn't to be had.
    #[inline]
    fn copy_guarded(&self, at: usize, len: usize, copy: impl FnOnce(*mut u8)) -> bool {
        let page = PAGE as usize;
        let base = self.map.as_mut_ptr();
        let (from, to) = (at - at % page, (at + len).next_multiple_of(page));
        // SAFETY: whole pages of the map, whose last one may go on behind the media; nobody holds a
        // reference into it.
        let done = unsafe {
            let pages = base.add(from) as usize..base.add(from) as usize + (to - from);
            guard::guarded(pages, || copy(base.add(at)))
        };
        if !done {
            self.remap_pages(from, to - from);
        }
        done
    }

    /// Brings the file's own pages back where the guard has put others.
    #[cold]
    fn remap_pages(&self, from: usize, len: usize) {
        let Some(file) = self.fd() else { return };
        // SAFETY: the pages are this map's, and become again what they were. Nobody holds
        // references into them.
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

    /// Reads past the map: what was never written takes no room on this way, and an error has a
    /// name.
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

    /// Writes past the map, page by page: the kernel ends a page's copy, whatever comes meanwhile.
    fn write_file(&self, addr: u64, data: &[u8]) -> bool {
        let Some(file) = self.fd() else {
            return false;
        };
        let (mut at, mut left) = (addr, data);
        while !left.is_empty() {
            let room = (PAGE - at % PAGE) as usize;
            let (page, rest) = left.split_at(room.min(left.len()));
            // Behind the end of a file that somebody has cut, a write would make it longer.
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

    /// Whether there are zeros, without taking room for them.
    #[cold]
    fn reads_zero(&self, addr: u64, len: usize) -> bool {
        let mut bytes = vec![1; len];
        self.read_file(addr, &mut bytes) && bytes.iter().all(|&byte| byte == 0)
    }

    /// Counts a write that failed, which is the last one where there is a journal, tells of that,
    /// and returns false.
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

    /// Counts an access that failed, tells of the first one, and returns false.
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
            Backing::File { path, .. } => format!("media file {}", path.display()),
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

    /// Brings everything written to the disk; nothing to do for media in memory.
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

    /// How many of `len` bytes from `addr` are within the media.
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
        // Nobody is left to hear of an error; whoever needs to know calls `flush`.
        let _ = self.flush();
        if let (Backing::File { file, .. }, Some(journal)) = (&self.store, &self.journal) {
            if journal.is_empty() {
                let _ = file.set_len(self.size());
            }
        }
        // Closing it would do, but for a process that was forked off and has the same open file.
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
        assert!(!file.exists(), "nothing half-made stays behind");
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
        assert!(!absent.exists(), "nothing half-made stays behind");
        assert!(matches!(Media::memory(0), Err(MediaError::Size(0))));
    }
}
