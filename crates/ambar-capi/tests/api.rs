//! The C API, called as from C: results, errors, handles.

#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks)] // all pointers are to local variables

use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::zeroed;
use std::path::Path;
use std::ptr::{null, null_mut};

use ambar::kinds::amr::patches::{PatchAmr, PatchSource};
use ambar::store::Store;
use ambar_capi::api::*;

fn c(text: &str) -> CString {
    CString::new(text).unwrap()
}

fn path(folder: &tempfile::TempDir) -> CString {
    c(folder.path().join("x.ambar").to_str().unwrap())
}

fn last_error() -> String {
    unsafe { CStr::from_ptr(ambar_last_error()) }
        .to_str()
        .unwrap()
        .to_owned()
}

fn created(path: &CStr) -> *mut ambar_writer {
    let mut writer = null_mut();
    let status = unsafe { ambar_create(path.as_ptr(), null(), &raw mut writer) };
    assert_eq!(status, AMBAR_OK, "{}", last_error());
    writer
}

/// A specification of a float64 array.
fn spec(shape: &[u64]) -> ambar_spec {
    ambar_spec {
        size: size_of::<ambar_spec>(),
        r#type: AMBAR_FLOAT64,
        ndim: shape.len() as i32,
        shape: shape.as_ptr(),
        ..unsafe { zeroed() }
    }
}

fn define(writer: *mut ambar_writer, name: &str, spec: &ambar_spec) -> Result<ambar_array, i32> {
    let mut array = -1;
    match unsafe { ambar_define(writer, c(name).as_ptr(), spec, null(), &raw mut array) } {
        AMBAR_OK => Ok(array),
        status => Err(status),
    }
}

fn write(writer: *mut ambar_writer, array: ambar_array, values: &[f64]) -> i32 {
    let count = [values.len() as u64];
    unsafe {
        ambar_write(
            writer,
            array,
            [0].as_ptr(),
            count.as_ptr(),
            values.as_ptr().cast(),
        )
    }
}

fn commit(writer: *mut ambar_writer) -> i32 {
    unsafe { ambar_commit(writer) }
}

fn close(writer: *mut ambar_writer) {
    assert_eq!(unsafe { ambar_close(writer) }, AMBAR_OK);
}

/// A null pointer for a result was detected after the object was created: the object leaked, and the file stayed locked.
#[test]
fn a_null_pointer_for_a_result_leaks_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = path(&folder);
    let mut bytes = unsafe { zeroed() };
    for _ in 0..2 {
        assert_eq!(
            unsafe { ambar_create(path.as_ptr(), null(), null_mut()) },
            AMBAR_INVALID
        );
        let status =
            unsafe { ambar_ranks_create(path.as_ptr(), null(), 2, null_mut(), &raw mut bytes) };
        assert_eq!(status, AMBAR_INVALID);
        assert!(last_error().contains("a pointer to the place of the writer, found null"));
        let mut writer = null_mut();
        let status =
            unsafe { ambar_ranks_create(path.as_ptr(), null(), 2, &raw mut writer, null_mut()) };
        assert_eq!(status, AMBAR_INVALID);
        assert!(writer.is_null() && bytes.data.is_null());
    }
    assert!(!Path::new(path.to_str().unwrap()).exists());
    let writer = created(&path); // no lock is left
    assert_eq!(commit(writer), AMBAR_OK);
    close(writer);
    assert_eq!(
        unsafe { ambar_open(path.as_ptr(), null_mut()) },
        AMBAR_INVALID
    );
    assert_eq!(
        unsafe { ambar_append(path.as_ptr(), null(), null_mut()) },
        AMBAR_INVALID
    );
    let mut writer = null_mut();
    assert_eq!(
        unsafe { ambar_append(path.as_ptr(), null(), &raw mut writer) },
        AMBAR_OK
    );
    close(writer);
}

/// As above: these objects were created before the pointers were checked, and leaked.
#[test]
fn a_null_pointer_for_boxes_particles_or_blocks_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = path(&folder);
    let missing = |status: i32| {
        assert_eq!(status, AMBAR_INVALID);
        let why = last_error();
        assert!(why.contains("a pointer to the place of"), "{why}");
    };
    let hierarchy = ambar_hierarchy {
        size: size_of::<ambar_hierarchy>(),
        ..unsafe { zeroed() }
    };
    let writer = created(&path);
    missing(unsafe {
        let name = c("amr");
        let hierarchy = &raw const hierarchy;
        ambar_amr_define(
            writer,
            name.as_ptr(),
            hierarchy,
            0,
            null(),
            0,
            0,
            null_mut(),
        )
    });
    close(writer);
    let writer = created(&path);
    let (counts, lower) = ([0], [0.0; 3]);
    missing(unsafe {
        let name = c("particles");
        let (name, counts, lower) = (name.as_ptr(), counts.as_ptr(), lower.as_ptr());
        ambar_particles_define(
            writer,
            name,
            counts,
            0,
            null(),
            0,
            3,
            lower,
            1.0,
            null(),
            null_mut(),
        )
    });
    close(writer);
    let (shape, start) = ([5], [0]);
    let (shape, start) = (shape.as_ptr(), start.as_ptr());
    missing(unsafe { ambar_blocks_make(1, shape, 1, start, shape, null_mut()) });
    missing(unsafe { ambar_blocks_gather(0, null(), null(), null_mut()) });
}

/// After a failed commit, arrays could be defined whose handles referred to other arrays.
#[test]
fn after_an_error_a_writer_can_only_be_closed() {
    let folder = tempfile::tempdir().unwrap();
    let writer = created(&path(&folder));
    let shape = [3];
    let array = define(writer, "a", &spec(&shape)).unwrap();
    assert_eq!(write(writer, array, &[1.0; 4]), AMBAR_INVALID);
    let why = last_error();
    for _ in 0..2 {
        assert_eq!(define(writer, "b", &spec(&shape)), Err(AMBAR_INVALID));
        assert!(last_error().contains("can only be closed") && last_error().contains(&why));
        assert_eq!(write(writer, array, &[1.0; 3]), AMBAR_INVALID);
        let strides = [8];
        let status = unsafe {
            let data: *const c_void = [1.0f64; 3].as_ptr().cast();
            ambar_write_strided(
                writer,
                array,
                [0].as_ptr(),
                shape.as_ptr(),
                data,
                strides.as_ptr(),
            )
        };
        assert_eq!(status, AMBAR_INVALID);
        assert_eq!(
            unsafe { ambar_group(writer, c("g").as_ptr(), null()) },
            AMBAR_INVALID
        );
        assert_eq!(commit(writer), AMBAR_INVALID);
    }
    close(writer);
}

/// A handle from before a commit wrote to the array that had the same number after the commit.
#[test]
fn a_handle_from_before_a_commit_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let writer = created(&path(&folder));
    let shape = [3];
    let stale = define(writer, "a", &spec(&shape)).unwrap();
    assert_eq!(write(writer, stale, &[1.0; 3]), AMBAR_OK);
    assert_eq!(commit(writer), AMBAR_OK);
    let fresh = define(writer, "b", &spec(&shape)).unwrap();
    assert_ne!(stale, fresh);
    assert_eq!(write(writer, stale, &[1.0; 3]), AMBAR_INVALID);
    assert!(
        last_error().contains("was not defined since the last commit"),
        "{}",
        last_error()
    );
    close(writer);
}

/// The number of chunks of an array without values was a division by 0, which panicked; the next commit succeeded
/// without the array.
#[test]
fn an_array_without_values_may_have_chunks() {
    let folder = tempfile::tempdir().unwrap();
    let writer = created(&path(&folder));
    let chunks = [4, 3];
    let mut of_none = spec(&[5, 0]);
    of_none.chunks = chunks.as_ptr();
    assert!(define(writer, "a", &of_none).is_ok(), "{}", last_error());
    assert_eq!(commit(writer), AMBAR_OK);
    close(writer);
}

/// After a failed definition of boxes, ranks could commit without them.
#[test]
fn a_writer_cannot_commit_after_a_refused_hierarchy() {
    let folder = tempfile::tempdir().unwrap();
    let path = path(&folder);
    let (mut amr, mut particles) = (null_mut(), null_mut());
    let name = c("amr");
    let hierarchy = ambar_hierarchy {
        size: size_of::<ambar_hierarchy>(),
        ..unsafe { zeroed() }
    };
    let writer = created(&path);
    let status = unsafe {
        ambar_amr_define(
            writer,
            name.as_ptr(),
            &raw const hierarchy,
            0,
            null(),
            77,
            0,
            &raw mut amr,
        )
    };
    assert_eq!(status, AMBAR_INVALID);
    assert_eq!(commit(writer), AMBAR_INVALID);
    close(writer);
    let writer = created(&path);
    let status = unsafe {
        let counts = [1];
        let lower = [0.0; 3];
        ambar_particles_define(
            writer,
            null::<c_char>(),
            counts.as_ptr(),
            0,
            null(),
            0,
            3,
            lower.as_ptr(),
            1.0,
            null(),
            &raw mut particles,
        )
    };
    assert_eq!(status, AMBAR_INVALID);
    assert_eq!(commit(writer), AMBAR_INVALID);
    close(writer);
}

/// The bounds that `ambar_select_bounds` returns.
fn selected(rules: &[(&str, &str)], names: &[&str]) -> Result<Vec<CString>, String> {
    let strings = |all: Vec<&str>| all.into_iter().map(c).collect::<Vec<_>>();
    let keys = strings(rules.iter().map(|rule| rule.0).collect());
    let bounds = strings(rules.iter().map(|rule| rule.1).collect());
    let names = strings(names.to_vec());
    let pointers = |all: &[CString]| all.iter().map(|one| one.as_ptr()).collect::<Vec<_>>();
    let mut texts: Vec<ambar_bytes> = names.iter().map(|_| unsafe { zeroed() }).collect();
    let status = unsafe {
        ambar_select_bounds(
            keys.len() as i32,
            pointers(&keys).as_ptr(),
            pointers(&bounds).as_ptr(),
            names.len() as i32,
            pointers(&names).as_ptr(),
            texts.as_mut_ptr(),
        )
    };
    if status != AMBAR_OK {
        return Err(last_error());
    }
    let take = |bytes: ambar_bytes| {
        let text = unsafe { CStr::from_ptr(bytes.data.cast()) }.to_owned();
        unsafe { ambar_bytes_free(bytes) };
        text
    };
    Ok(texts.into_iter().map(take).collect())
}

#[test]
fn bounds_of_levels_and_boxes_are_selected_by_name() {
    let rules = [
        ("*", "1e-3 relative"),
        ("density@2:", "1e-4 relative"),
        ("vel*", "0.5"),
        ("vel*@[0:0.5, :]", "1e-2 of range"),
    ];
    let found = selected(&rules, &["density", "vel_x", "p"]).unwrap();
    let expected = [
        "1e-3 relative, @2:=1e-4 relative",
        "5e-1, @[0:0.5, :]=1e-2 of range",
        "1e-3 relative",
    ];
    assert_eq!(found, expected.map(c));
    let mut kind = -1;
    for (text, expected) in [
        (&found[0], AMBAR_BOUNDED),
        (&found[1], AMBAR_NEEDS_RANGE),
        (&c("0, @2=lossless"), AMBAR_LOSSLESS),
    ] {
        let status = unsafe { ambar_bound_kind(text.as_ptr(), &raw mut kind) };
        assert_eq!((status, kind), (AMBAR_OK, expected));
    }
    assert_eq!(selected(&[], &["p"]).unwrap(), [c("lossless")]);
    let why = selected(&[("densty@2", "1")], &["density"]).unwrap_err();
    assert!(why.contains("did you mean density?"), "{why}");
    let why = selected(&[("p", "1, @2=1")], &["p"]).unwrap_err();
    assert!(why.contains("invalid error bound"), "{why}");
    let status = unsafe { ambar_select_bounds(0, null(), null(), -1, null(), null_mut()) };
    assert_eq!(status, AMBAR_INVALID);
}

/// Writes a field of two levels with these bounds; returns the largest error of each level.
fn errors_of_levels(error_bound: &str, range: Option<[f64; 2]>) -> Result<[f64; 2], String> {
    let folder = tempfile::tempdir().unwrap();
    let path = path(&folder);
    let writer = created(&path);
    let domains = [[0, 0, 0, 32, 16, 16], [0, 0, 0, 64, 32, 32]];
    let corners = [[0, 0, 0, 32, 16, 16], [16, 0, 0, 48, 16, 16]];
    let sizes = [1.0 / 32.0, 1.0 / 64.0].map(|size| [size; 3]);
    let hierarchy = ambar_hierarchy {
        size: size_of::<ambar_hierarchy>(),
        ndim: 3,
        levels: 2,
        lower: [0.0; 3],
        upper: [1.0, 0.5, 0.5],
        domains: domains.as_flattened().as_ptr(),
        cell_sizes: sizes.as_flattened().as_ptr(),
        ratios: [2, 2, 2, 1, 1, 1].as_ptr(),
        boxes: [1, 1].as_ptr(),
        corners: corners.as_flattened().as_ptr(),
        ranks: [0, 0].as_ptr(),
    };
    let (name, bound) = (c("phi"), c(error_bound));
    let field = ambar_field {
        size: size_of::<ambar_field>(),
        name: name.as_ptr(),
        r#type: AMBAR_FLOAT64,
        error_bound: bound.as_ptr(),
        value_range: range.as_ref().map_or(null(), |range| range.as_ptr()),
        codecs: null(),
    };
    let mut amr = null_mut();
    let status = unsafe {
        let group = c("amr");
        let (group, hierarchy, field) = (group.as_ptr(), &raw const hierarchy, &raw const field);
        let keep = AMBAR_COVERED_KEEP;
        ambar_amr_define(writer, group, hierarchy, 1, field, 0, keep, &raw mut amr)
    };
    if status != AMBAR_OK {
        let why = last_error();
        close(writer);
        return Err(why);
    }
    let values: Vec<f64> = (0..32 * 16 * 16)
        .map(|i: u64| (i * i * 7919 % 1000) as f64 * 1e-3)
        .collect();
    for level in 0..2 {
        let status = unsafe {
            let (first, strides) = (values.as_ptr().cast(), [8, 8 * 32, 8 * 32 * 16]);
            ambar_amr_write(amr, writer, level, 0, 0, first, strides.as_ptr())
        };
        assert_eq!(status, AMBAR_OK, "{}", last_error());
    }
    assert_eq!(unsafe { ambar_amr_end(amr, writer) }, AMBAR_OK);
    assert_eq!(commit(writer), AMBAR_OK);
    close(writer);
    let store = Store::open(Path::new(path.to_str().unwrap())).unwrap();
    let amr = PatchAmr::open(&store, "/amr").unwrap();
    Ok([0, 1].map(|level| {
        let mut bytes = vec![0; 8 * values.len()];
        amr.read_box(level, 0, "phi", &mut bytes).unwrap();
        let found = bytes.as_chunks().0.iter().zip(&values);
        let errors = found.map(|(value, expected)| (f64::from_ne_bytes(*value) - expected).abs());
        errors.fold(0.0, f64::max)
    }))
}

#[test]
fn fields_have_bounds_of_levels_and_boxes() {
    let all = [0.0, 0.999];
    for (text, range) in [
        ("0.1, @1:=1e-4", None),
        ("0.1, @1:=1e-4, @5:=1e-9", None),
        ("@1=1e-4 of range, 0.1", Some(all)),
    ] {
        let [coarse, fine] = errors_of_levels(text, range).unwrap();
        assert!(coarse > 1e-4 && coarse <= 0.1, "{text}: {coarse}");
        assert!(fine > 0.0 && fine <= 1e-4, "{text}: {fine}");
    }
    let [coarse, fine] = errors_of_levels("0.1, @0@[0:1, :, :]=0", None).unwrap();
    assert!(coarse == 0.0 && fine > 1e-4 && fine <= 0.1);
    for (text, expected) in [
        ("0.1, @2=1e-4", "levels: 0 to 1"),
        ("0.1, @[0:1]=1e-4", "a box of 3 dimensions"),
        ("0.1, @1=1e-4 of range", "set value_range"),
        ("0.1, @1=1e-4 rms", "cannot be compared"),
        ("0.1, @1", "has no bound"),
    ] {
        let why = errors_of_levels(text, None).unwrap_err();
        assert!(why.contains(expected), "{text}: {why}");
    }
}

#[test]
fn particles_have_no_bounds_of_parts() {
    let folder = tempfile::tempdir().unwrap();
    let writer = created(&path(&folder));
    let (group, name, bound) = (c("p"), c("position_x"), c("0.1, @[0:0.5]=0.01"));
    let column = ambar_field {
        size: size_of::<ambar_field>(),
        name: name.as_ptr(),
        r#type: AMBAR_FLOAT64,
        error_bound: bound.as_ptr(),
        ..unsafe { zeroed() }
    };
    let mut particles = null_mut();
    let status = unsafe {
        let (counts, lower) = ([1], [0.0; 3]);
        let (group, counts, lower) = (group.as_ptr(), counts.as_ptr(), lower.as_ptr());
        let (column, none, out) = (&raw const column, null(), &raw mut particles);
        ambar_particles_define(
            writer, group, counts, 1, column, 0, 1, lower, 1.0, none, out,
        )
    };
    assert_ne!(status, AMBAR_OK);
    let why = last_error();
    assert!(why.contains("one bound for the column"), "{why}");
    close(writer);
}

/// Values that were not written were zeros, and not distinguishable from others.
#[test]
fn values_that_were_not_written_are_counted_and_have_the_fill_value() {
    let folder = tempfile::tempdir().unwrap();
    let path = path(&folder);
    let writer = created(&path);
    let shape = [5];
    let fill = -7.5f64;
    let mut filled = spec(&shape);
    filled.fill_value = (&raw const fill).cast();
    let array = define(writer, "a", &filled).unwrap();
    assert_eq!(write(writer, array, &[1.0; 3]), AMBAR_OK);
    assert_eq!(commit(writer), AMBAR_OK);
    close(writer);
    let mut store = null_mut();
    assert_eq!(
        unsafe { ambar_open(path.as_ptr(), &raw mut store) },
        AMBAR_OK
    );
    let mut info: ambar_array_info = unsafe { zeroed() };
    assert_eq!(
        unsafe { ambar_info(store, c("a").as_ptr(), &raw mut info) },
        AMBAR_INVALID
    );
    assert!(
        last_error().contains("sizeof(ambar_array_info)"),
        "{}",
        last_error()
    );
    info.size = size_of::<ambar_array_info>();
    assert_eq!(
        unsafe { ambar_info(store, c("a").as_ptr(), &raw mut info) },
        AMBAR_OK
    );
    assert_eq!(info.unwritten_values, 2);
    let mut values = [0.0f64; 5];
    let status = unsafe {
        let out = values.as_mut_ptr().cast();
        ambar_read(
            store,
            c("a").as_ptr(),
            [0].as_ptr(),
            shape.as_ptr(),
            out,
            40,
            1,
        )
    };
    assert_eq!(status, AMBAR_OK);
    assert_eq!(values, [1.0, 1.0, 1.0, fill, fill]);
    unsafe { ambar_store_free(store) };
}

/// Structs of programs that are compiled with another version of the header.
#[test]
fn structs_may_be_larger_if_their_new_fields_are_zero() {
    #[repr(C)]
    struct Newer {
        options: ambar_options,
        more: u64,
    }
    let folder = tempfile::tempdir().unwrap();
    let path = path(&folder);
    let mut newer: Newer = unsafe { zeroed() };
    let mut writer = null_mut();
    newer.options.size = size_of::<Newer>();
    let create = |newer: &Newer, writer: &mut *mut ambar_writer| unsafe {
        ambar_create(path.as_ptr(), (&raw const *newer).cast(), writer)
    };
    assert_eq!(create(&newer, &mut writer), AMBAR_OK, "{}", last_error());
    close(writer);
    newer.more = 1;
    assert_eq!(create(&newer, &mut writer), AMBAR_UNSUPPORTED);
    assert!(
        last_error().contains("use a newer libambar"),
        "{}",
        last_error()
    );
    newer.options.size = 0;
    assert_eq!(create(&newer, &mut writer), AMBAR_INVALID);
}

/// Code in headers, such as ambar_mpi.h, sets the same error message in all source files.
#[test]
fn callers_can_set_the_last_error() {
    assert_eq!(
        unsafe { ambar_fail(AMBAR_IO, c("no memory").as_ptr()) },
        AMBAR_IO
    );
    assert_eq!(last_error(), "no memory");
    assert_eq!(
        unsafe { ambar_fail(AMBAR_OK, c("fine").as_ptr()) },
        AMBAR_OK
    );
    assert_eq!(last_error(), "no memory");
}
