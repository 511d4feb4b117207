// SPDX-License-Identifier: Apache-2.0

//! Adds to an eventfd without waiting for it.
//!
//! A write waits while the counter is full, unless the descriptor is nonblocking. The client can
//! change both at any moment, even between a check and the write. But the kernel itself adds
//! without waiting: when an asynchronous read (Linux AIO) completes, it signals the eventfd of the
//! request. So a signal is an asynchronous read of zero bytes.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::{memfd_create, MemfdFlags};

/// Requests between two collections of completions.
const MAX_REQUESTS: usize = 64;
/// `IOCB_FLAG_RESFD`: `resfd` is an eventfd.
const WITH_EVENTFD: u32 = 1;

/// `struct iocb`. All zeros is a read of no bytes.
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
    /// A context of Linux AIO, and a file to read nothing from. `None`: the system has no AIO.
    aio: Option<(libc::c_ulong, OwnedFd)>,
}

impl Signaller {
    pub(crate) fn new() -> Signaller {
        let mut context: libc::c_ulong = 0;
        // SAFETY: the call writes one context, to a valid address.
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

    /// Adds 1 to an eventfd, unless it is full. Returns false for any other file.
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
        // SAFETY: the request is read during the call, and refers to no memory.
        let submit = || unsafe {
            libc::syscall(libc::SYS_io_submit, *context, 1usize, requests.as_ptr()) == 1
        };
        submit() || {
            self.drain_completions();
            submit()
        }
    }

    /// Collects completions, to make room for further requests.
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
        // SAFETY: the array has room for this number of events, and the time is valid.
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
    // SAFETY: the context is not used any more, and none of its requests refers to memory.
    unsafe { libc::syscall(libc::SYS_io_destroy, context) };
}

/// The fallback without AIO. A client that fills its counter at the right moment blocks its device.
fn write_if_ready(eventfd: &OwnedFd) -> bool {
    let mut ready = [PollFd::new(eventfd, PollFlags::OUT)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // Poll reports an error, rather than an event, for a counter at its very maximum.
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
        // With AIO, and without.
        for signaller in [Signaller::new(), Signaller { aio: None }] {
            // A write can fill a counter up to one below its maximum; the kernel can fill it
            // completely.
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
                        count(&fd); // releases the thread
                    }
                    assert!(!waited, "{further}");
                });
            }
        }
    }
}
