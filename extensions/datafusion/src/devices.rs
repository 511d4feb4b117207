// SPDX-License-Identifier: Apache-2.0

//! Calls of Python: sorting, and reading resident tables.

use std::ffi::CStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use arrow::array::{RecordBatch, RecordBatchIterator};
use arrow::datatypes::SchemaRef;
use arrow::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use datafusion_common::{DataFusionError, Result};
use futures::channel::oneshot;
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// The name of a capsule with a stream.
const STREAM: &CStr = c"arrow_array_stream";

/// A table for Python, by the Arrow PyCapsule interface.
#[pyclass(frozen)]
pub struct ArrowTable {
    pub schema: SchemaRef,
    pub batches: Vec<RecordBatch>,
}

#[pymethods]
impl ArrowTable {
    /// A requested schema is ignored, as the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        let batches = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), STREAM)
    }
}

/// Opens a table of Python. `nearside.sql` returns tables in memory: no read of a batch waits, and
/// no row is null as a whole.
pub fn open(table: &Bound<'_, PyAny>) -> PyResult<ArrowArrayStreamReader> {
    let capsule = table.call_method0("__arrow_c_stream__")?;
    let stream = capsule.cast::<PyCapsule>()?.pointer_checked(Some(STREAM))?;
    // SAFETY: a capsule of this name holds a stream, which is moved out of it.
    let stream = unsafe { ArrowArrayStreamReader::from_raw(stream.as_ptr().cast()) };
    stream.map_err(|error| PyValueError::new_err(error.to_string()))
}

/// An object of `nearside.sql` with the methods below.
#[derive(Debug)]
pub struct Devices {
    python: Py<PyAny>,
    /// Name in plans.
    pub label: String,
}

/// Progress callback of a sort. It raises an exception to stop the sort.
#[pyclass(frozen)]
struct ProgressCallback {
    cancelled: Arc<AtomicBool>,
}

#[pymethods]
impl ProgressCallback {
    fn __call__(&self, _done: u64, _total: u64) -> PyResult<()> {
        match self.cancelled.load(Ordering::Relaxed) {
            true => Err(PyKeyboardInterrupt::new_err("the query was dropped")),
            false => Ok(()),
        }
    }
}

/// Dropped together with the query that waits.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Devices {
    pub fn new(python: Py<PyAny>) -> PyResult<Arc<Devices>> {
        let label = Python::attach(|py| python.getattr(py, "label")?.extract(py))?;
        Ok(Arc::new(Devices { python, label }))
    }

    /// Why rows of a schema can't be sorted on devices, if so: `declines(empty, by) -> str | None`
    /// for a table without rows.
    pub fn declines(&self, schema: &SchemaRef, by: &str) -> Result<Option<String>> {
        let empty = ArrowTable {
            schema: Arc::clone(schema),
            batches: Vec::new(),
        };
        Python::attach(|py| {
            let reason = self.python.call_method1(py, "declines", (empty, by));
            reason?.extract(py)
        })
        .map_err(raised)
    }

    /// Sorts a table, or says why not: `sort(table, by, progress) -> table | str`.
    pub async fn sort(
        self: Arc<Self>,
        table: ArrowTable,
        by: String,
    ) -> Result<std::result::Result<Vec<RecordBatch>, String>> {
        self.wait(move |devices, py, progress| {
            devices
                .python
                .call_method1(py, "sort", (table, by, progress))
        })
        .await
    }

    /// Reads columns of a resident table, in the order `by` if there is one: `read(columns, by,
    /// progress) -> table | str`.
    pub async fn read(
        self: Arc<Self>,
        columns: Vec<String>,
        by: Option<String>,
    ) -> Result<std::result::Result<Vec<RecordBatch>, String>> {
        self.wait(move |devices, py, progress| {
            devices
                .python
                .call_method1(py, "read", (columns, by, progress))
        })
        .await
    }

    /// Calls Python in a separate thread: DataFusion's threads must not block.
    async fn wait<F>(
        self: Arc<Self>,
        call: F,
    ) -> Result<std::result::Result<Vec<RecordBatch>, String>>
    where
        F: FnOnce(&Devices, Python<'_>, ProgressCallback) -> PyResult<Py<PyAny>> + Send + 'static,
    {
        let cancelled = Arc::new(AtomicBool::new(false));
        let guard = CancelOnDrop(Arc::clone(&cancelled));
        let (answer, answered) = oneshot::channel();
        thread::spawn(move || {
            let result = Python::attach(|py| {
                let returned = call(&self, py, ProgressCallback { cancelled })?;
                if let Ok(reason) = returned.extract::<String>(py) {
                    return Ok(Err(reason));
                }
                open(returned.bind(py)).map(Ok)
            });
            // Nobody receives the answer if the query was dropped.
            let _ = answer.send(result);
        });
        let result = answered.await;
        drop(guard);
        let result = result.map_err(|_| DataFusionError::Execution("the sort has ended".into()))?;
        match result.map_err(raised)? {
            Ok(table) => Ok(Ok(table.collect::<std::result::Result<_, _>>()?)),
            Err(reason) => Ok(Err(reason)),
        }
    }
}

fn raised(error: PyErr) -> DataFusionError {
    DataFusionError::Execution(error.to_string())
}
