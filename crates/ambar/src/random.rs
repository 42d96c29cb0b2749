//! Random numbers of the system, which no other process gets: not even a forked child, which continues the generators
//! of its parent.

use std::io;

use crate::error::{Error, Result};

/// Returns 64 random bits.
///
/// # Errors
/// `Io` if the system has no random numbers.
pub fn number() -> Result<u64> {
    getrandom::u64().map_err(|error| {
        let source = io::Error::other(error.to_string());
        Error::io(source, "the system".as_ref(), "getting random numbers")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::succeeds_in_child;

    #[test]
    fn children_of_one_process_get_different_numbers() {
        number().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let number_of_child = |name: &str| {
            let path = folder.path().join(name);
            assert!(succeeds_in_child(|| {
                std::fs::write(&path, number().unwrap().to_string()).unwrap();
            }));
            std::fs::read_to_string(&path).unwrap()
        };
        assert_ne!(number_of_child("first"), number_of_child("second"));
    }
}
