//! Copies from and to mapped files, whose pages can turn out not to be there.
//!
//! A page of a mapping that the file can't give (it was cut, the disk is full or fails) raises
//! SIGBUS, which would end the process. While a copy runs under [`guarded`], a handler puts zero
//! pages in the place of what the copy is about, and the copy is reported as failed. A SIGBUS that
//! is none of ours, one that somebody has sent included, goes to the handler that was there before.
//!
//! Others in the process may put a handler of their own in the place of ours (Python's
//! `faulthandler` does), so [`keep`] is called wherever a device begins to work. A thread that
//! blocks SIGBUS can't be helped: the kernel ends the process without asking a handler.

use std::cell::Cell;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{compiler_fence, AtomicBool, AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

/// Granularity of what the handler replaces.
const PAGE: usize = 4096;

/// What this thread is copying from or to, and whether a page of it was missing.
struct GuardedCopy {
    start: Cell<usize>,
    end: Cell<usize>,
    hit: Cell<bool>,
}

thread_local! {
    // Constant and without a destructor: the signal handler can use it.
    static GUARD: GuardedCopy = const {
        GuardedCopy {
            start: Cell::new(0),
            end: Cell::new(0),
            hit: Cell::new(false),
        }
    };
}

type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// Our handlers, all the same but for their former one. Whoever replaces one of ours brings that
/// very one back at its own end, or calls it; with a single one that had them for its former one,
/// the two would call each other for ever.
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

/// What happened on SIGBUS before each of our handlers was installed. They are never freed: a
/// handler may be reading one.
static FORMER: [AtomicPtr<libc::sigaction>; HANDLERS.len()] =
    [const { AtomicPtr::new(null_mut()) }; HANDLERS.len()];

/// Runs a copy. False: a page was missing, and all of `pages` are private zero pages now.
///
/// # Safety
/// [`install`] was called, or the pages are memory of no file. `pages` are whole pages of a mapping
/// of the caller's, and nobody holds references into them.
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

/// Whether there has been anything whose pages can turn out not to be there.
static NEEDED: AtomicBool = AtomicBool::new(false);

/// Sees to it that ours is still the handler, if [`install`] was ever called. Else it costs
/// nothing.
pub fn keep_handler() {
    if NEEDED.load(Ordering::Acquire) {
        install_handler();
    }
}

/// Sees to it that ours is the handler. It costs a system call when it is.
pub fn install_handler() {
    NEEDED.store(true, Ordering::Release);
    if is_ours(&current_action()) {
        return;
    }
    // Two threads at once would each take the other's for the former one.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let found = current_action();
    if is_ours(&found) {
        return;
    }
    // The one whose former handler this was already, or a new one: there are more than one process
    // has programs for SIGBUS. SAFETY: each is null or was leaked below.
    let former = |n: usize| unsafe { FORMER[n].load(Ordering::Acquire).as_ref() };
    let last = HANDLERS.len() - 1;
    let fits = |n: &usize| former(*n).is_none_or(|f| same_action(f, &found));
    let level = (0..last).find(fits).unwrap_or(last);
    if !former(level).is_some_and(|f| same_action(f, &found)) {
        FORMER[level].store(Box::into_raw(Box::new(found)), Ordering::Release);
    }
    // It blocks what the former one has blocked, which it may call.
    let mut action = found;
    action.sa_sigaction = HANDLERS[level] as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    action.sa_flags |= found.sa_flags & (libc::SA_NODEFER | libc::SA_RESTART);
    set_action(&action);
}

/// What happens on SIGBUS now.
fn current_action() -> libc::sigaction {
    // SAFETY: all-zero is a valid sigaction, and the call fills it.
    unsafe {
        let mut action = std::mem::zeroed();
        libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut action);
        action
    }
}

fn set_action(action: &libc::sigaction) {
    // SAFETY: handlers are ours, which only do what a signal handler may, or were handlers before.
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
    // SAFETY: as above. What is interrupted must find its errno again.
    let before = unsafe { *errno };
    // Codes above 0 are the kernel's; a signal that somebody has sent has no address.
    // SAFETY: the kernel's siginfo of a SIGBUS has one.
    if code <= 0 || !unsafe { replace_pages((*info).si_addr() as usize) } {
        // SAFETY: the arguments are the kernel's.
        unsafe { call_former(LEVEL, signal, info, context) };
    }
    // SAFETY: as above.
    unsafe { *errno = before };
}

/// Puts zero pages in the place of what this thread is copying, if `addr` is in it.
///
/// # Safety
/// The caller is the handler.
unsafe fn replace_pages(addr: usize) -> bool {
    let (start, end) = GUARD.with(|guard| (guard.start.get(), guard.end.get()));
    // SplitCompletions of a page can't be replaced.
    let (start, end) = (start - start % PAGE, end.next_multiple_of(PAGE));
    if !(start..end).contains(&addr) {
        return false;
    }
    // SAFETY: it replaces only what this thread is copying from or to, which the caller of
    // `guarded` vouches for.
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

/// Does what would have happened without our handler, which stays.
///
/// # Safety
/// The arguments are those of a handler, and the caller is one.
unsafe fn call_former(
    level: usize,
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: all-zero is a valid sigaction, the default one.
    let default: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: it was leaked by `install`, before our handler was there.
    let former = unsafe { FORMER[level].load(Ordering::Acquire).as_ref() }.unwrap_or(&default);
    // SAFETY: see each.
    unsafe {
        let sent = (*info).si_code <= 0;
        match former.sa_sigaction {
            libc::SIG_IGN if sent => {}
            // An access that has failed can't be ignored.
            libc::SIG_DFL | libc::SIG_IGN => {
                set_action(&default);
                // It is blocked until the handler returns. The access happens again by itself.
                if sent {
                    libc::raise(signal);
                }
            }
            handler => {
                if former.sa_flags & libc::SA_RESETHAND != 0 {
                    set_action(&default);
                }
                // What handlers of either kind are, as their flags say.
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

    /// A mapping of two pages of a file that is empty by now.
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
