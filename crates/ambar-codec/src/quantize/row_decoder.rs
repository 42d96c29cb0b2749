//! The decoder of rows: tokens and raw bits to values.

use crate::element::Element;
use crate::entropy::bitio::BitReader;
use crate::entropy::rans::SymbolContexts;
use crate::entropy::symbols::packet_of_level;
use crate::entropy::token::{self, DIRECT, FIRST_LONG_TOKEN, LITERAL, for_each_raw, has_raw_bits};
use crate::entropy::token_groups::{Groups, TokenDecoder};
use crate::error::{Result, corrupt};
use crate::predict::reconstruct::{add_and_store_magnitudes, add_tokens};
use crate::predict::row::{RawPoint, Row, RowCoder, literal_or_prediction};
use crate::quantize::float_order::sum;
use crate::simd::compact::{compact, expand, expand_rows};
use crate::simd::dispatch::vectorised;
use crate::simd::{LANES, RowMask};

/// Raw bits are frequent from one byte for this number of values.
const FREQUENT_RAW_RATIO: usize = 8;

/// The symbols and raw bits of a level packet.
pub(crate) struct Packet<'a> {
    symbols: TokenDecoder<'a>,
    raw: BitReader<'a>,
    /// Whether most rows are expected to have raw bits.
    has_frequent_raw_bits: bool,
}

impl<'a> Packet<'a> {
    /// A packet of about `count` values.
    pub(crate) fn new(symbols: TokenDecoder<'a>, raw: &'a [u8], count: usize) -> Self {
        Self {
            symbols,
            raw: BitReader::new(raw),
            has_frequent_raw_bits: raw.len() > count / FREQUENT_RAW_RATIO,
        }
    }

    /// Checks that exactly all symbols and raw bits were read.
    fn finish(&self) -> Result<()> {
        self.symbols.finish()?;
        self.raw.finish()
    }
}

/// Decodes the rows of all regions.
pub(crate) struct Decoder<'a> {
    /// The first level packets of the stream.
    packets: Vec<Packet<'a>>,
    /// The number of packets in the stream.
    packet_count: usize,
    /// The index of the packet that holds the current level.
    current: usize,
    /// The decoder of token groups, for runs of tokens with one context.
    groups: Groups,
    /// Whether the tables of single tokens, and of groups, are missing although the coder needs them.
    missing_tables: [bool; 2],
    /// Whether any single tokens, and any groups, were decoded.
    has_symbols: [bool; 2],
    /// Literals: their indices in the region, and their bits.
    pub literals: Vec<(usize, u64)>,
    /// Compacted tokens: of the current row, or decoded in advance for several rows, of which `used` have been used.
    compacted: Vec<u8>,
    used: usize,
    /// Whether any of the tokens that were decoded in advance has raw bits.
    has_raw_bits: bool,
    contexts: Vec<u8>,
    /// The tokens of the current row; 0 for absent points.
    tokens: Vec<u8>,
    residuals: Vec<u64>,
}

impl<'a> Decoder<'a> {
    /// A decoder of the first level packets of a stream that has `packet_count`. Only their levels can be decoded.
    /// `missing_tables`: whether the stream lacks the tables that single tokens, and groups, would need.
    pub(crate) fn new(
        packets: Vec<Packet<'a>>,
        packet_count: usize,
        groups: Groups,
        missing_tables: [bool; 2],
    ) -> Self {
        Self {
            packets,
            packet_count,
            current: 0,
            groups,
            missing_tables,
            has_symbols: [false; 2],
            literals: Vec::new(),
            compacted: Vec::new(),
            used: 0,
            has_raw_bits: false,
            contexts: Vec::new(),
            tokens: Vec::new(),
            residuals: Vec::new(),
        }
    }

    /// Checks that exactly all symbols and raw bits were read, and that all symbols have a table.
    pub(crate) fn finish(&self) -> Result<()> {
        let mut pairs = self.has_symbols.iter().zip(&self.missing_tables);
        if pairs.any(|(has_symbols, is_missing)| *has_symbols && *is_missing) {
            return Err(corrupt!(
                "the stream has symbols, but no frequency table for single tokens or groups"
            ));
        }
        self.packets.iter().try_for_each(Packet::finish)
    }

    /// Decodes the tokens of a row, or lays out those that were decoded in advance.
    #[inline(always)]
    fn tokens<T>(&mut self, row: &Row<'_, T>) {
        let (n, count) = (row.points, row.count);
        self.has_symbols[0] |= row.contexts.is_some() && count > 0;
        if self.tokens.len() < n + LANES {
            self.tokens.resize(n + LANES, 0);
        }
        let whole = count == n;
        match row.contexts {
            Some(contexts) if whole => {
                let tokens = &mut self.tokens[..n];
                let symbols = &mut self.packets[self.current].symbols;
                symbols.decode(SymbolContexts::Each(contexts), tokens);
            }
            Some(contexts) => {
                self.contexts.resize(n + LANES, 0);
                self.compacted.resize(n + LANES, 0);
                compact(row.present, contexts, &mut self.contexts);
                let tokens = &mut self.compacted[..count];
                let symbols = &mut self.packets[self.current].symbols;
                symbols.decode(SymbolContexts::Each(&self.contexts), tokens);
                expand(row.present, n, &self.compacted, &mut self.tokens);
            }
            None => {
                let compacted = &self.compacted[self.used..];
                if whole {
                    self.tokens[..n].copy_from_slice(&compacted[..n]);
                } else {
                    expand(row.present, n, compacted, &mut self.tokens);
                }
                self.used += count;
            }
        }
        if let Some(room) = self.tokens[n..].first_chunk_mut() {
            *room = [0; LANES];
        }
    }

    /// Replaces the literals of the last row, which begins at `start` in the region and is complete, by their values.
    pub(crate) fn restore_literals<T: Element>(&mut self, start: usize, values: &mut [T]) {
        for (at, word) in self.literals.drain(..) {
            values[at - start] = T::from_word(word);
        }
    }

    /// Reads the residuals of a row that may have tokens with many raw bits, or literals, whose residual is 0.
    #[cold]
    fn read_long_residuals<T: Element>(&mut self, row: &Row<'_, T>) {
        let tokens = self.tokens[..row.points].iter().zip(&mut self.residuals);
        for (point, (token, residual)) in tokens.enumerate() {
            *residual = if *token == LITERAL {
                let at = row.location.start + point * row.location.step;
                self.literals
                    .push((at, self.packets[self.current].raw.read(8 * T::SIZE as u32)));
                0
            } else {
                token::join(
                    *token,
                    self.packets[self.current].raw.read(token::raw_bits(*token)),
                )
            };
        }
    }

    /// Reconstructs the points of a row that have raw bits, after all others.
    #[inline(never)]
    fn reconstruct_raw_points<T: Element>(&mut self, mut row: Row<'_, T>) {
        let step = T::from_f64(row.level.step);
        let tokens = std::mem::take(&mut self.tokens);
        for_each_raw(&tokens[..row.points], |k, token| {
            let raw = self.raw_point::<T>(token, row.location.start + k * row.location.step);
            row.values[k] = raw.value(row.predictions[k], step);
            if let Some(magnitudes) = &mut row.magnitudes {
                magnitudes[k] = raw.magnitude();
            }
        });
        self.tokens = tokens;
    }

    /// Reads the raw bits of a token, whose index in the region is `at`.
    fn raw_point<T: Element>(&mut self, token: u8, at: usize) -> RawPoint<T> {
        if token == LITERAL {
            let bits = self.packets[self.current].raw.read(8 * T::SIZE as u32);
            self.literals.push((at, bits));
            return RawPoint::Literal(T::from_word(bits));
        }
        let folded = token::join(
            token,
            self.packets[self.current].raw.read(token::raw_bits(token)),
        );
        RawPoint::Residual(token::unfold(folded) as i32)
    }

    /// Reconstructs a row with frequent raw bits, or a lossless row.
    fn row_with_raw_bits<T: Element>(&mut self, row: Row<'_, T>) {
        let n = row.points;
        let largest = self.tokens[..n]
            .iter()
            .fold(0, |largest, token| largest.max(*token));
        if self.residuals.len() < n {
            self.residuals.resize(n, 0);
        }
        if largest < FIRST_LONG_TOKEN {
            self.packets[self.current]
                .raw
                .read_residuals(&self.tokens[..n], &mut self.residuals);
        } else {
            self.read_long_residuals(&row);
        }
        let is_lossless = row.level.step == 0.0;
        let step = T::from_f64(row.level.step);
        let (residuals, predictions) = (&self.residuals[..n], &row.predictions[..n]);
        if is_lossless {
            add_lossless(
                residuals,
                row.level.shift,
                predictions,
                &mut row.values[..n],
            );
        } else {
            add_residuals(residuals, step, predictions, &mut row.values[..n]);
        }
        let literals = (0..n).filter(|k| self.tokens[*k] == LITERAL);
        if largest == LITERAL {
            let of_row = self.literals.len() - literals.clone().count();
            for (k, (_, bits)) in literals.clone().zip(&self.literals[of_row..]) {
                let literal = T::from_word(*bits);
                row.values[k] = literal_or_prediction(literal, row.predictions[k], step);
            }
        }
        let Some(magnitudes) = row.magnitudes else {
            return;
        };
        store_magnitudes(&self.residuals[..n], is_lossless, &mut magnitudes[..n]);
        if largest == LITERAL {
            literals.for_each(|k| magnitudes[k] = if is_lossless { 64 } else { u8::MAX });
        }
    }
}

impl<T: Element> RowCoder<T> for Decoder<'_> {
    const BATCHED: bool = true;

    fn begin_level(&mut self, number: usize) {
        self.current = packet_of_level(number, self.packet_count);
    }

    fn set_context(&mut self, context: u8, count: usize) {
        self.compacted.resize(count + LANES, 0);
        self.used = 0;
        let symbols = &mut self.packets[self.current].symbols;
        let run = self
            .groups
            .decode(symbols, context, count, &mut self.compacted);
        self.has_symbols[0] |= run.single > 0;
        self.has_symbols[1] |= run.groups > 0;
        self.has_raw_bits = run.has_raw_bits;
    }

    fn set_contexts(&mut self, contexts: &[u8]) {
        self.compacted.resize(contexts.len() + LANES, 0);
        self.has_symbols[0] |= !contexts.is_empty();
        self.used = 0;
        let tokens = &mut self.compacted[..contexts.len()];
        let symbols = &mut self.packets[self.current].symbols;
        symbols.decode(SymbolContexts::Each(contexts), tokens);
        self.has_raw_bits = has_raw_bits(tokens);
    }

    fn scatter_tokens<'s>(
        &mut self,
        rows: impl Iterator<Item = RowMask<'s>>,
        points: usize,
        tokens: &mut [u8],
    ) -> bool {
        self.used += expand_rows(rows, points, &self.compacted[self.used..], tokens);
        self.has_raw_bits
    }

    fn raw(&mut self, token: u8, at: usize) -> RawPoint<T> {
        self.raw_point(token, at)
    }

    fn row(&mut self, mut row: Row<'_, T>) {
        self.tokens(&row);
        let is_lossless = row.level.step == 0.0;
        if is_lossless || self.packets[self.current].has_frequent_raw_bits {
            return self.row_with_raw_bits(row);
        }
        // Few or no tokens have raw bits.
        let step = T::from_f64(row.level.step);
        let tokens = &self.tokens[..row.values.len()];
        let token_bits = match &mut row.magnitudes {
            Some(magnitudes) => {
                add_and_store_magnitudes(tokens, step, row.predictions, row.values, magnitudes)
            }
            None => add_tokens(tokens, step, row.predictions, row.values),
        };
        if token_bits >= DIRECT {
            self.reconstruct_raw_points(row);
        }
    }
}

vectorised! {
    /// Adds folded residuals to predictions.
    fn add_residuals [T: Element] of [T] (
        residuals: &[u64],
        step: T,
        predictions: &[T],
        values: &mut [T],
    ) {
        for ((value, prediction), folded) in values.iter_mut().zip(predictions).zip(residuals) {
            let residual = T::from_i32(token::unfold(*folded) as i32);
            *value = prediction.plus(residual.times(step));
        }
    }
}

vectorised! {
    /// Adds folded lossless residuals to predictions.
    fn add_lossless [T: Element] of [T] (
        residuals: &[u64],
        shift: u32,
        predictions: &[T],
        values: &mut [T],
    ) {
        for ((value, prediction), folded) in values.iter_mut().zip(predictions).zip(residuals) {
            *value = sum(*prediction, *folded, shift);
        }
    }
}

vectorised! {
    /// Computes the magnitudes of folded residuals; for lossless coding, their lengths in bits.
    fn store_magnitudes [] of [] (residuals: &[u64], is_lossless: bool, magnitudes: &mut [u8]) {
        for (magnitude, folded) in magnitudes.iter_mut().zip(residuals) {
            *magnitude = if is_lossless {
                (64 - folded.leading_zeros()) as u8
            } else {
                (token::unfold(*folded) as i32).unsigned_abs().min(255) as u8
            };
        }
    }
}
