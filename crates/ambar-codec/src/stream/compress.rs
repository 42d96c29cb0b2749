//! Error bounds of all kinds: values become coded values, which have an absolute bound or are lossless.

use crate::bound::mapping::Mapping;
use crate::bound::{ErrorBound, exact, rounding};
use crate::domain::components::with_coding_order;
use crate::domain::regions::Layout;
use crate::element::Element;
use crate::entropy::bitio::Cursor;
use crate::entropy::exceptions::Exceptions;
use crate::error::{Result, invalid};
use crate::simd::dispatch::vectorised;
use crate::stream::bound_search::{BoundSearch, uniform_bound};
use crate::stream::choice;
use crate::stream::decode::decode_in_coding_order;
use crate::stream::encode::{Workspace, encode_coded_values, has_many_literals};
use crate::stream::header::{BoundKind, Header};
use crate::stream::mean_error;
use crate::stream::params::EncoderParams;
use crate::stream::prelude::{Prelude, RelativeCoding};
use std::borrow::Cow;

/// Encodes `values` within an error bound: a number is an absolute bound, 0 is lossless.
///
/// NaN, infinities and other unpredictable values are preserved bit for bit. Values that are all above 0, or all at
/// least 0, decode to such values. [`tune`] chooses `params` for similar values; `None` chooses for these values.
///
/// # Errors
/// `Invalid` if the layout does not fit the values, or if the bound is invalid or depends on a value range:
/// [resolve](ErrorBound::resolve) it first.
pub fn encode<T: Element>(
    values: &[T],
    layout: &Layout<'_>,
    bound: impl Into<ErrorBound>,
    params: Option<EncoderParams>,
    workspace: &mut Workspace<T>,
) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    encode_into(values, layout, bound, params, workspace, &mut out)?;
    Ok(out)
}

/// As [`encode`], into `out`, whose content is replaced and whose memory is reused.
///
/// # Errors
/// As [`encode`].
pub fn encode_into<T: Element>(
    values: &[T],
    layout: &Layout<'_>,
    bound: impl Into<ErrorBound>,
    params: Option<EncoderParams>,
    workspace: &mut Workspace<T>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let bound = bound.into();
    let params = match params {
        Some(params) => params,
        None => tune(values, layout, bound)?,
    };
    let moved = params.moved_dimensions();
    with_coding_order(values, layout, moved, |values, layout, components| {
        let coded = CodedValues::new(values, bound)?;
        let mut encoder = StreamEncoder {
            values,
            layout,
            components,
            params,
            workspace,
            out,
        };
        if let ErrorBound::Rms(root) = bound {
            return encoder.rms(root);
        }
        if coded.coding.is_some() {
            return encoder.relative(bound, coded);
        }
        encoder.encode(&coded, &[])
    })
}

/// Chooses encoder parameters for values like these, such as all chunks of the array that they are from.
///
/// # Errors
/// As [`encode`].
pub fn tune<T: Element>(
    values: &[T],
    layout: &Layout<'_>,
    bound: impl Into<ErrorBound>,
) -> Result<EncoderParams> {
    tune_coded_values(choice::tune, values, layout, bound.into())
}

/// Chooses encoder parameters for small streams, which have contexts of rows, and tokens that are coded adaptively where
/// this is 2 % smaller. Compared with [`tune`], streams are 1 or 2 % smaller. Decoding takes a tenth more time, or up to ten
/// times as long where tokens are coded adaptively.
///
/// # Errors
/// As [`encode`].
pub fn tune_small<T: Element>(
    values: &[T],
    layout: &Layout<'_>,
    bound: impl Into<ErrorBound>,
) -> Result<EncoderParams> {
    tune_coded_values(choice::tune_small, values, layout, bound.into())
}

/// Chooses encoder parameters for fast encoding and decoding: bit-packed streams for arrays, unless they are more than
/// a quarter larger than entropy-coded streams with contexts of levels, which are chosen otherwise.
///
/// # Errors
/// As [`encode`].
pub fn tune_fast<T: Element>(
    values: &[T],
    layout: &Layout<'_>,
    bound: impl Into<ErrorBound>,
) -> Result<EncoderParams> {
    tune_coded_values(choice::tune_fast, values, layout, bound.into())
}

/// A function that chooses encoder parameters for coded values within an absolute bound, which may be one of the root mean
/// squared error.
type TuneFunction<T> = fn(&[T], &Layout<'_>, f64, bool) -> Result<EncoderParams>;

/// Chooses encoder parameters.
fn tune_coded_values<T: Element>(
    tune: TuneFunction<T>,
    values: &[T],
    layout: &Layout<'_>,
    bound: ErrorBound,
) -> Result<EncoderParams> {
    with_coding_order(values, layout, 0, |values, layout, _| {
        CodedValues::new(values, bound)?.params(tune, layout, bound)
    })
}

/// Whether a bound limits the root mean squared error and no single value.
fn is_rms(bound: ErrorBound) -> bool {
    matches!(bound, ErrorBound::Rms(_))
}

/// Coded values: the values rounded, mapped or unchanged, so that an absolute bound applies.
struct CodedValues<'a, T: Clone> {
    values: Cow<'a, [T]>,
    /// The absolute bound of the coded values; 0 for lossless.
    bound: f64,
    coding: Option<RelativeCoding>,
    /// The smallest value, if decoded values may have another sign or be 0.
    minimum: Option<T>,
}

impl<'a, T: Element> CodedValues<'a, T> {
    fn new(values: &'a [T], bound: ErrorBound) -> Result<Self> {
        bound.check()?;
        let plain = |bound: f64| Self {
            values: Cow::Borrowed(values),
            bound,
            coding: None,
            minimum: needed_minimum(values, bound),
        };
        Ok(match bound {
            ErrorBound::Lossless => plain(0.0),
            ErrorBound::Absolute(bound) => plain(bound),
            ErrorBound::Rms(root) => plain(uniform_bound(root)),
            ErrorBound::Bits(bits) => Self::rounded(values, |x| rounding::round(x, bits)),
            ErrorBound::Relative(relative) => Self::relative(values, relative, 0.0),
            ErrorBound::RelativeAbove { relative, floor } => {
                Self::relative(values, relative, floor)
            }
            ErrorBound::OfRange(_) | ErrorBound::Psnr(_) => {
                return Err(invalid!(
                    "the error bound \"{bound}\" depends on the value range of the whole array, which is \
                     unknown here: give the range, or an absolute or relative bound"
                ));
            }
        })
    }

    /// Chooses encoder parameters.
    fn params(
        &self,
        tune: TuneFunction<T>,
        layout: &Layout<'_>,
        bound: ErrorBound,
    ) -> Result<EncoderParams> {
        let params = tune(&self.values, layout, self.bound, is_rms(bound))?;
        // Where mapped values are not quantized, the values are rounded instead.
        Ok(params.with_lossless_trial(params.tries_lossless() && self.coding.is_none()))
    }

    /// Rounds each value; the rounded values are lossless.
    fn rounded(values: &[T], round: impl Fn(T) -> T) -> Self {
        let rounded: Vec<T> = values.iter().map(|x| round(*x)).collect();
        // A denormal may become 0.
        let minimum = nonnegative_minimum(values)
            .filter(|least| *least > T::default() && round(*least) == T::default());
        Self {
            values: Cow::Owned(rounded),
            bound: 0.0,
            coding: None,
            minimum,
        }
    }

    /// Rounds values to the number of bits that a relative bound requires.
    fn rounded_within(values: &[T], relative: f64, floor: f64) -> Self {
        let bits = rounding::bits_within(relative);
        Self::rounded(values, |x| {
            let rounded = rounding::round(x, bits);
            if is_within(x, rounded, relative, floor) {
                rounded
            } else {
                x
            }
        })
    }

    fn relative(values: &'a [T], relative: f64, floor: f64) -> Self {
        let (mut least, mut largest) = (f64::INFINITY, 0.0f64);
        for x in values {
            let size = x.to_f64().abs();
            if size > 0.0 && size.is_finite() {
                (least, largest) = (least.min(size), largest.max(size));
            }
        }
        let absolute = (relative * floor).next_down();
        if largest <= floor && absolute > f64::MIN_POSITIVE {
            return Self {
                values: Cow::Borrowed(values),
                bound: absolute,
                coding: None,
                minimum: needed_minimum(values, absolute),
            };
        }
        let unit = floor.max(least).max(f64::MIN_POSITIVE);
        if !unit.is_finite() {
            return Self::rounded_within(values, relative, floor);
        }
        // A floor below the smallest value has no effect, except on zeros.
        let floor = if floor < unit { 0.0 } else { floor };
        let coding = RelativeCoding {
            relative,
            floor,
            unit,
        };
        let mapping = coding.mapping();
        let top: f64 = mapping.encode(largest);
        let Some(bound) = Mapping::coded_bound::<T>(relative, top) else {
            return Self::rounded_within(values, relative, floor);
        };
        Self {
            values: values.iter().map(|x| mapping.encode(*x)).collect(),
            bound,
            coding: Some(coding),
            minimum: needed_minimum(values, relative * floor),
        }
    }
}

/// The smallest of values that are not negative; `None` if one is. NaN are ignored. The first of equal values counts:
/// 0 and -0 are equal.
fn nonnegative_minimum<T: Element>(values: &[T]) -> Option<T> {
    let zero = T::default();
    let least = smallest(values);
    let least = match least == zero {
        true => *values.iter().find(|x| **x == zero)?,
        false => least,
    };
    let is_minimum = least >= zero && least.to_f64().is_finite();
    is_minimum.then_some(least)
}

vectorised! {
    /// The smallest of values; infinity if there are none. NaN are ignored.
    fn smallest [T: Element] of [T] (values: &[T]) -> T {
        let mut least = [T::from_f64(f64::INFINITY); 32];
        let min = |a: T, b: T| if b < a { b } else { a };
        let (chunks, rest) = values.as_chunks::<32>();
        for chunk in chunks {
            for (least, x) in least.iter_mut().zip(chunk) {
                *least = min(*least, *x);
            }
        }
        rest.iter().chain(&least[1..]).fold(least[0], |a, b| min(a, *b))
    }
}

/// As [`nonnegative_minimum`], if the bound reaches from it to 0.
fn needed_minimum<T: Element>(values: &[T], bound: f64) -> Option<T> {
    if bound == 0.0 {
        return None;
    }
    nonnegative_minimum(values).filter(|least| least.to_f64() <= bound)
}

fn is_within<T: Element>(original: T, decoded: T, relative: f64, floor: f64) -> bool {
    let (original, decoded) = (original.to_f64(), decoded.to_f64());
    original == decoded
        || exact::is_surely_within(original, decoded, relative, original.abs().max(floor))
}

/// The encoder of one stream.
struct StreamEncoder<'a, T> {
    values: &'a [T],
    layout: &'a Layout<'a>,
    components: Option<usize>,
    params: EncoderParams,
    workspace: &'a mut Workspace<T>,
    out: &'a mut Vec<u8>,
}

impl<T: Element> StreamEncoder<'_, T> {
    fn encode(&mut self, coded: &CodedValues<'_, T>, exceptions: &[u8]) -> Result<()> {
        let prelude = Prelude {
            relative: coded.coding,
            exceptions,
            minimum: coded.minimum.map(T::to_word),
            components: self.components,
        };
        encode_coded_values(
            &coded.values,
            self.layout,
            coded.bound,
            self.params,
            &prelude,
            self.workspace,
            self.out,
        )
    }

    /// Decodes the stream into `workspace.decoded`, in the order of coding.
    fn decode(&mut self) -> Result<()> {
        let mut decoded = std::mem::take(&mut self.workspace.decoded);
        decoded.resize(self.values.len(), T::default());
        let result = decode_in_coding_order(self.out, &mut decoded, self.workspace);
        self.workspace.decoded = decoded;
        result.map(|_| ())
    }

    /// Encodes within a relative bound. Values whose decoded value breaks it become exceptions.
    fn relative(&mut self, bound: ErrorBound, coded: CodedValues<'_, T>) -> Result<()> {
        let (relative, floor) = match bound {
            ErrorBound::RelativeAbove { relative, floor } => (relative, floor),
            ErrorBound::Relative(relative) => (relative, 0.0),
            _ => {
                return Err(invalid!(
                    "expected a relative error bound; found \"{bound}\""
                ));
            }
        };
        self.encode(&coded, &[])?;
        if Header::parse(&mut Cursor(self.out))?.bound == BoundKind::Mapped {
            self.decode()?;
            let mut exceptions = Exceptions::default();
            let pairs = self.values.iter().zip(&self.workspace.decoded);
            for (at, (original, decoded)) in pairs.enumerate() {
                let is_same = original.to_word() == decoded.to_word();
                let is_kept = is_same || is_within(*original, *decoded, relative, floor);
                if !is_kept && !self.layout.is_padding(at) {
                    exceptions.push(at);
                }
            }
            if exceptions.is_empty() {
                return Ok(());
            }
            if exceptions.len() <= self.values.len() / 64 + 16 {
                let mut bytes = Vec::new();
                exceptions.write(self.values, &mut bytes);
                return self.encode(&coded, &bytes);
            }
        }
        drop(coded);
        let rounded = CodedValues::rounded_within(self.values, relative, floor);
        self.encode(&rounded, &[])
    }

    /// Encodes with the widest bins found whose root mean squared error is at most `root`.
    fn rms(&mut self, root: f64) -> Result<()> {
        // A margin for the rounding errors of the sum.
        let root = root * (1.0 - 1e-9);
        if self.params.is_bit_packed() && self.layout.as_array().is_some() {
            return self.bit_packed_rms(root);
        }
        let prelude = Prelude {
            minimum: nonnegative_minimum(self.values).map(T::to_word),
            components: self.components,
            ..Prelude::default()
        };
        let params = self.params.with_rdo(true);
        let (values, layout) = (self.values, self.layout);
        let mut encode =
            |params| mean_error::encode(values, layout, root, &prelude, params, self.workspace);
        let mut stream = encode(params)?;
        if stream.is_none() {
            // The parameters may be those of another chunk, which wavelets and wider bins suit.
            stream = encode(params.with_wavelet(None).with_bound_ratio(1.0))?;
        }
        let Some(stream) = stream else {
            // Single values are bounded by `root`.
            return self.encode_within(root);
        };
        if has_many_literals(&self.workspace.symbols, values.len()) {
            self.encode_within(0.0)?;
            if self.out.len() <= stream.len() {
                return Ok(());
            }
        }
        *self.out = stream;
        Ok(())
    }

    /// As `rms`, for bit-packed streams, whose errors are those of decoded values.
    fn bit_packed_rms(&mut self, root: f64) -> Result<()> {
        let (best, last) = BoundSearch::new(root).widest(uniform_bound(root), |bound| {
            self.encode_within(bound)?;
            self.decode()?;
            Ok(relative_rms(self.values, &self.workspace.decoded, root))
        })?;
        match best {
            Some(best) if best == last => Ok(()),
            _ => self.encode_within(best.unwrap_or(root)),
        }
    }

    /// Encodes the values within an absolute bound.
    fn encode_within(&mut self, bound: f64) -> Result<()> {
        let coded = CodedValues {
            values: Cow::Borrowed(self.values),
            bound,
            coding: None,
            minimum: needed_minimum(self.values, bound),
        };
        self.encode(&coded, &[])
    }
}

/// The root mean squared error of finite values, in units of `root`.
fn relative_rms<T: Element>(original: &[T], decoded: &[T], root: f64) -> f64 {
    let (mut sum, mut count) = (0.0, 0u64);
    for (original, decoded) in original.chunks(4096).zip(decoded.chunks(4096)) {
        let (mut part, mut finite) = (0.0, 0u64);
        for (original, decoded) in original.iter().zip(decoded) {
            let original = original.to_f64();
            if original.is_finite() {
                let error = (decoded.to_f64() - original) / root;
                part += error * error;
                finite += 1;
            }
        }
        sum += part;
        count += finite;
    }
    (sum / count.max(1) as f64).sqrt()
}
