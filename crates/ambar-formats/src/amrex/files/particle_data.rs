//! Reading the particles of a species into columns, grid by grid in file order, on all threads.

use ambar::{Column, Result};
use rayon::prelude::*;

use super::open_files::{DataFile, OpenFiles};
use super::species::{IdEncoding, ParticleGrid, SpeciesFiles};

/// Particles read with one call.
const ROWS: usize = 8192;

/// The rows of the columns that one grid fills.
struct GridTask<'a> {
    level: usize,
    index: usize,
    grid: ParticleGrid,
    columns: Vec<&'a mut [u8]>,
}

/// Reads all particles of a species; the columns are those of `SpeciesFiles::columns`.
///
/// # Errors
/// `Corrupt` for a truncated file; `Limit` if the columns do not fit into memory; `Io`.
pub fn read(species: &SpeciesFiles, files: &OpenFiles) -> Result<Vec<(String, Column)>> {
    let columns = species.columns();
    let dtypes: Vec<_> = columns.iter().map(|(_, dtype)| dtype.clone()).collect();
    // Opening the species checks that the files hold this number of particles.
    let mut table = Column::allocate(&dtypes, species.header.particles as usize)?;
    split_columns(species, &mut table)
        .into_par_iter()
        .try_for_each(|task| {
            let file = files.get(&species.file(task.level, task.grid.file))?;
            read_grid(species, &file, task)
        })?;
    let names = columns.into_iter().map(|(name, _)| name);
    Ok(names.zip(table).collect())
}

/// Splits every column by grids.
fn split_columns<'a>(species: &SpeciesFiles, table: &'a mut [Column]) -> Vec<GridTask<'a>> {
    let mut tasks = Vec::new();
    for (level, grids) in species.header.levels.iter().enumerate() {
        let filled = grids.iter().enumerate().filter(|(_, grid)| grid.count > 0);
        tasks.extend(filled.map(|(index, grid)| GridTask {
            level,
            index,
            grid: *grid,
            columns: Vec::new(),
        }));
    }
    for column in table {
        let size = column.dtype().size().unwrap_or(1);
        let mut rest = column.bytes_mut();
        for task in &mut tasks {
            let (own, after) = rest.split_at_mut(task.grid.count as usize * size);
            task.columns.push(own);
            rest = after;
        }
    }
    tasks
}

fn read_grid(species: &SpeciesFiles, file: &DataFile, mut task: GridTask<'_>) -> Result<()> {
    let record = species.record;
    let count = task.grid.count as usize;
    let reals = task.grid.offset + (count * record.ints * 4) as u64;
    let what = format!("the particles of grid {}", task.index);
    let mut buffer = Vec::new();
    for first in (0..count).step_by(ROWS) {
        let rows = first..(first + ROWS).min(count);
        let ints = record.ints * 4;
        buffer.resize(rows.len() * ints, 0);
        let start = task.grid.offset + (first * ints) as u64;
        file.read(start, &mut buffer, &what)?;
        let (reals_out, others) = task.columns.split_at_mut(record.reals);
        if record.ints > 0 {
            unpack_ints(
                species.header.id_encoding(),
                &buffer,
                record.ints,
                rows.start,
                others,
            );
        }
        let bytes = record.reals * record.real_size;
        buffer.resize(rows.len() * bytes, 0);
        file.read(reals + (first * bytes) as u64, &mut buffer, &what)?;
        match record.real_size {
            8 => unpack_reals::<8>(&buffer, record.reals, rows.start, reals_out),
            _ => unpack_reals::<4>(&buffer, record.reals, rows.start, reals_out),
        }
    }
    let mut last = task.columns.iter_mut().rev();
    if let (Some(grids), Some(levels)) = (last.next(), last.next()) {
        levels.fill(task.level as u8);
        let index = (task.index as u32).to_ne_bytes();
        grids.as_chunks_mut().0.fill(index);
    }
    Ok(())
}

/// Transposes rows of little-endian reals to columns, from row `first` on.
fn unpack_reals<const N: usize>(rows: &[u8], columns: usize, first: usize, out: &mut [&mut [u8]]) {
    let values: &[[u8; N]] = rows.as_chunks().0;
    for (column, bytes) in out.iter_mut().enumerate() {
        let place: &mut [[u8; N]] = bytes.as_chunks_mut().0;
        let each = values.iter().skip(column).step_by(columns);
        for (out, value) in place.iter_mut().skip(first).zip(each) {
            *out = *value;
            swap_if_big_endian(out);
        }
    }
}

/// Transposes rows of integers: id and process first, then the components.
fn unpack_ints(
    encoding: IdEncoding,
    rows: &[u8],
    columns: usize,
    first: usize,
    out: &mut [&mut [u8]],
) {
    let values: &[[u8; 4]] = rows.as_chunks().0;
    if let [ids, cpus, ..] = out {
        let ids = ids.as_chunks_mut::<8>().0.iter_mut().skip(first);
        let cpus = cpus.as_chunks_mut::<4>().0.iter_mut().skip(first);
        let rows = values.chunks_exact(columns);
        for ((id_out, cpu_out), row) in ids.zip(cpus).zip(rows) {
            let (id, cpu) = decode_id(encoding, [row[0], row[1]]);
            *id_out = id.to_ne_bytes();
            *cpu_out = cpu.to_ne_bytes();
        }
    }
    for (component, bytes) in out.iter_mut().skip(2).take(columns - 2).enumerate() {
        let each = values.iter().skip(component + 2).step_by(columns);
        let place = bytes.as_chunks_mut::<4>().0.iter_mut().skip(first);
        for (out, value) in place.zip(each) {
            *out = *value;
            swap_if_big_endian(out);
        }
    }
}

/// Converts a number between little-endian order and the order of this machine.
pub fn swap_if_big_endian(number: &mut [u8]) {
    if cfg!(target_endian = "big") {
        number.reverse();
    }
}

/// Decodes the id and the process of a particle.
fn decode_id(encoding: IdEncoding, [first, second]: [[u8; 4]; 2]) -> (i64, i32) {
    match encoding {
        IdEncoding::Plain => (
            i64::from(i32::from_le_bytes(first)),
            i32::from_le_bytes(second),
        ),
        IdEncoding::Packed => {
            let high = u64::from(u32::from_le_bytes(first));
            let both = high << 32 | u64::from(u32::from_le_bytes(second));
            let number = (both >> 24 & ((1 << 39) - 1)) as i64;
            let sign = if both >> 63 == 1 { 1 } else { -1 };
            (sign * number, (both & 0xff_ffff) as i32)
        }
    }
}

/// Encodes the id and the process of a particle; `None` if a value exceeds the format's range.
pub fn encode_id(encoding: IdEncoding, id: i64, cpu: i32) -> Option<[[u8; 4]; 2]> {
    match encoding {
        IdEncoding::Plain => Some([i32::try_from(id).ok()?.to_le_bytes(), cpu.to_le_bytes()]),
        IdEncoding::Packed => {
            let number = id.unsigned_abs();
            if number >= 1 << 39 || !(0..1 << 24).contains(&cpu) {
                return None;
            }
            let both = u64::from(id >= 0) << 63 | number << 24 | cpu as u64;
            let [high, low] = [(both >> 32) as u32, both as u32];
            Some([high.to_le_bytes(), low.to_le_bytes()])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_processes_round_trip() {
        for (id, cpu) in [(1, 0), (549_755_813_887, 16_777_215), (-5, 7), (0, 3)] {
            let packed = encode_id(IdEncoding::Packed, id, cpu).unwrap();
            assert_eq!(decode_id(IdEncoding::Packed, packed), (id, cpu));
        }
        // The invalid particle of AMReX: id -1, process 0.
        let invalid = 16_777_216u64;
        let halves = [(invalid >> 32) as u32, invalid as u32].map(u32::to_le_bytes);
        assert_eq!(decode_id(IdEncoding::Packed, halves), (-1, 0));
        let plain = encode_id(IdEncoding::Plain, 32767, 3).unwrap();
        assert_eq!(decode_id(IdEncoding::Plain, plain), (32767, 3));
        assert!(encode_id(IdEncoding::Plain, 1 << 31, 0).is_none());
        assert!(encode_id(IdEncoding::Packed, 1 << 39, 0).is_none());
        assert!(encode_id(IdEncoding::Packed, 1, -1).is_none());
    }
}
