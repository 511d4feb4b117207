// SPDX-License-Identifier: Apache-2.0

//! Calls of Python: sorting, and reading resident tables.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use datafusion_common::{DataFusionError, Result};
use futures::channel::oneshot;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

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

    /// Why rows of a schema can't be sorted on devices, if so: `declines(schema, by) -> str |
    /// None`.
    pub fn declines(&self, schema: &Schema, by: &str) -> Result<Option<String>> {
        let schema = encode(&Arc::new(schema.clone()), &[])?;
        Python::attach(|py| {
            let schema = PyBytes::new(py, &schema);
            let reason = self.python.call_method1(py, "declines", (schema, by));
            reason?.extract(py)
        })
        .map_err(raised)
    }

    /// Sorts a table, or says why not: `sort(table, by, going) -> bytes | str`.
    pub async fn sort(
        self: Arc<Self>,
        table: Vec<u8>,
        by: String,
    ) -> Result<std::result::Result<Vec<RecordBatch>, String>> {
        self.wait(move |devices, py, progress| {
            let table = PyBytes::new(py, &table);
            devices
                .python
                .call_method1(py, "sort", (table, by, progress))
        })
        .await
    }

    /// Reads columns of a resident table, in the order `by` if there is one: `read(columns, by,
    /// going) -> bytes | str`.
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
                returned.extract::<Vec<u8>>(py).map(Ok)
            });
            // Nobody receives the answer if the query was dropped.
            let _ = answer.send(result);
        });
        let result = answered.await;
        drop(guard);
        let result = result.map_err(|_| DataFusionError::Execution("the sort has ended".into()))?;
        match result.map_err(raised)? {
            Ok(table) => Ok(Ok(decode(&table)?)),
            Err(reason) => Ok(Err(reason)),
        }
    }
}

fn raised(error: PyErr) -> DataFusionError {
    DataFusionError::Execution(error.to_string())
}

/// A table as an Arrow IPC stream.
pub fn encode(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Vec<u8>> {
    let write = || -> std::result::Result<Vec<u8>, ArrowError> {
        let mut stream = StreamWriter::try_new(Vec::new(), schema)?;
        for batch in batches {
            stream.write(batch)?;
        }
        stream.into_inner()
    };
    Ok(write()?)
}

fn decode(stream: &[u8]) -> Result<Vec<RecordBatch>> {
    let batches = StreamReader::try_new(stream, None)?;
    Ok(batches.collect::<std::result::Result<_, _>>()?)
}
