//! What the device stores: in memory, or in a file that survives a restart.
//!
//! Both start zeroed and are sparse. Timing is none of the media's business: see [`crate::dram`].

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use memmap2::{Advice, MmapMut, MmapOptions, UncheckedAdvice};
use rustix::fs::{
    fcntl_add_seals, flock, ftruncate, memfd_create, FlockOperation, MemfdFlags, SealFlags,
};
use rustix::io::Errno;

/// What becomes a hole at a time: a page of the machine, and a granule's least.
const PAGE: u64 = 4096;

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
            MediaError::Size(size) => write!(f, "media of {size} bytes: the size must be a positive multiple of 64"),
            MediaError::Mismatch { path, found, wanted } => write!(
                f,
                "media file {} has {found} bytes, the design wants {wanted}: name another file or change the size",
                path.display()
            ),
            MediaError::NoDirectory(path) => {
                write!(f, "media file {}: its directory doesn't exist", path.display())
            }
            MediaError::NotAFile(path) => write!(f, "media file {}: not a regular file", path.display()),
            MediaError::InUse(path) => write!(
                f,
                "media file {}: another device has it, here or in another process; end that one or name another file",
                path.display()
            ),
            MediaError::Memory { len, source } => {
                write!(f, "media of {len} bytes in memory: {source}")
            }
            MediaError::Io { path, action, source } => {
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
enum Store {
    Memory,
    /// Memory that others can map, too.
    Shared(OwnedFd),
    /// The file is open, and locked, for as long as the media live.
    File {
        path: PathBuf,
        _lock: File,
    },
}

/// Byte-addressable storage of a fixed size.
///
/// Accesses beyond the end read zeros and write nothing: whoever decodes addresses answers for errors.
pub struct Media {
    map: MmapMut,
    store: Store,
}

impl Media {
    /// Zeroed media in memory. They cost memory only where they were written.
    pub fn memory(len: u64) -> Result<Media, MediaError> {
        check_size(len)?;
        let map = MmapOptions::new()
            .len(len as usize)
            .no_reserve_swap()
            .map_anon()
            .map_err(|source| MediaError::Memory { len, source })?;
        // Huge pages would make a single byte cost 2 MiB. A kernel without them refuses the advice, and needs none.
        let _ = map.advise(Advice::NoHugePage);
        let store = Store::Memory;
        Ok(Media { map, store })
    }

    /// Zeroed media in memory that other processes can map, by [`Media::shared_file`]. They cost memory only where they
    /// were touched.
    pub fn shared(len: u64) -> Result<Media, MediaError> {
        check_size(len)?;
        let fail = |source: io::Error| MediaError::Memory { len, source };
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("nearside-media", flags).map_err(|e| fail(e.into()))?;
        ftruncate(&file, len).map_err(|e| fail(e.into()))?;
        // Nobody who maps it can take pages away under us.
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        fcntl_add_seals(&file, seals).map_err(|e| fail(e.into()))?;
        // SAFETY: the file can't shrink. Others may change its bytes at any moment, as devices' memories do; they are only
        // ever copied, never believed.
        let map = unsafe { MmapOptions::new().len(len as usize).map_mut(&file) }.map_err(fail)?;
        let store = Store::Shared(file);
        Ok(Media { map, store })
    }

    /// Media in the file `path`, created sparse and zeroed if it doesn't exist. What is written survives this process.
    ///
    /// The file is locked (`flock`): no two devices, of whatever processes, have one at a time. Who only reads it needs no lock.
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
        let file = match std::fs::metadata(path) {
            Ok(meta) if !meta.is_file() => return Err(MediaError::NotAFile(path.into())),
            Ok(_) => OpenOptions::new()
                .read(true)
                .write(true)
                .open(path)
                .map_err(fail("open it for reading and writing"))?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => create(path, len)?,
            Err(e) => return Err(fail("look at it")(e)),
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(MediaError::InUse(path.into())),
            Err(e) => return Err(fail("lock it")(e.into())),
        }
        let found = file.metadata().map_err(fail("look at it"))?.len();
        if found != len {
            return Err(MediaError::Mismatch {
                path: path.into(),
                found,
                wanted: len,
            });
        }
        // SAFETY: the mapping is shared with the file; truncating the file from outside during a run is the user's fault
        // and ends in a bus error, not in a wrong reference.
        let map = unsafe { MmapMut::map_mut(&file) }.map_err(fail("map it"))?;
        let store = Store::File {
            path: path.into(),
            _lock: file,
        };
        Ok(Media { map, store })
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.map.len() as u64
    }

    /// What others can map to share these media; only for [`Media::shared`].
    pub fn shared_file(&self) -> Option<BorrowedFd<'_>> {
        match &self.store {
            Store::Shared(file) => Some(file.as_fd()),
            _ => None,
        }
    }

    /// Reads from `addr`.
    pub fn read(&self, addr: u64, out: &mut [u8]) {
        let inside = self.inside(addr, out.len());
        out[inside..].fill(0);
        if inside > 0 {
            let at = addr as usize;
            out[..inside].copy_from_slice(&self.map[at..at + inside]);
        }
    }

    /// Writes at `addr`.
    pub fn write(&mut self, addr: u64, data: &[u8]) {
        let inside = self.inside(addr, data.len());
        if inside > 0 {
            let at = addr as usize;
            self.map[at..at + inside].copy_from_slice(&data[..inside]);
        }
    }

    /// The aligned 64-byte line at `addr` (low 6 bits ignored).
    #[inline]
    pub fn read_line(&self, addr: u64) -> [u8; 64] {
        let mut line = [0; 64];
        let addr = (addr & !63) as usize;
        if let Some(bytes) = self.map.get(addr..addr.wrapping_add(64)) {
            line.copy_from_slice(bytes);
        }
        line
    }

    /// Writes those bytes of the aligned 64-byte line at `addr` (low 6 bits ignored) whose bit in `enables` is set.
    #[inline]
    pub fn write_line(&mut self, addr: u64, data: &[u8; 64], enables: u64) {
        let addr = (addr & !63) as usize;
        if enables == 0 {
            return;
        }
        let Some(line) = self.map.get_mut(addr..addr.wrapping_add(64)) else {
            return;
        };
        if enables == u64::MAX {
            line.copy_from_slice(data);
        } else {
            for (i, byte) in line.iter_mut().enumerate() {
                if enables >> i & 1 != 0 {
                    *byte = data[i];
                }
            }
        }
    }

    /// Makes `len` bytes from `addr` zeros. Whole pages become holes where the media can have some: they cost neither memory
    /// nor disk then.
    pub fn zero(&mut self, addr: u64, len: u64) {
        let end = addr.saturating_add(len).min(self.size());
        let mut at = addr;
        while at < end {
            let next = (at - at % PAGE).saturating_add(PAGE).min(end);
            let (from, to) = (at as usize, next as usize);
            if to - from < PAGE as usize || !self.punch(from) {
                self.map[from..to].fill(0);
            }
            at = next;
        }
    }

    /// Makes the page at `at` a hole, unless it is one; false if that can't be had.
    fn punch(&mut self, at: usize) -> bool {
        let page = PAGE as usize;
        let advice = match &self.store {
            Store::Memory => UncheckedAdvice::DontNeed,
            Store::Shared(_) => UncheckedAdvice::Remove,
            // A look is cheaper than the file system's work, and makes no page of a hole.
            Store::File { .. } if self.map[at..at + page].iter().all(|&byte| byte == 0) => {
                return true
            }
            Store::File { .. } => UncheckedAdvice::Remove,
        };
        // SAFETY: nobody holds a reference into the map across calls; the page's bytes become zeros, which is what both kinds of
        // advice do to the mapping that each is given for (private and anonymous; shared with a file).
        unsafe { self.map.unchecked_advise_range(advice, at, page) }.is_ok()
    }

    /// Brings everything written to the disk; nothing to do for media in memory.
    pub fn flush(&self) -> Result<(), MediaError> {
        let Store::File { path, .. } = &self.store else {
            return Ok(());
        };
        self.map.flush().map_err(|source| MediaError::Io {
            path: path.clone(),
            action: "flush it",
            source,
        })
    }

    /// How many of `len` bytes from `addr` are within the media.
    fn inside(&self, addr: u64, len: usize) -> usize {
        self.size().saturating_sub(addr).min(len as u64) as usize
    }
}

impl Drop for Media {
    fn drop(&mut self) {
        // Nobody is left to hear of an error; whoever needs to know calls `flush`.
        let _ = self.flush();
    }
}

/// Refuses sizes that no device can have.
fn check_size(len: u64) -> Result<(), MediaError> {
    if len == 0 || len % 64 != 0 {
        return Err(MediaError::Size(len));
    }
    Ok(())
}

/// A new file of `len` zero bytes; nothing is left behind when it can't be had in full.
fn create(path: &Path, len: u64) -> Result<File, MediaError> {
    let fail = |action| {
        move |source| MediaError::Io {
            path: path.into(),
            action,
            source,
        }
    };
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(fail("create it"))?;
    if let Err(source) = file.set_len(len) {
        let _ = std::fs::remove_file(path);
        return Err(fail("give it its size")(source));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// A directory of the test's own, removed at its end.
    struct Dir(PathBuf);
    impl Dir {
        fn new(name: &str) -> Dir {
            let path =
                std::env::temp_dir().join(format!("nearside-media-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir_all(&path).unwrap();
            Dir(path)
        }
    }
    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

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
                    assert_eq!(media.read_line(at as u64), expected);
                }
            }
        }
        let mut all = vec![0; len];
        media.read(0, &mut all);
        assert!(all == model);
    }

    #[test]
    fn memory_matches_a_vector() {
        matches_a_vector(Media::memory(300 << 10).unwrap());
    }

    #[test]
    fn shared_memory_matches_a_vector() {
        matches_a_vector(Media::shared(300 << 10).unwrap());
    }

    #[test]
    fn shared_memory_is_shared_and_can_not_be_cut() {
        let mut media = Media::shared(1 << 20).unwrap();
        let file = media.shared_file().unwrap().try_clone_to_owned().unwrap();
        assert!(ftruncate(&file, 4096).is_err());
        // SAFETY: nobody else writes meanwhile.
        let mut other = unsafe { MmapOptions::new().map_mut(&file) }.unwrap();
        media.write(4095, b"ab");
        assert_eq!(&other[4095..4097], b"ab");
        other[(1 << 20) - 1] = 9;
        assert_eq!(media.read_line((1 << 20) - 64)[63], 9);
        assert!(Media::memory(4096).unwrap().shared_file().is_none());
    }

    #[test]
    fn file_matches_a_vector() {
        let dir = Dir::new("vector");
        matches_a_vector(Media::file(&dir.0.join("m"), 300 << 10).unwrap());
    }

    #[test]
    fn file_survives_and_stays_sparse() {
        use std::os::unix::fs::MetadataExt;
        let dir = Dir::new("survives");
        let path = dir.0.join("media");
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
    fn a_file_belongs_to_one_device_under_all_of_its_names() {
        let dir = Dir::new("lock");
        let names = ["m", "hard", "soft"].map(|name| dir.0.join(name));
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
    fn zeroed_pages_of_a_file_are_holes_again() {
        use std::os::unix::fs::MetadataExt;
        let dir = Dir::new("holes");
        let path = dir.0.join("media");
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

    #[test]
    fn huge_memory_media_cost_little() {
        let mut media = Media::memory(1 << 40).unwrap();
        media.write_line((1 << 40) - 64, &[7; 64], u64::MAX);
        assert_eq!(media.read_line((1 << 40) - 1), [7; 64]);
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let dir = Dir::new("errors");
        let message = |path: &Path, len| {
            Media::file(path, len)
                .err()
                .map(|e| e.to_string())
                .unwrap_or_default()
        };
        let path = dir.0.join("small");
        std::fs::write(&path, [0; 100]).unwrap();
        assert!(message(&path, 128).contains("has 100 bytes, the design wants 128"));
        assert!(message(&dir.0.join("none/m"), 128).contains("directory doesn't exist"));
        assert!(message(&dir.0, 128).contains("not a regular file"));
        let absent = dir.0.join("absent");
        assert!(message(&absent, 100).contains("multiple of 64"));
        assert!(message(&absent, 1 << 63).contains("can't"));
        assert!(!absent.exists(), "nothing half-made stays behind");
        assert!(matches!(Media::memory(0), Err(MediaError::Size(0))));
    }
}
