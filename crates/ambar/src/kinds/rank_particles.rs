//! Collective writing of particles: each rank writes its rows, after those of the ranks before it.

use std::sync::Arc;

use serde_json::json;

use crate::array::{ArraySpec, Region, table_chunk_rows};
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::bound::{self, Compression, ErrorBound, FieldBounds};
use crate::kinds::write::{IndexArray, StoredBounds, add_bounds};
use crate::kinds::{attributes, particles};
use crate::memory::Column;
use crate::metadata::Attributes;
use crate::numbers;
use crate::ranks::{ArrayId, Decomposition, RangesId, RankWriter};

/// Maximum number of particles of all ranks.
const MAX_ROWS: u64 = 1 << 56;

/// The domain of particles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParticleBox {
    /// Dimensions, 1 to 3.
    pub ndim: usize,
    /// Lower corner of the cube of the Morton curve.
    pub lower: [f64; 3],
    /// Side of the cube; stored as the size of the box.
    pub side: f64,
}

/// Options of a collective write of particles; equal on all ranks.
#[derive(Clone, Debug)]
pub struct RankParticleOptions {
    /// The domain, which determines the order of rows.
    pub domain: ParticleBox,
    /// How the columns are compressed. Error bounds are absolute.
    pub compression: Compression,
    /// Added to the `ambar` attributes of the group.
    pub more: Attributes,
}

/// One rank's handle of a group of kind `particles` that all ranks write collectively.
///
/// Each rank sorts its own rows along the Morton curve. The rows of all ranks are not sorted together:
/// one rank would need all of them.
pub struct RankParticles {
    domain: ParticleBox,
    rows: usize,
    /// The first of this rank's rows.
    first: u64,
    chunk_rows: u64,
    /// Chunks of a column.
    chunks: u64,
    names: Vec<String>,
    /// The columns; empty after they were written.
    columns: Vec<(String, Column)>,
    given: Vec<bool>,
    arrays: Vec<ArrayId>,
    bounds: Vec<ErrorBound>,
    ranges: RangesId,
}

impl RankParticles {
    /// Declares the group at `path`, of which rank `i` writes `counts[i]` rows.
    ///
    /// # Errors
    /// `Invalid` if a position is missing, or two columns have the same name; `Unsupported` for values
    /// of variable size and for error bounds that depend on the range or on parts; `Limit` for too many
    /// rows.
    pub fn declare(
        writer: &mut RankWriter,
        path: &str,
        counts: &[u64],
        columns: &[(String, DataType)],
        options: &RankParticleOptions,
    ) -> Result<Self> {
        let path = path.trim_end_matches('/');
        let declared = Self::declare_here(writer, path, counts, columns, options);
        writer.record_failure(declared.map_err(|error| error.at_node(path)))
    }

    fn declare_here(
        writer: &mut RankWriter,
        path: &str,
        counts: &[u64],
        columns: &[(String, DataType)],
        options: &RankParticleOptions,
    ) -> Result<Self> {
        let RankParticleOptions {
            domain,
            compression,
            more,
        } = options;
        let ranks = writer.options().ranks;
        if counts.len() != ranks as usize {
            let found = counts.len();
            return Err(Error::invalid(format!(
                "expected the numbers of rows of {ranks} ranks, found {found}"
            )));
        }
        let (held, starts) = rows_of(counts)?;
        let rows = held.shape()[0];
        check(columns, *domain)?;
        let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
        compression.check_names(&names)?;
        let bounds = columns
            .iter()
            .map(|(name, dtype)| bound_of(name, dtype, compression));
        let bounds = bounds.collect::<Result<Vec<ErrorBound>>>()?;
        let mut own = particles::attributes(domain.ndim, domain.side);
        own.insert("columns".into(), json!(names));
        let asked: Vec<FieldBounds> = bounds.iter().map(|bound| (*bound).into()).collect();
        let named = names.iter().zip(bounds.iter().zip(&asked));
        add_bounds(
            &mut own,
            named.map(|(field, (bound, asked))| StoredBounds {
                field,
                bound: *bound,
                asked,
                median: None,
            }),
        );
        own.extend(more.clone());
        // The order of rows depends on the lower corner, which is not stored.
        let lower = [("lower".to_owned(), json!(domain.lower))]
            .into_iter()
            .collect();
        writer.define_group(
            "particles",
            path,
            attributes::group("particles", own),
            lower,
        )?;
        let chunk_rows = table_chunk_rows(rows);
        let arrays = columns.iter().zip(&bounds).map(|((name, dtype), bound)| {
            let spec = ArraySpec::new(dtype.clone(), &[rows])
                .dimensions(&["particle"])
                .chunks(&[chunk_rows])
                .profile(compression.profile)
                .error_bound(Some(*bound));
            writer.declare(&format!("{path}/{name}"), &spec, Some(&held))
        });
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        let rank = writer.rank() as usize;
        let dtypes: Vec<DataType> = columns.iter().map(|(_, dtype)| dtype.clone()).collect();
        let local = usize::try_from(counts[rank])
            .map_err(|_| Error::limit("the rows of a rank do not fit in memory"))?;
        let chunks = rows.div_ceil(chunk_rows);
        let values = Column::allocate(&dtypes, local)?;
        Ok(Self {
            ranges: declare_ranges(writer, path, columns.len() as u64, chunks)?,
            domain: *domain,
            rows: local,
            first: starts[rank],
            chunk_rows,
            chunks,
            given: vec![false; columns.len()],
            columns: names.iter().cloned().zip(values).collect(),
            names,
            arrays,
            bounds,
        })
    }

    /// Number of this rank's rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Puts a column of this rank's rows: `read` fills its bytes, native byte order. After the last
    /// column the rows are sorted along the Morton curve and encoded.
    ///
    /// # Errors
    /// `NotFound` for a column that does not exist; `Invalid` if it was put before; as
    /// [`RankWriter::write`].
    pub fn put(
        &mut self,
        writer: &mut RankWriter,
        column: &str,
        read: impl FnOnce(&mut [u8]),
    ) -> Result<()> {
        let put = self.put_here(writer, column, read);
        writer.record_failure(put.map_err(|error| error.at_node(column)))
    }

    fn put_here(
        &mut self,
        writer: &mut RankWriter,
        name: &str,
        read: impl FnOnce(&mut [u8]),
    ) -> Result<()> {
        let place = self.names.iter().position(|other| other == name);
        let place = place.ok_or_else(|| {
            let names = self.names.join(", ");
            Error::not_found(format!("the column does not exist; available: {names}"))
        })?;
        if std::mem::replace(&mut self.given[place], true) {
            return Err(Error::invalid(
                "the column was already put; put each column once",
            ));
        }
        read(self.columns[place].1.bytes_mut());
        match self.given.iter().all(|given| *given) {
            true => self.write(writer),
            false => Ok(()),
        }
    }

    fn write(&mut self, writer: &mut RankWriter) -> Result<()> {
        let ParticleBox { ndim, lower, side } = self.domain;
        let mut columns = std::mem::take(&mut self.columns);
        let columns = writer.working(move || {
            particles::sort_from(&mut columns, ndim, lower, side)?;
            Ok(columns)
        })?;
        for (number, (_, column)) in columns.iter().enumerate() {
            let (dtype, rows) = (column.dtype(), column.rows() as u64);
            let size = dtype.size().unwrap_or(1) as u64;
            let mut row = 0;
            while row < rows {
                let chunk = (self.first + row) / self.chunk_rows;
                let end = ((chunk + 1) * self.chunk_rows - self.first).min(rows);
                let bytes = &column.bytes()[(row * size) as usize..(end * size) as usize];
                let ([lo, hi], bound) = (numbers::range(dtype, bytes), self.bounds[number]);
                let place = number as u64 * self.chunks + chunk;
                writer.report_range(
                    self.ranges,
                    place as usize,
                    bound::widened(bound, [lo, hi], bytes.len()),
                );
                row = end;
            }
            let region = Region {
                start: vec![self.first],
                shape: vec![rows],
            };
            writer.write(self.arrays[number], &region, column.bytes())?;
        }
        Ok(())
    }

    /// Finishes the group: all columns must have been put.
    ///
    /// # Errors
    /// `Invalid`, with the missing columns. Then the commit fails.
    pub fn finish(self, writer: &mut RankWriter) -> Result<()> {
        let missing = self.names.iter().zip(&self.given);
        let missing = missing.filter(|(_, given)| !**given);
        let missing: Vec<&str> = missing.map(|(name, _)| &name[..]).collect();
        let finished = match missing.is_empty() {
            true => Ok(()),
            false => Err(Error::invalid(format!(
                "expected all columns of the particles of rank {}; missing: {}",
                writer.rank(),
                missing.join(", ")
            ))),
        };
        writer.record_failure(finished)
    }
}

/// The decomposition of the rows, and the first row of each rank.
fn rows_of(counts: &[u64]) -> Result<(Arc<Decomposition>, Vec<u64>)> {
    let mut starts = Vec::with_capacity(counts.len());
    let mut rows = 0u64;
    for count in counts {
        starts.push(rows);
        let next = rows.checked_add(*count).filter(|rows| *rows <= MAX_ROWS);
        rows = next.ok_or_else(|| {
            Error::limit(format!(
                "expected at most {MAX_ROWS} particles of all ranks"
            ))
        })?;
    }
    let blocks = (0..)
        .zip(starts.iter().zip(counts))
        .map(|(rank, (start, count))| {
            let (start, shape) = (vec![*start], vec![*count]);
            (rank, Region { start, shape })
        });
    let held = Decomposition::new(&[rows], blocks.collect());
    Ok((Arc::new(held), starts))
}

/// Checks the domain, the names of the columns, and the positions.
fn check(columns: &[(String, DataType)], domain: ParticleBox) -> Result<()> {
    let ParticleBox { ndim, lower, side } = domain;
    if !(1..=3).contains(&ndim) {
        return Err(Error::invalid(format!(
            "expected particles of 1 to 3 dimensions, found {ndim}"
        )));
    }
    if !(side > 0.0 && side.is_finite() && lower.iter().all(|x| x.is_finite())) {
        return Err(Error::invalid(format!(
            "expected a box with a finite lower corner and a positive side, found {lower:?} and {side}"
        )));
    }
    for (i, (name, dtype)) in columns.iter().enumerate() {
        if name == "index" || columns[..i].iter().any(|(other, _)| other == name) {
            return Err(Error::invalid(format!(
                "expected unique names of columns, and none with the name \"index\", found {name:?}; rename it"
            )));
        }
        if dtype.size().is_none() {
            return Err(Error::unsupported(format!(
                "expected columns of values of fixed size, found {name:?} of {dtype}"
            )));
        }
    }
    let types = columns.iter().map(|(name, dtype)| (&name[..], dtype));
    particles::check_positions(types, &particles::position_names(ndim))
}

/// The error bound of a column.
fn bound_of(name: &str, dtype: &DataType, compression: &Compression) -> Result<ErrorBound> {
    let bounds = compression.bounds(name, dtype)?;
    if bounds.needs_range() {
        return Err(Error::unsupported(format!(
            "an error bound relative to the value range of {name:?} needs the values of all ranks; compute \
             the range (MPI_Allreduce), and give an absolute bound"
        )));
    }
    if bounds.has_parts() {
        return Err(Error::unsupported(format!(
            "error bounds of boxes or levels do not apply to particles of ranks, found one of {name:?}; give \
             one bound for the column"
        )));
    }
    Ok(bounds.general)
}

/// Rank 0 writes the ranges that all ranks report, if there is more than one chunk.
fn declare_ranges(
    writer: &mut RankWriter,
    path: &str,
    columns: u64,
    chunks: u64,
) -> Result<RangesId> {
    let places = columns
        .checked_mul(chunks)
        .and_then(|n| usize::try_from(n).ok());
    let places =
        places.ok_or_else(|| Error::limit("the number of chunks of all columns is above 2^64"))?;
    let path = path.to_owned();
    Ok(writer.declare_ranges(
        places,
        Box::new(move |store, ranges| {
            if chunks < 2 {
                return Ok(());
            }
            let array = IndexArray {
                dtype: DataType::Float64,
                shape: &[columns, chunks, 2],
                dimensions: &["column", "chunk", "bound"],
                bytes: bytemuck::cast_slice(ranges),
            };
            array.write_to_index(store, &path, "range")
        }),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::particles::Particles;
    use crate::kinds::select::Selection;
    use crate::ranks::RankOptions;
    use crate::ranks::team::Team;
    use crate::store::Store;

    /// The value of a row in a column: scattered positions from -1 to 3, and the number of the row.
    fn value(column: usize, row: u64) -> f64 {
        match column {
            3 => row as f64,
            axis => (row * [7, 13, 29][axis] % 101) as f64 / 101.0 * 4.0 - 1.0,
        }
    }

    fn names() -> Vec<(String, DataType)> {
        let names = ["position_x", "position_y", "position_z", "id"];
        names
            .map(|name| (name.to_owned(), DataType::Float64))
            .to_vec()
    }

    const DOMAIN: ParticleBox = ParticleBox {
        ndim: 3,
        lower: [-1.0; 3],
        side: 4.0,
    };

    fn in_domain(domain: ParticleBox) -> RankParticleOptions {
        RankParticleOptions {
            domain,
            compression: Compression::default(),
            more: Attributes::new(),
        }
    }

    #[test]
    fn ranks_write_their_rows_and_ranges() {
        for counts in [
            &[1000][..],
            &[30_000, 0, 50_001],
            &[0, 1, 70_000, 3, 40_000],
            &[0, 0],
        ] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("ranks.ambar");
            let ranks = counts.len() as u32;
            let options = RankOptions {
                ranks,
                ..RankOptions::default()
            };
            let mut team = Team::create(&path, options);
            let mut first = 0;
            for (rank, writer) in team.0.iter_mut().enumerate() {
                let mut own =
                    RankParticles::declare(writer, "/p", counts, &names(), &in_domain(DOMAIN))
                        .unwrap();
                for (column, (name, _)) in names().iter().enumerate() {
                    own.put(writer, name, |bytes| {
                        for (row, to) in (first..).zip(bytes.chunks_exact_mut(8)) {
                            to.copy_from_slice(&value(column, row).to_ne_bytes());
                        }
                    })
                    .unwrap();
                }
                own.finish(writer).unwrap();
                first += counts[rank];
            }
            team.commit().unwrap();
            let store = Store::open(&path).unwrap();
            let particles = Particles::open(&store, "/p").unwrap();
            assert_eq!(particles.rows(), first);
            let names: Vec<String> = particles.columns().to_vec();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let read = particles.read(&names, &Selection::default()).unwrap();
            let columns: Vec<&[f64]> = read.iter().map(|(_, column)| column.values()).collect();
            let mut seen = vec![false; first as usize];
            for (at, id) in columns[3].iter().enumerate() {
                assert!(!std::mem::replace(&mut seen[*id as usize], true));
                for (axis, places) in columns[..3].iter().enumerate() {
                    assert_eq!(places[at], value(axis, *id as u64));
                }
            }
            if first > 0 {
                check_ranges(&store, &columns);
            }
        }
    }

    /// Compares the range of every chunk with its values.
    fn check_ranges(store: &Store, columns: &[&[f64]]) {
        let rows = table_chunk_rows(columns[0].len() as u64) as usize;
        if columns[0].len() <= rows {
            assert!(store.kind("/p/index").unwrap().is_none());
            return;
        }
        let index = store.array("/p/index/range").unwrap();
        let [_, chunks, _] = index.shape()[..] else {
            panic!("{:?}", index.shape());
        };
        let slices: Vec<_> = index.shape().iter().map(|n| (0..*n).into()).collect();
        let mut ranges = vec![0f64; index.shape().iter().product::<u64>() as usize];
        index
            .read(&slices, bytemuck::cast_slice_mut(&mut ranges))
            .unwrap();
        let mut ranges = ranges.as_chunks::<2>().0.iter();
        for column in columns {
            assert_eq!(column.chunks(rows).len() as u64, chunks);
            for chunk in column.chunks(rows) {
                let lo = chunk.iter().copied().fold(f64::INFINITY, f64::min);
                let hi = chunk.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                assert_eq!(ranges.next(), Some(&[lo, hi]));
            }
        }
    }

    #[test]
    fn invalid_declarations_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ranks.ambar");
        let mut team = Team::create(&path, RankOptions::default());
        let writer = &mut team.0[0];
        let mut rejected = |counts: &[u64], columns: &[(String, DataType)], domain| {
            let declared =
                RankParticles::declare(writer, "/p", counts, columns, &in_domain(domain));
            declared.err().unwrap().to_string()
        };
        let all = names();
        assert!(rejected(&[1, 2], &all, DOMAIN).contains("rows of 1 ranks, found 2"));
        assert!(rejected(&[1], &all[1..], DOMAIN).contains("position_x"));
        assert!(rejected(&[1], &[&all[..], &all[..1]].concat(), DOMAIN).contains("unique names"));
        let flat = ParticleBox {
            side: 0.0,
            ..DOMAIN
        };
        assert!(rejected(&[1], &all, flat).contains("positive side"));
        assert!(rejected(&[u64::MAX], &all, DOMAIN).contains("at most"));
    }

    #[test]
    fn ranks_that_describe_particles_differently_commit_nothing() {
        let rejected = |counts: &[u64], columns: &[(String, DataType)], domain| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("ranks.ambar");
            let options = RankOptions {
                ranks: 2,
                ..RankOptions::default()
            };
            let mut team = Team::create(&path, options);
            let of_first = (&[0, 0][..], &names()[..], DOMAIN);
            let of_second = (counts, columns, domain);
            for (writer, (counts, columns, domain)) in team.0.iter_mut().zip([of_first, of_second])
            {
                RankParticles::declare(writer, "/p", counts, columns, &in_domain(domain)).unwrap();
            }
            let error = team.commit().unwrap_err().to_string();
            assert!(!path.exists());
            error
        };
        let error = rejected(&[0, 7], &names(), DOMAIN);
        assert!(
            error.contains("shape: [0] on rank 0, [7] on rank 1"),
            "{error}"
        );
        let lower = [-1.0, -1.0, 0.0];
        let error = rejected(&[0, 0], &names(), ParticleBox { lower, ..DOMAIN });
        assert!(
            error.contains("lower: [-1.0,-1.0,-1.0] on rank 0"),
            "{error}"
        );
        let mut columns = names();
        columns[3].0 = "mass".into();
        let error = rejected(&[0, 0], &columns, DOMAIN);
        assert!(
            error.contains("p/id: the array is not defined alike on all ranks"),
            "{error}"
        );
    }
}
