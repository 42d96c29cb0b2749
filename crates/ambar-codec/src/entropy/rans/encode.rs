//! Encoding symbols, the last first.

use crate::entropy::frequencies::{BITS, Frequencies, SLOTS, starts};
use crate::entropy::rans::{LOWEST, STATES, WIDE_STATES};

/// What encoding a symbol takes. Division by its frequency is done by a product, which is exact for
/// states of 32 bits.
#[derive(Clone, Copy, Default)]
struct Step {
    /// 2^64 / frequency, rounded up.
    reciprocal: u64,
    /// States from here on give a word away first.
    limit: u64,
    start: u32,
    /// `SLOTS` less the frequency.
    others: u32,
}

impl Step {
    fn new(frequency: u16, start: u16) -> Self {
        let frequency = u64::from(frequency);
        let step = Self {
            reciprocal: (u64::MAX / frequency.max(1)).wrapping_add(1),
            limit: frequency << (32 - BITS),
            start: u32::from(start),
            others: SLOTS as u32 - frequency as u32,
        };
        if frequency > 1 {
            return step;
        }
        // For 1 the product gives the state less 1; adding to the start makes up for it.
        Self {
            reciprocal: u64::MAX,
            start: step.start + SLOTS as u32 - 1,
            ..step
        }
    }

    /// Whether a state gives a word away first.
    #[inline(always)]
    fn is_full(&self, state: u32) -> bool {
        u64::from(state) >= self.limit
    }

    /// The state behind one that is not full, and not 0.
    #[inline(always)]
    fn after(&self, state: u32) -> u32 {
        let quotient = ((u128::from(state) * u128::from(self.reciprocal)) >> 64) as u32;
        state + self.start + quotient * self.others
    }

    /// The least state from 1 on behind which one is at least `state`.
    fn least_before(&self, state: u32) -> u32 {
        let frequency = SLOTS as u32 - self.others;
        // Behind the first state of a symbol's comes the slot where the symbol's begin.
        let start = self.after(frequency) - SLOTS as u32;
        let (quotient, slot) = (state >> BITS, state % SLOTS as u32);
        (quotient * frequency + slot.saturating_sub(start).min(frequency)).max(1)
    }
}

/// The tables of all contexts for encoding.
pub(crate) struct EncodeTables {
    steps: Vec<[Step; 256]>,
}

impl EncodeTables {
    pub(crate) fn new(contexts: &[Frequencies]) -> Self {
        let table = |frequencies: &Frequencies| {
            let mut steps = [Step::default(); 256];
            let pairs = frequencies.iter().zip(starts(frequencies));
            for (step, (frequency, start)) in steps.iter_mut().zip(pairs) {
                *step = Step::new(*frequency, start);
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

    /// What encoding a symbol of a bin takes.
    #[inline(always)]
    fn step(&self, table_of_context: &[u8], context: u8, symbol: u8) -> &Step {
        &self.steps[usize::from(table_of_context[usize::from(context)])][usize::from(symbol)]
    }

    /// Encodes `symbols` under the contexts of their `contexts`, the last first, with `N` states. Symbols of
    /// frequency 0 must not occur.
    pub(super) fn encode<const N: usize>(
        &self,
        table_of_context: &[u8],
        contexts: &[u8],
        symbols: &[u8],
    ) -> Vec<u8> {
        let pairs = contexts.iter().zip(symbols);
        let step = |i: usize| self.step(table_of_context, contexts[i], symbols[i]);
        let mut states = first_states(step, symbols.len()).unwrap_or([LOWEST; N]);
        // Filled from the end. Every symbol gives one word away at most.
        let mut words = vec![[0u8; 2]; symbols.len()];
        let mut free = words.len();
        for (i, (context, symbol)) in pairs.enumerate().rev() {
            let step = self.step(table_of_context, *context, *symbol);
            let state = states[i % N];
            let full = step.is_full(state);
            if let Some(word) = words.get_mut(free.wrapping_sub(1)) {
                *word = (state as u16).to_le_bytes();
            }
            free -= usize::from(full);
            states[i % N] = step.after(if full { state >> 16 } else { state });
        }
        let mut bytes = Vec::with_capacity(4 * N + 2 * (words.len() - free));
        for state in states {
            bytes.extend_from_slice(&state.to_le_bytes());
        }
        bytes.extend_from_slice(words[free..].as_flattened());
        bytes
    }
}

/// The least states to begin encoding `count` symbols with, the last first, whose steps `step` gives: so that
/// none is below `LOWEST` from the first word on that any of them gives away. For then a decoder that has read
/// all words knows that states below are no longer to be filled up. `None` where there are none.
fn first_states<'s, const N: usize>(
    step: impl Fn(usize) -> &'s Step,
    count: usize,
) -> Option<[u32; N]> {
    /// The states behind as many symbols as are encoded before a word is given away, and the last of these.
    fn fill<'s, const N: usize>(
        mut states: [u32; N],
        step: impl Fn(usize) -> &'s Step,
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
    let (filled, full) = fill(first, &step, count);
    let Some(full) = full else {
        return Some(first);
    };
    // The other way round, from the symbol behind the first word to the last.
    let mut least = [LOWEST; N];
    for i in full + 1..count {
        least[i % N] = step(i).least_before(least[i % N]);
    }
    for k in (0..N).filter(|k| filled[*k] < LOWEST) {
        first[k] = least[k];
    }
    let (filled, again) = fill(first, &step, count);
    (again == Some(full) && filled.iter().all(|state| *state >= LOWEST)).then_some(first)
}
