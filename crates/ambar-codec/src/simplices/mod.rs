//! Corners of simplices, without loss: triangles and tetrahedra as a walk from cell to cell.
//!
//! The cells of a mesh, each a row of whole numbers that name its points, are met one after the other,
//! behind facets of those before: of a cell behind a facet only one corner is left to be told, which
//! mostly is one that lies behind a ridge of the facet. What a walk loses, the order of the rows and of
//! the corners in each, is told besides, by distances from what touches. Any rows come back, those that
//! are no mesh as well, but these take more room than other codecs need.
//!
//! `docs/format.md`, chapter 9, says what is in a stream; `docs/decisions/0016` what was measured.

mod facets;
mod known;
mod models;
mod places;
mod side;
#[cfg(test)]
mod tests;
mod values;
mod walk;

use crate::entropy::bitio::{Cursor, write_number};
use crate::entropy::range_coder::{BinaryDecoder, BinaryEncoder};
use crate::error::{Corrupt, Invalid, Result, UnsupportedVersion};
use crc_fast::crc32_iscsi as crc32c;
use facets::Facet;
use known::Known;
use places::Places;
use walk::{Extent, Mesh, Row, Walk};

pub use values::Corner;

/// The version of the streams that are written, and the newest that is read.
pub const VERSION: u8 = 1;

/// Widths of rows: pairs, triangles, tetrahedra.
pub const WIDTHS: std::ops::RangeInclusive<usize> = 2..=4;

/// Flags: cells that touch have rows far from each other; corners of a cell have values far from each
/// other.
const CELLS_SCATTERED: u8 = 1;
const POINTS_SCATTERED: u8 = 2;

/// Rows at most: the ends of their facets' contacts are numbered by 32 bits.
const MOST_ROWS: usize = 1 << 27;

/// What is kept from one stream to the next, so that nothing is allocated for most of them.
#[derive(Default)]
pub struct Workspace {
    pairs: Walk<1>,
    triangles: Walk<2>,
    tetrahedra: Walk<3>,
}

/// Encodes rows of `width` corners.
///
/// # Errors
/// `Invalid` where there are no such rows.
pub fn encode<T: Corner>(
    corners: &[T],
    width: usize,
    workspace: &mut Workspace,
) -> Result<Vec<u8>> {
    T::encode(corners, width, workspace)
}

fn encode_rows<T: Corner>(
    corners: &[T],
    width: usize,
    workspace: &mut Workspace,
) -> Result<Vec<u8>> {
    if !WIDTHS.contains(&width) || !corners.len().is_multiple_of(width) {
        return Err(Invalid("expected cells of 2, 3 or 4 corners"));
    }
    if corners.len() / width > MOST_ROWS {
        return Err(Invalid(
            "more than 2^27 cells; encode the cells in several streams",
        ));
    }
    let (values, ranks) = values::ranked(corners);
    let mut coder = BinaryEncoder::new();
    values::code::<T, _>(&mut coder, &values, values.len(), &mut Vec::new())?;
    let points = values.len();
    let extent = match width {
        2 => write(&mut workspace.pairs, &mut coder, &ranks, points),
        3 => write(&mut workspace.triangles, &mut coder, &ranks, points),
        _ => write(&mut workspace.tetrahedra, &mut coder, &ranks, points),
    }?;
    let coded = coder.finish();
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    let flags = flag(extent.cells_scattered, CELLS_SCATTERED)
        | flag(extent.points_scattered, POINTS_SCATTERED);
    let mut stream = vec![VERSION, T::SIZE as u8, width as u8, flags];
    write_number(extent.cells as u64, &mut stream);
    write_number(extent.points as u64, &mut stream);
    write_number(coded.len() as u64, &mut stream);
    stream.extend_from_slice(&coded);
    let checksum = crc32c(&stream);
    stream.extend_from_slice(&checksum.to_le_bytes());
    Ok(stream)
}

fn write<const F: usize>(
    walk: &mut Walk<F>,
    coder: &mut BinaryEncoder,
    ranks: &[u32],
    points: usize,
) -> Result<Extent> {
    let mut mesh = Known::<F>::new(ranks, points);
    let extent = mesh.extent();
    walk.run(coder, &mut mesh, extent)?;
    Ok(extent)
}

/// What a stream says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Bytes of a corner: 4 or 8.
    pub value_size: usize,
    /// Corners of a cell.
    pub width: usize,
    /// Number of cells.
    pub cells: usize,
}

/// A stream taken apart: what it is of, and what is coded.
struct Parts<'a> {
    value_size: usize,
    width: usize,
    extent: Extent,
    coded: &'a [u8],
}

fn parse(stream: &[u8]) -> Result<Parts<'_>> {
    let mut cursor = Cursor::verified(stream)?;
    let [version, size, width, flags] = [
        cursor.byte()?,
        cursor.byte()?,
        cursor.byte()?,
        cursor.byte()?,
    ];
    if version != VERSION {
        return Err(UnsupportedVersion {
            found: version,
            supported: VERSION,
        });
    }
    let (value_size, width) = (usize::from(size), usize::from(width));
    if !matches!(value_size, 4 | 8) || !WIDTHS.contains(&width) {
        return Err(Corrupt("unknown kind of corners"));
    }
    if flags & !(CELLS_SCATTERED | POINTS_SCATTERED) != 0 {
        return Err(Corrupt("reserved bits are set in the stream's flags"));
    }
    let cells = cursor.number_to(MOST_ROWS)?;
    let extent = Extent {
        cells,
        points: cursor.number_to(cells * width)?,
        cells_scattered: flags & CELLS_SCATTERED != 0,
        points_scattered: flags & POINTS_SCATTERED != 0,
    };
    if cursor.number_to(cursor.0.len())? != cursor.0.len() {
        return Err(Corrupt("expected the end of the stream; found more bytes"));
    }
    Ok(Parts {
        value_size,
        width,
        extent,
        coded: cursor.0,
    })
}

/// What the stream says of itself. Its checksum is verified.
///
/// # Errors
/// `Corrupt`, `UnsupportedVersion`.
pub fn inspect(stream: &[u8]) -> Result<Info> {
    let parts = parse(stream)?;
    Ok(Info {
        value_size: parts.value_size,
        width: parts.width,
        cells: parts.extent.cells,
    })
}

/// Decodes a stream of exactly `out.len()` corners of this type, whatever the width of their rows.
///
/// # Errors
/// `Corrupt` where the stream is damaged, cut short, or holds other values; `UnsupportedVersion`.
pub fn decode<T: Corner>(stream: &[u8], out: &mut [T], workspace: &mut Workspace) -> Result<()> {
    T::decode(stream, out, workspace)
}

fn decode_rows<T: Corner>(stream: &[u8], out: &mut [T], workspace: &mut Workspace) -> Result<()> {
    let parts = parse(stream)?;
    let extent = parts.extent;
    if parts.value_size != T::SIZE || extent.cells * parts.width != out.len() {
        return Err(Corrupt(
            "the stream holds another number or type of corners",
        ));
    }
    let mut coder = BinaryDecoder::new(parts.coded);
    let mut values = Vec::new();
    values::code(&mut coder, &[], extent.points, &mut values)?;
    let mut mesh = Found {
        values: &values,
        of_points: Vec::with_capacity(extent.points),
        out,
    };
    match parts.width {
        2 => workspace.pairs.run(&mut coder, &mut mesh, extent),
        3 => workspace.triangles.run(&mut coder, &mut mesh, extent),
        _ => workspace.tetrahedra.run(&mut coder, &mut mesh, extent),
    }?;
    coder.finish()
}

/// The mesh that a reader learns.
struct Found<'a, T> {
    /// By the ranks of points.
    values: &'a [T],
    /// By their numbers.
    of_points: Vec<T>,
    out: &'a mut [T],
}

impl<T: Corner, const F: usize> Mesh<F> for Found<'_, T> {
    fn behind(&mut self, _: &Facet<F>, _: &Places) -> Option<u32> {
        None
    }

    fn row(&self, _: u32) -> Row {
        Row::default()
    }

    fn met_point(&mut self, rank: u32, _: u32) {
        self.of_points.push(self.values[rank as usize]);
    }

    #[inline(always)]
    fn met_cell(&mut self, row: usize, corners: &[u32]) {
        let out = &mut self.out[row * (F + 1)..][..F + 1];
        for (value, corner) in out.iter_mut().zip(corners) {
            *value = self.of_points[*corner as usize];
        }
    }
}
