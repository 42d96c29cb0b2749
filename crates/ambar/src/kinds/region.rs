//! Regions of space: tests of points and boxes.

use crate::error::{Error, Result};

/// A part of the domain in code length, in 1 to 3 dimensions.
///
/// A cell is in a region if its centre is, a particle if its position is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
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
        /// The half-open intervals in each dimension: see `Region::spans`.
        spans: [[Span; 2]; 3],
    },
    /// Points with `inner < distance <= outer`; a sphere if `inner` is negative.
    Shell {
        centre: [f64; 3],
        inner: f64,
        outer: f64,
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
    const EMPTY: Self = Self {
        lo: f64::INFINITY,
        hi: f64::NEG_INFINITY,
    };
    const ALL: Self = Self {
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

impl Region {
    /// The points with `lo <= point < hi` in each dimension: adjacent boxes share no point.
    ///
    /// # Errors
    /// `Invalid` unless both corners have the same number of coordinates, 1 to 3; if a coordinate is
    /// NaN, or `lo > hi`.
    pub fn cuboid(lo: &[f64], hi: &[f64]) -> Result<Self> {
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

    /// The points with `|point - centre| <= radius`.
    ///
    /// # Errors
    /// `Invalid` unless the centre has 1 to 3 coordinates; if one is NaN, or the radius is negative or
    /// NaN.
    pub fn sphere(centre: &[f64], radius: f64) -> Result<Self> {
        Self::shell(centre, 0.0, radius)
    }

    /// The points of the sphere of radius `outer` that are not in the sphere of radius `inner`:
    /// adjacent shells share no point. With `inner` 0 the whole sphere.
    ///
    /// # Errors
    /// As `sphere`; `Invalid` if `inner > outer`.
    pub fn shell(centre: &[f64], inner: f64, outer: f64) -> Result<Self> {
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

    /// The region in a periodic box with this lower corner and these sides, infinite in dimensions
    /// that are not periodic. Parts beyond a face continue at the opposite face, and distances are
    /// those to the nearest image of the centre.
    ///
    /// # Errors
    /// `Invalid` if the box has other dimensions, its corner is not finite, or a side is not
    /// positive.
    pub fn in_periodic_box(mut self, lower: &[f64], size: &[f64]) -> Result<Self> {
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
            Form::Shell { centre, .. } => {
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
    pub fn ndim(&self) -> usize {
        self.ndim
    }

    /// Checks that it has the dimensions of the data.
    ///
    /// # Errors
    /// `Invalid`.
    pub fn check(&self, ndim: usize) -> Result<()> {
        if self.ndim == ndim {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "expected a region of {ndim} dimensions, as the data, found {}",
            self.ndim
        )))
    }

    /// Whether a point is inside. Coordinates of unused dimensions are ignored.
    pub fn contains(&self, point: &[f64; 3]) -> bool {
        match &self.form {
            Form::Cuboid { spans } => {
                (0..self.ndim).all(|d| spans[d].iter().any(|span| span.contains(point[d])))
            }
            Form::Shell {
                centre,
                inner,
                outer,
            } => within(self.distance2(centre, point), *inner, *outer),
        }
    }

    /// False only if no point of the box `lo <= point <= hi` is inside.
    pub fn may_touch(&self, lo: &[f64; 3], hi: &[f64; 3]) -> bool {
        match &self.form {
            Form::Cuboid { spans } => {
                let touches = |d: usize, span: &Span| span.lo <= hi[d] && lo[d] < span.hi;
                (0..self.ndim).all(|d| spans[d].iter().any(|span| touches(d, span)))
            }
            Form::Shell {
                centre,
                inner,
                outer,
            } => {
                let (near, far) = self.extremes(centre, lo, hi);
                shrunk(near) <= outer * outer && (*inner < 0.0 || grown(far) > inner * inner)
            }
        }
    }

    /// True only if every point of the box `lo <= point <= hi` is inside.
    pub fn covers(&self, lo: &[f64; 3], hi: &[f64; 3]) -> bool {
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
        }
    }

    /// The intervals of each coordinate: one, and a second one for the part beyond a periodic face.
    /// An empty interval has `lo > hi`; unused dimensions are from 0 to 0.
    pub fn spans(&self) -> [[Span; 2]; 3] {
        match &self.form {
            Form::Cuboid { spans } => *spans,
            Form::Shell { centre, outer, .. } => std::array::from_fn(|d| {
                if d >= self.ndim {
                    return [Span { lo: 0.0, hi: 0.0 }, Span::EMPTY];
                }
                let (lo, hi) = (centre[d] - outer, centre[d] + outer);
                Span { lo, hi }.wrapped(self.lower[d], self.size[d])
            }),
        }
    }

    /// The bounding box: lower and upper corner; unused dimensions are 0.
    pub fn bounds(&self) -> ([f64; 3], [f64; 3]) {
        let spans = self.spans();
        let lo = spans.map(|[one, other]| one.lo.min(other.lo));
        let hi = spans.map(|[one, other]| one.hi.max(other.hi));
        (lo, hi)
    }

    /// Clears the flags of the points outside. `positions` has one slice for each dimension, each of
    /// the length of `mask`.
    pub(crate) fn narrow(&self, positions: &[&[f64]], mask: &mut [bool]) {
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
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn neighbouring_regions_share_no_point() {
        let at = |x: f64| [x, 0.5, 0.5];
        let left = Region::cuboid(&[0.0; 3], &[0.5, 1.0, 1.0]).unwrap();
        let right = Region::cuboid(&[0.5, 0.0, 0.0], &[1.0; 3]).unwrap();
        assert!(!left.contains(&at(0.5)) && right.contains(&at(0.5)));
        let ball = Region::sphere(&[0.5; 3], 0.25).unwrap();
        let shell = Region::shell(&[0.5; 3], 0.25, 0.5).unwrap();
        assert!(ball.contains(&at(0.75)) && !shell.contains(&at(0.75)));
        assert!(shell.contains(&at(1.0)) && ball.contains(&at(0.5)));
    }

    #[test]
    fn senseless_regions_are_errors() {
        assert!(Region::cuboid(&[], &[]).is_err());
        assert!(Region::cuboid(&[0.0; 4], &[1.0; 4]).is_err());
        assert!(Region::cuboid(&[0.0], &[1.0, 1.0]).is_err());
        assert!(Region::cuboid(&[1.0], &[0.0]).is_err());
        assert!(Region::cuboid(&[f64::NAN], &[0.0]).is_err());
        assert!(Region::sphere(&[0.5], -1.0).is_err());
        assert!(Region::sphere(&[0.5], f64::NAN).is_err());
        assert!(Region::shell(&[0.5], 2.0, 1.0).is_err());
        assert!(Region::sphere(&[0.5, 0.5], 1.0).unwrap().check(3).is_err());
    }

    fn regions(ndim: usize) -> impl Strategy<Value = Region> {
        let unit = || prop::collection::vec(0.0..1.0f64, ndim);
        let cuboid = (unit(), unit()).prop_map(|(a, b)| {
            let lo: Vec<_> = a.iter().zip(&b).map(|(a, b)| a.min(*b)).collect();
            let hi: Vec<_> = a.iter().zip(&b).map(|(a, b)| a.max(*b)).collect();
            Region::cuboid(&lo, &hi).unwrap()
        });
        let shell = (unit(), 0.0..0.7f64, 0.0..0.7f64)
            .prop_map(|(c, a, b)| Region::shell(&c, a.min(b), a.max(b)).unwrap());
        let sphere = (unit(), 0.0..0.7f64).prop_map(|(c, r)| Region::sphere(&c, r).unwrap());
        prop_oneof![cuboid, shell, sphere]
    }

    /// The region counted by brute force: over all images of the region around the unit box.
    fn in_any_image(region: &Region, point: &[f64; 3]) -> bool {
        let shift = |i: i32| f64::from(i % 7 - 3);
        let images = (0..343).map(|i| [shift(i), shift(i / 7), shift(i / 49)]);
        let mut images = images.map(|by| -> [f64; 3] { std::array::from_fn(|d| point[d] + by[d]) });
        images.any(|point| region.contains(&point))
    }

    #[test]
    fn regions_reach_over_periodic_faces_only() {
        let corner = Region::sphere(&[0.0; 3], 0.2).unwrap();
        let infinite = f64::INFINITY;
        let wrapped = corner
            .in_periodic_box(&[0.0; 3], &[1.0, 1.0, infinite])
            .unwrap();
        assert!(wrapped.contains(&[0.9, 0.95, 0.05]) && !corner.contains(&[0.9, 0.95, 0.05]));
        assert!(!wrapped.contains(&[0.9, 0.95, 0.95]));
        let slab = Region::cuboid(&[-0.25, 0.5], &[0.25, infinite]).unwrap();
        let wrapped = slab.in_periodic_box(&[0.0; 2], &[1.0; 2]).unwrap();
        assert!(wrapped.contains(&[0.8, 0.9, 0.0]) && wrapped.contains(&[0.2, 0.5, 0.0]));
        assert!(!wrapped.contains(&[0.5, 0.9, 0.0]) && !wrapped.contains(&[0.8, 0.1, 0.0]));
        // A shell is as far from the nearest image of its centre as it says: other images do not
        // fill its hole.
        let shell = Region::shell(&[0.5], 0.3, 0.9).unwrap();
        let wrapped = shell.in_periodic_box(&[0.0], &[1.0]).unwrap();
        assert!(wrapped.contains(&[0.1, 0.0, 0.0]) && !wrapped.contains(&[0.4, 0.0, 0.0]));
        assert!(corner.in_periodic_box(&[0.0; 2], &[1.0; 2]).is_err());
        assert!(corner.in_periodic_box(&[0.0; 3], &[1.0, 0.0, 1.0]).is_err());
    }

    proptest! {
        #[test]
        fn periodic_regions_hold_the_points_of_all_their_images(
            ndim in 1usize..=3, sphere in any::<bool>(),
            at in prop::array::uniform3(-24i32..40), size in prop::array::uniform3(0i32..24),
            a in prop::array::uniform3(0i32..16), side in prop::array::uniform3(1i32..16),
            t in prop::array::uniform3(0i32..=16),
        ) {
            // Sixteenths are exact: brute force over the images may be compared bit for bit.
            let part = |x: i32| f64::from(x) / 16.0;
            let plain = if sphere {
                Region::sphere(&at.map(part)[..ndim], part(size[0])).unwrap()
            } else {
                let hi: [f64; 3] = std::array::from_fn(|d| part(at[d] + size[d]));
                Region::cuboid(&at.map(part)[..ndim], &hi[..ndim]).unwrap()
            };
            let region = plain.in_periodic_box(&[0.0; 3][..ndim], &[1.0; 3][..ndim]).unwrap();
            let lo = a.map(part);
            let hi: [f64; 3] = std::array::from_fn(|d| (lo[d] + part(side[d])).min(1.0));
            let point: [f64; 3] = std::array::from_fn(|d| lo[d] + part(t[d]) * (hi[d] - lo[d]));
            let inside = region.contains(&point);
            // The point 1 is the point 0 of the next box.
            if point[..ndim].iter().all(|x| *x < 1.0) {
                prop_assert_eq!(inside, in_any_image(&plain, &point));
                let spans = region.spans();
                let spanned = |d: usize| spans[d].iter().any(|s| s.lo <= point[d] && point[d] <= s.hi);
                prop_assert!(!inside || (0..ndim).all(spanned));
            }
            prop_assert!(!inside || region.may_touch(&lo, &hi));
            prop_assert!(inside || !region.covers(&lo, &hi));
            let slices: [&[f64]; 3] = [&point[..1], &point[1..2], &point[2..]];
            let mut mask = [true];
            region.narrow(&slices[..ndim], &mut mask);
            prop_assert_eq!(mask[0], inside);
        }

        #[test]
        fn pruning_agrees_with_the_points(
            region in (1usize..=3).prop_flat_map(regions),
            a in prop::array::uniform3(0u32..64), size in prop::array::uniform3(1u32..16),
            t in prop::array::uniform3(0.0..=1.0f64),
        ) {
            let lo = a.map(|a| f64::from(a) / 64.0);
            let hi: [f64; 3] = std::array::from_fn(|d| lo[d] + f64::from(size[d]) / 64.0);
            let point: [f64; 3] = std::array::from_fn(|d| (lo[d] + t[d] * (hi[d] - lo[d])).min(hi[d]));
            let inside = region.contains(&point);
            prop_assert!(!inside || region.may_touch(&lo, &hi));
            prop_assert!(inside || !region.covers(&lo, &hi));
            let slices: [&[f64]; 3] = [&point[..1], &point[1..2], &point[2..]];
            let mut mask = [true];
            region.narrow(&slices[..region.ndim()], &mut mask);
            prop_assert_eq!(mask[0], inside);
            let (from, to) = region.bounds();
            prop_assert!(!inside || (0..region.ndim()).all(|d| from[d] <= point[d] && point[d] <= to[d]));
        }
    }
}
