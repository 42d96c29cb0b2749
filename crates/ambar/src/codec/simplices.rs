//! The codec `ambar.simplices`: rows of corners, one stream of `ambar-codec` a chunk.

use ambar_codec::simplices::{self, Corner, WIDTHS, Workspace};

use super::ambar::failed;
use crate::dtype::DataType;
use crate::error::{Error, Result};

/// Its name in metadata.
pub(super) const NAME: &str = "ambar.simplices";

/// Whether the codec takes values of this type.
pub(super) fn takes(dtype: &DataType) -> bool {
    matches!(
        dtype,
        DataType::Int32 | DataType::Int64 | DataType::UInt32 | DataType::UInt64
    )
}

/// The corners of a row of such an array, if the codec takes it.
pub(super) fn width(dtype: &DataType, shape: &[u64]) -> Option<usize> {
    match shape {
        [_, width] if takes(dtype) => {
            let width = usize::try_from(*width).ok();
            width.filter(|width| WIDTHS.contains(width))
        }
        _ => None,
    }
}

/// Encodes values in native byte order, a chunk of `shape`.
///
/// # Errors
/// `Invalid` where the codec does not take them.
pub(super) fn encode(
    dtype: &DataType,
    shape: &[u64],
    raw: &[u8],
    workspace: &mut Workspace,
) -> Result<Vec<u8>> {
    let Some(width) = width(dtype, shape) else {
        return Err(Error::invalid(format!(
            "the codec {NAME} is for rows of 2 to 4 integers of 32 or 64 bits, not for chunks of \
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
    simplices::encode(values, width, workspace).map_err(failed)
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
        return simplices::decode(stream, values, workspace).map_err(failed);
    }
    let mut values = vec![T::default(); out.len() / T::SIZE];
    simplices::decode(stream, &mut values, workspace).map_err(failed)?;
    out.copy_from_slice(bytemuck::cast_slice(&values));
    Ok(())
}
