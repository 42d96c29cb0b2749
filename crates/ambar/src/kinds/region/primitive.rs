//! Boxes, spheres, shells, cylinders and oriented boxes: tests of points and axis-parallel boxes.

use crate::error::{Error, Result};

/// A region that is not a combination of others, in code length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Primitive {
    ndim: usize,
    form: Form,
    /// Lower corner of the periodic box.
    lower: [f64; 3],
    /// Sides of the periodic box; infinite in dimensions that are not periodic.
    size: [f64; 3],
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Cuboid {
        /// The half-open intervals in each dimension: see `Primitive::spans`.
        spans: [[Span; 2]; 3],
    },
    /// Points with `inner < distance <= outer`; a sphere if `inner` is negative.
    Shell {
        centre: [f64; 3],
        inner: f64,
        outer: f64,
    },
    /// Points with `inner < distance from the axis <= outer` and at most `half_height` from the centre along it.
    Cylinder {
        centre: [f64; 3],
        /// A unit vector.
        axis: [f64; 3],
        inner: f64,
        outer: f64,
        half_height: f64,
    },
    /// Points with `-half_side <= coordinate < half_side` along each of three axes from the centre.
    Oriented {
        centre: [f64; 3],
        /// Orthogonal unit vectors.
        axes: [[f64; 3]; 3],
        half_sides: [f64; 3],
    },
}

/// An interval of one coordinate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Its lower end.
    pub lo: f64,
    /// Its upper end.
    pub hi: f64,
}

impl Span {
    pub(super) const EMPTY: Self = Self {
        lo: f64::INFINITY,
        hi: f64::NEG_INFINITY,
    };
    pub(super) const ALL: Self = Self {
        lo: f64::NEG_INFINITY,
        hi: f64::INFINITY,
    };

    fn contains(self, x: f64) -> bool {
        (self.lo <= x) & (x < self.hi)
    }

    fn shifted(self, by: f64) -> Self {
        Self {
            lo: self.lo + by,
            hi: self.hi + by,
        }
    }

    /// Its parts in the periodic box from `lower`: the interval, and the part beyond the upper face,
    /// moved to the lower face. An open side ends at the face of the box.
    fn wrapped(self, lower: f64, size: f64) -> [Self; 2] {
        if [size, self.lo, self.hi].iter().any(|x| !x.is_finite()) {
            return [self, Self::EMPTY];
        }
        if self.hi - self.lo >= size {
            return [Self::ALL, Self::EMPTY];
        }
        let boxes = ((self.lo - lower) / size).floor();
        let moved = if boxes == 0.0 {
            self
        } else {
            self.shifted(-boxes * size)
        };
        if moved.hi >= lower + size {
            [moved, moved.shifted(-size)]
        } else {
            [moved, Self::EMPTY]
        }
    }
}

impl Primitive {
    /// The points with `lo <= point < hi` in each dimension: adjacent boxes share no point.
    ///
    /// # Errors
    /// `Invalid` unless both corners have the same number of coordinates, 1 to 3; if a coordinate is
    /// NaN, or `lo > hi`.
    pub(super) fn cuboid(lo: &[f64], hi: &[f64]) -> Result<Self> {
        let ndim = dimensions("a box", lo)?;
        if dimensions("a box", hi)? != ndim {
            return Err(Error::invalid(format!(
                "expected two corners with the same number of coordinates, found {} and {}",
                lo.len(),
                hi.len()
            )));
        }
        if let Some(d) = (0..ndim).find(|&d| lo[d] > hi[d]) {
            return Err(Error::invalid(format!(
                "expected the lower corner of a box first, found {} above {} in dimension {d}",
                lo[d], hi[d]
            )));
        }
        let (lo, hi) = (padded(lo), padded(hi));
        let spans = std::array::from_fn(|d| {
            let (lo, hi) = (lo[d], hi[d]);
            [Span { lo, hi }, Span::EMPTY]
        });
        Ok(Self::of_form(ndim, Form::Cuboid { spans }))
    }

    fn of_form(ndim: usize, form: Form) -> Self {
        Self {
            ndim,
            form,
            lower: [0.0; 3],
            size: [f64::INFINITY; 3],
        }
    }

    /// The points of the sphere of radius `outer` that are not in the sphere of radius `inner`:
    /// adjacent shells share no point. With `inner` 0 the whole sphere.
    ///
    /// # Errors
    /// `Invalid` unless the centre has 1 to 3 coordinates that are not NaN, and `0 <= inner <= outer`.
    pub(super) fn shell(centre: &[f64], inner: f64, outer: f64) -> Result<Self> {
        let ndim = dimensions("a sphere", centre)?;
        if !(0.0 <= inner && inner <= outer) {
            return Err(Error::invalid(format!(
                "expected 0 <= inner radius <= outer radius of a sphere or shell, found {inner} and {outer}"
            )));
        }
        let form = Form::Shell {
            centre: padded(centre),
            inner: if inner == 0.0 { -1.0 } else { inner },
            outer,
        };
        Ok(Self::of_form(ndim, form))
    }

    /// The points at most `outer` and more than `inner` from the line through `centre` along `axis`, and at most
    /// `height / 2` from the centre along it. With `inner` 0 the whole cylinder.
    ///
    /// # Errors
    /// `Invalid` unless centre and axis have 3 coordinates, the axis is not zero, `0 <= inner <= outer` and
    /// `height >= 0`.
    pub(super) fn cylinder(
        centre: &[f64],
        axis: &[f64],
        inner: f64,
        outer: f64,
        height: f64,
    ) -> Result<Self> {
        if dimensions("a cylinder", centre)? != 3 || axis.len() != 3 {
            return Err(Error::invalid(format!(
                "expected a centre and an axis of 3 coordinates of a cylinder, found {centre:?} and {axis:?}"
            )));
        }
        if !(0.0 <= inner && inner <= outer && height >= 0.0) {
            return Err(Error::invalid(format!(
                "expected 0 <= inner radius <= outer radius and a height >= 0 of a cylinder, found {inner}, {outer} \
                 and {height}"
            )));
        }
        let form = Form::Cylinder {
            centre: padded(centre),
            axis: unit_vector(padded(axis))?,
            inner: if inner == 0.0 { -1.0 } else { inner },
            outer,
            half_height: height / 2.0,
        };
        Ok(Self::of_form(3, form))
    }

    /// A box around `centre` with these sides, the first along `axis`, the second as close to `towards` as is
    /// perpendicular to it.
    ///
    /// # Errors
    /// `Invalid` unless all have 3 coordinates, the sides are not negative, and the vectors are neither zero nor parallel.
    pub(super) fn oriented_box(
        centre: &[f64],
        sides: &[f64],
        axis: &[f64],
        towards: &[f64],
    ) -> Result<Self> {
        let all = [centre, sides, axis, towards];
        if all.iter().any(|vector| vector.len() != 3)
            || sides.iter().any(|side| side.is_nan() || *side < 0.0)
        {
            return Err(Error::invalid(format!(
                "expected a centre, sides >= 0 and two directions of 3 coordinates each of an oriented box, found {all:?}"
            )));
        }
        dimensions("an oriented box", centre)?;
        let first = unit_vector(padded(axis))?;
        let towards = unit_vector(padded(towards))?;
        let along = dot(&towards, &first);
        let second = std::array::from_fn(|d| towards[d] - along * first[d]);
        if dot(&second, &second) < 1e-12 {
            return Err(Error::invalid(format!(
                "expected two directions that are not parallel of an oriented box, found {axis:?} and {towards:?}"
            )));
        }
        let second = unit_vector(second)?;
        let third = std::array::from_fn(|d| {
            let (e, f) = ((d + 1) % 3, (d + 2) % 3);
            first[e] * second[f] - first[f] * second[e]
        });
        let form = Form::Oriented {
            centre: padded(centre),
            axes: [first, second, third],
            half_sides: padded(sides).map(|side| side / 2.0),
        };
        Ok(Self::of_form(3, form))
    }

    /// The region in a periodic box with this lower corner and these sides, infinite in dimensions
    /// that are not periodic. Parts beyond a face continue at the opposite face, and distances are
    /// those to the nearest image of the centre.
    ///
    /// # Errors
    /// `Invalid` if the box has other dimensions, its corner is not finite, or a side is not
    /// positive.
    pub(super) fn in_periodic_box(mut self, lower: &[f64], size: &[f64]) -> Result<Self> {
        let finite = lower.iter().all(|x| x.is_finite());
        if lower.len() != self.ndim || size.len() != self.ndim || !finite {
            return Err(Error::invalid(format!(
                "expected a periodic box with {} finite coordinates and {0} sides, found {lower:?} and \
                 {size:?}",
                self.ndim
            )));
        }
        if let Some(side) = size.iter().find(|side| side.is_nan() || **side <= 0.0) {
            return Err(Error::invalid(format!(
                "expected positive sides of a periodic box, found {side}"
            )));
        }
        self.lower[..self.ndim].copy_from_slice(lower);
        self.size[..self.ndim].copy_from_slice(size);
        match &mut self.form {
            Form::Cuboid { spans } => {
                for (d, spans) in spans.iter_mut().enumerate().take(self.ndim) {
                    *spans = spans[0].wrapped(self.lower[d], self.size[d]);
                }
            }
            Form::Shell { centre, .. }
            | Form::Cylinder { centre, .. }
            | Form::Oriented { centre, .. } => {
                for (d, x) in centre.iter_mut().enumerate().take(self.ndim) {
                    let boxes = ((*x - self.lower[d]) / self.size[d]).floor();
                    if boxes != 0.0 && self.size[d].is_finite() {
                        *x -= boxes * self.size[d];
                    }
                }
            }
        }
        Ok(self)
    }

    /// Its number of dimensions, 1 to 3.
    pub(super) fn ndim(&self) -> usize {
        self.ndim
    }

    /// Whether a point is inside. Coordinates of unused dimensions are ignored.
    pub(super) fn contains(&self, point: &[f64; 3]) -> bool {
        match &self.form {
            Form::Cuboid { spans } => {
                (0..self.ndim).all(|d| spans[d].iter().any(|span| span.contains(point[d])))
            }
            Form::Shell {
                centre,
                inner,
                outer,
            } => within(self.distance2(centre, point), *inner, *outer),
            Form::Cylinder { .. } | Form::Oriented { .. } => self.contains_oriented(point),
        }
    }

    /// As `contains`, of a cylinder or an oriented box.
    fn contains_oriented(&self, point: &[f64; 3]) -> bool {
        match &self.form {
            Form::Cylinder {
                centre,
                axis,
                inner,
                outer,
                half_height,
            } => {
                let from_centre = self.displacement(centre, point);
                let along = dot(&from_centre, axis);
                let across = across(&from_centre, axis, along);
                (along.abs() <= *half_height) & within(across, *inner, *outer)
            }
            Form::Oriented {
                centre,
                axes,
                half_sides,
            } => {
                let from_centre = self.displacement(centre, point);
                axes.iter().zip(half_sides).all(|(axis, half)| {
                    let along = dot(&from_centre, axis);
                    (-half <= along) & (along < *half)
                })
            }
            _ => false,
        }
    }

    /// The vector from the nearest image of `centre` to a point.
    fn displacement(&self, centre: &[f64; 3], point: &[f64; 3]) -> [f64; 3] {
        std::array::from_fn(|d| {
            let (distance, size) = (point[d] - centre[d], self.size[d]);
            match size.is_finite() {
                true => distance - size * (distance / size).round(),
                false => distance,
            }
        })
    }

    /// The centre of a box from the nearest image of `centre`, and half its sides; `None` if its points can have
    /// different nearest images.
    fn box_from(
        &self,
        centre: &[f64; 3],
        lo: &[f64; 3],
        hi: &[f64; 3],
    ) -> Option<([f64; 3], [f64; 3])> {
        let middle = std::array::from_fn(|d| f64::midpoint(lo[d], hi[d]));
        let half: [f64; 3] = std::array::from_fn(|d| (hi[d] - lo[d]) / 2.0);
        let from_centre = self.displacement(centre, &middle);
        let is_near = |d: usize| from_centre[d].abs() + half[d] < self.size[d] / 2.0;
        (0..3).all(is_near).then_some((from_centre, half))
    }

    /// The ranges of the coordinates that decide about a point of a box: along the axes, and for a cylinder the
    /// squared distance from the axis. Widened for rounding; `None` if they are unknown.
    fn oriented_ranges(&self, lo: &[f64; 3], hi: &[f64; 3]) -> Option<OrientedRanges> {
        let along = |from_centre: &[f64; 3], half: &[f64; 3], axis: &[f64; 3]| {
            let middle = dot(from_centre, axis);
            let reach: f64 = (0..3).map(|d| half[d] * axis[d].abs()).sum();
            let margin = 1e-13 * (middle.abs() + reach);
            Span {
                lo: middle - reach - margin,
                hi: middle + reach + margin,
            }
        };
        match &self.form {
            Form::Cylinder { centre, axis, .. } => {
                let (from_centre, half) = self.box_from(centre, lo, hi)?;
                let middle = across(&from_centre, axis, dot(&from_centre, axis)).sqrt();
                // The largest distance from the axis of a corner, seen from the middle of the box.
                let corner = |signs: usize| {
                    let corner = std::array::from_fn(|d| half[d] * [1.0, -1.0][signs >> d & 1]);
                    across(&corner, axis, dot(&corner, axis))
                };
                let reach = (0..4).map(corner).fold(0.0, f64::max).sqrt();
                let margin = 1e-13 * (middle + reach);
                let (near, far) = ((middle - reach - margin).max(0.0), middle + reach + margin);
                Some(OrientedRanges {
                    along: [along(&from_centre, &half, axis), Span::ALL, Span::ALL],
                    across: Span {
                        lo: near * near,
                        hi: far * far,
                    },
                })
            }
            Form::Oriented { centre, axes, .. } => {
                let (from_centre, half) = self.box_from(centre, lo, hi)?;
                Some(OrientedRanges {
                    along: axes.each_ref().map(|axis| along(&from_centre, &half, axis)),
                    across: Span::ALL,
                })
            }
            _ => None,
        }
    }

    /// False only if no point of the box `lo <= point <= hi` is inside.
    pub(super) fn may_touch(&self, lo: &[f64; 3], hi: &[f64; 3]) -> bool {
        match &self.form {
            Form::Cuboid { spans } => self.touches_spans(spans, lo, hi),
            Form::Shell {
                centre,
                inner,
                outer,
            } => {
                let (near, far) = self.extremes(centre, lo, hi);
                shrunk(near) <= outer * outer && (*inner < 0.0 || grown(far) > inner * inner)
            }
            Form::Cylinder {
                inner,
                outer,
                half_height,
                ..
            } => {
                self.touches_bounds(lo, hi)
                    && self.oriented_ranges(lo, hi).is_none_or(|ranges| {
                        let [height, ..] = ranges.along;
                        let is_in_height = height.lo <= *half_height && -half_height <= height.hi;
                        let is_in_radius = ranges.across.lo <= outer * outer
                            && (*inner < 0.0 || ranges.across.hi > inner * inner);
                        is_in_height && is_in_radius
                    })
            }
            Form::Oriented { half_sides, .. } => {
                self.touches_bounds(lo, hi)
                    && self.oriented_ranges(lo, hi).is_none_or(|ranges| {
                        let mut sides = ranges.along.iter().zip(half_sides);
                        sides.all(|(range, half)| range.lo < *half && -half <= range.hi)
                    })
            }
        }
    }

    /// Whether a box touches `Self::spans`. These are in the periodic box, so that other boxes cannot be pruned by them.
    fn touches_bounds(&self, lo: &[f64; 3], hi: &[f64; 3]) -> bool {
        let (lower, size) = (&self.lower, &self.size);
        let is_in_box =
            |d: usize| size[d].is_infinite() || lower[d] <= lo[d] && hi[d] <= lower[d] + size[d];
        !(0..self.ndim).all(is_in_box) || self.touches_spans(&self.spans(), lo, hi)
    }

    /// Whether a box touches the intervals of all coordinates.
    fn touches_spans(&self, spans: &[[Span; 2]; 3], lo: &[f64; 3], hi: &[f64; 3]) -> bool {
        let touches = |d: usize, span: &Span| span.lo <= hi[d] && lo[d] < span.hi;
        (0..self.ndim).all(|d| spans[d].iter().any(|span| touches(d, span)))
    }

    /// True only if every point of the box `lo <= point <= hi` is inside.
    pub(super) fn covers(&self, lo: &[f64; 3], hi: &[f64; 3]) -> bool {
        match &self.form {
            Form::Cuboid { spans } => {
                let covers = |d: usize, span: &Span| span.lo <= lo[d] && hi[d] < span.hi;
                (0..self.ndim).all(|d| spans[d].iter().any(|span| covers(d, span)))
            }
            Form::Shell {
                centre,
                inner,
                outer,
            } => {
                let (near, far) = self.extremes(centre, lo, hi);
                grown(far) <= outer * outer && (*inner < 0.0 || shrunk(near) > inner * inner)
            }
            Form::Cylinder {
                inner,
                outer,
                half_height,
                ..
            } => self.oriented_ranges(lo, hi).is_some_and(|ranges| {
                let [height, ..] = ranges.along;
                let is_in_height = -half_height <= height.lo && height.hi <= *half_height;
                let is_in_radius = ranges.across.hi <= outer * outer
                    && (*inner < 0.0 || ranges.across.lo > inner * inner);
                is_in_height && is_in_radius
            }),
            Form::Oriented { half_sides, .. } => {
                self.oriented_ranges(lo, hi).is_some_and(|ranges| {
                    let mut sides = ranges.along.iter().zip(half_sides);
                    sides.all(|(range, half)| -half <= range.lo && range.hi < *half)
                })
            }
        }
    }

    /// The intervals of each coordinate in the periodic box: one, and a second one for the part beyond a face.
    /// An empty interval has `lo > hi`; unused dimensions are from 0 to 0.
    pub(super) fn spans(&self) -> [[Span; 2]; 3] {
        match &self.form {
            Form::Cuboid { spans } => *spans,
            Form::Shell { centre, outer, .. } => std::array::from_fn(|d| {
                if d >= self.ndim {
                    return [Span { lo: 0.0, hi: 0.0 }, Span::EMPTY];
                }
                let (lo, hi) = (centre[d] - outer, centre[d] + outer);
                Span { lo, hi }.wrapped(self.lower[d], self.size[d])
            }),
            Form::Cylinder {
                centre,
                axis,
                outer,
                half_height,
                ..
            } => std::array::from_fn(|d| {
                let across = (1.0 - axis[d] * axis[d]).max(0.0).sqrt();
                self.span_around(centre, d, half_height * axis[d].abs() + outer * across)
            }),
            Form::Oriented {
                centre,
                axes,
                half_sides,
            } => std::array::from_fn(|d| {
                let reach = axes.iter().zip(half_sides);
                self.span_around(
                    centre,
                    d,
                    reach.map(|(axis, half)| half * axis[d].abs()).sum(),
                )
            }),
        }
    }

    /// Clears the flags of the points outside. `positions` has one slice for each dimension, each of
    /// the length of `mask`.
    pub(super) fn narrow(&self, positions: &[&[f64]], mask: &mut [bool]) {
        match &self.form {
            Form::Cuboid { spans } => {
                for ([one, other], x) in spans.iter().zip(positions).take(self.ndim) {
                    if *other == Span::EMPTY {
                        for (keep, x) in mask.iter_mut().zip(*x) {
                            *keep &= one.contains(*x);
                        }
                    } else {
                        for (keep, x) in mask.iter_mut().zip(*x) {
                            *keep &= one.contains(*x) | other.contains(*x);
                        }
                    }
                }
            }
            Form::Shell {
                centre,
                inner,
                outer,
            } => {
                for (row, keep) in mask.iter_mut().enumerate() {
                    let mut point = [0.0; 3];
                    for (to, x) in point.iter_mut().zip(positions) {
                        *to = x[row];
                    }
                    *keep &= within(self.distance2(centre, &point), *inner, *outer);
                }
            }
            Form::Cylinder { .. } | Form::Oriented { .. } => {
                for (row, keep) in mask.iter_mut().enumerate() {
                    let point = std::array::from_fn(|d| positions[d][row]);
                    *keep &= self.contains_oriented(&point);
                }
            }
        }
    }

    /// The fraction of an axis-parallel box that is inside; `None` for other forms than cuboids.
    pub(super) fn fraction_of_box(&self, lo: &[f64; 3], hi: &[f64; 3]) -> Option<f64> {
        let Form::Cuboid { spans } = &self.form else {
            return None;
        };
        let along = |d: usize| {
            let shared = |span: &Span| (span.hi.min(hi[d]) - span.lo.max(lo[d])).max(0.0);
            let shared: f64 = spans[d].iter().map(shared).sum();
            (shared / (hi[d] - lo[d])).min(1.0)
        };
        Some((0..self.ndim).map(along).product())
    }

    /// The distance of a point from the nearest face or surface, negative outside. Outside of edges it can be larger.
    pub(super) fn depth(&self, point: &[f64; 3]) -> f64 {
        let between = |x: f64, inner: f64, outer: f64| match inner < 0.0 {
            true => outer - x,
            false => (outer - x).min(x - inner),
        };
        match &self.form {
            Form::Cuboid { spans } => {
                let depth = |x: f64, span: &Span| (x - span.lo).min(span.hi - x);
                let along =
                    |d: usize| depth(point[d], &spans[d][0]).max(depth(point[d], &spans[d][1]));
                (0..self.ndim).map(along).fold(f64::INFINITY, f64::min)
            }
            Form::Shell {
                centre,
                inner,
                outer,
            } => between(self.distance2(centre, point).sqrt(), *inner, *outer),
            Form::Cylinder {
                centre,
                axis,
                inner,
                outer,
                half_height,
            } => {
                let from_centre = self.displacement(centre, point);
                let along = dot(&from_centre, axis);
                let distance = across(&from_centre, axis, along).sqrt();
                between(distance, *inner, *outer).min(half_height - along.abs())
            }
            Form::Oriented {
                centre,
                axes,
                half_sides,
            } => {
                let from_centre = self.displacement(centre, point);
                let depth = |(axis, half): (&[f64; 3], &f64)| half - dot(&from_centre, axis).abs();
                let depths = axes.iter().zip(half_sides).map(depth);
                depths.fold(f64::INFINITY, f64::min)
            }
        }
    }

    /// The interval of a coordinate up to `reach` from the centre, widened for rounding.
    fn span_around(&self, centre: &[f64; 3], d: usize, reach: f64) -> [Span; 2] {
        let reach = reach + 1e-13 * (reach + centre[d].abs());
        let (lo, hi) = (centre[d] - reach, centre[d] + reach);
        Span { lo, hi }.wrapped(self.lower[d], self.size[d])
    }

    /// Squared distance of a point from the nearest image of `centre`.
    fn distance2(&self, centre: &[f64; 3], point: &[f64; 3]) -> f64 {
        let square = |d: usize| {
            let distance = nearest((point[d] - centre[d]).abs(), self.size[d]);
            distance * distance
        };
        (0..self.ndim).map(square).sum()
    }

    /// Squared distances from `centre` to the nearest and the farthest point of a box.
    fn extremes(&self, centre: &[f64; 3], lo: &[f64; 3], hi: &[f64; 3]) -> (f64, f64) {
        let (mut near, mut far) = (0.0, 0.0);
        for d in 0..self.ndim {
            let (below, above) = (lo[d] - centre[d], centre[d] - hi[d]);
            let mut gap = below.max(above).max(0.0);
            let mut reach = (-below).max(-above).max(0.0);
            let size = self.size[d];
            if size.is_finite() {
                // The distance to the nearest image grows up to half the side, decreases to 0 at the
                // next image, and grows again.
                let ends = [nearest(gap, size), nearest(reach, size)];
                let passes = |x: f64| (gap..=reach).contains(&x);
                let (image, middle) = (passes(size), passes(size / 2.0));
                gap = if image { 0.0 } else { ends[0].min(ends[1]) };
                let farthest = ends[0].max(ends[1]);
                reach = if middle {
                    farthest.max(size / 2.0)
                } else {
                    farthest
                };
            }
            near += gap * gap;
            far += reach * reach;
        }
        (near, far)
    }
}

/// The distance to the nearest image, at `distance` from one image of a box of side `size`
/// (infinite: no other image). Points and boxes use the same computation.
#[inline]
fn nearest(distance: f64, size: f64) -> f64 {
    distance.min((size - distance).abs())
}

fn dimensions(what: &str, coordinates: &[f64]) -> Result<usize> {
    if !(1..=3).contains(&coordinates.len()) {
        return Err(Error::invalid(format!(
            "expected 1 to 3 coordinates of {what}, found {}",
            coordinates.len()
        )));
    }
    if coordinates.iter().any(|x| x.is_nan()) {
        return Err(Error::invalid(format!(
            "expected numbers as coordinates of {what}, found NaN"
        )));
    }
    Ok(coordinates.len())
}

fn padded(coordinates: &[f64]) -> [f64; 3] {
    let mut point = [0.0; 3];
    point[..coordinates.len()].copy_from_slice(coordinates);
    point
}

fn within(distance2: f64, inner: f64, outer: f64) -> bool {
    (distance2 <= outer * outer) & ((inner < 0.0) | (distance2 > inner * inner))
}

// The distances of the corners of a box and of the points in it differ in their rounding: a margin
// of a few units in the last place keeps pruning safe.
fn shrunk(distance2: f64) -> f64 {
    distance2 * (1.0 - 1e-14)
}

fn grown(distance2: f64) -> f64 {
    distance2 * (1.0 + 1e-14)
}

/// The ranges of the coordinates of the points of a box, from the centre of a region.
struct OrientedRanges {
    /// Along the axes of the region.
    along: [Span; 3],
    /// The squared distance from the axis of a cylinder.
    across: Span,
}

fn dot(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// The squared distance of a point from an axis, `along` which its coordinate is known.
fn across(point: &[f64; 3], axis: &[f64; 3], along: f64) -> f64 {
    let part: [f64; 3] = std::array::from_fn(|d| point[d] - along * axis[d]);
    dot(&part, &part)
}

fn unit_vector(vector: [f64; 3]) -> Result<[f64; 3]> {
    let length = dot(&vector, &vector).sqrt();
    if !(length.is_finite() && length > 0.0) {
        return Err(Error::invalid(format!(
            "expected a direction of 3 finite coordinates that is not zero, found {vector:?}"
        )));
    }
    Ok(vector.map(|x| x / length))
}
