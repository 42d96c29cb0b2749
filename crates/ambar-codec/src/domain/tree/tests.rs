//! Properties of cells: trees round trip, and the bound holds for all trees.

use super::node::{Node, Tree};
use super::siblings::SiblingCollector;
use super::topology;
use super::{CodedTree, TreeCells};
use crate::entropy::bitio::Cursor;
use crate::stream::properties::{Random, Settings, check_kind, settings};
use crate::{Error, Layout, Workspace, encode};
use proptest::prelude::*;

/// Leaf cells of a tree.
struct Leaves {
    dimensions: usize,
    levels: Vec<u8>,
    origins: Vec<[i64; 3]>,
}

impl Leaves {
    fn layout(&self) -> Layout<'_> {
        Layout::Cells {
            dimensions: self.dimensions,
            levels: &self.levels,
            origins: &self.origins,
        }
    }

    /// Retains the cells whose index `keep` accepts.
    fn filter(self, mut keep: impl FnMut(usize) -> bool) -> Self {
        let kept: Vec<bool> = (0..self.levels.len()).map(&mut keep).collect();
        let of = |row: &usize| kept[*row];
        let rows: Vec<usize> = (0..self.levels.len()).filter(of).collect();
        Self {
            dimensions: self.dimensions,
            levels: rows.iter().map(|row| self.levels[*row]).collect(),
            origins: rows.iter().map(|row| self.origins[*row]).collect(),
        }
    }
}

/// Refines a node and its descendants at random, in the order of the curve.
fn refine(
    leaves: &mut Leaves,
    (level, place): (u8, [i64; 3]),
    (below, odds): (u32, u64),
    random: &mut Random,
) {
    if below == 0 || leaves.levels.len() > 3000 || random.next() % 8 >= odds {
        leaves.levels.push(level);
        leaves.origins.push(place);
        return;
    }
    for child in 0..1 << leaves.dimensions {
        let bit = |d: usize| i64::from(child >> (2 - d) & 1);
        let place = std::array::from_fn(|d| 2 * place[d] + bit(d));
        refine(leaves, (level + 1, place), (below - 1, odds), random);
    }
}

/// A random tree below a node, without some cells, in one of several patterns.
fn leaves(dimensions: usize, pattern: u8, odds: u64, random: &mut Random) -> Leaves {
    let mut leaves = Leaves {
        dimensions,
        levels: Vec::new(),
        origins: Vec::new(),
    };
    let (level, below) = match pattern % 3 {
        0 => (0, 6),
        1 => (5, 8),
        _ => (37, 5),
    };
    let far = |d: usize| {
        if d + dimensions < 3 {
            0
        } else {
            (1i64 << level) - 1
        }
    };
    let place = if pattern.is_multiple_of(2) {
        [0; 3]
    } else {
        [0, 1, 2].map(far)
    };
    refine(&mut leaves, (level, place), (below, odds.max(1)), random);
    let all = leaves.levels.len();
    match pattern / 6 % 5 {
        0 => leaves,
        1 => leaves.filter(|_| random.next().is_multiple_of(2)),
        2 => leaves.filter(|row| row % 61 < 40),
        3 => leaves.filter(|row| (all / 3..all - all / 5).contains(&row)),
        _ => leaves.filter(|row| row % 100 == 0),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_bound_holds_in_cells(
        dimensions in 1usize..=3, pattern: u8, odds in 0u64..8, settings in settings(), extra in 0usize..40, is_float64: bool, seed: u64,
    ) {
        let random = &mut Random(seed);
        let leaves = leaves(dimensions, pattern, odds, random);
        let count = leaves.levels.len() + if extra < 20 { 0 } else { extra };
        if is_float64 {
            check_kind::<f64>(&leaves.layout(), count, settings, random);
        } else {
            check_kind::<f32>(&leaves.layout(), count, settings, random);
        }
    }

    #[test]
    fn trees_round_trip(dimensions in 1usize..=3, pattern: u8, odds in 0u64..8, seed: u64) {
        let leaves = leaves(dimensions, pattern, odds, &mut Random(seed));
        let cells = TreeCells::new(dimensions, &leaves.levels, &leaves.origins).unwrap();
        let mut cursor = Cursor(&cells.header);
        let coded = CodedTree::parse(&mut cursor, leaves.levels.len()).unwrap();
        prop_assert!(cursor.0.is_empty());
        let regions = coded.regions().unwrap();
        prop_assert_eq!(regions.len(), cells.regions.len());
        let mut rows = vec![0; leaves.levels.len()];
        for (one, other) in regions.iter().zip(&cells.regions) {
            prop_assert_eq!(one.shape(), other.shape());
            let (mut places, mut others) = (Vec::new(), Vec::new());
            one.for_each_cell(|row, at| places.push((row, at)));
            other.for_each_cell(|row, at| others.push((row, at)));
            prop_assert_eq!(&places, &others);
            let [_, ny, nx] = one.shape();
            for (row, [z, y, x]) in places {
                rows[row] += 1;
                prop_assert_eq!(one.row_at((z * ny + y) * nx + x), Some(row));
            }
        }
        prop_assert!(rows.iter().all(|times| *times == 1));
    }
}

/// Octants that are refined uniformly take few bytes.
#[test]
fn uniform_octants_take_few_bytes() {
    let mut leaves = Leaves {
        dimensions: 3,
        levels: Vec::new(),
        origins: Vec::new(),
    };
    for octant in 0..8u8 {
        let place = [2, 1, 0].map(|d| i64::from(octant >> d & 1));
        refine(
            &mut leaves,
            (1, place),
            (u32::from(octant % 4), 8),
            &mut Random(1),
        );
    }
    let cells = TreeCells::new(3, &leaves.levels, &leaves.origins).unwrap();
    assert_eq!(leaves.levels.len(), 2 * (1 + 8 + 64 + 512));
    assert!(cells.header.len() < 40, "{}", cells.header.len());
    // The octants of each depth touch.
    assert_eq!(cells.regions.len(), 4);
}

#[test]
fn layouts_without_cells_are_valid() {
    for dimensions in 1..=3 {
        let leaves = Leaves {
            dimensions,
            levels: Vec::new(),
            origins: Vec::new(),
        };
        for count in [0, 1, 70] {
            let settings = Settings {
                kind: 0,
                bound: 9,
                params: None,
            };
            check_kind::<f64>(&leaves.layout(), count, settings, &mut Random(7));
        }
    }
}

#[test]
fn invalid_trees_are_refused() {
    let values = [0.0; 64];
    let refused = |dimensions: usize, levels: &[u8], origins: &[[i64; 3]]| {
        let layout = Layout::Cells {
            dimensions,
            levels,
            origins,
        };
        let refused = encode(&values, &layout, 1.0, None, &mut Workspace::default());
        assert!(
            matches!(refused, Err(Error::Invalid(_))),
            "{levels:?} {origins:?}"
        );
    };
    refused(0, &[0], &[[0; 3]]);
    refused(4, &[0], &[[0; 3]]);
    refused(3, &[0, 43], &[[0; 3], [0, 0, 1 << 43]]);
    refused(3, &[0], &[]);
    refused(3, &[0; 65], &[[0; 3]; 65]);
    refused(3, &[0], &[[0, -1, 0]]);
    refused(3, &[0], &[[1 << 42, 0, 0]]);
    refused(2, &[0], &[[1, 0, 0]]);
    refused(1, &[0], &[[0, 1, 0]]);
    refused(3, &[1, 1], &[[0; 3]; 2]);
    refused(3, &[1, 1], &[[0, 0, 1], [0; 3]]);
    refused(3, &[1, 1], &[[1, 0, 0], [0, 1, 0]]);
    refused(3, &[1, 2], &[[0; 3], [1, 1, 1]]);
    refused(3, &[2, 1], &[[1, 1, 1], [0; 3]]);
    refused(3, &[0, 42], &[[0; 3], [0, 0, 1 << 42]]);
}

/// A cell at the end of the curve is valid, and no cell follows it.
#[test]
fn no_cell_follows_the_end_of_the_curve() {
    let tree = Tree {
        dimensions: 3,
        depth: 0,
    };
    let last = Node {
        level: 0,
        place: [(1 << 42) - 1; 3],
    };
    let coded = topology::encode(&tree, &[last], &mut SiblingCollector::new(0)).unwrap();
    let decoded = |count| topology::decode(&tree, &coded, count, &mut SiblingCollector::new(0));
    assert_eq!(decoded(1), Ok(()));
    assert!(matches!(decoded(2), Err(Error::Corrupt(_))));
    let longer = [&coded[..], &[0; 9]].concat();
    let decoded = topology::decode(&tree, &longer, 1, &mut SiblingCollector::new(0));
    assert!(matches!(decoded, Err(Error::Corrupt(_))));
}
