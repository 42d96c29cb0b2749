//! Opens patches in a store: the attributes of the group, the lists of boxes, the arrays of fields.

mod stored;
pub(super) mod values;

use std::sync::Arc;

use serde_json::Value;

use crate::array::Array;
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::amr::patches::PatchAmr;
use crate::kinds::amr::patches::hierarchy::nest::Nest;
use crate::kinds::amr::patches::hierarchy::{IndexBox, PatchHierarchy, PatchLevel};
use crate::kinds::amr::patches::write::fields::check_names;
use crate::kinds::attributes::{self, names};
use crate::kinds::stored::whole_array;
use crate::limits::Limits;
use crate::metadata::Attributes;
use crate::process::SetOnce;
use crate::store::Store;
use stored::{StoredLevel, StoredValues, boxes};

/// Maximum number of boxes of a level in a store.
const MAX_BOXES: u64 = 1 << 26;

/// Largest side of unit blocks.
const MAX_SIDE: u64 = 256;

impl PatchAmr {
    /// Opens the patches in the group at `path`. Reads metadata and the lists of boxes.
    ///
    /// # Errors
    /// `NotFound` if the group does not exist; `Invalid` if it is of another kind;
    /// `Unsupported` if it was written by a newer version or has another layout; `Corrupt`, `Io`.
    pub fn open(store: &Store, path: &str) -> Result<Self> {
        let path = path.trim_end_matches('/');
        let located = |error: Error| error.at_node(path).in_file(store.location());
        let attributes = attributes::of_kind(store, path, &["amr"])?;
        if attributes.get("layout").and_then(Value::as_str) != Some("patches") {
            return Err(located(Error::unsupported(
                "expected the layout \"patches\", found another one; use a newer version of ambar",
            )));
        }
        let opened = Self::from_attributes(store, path, attributes);
        // An invalid value in the file means that the file is damaged.
        opened.map_err(|error| match error.kind() {
            crate::ErrorKind::Invalid => located(Error::corrupt(format!(
                "{error}; restore the file from a copy"
            ))),
            _ => located(error),
        })
    }

    fn from_attributes(store: &Store, path: &str, attributes: Attributes) -> Result<Self> {
        let own = Value::Object(attributes.clone());
        let fields = names(&attributes, "fields")?;
        let nest = Arc::new(Nest::new(hierarchy(store, path, &own)?)?);
        check_names(&nest, &fields)?;
        let mut levels = Vec::new();
        for (number, level) in list(&own, "levels")?.iter().enumerate() {
            levels.push(stored_level(store, path, (number, level), &own, &fields)?);
        }
        let dtypes = dtypes(&levels, &fields)?;
        let values = StoredValues {
            store: store.clone(),
            path: path.to_owned(),
            ndim: nest.ndim(),
            levels,
        };
        let opened = Self::new(nest, fields, dtypes, Box::new(values), attributes)?;
        if own.get("cells").and_then(Value::as_u64) != Some(opened.rows()) {
            return Err(Error::corrupt(format!(
                "expected the number of leaf cells, {}, in the attribute \"cells\"; restore the file \
                 from a copy",
                opened.rows()
            )));
        }
        Ok(opened)
    }
}

fn missing(what: &str) -> Error {
    Error::corrupt(format!(
        "the attribute {what:?} of the patches is missing or out of range; restore the file from a \
         copy"
    ))
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    let list = value.get(key).and_then(Value::as_array);
    list.ok_or_else(|| missing(key))
}

fn number(value: &Value, key: &str, most: u64) -> Result<u64> {
    let number = value.get(key).and_then(Value::as_u64);
    number.filter(|n| *n <= most).ok_or_else(|| missing(key))
}

/// The `ndim` numbers in `value`, the attribute `key`, followed by `fill` for the unused dimensions.
fn point<T: Copy>(
    value: Option<&Value>,
    key: &str,
    ndim: usize,
    fill: T,
    read: impl Fn(&Value) -> Option<T>,
) -> Result<[T; 3]> {
    let values = value.and_then(Value::as_array);
    let values = values.filter(|values| values.len() == ndim);
    let mut point = [fill; 3];
    for (to, value) in point.iter_mut().zip(values.ok_or_else(|| missing(key))?) {
        *to = read(value).ok_or_else(|| missing(key))?;
    }
    Ok(point)
}

/// The `count` boxes in `listed`, the attribute "box" of a level.
fn listed_boxes(listed: &Value, count: u64, ndim: usize) -> Result<Vec<IndexBox>> {
    let listed = listed.as_array().ok_or_else(|| missing("box"))?;
    if listed.len() as u64 != count {
        return Err(missing("box"));
    }
    let corner = |b: &Value, i: usize| point(b.get(i), "box", ndim, i as i64, Value::as_i64);
    let of_value = |b| {
        Ok(IndexBox {
            lo: corner(b, 0)?,
            hi: corner(b, 1)?,
        })
    };
    listed.iter().map(of_value).collect()
}

/// The hierarchy of the attributes and the lists of boxes, without checks.
fn hierarchy(store: &Store, path: &str, own: &Value) -> Result<PatchHierarchy> {
    let ndim = number(own, "ndim", 3)? as usize;
    if ndim == 0 {
        return Err(missing("ndim"));
    }
    let corner = |key| point(own.get(key), key, ndim, 0.0, Value::as_f64);
    let mut levels = Vec::new();
    for (number, level) in list(own, "levels")?.iter().enumerate() {
        let domain = level.get("domain");
        let bound = |i: usize| {
            let corner = domain.and_then(|domain| domain.get(i));
            point(corner, "domain", ndim, i as i64, Value::as_i64)
        };
        let count = self::number(level, "boxes", MAX_BOXES)?;
        let boxes = match level.get("box") {
            Some(listed) => listed_boxes(listed, count, ndim)?,
            None => {
                let shape = [Some(count), Some(2), Some(ndim as u64)];
                let list = format!("{path}/level_{number}/box");
                let corners = whole_array(store, &list, DataType::Int64, &shape)?;
                boxes(corners.values(), ndim)
            }
        };
        levels.push(PatchLevel {
            domain: IndexBox {
                lo: bound(0)?,
                hi: bound(1)?,
            },
            boxes,
            cell_size: point(
                level.get("cell_size"),
                "cell_size",
                ndim,
                0.0,
                Value::as_f64,
            )?,
            ratio: point(level.get("ratio"), "ratio", ndim, 1, Value::as_i64)?,
        });
    }
    Ok(PatchHierarchy {
        ndim,
        lower: corner("lower")?,
        upper: corner("upper")?,
        levels,
    })
}

fn stored_level(
    store: &Store,
    path: &str,
    (number, level): (usize, &Value),
    own: &Value,
    fields: &[String],
) -> Result<StoredLevel> {
    let ndim = self::number(own, "ndim", 3)? as usize;
    let side = self::number(level, "side", MAX_SIDE)?;
    let blocks = self::number(level, "blocks", u64::MAX)?;
    if side == 0 {
        return Err(missing("side"));
    }
    let dropped = level.get("dropped").and_then(Value::as_array);
    let dropped = dropped.ok_or_else(|| missing("dropped"))?;
    let renamed = |field: &String| own.get("arrays")?.get(field)?.as_str();
    let mut arrays: Vec<Array> = Vec::new();
    for field in fields {
        let name = renamed(field).unwrap_or(field);
        let array = store.array(&format!("{path}/level_{number}/{name}"))?;
        let sides = std::iter::repeat_n(side, ndim);
        let shape: Vec<u64> = std::iter::once(blocks).chain(sides).collect();
        let chunk = array.chunk_shape();
        let like_first = arrays
            .first()
            .is_none_or(|first| first.chunk_shape() == chunk);
        if array.shape() != shape || chunk[1..] != shape[1..] || !like_first {
            return Err(Error::corrupt(format!(
                "expected an array of {shape:?} in chunks of whole blocks, the same for all fields, \
                 found {:?} in chunks of {chunk:?}; restore the file from a copy",
                array.shape()
            ))
            .at_node(array.path())
            .in_file(store.location()));
        }
        let values = chunk.iter().fold(1u64, |all, n| all.saturating_mul(*n));
        let size = array.dtype().size().unwrap_or(1) as u64;
        let limit = store.limits().chunk_bytes;
        Limits::check("a chunk", values.saturating_mul(size), limit)?;
        arrays.push(array);
    }
    let per_chunk = arrays.first().map_or(1, |array| array.chunk_shape()[0]);
    Ok(StoredLevel {
        side: side as usize,
        blocks,
        dropped: fields
            .iter()
            .map(|field| dropped.iter().any(|name| name.as_str() == Some(field)))
            .collect(),
        arrays,
        per_chunk: per_chunk as usize,
        ranges: SetOnce::new(),
    })
}

/// The fields' types, which must be the same on all levels.
fn dtypes(levels: &[StoredLevel], fields: &[String]) -> Result<Vec<DataType>> {
    let first = levels
        .first()
        .map(|level| &level.arrays[..])
        .unwrap_or_default();
    let dtypes: Vec<DataType> = first.iter().map(|array| array.dtype().clone()).collect();
    for level in levels {
        for ((array, dtype), field) in level.arrays.iter().zip(&dtypes).zip(fields) {
            if array.dtype() != dtype || dtype.size().is_none() {
                return Err(Error::corrupt(format!(
                    "expected one type of the field {field:?} on all levels, found {} and {dtype}; \
                     restore the file from a copy",
                    array.dtype()
                ))
                .at_node(array.path()));
            }
        }
    }
    Ok(dtypes)
}
