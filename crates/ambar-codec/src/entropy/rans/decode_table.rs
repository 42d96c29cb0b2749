//! Decoding tables: the symbol of each slot, and the constants for the next state.

#[cfg(target_arch = "x86_64")]
use crate::entropy::CONTEXTS;
use crate::entropy::frequencies::{Frequencies, SLOTS};
use crate::error::{Error, Result, corrupt};

/// A decoding table: one word per slot, which holds the symbol (8 bits), the index of the slot among those of the symbol
/// (12 bits) and the frequency of the symbol (12 bits, at the top, where one shift extracts it on the critical path).
pub(crate) type Slots = [u32; SLOTS];

/// The contexts of symbols.
#[derive(Clone, Copy)]
pub(crate) enum SymbolContexts<'a> {
    /// At least one for each symbol, in the order of the symbols.
    Each(&'a [u8]),
    /// One for all symbols.
    Same(u8),
}

/// The error of frequencies whose sum is not `SLOTS`.
#[cold]
fn wrong_sum(frequencies: &[u16]) -> Error {
    let sum: usize = frequencies
        .iter()
        .map(|frequency| usize::from(*frequency))
        .sum();
    corrupt!("the frequencies of a table sum to {sum}; expected {SLOTS}")
}

/// The tables of all contexts for decoding.
#[derive(Default)]
pub(crate) struct DecodeTables {
    tables: Vec<Slots>,
}

impl DecodeTables {
    /// Replaces the tables. The sum of the frequencies of each must be `SLOTS`.
    pub(crate) fn set(&mut self, contexts: &[Frequencies]) -> Result<()> {
        if self.tables.len() < contexts.len() {
            self.tables.resize(contexts.len(), [0; SLOTS]);
        }
        for (slots, frequencies) in self.tables.iter_mut().zip(contexts) {
            let mut rest = &mut slots[..];
            for (symbol, frequency) in frequencies.iter().enumerate() {
                let entry = symbol as u32 | u32::from(*frequency) << 20;
                let (own, others) = rest
                    .split_at_mut_checked(usize::from(*frequency))
                    .ok_or_else(|| wrong_sum(frequencies))?;
                for (slot, number) in own.iter_mut().zip(0..) {
                    *slot = entry | number << 8;
                }
                rest = others;
            }
            if !rest.is_empty() {
                return Err(wrong_sum(frequencies));
            }
        }
        Ok(())
    }

    /// The tables of contexts. `table_of_context` holds their indices; contexts without an entry use table 0.
    pub(crate) fn context_tables(&self, table_of_context: &[u8]) -> ContextTables<'_> {
        let number = |context: usize| table_of_context.get(context).map_or(0, |number| *number);
        ContextTables {
            #[cfg(target_arch = "x86_64")]
            slots: &self.tables,
            #[cfg(target_arch = "x86_64")]
            numbers: std::array::from_fn(number),
            tables: std::array::from_fn(|context| &self.tables[usize::from(number(context))]),
        }
    }
}

/// The number of contexts of tokens and of groups. Larger contexts use table 0.
#[cfg(target_arch = "x86_64")]
pub(crate) const NUMBERS: usize = 2 * CONTEXTS;

/// The table of each context.
pub(crate) struct ContextTables<'a> {
    /// All tables, and the index of the table of each context, which is valid.
    #[cfg(target_arch = "x86_64")]
    slots: &'a [Slots],
    #[cfg(target_arch = "x86_64")]
    numbers: [u8; NUMBERS],
    tables: [&'a Slots; 256],
}

impl<'a> ContextTables<'a> {
    /// The table of a context.
    #[inline(always)]
    pub(crate) fn table(&self, context: u8) -> &'a Slots {
        self.tables[usize::from(context)]
    }
}

#[cfg(target_arch = "x86_64")]
impl<'a> ContextTables<'a> {
    /// All tables.
    pub(crate) fn slots(&self) -> &'a [Slots] {
        self.slots
    }

    /// The index of the table of each context, which is valid.
    pub(crate) fn numbers(&self) -> &[u8; NUMBERS] {
        &self.numbers
    }
}
