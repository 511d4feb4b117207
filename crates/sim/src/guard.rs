// SPDX-License-Identifier: Apache-2.0

//! Copies from and to mapped files, whose pages may be missing.
//!
//! If a file cannot supply a page of its mapping (it was truncated, the disk is full or fails), the
//! access raises SIGBUS, which would end the process. While a copy runs under [`guarded`], a
//! handler replaces the copied range with zero pages, and the copy is reported as failed. Any other
//! SIGBUS, including one sent by a process, goes to the handler that was installed before.
//!
//! Other code in the process may replace this handler (Python's `faulthandler` does).
//! [`keep_handler`] is therefore called whenever a device begins to run. A thread that blocks
//! SIGBUS cannot be protected: the kernel ends the process without calling a handler.

use std::cell::Cell;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{compiler_fence, AtomicBool, AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

/// Granularity of the replaced ranges.
const PAGE: usize = 4096;

/// The range that this thread is copying, and whether one of its pages was missing.
struct GuardedCopy {
    start: Cell<usize>,
    end: Cell<usize>,
    hit: Cell<bool>,
}

thread_local! {
    // Constant and without a destructor, so the signal handler can use it.
    static GUARD: GuardedCopy = const {
        GuardedCopy {
            start: Cell::new(0),
            end: Cell::new(0),
            hit: Cell::new(false),
        }
    };
}

type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// Instances of the handler, which differ only in the handler that they replaced. Code that
/// replaces one of them later restores or calls exactly that instance. A single instance could get
/// itself as its former handler, and the two would call each other forever.
const HANDLERS: [Handler; 8] = [
    on_bus_error::<0>,
    on_bus_error::<1>,
    on_bus_error::<2>,
    on_bus_error::<3>,
    on_bus_error::<4>,
    on_bus_error::<5>,
    on_bus_error::<6>,
    on_bus_error::<7>,
];

/// The action on SIGBUS before each instance was installed. Entries are never freed, because a
/// handler may be reading one.
static FORMER: [AtomicPtr<libc::sigaction>; HANDLERS.len()] =
    [const { AtomicPtr::new(null_mut()) }; HANDLERS.len()];

/// Runs a copy. False: a page was missing, and all of `pages` are private zero pages now.
///
/// # Safety
///
/// [`install_handler`] was called, or the pages are memory without a file. `pages` are whole pages
/// of a mapping of the caller's, and no references into them exist.
#[inline]
pub unsafe fn guarded(pages: Range<usize>, copy: impl FnOnce()) -> bool {
    GUARD.with(|guard| {
        guard.start.set(pages.start);
        guard.end.set(pages.end);
        // The handler runs on this thread, so a compiler fence is enough for it to see these
        // stores.
        compiler_fence(Ordering::SeqCst);
        copy();
        compiler_fence(Ordering::SeqCst);
        guard.end.set(0);
        !guard.hit.replace(false)
    })
}

/// Whether any memory with possibly missing pages has existed.
static NEEDED: AtomicBool = AtomicBool::new(false);

/// Makes sure that the handler is still installed, if [`install_handler`] was ever called. Costs
/// nothing otherwise.
pub fn keep_handler() {
    if NEEDED.load(Ordering::Acquire) {
        install_handler();
    }
}

/// Makes sure that the handler is installed. Costs a system call if it already is.
pub fn install_handler() {
    NEEDED.store(true, Ordering::Release);
    if is_ours(&current_action()) {
        return;
    }
    // Two threads at once would each record the other's instance as the former handler.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let found = current_action();
    if is_ours(&found) {
        return;
    }
    // The instance that already replaced this handler, or a free one. There are more instances than
    // a process usually has other SIGBUS handlers.
    //
    // SAFETY: each entry is null or was leaked below.
    let former = |n: usize| unsafe { FORMER[n].load(Ordering::Acquire).as_ref() };
    let last = HANDLERS.len() - 1;
    let fits = |n: &usize| former(*n).is_none_or(|f| same_action(f, &found));
    let level = (0..last).find(fits).unwrap_or(last);
    if !former(level).is_some_and(|f| same_action(f, &found)) {
        FORMER[level].store(Box::into_raw(Box::new(found)), Ordering::Release);
    }
    // It blocks the same signals as the former handler, which it may call.
    let mut action = found;
    action.sa_sigaction = HANDLERS[level] as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    action.sa_flags |= found.sa_flags & (libc::SA_NODEFER | libc::SA_RESTART);
    set_action(&action);
}

/// The present action on SIGBUS.
fn current_action() -> libc::sigaction {
    // SAFETY: an all-zero sigaction is valid, and the call fills it.
    unsafe {
        let mut action = std::mem::zeroed();
        libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut action);
        action
    }
}

fn set_action(action: &libc::sigaction) {
    // SAFETY: the action is one of ours, which does only what a signal handler may, or one that was
    // installed before.
    unsafe { libc::sigaction(libc::SIGBUS, action, null_mut()) };
}

fn is_ours(action: &libc::sigaction) -> bool {
    let ours = |handler: &Handler| *handler as usize == action.sa_sigaction;
    HANDLERS.iter().any(ours)
}

fn same_action(one: &libc::sigaction, other: &libc::sigaction) -> bool {
    (one.sa_sigaction, one.sa_flags) == (other.sa_sigaction, other.sa_flags)
}

extern "C" fn on_bus_error<const LEVEL: usize>(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the kernel passes a valid siginfo, and errno is this thread's.
    let (code, errno) = unsafe { ((*info).si_code, libc::__errno_location()) };
    // SAFETY: as above. The interrupted code must find its errno unchanged.
    let before = unsafe { *errno };
    // Codes above 0 come from the kernel; a sent signal has no address.
    //
    // SAFETY: the kernel's siginfo of a SIGBUS has an address.
    if code <= 0 || !unsafe { replace_pages((*info).si_addr() as usize) } {
        // SAFETY: the arguments are the kernel's.
        unsafe { call_former(LEVEL, signal, info, context) };
    }
    // SAFETY: as above.
    unsafe { *errno = before };
}

/// Replaces the range that this thread is copying with zero pages, if `addr` is in it.
///
/// # Safety
///
/// The caller is the handler.
unsafe fn replace_pages(addr: usize) -> bool {
    let (start, end) = GUARD.with(|guard| (guard.start.get(), guard.end.get()));
    // Only whole pages can be replaced.
    let (start, end) = (start - start % PAGE, end.next_multiple_of(PAGE));
    if !(start..end).contains(&addr) {
        return false;
    }
    // SAFETY: it replaces only the range that this thread is copying; the caller of `guarded`
    // guarantees that this is allowed.
    let mapped = unsafe {
        libc::mmap(
            start as *mut libc::c_void,
            end - start,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    GUARD.with(|guard| guard.hit.set(mapped != libc::MAP_FAILED));
    mapped != libc::MAP_FAILED
}

/// Does what would have happened without this handler, which stays installed.
///
/// # Safety
///
/// The arguments are those of a handler, and the caller is one.
unsafe fn call_former(
    level: usize,
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: an all-zero sigaction is valid: the default action.
    let default: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: it was leaked by `install_handler`, before the handler was installed.
    let former = unsafe { FORMER[level].load(Ordering::Acquire).as_ref() }.unwrap_or(&default);
    // SAFETY: stated at each call.
    unsafe {
        let sent = (*info).si_code <= 0;
        match former.sa_sigaction {
            libc::SIG_IGN if sent => {}
            // A failed access cannot be ignored.
            libc::SIG_DFL | libc::SIG_IGN => {
                set_action(&default);
                // The signal is blocked until the handler returns. A failed access repeats by
                // itself.
                if sent {
                    libc::raise(signal);
                }
            }
            handler => {
                if former.sa_flags & libc::SA_RESETHAND != 0 {
                    set_action(&default);
                }
                // SAFETY: the flags state which of the two kinds of handler it is.
                if former.sa_flags & libc::SA_SIGINFO != 0 {
                    std::mem::transmute::<usize, Handler>(handler)(signal, info, context);
                } else {
                    let handler = std::mem::transmute::<usize, extern "C" fn(libc::c_int)>(handler);
                    handler(signal);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memmap2::MmapOptions;
    use rustix::fs::{ftruncate, memfd_create, MemfdFlags};

    /// A mapping of two pages of a file that was truncated to nothing.
    fn lost() -> memmap2::MmapRaw {
        let file = memfd_create("lost", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, 2 * PAGE as u64).unwrap();
        let map = MmapOptions::new().map_raw(&file).unwrap();
        ftruncate(&file, 0).unwrap();
        map
    }

    #[test]
    fn guard_replaces_pages_of_any_range_with_zeros() {
        install_handler();
        for (from, to) in [
            (0, 2 * PAGE),
            (512, 600),
            (PAGE - 1, PAGE + 1),
            (1, 2 * PAGE - 1),
        ] {
            let map = lost();
            let base = map.as_mut_ptr();
            let mut byte = 1;
            // SAFETY: the bytes are within the mapping, and no references into it exist.
            let copy = || byte = unsafe { base.add(from).read_volatile() };
            // SAFETY: as above; the pages are the mapping's.
            let done = unsafe { guarded(base as usize + from..base as usize + to, copy) };
            assert!(!done && byte == 0, "{from} to {to}");
            // SAFETY: the page is present now.
            assert_eq!(unsafe { base.add(to - 1).read_volatile() }, 0);
        }
    }
}
