//! The settings of a stream that are tuned to the data, and how they are tuned.

use crate::element::Element;
use crate::entropy::symbols::MOST_PACKETS;
use crate::predict::context::ContextWeights;
use crate::predict::row::Level;
use crate::predict::traversal::TraversalParams;
use crate::stream::header::Contexts;

/// How much tighter the bounds of coarser levels are: a factor for each level, and its limit.
///
/// Source: X. Liu et al., "Dynamic quality metric oriented error bounded lossy compression" (QoZ,
/// SC22), alpha and beta.
const LEVEL_BOUND_RATIOS: [(f64, f64); 4] = [(1.0, 1.0), (1.25, 2.0), (1.5, 3.0), (2.0, 4.0)];
/// Levels that choose their interpolation on their own; coarser ones do as the last of them.
const LEVELS: usize = 4;

/// The settings of a stream: what an encoder chooses, and a decoder is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Index of how much tighter the bounds of coarser levels are, 0 (not) to 3.
    tightening: u8,
    /// Bits of the levels, the finest lowest, that are interpolated linearly.
    linear: u8,
    /// Where contexts come from.
    contexts: Contexts,
    /// Whether arrays become packed streams.
    packed: bool,
    /// The number of level packets; 0 where it depends on the stream's size.
    packets: u8,
}

impl Plan {
    /// As a stream says it.
    pub(crate) fn to_byte(self) -> u8 {
        self.tightening | self.linear << 2
    }

    /// The plan of a stream with such a byte and such contexts; `None` where reserved bits are set.
    pub(crate) fn from_byte(byte: u8, contexts: Contexts) -> Option<Self> {
        let plan = Self {
            tightening: byte & 3,
            linear: byte >> 2 & ((1 << LEVELS) - 1),
            contexts,
            packed: false,
            packets: 0,
        };
        (byte >> (2 + LEVELS) == 0).then_some(plan)
    }

    /// With linear interpolation on a level.
    pub(crate) fn with_linear(self, level: usize) -> Self {
        Self {
            linear: self.linear | 1 << level,
            ..self
        }
    }

    /// With contexts that are the levels alone, and several tokens coded at once: decodes in half the
    /// time, takes a sixth more.
    #[must_use]
    pub fn quick(self) -> Self {
        Self {
            contexts: Contexts::Level,
            ..self
        }
    }

    /// With other contexts.
    pub(crate) fn with_contexts(self, contexts: Contexts) -> Self {
        Self { contexts, ..self }
    }

    /// Where contexts come from.
    pub(crate) fn contexts(self) -> Contexts {
        self.contexts
    }

    /// With packed streams for arrays, whose values are not so large that they need more than 32 bits, or are
    /// without loss: they are encoded and decoded near the speed of memory.
    #[must_use]
    pub fn packed(self) -> Self {
        Self {
            packed: true,
            ..self
        }
    }

    /// With 1 to 4 level packets: of `n` packets, the first `k` give every `2^(n - k)`th value of each dimension
    /// (see [`decode_prefix`](crate::decode_prefix)). By default, the number depends on the size of the stream, so
    /// that packets add less than 0.5 % to it. Streams of cells have one packet.
    #[must_use]
    pub fn with_packets(self, count: usize) -> Self {
        Self {
            packets: count.clamp(1, MOST_PACKETS) as u8,
            ..self
        }
    }

    /// The number of level packets; `None` where it depends on the stream's size.
    pub(crate) fn packets(self) -> Option<usize> {
        (self.packets > 0).then_some(usize::from(self.packets))
    }

    /// Whether it asks for packed streams.
    pub(crate) fn is_packed(self) -> bool {
        self.packed
    }

    /// With another tightening, 0 to 3.
    pub(crate) fn with_tightening(self, tightening: u8) -> Self {
        Self { tightening, ..self }
    }

    /// The properties of `count` levels, the finest first.
    pub(crate) fn levels<T: Element>(self, bound: f64, shift: u32, count: usize) -> Vec<Level> {
        let (factor, limit) = LEVEL_BOUND_RATIOS[usize::from(self.tightening & 3)];
        let mut tighter = 1.0f64;
        (0..count)
            .map(|number| {
                // Steps so large that sums overflow would be of no use.
                let step = (2.0 * bound / tighter.min(limit)).min(T::LARGEST);
                let level = Level {
                    number,
                    shift,
                    step,
                    expects: self.contexts != Contexts::Level,
                    planes: self.contexts == Contexts::Plane && step > 0.0,
                    cubic: self.linear >> number.min(LEVELS - 1) & 1 == 0,
                };
                tighter *= factor;
                level
            })
            .collect()
    }
}

/// Rules of the walk.
pub(crate) fn params<'a>(
    levels: &'a [Level],
    context_weights: &'a [ContextWeights; 3],
) -> TraversalParams<'a> {
    TraversalParams {
        context_weights,
        levels,
    }
}

#[cfg(test)]
impl Plan {
    /// The entropy-coded plans: 0 to 63 with contexts of rows, then as many of levels, then of planes.
    pub(crate) fn numbered(number: u8) -> Self {
        let contexts = [Contexts::Row, Contexts::Level, Contexts::Plane];
        let plan = Self::from_byte(number % 64, contexts[usize::from(number / 64)]);
        plan.unwrap_or_default()
    }
}
