// SPDX-License-Identifier: Apache-2.0

//! The doorbell page of BAR0 as memory that the client maps. A doorbell is then a store, without a
//! message.
//!
//! The page has to be polled, as a store causes no event. Each word that was read is replaced by a
//! mark. So the same value is detected twice if it is written twice. A stale value never hides a
//! new one, whatever queues were deleted and created in between. The mark is all ones, which is no
//! valid queue index. NVMe hosts never read doorbells.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{fcntl_add_seals, ftruncate, memfd_create, MemfdFlags, SealFlags};

/// Offset of the doorbells in BAR0, and in the file that the client maps.
pub(crate) const OFFSET: u64 = 0x1000;
/// Bytes of the doorbells.
pub(crate) const BYTES: u64 = 0x1000;

const SEEN: u32 = u32::MAX;

/// The page. Each client gets a new one, so a former client can't ring doorbells.
pub(crate) struct Doorbells {
    file: OwnedFd,
    page: MmapRaw,
}

impl Doorbells {
    pub(crate) fn new() -> std::io::Result<Doorbells> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("nearside-doorbells", flags)?;
        ftruncate(&file, OFFSET + BYTES)?;
        // The client can't shrink the file.
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let page = MmapOptions::new()
            .offset(OFFSET)
            .len(BYTES as usize)
            .map_raw(&file)?;
        let doorbells = Doorbells { file, page };
        for index in 0..(BYTES / 4) as usize {
            doorbells.word(index).store(SEEN, Ordering::Relaxed);
        }
        Ok(doorbells)
    }

    fn word(&self, index: usize) -> &AtomicU32 {
        debug_assert!(index < BYTES as usize / 4);
        // SAFETY: within the page, aligned, and mapped as long as `self`. Both sides use atomic
        // accesses.
        unsafe { AtomicU32::from_ptr(self.page.as_mut_ptr().cast::<u32>().add(index)) }
    }

    /// The file for the client. The page is at [`OFFSET`].
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Passes each doorbell that was written since the last call to `ring`: its offset in BAR0, and
    /// its value.
    pub(crate) fn collect(&self, mut ring: impl FnMut(u64, u32)) {
        for index in 0..(BYTES / 4) as usize {
            if self.word(index).load(Ordering::Relaxed) != SEEN {
                let value = self.word(index).swap(SEEN, Ordering::AcqRel);
                ring(OFFSET + 4 * index as u64, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doorbells_are_collected_once() {
        let doorbells = Doorbells::new().unwrap();
        let client = MmapOptions::new().map_raw(&doorbells.file).unwrap();
        let ring = |offset: usize, value: u32| {
            // SAFETY: within the mapping, aligned.
            unsafe { AtomicU32::from_ptr(client.as_mut_ptr().add(offset).cast()) }
                .store(value, Ordering::Release);
        };
        let collect = || {
            let mut seen = Vec::new();
            doorbells.collect(|offset, value| seen.push((offset, value)));
            seen
        };
        assert!(collect().is_empty());
        ring(0x1008, 5);
        ring(0x1FFC, 0);
        assert_eq!(collect(), [(0x1008, 5), (0x1FFC, 0)]);
        assert!(collect().is_empty());
        ring(0x1008, 5);
        assert_eq!(collect(), [(0x1008, 5)], "the same value again");
        assert!(
            ftruncate(&doorbells.file, 0).is_err(),
            "the client can't shrink it"
        );
    }
}
