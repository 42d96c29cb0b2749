//! The files of one level: its `Cell_H`, and for each box the place of its values, all checked.

use std::path::{Path, PathBuf};

use ambar::kinds::amr::patches::IndexBox;
use ambar::{Error, Result};
use rayon::prelude::*;

use super::cellh::{CellHeader, check_name};
use super::fab::{Descriptor, FabLine, LINE_LIMIT};
use super::files::{DataFile, OpenFiles};
use super::text::read_text;

/// Where the values of a box lie.
#[derive(Clone, Copy, Debug)]
pub struct Fab {
    /// Which of the level's files.
    pub file: u32,
    /// Where its line of text begins.
    pub start: u64,
    /// Bytes of that line; 0 in formats without.
    pub line: u32,
    /// How the numbers lie.
    pub descriptor: Descriptor,
    /// Whether the line is the one AMReX writes today.
    pub usual: bool,
}

/// A level's files.
#[derive(Debug)]
pub struct Level {
    /// The beginning of the files' names, as in `Header`.
    pub path: String,
    /// Their folder.
    pub folder: PathBuf,
    /// What `Cell_H` says.
    pub header: CellHeader,
    /// For each box, where its values lie.
    pub fabs: Vec<Fab>,
}

impl Level {
    /// Opens the level whose files' names begin with `path` in the plotfile `root`, with
    /// `components` fields on `boxes` boxes.
    ///
    /// # Errors
    /// `Corrupt` where files are missing, cut short, or contradict each other; `Unsupported`; `Io`.
    pub fn open(
        root: &Path,
        path: &str,
        ndim: usize,
        (boxes, components): (usize, usize),
        files: &OpenFiles,
    ) -> Result<Self> {
        let header_path = header_path(root, path)?;
        let text = read_text(&header_path).map_err(|error| match error.kind() {
            ambar::ErrorKind::NotFound => Error::corrupt(
                "this file is missing, though Header lists its level: copy the plotfile again",
            )
            .in_file(header_path.display()),
            _ => error,
        })?;
        let header = CellHeader::parse(&text, ndim, &header_path)?;
        let wrong = |what: &str, expected: usize, found: usize| {
            Error::corrupt(format!(
                "{expected} {what} expected by Header, {found} found: copy the plotfile again"
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

    /// Looks at the line before each FAB, and at the length of its file.
    fn find_fabs(&self, ndim: usize, files: &OpenFiles) -> Result<Vec<Fab>> {
        let boxes = self.header.boxes.par_iter().zip(&self.header.fabs);
        let fabs = boxes.enumerate().map(|(index, (cells, (number, start)))| {
            let path = self.file(*number);
            let file = files.get(&path)?;
            let what = format!("box {index}");
            let at = |error: Error| error.at_node(&what).in_file(path.display());
            let fab = self.find_fab(&file, *number, *start, self.grown(cells), ndim);
            let fab = fab.map_err(at)?;
            let values = fab.start + u64::from(fab.line);
            let bytes = self.bytes(index, fab.descriptor);
            let end = bytes.and_then(|bytes| values.checked_add(bytes));
            if end.is_none_or(|end| end > file.len) {
                return Err(at(Error::corrupt(format!(
                    "{} bytes of values from byte {values} on expected, but the file has {} bytes: \
                     it was cut short; copy the plotfile again",
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
    ) -> Result<Fab> {
        if let Some(descriptor) = self.header.descriptor {
            return Ok(Fab {
                file: number,
                start,
                line: 0,
                descriptor,
                usual: true,
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
                "at byte {start}: a FAB of {:?} with {} components expected by Cell_H, {:?} with \
                 {} found: copy the plotfile again",
                cells, self.header.components, line.cells, line.components
            )));
        }
        Ok(Fab {
            file: number,
            start,
            line: line.len as u32,
            descriptor: line.descriptor,
            usual: bytes.starts_with(line.format(ndim).as_bytes()),
        })
    }

    /// No two FABs may share bytes: so the values of a level are never more than its files hold.
    fn check_overlap(&self) -> Result<()> {
        for (number, boxes) in self.by_file().into_iter().enumerate() {
            let mut end = 0;
            for index in boxes {
                let Some(fab) = self.fabs.get(index) else {
                    continue;
                };
                if fab.start < end {
                    return Err(Error::corrupt(format!(
                        "the FAB of box {index} at byte {} begins in another one, which ends at \
                         {end}: copy the plotfile again",
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

    /// For each file, the boxes whose FABs lie in it, in the order in which they lie there.
    pub fn by_file(&self) -> Vec<Vec<usize>> {
        let mut files = vec![Vec::new(); self.header.files.len()];
        let mut order: Vec<_> = (0..self.header.fabs.len()).collect();
        order.sort_by_key(|index| self.header.fabs[*index]);
        for index in order {
            files[self.header.fabs[index].0 as usize].push(index);
        }
        files
    }

    /// A box with its ghost cells.
    pub fn grown(&self, cells: &IndexBox) -> IndexBox {
        IndexBox {
            lo: std::array::from_fn(|d| cells.lo[d] - self.header.ghosts[d]),
            hi: std::array::from_fn(|d| cells.hi[d] + self.header.ghosts[d]),
        }
    }

    /// Bytes of all values of a box, ghost cells with them.
    pub fn bytes(&self, index: usize, descriptor: Descriptor) -> Option<u64> {
        let shape = self.grown(self.header.boxes.get(index)?).shape();
        let factors = [self.header.components, descriptor.size()];
        let mut all = shape.iter().chain(&factors);
        all.try_fold(1u64, |bytes, factor| bytes.checked_mul(*factor as u64))
    }
}

/// The path of a level's `Cell_H`.
pub fn header_path(root: &Path, path: &str) -> Result<PathBuf> {
    check_name(path).map_err(|expected| {
        Error::corrupt(format!(
            "{expected} expected as the path of a level's files, {path:?} found: copy the plotfile \
             again"
        ))
        .in_file(root.join("Header").display())
    })?;
    Ok(root.join(format!("{path}_H")))
}
