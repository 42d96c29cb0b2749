//! Tokens with their contexts, and raw bits: what the entropy coder is given.

use crate::entropy::bitio::BitWriter;

/// What encoded regions are made of: tokens and the bins they belong to, raw bits.
#[derive(Default)]
pub(crate) struct Symbols {
    pub tokens: Vec<u8>,
    pub bins: Vec<u8>,
    /// Runs of tokens that are decoded at once, all of one bin: where they begin, and how many they are.
    pub runs: Vec<(usize, usize)>,
    pub raw: BitWriter,
    /// Values that were stored as they are.
    pub literals: usize,
}

impl Symbols {
    /// Forgets all, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.tokens.clear();
        self.bins.clear();
        self.runs.clear();
        self.raw.clear();
        self.literals = 0;
    }
}
