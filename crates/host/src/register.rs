// SPDX-License-Identifier: Apache-2.0

//! Uncached accesses of any length, as drivers make them.

use sim::{Bar, Time};

use crate::flush::{post, send_buffers};
use crate::in_flight::{process_arrivals, wait_load};
use crate::load::{DeferredAccess, FillActions, LoadInFlight};
use crate::mapping::Mapping;
use crate::uncached;
use crate::{MemoryType, Result, Turn, WakeCondition};

/// Bytes of a page, which no access crosses.
const PAGE: u64 = 4096;

/// Loads `out` from a window, a page at a time, and waits for the data. The CPU's write-combining
/// buffers are sent first.
///
/// # Errors
///
/// No such window, no answer, or a failed read; see [`crate::Error`].
pub fn read<T: Turn>(
    turn: &mut T,
    cpu: usize,
    (device, bar): (usize, Bar),
    offset: u64,
    out: &mut [u8],
) -> Result<()> {
    begin_instruction(turn, cpu)?;
    if turn.is_alone() {
        let machine = turn.machine();
        let data = machine.system.mmio_read(device, bar, offset, out.len())?;
        out.copy_from_slice(&data);
        let cost = machine.costs.load;
        machine.spend(cpu, cost);
        return Ok(());
    }
    let mut done = 0;
    while done < out.len() {
        let at = offset + done as u64;
        let len = (out.len() - done).min((PAGE - at % PAGE) as usize);
        let ticket = start_load(turn, cpu, (device, bar), at, len)?;
        out[done..done + len].copy_from_slice(&wait_load(turn, cpu, ticket)?);
        done += len;
    }
    Ok(())
}

/// Starts a load within a page.
fn start_load<T: Turn>(
    turn: &mut T,
    cpu: usize,
    (device, bar): (usize, Bar),
    offset: u64,
    len: usize,
) -> Result<u64> {
    loop {
        let machine = turn.machine();
        if machine.loads_in_flight.len() < machine.system.host().cpu_loads {
            break;
        }
        let tags = machine.loads_in_flight.iter().map(|f| f.tag).collect();
        turn.wait_for(WakeCondition::Loads(tags))?;
        process_arrivals(turn)?;
    }
    let machine = turn.machine();
    let tag = machine.system.load(device, bar, offset, len)?;
    let ticket = machine.take_ticket();
    let start = 0;
    machine.loads_in_flight.push(LoadInFlight {
        tag,
        cpu,
        fill: None,
        steps: vec![DeferredAccess::Read { ticket, start, len }],
        after: FillActions::default(),
    });
    Ok(ticket)
}

/// Stores to a window by posted writes, at a cost of `cost` for the CPU. The CPU's write-combining
/// buffers are sent first.
///
/// # Errors
///
/// No such window, or a device that accepts nothing for too long.
pub fn write<T: Turn>(
    turn: &mut T,
    cpu: usize,
    (device, bar): (usize, Bar),
    offset: u64,
    data: &[u8],
    cost: Time,
) -> Result<()> {
    begin_instruction(turn, cpu)?;
    if turn.is_alone() {
        turn.machine()
            .system
            .mmio_write(device, bar, offset, data)?;
    } else {
        let unit = turn.machine().system.link(device);
        let unit = unit.map_or(PAGE, |link| link.config().max_payload_bytes.into());
        let mut done = 0;
        while done < data.len() {
            let at = offset.saturating_add(done as u64);
            let len = (data.len() - done).min((unit - at % unit) as usize);
            post(turn, device, bar, at, &data[done..done + len])?;
            done += len;
        }
    }
    let machine = turn.machine();
    if bar == Bar::Pm {
        let mapping = Mapping::pm(device, MemoryType::Uncached);
        machine.note_unfenced(cpu, &mapping.line(offset), offset);
    }
    machine.spend(cpu, cost);
    Ok(())
}

/// Waits for the end of the CPU's work, and empties its buffers.
fn begin_instruction<T: Turn>(turn: &mut T, cpu: usize) -> Result<()> {
    let at = turn.machine().busy_until(cpu);
    turn.wait_for(WakeCondition::At(at))?;
    let machine = turn.machine();
    if !machine.loads_in_flight.is_empty() || !machine.victims.is_empty() {
        process_arrivals(turn)?;
    }
    uncached::drain(turn, cpu)?;
    if !turn.machine().core(cpu).wc.is_empty() {
        send_buffers(turn, cpu, None)?;
    }
    Ok(())
}
