//! Rows: the interface between the traversal and an encoder or decoder.

use crate::element::Element;
use crate::predict::interpolation::Interpolation;
use crate::simd::RowMask;

/// The parameters of an interpolation level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InterpolationLevel {
    /// The number of the level; 0 is the finest.
    pub number: usize,
    /// Twice the error bound of the level; 0 for lossless coding.
    pub step: f64,
    /// For lossless coding, the number of lowest bits that are 0 in all values.
    pub shift: u32,
    /// Whether each point has a context of its own; otherwise the level determines it.
    pub has_point_contexts: bool,
    /// Whether contexts use the plane before, if it exists, instead of the row before.
    pub has_plane_contexts: bool,
    /// How points are interpolated.
    pub interpolation: Interpolation,
}

/// The location of a row in the values of a region: the index of its first point, and the distance of points.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowLocation {
    pub start: usize,
    pub step: usize,
}

impl RowLocation {
    /// The location of the row (z, y) of phase `t` of lattice `number`, in a region of this shape.
    #[inline(always)]
    pub(crate) fn new(
        t: usize,
        [z, y]: [usize; 2],
        [_, ny, nx]: [usize; 3],
        number: usize,
    ) -> Self {
        let at = |d: usize, k: usize| (2 * k + (t >> d & 1)) << number;
        Self {
            start: (at(0, z) * ny + at(1, y)) * nx + at(2, 0),
            step: 2 << number,
        }
    }
}

/// A row to code: the coder gets predictions and contexts, and writes values and magnitudes. All slices have space for a
/// group of lanes after the last point. Its content is ignored, except that magnitudes are 0 for absent points.
pub(crate) struct Row<'a, T> {
    pub location: RowLocation,
    pub level: InterpolationLevel,
    /// Predicted values.
    pub predictions: &'a [T],
    /// The context of each point; `None` if the coder got them in advance.
    pub contexts: Option<&'a [u8]>,
    /// The number of points of the row.
    pub points: usize,
    /// A bit for each point that is present and coded.
    pub present: &'a [u64],
    /// The number of set bits of `present`.
    pub count: usize,
    /// The decoded values; the predictions of absent points.
    pub values: &'a mut [T],
    /// Magnitudes of the residuals; `None` if no context uses them.
    pub magnitudes: Option<&'a mut [u8]>,
}

/// Rows to encode in one call, whose contexts the encoder got in advance. All slices begin at the first point of the first
/// row, have space between rows, and a length that is a multiple of a group of lanes. Values and magnitudes between rows are
/// ignored, except that magnitudes are 0 there and for absent points.
pub(crate) struct RowBatch<'a, T> {
    pub level: InterpolationLevel,
    /// The number of points of a row.
    pub points: usize,
    /// Predicted values.
    pub predictions: &'a [T],
    /// The context of each point; `None` if all points of the level share one.
    pub contexts: Option<&'a [u8]>,
    /// The decoded values; the predictions of absent points.
    pub values: &'a mut [T],
    /// Magnitudes of the residuals; `None` if no context uses them.
    pub magnitudes: Option<&'a mut [u8]>,
}

/// The level of the anchor point: coarser than all others.
pub(crate) const ANCHOR: usize = usize::MAX;

/// Codes rows: the encoder or the decoder.
pub(crate) trait RowCoder<T> {
    /// Begins a level: all rows until the next call are of level `number`, which is [`ANCHOR`] for the anchor point.
    fn begin_level(&mut self, _number: usize) {}
    /// Sets the context of the next `count` present points.
    fn set_context(&mut self, context: u8, count: usize);
    /// Sets the contexts of the next present points.
    fn set_contexts(&mut self, contexts: &[u8]);
    /// Codes a row.
    fn row(&mut self, row: Row<'_, T>);
    /// Encodes rows: the location of each in the region, and its points in the batch. If contexts are known in advance and
    /// coding is lossy, an encoder gets calls of this instead of `row`.
    fn rows<'a>(
        &mut self,
        _rows: impl Iterator<Item = (RowLocation, RowMask<'a>)> + Clone,
        _batch: RowBatch<'_, T>,
    ) {
    }
    /// Whether the coder decodes several rows in one call: if contexts are known in advance and coding is lossy, it gets calls
    /// of `scatter_tokens` and `raw` instead of `row`.
    const BATCHED: bool = false;
    /// Writes the tokens of the present points of rows, and 0 for absent points and the group of lanes after each row. Returns
    /// whether tokens may have raw bits.
    fn scatter_tokens<'a>(
        &mut self,
        _rows: impl Iterator<Item = RowMask<'a>>,
        _points: usize,
        _tokens: &mut [u8],
    ) -> bool {
        false
    }
    /// Reads the raw bits of a token, whose index in the region is `at`.
    fn raw(&mut self, _token: u8, _at: usize) -> RawPoint<T> {
        RawPoint::Residual(0)
    }
}

/// Literals at this distance from their prediction or further, in steps, are not used in predictions.
const MAX_LITERAL_STEPS: f64 = (1u64 << 53) as f64;

/// A point that has raw bits.
pub(crate) enum RawPoint<T> {
    /// The residual, in steps.
    Residual(i32),
    /// The value.
    Literal(T),
}

impl<T: Element> RawPoint<T> {
    /// The value that later predictions use.
    #[inline(always)]
    pub(crate) fn value(&self, prediction: T, step: T) -> T {
        match self {
            Self::Residual(residual) => prediction.plus(T::from_i32(*residual).times(step)),
            Self::Literal(literal) => literal_or_prediction(*literal, prediction, step),
        }
    }

    /// The magnitude of the residual.
    #[inline(always)]
    pub(crate) fn magnitude(&self) -> u8 {
        match self {
            Self::Residual(residual) => residual.unsigned_abs().min(255) as u8,
            Self::Literal(_) => u8::MAX,
        }
    }
}

/// Returns the value that later predictions use for a literal: the literal, or its prediction if both differ so much that the
/// literal is an outlier.
#[inline(always)]
pub(crate) fn literal_or_prediction<T: Element>(literal: T, prediction: T, step: T) -> T {
    let distance = (literal.to_f64() - prediction.to_f64()).abs();
    if distance < MAX_LITERAL_STEPS * step.to_f64() {
        literal
    } else {
        prediction
    }
}
