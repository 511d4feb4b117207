// SPDX-License-Identifier: Apache-2.0

//! The SIGBUS handler among other handlers. Each case runs in a separate process, because some
//! cases end it.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use libc::{SIGBUS, SIG_DFL, SIG_IGN};
use rustix::fs::{ftruncate, memfd_create, MemfdFlags};
use sim::guard;

const PAGE: usize = 4096;
/// The case that the process runs.
const CASE: &str = "NEARSIDE_GUARD_CASE";

/// A page of a file that was truncated to nothing.
fn lost() -> *mut u8 {
    let file = memfd_create("lost", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&file, PAGE as u64).unwrap();
    let map = memmap2::MmapOptions::new().map_raw(&file).unwrap();
    ftruncate(&file, 0).unwrap();
    let page = map.as_mut_ptr();
    std::mem::forget(map);
    page
}

fn touch(page: *mut u8) {
    // SAFETY: the page is mapped, though it may raise SIGBUS.
    unsafe { page.read_volatile() };
}

/// A copy from a missing page fails, without any other effect.
fn copy_fails() {
    let page = lost();
    // SAFETY: the page is the test's.
    let done = unsafe { guard::guarded(page as usize..page as usize + PAGE, || touch(page)) };
    assert!(!done);
}

fn swap(new: Option<&libc::sigaction>) -> libc::sigaction {
    // SAFETY: handlers here are functions of the right kind; an all-zero sigaction is valid.
    unsafe {
        let mut old = std::mem::zeroed();
        libc::sigaction(SIGBUS, new.map_or(std::ptr::null(), |new| new), &mut old);
        old
    }
}

fn put(handler: usize, flags: i32) -> libc::sigaction {
    // SAFETY: an all-zero sigaction is valid.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    (action.sa_sigaction, action.sa_flags) = (handler, flags);
    swap(Some(&action))
}

static CALLS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn plain(signal: i32) {
    assert_eq!(signal, SIGBUS);
    CALLS.fetch_add(1, Ordering::Relaxed);
}

extern "C" fn informed(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the pointer comes from the kernel.
    assert!(unsafe { (*info).si_code } <= 0 && !context.is_null());
    plain(signal);
}

/// As a handler that reports a crash: it ends the process by the same signal, and is not installed
/// any more by then.
extern "C" fn raises(signal: i32) {
    plain(signal);
    // SAFETY: a signal to this thread.
    unsafe { libc::raise(signal) };
}

/// As Python's faulthandler: it stores the previous handler, restores it at its end or after it has
/// reported a crash, and then raises the signal again.
static KEPT: Mutex<Option<libc::sigaction>> = Mutex::new(None);

fn enable() {
    *KEPT.lock().unwrap() = Some(put(crash_reporter as *const () as usize, libc::SA_NODEFER));
}

fn disable() {
    let kept = KEPT.lock().unwrap().take();
    if kept.is_some() {
        swap(kept.as_ref());
    }
}

extern "C" fn crash_reporter(signal: i32) {
    assert!(CALLS.load(Ordering::Relaxed) == 0, "reported once");
    disable();
    raises(signal);
}

fn send() {
    // SAFETY: a signal to this thread.
    unsafe { libc::raise(SIGBUS) };
}

/// The function of each case, and whether SIGBUS ends its process.
const CASES: [(&str, fn(), bool); 17] = [
    ("replaced by each kind of handler", replaced, false),
    ("another one comes and goes", comes_and_goes, false),
    ("another one was there and goes", was_there_and_goes, false),
    ("many others", many_others, false),
    ("sent, former one default", || sent(SIG_DFL, 0), true),
    ("sent, former one ignores", || sent(SIG_IGN, 0), false),
    (
        "sent, former one plain",
        || sent(plain as *const () as usize, 0),
        false,
    ),
    (
        "sent, former one informed",
        || sent(informed as *const () as usize, libc::SA_SIGINFO),
        false,
    ),
    (
        "sent, former one once",
        || sent(raises as *const () as usize, libc::SA_RESETHAND),
        true,
    ),
    (
        "sent, another handler former",
        || {
            install_as_former();
            send()
        },
        true,
    ),
    (
        "sent, another one before",
        || {
            before();
            send()
        },
        true,
    ),
    ("fault, former one default", || fault(SIG_DFL, 0), true),
    ("fault, former one ignores", || fault(SIG_IGN, 0), true),
    (
        "fault, former one once",
        || fault(raises as *const () as usize, libc::SA_RESETHAND),
        true,
    ),
    (
        "fault, another handler former",
        || {
            install_as_former();
            touch(lost())
        },
        true,
    ),
    (
        "fault, another one before",
        || {
            before();
            touch(lost())
        },
        true,
    ),
    (
        "fault, another one was there",
        || {
            comes_and_goes();
            touch(lost())
        },
        true,
    ),
];

fn replaced() {
    for handler in [SIG_DFL, SIG_IGN, plain as *const () as usize] {
        put(handler, 0);
        for _ in 0..2 {
            guard::install_handler();
            copy_fails();
        }
    }
}

fn comes_and_goes() {
    guard::install_handler();
    for _ in 0..50 {
        enable();
        guard::install_handler();
        copy_fails();
        disable();
        guard::install_handler();
        copy_fails();
    }
}

fn was_there_and_goes() {
    enable();
    for _ in 0..50 {
        guard::install_handler();
        copy_fails();
        disable();
        guard::install_handler();
        copy_fails();
        enable();
    }
}

/// More foreign handlers than the guard has instances.
fn many_others() {
    for flags in 0..16 {
        let flag = |bit: i32, flag: i32| if flags & bit != 0 { flag } else { 0 };
        let flags = flag(1, libc::SA_NODEFER) | flag(2, libc::SA_RESTART);
        let flags = flags | flag(4, libc::SA_ONSTACK) | flag(8, libc::SA_NOCLDSTOP);
        put(plain as *const () as usize, flags);
        guard::install_handler();
        copy_fails();
    }
    send();
    assert_eq!(CALLS.load(Ordering::Relaxed), 1);
}

/// A signal that a process has sent goes to the former handler, and the guard stays installed.
fn sent(former: usize, flags: i32) {
    put(former, flags);
    guard::install_handler();
    for round in 1..4 {
        send();
        let calls = CALLS.load(Ordering::Relaxed);
        assert!(former == SIG_IGN || calls == round);
        copy_fails();
    }
}

fn fault(former: usize, flags: i32) {
    put(former, flags);
    guard::install_handler();
    copy_fails();
    touch(lost());
}

fn install_as_former() {
    enable();
    guard::install_handler();
    copy_fails();
}

fn before() {
    guard::install_handler();
    enable();
    guard::install_handler();
    copy_fails();
}

/// Runs a case in a separate process.
fn run(case: usize) -> ExitStatus {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "guard_case_of_this_process", "--test-threads=1"]);
    let mut child = command
        .env(CASE, case.to_string())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if start.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("{} does not end", CASES[case].0);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn guard_case_of_this_process() {
    if let Ok(case) = std::env::var(CASE) {
        // SAFETY: disables core files, without any other effect.
        unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) };
        // Rust's handler for stack overflows would take the first signal.
        put(SIG_DFL, 0);
        CASES[case.parse::<usize>().unwrap()].1();
    }
}

#[test]
fn guard_handlers_coexist_with_foreign_ones() {
    for (n, (name, _, ends)) in CASES.iter().enumerate() {
        let status = run(n);
        let wanted = if *ends { Some(SIGBUS) } else { None };
        assert_eq!(status.signal(), wanted, "{name}: {status}");
        assert!(*ends || status.success(), "{name}: {status}");
    }
}
