//! Arrays with padding: all values outside of a box at the first corner are equal.
//!
//! The last chunks of an array extend beyond it, and chunks of a rank may be larger than its data. Only the box is
//! encoded, so that padding takes no space and does not disturb predictions.

use std::borrow::Cow;

use super::{RANK, Value};
use crate::domain::regions::volume_of;
use crate::element::Element;
use crate::entropy::bitio::Cursor;
use crate::error::{Result, corrupt};
use crate::stream::decode::decode as decode_stream;
use crate::stream::encode::Workspace;

/// The shape of the box of an array that is not padding, and the bits of the padding.
pub(super) fn find<T: Element>(values: &[T], shape: &[usize]) -> (Vec<usize>, u64) {
    let Some(pad) = values.last().map(|value| value.to_word()) else {
        return (shape.to_vec(), 0);
    };
    let whole = to_four_dimensions(shape);
    let mut unpadded = [0; RANK];
    let rows = values.chunks_exact(whole[3]).enumerate().rev();
    for (number, row) in rows {
        let place = index_of_row(number, &whole);
        let known = place
            .iter()
            .zip(&unpadded)
            .all(|(at, unpadded)| at < unpadded);
        let first = if known { unpadded[3] } else { 0 };
        let last = row[first..].iter().rposition(|x| x.to_word() != pad);
        if let Some(last) = last {
            unpadded[3] = unpadded[3].max(first + last + 1);
            for (unpadded, at) in unpadded.iter_mut().zip(place) {
                *unpadded = (*unpadded).max(at + 1);
            }
            if unpadded == whole {
                break;
            }
        }
    }
    let unpadded = if unpadded[3] == 0 {
        [0; RANK]
    } else {
        unpadded
    };
    // Few equal values at the end are not worth the cost: the last value is always equal to itself.
    let count = |lengths: &[usize; RANK]| lengths.iter().product::<usize>();
    if count(&whole) - count(&unpadded) < values.len() / 64 + 16 && count(&unpadded) > 0 {
        return (shape.to_vec(), pad);
    }
    (unpadded[RANK - shape.len()..].to_vec(), pad)
}

/// A shape in four dimensions.
fn to_four_dimensions(shape: &[usize]) -> [usize; RANK] {
    let mut four = [1; RANK];
    four[RANK - shape.len()..].copy_from_slice(shape);
    four
}

/// The first three indices of a row.
fn index_of_row(number: usize, whole: &[usize; RANK]) -> [usize; 3] {
    [
        number / whole[2] / whole[1],
        number / whole[2] % whole[1],
        number % whole[2],
    ]
}

/// Calls `visit(index in the array, index in the box, length)` for all rows of a box.
fn for_each_row(shape: &[usize], unpadded: &[usize], mut visit: impl FnMut(usize, usize, usize)) {
    let (whole, part) = (to_four_dimensions(shape), to_four_dimensions(unpadded));
    for row in 0..part[0] * part[1] * part[2] {
        let [a, b, c] = index_of_row(row, &part);
        let at = ((a * whole[1] + b) * whole[2] + c) * whole[3];
        visit(at, row * part[3], part[3]);
    }
}

/// Whether the box is contiguous in the array.
fn is_contiguous(shape: &[usize], unpadded: &[usize]) -> bool {
    shape[1..] == unpadded[1..]
}

/// The values of a box.
pub(super) fn cut<'a, T: Element>(
    values: &'a [T],
    shape: &[usize],
    unpadded: &[usize],
) -> Cow<'a, [T]> {
    let count = unpadded.iter().product();
    if is_contiguous(shape, unpadded) {
        return Cow::Borrowed(&values[..count]);
    }
    let mut part = Vec::with_capacity(count);
    for_each_row(shape, unpadded, |at, _, length| {
        part.extend_from_slice(&values[at..at + length]);
    });
    Cow::Owned(part)
}

/// Decodes an array and fills its padding.
pub(super) fn decode<T: Value>(
    mut rest: Cursor<'_>,
    stream: &[u8],
    out: &mut [T],
    workspace: &mut Workspace<T>,
) -> Result<()> {
    let shape = lengths(&mut rest)?;
    let unpadded = lengths(&mut rest)?;
    if volume_of(&shape) != Some(out.len())
        || unpadded.len() != shape.len()
        || shape
            .iter()
            .zip(&unpadded)
            .any(|(n, unpadded)| unpadded > n)
    {
        return Err(corrupt!(
            "the chunk has the shape {shape:?}, of which {unpadded:?} is not padding; expected {} values",
            out.len()
        ));
    }
    if unpadded != shape {
        out.fill(pad(&mut rest)?);
    }
    let count: usize = unpadded.iter().product();
    if !rest.0.is_empty() || count == 0 && !stream.is_empty() {
        return Err(corrupt!(
            "expected the end of the chunk's header; found {} more bytes, and a stream of {} bytes",
            rest.0.len(),
            stream.len()
        ));
    }
    if count == 0 {
        return Ok(());
    }
    if is_contiguous(&shape, &unpadded) {
        return decode_stream(stream, &mut out[..count], workspace);
    }
    let mut part = vec![T::default(); count];
    decode_stream(stream, &mut part, workspace)?;
    for_each_row(&shape, &unpadded, |to, from, length| {
        out[to..to + length].copy_from_slice(&part[from..from + length]);
    });
    Ok(())
}

/// Reads the value of the padding.
pub(super) fn pad<T: Element>(rest: &mut Cursor<'_>) -> Result<T> {
    let mut word = [0; 8];
    word[..T::SIZE].copy_from_slice(rest.bytes(T::SIZE)?);
    Ok(T::from_word(u64::from_le_bytes(word)))
}

fn lengths(rest: &mut Cursor<'_>) -> Result<Vec<usize>> {
    let count = rest.number_to(RANK)?;
    if count == 0 {
        return Err(corrupt!("the chunk has 0 dimensions; expected 1 to {RANK}"));
    }
    (0..count).map(|_| rest.number_to(usize::MAX)).collect()
}
