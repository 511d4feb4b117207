// SPDX-License-Identifier: Apache-2.0

//! Messages of the vfio-user protocol: framing, file descriptors and fields.
//!
//! A message is read completely, by the length in its header, before it is decoded. So the content
//! of one message can't shift the next one. Fields are read with bounds checks.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use rustix::net::{
    recvmsg, sendmsg, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

/// Bytes of a header.
const HEADER: usize = 16;
/// Most file descriptors of a message.
pub(crate) const MAX_FDS: usize = 16;
/// Most bytes of a region access.
pub(crate) const MAX_TRANSFER: usize = 1 << 20;
/// The longest message: a region write of the longest transfer.
const MAX_MESSAGE: usize = MAX_TRANSFER + 64;

const REPLY: u32 = 1;
const NO_REPLY: u32 = 1 << 4;
const ERROR: u32 = 1 << 5;

/// Command numbers.
pub(crate) mod command {
    pub const VERSION: u16 = 1;
    pub const DMA_MAP: u16 = 2;
    pub const DMA_UNMAP: u16 = 3;
    pub const DEVICE_GET_INFO: u16 = 4;
    pub const DEVICE_GET_REGION_INFO: u16 = 5;
    pub const DEVICE_GET_IRQ_INFO: u16 = 7;
    pub const DEVICE_SET_IRQS: u16 = 8;
    pub const REGION_READ: u16 = 9;
    pub const REGION_WRITE: u16 = 10;
    pub const DEVICE_RESET: u16 = 13;
}

/// A message of the client.
pub(crate) struct Message {
    pub id: u16,
    pub command: u16,
    pub no_reply: bool,
    pub body: Vec<u8>,
    pub fds: Vec<OwnedFd>,
}

/// The reply to a message.
#[derive(Default)]
pub(crate) struct Reply<'a> {
    pub body: Vec<u8>,
    pub fd: Option<BorrowedFd<'a>>,
}

impl Reply<'_> {
    pub(crate) fn of(body: Vec<u8>) -> Self {
        Reply { body, fd: None }
    }
}

/// Receives the next message. `None`: the client has closed the connection between two messages. An
/// error ends the connection, as the start of the next message is unknown. With a deadline, the
/// whole message has to arrive by then.
pub(crate) fn receive(
    stream: &mut UnixStream,
    deadline: Option<Instant>,
) -> io::Result<Option<Message>> {
    let mut header = [0; HEADER];
    let mut fds = Vec::new();
    let mut have = 0;
    while have < HEADER {
        // Space for one descriptor more than allowed. Without it, the kernel would silently drop
        // the excess.
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS + 1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut part = [IoSliceMut::new(&mut header[have..])];
        set_deadline(stream, deadline)?;
        let received = recvmsg(&*stream, &mut part, &mut ancillary, RecvFlags::CMSG_CLOEXEC);
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(more) = message {
                fds.extend(more);
            }
        }
        match received {
            Ok(r) if r.bytes == 0 && have == 0 => return Ok(None),
            Ok(r) if r.bytes == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(r) => have += r.bytes,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if fds.len() > MAX_FDS {
            return Err(invalid("too many file descriptors".into()));
        }
    }
    let size = u32_at(&header, 4).unwrap_or(0) as usize;
    if !(HEADER..=MAX_MESSAGE).contains(&size) {
        return Err(invalid(format!("a message of {size} bytes")));
    }
    let flags = u32_at(&header, 8).unwrap_or(0);
    if flags & 0xF != 0 {
        return Err(invalid(format!("a message with flags {flags:#x}")));
    }
    let mut body = vec![0; size - HEADER];
    let mut have = 0;
    while have < body.len() {
        set_deadline(stream, deadline)?;
        match stream.read(&mut body[have..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(more) => have += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(Message {
        id: u16_at(&header, 0).unwrap_or(0),
        command: u16_at(&header, 2).unwrap_or(0),
        no_reply: flags & NO_REPLY != 0,
        body,
        fds,
    }))
}

/// Sends a reply or an error number.
pub(crate) fn send(
    stream: &mut UnixStream,
    id: u16,
    command: u16,
    reply: Result<Reply<'_>, u32>,
) -> io::Result<()> {
    let (flags, error, reply) = match reply {
        Ok(reply) => (REPLY, 0, reply),
        Err(errno) => (REPLY | ERROR, errno, Reply::default()),
    };
    let mut bytes = Vec::with_capacity(HEADER + reply.body.len());
    bytes.extend(id.to_le_bytes());
    bytes.extend(command.to_le_bytes());
    bytes.extend(((HEADER + reply.body.len()) as u32).to_le_bytes());
    bytes.extend(flags.to_le_bytes());
    bytes.extend(error.to_le_bytes());
    bytes.extend(reply.body);
    let Some(fd) = reply.fd else {
        return stream.write_all(&bytes);
    };
    let fds = [fd];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    let sent = sendmsg(
        &*stream,
        &[IoSlice::new(&bytes)],
        &mut ancillary,
        SendFlags::NOSIGNAL,
    )?;
    stream.write_all(&bytes[sent..])
}

/// Limits the wait of the next read to the deadline.
fn set_deadline(stream: &UnixStream, deadline: Option<Instant>) -> io::Result<()> {
    let Some(deadline) = deadline else {
        return Ok(());
    };
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    stream.set_read_timeout(Some(left))
}

/// Answers the first message of a client, which has arrived, with an error number. Closes the
/// connection without waiting.
pub(crate) fn reject_client(mut stream: UnixStream, errno: u32) {
    // One read and one write, so the client can't delay this.
    let mut first = [0; 512];
    let read = match stream.set_nonblocking(true) {
        Ok(()) => stream.read(&mut first).unwrap_or(0),
        Err(_) => 0,
    };
    if read >= HEADER {
        let (id, command) = (u16_at(&first, 0), u16_at(&first, 2));
        let _ = send(
            &mut stream,
            id.unwrap_or(0),
            command.unwrap_or(0),
            Err(errno),
        );
    }
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// The 16-bit field at a byte offset, if there is one.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let field = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(field.try_into().ok()?))
}

/// The 32-bit field at a byte offset, if there is one.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let field = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(field.try_into().ok()?))
}

/// The 64-bit field at a byte offset, if there is one.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let field = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(field.try_into().ok()?))
}
