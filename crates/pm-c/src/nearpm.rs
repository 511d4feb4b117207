// SPDX-License-Identifier: Apache-2.0

//! The engine's commands by the names of the NearPM paper.
#![allow(non_snake_case)]

use std::ffi::{c_char, c_int};

use device::Model;
use pm::session::Session;
use spec::nearpm::{Command, Descriptor, ErrorBit, Operation, POOLS, THREADS};

use crate::handles::{
    call, invalid, text, write_optional, write_out, HandleTable, MappedPool, Result,
};
use crate::NspmSystem;

/// The process that these pools belong to on the engine.
const PROCESS: u16 = 2;

fn command(operation: Operation, pool: u32, thread: u32) -> Result<Command> {
    let below = |value: u32, most: u8, what: &str| match value < u32::from(most) {
        true => Ok(value as u8),
        false => Err(invalid(format!(
            "{what} = {value}: allowed are 0 to {}",
            most - 1
        ))),
    };
    let pool = below(pool, POOLS, "pool")?;
    let thread = below(thread, THREADS, "thread")?;
    Ok(Command::new(operation, PROCESS, pool, thread))
}

fn run(state: &mut HandleTable, system: NspmSystem, command: Command) -> Result<u64> {
    Ok(state.system(system.id)?.session.command(&command)?)
}

/// # Safety
///
/// NULL, or valid for a write of a number.
unsafe fn record(
    system: NspmSystem,
    operation: Operation,
    (pool, thread): (u32, u32),
    (address, bytes, target): (u64, u64, u64),
    out: *mut u64,
) -> c_int {
    call(|state| {
        let command = Command {
            address,
            bytes,
            target,
            ..command(operation, pool, thread)?
        };
        let value = run(state, system, command)?;
        // SAFETY: the caller's, as the header says of all pointers.
        unsafe { write_optional(out, value) };
        Ok(())
    })
}

fn plain(system: NspmSystem, operation: Operation, pool: u32, thread: u32) -> c_int {
    call(|state| run(state, system, command(operation, pool, thread)?).map(drop))
}

#[no_mangle]
pub unsafe extern "C" fn NearPM_init_device(design: *const c_char, out: *mut NspmSystem) -> c_int {
    call(|state| {
        // SAFETY: the caller's.
        let design = unsafe { text(design, "design") }?;
        let make = || {
            let session = Session::start(&crate::design(design, "")?, Model::Fast)?;
            session.engine()?;
            let id = state.add_system(session);
            Ok(NspmSystem { id })
        };
        // SAFETY: the caller's.
        unsafe { write_out(out, "out", make) }
    })
}

#[no_mangle]
pub extern "C" fn NearPM_pool_map(
    system: NspmSystem,
    pool: u32,
    place: u64,
    bytes: u64,
    logs: u64,
    log_bytes: u64,
    threads: u32,
    generation: u64,
) -> c_int {
    call(|state| {
        // Virtual addresses are offsets: the base is 0.
        let map = Command {
            bytes,
            target: place,
            transaction: logs,
            value: log_bytes,
            extra: threads.into(),
            ..command(Operation::PoolMap, pool, 0)?
        };
        run(state, system, map)?;
        for thread in 0..threads {
            let open = Command {
                value: generation,
                ..command(Operation::LogOpen, pool, thread)?
            };
            run(state, system, open)?;
        }
        let mapped = MappedPool {
            place,
            logs,
            log_bytes,
        };
        state.system(system.id)?.mapped.insert(map.pool, mapped);
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn NearPM_pool_unmap(system: NspmSystem, pool: u32) -> c_int {
    call(|state| {
        let unmap = command(Operation::PoolUnmap, pool, 0)?;
        run(state, system, unmap)?;
        state.system(system.id)?.mapped.remove(&unmap.pool);
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn NearPM_undolog_create(
    system: NspmSystem,
    pool: u32,
    thread: u32,
    old_data: u64,
    size: u64,
    out: *mut u64,
) -> c_int {
    let (log, range) = ((pool, thread), (old_data, size, 0));
    // SAFETY: the caller's.
    unsafe { record(system, Operation::Undo, log, range, out) }
}

#[no_mangle]
pub unsafe extern "C" fn NearPM_ckpoint_create(
    system: NspmSystem,
    pool: u32,
    thread: u32,
    old_data: u64,
    size: u64,
    out: *mut u64,
) -> c_int {
    let (log, range) = ((pool, thread), (old_data, size, 0));
    // SAFETY: the caller's.
    unsafe { record(system, Operation::Checkpoint, log, range, out) }
}

#[no_mangle]
pub unsafe extern "C" fn NearPM_redolog_create(
    system: NspmSystem,
    pool: u32,
    thread: u32,
    new_data: u64,
    size: u64,
    target: u64,
    out: *mut u64,
) -> c_int {
    let (log, range) = ((pool, thread), (new_data, size, target));
    // SAFETY: the caller's.
    unsafe { record(system, Operation::Redo, log, range, out) }
}

#[no_mangle]
pub extern "C" fn NearPM_commit_redolog(system: NspmSystem, pool: u32, thread: u32) -> c_int {
    plain(system, Operation::CommitRedo, pool, thread)
}

#[no_mangle]
pub extern "C" fn NearPM_applylog(
    system: NspmSystem,
    pool: u32,
    thread: u32,
    record: u64,
    size: u64,
    target: u64,
) -> c_int {
    call(|state| {
        let apply = Command {
            value: record,
            bytes: size,
            target,
            ..command(Operation::Apply, pool, thread)?
        };
        run(state, system, apply).map(drop)
    })
}

#[no_mangle]
pub extern "C" fn NearPM_commit_log(system: NspmSystem, pool: u32, thread: u32) -> c_int {
    call(|state| {
        let commit = command(Operation::Commit, pool, thread)?;
        let session = &state.system(system.id)?.session;
        match session.command(&commit) {
            // Its redo records were committed before.
            Err(pm::Error::Refused(_, results)) if results.has(ErrorBit::Busy) => {
                session.command(&command(Operation::Delete, pool, thread)?)?;
            }
            other => drop(other?),
        }
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn NearPM_abort_log(system: NspmSystem, pool: u32, thread: u32) -> c_int {
    plain(system, Operation::Abort, pool, thread)
}

#[no_mangle]
pub unsafe extern "C" fn NearPM_recover(
    system: NspmSystem,
    pool: u32,
    thread: u32,
    records: *mut u64,
) -> c_int {
    call(|state| {
        let recover = command(Operation::Recover, pool, thread)?;
        let system = state.system(system.id)?;
        let mapped = system.mapped.get(&recover.pool).copied();
        let mapped = mapped.ok_or_else(|| invalid(format!("pool {pool}: it was not mapped")))?;
        let count = system.session.command(&recover)?;
        // A log is closed after a power loss.
        let mut line = [0; 64];
        let log = mapped.place + mapped.logs + mapped.log_bytes * u64::from(recover.thread);
        system.session.load(log, &mut line)?;
        let descriptor = Descriptor::from_line(&line);
        let descriptor = descriptor.ok_or_else(|| invalid("the log has no descriptor"))?;
        let open = Command {
            value: descriptor.generation,
            ..command(Operation::LogOpen, pool, thread)?
        };
        match system.session.command(&open) {
            Err(pm::Error::Refused(_, results)) if results.has(ErrorBit::Busy) => {}
            other => drop(other?),
        }
        // SAFETY: the caller's.
        unsafe { write_optional(records, count) };
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn NearPM_shadowcpy(
    system: NspmSystem,
    pool: u32,
    thread: u32,
    page: u64,
    size: u64,
    target: u64,
) -> c_int {
    call(|state| {
        let copy = Command {
            address: page,
            bytes: size,
            target,
            ..command(Operation::Copy, pool, thread)?
        };
        run(state, system, copy).map(drop)
    })
}
