//! Reading particles: columns of all domains, one behind the other in the files' order.

use ambar::kinds::region::Region;
use ambar::{Column, DataType, Error, Result};
use rayon::prelude::*;

use super::Output;
use super::amr::Mesh;
use super::blocks::{BlockFile, Level, Shape};
use super::cells::Buffers;
use super::folder::Folder;
use super::fortran::{Cursor, FortranFile};
use super::info;
use super::names::{self, Entry};
use super::progress::Counter;
use super::request::{ComponentKind, Field, ParticlesRequest};

/// What the particle files of an output have in common.
#[derive(Clone, Debug)]
pub struct ParticleFiles {
    /// The columns, in the file's order.
    pub fields: Vec<Field>,
    /// Bytes of a value in each column's records.
    sizes: Vec<u64>,
}

impl ParticleFiles {
    /// Finds names and types: of the descriptor, else of the header's words, else by number. The
    /// values' sizes are those of the first domain that holds particles.
    ///
    /// # Errors
    /// `Corrupt` where the descriptor does not fit the files; `Unsupported` where there is none
    /// and the columns are not those of RAMSES of 2017; `Io`.
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
            let whole = size.is_none_or(|size| size * particles == *bytes);
            let Some((dtype, size)) = value_type(entry.letter, size).filter(|_| whole) else {
                return Err(Error::corrupt(format!(
                    "column {:?} of type {:?} has {bytes} bytes for {particles} particles: \
                     descriptor and files contradict each other; copy the output again",
                    entry.name, entry.letter
                )));
            };
            files.fields.push(names::field(&entry.name, dtype));
            files.sizes.push(size);
        }
        Ok(files)
    }

    fn shape(&self) -> Shape {
        let names = self.fields.iter().map(|field| field.name.clone());
        Shape::new(false, names.zip(self.sizes.iter().copied()))
    }

    /// Places of the positions' columns.
    fn positions(&self, ndim: usize) -> Result<Vec<usize>> {
        let place = |axis: &&str| {
            let name = format!("position_{axis}");
            let place = self.fields.iter().position(|field| {
                field.name == name && matches!(field.dtype, DataType::Float32 | DataType::Float64)
            });
            place.ok_or_else(|| {
                Error::not_found(format!(
                    "no column {name:?}, which a region needs: read all"
                ))
            })
        };
        ["x", "y", "z"].iter().take(ndim).map(place).collect()
    }
}

/// The columns' names and letters.
fn entries(folder: &Folder, mesh: &Mesh, columns: usize) -> Result<Vec<Entry>> {
    const NAME: &str = "part_file_descriptor.txt";
    if let Some(text) = folder.text(NAME)? {
        let in_file = |error: Error| error.in_file(folder.path.join(NAME).display());
        let entries = names::read_descriptor(&text).map_err(in_file)?;
        if entries.len() == columns {
            return Ok(entries);
        }
        return Err(in_file(Error::corrupt(format!(
            "it describes {} columns, the particle files hold {columns}: copy the output again",
            entries.len()
        ))));
    }
    let header = folder.numbered_text("header", ".txt")?.unwrap_or_default();
    let words = info::read_particle_words(&header);
    let named = words.and_then(|words| names::particle_words(words, mesh.ndim));
    let named = named.filter(|entries| entries.len() == columns);
    named
        .or_else(|| names::particles(columns, mesh.ndim))
        .ok_or_else(|| {
            Error::unsupported(format!(
                "particle files of {columns} columns, and no {NAME} that names them"
            ))
        })
}

/// The type of a column by its descriptor's letter and the bytes of a value; without the latter,
/// those that the letter stands for. Real and integer kinds are a compiler's option.
fn value_type(letter: char, size: Option<u64>) -> Option<(DataType, u64)> {
    let declared = names::letter_type(letter)?;
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

struct Header {
    particles: u64,
    end: u64,
}

fn read_header(file: &mut FortranFile, mesh: &Mesh) -> Result<Header> {
    let len = file.len();
    let mut cursor = Cursor::new(file, 0);
    cursor.expect("ncpu", mesh.ncpu as i64, "the amr file")?;
    cursor.expect("ndim", mesh.ndim as i64, "the amr file")?;
    // Each particle takes more bytes than one: the file's length is a bound.
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
    Ok(Header { particles, end })
}

/// One domain's file: its particles, and which of them are wanted.
struct Part {
    start: u64,
    level: [Level; 1],
    /// A flag for each particle; `None` for all.
    inside: Option<Vec<bool>>,
}

impl Part {
    fn particles(&self) -> u64 {
        self.level[0].own
    }

    fn rows(&self) -> usize {
        match &self.inside {
            Some(inside) => inside.iter().filter(|inside| **inside).count(),
            None => self.particles() as usize,
        }
    }
}

struct Reader<'a> {
    output: &'a Output,
    files: &'a ParticleFiles,
    shape: Shape,
}

/// The number of particles in all files.
pub fn count(output: &Output) -> Result<usize> {
    let files = output.particle_files()?;
    let reader = Reader {
        output,
        files,
        shape: files.shape(),
    };
    let parts = reader.measure_all(None, None)?;
    Ok(parts.iter().map(Part::rows).sum())
}

/// Reads particles as `Output::read_particles` says.
pub fn read(output: &Output, request: &ParticlesRequest<'_>) -> Result<Vec<(String, Column)>> {
    let ndim = output.mesh.ndim;
    if let Some(region) = &request.region {
        region.check(ndim)?;
    }
    let files = output.particle_files()?;
    let columns = wanted(output, files, request)?;
    let reader = Reader {
        output,
        files,
        shape: files.shape(),
    };
    let ncpu = output.mesh.ncpu;
    let counter = Counter::new(request.progress, 2 * ncpu);
    let parts = reader.measure_all(request.region.as_ref(), Some(&counter))?;
    let rows = parts.iter().map(Part::rows).sum();
    let mut names: Vec<_> = columns
        .iter()
        .map(|&c| files.fields[c].name.clone())
        .collect();
    let mut dtypes: Vec<_> = columns
        .iter()
        .map(|&c| files.fields[c].dtype.clone())
        .collect();
    if request.domain {
        names.push("domain".into());
        dtypes.push(DataType::UInt32);
    }
    let mut table = Column::allocate(&dtypes, rows)?;
    let tasks = divide(&mut table, &parts);
    tasks
        .into_par_iter()
        .zip(&parts)
        .enumerate()
        .try_for_each_init(Buffers::default, |buffers, (domain, (mut places, part))| {
            if request.domain
                && let Some(place) = places.pop()
            {
                let number = domain as u32 + 1;
                place.as_chunks_mut().0.fill(number.to_ne_bytes());
            }
            reader.fill(domain as u64, part, &columns, places, buffers)?;
            counter.step()
        })?;
    Ok(names.into_iter().zip(table).collect())
}

/// Places of the columns asked for.
fn wanted(
    output: &Output,
    files: &ParticleFiles,
    request: &ParticlesRequest<'_>,
) -> Result<Vec<usize>> {
    let Some(names) = &request.fields else {
        return Ok((0..files.fields.len()).collect());
    };
    let mut places = Vec::new();
    for name in names {
        let by_name = files.fields.iter().position(|field| field.name == *name);
        let by_alias = || {
            files
                .fields
                .iter()
                .position(|f| f.alias.as_ref() == Some(name))
        };
        let component = output.component(ComponentKind::Particles);
        let place = by_name.or_else(by_alias);
        let place = place.ok_or_else(|| output.no_field(name, &component))?;
        if places.contains(&place) {
            return Err(Error::invalid(format!(
                "the column {name:?} is asked for twice"
            )));
        }
        places.push(place);
    }
    Ok(places)
}

/// Each domain's part of every column.
fn divide<'a>(table: &'a mut [Column], parts: &[Part]) -> Vec<Vec<&'a mut [u8]>> {
    let mut tasks: Vec<Vec<&mut [u8]>> = parts.iter().map(|_| Vec::new()).collect();
    for column in table {
        let size = column.dtype().size().unwrap_or(1);
        let mut rest = column.bytes_mut();
        for (task, part) in tasks.iter_mut().zip(parts) {
            let (own, after) = rest.split_at_mut(part.rows() * size);
            task.push(own);
            rest = after;
        }
    }
    tasks
}

impl Reader<'_> {
    fn open(&self, domain: u64, buffers: &mut Buffers) -> Result<FortranFile> {
        let path = self.output.folder.domain("part", domain)?;
        FortranFile::open(&path, std::mem::take(&mut buffers.window))
    }

    /// As `measure`, of all domains.
    fn measure_all(
        &self,
        region: Option<&Region>,
        counter: Option<&Counter<'_>>,
    ) -> Result<Vec<Part>> {
        let domains = (0..self.output.mesh.ncpu).into_par_iter();
        let parts = domains.map_init(Buffers::default, |buffers, domain| {
            let part = self.measure(domain, region, buffers)?;
            counter.map_or(Ok(()), Counter::step)?;
            Ok(part)
        });
        let parts: Vec<Part> = parts.collect::<Result<_>>()?;
        self.check_total(&parts)?;
        Ok(parts)
    }

    /// Counts a domain's particles, and finds those in the region.
    fn measure(&self, domain: u64, region: Option<&Region>, buffers: &mut Buffers) -> Result<Part> {
        let mesh = &self.output.mesh;
        let mut file = self.open(domain, buffers)?;
        let header = read_header(&mut file, mesh)?;
        let own = header.particles;
        let level = [Level {
            own,
            ..Level::default()
        }];
        let mut part = Part {
            start: header.end,
            level,
            inside: None,
        };
        let Some(region) = region.filter(|_| own > 0) else {
            buffers.window = file.into_buffer();
            return Ok(part);
        };
        let wanted = self.files.positions(mesh.ndim)?;
        let numbers = [own];
        let mut blocks =
            BlockFile::new(file, &self.shape, part.start, &part.level, Some(&numbers))?;
        let mut inside = Vec::new();
        blocks.read(0, &wanted, &mut buffers.block, &mut |tile| {
            inside.extend((0..tile.octs.len()).map(|i| {
                let mut at = [0.0; 3];
                for (d, x) in at.iter_mut().enumerate().take(mesh.ndim) {
                    *x = real(tile.record(d), i, self.files.sizes[wanted[d]]);
                }
                region.contains(&at)
            }));
            Ok(())
        })?;
        buffers.window = blocks.file.into_buffer();
        part.inside = Some(inside);
        Ok(part)
    }

    /// The files must hold as many particles as the output's header counts.
    fn check_total(&self, parts: &[Part]) -> Result<()> {
        let found: u64 = parts.iter().map(Part::particles).sum();
        let families = &self.output.info.families;
        let counted: u64 = families.iter().map(|(_, count)| *count).sum();
        if families.is_empty() || found == counted {
            return Ok(());
        }
        Err(Error::corrupt(format!(
            "the particle files hold {found} particles, header_{}.txt counts {counted}: files of \
             different outputs are mixed, or one is damaged; copy the output again",
            self.output.folder.number
        ))
        .in_file(self.output.folder.path.display()))
    }

    /// Reads a domain's particles into its parts of the columns.
    fn fill(
        &self,
        domain: u64,
        part: &Part,
        columns: &[usize],
        mut places: Vec<&mut [u8]>,
        buffers: &mut Buffers,
    ) -> Result<()> {
        if part.rows() == 0 {
            return Ok(());
        }
        let file = self.open(domain, buffers)?;
        let numbers = [part.particles()];
        let mut blocks =
            BlockFile::new(file, &self.shape, part.start, &part.level, Some(&numbers))?;
        let mut records = columns.to_vec();
        records.sort_unstable();
        let mut done = 0;
        blocks.read(0, &records, &mut buffers.block, &mut |tile| {
            let inside = part
                .inside
                .as_ref()
                .map(|inside| &inside[tile.octs.clone()]);
            let rows = inside.map_or(tile.octs.len(), |inside| {
                inside.iter().filter(|inside| **inside).count()
            });
            for (place, &column) in places.iter_mut().zip(columns) {
                let record = records.binary_search(&column).unwrap_or(0);
                self.copy(column, tile.record(record), inside, done, rows, place);
            }
            done += rows;
            Ok(())
        })?;
        buffers.window = blocks.file.into_buffer();
        Ok(())
    }

    /// Copies the wanted values of a record to `rows` rows of `place` from `first` on.
    fn copy(
        &self,
        column: usize,
        values: &[u8],
        inside: Option<&[bool]>,
        first: usize,
        rows: usize,
        place: &mut [u8],
    ) {
        let size = self.files.sizes[column] as usize;
        let logical = self.files.fields[column].dtype == DataType::Bool;
        let width = if logical { 1 } else { size };
        let out = &mut place[first * width..(first + rows) * width];
        let wanted = |i: usize| inside.is_none_or(|inside| inside[i]);
        let each = values
            .chunks_exact(size)
            .enumerate()
            .filter(|(i, _)| wanted(*i));
        if logical {
            for (out, (_, value)) in out.iter_mut().zip(each) {
                *out = u8::from(value.iter().any(|byte| *byte != 0));
            }
        } else if inside.is_none() {
            out.copy_from_slice(values);
        } else {
            for (out, (_, value)) in out.chunks_exact_mut(size).zip(each) {
                out.copy_from_slice(value);
            }
        }
    }
}

/// The real of `size` bytes at place `i`.
fn real(bytes: &[u8], i: usize, size: u64) -> f64 {
    match size {
        8 => f64::from_le_bytes(bytes.as_chunks().0[i]),
        _ => f64::from(f32::from_le_bytes(bytes.as_chunks().0[i])),
    }
}
