//! Exceptions: values that are stored bit for bit beside the coded values.

use crate::element::Element;
use crate::entropy::bitio::{Cursor, write_number};
use crate::error::{Result, corrupt};

/// The indices of exceptions, in ascending order.
#[derive(Default)]
pub(crate) struct Exceptions(Vec<usize>);

impl Exceptions {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn push(&mut self, at: usize) {
        self.0.push(at);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Appends the number of exceptions, and for each its distance from the one before, and its bits.
    pub(crate) fn write<T: Element>(&self, values: &[T], out: &mut Vec<u8>) {
        write_number(self.0.len() as u64, out);
        let mut next = 0;
        for at in &self.0 {
            write_number((at - next) as u64, out);
            out.extend_from_slice(&values[*at].to_word().to_le_bytes()[..T::SIZE]);
            next = at + 1;
        }
    }
}

/// Reads exceptions, and writes them to `out`.
pub(crate) fn read<T: Element>(cursor: &mut Cursor<'_>, out: &mut [T]) -> Result<()> {
    let (count, mut next) = (cursor.number_to(out.len())?, 0);
    for _ in 0..count {
        let at = cursor.number_to(out.len())?.saturating_add(next);
        let mut word = [0; 8];
        word[..T::SIZE].copy_from_slice(cursor.bytes(T::SIZE)?);
        let count = out.len();
        *out.get_mut(at)
            .ok_or_else(|| corrupt!("an exception has index {at}; expected less than {count}"))? =
            T::from_word(u64::from_le_bytes(word));
        next = at + 1;
    }
    Ok(())
}
