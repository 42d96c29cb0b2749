//! Helpers of the tests of the RAMSES reader: paths of outputs, and copies of outputs for damage.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs;
use std::path::{Path, PathBuf};

use ambar::{Column, Result};
use ambar_formats::ramses::{CellsRequest, LeafCells, Output, ParticlesRequest};

/// The folder of an output: in the repository, beside it, or in `$AMBAR_TEST_DATA`.
pub fn output(case: &str, number: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let given = std::env::var_os("AMBAR_TEST_DATA").map(PathBuf::from);
    let places = [
        Some(root.join("tests/data/ramses")),
        Some(root.join("tests/data/ramses_cases")),
        Some(root.join("../shared/data/ramses")),
        given.clone(),
        given.map(|given| given.join("ramses")),
    ];
    let folder = format!("{case}/output_{number}");
    let mut paths = places
        .into_iter()
        .flatten()
        .map(|place| place.join(&folder));
    paths.find(|path| path.is_dir())
}

/// The folder of an output in the repository.
pub fn own_output(case: &str, number: &str) -> PathBuf {
    output(case, number).unwrap_or_else(|| panic!("tests/data lacks {case}/output_{number}"))
}

/// A copy of an output that may be damaged.
pub struct Copy {
    folder: tempfile::TempDir,
    /// The copy's `output_NNNNN`.
    pub path: PathBuf,
}

impl Copy {
    pub fn of(source: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(source.file_name().unwrap());
        fs::create_dir(&path).unwrap();
        for entry in fs::read_dir(source).unwrap() {
            let from = entry.unwrap().path();
            fs::write(
                path.join(from.file_name().unwrap()),
                fs::read(&from).unwrap(),
            )
            .unwrap();
        }
        Self { folder, path }
    }

    /// The names of its files, sorted.
    pub fn files(&self) -> Vec<String> {
        let names = fs::read_dir(&self.path).unwrap();
        let mut names: Vec<_> = names
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Changes the content of a file.
    pub fn change(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let path = self.path.join(name);
        let mut bytes = fs::read(&path).unwrap();
        change(&mut bytes);
        fs::write(&path, bytes).unwrap();
    }
}

/// All tables of an output.
pub struct Everything {
    pub cells: LeafCells,
    pub tables: Vec<Vec<(String, Column)>>,
}

/// Reads all of an output.
pub fn read_all(path: &Path) -> Result<Everything> {
    let output = Output::open(path)?;
    let cells = output.read_cells(&CellsRequest {
        domain: true,
        ..CellsRequest::default()
    })?;
    let mut tables = Vec::new();
    if output.components()[3].missing.is_none() {
        let request = ParticlesRequest {
            domain: true,
            ..ParticlesRequest::default()
        };
        tables.push(output.read_particles(&request)?);
    }
    tables.extend(output.read_sinks()?);
    tables.extend(output.read_clumps()?);
    Ok(Everything { cells, tables })
}

/// Whether two tables have equal names, types and bits.
pub fn same(one: &[(String, Column)], other: &[(String, Column)]) -> bool {
    let same = |(a, b): (&(String, Column), &(String, Column))| {
        a.0 == b.0 && a.1.dtype() == b.1.dtype() && a.1.bytes() == b.1.bytes()
    };
    one.len() == other.len() && one.iter().zip(other).all(same)
}

/// Whether two reads are equal.
pub fn equal(one: &Everything, other: &Everything) -> bool {
    one.cells.leaves.levels.bytes() == other.cells.leaves.levels.bytes()
        && one.cells.leaves.jumps == other.cells.leaves.jumps
        && same(&one.cells.columns, &other.cells.columns)
        && one.tables.len() == other.tables.len()
        && one
            .tables
            .iter()
            .zip(&other.tables)
            .all(|(a, b)| same(a, b))
}

/// The payloads of a Fortran file's records.
pub fn records(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = bytes;
    let mut records = Vec::new();
    while let Some((marker, after)) = rest.split_first_chunk::<4>() {
        let len = i32::from_le_bytes(*marker) as usize;
        records.push(after[..len].to_vec());
        rest = &after[len + 4..];
    }
    records
}

/// A Fortran file of `records`, each split into subrecords of at most `most` bytes.
pub fn split(records: &[Vec<u8>], most: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in records {
        let pieces: Vec<&[u8]> = match record.len() {
            0 => vec![&[]],
            _ => record.chunks(most).collect(),
        };
        for (i, piece) in pieces.iter().enumerate() {
            let len = piece.len() as i32;
            let head = if i + 1 < pieces.len() { -len } else { len };
            let tail = if i > 0 { -len } else { len };
            bytes.extend(head.to_le_bytes());
            bytes.extend(*piece);
            bytes.extend(tail.to_le_bytes());
        }
    }
    bytes
}
