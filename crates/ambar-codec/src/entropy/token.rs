//! Tokens, which are entropy-coded, and the raw bits that complete them to residuals.
//!
//! Residuals are folded: 0, -1, 1, -2, ... become 0, 1, 2, 3, ... Each small residual is a token. The token of a larger
//! residual states its length in bits and its second highest bit; the lower bits are raw.

use crate::simd::dispatch::vectorised;

/// Folded residuals below this are tokens without raw bits. A power of two.
pub(crate) const DIRECT: u8 = 16;
/// The length in bits of the largest residual without raw bits.
const DIRECT_BITS: u32 = 4;

/// Tokens below this have at most 56 raw bits, which one read of 64 bits contains.
pub(crate) const FIRST_LONG_TOKEN: u8 = DIRECT + 2 * (56 - 3) + 2;

/// For tokens with at most 56 raw bits: the residual whose raw bits are 0, and the number of raw bits.
pub(crate) static SHORT_RAW_TOKENS: [(u64, u8); 256] = {
    let mut table = [(0, 0); 256];
    let mut token = 0;
    while token < FIRST_LONG_TOKEN {
        let bits = raw_bits(token);
        let base = if token < DIRECT {
            token as u64
        } else {
            (2 | (token - DIRECT) as u64 & 1) << bits
        };
        table[token as usize] = (base, bits as u8);
        token += 1;
    }
    table
};

/// The token of a literal, a value that is stored bit for bit.
pub(crate) const LITERAL: u8 = 16 + 2 * (64 - 4);
/// Number of tokens.
pub(crate) const TOKENS: usize = LITERAL as usize + 1;

/// Folds the sign into the lowest bit.
#[inline(always)]
pub(crate) fn fold(x: i64) -> u64 {
    (x << 1 ^ x >> 63) as u64
}

/// Undoes [`fold`].
#[inline(always)]
pub(crate) fn unfold(x: u64) -> i64 {
    (x >> 1) as i64 ^ -((x & 1) as i64)
}

/// The token of a folded residual, and the number of its lowest bits that are raw.
#[inline(always)]
pub(crate) fn split(folded: u64) -> (u8, u32) {
    if folded < u64::from(DIRECT) {
        return (folded as u8, 0);
    }
    let length = 64 - folded.leading_zeros();
    let second = (folded >> (length - 2) & 1) as u32;
    let token = DIRECT as u32 + 2 * (length - DIRECT_BITS - 1) + second;
    (token as u8, length - 2)
}

/// The number of raw bits of a token.
#[inline(always)]
pub(crate) const fn raw_bits(token: u8) -> u32 {
    if token < DIRECT {
        0
    } else {
        (token as u32 - DIRECT as u32) / 2 + DIRECT_BITS - 1
    }
}

/// The folded residual of a token, which is not `LITERAL`, and its raw bits.
#[inline(always)]
pub(crate) fn join(token: u8, raw: u64) -> u64 {
    if token < DIRECT {
        return u64::from(token);
    }
    u64::from(2 | (token - DIRECT) & 1) << raw_bits(token) | raw
}

vectorised! {
    /// Whether any token has raw bits.
    pub(crate) fn has_raw_bits [] of [] (tokens: &[u8]) -> bool {
        tokens.iter().fold(0, |any, token| any | token) >= DIRECT
    }
}

/// Calls `visit` with the index of each token that has raw bits, and the token.
#[inline(always)]
pub(crate) fn for_each_raw(tokens: &[u8], mut visit: impl FnMut(usize, u8)) {
    let (eights, rest) = tokens.as_chunks::<8>();
    for (number, eight) in eights.iter().enumerate() {
        let mut left = u64::from_le_bytes(*eight) & RAW;
        while left != 0 {
            let k = left.trailing_zeros() as usize / 8;
            left &= !(0xff << (8 * k));
            visit(8 * number + k, eight[k]);
        }
    }
    for (k, token) in rest.iter().enumerate() {
        if *token >= DIRECT {
            visit(8 * eights.len() + k, *token);
        }
    }
}

/// The bits that are 0 in eight consecutive tokens without raw bits.
const RAW: u64 = u64::from_ne_bytes([!(DIRECT - 1); 8]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_tokens_are_found_in_order() {
        let mut row = [0, 15, 16, 3, LITERAL, 1, 1, 17, 8, 9, 40, 0, 2];
        for length in 0..=row.len() {
            let mut found = Vec::new();
            for_each_raw(&row[..length], |k, token| found.push((k, token)));
            let raw = row[..length].iter().copied().enumerate();
            assert!(
                found
                    .iter()
                    .copied()
                    .eq(raw.filter(|(_, token)| *token >= DIRECT))
            );
        }
        row.fill(15);
        for_each_raw(&row, |k, _| unreachable!("{k}"));
    }

    #[test]
    fn residuals_round_trip() {
        let around = (0..64).flat_map(|bit| {
            let power = 1u64 << bit;
            [
                power.wrapping_sub(1),
                power,
                power | power >> 1,
                power.wrapping_add(1),
            ]
        });
        for folded in (0..5000).chain(around).chain([u64::MAX, u64::MAX - 1]) {
            let (token, bits) = split(folded);
            assert!(token < LITERAL, "{folded}");
            assert_eq!(raw_bits(token), bits);
            let raw = if bits == 0 {
                0
            } else {
                folded & ((1 << bits) - 1)
            };
            assert_eq!(join(token, raw), folded);
            assert_eq!(fold(unfold(folded)), folded);
        }
    }
}
