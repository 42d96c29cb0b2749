//! Reading particles: columns of all domains, concatenated in file order.

use std::ops::Range;

use ambar::kinds::region::Region;
use ambar::{Column, DataType, Error, Result};
use rayon::prelude::*;

use super::buffers::ReadBuffers;
use super::request::ParticlesRequest;
use crate::progress::ProgressCounter;
use crate::ramses::component::ComponentKind;
use crate::ramses::files::blocks::{BlockFile, BlockShape, LevelBlocks};
use crate::ramses::files::fortran::FortranFile;
use crate::ramses::files::particle_files::{ParticleFiles, read_header};
use crate::ramses::output::Output;

/// The particles of one domain, and which of them are wanted.
pub struct DomainParticles {
    /// Position of the first column in the file.
    start: u64,
    /// The file as one block.
    level: [LevelBlocks; 1],
    /// A flag for each particle: whether it is wanted; `None` if all are.
    wanted: Option<Vec<bool>>,
}

impl DomainParticles {
    fn particles(&self) -> u64 {
        self.level[0].own
    }

    /// Number of wanted particles.
    pub fn rows(&self) -> usize {
        match &self.wanted {
            Some(wanted) => wanted.iter().filter(|is_wanted| **is_wanted).count(),
            None => self.particles() as usize,
        }
    }
}

/// Called with some particles of a domain, the place of a column, and its bytes in the file.
type RecordVisitor<'v> = dyn FnMut(Range<usize>, usize, &[u8]) -> Result<()> + 'v;

/// Reads the particle files of an output.
pub struct ParticleReader<'a> {
    output: &'a Output,
    /// Names, types and sizes of the columns.
    pub files: &'a ParticleFiles,
    shape: BlockShape,
}

/// The number of particles in all files.
///
/// # Errors
/// As `Output::read_particles`.
pub fn count(output: &Output) -> Result<usize> {
    let files = output.particle_files()?;
    let reader = ParticleReader::new(output, files);
    let domains = reader.select_all(None, None)?;
    Ok(domains.iter().map(DomainParticles::rows).sum())
}

impl Output {
    /// Reads particles, domain by domain in file order, on the threads of the current rayon pool.
    ///
    /// # Errors
    /// As `read_cells`.
    pub fn read_particles(&self, request: &ParticlesRequest<'_>) -> Result<Vec<(String, Column)>> {
        if let Some(region) = &request.region {
            region.check(self.mesh.ndim)?;
        }
        let files = self.particle_files()?;
        let columns = requested_columns(self, files, request)?;
        let reader = ParticleReader::new(self, files);
        let counter = ProgressCounter::new(request.progress, 2 * self.mesh.ncpu);
        let domains = reader.select_all(request.region.as_ref(), Some(&counter))?;
        let rows = domains.iter().map(DomainParticles::rows).sum();
        let fields = || columns.iter().map(|&column| &files.fields[column]);
        let mut names: Vec<_> = fields().map(|field| field.name.clone()).collect();
        let mut dtypes: Vec<_> = fields().map(|field| field.dtype.clone()).collect();
        if request.domain {
            names.push("domain".into());
            dtypes.push(DataType::UInt32);
        }
        let mut table = Column::allocate(&dtypes, rows)?;
        let slices = split_columns(&mut table, &domains);
        slices
            .into_par_iter()
            .zip(&domains)
            .enumerate()
            .try_for_each_init(
                ReadBuffers::default,
                |buffers, (number, (mut slices, domain))| {
                    if request.domain
                        && let Some(slice) = slices.pop()
                    {
                        let number = number as u32 + 1;
                        slice.as_chunks_mut().0.fill(number.to_ne_bytes());
                    }
                    reader.read(number as u64, domain, &columns, slices, buffers)?;
                    counter.add(1)
                },
            )?;
        Ok(names.into_iter().zip(table).collect())
    }
}

/// Indices of the columns requested.
///
/// # Errors
/// `NotFound` for a column that does not exist; `Invalid` for one requested twice.
pub fn requested_columns(
    output: &Output,
    files: &ParticleFiles,
    request: &ParticlesRequest<'_>,
) -> Result<Vec<usize>> {
    let Some(names) = &request.fields else {
        return Ok((0..files.fields.len()).collect());
    };
    let mut columns = Vec::new();
    for name in names {
        let by_name = files.fields.iter().position(|field| field.name == *name);
        let by_alias = || {
            files
                .fields
                .iter()
                .position(|f| f.alias.as_ref() == Some(name))
        };
        let component = output.component(ComponentKind::Particles);
        let components: Vec<_> = component.into_iter().collect();
        let column = by_name.or_else(by_alias);
        let column = column.ok_or_else(|| output.unknown_field(name, &components))?;
        if columns.contains(&column) {
            return Err(Error::invalid(format!(
                "expected distinct columns, found {name:?} twice; request it once"
            )));
        }
        columns.push(column);
    }
    Ok(columns)
}

/// Splits every column by domains: for each domain, its rows of every column.
fn split_columns<'a>(
    table: &'a mut [Column],
    domains: &[DomainParticles],
) -> Vec<Vec<&'a mut [u8]>> {
    let mut slices: Vec<Vec<&mut [u8]>> = domains.iter().map(|_| Vec::new()).collect();
    for column in table {
        let size = column.dtype().size().unwrap_or(1);
        let mut rest = column.bytes_mut();
        for (slices, domain) in slices.iter_mut().zip(domains) {
            let (own, after) = rest.split_at_mut(domain.rows() * size);
            slices.push(own);
            rest = after;
        }
    }
    slices
}

impl<'a> ParticleReader<'a> {
    /// A reader of the particle files of `output`.
    pub fn new(output: &'a Output, files: &'a ParticleFiles) -> Self {
        Self {
            output,
            files,
            shape: files.shape(),
        }
    }

    fn open(&self, domain: u64, buffers: &mut ReadBuffers) -> Result<FortranFile> {
        let path = self.output.folder.domain("part", domain)?;
        FortranFile::open(&path, std::mem::take(&mut buffers.window))
    }

    /// Counts the particles of all domains, and selects those in the region.
    ///
    /// # Errors
    /// As `Output::read_particles`.
    pub fn select_all(
        &self,
        region: Option<&Region>,
        counter: Option<&ProgressCounter<'_>>,
    ) -> Result<Vec<DomainParticles>> {
        let domains = (0..self.output.mesh.ncpu).into_par_iter();
        let parts = domains.map_init(ReadBuffers::default, |buffers, domain| {
            let part = self.select(domain, region, buffers)?;
            counter.map_or(Ok(()), |counter| counter.add(1))?;
            Ok(part)
        });
        let parts: Vec<DomainParticles> = parts.collect::<Result<_>>()?;
        self.check_total(&parts)?;
        Ok(parts)
    }

    /// Counts a domain's particles, and selects those in the region.
    fn select(
        &self,
        domain: u64,
        region: Option<&Region>,
        buffers: &mut ReadBuffers,
    ) -> Result<DomainParticles> {
        let mesh = &self.output.mesh;
        let mut file = self.open(domain, buffers)?;
        let header = read_header(&mut file, mesh)?;
        let own = header.particles;
        let level = [LevelBlocks {
            own,
            ..LevelBlocks::default()
        }];
        let mut part = DomainParticles {
            start: header.end,
            level,
            wanted: None,
        };
        let Some(region) = region.filter(|_| own > 0) else {
            buffers.window = file.into_buffer();
            return Ok(part);
        };
        buffers.window = file.into_buffer();
        let mut wanted = Vec::new();
        self.read_positions(domain, &part, buffers, &mut |_, at| {
            wanted.push(region.contains(at));
        })?;
        part.wanted = Some(wanted);
        Ok(part)
    }

    /// Calls `each` with the index and the position of every particle of a domain.
    ///
    /// # Errors
    /// As `Output::read_particles`.
    pub fn read_positions(
        &self,
        domain: u64,
        part: &DomainParticles,
        buffers: &mut ReadBuffers,
        each: &mut dyn FnMut(usize, &[f64; 3]),
    ) -> Result<()> {
        let positions = self.files.positions(self.output.mesh.ndim)?;
        if part.particles() == 0 {
            return Ok(());
        }
        let file = self.open(domain, buffers)?;
        let numbers = [part.particles()];
        let mut blocks =
            BlockFile::new(file, &self.shape, part.start, &part.level, Some(&numbers))?;
        blocks.read(0, &positions, &mut buffers.block, &mut |tile| {
            for (i, particle) in tile.octs.clone().enumerate() {
                let mut at = [0.0; 3];
                for (d, (x, column)) in at.iter_mut().zip(&positions).enumerate() {
                    *x = real(tile.record(d), i, self.files.sizes[*column]);
                }
                each(particle, &at);
            }
            Ok(())
        })?;
        buffers.window = blocks.file.into_buffer();
        Ok(())
    }

    /// Checks that the files hold as many particles as the output's header counts.
    fn check_total(&self, parts: &[DomainParticles]) -> Result<()> {
        let found: u64 = parts.iter().map(DomainParticles::particles).sum();
        let families = &self.output.info.families;
        let counted: u64 = families.iter().map(|(_, count)| *count).sum();
        if families.is_empty() || found == counted {
            return Ok(());
        }
        Err(Error::corrupt(format!(
            "expected {counted} particles according to header_{}.txt, found {found} in the particle \
             files: files of different outputs are mixed, or one is damaged; copy the output again",
            self.output.folder.number
        ))
        .in_file(self.output.folder.path.display()))
    }

    /// Reads the wanted particles of a domain into its rows of the columns.
    fn read(
        &self,
        domain: u64,
        part: &DomainParticles,
        columns: &[usize],
        mut slices: Vec<&mut [u8]>,
        buffers: &mut ReadBuffers,
    ) -> Result<()> {
        let mut rows = 0..0;
        self.read_records(domain, part, columns, buffers, &mut |range, at, bytes| {
            let particles = range.len();
            let wanted = part.wanted.as_ref().map(|wanted| &wanted[range]);
            if at == 0 {
                let count = wanted.map_or(particles, |wanted| {
                    wanted.iter().filter(|is_wanted| **is_wanted).count()
                });
                rows = rows.end..rows.end + count;
            }
            self.copy(columns[at], bytes, wanted, rows.clone(), slices[at]);
            Ok(())
        })
    }

    /// Calls `each` with some particles of a domain, the place of one of `columns`, and its bytes in the file.
    ///
    /// # Errors
    /// As `Output::read_particles`; errors of `each`.
    pub fn read_records(
        &self,
        domain: u64,
        part: &DomainParticles,
        columns: &[usize],
        buffers: &mut ReadBuffers,
        each: &mut RecordVisitor<'_>,
    ) -> Result<()> {
        if part.rows() == 0 || columns.is_empty() {
            return Ok(());
        }
        let file = self.open(domain, buffers)?;
        let numbers = [part.particles()];
        let mut blocks =
            BlockFile::new(file, &self.shape, part.start, &part.level, Some(&numbers))?;
        let mut records = columns.to_vec();
        records.sort_unstable();
        blocks.read(0, &records, &mut buffers.block, &mut |tile| {
            for (at, column) in columns.iter().enumerate() {
                let record = records.binary_search(column).unwrap_or(0);
                each(tile.octs.clone(), at, tile.record(record))?;
            }
            Ok(())
        })?;
        buffers.window = blocks.file.into_buffer();
        Ok(())
    }

    /// True if a column's values are Fortran logicals.
    pub fn is_logical(&self, column: usize) -> bool {
        self.files.fields[column].dtype == DataType::Bool
    }

    /// Copies the wanted values of a record to `rows` of `column_bytes`.
    fn copy(
        &self,
        column: usize,
        values: &[u8],
        wanted: Option<&[bool]>,
        rows: Range<usize>,
        column_bytes: &mut [u8],
    ) {
        let size = self.files.sizes[column] as usize;
        let is_logical = self.is_logical(column);
        let width = if is_logical { 1 } else { size };
        let out = &mut column_bytes[rows.start * width..rows.end * width];
        let is_wanted = |i: usize| wanted.is_none_or(|wanted| wanted[i]);
        let each = values
            .chunks_exact(size)
            .enumerate()
            .filter(|(i, _)| is_wanted(*i));
        if is_logical {
            for (out, (_, value)) in out.iter_mut().zip(each) {
                *out = u8::from(value.iter().any(|byte| *byte != 0));
            }
        } else if wanted.is_none() {
            out.copy_from_slice(values);
        } else {
            for (out, (_, value)) in out.chunks_exact_mut(size).zip(each) {
                out.copy_from_slice(value);
            }
        }
    }
}

/// The real of `size` bytes at index `i`.
fn real(bytes: &[u8], i: usize, size: u64) -> f64 {
    match size {
        8 => f64::from_le_bytes(bytes.as_chunks().0[i]),
        _ => f64::from(f32::from_le_bytes(bytes.as_chunks().0[i])),
    }
}
