//! What a program says of a store to be written, and of an array in it.

#![allow(non_camel_case_types)] // the names are C's

use std::ffi::{c_char, c_void};

use ambar::DataType;
use ambar::array::{ArrayData, ArraySpec, choose_codecs};
use ambar::codec::{CodecChain, Profile};
use ambar::container::{CreateOptions, Durability};
use ambar::ranks::{Placement, RankOptions};
use ambar::{Error, Result};

use super::arguments::{Extensible, Out, ambar_bytes, attributes, dimensions, list, optional_text};
use super::status::guard;

/// A type of values: one of `AMBAR_BOOL` to `AMBAR_COMPLEX128`.
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

/// Small where that costs little time in reading.
pub const AMBAR_BALANCED: i32 = 0;
/// Reads at the speed of memory.
pub const AMBAR_FAST: i32 = 1;
/// As small as it gets.
pub const AMBAR_SMALL: i32 = 2;
/// As the values are, with checksums.
pub const AMBAR_RAW: i32 = 3;

/// Extents from a counter that all ranks share.
pub const AMBAR_COUNTER: i32 = 2;
/// Extents reserved when an array is defined, without communication; the file has holes.
pub const AMBAR_RESERVED: i32 = 1;

/// How a store is written. All zeros but `size` are the defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ambar_options {
    /// Its size: `sizeof(ambar_options)`.
    pub size: usize,
    /// Whether a file of that name is replaced, at the first commit.
    pub overwrite: i32,
    /// Whether a commit does not wait for the disk: for scratch files.
    pub no_fsync: i32,
    /// Extents of different ranks begin at multiples of it: the file system's block or stripe in bytes; 0
    /// for 4096.
    pub alignment: u64,
    /// Bytes that a rank takes from the shared counter at least; 0 for 16 KiB, doubled each time up to 1 MiB.
    pub extent: u64,
    /// Threads that each rank encodes with; 0 for 1.
    pub threads: i32,
    /// `AMBAR_COUNTER`, `AMBAR_RESERVED`, or 0 for the default, which is the counter.
    pub placement: i32,
}

// SAFETY: the first field is its size, and zeros are valid numbers.
unsafe impl Extensible for ambar_options {
    const NAME: &'static str = "ambar_options";
    const FIRST: usize = size_of::<Self>();
}

/// An array to be written. All zeros but `size`, `type`, `ndim` and `shape` are defaults. It must be the same on
/// all ranks: a commit is refused where two differ.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ambar_spec {
    /// Its size: `sizeof(ambar_spec)`.
    pub size: usize,
    /// The type of the values.
    pub r#type: ambar_type,
    /// How they are compressed: `AMBAR_BALANCED`, `AMBAR_FAST`, `AMBAR_SMALL` or `AMBAR_RAW`.
    pub profile: i32,
    /// The absolute error bound that every value keeps; 0: lossless.
    pub error_bound: f64,
    /// Names of the dimensions, separated by commas; or null.
    pub dimension_names: *const c_char,
    /// The attributes, a JSON object; or null.
    pub attributes: *const c_char,
    /// The codecs, a JSON list as `ambar_choose_codecs` gives it; null: by profile and type.
    pub codecs: *const c_char,
    /// Number of dimensions, at most 8.
    pub ndim: i32,
    /// Length of each dimension, the slowest first.
    pub shape: *const u64,
    /// Length of a chunk in each dimension; or null: chosen to suit the ranks' blocks.
    pub chunks: *const u64,
    /// Other than 0: floating-point values that have no error bound may be encoded by ambar's own codec, which
    /// readers need then. With `AMBAR_FAST` they are, near the speed of memory; else where `ambar_choose_codecs`
    /// finds that it pays.
    pub predict: i32,
    /// What values read as that no rank writes: a value of the array's type; or null: 0.
    pub fill_value: *const c_void,
}

// SAFETY: the first field is its size; zeros are valid numbers and null pointers.
unsafe impl Extensible for ambar_spec {
    const NAME: &'static str = "ambar_spec";
    const FIRST: usize = size_of::<Self>();
}

impl ambar_options {
    /// What creating a file needs.
    pub(super) fn create(self) -> CreateOptions {
        CreateOptions {
            durability: self.durability(),
            overwrite: self.overwrite != 0,
            directory: false,
        }
    }

    pub(super) fn durability(self) -> Durability {
        match self.no_fsync {
            0 => Durability::Full,
            _ => Durability::None,
        }
    }

    /// How `ranks` write.
    pub(super) fn ranks(self, ranks: u32) -> Result<RankOptions> {
        let placement = match self.placement {
            0 => Placement::default(),
            AMBAR_RESERVED => Placement::Reserved,
            AMBAR_COUNTER => Placement::Counter,
            other => return Err(Error::invalid(format!("there is no placement {other}"))),
        };
        let threads = usize::try_from(self.threads)
            .map_err(|_| Error::invalid(format!("{} threads cannot do anything", self.threads)))?;
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
        })
    }
}

/// The type that a number stands for.
pub(super) fn dtype(number: ambar_type) -> Result<DataType> {
    let place = usize::try_from(number).ok();
    place
        .and_then(|place| TYPES.get(place).cloned())
        .ok_or_else(|| Error::invalid(format!("there is no type {number}")))
}

/// The number that stands for a type.
pub(super) fn number(dtype: &DataType) -> Result<ambar_type> {
    let place = TYPES.iter().position(|other| other == dtype);
    place
        .and_then(|place| ambar_type::try_from(place).ok())
        .ok_or_else(|| Error::unsupported(format!("values of {dtype} have no type in C")))
}

/// The profile that a number stands for.
pub(super) fn profile(number: i32) -> Result<Profile> {
    match number {
        AMBAR_BALANCED => Ok(Profile::Balanced),
        AMBAR_FAST => Ok(Profile::Fast),
        AMBAR_SMALL => Ok(Profile::Small),
        AMBAR_RAW => Ok(Profile::Raw),
        other => Err(Error::invalid(format!("there is no profile {other}"))),
    }
}

/// What `spec` says.
///
/// # Safety
/// It is null or points to a spec, whose pointers are null, or point to what they say.
pub(super) unsafe fn read_spec(spec: *const ambar_spec) -> Result<ArraySpec> {
    // SAFETY: the caller says so.
    let spec = unsafe { ambar_spec::read_from(spec, "the spec") }?;
    let ndim = dimensions(spec.ndim)?;
    // SAFETY: the caller says so, here and below.
    let shape = unsafe { list(spec.shape, ndim, "the shape") }?;
    let mut made = ArraySpec::new(dtype(spec.r#type)?, shape).profile(profile(spec.profile)?);
    if !(spec.error_bound.is_finite() && spec.error_bound >= 0.0) {
        let message = format!(
            "an error bound of {}; it is a number from 0 on",
            spec.error_bound
        );
        return Err(Error::invalid(message));
    }
    if spec.error_bound > 0.0 {
        if !matches!(made.dtype, DataType::Float32 | DataType::Float64) {
            let message = format!("values of {} have no error bound", made.dtype);
            return Err(Error::invalid(message));
        }
        made.error_bound = Some(spec.error_bound);
    }
    if !spec.chunks.is_null() {
        // SAFETY: as above.
        made = made.chunks(unsafe { list(spec.chunks, ndim, "the chunks") }?);
    }
    // SAFETY: as above.
    if let Some(names) = unsafe { optional_text(spec.dimension_names, "the dimensions' names") }? {
        made = made.dimensions(&names.split(',').map(str::trim).collect::<Vec<_>>());
    }
    // SAFETY: as above.
    if let Some(codecs) = unsafe { optional_text(spec.codecs, "the codecs") }? {
        made.codecs = Some(CodecChain::parse(codecs, &made.dtype, ndim)?);
    }
    made = made.predict(spec.predict != 0);
    if !spec.fill_value.is_null() {
        // SAFETY: as above.
        made.fill_value = Some(unsafe { values(spec.fill_value, &made.dtype, &[]) }?.to_vec());
    }
    // SAFETY: as above.
    made.attributes = unsafe { attributes(spec.attributes) }?;
    Ok(made)
}

/// Chooses codecs for an array by a sample of its values, of `sample_shape` (as many dimensions as
/// `spec`): gives them as text for `ambar_spec.codecs`. All ranks must define an array with the same codecs.
///
/// # Safety
/// Pointers are null or point to what they say; `sample` to as many values as `sample_shape` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_choose_codecs(
    spec: *const ambar_spec,
    sample: *const c_void,
    sample_shape: *const u64,
    json: *mut ambar_bytes,
) -> i32 {
    guard(|| {
        let json = Out::new(json, "the place of the codecs")?;
        // SAFETY: the caller says so, here and below.
        let mut made = unsafe { read_spec(spec) }?;
        // SAFETY: as above.
        let shape = unsafe { list(sample_shape, made.shape.len(), "the sample's shape") }?;
        made.shape = shape.to_vec();
        // SAFETY: as above.
        let sample = unsafe { values(sample, &made.dtype, shape) }?;
        let chain = choose_codecs(&made, ArrayData::Fixed(sample))?;
        let text = chain.to_json(&made.dtype).to_string();
        // SAFETY: as above.
        unsafe { json.set(text.into_bytes().into()) };
        Ok(())
    })
}

/// Values of a type as bytes.
///
/// # Safety
/// It is null, or points to as many values as `shape` says, which nobody changes meanwhile.
pub(super) unsafe fn values<'a>(
    pointer: *const c_void,
    dtype: &DataType,
    shape: &[u64],
) -> Result<&'a [u8]> {
    let bytes = byte_count(dtype, shape)?;
    // SAFETY: the caller says so.
    unsafe { list(pointer.cast(), bytes, "the data") }
}

/// Bytes of values of a type.
pub(super) fn byte_count(dtype: &DataType, shape: &[u64]) -> Result<usize> {
    let size = dtype.size().unwrap_or(1) as u64;
    let bytes = shape.iter().try_fold(size, |all, n| all.checked_mul(*n));
    bytes
        .and_then(|bytes| isize::try_from(bytes).ok())
        .map(isize::unsigned_abs)
        .ok_or_else(|| Error::limit(format!("{shape:?} values do not fit in memory")))
}
