//! The codec `ambar.simplices` for the corners of cells: one stream of `ambar-codec` for each chunk.

use ambar_codec::simplices::{self, Corner, WIDTHS, Workspace};

use super::ambar::convert_error;
use crate::dtype::DataType;
use crate::error::{Error, Result};

/// Its name in metadata.
pub(super) const NAME: &str = "ambar.simplices";

/// Whether the codec supports values of this type.
pub(super) fn supports(dtype: &DataType) -> bool {
    matches!(
        dtype,
        DataType::Int32 | DataType::Int64 | DataType::UInt32 | DataType::UInt64
    )
}

/// The number of corners in each row; `None` if the codec does not support the array.
pub(super) fn width(dtype: &DataType, shape: &[u64]) -> Option<usize> {
    match shape {
        [_, width] if supports(dtype) => {
            let width = usize::try_from(*width).ok();
            width.filter(|width| WIDTHS.contains(width))
        }
        _ => None,
    }
}

/// Encodes values in native byte order, a chunk of `shape`.
///
/// # Errors
/// `Invalid` if the codec does not take them.
pub(super) fn encode(
    dtype: &DataType,
    shape: &[u64],
    raw: &[u8],
    workspace: &mut Workspace,
) -> Result<Vec<u8>> {
    let Some(width) = width(dtype, shape) else {
        return Err(Error::invalid(format!(
            "the codec {NAME} supports rows of 2 to 4 integers of 32 or 64 bits, not chunks of \
             {shape:?} of {dtype}: choose another codec"
        )));
    };
    match dtype.size() {
        Some(4) => encode_values::<u32>(raw, width, workspace),
        _ => encode_values::<u64>(raw, width, workspace),
    }
}

fn encode_values<T: Corner + bytemuck::Pod>(
    raw: &[u8],
    width: usize,
    workspace: &mut Workspace,
) -> Result<Vec<u8>> {
    let mut copy = Vec::new();
    let values = bytemuck::try_cast_slice(raw).unwrap_or_else(|_| {
        copy.resize(raw.len() / T::SIZE, T::default());
        bytemuck::cast_slice_mut(&mut copy).copy_from_slice(raw);
        &copy
    });
    simplices::encode(values, width, workspace).map_err(convert_error)
}

/// Decodes a stream into `out`, native byte order, which it must fill exactly.
///
/// # Errors
/// `Corrupt`, `Unsupported`.
pub(super) fn decode(
    dtype: &DataType,
    stream: &[u8],
    out: &mut [u8],
    workspace: &mut Workspace,
) -> Result<()> {
    match dtype.size() {
        Some(4) => decode_values::<u32>(stream, out, workspace),
        _ => decode_values::<u64>(stream, out, workspace),
    }
}

fn decode_values<T: Corner + bytemuck::Pod>(
    stream: &[u8],
    out: &mut [u8],
    workspace: &mut Workspace,
) -> Result<()> {
    if let Ok(values) = bytemuck::try_cast_slice_mut::<u8, T>(out) {
        return simplices::decode(stream, values, workspace).map_err(convert_error);
    }
    let mut values = vec![T::default(); out.len() / T::SIZE];
    simplices::decode(stream, &mut values, workspace).map_err(convert_error)?;
    out.copy_from_slice(bytemuck::cast_slice(&values));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Profile;
    use crate::codec::candidates::{Scope, candidates};
    use crate::codec::{ChunkGeometry, CodecChain, CodecScratch};
    use crate::limits::Limits;

    fn chain(dtype: &DataType) -> Result<CodecChain> {
        CodecChain::parse(r#"["ambar.simplices", "crc32c"]"#, dtype, 2)
    }

    fn encoded(dtype: &DataType, shape: &[u64], raw: &[u8]) -> Result<Vec<u8>> {
        let geometry = ChunkGeometry::array(shape);
        chain(dtype)?.encode(dtype, raw, &geometry, &mut CodecScratch::default())
    }

    #[test]
    fn rows_of_every_type_are_decoded_at_any_alignment() {
        for dtype in [
            DataType::Int32,
            DataType::UInt32,
            DataType::Int64,
            DataType::UInt64,
        ] {
            let size = dtype.size().unwrap();
            for width in WIDTHS {
                let values = (0..90 * width as i64).map(|i| (i * i) % 50 - 7);
                let raw: Vec<u8> = values
                    .flat_map(|n| n.to_le_bytes()[..size].to_vec())
                    .collect();
                let shape = [90, width as u64];
                let stream = encoded(&dtype, &shape, &raw).unwrap();
                let mut moved = vec![0; raw.len() + 1];
                moved[1..].copy_from_slice(&raw);
                assert_eq!(encoded(&dtype, &shape, &moved[1..]).unwrap(), stream);
                let scratch = &mut CodecScratch::default();
                for begin in [0, 1] {
                    moved.fill(0x5a);
                    let out = &mut moved[begin..begin + raw.len()];
                    let chain = chain(&dtype).unwrap();
                    chain
                        .decode(&dtype, &shape, &stream, out, &Limits::default(), scratch)
                        .unwrap();
                    assert_eq!(out, raw, "{dtype} {width}");
                }
            }
        }
    }

    #[test]
    fn unsupported_types_and_shapes_are_errors() {
        assert!(chain(&DataType::Int16).is_err());
        assert!(chain(&DataType::Float32).is_err());
        for shape in [&[40][..], &[8, 5], &[40, 1], &[2, 5, 4]] {
            let error = encoded(&DataType::Int32, shape, &[0; 160]).unwrap_err();
            assert!(error.to_string().contains("ambar.simplices"), "{error}");
        }
    }

    #[test]
    fn only_the_profile_small_tries_them() {
        for (profile, is_candidate) in [
            (Profile::Fast, false),
            (Profile::Balanced, false),
            (Profile::Small, true),
        ] {
            let count = |dtype: DataType, shape: &[u64]| {
                candidates(profile, false, &[Scope::Corners], &dtype, shape).len()
            };
            assert_eq!(
                count(DataType::Int64, &[1000, 4]) > 0,
                is_candidate,
                "{profile:?}"
            );
            assert_eq!(count(DataType::Int16, &[1000, 4]), 0);
            assert_eq!(count(DataType::Int64, &[1000, 8]), 0);
            assert_eq!(count(DataType::Int64, &[1000]), 0);
        }
    }
}
