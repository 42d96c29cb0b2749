//! Maps along any direction: sums of cells and particles over the pixels of a camera.
//!
//! The image of a cell along a coordinate axis is a rectangle, whose overlap with each pixel is exact. So is that of cells seen
//! along a direction with a component of 0, whose lengths of rays are a trapezoid, if that axis is a direction of the map. Along
//! other directions it is a hexagon: lengths of rays through the cell are tabulated once for all cells of a size
//! ([`CellImage`]), and their sum is the volume of the cell. Cells of more than [`LARGE`] pixels are sampled by one ray through
//! each pixel.

mod cell_image;

use rayon::prelude::*;

use cell_image::{CellImage, LARGE, Ray};

use crate::error::{Error, Result};

/// Number of groups of rows with separate sums. It is constant: results do not depend on threads.
const GROUPS: usize = 16;

/// Maximum memory for the images of all groups; larger images use fewer groups.
const IMAGES: usize = 1 << 30;

/// Maximum number of tables of cells of different sizes.
const IMAGES_OF_SIZES: usize = 64;

/// A view of the domain along a direction.
#[derive(Clone, Debug)]
pub struct Camera {
    /// The point in the middle of the map.
    pub centre: [f64; 3],
    /// Orthogonal unit vectors: to the right and upwards in the map, and along the line of sight.
    pub axes: [[f64; 3]; 3],
    /// The side of a pixel.
    pub pixel: f64,
    /// Pixels to the right and upwards.
    pub shape: [usize; 2],
    /// Rows whose centres are at most half of it from the middle, along the line of sight.
    pub depth: f64,
    /// Sides of the periodic box; infinite in dimensions that are not periodic. Of each row the image nearest to the
    /// middle counts, cut off half a side from the middle; what is cut off continues at the opposite side. Particles are cut
    /// off only in directions of the map that are coordinate axes: in other maps the box has no sides.
    pub periods: [f64; 3],
}

/// The form of each row.
#[derive(Clone, Copy, Debug)]
pub enum Footprint<'a> {
    /// Cells with these sides.
    Cells([&'a [f64]; 3]),
    /// Points, which count in the nearest pixel.
    Nearest,
    /// Squares of a pixel (cloud in cell).
    Cloud,
    /// Cubic splines with these radii of their support.
    Spline(&'a [f64]),
}

/// The rows of a map.
#[derive(Clone, Copy, Debug)]
pub struct RenderRows<'a> {
    /// The coordinates of centres.
    pub positions: [&'a [f64]; 3],
    /// Their form.
    pub footprint: Footprint<'a>,
    /// The quantities to sum: per volume for cells, otherwise per row.
    pub values: &'a [&'a [f64]],
    /// The layer of each row, and the number of layers; rows of other layers are left out.
    pub layers: Option<(&'a [i64], usize)>,
    /// Whether a pixel has the largest value of the rows that it touches instead of a sum; -inf without rows.
    pub is_maximum: bool,
}

impl RenderRows<'_> {
    fn len(&self) -> usize {
        self.positions[0].len()
    }

    /// The value of a pixel without rows.
    fn start(&self) -> f64 {
        match self.is_maximum {
            true => f64::NEG_INFINITY,
            false => 0.0,
        }
    }

    fn layer_count(&self) -> usize {
        self.layers.map_or(1, |(_, count)| count)
    }

    fn check(&self) -> Result<()> {
        let rows = self.len();
        let mut lengths: Vec<usize> = self.positions.iter().map(|x| x.len()).collect();
        lengths.extend(self.values.iter().map(|values| values.len()));
        match self.footprint {
            Footprint::Cells(sides) => lengths.extend(sides.iter().map(|side| side.len())),
            Footprint::Spline(radii) => lengths.push(radii.len()),
            Footprint::Nearest | Footprint::Cloud => {}
        }
        lengths.extend(self.layers.iter().map(|(layers, _)| layers.len()));
        match lengths.into_iter().find(|length| *length != rows) {
            None => Ok(()),
            Some(length) => Err(Error::invalid(format!(
                "expected columns of equal length, found {rows} and {length} rows"
            ))),
        }
    }
}

/// Sums the values of rows over pixels: float64 (values, layers, right, up). A cell contributes its values times the
/// volume in the column of the pixel, a particle its values times the fraction in the pixel.
///
/// # Errors
/// `Invalid` if columns differ in length or the camera is invalid; `Limit` if the images do not fit in memory.
pub fn render(camera: &Camera, rows: &RenderRows<'_>) -> Result<Vec<f64>> {
    rows.check()?;
    camera.check()?;
    let [width, height] = camera.shape;
    let image = width.checked_mul(height).filter(|pixels| *pixels > 0);
    let total = image
        .and_then(|image| image.checked_mul(rows.values.len()))
        .and_then(|image| image.checked_mul(rows.layer_count()))
        .filter(|total| total.checked_mul(8).is_some_and(|bytes| bytes <= IMAGES * 4))
        .ok_or_else(|| {
            Error::limit(format!(
                "a map of {width} x {height} pixels in {} layers of {} fields does not fit in memory; choose fewer",
                rows.layer_count(),
                rows.values.len()
            ))
        })?;
    let groups = (IMAGES / (8 * total).max(1)).clamp(1, GROUPS);
    let length = rows.len().div_ceil(groups).max(1);
    let parts: Vec<Vec<f64>> = (0..groups)
        .into_par_iter()
        .with_max_len(1)
        .map(|group| {
            let mut sums = vec![rows.start(); total];
            let end = ((group + 1) * length).min(rows.len());
            let mut painter = Painter::new(camera, rows, &mut sums);
            for row in group * length..end {
                painter.add(row);
            }
            sums
        })
        .collect();
    let mut parts = parts.into_iter();
    let mut sums = parts.next().unwrap_or_else(|| vec![rows.start(); total]);
    for part in parts {
        let pixels = sums.par_iter_mut().zip(part);
        match rows.is_maximum {
            true => pixels.for_each(|(sum, more)| *sum = sum.max(more)),
            false => pixels.for_each(|(sum, more)| *sum += more),
        }
    }
    Ok(sums)
}

impl Camera {
    fn check(&self) -> Result<()> {
        let all = self.axes.iter().flatten().chain(&self.centre);
        let is_finite = all.into_iter().all(|x| x.is_finite());
        if is_finite && self.pixel > 0.0 && self.pixel.is_finite() && self.depth >= 0.0 {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "invalid camera: {self:?}; expected finite vectors, a pixel > 0 and a depth >= 0"
        )))
    }

    /// A direction of the map that is a coordinate axis: its number, 0 for right and 1 for up, and that of the axis.
    fn aligned(&self) -> Option<(usize, usize)> {
        let directions = (0..2).flat_map(|map| (0..3).map(move |axis| (map, axis)));
        directions
            .into_iter()
            .find(|(map, axis)| self.axes[*map][*axis].abs() > 1.0 - 1e-14)
    }

    /// The faces of the periodic box in pixels from the corner of the map, in directions that are periodic axes.
    fn faces(&self) -> [Option<[f64; 2]>; 2] {
        std::array::from_fn(|map| {
            let axis = (0..3).find(|axis| self.axes[map][*axis].abs() > 1.0 - 1e-14)?;
            let half = self.periods[axis] / self.pixel / 2.0;
            let middle = self.shape[map] as f64 / 2.0;
            half.is_finite().then_some([middle - half, middle + half])
        })
    }

    /// The vector from the middle to the nearest image of a point.
    fn offset_of(&self, point: [f64; 3]) -> [f64; 3] {
        std::array::from_fn(|d| {
            let (distance, period) = (point[d] - self.centre[d], self.periods[d]);
            match period.is_finite() {
                true => distance - period * (distance / period).round(),
                false => distance,
            }
        })
    }

    /// Coordinates of a vector along the axes of the camera.
    fn project(&self, vector: [f64; 3]) -> [f64; 3] {
        self.axes
            .each_ref()
            .map(|axis| (0..3).map(|d| axis[d] * vector[d]).sum())
    }
}

/// Adds rows to an image.
struct Painter<'a> {
    camera: &'a Camera,
    rows: &'a RenderRows<'a>,
    sums: &'a mut [f64],
    /// As `Camera::aligned`.
    aligned: Option<(usize, usize)>,
    /// As `Camera::faces`.
    faces: [Option<[f64; 2]>; 2],
    /// The fractions of a row in the pixels of a rectangle.
    fractions: Vec<f64>,
    /// The fractions of a row in the rows of pixels of a rectangle.
    parts_up: Vec<f64>,
    /// The images of cells, by their size.
    images: Vec<CellImage>,
}

/// A rectangle of pixels: the first one, which can be outside of the map, and the sides.
#[derive(Clone, Copy)]
struct Rectangle {
    first: [i64; 2],
    shape: [usize; 2],
}

impl<'a> Painter<'a> {
    fn new(camera: &'a Camera, rows: &'a RenderRows<'a>, sums: &'a mut [f64]) -> Self {
        Self {
            camera,
            rows,
            sums,
            aligned: camera.aligned(),
            faces: camera.faces(),
            fractions: Vec::new(),
            parts_up: Vec::new(),
            images: Vec::new(),
        }
    }

    fn add(&mut self, row: usize) {
        let layer = match self.rows.layers {
            None => 0,
            Some((layers, count)) => match usize::try_from(layers[row]) {
                Ok(layer) if layer < count => layer,
                _ => return,
            },
        };
        let from_centre = self.camera.offset_of(self.rows.positions.map(|x| x[row]));
        match self.rows.footprint {
            Footprint::Cells(sides) => {
                let half = sides.map(|side| side[row] / 2.0);
                self.parts(row, layer, from_centre, half, 0);
            }
            _ => self.add_at(row, layer, from_centre, [0.0; 3]),
        }
    }

    /// Adds a cell, cut at the faces of the periodic box around the middle from dimension `d` on.
    fn parts(&mut self, row: usize, layer: usize, centre: [f64; 3], half: [f64; 3], d: usize) {
        if d == 3 {
            self.add_at(row, layer, centre, half);
            return;
        }
        let period = self.camera.periods[d];
        let beyond = centre[d].abs() + half[d] - period / 2.0;
        // Without the margin, rounding would cut cells whose face is that of the box.
        if !period.is_finite() || beyond <= 1e-12 * period || half[d] >= period / 2.0 {
            self.parts(row, layer, centre, half, d + 1);
            return;
        }
        let sign = centre[d].signum();
        let (mut inner, mut inner_half) = (centre, half);
        inner[d] -= sign * beyond / 2.0;
        inner_half[d] -= beyond / 2.0;
        self.parts(row, layer, inner, inner_half, d + 1);
        let (mut outer, mut outer_half) = (centre, half);
        outer[d] = -sign * (period / 2.0 - beyond / 2.0);
        outer_half[d] = beyond / 2.0;
        self.parts(row, layer, outer, outer_half, d + 1);
    }

    /// Adds a row, or a part of a cell with half sides `half`, at a vector from the middle.
    fn add_at(&mut self, row: usize, layer: usize, from_centre: [f64; 3], half: [f64; 3]) {
        let [right, up, sight] = self.camera.project(from_centre);
        if sight.is_nan() || sight.abs() > self.camera.depth / 2.0 {
            return;
        }
        // In pixels, from the corner of the map.
        let at = [right, up].map(|x| x / self.camera.pixel);
        let at: [f64; 2] = std::array::from_fn(|d| at[d] + self.camera.shape[d] as f64 / 2.0);
        match self.rows.footprint {
            Footprint::Cells(_) => {
                let volume = 8.0 * half.iter().product::<f64>();
                if let Some(pixels) = self.cell(at, half) {
                    self.sum(row, layer, pixels, volume);
                }
            }
            Footprint::Nearest => self.point(row, layer, at),
            Footprint::Cloud => self.cloud(row, layer, at),
            Footprint::Spline(radii) => {
                let radius = radii[row] / self.camera.pixel;
                match radius > 1.0 {
                    true => self.splines(row, layer, at, radius),
                    false => self.point(row, layer, at),
                }
            }
        }
    }

    /// Adds a row to the pixel that contains a point.
    fn point(&mut self, row: usize, layer: usize, at: [f64; 2]) {
        let pixels = Rectangle {
            first: at.map(|x| x.floor() as i64),
            shape: [1; 2],
        };
        self.fractions.clear();
        self.fractions.push(1.0);
        self.sum(row, layer, pixels, 1.0);
    }

    /// The pixels of a rectangle around `at` with half sides `reach`, at least the part in the map; `None` outside of
    /// the map.
    fn pixels(&self, at: [f64; 2], reach: [f64; 2], is_clipped: bool) -> Option<Rectangle> {
        let mut pixels = Rectangle {
            first: [0; 2],
            shape: [0; 2],
        };
        for d in 0..2 {
            let side = self.camera.shape[d] as f64;
            let (mut lo, mut hi) = ((at[d] - reach[d]).floor(), (at[d] + reach[d]).ceil());
            if !(hi > 0.0 && lo < side) {
                return None;
            }
            if is_clipped {
                (lo, hi) = (lo.max(0.0), hi.min(side));
            }
            pixels.first[d] = lo as i64;
            pixels.shape[d] = (hi - lo).max(1.0) as usize;
        }
        Some(pixels)
    }

    /// Fractions of a cell, seen so that the direction `map` of the map is the coordinate axis `axis`. Lengths of rays
    /// depend on the other direction alone, as a trapezoid.
    fn aligned_cell(
        &mut self,
        at: [f64; 2],
        half: [f64; 3],
        map: usize,
        axis: usize,
    ) -> Option<Rectangle> {
        let other = &self.camera.axes[1 - map];
        let sides = [1, 2].map(|step| {
            let d = (axis + step) % 3;
            half[d] * other[d].abs() / self.camera.pixel
        });
        let across = half[axis] / self.camera.pixel;
        let mut reach = [across; 2];
        reach[1 - map] = sides[0] + sides[1];
        let pixels = self.pixels(at, reach, true)?;
        let part = |direction: usize, pixel: usize| {
            let lo = (pixels.first[direction] + pixel as i64) as f64 - at[direction];
            let below = |x: f64| match direction == map {
                true => trapezoid_below(x, across, 0.0),
                false => trapezoid_below(x, sides[0].max(sides[1]), sides[0].min(sides[1])),
            };
            (below(lo + 1.0) - below(lo)).max(0.0)
        };
        self.products(pixels.shape, part);
        Some(pixels)
    }

    /// Fractions in pixels that are products of those in columns, `part(0, right)`, and in rows, `part(1, up)`.
    fn products(&mut self, shape: [usize; 2], part: impl Fn(usize, usize) -> f64) {
        self.parts_up.clear();
        self.parts_up.extend((0..shape[1]).map(|up| part(1, up)));
        self.fractions.clear();
        for right in 0..shape[0] {
            let part_right = part(0, right);
            let column = self.parts_up.iter().map(|part_up| part_right * part_up);
            self.fractions.extend(column);
        }
    }

    /// Fractions of a rectangle around `at` with half sides `reach`.
    fn rectangle(&mut self, at: [f64; 2], reach: [f64; 2]) -> Option<Rectangle> {
        let pixels = self.pixels(at, reach, true)?;
        let part = |d: usize, pixel: usize| {
            let lo = (pixels.first[d] + pixel as i64) as f64;
            let overlap = (lo + 1.0).min(at[d] + reach[d]) - lo.max(at[d] - reach[d]);
            overlap.max(0.0) / (2.0 * reach[d])
        };
        self.products(pixels.shape, part);
        Some(pixels)
    }

    /// Fractions of a cell with half sides `half`.
    fn cell(&mut self, at: [f64; 2], half: [f64; 3]) -> Option<Rectangle> {
        let reach: [f64; 2] = std::array::from_fn(|d| {
            let axis = &self.camera.axes[d];
            (0..3).map(|e| half[e] * axis[e].abs()).sum::<f64>() / self.camera.pixel
        });
        let largest = 2.0 * reach[0].max(reach[1]);
        if let Some((map, axis)) = self.aligned {
            return self.aligned_cell(at, half, map, axis);
        }
        if largest <= LARGE {
            // Its lower corner can be up to a cell outside of the map, so that the sum of all fractions is 1.
            let pixels = self.pixels(at, reach, false)?;
            let image = self.image(half, reach)?;
            let at = std::array::from_fn(|d| at[d] - pixels.first[d] as f64);
            self.images[image].fractions(at, pixels.shape, &mut self.fractions);
            return Some(pixels);
        }
        let pixels = self.pixels(at, reach, true)?;
        let ray = Ray {
            axes: &self.camera.axes,
            half,
        };
        let volume = 8.0 * half.iter().product::<f64>() / self.camera.pixel.powi(2);
        self.fractions.clear();
        for right in 0..pixels.shape[0] {
            let x = (pixels.first[0] + right as i64) as f64 + 0.5 - at[0];
            for up in 0..pixels.shape[1] {
                let y = (pixels.first[1] + up as i64) as f64 + 0.5 - at[1];
                let length = ray.length(x * self.camera.pixel, y * self.camera.pixel);
                self.fractions.push(length / volume);
            }
        }
        Some(pixels)
    }

    /// The number of the image of cells with half sides `half`, tabulated for the first of them. `None` if no ray meets them.
    fn image(&mut self, half: [f64; 3], reach: [f64; 2]) -> Option<usize> {
        if let Some(image) = self.images.iter().rposition(|image| image.is_of(half)) {
            return Some(image);
        }
        if self.images.len() == IMAGES_OF_SIZES {
            self.images.clear();
        }
        let ray = Ray {
            axes: &self.camera.axes,
            half,
        };
        self.images
            .push(CellImage::new(ray, reach, self.camera.pixel)?);
        Some(self.images.len() - 1)
    }

    /// Adds a square of a pixel, cut at the faces of the periodic box.
    fn cloud(&mut self, row: usize, layer: usize, at: [f64; 2]) {
        // Its parts in each direction: their middles and half sides.
        let parts = [0, 1].map(|d| {
            let whole = [(at[d], 0.5), (0.0, 0.0)];
            let Some([lo, hi]) = self.faces[d].filter(|[lo, hi]| hi - lo > 1.0) else {
                return whole;
            };
            let (below, above) = (lo - (at[d] - 0.5), at[d] + 0.5 - hi);
            match (below > 0.0, above > 0.0) {
                (true, _) => [
                    (at[d] + below / 2.0, 0.5 - below / 2.0),
                    (hi - below / 2.0, below / 2.0),
                ],
                (_, true) => [
                    (at[d] - above / 2.0, 0.5 - above / 2.0),
                    (lo + above / 2.0, above / 2.0),
                ],
                _ => whole,
            }
        });
        for (x, half_x) in parts[0] {
            for (y, half_y) in parts[1] {
                let weight = 4.0 * half_x * half_y;
                if weight > 0.0
                    && let Some(pixels) = self.rectangle([x, y], [half_x, half_y])
                {
                    self.sum(row, layer, pixels, weight);
                }
            }
        }
    }

    /// Adds a cubic spline whose support has a radius, and its images beyond faces of the periodic box.
    fn splines(&mut self, row: usize, layer: usize, at: [f64; 2], radius: f64) {
        let shifts = [0, 1].map(|d| {
            let faces = self.faces[d].filter(|[lo, hi]| hi - lo > 2.0 * radius);
            match faces {
                Some([lo, hi]) if at[d] - radius < lo => Some(hi - lo),
                Some([lo, hi]) if at[d] + radius > hi => Some(lo - hi),
                _ => None,
            }
        });
        let mut images = vec![at];
        for (d, shift) in shifts.into_iter().enumerate() {
            for image in 0..images.len() * usize::from(shift.is_some()) {
                let mut moved = images[image];
                moved[d] += shift.unwrap_or_default();
                images.push(moved);
            }
        }
        let is_large = 2.0 * radius > LARGE;
        // The integral of the spline over the disc of radius 1 is 7 pi / 40.
        let mut total = 7.0 * std::f64::consts::PI / 40.0 * radius * radius;
        if !is_large {
            total = 0.0;
            for image in &images {
                self.spline(*image, radius, false);
                total += self.fractions.iter().sum::<f64>();
            }
        }
        if total <= 0.0 {
            return self.point(row, layer, at);
        }
        for image in &images {
            if let Some(pixels) = self.spline(*image, radius, is_large) {
                self.sum(row, layer, pixels, 1.0 / total);
            }
        }
    }

    /// Values of a cubic spline at the middles of pixels in the periodic box, and the pixels; `None` outside of the map.
    fn spline(&mut self, at: [f64; 2], radius: f64, is_clipped: bool) -> Option<Rectangle> {
        let is_seen = self.pixels(at, [radius; 2], is_clipped);
        let pixels = is_seen.unwrap_or_else(|| Rectangle {
            first: at.map(|x| (x - radius).floor() as i64),
            shape: at.map(|x| ((x + radius).ceil() - (x - radius).floor()).max(1.0) as usize),
        });
        self.fractions.clear();
        if is_seen.is_none() && is_clipped {
            return None;
        }
        let faces = self.faces.map(|faces| {
            let whole = [f64::NEG_INFINITY, f64::INFINITY];
            faces
                .filter(|[lo, hi]| hi - lo > 2.0 * radius)
                .unwrap_or(whole)
        });
        let is_inside = |d: usize, x: f64| (faces[d][0]..faces[d][1]).contains(&x);
        for right in 0..pixels.shape[0] {
            let x = (pixels.first[0] + right as i64) as f64 + 0.5;
            for up in 0..pixels.shape[1] {
                let y = (pixels.first[1] + up as i64) as f64 + 0.5;
                let value = spline((x - at[0]).hypot(y - at[1]) / radius);
                let is_inside = is_inside(0, x) && is_inside(1, y);
                self.fractions.push(if is_inside { value } else { 0.0 });
            }
        }
        is_seen
    }

    /// Adds the values of a row, times `weight`, to the pixels by their fractions.
    fn sum(&mut self, row: usize, layer: usize, pixels: Rectangle, weight: f64) {
        let [width, height] = self.camera.shape;
        let inside = |d: usize| {
            let side = self.camera.shape[d] as i64;
            let lo = (-pixels.first[d]).clamp(0, pixels.shape[d] as i64);
            let hi = (side - pixels.first[d]).clamp(lo, pixels.shape[d] as i64);
            lo as usize..hi as usize
        };
        let (rights, ups) = (inside(0), inside(1));
        if rights.is_empty() || ups.is_empty() {
            return;
        }
        let layers = self.rows.layer_count();
        for (number, values) in self.rows.values.iter().enumerate() {
            let value = match self.rows.is_maximum {
                true => values[row],
                false => values[row] * weight,
            };
            let image = (number * layers + layer) * width * height;
            for right in rights.clone() {
                let column = (pixels.first[0] + right as i64) as usize * height;
                let start = image + column + (pixels.first[1] + ups.start as i64) as usize;
                let parts = &self.fractions[right * pixels.shape[1]..][ups.clone()];
                let sums = self.sums[start..start + parts.len()].iter_mut().zip(parts);
                let is_touched = |(_, part): &(&mut f64, &f64)| **part > 0.0;
                if self.rows.is_maximum {
                    sums.filter(is_touched)
                        .for_each(|(sum, _)| *sum = sum.max(value));
                } else if value.is_finite() {
                    sums.for_each(|(sum, part)| *sum += value * part);
                } else {
                    // The value must not reach pixels that the row does not touch.
                    sums.filter(is_touched)
                        .for_each(|(sum, part)| *sum += value * part);
                }
            }
        }
    }
}

/// The fraction below `x` of a trapezoid around 0: the convolution of intervals with half lengths `long` and `short`.
fn trapezoid_below(x: f64, long: f64, short: f64) -> f64 {
    if x <= -long - short {
        return 0.0;
    }
    if x >= long + short {
        return 1.0;
    }
    // The squares below would cancel.
    if short < 1e-5 * long {
        return ((x + long) / (2.0 * long)).clamp(0.0, 1.0);
    }
    let square = |x: f64| x.max(0.0).powi(2);
    let sum = square(x + long + short) - square(x + long - short) - square(x - long + short);
    sum / (8.0 * long * short)
}

/// The cubic spline of Monaghan and Lattanzio (1985) without its normalization, with support up to 1.
fn spline(q: f64) -> f64 {
    match q {
        ..0.5 => 1.0 - 6.0 * q * q + 6.0 * q * q * q,
        ..1.0 => 2.0 * (1.0 - q).powi(3),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn camera(axes: [[f64; 3]; 3]) -> Camera {
        Camera {
            centre: [0.5; 3],
            axes,
            pixel: 0.1,
            shape: [30, 30],
            depth: 10.0,
            periods: [f64::INFINITY; 3],
        }
    }

    fn tilted() -> [[f64; 3]; 3] {
        let (s, c) = (0.6f64, 0.8f64);
        let (t, d) = (0.28f64, 0.96f64);
        [[c, s, 0.0], [-s * t, c * t, d], [s * d, -c * d, t]]
    }

    const ALIGNED: [[f64; 3]; 3] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

    fn cells<'a>(
        positions: &'a [Vec<f64>; 3],
        sides: &'a [f64],
        values: &'a [&'a [f64]],
    ) -> RenderRows<'a> {
        RenderRows {
            positions: positions.each_ref().map(Vec::as_slice),
            footprint: Footprint::Cells([sides; 3]),
            values,
            layers: None,
            is_maximum: false,
        }
    }

    #[test]
    fn maps_contain_the_volume_of_all_cells() {
        let positions = [
            vec![0.4, 0.5, 0.61, 0.3],
            vec![0.2, 0.7, 0.5, 0.5],
            vec![0.5; 4],
        ];
        let sides = [0.5, 0.03, 0.11, 0.001];
        let ones = [1.0; 4];
        let expected: f64 = sides.iter().map(|side: &f64| side.powi(3)).sum();
        for axes in [ALIGNED, tilted()] {
            let values: [&[f64]; 1] = [&ones];
            let map = render(&camera(axes), &cells(&positions, &sides, &values)).unwrap();
            let sum: f64 = map.iter().sum();
            assert!((sum / expected - 1.0).abs() < 1e-12, "{sum} {expected}");
        }
    }

    #[test]
    fn columns_along_an_axis_are_exact() {
        let positions = [vec![0.5], vec![0.5], vec![0.5]];
        let (sides, twos) = ([1.05], [2.0]);
        let values: [&[f64]; 1] = [&twos];
        let map = render(&camera(ALIGNED), &cells(&positions, &sides, &values)).unwrap();
        let pixel = |right: usize, up: usize| map[right * 30 + up] / 0.01;
        assert!((pixel(15, 15) - 2.0 * 1.05).abs() < 1e-12);
        // The cell fills a quarter of the pixels at its sides.
        assert!((pixel(9, 15) - 0.25 * 2.0 * 1.05).abs() < 1e-12);
        assert_eq!(pixel(8, 15), 0.0);
    }

    #[test]
    fn cells_of_a_uniform_box_have_smooth_maps_along_diagonals() {
        // Along (1, 1, 0), edges of cells are parallel to those of pixels, and sampled rays would hit or miss them.
        let places =
            |stride: usize| (0..512).map(move |n| ((n / stride) % 8) as f64 / 8.0 + 0.0625);
        let positions: [Vec<f64>; 3] = [64, 8, 1].map(|stride| places(stride).collect());
        let (sides, ones) = ([0.125; 512], [1.0; 512]);
        let values: [&[f64]; 1] = [&ones];
        let root = 0.5f64.sqrt();
        for axes in [
            [[-root, root, 0.0], [0.0, 0.0, 1.0], [root, root, 0.0]],
            [[0.0, 1.0, 0.0], [-0.6, 0.0, 0.8], [0.8, 0.0, 0.6]],
        ] {
            let mut camera = camera(axes);
            (camera.pixel, camera.shape) = (0.043, [50, 50]);
            let map = render(&camera, &cells(&positions, &sides, &values)).unwrap();
            assert!((map.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            // The chord through the middle of the box.
            let chord = 1.0 / axes[2].iter().fold(0.0f64, |a, b| a.max(b.abs()));
            let middle = map[25 * 50 + 25] / 0.043f64.powi(2);
            assert!((middle / chord - 1.0).abs() < 0.05, "{middle} {chord}");
            let row: Vec<f64> = (20..30).map(|n| map[n * 50 + 25]).collect();
            let steps = row.windows(2).map(|pair| (pair[1] / pair[0] - 1.0).abs());
            assert!(steps.fold(0.0f64, f64::max) < 0.1, "{row:?}");
        }
    }

    #[test]
    fn rays_through_a_tilted_cube_have_its_chords() {
        let positions = [vec![0.5], vec![0.5], vec![0.5]];
        let (side, ones) = ([1.6], [1.0]);
        let values: [&[f64]; 1] = [&ones];
        let mut camera = camera(tilted());
        (camera.pixel, camera.shape) = (0.01, [201, 201]);
        let map = render(&camera, &cells(&positions, &side, &values)).unwrap();
        let middle = map[100 * 201 + 100] / 1e-4;
        let longest = camera.axes[2].iter().fold(0.0f64, |a, b| a.max(b.abs()));
        assert!((middle - 1.6 / longest).abs() < 1e-9, "{middle}");
    }

    #[test]
    fn particles_count_once() {
        let positions = [vec![0.42, 0.9, 0.5], vec![0.5, 0.3, 0.71], vec![0.5; 3]];
        let (masses, radii) = ([1.0, 2.0, 4.0], [0.45, 0.01, 0.2]);
        let values: [&[f64]; 1] = [&masses];
        for footprint in [
            Footprint::Nearest,
            Footprint::Cloud,
            Footprint::Spline(&radii),
        ] {
            let rows = RenderRows {
                footprint,
                ..cells(&positions, &[], &values)
            };
            let map = render(&camera(tilted()), &rows).unwrap();
            assert!((map.iter().sum::<f64>() - 7.0).abs() < 1e-12);
        }
        let layers = [1, -1, 0];
        let rows = RenderRows {
            footprint: Footprint::Nearest,
            layers: Some((&layers, 2)),
            ..cells(&positions, &[], &values)
        };
        let cube = render(&camera(ALIGNED), &rows).unwrap();
        let sums = cube.chunks(900).map(|layer| layer.iter().sum::<f64>());
        assert_eq!(sums.collect::<Vec<_>>(), [4.0, 1.0]);
    }

    #[test]
    fn particles_beyond_a_periodic_face_continue_at_the_opposite_side() {
        let positions = [
            vec![0.01, 0.98, 0.5, 0.999],
            vec![0.995, 0.5, 0.03, 0.001],
            vec![0.5; 4],
        ];
        let (masses, radii) = ([1.0, 2.0, 4.0, 8.0], [0.2, 0.13, 0.3, 0.26]);
        let values: [&[f64]; 1] = [&masses];
        for pixel in [0.1, 0.07] {
            for footprint in [Footprint::Cloud, Footprint::Spline(&radii)] {
                let mut camera = camera(ALIGNED);
                (camera.pixel, camera.periods) = (pixel, [1.0; 3]);
                camera.shape = [(1.0 / pixel - 1e-9).ceil() as usize; 2];
                let rows = RenderRows {
                    footprint,
                    ..cells(&positions, &[], &values)
                };
                let map = render(&camera, &rows).unwrap();
                assert!((map.iter().sum::<f64>() / 15.0 - 1.0).abs() < 1e-12);
                // The map about another centre is the same map, moved.
                if pixel == 0.1 {
                    camera.centre = [0.8, 0.4, 0.5];
                    let other = render(&camera, &rows).unwrap();
                    for (pixel, value) in map.iter().enumerate() {
                        let (right, up) = ((pixel / 10 + 7) % 10, (pixel % 10 + 1) % 10);
                        assert!((value - other[10 * right + up]).abs() < 1e-12);
                    }
                }
            }
        }
    }

    #[test]
    fn maximum_maps_have_the_largest_value_that_touches_a_pixel() {
        let positions = [vec![0.5, 0.5], vec![0.5; 2], vec![0.2, 0.8]];
        let (sides, levels) = ([1.0, 0.2], [3.0, 5.0]);
        let values: [&[f64]; 1] = [&levels];
        for axes in [ALIGNED, tilted()] {
            let rows = RenderRows {
                is_maximum: true,
                ..cells(&positions, &sides, &values)
            };
            let map = render(&camera(axes), &rows).unwrap();
            let count = |value: f64| map.iter().filter(|pixel| **pixel == value).count();
            assert!(count(5.0) >= 4 && count(3.0) > 50 && count(f64::NEG_INFINITY) > 100);
            assert_eq!(
                count(5.0) + count(3.0) + count(f64::NEG_INFINITY),
                map.len()
            );
        }
    }

    #[test]
    fn cells_beyond_a_periodic_face_continue_at_the_opposite_side() {
        // Eight cells fill a periodic box whose middle is not at the corner of a cell.
        let positions: [Vec<f64>; 3] = std::array::from_fn(|bit| {
            let places = (0..8).map(|n: usize| 0.25 + 0.5 * (n >> bit & 1) as f64);
            places.collect()
        });
        let (sides, ones) = ([0.5; 8], [1.0; 8]);
        let values: [&[f64]; 1] = [&ones];
        let mut camera = camera(ALIGNED);
        (camera.centre, camera.periods) = ([0.53, 0.41, 0.5], [1.0; 3]);
        (camera.pixel, camera.shape) = (0.1, [10, 10]);
        let map = render(&camera, &cells(&positions, &sides, &values)).unwrap();
        assert!(
            map.iter().all(|column| (column / 0.01 - 1.0).abs() < 1e-12),
            "{map:?}"
        );
    }

    #[test]
    fn values_that_are_not_finite_stay_in_their_pixels() {
        let positions = [vec![0.5], vec![0.5], vec![0.5]];
        let (sides, nan) = ([1.0], [f64::NAN]);
        let values: [&[f64]; 1] = [&nan];
        let ones = [1.0];
        let count: [&[f64]; 1] = [&ones];
        let of = |values: &[&[f64]]| render(&camera(tilted()), &cells(&positions, &sides, values));
        let (map, touched) = (of(&values).unwrap(), of(&count).unwrap());
        assert!(
            map.iter()
                .zip(&touched)
                .all(|(value, part)| value.is_nan() == (*part > 0.0))
        );
    }

    #[test]
    fn invalid_maps_are_errors() {
        let positions = [vec![0.5], vec![0.5], vec![0.5]];
        let ones = [1.0];
        let values: [&[f64]; 1] = [&ones];
        let mut camera = camera(ALIGNED);
        assert!(render(&camera, &cells(&positions, &[], &values)).is_err());
        camera.pixel = 0.0;
        assert!(render(&camera, &cells(&positions, &ones, &values)).is_err());
        (camera.pixel, camera.shape) = (1e-9, [1 << 20, 1 << 20]);
        assert!(render(&camera, &cells(&positions, &ones, &values)).is_err());
    }
}
