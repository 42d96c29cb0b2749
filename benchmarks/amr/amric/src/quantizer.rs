//! SZ's linear quantizer: residuals as multiples of twice the bound, or the value verbatim.

use crate::bytes::{Cursor, write_number};
use crate::huffman;
use crate::schemes::{Error, Result};
use crate::value::Value;

/// Residuals are smaller than this number of steps. It is also the symbol of residual 0; symbol 0
/// means that the value is stored verbatim.
const RADIUS: f64 = 32768.0;

/// Source of decoded values: the encoder computes them, the decoder reads them.
pub(crate) trait Residuals<T> {
    /// The decoded value at index `at`, given its prediction.
    fn value(&mut self, at: usize, predicted: f64) -> T;
    /// Sets the bound of the next values, which is at most the initial one.
    fn set_bound(&mut self, bound: f64);
}

#[inline(always)]
fn finite_or_zero(predicted: f64) -> f64 {
    if predicted.is_finite() {
        predicted
    } else {
        0.0
    }
}

/// Encodes residuals.
pub(crate) struct Encoding<'a, T> {
    pub(crate) values: &'a [T],
    pub(crate) bound: f64,
    symbols: Vec<u16>,
    literals: Vec<u8>,
}

impl<'a, T: Value> Encoding<'a, T> {
    pub(crate) fn new(values: &'a [T], bound: f64) -> Self {
        Self {
            values,
            bound,
            symbols: Vec::with_capacity(values.len()),
            literals: Vec::new(),
        }
    }

    /// The symbols so far.
    pub(crate) fn symbols(&self) -> &[u16] {
        &self.symbols
    }

    /// Appends literals and symbols.
    pub(crate) fn finish(&self, out: &mut Vec<u8>) {
        write_number((self.literals.len() / T::SIZE) as u64, out);
        out.extend_from_slice(&self.literals);
        huffman::encode(&self.symbols, out);
    }
}

impl<T: Value> Residuals<T> for Encoding<'_, T> {
    #[inline(always)]
    fn value(&mut self, at: usize, predicted: f64) -> T {
        let value = self.values[at];
        let (exact, predicted) = (value.to_f64(), finite_or_zero(predicted));
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

/// Decodes residuals.
pub(crate) struct Decoding<'a> {
    bound: f64,
    symbols: std::vec::IntoIter<u16>,
    literals: &'a [u8],
    short: bool,
}

impl<'a> Decoding<'a> {
    /// Reads what [`Encoding::finish`] wrote of `count` values.
    pub(crate) fn read<T: Value>(
        cursor: &mut Cursor<'a>,
        count: usize,
        bound: f64,
    ) -> Result<Self> {
        let literals = cursor.number_to(count)?;
        let literals = cursor.bytes(literals * T::SIZE)?;
        let symbols = huffman::decode(cursor, count)?.into_iter();
        if !cursor.0.is_empty() {
            return Err(Error(c"the stream has excess bytes"));
        }
        Ok(Self {
            bound,
            symbols,
            literals,
            short: false,
        })
    }

    /// Checks that the stream held exactly the values that were read.
    pub(crate) fn finish(&self) -> Result<()> {
        if self.short || !self.literals.is_empty() || !self.symbols.as_slice().is_empty() {
            return Err(Error(c"the number of values in the stream differs"));
        }
        Ok(())
    }

    #[cold]
    fn literal<T: Value>(&mut self) -> T {
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

impl<T: Value> Residuals<T> for Decoding<'_> {
    #[inline(always)]
    fn value(&mut self, _at: usize, predicted: f64) -> T {
        match self.symbols.next() {
            Some(0) => self.literal(),
            Some(symbol) => {
                let steps = f64::from(symbol) - RADIUS;
                T::from_f64(finite_or_zero(predicted) + steps * (2.0 * self.bound))
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
