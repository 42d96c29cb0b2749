//! Loads boxes of a hierarchy into memory: those of a region, down to a level.

use std::sync::Arc;

use rayon::prelude::*;

use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::amr::patches::{IndexBox, PatchAmr, PatchHierarchy, PatchSource};
use crate::kinds::region::{Region, Span};

impl PatchAmr {
    /// Boxes of `source` with some of its fields, in memory.
    ///
    /// Levels finer than `max_level` are left out; covered cells of `max_level` become leaves. Boxes are
    /// cut to the bounding box of `region`, rounded outward to cells of level 0. Across periodic faces
    /// the bounding box has several parts.
    ///
    /// # Errors
    /// `Invalid` if the number of dimensions of the region differs; `NotFound` for a field or level that
    /// does not exist; `Corrupt`, `Io`.
    pub fn load_boxes(
        source: Arc<dyn PatchSource>,
        fields: Vec<String>,
        region: Option<&Region>,
        max_level: Option<usize>,
    ) -> Result<Self> {
        let loaded = Self::from_fields(
            Arc::new(PartOfBoxes::new(source, region, max_level)?),
            fields,
        )?;
        loaded.read_all()?;
        Ok(loaded)
    }

    /// Reads all boxes of all fields; they are kept.
    fn read_all(&self) -> Result<()> {
        let levels = self.nest.hierarchy().levels.iter().enumerate();
        let boxes =
            levels.flat_map(|(number, level)| (0..level.boxes.len()).map(move |b| (number, b)));
        let fields = 0..self.fields.len();
        let all: Vec<_> = boxes
            .flat_map(|place| fields.clone().map(move |field| (place, field)))
            .collect();
        all.into_par_iter()
            .with_max_len(1)
            .try_for_each(|((level, index), field)| self.values.load(level, index, field))
    }
}

/// Parts of the boxes of a source, as a source.
struct PartOfBoxes {
    source: Arc<dyn PatchSource>,
    hierarchy: PatchHierarchy,
    /// By level, then box: the box of the source that it is a part of.
    whole: Vec<Vec<usize>>,
}

impl PartOfBoxes {
    fn new(
        source: Arc<dyn PatchSource>,
        region: Option<&Region>,
        max_level: Option<usize>,
    ) -> Result<Self> {
        let mut hierarchy = source.hierarchy().clone();
        let levels = hierarchy.levels.len();
        if let Some(last) = max_level {
            hierarchy.levels.truncate(last.saturating_add(1));
        }
        if let Some(finest) = hierarchy.levels.last_mut() {
            finest.ratio = [1; 3];
        }
        let mut parts = match region {
            Some(region) => Some(parts_of(&hierarchy, region)?),
            None => None,
        };
        let mut whole = Vec::with_capacity(levels);
        for level in &mut hierarchy.levels {
            let Some(parts) = &mut parts else {
                whole.push((0..level.boxes.len()).collect());
                continue;
            };
            let cut = level.boxes.iter().enumerate().flat_map(|(index, all)| {
                let cut = parts.iter().map(|part| part.intersection(all));
                cut.map(move |cut| (index, cut))
            });
            let (places, boxes) = cut.filter(|(_, cut)| !cut.is_empty()).unzip();
            level.boxes = boxes;
            whole.push(places);
            for part in parts {
                *part = part.refined(level.ratio);
            }
        }
        Ok(Self {
            source,
            hierarchy,
            whole,
        })
    }

    fn missing(level: usize, index: usize) -> Error {
        Error::not_found(format!("box {index} of level {level} does not exist"))
    }
}

/// The cells of level 0 around a region: one box, or several across periodic faces.
fn parts_of(hierarchy: &PatchHierarchy, region: &Region) -> Result<Vec<IndexBox>> {
    region.check(hierarchy.ndim)?;
    let coarsest = &hierarchy.levels[0];
    let domain = coarsest.domain;
    let mut parts = vec![domain];
    for (d, spans) in region.spans().iter().enumerate().take(hierarchy.ndim) {
        let (lower, side) = (hierarchy.lower[d], coarsest.cell_size[d]);
        let cells = |span: &Span| {
            // A corner on a cell's face, except for rounding, does not include the next cell.
            let lo = ((span.lo - lower) / side + 1e-9).floor() as i64;
            let hi = ((span.hi - lower) / side - 1e-9).ceil() as i64;
            let hi = hi.max(lo.saturating_add(1));
            let within = |index: i64| {
                domain.lo[d]
                    .saturating_add(index)
                    .clamp(domain.lo[d], domain.hi[d])
            };
            [within(lo), within(hi)]
        };
        let mut ranges: Vec<[i64; 2]> = spans
            .iter()
            .filter(|span| span.lo <= span.hi)
            .map(cells)
            .collect();
        ranges.sort_unstable();
        ranges.dedup_by(|next, range| {
            let joins = next[0] <= range[1];
            if joins {
                range[1] = range[1].max(next[1]);
            }
            joins
        });
        parts = parts
            .iter()
            .flat_map(|part| {
                ranges.iter().map(move |[lo, hi]| {
                    let mut part = *part;
                    (part.lo[d], part.hi[d]) = (*lo, *hi);
                    part
                })
            })
            .filter(|part| !part.is_empty())
            .collect();
    }
    Ok(parts)
}

impl PatchSource for PartOfBoxes {
    fn hierarchy(&self) -> &PatchHierarchy {
        &self.hierarchy
    }

    fn fields(&self) -> &[String] {
        self.source.fields()
    }

    fn dtype(&self, field: &str) -> Result<DataType> {
        self.source.dtype(field)
    }

    fn read_box(&self, level: usize, index: usize, field: &str, out: &mut [u8]) -> Result<()> {
        let missing = || Self::missing(level, index);
        let place = self
            .whole
            .get(level)
            .and_then(|boxes| boxes.get(index))
            .ok_or_else(missing)?;
        let part = &self.hierarchy.levels[level].boxes[index];
        self.source.read_part(level, *place, field, part, out)
    }
}
