//! Errors: invalid settings, damaged streams, unsupported versions.

/// Why encoding or decoding failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The caller asked for what cannot be done: another shape, bound or setting is needed.
    #[error("{0}")]
    Invalid(&'static str),
    /// The stream is damaged or was cut short.
    #[error("{0}")]
    Corrupt(&'static str),
    /// The stream has a version that is not the one this library reads.
    #[error("stream version {found} is not supported; this library reads version {supported}")]
    UnsupportedVersion {
        /// Of the stream.
        found: u8,
        /// Of this library.
        supported: u8,
    },
    /// Reserved bits are set in the header's byte of this name, which has this value.
    #[error("reserved bits are set in the header's {0} byte: {1:#010b}")]
    ReservedBits(&'static str, u8),
}

pub(crate) use Error::{Corrupt, Invalid, UnsupportedVersion};

/// The result of encoding or decoding.
pub type Result<T> = std::result::Result<T, Error>;
