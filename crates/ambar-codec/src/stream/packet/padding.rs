//! Padding: what is left of an array when all beyond a box from its first corner on is one value.
//!
//! A file's last chunks reach beyond its array, and a process's chunk beyond what it has to write.
//! What lies there is one value over and over, which costs nothing, and disturbs no prediction.

use std::borrow::Cow;

use super::{RANK, Value};
use crate::domain::regions::volume_of;
use crate::element::Element;
use crate::entropy::bitio::Cursor;
use crate::error::{Corrupt, Result};
use crate::stream::decode::decode as decode_stream;
use crate::stream::encode::Workspace;

/// How much of an array is not padding, in each dimension; and the bits of the padding.
pub(super) fn find<T: Element>(values: &[T], shape: &[usize]) -> (Vec<usize>, u64) {
    let Some(pad) = values.last().map(|value| value.to_word()) else {
        return (shape.to_vec(), 0);
    };
    let whole = in_four(shape);
    let mut kept = [0; RANK];
    let rows = values.chunks_exact(whole[3]).enumerate().rev();
    for (number, row) in rows {
        let place = place_of(number, &whole);
        let known = place.iter().zip(&kept).all(|(at, kept)| at < kept);
        let first = if known { kept[3] } else { 0 };
        let last = row[first..].iter().rposition(|x| x.to_word() != pad);
        if let Some(last) = last {
            kept[3] = kept[3].max(first + last + 1);
            for (kept, at) in kept.iter_mut().zip(place) {
                *kept = (*kept).max(at + 1);
            }
            if kept == whole {
                break;
            }
        }
    }
    let kept = if kept[3] == 0 { [0; RANK] } else { kept };
    // The last value of a row is always like itself: that much is no padding.
    let count = |lengths: &[usize; RANK]| lengths.iter().product::<usize>();
    if count(&whole) - count(&kept) < values.len() / 64 + 16 && count(&kept) > 0 {
        return (shape.to_vec(), pad);
    }
    (kept[RANK - shape.len()..].to_vec(), pad)
}

/// A shape in four dimensions.
fn in_four(shape: &[usize]) -> [usize; RANK] {
    let mut four = [1; RANK];
    four[RANK - shape.len()..].copy_from_slice(shape);
    four
}

/// The first three indices of a row.
fn place_of(number: usize, whole: &[usize; RANK]) -> [usize; 3] {
    [
        number / whole[2] / whole[1],
        number / whole[2] % whole[1],
        number % whole[2],
    ]
}

/// Calls `visit(place in the array, place in the box, length)` for all rows of a box.
fn for_each_row(shape: &[usize], kept: &[usize], mut visit: impl FnMut(usize, usize, usize)) {
    let (whole, part) = (in_four(shape), in_four(kept));
    for row in 0..part[0] * part[1] * part[2] {
        let [a, b, c] = place_of(row, &part);
        let at = ((a * whole[1] + b) * whole[2] + c) * whole[3];
        visit(at, row * part[3], part[3]);
    }
}

/// Whether a box is the first part of the array, without gaps.
fn is_first(shape: &[usize], kept: &[usize]) -> bool {
    shape[1..] == kept[1..]
}

/// The values of a box.
pub(super) fn cut<'a, T: Element>(
    values: &'a [T],
    shape: &[usize],
    kept: &[usize],
) -> Cow<'a, [T]> {
    let count = kept.iter().product();
    if is_first(shape, kept) {
        return Cow::Borrowed(&values[..count]);
    }
    let mut part = Vec::with_capacity(count);
    for_each_row(shape, kept, |at, _, length| {
        part.extend_from_slice(&values[at..at + length]);
    });
    Cow::Owned(part)
}

/// Decodes an array, padding and all.
pub(super) fn decode<T: Value>(
    mut rest: Cursor<'_>,
    stream: &[u8],
    out: &mut [T],
    workspace: &mut Workspace<T>,
) -> Result<()> {
    let shape = lengths(&mut rest)?;
    let kept = lengths(&mut rest)?;
    if volume_of(&shape) != Some(out.len())
        || kept.len() != shape.len()
        || shape.iter().zip(&kept).any(|(n, kept)| kept > n)
    {
        return Err(Corrupt(
            "the product of the chunk's shape differs from the number of values",
        ));
    }
    if kept != shape {
        out.fill(pad(&mut rest)?);
    }
    let count: usize = kept.iter().product();
    if !rest.0.is_empty() || count == 0 && !stream.is_empty() {
        return Err(Corrupt("expected the end of the chunk; found more bytes"));
    }
    if count == 0 {
        return Ok(());
    }
    if is_first(&shape, &kept) {
        return decode_stream(stream, &mut out[..count], workspace);
    }
    let mut part = vec![T::default(); count];
    decode_stream(stream, &mut part, workspace)?;
    for_each_row(&shape, &kept, |to, from, length| {
        out[to..to + length].copy_from_slice(&part[from..from + length]);
    });
    Ok(())
}

/// The value that padding has.
pub(super) fn pad<T: Element>(rest: &mut Cursor<'_>) -> Result<T> {
    let mut word = [0; 8];
    word[..T::SIZE].copy_from_slice(rest.bytes(T::SIZE)?);
    Ok(T::from_word(u64::from_le_bytes(word)))
}

fn lengths(rest: &mut Cursor<'_>) -> Result<Vec<usize>> {
    let count = rest.number_to(RANK)?;
    if count == 0 {
        return Err(Corrupt(
            "the chunk's shape is empty; expected at least one dimension",
        ));
    }
    (0..count).map(|_| rest.number_to(usize::MAX)).collect()
}
