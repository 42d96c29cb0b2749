//! Types of values, and their names in Zarr v3 metadata.
//!
//! Sources: Zarr v3 core specification, section "Data types"; zarr-extensions `fixed_length_utf32`,
//! `null_terminated_bytes`, `numpy.datetime64`, `numpy.timedelta64`, `string` and `bytes`, as
//! zarr-python 3.1 writes them.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};

use crate::error::{Error, Result};

/// The type of an array's values. In memory, values are in native byte order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DataType {
    /// One byte, 0 or 1.
    Bool,
    /// 8-bit signed integer.
    Int8,
    /// 16-bit signed integer.
    Int16,
    /// 32-bit signed integer.
    Int32,
    /// 64-bit signed integer.
    Int64,
    /// 8-bit unsigned integer.
    UInt8,
    /// 16-bit unsigned integer.
    UInt16,
    /// 32-bit unsigned integer.
    UInt32,
    /// 64-bit unsigned integer.
    UInt64,
    /// IEEE 754 half precision.
    Float16,
    /// IEEE 754 single precision.
    Float32,
    /// IEEE 754 double precision.
    Float64,
    /// Two single-precision numbers: real, imaginary.
    Complex64,
    /// Two double-precision numbers: real, imaginary.
    Complex128,
    /// UTF-32 text of at most `bytes / 4` code points, padded with zeros (NumPy's `U`).
    FixedUtf32 {
        /// Size of a value in bytes, a multiple of 4.
        bytes: usize,
    },
    /// Bytes, padded with zeros (NumPy's `S`).
    FixedBytes {
        /// Size of a value in bytes.
        bytes: usize,
    },
    /// Moments as 64-bit counts since 1970 of `scale` units (NumPy's `M8`).
    DateTime64 {
        /// NumPy's abbreviation: `Y M W D h m s ms us ns ps fs as` or `generic`.
        unit: TimeUnit,
        /// Number of units that one count represents.
        scale: u32,
    },
    /// Durations as 64-bit counts of `scale` units (NumPy's `m8`).
    TimeDelta64 {
        /// As for `DateTime64`.
        unit: TimeUnit,
        /// Number of units that one count represents.
        scale: u32,
    },
    /// UTF-8 text of any length.
    String,
    /// Bytes of any length.
    Bytes,
}

/// Largest number of units that one count represents in NumPy.
const MAX_SCALE: u32 = i32::MAX as u32;

/// Largest size in bytes of a value of fixed size.
const MAX_LENGTH: usize = 1 << 20;

/// A unit of time, by NumPy's abbreviation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeUnit(&'static str);

impl TimeUnit {
    const ALL: [&'static str; 14] = [
        "generic", "Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as",
    ];

    /// The unit of NumPy's abbreviation `name`, if there is one.
    pub fn parse(name: &str) -> Option<Self> {
        // NumPy spells microseconds "us"; zarr-python also accepts the Greek letter.
        let name = if name == "μs" { "us" } else { name };
        Self::ALL
            .iter()
            .find(|unit| **unit == name)
            .map(|unit| Self(unit))
    }

    /// NumPy's abbreviation.
    pub fn name(self) -> &'static str {
        self.0
    }
}

impl DataType {
    const PLAIN: [(&'static str, DataType); 14] = [
        ("bool", DataType::Bool),
        ("int8", DataType::Int8),
        ("int16", DataType::Int16),
        ("int32", DataType::Int32),
        ("int64", DataType::Int64),
        ("uint8", DataType::UInt8),
        ("uint16", DataType::UInt16),
        ("uint32", DataType::UInt32),
        ("uint64", DataType::UInt64),
        ("float16", DataType::Float16),
        ("float32", DataType::Float32),
        ("float64", DataType::Float64),
        ("complex64", DataType::Complex64),
        ("complex128", DataType::Complex128),
    ];

    /// Bytes of one value; `None` if values differ in length.
    pub fn size(&self) -> Option<usize> {
        Some(match self {
            Self::Bool | Self::Int8 | Self::UInt8 => 1,
            Self::Int16 | Self::UInt16 | Self::Float16 => 2,
            Self::Int32 | Self::UInt32 | Self::Float32 => 4,
            Self::Int64 | Self::UInt64 | Self::Float64 | Self::Complex64 => 8,
            Self::DateTime64 { .. } | Self::TimeDelta64 { .. } => 8,
            Self::Complex128 => 16,
            Self::FixedUtf32 { bytes } | Self::FixedBytes { bytes } => *bytes,
            Self::String | Self::Bytes => return None,
        })
    }

    /// Bytes of the words whose order depends on the machine (a complex number's are its parts).
    pub fn word_size(&self) -> usize {
        match self {
            Self::Complex64 | Self::FixedUtf32 { .. } => 4,
            Self::Complex128 => 8,
            Self::FixedBytes { .. } | Self::String | Self::Bytes => 1,
            other => other.size().unwrap_or(1),
        }
    }

    /// The `data_type` of Zarr v3 metadata.
    pub fn to_json(&self) -> Value {
        let extension = |name: &str, configuration: Value| json!({"name": name, "configuration": configuration});
        match self {
            Self::FixedUtf32 { bytes } => {
                extension("fixed_length_utf32", json!({"length_bytes": bytes}))
            }
            Self::FixedBytes { bytes } => {
                extension("null_terminated_bytes", json!({"length_bytes": bytes}))
            }
            Self::DateTime64 { unit, scale } => extension(
                "numpy.datetime64",
                json!({"unit": unit.name(), "scale_factor": scale}),
            ),
            Self::TimeDelta64 { unit, scale } => extension(
                "numpy.timedelta64",
                json!({"unit": unit.name(), "scale_factor": scale}),
            ),
            Self::String => json!("string"),
            Self::Bytes => json!("variable_length_bytes"),
            plain => json!(plain.to_string()),
        }
    }

    /// The type that `data_type` of Zarr v3 metadata names.
    ///
    /// # Errors
    /// `Unsupported` if the name is not one of the above; `Corrupt` if its configuration is
    /// missing or is invalid.
    pub fn from_json(value: &Value) -> Result<Self> {
        let name = value
            .as_str()
            .or_else(|| value.get("name").and_then(Value::as_str))
            .ok_or_else(|| Error::corrupt(format!("data type {value} has no name")))?;
        if let Some((_, dtype)) = Self::PLAIN.iter().find(|(plain, _)| *plain == name) {
            return Ok(dtype.clone());
        }
        let option = |key: &str| value.get("configuration").and_then(|c| c.get(key));
        let length = |multiple: usize| {
            option("length_bytes")
                .and_then(Value::as_u64)
                .and_then(|bytes| usize::try_from(bytes).ok())
                .filter(|bytes| bytes % multiple == 0 && (1..=MAX_LENGTH).contains(bytes))
                .ok_or_else(|| {
                    Error::corrupt(format!("data type {value} has no valid length_bytes"))
                })
        };
        let time = || {
            let unit = option("unit")
                .and_then(Value::as_str)
                .and_then(TimeUnit::parse);
            let scale = option("scale_factor")
                .and_then(Value::as_u64)
                .and_then(|scale| u32::try_from(scale).ok())
                .filter(|scale| (1..=MAX_SCALE).contains(scale));
            unit.zip(scale).ok_or_else(|| {
                Error::corrupt(format!(
                    "data type {value} has no valid unit and scale_factor"
                ))
            })
        };
        match name {
            "fixed_length_utf32" => Ok(Self::FixedUtf32 { bytes: length(4)? }),
            "null_terminated_bytes" => Ok(Self::FixedBytes { bytes: length(1)? }),
            "numpy.datetime64" => time().map(|(unit, scale)| Self::DateTime64 { unit, scale }),
            "numpy.timedelta64" => time().map(|(unit, scale)| Self::TimeDelta64 { unit, scale }),
            "string" => Ok(Self::String),
            "variable_length_bytes" | "bytes" => Ok(Self::Bytes),
            other => Err(Error::unsupported(format!(
                "data type {other:?} is not known to ambar"
            ))),
        }
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FixedUtf32 { bytes } => write!(f, "<U{}", bytes / 4),
            Self::FixedBytes { bytes } => write!(f, "|S{bytes}"),
            Self::DateTime64 { unit, scale: 1 } => write!(f, "datetime64[{}]", unit.name()),
            Self::DateTime64 { unit, scale } => write!(f, "datetime64[{scale}{}]", unit.name()),
            Self::TimeDelta64 { unit, scale: 1 } => write!(f, "timedelta64[{}]", unit.name()),
            Self::TimeDelta64 { unit, scale } => write!(f, "timedelta64[{scale}{}]", unit.name()),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            plain => {
                let name = Self::PLAIN.iter().find(|(_, dtype)| dtype == plain);
                f.write_str(name.map_or("?", |(name, _)| name))
            }
        }
    }
}

impl FromStr for DataType {
    type Err = Error;

    /// Parses NumPy's name of a type, as `Display` writes it. `datetime64` and `timedelta64` have the generic unit.
    fn from_str(name: &str) -> Result<Self> {
        if let Some((_, dtype)) = Self::PLAIN.iter().find(|(plain, _)| *plain == name) {
            return Ok(dtype.clone());
        }
        let length = |count: &str, size: usize| {
            let bytes = count.parse::<usize>().ok()?.checked_mul(size)?;
            (1..=MAX_LENGTH).contains(&bytes).then_some(bytes)
        };
        let time = |unit: &str| {
            let unit = match unit {
                "" => "generic",
                unit => unit.strip_prefix('[')?.strip_suffix(']')?,
            };
            let (scale, unit) = unit.split_at(unit.find(|c: char| !c.is_ascii_digit())?);
            let scale = if scale.is_empty() {
                1
            } else {
                scale.parse().ok()?
            };
            let unit = TimeUnit::parse(unit)?;
            (1..=MAX_SCALE).contains(&scale).then_some((unit, scale))
        };
        let text = name.strip_prefix("<U").or_else(|| name.strip_prefix(">U"));
        let found = if let Some(count) = text {
            length(count, 4).map(|bytes| Self::FixedUtf32 { bytes })
        } else if let Some(count) = name.strip_prefix("|S") {
            length(count, 1).map(|bytes| Self::FixedBytes { bytes })
        } else if let Some(unit) = name.strip_prefix("datetime64") {
            time(unit).map(|(unit, scale)| Self::DateTime64 { unit, scale })
        } else if let Some(unit) = name.strip_prefix("timedelta64") {
            time(unit).map(|(unit, scale)| Self::TimeDelta64 { unit, scale })
        } else {
            match name {
                "string" => Some(Self::String),
                "bytes" => Some(Self::Bytes),
                _ => None,
            }
        };
        found.ok_or_else(|| {
            Error::unsupported(format!(
                "data type {name:?} cannot be stored; use numbers of up to 64 bits, times, or strings and bytes \
                 of up to 1 MiB"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_survives_its_metadata_and_its_name() {
        let ns = TimeUnit::parse("ns").unwrap();
        let mut types: Vec<_> = DataType::PLAIN
            .iter()
            .map(|(_, dtype)| dtype.clone())
            .collect();
        types.extend([
            DataType::FixedUtf32 { bytes: 12 },
            DataType::FixedBytes { bytes: 5 },
            DataType::DateTime64 { unit: ns, scale: 1 },
            DataType::TimeDelta64 {
                unit: ns,
                scale: 25,
            },
            DataType::String,
            DataType::Bytes,
        ]);
        for dtype in types {
            assert_eq!(
                DataType::from_json(&dtype.to_json()).unwrap(),
                dtype,
                "{dtype}"
            );
            assert_eq!(dtype.to_string().parse::<DataType>().unwrap(), dtype);
        }
        let generic = "datetime64".parse::<DataType>().unwrap();
        assert_eq!(generic.to_string(), "datetime64[generic]");
    }

    #[test]
    fn unknown_names_are_errors() {
        for name in [
            "",
            "float",
            "float128",
            "<U",
            "<U0",
            "<U262145",
            "<U4611686018427387905",
            "|S0",
            "|S1048577",
            "datetime64[]",
            "datetime64[25]",
            "datetime64[0s]",
            "datetime64[fortnight]",
            "timedelta64[2147483648s]",
            "timedelta64[s",
        ] {
            assert!(name.parse::<DataType>().is_err(), "{name}");
        }
    }

    #[test]
    fn unknown_and_broken_types_are_errors() {
        for text in [
            r#""int24""#,
            "3",
            r#"{"name":"fixed_length_utf32"}"#,
            r#"{"name":"fixed_length_utf32","configuration":{"length_bytes":7}}"#,
            r#"{"name":"fixed_length_utf32","configuration":{"length_bytes":0}}"#,
            r#"{"name":"null_terminated_bytes","configuration":{"length_bytes":0}}"#,
            r#"{"name":"numpy.datetime64","configuration":{"unit":"fortnight","scale_factor":1}}"#,
            r#"{"name":"numpy.datetime64","configuration":{"unit":"s","scale_factor":0}}"#,
            r#"{"name":"numpy.timedelta64","configuration":{"unit":"s","scale_factor":2147483648}}"#,
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert!(DataType::from_json(&value).is_err(), "{text}");
        }
    }
}
