//! Tables of slots: which symbol a state stands for, and what the next state is made of.

use crate::entropy::CONTEXTS;
use crate::entropy::frequencies::{Frequencies, SLOTS};
use crate::error::{Corrupt, Result};

/// A table for decoding: one word a slot with the symbol (8 bits), the slot's number among the symbol's
/// (12 bits), the symbol's frequency (12 bits; at the top, where one shift gets it: the next state waits
/// for it).
pub(crate) type Slots = [u32; SLOTS];

/// The tables of all contexts for decoding.
#[derive(Default)]
pub(crate) struct DecodeTables {
    tables: Vec<Slots>,
}

impl DecodeTables {
    /// Makes these the tables of contexts, each with a sum of `SLOTS`.
    pub(crate) fn set(&mut self, contexts: &[Frequencies]) -> Result<()> {
        if self.tables.len() < contexts.len() {
            self.tables.resize(contexts.len(), [0; SLOTS]);
        }
        for (slots, frequencies) in self.tables.iter_mut().zip(contexts) {
            let mut rest = &mut slots[..];
            for (symbol, frequency) in frequencies.iter().enumerate() {
                let entry = symbol as u32 | u32::from(*frequency) << 20;
                let (own, others) =
                    rest.split_at_mut_checked(usize::from(*frequency))
                        .ok_or(Corrupt(
                            "the frequencies of a table do not sum to their total",
                        ))?;
                for (slot, number) in own.iter_mut().zip(0..) {
                    *slot = entry | number << 8;
                }
                rest = others;
            }
            if !rest.is_empty() {
                return Err(Corrupt(
                    "the frequencies of a table do not sum to their total",
                ));
            }
        }
        Ok(())
    }

    /// The tables of contexts; `table_of_context` has their numbers. Contexts without an entry use table 0.
    pub(crate) fn context_tables(&self, table_of_context: &[u8]) -> ContextTables<'_> {
        let number = |context: usize| table_of_context.get(context).map_or(0, |number| *number);
        ContextTables {
            slots: &self.tables,
            numbers: std::array::from_fn(number),
            tables: std::array::from_fn(|context| &self.tables[usize::from(number(context))]),
        }
    }
}

/// Bins of tokens and of groups; those beyond have the table of number 0.
pub(crate) const NUMBERS: usize = 2 * CONTEXTS;

/// The tables of bins.
pub(crate) struct ContextTables<'a> {
    /// All tables, and the bins' numbers of these: below their count, for each has got its table.
    slots: &'a [Slots],
    numbers: [u8; NUMBERS],
    tables: [&'a Slots; 256],
}

impl<'a> ContextTables<'a> {
    /// The table of a bin.
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

    /// The numbers of the bins' tables: there are tables of these.
    pub(crate) fn numbers(&self) -> &[u8; NUMBERS] {
        &self.numbers
    }
}
