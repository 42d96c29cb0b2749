//! `set_local`: writes a dataset's type and chunk into the filter's options, when HDF5 creates it.

use std::ffi::{c_int, c_uint};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use ambar_codec::packet::Type;

use super::library::Hdf5;
use super::options::{ALL, Local, Options, RANK};
use super::{FILTER_ID, Hid};

const FAIL: c_int = -1;
const OK: c_int = 0;
/// HDF5's class of floats, and its orders of bytes.
const FLOAT: c_int = 1;
const LITTLE: c_int = 0;
const BIG: c_int = 1;

/// HDF5's callback.
///
/// # Safety
/// The identifiers are those of a property list for creating datasets that holds this filter, and of
/// a type.
pub(super) unsafe extern "C" fn set_local(list: Hid, of: Hid, _space: Hid) -> c_int {
    let work = || {
        let Some(hdf5) = Hdf5::calling() else {
            return FAIL;
        };
        match complete(&hdf5, list, of) {
            Ok(()) => OK,
            Err(message) => {
                hdf5.tell(message);
                FAIL
            }
        }
    };
    // What a panic leaves behind is dropped.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(FAIL)
}

fn complete(hdf5: &Hdf5, list: Hid, of: Hid) -> Result<(), &'static str> {
    // Behind another filter, which shuffles or packs bytes, values would not be values any more.
    let (mut flags, mut count) = (0, 0);
    // SAFETY: no options are asked for, and no name.
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
            "the filter must be the first one of the dataset: leave out shuffle, and put \
                    others behind it",
        );
    }
    let mut values = [0; ALL];
    count = values.len();
    let mut config: c_uint = 0;
    // SAFETY: `count` says how many options there is room for.
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
    let given = given.ok_or("the filter's options cannot be read")?;
    // What an earlier dataset added to the same property list is replaced.
    let given = &given[..given.len().min(super::options::GIVEN)];
    let mut options = Options::parse(given)?;
    options.local = Some(local(hdf5, list, of)?);
    let values = options.to_values()?;
    // SAFETY: as many options as it is told.
    let kept =
        unsafe { (hdf5.modify_filter)(list, FILTER_ID, flags, values.len(), values.as_ptr()) };
    if kept < 0 {
        return Err("the filter's options cannot be changed");
    }
    Ok(())
}

fn local(hdf5: &Hdf5, list: Hid, of: Hid) -> Result<Local, &'static str> {
    let (of, big_endian) = type_of(hdf5, of)?;
    let mut lengths = [0u64; RANK];
    // SAFETY: there is room for as many lengths as it is told.
    let rank = unsafe { (hdf5.get_chunk)(list, RANK as c_int, lengths.as_mut_ptr()) };
    let rank = usize::try_from(rank)
        .ok()
        .filter(|rank| (1..=RANK).contains(rank));
    let rank = rank.ok_or("the dataset has no chunks: the filter needs some")?;
    let shape: Option<Vec<usize>> = lengths[..rank]
        .iter()
        .map(|n| usize::try_from(*n).ok())
        .collect();
    Ok(Local {
        of,
        big_endian,
        shape: shape.ok_or("the chunk is too large for this machine")?,
    })
}

/// The type of values, and whether they have their highest byte first.
///
/// It is asked for part by part: HDF5's own types are variables, of which programs have copies.
fn type_of(hdf5: &Hdf5, of: Hid) -> Result<(Type, bool), &'static str> {
    // SAFETY: the type is one, as the caller promises.
    let (class, size) = unsafe { ((hdf5.type_class)(of), (hdf5.type_size)(of)) };
    if size == 0 {
        return Err("the dataset's type has no size");
    }
    let other = (Type::Other(size), false);
    if class != FLOAT {
        return Ok(other);
    }
    let mut fields = [0usize; 5];
    let [sign, exponent, exponent_bits, mantissa, mantissa_bits] = &mut fields;
    // SAFETY: as above, and the type is a float; what is filled in outlives the call.
    let (order, precision, bias, known) = unsafe {
        (
            (hdf5.type_order)(of),
            (hdf5.type_precision)(of),
            (hdf5.type_bias)(of),
            (hdf5.type_fields)(of, sign, exponent, exponent_bits, mantissa, mantissa_bits),
        )
    };
    let found = match (size, fields, bias) {
        (4, [31, 23, 8, 0, 23], 127) => Type::Float32,
        (8, [63, 52, 11, 0, 52], 1023) => Type::Float64,
        _ => return Ok(other),
    };
    Ok(match order {
        LITTLE | BIG if known >= 0 && precision == 8 * size => (found, order == BIG),
        _ => other,
    })
}
