//! The second pass of a selection: reads every selected value into its place in the result.

use rayon::prelude::*;

use crate::container::ReadAhead;
use crate::error::Result;
use crate::kinds::morton::gather;
use crate::kinds::rows::{PickedRows, WantedColumn};
use crate::memory::Column;

/// Decoded size of the columns that are fetched in one batch over a network.
const BATCH_BYTES: u64 = 128 << 20;

/// A job of the second pass: values of one chunk, and their target.
enum Job<'a> {
    Kept(&'a [u8], &'a mut [u8]),
    Stored(&'a PickedRows<'a>, &'a WantedColumn<'a>, &'a mut [u8]),
    Derived(&'a PickedRows<'a>, Vec<&'a str>, Vec<&'a mut [u8]>),
}

/// Reads the values of all columns of all parts into their places.
///
/// # Errors
/// As `ColumnSource::read`.
pub(super) fn fill(
    wanted: &[WantedColumn<'_>],
    parts: &[PickedRows<'_>],
    columns: &mut [Column],
) -> Result<()> {
    let remote = parts
        .first()
        .is_some_and(|part| part.table.source().is_remote());
    let mut jobs: Vec<Job<'_>> = Vec::new();
    let mut rests: Vec<&mut [u8]> = columns.iter_mut().map(Column::bytes_mut).collect();
    for part in parts {
        let (mut names, mut outs) = (Vec::new(), Vec::new());
        for (place, column) in wanted.iter().enumerate() {
            let rest = std::mem::take(&mut rests[place]);
            let (out, rest) = rest.split_at_mut(part.len() * column.size);
            rests[place] = rest;
            if let Some(values) = part.kept.get(&place) {
                jobs.push(Job::Kept(values, out));
            } else if column.derived || column.is_input && part.picked.is_none() && !remote {
                names.push(column.name);
                outs.push(out);
            } else {
                jobs.push(Job::Stored(part, column, out));
            }
        }
        if !names.is_empty() {
            jobs.push(Job::Derived(part, names, outs));
        }
    }
    if !remote {
        return run(jobs);
    }
    // Over a network, the bytes of many jobs are fetched in few requests before the jobs run.
    let mut rest = jobs.into_iter().peekable();
    while rest.peek().is_some() {
        let mut bytes = 0;
        let batch: Vec<Job<'_>> = std::iter::from_fn(|| {
            let job = (bytes < BATCH_BYTES).then(|| rest.next())??;
            if let Job::Stored(part, column, _) = &job {
                bytes += part.rows.end.saturating_sub(part.rows.start) * column.size as u64;
            }
            Some(job)
        })
        .collect();
        let ahead = fetch(&batch)?;
        run(batch)?;
        drop(ahead);
    }
    Ok(())
}

/// Fetches the bytes that `jobs` read, table by table.
fn fetch(jobs: &[Job<'_>]) -> Result<Vec<ReadAhead>> {
    let stored = jobs.iter().filter_map(|job| match job {
        Job::Stored(part, column, _) => Some((part, column.name)),
        _ => None,
    });
    let stored: Vec<_> = stored.collect();
    let tables = stored.chunk_by(|(a, _), (b, _)| std::ptr::addr_eq(a.table, b.table));
    let fetched = tables.map(|jobs| {
        let wanted: Vec<_> = jobs
            .iter()
            .map(|(part, name)| (*name, part.rows.clone()))
            .collect();
        jobs[0].0.table.source().read_ahead(&wanted)
    });
    fetched.collect()
}

/// Runs `jobs` in parallel.
fn run(jobs: Vec<Job<'_>>) -> Result<()> {
    jobs.into_par_iter()
        .with_max_len(1)
        .try_for_each_init(Vec::new, |scratch, job| match job {
            Job::Kept(values, out) => {
                out.copy_from_slice(values);
                Ok(())
            }
            Job::Stored(part, column, out) => stored(part, column, scratch, out),
            Job::Derived(part, names, mut outs) => {
                part.table.derive(part.rows.clone(), &names, &mut outs)
            }
        })
}

/// Reads the selected stored values of a part into `out`.
fn stored(
    part: &PickedRows<'_>,
    column: &WantedColumn<'_>,
    scratch: &mut Vec<u8>,
    out: &mut [u8],
) -> Result<()> {
    let Some(picked) = &part.picked else {
        return part
            .table
            .source()
            .read(column.name, part.rows.clone(), out);
    };
    let rows = (part.rows.end - part.rows.start) as usize;
    scratch.resize(rows * column.size, 0);
    part.table
        .source()
        .read(column.name, part.rows.clone(), scratch)?;
    gather(scratch, column.size, picked, out);
    Ok(())
}
