//! Converts fill values from JSON to the bytes of one value, native byte order, and back.

use serde_json::{Value, json};
use zarrs_metadata::v3::FillValueMetadataV3 as Fill;

use super::base64;
use crate::dtype::DataType;
use crate::error::{Error, Result};

/// The bytes of the fill value `fill` of values of `dtype`.
///
/// # Errors
/// `Corrupt` if `fill` is not a value of the type.
pub(super) fn parse(dtype: &DataType, fill: &Fill) -> Result<Vec<u8>> {
    bytes_of(dtype, fill)
        .ok_or_else(|| Error::corrupt(format!("fill value {fill} is not a valid value of {dtype}")))
}

fn bytes_of(dtype: &DataType, fill: &Fill) -> Option<Vec<u8>> {
    fn signed<T: TryFrom<i64>>(fill: &Fill) -> Option<T> {
        T::try_from(fill.as_i64()?).ok()
    }
    fn unsigned<T: TryFrom<u64>>(fill: &Fill) -> Option<T> {
        T::try_from(fill.as_u64()?).ok()
    }
    Some(match dtype {
        DataType::Bool => vec![u8::from(fill.as_bool()?)],
        DataType::Int8 => signed::<i8>(fill)?.to_ne_bytes().to_vec(),
        DataType::Int16 => signed::<i16>(fill)?.to_ne_bytes().to_vec(),
        DataType::Int32 => signed::<i32>(fill)?.to_ne_bytes().to_vec(),
        DataType::Int64 => signed::<i64>(fill)?.to_ne_bytes().to_vec(),
        DataType::UInt8 => unsigned::<u8>(fill)?.to_ne_bytes().to_vec(),
        DataType::UInt16 => unsigned::<u16>(fill)?.to_ne_bytes().to_vec(),
        DataType::UInt32 => unsigned::<u32>(fill)?.to_ne_bytes().to_vec(),
        DataType::UInt64 => unsigned::<u64>(fill)?.to_ne_bytes().to_vec(),
        DataType::Float16 => fill.as_f16()?.to_bits().to_ne_bytes().to_vec(),
        DataType::Float32 => fill.as_f32()?.to_ne_bytes().to_vec(),
        DataType::Float64 => fill.as_f64()?.to_ne_bytes().to_vec(),
        DataType::Complex64 => parts(&DataType::Float32, fill)?,
        DataType::Complex128 => parts(&DataType::Float64, fill)?,
        DataType::DateTime64 { .. } | DataType::TimeDelta64 { .. } => {
            let count = if fill.as_str() == Some("NaT") {
                i64::MIN
            } else {
                fill.as_i64()?
            };
            count.to_ne_bytes().to_vec()
        }
        DataType::FixedUtf32 { bytes } => {
            let text = fill
                .as_str()?
                .chars()
                .flat_map(|c| u32::from(c).to_ne_bytes());
            padded(text.collect(), *bytes)?
        }
        DataType::FixedBytes { bytes } => padded(byte_string(fill)?, *bytes)?,
        DataType::String => fill.as_str()?.as_bytes().to_vec(),
        DataType::Bytes => byte_string(fill)?,
    })
}

fn parts(part: &DataType, fill: &Fill) -> Option<Vec<u8>> {
    let [real, imaginary] = fill.as_array()? else {
        return None;
    };
    Some([bytes_of(part, real)?, bytes_of(part, imaginary)?].concat())
}

fn byte_string(fill: &Fill) -> Option<Vec<u8>> {
    match fill.as_str() {
        Some(text) => base64::decode(text),
        None => fill.as_bytes(),
    }
}

fn padded(mut bytes: Vec<u8>, size: usize) -> Option<Vec<u8>> {
    if bytes.len() > size {
        return None;
    }
    bytes.resize(size, 0);
    Some(bytes)
}

/// The default fill value of `dtype`: zero, or empty.
pub(super) fn zero(dtype: &DataType) -> Vec<u8> {
    vec![0; dtype.size().unwrap_or(0)]
}

/// The JSON of the fill value `bytes`, one value of `dtype` in native byte order.
///
/// # Errors
/// `Invalid` if `bytes` is not a value of `dtype`.
pub(super) fn to_json(dtype: &DataType, bytes: &[u8]) -> Result<Value> {
    json_of(dtype, bytes).ok_or_else(|| {
        Error::invalid(format!(
            "a fill value of {} bytes is not a valid value of {dtype}",
            bytes.len()
        ))
    })
}

fn json_of(dtype: &DataType, bytes: &[u8]) -> Option<Value> {
    macro_rules! number {
        ($type:ty) => {
            json!(<$type>::from_ne_bytes(bytes.try_into().ok()?))
        };
    }
    Some(match dtype {
        DataType::Bool => match bytes {
            [0] => json!(false),
            [1] => json!(true),
            _ => return None,
        },
        DataType::Int8 => number!(i8),
        DataType::Int16 => number!(i16),
        DataType::Int32 => number!(i32),
        DataType::Int64 | DataType::DateTime64 { .. } | DataType::TimeDelta64 { .. } => {
            number!(i64)
        }
        DataType::UInt8 => number!(u8),
        DataType::UInt16 => number!(u16),
        DataType::UInt32 => number!(u32),
        DataType::UInt64 => number!(u64),
        DataType::Float16 => match u16::from_ne_bytes(bytes.try_into().ok()?) {
            0 => json!(0.0),
            bits => json!(format!("0x{bits:04x}")),
        },
        DataType::Float32 => {
            let value = f32::from_ne_bytes(bytes.try_into().ok()?);
            let nan = || format!("0x{:08x}", value.to_bits());
            float(f64::from(value), value.to_bits() == f32::NAN.to_bits(), nan)
        }
        DataType::Float64 => {
            let value = f64::from_ne_bytes(bytes.try_into().ok()?);
            let nan = || format!("0x{:016x}", value.to_bits());
            float(value, value.to_bits() == f64::NAN.to_bits(), nan)
        }
        DataType::Complex64 => {
            let (real, imaginary) = bytes.split_at_checked(4)?;
            json!([
                json_of(&DataType::Float32, real)?,
                json_of(&DataType::Float32, imaginary)?
            ])
        }
        DataType::Complex128 => {
            let (real, imaginary) = bytes.split_at_checked(8)?;
            json!([
                json_of(&DataType::Float64, real)?,
                json_of(&DataType::Float64, imaginary)?
            ])
        }
        DataType::FixedUtf32 { bytes: size } if bytes.len() == *size => {
            let points = bytes.chunks_exact(4).map(|word| {
                word.try_into()
                    .ok()
                    .map(u32::from_ne_bytes)
                    .and_then(char::from_u32)
            });
            let text: String = points.collect::<Option<_>>()?;
            json!(text.trim_end_matches('\0'))
        }
        DataType::FixedBytes { bytes: size } if bytes.len() == *size => {
            json!(base64::encode(bytes))
        }
        DataType::String => json!(std::str::from_utf8(bytes).ok()?),
        DataType::Bytes => json!(base64::encode(bytes)),
        _ => return None,
    })
}

fn float(value: f64, canonical_nan: bool, nan: impl FnOnce() -> String) -> Value {
    if canonical_nan {
        json!("NaN")
    } else if value.is_nan() {
        json!(nan())
    } else if value == f64::INFINITY {
        json!("Infinity")
    } else if value == f64::NEG_INFINITY {
        json!("-Infinity")
    } else {
        json!(value)
    }
}
