//! Writing the particles of a species: rows back to their grids' places in the files.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use ambar::kinds::amr::patches::PatchHierarchy;
use ambar::{Column, DataType, Error, Result};

use super::cellh::{check_name, format_boxes};
use super::layout::{ParticleBoxes, SpeciesLayout};
use super::particles::{encode, native};
use super::species::{Grid, Record, SpeciesFiles, SpeciesHeader};
use super::write::{SpeciesData, check_line, create, write_text};

/// Digits of the numbers in files' names that are sensible.
const DIGITS: std::ops::RangeInclusive<usize> = 1..=12;

/// Writes a species' folder.
///
/// # Errors
/// `Invalid` where the columns are not as `SpeciesData` says, or do not fit the hierarchy; `Io`.
pub fn write(
    root: &Path,
    hierarchy: &PatchHierarchy,
    data: &SpeciesData<'_>,
    layout: Option<&SpeciesLayout>,
) -> Result<()> {
    let at = |error: Error| error.at_node(data.name);
    let rows = Rows::new(data, hierarchy).map_err(at)?;
    let (files, text) = rows.files(root, layout).map_err(at)?;
    for level in 0..files.header.levels.len() {
        rows.write_level(&files, level, layout, hierarchy)
            .map_err(at)?;
    }
    for (name, text) in layout.iter().flat_map(|layout| &layout.texts) {
        if name.contains('/') || check_name(name).is_err() {
            return Err(at(Error::invalid(format!(
                "{name:?} cannot be the name of a text"
            ))));
        }
        write_text(&files.folder.join(name), text)?;
    }
    write_text(&files.folder.join("Header"), &text)
}

/// Names of components, and whether there are numbers and processes.
struct Components {
    reals: Vec<String>,
    ints: Vec<String>,
    ids: bool,
}

/// The rows of a species, by level and grid.
struct Rows<'a> {
    data: &'a SpeciesData<'a>,
    ndim: usize,
    /// For each level, its grids' first and last row in `order`.
    grids: Vec<Vec<std::ops::Range<usize>>>,
    /// The rows in the order of their grids; `None` where they are in that order.
    order: Option<Vec<usize>>,
}

impl<'a> Rows<'a> {
    fn new(data: &'a SpeciesData<'a>, hierarchy: &PatchHierarchy) -> Result<Self> {
        let levels = column(data, "level", &DataType::UInt8)?.values::<u8>();
        let grids = column(data, "grid", &DataType::UInt32)?.values::<u32>();
        if let Some((name, _)) = data.columns.iter().find(|(_, c)| c.rows() != levels.len()) {
            return Err(Error::invalid(format!(
                "the column {name:?} has another length"
            )));
        }
        let boxes = hierarchy.levels.iter().map(|level| level.boxes.len());
        let mut counts: Vec<Vec<usize>> = boxes.map(|boxes| vec![0; boxes]).collect();
        for (level, grid) in levels.iter().zip(grids) {
            let count = counts.get_mut(usize::from(*level));
            let count = count.and_then(|counts| counts.get_mut(*grid as usize));
            *count.ok_or_else(|| {
                Error::invalid(format!(
                    "a particle on grid {grid} of level {level}, which is not there"
                ))
            })? += 1;
        }
        let key = |row: &usize| (levels[*row], grids[*row]);
        let sorted = (1..levels.len()).all(|row| key(&(row - 1)) <= key(&row));
        let order = (!sorted).then(|| {
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

    /// The species' files, and the text of their `Header`.
    fn files(&self, root: &Path, layout: Option<&SpeciesLayout>) -> Result<(SpeciesFiles, String)> {
        let folder = root.join(self.data.name);
        if let Some(layout) = layout.filter(|layout| DIGITS.contains(&layout.digits)) {
            let header = SpeciesHeader::parse(&layout.header, &folder)?;
            let files = self.species_files(&folder, header, layout.ints, layout.digits);
            let names = files
                .columns()
                .into_iter()
                .filter(|(name, dtype)| column(self.data, name, dtype).is_ok());
            if names.count() == self.data.columns.len() && self.fits(&files) {
                return Ok((files, layout.header.clone()));
            }
        }
        let header = self.usual_header()?;
        let ints = header.checkpoint;
        let mut files = self.species_files(&folder, header, ints, 5);
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
        ints: bool,
        digits: usize,
    ) -> SpeciesFiles {
        SpeciesFiles {
            folder: folder.to_owned(),
            record: Record {
                ints: if ints { 2 + header.ints.len() } else { 0 },
                reals: header.ndim + header.reals.len(),
                real_size: header.real().size().unwrap_or(8),
            },
            digits,
            header,
        }
    }

    /// Whether a layout has these dimensions, columns and grids, with as many particles each.
    fn fits(&self, files: &SpeciesFiles) -> bool {
        let header = &files.header;
        let same = |(grids, rows): (&Vec<Grid>, &Vec<std::ops::Range<usize>>)| {
            let mut each = grids.iter().zip(rows);
            grids.len() == rows.len() && each.all(|(grid, rows)| grid.count == rows.len() as u64)
        };
        header.ndim == self.ndim
            && header.levels.len() == self.grids.len()
            && header.levels.iter().zip(&self.grids).all(same)
            && files.columns().len() == self.data.columns.len()
            && files.places_apart()
    }

    /// A header of today's format, all particles of a level in one file.
    fn usual_header(&self) -> Result<SpeciesHeader> {
        let single = column(self.data, "position_x", &DataType::Float32).is_ok();
        let real = match single {
            true => DataType::Float32,
            false => DataType::Float64,
        };
        let parts = self.components(&real)?;
        let grid = |rows: &std::ops::Range<usize>| Grid {
            file: 0,
            count: rows.len() as u64,
            offset: 0,
        };
        let levels = self.grids.iter();
        let ids = match parts.ids {
            true => column(self.data, "id", &DataType::Int64)?.values::<i64>(),
            false => &[],
        };
        let next = ids.iter().max().map_or(1, |id| id.saturating_add(1));
        let size = if single { "single" } else { "double" };
        // Numbers of more than 32 bits need the format with packed ones.
        let format = match next > i64::from(i32::MAX) {
            true => "Two_Dot_One",
            false => "Two_Dot_Zero",
        };
        Ok(SpeciesHeader {
            version: format!("Version_{format}_{size}"),
            ndim: self.ndim,
            reals: parts.reals,
            ints: parts.ints,
            checkpoint: parts.ids,
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

    /// The components that the columns are, real numbers being of the type `real`.
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
                        "the column {name:?} is of {dtype}: particles hold {real}, as their \
                         positions, or int32"
                    )));
                }
            }
        }
        if ids != 2 && (ids > 0 || !ints.is_empty()) {
            return Err(Error::invalid(
                "particles with integers need the columns \"id\" (int64) and \"cpu\" (int32)",
            ));
        }
        Ok(Components {
            reals,
            ints,
            ids: ids == 2,
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
        let some = grids.iter().any(|grid| grid.count > 0);
        let list = match layout.and_then(|layout| layout.boxes.get(level)) {
            Some(ParticleBoxes::Missing) => None,
            Some(ParticleBoxes::Text(text)) => Some(text.clone()),
            Some(ParticleBoxes::Level) => Some(boxes()),
            None => some.then(boxes),
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

    /// Writes a grid's particles: all integers, then all real numbers.
    fn write_grid(
        &self,
        files: &SpeciesFiles,
        rows: std::ops::Range<usize>,
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
                let both = encode(files.header.ids(), ids[row], cpus[row]);
                let both = both.ok_or_else(|| {
                    Error::invalid(format!(
                        "particle {} of process {} has too large a number for {}",
                        ids[row], cpus[row], files.header.version
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
                native(value);
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
            "the column {name:?} is of {}, not {dtype}",
            column.dtype()
        ))),
        None => Err(Error::invalid(format!(
            "particles need the column {name:?} ({dtype})"
        ))),
    }
}
