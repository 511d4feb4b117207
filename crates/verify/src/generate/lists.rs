// SPDX-License-Identifier: Apache-2.0

//! Random lists of the pipeline and commands that name them: mostly valid, sometimes with a wrong
//! entry or a wrong command.

use nvme::Namespace;
use sim::Random;
use spec::nvme::Sqe;

use crate::commands::{PIPELINE, TABLES};
use crate::generate::tables::{corrupt, right};
use crate::generate::{flags, nsid, Command};
use crate::oracle::host_model::HostModel;
use crate::oracle::lists::{ENTRY, MOST};
use crate::oracle::tables::UNIT;
use crate::random::{chance, pick};
use crate::BLOCK;

/// The location of a list.
pub struct List {
    ns: Namespace,
    /// Its offset in the namespace, in units.
    unit: u64,
    entries: u64,
}

impl List {
    /// A random location, at which most likely no list was written.
    pub fn anywhere(random: &mut Random, ns: &Namespace) -> List {
        let units = (ns.blocks * BLOCK).div_ceil(UNIT);
        List {
            ns: *ns,
            unit: random.below(units),
            entries: 1 + random.below(MOST),
        }
    }

    /// Its first byte on the media.
    pub fn byte(&self) -> u64 {
        self.ns.base * BLOCK + self.unit * UNIT
    }
}

/// True if the device has an engine for lists.
pub fn lists(host: &HostModel) -> bool {
    host.model.limits.engines.contains(&PIPELINE)
}

/// A list and its bytes, at an unused location; `None` if a few attempts find none. A `long` list
/// has an entry that covers a large part of the largest namespace.
pub fn list(host: &HostModel, random: &mut Random, long: bool) -> Option<(List, Vec<u8>)> {
    let active = host.model.limits.namespaces.active();
    let active: Vec<Namespace> = active.copied().collect();
    let largest = active.iter().max_by_key(|ns| ns.blocks);
    let ns = match largest {
        Some(ns) if long || chance(random, 60) => *ns,
        _ => pick(random, &active),
    };
    let most = pick(random, &[3, 3, 6, MOST]);
    let entries = 1 + random.below(most);
    let mut list = (0..6)
        .map(|_| List {
            entries,
            ..List::anywhere(random, &ns)
        })
        .find(|list| !host.media.in_use(list.byte() / BLOCK, UNIT / BLOCK))?;
    if chance(random, 5) {
        // At the end of the namespace, or of its last whole unit.
        list.unit = (ns.blocks * BLOCK - entries * ENTRY) / UNIT;
    }
    let slow = random.below(entries);
    let mut bytes = Vec::new();
    for n in 0..entries {
        let opcode = pick(random, &TABLES);
        let mut sqe = right(host, random, opcode, &ns, long && n == slow);
        if chance(random, 30) {
            corrupt(random, &mut sqe, &ns);
        }
        match random.below(40) {
            // The target overlaps the list, or its reports.
            0 => sqe.dw[11 + usize::from(sqe.dw[0] & 0xFF != 0xD0)] = list.unit as u32,
            1 => sqe.dw[random.below(10) as usize] ^= 1 << random.below(32),
            2 => sqe.dw[0] = pick(random, &[0, 1, 0xC0, 0xDC, 0xD1, 0xFF, u32::MAX]),
            3 => sqe.dw = [random.next() as u32; 16],
            _ => {}
        }
        bytes.extend(sqe.to_bytes());
    }
    Some((list, bytes))
}

/// The command that runs a list.
pub fn list_command(host: &HostModel, random: &mut Random, list: &List) -> Command {
    let units = list.ns.blocks * BLOCK / UNIT;
    let nsid = nsid(host, random, list.ns.nsid);
    let mut sqe = Sqe::new(PIPELINE)
        .with_nsid(nsid)
        .with_cdw(10, list.unit as u32)
        .with_cdw(13, list.entries as u32)
        .with_cdw(14, random.below(2) as u32);
    match random.below(40) {
        0 => sqe.dw[10] = pick(random, &[units - 1, units, units + 1, 1 << 20, 0xFFFF_FFFF]) as u32,
        1 => sqe.dw[13] = pick(random, &[0, 17, 1 << 20, 1 << 26, u32::MAX]),
        2 => sqe.dw[13] = 1 + random.below(MOST) as u32,
        3 => sqe.dw[14] ^= 1 << random.below(32),
        4 => sqe.dw[pick(random, &[11, 12, 15])] ^= 1 << random.below(32),
        _ => {}
    }
    flags(random, &mut sqe, &[3], &[3]);
    (sqe, Vec::new())
}
