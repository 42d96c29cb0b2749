//! A transformed dimension: the order of its coefficients, and their scales.

/// Maximum number of times that a dimension is transformed.
pub(crate) const MAX_WAVELET_LEVELS: usize = 7;
/// Dimensions are transformed until they are shorter than this.
const MIN_LENGTH: usize = 9;
/// The inverse of the norm of the basis function of an approximation, by the number of levels.
const LOW: [f64; MAX_WAVELET_LEVELS + 1] = [
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
const HIGH: [f64; MAX_WAVELET_LEVELS] = [
    1.127043657,
    1.016806485,
    0.853124951,
    0.729750802,
    0.631643066,
    0.548727337,
    0.477160316,
];

/// How many times each dimension of a region is transformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaveletLevels([u8; 3]);

impl WaveletLevels {
    /// The possible levels of a region of a shape, less `omitted` for each dimension.
    pub(crate) fn of_shape(shape: [usize; 3], omitted: u8) -> Self {
        Self(shape.map(|mut n| {
            let mut levels = 0;
            while n >= MIN_LENGTH && levels < MAX_WAVELET_LEVELS as u8 {
                (n, levels) = (n.div_ceil(2), levels + 1);
            }
            levels.saturating_sub(omitted)
        }))
    }

    /// The levels of dimension `d`.
    pub(crate) fn of(self, d: usize) -> usize {
        usize::from(self.0[d])
    }

    /// Whether no dimension is transformed.
    pub(crate) fn is_empty(self) -> bool {
        self.0 == [0; 3]
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
