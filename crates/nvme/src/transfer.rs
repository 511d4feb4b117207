// SPDX-License-Identifier: Apache-2.0

//! A transfer as segments of host pages, from PRPs or an SGL.

use spec::nvme::{status, Sqe, Status, PAGE_BYTES};

use crate::{prp, sgl, List};

/// A segment of a transfer in one host page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its first address.
    pub addr: u64,
    /// Its bytes.
    pub len: u64,
    /// Its offset in the transfer.
    pub offset: u64,
}

impl Segment {
    /// The part of `bytes` from `addr` on that is in one page.
    pub(crate) fn first_in_page(addr: u64, bytes: u64, offset: u64) -> Segment {
        let len = bytes.min(PAGE_BYTES - addr % PAGE_BYTES);
        Segment { addr, len, offset }
    }
}

/// The reason why a walk stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkError {
    /// A PRP entry with an invalid offset.
    Offset,
    /// A list can't be read.
    Host,
    /// An invalid segment descriptor.
    Segment,
    /// A segment descriptor at an invalid position, or too many descriptors that move no data.
    Count,
    /// An SGL that ends before the data.
    Length,
    /// A descriptor of another type.
    Type,
    /// An address or a length is not a multiple of 4.
    Granularity,
}

impl WalkError {
    /// The status of the error (NVMe 1.4, figure 127). Only an error of the host may be gone at the
    /// next try.
    pub fn status(self) -> Status {
        match self {
            WalkError::Offset => status::PRP_OFFSET_INVALID.dnr(),
            WalkError::Host => status::DATA_TRANSFER_ERROR,
            WalkError::Segment => status::INVALID_SGL_SEGMENT_DESCRIPTOR.dnr(),
            WalkError::Count => status::INVALID_NUMBER_OF_SGL_DESCRIPTORS.dnr(),
            WalkError::Length => status::DATA_SGL_LENGTH_INVALID.dnr(),
            WalkError::Type => status::SGL_DESCRIPTOR_TYPE_INVALID.dnr(),
            WalkError::Granularity => status::SGL_DATA_BLOCK_GRANULARITY_INVALID.dnr(),
        }
    }
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkStep {
    /// A segment of the transfer, in order.
    Data(Segment),
    /// A segment of the transfer that is dropped (Bit Bucket). Its address has no meaning, and it
    /// may cross pages.
    Drop(Segment),
    /// The walk needs the first qword of this list. Call `feed` with it and any number of the
    /// following qwords, or `fail`.
    NeedList(List),
    /// The whole transfer was returned.
    Done,
    /// The walk has ended with an error.
    Failed(WalkError),
}

/// Walks the data pointer of a command, whatever it is.
///
/// ```
/// use nvme::{WalkStep, Walker};
/// use spec::nvme::Sqe;
///
/// let sqe = Sqe::transfer(false, 1, 0, 8).with_prps(0x1000, 0);
/// let mut walker = Walker::new(&sqe, 4096, true);
/// assert!(matches!(walker.step(), WalkStep::Data(s) if s.len == 4096));
/// assert_eq!(walker.step(), WalkStep::Done);
/// ```
#[derive(Clone, Debug)]
pub enum Walker {
    /// PSDT 00b.
    Prp(prp::Walker),
    /// Any other PSDT.
    Sgl(sgl::Walker),
}

impl Walker {
    /// The walk of a command that moves `bytes`, to the host or from it.
    pub fn new(sqe: &Sqe, bytes: u64, to_host: bool) -> Walker {
        let (low, high) = (sqe.prp1(), sqe.prp2());
        match sqe.psdt() {
            0 => Walker::Prp(prp::Walker::new(low, high, bytes)),
            _ => Walker::Sgl(sgl::Walker::new(
                sgl::Descriptor::new(low, high),
                bytes,
                to_host,
            )),
        }
    }

    /// The next step. After `Done` and `Failed` it returns the same again.
    pub fn step(&mut self) -> WalkStep {
        match self {
            Walker::Prp(walker) => walker.step(),
            Walker::Sgl(walker) => walker.step(),
        }
    }

    /// The part of the current list that was not fed, for callers that read ahead.
    pub fn wanted(&self) -> Option<List> {
        match self {
            Walker::Prp(walker) => walker.wanted(),
            Walker::Sgl(walker) => walker.wanted(),
        }
    }

    /// The next qwords of the list; qwords after its end are ignored.
    pub fn feed(&mut self, qwords: &[u64]) {
        match self {
            Walker::Prp(walker) => walker.feed(qwords),
            Walker::Sgl(walker) => walker.feed(qwords),
        }
    }

    /// The next qword of the list can't be read. Qwords that were fed before are used first.
    pub fn fail(&mut self) {
        match self {
            Walker::Prp(walker) => walker.fail(),
            Walker::Sgl(walker) => walker.fail(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudo-random numbers (xorshift).
    struct Numbers(u64);

    impl Numbers {
        fn next(&mut self) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0
        }

        /// Any qword, or one that is likely to be valid: a page, an address in it, or a
        /// descriptor's length and type.
        fn qword(&mut self) -> u64 {
            let any = self.next();
            match any % 8 {
                0 => self.next(),
                1 => u64::MAX - self.next() % 64,
                2 => self.next() % (1 << 20) / 8 * 8,
                3 | 4 => (self.next() % 4) << 60 | self.next() % 4096 / 16 * 16,
                _ => self.next() % (1 << 40) / PAGE_BYTES * PAGE_BYTES,
            }
        }
    }

    #[test]
    fn walk_of_any_host_data_ends_and_covers_each_byte_once() {
        let mut numbers = Numbers(1);
        let (mut ended, mut stopped) = (0, 0);
        for _ in 0..20_000 {
            let psdt = (numbers.next() % 4) as u32;
            let mut sqe = Sqe::new(1).with_prps(numbers.qword(), numbers.qword());
            sqe.dw[0] |= psdt << 14;
            let bytes = 4 * (numbers.next() % (1 << 18) >> (numbers.next() % 18));
            let mut walker = Walker::new(&sqe, bytes, numbers.next() % 2 == 0);
            let (mut returned, mut fed) = (0, 0);
            loop {
                match walker.step() {
                    WalkStep::Data(s) => {
                        assert!(s.len > 0 && s.addr % PAGE_BYTES + s.len <= PAGE_BYTES);
                        assert_eq!(s.offset, returned);
                        returned += s.len;
                    }
                    WalkStep::Drop(s) => {
                        assert!(s.len > 0 && s.offset == returned);
                        returned += s.len;
                    }
                    WalkStep::NeedList(list) => {
                        assert_eq!(walker.wanted(), Some(list));
                        let count = 1 + numbers.next() % 16;
                        let qwords: Vec<u64> = (0..count).map(|_| numbers.qword()).collect();
                        walker.feed(&qwords);
                        if numbers.next() % 256 == 0 {
                            walker.fail();
                        }
                        fed += count;
                        assert!(fed < 1 << 20, "a walk without an end");
                    }
                    WalkStep::Done => {
                        assert_eq!(returned, bytes);
                        ended += 1;
                        break;
                    }
                    WalkStep::Failed(_) => {
                        assert!(returned <= bytes);
                        stopped += 1;
                        break;
                    }
                }
            }
            assert_eq!(walker.wanted(), None);
        }
        assert!(ended > 1000 && stopped > 1000, "{ended}, {stopped}");
    }
}
