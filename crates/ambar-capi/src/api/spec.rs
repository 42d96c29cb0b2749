//! Options of a store, and specifications of arrays.

#![allow(non_camel_case_types)] // names of the C API

use std::ffi::{c_char, c_void};

use ambar::DataType;
use ambar::array::{ArrayData, ArraySpec, choose_codecs};
use ambar::codec::{CodecChain, Profile};
use ambar::container::{CreateOptions, Durability};
use ambar::kinds::bound::{self, Compression, ErrorBound, FieldBounds};
use ambar::ranks::{Placement, RankOptions};
use ambar::{Error, Result};

use super::arguments::{Extensible, ambar_bytes, dimensions, from_c};
use super::status::guard;

/// Type of values: one of `AMBAR_BOOL` to `AMBAR_COMPLEX128`.
pub type ambar_type = i32;

/// One byte, 0 or 1.
pub const AMBAR_BOOL: ambar_type = 0;
/// 8-bit signed integer.
pub const AMBAR_INT8: ambar_type = 1;
/// 16-bit signed integer.
pub const AMBAR_INT16: ambar_type = 2;
/// 32-bit signed integer.
pub const AMBAR_INT32: ambar_type = 3;
/// 64-bit signed integer.
pub const AMBAR_INT64: ambar_type = 4;
/// 8-bit unsigned integer.
pub const AMBAR_UINT8: ambar_type = 5;
/// 16-bit unsigned integer.
pub const AMBAR_UINT16: ambar_type = 6;
/// 32-bit unsigned integer.
pub const AMBAR_UINT32: ambar_type = 7;
/// 64-bit unsigned integer.
pub const AMBAR_UINT64: ambar_type = 8;
/// IEEE 754 single precision.
pub const AMBAR_FLOAT32: ambar_type = 9;
/// IEEE 754 double precision.
pub const AMBAR_FLOAT64: ambar_type = 10;
/// Two single-precision numbers: real, imaginary.
pub const AMBAR_COMPLEX64: ambar_type = 11;
/// Two double-precision numbers: real, imaginary.
pub const AMBAR_COMPLEX128: ambar_type = 12;

const TYPES: [DataType; 13] = [
    DataType::Bool,
    DataType::Int8,
    DataType::Int16,
    DataType::Int32,
    DataType::Int64,
    DataType::UInt8,
    DataType::UInt16,
    DataType::UInt32,
    DataType::UInt64,
    DataType::Float32,
    DataType::Float64,
    DataType::Complex64,
    DataType::Complex128,
];

/// Small files, as far as reading stays fast.
pub const AMBAR_BALANCED: i32 = 0;
/// Reads at the speed of memory.
pub const AMBAR_FAST: i32 = 1;
/// Smallest files.
pub const AMBAR_SMALL: i32 = 2;
/// Uncompressed, with checksums.
pub const AMBAR_RAW: i32 = 3;

/// Takes extents from a counter that all ranks share.
pub const AMBAR_COUNTER: i32 = 2;
/// Reserves extents when an array is defined, without communication; the file has holes.
pub const AMBAR_RESERVED: i32 = 1;

/// Options of a store. Zeros in all fields except `size` are the defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ambar_options {
    /// `sizeof(ambar_options)`.
    pub size: usize,
    /// Nonzero to replace an existing file at the first commit.
    pub overwrite: i32,
    /// Nonzero to commit without fsync, for scratch files.
    pub no_fsync: i32,
    /// Alignment of the extents of different ranks: the file system's block or stripe size in bytes; 0 for 4096.
    pub alignment: u64,
    /// Minimum bytes of an extent from the shared counter; 0 for 16 KiB, doubled each time up to 1 MiB.
    pub extent: u64,
    /// Encoding threads of each rank; 0 for 1.
    pub threads: i32,
    /// `AMBAR_COUNTER`, `AMBAR_RESERVED`, or 0 for the default: the counter, with `queue_bytes` and several ranks
    /// `AMBAR_RESERVED`.
    pub placement: i32,
    /// Nonzero: a thread of each rank encodes and writes values while the program computes, see `ambar_commit_begin`.
    /// It is the maximum of the bytes that `ambar_write` copies for it; `ambar_write` waits while there are more. The
    /// thread calls MPI only with `AMBAR_COUNTER`, which then needs MPI_THREAD_MULTIPLE.
    pub queue_bytes: u64,
}

// SAFETY: `repr(C)` with the `usize` field `size` first; all fields are numbers, for which zeros are valid.
unsafe impl Extensible for ambar_options {
    const NAME: &'static str = "ambar_options";
    const FIRST: usize = size_of::<Self>();
}

/// Specification of an array. Zeros in all fields except `size`, `type`, `ndim` and `shape` are the defaults. It must be equal
/// on all ranks: a commit fails if two differ.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ambar_spec {
    /// `sizeof(ambar_spec)`.
    pub size: usize,
    /// Type of the values.
    pub r#type: ambar_type,
    /// Compression profile: `AMBAR_BALANCED`, `AMBAR_FAST`, `AMBAR_SMALL` or `AMBAR_RAW`.
    pub profile: i32,
    /// The error bound of float32 and float64 values; null: lossless. A number in the unit of the values (`"0.5"`), or
    /// one of the other forms: `"1e-3 relative"`, `"1e-3 relative above 1e-10"`, `"12 bits"`, `"0.01 rms"`, and with
    /// `value_range` also `"1e-3 of range"` and `"80 dB"`.
    pub error_bound: *const c_char,
    /// Two numbers, in the unit of the values: the lowest and the highest finite value of the whole array, on all ranks
    /// (`ambar_mpi_value_range`). Lowest > highest: no value is finite. Only bounds that depend on it need it.
    pub value_range: *const f64,
    /// Names of the dimensions, separated by commas, or null.
    pub dimension_names: *const c_char,
    /// Attributes as a JSON object, or null.
    pub attributes: *const c_char,
    /// Codecs as a JSON list from `ambar_choose_codecs`; null: the default of profile and type.
    pub codecs: *const c_char,
    /// Number of dimensions, at most 8.
    pub ndim: i32,
    /// Length of each dimension, slowest first.
    pub shape: *const u64,
    /// Length of a chunk in each dimension; null: chosen to match the blocks of the ranks.
    pub chunks: *const u64,
    /// Nonzero to allow the codec `ambar` for floating-point values without an error bound; readers then need ambar. With
    /// `AMBAR_FAST` it is always used, near the speed of memory, otherwise if `ambar_choose_codecs` finds it worthwhile.
    pub predict: i32,
    /// Fill value, as a value of the array's type, for values that no rank writes; null: 0.
    pub fill_value: *const c_void,
}

// SAFETY: `repr(C)` with the `usize` field `size` first; all other fields are numbers and raw pointers, for which zeros are
// valid.
unsafe impl Extensible for ambar_spec {
    const NAME: &'static str = "ambar_spec";
    const FIRST: usize = size_of::<Self>();
}

impl ambar_options {
    /// Options for creating a file.
    pub(super) fn create(self) -> CreateOptions {
        CreateOptions {
            durability: self.durability(),
            overwrite: self.overwrite != 0,
            ..CreateOptions::default()
        }
    }

    pub(super) fn durability(self) -> Durability {
        match self.no_fsync {
            0 => Durability::Full,
            _ => Durability::None,
        }
    }

    /// Options for writing with `ranks` ranks.
    pub(super) fn ranks(self, ranks: u32) -> Result<RankOptions> {
        let placement = match self.placement {
            0 if self.queue_bytes > 0 && ranks > 1 => Placement::Reserved,
            0 => Placement::default(),
            AMBAR_RESERVED => Placement::Reserved,
            AMBAR_COUNTER => Placement::Counter,
            other => {
                return Err(Error::invalid(format!(
                    "invalid placement: {other}; must be 0, AMBAR_RESERVED (1) or AMBAR_COUNTER (2)"
                )));
            }
        };
        let threads = usize::try_from(self.threads).map_err(|_| {
            Error::invalid(format!(
                "invalid number of threads: {}; expected 0 or more",
                self.threads
            ))
        })?;
        Ok(RankOptions {
            ranks,
            placement,
            alignment: if self.alignment == 0 {
                4096
            } else {
                self.alignment
            },
            extent: self.extent,
            threads: threads.max(1),
            queue: Some(self.queue_bytes).filter(|bytes| *bytes > 0),
        })
    }
}

/// The type with this number.
pub(super) fn dtype(number: ambar_type) -> Result<DataType> {
    let index = usize::try_from(number).ok();
    index
        .and_then(|index| TYPES.get(index).cloned())
        .ok_or_else(|| {
            Error::invalid(format!(
                "invalid type: {number}; must be AMBAR_BOOL (0) to AMBAR_COMPLEX128 (12)"
            ))
        })
}

/// The number of a type.
pub(super) fn number(dtype: &DataType) -> Result<ambar_type> {
    let index = TYPES.iter().position(|other| other == dtype);
    index
        .and_then(|index| ambar_type::try_from(index).ok())
        .ok_or_else(|| {
            Error::unsupported(format!(
                "expected values of a numeric type, found {dtype}; read them in Python"
            ))
        })
}

/// The profile with this number.
pub(super) fn profile(number: i32) -> Result<Profile> {
    match number {
        AMBAR_BALANCED => Ok(Profile::Balanced),
        AMBAR_FAST => Ok(Profile::Fast),
        AMBAR_SMALL => Ok(Profile::Small),
        AMBAR_RAW => Ok(Profile::Raw),
        other => Err(Error::invalid(format!(
            "invalid profile: {other}; must be AMBAR_BALANCED (0) to AMBAR_RAW (3)"
        ))),
    }
}

/// `ambar_bound_kind`: no value changes.
pub const AMBAR_LOSSLESS: i32 = 0;
/// `ambar_bound_kind`: the bound is known without the values.
pub const AMBAR_BOUNDED: i32 = 1;
/// `ambar_bound_kind`: the bound depends on the value range of the whole array.
pub const AMBAR_NEEDS_RANGE: i32 = 2;

/// Checks the error bound of an `ambar_spec` or `ambar_field`, and writes `AMBAR_LOSSLESS`, `AMBAR_BOUNDED` or
/// `AMBAR_NEEDS_RANGE` to `kind`. For example, `"1e-3 of range"` needs a `value_range`. Bounds of levels and boxes count
/// too: the kind is `AMBAR_LOSSLESS` if no value of any part changes.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_bound_kind(error_bound: *const c_char, kind: *mut i32) -> i32 {
    guard(|| {
        from_c!(kind = out(kind, "the place of the kind"));
        from_c!(text = text(error_bound, "the error bound"));
        let bounds: FieldBounds = text.parse()?;
        kind.set(match bounds.needs_range() {
            true => AMBAR_NEEDS_RANGE,
            false if bounds.loosest().is_lossless() => AMBAR_LOSSLESS,
            false => AMBAR_BOUNDED,
        });
        Ok(())
    })
}

/// Selects the error bounds of `count` fields from `rules` pairs of keys and bounds. A key is the name of a field or a
/// pattern (`density`, `velocity_*`, `*`), and may have levels and a box: `density@2:`, `*@[0.2:0.4, :, :]`. The most
/// specific name applies, as docs/howto/error-bounds.md says. `bounds[i]` is one bound. Writes the bounds of `names[i]`
/// to `selected[i]`, as text for `ambar_field.error_bound` that ends with a zero: `lossless` if no key matches. Release
/// each with `ambar_bytes_free`. A key that matches no field is an error, except `*`.
///
/// ```c
/// const char *keys[] = {"*", "density@2:"}, *bounds[] = {"1e-3 relative", "1e-4 relative"};
/// const char *names[] = {"density", "pressure"};
/// ambar_bytes selected[2];
/// ambar_select_bounds(2, keys, bounds, 2, names, selected);
/// fields[0].error_bound = (const char *)selected[0].data; // "1e-3 relative, @2:=1e-4 relative"
/// ```
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_select_bounds(
    rules: i32,
    keys: *const *const c_char,
    bounds: *const *const c_char,
    count: i32,
    names: *const *const c_char,
    selected: *mut ambar_bytes,
) -> i32 {
    guard(|| {
        let number = |given: i32, what: &str| {
            usize::try_from(given)
                .map_err(|_| Error::invalid(format!("negative number of {what}: {given}")))
        };
        let (rules, count) = (number(rules, "rules")?, number(count, "fields")?);
        from_c!(keys = list(keys, rules, "the keys"));
        from_c!(bounds = list(bounds, rules, "the bounds"));
        from_c!(names = list(names, count, "the names"));
        let mut places = Vec::with_capacity(count);
        for at in 0..if selected.is_null() {
            count.min(1)
        } else {
            count
        } {
            let place = selected.wrapping_add(at);
            from_c!(place = out(place, "the place of the selected bounds"));
            places.push(place);
        }
        let mut compression = Compression::default();
        for (key, bound) in keys.iter().zip(bounds) {
            from_c!(key = text(*key, "a key"));
            from_c!(bound = text(*bound, "an error bound"));
            let bound = bound::parse(bound).map_err(|error| error.at_node(key))?;
            compression.error_bounds.push((key.to_owned(), bound));
        }
        let mut fields = Vec::with_capacity(count);
        for name in names {
            from_c!(name = text(*name, "the name of a field"));
            fields.push(name.to_owned());
        }
        compression.check_names(&fields)?;
        let rules = compression.rules()?;
        let found = fields.iter().map(|field| {
            let selected = FieldBounds::select(&rules, &[field])?.bounds;
            let bounds = selected.unwrap_or(ErrorBound::Lossless.into());
            Ok(format!("{bounds}\0").into_bytes())
        });
        let found = found.collect::<Result<Vec<_>>>()?;
        for (place, text) in places.into_iter().zip(found) {
            place.set(text.into());
        }
        Ok(())
    })
}

/// Checks that a value range is given if bounds depend on it.
fn check_range(text: &str, needs_range: bool, range: Option<&[f64]>) -> Result<()> {
    match range {
        Some(&[low, high]) if low.is_nan() || high.is_nan() => Err(Error::invalid(format!(
            "invalid value range: {low} to {high}; expected the lowest and the highest finite value"
        ))),
        None if needs_range => Err(Error::invalid(format!(
            "error bound {text:?} depends on the value range of the whole array, which is unknown here: set value_range \
             to the lowest and the highest value of all ranks, or give an absolute or relative bound"
        ))),
        _ => Ok(()),
    }
}

/// Parses an error bound, and resolves it with the value range of the whole array, if that is given.
pub(super) fn error_bound(text: &str, range: Option<&[f64]>) -> Result<ErrorBound> {
    let bound = bound::parse(text)?;
    check_range(text, bound.needs_range(), range)?;
    Ok(range.map_or(bound, |range| bound.resolve([range[0], range[1]])))
}

/// Parses the error bounds of a field, and resolves them with its value range, if that is given.
pub(super) fn field_bounds(text: &str, range: Option<&[f64]>) -> Result<FieldBounds> {
    let bounds: FieldBounds = text.parse()?;
    check_range(text, bounds.needs_range(), range)?;
    Ok(match range {
        Some(range) => bounds.resolve([range[0], range[1]]),
        None => bounds,
    })
}

/// Reads the specification of an array.
///
/// # Safety
/// `spec` is null, or refers to a specification whose pointers follow the contract of the API.
pub(super) unsafe fn read_spec(spec: *const ambar_spec) -> Result<ArraySpec> {
    from_c!(spec = structure(ambar_spec::read_from, spec, "the spec"));
    let ndim = dimensions(spec.ndim)?;
    from_c!(shape = list(spec.shape, ndim, "the shape"));
    let mut made = ArraySpec::new(dtype(spec.r#type)?, shape).profile(profile(spec.profile)?);
    from_c!(bound = optional_text(spec.error_bound, "the error bound"));
    from_c!(range = optional_list(spec.value_range, 2, "the value range"));
    if let Some(text) = bound {
        made.error_bound = Some(error_bound(text, range)?).filter(|bound| !bound.is_lossless());
    }
    if made.error_bound.is_some() && !matches!(made.dtype, DataType::Float32 | DataType::Float64) {
        return Err(Error::invalid(format!(
            "an error bound is for float32 and float64 values, found {}; leave it out",
            made.dtype
        )));
    }
    if !spec.chunks.is_null() {
        from_c!(chunks = list(spec.chunks, ndim, "the chunks"));
        made = made.chunks(chunks);
    }
    from_c!(names = optional_text(spec.dimension_names, "the names of dimensions"));
    if let Some(names) = names {
        made = made.dimensions(&names.split(',').map(str::trim).collect::<Vec<_>>());
    }
    from_c!(codecs = optional_text(spec.codecs, "the codecs"));
    if let Some(codecs) = codecs {
        made.codecs = Some(CodecChain::parse(codecs, &made.dtype, ndim)?);
    }
    made = made.predict(spec.predict != 0);
    if !spec.fill_value.is_null() {
        // SAFETY: `fill_value` is not null, and refers to one value of the array's type, which the header requires.
        made.fill_value = Some(unsafe { values(spec.fill_value, &made.dtype, &[]) }?.to_vec());
    }
    from_c!(attributes = attributes(spec.attributes));
    made.attributes = attributes;
    Ok(made)
}

/// Chooses codecs for an array from a sample of its values with the shape `sample_shape`, which has as many dimensions as
/// `spec`. Returns JSON text for `ambar_spec.codecs`. All ranks must define the array with the same codecs.
///
/// # Safety
/// Pointers follow the contract of the API; `sample` has the values of `sample_shape`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_choose_codecs(
    spec: *const ambar_spec,
    sample: *const c_void,
    sample_shape: *const u64,
    json: *mut ambar_bytes,
) -> i32 {
    guard(|| {
        from_c!(json = out(json, "the place of the codecs"));
        // SAFETY: this function has the same contract as `read_spec`.
        let mut made = unsafe { read_spec(spec) }?;
        from_c!(shape = list(sample_shape, made.shape.len(), "the sample's shape"));
        made.shape = shape.to_vec();
        // SAFETY: the caller passes null, or as many values as `sample_shape` says.
        let sample = unsafe { values(sample, &made.dtype, shape) }?;
        let chain = choose_codecs(&made, ArrayData::Fixed(sample))?;
        let text = chain.to_json(&made.dtype).to_string();
        json.set(text.into_bytes().into());
        Ok(())
    })
}

/// Values of a type as bytes.
///
/// # Safety
/// `pointer` is null, or refers to values of `shape`, which do not change during `'a`.
pub(super) unsafe fn values<'a>(
    pointer: *const c_void,
    dtype: &DataType,
    shape: &[u64],
) -> Result<&'a [u8]> {
    let bytes = byte_count(dtype, shape)?;
    from_c!(bytes = list(pointer.cast::<u8>(), bytes, "the data"));
    Ok(bytes)
}

/// Number of bytes of values of a type.
pub(super) fn byte_count(dtype: &DataType, shape: &[u64]) -> Result<usize> {
    let size = dtype.size().unwrap_or(1) as u64;
    let bytes = shape.iter().try_fold(size, |all, n| all.checked_mul(*n));
    bytes
        .and_then(|bytes| isize::try_from(bytes).ok())
        .map(isize::unsigned_abs)
        .ok_or_else(|| {
            Error::limit(format!(
                "values of the shape {shape:?} do not fit into memory; use a smaller region"
            ))
        })
}
