//! Patches, compared with a slow reference: random hierarchies in 1 to 3 dimensions.

mod bounds;
mod boxes;
mod hostile;
mod images;
mod ranks;
mod selections;
mod stores;

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use proptest::prelude::*;

use super::average::average;
use super::*;
use crate::codec::Profile;
use crate::container::CreateOptions;
use crate::kinds::morton;
use crate::store::{Store, StoreWriter};

/// Pseudorandom numbers (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn between(&mut self, lo: i64, hi: i64) -> i64 {
        lo + self.below((hi - lo) as u64) as i64
    }
}

/// The parameters of a random hierarchy.
#[derive(Clone, Debug)]
pub struct Recipe {
    pub seed: u64,
    pub ndim: usize,
    pub levels: usize,
}

pub fn recipes() -> impl Strategy<Value = Recipe> {
    (any::<u64>(), 1usize..=3, 1usize..=4).prop_map(|(seed, ndim, levels)| Recipe {
        seed,
        ndim,
        levels,
    })
}

type Cell = (usize, [i64; 3]);

/// A hierarchy, its cells, and fields whose values follow from the cells:
/// `density` and `single` small integers, so that sums are exact; `smooth`, `smooth32` averages
/// where covered; `gaps` with NaN, infinities and -0; `count` integers.
pub struct Sample {
    pub hierarchy: PatchHierarchy,
    pub fields: Vec<String>,
    /// All cells of all boxes, and whether the next finer level covers them.
    pub cells: BTreeMap<Cell, bool>,
    seed: u64,
    averages: Mutex<HashMap<(bool, Cell), f64>>,
}

pub const FIELDS: [&str; 6] = ["density", "single", "smooth", "smooth32", "gaps", "count"];

impl Sample {
    pub fn new(recipe: &Recipe) -> Self {
        let mut random = Random(recipe.seed);
        let hierarchy = grow(recipe, &mut random);
        let mut cells = BTreeMap::new();
        for (number, level) in hierarchy.levels.iter().enumerate() {
            for index_box in &level.boxes {
                for cell in cells_of(index_box) {
                    assert_eq!(cells.insert((number, cell), false), None, "boxes overlap");
                }
            }
        }
        for (number, level) in hierarchy.levels.iter().enumerate().skip(1) {
            let ratio = hierarchy.levels[number - 1].ratio;
            for covered in level
                .boxes
                .iter()
                .flat_map(|b| cells_of(&b.coarsened(ratio)))
            {
                if let Some(covered) = cells.get_mut(&(number - 1, covered)) {
                    *covered = true;
                }
            }
        }
        Self {
            hierarchy,
            fields: FIELDS.map(str::to_owned).to_vec(),
            cells,
            seed: recipe.seed,
            averages: Mutex::default(),
        }
    }

    fn hash(&self, salt: u64, (level, cell): Cell) -> u64 {
        let mut random = Random(self.seed ^ salt << 32 ^ level as u64);
        let mut hash = random.next();
        for x in cell {
            hash = Random(hash ^ x as u64).next();
        }
        hash
    }

    /// The value of a field as f64; `count` and the fields in single precision are exact in it.
    pub fn value(&self, field: &str, cell: Cell) -> f64 {
        let small = |salt| (self.hash(salt, cell) % 100) as f64;
        match field {
            "density" => small(1),
            "single" => small(2) / 4.0,
            "count" => small(3) - 50.0,
            "gaps" => match self.hash(4, cell) % 8 {
                0 => f64::NAN,
                1 => f64::INFINITY,
                2 => -0.0,
                other => other as f64,
            },
            "smooth" => self.smooth(false, cell),
            _ => self.smooth(true, cell),
        }
    }

    fn smooth(&self, single: bool, cell: Cell) -> f64 {
        if let Some(known) = self.averages.lock().unwrap().get(&(single, cell)) {
            return *known;
        }
        let value = if self.cells.get(&cell) == Some(&true) {
            let ratio = self.hierarchy.levels[cell.0].ratio;
            let (lo, hi) = (cell.1, cell.1.map(|x| x + 1));
            let children = cells_of(&IndexBox { lo, hi }.refined(ratio));
            let sum = children.fold(0.0, |sum, child| {
                sum + self.smooth(single, (cell.0 + 1, child))
            });
            sum * (1.0 / ratio.iter().product::<i64>() as f64)
        } else {
            (self.hash(5, cell) >> 11) as f64 * 1e-9
        };
        let value = if single {
            f64::from(value as f32)
        } else {
            value
        };
        self.averages.lock().unwrap().insert((single, cell), value);
        value
    }

    /// The leaves, and the covered cells, in the order of levels, blocks, and cells in a block.
    pub fn leaves(&self, sides: &[usize]) -> Vec<Cell> {
        let mut leaves: Vec<Cell> = self
            .cells
            .iter()
            .filter(|(_, c)| !**c)
            .map(|(c, _)| *c)
            .collect();
        leaves.sort_by_key(|(level, cell)| {
            let side = sides[*level] as i64;
            let first = self.hierarchy.levels[*level].domain.lo;
            let used = |d: usize| d < self.hierarchy.ndim;
            let block: [u64; 3] = std::array::from_fn(|d| {
                let place = cell[d].div_euclid(side) - first[d].div_euclid(side);
                if used(d) { place as u64 } else { 0 }
            });
            (
                *level,
                morton::key(self.hierarchy.ndim, &block),
                [cell[2], cell[1], cell[0]],
            )
        });
        leaves
    }

    /// The side of unit blocks on each level.
    pub fn sides(amr: &PatchAmr) -> Vec<usize> {
        let levels = 0..amr.hierarchy().levels.len();
        levels
            .map(|level| amr.blocks(level).unwrap().side())
            .collect()
    }

    pub fn centre(&self, (level, cell): Cell) -> [f64; 3] {
        let info = &self.hierarchy.levels[level];
        std::array::from_fn(|d| {
            let halves = 2 * (cell[d] - info.domain.lo[d]) + 1;
            if d < self.hierarchy.ndim {
                self.hierarchy.lower[d] + halves as f64 * (info.cell_size[d] / 2.0)
            } else {
                0.0
            }
        })
    }

    pub fn in_memory(self: &Arc<Self>) -> PatchAmr {
        PatchAmr::from_source(Arc::clone(self) as Arc<dyn PatchSource>).unwrap()
    }

    pub fn stored(&self, covered: Covered, chunk_cells: usize) -> (PatchAmr, tempfile::TempDir) {
        self.stored_with(&PatchOptions {
            covered,
            chunk_cells: Some(chunk_cells),
            compression: Profile::Fast.into(),
            ..PatchOptions::default()
        })
    }

    pub fn stored_with(&self, options: &PatchOptions) -> (PatchAmr, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.ambar");
        let mut writer = StoreWriter::create(&path, &CreateOptions::default()).unwrap();
        PatchAmr::write(&mut writer, "/amr", self, options).unwrap();
        writer.commit().unwrap();
        let store = Store::open(&path).unwrap();
        (PatchAmr::open(&store, "/amr").unwrap(), folder)
    }

    /// Bytes of a value.
    fn bytes(&self, field: &str, cell: Cell) -> Vec<u8> {
        let value = self.value(field, cell);
        match self.dtype(field).unwrap() {
            DataType::Float32 => (value as f32).to_ne_bytes().to_vec(),
            DataType::Int32 => (value as i32).to_ne_bytes().to_vec(),
            _ => value.to_ne_bytes().to_vec(),
        }
    }
}

impl PatchSource for Sample {
    fn hierarchy(&self) -> &PatchHierarchy {
        &self.hierarchy
    }
    fn fields(&self) -> &[String] {
        &self.fields
    }
    fn dtype(&self, field: &str) -> Result<DataType> {
        Ok(match field {
            "single" | "smooth32" => DataType::Float32,
            "count" => DataType::Int32,
            _ => DataType::Float64,
        })
    }
    fn read_box(&self, level: usize, index: usize, field: &str, out: &mut [u8]) -> Result<()> {
        let index_box = &self.hierarchy.levels[level].boxes[index];
        let mut rest = out;
        for cell in cells_of(index_box) {
            let bytes = self.bytes(field, (level, cell));
            let (now, later) = std::mem::take(&mut rest).split_at_mut(bytes.len());
            now.copy_from_slice(&bytes);
            rest = later;
        }
        assert!(rest.is_empty());
        Ok(())
    }
}

/// The cells of a box, x fastest.
pub fn cells_of(index_box: &IndexBox) -> impl Iterator<Item = [i64; 3]> + use<> {
    let IndexBox { lo, hi } = *index_box;
    (lo[2]..hi[2])
        .flat_map(move |z| (lo[1]..hi[1]).flat_map(move |y| (lo[0]..hi[0]).map(move |x| [x, y, z])))
}

fn grow(recipe: &Recipe, random: &mut Random) -> PatchHierarchy {
    let ndim = recipe.ndim;
    let most = [60, 16, 8][ndim - 1];
    let mut domain = IndexBox {
        lo: [0; 3],
        hi: [1; 3],
    };
    for d in 0..ndim {
        domain.lo[d] = random.between(-20, 5);
        domain.hi[d] = domain.lo[d] + random.between(1, most);
    }
    let cubes = random.below(2) == 0;
    let mut cell_size = [0.0; 3];
    for (d, size) in cell_size.iter_mut().enumerate().take(ndim) {
        *size = if cubes { 0.25 } else { [0.25, 0.5, 1.0][d] };
    }
    let mut lower = [-1.5, 2.0, 0.0].map(|x| if cubes { x } else { x / 2.0 });
    lower[ndim..].fill(0.0);
    let mut levels = Vec::new();
    let mut step = [1; 3];
    for level in 0..recipe.levels {
        let boxes = boxes_of(domain, step, levels.last(), random);
        let ratio = match random.below(4) {
            0 => [4, 4, 4],
            1 => [3, 1, 2],
            _ => [2, 2, 2],
        };
        let ratio = std::array::from_fn(|d| if d < ndim { ratio[d] } else { 1 });
        levels.push(PatchLevel {
            domain,
            boxes,
            cell_size,
            ratio: if level + 1 < recipe.levels {
                ratio
            } else {
                [1; 3]
            },
        });
        step = ratio;
        domain = domain.refined(ratio);
        for d in 0..ndim {
            cell_size[d] /= ratio[d] as f64;
        }
    }
    let first = &levels[0];
    let upper =
        std::array::from_fn(|d| lower[d] + first.domain.shape()[d] as f64 * first.cell_size[d]);
    PatchHierarchy {
        ndim,
        lower,
        upper,
        levels,
    }
}

/// Random boxes in a domain, in those of a coarser level if there is one.
fn boxes_of(
    domain: IndexBox,
    step: [i64; 3],
    coarser: Option<&PatchLevel>,
    random: &mut Random,
) -> Vec<IndexBox> {
    let mut boxes: Vec<IndexBox> = Vec::new();
    let depth = random.below(5);
    split(
        domain,
        step,
        depth,
        random,
        &mut |b, random| match coarser {
            None if random.below(8) > 0 => boxes.push(b),
            Some(coarser) if random.below(3) == 0 => {
                // Across several coarser boxes if these fill it; otherwise the parts in them.
                let coarser = coarser.boxes.iter().map(|c| c.refined(step));
                let parts = coarser
                    .map(|c| c.intersection(&b))
                    .filter(|p| !p.is_empty());
                let parts: Vec<IndexBox> = parts.collect();
                let whole = parts.iter().map(IndexBox::cells).sum::<usize>() == b.cells();
                boxes.extend(if whole { vec![b] } else { parts });
            }
            _ => {}
        },
    );
    // Few cells, so that the reference is fast.
    while boxes.iter().map(IndexBox::cells).sum::<usize>() > 4000 {
        boxes.pop();
    }
    boxes
}

/// Cuts a box repeatedly at multiples of `step`.
fn split(
    b: IndexBox,
    step: [i64; 3],
    depth: u64,
    random: &mut Random,
    take: &mut impl FnMut(IndexBox, &mut Random),
) {
    let d = random.below(3) as usize;
    let steps = (b.hi[d] - b.lo[d]) / step[d];
    if depth == 0 || steps < 2 {
        take(b, random);
        return;
    }
    let cut = b.lo[d] + random.between(1, steps) * step[d];
    let (mut left, mut right) = (b, b);
    (left.hi[d], right.lo[d]) = (cut, cut);
    split(left, step, depth - 1, random, take);
    split(right, step, depth - 1, random, take);
}
