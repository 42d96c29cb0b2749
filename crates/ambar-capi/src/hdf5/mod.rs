//! The HDF5 filter: a plugin that any build of the HDF5 library loads.
//!
//! It is not linked to HDF5. It looks up the functions for a dataset's type and chunk in the library that called it.

mod filter;
mod library;
mod local;
mod options;

use std::ffi::{c_char, c_int, c_uint, c_void};

pub use options::Options;

/// The number of the filter, from the range 32768 to 65535 for unregistered filters. It is used until The HDF Group assigns
/// another one.
pub const FILTER_ID: c_int = 43842;

/// Identifiers of HDF5 objects, 64 bits wide since 1.10.
pub(crate) type Hid = i64;

/// The version of `H5Z_class2_t`.
const CLASS_VERSION: c_int = 1;
/// The value of `H5PLget_plugin_type` for a filter.
#[cfg(feature = "hdf5-plugin")]
const PLUGIN_FILTER: c_int = 0;

/// `H5Z_class2_t` of HDF5: the description of a filter.
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

// SAFETY: the structure is immutable; `name` refers to a constant, and the other fields are numbers and functions.
unsafe impl Sync for FilterClass {}

/// The filter, for `H5Zregister`, and returned by the plugin.
pub static FILTER: FilterClass = FilterClass {
    version: CLASS_VERSION,
    id: FILTER_ID,
    encoder_present: 1,
    decoder_present: 1,
    name: c"ambar: error-bounded floats".as_ptr(),
    // Chunks of all types can be encoded; `set_local` reports errors with their reasons.
    can_apply: None,
    set_local: Some(local::set_local),
    filter: Some(filter::filter),
};

/// Returns that this plugin is a filter.
#[cfg(feature = "hdf5-plugin")]
// SAFETY: HDF5 looks this name up in each plugin by itself; the program does not link to plugins, so the symbol cannot clash.
#[unsafe(no_mangle)]
pub extern "C" fn H5PLget_plugin_type() -> c_int {
    PLUGIN_FILTER
}

/// Returns the description of the filter.
#[cfg(feature = "hdf5-plugin")]
// SAFETY: like `H5PLget_plugin_type`, HDF5 looks this name up in the handle of the plugin only.
#[unsafe(no_mangle)]
pub extern "C" fn H5PLget_plugin_info() -> *const c_void {
    (&raw const FILTER).cast()
}

#[cfg(test)]
mod tests;
