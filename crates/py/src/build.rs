// SPDX-License-Identifier: Apache-2.0

//! Designs and their compilation.

use std::path::PathBuf;

use device::{Factory, Model, RtlOptions};
use pyo3::prelude::*;
use rtl::bitstream::{FileList, Progress, Purpose};
use rtl::{DeviceConfig, RtlDevice, TrainingError};

use crate::document::Document;
use crate::error::raise;

/// The checkout, which holds the hardware sources.
#[pyfunction]
pub fn root() -> PyResult<PathBuf> {
    design::checkout().map_err(raise)
}

/// A media profile by name, by path, or as a TOML text.
pub fn find_profile(name: &str) -> PyResult<design::Profile> {
    if name.contains('=') {
        return design::Profile::parse(name, std::path::Path::new("profile")).map_err(raise);
    }
    design::Profile::find(name).map_err(raise)
}

/// A media profile by name or path.
#[pyfunction]
pub fn profile(name: &str) -> PyResult<Document<design::Profile>> {
    design::Profile::find(name).map(Document).map_err(raise)
}

/// The CPU of a guest: the times of an instruction and, additionally, of a read of the time stamp
/// counter, in ps. Of a host profile by name or path.
#[pyfunction]
pub fn guest_cpu(host: &str) -> PyResult<(u64, u64)> {
    let profile = design::HostProfile::find(host).map_err(raise)?;
    let cpu = profile.guest_cpu().map_err(raise)?;
    let ps = |ns: f64| (ns * 1e3).round() as u64;
    Ok((ps(cpu.instruction_ns.value), ps(cpu.counter_ns.value)))
}

/// A device configuration.
#[pyclass(frozen, module = "nearside._native")]
pub struct Design {
    pub inner: design::Design,
}

#[pymethods]
impl Design {
    /// Reads a design by name or path.
    #[staticmethod]
    fn load(name: &str) -> PyResult<Design> {
        let inner = design::Design::find(name).map_err(raise)?;
        Ok(Design { inner })
    }

    /// The same design with other values: a TOML text overrides them, key by key.
    fn with_values(&self, overrides: &str) -> PyResult<Design> {
        let inner = self.inner.with_values(overrides).map_err(raise)?;
        Ok(Design { inner })
    }

    /// The file that it was read from, if there is one.
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        let path = self.inner.path().filter(|path| path.is_file());
        path.map(PathBuf::from)
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.inner.name
    }

    /// SHA-256 of its values.
    #[getter]
    fn hash(&self) -> String {
        self.inner.hash()
    }

    /// Identifies the hardware: a hash of the sources, the parameters, and the tools. It is that of
    /// the build with assertions, whichever is used.
    #[getter]
    fn hardware(&self) -> PyResult<String> {
        let config = DeviceConfig::from_design(&self.inner).map_err(raise)?;
        rtl::bitstream::digest(&config.bitstream()).map_err(raise)
    }

    /// Reads that come late as the DRAM of a memory is too slow for a media profile. The profile is
    /// a name, a path or a TOML text; the default is the design's. `None` if no read is late.
    #[pyo3(signature = (profile=None, memory=driver::STORAGE))]
    fn late_reads(&self, profile: Option<&str>, memory: &str) -> PyResult<Option<Document>> {
        let (own, dram) = match memory_of(&self.inner, memory)? {
            Some(local) => (&local.profile, self.inner.local_dram(local)),
            None => (&self.inner.media.profile, &self.inner.dram),
        };
        let profile = match profile {
            Some(profile) => find_profile(profile)?,
            None => design::Profile::find(own).map_err(raise)?,
        };
        let late = profile.late_reads(self.inner.clock(), dram);
        late.map(|late| {
            let mut value = serde_json::to_value(&late).map_err(raise)?;
            value["message"] = late.message().into();
            Ok(Document(value))
        })
        .transpose()
    }

    /// The device top with its engines and parameters, in SystemVerilog.
    fn top(&self) -> PyResult<String> {
        let config = DeviceConfig::from_design(&self.inner).map_err(raise)?;
        let text = design::engine::top(&config.root, &config.engines).map_err(raise)?;
        design::export::top(&text, &config.parameters).map_err(raise)
    }

    /// The file list of the device top, which is at `path`. The other paths are relative to the
    /// root of the repository.
    fn filelist(&self, path: &str) -> PyResult<String> {
        let config = DeviceConfig::from_design(&self.inner).map_err(raise)?;
        let mut files = FileList::default();
        for list in &config.filelists {
            let list = list.strip_prefix(&config.root).unwrap_or(list);
            files.add(&config.root, list).map_err(raise)?;
        }
        let folders = files
            .incdirs
            .iter()
            .map(|f| format!("+incdir+{}", f.display()));
        let own = |f: &&PathBuf| !f.ends_with(design::engine::TOP);
        let sources = files.sources.iter().filter(own);
        let mut lines: Vec<String> = folders.collect();
        lines.extend(sources.map(|f| f.display().to_string()));
        lines.push(path.to_string());
        Ok(lines.join("\n") + "\n")
    }

    /// Its address map as a C header.
    fn header(&self) -> PyResult<String> {
        let engines = self.inner.engines().map_err(raise)?;
        design::export::header(&self.inner, &engines).map_err(raise)
    }

    /// All values of the design.
    fn values(&self) -> Document<&design::Design> {
        Document(&self.inner)
    }
}

/// The build of the RTL: without assertions, unless `NEARSIDE_CHECKED` requests them. All tests set
/// it.
pub fn purpose() -> Purpose {
    match std::env::var_os("NEARSIDE_CHECKED") {
        Some(value) if !value.is_empty() && value != "0" => Purpose::Checked,
        _ => Purpose::Running,
    }
}

/// The requested model: that of the argument, else that of `NEARSIDE_MODEL`, else the RTL.
pub fn model_of(name: Option<&str>) -> PyResult<Model> {
    if let Some(name) = name {
        return name.parse().map_err(raise);
    }
    Model::named(Model::default()).map_err(raise)
}

/// See [`model_of`].
#[pyfunction]
#[pyo3(signature = (name=None))]
pub fn model(name: Option<&str>) -> PyResult<&'static str> {
    Ok(model_of(name)?.name())
}

/// The factory of a design's devices. `progress` is called during a compilation.
pub fn factory(
    py: Python<'_>,
    design: &design::Design,
    model: Model,
    options: &RtlOptions,
    progress: Option<Py<PyAny>>,
) -> PyResult<Factory> {
    let mut reporter = BuildReporter::new(progress);
    let built = py.detach(|| Factory::new(design, model, options, &mut |p| reporter.report(p)));
    reporter.finish(built.map_err(raise))
}

/// The workload that trains a build.
fn exercise(device: RtlDevice) -> Result<(), TrainingError> {
    let bytes = device.media().size();
    Ok(testbed::exercise(Box::new(device), bytes)?)
}

/// Passes a build's progress to a callback `f(step, done, total)`, and checks for Ctrl-C.
pub struct BuildReporter {
    callback: Option<Py<PyAny>>,
    /// The exception of Python: KeyboardInterrupt, or that of the callback. It ends the build.
    raised: Option<PyErr>,
}

impl BuildReporter {
    /// A reporter, with an optional callback.
    pub fn new(callback: Option<Py<PyAny>>) -> BuildReporter {
        BuildReporter {
            callback,
            raised: None,
        }
    }

    /// Reports progress. Returns false to stop the work.
    pub fn report(&mut self, progress: Progress) -> bool {
        let news = match progress {
            Progress::Working => None,
            Progress::Waiting => Some(("waiting for another build of the same design", 0, 0)),
            Progress::Translating => Some(("translating with Verilator", 0, 0)),
            Progress::Compiling(begun, all) => Some(("compiling", begun, all)),
            Progress::Training => Some(("running it to find what matters most", 0, 0)),
            Progress::Done(_) => Some(("done", 1, 1)),
        };
        let outcome = Python::attach(|py| {
            py.check_signals()?;
            match (&self.callback, news) {
                (Some(f), Some(news)) => f.call1(py, news).map(drop),
                _ => Ok(()),
            }
        });
        self.raised = self.raised.take().or(outcome.err());
        self.raised.is_none()
    }

    /// The exception of Python if there is one, else the result.
    pub fn finish<T>(self, outcome: PyResult<T>) -> PyResult<T> {
        self.raised.map_or(outcome, Err)
    }
}

/// Compiles a design unless it was compiled before, and returns the path of the shared object. With
/// `train` it is compiled twice and runs faster. With `checked` it has assertions, whatever
/// `NEARSIDE_CHECKED` says.
#[pyfunction]
#[pyo3(signature = (design, progress=None, train=false, checked=false))]
pub fn compile(
    py: Python<'_>,
    design: &Design,
    progress: Option<Py<PyAny>>,
    train: bool,
    checked: bool,
) -> PyResult<PathBuf> {
    let mut config = DeviceConfig::from_design(&design.inner).map_err(raise)?;
    config.purpose = if checked { Purpose::Checked } else { purpose() };
    config.train = train.then_some(exercise);
    let mut reporter = BuildReporter::new(progress);
    let bytes = design.inner.media.bytes.0;
    let built = py.detach(|| config.compile(bytes, &mut |p| reporter.report(p)));
    reporter.finish(built.map_err(raise))
}

/// The memory of a design by its name. `None` is the storage.
pub fn memory_of<'a>(
    design: &'a design::Design,
    name: &str,
) -> PyResult<Option<&'a design::Memory>> {
    if name == driver::STORAGE {
        return Ok(None);
    }
    let memory = design.memory.iter().find(|memory| memory.name == name);
    memory.map(Some).ok_or_else(|| {
        let others = design
            .memory
            .iter()
            .map(|memory| format!(", {:?}", memory.name));
        let others: String = others.collect();
        raise(format!(
            "memory = {name:?}: allowed is {:?}{others}",
            driver::STORAGE
        ))
    })
}
