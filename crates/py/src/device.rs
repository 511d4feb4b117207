// SPDX-License-Identifier: Apache-2.0

//! A running device with its host and driver.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use design::engine::{EngineInstance, Manifest};
use device::{Model, RtlOptions};
use driver::launch::EngineRegisters;
use driver::page::{CommandPage, SubmittedCommand};
use driver::replay::{self, TimedCommand};
use driver::window::{self, WindowStream};
use driver::workload::{self, BlockPattern, BufferLayout, IoJob, PeerMemory, TransferShape};
use driver::Qos;
use driver::{
    split_ranges, BlockRange, DriverConfig, Erase, Host, IoCommand, Latencies, Priority, SimHost,
    Weights,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{json, Value};
use sim::{Bar, Media, Time, Tracer};
use spec::nvm_delay::Registers;

use crate::arguments::{
    span_ns, whole_block, whole_range, within, within_namespace, zeroed, END_OF_TIME,
};
use crate::build::{factory, find_profile, memory_of, model_of, purpose, Design};
use crate::document::Document;
use crate::error::raise;
use crate::process::{alone, ProcessOwned};
use crate::progress::{in_pieces, ProgressReporter};
use crate::report;
use crate::session::{Session, SessionState};
use crate::single::Single;
use crate::trace::{create, Events};

/// A simulated device, its link and host, and the driver's queues. All times are simulated. Only
/// one call at a time is allowed: a second one, from a thread or from a progress callback, is an
/// error. Any call in a forked process is an error as well.
#[pyclass(frozen, module = "nearside._native")]
pub struct Device {
    state: ProcessOwned<Mutex<SessionState>>,
    design: design::Design,
    engines: Vec<design::engine::EngineInstance>,
    model: Model,
}

impl Device {
    fn lock(&self) -> PyResult<MutexGuard<'_, SessionState>> {
        self.state.check()?;
        alone(&self.state, "device")
    }

    /// An engine of the design.
    fn plugged(&self, name: &str) -> PyResult<&EngineInstance> {
        find_engine(&self.design, &self.engines, name)
    }

    /// Registers of an engine, and its manifest.
    fn engine(&self, name: &str) -> PyResult<(EngineRegisters, &Manifest)> {
        let engine = self.plugged(name)?;
        Ok((registers_of(engine), &engine.manifest))
    }

    /// Address of an engine's command page.
    fn page(&self, name: &str) -> PyResult<u64> {
        let none = || {
            raise(format!(
                "engine = {name:?}: it has no command page (`page` in its engine.toml)"
            ))
        };
        self.plugged(name)?.page.ok_or_else(none)
    }
}

/// The engine of this name.
fn find_engine<'a>(
    design: &design::Design,
    engines: &'a [EngineInstance],
    name: &str,
) -> PyResult<&'a EngineInstance> {
    let engine = engines.iter().find(|e| e.engine.name == name);
    engine.ok_or_else(|| {
        let names: Vec<&str> = engines.iter().map(|e| e.engine.name.as_str()).collect();
        let there = if names.is_empty() {
            "none".into()
        } else {
            names.join(", ")
        };
        raise(format!(
            "engine = {name:?}: the design {} has {there}",
            design.name
        ))
    })
}

/// The registers of an engine.
fn registers_of(engine: &EngineInstance) -> EngineRegisters {
    EngineRegisters {
        base: engine.offset,
        size: engine.manifest.registers.0,
    }
}

/// The description of engines.
fn engines_of(engines: &[EngineInstance]) -> Document {
    let engines = engines.iter().map(|e| {
        json!({
            "name": e.engine.name, "kind": e.manifest.name, "instance": e.instance,
            "offset": e.offset,
            "bytes": e.manifest.registers.0, "page": e.page, "arguments": e.manifest.arguments,
            "optional": e.manifest.optional, "outputs": e.manifest.outputs,
            "results": e.manifest.results, "commands": e.commands,
            "namespaces": [e.namespaces.start(), e.namespaces.end()],
            "media": [e.media.start, e.media.end], "local": e.local,
        })
    });
    Document(engines.collect())
}

/// Names of a channel's masters, in the order of their numbers.
fn masters_of(engines: &[EngineInstance]) -> Vec<String> {
    let engines = engines.iter().map(|e| e.engine.name.clone());
    ["pm", "nvme"]
        .map(String::from)
        .into_iter()
        .chain(engines)
        .collect()
}

/// Sets the values of a master that are given. The others stay.
fn set_qos(
    host: &mut SimHost,
    qos: Qos,
    names: &[String],
    master: &str,
    [reads, writes, weight, beside]: [Option<u32>; 4],
) -> PyResult<()> {
    let Some(n) = names.iter().position(|name| name == master) else {
        let names = names.join(", ");
        return Err(raise(format!("master = {master:?}: allowed are {names}")));
    };
    let mut values = qos.get(host, n as u32).map_err(raise)?;
    for (place, value) in [
        (&mut values.reads, reads),
        (&mut values.writes, writes),
        (&mut values.weight, weight),
        (&mut values.beside, beside),
    ] {
        *place = value.unwrap_or(*place);
    }
    qos.set(host, n as u32, values).map_err(raise)
}

/// Waits for the end of an engine. Returns its return value, or `None` after the timeout.
fn wait_for_engine(
    py: Python<'_>,
    host: &mut SimHost,
    registers: EngineRegisters,
    timeout: Time,
) -> PyResult<Option<u32>> {
    let mut reporter = ProgressReporter::new(None);
    let outcome = py.detach(|| {
        let deadline = host.now() + timeout;
        let mut should_continue = || reporter.report(0, 1);
        registers.wait(host, ENGINE_POLL, deadline, &mut should_continue)
    });
    reporter.finish(outcome)
}

/// The media of a design.
fn media_of(design: &design::Design) -> PyResult<Media> {
    let bytes = design.media.bytes.0;
    match &design.media.file {
        Some(path) => Media::file(path, bytes),
        None => Media::memory(bytes),
    }
    .map_err(raise)
}

/// Checks the number of an engine's arguments.
fn check_arguments(name: &str, manifest: &Manifest, arguments: &[u64]) -> PyResult<()> {
    let (count, given) = (manifest.arguments.len(), arguments.len());
    if given == count {
        return Ok(());
    }
    Err(raise(format!(
        "arguments = {given} of them: engine {name} takes {count}"
    )))
}

/// Refuses a timeout that is too long. Checked before an engine is started.
#[pyfunction]
pub fn check_timeout(timeout_us: u64) -> PyResult<()> {
    timeout(timeout_us).map(drop)
}

fn timeout(timeout_us: u64) -> PyResult<Time> {
    if timeout_us > MOST_TIMEOUT_US {
        return Err(raise(format!(
            "timeout_us = {timeout_us}: allowed are 0 to {MOST_TIMEOUT_US}"
        )));
    }
    Ok(Time::us(timeout_us))
}

/// Most further devices of a host. There are 16 in all, each of which has to be built, started and
/// simulated.
const MOST_PEERS: usize = 15;
/// Longest timeout of a command.
const MOST_TIMEOUT_US: u64 = 1_000_000_000;
/// Longest pause before a load.
const MOST_PAUSE_NS: u64 = 1_000_000;
/// Bytes that one command deallocates, so that Ctrl-C takes effect between commands.
const DEALLOCATED: u64 = 256 << 20;

/// Bytes of loads and stores of the PM window between two checks for Ctrl-C. No access crosses this
/// boundary.
const PM_PIECE: u64 = 64 << 10;
/// Bytes of the media that the device processes between two checks for Ctrl-C.
const MEDIA_PIECE: u64 = 4 << 20;
impl Device {
    /// The masters of a memory channel.
    fn masters(&self) -> Vec<String> {
        masters_of(&self.engines)
    }

    fn qos(&self, session: &Session) -> PyResult<Qos> {
        session.inventory.qos().ok_or_else(|| raise(NO_QOS))
    }
}

/// The error of a device without that block.
const NO_QOS: &str = "the device has no block of quality of service";
/// Bytes of a load.
const LINE: u64 = 64;
/// Simulated time between two checks whether an engine has ended.
const ENGINE_POLL: Time = Time::us(1);
/// Simulated time of a command between two checks for Ctrl-C.
const COMMAND_PIECE: Time = Time::us(20);
/// Least simulated time between two checks for Ctrl-C.
const REST_PIECE: Time = Time::us(20);

#[pymethods]
impl Device {
    /// Compiles the design if necessary, powers the device, starts the driver, and sets the
    /// design's media profile. The driver's queues have `queue_entries` entries, by default as many
    /// as the device allows. `trace` is (path, from_ns, to_ns): an FST waveform of that window of
    /// simulated time. `weights`, (high, medium, low), selects weighted round robin; queues then
    /// have medium priority. Without `skip_idle`, idle cycles are evaluated as well. `commands` is
    /// the file of a trace of all commands, from the driver's first one on; see `trace_start`.
    /// `model` is "rtl" or "fast"; the default is the environment's `NEARSIDE_MODEL`, or "rtl".
    ///
    /// `peers` are other devices of the same host, each a design and a model. They have power and
    /// their design's media profile, but no driver. Commands of this device may have their data in
    /// a peer's PM window.
    #[new]
    #[pyo3(signature = (design, progress=None, timeout_us=100_000, queue_entries=None, trace=None,
        skip_idle=true,
        commands=None, weights=None, model=None, peers=Vec::new()))]
    #[allow(clippy::too_many_arguments)] // keyword arguments in Python
    fn new(
        py: Python<'_>,
        design: &Design,
        progress: Option<Py<PyAny>>,
        timeout_us: u64,
        queue_entries: Option<u32>,
        trace: Option<(PathBuf, u64, u64)>,
        skip_idle: bool,
        commands: Option<PathBuf>,
        weights: Option<(u16, u16, u16)>,
        model: Option<&str>,
        peers: Vec<(PyRef<'_, Design>, Option<String>)>,
    ) -> PyResult<Device> {
        if peers.len() > MOST_PEERS {
            let count = peers.len();
            return Err(raise(format!(
                "peers = {count} devices: allowed are at most {MOST_PEERS}"
            )));
        }
        let design = design.inner.clone();
        let model = model_of(model)?;
        let engines = design.engines().map_err(raise)?;
        let trace = match trace {
            Some((_, from, to)) if from >= to => {
                let text =
                    format!("trace = from {from} to {to} ns: the end must come after the start");
                return Err(raise(text));
            }
            Some((path, from, to)) => Some(rtl::TraceWindow {
                path,
                from: span_ns("trace", from)?,
                to: span_ns("trace", to)?,
            }),
            None => None,
        };
        if !(1..=MOST_TIMEOUT_US).contains(&timeout_us) {
            return Err(raise(format!(
                "timeout_us = {timeout_us}: allowed are 1 to {MOST_TIMEOUT_US}"
            )));
        }
        if let Some((high, medium, low)) = weights {
            if [high, medium, low]
                .iter()
                .any(|weight| !(1..=256).contains(weight))
            {
                let text =
                    format!("weights = ({high}, {medium}, {low}): allowed are 1 to 256 each");
                return Err(raise(text));
            }
        }
        let profile = design::Profile::find(&design.media.profile).map_err(raise)?;
        let driver = DriverConfig {
            io_queues: design.nvme.io_queues as u16,
            io_entries: queue_entries.unwrap_or(design.nvme.queue_entries),
            command_timeout: Time::us(timeout_us),
            weights: weights.map(|(high, medium, low)| Weights { high, medium, low }),
            ..DriverConfig::default()
        };
        let file = commands.map(|path| create(&path)).transpose()?;
        let options = RtlOptions {
            purpose: purpose(),
            trace,
            skip_idle,
            ..RtlOptions::default()
        };
        // Checked before the compilation, which may take minutes.
        device::check(&design, model).map_err(raise)?;
        let media = media_of(&design)?;
        let mut wanted = Vec::new();
        for (peer, model) in &peers {
            let model = model_of(model.as_deref())?;
            device::check(&peer.inner, model).map_err(raise)?;
            let profile = find_profile(&peer.inner.media.profile)?;
            wanted.push((peer.inner.clone(), model, media_of(&peer.inner)?, profile));
        }
        let reporter = progress.as_ref().map(|p| p.clone_ref(py));
        let factory = factory(py, &design, model, &options, reporter)?;
        let (mut others, mut profiles) = (Vec::new(), Vec::new());
        for (design, model, media, profile) in wanted {
            let options = RtlOptions {
                trace: None,
                ..options.clone()
            };
            let reporter = progress.as_ref().map(|p| p.clone_ref(py));
            let factory = self::factory(py, &design, model, &options, reporter)?;
            others.push((factory, media));
            profiles.push(profile);
        }
        let tracer = file.clone().map(|file| Tracer::new(file, false));
        let session = py.detach(|| Session::start(driver, factory, media, tracer, others));
        py.check_signals()?;
        let session = session?;
        let session = Some(session);
        let trace = file;
        let device = Device {
            state: ProcessOwned::new(SessionState { session, trace }.into()),
            design,
            engines,
            model,
        };
        device.set_on(&profile, None, driver::STORAGE)?;
        if let Some(memory) = device.design.local() {
            let profile = design::Profile::find(&memory.profile).map_err(raise)?;
            device.set_on(&profile, None, &memory.name)?;
        }
        for (number, profile) in profiles.iter().enumerate() {
            device.set_on_peer(number, profile)?;
        }
        Ok(device)
    }

    /// Sets the priority of I/O queue `queue` (from 0), which is created again.
    fn set_priority(&self, py: Python<'_>, queue: usize, priority: &str) -> PyResult<()> {
        let priority = match priority {
            "urgent" => Priority::Urgent,
            "high" => Priority::High,
            "medium" => Priority::Medium,
            "low" => Priority::Low,
            other => {
                let text = format!(
                    "priority = {other:?}: allowed are \"urgent\", \"high\", \"medium\", \"low\""
                );
                return Err(PyValueError::new_err(text));
            }
        };
        let mut state = self.lock()?;
        let session = state.session()?;
        py.detach(|| session.controller.set_priority(queue, priority))
            .map_err(raise)
    }

    /// Simulated time now, in ns.
    #[getter]
    fn now_ns(&self) -> PyResult<f64> {
        Ok(self.lock()?.session()?.controller.now().as_ns())
    }

    /// Bytes of the namespace in use.
    #[getter]
    fn namespace_bytes(&self) -> PyResult<u64> {
        Ok(self.lock()?.session()?.controller.namespace().bytes())
    }

    /// Bytes of a logical block.
    #[getter]
    fn block_bytes(&self) -> PyResult<u32> {
        Ok(self.lock()?.session()?.controller.namespace().block_bytes)
    }

    /// The model: "rtl" or "fast".
    #[getter]
    fn model(&self) -> &'static str {
        self.model.name()
    }

    /// The build of its bitstream: "checked" has assertions, "running" has none; either may be ",
    /// trained". "fast" without a bitstream.
    #[getter]
    fn build(&self) -> PyResult<String> {
        Ok(self.lock()?.session()?.build.clone())
    }

    /// The device's description.
    fn info(&self) -> PyResult<Document> {
        let mut state = self.lock()?;
        let s = state.session()?;
        let (id, ns, cap) = (
            s.controller.identity(),
            s.controller.namespace(),
            s.controller.capabilities(),
        );
        let namespaces = s.controller.namespaces().iter();
        let namespaces = namespaces.map(|(nsid, ns)| report::namespace(*nsid, ns));
        let namespaces: Vec<Value> = namespaces.collect();
        Ok(Document(json!({
            "controller": {
                "model": id.model, "serial": id.serial, "firmware": id.firmware,
                "subnqn": id.subnqn, "vendor_id": id.vendor_id,
                "nvme_version": s.controller.version().to_string(),
                "controller_id": id.controller_id, "max_transfer_bytes": id.max_transfer,
                "abort_limit": id.abort_limit, "async_event_limit": id.async_event_limit,
                "namespaces": id.namespaces, "volatile_write_cache": id.volatile_write_cache,
            },
            "capabilities": {
                "max_queue_entries": cap.max_queue_entries(),
                "doorbell_stride": cap.doorbell_stride(),
                "contiguous_queues_required": cap.contiguous_queues_required(),
                "timeout_ms": 500 * cap.timeout_500ms(),
                "persistent_memory_region": cap.persistent_memory_region(),
            },
            "namespace": report::namespace(s.controller.nsid(), ns),
            "namespaces": namespaces,
            "queues": {"io_queues": s.controller.io_queues(), "entries": s.controller.io_entries()},
            "device": report::inventory(&s.inventory),
        })))
    }

    /// Writes `data` from byte `offset` on, padded with zeros to whole blocks. Returns the report.
    #[pyo3(signature = (data, offset=0, queues=4, depth=8, chunk=16384, progress=None))]
    #[allow(clippy::too_many_arguments)] // keyword arguments in Python
    fn write(
        &self,
        py: Python<'_>,
        data: &[u8],
        offset: u64,
        queues: usize,
        depth: usize,
        chunk: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Document> {
        let mut state = self.lock()?;
        let session = state.session()?;
        let block = session.controller.namespace().block_bytes as usize;
        let lba = whole_block("offset", offset, block)?;
        within_namespace(session.controller.namespace(), offset, data.len() as u64)?;
        let mut padded = data.to_vec();
        padded.resize(data.len().next_multiple_of(block), 0);
        let shape = TransferShape {
            queues,
            depth,
            chunk,
        };
        let mut reporter = ProgressReporter::new(progress);
        let outcome = py.detach(|| {
            workload::write_all(&mut session.controller, lba, &padded, shape, &mut |d, t| {
                reporter.report(d, t)
            })
        });
        Ok(Document(report::report(&reporter.finish(outcome)?)))
    }

    /// Reads `length` bytes from byte `offset` on. Returns the data, and the report.
    #[pyo3(signature = (length, offset=0, queues=4, depth=8, chunk=16384, progress=None))]
    #[allow(clippy::too_many_arguments)] // keyword arguments in Python
    fn read(
        &self,
        py: Python<'_>,
        length: usize,
        offset: u64,
        queues: usize,
        depth: usize,
        chunk: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Vec<u8>, Document)> {
        let mut state = self.lock()?;
        let session = state.session()?;
        let block = session.controller.namespace().block_bytes as usize;
        let lba = whole_block("offset", offset, block)?;
        within_namespace(session.controller.namespace(), offset, length as u64)?;
        let mut data = zeroed(length.next_multiple_of(block))?;
        let shape = TransferShape {
            queues,
            depth,
            chunk,
        };
        let mut reporter = ProgressReporter::new(progress);
        let outcome = py.detach(|| {
            workload::read_all(
                &mut session.controller,
                lba,
                &mut data,
                shape,
                &mut |d, t| reporter.report(d, t),
            )
        });
        let report = reporter.finish(outcome)?;
        data.truncate(length);
        Ok((data, Document(report::report(&report))))
    }

    /// Runs a job, and returns its report.
    ///
    /// `switch` is (number of commands, media profile as in `delay_set`): the timing changes under
    /// load after these commands, and the report has the latencies before and after. With
    /// `loads_every`, a 64-byte load of a random line of the PM window follows each time that this
    /// number of commands has completed; `loads` reports their latency. With `peer`, data are in
    /// the PM window of that other device, from its byte 0 on.
    #[pyo3(signature = (*, read_percent=100, pattern="random", min_bytes=4096, max_bytes=None,
        queues=10, depth=8,
        commands=4000, start=0, span=0, scattered=false, list_offset=0, verify=false, seed=1,
        switch=None, loads_every=0,
        peer=None, progress=None))]
    #[allow(clippy::too_many_arguments)] // keyword arguments in Python
    fn workload(
        &self,
        py: Python<'_>,
        read_percent: u32,
        pattern: &str,
        min_bytes: u64,
        max_bytes: Option<u64>,
        queues: usize,
        depth: usize,
        commands: u64,
        start: u64,
        span: u64,
        scattered: bool,
        list_offset: u64,
        verify: bool,
        seed: u64,
        switch: Option<(u64, String)>,
        loads_every: u64,
        peer: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Document> {
        let pattern = match pattern {
            "random" => BlockPattern::Random,
            "sequential" => BlockPattern::Sequential,
            other => {
                let text = format!("pattern = {other:?}: allowed are \"random\", \"sequential\"");
                return Err(PyValueError::new_err(text));
            }
        };
        let mut job = IoJob {
            read_percent,
            pattern,
            min_bytes,
            max_bytes: max_bytes.unwrap_or(min_bytes),
            queues,
            depth,
            commands,
            start,
            span,
            layout: if scattered {
                BufferLayout::Scattered
            } else {
                BufferLayout::Aligned
            },
            peer: None,
            verify,
            seed,
        };
        let switch = match switch {
            Some((after, name)) => {
                let profile = find_profile(&name)?;
                Some((after, self.registers(&profile, driver::STORAGE)?))
            }
            None => None,
        };
        let mut state = self.lock()?;
        let session = state.session()?;
        if let Some(number) = peer {
            let peer = session.peer(number)?;
            let (slot, bytes) = (peer.slot, peer.design.media.bytes.0);
            let base = session.host().system().window(slot, Bar::Pm);
            let base = base.ok_or_else(|| raise(format!("peer = {number}: it has no window")))?;
            job.peer = Some(PeerMemory { base, bytes });
        }
        session.controller.set_list_offset(list_offset);
        let delays = session.inventory.delays();
        let mut reporter = ProgressReporter::new(progress);
        let mut loads = Latencies::default();
        let mut places = sim::Random::new(seed);
        let lines = self.design.media.bytes.0 / LINE;
        let outcome = py.detach(|| {
            let mut hook = |host: &mut SimHost, done: u64| {
                if loads_every != 0 && done % loads_every == 0 {
                    host.run_on(queues);
                    let begin = host.now();
                    host.read(Bar::Pm, LINE * places.below(lines), &mut [0; LINE as usize])?;
                    loads.record(host.now() - begin);
                }
                match &switch {
                    Some((after, registers)) if done == *after => delays
                        .iter()
                        .zip(registers)
                        .try_for_each(|(delay, registers)| delay.set(host, registers)),
                    _ => Ok(()),
                }
            };
            workload::run_job_with(&mut session.controller, &job, &mut hook, &mut |d, t| {
                reporter.report(d, t)
            })
        });
        session.controller.set_list_offset(0);
        let outcome = reporter.finish(outcome)?;
        let mut value = report::outcome(&outcome);
        if loads_every != 0 {
            value["loads"] = report::latency(&loads);
        }
        if let Some((after, _)) = switch {
            // Commands in flight at the change belong to neither side.
            let flight = queues * depth;
            let at = usize::try_from(after).unwrap_or(usize::MAX);
            let mut all = outcome.report.read.clone();
            all.merge(&outcome.report.write);
            value["before"] = report::latency(&all.subset(flight.min(at)..at));
            value["after"] = report::latency(&all.subset(at.saturating_add(flight)..usize::MAX));
        }
        Ok(Document(value))
    }

    /// Issues recorded commands at their times, on the first I/O queue, and returns a report.
    ///
    /// A command is (time in ps from the first one's, "read", "write" or "flush", LBA, blocks), in
    /// the order of time. It does not wait for those before it, unless the queue is full; `late_ns`
    /// is the longest delay for that. All share one buffer, so the data are lost.
    #[pyo3(signature = (commands, *, progress=None))]
    fn replay(
        &self,
        py: Python<'_>,
        commands: Vec<(u64, String, u64, u32)>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Document> {
        let timed: PyResult<Vec<TimedCommand>> = commands
            .into_iter()
            .map(|(at, kind, lba, blocks)| {
                let io = match kind.as_str() {
                    "read" => IoCommand::Read { lba, blocks },
                    "write" => IoCommand::Write { lba, blocks },
                    "flush" => IoCommand::Flush,
                    other => {
                        let allowed = "allowed are \"read\", \"write\", \"flush\"";
                        let text = format!("command {other:?}: {allowed}");
                        return Err(PyValueError::new_err(text));
                    }
                };
                Ok(TimedCommand { at: Time(at), io })
            })
            .collect();
        let timed = timed?;
        let mut state = self.lock()?;
        let session = state.session()?;
        let mut reporter = ProgressReporter::new(progress);
        let outcome = py.detach(|| {
            replay::replay(&mut session.controller, &timed, &mut |d, t| {
                reporter.report(d, t)
            })
        });
        let outcome = reporter.finish(outcome)?;
        let mut value = report::report(&outcome.report);
        value["late_ns"] = json!(outcome.late.as_ns());
        Ok(Document(value))
    }

    /// The timing of each channel.
    fn delay_get(&self) -> PyResult<Document> {
        let mut state = self.lock()?;
        let session = state.session()?;
        let clock = session.inventory.clock;
        let memories = session.inventory.memories();
        let mut out = Vec::new();
        for (channel, delay) in (0..).zip(session.inventory.delays()) {
            let mut before = memories.iter().rev();
            let Some(memory) = before.find(|m| m.first_channel <= channel) else {
                continue;
            };
            let registers = delay.get(session.controller.host_mut()).map_err(raise)?;
            let commits = delay
                .commits(session.controller.host_mut())
                .map_err(raise)?;
            out.push(report::timing(&registers, clock, memory, commits));
        }
        Ok(Document(out.into()))
    }

    /// Sets the timing of all channels of a memory, or of one, to a media profile (name, path or
    /// TOML text).
    #[pyo3(signature = (profile, channel=None, memory=driver::STORAGE))]
    fn delay_set(&self, profile: &str, channel: Option<usize>, memory: &str) -> PyResult<()> {
        let profile = find_profile(profile)?;
        self.set_on(&profile, channel, memory)
    }

    /// Sets plain latencies in ns for all channels of a memory, or for one.
    #[pyo3(signature = (read_ns, write_ns, channel=None, memory=driver::STORAGE))]
    fn delay_set_latency(
        &self,
        read_ns: f64,
        write_ns: f64,
        channel: Option<usize>,
        memory: &str,
    ) -> PyResult<()> {
        let profile = design::Profile::latencies("latencies", read_ns, write_ns);
        profile.validate().map_err(raise)?;
        self.set_on(&profile, channel, memory)
    }

    /// Counters of each channel's timing emulator.
    #[pyo3(signature = (clear=false))]
    fn delay_counters(&self, clear: bool) -> PyResult<Document> {
        let mut state = self.lock()?;
        let session = state.session()?;
        let clock = session.inventory.clock;
        let mut out = Vec::new();
        for delay in session.inventory.delays() {
            let [read, write] = delay
                .counters(session.controller.host_mut(), clear)
                .map_err(raise)?;
            out.push(json!({
                "read": report::delay_counters(&read, clock),
                "write": report::delay_counters(&write, clock),
            }));
        }
        Ok(Document(out.into()))
    }

    /// Loads from the PM window.
    fn pm_read(&self, py: Python<'_>, offset: u64, length: usize) -> PyResult<Vec<u8>> {
        let window = self.design.window_end();
        let mut state = self.lock()?;
        let session = state.session()?;
        within("the PM window", window, offset, length as u64)?;
        let mut data = zeroed(length)?;
        let (skew, total) = (offset % PM_PIECE, length as u64);
        in_pieces(py, skew, total, PM_PIECE, |at, here| {
            let part = &mut data[at as usize..(at + here) as usize];
            session.host().read(Bar::Pm, offset + at, part)
        })?;
        Ok(data)
    }

    /// Stores to the PM window. Stores are posted: a load from the window waits for them.
    fn pm_write(&self, py: Python<'_>, offset: u64, data: &[u8]) -> PyResult<()> {
        let window = self.design.window_end();
        let mut state = self.lock()?;
        let session = state.session()?;
        within("the PM window", window, offset, data.len() as u64)?;
        let data = data.to_vec();
        in_pieces(py, offset, data.len() as u64, PM_PIECE, |at, here| {
            let part = &data[at as usize..(at + here) as usize];
            session.host().write(Bar::Pm, offset + at, part)
        })
    }

    /// Loads from a peer's PM window.
    fn peer_read(
        &self,
        py: Python<'_>,
        peer: usize,
        offset: u64,
        length: usize,
    ) -> PyResult<Vec<u8>> {
        let mut state = self.lock()?;
        let session = state.session()?;
        let window = session.peer(peer)?.design.window_end();
        within("the PM window", window, offset, length as u64)?;
        let slot = session.peer(peer)?.slot;
        let mut data = zeroed(length)?;
        let (skew, total) = (offset % PM_PIECE, length as u64);
        in_pieces(py, skew, total, PM_PIECE, |at, here| {
            let part = &mut data[at as usize..(at + here) as usize];
            let load = |host: &mut SimHost| host.read(Bar::Pm, offset + at, part);
            session.host().with_device(slot, load)
        })?;
        Ok(data)
    }

    /// Stores to a peer's PM window. Stores are posted: a load from the window waits for them.
    fn peer_write(&self, py: Python<'_>, peer: usize, offset: u64, data: &[u8]) -> PyResult<()> {
        let mut state = self.lock()?;
        let session = state.session()?;
        let window = session.peer(peer)?.design.window_end();
        within("the PM window", window, offset, data.len() as u64)?;
        let slot = session.peer(peer)?.slot;
        let data = data.to_vec();
        in_pieces(py, offset, data.len() as u64, PM_PIECE, |at, here| {
            let part = &data[at as usize..(at + here) as usize];
            let store = |host: &mut SimHost| host.write(Bar::Pm, offset + at, part);
            session.host().with_device(slot, store)
        })
    }

    /// Sets the arguments of an engine of a peer and starts it.
    fn peer_engine_start(&self, peer: usize, name: &str, arguments: Vec<u64>) -> PyResult<()> {
        let mut state = self.lock()?;
        let session = state.session()?;
        let other = session.peer(peer)?;
        let engine = find_engine(&other.design, &other.engines, name)?;
        check_arguments(name, &engine.manifest, &arguments)?;
        let registers = registers_of(engine);
        let start = |host: &mut SimHost| registers.start(host, &arguments);
        session.with_peer(peer, start)?.map_err(raise)
    }

    /// Waits for the end of an engine of a peer, as `engine_wait`.
    #[pyo3(signature = (peer, name, timeout_us=1_000_000))]
    fn peer_engine_wait(
        &self,
        py: Python<'_>,
        peer: usize,
        name: &str,
        timeout_us: u64,
    ) -> PyResult<Option<u32>> {
        let mut state = self.lock()?;
        let timeout = timeout(timeout_us)?;
        let session = state.session()?;
        let other = session.peer(peer)?;
        let registers = registers_of(find_engine(&other.design, &other.engines, name)?);
        let wait = |host: &mut SimHost| wait_for_engine(py, host, registers, timeout);
        session.with_peer(peer, wait)?
    }

    /// Sets the given values of a peer's master, as `qos_set`.
    #[pyo3(signature = (peer, master, reads=None, writes=None, weight=None, beside=None))]
    fn peer_qos_set(
        &self,
        peer: usize,
        master: &str,
        reads: Option<u32>,
        writes: Option<u32>,
        weight: Option<u32>,
        beside: Option<u32>,
    ) -> PyResult<()> {
        let mut state = self.lock()?;
        let session = state.session()?;
        let other = session.peer(peer)?;
        let names = masters_of(&other.engines);
        let qos = other.inventory.qos();
        let qos = qos.ok_or_else(|| raise(NO_QOS))?;
        let values = [reads, writes, weight, beside];
        let set = |host: &mut SimHost| set_qos(host, qos, &names, master, values);
        session.with_peer(peer, set)?
    }

    /// Sets the timing of all channels of a peer's storage to a media profile (name, path or TOML
    /// text).
    fn peer_delay_set(&self, peer: usize, profile: &str) -> PyResult<()> {
        self.set_on_peer(peer, &find_profile(profile)?)
    }

    /// Runs a stream of loads ("load") or stores ("store") of the PM window. Returns the result.
    /// Before each load a random time passes, up to `pause_ns`. `pattern` is "sequential",
    /// "random", or "chain". A chain has one load in flight, each at the address that the previous
    /// one has read; the addresses are stored first.
    #[pyo3(signature = (kind, *, bytes=64, in_flight=64, count=4000, start=0, span=0,
        pattern="random", seed=1, verify=false,
        pause_ns=0, progress=None))]
    #[allow(clippy::too_many_arguments)] // keyword arguments in Python
    fn pm_stream(
        &self,
        py: Python<'_>,
        kind: &str,
        bytes: usize,
        in_flight: usize,
        count: u64,
        start: u64,
        span: u64,
        pattern: &str,
        seed: u64,
        verify: bool,
        pause_ns: u64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Document> {
        let store = match kind {
            "load" => false,
            "store" => true,
            _ => {
                let text = format!("kind = {kind:?}: allowed are \"load\", \"store\"");
                return Err(PyValueError::new_err(text));
            }
        };
        let pattern = match pattern {
            "sequential" => window::WindowPattern::Sequential,
            "random" => window::WindowPattern::Random,
            "chain" => window::WindowPattern::Chain,
            _ => {
                let allowed = "allowed are \"sequential\", \"random\", \"chain\"";
                return Err(PyValueError::new_err(format!(
                    "pattern = {pattern:?}: {allowed}"
                )));
            }
        };
        let window = self.design.window_end();
        let span = match (span, self.design.media.bytes.0) {
            (0, media) if start < media => media - start,
            (0, _) => window.saturating_sub(start),
            (span, _) => span,
        };
        if pause_ns > MOST_PAUSE_NS {
            return Err(raise(format!(
                "pause_ns = {pause_ns}: allowed are 0 to {MOST_PAUSE_NS}"
            )));
        }
        let mut state = self.lock()?;
        let session = state.session()?;
        within("the PM window", window, start, span)?;
        let stream = WindowStream {
            store,
            bytes,
            in_flight,
            pause: Time::ns(pause_ns),
            count,
            start,
            span,
            pattern,
            seed,
            verify,
        };
        let mut reporter = ProgressReporter::new(progress);
        let host = session.host();
        let device = host.device();
        let before = host.link_stats();
        let link = host.system().link(device);
        let rate = link.map_or(0.0, |link| link.config().bytes_per_ns());
        let outcome = py.detach(|| {
            window::run(host.system_mut(), device, &stream, &mut |d, t| {
                reporter.report(d, t)
            })
        });
        let streamed = reporter.finish(outcome)?;
        let after = session.host().link_stats();
        let carried = |a: sim::DirectionStats, b: sim::DirectionStats| {
            json!({
                "tlps": b.tlps - a.tlps, "payload": b.payload - a.payload,
                "wire": b.wire - a.wire,
            })
        };
        Ok(Document(json!({
            "time": "simulated", "bytes": streamed.bytes, "elapsed_ns": streamed.elapsed.as_ns(),
            "bandwidth_gb_s": streamed.gb_s(), "latency": report::latency(&streamed.latency),
            "link": {
                "gb_s": rate,
                "up": carried(before.up, after.up), "down": carried(before.down, after.down),
            },
        })))
    }

    /// Selects the namespace of later commands.
    fn select_namespace(&self, nsid: u32) -> PyResult<()> {
        let mut state = self.lock()?;
        let session = state.session()?;
        session.controller.select_namespace(nsid).map_err(raise)
    }

    /// Format NVM of a namespace, of the one in use, or of all (4294967295); `erase` is "none",
    /// "user-data" or "cryptographic".
    #[pyo3(signature = (nsid=None, erase="none"))]
    fn format(&self, py: Python<'_>, nsid: Option<u32>, erase: &str) -> PyResult<()> {
        let erase = match erase {
            "none" => Erase::None,
            "user-data" => Erase::UserData,
            "cryptographic" => Erase::Cryptographic,
            other => {
                let allowed = "allowed are \"none\", \"user-data\", \"cryptographic\"";
                return Err(PyValueError::new_err(format!(
                    "erase = {other:?}: {allowed}"
                )));
            }
        };
        let mut state = self.lock()?;
        let session = state.session()?;
        let nsid = nsid.unwrap_or(session.controller.nsid());
        py.detach(|| session.controller.format(nsid, erase))
            .map_err(raise)
    }

    /// Makes whole blocks read as zeros.
    fn write_zeroes(&self, py: Python<'_>, length: u64, offset: u64) -> PyResult<()> {
        let mut state = self.lock()?;
        let session = state.session()?;
        let (lba, blocks) = whole_range(session.controller.namespace(), offset, length)?;
        let most = MEDIA_PIECE / u64::from(session.controller.namespace().block_bytes);
        in_pieces(py, 0, blocks, most, |at, here| {
            session.controller.write_zeroes(lba + at, here)
        })
    }

    /// Runs Verify on whole blocks.
    fn verify(&self, py: Python<'_>, length: u64, offset: u64) -> PyResult<()> {
        let mut state = self.lock()?;
        let session = state.session()?;
        let (lba, blocks) = whole_range(session.controller.namespace(), offset, length)?;
        let most = MEDIA_PIECE / u64::from(session.controller.namespace().block_bytes);
        in_pieces(py, 0, blocks, most, |at, here| {
            session.controller.verify(lba + at, here)
        })
    }

    /// True if whole blocks from byte `offset` on equal `data`.
    fn compare(&self, py: Python<'_>, data: &[u8], offset: u64) -> PyResult<bool> {
        let mut state = self.lock()?;
        let session = state.session()?;
        let (lba, _) = whole_range(session.controller.namespace(), offset, data.len() as u64)?;
        let block = u64::from(session.controller.namespace().block_bytes);
        let data = data.to_vec();
        let mut equal = true;
        in_pieces(py, 0, data.len() as u64, MEDIA_PIECE, |at, here| {
            let part = &data[at as usize..(at + here) as usize];
            equal &= session.controller.compare(lba + at / block, part)?;
            Ok(())
        })?;
        Ok(equal)
    }

    /// Writes `data` from byte `offset` on if the media hold `expected` there, as one atomic step.
    /// Returns true if it did.
    fn compare_and_write(
        &self,
        py: Python<'_>,
        expected: &[u8],
        data: &[u8],
        offset: u64,
    ) -> PyResult<bool> {
        let mut state = self.lock()?;
        let session = state.session()?;
        let (lba, _) = whole_range(session.controller.namespace(), offset, data.len() as u64)?;
        let (expected, data) = (expected.to_vec(), data.to_vec());
        py.detach(|| session.controller.compare_and_write(lba, &expected, &data))
            .map_err(raise)
    }

    /// Deallocates ranges of whole blocks: (byte offset, length).
    fn deallocate(&self, py: Python<'_>, ranges: Vec<(u64, u64)>) -> PyResult<()> {
        let mut state = self.lock()?;
        let session = state.session()?;
        let mut list = Vec::new();
        for (offset, length) in ranges {
            let (lba, blocks) = whole_range(session.controller.namespace(), offset, length)?;
            let blocks = u32::try_from(blocks)
                .map_err(|_| raise(format!("{length} bytes are too many for one range")))?;
            list.push(BlockRange { lba, blocks });
        }
        let block = u64::from(session.controller.namespace().block_bytes);
        let mut limits = session.controller.dataset_limits();
        limits.blocks = limits.blocks.min(DEALLOCATED / block);
        let lists = split_ranges(&list, limits);
        in_pieces(py, 0, lists.len() as u64, 1, |at, _| {
            session.controller.deallocate(&lists[at as usize])
        })
    }

    /// Starts a trace of commands, in simulated time. A file `*.jsonl` has a line of JSON for each
    /// command; `*.json` is a trace for Perfetto. No command may be in flight.
    fn trace_start(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let state = &mut *self.lock()?;
        state.session()?;
        py.detach(|| {
            state.trace_stop()?;
            let file = create(&path)?;
            state.set_tracer(Some(Tracer::new(file.clone(), false)))?;
            state.trace = Some(file);
            Ok(())
        })
    }

    /// Ends the trace, including commands in flight, and returns the number of its commands.
    /// `None`: there was no trace. It may be called after `shutdown`.
    fn trace_stop(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        let state = &mut *self.lock()?;
        py.detach(|| state.trace_stop())
    }

    /// Runs reads or writes of `bytes`, one at a time, with the device idle before each. Returns
    /// a list of events for each: time in ps, name, and what the event concerns. There may
    /// be no other trace.
    #[pyo3(signature = (write=false, bytes=4096, commands=20, seed=1))]
    fn single(
        &self,
        py: Python<'_>,
        write: bool,
        bytes: u64,
        commands: u64,
        seed: u64,
    ) -> PyResult<Document> {
        let mut state = self.lock()?;
        if state.trace.is_some() {
            return Err(raise("a trace is being written"));
        }
        let job = Single {
            write,
            bytes,
            commands,
            seed,
        };
        job.check(&state.session()?.controller)?;
        let events = Arc::new(Mutex::new(Events::default()));
        state.set_tracer(Some(Tracer::new(events.clone(), true)))?;
        let session = state.session()?;
        let mut reporter = ProgressReporter::new(None);
        let outcome = py.detach(|| job.run(&mut session.controller, &events, &mut reporter));
        state.set_tracer(None)?;
        Ok(Document(reporter.finish(outcome)?.into()))
    }

    /// The engines of the design: name, kind, arguments, outputs, results, offsets in BAR4.
    #[getter]
    fn engines(&self) -> Document {
        engines_of(&self.engines)
    }

    /// The engines of a peer, as `engines`.
    fn peer_engines(&self, peer: usize) -> PyResult<Document> {
        let mut state = self.lock()?;
        Ok(engines_of(&state.session()?.peer(peer)?.engines))
    }

    /// Sets an engine's arguments and starts it.
    fn engine_start(&self, name: &str, arguments: Vec<u64>) -> PyResult<()> {
        let mut state = self.lock()?;
        let (registers, manifest) = self.engine(name)?;
        check_arguments(name, manifest, &arguments)?;
        registers
            .start(state.session()?.host(), &arguments)
            .map_err(raise)
    }

    /// Asks an engine to end early.
    fn engine_stop(&self, name: &str) -> PyResult<()> {
        let mut state = self.lock()?;
        let (registers, _) = self.engine(name)?;
        registers.stop(state.session()?.host()).map_err(raise)
    }

    /// Waits up to `timeout_us` of simulated time for the end of an engine. Returns its return
    /// value, or `None` after the timeout.
    #[pyo3(signature = (name, timeout_us=1_000_000))]
    fn engine_wait(&self, py: Python<'_>, name: &str, timeout_us: u64) -> PyResult<Option<u32>> {
        let mut state = self.lock()?;
        let timeout = timeout(timeout_us)?;
        let (registers, _) = self.engine(name)?;
        let host = state.session()?.host();
        wait_for_engine(py, host, registers, timeout)
    }

    /// The outputs of an engine beside its return value, in order.
    fn engine_outputs(&self, name: &str) -> PyResult<Vec<u64>> {
        let mut state = self.lock()?;
        let (registers, manifest) = self.engine(name)?;
        let (arguments, outputs) = (manifest.arguments.len(), manifest.outputs.len());
        registers
            .outputs(state.session()?.host(), arguments, outputs)
            .map_err(raise)
    }

    /// Writes a command with these arguments to an engine's command page. Returns its line and
    /// number, the arguments of `engine_finish`.
    fn engine_submit(&self, name: &str, arguments: Vec<u64>) -> PyResult<(u64, u64)> {
        let mut state = self.lock()?;
        let page = self.page(name)?;
        check_arguments(name, &self.plugged(name)?.manifest, &arguments)?;
        let session = state.session()?;
        let page = (session.pages.entry(name.to_string())).or_insert(CommandPage::new(page));
        let host = session.controller.host_mut();
        let command = page.submit(host, &arguments).map_err(raise)?;
        Ok((command.line, command.number))
    }

    /// Waits up to `timeout_us` of simulated time for the end of a command of an engine's command
    /// page. Returns the return value and the outputs, or `None` after the timeout.
    #[pyo3(signature = (name, line, number, timeout_us=1_000_000))]
    fn engine_finish(
        &self,
        py: Python<'_>,
        name: &str,
        line: u64,
        number: u64,
        timeout_us: u64,
    ) -> PyResult<Option<(u32, u64)>> {
        let mut state = self.lock()?;
        let timeout = timeout(timeout_us)?;
        let page = self.page(name)?;
        let session = state.session()?;
        let page = (session.pages.entry(name.to_string())).or_insert(CommandPage::new(page));
        let host = session.controller.host_mut();
        let mut reporter = ProgressReporter::new(None);
        let outcome = py.detach(|| {
            let deadline = host.now() + timeout;
            let mut should_continue = || reporter.report(0, 1);
            let command = SubmittedCommand { line, number };
            page.wait(host, command, ENGINE_POLL, deadline, &mut should_continue)
        });
        Ok(reporter.finish(outcome)?.map(|end| (end.result, end.value)))
    }

    /// Runs a vendor specific I/O command without data. `dwords` are (dword number, value) pairs of
    /// dwords 2, 3, 10 to 15; the others are 0. Returns dword 0 of its completion. A status other
    /// than success is an error. Ctrl-C aborts the command.
    fn io_command(
        &self,
        py: Python<'_>,
        opcode: u32,
        nsid: u32,
        dwords: Vec<(usize, u32)>,
    ) -> PyResult<u32> {
        let mut state = self.lock()?;
        if !(0x80..=0xFF).contains(&opcode) || opcode & 3 != 0 {
            return Err(raise(format!(
                "opcode = {opcode:#x}: allowed are vendor specific ones that move no data, 0x80, \
                    0x84 and so on to 0xfc"
            )));
        }
        let mut sqe = spec::nvme::Sqe::new(opcode as u8).with_nsid(nsid);
        for (n, value) in dwords {
            if !matches!(n, 2 | 3 | 10..=15) {
                return Err(raise(format!("dword = {n}: allowed are 2, 3 and 10 to 15")));
            }
            sqe = sqe.with_cdw(n, value);
        }
        let session = state.session()?;
        let mut reporter = ProgressReporter::new(None);
        let outcome = py.detach(|| {
            let mut should_continue = |_: &mut _| reporter.report(0, 1);
            (session.controller).execute_raw_while(0, sqe, COMMAND_PIECE, &mut should_continue)
        });
        let completion = reporter.finish(outcome)?;
        completion.check().map_err(raise)?;
        Ok(completion.result)
    }

    /// Limits of each master in a channel and its share: name to reads, writes, weight, beside.
    fn qos_get(&self) -> PyResult<Document> {
        let mut state = self.lock()?;
        let session = state.session()?;
        let qos = self.qos(session)?;
        let mut values = serde_json::Map::new();
        for (n, name) in (0..qos.masters()).zip(self.masters()) {
            let v = qos.get(session.host(), n).map_err(raise)?;
            let v = json!({
                "reads": v.reads, "writes": v.writes, "weight": v.weight, "beside": v.beside,
            });
            values.insert(name, v);
        }
        Ok(Document(values.into()))
    }

    /// Sets the given values of a master: "pm", "nvme" or an engine's name.
    #[pyo3(signature = (master, reads=None, writes=None, weight=None, beside=None))]
    fn qos_set(
        &self,
        master: &str,
        reads: Option<u32>,
        writes: Option<u32>,
        weight: Option<u32>,
        beside: Option<u32>,
    ) -> PyResult<()> {
        let mut state = self.lock()?;
        let session = state.session()?;
        let qos = self.qos(session)?;
        let values = [reads, writes, weight, beside];
        set_qos(session.host(), qos, &self.masters(), master, values)
    }

    /// Flush.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.lock()?;
        let session = state.session()?;
        py.detach(|| session.controller.flush()).map_err(raise)
    }

    /// Lets simulated time pass without work.
    fn rest(&self, py: Python<'_>, ns: u64) -> PyResult<()> {
        let span = span_ns("ns", ns)?;
        let mut state = self.lock()?;
        let session = state.session()?;
        let now = session.host().system().now();
        if now
            .0
            .checked_add(span.0)
            .is_none_or(|end| end > END_OF_TIME.0)
        {
            return Err(raise(format!(
                "ns = {ns}: simulated time is {now} and ends at {END_OF_TIME}"
            )));
        }
        let system = session.host().system_mut();
        let end = system.now() + span;
        let mut reporter = ProgressReporter::new(None);
        let outcome = py.detach(|| {
            let mut piece = REST_PIECE;
            while system.now() < end {
                let begun = Instant::now();
                let here = piece.min(end - system.now());
                system.advance_by(here)?;
                // Idle time may be skipped in an instant, but not if all clock cycles are
                // evaluated.
                if begun.elapsed() < Duration::from_millis(10) {
                    piece = Time(piece.0.saturating_mul(2));
                } else {
                    piece = REST_PIECE.max(Time(piece.0 / 2));
                }
                if !reporter.report(0, 1) {
                    break;
                }
            }
            Ok::<(), sim::Error>(())
        });
        reporter.finish(outcome)
    }

    /// Counters of the model: name to [value, unit].
    fn counters(&self) -> PyResult<Document> {
        let mut state = self.lock()?;
        let host = state.session()?.controller.host();
        let device = host
            .system()
            .device(host.device())
            .ok_or_else(|| raise("no device"))?;
        let counters = device
            .counters()
            .into_iter()
            .map(|c| (c.name, json!([c.value, c.unit])));
        Ok(Document(Value::Object(counters.collect())))
    }

    /// Resets the controller (CC.EN), and starts the driver again. After a failed reset, device and
    /// media still exist: the PM window, the counters and another reset may be tried.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.lock()?;
        let session = state.session()?;
        py.detach(|| session.controller.reset()).map_err(raise)
    }

    /// Drops the device without a shutdown, as a power cut does. Its media file can then be opened
    /// again.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let session = self.lock()?.session.take();
        py.detach(|| drop(session));
        Ok(())
    }

    /// Shuts the device down. Reports files that could not be written. In a forked process it does
    /// nothing.
    fn shutdown(&self, py: Python<'_>) -> PyResult<()> {
        if self.state.is_foreign() {
            return Ok(());
        }
        let session = self.lock()?.session.take();
        let Some(session) = session else {
            return Ok(());
        };
        py.detach(|| {
            let mut host = session.controller.shutdown().map_err(raise)?;
            host.system_mut().finish().map_err(raise)
        })
    }
}

impl Device {
    /// A profile as the registers of each channel of a memory.
    fn registers(&self, profile: &design::Profile, memory: &str) -> PyResult<Vec<Registers>> {
        let turns = memory_of(&self.design, memory)?
            .map_or(self.design.interleave(), design::Memory::interleave);
        profile.registers(self.design.clock(), turns).map_err(raise)
    }

    fn set_on_peer(&self, number: usize, profile: &design::Profile) -> PyResult<()> {
        let mut state = self.lock()?;
        let session = state.session()?;
        let peer = session.peer(number)?;
        let (clock, turns) = (peer.design.clock(), peer.design.interleave());
        let registers = profile.registers(clock, turns).map_err(raise)?;
        // The delays of the storage come first.
        let delays = peer.inventory.delays();
        let set = |host: &mut SimHost| {
            let mut all = delays.iter().zip(&registers);
            all.try_for_each(|(delay, registers)| delay.set(host, registers))
        };
        session.with_peer(number, set)?.map_err(raise)
    }

    fn set_on(
        &self,
        profile: &design::Profile,
        channel: Option<usize>,
        memory: &str,
    ) -> PyResult<()> {
        let registers = self.registers(profile, memory)?;
        if let Some(n) = channel.filter(|&n| n >= registers.len()) {
            return Err(raise(format!(
                "channel = {n}: allowed are 0 to {}",
                registers.len().max(1) - 1
            )));
        }
        let mut state = self.lock()?;
        let session = state.session()?;
        let memories = session.inventory.memories();
        let first = memories.iter().find(|m| m.name() == memory);
        let delays = session.inventory.delays();
        let delays = delays
            .iter()
            .skip(first.map_or(0, |m| m.first_channel as usize));
        let chosen = |n| channel.is_none_or(|channel| channel == n);
        let host = session.controller.host_mut();
        (0..)
            .zip(delays.zip(&registers))
            .filter(|&(n, _)| chosen(n))
            .try_for_each(|(_, (delay, registers))| delay.set(host, registers))
            .map_err(raise)
    }
}
