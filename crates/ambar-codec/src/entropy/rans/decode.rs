//! The rANS decoder: scalar, or by vector instructions for 32 states if the processor has them.

use crate::entropy::frequencies::{PROBABILITY_BITS, SLOTS};
#[cfg(target_arch = "x86_64")]
use crate::entropy::rans::decode_avx2::{self, RemainingWords};
use crate::entropy::rans::decode_table::{ContextTables, Slots, SymbolContexts};
use crate::entropy::rans::{LOWEST, STATES, WIDE_STATES};
use crate::error::{Result, corrupt};
#[cfg(target_arch = "x86_64")]
use crate::simd::dispatch::{SimdLevel, level};

/// Refills are rare below one byte of words for this number of symbols.
const RARE_REFILL_RATIO: usize = 6;

/// The states and the remaining words.
pub(crate) struct Decoder<'a> {
    context_tables: &'a ContextTables<'a>,
    states: [u32; WIDE_STATES],
    /// The number of states.
    lanes: usize,
    words: &'a [u8],
    position: usize,
    /// Whether states are refilled so rarely that a branch is predictable.
    refills_are_rare: bool,
}

impl<'a> Decoder<'a> {
    /// A decoder of about `count` symbols that
    /// [`EncodeTables::encode_with`](crate::entropy::rans::EncodeTables::encode_with) wrote with `lanes` states.
    pub(crate) fn new(
        context_tables: &'a ContextTables<'a>,
        bytes: &'a [u8],
        count: usize,
        lanes: usize,
    ) -> Result<Self> {
        let (heads, words) = bytes.split_at_checked(4 * lanes).ok_or_else(|| {
            corrupt!(
                "the entropy-coded symbols have {} bytes; expected at least {} for {lanes} states",
                bytes.len(),
                4 * lanes
            )
        })?;
        let mut states = [LOWEST; WIDE_STATES];
        for (state, head) in states.iter_mut().zip(heads.as_chunks::<4>().0) {
            *state = u32::from_le_bytes(*head);
        }
        Ok(Self {
            context_tables,
            states,
            lanes,
            words,
            position: 0,
            refills_are_rare: words.len() < count / RARE_REFILL_RATIO,
        })
    }

    /// Decodes symbols.
    ///
    /// After the last word, states are no longer refilled; `finish` detects whether words are missing.
    pub(crate) fn decode(&mut self, contexts: SymbolContexts<'_>, symbols: &mut [u8]) {
        match self.lanes {
            WIDE_STATES => self.decode_wide(contexts, symbols),
            _ => self.decode_scalar::<STATES>(contexts, symbols),
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn decode_wide(&mut self, contexts: SymbolContexts<'_>, symbols: &mut [u8]) {
        let mut words = RemainingWords {
            words: self.words,
            position: self.position,
        };
        let (tables, states) = (self.context_tables, &mut self.states);
        match level() {
            // SAFETY: the level guarantees AVX-512.
            SimdLevel::Avx512 => unsafe {
                decode_avx2::decode_by_512(tables, contexts, symbols, states, &mut words);
            },
            // SAFETY: the level guarantees AVX2.
            SimdLevel::Avx2 => unsafe {
                decode_avx2::decode(tables, contexts, symbols, states, &mut words);
            },
            SimdLevel::Baseline => return self.decode_scalar::<WIDE_STATES>(contexts, symbols),
        }
        self.position = words.position;
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn decode_wide(&mut self, contexts: SymbolContexts<'_>, symbols: &mut [u8]) {
        self.decode_scalar::<WIDE_STATES>(contexts, symbols);
    }

    fn decode_scalar<const N: usize>(&mut self, contexts: SymbolContexts<'_>, symbols: &mut [u8]) {
        let tables = self.context_tables;
        match contexts {
            SymbolContexts::Each(contexts) => {
                let (groups, last) = contexts[..symbols.len()].as_chunks::<N>();
                self.decode_with::<N>(
                    symbols,
                    |group, k| tables.table(groups[group][k]),
                    |k| tables.table(last[k]),
                );
            }
            SymbolContexts::Same(context) => {
                let table = tables.table(context);
                self.decode_with::<N>(symbols, |_, _| table, |_| table);
            }
        }
    }

    /// Decodes symbols with `N` states. `table` returns the table of a symbol of a group; `last_table`, of a symbol after the
    /// last whole group.
    #[inline(always)]
    fn decode_with<const N: usize>(
        &mut self,
        symbols: &mut [u8],
        table: impl Fn(usize, usize) -> &'a Slots,
        last_table: impl Fn(usize) -> &'a Slots,
    ) {
        let (groups, last) = symbols.as_chunks_mut::<N>();
        let mut done = 0;
        loop {
            let guaranteed = self.guaranteed::<N>().min(groups.len() - done);
            if guaranteed == 0 {
                break;
            }
            let groups = &mut groups[done..][..guaranteed];
            self.decode_groups_branchless(groups, |group, k| table(done + group, k));
            done += guaranteed;
        }
        self.decode_groups_branching(&mut groups[done..], |group, k| table(done + group, k));
        for (k, out) in last.iter_mut().enumerate() {
            (*out, self.states[k]) = next(
                last_table(k),
                self.states[k],
                self.words,
                &mut self.position,
            );
        }
        // The next symbol belongs to the state after the last used one.
        self.states[..N].rotate_left(last.len());
    }

    /// The number of groups to decode without branches: those for which enough words remain, even if each symbol reads one;
    /// 0 if refills are rare.
    #[inline(always)]
    fn guaranteed<const N: usize>(&self) -> usize {
        if self.refills_are_rare {
            return 0;
        }
        self.words.len().saturating_sub(self.position) / (2 * N)
    }

    /// The first states.
    #[inline(always)]
    fn first_states<const N: usize>(&self) -> [u32; N] {
        std::array::from_fn(|k| self.states[k])
    }

    /// Decodes groups with a branch per symbol. `table` returns the table of a symbol of a group.
    #[inline(never)]
    fn decode_groups_branching<'t, const N: usize>(
        &mut self,
        groups: &mut [[u8; N]],
        table: impl Fn(usize, usize) -> &'t Slots,
    ) {
        let (mut states, mut position) = (self.first_states::<N>(), self.position);
        for (group, out) in groups.iter_mut().enumerate() {
            for k in 0..N {
                (out[k], states[k]) = next(table(group, k), states[k], self.words, &mut position);
            }
        }
        self.states[..N].copy_from_slice(&states);
        self.position = position;
    }

    /// Decodes groups for which enough words remain.
    #[inline(never)]
    fn decode_groups_branchless<'t, const N: usize>(
        &mut self,
        groups: &mut [[u8; N]],
        table: impl Fn(usize, usize) -> &'t Slots,
    ) {
        assert!(groups.len() <= self.guaranteed::<N>());
        let mut states = self.first_states::<N>();
        // SAFETY: the position is within the words, or at their end.
        let mut position = unsafe { self.words.as_ptr().add(self.position) };
        let begin = position;
        for (group, out) in groups.iter_mut().enumerate() {
            for four in 0..N / 4 {
                // SAFETY: every four symbols move the position by at most 8 bytes, and `guaranteed` has checked that
                // 8 bytes remain for all of them.
                let words = unsafe { position.cast::<[u8; 8]>().read() };
                // All words that the four symbols may read, loaded before it is known how many they do.
                let mut words = u64::from_le_bytes(words);
                let mut used = 0;
                for k in 4 * four..4 * four + 4 {
                    let (symbol, state) = step(table(group, k), states[k]);
                    out[k] = symbol;
                    let short = state < LOWEST;
                    let wide = state << 16 | u32::from(words as u16);
                    states[k] = optimization_barrier(if short { wide } else { state });
                    words >>= 16 * u32::from(short);
                    used += usize::from(short);
                }
                // SAFETY: the four symbols read at most the 8 bytes that were loaded.
                position = unsafe { position.add(2 * used) };
            }
        }
        self.states[..N].copy_from_slice(&states);
        self.position += position as usize - begin as usize;
    }

    /// Checks that exactly all words were read, and that no state is above `LOWEST`, the largest initial state.
    pub(crate) fn finish(&self) -> Result<()> {
        if self.position == self.words.len() && self.states.iter().all(|state| *state <= LOWEST) {
            Ok(())
        } else {
            Err(corrupt!(
                "the entropy decoder read {} of {} bytes, or ends in other states than the encoder began with",
                self.position,
                self.words.len()
            ))
        }
    }
}

/// Decodes a symbol. Returns it with the next state, which may need a refill.
#[inline(always)]
fn step(slots: &Slots, state: u32) -> (u8, u32) {
    let entry = slots[state as usize % SLOTS];
    let next = (entry >> 20).wrapping_mul(state >> PROBABILITY_BITS);
    (entry as u8, next.wrapping_add(entry >> 8 & 0xfff))
}

/// Decodes a symbol, and refills the state if words remain.
#[inline(always)]
fn next(slots: &Slots, state: u32, words: &[u8], position: &mut usize) -> (u8, u32) {
    let (symbol, state) = step(slots, state);
    if state >= LOWEST {
        return (symbol, state);
    }
    match words.get(*position..).and_then(|words| words.first_chunk()) {
        Some(word) => {
            *position += 2;
            (symbol, state << 16 | u32::from(u16::from_le_bytes(*word)))
        }
        None => (symbol, state),
    }
}

/// Returns the state, opaque to the optimizer, which would otherwise combine four states to a vector. The table lookups of
/// a vector take half more time.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn optimization_barrier(mut state: u32) -> u32 {
    // SAFETY: the assembly is empty.
    unsafe {
        core::arch::asm!("/* {0:e} */", inout(reg) state, options(pure, nomem, nostack, preserves_flags));
    }
    state
}

/// Returns the state.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn optimization_barrier(state: u32) -> u32 {
    state
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::frequencies::{Frequencies, normalise};
    use crate::entropy::rans::EncodeTables;
    use crate::entropy::rans::decode_table::DecodeTables;
    use crate::simd::dispatch::at_each_level;
    use crate::stream::properties::Random;

    /// Symbols of few and of many bits round trip in pieces of all lengths, with and without branches, in one context and in
    /// several.
    #[test]
    fn symbols_round_trip_in_pieces() {
        round_trip::<STATES>();
        at_each_level(round_trip::<WIDE_STATES>);
    }

    fn round_trip<const N: usize>() {
        let cases = [(1, false), (12, false), (60, false), (1, true), (60, true)];
        let lengths = [1, 7, 31, 40, 200, 1000, 5000];
        let cases = cases
            .iter()
            .flat_map(|case| lengths.map(|length| (*case, length)));
        for ((spread, has_one_context), length) in cases {
            let mut random = Random(spread);
            let mut draw = |below: u64| random.next() % below;
            let contexts: Vec<u8> = (0..length)
                .map(|_| if has_one_context { 1 } else { draw(3) as u8 })
                .collect();
            let symbol = |context: u8, draw: &mut dyn FnMut(u64) -> u64| {
                let refills_are_rare = draw(20) == 0 || spread > 1;
                (if refills_are_rare {
                    draw(spread + 1)
                } else {
                    0
                }) as u8
                    + context
            };
            let symbols: Vec<u8> = contexts
                .iter()
                .map(|context| symbol(*context, &mut draw))
                .collect();
            let mut counts = vec![vec![0; 64]; 2];
            let table_of_context = [0, 1, 1];
            for (context, symbol) in contexts.iter().zip(&symbols) {
                counts[usize::from(table_of_context[usize::from(*context)])]
                    [usize::from(*symbol)] += 1;
            }
            let frequencies: Vec<Frequencies> = counts
                .iter()
                .map(|counts| match counts.iter().sum::<u32>() {
                    0 => normalise(&[1]),
                    _ => normalise(counts),
                })
                .collect();
            let encoder = EncodeTables::new(&frequencies);
            let bytes = encoder.encode::<N>(&table_of_context, &contexts, &symbols);
            let mut tables = DecodeTables::default();
            tables.set(&frequencies).unwrap();
            let context_tables = tables.context_tables(&table_of_context);
            let mut decoder = Decoder::new(&context_tables, &bytes, symbols.len(), N).unwrap();
            assert!(length < 5000 || decoder.refills_are_rare == (spread == 1));
            let (mut out, mut at) = (vec![0; symbols.len()], 0);
            while at < out.len() {
                let end = (at + 1 + (draw(70) as usize)).min(out.len());
                let contexts = if has_one_context {
                    SymbolContexts::Same(1)
                } else {
                    SymbolContexts::Each(&contexts[at..end])
                };
                decoder.decode(contexts, &mut out[at..end]);
                at = end;
            }
            decoder.finish().unwrap();
            assert!(out == symbols, "{N} {spread} {has_one_context}");
        }
    }
}
