//! What is asked of Python: sorting, and reading of tables that stand on devices.

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

/// An object of Python's, `nearside.sql`, with the methods below.
#[derive(Debug)]
pub struct Devices {
    python: Py<PyAny>,
    /// What plans call it.
    pub label: String,
}

/// Called by a sort that goes on, to hear whether to stop.
#[pyclass(frozen)]
struct Going {
    cancelled: Arc<AtomicBool>,
}

#[pymethods]
impl Going {
    fn __call__(&self, _done: u64, _total: u64) -> PyResult<()> {
        match self.cancelled.load(Ordering::Relaxed) {
            true => Err(PyKeyboardInterrupt::new_err("the query was dropped")),
            false => Ok(()),
        }
    }
}

/// Dropped with the query that waits.
struct Waiter(Arc<AtomicBool>);

impl Drop for Waiter {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Devices {
    pub fn new(python: Py<PyAny>) -> PyResult<Arc<Devices>> {
        let label = Python::attach(|py| python.getattr(py, "label")?.extract(py))?;
        Ok(Arc::new(Devices { python, label }))
    }

    /// Why rows of a schema can't be sorted so, or nothing: `declines(schema, by) -> str | None`.
    pub fn declines(&self, schema: &Schema, by: &str) -> Result<Option<String>> {
        let schema = encode(&Arc::new(schema.clone()), &[])?;
        Python::attach(|py| {
            let schema = PyBytes::new(py, &schema);
            let said = self.python.call_method1(py, "declines", (schema, by));
            said?.extract(py)
        })
        .map_err(raised)
    }

    /// Sorts a table, or says why not: `sort(table, by, going) -> bytes | str`.
    pub async fn sort(
        self: Arc<Self>,
        table: Vec<u8>,
        by: String,
    ) -> Result<std::result::Result<Vec<RecordBatch>, String>> {
        self.wait(move |devices, py, going| {
            let table = PyBytes::new(py, &table);
            devices.python.call_method1(py, "sort", (table, by, going))
        })
        .await
    }

    /// Columns of a table that stands on devices, in an order if `by` is one: `read(columns, by, going) -> bytes | str`.
    pub async fn read(
        self: Arc<Self>,
        columns: Vec<String>,
        by: Option<String>,
    ) -> Result<std::result::Result<Vec<RecordBatch>, String>> {
        self.wait(move |devices, py, going| {
            devices
                .python
                .call_method1(py, "read", (columns, by, going))
        })
        .await
    }

    /// Calls Python in a thread of its own: those of DataFusion must not wait.
    async fn wait<F>(
        self: Arc<Self>,
        call: F,
    ) -> Result<std::result::Result<Vec<RecordBatch>, String>>
    where
        F: FnOnce(&Devices, Python<'_>, Going) -> PyResult<Py<PyAny>> + Send + 'static,
    {
        let cancelled = Arc::new(AtomicBool::new(false));
        let waiter = Waiter(Arc::clone(&cancelled));
        let (answer, answered) = oneshot::channel();
        thread::spawn(move || {
            let said = Python::attach(|py| {
                let said = call(&self, py, Going { cancelled })?;
                if let Ok(reason) = said.extract::<String>(py) {
                    return Ok(Err(reason));
                }
                said.extract::<Vec<u8>>(py).map(Ok)
            });
            // Nobody hears it if the query was dropped.
            let _ = answer.send(said);
        });
        let said = answered.await;
        drop(waiter);
        let said = said.map_err(|_| DataFusionError::Execution("the sort has ended".into()))?;
        match said.map_err(raised)? {
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
