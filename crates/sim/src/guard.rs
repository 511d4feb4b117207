//! Copies from and to mapped files, whose pages can turn out not to be there.
//!
//! A page of a mapping that the file can't give (it was cut, the disk is full or fails) raises SIGBUS, which would end the
//! process. While a copy runs under [`guarded`], the handler (installed once a process) puts zero pages in the place of what the
//! copy is about, and the copy is reported as failed. A SIGBUS that is none of ours goes to the handler that was there before.

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{compiler_fence, Ordering};
use std::sync::{Once, OnceLock};

/// Granularity of what the handler replaces.
const PAGE: usize = 4096;

/// What this thread is copying from or to, and whether a page of it was missing.
struct Guard {
    start: Cell<usize>,
    end: Cell<usize>,
    hit: Cell<bool>,
}

thread_local! {
    // Constant and without a destructor: the signal handler can use it.
    static GUARD: Guard = const {
        Guard {
            start: Cell::new(0),
            end: Cell::new(0),
            hit: Cell::new(false),
        }
    };
}

/// What happened on SIGBUS before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Runs a copy. False: a page was missing, and all of `pages` are private zero pages now.
///
/// # Safety
/// [`install`] was called. `pages` are whole pages of a mapping of the caller's, and nobody holds references into them.
#[inline]
pub unsafe fn guarded(pages: Range<usize>, copy: impl FnOnce()) -> bool {
    GUARD.with(|guard| {
        guard.start.set(pages.start);
        guard.end.set(pages.end);
        // The handler runs on this thread: what it sees is what the compiler has put in order.
        compiler_fence(Ordering::SeqCst);
        copy();
        compiler_fence(Ordering::SeqCst);
        guard.end.set(0);
        !guard.hit.replace(false)
    })
}

/// Installs the handler, once a process.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: all-zero is a valid sigaction; `on_bus_error` has the signature that SA_SIGINFO asks for, and only does what a
        // signal handler may.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut before);
            let _ = BEFORE.set(before);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_bus_error as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
        }
    });
}

extern "C" fn on_bus_error(
    _signal: libc::c_int,
    info: *mut libc::siginfo_t,
    _context: *mut libc::c_void,
) {
    // SAFETY: the kernel passes a valid siginfo; mmap replaces only what this thread is copying from or to, which the caller of
    // `guarded` vouches for; sigaction is async-signal-safe.
    unsafe {
        let addr = (*info).si_addr() as usize;
        let (start, end) = GUARD.with(|guard| (guard.start.get(), guard.end.get()));
        // Parts of a page can't be replaced.
        let (start, end) = (start - start % PAGE, end.next_multiple_of(PAGE));
        if (start..end).contains(&addr) {
            let errno = *libc::__errno_location();
            let mapped = libc::mmap(
                start as *mut libc::c_void,
                end - start,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE,
                -1,
                0,
            );
            *libc::__errno_location() = errno;
            if mapped != libc::MAP_FAILED {
                GUARD.with(|guard| guard.hit.set(true));
                return;
            }
        }
        // The access happens again, under the former handler.
        match BEFORE.get() {
            Some(before) => libc::sigaction(libc::SIGBUS, before, std::ptr::null_mut()),
            None => libc::abort(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memmap2::MmapOptions;
    use rustix::fs::{ftruncate, memfd_create, MemfdFlags};

    /// A mapping of two pages of a file that is empty by now.
    fn lost() -> memmap2::MmapRaw {
        let file = memfd_create("lost", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, 2 * PAGE as u64).unwrap();
        let map = MmapOptions::new().map_raw(&file).unwrap();
        ftruncate(&file, 0).unwrap();
        map
    }

    #[test]
    fn ranges_of_any_alignment_become_pages_of_zeros() {
        install();
        for (from, to) in [
            (0, 2 * PAGE),
            (512, 600),
            (PAGE - 1, PAGE + 1),
            (1, 2 * PAGE - 1),
        ] {
            let map = lost();
            let base = map.as_mut_ptr();
            let mut byte = 1;
            // SAFETY: the bytes are within the mapping, and nobody holds references into it.
            let copy = || byte = unsafe { base.add(from).read_volatile() };
            // SAFETY: as above; the pages are the mapping's.
            let done = unsafe { guarded(base as usize + from..base as usize + to, copy) };
            assert!(!done && byte == 0, "{from} to {to}");
            // SAFETY: the page is there now.
            assert_eq!(unsafe { base.add(to - 1).read_volatile() }, 0);
        }
    }
}
