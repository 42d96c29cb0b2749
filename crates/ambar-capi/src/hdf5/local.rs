//! The `set_local` callback: adds a dataset's type and chunk to the filter's options when HDF5 creates it.

use std::ffi::{c_int, c_uint};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use ambar_codec::packet::ValueType;

use super::library::Hdf5;
use super::options::{ALL, Local, Message, Options, RANK, given_part};
use super::{FILTER_ID, Hid};

const FAIL: c_int = -1;
const OK: c_int = 0;
/// HDF5's class of floats, and its byte orders.
const FLOAT: c_int = 1;
const LITTLE: c_int = 0;
const BIG: c_int = 1;

/// The callback.
///
/// # Safety
/// As HDF5 documents: `list` is a dataset creation property list with this filter, and `dtype` is a type.
pub(super) unsafe extern "C" fn set_local(list: Hid, dtype: Hid, _space: Hid) -> c_int {
    let work = || {
        let Some(hdf5) = Hdf5::calling() else {
            return FAIL;
        };
        match complete(&hdf5, list, dtype) {
            Ok(()) => OK,
            Err(message) => {
                hdf5.report(&message);
                FAIL
            }
        }
    };
    // A panic drops all state of this function.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(FAIL)
}

fn complete(hdf5: &Hdf5, list: Hid, dtype: Hid) -> Result<(), Message> {
    // After another filter, which shuffles or packs bytes, the filter would not get values.
    let (mut flags, mut count) = (0, 0);
    // SAFETY: `list` is a property list (the contract of `set_local`). `count` is 0, so no options are written, and the name may be
    // null with the length 0.
    let first = unsafe {
        (hdf5.filter_at)(
            list,
            0,
            &raw mut flags,
            &raw mut count,
            null_mut(),
            0,
            null_mut(),
            null_mut(),
        )
    };
    if first != FILTER_ID {
        return Err(
            "the filter must be the first one of the dataset, found another filter before it; remove shuffle, and \
                    add other filters after it"
                .into(),
        );
    }
    let mut values = [0; ALL];
    count = values.len();
    let mut config: c_uint = 0;
    // SAFETY: `list` is a property list with this filter. `count` is the length of `values`, to which HDF5 writes at most that many
    // options; the name may be null with the length 0.
    let found = unsafe {
        (hdf5.get_filter)(
            list,
            FILTER_ID,
            &raw mut flags,
            &raw mut count,
            values.as_mut_ptr(),
            0,
            null_mut(),
            &raw mut config,
        )
    };
    let given = values.get(..count).filter(|_| found >= 0);
    let given = given.ok_or("HDF5 does not return the filter's options")?;
    // An earlier dataset with the same property list added its options, which are replaced.
    let mut options = Options::parse(given_part(given))?;
    options.local = Some(local(hdf5, list, dtype)?);
    let values = options.to_values()?;
    // SAFETY: `list` is a property list with this filter, and `values` has the number of options that is passed.
    let kept =
        unsafe { (hdf5.modify_filter)(list, FILTER_ID, flags, values.len(), values.as_ptr()) };
    if kept < 0 {
        return Err("HDF5 does not accept the filter's options".into());
    }
    Ok(())
}

fn local(hdf5: &Hdf5, list: Hid, dtype: Hid) -> Result<Local, &'static str> {
    let (dtype, big_endian) = type_of(hdf5, dtype)?;
    let mut lengths = [0u64; RANK];
    // SAFETY: `list` is a property list, and `lengths` has room for the number of dimensions that is passed.
    let rank = unsafe { (hdf5.get_chunk)(list, RANK as c_int, lengths.as_mut_ptr()) };
    let rank = usize::try_from(rank)
        .ok()
        .filter(|rank| (1..=RANK).contains(rank));
    let rank = rank.ok_or(
        "expected a dataset with chunks of 1 to 32 dimensions, found none; set a chunk shape",
    )?;
    let shape: Option<Vec<usize>> = lengths[..rank]
        .iter()
        .map(|n| usize::try_from(*n).ok())
        .collect();
    Ok(Local {
        dtype,
        big_endian,
        shape: shape.ok_or("the chunk is too large for this machine; use smaller chunks")?,
    })
}

/// The type of values, and true for big-endian values.
///
/// The type is queried part by part: the predefined types of HDF5 are variables, of which programs can have copies.
fn type_of(hdf5: &Hdf5, dtype: Hid) -> Result<(ValueType, bool), &'static str> {
    // SAFETY: `dtype` is a type: the contract of `set_local`.
    let (class, size) = unsafe { ((hdf5.type_class)(dtype), (hdf5.type_size)(dtype)) };
    if size == 0 {
        return Err("expected a type with a size, found one without; use a type of fixed size");
    }
    let other = (ValueType::Other(size), false);
    if class != FLOAT {
        return Ok(other);
    }
    let mut fields = [0usize; 5];
    let [sign, exponent, exponent_bits, mantissa, mantissa_bits] = &mut fields;
    // SAFETY: `dtype` is a type of the class float, which these functions require, and the pointers refer to elements of `fields`, a
    // local variable.
    let (order, precision, bias, known) = unsafe {
        (
            (hdf5.type_order)(dtype),
            (hdf5.type_precision)(dtype),
            (hdf5.type_bias)(dtype),
            (hdf5.type_fields)(
                dtype,
                sign,
                exponent,
                exponent_bits,
                mantissa,
                mantissa_bits,
            ),
        )
    };
    let found = match (size, fields, bias) {
        (4, [31, 23, 8, 0, 23], 127) => ValueType::Float32,
        (8, [63, 52, 11, 0, 52], 1023) => ValueType::Float64,
        _ => return Ok(other),
    };
    Ok(match order {
        LITTLE | BIG if known >= 0 && precision == 8 * size => (found, order == BIG),
        _ => other,
    })
}
