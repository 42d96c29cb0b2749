//! The schemes of AMRIC and of AMReX's compressed HDF5 output.
//!
//! An independent implementation, from D. Wang et al., "AMRIC: A novel in situ lossy compression
//! framework for efficient I/O in adaptive mesh refinement applications" (SC23), and from the papers
//! on the SZ methods that it uses. Where the papers leave a choice open, the variant that compresses
//! better was chosen.

use std::ffi::CStr;

use crate::bytes::{Cursor, write_number};
use crate::quantizer::{Decoding, Encoding};
use crate::value::Value;
use crate::{arrangement, huffman, interpolation, one_dimensional, regression};

/// Why encoding or decoding failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Error(pub &'static CStr);

/// The result of encoding or decoding.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// The level of zstd, SZ's default.
const ZSTD_LEVEL: i32 = 3;

/// How unit blocks are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
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

/// Encodes consecutive unit blocks of `side`^3 values, each in C order. No value changes by more than
/// `bound` (absolute). [`Scheme::OneDimensional`] accepts any number of values.
pub(crate) fn encode<T: Value>(
    scheme: Scheme,
    values: &[T],
    side: usize,
    bound: f64,
) -> Result<Vec<u8>> {
    if !(bound >= 0.0 && bound.is_finite()) {
        return Err(Error(c"invalid error bound; expected a finite number >= 0"));
    }
    let count = blocks(scheme, values.len(), side)?;
    let mut out = bound.to_le_bytes().to_vec();
    match scheme {
        Scheme::OneDimensional => one_dimensional::encode(values, bound, &mut out)?,
        Scheme::LorenzoRegression => {
            let mut blocks_of =
                regression::ParameterWriter::new(Encoding::new(values, bound), side);
            let mut decoded = vec![T::default(); values.len()];
            regression::walk(&mut blocks_of, side, &mut decoded);
            let mut body = blocks_of.parameters();
            blocks_of.residuals.finish(&mut body);
            write_body(&body, &mut out)?;
        }
        Scheme::InterpolationLinear | Scheme::InterpolationClustered => {
            let grid = arrangement::grid_for(scheme, count);
            let dense = arrangement::gather(values, grid, side);
            let shape = grid.map(|n| n * side);
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

/// Decodes a stream of [`encode`] with `out.len()` values.
pub(crate) fn decode<T: Value>(
    scheme: Scheme,
    stream: &[u8],
    side: usize,
    out: &mut [T],
) -> Result<()> {
    let count = blocks(scheme, out.len(), side)?;
    let mut cursor = Cursor(stream);
    let bound = f64::from_bits(cursor.word()?);
    match scheme {
        Scheme::OneDimensional => one_dimensional::decode(&mut cursor, bound, out)?,
        Scheme::LorenzoRegression => {
            let body = read_body(&mut cursor, out.len())?;
            let mut body = Cursor(&body);
            let mut blocks_of =
                regression::ParameterReader::read(&mut body, out.len(), side, bound)?;
            blocks_of.residuals = Some(Decoding::read::<T>(&mut body, out.len(), bound)?);
            regression::walk(&mut blocks_of, side, out);
            blocks_of.finish()?;
        }
        Scheme::InterpolationLinear | Scheme::InterpolationClustered => {
            let grid = arrangement::grid_for(scheme, count);
            let shape = grid.map(|n| n * side);
            let cells = shape.iter().product();
            let body = read_body(&mut cursor, cells)?;
            let mut body = Cursor(&body);
            let settings = interpolation::Settings::from_byte(body.byte()?);
            let mut residuals = Decoding::read::<T>(&mut body, cells, bound)?;
            let mut dense = vec![T::default(); cells];
            interpolation::walk(&mut residuals, shape, bound, settings, &mut dense);
            residuals.finish()?;
            arrangement::scatter(&dense, grid, side, out);
        }
    }
    if cursor.0.is_empty() {
        Ok(())
    } else {
        Err(Error(c"the stream has excess bytes"))
    }
}

/// The number of unit blocks; 0 for one-dimensional rows.
fn blocks(scheme: Scheme, values: usize, side: usize) -> Result<usize> {
    if scheme == Scheme::OneDimensional {
        return Ok(0);
    }
    match side.checked_pow(3) {
        Some(cells) if cells > 0 && values.is_multiple_of(cells) => Ok(values / cells),
        _ => Err(Error(c"the number of values is not a multiple of side^3")),
    }
}

/// Appends the length of the body and the body, compressed with zstd if that makes it shorter.
pub(crate) fn write_body(body: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let mut packed = vec![0; zstd::zstd_safe::compress_bound(body.len())];
    let length = zstd::bulk::compress_to_buffer(body, &mut packed[..], ZSTD_LEVEL)
        .map_err(|_| Error(c"zstd failed to compress the stream"))?;
    let smaller = length < body.len();
    let stored = if smaller { &packed[..length] } else { body };
    write_number((stored.len() as u64) << 1 | u64::from(smaller), out);
    out.extend_from_slice(stored);
    Ok(())
}

/// Reads what [`write_body`] wrote, for a body of at most `values` values.
pub(crate) fn read_body(cursor: &mut Cursor<'_>, values: usize) -> Result<Vec<u8>> {
    let head = cursor.number()?;
    let length =
        usize::try_from(head >> 1).map_err(|_| Error(c"the length of a body is too large"))?;
    let stored = cursor.bytes(length)?;
    if head & 1 == 0 {
        return Ok(stored.to_vec());
    }
    // A value has at most four bytes of a code and eight of a literal, a table 2^16 entries; the
    // parameters of regression are fewer than the values.
    let most = values
        .saturating_mul(48)
        .saturating_add(huffman::LARGEST_TABLE * 4);
    zstd::bulk::decompress(stored, most).map_err(|_| Error(c"the body is not a valid zstd frame"))
}
