//! Lossless blocks: fixed-point numbers if possible, otherwise bits in the order of the values.

use super::block::{self, BLOCK, Buffers, Halves};
use super::order_choice::{self, Costs};
use super::{FIXED, ORDERED, fixed_point};
use crate::element::Element;
use crate::entropy::bitio::Cursor;
use crate::entropy::exceptions::Exceptions;
use crate::error::{Result, corrupt};
use crate::simd::dispatch::vectorised;

/// Maximum number of exceptions of a fixed-point block.
const MAX_EXCEPTIONS: usize = 16;

/// The orders of differences for both types of blocks.
struct Orders {
    /// `None` if bits in order are smaller.
    fixed: Option<usize>,
    ordered: usize,
}

/// Converts a block to fixed-point numbers. Returns the exponent, and calls `except` with the index of each exception.
fn fix<T: Element>(values: &[T], words: &mut [u64], except: &mut impl FnMut(usize)) -> Option<i32> {
    let mut plain = [0.0; BLOCK];
    let plain = &mut plain[..values.len()];
    for (plain, value) in plain.iter_mut().zip(values) {
        *plain = value.to_f64();
    }
    if let Some(exponent) = fixed_point::fix(plain, words) {
        return Some(exponent);
    }
    let odd = plain
        .iter()
        .filter(|value| fixed_point::is_exceptional(**value))
        .count();
    if odd == 0 || odd > MAX_EXCEPTIONS {
        return None;
    }
    // Exceptions are replaced by similar values: 0, or the value before.
    let mut last = 0.0;
    for value in plain.iter_mut() {
        *value = match *value {
            value if !fixed_point::is_exceptional(value) => value,
            value if value.abs() < 1.0 => 0.0,
            _ => last,
        };
        last = *value;
    }
    let exponent = fixed_point::fix(plain, words)?;
    let odd = |value: &T| fixed_point::is_exceptional(value.to_f64());
    let places = (0..values.len()).filter(|at| odd(&values[*at]));
    places.for_each(except);
    Some(exponent)
}

vectorised! {
    fn order_bits [T: Element] of [T] (values: &[T], words: &mut [u64]) {
        for (word, value) in words.iter_mut().zip(values) {
            *word = fixed_point::bits_in_order(*value);
        }
    }
}

vectorised! {
    /// Undoes [`order_bits`].
    fn unorder_bits [T: Element] of [T] (words: &[u64], values: &mut [T]) {
        for (value, word) in values.iter_mut().zip(words) {
            *value = fixed_point::from_bits_in_order(*word);
        }
    }
}

/// Appends all blocks.
pub(super) fn write<T: Element>(values: &[T], exceptions: &mut Exceptions, out: &mut Vec<u8>) {
    let mut buffers = Buffers::<u64>::default();
    let chosen = choose(values, &mut buffers);
    for (number, values) in values.chunks(BLOCK).enumerate() {
        let count = values.len();
        let mut except = |at| exceptions.push(number * BLOCK + at);
        let words = &mut buffers.words[..count];
        let fixed = chosen
            .fixed
            .and_then(|order| Some((order, fix(values, words, &mut except)?)));
        let order = if let Some((order, exponent)) = fixed {
            let order = order.min(count - 1);
            out.push(order as u8 | FIXED << 4);
            out.extend((exponent as i16).to_le_bytes());
            order
        } else {
            order_bits(values, words);
            let order = chosen.ordered.min(count - 1);
            out.push(order as u8 | ORDERED << 4);
            order
        };
        block::write(&mut buffers, count, order, out);
    }
}

/// Chooses the types and orders by a few blocks.
fn choose<T: Element>(values: &[T], buffers: &mut Buffers<u64>) -> Orders {
    let mut fixed = Costs::default();
    // Costs of bits in order: of the blocks that have a fixed point, and of all.
    let (mut same, mut all) = (Costs::default(), Costs::default());
    for sample in order_choice::samples(values.len()) {
        let values = &values[sample];
        order_bits(values, &mut buffers.words);
        let ordered = order_choice::costs(buffers, values.len());
        all.add(&ordered);
        if fix(values, &mut buffers.words, &mut |_| ()).is_some() {
            same.add(&ordered);
            fixed.add(&order_choice::costs(buffers, values.len()));
        }
    }
    Orders {
        fixed: (fixed.least() <= same.least()).then(|| fixed.order()),
        ordered: all.order(),
    }
}

/// Reads all blocks.
pub(super) fn read<T: Element>(cursor: &mut Cursor<'_>, out: &mut [T]) -> Result<()> {
    let mut words = [0; BLOCK];
    let mut halves = Halves::default();
    for values in out.chunks_mut(BLOCK) {
        let words = &mut words[..values.len()];
        let byte = cursor.byte()?;
        let order = usize::from(byte & 15);
        match byte >> 4 {
            FIXED => {
                let exponent = [cursor.byte()?, cursor.byte()?];
                let exponent = i32::from(i16::from_le_bytes(exponent));
                if !fixed_point::is_exponent(exponent) {
                    return Err(corrupt!(
                        "the exponent of a block is {exponent}; expected {:?}",
                        fixed_point::EXPONENTS
                    ));
                }
                block::read(cursor, order, words, &mut halves)?;
                fixed_point::unfix(words, exponent, values);
            }
            ORDERED => {
                block::read(cursor, order, words, &mut halves)?;
                unorder_bits(words, values);
            }
            kind => {
                return Err(corrupt!(
                    "a block of a lossless stream has type {kind}; expected {FIXED} or {ORDERED}"
                ));
            }
        }
    }
    Ok(())
}
