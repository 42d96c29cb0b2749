//! Lookup of the HDF5 library that called the filter, without linking to it.
//!
//! A process can contain several copies of HDF5, such as those in the wheels of h5py and netCDF4. Identifiers are valid in one
//! copy only, and wheels rename the files, so the copy is found by the return address.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use super::Hid;

/// The functions of HDF5 that the filter calls.
#[derive(Clone, Copy)]
pub(super) struct Hdf5 {
    /// `H5Pget_filter_by_id2(list, id, &flags, &count, values, 0, NULL, NULL)`
    pub get_filter: unsafe extern "C" fn(
        Hid,
        c_int,
        *mut c_uint,
        *mut usize,
        *mut c_uint,
        usize,
        *mut c_char,
        *mut c_uint,
    ) -> c_int,
    /// `H5Pget_filter2(list, number, &flags, &count, values, 0, NULL, NULL)`, the filter's id
    pub filter_at: unsafe extern "C" fn(
        Hid,
        c_uint,
        *mut c_uint,
        *mut usize,
        *mut c_uint,
        usize,
        *mut c_char,
        *mut c_uint,
    ) -> c_int,
    /// `H5Pmodify_filter(list, id, flags, count, values)`
    pub modify_filter: unsafe extern "C" fn(Hid, c_int, c_uint, usize, *const c_uint) -> c_int,
    /// `H5Pget_chunk(list, most, lengths)`, the number of dimensions
    pub get_chunk: unsafe extern "C" fn(Hid, c_int, *mut u64) -> c_int,
    /// `H5Tget_size(type)`
    pub type_size: unsafe extern "C" fn(Hid) -> usize,
    /// `H5Tget_class(type)`
    pub type_class: unsafe extern "C" fn(Hid) -> c_int,
    /// `H5Tget_order(type)`
    pub type_order: unsafe extern "C" fn(Hid) -> c_int,
    /// `H5Tget_precision(type)`
    pub type_precision: unsafe extern "C" fn(Hid) -> usize,
    /// `H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits)`
    pub type_fields: unsafe extern "C" fn(
        Hid,
        *mut usize,
        *mut usize,
        *mut usize,
        *mut usize,
        *mut usize,
    ) -> c_int,
    /// `H5Tget_ebias(type)`
    pub type_bias: unsafe extern "C" fn(Hid) -> usize,
    handle: *mut c_void,
}

type Push = unsafe extern "C" fn(
    Hid,
    *const c_char,
    *const c_char,
    c_uint,
    Hid,
    Hid,
    Hid,
    *const c_char,
    ...
) -> c_int;

/// Looks up a function of the library.
///
/// # Safety
/// `F` is a function pointer type, and the function of this name has this type.
unsafe fn function<F: Copy>(handle: *mut c_void, name: &CStr) -> Option<F> {
    // SAFETY: `handle` is from `dlopen`, or `RTLD_DEFAULT`; a `CStr` ends with a zero.
    let symbol = unsafe { libc::dlsym(handle, name.as_ptr()) };
    // SAFETY: function pointers have the size of data pointers on the platforms with `dlsym`, and the symbol is not null and has the
    // type `F`: the contract of this function.
    (!symbol.is_null()).then(|| unsafe { std::mem::transmute_copy(&symbol) })
}

/// Looks up one of HDF5's variables with identifiers.
fn variable(handle: *mut c_void, name: &CStr) -> Option<Hid> {
    // If the program itself refers to the variable, its copy is used instead of the library's.
    [handle, libc::RTLD_DEFAULT].into_iter().find_map(|handle| {
        // SAFETY: `handle` is from `dlopen`, or `RTLD_DEFAULT`; a `CStr` ends with a zero.
        let symbol = unsafe { libc::dlsym(handle, name.as_ptr()) };
        // SAFETY: the symbol is not null. HDF5 declares variables of these names as identifiers, and libraries that are loaded here
        // are never unloaded, see `open`.
        let found = (!symbol.is_null()).then(|| unsafe { *symbol.cast::<Hid>() });
        found.filter(|id| *id > 0)
    })
}

impl Hdf5 {
    /// The library that called into this one.
    pub(super) fn calling() -> Option<Self> {
        let caller = caller().and_then(open).and_then(Self::in_library);
        // Otherwise HDF5 is linked into the program itself, or in any other library.
        caller
            .or_else(|| Self::in_library(libc::RTLD_DEFAULT))
            .or_else(|| loaded().into_iter().find_map(Self::in_library))
    }

    fn in_library(handle: *mut c_void) -> Option<Self> {
        // SAFETY: the fields have the types with which HDF5 declares the functions of these names, since version 1.10.
        let found = unsafe {
            Self {
                get_filter: function(handle, c"H5Pget_filter_by_id2")?,
                filter_at: function(handle, c"H5Pget_filter2")?,
                modify_filter: function(handle, c"H5Pmodify_filter")?,
                get_chunk: function(handle, c"H5Pget_chunk")?,
                type_size: function(handle, c"H5Tget_size")?,
                type_class: function(handle, c"H5Tget_class")?,
                type_order: function(handle, c"H5Tget_order")?,
                type_precision: function(handle, c"H5Tget_precision")?,
                type_fields: function(handle, c"H5Tget_fields")?,
                type_bias: function(handle, c"H5Tget_ebias")?,
                handle,
            }
        };
        Some(found)
    }

    /// Pushes a message to HDF5's error stack. HDF5 2.0 discards messages while a chunk is filtered, and keeps only those about a
    /// new dataset.
    pub(super) fn report(&self, message: &str) -> Option<()> {
        // SAFETY: `Push` is the type with which HDF5 declares `H5Epush2`.
        let push: Push = unsafe { function(self.handle, c"H5Epush2")? };
        let [class, major, minor] = [c"H5E_ERR_CLS_g", c"H5E_PLINE_g", c"H5E_CALLBACK_g"]
            .map(|name| variable(self.handle, name));
        let text = std::ffi::CString::new(format!("ambar: {message}")).ok()?;
        // SAFETY: the arguments have the types that HDF5 documents, all strings end with a zero, and the format has one `%s` for the
        // one string that follows.
        unsafe {
            push(
                0,
                c"ambar".as_ptr(),
                c"filter".as_ptr(),
                0,
                class?,
                major?,
                minor?,
                c"%s".as_ptr(),
                text.as_ptr(),
            );
        }
        Some(())
    }
}

/// Opens a library that is already loaded. Its reference count increases and is never decreased, so that it stays loaded.
fn open(path: *const c_char) -> Option<*mut c_void> {
    // SAFETY: the path is from the dynamic linker and ends with a zero; `RTLD_NOLOAD` runs no initializers.
    let handle = unsafe { libc::dlopen(path, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    (!handle.is_null()).then_some(handle)
}

/// Base address and path of the object file that contains an address.
fn object_of(address: *const c_void) -> Option<(*mut c_void, *const c_char)> {
    // SAFETY: `Dl_info` consists of pointers and numbers, for which zeros are valid.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: `dladdr` accepts any address, and `found` is a local variable.
    let known = unsafe { libc::dladdr(address, &raw mut found) } != 0;
    (known && !found.dli_fname.is_null()).then_some((found.dli_fbase, found.dli_fname))
}

unsafe extern "C" {
    /// A function of the compiler's runtime, which Rust links for unwinding.
    fn _Unwind_Backtrace(
        visit: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

/// The state of a stack walk that looks for the first object file other than this one.
struct Search {
    own: *mut c_void,
    path: Option<*const c_char>,
}

unsafe extern "C" fn visit(context: *mut c_void, data: *mut c_void) -> c_int {
    // SAFETY: `data` is the `Search` that `caller` passes, which no other reference uses during the walk, and `context` is valid during
    // the callback.
    let (search, address) = unsafe { (&mut *data.cast::<Search>(), _Unwind_GetIP(context)) };
    match object_of(address as *const c_void) {
        Some((base, path)) if base != search.own => {
            search.path = Some(path);
            // Any value other than 0 ends the walk.
            4
        }
        _ => 0,
    }
}

/// The path of the object file that called into this one.
fn caller() -> Option<*const c_char> {
    let (own, _) = object_of(visit as *const c_void)?;
    let mut search = Search { own, path: None };
    // SAFETY: `visit` has the type that the runtime requires and does not unwind; `search` outlives the call.
    unsafe { _Unwind_Backtrace(visit, (&raw mut search).cast()) };
    search.path
}

/// Handles of all libraries of the process.
fn loaded() -> Vec<*mut c_void> {
    let names = loaded_names();
    let known = names.into_iter().filter(|name| !name.is_null());
    known.filter_map(open).collect()
}

/// The paths of all libraries of the process, from the dynamic linker.
#[cfg(not(target_vendor = "apple"))]
fn loaded_names() -> Vec<*const c_char> {
    unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: `data` is the vector that `loaded_names` passes, which no other reference uses during the call, and `info` is
        // valid during the callback.
        unsafe { (*data.cast::<Vec<*const c_char>>()).push((*info).dlpi_name) };
        0
    }
    let mut names: Vec<*const c_char> = Vec::new();
    // SAFETY: `add` has the type that the system requires and does not unwind; `names` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut names).cast()) };
    names
}

/// The paths of all libraries of the process, from the dynamic linker.
#[cfg(target_vendor = "apple")]
fn loaded_names() -> Vec<*const c_char> {
    // SAFETY: the functions have these types; the second one accepts any index, and returns null for one that is not in use.
    unsafe {
        (0.._dyld_image_count())
            .map(|index| _dyld_get_image_name(index))
            .collect()
    }
}

#[cfg(target_vendor = "apple")]
unsafe extern "C" {
    fn _dyld_image_count() -> u32;
    fn _dyld_get_image_name(index: u32) -> *const c_char;
}
