//! A transfer as pieces of host pages: what PRPs and SGLs come to.

use spec::nvme::{status, Sqe, Status, PAGE_BYTES};

use crate::{prp, sgl, List};

/// A piece of a transfer in one host page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its first address.
    pub addr: u64,
    /// Its bytes.
    pub len: u64,
    /// Where it begins in the transfer.
    pub offset: u64,
}

impl Segment {
    /// The part of so many bytes from `addr` on that lies in one page.
    pub(crate) fn cut(addr: u64, bytes: u64, offset: u64) -> Segment {
        let len = bytes.min(PAGE_BYTES - addr % PAGE_BYTES);
        Segment { addr, len, offset }
    }
}

/// What stops a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A PRP entry with an offset that it may not have.
    Offset,
    /// A list that cannot be read.
    Host,
    /// A segment descriptor that is none.
    Segment,
    /// A segment descriptor where none may be, or too many that move nothing.
    Count,
    /// An SGL that ends before the data.
    Length,
    /// A descriptor of another type.
    Type,
    /// Addresses or lengths that are no dwords.
    Granularity,
}

impl Fault {
    /// The status that names it (NVMe 1.4, figure 127). Only an error of the host may be gone at the next try.
    pub fn status(self) -> Status {
        match self {
            Fault::Offset => status::PRP_OFFSET_INVALID.dnr(),
            Fault::Host => status::DATA_TRANSFER_ERROR,
            Fault::Segment => status::INVALID_SGL_SEGMENT_DESCRIPTOR.dnr(),
            Fault::Count => status::INVALID_NUMBER_OF_SGL_DESCRIPTORS.dnr(),
            Fault::Length => status::DATA_SGL_LENGTH_INVALID.dnr(),
            Fault::Type => status::SGL_DESCRIPTOR_TYPE_INVALID.dnr(),
            Fault::Granularity => status::SGL_DATA_BLOCK_GRANULARITY_INVALID.dnr(),
        }
    }
}

/// What a walker has to say next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A piece of the transfer, in the order of the transfer.
    Data(Segment),
    /// A piece of the transfer that goes nowhere (Bit Bucket); its address means nothing. Not bounded by pages.
    Drop(Segment),
    /// It can't go on without the first qword of this list: `feed` it, and as many of those behind it as there are, or `fail`.
    NeedList(List),
    /// All of the transfer has been told.
    Done,
    /// Nothing comes any more.
    Fault(Fault),
}

/// Walks the data pointer of a command, whatever it is.
///
/// ```
/// use nvme::{Step, Walker};
/// use spec::nvme::Sqe;
///
/// let sqe = Sqe::transfer(false, 1, 0, 8).with_prps(0x1000, 0);
/// let mut walker = Walker::new(&sqe, 4096, true);
/// assert!(matches!(walker.step(), Step::Data(s) if s.len == 4096));
/// assert_eq!(walker.step(), Step::Done);
/// ```
#[derive(Clone, Debug)]
pub enum Walker {
    /// PSDT 00b.
    Prp(prp::Walker),
    /// Any other PSDT.
    Sgl(sgl::Walker),
}

impl Walker {
    /// Of a command that moves so many bytes, to the host or from it.
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

    /// Goes on. After `Done` and `Fault` it says the same again.
    pub fn step(&mut self) -> Step {
        match self {
            Walker::Prp(walker) => walker.step(),
            Walker::Sgl(walker) => walker.step(),
        }
    }

    /// What of the list that it is in was not fed yet, if there is any: for whoever reads ahead.
    pub fn wanted(&self) -> Option<List> {
        match self {
            Walker::Prp(walker) => walker.wanted(),
            Walker::Sgl(walker) => walker.wanted(),
        }
    }

    /// The next qwords of the list; those behind its end are ignored.
    pub fn feed(&mut self, qwords: &[u64]) {
        match self {
            Walker::Prp(walker) => walker.feed(qwords),
            Walker::Sgl(walker) => walker.feed(qwords),
        }
    }

    /// The next qword of the list can't be read. What was fed before is told first.
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

    /// Numbers that look random (xorshift).
    struct Numbers(u64);

    impl Numbers {
        fn next(&mut self) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0
        }

        /// Any qword, or one that is likely to be right: a page, a place in it, a descriptor's length and type.
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
            let (mut told, mut fed) = (0, 0);
            loop {
                match walker.step() {
                    Step::Data(s) => {
                        assert!(s.len > 0 && s.addr % PAGE_BYTES + s.len <= PAGE_BYTES);
                        assert_eq!(s.offset, told);
                        told += s.len;
                    }
                    Step::Drop(s) => {
                        assert!(s.len > 0 && s.offset == told);
                        told += s.len;
                    }
                    Step::NeedList(list) => {
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
                    Step::Done => {
                        assert_eq!(told, bytes);
                        ended += 1;
                        break;
                    }
                    Step::Fault(_) => {
                        assert!(told <= bytes);
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
