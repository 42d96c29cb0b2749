//! The bit-packed mode: encodes and decodes near the speed of memory; streams are larger than entropy-coded ones.
//!
//! Values become integers. Their differences are packed in groups with the bit width of the widest of a group. There is no
//! entropy coder and no context, so that all loops use vector instructions.

mod block;
mod differences;
mod fixed_point;
mod lanes;
mod lossless;
mod order_choice;
mod steps;
mod word;

#[cfg(test)]
mod tests;

use crate::element::Element;
use crate::entropy::bitio::Cursor;
use crate::entropy::exceptions::{self, Exceptions};
use crate::error::{Result, corrupt};
use crate::simd::dispatch::vectorised;
use block::{BLOCK, Buffers, Halves};

/// Types of blocks: steps of an error bound, fixed-point numbers, bits in the order of values.
const STEPS: u8 = 0;
const FIXED: u8 = 1;
const ORDERED: u8 = 2;

/// Buffers that are reused for all streams.
#[derive(Default)]
pub(crate) struct Scratch {
    words: Vec<u32>,
    exceptions: Exceptions,
}

/// The maximum number of bytes of a bit-packed stream of `raw` bytes of values.
#[must_use]
pub fn max_encoded_bytes(raw: usize) -> usize {
    raw + raw / 16 + 512
}

/// Appends the blocks and exceptions of an array to `out`. Returns false, and leaves `out` unchanged, if too many values
/// are too large for the bound.
pub(crate) fn encode<T: Element>(
    values: &[T],
    shape: &[usize],
    bound: f64,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) -> bool {
    let start = out.len();
    scratch.exceptions.clear();
    if bound == 0.0 {
        lossless::write(values, &mut scratch.exceptions, out);
    } else if !write_within_bound(values, shape, bound, scratch, out) {
        out.truncate(start);
        return false;
    }
    scratch.exceptions.write(values, out);
    true
}

/// Appends the blocks of values within a bound, unless too many values are exceptions.
fn write_within_bound<T: Element>(
    values: &[T],
    shape: &[usize],
    bound: f64,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) -> bool {
    let Scratch { words, exceptions } = scratch;
    words.resize(values.len(), 0);
    steps::quantize_all(values, bound, words, |at| exceptions.push(at));
    if exceptions.len() > values.len() / 64 + 4 {
        return false;
    }
    let (across, order) = order_choice::choose_for_array(words, shape);
    out.push(across);
    for (length, distance) in distances(shape, across) {
        differences::subtract_at_distance(words, length, distance);
    }
    let mut buffers = Buffers::default();
    for words in words.chunks(BLOCK) {
        let order = order.min(words.len() - 1);
        out.push(order as u8 | STEPS << 4);
        buffers.words[..words.len()].copy_from_slice(words);
        block::write(&mut buffers, words.len(), order, out);
    }
    true
}

/// For each dimension of the mask `across`: the number of words of a part that is divided along it, and the distance of
/// neighbours.
fn distances(shape: &[usize], across: u8) -> impl DoubleEndedIterator<Item = (usize, usize)> {
    let of_dimension = move |d: usize| {
        // The product of the other lengths of an empty array may overflow. Parts must not be empty, because buffers are
        // split into parts.
        let words = |lengths: &[usize]| {
            let product = |n: usize, length: &usize| n.saturating_mul((*length).max(1));
            lengths.iter().fold(1, product)
        };
        (words(&shape[d..]), words(&shape[d + 1..]))
    };
    (0..shape.len())
        .filter(move |d| across >> d & 1 == 1)
        .map(of_dimension)
}

/// Decodes an array of `out.len()` values and 1 to 4 dimensions.
pub(crate) fn decode<T: Element>(
    mut cursor: Cursor<'_>,
    shape: &[usize],
    bound: f64,
    out: &mut [T],
    scratch: &mut Scratch,
) -> Result<()> {
    if bound == 0.0 {
        lossless::read(&mut cursor, out)?;
    } else {
        read_within_bound(&mut cursor, shape, bound, scratch, out)?;
    }
    exceptions::read(&mut cursor, out)?;
    if cursor.0.is_empty() {
        Ok(())
    } else {
        Err(corrupt!(
            "expected the end of the stream; found {} more bytes",
            cursor.0.len()
        ))
    }
}

/// Reads the blocks of values within a bound.
fn read_within_bound<T: Element>(
    cursor: &mut Cursor<'_>,
    shape: &[usize],
    bound: f64,
    scratch: &mut Scratch,
    out: &mut [T],
) -> Result<()> {
    let across = cursor.byte()?;
    if across >> (shape.len() - 1) != 0 {
        return Err(corrupt!(
            "the mask of difference dimensions is {across:#b}; expected bits of all but the last of {} dimensions",
            shape.len()
        ));
    }
    let (step, mut halves) = (steps::step(bound), Halves::default());
    if across == 0 {
        let mut words = [0; BLOCK];
        for values in out.chunks_mut(BLOCK) {
            let words = &mut words[..values.len()];
            let order = read_order(cursor)?;
            block::read(cursor, order, words, &mut halves)?;
            dequantize(words, step, values);
        }
        return Ok(());
    }
    let words = &mut scratch.words;
    words.resize(out.len(), 0);
    for words in words.chunks_mut(BLOCK) {
        let order = read_order(cursor)?;
        block::read(cursor, order, words, &mut halves)?;
    }
    for (length, distance) in distances(shape, across).rev() {
        differences::add_at_distance(words, length.max(1), distance);
    }
    dequantize(words, step, out);
    Ok(())
}

/// Reads the type of a block, which must be steps, and the order of its differences.
fn read_order(cursor: &mut Cursor<'_>) -> Result<usize> {
    let byte = cursor.byte()?;
    if byte >> 4 == STEPS {
        Ok(usize::from(byte & 15))
    } else {
        Err(corrupt!(
            "a block of an error-bounded stream has type {}; expected {STEPS}",
            byte >> 4
        ))
    }
}

vectorised! {
    fn dequantize [T: Element] of [T] (words: &[u32], step: f64, values: &mut [T]) {
        for (value, word) in values.iter_mut().zip(words) {
            *value = steps::value(*word, step);
        }
    }
}
