//! Writing the particles of a species: rows of columns to the positions of their grids in the files.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;

use ambar::kinds::amr::patches::PatchHierarchy;
use ambar::{Column, DataType, Error, Result};

use super::create::{check_line, create, write_text};
use super::request::SpeciesData;
use crate::amrex::files::cell_header::format_boxes;
use crate::amrex::files::names::check_path;
use crate::amrex::files::particle_data::{encode_id, swap_if_big_endian};
use crate::amrex::files::species::{ParticleGrid, ParticleRecord, SpeciesFiles, SpeciesHeader};
use crate::amrex::layout::{ParticleBoxes, SpeciesLayout};

/// Valid numbers of digits in file names.
const DIGITS: std::ops::RangeInclusive<usize> = 1..=12;

/// Writes the folder of a species.
///
/// # Errors
/// `Invalid` for columns that `SpeciesData` does not allow, or that do not match the hierarchy; `Io`.
pub fn write(
    root: &Path,
    hierarchy: &PatchHierarchy,
    data: &SpeciesData<'_>,
    layout: Option<&SpeciesLayout>,
) -> Result<()> {
    let at = |error: Error| error.at_node(data.name);
    let rows = ParticleRows::new(data, hierarchy).map_err(at)?;
    let (files, text) = rows.files(root, layout).map_err(at)?;
    for level in 0..files.header.levels.len() {
        rows.write_level(&files, level, layout, hierarchy)
            .map_err(at)?;
    }
    for (name, text) in layout.iter().flat_map(|layout| &layout.text_files) {
        if name.contains('/') || check_path(name).is_err() {
            return Err(at(Error::invalid(format!(
                "invalid name of a text file: {name:?}; expected a file name; rename it"
            ))));
        }
        write_text(&files.folder.join(name), text)?;
    }
    write_text(&files.folder.join("Header"), &text)
}

/// The components of a species.
struct Components {
    /// Names of the real components.
    reals: Vec<String>,
    /// Names of the integer components.
    ints: Vec<String>,
    /// True if the species has ids and processes.
    has_ids: bool,
}

/// The rows of a species, by level and grid.
struct ParticleRows<'a> {
    data: &'a SpeciesData<'a>,
    ndim: usize,
    /// For each level and grid, the range of its rows in `order`.
    grids: Vec<Vec<Range<usize>>>,
    /// The rows in the order of their grids; `None` if they already have this order.
    order: Option<Vec<usize>>,
}

impl<'a> ParticleRows<'a> {
    fn new(data: &'a SpeciesData<'a>, hierarchy: &PatchHierarchy) -> Result<Self> {
        let levels = column(data, "level", &DataType::UInt8)?.values::<u8>();
        let grids = column(data, "grid", &DataType::UInt32)?.values::<u32>();
        let mut columns = data.columns.iter();
        if let Some((name, column)) = columns.find(|(_, c)| c.rows() != levels.len()) {
            return Err(Error::invalid(format!(
                "column {name:?}: expected {} rows as in \"level\", found {}; give columns of equal \
                 length",
                levels.len(),
                column.rows()
            )));
        }
        let boxes = hierarchy.levels.iter().map(|level| level.boxes.len());
        let mut counts: Vec<Vec<usize>> = boxes.map(|boxes| vec![0; boxes]).collect();
        for (level, grid) in levels.iter().zip(grids) {
            let count = counts.get_mut(usize::from(*level));
            let count = count.and_then(|counts| counts.get_mut(*grid as usize));
            *count.ok_or_else(|| {
                Error::invalid(format!(
                    "expected particles on grids of the hierarchy, found one on grid {grid} of level \
                     {level}, which does not exist; correct the columns \"level\" and \"grid\""
                ))
            })? += 1;
        }
        let key = |row: &usize| (levels[*row], grids[*row]);
        let is_sorted = (1..levels.len()).all(|row| key(&(row - 1)) <= key(&row));
        let order = (!is_sorted).then(|| {
            let mut order: Vec<_> = (0..levels.len()).collect();
            order.sort_by_key(key);
            order
        });
        let mut end = 0;
        let mut next = |count: usize| {
            end += count;
            end - count..end
        };
        let each = counts.into_iter();
        Ok(Self {
            data,
            ndim: hierarchy.ndim,
            grids: each
                .map(|level| level.into_iter().map(&mut next).collect())
                .collect(),
            order,
        })
    }

    /// The files of the species, and the text of its `Header`.
    fn files(&self, root: &Path, layout: Option<&SpeciesLayout>) -> Result<(SpeciesFiles, String)> {
        let folder = root.join(self.data.name);
        if let Some(layout) = layout.filter(|layout| DIGITS.contains(&layout.digits)) {
            let header = SpeciesHeader::parse(&layout.header, &folder)?;
            let files = self.species_files(&folder, header, layout.ints, layout.digits);
            let names = files
                .columns()
                .into_iter()
                .filter(|(name, dtype)| column(self.data, name, dtype).is_ok());
            if names.count() == self.data.columns.len() && self.matches(&files) {
                return Ok((files, layout.header.clone()));
            }
        }
        let header = self.default_header()?;
        let has_integers = header.has_integers;
        let mut files = self.species_files(&folder, header, has_integers, 5);
        let bytes = files.record.bytes() as u64;
        for grids in &mut files.header.levels {
            let mut end = 0;
            for grid in grids {
                grid.offset = end;
                end += grid.count * bytes;
            }
        }
        let text = files.header.format();
        Ok((files, text))
    }

    fn species_files(
        &self,
        folder: &Path,
        header: SpeciesHeader,
        has_integers: bool,
        digits: usize,
    ) -> SpeciesFiles {
        SpeciesFiles {
            folder: folder.to_owned(),
            record: ParticleRecord {
                ints: if has_integers {
                    2 + header.ints.len()
                } else {
                    0
                },
                reals: header.ndim + header.reals.len(),
                real_size: header.real_dtype().size().unwrap_or(8),
            },
            digits,
            header,
        }
    }

    /// True if a layout has the same dimensions, columns, grids and numbers of particles. It may lack levels without
    /// particles.
    fn matches(&self, files: &SpeciesFiles) -> bool {
        let header = &files.header;
        let Some((levels, others)) = self.grids.split_at_checked(header.levels.len()) else {
            return false;
        };
        let is_same = |(grids, rows): (&Vec<ParticleGrid>, &Vec<Range<usize>>)| {
            let mut each = grids.iter().zip(rows);
            grids.len() == rows.len() && each.all(|(grid, rows)| grid.count == rows.len() as u64)
        };
        header.ndim == self.ndim
            && header.levels.iter().zip(levels).all(is_same)
            && others.iter().flatten().all(Range::is_empty)
            && files.columns().len() == self.data.columns.len()
            && files.grids_are_disjoint()
    }

    /// A header in the current format, with all particles of a level in one file.
    fn default_header(&self) -> Result<SpeciesHeader> {
        let is_single = column(self.data, "position_x", &DataType::Float32).is_ok();
        let real = match is_single {
            true => DataType::Float32,
            false => DataType::Float64,
        };
        let parts = self.components(&real)?;
        let grid = |rows: &Range<usize>| ParticleGrid {
            file: 0,
            count: rows.len() as u64,
            offset: 0,
        };
        let levels = self.grids.iter();
        let ids = match parts.has_ids {
            true => column(self.data, "id", &DataType::Int64)?.values::<i64>(),
            false => &[],
        };
        let next = ids.iter().max().map_or(1, |id| id.saturating_add(1));
        let size = if is_single { "single" } else { "double" };
        // Ids of more than 32 bits need the format with packed ids.
        let format = match next > i64::from(i32::MAX) {
            true => "Two_Dot_One",
            false => "Two_Dot_Zero",
        };
        Ok(SpeciesHeader {
            version: format!("Version_{format}_{size}"),
            ndim: self.ndim,
            reals: parts.reals,
            ints: parts.ints,
            has_integers: parts.has_ids,
            particles: self
                .grids
                .iter()
                .flatten()
                .map(|rows| rows.len() as u64)
                .sum(),
            next_id: next,
            levels: levels
                .map(|grids| grids.iter().map(grid).collect())
                .collect(),
        })
    }

    /// The components that the columns represent, with reals of the type `real`.
    fn components(&self, real: &DataType) -> Result<Components> {
        let position = |axis: &&str| format!("position_{axis}");
        let positions: Vec<_> = ["x", "y", "z"]
            .iter()
            .take(self.ndim)
            .map(position)
            .collect();
        for name in &positions {
            column(self.data, name, real)?;
        }
        let (mut reals, mut ints, mut ids) = (Vec::new(), Vec::new(), 0);
        for (name, column) in self.data.columns {
            check_line(name)?;
            match (name.as_str(), column.dtype()) {
                ("level" | "grid", _) => {}
                ("id", DataType::Int64) | ("cpu", DataType::Int32) => ids += 1,
                _ if positions.contains(name) => {}
                (_, dtype) if dtype == real => reals.push(name.clone()),
                (_, DataType::Int32) => ints.push(name.clone()),
                (_, dtype) => {
                    return Err(Error::invalid(format!(
                        "column {name:?}: expected {real} as the positions, or int32, found {dtype}; \
                         convert it"
                    )));
                }
            }
        }
        if ids != 2 && (ids > 0 || !ints.is_empty()) {
            return Err(Error::invalid(
                "expected the columns \"id\" (int64) and \"cpu\" (int32) for particles with integers, \
                 found at most one of them; add them",
            ));
        }
        Ok(Components {
            reals,
            ints,
            has_ids: ids == 2,
        })
    }

    fn write_level(
        &self,
        files: &SpeciesFiles,
        level: usize,
        layout: Option<&SpeciesLayout>,
        hierarchy: &PatchHierarchy,
    ) -> Result<()> {
        let grids = &files.header.levels[level];
        let boxes = || format_boxes(&hierarchy.levels[level].boxes, self.ndim);
        let has_particles = grids.iter().any(|grid| grid.count > 0);
        let list = match layout.and_then(|layout| layout.boxes.get(level)) {
            Some(ParticleBoxes::Missing) => None,
            Some(ParticleBoxes::Text(text)) => Some(text.clone()),
            Some(ParticleBoxes::Level) => Some(boxes()),
            None => has_particles.then(boxes),
        };
        if let Some(list) = list {
            let path = files.folder.join(format!("Level_{level}/Particle_H"));
            write_text(&path, &list)?;
        }
        let mut order: Vec<_> = (0..grids.len()).filter(|i| grids[*i].count > 0).collect();
        order.sort_by_key(|i| (grids[*i].file, grids[*i].offset));
        for chunk in order.chunk_by(|a, b| grids[*a].file == grids[*b].file) {
            let path = files.file(level, grids[chunk[0]].file);
            let io = |e| Error::io(e, &path, "writing particles");
            let mut file = BufWriter::with_capacity(1 << 20, create(&path)?);
            for index in chunk {
                file.seek(SeekFrom::Start(grids[*index].offset))
                    .map_err(io)?;
                self.write_grid(files, self.grids[level][*index].clone(), &mut file, &path)?;
            }
            file.flush().map_err(io)?;
            file.get_ref().sync_all().map_err(io)?;
        }
        Ok(())
    }

    /// Writes the particles of a grid: all integers, then all reals.
    fn write_grid(
        &self,
        files: &SpeciesFiles,
        rows: Range<usize>,
        out: &mut BufWriter<File>,
        path: &Path,
    ) -> Result<()> {
        let io = |e| Error::io(e, path, "writing particles");
        let row = |place: usize| self.order.as_ref().map_or(place, |order| order[place]);
        let columns = files.columns();
        let find = |(name, dtype): &(String, DataType)| column(self.data, name, dtype);
        let (reals, others) = columns.split_at(files.record.reals);
        let reals: Vec<_> = reals.iter().map(find).collect::<Result<_>>()?;
        if files.record.ints > 0 {
            let ids = find(&others[0])?.values::<i64>();
            let cpus = find(&others[1])?.values::<i32>();
            let ints = others[2..files.record.ints].iter().map(find);
            let ints: Vec<_> = ints.collect::<Result<_>>()?;
            for row in rows.clone().map(row) {
                let both = encode_id(files.header.id_encoding(), ids[row], cpus[row]);
                let both = both.ok_or_else(|| {
                    Error::invalid(format!(
                        "expected ids and processes in the range of {}, found id {} of process {}; \
                         renumber the particles",
                        files.header.version, ids[row], cpus[row]
                    ))
                })?;
                out.write_all(both.as_flattened()).map_err(io)?;
                for column in &ints {
                    out.write_all(&column.values::<i32>()[row].to_le_bytes())
                        .map_err(io)?;
                }
            }
        }
        let size = files.record.real_size;
        let mut value = [0; 8];
        for row in rows.map(row) {
            for column in &reals {
                let value = &mut value[..size];
                value.copy_from_slice(&column.bytes()[row * size..][..size]);
                swap_if_big_endian(value);
                out.write_all(value).map_err(io)?;
            }
        }
        Ok(())
    }
}

fn column<'a>(data: &SpeciesData<'a>, name: &str, dtype: &DataType) -> Result<&'a Column> {
    let found = data.columns.iter().find(|(found, _)| found == name);
    match found {
        Some((_, column)) if column.dtype() == dtype => Ok(column),
        Some((_, column)) => Err(Error::invalid(format!(
            "column {name:?}: expected {dtype}, found {}; convert it",
            column.dtype()
        ))),
        None => Err(Error::invalid(format!(
            "expected the column {name:?} ({dtype}) of particles, found none; add it"
        ))),
    }
}
