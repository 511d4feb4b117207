//! Designs, and compiling them.

use std::path::PathBuf;

use pyo3::prelude::*;
use rtl::bitstream::Progress;
use rtl::{DeviceConfig, RtlDevice};

use crate::error::raise;

/// The repository that holds the hardware sources.
#[pyfunction]
pub fn root() -> PyResult<PathBuf> {
    rtl::bitstream::repo_root().map_err(raise)
}

/// A media profile by name or path, as JSON.
#[pyfunction]
pub fn profile(name: &str) -> PyResult<String> {
    let profile = design::Profile::find(&root()?, name).map_err(raise)?;
    serde_json::to_string(&profile).map_err(raise)
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
        let inner = design::Design::find(&root()?, name).map_err(raise)?;
        Ok(Design { inner })
    }

    /// The same design with other values: a TOML text that is read over it, key by key.
    fn with_values(&self, overrides: &str) -> PyResult<Design> {
        let inner = self.inner.with_values(overrides).map_err(raise)?;
        Ok(Design { inner })
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.inner.name
    }

    /// SHA-256 of its meaning.
    #[getter]
    fn hash(&self) -> String {
        self.inner.hash()
    }

    /// All of it, as JSON.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.inner).map_err(raise)
    }
}

/// What a build learns from.
fn exercise(device: RtlDevice) -> Result<(), String> {
    let bytes = device.media().size();
    driver::exercise(Box::new(device), bytes).map_err(|e| e.to_string())
}

/// Hands a build's progress to a callback `f(step, done, total)`.
pub fn build_progress(callback: Option<Py<PyAny>>) -> impl FnMut(Progress) {
    move |progress| {
        let Some(callback) = &callback else { return };
        let (step, done, total) = match progress {
            Progress::Waiting => ("waiting for another build of the same design", 0, 0),
            Progress::Translating => ("translating with Verilator", 0, 0),
            Progress::Compiling(begun, all) => ("compiling", begun, all),
            Progress::Training => ("running it to find what matters most", 0, 0),
            Progress::Done(_) => ("done", 1, 1),
        };
        // A callback that fails must not end the build; Ctrl-C reaches the compiler itself.
        let _ = Python::attach(|py| callback.call1(py, (step, done, total)).map(drop));
    }
}

/// Compiles a design unless it was compiled before; returns the path of the shared object. With `train` it is compiled
/// twice and runs faster.
#[pyfunction]
#[pyo3(signature = (design, progress=None, train=false))]
pub fn compile(
    py: Python<'_>,
    design: &Design,
    progress: Option<Py<PyAny>>,
    train: bool,
) -> PyResult<PathBuf> {
    let mut config = DeviceConfig::of(&design.inner).map_err(raise)?;
    config.train = train.then_some(exercise);
    let mut tell = build_progress(progress);
    let built = py.detach(|| config.compile(design.inner.media.bytes.0, &mut tell));
    py.check_signals()?;
    built.map_err(raise)
}
