//! Parse errors with their positions.

use crate::error::Error;

/// A message, and the character that it is about, counted from 0.
#[derive(Debug)]
pub(super) struct Problem {
    position: usize,
    message: String,
}

impl Problem {
    pub fn new(position: usize, message: impl Into<String>) -> Self {
        Self {
            position,
            message: message.into(),
        }
    }

    /// The error of a "condition" or an "expression".
    pub fn of(self, what: &str) -> Error {
        let character = self.position + 1;
        Error::invalid(format!(
            "invalid {what} at character {character}: {}",
            self.message
        ))
    }
}
