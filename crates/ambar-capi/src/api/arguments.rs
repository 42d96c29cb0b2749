//! Conversion of arguments from C: pointers that may be null, strings, lists, structures and results.
//!
//! All functions of the API share one contract, which the header states: pointers are null, or point to what the
//! documentation of the function says, and what they point to does not change until the function returns.

use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use ambar::metadata::Attributes;
use ambar::{Error, Result};

/// Maximum number of dimensions of an array.
pub const MAX_DIMENSIONS: usize = 8;

/// Converts arguments of a C function to checked Rust values: `from_c!(path = text(path, "the path"))` binds
/// `path: &str`, or returns the error of the conversion.
///
/// Only the conversions below exist. Each evaluates its arguments outside of its `unsafe` block, so that the
/// block holds nothing but the named conversion. The macro is for functions that are `unsafe` because they take
/// pointers from C: their callers promise what the block relies on.
macro_rules! from_c {
    ($name:ident = $kind:ident($($argument:expr),* $(,)?)) => {
        let $name = from_c!(@$kind $($argument),*);
    };
    (@out $pointer:expr, $what:expr) => {{
        let (pointer, what) = ($pointer, $what);
        // SAFETY: the caller passes null, or memory to which a value of this type can be written until the
        // function returns.
        unsafe { $crate::api::arguments::Out::new(pointer, what) }?
    }};
    (@text $pointer:expr, $what:expr) => {{
        let (pointer, what) = ($pointer, $what);
        // SAFETY: the caller passes null, or a string that ends with a zero and does not change until the function
        // returns.
        unsafe { $crate::api::arguments::text(pointer, what) }?
    }};
    (@optional_text $pointer:expr, $what:expr) => {{
        let (pointer, what) = ($pointer, $what);
        // SAFETY: the caller passes null, or a string that ends with a zero and does not change until the function
        // returns; null becomes `None`.
        unsafe { $crate::api::arguments::optional_text(pointer, what) }?
    }};
    (@attributes $pointer:expr) => {{
        let pointer = $pointer;
        // SAFETY: the caller passes null, or JSON text that ends with a zero and does not change until the function
        // returns.
        unsafe { $crate::api::arguments::attributes(pointer) }?
    }};
    (@list $pointer:expr, $len:expr, $what:expr) => {{
        let (pointer, len, what) = ($pointer, $len, $what);
        // SAFETY: the caller passes null, or as many values as the documentation of the function says, which do not
        // change until the function returns; `len` is this number.
        unsafe { $crate::api::arguments::list(pointer, len, what) }?
    }};
    (@optional_list $pointer:expr, $len:expr, $what:expr) => {{
        let (pointer, len, what) = ($pointer, $len, $what);
        // SAFETY: the caller passes null, or as many values as the documentation of the function says, which do not
        // change until the function returns; `len` is this number. Null becomes `None`.
        unsafe { $crate::api::arguments::optional_list(pointer, len, what) }?
    }};
    (@reference $pointer:expr, $what:expr) => {{
        let (pointer, what) = ($pointer, $what);
        // SAFETY: the caller passes null, or an object of this API that is not released until the function returns.
        // Objects that are passed as `const` are never changed by another thread.
        unsafe { $crate::api::arguments::reference(pointer, what) }?
    }};
    (@exclusive $pointer:expr, $what:expr) => {{
        let (pointer, what) = ($pointer, $what);
        // SAFETY: the caller passes null, or an object of this API that no other thread uses until the function
        // returns.
        unsafe { $crate::api::arguments::exclusive(pointer, what) }?
    }};
    (@structure $type:expr, $pointer:expr, $what:expr) => {{
        let (read, pointer, what) = ($type, $pointer, $what);
        // SAFETY: the caller passes null, or a structure whose first field is its size; as many bytes can be read and
        // do not change until the function returns. `read` is `Extensible::read_from` of this structure.
        unsafe { read(pointer, what) }?
    }};
    (@structures $type:expr, $pointer:expr, $count:expr, $what:expr) => {{
        let (read, pointer, count, what) = ($type, $pointer, $count, $what);
        // SAFETY: the caller passes null, or `count` structures of equal size, each of which begins with this size; they
        // do not change until the function returns. `read` is `Extensible::list_from` of this structure.
        unsafe { read(pointer, count, what) }?
    }};
    (@owned $pointer:expr) => {{
        let pointer = $pointer;
        // SAFETY: the caller passes null, or an object that `Out::hand_over` gave away as a box of this type, and does
        // not use it again.
        unsafe { $crate::api::arguments::owned(pointer) }
    }};
}
pub(super) use from_c;

/// The error for a null pointer.
fn null(what: &str) -> Error {
    Error::invalid(format!(
        "expected a pointer to {what}, found null; pass a valid pointer"
    ))
}

/// The object that a pointer refers to.
///
/// # Safety
/// `pointer` is null, or refers to a `T` that is neither changed nor released during `'a`.
pub unsafe fn reference<'a, T>(pointer: *const T, what: &str) -> Result<&'a T> {
    // SAFETY: a pointer that is not null refers to a `T` that stays unchanged during `'a`: the contract of this
    // function.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(what))
}

/// The object that a pointer refers to, for changes.
///
/// # Safety
/// `pointer` is null, or refers to a `T` that is not used otherwise during `'a`.
pub unsafe fn exclusive<'a, T>(pointer: *mut T, what: &str) -> Result<&'a mut T> {
    // SAFETY: a pointer that is not null refers to a `T` to which no other reference is used during `'a`: the
    // contract of this function.
    unsafe { pointer.as_mut() }.ok_or_else(|| null(what))
}

/// A string.
///
/// # Safety
/// `pointer` is null, or refers to a string that ends with a zero and does not change during `'a`.
pub unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Result<&'a str> {
    if pointer.is_null() {
        return Err(null(what));
    }
    // SAFETY: the pointer is not null, as just checked, and the string ends with a zero and stays unchanged during
    // `'a`: the contract of this function.
    let text = unsafe { CStr::from_ptr(pointer) };
    let not_utf8 = |_| {
        Error::invalid(format!(
            "expected UTF-8 text for {what}, found other bytes; convert it"
        ))
    };
    text.to_str().map_err(not_utf8)
}

/// A string; `None` for a null pointer.
///
/// # Safety
/// As [`text`].
pub unsafe fn optional_text<'a>(pointer: *const c_char, what: &str) -> Result<Option<&'a str>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: this function has the same contract as `text`.
    unsafe { text(pointer, what) }.map(Some)
}

/// A JSON object; empty for a null pointer.
///
/// # Safety
/// As [`text`].
pub unsafe fn attributes(pointer: *const c_char) -> Result<Attributes> {
    // SAFETY: this function has the same contract as `optional_text`.
    let Some(text) = (unsafe { optional_text(pointer, "the attributes") })? else {
        return Ok(Attributes::new());
    };
    serde_json::from_str(text).map_err(|error| {
        Error::invalid(format!(
            "expected a JSON object as attributes: {error}; correct it"
        ))
    })
}

/// Checks that a pointer is not null.
///
/// # Errors
/// `Invalid` for null.
pub fn check_null(pointer: *const c_void, what: &str) -> Result<()> {
    if pointer.is_null() {
        Err(null(what))
    } else {
        Ok(())
    }
}

/// A list of `len` values. Null is valid for an empty list.
///
/// # Safety
/// `pointer` is null, or refers to `len` consecutive valid values that do not change during `'a`.
pub unsafe fn list<'a, T>(pointer: *const T, len: usize, what: &str) -> Result<&'a [T]> {
    match (pointer.is_null(), len) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(null(what)),
        // SAFETY: the pointer is not null, and refers to `len` values that stay unchanged during `'a`: the contract of
        // this function.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(pointer, len) }),
    }
}

/// A list of `len` values; `None` for a null pointer.
///
/// # Safety
/// As [`list`].
pub unsafe fn optional_list<'a, T>(
    pointer: *const T,
    len: usize,
    what: &str,
) -> Result<Option<&'a [T]>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: this function has the same contract as `list`.
    unsafe { list(pointer, len, what) }.map(Some)
}

/// The place of a result. It is checked before the work is done, so that a null pointer is an error before a file is
/// created or memory is handed over.
pub struct Out<T>(NonNull<T>);

impl<T> Out<T> {
    /// The place at `pointer`.
    ///
    /// # Safety
    /// `pointer` is null, or a `T` can be written to it until the place is used or dropped.
    ///
    /// # Errors
    /// `Invalid` for null.
    pub unsafe fn new(pointer: *mut T, what: &str) -> Result<Self> {
        NonNull::new(pointer).map(Self).ok_or_else(|| null(what))
    }

    /// Writes the result. The previous bytes are not read or dropped.
    pub fn set(self, value: T) {
        // SAFETY: the pointer is not null, and a `T` can be written to it: `new` requires both.
        unsafe { self.0.write(value) };
    }
}

impl<T> Out<*mut T> {
    /// Hands an object over to the caller, who releases it.
    pub fn hand_over(self, object: T) {
        self.set(Box::into_raw(Box::new(object)));
    }
}

/// Takes back an object that [`Out::hand_over`] handed over; `None` for a null pointer.
///
/// # Safety
/// `pointer` is null, or from `hand_over` with this type, and is not used afterwards.
pub unsafe fn owned<T>(pointer: *mut T) -> Option<Box<T>> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: `hand_over` made the pointer with `Box::into_raw`, and it is taken back once: the contract of this
    // function.
    Some(unsafe { Box::from_raw(pointer) })
}

/// A structure of the C API that begins with its own size, so that later versions can add fields at its end: programs
/// compiled with an older header pass a smaller structure.
///
/// # Safety
/// The first field is a `usize`, and all-zero bytes are a valid value.
pub unsafe trait Extensible: Copy {
    /// The name in C.
    const NAME: &'static str;
    /// The size in the first version that had it.
    const FIRST: usize;

    /// A structure whose bytes are 0, except its size.
    fn zeroed() -> Self {
        let mut own = MaybeUninit::<Self>::zeroed();
        let size = size_of::<Self>();
        // SAFETY: the first field is a `usize`, which the trait requires, so the pointer is aligned for it and inside
        // `own`.
        unsafe { own.as_mut_ptr().cast::<usize>().write(size) };
        // SAFETY: all-zero bytes are a valid value, which the trait requires, and so is any size.
        unsafe { own.assume_init() }
    }

    /// The size in a structure of the caller.
    ///
    /// # Safety
    /// The pointer is null, or refers to a structure whose first field is its size.
    ///
    /// # Errors
    /// `Invalid` for null, or a size that no version has.
    unsafe fn size_of_caller(pointer: *const Self, what: &str) -> Result<usize> {
        // A larger number is a field that was never set.
        const MOST: usize = 4096;
        // SAFETY: a pointer that is not null refers to a structure that begins with a `usize`: the contract of this
        // function.
        let size = *unsafe { reference(pointer.cast::<usize>(), what) }?;
        if !(Self::FIRST..=MOST).contains(&size) {
            let (name, first) = (Self::NAME, Self::FIRST);
            return Err(Error::invalid(format!(
                "{what}: expected a field `size` from {first} to {MOST}, found {size}; set it to \
                 sizeof({name})"
            )));
        }
        Ok(size)
    }

    /// Reads a structure of the caller. Fields that the caller's header lacks are 0.
    ///
    /// # Safety
    /// As [`Extensible::size_of_caller`]; `size` bytes can be read.
    ///
    /// # Errors
    /// `Invalid` as `size_of_caller`; `Unsupported` if fields are set that this version does not have.
    unsafe fn read_from(pointer: *const Self, what: &str) -> Result<Self> {
        // SAFETY: this function's contract includes that of `size_of_caller`.
        let size = unsafe { Self::size_of_caller(pointer, what) }?;
        let own = size_of::<Self>();
        // SAFETY: the pointer is not null, and `size` bytes can be read: the contract of this function. The caller
        // initialized them, as the header requires.
        let bytes = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), size) };
        if bytes
            .get(own..)
            .unwrap_or_default()
            .iter()
            .any(|byte| *byte != 0)
        {
            let (name, version) = (Self::NAME, env!("CARGO_PKG_VERSION"));
            return Err(Error::unsupported(format!(
                "{what}: expected an {name} without fields beyond version {version} of the library, found \
                 {size} bytes with such fields set; use a newer libambar"
            )));
        }
        let mut out = MaybeUninit::<Self>::zeroed();
        // SAFETY: `bytes` has `size` bytes and `out` has `own` bytes, the minimum is inside both, and `out` is a local
        // variable, so they do not overlap.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), out.as_mut_ptr().cast(), size.min(own));
        }
        // SAFETY: the fields hold the caller's values, followed by zeros; all fields are numbers and raw pointers, for
        // which any bytes are valid.
        Ok(unsafe { out.assume_init() })
    }

    /// Writes the fields that the caller's structure has.
    ///
    /// # Safety
    /// As [`Extensible::size_of_caller`]; `size` bytes can be written.
    ///
    /// # Errors
    /// As `size_of_caller`.
    unsafe fn write_to(mut self, pointer: *mut Self, what: &str) -> Result<()> {
        // SAFETY: this function's contract includes that of `size_of_caller`.
        let size = unsafe { Self::size_of_caller(pointer, what) }?;
        let bytes = size.min(size_of::<Self>());
        // SAFETY: the first field of the local variable `self` is a `usize`, which the trait requires.
        unsafe { (&raw mut self).cast::<usize>().write(size) };
        // SAFETY: `bytes` is at most the size of `self` and at most `size`, of which the contract says that they can be
        // written; `self` is a local variable, so they do not overlap.
        unsafe {
            std::ptr::copy_nonoverlapping((&raw const self).cast::<u8>(), pointer.cast(), bytes)
        };
        Ok(())
    }

    /// Reads `count` consecutive structures of the caller, all of the size of the first one.
    ///
    /// # Safety
    /// As [`Extensible::read_from`], for each of them.
    ///
    /// # Errors
    /// As `read_from`.
    unsafe fn list_from(pointer: *const Self, count: usize, what: &str) -> Result<Vec<Self>> {
        if count == 0 {
            return Ok(Vec::new());
        }
        // SAFETY: with at least one structure, this function's contract includes that of `size_of_caller`.
        let size = unsafe { Self::size_of_caller(pointer, what) }?;
        let places =
            (0..count).map(|at| pointer.cast::<u8>().wrapping_add(at * size).cast::<Self>());
        // SAFETY: the structures are consecutive with the size of the first one, so each place has one that can be read:
        // the contract of this function.
        places
            .map(|place| unsafe { Self::read_from(place, what) })
            .collect()
    }
}

/// Checks a number of dimensions.
///
/// # Errors
/// `Invalid` if it is negative or above `MAX_DIMENSIONS`.
pub fn dimensions(ndim: i32) -> Result<usize> {
    usize::try_from(ndim)
        .ok()
        .filter(|ndim| *ndim <= MAX_DIMENSIONS)
        .ok_or_else(|| {
            Error::invalid(format!(
                "expected 0 to {MAX_DIMENSIONS} dimensions, found {ndim}"
            ))
        })
}

/// Bytes that ambar allocated. Release them with `ambar_bytes_free`.
#[repr(C)]
#[allow(non_camel_case_types)] // a name of the C API
pub struct ambar_bytes {
    /// The first byte; null if there are none.
    pub data: *mut u8,
    /// Number of bytes.
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

/// Releases bytes from ambar.
///
/// # Safety
/// `bytes` are from a function of this API, and are released once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_bytes_free(bytes: ambar_bytes) {
    if !bytes.data.is_null() {
        let bytes = std::ptr::slice_from_raw_parts_mut(bytes.data, bytes.len);
        // SAFETY: `From` leaked a boxed slice with this pointer and length, and the caller releases it once.
        drop(unsafe { Box::from_raw(bytes) });
    }
}
