// SPDX-License-Identifier: Apache-2.0

//! The journal after the end of a media file, which a device with a persistence domain uses.
//!
//! Such a device holds in this process the data that it will write when its power fails. A killed
//! process is to cost no more than a loss of power. The file therefore always encodes a possible
//! state of the device: the media as of the last commit, and the final image. The final image is
//! what failing power would have written at that time. Later writes are undone on recovery.
//!
//! ```text
//! 0 .. len         the media
//! base             header page: magic, bytes of the media, bytes of a slot, the state word
//! base + 4096      two slots, used in turn, each with a final image: address, length,
//!                  CRC-32C of both and of the data; the data from offset 64 on
//! after the slots  undo entries since the last commit: address, length,
//!                  CRC-32C of both and of the data, 0; then the old data
//! ```
//!
//! `base` is the first multiple of 4096 at or after `len`. The state is one word, so it changes
//! atomically. Bits 1:0 are the valid slot, 0 for none. Bits 47:2 are the bytes of undo entries.
//! Bits 63:48 are the low half of the CRC-32C of the other six bytes.
//!
//! The kernel keeps the writes of a killed process in their order. Nothing is guaranteed for a
//! machine that loses its power.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

use crate::guard;

const PAGE: u64 = 4096;
const MAGIC: [u8; 8] = *b"NSJRNL\0\x02";
/// Offset of the state word in the header page.
const STATE: usize = 64;
/// Bytes of a slot before its data, and of the head of an undo entry.
const SLOT_HEAD: u64 = 64;
const ENTRY_HEAD: usize = 24;
/// Offset of the CRC in an undo entry.
const ENTRY_CRC: usize = 16;
/// Bits of the state word without its CRC.
const STATE_BITS: u32 = 48;
/// No device has a larger final image.
const MAX_SLOT_BYTES: u64 = 1 << 30;
/// Undo entries beyond this size return their disk space after a commit.
const MAX_UNDO_BYTES: u64 = 4 << 20;

/// The position of the journal's parts.
#[derive(Clone, Copy, Debug)]
struct JournalLayout {
    base: u64,
    slot: u64,
}

impl JournalLayout {
    fn new(len: u64, most: u64) -> JournalLayout {
        JournalLayout {
            base: len.next_multiple_of(PAGE),
            slot: (SLOT_HEAD + most).next_multiple_of(PAGE),
        }
    }

    fn entries(&self) -> u64 {
        self.base + PAGE + 2 * self.slot
    }
}

/// The journal of an open file.
pub(crate) struct Journal {
    layout: JournalLayout,
    /// The header and the slots.
    map: MmapRaw,
    slot: u64,
    /// Bytes of undo entries.
    undo_bytes: u64,
    entry: Vec<u8>,
}

fn read_u64(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// The state word: the valid slot, and the bytes of undo entries.
fn encode_state(slot: u64, undo_bytes: u64) -> u64 {
    let state = slot | undo_bytes << 2;
    let crc = crc32c::crc32c(&state.to_le_bytes()[..STATE_BITS as usize / 8]);
    state | u64::from(crc) << STATE_BITS
}

/// The CRC of a slot: address, length, data.
fn slot_crc(head: &[u8], last: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&head[..16]), last)
}

/// The CRC of an undo entry.
fn entry_crc(entry: &[u8]) -> u32 {
    let crc = crc32c::crc32c(&entry[..ENTRY_CRC]);
    crc32c::crc32c_append(crc, &entry[ENTRY_HEAD..])
}

impl Journal {
    /// Starts a journal after media of `len` bytes, whose final image has at most `most` bytes.
    /// From now on only [`Journal::commit`] makes writes permanent.
    pub(crate) fn new(file: &File, len: u64, most: usize) -> io::Result<Journal> {
        let layout = JournalLayout::new(len, most as u64);
        let mut header = [0; PAGE as usize];
        header[..8].copy_from_slice(&MAGIC);
        header[8..16].copy_from_slice(&len.to_le_bytes());
        header[16..24].copy_from_slice(&layout.slot.to_le_bytes());
        header[STATE..STATE + 8].copy_from_slice(&encode_state(0, 0).to_le_bytes());
        // One page in one write: the file has all of it, or none.
        file.write_all_at(&header, layout.base)?;
        // Reserves the disk space now.
        file.write_all_at(&vec![0; 2 * layout.slot as usize], layout.base + PAGE)?;
        let map = MmapOptions::new()
            .offset(layout.base)
            .len((layout.entries() - layout.base) as usize)
            .map_raw(file)?;
        Ok(Journal {
            layout,
            map,
            slot: 0,
            undo_bytes: 0,
            entry: Vec::new(),
        })
    }

    /// Runs an access to the map. False: the file was truncated.
    fn access(&self, file: &File, access: impl FnOnce(*mut u8)) -> bool {
        let (base, bytes) = (self.map.as_mut_ptr(), self.map.len());
        let pages = base as usize..base as usize + bytes;
        // SAFETY: the pages are the map's, and no references into it exist.
        let done = unsafe { guard::guarded(pages, || access(base)) };
        if !done {
            // SAFETY: the pages are this map's, and are mapped to the file again. No references
            // into them exist.
            let mapped = unsafe {
                libc::mmap(
                    base.cast(),
                    bytes,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_SHARED | libc::MAP_FIXED,
                    file.as_raw_fd(),
                    self.layout.base as libc::off_t,
                )
            };
            assert!(mapped != libc::MAP_FAILED, "a page of the media is lost");
        }
        done
    }

    /// The journal is present: the file was not truncated, so a write does not extend it.
    fn is_there(&self, file: &File) -> bool {
        let mut magic = [0; MAGIC.len()];
        // SAFETY: these bytes are within the map.
        let read = |base: *mut u8| unsafe {
            base.copy_to_nonoverlapping(magic.as_mut_ptr(), MAGIC.len());
        };
        self.access(file, read) && magic == MAGIC
    }

    fn set_state(&self, file: &File, slot: u64, undo_bytes: u64) -> bool {
        self.access(file, |base| {
            // SAFETY: the word is within the map and aligned.
            let word = unsafe { AtomicU64::from_ptr(base.add(STATE).cast()) };
            word.store(encode_state(slot, undo_bytes), Ordering::SeqCst);
        })
    }

    /// Starts an undo entry; the caller copies the `bytes` bytes of old data into the returned
    /// slice.
    pub(crate) fn begin_undo(&mut self, addr: u64, bytes: usize) -> &mut [u8] {
        self.entry.resize(ENTRY_HEAD + bytes, 0);
        let (head, old) = self.entry.split_at_mut(ENTRY_HEAD);
        head[..8].copy_from_slice(&addr.to_le_bytes());
        head[8..ENTRY_CRC].copy_from_slice(&(bytes as u64).to_le_bytes());
        old
    }

    /// Appends the undo entry to the file. False: there is no space.
    pub(crate) fn append_undo(&mut self, file: &File) -> bool {
        let crc = entry_crc(&self.entry);
        self.entry[ENTRY_CRC..ENTRY_CRC + 4].copy_from_slice(&crc.to_le_bytes());
        let at = self.layout.entries() + self.undo_bytes;
        if !self.is_there(file) || file.write_all_at(&self.entry, at).is_err() {
            return false;
        }
        let undo_bytes = self.undo_bytes + self.entry.len() as u64;
        let done = self.set_state(file, self.slot, undo_bytes);
        if done {
            self.undo_bytes = undo_bytes;
        }
        done
    }

    /// Bytes of undo entries since the last commit.
    pub(crate) fn undo_bytes(&self) -> u64 {
        self.undo_bytes
    }

    /// Makes all writes so far permanent, and `last` at `addr` the final image. False: the file was
    /// truncated.
    pub(crate) fn commit(&mut self, file: &File, addr: u64, last: &[u8]) -> bool {
        assert!(last.len() as u64 + SLOT_HEAD <= self.layout.slot);
        let slot: u64 = match (last.is_empty(), self.slot) {
            (true, _) => 0,
            (false, 1) => 2,
            (false, _) => 1,
        };
        let mut head = [0; SLOT_HEAD as usize];
        head[..8].copy_from_slice(&addr.to_le_bytes());
        head[8..16].copy_from_slice(&(last.len() as u64).to_le_bytes());
        let crc = slot_crc(&head, last);
        head[16..20].copy_from_slice(&crc.to_le_bytes());
        let at = (PAGE + slot.saturating_sub(1) * self.layout.slot) as usize;
        let fine = slot == 0
            || self.access(file, |base| {
                // SAFETY: a slot is within the map, and has space for both.
                unsafe {
                    let to = base.add(at);
                    to.copy_from_nonoverlapping(head.as_ptr(), head.len());
                    to.add(head.len())
                        .copy_from_nonoverlapping(last.as_ptr(), last.len());
                }
            });
        if !self.is_there(file) || !fine || !self.set_state(file, slot, 0) {
            return false;
        }
        self.slot = slot;
        if std::mem::take(&mut self.undo_bytes) > MAX_UNDO_BYTES {
            // The undo entries are void. If the file system cannot release their space, it stays
            // allocated.
            let _ = file.set_len(self.layout.entries());
        }
        true
    }

    /// No undo entries and no final image.
    pub(crate) fn is_empty(&self) -> bool {
        self.slot == 0 && self.undo_bytes == 0
    }
}

/// Restores the media of a file, `len` bytes, to the state that the journal of an ended process
/// encodes, and removes the journal. `None`: the file has no journal of media of this size.
pub(crate) fn recover(file: &File, len: u64) -> Option<io::Result<()>> {
    let base = len.next_multiple_of(PAGE);
    let mut header = [0; PAGE as usize];
    file.read_exact_at(&mut header, base).ok()?;
    let own = header[..8] == MAGIC && read_u64(&header, 8) == len;
    own.then(|| {
        let slot = read_u64(&header, 16);
        let layout = JournalLayout { base, slot };
        let word = read_u64(&header, STATE);
        let undo_bytes = (word & ((1 << STATE_BITS) - 1)) >> 2;
        if slot % PAGE != 0
            || !(PAGE..=MAX_SLOT_BYTES).contains(&slot)
            || word != encode_state(word & 3, undo_bytes)
        {
            return Err(damaged("its header"));
        }
        // Everything is read before anything is written.
        let entries = read_entries(file, len, layout, undo_bytes)?;
        let last = match word & 3 {
            0 => None,
            slot => Some(read_slot(file, len, layout, slot)?),
        };
        let mut old = Vec::new();
        for (addr, at, bytes) in entries.into_iter().rev() {
            old.resize(bytes as usize, 0);
            file.read_exact_at(&mut old, at)?;
            file.write_all_at(&old, addr)?;
        }
        if let Some((addr, bytes)) = last {
            file.write_all_at(&bytes, addr)?;
        }
        file.set_len(len)
    })
}

fn damaged(what: &str) -> io::Error {
    let text = format!(
        "the journal after the media is damaged ({what}); a file truncated to the media has \
            them as they stand"
    );
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// A journal that ends too early is damaged.
fn read_exact(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    file.read_exact_at(bytes, at)
        .map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => damaged("its end"),
            _ => error,
        })
}

/// The undo entries: address, position in the file, bytes.
fn read_entries(
    file: &File,
    len: u64,
    layout: JournalLayout,
    undo_bytes: u64,
) -> io::Result<Vec<(u64, u64, u64)>> {
    let mut entries = Vec::new();
    let mut entry = Vec::new();
    let mut at = 0;
    while at < undo_bytes {
        entry.resize(ENTRY_HEAD, 0);
        read_exact(file, &mut entry, layout.entries() + at)?;
        let (addr, bytes) = (read_u64(&entry, 0), read_u64(&entry, 8));
        let end = addr.checked_add(bytes).filter(|end| *end <= len);
        let next = at + ENTRY_HEAD as u64 + bytes.min(len);
        if end.is_none() || next > undo_bytes {
            return Err(damaged("an entry"));
        }
        entry.resize(ENTRY_HEAD + bytes as usize, 0);
        let data = layout.entries() + at + ENTRY_HEAD as u64;
        read_exact(file, &mut entry[ENTRY_HEAD..], data)?;
        if entry[ENTRY_CRC..ENTRY_CRC + 4] != entry_crc(&entry).to_le_bytes() {
            return Err(damaged("an entry's CRC"));
        }
        entries.push((addr, data, bytes));
        at = next;
    }
    Ok(entries)
}

/// The final image of a slot.
fn read_slot(
    file: &File,
    len: u64,
    layout: JournalLayout,
    slot: u64,
) -> io::Result<(u64, Vec<u8>)> {
    if slot > 2 {
        return Err(damaged("its state"));
    }
    let at = layout.base + PAGE + (slot - 1) * layout.slot;
    let mut head = [0; SLOT_HEAD as usize];
    read_exact(file, &mut head, at)?;
    let (addr, bytes) = (read_u64(&head, 0), read_u64(&head, 8));
    let end = addr.checked_add(bytes).filter(|end| *end <= len);
    if end.is_none() || bytes == 0 || bytes > layout.slot - SLOT_HEAD {
        return Err(damaged("a slot"));
    }
    let mut last = vec![0; bytes as usize];
    read_exact(file, &mut last, at + SLOT_HEAD)?;
    if head[16..20] != slot_crc(&head, &last).to_le_bytes() {
        return Err(damaged("a slot's CRC"));
    }
    Ok((addr, last))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::{Media, Random};

    const LEN: u64 = (300 << 10) + 64;
    const AT: u64 = LEN - 8192;
    const MOST: usize = 5000;

    fn bytes(media: &Media) -> Vec<u8> {
        let mut all = vec![0; LEN as usize];
        assert!(media.read(0, &mut all));
        all
    }

    /// The media as the next process finds them if this one is killed now; the kernel keeps what
    /// was written.
    fn after(path: &Path) -> Vec<u8> {
        let copy = path.with_extension("copy");
        std::fs::copy(path, &copy).unwrap();
        let media = Media::file(&copy, LEN).unwrap();
        assert_eq!(std::fs::metadata(&copy).unwrap().len(), LEN);
        bytes(&media)
    }

    fn change(media: &mut Media, random: &mut Random) {
        let at = random.below(LEN);
        let most = if random.below(30) == 0 { 200_000 } else { 300 };
        let data: Vec<u8> = (0..random.below(most))
            .map(|_| random.next() as u8)
            .collect();
        match random.below(4) {
            0 => {
                let mut line = [0; 64];
                line.fill_with(|| random.next() as u8);
                assert!(media.write_line(at, &line, random.next() | random.next()));
            }
            1 => assert!(media.zero(at, random.below(100_000))),
            _ => assert!(media.write(at, &data)),
        }
    }

    #[test]
    fn journal_restores_the_last_commit_and_its_final_image() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("media");
        let mut media = Media::file(&path, LEN).unwrap();
        let mut random = Random::new(5);
        (0..20).for_each(|_| change(&mut media, &mut random));
        media.begin_journal(MOST).unwrap();
        let mut settled = bytes(&media);
        assert!(after(&path) == settled);
        for round in 0..30 {
            for _ in 0..random.below(6) {
                change(&mut media, &mut random);
            }
            assert!(after(&path) == settled, "round {round}");
            let last: Vec<u8> = match random.below(3) {
                0 => Vec::new(),
                _ => (0..MOST).map(|_| random.next() as u8).collect(),
            };
            assert!(media.commit(AT, &last));
            settled = bytes(&media);
            settled[AT as usize..][..last.len()].copy_from_slice(&last);
            assert!(after(&path) == settled, "round {round}, settled");
        }
        // Media dropped with undo entries or a final image leave the journal in the file; others
        // remove it.
        assert!(media.commit(AT, &[1; 64]));
        settled = bytes(&media);
        settled[AT as usize..][..64].fill(1);
        drop(media);
        assert!(std::fs::metadata(&path).unwrap().len() > LEN);
        let mut media = Media::file(&path, LEN).unwrap();
        assert!(bytes(&media) == settled);
        media.begin_journal(MOST).unwrap();
        change(&mut media, &mut random);
        assert!(media.commit(0, &[]));
        settled = bytes(&media);
        drop(media);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), LEN);
        assert!(std::fs::read(&path).unwrap() == settled);
    }

    #[test]
    fn journal_skips_holes_and_returns_space() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("media");
        let len = 64 << 20;
        let mut media = Media::file(&path, len).unwrap();
        media.begin_journal(MOST).unwrap();
        assert!(media.zero(0, len) && media.uncommitted_bytes() == 0);
        assert!(media.write(0, &vec![7; 8 << 20]) && media.commit(0, &[]));
        assert!(media.zero(0, len) && media.uncommitted_bytes() > 8 << 20);
        let used = || std::fs::metadata(&path).unwrap().len() - len;
        assert!(used() > 8 << 20 && media.commit(0, &[]) && used() < 1 << 20);
    }

    #[test]
    fn journal_refuses_foreign_and_damaged_contents() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("media");
        let mut media = Media::file(&path, LEN).unwrap();
        media.begin_journal(MOST).unwrap();
        assert!(media.write(0, &[1; 4096]) && media.commit(AT, &[2; 64]));
        assert!(media.write(0, &[3; 4096]));
        let whole = std::fs::read(&path).unwrap();
        drop(media);
        let error = |bytes: &[u8], len: u64| {
            std::fs::write(&path, bytes).unwrap();
            let error = Media::file(&path, len).err();
            assert!(error.is_none() || std::fs::read(&path).unwrap() == bytes);
            error.map(|error| error.to_string()).unwrap_or_default()
        };
        assert!(error(&whole, LEN + 64).contains("the design wants"));
        assert!(error(&whole, 4096).contains("the design wants"));
        let base = LEN.next_multiple_of(4096) as usize;
        let with = |at: usize, byte: u8| {
            let mut bytes = whole.clone();
            bytes[base + at] ^= byte;
            bytes
        };
        assert!(error(&with(0, 1), LEN).contains("the design wants"));
        assert!(error(&with(64, 3), LEN).contains("damaged"));
        assert!(error(&with(4096 + 70, 3), LEN).contains("a slot's CRC"));
        assert!(error(&with(4096 + 7, 3), LEN).contains("a slot"));
        // Any bit in use is covered, except the zeros after the words of the header and of a slot.
        // So is any truncation.
        let slot = 8192;
        let entries = 4096 + 2 * slot;
        let used = [8..24, 64..72, 4096..4096 + 20, 4096 + 64..4096 + 128];
        let undo_bytes = entries..entries + 20;
        let data = (entries + 24..whole.len() - base).step_by(97);
        for at in used.into_iter().chain([undo_bytes]).flatten().chain(data) {
            let is = error(&with(at, 1 << (at % 8)), LEN);
            let other = (8..16).contains(&at) && is.contains("the design wants");
            assert!(other || is.contains("damaged"), "{at}: {is}");
        }
        for cut in [1, 100, 4096, 4120, 8000, whole.len() - base - 4096] {
            let is = error(&whole[..whole.len() - cut], LEN);
            assert!(is.contains("damaged"), "{cut}: {is}");
        }
        assert_eq!(error(&whole, LEN), "");
    }
}
