//! Writing a store: one process' end of it, alone or one of many.

#![allow(non_camel_case_types)] // the names are C's

use std::ffi::{c_char, c_void};
use std::path::Path;

use ambar::array::Region;
use ambar::ranks::{ArrayId, RankWriter};
use ambar::{DataType, Error, Result};

use super::arguments::{attributes, exclusive, give, list, reference, text};
use super::blocks::ambar_blocks;
use super::spec::{ambar_options, ambar_spec, byte_count, read_spec, values};
use super::status::guard;

/// A store open for writing: one rank's end of it. One thread at a time may use it.
pub struct ambar_writer {
    pub(super) ranks: RankWriter,
    /// Type and dimensions of the arrays that were defined since the last commit.
    /// `None` for those of a hierarchy or of particles.
    arrays: Vec<Option<(DataType, usize)>>,
}

/// An array that was defined since the last commit.
pub type ambar_array = i32;

impl ambar_writer {
    pub(super) fn new(ranks: RankWriter) -> Self {
        Self {
            ranks,
            arrays: Vec::new(),
        }
    }

    /// Arrays are forgotten with a commit.
    pub(super) fn forget(&mut self) {
        self.arrays.clear();
    }

    /// Runs what defines or writes an array; where it fails, nothing can be committed, on no rank.
    fn noting(&mut self, act: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let done = act(self);
        if let Err(error) = &done {
            self.ranks.fail(error);
        }
        done
    }

    /// Counts arrays that were defined in other ways.
    pub(super) fn skip_arrays(&mut self, count: usize) {
        self.arrays.resize(self.arrays.len() + count, None);
    }

    fn array(&self, array: ambar_array) -> Result<(ArrayId, DataType, usize)> {
        let known = usize::try_from(array)
            .ok()
            .and_then(|place| self.arrays.get(place).cloned().flatten());
        let (dtype, ndim) = known.ok_or_else(|| {
            let message = format!("array {array} was not defined since the last commit");
            Error::invalid(message)
        })?;
        Ok((ArrayId(array.unsigned_abs()), dtype, ndim))
    }
}

/// How writing a store begins.
pub(super) enum Start {
    /// With a new store.
    Create,
    /// With one that is there.
    Append,
}

/// Begins to write the store at `path`: the end of it that the only rank has, or rank 0 of `ranks`.
///
/// # Safety
/// Pointers are null or point to what they say.
pub(super) unsafe fn begin(
    start: Start,
    path: *const c_char,
    options: *const ambar_options,
    ranks: u32,
) -> Result<RankWriter> {
    // SAFETY: the caller says so, here and below.
    let path = Path::new(unsafe { text(path, "the path") }?);
    // SAFETY: as above.
    let options = unsafe { options.as_ref() }.copied().unwrap_or_default();
    let how = options.ranks(ranks)?;
    match start {
        Start::Create => RankWriter::create(path, &options.create(), how),
        Start::Append => RankWriter::append(path, options.durability(), how),
    }
}

/// Gives a writer to the caller, who closes it.
///
/// # Safety
/// `writer` is null, or points to where the writer's place may be written.
pub(super) unsafe fn hand_over(made: RankWriter, writer: *mut *mut ambar_writer) -> Result<()> {
    let made = Box::into_raw(Box::new(ambar_writer::new(made)));
    // SAFETY: the caller says so.
    unsafe { give(writer, made, "the place of the writer") }
}

/// Creates a store that one process writes; it appears at `path` with the first commit.
///
/// # Safety
/// Pointers are null or point to what they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_create(
    path: *const c_char,
    options: *const ambar_options,
    writer: *mut *mut ambar_writer,
) -> i32 {
    guard(|| {
        // SAFETY: the caller says so.
        unsafe { hand_over(begin(Start::Create, path, options, 1)?, writer) }
    })
}

/// Opens a store that is there, to add to it with one process. What a killed writer left behind the last
/// commit is cut off.
///
/// # Safety
/// As `ambar_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_append(
    path: *const c_char,
    options: *const ambar_options,
    writer: *mut *mut ambar_writer,
) -> i32 {
    guard(|| {
        // SAFETY: the caller says so.
        unsafe { hand_over(begin(Start::Append, path, options, 1)?, writer) }
    })
}

/// Makes a group, and those above it; `attributes_json` is a JSON object or null. Of many ranks, rank 0
/// does it, for the others it is nothing.
///
/// # Safety
/// Pointers are null or point to what they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_group(
    writer: *mut ambar_writer,
    path: *const c_char,
    attributes_json: *const c_char,
) -> i32 {
    guard(|| {
        // SAFETY: the caller says so, here and below.
        let writer = unsafe { exclusive(writer, "the writer") }?;
        // SAFETY: as above.
        let (path, more) = unsafe { (text(path, "the path")?, attributes(attributes_json)?) };
        writer.ranks.group(path, more)
    })
}

/// Replaces the attributes of a group or an array. Of many ranks, rank 0 does it.
///
/// # Safety
/// Pointers are null or point to what they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_set_attributes(
    writer: *mut ambar_writer,
    path: *const c_char,
    attributes_json: *const c_char,
) -> i32 {
    guard(|| {
        // SAFETY: the caller says so, here and below.
        let writer = unsafe { exclusive(writer, "the writer") }?;
        // SAFETY: as above.
        let (path, more) = unsafe { (text(path, "the path")?, attributes(attributes_json)?) };
        writer.ranks.set_attributes(path, more)
    })
}

/// Makes the group of the next step of the series at `series` (empty: the root), and puts its path, such as
/// `run/step_000000`, with a zero behind it into `path`, which has room for `room` bytes. Of many ranks,
/// rank 0 does it, and tells the others the path. The next commit ends the step.
///
/// # Safety
/// Pointers are null or point to what they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_begin_step(
    writer: *mut ambar_writer,
    series: *const c_char,
    time: f64,
    path: *mut c_char,
    room: usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller says so, here and below.
        let writer = unsafe { exclusive(writer, "the writer") }?;
        // SAFETY: as above.
        let series = unsafe { text(series, "the series") }?;
        // `step_` with its number, and what stands before and behind it.
        if path.is_null() || room < series.len() + 20 {
            let message = format!(
                "a path needs {} bytes of room, not {room}",
                series.len() + 20
            );
            return Err(Error::invalid(message));
        }
        let made = writer.ranks.begin_step(series, time)?;
        let bytes = made.as_bytes();
        let count = bytes.len().min(room - 1);
        // SAFETY: there is room for `count` bytes and one more, as the caller says.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), path.cast(), count);
            path.add(count).write(0);
        }
        Ok(())
    })
}

/// Defines an array, to be written before the next commit. Of many ranks, all define the same ones in the
/// same order; nothing is communicated. `blocks` says who writes what; null: this rank where it is alone,
/// else rank 0, writes all of it. What nobody writes is zero.
///
/// # Safety
/// Pointers are null or point to what they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_define(
    writer: *mut ambar_writer,
    path: *const c_char,
    spec: *const ambar_spec,
    blocks: *const ambar_blocks,
    array: *mut ambar_array,
) -> i32 {
    guard(|| {
        // SAFETY: the caller says so, here and below.
        let writer = unsafe { exclusive(writer, "the writer") }?;
        writer.noting(|writer| {
            // SAFETY: as above.
            let (path, spec) = unsafe { (text(path, "the path")?, reference(spec, "the spec")?) };
            // SAFETY: as above.
            let spec = unsafe { read_spec(spec) }?;
            // SAFETY: as above.
            let held = unsafe { blocks.as_ref() }.map(|blocks| &blocks.0);
            let id = writer.ranks.declare(path, &spec, held)?;
            writer.arrays.push(Some((spec.dtype, spec.shape.len())));
            // SAFETY: as above.
            unsafe { give(array, id.0 as ambar_array, "the place of the array") }
        })
    })
}

/// Writes the region of `count` values from `start` on, in C order; it lies in one of the rank's blocks. Each
/// value is written once before a commit. The data are the caller's again when the function returns.
///
/// # Safety
/// Pointers are null or point to what they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_write(
    writer: *mut ambar_writer,
    array: ambar_array,
    start: *const u64,
    count: *const u64,
    data: *const c_void,
) -> i32 {
    guard(|| {
        // SAFETY: the caller says so, here and below.
        let writer = unsafe { exclusive(writer, "the writer") }?;
        writer.noting(|writer| {
            let (id, dtype, ndim) = writer.array(array)?;
            // SAFETY: as above.
            let region = unsafe { region(start, count, ndim) }?;
            // SAFETY: as above.
            let values = unsafe { values(data, &dtype, &region.shape) }?;
            writer.ranks.write(id, &region, values)
        })
    })
}

/// As `ambar_write`, of values that lie `strides` bytes apart in each dimension, `first` being the first
/// of them: such as the inner cells of an array with ghost cells. Strides may be negative.
///
/// # Safety
/// Pointers are null or point to what they say; all values that the strides lead to can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_write_strided(
    writer: *mut ambar_writer,
    array: ambar_array,
    start: *const u64,
    count: *const u64,
    first: *const c_void,
    strides: *const i64,
) -> i32 {
    guard(|| {
        // SAFETY: the caller says so, here and below.
        let writer = unsafe { exclusive(writer, "the writer") }?;
        writer.noting(|writer| {
            let (id, dtype, ndim) = writer.array(array)?;
            // SAFETY: as above.
            let region = unsafe { region(start, count, ndim) }?;
            // SAFETY: as above.
            let strides = unsafe { list(strides, ndim, "the strides") }?;
            let size = dtype.size().unwrap_or(1);
            let mut values = Vec::new();
            values
                .try_reserve_exact(byte_count(&dtype, &region.shape)?)
                .map_err(|_| Error::limit("there is no memory for the values"))?;
            if region.values() > 0 {
                // SAFETY: the caller says that the strides lead to values only.
                unsafe { reference(first.cast::<u8>(), "the data") }?;
                // SAFETY: as above.
                unsafe { gather(&mut values, first.cast(), (&region.shape, strides), size) };
            }
            writer.ranks.write(id, &region, &values)
        })
    })
}

/// Appends values that lie apart in memory.
///
/// # Safety
/// All values that shape and strides lead to can be read.
unsafe fn gather(
    out: &mut Vec<u8>,
    first: *const u8,
    (shape, strides): (&[u64], &[i64]),
    size: usize,
) {
    let row = |out: &mut Vec<u8>, place: *const u8, bytes: usize| {
        // SAFETY: the caller says that these bytes can be read.
        out.extend_from_slice(unsafe { std::slice::from_raw_parts(place, bytes) });
    };
    match (shape, strides) {
        ([length], [stride]) if *stride == size as i64 => row(out, first, *length as usize * size),
        ([length, shape @ ..], [stride, strides @ ..]) => {
            for index in 0..*length as i64 {
                let place = first.wrapping_offset((index * stride) as isize);
                // SAFETY: as the caller says.
                unsafe { gather(out, place, (shape, strides), size) };
            }
        }
        _ => row(out, first, size),
    }
}

/// A region of an array of `ndim` dimensions.
///
/// # Safety
/// Pointers are null or point to `ndim` numbers.
pub(super) unsafe fn region(start: *const u64, count: *const u64, ndim: usize) -> Result<Region> {
    Ok(Region {
        // SAFETY: the caller says so.
        start: unsafe { list(start, ndim, "the start") }?.to_vec(),
        // SAFETY: the caller says so.
        shape: unsafe { list(count, ndim, "the count") }?.to_vec(),
    })
}

/// Makes all that was written since the last commit visible, at once and durably. One process alone calls
/// it; many use the functions of `ambar_mpi.h`.
///
/// # Safety
/// It is null or a writer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_commit(writer: *mut ambar_writer) -> i32 {
    guard(|| {
        // SAFETY: the caller says so.
        let writer = unsafe { exclusive(writer, "the writer") }?;
        writer.forget();
        writer.ranks.commit_alone()
    })
}

/// Frees a writer, whatever has happened; null is nothing. What was not committed is lost.
///
/// # Safety
/// It is null or a writer, and freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_close(writer: *mut ambar_writer) -> i32 {
    guard(|| {
        if !writer.is_null() {
            // SAFETY: a function of this file has made this box, and the caller frees it once.
            drop(unsafe { Box::from_raw(writer) });
        }
        Ok(())
    })
}
