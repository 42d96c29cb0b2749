//! Entropy coding: tokens, token groups, frequency tables and rANS; an adaptive coder of the tokens of short streams; an
//! adaptive binary range coder for that and for the small parts of a stream; bit input and output.

pub(crate) mod adaptive;
pub(crate) mod bitio;
pub(crate) mod exceptions;
pub(crate) mod frequencies;
pub(crate) mod range_coder;
pub(crate) mod rans;
pub(crate) mod symbols;
pub(crate) mod tables;
pub(crate) mod token;
pub(crate) mod token_groups;

/// The number of contexts of tokens.
pub(crate) const CONTEXTS: usize = 40;
