// SPDX-License-Identifier: Apache-2.0

//! Parsing of requests from a stream of bytes: arrays of bulk strings, and inline requests.

use crate::{is_text_start, MAX_REQUEST, MAX_VALUE, MAX_WORDS};

pub type Words = Vec<Vec<u8>>;

/// Most bytes of a line.
const MAX_LINE: usize = 64 << 10;
/// Most words of a refused array, and most bytes of a refused bulk string, that are read to their
/// end: Redis's limits.
const MAX_SKIPPED_WORDS: i64 = i32::MAX as i64;
const MAX_SKIPPED_BYTES: i64 = 512 << 20;
/// The same for a client that has not sent the password; it gets an error instead.
const UNAUTHENTICATED_WORDS: i64 = 10;
const UNAUTHENTICATED_BYTES: i64 = 16 << 10;

/// The content of the input.
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    /// An incomplete request.
    Unfinished,
    /// A request; without words for an empty line. `line`: an inline request.
    Words { words: Words, line: bool },
    /// A request that is too large, read to its end.
    TooLarge(String),
    /// Input that begins as no request does.
    NotText,
}

/// Parses an integer in Redis's only form: 007 and -0 are refused.
pub fn parse_integer(text: &[u8]) -> Option<i64> {
    crate::number(text).filter(|n: &i64| n.to_string().as_bytes() == text)
}

/// Reads an array of bulk strings. Nothing is allocated before its bytes have arrived.
#[derive(Default)]
pub struct Reader {
    /// Remaining bulk strings.
    left: i64,
    words: Words,
    /// Bytes of the words.
    bytes: usize,
    /// Remaining bytes of the current bulk string.
    body: Option<usize>,
    refused: Option<String>,
}

/// The first line of the input, and its length with the end.
fn line<'a>(input: &'a [u8], what: &str) -> Result<Option<(&'a [u8], usize)>, String> {
    let end = input.iter().take(MAX_LINE).position(|b| *b == b'\n');
    match end {
        Some(end) => {
            let text = &input[..end];
            Ok(Some((text.strip_suffix(b"\r").unwrap_or(text), end + 1)))
        }
        None if input.len() >= MAX_LINE => Err(format!("too big {what}")),
        None => Ok(None),
    }
}

impl Reader {
    /// True within an array.
    pub fn in_request(&self) -> bool {
        self.left > 0
    }

    /// Consumes bytes, at most to the end of a request; returns their number, and the request.
    /// `authenticated`: the client has sent the password, if there is one. An error ends the
    /// connection.
    pub fn read(&mut self, input: &[u8], authenticated: bool) -> Result<(usize, Request), String> {
        let mut at = 0;
        if self.left == 0 {
            match input.first() {
                Some(byte) if !is_text_start(*byte) => return Ok((0, Request::NotText)),
                _ => {}
            }
            let what = match input.first() {
                Some(b'*') => "mbulk count string",
                _ => "inline request",
            };
            let Some((first, used)) = line(input, what)? else {
                return Ok((0, Request::Unfinished));
            };
            let Some(count) = first.strip_prefix(b"*") else {
                let words = split(first)?;
                let request = match words.len() <= MAX_WORDS {
                    true => Request::Words { words, line: true },
                    false => Request::TooLarge(too_many_words()),
                };
                return Ok((used, request));
            };
            at = used;
            self.begin(parse_integer(count), authenticated)?;
        }
        while self.left > 0 {
            let used = match self.body {
                None => self.header(&input[at..], authenticated)?,
                Some(bytes) => self.body(&input[at..], bytes)?,
            };
            match used {
                0 => return Ok((at, Request::Unfinished)),
                used => at += used,
            }
        }
        let words = std::mem::take(&mut self.words);
        self.bytes = 0;
        let request = match self.refused.take() {
            Some(text) => Request::TooLarge(text),
            None => Request::Words { words, line: false },
        };
        Ok((at, request))
    }

    fn begin(&mut self, count: Option<i64>, authenticated: bool) -> Result<(), String> {
        let count = count.filter(|n| *n <= MAX_SKIPPED_WORDS);
        let count = count.ok_or("invalid multibulk length")?;
        if count > UNAUTHENTICATED_WORDS && !authenticated {
            return Err("unauthenticated multibulk length".into());
        }
        if count > MAX_WORDS as i64 {
            self.refuse(too_many_words());
        }
        self.left = count.max(0);
        Ok(())
    }

    /// Refuses the request and drops its words; the first reason counts.
    fn refuse(&mut self, text: String) {
        self.words = Words::new();
        self.refused.get_or_insert(text);
    }

    /// Reads the header of a bulk string; returns its length, 0 if it is incomplete.
    fn header(&mut self, input: &[u8], authenticated: bool) -> Result<usize, String> {
        if let Some(byte) = input.first().filter(|b| **b != b'$') {
            return Err(format!("expected '$', got '{}'", byte.escape_ascii()));
        }
        let Some((head, used)) = line(input, "bulk count string")? else {
            return Ok(0);
        };
        let bytes = parse_integer(&head[1..]).filter(|n| (0..=MAX_SKIPPED_BYTES).contains(n));
        let bytes = bytes.ok_or("invalid bulk length")?;
        if bytes > UNAUTHENTICATED_BYTES && !authenticated {
            return Err("unauthenticated bulk length".into());
        }
        let bytes = bytes as usize;
        self.bytes = self.bytes.saturating_add(bytes);
        if bytes > MAX_VALUE {
            self.refuse(format!("a value or word has at most {MAX_VALUE} bytes"));
        } else if self.bytes > MAX_REQUEST {
            self.refuse(format!("a request has at most {MAX_REQUEST} bytes"));
        }
        self.body = Some(bytes + 2);
        Ok(used)
    }

    /// Reads bytes of a bulk string with `bytes` remaining ones; returns their number.
    fn body(&mut self, input: &[u8], bytes: usize) -> Result<usize, String> {
        // The data of a refused string are dropped, and its end is checked.
        if self.refused.is_some() && bytes > 2 && !input.is_empty() {
            let gone = (bytes - 2).min(input.len());
            self.body = Some(bytes - gone);
            return Ok(gone);
        }
        let Some(data) = input.get(..bytes) else {
            return Ok(0);
        };
        let word = data.strip_suffix(b"\r\n");
        let word = word.ok_or("expected CRLF after a bulk string")?;
        if self.refused.is_none() {
            self.words.push(word.to_vec());
        }
        (self.body, self.left) = (None, self.left - 1);
        Ok(bytes)
    }
}

fn too_many_words() -> String {
    format!("a request has at most {MAX_WORDS} words")
}

/// `isspace` of C, in its default locale.
fn space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0B
}

/// Splits an inline request as Redis does: "..." with the escapes \n, \r, \t, \b, \a, \xHH and of
/// any other character; '...' with \' only. A quote begins anywhere in a word, and a space follows
/// its end.
pub fn split(line: &[u8]) -> Result<Words, String> {
    if line.contains(&0) {
        return Err("a zero byte in an inline request".into());
    }
    let unbalanced = || Err("unbalanced quotes in request".into());
    let (mut words, mut rest) = (Words::new(), line);
    loop {
        while let Some((_, after)) = rest.split_first().filter(|(first, _)| space(**first)) {
            rest = after;
        }
        if rest.is_empty() {
            return Ok(words);
        }
        let mut word = Vec::new();
        let mut quote = None;
        loop {
            let Some((&byte, after)) = rest.split_first() else {
                if quote.is_some() {
                    return unbalanced();
                }
                break;
            };
            rest = after;
            match (quote, byte) {
                (None, b' ' | b'\n' | b'\r' | b'\t') => break,
                (None, b'"' | b'\'') => quote = Some(byte),
                (Some(open), byte) if byte == open => {
                    if rest.first().is_some_and(|next| !space(*next)) {
                        return unbalanced();
                    }
                    break;
                }
                (Some(b'"'), b'\\') => match rest {
                    [b'x', high, low, after @ ..]
                        if hex(*high).is_some() && hex(*low).is_some() =>
                    {
                        word.push(hex(*high).unwrap_or(0) << 4 | hex(*low).unwrap_or(0));
                        rest = after;
                    }
                    [escaped, after @ ..] => {
                        word.push(match escaped {
                            b'n' => b'\n',
                            b'r' => b'\r',
                            b't' => b'\t',
                            b'b' => 0x08,
                            b'a' => 0x07,
                            other => *other,
                        });
                        rest = after;
                    }
                    [] => return unbalanced(),
                },
                (Some(b'\''), b'\\') if rest.first() == Some(&b'\'') => {
                    word.push(b'\'');
                    rest = &rest[1..];
                }
                (_, byte) => word.push(byte),
            }
        }
        words.push(word);
    }
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|n| n as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `sdssplitargs` of Redis 7 does.
    #[test]
    fn inline_requests_are_split_as_by_redis() {
        let good: &[(&str, &[&str])] = &[
            ("", &[]),
            ("  \t ", &[]),
            ("SET q \"a b\"", &["SET", "q", "a b"]),
            ("SET q 'a b'", &["SET", "q", "a b"]),
            ("a\tb\x0Bc  d\x0C", &["a", "b\x0Bc", "d\x0C"]),
            (
                r#""\x41\x4a\xzz\n\r\t\b\a\"\\\q""#,
                &["AJxzz\n\r\t\x08\x07\"\\q"],
            ),
            (r"'\n\'\x41'", &[r"\n'\x41"]),
            (r#"a"b c" d"#, &["ab c", "d"]),
            (r#"a'b "c' d"#, &["ab \"c", "d"]),
            (r#""" '' x"#, &["", "", "x"]),
            (r"a\ b\n", &[r"a\", r"b\n"]),
        ];
        for (line, words) in good {
            let words: Words = words.iter().map(|w| w.as_bytes().to_vec()).collect();
            assert_eq!(split(line.as_bytes()), Ok(words), "{line:?}");
        }
        for line in [
            "\"",
            "'",
            "SET q \"hello",
            "SET q 'hello",
            r#"SET q "a"b"#,
            "SET q 'a'b",
            r#"SET q "a\"#,
            r#"SET q "a\""#,
            r"SET q 'a\'",
            r#""a""b""#,
            "a\"",
        ] {
            let wrong = Err("unbalanced quotes in request".into());
            assert_eq!(split(line.as_bytes()), wrong, "{line:?}");
        }
        assert!(split(b"SET a b\0c").is_err());
    }

    /// The requests of all bytes, given in fragments.
    fn all(input: &[u8], piece: usize) -> (Vec<Request>, Option<String>) {
        let (mut reader, mut buffer, mut out) = (Reader::default(), Vec::new(), Vec::new());
        for bytes in input.chunks(piece) {
            buffer.extend(bytes);
            loop {
                match reader.read(&buffer, true) {
                    Ok((used, Request::Unfinished)) => {
                        buffer.drain(..used);
                        break;
                    }
                    Ok((_, Request::NotText)) => {
                        out.push(Request::NotText);
                        return (out, None);
                    }
                    Ok((used, request)) => {
                        buffer.drain(..used);
                        out.push(request);
                    }
                    Err(text) => return (out, Some(text)),
                }
            }
        }
        (out, None)
    }

    #[test]
    fn requests_do_not_depend_on_fragmentation() {
        let mut input =
            b"PING \"a b\"\r\n\r\n*0\r\n*-1\r\n*2\r\n$3\r\nGET\r\n$5\r\na\r\nb\0\r\n".to_vec();
        input.extend(b"*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$300000\r\n");
        input.extend(b"\r\nFLUSHALL\r\n".repeat(25_000));
        input.extend(b"\r\n*2000\r\n");
        input.extend(b"$1\r\n*\r\n".repeat(2000));
        input.extend(b"*5\r\n");
        for _ in 0..5 {
            input.extend(b"$262144\r\n");
            input.extend(vec![b'\n'; 262_144]);
            input.extend(b"\r\n");
        }
        input.extend(b"PING\n*1\r\n$4\r\nPINGxx");
        let words = |words: &[&[u8]], line| Request::Words {
            words: words.iter().map(|w| w.to_vec()).collect(),
            line,
        };
        let expected = vec![
            words(&[b"PING", b"a b"], true),
            words(&[], true),
            words(&[], false),
            words(&[], false),
            words(&[b"GET", b"a\r\nb\0"], false),
            Request::TooLarge("a value or word has at most 262144 bytes".into()),
            Request::TooLarge("a request has at most 1024 words".into()),
            Request::TooLarge("a request has at most 1048576 bytes".into()),
            words(&[b"PING"], true),
        ];
        for piece in [1, 2, 3, 7, 4096, 16 << 10, input.len()] {
            let (got, error) = all(&input, piece);
            assert!(
                got == expected,
                "in pieces of {piece}: {} requests",
                got.len()
            );
            assert_eq!(error.as_deref(), Some("expected CRLF after a bulk string"));
        }
    }

    #[test]
    fn requests_with_invalid_syntax_end_the_connection() {
        for (bytes, text) in [
            (
                &b"*99999999999999999999\r\n"[..],
                "invalid multibulk length",
            ),
            (b"*2147483648\r\n", "invalid multibulk length"),
            (b"*01\r\n", "invalid multibulk length"),
            (b"*x\r\n", "invalid multibulk length"),
            (b"*1\r\n$536870913\r\n", "invalid bulk length"),
            (b"*1\r\n$-1\r\n", "invalid bulk length"),
            (b"*1\r\n$+1\r\n", "invalid bulk length"),
            (b"*1\r\n$007\r\n", "invalid bulk length"),
            (b"*1\r\n:1\r\n", "expected '$', got ':'"),
            (b"*1\r\n\xFF", "expected '$', got '\\xff'"),
        ] {
            assert_eq!(
                all(bytes, 1).1.as_deref(),
                Some(text),
                "{}",
                bytes.escape_ascii()
            );
        }
        let long = vec![b'a'; MAX_LINE];
        assert_eq!(
            all(&long, 4096).1.as_deref(),
            Some("too big inline request")
        );
        for first in [0x16, 0x80, 0x00, 0xFF, 0x1B] {
            assert_eq!(all(&[first, b'\n'], 1).0, [Request::NotText]);
        }
        let mut reader = Reader::default();
        assert!(reader.read(b"*11\r\n", false).is_err());
        assert!(Reader::default().read(b"*1\r\n$16385\r\n", false).is_err());
    }
}
