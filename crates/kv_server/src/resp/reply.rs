// SPDX-License-Identifier: Apache-2.0

//! Encoding of replies: RESP2, or RESP3 if the client has selected it.

use pm::{Error, Result};

use crate::MAX_REPLY;

/// A sequence of replies.
#[derive(Default)]
pub struct Reply {
    pub bytes: Vec<u8>,
    /// RESP3; else RESP2.
    pub resp3: bool,
}

impl Reply {
    pub fn new(resp3: bool) -> Reply {
        Reply {
            bytes: Vec::new(),
            resp3,
        }
    }

    fn line(&mut self, kind: char, text: &str) {
        self.bytes.extend(format!("{kind}{text}\r\n").bytes());
    }

    pub fn simple(&mut self, text: &str) {
        self.line('+', text);
    }

    pub fn ok(&mut self) {
        self.simple("OK");
    }

    /// An error of the generic kind.
    pub fn error(&mut self, text: &str) {
        self.error_of("ERR", text);
    }

    /// An error of a known kind, in capitals.
    pub fn error_of(&mut self, kind: &str, text: &str) {
        let text = text.replace(['\r', '\n'], " ");
        self.line('-', &format!("{kind} {text}"));
    }

    pub fn integer(&mut self, value: i64) {
        self.line(':', &value.to_string());
    }

    pub fn bulk(&mut self, value: &[u8]) {
        self.line('$', &value.len().to_string());
        self.bytes.extend(value);
        self.bytes.extend(b"\r\n");
    }

    /// A bulk string, or null.
    pub fn bulk_or_null(&mut self, value: Option<&[u8]>) {
        match value {
            Some(value) => self.bulk(value),
            None => self.null(),
        }
    }

    pub fn null(&mut self) {
        self.bytes.extend(match self.resp3 {
            true => &b"_\r\n"[..],
            false => b"$-1\r\n",
        });
    }

    /// Begins an array of `len` replies.
    pub fn array(&mut self, len: usize) {
        self.line('*', &len.to_string());
    }

    /// Begins a set of `len` replies.
    pub fn set(&mut self, len: usize) {
        self.line(if self.resp3 { '~' } else { '*' }, &len.to_string());
    }

    /// Begins a map of `len` pairs of replies.
    pub fn map(&mut self, len: usize) {
        match self.resp3 {
            true => self.line('%', &len.to_string()),
            false => self.array(2 * len),
        }
    }

    /// Verbatim text.
    pub fn text(&mut self, text: &str) {
        match self.resp3 {
            true => self.line('=', &format!("{}\r\ntxt:{text}", text.len() + 4)),
            false => self.bulk(text.as_bytes()),
        }
    }

    /// An error if the reply is too long.
    pub fn check(&self) -> Result<()> {
        match self.bytes.len() <= MAX_REPLY {
            true => Ok(()),
            false => Err(Error::Full(format!(
                "the reply has more than {MAX_REPLY} bytes"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reply_types_follow_the_protocol_version() {
        let written = |resp3| {
            let mut r = Reply::new(resp3);
            r.ok();
            r.error_of("NOPROTO", "a\r\nb");
            r.integer(-3);
            r.bulk_or_null(Some(b"a\r\nb"));
            r.bulk_or_null(None);
            r.array(0);
            r.set(1);
            r.map(2);
            r.text("a\r\nb");
            String::from_utf8(r.bytes).unwrap()
        };
        let same = "+OK\r\n-NOPROTO a  b\r\n:-3\r\n$4\r\na\r\nb\r\n";
        let two = "$-1\r\n*0\r\n*1\r\n*4\r\n$4\r\na\r\nb\r\n";
        let resp3 = "_\r\n*0\r\n~1\r\n%2\r\n=8\r\ntxt:a\r\nb\r\n";
        assert_eq!(written(false), [same, two].concat());
        assert_eq!(written(true), [same, resp3].concat());
    }
}
