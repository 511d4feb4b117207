// SPDX-License-Identifier: Apache-2.0

//! Logical types of Parquet that Arrow's types do not express. They are carried from the input to
//! the output.
//!
//! A table has them as one pair of its metadata, with a key that no file uses. Columns are
//! identified by the numbers of their leaves, as the names of intermediate groups may differ.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};
use arrow_schema::{DataType, Field, Schema};
use parquet::basic::{ConvertedType, EdgeInterpolationAlgorithm, LogicalType, TimeUnit};
use parquet::file::metadata::KeyValue;
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};
use serde_json::{json, Value};

use super::fit;
use crate::Result;

/// The key of the pair.
const KEY: &str = "nearside:logical types";
const WKB: &str = "geoarrow.wkb";
/// Parquet's default coordinate system.
const LONGITUDE_LATITUDE: &str = "OGC:CRS84";
const EDGES: [(&str, EdgeInterpolationAlgorithm); 5] = [
    ("spherical", EdgeInterpolationAlgorithm::SPHERICAL),
    ("vincenty", EdgeInterpolationAlgorithm::VINCENTY),
    ("thomas", EdgeInterpolationAlgorithm::THOMAS),
    ("andoyer", EdgeInterpolationAlgorithm::ANDOYER),
    ("karney", EdgeInterpolationAlgorithm::KARNEY),
];

/// A logical type, and the leaves that it covers.
struct Logical {
    leaves: Range<usize>,
    kind: LogicalType,
}

/// True for the pair of this module, which no file has.
pub fn is_logical_types(pair: &KeyValue) -> bool {
    pair.key == KEY
}

/// The logical types of a file that Arrow does not express, as a pair.
pub fn of_file(schema: &SchemaDescriptor) -> Option<KeyValue> {
    let (mut found, mut next) = (Vec::new(), 0);
    let columns = schema.root_schema().get_fields();
    columns
        .iter()
        .for_each(|c| collect(c, &mut next, &mut found));
    let found: Vec<Value> = found.iter().filter_map(Logical::to_json).collect();
    (!found.is_empty()).then(|| KeyValue::new(KEY.into(), Value::from(found).to_string()))
}

/// Collects the logical types of a column and of its children.
fn collect(column: &Type, next: &mut usize, out: &mut Vec<Logical>) {
    let first = *next;
    match column.is_primitive() {
        true => *next += 1,
        false => {
            let within = column.get_fields().iter();
            within.for_each(|column| collect(column, next, out));
        }
    }
    let info = column.get_basic_info();
    let kind = match (info.logical_type_ref(), info.converted_type()) {
        (Some(kind), _) => Some(kind.clone()),
        (None, ConvertedType::ENUM) => Some(LogicalType::Enum),
        (None, ConvertedType::JSON) => Some(LogicalType::Json),
        (None, ConvertedType::BSON) => Some(LogicalType::Bson),
        _ => None,
    };
    if let Some(kind) = kind {
        let leaves = first..*next;
        out.push(Logical { leaves, kind });
    }
}

impl Logical {
    /// `None`: Arrow's types express it.
    fn to_json(&self) -> Option<Value> {
        let mut value = match &self.kind {
            LogicalType::Enum => json!({"kind": "enum"}),
            LogicalType::Json => json!({"kind": "json"}),
            LogicalType::Bson => json!({"kind": "bson"}),
            LogicalType::Uuid => json!({"kind": "uuid"}),
            LogicalType::Variant {
                specification_version,
            } => json!({"kind": "variant", "version": specification_version}),
            LogicalType::Geometry { crs } => json!({"kind": "geometry", "crs": crs}),
            LogicalType::Geography { crs, algorithm } => {
                json!({"kind": "geography", "crs": crs, "edges": algorithm.and_then(edges)})
            }
            LogicalType::Time {
                is_adjusted_to_u_t_c: true,
                unit,
            } => json!({"kind": "time", "unit": match unit {
                TimeUnit::MILLIS => "ms",
                TimeUnit::MICROS => "us",
                TimeUnit::NANOS => "ns",
            }}),
            _ => return None,
        };
        value["leaves"] = json!([self.leaves.start, self.leaves.end]);
        Some(value)
    }

    fn of_json(value: &Value) -> Option<Logical> {
        let number = |n: usize| usize::try_from(value["leaves"][n].as_u64()?).ok();
        let crs = || value["crs"].as_str().map(String::from);
        let kind = match value["kind"].as_str()? {
            "enum" => LogicalType::Enum,
            "json" => LogicalType::Json,
            "bson" => LogicalType::Bson,
            "uuid" => LogicalType::Uuid,
            "variant" => LogicalType::Variant {
                specification_version: value["version"].as_i64().and_then(|v| v.try_into().ok()),
            },
            "geometry" => LogicalType::Geometry { crs: crs() },
            "geography" => LogicalType::Geography {
                crs: crs(),
                algorithm: value["edges"].as_str().and_then(algorithm),
            },
            "time" => LogicalType::Time {
                is_adjusted_to_u_t_c: true,
                unit: match value["unit"].as_str()? {
                    "ms" => TimeUnit::MILLIS,
                    "us" => TimeUnit::MICROS,
                    _ => TimeUnit::NANOS,
                },
            },
            _ => return None,
        };
        Some(Logical {
            leaves: number(0)?..number(1)?,
            kind,
        })
    }
}

fn edges(algorithm: EdgeInterpolationAlgorithm) -> Option<&'static str> {
    let known = EDGES.iter().find(|(_, known)| *known == algorithm);
    known.map(|(name, _)| *name)
}

fn algorithm(name: &str) -> Option<EdgeInterpolationAlgorithm> {
    let known = EDGES.iter().find(|(known, _)| *known == name);
    known.map(|(_, algorithm)| *algorithm)
}

/// Adds GeoArrow's extension types, which the library does not set.
pub fn with_extensions(schema: &Schema, file: &SchemaDescriptor) -> Schema {
    let columns = file.root_schema().get_fields();
    let fields = schema.fields().iter().zip(columns);
    let fields: Vec<Field> = fields
        .map(|(field, column)| {
            let logical = column.get_basic_info().logical_type_ref();
            let found = logical.and_then(of_geometry);
            let bytes = matches!(
                field.data_type(),
                DataType::Binary | DataType::LargeBinary | DataType::BinaryView
            );
            let mut field = field.as_ref().clone();
            if let (Some(found), true, None) = (found, bytes, field.extension_type_name()) {
                let metadata = field.metadata_mut();
                metadata.insert(EXTENSION_TYPE_NAME_KEY.into(), WKB.into());
                metadata.insert(EXTENSION_TYPE_METADATA_KEY.into(), found.to_string());
            }
            field
        })
        .collect();
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

/// GeoArrow's metadata of a logical type.
fn of_geometry(kind: &LogicalType) -> Option<Value> {
    let (crs, edges) = match kind {
        LogicalType::Geometry { crs } => (crs, None),
        LogicalType::Geography { crs, algorithm } => {
            (crs, Some(edges(algorithm.unwrap_or_default())?))
        }
        _ => return None,
    };
    let mut found = json!({});
    match crs.as_deref().unwrap_or_default() {
        "" => {
            found["crs"] = LONGITUDE_LATITUDE.into();
            found["crs_type"] = "authority_code".into();
        }
        crs => match serde_json::from_str(crs) {
            Ok(Value::Object(object)) => {
                found["crs"] = Value::Object(object);
                found["crs_type"] = "projjson".into();
            }
            _ => found["crs"] = crs.into(),
        },
    }
    if let Some(edges) = edges {
        found["edges"] = edges.into();
    }
    Some(found)
}

/// The logical type of an extension type. The library knows some, but only with the metadata that
/// it writes itself.
fn of_extension(field: &Field) -> Option<LogicalType> {
    match field.extension_type_name() {
        Some("arrow.uuid") => return Some(LogicalType::Uuid),
        Some("arrow.json") => return Some(LogicalType::Json),
        Some(WKB) => {}
        _ => return None,
    }
    let found = field.extension_type_metadata().unwrap_or_default();
    let found: Value = match found {
        "" => json!({}),
        found => serde_json::from_str(found).ok()?,
    };
    let crs = match (&found["crs"], found["crs_type"].as_str()) {
        // pyarrow writes it like this.
        (Value::Null, _) => None,
        (Value::String(number), Some("srid")) if !number.starts_with("srid:") => {
            Some(format!("srid:{number}"))
        }
        (Value::String(crs), _) if crs == LONGITUDE_LATITUDE => None,
        (Value::String(crs), _) => Some(crs.clone()),
        (object, _) => Some(object.to_string()),
    };
    match found["edges"].as_str() {
        None | Some("planar") => Some(LogicalType::Geometry { crs }),
        Some(edges) => Some(LogicalType::Geography {
            crs,
            algorithm: Some(algorithm(edges)?),
        }),
    }
}

/// The schema of a file for these columns: the pair's logical types, and types of Parquet where the
/// library writes plain numbers.
pub fn to_file(
    derived: &SchemaDescriptor,
    schema: &Schema,
    metadata: &[KeyValue],
) -> Result<SchemaDescriptor> {
    let pair = metadata.iter().find(|pair| is_logical_types(pair));
    let found: Option<Value> =
        pair.and_then(|pair| serde_json::from_str(pair.value.as_ref()?).ok());
    let found = found.as_ref().and_then(Value::as_array);
    let found: Vec<Logical> = found
        .into_iter()
        .flatten()
        .filter_map(Logical::of_json)
        .collect();
    let leaves = fit::leaves(schema);
    let mut next = 0;
    let root = derived.root_schema();
    let root = rebuilt(root, &mut next, &found, &leaves)?;
    Ok(SchemaDescriptor::new(root))
}

/// True if a column can have this logical type.
fn takes(column: &Type, kind: &LogicalType) -> bool {
    use parquet::basic::Type::*;
    if column.is_group() {
        return matches!(kind, LogicalType::Variant { .. });
    }
    let length = match column {
        Type::PrimitiveType { type_length, .. } => *type_length,
        Type::GroupType { .. } => return false,
    };
    let known = column.get_basic_info().logical_type_ref();
    match (kind, column.get_physical_type()) {
        (LogicalType::Uuid, FIXED_LEN_BYTE_ARRAY) => length == 16,
        (LogicalType::Time { unit, .. }, INT32 | INT64) => {
            matches!(known, Some(LogicalType::Time { unit: same, .. }) if same == unit)
        }
        (
            LogicalType::Enum
            | LogicalType::Json
            | LogicalType::Bson
            | LogicalType::Geometry { .. }
            | LogicalType::Geography { .. },
            BYTE_ARRAY,
        ) => true,
        _ => false,
    }
}

fn rebuilt(
    column: &Type,
    next: &mut usize,
    found: &[Logical],
    leaves: &[&Field],
) -> parquet::errors::Result<TypePtr> {
    let info = column.get_basic_info();
    let first = *next;
    let id = info.has_id().then(|| info.id());
    let known = || info.logical_type_ref().cloned();
    // Of nested groups with the same leaves, the type belongs to the innermost one.
    let named = |leaves: Range<usize>, within: &[TypePtr]| {
        let of = found.iter().find(|t| t.leaves == leaves);
        let kind = of.map(|t| t.kind.clone())?;
        (takes(column, &kind) && within.len() != 1).then_some(kind)
    };
    match column {
        Type::GroupType { fields, .. } => {
            let fields: parquet::errors::Result<Vec<TypePtr>> = fields
                .iter()
                .map(|column| rebuilt(column, next, found, leaves))
                .collect();
            let fields = fields?;
            let kind = named(first..*next, &fields).or_else(known);
            let mut group = Type::group_type_builder(column.name())
                .with_converted_type(info.converted_type())
                .with_logical_type(kind)
                .with_fields(fields)
                .with_id(id);
            if info.has_repetition() {
                group = group.with_repetition(info.repetition());
            }
            group.build().map(Arc::new)
        }
        Type::PrimitiveType {
            physical_type,
            type_length,
            scale,
            precision,
            ..
        } => {
            *next += 1;
            let field = leaves.get(first);
            let mut physical = *physical_type;
            let kind = match field.map(|field| field.data_type()) {
                // Days. The library writes them as milliseconds without a logical type.
                Some(DataType::Date64) => {
                    physical = parquet::basic::Type::INT32;
                    Some(LogicalType::Date)
                }
                _ => field
                    .and_then(|field| of_extension(field))
                    .filter(|kind| takes(column, kind)),
            };
            let kind = named(first..*next, &[]).or(kind);
            let converted = match kind {
                Some(_) => ConvertedType::NONE,
                None => info.converted_type(),
            };
            Type::primitive_type_builder(column.name(), physical)
                .with_repetition(info.repetition())
                .with_converted_type(converted)
                .with_logical_type(kind.or_else(known))
                .with_length(*type_length)
                .with_precision(*precision)
                .with_scale(*scale)
                .with_id(id)
                .build()
                .map(Arc::new)
        }
    }
}
