//! Arguments from C: pointers that may be null, texts, lists, and where results go.

use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

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

/// Refuses a null pointer.
pub fn check_null(pointer: *const c_void, what: &str) -> Result<()> {
    if pointer.is_null() {
        Err(null(what))
    } else {
        Ok(())
    }
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

/// Where a result goes. It is made before the result is, so that a null pointer is refused before a file
/// is created or memory is given away.
pub struct Out<T>(NonNull<T>);

impl<T> Out<T> {
    /// The place that a pointer from C names.
    pub fn new(pointer: *mut T, what: &str) -> Result<Self> {
        NonNull::new(pointer).map(Self).ok_or_else(|| null(what))
    }

    /// Puts the result there.
    ///
    /// # Safety
    /// The pointer points to where a `T` may be written, whatever is there.
    pub unsafe fn set(self, value: T) {
        // SAFETY: the caller says so.
        unsafe { self.0.write(value) };
    }
}

impl<T> Out<*mut T> {
    /// Gives an object to the caller, who frees it.
    ///
    /// # Safety
    /// As [`Out::set`].
    pub unsafe fn hand_over(self, object: T) {
        // SAFETY: the caller says so.
        unsafe { self.set(Box::into_raw(Box::new(object))) };
    }
}

/// A struct of the C API that begins with its own size, so that fields can be added at its end: programs that
/// were compiled with an older header give a smaller one.
///
/// # Safety
/// Its first field is a `usize`, and all bytes 0 are a valid value.
pub unsafe trait Extensible: Copy {
    /// Its name in C.
    const NAME: &'static str;
    /// Its size in the first version that had it.
    const FIRST: usize;

    /// A struct with all bytes 0 but its size.
    fn zeroed() -> Self {
        let mut own = MaybeUninit::<Self>::zeroed();
        let size = size_of::<Self>();
        // SAFETY: the first field is a `usize`, as the trait demands, and the pointer is aligned for it.
        unsafe { own.as_mut_ptr().cast::<usize>().write(size) };
        // SAFETY: all bytes 0 are valid, as the trait demands.
        unsafe { own.assume_init() }
    }

    /// The size that a struct of the caller's says it has, checked.
    ///
    /// # Safety
    /// The pointer is null, or points to a struct whose first field is its size.
    unsafe fn size_of_caller(pointer: *const Self, what: &str) -> Result<usize> {
        // A field that was never set is not taken for a size.
        const MOST: usize = 4096;
        // SAFETY: the caller says so.
        let size = *unsafe { reference(pointer.cast::<usize>(), what) }?;
        if !(Self::FIRST..=MOST).contains(&size) {
            let (name, first) = (Self::NAME, Self::FIRST);
            return Err(Error::invalid(format!(
                "{what}: its field `size` is {size}, expected {first} to {MOST}; set it to \
                 sizeof({name})"
            )));
        }
        Ok(size)
    }

    /// A struct of the caller's; fields that the caller's header lacks are 0.
    ///
    /// # Safety
    /// As [`Extensible::size_of_caller`]; as many bytes as the size says can be read.
    unsafe fn read_from(pointer: *const Self, what: &str) -> Result<Self> {
        // SAFETY: the caller says so.
        let size = unsafe { Self::size_of_caller(pointer, what) }?;
        let own = size_of::<Self>();
        // SAFETY: the caller says that so many bytes can be read.
        let bytes = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), size) };
        if bytes
            .get(own..)
            .unwrap_or_default()
            .iter()
            .any(|byte| *byte != 0)
        {
            let (name, version) = (Self::NAME, env!("CARGO_PKG_VERSION"));
            return Err(Error::unsupported(format!(
                "{what}: the program was compiled with an {name} of {size} bytes and sets fields that \
                 the library, version {version}, does not know; use a newer libambar"
            )));
        }
        let mut out = MaybeUninit::<Self>::zeroed();
        // SAFETY: both hold as many bytes, and one is on this stack.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), out.as_mut_ptr().cast(), size.min(own));
        }
        // SAFETY: C's values in C's fields, and zeros behind them, which the trait allows.
        Ok(unsafe { out.assume_init() })
    }

    /// Fills the struct of the caller's, as much of it as there is room for.
    ///
    /// # Safety
    /// As [`Extensible::read_from`], and the bytes can be written.
    unsafe fn write_to(mut self, pointer: *mut Self, what: &str) -> Result<()> {
        // SAFETY: the caller says so.
        let size = unsafe { Self::size_of_caller(pointer, what) }?;
        let bytes = size.min(size_of::<Self>());
        // SAFETY: the first field is a `usize`, as the trait demands.
        unsafe { (&raw mut self).cast::<usize>().write(size) };
        // SAFETY: the caller says that so many bytes can be written.
        unsafe {
            std::ptr::copy_nonoverlapping((&raw const self).cast::<u8>(), pointer.cast(), bytes)
        };
        Ok(())
    }

    /// `count` structs of the caller's that follow each other in memory, all of the first one's size.
    ///
    /// # Safety
    /// As [`Extensible::read_from`], of each of them.
    unsafe fn list_from(pointer: *const Self, count: usize, what: &str) -> Result<Vec<Self>> {
        if count == 0 {
            return Ok(Vec::new());
        }
        // SAFETY: the caller says so.
        let size = unsafe { Self::size_of_caller(pointer, what) }?;
        let places =
            (0..count).map(|at| pointer.cast::<u8>().wrapping_add(at * size).cast::<Self>());
        // SAFETY: the caller says that there is a struct at each of these places.
        places
            .map(|place| unsafe { Self::read_from(place, what) })
            .collect()
    }
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
