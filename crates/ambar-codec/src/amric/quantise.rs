//! Residuals as whole multiples of twice the bound, or the value itself: SZ's linear quantiser.

use super::huffman;
use crate::element::Element;
use crate::entropy::bitio::{Cursor, write_number};
use crate::error::{Corrupt, Result};

/// Residuals lie below this many steps; the symbol of a residual of 0. Symbol 0: the value itself.
const RADIUS: f64 = 32768.0;

/// What a walk asks for every value: the encoder knows it, the decoder reads it.
pub(super) trait Residuals<T> {
    /// The value number `at` as it will be decoded, where `predicted` was predicted.
    fn value(&mut self, at: usize, predicted: f64) -> T;
    /// Sets the bound of the values from here on, at most the one at the beginning.
    fn set_bound(&mut self, bound: f64);
}

#[inline(always)]
fn sane(predicted: f64) -> f64 {
    if predicted.is_finite() {
        predicted
    } else {
        0.0
    }
}

/// Residuals being made.
pub(super) struct Encoding<'a, T> {
    pub(super) values: &'a [T],
    pub(super) bound: f64,
    symbols: Vec<u16>,
    literals: Vec<u8>,
}

impl<'a, T: Element> Encoding<'a, T> {
    pub(super) fn new(values: &'a [T], bound: f64) -> Self {
        Self {
            values,
            bound,
            symbols: Vec::with_capacity(values.len()),
            literals: Vec::new(),
        }
    }

    /// The symbols so far.
    pub(super) fn symbols(&self) -> &[u16] {
        &self.symbols
    }

    /// Appends literals and symbols.
    pub(super) fn finish(&self, out: &mut Vec<u8>) {
        write_number((self.literals.len() / T::SIZE) as u64, out);
        out.extend_from_slice(&self.literals);
        huffman::encode(&self.symbols, out);
    }
}

impl<T: Element> Residuals<T> for Encoding<'_, T> {
    #[inline(always)]
    fn value(&mut self, at: usize, predicted: f64) -> T {
        let value = self.values[at];
        let (exact, predicted) = (value.to_f64(), sane(predicted));
        let steps = ((exact - predicted) / (2.0 * self.bound)).round();
        if steps.abs() < RADIUS {
            let decoded = T::from_f64(predicted + steps * (2.0 * self.bound));
            if (decoded.to_f64() - exact).abs() <= self.bound {
                self.symbols.push((steps + RADIUS) as u16);
                return decoded;
            }
        }
        self.symbols.push(0);
        self.literals
            .extend_from_slice(&value.to_word().to_le_bytes()[..T::SIZE]);
        value
    }

    fn set_bound(&mut self, bound: f64) {
        self.bound = bound;
    }
}

/// Residuals being read.
pub(super) struct Decoding<'a> {
    bound: f64,
    symbols: std::vec::IntoIter<u16>,
    literals: &'a [u8],
    short: bool,
}

impl<'a> Decoding<'a> {
    /// Reads what [`Encoding::finish`] wrote of `count` values.
    pub(super) fn read<T: Element>(
        cursor: &mut Cursor<'a>,
        count: usize,
        bound: f64,
    ) -> Result<Self> {
        let literals = cursor.number_to(count)?;
        let literals = cursor.bytes(literals * T::SIZE)?;
        let symbols = huffman::decode(cursor, count)?.into_iter();
        if !cursor.0.is_empty() {
            return Err(Corrupt("the stream goes on where it should end"));
        }
        Ok(Self {
            bound,
            symbols,
            literals,
            short: false,
        })
    }

    /// Checks that all was read and nothing was lacking.
    pub(super) fn finish(&self) -> Result<()> {
        if self.short || !self.literals.is_empty() || !self.symbols.as_slice().is_empty() {
            return Err(Corrupt("the stream holds another number of values"));
        }
        Ok(())
    }

    #[cold]
    fn literal<T: Element>(&mut self) -> T {
        let mut word = [0; 8];
        match self.literals.split_at_checked(T::SIZE) {
            Some((bytes, rest)) => {
                word[..T::SIZE].copy_from_slice(bytes);
                self.literals = rest;
            }
            None => self.short = true,
        }
        T::from_word(u64::from_le_bytes(word))
    }
}

impl<T: Element> Residuals<T> for Decoding<'_> {
    #[inline(always)]
    fn value(&mut self, _at: usize, predicted: f64) -> T {
        match self.symbols.next() {
            Some(0) => self.literal(),
            Some(symbol) => {
                let steps = f64::from(symbol) - RADIUS;
                T::from_f64(sane(predicted) + steps * (2.0 * self.bound))
            }
            None => {
                self.short = true;
                T::default()
            }
        }
    }

    fn set_bound(&mut self, bound: f64) {
        self.bound = bound;
    }
}
