//! Tokens and raw bits to rows of values.

use crate::bits::BitReader;
use crate::element::Element;
use crate::order::sum;
use crate::passes::{Row, RowCoder};
use crate::rans;
use crate::token::{self, DIRECT, LITERAL, QUICK};

/// Decodes rows.
pub(crate) struct Decoder<'a> {
    pub symbols: rans::Decoder<'a>,
    pub raw: BitReader<'a>,
    /// Where the table of each bin begins.
    bases: &'a [u32; 256],
    /// Literals: index in the region, bits.
    pub literals: Vec<(usize, u64)>,
    /// Of the current row.
    tokens: Vec<u8>,
    residuals: Vec<u64>,
}

impl<'a> Decoder<'a> {
    /// A decoder; `bases` has an entry for every bin.
    pub(crate) fn new(
        symbols: rans::Decoder<'a>,
        raw: BitReader<'a>,
        bases: &'a [u32; 256],
    ) -> Self {
        Self {
            symbols,
            raw,
            bases,
            literals: Vec::new(),
            tokens: Vec::new(),
            residuals: Vec::new(),
        }
    }

    /// Reads the raw bits of a row; its literals' become their predictions' residuals, 0.
    #[cold]
    fn slow_residuals<T: Element>(&mut self, row: &Row<'_, T>) {
        let mut points = row.runs.iter().flat_map(|(first, n)| *first..first + n);
        for (token, residual) in self.tokens[..row.count].iter().zip(&mut self.residuals) {
            let point = points.next().unwrap_or(0);
            *residual = if *token == LITERAL {
                let at = row.place.start + point * row.place.step;
                self.literals.push((at, self.raw.read(8 * T::SIZE as u32)));
                0
            } else {
                token::join(*token, self.raw.read(token::raw_bits(*token)))
            };
        }
    }
}

impl<T: Element> RowCoder<T> for Decoder<'_> {
    fn row(&mut self, row: Row<'_, T>) {
        let n = row.count;
        if self.tokens.len() < n {
            self.tokens.resize(n, 0);
            self.residuals.resize(n, 0);
        }
        self.symbols
            .decode(&row.bins[..n], self.bases, &mut self.tokens[..n]);
        let tokens = &self.tokens[..n];
        let largest = tokens.iter().fold(0, |largest, token| largest.max(*token));
        let outs = row.values[..n].iter_mut().zip(&mut row.marks[..n]);
        let outs = outs.zip(&row.predictions[..n]);
        let step = T::from_f64(row.level.step);
        let lossless = row.level.step == 0.0;
        if largest < DIRECT && !lossless {
            // The common case: no raw bits.
            for (((value, mark), prediction), token) in outs.zip(tokens) {
                let token = i32::from(*token);
                *value = prediction.plus(T::from_i32(token >> 1 ^ -(token & 1)).times(step));
                *mark = ((token + 1) >> 1) as u8;
            }
            return;
        }
        if largest < QUICK {
            self.raw.read_residuals(tokens, &mut self.residuals);
        } else {
            self.slow_residuals(&row);
        }
        let outs = row.values[..n].iter_mut().zip(&mut row.marks[..n]);
        let outs = outs.zip(&row.predictions[..n]).zip(&self.residuals);
        if lossless {
            for (((value, mark), prediction), folded) in outs {
                *value = sum(*prediction, *folded, row.level.shift);
                *mark = (64 - folded.leading_zeros()) as u8;
            }
        } else {
            for (((value, mark), prediction), folded) in outs {
                let steps = token::unfold(*folded) as i32;
                *value = prediction.plus(T::from_i32(steps).times(step));
                *mark = steps.unsigned_abs().min(255) as u8;
            }
        }
        if largest == LITERAL {
            let mark = if lossless { 64 } else { u8::MAX };
            for k in (0..n).filter(|k| self.tokens[*k] == LITERAL) {
                (row.values[k], row.marks[k]) = (row.predictions[k], mark);
            }
        }
    }
}
