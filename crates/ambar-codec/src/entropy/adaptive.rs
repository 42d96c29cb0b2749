//! The adaptive coder of tokens (`docs/format.md`, 7.18). It needs no frequency tables, which take a large part of short
//! streams.
//!
//! A token is a sequence of binary decisions, which the [range coder](crate::entropy::range_coder) codes. The
//! probability of a decision is the weighted mean of three adaptive probabilities. They are selected by the context, by the
//! context and a sum of the two preceding magnitudes, and by the magnitude that both suggest.
//!
//! Sources of the methods: D. Marpe, H. Schwarz, T. Wiegand, "Context-based adaptive binary arithmetic coding in the
//! H.264/AVC video compression standard" (2003) for the decisions; M. Mahoney's lpaq (2007) for rates of adaptation that
//! decrease with the number of decisions.

use crate::entropy::CONTEXTS;
use crate::entropy::range_coder::{BinaryDecoder, BinaryEncoder};
use crate::entropy::rans::SymbolContexts;
use crate::entropy::token::{DIRECT, LITERAL};
use crate::error::Result;

/// The classes of tokens: magnitude 0, 1, 2, 3 to 4, 5 to 8, and tokens with raw bits.
const CLASSES: usize = 6;
/// The smallest magnitude of each class, except the first and the last.
const FIRST_OF_CLASS: [u8; 4] = [1, 2, 3, 5];
/// The number of different lengths of residuals whose tokens have raw bits.
const LENGTHS: usize = (LITERAL - DIRECT) as usize / 2;
/// Larger weighted sums of the two preceding magnitudes count as this one.
const MAX_SUM: usize = 7;
/// Larger magnitudes of a preceding token count as this one.
const MAX_MAGNITUDE: u32 = 1 << 11;

/// Bits of an adaptive probability.
const BITS: u32 = 22;
/// The weight of a decision is `1 / FIRST_COUNT` for the first one of a probability, then `1 / (FIRST_COUNT + 1)`, and so on
/// down to `1 / MAX_COUNT`.
const FIRST_COUNT: u32 = 3;
const MAX_COUNT: u32 = 64;

/// The weight of each count, in parts of 2^16.
const WEIGHTS: [u32; MAX_COUNT as usize + 1] = {
    let mut weights = [0; MAX_COUNT as usize + 1];
    let mut count = 1;
    while count < weights.len() {
        weights[count] = (1 << 16) / count as u32;
        count += 1;
    }
    weights
};

/// The probability that a decision is "yes". It adapts to each decision.
#[derive(Clone, Copy)]
struct Probability {
    /// In parts of 2^`BITS`.
    yes: u32,
    /// `FIRST_COUNT` plus the number of decisions, at most `MAX_COUNT`.
    count: u32,
}

impl Probability {
    const fn new(yes: u32) -> Self {
        Self {
            yes,
            count: FIRST_COUNT,
        }
    }

    #[inline(always)]
    fn adapt(&mut self, decision: bool) {
        let weight = u64::from(WEIGHTS[self.count as usize]);
        let part = |x: u32| ((u64::from(x) * weight) >> 16) as u32;
        if decision {
            self.yes += part((1 << BITS) - self.yes);
        } else {
            self.yes -= part(self.yes);
        }
        self.count = (self.count + 1).min(MAX_COUNT);
    }
}

/// The magnitude that a context expects plus 1/64, times 512: the middle of its half octave
/// ([`context`](crate::predict::context::context)).
const fn expected(context: usize) -> u32 {
    let half_octaves = if context.is_multiple_of(2) { 5 } else { 7 };
    half_octaves << (context / 2) << 1
}

/// The context of the mean of two magnitudes: the one that `context` expects, and `before / 4`.
#[inline(always)]
const fn suggested(context: usize, before: u32) -> usize {
    let mean = (expected(context) >> 1) + 4 + 64 * before;
    let octave = mean.ilog2();
    let half = mean >> (octave - 1) & 1;
    let suggested = (2 * (octave - 3) + half) as usize;
    if suggested < CONTEXTS {
        suggested
    } else {
        CONTEXTS - 1
    }
}

/// [`suggested`] for each context after two zeros, which are frequent.
const SUGGESTED_AFTER_ZEROS: [u8; CONTEXTS] = {
    let (mut all, mut context) = ([0; CONTEXTS], 0);
    while context < CONTEXTS {
        all[context] = suggested(context, 0) as u8;
        context += 1;
    }
    all
};

/// The first probability of a larger class, in a context.
const fn first_probability(context: usize) -> Probability {
    // m / (m + 1), where m is the expected magnitude.
    let m = expected(context) as u64 - 8;
    Probability::new(((m << BITS) / (m + 512)) as u32)
}

/// The probabilities of the decisions for a class.
type Classes = [Probability; CLASSES - 1];

/// The probabilities, and the magnitudes on which they depend.
struct Model {
    /// By context.
    of_context: [Classes; CONTEXTS],
    /// By context and weighted sum of the preceding magnitudes.
    of_sum: [[Classes; MAX_SUM + 1]; CONTEXTS],
    /// By the magnitude that the context and the preceding tokens suggest.
    of_suggested: [Classes; CONTEXTS],
    /// Of a larger length of a residual with raw bits, by the suggested magnitude and the length.
    lengths: [[Probability; LENGTHS]; CONTEXTS],
    /// Of the second highest bit of a residual with raw bits, by length.
    seconds: [Probability; LENGTHS],
    /// Of the magnitude in the class from 3 to 4.
    three: Probability,
    /// Of the magnitude in the class from 5 to 8: the higher bit, and the lower bit after each higher one.
    five: [Probability; 3],
    /// The magnitudes of the preceding token, and of the one before it.
    preceding: [u32; 2],
}

/// The keys of the probabilities of a token.
#[derive(Clone, Copy)]
struct ModelKeys {
    context: usize,
    suggested: usize,
    sum: usize,
}

/// A range encoder or decoder: the same model serves both.
trait Decide {
    /// Encodes `decision`, or decodes one and does not call it. `yes`: the probability in parts of 2^16.
    fn decide(&mut self, yes: u32, decision: impl FnOnce() -> bool) -> bool;
}

impl Decide for BinaryEncoder {
    #[inline(always)]
    fn decide(&mut self, yes: u32, decision: impl FnOnce() -> bool) -> bool {
        let decision = decision();
        self.bit_with(yes, decision);
        decision
    }
}

impl Decide for BinaryDecoder<'_> {
    #[inline(always)]
    fn decide(&mut self, yes: u32, _: impl FnOnce() -> bool) -> bool {
        self.bit_with(yes)
    }
}

/// The probability of a decision in parts of 2^16, from one in parts of 2^`bits`.
#[inline(always)]
fn rounded(yes: u32, bits: u32) -> u32 {
    (yes >> (bits - 16)).clamp(1, (1 << 16) - 1)
}

/// Decides with one probability.
#[inline(always)]
fn decide(
    coder: &mut impl Decide,
    probability: &mut Probability,
    decision: impl FnOnce() -> bool,
) -> bool {
    let decision = coder.decide(rounded(probability.yes, BITS), decision);
    probability.adapt(decision);
    decision
}

impl Model {
    fn new() -> Box<Self> {
        let half = Probability::new(1 << (BITS - 1));
        let classes: [Classes; CONTEXTS] =
            std::array::from_fn(|context| [first_probability(context); CLASSES - 1]);
        Box::new(Self {
            of_context: classes,
            of_sum: classes.map(|classes| [classes; MAX_SUM + 1]),
            of_suggested: classes,
            lengths: [[half; LENGTHS]; CONTEXTS],
            seconds: [half; LENGTHS],
            three: half,
            five: [half; 3],
            preceding: [0; 2],
        })
    }

    #[inline(always)]
    fn keys(&self, context: u8) -> ModelKeys {
        let context = usize::from(context).min(CONTEXTS - 1);
        let [one, two] = self.preceding;
        let suggested = if one | two == 0 {
            usize::from(SUGGESTED_AFTER_ZEROS[context])
        } else {
            suggested(context, 3 * one + two)
        };
        ModelKeys {
            context,
            suggested,
            sum: ((2 * one + two) as usize).min(MAX_SUM),
        }
    }

    /// Encodes `token`, or decodes one, whatever `token` is. Returns it.
    #[inline(always)]
    fn token(&mut self, coder: &mut impl Decide, context: u8, token: u8) -> u8 {
        let keys = self.keys(context);
        if !self.is_larger(coder, keys, 0, || token > 0) {
            self.preceding = [0, self.preceding[0]];
            return 0;
        }
        let magnitude = token.div_ceil(2);
        let mut class = 1;
        while class < CLASSES - 1 {
            let is_larger = || match FIRST_OF_CLASS.get(class) {
                Some(first) => magnitude >= *first,
                None => token >= DIRECT,
            };
            if !self.is_larger(coder, keys, class, is_larger) {
                break;
            }
            class += 1;
        }
        if class == CLASSES - 1 {
            return self.long_token(coder, keys, token);
        }
        let first = FIRST_OF_CLASS[class - 1];
        let offset = || magnitude.wrapping_sub(first);
        let magnitude = first
            + match class {
                3 => u8::from(decide(coder, &mut self.three, || offset() == 1)),
                4 => {
                    let high = decide(coder, &mut self.five[0], || offset() >= 2);
                    let low = &mut self.five[1 + usize::from(high)];
                    2 * u8::from(high) + u8::from(decide(coder, low, || offset() & 1 == 1))
                }
                _ => 0,
            };
        self.preceding = [u32::from(magnitude), self.preceding[0]];
        // Tokens of a magnitude: odd ones are negative.
        let is_positive = magnitude < 8 && coder.decide(1 << 15, || token & 1 == 0);
        2 * magnitude - u8::from(!is_positive)
    }

    /// Whether a token has a larger class than `class`.
    #[inline(always)]
    fn is_larger(
        &mut self,
        coder: &mut impl Decide,
        keys: ModelKeys,
        class: usize,
        decision: impl FnOnce() -> bool,
    ) -> bool {
        let probabilities = [
            &mut self.of_context[keys.context][class],
            &mut self.of_sum[keys.context][keys.sum][class],
            &mut self.of_suggested[keys.suggested][class],
        ];
        let [of_context, of_sum, of_suggested] = probabilities.each_ref().map(|x| x.yes);
        let mean = rounded(of_context + of_sum + 2 * of_suggested, BITS + 2);
        let decision = coder.decide(mean, decision);
        for probability in probabilities {
            probability.adapt(decision);
        }
        decision
    }

    /// Encodes or decodes a token with raw bits.
    fn long_token(&mut self, coder: &mut impl Decide, keys: ModelKeys, token: u8) -> u8 {
        let pair = token.wrapping_sub(DIRECT) / 2;
        let lengths = &mut self.lengths[keys.suggested];
        let mut length = 0;
        while length < LENGTHS && decide(coder, &mut lengths[length], || usize::from(pair) > length)
        {
            length += 1;
        }
        let second =
            length < LENGTHS && decide(coder, &mut self.seconds[length], || token & 1 == 1);
        let magnitude = (2 + u32::from(second)) << (length + 2).min(10);
        self.preceding = [magnitude.min(MAX_MAGNITUDE), self.preceding[0]];
        DIRECT + 2 * length as u8 + u8::from(second)
    }
}

/// Encodes tokens, each with its context.
pub(crate) fn encode(contexts: &[u8], tokens: &[u8]) -> Vec<u8> {
    let (mut encoder, mut model) = (BinaryEncoder::new(), Model::new());
    for (context, token) in contexts.iter().zip(tokens) {
        model.token(&mut encoder, *context, *token);
    }
    encoder.finish()
}

/// Decodes what [`encode`] wrote.
pub(crate) struct Decoder<'a> {
    decoder: BinaryDecoder<'a>,
    model: Box<Model>,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            decoder: BinaryDecoder::new(bytes),
            model: Model::new(),
        }
    }

    /// Decodes tokens.
    pub(crate) fn decode(&mut self, contexts: SymbolContexts<'_>, tokens: &mut [u8]) {
        for (number, token) in tokens.iter_mut().enumerate() {
            let context = match contexts {
                SymbolContexts::Each(contexts) => contexts[number],
                SymbolContexts::Same(context) => context,
            };
            *token = self.model.token(&mut self.decoder, context, 0);
        }
    }

    /// Checks that all bytes were read.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn finish(&self) -> Result<()> {
        self.decoder.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::token::TOKENS;
    use crate::stream::properties::Random;

    #[test]
    fn tokens_round_trip() {
        let mut random = Random(1);
        for (few, below) in [(0, 1), (1, 2), (2, 8), (10, 17), (100, 1)] {
            let (contexts, tokens): (Vec<u8>, Vec<u8>) = (0..20_000)
                .map(|_| {
                    let most = if random.next() % 100 < few {
                        TOKENS as u64
                    } else {
                        below
                    };
                    let context = random.next() % CONTEXTS as u64;
                    (context as u8, (random.next() % most) as u8)
                })
                .unzip();
            let bytes = encode(&contexts, &tokens);
            let mut decoder = Decoder::new(&bytes);
            let mut decoded = vec![0; tokens.len()];
            // Rows of different lengths.
            let (mut begin, mut length) = (0, 1);
            while begin < tokens.len() {
                let end = (begin + length).min(tokens.len());
                let contexts = SymbolContexts::Each(&contexts[begin..end]);
                decoder.decode(contexts, &mut decoded[begin..end]);
                (begin, length) = (end, length % 97 + 1);
            }
            decoder.finish().unwrap();
            // The decoder reads four bytes in advance.
            let longer = [&bytes[..], &[1; 5]].concat();
            let mut decoder = Decoder::new(&longer);
            decoder.decode(SymbolContexts::Each(&contexts), &mut decoded);
            assert!(decoder.finish().is_err());
            assert!(decoded == tokens, "{few} {below}");
        }
    }

    #[test]
    fn zeros_take_no_space() {
        let tokens = vec![0; 1 << 20];
        let bytes = encode(&tokens, &tokens);
        assert!(bytes.len() <= 4, "{} bytes", bytes.len());
    }

    #[test]
    fn any_bytes_decode_to_tokens() {
        let mut random = Random(2);
        let noise: Vec<u8> = (0..1000).map(|_| random.next() as u8).collect();
        for bytes in [&noise[..], &[0xff; 64], &[0; 3], &[]] {
            for context in [0, 10, 39, u8::MAX] {
                let mut tokens = vec![0; 10_000];
                Decoder::new(bytes).decode(SymbolContexts::Same(context), &mut tokens);
                assert!(tokens.iter().all(|token| *token <= LITERAL));
            }
        }
    }
}
