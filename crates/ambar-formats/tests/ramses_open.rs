//! The metadata of an output, and its small tables.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests"
)]

mod common;

use std::fs;

use ambar::{Column, ErrorKind};
use ambar_formats::ramses::{Component, ComponentKind, MissingReason, Output};
use common::{Copy, own_output};

fn component(output: &Output, kind: ComponentKind) -> &Component {
    let mut components = output.components().iter();
    components.find(|component| component.kind == kind).unwrap()
}

fn names(component: &Component) -> Vec<&str> {
    component
        .fields
        .iter()
        .map(|field| field.name.as_str())
        .collect()
}

fn column<'a>(table: &'a [(String, Column)], name: &str) -> &'a Column {
    &table.iter().find(|(column, _)| column == name).unwrap().1
}

#[test]
fn an_output_is_opened_by_its_folder_its_info_file_or_a_group() {
    let folder = own_output("sedov3d_small", "00002");
    let by_info = Output::open(&folder.join("info_00002.txt")).unwrap();
    assert_eq!(by_info.info(), Output::open(&folder).unwrap().info());
    let folder = own_output("groups_3d", "00002");
    let by_group = Output::open(&folder.join("group_00001")).unwrap();
    assert_eq!(by_group.info(), Output::open(&folder).unwrap().info());
    assert_eq!(component(&by_group, ComponentKind::Hydro).missing, None);
}

#[test]
fn other_folders_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error = Output::open(folder.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(
        error.message().contains("expected info_NNNNN.txt"),
        "{error}"
    );
    let error = Output::open(&folder.path().join("output_00009")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    for number in ["00001", "00002"] {
        fs::write(folder.path().join(format!("info_{number}.txt")), "").unwrap();
    }
    let error = Output::open(folder.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let error = Output::open(&folder.path().join("info_00001.txt")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(
        error
            .to_string()
            .contains("info_00001.txt: expected a line \"ncpu"),
        "{error}"
    );
}

#[test]
fn the_run_is_described() {
    let output = Output::open(&own_output("gravpart_small", "00002")).unwrap();
    let info = output.info();
    assert_eq!((info.number, info.ncpu, info.ndim), (2, 3, 3));
    assert_eq!((info.levelmin, info.levelmax), (4, 6));
    assert_eq!(info.time, 0.00120441184041084);
    assert_eq!(info.ordering, "hilbert");
    assert!(!info.cosmological);
    assert_eq!(
        info.families.iter().map(|family| family.1).sum::<u64>(),
        4000
    );
    assert!(info.namelist.as_ref().unwrap().contains("&RUN_PARAMS"));
    assert!(info.gamma.is_some_and(|gamma| gamma > 1.0));
    let walls = Output::open(&own_output("tube_1d_walls", "00002")).unwrap();
    assert_eq!(
        (walls.info().coarse, walls.info().nboundary),
        ([3, 1, 1], 2)
    );
    let bisection = Output::open(&own_output("bisection_2d", "00002")).unwrap();
    assert_eq!(bisection.info().ordering, "bisection");
    let single = Output::open(&own_output("single_3d", "00002")).unwrap();
    assert_eq!(single.info().real_bytes, 4);
    let rt = Output::open(&own_output("rt_2d", "00002")).unwrap();
    let groups = rt
        .info()
        .rt
        .iter()
        .find(|(name, _)| name == "nGroups")
        .unwrap();
    assert_eq!(groups.1, [3.0]);
}

#[test]
fn the_namelist_states_whether_a_run_is_cosmological() {
    let copy = Copy::of(&own_output("sedov2d_small", "00002"));
    fs::write(
        copy.path.join("namelist.txt"),
        "&RUN_PARAMS\ncosmo=.true. ! yes\n/\n",
    )
    .unwrap();
    assert!(Output::open(&copy.path).unwrap().info().cosmological);
    fs::remove_file(copy.path.join("namelist.txt")).unwrap();
    copy.change("info_00002.txt", |bytes| {
        let text = String::from_utf8(bytes.clone()).unwrap();
        let old = "H0          =  0.100000000000000E+01";
        assert!(text.contains(old));
        *bytes = text
            .replace(old, "H0          =  0.700000000000000E+02")
            .into_bytes();
    });
    assert!(Output::open(&copy.path).unwrap().info().cosmological);
}

#[test]
fn fields_are_named_without_descriptors() {
    let copy = Copy::of(&own_output("rt_2d", "00002"));
    let described = Output::open(&copy.path).unwrap();
    for kind in ["hydro", "rt"] {
        fs::remove_file(copy.path.join(format!("{kind}_file_descriptor.txt"))).unwrap();
    }
    let bare = Output::open(&copy.path).unwrap();
    for kind in [ComponentKind::Hydro, ComponentKind::Rt] {
        assert_eq!(
            names(component(&bare, kind)),
            names(component(&described, kind))
        );
    }
    let copy = Copy::of(&own_output("stars_3d", "00002"));
    fs::remove_file(copy.path.join("part_file_descriptor.txt")).unwrap();
    let described = Output::open(&own_output("stars_3d", "00002")).unwrap();
    let bare = Output::open(&copy.path).unwrap();
    let particles = |output| names(component(output, ComponentKind::Particles)).join(" ");
    assert_eq!(particles(&bare), particles(&described));
}

#[test]
fn a_descriptor_of_another_output_is_refused() {
    let copy = Copy::of(&own_output("sedov2d_small", "00002"));
    copy.change("hydro_file_descriptor.txt", |bytes| {
        bytes.extend(b" 5, metallicity, d\n");
    });
    let output = Output::open(&copy.path).unwrap();
    let Some(MissingReason::Broken(why)) = &component(&output, ComponentKind::Hydro).missing else {
        panic!("a descriptor of five variables was accepted for four");
    };
    assert!(
        why.contains("expected 4 variables as in the component's files, found 5"),
        "{why}"
    );
}

#[test]
fn sinks_are_read_with_units() {
    let output = Output::open(&own_output("sinks_clumps_3d", "00002")).unwrap();
    let fields = &component(&output, ComponentKind::Sinks).fields;
    let rho = fields.iter().find(|field| field.name == "rho_gas").unwrap();
    assert_eq!(rho.unit.as_deref(), Some("m l**-3"));
    let sinks = output.read_sinks().unwrap().unwrap();
    assert_eq!(sinks.len(), fields.len());
    let text =
        fs::read_to_string(own_output("sinks_clumps_3d", "00002").join("sink_00002.csv")).unwrap();
    let lines: Vec<_> = text.lines().filter(|line| !line.contains('#')).collect();
    assert_eq!(column(&sinks, "id").rows(), lines.len());
    for (row, line) in lines.iter().enumerate() {
        let words: Vec<_> = line.split(',').map(str::trim).collect();
        assert_eq!(
            column(&sinks, "id").values::<i64>()[row].to_string(),
            words[0]
        );
        assert_eq!(
            column(&sinks, "msink").values::<f64>()[row],
            words[1].parse::<f64>().unwrap()
        );
        let last = column(&sinks, "level").values::<i64>()[row];
        assert_eq!(last.to_string(), *words.last().unwrap());
    }
}

#[test]
fn sinks_without_a_header_have_the_names_of_their_version() {
    let copy = Copy::of(&own_output("sedov2d_small", "00002"));
    let path = copy.path.join("sink_00002.csv");
    let row = "   7, 1.5E-02, 1,2,3, 4,5,6, 0,0,1.0-101, 0.25, 1D-3\n";
    fs::write(&path, row).unwrap();
    let sinks = Output::open(&copy.path)
        .unwrap()
        .read_sinks()
        .unwrap()
        .unwrap();
    assert_eq!(column(&sinks, "id").values::<i64>(), [7]);
    assert_eq!(column(&sinks, "lz").values::<f64>(), [1e-101]);
    assert_eq!(column(&sinks, "age").values::<f64>(), [0.25]);
    assert_eq!(column(&sinks, "acc_rate").values::<f64>(), [1e-3]);
    fs::write(&path, format!("{row}8, 1\n")).unwrap();
    let error = Output::open(&copy.path).unwrap().read_sinks().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(
        error
            .to_string()
            .contains("sink_00002.csv: line 2: expected a value of \"x\""),
        "{error}"
    );
    fs::write(&path, "1,2,3\n").unwrap();
    let output = Output::open(&copy.path).unwrap();
    assert_eq!(
        names(component(&output, ComponentKind::Sinks)),
        ["id", "msink", "x"]
    );
    fs::write(&path, "").unwrap();
    let none = Output::open(&copy.path)
        .unwrap()
        .read_sinks()
        .unwrap()
        .unwrap();
    assert_eq!((none.len(), none[0].1.rows()), (13, 0));
}

#[test]
fn clumps_of_all_domains_are_merged() {
    let path = own_output("sinks_clumps_3d", "00002");
    let output = Output::open(&path).unwrap();
    let clumps = output.read_clumps().unwrap().unwrap();
    let mut indices = Vec::new();
    let mut masses = Vec::new();
    for domain in 1..=output.info().ncpu {
        let text = fs::read_to_string(path.join(format!("clump_00002.txt{domain:05}"))).unwrap();
        let place = text
            .split_whitespace()
            .position(|word| word == "mass_cl")
            .unwrap();
        for line in text.lines().skip(1) {
            let words: Vec<_> = line.split_whitespace().collect();
            indices.push(words[0].parse::<i64>().unwrap());
            masses.push(words[place].parse::<f64>().unwrap());
        }
    }
    assert!(!indices.is_empty());
    assert_eq!(column(&clumps, "id").values::<i64>(), indices);
    assert_eq!(column(&clumps, "mass_cl").values::<f64>(), masses);
    let none = Output::open(&own_output("sedov2d_small", "00002")).unwrap();
    assert!(none.read_clumps().unwrap().is_none() && none.read_sinks().unwrap().is_none());
}
