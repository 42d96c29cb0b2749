//! Cells that the surface of a region cuts: whether they share volume with it, and the fraction of their volume inside.

use super::{Region, Shape};

/// Halvings of the sides of a cell after which a test of its parts ends.
const HALVINGS: u32 = 3;

/// Points along each side of a part of a cell whose fraction is sampled. Parts are half a cell, so that a cell has
/// twice as many points along a side.
const POINTS: usize = 4;

/// The volume that faces share, in sides of a cell: a cell beside a region is not cut by it.
const MARGIN: f64 = 1e-9;

impl Region {
    /// Whether a cell `lo <= point <= hi` shares volume with the region. For cylinders, oriented boxes and combinations
    /// the answer can be true for cells up to an eighth of their side outside.
    pub fn touches(&self, lo: &[f64; 3], hi: &[f64; 3]) -> bool {
        self.reaches(true, lo, hi)
    }

    /// The fraction of the volume of a cell `lo <= point <= hi` that is inside: exact for boxes and their complements,
    /// sampled at 8 points along each side for other regions. A sampled point counts in part if the surface is less than
    /// half the distance of points away from it. Fractions of a region and its complement add up to 1.
    pub fn fraction(&self, lo: &[f64; 3], hi: &[f64; 3]) -> f64 {
        if let Shape::Complement(region) = &self.shape {
            return 1.0 - region.fraction(lo, hi);
        }
        if !self.reaches(true, lo, hi) {
            return 0.0;
        }
        if !self.reaches(false, lo, hi) {
            return 1.0;
        }
        let cut_alone = |undecided: &[&Self]| match undecided {
            [region] => Some(region.fraction(lo, hi)),
            _ => None,
        };
        let found = match &self.shape {
            Shape::Primitive(primitive) => primitive.fraction_of_box(lo, hi),
            Shape::Complement(_) => None,
            Shape::Intersection(regions) => {
                let undecided = regions.iter().filter(|region| !region.covers(lo, hi));
                cut_alone(&undecided.collect::<Vec<_>>())
            }
            Shape::Union(regions) => {
                let undecided = regions.iter().filter(|region| region.may_touch(lo, hi));
                cut_alone(&undecided.collect::<Vec<_>>())
            }
        };
        found.unwrap_or_else(|| {
            let parts = self.halves(lo, hi);
            let sum: f64 = parts.iter().map(|[lo, hi]| self.sampled(lo, hi)).sum();
            sum / parts.len() as f64
        })
    }

    /// Clears the flags of cells that do not touch the region. `positions` has the coordinates of centres and `sides`
    /// the sides in each dimension; one slice of sides is that of cubes.
    pub(crate) fn narrow_cells(&self, positions: &[&[f64]], sides: &[&[f64]], mask: &mut [bool]) {
        for (row, keep) in mask.iter_mut().enumerate() {
            if *keep {
                let [lo, hi] = corners(positions, sides, row);
                *keep = self.touches(&lo, &hi);
            }
        }
    }

    /// Writes the fraction of each cell to `out`; arguments as of `narrow_cells`.
    pub(crate) fn fractions(&self, positions: &[&[f64]], sides: &[&[f64]], out: &mut [f64]) {
        for (row, out) in out.iter_mut().enumerate() {
            let [lo, hi] = corners(positions, sides, row);
            *out = self.fraction(&lo, &hi);
        }
    }

    /// Whether a cell without its faces has volume inside the region, or outside of it.
    fn reaches(&self, inside: bool, lo: &[f64; 3], hi: &[f64; 3]) -> bool {
        let margin: [f64; 3] = std::array::from_fn(|d| MARGIN * (hi[d] - lo[d]));
        let lo = std::array::from_fn(|d| lo[d] + margin[d]);
        let hi = std::array::from_fn(|d| hi[d] - margin[d]);
        self.part_reaches(inside, &lo, &hi, HALVINGS)
    }

    fn part_reaches(&self, inside: bool, lo: &[f64; 3], hi: &[f64; 3], halvings: u32) -> bool {
        let is_excluded = match inside {
            true => !self.may_touch(lo, hi),
            false => self.covers(lo, hi),
        };
        if is_excluded || halvings == 0 {
            return !is_excluded;
        }
        let middle = std::array::from_fn(|d| f64::midpoint(lo[d], hi[d]));
        self.contains(&middle) == inside
            || (self.halves(lo, hi).iter())
                .any(|[lo, hi]| self.part_reaches(inside, lo, hi, halvings - 1))
    }

    /// The parts of a box that is halved in each dimension.
    fn halves(&self, lo: &[f64; 3], hi: &[f64; 3]) -> Vec<[[f64; 3]; 2]> {
        let part = |number: usize| {
            let mut part = [*lo, *hi];
            for d in 0..self.ndim {
                part[1 - (number >> d & 1)][d] = f64::midpoint(lo[d], hi[d]);
            }
            part
        };
        (0..1 << self.ndim).map(part).collect()
    }

    /// The fraction of a box inside, from points on a grid.
    fn sampled(&self, lo: &[f64; 3], hi: &[f64; 3]) -> f64 {
        if !self.may_touch(lo, hi) {
            return 0.0;
        }
        if self.covers(lo, hi) {
            return 1.0;
        }
        let steps: [f64; 3] = std::array::from_fn(|d| (hi[d] - lo[d]) / POINTS as f64);
        let width = steps[..self.ndim].iter().sum::<f64>() / self.ndim as f64;
        let points = POINTS.pow(self.ndim as u32);
        let mut sum = 0.0;
        for number in 0..points {
            let mut point = *lo;
            for (d, x) in point.iter_mut().enumerate().take(self.ndim) {
                let place = number / POINTS.pow(d as u32) % POINTS;
                *x += (place as f64 + 0.5) * steps[d];
            }
            sum += (0.5 + self.depth(&point) / width).clamp(0.0, 1.0);
        }
        sum / points as f64
    }

    /// The distance of a point from the nearest face or surface, negative outside. Outside of edges it can be larger.
    fn depth(&self, point: &[f64; 3]) -> f64 {
        let depths = |regions: &[Self], start: f64, choose: fn(f64, f64) -> f64| {
            let depths = regions.iter().map(|region| region.depth(point));
            depths.fold(start, choose)
        };
        match &self.shape {
            Shape::Primitive(primitive) => primitive.depth(point),
            Shape::Complement(region) => -region.depth(point),
            Shape::Intersection(regions) => depths(regions, f64::INFINITY, f64::min),
            Shape::Union(regions) => depths(regions, f64::NEG_INFINITY, f64::max),
        }
    }
}

/// The corners of a cell; 0 in dimensions that are not used.
fn corners(positions: &[&[f64]], sides: &[&[f64]], row: usize) -> [[f64; 3]; 2] {
    let mut corners = [[0.0; 3]; 2];
    for (d, position) in positions.iter().enumerate() {
        let side = sides.get(d).or(sides.first()).map_or(0.0, |side| side[row]);
        corners[0][d] = position[row] - side / 2.0;
        corners[1][d] = position[row] + side / 2.0;
    }
    corners
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The volume of a region in the unit box, from the fractions and the touched cells of a grid of 16^3 cells.
    fn volumes(region: &Region) -> [f64; 3] {
        let mut sums = [0.0; 3];
        let volume = 16f64.powi(-3);
        for cell in 0..16usize.pow(3) {
            let lo = [cell % 16, cell / 16 % 16, cell / 256].map(|x| x as f64 / 16.0);
            let hi = lo.map(|x| x + 1.0 / 16.0);
            let fraction = region.fraction(&lo, &hi);
            let is_touched = region.touches(&lo, &hi);
            assert!((0.0..=1.0).contains(&fraction));
            assert!(is_touched || fraction == 0.0);
            let other = region.clone().complement().fraction(&lo, &hi);
            assert!((fraction + other - 1.0).abs() < 1e-15);
            let middle = lo.map(|x| x + 1.0 / 32.0);
            sums[0] += volume * f64::from(u8::from(region.contains(&middle)));
            sums[1] += volume * fraction;
            sums[2] += volume * f64::from(u8::from(is_touched));
        }
        sums
    }

    #[test]
    fn fractions_have_the_volume_of_the_region() {
        let pi = std::f64::consts::PI;
        let tilted = [1.0, -2.0, 0.5];
        let wide = Region::sphere(&[0.5; 3], 0.31).unwrap();
        let small = Region::sphere(&[0.5; 3], 0.17).unwrap();
        for (region, expected) in [
            (wide.clone(), 4.0 / 3.0 * pi * 0.31f64.powi(3)),
            (
                Region::shell(&[0.47, 0.5, 0.52], 0.2, 0.37).unwrap(),
                4.0 / 3.0 * pi * (0.37f64.powi(3) - 0.2f64.powi(3)),
            ),
            (
                Region::cylinder(&[0.5; 3], &[0.0, 0.0, 1.0], 0.0, 0.3, 0.21).unwrap(),
                pi * 0.09 * 0.21,
            ),
            (
                Region::cylinder(&[0.5; 3], &tilted, 0.1, 0.23, 0.4).unwrap(),
                pi * (0.23f64.powi(2) - 0.01) * 0.4,
            ),
            (
                Region::oriented_box(&[0.5; 3], &[0.5, 0.33, 0.21], &tilted, &[0.0, 1.0, 1.0])
                    .unwrap(),
                0.5 * 0.33 * 0.21,
            ),
            (
                Region::intersection(vec![wide, small.complement()]).unwrap(),
                4.0 / 3.0 * pi * (0.31f64.powi(3) - 0.17f64.powi(3)),
            ),
            (
                Region::sphere(&[0.02, 0.5, 0.97], 0.2)
                    .and_then(|region| region.in_periodic_box(&[0.0; 3], &[1.0; 3]))
                    .unwrap(),
                4.0 / 3.0 * pi * 0.008,
            ),
        ] {
            let [centre, fraction, touched] = volumes(&region);
            let errors = [centre, fraction].map(|volume| (volume / expected - 1.0).abs());
            assert!(errors[1] < 1e-3, "{region:?}: {errors:?}");
            assert!(touched > expected && touched > fraction && touched >= centre);
        }
    }

    #[test]
    fn boxes_are_exact() {
        let cuboid = Region::cuboid(&[0.21, -0.13, 0.5], &[0.52, 0.17, 0.9]).unwrap();
        let cuboid = cuboid.in_periodic_box(&[0.0; 3], &[1.0; 3]).unwrap();
        let [_, fraction, touched] = volumes(&cuboid);
        assert!((fraction - 0.31 * 0.3 * 0.4).abs() < 1e-14, "{fraction}");
        // Cells that only share a face are not touched: 6 x 6 x 7 cells.
        assert!(
            (touched * 4096.0 - 252.0).abs() < 1e-9,
            "{}",
            touched * 4096.0
        );
        // A region in a single cell.
        let small = Region::sphere(&[0.53; 3], 0.001).unwrap();
        let [centre, _, touched] = volumes(&small);
        assert!(centre == 0.0 && (touched * 4096.0 - 1.0).abs() < 1e-9);
    }
}
