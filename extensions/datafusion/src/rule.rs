// SPDX-License-Identifier: Apache-2.0

//! The optimizer rule that sorts on devices.

use std::fmt;
use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use datafusion_ffi::physical_optimizer::FFI_PhysicalOptimizerRule;
use datafusion_physical_optimizer::PhysicalOptimizerRule;
use datafusion_physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion_physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::declined::DeclinedExec;
use crate::devices::Devices;
use crate::order::Order;
use crate::scan::NearsideScanExec;
use crate::sort::NearsideSortExec;

/// Argument of `SessionContext.add_physical_optimizer_rule`.
#[pyclass(frozen, subclass)]
pub struct Rule {
    devices: Arc<Devices>,
}

#[pymethods]
impl Rule {
    #[new]
    fn new(devices: Py<PyAny>) -> PyResult<Rule> {
        let devices = Devices::new(devices)?;
        Ok(Rule { devices })
    }

    #[pyo3(signature = (*_session))]
    fn __datafusion_physical_optimizer_rule__<'py>(
        &self,
        py: Python<'py>,
        _session: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let rule = Arc::new(SortOnDevices(Arc::clone(&self.devices)));
        let rule = FFI_PhysicalOptimizerRule::new(rule, None);
        PyCapsule::new_with_value(py, rule, c"datafusion_physical_optimizer_rule")
    }
}

struct SortOnDevices(Arc<Devices>);

impl fmt::Debug for SortOnDevices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SortOnDevices")
    }
}

impl PhysicalOptimizerRule for SortOnDevices {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.rewrite(plan)
    }

    fn name(&self) -> &str {
        "nearside_sort"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn with_children(
    plan: Arc<dyn ExecutionPlan>,
    children: Vec<Arc<dyn ExecutionPlan>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    plan.replace_children(children, options)
}

/// The node that produces the rows, without the node that makes scans cooperative.
fn scanned(input: &Arc<dyn ExecutionPlan>) -> &Arc<dyn ExecutionPlan> {
    match (input.name(), &input.children()[..]) {
        ("CooperativeExec", [scan]) => scan,
        _ => input,
    }
}

impl SortOnDevices {
    fn rewrite(&self, plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let (mut children, mut changed) = (Vec::new(), false);
        for child in plan.children() {
            let rewritten = self.rewrite(Arc::clone(child))?;
            changed |= !Arc::ptr_eq(child, &rewritten);
            children.push(rewritten);
        }
        // Nodes of another library are known by their names only.
        match plan.name() {
            "SortExec" | "SortExec(TopK)" => {
                let input = children.swap_remove(0);
                match self.sorted(&plan, &input)? {
                    Ok(sorted) if plan.name() == "SortExec" => Ok(sorted),
                    // The limit of a TopK is not visible here. The TopK takes its rows from all
                    // sorted rows.
                    Ok(sorted) => with_children(plan, vec![sorted]),
                    Err(reason) => {
                        let plan = with_children(plan, vec![input])?;
                        Ok(Arc::new(DeclinedExec::new(plan, &reason)))
                    }
                }
            }
            _ if changed => with_children(plan, children),
            _ => Ok(plan),
        }
    }

    /// The node that produces the rows of `input` in the order of `plan`, or why the CPU sorts.
    fn sorted(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        input: &Arc<dyn ExecutionPlan>,
    ) -> Result<std::result::Result<Arc<dyn ExecutionPlan>, String>> {
        let Some(ordering) = plan.output_ordering() else {
            return Ok(Err("all rows have the same key".into()));
        };
        let order = Order::new(ordering, input.schema())?;
        let properties = Arc::clone(plan.properties());
        if let Some(reason) = self.0.declines(&order.with_keys, &order.by)? {
            return Ok(Err(reason));
        }
        if let Some(scan) = scanned(input).downcast_ref::<NearsideScanExec>()
            && order.is_of_columns()
            && scan.devices.declines(&order.schema, &order.by)?.is_none()
        {
            return Ok(Ok(Arc::new(scan.sorted(&order.by, properties))));
        }
        let (input, devices) = (Arc::clone(input), Arc::clone(&self.0));
        Ok(Ok(Arc::new(NearsideSortExec::new(
            input, order, devices, properties,
        ))))
    }
}
