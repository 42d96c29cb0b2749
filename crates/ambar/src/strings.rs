//! Variable-length strings and byte strings in memory.

/// UTF-8 strings or byte strings: value `i` is `bytes[offsets[i]..offsets[i + 1]]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strings {
    /// One more offset than values, ascending from 0; empty for no values.
    pub offsets: Vec<u64>,
    /// The values, concatenated.
    pub bytes: Vec<u8>,
}

impl Strings {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Value `index`; `None` after the last one.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let start = usize::try_from(*self.offsets.get(index)?).ok()?;
        let stop = usize::try_from(*self.offsets.get(index.checked_add(1)?)?).ok()?;
        self.bytes.get(start..stop)
    }

    /// Appends a value.
    pub fn push(&mut self, value: &[u8]) {
        if self.offsets.is_empty() {
            self.offsets.push(0);
        }
        self.bytes.extend_from_slice(value);
        self.offsets.push(self.bytes.len() as u64);
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for Strings {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut strings = Self {
            offsets: vec![0],
            bytes: Vec::new(),
        };
        for value in values {
            strings.push(value.as_ref());
        }
        strings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_found_by_their_offsets() {
        let strings: Strings = ["a", "", "žlu"].into_iter().collect();
        assert_eq!(strings.len(), 3);
        assert_eq!(strings.get(1), Some(&b""[..]));
        assert_eq!(strings.get(2), Some("žlu".as_bytes()));
        assert_eq!(strings.get(3), None);
    }
}
