//! Arguments from C: pointers that may be null, texts, lists, and where results go.

use std::ffi::{CStr, c_char};

use ambar::metadata::Attributes;
use ambar::{Error, Result};

/// Most dimensions of an array that the API handles.
pub const MAX_DIMENSIONS: usize = 8;

/// The error for a null pointer.
fn null(what: &str) -> Error {
    Error::invalid(format!("{what} is a null pointer"))
}

/// What a pointer from C points to.
///
/// # Safety
/// It is null, or points to a `T` that nobody changes meanwhile.
pub unsafe fn reference<'a, T>(pointer: *const T, what: &str) -> Result<&'a T> {
    // SAFETY: the caller says so.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(what))
}

/// What a pointer from C points to, to be changed.
///
/// # Safety
/// It is null, or points to a `T` that nobody else uses meanwhile.
pub unsafe fn exclusive<'a, T>(pointer: *mut T, what: &str) -> Result<&'a mut T> {
    // SAFETY: the caller says so.
    unsafe { pointer.as_mut() }.ok_or_else(|| null(what))
}

/// A text.
///
/// # Safety
/// It is null, or ends with a zero and is not changed meanwhile.
pub unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Result<&'a str> {
    if pointer.is_null() {
        return Err(null(what));
    }
    // SAFETY: the caller says so.
    let text = unsafe { CStr::from_ptr(pointer) };
    let not_utf8 = |_| Error::invalid(format!("{what} is not UTF-8"));
    text.to_str().map_err(not_utf8)
}

/// A text, or nothing.
///
/// # Safety
/// As [`text`].
pub unsafe fn optional_text<'a>(pointer: *const c_char, what: &str) -> Result<Option<&'a str>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller says so.
    unsafe { text(pointer, what) }.map(Some)
}

/// A JSON object, or none.
///
/// # Safety
/// As [`text`].
pub unsafe fn attributes(pointer: *const c_char) -> Result<Attributes> {
    // SAFETY: the caller says so.
    let Some(text) = (unsafe { optional_text(pointer, "the attributes") })? else {
        return Ok(Attributes::new());
    };
    serde_json::from_str(text)
        .map_err(|error| Error::invalid(format!("the attributes are no JSON object: {error}")))
}

/// A list of `len` values.
///
/// # Safety
/// It is null, or points to `len` values that nobody changes meanwhile.
pub unsafe fn list<'a, T>(pointer: *const T, len: usize, what: &str) -> Result<&'a [T]> {
    match (pointer.is_null(), len) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(null(what)),
        // SAFETY: the caller says so.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(pointer, len) }),
    }
}

/// Puts a result where a pointer says.
///
/// # Safety
/// It is null, or points to where a `T` may be written, whatever is there.
pub unsafe fn give<T>(pointer: *mut T, value: T, what: &str) -> Result<()> {
    if pointer.is_null() {
        return Err(null(what));
    }
    // SAFETY: the caller says so.
    unsafe { pointer.write(value) };
    Ok(())
}

/// A number of dimensions.
pub fn dimensions(ndim: i32) -> Result<usize> {
    usize::try_from(ndim)
        .ok()
        .filter(|ndim| *ndim <= MAX_DIMENSIONS)
        .ok_or_else(|| Error::invalid(format!("{ndim} dimensions; 0 to {MAX_DIMENSIONS} can be")))
}

/// Bytes that ambar has allocated; to be given back with `ambar_bytes_free`.
#[repr(C)]
#[allow(non_camel_case_types)] // the name is C's
pub struct ambar_bytes {
    /// The first byte; null where there are none.
    pub data: *mut u8,
    /// How many there are.
    pub len: usize,
}

impl From<Vec<u8>> for ambar_bytes {
    fn from(bytes: Vec<u8>) -> Self {
        if bytes.is_empty() {
            return Self {
                data: std::ptr::null_mut(),
                len: 0,
            };
        }
        let bytes = Box::leak(bytes.into_boxed_slice());
        Self {
            data: bytes.as_mut_ptr(),
            len: bytes.len(),
        }
    }
}

/// Gives bytes back.
///
/// # Safety
/// They are from ambar, and are given back once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_bytes_free(bytes: ambar_bytes) {
    if !bytes.data.is_null() {
        let bytes = std::ptr::slice_from_raw_parts_mut(bytes.data, bytes.len);
        // SAFETY: `From` has leaked just this box, and the caller gives it back once.
        drop(unsafe { Box::from_raw(bytes) });
    }
}
