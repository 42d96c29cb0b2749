//! Truncated, damaged and hostile plotfiles: an error that names file and line.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests"
)]

mod amrex_common;

use std::fs;
use std::path::{Path, PathBuf};

use ambar::kinds::amr::patches::PatchSource;
use ambar::{ErrorKind, Result};
use ambar_formats::amrex::{Plotfile, PlotfileLayout};
use amrex_common::synthetic::{Synthetic, particles};
use amrex_common::tree;

/// Opens a plotfile and reads all of it.
fn read_all(path: &Path) -> Result<Vec<u8>> {
    let plotfile = Plotfile::open(path)?;
    let mut all = Vec::new();
    for (level, part) in plotfile.hierarchy().levels.iter().enumerate() {
        for (index, cells) in part.boxes.iter().enumerate() {
            for field in plotfile.names() {
                let size = plotfile.dtype(field)?.size().unwrap();
                let mut values = vec![0; cells.cells() * size];
                plotfile.read_box(level, index, field, &mut values)?;
                all.extend(values);
            }
        }
    }
    for species in plotfile.species() {
        for (_, column) in plotfile.read_particles(&species.name)? {
            all.extend(column.bytes());
        }
    }
    plotfile.layout()?;
    Ok(all)
}

struct Made {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Made {
    fn new(ghosts: i64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plt");
        Synthetic {
            ghosts,
            ..Synthetic::new(2, &[2, 2], "2 ")
        }
        .write(&path);
        particles(&path, "Version_Two_Dot_Zero_double", true);
        Self {
            _folder: folder,
            path,
        }
    }

    /// The error after a replacement in a text file.
    fn error(&self, file: &str, from: &str, to: &str) -> ambar::Error {
        let path = self.path.join(file);
        let whole = fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&whole).into_owned();
        assert!(text.contains(from), "{from:?} in {file}: {text}");
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let error = read_all(&self.path).unwrap_err();
        fs::write(&path, whole).unwrap();
        error
    }
}

#[test]
fn truncated_files_are_errors() {
    for ghosts in [0, 1] {
        let made = Made::new(ghosts);
        let expected = read_all(&made.path).unwrap();
        for (name, whole) in tree(&made.path) {
            let path = made.path.join(&name);
            let data = name.contains("_D_") || name.contains("DATA");
            for len in 0..whole.len() {
                fs::write(&path, &whole[..len]).unwrap();
                match read_all(&made.path) {
                    // Trailing blanks, and text files besides the levels, may be missing.
                    Ok(found) => {
                        let plotfile = Plotfile::open(&made.path).unwrap();
                        let whole = found == expected;
                        // The truncated Header does not state that the folder has particles.
                        let is_listed = plotfile.ignored().iter().any(|left| left.name == "DM");
                        assert!(
                            !data && (whole || is_listed),
                            "{name} cut at {len} was read"
                        );
                    }
                    Err(error) => {
                        let kinds = [
                            ErrorKind::Corrupt,
                            ErrorKind::NotFound,
                            ErrorKind::Unsupported,
                        ];
                        assert!(kinds.contains(&error.kind()), "{name} at {len}: {error:?}");
                        let file = Path::new(error.file());
                        assert!(file.starts_with(&made.path), "{name} at {len}: {error}");
                    }
                }
            }
            fs::write(&path, &whole).unwrap();
        }
        assert_eq!(read_all(&made.path).unwrap(), expected);
    }
}

#[test]
fn flipped_bytes_give_a_result_or_an_error() {
    let made = Made::new(0);
    let mut errors = 0;
    for (name, whole) in tree(&made.path) {
        let path = made.path.join(&name);
        for at in 0..whole.len().min(2500) {
            for change in [1 << (at % 8), 0xff] {
                let mut bytes = whole.clone();
                bytes[at] ^= change;
                fs::write(&path, bytes).unwrap();
                errors += u32::from(read_all(&made.path).is_err());
            }
        }
        fs::write(&path, &whole).unwrap();
    }
    assert!(errors > 1500, "{errors} errors only");
    read_all(&made.path).unwrap();
}

/// A string, its replacement (HUGE is the largest integer), and a part of the error.
type Hostile = (&'static str, &'static str, &'static str);

const HOSTILE_HEADER: &[Hostile] = &[
    (
        "V1.1\n3\n",
        "V1.1\n4000000000000\n",
        "line 2: expected the number of fields",
    ),
    ("\n4 4 \n", "\n4 -2 \n", "an upper corner of the domain"),
    (
        "\n4 4 \n",
        "\n4 -3 \n",
        "an upper corner of the domain above the lower one, [-2.0, -2.0], before this position",
    ),
    (
        "\n2\n0.5",
        "\n4\n0.5",
        "the number of dimensions, from 1 to 3",
    ),
    (
        "0.5\n1\n",
        "0.5\n99999\n",
        "the finest level, from 0 to 255",
    ),
    ("((-4,-4) (7,7)", "((-4,-4) (HUGE,7)", "domain"),
    (
        "((-4,-4) (7,7)",
        "((-4,-4) (8,7)",
        "expected a domain that refines",
    ),
    ("((-4,-4) (7,7)", "((-4,-4) (-9,7)", "level"),
    (
        "\n2 \n",
        "\n3 \n",
        "ratio 2 according to the domains, found 3",
    ),
    ("\n2 \n", "\n2 x\n", "line 11: expected a refinement ratio"),
    ("\n3 4 \n", "\n3 x \n", "line 13: expected a level's step"),
    ("0.5 0.5", "0.5 nan", "a finite number"),
    ("0.5 0.5", "0.5 -0.5", "size"),
    ("\n0 2 0.5", "\n0 HUGE 0.5", "number of boxes"),
    ("\n0 2 0.5", "\n0 1 0.5", "expected"),
    ("Lev_0/State", "../Lev_0/State", "the name of a file"),
    ("Lev_0/State", "/etc/State", "the name of a file"),
    (
        "Lev_0/State",
        "Lev_9/State",
        "Lev_9/State_H: expected this file",
    ),
    ("density", "Y(H2)", "found \"Y(H2)\" twice"),
];

const HOSTILE_CELLS: &[Hostile] = &[
    (
        "1\n0\n3",
        "7\n0\n3",
        "line 1: expected the format of Cell_H (1 to 4)",
    ),
    ("1\n0\n3", "1\n0\n4", "components again"),
    ("\n0\n(2 0", "\n-1\n(2 0", "ghost cells"),
    ("\n0\n(2 0", "\n1\n(2 0", "a FAB of"),
    ("(2 0", "(HUGE 0", "the number of boxes"),
    ("((4,-4)", "((5,-4)", "a FAB of"),
    ("(3,3) (0,0)", "(3,3) (1,0)", "nodes or faces"),
    (
        "State_D_00001",
        "../../x",
        "the name of a file in the plotfile",
    ),
    (
        "State_D_00001",
        "State_D_00009",
        "State_D_00009: expected this file",
    ),
    ("00001 0", "00001 HUGE", "it is truncated"),
    ("00001 0", "00000 0", "a FAB of"),
    ("2,3", "2,99999999999", "components again"),
];

const HOSTILE_FAB: &[Hostile] = &[
    ("FAB ((8, (64 ", "FAB ((9999999, (64 ", "list of numbers"),
    (" 3\n", " 2000000000\n", "components as in Cell_H"),
];

const HOSTILE_PARTICLES: &[Hostile] = &[
    (
        "Two_Dot_Zero",
        "Three_Dot_Zero",
        "from Version_One_Dot_Zero to Version_Two_Dot_One",
    ),
    ("double\n2", "double\n3", "particles in 2 dimensions, found"),
    (
        "double\n2\n1",
        "double\n2\nHUGE",
        "number of real components",
    ),
    (
        "\n6\n",
        "\n7\n",
        "expected 7 particles, found 6 in the grids",
    ),
    ("0 3 0", "0 HUGE 0", "particles"),
    ("0 3 0", "0 3 HUGE", "from byte"),
    ("0 1 72", "0 1 0", "it is truncated"),
    ("0 3 0", "7 3 0", "Level_0/DATA_00007: expected this file"),
];

#[test]
fn hostile_numbers_are_errors() {
    let made = Made::new(0);
    for (file, hostile) in [
        ("Header", HOSTILE_HEADER),
        ("Lev_0/State_H", HOSTILE_CELLS),
        ("Lev_0/State_D_00000", HOSTILE_FAB),
        ("DM/Header", HOSTILE_PARTICLES),
    ] {
        for (from, to, part) in hostile {
            let to = to.replace("HUGE", "9223372036854775807");
            let error = made.error(file, from, &to);
            assert!(
                error.to_string().contains(part),
                "{to:?} in {file}: {part:?} in {error}"
            );
            let kinds = [ErrorKind::Corrupt, ErrorKind::Unsupported];
            assert!(kinds.contains(&error.kind()), "{error:?}");
        }
    }
}

#[test]
fn two_fabs_may_not_share_bytes() {
    let made = Made::new(0);
    // The FAB of the second box, with a valid header line, in the values of the first.
    let [first, second] = ["00000", "00001"].map(|n| made.path.join(format!("Lev_0/State_D_{n}")));
    let (mut bytes, other) = (fs::read(&first).unwrap(), fs::read(&second).unwrap());
    bytes[200..200 + other.len()].copy_from_slice(&other);
    fs::write(&first, bytes).unwrap();
    let error = made.error("Lev_0/State_H", "State_D_00001 0", "State_D_00000 200");
    assert!(
        error.to_string().contains("after the previous one"),
        "{error}"
    );
}

#[test]
fn all_versions_of_particles_are_read() {
    for version in [
        "Version_One_Dot_Zero",
        "Version_One_Dot_One_single",
        "Version_One_Dot_One_double",
        "Version_Two_Dot_Zero_single",
        "Version_Two_Dot_Zero_double",
        "Version_Two_Dot_One_single",
        "Version_Two_Dot_One_double",
    ] {
        for ints in [true, false] {
            let made = Made::new(0);
            fs::remove_dir_all(made.path.join("DM")).unwrap();
            particles(&made.path, version, ints);
            let plotfile = Plotfile::open(&made.path).unwrap();
            let species = &plotfile.species()[0];
            assert_eq!((species.missing(), species.version()), (None, version));
            let columns = plotfile.read_particles("DM").unwrap();
            let names: Vec<_> = columns.iter().map(|(name, _)| name.as_str()).collect();
            let one = version.contains("Version_One");
            let mut expected = vec!["position_x", "position_y"];
            expected.push(if one { "real_comp0" } else { "mass" });
            match (ints, one) {
                (true, true) => expected.extend(["id", "cpu", "cell_x", "cell_y"]),
                (true, false) => expected.extend(["id", "cpu", "kind"]),
                _ => {}
            }
            expected.extend(["level", "grid"]);
            assert_eq!(names, expected);
            let column = |name: &str| &columns.iter().find(|(n, _)| n == name).unwrap().1;
            assert_eq!(column("level").values::<u8>(), [0, 0, 0, 1, 1, 1]);
            assert_eq!(column("grid").values::<u32>(), [0, 0, 0, 0, 0, 1]);
            let masses: Vec<f64> = match version.ends_with("single") {
                true => columns[2]
                    .1
                    .values::<f32>()
                    .iter()
                    .map(|x| f64::from(*x))
                    .collect(),
                false => columns[2].1.values::<f64>().to_vec(),
            };
            assert_eq!(masses, [0.0, 1.0, 2.0, 0.0, 1.0, 0.0]);
            if ints {
                assert_eq!(column("id").values::<i64>(), [1, 2, 3, 1, 2, 1]);
                let cpu = if version.contains("Two_Dot_One") {
                    7
                } else {
                    1
                };
                assert_eq!(column("cpu").values::<i32>(), [cpu; 6]);
            }
        }
    }
}

#[test]
fn missing_and_unknown_parts_are_listed() {
    let made = Made::new(0);
    fs::remove_file(made.path.join("DM/Level_1/DATA_00000")).unwrap();
    fs::create_dir(made.path.join("raw_fields")).unwrap();
    fs::write(made.path.join("picture.png"), [0xff, 0xfe]).unwrap();
    fs::write(made.path.join("long"), vec![b'x'; (1 << 20) + 1]).unwrap();
    let plotfile = Plotfile::open(&made.path).unwrap();
    let why = plotfile.species()[0].missing().unwrap();
    assert!(why.contains("DATA_00000: expected this file"), "{why}");
    assert!(plotfile.species()[0].columns().is_empty());
    assert_eq!(
        plotfile.read_particles("DM").unwrap_err().kind(),
        ErrorKind::Corrupt
    );
    let left: Vec<_> = plotfile
        .ignored()
        .iter()
        .map(|left| left.name.as_str())
        .collect();
    assert_eq!(left, ["long", "picture.png", "raw_fields"]);
    plotfile.layout().unwrap();
}

#[test]
fn damaged_layouts_are_errors_or_ignored() {
    let made = Made::new(0);
    let plotfile = Plotfile::open(&made.path).unwrap();
    let text = plotfile.layout_json().unwrap();
    assert!(PlotfileLayout::from_json(&text[..text.len() / 2]).is_err());
    assert!(PlotfileLayout::from_json("{}").is_err());
}
