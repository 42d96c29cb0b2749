//! Tables and particles in memory and in stores, compared with a loop over their rows.

use proptest::prelude::*;

use crate::codec::Profile;
use crate::condition::Condition;
use crate::container::CreateOptions;
use crate::dtype::DataType;
use crate::error::ErrorKind;
use crate::kinds::bound::Compression;
use crate::kinds::memory_source::MemoryColumns;
use crate::kinds::particles::{self, Particles};
use crate::kinds::region::Region;
use crate::kinds::select::Selection;
use crate::kinds::source::ColumnSource;
use crate::kinds::streamed::StreamedColumns;
use crate::kinds::table::Table;
use crate::kinds::{attributes, write};
use crate::memory::Column;
use crate::metadata::Attributes;
use crate::store::{Store, StoreWriter};

/// A particle: position, mass, identity.
type Row = ([f64; 3], f32, i64);

fn columns(rows: &[Row]) -> Vec<(String, Column)> {
    let f64 = DataType::Float64;
    let dtypes = [
        f64.clone(),
        f64.clone(),
        f64,
        DataType::Float32,
        DataType::Int64,
    ];
    let mut columns = Column::allocate(&dtypes, rows.len()).unwrap();
    for (i, row) in rows.iter().enumerate() {
        for (d, x) in row.0.iter().enumerate() {
            columns[d].values_mut()[i] = *x;
        }
        columns[3].values_mut()[i] = row.1;
        columns[4].values_mut()[i] = row.2;
    }
    let names = ["position_x", "position_y", "position_z", "mass", "identity"];
    names.map(str::to_owned).into_iter().zip(columns).collect()
}

fn rows(columns: &[(String, Column)]) -> Vec<Row> {
    let x = |d: usize, i: usize| columns[d].1.values::<f64>()[i];
    let count = columns[0].1.rows();
    let row = |i| {
        let position = [x(0, i), x(1, i), x(2, i)];
        (
            position,
            columns[3].1.values::<f32>()[i],
            columns[4].1.values::<i64>()[i],
        )
    };
    (0..count).map(row).collect()
}

fn anywhere() -> impl Strategy<Value = f64> {
    prop_oneof![20 => 0.0..2.0f64, 1 => Just(f64::NAN), 1 => Just(2.0), 1 => Just(-1.0)]
}

fn particles(most: usize) -> impl Strategy<Value = Vec<Row>> {
    let row = (prop::array::uniform3(anywhere()), 0.0..1.0f32, 0..100i64);
    prop::collection::vec(row, 0..most)
}

fn names(columns: &[String]) -> Vec<&str> {
    columns.iter().map(|name| &name[..]).collect()
}

proptest! {
    #[test]
    fn selections_pick_the_right_particles(
        all in particles(300), sorted: bool, chunk in 1u64..50, centre in prop::array::uniform3(0.0..2.0f64),
        radius in 0.0..2.0f64, least in 0.0..1.0f64,
    ) {
        let mut table = columns(&all);
        if sorted {
            particles::sort(&mut table, 3, 2.0).unwrap();
        }
        let all = rows(&table);
        let region = Region::sphere(&centre, radius).unwrap();
        let text = format!("mass >= {least} or identity == 7");
        let selection = Selection {
            region: Some(region.clone()),
            condition: Some(Condition::parse(&text).unwrap()),
            ..Selection::default()
        };
        let expected: Vec<Row> = all
            .into_iter()
            .filter(|(x, mass, id)| region.contains(x) && (f64::from(*mass) >= least || *id == 7))
            .collect();
        let table = Table::with_chunks(table, particles::position_names(3), chunk).unwrap();
        let found = table.read(&names(table.columns()), &selection).unwrap();
        prop_assert_eq!(rows(&found), expected);
    }

    #[test]
    fn sorting_keeps_rows_together(all in particles(200)) {
        let mut table = columns(&all);
        particles::sort(&mut table, 3, 2.0).unwrap();
        let sorted = rows(&table);
        let text = |rows: &[Row]| {
            let mut text: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
            text.sort();
            text
        };
        prop_assert_eq!(text(&all), text(&sorted));
        let key = |row: &Row| {
            let cell = row.0.map(|x| ((x / 2.0 * f64::from(1 << 21)) as u64).min((1 << 21) - 1));
            crate::kinds::morton::key(3, &cell)
        };
        prop_assert!(sorted.is_sorted_by_key(key));
    }
}

#[test]
fn tables_and_particles_round_trip_through_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.ambar");
    let all: Vec<Row> = (0..70_000)
        .map(|i| ([f64::from(i % 97) / 97.0; 3], i as f32, i.into()))
        .collect();
    let table = columns(&all);
    let mut writer = StoreWriter::create(&path, &CreateOptions::default()).unwrap();
    let (more, profile) = (Attributes::new, Profile::default());
    write::table(&mut writer, "/sinks", &table[3..], more(), &profile.into()).unwrap();
    write::table(
        &mut writer,
        "/none",
        &columns(&[])[..],
        more(),
        &profile.into(),
    )
    .unwrap();
    write::particles(
        &mut writer,
        "/particles",
        &table,
        3,
        1.0,
        more(),
        &profile.into(),
    )
    .unwrap();
    writer.commit().unwrap();
    let store = Store::open(&path).unwrap();
    assert_eq!(
        attributes::kind(&store, "/sinks").unwrap().as_deref(),
        Some("table")
    );
    assert_eq!(attributes::kind(&store, "/").unwrap(), None);

    let particles = Particles::open(&store, "/particles").unwrap();
    assert_eq!(
        (particles.rows(), particles.ndim(), particles.boxlen()),
        (70_000, 3, 1.0)
    );
    let found = particles
        .read(&names(particles.columns()), &Selection::default())
        .unwrap();
    assert_eq!(rows(&found), all);
    let region = Some(Region::cuboid(&[0.0; 3], &[0.01; 3]).unwrap());
    let selection = Selection {
        region,
        ..Selection::default()
    };
    let found = particles.read(&["identity"], &selection).unwrap();
    assert!(found[0].1.values::<i64>().iter().all(|id| id % 97 == 0));
    assert_eq!(found[0].1.rows(), 722);

    let sinks = Table::open(&store, "/sinks").unwrap();
    assert_eq!(sinks.columns(), ["mass", "identity"]);
    let ranges = sinks.source().ranges("identity").unwrap().unwrap();
    let memory = MemoryColumns::new(columns(&all), sinks.source().chunk_rows()).unwrap();
    assert_eq!(Some(ranges), memory.ranges("identity").unwrap());
    assert!(ranges_prune(&sinks));
    let empty = Table::open(&store, "/none").unwrap();
    let condition = Some(Condition::parse("mass > 0").unwrap());
    let selection = Selection {
        condition,
        ..Selection::default()
    };
    assert_eq!(empty.read(&["mass"], &selection).unwrap()[0].1.rows(), 0);
    assert_eq!(Table::open(&store, "/particles").unwrap().rows(), 70_000);
    let error = Particles::open(&store, "/sinks").err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

fn ranges_prune(table: &Table) -> bool {
    let condition = Some(Condition::parse("identity >= 69990 and mass > 0").unwrap());
    let selection = Selection {
        condition,
        ..Selection::default()
    };
    let found = table.read(&["identity"], &selection).unwrap();
    found[0].1.values::<i64>() == (69_990..70_000).collect::<Vec<i64>>()
}

#[test]
fn invalid_requests_are_errors() {
    let table = Table::from_columns(columns(&[([0.5; 3], 1.0, 1)])).unwrap();
    let kind = |columns: &[&str], selection| table.read(columns, &selection).unwrap_err().kind();
    let none = Selection::default;
    assert_eq!(kind(&["gone"], none()), ErrorKind::NotFound);
    let levels = Some((0, 9));
    assert_eq!(
        kind(&["mass"], Selection { levels, ..none() }),
        ErrorKind::Invalid
    );
    let region = Some(Region::sphere(&[0.5; 3], 1.0).unwrap());
    let without_positions = columns(&[([0.5; 3], 1.0, 1)]).split_off(3);
    let error = Table::from_columns(without_positions)
        .unwrap()
        .read(&["mass"], &Selection { region, ..none() })
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let particles = Particles::from_columns(columns(&[([0.5; 3], 1.0, 1)]), 3, 1.0).unwrap();
    let region = Some(Region::sphere(&[0.5; 2], 1.0).unwrap());
    let error = particles
        .read(&["mass"], &Selection { region, ..none() })
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[test]
fn columns_in_memory_are_shared() {
    let table = columns(&[([0.5; 3], 1.0, 7)]);
    let place = table[4].1.bytes().as_ptr();
    let table = Table::from_columns(table).unwrap();
    let column = table.source().whole("identity").unwrap();
    assert_eq!(
        (column.bytes().as_ptr(), column.values::<i64>()),
        (place, &[7][..])
    );
    assert!(table.source().whole("gone").is_none());
}

#[test]
fn columns_that_do_not_fit_together_are_errors() {
    let mut twice = columns(&[]);
    twice[1].0 = "mass".into();
    assert!(Table::from_columns(twice).is_err());
    let mut unequal = columns(&[([0.5; 3], 1.0, 1)]);
    unequal[4].1.truncate(0);
    assert!(Table::from_columns(unequal).is_err());
    let massless = columns(&[]).split_off(3);
    assert!(
        Particles::from_columns(massless, 1, 1.0).is_err(),
        "there are no positions"
    );
    let folder = tempfile::tempdir().unwrap();
    let mut writer =
        StoreWriter::create(&folder.path().join("a"), &CreateOptions::default()).unwrap();
    let mut named = columns(&[]);
    named[0].0 = "index".into();
    let written = write::table(
        &mut writer,
        "/t",
        &named,
        Attributes::new(),
        &Profile::default().into(),
    );
    assert_eq!(written.unwrap_err().kind(), ErrorKind::Invalid);
}

/// Columns that are read while they are written make the same arrays and attributes as columns in memory.
#[test]
fn streamed_columns_are_written_like_columns_in_memory() {
    let all: Vec<Row> = (0..70_000)
        .map(|i| {
            let x = f64::from(i) / 70_000.0;
            (
                [x, (9.0 * x).sin().abs(), x * x],
                (5.0 * x).cos() as f32,
                i.into(),
            )
        })
        .collect();
    let table = columns(&all);
    let streamed = StreamedColumns {
        columns: table
            .iter()
            .map(|(name, column)| (name.clone(), column.dtype().clone()))
            .collect(),
        rows: all.len(),
        read: Box::new(|columns, rows, out| {
            for (column, out) in columns.iter().zip(out) {
                let source = &table[*column].1;
                let size = source.dtype().size().unwrap();
                let bytes = &source.bytes()[rows.start * size..rows.end * size];
                out.bytes_mut().copy_from_slice(bytes);
            }
            Ok(())
        }),
    };
    for bounds in [
        vec![],
        vec![("mass", "1e-3 of range"), ("position_y", "1e-4")],
        vec![("mass", "1e-2"), ("mass@[0:0.3, :, :]", "1e-4")],
    ] {
        let compression = Compression {
            error_bounds: bounds
                .iter()
                .map(|(name, bound)| ((*name).to_owned(), bound.parse().unwrap()))
                .collect(),
            ..Compression::default()
        };
        let folder = tempfile::tempdir().unwrap();
        let store = |name: &str, write: &dyn Fn(&mut StoreWriter) -> crate::Result<()>| {
            let path = folder.path().join(name);
            let mut writer = StoreWriter::create(&path, &CreateOptions::default()).unwrap();
            write(&mut writer).unwrap();
            writer.commit().unwrap();
            Store::open(&path).unwrap()
        };
        let more = Attributes::new;
        let memory = store("memory.ambar", &|writer| {
            write::particles(writer, "/p", &table, 3, 1.0, more(), &compression)
        });
        let read = store("read.ambar", &|writer| {
            write::streamed_particles(writer, "/p", &streamed, 3, 1.0, more(), &compression)
        });
        let attributes = |store: &Store| attributes::of_kind(store, "/p", &["particles"]).unwrap();
        assert_eq!(attributes(&memory), attributes(&read));
        let array_names = table.iter().map(|(name, _)| &name[..]);
        for name in array_names.chain(["index/range"]) {
            let array = |store: &Store| store.array(&format!("/p/{name}")).unwrap();
            let (a, b) = (array(&memory), array(&read));
            assert_eq!(
                a.stored_bytes().unwrap(),
                b.stored_bytes().unwrap(),
                "{name}"
            );
            let values = |array: &crate::array::Array| {
                let mut bytes = vec![
                    0;
                    array.shape().iter().product::<u64>() as usize
                        * array.dtype().size().unwrap()
                ];
                array.read_rows(0..array.shape()[0], &mut bytes).unwrap();
                bytes
            };
            assert_eq!(values(&a), values(&b), "{name}");
        }
    }
}
