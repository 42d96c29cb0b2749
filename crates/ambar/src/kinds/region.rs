//! Regions of space: which points lie inside, which boxes may hold such points.

use crate::error::{Error, Result};

/// A part of the box in code length, in 1 to 3 dimensions.
///
/// A cell belongs to it if its centre does, a particle if its position does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
    ndim: usize,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Cuboid {
        lo: [f64; 3],
        hi: [f64; 3],
    },
    /// Points with `inner < distance <= outer`; a negative `inner` leaves no hole.
    Shell {
        centre: [f64; 3],
        inner: f64,
        outer: f64,
    },
}

impl Region {
    /// The points with `lo <= point < hi` in each dimension: boxes side by side share no point.
    ///
    /// # Errors
    /// `Invalid` where the corners have not 1 to 3 equally many coordinates, a coordinate is NaN,
    /// or `lo > hi`.
    pub fn cuboid(lo: &[f64], hi: &[f64]) -> Result<Self> {
        let ndim = dimensions("a box", lo)?;
        if dimensions("a box", hi)? != ndim {
            return Err(Error::invalid(format!(
                "a box needs two corners of equally many coordinates, not {} and {}",
                lo.len(),
                hi.len()
            )));
        }
        if let Some(d) = (0..ndim).find(|&d| lo[d] > hi[d]) {
            return Err(Error::invalid(format!(
                "a box needs its lower corner first: {} is above {} in dimension {d}",
                lo[d], hi[d]
            )));
        }
        let (lo, hi) = (padded(lo), padded(hi));
        let form = Form::Cuboid { lo, hi };
        Ok(Self { ndim, form })
    }

    /// The points with `|point - centre| <= radius`.
    ///
    /// # Errors
    /// `Invalid` where the centre has not 1 to 3 coordinates, one is NaN, or the radius is negative
    /// or NaN.
    pub fn sphere(centre: &[f64], radius: f64) -> Result<Self> {
        Self::shell(centre, 0.0, radius)
    }

    /// The points of the sphere of radius `outer` that are not in that of radius `inner`, so that
    /// shells side by side share no point; with `inner` 0 the whole sphere.
    ///
    /// # Errors
    /// As `sphere`, and where `inner > outer`.
    pub fn shell(centre: &[f64], inner: f64, outer: f64) -> Result<Self> {
        let ndim = dimensions("a sphere", centre)?;
        if !(0.0 <= inner && inner <= outer) {
            return Err(Error::invalid(format!(
                "a sphere or shell needs 0 <= inner radius <= outer radius, not {inner} and {outer}"
            )));
        }
        let form = Form::Shell {
            centre: padded(centre),
            inner: if inner == 0.0 { -1.0 } else { inner },
            outer,
        };
        Ok(Self { ndim, form })
    }

    /// Its number of dimensions, 1 to 3.
    pub fn ndim(&self) -> usize {
        self.ndim
    }

    /// Checks that it has the dimensions of the data.
    ///
    /// # Errors
    /// `Invalid`, naming both.
    pub fn check(&self, ndim: usize) -> Result<()> {
        if self.ndim == ndim {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "the region has {} dimensions, the data {ndim}: give {ndim} coordinates",
            self.ndim
        )))
    }

    /// Whether a point lies inside. Coordinates of unused dimensions are ignored.
    pub fn contains(&self, point: &[f64; 3]) -> bool {
        let n = self.ndim;
        match &self.form {
            Form::Cuboid { lo, hi } => (0..n).all(|d| lo[d] <= point[d] && point[d] < hi[d]),
            Form::Shell {
                centre,
                inner,
                outer,
            } => within(distance2(n, centre, point), *inner, *outer),
        }
    }

    /// Whether points of the box `lo <= point <= hi` may lie inside; `true` where in doubt.
    pub fn may_touch(&self, lo: &[f64; 3], hi: &[f64; 3]) -> bool {
        let n = self.ndim;
        match &self.form {
            Form::Cuboid { lo: from, hi: to } => (0..n).all(|d| from[d] <= hi[d] && lo[d] < to[d]),
            Form::Shell {
                centre,
                inner,
                outer,
            } => {
                let (near, far) = extremes(n, centre, lo, hi);
                shrunk(near) <= outer * outer && (*inner < 0.0 || grown(far) > inner * inner)
            }
        }
    }

    /// Whether every point of the box `lo <= point <= hi` lies inside; `false` where in doubt.
    pub fn covers(&self, lo: &[f64; 3], hi: &[f64; 3]) -> bool {
        let n = self.ndim;
        match &self.form {
            Form::Cuboid { lo: from, hi: to } => (0..n).all(|d| from[d] <= lo[d] && hi[d] < to[d]),
            Form::Shell {
                centre,
                inner,
                outer,
            } => {
                let (near, far) = extremes(n, centre, lo, hi);
                grown(far) <= outer * outer && (*inner < 0.0 || shrunk(near) > inner * inner)
            }
        }
    }

    /// The smallest box around it: lower and upper corner; unused dimensions are 0.
    pub fn bounds(&self) -> ([f64; 3], [f64; 3]) {
        match &self.form {
            Form::Cuboid { lo, hi } => (*lo, *hi),
            Form::Shell { centre, outer, .. } => {
                let side = |sign: f64| {
                    std::array::from_fn(|d| {
                        let reach = if d < self.ndim { sign * outer } else { 0.0 };
                        centre[d] + reach
                    })
                };
                (side(-1.0), side(1.0))
            }
        }
    }

    /// Clears the flags of the points outside. `positions` holds one slice a dimension, each as
    /// long as `mask`.
    pub(crate) fn narrow(&self, positions: &[&[f64]], mask: &mut [bool]) {
        match &self.form {
            Form::Cuboid { lo, hi } => {
                for (d, x) in positions.iter().enumerate().take(self.ndim) {
                    let (lo, hi) = (lo[d], hi[d]);
                    for (keep, x) in mask.iter_mut().zip(*x) {
                        *keep &= (lo <= *x) & (*x < hi);
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
                    *keep &= within(distance2(self.ndim, centre, &point), *inner, *outer);
                }
            }
        }
    }
}

fn dimensions(what: &str, coordinates: &[f64]) -> Result<usize> {
    if !(1..=3).contains(&coordinates.len()) {
        return Err(Error::invalid(format!(
            "{what} needs 1 to 3 coordinates, not {}",
            coordinates.len()
        )));
    }
    if coordinates.iter().any(|x| x.is_nan()) {
        return Err(Error::invalid(format!("a coordinate of {what} is NaN")));
    }
    Ok(coordinates.len())
}

fn padded(coordinates: &[f64]) -> [f64; 3] {
    let mut point = [0.0; 3];
    point[..coordinates.len()].copy_from_slice(coordinates);
    point
}

fn distance2(ndim: usize, centre: &[f64; 3], point: &[f64; 3]) -> f64 {
    let square = |d: usize| (point[d] - centre[d]) * (point[d] - centre[d]);
    (0..ndim).map(square).sum()
}

fn within(distance2: f64, inner: f64, outer: f64) -> bool {
    (distance2 <= outer * outer) & ((inner < 0.0) | (distance2 > inner * inner))
}

/// Squared distances from `centre` to the nearest and the farthest point of a box.
fn extremes(ndim: usize, centre: &[f64; 3], lo: &[f64; 3], hi: &[f64; 3]) -> (f64, f64) {
    let (mut near, mut far) = (0.0, 0.0);
    for d in 0..ndim {
        let (below, above) = (lo[d] - centre[d], centre[d] - hi[d]);
        let gap = below.max(above).max(0.0);
        near += gap * gap;
        let reach = (-below).max(-above).max(0.0);
        far += reach * reach;
    }
    (near, far)
}

// The distances of a box's corners are rounded otherwise than those of the points in it: a few
// units in the last place to either side keep pruning on the safe side.
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

    proptest! {
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
