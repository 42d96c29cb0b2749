//! Patch-based hierarchies (AMReX) that a running program writes: the boxes of all, the values of each
//! rank's own.

#![allow(non_camel_case_types)] // the names are C's

use std::ffi::{c_char, c_void};

use ambar::codec::CodecChain;
use ambar::kinds::amr::patches::{
    Covered, IndexBox, PatchHierarchy, PatchLevel, RankPatchOptions, RankPatches,
};
use ambar::kinds::bound::{Compression, ErrorBound};
use ambar::metadata::Attributes;
use ambar::{DataType, Error, Result};

use super::arguments::{
    Extensible, Out, ambar_bytes, check_null, exclusive, list, optional_text, text,
};
use super::spec::{ambar_type, dtype};
use super::status::{AMBAR_OK, guard, with_writer};
use super::writer::ambar_writer;

/// Covered cells are left out of fields with an error bound, and kept of others.
pub const AMBAR_COVERED_DEFAULT: i32 = 0;
/// Covered cells are kept.
pub const AMBAR_COVERED_KEEP: i32 = 1;
/// Covered cells are left out: they read as averages of the finer level.
pub const AMBAR_COVERED_DROP: i32 = 2;

/// The levels of a hierarchy of boxes, the same on all ranks. Indices of cells are in x, y, z; in dimensions
/// that are not used 0, and 1 behind the last.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ambar_hierarchy {
    /// Its size: `sizeof(ambar_hierarchy)`.
    pub size: usize,
    /// Dimensions, 1 to 3.
    pub ndim: i32,
    /// Number of levels.
    pub levels: i32,
    /// Lower corner of the problem domain.
    pub lower: [f64; 3],
    /// Upper corner of the problem domain.
    pub upper: [f64; 3],
    /// Of each level 6 numbers: the first cell that it could have, and that behind the last.
    pub domains: *const i64,
    /// Of each level 3 numbers: the sides of a cell.
    pub cell_sizes: *const f64,
    /// Of each level 3 numbers: how many times finer the next level is. Those of the last do not count.
    pub ratios: *const i32,
    /// Of each level the number of its boxes.
    pub boxes: *const i32,
    /// Of each box, level by level, 6 numbers: its first cell, and that behind the last.
    pub corners: *const i64,
    /// Of each box, level by level, the rank that has its values.
    pub ranks: *const u32,
}

/// A field of a hierarchy, or a column of particles.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ambar_field {
    /// Its size: `sizeof(ambar_field)`, the same for all of a list.
    pub size: usize,
    /// Its name.
    pub name: *const c_char,
    /// The type of its values.
    pub r#type: ambar_type,
    /// The absolute error bound that every value keeps; 0: lossless.
    pub error_bound: f64,
    /// The codecs, as `ambar_amr_choose` gives them, where there is no error bound; null: by the type. Not for
    /// particles.
    pub codecs: *const c_char,
}

// SAFETY: the first field is its size; zeros are valid numbers and null pointers.
unsafe impl Extensible for ambar_hierarchy {
    const NAME: &'static str = "ambar_hierarchy";
    const FIRST: usize = size_of::<Self>();
}

// SAFETY: as above.
unsafe impl Extensible for ambar_field {
    const NAME: &'static str = "ambar_field";
    const FIRST: usize = size_of::<Self>();
}

/// One rank's end of a hierarchy that many write.
pub struct ambar_amr {
    patches: RankPatches,
    pub(super) hierarchy: PatchHierarchy,
    pub(super) fields: Vec<(String, DataType)>,
}

/// Defines the group of kind `amr`, layout `patches`, at `path`: `count` fields, each on all boxes. `profile` as in
/// `ambar_spec`, `covered` one of `AMBAR_COVERED_...`: what becomes of cells that the next finer level covers.
/// All ranks do it alike; nothing is communicated.
///
/// # Safety
/// Pointers are null or point to what they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_amr_define(
    writer: *mut ambar_writer,
    path: *const c_char,
    hierarchy: *const ambar_hierarchy,
    count: i32,
    fields: *const ambar_field,
    profile: i32,
    covered: i32,
    amr: *mut *mut ambar_amr,
) -> i32 {
    let body = |writer: &mut ambar_writer| {
        let amr = Out::new(amr, "the place of the hierarchy")?;
        // SAFETY: the caller says so, here and below.
        let path = unsafe { text(path, "the path") }?;
        // SAFETY: as above.
        let given = unsafe { ambar_hierarchy::read_from(hierarchy, "the hierarchy") }?;
        // SAFETY: as above.
        let (hierarchy, owners) = unsafe { given.read() }?;
        // SAFETY: as above.
        let (fields, mut options) = unsafe { fields_of(count, fields, given.ndim) }?;
        options.compression.profile = super::spec::profile(profile)?;
        options.covered = match covered {
            AMBAR_COVERED_DEFAULT => None,
            AMBAR_COVERED_KEEP => Some(Covered::Keep),
            AMBAR_COVERED_DROP => Some(Covered::Drop),
            other => {
                return Err(Error::invalid(format!(
                    "covered cells are kept (1), left out (2), or as the bound says (0), not {other}"
                )));
            }
        };
        let ranks = &mut writer.ranks;
        let patches = RankPatches::declare(ranks, path, (&hierarchy, &owners), &fields, &options)?;
        let made = ambar_amr {
            patches,
            hierarchy,
            fields,
        };
        // SAFETY: as above.
        unsafe { amr.hand_over(made) };
        Ok(())
    };
    // SAFETY: the caller says so.
    unsafe { with_writer(writer, body) }
}

/// Writes a field on all cells of box number `index` of `level`, which is this rank's: `first` is the value of its
/// first cell, and `strides` are the bytes from a cell to the next in x, y and z, so that ghost cells
/// are stepped over. A field is encoded once its last box of a level was given: write field by field.
///
/// # Safety
/// Pointers are null or point to what they say; all values that the strides lead to can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_amr_write(
    amr: *mut ambar_amr,
    writer: *mut ambar_writer,
    level: i32,
    index: i32,
    field: i32,
    first: *const c_void,
    strides: *const i64,
) -> i32 {
    let body = |writer: &mut ambar_writer| {
        // SAFETY: the caller says so, here and below.
        let amr = unsafe { exclusive(amr, "the hierarchy") }?;
        // SAFETY: as above.
        let strides = unsafe { list(strides, 3, "the strides") }?;
        check_null(first, "the data")?;
        let there = |number: i32, what: &str| {
            usize::try_from(number)
                .map_err(|_| Error::invalid(format!("there is no {what} {number}")))
        };
        let (level, index) = (there(level, "level")?, there(index, "box")?);
        let (name, dtype) = (amr.fields.get(there(field, "field")?))
            .ok_or_else(|| Error::invalid(format!("there is no field {field}")))?;
        let size = dtype.size().unwrap_or(1);
        // A box that does not exist is refused before anything is read.
        // SAFETY: the caller says that strides lead to values.
        let read = &mut |at, row: &mut [u8]| unsafe {
            copy_row(first.cast(), strides, (at, size), row);
        };
        amr.patches
            .put(&mut writer.ranks, (level, index, name), read)
    };
    // SAFETY: the caller says so.
    unsafe { with_writer(writer, body) }
}

/// Copies a row of cells along x.
///
/// # Safety
/// All values that the strides lead to can be read.
unsafe fn copy_row(
    first: *const u8,
    strides: &[i64],
    (at, size): ([usize; 3], usize),
    row: &mut [u8],
) {
    let offset = |d: usize| at[d] as i64 * strides[d];
    let start = first.wrapping_offset((offset(0) + offset(1) + offset(2)) as isize);
    if strides[0] == size as i64 {
        // SAFETY: the caller says so.
        row.copy_from_slice(unsafe { std::slice::from_raw_parts(start, row.len()) });
        return;
    }
    for (cell, to) in (0i64..).zip(row.chunks_exact_mut(size)) {
        let from = start.wrapping_offset((cell * strides[0]) as isize);
        // SAFETY: the caller says so.
        to.copy_from_slice(unsafe { std::slice::from_raw_parts(from, size) });
    }
}

/// Ends a hierarchy, and frees it: all of this rank's values were written, else this fails, and so does the
/// commit. Null is nothing.
///
/// # Safety
/// It is null, or from `ambar_amr_define`, and ended once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_amr_end(amr: *mut ambar_amr, writer: *mut ambar_writer) -> i32 {
    if amr.is_null() {
        return AMBAR_OK;
    }
    // SAFETY: `ambar_amr_define` has made this box, and the caller ends it once.
    let amr = unsafe { Box::from_raw(amr) };
    // SAFETY: the caller says so.
    unsafe { with_writer(writer, |writer| amr.patches.finish(&mut writer.ranks)) }
}

/// Chooses codecs for a field without an error bound by its values on one box of `cells` in x, y and z: gives
/// them as text for `ambar_field.codecs`, which must be the same on all ranks.
///
/// # Safety
/// As `ambar_amr_write`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_amr_choose(
    ndim: i32,
    cells: *const i64,
    r#type: ambar_type,
    profile: i32,
    first: *const c_void,
    strides: *const i64,
    json: *mut ambar_bytes,
) -> i32 {
    guard(|| {
        let json = Out::new(json, "the place of the codecs")?;
        // SAFETY: the caller says so, here and below.
        let (cells, strides) = unsafe {
            (
                list(cells, 3, "the cells")?,
                list(strides, 3, "the strides")?,
            )
        };
        check_null(first, "the data")?;
        let ndim = dimensions(ndim)?;
        let dtype = dtype(r#type)?;
        let size = dtype.size().unwrap_or(1);
        let shape = std::array::from_fn(|d| usize::try_from(cells[d]).unwrap_or(0));
        // SAFETY: the caller says that strides lead to values.
        let read = &mut |at, row: &mut [u8]| unsafe {
            copy_row(first.cast(), strides, (at, size), row);
        };
        let chain =
            RankPatches::choose((ndim, shape), &dtype, super::spec::profile(profile)?, read)?;
        let text = chain.to_json(&dtype).to_string();
        // SAFETY: as above.
        unsafe { json.set(text.into_bytes().into()) };
        Ok(())
    })
}

fn dimensions(ndim: i32) -> Result<usize> {
    usize::try_from(ndim)
        .ok()
        .filter(|ndim| (1..=3).contains(ndim))
        .ok_or_else(|| Error::invalid(format!("a hierarchy has 1 to 3 dimensions, not {ndim}")))
}

impl ambar_hierarchy {
    /// The hierarchy, and the ranks of the boxes of each level.
    ///
    /// # Safety
    /// Its pointers are null, or point to what they say.
    pub(super) unsafe fn read(&self) -> Result<(PatchHierarchy, Vec<Vec<u32>>)> {
        let ndim = dimensions(self.ndim)?;
        let count = usize::try_from(self.levels)
            .map_err(|_| Error::invalid(format!("{} levels", self.levels)))?;
        // SAFETY: the caller says so, here and below.
        let domains = unsafe { list(self.domains, 6 * count, "the domains") }?;
        // SAFETY: as above.
        let sizes = unsafe { list(self.cell_sizes, 3 * count, "the sizes of cells") }?;
        // SAFETY: as above.
        let ratios = unsafe { list(self.ratios, 3 * count, "the ratios") }?;
        // SAFETY: as above.
        let counts = unsafe { list(self.boxes, count, "the numbers of boxes") }?;
        let counts = counts.iter().map(|n| usize::try_from(*n).ok());
        let counts: Option<Vec<usize>> = counts.collect();
        let counts =
            counts.ok_or_else(|| Error::invalid("a level has a negative number of boxes"))?;
        let all = counts.iter().sum::<usize>();
        // SAFETY: as above.
        let corners = unsafe { list(self.corners, 6 * all, "the boxes") }?;
        // SAFETY: as above.
        let ranks = unsafe { list(self.ranks, all, "the boxes' ranks") }?;
        let (mut levels, mut owners) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut first = 0;
        for (level, boxes) in counts.into_iter().enumerate() {
            let end = first + boxes;
            levels.push(PatchLevel {
                domain: index_box(&domains[6 * level..]),
                boxes: corners[6 * first..6 * end]
                    .chunks_exact(6)
                    .map(index_box)
                    .collect(),
                cell_size: std::array::from_fn(
                    |d| if d < ndim { sizes[3 * level + d] } else { 0.0 },
                ),
                ratio: std::array::from_fn(|d| match level + 1 < count && d < ndim {
                    true => i64::from(ratios[3 * level + d]),
                    false => 1,
                }),
            });
            owners.push(ranks[first..end].to_vec());
            first = end;
        }
        let hierarchy = PatchHierarchy {
            ndim,
            lower: self.lower,
            upper: self.upper,
            levels,
        };
        Ok((hierarchy, owners))
    }
}

fn index_box(corners: &[i64]) -> IndexBox {
    IndexBox {
        lo: std::array::from_fn(|d| corners[d]),
        hi: std::array::from_fn(|d| corners[3 + d]),
    }
}

/// What fields say: their names and types, and how they are compressed.
///
/// # Safety
/// It is null, or points to `count` fields whose pointers are null or point to texts.
unsafe fn fields_of(
    count: i32,
    fields: *const ambar_field,
    ndim: i32,
) -> Result<(Vec<(String, DataType)>, RankPatchOptions)> {
    // SAFETY: the caller says so, here and below.
    let (columns, compression) = unsafe { columns_of(count, fields) }?;
    let mut options = RankPatchOptions {
        compression,
        more: Attributes::new(),
        ..RankPatchOptions::default()
    };
    // SAFETY: as above.
    let fields = unsafe { ambar_field::list_from(fields, columns.len(), "the fields") }?;
    for (field, (name, dtype)) in fields.iter().zip(&columns) {
        // SAFETY: as above.
        if let Some(codecs) = unsafe { optional_text(field.codecs, "the codecs") }? {
            let chain = CodecChain::parse(codecs, dtype, dimensions(ndim)? + 1)?;
            options.codecs.insert(name.clone(), chain);
        }
    }
    Ok((columns, options))
}

/// Names, types and error bounds.
///
/// # Safety
/// As above.
pub(super) unsafe fn columns_of(
    count: i32,
    fields: *const ambar_field,
) -> Result<(Vec<(String, DataType)>, Compression)> {
    let count = usize::try_from(count).map_err(|_| Error::invalid(format!("{count} fields")))?;
    let mut compression = Compression::default();
    let mut columns = Vec::with_capacity(count);
    // SAFETY: the caller says so, here and below.
    for field in unsafe { ambar_field::list_from(fields, count, "the fields") }? {
        // SAFETY: as above.
        let name = unsafe { text(field.name, "the name of a field") }?.to_owned();
        let bound = field.error_bound;
        if !(bound >= 0.0 && bound.is_finite()) {
            return Err(Error::invalid(format!(
                "an error bound of {bound} for {name:?}; it is a number from 0 on"
            )));
        }
        if bound > 0.0 {
            let bounds = &mut compression.error_bounds;
            bounds.push((name.clone(), ErrorBound::Absolute(bound)));
        }
        columns.push((name, dtype(field.r#type)?));
    }
    Ok((columns, compression))
}
