//! Writing a store: one process' end of it, alone or one of many.

#![allow(non_camel_case_types)] // the names are C's

use std::ffi::{c_char, c_void};
use std::path::Path;

use ambar::array::Region;
use ambar::ranks::{ArrayId, RankWriter};
use ambar::{DataType, Error, Result};

use super::arguments::{Extensible, Out, attributes, check_null, list, text};
use super::blocks::ambar_blocks;
use super::spec::{ambar_options, ambar_spec, byte_count, read_spec, values};
use super::status::{guard, with_writer};

/// A store open for writing: one rank's end of it. One thread at a time may use it.
///
/// After an error of any function that takes it, or a panic, nothing is committed on any rank: `ambar_close` is all
/// that is left, and every other function repeats the error.
pub struct ambar_writer {
    pub(super) ranks: RankWriter,
}

/// An array that was defined since the last commit. Its number is that of no other array of the writer, before or
/// after.
pub type ambar_array = i32;

impl ambar_writer {
    /// An array, the type of its values, and its number of dimensions.
    fn array(&self, array: ambar_array) -> Result<(ArrayId, DataType, usize)> {
        let id = u32::try_from(array).map(ArrayId).map_err(|_| {
            Error::invalid(format!(
                "{array} is not an array; define one with ambar_define"
            ))
        })?;
        let (dtype, ndim) = self.ranks.type_of(id)?;
        Ok((id, dtype.clone(), ndim))
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
    let options = match options.is_null() {
        true => ambar_options::zeroed(),
        // SAFETY: as above.
        false => unsafe { ambar_options::read_from(options, "the options") }?,
    };
    let how = options.ranks(ranks)?;
    match start {
        Start::Create => RankWriter::create(path, &options.create(), how),
        Start::Append => RankWriter::append(path, options.durability(), how),
    }
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
        let writer = Out::new(writer, "the place of the writer")?;
        // SAFETY: the caller says so, here and below.
        let ranks = unsafe { begin(Start::Create, path, options, 1) }?;
        // SAFETY: as above.
        unsafe { writer.hand_over(ambar_writer { ranks }) };
        Ok(())
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
        let writer = Out::new(writer, "the place of the writer")?;
        // SAFETY: the caller says so, here and below.
        let ranks = unsafe { begin(Start::Append, path, options, 1) }?;
        // SAFETY: as above.
        unsafe { writer.hand_over(ambar_writer { ranks }) };
        Ok(())
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
    let body = |writer: &mut ambar_writer| {
        // SAFETY: the caller says so.
        let (path, more) = unsafe { (text(path, "the path")?, attributes(attributes_json)?) };
        writer.ranks.group(path, more)
    };
    // SAFETY: the caller says so.
    unsafe { with_writer(writer, body) }
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
    let body = |writer: &mut ambar_writer| {
        // SAFETY: the caller says so.
        let (path, more) = unsafe { (text(path, "the path")?, attributes(attributes_json)?) };
        writer.ranks.set_attributes(path, more)
    };
    // SAFETY: the caller says so.
    unsafe { with_writer(writer, body) }
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
    let body = |writer: &mut ambar_writer| {
        // SAFETY: the caller says so.
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
    };
    // SAFETY: the caller says so.
    unsafe { with_writer(writer, body) }
}

/// Defines an array, to be written before the next commit. Of many ranks, all define the same ones in the
/// same order; nothing is communicated. `blocks` says who writes what; null: this rank where it is alone,
/// else rank 0, writes all of it. What no rank writes is the fill value, and the array's attribute
/// `ambar.unwritten_values` says how many values that are.
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
    let body = |writer: &mut ambar_writer| {
        let array = Out::new(array, "the place of the array")?;
        // SAFETY: the caller says so, here and below.
        let (path, spec) = unsafe { (text(path, "the path")?, read_spec(spec)?) };
        // SAFETY: as above.
        let held = unsafe { blocks.as_ref() }.map(|blocks| &blocks.0);
        let id = writer.ranks.declare(path, &spec, held)?;
        let number = ambar_array::try_from(id.0)
            .map_err(|_| Error::limit("a writer defines 2^31 arrays at most; open another"))?;
        // SAFETY: as above.
        unsafe { array.set(number) };
        Ok(())
    };
    // SAFETY: the caller says so.
    unsafe { with_writer(writer, body) }
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
    let body = |writer: &mut ambar_writer| {
        let (id, dtype, ndim) = writer.array(array)?;
        // SAFETY: the caller says so, here and below.
        let region = unsafe { region(start, count, ndim) }?;
        // SAFETY: as above.
        let values = unsafe { values(data, &dtype, &region.shape) }?;
        writer.ranks.write(id, &region, values)
    };
    // SAFETY: the caller says so.
    unsafe { with_writer(writer, body) }
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
    let body = |writer: &mut ambar_writer| {
        let (id, dtype, ndim) = writer.array(array)?;
        // SAFETY: the caller says so, here and below.
        let region = unsafe { region(start, count, ndim) }?;
        // SAFETY: as above.
        let strides = unsafe { list(strides, ndim, "the strides") }?;
        // Before values are read: a region that is too large must not be.
        writer.ranks.check_region(id, &region)?;
        let size = dtype.size().unwrap_or(1);
        let mut values = Vec::new();
        values
            .try_reserve_exact(byte_count(&dtype, &region.shape)?)
            .map_err(|_| Error::limit("there is no memory for the values"))?;
        if region.values() > 0 {
            check_null(first, "the data")?;
            // SAFETY: the caller says that the strides lead to values only.
            unsafe { gather(&mut values, first.cast(), (&region.shape, strides), size) };
        }
        writer.ranks.write(id, &region, &values)
    };
    // SAFETY: the caller says so.
    unsafe { with_writer(writer, body) }
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
    // SAFETY: the caller says so.
    unsafe { with_writer(writer, |writer| writer.ranks.commit_alone()) }
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
