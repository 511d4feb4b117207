//! Copies of this process, for campaigns that try many ends of one run: power cuts, resets, other
//! settings.
//!
//! A run goes on to a moment, a copy of the process ends it there in its own way and says what has
//! come of it, and the run goes on as if nothing had been. Everything is copied, and only what is
//! changed costs memory: devices on either engine, links, hosts, and the programs before them. So
//! there is nothing that a device has to save, nothing that it can forget, and each copy begins
//! within a millisecond or so.
//!
//! Media in files and in memory that clients share, traces and waveforms are not copied: a copy
//! would write to the original's. While this process has any, there are no copies of it. Of several
//! threads only the one that asks is in the copy: no other may hold a lock that the copy wants.

use std::any::Any;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;

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
    /// Another process has started the copy.
    Foreign(u32),
}

impl std::fmt::Display for ForkError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ForkError::Shares(what) => write!(
                f,
                "a copy of this process would share its {what}: devices that are copied have \
                    media in memory, and neither traces nor waveforms"
            ),
            ForkError::Os(error) => write!(f, "no copy of this process: {error}"),
            ForkError::Foreign(owner) => {
                write!(
                    f,
                    "this copy was started by process {owner}: only that one has its answer"
                )
            }
            ForkError::Panicked(text) => write!(f, "a copy of this process panicked: {text}"),
            ForkError::Ended(status) if libc::WIFSIGNALED(*status) => {
                write!(
                    f,
                    "a copy of this process was ended by signal {}",
                    libc::WTERMSIG(*status)
                )
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

/// What stands against a copy of this process: what the copy would share with it.
pub fn obstacle() -> Option<String> {
    shared_resources().1.first().map(|(_, what)| what.clone())
}

/// A copy of this process at its work. One that nobody asks for its answer is ended. One whose
/// original is killed ends with its work.
///
/// It belongs to the process that has started it: a copy of that one, which has this as well, can
/// neither end it nor take its answer.
#[derive(Debug)]
pub struct Fork {
    pid: libc::pid_t,
    answer: File,
    owner: u32,
    waited: bool,
}

/// Which of two equal processes this one is.
#[derive(Debug)]
pub enum ForkSide {
    /// The original, which has the copy.
    Original(Fork),
    /// The copy, which owes an answer.
    Copy(Reply),
}

/// What a copy owes its original. The copy ends with it.
#[derive(Debug)]
pub struct Reply(File);

impl Reply {
    /// Answers, and ends this process without running anything else.
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
        // SAFETY: ends the process at once: what it would still write, its original writes.
        unsafe { libc::_exit(i32::from(sent.is_err())) }
    }
}

impl Drop for Reply {
    /// A copy that loses this has nothing to answer, and must not go on as if it were its original.
    fn drop(&mut self) {
        // SAFETY: as in `end`.
        unsafe { libc::_exit(1) }
    }
}

impl Fork {
    /// Copies this process; the copy does `work`, answers with what that returns, and ends without
    /// running anything else.
    pub fn start(work: impl FnOnce() -> Vec<u8>) -> Result<Fork, ForkError> {
        match Fork::split()? {
            ForkSide::Original(fork) => Ok(fork),
            ForkSide::Copy(reply) => match catch_unwind(AssertUnwindSafe(work)) {
                Ok(bytes) => reply.send(&bytes),
                Err(panic) => reply.end(1, panic_message(&*panic).as_bytes()),
            },
        }
    }

    /// Copies this process: both return from here. For a copy that has to go on where its original
    /// is, up to its own end.
    pub fn split() -> Result<ForkSide, ForkError> {
        // Held over the fork, so that it is free in the copy.
        let held = shared_resources();
        if let Some((_, what)) = held.1.first() {
            return Err(ForkError::Shares(what.clone()));
        }
        let (answer, to) = pipe().map_err(ForkError::Os)?;
        let owner = std::process::id();
        // SAFETY: the copy runs what this thread would run, with the memory that this thread sees;
        // the module says of other threads.
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

    /// Whether the copy answers within this time, or has ended: [`Fork::answer`] does not wait long
    /// then.
    pub fn is_ready(&self, within: Duration) -> bool {
        let mut ready = [PollFd::new(&self.answer, PollFlags::IN)];
        let within = Timespec {
            tv_sec: within.as_secs() as i64,
            tv_nsec: within.subsec_nanos().into(),
        };
        match poll(&mut ready, Some(&within)) {
            Ok(0) => !self.is_running(),
            // A signal says nothing of the copy.
            Err(Errno::INTR) => false,
            _ => true,
        }
    }

    /// Waits for the copy's end; what its work returned.
    pub fn answer(mut self) -> Result<Vec<u8>, ForkError> {
        if self.owner != std::process::id() {
            return Err(ForkError::Foreign(self.owner));
        }
        // A copy says how long its answer is: its own copies may hold the pipe's other end for
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

    /// Reads all of `to`, unless the copy ends before.
    fn read(&mut self, to: &mut [u8]) -> io::Result<()> {
        let mut at = 0;
        while at < to.len() {
            let mut ready = [PollFd::new(&self.answer, PollFlags::IN)];
            let some = Timespec {
                tv_sec: 0,
                tv_nsec: 20_000_000,
            };
            match poll(&mut ready, Some(&some)) {
                // Nothing came: does it live?
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

    /// Whether the copy has not ended; its status stays to be asked for.
    fn is_running(&self) -> bool {
        // SAFETY: an empty structure, which the call fills.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            let pid = self.pid as libc::id_t;
            libc::waitid(libc::P_PID, pid, &mut info, options) == 0 && info.si_pid() == 0
        }
    }

    /// The copy's status at its end; an error where the process lets the system forget it (SIGCHLD
    /// is ignored).
    fn wait(&mut self) -> io::Result<i32> {
        self.waited = true;
        let mut status = 0;
        loop {
            // SAFETY: the process is ours, and nobody has waited for it.
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
            // SAFETY: the process is ours, and nobody has waited for it, so the number is still its
            // own.
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

fn panic_message(panic: &(dyn Any + Send)) -> String {
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

    /// Other tests of this process have media in files now and then.
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
        // Nobody waits for this one.
        drop(retry(|| loop {
            std::thread::sleep(std::time::Duration::from_secs(1));
        }));
    }

    /// A copy that goes on where its original is.
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

    /// A copy has its original's handles, and copies of its own.
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
        // What it has started goes on for long, and it ends.
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
