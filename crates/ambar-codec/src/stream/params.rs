//! Encoder parameters: the choices that a stream states, which depend on the data.

use crate::element::Element;
use crate::entropy::symbols::MAX_PACKETS;
use crate::error::{Error, Result};
use crate::predict::row::InterpolationLevel;
use crate::stream::header::Contexts;

/// Level scalings: the factor by which the bound of each level is tighter than that of the next finer one, and the
/// largest factor in all.
///
/// Source: X. Liu et al., "Dynamic quality metric oriented error bounded lossy compression" (QoZ, SC22), where these
/// are called alpha and beta.
const LEVEL_SCALINGS: [(f64, f64); 4] = [(1.0, 1.0), (1.25, 2.0), (1.5, 3.0), (2.0, 4.0)];
/// The finest levels have an interpolation each; coarser levels use that of the last of them.
const LEVELS: usize = 4;

/// The choices of an encoder: contexts, interpolation, bounds of coarse levels, mode, number of packets.
///
/// [`tune`](crate::tune) chooses them from values. They apply to all streams of similar values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EncoderParams {
    /// An index of `LEVEL_SCALINGS`.
    level_scaling: u8,
    /// Bit *l* is set if level *l* is interpolated linearly.
    linear_levels: u8,
    /// The source of contexts.
    contexts: Contexts,
    /// Whether arrays become bit-packed streams.
    is_bit_packed: bool,
    /// The number of level packets; 0 chooses by the size of the stream.
    packets: u8,
}

impl EncoderParams {
    /// The level options of a stream.
    pub(crate) fn to_byte(self) -> u8 {
        self.level_scaling | self.linear_levels << 2
    }

    /// Reads the level options of a stream with these contexts.
    ///
    /// # Errors
    /// `ReservedBits`.
    pub(crate) fn from_byte(byte: u8, contexts: Contexts) -> Result<Self> {
        if byte >> (2 + LEVELS) != 0 {
            return Err(Error::ReservedBits {
                field: "level options",
                found: byte,
                reserved: u8::MAX << (2 + LEVELS),
            });
        }
        Ok(Self {
            level_scaling: byte & 3,
            linear_levels: byte >> 2 & ((1 << LEVELS) - 1),
            contexts,
            is_bit_packed: false,
            packets: 0,
        })
    }

    /// Adds linear interpolation of a level.
    pub(crate) fn with_linear_level(self, level: usize) -> Self {
        Self {
            linear_levels: self.linear_levels | 1 << level,
            ..self
        }
    }

    /// Uses contexts of levels, which allow to code groups of tokens: streams decode in half the time, and are a
    /// sixth larger.
    #[must_use]
    pub fn with_level_contexts(self) -> Self {
        Self {
            contexts: Contexts::Level,
            ..self
        }
    }

    /// Replaces the source of contexts.
    pub(crate) fn with_contexts(self, contexts: Contexts) -> Self {
        Self { contexts, ..self }
    }

    /// The source of contexts.
    pub(crate) fn contexts(self) -> Contexts {
        self.contexts
    }

    /// Uses bit-packed streams for arrays, which encode and decode near the speed of memory. Values that need more
    /// than 32 bits within the error bound are still entropy-coded.
    #[must_use]
    pub fn with_bit_packing(self) -> Self {
        Self {
            is_bit_packed: true,
            ..self
        }
    }

    /// Splits streams into 1 to 4 level packets. The first `k` of `n` packets give every `2^(n - k)`th value of each
    /// dimension (see [`decode_prefix`](crate::decode_prefix)). By default, the number depends on the size of the
    /// stream, and packets add less than 0.5 % to it. Streams of cells have one packet.
    #[must_use]
    pub fn with_packets(self, count: usize) -> Self {
        Self {
            packets: count.clamp(1, MAX_PACKETS) as u8,
            ..self
        }
    }

    /// The number of level packets; `None` chooses by the size of the stream.
    pub(crate) fn packets(self) -> Option<usize> {
        (self.packets > 0).then_some(usize::from(self.packets))
    }

    /// Whether arrays become bit-packed streams.
    pub(crate) fn is_bit_packed(self) -> bool {
        self.is_bit_packed
    }

    /// Replaces the level scaling, an index of `LEVEL_SCALINGS`.
    pub(crate) fn with_level_scaling(self, level_scaling: u8) -> Self {
        Self {
            level_scaling,
            ..self
        }
    }

    /// The parameters of `count` levels, the finest first.
    pub(crate) fn levels<T: Element>(
        self,
        bound: f64,
        shift: u32,
        count: usize,
    ) -> Vec<InterpolationLevel> {
        let (factor, limit) = LEVEL_SCALINGS[usize::from(self.level_scaling & 3)];
        let mut tighter = 1.0f64;
        (0..count)
            .map(|number| {
                // Larger steps would let sums overflow.
                let step = (2.0 * bound / tighter.min(limit)).min(T::MAX_PREDICTABLE);
                let level = InterpolationLevel {
                    number,
                    shift,
                    step,
                    has_point_contexts: self.contexts != Contexts::Level,
                    has_plane_contexts: self.contexts == Contexts::Plane && step > 0.0,
                    is_cubic: self.linear_levels >> number.min(LEVELS - 1) & 1 == 0,
                };
                tighter *= factor;
                level
            })
            .collect()
    }
}

#[cfg(test)]
impl EncoderParams {
    /// All entropy-coded parameters: 0 to 63 have contexts of rows, 64 to 127 of levels, 128 to 191 of planes.
    pub(crate) fn numbered(number: u8) -> Self {
        let contexts = [Contexts::Row, Contexts::Level, Contexts::Plane];
        let params = Self::from_byte(number % 64, contexts[usize::from(number / 64)]);
        params.unwrap_or_default()
    }
}
