//! Minima and maxima of the values that a conversion reads.

use std::sync::{Mutex, PoisonError};

use ambar::kinds::amr::patches::{IndexBox, PatchHierarchy, PatchSource};
use ambar::{DataType, Result};

use crate::amrex::files::extrema::{Extrema, ValueRange};

/// A source that records the minima and maxima of the values that are read from it.
pub struct ObservedExtrema<'a> {
    source: &'a dyn PatchSource,
    /// By level and box, a range for each field.
    ranges: Vec<Mutex<Vec<Vec<ValueRange>>>>,
}

impl<'a> ObservedExtrema<'a> {
    /// Observes `source`.
    pub fn new(source: &'a dyn PatchSource) -> Self {
        let fields = source.fields().len();
        let levels = source.hierarchy().levels.iter();
        let ranges = levels
            .map(|level| Mutex::new(vec![vec![ValueRange::EMPTY; fields]; level.boxes.len()]))
            .collect();
        Self { source, ranges }
    }

    /// The extrema of a level, after all its values were read: of each box, or with `is_total` of the level.
    pub fn of_level(&self, level: usize, is_total: bool) -> Extrema {
        let ranges = self.ranges[level].lock();
        let ranges = ranges.unwrap_or_else(PoisonError::into_inner);
        Extrema::of_boxes(&ranges, self.source.fields().len(), is_total)
    }

    fn observe(&self, level: usize, index: usize, field: &str, values: &[u8]) -> Result<()> {
        let is_double = self.source.dtype(field)? == DataType::Float64;
        let range = ValueRange::of(values, is_double);
        let place = self.source.fields().iter().position(|name| name == field);
        let ranges = self.ranges.get(level).map(Mutex::lock);
        let ranges = ranges.map(|ranges| ranges.unwrap_or_else(PoisonError::into_inner));
        if let (Some(mut ranges), Some(place)) = (ranges, place)
            && let Some(fields) = ranges.get_mut(index)
        {
            fields[place] = fields[place].join(range);
        }
        Ok(())
    }
}

impl PatchSource for ObservedExtrema<'_> {
    fn hierarchy(&self) -> &PatchHierarchy {
        self.source.hierarchy()
    }

    fn fields(&self) -> &[String] {
        self.source.fields()
    }

    fn dtype(&self, field: &str) -> Result<DataType> {
        self.source.dtype(field)
    }

    fn read_box(&self, level: usize, index: usize, field: &str, out: &mut [u8]) -> Result<()> {
        self.source.read_box(level, index, field, out)?;
        self.observe(level, index, field, out)
    }

    fn read_part(
        &self,
        level: usize,
        index: usize,
        field: &str,
        part: &IndexBox,
        out: &mut [u8],
    ) -> Result<()> {
        self.source.read_part(level, index, field, part, out)?;
        self.observe(level, index, field, out)
    }
}
