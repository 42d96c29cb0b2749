//! Selects cells of a tree, with their fields and derived columns.

use std::ops::Range;

use crate::condition::Condition;
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::amr::tree::curve_walk::{BLOCK, Centres, CurveWalk};
use crate::kinds::amr::tree::derived_columns::{
    CurvePosition, DerivedColumn, derive, small_to_f64,
};
use crate::kinds::amr::{AXES, AmrTree, LEVEL};
use crate::kinds::computed::{ComputedColumns, WithComputed};
use crate::kinds::region::Region;
use crate::kinds::select::{Rows, Selection, select, touched};
use crate::kinds::source::ColumnSource;
use crate::memory::Column;

impl AmrTree {
    /// Fields and derived columns (`level` int32; `x`, `y`, `z`, `dx` float64, code length; `ix`,
    /// `iy`, `iz` int64) of the selected cells, along the Morton curve. A cell is in
    /// a region if its centre is. Only chunks that can contain such cells are read.
    ///
    /// # Errors
    /// `NotFound` for a column that does not exist; `Invalid` if the number of dimensions of the region
    /// differs, the levels are in the wrong order, or the condition names a column that is not numeric;
    /// `Corrupt`, `Io`.
    pub fn cells(&self, columns: &[&str], selection: &Selection) -> Result<Vec<(String, Column)>> {
        let levels = self.check_selection(selection)?;
        let conditions: Vec<&Condition> = levels.iter().chain(&selection.condition).collect();
        self.prepare(columns, &conditions, &selection.computed)?;
        select(self, columns, selection, &conditions)
    }

    /// Number of [`AmrTree::chunks`] of which [`AmrTree::cells`] reads fields for `selection`.
    ///
    /// # Errors
    /// As `cells`.
    pub fn chunks_touched(&self, selection: &Selection) -> Result<u64> {
        let levels = self.check_selection(selection)?;
        let conditions: Vec<&Condition> = levels.iter().chain(&selection.condition).collect();
        self.prepare(&[], &conditions, &selection.computed)?;
        touched(self, selection, &conditions)
    }

    /// Bounds of the values of a column in each chunk, NaN excluded; `None` if they are unknown.
    ///
    /// # Errors
    /// `NotFound` if the column does not exist, `Invalid` if it is not numeric; `Corrupt`, `Io`.
    pub fn bounds(
        &self,
        column: &str,
        computed: &ComputedColumns,
    ) -> Result<Option<Vec<[f64; 2]>>> {
        WithComputed::new(self, computed).bounds(column)
    }

    /// Prepares the source for reading these columns and those of conditions.
    fn prepare(
        &self,
        columns: &[&str],
        conditions: &[&Condition],
        computed: &ComputedColumns,
    ) -> Result<()> {
        let mut names = columns.to_vec();
        names.extend(conditions.iter().flat_map(|condition| condition.fields()));
        self.source.prepare(&computed.needed(&names))
    }

    /// Checks a selection, and returns its levels as a condition.
    fn check_selection(&self, selection: &Selection) -> Result<Option<Condition>> {
        if let Some(region) = &selection.region {
            region.check(self.shape.ndim)?;
        }
        match selection.levels {
            None => Ok(None),
            Some((lo, hi)) if lo <= hi => Ok(Some(Condition::between(LEVEL, lo.into(), hi.into()))),
            Some((lo, hi)) => Err(Error::invalid(format!(
                "invalid levels: {lo} to {hi}; give the coarsest first"
            ))),
        }
    }

    /// The levels of some rows.
    pub(super) fn levels(&self, rows: Range<u64>) -> Result<Vec<u8>> {
        let mut levels = vec![0; (rows.end - rows.start) as usize];
        self.source.read(LEVEL, rows, &mut levels)?;
        Ok(levels)
    }

    /// The position of a chunk's first cell.
    pub(super) fn start(&self, chunk: usize) -> Result<CurvePosition> {
        let corner = self.geometry()?.corners.get(chunk).ok_or_else(|| {
            Error::corrupt(format!(
                "the index of chunks has no entry {chunk}; restore the file from a copy"
            ))
        })?;
        Ok(CurvePosition {
            row: chunk as u64 * self.source.chunk_rows(),
            corner: *corner,
        })
    }
}

impl Rows for AmrTree {
    fn source(&self) -> &dyn ColumnSource {
        &*self.source
    }

    fn names(&self) -> Vec<String> {
        let mut names = self.fields.clone();
        names.extend(self.derived());
        names
    }

    fn derived(&self, name: &str) -> Option<DataType> {
        DerivedColumn::parse(name, self.shape.ndim).map(DerivedColumn::dtype)
    }

    fn derive(&self, rows: Range<u64>, names: &[&str], outs: &mut [&mut [u8]]) -> Result<()> {
        let columns: Vec<DerivedColumn> = names
            .iter()
            .filter_map(|name| DerivedColumn::parse(name, self.shape.ndim))
            .collect();
        let chunk = (rows.start / self.source.chunk_rows().max(1)) as usize;
        let levels = self.levels(rows)?;
        let jumps = &self.geometry()?.jumps;
        derive(
            &self.shape,
            jumps,
            self.start(chunk)?,
            &levels,
            &columns,
            outs,
        )
    }

    fn positions(&self) -> Vec<String> {
        AXES[..self.shape.ndim]
            .iter()
            .map(|axis| (*axis).to_owned())
            .collect()
    }

    fn narrow(&self, rows: Range<u64>, region: &Region, mask: &mut [bool]) -> Result<bool> {
        let chunk = (rows.start / self.source.chunk_rows().max(1)) as usize;
        let levels = self.levels(rows)?;
        let (start, jumps) = (self.start(chunk)?, &self.geometry()?.jumps);
        let mut walk = CurveWalk::new(&self.shape, start.row, start.corner, jumps);
        let mut centres = Centres::default();
        let mut positions = [const { Vec::new() }; 3];
        let unit = self.shape.half_unit();
        // In blocks, so that the positions stay in the processor's cache.
        for (levels, mask) in levels.chunks(BLOCK).zip(mask.chunks_mut(BLOCK)) {
            walk.next(levels, &mut centres)?;
            for (x, centres) in positions.iter_mut().zip(&centres.axes[..self.shape.ndim]) {
                x.clear();
                x.extend(centres.iter().map(|x| small_to_f64(*x) * unit));
            }
            let positions = positions.each_ref().map(Vec::as_slice);
            region.narrow(&positions[..self.shape.ndim], mask);
        }
        Ok(true)
    }

    fn sides(&self) -> Vec<String> {
        vec!["dx".to_owned()]
    }

    fn boxes(&self, with_sides: bool) -> Result<Option<Vec<[[f64; 3]; 2]>>> {
        let geometry = self.geometry()?;
        let mut boxes = geometry.boxes.clone();
        if with_sides {
            for ([lo, hi], [coarsest, _]) in boxes.iter_mut().zip(&geometry.levels) {
                let half = self.shape.cell_size(*coarsest) / 2.0;
                lo[..self.shape.ndim].iter_mut().for_each(|x| *x -= half);
                hi[..self.shape.ndim].iter_mut().for_each(|x| *x += half);
            }
        }
        Ok(Some(boxes))
    }

    fn boxes_hold_all(&self) -> bool {
        true
    }

    fn may_reach(&self, chunk: usize, region: &Region) -> Result<bool> {
        let unit = 2.0 * self.shape.half_unit();
        let touches = |corner: &[u64; 3], side: u64| {
            let lo = corner.map(|x| x as f64 * unit);
            let hi = corner.map(|x| (x + side) as f64 * unit);
            region.may_touch(&lo, &hi)
        };
        Ok(self.geometry()?.chunk_touches(&self.shape, chunk, touches))
    }

    fn ranges(&self, name: &str) -> Result<Option<Vec<[f64; 2]>>> {
        let geometry = self.geometry()?;
        let of_boxes = |d: usize| {
            geometry
                .boxes
                .iter()
                .map(|[lo, hi]| [lo[d], hi[d]])
                .collect()
        };
        Ok(match DerivedColumn::parse(name, self.shape.ndim) {
            None => self.source.ranges(name)?,
            Some(DerivedColumn::Level) => {
                let levels = geometry.levels.iter();
                Some(
                    levels
                        .map(|[lo, hi]| [f64::from(*lo), f64::from(*hi)])
                        .collect(),
                )
            }
            Some(DerivedColumn::Centre(d)) => Some(of_boxes(d)),
            Some(DerivedColumn::Size) => {
                let levels = geometry.levels.iter();
                let sizes =
                    levels.map(|[lo, hi]| [self.shape.cell_size(*hi), self.shape.cell_size(*lo)]);
                Some(sizes.collect())
            }
            Some(DerivedColumn::Index(_)) => None,
        })
    }
}
