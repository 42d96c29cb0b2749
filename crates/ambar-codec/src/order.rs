//! Values as whole numbers in the same order, for coding differences without loss.

/// An order of words that is that of the values: neighbours differ by one.
#[inline(always)]
pub(crate) fn ordered(word: u64, bits: u32) -> u64 {
    let top = 1 << (bits - 1);
    if word & top != 0 {
        !word & mask(bits)
    } else {
        word | top
    }
}

/// Undoes [`ordered`].
#[inline(always)]
pub(crate) fn unordered(word: u64, bits: u32) -> u64 {
    let top = 1 << (bits - 1);
    if word & top == 0 {
        !word & mask(bits)
    } else {
        word & !top
    }
}

/// The lowest bits set.
#[inline(always)]
pub(crate) fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

/// The number with `bits` bits as one with a sign.
#[inline(always)]
pub(crate) fn signed(word: u64, bits: u32) -> i64 {
    (word << (64 - bits)) as i64 >> (64 - bits)
}
