//! Frequencies of symbols: counts scaled to a sum that is a power of two.

/// Bits of a probability.
pub(crate) const PROBABILITY_BITS: u32 = 11;
/// The sum of the frequencies of a table.
pub(crate) const SLOTS: usize = 1 << PROBABILITY_BITS;

/// The frequency of each symbol, out of `SLOTS`; 0 for symbols that do not occur.
pub(crate) type Frequencies = Vec<u16>;

/// Scales counts to frequencies. Every symbol that occurs gets at least 1.
pub(crate) fn normalise(counts: &[u32]) -> Frequencies {
    let total: u64 = counts.iter().map(|count| u64::from(*count)).sum();
    let mut frequencies = vec![0u16; counts.len()];
    if total == 0 {
        return frequencies;
    }
    let mut sum = 0i64;
    for (frequency, count) in frequencies.iter_mut().zip(counts) {
        if *count > 0 {
            let scaled = (u64::from(*count) * SLOTS as u64 + total / 2) / total;
            *frequency = scaled.clamp(1, SLOTS as u64) as u16;
            sum += i64::from(*frequency);
        }
    }
    // The largest frequency absorbs the rounding errors, where they cost least.
    while sum != SLOTS as i64 {
        let Some(largest) = frequencies.iter_mut().max_by_key(|frequency| **frequency) else {
            break;
        };
        let missing = SLOTS as i64 - sum;
        let change = missing
            .max(-i64::from(*largest) / 2)
            .max(1 - i64::from(*largest));
        *largest = (i64::from(*largest) + change) as u16;
        sum += change;
    }
    frequencies
}

/// The first slot of each symbol.
pub(crate) fn starts(frequencies: &[u16]) -> Vec<u16> {
    let mut next = 0u16;
    frequencies
        .iter()
        .map(|frequency| {
            let start = next;
            next = next.wrapping_add(*frequency);
            start
        })
        .collect()
}
