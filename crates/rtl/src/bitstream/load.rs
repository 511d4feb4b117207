// SPDX-License-Identifier: Apache-2.0

//! Loads bitstreams and runs models of them.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::sync::Arc;

use libloading::Library;
use sim::{Fault, Output};

use crate::error::{Error, Result};
use crate::power_up::InitialValues;

const ABI: u32 = 5;

#[repr(C)]
struct RawPort {
    name: *const c_char,
    data: *mut c_void,
    bits: u32,
    dir: u32,
}

/// `ns_order_t`: a kind and its values. See `order.rs`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RawOrder {
    pub(crate) kind: u32,
    pub(crate) small: u32,
    pub(crate) values: [u64; 5],
}

/// A loaded shared object. Models keep it alive.
pub struct Bitstream {
    ns_new: unsafe extern "C" fn(u32, u64) -> *mut c_void,
    ns_free: unsafe extern "C" fn(*mut c_void),
    ns_ports: unsafe extern "C" fn(*mut c_void, *mut RawPort, usize) -> usize,
    ns_eval: unsafe extern "C" fn(*mut c_void, u64) -> c_int,
    ns_error: unsafe extern "C" fn(*mut c_void) -> *const c_char,
    ns_order_watch: unsafe extern "C" fn(*mut c_void, c_int) -> c_int,
    ns_order_take: unsafe extern "C" fn(*mut c_void, *mut RawOrder, usize) -> usize,
    ns_trace_open: unsafe extern "C" fn(*mut c_void, *const c_char) -> c_int,
    ns_trace_dump: unsafe extern "C" fn(*mut c_void, u64),
    ns_trace_close: unsafe extern "C" fn(*mut c_void) -> c_int,
    build: String,
    _library: Library, // last: the functions above are of no use without it
}

impl Bitstream {
    /// Loads the shared object at `path`.
    pub fn open(path: &Path) -> Result<Arc<Bitstream>> {
        let bad = |what: String| Error::NotABitstream(format!("{}: {what}", path.display()));
        // SAFETY: the initialisers of a bitstream are those of the Verilated runtime, which have no
        // preconditions.
        let library = unsafe { Library::new(path) }.map_err(|e| bad(e.to_string()))?;
        macro_rules! symbol {
            ($name:literal) => {
                // SAFETY: the types are those of ABI version 5, which is checked before any other
                // call.
                *unsafe { library.get(concat!($name, "\0").as_bytes()) }
                    .map_err(|_| bad(format!("not a bitstream, it has no {}", $name)))?
            };
        }
        let abi: unsafe extern "C" fn() -> u32 = symbol!("ns_abi");
        // SAFETY: takes nothing and has no precondition.
        let version = unsafe { abi() };
        if version != ABI {
            return Err(bad(format!(
                "has ABI version {version}, this program needs {ABI}"
            )));
        }
        let build: unsafe extern "C" fn() -> *const c_char = symbol!("ns_build");
        // SAFETY: takes nothing, and gives a constant of the object, which is loaded.
        let build = unsafe { CStr::from_ptr(build()) };
        Ok(Arc::new(Bitstream {
            build: build.to_string_lossy().into_owned(),
            ns_new: symbol!("ns_new"),
            ns_free: symbol!("ns_free"),
            ns_ports: symbol!("ns_ports"),
            ns_eval: symbol!("ns_eval"),
            ns_error: symbol!("ns_error"),
            ns_order_watch: symbol!("ns_order_watch"),
            ns_order_take: symbol!("ns_order_take"),
            ns_trace_open: symbol!("ns_trace_open"),
            ns_trace_dump: symbol!("ns_trace_dump"),
            ns_trace_close: symbol!("ns_trace_close"),
            _library: library,
        }))
    }

    /// What it was built as: "checked" (with assertions) or "running" (without), followed by ",
    /// trained" if it was trained.
    pub fn build(&self) -> &str {
        &self.build
    }
}

/// The direction of a port, seen from the design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortDirection {
    /// Driven from outside.
    Input,
    /// Driven by the design.
    Output,
}

/// A port of a model.
#[derive(Clone, Debug)]
pub struct ModelPort {
    /// Its name in the source.
    pub name: String,
    /// Its width.
    pub bits: u32,
    /// Its direction.
    pub dir: PortDirection,
    data: *mut u8,
    bytes: usize, // storage: 1, 2, 4, 8 or a multiple of 4
}

/// A run of bits of one port, found once by name: the handle for fast access.
///
/// A field belongs to the models of one bitstream (their ports have one order). On another
/// bitstream it may name another port or cause a panic, but never touches memory outside of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    port: u32,
    lo: u32,
    bits: u32,
}

impl Field {
    /// Width of the field.
    pub fn bits(self) -> u32 {
        self.bits
    }
}

/// One instance of a design, with the state of one device.
pub struct VerilatedModel {
    handle: *mut c_void,
    ports: Vec<ModelPort>,
    clock: Field,
    /// The waveform that is being written.
    trace: Option<Output>,
    bitstream: Arc<Bitstream>,
}

// SAFETY: a Verilated model may be used from any thread, one at a time, and every access here takes
// the VerilatedModel.
unsafe impl Send for VerilatedModel {}

impl VerilatedModel {
    /// Makes an instance whose registers, memories and inputs are 0. Nothing has been evaluated
    /// yet.
    pub fn new(bitstream: &Arc<Bitstream>) -> Result<VerilatedModel> {
        VerilatedModel::with_initial_values(bitstream, InitialValues::Zeros)
    }

    /// Makes an instance with these registers and memories.
    pub fn with_initial_values(
        bitstream: &Arc<Bitstream>,
        contents: InitialValues,
    ) -> Result<VerilatedModel> {
        let (registers, seed) = match contents {
            InitialValues::Zeros => (0, 0),
            InitialValues::Ones => (1, 0),
            InitialValues::Random(seed) => (2, seed),
        };
        // SAFETY: takes two numbers, of which the first one is one of those that there are.
        let handle = unsafe { (bitstream.ns_new)(registers, seed) };
        let mut model = VerilatedModel {
            handle,
            ports: Vec::new(),
            clock: Field {
                port: 0,
                lo: 0,
                bits: 1,
            },
            trace: None,
            bitstream: bitstream.clone(),
        };
        if let Some(message) = model.error() {
            return Err(Error::NotABitstream(message));
        }
        // SAFETY: a maximum of 0 writes nothing.
        let count = unsafe { (bitstream.ns_ports)(handle, std::ptr::null_mut(), 0) };
        let mut raw: Vec<RawPort> = Vec::with_capacity(count);
        // SAFETY: there is room for `count` entries, and the call fills all of them.
        unsafe {
            (bitstream.ns_ports)(handle, raw.as_mut_ptr(), count);
            raw.set_len(count);
        }
        model.ports = raw.iter().map(ModelPort::new).collect();
        model.clock = model.field("clk_i")?;
        Ok(model)
    }

    /// All ports of the design.
    pub fn ports(&self) -> &[ModelPort] {
        &self.ports
    }

    /// The whole port `name`.
    pub fn field(&self, name: &str) -> Result<Field> {
        self.lane(name, 0, 1)
    }

    /// Element `lane` of port `name`, which is a concatenation of `lanes` elements of one width,
    /// the first lowest.
    pub fn lane(&self, name: &str, lane: u32, lanes: u32) -> Result<Field> {
        let found = self.ports.iter().position(|port| port.name == name);
        let port = found.ok_or_else(|| Error::Port(format!("the top has no port `{name}`")))?;
        let bits = self.ports[port].bits;
        if lanes == 0 || lane >= lanes || bits % lanes != 0 {
            return Err(Error::Port(format!(
                "port `{name}` has {bits} bits, which is no multiple of {lanes}"
            )));
        }
        let bits = bits / lanes;
        Ok(Field {
            port: port as u32,
            lo: lane * bits,
            bits,
        })
    }

    /// The value of a field of at most 64 bits (of a wider one, its lowest 64 bits).
    #[inline]
    pub fn get(&self, field: Field) -> u64 {
        let port = &self.ports[field.port as usize];
        let mask = mask(field.bits);
        let lo = field.lo & 63;
        let word = (field.lo / 64) as usize * 8;
        let low = port.load(word) >> lo;
        if lo + field.bits.min(64) <= 64 {
            low & mask
        } else {
            (low | port.load(word + 8) << (64 - lo)) & mask
        }
    }

    /// True when a one-bit field is 1.
    #[inline]
    pub fn is(&self, field: Field) -> bool {
        self.get(field) != 0
    }

    /// Drives a field of at most 64 bits; bits of `value` beyond its width are dropped.
    #[inline]
    pub fn set(&mut self, field: Field, value: u64) {
        let port = &mut self.ports[field.port as usize];
        let mask = mask(field.bits);
        let value = value & mask;
        let lo = field.lo & 63;
        let word = (field.lo / 64) as usize * 8;
        port.store(word, port.load(word) & !(mask << lo) | value << lo);
        if lo + field.bits.min(64) > 64 {
            let rest = 64 - lo;
            port.store(
                word + 8,
                port.load(word + 8) & !(mask >> rest) | value >> rest,
            );
        }
    }

    /// Copies the bytes of a field that begins on a byte boundary; at most as many as it has.
    #[inline]
    pub fn read(&self, field: Field, out: &mut [u8]) {
        let port = &self.ports[field.port as usize];
        let from = (field.lo / 8) as usize;
        let length = out.len().min((field.bits / 8) as usize);
        assert!(from + length <= port.bytes && field.lo % 8 == 0);
        // SAFETY: the range was just checked to be in the port's storage, which lives as long as
        // the model.
        unsafe { std::ptr::copy_nonoverlapping(port.data.add(from), out.as_mut_ptr(), length) }
    }

    /// Drives the lowest bytes of a field that begins on a byte boundary.
    #[inline]
    pub fn write(&mut self, field: Field, data: &[u8]) {
        let port = &self.ports[field.port as usize];
        let from = (field.lo / 8) as usize;
        let length = data.len().min((field.bits / 8) as usize);
        assert!(from + length <= port.bytes && field.lo % 8 == 0);
        // SAFETY: as in `read`; whole bytes of the field only, so no bit beyond the port's width is
        // set.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), port.data.add(from), length) }
    }

    /// Settles the design after a change of inputs, at simulated time `ps`. An error is a failed
    /// assertion or another end of the simulation that the design asked for; the model can't go on
    /// after it.
    #[inline]
    pub fn eval(&mut self, ps: u64) -> std::result::Result<(), Fault> {
        // SAFETY: the handle is valid as long as the model lives.
        let result = unsafe { (self.bitstream.ns_eval)(self.handle, ps) };
        if result != 0 {
            let message = self.error().unwrap_or_else(|| "unknown failure".into());
            return Err(Fault::Assertion(message));
        }
        if self.trace.is_some() {
            // SAFETY: as above.
            unsafe { (self.bitstream.ns_trace_dump)(self.handle, ps) };
        }
        Ok(())
    }

    /// Drives `clk_i` and settles the design.
    #[inline]
    pub fn clock(&mut self, level: bool, ps: u64) -> std::result::Result<(), Fault> {
        self.set(self.clock, u64::from(level));
        self.eval(ps)
    }

    /// Asserts the active-low reset `reset` with an edge: what it resets asynchronously may have no
    /// clock to see a level. The second edge is for resets that are derived from this one and a
    /// register that it resets.
    pub fn assert_reset(&mut self, reset: Field, ps: u64) -> std::result::Result<(), Fault> {
        for level in [1, 0, 1, 0] {
            self.set(reset, level);
            self.clock(false, ps)?;
        }
        Ok(())
    }

    /// From now on, or no longer, keeps the order events of the design for
    /// [`VerilatedModel::take_order_events`]. False if the bitstream has none: only a checked build
    /// has them.
    pub(crate) fn watch_order(&mut self, on: bool) -> bool {
        // SAFETY: the handle is valid as long as the model lives.
        unsafe { (self.bitstream.ns_order_watch)(self.handle, c_int::from(on)) == 0 }
    }

    /// Takes the oldest order events; returns how many.
    pub(crate) fn take_order_events(&mut self, out: &mut [RawOrder]) -> usize {
        // SAFETY: the handle is valid, there is room for that many, and no more are written.
        unsafe { (self.bitstream.ns_order_take)(self.handle, out.as_mut_ptr(), out.len()) }
    }

    /// Starts to write waveforms (FST) of everything to `file`, whose old contents are discarded.
    pub fn trace_open(&mut self, file: Output) -> Result<()> {
        // The path may name another file by now. This writes the one that is locked.
        let name = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
        let name = CString::new(name).map_err(|e| Error::io(file.path(), e))?;
        // SAFETY: handle and string are valid during the call.
        if unsafe { (self.bitstream.ns_trace_open)(self.handle, name.as_ptr()) } != 0 {
            return Err(Error::Waveform {
                path: file.path().into(),
                reason: "waveforms need a bitstream that was built with traces",
            });
        }
        self.trace = Some(file);
        Ok(())
    }

    /// Ends the waveforms, if there are any. An error says that the file is incomplete.
    pub fn trace_close(&mut self) -> Result<()> {
        let Some(file) = self.trace.take() else {
            return Ok(());
        };
        // SAFETY: the handle is valid as long as the model lives.
        if unsafe { (self.bitstream.ns_trace_close)(self.handle) } != 0 {
            return Err(Error::Waveform {
                path: file.path().into(),
                reason: "could not be written in full: is the disk full?",
            });
        }
        Ok(())
    }

    fn error(&self) -> Option<String> {
        // SAFETY: the string belongs to the model and is copied at once.
        unsafe {
            let text = (self.bitstream.ns_error)(self.handle);
            (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        }
    }
}

impl Drop for VerilatedModel {
    fn drop(&mut self) {
        if let Err(error) = self.trace_close() {
            // No caller is left to return it to.
            eprintln!("waveform {error}");
        }
        // SAFETY: made by ns_new of the same bitstream, and nothing uses it afterwards.
        unsafe { (self.bitstream.ns_free)(self.handle) }
    }
}

impl ModelPort {
    fn new(raw: &RawPort) -> ModelPort {
        let bytes = match raw.bits {
            0..=8 => 1,
            9..=16 => 2,
            17..=32 => 4,
            33..=64 => 8,
            wide => wide.div_ceil(32) as usize * 4,
        };
        ModelPort {
            // SAFETY: the shim's names are string literals.
            name: unsafe { CStr::from_ptr(raw.name) }
                .to_string_lossy()
                .into_owned(),
            bits: raw.bits,
            dir: if raw.dir == 0 {
                PortDirection::Input
            } else {
                PortDirection::Output
            },
            data: raw.data.cast(),
            bytes,
        }
    }

    /// Up to 8 bytes of the storage from byte `at`; 0 beyond its end.
    #[inline]
    fn load(&self, at: usize) -> u64 {
        let mut value = [0; 8];
        let length = self.bytes.saturating_sub(at).min(8);
        // SAFETY: at most the bytes from `at` to the end of the storage; Verilator stores integers
        // in the host's order, and all hosts supported are little-endian.
        unsafe {
            match length {
                8 => return self.data.add(at).cast::<u64>().read_unaligned(),
                4 => return u64::from(self.data.add(at).cast::<u32>().read_unaligned()),
                1 => return u64::from(*self.data.add(at)),
                0 => return 0,
                _ => std::ptr::copy_nonoverlapping(self.data.add(at), value.as_mut_ptr(), length),
            }
        }
        u64::from_le_bytes(value)
    }

    #[inline]
    fn store(&mut self, at: usize, value: u64) {
        let length = self.bytes.saturating_sub(at).min(8);
        // SAFETY: as in `load`; `VerilatedModel::set` keeps the bits beyond the port's width as
        // they were, which is 0.
        unsafe {
            match length {
                8 => self.data.add(at).cast::<u64>().write_unaligned(value),
                4 => self
                    .data
                    .add(at)
                    .cast::<u32>()
                    .write_unaligned(value as u32),
                1 => *self.data.add(at) = value as u8,
                0 => {}
                _ => std::ptr::copy_nonoverlapping(
                    value.to_le_bytes().as_ptr(),
                    self.data.add(at),
                    length,
                ),
            }
        }
    }
}

#[cfg(not(target_endian = "little"))]
compile_error!("models are accessed through their bytes, which needs a little-endian host");

fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits.clamp(1, 64))
}
