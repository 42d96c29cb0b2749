//! Tables of slots: which symbol a state stands for, and what the next state is made of.

use crate::error::{Corrupt, Result};
use crate::frequencies::{Frequencies, SLOTS};

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
                let (own, others) = rest
                    .split_at_mut_checked(usize::from(*frequency))
                    .ok_or(Corrupt("a table of frequencies has another sum"))?;
                for (slot, number) in own.iter_mut().zip(0..) {
                    *slot = entry | number << 8;
                }
                rest = others;
            }
            if !rest.is_empty() {
                return Err(Corrupt("a table of frequencies has another sum"));
            }
        }
        Ok(())
    }

    /// The tables of bins, of which `of_bin` says their numbers; 0 stands for those that there are not.
    pub(crate) fn of_bins(&self, of_bin: &[u8]) -> OfBins<'_> {
        let numbers = std::array::from_fn(|bin| of_bin.get(bin).map_or(0, |number| *number));
        OfBins {
            slots: &self.tables,
            numbers,
            tables: numbers.map(|number| &self.tables[usize::from(number)]),
        }
    }
}

/// The tables of bins: all there are, the bins' numbers of these, and the bins' own.
pub(crate) struct OfBins<'a> {
    #[cfg_attr(not(target_feature = "avx2"), expect(dead_code))]
    pub slots: &'a [Slots],
    #[cfg_attr(not(target_feature = "avx2"), expect(dead_code))]
    pub numbers: [u8; 256],
    pub tables: [&'a Slots; 256],
}
