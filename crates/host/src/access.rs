// SPDX-License-Identifier: Apache-2.0

//! Loads and stores of 1 to 64 bytes.

use crate::events::HostEvent;
use crate::eviction::post_victims;
use crate::flush::{send_buffer, send_buffers};
use crate::in_flight::{begin_instruction, process_arrivals, start_load, wait_load};
use crate::load::DeferredAccess;
use crate::mapping::{AccessPart, CacheLine, Mapping};
use crate::uncached;
use crate::wc::{mask, WcLookup};
use crate::{Error, MemoryType, Result, Turn, WakeCondition};

/// An issued load; [`crate::Cpu::finish_load`] waits for it.
#[derive(Debug)]
#[must_use]
pub struct PendingLoad {
    /// One ticket per line.
    pub(crate) tickets: Vec<u64>,
}

/// Most issued loads of a host that were not finished.
const MOST_UNTAKEN: usize = 1 << 16;

/// Issues a load.
pub(crate) fn issue_load<T: Turn>(
    turn: &mut T,
    cpu: usize,
    mapping: &Mapping,
    offset: u64,
    len: usize,
) -> Result<PendingLoad> {
    let mut tickets = Vec::new();
    for part in mapping.parts_in(&turn.machine().system, offset, len)? {
        tickets.push(issue_part(turn, cpu, mapping.kind, &part)?);
    }
    Ok(PendingLoad { tickets })
}

fn issue_part<T: Turn>(
    turn: &mut T,
    cpu: usize,
    kind: MemoryType,
    part: &AccessPart,
) -> Result<u64> {
    if turn.machine().found.len() >= MOST_UNTAKEN {
        return Err(Error::Access(format!(
            "{MOST_UNTAKEN} loads were issued and not finished: that is the most"
        )));
    }
    let (start_at, len) = (part.start, part.len);
    if kind != MemoryType::WriteBack || !completes_at_once(turn, cpu, part) {
        begin_instruction(turn, cpu)?;
    }
    let ticket = turn.machine().take_ticket();
    let whole = |start| DeferredAccess::Read { ticket, start, len };
    match kind {
        MemoryType::Uncached => {
            // The load is ordered after all stores, and serialises the buffers.
            uncached::drain(turn, cpu)?;
            send_buffers(turn, cpu, None)?;
            while start_load(turn, cpu, part, false, vec![whole(0)])?.is_none() {}
            turn.machine().charge_issue(cpu);
            let data = wait_load(turn, cpu, ticket);
            let machine = turn.machine();
            let at = machine.time(cpu);
            machine.found.insert(ticket, (at, data));
            return Ok(ticket);
        }
        MemoryType::WriteCombining => {
            uncached::drain(turn, cpu)?;
            send_buffers(turn, cpu, Some(&part.line))?;
            while start_load(turn, cpu, part, false, vec![whole(0)])?.is_none() {}
        }
        MemoryType::WriteBack => loop {
            send_buffers(turn, cpu, Some(&part.line))?;
            wait_until_evicted(turn, &part.line)?;
            let machine = turn.machine();
            let hit = machine.time(cpu) + machine.costs.hit;
            if let Some(entry) = machine.cache.get(&part.line) {
                let data = entry.data[start_at..start_at + len].to_vec();
                machine.counts.hits += 1;
                machine.found.insert(ticket, (hit, Ok(data)));
                break;
            }
            let step = whole(start_at);
            if let Some(flight) = machine.filling(&part.line) {
                flight.steps.push(step);
                break;
            }
            if start_load(turn, cpu, part, true, vec![step])?.is_some() {
                break;
            }
        },
    }
    turn.machine().charge_issue(cpu);
    Ok(ticket)
}

/// Waits while a line is being fetched that a `clflushopt` evicts on arrival. Later accesses need
/// another fetch.
fn wait_until_evicted<T: Turn>(turn: &mut T, line: &CacheLine) -> Result<()> {
    while let Some(flight) = turn.machine().filling(line).filter(|f| f.after.leaves) {
        let tag = flight.tag;
        turn.wait_for(WakeCondition::Loads(vec![tag]))?;
        process_arrivals(turn)?;
    }
    Ok(())
}

/// True if an access of the cache needs no other time than its CPU's: either nothing in flight can
/// change the result, or programs may run ahead.
fn completes_at_once<T: Turn>(turn: &mut T, cpu: usize, part: &AccessPart) -> bool {
    let alone = turn.is_alone();
    let machine = turn.machine();
    let time = machine.time(cpu);
    let there = machine.core(cpu).failed.is_none()
        && machine.core(cpu).wc.is_empty()
        && machine.cache.contains(&part.line)
        && machine.cut.is_none_or(|cut| time < cut);
    let rests = machine.loads_in_flight.is_empty() && machine.victims.is_empty();
    there && (alone && rests || !alone && turn.may_run_ahead(time))
}

/// A load, from issue to data.
pub(crate) fn load<T: Turn>(
    turn: &mut T,
    cpu: usize,
    mapping: &Mapping,
    offset: u64,
    out: &mut [u8],
) -> Result<()> {
    let mut parts = mapping.parts_in(&turn.machine().system, offset, out.len())?;
    if let (MemoryType::WriteBack, Some(part), None) = (mapping.kind, parts.next(), parts.next()) {
        if completes_at_once(turn, cpu, &part) {
            let machine = turn.machine();
            let time = machine.costs.hit.max(machine.costs.issue);
            machine.spend(cpu, time);
            machine.counts.hits += 1;
            if let Some(entry) = machine.cache.get(&part.line) {
                out.copy_from_slice(&entry.data[part.start..part.start + part.len]);
            }
            return Ok(());
        }
    }
    let pending = issue_load(turn, cpu, mapping, offset, out.len())?;
    out.copy_from_slice(&collect_load(turn, cpu, pending)?);
    Ok(())
}

/// `prefetcht0`: fetches the line of a byte into the cache, and waits only for a fill buffer.
pub(crate) fn prefetch<T: Turn>(
    turn: &mut T,
    cpu: usize,
    mapping: &Mapping,
    offset: u64,
) -> Result<()> {
    for part in mapping.parts_in(&turn.machine().system, offset, 1)? {
        begin_instruction(turn, cpu)?;
        loop {
            wait_until_evicted(turn, &part.line)?;
            let machine = turn.machine();
            let here = machine.cache.contains(&part.line) || machine.filling(&part.line).is_some();
            if here || mapping.kind != MemoryType::WriteBack {
                break;
            }
            send_buffers(turn, cpu, Some(&part.line))?;
            if start_load(turn, cpu, &part, true, Vec::new())?.is_some() {
                break;
            }
        }
        turn.machine().charge_issue(cpu);
    }
    Ok(())
}

/// Waits for a load.
pub(crate) fn collect_load<T: Turn>(
    turn: &mut T,
    cpu: usize,
    pending: PendingLoad,
) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    for ticket in pending.tickets {
        out.extend(wait_load(turn, cpu, ticket)?);
    }
    Ok(out)
}

/// A store.
pub(crate) fn store<T: Turn>(
    turn: &mut T,
    cpu: usize,
    mapping: &Mapping,
    offset: u64,
    data: &[u8],
) -> Result<()> {
    for part in mapping.parts_in(&turn.machine().system, offset, data.len())? {
        let data = &data[part.from..part.from + part.len];
        match mapping.kind {
            MemoryType::Uncached => store_uncached(turn, cpu, &part, data)?,
            MemoryType::WriteCombining => {
                begin_instruction(turn, cpu)?;
                turn.machine().charge_issue(cpu);
                store_combining(turn, cpu, &part, data)?;
            }
            MemoryType::WriteBack => store_cached(turn, cpu, &part, data)?,
        }
    }
    Ok(())
}

/// A non-temporal store: it bypasses the cache through a write-combining buffer.
pub(crate) fn ntstore<T: Turn>(
    turn: &mut T,
    cpu: usize,
    mapping: &Mapping,
    offset: u64,
    data: &[u8],
) -> Result<()> {
    if mapping.kind == MemoryType::Uncached {
        return store(turn, cpu, mapping, offset, data);
    }
    for part in mapping.parts_in(&turn.machine().system, offset, data.len())? {
        begin_instruction(turn, cpu)?;
        let machine = turn.machine();
        let cost = machine.costs.ntstore;
        machine.spend(cpu, cost);
        store_combining(turn, cpu, &part, &data[part.from..part.from + part.len])?;
    }
    Ok(())
}

fn store_uncached<T: Turn>(turn: &mut T, cpu: usize, part: &AccessPart, data: &[u8]) -> Result<()> {
    begin_instruction(turn, cpu)?;
    send_buffers(turn, cpu, None)?;
    let line = &part.line;
    // Lines that were evicted before the store precede it.
    post_victims(turn)?;
    uncached::store(turn, cpu, (line.device, line.bar), part.offset(), data)?;
    let machine = turn.machine();
    if line.bar == sim::Bar::Pm {
        machine.note_unfenced(cpu, line, part.offset());
    }
    machine.charge_issue(cpu);
    Ok(())
}

fn store_combining<T: Turn>(
    turn: &mut T,
    cpu: usize,
    part: &AccessPart,
    data: &[u8],
) -> Result<()> {
    loop {
        let machine = turn.machine();
        let now = machine.system.now();
        match machine.core(cpu).wc.find_buffer(&part.line, now) {
            WcLookup::Ready => break,
            WcLookup::Evict(buffer) => send_buffer(turn, cpu, buffer)?,
            WcLookup::Busy(until) => {
                turn.wait_for(WakeCondition::At(until))?;
                process_arrivals(turn)?;
            }
        }
    }
    match turn.machine().core(cpu).wc.store(part, data) {
        Some(full) => send_buffer(turn, cpu, full),
        None => Ok(()),
    }
}

fn store_cached<T: Turn>(turn: &mut T, cpu: usize, part: &AccessPart, data: &[u8]) -> Result<()> {
    if !completes_at_once(turn, cpu, part) {
        begin_instruction(turn, cpu)?;
    }
    turn.machine().record_at(cpu, || HostEvent::Stored {
        cpu,
        line: part.line,
        bytes: (part.start, part.len),
    });
    loop {
        send_buffers(turn, cpu, Some(&part.line))?;
        wait_until_evicted(turn, &part.line)?;
        let machine = turn.machine();
        if let Some(entry) = machine.cache.get(&part.line) {
            entry.data[part.start..part.start + part.len].copy_from_slice(data);
            entry.dirty |= mask(part.start, part.len);
            machine.counts.hits += 1;
            break;
        }
        let step = DeferredAccess::Store {
            start: part.start,
            data: data.to_vec(),
        };
        if let Some(flight) = machine.filling(&part.line) {
            flight.steps.push(step);
            break;
        }
        if start_load(turn, cpu, part, true, vec![step])?.is_some() {
            break;
        }
    }
    turn.machine().charge_issue(cpu);
    Ok(())
}

impl crate::Machine {
    fn charge_issue(&mut self, cpu: usize) {
        let cost = self.costs.issue;
        self.spend(cpu, cost);
    }
}
