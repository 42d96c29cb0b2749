//! Error-bounded and lossless compression of float32 and float64 fields on regular grids, AMR patches and
//! tree cells.
//!
//! # When to use it
//!
//! - The values are samples of a field: neighbours in space resemble each other.
//! - Every value must come back within a bound that you choose, or bit for bit.
//! - Values are in chunks of some 10^4 to 10^6, which must decode independently and fast.
//!
//! For columns of a table, choose a general numeric codec such as pcodec.
//!
//! # Example
//!
//! ```
//! use ambar_codec::{Layout, Workspace, decode, encode};
//!
//! let wave = |k: usize| (k as f32 * 0.05).sin();
//! let values: Vec<f32> = (0..64 * 64).map(|i| wave(i / 64) * wave(i % 64)).collect();
//! let layout = Layout::Array(&[64, 64]);
//! let mut workspace = Workspace::default();
//! let stream = encode(&values, &layout, 1e-3, None, &mut workspace)?;
//! assert!(stream.len() < 2000);
//!
//! let mut decoded = vec![0f32; values.len()];
//! decode(&stream, &mut decoded, &mut workspace)?;
//! assert!(values.iter().zip(&decoded).all(|(a, b)| (a - b).abs() <= 1e-3));
//! # Ok::<(), ambar_codec::Error>(())
//! ```
//!
//! # Method
//!
//! The codec has two modes. The *entropy-coded* mode works in four steps:
//!
//! 1. **Domain.** Values are arranged in cuboids, called regions. An array is one region. Components of vectors
//!    are coded one after another; planes or rows that do not resemble each other are regions of their own. Unit
//!    blocks of an AMR level that touch are joined, so that prediction crosses their faces, which AMRIC \[4\] does
//!    by stacking blocks. Leaf cells of a tree are arranged level by level.
//! 2. **Prediction.** SZ3-style multilevel interpolation \[1\]: an anchor point, then each finer lattice is
//!    predicted from the coarser one, by the mean of interpolations along its odd dimensions (the
//!    multi-dimensional variant of HPEZ \[3\]). For the finest levels, the encoder chooses how sharp the
//!    interpolations are, ignores dimensions that predict badly, and adds points on diagonals with fitted weights.
//!    Coarse levels have tighter bounds, as in QoZ \[2\].
//! 3. **Quantization.** The residual is divided by twice the bound and rounded. The encoder verifies every value
//!    as the decoder will reconstruct it; a value that would break the bound is stored as a literal. If only
//!    the mean squared error is bounded, rate-distortion-optimised quantization is used, and the error of all values
//!    is verified. Where that is smaller, a wavelet transform of the array replaces the prediction of step 2, as in
//!    SPERR \[7\].
//! 4. **Entropy coding.** Interleaved static rANS \[5, 6\] with up to 40 contexts. A point's context is the
//!    expected magnitude of its residual, from residuals nearby and the local variation of the values.
//!    Contexts with similar statistics share a frequency table. Short streams have no tables: their tokens are
//!    binary decisions, whose probabilities adapt.
//!
//! The *bit-packed* mode takes differences of quantized values, and packs them with the bit width of the
//! widest value in a group. It encodes and decodes at about the speed of memory; streams are larger.
//!
//! The format of streams is specified in `docs/format.md` of the repository, with an independent decoder in
//! Python in `reference/`.
//!
//! # Guarantees
//!
//! - The bound holds for every value of every input: NaN, infinities and denormals included.
//! - Encoder and decoder use IEEE 754 operations in a fixed order, without fused operations: all machines decode
//!   the same bits. Vector instructions are chosen at run time and change no result.
//! - Decoders accept untrusted input: a stream that is truncated, damaged or hostile returns an [`Error`],
//!   within time and memory proportional to the stream and the output.
//! - The crate performs no I/O and starts no threads.
//!
//! # Modules
//!
//! From the stream down to the value:
//!
//! | module | contents |
//! |---|---|
//! | `stream` | encoder, decoder and header of streams; choice of parameters; packets of array chunks |
//! | `bound` | error bounds: their grammar, and the mapping of relative bounds |
//! | `domain` | regions of arrays, blocks and cells; masks and holes |
//! | `predict` | traversal of the lattices, interpolation, contexts |
//! | `wavelet` | the transform of arrays whose mean squared error is bounded, and the traversal of its coefficients |
//! | `quantize` | residuals of rows to tokens, and back |
//! | `bitpack` | the bit-packed mode |
//! | `entropy` | tokens, frequency tables, rANS, adaptive tokens, bit input and output |
//! | `simd` | run-time dispatch of vector instructions; compaction of masked rows |
//! | [`simplices`] | connectivity of triangle and tetrahedron meshes |
//! | `element` | `f32` and `f64` |
//!
//! # References
//!
//! 1. K. Zhao et al., "Optimizing error-bounded lossy compression for scientific data by dynamic spline
//!    interpolation", ICDE 2021; X. Liang et al., "SZ3: a modular framework for composing prediction-based
//!    error-bounded lossy compressors", IEEE Transactions on Big Data, 2023.
//! 2. X. Liu et al., "Dynamic quality metric oriented error bounded lossy compression for scientific datasets"
//!    (QoZ), SC22.
//! 3. X. Liu et al., "High-performance effective scientific error-bounded lossy compression with auto-tuned
//!    multi-component interpolation" (HPEZ), SIGMOD 2024.
//! 4. D. Wang et al., "AMRIC: a novel in situ lossy compression framework for efficient I/O in adaptive mesh
//!    refinement applications", SC23.
//! 5. J. Duda, "Asymmetric numeral systems: entropy coding combining speed of Huffman coding with compression
//!    rate of arithmetic coding", arXiv:1311.2540.
//! 6. F. Giesen, "Interleaved entropy coders", arXiv:1402.3392.
//! 7. S. Li, P. Lindstrom, J. Clyne, "Lossy scientific data compression with SPERR", IPDPS 2023.

mod bitpack;
mod bound;
mod domain;
mod element;
mod entropy;
mod error;
mod predict;
mod quantize;
mod simd;
pub mod simplices;
mod stream;
mod wavelet;

pub use bitpack::max_encoded_bytes;
pub use bound::{ErrorBound, InvalidBound};
pub use domain::regions::Layout;
pub use element::Element;
pub use error::{Error, Result};
pub use stream::compress::{encode, encode_into, tune, tune_fast, tune_small};
pub use stream::decode::{
    Info, LENGTHS_BYTES, MAX_PREFIX_LEVEL, Prefix, decode, decode_prefix, inspect, prefix,
};
pub use stream::encode::Workspace;
pub use stream::header::VERSION;
pub use stream::packet;
pub use stream::params::EncoderParams;
