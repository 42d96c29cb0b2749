//! Rows of leaf cells: a traversal of all octs along the Morton curve, which also checks that the tree
//! is complete.

use ambar::kinds::amr::Jump;
use ambar::{Error, Result};

use super::lattice::Lattice;
use super::morton_key::MortonKey;
use super::octs::Oct;

/// Marks an entry of `first` as an index into `runs`.
const SPLIT: u64 = 1 << 63;

/// The rows of each oct's wanted cells. Adjacent cells of the mask have consecutive rows: a run.
pub struct CellRows {
    /// For each oct by its id, the row of its first wanted cell. If the oct has several runs, `SPLIT`
    /// and the index into `runs` of the row of the first one.
    first: Vec<u64>,
    runs: Vec<u64>,
}

/// Consecutive cells of an oct with consecutive rows.
#[derive(Clone, Copy, Debug)]
pub struct CellRun {
    /// The first cell.
    pub cell: usize,
    /// The number of cells.
    pub count: usize,
    /// The row of the first cell.
    pub row: u64,
}

impl CellRows {
    /// The runs of an oct's wanted cells.
    pub fn runs(&self, id: usize, mask: u8) -> impl Iterator<Item = CellRun> {
        let first = self.first[id];
        let mut remaining = u32::from(mask);
        let mut run = (first & !SPLIT) as usize;
        std::iter::from_fn(move || {
            if remaining == 0 {
                return None;
            }
            let cell = remaining.trailing_zeros();
            let cells = (remaining >> cell).trailing_ones();
            remaining &= !(((1 << cells) - 1) << cell);
            let row = if first & SPLIT == 0 {
                first
            } else {
                self.runs[run]
            };
            run += 1;
            Some(CellRun {
                cell: cell as usize,
                count: cells as usize,
                row,
            })
        })
    }

    /// The row of the first wanted cell of an oct that has one run.
    #[inline]
    pub fn single_run(&self, id: usize) -> u64 {
        self.first[id]
    }
}

/// The order of the wanted cells along the Morton curve.
pub struct CellOrder {
    /// The rows of each oct's cells.
    pub rows: CellRows,
    /// The rows at which the cells are not consecutive on the curve.
    pub jumps: Vec<Jump>,
    /// The finest level among the wanted cells; 0 if there are none.
    pub finest: u8,
}

/// An oct on the traversal's stack: some of its cells have no rows yet.
struct OpenOct<K> {
    oct: Oct<K>,
    next: u32,
    run: u64,
}

/// The traversal.
struct Traversal<'a, K> {
    lattice: Lattice,
    masks: &'a [u8],
    is_complete: bool,
    levels: &'a mut [u8],
    row: u64,
    cursor: K,
    order: CellOrder,
}

/// Assigns rows to the wanted cells of `octs`, which are sorted by key and level, and writes their
/// levels to `levels`, which has one element per wanted cell. `masks` has the wanted cells of each oct
/// by its id.
///
/// With `is_complete`, `octs` are all octs of the tree up to some level: each must be in a refined
/// cell, and each refined cell must hold one.
///
/// # Errors
/// `Corrupt` if octs overlap or, with `is_complete`, one is missing.
pub fn assign_rows<K: MortonKey>(
    octs: &[Oct<K>],
    masks: &[u8],
    lattice: &Lattice,
    is_complete: bool,
    levels: &mut [u8],
) -> Result<CellOrder> {
    let mut traversal = Traversal {
        lattice: *lattice,
        masks,
        is_complete,
        levels,
        row: 0,
        cursor: K::ZERO,
        order: CellOrder {
            rows: CellRows {
                first: vec![0; masks.len()],
                runs: Vec::new(),
            },
            jumps: Vec::new(),
            finest: 0,
        },
    };
    let mut stack: Vec<OpenOct<K>> = Vec::with_capacity(64);
    let cells = 1u32 << lattice.ndim;
    let mut roots = 0u64;
    for oct in octs {
        while let Some(top) = stack.last_mut() {
            let bits = lattice.cell_bits(top.oct.level);
            let child = oct.key.subtract(top.oct.key).shift_down(bits);
            if child >= K::ZERO.add_shifted(u64::from(cells), 0) {
                traversal.pass(top, cells)?;
                stack.pop();
                continue;
            }
            let child = child.low_bits() as u32;
            traversal.descend(top, child, oct)?;
            break;
        }
        if stack.is_empty() {
            roots += 1;
            if is_complete && oct.level != 1 {
                return Err(missing_oct(lattice, oct));
            }
        }
        let open = traversal.open(oct);
        stack.push(open);
    }
    while let Some(mut top) = stack.pop() {
        traversal.pass(&mut top, cells)?;
    }
    let expected: u64 = lattice.root.iter().product();
    if is_complete && roots != expected {
        return Err(Error::corrupt(format!(
            "expected {expected} octs of level 1, found {roots}: files of the output are missing or \
             damaged; copy it again"
        )));
    }
    Ok(traversal.order)
}

impl<K: MortonKey> Traversal<'_, K> {
    fn open(&mut self, oct: &Oct<K>) -> OpenOct<K> {
        let mask = self.masks[oct.id as usize];
        let runs = (mask & !(mask << 1)).count_ones();
        let list = &mut self.order.rows.runs;
        let run = if runs > 1 {
            let run = list.len() as u64;
            list.resize(list.len() + runs as usize, 0);
            self.order.rows.first[oct.id as usize] = SPLIT | run;
            SPLIT | run
        } else {
            0
        };
        OpenOct {
            oct: *oct,
            next: 0,
            run,
        }
    }

    /// Assigns rows to the cells of `top` up to the one that `oct` refines.
    fn descend(&mut self, top: &mut OpenOct<K>, child: u32, oct: &Oct<K>) -> Result<()> {
        let is_refined = top.oct.mask >> child & 1 == 0;
        let is_deeper = if self.is_complete {
            oct.level == top.oct.level + 1
        } else {
            oct.level > top.oct.level
        };
        // In a region, the octs between may have no wanted cells: then several octs are in the same
        // cell.
        let passed = if self.is_complete {
            top.next
        } else {
            top.next.saturating_sub(1)
        };
        if !is_deeper || !is_refined || child < passed {
            return Err(overlapping_oct(&self.lattice, oct));
        }
        self.pass(top, child)?;
        top.next = child + 1;
        Ok(())
    }

    /// Assigns rows to the wanted cells of `open` before the cell `end`.
    fn pass(&mut self, open: &mut OpenOct<K>, end: u32) -> Result<()> {
        let oct = &open.oct;
        let between = (1u32 << end) - (1u32 << open.next.min(end));
        if self.is_complete && u32::from(oct.mask) & between != between {
            return Err(missing_oct(&self.lattice, oct));
        }
        open.next = end;
        let mut wanted = u32::from(self.masks[oct.id as usize]) & between;
        let bits = self.lattice.cell_bits(oct.level);
        while wanted != 0 {
            let cell = wanted.trailing_zeros();
            let cells = (wanted >> cell).trailing_ones();
            wanted &= !(((1 << cells) - 1) << cell);
            let key = oct.key.add_shifted(u64::from(cell), bits);
            if key != self.cursor {
                let corner = key.decode(self.lattice.ndim);
                let row = self.row;
                self.order.jumps.push(Jump { row, corner });
            }
            self.cursor = key.add_shifted(u64::from(cells), bits);
            if open.run & SPLIT == 0 {
                self.order.rows.first[oct.id as usize] = self.row;
            } else {
                self.order.rows.runs[(open.run & !SPLIT) as usize] = self.row;
                open.run += 1;
            }
            let from = self.row as usize;
            let Some(levels) = self.levels.get_mut(from..from + cells as usize) else {
                return Err(overlapping_oct(&self.lattice, oct));
            };
            levels.fill(oct.level);
            self.order.finest = self.order.finest.max(oct.level);
            self.row += u64::from(cells);
        }
        Ok(())
    }
}

fn describe<K: MortonKey>(lattice: &Lattice, oct: &Oct<K>) -> String {
    let [x, y, z] = oct
        .key
        .shift_down(lattice.cell_bits(oct.level - 1))
        .decode(lattice.ndim);
    let level = oct.level;
    format!("oct ({x}, {y}, {z}) of level {level}")
}

fn overlapping_oct<K: MortonKey>(lattice: &Lattice, oct: &Oct<K>) -> Error {
    Error::corrupt(format!(
        "{} is in a cell that another domain holds as a leaf, or exists twice: the amr files \
         contradict each other; copy the output again",
        describe(lattice, oct)
    ))
}

fn missing_oct<K: MortonKey>(lattice: &Lattice, oct: &Oct<K>) -> Error {
    Error::corrupt(format!(
        "the leaf cells do not fill the box: an oct next to or around {} is in none of the amr \
         files; copy the output again",
        describe(lattice, oct)
    ))
}
