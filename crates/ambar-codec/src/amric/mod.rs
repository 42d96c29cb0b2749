//! The schemes of AMRIC and of AMReX's compressed HDF5 output, to be measured against.
//!
//! Our own implementation, from the paper: D. Wang et al., "AMRIC: A novel in situ lossy compression
//! framework for efficient I/O in adaptive mesh refinement applications" (SC23), and of the methods
//! of SZ that it builds on. Where the two leave something open, what compresses better was chosen.
//! No store holds these streams.

mod arrange;
mod huffman;
mod interpolation;
mod oned;
mod quantise;
mod regression;
#[cfg(test)]
mod tests;

use crate::element::Element;
use crate::entropy::bitio::{Cursor, write_number};
use crate::error::{Corrupt, Invalid, Result};
use quantise::{Decoding, Encoding};

/// The level of zstd, SZ's default.
const ZSTD_LEVEL: i32 = 3;

/// How unit blocks are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// AMReX: all values as one row in chunks of 1024, each predicted from the value before, each
    /// with its own Huffman tree.
    OneDimensional,
    /// AMRIC with SZ_L/R: each unit block alone by Lorenzo or linear regression, one Huffman tree
    /// for all (unit SLE), inner blocks that fit the unit blocks.
    LorenzoRegression,
    /// SZ_Interp on the unit blocks in a row.
    InterpolationLinear,
    /// AMRIC with SZ_Interp: the unit blocks arranged as a cube.
    InterpolationClustered,
}

/// Encodes unit blocks of `side`^3 values, each in C order, behind each other. No value will differ
/// by more than `bound` (absolute). For [`Scheme::OneDimensional`] any number of values will do.
///
/// # Errors
/// `Invalid` where the values are no whole blocks, or the bound is no finite number from 0 on.
pub fn encode<T: Element>(
    scheme: Scheme,
    values: &[T],
    side: usize,
    bound: f64,
) -> Result<Vec<u8>> {
    if !(bound >= 0.0 && bound.is_finite()) {
        return Err(Invalid("an error bound is a finite number from 0 on"));
    }
    let count = blocks(scheme, values.len(), side)?;
    let mut out = bound.to_le_bytes().to_vec();
    match scheme {
        Scheme::OneDimensional => oned::encode(values, bound, &mut out)?,
        Scheme::LorenzoRegression => {
            let mut side_of = regression::Fitting::new(Encoding::new(values, bound), side);
            let mut decoded = vec![T::default(); values.len()];
            regression::walk(&mut side_of, side, &mut decoded);
            let mut body = side_of.parameters();
            side_of.residuals.finish(&mut body);
            write_body(&body, &mut out)?;
        }
        Scheme::InterpolationLinear | Scheme::InterpolationClustered => {
            let places = arrange::places(scheme, count);
            let dense = arrange::gather(values, places, side);
            let shape = places.map(|n| n * side);
            let settings = interpolation::choose(&dense, shape, bound);
            let mut residuals = Encoding::new(&dense, bound);
            let mut decoded = vec![T::default(); dense.len()];
            interpolation::walk(&mut residuals, shape, bound, settings, &mut decoded);
            let mut body = vec![settings.to_byte()];
            residuals.finish(&mut body);
            write_body(&body, &mut out)?;
        }
    }
    Ok(out)
}

/// Decodes what [`encode`] made of `out.len()` values.
///
/// # Errors
/// `Corrupt` where the stream is damaged or of other values; `Invalid` as [`encode`].
pub fn decode<T: Element>(scheme: Scheme, stream: &[u8], side: usize, out: &mut [T]) -> Result<()> {
    let count = blocks(scheme, out.len(), side)?;
    let mut cursor = Cursor(stream);
    let bound = f64::from_bits(cursor.word()?);
    match scheme {
        Scheme::OneDimensional => oned::decode(&mut cursor, bound, out)?,
        Scheme::LorenzoRegression => {
            let body = read_body(&mut cursor, out.len())?;
            let mut body = Cursor(&body);
            let mut side_of = regression::Told::read(&mut body, out.len(), side, bound)?;
            side_of.residuals = Some(Decoding::read::<T>(&mut body, out.len(), bound)?);
            regression::walk(&mut side_of, side, out);
            side_of.finish()?;
        }
        Scheme::InterpolationLinear | Scheme::InterpolationClustered => {
            let places = arrange::places(scheme, count);
            let shape = places.map(|n| n * side);
            let cells = shape.iter().product();
            let body = read_body(&mut cursor, cells)?;
            let mut body = Cursor(&body);
            let settings = interpolation::Settings::from_byte(body.byte()?);
            let mut residuals = Decoding::read::<T>(&mut body, cells, bound)?;
            let mut dense = vec![T::default(); cells];
            interpolation::walk(&mut residuals, shape, bound, settings, &mut dense);
            residuals.finish()?;
            arrange::scatter(&dense, places, side, out);
        }
    }
    if cursor.0.is_empty() {
        Ok(())
    } else {
        Err(Corrupt("the stream goes on where it should end"))
    }
}

/// The number of unit blocks.
fn blocks(scheme: Scheme, values: usize, side: usize) -> Result<usize> {
    if scheme == Scheme::OneDimensional {
        return Ok(0);
    }
    match side.checked_pow(3) {
        Some(cells) if cells > 0 && values.is_multiple_of(cells) => Ok(values / cells),
        _ => Err(Invalid("the values are no whole unit blocks")),
    }
}

/// Appends the body: its length, and the body compressed, or as it is where that is shorter.
fn write_body(body: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let mut packed = vec![0; zstd::zstd_safe::compress_bound(body.len())];
    let length = zstd::bulk::compress_to_buffer(body, &mut packed[..], ZSTD_LEVEL)
        .map_err(|_| Invalid("zstd refused the stream"))?;
    let smaller = length < body.len();
    let kept = if smaller { &packed[..length] } else { body };
    write_number((kept.len() as u64) << 1 | u64::from(smaller), out);
    out.extend_from_slice(kept);
    Ok(())
}

/// Undoes [`write_body`] for a body of at most `values` values.
fn read_body(cursor: &mut Cursor<'_>, values: usize) -> Result<Vec<u8>> {
    let head = cursor.number()?;
    let length = usize::try_from(head >> 1).map_err(|_| Corrupt("a length is too long"))?;
    let kept = cursor.bytes(length)?;
    if head & 1 == 0 {
        return Ok(kept.to_vec());
    }
    // A value has at most four bytes of a code and eight of a literal, a table 2^16 entries; the
    // parameters of regression are fewer than the values.
    let most = values
        .saturating_mul(48)
        .saturating_add(huffman::LARGEST_TABLE * 4);
    zstd::bulk::decompress(kept, most).map_err(|_| Corrupt("the stream is no whole zstd frame"))
}
