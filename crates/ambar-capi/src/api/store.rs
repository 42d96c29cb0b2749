//! Reading a store.

#![allow(non_camel_case_types)] // names of the C API

use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::path::Path;
use std::sync::{Arc, Mutex};

use ambar::array::{Array, Slice};
use ambar::kinds::bound::ErrorBound;
use ambar::kinds::steps::{Step, steps};
use ambar::metadata::Attributes;
use ambar::process::PerProcess;
use ambar::store::{NodeKind, Store};
use ambar::{Error, Result, parallel};
use serde_json::{Value, json};

use super::arguments::{Extensible, MAX_DIMENSIONS, ambar_bytes, check_null, from_c};
use super::spec::{AMBAR_FLOAT64, AMBAR_INT64, ambar_type, byte_count, number};
use super::status::guard;
use super::writer::{check_room, copy_text, region, type_of_numbers};

/// A store open for reading, at its last commit. Any number of threads may use it.
pub struct ambar_store {
    store: Store,
    /// The steps of series that were asked for.
    steps: PerProcess<Mutex<HashMap<String, Arc<[Step]>>>>,
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

    fn steps(&self, series: &str) -> Result<Arc<[Step]>> {
        if let Some(known) = self.steps.lock().get(series) {
            return Ok(Arc::clone(known));
        }
        let found: Arc<[Step]> = steps(&self.store, series)?.into();
        let mut known = self.steps.lock();
        known.insert(series.to_owned(), Arc::clone(&found));
        Ok(found)
    }

    fn attributes(&self, path: &str) -> Result<Attributes> {
        match self.store.kind(path)? {
            Some(NodeKind::Array) => Ok(self.array(path)?.attributes().clone()),
            _ => Ok(self.store.group(path)?.attributes().clone()),
        }
    }

    /// An attribute; slashes separate the keys of nested objects.
    fn attribute(&self, path: &str, name: &str) -> Result<Value> {
        let attributes = self.attributes(path)?;
        let value = attributes.get(name).cloned();
        let value = value.or_else(|| json!(attributes).pointer(&format!("/{name}")).cloned());
        value.ok_or_else(|| {
            let names: Vec<_> = attributes.keys().map(String::as_str).collect();
            let message = format!("attribute {name:?} does not exist; available: {names:?}");
            Error::not_found(message).at_node(format!("/{}", path.trim_matches('/')))
        })
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
            steps: PerProcess::new(),
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
        let text = json!(store.attributes(path)?).to_string();
        json.set(text.into_bytes().into());
        Ok(())
    })
}

/// Reads an attribute of a group (empty path: the root) or an array as numbers of `type`, `AMBAR_FLOAT64` or `AMBAR_INT64`: a number,
/// a boolean (0 or 1), or a list of them. `name` is its key; slashes separate the keys of nested objects, as in `ambar/times`.
/// Writes at most `room` numbers to `values` (null for a room of 0), and their whole number to `count`.
///
/// # Safety
/// Pointers follow the contract of the API; `room` numbers can be written to `values`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_attribute_numbers(
    store: *const ambar_store,
    path: *const c_char,
    name: *const c_char,
    r#type: ambar_type,
    values: *mut c_void,
    room: usize,
    count: *mut usize,
) -> i32 {
    guard(|| {
        from_c!(count = out(count, "the place of the count"));
        from_c!(store = reference(store, "the store"));
        from_c!(path = text(path, "the path"));
        from_c!(name = text(name, "the name of the attribute"));
        if room > 0 {
            check_null(values, "the place of the numbers")?;
        }
        let found = match store.attribute(path, name)? {
            Value::Array(values) => values,
            value => vec![value],
        };
        let wrong = |value: &Value| {
            Error::invalid(format!(
                "attribute {name}: expected numbers of the type {}, found {value}",
                if r#type == AMBAR_INT64 {
                    "int64"
                } else {
                    "float64"
                }
            ))
        };
        for (at, value) in found.iter().take(room).enumerate() {
            let boolean = value.as_bool().map(i64::from);
            match r#type {
                AMBAR_INT64 => {
                    let number = value.as_i64().or(boolean).ok_or_else(|| wrong(value))?;
                    let place = values.cast::<i64>().wrapping_add(at);
                    // SAFETY: `at` is below `room`, and `room` numbers can be written to `values`, which is not null.
                    unsafe { place.write_unaligned(number) };
                }
                AMBAR_FLOAT64 => {
                    let number = value.as_f64().or(boolean.map(|value| value as f64));
                    let number = number.ok_or_else(|| wrong(value))?;
                    let place = values.cast::<f64>().wrapping_add(at);
                    // SAFETY: `at` is below `room`, and `room` numbers can be written to `values`, which is not null.
                    unsafe { place.write_unaligned(number) };
                }
                other => return Err(type_of_numbers(other)),
            }
        }
        count.set(found.len());
        Ok(())
    })
}

/// Returns an attribute of a group (empty path: the root) or an array as a string with a terminating zero, which `len` counts. An
/// attribute that is not a string is returned as JSON. `name` is as for `ambar_attribute_numbers`.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_attribute_text(
    store: *const ambar_store,
    path: *const c_char,
    name: *const c_char,
    value: *mut ambar_bytes,
) -> i32 {
    guard(|| {
        from_c!(value = out(value, "the place of the attribute"));
        from_c!(store = reference(store, "the store"));
        from_c!(path = text(path, "the path"));
        from_c!(name = text(name, "the name of the attribute"));
        let text = match store.attribute(path, name)? {
            Value::String(text) => text,
            value => value.to_string(),
        };
        value.set(terminated(text));
        Ok(())
    })
}

/// A string with a terminating zero.
fn terminated(text: String) -> ambar_bytes {
    let mut bytes = text.into_bytes();
    bytes.push(0);
    bytes.into()
}

/// Returns the names of the dimensions of an array, slowest first, separated by commas, with a terminating zero, which `len`
/// counts. A dimension without a name has an empty one.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_dimension_names(
    store: *const ambar_store,
    path: *const c_char,
    names: *mut ambar_bytes,
) -> i32 {
    guard(|| {
        from_c!(names = out(names, "the place of the names"));
        from_c!(store = reference(store, "the store"));
        from_c!(path = text(path, "the path"));
        let array = store.array(path)?;
        let mut found: Vec<_> = array
            .dimension_names()
            .iter()
            .map(Option::as_deref)
            .collect();
        found.resize(array.shape().len(), None);
        let found: Vec<_> = found.into_iter().map(Option::unwrap_or_default).collect();
        names.set(terminated(found.join(",")));
        Ok(())
    })
}

/// Returns the codecs of an array as a short description, such as `pcodec 8, crc32c`, with a terminating zero, which `len` counts.
/// A store does not have the profile, with which the codecs were chosen.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_codecs(
    store: *const ambar_store,
    path: *const c_char,
    codecs: *mut ambar_bytes,
) -> i32 {
    guard(|| {
        from_c!(codecs = out(codecs, "the place of the codecs"));
        from_c!(store = reference(store, "the store"));
        from_c!(path = text(path, "the path"));
        codecs.set(terminated(store.array(path)?.codecs()));
        Ok(())
    })
}

/// Writes the number of steps of the series at `series` (empty: the root) to `count`: steps of `ambar_begin_step`, outputs of
/// `ambar_begin_output` and of converted runs, or steps of meshes.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_step_count(
    store: *const ambar_store,
    series: *const c_char,
    count: *mut u64,
) -> i32 {
    guard(|| {
        from_c!(count = out(count, "the place of the count"));
        from_c!(store = reference(store, "the store"));
        from_c!(series = text(series, "the series"));
        count.set(store.steps(series)?.len() as u64);
        Ok(())
    })
}

/// Returns step `index`, from 0 on, of the series at `series` (empty: the root): its time, NaN if it is not known, to `time`, and the
/// path of its group with a terminating zero to `path`, a buffer of `room` bytes, at least the length of `series` and 20.
///
/// # Safety
/// Pointers follow the contract of the API; `room` bytes can be written to `path`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_step(
    store: *const ambar_store,
    series: *const c_char,
    index: u64,
    time: *mut f64,
    path: *mut c_char,
    room: usize,
) -> i32 {
    guard(|| {
        from_c!(time = out(time, "the place of the time"));
        from_c!(store = reference(store, "the store"));
        from_c!(series = text(series, "the series"));
        check_room(path, room, series.len() + 20)?;
        let steps = store.steps(series)?;
        let step = usize::try_from(index).ok().and_then(|at| steps.get(at));
        let step = step.ok_or_else(|| {
            Error::not_found(format!(
                "step {index} does not exist; expected a number below {}",
                steps.len()
            ))
        })?;
        time.set(step.time);
        // SAFETY: `path` is not null and has `room` bytes, which the caller promises.
        unsafe { copy_text(&step.path, path, room) };
        Ok(())
    })
}

/// Returns the names of the children of a group (empty path: the root), one after the other, each with a terminating zero, and
/// their number. `kinds` is null, or receives one character for each child: `a` for an array, `g` for a group.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_children(
    store: *const ambar_store,
    path: *const c_char,
    count: *mut u64,
    names: *mut ambar_bytes,
    kinds: *mut ambar_bytes,
) -> i32 {
    guard(|| {
        from_c!(count = out(count, "the place of the count"));
        from_c!(names = out(names, "the place of the names"));
        from_c!(store = reference(store, "the store"));
        from_c!(path = text(path, "the path"));
        store.store.group(path)?;
        let children: Vec<_> = store.store.children(path)?.into_iter().collect();
        let mut all = Vec::new();
        for (path, _) in &children {
            let name = path.rsplit('/').next().unwrap_or_default();
            all.extend_from_slice(name.as_bytes());
            all.push(0);
        }
        count.set(children.len() as u64);
        names.set(all.into());
        if !kinds.is_null() {
            from_c!(kinds = out(kinds, "the place of the kinds"));
            let kind = |(_, kind): &(String, NodeKind)| match kind {
                NodeKind::Array => b'a',
                NodeKind::Group => b'g',
            };
            kinds.set(children.iter().map(kind).collect::<Vec<u8>>().into());
        }
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
