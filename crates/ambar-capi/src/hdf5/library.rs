//! The HDF5 library that called the filter, found without being linked to it.
//!
//! A process can hold several: h5py and netCDF4 from PyPI bring one each, and an object's identifier
//! means something to one of them alone. Names are no help, for wheels rename the file.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use super::Hid;

/// What the filter needs of HDF5.
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

/// A function of the library.
///
/// # Safety
/// The function of this name has the type `F`, that of a pointer to a function.
unsafe fn function<F: Copy>(handle: *mut c_void, name: &CStr) -> Option<F> {
    // SAFETY: the handle is one that dlopen gave, or RTLD_DEFAULT; the name ends with a zero.
    let symbol = unsafe { libc::dlsym(handle, name.as_ptr()) };
    // SAFETY: pointers to functions are as large as others, and the caller promises the type.
    (!symbol.is_null()).then(|| unsafe { std::mem::transmute_copy(&symbol) })
}

/// One of HDF5's variables that hold identifiers.
fn variable(handle: *mut c_void, name: &CStr) -> Option<Hid> {
    // Where the program itself names the variable, the library's is not used, but a copy of it.
    [handle, libc::RTLD_DEFAULT].into_iter().find_map(|handle| {
        // SAFETY: as for functions.
        let symbol = unsafe { libc::dlsym(handle, name.as_ptr()) };
        // SAFETY: HDF5 declares variables of these names as identifiers, and never removes them.
        let found = (!symbol.is_null()).then(|| unsafe { *symbol.cast::<Hid>() });
        found.filter(|id| *id > 0)
    })
}

impl Hdf5 {
    /// The library that called the function that calls this one.
    pub(super) fn calling() -> Option<Self> {
        let caller = caller().and_then(open).and_then(Self::of);
        // Linked into the program itself, or wherever else its symbols are.
        caller
            .or_else(|| Self::of(libc::RTLD_DEFAULT))
            .or_else(|| loaded().into_iter().find_map(Self::of))
    }

    fn of(handle: *mut c_void) -> Option<Self> {
        // SAFETY: HDF5 declares the functions of these names so, since 1.10.
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

    /// Puts a message where HDF5 keeps what went wrong, for the program to show. From 2.0 on, HDF5
    /// keeps none while a chunk is filtered, only of what was wrong with a new dataset.
    pub(super) fn tell(&self, message: &str) -> Option<()> {
        // SAFETY: HDF5 declares it so.
        let push: Push = unsafe { function(self.handle, c"H5Epush2")? };
        let [class, major, minor] = [c"H5E_ERR_CLS_g", c"H5E_PLINE_g", c"H5E_CALLBACK_g"]
            .map(|name| variable(self.handle, name));
        let text = std::ffi::CString::new(format!("ambar: {message}")).ok()?;
        // SAFETY: the arguments are those that HDF5 documents; the format takes the one text.
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

/// Opens a library that is loaded already; its count of users goes up by one and stays there.
fn open(path: *const c_char) -> Option<*mut c_void> {
    // SAFETY: the path ends with a zero; NOLOAD runs no code of the library's.
    let handle = unsafe { libc::dlopen(path, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    (!handle.is_null()).then_some(handle)
}

/// Where the object file that holds an address lies in memory, and its path.
fn object_of(address: *const c_void) -> Option<(*mut c_void, *const c_char)> {
    // SAFETY: all zeros are a value of this type.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked about.
    let known = unsafe { libc::dladdr(address, &raw mut found) } != 0;
    (known && !found.dli_fname.is_null()).then_some((found.dli_fbase, found.dli_fname))
}

unsafe extern "C" {
    /// Of the compiler's runtime, which Rust's own unwinding needs as well.
    fn _Unwind_Backtrace(
        visit: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

/// What is looked for up the stack: the first object file that is not this one.
struct Search {
    own: *mut c_void,
    path: Option<*const c_char>,
}

unsafe extern "C" fn visit(context: *mut c_void, data: *mut c_void) -> c_int {
    // SAFETY: `caller` passes a search of its own, and the runtime a context that is valid now.
    let (search, address) = unsafe { (&mut *data.cast::<Search>(), _Unwind_GetIP(context)) };
    match object_of(address as *const c_void) {
        Some((base, path)) if base != search.own => {
            search.path = Some(path);
            // Anything but 0 ends the walk.
            4
        }
        _ => 0,
    }
}

/// The path of the object file that called into this one.
fn caller() -> Option<*const c_char> {
    let (own, _) = object_of(visit as *const c_void)?;
    let mut search = Search { own, path: None };
    // SAFETY: the function and its data outlive the call.
    unsafe { _Unwind_Backtrace(visit, (&raw mut search).cast()) };
    search.path
}

/// All libraries of the process.
fn loaded() -> Vec<*mut c_void> {
    unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: `loaded` passes a vector of its own, the system a description that is valid now.
        unsafe { (*data.cast::<Vec<*const c_char>>()).push((*info).dlpi_name) };
        0
    }
    let mut names: Vec<*const c_char> = Vec::new();
    // SAFETY: the function and its data outlive the call.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut names).cast()) };
    names.retain(|name| !name.is_null());
    names.into_iter().filter_map(open).collect()
}
