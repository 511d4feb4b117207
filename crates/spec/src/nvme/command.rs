// SPDX-License-Identifier: Apache-2.0

//! Submission and completion queue entries.

use super::{admin, feature, io, Status, CQE_BYTES, SQE_BYTES};

/// Priority of a submission queue with weighted round robin (QPRIO).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// Above all other queues except the admin queue.
    #[default]
    Urgent = 0,
    /// High priority weight.
    High = 1,
    /// Medium priority weight.
    Medium = 2,
    /// Low priority weight.
    Low = 3,
}

/// Commands of each class that may be fetched in a round of weighted round robin, 1 to 256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    /// High priority weight.
    pub high: u16,
    /// Medium priority weight.
    pub medium: u16,
    /// Low priority weight.
    pub low: u16,
}

/// A submission queue entry: sixteen little-endian dwords.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Sqe {
    /// The dwords, CDW0 first.
    pub dw: [u32; 16],
}

impl Sqe {
    /// A command with only an opcode. A driver sets data pointer and identifier.
    pub fn new(opcode: u8) -> Sqe {
        let mut sqe = Sqe::default();
        sqe.dw[0] = u32::from(opcode);
        sqe
    }

    /// Identify with a CNS value, for a namespace or 0.
    pub fn identify(cns: u8, nsid: u32) -> Sqe {
        Sqe::new(admin::IDENTIFY)
            .with_nsid(nsid)
            .with_cdw(10, u32::from(cns))
    }

    /// Format NVM to LBA format 0 without protection information; `ses` is Secure Erase Settings (0
    /// to 7).
    pub fn format_nvm(nsid: u32, ses: u8) -> Sqe {
        Sqe::new(admin::FORMAT_NVM)
            .with_nsid(nsid)
            .with_cdw(10, u32::from(ses & 7) << 9)
    }

    /// Create I/O Completion Queue, physically contiguous, of `entries` at `prp1`; an interrupt
    /// vector or none.
    pub fn create_io_cq(qid: u16, entries: u32, prp1: u64, vector: Option<u16>) -> Sqe {
        let interrupt = vector.map_or(0, |v| u32::from(v) << 16 | 2);
        Sqe::new(admin::CREATE_IO_CQ)
            .with_prps(prp1, 0)
            .with_cdw(10, queue_id_and_size(qid, entries))
            .with_cdw(11, interrupt | 1)
    }

    /// Create I/O Submission Queue, physically contiguous, of `entries` at `prp1`, completing to
    /// `cqid`.
    pub fn create_io_sq(qid: u16, entries: u32, prp1: u64, cqid: u16) -> Sqe {
        Sqe::new(admin::CREATE_IO_SQ)
            .with_prps(prp1, 0)
            .with_cdw(10, queue_id_and_size(qid, entries))
            .with_cdw(11, u32::from(cqid) << 16 | 1)
    }

    /// The same Create I/O Submission Queue, of this priority.
    pub fn with_priority(self, priority: Priority) -> Sqe {
        let dw = self.dw[11] & !6 | (priority as u32) << 1;
        self.with_cdw(11, dw)
    }

    /// Set Features, Arbitration: weights, and no burst limit.
    pub fn arbitration(weights: Weights) -> Sqe {
        let field = |weight: u16| u32::from(weight.clamp(1, 256)) - 1;
        Sqe::new(admin::SET_FEATURES)
            .with_cdw(10, u32::from(feature::ARBITRATION))
            .with_cdw(
                11,
                field(weights.high) << 24
                    | field(weights.medium) << 16
                    | field(weights.low) << 8
                    | 7,
            )
    }

    /// Delete I/O Submission Queue.
    pub fn delete_io_sq(qid: u16) -> Sqe {
        Sqe::new(admin::DELETE_IO_SQ).with_cdw(10, u32::from(qid))
    }

    /// Delete I/O Completion Queue.
    pub fn delete_io_cq(qid: u16) -> Sqe {
        Sqe::new(admin::DELETE_IO_CQ).with_cdw(10, u32::from(qid))
    }

    /// Set Features, Number of Queues: asks for `queues` submission and completion queues (1 to
    /// 65535).
    pub fn number_of_queues(queues: u16) -> Sqe {
        let wanted = u32::from(queues.max(1)) - 1;
        Sqe::new(admin::SET_FEATURES)
            .with_cdw(10, u32::from(feature::NUMBER_OF_QUEUES))
            .with_cdw(11, wanted << 16 | wanted)
    }

    /// Read or Write of `blocks` logical blocks (1 to 65536) at `slba`.
    pub fn transfer(write: bool, nsid: u32, slba: u64, blocks: u32) -> Sqe {
        Sqe::of_blocks(if write { io::WRITE } else { io::READ }, nsid, slba, blocks)
    }

    /// A command with SLBA and NLB: of `blocks` logical blocks (1 to 65536) at `slba`.
    pub fn of_blocks(opcode: u8, nsid: u32, slba: u64, blocks: u32) -> Sqe {
        Sqe::new(opcode)
            .with_nsid(nsid)
            .with_cdw(10, slba as u32)
            .with_cdw(11, (slba >> 32) as u32)
            .with_cdw(12, blocks.wrapping_sub(1) & 0xFFFF)
    }

    /// Dataset Management, Deallocate, with a list of `ranges` (1 to 256).
    pub fn deallocate(nsid: u32, ranges: usize) -> Sqe {
        Sqe::new(io::DATASET_MANAGEMENT)
            .with_nsid(nsid)
            .with_cdw(10, (ranges.wrapping_sub(1) & 0xFF) as u32)
            .with_cdw(11, 1 << 2)
    }

    /// Flush.
    pub fn flush(nsid: u32) -> Sqe {
        Sqe::new(io::FLUSH).with_nsid(nsid)
    }

    /// The same command with another command identifier.
    pub fn with_cid(mut self, cid: u16) -> Sqe {
        self.dw[0] = self.dw[0] & 0xFFFF | u32::from(cid) << 16;
        self
    }

    /// The same command for another namespace.
    pub fn with_nsid(mut self, nsid: u32) -> Sqe {
        self.dw[1] = nsid;
        self
    }

    /// The same command with other PRP entries.
    pub fn with_prps(mut self, prp1: u64, prp2: u64) -> Sqe {
        self.dw[6] = prp1 as u32;
        self.dw[7] = (prp1 >> 32) as u32;
        self.dw[8] = prp2 as u32;
        self.dw[9] = (prp2 >> 32) as u32;
        self
    }

    /// The same command with an SGL descriptor in place of the PRP entries (PSDT 01b).
    pub fn with_sgl(mut self, descriptor: [u8; 16]) -> Sqe {
        let (low, high) = descriptor.split_at(8);
        let qword = |half: &[u8]| half.iter().rev().fold(0u64, |n, b| n << 8 | u64::from(*b));
        self.dw[0] = self.dw[0] & !(3 << 14) | 1 << 14;
        self.with_prps(qword(low), qword(high))
    }

    /// The same command as the first or the second of a fused operation (FUSE).
    pub fn with_fuse(mut self, second: bool) -> Sqe {
        self.dw[0] = self.dw[0] & !(3 << 8) | if second { 2 << 8 } else { 1 << 8 };
        self
    }

    /// FUSE.
    pub fn fuse(&self) -> u8 {
        (self.dw[0] >> 8 & 3) as u8
    }

    /// PSDT.
    pub fn psdt(&self) -> u8 {
        (self.dw[0] >> 14 & 3) as u8
    }

    /// The same command with command dword `n` (2, 3, 10 to 15) replaced; other `n` change nothing.
    pub fn with_cdw(mut self, n: usize, value: u32) -> Sqe {
        if matches!(n, 2 | 3 | 10..=15) {
            self.dw[n] = value;
        }
        self
    }

    /// OPC.
    pub fn opcode(&self) -> u8 {
        self.dw[0] as u8
    }

    /// CID.
    pub fn cid(&self) -> u16 {
        (self.dw[0] >> 16) as u16
    }

    /// NSID.
    pub fn nsid(&self) -> u32 {
        self.dw[1]
    }

    /// PRP Entry 1.
    pub fn prp1(&self) -> u64 {
        u64::from(self.dw[6]) | u64::from(self.dw[7]) << 32
    }

    /// PRP Entry 2.
    pub fn prp2(&self) -> u64 {
        u64::from(self.dw[8]) | u64::from(self.dw[9]) << 32
    }

    /// Starting LBA of a Read or Write.
    pub fn slba(&self) -> u64 {
        u64::from(self.dw[10]) | u64::from(self.dw[11]) << 32
    }

    /// Logical blocks of a Read or Write (the field plus one).
    pub fn blocks(&self) -> u32 {
        (self.dw[12] & 0xFFFF) + 1
    }

    /// The bytes in memory.
    pub fn to_bytes(&self) -> [u8; SQE_BYTES] {
        let mut bytes = [0; SQE_BYTES];
        for (chunk, dw) in bytes.chunks_exact_mut(4).zip(self.dw) {
            chunk.copy_from_slice(&dw.to_le_bytes());
        }
        bytes
    }

    /// An entry from its bytes in memory.
    pub fn from_bytes(bytes: &[u8; SQE_BYTES]) -> Sqe {
        let mut sqe = Sqe::default();
        for (dw, b) in sqe.dw.iter_mut().zip(bytes.chunks_exact(4)) {
            *dw = u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        }
        sqe
    }
}

fn queue_id_and_size(qid: u16, entries: u32) -> u32 {
    (entries.wrapping_sub(1) & 0xFFFF) << 16 | u32::from(qid)
}

/// A completion queue entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Cqe {
    /// The dwords, DW0 first.
    pub dw: [u32; 4],
}

impl Cqe {
    /// An entry from its fields.
    pub fn new(dw0: u32, sq_head: u16, sqid: u16, cid: u16, phase: bool, status: Status) -> Cqe {
        let dw2 = u32::from(sqid) << 16 | u32::from(sq_head);
        let dw3 = u32::from(status.0) << 17 | u32::from(phase) << 16 | u32::from(cid);
        Cqe {
            dw: [dw0, 0, dw2, dw3],
        }
    }

    /// DW0: the command's own result.
    pub fn result(&self) -> u32 {
        self.dw[0]
    }

    /// DW0: the result of the command.
    pub fn sq_head(&self) -> u16 {
        self.dw[2] as u16
    }

    /// SQ Identifier.
    pub fn sqid(&self) -> u16 {
        (self.dw[2] >> 16) as u16
    }

    /// Command Identifier.
    pub fn cid(&self) -> u16 {
        self.dw[3] as u16
    }

    /// Phase Tag.
    pub fn phase(&self) -> bool {
        self.dw[3] >> 16 & 1 == 1
    }

    /// Status Field.
    pub fn status(&self) -> Status {
        Status((self.dw[3] >> 17) as u16)
    }

    /// The bytes in memory.
    pub fn to_bytes(&self) -> [u8; CQE_BYTES] {
        let mut bytes = [0; CQE_BYTES];
        for (chunk, dw) in bytes.chunks_exact_mut(4).zip(self.dw) {
            chunk.copy_from_slice(&dw.to_le_bytes());
        }
        bytes
    }

    /// An entry from its bytes in memory.
    pub fn from_bytes(bytes: &[u8; CQE_BYTES]) -> Cqe {
        let mut cqe = Cqe::default();
        for (dw, b) in cqe.dw.iter_mut().zip(bytes.chunks_exact(4)) {
            *dw = u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        }
        cqe
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvme::status;

    #[test]
    fn sqe_of_a_read_has_its_fields_at_the_offsets_of_the_specification() {
        let sqe = Sqe::transfer(false, 1, 0x1_2345_6789, 8)
            .with_cid(0xBEEF)
            .with_prps(0x1000_2004, 0x2_0000_0000);
        let b = sqe.to_bytes();
        assert_eq!(b[0], 0x02);
        assert_eq!(b[2..4], [0xEF, 0xBE]);
        assert_eq!(b[4..8], [1, 0, 0, 0]);
        assert_eq!(b[24..32], 0x1000_2004u64.to_le_bytes());
        assert_eq!(b[32..40], 0x2_0000_0000u64.to_le_bytes());
        assert_eq!(b[40..48], 0x1_2345_6789u64.to_le_bytes());
        assert_eq!(b[48..52], [7, 0, 0, 0], "NLB is 0's based");
        assert_eq!(Sqe::from_bytes(&b), sqe);
        assert_eq!(
            (sqe.slba(), sqe.blocks(), sqe.cid()),
            (0x1_2345_6789, 8, 0xBEEF)
        );
    }

    #[test]
    fn sqe_holds_a_transfer_of_65536_blocks() {
        assert_eq!(Sqe::transfer(true, 1, 0, 65536).blocks(), 65536);
    }

    #[test]
    fn sqe_creates_contiguous_queues() {
        let cq = Sqe::create_io_cq(3, 1024, 0x8000, Some(3));
        assert_eq!((cq.dw[10], cq.dw[11]), (1023 << 16 | 3, 3 << 16 | 3));
        assert_eq!(Sqe::create_io_cq(3, 16, 0x8000, None).dw[11], 1);
        let sq = Sqe::create_io_sq(4, 2, 0x9000, 3);
        assert_eq!((sq.dw[10], sq.dw[11]), (1 << 16 | 4, 3 << 16 | 1));
        assert_eq!(sq.with_priority(Priority::Medium).dw[11], 3 << 16 | 5);
        assert_eq!(Sqe::number_of_queues(16).dw[11], 15 << 16 | 15);
        let weights = Weights {
            high: 256,
            medium: 2,
            low: 1,
        };
        assert_eq!(Sqe::arbitration(weights).dw[11], 0xFF01_0007);
    }

    #[test]
    fn cqe_fields() {
        let cqe = Cqe::new(0x000F_000F, 5, 2, 0x1234, true, status::LBA_OUT_OF_RANGE);
        assert_eq!(Cqe::from_bytes(&cqe.to_bytes()), cqe);
        assert_eq!(
            (cqe.sq_head(), cqe.sqid(), cqe.cid(), cqe.phase()),
            (5, 2, 0x1234, true)
        );
        assert_eq!(cqe.status(), status::LBA_OUT_OF_RANGE);
        assert_eq!(cqe.result(), 0x000F_000F);
    }
}
