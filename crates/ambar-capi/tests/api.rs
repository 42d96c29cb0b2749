//! The C API called as C does: where results go, errors, handles.

#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks)] // every pointer is a local variable's

use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::zeroed;
use std::path::Path;
use std::ptr::{null, null_mut};

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

/// An array of `shape` of float64.
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

/// A null place for a result was noticed after the object was made: it leaked, with the lock on the file.
#[test]
fn a_null_place_for_a_result_leaves_nothing_behind() {
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

/// As above: these objects were made before the place for them was looked at, and leaked.
#[test]
fn a_null_place_for_boxes_particles_or_blocks_is_refused() {
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

/// After a failed commit arrays could be defined, and a handle was one array's here and another's inside.
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

/// A handle from before a commit wrote into the array that had its number after it.
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

/// Dividing an array without values by its chunks panicked, and the next commit succeeded without the array.
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

/// A definition of boxes that failed kept no rank from committing without them.
#[test]
fn a_refused_hierarchy_keeps_the_writer_from_committing() {
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

/// What was not written read as zeros that nothing told from others.
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

/// Structs of programs that were compiled with another version of the header.
#[test]
fn structs_may_be_larger_where_their_new_fields_are_not_used() {
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

/// Code in a header, such as ambar_mpi.h, reports through the same text in every source file.
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
