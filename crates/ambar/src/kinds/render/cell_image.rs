//! The image of a cell along an oblique direction, tabulated once for all cells of a size.

/// Samples of a table along each direction.
const SAMPLES: usize = 64;

/// Points of a table along each direction.
const WIDTH: usize = SAMPLES + 1;

/// Cells with larger images, in pixels, are not tabulated: one ray through each pixel is dense enough.
pub(super) const LARGE: f64 = 64.0;

/// Maximum number of pixels along each direction that such an image touches.
const BORDERS: usize = LARGE as usize + 2;

/// Fractions below it are rounding errors.
const NOISE: f64 = 1e-13;

/// Rays along the line of sight through a cell around the origin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ray<'a> {
    /// The axes of the camera.
    pub axes: &'a [[f64; 3]; 3],
    /// Half sides of the cell.
    pub half: [f64; 3],
}

impl Ray<'_> {
    /// The length in the cell of the ray through the point `right`, `up` of the map.
    pub fn length(&self, right: f64, up: f64) -> f64 {
        let [to_right, to_up, sight] = self.axes;
        let (mut from, mut to) = (f64::NEG_INFINITY, f64::INFINITY);
        for d in 0..3 {
            let start = right * to_right[d] + up * to_up[d];
            if sight[d].abs() < 1e-12 {
                if start.abs() > self.half[d] {
                    return 0.0;
                }
                continue;
            }
            let ends = [-self.half[d], self.half[d]].map(|face| (face - start) / sight[d]);
            from = from.max(ends[0].min(ends[1]));
            to = to.min(ends[0].max(ends[1]));
        }
        (to - from).max(0.0)
    }
}

/// Lengths of rays through a cell, summed over the rectangle from the lower corner of its image to each point of a grid:
/// a summed-area table. Four of its values give the fraction of the cell in any rectangle.
#[derive(Clone, Debug)]
pub(super) struct CellImage {
    /// Half sides of the cell.
    half: [f64; 3],
    /// Half sides of its image, in pixels.
    reach: [f64; 2],
    /// Sums for points (right, up), relative to the sum of all.
    below: Vec<f64>,
}

impl CellImage {
    /// Tabulates the image of a cell with half sides `ray.half`, which extends `reach` pixels from its middle. `None` if
    /// no ray meets the cell.
    pub fn new(ray: Ray<'_>, reach: [f64; 2], pixel: f64) -> Option<Self> {
        let at = |d: usize, sample: usize| {
            let middle = (sample as f64 + 0.5) / SAMPLES as f64;
            (2.0 * middle - 1.0) * reach[d] * pixel
        };
        let mut below = vec![0.0; WIDTH * WIDTH];
        for right in 0..SAMPLES {
            let mut sum = 0.0;
            for up in 0..SAMPLES {
                sum += ray.length(at(0, right), at(1, up));
                below[(right + 1) * WIDTH + up + 1] = below[right * WIDTH + up + 1] + sum;
            }
        }
        let total = below[WIDTH * WIDTH - 1];
        below.iter_mut().for_each(|sum| *sum /= total);
        (total > 0.0).then_some(Self {
            half: ray.half,
            reach,
            below,
        })
    }

    /// True for the image of cells with these half sides.
    pub fn is_of(&self, half: [f64; 3]) -> bool {
        self.half == half
    }

    /// Writes the fractions of a cell in pixels of a rectangle: (right, up), at most [`LARGE`] + 2 in each direction. Its
    /// middle is at `at`, relative to the lower corner of the rectangle, in pixels.
    pub fn fractions(&self, at: [f64; 2], shape: [usize; 2], fractions: &mut Vec<f64>) {
        let samples = self.reach.map(|reach| SAMPLES as f64 / 2.0 / reach);
        // The number of samples below a border of pixels, and the part of the next sample.
        let border = |d: usize, pixel: usize| {
            let sample = (pixel as f64 - at[d]) * samples[d] + SAMPLES as f64 / 2.0;
            let sample = sample.clamp(0.0, SAMPLES as f64);
            let first = (sample as usize).min(SAMPLES - 1);
            (first, sample - first as f64)
        };
        let mut tops = [(0, 0.0); BORDERS];
        let tops = &mut tops[..shape[1]];
        for (up, top) in tops.iter_mut().enumerate() {
            *top = border(1, up + 1);
        }
        // The sums below the top of each pixel of a column, to its left side.
        let mut left = [0.0; BORDERS];
        fractions.clear();
        for right in 1..=shape[0] {
            let (first, part) = border(0, right);
            let first = &self.below[first * WIDTH..][..2 * WIDTH];
            let (first, second) = first.split_at(WIDTH);
            let mut last = 0.0;
            let pixels = left
                .iter_mut()
                .zip(tops.iter())
                .map(|(left, (up, part_up))| {
                    let blend = |row: usize| first[row] + part * (second[row] - first[row]);
                    let lower = blend(*up);
                    let here = lower + part_up * (blend(*up + 1) - lower);
                    let column = here - *left;
                    *left = here;
                    let fraction = column - last;
                    last = column;
                    if fraction > NOISE { fraction } else { 0.0 }
                });
            fractions.extend(pixels);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AXES: [[f64; 3]; 3] = [
        [0.8, 0.6, 0.0],
        [-0.168, 0.224, 0.96],
        [0.576, -0.768, 0.28],
    ];

    /// The image of a cube with sides of `side` pixels, and its half sides in pixels.
    fn image(side: f64) -> (CellImage, [f64; 2]) {
        let ray = Ray {
            axes: &AXES,
            half: [side / 2.0; 3],
        };
        let reach = [0, 1].map(|d| AXES[d].iter().map(|x| x.abs() * side / 2.0).sum());
        (CellImage::new(ray, reach, 1.0).unwrap(), reach)
    }

    #[test]
    fn fractions_are_means_of_dense_rays() {
        for (side, shift) in [(0.2, 0.45), (1.7, 0.31), (5.0, 0.0), (30.0, 0.77)] {
            let (image, reach) = image(side);
            let shape = reach.map(|reach| (2.0 * reach).ceil() as usize + 1);
            let at = reach.map(|reach| reach + shift);
            let mut found = Vec::new();
            image.fractions(at, shape, &mut found);
            let ray = Ray {
                axes: &AXES,
                half: [side / 2.0; 3],
            };
            let samples = (400.0 / side).clamp(16.0, 400.0) as usize;
            let mut expected = vec![0.0; found.len()];
            for (pixel, expected) in expected.iter_mut().enumerate() {
                let corner = [pixel / shape[1], pixel % shape[1]];
                for sample in 0..samples * samples {
                    let within = [sample / samples, sample % samples];
                    let [x, y] = [0, 1].map(|d| {
                        corner[d] as f64 + (within[d] as f64 + 0.5) / samples as f64 - at[d]
                    });
                    *expected += ray.length(x, y);
                }
            }
            let total: f64 = expected.iter().sum();
            let largest = expected.iter().fold(0.0f64, |a, b| a.max(*b)) / total;
            assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-10);
            for (found, expected) in found.iter().zip(&expected) {
                let error = (found - expected / total).abs();
                assert!(
                    error < 0.02 * largest,
                    "{side}: {found} {}",
                    expected / total
                );
            }
        }
    }

    #[test]
    fn pixels_beside_the_image_have_no_part() {
        let (image, reach) = image(3.0);
        let mut found = Vec::new();
        image.fractions([reach[0] + 4.0, reach[1]], [4, 8], &mut found);
        assert!(found.iter().all(|part| *part == 0.0));
    }
}
