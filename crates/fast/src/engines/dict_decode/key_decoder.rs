// SPDX-License-Identifier: Apache-2.0

//! Key runs as Apache Parquet writes them, split into rows of up to 16 keys as in the RTL
//! (dict_decode_runs), so that errors have the same positions.

/// Keys of a row.
const LANES: u64 = 16;
/// Keys of a group of a bit-packed run.
const GROUP: u64 = 8;
/// Maximum bytes of a run length, and of a header with its key.
const VARINT_BYTES: usize = 5;
const HEAD_BYTES: u64 = 9;
const BEAT: u64 = 64;

/// An error of the source, at a position among its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecodeError {
    ReadError,
    Truncated,
    Overrun,
    BadKey,
}

/// The result of a decode step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DecodeStep {
    /// Keys of a row.
    Row(Vec<u32>),
    /// A header, without keys.
    Header,
    /// More of the source has to arrive.
    Wait,
    /// All keys have been decoded, or decoding failed.
    End(Result<(), DecodeError>),
}

/// The run that is decoded.
#[derive(Clone, Copy, Debug)]
enum KeyRun {
    None,
    Same { key: u32, left: u64 },
    Packed { left: u64 },
}

/// A source that arrives in parts.
#[derive(Debug)]
pub(super) struct KeyDecoder {
    width: u32,
    fixed: bool,
    /// The source without headers has fewer keys than requested.
    is_truncated: bool,
    /// Bytes of the whole source, and bytes that have arrived.
    bytes: u64,
    source: Vec<u8>,
    /// Bytes that have been decoded and dropped; `source` starts after them.
    dropped: u64,
    /// Numbers of the beats that could not be read.
    bad_beats: Vec<u64>,
    /// Bytes that have been decoded.
    at: u64,
    /// Keys that are left to decode.
    left: u64,
    run: KeyRun,
}

impl KeyDecoder {
    /// A source of `count` keys of `width` bits in `bytes` bytes; `fixed`: without headers.
    pub(super) fn new(width: u32, fixed: bool, count: u64, bytes: u64) -> KeyDecoder {
        let available = match fixed {
            true => bytes * 8 / u64::from(width),
            false => count,
        };
        let left = count.min(available);
        KeyDecoder {
            width,
            fixed,
            is_truncated: available < count,
            bytes: match (fixed, width) {
                (true, _) => left * u64::from(width) / 8,
                (false, 0) => 0,
                _ => bytes,
            },
            source: Vec::new(),
            dropped: 0,
            bad_beats: Vec::new(),
            at: 0,
            left,
            run: match (fixed, width) {
                (true, _) => KeyRun::Packed { left },
                (false, 0) => KeyRun::Same { key: 0, left },
                _ => KeyRun::None,
            },
        }
    }

    /// Bytes that have to be read.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends the next bytes of the source, whole beats except at the end; `ok`: they could be
    /// read.
    pub(super) fn push(&mut self, data: &[u8], ok: bool) {
        let first = self.received_bytes();
        self.source.extend_from_slice(data);
        if !ok {
            self.bad_beats
                .extend(first / BEAT..self.received_bytes().div_ceil(BEAT));
        }
    }

    fn received_bytes(&self) -> u64 {
        self.dropped + self.source.len() as u64
    }

    fn forget(&mut self) {
        let used = (self.at - self.dropped) as usize;
        if used > 1 << 16 {
            self.source.drain(..used);
            self.dropped = self.at;
        }
    }

    fn is_bad(&self, from: u64, until: u64) -> bool {
        let beats = from / BEAT..until.div_ceil(BEAT);
        self.bad_beats.iter().any(|beat| beats.contains(beat))
    }

    fn slice(&self, from: u64, until: u64) -> &[u8] {
        &self.source[(from - self.dropped) as usize..(until - self.dropped) as usize]
    }

    /// The next decode step.
    pub(super) fn next(&mut self) -> DecodeStep {
        self.forget();
        match self.run {
            _ if self.left == 0 => DecodeStep::End(match self.is_truncated {
                true => Err(DecodeError::Truncated),
                false => Ok(()),
            }),
            KeyRun::None => self.header(),
            KeyRun::Same { key, left } => {
                let number = left.min(LANES);
                self.use_keys(
                    number,
                    KeyRun::Same {
                        key,
                        left: left - number,
                    },
                );
                DecodeStep::Row(vec![key; number as usize])
            }
            KeyRun::Packed { left } => self.packed(left),
        }
    }

    fn use_keys(&mut self, number: u64, run: KeyRun) {
        self.left -= number;
        self.run = match run {
            KeyRun::Same { left: 0, .. } | KeyRun::Packed { left: 0 } => KeyRun::None,
            run => run,
        };
    }

    fn packed(&mut self, left: u64) -> DecodeStep {
        let (group, bytes_left) = (u64::from(self.width), self.bytes - self.at);
        if !self.fixed && bytes_left < group {
            return DecodeStep::End(Err(DecodeError::Truncated));
        }
        let two = left > GROUP && (self.fixed || bytes_left >= 2 * group);
        let step = (if two { 2 * group } else { group }).min(bytes_left);
        let until = self.at + step;
        if until > self.received_bytes() {
            return DecodeStep::Wait;
        }
        if self.is_bad(self.at, until) {
            return DecodeStep::End(Err(DecodeError::ReadError));
        }
        let number = left.min(if two { LANES } else { GROUP });
        let bytes = self.slice(self.at, until);
        let keys = (0..number)
            .map(|n| bits(bytes, n * group, self.width))
            .collect();
        self.at = until;
        self.use_keys(
            number,
            KeyRun::Packed {
                left: left - number,
            },
        );
        DecodeStep::Row(keys)
    }

    fn header(&mut self) -> DecodeStep {
        let bytes_left = self.bytes - self.at;
        if bytes_left == 0 {
            return DecodeStep::End(Err(DecodeError::Truncated));
        }
        let until = self.at + bytes_left.min(HEAD_BYTES);
        if until > self.received_bytes() {
            return DecodeStep::Wait;
        }
        // Bytes that could not be read have any value. This is an error if the header needs them.
        let ok = (self.at..until)
            .take_while(|&at| !self.is_bad(at, at + 1))
            .count();
        let head = self.slice(self.at, until);
        let varint = head.iter().take(VARINT_BYTES);
        let size = varint
            .clone()
            .position(|byte| byte & 0x80 == 0)
            .map(|n| n + 1);
        if size.unwrap_or(VARINT_BYTES) > ok && ok < head.len() {
            return DecodeStep::End(Err(DecodeError::ReadError));
        }
        let Some(size) = size else {
            return DecodeStep::End(Err(DecodeError::Truncated));
        };
        let value = varint
            .take(size)
            .rev()
            .fold(0, |value, byte| value << 7 | u64::from(byte & 0x7F));
        let (packed, length) = (value & 1 == 1, value >> 1);
        if length == 0 {
            return DecodeStep::End(Err(DecodeError::Truncated));
        }
        let groups = self.left.div_ceil(GROUP);
        if length > if packed { groups } else { self.left } {
            return DecodeStep::End(Err(DecodeError::Overrun));
        }
        self.run = if packed {
            self.at += size as u64;
            KeyRun::Packed {
                left: (length * GROUP).min(self.left),
            }
        } else {
            let key_bytes = self.width.div_ceil(8) as usize;
            let Some(key) = head.get(size..size + key_bytes) else {
                return DecodeStep::End(Err(DecodeError::Truncated));
            };
            if size + key_bytes > ok {
                return DecodeStep::End(Err(DecodeError::ReadError));
            }
            let key = key
                .iter()
                .rev()
                .fold(0, |key, &byte| key << 8 | u32::from(byte));
            self.at += (size + key_bytes) as u64;
            KeyRun::Same { key, left: length }
        };
        DecodeStep::Header
    }
}

/// `width` bits, at most 32, from bit `at` on.
fn bits(bytes: &[u8], at: u64, width: u32) -> u32 {
    let first = (at / 8) as usize;
    let mut window = [0; 8];
    let available = bytes.len().min(first + 8) - first;
    window[..available].copy_from_slice(&bytes[first..first + available]);
    let value = u64::from_le_bytes(window) >> (at % 8);
    (value & ((1 << width) - 1)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(width: u32, count: u64, source: &[u8]) -> (Vec<u32>, Result<(), DecodeError>) {
        let mut keys = KeyDecoder::new(width, false, count, source.len() as u64);
        keys.push(source, true);
        let mut decoded = Vec::new();
        loop {
            match keys.next() {
                DecodeStep::Row(row) => decoded.extend(row),
                DecodeStep::Header => {}
                DecodeStep::Wait => panic!("the whole source has arrived"),
                DecodeStep::End(end) => return (decoded, end),
            }
        }
    }

    #[test]
    fn key_decoder_reads_rle_and_bit_packed_runs() {
        // The example of Parquet's specification: 0 to 7 in 3 bits; then nine times 5.
        let source = [0b11, 0b1000_1000, 0b1100_0110, 0b1111_1010, 9 << 1, 5];
        let (keys, end) = all(3, 17, &source);
        assert_eq!(end, Ok(()));
        assert_eq!(keys[..8], [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(keys[8..], [5; 9]);
        // The last group may be padded.
        assert_eq!(all(3, 6, &source[..4]), (vec![0, 1, 2, 3, 4, 5], Ok(())));
        assert_eq!(all(0, 20, &[]), (vec![0; 20], Ok(())));
    }

    #[test]
    fn key_decoder_reports_errors_at_their_position() {
        let decode_error = |width, count, source: &[u8]| {
            let (keys, end) = all(width, count, source);
            (keys.len(), end.unwrap_err())
        };
        assert_eq!(
            decode_error(3, 17, &[0b11, 1, 2]),
            (0, DecodeError::Truncated)
        );
        assert_eq!(decode_error(3, 17, &[9 << 1]), (0, DecodeError::Truncated));
        assert_eq!(
            decode_error(3, 17, &[9 << 1, 5]),
            (9, DecodeError::Truncated)
        );
        assert_eq!(decode_error(3, 8, &[9 << 1, 5]), (0, DecodeError::Overrun));
        assert_eq!(
            decode_error(3, 8, &[0b101, 0, 0, 0, 0, 0, 0]),
            (0, DecodeError::Overrun)
        );
        assert_eq!(decode_error(3, 8, &[0, 5]), (0, DecodeError::Truncated));
        assert_eq!(
            decode_error(3, 8, &[0x80, 0x80, 0x80, 0x80, 0x80, 1]),
            (0, DecodeError::Truncated)
        );
    }
}
