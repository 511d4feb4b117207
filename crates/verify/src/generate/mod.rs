// SPDX-License-Identifier: Apache-2.0

//! Random commands with their data: mostly valid, sometimes malformed or hostile.
//!
//! # What is generated
//!
//! Valid and invalid input of each kind:
//!
//! - Every command: all 16 dwords. Bits without effect for the opcode stay 0, or one bit, one
//!   dword, or all of them are random. These are reserved bits, unused dwords, MPTR, tags, hints,
//!   the UUID index, and the NSID of commands without one.
//! - I/O commands: Read, Write, Compare, Write Zeroes, Verify, Dataset Management and Flush, of 1
//!   to 65536 blocks, mostly few, partly on the same blocks. Invalid: any opcode, ranges beyond
//!   the end, excessive lengths, FUSE 11b, PSDT 11b, and fields without meaning.
//! - `scan`: `count` and `filter`, with bitmaps of all kinds of values and bounds that occur in
//!   the media.
//! - `copy`: next to its source or anywhere, from 1 block to a whole namespace, beside other
//!   commands. Long copies are followed by an Abort, a deletion of the queue or a reset. Formats
//!   and power cuts occur while they wait or work.
//! - Invalid commands of both: ranges and targets beyond the end, 2^24 blocks, targets over their
//!   source, reserved bits, NSIDs.
//! - `sorter`, `row_shuffle`, `dict_decode` (`nearside fuzz fuzz-sort`): all kinds and widths,
//!   few and many keys, rows and values, with an Abort, a deletion of the queue or a reset soon
//!   after. Invalid: overlapping places, places beyond the end or at 2^44, counts of 0, 2^31 and
//!   2^32 - 1, oversized dictionaries, reserved bits.
//! - Lists of `pipeline` (`fuzz-sort`): written by stores to unused blocks of the PM window, or
//!   over older content. They have 1 to 16 entries of the kinds above, with or without reports.
//! - Invalid lists: other opcodes, reserved or random bits, places beyond the end, over each
//!   other or over the list. Lists and reports lie at the end of the namespace or beyond, and
//!   have 0, 17 or 2^32 - 1 entries.
//! - PRPs: any offset, lists from any entry on, chained lists, lists that lead back to their
//!   page. Invalid: forbidden offsets, addresses without memory, a page twice, 0, all ones.
//! - SGLs (PSDT 01b, 10b): one block, or up to four segments at any qword and across pages, bit
//!   buckets, empty blocks, more data than needed, excessive segment lengths. Invalid: types and
//!   subtypes, granularity, missing bytes, segments within or after a last one, lengths of 0 or
//!   8, rings, addresses without memory.
//! - Fused pairs: Compare and Write, equal or not. Invalid: a half alone, the same half twice,
//!   another opcode, range or namespace, errors of either half, and a doorbell between both.
//! - Namespaces: four of different sizes, and an inactive one. Invalid: NSID 0, too large,
//!   inactive, and FFFFFFFFh where it has no meaning.
//! - Admin commands: Identify CNS 00h to 03h, 06h, 08h; Get Log Page 00h to 05h; Set and Get
//!   Features with Select; Create and Delete of queues with any priority. Abort is mostly of
//!   commands in flight. Keep Alive, Asynchronous Event Request, and Format NVM of one or all
//!   namespaces (SES 0 and 1) run beside I/O. Invalid: all other opcodes, FUSE and PSDT, and all
//!   fields.
//! - Doorbells: one or several commands and completions at a time, and shadow doorbells by
//!   EventIdx, enabled at any time. Invalid: absent queues, values beyond the queue, offsets of
//!   shadow pages, shadow pages without memory.
//! - Registers: writes to read-only registers, reads anywhere, NSSR with other values.
//! - PM window: loads, and stores of 1 byte to 4 KiB at any byte, beside commands.
//! - Features: every identifier with any value, Select and Save. Coalescing has any threshold and
//!   time, followed by a pause longer than any. Host Behavior Support and Keep Alive Timeouts are
//!   included, expired or not. Invalid: reserved values of ACRE.
//! - Interrupts: a vector is masked, its entry changed, read back and unmasked. The function is
//!   masked, or MSI-X disabled, for microseconds or until a later step, beside commands.
//! - Memory: the design's, or a memory with a random latency of each access, up to 200 ns, 2, 10
//!   or 40 us.
//! - Life cycle: round robin or weighted round robin, queues of 2 to 64 entries, masked vectors.
//!   At any time: disable, shutdown, function level reset, subsystem reset, power cut, invalid
//!   settings, queues without memory.
//! - The link: answers after 100 to 500 ns in several parts, back-pressure, and error answers.
//! - Two devices, in every third episode (1, 4, 7 ...), if the last 256 KiB of the media belong
//!   to no namespace. Each is connected by a `sim::Link` of one of seven speeds, with small and
//!   large TLPs, credits, tags and buffers. The pages of the one host memory belong to both hosts
//!   in turn. Of 100 pages for data, PRP lists and SGL segments, 15 lie in the other device's
//!   BAR2.

mod buffer;
pub mod engines;
pub mod lists;
pub mod reserved;
mod sgl;
mod tables;

use nvme::feature::BEHAVIOR_BYTES;
use nvme::Namespace;
use sim::Random;
use spec::nvme::{admin, feature, io, Sqe, ALL_NAMESPACES};

use crate::commands::moves;
use crate::commands::COPY;
use crate::generate::buffer::{with_data, with_prps, Fill};
use crate::generate::engines::{engine_command, valid_engine_command};
use crate::oracle::fused::{FIRST, SECOND};
use crate::oracle::host_model::HostModel;
use crate::random::{chance, pick};
use crate::BLOCK;
use crate::PAGE;

/// Blocks that a long Dataset Management clears, about.
const LONG: u64 = 8192;

/// A command to submit, and its pages.
pub type Command = (Sqe, Vec<u64>);

/// Occasionally sets FUSE and PSDT to values that are not allowed here.
pub fn flags(random: &mut Random, sqe: &mut Sqe, fuse: &[u32], psdt: &[u32]) {
    if chance(random, 3) {
        sqe.dw[0] |= match chance(random, 50) {
            true => pick(random, fuse) << 8,
            false => pick(random, psdt) << 14,
        };
    }
}

/// An active namespace.
pub fn namespace(host: &HostModel, random: &mut Random) -> Namespace {
    let active: Vec<Namespace> = host.model.limits.namespaces.active().copied().collect();
    pick(random, &active)
}

/// This NSID, or sometimes another one that may be invalid.
pub fn nsid(host: &HostModel, random: &mut Random, right: u32) -> u32 {
    if chance(random, 95) {
        return right;
    }
    let count = host.model.limits.namespaces.count();
    match chance(random, 50) {
        true => random.below(u64::from(count) + 2) as u32,
        false => pick(
            random,
            &[
                0,
                count + 1,
                ALL_NAMESPACES - 1,
                ALL_NAMESPACES,
                0x8000_0001,
            ],
        ),
    }
}

/// A number of blocks, mostly small.
pub fn block_count(random: &mut Random) -> u64 {
    1 + match random.below(1000) {
        0..=599 => random.below(8),
        600..=879 => random.below(32),
        880..=979 => random.below(128),
        980..=996 => random.below(512),
        _ => random.below(3000),
    }
}

/// The first block of a range in a namespace.
pub fn first_block(host: &HostModel, random: &mut Random, ns: &Namespace, count: u64) -> u64 {
    let all = ns.blocks;
    if chance(random, 4) {
        let end = all.saturating_sub(count);
        return pick(
            random,
            &[
                end,
                end + 1,
                all,
                u64::MAX,
                u64::MAX - count,
                1 << 55,
                1 << 32,
                1 << 63,
            ],
        );
    }
    let span = if chance(random, 60) {
        all.min(512)
    } else {
        all
    };
    unused(host, random, ns, count, span, 6)
}

/// A range that no command uses now, if a few attempts find one.
pub fn unused(
    host: &HostModel,
    random: &mut Random,
    ns: &Namespace,
    count: u64,
    span: u64,
    tries: u32,
) -> u64 {
    let mut lba = 0;
    for _ in 0..tries {
        lba = random.below(span.saturating_sub(count) + 1);
        if !host.media.in_use(ns.base + lba, count) {
            break;
        }
    }
    lba
}

/// An I/O command.
pub fn io_command(host: &mut HostModel, random: &mut Random) -> Option<Command> {
    if host.valid_only {
        return valid_command(host, random);
    }
    let opcode = match random.below(100) {
        0..=29 => io::READ,
        30..=57 => io::WRITE,
        58..=67 => io::COMPARE,
        68..=74 => io::WRITE_ZEROES,
        75..=78 => io::VERIFY,
        79..=86 => io::DATASET_MANAGEMENT,
        87 | 88 => io::FLUSH,
        89..=97 if host.model.limits.engines.is_empty() => io::READ,
        89..=97 => return Some(engine_command(host, random, false)),
        _ => random.next() as u8,
    };
    if opcode == io::DATASET_MANAGEMENT {
        return deallocation(host, random);
    }
    let ns = namespace(host, random);
    let mut count = match opcode {
        // Commands without data may be as long as the field allows.
        io::WRITE_ZEROES | io::VERIFY if chance(random, 2) => 1 + random.below(65536),
        _ => block_count(random),
    };
    if count > ns.blocks && chance(random, 95) {
        count = 1 + random.below(ns.blocks);
    }
    let lba = first_block(host, random, &ns, count);
    let nsid = nsid(host, random, ns.nsid);
    let sqe = Sqe::of_blocks(opcode, nsid, lba, count as u32);
    let fill = match opcode {
        io::WRITE => Fill::Random,
        io::COMPARE => Fill::Bytes(expected(host, random, ns.base.wrapping_add(lba), count)),
        _ => Fill::Nothing,
    };
    let bytes = (count * BLOCK).min(host.model.limits.transfer);
    let (mut sqe, pages) = match moves(opcode) {
        true => with_data(host, random, sqe, bytes, fill)?,
        false => {
            let mut sqe = sqe.with_prps(random.next(), random.next());
            sqe.dw[0] |= pick(random, &[0, 0, 1, 2]) << 14;
            (sqe, Vec::new())
        }
    };
    flags(random, &mut sqe, &[3], &[3]);
    Some((sqe, pages))
}

/// A valid I/O command of up to 64 KiB.
fn valid_command(host: &mut HostModel, random: &mut Random) -> Option<Command> {
    if chance(random, 2) {
        if let Some(command) = valid_engine_command(host, random) {
            return Some(command);
        }
    }
    let opcode = match random.below(100) {
        0..=39 => io::READ,
        40..=74 => io::WRITE,
        75..=86 => io::COMPARE,
        87..=93 => io::WRITE_ZEROES,
        94..=96 => io::VERIFY,
        _ => io::FLUSH,
    };
    let ns = namespace(host, random);
    let most = random.below(8);
    let count = (1 + random.below(1 << most)).min(ns.blocks);
    let lba = unused(host, random, &ns, count, ns.blocks, 12);
    let fill = match opcode {
        io::WRITE => Fill::Random,
        io::COMPARE => {
            let blocks = ns.base + lba..ns.base + lba + count;
            Fill::Bytes(blocks.flat_map(|b| host.media.any(b).to_vec()).collect())
        }
        _ => Fill::Nothing,
    };
    let sqe = Sqe::of_blocks(opcode, ns.nsid, lba, count as u32);
    match moves(opcode) {
        true => with_data(host, random, sqe, count * BLOCK, fill),
        false => Some((sqe, Vec::new())),
    }
}

/// A fused Compare and Write, mostly complete and valid.
pub fn fused_pair(host: &mut HostModel, random: &mut Random) -> Option<Vec<Command>> {
    let ns = namespace(host, random);
    let count = block_count(random).min(ns.blocks).min(64);
    let lba = first_block(host, random, &ns, count);
    let mut halves = [(io::COMPARE, ns, lba, count), (io::WRITE, ns, lba, count)];
    let odd = &mut halves[random.below(2) as usize];
    let mut fuses = vec![FIRST, SECOND];
    match random.below(40) {
        0 => {
            odd.0 = pick(
                random,
                &[io::READ, io::WRITE, io::COMPARE, io::WRITE_ZEROES],
            )
        }
        1 => odd.0 = pick(random, &[io::FLUSH, io::DATASET_MANAGEMENT, COPY, 0x77]),
        2 => odd.1 = namespace(host, random),
        3 => odd.2 = odd.2.wrapping_add(1),
        4 => odd.3 += 1,
        5 => odd.2 = ns.blocks,
        6 => fuses = vec![FIRST],
        7 => fuses = vec![SECOND],
        8 => fuses = vec![FIRST, 0],
        9 => fuses = vec![FIRST, 3],
        10 => fuses = vec![FIRST, FIRST],
        11 => fuses = vec![SECOND, FIRST],
        _ => {}
    }
    let mut commands = Vec::new();
    for (&fuse, &(opcode, ns, lba, count)) in fuses.iter().zip(&halves) {
        let nsid = match chance(random, 98) {
            true => ns.nsid,
            false => nsid(host, random, ns.nsid),
        };
        let sqe = Sqe::of_blocks(opcode, nsid, lba, count as u32);
        let fill = match opcode {
            io::COMPARE => Fill::Bytes(expected(host, random, ns.base.wrapping_add(lba), count)),
            _ => Fill::Random,
        };
        let (mut sqe, pages) = with_data(host, random, sqe, count * BLOCK, fill)?;
        sqe.dw[0] |= fuse << 8;
        commands.push((sqe, pages));
    }
    Some(commands)
}

/// The bytes that a Compare should find from this block on, sometimes with one bit inverted.
fn expected(host: &HostModel, random: &mut Random, lba: u64, count: u64) -> Vec<u8> {
    let mut data: Vec<u8> = (0..count)
        .flat_map(|n| host.media.any(lba.wrapping_add(n)).to_vec())
        .collect();
    if chance(random, 30) {
        let at = random.below(data.len() as u64) as usize;
        data[at] ^= 1 << random.below(8);
    }
    data
}

fn deallocation(host: &mut HostModel, random: &mut Random) -> Option<Command> {
    let count = match random.below(20) {
        0 => 1 + random.below(256),
        1..=5 => 1 + random.below(20),
        _ => 1 + random.below(3),
    };
    let mut list = Vec::new();
    let ns = namespace(host, random);
    // Some take long: up to the whole namespace, several times over.
    let long = count > 1 && chance(random, 8);
    let most = if long {
        (LONG / count).min(ns.blocks)
    } else {
        12
    };
    for _ in 0..count {
        let n = if chance(random, 3) {
            0
        } else {
            1 + random.below(most.max(1))
        };
        let lba = match chance(random, 99) {
            true => random.below(ns.blocks.saturating_sub(n) + 1),
            false => first_block(host, random, &ns, n),
        };
        list.extend((random.next() as u32).to_le_bytes());
        list.extend((n as u32).to_le_bytes());
        list.extend(lba.to_le_bytes());
    }
    let attributes = if chance(random, 85) { 4 } else { 0 };
    let sqe = Sqe::new(io::DATASET_MANAGEMENT)
        .with_nsid(nsid(host, random, ns.nsid))
        .with_cdw(10, count as u32 - 1)
        .with_cdw(11, attributes);
    let (mut sqe, pages) = with_data(host, random, sqe, count * 16, Fill::Bytes(list))?;
    flags(random, &mut sqe, &[3], &[3]);
    Some((sqe, pages))
}

/// An admin command.
pub fn admin_command(host: &mut HostModel, random: &mut Random) -> Option<Command> {
    let queues = host.model.limits.queues;
    let (mut sqe, pages) = match random.below(100) {
        0..=21 => identify(host, random)?,
        22..=39 => log(host, random)?,
        40..=64 => features(host, random)?,
        65..=70 => create_cq(host, random)?,
        71..=79 => create_sq(host, random)?,
        80..=83 => (
            Sqe::delete_io_sq(random.below(u64::from(queues) + 2) as u16),
            Vec::new(),
        ),
        84..=87 => (
            Sqe::delete_io_cq(random.below(u64::from(queues) + 2) as u16),
            Vec::new(),
        ),
        88..=90 => (Sqe::new(admin::ASYNC_EVENT_REQUEST), Vec::new()),
        91 => (Sqe::new(admin::KEEP_ALIVE), Vec::new()),
        92..=95 => {
            let waiting = host.model.waiting.clone();
            let cid = match waiting.is_empty() || chance(random, 40) {
                true => random.next() as u32 & 0xFFFF,
                false => u32::from(pick(random, &waiting)),
            };
            let sqid = if chance(random, 80) {
                0
            } else {
                random.below(8) as u32
            };
            let flying = host.abortable();
            let (sqid, cid) = match flying.is_empty() || chance(random, 30) {
                true => (sqid, cid),
                false => {
                    let (sqid, cid) = pick(random, &flying);
                    (u32::from(sqid), u32::from(cid))
                }
            };
            (
                Sqe::new(admin::ABORT).with_cdw(10, cid << 16 | sqid),
                Vec::new(),
            )
        }
        96 | 97 if chance(random, 70) => {
            let odd = if chance(random, 20) {
                random.next() as u32 & 0xFFF
            } else {
                0
            };
            let ses = random.below(2) as u32;
            let right = match chance(random, 80) {
                true => namespace(host, random).nsid,
                false => ALL_NAMESPACES,
            };
            let sqe = Sqe::new(admin::FORMAT_NVM)
                .with_nsid(nsid(host, random, right))
                .with_cdw(10, odd | ses << 9);
            (sqe, Vec::new())
        }
        98 if host.shadow.wanted => shadow(host, random)?,
        _ => match random.next() as u8 {
            // Only if the host knows the command.
            admin::DOORBELL_BUFFER_CONFIG => return None,
            opcode => (Sqe::new(opcode), Vec::new()),
        },
    };
    flags(random, &mut sqe, &[1, 2, 3], &[1, 2, 3]);
    Some((sqe, pages))
}

/// Doorbell Buffer Config, one at a time: of the pages that it offers, the host keeps one pair up
/// to date. Shadow doorbells at addresses without memory are fatal when they are read. An EventIdx
/// written there is never seen.
pub fn shadow(host: &mut HostModel, random: &mut Random) -> Option<Command> {
    if host.memory.free_pages() < 64 || host.shadow.offered.is_some() {
        return None;
    }
    let mut pages = Vec::new();
    let mut page = |hostile: u64| {
        if chance(random, hostile) && !host.valid_only {
            return Some((1 << 46) + random.below(1 << 20) * PAGE);
        }
        let page = host.memory.alloc(random)?;
        pages.push(page);
        Some(page)
    };
    let (mut doorbells, mut events) = (page(6)?, page(6)?);
    if is_wrong(host, random, 10) {
        let offset = 1 << random.below(12);
        *pick_mut(random, &mut doorbells, &mut events) += offset;
    }
    let sqe = Sqe::new(admin::DOORBELL_BUFFER_CONFIG).with_prps(doorbells, events);
    Some((sqe, pages))
}

fn pick_mut<'a>(random: &mut Random, a: &'a mut u64, b: &'a mut u64) -> &'a mut u64 {
    match chance(random, 50) {
        true => a,
        false => b,
    }
}

fn identify(host: &mut HostModel, random: &mut Random) -> Option<Command> {
    let cns = match random.below(20) {
        0..=11 => random.below(4),
        12 | 13 => 6,
        14 | 15 => 8,
        16 => 2,
        17 => 0x12 + random.below(2),
        _ => random.below(256),
    } as u8;
    let count = u64::from(host.model.limits.namespaces.count());
    // Inactive namespaces, too.
    let right = match cns {
        0 | 3 | 8 => 1 + random.below(count) as u32,
        _ => random.below(count + 1) as u32,
    };
    let sqe = Sqe::identify(cns, nsid(host, random, right));
    with_prps(host, random, sqe, PAGE, Fill::Nothing)
}

fn log(host: &mut HostModel, random: &mut Random) -> Option<Command> {
    let lid = if chance(random, 92) {
        1 + random.below(5)
    } else {
        random.below(256)
    };
    let dwords = match random.below(20) {
        0 => 1 + random.below(20_000),
        1..=6 => 1 + random.below(1024),
        7..=12 => 1024,
        _ => 128,
    };
    let offset = match random.below(10) {
        0..=5 => 0,
        6 | 7 => random.below(128) * 4,
        8 => random.below(1025) * 4,
        _ => pick(random, &[1, 2, 510, 516, 4096, 4100, 1 << 32, 1 << 63]),
    };
    let bytes = dwords * 4;
    let dwords = match chance(random, 98) {
        true => dwords - 1,
        false => pick(random, &[0x4_0000, 0xFFFF_FFFF, 1 << 24]),
    };
    let rae = random.below(2) as u32;
    let sqe = Sqe::new(admin::GET_LOG_PAGE)
        .with_nsid(if chance(random, 50) {
            ALL_NAMESPACES
        } else {
            nsid(host, random, 0)
        })
        .with_cdw(10, (dwords as u32 & 0xFFFF) << 16 | rae << 15 | lid as u32)
        .with_cdw(11, (dwords >> 16) as u32 & 0xFFFF)
        .with_cdw(12, offset as u32)
        .with_cdw(13, (offset >> 32) as u32);
    with_prps(host, random, sqe, bytes, Fill::Nothing)
}

fn features(host: &mut HostModel, random: &mut Random) -> Option<Command> {
    let set = chance(random, 50);
    let fid = match chance(random, 75) {
        true => pick(
            random,
            &[
                0x01, 0x02, 0x04, 0x05, 0x07, 0x08, 0x09, 0x0A, 0x0B, 0x0E, 0x0F, 0x16,
            ],
        ),
        // Any identifier, most often one that NVM Express defines.
        false if chance(random, 50) => random.below(0x20) as u32,
        false => random.below(256) as u32,
    };
    let value = match random.below(8) {
        0..=2 => random.next() as u32,
        3 => random.below(16) as u32,
        4 => (random.below(16) << 16 | random.below(400)) as u32,
        5 => 1 << random.below(32),
        // Interrupt coalescing: thresholds that are reached, times up to 25.5 ms.
        6 => (random.below(256) << 8 | random.below(20)) as u32,
        _ => 0,
    };
    let count = u64::from(host.model.limits.namespaces.count());
    let one = 1 + random.below(count) as u32;
    let right = match (fid, set && chance(random, 20)) {
        (5, false) => one,
        (5, true) => ALL_NAMESPACES,
        _ => 0,
    };
    let save = if chance(random, 6) { 1 << 31 } else { 0 };
    let select = match !set && chance(random, 15) {
        true => (random.below(8) as u32) << 8,
        false => 0,
    };
    let nsid = if chance(random, 85) {
        right
    } else {
        nsid(host, random, one)
    };
    let sqe = Sqe::new(if set {
        admin::SET_FEATURES
    } else {
        admin::GET_FEATURES
    })
    .with_nsid(nsid)
    .with_cdw(10, fid | save | select)
    .with_cdw(11, value);
    if fid as u8 != feature::HOST_BEHAVIOR_SUPPORT {
        return with_prps(host, random, sqe, 8, Fill::Random);
    }
    // Mostly ACRE; reserved bits have no effect.
    let mut bytes = vec![0; BEHAVIOR_BYTES as usize];
    if chance(random, 50) {
        bytes.fill_with(|| random.next() as u8);
    }
    if chance(random, 90) {
        bytes[0] = random.below(2) as u8;
    }
    with_prps(host, random, sqe, BEHAVIOR_BYTES, Fill::Bytes(bytes))
}

/// True with a probability of `percent`, unless the host sends valid commands only.
fn is_wrong(host: &HostModel, random: &mut Random, percent: u64) -> bool {
    !host.valid_only && chance(random, percent)
}

/// A page for a queue; sometimes a page without memory, or an offset within a page.
fn queue_page(host: &mut HostModel, random: &mut Random) -> Option<(u64, Vec<u64>)> {
    if host.memory.free_pages() < 64 {
        return None;
    }
    let page = host.memory.alloc(random)?;
    host.memory.store(page, &[0; PAGE as usize]);
    let base = if is_wrong(host, random, 5) {
        page + (1 << random.below(12))
    } else {
        page
    };
    Some((base, vec![page]))
}

fn entries(host: &HostModel, random: &mut Random) -> u32 {
    match is_wrong(host, random, 10) {
        // All entries of a queue lie in one page.
        false => 2 + random.below(u64::from(host.model.limits.entries.min(64)) - 1) as u32,
        true => pick(random, &[1, host.model.limits.entries + 1, 65536]),
    }
}

/// Create I/O Completion Queue, mostly with an unused identifier.
pub fn create_cq(host: &mut HostModel, random: &mut Random) -> Option<Command> {
    let queues = u64::from(host.model.limits.queues);
    let (base, pages) = queue_page(host, random)?;
    let free: Vec<u16> = (1..=queues as u16)
        .filter(|q| !host.cqs.contains_key(q))
        .collect();
    let qid = match free.is_empty() || is_wrong(host, random, 10) {
        true => random.below(queues + 3) as u16,
        false => pick(random, &free),
    };
    let vectors = queues + if is_wrong(host, random, 5) { 9 } else { 1 };
    let vector = chance(random, 80).then(|| random.below(vectors) as u16);
    let mut sqe = Sqe::create_io_cq(qid, entries(host, random), base, vector);
    sqe.dw[11] ^= u32::from(is_wrong(host, random, 4));
    Some((sqe, pages))
}

/// Create I/O Submission Queue, mostly with an unused identifier and an existing completion queue.
/// Sometimes its address has no memory: the first fetch is fatal.
pub fn create_sq(host: &mut HostModel, random: &mut Random) -> Option<Command> {
    let queues = u64::from(host.model.limits.queues);
    let (mut base, mut pages) = queue_page(host, random)?;
    if is_wrong(host, random, 2) {
        host.memory.free(pages.remove(0));
        base = (1 << 45) + random.below(1 << 30) * PAGE;
    }
    let free: Vec<u16> = (1..=queues as u16)
        .filter(|q| !host.sqs.contains_key(q))
        .collect();
    let qid = match free.is_empty() || is_wrong(host, random, 10) {
        true => random.below(queues + 3) as u16,
        false => pick(random, &free),
    };
    let there: Vec<u16> = host.cqs.keys().copied().filter(|&q| q != 0).collect();
    let cqid = match there.is_empty() || is_wrong(host, random, 8) {
        true => random.below(queues + 3) as u16,
        false => pick(random, &there),
    };
    let mut sqe = Sqe::create_io_sq(qid, entries(host, random), base, cqid);
    // Any priority.
    sqe.dw[11] |= (random.below(4) as u32) << 1;
    sqe.dw[11] ^= u32::from(is_wrong(host, random, 4));
    Some((sqe, pages))
}
