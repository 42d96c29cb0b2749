//! The traversal of a region, from its coarsest lattice to the finest, phase by phase, row by row.
//!
//! Encoder and decoder use the same traversal. For each row, it computes predictions and contexts from values that both know.
//! A [`RowCoder`] encodes or decodes the residuals, and returns the values.

use crate::domain::bitmap::{Bitmap, first_bits};
use crate::domain::lattice::{self, ORDER, Phases};
use crate::element::Element;
use crate::entropy::CONTEXTS;
use crate::predict::batch::{ContextSource, Pass, PhaseBuffers, RowScratch};
use crate::predict::batch_geometry::{Batch, Geometry};
use crate::predict::context::{self, ContextModel, ContextWeights};
use crate::predict::diagonals::Diagonals;
use crate::predict::differences::{Differences, Kernel, PhaseLines};
use crate::predict::extrapolate;
use crate::predict::interpolate::{Line, Weights};
use crate::predict::mask_pyramid::{self, Validity};
use crate::predict::row::{ANCHOR, InterpolationLevel, Row, RowCoder, RowLocation};
use crate::simd::LANES;

/// Buffers of the traversal, which are reused for all regions.
#[derive(Default)]
pub(crate) struct Scratch<T> {
    /// The values of the phases of the current lattice; at the end, of the last one.
    pub values: [Vec<T>; 8],
    magnitudes: [Vec<u8>; 8],
    coarse: Vec<T>,
    row: RowScratch<T>,
    /// The bits of a row whose points are all present.
    full: Vec<u64>,
}

/// Parameters of all levels.
pub(crate) struct TraversalParams<'a> {
    pub context_weights: &'a [ContextWeights; context::GROUPS],
    /// The parameters of each level, the finest first. Coarser levels use those of the last.
    pub levels: &'a [InterpolationLevel],
}

/// Traverses a region of `shape`. Leaves its values in `scratch`, as the phases of its finest lattice.
pub(crate) fn traverse<T: Element>(
    shape: [usize; 3],
    validity: Option<&Validity>,
    params: &TraversalParams<'_>,
    coder: &mut impl RowCoder<T>,
    scratch: &mut Scratch<T>,
) {
    traverse_to(0, shape, validity, params, coder, scratch);
}

/// Traverses a region down to level `last`, whose phases are returned. Leaves their values in `scratch`.
pub(crate) fn traverse_to<T: Element>(
    last: usize,
    shape: [usize; 3],
    validity: Option<&Validity>,
    params: &TraversalParams<'_>,
    coder: &mut impl RowCoder<T>,
    scratch: &mut Scratch<T>,
) -> Phases {
    let lattices = lattice::levels(shape);
    let top = lattices.len() - 1;
    let mut anchor = [T::default(); LANES];
    coder.begin_level(ANCHOR);
    if validity.is_none_or(Validity::has_anchor) {
        coder.row(Row {
            location: RowLocation { start: 0, step: 1 },
            level: params.levels[top.min(params.levels.len() - 1)],
            predictions: &[T::default(); LANES],
            contexts: Some(&[CONTEXTS as u8 - 1; 1 + LANES]),
            points: 1,
            present: &[1],
            count: 1,
            values: &mut anchor,
            magnitudes: None,
        });
    }
    let mut phases = Phases::new(lattices[top]);
    grow(&mut scratch.values[0], phases.len + LANES);
    scratch.values[0][phases.row(0, 0)] = anchor[0];
    for number in (last..top).rev() {
        coder.begin_level(number);
        let coarse = std::mem::replace(&mut phases, Phases::new(lattices[number]));
        let level = InterpolationLevel {
            number,
            ..params.levels[number.min(params.levels.len() - 1)]
        };
        scratch.coarsen(&coarse, &phases);
        scratch.prepare(&phases, level.has_point_contexts);
        let mut traversal = LevelTraversal {
            phases: &phases,
            shape,
            level,
            weights: Weights::new(),
            coded: validity.map(|v| v.phases(number)),
            predicts_holes: validity.is_some_and(Validity::predicts_holes),
            params,
            scratch,
        };
        traversal.pad(0);
        for t in ORDER {
            if phases.points(t).contains(&0) {
                continue;
            }
            traversal.pass(t, coder);
            traversal.pad(t);
        }
    }
    phases
}

impl<T: Element> Scratch<T> {
    /// Merges the phases of a lattice to phase 0 of the next finer one.
    fn coarsen(&mut self, coarse: &Phases, fine: &Phases) {
        grow(&mut self.coarse, fine.len + LANES);
        lattice::interleave(coarse, &self.values, &mut self.coarse, |z, y| {
            fine.row(z, y)
        });
        std::mem::swap(&mut self.coarse, &mut self.values[0]);
    }

    /// Reserves space for the other phases of a lattice, and clears their magnitudes if contexts use them.
    fn prepare(&mut self, phases: &Phases, has_magnitudes: bool) {
        let len = phases.len + LANES;
        for t in (1..8).filter(|t| !phases.points(*t).contains(&0)) {
            // Values are written before they are read. Magnitudes of absent points are read.
            grow(&mut self.values[t], len);
            if cfg!(debug_assertions) {
                self.values[t].fill(T::from_f64(f64::NAN));
            }
            if has_magnitudes {
                self.magnitudes[t].clear();
                self.magnitudes[t].resize(len, 0);
            }
        }
        self.row.prepare(phases);
    }
}

/// The traversal of one lattice.
struct LevelTraversal<'a, T> {
    phases: &'a Phases,
    shape: [usize; 3],
    level: InterpolationLevel,
    weights: Weights<T>,
    /// The coded points of each phase; `None` for all.
    coded: Option<&'a [Bitmap; 8]>,
    /// Whether other points are predicted like coded ones.
    predicts_holes: bool,
    params: &'a TraversalParams<'a>,
    scratch: &'a mut Scratch<T>,
}

impl<'a, T: Element> LevelTraversal<'a, T> {
    /// The predicted points of each phase; `None` for all.
    fn valid(&self) -> Option<&'a [Bitmap; 8]> {
        self.coded.filter(|_| !self.predicts_holes)
    }

    /// Codes all rows of phase `t`.
    fn pass(&mut self, t: usize, coder: &mut impl RowCoder<T>) {
        let used = self.level.interpolation.dimensions(t);
        let nth = |n: usize| (0..3).filter(|d| used >> d & 1 == 1).nth(n).unwrap_or(0);
        match (used.count_ones(), self.level.has_point_contexts) {
            (1, true) => self.rows::<1, true>(t, [nth(0)], coder),
            (1, false) => self.rows::<1, false>(t, [nth(0)], coder),
            (2, true) => self.rows::<2, true>(t, [nth(0), nth(1)], coder),
            (2, false) => self.rows::<2, false>(t, [nth(0), nth(1)], coder),
            (_, true) => self.rows::<3, true>(t, [0, 1, 2], coder),
            (_, false) => self.rows::<3, false>(t, [0, 1, 2], coder),
        }
    }

    /// Codes all rows of phase `t`, which is interpolated along the `N` dimensions `used`; with a context for each point if
    /// `POINT_CONTEXTS`.
    fn rows<const N: usize, const POINT_CONTEXTS: bool>(
        &mut self,
        t: usize,
        used: [usize; N],
        coder: &mut impl RowCoder<T>,
    ) {
        let [nz, ny, nx] = self.phases.points(t);
        let mut own = std::mem::take(&mut self.scratch.values[t]);
        let mut own_magnitudes = std::mem::take(&mut self.scratch.magnitudes[t]);
        let mut row = std::mem::take(&mut self.scratch.row);
        let mut full = std::mem::take(&mut self.scratch.full);
        full.clear();
        full.extend((0..nx.div_ceil(64)).map(|word| first_bits(nx, word)));
        let interpolation = self.level.interpolation;
        let lines = used.map(|d| Line {
            values: &self.scratch.values[t ^ 1 << d][..],
            stride: self.phases.stride[d],
            weights: {
                let (near, far) = interpolation.weights(t, d);
                (T::from_f64(near), T::from_f64(far))
            },
        });
        let pass = Pass {
            t,
            lines,
            outer_points: Differences::new(
                PhaseLines { t, used, lines },
                Kernel::outer_points(),
                interpolation.outer_weight(t),
                self.phases,
                self.valid(),
            ),
            slopes: Differences::new(
                PhaseLines { t, used, lines },
                Kernel::slopes(),
                interpolation.slope_weight(t),
                self.phases,
                self.valid(),
            ),
            diagonals: Diagonals::new(
                t,
                interpolation,
                self.phases,
                &self.scratch.values,
                self.valid(),
            ),
            geometry: Geometry::new(self.phases, (self.coded, self.valid()), (t, used), &full),
            weights: self.weights,
            magnitudes: &self.scratch.magnitudes,
            model: ContextModel::new(
                t,
                self.phases,
                &self.params.context_weights[t.count_ones() as usize - 1],
                self.level.step,
            ),
            level: self.level,
            shape: self.shape,
        };
        for z in 0..nz {
            if !POINT_CONTEXTS {
                let count = pass.geometry.count(z, ny);
                coder.set_context(context::level_context(self.level.number), count);
            }
            let rows = pass.geometry.max_rows();
            for y in (0..ny).step_by(rows) {
                let batch = Batch {
                    z,
                    y,
                    rows: rows.min(ny - y),
                    at: self.phases.row(z, y),
                };
                let contexts = if !POINT_CONTEXTS {
                    ContextSource::Level
                } else if self.level.has_plane_contexts && z > 0 && self.phases.fine[1] > 1 {
                    ContextSource::Plane
                } else {
                    ContextSource::Row
                };
                let out = PhaseBuffers {
                    values: &mut own,
                    magnitudes: &mut own_magnitudes,
                };
                pass.code(&batch, contexts, out, &mut row, coder);
            }
        }
        self.scratch.values[t] = own;
        self.scratch.magnitudes[t] = own_magnitudes;
        self.scratch.row = row;
        self.scratch.full = full;
    }

    /// Extrapolates phase `t` beyond its borders in its even dimensions, where interpolation reads.
    fn pad(&mut self, t: usize) {
        let points = self.phases.points(t);
        let valid = self.valid();
        let values = &mut self.scratch.values[t];
        if let Some(valid) = valid {
            return mask_pyramid::extrapolate_into_holes(values, &valid[t], self.phases, t);
        }
        for d in (0..3).filter(|d| t >> d & 1 == 0 && self.phases.fine[*d] > 1) {
            extrapolate::pad_dimension(values, self.phases, points, d);
        }
    }
}

/// Extends a buffer to a minimum length.
fn grow<T: Copy + Default>(buffer: &mut Vec<T>, length: usize) {
    if buffer.len() < length {
        buffer.resize(length, T::default());
    }
}
