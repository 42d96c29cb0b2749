//! Streams kept: they are read for ever, and those of today are made of the same values again.

#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions only, not in their helpers
use ambar_codec::{Element, Layout, Workspace, decode, encode, tune, tune_small};
use std::path::PathBuf;

/// Values made without functions whose rounding depends on the machine.
fn values<T: Element>(count: usize, holes: bool) -> Vec<T> {
    let mut noise = 1u32;
    (0..count)
        .map(|i| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let x = (i % 61) as f64 / 61.0;
            let y = (i / 61 % 31) as f64 / 31.0;
            let smooth = 4.0 * x * (1.0 - x) + y * y * y - 0.5 * x * y;
            match i % 211 {
                _ if holes && i / 64 % 5 == 1 => T::from_f64(f64::NAN),
                17 => T::from_f64(f64::INFINITY),
                40 => T::from_f64(-0.0),
                90 => T::from_f64(1e-310),
                _ => T::from_f64(smooth + f64::from(noise >> 16) * 1e-6),
            }
        })
        .collect()
}

/// What is made of the values of today.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// The stream that is kept, of the smallest kind.
    Small,
    /// Of a quick plan.
    Quick,
    /// A newer one: the kept one is read only.
    QuickOfVersion1,
    QuickOfVersion2,
    /// The stream that is kept, of cells.
    Cells,
    /// A packed one.
    Packed,
    /// One whose classes come from the plane before: read only.
    PlanesOfVersion5,
    /// The same, whose holes are gone over; and a quick one.
    BridgedOfVersion6,
    QuickOfVersion6,
    /// One whose classes come from the plane before, whose holes are gone over, whose states end anywhere; and a
    /// quick one.
    Free,
    QuickFree,
}

impl Kind {
    fn version(self) -> u8 {
        match self {
            Kind::Small | Kind::QuickOfVersion1 => 1,
            Kind::Quick | Kind::QuickOfVersion2 => 2,
            Kind::Packed => 3,
            Kind::Cells => 4,
            Kind::PlanesOfVersion5 => 5,
            Kind::BridgedOfVersion6 | Kind::QuickOfVersion6 => 6,
            Kind::Free | Kind::QuickFree => 7,
        }
    }

    /// Whether the kept stream is one that is made no more.
    fn is_old(self) -> bool {
        matches!(
            self,
            Kind::QuickOfVersion1
                | Kind::QuickOfVersion2
                | Kind::PlanesOfVersion5
                | Kind::BridgedOfVersion6
                | Kind::QuickOfVersion6
        )
    }
}

fn check<T: Element>(
    name: &str,
    kind: Kind,
    layout: &Layout<'_>,
    count: usize,
    (bound, holes): (f64, bool),
) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    // Streams of some versions hold the values of others.
    let same = [
        ("quick-1-", ""),
        ("free-quick-box-", "quick-6-box-"),
        ("free-quick-cube-", "quick-6-cube-"),
        ("free-quick-", "bridged-quick-"),
        ("free-4-", "bridged-4-"),
        ("free-8-", "bridged-8-"),
        ("free-", "planes-"),
    ];
    let of_values = same
        .iter()
        .find_map(|(ours, theirs)| Some(format!("{theirs}{}", name.strip_prefix(ours)?)))
        .unwrap_or_else(|| name.to_owned());
    let stream_path = folder.join(format!("{name}.stream"));
    let values_path = folder.join(format!("{of_values}.values"));
    let values = values::<T>(count, holes);
    let small = tune_small(&values, layout, bound).unwrap();
    let plan = match kind {
        Kind::Small => small,
        Kind::Quick
        | Kind::QuickFree
        | Kind::QuickOfVersion1
        | Kind::QuickOfVersion2
        | Kind::QuickOfVersion6 => small.quick(),
        Kind::PlanesOfVersion5 | Kind::BridgedOfVersion6 | Kind::Free | Kind::Cells => {
            tune(&values, layout, bound).unwrap()
        }
        Kind::Packed => small.packed(),
    };
    let stream = encode(
        &values,
        layout,
        bound,
        Some(plan),
        &mut Workspace::default(),
    )
    .unwrap();
    let mut out = vec![T::from_f64(1.0); count];
    if !kind.is_old()
        && !matches!(kind, Kind::Small | Kind::Cells)
        && std::env::var_os("AMBAR_GOLDEN_WRITE").is_some()
    {
        decode(&stream, &mut out, &mut Workspace::default()).unwrap();
        let bytes = out
            .iter()
            .flat_map(|x| x.to_word().to_le_bytes()[..T::SIZE].to_vec());
        std::fs::write(&stream_path, &stream).unwrap();
        if of_values == name {
            std::fs::write(&values_path, bytes.collect::<Vec<u8>>()).unwrap();
        }
    }
    let kept = std::fs::read(&stream_path).unwrap();
    decode(&kept, &mut out, &mut Workspace::default()).unwrap();
    let expected = std::fs::read(&values_path).unwrap();
    assert_eq!(expected.len(), count * T::SIZE, "{name}");
    for (i, (x, bytes)) in out.iter().zip(expected.chunks_exact(T::SIZE)).enumerate() {
        assert_eq!(
            &x.to_word().to_le_bytes()[..T::SIZE],
            bytes,
            "{name}: value {i}"
        );
    }
    assert!(
        kind.is_old() || stream == kept,
        "{name}: another stream is made of the same values"
    );
    assert_eq!(kept[0], kind.version(), "{name}");
}

/// Two root cells of three, each refined at its lower corner down to a level, and a cell far out.
fn leaves(dimensions: usize) -> (Vec<u8>, Vec<[i64; 3]>) {
    let (mut levels, mut origins) = (Vec::new(), Vec::new());
    let mut open = vec![(4u8, [0, 0, 13]), (2, [0, 0, 2]), (2, [0, 0, 0])];
    while let Some((level, place)) = open.pop() {
        let distance: i64 = place.iter().map(|n| n % (1 << (level - 2))).sum();
        if level == 6 || distance > 3 {
            levels.push(level);
            origins.push(place);
            continue;
        }
        for child in (0..1i64 << dimensions).rev() {
            let below = [2, 1, 0].map(|d| child >> d & 1);
            open.push((level + 1, [0, 1, 2].map(|d| 2 * place[d] + below[d])));
        }
    }
    (levels, origins)
}

/// Made by the same, with version 4.
#[test]
fn streams_of_version_4() {
    for dimensions in 1..=3 {
        let (levels, origins) = leaves(dimensions);
        let layout = Layout::Cells {
            dimensions,
            levels: &levels,
            origins: &origins,
        };
        // Some of the values are no cells'.
        let count = levels.len() + 7 * (dimensions - 1);
        for (kind, bound) in [("lossless", 0.0), ("bound", 1e-3), ("tight", 1e-7)] {
            let holes = dimensions == 2;
            let name = format!("cells{dimensions}-{kind}");
            check::<f64>(&name, Kind::Cells, &layout, count, (bound, holes));
            if dimensions == 3 {
                let name = format!("cells-{kind}");
                check::<f32>(&name, Kind::Cells, &layout, count, (bound, true));
            }
        }
    }
}

/// Filled to 0.63: one region in version 1, several in versions 2 and 5.
const SPARSE: Layout<'_> = Layout::Blocks {
    side: [8; 3],
    origins: &[[0, 0, 0], [0, 0, 8], [0, 8, 0], [8, 0, 0], [8, 8, 8]],
};

#[test]
fn streams_of_version_1() {
    of_all_layouts("", Kind::Small);
}

#[test]
fn quick_streams_of_version_1() {
    of_all_layouts("quick-1-", Kind::QuickOfVersion1);
}

/// Made by `AMBAR_GOLDEN_WRITE=1 cargo test -p ambar-codec --test golden`, once. Between them they have
/// groups of every size.
#[test]
fn quick_streams_of_version_2() {
    for (kind, bound) in [("lossless", 0.0), ("2", 6e-3), ("3", 1.5e-2), ("4", 8e-2)] {
        let name = |layout: &str| format!("quick-2-{layout}-{kind}");
        let (whole, holes) = ((bound, false), (bound, true));
        let kept = match kind {
            "lossless" => Kind::Quick,
            _ => Kind::QuickOfVersion2,
        };
        check::<f64>(&name("row"), kept, &Layout::Array(&[700]), 700, whole);
        let shape = Layout::Array(&[9, 14, 11]);
        check::<f32>(&name("box"), kept, &shape, 1386, whole);
        check::<f32>(&name("sparse"), kept, &SPARSE, 2560, whole);
        let shape = Layout::Array(&[2, 5, 8, 13]);
        check::<f32>(&name("boxes"), Kind::Quick, &shape, 1040, holes);
    }
}

#[test]
fn streams_of_version_5() {
    of_planes("planes-", Kind::PlanesOfVersion5);
}

#[test]
fn streams_of_version_6() {
    of_quick_arrays("quick-6-", Kind::QuickOfVersion6);
    of_holes("bridged-", Kind::BridgedOfVersion6);
    of_holes("bridged-quick-", Kind::QuickOfVersion6);
}

/// Made as those of version 2. Arrays without planes, and what is without loss, have version 1.
#[test]
fn streams_of_version_7() {
    of_planes("free-", Kind::Free);
    of_quick_arrays("free-quick-", Kind::QuickFree);
    of_holes("free-", Kind::Free);
    of_holes("free-quick-", Kind::QuickFree);
}

/// With planes: some have many NaN.
fn of_planes(prefix: &str, kept: Kind) {
    for (kind, bound) in [("bound", 1e-3), ("loose", 8e-2), ("tight", 1e-7)] {
        let name = |layout: &str| format!("{prefix}{layout}-{kind}");
        let (whole, holes) = ((bound, false), (bound, true));
        let boxes = Layout::Array(&[2, 9, 14, 11]);
        check::<f64>(&name("boxes"), kept, &boxes, 2772, whole);
        // Rows of more than one word of 64 points.
        let long = Layout::Array(&[3, 2, 150]);
        check::<f32>(&name("long"), kept, &long, 900, holes);
        check::<f64>(&name("sparse"), kept, &SPARSE, 2560, holes);
    }
    // So long that there are 32 states.
    let cube = Layout::Array(&[30, 28, 31]);
    let name = format!("{prefix}cube-wide");
    check::<f32>(&name, kept, &cube, 26_040, (1e-3, false));
}

/// Between them they have groups of every size, and one has 32 states.
fn of_quick_arrays(prefix: &str, kept: Kind) {
    for (kind, bound) in [("1", 1e-4), ("2", 6e-3), ("3", 1.5e-2), ("4", 8e-2)] {
        let name = format!("{prefix}box-{kind}");
        let shape = Layout::Array(&[9, 14, 11]);
        check::<f64>(&name, kept, &shape, 1386, (bound, false));
    }
    let cube = Layout::Array(&[30, 28, 31]);
    let name = format!("{prefix}cube-wide");
    check::<f32>(&name, kept, &cube, 26_040, (1e-3, false));
}

/// One hole has blocks before it along all dimensions, one is the first place of its region, one the last.
fn of_holes(prefix: &str, kept: Kind) {
    let places = (0..3).flat_map(|z| (0..2).flat_map(move |y| (0..4).map(move |x| [z, y, x])));
    let mut origins: Vec<[i64; 3]> = places
        .filter(|place| ![[1, 1, 1], [0, 0, 0], [2, 1, 3]].contains(place))
        .collect();
    origins.sort_by_key(|[z, y, x]| {
        let part = |n: &i64, d: i64| (n & 1) << d | (n >> 1) << (d + 3);
        part(x, 0) | part(y, 1) | part(z, 2)
    });
    for (kind, bound) in [("bound", 1e-3), ("loose", 8e-2), ("tight", 1e-5)] {
        for side in [[4; 3], [2, 4, 8]] {
            let origins: Vec<[i64; 3]> = origins
                .iter()
                .map(|place| [0, 1, 2].map(|d| place[d] * side[d] as i64))
                .collect();
            let layout = Layout::Blocks {
                side,
                origins: &origins,
            };
            let count = origins.len() * 64;
            let name = format!("{prefix}{}-{kind}", side[2]);
            if matches!(kept, Kind::Free | Kind::BridgedOfVersion6) {
                check::<f64>(&name, kept, &layout, count, (bound, false));
            } else {
                check::<f32>(&name, kept, &layout, count, (bound, false));
            }
        }
    }
}

fn of_all_layouts(prefix: &str, kept: Kind) {
    let cube: Vec<[i64; 3]> = (0..8)
        .map(|i| [i >> 2, i >> 1 & 1, i & 1].map(|n| 4 * n))
        .collect();
    let some: Vec<[i64; 3]> = (0..8)
        .filter(|i| ![2, 5].contains(i))
        .map(|i| [i >> 2, i >> 1 & 1, i & 1].map(|n| 8 * (n - 1)))
        .chain([[8, 8, 80], [800, 8, 80]])
        .collect();
    let (cube, some) = (
        Layout::Blocks {
            side: [4; 3],
            origins: &cube,
        },
        Layout::Blocks {
            side: [8; 3],
            origins: &some,
        },
    );
    for (kind, bound) in [("lossless", 0.0), ("bound", 1e-3), ("tight", 1e-7)] {
        let name = |layout: &str| format!("{prefix}{layout}-{kind}");
        let (whole, holes) = ((bound, false), (bound, true));
        check::<f64>(&name("row"), kept, &Layout::Array(&[700]), 700, whole);
        check::<f32>(&name("plane"), kept, &Layout::Array(&[31, 29]), 899, holes);
        check::<f64>(
            &name("box"),
            kept,
            &Layout::Array(&[9, 14, 11]),
            1386,
            whole,
        );
        check::<f32>(
            &name("boxes"),
            kept,
            &Layout::Array(&[3, 5, 8, 13]),
            1560,
            whole,
        );
        check::<f32>(&name("cube"), kept, &cube, 512, whole);
        check::<f64>(&name("blocks"), kept, &some, 4096, whole);
        check::<f64>(&name("holes"), kept, &some, 4096, holes);
    }
}

#[test]
fn packed_streams_of_version_3() {
    for (kind, bound) in [("lossless", 0.0), ("bound", 1e-3)] {
        let name = |layout: &str| format!("packed-{layout}-{kind}");
        let (kept, whole) = (Kind::Packed, (bound, false));
        check::<f64>(&name("row"), kept, &Layout::Array(&[2300]), 2300, whole);
        check::<f32>(&name("plane"), kept, &Layout::Array(&[31, 61]), 1891, whole);
        let boxes = Layout::Array(&[2, 5, 8, 13]);
        check::<f32>(&name("boxes"), kept, &boxes, 1040, whole);
    }
    let row = Layout::Array(&[700]);
    check::<f64>(
        "packed-holes-lossless",
        Kind::Packed,
        &row,
        700,
        (0.0, true),
    );
}
