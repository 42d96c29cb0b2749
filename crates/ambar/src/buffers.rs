//! Buffers of encoded chunks that were written, kept for the chunks that are encoded next.
//!
//! Large buffers come from the system as pages that it clears when they are first touched, which takes
//! longer than writing them into the page cache. Buffers of written entries are therefore reused.

use std::sync::{Mutex, MutexGuard};

use crate::process::PerProcess;

/// Bytes that are kept at most.
const KEPT_BYTES: usize = 64 << 20;

/// Buffers below this are the allocator's, which keeps them itself.
const LEAST: usize = 128 << 10;

static SPARE: PerProcess<Mutex<Spare>> = PerProcess::new();

/// What is kept.
#[derive(Default)]
struct Spare(Vec<Vec<u8>>);

/// An empty buffer with room for `bytes`.
pub(crate) fn take(bytes: usize) -> Vec<u8> {
    let kept = if bytes < LEAST {
        None
    } else {
        spare().take(bytes)
    };
    kept.unwrap_or_else(|| Vec::with_capacity(bytes))
}

/// Keeps buffers whose content is no longer needed, as far as they are worth it.
pub(crate) fn give_back(buffers: impl IntoIterator<Item = Vec<u8>>) {
    spare().keep(buffers);
}

/// Frees all that is kept, once nothing is being written.
pub(crate) fn release() {
    let freed = std::mem::take(&mut spare().0);
    drop(freed); // outside of the lock
}

fn spare() -> MutexGuard<'static, Spare> {
    SPARE.lock()
}

impl Spare {
    /// A buffer of at least `bytes`, and not of many more.
    fn take(&mut self, bytes: usize) -> Option<Vec<u8>> {
        let fits = |buffer: &Vec<u8>| (bytes..=bytes + bytes / 4).contains(&buffer.capacity());
        let index = self.0.iter().rposition(fits)?;
        Some(self.0.swap_remove(index))
    }

    fn keep(&mut self, buffers: impl IntoIterator<Item = Vec<u8>>) {
        let mut kept = self.0.iter().map(Vec::capacity).sum::<usize>();
        for mut buffer in buffers {
            let bytes = buffer.capacity();
            if bytes >= LEAST && kept + bytes <= KEPT_BYTES {
                kept += bytes;
                buffer.clear();
                self.0.push(buffer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_that_fit_are_taken_again() {
        let mut spare = Spare(Vec::new());
        let bytes = 3 * LEAST;
        let buffer = vec![7; bytes];
        let place = buffer.as_ptr();
        spare.keep([buffer, Vec::new(), vec![0; LEAST - 1]]);
        assert_eq!(spare.0.len(), 1, "small ones are not kept");
        assert_eq!(spare.take(bytes + 1), None);
        assert_eq!(spare.take(bytes / 2), None, "far too large");
        let again = spare.take(bytes - 10).unwrap();
        assert!(again.is_empty() && again.as_ptr() == place);
        assert_eq!(spare.take(bytes), None);
        let many = (0..10).map(|_| Vec::with_capacity(KEPT_BYTES / 4));
        spare.keep(many);
        assert_eq!(spare.0.len(), 4);
    }
}
