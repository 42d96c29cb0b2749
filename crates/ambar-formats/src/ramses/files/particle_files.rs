//! Particle files: names and types of the columns, and headers.

use ambar::{DataType, Error, Result};

use super::amr::Mesh;
use super::blocks::BlockShape;
use super::field_names::{self, DescriptorEntry};
use super::folder::Folder;
use super::fortran::{Cursor, FortranFile};
use super::info;
use crate::ramses::component::Field;

/// What the particle files of an output have in common.
#[derive(Clone, Debug)]
pub struct ParticleFiles {
    /// The columns, in file order.
    pub fields: Vec<Field>,
    /// Bytes of a value in each column's records.
    pub sizes: Vec<u64>,
}

impl ParticleFiles {
    /// Finds names and types: from the descriptor, else from the words in the header, else from the
    /// number of columns. The sizes of values are those of the first domain with particles.
    ///
    /// # Errors
    /// `Corrupt` if the descriptor does not match the files; `Unsupported` if the output has no
    /// descriptor and the columns are not those of RAMSES of 2017; `Io`.
    pub fn new(folder: &Folder, mesh: &Mesh) -> Result<Self> {
        let mut records = Vec::new();
        let mut particles = 0;
        for domain in 0..mesh.ncpu {
            let path = folder.domain("part", domain)?;
            let mut file = FortranFile::open(&path, Vec::new())?;
            let header = read_header(&mut file, mesh)?;
            if header.particles == 0 && domain + 1 < mesh.ncpu {
                continue;
            }
            particles = header.particles;
            let mut cursor = Cursor::new(&mut file, header.end);
            while !cursor.at_end() {
                let name = format!("column {}", records.len() + 1);
                records.push(cursor.skip(&name)?.len);
            }
            break;
        }
        let entries = entries(folder, mesh, records.len())?;
        let mut files = Self {
            fields: Vec::new(),
            sizes: Vec::new(),
        };
        for (entry, bytes) in entries.iter().zip(&records) {
            let size = bytes.checked_div(particles);
            let is_whole = size.is_none_or(|size| size * particles == *bytes);
            let Some((dtype, size)) = value_type(entry.letter, size).filter(|_| is_whole) else {
                return Err(Error::corrupt(format!(
                    "column {:?}: expected {particles} values of the type {:?}, found {bytes} \
                     bytes: the descriptor contradicts the files; copy the output again",
                    entry.name, entry.letter
                )));
            };
            files.fields.push(field_names::field(&entry.name, dtype));
            files.sizes.push(size);
        }
        Ok(files)
    }

    /// The records of a file, as one block.
    pub fn shape(&self) -> BlockShape {
        let names = self.fields.iter().map(|field| field.name.clone());
        BlockShape::new(false, names.zip(self.sizes.iter().copied()))
    }

    /// Indices of the columns with positions.
    ///
    /// # Errors
    /// `NotFound` if a column does not exist or is not of reals.
    pub fn positions(&self, ndim: usize) -> Result<Vec<usize>> {
        let index = |axis: &&str| {
            let name = format!("position_{axis}");
            let index = self.fields.iter().position(|field| {
                field.name == name && matches!(field.dtype, DataType::Float32 | DataType::Float64)
            });
            index.ok_or_else(|| {
                Error::not_found(format!(
                    "expected a column {name:?} of reals, found none: particles without positions \
                     cannot be selected by region or converted"
                ))
            })
        };
        ["x", "y", "z"].iter().take(ndim).map(index).collect()
    }
}

/// Names and type letters of the columns.
fn entries(folder: &Folder, mesh: &Mesh, columns: usize) -> Result<Vec<DescriptorEntry>> {
    const NAME: &str = "part_file_descriptor.txt";
    if let Some(text) = folder.text(NAME)? {
        let in_file = |error: Error| error.in_file(folder.path.join(NAME).display());
        let entries = field_names::read_descriptor(&text).map_err(in_file)?;
        if entries.len() == columns {
            return Ok(entries);
        }
        return Err(in_file(Error::corrupt(format!(
            "expected {columns} columns as in the particle files, found {}: copy the output again",
            entries.len()
        ))));
    }
    let header = folder.numbered_text("header", ".txt")?.unwrap_or_default();
    let words = info::read_particle_words(&header);
    let named = words.and_then(|words| field_names::particle_words(words, mesh.ndim));
    let named = named.filter(|entries| entries.len() == columns);
    named
        .or_else(|| field_names::particles(columns, mesh.ndim))
        .ok_or_else(|| {
            Error::unsupported(format!(
                "expected {NAME} for particle files of {columns} columns, which does not exist; copy \
                 it from the run"
            ))
        })
}

/// Type and size of a column's values, from the descriptor's letter and the bytes of a value. Compiler
/// options can change the size that the letter implies. `None` for a size that does not fit the type.
fn value_type(letter: char, size: Option<u64>) -> Option<(DataType, u64)> {
    let declared = field_names::letter_type(letter)?;
    let size = size.or_else(|| declared.size().map(|size| size as u64))?;
    let dtype = match (&declared, size) {
        (DataType::Float32 | DataType::Float64, 8) => DataType::Float64,
        (DataType::Float32 | DataType::Float64, 4) => DataType::Float32,
        (DataType::Bool, 1 | 2 | 4 | 8) => DataType::Bool,
        (DataType::Float32 | DataType::Float64 | DataType::Bool, _) => return None,
        (_, 1) => DataType::Int8,
        (_, 2) => DataType::Int16,
        (_, 4) => DataType::Int32,
        (_, 8) => DataType::Int64,
        _ => return None,
    };
    Some((dtype, size))
}

/// The header of a particle file.
pub struct ParticleFileHeader {
    /// Number of particles.
    pub particles: u64,
    /// Position of the first column.
    pub end: u64,
}

/// Reads the header of a particle file.
///
/// # Errors
/// `Corrupt` if it is damaged or contradicts the amr file; `Io`.
pub fn read_header(file: &mut FortranFile, mesh: &Mesh) -> Result<ParticleFileHeader> {
    let len = file.len();
    let mut cursor = Cursor::new(file, 0);
    cursor.expect("ncpu", mesh.ncpu as i64, "the amr file")?;
    cursor.expect("ndim", mesh.ndim as i64, "the amr file")?;
    // A particle takes more than one byte, so the file's length bounds their number.
    let particles = cursor.integer("npart", 0..len.min(i64::MAX as u64) as i64)? as u64;
    for name in [
        "localseed, tracer_seed",
        "nstar_tot",
        "mstar_tot",
        "mstar_lost",
        "nsink",
    ] {
        cursor.skip(name)?;
    }
    let end = cursor.at;
    Ok(ParticleFileHeader { particles, end })
}
