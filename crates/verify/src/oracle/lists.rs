// SPDX-License-Identifier: Apache-2.0

//! Lists of the pipeline (hw/engine/pipeline), for the reference model. A list may do what its
//! entries may do, as far as the content of the list is known.
//!
//! A list may be overwritten while its command waits. The model assumes that other writes there do
//! not form valid entries. The exception is not modelled: rows or values copied from one list to
//! the place of another.

use nvme::Namespace;
use spec::nvme::{status, Sqe, Status};

use crate::commands::{ENTRY, MOST_ENTRIES, TABLES, UNIT};
use crate::oracle::expectation::{Expectation, MediaUse};
use crate::oracle::media::Media;
use crate::oracle::tables;
use crate::BLOCK;

/// The command of an entry.
fn entry(bytes: &[u8]) -> Option<Sqe> {
    let mut sqe = Sqe::new(0);
    for (dword, four) in sqe.dw.iter_mut().zip(bytes.chunks_exact(4)) {
        *dword = four.iter().rev().fold(0, |v, &b| v << 8 | u32::from(b));
    }
    let known = TABLES.iter().any(|&o| u32::from(o) == sqe.dw[0]);
    let own = sqe.dw[1..10].iter().all(|&dword| dword == 0);
    (known && own).then_some(sqe)
}

/// The bytes at an address of the media, if they are determined.
fn held(media: &Media, byte: u64, bytes: u64) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for lba in byte / BLOCK..(byte + bytes).div_ceil(BLOCK) {
        out.extend_from_slice(media.known(lba)?);
    }
    out.truncate(bytes as usize);
    Some(out)
}

/// Merges ranges that share blocks: each range begins at a block.
fn apart(mut parts: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    parts.sort_unstable();
    let mut out: Vec<(u64, u64)> = Vec::new();
    for (from, bytes) in parts {
        match out.last_mut() {
            Some((first, all)) if from < (*first + *all).next_multiple_of(BLOCK) => {
                *all = (*all).max(from + bytes - *first);
            }
            _ => out.push((from, bytes)),
        }
    }
    out
}

/// What the pipeline may answer to its command.
pub(crate) fn expectation(sqe: &Sqe, ns: &Namespace, media: &Media) -> Expectation {
    let refused = |status| Expectation {
        long: true,
        ..Expectation::refused(status)
    };
    let [place, count, kind] = [10, 13, 14].map(|n: usize| u64::from(sqe.dw[n]));
    if kind > 1 || [11, 12, 15].iter().any(|&n| sqe.dw[n] != 0) {
        return refused(status::INVALID_FIELD);
    }
    let (base, bytes) = (ns.base * BLOCK, ns.blocks * BLOCK);
    if place * UNIT + ((count * ENTRY) << kind) > bytes {
        return refused(status::LBA_OUT_OF_RANGE);
    }
    if !(1..=MOST_ENTRIES).contains(&count) {
        return refused(status::INVALID_FIELD);
    }
    let at = base + place * UNIT;
    // The list may be overwritten before it is read.
    let mut expectation = Expectation {
        dw0: Some(count as u32),
        list: Some((at / BLOCK, (count * ENTRY).div_ceil(BLOCK))),
        long: true,
        ..Expectation::new(vec![status::INVALID_FIELD.dnr()])
    };
    let mut parts = Vec::new();
    if kind == 1 {
        // Ranges begin at a block.
        let reports = (at + count * ENTRY) / BLOCK * BLOCK;
        parts.push((reports, at + 2 * count * ENTRY - reports));
    }
    let list = held(media, at, count * ENTRY);
    let end = match &list {
        None => {
            parts.push((base, bytes));
            expectation.statuses.push(status::LBA_OUT_OF_RANGE.dnr());
            status::SUCCESS
        }
        Some(list) => run(list, ns, &mut parts),
    };
    if !expectation.statuses.contains(&end) {
        expectation.statuses.push(end);
    }
    expectation.media = MediaUse::WriteUnknown(apart(parts));
    expectation
}

/// The status of a list whose entries read valid data; adds the ranges that they write.
fn run(list: &[u8], ns: &Namespace, parts: &mut Vec<(u64, u64)>) -> Status {
    for bytes in list.chunks_exact(ENTRY as usize) {
        let Some(sqe) = entry(bytes) else {
            return status::INVALID_FIELD.dnr();
        };
        let expectation = tables::expectation(&sqe, ns);
        if let MediaUse::WriteUnknown(written) = expectation.media {
            parts.extend(written);
        }
        if !expectation.statuses.contains(&status::SUCCESS) {
            return expectation.statuses[0];
        }
    }
    status::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::{PIPELINE, SHUFFLE, SORT};

    /// 32 units of 4 KiB, from the second unit of the media on.
    const NS: Namespace = Namespace {
        nsid: 1,
        base: 8,
        blocks: 256,
    };
    /// The place of the list in the namespace.
    const LIST: u32 = 3;

    fn command(dwords: [u32; 6]) -> Sqe {
        let numbered = dwords.into_iter().zip(10..);
        numbered.fold(Sqe::new(PIPELINE), |sqe, (value, n)| sqe.with_cdw(n, value))
    }

    fn sort(dwords: [u32; 4]) -> Sqe {
        let numbered = dwords.into_iter().zip(10..);
        numbered.fold(Sqe::new(SORT), |sqe, (value, n)| sqe.with_cdw(n, value))
    }

    fn media(entries: &[Sqe]) -> Media {
        let mut media = Media::new(512);
        let mut bytes: Vec<u8> = entries.iter().flat_map(Sqe::to_bytes).collect();
        bytes.resize(1024, 0);
        let at = NS.base + u64::from(LIST) * 8;
        let data: Vec<Option<u8>> = bytes.into_iter().map(Some).collect();
        media.begin_write(1, at, &data);
        media.end_write(1, at, 2, crate::oracle::block::WriteOutcome::Whole);
        media
    }

    #[test]
    fn pipeline_list_does_what_its_entries_do_up_to_the_first_wrong_one() {
        let (field, range) = (status::INVALID_FIELD.dnr(), status::LBA_OUT_OF_RANGE.dnr());
        let (first, second) = (sort([8, 9, 0, 100]), sort([8, 11, 0, 100]));
        let far = sort([8, 32, 0, 1]);
        let list = [first, second, far];
        let of =
            |count, kind| expectation(&command([LIST, 0, 0, count, kind, 0]), &NS, &media(&list));
        assert_eq!(of(2, 0).statuses, [field, status::SUCCESS]);
        assert_eq!(of(2, 0).dw0, Some(2));
        assert_eq!(of(3, 0).statuses, [field, range]);
        assert_eq!(of(4, 0).statuses, [field, range]);
        let spoils = |expectation: Expectation| match expectation.media {
            MediaUse::WriteUnknown(parts) => parts,
            other => panic!("{other:?}"),
        };
        let target = |unit: u64| ((1 + unit) * UNIT, 800);
        assert_eq!(spoils(of(1, 0)), [target(9)]);
        assert_eq!(spoils(of(3, 0)), [target(9), target(11)]);
        // Reports share the list's block.
        assert_eq!(spoils(of(3, 1)), [(4 * UNIT, 384), target(9), target(11)]);
    }

    #[test]
    fn pipeline_entries_stay_off_their_list() {
        let good = sort([8, 9, 0, 100]);
        for n in 0..10 {
            let mut sqe = good;
            sqe.dw[n] |= 1 << 9;
            let v = expectation(&command([LIST, 0, 0, 1, 0, 0]), &NS, &media(&[sqe]));
            assert_eq!(v.statuses, [status::INVALID_FIELD.dnr()], "dword {n}");
        }
        let row = Sqe {
            dw: {
                let mut dw = good.dw;
                dw[0] = u32::from(SHUFFLE);
                dw
            },
        };
        let v = expectation(&command([LIST, 0, 0, 1, 0, 0]), &NS, &media(&[row]));
        assert_eq!(v.statuses, [status::INVALID_FIELD.dnr()]);
    }

    #[test]
    fn pipeline_lists_and_reports_lie_in_their_namespace() {
        let (field, range) = (
            vec![status::INVALID_FIELD.dnr()],
            vec![status::LBA_OUT_OF_RANGE.dnr()],
        );
        let media = media(&[]);
        let of = |dwords| expectation(&command(dwords), &NS, &media).statuses;
        assert_eq!(of([31, 0, 0, 16, 1, 0]), field);
        assert_eq!(of([32, 0, 0, 1, 0, 0]), range);
        assert_eq!(of([u32::MAX, 0, 0, 1, 0, 0]), range);
        assert_eq!(of([0, 0, 0, u32::MAX, 1, 0]), range);
        for dwords in [
            [0; 6],
            [0, 0, 0, 17, 0, 0],
            [0, 1, 0, 1, 0, 0],
            [0, 0, 1, 1, 0, 0],
            [0, 0, 0, 1, 2, 0],
            [0, 0, 0, 1, 0, 1],
        ] {
            assert_eq!(of(dwords), field, "{dwords:?}");
        }
    }

    #[test]
    fn pipeline_unknown_entries_may_write_anywhere_in_their_namespace_only() {
        let mut media = media(&[sort([8, 9, 0, 100])]);
        media.begin_zero(2, NS.base + u64::from(LIST) * 8, 1);
        let v = expectation(&command([LIST, 0, 0, 1, 1, 0]), &NS, &media);
        assert!(v.statuses.contains(&status::SUCCESS));
        match v.media {
            MediaUse::WriteUnknown(parts) => {
                assert_eq!(parts, [(NS.base * BLOCK, NS.blocks * BLOCK)])
            }
            other => panic!("{other:?}"),
        }
    }
}
