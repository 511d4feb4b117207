// SPDX-License-Identifier: Apache-2.0

//! memcached's meta commands: `mg`, `ms`, `md`, `ma`, `mn`, `me`, without properties that the store
//! does not keep (times to live, the last access).

use std::sync::Mutex;

use pm::Result;

use super::{is_valid_key, refused_block, store_value, Memcached, StoreMode, StoreOutcome};
use crate::store::{AccessMode, RequestError, Store};
use crate::table::{Table, TableEntry};
use crate::{lock, number, Step, MAX_VALUE};

/// The flags of a command, after its key and length: a letter each, with a token if it takes one.
struct Flags<'a> {
    key: Vec<u8>,
    /// The key as it was sent.
    sent: &'a [u8],
    words: &'a [&'a [u8]],
}

impl<'a> Flags<'a> {
    /// Parses the flags of a command, and refuses those that are not in `known`; `words` begin
    /// after key and length.
    fn new(
        sent: &'a [u8],
        words: &'a [&'a [u8]],
        known: &[u8],
    ) -> std::result::Result<Self, String> {
        for (n, word) in words.iter().enumerate() {
            let flag = word[0];
            if words[..n].iter().any(|before| before[0] == flag) {
                return Err("duplicate flag".into());
            }
            if !known.contains(&flag) {
                let known: Vec<_> = known.iter().map(|b| char::from(*b).to_string()).collect();
                return Err(format!(
                    "invalid flag or one that is not kept here: allowed are {}",
                    known.join(" ")
                ));
            }
        }
        let mut flags = Flags {
            key: sent.to_vec(),
            sent,
            words,
        };
        // Only 0, without a limit, is supported.
        if [b'T', b'N']
            .iter()
            .any(|ttl| flags.token(*ttl).is_some_and(|t| t != b"0"))
        {
            return Err("times to live are not kept: allowed is 0".into());
        }
        let key = match flags.has(b'b') {
            true => from_base64(sent).filter(|key| (1..=super::MAX_KEY).contains(&key.len())),
            false => is_valid_key(sent).then(|| sent.to_vec()),
        };
        flags.key = key.ok_or("bad command line format")?;
        Ok(flags)
    }

    fn token(&self, flag: u8) -> Option<&'a [u8]> {
        self.words
            .iter()
            .find(|word| word[0] == flag)
            .map(|word| &word[1..])
    }

    fn has(&self, flag: u8) -> bool {
        self.token(flag).is_some()
    }

    /// The number in the token of a flag.
    fn number<T: std::str::FromStr>(&self, flag: u8) -> std::result::Result<Option<T>, String> {
        let token = self.token(flag);
        let value = token.map(|token| number(token).ok_or("bad token in command line format"));
        Ok(value.transpose()?)
    }

    /// The line of a reply: its code, and the properties that the flags request, in their order.
    fn reply_line(&self, code: &str, entry: Option<&TableEntry>) -> Vec<u8> {
        let mut line = code.as_bytes().to_vec();
        for word in self.words {
            match (word[0], entry) {
                (b'O', _) => line.extend([b" ", *word].concat()),
                (b'k', _) => {
                    line.extend([b" k", self.sent].concat());
                    if self.has(b'b') {
                        line.extend(b" b");
                    }
                }
                (b'c', Some(e)) => line.extend(format!(" c{}", e.unique).bytes()),
                (b'f', Some(e)) => line.extend(format!(" f{}", e.flags).bytes()),
                (b's', Some(e)) => line.extend(format!(" s{}", e.value.len()).bytes()),
                (b't', Some(_)) => line.extend(b" t-1"),
                _ => {}
            }
        }
        line.extend(b"\r\n");
        line
    }

    /// A reply that the flag `q` suppresses.
    fn unless_quiet(&self, line: Vec<u8>) -> Vec<u8> {
        match self.has(b'q') {
            true => Vec::new(),
            false => line,
        }
    }

    /// The reply with the value, if the flag `v` requests it.
    fn reply_with_value(&self, entry: &TableEntry) -> Vec<u8> {
        if !self.has(b'v') {
            return self.reply_line("HD", Some(entry));
        }
        let mut reply = self.reply_line(&format!("VA {}", entry.value.len()), Some(entry));
        reply.extend(&entry.value);
        reply.extend(b"\r\n");
        reply
    }
}

/// Decodes base64 with padding, in its only valid form.
fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let body = text
        .strip_suffix(b"==")
        .or(text.strip_suffix(b"="))
        .unwrap_or(text);
    if text.len() % 4 != 0 {
        return None;
    }
    let mut out = Vec::new();
    for four in body.chunks(4) {
        let mut bits = 0u32;
        for byte in four {
            bits = bits << 6 | u32::from(digit(*byte)?);
        }
        bits <<= 6 * (4 - four.len());
        let bytes = &bits.to_be_bytes()[1..];
        let (now, spare) = bytes.split_at(four.len() * 6 / 8);
        // A nonzero rest would be a second encoding of the same key.
        if spare.iter().any(|b| *b != 0) {
            return None;
        }
        out.extend(now);
    }
    Some(out)
}

fn client_error(text: &str, used: usize, out: &mut Vec<u8>) -> Step {
    out.extend(format!("CLIENT_ERROR {text}\r\n").bytes());
    Step::Complete(used)
}

/// True for the name of a meta command.
pub fn is_meta(name: &[u8]) -> bool {
    [&b"mg"[..], b"ms", b"md", b"ma", b"mn", b"me"].contains(&name)
}

/// Runs a meta command; its data begin in `input` at `used`.
pub fn run(
    me: &mut Memcached,
    words: &[&[u8]],
    input: &[u8],
    used: usize,
    store: &Mutex<Store>,
    out: &mut Vec<u8>,
) -> Step {
    let (name, key) = (words[0], words.get(1).copied().unwrap_or_default());
    if name == b"mn" {
        out.extend(b"MN\r\n");
        return Step::Complete(used);
    }
    if name == b"ms" {
        return set(me, words, input, used, store, out);
    }
    let known: &[u8] = match name {
        b"mg" => b"bcfkOqstuvT",
        b"md" => b"bCkOqT",
        b"ma" => b"bcCDJkMNOqtTv",
        _ => b"b",
    };
    let flags = match Flags::new(key, words.get(2..).unwrap_or_default(), known) {
        Ok(flags) => flags,
        Err(text) => return client_error(&text, used, out),
    };
    let result = match name {
        b"mg" => lock(store).run(AccessMode::Read, |table| {
            Ok(Ok(match table.get(&flags.key)? {
                Some(entry) if flags.has(b'v') => flags.reply_with_value(&entry),
                Some(entry) => flags.unless_quiet(flags.reply_line("HD", Some(&entry))),
                None => flags.unless_quiet(flags.reply_line("EN", None)),
            }))
        }),
        b"me" => lock(store).run(AccessMode::Read, |table| {
            Ok(Ok(match table.get(&flags.key)? {
                Some(e) => {
                    let fields = format!(" exp=-1 cas={} size={}\r\n", e.unique, e.value.len());
                    [b"ME ", key, fields.as_bytes()].concat()
                }
                None => b"EN\r\n".to_vec(),
            }))
        }),
        b"md" => match flags.number(b'C') {
            Ok(unique) => lock(store).run(AccessMode::Write, |table| {
                delete(table, &flags, unique).map(Ok)
            }),
            Err(text) => return client_error(&text, used, out),
        },
        _ => match Arithmetic::new(&flags) {
            Ok(count) => lock(store).run(AccessMode::Write, |table| count.run(table, &flags)),
            Err(text) => return client_error(&text, used, out),
        },
    };
    write_result(result, used, out)
}

/// A reply, or the error of a stored value.
type MetaResult = std::result::Result<Vec<u8>, String>;

fn write_result(
    result: std::result::Result<MetaResult, RequestError>,
    used: usize,
    out: &mut Vec<u8>,
) -> Step {
    match result {
        Ok(Ok(reply)) => out.extend(reply),
        Ok(Err(text)) => return client_error(&text, used, out),
        Err(failure) => return super::write_result(Err(failure), false, used, out),
    }
    Step::Complete(used)
}

/// True if the entry's number is not the one that the command requires.
fn is_stale(old: &TableEntry, unique: Option<u64>) -> bool {
    unique.is_some_and(|unique| unique != old.unique)
}

fn delete(table: &mut Table<'_, '_>, flags: &Flags<'_>, unique: Option<u64>) -> Result<Vec<u8>> {
    Ok(match table.get(&flags.key)? {
        None => flags.unless_quiet(flags.reply_line("NF", None)),
        Some(old) if is_stale(&old, unique) => flags.reply_line("EX", None),
        Some(_) => {
            table.remove(&flags.key)?;
            flags.unless_quiet(flags.reply_line("HD", None))
        }
    })
}

/// The parameters of `ma`.
struct Arithmetic {
    down: bool,
    by: u64,
    initial: Option<u64>,
    unique: Option<u64>,
}

impl Arithmetic {
    fn new(flags: &Flags<'_>) -> std::result::Result<Arithmetic, String> {
        let down = match flags.token(b'M') {
            None | Some(b"I" | b"i" | b"+" | b"INCR" | b"incr") => false,
            Some(b"D" | b"d" | b"-" | b"DECR" | b"decr") => true,
            _ => return Err("invalid mode for ma: allowed are I, D".into()),
        };
        let initial: Option<u64> = flags.number(b'J')?;
        Ok(Arithmetic {
            down,
            by: flags.number(b'D')?.unwrap_or(1),
            initial: flags.has(b'N').then(|| initial.unwrap_or(0)),
            unique: flags.number(b'C')?,
        })
    }

    fn run(&self, table: &mut Table<'_, '_>, flags: &Flags<'_>) -> Result<MetaResult> {
        let old = table.get(&flags.key)?;
        let (new, client_flags) = match (&old, self.initial) {
            (None, None) => return Ok(Ok(flags.unless_quiet(flags.reply_line("NF", None)))),
            (None, Some(initial)) => (initial, 0),
            (Some(old), _) if is_stale(old, self.unique) => {
                return Ok(Ok(flags.reply_line("EX", None)))
            }
            (Some(old), _) => {
                let Some(value) = number::<u64>(&old.value) else {
                    let text = "cannot increment or decrement non-numeric value";
                    return Ok(Err(text.into()));
                };
                let new = match self.down {
                    true => value.saturating_sub(self.by),
                    false => value.wrapping_add(self.by),
                };
                (new, old.flags)
            }
        };
        table.put(&flags.key, new.to_string().as_bytes(), client_flags)?;
        let entry = table.get(&flags.key)?;
        let reply = entry
            .map(|entry| flags.reply_with_value(&entry))
            .unwrap_or_default();
        Ok(Ok(flags.unless_quiet(reply)))
    }
}

/// `ms`: no byte of the block is a command, even if its line is invalid.
fn set(
    me: &mut Memcached,
    words: &[&[u8]],
    input: &[u8],
    used: usize,
    store: &Mutex<Store>,
    out: &mut Vec<u8>,
) -> Step {
    let bytes = words.get(2).and_then(|w| super::block_bytes(w));
    let Some(bytes) = bytes else {
        // The begin of the next request is unknown.
        out.extend(b"CLIENT_ERROR bad data chunk\r\n");
        return Step::Close;
    };
    let mut refuse = |text: String, out: &mut Vec<u8>| {
        out.extend(format!("{text}\r\n").bytes());
        refused_block(me, bytes, used)
    };
    if bytes > MAX_VALUE {
        return refuse("SERVER_ERROR object too large for cache".into(), out);
    }
    let parsed = Flags::new(words[1], &words[3..], b"bcCFkMNOqsT").and_then(|flags| {
        let mode = match flags.token(b'M') {
            None | Some(b"S" | b"s") => StoreMode::Set,
            Some(b"E" | b"e") => StoreMode::Add,
            Some(b"R" | b"r") => StoreMode::Replace,
            Some(b"A" | b"a") => StoreMode::Append,
            Some(b"P" | b"p") => StoreMode::Prepend,
            _ => return Err("invalid mode for ms: allowed are S, E, R, A, P".into()),
        };
        let unique = flags.number(b'C')?;
        let client_flags = flags.number::<u32>(b'F')?.unwrap_or(0);
        Ok((flags, mode, unique, client_flags))
    });
    let (flags, mode, unique, client_flags) = match parsed {
        Ok(parsed) => parsed,
        Err(text) => return refuse(format!("CLIENT_ERROR {text}"), out),
    };
    let Some(value) = input.get(used..used + bytes + 2) else {
        return Step::NeedMore;
    };
    let Some(value) = value.strip_suffix(b"\r\n") else {
        out.extend(b"CLIENT_ERROR bad data chunk\r\n");
        return Step::Close;
    };
    let result = lock(store).run(AccessMode::Write, |table| {
        let appends = matches!(mode, StoreMode::Append | StoreMode::Prepend);
        let fresh = appends && flags.has(b'N') && table.get(&flags.key)?.is_none();
        let mode = if fresh { StoreMode::Set } else { mode };
        let code = match store_value(table, &flags.key, value, client_flags, mode, unique)? {
            StoreOutcome::Stored => "HD",
            StoreOutcome::NotStored => "NS",
            StoreOutcome::Exists => "EX",
            StoreOutcome::NotFound => "NF",
            StoreOutcome::TooLarge => {
                return Ok(Ok(b"SERVER_ERROR object too large for cache\r\n".to_vec()))
            }
        };
        let entry = match code {
            "HD" => table.get(&flags.key)?,
            _ => None,
        };
        let line = flags.reply_line(code, entry.as_ref());
        Ok(Ok(match code {
            "HD" => flags.unless_quiet(line),
            _ => line,
        }))
    });
    write_result(result, used + bytes + 2, out)
}

#[cfg(test)]
mod tests {
    use super::from_base64;

    #[test]
    fn base64_keys_have_one_encoding_only() {
        for (text, key) in [
            ("Zg==", Some(&b"f"[..])),
            ("Zm8=", Some(b"fo")),
            ("Zm9v", Some(b"foo")),
            ("AP+/", Some(b"\x00\xFF\xBF")),
            ("Zh==", None),
            ("Zm9=", None),
            ("Zg", None),
            ("Zg=", None),
            ("Z===", None),
            ("Zm9v=", None),
            ("Zm9!", None),
        ] {
            assert_eq!(from_base64(text.as_bytes()).as_deref(), key, "{text}");
        }
    }
}
