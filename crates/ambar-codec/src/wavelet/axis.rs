//! A transformed dimension: the order of its coefficients, and their scales.

use crate::entropy::bitio::Cursor;
use crate::error::{Result, corrupt};

/// Maximum number of times that a dimension is transformed.
const MAX_LEVELS: usize = 7;
/// Dimensions are transformed until they are shorter than this.
const MIN_LENGTH: usize = 9;
/// The inverse of the norm of the basis function of an approximation, by the number of levels.
const LOW: [f64; MAX_LEVELS + 1] = [
    1.0,
    0.877374609,
    0.745345403,
    0.641693558,
    0.556501562,
    0.483697057,
    0.420666218,
    0.365904104,
];
/// The inverse of the norm of the basis function of a detail, by its level; 0 is the finest.
const HIGH: [f64; MAX_LEVELS] = [
    1.127043657,
    1.016806485,
    0.853124951,
    0.729750802,
    0.631643066,
    0.548727337,
    0.477160316,
];

/// How many times each dimension is transformed: 0 to 7 times, and at least one dimension at least once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaveletLevels([u8; 3]);

impl WaveletLevels {
    /// The levels that regions of a shape allow, less `omitted` for each dimension; `None` if none is left.
    pub(crate) fn of_shape(shape: [usize; 3], omitted: u8) -> Option<Self> {
        let levels = shape.map(|mut n| {
            let mut levels = 0;
            while n >= MIN_LENGTH && levels < MAX_LEVELS as u8 {
                (n, levels) = (n.div_ceil(2), levels + 1);
            }
            levels.saturating_sub(omitted)
        });
        (levels != [0; 3]).then_some(Self(levels))
    }

    /// The levels of dimension `d`.
    pub(crate) fn of(self, d: usize) -> usize {
        usize::from(self.0[d])
    }

    pub(crate) fn write(self, out: &mut Vec<u8>) {
        let [z, y, x] = self.0.map(u16::from);
        out.extend((z | y << 3 | x << 6).to_le_bytes());
    }

    /// Reads the levels of regions of a shape.
    ///
    /// # Errors
    /// `Corrupt` if reserved bits are set, or if a dimension is too short for its levels.
    pub(crate) fn read(cursor: &mut Cursor<'_>, shape: [usize; 3]) -> Result<Self> {
        let bytes = cursor.bytes(2)?;
        let bits = u16::from_le_bytes([bytes[0], bytes[1]]);
        let levels = [0, 3, 6].map(|first| (bits >> first & 7) as u8);
        let is_short = |d: usize| levels[d] > 0 && shape[d] <= 1 << (levels[d] - 1);
        if bits >> 9 != 0 || levels == [0; 3] || (0..3).any(is_short) {
            return Err(corrupt!(
                "the wavelet levels are {bits:#06x} for a region of the shape {shape:?}; expected a dimension of at \
                 least one level, lengths above 2^(levels - 1), and 0 in bits 9 to 15"
            ));
        }
        Ok(Self(levels))
    }
}

/// A coefficient of a transformed dimension.
pub(crate) struct AxisCoefficient {
    /// The index before the coefficients were arranged by band.
    pub position: usize,
    /// The number of its band: 0 for the approximation, then details, the coarsest first.
    pub band: usize,
    /// Whether the coefficient before it has the same band.
    pub has_predecessor: bool,
    /// The coefficient at the same place of the next coarser band of details.
    pub parent: Option<usize>,
    /// The inverse of the norm of its basis function.
    pub scale: f64,
}

/// The coefficients of a transformed dimension, arranged by band.
pub(crate) struct Axis {
    pub coefficients: Vec<AxisCoefficient>,
}

impl Axis {
    pub(crate) fn new(length: usize, levels: usize) -> Self {
        let mut coefficients = Vec::with_capacity(length);
        coefficients.extend(
            (0..length)
                .step_by(1 << levels)
                .enumerate()
                .map(|(k, position)| AxisCoefficient {
                    position,
                    band: 0,
                    has_predecessor: k > 0,
                    parent: None,
                    scale: LOW[levels],
                }),
        );
        let mut coarser = None;
        for level in (0..levels).rev() {
            let first = coefficients.len();
            let positions = (1 << level..length).step_by(2 << level);
            let parent =
                |k: usize| coarser.map(|(begin, end): (usize, usize)| (begin + k / 2).min(end - 1));
            coefficients.extend(positions.enumerate().map(|(k, position)| AxisCoefficient {
                position,
                band: levels - level,
                has_predecessor: k > 0,
                parent: parent(k),
                scale: HIGH[level],
            }));
            coarser = Some((first, coefficients.len()));
        }
        Self { coefficients }
    }
}

/// The scales of the coefficients of a dimension, arranged by band.
pub(crate) fn scales(length: usize, levels: usize) -> Vec<f64> {
    let mut scales = vec![LOW[levels]; length.div_ceil(1 << levels)];
    for level in (0..levels).rev() {
        let count = length.div_ceil(1 << level) / 2;
        scales.extend(std::iter::repeat_n(HIGH[level], count));
    }
    scales
}
