// SPDX-License-Identifier: Apache-2.0

//! Resident tables for queries.

use std::sync::Arc;

use arrow::array::RecordBatchReader;
use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use datafusion_catalog::{Session, TableProvider};
use datafusion_common::Result;
use datafusion_expr::{Expr, TableType};
use datafusion_ffi::proto::logical_extension_codec::FFI_LogicalExtensionCodec;
use datafusion_ffi::table_provider::FFI_TableProvider;
use datafusion_physical_plan::ExecutionPlan;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::devices::{self, Devices};
use crate::scan::NearsideScanExec;

/// Argument of `SessionContext.register_table`.
#[pyclass(frozen, subclass)]
pub struct Provider {
    table: Arc<Table>,
}

#[derive(Debug)]
struct Table {
    devices: Arc<Devices>,
    schema: SchemaRef,
}

#[pymethods]
impl Provider {
    /// A table. `empty` has its columns and no rows.
    #[new]
    fn new(devices: Py<PyAny>, empty: &Bound<'_, PyAny>) -> PyResult<Provider> {
        let schema = devices::open(empty)?.schema();
        let devices = Devices::new(devices)?;
        Ok(Provider {
            table: Arc::new(Table { devices, schema }),
        })
    }

    fn __datafusion_table_provider__<'py>(
        &self,
        py: Python<'py>,
        session: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let codec = session.call_method0("__datafusion_logical_extension_codec__")?;
        let codec = codec.cast::<PyCapsule>()?;
        let codec = codec.pointer_checked(Some(c"datafusion_logical_extension_codec"))?;
        // SAFETY: a capsule of this name holds one, of the version that tools/peers.in pins.
        let codec = unsafe { codec.cast::<FFI_LogicalExtensionCodec>().as_ref() }.clone();
        let table = Arc::clone(&self.table) as Arc<dyn TableProvider>;
        let table = FFI_TableProvider::new_with_ffi_codec(table, false, None, codec);
        PyCapsule::new_with_value(py, table, c"datafusion_table_provider")
    }
}

#[async_trait]
impl TableProvider for Table {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = match projection {
            Some(columns) => Arc::new(Schema::project(&self.schema, columns)?),
            None => Arc::clone(&self.schema),
        };
        let devices = Arc::clone(&self.devices);
        Ok(Arc::new(NearsideScanExec::new(devices, schema)))
    }
}
