//! The metadata of an array: parses and checks its document, and writes it.

use serde_json::{Value, json};
use zarrs_metadata::v3::{ArrayMetadataV3, MetadataV3};

use super::{Attributes, fill, with_loss, without_loss};
use crate::codec::CodecChain;
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::limits::{Limits, checked_product};

/// The contents of an array's document.
#[derive(Clone, Debug)]
pub(crate) struct ArrayMetadata {
    pub dtype: DataType,
    pub shape: Vec<u64>,
    /// Length of a chunk, the unit of decoding, in each dimension.
    pub chunk_shape: Vec<u64>,
    pub sharding: Option<Sharding>,
    pub keys: KeyEncoding,
    /// The codecs of a chunk.
    pub chain: CodecChain,
    /// One value, native byte order.
    pub fill_value: Vec<u8>,
    /// One name for each dimension; empty without names.
    pub dimension_names: Vec<Option<String>>,
    /// The attributes except those that state the loss, which are derived from the chain.
    pub attributes: Attributes,
}

/// How chunks are combined into shards.
#[derive(Clone, Debug)]
pub(crate) struct Sharding {
    /// Length of a shard in each dimension, a multiple of the chunk's.
    pub shape: Vec<u64>,
    pub location: IndexLocation,
    /// The codecs of the index, which add at most checksums to its length.
    pub index_chain: CodecChain,
}

/// The position of the index in its shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexLocation {
    Start,
    End,
}

/// How the keys of chunks (or shards) are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyEncoding {
    /// Whether keys begin with `c` (Zarr v3) or not (Zarr v2).
    pub prefixed: bool,
    pub separator: char,
}

impl KeyEncoding {
    /// The key encoding that this library writes.
    pub const DEFAULT: Self = Self {
        prefixed: true,
        separator: '/',
    };

    /// The key of the chunk (or shard) at `coordinates` of the array `name`.
    pub fn key(self, name: &str, coordinates: &[u64]) -> String {
        use std::fmt::Write as _;
        let mut key = String::with_capacity(name.len() + 16);
        key.push_str(name);
        if !name.is_empty() {
            key.push('/');
        }
        if self.prefixed {
            key.push('c');
        } else if coordinates.is_empty() {
            key.push('0');
        }
        for (dimension, coordinate) in coordinates.iter().enumerate() {
            if self.prefixed || dimension > 0 {
                key.push(self.separator);
            }
            // Writing to a String cannot fail.
            let _ = write!(key, "{coordinate}");
        }
        key
    }
}

impl KeyEncoding {
    /// The coordinates of the chunk (or shard) of the array `name` with this key; `None` if the grid of
    /// these lengths has no such chunk.
    pub fn coordinates(self, name: &str, key: &str, grid: &[u64]) -> Option<Vec<u64>> {
        let rest = match name {
            "" => key,
            _ => key.strip_prefix(name)?.strip_prefix('/')?,
        };
        let digits = match (self.prefixed, grid) {
            (true, []) => return (rest == "c").then(Vec::new),
            (true, _) => rest.strip_prefix('c')?.strip_prefix(self.separator)?,
            (false, []) => return (rest == "0").then(Vec::new),
            (false, _) => rest,
        };
        let numbers = digits.split(self.separator).map(|digits| digits.parse());
        let coordinates: Vec<u64> = numbers.collect::<std::result::Result<_, _>>().ok()?;
        let inside = coordinates.len() == grid.len()
            && coordinates.iter().zip(grid).all(|(at, length)| at < length);
        // Only one spelling of a number is a key.
        (inside && self.key(name, &coordinates) == key).then_some(coordinates)
    }
}

impl ArrayMetadata {
    /// Parses and checks an array's document.
    ///
    /// # Errors
    /// `Corrupt` if it violates the specification; `Unsupported` for extensions that this version lacks;
    /// `Limit`.
    pub fn parse(document: &str, limits: &Limits) -> Result<Self> {
        let metadata: ArrayMetadataV3 = serde_json::from_str(document).map_err(|error| {
            Error::corrupt(format!(
                "invalid array metadata: {error}; restore the store from a copy"
            ))
        })?;
        if let Some(transformer) = metadata.storage_transformers.first() {
            let name = transformer.name();
            return Err(Error::unsupported(format!(
                "storage transformer {name:?} is not known to this version of ambar"
            )));
        }
        if let Some((name, _)) = metadata
            .additional_fields
            .iter()
            .find(|(_, field)| field.must_understand())
        {
            return Err(Error::unsupported(format!(
                "metadata field {name:?} must be understood, but is not known to this version of ambar"
            )));
        }
        let data_type = serde_json::to_value(&metadata.data_type)
            .map_err(|error| Error::corrupt(format!("invalid data type: {error}")))?;
        let dtype = DataType::from_json(&data_type)?;
        let Division {
            codecs,
            chunk_shape,
            sharding,
        } = division(&metadata, limits)?;
        let chain = CodecChain::from_metadata(&codecs, &dtype, chunk_shape.len())?;
        let array = Self {
            attributes: without_loss(metadata.attributes, chain.error_bound()),
            chain,
            fill_value: fill::parse(&dtype, &metadata.fill_value)?,
            keys: key_encoding(&metadata.chunk_key_encoding)?,
            dimension_names: metadata.dimension_names.unwrap_or_default(),
            shape: metadata.shape,
            dtype,
            chunk_shape,
            sharding,
        };
        array.check(limits)?;
        Ok(array)
    }

    /// Checks all lengths from which sizes are computed later.
    fn check(&self, limits: &Limits) -> Result<()> {
        let dimensions = self.shape.len();
        if dimensions > limits.dimensions {
            return Err(Error::limit(format!(
                "the array has {dimensions} dimensions, over the limit of {}",
                limits.dimensions
            )));
        }
        let named = self.dimension_names.len();
        if self.chunk_shape.len() != dimensions || (named != 0 && named != dimensions) {
            return Err(Error::corrupt(format!(
                "shape, chunk shape and dimension names disagree on the number of dimensions: \
                 {dimensions}, {} and {named}",
                self.chunk_shape.len()
            )));
        }
        if self.chunk_shape.contains(&0) {
            return Err(Error::corrupt(
                "a chunk has length 0 in a dimension; expected at least 1",
            ));
        }
        let size = self.dtype.size().unwrap_or(1) as u64;
        let bytes = checked_product(&self.shape, size);
        let chunk = checked_product(&self.chunk_shape, size);
        // Memory does not limit the array: any part of it can be read.
        if bytes.is_none_or(|bytes| bytes > limits.array_bytes) {
            return Err(Error::limit(format!(
                "the shape {:?} declares an array over the limit of {} bytes",
                self.shape, limits.array_bytes
            )));
        }
        Limits::check("a chunk", chunk.unwrap_or(u64::MAX), limits.chunk_bytes)?;
        if let Some(sharding) = &self.sharding {
            let fits = sharding.shape.len() == dimensions
                && (sharding.shape.iter().zip(&self.chunk_shape))
                    .all(|(shard, chunk)| *shard > 0 && shard % chunk == 0);
            if !fits {
                return Err(Error::corrupt(format!(
                    "the shard shape {:?} is not a multiple of the chunk shape {:?}",
                    sharding.shape, self.chunk_shape
                )));
            }
            let per_shard = (sharding.shape.iter().zip(&self.chunk_shape)).map(|(s, c)| s / c);
            let index = checked_product(&per_shard.collect::<Vec<_>>(), 16);
            let limit = limits.shard_index_bytes;
            Limits::check("a shard's index", index.unwrap_or(u64::MAX), limit)?;
        }
        Ok(())
    }

    /// The array's document.
    ///
    /// # Errors
    /// `Invalid` if the fill value is not a value of the type.
    pub fn to_json(&self) -> Result<Value> {
        let inner = self.chain.to_json(&self.dtype);
        let (grid, codecs) = match &self.sharding {
            None => (&self.chunk_shape, inner),
            Some(sharding) => {
                let location = match sharding.location {
                    IndexLocation::Start => "start",
                    IndexLocation::End => "end",
                };
                let codec = json!([{"name": "sharding_indexed", "configuration": {
                    "chunk_shape": self.chunk_shape,
                    "codecs": inner,
                    "index_codecs": sharding.index_chain.to_json(&DataType::UInt64),
                    "index_location": location,
                }}]);
                (&sharding.shape, codec)
            }
        };
        let mut document = json!({
            "zarr_format": 3,
            "node_type": "array",
            "shape": self.shape,
            "data_type": self.dtype.to_json(),
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": grid}},
            "chunk_key_encoding": {"name": "default"},
            "fill_value": fill::to_json(&self.dtype, &self.fill_value)?,
            "codecs": codecs,
        });
        let attributes = with_loss(&self.attributes, self.chain.error_bound());
        if !attributes.is_empty() {
            document["attributes"] = json!(attributes);
        }
        if !self.dimension_names.is_empty() {
            document["dimension_names"] = json!(self.dimension_names);
        }
        Ok(document)
    }

    /// The default fill value.
    pub fn default_fill(dtype: &DataType) -> Vec<u8> {
        fill::zero(dtype)
    }
}

#[derive(serde::Deserialize)]
struct GridConfiguration {
    chunk_shape: Vec<u64>,
}

#[derive(serde::Deserialize)]
struct ShardingConfiguration {
    chunk_shape: Vec<u64>,
    codecs: Vec<MetadataV3>,
    index_codecs: Vec<MetadataV3>,
    #[serde(default = "at_end")]
    index_location: String,
}

fn at_end() -> String {
    "end".to_owned()
}

/// The division of an array into chunks and shards.
struct Division {
    /// The codecs of a chunk.
    codecs: Vec<MetadataV3>,
    chunk_shape: Vec<u64>,
    sharding: Option<Sharding>,
}

fn division(metadata: &ArrayMetadataV3, limits: &Limits) -> Result<Division> {
    let grid = &metadata.chunk_grid;
    if grid.name() != "regular" {
        return Err(Error::unsupported(format!(
            "chunk grid {:?} is not known to this version of ambar; expected \"regular\"",
            grid.name()
        )));
    }
    let invalid = |what: &str, error| Error::corrupt(format!("invalid {what}: {error}"));
    let GridConfiguration { chunk_shape: outer } = grid
        .to_typed_configuration()
        .map_err(|error| invalid("chunk grid", error.to_string()))?;
    let codec = match metadata.codecs.as_slice() {
        [codec] if codec.name() == "sharding_indexed" => codec,
        codecs => {
            return Ok(Division {
                codecs: codecs.to_vec(),
                chunk_shape: outer,
                sharding: None,
            });
        }
    };
    let configuration: ShardingConfiguration = codec
        .to_typed_configuration()
        .map_err(|error| invalid("sharding", error.to_string()))?;
    let location = match configuration.index_location.as_str() {
        "end" => IndexLocation::End,
        "start" => IndexLocation::Start,
        other => {
            return Err(Error::corrupt(format!(
                "the index of shards has the location {other:?}; expected \"start\" or \"end\""
            )));
        }
    };
    // An index has one dimension more than the array.
    let (index_codecs, dimensions) = (&configuration.index_codecs, outer.len() + 1);
    let index_chain = CodecChain::from_metadata(index_codecs, &DataType::UInt64, dimensions)?;
    if index_chain.fixed_overhead().is_none() {
        return Err(Error::unsupported(
            "the index of shards is compressed; expected the codecs `bytes` and `crc32c`",
        ));
    }
    if outer.len() > limits.dimensions {
        return Err(Error::limit(format!(
            "the array has {} dimensions, over the limit of {}",
            outer.len(),
            limits.dimensions
        )));
    }
    let sharding = Sharding {
        shape: outer,
        location,
        index_chain,
    };
    Ok(Division {
        codecs: configuration.codecs,
        chunk_shape: configuration.chunk_shape,
        sharding: Some(sharding),
    })
}

fn key_encoding(encoding: &MetadataV3) -> Result<KeyEncoding> {
    let prefixed = match encoding.name() {
        "default" => true,
        "v2" => false,
        other => {
            return Err(Error::unsupported(format!(
                "chunk key encoding {other:?} is not known to this version of ambar"
            )));
        }
    };
    let separator = encoding
        .configuration()
        .and_then(|options| options.get("separator"));
    let separator = match separator.map(|value| value.as_str()) {
        None if prefixed => '/',
        None => '.',
        Some(Some("/")) => '/',
        Some(Some(".")) => '.',
        Some(_) => {
            return Err(Error::corrupt(
                "the separator of chunk keys is invalid; expected \"/\" or \".\"",
            ));
        }
    };
    Ok(KeyEncoding {
        prefixed,
        separator,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_coordinates_are_inverse() {
        let v2 = KeyEncoding {
            prefixed: false,
            separator: '.',
        };
        for encoding in [KeyEncoding::DEFAULT, v2] {
            for name in ["", "a", "deep/er"] {
                let grids: [&[u64]; 3] = [&[], &[7], &[3, 12]];
                for grid in grids {
                    let last: Vec<u64> = grid.iter().map(|length| length - 1).collect();
                    let key = encoding.key(name, &last);
                    assert_eq!(encoding.coordinates(name, &key, grid), Some(last), "{key}");
                    let outside = encoding.key(name, grid);
                    let found = encoding.coordinates(name, &outside, grid);
                    assert!(grid.is_empty() || found.is_none(), "{outside}");
                }
            }
        }
        for key in [
            "a/c/01",
            "a/c/+1",
            "a/c/",
            "a/c",
            "a/c/1/1",
            "b/c/1",
            "ac/1",
            "a/x/1",
            "a/zarr.json",
        ] {
            assert_eq!(
                KeyEncoding::DEFAULT.coordinates("a", key, &[5]),
                None,
                "{key}"
            );
        }
    }
}
