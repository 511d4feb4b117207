//! Random commands with their data: mostly right, sometimes malformed or hostile.

use sim::Random;
use spec::nvme::{admin, io, Sqe};

use crate::media::BLOCK;
use crate::memory::PAGE;
use crate::prp::walk;
use crate::world::World;

/// A command to submit, and the pages that it owns.
pub type Command = (Sqe, Vec<u64>);

/// True with a chance of `percent`.
pub fn chance(random: &mut Random, percent: u64) -> bool {
    random.below(100) < percent
}

fn pick<T: Copy>(random: &mut Random, from: &[T]) -> T {
    from[random.below(from.len() as u64) as usize]
}

/// An address at which no memory is, and no interrupt either.
pub fn nowhere(random: &mut Random) -> u64 {
    let page = pick(
        random,
        &[
            0,
            0x1000,
            0x7FFF_F000,
            0xFFFF_F000,
            1 << 40,
            1 << 52,
            1 << 63,
            u64::MAX - 4095,
        ],
    );
    match chance(random, 50) {
        true => page,
        // Pages that no other command uses.
        false => (1 << 44) + random.below(1 << 20) * PAGE,
    }
}

/// What fills a buffer.
enum Fill {
    Nothing,
    Random,
    Bytes(Vec<u8>),
}

/// A buffer of so many bytes: PRP1, PRP2, and the pages. `None` if there is no room.
fn buffer(
    world: &mut World,
    random: &mut Random,
    bytes: u64,
    fill: Fill,
) -> Option<(u64, u64, Vec<u64>)> {
    let offset = if chance(random, 50) {
        0
    } else {
        random.below(1024) * 4
    };
    let count = (offset + bytes).div_ceil(PAGE);
    // Data, and at most two list pages for each 511 entries and a first one with few.
    let room = count + 3;
    if (world.memory.room() as u64) < room + 64 {
        return None;
    }
    let mut pages: Vec<u64> = (0..count)
        .filter_map(|_| world.memory.take(random))
        .collect();
    let data = pages.clone();
    let mut prp1 = data[0] + offset;
    let mut prp2 = match count {
        1 if chance(random, 20) => random.next(),
        1 => 0,
        2 => data[1],
        _ => list(world, random, &data[1..], &mut pages)?,
    };
    if !world.calm && chance(random, 8) {
        spoil(world, random, count, &mut prp1, &mut prp2);
    }
    let content = match fill {
        Fill::Nothing => None,
        Fill::Random => {
            let words = bytes.div_ceil(8);
            Some(
                (0..words)
                    .flat_map(|_| random.next().to_le_bytes())
                    .collect(),
            )
        }
        Fill::Bytes(bytes) => Some(bytes),
    };
    if let Some(content) = content {
        for s in walk(&world.memory, prp1, prp2, bytes).segments {
            let (from, to) = (s.offset as usize, (s.offset + s.len) as usize);
            world.memory.put(s.addr, &content[from..to]);
        }
    }
    Some((prp1, prp2, pages))
}

/// A PRP list of these pages, from any entry of its page on, and sometimes back to its own start.
fn list(world: &mut World, random: &mut Random, data: &[u64], pages: &mut Vec<u64>) -> Option<u64> {
    let take = |world: &mut World, random: &mut Random, pages: &mut Vec<u64>| {
        let page = world.memory.take(random)?;
        world.memory.put(page, &[0; PAGE as usize]);
        pages.push(page);
        Some(page)
    };
    let mut page = take(world, random, pages)?;
    let first = match random.below(4) {
        0 | 1 => 0,
        2 => random.below(512),
        _ => 505 + random.below(7),
    };
    let start = page + 8 * first;
    let (mut slot, mut entered) = (first, first);
    for (n, &target) in data.iter().enumerate() {
        let left = (data.len() - n) as u64;
        if slot == 511 && left > 1 {
            let cycle = entered > left && chance(random, 50);
            let next = if cycle {
                page
            } else {
                take(world, random, pages)?
            };
            world.memory.put(page + 8 * slot, &next.to_le_bytes());
            (page, slot, entered) = (next, 0, 0);
        }
        world.memory.put(page + 8 * slot, &target.to_le_bytes());
        slot += 1;
    }
    Some(start)
}

/// Makes one thing wrong with a pair of PRPs.
fn spoil(world: &mut World, random: &mut Random, count: u64, prp1: &mut u64, prp2: &mut u64) {
    let in_list = |random: &mut Random, list: u64| {
        let entries = (count - 1).min((PAGE - list % PAGE) / 8);
        list + 8 * random.below(entries)
    };
    match random.below(9) {
        0 => *prp1 |= 1 + random.below(3),
        1 => *prp2 |= 4 << random.below(10),
        2 => *prp1 = nowhere(random) + (*prp1 % PAGE),
        3 => *prp2 = nowhere(random),
        4 => (*prp1, *prp2) = (u64::MAX, u64::MAX),
        5 => (*prp1, *prp2) = (0, 0),
        _ if count <= 2 => *prp2 |= 1 + random.below(4095),
        6 => {
            let at = in_list(random, *prp2);
            let entry = world.memory.qword(at).unwrap_or(0) | 1 << random.below(12);
            world.memory.put(at, &entry.to_le_bytes());
        }
        7 => {
            let (at, entry) = (in_list(random, *prp2), nowhere(random));
            world.memory.put(at, &entry.to_le_bytes());
        }
        _ if (PAGE - *prp2 % PAGE) / 8 < count - 1 => *prp1 |= 2,
        _ => {
            // The same page twice.
            let (from, to) = (in_list(random, *prp2), in_list(random, *prp2));
            let entry = world.memory.qword(from).unwrap_or(0);
            world.memory.put(to, &entry.to_le_bytes());
        }
    }
}

/// Bits that no command may have, now and then: FUSE and PSDT with values that aren't allowed here.
fn flags(random: &mut Random, sqe: &mut Sqe, fuse: &[u32], psdt: &[u32]) {
    if chance(random, 3) {
        sqe.dw[0] |= match chance(random, 50) {
            true => pick(random, fuse) << 8,
            false => pick(random, psdt) << 14,
        };
    }
    if chance(random, 20) {
        // Reserved: ignored.
        sqe.dw[0] |= (random.next() as u32) & 0x3C00;
        sqe.dw[2] = random.next() as u32;
        sqe.dw[3] = random.next() as u32;
    }
}

fn namespace(random: &mut Random, right: u32) -> u32 {
    match chance(random, 95) {
        true => right,
        false => pick(random, &[0, 1, 2, 0xFFFF_FFFE, 0xFFFF_FFFF, 0x8000_0001]),
    }
}

/// Number of blocks: mostly few.
fn blocks(random: &mut Random) -> u64 {
    1 + match random.below(1000) {
        0..=599 => random.below(8),
        600..=879 => random.below(32),
        880..=979 => random.below(128),
        980..=996 => random.below(512),
        _ => random.below(3000),
    }
}

fn place(world: &World, random: &mut Random, count: u64) -> u64 {
    let all = world.media.len();
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
    let mut lba = 0;
    for _ in 0..6 {
        lba = random.below(span.saturating_sub(count) + 1);
        if !world.media.in_use(lba, count) {
            break;
        }
    }
    lba
}

/// An I/O command.
pub fn io_command(world: &mut World, random: &mut Random) -> Option<Command> {
    if world.calm {
        return calm_command(world, random);
    }
    let opcode = match random.below(100) {
        0..=31 => io::READ,
        32..=61 => io::WRITE,
        62..=72 => io::COMPARE,
        73..=79 => io::WRITE_ZEROES,
        80..=83 => io::VERIFY,
        84..=91 => io::DATASET_MANAGEMENT,
        92..=95 => io::FLUSH,
        _ => random.next() as u8,
    };
    if opcode == io::DATASET_MANAGEMENT {
        return deallocation(world, random);
    }
    let count = match opcode {
        // What moves no data may be as long as the field allows.
        io::WRITE_ZEROES | io::VERIFY if chance(random, 2) => 1 + random.below(65536),
        _ => blocks(random),
    };
    let lba = place(world, random, count);
    let bytes = count * BLOCK;
    let fill = match opcode {
        io::WRITE => Fill::Random,
        io::COMPARE => Fill::Bytes(expected(world, random, lba, count)),
        _ => Fill::Nothing,
    };
    let moves = matches!(opcode, io::READ | io::WRITE | io::COMPARE);
    let (prp1, prp2, pages) = match moves {
        true => buffer(
            world,
            random,
            bytes.min(world.model.limits.transfer),
            trim(fill, world.model.limits.transfer),
        )?,
        false => (random.next(), random.next(), Vec::new()),
    };
    let mut sqe =
        Sqe::of_blocks(opcode, namespace(random, 1), lba, count as u32).with_prps(prp1, prp2);
    if chance(random, 20) {
        // FUA, LR, DEAC, PRINFO, DTYPE, DSM and tags change nothing.
        sqe.dw[12] |= (random.next() as u32) & 0xFFFF_0000;
        (sqe.dw[13], sqe.dw[14], sqe.dw[15]) = (
            random.next() as u32,
            random.next() as u32,
            random.next() as u32,
        );
    }
    flags(random, &mut sqe, &[3], &[3]);
    Some((sqe, pages))
}

/// An I/O command that is right, of up to 64 KiB.
fn calm_command(world: &mut World, random: &mut Random) -> Option<Command> {
    let opcode = match random.below(100) {
        0..=39 => io::READ,
        40..=74 => io::WRITE,
        75..=86 => io::COMPARE,
        87..=93 => io::WRITE_ZEROES,
        94..=96 => io::VERIFY,
        _ => io::FLUSH,
    };
    let most = random.below(8);
    let count = 1 + random.below(1 << most);
    let mut lba = 0;
    for _ in 0..12 {
        lba = random.below(world.media.len().saturating_sub(count) + 1);
        if !world.media.in_use(lba, count) {
            break;
        }
    }
    let fill = match opcode {
        io::WRITE => Fill::Random,
        io::COMPARE => {
            let data = (0..count).flat_map(|n| world.media.any(lba + n).to_vec());
            Fill::Bytes(data.collect())
        }
        _ => Fill::Nothing,
    };
    let sqe = Sqe::of_blocks(opcode, 1, lba, count as u32);
    if !matches!(opcode, io::READ | io::WRITE | io::COMPARE) {
        return Some((sqe, Vec::new()));
    }
    let (prp1, prp2, pages) = buffer(world, random, count * BLOCK, fill)?;
    Some((sqe.with_prps(prp1, prp2), pages))
}

fn trim(fill: Fill, bytes: u64) -> Fill {
    match fill {
        Fill::Bytes(mut b) => {
            b.truncate(bytes as usize);
            Fill::Bytes(b)
        }
        other => other,
    }
}

/// What a Compare should find, sometimes with a bit changed.
fn expected(world: &World, random: &mut Random, lba: u64, count: u64) -> Vec<u8> {
    let mut data: Vec<u8> = (0..count)
        .flat_map(|n| world.media.any(lba.wrapping_add(n)).to_vec())
        .collect();
    if chance(random, 30) {
        let at = random.below(data.len() as u64) as usize;
        data[at] ^= 1 << random.below(8);
    }
    data
}

fn deallocation(world: &mut World, random: &mut Random) -> Option<Command> {
    let count = match random.below(20) {
        0 => 1 + random.below(256),
        1..=5 => 1 + random.below(20),
        _ => 1 + random.below(3),
    };
    let mut list = Vec::new();
    for _ in 0..count {
        let n = if chance(random, 3) {
            0
        } else {
            1 + random.below(12)
        };
        let lba = match chance(random, 99) {
            true => random.below(world.media.len().saturating_sub(n) + 1),
            false => place(world, random, n),
        };
        list.extend((random.next() as u32).to_le_bytes());
        list.extend((n as u32).to_le_bytes());
        list.extend(lba.to_le_bytes());
    }
    let (prp1, prp2, pages) = buffer(world, random, count * 16, Fill::Bytes(list))?;
    let attributes = if chance(random, 85) { 4 } else { 0 } | (random.next() as u32) & 3;
    let mut sqe = Sqe::new(io::DATASET_MANAGEMENT)
        .with_nsid(namespace(random, 1))
        .with_prps(prp1, prp2)
        .with_cdw(10, (count as u32 - 1) | ((random.next() as u32) << 8))
        .with_cdw(11, attributes);
    flags(random, &mut sqe, &[3], &[3]);
    Some((sqe, pages))
}

/// An admin command.
pub fn admin_command(world: &mut World, random: &mut Random) -> Option<Command> {
    let queues = world.model.limits.queues;
    let (mut sqe, pages) = match random.below(100) {
        0..=21 => identify(world, random)?,
        22..=39 => log(world, random)?,
        40..=64 => features(world, random)?,
        65..=70 => create_cq(world, random)?,
        71..=79 => create_sq(world, random)?,
        80..=83 => (
            Sqe::delete_io_sq(random.below(u64::from(queues) + 2) as u16),
            Vec::new(),
        ),
        84..=87 => (
            Sqe::delete_io_cq(random.below(u64::from(queues) + 2) as u16),
            Vec::new(),
        ),
        88..=91 => (Sqe::new(admin::ASYNC_EVENT_REQUEST), Vec::new()),
        92..=95 => {
            let waiting = world.model.waiting.clone();
            let cid = match waiting.is_empty() || chance(random, 40) {
                true => random.next() as u32 & 0xFFFF,
                false => u32::from(pick(random, &waiting)),
            };
            let sqid = if chance(random, 80) {
                0
            } else {
                random.below(8) as u32
            };
            (
                Sqe::new(admin::ABORT).with_cdw(10, cid << 16 | sqid),
                Vec::new(),
            )
        }
        96 if world.model.limits.formats && chance(random, 60) => {
            let odd = if chance(random, 30) {
                random.next() as u32 & 0xFFF
            } else {
                0
            };
            let right = if chance(random, 50) { 1 } else { u32::MAX };
            (
                Sqe::new(0x80)
                    .with_nsid(namespace(random, right))
                    .with_cdw(10, odd),
                Vec::new(),
            )
        }
        // Doorbell Buffer Config would take the doorbells away.
        _ => match random.next() as u8 {
            0x7C => return None,
            opcode => (Sqe::new(opcode), Vec::new()),
        },
    };
    flags(random, &mut sqe, &[1, 2, 3], &[1, 2, 3]);
    Some((sqe, pages))
}

fn identify(world: &mut World, random: &mut Random) -> Option<Command> {
    let (prp1, prp2, pages) = buffer(world, random, PAGE, Fill::Nothing)?;
    let cns = if chance(random, 85) {
        random.below(4)
    } else {
        random.below(256)
    } as u8;
    let right = if matches!(cns, 0 | 3) {
        1
    } else {
        random.below(2) as u32
    };
    let sqe = Sqe::identify(cns, namespace(random, right)).with_prps(prp1, prp2);
    Some((sqe, pages))
}

fn log(world: &mut World, random: &mut Random) -> Option<Command> {
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
    let (prp1, prp2, pages) = buffer(world, random, dwords * 4, Fill::Nothing)?;
    let dwords = match chance(random, 98) {
        true => dwords - 1,
        false => pick(random, &[0x4_0000, 0xFFFF_FFFF, 1 << 24]),
    };
    let rae = random.below(2) as u32;
    let sqe = Sqe::new(admin::GET_LOG_PAGE)
        .with_nsid(if chance(random, 50) {
            u32::MAX
        } else {
            namespace(random, 0)
        })
        .with_prps(prp1, prp2)
        .with_cdw(10, (dwords as u32 & 0xFFFF) << 16 | rae << 15 | lid as u32)
        .with_cdw(11, (dwords >> 16) as u32 & 0xFFFF)
        .with_cdw(12, offset as u32)
        .with_cdw(13, (offset >> 32) as u32);
    Some((sqe, pages))
}

fn features(world: &mut World, random: &mut Random) -> Option<Command> {
    let set = chance(random, 50);
    let fid = match chance(random, 90) {
        true => pick(
            random,
            &[0x01, 0x02, 0x04, 0x05, 0x07, 0x08, 0x09, 0x0A, 0x0B, 0x0E],
        ),
        false => random.below(256) as u32,
    };
    let value = match random.below(4) {
        0 => random.next() as u32,
        1 => random.below(16) as u32,
        2 => (random.below(16) << 16 | random.below(400)) as u32,
        _ => 0,
    };
    let (prp1, prp2, pages) = buffer(world, random, 8, Fill::Random)?;
    let right = if fid == 5 { 1 } else { 0 };
    let save = if chance(random, 6) { 1 << 31 } else { 0 };
    let nsid = if chance(random, 85) {
        right
    } else {
        namespace(random, 1)
    };
    let sqe = Sqe::new(if set {
        admin::SET_FEATURES
    } else {
        admin::GET_FEATURES
    })
    .with_nsid(nsid)
    .with_prps(prp1, prp2)
    .with_cdw(10, fid | save)
    .with_cdw(11, value);
    Some((sqe, pages))
}

/// True with a chance of `percent`, where the host isn't calm.
fn odd(world: &World, random: &mut Random, percent: u64) -> bool {
    !world.calm && chance(random, percent)
}

/// A page for a queue; sometimes one that does not exist, or an offset in one.
fn ring(world: &mut World, random: &mut Random) -> Option<(u64, Vec<u64>)> {
    if world.memory.room() < 64 {
        return None;
    }
    let page = world.memory.take(random)?;
    world.memory.put(page, &[0; PAGE as usize]);
    let base = if odd(world, random, 5) {
        page + (1 << random.below(12))
    } else {
        page
    };
    Some((base, vec![page]))
}

fn entries(world: &World, random: &mut Random) -> u32 {
    match odd(world, random, 10) {
        // All entries of both queues are in one page.
        false => 2 + random.below(u64::from(world.model.limits.entries.min(64)) - 1) as u32,
        true => pick(random, &[1, world.model.limits.entries + 1, 65536]),
    }
}

/// Create I/O Completion Queue, mostly of one that does not exist.
pub fn create_cq(world: &mut World, random: &mut Random) -> Option<Command> {
    let queues = u64::from(world.model.limits.queues);
    let (base, pages) = ring(world, random)?;
    let free: Vec<u16> = (1..=queues as u16)
        .filter(|q| !world.cqs.contains_key(q))
        .collect();
    let qid = match free.is_empty() || odd(world, random, 10) {
        true => random.below(queues + 3) as u16,
        false => pick(random, &free),
    };
    let vectors = queues + if odd(world, random, 5) { 9 } else { 1 };
    let vector = chance(random, 80).then(|| random.below(vectors) as u16);
    let mut sqe = Sqe::create_io_cq(qid, entries(world, random), base, vector);
    sqe.dw[11] ^= u32::from(odd(world, random, 4));
    Some((sqe, pages))
}

/// Create I/O Submission Queue, mostly of one that does not exist to one that does. Sometimes at an address where
/// no memory is: its first fetch is fatal.
pub fn create_sq(world: &mut World, random: &mut Random) -> Option<Command> {
    let queues = u64::from(world.model.limits.queues);
    let (mut base, mut pages) = ring(world, random)?;
    if odd(world, random, 2) {
        world.memory.give(pages.remove(0));
        base = (1 << 45) + random.below(1 << 30) * PAGE;
    }
    let free: Vec<u16> = (1..=queues as u16)
        .filter(|q| !world.sqs.contains_key(q))
        .collect();
    let qid = match free.is_empty() || odd(world, random, 10) {
        true => random.below(queues + 3) as u16,
        false => pick(random, &free),
    };
    let there: Vec<u16> = world.cqs.keys().copied().filter(|&q| q != 0).collect();
    let cqid = match there.is_empty() || odd(world, random, 8) {
        true => random.below(queues + 3) as u16,
        false => pick(random, &there),
    };
    let mut sqe = Sqe::create_io_sq(qid, entries(world, random), base, cqid);
    sqe.dw[11] ^= u32::from(odd(world, random, 4));
    Some((sqe, pages))
}
