// SPDX-License-Identifier: Apache-2.0

//! Records of a CSV, byte for byte.
//!
//! The rules are those of RFC 4180: a value that begins with a quote ends with one, and two quotes
//! within it are one. Lines end with LF, CR, or CR LF. An empty line is no record, unless there is
//! only one column. In that case it is an empty value.

use std::io::{self, BufRead, BufReader, Read};

use crate::input::{Cursor, Input};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// Stands for an empty value that is alone in its line.
pub const EMPTY: &[u8] = b"\"\"";

/// The first line.
#[derive(Clone, Debug)]
pub struct HeaderLine {
    /// The line, with a byte order mark if the file has one.
    pub line: Vec<u8>,
    /// The end of the line.
    pub end: &'static str,
}

/// Position of the parser in a record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ParserState {
    /// At the start of a value.
    Begin,
    /// In a value, or past the quotes of one.
    Value,
    /// Within quotes.
    Quoted,
    /// Past a quote within quotes. It ends them, unless another one follows.
    Quote,
}

/// Reads records one after another.
pub struct Records {
    input: BufReader<Cursor>,
    /// There is only one column, so empty lines are records.
    single: bool,
    /// Columns of the latest record whose value is two quotes. This is an empty text, while an
    /// empty value is null. In a file with one column it is null as well, as an empty line would be
    /// no record.
    empty: Vec<usize>,
}

/// How a record ended.
struct RecordEnd {
    /// The end of the line. `None`: the file ended.
    end: Option<&'static str>,
    /// Commas between values.
    commas: usize,
}

impl Records {
    /// Reads the first line, and returns the records after it. `None`: the file is empty.
    pub fn new(input: &Input) -> io::Result<Option<(HeaderLine, Records)>> {
        let mark = BYTE_ORDER_MARK.len();
        let marked = input.bytes() >= mark as u64 && input.read_at(0, mark)? == BYTE_ORDER_MARK;
        let mut line = match marked {
            true => BYTE_ORDER_MARK.to_vec(),
            false => Vec::new(),
        };
        let mut records = Records {
            input: input.from(line.len() as u64),
            single: true,
            empty: Vec::new(),
        };
        let start = line.len();
        let ended = loop {
            let Some(ended) = records.record(&mut line)? else {
                return Ok(None);
            };
            if line.len() > start {
                break ended;
            }
        };
        records.single = ended.commas == 0;
        let end = ended.end.unwrap_or("\n");
        Ok(Some((HeaderLine { line, end }, records)))
    }

    /// Appends the next record, without the end of its line. Returns false at the end.
    pub fn next(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let start = out.len();
        while self.record(out)?.is_some() {
            if self.single || out.len() > start {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Columns of the latest record that have an empty text.
    pub fn empty_texts(&self) -> &[usize] {
        match self.single {
            true => &[],
            false => &self.empty,
        }
    }

    fn record(&mut self, out: &mut Vec<u8>) -> io::Result<Option<RecordEnd>> {
        let (mut at, mut commas, mut any) = (ParserState::Begin, 0, false);
        self.empty.clear();
        // Bytes of the value.
        let mut size = 0;
        loop {
            let bytes = self.input.fill_buf()?;
            if bytes.is_empty() {
                let end = None;
                if (at, size) == (ParserState::Quote, EMPTY.len()) {
                    self.empty.push(commas);
                }
                return Ok(any.then_some(RecordEnd { end, commas }));
            }
            any = true;
            let mut ended = None;
            let mut read = bytes.len();
            for (n, &byte) in bytes.iter().enumerate() {
                let ends = at != ParserState::Quoted && matches!(byte, b',' | b'\n' | b'\r');
                if ends && (at, size) == (ParserState::Quote, EMPTY.len()) {
                    self.empty.push(commas);
                }
                size = if ends { 0 } else { size + 1 };
                at = match (at, byte) {
                    (ParserState::Quoted, b'"') => ParserState::Quote,
                    (ParserState::Quoted, _) | (ParserState::Quote, b'"') => ParserState::Quoted,
                    (_, b'\n' | b'\r') => {
                        ended = Some(byte);
                        read = n;
                        break;
                    }
                    (_, b',') => {
                        commas += 1;
                        ParserState::Begin
                    }
                    (ParserState::Begin, b'"') => ParserState::Quoted,
                    _ => ParserState::Value,
                };
            }
            out.extend_from_slice(&bytes[..read]);
            self.input.consume(read + usize::from(ended.is_some()));
            let Some(byte) = ended else {
                continue;
            };
            let end = match byte {
                b'\n' => "\n",
                _ if self.input.fill_buf()?.first() == Some(&b'\n') => {
                    self.input.consume(1);
                    "\r\n"
                }
                _ => "\r",
            };
            let end = Some(end);
            return Ok(Some(RecordEnd { end, commas }));
        }
    }
}

/// The same CSV in one spelling: LF ends each record, and an empty value that is alone in its line
/// is quoted.
pub struct NormalisedReader {
    head: Option<HeaderLine>,
    records: Option<Records>,
    held: Vec<u8>,
    read: usize,
}

impl NormalisedReader {
    pub fn new(input: &Input) -> io::Result<NormalisedReader> {
        let (head, records) = Records::new(input)?.unzip();
        Ok(NormalisedReader {
            head,
            records,
            held: Vec::new(),
            read: 0,
        })
    }

    fn fill(&mut self) -> io::Result<()> {
        self.held.clear();
        self.read = 0;
        if let Some(head) = self.head.take() {
            self.held.extend(head.line);
            self.held.push(b'\n');
        }
        let Some(records) = &mut self.records else {
            return Ok(());
        };
        while self.held.len() < 64 << 10 {
            let start = self.held.len();
            if !records.next(&mut self.held)? {
                break;
            }
            if self.held.len() == start {
                self.held.extend_from_slice(EMPTY);
            }
            self.held.push(b'\n');
        }
        Ok(())
    }
}

impl Read for NormalisedReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(out)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for NormalisedReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.read == self.held.len() {
            self.fill()?;
        }
        Ok(&self.held[self.read..])
    }

    fn consume(&mut self, count: usize) {
        self.read += count;
    }
}
