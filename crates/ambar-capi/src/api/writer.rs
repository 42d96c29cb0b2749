//! Writing a store, with one process or as one of many ranks.

#![allow(non_camel_case_types)] // names of the C API

use std::ffi::{c_char, c_void};
use std::path::Path;

use ambar::array::Region;
use ambar::ranks::{ArrayId, RankWriter};
use ambar::{DataType, Error, Result};
use serde_json::{Number, Value};

use super::arguments::{Extensible, check_null, from_c};
use super::blocks::ambar_blocks;
use super::spec::{
    AMBAR_BOOL, AMBAR_FLOAT64, AMBAR_INT64, ambar_options, ambar_spec, ambar_type, byte_count,
    read_spec, values,
};
use super::status::{guard, with_writer};

/// A store open for writing, as seen by one rank. One thread at a time may use it.
///
/// Between `ambar_commit_begin` and `ambar_commit_wait` only `ambar_commit_test` and `ambar_close` may be called.
///
/// After an error of any function that takes it, nothing is committed on any rank: every other function except `ambar_close`
/// repeats the error.
pub struct ambar_writer {
    pub(super) ranks: RankWriter,
}

/// An array defined since the last commit. A writer never reuses a number.
pub type ambar_array = i32;

impl ambar_writer {
    /// The definition of an array.
    fn array(&self, array: ambar_array) -> Result<DefinedArray> {
        let id = u32::try_from(array).map(ArrayId).map_err(|_| {
            Error::invalid(format!(
                "invalid array: {array}; expected a number from ambar_define"
            ))
        })?;
        let (dtype, ndim) = self.ranks.type_of(id)?;
        Ok(DefinedArray {
            id,
            dtype: dtype.clone(),
            ndim,
        })
    }
}

/// An array that can be written.
struct DefinedArray {
    id: ArrayId,
    dtype: DataType,
    ndim: usize,
}

/// How a store is opened for writing.
pub(super) enum Start {
    /// Creates a store.
    Create,
    /// Opens an existing store.
    Append,
}

/// Opens the store at `path` for writing by `ranks` ranks, of which this is rank 0.
///
/// # Safety
/// Pointers follow the contract of the API.
pub(super) unsafe fn begin(
    start: Start,
    path: *const c_char,
    options: *const ambar_options,
    ranks: u32,
) -> Result<RankWriter> {
    from_c!(path = text(path, "the path"));
    let path = Path::new(path);
    let options = if options.is_null() {
        ambar_options::zeroed()
    } else {
        from_c!(options = structure(ambar_options::read_from, options, "the options"));
        options
    };
    let how = options.ranks(ranks)?;
    match start {
        Start::Create => RankWriter::create(path, &options.create(), how),
        Start::Append => RankWriter::append(path, options.durability(), how),
    }
}

/// Creates a store that one process writes. It appears at `path` with the first commit. Release the writer with `ambar_close`.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_create(
    path: *const c_char,
    options: *const ambar_options,
    writer: *mut *mut ambar_writer,
) -> i32 {
    guard(|| {
        from_c!(writer = out(writer, "the place of the writer"));
        // SAFETY: this function has the same contract as `begin`.
        let ranks = unsafe { begin(Start::Create, path, options, 1) }?;
        writer.hand_over(ambar_writer { ranks });
        Ok(())
    })
}

/// Opens an existing store to which one process appends. Bytes that a killed writer left after the last commit are removed.
/// Release the writer with `ambar_close`.
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
        from_c!(writer = out(writer, "the place of the writer"));
        // SAFETY: this function has the same contract as `begin`.
        let ranks = unsafe { begin(Start::Append, path, options, 1) }?;
        writer.hand_over(ambar_writer { ranks });
        Ok(())
    })
}

/// Creates a group and its parent groups. `attributes_json` is a JSON object or null. Of many ranks, only the call on rank 0 has
/// an effect.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_group(
    writer: *mut ambar_writer,
    path: *const c_char,
    attributes_json: *const c_char,
) -> i32 {
    let body = |writer: &mut ambar_writer| {
        from_c!(path = text(path, "the path"));
        from_c!(more = attributes(attributes_json));
        writer.ranks.group(path, more)
    };
    with_writer!(writer, body)
}

/// Replaces the attributes of a group or an array. Of many ranks, only the call on rank 0 has an effect.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_set_attributes(
    writer: *mut ambar_writer,
    path: *const c_char,
    attributes_json: *const c_char,
) -> i32 {
    let body = |writer: &mut ambar_writer| {
        from_c!(path = text(path, "the path"));
        from_c!(more = attributes(attributes_json));
        writer.ranks.set_attributes(path, more)
    };
    with_writer!(writer, body)
}

/// Creates the group of the next step of the series at `series` (empty: the root), and writes its path, such as
/// `run/step_000000`, with a terminating zero to `path`, a buffer of `room` bytes. Of many ranks, rank 0 calls it and sends the
/// path to the others. The next commit ends the step.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_begin_step(
    writer: *mut ambar_writer,
    series: *const c_char,
    time: f64,
    path: *mut c_char,
    room: usize,
) -> i32 {
    let body = |writer: &mut ambar_writer| {
        from_c!(series = text(series, "the series"));
        // A slash, `step_`, the number and the terminating zero fit into 20 bytes.
        check_room(path, room, series.len() + 20)?;
        let step = writer.ranks.begin_step(series, time)?;
        // SAFETY: `path` is not null and has `room` bytes, which the caller promises.
        unsafe { copy_text(&step, path, room) };
        Ok(())
    };
    with_writer!(writer, body)
}

/// Begins the output `number` of the series of snapshots at the root, and writes the path of its group, such as `output_00010`,
/// with a terminating zero to `path`, a buffer of `room` bytes, at least 20. An output of this number that the store has is
/// replaced, if it has the name `name`, such as `plt00010`; null: any name. All ranks call it with equal arguments; it does not
/// communicate. The next commit ends the output.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_begin_output(
    writer: *mut ambar_writer,
    number: u32,
    name: *const c_char,
    path: *mut c_char,
    room: usize,
) -> i32 {
    let body = |writer: &mut ambar_writer| {
        check_room(path, room, 20)?;
        from_c!(name = optional_text(name, "the name"));
        let step = writer.ranks.begin_output(number, name)?;
        // SAFETY: `path` is not null and has `room` bytes, which the caller promises.
        unsafe { copy_text(&step, path, room) };
        Ok(())
    };
    with_writer!(writer, body)
}

/// Checks the buffer for the path of a group.
pub(super) fn check_room(path: *mut c_char, room: usize, least: usize) -> Result<()> {
    if path.is_null() || room < least {
        return Err(Error::invalid(format!(
            "expected a buffer of at least {least} bytes for the path, found {room}"
        )));
    }
    Ok(())
}

/// Copies a string, cut to the room, and a terminating zero.
///
/// # Safety
/// `path` is not null and has `room` bytes, at least 1.
pub(super) unsafe fn copy_text(step: &str, path: *mut c_char, room: usize) {
    let bytes = step.as_bytes();
    let count = bytes.len().min(room - 1);
    // SAFETY: this function has the same contract; `count` is less than `room`. `bytes` is memory of the library, so they do not
    // overlap.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), path.cast(), count);
        path.add(count).write(0);
    }
}

/// Defines an array, to be written before the next commit. All ranks define equal arrays in equal order; it does not
/// communicate. `blocks` is the decomposition; null: rank 0 writes the whole array. Values that no rank writes read as the fill
/// value, and the array's attribute `ambar.unwritten_values` has their number.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_define(
    writer: *mut ambar_writer,
    path: *const c_char,
    spec: *const ambar_spec,
    blocks: *const ambar_blocks,
    array: *mut ambar_array,
) -> i32 {
    let body = |writer: &mut ambar_writer| {
        from_c!(array = out(array, "the place of the array"));
        from_c!(path = text(path, "the path"));
        // SAFETY: this function has the same contract as `read_spec`.
        let spec = unsafe { read_spec(spec) }?;
        // SAFETY: the caller passes null, or a decomposition that is not released until the function returns; decompositions are
        // immutable.
        let decomposition = unsafe { blocks.as_ref() }.map(|blocks| &blocks.0);
        let id = writer.ranks.declare(path, &spec, decomposition)?;
        let number = ambar_array::try_from(id.0).map_err(|_| {
            Error::limit("expected at most 2^31 arrays of a writer; open another writer")
        })?;
        array.set(number);
        Ok(())
    };
    with_writer!(writer, body)
}

/// Writes the region of `count` values from `start` on, in C order, which must be inside one of the rank's blocks. Each value is
/// written at most once before a commit. The data may be reused when the function returns: with `queue_bytes` they are copied.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_write(
    writer: *mut ambar_writer,
    array: ambar_array,
    start: *const u64,
    count: *const u64,
    data: *const c_void,
) -> i32 {
    let body = |writer: &mut ambar_writer| {
        let DefinedArray { id, dtype, ndim } = writer.array(array)?;
        // SAFETY: `start` and `count` are null, or have one number per dimension of the array, which the header requires.
        let region = unsafe { region(start, count, ndim) }?;
        // SAFETY: `data` is null, or has the values of the region, which the header requires.
        let values = unsafe { values(data, &dtype, &region.shape) }?;
        writer.ranks.write(id, &region, values)
    };
    with_writer!(writer, body)
}

/// As `ambar_write`, without a copy: the values must not change, or be freed, until `ambar_commit_wait` or `ambar_commit` has
/// succeeded, or `ambar_close` has returned. Without `queue_bytes` it is `ambar_write`. It corresponds to a deferred `Put` of
/// ADIOS2, and to `H5Dwrite_async`.
///
/// # Safety
/// Pointers follow the contract of the API; the values stay unchanged as stated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_write_borrowed(
    writer: *mut ambar_writer,
    array: ambar_array,
    start: *const u64,
    count: *const u64,
    data: *const c_void,
) -> i32 {
    let body = |writer: &mut ambar_writer| {
        let DefinedArray { id, dtype, ndim } = writer.array(array)?;
        // SAFETY: `start` and `count` are null, or have one number per dimension of the array, which the header requires.
        let region = unsafe { region(start, count, ndim) }?;
        // SAFETY: `data` is null, or has the values of the region. The caller keeps them unchanged until a commit has
        // succeeded or the writer was closed. The lifetime `'static` is longer, but `RankWriter` uses the values only before:
        // its commit returns after the background has finished all jobs of the step, and its `drop` waits for the running
        // job and discards the others.
        let values: &'static [u8] = unsafe { values(data, &dtype, &region.shape) }?;
        writer.ranks.write_borrowed(id, &region, values)
    };
    with_writer!(writer, body)
}

/// As `ambar_write`, for values that are `strides` bytes apart in each dimension, such as the inner cells of an array with ghost
/// cells. `first` points to the first value. Strides may be negative.
///
/// # Safety
/// Pointers follow the contract of the API; all values that the strides reach can be read.
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
        let DefinedArray { id, dtype, ndim } = writer.array(array)?;
        // SAFETY: `start` and `count` are null, or have one number per dimension of the array, which the header requires.
        let region = unsafe { region(start, count, ndim) }?;
        from_c!(strides = list(strides, ndim, "the strides"));
        // Checked before values are read, since a region that is too large must not be read.
        writer.ranks.check_region(id, &region)?;
        let size = dtype.size().unwrap_or(1);
        let mut values = Vec::new();
        values
            .try_reserve_exact(byte_count(&dtype, &region.shape)?)
            .map_err(|_| {
                Error::limit("cannot allocate memory for the values; write smaller regions")
            })?;
        if region.values() > 0 {
            check_null(first, "the data")?;
            // SAFETY: the region was checked, and the caller promises that the strides reach readable values for all of it.
            unsafe { gather(&mut values, first.cast(), &region.shape, strides, size) };
        }
        writer.ranks.write_owned(id, &region, values)
    };
    with_writer!(writer, body)
}

/// Appends strided values to `out`.
///
/// # Safety
/// All values that `shape` and `strides` reach from `first` can be read.
unsafe fn gather(out: &mut Vec<u8>, first: *const u8, shape: &[u64], strides: &[i64], size: usize) {
    let row = |out: &mut Vec<u8>, start: *const u8, bytes: usize| {
        // SAFETY: `bytes` is the size of one value, or of a row of contiguous values, of which this function's contract says that
        // they can be read.
        out.extend_from_slice(unsafe { std::slice::from_raw_parts(start, bytes) });
    };
    match (shape, strides) {
        ([length], [stride]) if *stride == size as i64 => row(out, first, *length as usize * size),
        ([length, shape @ ..], [stride, strides @ ..]) => {
            for index in 0..*length as i64 {
                let start = first.wrapping_offset((index * stride) as isize);
                // SAFETY: `start` is the first value of a slice at `index` of the first dimension, whose values are among those
                // of this function's contract.
                unsafe { gather(out, start, shape, strides, size) };
            }
        }
        _ => row(out, first, size),
    }
}

/// A region of an array of `ndim` dimensions.
///
/// # Safety
/// The pointers are null, or refer to `ndim` numbers.
pub(super) unsafe fn region(start: *const u64, count: *const u64, ndim: usize) -> Result<Region> {
    from_c!(start = list(start, ndim, "the start"));
    from_c!(shape = list(count, ndim, "the count"));
    Ok(Region {
        start: start.to_vec(),
        shape: shape.to_vec(),
    })
}

/// Makes everything written since the last commit visible, atomically and durably. For one process; many ranks use the functions
/// of `ambar_mpi.h`.
///
/// # Safety
/// `writer` is null or a writer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_commit(writer: *mut ambar_writer) -> i32 {
    with_writer!(writer, |writer: &mut ambar_writer| writer
        .ranks
        .commit_alone())
}

/// Begins a commit, and returns while a thread still encodes and writes the values: `ambar_commit_wait` ends it. Readers see the
/// values when that has returned. In between, the program computes the next step; it must not call other functions on the writer
/// except `ambar_commit_test` and `ambar_close`. Without `queue_bytes`, the values are written before it returns. It corresponds to
/// an asynchronous `EndStep` of ADIOS2. For one process; many ranks use `ambar_mpi_commit_begin`.
///
/// # Safety
/// `writer` is null or a writer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_commit_begin(writer: *mut ambar_writer) -> i32 {
    with_writer!(writer, |writer: &mut ambar_writer| writer
        .ranks
        .begin_seal())
}

/// Writes 1 to `done` if `ambar_commit_wait` would return without waiting for this rank's values to be written, and also after an
/// error, which `ambar_commit_wait` returns; otherwise 0. Many ranks call it independently of each other.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_commit_test(writer: *mut ambar_writer, done: *mut i32) -> i32 {
    let body = |writer: &mut ambar_writer| {
        from_c!(done = out(done, "the place of the result"));
        done.set(i32::from(writer.ranks.is_sealed()?));
        Ok(())
    };
    with_writer!(writer, body)
}

/// Ends the commit that `ambar_commit_begin` has begun: waits until all values are on the disk, and makes them visible to readers.
/// It corresponds to `H5ESwait`. For one process; many ranks use `ambar_mpi_commit_wait`.
///
/// # Safety
/// `writer` is null or a writer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_commit_wait(writer: *mut ambar_writer) -> i32 {
    let body = |writer: &mut ambar_writer| {
        writer.ranks.check_begun()?;
        writer.ranks.commit_alone()
    };
    with_writer!(writer, body)
}

/// Sets one attribute of a group or an array, and keeps the others. `values` are `count` values of `type`, `AMBAR_FLOAT64`,
/// `AMBAR_INT64` or `AMBAR_BOOL` (bytes): one value for a count of 1, otherwise a list. Floating-point numbers must be finite.
/// Of many ranks, only the call on rank 0 has an effect.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_set_attribute_numbers(
    writer: *mut ambar_writer,
    path: *const c_char,
    name: *const c_char,
    r#type: ambar_type,
    values: *const c_void,
    count: usize,
) -> i32 {
    let body = |writer: &mut ambar_writer| {
        from_c!(path = text(path, "the path"));
        from_c!(name = text(name, "the name of the attribute"));
        let numbers: Vec<Value> = match r#type {
            AMBAR_INT64 => {
                from_c!(values = list(values.cast::<i64>(), count, "the values"));
                values.iter().map(|value| Value::from(*value)).collect()
            }
            AMBAR_FLOAT64 => {
                from_c!(values = list(values.cast::<f64>(), count, "the values"));
                let finite = |value: &f64| {
                    let number = Number::from_f64(*value).map(Value::Number);
                    number.ok_or_else(|| {
                        Error::invalid(format!(
                            "attribute {name}: expected finite numbers, found {value}; use a string"
                        ))
                    })
                };
                values.iter().map(finite).collect::<Result<_>>()?
            }
            AMBAR_BOOL => {
                from_c!(values = list(values.cast::<u8>(), count, "the values"));
                values
                    .iter()
                    .map(|value| Value::from(*value != 0))
                    .collect()
            }
            other => return Err(type_of_numbers(other)),
        };
        let value = match <[Value; 1]>::try_from(numbers) {
            Ok([number]) => number,
            Err(numbers) => Value::Array(numbers),
        };
        writer.ranks.set_attribute(path, name, value)
    };
    with_writer!(writer, body)
}

/// The error for numbers of another type.
pub(super) fn type_of_numbers(found: ambar_type) -> Error {
    Error::invalid(format!(
        "expected AMBAR_FLOAT64 (10) or AMBAR_INT64 (4) as the type of the numbers, found {found}"
    ))
}

/// Sets one attribute of a group or an array to a string, and keeps the others. Of many ranks, only the call on rank 0 has an
/// effect.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_set_attribute_text(
    writer: *mut ambar_writer,
    path: *const c_char,
    name: *const c_char,
    value: *const c_char,
) -> i32 {
    let body = |writer: &mut ambar_writer| {
        from_c!(path = text(path, "the path"));
        from_c!(name = text(name, "the name of the attribute"));
        from_c!(value = text(value, "the attribute"));
        writer.ranks.set_attribute(path, name, Value::from(value))
    };
    with_writer!(writer, body)
}

/// Deletes a group with everything in it, or an array, with the next commit. The bytes remain in the file until `ambar compact`.
/// Arrays that were defined since the last commit cannot be deleted. Of many ranks, only the call on rank 0 has an effect.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_delete(writer: *mut ambar_writer, path: *const c_char) -> i32 {
    let body = |writer: &mut ambar_writer| {
        from_c!(path = text(path, "the path"));
        writer.ranks.remove(path)
    };
    with_writer!(writer, body)
}

/// Releases a writer, also after errors, and borrowed values. Null is ignored. Uncommitted data are lost, also those of a commit that
/// was begun.
///
/// # Safety
/// `writer` is null or a writer, and is released once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_close(writer: *mut ambar_writer) -> i32 {
    guard(|| {
        from_c!(writer = owned(writer));
        drop(writer);
        Ok(())
    })
}
