//! The filter's options, `cd_values`: what a user gives, and what a dataset's type and chunk add.

use std::borrow::Cow;
use std::ffi::c_uint;

use ambar_codec::packet::ValueType;
use ambar_codec::{ErrorBound, InvalidBound};

/// The version of the layout of the options.
const VERSION: c_uint = 1;
/// How far values may be off.
const LOSSLESS: c_uint = 0;
const ABSOLUTE: c_uint = 1;
const RELATIVE: c_uint = 2;
/// Two float32: the relative bound and its floor.
const FLOOR: c_uint = 3;
/// The number of bits of the mantissa that are kept, and 0.
const BITS: c_uint = 4;
const RMS: c_uint = 5;
/// The bound as a string, which the C header passes on: the lowest and the highest value of the dataset, two float64 (NaN:
/// unknown), then the string in UTF-8, the first byte lowest, padded with zeros. Only applications give it: `set_local`
/// replaces it by one of the other kinds.
const TEXT: c_uint = 6;
/// Options that a user gives: version, kind of bound, and two that state it: a float64's lower and upper 32 bits,
/// unless said otherwise.
const GIVEN: usize = 4;
/// What comes before the lengths of a chunk.
const BEFORE_LENGTHS: usize = 7;
/// Dimensions of a chunk.
pub(super) const RANK: usize = 32;
/// All options.
pub(super) const ALL: usize = BEFORE_LENGTHS + RANK;
const BIG_ENDIAN: c_uint = 1 << 8;

const KINDS: &str = "the filter's options must begin with 1, a kind of bound from 0 to 6, and numbers that \
                     state the bound";

/// A message for HDF5's error stack.
pub(super) type Message = Cow<'static, str>;

/// The options that an application gives, without those that the filter adds.
pub(super) fn given_part(values: &[c_uint]) -> &[c_uint] {
    match values {
        [VERSION, TEXT, ..] => values,
        _ => &values[..values.len().min(GIVEN)],
    }
}

/// The options of a dataset.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// How far values may be off.
    pub bound: ErrorBound,
    /// What the dataset's type and chunk add; `None` before they are known.
    pub local: Option<Local>,
}

/// The type of a dataset's values, and its chunk.
#[derive(Clone, Debug, PartialEq)]
pub struct Local {
    /// The type of the values.
    pub dtype: ValueType,
    /// Whether they have their highest byte first.
    pub big_endian: bool,
    /// The chunk's length in each dimension.
    pub shape: Vec<usize>,
}

impl Local {
    /// The bytes of a chunk.
    pub(super) fn bytes(&self) -> Option<usize> {
        self.shape
            .iter()
            .try_fold(self.dtype.size(), |bytes, n| bytes.checked_mul(*n))
    }
}

impl Options {
    /// Reads options; none at all mean: without loss.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn parse(values: &[c_uint]) -> Result<Self, Message> {
        let (bound, rest) = match values {
            [] => {
                return Ok(Self {
                    bound: ErrorBound::Lossless,
                    local: None,
                });
            }
            [VERSION, TEXT, rest @ ..] => {
                return Ok(Self {
                    bound: from_text(rest)?,
                    local: None,
                });
            }
            [VERSION, kind, low, high, rest @ ..] => {
                let number = double(*low, *high);
                let bound = match *kind {
                    LOSSLESS => ErrorBound::Lossless,
                    ABSOLUTE => ErrorBound::from(number),
                    RELATIVE => ErrorBound::Relative(number),
                    FLOOR => ErrorBound::RelativeAbove {
                        relative: f64::from(f32::from_bits(*low)),
                        floor: f64::from(f32::from_bits(*high)),
                    },
                    BITS => ErrorBound::Bits(*low),
                    RMS => ErrorBound::Rms(number),
                    _ => return Err(KINDS.into()),
                };
                (bound, rest)
            }
            [VERSION, ..] => return Err(KINDS.into()),
            [_, ..] => {
                return Err("the filter's options are those of a newer version of ambar".into());
            }
        };
        if bound.check().is_err() {
            return Err("the error bound in the filter's options is invalid".into());
        }
        let local = match rest {
            [] => None,
            rest => Some(Self::local(rest).ok_or("the filter's options contradict each other")?),
        };
        Ok(Self { bound, local })
    }

    fn local(rest: &[c_uint]) -> Option<Local> {
        let [kind, size, rank, lengths @ ..] = rest else {
            return None;
        };
        let dtype = match (kind & !BIG_ENDIAN, *size) {
            (0, 1..) => ValueType::Other(*size as usize),
            (1, 4) => ValueType::Float32,
            (2, 8) => ValueType::Float64,
            _ => return None,
        };
        if lengths.len() != *rank as usize || lengths.contains(&0) {
            return None;
        }
        let local = Local {
            dtype,
            big_endian: kind & BIG_ENDIAN != 0,
            shape: lengths.iter().map(|n| *n as usize).collect(),
        };
        local.bytes().map(|_| local)
    }

    /// Options as HDF5 keeps them.
    ///
    /// # Errors
    /// Where a number does not fit into 32 bits.
    pub fn to_values(&self) -> Result<Vec<c_uint>, Message> {
        let double = |kind, number: f64| {
            let bits = number.to_bits();
            [kind, bits as c_uint, (bits >> 32) as c_uint]
        };
        let bound = match self.bound {
            ErrorBound::Lossless => double(LOSSLESS, 0.0),
            ErrorBound::Absolute(bound) => double(ABSOLUTE, bound),
            ErrorBound::Relative(relative) => double(RELATIVE, relative),
            ErrorBound::RelativeAbove { relative, floor } => {
                [FLOOR, single(relative)?.to_bits(), single(floor)?.to_bits()]
            }
            ErrorBound::Bits(bits) => [BITS, bits, 0],
            ErrorBound::Rms(root) => double(RMS, root),
            ErrorBound::OfRange(_) | ErrorBound::Psnr(_) => return Err(KINDS.into()),
        };
        let mut values = vec![VERSION];
        values.extend(bound);
        let Some(local) = &self.local else {
            return Ok(values);
        };
        let number = |n: usize| {
            c_uint::try_from(n).map_err(|_| "the filter takes chunks of less than 2^32 values")
        };
        let kind = match local.dtype {
            ValueType::Other(_) => 0,
            ValueType::Float32 => 1,
            ValueType::Float64 => 2,
        };
        values.push(kind | if local.big_endian { BIG_ENDIAN } else { 0 });
        values.push(number(local.dtype.size())?);
        values.push(number(local.shape.len())?);
        for n in &local.shape {
            values.push(number(*n)?);
        }
        Ok(values)
    }
}

fn double(low: c_uint, high: c_uint) -> f64 {
    f64::from_bits(u64::from(high) << 32 | u64::from(low))
}

/// The bound that options of the kind [`TEXT`] state, resolved with the value range.
fn from_text(rest: &[c_uint]) -> Result<ErrorBound, Message> {
    let [a, b, c, d, text @ ..] = rest else {
        return Err(KINDS.into());
    };
    let range = [double(*a, *b), double(*c, *d)];
    let bytes: Vec<u8> = text.iter().flat_map(|word| word.to_le_bytes()).collect();
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| "the error bound in the filter's options is not valid UTF-8")?
        .trim_end_matches('\0');
    let bound: ErrorBound = text
        .parse()
        .map_err(|error: InvalidBound| error.to_string())?;
    match bound.needs_range() {
        true if range.iter().any(|end| end.is_nan()) => Err(format!(
            "error bound {text:?} depends on the value range of the whole dataset, which is unknown here: pass \
             value_range, the lowest and the highest value, or give an absolute or relative bound"
        )
        .into()),
        true => Ok(bound.resolve(range)),
        false => Ok(bound),
    }
}

/// The largest float32 that is no larger than a number above 0: the bound is never looser.
fn single(number: f64) -> Result<f32, Message> {
    let nearest = number.min(f64::from(f32::MAX)) as f32;
    let single = match f64::from(nearest) > number {
        true => nearest.next_down(),
        false => nearest,
    };
    if single > 0.0 {
        return Ok(single);
    }
    Err(format!(
        "{number:e} is too small for the HDF5 filter's relative bound with a floor: give a larger number, or a bound \
         without a floor"
    )
    .into())
}
