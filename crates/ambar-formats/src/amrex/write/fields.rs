//! Writing the files of one level: FABs, minima and maxima, `Cell_H`.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use ambar::kinds::amr::patches::{IndexBox, PatchSource};
use ambar::{DataType, Error, Result};
use rayon::prelude::*;

use super::create::{create, write_text};
use crate::amrex::files::cell_header::{CellHeader, VERSION};
use crate::amrex::files::extrema::{Extrema, ValueRange};
use crate::amrex::files::fab::{Descriptor, FabLine, swap_bytes};
use crate::amrex::layout::{LevelLayout, cell_header, from_hex};
use crate::progress::ProgressCounter;

/// Bytes of values in a file of the default layout.
const FILE_BYTES: u64 = 128 << 20;

/// The default layout: boxes in order, in files of about `FILE_BYTES`.
///
/// # Errors
/// `Invalid` for a field that is not of reals; those of the source.
pub fn default_layout(source: &dyn PatchSource, number: usize) -> Result<LevelLayout> {
    let mut is_double = source.fields().is_empty();
    for field in source.fields() {
        is_double |= match source.dtype(field)? {
            DataType::Float64 => true,
            DataType::Float32 => false,
            other => {
                return Err(Error::invalid(format!(
                    "field {field:?}: expected float32 or float64 values for a plotfile, found {other}; \
                     leave the field out or convert it"
                )));
            }
        };
    }
    let bytes = source.fields().len() as u64 * if is_double { 8 } else { 4 };
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
        numbers: vec![(is_double, cfg!(target_endian = "little"))],
        lines: std::collections::BTreeMap::new(),
        extrema: None,
        text: None,
    })
}

/// The minimum and maximum of each component of a box.
struct BoxExtrema {
    index: usize,
    components: Vec<ValueRange>,
}

/// A FAB to write.
struct FabPlacement {
    index: usize,
    start: u64,
    line: String,
    descriptor: Descriptor,
}

/// Writes the files of a level.
pub struct LevelWriter<'a> {
    /// The fields and values.
    pub source: &'a dyn PatchSource,
    /// Number of the level.
    pub number: usize,
    /// The layout of its files.
    pub layout: &'a LevelLayout,
    /// Counts bytes of values.
    pub counter: &'a ProgressCounter<'a>,
}

impl LevelWriter<'_> {
    /// Writes the files of the level to the plotfile in the folder `root`.
    ///
    /// # Errors
    /// Those of the source and of the progress callback; `Invalid`; `Io`.
    pub fn write(&self, root: &Path) -> Result<()> {
        let hierarchy = self.source.hierarchy();
        let Some(level) = hierarchy.levels.get(self.number) else {
            return Ok(());
        };
        let layout = self.layout;
        let components = self.source.fields().len();
        let path = root.join(format!("{}_H", layout.path));
        let folder = path.parent().unwrap_or(root);
        let files = placements(layout, &level.boxes, hierarchy.ndim, components);
        let each = files.par_iter().zip(&layout.files).with_max_len(1);
        let extrema =
            each.map(|(fabs, name)| self.write_file(&folder.join(name), fabs, &level.boxes));
        let extrema: Vec<Vec<BoxExtrema>> = extrema.collect::<Result<_>>()?;
        let mut header = cell_header(layout, components);
        header.boxes = level.boxes.clone();
        header.fabs = vec![(0, 0); level.boxes.len()];
        for (file, fabs) in (0u32..).zip(&files) {
            for fab in fabs {
                header.fabs[fab.index] = (file, fab.start);
            }
        }
        if header.version != VERSION {
            header.descriptor = Some(layout.descriptor(0));
        }
        header.extrema = level_extrema(layout, &header, extrema);
        write_text(&path, &cell_text(layout, &header, hierarchy.ndim, &path))
    }

    /// Writes one file of FABs.
    fn write_file(
        &self,
        path: &Path,
        fabs: &[FabPlacement],
        boxes: &[IndexBox],
    ) -> Result<Vec<BoxExtrema>> {
        let file = create(path)?;
        let mut writer = FabWriter {
            level: self,
            file: &file,
            path,
            position: 0,
        };
        let mut extrema = Vec::new();
        for fab in fabs {
            extrema.push(writer.write(fab, &boxes[fab.index])?);
        }
        file.sync_all()
            .map_err(|e| Error::io(e, path, "writing values of the plotfile"))?;
        Ok(extrema)
    }
}

/// The text of `Cell_H`: that of the layout if it has the same contents, else a new one.
fn cell_text(layout: &LevelLayout, header: &CellHeader, ndim: usize, path: &Path) -> String {
    match &layout.text {
        Some(text) if CellHeader::parse(text, ndim, path).is_ok_and(|found| found == *header) => {
            text.clone()
        }
        _ => header.format(ndim),
    }
}

/// The placement of the FABs in each file: that of the layout if it is valid, else consecutive.
fn placements(
    layout: &LevelLayout,
    boxes: &[IndexBox],
    ndim: usize,
    components: usize,
) -> Vec<Vec<FabPlacement>> {
    let mut files: Vec<Vec<FabPlacement>> = layout.files.iter().map(|_| Vec::new()).collect();
    let offsets = layout
        .offsets
        .as_ref()
        .filter(|offsets| offsets.len() == boxes.len());
    for (index, cells) in boxes.iter().enumerate() {
        // FABs without a line of text share the descriptor in `Cell_H`.
        let descriptor = layout.descriptor(if layout.version == VERSION { index } else { 0 });
        let line = FabLine {
            descriptor,
            cells: *cells,
            components,
            len: 0,
        };
        let stored = layout.lines.get(&index).filter(|text| {
            FabLine::parse(text.as_bytes(), ndim, Path::new(""))
                .is_ok_and(|found| FabLine { len: 0, ..found } == line && found.len == text.len())
        });
        let line = match stored {
            _ if layout.version != VERSION => String::new(),
            Some(text) => text.clone(),
            None => line.format(ndim),
        };
        let start = offsets.map_or(0, |offsets| offsets[index]);
        files[layout.file[index] as usize].push(FabPlacement {
            index,
            start,
            line,
            descriptor,
        });
    }
    for places in &mut files {
        places.sort_by_key(|place| (place.start, place.index));
        let bytes = |place: &FabPlacement| {
            let values = boxes[place.index].cells() * components * place.descriptor.size();
            (place.line.len() + values) as u64
        };
        let are_disjoint = |pair: &[FabPlacement]| {
            pair[0]
                .start
                .checked_add(bytes(&pair[0]))
                .is_some_and(|end| end <= pair[1].start)
        };
        if offsets.is_some() && places.windows(2).all(are_disjoint) {
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

/// Minima and maxima for `Cell_H`: those of the layout, or of the values written.
fn level_extrema(
    layout: &LevelLayout,
    header: &CellHeader,
    written: Vec<Vec<BoxExtrema>>,
) -> Option<Extrema> {
    let is_total = header.has_totals()?;
    let row_count = if is_total { 1 } else { header.boxes.len() };
    if let Some([min, max]) = &layout.extrema {
        let values = row_count * header.components;
        if let (Some(min), Some(max)) = (from_hex(min, values), from_hex(max, values)) {
            return Some(Extrema { min, max });
        }
    }
    let mut sorted: Vec<_> = written.into_iter().flatten().collect();
    sorted.sort_by_key(|row| row.index);
    let rows: Vec<_> = sorted.into_iter().map(|row| row.components).collect();
    Some(Extrema::of_boxes(&rows, header.components, is_total))
}

/// Writes the FABs of one file.
struct FabWriter<'a> {
    level: &'a LevelWriter<'a>,
    file: &'a File,
    path: &'a Path,
    position: u64,
}

impl FabWriter<'_> {
    /// Writes a FAB, and returns the minimum and maximum of each component.
    fn write(&mut self, fab: &FabPlacement, cells: &IndexBox) -> Result<BoxExtrema> {
        let source = self.level.source;
        self.position = fab.start;
        self.write_bytes(fab.line.as_bytes())?;
        let mut components = Vec::new();
        let mut buffer = Vec::new();
        for field in source.fields() {
            let dtype = source.dtype(field)?;
            let size = dtype.size().unwrap_or(8);
            buffer.resize(cells.cells() * size, 0);
            source.read_box(self.level.number, fab.index, field, &mut buffer)?;
            let mut values = convert(field, &dtype, &buffer, fab.descriptor)?;
            components.push(ValueRange::of(&values, fab.descriptor.double));
            if fab.descriptor.is_swapped() {
                swap_bytes(values.to_mut(), fab.descriptor.size());
            }
            self.write_bytes(&values)?;
            self.level.counter.add((cells.cells() * size) as u64)?;
        }
        Ok(BoxExtrema {
            index: fab.index,
            components,
        })
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.file
            .write_all_at(bytes, self.position)
            .map_err(|e| Error::io(e, self.path, "writing values of the plotfile"))?;
        self.position += bytes.len() as u64;
        Ok(())
    }
}

/// The values in the precision of the FAB.
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
                "field {field:?}: expected float32 or float64 values for a plotfile, found {other}; leave \
                 the field out or convert it"
            )));
        }
    };
    Ok(converted.into())
}
