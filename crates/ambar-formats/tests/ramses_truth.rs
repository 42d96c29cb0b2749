//! All outputs match their reference files, bit for bit.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests"
)]

mod common;

use ambar::Column;
use ambar_formats::ramses::{CellsRequest, Output, ParticlesRequest};

/// Digests of the reference files, computed by `tests/data/ramses/digests.py`.
const TRUTH: &str = include_str!("ramses_truth.txt");

/// Cases too large for the repository.
const ELSEWHERE: [&str; 3] = ["bench48", "mhd_small", "rt_small"];

fn digest(column: &Column, order: &[usize]) -> u64 {
    let size = column.dtype().size().unwrap();
    let bits = |row: usize| {
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(&column.bytes()[row * size..(row + 1) * size]);
        u64::from_le_bytes(bytes)
    };
    let weighed = order
        .iter()
        .zip(0u64..)
        .map(|(row, r)| (2 * r + 1).wrapping_mul(bits(*row)));
    weighed.fold(0, u64::wrapping_add)
}

fn levels(levels: &[u8]) -> Column {
    let mut column = Column::allocate(&[ambar::DataType::UInt32], levels.len())
        .unwrap()
        .remove(0);
    for (to, from) in column.values_mut::<u32>().iter_mut().zip(levels) {
        *to = u32::from(*from);
    }
    column
}

/// The rows by ascending identity, in a stable order.
fn by_identity(table: &[(String, Column)]) -> Vec<usize> {
    let (_, column) = table.iter().find(|(name, _)| name == "identity").unwrap();
    let identity = |row: usize| match column.dtype().size() {
        Some(8) => column.values::<i64>()[row],
        _ => i64::from(column.values::<i32>()[row]),
    };
    let mut rows: Vec<_> = (0..column.rows()).collect();
    rows.sort_by_key(|row| identity(*row));
    rows
}

fn check(line: &str) {
    let mut words = line.split(' ');
    let mut word = || words.next().unwrap();
    let (case, number, table, rows) = (word(), word(), word(), word());
    let Some(path) = common::output(case, number) else {
        assert!(ELSEWHERE.contains(&case), "{case} is missing in tests/data");
        eprintln!("skipped: {case} is neither in ../shared/data nor in $AMBAR_TEST_DATA");
        return;
    };
    let output = Output::open(&path).unwrap();
    let (columns, order) = if table == "leaf" {
        let request = CellsRequest {
            domain: true,
            ..CellsRequest::default()
        };
        let cells = output.read_cells(&request).unwrap();
        let mut columns = cells.columns;
        columns.push(("level".into(), levels(cells.leaves.levels.bytes())));
        let order: Vec<_> = (0..cells.leaves.levels.rows()).collect();
        (columns, order)
    } else {
        let request = ParticlesRequest {
            domain: true,
            ..ParticlesRequest::default()
        };
        let columns = output.read_particles(&request).unwrap();
        let order = by_identity(&columns);
        (columns, order)
    };
    assert_eq!(order.len().to_string(), rows, "{case} {table}");
    let mut compared = 0;
    for word in words {
        let (field, expected) = word.split_once('=').unwrap();
        let (name, dtype) = field.split_once(':').unwrap();
        let found = columns.iter().find(|(column, _)| column == name);
        let (_, column) = found.unwrap_or_else(|| panic!("{case} {table} has no {name}"));
        assert_eq!(column.dtype().to_string(), dtype, "{case} {table} {name}");
        let found = format!("{:016x}", digest(column, &order));
        assert_eq!(found, expected, "{case} {table} {name}");
        compared += 1;
    }
    assert!(compared > 1, "{case} {table}: nothing to compare");
}

#[test]
fn outputs_match_the_reference_files_bit_for_bit() {
    for line in TRUTH.lines() {
        check(line);
    }
}
