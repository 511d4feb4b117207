// SPDX-License-Identifier: Apache-2.0

//! Persistent memory for C: the functions that `include/nearside_pm.h` declares and documents.
//!
//! Modules in reading order:
//!
//! - this file: systems, pools, threads and transactions (`nspm_*`), over [`pm::session`];
//! - `nearpm`: the engine's commands by the names of the NearPM paper (`NearPM_*`);
//! - `handles`: the objects of handles, the execution of calls, and the checks of arguments.
//!
//! No panic crosses the boundary. Arguments are checked before use; pointers only for NULL. It
//! leaves out closures, typed pointers and the B-tree of crate `pm`.
// The header documents the functions, and the rules for callers.
#![allow(missing_docs, clippy::missing_safety_doc)]

mod handles;
mod nearpm;

pub use nearpm::*;

use std::ffi::{c_char, c_int, c_void};

use design::Design;
use device::Model;
use handles::{
    bytes, bytes_mut, call, invalid, text, write_optional, write_out, CallbackArgument, Result,
};
use host::{CutScope, Fence};
use pm::session::{PoolUse, Session};
use pm::{Layout, Mechanism, Synchronisation, Ticket};
use sim::Time;

/// A handle of a system.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct NspmSystem {
    pub id: u64,
}

/// A handle of a pool.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct NspmPool {
    pub id: u64,
}

/// A handle of a thread.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct NspmThread {
    pub id: u64,
}

/// The layout of a pool.
#[repr(C)]
pub struct NspmLayout {
    pub name: *const c_char,
    pub mechanism: u32,
    pub threads: u32,
    pub log_bytes: u64,
    pub spare_pages: u64,
    pub tracked: u32,
}

/// The options of a pool's use.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct NspmOptions {
    pub offload: u32,
    pub fence: u32,
    pub number: u32,
    pub engine_recovers: u32,
    pub group_commit: u32,
    pub words: u32,
}

/// A function to call when a transaction is durable.
pub type NspmCallback = unsafe extern "C" fn(ticket: u64, argument: *mut c_void);

/// The counters of a thread.
#[repr(C)]
pub struct NspmCounts {
    pub transactions: u64,
    pub aborts: u64,
    pub fences: u64,
    pub lines: u64,
    pub records: u64,
    pub payload: u64,
    pub commands: u64,
    pub allocations: u64,
    pub time_ps: u64,
    pub consistency_ps: u64,
}

fn flag(value: u32, what: &str) -> Result<bool> {
    match value {
        0 | 1 => Ok(value == 1),
        _ => Err(invalid(format!("{what} = {value}: allowed are 0 and 1"))),
    }
}

fn byte(value: u32, what: &str) -> Result<u8> {
    u8::try_from(value).map_err(|_| invalid(format!("{what} = {value}: allowed are 0 to 15")))
}

/// # Safety
///
/// NULL, or options.
unsafe fn pool_use(options: *const NspmOptions) -> Result<PoolUse> {
    if options.is_null() {
        return Ok(PoolUse::default());
    }
    // SAFETY: it is not NULL, so these are options.
    let options = unsafe { *options };
    Ok(PoolUse {
        offload: flag(options.offload, "offload")?,
        fence: match options.fence {
            0 => Fence::ReadBack,
            1 => Fence::Posted,
            2 => Fence::Completion,
            other => return Err(invalid(format!("fence = {other}: allowed are 0 to 2"))),
        },
        number: byte(options.number, "number")?,
        engine_recovers: flag(options.engine_recovers, "engine_recovers")?,
        group_commit: match options.group_commit {
            0 => None,
            count => Some(count.into()),
        },
        words: flag(options.words, "words")?,
    })
}

/// # Safety
///
/// NULL, or a layout whose name is NULL or a text.
unsafe fn layout(layout: *const NspmLayout) -> Result<Layout> {
    if layout.is_null() {
        return Err(invalid("layout = NULL: allowed is a layout with a name"));
    }
    // SAFETY: it is not NULL, so it is a layout, and its name is as `text` needs it.
    let (layout, name) = unsafe { (&*layout, text((*layout).name, "layout.name")?) };
    let mechanism = Mechanism::ALL.get(layout.mechanism as usize).copied();
    let given = Layout::new(name);
    Ok(Layout {
        mechanism: mechanism.ok_or_else(|| {
            let mechanism = layout.mechanism;
            invalid(format!("mechanism = {mechanism}: allowed are 0 to 3"))
        })?,
        threads: match layout.threads {
            0 if layout.tracked == 1 => 1,
            0 => given.threads,
            threads => u8::try_from(threads)
                .map_err(|_| invalid(format!("threads = {threads}: allowed are 1 to 16")))?,
        },
        log_bytes: match layout.log_bytes {
            0 => given.log_bytes,
            bytes => bytes,
        },
        spare_pages: match layout.spare_pages {
            0 => given.spare_pages,
            pages => pages,
        },
        tracked: flag(layout.tracked, "tracked")?,
        ..given
    })
}

/// A design by name or path, with further values.
pub(crate) fn design(name: &str, values: &str) -> Result<Design> {
    Design::find(name)
        .and_then(|design| design.with_values(values))
        .map_err(invalid)
}

#[no_mangle]
pub extern "C" fn nspm_message() -> *const c_char {
    handles::message()
}

#[no_mangle]
pub unsafe extern "C" fn nspm_system_open(
    design: *const c_char,
    model: *const c_char,
    values: *const c_char,
    out: *mut NspmSystem,
) -> c_int {
    // SAFETY: the caller's, as the header says of all pointers.
    unsafe { nspm_system_open_over(design, model, values, 1, 0, out) }
}

#[no_mangle]
pub unsafe extern "C" fn nspm_system_open_over(
    name: *const c_char,
    model: *const c_char,
    values: *const c_char,
    devices: u32,
    synchronise: u32,
    out: *mut NspmSystem,
) -> c_int {
    call(|state| {
        // SAFETY: the caller's.
        let name = unsafe { text(name, "design") }?;
        let model = match model.is_null() {
            true => Model::Fast,
            // SAFETY: the caller's.
            false => unsafe { text(model, "model") }?.parse().map_err(invalid)?,
        };
        let values = match values.is_null() {
            true => "",
            // SAFETY: the caller's.
            false => unsafe { text(values, "values") }?,
        };
        let who = Synchronisation::ALL.get(synchronise as usize).copied();
        let who = who
            .ok_or_else(|| invalid(format!("synchronise = {synchronise}: allowed are 0 and 1")))?;
        let make = || {
            let design = design(name, values)?;
            let session = Session::start_with_devices(&design, model, devices as usize, who)?;
            let id = state.add_system(session);
            Ok(NspmSystem { id })
        };
        // SAFETY: the caller's.
        unsafe { write_out(out, "out", make) }
    })
}

#[no_mangle]
pub extern "C" fn nspm_system_close(system: NspmSystem) -> c_int {
    call(|state| state.close_system(system.id))
}

#[no_mangle]
pub unsafe extern "C" fn nspm_now(system: NspmSystem, ps: *mut u64) -> c_int {
    // SAFETY: the caller's.
    call(|state| unsafe { write_out(ps, "ps", || Ok(state.system(system.id)?.session.now().0)) })
}

#[no_mangle]
pub unsafe extern "C" fn nspm_window_bytes(system: NspmSystem, out: *mut u64) -> c_int {
    call(|state| {
        let make = || Ok(state.system(system.id)?.session.window_bytes());
        // SAFETY: the caller's.
        unsafe { write_out(out, "bytes", make) }
    })
}

#[no_mangle]
pub unsafe extern "C" fn nspm_load(
    system: NspmSystem,
    offset: u64,
    out: *mut u8,
    len: usize,
) -> c_int {
    call(|state| {
        let session = &state.system(system.id)?.session;
        session.check_access(offset, len as u64)?;
        // SAFETY: the caller's.
        Ok(session.load(offset, unsafe { bytes_mut(out, len, "out") }?)?)
    })
}

#[no_mangle]
pub unsafe extern "C" fn nspm_store(
    system: NspmSystem,
    offset: u64,
    data: *const u8,
    len: usize,
) -> c_int {
    call(|state| {
        let session = &state.system(system.id)?.session;
        session.check_access(offset, len as u64)?;
        // SAFETY: the caller's.
        Ok(session.store(offset, unsafe { bytes(data, len, "data") }?)?)
    })
}

#[no_mangle]
pub unsafe extern "C" fn nspm_power_cut(system: NspmSystem, cut: c_int, lost: *mut u64) -> c_int {
    call(|state| {
        let cut = match cut {
            0 => CutScope::Host,
            1 => CutScope::All,
            other => return Err(invalid(format!("cut = {other}: allowed are 0 and 1"))),
        };
        let lines = state.system(system.id)?.session.cut_power(cut)?;
        // SAFETY: the caller's.
        unsafe { write_optional(lost, lines as u64) };
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn nspm_power_cut_after(system: NspmSystem, ps: u64) -> c_int {
    call(|state| {
        let session = &state.system(system.id)?.session;
        Ok(session.cut_power_after(Time(ps))?)
    })
}

#[no_mangle]
pub extern "C" fn nspm_power_on(system: NspmSystem) -> c_int {
    call(|state| Ok(state.system(system.id)?.session.power_on()?))
}

#[no_mangle]
pub unsafe extern "C" fn nspm_pool_create(
    system: NspmSystem,
    place: u64,
    bytes: u64,
    made_of: *const NspmLayout,
    options: *const NspmOptions,
    out: *mut NspmPool,
) -> c_int {
    call(|state| {
        // SAFETY: the caller's.
        let (layout, pool_use) = unsafe { (layout(made_of)?, pool_use(options)?) };
        let make = || {
            let session = state.system(system.id)?.session.clone();
            let pool = session.create(place, bytes, &layout, pool_use)?;
            let id = state.add_pool(system.id, pool);
            Ok(NspmPool { id })
        };
        // SAFETY: the caller's.
        unsafe { write_out(out, "out", make) }
    })
}

#[no_mangle]
pub unsafe extern "C" fn nspm_pool_open(
    system: NspmSystem,
    place: u64,
    name: *const c_char,
    options: *const NspmOptions,
    out: *mut NspmPool,
) -> c_int {
    call(|state| {
        // SAFETY: the caller's.
        let (name, pool_use) = unsafe { (text(name, "name")?, pool_use(options)?) };
        let make = || {
            let session = state.system(system.id)?.session.clone();
            let id = state.add_pool(system.id, session.open(place, name, pool_use)?);
            Ok(NspmPool { id })
        };
        // SAFETY: the caller's.
        unsafe { write_out(out, "out", make) }
    })
}

#[no_mangle]
pub unsafe extern "C" fn nspm_pool_check(pool: NspmPool, objects: *mut u64) -> c_int {
    call(|state| {
        let check = state.pool(pool.id)?.1.check()?;
        // SAFETY: the caller's.
        unsafe { write_optional(objects, check.objects.len() as u64) };
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn nspm_pool_resize(pool: NspmPool, bytes: u64) -> c_int {
    call(|state| Ok(state.pool(pool.id)?.1.resize(bytes)?))
}

#[no_mangle]
pub extern "C" fn nspm_pool_close(pool: NspmPool) -> c_int {
    call(|state| state.close_pool(pool.id))
}

#[no_mangle]
pub unsafe extern "C" fn nspm_thread_open(pool: NspmPool, cpu: u32, out: *mut NspmThread) -> c_int {
    call(|state| {
        let make = || {
            let (system, pool) = state.pool(pool.id)?;
            let (system, thread) = (*system, pool.thread(cpu as usize)?);
            let id = state.add_thread(system, thread);
            Ok(NspmThread { id })
        };
        // SAFETY: the caller's.
        unsafe { write_out(out, "out", make) }
    })
}

#[no_mangle]
pub extern "C" fn nspm_thread_close(thread: NspmThread) -> c_int {
    call(|state| state.close_thread(thread.id))
}

#[no_mangle]
pub extern "C" fn nspm_begin(thread: NspmThread) -> c_int {
    call(|state| Ok(state.thread(thread.id)?.begin()?))
}

#[no_mangle]
pub extern "C" fn nspm_commit(thread: NspmThread) -> c_int {
    call(|state| Ok(state.thread(thread.id)?.commit()?))
}

#[no_mangle]
pub unsafe extern "C" fn nspm_commit_later(thread: NspmThread, ticket: *mut u64) -> c_int {
    call(|state| {
        let commit = || Ok(state.thread(thread.id)?.commit_later()?.number());
        // SAFETY: the caller's.
        unsafe { write_out(ticket, "ticket", commit) }
    })
}

#[no_mangle]
pub extern "C" fn nspm_wait(thread: NspmThread, ticket: u64) -> c_int {
    call(|state| Ok(state.thread(thread.id)?.wait(Ticket::from_number(ticket))?))
}

#[no_mangle]
pub extern "C" fn nspm_sync(thread: NspmThread) -> c_int {
    call(|state| Ok(state.thread(thread.id)?.sync()?))
}

#[no_mangle]
pub unsafe extern "C" fn nspm_durable(thread: NspmThread, ticket: *mut u64) -> c_int {
    call(|state| {
        let durable = || Ok(state.thread(thread.id)?.durable()?.number());
        // SAFETY: the caller's.
        unsafe { write_out(ticket, "ticket", durable) }
    })
}

#[no_mangle]
pub extern "C" fn nspm_when_durable(
    thread: NspmThread,
    ticket: u64,
    callback: Option<NspmCallback>,
    argument: *mut c_void,
) -> c_int {
    call(|state| {
        let function = callback.ok_or_else(|| invalid("callback = NULL: allowed is a function"))?;
        let due = state.due_callbacks();
        let argument = CallbackArgument(argument);
        let thread = state.thread(thread.id)?;
        Ok(
            thread.when_durable(Ticket::from_number(ticket), move |ticket| {
                due.add(function, ticket, argument);
            })?,
        )
    })
}

#[no_mangle]
pub extern "C" fn nspm_abort(thread: NspmThread) -> c_int {
    call(|state| Ok(state.thread(thread.id)?.abort()?))
}

#[no_mangle]
pub extern "C" fn nspm_fail(thread: NspmThread) -> c_int {
    call(|state| Ok(state.thread(thread.id)?.fail()?))
}

#[no_mangle]
pub extern "C" fn nspm_add_range(thread: NspmThread, offset: u64, bytes: u64) -> c_int {
    call(|state| Ok(state.thread(thread.id)?.add_range(offset, bytes)?))
}

#[no_mangle]
pub unsafe extern "C" fn nspm_write(
    thread: NspmThread,
    offset: u64,
    data: *const u8,
    len: usize,
) -> c_int {
    call(|state| {
        let thread = state.thread(thread.id)?;
        thread.check_range(offset, len)?;
        // SAFETY: the caller's.
        Ok(thread.write(offset, unsafe { bytes(data, len, "data") }?)?)
    })
}

#[no_mangle]
pub unsafe extern "C" fn nspm_read(
    thread: NspmThread,
    offset: u64,
    out: *mut u8,
    len: usize,
) -> c_int {
    call(|state| {
        let thread = state.thread(thread.id)?;
        thread.check_range(offset, len)?;
        // SAFETY: the caller's.
        Ok(thread.read(offset, unsafe { bytes_mut(out, len, "out") }?)?)
    })
}

#[no_mangle]
pub unsafe extern "C" fn nspm_alloc(thread: NspmThread, bytes: u64, offset: *mut u64) -> c_int {
    call(|state| {
        let make = || Ok(state.thread(thread.id)?.alloc(bytes)?);
        // SAFETY: the caller's.
        unsafe { write_out(offset, "offset", make) }
    })
}

#[no_mangle]
pub extern "C" fn nspm_free(thread: NspmThread, offset: u64) -> c_int {
    call(|state| Ok(state.thread(thread.id)?.free(offset)?))
}

#[no_mangle]
pub unsafe extern "C" fn nspm_root(thread: NspmThread, offset: *mut u64) -> c_int {
    // SAFETY: the caller's.
    call(|state| unsafe { write_out(offset, "offset", || Ok(state.thread(thread.id)?.root()?)) })
}

#[no_mangle]
pub extern "C" fn nspm_set_root(thread: NspmThread, offset: u64) -> c_int {
    call(|state| Ok(state.thread(thread.id)?.set_root(offset)?))
}

#[no_mangle]
pub extern "C" fn nspm_finish(thread: NspmThread) -> c_int {
    call(|state| Ok(state.thread(thread.id)?.finish()?))
}

#[no_mangle]
pub unsafe extern "C" fn nspm_thread_counts(thread: NspmThread, out: *mut NspmCounts) -> c_int {
    call(|state| {
        let make = || {
            let counts = state.thread(thread.id)?.counts();
            Ok(NspmCounts {
                transactions: counts.transactions,
                aborts: counts.aborts,
                fences: counts.fences,
                lines: counts.lines,
                records: counts.records,
                payload: counts.payload,
                commands: counts.commands,
                allocations: counts.allocations,
                time_ps: counts.time.0,
                consistency_ps: counts.consistency.0,
            })
        };
        // SAFETY: the caller's.
        unsafe { write_out(out, "out", make) }
    })
}
