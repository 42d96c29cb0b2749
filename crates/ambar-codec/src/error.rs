//! Errors: invalid arguments, damaged streams, unsupported versions.

use std::fmt;

/// Why encoding or decoding failed.
///
/// Every message states what was expected and what was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The arguments are invalid, or do not apply to this stream. Change the arguments.
    #[error("{0}")]
    Invalid(Box<str>),
    /// The stream is damaged or truncated.
    #[error("{0}")]
    Corrupt(Box<str>),
    /// This library does not read the version of the stream.
    #[error("stream version {found} is not supported; this library reads version {supported}")]
    UnsupportedVersion {
        /// The version of the stream.
        found: u8,
        /// The version that this library reads.
        supported: u8,
    },
    /// Reserved bits are set. They are 0 in all versions that this library reads.
    #[error(
        "reserved bits are set in the {field} byte: {found:#010b}; expected 0 in bits {reserved:#010b}"
    )]
    ReservedBits {
        /// The name of the byte.
        field: &'static str,
        /// The value of the byte.
        found: u8,
        /// The bits of the byte that are reserved.
        reserved: u8,
    },
}

/// The result of encoding or decoding.
pub type Result<T> = std::result::Result<T, Error>;

/// Formats the message of [`Error::Corrupt`]. Not inlined, so that callers stay small.
#[cold]
#[inline(never)]
pub(crate) fn corrupt_error(message: fmt::Arguments<'_>) -> Error {
    Error::Corrupt(message.to_string().into())
}

/// Formats the message of [`Error::Invalid`].
#[cold]
#[inline(never)]
pub(crate) fn invalid_error(message: fmt::Arguments<'_>) -> Error {
    Error::Invalid(message.to_string().into())
}

/// An [`Error::Corrupt`] with a formatted message.
macro_rules! corrupt {
    ($($message:tt)*) => { $crate::error::corrupt_error(format_args!($($message)*)) };
}
pub(crate) use corrupt;

/// An [`Error::Invalid`] with a formatted message.
macro_rules! invalid {
    ($($message:tt)*) => { $crate::error::invalid_error(format_args!($($message)*)) };
}
pub(crate) use invalid;
