//! The array-to-array codecs `transpose` and `numcodecs.delta`, encoded and decoded together.
//!
//! Sources: Zarr v3 core specification, "Transpose codec"; numcodecs 0.16, `delta.py`.

use serde::Deserialize;

use super::scratch::AlignedBuffer;
use super::transpose::{self, Permutation};
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::limits::checked_product;

/// An array-to-array codec.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum ArrayCodec {
    /// Dimension `i` of the encoded array is dimension `order[i]` of the decoded one.
    Transpose(Vec<usize>),
    /// Differences of consecutive values in C order, after the first value. Integers wrap around.
    Delta,
}

impl ArrayCodec {
    /// The transposition that moves the last of `dimensions` dimensions to the front.
    pub fn last_first(dimensions: usize) -> Self {
        let last = dimensions.checked_sub(1);
        Self::Transpose(last.into_iter().chain(0..last.unwrap_or(0)).collect())
    }
}

/// The configuration of `transpose`.
#[derive(Deserialize)]
pub(super) struct TransposeConfig {
    pub order: Vec<usize>,
}

/// The configuration of `numcodecs.delta`: NumPy's names of the types of values and differences.
#[derive(Deserialize)]
pub(super) struct DeltaConfig {
    dtype: String,
    #[serde(default)]
    astype: Option<String>,
}

impl DeltaConfig {
    /// Checks that values and differences both have the type `dtype`.
    pub fn check(&self, dtype: &DataType) -> Result<()> {
        let expected = numpy_name(dtype);
        let long = dtype.to_string();
        let is = |name: &str| {
            let short = name.trim_start_matches(['<', '|', '=']);
            short == &expected[1..] || name == long
        };
        for (key, name) in [
            ("dtype", &self.dtype),
            ("astype", self.astype.as_ref().unwrap_or(&self.dtype)),
        ] {
            if !is(name) {
                return Err(Error::unsupported(format!(
                    "codec `numcodecs.delta` has the {key} {name:?} in an array of {dtype}; expected \
                     {expected:?}"
                )));
            }
        }
        Ok(())
    }
}

/// Whether the codec `numcodecs.delta` supports values of this type, without loss.
pub(super) fn supports_delta(dtype: &DataType) -> bool {
    matches!(
        dtype,
        DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::UInt8
            | DataType::UInt16
            | DataType::UInt32
            | DataType::UInt64
    )
}

/// NumPy's short name of an integer type, with its byte order.
pub(super) fn numpy_name(dtype: &DataType) -> String {
    let size = dtype.word_size();
    let order = if size == 1 { '|' } else { '<' };
    let signed = matches!(
        dtype,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64
    );
    format!("{order}{}{size}", if signed { 'i' } else { 'u' })
}

/// The codecs' steps for a chunk of a certain shape, in the order of encoding.
pub(super) struct Steps {
    steps: Vec<Step>,
    /// Size of a value.
    size: usize,
    /// The chunk's shape after all codecs.
    pub shape: Vec<u64>,
}

enum Step {
    Permute(Permutation),
    Delta,
}

impl Steps {
    /// The steps for a chunk of `bytes` bytes.
    ///
    /// # Errors
    /// `Corrupt` if a chunk of the shape has another size.
    pub fn new(
        codecs: &[ArrayCodec],
        shape: &[u64],
        dtype: &DataType,
        bytes: usize,
    ) -> Result<Self> {
        let size = dtype.size().unwrap_or(0);
        if checked_product(shape, size as u64) != Some(bytes as u64) {
            return Err(Error::corrupt(format!(
                "a chunk of {shape:?} values of {dtype} cannot have {bytes} bytes"
            )));
        }
        let mut shape = shape.to_vec();
        let mut steps = Vec::with_capacity(codecs.len());
        for codec in codecs {
            match codec {
                ArrayCodec::Delta => steps.push(Step::Delta),
                ArrayCodec::Transpose(order) => {
                    steps.extend(Permutation::new(&shape, order)?.map(Step::Permute));
                    shape = order.iter().map(|d| shape[*d]).collect();
                }
            }
        }
        Ok(Self { steps, size, shape })
    }

    /// Encodes `raw`. The result is in `raw` or in `memory`.
    ///
    /// # Errors
    /// `Limit` if there is not enough memory.
    pub fn apply<'a>(&self, raw: &'a [u8], memory: &'a mut AlignedBuffer) -> Result<&'a [u8]> {
        if self.steps.is_empty() {
            return Ok(raw);
        }
        let to = memory.bytes(raw.len())?;
        for (number, step) in self.steps.iter().enumerate() {
            match step {
                Step::Permute(permutation) if number == 0 => permutation.apply(self.size, raw, to),
                Step::Permute(permutation) => {
                    let from = to.to_vec();
                    permutation.apply(self.size, &from, to);
                }
                Step::Delta => {
                    if number == 0 {
                        to.copy_from_slice(raw);
                    }
                    transpose::subtract(self.size, to);
                }
            }
        }
        Ok(to)
    }

    /// Undoes the steps on the values that `decode` fills in, and writes the result to `out`.
    ///
    /// # Errors
    /// Those of `decode`.
    pub fn undo(
        &self,
        out: &mut [u8],
        memory: &mut AlignedBuffer,
        decode: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let permute = |step: &Step| matches!(step, Step::Permute(_));
        if !self.steps.iter().any(permute) {
            // Without a permutation the sums are computed in place.
            decode(out)?;
            let deltas = self.steps.iter();
            deltas.for_each(|_| transpose::add(self.size, out));
            return Ok(());
        }
        let from = memory.bytes(out.len())?;
        decode(from)?;
        let mut steps = self.steps.as_slice();
        loop {
            match steps {
                // The sums are computed while the values are in the cache.
                [earlier @ .., Step::Permute(permutation), Step::Delta] => {
                    permutation.undo_sums(self.size, from, out);
                    steps = earlier;
                }
                [earlier @ .., Step::Permute(permutation)] => {
                    permutation.undo(self.size, from, out);
                    steps = earlier;
                }
                [earlier @ .., Step::Delta] => {
                    transpose::add(self.size, from);
                    steps = earlier;
                    continue;
                }
                [] => return Ok(()),
            }
            if steps.iter().any(permute) {
                from.copy_from_slice(out);
            } else {
                let deltas = steps.iter();
                deltas.for_each(|_| transpose::add(self.size, out));
                return Ok(());
            }
        }
    }
}
