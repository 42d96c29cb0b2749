//! Encoding within error bounds of all kinds: by streams whose coded values have an absolute bound, or none.

use crate::bound::mapping::Mapping;
use crate::bound::{ErrorBound, rounding, satisfied};
use crate::domain::regions::Layout;
use crate::element::Element;
use crate::entropy::bitio::Cursor;
use crate::entropy::exceptions::Exceptions;
use crate::error::{Error, Invalid, Result};
use crate::stream::decode::decode;
use crate::stream::encode::{Workspace, encode_planned};
use crate::stream::header::{BoundKind, Header};
use crate::stream::params::Plan;
use crate::stream::prelude::{Prelude, RelativeCoding};
use crate::stream::tune;
use std::borrow::Cow;

/// Encodes `values` within an error bound: a number is an absolute bound, 0 is lossless.
///
/// NaN, infinities and other values that cannot be predicted come back bit for bit. A chunk whose values are
/// all above 0, or all at least 0, decodes to such values. `plan` is what [`tune`] chose; `None` chooses for
/// these values.
///
/// # Errors
/// `Invalid` where the layout does not fit the values, the bound is invalid, or depends on a value range:
/// [resolve](ErrorBound::resolve) it first.
pub fn encode<T: Element>(
    values: &[T],
    layout: &Layout<'_>,
    bound: impl Into<ErrorBound>,
    plan: Option<Plan>,
    workspace: &mut Workspace<T>,
) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    encode_into(values, layout, bound, plan, workspace, &mut out)?;
    Ok(out)
}

/// The same, into `out`, whose memory is used again and whose content is lost.
///
/// # Errors
/// As [`encode`].
pub fn encode_into<T: Element>(
    values: &[T],
    layout: &Layout<'_>,
    bound: impl Into<ErrorBound>,
    plan: Option<Plan>,
    workspace: &mut Workspace<T>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let bound = bound.into();
    layout.check(values.len())?;
    let prepared = Prepared::new(values, bound)?;
    let plan = match plan {
        Some(plan) => plan,
        None => tune::tune(&prepared.values, layout, prepared.bound)?,
    };
    let mut job = Job {
        values,
        layout,
        plan,
        workspace,
        out,
    };
    if let ErrorBound::Rms(root) = bound {
        return job.rms(root, &prepared);
    }
    if prepared.coding.is_some() {
        return job.relative(bound, prepared);
    }
    job.encode(&prepared, &[])
}

/// Chooses settings for values like these: for the chunks of an array, whose samples they are.
///
/// # Errors
/// As [`encode`].
pub fn tune<T: Element>(
    values: &[T],
    layout: &Layout<'_>,
    bound: impl Into<ErrorBound>,
) -> Result<Plan> {
    let prepared = Prepared::new(values, bound.into())?;
    tune::tune(&prepared.values, layout, prepared.bound)
}

/// Chooses settings for streams as small as can be: their contexts come from the row before, so that they
/// take one or two hundredths less, and a fifth more time to decode.
///
/// # Errors
/// As [`encode`].
pub fn tune_small<T: Element>(
    values: &[T],
    layout: &Layout<'_>,
    bound: impl Into<ErrorBound>,
) -> Result<Plan> {
    let prepared = Prepared::new(values, bound.into())?;
    tune::tune_small(&prepared.values, layout, prepared.bound)
}

/// Chooses settings for encoding and decoding as fast as can be: packed streams for arrays, unless they are
/// more than a quarter larger than quick ones; those for all else.
///
/// # Errors
/// As [`encode`].
pub fn tune_fast<T: Element>(
    values: &[T],
    layout: &Layout<'_>,
    bound: impl Into<ErrorBound>,
) -> Result<Plan> {
    let prepared = Prepared::new(values, bound.into())?;
    tune::tune_fast(&prepared.values, layout, prepared.bound)
}

/// Values as they are coded.
struct Prepared<'a, T: Clone> {
    values: Cow<'a, [T]>,
    /// The absolute bound of the coded values; 0 for lossless.
    bound: f64,
    coding: Option<RelativeCoding>,
    /// The smallest value, where the bound might bring other values below.
    minimum: Option<T>,
}

impl<'a, T: Element> Prepared<'a, T> {
    fn new(values: &'a [T], bound: ErrorBound) -> Result<Self> {
        bound.check()?;
        let plain = |bound: f64| Self {
            values: Cow::Borrowed(values),
            bound,
            coding: None,
            minimum: minimum_within(values, bound),
        };
        Ok(match bound {
            ErrorBound::Lossless => plain(0.0),
            ErrorBound::Absolute(bound) => plain(bound),
            // Errors that are spread evenly have this bound.
            ErrorBound::Rms(root) => plain((root * 3f64.sqrt()).min(f64::MAX)),
            ErrorBound::Bits(bits) => Self::rounded(values, |x| rounding::round(x, bits)),
            ErrorBound::Relative(relative) => Self::relative(values, relative, 0.0),
            ErrorBound::RelativeAbove { relative, floor } => {
                Self::relative(values, relative, floor)
            }
            ErrorBound::OfRange(_) | ErrorBound::Psnr(_) => {
                return Err(Invalid(
                    "the error bound depends on the value range of the whole array, which is unknown \
                     here: give the range, or an absolute or relative bound",
                ));
            }
        })
    }

    /// Values that are rounded one by one, and coded without loss.
    fn rounded(values: &[T], round: impl Fn(T) -> T) -> Self {
        let rounded: Vec<T> = values.iter().map(|x| round(*x)).collect();
        // A denormal may become 0.
        let minimum =
            minimum(values).filter(|least| *least > T::default() && round(*least) == T::default());
        Self {
            values: Cow::Owned(rounded),
            bound: 0.0,
            coding: None,
            minimum,
        }
    }

    /// Values rounded to as many bits as a relative bound needs.
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
                minimum: minimum_within(values, absolute),
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
            minimum: minimum_within(values, relative * floor),
        }
    }
}

/// The smallest value of values none of which is negative; NaN do not count.
fn minimum<T: Element>(values: &[T]) -> Option<T> {
    let mut least = T::from_f64(f64::INFINITY);
    for x in values {
        least = if *x < least { *x } else { least };
    }
    let is_minimum = least >= T::default() && least.to_f64().is_finite();
    is_minimum.then_some(least)
}

/// The same, where a bound allows values below the least sign.
fn minimum_within<T: Element>(values: &[T], bound: f64) -> Option<T> {
    if bound == 0.0 {
        return None;
    }
    minimum(values).filter(|least| least.to_f64() <= bound)
}

fn is_within<T: Element>(original: T, decoded: T, relative: f64, floor: f64) -> bool {
    let (original, decoded) = (original.to_f64(), decoded.to_f64());
    original == decoded
        || satisfied::is_surely_within(original, decoded, relative, original.abs().max(floor))
}

/// Values on their way into a stream.
struct Job<'a, T> {
    values: &'a [T],
    layout: &'a Layout<'a>,
    plan: Plan,
    workspace: &'a mut Workspace<T>,
    out: &'a mut Vec<u8>,
}

impl<T: Element> Job<'_, T> {
    fn encode(&mut self, prepared: &Prepared<'_, T>, exceptions: &[u8]) -> Result<()> {
        let prelude = Prelude {
            relative: prepared.coding,
            exceptions,
            minimum: prepared.minimum.map(T::to_word),
        };
        encode_planned(
            &prepared.values,
            self.layout,
            prepared.bound,
            self.plan,
            &prelude,
            self.workspace,
            self.out,
        )
    }

    /// Decodes the stream into the workspace.
    fn decode(&mut self) -> Result<()> {
        let mut decoded = std::mem::take(&mut self.workspace.decoded);
        decoded.resize(self.values.len(), T::default());
        let result = decode(self.out, &mut decoded, self.workspace);
        self.workspace.decoded = decoded;
        result
    }

    /// A relative bound: values that break it as decoded become exceptions.
    fn relative(&mut self, bound: ErrorBound, prepared: Prepared<'_, T>) -> Result<()> {
        let (relative, floor) = match bound {
            ErrorBound::RelativeAbove { relative, floor } => (relative, floor),
            ErrorBound::Relative(relative) => (relative, 0.0),
            _ => return Err(Error::Invalid("the error bound is not relative")),
        };
        self.encode(&prepared, &[])?;
        if Header::parse(&mut Cursor(self.out))?.bound == BoundKind::Mapped {
            self.decode()?;
            let mut exceptions = Exceptions::default();
            let pairs = self.values.iter().zip(&self.workspace.decoded);
            for (at, (original, decoded)) in pairs.enumerate() {
                let is_same = original.to_word() == decoded.to_word();
                if !is_same && !is_within(*original, *decoded, relative, floor) {
                    exceptions.push(at);
                }
            }
            if exceptions.is_empty() {
                return Ok(());
            }
            if exceptions.len() <= self.values.len() / 64 + 16 {
                let mut bytes = Vec::new();
                exceptions.write(self.values, &mut bytes);
                return self.encode(&prepared, &bytes);
            }
        }
        drop(prepared);
        let rounded = Prepared::rounded_within(self.values, relative, floor);
        self.encode(&rounded, &[])
    }

    /// The largest absolute bound found under which the root mean squared error is at most `root`.
    fn rms(&mut self, root: f64, prepared: &Prepared<'_, T>) -> Result<()> {
        // Rounding of the sum.
        let root = root * (1.0 - 1e-9);
        // An absolute bound of `root` always suffices.
        let (mut best, mut low, mut high) = (None, root, f64::INFINITY);
        let mut bound = prepared.bound;
        for _ in 0..TRIALS {
            let trial = Prepared {
                values: Cow::Borrowed(self.values),
                bound,
                coding: None,
                minimum: minimum_within(self.values, bound),
            };
            self.encode(&trial, &[])?;
            self.decode()?;
            let measured = relative_rms(self.values, &self.workspace.decoded, root);
            if measured <= 1.0 {
                best = Some(std::mem::take(self.out));
                low = bound;
                if measured > CLOSE {
                    break;
                }
            } else {
                high = bound;
            }
            // The error grows a little slower than the bound.
            let next = bound * (0.5 * (1.0 + CLOSE) / measured.max(1e-3));
            bound = if next > low && next < high {
                next
            } else if high.is_finite() {
                0.5 * (low + high)
            } else {
                2.0 * low
            };
            if bound > f64::MAX {
                break;
            }
        }
        match best {
            Some(stream) => {
                *self.out = stream;
                Ok(())
            }
            None => {
                let safe = Prepared {
                    values: Cow::Borrowed(self.values),
                    bound: root,
                    coding: None,
                    minimum: minimum_within(self.values, root),
                };
                self.encode(&safe, &[])
            }
        }
    }
}

/// Absolute bounds that are tried for a root mean squared error, and how near to it is near enough.
const TRIALS: usize = 4;
const CLOSE: f64 = 0.97;

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
