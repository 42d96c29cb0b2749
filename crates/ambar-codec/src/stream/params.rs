//! Encoder parameters: the choices that a stream states, which depend on the data.

use crate::element::Element;
use crate::entropy::bitio::Cursor;
use crate::entropy::symbols::MAX_PACKETS;
use crate::entropy::token_groups::AdaptiveUse;
use crate::error::{Error, Result, corrupt};
use crate::predict::interpolation::Interpolation;
use crate::predict::row::InterpolationLevel;
use crate::stream::header::Contexts;
use crate::wavelet::WaveletOptions;

/// Level scalings: the factor by which the bound of each level is tighter than that of the next finer one, and the
/// largest factor in all.
///
/// Source: X. Liu et al., "Dynamic quality metric oriented error bounded lossy compression" (QoZ, SC22), where these
/// are called alpha and beta.
pub(crate) const LEVEL_SCALINGS: [(f64, f64); 5] =
    [(1.0, 1.0), (1.25, 2.0), (1.5, 3.0), (2.0, 4.0), (2.0, 8.0)];
/// The number of interpolation levels that the largest region may have.
const MAX_INTERPOLATION_LEVELS: usize = 64;
/// At most this many of the finest levels have an interpolation of their own.
pub(crate) const MAX_INTERPOLATIONS: usize = 3;

/// The choices of an encoder: contexts, interpolation or wavelets, bounds of coarse levels, mode, number of packets.
///
/// [`tune`](crate::tune) chooses them from values. They apply to all streams of similar values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EncoderParams {
    /// An index of `LEVEL_SCALINGS`.
    level_scaling: u8,
    /// The interpolation of the finest levels; that of all others is the default.
    interpolations: [Interpolation; MAX_INTERPOLATIONS],
    /// The source of contexts.
    contexts: Contexts,
    /// Whether arrays become bit-packed streams.
    is_bit_packed: bool,
    /// Whether tokens are coded adaptively in long streams, too.
    favours_size: bool,
    /// The number of level packets; 0 chooses by the size of the stream.
    packets: u8,
    /// Whether the encoder uses rate-distortion optimisation: it minimises rate and squared error together, without a
    /// bound of single values.
    uses_rdo: bool,
    /// If the encoder transforms arrays and blocks by wavelets: how many of the possible levels of each dimension it omits.
    omitted_wavelet_levels: Option<u8>,
    /// A bound relative to another one; 1 if `None`. Where only the mean squared error is bounded, it is the first bound to try,
    /// relative to that of uniform errors; otherwise that of wavelet coefficients, relative to that of values.
    bound_ratio: Option<f32>,
    /// Whether streams are lossless where that is smaller, although the bound allows errors.
    tries_lossless: bool,
    /// How many slow dimensions of a region of an array are separate, 0 to 2.
    separate_dimensions: u8,
    /// How many of the last dimensions of an array come first in the order of coding, not counting short ones.
    moved_dimensions: u8,
}

impl EncoderParams {
    /// Writes the level options of a stream, which may hold wavelet coefficients.
    pub(crate) fn write(self, wavelet: Option<WaveletOptions>, out: &mut Vec<u8>) {
        if let Some(options) = wavelet {
            return options.write(out);
        }
        let default = Interpolation::default();
        let count = self
            .interpolations
            .iter()
            .rposition(|x| *x != default)
            .map_or(0, |last| last + 1);
        out.push(self.level_scaling | (count as u8) << 3);
        for interpolation in &self.interpolations[..count] {
            interpolation.write(out);
        }
    }

    /// Reads the level options of a stream with these contexts, and those of wavelets if it holds coefficients, which is an error
    /// unless `allows_wavelets`.
    ///
    /// # Errors
    /// `ReservedBits`, or `Corrupt`.
    pub(crate) fn read(
        cursor: &mut Cursor<'_>,
        contexts: Contexts,
        allows_wavelets: bool,
    ) -> Result<(Self, Option<WaveletOptions>)> {
        let byte = cursor.byte()?;
        if byte & WaveletOptions::BIT > 0 {
            if !allows_wavelets {
                return Err(corrupt!(
                    "the stream holds wavelet coefficients; expected an array or blocks with values and without a mask, \
                     a bound, contexts by row and one packet"
                ));
            }
            let options = WaveletOptions::read(byte, cursor)?;
            return Ok((Self::default(), Some(options)));
        }
        let (level_scaling, count) = (byte & 7, usize::from(byte >> 3 & 3));
        if byte >> 5 != 0 {
            return Err(Error::ReservedBits {
                field: "level options",
                found: byte,
                reserved: 0b1100_0000,
            });
        }
        if usize::from(level_scaling) >= LEVEL_SCALINGS.len() {
            return Err(corrupt!(
                "the level scaling has index {level_scaling}; expected less than {}",
                LEVEL_SCALINGS.len()
            ));
        }
        let mut params = Self {
            level_scaling,
            contexts,
            ..Self::default()
        };
        for interpolation in &mut params.interpolations[..count] {
            *interpolation = Interpolation::read(cursor, contexts != Contexts::Level)?;
        }
        Ok((params, None))
    }

    /// Replaces the interpolation of the finest levels.
    pub(crate) fn with_interpolations(
        self,
        interpolations: [Interpolation; MAX_INTERPOLATIONS],
    ) -> Self {
        Self {
            interpolations,
            ..self
        }
    }

    /// Replaces whether arrays and blocks become wavelet coefficients, where these take fewer bits than interpolation. If so, each dimension
    /// is transformed as often as its length allows, minus `omitted` times. `None` turns wavelets off, as do contexts of
    /// levels, lossless coding, masks, and values that are not finite or close to overflow.
    #[must_use]
    pub fn with_wavelet(self, omitted: Option<u8>) -> Self {
        Self {
            omitted_wavelet_levels: omitted,
            ..self
        }
    }

    /// As [`with_wavelet`](Self::with_wavelet), with dimensions in their order. Those that are separate for interpolation stay so:
    /// wavelets do not use them.
    pub(crate) fn with_unmoved_wavelet(self, omitted: u8) -> Self {
        self.with_wavelet(Some(omitted)).with_moved_dimensions(0)
    }

    /// How many of the possible levels of each dimension are omitted; `None` without wavelets.
    pub(crate) fn omitted_wavelet_levels(self) -> Option<u8> {
        self.omitted_wavelet_levels
            .filter(|_| self.contexts != Contexts::Level)
    }

    /// Replaces whether the encoder uses rate-distortion optimisation.
    pub(crate) fn with_rdo(self, uses_rdo: bool) -> Self {
        Self { uses_rdo, ..self }
    }

    /// Replaces the first bound to try, relative to that of uniform errors, where only the mean squared error is bounded;
    /// otherwise that of wavelet coefficients, relative to that of values.
    pub(crate) fn with_bound_ratio(self, ratio: f64) -> Self {
        let bound_ratio = Some(ratio as f32).filter(|ratio| ratio.is_normal());
        Self {
            bound_ratio,
            ..self
        }
    }

    /// The first bound to try, relative to that of uniform errors, or the bound of wavelet coefficients, relative to that of values.
    pub(crate) fn bound_ratio(self) -> f64 {
        f64::from(self.bound_ratio.unwrap_or(1.0))
    }

    /// Whether the encoder uses rate-distortion optimisation.
    pub(crate) fn uses_rdo(self) -> bool {
        self.uses_rdo
    }

    /// Uses contexts of levels, which allow to code groups of tokens: streams decode in half the time, and are a
    /// sixth larger.
    #[must_use]
    pub fn with_level_contexts(self) -> Self {
        self.with_contexts(Contexts::Level)
    }

    /// Replaces the source of contexts. With those of levels, phases have no weights of their own.
    pub(crate) fn with_contexts(self, contexts: Contexts) -> Self {
        let mut changed = Self { contexts, ..self };
        if contexts == Contexts::Level {
            changed.interpolations = self.interpolations.map(|level| {
                if level.has_phase_weights() {
                    level.ignored_only()
                } else {
                    level
                }
            });
        }
        changed
    }

    /// The source of contexts.
    pub(crate) fn contexts(self) -> Contexts {
        self.contexts
    }

    /// Replaces whether tokens are coded adaptively in long streams, too.
    pub(crate) fn with_size_favoured(self, favours_size: bool) -> Self {
        Self {
            favours_size,
            ..self
        }
    }

    /// Replaces whether streams are lossless where that is smaller, although the bound allows errors.
    pub(crate) fn with_lossless_trial(self, tries_lossless: bool) -> Self {
        Self {
            tries_lossless,
            ..self
        }
    }

    /// Whether streams are lossless where that is smaller, although the bound allows errors.
    pub(crate) fn tries_lossless(self) -> bool {
        self.tries_lossless
    }

    /// Replaces how many slow dimensions of a region of an array are separate, 0 to 2: each index of them is a region of its own.
    pub(crate) fn with_separate_dimensions(self, separate_dimensions: u8) -> Self {
        Self {
            separate_dimensions,
            ..self
        }
    }

    /// How many slow dimensions of a region of an array are separate.
    pub(crate) fn separate_dimensions(self) -> usize {
        usize::from(self.separate_dimensions)
    }

    /// Replaces how many of the last dimensions of an array come first in the order of coding, not counting short ones.
    pub(crate) fn with_moved_dimensions(self, moved_dimensions: u8) -> Self {
        Self {
            moved_dimensions,
            ..self
        }
    }

    /// How many of the last dimensions of an array come first in the order of coding, not counting short ones.
    pub(crate) fn moved_dimensions(self) -> usize {
        usize::from(self.moved_dimensions)
    }

    /// When tokens are coded adaptively.
    pub(crate) fn adaptive_use(self) -> AdaptiveUse {
        if self.favours_size {
            AdaptiveUse::FOR_SIZE
        } else {
            AdaptiveUse::FOR_SPEED
        }
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
    /// stream, and packets add less than 0.5 % to it. Streams of cells, of components, of separate planes or rows, of wavelet
    /// coefficients, and with values that break a relative bound after coding have one packet.
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

    /// The parameters of all levels that the largest region may have, the finest first.
    pub(crate) fn levels<T: Element>(self, bound: f64, shift: u32) -> Vec<InterpolationLevel> {
        let (factor, limit) = LEVEL_SCALINGS[usize::from(self.level_scaling)];
        let mut tighter = 1.0f64;
        (0..MAX_INTERPOLATION_LEVELS)
            .map(|number| {
                // Larger steps would let sums overflow.
                let step = (2.0 * bound / tighter.min(limit)).min(T::MAX_PREDICTABLE);
                let level = InterpolationLevel {
                    number,
                    shift,
                    step,
                    has_point_contexts: self.contexts != Contexts::Level,
                    has_plane_contexts: self.contexts == Contexts::Plane && step > 0.0,
                    interpolation: self.interpolations.get(number).copied().unwrap_or_default(),
                };
                tighter *= factor;
                level
            })
            .collect()
    }
}

#[cfg(test)]
impl EncoderParams {
    /// Various entropy-coded parameters: 0 to 63 have contexts of rows, 64 to 127 of levels, 128 to 191 of planes.
    pub(crate) fn numbered(number: u8) -> Self {
        let contexts = [Contexts::Row, Contexts::Level, Contexts::Plane];
        let seed = u16::from(number % 64);
        let interpolation = |level: u16| Interpolation::numbered(seed / 5 * (level + 1));
        Self::default()
            .with_level_scaling((seed % LEVEL_SCALINGS.len() as u16) as u8)
            .with_interpolations([0, 1, 2].map(interpolation))
            .with_contexts(contexts[usize::from(number / 64)])
            .with_size_favoured(number % 2 == 1)
    }
}
