//! The Morton curve: keys of lattice points, the order of rows along it, and the permutation of columns.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::memory::Column;

/// Maximum bits of a lattice coordinate: three of them fit in a key of 128 bits.
pub const MAX_BITS: u32 = 42;

/// Bits per dimension of the lattice on which particles are sorted.
pub const PARTICLE_BITS: u32 = 21;

/// The key of a lattice point: the interleaved bits of its `ndim` coordinates, x lowest.
pub fn key(ndim: usize, point: &[u64; 3]) -> u128 {
    match ndim {
        1 => u128::from(point[0]),
        2 => spread2(point[0]) | spread2(point[1]) << 1,
        _ => spread3(point[0]) | spread3(point[1]) << 1 | spread3(point[2]) << 2,
    }
}

/// The key of a lattice point whose coordinates have at most `64 / ndim` bits.
pub fn key64(ndim: usize, point: &[u64; 3]) -> u64 {
    match ndim {
        1 => point[0],
        2 => spread2_64(point[0]) | spread2_64(point[1]) << 1,
        _ => spread3_64(point[0]) | spread3_64(point[1]) << 1 | spread3_64(point[2]) << 2,
    }
}

/// The point that a key represents.
pub fn point(ndim: usize, key: u128) -> [u64; 3] {
    let mut point = [0; 3];
    if ndim == 1 {
        point[0] = key as u64;
        return point;
    }
    // Each half-key of 64 bits (63 in three dimensions) holds 32 (21) bits of each coordinate.
    let (half, bits) = if ndim == 2 { (64, 32) } else { (63, 21) };
    let mask = u64::MAX >> (64 - half);
    for part in 0..3u32 {
        let word = key.checked_shr(part * half).unwrap_or(0) as u64 & mask;
        for (d, coordinate) in point.iter_mut().enumerate().take(ndim) {
            let squeezed = if ndim == 2 {
                squeeze2(word >> d)
            } else {
                squeeze3(word >> d)
            };
            *coordinate |= squeezed.checked_shl(part * bits).unwrap_or(0);
        }
    }
    point
}

// The usual bit tricks: each step halves the groups of bits and doubles the gaps between them.

fn spread2_64(x: u64) -> u64 {
    let mut x = x & 0xffff_ffff;
    x = (x | x << 16) & 0x0000_ffff_0000_ffff;
    x = (x | x << 8) & 0x00ff_00ff_00ff_00ff;
    x = (x | x << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    x = (x | x << 2) & 0x3333_3333_3333_3333;
    (x | x << 1) & 0x5555_5555_5555_5555
}

fn squeeze2(x: u64) -> u64 {
    let mut x = x & 0x5555_5555_5555_5555;
    x = (x | x >> 1) & 0x3333_3333_3333_3333;
    x = (x | x >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    x = (x | x >> 4) & 0x00ff_00ff_00ff_00ff;
    x = (x | x >> 8) & 0x0000_ffff_0000_ffff;
    (x | x >> 16) & 0xffff_ffff
}

fn spread3_64(x: u64) -> u64 {
    let mut x = x & 0x1f_ffff;
    x = (x | x << 32) & 0x001f_0000_0000_ffff;
    x = (x | x << 16) & 0x001f_0000_ff00_00ff;
    x = (x | x << 8) & 0x100f_00f0_0f00_f00f;
    x = (x | x << 4) & 0x10c3_0c30_c30c_30c3;
    (x | x << 2) & 0x1249_2492_4924_9249
}

fn squeeze3(x: u64) -> u64 {
    let mut x = x & 0x1249_2492_4924_9249;
    x = (x | x >> 2) & 0x10c3_0c30_c30c_30c3;
    x = (x | x >> 4) & 0x100f_00f0_0f00_f00f;
    x = (x | x >> 8) & 0x001f_0000_ff00_00ff;
    x = (x | x >> 16) & 0x001f_0000_0000_ffff;
    (x | x >> 32) & 0x1f_ffff
}

fn spread2(x: u64) -> u128 {
    u128::from(spread2_64(x)) | u128::from(spread2_64(x >> 32)) << 64
}

fn spread3(x: u64) -> u128 {
    u128::from(spread3_64(x)) | u128::from(spread3_64(x >> 21)) << 63
}

/// The order that sorts rows by their keys; equal keys keep their order. Parallel.
///
/// # Errors
/// `Limit` if there are more than 2^32 rows.
pub fn order<K: Ord + Copy + Send>(keys: &[K]) -> Result<Vec<u32>> {
    if u32::try_from(keys.len()).is_err() {
        return Err(Error::limit(format!(
            "expected at most 2^32 - 1 rows to sort, found {}; split them",
            keys.len()
        )));
    }
    if keys.is_sorted() {
        return Ok((0..keys.len() as u32).collect());
    }
    let mut pairs: Vec<(K, u32)> = keys.iter().copied().zip(0..).collect();
    // The row number is part of the pair: no two are equal, so the order does not depend on threads.
    pairs.par_sort_unstable();
    Ok(pairs.into_iter().map(|(_, row)| row).collect())
}

/// The order of leaf cells along the curve, by their lower corners (lattice units, at most
/// `MAX_BITS` bits): one slice of coordinates a dimension, equally long.
///
/// # Errors
/// As `order`; `Invalid` if a coordinate has more bits.
pub fn order_of_corners(corners: &[&[u64]]) -> Result<Vec<u32>> {
    let ndim = corners.len();
    let rows = corners.first().map_or(0, |x| x.len());
    let highest = corners.iter().flat_map(|x| x.iter()).max();
    let bits = 64 - highest.unwrap_or(&0).leading_zeros();
    if bits > MAX_BITS {
        return Err(Error::invalid(format!(
            "expected lattice coordinates of at most {MAX_BITS} bits, found {bits}"
        )));
    }
    let at = |row: usize| {
        let mut point = [0; 3];
        for (to, x) in point.iter_mut().zip(corners) {
            *to = x[row];
        }
        point
    };
    if bits as usize * ndim <= 64 {
        let keys: Vec<u64> = (0..rows).map(|row| key64(ndim, &at(row))).collect();
        order(&keys)
    } else {
        let keys: Vec<u128> = (0..rows).map(|row| key(ndim, &at(row))).collect();
        order(&keys)
    }
}

/// The order of particles along the curve, by their positions (code length, one slice a dimension,
/// equally long) on a lattice of 2^21 points a side over the cube of side `boxlen` with its lower
/// corner at `lower`. Positions outside are moved to its border, NaN to its lower corner.
///
/// # Errors
/// As `order`.
pub fn order_of_positions(positions: &[&[f64]], lower: [f64; 3], boxlen: f64) -> Result<Vec<u32>> {
    let rows = positions.first().map_or(0, |x| x.len());
    let keys: Vec<u64> = (0..rows)
        .into_par_iter()
        .map(|row| {
            let mut position = [0.0; 3];
            for (to, x) in position.iter_mut().zip(positions) {
                *to = x[row];
            }
            key_of_position(positions.len(), &position, lower, boxlen)
        })
        .collect();
    order(&keys)
}

/// The key of a particle at `position`, as in `order_of_positions`.
pub fn key_of_position(ndim: usize, position: &[f64; 3], lower: [f64; 3], boxlen: f64) -> u64 {
    let scale = f64::from(1u32 << PARTICLE_BITS) / boxlen;
    let last = (1u64 << PARTICLE_BITS) - 1;
    let mut point = [0; 3];
    for ((to, x), lower) in point.iter_mut().zip(position).zip(lower).take(ndim) {
        // The cast saturates: NaN and negative values become 0.
        *to = (((x - lower) * scale) as u64).min(last);
    }
    key64(ndim, &point)
}

/// Copies row `order[i]` of `from` to row `i` of `to`; both consist of values of `size` bytes.
pub(crate) fn gather(from: &[u8], size: usize, order: &[u32], to: &mut [u8]) {
    fn fixed<const N: usize>(from: &[u8], order: &[u32], to: &mut [u8]) {
        let (from, to) = (from.as_chunks::<N>().0, to.as_chunks_mut::<N>().0);
        for (to, row) in to.iter_mut().zip(order) {
            *to = from[*row as usize];
        }
    }
    match size {
        0 => {}
        1 => fixed::<1>(from, order, to),
        2 => fixed::<2>(from, order, to),
        4 => fixed::<4>(from, order, to),
        8 => fixed::<8>(from, order, to),
        16 => fixed::<16>(from, order, to),
        _ => {
            for (to, row) in to.chunks_exact_mut(size).zip(order) {
                to.copy_from_slice(&from[*row as usize * size..][..size]);
            }
        }
    }
}

/// Permutes every column: row `order[i]` becomes row `i`. Parallel; needs memory for one more column.
///
/// # Errors
/// `Invalid` if the number of rows of a column is not that of `order`; `Limit` if there is no memory.
pub fn permute<'a>(columns: impl IntoIterator<Item = &'a mut Column>, order: &[u32]) -> Result<()> {
    let columns: Vec<&mut Column> = columns.into_iter().collect();
    if let Some(column) = columns.iter().find(|column| column.rows() != order.len()) {
        return Err(Error::invalid(format!(
            "expected columns of the length of the order, found {} rows and an order of {}",
            column.rows(),
            order.len()
        )));
    }
    let largest = columns.iter().map(|column| column.bytes().len()).max();
    let mut scratch = vec![0u8; largest.unwrap_or(0)];
    for column in columns {
        let size = column.dtype().size().unwrap_or(1);
        let from = &mut scratch[..column.bytes().len()];
        from.copy_from_slice(column.bytes());
        const ROWS: usize = 1 << 15;
        column
            .bytes_mut()
            .par_chunks_mut((ROWS * size).max(1))
            .zip(order.par_chunks(ROWS))
            .for_each(|(to, order)| gather(from, size, order, to));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DataType;
    use proptest::prelude::*;

    fn slow_key(ndim: usize, point: &[u64; 3]) -> u128 {
        let mut key = 0;
        for bit in 0..MAX_BITS as usize {
            for (d, x) in point.iter().enumerate().take(ndim) {
                key |= u128::from(x >> bit & 1) << (bit * ndim + d);
            }
        }
        key
    }

    proptest! {
        #[test]
        fn keys_are_bits_by_turns(ndim in 1usize..=3, x in prop::array::uniform3(0u64..1 << MAX_BITS)) {
            let mut x = x;
            x[ndim..].fill(0);
            prop_assert_eq!(key(ndim, &x), slow_key(ndim, &x));
            prop_assert_eq!(point(ndim, key(ndim, &x)), x);
            let low = x.map(|x| x & 0x1f_ffff);
            prop_assert_eq!(u128::from(key64(ndim, &low)), slow_key(ndim, &low));
        }

        #[test]
        fn rows_come_in_the_order_of_their_keys(
            ndim in 1usize..=3, bits in prop::sample::select(vec![4u32, 21, 42]),
            points in prop::collection::vec(prop::array::uniform3(any::<u64>()), 0..50),
        ) {
            let columns: Vec<Vec<u64>> = (0..ndim)
                .map(|d| points.iter().map(|p| p[d] >> (64 - bits)).collect())
                .collect();
            let slices: Vec<&[u64]> = columns.iter().map(|c| &c[..]).collect();
            let order = order_of_corners(&slices).unwrap();
            let at = |row: usize| slow_key(ndim, &std::array::from_fn(|d| columns.get(d).map_or(0, |c| c[row])));
            let mut expected: Vec<u32> = (0..points.len() as u32).collect();
            expected.sort_by_key(|row| at(*row as usize));
            prop_assert_eq!(order, expected);
        }
    }

    #[test]
    fn particles_outside_the_box_are_sorted_too() {
        let x = [2.0, 0.6, f64::NAN, 0.1, -1.0, f64::INFINITY];
        let order = order_of_positions(&[&x], [0.0; 3], 1.0).unwrap();
        assert_eq!(order, [2, 4, 3, 1, 0, 5]);
        let order = order_of_positions(&[&x], [-1.0, 0.0, 0.0], 2.0).unwrap();
        assert_eq!(order, [2, 4, 3, 1, 0, 5]);
        let order = order_of_positions(&[&[-0.5, -0.9, 3.0]], [-1.0, 0.0, 0.0], 2.0).unwrap();
        assert_eq!(order, [1, 0, 2]);
        assert!(order_of_positions(&[], [0.0; 3], 1.0).unwrap().is_empty());
    }

    #[test]
    fn columns_of_every_width_are_permuted_alike() {
        let dtypes = [
            DataType::UInt8,
            DataType::Int16,
            DataType::Float32,
            DataType::Float64,
            DataType::Complex128,
            DataType::FixedBytes { bytes: 3 },
            DataType::FixedBytes { bytes: 0 },
        ];
        let mut columns = Column::allocate(&dtypes, 3).unwrap();
        for column in &mut columns {
            let size = column.dtype().size().unwrap();
            for (i, byte) in column.bytes_mut().iter_mut().enumerate() {
                *byte = (i / size) as u8;
            }
        }
        permute(&mut columns, &[2, 0, 1]).unwrap();
        for column in &columns {
            let size = column.dtype().size().unwrap();
            let expected: Vec<u8> = [2, 0, 1].iter().flat_map(|v| vec![*v; size]).collect();
            assert_eq!(column.bytes(), expected);
        }
        assert!(permute(&mut columns, &[0, 1]).is_err());
    }
}
