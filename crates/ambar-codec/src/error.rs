//! What can go wrong: settings that make no sense, streams that are damaged.

/// Why encoding or decoding failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The caller asked for what cannot be done: another shape, bound or setting is needed.
    #[error("{0}")]
    Invalid(&'static str),
    /// The stream is damaged or was cut short.
    #[error("{0}")]
    Corrupt(&'static str),
    /// The stream was written by a newer version.
    #[error("{0}")]
    Unsupported(&'static str),
}

pub(crate) use Error::{Corrupt, Invalid, Unsupported};

/// The result of encoding or decoding.
pub type Result<T> = std::result::Result<T, Error>;
