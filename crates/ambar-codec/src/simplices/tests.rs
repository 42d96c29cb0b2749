//! All kinds of cells round trip, meshes compress well, and invalid arguments are refused.

use super::*;
use crc_fast::crc32_iscsi as crc32c;
use proptest::prelude::*;

fn round_trip<T: Corner + PartialEq + std::fmt::Debug>(corners: &[T], width: usize) -> usize {
    let mut workspace = Workspace::default();
    let stream = encode(corners, width, &mut workspace).unwrap();
    let info = inspect(&stream).unwrap();
    assert_eq!(
        (info.value_size, info.width, info.cells),
        (T::SIZE, width, corners.len() / width)
    );
    // Twice, because the state of the workspace must not matter.
    for _ in 0..2 {
        let mut out = vec![T::default(); corners.len()];
        decode(&stream, &mut out, &mut workspace).unwrap();
        assert_eq!(out, corners);
    }
    let again = encode(corners, width, &mut workspace).unwrap();
    assert!(
        again == stream,
        "another stream is made of the same corners"
    );
    stream.len()
}

/// Shuffles cells and points.
fn shuffled(corners: &[u64], width: usize, points: u64) -> Vec<u64> {
    let key = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
    let mut names: Vec<u64> = (0..points).collect();
    names.sort_by_key(|n| key(*n));
    let mut rows: Vec<&[u64]> = corners.chunks(width).collect();
    rows.sort_by_key(|row| row.iter().fold(0, |sum, n| key(sum ^ *n)));
    let rows = rows.concat();
    rows.iter().map(|corner| names[*corner as usize]).collect()
}

/// A cube of n^3 cubes, each six tetrahedra around a diagonal.
pub(super) fn tetrahedra(n: u64) -> Vec<u64> {
    let mut corners = Vec::new();
    let point = |[x, y, z]: [u64; 3]| (x * (n + 1) + y) * (n + 1) + z;
    for cube in 0..n * n * n {
        let origin = [cube / n / n, cube / n % n, cube % n];
        for order in [
            [0, 1, 2],
            [1, 2, 0],
            [2, 0, 1],
            [0, 2, 1],
            [2, 1, 0],
            [1, 0, 2],
        ] {
            let mut at = origin;
            corners.push(point(at));
            for axis in order {
                at[axis] += 1;
                corners.push(point(at));
            }
        }
    }
    corners
}

/// A square of n^2 squares, each two triangles.
fn triangles(n: u64) -> Vec<u64> {
    let cells = (0..n * n).flat_map(|cell| {
        let at = cell / n * (n + 1) + cell % n;
        [at, at + 1, at + n + 2, at, at + n + 2, at + n + 1]
    });
    cells.collect()
}

#[test]
fn meshes_compress_in_any_order() {
    let (n, points) = (14, 15 * 15 * 15);
    let cells = 6 * n * n * n;
    let bits = |bytes: usize| 8.0 * bytes as f64 / cells as f64;
    let ordered = bits(round_trip(&tetrahedra(n), 4));
    assert!(ordered < 11.0, "{ordered} bits a cell");
    let mixed = shuffled(&tetrahedra(n), 4, points);
    let unordered = bits(round_trip(&mixed, 4));
    // The order of the rows alone takes 12.6 bits, that of the points 2.1.
    assert!(unordered < 23.0, "{unordered} bits a cell");
    let small: Vec<u32> = mixed.iter().map(|corner| *corner as u32).collect();
    round_trip(&small, 4);

    let surface = shuffled(&triangles(60), 3, 61 * 61);
    let bytes = round_trip(&surface, 3);
    assert!(bytes * 8 < 25 * 60 * 60 * 2, "{bytes} bytes for triangles");
    round_trip(&triangles(60), 3);
    let line: Vec<u64> = (0..500).flat_map(|i| [i, i + 1]).collect();
    round_trip(&line, 2);
    round_trip(&shuffled(&line, 2, 501), 2);
}

#[test]
fn cells_that_are_not_a_mesh_round_trip() {
    let n = u64::MAX;
    for corners in [
        &[][..],
        &[0, 0, 0, 0],
        &[n, n, n, n],
        &[0, n, 1, n - 1, 0, n, n - 1, 1],
        &[5, 5, 6, 7, 6, 7, 5, 5, 7, 5, 6, 5],
        &[1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 4, 3, 2, 1],
    ] {
        for width in WIDTHS.filter(|width| corners.len().is_multiple_of(*width)) {
            round_trip(corners, width);
        }
    }
    // One value repeated, as in padding; a facet that all cells share.
    round_trip(&[77u32; 4000], 4);
    let fan: Vec<u64> = (0..3000).flat_map(|i| [0, 1, 2, i + 3]).collect();
    round_trip(&fan, 4);
    // Many facets with the same newest point.
    let star = (0..40).flat_map(|i| (0..40).flat_map(move |j| [i, j + 40, 99, i * 40 + j]));
    round_trip(&star.collect::<Vec<u64>>(), 4);
}

#[test]
fn invalid_widths_are_refused() {
    let workspace = &mut Workspace::default();
    for (corners, width) in [(&[1u32, 2, 3][..], 4), (&[1; 10], 5), (&[1], 1), (&[], 0)] {
        let error = encode(corners, width, workspace).unwrap_err();
        assert!(matches!(error, Error::Invalid(_)));
    }
    let stream = encode(&[1u32, 2, 3], 3, workspace).unwrap();
    for count in [0, 2, 4, 6] {
        let error = decode(&stream, &mut vec![0u32; count], workspace).unwrap_err();
        assert!(matches!(error, Error::Corrupt(_)));
    }
    assert!(decode(&stream, &mut [0u64; 3], workspace).is_err());
    let mut newer = stream.clone();
    newer[0] = VERSION + 1;
    let end = newer.len() - 4;
    let checksum = crc32c(&newer[..end]);
    newer[end..].copy_from_slice(&checksum.to_le_bytes());
    let error = decode(&newer, &mut [0u32; 3], workspace).unwrap_err();
    assert!(matches!(error, Error::UnsupportedVersion { .. }));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    /// Few points, so that cells touch and corners repeat; or any values.
    #[test]
    fn any_cells_round_trip(
        width in WIDTHS,
        few in prop_oneof![Just(2u64), Just(5), Just(12), Just(60), Just(u64::MAX)],
        from in prop_oneof![Just(0u64), Just(1 << 40), Just(u64::MAX)],
        values in proptest::collection::vec(any::<u64>(), 0..400),
    ) {
        let count = values.len() / width * width;
        let values: Vec<u64> = values[..count].iter().map(|n| from.wrapping_add(n % few)).collect();
        round_trip(&values, width);
        let short: Vec<u32> = values.iter().map(|n| *n as u32).collect();
        round_trip(&short, width);
    }
}
