//! Decoding symbols: state by state, or by vectors where there are 32 states and the processor has them.

use crate::entropy::frequencies::{BITS, SLOTS};
#[cfg(target_arch = "x86_64")]
use crate::entropy::rans::decode_avx2::{self, Words};
use crate::entropy::rans::decode_table::{ContextTables, Slots};
use crate::entropy::rans::{LOWEST, STATES, WIDE_STATES};
use crate::error::{Corrupt, Result};
#[cfg(target_arch = "x86_64")]
use crate::simd::dispatch::{Level, level};

/// Words are read seldom where there is less than a byte of them for so many symbols.
const RARE_REFILL_RATIO: usize = 6;

/// The states and the remaining words.
pub(crate) struct Decoder<'a> {
    context_tables: &'a ContextTables<'a>,
    states: [u32; WIDE_STATES],
    /// How many of the states there are.
    lanes: usize,
    words: &'a [u8],
    position: usize,
    /// Whether words are read seldom.
    refills_are_rare: bool,
}

impl<'a> Decoder<'a> {
    /// A decoder of what [`EncodeTables::encode`](crate::entropy::rans::EncodeTables::encode) wrote, about `count` symbols, with `STATES` or
    /// `WIDE_STATES` states.
    pub(crate) fn new(
        context_tables: &'a ContextTables<'a>,
        bytes: &'a [u8],
        count: usize,
        lanes: usize,
    ) -> Result<Self> {
        let (heads, words) = bytes
            .split_at_checked(4 * lanes)
            .ok_or(Corrupt("the entropy-coded symbols are truncated"))?;
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

    /// Decodes one symbol for each of the first of `contexts`.
    ///
    /// Where no words are left, states stay as they are: `finish` finds out whether they should.
    pub(crate) fn decode(&mut self, contexts: &[u8], symbols: &mut [u8]) {
        match self.lanes {
            WIDE_STATES => self.decode_wide(contexts, symbols),
            _ => self.decode_with::<STATES>(contexts, symbols),
        }
    }

    /// Decodes symbols that are all of one bin.
    pub(crate) fn decode_alike(&mut self, context: u8, symbols: &mut [u8]) {
        match self.lanes {
            WIDE_STATES => self.decode_alike_wide(context, symbols),
            _ => self.decode_alike_with::<STATES>(context, symbols),
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn decode_wide(&mut self, contexts: &[u8], symbols: &mut [u8]) {
        let (context_tables, level, mut words) = (self.context_tables, level(), self.words());
        let (coded, states) = ((contexts, symbols), &mut self.states);
        // SAFETY: the processor has the instructions of its level.
        unsafe {
            match level {
                Level::Avx512 => {
                    decode_avx2::decode_by_512(context_tables, coded, states, &mut words)
                }
                Level::Avx2 => decode_avx2::decode(context_tables, coded, states, &mut words),
                Level::Baseline => return self.decode_with::<WIDE_STATES>(coded.0, coded.1),
            }
        }
        self.position = words.position;
    }

    #[cfg(target_arch = "x86_64")]
    fn decode_alike_wide(&mut self, context: u8, symbols: &mut [u8]) {
        let (context_tables, level, mut words) = (self.context_tables, level(), self.words());
        let (coded, states) = ((context, symbols), &mut self.states);
        // SAFETY: the processor has the instructions of its level.
        unsafe {
            match level {
                Level::Avx512 => {
                    decode_avx2::decode_alike_by_512(context_tables, coded, states, &mut words);
                }
                Level::Avx2 => decode_avx2::decode_alike(context_tables, coded, states, &mut words),
                Level::Baseline => return self.decode_alike_with::<WIDE_STATES>(coded.0, coded.1),
            }
        }
        self.position = words.position;
    }

    #[cfg(target_arch = "x86_64")]
    fn words(&self) -> Words<'a> {
        Words {
            words: self.words,
            position: self.position,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn decode_wide(&mut self, contexts: &[u8], symbols: &mut [u8]) {
        self.decode_with::<WIDE_STATES>(contexts, symbols);
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn decode_alike_wide(&mut self, context: u8, symbols: &mut [u8]) {
        self.decode_alike_with::<WIDE_STATES>(context, symbols);
    }

    #[inline(always)]
    fn decode_with<const N: usize>(&mut self, contexts: &[u8], symbols: &mut [u8]) {
        let (contexts, last) = contexts[..symbols.len()].as_chunks::<N>();
        let (groups, rest) = symbols.as_chunks_mut();
        let mut done = 0;
        loop {
            let guaranteed = self.guaranteed::<N>().min(groups.len() - done);
            if guaranteed == 0 {
                break;
            }
            self.decode_branchless(
                &contexts[done..][..guaranteed],
                &mut groups[done..][..guaranteed],
            );
            done += guaranteed;
        }
        self.decode_branching(&contexts[done..], &mut groups[done..]);
        let context_tables = self.context_tables;
        self.rest::<N>(rest, |k| context_tables.table(last[k]));
    }

    #[inline(always)]
    fn decode_alike_with<const N: usize>(&mut self, context: u8, symbols: &mut [u8]) {
        let table = self.context_tables.table(context);
        let (groups, rest) = symbols.as_chunks_mut::<N>();
        let mut done = 0;
        loop {
            let guaranteed = self.guaranteed::<N>().min(groups.len() - done);
            if guaranteed == 0 {
                break;
            }
            self.decode_branchless_alike(table, &mut groups[done..][..guaranteed]);
            done += guaranteed;
        }
        self.decode_branching_alike(table, &mut groups[done..]);
        self.rest::<N>(rest, |_| table);
    }

    /// Decodes symbols of less than a group.
    #[inline(always)]
    fn rest<const N: usize>(&mut self, symbols: &mut [u8], table: impl Fn(usize) -> &'a Slots) {
        if symbols.is_empty() {
            return;
        }
        for (k, out) in symbols.iter_mut().enumerate() {
            (*out, self.states[k]) = next(table(k), self.states[k], self.words, &mut self.position);
        }
        // The next symbol belongs to the state behind the last one used.
        self.states[..N].rotate_left(symbols.len());
    }

    /// Groups that are best decoded without a branch: those there are words for in any case, at most one
    /// a state, where words are read often.
    #[inline(always)]
    fn guaranteed<const N: usize>(&self) -> usize {
        if self.refills_are_rare {
            return 0;
        }
        self.words.len().saturating_sub(self.position) / (2 * N)
    }

    #[inline(never)]
    fn decode_branching<const N: usize>(&mut self, contexts: &[[u8; N]], groups: &mut [[u8; N]]) {
        let (context_tables, contexts) = (self.context_tables, &contexts[..groups.len()]);
        self.decode_groups_branching(groups, |group, k| context_tables.table(contexts[group][k]));
    }

    #[inline(never)]
    fn decode_branching_alike<const N: usize>(&mut self, table: &Slots, groups: &mut [[u8; N]]) {
        self.decode_groups_branching(groups, |_, _| table);
    }

    #[inline(never)]
    fn decode_branchless<const N: usize>(&mut self, contexts: &[[u8; N]], groups: &mut [[u8; N]]) {
        let (context_tables, contexts) = (self.context_tables, &contexts[..groups.len()]);
        self.decode_groups_branchless(groups, |group, k| context_tables.table(contexts[group][k]));
    }

    #[inline(never)]
    fn decode_branchless_alike<const N: usize>(&mut self, table: &Slots, groups: &mut [[u8; N]]) {
        self.decode_groups_branchless(groups, |_, _| table);
    }

    /// The first states.
    #[inline(always)]
    fn first_states<const N: usize>(&self) -> [u32; N] {
        std::array::from_fn(|k| self.states[k])
    }

    /// Decodes groups where words are read seldom: the branch is mostly foreseen. `table` gives the
    /// table of a group's symbol.
    #[inline(always)]
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
    #[inline(always)]
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
                // SAFETY: every four symbols move the position by 8 bytes at most, and there are so many
                // for all of them.
                let words = unsafe { position.cast::<[u8; 8]>().read() };
                // All that the four may need, read before it is known how much they do.
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
                // SAFETY: as above.
                position = unsafe { position.add(2 * used) };
            }
        }
        self.states[..N].copy_from_slice(&states);
        self.position += position as usize - begin as usize;
    }

    /// Checks that exactly all words were read, and that no state is above `LOWEST`, where the encoder began.
    pub(crate) fn finish(&self) -> Result<()> {
        if self.position == self.words.len() && self.states.iter().all(|state| *state <= LOWEST) {
            Ok(())
        } else {
            Err(Corrupt(
                "the entropy decoder does not end in its initial states",
            ))
        }
    }
}

/// A symbol, and the next state, which may lack a word.
#[inline(always)]
fn step(slots: &Slots, state: u32) -> (u8, u32) {
    let entry = slots[state as usize % SLOTS];
    let next = (entry >> 20).wrapping_mul(state >> BITS);
    (entry as u8, next.wrapping_add(entry >> 8 & 0xfff))
}

/// A symbol, and the next state, with a word where it lacks one and there is one.
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

/// The state, of which the compiler is to know no more than that: else it puts four states into a
/// vector, and looking entries up for a vector is slower by half.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn optimization_barrier(mut state: u32) -> u32 {
    // SAFETY: there is no instruction.
    unsafe {
        core::arch::asm!("/* {0:e} */", inout(reg) state, options(pure, nomem, nostack, preserves_flags));
    }
    state
}

/// The state.
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

    /// Symbols that take few bits, and many, come back whatever pieces they are decoded in: with a
    /// branch and without, of one bin and of several.
    #[test]
    fn symbols_come_back_in_pieces() {
        come_back::<STATES>();
        at_each_level(come_back::<WIDE_STATES>);
    }

    fn come_back<const N: usize>() {
        let cases = [(1, false), (12, false), (60, false), (1, true), (60, true)];
        let lengths = [1, 7, 31, 40, 200, 1000, 5000];
        let cases = cases
            .iter()
            .flat_map(|case| lengths.map(|length| (*case, length)));
        for ((spread, alike), length) in cases {
            let mut random = Random(spread);
            let mut draw = |below: u64| random.next() % below;
            let contexts: Vec<u8> = (0..length)
                .map(|_| if alike { 1 } else { draw(3) as u8 })
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
                if alike {
                    decoder.decode_alike(1, &mut out[at..end]);
                } else {
                    decoder.decode(&contexts[at..end], &mut out[at..end]);
                }
                at = end;
            }
            decoder.finish().unwrap();
            assert!(out == symbols, "{N} {spread} {alike}");
        }
    }
}
