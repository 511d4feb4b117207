//! RESP2. Redis's commands as far as the store does them: what it can't keep, as times to live, is refused and not ignored.

use std::sync::Mutex;

use pm::{Error, Result};
use sim::Time;

use crate::store::{Failure, Kind, Store};
use crate::table::Table;
use crate::{lock, number, Dialect, Step, MOST_REPLY, MOST_REQUEST, MOST_VALUE, MOST_WORDS};

type Words = Vec<Vec<u8>>;

/// Most bytes of a key.
const MOST_KEY: usize = 1024;
/// Most bytes of a line.
const MOST_LINE: usize = 64 << 10;
/// Commands of a transaction.
const MOST_QUEUED: usize = 1024;

#[derive(Default)]
pub struct Resp {
    /// Commands behind MULTI.
    queue: Option<Vec<Words>>,
    /// A command behind MULTI was refused.
    failed: bool,
}

/// The line that bytes begin with, and the bytes up to its end.
fn line(input: &[u8]) -> std::result::Result<Option<(&[u8], usize)>, String> {
    let end = input.iter().take(MOST_LINE).position(|b| *b == b'\n');
    match end {
        Some(end) => {
            let text = &input[..end];
            Ok(Some((text.strip_suffix(b"\r").unwrap_or(text), end + 1)))
        }
        None if input.len() >= MOST_LINE => Err("too big inline request".into()),
        None => Ok(None),
    }
}

/// The request that bytes begin with, and its length. Nothing is allocated before its bytes are there.
fn parse(input: &[u8]) -> std::result::Result<Option<(Words, usize)>, String> {
    let Some((first, mut at)) = line(input)? else {
        return Ok(None);
    };
    let Some(count) = first.strip_prefix(b"*") else {
        let words: Words = first
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty())
            .map(<[u8]>::to_vec)
            .collect();
        return match words.len() <= MOST_WORDS {
            true => Ok(Some((words, at))),
            false => Err("too many words".into()),
        };
    };
    let count: i64 = number(count).ok_or("invalid multibulk length")?;
    if count > MOST_WORDS as i64 {
        return Err("invalid multibulk length".into());
    }
    let mut parts = Vec::new();
    for _ in 0..count.max(0) {
        let Some((head, used)) = line(&input[at..])? else {
            return Ok(None);
        };
        let bytes = head.strip_prefix(b"$").ok_or("expected '$'")?;
        let bytes: usize = number(bytes).ok_or("invalid bulk length")?;
        if bytes > MOST_VALUE || at + used + bytes > MOST_REQUEST {
            return Err("invalid bulk length".into());
        }
        at += used;
        let Some(end) = input.get(at + bytes..at + bytes + 2) else {
            return Ok(None);
        };
        if end != b"\r\n" {
            return Err("expected CRLF behind a bulk string".into());
        }
        parts.push(at..at + bytes);
        at += bytes + 2;
    }
    let words = parts.into_iter().map(|p| input[p].to_vec()).collect();
    Ok(Some((words, at)))
}

fn error(out: &mut Vec<u8>, text: &str) {
    let text = text.replace(['\r', '\n'], " ");
    out.extend(format!("-ERR {text}\r\n").bytes());
}

/// A number as Redis counts with: no other way to write it, as 007 or -0, is one.
fn whole(text: &[u8]) -> Option<i64> {
    number(text).filter(|n: &i64| n.to_string().as_bytes() == text)
}

fn integer(out: &mut Vec<u8>, value: i64) {
    out.extend(format!(":{value}\r\n").bytes());
}

fn bulk(out: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        Some(value) => {
            out.extend(format!("${}\r\n", value.len()).bytes());
            out.extend(value);
            out.extend(b"\r\n");
        }
        None => out.extend(b"$-1\r\n"),
    }
}

/// What is wrong with a command that a transaction would run; how it uses the store if nothing is.
fn check(words: &[Vec<u8>]) -> std::result::Result<Kind, String> {
    let name = words[0].to_ascii_uppercase();
    let shown = String::from_utf8_lossy(&words[0][..words[0].len().min(64)]).into_owned();
    let (kind, good, keys): (_, _, &[Vec<u8>]) = match (&name[..], words.len()) {
        (b"GET" | b"STRLEN", n) => (Kind::Read, n == 2, &words[1..]),
        (b"EXISTS" | b"MGET", n) => (Kind::Read, n >= 2, &words[1..]),
        (b"DEL" | b"UNLINK", n) => (Kind::Write, n >= 2, &words[1..]),
        (b"INCR" | b"DECR", n) => (Kind::Write, n == 2, &words[1..]),
        (b"INCRBY" | b"DECRBY" | b"APPEND" | b"SETNX", n) => {
            (Kind::Write, n == 3, &words[1..n.min(2)])
        }
        (b"SET", n) => (Kind::Write, n >= 3, &words[1..n.min(2)]),
        (b"MSET", n) => (Kind::Write, n >= 3 && n % 2 == 1, &[]),
        (b"DBSIZE" | b"INFO", n) => (Kind::Read, n == 1 || name == b"INFO", &[]),
        (b"PING", n) => (Kind::Read, n <= 2, &[]),
        (b"ECHO" | b"SELECT", n) => (Kind::Read, n == 2, &[]),
        (b"COMMAND" | b"CONFIG" | b"CLIENT", _) => (Kind::Read, true, &[]),
        (b"FLUSHALL" | b"FLUSHDB", _) => (Kind::Write, true, &[]),
        _ => return Err(format!("unknown command '{shown}'")),
    };
    if !good {
        return Err(format!("wrong number of arguments for '{shown}' command"));
    }
    let pairs = words[1..].iter().step_by(2);
    let long = |key: &Vec<u8>| key.len() > MOST_KEY;
    if keys.iter().any(long) || (name == b"MSET" && pairs.into_iter().any(long)) {
        return Err(format!("a key is longer than {MOST_KEY} bytes"));
    }
    if name == b"SET" {
        let known = |w: &Vec<u8>| w.eq_ignore_ascii_case(b"NX") || w.eq_ignore_ascii_case(b"XX");
        if words.len() > 4 || !words[3..].iter().all(known) {
            return Err("syntax error: allowed are NX or XX; times to live are not kept".into());
        }
    }
    Ok(kind)
}

/// Does a command that was checked and needs no data; false: it is another one.
fn apply_without_data(words: &[Vec<u8>], out: &mut Vec<u8>) -> bool {
    match (&words[0].to_ascii_uppercase()[..], words.get(1)) {
        (b"PING", None) => out.extend(b"+PONG\r\n"),
        (b"PING" | b"ECHO", Some(word)) => bulk(out, Some(word)),
        (b"SELECT", Some(word)) if word == b"0" => out.extend(b"+OK\r\n"),
        (b"SELECT", _) => error(out, "DB index is out of range: allowed is 0"),
        // What clients ask when they connect, and get on without.
        (b"COMMAND" | b"CONFIG", _) => out.extend(b"*0\r\n"),
        (b"CLIENT", _) => out.extend(b"+OK\r\n"),
        _ => return false,
    }
    true
}

/// Does a command that was checked, in a transaction; `info` is what INFO tells. An error undoes the transaction.
fn apply(
    table: &mut Table<'_, '_>,
    words: &[Vec<u8>],
    info: &str,
    out: &mut Vec<u8>,
) -> Result<()> {
    if apply_without_data(words, out) {
        return short(out);
    }
    let name = words[0].to_ascii_uppercase();
    match &name[..] {
        b"INFO" => bulk(out, Some(info.as_bytes())),
        // All of it at once: what a transaction's log has no room for is refused.
        b"FLUSHALL" | b"FLUSHDB" => {
            for key in table.keys()? {
                table.remove(&key)?;
            }
            out.extend(b"+OK\r\n");
        }
        b"GET" => bulk(out, table.get(&words[1])?.as_ref().map(|e| &e.value[..])),
        b"STRLEN" => {
            let bytes = table.get(&words[1])?.map_or(0, |e| e.value.len());
            integer(out, bytes as i64);
        }
        b"MGET" => {
            out.extend(format!("*{}\r\n", words.len() - 1).bytes());
            for key in &words[1..] {
                bulk(out, table.get(key)?.as_ref().map(|e| &e.value[..]));
                short(out)?;
            }
        }
        b"EXISTS" | b"DEL" | b"UNLINK" => {
            let mut found = 0;
            for key in &words[1..] {
                found += i64::from(match &name[..] {
                    b"EXISTS" => table.get(key)?.is_some(),
                    _ => table.remove(key)?,
                });
            }
            integer(out, found);
        }
        b"SET" | b"SETNX" => {
            let option = match &name[..] {
                b"SETNX" => Some(true),
                _ => words.get(3).map(|w| w.eq_ignore_ascii_case(b"NX")),
            };
            let there = match option {
                Some(_) => table.get(&words[1])?.is_some(),
                None => false,
            };
            let done = option.is_none_or(|only_new| only_new != there);
            if done {
                table.put(&words[1], &words[2], 0)?;
            }
            match (&name[..], done) {
                (b"SETNX", done) => integer(out, i64::from(done)),
                (_, true) => out.extend(b"+OK\r\n"),
                (_, false) => bulk(out, None),
            }
        }
        b"MSET" => {
            for pair in words[1..].chunks_exact(2) {
                table.put(&pair[0], &pair[1], 0)?;
            }
            out.extend(b"+OK\r\n");
        }
        b"APPEND" => {
            let mut value = table.get(&words[1])?.map(|e| e.value).unwrap_or_default();
            value.extend(&words[2]);
            if value.len() > MOST_VALUE {
                error(out, &format!("a value has at most {MOST_VALUE} bytes"));
                return Ok(());
            }
            table.put(&words[1], &value, 0)?;
            integer(out, value.len() as i64);
        }
        b"INCR" | b"DECR" | b"INCRBY" | b"DECRBY" => {
            let old = table.get(&words[1])?;
            let old = old.map_or(Some(0), |e| whole(&e.value));
            let by = words.get(2).map_or(Some(1), |w| whole(w));
            let (Some(old), Some(by)) = (old, by) else {
                error(out, "value is not an integer or out of range");
                return Ok(());
            };
            if name == b"DECRBY" && by == i64::MIN {
                error(out, "decrement would overflow");
                return Ok(());
            }
            let new = match name.starts_with(b"DECR") {
                true => old.checked_sub(by),
                false => old.checked_add(by),
            };
            let Some(new) = new else {
                error(out, "increment or decrement would overflow");
                return Ok(());
            };
            table.put(&words[1], new.to_string().as_bytes(), 0)?;
            integer(out, new);
        }
        _ => integer(out, table.len() as i64),
    }
    short(out)
}

fn short(out: &[u8]) -> Result<()> {
    match out.len() <= MOST_REPLY {
        true => Ok(()),
        false => Err(Error::Full(format!(
            "the reply has more than {MOST_REPLY} bytes"
        ))),
    }
}

/// Writes what came of a request; false: the power has failed.
fn answer(result: std::result::Result<Vec<u8>, Failure>, out: &mut Vec<u8>) -> bool {
    match result {
        Ok(reply) => out.extend(reply),
        Err(Failure::Refused(text)) => error(out, &text),
        Err(Failure::Power) => return false,
    }
    true
}

impl Resp {
    /// False: the connection ends.
    fn execute(&mut self, words: Words, store: &Mutex<Store>, out: &mut Vec<u8>) -> bool {
        let name = words[0].to_ascii_uppercase();
        let only = words.len() == 1;
        match &name[..] {
            b"QUIT" => {
                out.extend(b"+OK\r\n");
                return false;
            }
            b"MULTI" | b"EXEC" | b"DISCARD" if !only => {
                let name = String::from_utf8_lossy(&name).to_lowercase();
                error(
                    out,
                    &format!("wrong number of arguments for '{name}' command"),
                );
                self.fail();
            }
            b"MULTI" if self.queue.is_none() => {
                self.queue = Some(Vec::new());
                self.failed = false;
                out.extend(b"+OK\r\n");
            }
            b"MULTI" => error(out, "MULTI calls can not be nested"),
            b"DISCARD" if self.queue.take().is_some() => out.extend(b"+OK\r\n"),
            b"DISCARD" => error(out, "DISCARD without MULTI"),
            b"EXEC" => match self.queue.take() {
                None => error(out, "EXEC without MULTI"),
                Some(_) if self.failed => {
                    out.extend(b"-EXECABORT Transaction discarded because of previous errors.\r\n")
                }
                Some(queue) => return run(&queue, true, store, out),
            },
            _ if self.queue.is_some() => self.enqueue(words, out),
            _ if check(&words).is_ok() && apply_without_data(&words, out) => {}
            b"INFO" => bulk(out, Some(info(&lock(store)).as_bytes())),
            b"FLUSHALL" | b"FLUSHDB" => {
                let done = lock(store).flush().map(|()| b"+OK\r\n".to_vec());
                return answer(done, out);
            }
            // Ours: the power fails now, or so many simulated ns later.
            b"DEBUG"
                if words
                    .get(1)
                    .is_some_and(|w| w.eq_ignore_ascii_case(b"POWERCUT")) =>
            {
                let later = words.get(2).map_or(Some(0), |w| number::<u32>(w));
                let Some(later) = later else {
                    error(out, "DEBUG POWERCUT [NS]: allowed are 0 to 4294967295");
                    return true;
                };
                let done = lock(store).cut(Time::ns(u64::from(later)));
                return answer(done.map(|()| b"+OK\r\n".to_vec()), out);
            }
            _ => return run(&[words], false, store, out),
        }
        true
    }

    fn enqueue(&mut self, words: Words, out: &mut Vec<u8>) {
        let checked = check(&words);
        let Some(queue) = &mut self.queue else { return };
        let size = |words: &Words| words.iter().map(|w| w.len() + 32).sum::<usize>();
        let bytes: usize = queue.iter().map(size).sum::<usize>() + size(&words);
        match checked {
            Ok(_) if queue.len() < MOST_QUEUED && bytes <= MOST_REQUEST => {
                queue.push(words);
                out.extend(b"+QUEUED\r\n");
                return;
            }
            Ok(_) => error(
                out,
                &format!(
                    "a transaction has at most {MOST_QUEUED} commands of {MOST_REQUEST} bytes"
                ),
            ),
            Err(text) => error(out, &text),
        }
        self.fail();
    }

    /// Nothing of a transaction will be done, so nothing of it is kept.
    fn fail(&mut self) {
        if let Some(queue) = &mut self.queue {
            queue.clear();
            self.failed = true;
        }
    }
}

fn info(store: &Store) -> String {
    format!(
        "# Server\r\nredis_version:7.0.0\r\nredis_mode:standalone\r\n# Nearside\r\nreport:{}\r\n",
        store.report()
    )
}

/// Runs commands as one transaction. False: the power has failed.
fn run(queue: &[Words], array: bool, store: &Mutex<Store>, out: &mut Vec<u8>) -> bool {
    let mut kind = Kind::Read;
    for words in queue {
        match check(words) {
            Ok(Kind::Write) => kind = Kind::Write,
            Ok(Kind::Read) => {}
            Err(text) => {
                error(out, &text);
                return true;
            }
        }
    }
    let mut store = lock(store);
    let info = info(&store);
    let result = store.run(kind, |table| {
        let mut reply = Vec::new();
        if array {
            reply.extend(format!("*{}\r\n", queue.len()).bytes());
        }
        for words in queue {
            apply(table, words, &info, &mut reply)?;
        }
        Ok(reply)
    });
    answer(result, out)
}

impl Dialect for Resp {
    fn step(&mut self, input: &[u8], store: &Mutex<Store>, out: &mut Vec<u8>) -> Step {
        match parse(input) {
            Ok(None) => Step::More,
            Ok(Some((words, used))) => match words.is_empty() || self.execute(words, store, out) {
                true => Step::Done(used),
                false => Step::Close,
            },
            Err(text) => {
                error(out, &format!("Protocol error: {text}"));
                Step::Close
            }
        }
    }
}
