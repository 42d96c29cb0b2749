//! Streams of today, kept: they are read for ever, and the same are made of the same values.

#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions only, not in their helpers
use ambar_codec::{Element, Layout, Plan, Workspace, decode, encode};
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

fn check<T: Element>(name: &str, layout: &Layout<'_>, count: usize, bound: f64, holes: bool) {
    check_plan::<T>(name, layout, (count, bound, holes), None);
}

fn check_plan<T: Element>(
    name: &str,
    layout: &Layout<'_>,
    (count, bound, holes): (usize, f64, bool),
    plan: Option<Plan>,
) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let [stream_path, values_path] =
        ["stream", "values"].map(|kind| folder.join(format!("{name}.{kind}")));
    let values = values::<T>(count, holes);
    let stream = encode(&values, layout, bound, plan, &mut Workspace::default()).unwrap();
    let mut out = vec![T::from_f64(1.0); count];
    if std::env::var_os("AMBAR_GOLDEN_WRITE").is_some() {
        decode(&stream, &mut out, &mut Workspace::default()).unwrap();
        let bytes = out
            .iter()
            .flat_map(|x| x.to_word().to_le_bytes()[..T::SIZE].to_vec());
        std::fs::write(&stream_path, &stream).unwrap();
        std::fs::write(&values_path, bytes.collect::<Vec<u8>>()).unwrap();
        return;
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
        stream == kept,
        "{name}: another stream is made of the same values"
    );
}

/// Made by `AMBAR_GOLDEN_WRITE=1 cargo test -p ambar-codec --test golden`, once for each version.
#[test]
fn streams_of_version_1() {
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
        check::<f64>(
            &format!("row-{kind}"),
            &Layout::Array(&[700]),
            700,
            bound,
            false,
        );
        check::<f32>(
            &format!("plane-{kind}"),
            &Layout::Array(&[31, 29]),
            899,
            bound,
            true,
        );
        check::<f64>(
            &format!("box-{kind}"),
            &Layout::Array(&[9, 14, 11]),
            1386,
            bound,
            false,
        );
        check::<f32>(
            &format!("boxes-{kind}"),
            &Layout::Array(&[3, 5, 8, 13]),
            1560,
            bound,
            false,
        );
        check::<f32>(&format!("cube-{kind}"), &cube, 512, bound, false);
        check::<f64>(&format!("blocks-{kind}"), &some, 4096, bound, false);
        check::<f64>(&format!("holes-{kind}"), &some, 4096, bound, true);
    }
}

#[test]
fn packed_streams_of_version_3() {
    let plan = Some(Plan::default().packed());
    for (kind, bound) in [("lossless", 0.0), ("bound", 1e-3)] {
        let row = format!("packed-row-{kind}");
        check_plan::<f64>(&row, &Layout::Array(&[2300]), (2300, bound, false), plan);
        let plane = format!("packed-plane-{kind}");
        let shape = [31, 61];
        check_plan::<f32>(&plane, &Layout::Array(&shape), (1891, bound, false), plan);
        let boxes = format!("packed-boxes-{kind}");
        let shape = [2, 5, 8, 13];
        check_plan::<f32>(&boxes, &Layout::Array(&shape), (1040, bound, false), plan);
        let holes = format!("packed-holes-{kind}");
        check_plan::<f64>(&holes, &Layout::Array(&[700]), (700, bound, true), plan);
    }
}
