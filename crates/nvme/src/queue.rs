// SPDX-License-Identifier: Apache-2.0

//! Fields of the commands that create and delete I/O queues, and of Abort (NVMe 1.4, 5.1, 5.3 to
//! 5.6).

use spec::nvme::{Priority, Sqe};

/// The fields of Create I/O Completion Queue (5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateCq {
    /// Queue Identifier (QID).
    pub qid: u16,
    /// Queue Size (QSIZE): entries, the number itself.
    pub entries: u32,
    /// Interrupt Vector (IV).
    pub vector: u16,
    /// Interrupts Enabled (IEN).
    pub interrupts: bool,
    /// Physically Contiguous (PC).
    pub contiguous: bool,
    /// PRP Entry 1.
    pub base: u64,
}

impl CreateCq {
    /// The fields of a command.
    pub fn of(sqe: &Sqe) -> CreateCq {
        let (qid, entries) = id_and_entries(sqe);
        CreateCq {
            qid,
            entries,
            vector: (sqe.dw[11] >> 16) as u16,
            interrupts: sqe.dw[11] >> 1 & 1 == 1,
            contiguous: sqe.dw[11] & 1 == 1,
            base: sqe.prp1(),
        }
    }
}

/// The fields of Create I/O Submission Queue (5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateSq {
    /// Queue Identifier (QID).
    pub qid: u16,
    /// Queue Size (QSIZE): entries, the number itself.
    pub entries: u32,
    /// Completion Queue Identifier (CQID).
    pub cqid: u16,
    /// Queue Priority (QPRIO).
    pub priority: Priority,
    /// Physically Contiguous (PC).
    pub contiguous: bool,
    /// PRP Entry 1.
    pub base: u64,
}

impl CreateSq {
    /// The fields of a command.
    pub fn of(sqe: &Sqe) -> CreateSq {
        let (qid, entries) = id_and_entries(sqe);
        CreateSq {
            qid,
            entries,
            cqid: (sqe.dw[11] >> 16) as u16,
            priority: match sqe.dw[11] >> 1 & 3 {
                0 => Priority::Urgent,
                1 => Priority::High,
                2 => Priority::Medium,
                _ => Priority::Low,
            },
            contiguous: sqe.dw[11] & 1 == 1,
            base: sqe.prp1(),
        }
    }
}

fn id_and_entries(sqe: &Sqe) -> (u16, u32) {
    (deleted(sqe), (sqe.dw[10] >> 16) + 1)
}

/// Queue Identifier (QID) of Delete I/O Submission Queue and Delete I/O Completion Queue (5.5,
/// 5.6).
pub fn deleted(sqe: &Sqe) -> u16 {
    sqe.dw[10] as u16
}

/// The command that an Abort selects (5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abort {
    /// Submission Queue Identifier (SQID).
    pub sqid: u16,
    /// Command Identifier (CID).
    pub cid: u16,
}

impl Abort {
    /// The fields of a command.
    pub fn of(sqe: &Sqe) -> Abort {
        Abort {
            sqid: sqe.dw[10] as u16,
            cid: (sqe.dw[10] >> 16) as u16,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spec::nvme::admin;

    #[test]
    fn queue_command_fields_are_at_the_offsets_of_the_specification() {
        let cq = CreateCq::of(&Sqe::create_io_cq(3, 0x10000, 0x7000, Some(9)));
        let expected = CreateCq {
            qid: 3,
            entries: 0x10000,
            vector: 9,
            interrupts: true,
            contiguous: true,
            base: 0x7000,
        };
        assert_eq!(cq, expected);
        assert!(!CreateCq::of(&Sqe::create_io_cq(3, 2, 0, None)).interrupts);
        let priorities = [
            Priority::Urgent,
            Priority::High,
            Priority::Medium,
            Priority::Low,
        ];
        for priority in priorities {
            let sqe = Sqe::create_io_sq(4, 2, 0x8000, 5).with_priority(priority);
            let expected = CreateSq {
                qid: 4,
                entries: 2,
                cqid: 5,
                priority,
                contiguous: true,
                base: 0x8000,
            };
            assert_eq!(CreateSq::of(&sqe), expected);
        }
        assert_eq!(deleted(&Sqe::delete_io_sq(7)), 7);
        let abort = Abort::of(&Sqe::new(admin::ABORT).with_cdw(10, 0xBEEF_0003));
        assert_eq!((abort.sqid, abort.cid), (3, 0xBEEF));
    }
}
