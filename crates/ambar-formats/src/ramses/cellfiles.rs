//! Files of values on cells: hydro, gravity, radiation. Their headers and the shape of their blocks.

use ambar::{DataType, Error, Result};

use super::amr::Mesh;
use super::blocks::{Level, Shape, Tally};
use super::folder::Folder;
use super::fortran::{Cursor, FortranFile};
use super::names;
use super::request::{ComponentKind, Field};

/// What the files of one such component have in common.
#[derive(Clone, Debug)]
pub struct CellFiles {
    /// Which component.
    pub kind: ComponentKind,
    /// Variables of a cell in the file.
    pub nvar: usize,
    /// Bytes of a value: 4 or 8.
    pub real_bytes: u8,
    /// Adiabatic index in the header; gravity has none.
    pub gamma: Option<f64>,
    /// `nvar` in the header (gravity's files may hold one more).
    header_nvar: i64,
}

/// How the component's file names begin.
pub fn file_start(kind: ComponentKind) -> &'static str {
    match kind {
        ComponentKind::Gravity => "grav",
        ComponentKind::Particles => "part",
        ComponentKind::Clumps => "clump",
        ComponentKind::Sinks => "sink",
        other => other.name(),
    }
}

impl CellFiles {
    /// Reads the header of the first domain's file; `levels` are that domain's.
    ///
    /// # Errors
    /// `Corrupt` where it contradicts the amr file; `Io`.
    pub fn new(
        kind: ComponentKind,
        file: &mut FortranFile,
        mesh: &Mesh,
        levels: &[Level],
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
        // The file's length tells the size of its reals (and gravity's variables). Where nothing
        // fits, it is damaged or its records are split: reading it will tell. A domain without octs
        // fits either size, so the amr file's own comes first.
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

    fn total_bytes(&self, start: u64, ndim: usize, levels: &[Level]) -> u64 {
        let records = (0..self.nvar << ndim).map(|_| (String::new(), u64::from(self.real_bytes)));
        let shape = Shape::new(true, records);
        levels.iter().fold(start, |sum, level| {
            let own = Tally::of([level.own]);
            [level.before, own, level.after]
                .iter()
                .fold(sum, |sum, tally| sum.saturating_add(shape.bytes(*tally)))
        })
    }

    /// What the blocks are made of; `names` has a name for each variable.
    pub fn shape(&self, ndim: usize, names: &[Field]) -> Shape {
        let size = u64::from(self.real_bytes);
        let name = |cell, field: &Field| (format!("{} of cell {cell}", field.name), size);
        Shape::new(
            true,
            (1..=1 << ndim).flat_map(|cell| names.iter().map(move |field| name(cell, field))),
        )
    }

    /// Reads a file's header, which must agree with the first one's; where its blocks begin.
    ///
    /// # Errors
    /// As `new`.
    pub fn start(&self, file: &mut FortranFile, mesh: &Mesh) -> Result<u64> {
        let header = read_header(self.kind, file, mesh)?;
        if header.nvar == self.header_nvar {
            return Ok(header.end);
        }
        let what = format!(
            "{} variables expected, as in the first domain's file, {} found",
            self.header_nvar, header.nvar
        );
        Err(file.damaged("nvar", 0, what))
    }

    /// The fields' names and types.
    ///
    /// # Errors
    /// `Corrupt` where the descriptor does not fit the files.
    pub fn fields(&self, folder: &Folder, ndim: usize) -> Result<Vec<Field>> {
        let descriptor = format!("{}_file_descriptor.txt", file_start(self.kind));
        let dtype = if self.real_bytes == 8 {
            DataType::Float64
        } else {
            DataType::Float32
        };
        let names = match folder.text(&descriptor)? {
            _ if self.kind == ComponentKind::Gravity => names::gravity(self.nvar, ndim),
            Some(text) => {
                let in_file = |e: Error| e.in_file(folder.path.join(&descriptor).display());
                let entries = names::read_descriptor(&text).map_err(in_file)?;
                if entries.len() != self.nvar {
                    return Err(in_file(Error::corrupt(format!(
                        "it describes {} variables, the files hold {}: they are not of one output; \
                         remove the descriptor to read the fields under names by number",
                        entries.len(),
                        self.nvar
                    ))));
                }
                entries.into_iter().map(|entry| entry.name).collect()
            }
            None if self.kind == ComponentKind::Rt => names::rt(self.nvar, ndim),
            None => names::hydro(self.nvar, ndim),
        };
        Ok(names
            .into_iter()
            .map(|name| names::field(name, dtype.clone()))
            .collect())
    }
}

struct Header {
    nvar: i64,
    gamma: Option<f64>,
    end: u64,
}

fn read_header(kind: ComponentKind, file: &mut FortranFile, mesh: &Mesh) -> Result<Header> {
    let amr = "the amr file";
    let mut cursor = Cursor::new(file, 0);
    cursor.expect("ncpu", mesh.ncpu as i64, amr)?;
    let nvar = cursor.integer("nvar", 1..1 << 16)?;
    let gravity = kind == ComponentKind::Gravity;
    if !gravity {
        cursor.expect("ndim", mesh.ndim as i64, amr)?;
    }
    cursor.expect("nlevelmax", mesh.nlevelmax as i64, amr)?;
    cursor.expect("nboundary", mesh.nboundary as i64, amr)?;
    let gamma = if gravity {
        None
    } else {
        Some(cursor.real("gamma")?.0)
    };
    let end = cursor.at;
    Ok(Header { nvar, gamma, end })
}
