//! Validates array specs, and the data to be written against them.

use super::spec::{ArrayData, ArraySpec};
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::limits::checked_product;
use crate::strings::Strings;

/// Checks that data and spec fit each other.
pub(super) fn check(spec: &ArraySpec, data: ArrayData<'_>) -> Result<()> {
    let elements = check_spec(spec)?;
    match (data, spec.dtype.size()) {
        (ArrayData::Fixed(values), Some(size)) => {
            if elements.checked_mul(size as u64) != Some(values.len() as u64) {
                return Err(Error::invalid(format!(
                    "the data have {} bytes; expected {:?} values of {size} bytes",
                    values.len(),
                    spec.shape
                )));
            }
            check_bools(&spec.dtype, values)
        }
        (ArrayData::Pieces(pieces), Some(size)) => check_pieces(spec, pieces, size),
        (ArrayData::Strings(strings), None) => {
            let is_valid = strings.offsets.windows(2).all(|pair| pair[0] <= pair[1])
                && strings.offsets.first().is_none_or(|first| *first == 0)
                && strings.offsets.last().copied().unwrap_or(0) <= strings.bytes.len() as u64;
            if strings.len() as u64 == elements && is_valid {
                return check_strings(&spec.dtype, strings);
            }
            Err(Error::invalid(format!(
                "the data have {} strings (with {} offsets); expected {:?} values",
                strings.len(),
                if is_valid { "valid" } else { "invalid" },
                spec.shape
            )))
        }
        _ => Err(Error::invalid(format!(
            "values of {} must be given as bytes if their size is fixed, otherwise as strings",
            spec.dtype
        ))),
    }
}

/// Checks that a spec is consistent, and returns the number of values.
pub(super) fn check_spec(spec: &ArraySpec) -> Result<u64> {
    let elements = checked_product(&spec.shape, 1).ok_or_else(|| {
        Error::invalid(format!(
            "the shape {:?} has more values than fit in 64 bits",
            spec.shape
        ))
    })?;
    // Rejects types that no reader accepts: strings or bytes of length 0, invalid units of time.
    DataType::from_json(&spec.dtype.to_json())
        .map_err(|error| Error::invalid(error.message().to_owned()))?;
    let named = spec.dimension_names.len();
    if named != 0 && named != spec.shape.len() {
        return Err(Error::invalid(format!(
            "{named} names are given for {} dimensions; name all or none",
            spec.shape.len()
        )));
    }
    Ok(elements)
}

/// Checks that pieces have whole rows, and their number of rows.
fn check_pieces(spec: &ArraySpec, pieces: &[&[u8]], size: usize) -> Result<()> {
    let [rows, inner @ ..] = &spec.shape[..] else {
        return Err(Error::invalid(
            "a single value cannot be given in pieces; give it as bytes",
        ));
    };
    let row = checked_product(inner, size as u64).unwrap_or(u64::MAX);
    let bytes: u64 = pieces.iter().map(|piece| piece.len() as u64).sum();
    let whole = row == 0
        || pieces
            .iter()
            .all(|piece| (piece.len() as u64).is_multiple_of(row));
    if !whole || rows.checked_mul(row) != Some(bytes) {
        return Err(Error::invalid(format!(
            "the data have {bytes} bytes in {} pieces; expected {:?} values of {size} bytes in pieces of whole rows",
            pieces.len(),
            spec.shape
        )));
    }
    pieces
        .iter()
        .try_for_each(|piece| check_bools(&spec.dtype, piece))
}

pub(super) fn check_bools(dtype: &DataType, values: &[u8]) -> Result<()> {
    if *dtype == DataType::Bool && values.iter().any(|value| *value > 1) {
        return Err(Error::invalid(
            "a bool is neither 0 nor 1; convert the values",
        ));
    }
    Ok(())
}

/// Checks that strings are UTF-8, so that encoding cannot fail after other chunks were written.
fn check_strings(dtype: &DataType, strings: &Strings) -> Result<()> {
    let bad = (0..strings.len()).find(|index| {
        let text = strings.get(*index).unwrap_or_default();
        *dtype == DataType::String && std::str::from_utf8(text).is_err()
    });
    match bad {
        None => Ok(()),
        Some(index) => Err(Error::invalid(format!(
            "string {index} is not UTF-8; write the array as byte strings"
        ))),
    }
}
