//! Lossless compression of the connectivity of simplex meshes: edges, triangles and tetrahedra.
//!
//! A traversal visits the cells, from each cell across its facets to its neighbours. The cell behind a facet has one
//! further corner, which is usually predictable from the facets around. The order of cells, and that of the corners of each
//! cell, are coded as distances from those of neighbours. Any input round trips, but input that is not a mesh compresses
//! worse than with other codecs.
//!
//! `docs/format.md`, chapter 9, specifies the streams; `docs/decisions/0016-corners-of-simplices.md` has measurements.

mod coder;
mod encoder_mesh;
mod facets;
mod free_indices;
mod models;
#[cfg(test)]
mod tests;
mod traversal;
mod values;

use crate::entropy::bitio::{Cursor, write_number};
use crate::entropy::range_coder::{BinaryDecoder, BinaryEncoder};
use crate::error::{Error, Result, corrupt, invalid};
use crc_fast::crc32_iscsi as crc32c;
use encoder_mesh::EncoderMesh;
use facets::Facet;
use free_indices::FreeIndices;
use traversal::{Extent, Mesh, Row, Traversal};

pub use values::Corner;

/// The version of streams that this library writes and reads.
pub const VERSION: u8 = 1;

/// The numbers of corners of a cell: edges, triangles, tetrahedra.
pub const WIDTHS: std::ops::RangeInclusive<usize> = 2..=4;

/// The flag of meshes whose neighbouring cells have distant indices.
const CELLS_SCATTERED: u8 = 1;
/// The flag of meshes whose cells have corners with distant values.
const POINTS_SCATTERED: u8 = 2;

/// Maximum number of cells, because ends of contacts of facets are numbered by 32 bits.
const MAX_ROWS: usize = 1 << 27;

/// Buffers of the encoder and the decoder. Reuse a workspace for all streams, to allocate memory once.
#[derive(Default)]
pub struct Workspace {
    pairs: Traversal<1>,
    triangles: Traversal<2>,
    tetrahedra: Traversal<3>,
}

/// Encodes cells of `width` corners.
///
/// # Errors
/// `Invalid` if `width` is not one of [`WIDTHS`], if a cell is incomplete, or if there are more than 2^27 cells.
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
        return Err(invalid!(
            "found {} corners for cells of {width}; expected cells of 2, 3 or 4 corners, and only whole cells",
            corners.len()
        ));
    }
    if corners.len() / width > MAX_ROWS {
        return Err(invalid!(
            "found {} cells; expected at most {MAX_ROWS}; encode the cells in several streams",
            corners.len() / width
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
    let flags = flag(extent.has_scattered_cells, CELLS_SCATTERED)
        | flag(extent.has_scattered_points, POINTS_SCATTERED);
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
    walk: &mut Traversal<F>,
    coder: &mut BinaryEncoder,
    ranks: &[u32],
    points: usize,
) -> Result<Extent> {
    let mut mesh = EncoderMesh::<F>::new(ranks, points);
    let extent = mesh.extent();
    walk.run(coder, &mut mesh, extent)?;
    Ok(extent)
}

/// The contents of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Bytes of a corner: 4 or 8.
    pub value_size: usize,
    /// Corners of a cell.
    pub width: usize,
    /// Number of cells.
    pub cells: usize,
}

/// The parts of a stream.
struct ParsedStream<'a> {
    value_size: usize,
    width: usize,
    extent: Extent,
    coded: &'a [u8],
}

fn parse(stream: &[u8]) -> Result<ParsedStream<'_>> {
    let mut cursor = Cursor::verified(stream)?;
    let [version, size, width, flags] = [
        cursor.byte()?,
        cursor.byte()?,
        cursor.byte()?,
        cursor.byte()?,
    ];
    if version != VERSION {
        return Err(Error::UnsupportedVersion {
            found: version,
            supported: VERSION,
        });
    }
    let (value_size, width) = (usize::from(size), usize::from(width));
    if !matches!(value_size, 4 | 8) || !WIDTHS.contains(&width) {
        return Err(corrupt!(
            "found cells of {width} corners of {value_size} bytes; expected 2 to 4 corners of 4 or 8 bytes"
        ));
    }
    if flags & !(CELLS_SCATTERED | POINTS_SCATTERED) != 0 {
        return Err(Error::ReservedBits {
            field: "flags",
            found: flags,
            reserved: !(CELLS_SCATTERED | POINTS_SCATTERED),
        });
    }
    let cells = cursor.number_to(MAX_ROWS)?;
    let extent = Extent {
        cells,
        points: cursor.number_to(cells * width)?,
        has_scattered_cells: flags & CELLS_SCATTERED != 0,
        has_scattered_points: flags & POINTS_SCATTERED != 0,
    };
    let length = cursor.number_to(cursor.0.len())?;
    if length != cursor.0.len() {
        return Err(corrupt!(
            "expected {length} bytes until the end of the stream; found {}",
            cursor.0.len()
        ));
    }
    Ok(ParsedStream {
        value_size,
        width,
        extent,
        coded: cursor.0,
    })
}

/// Reads the header of a stream. Its checksum is verified.
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

/// Decodes a stream of exactly `out.len()` corners of this type, with any number of corners per cell.
///
/// # Errors
/// `Corrupt` if the stream is damaged or truncated, or holds another number or type of corners; `UnsupportedVersion`.
pub fn decode<T: Corner>(stream: &[u8], out: &mut [T], workspace: &mut Workspace) -> Result<()> {
    T::decode(stream, out, workspace)
}

fn decode_rows<T: Corner>(stream: &[u8], out: &mut [T], workspace: &mut Workspace) -> Result<()> {
    let parts = parse(stream)?;
    let extent = parts.extent;
    if parts.value_size != T::SIZE || extent.cells * parts.width != out.len() {
        return Err(corrupt!(
            "the stream holds {} cells of {} corners of {} bytes; expected {} corners of {} bytes; \
             inspect the stream first",
            extent.cells,
            parts.width,
            parts.value_size,
            out.len(),
            T::SIZE
        ));
    }
    let mut coder = BinaryDecoder::new(parts.coded);
    let mut values = Vec::new();
    values::code(&mut coder, &[], extent.points, &mut values)?;
    let mut mesh = DecoderMesh {
        values: &values,
        numbered_values: Vec::with_capacity(extent.points),
        out,
    };
    match parts.width {
        2 => workspace.pairs.run(&mut coder, &mut mesh, extent),
        3 => workspace.triangles.run(&mut coder, &mut mesh, extent),
        _ => workspace.tetrahedra.run(&mut coder, &mut mesh, extent),
    }?;
    coder.finish()
}

/// The mesh that a decoder reconstructs.
struct DecoderMesh<'a, T> {
    /// The value of each point, by rank.
    values: &'a [T],
    /// The value of each point, by number.
    numbered_values: Vec<T>,
    out: &'a mut [T],
}

impl<T: Corner, const F: usize> Mesh<F> for DecoderMesh<'_, T> {
    fn cell_behind(&mut self, _: &Facet<F>, _: &FreeIndices) -> Option<u32> {
        None
    }

    fn row(&self, _: u32) -> Row {
        Row::default()
    }

    fn visit_point(&mut self, rank: u32, _: u32) {
        self.numbered_values.push(self.values[rank as usize]);
    }

    #[inline(always)]
    fn visit_cell(&mut self, row: usize, corners: &[u32]) {
        let out = &mut self.out[row * (F + 1)..][..F + 1];
        for (value, corner) in out.iter_mut().zip(corners) {
            *value = self.numbered_values[*corner as usize];
        }
    }
}
