// SPDX-License-Identifier: Apache-2.0

//! Tables, which cross by the Arrow PyCapsule interface, without a copy.

use std::ffi::CStr;
use std::sync::Arc;

use ::sort::{Collector, RecordBatch, SchemaRef};
use arrow_array::ffi::{from_ffi_and_data_type, FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatchIterator, RecordBatchOptions, StructArray};
use arrow_schema::{ArrowError, DataType, Schema};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::Error;

/// The name of a capsule with a stream.
const STREAM: &CStr = c"arrow_array_stream";

/// A table in memory, for every library that knows the Arrow PyCapsule interface.
#[pyclass(frozen, module = "nearside._native")]
pub struct ArrowTable {
    pub schema: SchemaRef,
    pub batches: Vec<RecordBatch>,
}

impl From<Collector> for ArrowTable {
    fn from(table: Collector) -> ArrowTable {
        ArrowTable {
            schema: table.schema,
            batches: table.batches,
        }
    }
}

#[pymethods]
impl ArrowTable {
    /// The table as a capsule with a stream of batches. A requested schema is ignored, as the
    /// interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches: Vec<_> = self.batches.iter().cloned().map(Ok).collect();
        let batches = RecordBatchIterator::new(batches, self.schema.clone());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, STREAM)
    }
}

/// A table of another library, which its `__arrow_c_stream__` gives.
pub struct ForeignTable(FFI_ArrowArrayStream);

impl ForeignTable {
    /// The table of an object; `None` if the object does not know the interface.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<ForeignTable>> {
        let Some(export) = object.getattr_opt("__arrow_c_stream__")? else {
            return Ok(None);
        };
        let capsule = export.call0()?;
        let stream = capsule.cast::<PyCapsule>()?.pointer_checked(Some(STREAM))?;
        // SAFETY: a capsule of this name holds a stream, which is moved out of it.
        let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr().cast()) };
        Ok(Some(ForeignTable(stream)))
    }

    /// The schema and all batches. Values that contradict their types are an error. Ctrl-C ends the
    /// reading.
    pub fn read(mut self) -> ::sort::Result<(SchemaRef, Vec<RecordBatch>)> {
        let invalid = |text: &str| ArrowError::CDataInterface(text.into());
        // Only the callback that releases a stream says whether that has happened; the others may
        // be stale.
        let (Some(_), Some(get_schema), Some(get_next)) =
            (self.0.release, self.0.get_schema, self.0.get_next)
        else {
            self.0.release = None;
            return Err(invalid("its stream was read before").into());
        };
        let mut schema = FFI_ArrowSchema::empty();
        // SAFETY: the stream is not released, and the callee fills the schema.
        let status = unsafe { get_schema(&mut self.0, &mut schema) };
        self.check(status)?;
        let schema = Arc::new(Schema::try_from(&schema)?);
        let kind = DataType::Struct(schema.fields().clone());
        let mut batches = Vec::new();
        loop {
            let signals = Python::attach(|py| py.check_signals());
            signals.map_err(|e| ::sort::Error::Sink(Box::new(Error::Python(e))))?;
            let mut array = FFI_ArrowArray::empty();
            // SAFETY: as above.
            let status = unsafe { get_next(&mut self.0, &mut array) };
            self.check(status)?;
            if array.is_released() {
                return Ok((schema, batches));
            }
            // SAFETY: the stream promises arrays of its schema.
            let mut data = unsafe { from_ffi_and_data_type(array, kind.clone()) }?;
            data.align_buffers();
            data.validate_full()?;
            let options = RecordBatchOptions::new().with_row_count(Some(data.len()));
            let (_, columns, nulls) = StructArray::from(data).into_parts();
            if nulls.is_some_and(|nulls| nulls.null_count() > 0) {
                return Err(invalid("a row as a whole is null in its stream").into());
            }
            let batch = RecordBatch::try_new_with_options(schema.clone(), columns, &options)?;
            batches.push(batch);
        }
    }

    /// The error of a call of the stream, if it failed.
    fn check(&mut self, status: i32) -> Result<(), ArrowError> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the stream is not released. The text is null, or valid until the next call.
        let text = unsafe {
            let text = self.0.get_last_error.map(|last| last(&mut self.0));
            text.filter(|text| !text.is_null())
                .map(|text| CStr::from_ptr(text).to_string_lossy().into_owned())
        };
        let text = text.unwrap_or_else(|| std::io::Error::from_raw_os_error(status).to_string());
        Err(ArrowError::CDataInterface(text))
    }
}
