//! The chains that are tried for an array, and what they count for beside their bytes.

use super::arrays::{ArrayCodec, takes_differences};
use super::blosc::{self, Compressor, Shuffle};
use super::chain::{ByteCodec, CodecChain, Endian, ValueCodec, ZstdConfig};
use super::{Profile, ambar, pcodec, simplices};
use crate::dtype::DataType;

/// Values of a row at most whose columns are worth being told apart: corners of a cell, components.
const MOST_COLUMNS: u64 = 32;

/// Components of a vector or tensor at most, each of which is a field of its own.
const MOST_COMPONENTS: u64 = 9;

/// Length of a dimension, from which on values are predicted along it.
const LEAST_LENGTH: u64 = 9;

/// Values of a chunk of a column that is read as a whole: as many as a block of zstd's has bytes.
pub(crate) const PLANE: u64 = 128 << 10;

/// Raw bytes of a long chunk at most.
pub(crate) const LONG_CHUNK: u64 = 4 << 20;

/// A chain to try, and what it counts for beside its bytes, for being slower to decode.
#[derive(Clone)]
pub(super) struct Candidate {
    pub chain: CodecChain,
    /// The part of its bytes that is added.
    pub penalty: f64,
    /// Bytes that are added for each value.
    pub per_value: f64,
}

impl Candidate {
    /// Values to bytes, and these compressed; so many bytes are added for each value.
    fn new(values: ValueCodec, compressor: Option<ByteCodec>, per_value: f64) -> Self {
        Self {
            chain: CodecChain::checksummed(values, compressor),
            penalty: 0.0,
            per_value,
        }
    }

    /// Behind codecs from values to values.
    fn behind(self, arrays: &[ArrayCodec]) -> Self {
        Self {
            chain: self.chain.behind(arrays),
            ..self
        }
    }
}

/// The candidates beyond those of any values, for arrays of whose shape something is known: integers, of
/// which neighbours often differ by the same, and rows of a few values, each column of its own kind.
///
/// Source of the penalties: decisions 0008 and 0011. To undo differences and turned columns costs about
/// 0.2 ns a value. Zstd without blosc takes its time by what it has made, not by what it was given: where
/// hardly anything is left, it decodes faster than anything else.
pub(super) fn shaped(profile: Profile, dtype: &DataType, chunk_shape: &[u64]) -> Vec<Candidate> {
    let integers = takes_differences(dtype);
    let floats = matches!(dtype, DataType::Float32 | DataType::Float64);
    let columns = match chunk_shape {
        [_, .., columns @ 2..=MOST_COLUMNS] => *columns,
        _ => 1,
    };
    let turned = columns > 1 && (integers || floats && columns <= MOST_COMPONENTS);
    if !(integers || turned) {
        return Vec::new();
    }
    let bytes = || ValueCodec::Bytes(Endian::Little);
    let zstd = |per_value| Candidate {
        // In `fast` next to nothing must be left.
        penalty: if profile == Profile::Fast { 15.0 } else { 0.5 },
        ..Candidate::new(bytes(), Some(zstd(3)), per_value)
    };
    let blosc = |cname, level, per_value| {
        Candidate::new(
            bytes(),
            shuffled(dtype, cname, level, Shuffle::Bytes),
            per_value,
        )
    };
    let last = [ArrayCodec::last_first(chunk_shape.len())];
    let both = [last[0].clone(), ArrayCodec::Delta];
    let delta = [ArrayCodec::Delta];
    let mut candidates = Vec::new();
    if integers {
        candidates.push(zstd(0.06).behind(&delta));
        if turned {
            candidates.push(zstd(0.06).behind(&both));
        }
    } else {
        candidates.push(zstd(0.06).behind(&last));
    }
    if profile == Profile::Fast {
        return candidates;
    }
    if integers {
        candidates.push(blosc(Compressor::Lz4, 5, 0.08).behind(&delta));
        candidates.push(blosc(Compressor::Zstd, 3, 0.19).behind(&delta));
        if turned {
            candidates.push(blosc(Compressor::Zstd, 3, 0.19).behind(&both));
        }
    } else {
        candidates.push(blosc(Compressor::Lz4, 5, 0.06).behind(&last));
        candidates.push(blosc(Compressor::Zstd, 3, 0.17).behind(&last));
    }
    if turned && pcodec::takes(dtype) {
        let pcodec = ValueCodec::Pcodec(pcodec::Config::new(8));
        candidates.push(Candidate::new(pcodec, None, 0.32).behind(&last));
    }
    if profile == Profile::Small {
        if turned && integers && pcodec::takes(dtype) {
            // Points come again in the cells around them.
            let pcodec = ValueCodec::Pcodec(pcodec::Config::lookback(8));
            candidates.push(Candidate::new(pcodec, None, 0.0));
        }
        // Size alone counts.
        for candidate in &mut candidates {
            (candidate.penalty, candidate.per_value) = (0.0, 0.0);
        }
    }
    candidates
}

/// The candidates for fields on grids that the codec `ambar` may predict; readers need it then. It
/// decodes a value in 10 to 20 ns: it has to be a good part smaller than the rest, which it is where
/// fields are smooth.
pub(super) fn gridded(profile: Profile, dtype: &DataType, chunk_shape: &[u64]) -> Vec<Candidate> {
    let long = |shape: &[u64]| shape.iter().filter(|n| **n >= LEAST_LENGTH).count() >= 2;
    if profile == Profile::Fast || !ambar::takes(dtype) || !long(chunk_shape) {
        return Vec::new();
    }
    let small = profile == Profile::Small;
    let candidate = Candidate {
        chain: CodecChain::bounded(0.0),
        penalty: if small { 0.01 } else { 0.2 },
        per_value: if small { 0.0 } else { 0.3 },
    };
    // Components are fields of their own.
    vec![match chunk_shape {
        [.., components @ 2..=MOST_COMPONENTS] if *components < LEAST_LENGTH => {
            candidate.behind(&[ArrayCodec::last_first(chunk_shape.len())])
        }
        _ => candidate,
    }]
}

/// The candidate for rows that are the corners of cells; readers need ambar then. It decodes a corner in
/// 90 to 150 ns, so that only `small` has it, and of meshes without a pattern it leaves a half to a third
/// of what others do. Decision 0016.
pub(super) fn cells(profile: Profile, dtype: &DataType, shape: &[u64]) -> Option<Candidate> {
    simplices::width(dtype, shape)?;
    (profile == Profile::Small).then(|| Candidate {
        chain: CodecChain::checksummed(ValueCodec::Simplices, None),
        penalty: 0.01,
        per_value: 0.0,
    })
}

/// What is changed for arrays that are read as a whole, often of few different values: what is weighed
/// is the time of a byte, of which small values have few, and zstd without blosc is tried, which takes
/// its time by what is left. Where the first bytes of all values are a block of zstd's, and so are the
/// second ones, noise is copied, and no time is spent but on the bytes that are none.
pub(super) fn whole(profile: Profile, dtype: &DataType, candidates: &mut Vec<Candidate>) {
    let (Some(size), false) = (dtype.size(), profile == Profile::Fast) else {
        return;
    };
    let small = profile == Profile::Small;
    candidates.push(Candidate {
        penalty: if small { 0.0 } else { 0.5 },
        ..Candidate::new(
            ValueCodec::Bytes(Endian::Little),
            Some(zstd(if small { 9 } else { 3 })),
            if small { 0.0 } else { 0.06 },
        )
    });
    if let Some(planes) = planes(dtype) {
        let per_value = if small { 0.0 } else { 0.15 };
        candidates.push(Candidate::new(
            ValueCodec::Bytes(Endian::Little),
            Some(planes),
            per_value,
        ));
    }
    for candidate in candidates {
        candidate.per_value *= (size as f64 / 4.0).min(1.0);
    }
}

/// Shuffled and compressed quickly, in blocks of which each byte's plane is a block of zstd's.
fn planes(dtype: &DataType) -> Option<ByteCodec> {
    let size = dtype.size().filter(|size| (2..=8).contains(size))?;
    Some(ByteCodec::Blosc(blosc::Config {
        typesize: size,
        cname: Compressor::Zstd,
        clevel: 1,
        shuffle: Shuffle::Bytes,
        blocksize: size * PLANE as usize,
    }))
}

/// The candidates for chunks of some MiB, in which zstd finds what repeats itself far away.
///
/// Blosc's blocks are as long as the chunks: each is compressed on its own.
pub(super) fn long(profile: Profile, dtype: &DataType, chunk_shape: &[u64]) -> Vec<Candidate> {
    let (Some(size), false) = (dtype.size(), profile == Profile::Fast) else {
        return Vec::new();
    };
    let small = profile == Profile::Small;
    let bytes = || ValueCodec::Bytes(Endian::Little);
    // Blosc's levels 3 and 5 are zstd's 5 and 9.
    let plain = Candidate::new(bytes(), Some(zstd(if small { 9 } else { 5 })), 0.06);
    let mut candidates = vec![plain.clone()];
    if size > 1 && size <= 255 {
        let blosc = ByteCodec::Blosc(blosc::Config {
            typesize: size,
            cname: Compressor::Zstd,
            clevel: if small { 5 } else { 3 },
            shuffle: Shuffle::Bytes,
            blocksize: LONG_CHUNK as usize,
        });
        candidates.push(Candidate::new(bytes(), Some(blosc), 0.15));
    }
    let last = [ArrayCodec::last_first(chunk_shape.len())];
    if matches!(chunk_shape, [_, .., 2..=MOST_COLUMNS]) {
        candidates.push(plain.clone().behind(&last));
    }
    for candidate in &mut candidates {
        // Who reads a part of it reads more.
        candidate.penalty = if small { 0.01 } else { 0.1 };
        candidate.per_value *= if small {
            0.0
        } else {
            (size as f64 / 4.0).min(1.0)
        };
    }
    candidates
}

/// A chain that sees quickly whether values repeat themselves far away.
pub(super) fn glance() -> Candidate {
    Candidate::new(ValueCodec::Bytes(Endian::Little), Some(zstd(1)), 0.0)
}

/// Zstd without blosc.
fn zstd(level: i32) -> ByteCodec {
    ByteCodec::Zstd(ZstdConfig {
        level,
        checksum: false,
    })
}

/// Blosc with the type's own size.
fn shuffled(
    dtype: &DataType,
    cname: Compressor,
    clevel: i32,
    shuffle: Shuffle,
) -> Option<ByteCodec> {
    let size = dtype.size()?;
    Some(ByteCodec::Blosc(blosc::Config {
        // Blosc shuffles nothing longer than 255 bytes; text is shuffled by its characters.
        typesize: if matches!(dtype, DataType::FixedUtf32 { .. }) || size > 255 {
            dtype.word_size()
        } else {
            size.max(1)
        },
        cname,
        clevel,
        shuffle,
        blocksize: 0,
    }))
}

/// The candidates of `balanced` for what is written part by part: those that encode at 200 MB/s and
/// more on one core (decision 0009), and lose little by it.
pub(super) fn streamed(dtype: &DataType) -> Vec<Candidate> {
    let mut candidates = candidates(Profile::Balanced, dtype);
    for candidate in &mut candidates {
        candidate.chain.quicken();
        if candidate.chain.is_pcodec() {
            // Looking for modes and differences has to pay.
            candidate.penalty = 0.05;
        }
    }
    if pcodec::takes(dtype) {
        candidates.push(Candidate {
            chain: CodecChain::checksummed(ValueCodec::Pcodec(pcodec::Config::plain(3)), None),
            penalty: 0.0,
            per_value: 0.2,
        });
    }
    candidates
}

/// The chain for values that are not known yet: shuffled, and compressed quickly.
pub(crate) fn usual(profile: Profile, dtype: &DataType) -> CodecChain {
    if let (Profile::Balanced, Some(planes)) = (profile, planes(dtype)) {
        return CodecChain::checksummed(ValueCodec::Bytes(Endian::Little), Some(planes));
    }
    let mut candidates = candidates(profile, dtype);
    candidates.truncate(3);
    candidates
        .pop()
        .map_or_else(CodecChain::raw, |candidate| candidate.chain)
}

/// The candidates, quickest to decode first: it wins where another is no smaller.
///
/// Decoding a value takes, on one core, about 0.4 ns with lz4, 1 to 2 ns with zstd 3, 3 ns with pcodec
/// and more with bit shuffle, whatever it is compressed to; in `balanced` a nanosecond weighs as much
/// as a tenth of a byte. What is raw needs no scratch memory either: in `fast` lz4 has to save a fifth.
pub(super) fn candidates(profile: Profile, dtype: &DataType) -> Vec<Candidate> {
    if dtype.size().is_none() {
        return texts(profile, dtype);
    }
    let plain = |compressor, penalty| Candidate {
        chain: CodecChain::checksummed(ValueCodec::Bytes(Endian::Little), compressor),
        penalty,
        per_value: 0.0,
    };
    let blosc = |cname, clevel, shuffle| shuffled(dtype, cname, clevel, shuffle);
    let pcodec = |level| {
        pcodec::takes(dtype).then(|| Candidate {
            chain: CodecChain::checksummed(ValueCodec::Pcodec(pcodec::Config::new(level)), None),
            penalty: 0.0,
            per_value: 0.0,
        })
    };
    let slower = |candidate: Candidate, per_value| Candidate {
        per_value,
        ..candidate
    };
    let (shuffle, bits) = (Shuffle::Bytes, Shuffle::Bits);
    let mut candidates = vec![plain(None, 0.0)];
    match profile {
        Profile::Raw => {}
        Profile::Fast => candidates.push(plain(blosc(Compressor::Lz4, 5, shuffle), 0.25)),
        Profile::Balanced => {
            let blosc = |cname, level, shuffle| plain(blosc(cname, level, shuffle), 0.0);
            candidates.push(slower(blosc(Compressor::Lz4, 5, shuffle), 0.04));
            candidates.push(slower(blosc(Compressor::Zstd, 3, shuffle), 0.15));
            candidates.extend(pcodec(8).map(|candidate| slower(candidate, 0.3)));
            candidates.push(slower(blosc(Compressor::Zstd, 3, bits), 0.35));
        }
        Profile::Small => {
            // Those of `Balanced`, but by their size alone, and slower ones. Bit shuffle gains
            // nothing from higher levels; pcodec little, and no time is lost in decoding.
            candidates.push(plain(blosc(Compressor::Lz4, 5, shuffle), 0.0));
            candidates.push(plain(blosc(Compressor::Zstd, 3, shuffle), 0.0));
            candidates.push(plain(blosc(Compressor::Zstd, 9, shuffle), 0.0));
            candidates.extend(pcodec(8));
            candidates.extend(pcodec(12));
            candidates.push(plain(blosc(Compressor::Zstd, 3, bits), 0.0));
            candidates.push(plain(blosc(Compressor::Zstd, 5, bits), 0.0));
        }
    }
    candidates
}

/// The candidates for texts and byte strings.
fn texts(profile: Profile, dtype: &DataType) -> Vec<Candidate> {
    let candidate = |level: Option<i32>, penalty| Candidate {
        chain: CodecChain::checksummed(
            if *dtype == DataType::String {
                ValueCodec::VlenUtf8
            } else {
                ValueCodec::VlenBytes
            },
            level.map(zstd),
        ),
        penalty,
        per_value: 0.0,
    };
    let level = if profile == Profile::Small { 19 } else { 3 };
    vec![candidate(None, 0.0), candidate(Some(level), 0.05)]
}
