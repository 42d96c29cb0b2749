//! The codec `blosc`: one blosc 1 buffer for each chunk, by the C library.
//!
//! Source: C-Blosc 1.21, `blosc.h`. Only the `_ctx` functions are used: they share no state.

use std::ffi::CStr;

use serde::{Deserialize, Serialize};

use crate::buffers;
use crate::error::{Error, Result};

/// Largest buffer that blosc 1 compresses.
const MAX_BYTES: usize = (i32::MAX - 16) as usize;

/// Largest overhead of a buffer.
const OVERHEAD: usize = blosc_src::BLOSC_MAX_OVERHEAD as usize;

/// A compressor of blosc.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Compressor {
    Blosclz,
    Lz4,
    Lz4hc,
    Snappy,
    Zlib,
    Zstd,
}

impl Compressor {
    fn name(self) -> &'static CStr {
        match self {
            Self::Blosclz => c"blosclz",
            Self::Lz4 => c"lz4",
            Self::Lz4hc => c"lz4hc",
            Self::Snappy => c"snappy",
            Self::Zlib => c"zlib",
            Self::Zstd => c"zstd",
        }
    }
}

/// How values are rearranged before they are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum Shuffle {
    #[serde(rename = "noshuffle")]
    None,
    #[serde(rename = "shuffle")]
    Bytes,
    #[serde(rename = "bitshuffle")]
    Bits,
}

/// The codec's `configuration`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Config {
    #[serde(default = "one")]
    pub typesize: usize,
    pub cname: Compressor,
    pub clevel: i32,
    pub shuffle: Shuffle,
    #[serde(default)]
    pub blocksize: usize,
}

fn one() -> usize {
    1
}

impl Config {
    /// A short description.
    pub fn describe(&self) -> String {
        let shuffle = match self.shuffle {
            Shuffle::None => "",
            Shuffle::Bytes => " shuffle",
            Shuffle::Bits => " bitshuffle",
        };
        let name = self.cname.name().to_string_lossy();
        format!("blosc {name} {}{shuffle}", self.clevel)
    }

    /// Compresses `source` into `out`, which is replaced.
    pub fn encode(&self, source: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if source.len() > MAX_BYTES {
            return Err(Error::invalid(format!(
                "a chunk of {} bytes is too long for blosc; choose smaller chunks",
                source.len()
            )));
        }
        let room = source.len() + OVERHEAD;
        // With space for a trailing checksum.
        *out = buffers::take(room + 4);
        let shuffle = match self.shuffle {
            Shuffle::None => blosc_src::BLOSC_NOSHUFFLE,
            Shuffle::Bytes => blosc_src::BLOSC_SHUFFLE,
            Shuffle::Bits => blosc_src::BLOSC_BITSHUFFLE,
        };
        // SAFETY: source is valid for its length and out for `room` bytes; they do not overlap. Blosc
        // does not read out and writes at most `destsize` bytes. The name is a C string.
        let written = unsafe {
            blosc_src::blosc_compress_ctx(
                self.clevel,
                shuffle as i32,
                self.typesize,
                source.len(),
                source.as_ptr().cast(),
                out.as_mut_ptr().cast(),
                room,
                self.cname.name().as_ptr(),
                self.blocksize,
                1,
            )
        };
        match usize::try_from(written) {
            // SAFETY: blosc has written `written` bytes, at most `room`, from the start of out.
            Ok(written) if written > 0 && written <= room => unsafe { out.set_len(written) },
            _ => {
                return Err(Error::unsupported(format!(
                    "{} cannot be written by this build",
                    self.describe()
                )));
            }
        }
        Ok(())
    }
}

/// The decoded size of the blosc buffer `source`, whose header must fit its length.
pub(super) fn decoded_size(source: &[u8]) -> Result<usize> {
    let mut size = 0usize;
    // SAFETY: source is valid for its length; the function reads only the header, and nothing
    // if the length is too small for one.
    let status = unsafe {
        blosc_src::blosc_cbuffer_validate(source.as_ptr().cast(), source.len(), &mut size)
    };
    if status == 0 {
        Ok(size)
    } else {
        Err(Error::corrupt(
            "the header of a blosc buffer does not fit its length; restore the file from a copy",
        ))
    }
}

/// Decompresses `source` into `out`, which it must fill exactly.
pub(super) fn decode(source: &[u8], out: &mut [u8]) -> Result<()> {
    let size = decoded_size(source)?;
    if size != out.len() {
        return Err(Error::corrupt(format!(
            "a blosc buffer has {size} bytes; expected {}",
            out.len()
        )));
    }
    if size == 0 {
        return Ok(());
    }
    // SAFETY: the header was validated against the source's length, out is valid for its length,
    // and blosc writes no more than `destsize` bytes.
    let written = unsafe {
        blosc_src::blosc_decompress_ctx(
            source.as_ptr().cast(),
            out.as_mut_ptr().cast(),
            out.len(),
            1,
        )
    };
    if usize::try_from(written) == Ok(size) {
        Ok(())
    } else {
        Err(Error::corrupt(format!(
            "a blosc buffer cannot be decoded (code {written}): it is damaged, or this build lacks its compressor"
        )))
    }
}
