//! Adds to an eventfd without ever waiting for it.
//!
//! A write waits while the counter is full, unless the descriptor says that writes don't wait; both are the client's to change at
//! any moment, also between a look at the counter and the write. The kernel itself adds without waiting: when an asynchronous
//! read has ended (Linux AIO) it does so to an eventfd that was named with the request. So a signal is a read of nothing.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::{memfd_create, MemfdFlags};

/// Requests between two looks at what has ended.
const MAX_REQUESTS: usize = 64;
/// `IOCB_FLAG_RESFD`: `resfd` is an eventfd.
const WITH_EVENTFD: u32 = 1;

/// `struct iocb`; all zeros is a read of no bytes.
#[repr(C)]
#[derive(Default)]
struct Request {
    data: u64,
    key_and_flags: [u32; 2],
    opcode: u16,
    priority: i16,
    file: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    resfd: u32,
}

/// `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct IoEvent([u64; 4]);

/// Signals eventfds.
pub(crate) struct Signaller {
    /// A context of Linux AIO and a file to read nothing from; none on a system without.
    aio: Option<(libc::c_ulong, OwnedFd)>,
}

impl Signaller {
    pub(crate) fn new() -> Signaller {
        let mut context: libc::c_ulong = 0;
        // SAFETY: the call writes one context, to a place that is there.
        let made = unsafe { libc::syscall(libc::SYS_io_setup, MAX_REQUESTS, &mut context) } == 0;
        let mut signaller = Signaller { aio: None };
        if made {
            match memfd_create("nearside-nothing", MemfdFlags::CLOEXEC) {
                Ok(file) => signaller.aio = Some((context, file)),
                Err(_) => destroy(context),
            }
        }
        signaller
    }

    /// Adds 1 to an eventfd, unless it is full. False for anything else than an eventfd.
    pub(crate) fn signal(&self, eventfd: &OwnedFd) -> bool {
        let Some((context, file)) = &self.aio else {
            return write_if_ready(eventfd);
        };
        let mut request = Request {
            file: file.as_raw_fd() as u32,
            flags: WITH_EVENTFD,
            resfd: eventfd.as_raw_fd() as u32,
            ..Request::default()
        };
        let requests = [&raw mut request];
        // SAFETY: the request is read during the call, and names no memory.
        let submit = || unsafe {
            libc::syscall(libc::SYS_io_submit, *context, 1usize, requests.as_ptr()) == 1
        };
        submit() || {
            self.drain_completions();
            submit()
        }
    }

    /// Makes room for further requests.
    fn drain_completions(&self) {
        let Some((context, _)) = &self.aio else {
            return;
        };
        let mut ended = [IoEvent::default(); MAX_REQUESTS];
        let now = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let most = MAX_REQUESTS;
        // SAFETY: there is room for so many events, and the time is there.
        unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                *context,
                0usize,
                most,
                &mut ended,
                &now,
            );
        }
    }
}

impl Drop for Signaller {
    fn drop(&mut self) {
        if let Some((context, _)) = self.aio.take() {
            destroy(context);
        }
    }
}

fn destroy(context: libc::c_ulong) {
    // SAFETY: nobody uses the context any more, and no request of it names memory.
    unsafe { libc::syscall(libc::SYS_io_destroy, context) };
}

/// What is left without AIO: a client that fills its counter at the right moment stops its own device.
fn write_if_ready(eventfd: &OwnedFd) -> bool {
    let mut ready = [PollFd::new(eventfd, PollFlags::OUT)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // A counter at its very end is no error of the poll, but reported as one by itself.
    let room = poll(&mut ready, Some(&now)).is_ok() && ready[0].revents().contains(PollFlags::OUT);
    room && rustix::io::write(eventfd, &1u64.to_ne_bytes()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{eventfd, EventfdFlags};
    use std::sync::mpsc::channel;
    use std::time::Duration;

    fn count(fd: &OwnedFd) -> u64 {
        let mut bytes = [0; 8];
        rustix::io::read(fd, &mut bytes).map_or(0, |_| u64::from_ne_bytes(bytes))
    }

    #[test]
    fn signal_counts_beyond_the_request_limit() {
        let signaller = Signaller::new();
        let fd = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        for n in 0..1000 {
            assert!(signaller.signal(&fd), "{n}");
        }
        assert_eq!(count(&fd), 1000);
        let (_, pipe) = rustix::pipe::pipe().unwrap();
        assert!(!signaller.signal(&pipe) || signaller.aio.is_none());
    }

    #[test]
    fn signal_never_waits_for_a_full_counter() {
        // With and without AIO.
        for signaller in [Signaller::new(), Signaller { aio: None }] {
            // A write can fill a counter up to the last but one; the kernel, up to the last.
            for further in [0, 1, 2] {
                let fd = eventfd(0, EventfdFlags::empty()).unwrap();
                rustix::io::write(&fd, &(u64::MAX - 1).to_ne_bytes()).unwrap();
                for _ in 0..further {
                    Signaller::new().signal(&fd);
                }
                let (done, wait) = channel();
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        signaller.signal(&fd);
                        done.send(()).unwrap();
                    });
                    let waited = wait.recv_timeout(Duration::from_secs(5)).is_err();
                    if waited {
                        count(&fd); // lets the thread go
                    }
                    assert!(!waited, "{further}");
                });
            }
        }
    }
}
