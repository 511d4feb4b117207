// SPDX-License-Identifier: Apache-2.0

//! The process at the other end of a socket: whether it is still there, and whether it shares its
//! memory.
//!
//! A client that maps its file privately (QEMU's `share=off`) has separate copies of the pages that
//! it has written. The device does not see its commands, and the client does not see the device's
//! writes. No message reports this, but the kernel lists the mappings of a process.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use rustix::event::{poll, PollFd, PollFlags, Timespec};

/// Timeout of a poll that does not wait.
const NOW: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// Whether the other side has closed a connection.
pub(crate) fn hung_up(stream: &UnixStream) -> bool {
    let mut state = [PollFd::new(stream, PollFlags::RDHUP)];
    let _ = poll(&mut state, Some(&NOW));
    let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
    state[0].revents().intersects(gone)
}

/// A process on this machine, if it is known.
pub(crate) struct Peer(Option<i32>);

impl Peer {
    /// The process that has connected.
    pub(crate) fn of(stream: &UnixStream) -> Peer {
        let credentials = rustix::net::sockopt::socket_peercred(stream);
        Peer(credentials.ok().map(|c| c.pid.as_raw_nonzero().get()))
    }

    /// True if the process has mapped a file, and only privately. False if that is unknown: another
    /// user's mappings are not readable, for example.
    pub(crate) fn maps_only_privately(&self, file: impl AsFd) -> bool {
        let (Some(pid), Ok(stat)) = (self.0, rustix::fs::fstat(file)) else {
            return false;
        };
        let device = (
            rustix::fs::major(stat.st_dev),
            rustix::fs::minor(stat.st_dev),
        );
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"));
        maps.is_ok_and(|maps| only_private(&maps, device, stat.st_ino))
    }
}

/// True if a file has mappings, and none of them is shared. Lines are `start-end rwxp offset
/// major:minor inode path`.
fn only_private(maps: &str, device: (u32, u32), inode: u64) -> bool {
    let mut private = false;
    for line in maps.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, flags, _, on, number, ..] = words[..] else {
            continue;
        };
        let on = on.split_once(':').and_then(|(major, minor)| {
            let number = |text| u32::from_str_radix(text, 16).ok();
            Some((number(major)?, number(minor)?))
        });
        if on != Some(device) || number.parse() != Ok(inode) {
            continue;
        }
        if flags.ends_with('s') {
            return false;
        }
        private = true;
    }
    private
}

#[cfg(test)]
mod tests {
    use super::only_private;

    #[test]
    fn peer_with_one_shared_mapping_shares_its_file() {
        let line = |flags, on, inode| {
            format!("7f00-7f01 {flags} 00000000 {on} {inode}    /memfd:m0 (deleted)\n")
        };
        let (private, shared) = (line("rw-p", "00:1f", 7), line("rw-s", "00:1f", 7));
        let others = [
            line("rw-p", "00:1f", 8),
            line("rw-p", "08:1f", 7),
            "odd\n".into(),
        ]
        .concat();
        for (maps, only) in [
            (String::new(), false),
            (others.clone(), false),
            (private.clone(), true),
            ([&private[..], &others, &private].concat(), true),
            (shared.clone(), false),
            ([&private[..], &others, &shared].concat(), false),
        ] {
            assert_eq!(only_private(&maps, (0, 0x1F), 7), only, "{maps}");
        }
    }
}
