// SPDX-License-Identifier: Apache-2.0

//! The objects of handles, and the execution of calls.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pm::session::{Session, SessionPool, SessionThread};
use pm::Ticket;

use crate::NspmCallback;

/// The result of a call: as `enum nspm_code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    Ok = 0,
    Invalid = 1,
    NoPool = 2,
    Corrupt = 3,
    Full = 4,
    Refused = 5,
    Aborted = 6,
    Power = 7,
    Host = 8,
    Handle = 9,
    Internal = 10,
}

/// The error of a call.
pub struct CallError {
    code: Code,
    text: String,
}

pub type Result<T> = std::result::Result<T, CallError>;

impl From<pm::Error> for CallError {
    fn from(error: pm::Error) -> CallError {
        let code = match &error {
            error if error.is_power_loss() => Code::Power,
            pm::Error::Power(_) => Code::Power,
            pm::Error::Host(_) => Code::Host,
            pm::Error::NoPool(_) => Code::NoPool,
            pm::Error::Corrupt(_) => Code::Corrupt,
            pm::Error::Full(_) => Code::Full,
            pm::Error::Invalid(_) => Code::Invalid,
            pm::Error::Refused(..) => Code::Refused,
            pm::Error::Aborted => Code::Aborted,
        };
        let text = error.to_string();
        CallError { code, text }
    }
}

pub fn invalid(text: impl std::fmt::Display) -> CallError {
    let text = text.to_string();
    let code = Code::Invalid;
    CallError { code, text }
}

fn missing(what: &str, id: u64) -> CallError {
    let text = format!("{what} {id}: there is none, or it was closed");
    let code = Code::Handle;
    CallError { code, text }
}

/// A range of the window that the engine has mapped as a pool, as the paper's functions need it.
#[derive(Clone, Copy)]
pub struct MappedPool {
    pub place: u64,
    pub logs: u64,
    pub log_bytes: u64,
}

pub struct System {
    pub session: Arc<Session>,
    pub mapped: HashMap<u8, MappedPool>,
}

/// The argument of a callback, which only the caller's function uses.
#[derive(Clone, Copy)]
pub struct CallbackArgument(pub *mut c_void);

// SAFETY: the library passes it on and does not use it. The header says which thread gets it.
unsafe impl Send for CallbackArgument {}

/// Callbacks of durable transactions, until the call that has learned it ends.
#[derive(Clone, Default)]
pub struct DueCallbacks(Arc<Mutex<Vec<(NspmCallback, Ticket, CallbackArgument)>>>);

impl DueCallbacks {
    fn lock(&self) -> MutexGuard<'_, Vec<(NspmCallback, Ticket, CallbackArgument)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, function: NspmCallback, ticket: Ticket, argument: CallbackArgument) {
        self.lock().push((function, ticket, argument));
    }

    fn take(&self) -> Vec<(NspmCallback, Ticket, CallbackArgument)> {
        std::mem::take(&mut self.lock())
    }
}

/// The objects of all handles, each with its system.
#[derive(Default)]
pub struct HandleTable {
    last: u64,
    systems: HashMap<u64, System>,
    pools: HashMap<u64, (u64, SessionPool)>,
    threads: HashMap<u64, (u64, SessionThread)>,
    due: DueCallbacks,
}

impl HandleTable {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub fn due_callbacks(&self) -> DueCallbacks {
        self.due.clone()
    }

    pub fn add_system(&mut self, session: Session) -> u64 {
        let (id, mapped) = (self.next(), HashMap::new());
        let session = Arc::new(session);
        self.systems.insert(id, System { session, mapped });
        id
    }

    pub fn system(&mut self, id: u64) -> Result<&mut System> {
        self.systems
            .get_mut(&id)
            .ok_or_else(|| missing("system", id))
    }

    pub fn close_system(&mut self, id: u64) -> Result<()> {
        self.system(id)?;
        self.threads.retain(|_, (system, _)| *system != id);
        self.pools.retain(|_, (system, _)| *system != id);
        self.systems.remove(&id);
        Ok(())
    }

    pub fn add_pool(&mut self, system: u64, pool: SessionPool) -> u64 {
        let id = self.next();
        self.pools.insert(id, (system, pool));
        id
    }

    pub fn pool(&mut self, id: u64) -> Result<&(u64, SessionPool)> {
        self.pools.get(&id).ok_or_else(|| missing("pool", id))
    }

    pub fn close_pool(&mut self, id: u64) -> Result<()> {
        self.pool(id)?.1.clone().close()?;
        self.pools.remove(&id);
        Ok(())
    }

    pub fn add_thread(&mut self, system: u64, thread: SessionThread) -> u64 {
        let id = self.next();
        self.threads.insert(id, (system, thread));
        id
    }

    pub fn thread(&mut self, id: u64) -> Result<&mut SessionThread> {
        let thread = self.threads.get_mut(&id);
        Ok(&mut thread.ok_or_else(|| missing("thread", id))?.1)
    }

    pub fn close_thread(&mut self, id: u64) -> Result<()> {
        let thread = self.threads.remove(&id);
        let (_, thread) = thread.ok_or_else(|| missing("thread", id))?;
        thread.close()?;
        Ok(())
    }
}

static HANDLES: Mutex<Option<HandleTable>> = Mutex::new(None);

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// The last message of the calling thread.
pub fn message() -> *const c_char {
    MESSAGE.with_borrow(|message| message.as_ptr())
}

/// Runs a call while no other call runs; returns its code. Callbacks run after it, so that they may
/// call the library.
pub fn call(body: impl FnOnce(&mut HandleTable) -> Result<()>) -> c_int {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut state = HANDLES.lock().unwrap_or_else(PoisonError::into_inner);
        let state = state.get_or_insert_with(HandleTable::default);
        let done = body(state);
        (done, state.due.take())
    }));
    let outcome = outcome.map(|(done, due)| {
        for (function, ticket, argument) in due {
            // SAFETY: the caller's, who has given both.
            unsafe { function(ticket.number(), argument.0) };
        }
        done
    });
    let failure = match outcome {
        Ok(Ok(())) => return Code::Ok as c_int,
        Ok(Err(failure)) => failure,
        Err(_) => CallError {
            code: Code::Internal,
            text: "a fault of the library: nothing of this system is to be used any more".into(),
        },
    };
    let text = CString::new(failure.text.replace('\0', "\\0")).unwrap_or_default();
    MESSAGE.with_borrow_mut(|message| *message = text);
    failure.code as c_int
}

/// A text argument.
///
/// # Safety
///
/// NULL, or a text that ends with a 0.
pub unsafe fn text<'a>(at: *const c_char, what: &str) -> Result<&'a str> {
    if at.is_null() {
        return Err(invalid(format!("{what} = NULL: allowed is a text")));
    }
    // SAFETY: it is not NULL, so it is a text.
    let text = unsafe { CStr::from_ptr(at) };
    text.to_str()
        .map_err(|_| invalid(format!("{what}: allowed is UTF-8")))
}

/// A byte array to be read.
///
/// # Safety
///
/// NULL, or valid for reads of `len` bytes.
pub unsafe fn bytes<'a>(at: *const u8, len: usize, what: &str) -> Result<&'a [u8]> {
    match check_bytes(at.is_null(), len, what)? {
        0 => Ok(&[]),
        // SAFETY: it is not NULL, so `len` bytes are there, at most as many as an object may have.
        len => Ok(unsafe { std::slice::from_raw_parts(at, len) }),
    }
}

/// A byte array to be written.
///
/// # Safety
///
/// NULL, or valid for writes of `len` bytes, without other users.
pub unsafe fn bytes_mut<'a>(at: *mut u8, len: usize, what: &str) -> Result<&'a mut [u8]> {
    match check_bytes(at.is_null(), len, what)? {
        0 => Ok(&mut []),
        // SAFETY: as above.
        len => Ok(unsafe { std::slice::from_raw_parts_mut(at, len) }),
    }
}

fn check_bytes(is_null: bool, len: usize, what: &str) -> Result<usize> {
    if len > isize::MAX as usize {
        return Err(invalid(format!(
            "{len} bytes of {what}: no object is as large"
        )));
    }
    if is_null && len > 0 {
        return Err(invalid(format!("{what} = NULL: allowed are {len} bytes")));
    }
    Ok(len)
}

/// Writes a result.
///
/// # Safety
///
/// NULL, or valid for a write of the value.
pub unsafe fn write_out<T>(at: *mut T, what: &str, make: impl FnOnce() -> Result<T>) -> Result<()> {
    if at.is_null() {
        return Err(invalid(format!(
            "{what} = NULL: allowed is where it has room"
        )));
    }
    let value = make()?;
    // SAFETY: it is not NULL, so it is valid for the write.
    unsafe { at.write(value) };
    Ok(())
}

/// Writes an optional result.
///
/// # Safety
///
/// NULL, or valid for a write of the value.
pub unsafe fn write_optional<T>(at: *mut T, value: T) {
    if !at.is_null() {
        // SAFETY: it is not NULL, so it is valid for the write.
        unsafe { at.write(value) };
    }
}
