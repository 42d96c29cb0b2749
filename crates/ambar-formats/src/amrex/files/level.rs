//! The files of one level: `Cell_H`, and the checked position of every box's values.

use std::path::{Path, PathBuf};

use ambar::kinds::amr::patches::IndexBox;
use ambar::{Error, Result};
use rayon::prelude::*;

use super::cell_header::CellHeader;
use super::fab::{Descriptor, FabLine, LINE_LIMIT};
use super::names::check_path;
use super::open_files::{DataFile, OpenFiles};
use super::text::read_text;

/// The position of a box's values.
#[derive(Clone, Copy, Debug)]
pub struct FabPosition {
    /// Index of the file among the level's files.
    pub file: u32,
    /// Position of its line of text.
    pub start: u64,
    /// Bytes of that line; 0 in formats without it.
    pub line: u32,
    /// Format of the numbers.
    pub descriptor: Descriptor,
    /// True if the line is the one that current AMReX writes.
    pub is_usual: bool,
}

/// The files of a level.
#[derive(Debug)]
pub struct LevelFiles {
    /// Common prefix of the files' paths, as in `Header`.
    pub path: String,
    /// Their folder.
    pub folder: PathBuf,
    /// The contents of `Cell_H`.
    pub header: CellHeader,
    /// For each box, the position of its values.
    pub fabs: Vec<FabPosition>,
}

/// What `Header` says about a level's files.
#[derive(Clone, Copy, Debug)]
pub struct ExpectedLevel<'a> {
    /// Common prefix of the files' paths.
    pub path: &'a str,
    /// Dimensions.
    pub ndim: usize,
    /// Number of boxes.
    pub boxes: usize,
    /// Number of fields.
    pub components: usize,
}

impl LevelFiles {
    /// Opens a level of the plotfile in the folder `root`.
    ///
    /// # Errors
    /// `Corrupt` if files are missing or truncated, or contradict each other; `Unsupported`; `Io`.
    pub fn open(root: &Path, expected: ExpectedLevel<'_>, files: &OpenFiles) -> Result<Self> {
        let ExpectedLevel {
            path,
            ndim,
            boxes,
            components,
        } = expected;
        let header_path = header_path(root, path)?;
        let text = read_text(&header_path).map_err(|error| match error.kind() {
            ambar::ErrorKind::NotFound => Error::corrupt(
                "expected this file for a level in Header, but it does not exist; copy the plotfile \
                 again",
            )
            .in_file(header_path.display()),
            _ => error,
        })?;
        let header = CellHeader::parse(&text, ndim, &header_path)?;
        let wrong = |what: &str, expected: usize, found: usize| {
            Error::corrupt(format!(
                "expected {expected} {what} as in Header, found {found}; copy the plotfile again"
            ))
            .in_file(header_path.display())
        };
        if header.components != components {
            return Err(wrong("fields", components, header.components));
        }
        if header.boxes.len() != boxes {
            return Err(wrong("boxes", boxes, header.boxes.len()));
        }
        let mut level = Self {
            path: path.to_owned(),
            folder: header_path.parent().unwrap_or(root).to_owned(),
            header,
            fabs: Vec::new(),
        };
        level.fabs = level.find_fabs(ndim, files)?;
        level.check_overlap()?;
        Ok(level)
    }

    /// Reads the line before each FAB, and checks that its values are inside the file.
    fn find_fabs(&self, ndim: usize, files: &OpenFiles) -> Result<Vec<FabPosition>> {
        let boxes = self.header.boxes.par_iter().zip(&self.header.fabs);
        let fabs = boxes.enumerate().map(|(index, (cells, (number, start)))| {
            let path = self.file(*number);
            let file = files.get(&path)?;
            let what = format!("box {index}");
            let at = |error: Error| error.at_node(&what).in_file(path.display());
            let fab = self.find_fab(&file, *number, *start, self.with_ghosts(cells), ndim);
            let fab = fab.map_err(at)?;
            let values = fab.start + u64::from(fab.line);
            let bytes = self.bytes(index, fab.descriptor);
            let end = bytes.and_then(|bytes| values.checked_add(bytes));
            if end.is_none_or(|end| end > file.len) {
                return Err(at(Error::corrupt(format!(
                    "expected {} bytes of values from byte {values} on, found a file of {} bytes: it \
                     is truncated; copy the plotfile again",
                    bytes.map_or("more".to_owned(), |bytes| bytes.to_string()),
                    file.len
                ))));
            }
            Ok(fab)
        });
        fabs.collect()
    }

    fn find_fab(
        &self,
        file: &DataFile,
        number: u32,
        start: u64,
        cells: IndexBox,
        ndim: usize,
    ) -> Result<FabPosition> {
        if let Some(descriptor) = self.header.descriptor {
            return Ok(FabPosition {
                file: number,
                start,
                line: 0,
                descriptor,
                is_usual: true,
            });
        }
        let bytes = file.start(start, LINE_LIMIT, "a FAB's line")?;
        let line = FabLine::parse(&bytes, ndim, file.path()).map_err(|error| {
            Error::new(
                error.kind(),
                format!("at byte {start}: {}", error.message()),
            )
        })?;
        if (line.cells, line.components) != (cells, self.header.components) {
            return Err(Error::corrupt(format!(
                "at byte {start}: expected a FAB of {} with {} components as in Cell_H, found {} \
                 with {}; copy the plotfile again",
                cells, self.header.components, line.cells, line.components
            )));
        }
        Ok(FabPosition {
            file: number,
            start,
            line: line.len as u32,
            descriptor: line.descriptor,
            is_usual: bytes.starts_with(line.format(ndim).as_bytes()),
        })
    }

    /// Checks that no two FABs share bytes, so that the size of the files bounds that of the values.
    fn check_overlap(&self) -> Result<()> {
        for (number, boxes) in self.by_file().into_iter().enumerate() {
            let mut end = 0;
            for index in boxes {
                let Some(fab) = self.fabs.get(index) else {
                    continue;
                };
                if fab.start < end {
                    return Err(Error::corrupt(format!(
                        "expected the FAB of box {index} after the previous one, which ends at byte \
                         {end}, found it at byte {}; copy the plotfile again",
                        fab.start
                    ))
                    .in_file(self.file(number as u32).display()));
                }
                let bytes = self.bytes(index, fab.descriptor).unwrap_or(0);
                end = fab.start + u64::from(fab.line) + bytes;
            }
        }
        Ok(())
    }

    /// The path of a file of the level.
    pub fn file(&self, number: u32) -> PathBuf {
        let name = self.header.files.get(number as usize);
        self.folder.join(name.map_or("", String::as_str))
    }

    /// For each file, the boxes whose FABs it holds, in file order.
    pub fn by_file(&self) -> Vec<Vec<usize>> {
        let mut files = vec![Vec::new(); self.header.files.len()];
        let mut order: Vec<_> = (0..self.header.fabs.len()).collect();
        order.sort_by_key(|index| self.header.fabs[*index]);
        for index in order {
            files[self.header.fabs[index].0 as usize].push(index);
        }
        files
    }

    /// A box including its ghost cells.
    pub fn with_ghosts(&self, cells: &IndexBox) -> IndexBox {
        IndexBox {
            lo: std::array::from_fn(|d| cells.lo[d] - self.header.ghosts[d]),
            hi: std::array::from_fn(|d| cells.hi[d] + self.header.ghosts[d]),
        }
    }

    /// Bytes of all values of a box, including ghost cells.
    pub fn bytes(&self, index: usize, descriptor: Descriptor) -> Option<u64> {
        let shape = self.with_ghosts(self.header.boxes.get(index)?).shape();
        let factors = [self.header.components, descriptor.size()];
        let mut all = shape.iter().chain(&factors);
        all.try_fold(1u64, |bytes, factor| bytes.checked_mul(*factor as u64))
    }
}

/// The path of a level's `Cell_H`.
pub fn header_path(root: &Path, path: &str) -> Result<PathBuf> {
    check_path(path).map_err(|expected| {
        Error::corrupt(format!(
            "expected {expected} as the path of a level's files, found {path:?}; copy the plotfile \
             again"
        ))
        .in_file(root.join("Header").display())
    })?;
    Ok(root.join(format!("{path}_H")))
}
