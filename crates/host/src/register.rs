//! Uncached accesses of any length, as drivers make them.

use sim::{Bar, Time};

use crate::flight::{finish, settle, After, Flight, Step};
use crate::flush::{post, send_buffers};
use crate::mapping::Mapping;
use crate::{Kind, Result, Turn, Wake};

/// Bytes of a page, which no access crosses.
const PAGE: u64 = 4096;

/// A CPU loads `out` from a window, a page at a time, and has it in the end. What its write-combining buffers hold goes before.
///
/// # Errors
///
/// No such window, no answer, a failed read; see [`crate::Error`].
pub fn read<T: Turn>(
    turn: &mut T,
    cpu: usize,
    (device, bar): (usize, Bar),
    offset: u64,
    out: &mut [u8],
) -> Result<()> {
    begin(turn, cpu)?;
    if turn.alone() {
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
        let ticket = start(turn, cpu, (device, bar), at, len)?;
        out[done..done + len].copy_from_slice(&finish(turn, cpu, ticket)?);
        done += len;
    }
    Ok(())
}

/// Starts a load within a page.
fn start<T: Turn>(
    turn: &mut T,
    cpu: usize,
    (device, bar): (usize, Bar),
    offset: u64,
    len: usize,
) -> Result<u64> {
    loop {
        let machine = turn.machine();
        if machine.flights.len() < machine.system.host().cpu_loads {
            break;
        }
        let tags = machine.flights.iter().map(|f| f.tag).collect();
        turn.pass(Wake::Loads(tags))?;
        settle(turn)?;
    }
    let machine = turn.machine();
    let tag = machine.system.load(device, bar, offset, len)?;
    let ticket = machine.take_ticket();
    let start = 0;
    machine.flights.push(Flight {
        tag,
        cpu,
        fill: None,
        steps: vec![Step::Read { ticket, start, len }],
        after: After::default(),
    });
    Ok(ticket)
}

/// A CPU stores to a window, in posted writes, which costs it `cost`. What its write-combining buffers hold goes before.
///
/// # Errors
///
/// No such window; a device that takes nothing for too long.
pub fn write<T: Turn>(
    turn: &mut T,
    cpu: usize,
    (device, bar): (usize, Bar),
    offset: u64,
    data: &[u8],
    cost: Time,
) -> Result<()> {
    begin(turn, cpu)?;
    if turn.alone() {
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
        let mapping = Mapping::pm(device, Kind::Uncached);
        machine.note_unfenced(cpu, &mapping.line(offset), offset);
    }
    machine.spend(cpu, cost);
    Ok(())
}

/// The CPU has done what it was given, and its buffers are empty.
fn begin<T: Turn>(turn: &mut T, cpu: usize) -> Result<()> {
    let at = turn.machine().busy_until(cpu);
    turn.pass(Wake::At(at))?;
    let machine = turn.machine();
    if !machine.flights.is_empty() || !machine.victims.is_empty() {
        settle(turn)?;
    }
    if !turn.machine().core(cpu).wc.is_empty() {
        send_buffers(turn, cpu, None)?;
    }
    Ok(())
}
