//! Writing the files of one level: FABs, smallest and largest values, `Cell_H`.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use ambar::kinds::amr::patches::{IndexBox, PatchSource};
use ambar::{DataType, Error, Result};
use rayon::prelude::*;

use super::cellh::{CellHeader, Extrema, VERSION};
use super::fab::{Descriptor, FabLine};
use super::layout::{LevelLayout, cell_header, from_hex};
use super::plotfile::swap;
use super::write::{Counter, create, write_text};

/// Bytes of values in a file, where no layout says which boxes it holds.
const FILE_BYTES: u64 = 128 << 20;

/// A usual layout: boxes in their order, in files of about `FILE_BYTES`.
///
/// # Errors
/// Those of the source.
pub fn default_layout(source: &dyn PatchSource, number: usize) -> Result<LevelLayout> {
    let mut double = source.fields().is_empty();
    for field in source.fields() {
        double |= match source.dtype(field)? {
            DataType::Float64 => true,
            DataType::Float32 => false,
            other => {
                return Err(Error::invalid(format!(
                    "the field {field:?} is of {other}: a plotfile holds float32 or float64"
                )));
            }
        };
    }
    let bytes = source.fields().len() as u64 * if double { 8 } else { 4 };
    let (mut file, mut files) = (Vec::new(), Vec::new());
    let mut filled = FILE_BYTES;
    let levels = &source.hierarchy().levels;
    for index_box in levels.get(number).iter().flat_map(|level| &level.boxes) {
        if filled >= FILE_BYTES {
            files.push(format!("Cell_D_{:05}", files.len()));
            filled = 0;
        }
        file.push(files.len().saturating_sub(1) as u32);
        filled += index_box.cells() as u64 * bytes;
    }
    Ok(LevelLayout {
        path: format!("Level_{number}/Cell"),
        version: VERSION,
        how: 1,
        files,
        file,
        offsets: None,
        numbers: vec![(double, cfg!(target_endian = "little"))],
        lines: std::collections::BTreeMap::new(),
        extrema: None,
        text: None,
    })
}

/// For some boxes, smallest and largest value of each component.
type Rows = Vec<(usize, Vec<[f64; 2]>)>;

/// A FAB to be written.
struct Place {
    index: usize,
    start: u64,
    line: String,
    descriptor: Descriptor,
}

/// Writes the files of a level.
///
/// # Errors
/// Those of the source and of `counter`; `Invalid`; `Io`.
pub fn write_level(
    root: &Path,
    source: &dyn PatchSource,
    number: usize,
    layout: &LevelLayout,
    counter: &Counter<'_>,
) -> Result<()> {
    let hierarchy = source.hierarchy();
    let Some(level) = hierarchy.levels.get(number) else {
        return Ok(());
    };
    let components = source.fields().len();
    let path = root.join(format!("{}_H", layout.path));
    let folder = path.parent().unwrap_or(root);
    let places = places(layout, &level.boxes, hierarchy.ndim, components);
    let each = places.par_iter().zip(&layout.files).with_max_len(1);
    let rows = each.map(|(places, name)| {
        let path = folder.join(name);
        let file = create(&path)?;
        let mut rows = Vec::new();
        for place in places {
            let writer = Writer {
                source,
                number,
                file: &file,
                path: &path,
                counter,
            };
            rows.push((place.index, writer.write(place, &level.boxes[place.index])?));
        }
        file.sync_all()
            .map_err(|e| Error::io(e, &path, "writing values of the plotfile"))?;
        Ok(rows)
    });
    let rows: Vec<Rows> = rows.collect::<Result<_>>()?;
    let mut header = cell_header(layout, components);
    header.boxes = level.boxes.clone();
    header.fabs = vec![(0, 0); level.boxes.len()];
    for (file, place) in places
        .iter()
        .enumerate()
        .flat_map(|(n, p)| p.iter().map(move |p| (n, p)))
    {
        header.fabs[place.index] = (file as u32, place.start);
    }
    if header.version != VERSION {
        header.descriptor = Some(layout.descriptor(0));
    }
    header.extrema = extrema(layout, &header, rows);
    write_text(&path, &cell_text(layout, &header, hierarchy.ndim, &path))
}

/// The text of `Cell_H`: that of the layout, where it says the same.
fn cell_text(layout: &LevelLayout, header: &CellHeader, ndim: usize, path: &Path) -> String {
    match &layout.text {
        Some(text) if CellHeader::parse(text, ndim, path).is_ok_and(|found| found == *header) => {
            text.clone()
        }
        _ => header.format(ndim),
    }
}

/// Where the FABs come to lie, file by file: where the layout says, or one behind the other.
fn places(
    layout: &LevelLayout,
    boxes: &[IndexBox],
    ndim: usize,
    components: usize,
) -> Vec<Vec<Place>> {
    let mut files: Vec<Vec<Place>> = layout.files.iter().map(|_| Vec::new()).collect();
    let offsets = layout
        .offsets
        .as_ref()
        .filter(|offsets| offsets.len() == boxes.len());
    for (index, cells) in boxes.iter().enumerate() {
        // Without lines there is one description of the numbers, in Cell_H.
        let descriptor = layout.descriptor(if layout.version == VERSION { index } else { 0 });
        let line = FabLine {
            descriptor,
            cells: *cells,
            components,
            len: 0,
        };
        let said = layout.lines.get(&index).filter(|text| {
            FabLine::parse(text.as_bytes(), ndim, Path::new(""))
                .is_ok_and(|found| FabLine { len: 0, ..found } == line && found.len == text.len())
        });
        let line = match said {
            _ if layout.version != VERSION => String::new(),
            Some(text) => text.clone(),
            None => line.format(ndim),
        };
        let start = offsets.map_or(0, |offsets| offsets[index]);
        files[layout.file[index] as usize].push(Place {
            index,
            start,
            line,
            descriptor,
        });
    }
    for places in &mut files {
        places.sort_by_key(|place| (place.start, place.index));
        let bytes = |place: &Place| {
            let values = boxes[place.index].cells() * components * place.descriptor.size();
            (place.line.len() + values) as u64
        };
        let apart = |pair: &[Place]| {
            pair[0]
                .start
                .checked_add(bytes(&pair[0]))
                .is_some_and(|end| end <= pair[1].start)
        };
        if offsets.is_some() && places.windows(2).all(apart) {
            continue;
        }
        let mut end = 0;
        for place in places {
            place.start = end;
            end += bytes(place);
        }
    }
    files
}

/// Smallest and largest values: the layout's, or those of the values written.
fn extrema(layout: &LevelLayout, header: &CellHeader, rows: Vec<Rows>) -> Option<Extrema> {
    let rows_there = match header.version {
        1 | 3 => header.boxes.len(),
        4 => 1,
        _ => return None,
    };
    if let Some([min, max]) = &layout.extrema {
        let values = rows_there * header.components;
        if let (Some(min), Some(max)) = (from_hex(min, values), from_hex(max, values)) {
            return Some(Extrema { min, max });
        }
    }
    let mut sorted: Vec<_> = rows.into_iter().flatten().collect();
    sorted.sort_by_key(|(index, _)| *index);
    let mut rows: Vec<_> = sorted.into_iter().map(|(_, row)| row).collect();
    if rows_there == 1 && rows.len() > 1 {
        let none = vec![[f64::INFINITY, f64::NEG_INFINITY]; header.components];
        let total = rows.iter().fold(none, |mut total, row| {
            for (total, [low, high]) in total.iter_mut().zip(row) {
                *total = [total[0].min(*low), total[1].max(*high)];
            }
            total
        });
        rows = vec![total];
    }
    Some(Extrema {
        min: rows.iter().flatten().map(|[low, _]| *low).collect(),
        max: rows.iter().flatten().map(|[_, high]| *high).collect(),
    })
}

struct Writer<'a> {
    source: &'a dyn PatchSource,
    number: usize,
    file: &'a File,
    path: &'a Path,
    counter: &'a Counter<'a>,
}

impl Writer<'_> {
    /// Writes a FAB; smallest and largest value of each component.
    fn write(&self, place: &Place, cells: &IndexBox) -> Result<Vec<[f64; 2]>> {
        let mut at = place.start;
        self.put(place.line.as_bytes(), &mut at)?;
        let mut rows = Vec::new();
        let mut buffer = Vec::new();
        for field in self.source.fields() {
            let dtype = self.source.dtype(field)?;
            let size = dtype.size().unwrap_or(8);
            buffer.resize(cells.cells() * size, 0);
            self.source
                .read_box(self.number, place.index, field, &mut buffer)?;
            let mut values = convert(field, &dtype, &buffer, place.descriptor)?;
            rows.push(range(&values, place.descriptor));
            if place.descriptor.swapped() {
                swap(values.to_mut(), place.descriptor.size());
            }
            self.put(&values, &mut at)?;
            self.counter.add(cells.cells() * size)?;
        }
        Ok(rows)
    }

    fn put(&self, bytes: &[u8], at: &mut u64) -> Result<()> {
        self.file
            .write_all_at(bytes, *at)
            .map_err(|e| Error::io(e, self.path, "writing values of the plotfile"))?;
        *at += bytes.len() as u64;
        Ok(())
    }
}

/// The values in the size that the FAB has.
fn convert<'a>(
    field: &str,
    dtype: &DataType,
    values: &'a [u8],
    descriptor: Descriptor,
) -> Result<std::borrow::Cow<'a, [u8]>> {
    let (singles, doubles) = (values.as_chunks::<4>().0, values.as_chunks::<8>().0);
    let converted = match (dtype, descriptor.double) {
        (DataType::Float64, true) | (DataType::Float32, false) => return Ok(values.into()),
        (DataType::Float32, true) => {
            let each = singles
                .iter()
                .map(|bytes| f64::from(f32::from_ne_bytes(*bytes)));
            each.flat_map(f64::to_ne_bytes).collect::<Vec<_>>()
        }
        (DataType::Float64, false) => {
            let each = doubles
                .iter()
                .map(|bytes| f64::from_ne_bytes(*bytes) as f32);
            each.flat_map(f32::to_ne_bytes).collect()
        }
        (other, _) => {
            return Err(Error::invalid(format!(
                "the field {field:?} is of {other}: a plotfile holds float32 or float64"
            )));
        }
    };
    Ok(converted.into())
}

/// Smallest and largest of the values that are numbers.
fn range(values: &[u8], descriptor: Descriptor) -> [f64; 2] {
    let mut range = [f64::INFINITY, f64::NEG_INFINITY];
    let mut add = |value: f64| range = [range[0].min(value), range[1].max(value)];
    if descriptor.double {
        let each = values.as_chunks().0.iter();
        each.for_each(|bytes| add(f64::from_ne_bytes(*bytes)));
    } else {
        let each = values.as_chunks().0.iter();
        each.for_each(|bytes| add(f64::from(f32::from_ne_bytes(*bytes))));
    }
    range
}
