//! Particles that many ranks write together: each its rows, behind those of the ranks before it.

use std::sync::Arc;

use serde_json::json;

use crate::array::{ArraySpec, Region, table_chunk_rows};
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::bound::{self, Compression, ErrorBound, FieldBounds};
use crate::kinds::write::{StoredBounds, add_bounds, index};
use crate::kinds::{attributes, numbers, particles};
use crate::memory::Column;
use crate::metadata::Attributes;
use crate::ranks::{ArrayId, Decomposition, RangesId, RankWriter};

/// Most particles.
const MAX_ROWS: u64 = 1 << 56;

/// Where particles may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParticleBox {
    /// Dimensions, 1 to 3.
    pub ndim: usize,
    /// Lower corner of the cube through which the Morton curve goes.
    pub lower: [f64; 3],
    /// The cube's side, which is kept as the size of the box.
    pub side: f64,
}

/// One rank's end of a group of kind `particles` that many ranks write together.
///
/// Each rank puts its own rows along the Morton curve; those of all are not sorted together, which
/// would need all of them at one place.
pub struct RankParticles {
    place: ParticleBox,
    rows: usize,
    /// The first of this rank's rows.
    first: u64,
    chunk_rows: u64,
    /// Chunks of a column.
    chunks: u64,
    names: Vec<String>,
    /// The columns so far; none once they were written.
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
    /// `Invalid` if a position is missing, or a column's name taken; `Unsupported` for values of no
    /// fixed size and for error bounds that are not absolute; `Limit` for more rows than can be
    /// counted.
    pub fn declare(
        writer: &mut RankWriter,
        path: &str,
        counts: &[u64],
        columns: &[(String, DataType)],
        place: ParticleBox,
        (more, compression): (Attributes, &Compression),
    ) -> Result<Self> {
        let path = path.trim_end_matches('/');
        let declared =
            Self::declare_here(writer, path, counts, columns, place, (more, compression));
        writer.record_failure(declared.map_err(|error| error.at_node(path)))
    }

    fn declare_here(
        writer: &mut RankWriter,
        path: &str,
        counts: &[u64],
        columns: &[(String, DataType)],
        place: ParticleBox,
        (more, compression): (Attributes, &Compression),
    ) -> Result<Self> {
        let ranks = writer.options().ranks;
        if counts.len() != ranks as usize {
            let found = counts.len();
            return Err(Error::invalid(format!(
                "rows of {found} ranks, there are {ranks}"
            )));
        }
        let (held, starts) = rows_of(counts)?;
        let rows = held.shape()[0];
        check(columns, place)?;
        let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
        compression.check_names(&names)?;
        let bounds = columns
            .iter()
            .map(|(name, dtype)| bound_of(name, dtype, compression));
        let bounds = bounds.collect::<Result<Vec<ErrorBound>>>()?;
        let mut own = particles::attributes(place.ndim, place.side);
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
        own.extend(more);
        // Where the Morton curve begins is not written, but says in which order rows are.
        let lower = [("lower".to_owned(), json!(place.lower))]
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
            .map_err(|_| Error::limit("more rows than fit in memory"))?;
        let chunks = rows.div_ceil(chunk_rows);
        let values = Column::allocate(&dtypes, local)?;
        Ok(Self {
            ranges: declare_ranges(writer, path, (columns.len() as u64, chunks))?,
            place,
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

    /// Gives a column of this rank's rows: `read` fills its bytes, native byte order. Once all are
    /// there, the rows are put along the Morton curve, and encoded.
    ///
    /// # Errors
    /// `NotFound` for a column that does not exist; `Invalid` if it was given before; as
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
            return Err(Error::invalid("this column was given before"));
        }
        read(self.columns[place].1.bytes_mut());
        match self.given.iter().all(|given| *given) {
            true => self.write(writer),
            false => Ok(()),
        }
    }

    fn write(&mut self, writer: &mut RankWriter) -> Result<()> {
        let ParticleBox { ndim, lower, side } = self.place;
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

    /// Ends the group: all columns must have been given.
    ///
    /// # Errors
    /// `Invalid`, naming those that were not. Then nothing can be committed.
    pub fn finish(self, writer: &mut RankWriter) -> Result<()> {
        let missing = self.names.iter().zip(&self.given);
        let missing = missing.filter(|(_, given)| !**given);
        let missing: Vec<&str> = missing.map(|(name, _)| &name[..]).collect();
        let finished = match missing.is_empty() {
            true => Ok(()),
            false => Err(Error::invalid(format!(
                "rank {} has not given these columns of its particles: {}",
                writer.rank(),
                missing.join(", ")
            ))),
        };
        writer.record_failure(finished)
    }
}

/// Who has which rows, and the first of each rank.
fn rows_of(counts: &[u64]) -> Result<(Arc<Decomposition>, Vec<u64>)> {
    let mut starts = Vec::with_capacity(counts.len());
    let mut rows = 0u64;
    for count in counts {
        starts.push(rows);
        let next = rows.checked_add(*count).filter(|rows| *rows <= MAX_ROWS);
        rows = next.ok_or_else(|| {
            Error::limit(format!(
                "more than {MAX_ROWS} particles, of all ranks together"
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

/// Checks names, and that positions are there and numbers.
fn check(columns: &[(String, DataType)], place: ParticleBox) -> Result<()> {
    if !(1..=3).contains(&place.ndim) {
        let ndim = place.ndim;
        return Err(Error::invalid(format!(
            "particles have 1 to 3 dimensions, not {ndim}"
        )));
    }
    if !(place.side > 0.0 && place.side.is_finite() && place.lower.iter().all(|x| x.is_finite())) {
        let ParticleBox { lower, side, .. } = place;
        return Err(Error::invalid(format!(
            "a box of the size {side} from {lower:?} on"
        )));
    }
    for (i, (name, dtype)) in columns.iter().enumerate() {
        if name == "index" || columns[..i].iter().any(|(other, _)| other == name) {
            return Err(Error::invalid(format!(
                "a column cannot have the name {name:?}: it is taken; rename it"
            )));
        }
        if dtype.size().is_none() {
            return Err(Error::unsupported(format!(
                "the column {name:?} holds {dtype} values, which differ in length"
            )));
        }
    }
    // Rows are not looked at.
    let dtypes: Vec<DataType> = columns.iter().map(|(_, dtype)| dtype.clone()).collect();
    let names = columns.iter().map(|(name, _)| name.clone());
    let empty: Vec<(String, Column)> = names.zip(Column::allocate(&dtypes, 0)?).collect();
    particles::check_positions(&empty, &particles::position_names(place.ndim))
}

/// A column's bound.
fn bound_of(name: &str, dtype: &DataType, compression: &Compression) -> Result<ErrorBound> {
    let bounds = compression.bounds(name, dtype)?;
    if bounds.needs_range() {
        return Err(Error::unsupported(format!(
            "an error bound relative to the range of {name:?}, which no one rank knows: find the \
             range together (MPI_Allreduce), and give an absolute bound"
        )));
    }
    if bounds.has_parts() {
        return Err(Error::unsupported(format!(
            "an error bound of {name:?} in a box, or on levels; ranks write the particles of all levels together: give \
             one bound for the column"
        )));
    }
    Ok(bounds.general)
}

/// Rank 0 writes the ranges that all ranks report.
fn declare_ranges(
    writer: &mut RankWriter,
    path: &str,
    (columns, chunks): (u64, u64),
) -> Result<RangesId> {
    let places = columns
        .checked_mul(chunks)
        .and_then(|n| usize::try_from(n).ok());
    let places = places.ok_or_else(|| Error::limit("more chunks than can be counted"))?;
    let path = path.to_owned();
    Ok(writer.declare_ranges(
        places,
        Box::new(move |store, ranges| {
            let shape = [columns, chunks, 2];
            let place = (&shape[..], &["column", "chunk", "bound"][..]);
            let bytes = bytemuck::cast_slice(ranges);
            index(store, &path, "range", DataType::Float64, place, bytes)
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

    /// The value of a row in a column: positions in a box from -1 to 3, scattered; the row itself.
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

    const PLACE: ParticleBox = ParticleBox {
        ndim: 3,
        lower: [-1.0; 3],
        side: 4.0,
    };

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
                let more = (Attributes::new(), &Compression::default());
                let mut own =
                    RankParticles::declare(writer, "/p", counts, &names(), PLACE, more).unwrap();
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

    /// Every chunk's range is that of its values.
    fn check_ranges(store: &Store, columns: &[&[f64]]) {
        let index = store.array("/p/index/range").unwrap();
        let [_, chunks, _] = index.shape()[..] else {
            panic!("{:?}", index.shape());
        };
        let slices: Vec<_> = index.shape().iter().map(|n| (0..*n).into()).collect();
        let mut ranges = vec![0f64; index.shape().iter().product::<u64>() as usize];
        index
            .read(&slices, bytemuck::cast_slice_mut(&mut ranges))
            .unwrap();
        let rows = table_chunk_rows(columns[0].len() as u64) as usize;
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
    fn what_does_not_fit_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ranks.ambar");
        let mut team = Team::create(&path, RankOptions::default());
        let writer = &mut team.0[0];
        let compression = Compression::default();
        let mut refused = |counts: &[u64], columns: &[(String, DataType)], place| {
            let more = (Attributes::new(), &compression);
            let made = RankParticles::declare(writer, "/p", counts, columns, place, more);
            made.err().unwrap().to_string()
        };
        let all = names();
        assert!(refused(&[1, 2], &all, PLACE).contains("rows of 2 ranks"));
        assert!(refused(&[1], &all[1..], PLACE).contains("position_x"));
        assert!(refused(&[1], &[&all[..], &all[..1]].concat(), PLACE).contains("taken"));
        let flat = ParticleBox { side: 0.0, ..PLACE };
        assert!(refused(&[1], &all, flat).contains("size 0"));
        assert!(refused(&[u64::MAX], &all, PLACE).contains("more than"));
    }

    /// Ranks that said other things of their particles than rank 0 committed what rank 0 had said.
    #[test]
    fn ranks_that_describe_particles_differently_commit_nothing() {
        let refused = |counts: &[u64], columns: &[(String, DataType)], place| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("ranks.ambar");
            let options = RankOptions {
                ranks: 2,
                ..RankOptions::default()
            };
            let mut team = Team::create(&path, options);
            let none = Compression::default();
            let of_first = (&[0, 0][..], &names()[..], PLACE);
            for (rank, (counts, columns, place)) in
                [of_first, (counts, columns, place)].into_iter().enumerate()
            {
                let more = (Attributes::new(), &none);
                RankParticles::declare(&mut team.0[rank], "/p", counts, columns, place, more)
                    .unwrap();
            }
            let error = team.commit().unwrap_err().to_string();
            assert!(!path.exists());
            error
        };
        let error = refused(&[0, 7], &names(), PLACE);
        assert!(
            error.contains("shape: [0] on rank 0, [7] on rank 1"),
            "{error}"
        );
        let lower = [-1.0, -1.0, 0.0];
        let error = refused(&[0, 0], &names(), ParticleBox { lower, ..PLACE });
        assert!(
            error.contains("lower: [-1.0,-1.0,-1.0] on rank 0"),
            "{error}"
        );
        let mut columns = names();
        columns[3].0 = "mass".into();
        let error = refused(&[0, 0], &columns, PLACE);
        assert!(
            error.contains("p/id: the array is not defined alike on all ranks"),
            "{error}"
        );
    }
}
