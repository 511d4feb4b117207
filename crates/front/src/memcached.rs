//! memcached's text protocol, without times to live: other than 0 are refused and not ignored.

use std::sync::Mutex;

use pm::Error;
use sim::Time;

use crate::store::{Failure, Kind, Store};
use crate::{lock, number, Dialect, Step, MOST_REPLY, MOST_VALUE};

/// Most bytes of a key, as in memcached.
const MOST_KEY: usize = 250;
/// Most bytes of a line: keys of a `get`.
const MOST_LINE: usize = 64 << 10;
/// Most keys of a `get`.
const MOST_KEYS: usize = 256;

#[derive(Default)]
pub struct Memcached {
    /// Bytes of a refused value that are still to come.
    skip: usize,
}

fn good(key: &[u8]) -> bool {
    (1..=MOST_KEY).contains(&key.len()) && !key.iter().any(u8::is_ascii_control)
}

fn answer(result: Result<Vec<u8>, Failure>, quiet: bool, used: usize, out: &mut Vec<u8>) -> Step {
    match result {
        Ok(_) if quiet => {}
        Ok(reply) => out.extend(reply),
        Err(Failure::Refused(_)) if quiet => {}
        Err(Failure::Refused(text)) => {
            let text = text.replace(['\r', '\n'], " ");
            out.extend(format!("SERVER_ERROR {text}\r\n").bytes());
        }
        Err(Failure::Power) => return Step::Close,
    }
    Step::Done(used)
}

fn bad(out: &mut Vec<u8>, text: &str, quiet: bool, used: usize) -> Step {
    if !quiet {
        out.extend(format!("CLIENT_ERROR {text}\r\n").bytes());
    }
    Step::Done(used)
}

/// `get` and `gets`: all of them in one transaction.
fn get(words: &[&[u8]], store: &Mutex<Store>, used: usize, out: &mut Vec<u8>) -> Step {
    let keys = &words[1..];
    if keys.is_empty() || keys.len() > MOST_KEYS || !keys.iter().all(|k| good(k)) {
        let text = "allowed are 1 to 256 keys of 1 to 250 bytes";
        return bad(out, text, false, used);
    }
    let result = lock(store).run(Kind::Read, |table| {
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
            if reply.len() > MOST_REPLY {
                return Err(Error::Full(format!(
                    "the reply has more than {MOST_REPLY} bytes"
                )));
            }
        }
        reply.extend(b"END\r\n");
        Ok(reply)
    });
    answer(result, false, used, out)
}

impl Memcached {
    /// `set`, `add`, `replace`, `append`, `prepend`, `cas`: the value is behind the line.
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
        let bytes = words.get(4).and_then(|w| number::<usize>(w));
        let Some(bytes) = bytes.filter(|_| words.len() == fields || quiet) else {
            // Where the next request begins nobody knows.
            out.extend(b"CLIENT_ERROR bad command line format\r\n");
            return Step::Close;
        };
        // Of a refused value no byte is a request.
        let refuse = |me: &mut Memcached, out: &mut Vec<u8>, text: &str| {
            me.skip = bytes.saturating_add(2);
            if !quiet {
                out.extend(format!("{text}\r\n").bytes());
            }
            Step::Done(used)
        };
        if bytes > MOST_VALUE {
            return refuse(self, out, "SERVER_ERROR object too large for cache");
        }
        let unique = words.get(5).and_then(|w| number::<u64>(w));
        let flags = number::<u32>(words[2]);
        let (true, Some(flags), true) = (good(words[1]), flags, !cas || unique.is_some()) else {
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
            return Step::More;
        };
        let Some(value) = value.strip_suffix(b"\r\n") else {
            if !quiet {
                out.extend(b"CLIENT_ERROR bad data chunk\r\n");
            }
            return Step::Close;
        };
        let result = lock(store).run(Kind::Write, |table| {
            let (mut value, mut flags) = (value.to_vec(), flags);
            let old = match words[0] {
                b"set" => None,
                _ => table.get(words[1])?,
            };
            let refusal: Option<&[u8]> = match (words[0], &old) {
                (b"set", _) | (b"add", None) | (b"replace", Some(_)) => None,
                (b"cas", None) => Some(b"NOT_FOUND\r\n"),
                (b"cas", Some(old)) if Some(old.unique) != unique => Some(b"EXISTS\r\n"),
                (b"cas", _) => None,
                (b"append" | b"prepend", Some(old)) => {
                    flags = old.flags;
                    value = match words[0] {
                        b"append" => [&old.value[..], &value].concat(),
                        _ => [&value[..], &old.value].concat(),
                    };
                    let long = value.len() > MOST_VALUE;
                    long.then_some(b"SERVER_ERROR object too large for cache\r\n")
                }
                _ => Some(b"NOT_STORED\r\n"),
            };
            if let Some(text) = refusal {
                return Ok(text.to_vec());
            }
            table.put(words[1], &value, flags)?;
            Ok(b"STORED\r\n".to_vec())
        });
        answer(result, quiet, used + bytes + 2, out)
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
            return Step::Done(used);
        };
        // Behind these words `noreply` is none of them: a key may have that name. Whoever says it reads no answer, whatever it is.
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
            b"delete" if count == 2 && good(words[1]) => {
                let result = lock(store).run(Kind::Write, |table| {
                    Ok(match table.remove(words[1])? {
                        true => b"DELETED\r\n".to_vec(),
                        false => b"NOT_FOUND\r\n".to_vec(),
                    })
                });
                answer(result, quiet, used, out)
            }
            b"incr" | b"decr" if count == 3 && good(words[1]) => {
                let Some(by) = number::<u64>(words[2]) else {
                    return bad(out, "invalid numeric delta argument", quiet, used);
                };
                let result = lock(store).run(Kind::Write, |table| {
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
                answer(result, quiet, used, out)
            }
            b"flush_all" if count == 1 || (count == 2 && words[1] == b"0") => {
                let done = lock(store).flush().map(|()| b"OK\r\n".to_vec());
                answer(done, quiet, used, out)
            }
            b"version" => {
                out.extend(b"VERSION 1.6.0-nearside\r\n");
                Step::Done(used)
            }
            b"verbosity" => answer(Ok(b"OK\r\n".to_vec()), quiet, used, out),
            b"stats" => {
                let mut store = lock(store);
                let result = store.run(Kind::Read, |table| Ok(table.len())).map(|items| {
                    let report = store.report();
                    format!("STAT curr_items {items}\r\nSTAT nearside {report}\r\nEND\r\n")
                        .into_bytes()
                });
                answer(result, false, used, out)
            }
            // Ours: the power fails now, or so many simulated ns later.
            b"powercut" => {
                let later = words.get(1).map_or(Some(0), |w| number::<u32>(w));
                let Some(later) = later else {
                    let text = "powercut [NS]: allowed are 0 to 4294967295";
                    return bad(out, text, false, used);
                };
                let done = lock(store).cut(Time::ns(u64::from(later)));
                answer(done.map(|()| b"OK\r\n".to_vec()), false, used, out)
            }
            b"quit" => Step::Close,
            b"delete" | b"incr" | b"decr" | b"flush_all" => {
                bad(out, "bad command line format", quiet, used)
            }
            // It is not done here, and its client does not read that.
            b"touch" if quiet => Step::Done(used),
            _ => {
                out.extend(b"ERROR\r\n");
                Step::Done(used)
            }
        }
    }
}

impl Dialect for Memcached {
    fn step(&mut self, input: &[u8], store: &Mutex<Store>, out: &mut Vec<u8>) -> Step {
        if self.skip > 0 && !input.is_empty() {
            let gone = self.skip.min(input.len());
            self.skip -= gone;
            return Step::Done(gone);
        }
        let end = input.iter().take(MOST_LINE).position(|b| *b == b'\n');
        match end {
            Some(end) => self.request(input, end, store, out),
            None if input.len() < MOST_LINE => Step::More,
            None => {
                out.extend(b"CLIENT_ERROR line too long\r\n");
                Step::Close
            }
        }
    }
}
