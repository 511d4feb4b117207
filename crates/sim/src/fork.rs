// SPDX-License-Identifier: Apache-2.0

//! Copies of this process, for campaigns that try different ends of one run: power cuts, resets,
//! other settings.
//!
//! A run reaches a moment, a copy of the process ends the run there in a different way and reports
//! its result, and the original continues unaffected. The copy contains everything: devices on
//! either model, links, hosts and programs; only changed pages cost memory. A device therefore
//! needs no code to save its state, and a copy starts within about a millisecond.
//!
//! Media in files, media in memory that clients share, traces and waveforms cannot be copied,
//! because the copy would write to the original's. While this process has any of them, a copy is
//! refused. Only the calling thread exists in the copy, so no other thread may hold a lock that the
//! copy needs.

use std::any::Any;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;

/// Why there is no copy, or no answer from it; one line.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// The process has something that a copy would share with it.
    #[error(
        "a copy of this process would share its {0}: devices that are copied have media in \
         memory, and neither traces nor waveforms"
    )]
    Shares(String),
    /// The operating system refuses.
    #[error("no copy of this process: {0}")]
    Os(#[source] io::Error),
    /// The copy panicked, with this message.
    #[error("a copy of this process panicked: {0}")]
    Panicked(String),
    /// The copy ended without an answer: the status of `waitpid`.
    #[error("{}", ended(*.0))]
    Ended(i32),
    /// Another process has started the copy.
    #[error("this copy was started by process {0}: only that one has its answer")]
    Foreign(u32),
}

fn ended(status: i32) -> String {
    match libc::WIFSIGNALED(status) {
        true => format!(
            "a copy of this process was ended by signal {}",
            libc::WTERMSIG(status)
        ),
        false => format!(
            "a copy of this process ended with status {} before its answer",
            libc::WEXITSTATUS(status)
        ),
    }
}

/// A resource that a copy would share with the process, while this value lives.
#[derive(Debug)]
pub(crate) struct SharedResource(u64);

static SHARED: Mutex<(u64, Vec<(u64, String)>)> = Mutex::new((0, Vec::new()));

fn shared_resources() -> MutexGuard<'static, (u64, Vec<(u64, String)>)> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SharedResource {
    pub(crate) fn new(what: String) -> SharedResource {
        let mut shared = shared_resources();
        shared.0 += 1;
        let number = shared.0;
        shared.1.push((number, what));
        SharedResource(number)
    }
}

impl Drop for SharedResource {
    fn drop(&mut self) {
        shared_resources().1.retain(|(number, _)| *number != self.0);
    }
}

/// Why this process cannot be copied now: the resource that a copy would share.
pub fn obstacle() -> Option<String> {
    shared_resources().1.first().map(|(_, what)| what.clone())
}

/// A running copy of this process. Dropping it ends the copy. If the original is killed, the copy
/// ends with its work.
///
/// It belongs to the process that started it. A copy of that process inherits the value, but can
/// neither end the copy nor read its answer.
#[derive(Debug)]
pub struct Fork {
    pid: libc::pid_t,
    answer: File,
    owner: u32,
    waited: bool,
}

/// Which of the two processes this one is after a split.
#[derive(Debug)]
pub enum ForkSide {
    /// The original, with a handle to the copy.
    Original(Fork),
    /// The copy, which has to answer.
    Copy(Reply),
}

/// The answer that a copy has to send. The copy ends when this is dropped.
#[derive(Debug)]
pub struct Reply(File);

impl Reply {
    /// Sends the answer and ends this process without running anything else.
    pub fn send(self, bytes: &[u8]) -> ! {
        self.end(0, bytes)
    }

    fn end(mut self, tag: u8, bytes: &[u8]) -> ! {
        let mut head = [tag; 9];
        head[1..].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        let sent = self
            .0
            .write_all(&head)
            .and_then(|()| self.0.write_all(bytes));
        // SAFETY: ends the process at once; the original still writes its buffered output.
        unsafe { libc::_exit(i32::from(sent.is_err())) }
    }
}

impl Drop for Reply {
    /// A copy without a reply must not continue as if it were its original.
    fn drop(&mut self) {
        // SAFETY: as in `end`.
        unsafe { libc::_exit(1) }
    }
}

impl Fork {
    /// Copies this process. The copy runs `work`, answers with its result, and ends without running
    /// anything else.
    pub fn start(work: impl FnOnce() -> Vec<u8>) -> Result<Fork, ForkError> {
        match Fork::split()? {
            ForkSide::Original(fork) => Ok(fork),
            ForkSide::Copy(reply) => match catch_unwind(AssertUnwindSafe(work)) {
                Ok(bytes) => reply.send(&bytes),
                Err(panic) => reply.end(1, panic_message(&*panic).as_bytes()),
            },
        }
    }

    /// Copies this process; the call returns in both. For a copy that has to continue at the same
    /// place as its original.
    pub fn split() -> Result<ForkSide, ForkError> {
        // Held across the fork, so that the lock is free in the copy.
        let held = shared_resources();
        if let Some((_, what)) = held.1.first() {
            return Err(ForkError::Shares(what.clone()));
        }
        let (answer, to) = pipe().map_err(ForkError::Os)?;
        let owner = std::process::id();
        // SAFETY: the copy runs the same code as this thread, on a copy of the same memory. The
        // module's documentation states the rule for other threads.
        match unsafe { libc::fork() } {
            -1 => Err(ForkError::Os(io::Error::last_os_error())),
            0 => {
                drop((held, answer));
                Ok(ForkSide::Copy(Reply(File::from(to))))
            }
            pid => Ok(ForkSide::Original(Fork {
                pid,
                answer: answer.into(),
                owner,
                waited: false,
            })),
        }
    }

    /// Whether the copy has answered or ended, waiting for at most `within`. If so,
    /// [`Fork::answer`] does not block for long.
    pub fn is_ready(&self, within: Duration) -> bool {
        let mut ready = [PollFd::new(&self.answer, PollFlags::IN)];
        let within = Timespec {
            tv_sec: within.as_secs() as i64,
            tv_nsec: within.subsec_nanos().into(),
        };
        match poll(&mut ready, Some(&within)) {
            Ok(0) => !self.is_running(),
            // A signal carries no information about the copy.
            Err(Errno::INTR) => false,
            _ => true,
        }
    }

    /// Waits for the end of the copy; the result of its work.
    pub fn answer(mut self) -> Result<Vec<u8>, ForkError> {
        if self.owner != std::process::id() {
            return Err(ForkError::Foreign(self.owner));
        }
        // The answer carries its length, because copies of the copy may keep the pipe open for
        // longer than it lives.
        let mut head = [0; 9];
        let mut bytes = Vec::new();
        let mut read = self.read(&mut head);
        if read.is_ok() {
            let length = u64::from_le_bytes([1, 2, 3, 4, 5, 6, 7, 8].map(|i| head[i]));
            bytes.resize(length as usize, 0);
            read = self.read(&mut bytes);
        }
        let status = self.wait();
        match (read, head[0]) {
            (Ok(()), 0) => Ok(bytes),
            (Ok(()), _) => Err(ForkError::Panicked(
                String::from_utf8_lossy(&bytes).into_owned(),
            )),
            (Err(error), _) if error.kind() != io::ErrorKind::UnexpectedEof => {
                Err(ForkError::Os(error))
            }
            _ => Err(status.map_or_else(ForkError::Os, ForkError::Ended)),
        }
    }

    /// Fills `to`, unless the copy ends first.
    fn read(&mut self, to: &mut [u8]) -> io::Result<()> {
        let mut at = 0;
        while at < to.len() {
            let mut ready = [PollFd::new(&self.answer, PollFlags::IN)];
            let some = Timespec {
                tv_sec: 0,
                tv_nsec: 20_000_000,
            };
            match poll(&mut ready, Some(&some)) {
                // No data: check whether the copy is still running.
                Ok(0) if !self.is_running() => {
                    ready[0].clear_revents();
                    if poll(&mut ready, Some(&Timespec::default())) == Ok(0) {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => match self.answer.read(&mut to[at..])? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    more => at += more,
                },
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Whether the copy has not ended. Its status remains available.
    fn is_running(&self) -> bool {
        // SAFETY: an all-zero structure, which the call fills.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            let pid = self.pid as libc::id_t;
            libc::waitid(libc::P_PID, pid, &mut info, options) == 0 && info.si_pid() == 0
        }
    }

    /// The exit status of the copy. An error if the process ignores SIGCHLD, so that the system
    /// drops the status.
    fn wait(&mut self) -> io::Result<i32> {
        self.waited = true;
        let mut status = 0;
        loop {
            // SAFETY: the process is a child that has not been waited for.
            if unsafe { libc::waitpid(self.pid, &mut status, 0) } == self.pid {
                return Ok(status);
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}

impl Drop for Fork {
    fn drop(&mut self) {
        if !self.waited && self.owner == std::process::id() {
            // SAFETY: the process is a child that has not been waited for, so its number is still
            // valid.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
            let _ = self.wait();
        }
    }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: there is room for two descriptors, which nothing else owns.
    unsafe {
        match libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) {
            0 => Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a message".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Media, Output};

    /// A resource of one test would make the forks of another fail.
    static ALONE: Mutex<()> = Mutex::new(());

    #[test]
    fn fork_copy_changes_nothing_of_the_original() {
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

    /// Other tests of this process temporarily have media in files.
    fn retry(mut work: impl FnMut() -> Vec<u8>) -> Fork {
        loop {
            match Fork::start(&mut work) {
                Ok(fork) => return fork,
                Err(ForkError::Shares(_)) => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn fork_reports_how_a_copy_ended() {
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
        // This copy is dropped without waiting.
        drop(retry(|| loop {
            std::thread::sleep(std::time::Duration::from_secs(1));
        }));
    }

    /// A copy that continues at the same place as its original.
    #[test]
    fn fork_split_continues_on_both_sides() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let split = |lost: bool| loop {
            match Fork::split() {
                Ok(ForkSide::Original(fork)) => break fork,
                Ok(ForkSide::Copy(reply)) if lost => drop(reply),
                Ok(ForkSide::Copy(reply)) => reply.send(b"the copy"),
                Err(ForkError::Shares(_)) => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(error) => panic!("{error}"),
            }
        };
        let fork = split(false);
        while !fork.is_ready(Duration::from_millis(1)) {}
        assert_eq!(fork.answer().unwrap(), b"the copy");
        let error = split(true).answer().unwrap_err().to_string();
        assert!(error.contains("status 1"), "{error}");
    }

    /// A copy inherits its original's handles, and makes copies itself.
    #[test]
    fn fork_copies_of_copies_are_independent() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut first = Some(retry(|| {
            std::thread::sleep(std::time::Duration::from_millis(300));
            vec![1]
        }));
        let foreign = retry(|| {
            let error = first.take().unwrap().answer().unwrap_err();
            error.to_string().into_bytes()
        });
        let text = String::from_utf8(foreign.answer().unwrap()).unwrap();
        assert!(text.contains("was started by process"), "{text}");
        retry(|| {
            drop(first.take());
            Vec::new()
        })
        .answer()
        .unwrap();
        assert_eq!(first.unwrap().answer().unwrap(), [1]);
        // A copy of the copy runs for long; the copy itself ends.
        let start = std::time::Instant::now();
        let error = retry(|| {
            let own = Fork::start(|| {
                std::thread::sleep(std::time::Duration::from_secs(30));
                Vec::new()
            });
            std::mem::forget(own);
            std::process::abort()
        })
        .answer()
        .unwrap_err();
        assert!(error.to_string().contains("signal 6"), "{error}");
        assert!(
            start.elapsed().as_secs() < 25,
            "it waited for the other one"
        );
    }

    #[test]
    fn fork_refuses_what_would_be_shared() {
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
