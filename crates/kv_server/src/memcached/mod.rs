// SPDX-License-Identifier: Apache-2.0

//! memcached's text protocol. Times to live other than 0 are refused, not ignored.

mod meta;

use std::sync::Mutex;

use pm::Error;
use sim::Time;

use crate::store::{AccessMode, RequestError, Store};
use crate::table::Table;
use crate::{
    is_text_start, lock, number, ForeignProtocol, Protocol, ProtocolHandler, Step, MAX_REPLY,
    MAX_VALUE,
};

/// Most bytes of a key, as in memcached.
const MAX_KEY: usize = 250;
/// Most bytes of a line: keys of a `get`.
const MAX_LINE: usize = 64 << 10;
/// Most keys of a `get`.
const MAX_KEYS: usize = 256;

/// Commands of memcached that are not supported, and that have no data block. The data after an
/// unknown name may be a block, and no byte of a block is a command.
const WITHOUT_BLOCK: [&[u8]; 14] = [
    b"touch",
    b"gat",
    b"gats",
    b"bget",
    b"slabs",
    b"lru",
    b"lru_crawler",
    b"watch",
    b"extstore",
    b"misbehave",
    b"shutdown",
    b"cache_memlimit",
    b"refresh_certs",
    b"debugtime",
];
/// Most bytes of a refused block that is read to its end: memcached's limit.
const MAX_SKIPPED: usize = i32::MAX as usize - 2;

#[derive(Default)]
pub struct Memcached {
    /// Remaining bytes of a refused block and its end.
    skip: usize,
}

fn is_valid_key(key: &[u8]) -> bool {
    (1..=MAX_KEY).contains(&key.len()) && !key.iter().any(u8::is_ascii_control)
}

/// The length of a data block.
fn block_bytes(word: &[u8]) -> Option<usize> {
    number::<usize>(word).filter(|bytes| *bytes <= MAX_SKIPPED)
}

/// Skips a refused block: none of its bytes is a request.
fn refused_block(me: &mut Memcached, bytes: usize, used: usize) -> Step {
    me.skip = bytes + 2;
    Step::Complete(used)
}

/// The condition of storing a value, and its combination with an old one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StoreMode {
    Set,
    Add,
    Replace,
    Append,
    Prepend,
}

/// The result of storing.
enum StoreOutcome {
    Stored,
    NotStored,
    /// The entry has changed since.
    Exists,
    NotFound,
    TooLarge,
}

/// Stores a value; with `unique` only if the entry has that number.
fn store_value(
    table: &mut Table<'_, '_>,
    key: &[u8],
    value: &[u8],
    flags: u32,
    mode: StoreMode,
    unique: Option<u64>,
) -> pm::Result<StoreOutcome> {
    let old = match (mode, unique) {
        (StoreMode::Set, None) => None,
        _ => table.get(key)?,
    };
    match (&old, unique) {
        (None, Some(_)) => return Ok(StoreOutcome::NotFound),
        (Some(old), Some(unique)) if old.unique != unique => return Ok(StoreOutcome::Exists),
        _ => {}
    }
    let (value, flags) = match (mode, old) {
        (StoreMode::Set, _) | (StoreMode::Add, None) | (StoreMode::Replace, Some(_)) => {
            (value.to_vec(), flags)
        }
        (StoreMode::Append, Some(old)) => ([&old.value[..], value].concat(), old.flags),
        (StoreMode::Prepend, Some(old)) => ([value, &old.value].concat(), old.flags),
        _ => return Ok(StoreOutcome::NotStored),
    };
    if value.len() > MAX_VALUE {
        return Ok(StoreOutcome::TooLarge);
    }
    table.put(key, &value, flags)?;
    Ok(StoreOutcome::Stored)
}

fn write_result(
    result: Result<Vec<u8>, RequestError>,
    quiet: bool,
    used: usize,
    out: &mut Vec<u8>,
) -> Step {
    match result {
        Ok(_) if quiet => {}
        Ok(reply) => out.extend(reply),
        Err(RequestError::Refused(_)) if quiet => {}
        Err(RequestError::Refused(text)) => {
            out.extend(Protocol::Memcached.error_line(&text).bytes());
        }
        Err(RequestError::Power) => return Step::Close,
    }
    Step::Complete(used)
}

fn client_error(out: &mut Vec<u8>, text: &str, quiet: bool, used: usize) -> Step {
    if !quiet {
        out.extend(format!("CLIENT_ERROR {text}\r\n").bytes());
    }
    Step::Complete(used)
}

/// `get` and `gets`: all of them in one transaction.
fn get(words: &[&[u8]], store: &Mutex<Store>, used: usize, out: &mut Vec<u8>) -> Step {
    let keys = &words[1..];
    if keys.is_empty() || keys.len() > MAX_KEYS || !keys.iter().all(|k| is_valid_key(k)) {
        let text = "allowed are 1 to 256 keys of 1 to 250 bytes";
        return client_error(out, text, false, used);
    }
    let result = lock(store).run(AccessMode::Read, |table| {
        let mut reply = Vec::new();
        for key in keys {
            let Some(entry) = table.get(key)? else {
                continue;
            };
            reply.extend(b"VALUE ");
            reply.extend(*key);
            reply.extend(format!(" {} {}", entry.flags, entry.value.len()).bytes());
            if words[0] == b"gets" {
                reply.extend(format!(" {}", entry.unique).bytes());
            }
            reply.extend(b"\r\n");
            reply.extend(&entry.value);
            reply.extend(b"\r\n");
            if reply.len() > MAX_REPLY {
                return Err(Error::Full(format!(
                    "the reply has more than {MAX_REPLY} bytes"
                )));
            }
        }
        reply.extend(b"END\r\n");
        Ok(reply)
    });
    write_result(result, false, used, out)
}

impl Memcached {
    /// `set`, `add`, `replace`, `append`, `prepend`, `cas`: the value follows the line.
    fn set(
        &mut self,
        words: &[&[u8]],
        input: &[u8],
        used: usize,
        store: &Mutex<Store>,
        out: &mut Vec<u8>,
    ) -> Step {
        let cas = words[0] == b"cas";
        let fields = 5 + usize::from(cas);
        let quiet = words.len() == fields + 1 && words[fields] == b"noreply";
        let bytes = words.get(4).and_then(|w| block_bytes(w));
        let Some(bytes) = bytes.filter(|_| words.len() == fields || quiet) else {
            // The begin of the next request is unknown.
            out.extend(b"CLIENT_ERROR bad command line format\r\n");
            return Step::Close;
        };
        let refuse = |me: &mut Memcached, out: &mut Vec<u8>, text: &str| {
            if !quiet {
                out.extend(format!("{text}\r\n").bytes());
            }
            refused_block(me, bytes, used)
        };
        if bytes > MAX_VALUE {
            return refuse(self, out, "SERVER_ERROR object too large for cache");
        }
        let unique = words.get(5).and_then(|w| number::<u64>(w)).filter(|_| cas);
        let flags = number::<u32>(words[2]);
        let (true, Some(flags), true) = (is_valid_key(words[1]), flags, !cas || unique.is_some())
        else {
            return refuse(self, out, "CLIENT_ERROR bad command line format");
        };
        if words[3] != b"0" {
            return refuse(
                self,
                out,
                "CLIENT_ERROR times to live are not kept: allowed is 0",
            );
        }
        let Some(value) = input.get(used..used + bytes + 2) else {
            return Step::NeedMore;
        };
        let Some(value) = value.strip_suffix(b"\r\n") else {
            if !quiet {
                out.extend(b"CLIENT_ERROR bad data chunk\r\n");
            }
            return Step::Close;
        };
        let mode = match words[0] {
            b"add" => StoreMode::Add,
            b"replace" => StoreMode::Replace,
            b"append" => StoreMode::Append,
            b"prepend" => StoreMode::Prepend,
            _ => StoreMode::Set,
        };
        let result = lock(store).run(AccessMode::Write, |table| {
            let outcome = store_value(table, words[1], value, flags, mode, unique)?;
            let text: &[u8] = match outcome {
                StoreOutcome::Stored => b"STORED\r\n",
                StoreOutcome::NotStored => b"NOT_STORED\r\n",
                StoreOutcome::Exists => b"EXISTS\r\n",
                StoreOutcome::NotFound => b"NOT_FOUND\r\n",
                StoreOutcome::TooLarge => b"SERVER_ERROR object too large for cache\r\n",
            };
            Ok(text.to_vec())
        });
        write_result(result, quiet, used + bytes + 2, out)
    }

    fn request(
        &mut self,
        input: &[u8],
        end: usize,
        store: &Mutex<Store>,
        out: &mut Vec<u8>,
    ) -> Step {
        let (line, used) = (&input[..end], end + 1);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let words: Vec<&[u8]> = line
            .split(|b| *b == b' ')
            .filter(|w| !w.is_empty())
            .collect();
        let Some(&name) = words.first() else {
            out.extend(b"ERROR\r\n");
            return Step::Complete(used);
        };
        // In the first words `noreply` may be a key. A client that sends it reads no reply, not
        // even an error.
        let least = match name {
            b"delete" => 2,
            b"incr" | b"decr" | b"touch" => 3,
            _ => 1,
        };
        let quiet = words.len() > least && words.last() == Some(&&b"noreply"[..]);
        let count = words.len() - usize::from(quiet);
        match name {
            b"get" | b"gets" => get(&words, store, used, out),
            b"set" | b"add" | b"replace" | b"append" | b"prepend" | b"cas" => {
                self.set(&words, input, used, store, out)
            }
            b"delete" if count == 2 && is_valid_key(words[1]) => {
                let result = lock(store).run(AccessMode::Write, |table| {
                    Ok(match table.remove(words[1])? {
                        true => b"DELETED\r\n".to_vec(),
                        false => b"NOT_FOUND\r\n".to_vec(),
                    })
                });
                write_result(result, quiet, used, out)
            }
            b"incr" | b"decr" if count == 3 && is_valid_key(words[1]) => {
                let Some(by) = number::<u64>(words[2]) else {
                    return client_error(out, "invalid numeric delta argument", quiet, used);
                };
                let result = lock(store).run(AccessMode::Write, |table| {
                    let Some(old) = table.get(words[1])? else {
                        return Ok(b"NOT_FOUND\r\n".to_vec());
                    };
                    let Some(value) = number::<u64>(&old.value) else {
                        let text =
                            "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
                        return Ok(text.into());
                    };
                    let new = match name {
                        b"incr" => value.wrapping_add(by),
                        _ => value.saturating_sub(by),
                    };
                    table.put(words[1], new.to_string().as_bytes(), old.flags)?;
                    Ok(format!("{new}\r\n").into_bytes())
                });
                write_result(result, quiet, used, out)
            }
            b"flush_all" if count == 1 || (count == 2 && words[1] == b"0") => {
                let done = lock(store).flush().map(|()| b"OK\r\n".to_vec());
                write_result(done, quiet, used, out)
            }
            b"version" => {
                out.extend(b"VERSION 1.6.0-nearside\r\n");
                Step::Complete(used)
            }
            b"verbosity" => write_result(Ok(b"OK\r\n".to_vec()), quiet, used, out),
            b"stats" => {
                let mut store = lock(store);
                let result = store
                    .run(AccessMode::Read, |table| Ok(table.len()))
                    .map(|items| {
                        let report = store.report();
                        format!("STAT curr_items {items}\r\nSTAT nearside {report}\r\nEND\r\n")
                            .into_bytes()
                    });
                write_result(result, false, used, out)
            }
            // An extension: the power fails now, or after a number of simulated ns.
            b"powercut" => {
                let later = words.get(1).map_or(Some(0), |w| number::<u32>(w));
                let Some(later) = later else {
                    let text = "powercut [NS]: allowed are 0 to 4294967295";
                    return client_error(out, text, false, used);
                };
                let done = lock(store).cut(Time::ns(u64::from(later)));
                write_result(done.map(|()| b"OK\r\n".to_vec()), false, used, out)
            }
            b"quit" => Step::Close,
            b"delete" | b"incr" | b"decr" | b"flush_all" => {
                client_error(out, "bad command line format", quiet, used)
            }
            _ if meta::is_meta(name) => meta::run(self, &words, input, used, store, out),
            // It is not supported, and the client reads no reply.
            b"touch" if quiet => Step::Complete(used),
            _ if WITHOUT_BLOCK.contains(&name) => {
                out.extend(b"ERROR\r\n");
                Step::Complete(used)
            }
            // As in memcached: a web page can make a browser on this machine send requests whose
            // bodies are commands.
            _ if words.last().is_some_and(|word| word.starts_with(b"HTTP/")) => {
                Step::Reject(ForeignProtocol::Http)
            }
            _ => {
                out.extend(b"ERROR\r\n");
                Step::Close
            }
        }
    }
}

impl ProtocolHandler for Memcached {
    fn step(&mut self, input: &[u8], store: &Mutex<Store>, out: &mut Vec<u8>) -> Step {
        if self.skip > 2 && !input.is_empty() {
            let gone = (self.skip - 2).min(input.len());
            self.skip -= gone;
            return Step::Partial(gone);
        }
        if self.skip > 0 {
            return match input.get(..2) {
                None => Step::NeedMore,
                Some(b"\r\n") => {
                    self.skip = 0;
                    Step::Complete(2)
                }
                // The block is longer than its line says, so the begin of the next request is
                // unknown.
                Some(_) => Step::Close,
            };
        }
        if input.first().is_some_and(|byte| !is_text_start(*byte)) {
            return Step::Reject(ForeignProtocol::NotText);
        }
        let end = input.iter().take(MAX_LINE).position(|b| *b == b'\n');
        match end {
            Some(end) => self.request(input, end, store, out),
            None if input.len() < MAX_LINE => Step::NeedMore,
            None => {
                out.extend(b"CLIENT_ERROR line too long\r\n");
                Step::Close
            }
        }
    }

    fn in_request(&self) -> bool {
        self.skip > 0
    }
}
