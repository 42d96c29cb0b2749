//! Particles that a running program writes: the columns of each rank's own.

#![allow(non_camel_case_types)] // the names are C's

use std::ffi::{c_char, c_void};

use ambar::DataType;
use ambar::Error;
use ambar::kinds::rank_particles::{ParticleBox, RankParticles};

use super::amr::{ambar_field, columns_of};
use super::arguments::{Out, attributes, check_null, exclusive, list, text};
use super::status::{AMBAR_OK, with_writer};
use super::writer::ambar_writer;

/// One rank's end of particles that many write.
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

/// Defines the group of kind `particles` at `path`. Rank *i* has `counts[i]` particles, of which all say `count`
/// `columns`: `position_x`, `position_y`, ... among them. They lie in a cube from `lower` (x, y, z) on, of the
/// side `side`. `more` is a JSON object of attributes, or null. All ranks do it alike; nothing is
/// communicated.
///
/// # Safety
/// Pointers are null or point to what they say.
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
        let particles = Out::new(particles, "the place of the particles")?;
        let ranks = writer.ranks.options().ranks as usize;
        // SAFETY: the caller says so, here and below.
        let (path, counts) =
            unsafe { (text(path, "the path")?, list(counts, ranks, "the counts")?) };
        // SAFETY: as above.
        let (lower, more) = unsafe { (list(lower, 3, "the lower corner")?, attributes(more)?) };
        // SAFETY: as above.
        let (columns, mut compression) = unsafe { columns_of(count, columns) }?;
        compression.profile = super::spec::profile(profile)?;
        let place = ParticleBox {
            ndim: usize::try_from(ndim).unwrap_or(0),
            lower: [lower[0], lower[1], lower[2]],
            side,
        };
        let how = (more, &compression);
        let rows = RankParticles::declare(&mut writer.ranks, path, counts, &columns, place, how)?;
        let made = ambar_particles {
            rows,
            columns,
            path: path.to_owned(),
        };
        // SAFETY: as above.
        unsafe { particles.hand_over(made) };
        Ok(())
    };
    // SAFETY: the caller says so.
    unsafe { with_writer(writer, body) }
}

/// Writes a column of this rank's particles: `first` is the value of the first, and `stride` are the bytes from one to
/// the next. With the last column all are put along the Morton curve, and encoded.
///
/// # Safety
/// Pointers are null or point to what they say; as many values as this rank has particles can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_particles_write(
    particles: *mut ambar_particles,
    writer: *mut ambar_writer,
    column: i32,
    first: *const c_void,
    stride: i64,
) -> i32 {
    let body = |writer: &mut ambar_writer| {
        // SAFETY: the caller says so.
        let particles = unsafe { exclusive(particles, "the particles") }?;
        let place = usize::try_from(column).ok();
        let (name, dtype) = place
            .and_then(|place| particles.columns.get(place))
            .ok_or_else(|| Error::invalid(format!("there is no column {column}")))?;
        let size = dtype.size().unwrap_or(1);
        let first = first.cast::<u8>();
        if particles.rows.rows() > 0 {
            check_null(first.cast(), "the data")?;
        }
        particles.rows.put(&mut writer.ranks, name, |out| {
            for (row, to) in (0i64..).zip(out.chunks_exact_mut(size)) {
                let from = first.wrapping_offset((row * stride) as isize);
                // SAFETY: the caller says that each of these can be read.
                to.copy_from_slice(unsafe { std::slice::from_raw_parts(from, size) });
            }
        })
    };
    // SAFETY: the caller says so.
    unsafe { with_writer(writer, body) }
}

/// Ends particles, and frees them: all columns were written, else this fails, and so does the commit. Null is
/// nothing.
///
/// # Safety
/// It is null, or from `ambar_particles_define`, and ended once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ambar_particles_end(
    particles: *mut ambar_particles,
    writer: *mut ambar_writer,
) -> i32 {
    if particles.is_null() {
        return AMBAR_OK;
    }
    // SAFETY: `ambar_particles_define` has made this box, and the caller ends it once.
    let particles = unsafe { Box::from_raw(particles) };
    // SAFETY: the caller says so.
    unsafe { with_writer(writer, |writer| particles.rows.finish(&mut writer.ranks)) }
}
