// SPDX-License-Identifier: Apache-2.0

//! Devices as vfio-user servers.

use std::collections::HashMap;
use std::mem;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use design::{DeviceInstance, Identity};
use device::{Model, RtlOptions};
use driver::control::DelayRegisters;
use pyo3::prelude::*;
use serde_json::{json, Map, Value};
use sim::{Bar, Media, TraceSink, Tracer};
use trace::{CommandTimes, Phase, TraceFile, TraceSummary};
use vfio_user::{Dilation, Function, Lateness, MonotonicClock, RegisterWrite, ServedDevice};

use crate::build::{factory, model_of, purpose, Design};
use crate::document::Document;
use crate::error::raise;
use crate::process::ProcessOwned;
use crate::trace::{create, finish};

/// Devices that virtual machines and user-space drivers attach to, each through a dedicated socket.
/// Dedicated threads simulate them as fast as this machine can, or paced, until `stop`.
#[pyclass(frozen, module = "nearside._native")]
pub struct Server {
    running: ProcessOwned<Mutex<Running>>,
}

/// Empty after the end.
#[derive(Default)]
struct Running {
    server: Option<vfio_user::Server>,
    /// The builds of the bitstreams.
    builds: Vec<String>,
    traces: Vec<Arc<Mutex<TraceFile>>>,
    /// Of each device, if it was asked for.
    summaries: Vec<Arc<Mutex<TraceSummary>>>,
}

impl Server {
    fn lock(&self) -> PyResult<MutexGuard<'_, Running>> {
        self.running.check()?;
        Ok(self.running.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A design, its socket, and the file for a trace of its commands.
type ServedDesign = (Py<Design>, PathBuf, Option<PathBuf>);

#[pymethods]
impl Server {
    /// Compiles the designs if necessary, and serves each of them at its socket. If a file is
    /// given, commands are traced to it. With `clock` they run in simulated time: the path of the
    /// socket through which an emulator says how far. With `dilation` they are paced: that many
    /// times slower than modelled on the wall clock. The host is that of the first design. With
    /// `summarize`, `summaries` has the durations of commands.
    #[new]
    #[pyo3(signature = (
        devices, progress=None, model=None, clock=None, dilation=None, summarize=false
    ))]
    fn new(
        py: Python<'_>,
        devices: Vec<ServedDesign>,
        progress: Option<Py<PyAny>>,
        model: Option<&str>,
        clock: Option<PathBuf>,
        dilation: Option<f64>,
        summarize: bool,
    ) -> PyResult<Server> {
        let model = model_of(model)?;
        if clock.is_some() && dilation.is_some() {
            return Err(raise(
                "clock and dilation: devices run in simulated time or are paced, not both",
            ));
        }
        let dilation = dilation.map(Dilation::new).transpose().map_err(raise)?;
        let timed = clock.is_some() || dilation.is_some();
        let first = devices.first().map(|(design, ..)| design.get());
        let host = first.map(|design| design.inner.attached()).transpose();
        let host = host.map_err(raise)?.map(|(host, _)| host);
        let (mut served, mut files, mut traces) = (Vec::new(), Vec::new(), Vec::new());
        let mut builds = Vec::new();
        let identities = identities(&devices)?;
        for ((design, socket, trace), identity) in devices.into_iter().zip(identities) {
            let design = &design.get().inner;
            let progress = progress.as_ref().map(|p| p.clone_ref(py));
            let (one, build) = prepare(py, design, model, identity, socket, progress, timed)?;
            served.push(one);
            builds.push(build);
            files.push(trace);
            py.check_signals()?;
        }
        // All media files are locked by now, so a trace can't overwrite one.
        let mut summaries = Vec::new();
        for (one, path) in served.iter_mut().zip(files) {
            let mut sinks: Vec<Arc<Mutex<dyn TraceSink>>> = Vec::new();
            if let Some(path) = path {
                let file = create(&path)?;
                traces.push(file.clone());
                sinks.push(file);
            }
            if summarize {
                let summary = Arc::new(Mutex::new(TraceSummary::new()));
                summaries.push(summary.clone());
                sinks.push(summary);
            }
            if !sinks.is_empty() {
                one.tracer = Some(Tracer::new(Arc::new(Mutex::new(sinks)), false));
            }
        }
        let host = host.unwrap_or_default();
        let server = py.detach(|| match (&clock, dilation) {
            (Some(clock), _) => vfio_user::Server::start_in_simulated_time(served, &host, clock),
            (None, Some(dilation)) => {
                let clock = Arc::new(MonotonicClock::default());
                vfio_user::Server::start_paced(served, &host, dilation, clock)
            }
            (None, None) => vfio_user::Server::start(served),
        });
        let server = Some(server.map_err(raise)?);
        let running = ProcessOwned::new(
            Running {
                server,
                builds,
                traces,
                summaries,
            }
            .into(),
        );
        Ok(Server { running })
    }

    /// Runs the server for `seconds`, or until a thread or a signal handler stops it.
    fn wait(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let bad = |e| raise(format!("seconds = {seconds}: {e}"));
        let mut left = Duration::try_from_secs_f64(seconds).map_err(bad)?;
        loop {
            // In steps, to check for Ctrl-C.
            let span = left.min(Duration::from_millis(100));
            py.detach(|| std::thread::sleep(span));
            py.check_signals()?;
            left -= span;
            if left.is_zero() || self.lock()?.server.is_none() {
                return Ok(());
            }
        }
    }

    /// The counters of each device since the start.
    fn counters(&self) -> PyResult<Document> {
        let running = self.lock()?;
        let devices = running.server.iter().flat_map(vfio_user::Server::counters);
        let object = |list: Vec<(&str, u64)>| {
            let pairs = list.into_iter().map(|(k, v)| (k.to_string(), json!(v)));
            Value::Object(pairs.collect::<Map<_, _>>())
        };
        Ok(Document(devices.map(object).collect()))
    }

    /// Of each device, the number of commands that have ended, and the time of the last in ps. The
    /// server has to be one with `summarize`.
    fn progress(&self) -> PyResult<Vec<(u64, u64)>> {
        let running = self.lock()?;
        let summaries = running.summaries.iter();
        Ok(summaries
            .map(|summary| {
                let summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
                (summary.commands(), summary.last_end().0)
            })
            .collect())
    }

    /// Ends the summaries, and returns the phases of each device. `names` has names of marks. The
    /// server has to be one with `summarize`.
    fn summaries(&self, names: HashMap<u16, String>) -> PyResult<Document> {
        let running = self.lock()?;
        let devices = running.summaries.iter().map(|summary| {
            let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
            mem::take(&mut *summary)
                .finish()
                .iter()
                .map(|one| phase(one, names.get(&one.mark)))
                .collect()
        });
        Ok(Document(devices.collect::<Vec<Value>>().into()))
    }

    /// How precisely each device was paced since the start; empty if the devices are not paced.
    fn pacing(&self) -> PyResult<Document> {
        let running = self.lock()?;
        let reports = running.server.iter().flat_map(vfio_user::Server::pacing);
        let reports = reports.map(|report| {
            json!({
                "dilation": report.dilation,
                "tolerance_ns": report.tolerance_ns,
                "set_back_ns": report.set_back_ns,
                "completions": errors(&report.completions),
                "interrupts": errors(&report.interrupts),
                "reads": errors(&report.reads),
            })
        });
        Ok(Document(reports.collect()))
    }

    /// The build of each device's bitstream; see `Device.build`.
    #[getter]
    fn builds(&self) -> PyResult<Vec<String>> {
        Ok(self.lock()?.builds.clone())
    }

    /// Ends all connections, removes the sockets, and flushes the media. In a forked process it
    /// does nothing.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        if self.running.is_foreign() {
            return Ok(());
        }
        let Running { server, traces, .. } = mem::take(&mut *self.lock()?);
        if let Some(server) = server {
            py.detach(|| server.stop());
        }
        traces.iter().try_for_each(|file| finish(file).map(drop))
    }
}

/// A phase of a summary as a document.
fn phase(phase: &Phase, name: Option<&String>) -> Value {
    let ns = |ps: u64| ps as f64 / 1e3;
    let command = |(name, times): (&&str, &CommandTimes)| {
        json!({
            "command": name,
            "count": times.count(),
            "mean_ns": times.mean_ps() / 1e3,
            "device_ns": times.device_mean_ps() / 1e3,
            "link_ns": (times.mean_ps() - times.device_mean_ps()) / 1e3,
            "p50_ns": ns(times.percentile_ps(50.0)),
            "p99_ns": ns(times.percentile_ps(99.0)),
            "max_ns": ns(times.max_ps()),
        })
    };
    let pause = &phase.between;
    let pause_p50 = (!pause.is_empty()).then(|| ns(pause.value_at_percentile(50.0)));
    json!({
        "mark": phase.mark,
        "name": name.map_or_else(|| phase.mark.to_string(), String::clone),
        "span_ns": ns(phase.end.0 - phase.begin.0),
        "in_flight_ns": ns(phase.in_flight.0),
        "pauses": pause.len(),
        "pause_p50_ns": pause_p50,
        "commands": phase.commands.iter().map(command).collect::<Vec<_>>(),
    })
}

fn errors(kind: &Lateness) -> Value {
    json!({
        "count": kind.count,
        "late": kind.late,
        "mean_ns": kind.mean_ns,
        "p50_ns": kind.p50_ns,
        "p90_ns": kind.p90_ns,
        "p99_ns": kind.p99_ns,
        "p999_ns": kind.p999_ns,
        "max_ns": kind.max_ns,
    })
}

/// The identities of the devices. They have to differ.
fn identities(devices: &[ServedDesign]) -> PyResult<Vec<Identity>> {
    let mut all: Vec<Identity> = Vec::new();
    for (design, socket, _) in devices {
        let place = DeviceInstance::Socket(socket);
        let one = Identity::of(&design.get().inner, place).map_err(raise)?;
        if let Some(other) = all.iter().position(|identity| *identity == one) {
            return Err(raise(format!(
                "{} has serial number {one} like {}: a host can't tell them apart. Give each a \
                 different nvme.serial, or none",
                sim::escape_controls(socket.display()),
                sim::escape_controls(devices[other].1.display())
            )));
        }
        all.push(one);
    }
    Ok(all)
}

fn prepare(
    py: Python<'_>,
    design: &design::Design,
    model: Model,
    identity: Identity,
    socket: PathBuf,
    progress: Option<Py<PyAny>>,
    timed: bool,
) -> PyResult<(ServedDevice, String)> {
    let vectors = design.vectors().map_err(raise)?;
    let profile = design::Profile::find(&design.media.profile).map_err(raise)?;
    let mut registers = profile
        .registers(design.clock(), design.interleave())
        .map_err(raise)?;
    registers.extend(design.local_registers().map_err(raise)?);
    // Checked before a file is created.
    device::check(design, model).map_err(raise)?;
    // Loads and stores of a mapped window do not reach the device, so they can be neither delayed
    // nor redirected to another memory, and take no time.
    let mappable = !timed && !profile.enable && design.local().is_none();
    let media = match &design.media.file {
        Some(path) => Media::file(path, design.media.bytes.0),
        None if mappable => Media::shared(design.media.bytes.0),
        None => Media::memory(design.media.bytes.0),
    };
    let media = media.map_err(raise)?;
    let pm_file = media
        .shared_file()
        .map(|file| file.try_clone_to_owned().map(Arc::new));
    let pm_file = pm_file.transpose().map_err(raise)?;
    let options = RtlOptions {
        purpose: purpose(),
        ..RtlOptions::default()
    };
    let factory = factory(py, design, model, &options, progress)?;
    let device = factory.device_with(media, Some(identity), None);
    let device = device.map_err(raise)?;
    let build = factory.build();
    let mut setup = Vec::new();
    for (channel, registers) in (0..).zip(&registers) {
        let writes = DelayRegisters::of_channel(channel)
            .writes(registers)
            .map_err(raise)?;
        setup.extend(writes.into_iter().map(|(offset, value)| RegisterWrite {
            bar: Bar::Control,
            offset,
            value,
        }));
    }
    let (_, link) = design.attached().map_err(raise)?;
    let served = ServedDevice {
        name: design.name.clone(),
        socket,
        device,
        function: Function {
            pm_bytes: design.window_bytes(),
            pm_file,
            vectors,
            link,
        },
        setup,
        tracer: None,
        log: vfio_user::Log::stderr(),
    };
    Ok((served, build))
}
