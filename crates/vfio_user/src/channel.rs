// SPDX-License-Identifier: Apache-2.0

//! The channel for simulated time between an emulator and its devices.
//!
//! The emulator connects to a Unix socket. The server sends [`GREETING`] with the descriptor of a
//! page. Then the emulator sends requests, and waits for the reply to each. All numbers are
//! 64-bit, little-endian, and times are in ps from the connection on.
//!
//! | message | words |
//! |---|---|
//! | request | the time until which the devices are to run; 1 to stop at an interrupt (idle CPU) |
//! | reply | the time reached; interrupts signalled; the time before which nothing happens |
//!
//! | word of the page | written by | content |
//! |---|---|---|
//! | 0 | emulator | its time, before each access to a device |
//! | 1 | server | the time before which nothing happens, after each access and request |
//! | 2 | both | the time that accesses have taken; the emulator takes it |
//!
//! [`NEVER`] stands for a time that does not come.

use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{poll, PollFd, PollFlags};
use rustix::net::{sendmsg, SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use sim::Time;

use crate::peer::hung_up;
use crate::stop::StopSignal;
use crate::time_page::{TimePage, NEVER};
use crate::timed::TimedState;

/// The first bytes of the server. The number is that of the protocol.
const GREETING: &[u8; 8] = b"NSTIME01";
/// How many steps the devices take between two checks whether the emulator still waits for them.
const STEPS: u32 = 256;

/// The thread that answers the emulator.
pub(crate) struct Channel {
    pub listener: UnixListener,
    pub page: Arc<TimePage>,
    pub state: Arc<TimedState>,
    pub stop: Arc<StopSignal>,
    pub emulator: Arc<Emulator>,
}

/// The emulator that is connected.
#[derive(Default)]
pub(crate) struct Emulator(Mutex<Option<UnixStream>>);

impl Emulator {
    fn lock(&self) -> MutexGuard<'_, Option<UnixStream>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the connection.
    pub(crate) fn close(&self) {
        if let Some(stream) = &*self.lock() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Channel {
    /// Serves one emulator after another.
    pub(crate) fn run(self) {
        while self.wait_for_emulator() {
            let Ok((stream, _)) = self.listener.accept() else {
                // The process may be out of file descriptors for a while.
                std::thread::sleep(Duration::from_millis(100));
                continue;
            };
            // The emulator has ended, or did not keep to the protocol.
            let _ = self.serve(stream);
            *self.emulator.lock() = None;
            self.state.clocked.store(false, Ordering::Release);
        }
    }

    /// False: the server ends.
    fn wait_for_emulator(&self) -> bool {
        let mut fds = [
            PollFd::new(&self.listener, PollFlags::IN),
            PollFd::new(self.stop.event(), PollFlags::IN),
        ];
        // A signal may end the wait.
        while fds[0].revents().is_empty() && !self.stop.is_set() {
            let _ = poll(&mut fds, None);
        }
        !self.stop.is_set()
    }

    fn serve(&self, mut stream: UnixStream) -> std::io::Result<()> {
        *self.emulator.lock() = Some(stream.try_clone()?);
        self.state.lock().start_clock();
        self.state.clocked.store(true, Ordering::Release);
        self.greet(&stream)?;
        let mut request = [0; 16];
        while !self.stop.is_set() {
            stream.read_exact(&mut request)?;
            let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|n| request[at + n]));
            let until = match word(0) {
                NEVER.. => Time::MAX,
                until => Time(until),
            };
            let mut steps = 0;
            let mut cancel = || {
                steps += 1;
                steps % STEPS == 0 && hung_up(&stream)
            };
            let idle = word(8) != 0;
            let done = self.state.lock().advance(until, idle, &mut cancel);
            let words = [
                done.reached.0.min(NEVER),
                done.interrupts,
                done.next.0.min(NEVER),
            ];
            let reply: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            stream.write_all(&reply)?;
        }
        Ok(())
    }

    fn greet(&self, stream: &UnixStream) -> std::io::Result<()> {
        let fds = [self.page.file()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&fds));
        let flags = SendFlags::NOSIGNAL;
        sendmsg(stream, &[IoSlice::new(GREETING)], &mut ancillary, flags)?;
        Ok(())
    }
}
