//! Reading a store.

#![allow(non_camel_case_types)] // the names are C's

use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::path::Path;
use std::sync::Mutex;

use ambar::array::{Array, Slice};
use ambar::process::PerProcess;
use ambar::store::{NodeKind, Store};
use ambar::{Error, Result, parallel};
use serde_json::json;

use super::arguments::{Extensible, MAX_DIMENSIONS, Out, ambar_bytes, exclusive, reference, text};
use super::spec::{ambar_type, byte_count, number};
use super::status::guard;
use super::writer::region;

/// A store open for reading: its last commit. Any number of threads may use it.
pub struct ambar_store {
    store: Store,
    /// Arrays that were asked for: they remember where their chunks lie.
    arrays: PerProcess<Mutex<HashMap<String, Array>>>,
}

/// What is known of an array without reading it. Set `size` before it is filled.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ambar_array_info {
    /// Its size: `sizeof(ambar_array_info)`.
    pub size: usize,
    /// The type of the values.
    pub r#type: ambar_type,
    /// Number of dimensions.
    pub ndim: i32,
    /// Length of each dimension.
    pub shape: [u64; 8],
    /// Length of a chunk, the unit of decoding, in each dimension.
    pub chunks: [u64; 8],
    /// The absolute error bound of the values; 0 where nothing was lost.
    pub error_bound: f64,
    /// Bytes that the values take in the store.
    pub stored_bytes: u64,
    /// Number of values that were not written by any rank before the commit, and read as the fill value.
    pub unwritten_values: u64,
}

// SAFETY: the first field is its size, and zeros are valid numbers.
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

/// Opens the last commit of the store at `path`: a file or a directory.
///
/// # Safety
/// Pointers are null or point to what they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_open(path: *const c_char, store: *mut *mut ambar_store) -> i32 {
    guard(|| {
        let store = Out::new(store, "the place of the store")?;
        // SAFETY: the caller says so, here and below.
        let path = unsafe { text(path, "the path") }?;
        let made = ambar_store {
            store: Store::open(Path::new(path))?,
            arrays: PerProcess::new(),
        };
        // SAFETY: as above.
        unsafe { store.hand_over(made) };
        Ok(())
    })
}

/// Frees a store; null is nothing.
///
/// # Safety
/// It is null or from `ambar_open`, and freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_store_free(store: *mut ambar_store) {
    if !store.is_null() {
        // SAFETY: `ambar_open` has made this box, and the caller frees it once.
        drop(unsafe { Box::from_raw(store) });
    }
}

/// Says what an array is.
///
/// # Safety
/// Pointers are null or point to what they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_info(
    store: *const ambar_store,
    path: *const c_char,
    info: *mut ambar_array_info,
) -> i32 {
    guard(|| {
        // SAFETY: the caller says so, here and below.
        let store = unsafe { reference(store, "the store") }?;
        // SAFETY: as above.
        let array = store.array(unsafe { text(path, "the path") }?)?;
        let ndim = array.shape().len();
        if ndim > MAX_DIMENSIONS {
            let message = format!("{ndim} dimensions, more than {MAX_DIMENSIONS}");
            return Err(Error::unsupported(message).at_node(array.path()));
        }
        let mut made = ambar_array_info {
            r#type: number(array.dtype()).map_err(|error| error.at_node(array.path()))?,
            ndim: ndim as i32,
            error_bound: array.error_bound().unwrap_or(0.0),
            stored_bytes: array.stored_bytes()?,
            unwritten_values: array.unwritten_values(),
            ..ambar_array_info::zeroed()
        };
        made.shape[..ndim].copy_from_slice(array.shape());
        made.chunks[..ndim].copy_from_slice(array.chunk_shape());
        // SAFETY: as above.
        unsafe { made.write_to(info, "the information") }
    })
}

/// Reads the region of `count` values from `start` on into `out`, which has just `out_bytes` of room. Only
/// the chunks that have values of it are read and decoded, on `threads` threads; 0: all that the process has.
///
/// # Safety
/// Pointers are null or point to what they say.
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
        // SAFETY: the caller says so, here and below.
        let store = unsafe { reference(store, "the store") }?;
        // SAFETY: as above.
        let array = store.array(unsafe { text(path, "the path") }?)?;
        number(array.dtype()).map_err(|error| error.at_node(array.path()))?;
        // SAFETY: as above.
        let region = unsafe { region(start, count, array.shape().len()) }?;
        let bytes = byte_count(array.dtype(), &region.shape)?;
        if bytes != out_bytes {
            let message = format!("{out_bytes} bytes of room for {bytes} bytes of values");
            return Err(Error::invalid(message).at_node(array.path()));
        }
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: as above.
        unsafe { exclusive(out.cast::<u8>(), "the place of the values") }?;
        // SAFETY: the caller says that there is so much room, and bytes of any value are bytes.
        let out = unsafe { std::slice::from_raw_parts_mut(out.cast::<u8>(), bytes) };
        let ends = region.start.iter().zip(&region.shape);
        let selection: Vec<Slice> = ends
            .map(|(start, length)| Slice::from(*start..start.saturating_add(*length)))
            .collect();
        match usize::try_from(threads).ok() {
            Some(1) => parallel::alone(|| array.read(&selection, out)),
            threads => {
                let threads = threads.filter(|threads| *threads > 0);
                parallel::with_threads(threads, || array.read(&selection, out))
            }
        }
    })
}

/// The attributes of a group (empty path: the root) or an array as JSON text, without a zero behind it.
///
/// # Safety
/// Pointers are null or point to what they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_attributes(
    store: *const ambar_store,
    path: *const c_char,
    json: *mut ambar_bytes,
) -> i32 {
    guard(|| {
        let json = Out::new(json, "the place of the attributes")?;
        // SAFETY: the caller says so, here and below.
        let store = unsafe { reference(store, "the store") }?;
        // SAFETY: as above.
        let path = unsafe { text(path, "the path") }?;
        let attributes = match store.store.kind(path)? {
            Some(NodeKind::Array) => store.array(path)?.attributes().clone(),
            _ => store.store.group(path)?.attributes().clone(),
        };
        let text = json!(attributes).to_string();
        // SAFETY: as above.
        unsafe { json.set(text.into_bytes().into()) };
        Ok(())
    })
}

/// What lies right below a group (empty path: the root), as JSON text without a zero behind it:
/// `[{"name": "density", "kind": "array"}, ...]`.
///
/// # Safety
/// Pointers are null or point to what they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_list(
    store: *const ambar_store,
    path: *const c_char,
    json: *mut ambar_bytes,
) -> i32 {
    guard(|| {
        let json = Out::new(json, "the place of the list")?;
        // SAFETY: the caller says so, here and below.
        let store = unsafe { reference(store, "the store") }?;
        // SAFETY: as above.
        let path = unsafe { text(path, "the path") }?;
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
        // SAFETY: as above.
        unsafe { json.set(text.into_bytes().into()) };
        Ok(())
    })
}
