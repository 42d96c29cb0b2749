//! Windows of rows equal the rows of a read of all.

use std::path::{Path, PathBuf};

use ambar::Column;
use ambar::kinds::particles;
use ambar::kinds::streamed::StreamedColumns;

use super::cells::LeafCellReader;
use super::request::{CellsRequest, ParticlesRequest};
use super::sorted_particles::SortedParticles;
use crate::ramses::component::ComponentKind;
use crate::ramses::output::Output;

fn outputs() -> Vec<Output> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let found = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = found.map(|entry| entry.path()).collect();
        paths.sort();
        paths
    };
    let folders = ["ramses", "ramses_cases"].map(|name| data.join(name));
    let found: Vec<Output> = folders
        .iter()
        .flat_map(|folder| entries(folder))
        .flat_map(|case| entries(&case))
        .filter(|path| path.is_dir())
        .filter_map(|path| Output::open(&path).ok())
        .collect();
    assert!(found.len() > 10, "{} outputs", found.len());
    found
}

/// Reads all windows of every column, and of all columns together, and compares them with `all`.
fn compare(streamed: &StreamedColumns<'_>, all: &[(String, Column)]) {
    let names: Vec<&String> = all.iter().map(|(name, _)| name).collect();
    assert_eq!(
        streamed
            .columns
            .iter()
            .map(|(name, _)| name)
            .collect::<Vec<_>>(),
        names
    );
    let every: Vec<usize> = (0..all.len()).collect();
    let reversed: Vec<usize> = every.iter().rev().copied().collect();
    let each = every.iter().map(|column| vec![*column]);
    for columns in each.chain([every.clone(), reversed]) {
        for window in [streamed.rows, streamed.rows.div_ceil(3), 101] {
            for first in (0..streamed.rows).step_by(window.max(1)) {
                let rows = first..(first + window).min(streamed.rows);
                let dtypes: Vec<_> = columns
                    .iter()
                    .map(|c| streamed.columns[*c].1.clone())
                    .collect();
                let mut out = Column::allocate(&dtypes, rows.len()).unwrap();
                out.iter_mut()
                    .for_each(|column| column.bytes_mut().fill(0xa5));
                (streamed.read)(&columns, rows.clone(), &mut out).unwrap();
                for (column, found) in columns.iter().zip(&out) {
                    let size = found.dtype().size().unwrap();
                    let expected = &all[*column].1.bytes()[rows.start * size..rows.end * size];
                    assert!(found.bytes() == expected, "{} {rows:?}", all[*column].0);
                }
            }
        }
    }
}

#[test]
fn windows_of_cells_equal_the_cells() {
    for output in outputs() {
        for levels in [None, Some((2, 3))] {
            let request = CellsRequest {
                domain: true,
                levels,
                ..CellsRequest::default()
            };
            let Ok(all) = output.read_cells(&request) else {
                continue;
            };
            let reader = LeafCellReader::new(&output, &request).unwrap();
            compare(&reader.columns(), &all.columns);
        }
    }
}

#[test]
fn windows_of_sorted_particles_equal_the_particles() {
    let mut compared = 0;
    for output in outputs() {
        if output
            .component(ComponentKind::Particles)
            .is_none_or(|particles| particles.missing.is_some())
        {
            continue;
        }
        let request = ParticlesRequest {
            domain: true,
            ..ParticlesRequest::default()
        };
        let mut all = output.read_particles(&request).unwrap();
        let (ndim, boxlen) = (output.info().ndim, output.info().boxlen);
        particles::sort(&mut all, ndim, boxlen).unwrap();
        let sorted = SortedParticles::new(&output, &request).unwrap();
        compare(&sorted.columns(), &all);
        compared += 1;
    }
    assert!(compared > 1);
}
