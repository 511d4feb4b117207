// SPDX-License-Identifier: Apache-2.0

//! A plan node that reads a resident table, in an order if one is requested.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{DataFusionError, Result};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::EquivalenceProperties;
use datafusion_physical_plan::execution_plan::{Boundedness, EmissionType, ReplaceChildrenOptions};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
};
use futures::{StreamExt, TryStreamExt, stream};

use crate::devices::Devices;
use crate::order::as_planned;

/// Reads columns of a table.
#[derive(Debug)]
pub struct NearsideScanExec {
    name: String,
    pub devices: Arc<Devices>,
    schema: SchemaRef,
    /// The order that the table is sorted by on its devices.
    by: Option<String>,
    properties: Arc<PlanProperties>,
}

impl NearsideScanExec {
    pub fn new(devices: Arc<Devices>, schema: SchemaRef) -> NearsideScanExec {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        NearsideScanExec {
            name: format!("NearsideScanExec: {}", devices.label),
            devices,
            schema,
            by: None,
            properties: Arc::new(properties),
        }
    }

    /// The same node with an order. `properties` are those of the plan node that it replaces.
    pub fn sorted(&self, by: &str, properties: Arc<PlanProperties>) -> NearsideScanExec {
        NearsideScanExec {
            name: format!(
                "NearsideScanExec: sorted in place by=[{by}], {}",
                self.devices.label
            ),
            devices: Arc::clone(&self.devices),
            schema: Arc::clone(&self.schema),
            by: Some(by.to_string()),
            properties,
        }
    }
}

async fn read(
    devices: Arc<Devices>,
    schema: SchemaRef,
    by: Option<String>,
) -> Result<Vec<RecordBatch>> {
    let columns = schema.fields().iter().map(|field| field.name().clone());
    match devices.read(columns.collect(), by).await? {
        Ok(batches) => batches
            .iter()
            .map(|batch| as_planned(&schema, batch))
            .collect(),
        Err(reason) => Err(DataFusionError::Execution(reason)),
    }
}

impl DisplayAs for NearsideScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl ExecutionPlan for NearsideScanExec {
    fn name(&self) -> &str {
        &self.name
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = Arc::clone(&self.schema);
        let batches = read(
            Arc::clone(&self.devices),
            Arc::clone(&schema),
            self.by.clone(),
        );
        let batches = stream::once(batches)
            .map_ok(|batches| stream::iter(batches).map(Ok))
            .try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}
