//! SZ_L/R with unit SLE: each unit block alone, its inner blocks by Lorenzo or linear regression.
//!
//! Source: X. Liang et al., "Error-controlled lossy compression optimized for high compression ratios
//! of scientific datasets" (Big Data 2018), for the regression and the choice between the two.

use crate::bytes::{Cursor, write_number};
use crate::quantizer::{Decoding, Encoding, Residuals};
use crate::schemes::{Error, Result};
use crate::value::Value;

/// Extra error of Lorenzo prediction from decoded values instead of exact ones, in error bounds.
const LORENZO_NOISE: f64 = 1.22;
/// Parameters of a linear function: slopes in z, y, x, and its value at the first point.
type Linear = [f64; 4];

/// The side of inner blocks in unit blocks of `side`: small where large ones would leave slivers.
fn inner_side(side: usize) -> usize {
    if side < 64 && side % 6 <= 2 { 4 } else { 6 }
}

/// An inner block: its place in the unit block, its extent, and the unit block's first index.
#[derive(Clone, Copy)]
pub(crate) struct Inner {
    unit: usize,
    side: usize,
    lo: [usize; 3],
    n: [usize; 3],
}

impl Inner {
    fn at(&self, [z, y, x]: [usize; 3]) -> usize {
        self.unit + ((self.lo[0] + z) * self.side + self.lo[1] + y) * self.side + self.lo[2] + x
    }

    fn can_be_linear(&self) -> bool {
        self.n.iter().all(|n| *n > 1)
    }
}

/// Source of values and block predictors: the encoder computes them, the decoder reads them.
pub(crate) trait BlockCoder<T> {
    /// The linear function of a block; `None` for Lorenzo.
    fn linear(&mut self, block: &Inner) -> Option<Linear>;
    /// As [`Residuals::value`].
    fn value(&mut self, at: usize, predicted: f64) -> T;
}

/// Visits all values: unit block by unit block, inner block by inner block.
pub(crate) fn walk<T: Value>(blocks: &mut impl BlockCoder<T>, side: usize, out: &mut [T]) {
    let padded = side + 1;
    // A unit block with a plane of the same value before it in each dimension.
    let mut known = vec![0.0f64; padded * padded * padded];
    let mut begin = 0.0;
    let cells = side * side * side;
    for unit in (0..out.len()).step_by(cells) {
        known.fill(begin);
        for_each_inner(unit, side, |block| {
            let linear = blocks.linear(&block);
            for z in 0..block.n[0] {
                for y in 0..block.n[1] {
                    let row = ((block.lo[0] + z + 1) * padded + block.lo[1] + y + 1) * padded
                        + block.lo[2]
                        + 1;
                    let from = block.at([z, y, 0]);
                    for x in 0..block.n[2] {
                        let predicted = match &linear {
                            Some(linear) => plane(linear, [z, y, x]),
                            None => lorenzo(&known, row + x, padded * padded, padded),
                        };
                        let value = blocks.value(from + x, predicted);
                        known[row + x] = value.to_f64();
                        out[from + x] = value;
                    }
                }
            }
        });
        begin = out[unit].to_f64();
        if !begin.is_finite() {
            begin = 0.0;
        }
    }
}

fn for_each_inner(unit: usize, side: usize, mut visit: impl FnMut(Inner)) {
    let inner = inner_side(side);
    for z in (0..side).step_by(inner) {
        for y in (0..side).step_by(inner) {
            for x in (0..side).step_by(inner) {
                let lo = [z, y, x];
                visit(Inner {
                    unit,
                    side,
                    lo,
                    n: lo.map(|lo| inner.min(side - lo)),
                });
            }
        }
    }
}

#[inline(always)]
fn lorenzo(known: &[f64], at: usize, sz: usize, sy: usize) -> f64 {
    known[at - 1] + known[at - sy] + known[at - sz]
        - known[at - sy - 1]
        - known[at - sz - 1]
        - known[at - sz - sy]
        + known[at - sz - sy - 1]
}

#[inline(always)]
fn plane(linear: &Linear, [z, y, x]: [usize; 3]) -> f64 {
    linear[3] + linear[0] * z as f64 + linear[1] * y as f64 + linear[2] * x as f64
}

/// The bounds of the parameters: together they move no value by more than the values' bound.
fn parameter_bounds(bound: f64, side: usize) -> Linear {
    let slope = bound / 4.0 / inner_side(side) as f64;
    [slope, slope, slope, bound / 4.0]
}

/// The encoder's coder: fits linear functions, chooses a predictor for each block, quantizes.
pub(crate) struct ParameterWriter<'a, T> {
    pub(crate) residuals: Encoding<'a, T>,
    bounds: Linear,
    /// Bits: 1 for a linear block.
    choices: Vec<u8>,
    blocks: usize,
    last: Linear,
    /// Parameters' residuals: whole steps, or NaN for a literal.
    steps: Vec<u16>,
    literals: Vec<f64>,
}

impl<'a, T: Value> ParameterWriter<'a, T> {
    pub(crate) fn new(residuals: Encoding<'a, T>, side: usize) -> Self {
        let bounds = parameter_bounds(residuals.bound, side);
        Self {
            residuals,
            bounds,
            choices: Vec::new(),
            blocks: 0,
            last: [0.0; 4],
            steps: Vec::new(),
            literals: Vec::new(),
        }
    }

    /// The choices and parameters, as bytes.
    pub(crate) fn parameters(&self) -> Vec<u8> {
        let mut out = self.choices.clone();
        write_number(self.steps.len() as u64, &mut out);
        write_number(self.literals.len() as u64, &mut out);
        for literal in &self.literals {
            out.extend_from_slice(&literal.to_le_bytes());
        }
        crate::huffman::encode(&self.steps, &mut out);
        out
    }

    fn exact(&self, block: &Inner, point: [usize; 3]) -> f64 {
        self.residuals.values[block.at(point)].to_f64()
    }

    /// The linear function with the least squared error.
    fn fit(&self, block: &Inner) -> Linear {
        let [nz, ny, nx] = block.n;
        let (mut sum, mut moments) = (0.0, [0.0; 3]);
        for z in 0..nz {
            for y in 0..ny {
                let (mut row, mut along) = (0.0, 0.0);
                for x in 0..nx {
                    let value = self.exact(block, [z, y, x]);
                    row += value;
                    along += value * x as f64;
                }
                sum += row;
                moments[0] += row * z as f64;
                moments[1] += row * y as f64;
                moments[2] += along;
            }
        }
        let count = (nz * ny * nx) as f64;
        let mut linear = [0.0; 4];
        linear[3] = sum / count;
        for d in 0..3 {
            let n = block.n[d] as f64;
            let middle = (n - 1.0) / 2.0;
            linear[d] = 12.0 * (moments[d] - middle * sum) / (count * (n * n - 1.0));
            linear[3] -= linear[d] * middle;
        }
        linear
    }

    /// Whether the linear function is nearer than Lorenzo's prediction, on the block's diagonals.
    fn is_better(&self, block: &Inner, linear: &Linear) -> bool {
        let n = block.n.iter().min().copied().unwrap_or(1);
        let (mut of_linear, mut of_lorenzo) = (0.0, 0.0);
        for i in 1..n {
            let j = n - i;
            for point in [[i, i, i], [i, i, j], [i, j, i], [i, j, j]] {
                let value = self.exact(block, point);
                of_linear += (value - plane(linear, point)).abs();
                let [z, y, x] = point;
                let near = |dz, dy, dx| self.exact(block, [z - dz, y - dy, x - dx]);
                let predicted = near(0, 0, 1) + near(0, 1, 0) + near(1, 0, 0)
                    - near(0, 1, 1)
                    - near(1, 0, 1)
                    - near(1, 1, 0)
                    + near(1, 1, 1);
                of_lorenzo += (value - predicted).abs() + LORENZO_NOISE * self.residuals.bound;
            }
        }
        of_linear < of_lorenzo
    }

    /// The parameters as they will be decoded.
    fn quantize(&mut self, linear: &Linear) -> Linear {
        let mut decoded = [0.0; 4];
        for d in 0..4 {
            let step = 2.0 * self.bounds[d];
            let steps = ((linear[d] - self.last[d]) / step).round();
            if steps.abs() < 32768.0 {
                self.steps.push((steps + 32768.0) as u16);
                decoded[d] = self.last[d] + steps * step;
            } else {
                self.steps.push(0);
                self.literals.push(linear[d]);
                decoded[d] = linear[d];
            }
        }
        self.last = decoded;
        decoded
    }
}

impl<T: Value> BlockCoder<T> for ParameterWriter<'_, T> {
    fn linear(&mut self, block: &Inner) -> Option<Linear> {
        if !block.can_be_linear() {
            return None;
        }
        let linear = self.fit(block);
        let chosen = linear.iter().all(|x| x.is_finite()) && self.is_better(block, &linear);
        if self.blocks.is_multiple_of(8) {
            self.choices.push(0);
        }
        if let Some(bits) = self.choices.last_mut() {
            *bits |= u8::from(chosen) << (self.blocks % 8);
        }
        self.blocks += 1;
        chosen.then(|| self.quantize(&linear))
    }

    #[inline(always)]
    fn value(&mut self, at: usize, predicted: f64) -> T {
        self.residuals.value(at, predicted)
    }
}

/// The decoder's coder: reads predictors and residuals from the stream.
pub(crate) struct ParameterReader<'a> {
    pub(crate) residuals: Option<Decoding<'a>>,
    bounds: Linear,
    choices: &'a [u8],
    blocks: usize,
    last: Linear,
    steps: std::vec::IntoIter<u16>,
    literals: std::vec::IntoIter<f64>,
    short: bool,
}

impl<'a> ParameterReader<'a> {
    /// Reads what [`ParameterWriter::parameters`] wrote of `values` values.
    pub(crate) fn read(
        cursor: &mut Cursor<'a>,
        values: usize,
        side: usize,
        bound: f64,
    ) -> Result<Self> {
        let mut of_unit = 0;
        for_each_inner(0, side, |block| {
            of_unit += usize::from(block.can_be_linear())
        });
        let blocks = values / (side * side * side) * of_unit;
        let choices = cursor.bytes(blocks.div_ceil(8))?;
        let count = cursor.number_to(4 * blocks)?;
        let literals = cursor.number_to(count)?;
        let literals: Vec<f64> = (0..literals)
            .map(|_| cursor.word().map(f64::from_bits))
            .collect::<Result<_>>()?;
        let steps = crate::huffman::decode(cursor, count)?;
        Ok(Self {
            residuals: None,
            bounds: parameter_bounds(bound, side),
            choices,
            blocks: 0,
            last: [0.0; 4],
            steps: steps.into_iter(),
            literals: literals.into_iter(),
            short: false,
        })
    }

    /// Checks that the stream held exactly the parameters and residuals that were read.
    pub(crate) fn finish(&self) -> Result<()> {
        if self.short || !self.steps.as_slice().is_empty() || !self.literals.as_slice().is_empty() {
            return Err(Error(
                c"the number of parameters differs from that of linear blocks",
            ));
        }
        self.residuals.as_ref().map_or(Ok(()), Decoding::finish)
    }
}

impl<T: Value> BlockCoder<T> for ParameterReader<'_> {
    fn linear(&mut self, block: &Inner) -> Option<Linear> {
        if !block.can_be_linear() {
            return None;
        }
        let bits = self.choices.get(self.blocks / 8).copied().unwrap_or(0);
        let chosen = bits >> (self.blocks % 8) & 1 == 1;
        self.blocks += 1;
        if !chosen {
            return None;
        }
        for d in 0..4 {
            let parameter = match self.steps.next() {
                Some(0) => self.literals.next(),
                Some(symbol) => {
                    let steps = f64::from(symbol) - 32768.0;
                    Some(self.last[d] + steps * (2.0 * self.bounds[d]))
                }
                None => None,
            };
            self.short |= parameter.is_none();
            self.last[d] = parameter.unwrap_or(0.0);
        }
        Some(self.last)
    }

    #[inline(always)]
    fn value(&mut self, at: usize, predicted: f64) -> T {
        match &mut self.residuals {
            Some(residuals) => residuals.value(at, predicted),
            None => T::default(),
        }
    }
}
