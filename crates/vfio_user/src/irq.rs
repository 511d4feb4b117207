// SPDX-License-Identifier: Apache-2.0

//! MSI-X vectors, signalled through the client's eventfds.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::signal::Signaller;

#[derive(Default)]
struct Vector {
    eventfd: Option<OwnedFd>,
    /// By a mask action, or in the MSI-X table.
    masked: [bool; 2],
}

/// What masks a vector.
#[derive(Clone, Copy)]
pub(crate) enum Mask {
    Action,
    Table,
}

/// All vectors of a function.
pub(crate) struct Vectors {
    vectors: Mutex<Vec<Vector>>,
    signaller: Signaller,
}

impl Vectors {
    pub(crate) fn new(count: u16) -> Vectors {
        let vectors = (0..count).map(|_| Vector::default()).collect();
        Vectors {
            vectors: Mutex::new(vectors),
            signaller: Signaller::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vector>> {
        self.vectors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Attaches an eventfd to a vector, or detaches it. Returns false if it is no eventfd, or if
    /// there is no such vector.
    pub(crate) fn attach(&self, vector: usize, eventfd: Option<OwnedFd>) -> bool {
        if eventfd.as_ref().is_some_and(|fd| !is_eventfd(fd)) {
            return false;
        }
        match self.lock().get_mut(vector) {
            Some(v) => {
                v.eventfd = eventfd;
                true
            }
            None => false,
        }
    }

    /// Masks or unmasks a vector.
    pub(crate) fn mask(&self, vector: usize, by: Mask, masked: bool) {
        if let Some(v) = self.lock().get_mut(vector) {
            v.masked[by as usize] = masked;
        }
    }

    /// Detaches all eventfds, and removes all masks.
    pub(crate) fn clear(&self) {
        self.lock().iter_mut().for_each(|v| *v = Vector::default());
    }

    /// Which vectors may send.
    pub(crate) fn open(&self) -> Vec<bool> {
        let open = |v: &Vector| v.eventfd.is_some() && v.masked == [false; 2];
        self.lock().iter().map(open).collect()
    }

    /// Interrupts the client. If its counter is full, the interrupt is lost, but nothing waits.
    /// Returns false if no eventfd is attached.
    pub(crate) fn signal(&self, vector: usize) -> bool {
        let vectors = self.lock();
        let Some(fd) = vectors.get(vector).and_then(|v| v.eventfd.as_ref()) else {
            return false;
        };
        self.signaller.signal(fd)
    }
}

/// A write to any other file could have further effects.
fn is_eventfd(fd: &OwnedFd) -> bool {
    let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
    std::fs::read_link(link).is_ok_and(|to| to.as_os_str() == "anon_inode:[eventfd]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{eventfd, EventfdFlags};

    fn count(fd: &OwnedFd) -> u64 {
        let mut bytes = [0; 8];
        match rustix::io::read(fd, &mut bytes) {
            Ok(8) => u64::from_ne_bytes(bytes),
            _ => 0,
        }
    }

    #[test]
    fn irq_signals_only_the_attached_eventfd() {
        let vectors = Vectors::new(3);
        let fd = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        assert!(!vectors.signal(1));
        assert!(vectors.attach(1, Some(fd.try_clone().unwrap())));
        assert!(!vectors.attach(3, Some(fd.try_clone().unwrap())));
        assert!(vectors.signal(1) && vectors.signal(1));
        assert!(!vectors.signal(0) && !vectors.signal(7));
        assert_eq!(count(&fd), 2);
        assert_eq!(vectors.open(), [false, true, false]);
        vectors.mask(1, Mask::Table, true);
        vectors.mask(9, Mask::Action, true);
        assert_eq!(vectors.open(), [false; 3]);
        vectors.clear();
        assert!(!vectors.signal(1));
    }

    #[test]
    fn irq_accepts_only_eventfds() {
        let vectors = Vectors::new(1);
        let (_, pipe) = rustix::pipe::pipe().unwrap();
        assert!(!vectors.attach(0, Some(pipe)));
    }
}
