//! Patches stored within error bounds, which also hold for dropped cells.

use super::stores::{boxes, pair, read};
use super::*;
use crate::error::ErrorKind;
use crate::kinds::amr::patches::IndexBox;
use crate::kinds::bound::{Compression, ErrorBound};

fn bounded(field: &str, bound: ErrorBound) -> Compression {
    Compression {
        error_bounds: vec![(field.to_owned(), bound)],
        ..Compression::default()
    }
}

/// Values of float32 or float64 bytes.
fn values(bytes: &[u8], size: usize) -> Vec<f64> {
    let value = |raw: &[u8]| match size {
        4 => f64::from(f32::from_ne_bytes(raw.try_into().unwrap())),
        _ => f64::from_ne_bytes(raw.try_into().unwrap()),
    };
    bytes.chunks_exact(size).map(value).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn every_bound_holds(
        recipe in recipes(),
        chunk in 1usize..3000,
        exponent in -9.0f64..3.0,
        relative in any::<bool>(),
    ) {
        let sample = Arc::new(Sample::new(&recipe));
        let size = 10f64.powf(exponent);
        let bound = if relative { ErrorBound::OfRange(size.min(0.5)) } else { ErrorBound::Absolute(size) };
        let options = PatchOptions {
            chunk_cells: Some(chunk),
            compression: bounded("*", bound),
            ..PatchOptions::default()
        };
        let (stored, _folder) = sample.stored_with(&options);
        let bounds = stored.attributes().get("error_bounds").cloned().unwrap_or_default();
        for field in FIELDS {
            let bound = bounds.get(field).and_then(serde_json::Value::as_f64).unwrap_or(0.0);
            prop_assert!(field != "count" || bound == 0.0);
            let size = sample.dtype(field).unwrap().size().unwrap();
            for b in boxes(&sample) {
                let (expected, found) = (read(&*sample, b, field), read(&stored, b, field));
                if bound == 0.0 {
                    prop_assert!(expected == found, "{field} {b:?}");
                    continue;
                }
                for (expected, found) in values(&expected, size).into_iter().zip(values(&found, size)) {
                    let same = expected.to_bits() == found.to_bits() || expected.is_nan() && found.is_nan();
                    prop_assert!(
                        same || (expected - found).abs() <= bound,
                        "{field} {b:?}: {expected} became {found}, bound {bound}"
                    );
                }
            }
        }
    }
}

#[test]
fn approximate_averages_are_dropped_within_a_bound() {
    use crate::kinds::amr::patches::write::covered::{Averaging, finer_bound};
    let (hierarchy, _) = pair();
    let nest = crate::kinds::amr::patches::hierarchy::nest::Nest::new(hierarchy).unwrap();
    let needed = |bound: ErrorBound, coarse: f64, fine: f64| {
        let of = |value: f64| {
            move |_: usize, _: &IndexBox, out: &mut [u8]| {
                out.as_chunks_mut().0.fill(value.to_ne_bytes());
                Ok(())
            }
        };
        let averaging = Averaging {
            bound,
            floor: 0.0,
            rounding: 0.0,
            least: 0.0,
        };
        finer_bound(
            &nest,
            0,
            &DataType::Float64,
            &averaging,
            &of(coarse),
            &of(fine),
        )
        .unwrap()
    };
    let lossless = |coarse, fine| needed(ErrorBound::Lossless, coarse, fine) >= 0.0;
    assert!(lossless(1.0, 1.0) && lossless(f64::INFINITY, f64::INFINITY));
    assert!(!lossless(1.0, 1.25));
    assert!(!lossless(-0.0, 0.0), "the bits differ");
    let absolute = |coarse, fine| needed(ErrorBound::Absolute(0.5), coarse, fine);
    assert_eq!(absolute(1.0, 1.0), 0.5);
    assert_eq!(absolute(1.0, 1.25), 0.25);
    assert_eq!(absolute(-0.0, 0.0), 0.5);
    assert_eq!(absolute(f64::NAN, 1.0), f64::NEG_INFINITY);
    assert_eq!(absolute(1.0, f64::NAN), f64::NEG_INFINITY);
    assert_eq!(needed(ErrorBound::Rms(0.5), 1.0, 1.25), 0.25);
    let relative = |coarse, fine| needed(ErrorBound::Relative(0.5), coarse, fine);
    assert_eq!(relative(-4.0, -4.0), 0.5);
    assert_eq!(relative(4.0, 5.0), 0.2);
    assert_eq!(relative(0.0, 0.0), 0.5);
    assert!(relative(0.0, 1.0) < 0.0 && relative(1.0, f64::INFINITY) < 0.0);
    assert_eq!(relative(f64::INFINITY, f64::INFINITY), 0.5);
}

/// Covered cells that are averages of finer ones are left out under every kind of bound, except bits.
#[test]
fn covered_cells_are_dropped_under_all_kinds_of_bounds() {
    use crate::kinds::amr::patches::write::decision::Decided;
    use crate::kinds::amr::patches::write::fields::named_fields;
    let sample = Averages {
        hierarchy: pair().0,
        fields: vec!["smooth".to_owned()],
    };
    let nest = crate::kinds::amr::patches::hierarchy::nest::Nest::new(sample.hierarchy.clone());
    let nest = nest.unwrap();
    for (bound, drops) in [
        ("lossless", false),
        ("1e-3", true),
        ("1e-3 relative", true),
        ("1e-3 relative above 1", true),
        ("1e-3 rms", true),
        ("10 bits", false),
    ] {
        let compression = bounded("smooth", bound.parse().unwrap());
        let dtypes = [DataType::Float64];
        let fields = named_fields(&nest, &sample.fields, &dtypes, &compression).unwrap();
        let options = PatchOptions {
            compression,
            ..PatchOptions::default()
        };
        let decided = Decided::new(&nest, &sample, &fields[0], &options).unwrap();
        assert_eq!(decided.dropped, [drops, false], "{bound}");
    }
}

/// Values that are nearly the averages of the finer ones.
struct Averages {
    hierarchy: PatchHierarchy,
    fields: Vec<String>,
}

impl PatchSource for Averages {
    fn hierarchy(&self) -> &PatchHierarchy {
        &self.hierarchy
    }
    fn fields(&self) -> &[String] {
        &self.fields
    }
    fn dtype(&self, _: &str) -> Result<DataType> {
        Ok(DataType::Float64)
    }
    fn read_box(&self, level: usize, _: usize, _: &str, out: &mut [u8]) -> Result<()> {
        out.as_chunks_mut()
            .0
            .fill((5.0 + level as f64 * 1e-9).to_ne_bytes());
        Ok(())
    }
}

#[test]
fn integers_have_no_bound() {
    let sample = Arc::new(Sample::new(&Recipe {
        seed: 1,
        ndim: 2,
        levels: 2,
    }));
    let options = PatchOptions {
        compression: bounded("count", ErrorBound::Absolute(0.5)),
        ..PatchOptions::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.ambar");
    let mut writer = StoreWriter::create(&path, &CreateOptions::default()).unwrap();
    let error = PatchAmr::write(&mut writer, "/amr", &*sample, &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}
