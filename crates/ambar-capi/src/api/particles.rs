//! Particles written in situ: each rank writes the columns of its own particles.

#![allow(non_camel_case_types)] // names of the C API

use std::ffi::{c_char, c_void};

use ambar::DataType;
use ambar::Error;
use ambar::kinds::rank_particles::{ParticleBox, RankParticleOptions, RankParticles};

use super::amr::{ambar_field, columns_of};
use super::arguments::{check_null, from_c};
use super::status::{AMBAR_OK, with_writer};
use super::writer::ambar_writer;

/// Particles that are being written, as seen by one rank.
pub struct ambar_particles {
    rows: RankParticles,
    pub(super) columns: Vec<(String, DataType)>,
    path: String,
}

impl ambar_particles {
    /// The name of the group.
    pub(super) fn name(&self) -> &str {
        let path = self.path.trim_end_matches('/');
        path.rsplit('/').next().unwrap_or(path)
    }
}

/// Defines a group of kind `particles` at `path`. Rank *i* has `counts[i]` particles with `count` `columns`, which include
/// `position_x`, `position_y`, ... The particles are in a cube with the lower corner `lower` (x, y, z) and the side `side`.
/// `more` is a JSON object of attributes, or null. All ranks call it with equal arguments; it does not communicate. End the
/// particles with `ambar_particles_end`.
///
/// # Safety
/// Pointers follow the contract of the API.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_particles_define(
    writer: *mut ambar_writer,
    path: *const c_char,
    counts: *const u64,
    count: i32,
    columns: *const ambar_field,
    profile: i32,
    ndim: i32,
    lower: *const f64,
    side: f64,
    more: *const c_char,
    particles: *mut *mut ambar_particles,
) -> i32 {
    let body = |writer: &mut ambar_writer| {
        from_c!(particles = out(particles, "the place of the particles"));
        let ranks = writer.ranks.options().ranks as usize;
        from_c!(path = text(path, "the path"));
        from_c!(counts = list(counts, ranks, "the counts"));
        from_c!(lower = list(lower, 3, "the lower corner"));
        from_c!(more = attributes(more));
        // SAFETY: the caller passes null, or `count` columns whose pointers follow the contract of the API.
        let (columns, mut compression) = unsafe { columns_of(count, columns) }?;
        compression.profile = super::spec::profile(profile)?;
        let domain = ParticleBox {
            ndim: usize::try_from(ndim).unwrap_or(0),
            lower: [lower[0], lower[1], lower[2]],
            side,
        };
        let options = RankParticleOptions {
            domain,
            compression,
            more,
        };
        let rows = RankParticles::declare(&mut writer.ranks, path, counts, &columns, &options)?;
        let defined = ambar_particles {
            rows,
            columns,
            path: path.to_owned(),
        };
        particles.hand_over(defined);
        Ok(())
    };
    with_writer!(writer, body)
}

/// Writes a column of this rank's particles. `first` points to the value of the first particle, and `stride` are the bytes
/// between values. The last column sorts all columns along the Morton curve, and encodes them.
///
/// # Safety
/// Pointers follow the contract of the API; one value per particle of this rank can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_particles_write(
    particles: *mut ambar_particles,
    writer: *mut ambar_writer,
    column: i32,
    first: *const c_void,
    stride: i64,
) -> i32 {
    let body = |writer: &mut ambar_writer| {
        from_c!(particles = exclusive(particles, "the particles"));
        let index = usize::try_from(column).ok();
        let (name, dtype) = index
            .and_then(|index| particles.columns.get(index))
            .ok_or_else(|| {
                Error::invalid(format!(
                    "column {column} does not exist; expected a number below {}",
                    particles.columns.len()
                ))
            })?;
        let size = dtype.size().unwrap_or(1);
        let first = first.cast::<u8>();
        if particles.rows.rows() > 0 {
            check_null(first.cast(), "the data")?;
        }
        particles.rows.put(&mut writer.ranks, name, |out| {
            for (row, to) in (0i64..).zip(out.chunks_exact_mut(size)) {
                let from = first.wrapping_offset((row * stride) as isize);
                // SAFETY: `out` has one value per particle of this rank, and the caller promises that the stride reaches
                // a readable value of `size` bytes for each of them. `first` is not null if there are particles.
                to.copy_from_slice(unsafe { std::slice::from_raw_parts(from, size) });
            }
        })
    };
    with_writer!(writer, body)
}

/// Ends particles, and releases them. If columns are missing, this fails, and so does the commit. Null is ignored.
///
/// # Safety
/// `particles` is null, or from `ambar_particles_define`, and is ended once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_particles_end(
    particles: *mut ambar_particles,
    writer: *mut ambar_writer,
) -> i32 {
    from_c!(particles = owned(particles));
    let Some(particles) = particles else {
        return AMBAR_OK;
    };
    let body = |writer: &mut ambar_writer| particles.rows.finish(&mut writer.ranks);
    with_writer!(writer, body)
}
