//! Nesting of the levels' boxes: checked when opened, then searched by region.

use rayon::prelude::*;

use super::box_tree::BoxTree;
use super::rows::rows;
use super::{IndexBox, PatchHierarchy, PatchLevel};
use crate::error::{Error, Result};

/// Maximum number of levels of a hierarchy.
const MAX_LEVELS: usize = 64;

/// Maximum number of cells of a level.
const MAX_CELLS: u128 = 1 << 48;

/// A subset of the cells of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellSet {
    /// All cells in the boxes of the level.
    All,
    /// The cells that no box of the next finer level covers.
    Leaves,
}

/// A hierarchy whose boxes are disjoint, and made of whole cells of the next coarser level's boxes.
pub(crate) struct Nest {
    hierarchy: PatchHierarchy,
    trees: Vec<BoxTree>,
}

impl Nest {
    /// Checks the hierarchy.
    ///
    /// # Errors
    /// `Invalid` if boxes of a level overlap, are outside of its domain or of the boxes of the next
    /// coarser level, or begin or end inside of its cells; if domains do not match; `Limit` for more levels
    /// or cells than can be handled.
    pub fn new(mut hierarchy: PatchHierarchy) -> Result<Self> {
        hierarchy.check()?;
        if hierarchy.levels.len() > MAX_LEVELS {
            let found = hierarchy.levels.len();
            return Err(Error::limit(format!(
                "expected at most {MAX_LEVELS} levels of boxes, found {found}"
            )));
        }
        // The refinement ratio of the finest level is unused.
        if let Some(finest) = hierarchy.levels.last_mut() {
            finest.ratio = [1; 3];
        }
        let bounds = hierarchy.lower.iter().chain(&hierarchy.upper);
        if bounds.into_iter().any(|bound| !bound.is_finite()) {
            return Err(Error::invalid(
                "the corners of the domain are not finite numbers",
            ));
        }
        let trees: Vec<BoxTree> = hierarchy
            .levels
            .iter()
            .map(|level| BoxTree::new(&level.boxes))
            .collect();
        for (number, level) in hierarchy.levels.iter().enumerate() {
            let coarser = number.checked_sub(1).map(|n| &hierarchy.levels[n]);
            check_level(level, coarser, &trees[number])
                .map_err(|error| error.at_node(format!("level {number}")))?;
        }
        let nest = Self { hierarchy, trees };
        for level in 1..nest.levels() {
            nest.check_nesting(level)?;
        }
        Ok(nest)
    }

    /// Checks that the boxes of a level are in those of the next coarser level: leaf cells do not
    /// overlap.
    fn check_nesting(&self, level: usize) -> Result<()> {
        let ratio = self.level(level - 1).ratio;
        let out = self.level(level).boxes.par_iter().find_first(|b| {
            let coarse = b.coarsened(ratio);
            self.count(level - 1, &coarse, CellSet::All) < coarse.cells() as u64
        });
        match out {
            None => Ok(()),
            Some(out) => Err(Error::invalid(format!(
                "{out} is not inside the boxes of the next coarser level"
            ))
            .at_node(format!("level {level}"))),
        }
    }

    pub fn hierarchy(&self) -> &PatchHierarchy {
        &self.hierarchy
    }

    pub fn ndim(&self) -> usize {
        self.hierarchy.ndim
    }

    pub fn level(&self, level: usize) -> &PatchLevel {
        &self.hierarchy.levels[level]
    }

    pub fn levels(&self) -> usize {
        self.hierarchy.levels.len()
    }

    /// How many times finer the cells of level `fine` are than those of `coarse`, which is not finer.
    pub fn ratio(&self, coarse: usize, fine: usize) -> [i64; 3] {
        let between = &self.hierarchy.levels[coarse..fine];
        between.iter().fold([1; 3], |all, level| {
            std::array::from_fn(|d| all[d] * level.ratio[d])
        })
    }

    /// Calls `visit` with each box of `level` that overlaps `region`, and the intersection.
    pub fn boxes_in(
        &self,
        level: usize,
        region: &IndexBox,
        mut visit: impl FnMut(usize, IndexBox),
    ) {
        self.trees[level].meet(region, &mut visit);
    }

    /// Calls `visit` with each part of `region`, in cells of `level`, that a box of the next finer
    /// level covers, and the index of that box.
    pub fn covered_in(
        &self,
        level: usize,
        region: &IndexBox,
        mut visit: impl FnMut(usize, IndexBox),
    ) {
        if let Some(finer) = self.trees.get(level + 1) {
            let ratio = self.level(level).ratio;
            finer.meet(&region.refined(ratio), &mut |place, part| {
                visit(place, part.coarsened(ratio));
            });
        }
    }

    /// Number of cells of a region in the subset `cells`.
    pub fn count(&self, level: usize, region: &IndexBox, cells: CellSet) -> u64 {
        let mut count = 0;
        self.boxes_in(level, region, |_, part| {
            count += part.cells() as u64;
            if cells == CellSet::Leaves {
                self.covered_in(level, &part, |_, covered| count -= covered.cells() as u64);
            }
        });
        count
    }

    /// Number of cells of a level in the subset `cells`.
    pub fn cells(&self, level: usize, cells: CellSet) -> u64 {
        let boxes = self.level(level).boxes.par_iter();
        boxes
            .map(|index_box| self.count(level, index_box, cells))
            .sum()
    }

    /// Sets the flags of the cells of `region`, x fastest, in the subset `cells`; clears the others.
    pub fn mask(&self, level: usize, region: &IndexBox, cells: CellSet, mask: &mut [bool]) {
        mask.fill(false);
        self.boxes_in(level, region, |_, part| {
            rows(&part, [region], |[start], len| {
                mask[start..start + len].fill(true);
            });
        });
        if cells == CellSet::Leaves {
            self.covered_in(level, region, |_, part| {
                rows(&part, [region], |[start], len| {
                    mask[start..start + len].fill(false);
                });
            });
        }
    }

    /// Whether all cells have the same side in all dimensions, except for rounding.
    pub fn has_cubes(&self) -> bool {
        let levels = self.hierarchy.levels.iter();
        let mut sides = levels.map(|level| &level.cell_size[..self.ndim()]);
        sides.all(|sides| {
            let differs = |side: &f64| (side - sides[0]).abs() > 1e-9 * sides[0];
            !sides.iter().any(differs)
        })
    }

    /// The coordinate in code length that is `halves` half cells of `level` above the lower corner of
    /// the domain.
    pub fn place(&self, level: usize, d: usize, halves: i64) -> f64 {
        self.hierarchy.lower[d] + halves as f64 * (self.level(level).cell_size[d] / 2.0)
    }

    /// The bounding box of the cells of a region, in code length; 0 in dimensions that are not used.
    pub fn corners(&self, level: usize, region: &IndexBox) -> [[f64; 3]; 2] {
        let domain = self.level(level).domain;
        [region.lo, region.hi].map(|cell: [i64; 3]| {
            let mut corner = [0.0; 3];
            for (d, x) in corner.iter_mut().enumerate().take(self.ndim()) {
                *x = self.place(level, d, 2 * (cell[d] - domain.lo[d]));
            }
            corner
        })
    }

    /// The bounding box of the centres of the cells of a region, in code length; 0 in dimensions that are not
    /// used. A region without cells yields its corner.
    pub fn centres(&self, level: usize, region: &IndexBox) -> [[f64; 3]; 2] {
        let domain = self.level(level).domain;
        let last = std::array::from_fn(|d| (region.hi[d] - 1).max(region.lo[d]));
        [region.lo, last].map(|cell: [i64; 3]| {
            std::array::from_fn(|d| {
                if d < self.ndim() {
                    self.place(level, d, 2 * (cell[d] - domain.lo[d]) + 1)
                } else {
                    0.0
                }
            })
        })
    }
}

fn check_level(level: &PatchLevel, coarser: Option<&PatchLevel>, tree: &BoxTree) -> Result<()> {
    let all = level.boxes.iter().chain([&level.domain]);
    let cells = |b: &IndexBox| b.shape().iter().map(|n| *n as u128).product::<u128>();
    let boxes = level
        .boxes
        .iter()
        .fold(0u128, |sum, b| sum.saturating_add(cells(b)));
    if boxes > MAX_CELLS || level.boxes.len() >= u32::MAX as usize {
        let count = level.boxes.len();
        return Err(Error::limit(format!(
            "expected at most {MAX_CELLS} cells, found {boxes} in {count} boxes"
        )));
    }
    if let Some(out) = level.boxes.iter().find(|b| !level.domain.contains(b)) {
        return Err(Error::invalid(format!(
            "{out} is outside of the domain {}",
            level.domain
        )));
    }
    if let Some(coarser) = coarser {
        if coarser.domain.refined(coarser.ratio) != level.domain {
            return Err(Error::invalid(format!(
                "the domain, {}, is not the next coarser level's refined by {:?}, {}",
                level.domain, coarser.ratio, coarser.domain
            )));
        }
        let aligned = |b: &&IndexBox| b.coarsened(coarser.ratio).refined(coarser.ratio) == **b;
        if let Some(cut) = all.clone().find(|b| !aligned(b)) {
            return Err(Error::invalid(format!(
                "{cut} begins or ends inside of a cell of the next coarser level, whose cells are \
                 {:?} times larger",
                coarser.ratio
            )));
        }
    }
    let overlapping = level.boxes.par_iter().enumerate().find_first(|(i, b)| {
        let mut others = false;
        tree.meet(b, &mut |place, _| others |= place != *i);
        others
    });
    match overlapping {
        None => Ok(()),
        Some((_, b)) => Err(Error::invalid(format!("{b} overlaps another box"))),
    }
}
