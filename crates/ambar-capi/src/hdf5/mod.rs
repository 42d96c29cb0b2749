//! The filter of HDF5: a plugin that the library loads by itself, whichever build of it a process has.
//!
//! It is not linked to HDF5. What it needs of it to learn a dataset's type and chunk, it finds in the
//! library that called it.

mod filter;
mod library;
mod local;
mod options;

use std::ffi::{c_char, c_int, c_uint, c_void};

pub use options::Options;

/// The filter's number. HDF5 leaves 32768 to 65535 to filters that are not registered; this one is
/// kept until The HDF Group has assigned another.
pub const FILTER_ID: c_int = 43842;

/// HDF5's identifiers of objects, 64 bits wide since 1.10.
pub(crate) type Hid = i64;

/// The version of HDF5's `H5Z_class2_t`.
const CLASS_VERSION: c_int = 1;
/// What `H5PLget_plugin_type` calls a filter.
#[cfg(feature = "hdf5-plugin")]
const PLUGIN_FILTER: c_int = 0;

/// HDF5's `H5Z_class2_t`: a filter's description.
#[repr(C)]
pub struct FilterClass {
    version: c_int,
    id: c_int,
    encoder_present: c_uint,
    decoder_present: c_uint,
    name: *const c_char,
    can_apply: Option<unsafe extern "C" fn(Hid, Hid, Hid) -> c_int>,
    set_local: Option<unsafe extern "C" fn(Hid, Hid, Hid) -> c_int>,
    filter: Option<
        unsafe extern "C" fn(
            c_uint,
            usize,
            *const c_uint,
            usize,
            *mut usize,
            *mut *mut c_void,
        ) -> usize,
    >,
}

// SAFETY: nothing in it is ever changed; the name is a constant.
unsafe impl Sync for FilterClass {}

/// The filter: what `H5Zregister` takes, and what HDF5 asks the plugin for.
pub static FILTER: FilterClass = FilterClass {
    version: CLASS_VERSION,
    id: FILTER_ID,
    encoder_present: 1,
    decoder_present: 1,
    name: c"ambar: error-bounded floats".as_ptr(),
    // Whatever its type, a chunk can be encoded; what cannot, says `set_local`, and why.
    can_apply: None,
    set_local: Some(local::set_local),
    filter: Some(filter::filter),
};

/// Tells HDF5 that this library is a filter.
#[cfg(feature = "hdf5-plugin")]
// SAFETY: the name is the one that HDF5 asks for, and no other library's.
#[unsafe(no_mangle)]
pub extern "C" fn H5PLget_plugin_type() -> c_int {
    PLUGIN_FILTER
}

/// Tells HDF5 which.
#[cfg(feature = "hdf5-plugin")]
// SAFETY: as above.
#[unsafe(no_mangle)]
pub extern "C" fn H5PLget_plugin_info() -> *const c_void {
    (&raw const FILTER).cast()
}

#[cfg(test)]
mod tests;
