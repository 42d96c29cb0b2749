//! Rows of points on their way between the walk and a coder.

use crate::simd::RowMask;

/// What belongs to one level of the walk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    /// 0 is the finest.
    pub number: usize,
    /// Twice the error bound of its values; 0 where coding is lossless.
    pub step: f64,
    /// Lowest bits that are 0 in all values; of use where coding is lossless.
    pub shift: u32,
    /// Whether contexts are what is expected of each value; else they are the levels.
    pub expects: bool,
    /// Whether these come from the plane before, where there is one, and not from the row before.
    pub planes: bool,
    /// Cubic interpolation; else linear.
    pub cubic: bool,
}

/// Where a row lies in the region's values: the index of its first point, and the distance of points.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub start: usize,
    pub step: usize,
}

impl Place {
    /// Of the row (z, y) of phase `t` of lattice `number`, in a region of this shape.
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

/// A row on its way: predictions and bins are given, values and marks are made. All slices have room
/// for a group of lanes after the last point. The content there is ignored, except that magnitudes
/// are 0 where there is no point.
pub(crate) struct Row<'a, T> {
    pub place: Place,
    pub level: Level,
    /// Predicted values.
    pub predictions: &'a [T],
    /// Classes of the expected magnitudes; `None` where the coder was told ahead.
    pub contexts: Option<&'a [u8]>,
    /// Points of the row.
    pub points: usize,
    /// The bits of the points that are there, and coded.
    pub there: &'a [u64],
    /// The number of points that are there.
    pub count: usize,
    /// The values, as they will be decoded; of points that are not there, the predictions.
    pub values: &'a mut [T],
    /// Magnitudes of the residuals; `None` where they are of no use.
    pub magnitudes: Option<&'a mut [u8]>,
}

/// The level of the anchor point: coarser than all others.
pub(crate) const ANCHOR: usize = usize::MAX;

/// What happens to the rows.
pub(crate) trait RowCoder<T> {
    /// Begins a level of the walk: all rows until the next call are of level `number`; of the anchor point it is
    /// [`ANCHOR`].
    fn begin_level(&mut self, _number: usize) {}
    /// Says that the next `count` points that are there are in class `context`.
    fn set_context(&mut self, context: u8, count: usize);
    /// Says in which classes the next points are that are there.
    fn set_contexts(&mut self, contexts: &[u8]);
    /// Makes values and marks of a row.
    fn row(&mut self, row: Row<'_, T>);
    /// Whether it decodes, and lays tokens out: instead of `row` there are then calls of `scatter_tokens` and `raw`
    /// where the class was told ahead and coding is not lossless.
    const BATCHED: bool = false;
    /// Writes the tokens of rows' points that are there, 0 for others and in the lanes behind; says whether
    /// there may be tokens with raw bits.
    fn scatter_tokens<'a>(
        &mut self,
        _rows: impl Iterator<Item = RowMask<'a>>,
        _points: usize,
        _tokens: &mut [u8],
    ) -> bool {
        false
    }
    /// Reads the raw bits behind a token; gives the residual, or `None` for a literal, which belongs to
    /// index `at` of the region.
    fn raw(&mut self, _token: u8, _at: usize) -> Option<i32> {
        None
    }
}
