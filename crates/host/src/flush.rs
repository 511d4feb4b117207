// SPDX-License-Identifier: Apache-2.0

//! Traffic from the CPUs to the devices: posted writes, write-backs, and the fences that wait for
//! them.

use sim::{Bar, Time};

use crate::events::{Fence, HostEvent};
use crate::eviction::post_victims;
use crate::in_flight::{begin_instruction, process_arrivals, start_load, wait_load};
use crate::load::{DeferredAccess, LoadInFlight};
use crate::machine::{Machine, Victim};
use crate::mapping::{AccessPart, CacheLine, Mapping, LINE};
use crate::uncached;
use crate::wc::WcBuffer;
use crate::{Error, MemoryType, Result, Turn, WakeCondition};

/// Posts a write of at most 64 bytes in a line, as soon as the device's link has space.
pub(crate) fn post<T: Turn>(
    turn: &mut T,
    device: usize,
    bar: Bar,
    offset: u64,
    data: &[u8],
) -> Result<()> {
    let limit = turn.machine().completion_deadline();
    loop {
        // Evicted lines precede it.
        post_victims(turn)?;
        if turn.machine().system.has_room(device) {
            break;
        }
        if turn.machine().system.now() >= limit {
            return Err(Error::System(sim::Error::Timeout {
                device,
                bar,
                offset,
            }));
        }
        turn.wait_for(WakeCondition::Room(device, limit))?;
    }
    turn.machine().post(device, bar, offset, data)
}

/// Writes a line back before a store bypasses the cache, so that stores to one line become
/// persistent in order.
fn clean_line<T: Turn>(turn: &mut T, line: &CacheLine) -> Result<()> {
    loop {
        let machine = turn.machine();
        let stores = |step: &DeferredAccess| matches!(step, DeferredAccess::Store { .. });
        let flight = machine.filling(line).filter(|f| f.steps.iter().any(stores));
        let Some(tag) = flight.map(|f| f.tag) else {
            break;
        };
        turn.wait_for(WakeCondition::Loads(vec![tag]))?;
        process_arrivals(turn)?;
    }
    let machine = turn.machine();
    let Some(entry) = machine.cache.get(line).filter(|e| e.dirty != 0) else {
        return Ok(());
    };
    let victim = Victim {
        line: *line,
        data: entry.data,
        dirty: std::mem::take(&mut entry.dirty),
        cpus: Vec::new(),
    };
    machine.counts.evictions += 1;
    machine.victims.push_back(victim);
    post_victims(turn)
}

/// Sends the content of a write-combining buffer.
pub(crate) fn send_buffer<T: Turn>(turn: &mut T, cpu: usize, buffer: WcBuffer) -> Result<()> {
    let line = buffer.line;
    turn.machine().core(cpu).sending = Some(buffer.clone());
    uncached::drain(turn, cpu)?;
    clean_line(turn, &line)?;
    for (start, data) in buffer.writes() {
        let offset = line.offset + start as u64;
        post(turn, line.device, line.bar, offset, data)?;
        // A copy in the cache, or on its way there, must not become stale.
        let machine = turn.machine();
        if let Some(entry) = machine.cache.get(&line) {
            entry.data[start..start + data.len()].copy_from_slice(data);
        } else if let Some(flight) = machine.filling(&line) {
            let data = data.to_vec();
            flight.steps.push(DeferredAccess::Patch { start, data });
        }
    }
    let machine = turn.machine();
    match buffer.valid {
        u64::MAX => machine.counts.wc_full += 1,
        _ => machine.counts.wc_partial += 1,
    }
    let flush = machine.costs.wc_flush;
    let first = u64::from(buffer.valid.trailing_zeros() % 64);
    machine.note_sent(cpu, &line, line.offset + first, flush);
    let busy = machine.system.now() + flush;
    let core = machine.core(cpu);
    core.wc.mark_busy(busy);
    core.sending = None;
    Ok(())
}

/// Sends write-combining buffers of a CPU: that of one line, or all.
pub(crate) fn send_buffers<T: Turn>(
    turn: &mut T,
    cpu: usize,
    line: Option<&CacheLine>,
) -> Result<()> {
    while let Some(buffer) = turn.machine().core(cpu).wc.take_buffer(line) {
        send_buffer(turn, cpu, buffer)?;
    }
    Ok(())
}

/// `clwb`, or `clflushopt` if the line is evicted.
pub(crate) fn write_back<T: Turn>(
    turn: &mut T,
    cpu: usize,
    mapping: &Mapping,
    offset: u64,
    leaves: bool,
) -> Result<()> {
    let machine = turn.machine();
    machine
        .system
        .check_access(mapping.device, mapping.bar, offset, 1)?;
    let line = mapping.line(offset);
    begin_instruction(turn, cpu)?;
    uncached::drain(turn, cpu)?;
    let machine = turn.machine();
    machine.record_at(cpu, || HostEvent::Flushed { cpu, line });
    let cost = machine.costs.clwb;
    machine.spend(cpu, cost);
    if machine.core(cpu).wc.contains(&line) {
        send_buffers(turn, cpu, Some(&line))?;
    }
    let machine = turn.machine();
    // Even if another CPU has written it back, the next fence has to include the device.
    if mapping.kind == MemoryType::WriteBack {
        machine.note_unfenced(cpu, &line, line.offset);
    }
    if let Some(flight) = machine.filling(&line) {
        flight.after.cpus.push(cpu);
        flight.after.leaves |= leaves;
    } else {
        let entry = match leaves {
            true => machine.cache.remove(&line),
            false => machine.cache.get(&line).map(|entry| {
                let old = entry.clone();
                entry.dirty = 0;
                old
            }),
        };
        if let Some(entry) = entry.filter(|entry| entry.dirty != 0) {
            machine.counts.flushes += 1;
            machine.victims.push_back(Victim {
                line,
                data: entry.data,
                dirty: entry.dirty,
                cpus: vec![cpu],
            });
            post_victims(turn)?;
        }
    }
    Ok(())
}

/// Waits for everything that a CPU has sent, or has requested to be written back.
pub(crate) fn fence<T: Turn>(turn: &mut T, cpu: usize, fence: Fence) -> Result<()> {
    let unfenced = store_fence(turn, cpu, fence)?;
    if fence == Fence::Posted || unfenced.is_empty() {
        return Ok(());
    }
    begin_instruction(turn, cpu)?;
    match fence {
        Fence::Posted => {}
        Fence::ReadBack => {
            let places = read_back_places(turn.machine(), &unfenced);
            read_back(turn, cpu, &places)?;
        }
        Fence::Completion => wait_completion(turn, cpu, &unfenced)?,
    }
    check_lost_stores(turn.machine(), cpu, unfenced.iter().map(|at| at.0))
}

/// A fence that reads back lines of devices: those at `places`, and of further devices as
/// [`Fence::ReadBack`] does. Returns the lines.
pub(crate) fn fence_with_lines<T: Turn>(
    turn: &mut T,
    cpu: usize,
    places: &[(usize, Bar, u64)],
) -> Result<Vec<Vec<u8>>> {
    let mut unfenced = store_fence(turn, cpu, Fence::ReadBack)?;
    unfenced.retain(|at| places.iter().all(|place| place.0 != at.0));
    begin_instruction(turn, cpu)?;
    let mut loads: Vec<_> = places.iter().map(|at| (*at, LINE)).collect();
    loads.extend(read_back_places(turn.machine(), &unfenced));
    let mut lines = read_back(turn, cpu, &loads)?;
    lines.truncate(places.len());
    let devices = loads.iter().map(|((device, ..), _)| *device);
    check_lost_stores(turn.machine(), cpu, devices)?;
    Ok(lines)
}

/// `sfence`, with what has to be sent before. Returns the places of stores that no fence has
/// included, one of each device.
fn store_fence<T: Turn>(turn: &mut T, cpu: usize, fence: Fence) -> Result<Vec<(usize, Bar, u64)>> {
    begin_instruction(turn, cpu)?;
    turn.machine().counts.fences += 1;
    let event = || HostEvent::Fenced { cpu, what: fence };
    turn.machine().record_at(cpu, event);
    uncached::drain(turn, cpu)?;
    send_buffers(turn, cpu, None)?;
    // Lines still being fetched that have to be written back on arrival.
    loop {
        let asked = |f: &&LoadInFlight| f.after.cpus.contains(&cpu);
        let Some(tag) = turn
            .machine()
            .loads_in_flight
            .iter()
            .find(asked)
            .map(|f| f.tag)
        else {
            break;
        };
        turn.wait_for(WakeCondition::Loads(vec![tag]))?;
        process_arrivals(turn)?;
    }
    let machine = turn.machine();
    let cost = machine.costs.sfence;
    let core = machine.core(cpu);
    core.busy = core.busy.max(core.accepted);
    let unfenced = std::mem::take(&mut core.unfenced);
    machine.spend(cpu, cost);
    Ok(unfenced)
}

/// Every device is checked, so each error is reported once.
fn check_lost_stores(
    machine: &mut Machine,
    cpu: usize,
    devices: impl Iterator<Item = usize>,
) -> Result<()> {
    let looks: Vec<_> = devices
        .map(|device| machine.check_lost_stores(cpu, device))
        .collect();
    looks.into_iter().collect()
}

/// The place of each device, or of its last store, aligned: in the same window as the store.
fn read_back_places(
    machine: &Machine,
    unfenced: &[(usize, Bar, u64)],
) -> Vec<((usize, Bar, u64), usize)> {
    let place = machine.costs.read_back;
    let of = |&(device, last_bar, last): &(usize, Bar, u64)| {
        let (bar, offset) = place.unwrap_or((last_bar, last));
        ((device, bar, offset & !3), 4)
    };
    unfenced.iter().map(of).collect()
}

/// Loads numbers of bytes from all places at once, and waits for the answers.
fn read_back<T: Turn>(
    turn: &mut T,
    cpu: usize,
    loads: &[((usize, Bar, u64), usize)],
) -> Result<Vec<Vec<u8>>> {
    let mut tickets = Vec::new();
    for &((device, bar, offset), len) in loads {
        let mapping = Mapping {
            device,
            bar,
            kind: MemoryType::Uncached,
        };
        let line = mapping.line(offset);
        let part = AccessPart {
            line,
            start: (offset - line.offset) as usize,
            len,
            from: 0,
        };
        let ticket = turn.machine().take_ticket();
        let step = DeferredAccess::Read {
            ticket,
            start: 0,
            len: part.len,
        };
        while start_load(turn, cpu, &part, false, vec![step.clone()])?.is_none() {}
        tickets.push(ticket);
    }
    let wait = |ticket| wait_load(turn, cpu, ticket);
    tickets.into_iter().map(wait).collect()
}

/// Waits until each device has accepted everything before this call.
fn wait_completion<T: Turn>(turn: &mut T, cpu: usize, devices: &[(usize, Bar, u64)]) -> Result<()> {
    let limit = turn.machine().completion_deadline();
    let mut marks = Vec::new();
    for &(device, bar, offset) in devices {
        let mark = turn.machine().system.mark(device);
        marks.extend(mark.map(|mark| (device, bar, offset, mark)));
    }
    for (device, bar, offset, mark) in marks {
        turn.wait_for(WakeCondition::Accepted(device, mark, limit))?;
        let machine = turn.machine();
        let Some(at) = machine.system.completed(device, mark) else {
            return Err(Error::System(sim::Error::Timeout {
                device,
                bar,
                offset,
            }));
        };
        let way = Time::ns(machine.system.host().mmio_ns);
        let core = machine.core(cpu);
        core.busy = core.busy.max(at + way);
    }
    Ok(())
}
