//! Packed streams: encoded and decoded near the speed of memory, and larger than those of the walk.
//!
//! Values become integers, whose differences are packed with as many bits as the widest of a group has:
//! no entropy coder, no contexts, and loops that processors do for several values at once.

mod block;
mod choose_order;
mod differences;
mod fixed_point;
mod lanes;
mod lossless;
mod steps;
mod word;

#[cfg(test)]
mod tests;

use crate::element::Element;
use crate::entropy::bitio::Cursor;
use crate::entropy::exceptions::{self, Exceptions};
use crate::error::{Corrupt, Result};
use crate::simd::dispatch::vectorised;
use block::{BLOCK, Buffers, Halves};

/// What a block's words are.
const STEPS: u8 = 0;
const FIXED: u8 = 1;
const ORDERED: u8 = 2;

/// Memory that is kept from stream to stream.
#[derive(Default)]
pub(crate) struct Memory {
    words: Vec<u32>,
    exceptions: Exceptions,
}

/// Bytes that a stream of so many bytes of values takes at most, and its checksum behind it.
#[must_use]
pub fn most_bytes(raw: usize) -> usize {
    raw + raw / 16 + 512
}

/// Appends the values of an array of this shape to `out`; false, and `out` as it was, where another kind of
/// stream suits the values better: where many are too large for the bound, or none.
pub(crate) fn encode<T: Element>(
    values: &[T],
    shape: &[usize],
    bound: f64,
    memory: &mut Memory,
    out: &mut Vec<u8>,
) -> bool {
    let start = out.len();
    memory.exceptions.clear();
    if bound == 0.0 {
        lossless::write(values, &mut memory.exceptions, out);
    } else if !within_bound(values, shape, bound, memory, out) {
        out.truncate(start);
        return false;
    }
    memory.exceptions.write(values, out);
    true
}

/// Appends the blocks of values within a bound, unless too many are exceptions.
fn within_bound<T: Element>(
    values: &[T],
    shape: &[usize],
    bound: f64,
    memory: &mut Memory,
    out: &mut Vec<u8>,
) -> bool {
    let Memory { words, exceptions } = memory;
    words.resize(values.len(), 0);
    steps::make(values, bound, words, |at| exceptions.push(at));
    if exceptions.len() > values.len() / 64 + 4 {
        return false;
    }
    let (across, order) = choose_order::of_array(words, shape);
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

/// For each dimension of `across` the words of what is divided along it, and of one of its parts.
fn distances(shape: &[usize], across: u8) -> impl DoubleEndedIterator<Item = (usize, usize)> {
    let of_dimension = move |d: usize| {
        // An empty array may have other lengths whose product overflows. Its parts must have words all the
        // same: memory is cut into parts, and parts of nothing would be endlessly many.
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

/// Decodes the values of an array of this shape, of 1 to 4 dimensions, which holds `out.len()` values.
pub(crate) fn decode<T: Element>(
    mut cursor: Cursor<'_>,
    shape: &[usize],
    bound: f64,
    out: &mut [T],
    memory: &mut Memory,
) -> Result<()> {
    if bound == 0.0 {
        lossless::read(&mut cursor, out)?;
    } else {
        steps_of(&mut cursor, shape, bound, memory, out)?;
    }
    exceptions::read(&mut cursor, out)?;
    if cursor.0.is_empty() {
        Ok(())
    } else {
        Err(Corrupt("expected the end of the stream; found more bytes"))
    }
}

/// Reads the blocks of values within a bound.
fn steps_of<T: Element>(
    cursor: &mut Cursor<'_>,
    shape: &[usize],
    bound: f64,
    memory: &mut Memory,
    out: &mut [T],
) -> Result<()> {
    let across = cursor.byte()?;
    if across >> (shape.len() - 1) != 0 {
        return Err(Corrupt(
            "the mask of difference dimensions names a dimension that the array lacks",
        ));
    }
    let (step, mut halves) = (steps::step(bound), Halves::default());
    if across == 0 {
        let mut words = [0; BLOCK];
        for values in out.chunks_mut(BLOCK) {
            let words = &mut words[..values.len()];
            let order = steps_order(cursor)?;
            block::read(cursor, order, words, &mut halves)?;
            make_values(words, step, values);
        }
        return Ok(());
    }
    let words = &mut memory.words;
    words.resize(out.len(), 0);
    for words in words.chunks_mut(BLOCK) {
        let order = steps_order(cursor)?;
        block::read(cursor, order, words, &mut halves)?;
    }
    for (length, distance) in distances(shape, across).rev() {
        differences::add_at_distance(words, length.max(1), distance);
    }
    make_values(words, step, out);
    Ok(())
}

/// The order of a block of steps.
fn steps_order(cursor: &mut Cursor<'_>) -> Result<usize> {
    let byte = cursor.byte()?;
    if byte >> 4 == STEPS {
        Ok(usize::from(byte & 15))
    } else {
        Err(Corrupt("unknown block type"))
    }
}

vectorised! {
    fn make_values [T: Element] of [T] (words: &[u32], step: f64, values: &mut [T]) {
        for (value, word) in values.iter_mut().zip(words) {
            *value = steps::value(*word, step);
        }
    }
}
