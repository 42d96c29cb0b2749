//! A FAB (the values of one box): the line of text before its values, and the format of its numbers.

use std::fmt;
use std::path::Path;

use ambar::kinds::amr::patches::IndexBox;
use ambar::{Error, Result};

use super::text::{TextParser, format_box};

/// Maximum bytes of the line of text before a FAB's values.
pub const LINE_LIMIT: usize = 1024;

/// Size and byte order of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Descriptor {
    /// True for double precision, false for single.
    pub double: bool,
    /// True for little-endian numbers.
    pub little: bool,
}

impl Descriptor {
    /// Bytes of a number.
    pub fn size(self) -> usize {
        if self.double { 8 } else { 4 }
    }

    /// True if the byte order differs from this machine's.
    pub fn is_swapped(self) -> bool {
        self.little != cfg!(target_endian = "little")
    }

    /// Parses `((8, (64 11 52 0 1 12 0 1023)),(8, (8 7 6 5 4 3 2 1)))`: the bit fields and the byte order
    /// of IEEE numbers.
    ///
    /// # Errors
    /// `Corrupt` for any other text; `Unsupported` for other numbers or byte orders.
    pub fn parse(text: &mut TextParser<'_>, path: &Path) -> Result<Self> {
        text.take('(', "a description of numbers")?;
        let format = list(text)?;
        text.take(',', "a description of numbers")?;
        let order = list(text)?;
        text.take(')', "a description of numbers")?;
        let double = match format.as_slice() {
            [64, 11, 52, 0, 1, 12, 0, 1023] => Some(true),
            [32, 8, 23, 0, 1, 9, 0, 127] => Some(false),
            _ => None,
        };
        let little = match order.as_slice() {
            [8, 7, 6, 5, 4, 3, 2, 1] | [4, 3, 2, 1] => Some(true),
            [1, 2, 3, 4, 5, 6, 7, 8] | [1, 2, 3, 4] => Some(false),
            _ => None,
        };
        match (double, little) {
            (Some(double), Some(little)) if order.len() == Self { double, little }.size() => {
                Ok(Self { double, little })
            }
            _ => Err(Error::unsupported(format!(
                "expected IEEE numbers of 4 or 8 bytes in little-endian or big-endian order, found \
                 the bit fields {format:?} and the byte order {order:?}; write the plotfile in \
                 another format"
            ))
            .in_file(path.display())),
        }
    }
}

impl fmt::Display for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let format = if self.double {
            "64 11 52 0 1 12 0 1023"
        } else {
            "32 8 23 0 1 9 0 127"
        };
        let size = self.size();
        let places = 1..=size;
        let order: Vec<String> = if self.little {
            places.rev().map(|place| place.to_string()).collect()
        } else {
            places.map(|place| place.to_string()).collect()
        };
        write!(f, "((8, ({format})),({size}, ({})))", order.join(" "))
    }
}

/// Parses `(8, (64 11 ...))`.
fn list(text: &mut TextParser<'_>) -> Result<Vec<i64>> {
    const EXPECTED: &str = "a list of numbers with their count";
    text.take('(', EXPECTED)?;
    let count = text.integer(EXPECTED, 1..=16)?;
    text.take(',', EXPECTED)?;
    text.take('(', EXPECTED)?;
    let numbers = (0..count)
        .map(|_| text.number(EXPECTED))
        .collect::<Result<_>>()?;
    text.take(')', EXPECTED)?;
    text.take(')', EXPECTED)?;
    Ok(numbers)
}

/// The line before a FAB's values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FabLine {
    /// Format of the numbers.
    pub descriptor: Descriptor,
    /// Its cells, including ghost cells.
    pub cells: IndexBox,
    /// Number of components.
    pub components: usize,
    /// Bytes of the line.
    pub len: usize,
}

impl FabLine {
    /// Parses the line at the beginning of `bytes`.
    ///
    /// # Errors
    /// `Corrupt` if `bytes` do not begin with such a line; `Unsupported` for FABs of other formats.
    pub fn parse(bytes: &[u8], ndim: usize, path: &Path) -> Result<Self> {
        let line = bytes.iter().position(|byte| *byte == b'\n');
        let line = line.and_then(|end| std::str::from_utf8(bytes.get(..end)?).ok());
        let Some(line) = line.filter(|line| line.starts_with("FAB")) else {
            let start = bytes.iter().take(12).copied().collect::<Vec<_>>();
            return Err(Error::corrupt(format!(
                "expected a line of text that begins with \"FAB\", found {:?}",
                String::from_utf8_lossy(&start)
            )));
        };
        let mut text = TextParser::new(line.get(3..).unwrap_or_default(), path);
        if text.peek() == Some(':') {
            return Err(Error::unsupported(
                "expected a FAB of binary numbers, found one of the old format, of text or of 8 bits; \
                 write the plotfile with fab.format = NATIVE",
            ));
        }
        let found = Self {
            descriptor: Descriptor::parse(&mut text, path)?,
            cells: text.index_box("a FAB's box", ndim)?,
            components: text.integer("a FAB's number of components", 0..=i64::from(i32::MAX))?
                as usize,
            len: line.len() + 1,
        };
        match text.peek() {
            None => Ok(found),
            Some(_) => Err(text.error("the end of the FAB's line")),
        }
    }

    /// The line that AMReX writes, including the newline.
    pub fn format(&self, ndim: usize) -> String {
        format!(
            "FAB {}{} {}\n",
            self.descriptor,
            format_box(&self.cells, ndim),
            self.components
        )
    }
}

/// Reverses the bytes of each number of `size` bytes.
pub fn swap_bytes(bytes: &mut [u8], size: usize) {
    for number in bytes.chunks_exact_mut(size) {
        number.reverse();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsed_lines_are_formatted_unchanged() {
        for line in [
            "FAB ((8, (64 11 52 0 1 12 0 1023)),(8, (8 7 6 5 4 3 2 1)))((0,0,0) (15,15,15) (0,0,0)) 6\n",
            "FAB ((8, (32 8 23 0 1 9 0 127)),(4, (1 2 3 4)))((-2,0,160) (23,23,191) (0,0,0)) 5\n",
        ] {
            let found = FabLine::parse(line.as_bytes(), 3, Path::new("Cell_D")).unwrap();
            assert_eq!(found.format(3), line);
            assert_eq!(found.len, line.len());
            for len in 0..line.len() {
                assert!(FabLine::parse(&line.as_bytes()[..len], 3, Path::new("x")).is_err());
            }
        }
    }

    #[test]
    fn other_number_formats_are_rejected() {
        for line in [
            "FAB ((8, (64 11 52 0 1 12 0 1023)),(8, (2 1 4 3 6 5 8 7)))((0) (15) (0)) 6\n",
            "FAB ((8, (64 11 52 0 1 12 0 1023)),(4, (4 3 2 1)))((0) (15) (0)) 6\n",
            "FAB ((8, (48 11 36 0 1 12 0 1023)),(8, (8 7 6 5 4 3 2 1)))((0) (15) (0)) 6\n",
            "FAB: 4 0 LINUX\n((0) (15) (0)) 1\n",
        ] {
            let error = FabLine::parse(line.as_bytes(), 1, Path::new("x")).unwrap_err();
            assert_eq!(error.kind(), ambar::ErrorKind::Unsupported, "{error}");
        }
    }
}
