// SPDX-License-Identifier: Apache-2.0

//! The trace of a program, as `shim/memory.c` writes it.

use std::fmt;

use pm::Error;
use spec::nearpm::{Command, Operation};

/// Bytes of an event: its kind, a number of bytes, and an offset in a device's window,
/// little-endian.
const EVENT: usize = 16;
/// Events of a command: each has one more of its arguments.
const COMMAND: usize = 6;

/// An access of a program to persistent memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// `clwb` of the lines of a range.
    Flush {
        /// In the window.
        place: u64,
        /// Of the range.
        bytes: u64,
    },
    /// `sfence`.
    Fence,
    /// A copy past the cache.
    Stream {
        /// In the window.
        place: u64,
        /// Of the range.
        bytes: u64,
    },
    /// A command to the engine.
    Command(Command),
    /// An outermost transaction begins.
    Transaction,
    /// It has been committed or aborted, and the program goes on.
    End,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Flush { place, bytes } => write!(f, "CPU     clwb of {bytes} bytes, {place:#x}"),
            Event::Fence => write!(f, "CPU     sfence"),
            Event::Stream { place, bytes } => {
                write!(f, "CPU     ntstore of {bytes} bytes, {place:#x}")
            }
            Event::Command(c) => {
                write!(
                    f,
                    "device  {:?}, log {} of pool {}",
                    c.operation, c.thread, c.pool
                )?;
                match c.operation {
                    Operation::Undo => write!(f, ": {} bytes, {:#x}", c.bytes, c.address),
                    _ => Ok(()),
                }
            }
            Event::Transaction => write!(f, "CPU     a transaction begins"),
            Event::End => write!(f, "CPU     it has ended"),
        }
    }
}

fn word(event: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([event[at], event[at + 1], event[at + 2], event[at + 3]])
}

fn place(event: &[u8]) -> u64 {
    u64::from(word(event, 12)) << 32 | u64::from(word(event, 8))
}

/// Parses the events of a trace.
pub fn parse(bytes: &[u8]) -> pm::Result<Vec<Event>> {
    let format_error = |at: usize| Error::Invalid(format!("the trace is broken: event {at}"));
    let mut events = Vec::new();
    let mut rest = bytes.chunks_exact(EVENT).enumerate();
    if bytes.len() % EVENT != 0 {
        return Err(format_error(bytes.len() / EVENT));
    }
    while let Some((at, event)) = rest.next() {
        let (what, size) = (word(event, 0), word(event, 4));
        let (place, bytes) = (place(event), u64::from(size));
        events.push(match what {
            1 => Event::Flush { place, bytes },
            2 => Event::Fence,
            3 => Event::Stream { place, bytes },
            4 => {
                // The trace leaves out the first word, which is 0.
                let mut words = [0; COMMAND + 2];
                words[1] = bytes;
                words[2] = place;
                for word in &mut words[3..] {
                    let (_, next) = rest.next().ok_or_else(|| format_error(at))?;
                    *word = self::place(next);
                }
                Event::Command(Command::from_words(&words).ok_or_else(|| format_error(at))?)
            }
            5 => Event::Transaction,
            6 => Event::End,
            _ => return Err(format_error(at)),
        });
    }
    Ok(events)
}

/// True if the engine executes it while the program continues.
pub(crate) fn is_posted(operation: Operation) -> bool {
    matches!(operation, Operation::Undo | Operation::Commit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(what: u32, size: u32, place: u64) -> Vec<u8> {
        let mut bytes = what.to_le_bytes().to_vec();
        bytes.extend(size.to_le_bytes());
        bytes.extend(place.to_le_bytes());
        bytes
    }

    #[test]
    fn trace_with_events_of_all_kinds_is_parsed() {
        let mut command = Command::new(Operation::Undo, 0, 3, 2);
        (command.address, command.bytes) = (0x7000, 40);
        let arguments = command.arguments();
        let mut bytes = [
            event(5, 0, 0),
            event(1, 70, 100),
            event(2, 0, 0),
            event(3, 4096, 8192),
        ]
        .concat();
        bytes.extend(event(4, arguments[0] as u32, arguments[1]));
        for argument in &arguments[2..] {
            bytes.extend(event(4, 0, *argument));
        }
        let flush = Event::Flush {
            place: 100,
            bytes: 70,
        };
        let stream = Event::Stream {
            place: 8192,
            bytes: 4096,
        };
        let all = vec![
            Event::Transaction,
            flush,
            Event::Fence,
            stream,
            Event::Command(command),
        ];
        assert_eq!(parse(&bytes).unwrap(), all);
        for cut in [1, 15, 17, bytes.len() - 1, bytes.len() - 16] {
            assert!(
                parse(&bytes[..cut])
                    .unwrap_err()
                    .to_string()
                    .contains("broken"),
                "{cut}"
            );
        }
        assert_eq!(parse(&event(6, 0, 0)).unwrap(), [Event::End]);
        assert!(parse(&event(7, 0, 0)).is_err());
        assert!(parse(&event(4, 0xFF, 0).repeat(6)).is_err());
    }
}
