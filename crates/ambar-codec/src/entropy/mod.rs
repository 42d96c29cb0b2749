//! Entropy coding: tokens, their groups and tables, rANS; the adaptive coder of everything else; bits.

pub(crate) mod bitio;
pub(crate) mod exceptions;
pub(crate) mod frequencies;
pub(crate) mod range_coder;
pub(crate) mod rans;
pub(crate) mod symbols;
pub(crate) mod tables;
pub(crate) mod token;
pub(crate) mod token_groups;

/// Contexts of tokens.
pub(crate) const CONTEXTS: usize = 40;
