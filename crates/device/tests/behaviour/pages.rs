// SPDX-License-Identifier: Apache-2.0

//! Command pages in right and wrong use: commands in parts, busy lines, accesses outside of a page,
//! resets.

use sim::{Bar, Random};
use spec::bar4;
use spec::regs::command_page::line;

use crate::common::Copying;

const BUSY: u32 = 1;
const DONE: u32 = 2;
const INVALID: u32 = 8;

/// A command that copies.
fn command(src: u64, dst: u64, bytes: u64) -> [u8; 64] {
    let mut command = [0; 64];
    for (n, value) in [src, dst, bytes].iter().enumerate() {
        command[8 + 8 * n..16 + 8 * n].copy_from_slice(&value.to_le_bytes());
    }
    command
}

#[derive(Debug, PartialEq, Eq)]
struct Status {
    state: u32,
    result: u32,
    accepted: u32,
    ended: u32,
    dropped: u32,
    /// A bit for each line.
    busy: u64,
    succeeded: u64,
}

impl Copying {
    fn at(&self, line: u64) -> u64 {
        self.page + 64 * line
    }

    /// Stores into a line.
    fn put(&mut self, line: u64, offset: u64, data: &[u8]) {
        let at = self.at(line) + offset;
        self.post(Bar::Control, at, data);
    }

    fn status(&mut self, line: u64) -> Status {
        let at = self.at(line);
        let bytes = self.read(Bar::Control, at, 64).unwrap();
        let word = |at: u64| {
            let at = at as usize;
            u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
        };
        let long = |at: u64| u64::from(word(at + 4)) << 32 | u64::from(word(at));
        assert!(bytes[28..32].iter().all(|byte| *byte == 0));
        assert!(bytes[48..].iter().all(|byte| *byte == 0));
        let status = Status {
            state: word(line::STATE),
            result: word(line::RESULT),
            accepted: word(line::ACCEPTED),
            ended: word(line::ENDED),
            dropped: word(line::DROPPED),
            busy: long(line::BUSY_LO),
            succeeded: long(line::SUCCEEDED_LO),
        };
        let own = |lines: u64| lines >> line & 1 != 0;
        assert_eq!(own(status.busy), status.state & BUSY != 0, "{status:?}");
        let ended_well = status.state & DONE != 0 && status.result == 0;
        assert_eq!(own(status.succeeded), ended_well, "{status:?}");
        assert_eq!(status.busy & status.succeeded, 0, "{status:?}");
        status
    }

    fn finish(&mut self, line: u64) -> Status {
        for _ in 0..200 {
            let status = self.status(line);
            if status.state == DONE {
                return status;
            }
            assert_eq!(status.state, BUSY);
            self.cycles(100);
        }
        panic!("the command in line {line} has not ended");
    }
}

mod sampled {
    use super::*;

    #[test]
    fn page_commands_are_assembled_in_any_order() {
        let mut b = Copying::new();
        let mut random = Random::new(3);
        for turn in 0..30u32 {
            let line = random.below(64);
            let (value, dst) = (turn as u8 + 1, 0x1000 + 64 * u64::from(turn));
            b.store(0, &[value]);
            let whole = command(0, dst, 1);
            // Cut at random offsets; the parts in random order, some of them twice.
            let mut cuts: Vec<usize> = (0..random.below(6))
                .map(|_| 1 + random.below(63) as usize)
                .collect();
            cuts.extend([0, 64]);
            cuts.sort_unstable();
            cuts.dedup();
            let mut pieces: Vec<_> = cuts.windows(2).map(|pair| pair[0]..pair[1]).collect();
            for n in 0..pieces.len() {
                let other = random.below(pieces.len() as u64) as usize;
                pieces.swap(n, other);
            }
            if pieces.len() > 1 {
                let twice = random.below(pieces.len() as u64 - 1) as usize;
                pieces.insert(0, pieces[twice].clone());
            }
            let last = pieces.len() - 1;
            for (n, piece) in pieces.iter().enumerate() {
                if n == last {
                    b.cycles(100);
                    assert_eq!(b.status(line).accepted, turn, "not whole yet: {pieces:?}");
                }
                // Parts of another line in between.
                b.put((line + 1) % 64, 0, &[0; 3]);
                b.put(line, piece.start as u64, &whole[piece.clone()]);
            }
            let status = b.finish(line);
            assert_eq!(
                (status.result, status.accepted, status.ended),
                (0, turn + 1, turn + 1)
            );
            assert_eq!(b.byte(dst), value);
        }
    }

    #[test]
    fn page_stored_at_once_is_64_commands() {
        let mut b = Copying::new();
        b.store(0, &[9]);
        let page: Vec<u8> = (0..64).flat_map(|n| command(n, n + 1, 1)).collect();
        b.put(0, 0, &page);
        let status = b.finish(63);
        assert_eq!((status.accepted, status.ended, status.dropped), (64, 64, 0));
        assert_eq!(b.byte(64), 9, "in their order");
        assert_eq!((status.busy, status.succeeded), (0, u64::MAX));
    }

    #[test]
    fn page_busy_line_drops_writes() {
        let mut b = Copying::new();
        let long = command(0, 8 << 20, 1 << 20);
        for line in 0..64 {
            b.put(line, 0, &long);
        }
        b.put(5, 0, &command(0, 0, 0));
        b.put(6, 8, &[1]);
        b.post(Bar::Pm, 100, b"stored");
        assert_eq!(b.read(Bar::Pm, 100, 6).unwrap(), b"stored");
        let status = b.status(5);
        assert_eq!(
            (status.state, status.accepted, status.dropped),
            (BUSY, 64, 2)
        );
        assert_eq!((status.busy | 1, status.succeeded & !1), (u64::MAX, 0));
        assert!(status.ended < 2);
        // A function reset ends all of them, and forgets incomplete commands.
        b.function_reset();
        b.cycles(500);
        for line in [0, 5, 63] {
            let expected = Status {
                state: 0,
                result: 0,
                accepted: 0,
                ended: 0,
                dropped: 0,
                busy: 0,
                succeeded: 0,
            };
            assert_eq!(b.status(line), expected);
        }
        b.store(7, &[3]);
        b.put(6, 0, &command(7, 8, 1));
        assert_eq!(b.finish(6).result, 0);
        assert_eq!(b.byte(8), 3);
    }

    /// Each line shows the state of all: commands that succeeded, failed or run, and lines without
    /// any, whichever is read.
    #[test]
    fn page_status_is_the_same_in_every_line() {
        let mut b = Copying::new();
        let mut random = Random::new(16);
        let mut written = 0u64;
        let mut bad = 0u64;
        for turn in 0..60 {
            let line = random.below(64);
            let mut wanted = command(0, 0x1000, 1 + random.below(200));
            let wrong = random.below(3) == 0;
            wanted[7] = u8::from(wrong);
            if b.status(line).state & BUSY != 0 {
                b.finish(line);
            }
            b.put(line, 0, &wanted);
            written |= 1 << line;
            bad = bad & !(1 << line) | u64::from(wrong) << line;
            let status = b.status(random.below(64));
            assert_eq!((status.busy | status.succeeded) & !written, 0, "{turn}");
            assert_eq!(status.succeeded & bad, 0, "{turn}");
            // A command counts from the moment at which it is complete.
            let known = (status.busy | status.succeeded) >> line & 1 != 0;
            assert!(wrong || known, "{turn}: {status:?}");
        }
        for line in 0..64 {
            if written >> line & 1 != 0 {
                b.finish(line);
            }
        }
        for line in 0..64 {
            let status = b.status(line);
            assert_eq!((status.busy, status.succeeded), (0, written & !bad));
        }
    }

    #[test]
    fn page_works_after_resets_at_many_moments() {
        for after in [0, 1, 2, 3, 5, 8, 20, 60] {
            let mut b = Copying::new();
            for line in 0..20 {
                b.post(Bar::Pm, 4096 * line, &[line as u8; 300]);
                b.put(line, 0, &command(4096 * line, 8 << 20, 4000));
            }
            b.put(30, 0, &[1; 40]);
            b.cycles(10 + after);
            b.function_reset();
            b.cycles(500);
            assert_eq!(b.status(0).accepted, 0);
            b.store(0, b"again");
            b.put(30, 32, &command(0, 100, 5)[32..]);
            b.cycles(100);
            assert_eq!(
                b.status(30).accepted,
                0,
                "the piece of the life before is gone"
            );
            b.put(30, 0, &command(0, 100, 5)[..32]);
            let status = b.finish(30);
            assert_eq!((status.result, status.accepted), (0, 1));
            assert_eq!(b.read(Bar::Pm, 100, 5).unwrap(), b"again");
        }
    }

    #[test]
    fn page_access_out_of_range_is_an_error() {
        let mut b = Copying::new();
        let (page, end) = (b.page, bar4::PAGES.end);
        for offset in [page + 0x1000, page + 0x1FC0, end - 64] {
            assert_eq!(b.read(Bar::Control, offset, 64), None, "{offset:#x}");
            b.post(Bar::Control, offset, &[0; 64]);
        }
        // Across the ends of the pages.
        for offset in [bar4::PAGES.start - 4, end - 4] {
            assert_eq!(b.read(Bar::Control, offset, 8), None, "{offset:#x}");
        }
        // The page's last and first bytes, and reads of any size.
        for (offset, bytes) in [(0xFFF, 1), (0, 4096), (3, 13), (60, 8)] {
            let answer = b.read(Bar::Control, page + offset, bytes);
            assert_eq!(answer.unwrap(), vec![0; bytes as usize]);
        }
        for (n, byte) in [0, 7, 32, 63].into_iter().enumerate() {
            let mut wrong = command(0, 64, 1);
            wrong[byte] = 1;
            b.put(n as u64, 0, &wrong);
            assert_eq!(b.finish(n as u64).result, INVALID);
        }
        assert_eq!(b.byte(64), 0);
        b.store(0, &[1]);
        b.put(9, 0, &command(0, 64, 1));
        assert_eq!(b.finish(9).result, 0);
        assert_eq!(b.byte(64), 1);
    }
}
