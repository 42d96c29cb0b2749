//! Regions of space: primitive ones, their unions, intersections and complements; tests of points and boxes.

mod cells;
mod primitive;

use std::sync::Arc;

pub use primitive::Span;

use crate::error::{Error, Result};
use primitive::Primitive;

/// A part of the domain in code length, in 1 to 3 dimensions.
///
/// A cell is in a region if its centre is, a particle if its position is. [`Region::by_volume`] selects all cells that share
/// volume with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    ndim: usize,
    shape: Shape,
    /// As `Region::by_volume`; false for parts of combinations.
    is_by_volume: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Shape {
    Primitive(Primitive),
    Complement(Arc<Region>),
    /// Points in all of the regions, at least one.
    Intersection(Arc<[Region]>),
    /// Points in any of the regions, at least one.
    Union(Arc<[Region]>),
}

impl Region {
    /// The points with `lo <= point < hi` in each dimension: adjacent boxes share no point.
    ///
    /// # Errors
    /// `Invalid` unless both corners have the same number of coordinates, 1 to 3; if a coordinate is
    /// NaN, or `lo > hi`.
    pub fn cuboid(lo: &[f64], hi: &[f64]) -> Result<Self> {
        Primitive::cuboid(lo, hi).map(Self::of)
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
        Primitive::shell(centre, inner, outer).map(Self::of)
    }

    /// The points at most `outer` and more than `inner` from the line through `centre` along `axis`, and at most
    /// `height / 2` from the centre along it. With `inner` 0 the whole cylinder.
    ///
    /// # Errors
    /// `Invalid` unless centre and axis have 3 coordinates, the axis is not zero, `0 <= inner <= outer` and
    /// `height >= 0`.
    pub fn cylinder(
        centre: &[f64],
        axis: &[f64],
        inner: f64,
        outer: f64,
        height: f64,
    ) -> Result<Self> {
        Primitive::cylinder(centre, axis, inner, outer, height).map(Self::of)
    }

    /// A half-open box around `centre` with these sides: the first along `axis`, the second in the plane of `axis` and
    /// `towards`, perpendicular to `axis`.
    ///
    /// # Errors
    /// `Invalid` unless all have 3 coordinates, the sides are not negative, and the directions are neither zero nor
    /// parallel.
    pub fn oriented_box(
        centre: &[f64],
        sides: &[f64],
        axis: &[f64],
        towards: &[f64],
    ) -> Result<Self> {
        Primitive::oriented_box(centre, sides, axis, towards).map(Self::of)
    }

    fn of(primitive: Primitive) -> Self {
        Self::new(primitive.ndim(), Shape::Primitive(primitive))
    }

    fn new(ndim: usize, shape: Shape) -> Self {
        Self {
            ndim,
            shape,
            is_by_volume: false,
        }
    }

    /// The region as a selection of all cells that share volume with it, instead of those with their centre inside.
    #[must_use]
    pub fn by_volume(self) -> Self {
        Self {
            is_by_volume: true,
            ..self
        }
    }

    /// Whether it selects cells by their volume.
    pub fn is_by_volume(&self) -> bool {
        self.is_by_volume
    }

    /// The points that are not in this region.
    pub fn complement(self) -> Self {
        Self::new(self.ndim, Shape::Complement(Arc::new(self)))
    }

    /// The points in all of `regions`.
    ///
    /// # Errors
    /// `Invalid` without a region, or if their dimensions differ.
    pub fn intersection(regions: Vec<Self>) -> Result<Self> {
        let ndim = common_dimensions(&regions)?;
        Ok(Self::new(ndim, Shape::Intersection(regions.into())))
    }

    /// The points in any of `regions`.
    ///
    /// # Errors
    /// `Invalid` without a region, or if their dimensions differ.
    pub fn union(regions: Vec<Self>) -> Result<Self> {
        let ndim = common_dimensions(&regions)?;
        Ok(Self::new(ndim, Shape::Union(regions.into())))
    }

    /// The region in a periodic box with this lower corner and these sides, infinite in dimensions
    /// that are not periodic. Parts beyond a face continue at the opposite face, and distances are
    /// those to the nearest image of the centre.
    ///
    /// # Errors
    /// `Invalid` if the box has other dimensions, its corner is not finite, or a side is not
    /// positive.
    pub fn in_periodic_box(&self, lower: &[f64], size: &[f64]) -> Result<Self> {
        let all = |regions: &[Self]| -> Result<Arc<[Self]>> {
            let regions = regions.iter();
            regions
                .map(|region| region.in_periodic_box(lower, size))
                .collect()
        };
        let shape = match &self.shape {
            Shape::Primitive(primitive) => {
                Shape::Primitive(primitive.in_periodic_box(lower, size)?)
            }
            Shape::Complement(region) => {
                Shape::Complement(Arc::new(region.in_periodic_box(lower, size)?))
            }
            Shape::Intersection(regions) => Shape::Intersection(all(regions)?),
            Shape::Union(regions) => Shape::Union(all(regions)?),
        };
        Ok(Self { shape, ..*self })
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
        match &self.shape {
            Shape::Primitive(primitive) => primitive.contains(point),
            Shape::Complement(region) => !region.contains(point),
            Shape::Intersection(regions) => regions.iter().all(|region| region.contains(point)),
            Shape::Union(regions) => regions.iter().any(|region| region.contains(point)),
        }
    }

    /// False only if no point of the box `lo <= point <= hi` is inside.
    pub fn may_touch(&self, lo: &[f64; 3], hi: &[f64; 3]) -> bool {
        match &self.shape {
            Shape::Primitive(primitive) => primitive.may_touch(lo, hi),
            Shape::Complement(region) => !region.covers(lo, hi),
            Shape::Intersection(regions) => regions.iter().all(|region| region.may_touch(lo, hi)),
            Shape::Union(regions) => regions.iter().any(|region| region.may_touch(lo, hi)),
        }
    }

    /// True only if every point of the box `lo <= point <= hi` is inside.
    pub fn covers(&self, lo: &[f64; 3], hi: &[f64; 3]) -> bool {
        match &self.shape {
            Shape::Primitive(primitive) => primitive.covers(lo, hi),
            Shape::Complement(region) => !region.may_touch(lo, hi),
            Shape::Intersection(regions) => regions.iter().all(|region| region.covers(lo, hi)),
            Shape::Union(regions) => regions.iter().any(|region| region.covers(lo, hi)),
        }
    }

    /// Intervals of each coordinate that contain the region, in the periodic box: one, and a second one for the part
    /// beyond a face. An empty interval has `lo > hi`; unused dimensions are from 0 to 0.
    pub fn spans(&self) -> [[Span; 2]; 3] {
        match &self.shape {
            Shape::Primitive(primitive) => primitive.spans(),
            Shape::Complement(_) => unbounded(self.ndim),
            // The intervals of any region contain the intersection.
            Shape::Intersection(regions) => {
                let mut narrowest = unbounded(self.ndim);
                for spans in regions.iter().map(Self::spans) {
                    for (narrowest, spans) in narrowest.iter_mut().zip(spans) {
                        let length = |spans: &[Span; 2]| -> f64 {
                            spans.iter().map(|span| (span.hi - span.lo).max(0.0)).sum()
                        };
                        if length(&spans) < length(narrowest) {
                            *narrowest = spans;
                        }
                    }
                }
                narrowest
            }
            Shape::Union(regions) => {
                let all: Vec<_> = regions.iter().map(Self::spans).collect();
                std::array::from_fn(|d| {
                    let lo = |span: &Span| span.lo;
                    let hi = |span: &Span| span.hi;
                    let spans = all.iter().flat_map(|spans| &spans[d]);
                    let hull = Span {
                        lo: spans.clone().map(lo).fold(f64::INFINITY, f64::min),
                        hi: spans.map(hi).fold(f64::NEG_INFINITY, f64::max),
                    };
                    [hull, Span::EMPTY]
                })
            }
        }
    }

    /// A box that contains the part of the region in the periodic box: lower and upper corner; unused dimensions are 0.
    pub fn bounds(&self) -> ([f64; 3], [f64; 3]) {
        let spans = self.spans();
        let lo = spans.map(|[one, other]| one.lo.min(other.lo));
        let hi = spans.map(|[one, other]| one.hi.max(other.hi));
        (lo, hi)
    }

    /// Whether each point is inside. `positions` has one slice for each dimension.
    ///
    /// # Errors
    /// `Invalid` if their number or their lengths differ from those of the region and of each other.
    pub fn contains_all(&self, positions: &[&[f64]]) -> Result<Vec<bool>> {
        self.check(positions.len())?;
        let rows = positions.first().map_or(0, |x| x.len());
        if let Some(other) = positions.iter().find(|x| x.len() != rows) {
            return Err(Error::invalid(format!(
                "expected as many coordinates in each dimension, found {rows} and {}",
                other.len()
            )));
        }
        let mut mask = vec![true; rows];
        self.narrow(positions, &mut mask);
        Ok(mask)
    }

    /// Clears the flags of the points outside. `positions` has one slice for each dimension, each of
    /// the length of `mask`.
    pub(crate) fn narrow(&self, positions: &[&[f64]], mask: &mut [bool]) {
        match &self.shape {
            Shape::Primitive(primitive) => primitive.narrow(positions, mask),
            Shape::Complement(region) => {
                let mut inside = mask.to_vec();
                region.narrow(positions, &mut inside);
                for (keep, inside) in mask.iter_mut().zip(inside) {
                    *keep &= !inside;
                }
            }
            Shape::Intersection(regions) => {
                for region in regions.iter() {
                    region.narrow(positions, mask);
                }
            }
            Shape::Union(regions) => {
                let mut inside = vec![false; mask.len()];
                for region in regions.iter() {
                    let mut part = mask.to_vec();
                    region.narrow(positions, &mut part);
                    for (inside, part) in inside.iter_mut().zip(part) {
                        *inside |= part;
                    }
                }
                mask.copy_from_slice(&inside);
            }
        }
    }
}

/// The intervals of all points.
fn unbounded(ndim: usize) -> [[Span; 2]; 3] {
    std::array::from_fn(|d| match d < ndim {
        true => [Span::ALL, Span::EMPTY],
        false => [Span { lo: 0.0, hi: 0.0 }, Span::EMPTY],
    })
}

fn common_dimensions(regions: &[Region]) -> Result<usize> {
    let Some(first) = regions.first() else {
        return Err(Error::invalid(
            "expected at least one region to combine, found none",
        ));
    };
    regions
        .iter()
        .try_for_each(|region| region.check(first.ndim))?;
    Ok(first.ndim)
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

    /// Regions of three dimensions along any directions, and combinations.
    fn combinations() -> impl Strategy<Value = Region> {
        let unit = || prop::collection::vec(0.0..1.0f64, 3);
        let direction = || prop::collection::vec(-1.0..1.0f64, 3);
        let length = || 0.0..0.7f64;
        let cylinder = (unit(), direction(), length(), length(), length())
            .prop_filter_map("a direction is not zero", |(c, axis, a, b, height)| {
                Region::cylinder(&c, &axis, a.min(b), a.max(b), height).ok()
            });
        let oriented = (unit(), unit(), direction(), direction()).prop_filter_map(
            "directions are not parallel",
            |(c, sides, axis, towards)| Region::oriented_box(&c, &sides, &axis, &towards).ok(),
        );
        let primitive = prop_oneof![regions(3), cylinder, oriented];
        let periodic =
            (primitive, any::<bool>()).prop_map(|(region, is_periodic)| match is_periodic {
                true => region.in_periodic_box(&[0.0; 3], &[1.0; 3]).unwrap(),
                false => region,
            });
        periodic.prop_recursive(2, 6, 3, |inner| {
            let several = || prop::collection::vec(inner.clone(), 1..4);
            prop_oneof![
                inner.clone().prop_map(Region::complement),
                several().prop_map(|all| Region::union(all).unwrap()),
                several().prop_map(|all| Region::intersection(all).unwrap()),
            ]
        })
    }

    #[test]
    fn cylinders_and_oriented_boxes_follow_their_axes() {
        let cylinder = Region::cylinder(&[0.5; 3], &[1.0, 1.0, 0.0], 0.0, 0.1, 1.0).unwrap();
        assert!(cylinder.contains(&[0.8, 0.8, 0.55]) && !cylinder.contains(&[0.8, 0.5, 0.5]));
        assert!(!cylinder.contains(&[0.9, 0.9, 0.5]));
        let shell = Region::cylinder(&[0.5; 3], &[0.0, 0.0, 2.0], 0.1, 0.2, 0.4).unwrap();
        assert!(shell.contains(&[0.65, 0.5, 0.7]) && !shell.contains(&[0.55, 0.5, 0.5]));
        let turned = Region::oriented_box(
            &[0.5; 3],
            &[0.8, 0.1, 0.1],
            &[1.0, 1.0, 0.0],
            &[0.0, 1.0, 0.0],
        );
        let turned = turned.unwrap();
        assert!(turned.contains(&[0.75, 0.75, 0.5]) && !turned.contains(&[0.75, 0.5, 0.5]));
        let outside = turned.clone().complement();
        assert!(outside.contains(&[0.75, 0.5, 0.5]) && !outside.contains(&[0.75, 0.75, 0.5]));
        let parallel = Region::oriented_box(&[0.5; 3], &[1.0; 3], &[1.0; 3], &[-2.0; 3]);
        assert!(parallel.is_err());
        assert!(Region::cylinder(&[0.5; 3], &[0.0; 3], 0.0, 0.1, 1.0).is_err());
        assert!(Region::union(Vec::new()).is_err());
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
            region in prop_oneof![(1usize..=3).prop_flat_map(regions), combinations()],
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
            let is_in_box = point.iter().all(|x| *x < 1.0);
            prop_assert!(!inside || !is_in_box || (0..region.ndim()).all(|d| from[d] <= point[d] && point[d] <= to[d]));
        }
    }
}
