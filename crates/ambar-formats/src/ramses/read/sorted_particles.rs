//! Particles along the Morton curve, of which any rows can be read: in memory are their ranks alone.

use std::ops::Range;

use ambar::kinds::morton;
use ambar::kinds::streamed::StreamedColumns;
use ambar::{Column, DataType, Error, Result};
use rayon::prelude::*;

use super::buffers::ReadBuffers;
use super::gather::SharedColumn;
use super::leaf_tree::{RowParts, RowRange};
use super::particles::{DomainParticles, ParticleReader, requested_columns};
use super::request::ParticlesRequest;
use crate::progress::ProgressCounter;
use crate::ramses::output::Output;

/// A particle's Morton key and its number in the files, from which ranks are computed.
type KeyedParticle = (u64, u32);

/// The particles of an output, sorted along the Morton curve.
pub struct SortedParticles<'a> {
    reader: ParticleReader<'a>,
    /// For each requested column, its index in the files.
    columns: Vec<usize>,
    has_domain: bool,
    domains: Vec<RankedDomain>,
    /// For each particle in file order, its row.
    ranks: Vec<u32>,
}

/// The particles of a domain.
struct RankedDomain {
    particles: DomainParticles,
    /// The number of its first particle.
    first: usize,
    /// The parts of all rows in which it has particles.
    parts: RowParts,
}

impl RankedDomain {
    fn numbers(&self) -> Range<usize> {
        self.first..self.first + self.particles.rows()
    }
}

impl<'a> SortedParticles<'a> {
    /// Reads the positions of the requested particles, which must be all of the output.
    ///
    /// # Errors
    /// As `Output::read_particles`; `Limit` for 2^32 or more particles.
    pub fn new(output: &'a Output, request: &ParticlesRequest<'_>) -> Result<Self> {
        let files = output.particle_files()?;
        let reader = ParticleReader::new(output, files);
        let columns = requested_columns(output, files, request)?;
        let (ndim, boxlen) = (output.info().ndim, output.info().boxlen);
        let counter = ProgressCounter::new(request.progress, 2 * output.mesh.ncpu);
        let particles = reader.select_all(None, Some(&counter))?;
        let mut count = 0;
        let mut domains: Vec<RankedDomain> = Vec::with_capacity(particles.len());
        for particles in particles {
            let first = count;
            count += particles.rows();
            domains.push(RankedDomain {
                particles,
                first,
                parts: RowParts::default(),
            });
        }
        if u32::try_from(count).is_err() {
            return Err(Error::limit(format!(
                "expected at most 2^32 - 1 particles to sort, found {count}"
            )));
        }
        let mut keys: Vec<KeyedParticle> = vec![(0, 0); count];
        let mut parts = Vec::with_capacity(domains.len());
        let mut rest = &mut keys[..];
        for domain in &domains {
            let (own, after) = rest.split_at_mut(domain.particles.rows());
            parts.push(own);
            rest = after;
        }
        let with_keys = parts.into_par_iter().zip(&domains).enumerate();
        with_keys.try_for_each_init(
            ReadBuffers::default,
            |buffers, (number, (keys, domain))| {
                let number = number as u64;
                reader.read_positions(
                    number,
                    &domain.particles,
                    buffers,
                    &mut |particle, at| {
                        let key = morton::key_of_position(ndim, at, [0.0; 3], boxlen);
                        keys[particle] = (key, (domain.first + particle) as u32);
                    },
                )?;
                counter.add(1)
            },
        )?;
        // The number is part of the pair: the order of equal keys is that of the files.
        keys.par_sort_unstable();
        let mut ranks = vec![0; count];
        for (rank, (_, number)) in keys.iter().enumerate() {
            ranks[*number as usize] = rank as u32;
        }
        drop(keys);
        domains.par_iter_mut().for_each(|domain| {
            for rank in &ranks[domain.numbers()] {
                domain.parts.add(u64::from(*rank), 1, count as u64);
            }
        });
        Ok(Self {
            reader,
            columns,
            has_domain: request.domain,
            domains,
            ranks,
        })
    }

    /// The columns, which are read while they are written.
    pub fn columns(&self) -> StreamedColumns<'_> {
        let fields = &self.reader.files.fields;
        let fields = self.columns.iter().map(|column| &fields[*column]);
        let mut columns: Vec<_> = fields
            .map(|field| (field.name.clone(), field.dtype.clone()))
            .collect();
        if self.has_domain {
            columns.push(("domain".into(), DataType::UInt32));
        }
        StreamedColumns {
            columns,
            rows: self.ranks.len(),
            read: Box::new(|columns, rows, out| self.read(columns, rows, out)),
        }
    }

    /// Reads rows of `columns` into `out`.
    fn read(&self, columns: &[usize], rows: Range<usize>, out: &mut [Column]) -> Result<()> {
        let rows = RowRange::new(rows, self.ranks.len());
        let targets: Vec<SharedColumn> = out.iter_mut().map(SharedColumn::new).collect();
        let touching = self.domains.par_iter().enumerate();
        let touching = touching.filter(|(_, domain)| domain.parts.touch(&rows));
        touching.try_for_each_init(ReadBuffers::default, |buffers, (number, domain)| {
            let in_files = self.columns.len();
            let place = |place: &usize| columns[*place] < in_files;
            let (fields, numbers): (Vec<usize>, Vec<usize>) =
                (0..columns.len()).partition(|at| place(at));
            for at in numbers {
                let number = (number as u32 + 1).to_ne_bytes();
                let ranks = self.ranks[domain.numbers()].iter();
                let values = ranks.map(|rank| (u64::from(*rank), number));
                // SAFETY: as below.
                unsafe { scatter(values, &rows, &targets[at])? };
            }
            let records: Vec<usize> = fields.iter().map(|at| self.columns[columns[*at]]).collect();
            let targets: Vec<SharedColumn> = fields.iter().map(|at| targets[*at]).collect();
            // SAFETY: `targets` borrow the columns until the end of this function. Each particle has a
            // distinct rank and is in one domain: no two tasks write the same bytes.
            unsafe { self.read_domain(number as u64, domain, &records, &rows, &targets, buffers) }
        })
    }

    /// Reads those values of a domain that are among `rows` of the columns `records` into `targets`.
    ///
    /// # Safety
    /// Until this returns, no other reference to the rows of this domain's particles may be used.
    unsafe fn read_domain(
        &self,
        number: u64,
        domain: &RankedDomain,
        records: &[usize],
        rows: &RowRange,
        targets: &[SharedColumn<'_>],
        buffers: &mut ReadBuffers,
    ) -> Result<()> {
        let ranks = &self.ranks[domain.numbers()];
        self.reader.read_records(
            number,
            &domain.particles,
            records,
            buffers,
            &mut |range, at, bytes| {
                let size = self.reader.files.sizes[records[at]] as usize;
                let ranks = ranks[range].iter().map(|rank| u64::from(*rank));
                let target = &targets[at];
                // SAFETY: the caller's promise.
                unsafe {
                    if self.reader.is_logical(records[at]) {
                        let values = bytes.chunks_exact(size);
                        let is_true = values.map(|value| [u8::from(value.iter().any(|b| *b != 0))]);
                        return scatter(ranks.zip(is_true), rows, target);
                    }
                    match size {
                        1 => scatter(
                            ranks.zip(bytes.as_chunks::<1>().0.iter().copied()),
                            rows,
                            target,
                        ),
                        2 => scatter(
                            ranks.zip(bytes.as_chunks::<2>().0.iter().copied()),
                            rows,
                            target,
                        ),
                        4 => scatter(
                            ranks.zip(bytes.as_chunks::<4>().0.iter().copied()),
                            rows,
                            target,
                        ),
                        _ => scatter(
                            ranks.zip(bytes.as_chunks::<8>().0.iter().copied()),
                            rows,
                            target,
                        ),
                    }
                }
            },
        )
    }
}

/// Writes values to those of their rows that are among `rows`.
///
/// # Safety
/// No other reference to these rows of the column may be used until this returns.
unsafe fn scatter<const N: usize>(
    values: impl Iterator<Item = (u64, [u8; N])>,
    rows: &RowRange,
    target: &SharedColumn<'_>,
) -> Result<()> {
    for (row, value) in values {
        if rows.rows.contains(&row) {
            // SAFETY: the caller's promise; the slice dies in this iteration.
            let slot = unsafe { target.rows::<N>(row - rows.rows.start, 1) };
            match slot {
                Some(slot) => slot[0] = value,
                None => return Err(Error::invalid("a particle is outside of its column")),
            }
        }
    }
    Ok(())
}
