//! The commands there are, and what those do that need data.

use pm::Result;

use super::reply::Reply;
use super::request::parse_integer;
use super::session::Session;
use crate::store::AccessMode;
use crate::table::Table;
use crate::MAX_VALUE;

/// Most bytes of a key.
const MAX_KEY_BYTES: usize = 1024;

/// A command. Arity and keys are told as Redis's `COMMAND` tells them.
pub struct Command {
    /// In capitals.
    pub name: &'static str,
    /// Words with the name; so many at least where it is negative.
    pub arity: i64,
    pub kind: AccessMode,
    /// Number of the first key, of the last one (negative: from the end), and the step between two;
    /// zeros: it has no keys.
    pub keys: (i64, i64, i64),
}

const fn command(
    name: &'static str,
    arity: i64,
    kind: AccessMode,
    keys: (i64, i64, i64),
) -> Command {
    Command {
        name,
        arity,
        kind,
        keys,
    }
}

const NONE: (i64, i64, i64) = (0, 0, 0);
const ONE: (i64, i64, i64) = (1, 1, 1);
const ALL: (i64, i64, i64) = (1, -1, 1);

/// All of Redis's that there are.
pub const COMMANDS: &[Command] = &[
    command("APPEND", 3, AccessMode::Write, ONE),
    command("AUTH", -2, AccessMode::Read, NONE),
    command("CLIENT", -2, AccessMode::Read, NONE),
    command("COMMAND", -1, AccessMode::Read, NONE),
    command("CONFIG", -2, AccessMode::Read, NONE),
    command("DBSIZE", 1, AccessMode::Read, NONE),
    command("DECR", 2, AccessMode::Write, ONE),
    command("DECRBY", 3, AccessMode::Write, ONE),
    command("DEL", -2, AccessMode::Write, ALL),
    command("DISCARD", 1, AccessMode::Read, NONE),
    command("ECHO", 2, AccessMode::Read, NONE),
    command("EXEC", 1, AccessMode::Read, NONE),
    command("EXISTS", -2, AccessMode::Read, ALL),
    command("FLUSHALL", -1, AccessMode::Write, NONE),
    command("FLUSHDB", -1, AccessMode::Write, NONE),
    command("GET", 2, AccessMode::Read, ONE),
    command("HELLO", -1, AccessMode::Read, NONE),
    command("INCR", 2, AccessMode::Write, ONE),
    command("INCRBY", 3, AccessMode::Write, ONE),
    command("INFO", -1, AccessMode::Read, NONE),
    command("MGET", -2, AccessMode::Read, ALL),
    command("MSET", -3, AccessMode::Write, (1, -1, 2)),
    command("MULTI", 1, AccessMode::Read, NONE),
    command("PING", -1, AccessMode::Read, NONE),
    command("QUIT", -1, AccessMode::Read, NONE),
    command("RESET", 1, AccessMode::Read, NONE),
    command("SELECT", 2, AccessMode::Read, NONE),
    command("SET", -3, AccessMode::Write, ONE),
    command("SETNX", 3, AccessMode::Write, ONE),
    command("STRLEN", 2, AccessMode::Read, ONE),
    command("UNLINK", -2, AccessMode::Write, ALL),
];

/// The command of a name.
pub fn find(name: &[u8]) -> Option<&'static Command> {
    COMMANDS
        .iter()
        .find(|c| name.eq_ignore_ascii_case(c.name.as_bytes()))
}

/// A word, as an error shows it.
pub fn truncated_word(word: &[u8]) -> String {
    String::from_utf8_lossy(&word[..word.len().min(64)]).into_owned()
}

/// The error of a command that is used with too few words, or too many.
pub fn wrong_arity(name: &[u8]) -> String {
    format!(
        "wrong number of arguments for '{}' command",
        truncated_word(name)
    )
}

/// What is wrong with a command; how it uses the store if nothing is.
pub fn check(words: &[Vec<u8>]) -> std::result::Result<AccessMode, String> {
    let Some(command) = find(&words[0]) else {
        return Err(format!("unknown command '{}'", truncated_word(&words[0])));
    };
    let count = words.len() as i64;
    let good = match command.arity {
        fixed @ 0.. => count == fixed,
        least => count >= -least,
    };
    let pairs = command.name != "MSET" || count % 2 == 1;
    if !good || !pairs || (command.name == "PING" && count > 2) {
        return Err(wrong_arity(&words[0]));
    }
    let (first, last, step) = command.keys;
    let last = if last < 0 { count + last } else { last };
    let mut keys = (first..=last).step_by(step.max(1) as usize);
    if first > 0 && keys.any(|n| words[n as usize].len() > MAX_KEY_BYTES) {
        return Err(format!("a key is longer than {MAX_KEY_BYTES} bytes"));
    }
    if command.name == "SET" {
        let authenticated =
            |w: &Vec<u8>| w.eq_ignore_ascii_case(b"NX") || w.eq_ignore_ascii_case(b"XX");
        if words.len() > 4 || !words[3..].iter().all(authenticated) {
            return Err("syntax error: allowed are NX or XX; times to live are not kept".into());
        }
    }
    if command.name.starts_with("FLUSH") {
        let authenticated =
            |w: &Vec<u8>| w.eq_ignore_ascii_case(b"SYNC") || w.eq_ignore_ascii_case(b"ASYNC");
        if words.len() > 2 || !words[1..].iter().all(authenticated) {
            return Err("syntax error: allowed are SYNC or ASYNC".into());
        }
    }
    Ok(command.kind)
}

/// Does a command that was checked, in a transaction; `info` is what INFO tells. An error undoes
/// the transaction.
pub fn apply(
    table: &mut Table<'_, '_>,
    words: &[Vec<u8>],
    info: &str,
    session: &mut Session,
    out: &mut Reply,
) -> Result<()> {
    if session.apply(words, out) {
        return out.check();
    }
    let name = words[0].to_ascii_uppercase();
    match &name[..] {
        b"INFO" => out.text(info),
        // All of it at once: what a transaction's log has no room for is refused.
        b"FLUSHALL" | b"FLUSHDB" => {
            for key in table.keys()? {
                table.remove(&key)?;
            }
            out.ok();
        }
        b"GET" => out.bulk_or_null(table.get(&words[1])?.as_ref().map(|e| &e.value[..])),
        b"STRLEN" => {
            let bytes = table.get(&words[1])?.map_or(0, |e| e.value.len());
            out.integer(bytes as i64);
        }
        b"MGET" => {
            out.array(words.len() - 1);
            for key in &words[1..] {
                out.bulk_or_null(table.get(key)?.as_ref().map(|e| &e.value[..]));
                out.check()?;
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
            out.integer(found);
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
                (b"SETNX", done) => out.integer(i64::from(done)),
                (_, true) => out.ok(),
                (_, false) => out.null(),
            }
        }
        b"MSET" => {
            for pair in words[1..].chunks_exact(2) {
                table.put(&pair[0], &pair[1], 0)?;
            }
            out.ok();
        }
        b"APPEND" => {
            let mut value = table.get(&words[1])?.map(|e| e.value).unwrap_or_default();
            value.extend(&words[2]);
            if value.len() > MAX_VALUE {
                out.error(&format!("a value has at most {MAX_VALUE} bytes"));
                return Ok(());
            }
            table.put(&words[1], &value, 0)?;
            out.integer(value.len() as i64);
        }
        b"INCR" | b"DECR" | b"INCRBY" | b"DECRBY" => add_to_counter(table, words, &name, out)?,
        b"DBSIZE" => out.integer(table.len() as i64),
        _ => out.error(&format!("unknown command '{}'", truncated_word(&words[0]))),
    }
    out.check()
}

/// `INCR`, `DECR`, `INCRBY`, `DECRBY`.
fn add_to_counter(
    table: &mut Table<'_, '_>,
    words: &[Vec<u8>],
    name: &[u8],
    out: &mut Reply,
) -> Result<()> {
    let old = table.get(&words[1])?;
    let old = old.map_or(Some(0), |e| parse_integer(&e.value));
    let by = words.get(2).map_or(Some(1), |w| parse_integer(w));
    let (Some(old), Some(by)) = (old, by) else {
        out.error("value is not an integer or out of range");
        return Ok(());
    };
    if name == b"DECRBY" && by == i64::MIN {
        out.error("decrement would overflow");
        return Ok(());
    }
    let new = match name.starts_with(b"DECR") {
        true => old.checked_sub(by),
        false => old.checked_add(by),
    };
    let Some(new) = new else {
        out.error("increment or decrement would overflow");
        return Ok(());
    };
    table.put(&words[1], new.to_string().as_bytes(), 0)?;
    out.integer(new);
    Ok(())
}
