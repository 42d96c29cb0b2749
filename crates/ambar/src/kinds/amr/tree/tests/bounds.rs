//! Trees within error bounds: chunks know the positions of their cells, which improves predictions.

use super::*;
use crate::array::LeafPositions;
use crate::codec::Profile;
use crate::container::CreateOptions;
use crate::kinds::amr::tree::leaf_positions::TreeLeafPositions;
use crate::kinds::bound::{Compression, ErrorBound};
use crate::kinds::select::Selection;
use crate::store::{Store, StoreWriter};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn chunks_know_the_positions_of_their_cells(recipe in recipes(30)) {
        let sample = Sample::new(&recipe);
        let (leaves, rows) = (sample.leaves(), recipe.chunk_rows);
        let (shape, levels) = (leaves.shape(), leaves.levels.bytes());
        let geometry = TreeGeometry::of_leaves(&shape, levels, leaves.jumps.clone(), rows).unwrap();
        let places = TreeLeafPositions::new(&shape, levels, &geometry, rows);
        prop_assert_eq!(places.dimensions(), recipe.ndim);
        for (number, leaves) in sample.leaves.chunks(rows as usize).enumerate() {
            let (levels, origins) = places.chunk(number as u64).unwrap();
            prop_assert_eq!(levels.len(), leaves.len());
            prop_assert_eq!(origins.len(), leaves.len());
            for (leaf, (level, origin)) in leaves.iter().zip(levels.iter().zip(&origins)) {
                let [z, y, x] = origin.map(|n| n as u64 * leaf.side);
                prop_assert_eq!((leaf.level, leaf.corner), (*level, [x, y, z]));
            }
        }
        let chunks = sample.leaves.len().div_ceil(rows as usize) as u64;
        prop_assert!(places.chunk(chunks).is_err());
    }
}

/// The bytes of the values of a field of a tree, and their largest error, in units of the bound.
fn stored(sample: &Sample, profile: Profile, bound: f64) -> (u64, f64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.ambar");
    let mut writer = StoreWriter::create(&path, &CreateOptions::default()).unwrap();
    let bounds = vec![("density".to_owned(), ErrorBound::Absolute(bound))];
    let compression = Compression {
        profile,
        error_bounds: bounds,
    };
    let (leaves, columns) = (sample.leaves(), sample.columns());
    let more = Attributes::new();
    AmrTree::write(&mut writer, "/amr", &leaves, &columns, more, &compression).unwrap();
    writer.commit().unwrap();
    let store = Store::open(&path).unwrap();
    let tree = AmrTree::open(&store, "/amr").unwrap();
    let read = tree.cells(&["density"], &Selection::default()).unwrap();
    let values: &[f64] = read[0].1.values();
    let errors = values.iter().zip(&sample.density);
    let worst = errors.fold(0.0f64, |worst, (a, b)| worst.max((a - b).abs()));
    let bytes = store.array("/amr/density").unwrap().stored_bytes().unwrap();
    (bytes, worst / bound)
}

/// A field that is smooth in space is predicted from neighbouring cells if only the size matters.
#[test]
fn smooth_fields_are_smaller_than_one_dimensional_arrays() {
    for ndim in 2..=3 {
        let recipe = Recipe {
            seed: 5,
            ndim,
            root: [[1; 3], [24, 24, 1], [12, 12, 9]][ndim - 1],
            levels: 3,
            deepest: 5,
            gaps: 40,
            chunk_rows: 64,
        };
        let mut sample = Sample::new(&recipe);
        let wave = |x: [f64; 3]| (9.0 * x[0]).sin() * (7.0 * x[1]).cos() + (5.0 * x[2]).sin();
        let centres = sample
            .leaves
            .iter()
            .map(|leaf| wave(leaf.centre(&sample.shape)));
        sample.density = centres.collect();
        let row = stored(&sample, Profile::Balanced, 1e-3);
        let space = stored(&sample, Profile::Small, 1e-3);
        assert!(row.1 <= 1.0 && space.1 <= 1.0, "{row:?} {space:?}");
        assert!(4 * space.0 < 3 * row.0, "{row:?} {space:?}");
    }
}

/// Noise has the same size with and without positions: the faster encoding is chosen.
#[test]
fn noise_is_encoded_as_one_dimensional_array() {
    let sample = Sample::new(&Recipe {
        seed: 3,
        ndim: 3,
        root: [12, 12, 9],
        levels: 3,
        deepest: 5,
        gaps: 0,
        chunk_rows: 64,
    });
    let [balanced, small] =
        [Profile::Balanced, Profile::Small].map(|profile| stored(&sample, profile, 1e-3));
    assert_eq!(balanced, small);
    assert!(balanced.1 <= 1.0);
}
