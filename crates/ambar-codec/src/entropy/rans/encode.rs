//! The rANS encoder, which encodes symbols from the last to the first.

use crate::entropy::frequencies::{Frequencies, PROBABILITY_BITS, SLOTS, starts};
use crate::entropy::rans::{LOWEST, STATES, WIDE_STATES};

/// Maximum number of attempts to find minimal initial states.
const MAX_ATTEMPTS: usize = 8;

/// The constants for encoding a symbol. The division by the frequency is a multiplication by its reciprocal, which is
/// exact for states of 32 bits.
#[derive(Clone, Copy, Default)]
struct EncodeStep {
    /// 2^64 / frequency, rounded up.
    reciprocal: u64,
    /// States above this value write a word first.
    most: u32,
    start: u16,
    /// `SLOTS` minus the frequency.
    complement: u16,
}

impl EncodeStep {
    /// The constants for a frequency above 0.
    fn new(frequency: u16, start: u16) -> Self {
        let frequency = u64::from(frequency);
        let step = Self {
            reciprocal: (u64::MAX / frequency).wrapping_add(1),
            most: ((frequency << (32 - PROBABILITY_BITS)) - 1) as u32,
            start,
            complement: SLOTS as u16 - frequency as u16,
        };
        if frequency > 1 {
            return step;
        }
        // For a frequency of 1, the product is the state minus 1, which a larger start compensates.
        Self {
            reciprocal: u64::MAX,
            start: step.start + SLOTS as u16 - 1,
            ..step
        }
    }

    /// Whether a state writes a word first.
    #[inline(always)]
    fn is_full(&self, state: u32) -> bool {
        state > self.most
    }

    /// The state after encoding the symbol. `state` must not be full, and not 0.
    #[inline(always)]
    fn after(&self, state: u32) -> u32 {
        let quotient = ((u128::from(state) * u128::from(self.reciprocal)) >> 64) as u32;
        state + u32::from(self.start) + quotient * u32::from(self.complement)
    }

    /// The smallest state, at least 1, after which the next state is at least `state`.
    fn min_state_before(&self, state: u32) -> u32 {
        let frequency = SLOTS as u32 - u32::from(self.complement);
        // The first state of the symbol is followed by the state of its first slot.
        let start = self.after(frequency) - SLOTS as u32;
        let (quotient, slot) = (state >> PROBABILITY_BITS, state % SLOTS as u32);
        (quotient * frequency + slot.saturating_sub(start).min(frequency)).max(1)
    }
}

/// The tables of all contexts for encoding.
pub(crate) struct EncodeTables {
    steps: Vec<[EncodeStep; 256]>,
}

impl EncodeTables {
    pub(crate) fn new(contexts: &[Frequencies]) -> Self {
        let table = |frequencies: &Frequencies| {
            let mut steps = [EncodeStep::default(); 256];
            let pairs = frequencies.iter().zip(starts(frequencies));
            let all = steps.iter_mut().zip(pairs);
            for (step, (frequency, start)) in all.filter(|(_, (frequency, _))| **frequency > 0) {
                *step = EncodeStep::new(*frequency, start);
            }
            steps
        };
        Self {
            steps: contexts.iter().map(table).collect(),
        }
    }

    /// Encodes `symbols` with `states` rANS states, `STATES` or `WIDE_STATES`.
    pub(crate) fn encode_with(
        &self,
        states: usize,
        table_of_context: &[u8],
        contexts: &[u8],
        symbols: &[u8],
    ) -> Vec<u8> {
        match states {
            WIDE_STATES => self.encode::<WIDE_STATES>(table_of_context, contexts, symbols),
            _ => self.encode::<STATES>(table_of_context, contexts, symbols),
        }
    }

    /// Encodes `symbols` in their `contexts` with `N` states. Symbols of frequency 0 must not occur.
    pub(super) fn encode<const N: usize>(
        &self,
        table_of_context: &[u8],
        contexts: &[u8],
        symbols: &[u8],
    ) -> Vec<u8> {
        // Without symbols, there may be no tables.
        let none = [EncodeStep::default(); 256];
        let tables: [&[EncodeStep; 256]; 256] = std::array::from_fn(|context| {
            let table = table_of_context.get(context).map_or(0, |table| *table);
            self.steps.get(usize::from(table)).unwrap_or(&none)
        });
        let step_of = |context: u8, symbol: u8| &tables[usize::from(context)][usize::from(symbol)];
        let step = |i: usize| step_of(contexts[i], symbols[i]);
        let mut states = minimal_initial_states(step, symbols.len()).unwrap_or([LOWEST; N]);
        // Filled from the end. Each symbol writes at most one word.
        let mut words = vec![[0u8; 2]; symbols.len()];
        let mut free = words.len();
        let mut add = |contexts: &[u8], symbols: &[u8]| {
            let symbols = states.iter_mut().zip(contexts.iter().zip(symbols));
            for (state, (context, symbol)) in symbols.rev() {
                let step = step_of(*context, *symbol);
                let full = step.is_full(*state);
                if let Some(word) = words.get_mut(free.wrapping_sub(1)) {
                    *word = (*state as u16).to_le_bytes();
                }
                free -= usize::from(full);
                *state = step.after(if full { *state >> 16 } else { *state });
            }
        };
        let (contexts, last_contexts) = contexts.as_chunks::<N>();
        let (symbols, last_symbols) = symbols.as_chunks::<N>();
        add(last_contexts, last_symbols);
        for (contexts, symbols) in contexts.iter().zip(symbols).rev() {
            add(contexts, symbols);
        }
        let mut bytes = Vec::with_capacity(4 * N + 2 * (words.len() - free));
        for state in states {
            bytes.extend_from_slice(&state.to_le_bytes());
        }
        bytes.extend_from_slice(words[free..].as_flattened());
        bytes
    }
}

/// Minimal initial rANS states for `count` symbols, whose constants `step` returns. All states must be at least `LOWEST`
/// when the first word is written, so that a decoder refills no state after it has read all words. `None` if such states
/// are not found.
fn minimal_initial_states<'s, const N: usize>(
    step: impl Fn(usize) -> &'s EncodeStep,
    count: usize,
) -> Option<[u32; N]> {
    /// Encodes symbols until one would write a word. Returns the states, and the index of that symbol.
    fn fill<'s, const N: usize>(
        mut states: [u32; N],
        step: impl Fn(usize) -> &'s EncodeStep,
        count: usize,
    ) -> ([u32; N], Option<usize>) {
        for i in (0..count).rev() {
            let (step, state) = (step(i), &mut states[i % N]);
            if step.is_full(*state) {
                return (states, Some(i));
            }
            *state = step.after(*state);
        }
        (states, None)
    }
    let mut first = [1; N];
    for _ in 0..MAX_ATTEMPTS {
        let (filled, full) = fill(first, &step, count);
        let is_low = |k: &usize| filled[*k] < LOWEST;
        let Some(full) = full.filter(|_| (0..N).any(|k| is_low(&k))) else {
            return Some(first);
        };
        // In decoding order, from the symbol after the first word to the last symbol.
        let mut least = [LOWEST; N];
        for i in full + 1..count {
            least[i % N] = step(i).min_state_before(least[i % N]);
        }
        // A larger state may write its first word earlier, so that `full` changes.
        (0..N).filter(is_low).for_each(|k| first[k] = least[k]);
    }
    None
}
