// SPDX-License-Identifier: Apache-2.0

//! The order of a plan, as columns of a table.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::compute::{SortColumn, lexsort_to_indices, take_record_batch};
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion_common::Result;
use datafusion_physical_expr::{LexOrdering, PhysicalSortExpr};

/// Prefix of the names of computed key columns.
const KEY: &str = "order of the plan";

/// An order, and a table with a column for each of its keys.
#[derive(Clone, Debug)]
pub struct Order {
    keys: Vec<PhysicalSortExpr>,
    /// The keys that are expressions.
    computed: Vec<PhysicalSortExpr>,
    /// Schema of the input and the output.
    pub schema: SchemaRef,
    /// The same schema, followed by a column for each computed key.
    pub with_keys: SchemaRef,
    /// The order as text, as in `nearside sort --by`.
    pub by: String,
}

/// The column that a key is, if it is a plain column. An expression of another library is known by
/// its text only. That text is ambiguous: `a@0 = z@1` is a column "a@0 = z", or a comparison of "a"
/// with 'z@1'. So expressions with children are never columns.
fn column<'a>(key: &PhysicalSortExpr, schema: &'a Schema) -> Option<&'a str> {
    if !key.expr.children().is_empty() {
        return None;
    }
    let text = key.expr.to_string();
    let mut fields = schema.fields().iter().enumerate();
    let (_, field) = fields.find(|(at, field)| text == format!("{}@{at}", field.name()))?;
    let alike = schema.fields().iter().filter(|f| f.name() == field.name());
    (alike.count() == 1).then_some(field.name())
}

impl Order {
    pub fn new(ordering: &LexOrdering, schema: SchemaRef) -> Result<Order> {
        let keys: Vec<PhysicalSortExpr> = ordering.iter().cloned().collect();
        let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
        let (mut by, mut computed) = (Vec::new(), Vec::new());
        for key in &keys {
            let name = match column(key, &schema) {
                Some(name) => name.to_string(),
                None => {
                    let free = |name: &String| fields.iter().all(|field| field.name() != name);
                    let mut names = (1..).map(|n| format!("{KEY} {n}"));
                    let name = names.find(free).unwrap_or_default();
                    let data_type = key.expr.data_type(&schema)?;
                    fields.push(Arc::new(Field::new(&name, data_type, true)));
                    computed.push(key.clone());
                    name
                }
            };
            let name = name.replace('"', "\"\"");
            let direction = match key.options.descending {
                true => "desc",
                false => "asc",
            };
            let nulls = match key.options.nulls_first {
                true => "first",
                false => "last",
            };
            by.push(format!("\"{name}\" {direction} nulls {nulls}"));
        }
        let with_keys = Schema::new_with_metadata(fields, schema.metadata().clone());
        Ok(Order {
            keys,
            computed,
            schema,
            with_keys: Arc::new(with_keys),
            by: by.join(", "),
        })
    }

    /// True if all keys are columns.
    pub fn is_of_columns(&self) -> bool {
        self.computed.is_empty()
    }

    /// A batch with its computed keys.
    pub fn with_keys(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut columns = batch.columns().to_vec();
        for key in &self.computed {
            columns.push(key.evaluate_to_sort_column(batch)?.values);
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.with_keys), columns)?)
    }

    /// A batch without computed keys.
    pub fn as_planned(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        as_planned(&self.schema, batch)
    }

    /// Sorts on the CPU.
    pub fn sort_on_cpu(&self, batches: &[RecordBatch]) -> Result<RecordBatch> {
        let batch = arrow::compute::concat_batches(&self.schema, batches)?;
        let keys = self
            .keys
            .iter()
            .map(|key| key.evaluate_to_sort_column(&batch));
        let keys: Vec<SortColumn> = keys.collect::<Result<_>>()?;
        let order = lexsort_to_indices(&keys, None)?;
        Ok(take_record_batch(&batch, &order)?)
    }
}

/// The first columns of a batch, as the schema has them.
pub fn as_planned(schema: &SchemaRef, batch: &RecordBatch) -> Result<RecordBatch> {
    let columns = batch.columns()[..schema.fields().len()].to_vec();
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(
        Arc::clone(schema),
        columns,
        &rows,
    )?)
}
