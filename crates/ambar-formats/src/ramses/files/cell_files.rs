//! Hydro, gravity and radiation files: headers, and the records of their blocks.

use ambar::{DataType, Error, Result};

use super::amr::Mesh;
use super::blocks::{BlockShape, BlockTally, LevelBlocks};
use super::field_names;
use super::folder::Folder;
use super::fortran::{Cursor, FortranFile};
use crate::ramses::component::{ComponentKind, Field};

/// What the files of one component have in common.
#[derive(Clone, Debug)]
pub struct CellFiles {
    /// The component.
    pub kind: ComponentKind,
    /// Number of variables of a cell in the file.
    pub nvar: usize,
    /// Bytes of a value: 4 or 8.
    pub real_bytes: u8,
    /// Adiabatic index in the header; `None` for gravity.
    pub gamma: Option<f64>,
    /// `nvar` in the header (gravity files may hold one more variable).
    header_nvar: i64,
}

impl CellFiles {
    /// Reads the header of the first domain's file; `levels` are the blocks of that domain.
    ///
    /// # Errors
    /// `Corrupt` if it contradicts the amr file; `Io`.
    pub fn new(
        kind: ComponentKind,
        file: &mut FortranFile,
        mesh: &Mesh,
        levels: &[LevelBlocks],
    ) -> Result<Self> {
        let header = read_header(kind, file, mesh)?;
        let ndim = mesh.ndim as i64;
        let mut numbers = vec![header.nvar];
        if kind == ComponentKind::Gravity {
            numbers.extend([ndim + 1, ndim + 2, ndim]);
        }
        let mut files = Self {
            kind,
            nvar: header.nvar as usize,
            real_bytes: mesh.real_bytes,
            gamma: header.gamma,
            header_nvar: header.nvar,
        };
        // The file's length implies the size of its reals (and the number of gravity variables). If no
        // guess fits, the file is damaged or has split records, which reading it finds out. A domain
        // without octs fits both sizes, so the size in the amr file is tried first.
        for nvar in numbers {
            for real_bytes in [mesh.real_bytes, if mesh.real_bytes == 8 { 4 } else { 8 }] {
                let guess = Self {
                    nvar: nvar as usize,
                    real_bytes,
                    ..files.clone()
                };
                let bytes = guess.total_bytes(header.end, mesh.ndim, levels);
                if bytes == file.len() {
                    files = guess;
                    return Ok(files);
                }
            }
        }
        Ok(files)
    }

    fn total_bytes(&self, start: u64, ndim: usize, levels: &[LevelBlocks]) -> u64 {
        let records = (0..self.nvar << ndim).map(|_| (String::new(), u64::from(self.real_bytes)));
        let shape = BlockShape::new(true, records);
        levels.iter().fold(start, |sum, level| {
            let own = BlockTally::of([level.own]);
            [level.before, own, level.after]
                .iter()
                .fold(sum, |sum, tally| sum.saturating_add(shape.bytes(*tally)))
        })
    }

    /// The records of the blocks; `fields` has one field for each variable.
    pub fn shape(&self, ndim: usize, fields: &[Field]) -> BlockShape {
        let size = u64::from(self.real_bytes);
        let name = |cell, field: &Field| (format!("{} of cell {cell}", field.name), size);
        BlockShape::new(
            true,
            (1..=1 << ndim).flat_map(|cell| fields.iter().map(move |field| name(cell, field))),
        )
    }

    /// Reads a file's header, and returns the position of its first block.
    ///
    /// # Errors
    /// `Corrupt` if the header contradicts the amr file or that of the first domain; `Io`.
    pub fn start(&self, file: &mut FortranFile, mesh: &Mesh) -> Result<u64> {
        let header = read_header(self.kind, file, mesh)?;
        if header.nvar == self.header_nvar {
            return Ok(header.end);
        }
        let what = format!(
            "expected {} variables as in the first domain's file, found {}",
            self.header_nvar, header.nvar
        );
        Err(file.damaged("nvar", 0, what))
    }

    /// Names and types of the fields.
    ///
    /// # Errors
    /// `Corrupt` if the descriptor has another number of variables than the files.
    pub fn fields(&self, folder: &Folder, ndim: usize) -> Result<Vec<Field>> {
        let descriptor = format!("{}_file_descriptor.txt", self.kind.file_prefix());
        let dtype = if self.real_bytes == 8 {
            DataType::Float64
        } else {
            DataType::Float32
        };
        let names = match folder.text(&descriptor)? {
            _ if self.kind == ComponentKind::Gravity => field_names::gravity(self.nvar, ndim),
            Some(text) => {
                let in_file = |e: Error| e.in_file(folder.path.join(&descriptor).display());
                let entries = field_names::read_descriptor(&text).map_err(in_file)?;
                if entries.len() != self.nvar {
                    return Err(in_file(Error::corrupt(format!(
                        "expected {} variables as in the component's files, found {}: the descriptor \
                         is of another output; remove it to read the fields under default names",
                        self.nvar,
                        entries.len()
                    ))));
                }
                entries.into_iter().map(|entry| entry.name).collect()
            }
            None if self.kind == ComponentKind::Rt => field_names::rt(self.nvar, ndim),
            None => field_names::hydro(self.nvar, ndim),
        };
        Ok(names
            .into_iter()
            .map(|name| field_names::field(name, dtype.clone()))
            .collect())
    }
}

struct CellFileHeader {
    nvar: i64,
    gamma: Option<f64>,
    end: u64,
}

fn read_header(kind: ComponentKind, file: &mut FortranFile, mesh: &Mesh) -> Result<CellFileHeader> {
    let amr = "the amr file";
    let mut cursor = Cursor::new(file, 0);
    cursor.expect("ncpu", mesh.ncpu as i64, amr)?;
    let nvar = cursor.integer("nvar", 1..1 << 16)?;
    let is_gravity = kind == ComponentKind::Gravity;
    if !is_gravity {
        cursor.expect("ndim", mesh.ndim as i64, amr)?;
    }
    cursor.expect("nlevelmax", mesh.nlevelmax as i64, amr)?;
    cursor.expect("nboundary", mesh.nboundary as i64, amr)?;
    let gamma = if is_gravity {
        None
    } else {
        Some(cursor.real("gamma")?.0)
    };
    let end = cursor.at;
    Ok(CellFileHeader { nvar, gamma, end })
}
