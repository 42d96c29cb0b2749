//! The codec `numcodecs.pcodec`: one standalone pco file for each chunk.

use pco::data_types::Number;
use pco::metadata::DeltaEncoding;
use pco::standalone::{DecompressorItem, FileDecompressor, simple_compress_into};
use pco::{ChunkConfig, DeltaSpec, ModeSpec, PagingSpec};
use serde::{Deserialize, Serialize};

use super::difference_orders::suits_other_order;
use crate::dtype::DataType;
use crate::error::{Error, Result};

/// The codec's `configuration`, as numcodecs defines it. It describes the encoding; decoding does not need it.
/// Options with the default of numcodecs are not written, because each array has a document of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Config {
    #[serde(default = "default_level")]
    pub level: usize,
    #[serde(default = "auto", skip_serializing_if = "is_auto")]
    pub mode_spec: String,
    #[serde(default = "auto", skip_serializing_if = "is_auto")]
    pub delta_spec: String,
    #[serde(default = "equal_pages", skip_serializing_if = "is_equal_pages")]
    pub paging_spec: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta_encoding_order: Option<usize>,
    #[serde(default = "page", skip_serializing_if = "is_page")]
    pub equal_pages_up_to: usize,
}

fn default_level() -> usize {
    pco::DEFAULT_COMPRESSION_LEVEL
}

fn auto() -> String {
    "auto".into()
}

fn is_auto(spec: &str) -> bool {
    spec == "auto"
}

fn equal_pages() -> String {
    "equal_pages_up_to".into()
}

fn is_equal_pages(spec: &str) -> bool {
    spec == "equal_pages_up_to"
}

fn page() -> usize {
    pco::DEFAULT_MAX_PAGE_N
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_page(values: &usize) -> bool {
    *values == page()
}

impl Config {
    pub fn new(level: usize) -> Self {
        Self {
            level,
            mode_spec: auto(),
            delta_spec: auto(),
            paging_spec: equal_pages(),
            delta_encoding_order: None,
            equal_pages_up_to: page(),
        }
    }

    /// Plain values: pco searches neither for modes nor for deltas.
    pub fn plain(level: usize) -> Self {
        Self {
            mode_spec: "classic".into(),
            delta_spec: "none".into(),
            ..Self::new(level)
        }
    }

    /// Deltas from equal earlier values, which pco searches for.
    pub fn lookback(level: usize) -> Self {
        Self {
            delta_spec: "try_lookback".into(),
            ..Self::new(level)
        }
    }

    /// Whether pco searches for deltas.
    fn searches_deltas(&self) -> bool {
        self.delta_spec == "auto"
    }

    fn chunk_config(&self) -> Result<ChunkConfig> {
        let specs = match (self.mode_spec.as_str(), self.delta_spec.as_str()) {
            ("auto", "auto") => Some((ModeSpec::Auto, DeltaSpec::Auto)),
            ("auto", "try_lookback") => Some((ModeSpec::Auto, DeltaSpec::TryLookback)),
            ("classic", "none") => Some((ModeSpec::Classic, DeltaSpec::NoOp)),
            _ => None,
        };
        let known = self.delta_encoding_order.is_none() && self.paging_spec == "equal_pages_up_to";
        let Some((mode, delta)) = specs.filter(|_| known) else {
            return Err(Error::unsupported(format!(
                "ambar can read but not write arrays with the codec {self:?}; choose other codecs"
            )));
        };
        Ok(ChunkConfig::default()
            .with_compression_level(self.level)
            .with_mode_spec(mode)
            .with_delta_spec(delta)
            .with_paging_spec(PagingSpec::EqualPagesUpTo(self.equal_pages_up_to)))
    }
}

/// Whether numcodecs' pcodec supports values of this type.
pub(super) fn supports(dtype: &DataType) -> bool {
    matches!(
        dtype,
        DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::UInt16
            | DataType::UInt32
            | DataType::UInt64
            | DataType::Float32
            | DataType::Float64
    )
}

/// Calls `$f::<T>($arguments)` with the Rust type of a pco dtype.
macro_rules! with_type {
    ($dtype:expr, $f:ident($($argument:expr),*)) => {
        match $dtype {
            DataType::Int16 => $f::<i16>($($argument),*),
            DataType::Int32 => $f::<i32>($($argument),*),
            DataType::Int64 => $f::<i64>($($argument),*),
            DataType::UInt16 => $f::<u16>($($argument),*),
            DataType::UInt32 => $f::<u32>($($argument),*),
            DataType::UInt64 => $f::<u64>($($argument),*),
            DataType::Float32 => $f::<f32>($($argument),*),
            DataType::Float64 => $f::<f64>($($argument),*),
            other => Err(Error::unsupported(format!("pcodec does not support values of {other}"))),
        }
    };
}

/// The order of consecutive differences that pco's search found best for the sampled chunks of an array. Similar chunks are
/// encoded without the search, which takes a third of the time and more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownDeltas {
    /// The order, 0 for no differences.
    order: usize,
    /// Bytes of the longest sampled chunk, with its checksum.
    max_bytes: usize,
}

impl KnownDeltas {
    /// The order for these chunks; `None` if they have different orders, or other delta encodings.
    pub fn of_chunks<'a>(
        dtype: &DataType,
        encoded: impl Iterator<Item = &'a [u8]>,
    ) -> Option<Self> {
        let mut known: Option<Self> = None;
        for chunk in encoded {
            let order = with_type!(dtype, order_of_differences(chunk)).ok()??;
            if known.is_some_and(|before| before.order != order) {
                return None;
            }
            let max_bytes = known.map_or(0, |before| before.max_bytes);
            known = Some(Self {
                order,
                max_bytes: max_bytes.max(chunk.len()),
            });
        }
        known
    }
}

/// The order of the consecutive differences of a file's first pco chunk, 0 for none; `None` if pco chose another delta encoding
/// (lookback, convolution).
fn order_of_differences<T: Number>(encoded: &[u8]) -> Result<Option<usize>> {
    let damaged = |error| Error::corrupt(format!("a pcodec chunk cannot be decoded: {error}"));
    let (file, rest) = FileDecompressor::new(encoded).map_err(damaged)?;
    let item = file.chunk_decompressor::<T, _>(rest).map_err(damaged)?;
    let DecompressorItem::Chunk(chunk) = item else {
        return Ok(None);
    };
    Ok(match chunk.meta().delta_encoding {
        DeltaEncoding::NoOp => Some(0),
        DeltaEncoding::Consecutive { order, .. } => Some(order),
        _ => None,
    })
}

/// Compresses values in native byte order into `out`, which is cleared first. With `known`, pco searches for differences only if
/// others are probably better, or if the result is a quarter longer than the sampled chunks; then the shorter result is kept.
pub(super) fn encode(
    config: &Config,
    known: Option<KnownDeltas>,
    dtype: &DataType,
    raw: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    out.clear();
    let chunk_config = config.chunk_config()?;
    let known = match known.filter(|_| config.searches_deltas()) {
        Some(known) if !suits_other_order(dtype, raw, known.order)? => known,
        _ => return with_type!(dtype, encode_values(&chunk_config, raw, out)),
    };
    let known_order = DeltaSpec::TryConsecutive(known.order);
    let known_config = chunk_config.clone().with_delta_spec(known_order);
    with_type!(dtype, encode_values(&known_config, raw, out))?;
    if out.len() > known.max_bytes + known.max_bytes / 4 {
        let mut searched = Vec::new();
        with_type!(dtype, encode_values(&chunk_config, raw, &mut searched))?;
        if searched.len() < out.len() {
            *out = searched;
        }
    }
    Ok(())
}

fn encode_values<T>(config: &ChunkConfig, raw: &[u8], out: &mut Vec<u8>) -> Result<()>
where
    T: Number + bytemuck::Pod,
{
    let mut copy = Vec::new();
    let values = bytemuck::try_cast_slice(raw).unwrap_or_else(|_| {
        copy.resize(raw.len() / size_of::<T>(), T::zeroed());
        bytemuck::cast_slice_mut(&mut copy).copy_from_slice(raw);
        &copy
    });
    simple_compress_into(values, config, out)
        .map(|_| ())
        .map_err(|error| Error::invalid(format!("pcodec: {error}")))
}

/// Decompresses `source` into `out`, which it must fill exactly, with no excess input.
pub(super) fn decode(dtype: &DataType, source: &[u8], out: &mut [u8]) -> Result<()> {
    with_type!(dtype, decode_values(source, out))
}

fn decode_values<T>(source: &[u8], out: &mut [u8]) -> Result<()>
where
    T: Number + bytemuck::Pod,
{
    if let Ok(values) = bytemuck::try_cast_slice_mut::<u8, T>(out) {
        return decode_aligned(source, values);
    }
    let mut values = vec![T::zeroed(); out.len() / size_of::<T>()];
    decode_aligned(source, &mut values)?;
    out.copy_from_slice(bytemuck::cast_slice(&values));
    Ok(())
}

fn decode_aligned<T: Number>(source: &[u8], mut out: &mut [T]) -> Result<()> {
    let damaged = |error| Error::corrupt(format!("a pcodec chunk cannot be decoded: {error}"));
    let expected = out.len();
    let (file, mut rest) = FileDecompressor::new(source).map_err(damaged)?;
    loop {
        match file.chunk_decompressor::<T, _>(rest).map_err(damaged)? {
            DecompressorItem::EndOfData(tail) => {
                if !out.is_empty() {
                    return Err(Error::corrupt(format!(
                        "a pcodec chunk has {} values; expected {expected}",
                        expected - out.len()
                    )));
                }
                if !tail.is_empty() {
                    return Err(Error::corrupt(format!(
                        "{} bytes follow the end of a pcodec chunk",
                        tail.len()
                    )));
                }
                return Ok(());
            }
            DecompressorItem::Chunk(mut chunk) => {
                let count = chunk.n();
                let Some((now, later)) = out.split_at_mut_checked(count) else {
                    return Err(Error::corrupt(format!(
                        "a pcodec chunk has more than the expected {expected} values"
                    )));
                };
                let progress = chunk.read(now).map_err(damaged)?;
                if progress.n_processed != count {
                    return Err(Error::corrupt("a pcodec chunk ends too early"));
                }
                rest = chunk.into_src();
                out = later;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(known: Option<KnownDeltas>, values: &[f64]) -> Vec<u8> {
        let mut out = Vec::new();
        let raw = bytemuck::cast_slice(values);
        encode(&Config::new(8), known, &DataType::Float64, raw, &mut out).unwrap();
        let mut back = vec![0.0; values.len()];
        let bytes = bytemuck::cast_slice_mut(&mut back);
        decode(&DataType::Float64, &out, bytes).unwrap();
        assert_eq!(back, values);
        out
    }

    fn known_deltas(chunks: &[&[f64]]) -> Option<KnownDeltas> {
        let encoded: Vec<_> = chunks.iter().map(|chunk| encoded(None, chunk)).collect();
        KnownDeltas::of_chunks(&DataType::Float64, encoded.iter().map(Vec::as_slice))
    }

    fn noise(i: i32) -> f64 {
        let i = (i as u32).wrapping_mul(2_654_435_761).rotate_left(15);
        f64::from(i.wrapping_mul(2_246_822_519)).sin()
    }

    fn values(value: impl Fn(i32) -> f64) -> Vec<f64> {
        (0..20_000).map(value).collect()
    }

    fn waves() -> Vec<f64> {
        values(|i| (f64::from(i) / 500.0).sin() + 1e-4 * noise(i))
    }

    #[test]
    fn similar_chunks_are_encoded_without_a_search_to_the_same_bytes() {
        for values in [waves(), values(noise)] {
            let (first, second) = values.split_at(values.len() / 2);
            let known = known_deltas(&[first]).unwrap();
            assert_eq!(encoded(Some(known), second), encoded(None, second));
        }
    }

    #[test]
    fn other_chunks_are_at_most_a_bit_per_value_larger_than_with_a_search() {
        let decimals = values(|i| (noise(i) * 1e4).round() / 100.0);
        let smooth = values(|i| (f64::from(i) / 3000.0).sin());
        let walk: Vec<f64> = (0..20_000)
            .scan(1000.0, |x, i| {
                *x += 1e-6 * noise(i);
                Some(*x)
            })
            .collect();
        let others = [decimals, smooth, values(f64::from), vec![1.5; 20_000]];
        let repeated = values(|i| noise(i % 700));
        for (samples, order) in [(waves(), 2), (values(noise), 0), (walk, 1)] {
            let known = known_deltas(&[&samples]).unwrap();
            assert_eq!(known.order, order);
            // Repeated noise is not recognized among noise.
            let repeated = Some(&repeated).filter(|_| order > 0);
            for other in others.iter().chain(repeated) {
                let limit = encoded(None, other).len() + other.len() / 8;
                let bytes = encoded(Some(known), other).len();
                assert!(bytes <= limit, "{bytes} {limit} {:?}", &other[..3]);
            }
        }
    }

    #[test]
    fn chunks_are_searched_if_they_are_longer_than_the_samples() {
        let known = known_deltas(&[&values(|i| (noise(i) * 1e4).round())]).unwrap();
        let repeated = values(|i| noise(i % 700));
        assert_eq!(encoded(Some(known), &repeated), encoded(None, &repeated));
    }

    #[test]
    fn no_order_is_known_if_the_samples_disagree() {
        let (waves, noise) = (&waves()[..], &values(noise)[..]);
        assert!(known_deltas(&[waves, noise]).is_none());
        assert!(known_deltas(&[]).is_none());
        assert!(known_deltas(&[waves, waves]).is_some());
    }
}
