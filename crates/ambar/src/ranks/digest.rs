//! Short digests, by which ranks compare what they define.

use std::hash::{DefaultHasher, Hash, Hasher};

/// A string of 16 digits, equal for equal values.
pub(crate) fn digest(value: &(impl Hash + ?Sized)) -> String {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
