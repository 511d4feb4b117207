// SPDX-License-Identifier: Apache-2.0

//! The table of commands: their names, arity and keys as Redis's `COMMAND` reports them.

use crate::store::AccessMode;

/// Most bytes of a key.
const MAX_KEY_BYTES: usize = 1024;

/// A command, with arity and keys as Redis's `COMMAND` reports them.
pub struct Command {
    /// In capitals.
    pub name: &'static str,
    /// Number of words with the name; if negative, the least number.
    pub arity: i64,
    pub kind: AccessMode,
    /// Number of the first key, of the last one (negative: from the end), and the step between two;
    /// zeros without keys.
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

/// The supported commands of Redis.
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

/// Finds a command by name.
pub fn find(name: &[u8]) -> Option<&'static Command> {
    COMMANDS
        .iter()
        .find(|c| name.eq_ignore_ascii_case(c.name.as_bytes()))
}

/// A word for an error message.
pub fn truncated_word(word: &[u8]) -> String {
    String::from_utf8_lossy(&word[..word.len().min(64)]).into_owned()
}

/// The error of a command with too few or too many words.
pub fn wrong_arity(name: &[u8]) -> String {
    format!(
        "wrong number of arguments for '{}' command",
        truncated_word(name)
    )
}

/// Validates a command; returns how it accesses the store.
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
