// SPDX-License-Identifier: Apache-2.0

//! The session of a client, and the commands that need no data: HELLO, AUTH, CLIENT, CONFIG,
//! COMMAND, PING and others.

use std::sync::Arc;

use super::command_table::{find, truncated_word, wrong_arity, Command, COMMANDS};
use super::reply::Reply;
use super::request::parse_integer;
use crate::store::AccessMode;
use crate::{MAX_CLIENTS, MAX_VALUE};

/// The version of Redis whose replies are reproduced.
pub const VERSION: &str = "7.0.0";

/// The session of a client.
#[derive(Clone)]
pub struct Session {
    number: u64,
    password: Option<Arc<str>>,
    /// The client has sent the password, or there is none.
    pub authenticated: bool,
    /// The client has selected RESP3; else RESP2.
    pub resp3: bool,
    name: Vec<u8>,
    library: Vec<u8>,
    library_version: Vec<u8>,
}

/// The settings of `CONFIG GET`.
fn settings() -> [(&'static str, String); 6] {
    [
        ("appendonly", "no".into()),
        ("databases", "1".into()),
        ("maxclients", MAX_CLIENTS.to_string()),
        ("proto-max-bulk-len", MAX_VALUE.to_string()),
        ("save", String::new()),
        ("timeout", "0".into()),
    ]
}

/// Compares bytes in constant time.
fn equal_in_constant_time(one: &[u8], other: &[u8]) -> bool {
    let differ = one.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b));
    one.len() == other.len() && differ == 0
}

/// Matches a pattern of Redis (`*`, `?`, `[a-c]`, `[^a]`, `\x`). Both texts are short.
fn matches_pattern(pattern: &[u8], text: &[u8]) -> bool {
    let Some((&first, rest)) = pattern.split_first() else {
        return text.is_empty();
    };
    if first == b'*' {
        // Several in a row match the same as one.
        let rest = &rest[rest.iter().take_while(|b| **b == b'*').count()..];
        return (0..=text.len()).any(|n| matches_pattern(rest, &text[n..]));
    }
    let Some((&byte, tail)) = text.split_first() else {
        return false;
    };
    match (first, rest) {
        (b'?', _) => matches_pattern(rest, tail),
        (b'[', _) if rest.contains(&b']') => {
            let end = rest.iter().position(|b| *b == b']').unwrap_or(0);
            let (not, mut set) = match &rest[..end] {
                [b'^', set @ ..] => (true, set),
                set => (false, set),
            };
            let mut within = false;
            while let Some((&low, after)) = set.split_first() {
                (within, set) = match after {
                    [b'-', high, after @ ..] => {
                        let (low, high) = (low.min(*high), low.max(*high));
                        (within | (low..=high).contains(&byte), after)
                    }
                    after => (within | (low == byte), after),
                };
            }
            within != not && matches_pattern(&rest[end + 1..], tail)
        }
        (b'\\', [escaped, rest @ ..]) => *escaped == byte && matches_pattern(rest, tail),
        (literal, rest) => literal == byte && matches_pattern(rest, tail),
    }
}

impl Session {
    pub fn new(number: u64, password: Option<Arc<str>>) -> Session {
        Session {
            number,
            authenticated: password.is_none(),
            password,
            resp3: false,
            name: Vec::new(),
            library: Vec::new(),
            library_version: Vec::new(),
        }
    }

    /// Resets the session to its initial state.
    pub fn reset(&mut self) {
        *self = Session::new(self.number, self.password.take());
    }

    /// True if a command is allowed, given the state of authentication.
    pub fn is_allowed(&self, name: &[u8]) -> bool {
        self.authenticated || [&b"AUTH"[..], b"HELLO", b"QUIT", b"RESET"].contains(&name)
    }

    /// Runs a validated command that needs no data; false for any other command.
    pub fn apply(&mut self, words: &[Vec<u8>], out: &mut Reply) -> bool {
        match (&words[0].to_ascii_uppercase()[..], words.get(1)) {
            (b"PING", None) => out.simple("PONG"),
            (b"PING" | b"ECHO", Some(word)) => out.bulk(word),
            (b"SELECT", Some(word)) if word == b"0" => out.ok(),
            (b"SELECT", _) => out.error("DB index is out of range: allowed is 0"),
            (b"HELLO", _) => self.hello(&words[1..], out),
            (b"AUTH", _) => match &words[1..] {
                [password] if self.password.is_some() => self.login(b"default", password, out),
                [_] => out.error(
                    "AUTH <password> called without any password configured for the default user. \
                     Are you sure your configuration is correct?",
                ),
                [user, password] => self.login(user, password, out),
                _ => out.error("syntax error"),
            },
            (b"CLIENT", Some(sub)) => self.client(&sub.to_ascii_uppercase(), words, out),
            (b"CONFIG", Some(sub)) => config(&sub.to_ascii_uppercase(), words, out),
            (b"COMMAND", _) => describe(&words[1..], out),
            _ => return false,
        }
        true
    }

    /// Checks the only user name and the password.
    fn accepts(&self, user: &[u8], password: &[u8]) -> bool {
        let good = self.password.as_ref();
        // Without a password Redis's default user accepts any.
        user == b"default"
            && good.is_none_or(|good| equal_in_constant_time(good.as_bytes(), password))
    }

    fn login(&mut self, user: &[u8], password: &[u8], out: &mut Reply) {
        if self.accepts(user, password) {
            self.authenticated = true;
            out.ok();
        } else {
            wrong_password_error(out);
        }
    }

    /// `HELLO [2|3 [AUTH user password] [SETNAME name]]`.
    fn hello(&mut self, words: &[Vec<u8>], out: &mut Reply) {
        let resp3 = match words.first().map(|word| parse_integer(word)) {
            None => self.resp3,
            Some(None) => {
                out.error("Protocol version is not an integer or out of range");
                return;
            }
            Some(Some(version @ 2..=3)) => version == 3,
            Some(_) => return out.error_of("NOPROTO", "unsupported protocol version"),
        };
        let mut rest = words.get(1..).unwrap_or_default();
        let (mut authenticated, mut name) = (self.authenticated, None);
        while let Some((option, after)) = rest.split_first() {
            rest = match (&option.to_ascii_uppercase()[..], after) {
                (b"AUTH", [user, password, after @ ..]) => {
                    if !self.accepts(user, password) {
                        return wrong_password_error(out);
                    }
                    authenticated = true;
                    after
                }
                (b"SETNAME", [word, after @ ..]) => {
                    if !is_name(word) {
                        return invalid_name_error(out);
                    }
                    name = Some(word.clone());
                    after
                }
                _ => {
                    let option = truncated_word(option);
                    return out.error(&format!("Syntax error in HELLO option '{option}'"));
                }
            };
        }
        if !authenticated {
            return out.error_of(
                "NOAUTH",
                "HELLO must be called with the client already authenticated, otherwise the HELLO \
                 <proto> AUTH <user> \
                 <pass> option can be used to authenticate the client and select the RESP \
                 protocol version at the same time",
            );
        }
        (self.authenticated, self.resp3, out.resp3) = (authenticated, resp3, resp3);
        self.name = name.unwrap_or(std::mem::take(&mut self.name));
        out.map(7);
        for (key, value) in [("server", "redis"), ("version", VERSION)] {
            out.bulk(key.as_bytes());
            out.bulk(value.as_bytes());
        }
        out.bulk(b"proto");
        out.integer(if resp3 { 3 } else { 2 });
        out.bulk(b"id");
        out.integer(self.number as i64);
        for (key, value) in [("mode", "standalone"), ("role", "master")] {
            out.bulk(key.as_bytes());
            out.bulk(value.as_bytes());
        }
        out.bulk(b"modules");
        out.array(0);
    }

    fn client(&mut self, sub: &[u8], words: &[Vec<u8>], out: &mut Reply) {
        let word = |n: usize| words.get(n).map_or(&b""[..], |w| w);
        match (sub, words.len()) {
            (b"ID", 2) => out.integer(self.number as i64),
            (b"GETNAME", 2) => out.bulk_or_null((!self.name.is_empty()).then_some(&self.name)),
            (b"SETNAME", 3) if !is_name(word(2)) => invalid_name_error(out),
            (b"SETNAME", 3) => {
                self.name = word(2).to_vec();
                out.ok();
            }
            (b"SETINFO", 4) if !is_name(word(3)) => {
                let option = truncated_word(word(2)).to_lowercase();
                out.error(&format!(
                    "{option} cannot contain spaces, newlines or special characters."
                ));
            }
            (b"SETINFO", 4) => {
                let field = match &word(2).to_ascii_uppercase()[..] {
                    b"LIB-NAME" => &mut self.library,
                    b"LIB-VER" => &mut self.library_version,
                    _ => {
                        return out.error(&format!(
                            "Unrecognized option '{}'",
                            truncated_word(word(2))
                        ))
                    }
                };
                *field = words[3].clone();
                out.ok();
            }
            (b"INFO", 2) => {
                let text = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
                out.text(&format!(
                    "id={} name={} db=0 resp={} lib-name={} lib-ver={} user=default\n",
                    self.number,
                    text(&self.name),
                    if self.resp3 { 3 } else { 2 },
                    text(&self.library),
                    text(&self.library_version)
                ));
            }
            (b"REPLY", 3) if word(2).eq_ignore_ascii_case(b"ON") => out.ok(),
            (b"ID" | b"GETNAME" | b"SETNAME" | b"SETINFO" | b"INFO", _) => {
                let name = [&b"client|"[..], &sub.to_ascii_lowercase()].concat();
                out.error(&wrong_arity(&name));
            }
            _ => {
                let allowed = "GETNAME, ID, INFO, REPLY ON, SETINFO, SETNAME";
                unknown_subcommand(words, allowed, out);
            }
        }
    }
}

fn wrong_password_error(out: &mut Reply) {
    out.error_of(
        "WRONGPASS",
        "invalid username-password pair or user is disabled.",
    );
}

/// A valid name of a client or library.
fn is_name(name: &[u8]) -> bool {
    name.iter().all(u8::is_ascii_graphic)
}

fn invalid_name_error(out: &mut Reply) {
    out.error("Client names cannot contain spaces, newlines or special characters.");
}

fn unknown_subcommand(words: &[Vec<u8>], allowed: &str, out: &mut Reply) {
    let truncated_word = words[1..].iter().take(2).map(|w| truncated_word(w));
    let truncated_word = truncated_word.collect::<Vec<_>>().join(" ");
    out.error(&format!(
        "unknown subcommand or wrong number of arguments for '{truncated_word}': allowed are \
         {allowed}"
    ));
}

fn config(sub: &[u8], words: &[Vec<u8>], out: &mut Reply) {
    if sub != b"GET" || words.len() < 3 {
        return unknown_subcommand(words, "GET with patterns; nothing can be set", out);
    }
    let patterns: Vec<_> = words[2..].iter().map(|w| w.to_ascii_lowercase()).collect();
    // Long patterns match none of these names, and may take long to compare.
    let fitting = |name: &str| {
        let short = patterns.iter().filter(|p| p.len() <= 64);
        short
            .into_iter()
            .any(|p| matches_pattern(p, name.as_bytes()))
    };
    let chosen: Vec<_> = settings()
        .into_iter()
        .filter(|(name, _)| fitting(name))
        .collect();
    out.map(chosen.len());
    for (name, value) in chosen {
        out.bulk(name.as_bytes());
        out.bulk(value.as_bytes());
    }
}

/// `COMMAND`: the supported commands.
fn describe(words: &[Vec<u8>], out: &mut Reply) {
    let sub = words.first().map(|w| w.to_ascii_uppercase());
    match (sub.as_deref(), words.len()) {
        (None, _) | (Some(b"INFO"), 1) => {
            out.array(COMMANDS.len());
            COMMANDS
                .iter()
                .for_each(|command| describe_command(command, out));
        }
        (Some(b"INFO"), _) => {
            out.array(words.len() - 1);
            for name in &words[1..] {
                match find(name) {
                    Some(command) => describe_command(command, out),
                    None => out.null(),
                }
            }
        }
        (Some(b"COUNT"), 1) => out.integer(COMMANDS.len() as i64),
        (Some(b"LIST"), 1) => {
            out.array(COMMANDS.len());
            for command in COMMANDS {
                out.bulk(command.name.to_ascii_lowercase().as_bytes());
            }
        }
        // No command has documentation here.
        (Some(b"DOCS"), _) => out.map(0),
        _ => {
            let words = [&[b"COMMAND".to_vec()], words].concat();
            unknown_subcommand(&words, "COUNT, DOCS, INFO, LIST", out);
        }
    }
}

/// The description of a command by `COMMAND`.
fn describe_command(command: &Command, out: &mut Reply) {
    out.array(10);
    out.bulk(command.name.to_ascii_lowercase().as_bytes());
    out.integer(command.arity);
    let flags: &[&str] = match command.kind {
        AccessMode::Read if command.keys.0 > 0 => &["readonly"],
        AccessMode::Read => &[],
        AccessMode::Write => &["write"],
    };
    out.set(flags.len());
    flags.iter().for_each(|flag| out.simple(flag));
    let (first, last, step) = command.keys;
    [first, last, step].iter().for_each(|n| out.integer(*n));
    // Categories, hints, specifications of keys, subcommands.
    out.set(0);
    out.set(0);
    out.set(0);
    out.array(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, text, fit) in [
            ("*", "save", true),
            ("sa*", "save", true),
            ("**e", "save", true),
            ("s?ve", "save", true),
            ("s[a-c]ve", "save", true),
            ("s[^a]ve", "save", false),
            ("s[c-a]ve", "save", true),
            ("\\save", "save", true),
            ("sav", "save", false),
            ("savee", "save", false),
            ("", "save", false),
            ("[", "[", true),
        ] {
            assert_eq!(
                matches_pattern(pattern.as_bytes(), text.as_bytes()),
                fit,
                "{pattern} {text}"
            );
        }
    }
}
