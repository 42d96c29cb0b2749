//! Patch-based AMR hierarchies (AMReX) written in situ: all ranks know all boxes, each rank writes the values of its own.

#![allow(non_camel_case_types)] // names of the C API

use std::ffi::{c_char, c_void};

use ambar::codec::CodecChain;
use ambar::kinds::amr::patches::{
    Covered, FieldBox, IndexBox, OwnedHierarchy, PatchHierarchy, PatchLevel, RankPatchOptions,
    RankPatches,
};
use ambar::kinds::bound::Compression;
use ambar::metadata::Attributes;
use ambar::{DataType, Error, Result};

use super::arguments::{Extensible, ambar_bytes, check_null, from_c};
use super::spec::{ambar_type, dtype, field_bounds};
use super::status::{AMBAR_OK, guard, with_writer};
use super::writer::ambar_writer;

/// Drops covered cells of fields with an error bound, and keeps those of other fields.
pub const AMBAR_COVERED_DEFAULT: i32 = 0;
/// Keeps covered cells.
pub const AMBAR_COVERED_KEEP: i32 = 1;
/// Drops covered cells: they read as averages of the finer level.
pub const AMBAR_COVERED_DROP: i32 = 2;

/// The levels of a hierarchy of boxes, equal on all ranks. Cell indices are in x, y, z. In unused dimensions the first index
/// is 0 and the exclusive end is 1.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ambar_hierarchy {
    /// `sizeof(ambar_hierarchy)`.
    pub size: usize,
    /// Dimensions, 1 to 3.
    pub ndim: i32,
    /// Number of levels.
    pub levels: i32,
    /// Lower corner of the problem domain.
    pub lower: [f64; 3],
    /// Upper corner of the problem domain.
    pub upper: [f64; 3],
    /// For each level, 6 numbers: first cell and exclusive end of its domain.
    pub domains: *const i64,
    /// For each level, 3 numbers: the sides of a cell.
    pub cell_sizes: *const f64,
    /// For each level, 3 numbers: the refinement ratio to the next level. Ignored for the last level.
    pub ratios: *const i32,
    /// For each level, the number of its boxes.
    pub boxes: *const i32,
    /// For each box, level by level, 6 numbers: first cell and exclusive end.
    pub corners: *const i64,
    /// For each box, level by level, the rank that owns its values.
    pub ranks: *const u32,
}

/// A field of a hierarchy, or a column of particles.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ambar_field {
    /// `sizeof(ambar_field)`, equal for all fields of a list.
    pub size: usize,
    /// Name of the field.
    pub name: *const c_char,
    /// Type of the values.
    pub r#type: ambar_type,
    /// The error bound, as in `ambar_spec`, such as `"1e-3 relative"`; null: lossless. Fields of a hierarchy take bounds
    /// of levels and boxes after it: `"1e-3 relative, @2:=1e-4 relative, @[0.2:0.4, :, :]=0"`. `@2` is a level, `@2:` and
    /// `@2:4` are levels, `@[0.2:0.4, :, :]` are the cells that touch a box in the units of `lower` and `upper`, and
    /// `@2:@[0.2:0.4, :, :]` are those on some levels. Where parts overlap, the strictest bound applies. A level that does
    /// not exist is an error, except in a range without an end. `ambar_select_bounds` makes this text from keys such as
    /// `density@2:`.
    pub error_bound: *const c_char,
    /// Two numbers, in the unit of the values: the lowest and the highest finite value of the field, on all ranks. Only
    /// bounds such as `"1e-3 of range"` and `"80 dB"` need it; otherwise null.
    pub value_range: *const f64,
    /// Codecs from `ambar_amr_choose`, for fields without an error bound; null: the default of the type. Not for
    /// particles.
    pub codecs: *const c_char,
}

// SAFETY: `repr(C)` with the `usize` field `size` first; all other fields are numbers, arrays of numbers and raw pointers,
// for which zeros are valid.
unsafe impl Extensible for ambar_hierarchy {
    const NAME: &'static str = "ambar_hierarchy";
    const FIRST: usize = size_of::<Self>();
}

// SAFETY: `repr(C)` with the `usize` field `size` first; all other fields are numbers and raw pointers, for which zeros are
// valid.
unsafe impl Extensible for ambar_field {
    const NAME: &'static str = "ambar_field";
    const FIRST: usize = size_of::<Self>();
}

/// A hierarchy that is being written, as seen by one rank.
pub struct ambar_amr {
    patches: RankPatches,
    pub(super) hierarchy: PatchHierarchy,
    pub(super) fields: Vec<(String, DataType)>,
}

/// Defines a group of kind `amr` and layout `patches` at `path`, with `count` fields on all boxes. `profile` is as in
/// `ambar_spec`. `covered` is one of `AMBAR_COVERED_...`: how cells that the next finer level covers are stored. All ranks
/// call it with equal arguments; it does not communicate. End the hierarchy with `ambar_amr_end`.
///
/// # Safety
/// Pointers follow the contract of the API.
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
        from_c!(amr = out(amr, "the place of the hierarchy"));
        from_c!(path = text(path, "the path"));
        from_c!(given = structure(ambar_hierarchy::read_from, hierarchy, "the hierarchy"));
        // SAFETY: the caller's structure has pointers that follow the contract of the API, and `given` is a copy of it.
        let (hierarchy, owners) = unsafe { given.read() }?;
        // SAFETY: the caller passes null, or `count` fields whose pointers follow the contract of the API.
        let (fields, mut options) = unsafe { fields_of(count, fields, given.ndim) }?;
        options.compression.profile = super::spec::profile(profile)?;
        options.covered = match covered {
            AMBAR_COVERED_DEFAULT => None,
            AMBAR_COVERED_KEEP => Some(Covered::Keep),
            AMBAR_COVERED_DROP => Some(Covered::Drop),
            other => {
                return Err(Error::invalid(format!(
                    "invalid treatment of covered cells: {other}; must be AMBAR_COVERED_DEFAULT (0), \
                     AMBAR_COVERED_KEEP (1) or AMBAR_COVERED_DROP (2)"
                )));
            }
        };
        let ranks = &mut writer.ranks;
        let owned = OwnedHierarchy {
            hierarchy: &hierarchy,
            owners: &owners,
        };
        let patches = RankPatches::declare(ranks, path, owned, &fields, &options)?;
        let defined = ambar_amr {
            patches,
            hierarchy,
            fields,
        };
        amr.hand_over(defined);
        Ok(())
    };
    with_writer!(writer, body)
}

/// Writes a field on all cells of the box with number `index` of `level`, which this rank owns. `first` points to the value
/// of the box's first cell, and `strides` are the bytes between adjacent cells in x, y and z, which skip ghost cells. A field
/// is encoded after its last box of a level is written, so write field by field.
///
/// # Safety
/// Pointers follow the contract of the API; all values that the strides reach can be read.
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
        from_c!(amr = exclusive(amr, "the hierarchy"));
        from_c!(strides = list(strides, 3, "the strides"));
        check_null(first, "the data")?;
        let number = |number: i32, what: &str| {
            usize::try_from(number).map_err(|_| {
                Error::invalid(format!(
                    "{what} {number} does not exist; expected a number >= 0"
                ))
            })
        };
        let (level, index) = (number(level, "level")?, number(index, "box")?);
        let (name, dtype) = (amr.fields.get(number(field, "field")?)).ok_or_else(|| {
            Error::invalid(format!(
                "field {field} does not exist; expected a number below {}",
                amr.fields.len()
            ))
        })?;
        let size = dtype.size().unwrap_or(1);
        let values = Strided {
            first: first.cast(),
            strides,
            size,
        };
        // SAFETY: `put` passes cells of the box only, after it checked that the box exists and belongs to this rank. The
        // caller promises that the strides reach readable values for all cells of the box.
        let read = &mut |at, row: &mut [u8]| unsafe { values.copy_row(at, row) };
        amr.patches.put(
            &mut writer.ranks,
            FieldBox {
                level,
                index,
                field: name,
            },
            read,
        )
    };
    with_writer!(writer, body)
}

/// Values of the caller with constant strides in three dimensions.
struct Strided<'a> {
    /// The value of the first cell.
    first: *const u8,
    /// Bytes between adjacent cells in x, y and z.
    strides: &'a [i64],
    /// Bytes of a value.
    size: usize,
}

impl Strided<'_> {
    /// Copies a row of cells along x that begins at `at`.
    ///
    /// # Safety
    /// The values of all cells of the row can be read.
    unsafe fn copy_row(&self, at: [usize; 3], row: &mut [u8]) {
        let (strides, size) = (self.strides, self.size);
        let offset = |d: usize| at[d] as i64 * strides[d];
        let offset = offset(0) + offset(1) + offset(2);
        let start = self.first.wrapping_offset(offset as isize);
        if strides[0] == size as i64 {
            // SAFETY: the values of the row are contiguous, since the stride is their size, and can be read: the contract
            // of this function.
            row.copy_from_slice(unsafe { std::slice::from_raw_parts(start, row.len()) });
            return;
        }
        for (cell, to) in (0i64..).zip(row.chunks_exact_mut(size)) {
            let from = start.wrapping_offset((cell * strides[0]) as isize);
            // SAFETY: `from` is the value of a cell of the row, of which `size` bytes can be read: the contract of this
            // function.
            to.copy_from_slice(unsafe { std::slice::from_raw_parts(from, size) });
        }
    }
}

/// Ends a hierarchy, and releases it. If values of this rank are missing, this fails, and so does the commit. Null is
/// ignored.
///
/// # Safety
/// `amr` is null, or from `ambar_amr_define`, and is ended once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_amr_end(amr: *mut ambar_amr, writer: *mut ambar_writer) -> i32 {
    from_c!(amr = owned(amr));
    let Some(amr) = amr else {
        return AMBAR_OK;
    };
    let body = |writer: &mut ambar_writer| amr.patches.finish(&mut writer.ranks);
    with_writer!(writer, body)
}

/// Chooses codecs for a field without an error bound from its values on one box of `cells` in x, y and z. Returns JSON text
/// for `ambar_field.codecs`, which must be equal on all ranks.
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
        from_c!(json = out(json, "the place of the codecs"));
        from_c!(cells = list(cells, 3, "the cells"));
        from_c!(strides = list(strides, 3, "the strides"));
        check_null(first, "the data")?;
        let ndim = dimensions(ndim)?;
        let dtype = dtype(r#type)?;
        let size = dtype.size().unwrap_or(1);
        let cells = cells[..ndim].iter();
        let shape: Vec<usize> = cells.map(|n| usize::try_from(*n).unwrap_or(0)).collect();
        let values = Strided {
            first: first.cast(),
            strides,
            size,
        };
        // SAFETY: `choose` passes cells of the box only, for which the caller promises that the strides reach readable values.
        let read = &mut |at, row: &mut [u8]| unsafe { values.copy_row(at, row) };
        let chain = RankPatches::choose(&shape, &dtype, super::spec::profile(profile)?, read)?;
        let text = chain.to_json(&dtype).to_string();
        json.set(text.into_bytes().into());
        Ok(())
    })
}

fn dimensions(ndim: i32) -> Result<usize> {
    usize::try_from(ndim)
        .ok()
        .filter(|ndim| (1..=3).contains(ndim))
        .ok_or_else(|| {
            Error::invalid(format!(
                "expected 1 to 3 dimensions of a hierarchy, found {ndim}"
            ))
        })
}

impl ambar_hierarchy {
    /// The hierarchy, and the owners of the boxes of each level.
    ///
    /// # Safety
    /// Its pointers follow the contract of the API.
    pub(super) unsafe fn read(&self) -> Result<(PatchHierarchy, Vec<Vec<u32>>)> {
        let ndim = dimensions(self.ndim)?;
        let count = usize::try_from(self.levels)
            .map_err(|_| Error::invalid(format!("negative number of levels: {}", self.levels)))?;
        from_c!(domains = list(self.domains, 6 * count, "the domains"));
        from_c!(sizes = list(self.cell_sizes, 3 * count, "the sizes of cells"));
        from_c!(ratios = list(self.ratios, 3 * count, "the ratios"));
        from_c!(counts = list(self.boxes, count, "the numbers of boxes"));
        let counts = counts.iter().map(|n| usize::try_from(*n).ok());
        let counts: Option<Vec<usize>> = counts.collect();
        let counts = counts.ok_or_else(|| Error::invalid("negative number of boxes of a level"))?;
        let all = counts.iter().sum::<usize>();
        from_c!(corners = list(self.corners, 6 * all, "the boxes"));
        from_c!(ranks = list(self.ranks, all, "the boxes' ranks"));
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

/// Names, types and compression of fields.
///
/// # Safety
/// `fields` is null, or refers to `count` fields whose pointers follow the contract of the API.
unsafe fn fields_of(
    count: i32,
    fields: *const ambar_field,
    ndim: i32,
) -> Result<(Vec<(String, DataType)>, RankPatchOptions)> {
    // SAFETY: this function has the same contract as `columns_of`.
    let (columns, compression) = unsafe { columns_of(count, fields) }?;
    let mut options = RankPatchOptions {
        compression,
        more: Attributes::new(),
        ..RankPatchOptions::default()
    };
    let count = columns.len();
    from_c!(fields = structures(ambar_field::list_from, fields, count, "the fields"));
    for (field, (name, dtype)) in fields.iter().zip(&columns) {
        from_c!(codecs = optional_text(field.codecs, "the codecs"));
        if let Some(codecs) = codecs {
            let chain = CodecChain::parse(codecs, dtype, dimensions(ndim)? + 1)?;
            options.codecs.insert(name.clone(), chain);
        }
    }
    Ok((columns, options))
}

/// Names, types and error bounds of columns.
///
/// # Safety
/// `fields` is null, or refers to `count` fields whose pointers follow the contract of the API.
pub(super) unsafe fn columns_of(
    count: i32,
    fields: *const ambar_field,
) -> Result<(Vec<(String, DataType)>, Compression)> {
    let count = usize::try_from(count)
        .map_err(|_| Error::invalid(format!("negative number of fields: {count}")))?;
    let mut compression = Compression::default();
    let mut columns = Vec::with_capacity(count);
    from_c!(fields = structures(ambar_field::list_from, fields, count, "the fields"));
    for field in fields {
        from_c!(name = text(field.name, "the name of a field"));
        let name = name.to_owned();
        from_c!(bound = optional_text(field.error_bound, "the error bound of a field"));
        from_c!(range = optional_list(field.value_range, 2, "the value range of a field"));
        if let Some(text) = bound {
            let bounds = field_bounds(text, range).map_err(|error| error.at_node(&name[..]))?;
            if !bounds.loosest().is_lossless() {
                compression.error_bounds.extend(bounds.named(&name));
            }
        }
        columns.push((name, dtype(field.r#type)?));
    }
    Ok((columns, compression))
}
