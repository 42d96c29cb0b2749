//! The table of codec chains that are tried for an array, with the weight of their decoding time.

use super::array_to_array::{ArrayCodec, supports_delta};
use super::blosc::{self, Compressor, Shuffle};
use super::chain::{ByteCodec, CodecChain, Endian, ValueCodec, zstd};
use super::{Profile, ambar, pcodec, simplices};
use crate::dtype::DataType;

/// Maximum length of a row whose columns are compressed separately: corners of a cell, components.
const MAX_COLUMNS: u64 = 32;

/// Maximum number of components of a vector or tensor, each of which is a field.
const MAX_COMPONENTS: u64 = 9;

/// Shortest dimension along which the codec `ambar` predicts values.
const MIN_LENGTH: u64 = 9;

/// Values in a chunk of a column that is read as a whole: the number of bytes in a zstd block.
pub(crate) const PLANE_VALUES: u64 = 128 << 10;

/// Maximum raw bytes of a long chunk.
pub(crate) const LONG_CHUNK_BYTES: u64 = 4 << 20;

/// The arrays for which a row of the table is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Values of a fixed size.
    Values,
    /// The same, except rows of floats (`FloatRows`): pcodec takes three times as long for rows as for columns, which are
    /// seldom larger.
    ValuesExceptRows,
    /// Variable-length strings.
    Strings,
    /// Integers, whose consecutive differences are often equal.
    Integers,
    /// Rows of 2 to 32 integers, such as the corners of cells.
    IntegerRows,
    /// Rows of 2 to 9 floats, such as points and vectors.
    FloatRows,
    /// Arrays that are read as a whole, often with few distinct values.
    Whole,
    /// Fields on grids, also of vectors and tensors; readers need ambar for the codec `ambar`.
    Grid,
    /// Fields on unit blocks.
    Blocks,
    /// Corners of cells, by the codec `ambar.simplices`.
    Corners,
    /// Chunks of some MiB, in which zstd finds distant repetitions.
    LongChunks,
    /// Such chunks of rows of 2 to 32 values.
    LongRows,
}

/// How values are rearranged before they are compressed.
#[derive(Clone, Copy)]
enum Order {
    Unchanged,
    Differences,
    /// Column by column.
    Columns,
    ColumnDifferences,
}

/// The codec of a row of the table.
#[derive(Clone, Copy)]
enum Codec {
    Raw,
    Zstd(i32),
    Blosc(Compressor, i32, Shuffle),
    /// Blosc's zstd of shuffled bytes; each byte plane is one zstd block.
    Planes(i32),
    /// Blosc's zstd of shuffled bytes; each chunk is one block.
    LongBlosc(i32),
    Pcodec(usize),
    PcodecPlain(usize),
    PcodecLookback(usize),
    Ambar,
    Simplices,
}

/// The cost of a candidate beyond its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weight {
    /// The part of its bytes that is added.
    pub penalty: f64,
    /// Bytes that are added for each value.
    pub per_value: f64,
}

/// A row of the table; `None` if a profile does not try it.
struct Row {
    scope: Scope,
    order: Order,
    codec: Codec,
    fast: Option<Weight>,
    balanced: Option<Weight>,
    /// `balanced` for arrays that are written in parts while a program waits: codecs that encode at
    /// 200 MB/s and more on one core (decision 0009).
    streamed: Option<Weight>,
    small: Option<Weight>,
}

#[rustfmt::skip]
const fn row(scope: Scope, order: Order, codec: Codec, weights: [Option<Weight>; 4]) -> Row {
    let [fast, balanced, streamed, small] = weights;
    Row { scope, order, codec, fast, balanced, streamed, small }
}

/// Penalty and bytes for each value.
const fn w(penalty: f64, per_value: f64) -> Option<Weight> {
    Some(Weight { penalty, per_value })
}

/// Not tried.
const NO: Option<Weight> = None;
/// Tried, with its bytes as its only cost.
const SIZE: Option<Weight> = w(0.0, 0.0);

/// The table, fastest decoding first: of two chains of equal cost the first is chosen.
///
/// Decoding a value takes, on one core, about 0.4 ns with lz4, 1 to 2 ns with zstd 3, 3 ns with pcodec, 10
/// to 20 ns with ambar and 90 to 150 ns with ambar.simplices, more with bit shuffle, and 0.2 ns more for
/// differences or columns, at any compression ratio. In `balanced` a nanosecond weighs as much as a tenth
/// of a byte (decisions 0008 and 0011). The time of zstd without blosc depends on the compressed bytes: its penalty
/// is a part of these. `small` weighs only the size, and `fast` the bytes that need not be read.
#[rustfmt::skip]
const TABLE: &[Row] = {
    use Codec::*;
    use Compressor::{Lz4, Zstd as BloscZstd};
    use Order::*;
    use Scope::*;
    use Shuffle::{Bits, Bytes};
    &[
        //                                                           fast          balanced      streamed      small
        row(Values, Unchanged, Raw,                                 [SIZE,         SIZE,         SIZE,         SIZE]),
        row(Values, Unchanged, Blosc(Lz4, 5, Bytes),                [w(0.0, 0.04), w(0.0, 0.04), w(0.0, 0.04), SIZE]),
        row(Values, Unchanged, Blosc(BloscZstd, 1, Bytes),          [NO,           NO,           w(0.0, 0.15), NO]),
        row(Values, Unchanged, Blosc(BloscZstd, 3, Bytes),          [NO,           w(0.0, 0.15), NO,           SIZE]),
        row(Values, Unchanged, Blosc(BloscZstd, 9, Bytes),          [NO,           NO,           NO,           SIZE]),
        row(Values, Unchanged, Pcodec(5),                           [NO,           NO,           w(0.05, 0.3), NO]),
        row(ValuesExceptRows, Unchanged, Pcodec(8),                 [NO,           w(0.0, 0.3),  NO,           SIZE]),
        row(Values, Unchanged, Pcodec(12),                          [NO,           NO,           NO,           SIZE]),
        row(Values, Unchanged, Blosc(BloscZstd, 1, Bits),           [NO,           NO,           w(0.0, 0.35), NO]),
        row(Values, Unchanged, Blosc(BloscZstd, 3, Bits),           [NO,           w(0.0, 0.35), NO,           SIZE]),
        row(Values, Unchanged, Blosc(BloscZstd, 5, Bits),           [NO,           NO,           NO,           SIZE]),
        row(Values, Unchanged, PcodecPlain(3),                      [NO,           NO,           w(0.0, 0.2),  NO]),

        row(Strings, Unchanged, Raw,                                [SIZE,         SIZE,         SIZE,         SIZE]),
        row(Strings, Unchanged, Zstd(1),                            [NO,           NO,           w(0.05, 0.0), NO]),
        row(Strings, Unchanged, Zstd(3),                            [w(0.05, 0.0), w(0.05, 0.0), NO,           NO]),
        row(Strings, Unchanged, Zstd(19),                           [NO,           NO,           NO,           w(0.05, 0.0)]),

        row(Integers, Differences, Zstd(3),                         [w(15., 0.06), w(0.5, 0.06), NO,           SIZE]),
        row(IntegerRows, ColumnDifferences, Zstd(3),                [w(15., 0.06), w(0.5, 0.06), NO,           SIZE]),
        row(FloatRows, Columns, Zstd(3),                            [w(15., 0.06), w(0.5, 0.06), NO,           SIZE]),
        // Neighbouring cells share corners: zstd finds the repeated integers, which shuffling separates.
        row(IntegerRows, Unchanged, Zstd(1),                        [w(0.2, 0.06), NO,           NO,           NO]),
        row(Integers, Differences, Blosc(Lz4, 5, Bytes),            [NO,           w(0.0, 0.08), NO,           SIZE]),
        row(Integers, Differences, Blosc(BloscZstd, 3, Bytes),      [NO,           w(0.0, 0.19), NO,           SIZE]),
        row(IntegerRows, ColumnDifferences, Blosc(BloscZstd, 3, Bytes), [NO,       w(0.0, 0.19), NO,           SIZE]),
        row(FloatRows, Columns, Blosc(Lz4, 5, Bytes),               [NO,           w(0.0, 0.06), NO,           SIZE]),
        row(FloatRows, Columns, Blosc(BloscZstd, 3, Bytes),         [NO,           w(0.0, 0.17), NO,           SIZE]),
        row(IntegerRows, Columns, Pcodec(8),                        [NO,           w(0.0, 0.32), NO,           SIZE]),
        row(FloatRows, Columns, Pcodec(8),                          [NO,           w(0.0, 0.32), NO,           SIZE]),
        // References to the values of earlier rows take longer to decode.
        row(FloatRows, Unchanged, Pcodec(8),                        [NO,           w(0.07, 0.3), NO,           SIZE]),
        row(IntegerRows, Unchanged, PcodecLookback(8),              [NO,           NO,           NO,           SIZE]),

        row(Whole, Unchanged, Zstd(3),                              [NO,           w(0.5, 0.06), NO,           NO]),
        row(Whole, Unchanged, Zstd(9),                              [NO,           NO,           NO,           SIZE]),
        row(Whole, Unchanged, Planes(1),                            [NO,           w(0.0, 0.15), NO,           SIZE]),

        // The codec `ambar` must save a large part, as it does for smooth fields.
        row(Grid, Unchanged, Ambar,                                 [NO,           w(0.2, 0.3),  NO,           w(0.01, 0.0)]),
        row(Blocks, Unchanged, Ambar,                               [NO,           NO,           NO,           w(0.01, 0.0)]),
        row(Corners, Unchanged, Simplices,                          [NO,           NO,           NO,           w(0.01, 0.0)]),

        // A reader of a part reads more than it needs. Blosc's levels 3 and 5 are zstd's 5 and 9.
        row(LongChunks, Unchanged, Zstd(5),                         [NO,           w(0.1, 0.06), NO,           NO]),
        row(LongChunks, Unchanged, Zstd(9),                         [NO,           NO,           NO,           w(0.01, 0.0)]),
        row(LongChunks, Unchanged, LongBlosc(3),                    [NO,           w(0.1, 0.15), NO,           NO]),
        row(LongChunks, Unchanged, LongBlosc(5),                    [NO,           NO,           NO,           w(0.01, 0.0)]),
        row(LongRows, Columns, Zstd(5),                             [NO,           w(0.1, 0.06), NO,           NO]),
        row(LongRows, Columns, Zstd(9),                             [NO,           NO,           NO,           w(0.01, 0.0)]),
    ]
};

/// A chain to try.
#[derive(Clone)]
pub(super) struct Candidate {
    pub chain: CodecChain,
    pub weight: Weight,
}

/// The chains of the table that a profile tries in these scopes, for chunks of a type and shape.
pub(super) fn candidates(
    profile: Profile,
    streamed: bool,
    scopes: &[Scope],
    dtype: &DataType,
    chunk_shape: &[u64],
) -> Vec<Candidate> {
    if profile == Profile::Raw && dtype.size().is_some() {
        let (chain, weight) = (
            CodecChain::raw(),
            Weight {
                penalty: 0.0,
                per_value: 0.0,
            },
        );
        return vec![Candidate { chain, weight }];
    }
    let streamed = streamed && profile == Profile::Balanced;
    let weight = |row: &Row| match profile {
        _ if streamed => row.streamed,
        Profile::Fast => row.fast,
        // Strings have no raw chain, because their lengths must be stored.
        Profile::Balanced | Profile::Raw => row.balanced,
        Profile::Small => row.small,
    };
    // In arrays that are read as a whole, the weight of values of less than 4 bytes is scaled by their size.
    let bytes = match dtype.size() {
        Some(size) if profile != Profile::Fast => (size as f64 / 4.0).min(1.0),
        _ => 1.0,
    };
    let is_whole = |scope: &Scope| matches!(scope, Scope::Whole | Scope::LongChunks);
    let whole = !streamed && scopes.iter().any(is_whole);
    let is_tried = |scope: Scope| scopes.contains(&scope) && scope.fits(dtype, chunk_shape);
    let has_float_rows = is_tried(Scope::FloatRows);
    let mut found = Vec::new();
    for row in TABLE {
        let (Some(mut weight), true) = (weight(row), is_tried(row.scope)) else {
            continue;
        };
        if row.scope == Scope::ValuesExceptRows && has_float_rows {
            continue;
        }
        if whole {
            weight.per_value *= bytes;
        }
        let chain = row.codec.chain(dtype);
        let order = row.order.codecs(chunk_shape.len());
        found.extend(chain.map(|chain| Candidate {
            chain: chain.after(&order),
            weight,
        }));
    }
    found
}

impl Scope {
    /// Whether chunks of this type and shape can be in the scope.
    fn fits(self, dtype: &DataType, chunk_shape: &[u64]) -> bool {
        let floats = matches!(dtype, DataType::Float32 | DataType::Float64);
        let columns = match chunk_shape {
            [_, .., columns] => *columns,
            _ => 1,
        };
        let is_grid = || {
            let long = chunk_shape.iter().filter(|n| **n >= MIN_LENGTH);
            ambar::supports(dtype) && long.count() >= 2
        };
        match self {
            Self::Values | Self::ValuesExceptRows | Self::Whole | Self::LongChunks => {
                dtype.size().is_some()
            }
            Self::Strings => dtype.size().is_none(),
            Self::Integers => supports_delta(dtype),
            Self::IntegerRows => supports_delta(dtype) && (2..=MAX_COLUMNS).contains(&columns),
            Self::FloatRows => floats && (2..=MAX_COMPONENTS).contains(&columns),
            Self::Grid => is_grid(),
            Self::Blocks => true,
            Self::Corners => simplices::width(dtype, chunk_shape).is_some(),
            Self::LongRows => dtype.size().is_some() && (2..=MAX_COLUMNS).contains(&columns),
        }
    }
}

impl Order {
    fn codecs(self, dimensions: usize) -> Vec<ArrayCodec> {
        let columns = ArrayCodec::last_first(dimensions);
        match self {
            Self::Unchanged => vec![],
            Self::Differences => vec![ArrayCodec::Delta],
            Self::Columns => vec![columns],
            Self::ColumnDifferences => vec![columns, ArrayCodec::Delta],
        }
    }
}

impl Codec {
    /// The chain; `None` if the codec does not support the type. Rows with the codecs `ambar` and `ambar.simplices` are in scopes
    /// of types that these support.
    fn chain(self, dtype: &DataType) -> Option<CodecChain> {
        let bytes = match dtype {
            DataType::String => ValueCodec::VlenUtf8,
            _ if dtype.size().is_none() => ValueCodec::VlenBytes,
            _ => ValueCodec::Bytes(Endian::Little),
        };
        let pcodec = |config| pcodec::supports(dtype).then_some((ValueCodec::Pcodec(config), None));
        let blosc = |typesize, cname, clevel, shuffle, blocksize| {
            let config = blosc::Config {
                typesize,
                cname,
                clevel,
                shuffle,
                blocksize,
            };
            (bytes.clone(), Some(ByteCodec::Blosc(config)))
        };
        let (values, compressor) = match self {
            Self::Raw => (bytes, None),
            Self::Zstd(level) => (bytes, Some(zstd(level))),
            Self::Blosc(cname, level, shuffle) => {
                blosc(word_size(dtype)?, cname, level, shuffle, 0)
            }
            Self::Planes(level) => {
                let size = dtype.size().filter(|size| (2..=8).contains(size))?;
                blosc(
                    size,
                    Compressor::Zstd,
                    level,
                    Shuffle::Bytes,
                    size * PLANE_VALUES as usize,
                )
            }
            Self::LongBlosc(level) => {
                let size = dtype.size().filter(|size| (2..=255).contains(size))?;
                blosc(
                    size,
                    Compressor::Zstd,
                    level,
                    Shuffle::Bytes,
                    LONG_CHUNK_BYTES as usize,
                )
            }
            Self::Pcodec(level) => pcodec(pcodec::Config::new(level))?,
            Self::PcodecPlain(level) => pcodec(pcodec::Config::plain(level))?,
            Self::PcodecLookback(level) => pcodec(pcodec::Config::lookback(level))?,
            Self::Ambar => return Some(CodecChain::bounded(ambar_codec::ErrorBound::Lossless)),
            Self::Simplices => (ValueCodec::Simplices, None),
        };
        Some(CodecChain::checksummed(values, compressor))
    }
}

/// The size by which blosc shuffles: at most 255 bytes; text is shuffled by its characters.
fn word_size(dtype: &DataType) -> Option<usize> {
    let size = dtype.size()?;
    let by_words = matches!(dtype, DataType::FixedUtf32 { .. }) || size > 255;
    Some(if by_words {
        dtype.word_size()
    } else {
        size.max(1)
    })
}

/// The chain for values that are not known yet: byte shuffle and a fast compressor.
pub(crate) fn default_chain(profile: Profile, dtype: &DataType) -> CodecChain {
    use Codec::{Blosc, Planes, Raw, Zstd};
    let zstd = Blosc(Compressor::Zstd, 3, Shuffle::Bytes);
    let chain = match profile {
        _ if dtype.size().is_none() => {
            Zstd(if profile == Profile::Small { 19 } else { 3 }).chain(dtype)
        }
        Profile::Raw => Raw.chain(dtype),
        Profile::Fast => Blosc(Compressor::Lz4, 5, Shuffle::Bytes).chain(dtype),
        Profile::Balanced => Planes(1).chain(dtype).or_else(|| zstd.chain(dtype)),
        Profile::Small => zstd.chain(dtype),
    };
    chain.unwrap_or_else(CodecChain::raw)
}
