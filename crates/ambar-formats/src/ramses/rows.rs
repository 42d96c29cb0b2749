//! Rows of leaf cells: a walk over all octs along the Morton curve, which also proves them complete.

use ambar::kinds::amr::Jump;
use ambar::{Error, Result};

use super::key::Key;
use super::octs::{Lattice, Oct};

/// Marks an entry of `first` as an index into `runs`.
const SPLIT: u64 = 1 << 63;

/// The rows of each oct's wanted cells. Cells without a gap between them in the mask have
/// consecutive rows: a run.
pub struct Rows {
    /// For each oct by its id: the row of its first wanted cell; where it has several runs,
    /// `SPLIT` and the place of the first one's row in `runs`.
    first: Vec<u64>,
    runs: Vec<u64>,
}

impl Rows {
    /// The runs of an oct's wanted cells: first cell, number of cells, first row.
    pub fn runs(&self, id: usize, mask: u8) -> impl Iterator<Item = (usize, usize, u64)> {
        let first = self.first[id];
        let mut left = u32::from(mask);
        let mut run = (first & !SPLIT) as usize;
        std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let cell = left.trailing_zeros();
            let cells = (left >> cell).trailing_ones();
            left &= !(((1 << cells) - 1) << cell);
            let row = if first & SPLIT == 0 {
                first
            } else {
                self.runs[run]
            };
            run += 1;
            Some((cell as usize, cells as usize, row))
        })
    }

    /// The row of the first wanted cell of an oct that has one run.
    #[inline]
    pub fn only(&self, id: usize) -> u64 {
        self.first[id]
    }
}

/// What the walk found.
pub struct Order {
    /// Where each oct's cells go.
    pub rows: Rows,
    /// Where the curve is left.
    pub jumps: Vec<Jump>,
    /// The finest level among the wanted cells; 0 where there are none.
    pub finest: u8,
}

/// An oct whose cells are not yet all passed.
struct Open<K> {
    oct: Oct<K>,
    next: u32,
    run: u64,
}

struct Walk<'a, K> {
    lattice: Lattice,
    masks: &'a [u8],
    complete: bool,
    levels: &'a mut [u8],
    row: u64,
    cursor: K,
    order: Order,
}

/// Gives rows to the wanted cells of `octs`, which are sorted by key and level, and writes their
/// levels to `levels`, which has a place for each of them. `masks` has the wanted cells of each own
/// oct, by its id.
///
/// With `complete`, the octs are all there are (of levels up to a last one): each must lie in a
/// cell that is refined, and each refined cell hold one.
///
/// # Errors
/// `Corrupt` where octs overlap or, with `complete`, where one is missing.
pub fn walk<K: Key>(
    octs: &[Oct<K>],
    masks: &[u8],
    lattice: &Lattice,
    complete: bool,
    levels: &mut [u8],
) -> Result<Order> {
    let mut walk = Walk {
        lattice: *lattice,
        masks,
        complete,
        levels,
        row: 0,
        cursor: K::ZERO,
        order: Order {
            rows: Rows {
                first: vec![0; masks.len()],
                runs: Vec::new(),
            },
            jumps: Vec::new(),
            finest: 0,
        },
    };
    let mut stack: Vec<Open<K>> = Vec::with_capacity(64);
    let cells = 1u32 << lattice.ndim;
    let mut roots = 0u64;
    for oct in octs {
        while let Some(top) = stack.last_mut() {
            let bits = lattice.cell_bits(top.oct.level);
            let child = oct.key.minus(top.oct.key).down(bits);
            if child >= K::ZERO.plus(u64::from(cells), 0) {
                walk.pass(top, cells)?;
                stack.pop();
                continue;
            }
            let child = child.low() as u32;
            walk.descend(top, child, oct)?;
            break;
        }
        if stack.is_empty() {
            roots += 1;
            if complete && oct.level != 1 {
                return Err(missing(lattice, oct));
            }
        }
        let open = walk.open(oct);
        stack.push(open);
    }
    while let Some(mut top) = stack.pop() {
        walk.pass(&mut top, cells)?;
    }
    let expected: u64 = lattice.root.iter().product();
    if complete && roots != expected {
        return Err(Error::corrupt(format!(
            "{roots} octs of level 1 found, {expected} expected: files of the output are missing \
             or damaged; copy it again"
        )));
    }
    Ok(walk.order)
}

impl<K: Key> Walk<'_, K> {
    fn open(&mut self, oct: &Oct<K>) -> Open<K> {
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
        Open {
            oct: *oct,
            next: 0,
            run,
        }
    }

    /// Passes the cells of `top` up to the one that `oct` refines.
    fn descend(&mut self, top: &mut Open<K>, child: u32, oct: &Oct<K>) -> Result<()> {
        let refined = top.oct.mask >> child & 1 == 0;
        let deeper = if self.complete {
            oct.level == top.oct.level + 1
        } else {
            oct.level > top.oct.level
        };
        // In a region the octs between may have no cells of their own there: then several octs lie
        // in the same cell.
        let passed = if self.complete {
            top.next
        } else {
            top.next.saturating_sub(1)
        };
        if !deeper || !refined || child < passed {
            return Err(overlapping(&self.lattice, oct));
        }
        self.pass(top, child)?;
        top.next = child + 1;
        Ok(())
    }

    /// Gives rows to the wanted cells of `open` before the cell `end`.
    fn pass(&mut self, open: &mut Open<K>, end: u32) -> Result<()> {
        let oct = &open.oct;
        let between = (1u32 << end) - (1u32 << open.next.min(end));
        if self.complete && u32::from(oct.mask) & between != between {
            return Err(missing(&self.lattice, oct));
        }
        open.next = end;
        let mut wanted = u32::from(self.masks[oct.id as usize]) & between;
        let bits = self.lattice.cell_bits(oct.level);
        while wanted != 0 {
            let cell = wanted.trailing_zeros();
            let cells = (wanted >> cell).trailing_ones();
            wanted &= !(((1 << cells) - 1) << cell);
            let key = oct.key.plus(u64::from(cell), bits);
            if key != self.cursor {
                let corner = key.decode(self.lattice.ndim);
                let row = self.row;
                self.order.jumps.push(Jump { row, corner });
            }
            self.cursor = key.plus(u64::from(cells), bits);
            if open.run & SPLIT == 0 {
                self.order.rows.first[oct.id as usize] = self.row;
            } else {
                self.order.rows.runs[(open.run & !SPLIT) as usize] = self.row;
                open.run += 1;
            }
            let from = self.row as usize;
            let Some(levels) = self.levels.get_mut(from..from + cells as usize) else {
                return Err(overlapping(&self.lattice, oct));
            };
            levels.fill(oct.level);
            self.order.finest = self.order.finest.max(oct.level);
            self.row += u64::from(cells);
        }
        Ok(())
    }
}

fn place<K: Key>(lattice: &Lattice, oct: &Oct<K>) -> String {
    let [x, y, z] = oct
        .key
        .down(lattice.cell_bits(oct.level - 1))
        .decode(lattice.ndim);
    let level = oct.level;
    format!("oct ({x}, {y}, {z}) of level {level}")
}

fn overlapping<K: Key>(lattice: &Lattice, oct: &Oct<K>) -> Error {
    Error::corrupt(format!(
        "{} lies in a cell that another domain holds as a leaf, or is there twice: the amr files \
         contradict each other; copy the output again",
        place(lattice, oct)
    ))
}

fn missing<K: Key>(lattice: &Lattice, oct: &Oct<K>) -> Error {
    Error::corrupt(format!(
        "the leaf cells do not fill the box: an oct next to or around {} is in none of the amr \
         files; copy the output again",
        place(lattice, oct)
    ))
}
