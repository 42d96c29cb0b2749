//! The `Cell_H` of a level: boxes, positions of their FABs, minima and maxima.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use ambar::kinds::amr::patches::IndexBox;
use ambar::{Error, Result};

use super::extrema::Extrema;
use super::fab::Descriptor;
use super::names::check_path;
use super::number_text::scientific;
use super::text::{TextParser, format_box};

/// The format whose FABs begin with a line of text, with minima and maxima of each box.
pub const VERSION: i64 = 1;
/// Formats whose FABs have no such line. The third has minima and maxima of each box, the fourth those
/// of the level.
const BARE: i64 = 2;
const BARE_TABLES: i64 = 3;
const BARE_TOTALS: i64 = 4;

/// The contents of `Cell_H`.
#[derive(Clone, Debug, PartialEq)]
pub struct CellHeader {
    /// The format, 1 to 4.
    pub version: i64,
    /// How the files were written: 0 one file per process, 1 a given number of files.
    pub how: i64,
    /// Number of components.
    pub components: usize,
    /// Ghost cells around each box.
    pub ghosts: [i64; 3],
    /// The boxes.
    pub boxes: Vec<IndexBox>,
    /// Names of the files, relative to the folder of `Cell_H`, in the order of their first FAB.
    pub files: Vec<String>,
    /// For each box, the index in `files` of the file with its FAB, and the position of the FAB.
    pub fabs: Vec<(u32, u64)>,
    /// Minima and maxima, if the format has them.
    pub extrema: Option<Extrema>,
    /// Size and byte order of all numbers, in formats whose FABs have no line of text.
    pub descriptor: Option<Descriptor>,
}

impl CellHeader {
    /// Whether the extrema are those of the level, not of each box; `None` if the format has none.
    pub fn has_totals(&self) -> Option<bool> {
        match self.version {
            VERSION | BARE_TABLES => Some(false),
            BARE_TOTALS => Some(true),
            _ => None,
        }
    }

    /// Parses the text of a `Cell_H`.
    ///
    /// # Errors
    /// `Corrupt` with the line, what was expected and what was found; `Unsupported` for other formats.
    pub fn parse(text: &str, ndim: usize, path: &Path) -> Result<Self> {
        let mut text = TextParser::new(text, path);
        let version = text.integer("the format of Cell_H (1 to 4)", VERSION..=BARE_TOTALS)?;
        let how = text.integer("how the files were written (0 or 1)", 0..=1)?;
        let components = text.count("the number of components")?;
        let mut ghosts = [0; 3];
        if text.peek() == Some('(') {
            ghosts = text.indices("the number of ghost cells", ndim, 0)?;
        } else {
            let each = text.integer("the number of ghost cells", 0..=1024)?;
            ghosts.iter_mut().take(ndim).for_each(|ghost| *ghost = each);
        }
        if ghosts.iter().any(|ghost| !(0..=1024).contains(ghost)) {
            return Err(text.error("0 to 1024 ghost cells before this position"));
        }
        let boxes = parse_boxes(&mut text, ndim)?;
        let FabPositions { files, fabs } = fab_positions(&mut text, boxes.len())?;
        let extrema = match version {
            VERSION | BARE_TABLES => Some(tables(&mut text, boxes.len(), components)?),
            BARE_TOTALS => Some(Extrema {
                min: row(&mut text, components)?,
                max: row(&mut text, components)?,
            }),
            _ => None,
        };
        let descriptor = match version {
            BARE..=BARE_TOTALS => Some(Descriptor::parse(&mut text, path)?),
            _ => None,
        };
        match text.peek() {
            Some(_) => Err(text.error("the end of the file")),
            None => Ok(Self {
                version,
                how,
                components,
                ghosts,
                boxes,
                files,
                fabs,
                extrema,
                descriptor,
            }),
        }
    }

    /// The text that AMReX writes.
    pub fn format(&self, ndim: usize) -> String {
        let mut text = format!("{}\n{}\n{}\n", self.version, self.how, self.components);
        let ghosts = &self.ghosts[..ndim.min(3)];
        // Writing to a String cannot fail.
        if ghosts.iter().all(|ghost| *ghost == ghosts[0]) {
            let _ = writeln!(text, "{}", ghosts[0]);
        } else {
            let each: Vec<_> = ghosts.iter().map(i64::to_string).collect();
            let _ = writeln!(text, "({})", each.join(","));
        }
        text += &format_boxes(&self.boxes, ndim);
        let _ = writeln!(text, "{}", self.fabs.len());
        for (file, offset) in &self.fabs {
            let name = self.files.get(*file as usize).map_or("", String::as_str);
            let _ = writeln!(text, "FabOnDisk: {name} {offset}");
        }
        text.push('\n');
        if let Some(extrema) = &self.extrema {
            for values in [&extrema.min, &extrema.max] {
                if self.version != BARE_TOTALS {
                    let columns = if self.boxes.is_empty() {
                        0
                    } else {
                        self.components
                    };
                    let _ = writeln!(text, "{},{columns}", self.boxes.len());
                }
                for row in values.chunks(self.components.max(1)) {
                    for value in row {
                        text += &scientific(*value, 17);
                        text.push(',');
                    }
                    text.push('\n');
                }
                if self.version != BARE_TOTALS {
                    text.push('\n');
                }
            }
        }
        if let Some(descriptor) = self.descriptor {
            let _ = writeln!(text, "{descriptor}");
        }
        text
    }
}

/// Parses a list of boxes: `(8 0`, then one line per box, then `)`.
///
/// # Errors
/// As `CellHeader::parse`.
pub fn parse_boxes(text: &mut TextParser<'_>, ndim: usize) -> Result<Vec<IndexBox>> {
    text.take('(', "a list of boxes")?;
    let number = text.count("the number of boxes")?;
    text.number::<u64>("a hash of the boxes")?;
    let mut boxes = Vec::new();
    for _ in 0..number {
        boxes.push(text.index_box("a box", ndim)?);
    }
    text.take(')', "the end of the list of boxes")?;
    Ok(boxes)
}

/// The list of boxes that AMReX writes.
pub fn format_boxes(boxes: &[IndexBox], ndim: usize) -> String {
    let mut text = format!("({} 0\n", boxes.len());
    for index_box in boxes {
        text += &format_box(index_box, ndim);
        text.push('\n');
    }
    text + ")\n"
}

/// The files of a level, and the position of each box's FAB.
#[derive(Default)]
struct FabPositions {
    files: Vec<String>,
    /// For each box, the index of its file, and the offset in it.
    fabs: Vec<(u32, u64)>,
}

fn fab_positions(text: &mut TextParser<'_>, boxes: usize) -> Result<FabPositions> {
    let number = boxes as i64;
    text.integer("the number of boxes again", number..=number)?;
    let mut positions = FabPositions::default();
    let mut known = HashMap::new();
    for _ in 0..boxes {
        if text.word("\"FabOnDisk:\"")? != "FabOnDisk:" {
            return Err(text.error("\"FabOnDisk:\" before this position"));
        }
        let name = text.word("the name of a FAB's file")?;
        check_path(name)
            .map_err(|expected| text.error(&format!("{expected} before this position")))?;
        let next = known.len() as u32;
        let file = *known.entry(name).or_insert_with(|| {
            positions.files.push(name.to_owned());
            next
        });
        let offset = text.integer("the offset of a FAB", 0..=i64::MAX)?;
        positions.fabs.push((file, offset as u64));
    }
    Ok(positions)
}

fn tables(text: &mut TextParser<'_>, boxes: usize, components: usize) -> Result<Extrema> {
    let mut table = || {
        let (rows, columns) = (boxes as i64, if boxes == 0 { 0 } else { components as i64 });
        text.integer("the number of boxes again", rows..=rows)?;
        text.take(',', "a table of values")?;
        text.integer("the number of components again", columns..=columns)?;
        let mut values = Vec::new();
        for _ in 0..boxes {
            values.extend(row(text, components)?);
        }
        Ok(values)
    };
    Ok::<_, Error>(Extrema {
        min: table()?,
        max: table()?,
    })
}

fn row(text: &mut TextParser<'_>, components: usize) -> Result<Vec<f64>> {
    let mut values = Vec::new();
    for _ in 0..components {
        values.push(text.number("a minimum or maximum")?);
        text.take(',', "a table of values")?;
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAT: &str = "1\n1\n2\n(1,0)\n(2 0\n((-4,0) (3,7) (0,0))\n((4,0) (7,3) (0,0))\n)\n2\n\
        FabOnDisk: Cell_D_00001 0\nFabOnDisk: Cell_D_00000 77\n\n2,2\n\
        -1.00000000000000000e+00,0.00000000000000000e+00,\n1.00000000000000000e+00,nan,\n\n2,2\n\
        2.50000000000000000e-01,inf,\n1.00000000000000000e+00,1.00000000000000000e+00,\n\n";

    #[test]
    fn parsed_text_is_formatted_unchanged() {
        let found = CellHeader::parse(FLAT, 2, Path::new("Cell_H")).unwrap();
        assert_eq!(found.ghosts, [1, 0, 0]);
        assert_eq!(found.files, ["Cell_D_00001", "Cell_D_00000"]);
        assert_eq!(found.fabs, [(0, 0), (1, 77)]);
        assert_eq!(found.format(2), FLAT);
        let bare = FLAT.replacen('1', "3", 1) + "((8, (32 8 23 0 1 9 0 127)),(4, (4 3 2 1)))\n";
        let found = CellHeader::parse(&bare, 2, Path::new("Cell_H")).unwrap();
        assert!(found.descriptor.is_some_and(|d| !d.double && d.little));
        assert_eq!(found.format(2), bare);
    }

    #[test]
    fn truncated_text_is_an_error() {
        let whole = CellHeader::parse(FLAT, 2, Path::new("Cell_H")).unwrap();
        for len in 0..FLAT.len() {
            if let Ok(found) = CellHeader::parse(&FLAT[..len], 2, Path::new("Cell_H")) {
                assert_eq!(format!("{found:?}"), format!("{whole:?}"), "cut at {len}");
            }
        }
    }
}
