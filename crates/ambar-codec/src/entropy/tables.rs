//! Frequency tables: which contexts share a table, and how tables are stored.

use crate::entropy::CONTEXTS;
use crate::entropy::frequencies::{Frequencies, SLOTS, normalise};
use crate::entropy::range_coder::{BinaryDecoder, BinaryEncoder, Probability};
use crate::entropy::token::TOKENS;
use crate::error::{Result, corrupt};
use crate::simd::dispatch::vectorised;

/// The approximate bits of a table, and of each of its tokens, to decide which contexts share a table.
const TABLE_COST: f64 = 16.0;
const TOKEN_COST: f64 = 7.0;
/// Token groups that occur at most this often become escapes.
const RARE_COUNT: u32 = 1;

/// Frequency tables, and the table of each context.
#[derive(Debug, PartialEq)]
pub(crate) struct Tables {
    pub frequencies: Vec<Frequencies>,
    pub table_of_context: [u8; CONTEXTS],
}

/// Frequency tables as bytes.
pub(crate) struct EncodedTables {
    /// The number of tables.
    pub count: usize,
    pub bytes: Vec<u8>,
}

/// The number of occurrences of each token in each context.
pub(crate) struct Histogram(Vec<[u32; TOKENS]>);

impl Histogram {
    pub(crate) fn new(contexts: &[u8], tokens: &[u8]) -> Self {
        // Four tables, because incrementing the same count again waits for the count before.
        let mut tables = vec![[[0; TOKENS]; CONTEXTS]; 4];
        let [(contexts, last_contexts), (tokens, last_tokens)] =
            [contexts, tokens].map(<[u8]>::as_chunks::<4>);
        for (contexts, tokens) in contexts.iter().zip(tokens) {
            for ((table, context), token) in tables.iter_mut().zip(contexts).zip(tokens) {
                table[usize::from(*context)][usize::from(*token)] += 1;
            }
        }
        let mut counts = vec![[0; TOKENS]; CONTEXTS];
        for table in &tables {
            for (sums, counts) in counts.iter_mut().zip(table) {
                add_counts(sums, counts);
            }
        }
        for (context, token) in last_contexts.iter().zip(last_tokens) {
            counts[usize::from(*context)][usize::from(*token)] += 1;
        }
        Self(counts)
    }

    /// Divides the contexts into runs that share a table, so that tables and tokens take the fewest bits if every token
    /// occurs `scale` times as often. Returns the ends of the runs, and the bits.
    fn divide(&self, scale: f64) -> (Vec<usize>, f64) {
        let used: Vec<usize> = (0..CONTEXTS)
            .filter(|context| self.0[*context].iter().any(|n| *n > 0))
            .collect();
        let last = |counts: &[u32; TOKENS]| counts.iter().rposition(|n| *n > 0);
        let tokens = self
            .0
            .iter()
            .filter_map(last)
            .max()
            .map_or(0, |last| last + 1);
        // best[j]: the fewest bits for the first j used contexts, and the start of the last run.
        let mut best = vec![(0.0f64, 0usize)];
        for end in 1..=used.len() {
            let mut sum = [0u32; TOKENS];
            let mut least = (f64::INFINITY, 0);
            for begin in (0..end).rev() {
                add_counts(&mut sum[..tokens], &self.0[used[begin]][..tokens]);
                let token_bits = -scale * log_likelihood(&sum[..tokens]);
                let bits = best[begin].0 + table_bits(&sum[..tokens]) + token_bits;
                if bits < least.0 {
                    least = (bits, begin);
                }
                // Longer runs take at least as many bits as the contexts before this one with their tables, and these tokens.
                if best[begin].0 + token_bits >= least.0 {
                    break;
                }
            }
            best.push(least);
        }
        let bits = best.last().map_or(0.0, |best| best.0);
        let mut ends = Vec::new();
        let mut end = used.len();
        while end > 0 {
            ends.push(if end == used.len() {
                CONTEXTS
            } else {
                used[end]
            });
            end = best[end].1;
        }
        ends.reverse();
        (ends, bits)
    }

    /// The approximate bits of tokens and tables if every token occurs `scale` times as often.
    pub(crate) fn bits(&self, scale: f64) -> f64 {
        self.divide(scale).1
    }

    /// The approximate bits of tokens under these tables, without tokens that have no frequency.
    pub(crate) fn bits_under(&self, tables: &Tables) -> f64 {
        let contexts = self.0.iter().zip(tables.table_of_context);
        contexts
            .map(|(counts, table)| {
                let frequencies = tables
                    .frequencies
                    .get(usize::from(table))
                    .into_iter()
                    .flatten();
                let some = counts
                    .iter()
                    .zip(frequencies)
                    .filter(|(count, frequency)| **count > 0 && **frequency > 0);
                some.map(|(count, frequency)| {
                    f64::from(*count) * (SLOTS as f64 / f64::from(*frequency)).log2()
                })
                .sum::<f64>()
            })
            .sum()
    }

    /// The tables that take the fewest bits. Tokens that are rare in a table are counted as `escape`, if it is given.
    pub(crate) fn tables(&self, escape: Option<u8>) -> Tables {
        let (ends, _) = self.divide(1.0);
        let mut tables = Tables {
            frequencies: Vec::new(),
            table_of_context: [0; CONTEXTS],
        };
        let mut begin = 0;
        for end in ends {
            let mut sum = [0u32; TOKENS];
            for counts in &self.0[begin..end] {
                add_counts(&mut sum, counts);
            }
            if let Some(escape) = escape {
                merge_rare_tokens(&mut sum, usize::from(escape));
            }
            tables.table_of_context[begin..end].fill(tables.frequencies.len() as u8);
            tables.frequencies.push(rounded(&normalise(&sum)));
            begin = end;
        }
        tables
    }
}

/// Adds the counts of a context to others.
fn add_counts(sums: &mut [u32], counts: &[u32]) {
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum += count;
    }
}

/// Counts tokens whose frequency would be below half a slot as escapes.
fn merge_rare_tokens(counts: &mut [u32; TOKENS], escape: usize) {
    let total: u32 = counts.iter().sum();
    let least = (total / (2 * SLOTS as u32)).max(RARE_COUNT);
    for token in (0..TOKENS).filter(|token| *token != escape) {
        if counts[token] <= least {
            counts[escape] += std::mem::take(&mut counts[token]);
        }
    }
}

/// The approximate bits of a table for tokens with these counts.
fn table_bits(counts: &[u32]) -> f64 {
    let used = counts.iter().filter(|n| **n > 0).count();
    TABLE_COST + TOKEN_COST * used as f64
}

vectorised! {
    /// The sum of the binary logarithms of the probabilities of tokens. Rare tokens have the probability of a slot; the most
    /// frequent one has what remains.
    fn log_likelihood [] of [] (counts: &[u32]) -> f64 {
        let total: u32 = counts.iter().sum();
        let inverse = 1.0 / f64::from(total);
        let most = counts.iter().fold(0, |most, count| most.max(*count));
        let (eights, rest) = counts.as_chunks::<8>();
        let (mut sums, mut probabilities) = ([0.0; 8], [0.0; 8]);
        for counts in eights {
            for k in 0..8 {
                let probability = probability(counts[k], inverse);
                sums[k] += f64::from(counts[k]) * log2(probability);
                probabilities[k] += if counts[k] > 0 { probability } else { 0.0 };
            }
        }
        let (mut sum, mut sum_of_probabilities) =
            (sums.iter().sum::<f64>(), probabilities.iter().sum::<f64>());
        for count in rest {
            let probability = probability(*count, inverse);
            sum += f64::from(*count) * log2(probability);
            sum_of_probabilities += if *count > 0 { probability } else { 0.0 };
        }
        let largest = probability(most, inverse);
        let remaining = (1.0 - (sum_of_probabilities - largest)).max(1.0 / SLOTS as f64);
        sum + f64::from(most) * (log2(remaining) - log2(largest))
    }
}

/// The probability of a token that occurs `count` times, at least that of a slot.
#[inline(always)]
fn probability(count: u32, inverse: f64) -> f64 {
    let (probability, least) = (f64::from(count) * inverse, 1.0 / SLOTS as f64);
    if probability > least {
        probability
    } else {
        least
    }
}

/// The binary logarithm of a positive number, within 2e-7. Independent of the mathematical library, so that streams are
/// the same on all machines.
#[inline(always)]
pub(crate) fn log2(x: f64) -> f64 {
    const LOG2_OF_1_5: f64 = 0.584_962_500_721_156;
    let bits = x.to_bits();
    let exponent = f64::from((bits >> 52) as i32 - 1023);
    let m = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    // The beginning of the series of the inverse hyperbolic tangent.
    let s = (m - 1.5) / (m + 1.5);
    let z = s * s;
    let series = s * (1.0 + z * (1.0 / 3.0 + z * (1.0 / 5.0 + z * (1.0 / 7.0))));
    exponent + LOG2_OF_1_5 + 2.0 * std::f64::consts::LOG2_E * series
}

/// Rounds frequencies to four significant bits, except the largest, which is the remainder.
fn rounded(frequencies: &[u16]) -> Frequencies {
    let mut out = frequencies.to_vec();
    let Some(main) = largest(&out) else {
        return out;
    };
    let mut sum = 0u32;
    for (token, frequency) in out.iter_mut().enumerate() {
        if token != main {
            let below = (16 - frequency.leading_zeros()).saturating_sub(4);
            *frequency = (*frequency + (1 << below >> 1)) >> below << below;
            sum += u32::from(*frequency);
        }
    }
    if sum < SLOTS as u32 {
        out[main] = (SLOTS as u32 - sum) as u16;
        return out;
    }
    // Rounding to nearest left nothing for the largest; rounding down leaves more than it had.
    out.copy_from_slice(frequencies);
    let mut sum = 0;
    for (token, frequency) in out.iter_mut().enumerate() {
        if token != main {
            let below = (16 - frequency.leading_zeros()).saturating_sub(4);
            *frequency = *frequency >> below << below;
            sum += *frequency;
        }
    }
    out[main] = SLOTS as u16 - sum;
    out
}

/// The token whose frequency has more than four significant bits, if any: at most one has.
fn unrounded_token(frequencies: &[u16]) -> Option<usize> {
    let odd = |frequency: &u16| length(*frequency) as u32 > 4 + frequency.trailing_zeros();
    frequencies.iter().position(odd)
}

fn largest(frequencies: &[u16]) -> Option<usize> {
    let token = (0..frequencies.len()).max_by_key(|token| frequencies[*token])?;
    (frequencies[token] > 0).then_some(token)
}

/// Probabilities of the parts of stored tables.
struct Model {
    /// The length of a frequency in bits; the contexts are the lengths of the previous token, and of the same token in the
    /// previous table.
    lengths: [[Probability; 16]; 15 * 15],
    fractions: [Probability; 16],
    tokens: [Probability; 256],
    ends: [Probability; 64],
}

impl Model {
    fn new() -> Self {
        Self {
            lengths: [[Probability::default(); 16]; 15 * 15],
            fractions: [Probability::default(); 16],
            tokens: [Probability::default(); 256],
            ends: [Probability::default(); 64],
        }
    }
}

fn length(frequency: u16) -> usize {
    (16 - frequency.leading_zeros()) as usize
}

impl Tables {
    /// A table for all contexts, for a stream without tokens.
    pub(crate) fn empty() -> Self {
        let mut frequencies = vec![0; TOKENS];
        frequencies[0] = SLOTS as u16;
        Self {
            frequencies: vec![frequencies],
            table_of_context: [0; CONTEXTS],
        }
    }

    /// The tables as bytes.
    pub(crate) fn encode(&self) -> EncodedTables {
        let (mut encoder, mut model) = (BinaryEncoder::new(), Model::new());
        let mut before: Frequencies = vec![0; TOKENS];
        for (number, frequencies) in self.frequencies.iter().enumerate() {
            let end = self
                .table_of_context
                .iter()
                .rposition(|table| usize::from(*table) == number);
            encoder.tree(&mut model.ends, end.unwrap_or(0) as u32 + 1, 6);
            let main = unrounded_token(frequencies)
                .or_else(|| largest(frequencies))
                .unwrap_or(0);
            let last = frequencies.iter().rposition(|f| *f > 0).unwrap_or(0);
            encoder.tree(&mut model.tokens, main as u32, 8);
            encoder.tree(&mut model.tokens, last as u32, 8);
            let mut previous = 0;
            for token in (0..=last).filter(|token| *token != main) {
                let frequency = frequencies[token];
                let context = previous * 15 + length(before[token]);
                previous = length(frequency);
                encoder.tree(&mut model.lengths[context], previous as u32, 4);
                if previous > 1 {
                    let fraction_bits = (previous - 1).min(3) as u32;
                    let fraction = u32::from(frequency) >> (previous as u32 - 1 - fraction_bits);
                    encoder.tree(
                        &mut model.fractions,
                        fraction & ((1 << fraction_bits) - 1),
                        fraction_bits,
                    );
                }
            }
            before.copy_from_slice(frequencies);
        }
        EncodedTables {
            count: self.frequencies.len(),
            bytes: encoder.finish(),
        }
    }

    /// Decodes `count` tables.
    pub(crate) fn decode(bytes: &[u8], count: usize) -> Result<Self> {
        let (mut decoder, mut model) = (BinaryDecoder::new(bytes), Model::new());
        let mut tables = Self {
            frequencies: Vec::new(),
            table_of_context: [0; CONTEXTS],
        };
        let mut before: Frequencies = vec![0; TOKENS];
        let mut begin = 0;
        for number in 0..count {
            let end = decoder.tree(&mut model.ends, 6) as usize;
            let main = decoder.tree(&mut model.tokens, 8) as usize;
            let last = decoder.tree(&mut model.tokens, 8) as usize;
            if end <= begin || end > CONTEXTS || main >= TOKENS || last >= TOKENS {
                return Err(corrupt!(
                    "frequency table {number} is invalid: contexts {begin} to {end} of {CONTEXTS}, symbols \
                     {main} and {last} of {TOKENS}"
                ));
            }
            let mut frequencies: Frequencies = vec![0; TOKENS];
            let mut sum = 0u32;
            let mut previous = 0;
            for token in (0..=last).filter(|token| *token != main) {
                let context = previous * 15 + length(before[token]).min(14);
                previous = (decoder.tree(&mut model.lengths[context], 4) as usize).min(14);
                let mut frequency = u32::from(previous > 0);
                if previous > 1 {
                    let fraction_bits = (previous - 1).min(3) as u32;
                    frequency =
                        1 << fraction_bits | decoder.tree(&mut model.fractions, fraction_bits);
                    frequency <<= previous as u32 - 1 - fraction_bits;
                }
                sum += frequency;
                if sum >= SLOTS as u32 {
                    return Err(corrupt!(
                        "the frequencies of table {number} sum to {sum} or more; expected less than {SLOTS}"
                    ));
                }
                frequencies[token] = frequency as u16;
            }
            frequencies[main] = (SLOTS as u32 - sum) as u16;
            tables.table_of_context[begin..end].fill(number as u8);
            begin = end;
            before.copy_from_slice(&frequencies);
            tables.frequencies.push(frequencies);
        }
        decoder.finish()?;
        if begin == CONTEXTS {
            Ok(tables)
        } else {
            Err(corrupt!(
                "the frequency tables cover {begin} contexts; expected {CONTEXTS}"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_close() {
        for i in 1..=1000 {
            let x = f64::from(i) / 1000.0;
            assert!((log2(x) - x.log2()).abs() < 2e-7, "{x}");
        }
    }

    #[test]
    fn tables_round_trip() {
        for spread in [1u32, 3, 40, 120] {
            let mut seed = 1u64;
            let mut random = |below: u32| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (seed >> 33) as u32 % below
            };
            let contexts: Vec<u8> = (0..20_000).map(|_| random(CONTEXTS as u32) as u8).collect();
            let tokens: Vec<u8> = contexts
                .iter()
                .map(|context| (random(spread) * u32::from(*context) / 40 + random(2)) as u8)
                .collect();
            let tables = Histogram::new(&contexts, &tokens).tables(None);
            for frequencies in &tables.frequencies {
                assert_eq!(
                    frequencies.iter().map(|f| usize::from(*f)).sum::<usize>(),
                    SLOTS
                );
            }
            let EncodedTables { count, mut bytes } = tables.encode();
            let again = Tables::decode(&bytes, count);
            assert_eq!(again, Ok(tables));
            // More than the zeros that encoders leave out.
            bytes.extend([0; 9]);
            assert!(Tables::decode(&bytes, count).is_err());
        }
    }
}
