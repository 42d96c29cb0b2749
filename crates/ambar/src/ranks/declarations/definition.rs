//! Compares definitions between ranks: definitions that differ are never committed.
//!
//! Each rank records its definitions of the arrays, groups and strings that must be equal on all ranks, and sends them
//! with its index. Rank 0 compares them before it adopts the index.

use crate::codec::bound_to_json;
use std::borrow::Cow;
use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::array::ArraySpec;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::ArrayMetadata;
use crate::ranks::layout::Decomposition;
use crate::ranks::{digest, message};

/// Bytes of a property's JSON above which its digest is sent in its place.
const LONGEST: usize = 2048;

/// Bytes that the definitions of a rank may decompress to.
const MOST: usize = 1 << 30;

/// A rank's definition of one array, group or text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::ranks) struct Definition {
    /// `array`, `text` or the kind of a group.
    kind: Cow<'static, str>,
    path: String,
    properties: Map<String, Value>,
}

impl Definition {
    pub fn new(kind: &'static str, path: &str, properties: Map<String, Value>) -> Self {
        let short = |value: Value| match value.to_string() {
            text if text.len() > LONGEST => {
                format!("{} bytes of JSON, digest {}", text.len(), digest(&text)).into()
            }
            _ => value,
        };
        let properties = properties
            .into_iter()
            .map(|(name, value)| (name, short(value)));
        Self {
            kind: kind.into(),
            path: path.trim_start_matches('/').to_owned(),
            properties: properties.collect(),
        }
    }

    /// The definition of an array.
    pub fn array(
        name: &str,
        spec: &ArraySpec,
        metadata: &ArrayMetadata,
        held: Option<&Decomposition>,
    ) -> Result<Self> {
        let mut properties = Map::new();
        // First: the codecs contain it, too, and the first difference is reported.
        let bound = spec.lossy_bound().map(bound_to_json);
        properties.insert("error_bound".into(), bound.into());
        if let Value::Object(document) = metadata.to_json()? {
            properties.extend(document);
        }
        if let Some(held) = held {
            properties.insert("decomposition".into(), held.summary().into());
        }
        if let Some(origins) = &spec.block_origins {
            properties.insert("block_origins".into(), digest(origins).into());
        }
        if let Some(bounds) = &spec.chunk_bounds {
            let bounds: Vec<String> = bounds.iter().map(ToString::to_string).collect();
            properties.insert("chunk_bounds".into(), digest(&bounds).into());
        }
        Ok(Self::new("array", name, properties))
    }

    fn key(&self) -> (&str, &str) {
        (&self.kind, &self.path)
    }

    /// The error for a definition that differs between ranks.
    fn error(&self, message: String) -> Error {
        let message = format!(
            "the {} is not defined alike on all ranks: {message}; define the same arrays, in the same \
             order, on all ranks",
            self.kind
        );
        Error::new(ErrorKind::Invalid, message).at_node(&self.path)
    }
}

/// Serialises the definitions of a rank; equal definitions have equal bytes.
pub(in crate::ranks) fn encode(definitions: &[Definition]) -> Result<Vec<u8>> {
    let text = message::encode(&definitions)?;
    zstd::bulk::compress(&text, 1)
        .map_err(|error| Error::invalid(format!("compressing a rank's definitions: {error}")))
}

/// Deserialises the result of `encode`.
fn decode(bytes: &[u8]) -> Result<Vec<Definition>> {
    let text = zstd::bulk::decompress(bytes, MOST)
        .map_err(|error| Error::invalid(format!("a rank's definitions: {error}")))?;
    message::decode(&text, "list of definitions")
}

/// Rejects definitions of rank `rank` that differ from those of rank 0.
///
/// # Errors
/// `Invalid`, with the array and the difference.
pub(in crate::ranks) fn compare(first: &[u8], other: &[u8], rank: usize) -> Result<()> {
    if first == other {
        return Ok(());
    }
    let (first, other) = (decode(first)?, decode(other)?);
    let missing = |from: &[Definition], all: &[Definition]| {
        let known: HashSet<_> = from.iter().map(Definition::key).collect();
        all.iter().find(|one| !known.contains(&one.key())).cloned()
    };
    if let Some(one) = missing(&other, &first) {
        return Err(one.error(format!("rank {rank} did not define it, rank 0 did")));
    }
    if let Some(one) = missing(&first, &other) {
        return Err(one.error(format!("rank 0 did not define it, rank {rank} did")));
    }
    for (number, (a, b)) in first.iter().zip(&other).enumerate() {
        if a.key() != b.key() {
            let there = other
                .iter()
                .position(|one| one.key() == a.key())
                .unwrap_or(number);
            return Err(a.error(format!(
                "definition number {} on rank 0, number {} on rank {rank}",
                number + 1,
                there + 1
            )));
        }
        if let Some(found) = difference(&a.properties, &b.properties) {
            let Difference {
                property,
                first,
                other,
            } = found;
            return Err(a.error(format!(
                "{property}: {first} on rank 0, {other} on rank {rank}"
            )));
        }
    }
    if first.len() != other.len() {
        let message = format!(
            "rank 0 has {} definitions, rank {rank} has {}; define the same arrays on all ranks",
            first.len(),
            other.len()
        );
        return Err(Error::invalid(message));
    }
    Ok(())
}

/// A property that differs, with its value on rank 0 and on the other rank.
struct Difference {
    property: String,
    first: String,
    other: String,
}

/// The innermost property that differs.
fn difference(a: &Map<String, Value>, b: &Map<String, Value>) -> Option<Difference> {
    let names = a.keys().chain(b.keys());
    for name in names {
        let (x, y) = (a.get(name), b.get(name));
        if x == y {
            continue;
        }
        let inner = match (x, y) {
            (Some(Value::Object(x)), Some(Value::Object(y))) => difference(x, y),
            // Empty attributes are left out.
            (Some(Value::Object(x)), None) => difference(x, &Map::new()),
            (None, Some(Value::Object(y))) => difference(&Map::new(), y),
            (Some(Value::Array(x)), Some(Value::Array(y))) => {
                difference(&numbered(x), &numbered(y)).filter(|_| x.iter().any(Value::is_object))
            }
            _ => None,
        };
        let shown = |value: Option<&Value>| match value {
            None | Some(Value::Null) => "none".to_owned(),
            Some(value) => value.to_string(),
        };
        return Some(match inner {
            Some(inner) => Difference {
                property: format!("{name}.{}", inner.property),
                ..inner
            },
            None => Difference {
                property: name.clone(),
                first: shown(x),
                other: shown(y),
            },
        });
    }
    None
}

/// A list as an object with the indices as keys.
fn numbered(list: &[Value]) -> Map<String, Value> {
    let places = list.iter().enumerate();
    places
        .map(|(at, value)| (at.to_string(), value.clone()))
        .collect()
}
