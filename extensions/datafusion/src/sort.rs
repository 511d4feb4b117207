// SPDX-License-Identifier: Apache-2.0

//! A plan node that sorts each of its partitions on devices.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{DataFusionError, Result};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties,
};
use futures::{StreamExt, TryStreamExt, stream};

use crate::devices::{ArrowTable, Devices};
use crate::order::Order;

/// Sorts on devices. The CPU sorts partitions that the devices decline; the reports of
/// `nearside.sql` have the reason.
#[derive(Debug)]
pub struct NearsideSortExec {
    /// EXPLAIN shows only the name of another library's node.
    name: String,
    input: Arc<dyn ExecutionPlan>,
    order: Order,
    devices: Arc<Devices>,
    properties: Arc<PlanProperties>,
}

impl NearsideSortExec {
    /// Sorts `input` with the properties of a node that it replaces.
    pub fn new(
        input: Arc<dyn ExecutionPlan>,
        order: Order,
        devices: Arc<Devices>,
        properties: Arc<PlanProperties>,
    ) -> NearsideSortExec {
        NearsideSortExec {
            name: format!("NearsideSortExec: by=[{}], {}", order.by, devices.label),
            input,
            order,
            devices,
            properties,
        }
    }
}

async fn sort(
    devices: Arc<Devices>,
    order: Order,
    input: SendableRecordBatchStream,
) -> Result<Vec<RecordBatch>> {
    let batches: Vec<RecordBatch> = input.try_collect().await?;
    let with_keys = batches.iter().map(|batch| order.with_keys(batch));
    let table = ArrowTable {
        schema: Arc::clone(&order.with_keys),
        batches: with_keys.collect::<Result<_>>()?,
    };
    match devices.sort(table, order.by.clone()).await? {
        Ok(sorted) => sorted.iter().map(|batch| order.as_planned(batch)).collect(),
        Err(_) => Ok(vec![order.sort_on_cpu(&batches)?]),
    }
}

impl DisplayAs for NearsideSortExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl ExecutionPlan for NearsideSortExec {
    fn name(&self) -> &str {
        &self.name
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = <[_; 1]>::try_from(children)
            .map_err(|_| DataFusionError::Internal(format!("{} has one input", self.name)))?;
        let (order, devices) = (self.order.clone(), Arc::clone(&self.devices));
        let properties = Arc::clone(&self.properties);
        Ok(Arc::new(NearsideSortExec::new(
            input, order, devices, properties,
        )))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        use datafusion_physical_plan::execution_plan::ChildrenPropertiesMode::Recompute;
        self.replace_children(children, ReplaceChildrenOptions::new(Recompute))
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let (devices, order) = (Arc::clone(&self.devices), self.order.clone());
        let sorted = stream::once(sort(devices, order, input))
            .map_ok(|batches| stream::iter(batches).map(Ok))
            .try_flatten();
        let schema = Arc::clone(&self.order.schema);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, sorted)))
    }
}
