//! A parser of headers: numbers, brackets and lines, with errors that name file, line and the text
//! found.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use ambar::kinds::amr::patches::{IndexBox, MAX_INDEX};
use ambar::{Error, Result};

/// Maximum bytes of a text file; headers grow with the number of boxes.
const TEXT_LIMIT: u64 = 1 << 30;

/// Maximum characters that an error message quotes.
const QUOTED: usize = 60;

/// A text and the position reached in it.
pub struct TextParser<'a> {
    text: &'a str,
    at: usize,
    path: PathBuf,
}

/// Reads a text file.
///
/// # Errors
/// `Limit` for a file above `TEXT_LIMIT`; `Corrupt` for invalid UTF-8; `NotFound`; `Io`.
pub fn read_text(path: &Path) -> Result<String> {
    let io = |e| Error::io(e, path, "reading a text of the plotfile");
    let len = std::fs::metadata(path).map_err(io)?.len();
    ambar::Limits::check("a text", len, TEXT_LIMIT).map_err(|e| e.in_file(path.display()))?;
    let bytes = std::fs::read(path).map_err(io)?;
    String::from_utf8(bytes).map_err(|error| {
        Error::corrupt(format!(
            "expected UTF-8 text, found an invalid byte at {}; copy the plotfile again",
            error.utf8_error().valid_up_to()
        ))
        .in_file(path.display())
    })
}

impl<'a> TextParser<'a> {
    /// A parser at the beginning of `text`; errors name `path`.
    pub fn new(text: &'a str, path: &Path) -> Self {
        Self {
            text,
            at: 0,
            path: path.to_owned(),
        }
    }

    /// The remaining text.
    pub fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// An error at this position: `expected`, and the text found.
    pub fn error(&self, expected: &str) -> Error {
        let before = self.text.get(..self.at).unwrap_or_default();
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let found = self.rest().lines().next().unwrap_or_default();
        let found = if self.rest().trim().is_empty() {
            "the end of the file".to_owned()
        } else {
            format!("{:?}", found.chars().take(QUOTED).collect::<String>())
        };
        Error::corrupt(format!(
            "line {line}: expected {expected}, found {found}; copy the plotfile again"
        ))
        .in_file(self.path.display())
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Takes the remainder of this line, without blanks around it, and the newline.
    ///
    /// # Errors
    /// `Corrupt` at the end of the text.
    pub fn line(&mut self, expected: &str) -> Result<&'a str> {
        if self.rest().is_empty() {
            return Err(self.error(expected));
        }
        let rest = self.rest();
        let len = rest.find('\n').unwrap_or(rest.len());
        self.at = (self.at + len + 1).min(self.text.len());
        Ok(rest.get(..len).unwrap_or_default().trim())
    }

    /// True if this line has more than blanks left.
    pub fn has_more_on_line(&self) -> bool {
        let line = self.rest().lines().next();
        line.is_some_and(|line| !line.trim().is_empty())
    }

    /// The next non-blank character, without taking it.
    pub fn peek(&mut self) -> Option<char> {
        self.skip_space();
        self.rest().chars().next()
    }

    /// Takes the character `wanted`, after blanks.
    ///
    /// # Errors
    /// `Corrupt` if another character follows.
    pub fn take(&mut self, wanted: char, expected: &str) -> Result<()> {
        if self.peek() != Some(wanted) {
            return Err(self.error(&format!("{expected} ({wanted:?})")));
        }
        self.at += wanted.len_utf8();
        Ok(())
    }

    /// Takes the next word, which ends at a blank, a bracket or a comma.
    ///
    /// # Errors
    /// `Corrupt` if no word follows.
    pub fn word(&mut self, expected: &str) -> Result<&'a str> {
        self.skip_space();
        let ends = |c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',');
        let rest = self.rest();
        let len = rest.find(ends).unwrap_or(rest.len());
        if len == 0 {
            return Err(self.error(expected));
        }
        self.at += len;
        Ok(rest.get(..len).unwrap_or_default())
    }

    /// Takes the next number.
    ///
    /// # Errors
    /// `Corrupt` if no number follows, or it is out of range for its type.
    pub fn number<T: FromStr>(&mut self, expected: &str) -> Result<T> {
        self.skip_space();
        let start = self.at;
        self.word(expected)?.parse().map_err(|_| {
            self.at = start;
            self.error(expected)
        })
    }

    /// Takes the next number, which must be in `range`.
    ///
    /// # Errors
    /// As `number`.
    pub fn integer(&mut self, expected: &str, range: std::ops::RangeInclusive<i64>) -> Result<i64> {
        self.skip_space();
        let start = self.at;
        let value = self.number(expected)?;
        if range.contains(&value) {
            return Ok(value);
        }
        self.at = start;
        let (low, high) = (range.start(), range.end());
        Err(self.error(&match low == high {
            true => format!("{expected}, {low}"),
            false => format!("{expected}, from {low} to {high}"),
        }))
    }

    /// Takes a count of items that follow. Each item needs at least one byte of text, so the size of the
    /// file bounds their memory.
    ///
    /// # Errors
    /// As `number`.
    pub fn count(&mut self, expected: &str) -> Result<usize> {
        let most = self.rest().len() as i64;
        Ok(self.integer(expected, 0..=most)? as usize)
    }

    /// Takes `ndim` indices in brackets, `(1,2,3)`. Unused dimensions are `rest`.
    ///
    /// # Errors
    /// `Corrupt` for another number of indices, or indices beyond `MAX_INDEX`.
    pub fn indices(&mut self, expected: &str, ndim: usize, rest: i64) -> Result<[i64; 3]> {
        let mut indices = [rest; 3];
        self.take('(', expected)?;
        for (d, index) in indices.iter_mut().take(ndim).enumerate() {
            if d > 0 {
                self.take(',', expected)?;
            }
            *index = self.integer(expected, -MAX_INDEX..=MAX_INDEX - 1)?;
        }
        self.take(')', expected)?;
        Ok(indices)
    }

    /// Takes a box of cells, `((lo) (hi) (type))`, with an inclusive upper corner. Empty boxes (`hi`
    /// below `lo`) are allowed.
    ///
    /// # Errors
    /// `Corrupt` for any other text; `Unsupported` for boxes of nodes or faces.
    pub fn index_box(&mut self, expected: &str, ndim: usize) -> Result<IndexBox> {
        self.take('(', expected)?;
        let lo = self.indices(expected, ndim, 0)?;
        let mut hi = self.indices(expected, ndim, 0)?;
        let kind = self.indices(expected, ndim, 0)?;
        self.take(')', expected)?;
        if kind != [0; 3] {
            return Err(Error::unsupported(format!(
                "expected {expected} of cells, found the type {kind:?} of nodes or faces; write the \
                 plotfile with cell-centred values"
            ))
            .in_file(self.path.display()));
        }
        for high in &mut hi {
            *high += 1;
        }
        Ok(IndexBox { lo, hi })
    }
}

/// A box in the notation of AMReX.
pub fn format_box(index_box: &IndexBox, ndim: usize) -> String {
    let list = |index: &dyn Fn(usize) -> i64| {
        let all: Vec<_> = (0..ndim).map(|d| index(d).to_string()).collect();
        all.join(",")
    };
    format!(
        "(({}) ({}) ({}))",
        list(&|d| index_box.lo[d]),
        list(&|d| index_box.hi[d] - 1),
        list(&|_| 0)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_of_all_dimensions_are_parsed_and_formatted() {
        for (text, ndim, lo, hi) in [
            ("((0) (31) (0))", 1, [0, 0, 0], [32, 1, 1]),
            ("((-3,2) (4,2) (0,0))", 2, [-3, 2, 0], [5, 3, 1]),
            ("((0,1,-9) (1,1,-8) (0,0,0))", 3, [0, 1, -9], [2, 2, -7]),
        ] {
            let mut cursor = TextParser::new(text, Path::new("Cell_H"));
            let found = cursor.index_box("a box", ndim).unwrap();
            assert_eq!(found, IndexBox { lo, hi });
            assert_eq!(format_box(&found, ndim), text);
            assert!(cursor.rest().is_empty());
        }
    }

    #[test]
    fn errors_name_file_line_expected_and_found() {
        let mut cursor = TextParser::new("HyperCLaw-V1.1\n6x\nphi\n", Path::new("plt/Header"));
        cursor.line("the version").unwrap();
        let error = cursor.count("the number of fields").unwrap_err();
        for part in ["plt/Header", "line 2", "number of fields", "\"6x\""] {
            assert!(error.to_string().contains(part), "{error}");
        }
        let mut cursor = TextParser::new("((0,0) (99999999999999999999,0) (0,0))", Path::new("x"));
        assert!(cursor.index_box("a box", 2).is_err());
        let mut cursor = TextParser::new("((0,0) (8,8) (1,0))", Path::new("x"));
        let error = cursor.index_box("a box", 2).unwrap_err();
        assert_eq!(error.kind(), ambar::ErrorKind::Unsupported);
    }

    #[test]
    fn counts_are_bounded_by_what_follows() {
        let mut cursor = TextParser::new("4000000000 \n", Path::new("x"));
        assert!(cursor.count("a number of grids").is_err());
    }
}
