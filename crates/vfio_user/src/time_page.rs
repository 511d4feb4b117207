// SPDX-License-Identifier: Apache-2.0

//! The page in which emulator and server share times: see [`crate::channel`].

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{fcntl_add_seals, ftruncate, memfd_create, MemfdFlags, SealFlags};
use sim::Time;

/// A time that does not come, in ps: 53 days.
pub(crate) const NEVER: u64 = 1 << 62;
const PAGE_BYTES: u64 = 4096;

/// The page that emulator and server share.
pub(crate) struct TimePage {
    file: OwnedFd,
    page: MmapRaw,
}

impl TimePage {
    pub(crate) fn new() -> std::io::Result<TimePage> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("nearside-time", flags)?;
        ftruncate(&file, PAGE_BYTES)?;
        // The emulator can't shrink the file.
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let page = MmapOptions::new().len(PAGE_BYTES as usize).map_raw(&file)?;
        let page = TimePage { file, page };
        page.reset();
        Ok(page)
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        debug_assert!(index < PAGE_BYTES as usize / 8);
        // SAFETY: within the page, aligned, and mapped as long as `self`. Both sides use atomic
        // accesses.
        unsafe { AtomicU64::from_ptr(self.page.as_mut_ptr().cast::<u64>().add(index)) }
    }

    /// The file for the emulator.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    pub(crate) fn reset(&self) {
        self.word(0).store(0, Ordering::Release);
        self.word(1).store(NEVER, Ordering::Release);
        self.word(2).store(0, Ordering::Release);
    }

    /// The emulator's time at the access under way.
    pub(crate) fn now(&self) -> Time {
        Time(self.word(0).load(Ordering::Acquire).min(NEVER))
    }

    pub(crate) fn set_next(&self, next: Time) {
        self.word(1).store(next.0.min(NEVER), Ordering::Release);
    }

    pub(crate) fn add_stall(&self, stall: Time) {
        self.word(2).fetch_add(stall.0, Ordering::AcqRel);
    }
}
