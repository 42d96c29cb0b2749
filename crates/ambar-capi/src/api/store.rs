//! Reading a store.

#![allow(non_camel_case_types)] // names of the C API

use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::path::Path;
use std::sync::Mutex;

use ambar::array::{Array, Slice};
use ambar::kinds::bound::ErrorBound;
use ambar::process::PerProcess;
use ambar::store::{NodeKind, Store};
use ambar::{Error, Result, parallel};
use serde_json::json;

use super::arguments::{Extensible, MAX_DIMENSIONS, ambar_bytes, check_null, from_c};
use super::spec::{ambar_type, byte_count, number};
use super::status::guard;
use super::writer::region;

/// A store open for reading, at its last commit. Any number of threads may use it.
pub struct ambar_store {
    store: Store,
    /// Opened arrays, which cache the positions of their chunks.
    arrays: PerProcess<Mutex<HashMap<String, Array>>>,
}

/// Description of an array. Set `size` before the call.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ambar_array_info {
    /// `sizeof(ambar_array_info)`.
    pub size: usize,
    /// Type of the values.
    pub r#type: ambar_type,
    /// Number of dimensions.
    pub ndim: i32,
    /// Length of each dimension.
    pub shape: [u64; 8],
    /// Length of a chunk (the unit of decoding) in each dimension.
    pub chunks: [u64; 8],
    /// The error bound of the values, as `ambar_spec` takes it, such as `1e-3 relative`; `lossless` without one. A string
    /// that ends with a zero.
    pub error_bound: [c_char; 80],
    /// Bytes of the encoded values in the store.
    pub stored_bytes: u64,
    /// Number of values that no rank wrote before the commit; they read as the fill value.
    pub unwritten_values: u64,
}

// SAFETY: `repr(C)` with the `usize` field `size` first; all fields are numbers and arrays of numbers, for which zeros are
// valid.
unsafe impl Extensible for ambar_array_info {
    const NAME: &'static str = "ambar_array_info";
    const FIRST: usize = size_of::<Self>();
}

impl ambar_store {
    fn array(&self, path: &str) -> Result<Array> {
        let mut arrays = self.arrays.lock();
        if let Some(array) = arrays.get(path) {
            return Ok(array.clone());
        }
        let array = self.store.array(path)?;
        arrays.insert(path.to_owned(), array.clone());
        Ok(array)
    }
}

/// Opens the last commit of the store at `path`, a file or a directory. Release it with `ambar_store_free`.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_open(path: *const c_char, store: *mut *mut ambar_store) -> i32 {
    guard(|| {
        from_c!(store = out(store, "the place of the store"));
        from_c!(path = text(path, "the path"));
        let opened = ambar_store {
            store: Store::open(Path::new(path))?,
            arrays: PerProcess::new(),
        };
        store.hand_over(opened);
        Ok(())
    })
}

/// Releases a store. Null is ignored.
///
/// # Safety
/// `store` is null, or from `ambar_open`, and is released once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_store_free(store: *mut ambar_store) {
    from_c!(store = owned(store));
    drop(store);
}

/// Describes an array.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_info(
    store: *const ambar_store,
    path: *const c_char,
    info: *mut ambar_array_info,
) -> i32 {
    guard(|| {
        from_c!(store = reference(store, "the store"));
        from_c!(path = text(path, "the path"));
        let array = store.array(path)?;
        let ndim = array.shape().len();
        if ndim > MAX_DIMENSIONS {
            let message = format!(
                "expected at most {MAX_DIMENSIONS} dimensions, found {ndim}; read the array in Python"
            );
            return Err(Error::unsupported(message).at_node(array.path()));
        }
        let mut found = ambar_array_info {
            r#type: number(array.dtype()).map_err(|error| error.at_node(array.path()))?,
            ndim: ndim as i32,
            stored_bytes: array.stored_bytes()?,
            unwritten_values: array.unwritten_values(),
            ..ambar_array_info::zeroed()
        };
        found.shape[..ndim].copy_from_slice(array.shape());
        found.chunks[..ndim].copy_from_slice(array.chunk_shape());
        let bound = array.error_bound().unwrap_or(ErrorBound::Lossless);
        // The last character stays 0. No bound of stored values is longer: two numbers of 24 characters.
        let (_, place) = found
            .error_bound
            .split_last_mut()
            .unwrap_or((&mut 0, &mut []));
        for (to, from) in place.iter_mut().zip(bound.to_string().bytes()) {
            *to = from as c_char;
        }
        // SAFETY: the caller passes null, or a structure that begins with its size, to which as many bytes can be written.
        unsafe { found.write_to(info, "the description") }
    })
}

/// Reads the region of `count` values from `start` on into `out`, whose size `out_bytes` must be that of the values. Only chunks
/// that overlap the region are read and decoded, on `threads` threads; 0: as many as the process has.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_read(
    store: *const ambar_store,
    path: *const c_char,
    start: *const u64,
    count: *const u64,
    out: *mut c_void,
    out_bytes: usize,
    threads: i32,
) -> i32 {
    guard(|| {
        from_c!(store = reference(store, "the store"));
        from_c!(path = text(path, "the path"));
        let array = store.array(path)?;
        number(array.dtype()).map_err(|error| error.at_node(array.path()))?;
        // SAFETY: `start` and `count` are null, or have one number per dimension of the array, which the header requires.
        let region = unsafe { region(start, count, array.shape().len()) }?;
        let bytes = byte_count(array.dtype(), &region.shape)?;
        if bytes != out_bytes {
            let message = format!("expected a buffer of {bytes} bytes, found {out_bytes} bytes");
            return Err(Error::invalid(message).at_node(array.path()));
        }
        if bytes == 0 {
            return Ok(());
        }
        check_null(out, "the place of the values")?;
        // SAFETY: `out` is not null, and has `out_bytes` bytes that the caller does not use until the function returns. They may
        // be uninitialized memory of the caller, which is initialized as far as this process can tell: `array.read` only
        // writes them.
        let out = unsafe { std::slice::from_raw_parts_mut(out.cast::<u8>(), bytes) };
        let ends = region.start.iter().zip(&region.shape);
        let selection: Vec<Slice> = ends
            .map(|(start, length)| Slice::from(*start..start.saturating_add(*length)))
            .collect();
        match usize::try_from(threads).ok() {
            Some(1) => parallel::on_this_thread(|| array.read(&selection, out)),
            threads => {
                let threads = threads.filter(|threads| *threads > 0);
                parallel::with_threads(threads, || array.read(&selection, out))
            }
        }
    })
}

/// Returns the attributes of a group (empty path: the root) or an array as JSON text, without a terminating zero.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_attributes(
    store: *const ambar_store,
    path: *const c_char,
    json: *mut ambar_bytes,
) -> i32 {
    guard(|| {
        from_c!(json = out(json, "the place of the attributes"));
        from_c!(store = reference(store, "the store"));
        from_c!(path = text(path, "the path"));
        let attributes = match store.store.kind(path)? {
            Some(NodeKind::Array) => store.array(path)?.attributes().clone(),
            _ => store.store.group(path)?.attributes().clone(),
        };
        let text = json!(attributes).to_string();
        json.set(text.into_bytes().into());
        Ok(())
    })
}

/// Lists the children of a group (empty path: the root) as JSON text without a terminating zero:
/// `[{"name": "density", "kind": "array"}, ...]`.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_list(
    store: *const ambar_store,
    path: *const c_char,
    json: *mut ambar_bytes,
) -> i32 {
    guard(|| {
        from_c!(json = out(json, "the place of the list"));
        from_c!(store = reference(store, "the store"));
        from_c!(path = text(path, "the path"));
        store.store.group(path)?;
        let nodes = store.store.children(path)?.into_iter().map(|(path, kind)| {
            let name = path.rsplit('/').next().unwrap_or_default();
            let kind = match kind {
                NodeKind::Array => "array",
                NodeKind::Group => "group",
            };
            json!({"name": name, "kind": kind})
        });
        let text = json!(nodes.collect::<Vec<_>>()).to_string();
        json.set(text.into_bytes().into());
        Ok(())
    })
}
