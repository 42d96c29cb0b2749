//! AMRIC's and AMReX's compression schemes behind a C interface, for `ambar-bench amr`.
//!
//! The study loads the library with `ctypes` (`python/ambar/bench/amr/amric.py`). A call returns null,
//! or a message without a line break where it fails.

mod arrangement;
mod bytes;
mod huffman;
mod interpolation;
mod one_dimensional;
mod quantizer;
mod regression;
mod schemes;
#[cfg(test)]
mod tests;
mod value;

use std::ffi::c_char;
use std::{ptr, slice};

use schemes::{Error, Result, Scheme};
use value::Value;

/// Values of a type, and how they are compressed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Blocks {
    /// The scheme: its position among [`Scheme`]'s variants.
    scheme: u32,
    /// Bytes of a value: 4 for float32, 8 for float64.
    value_size: u32,
    /// Number of values of all unit blocks.
    count: usize,
    /// Number of values along each edge of a unit block.
    side: usize,
}

impl Blocks {
    fn scheme(&self) -> Result<Scheme> {
        match self.scheme {
            0 => Ok(Scheme::OneDimensional),
            1 => Ok(Scheme::LorenzoRegression),
            2 => Ok(Scheme::InterpolationLinear),
            3 => Ok(Scheme::InterpolationClustered),
            _ => Err(Error(c"the scheme must be 0, 1, 2 or 3")),
        }
    }
}

/// Encodes `blocks.count` values at `values`; no value changes by more than `bound`.
///
/// The stream's address and length go to `stream` and `length`; [`amric_free`] releases it.
///
/// # Safety
/// `values` must point to `blocks.count` aligned values of the type; `stream` and `length` must be
/// writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn amric_encode(
    blocks: Blocks,
    values: *const u8,
    bound: f64,
    stream: *mut *mut u8,
    length: *mut usize,
) -> *const c_char {
    // SAFETY: as this function's own contract.
    let encoded = unsafe {
        match blocks.value_size {
            4 => encode_as::<f32>(blocks, values, bound),
            8 => encode_as::<f64>(blocks, values, bound),
            _ => Err(Error(c"the size of a value must be 4 or 8 bytes")),
        }
    };
    match encoded {
        Ok(bytes) => {
            let bytes = Box::leak(bytes.into_boxed_slice());
            // SAFETY: the caller says that both can be written.
            unsafe {
                length.write(bytes.len());
                stream.write(bytes.as_mut_ptr());
            }
            ptr::null()
        }
        Err(error) => error.0.as_ptr(),
    }
}

/// # Safety
/// As [`amric_encode`], with `T` of `blocks.value_size` bytes.
unsafe fn encode_as<T: Value>(blocks: Blocks, values: *const u8, bound: f64) -> Result<Vec<u8>> {
    // SAFETY: the caller promises that number of values.
    let values = unsafe { slice::from_raw_parts(values.cast::<T>(), blocks.count) };
    schemes::encode(blocks.scheme()?, values, blocks.side, bound)
}

/// Releases a stream of [`amric_encode`].
///
/// # Safety
/// The arguments are what [`amric_encode`] returned, and are released once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn amric_free(stream: *mut u8, length: usize) {
    // SAFETY: `amric_encode` leaked a boxed slice of this address and length.
    drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(stream, length)) });
}

/// Decodes a stream of [`amric_encode`] into `blocks.count` values at `values`.
///
/// # Safety
/// `stream` must point to `length` bytes, and `values` to `blocks.count` aligned, initialized values
/// of the type that nothing else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn amric_decode(
    blocks: Blocks,
    stream: *const u8,
    length: usize,
    values: *mut u8,
) -> *const c_char {
    // SAFETY: as this function's own contract.
    let decoded = unsafe {
        let stream = slice::from_raw_parts(stream, length);
        match blocks.value_size {
            4 => decode_as::<f32>(blocks, stream, values),
            8 => decode_as::<f64>(blocks, stream, values),
            _ => Err(Error(c"the size of a value must be 4 or 8 bytes")),
        }
    };
    decoded.map_or_else(|error| error.0.as_ptr(), |()| ptr::null())
}

/// # Safety
/// As [`amric_decode`], with `T` of `blocks.value_size` bytes.
unsafe fn decode_as<T: Value>(blocks: Blocks, stream: &[u8], values: *mut u8) -> Result<()> {
    // SAFETY: the caller promises that number of values, for this function alone.
    let values = unsafe { slice::from_raw_parts_mut(values.cast::<T>(), blocks.count) };
    schemes::decode(blocks.scheme()?, stream, blocks.side, values)
}
