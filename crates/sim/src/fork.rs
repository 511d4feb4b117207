//! Copies of this process, for campaigns that try many ends of one run: power cuts, resets, other settings.
//!
//! A run goes on to a moment, a copy of the process ends it there in its own way and says what has come of it, and the run goes on
//! as if nothing had been. Everything is copied, and only what is changed costs memory: devices on either engine, links, hosts,
//! and the programs before them. So there is nothing that a device has to save, nothing that it can forget, and each copy begins within a
//! millisecond or so.
//!
//! Media in files and in memory that clients share, traces and waveforms are not copied: a copy would write to the original's. While this
//! process has any, there are no copies of it. Of several threads only the one that asks is in the copy: no other may hold a lock
//! that the copy wants.

use std::any::Any;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Why there is no copy, or no answer of one; one line.
#[derive(Debug)]
pub enum ForkError {
    /// The process has something that a copy would share with it.
    Shares(String),
    /// The operating system refuses.
    Os(io::Error),
    /// The copy panicked, with this message.
    Panicked(String),
    /// The copy ended without an answer: the status of `waitpid`.
    Ended(i32),
}

impl std::fmt::Display for ForkError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ForkError::Shares(what) => write!(
                f,
                "a copy of this process would share its {what}: devices that are copied have media in memory, and neither traces nor waveforms"
            ),
            ForkError::Os(error) => write!(f, "no copy of this process: {error}"),
            ForkError::Panicked(text) => write!(f, "a copy of this process panicked: {text}"),
            ForkError::Ended(status) if libc::WIFSIGNALED(*status) => {
                write!(f, "a copy of this process was ended by signal {}", libc::WTERMSIG(*status))
            }
            ForkError::Ended(status) => write!(
                f,
                "a copy of this process ended with status {} before its answer",
                libc::WEXITSTATUS(*status)
            ),
        }
    }
}

impl std::error::Error for ForkError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ForkError::Os(error) => Some(error),
            _ => None,
        }
    }
}

/// What a copy would share with the process, as long as this lives.
#[derive(Debug)]
pub(crate) struct Shared(u64);

static SHARED: Mutex<(u64, Vec<(u64, String)>)> = Mutex::new((0, Vec::new()));

fn shared() -> MutexGuard<'static, (u64, Vec<(u64, String)>)> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(crate) fn new(what: String) -> Shared {
        let mut shared = shared();
        shared.0 += 1;
        let number = shared.0;
        shared.1.push((number, what));
        Shared(number)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        shared().1.retain(|(number, _)| *number != self.0);
    }
}

/// What stands against a copy of this process: what the copy would share with it.
pub fn obstacle() -> Option<String> {
    shared().1.first().map(|(_, what)| what.clone())
}

/// A copy of this process at its work. One that nobody asks for its answer is ended.
#[derive(Debug)]
pub struct Fork {
    pid: libc::pid_t,
    answer: File,
    waited: bool,
}

impl Fork {
    /// Copies this process; the copy does `work`, answers with what that returns, and ends without running anything else.
    pub fn start(work: impl FnOnce() -> Vec<u8>) -> Result<Fork, ForkError> {
        // Held over the fork, so that it is free in the copy.
        let held = shared();
        if let Some((_, what)) = held.1.first() {
            return Err(ForkError::Shares(what.clone()));
        }
        let (answer, to) = pipe().map_err(ForkError::Os)?;
        // SAFETY: the copy runs what this thread would run, with the memory that this thread sees; the module says of other threads.
        match unsafe { libc::fork() } {
            -1 => Err(ForkError::Os(io::Error::last_os_error())),
            0 => {
                drop((held, answer));
                let mut to = File::from(to);
                let (tag, bytes) = match catch_unwind(AssertUnwindSafe(work)) {
                    Ok(bytes) => (0, bytes),
                    Err(panic) => (1, message(&*panic).into_bytes()),
                };
                let sent = to.write_all(&[tag]).and_then(|()| to.write_all(&bytes));
                // SAFETY: ends the process at once: what it would still write, its original writes.
                unsafe { libc::_exit(i32::from(sent.is_err())) }
            }
            pid => Ok(Fork {
                pid,
                answer: answer.into(),
                waited: false,
            }),
        }
    }

    /// Waits for the copy's end; what its work returned.
    pub fn answer(mut self) -> Result<Vec<u8>, ForkError> {
        let mut bytes = Vec::new();
        let read = self.answer.read_to_end(&mut bytes);
        let status = self.wait().map_err(ForkError::Os)?;
        read.map_err(ForkError::Os)?;
        match bytes.split_first() {
            Some((0, answer)) if status == 0 => Ok(answer.to_vec()),
            Some((1, text)) if status == 0 => {
                let text = String::from_utf8_lossy(text).into_owned();
                Err(ForkError::Panicked(text))
            }
            _ => Err(ForkError::Ended(status)),
        }
    }

    fn wait(&mut self) -> io::Result<i32> {
        let mut status = 0;
        loop {
            // SAFETY: the process is ours, and nobody has waited for it.
            if unsafe { libc::waitpid(self.pid, &mut status, 0) } == self.pid {
                self.waited = true;
                return Ok(status);
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                self.waited = true;
                return Err(error);
            }
        }
    }
}

impl Drop for Fork {
    fn drop(&mut self) {
        if !self.waited {
            // SAFETY: the process is ours, and nobody has waited for it, so the number is still its own.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
            let _ = self.wait();
        }
    }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors, which are ours alone.
    unsafe {
        match libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) {
            0 => Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a message".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Media, Output};

    /// What one test holds open would stand in another one's way.
    static ALONE: Mutex<()> = Mutex::new(());

    #[test]
    fn a_copy_changes_nothing_of_the_original() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut media = Media::memory(1 << 20).unwrap();
        media.write(4096, b"original");
        let mut number = 1;
        let copies: Vec<Fork> = (0..3u8)
            .map(|copy| {
                number += 1;
                retry(|| {
                    media.write(4096 + u64::from(copy), b"!");
                    let mut data = [0; 8];
                    media.read(4096, &mut data);
                    let mut answer = vec![number];
                    answer.extend(data);
                    answer
                })
            })
            .collect();
        let wanted: [&[u8]; 3] = [b"\x02!riginal", b"\x03o!iginal", b"\x04or!ginal"];
        for (copy, wanted) in copies.into_iter().zip(wanted) {
            assert_eq!(copy.answer().unwrap(), wanted);
        }
        let mut data = [0; 8];
        assert!(media.read(4096, &mut data) && &data == b"original");
    }

    /// Other tests of this process have media in files now and then.
    fn retry(mut work: impl FnMut() -> Vec<u8>) -> Fork {
        loop {
            match Fork::start(&mut work) {
                Ok(fork) => return fork,
                Err(ForkError::Shares(_)) => {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn what_becomes_of_a_copy_is_told() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let error = retry(|| panic!("no {}", "more")).answer().unwrap_err();
        assert_eq!(
            error.to_string(),
            "a copy of this process panicked: no more"
        );
        let error = retry(|| unsafe { libc::_exit(3) }).answer().unwrap_err();
        assert!(error.to_string().contains("status 3"), "{error}");
        let error = retry(|| std::process::abort()).answer().unwrap_err();
        assert!(error.to_string().contains("signal 6"), "{error}");
        let long = vec![7; 5 << 20];
        assert!(retry(|| long.clone()).answer().unwrap() == long);
        // Nobody waits for this one.
        drop(retry(|| loop {
            std::thread::sleep(std::time::Duration::from_secs(1));
        }));
    }

    #[test]
    fn what_would_be_shared_stands_against_it() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("media");
        let refused = || Fork::start(Vec::new).unwrap_err().to_string();
        let media = Media::file(&path, 4096).unwrap();
        assert!(refused().contains("would share its "));
        drop(media);
        let output = Output::open(&path).unwrap();
        assert!(refused().contains("would share its "));
        drop(output);
        let media = Media::shared(4096).unwrap();
        assert!(refused().contains("would share its "));
        drop(media);
        assert!(retry(Vec::new).answer().unwrap().is_empty());
    }
}
