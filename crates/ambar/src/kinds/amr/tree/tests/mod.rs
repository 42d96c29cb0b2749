//! Trees, compared with a slow reference: random trees in 1 to 3 dimensions, with and without gaps.

mod bounds;
mod images;
mod leaf_positions;
mod selections;
mod stores;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;

use super::*;
use crate::kinds::amr::{AXES, Weight, Window};
use crate::kinds::morton;
use crate::kinds::source::ColumnSource;

/// Pseudorandom numbers (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ x >> 31) % n
    }
}

/// The parameters of a random tree.
#[derive(Clone, Debug)]
pub struct Recipe {
    pub seed: u64,
    pub ndim: usize,
    pub root: [u64; 3],
    /// Cells are refined with probability 1/2 down to this level.
    pub levels: u8,
    /// One cell of each level is refined from there down to this level.
    pub deepest: u8,
    /// One of this many leaves is left out; 0 for none.
    pub gaps: u64,
    pub chunk_rows: u64,
}

pub fn recipes(deepest: u8) -> impl Strategy<Value = Recipe> {
    let root = prop_oneof![Just([1u64; 3]), prop::array::uniform3(1u64..4)];
    let gaps = prop_oneof![Just(0u64), 2u64..20];
    (
        any::<u64>(),
        1usize..=3,
        root,
        0u8..5,
        0..=deepest,
        gaps,
        1u64..100,
    )
        .prop_map(
            |(seed, ndim, mut root, levels, deepest, gaps, chunk_rows)| {
                root[ndim..].fill(1);
                Recipe {
                    seed,
                    ndim,
                    root,
                    levels,
                    deepest,
                    gaps,
                    chunk_rows,
                }
            },
        )
}

/// A leaf of the reference: lower corner and side in lattice units.
#[derive(Clone, Copy, Debug)]
pub struct Leaf {
    pub level: u8,
    pub corner: [u64; 3],
    pub side: u64,
}

impl Leaf {
    pub fn centre(&self, shape: &TreeShape) -> [f64; 3] {
        let unit = shape.boxlen / shape.root[0] as f64 / (1u64 << shape.lattice_level) as f64;
        std::array::from_fn(|d| {
            let halves = 2 * self.corner[d] + self.side;
            if d < shape.ndim {
                halves as f64 * (unit / 2.0)
            } else {
                0.0
            }
        })
    }
}

pub struct Sample {
    pub shape: TreeShape,
    pub leaves: Vec<Leaf>,
    pub jumps: Vec<Jump>,
    /// Small integers, so that sums are exact.
    pub density: Vec<f64>,
    pub mass: Vec<i32>,
}

impl Sample {
    pub fn new(recipe: &Recipe) -> Self {
        let mut random = Random(recipe.seed);
        let leaves = grow(recipe, &mut random);
        let finest = leaves.iter().map(|leaf| leaf.0).max().unwrap_or(0);
        let shape = TreeShape {
            ndim: recipe.ndim,
            root: recipe.root,
            boxlen: 0.75,
            lattice_level: finest,
        };
        let mut all: Vec<Leaf> = leaves
            .iter()
            .map(|(level, cell)| Leaf {
                level: *level,
                corner: cell.map(|x| x << (finest - level)),
                side: 1 << (finest - level),
            })
            .collect();
        all.sort_by_key(|leaf| morton::key(recipe.ndim, &leaf.corner));
        all.retain(|_| recipe.gaps == 0 || random.below(recipe.gaps) != 0);
        let mut next = 0;
        let mut jumps = Vec::new();
        for (row, leaf) in all.iter().enumerate() {
            let key = morton::key(recipe.ndim, &leaf.corner);
            if key != next {
                let (row, corner) = (row as u64, leaf.corner);
                jumps.push(Jump { row, corner });
            }
            next = key + u128::from(leaf.side).pow(recipe.ndim as u32);
        }
        Self {
            shape,
            density: all.iter().map(|_| random.below(100) as f64).collect(),
            mass: all.iter().map(|_| random.below(9) as i32 + 1).collect(),
            leaves: all,
            jumps,
        }
    }

    pub fn leaves(&self) -> Leaves {
        let mut levels = Column::allocate(&[DataType::UInt8], self.leaves.len()).unwrap();
        let mut levels = levels.pop().unwrap();
        for (to, leaf) in levels.bytes_mut().iter_mut().zip(&self.leaves) {
            *to = leaf.level;
        }
        Leaves {
            ndim: self.shape.ndim,
            root: self.shape.root,
            boxlen: self.shape.boxlen,
            lattice_level: self.shape.lattice_level,
            levels,
            jumps: self.jumps.clone(),
        }
    }

    pub fn columns(&self) -> Vec<(String, Column)> {
        let dtypes = [DataType::Float64, DataType::Int32];
        let mut columns = Column::allocate(&dtypes, self.leaves.len()).unwrap();
        columns[0].values_mut().copy_from_slice(&self.density);
        columns[1].values_mut().copy_from_slice(&self.mass);
        ["density", "mass"]
            .map(str::to_owned)
            .into_iter()
            .zip(columns)
            .collect()
    }

    pub fn tree(&self, chunk_rows: u64) -> AmrTree {
        AmrTree::with_chunks(self.leaves(), self.columns(), chunk_rows).unwrap()
    }
}

/// Leaves as (level, index on that level), in any order.
fn grow(recipe: &Recipe, random: &mut Random) -> Vec<(u8, [u64; 3])> {
    let mut waiting = Vec::new();
    for x in 0..recipe.root[0] {
        for y in 0..recipe.root[1] {
            for z in 0..recipe.root[2] {
                waiting.push((0u8, [x, y, z]));
            }
        }
    }
    let chosen = random.below(waiting.len() as u64) as usize;
    let mut deep = Some(waiting[chosen]);
    let mut leaves = Vec::new();
    while let Some((level, cell)) = waiting.pop() {
        let on_path = deep == Some((level, cell)) && level < recipe.deepest;
        let few = leaves.len() + waiting.len() < 400;
        if !(on_path || few && level < recipe.levels && random.below(2) == 0) {
            leaves.push((level, cell));
            continue;
        }
        let children: Vec<(u8, [u64; 3])> = (0..1u64 << recipe.ndim)
            .map(|child| {
                let bit = |d: usize| if d < recipe.ndim { child >> d & 1 } else { 0 };
                let double = |d: usize| if d < recipe.ndim { 2 * cell[d] } else { 0 };
                (level + 1, std::array::from_fn(|d| double(d) + bit(d)))
            })
            .collect();
        if on_path {
            deep = Some(children[random.below(children.len() as u64) as usize]);
        }
        waiting.extend(children);
    }
    leaves
}

/// Counts the rows read of each column.
pub struct Counting {
    pub inner: Arc<dyn ColumnSource>,
    pub fields: AtomicU64,
    pub levels: AtomicU64,
}

impl Counting {
    pub fn wrap(tree: &mut AmrTree) -> Arc<Self> {
        let counting = Arc::new(Self {
            inner: Arc::clone(&tree.source),
            fields: AtomicU64::new(0),
            levels: AtomicU64::new(0),
        });
        tree.source = counting.clone();
        counting
    }
}

impl ColumnSource for Counting {
    fn rows(&self) -> u64 {
        self.inner.rows()
    }
    fn chunk_rows(&self) -> u64 {
        self.inner.chunk_rows()
    }
    fn names(&self) -> &[String] {
        self.inner.names()
    }
    fn dtype(&self, name: &str) -> Result<DataType> {
        self.inner.dtype(name)
    }
    fn read(&self, name: &str, rows: Range<u64>, out: &mut [u8]) -> Result<()> {
        let counter = if name == LEVEL {
            &self.levels
        } else {
            &self.fields
        };
        counter.fetch_add(rows.end - rows.start, Ordering::Relaxed);
        self.inner.read(name, rows, out)
    }
    fn ranges(&self, name: &str) -> Result<Option<Vec<[f64; 2]>>> {
        self.inner.ranges(name)
    }
}
