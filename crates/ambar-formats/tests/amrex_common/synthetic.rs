//! A small writer of plotfiles for tests, independent of the library's.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// A level: inclusive lower and upper corners of its boxes.
#[derive(Clone)]
pub struct Level {
    pub domain: [Vec<i64>; 2],
    pub boxes: Vec<[Vec<i64>; 2]>,
}

/// A plotfile of a few boxes.
#[derive(Clone)]
pub struct Synthetic {
    pub ndim: usize,
    pub fields: Vec<&'static str>,
    pub levels: Vec<Level>,
    /// The line of refinement ratios.
    pub ratios: &'static str,
    pub double: bool,
    pub little: bool,
    pub ghosts: i64,
    /// The number of files of a level. Boxes are distributed round-robin, in reverse order if `shuffled`.
    pub files: usize,
    pub shuffled: bool,
}

impl Synthetic {
    /// Two levels of two boxes in each dimension, with negative indices.
    pub fn new(ndim: usize, ratio: &[i64], ratios: &'static str) -> Self {
        let corner = |x: i64| vec![x; ndim];
        let coarse = Level {
            domain: [corner(-4), corner(7)],
            boxes: vec![[corner(-4), corner(3)], {
                let mut lo = corner(-4);
                lo[0] = 4;
                let mut hi = corner(1);
                hi[0] = 7;
                [lo, hi]
            }],
        };
        let refined = |x: &[i64], upper: i64| {
            let each = x.iter().zip(ratio);
            each.map(|(x, r)| (x + upper) * r - upper)
                .collect::<Vec<_>>()
        };
        let fine = Level {
            domain: [refined(&coarse.domain[0], 0), refined(&coarse.domain[1], 1)],
            boxes: vec![
                [refined(&vec![-2; ndim], 0), refined(&vec![-1; ndim], 1)],
                [refined(&vec![1; ndim], 0), refined(&vec![2; ndim], 1)],
                [refined(&vec![4; ndim], 0), refined(&vec![4; ndim], 1)],
            ],
        };
        Self {
            ndim,
            fields: vec!["density", "x velocity", "Y(H2)"],
            levels: vec![coarse, fine],
            ratios,
            double: true,
            little: true,
            ghosts: 0,
            files: 2,
            shuffled: false,
        }
    }

    /// The value of a cell: different in each, and exact in single precision.
    pub fn value(&self, level: usize, field: usize, cell: &[i64]) -> f64 {
        let mut value = (level * 10 + field) as f64;
        for x in cell {
            value = value * 64.0 + *x as f64;
        }
        value / 8.0 - 3.0
    }

    /// The values of a box, x fastest.
    pub fn values(&self, level: usize, index: usize, field: usize, ghosts: i64) -> Vec<f64> {
        let [lo, hi] = &self.levels[level].boxes[index];
        let lo: Vec<_> = lo.iter().map(|x| x - ghosts).collect();
        let hi: Vec<_> = hi.iter().map(|x| x + ghosts).collect();
        let mut cell = lo.clone();
        let mut values = Vec::new();
        'cells: loop {
            values.push(self.value(level, field, &cell));
            for d in 0..self.ndim {
                cell[d] += 1;
                if cell[d] <= hi[d] {
                    continue 'cells;
                }
                cell[d] = lo[d];
            }
            return values;
        }
    }

    fn bytes(&self, value: f64) -> Vec<u8> {
        let mut bytes = match self.double {
            true => value.to_be_bytes().to_vec(),
            false => (value as f32).to_be_bytes().to_vec(),
        };
        if self.little {
            bytes.reverse();
        }
        bytes
    }

    fn line(&self, level: usize, index: usize) -> String {
        let [lo, hi] = &self.levels[level].boxes[index];
        let lo: Vec<_> = lo.iter().map(|x| x - self.ghosts).collect();
        let hi: Vec<_> = hi.iter().map(|x| x + self.ghosts).collect();
        let order = match (self.double, self.little) {
            (true, true) => "(64 11 52 0 1 12 0 1023)),(8, (8 7 6 5 4 3 2 1)",
            (true, false) => "(64 11 52 0 1 12 0 1023)),(8, (1 2 3 4 5 6 7 8)",
            (false, true) => "(32 8 23 0 1 9 0 127)),(4, (4 3 2 1)",
            (false, false) => "(32 8 23 0 1 9 0 127)),(4, (1 2 3 4)",
        };
        let fields = self.fields.len();
        format!("FAB ((8, {order})){} {fields}\n", boxed(&[lo, hi]))
    }

    /// Writes the plotfile.
    pub fn write(&self, path: &Path) {
        fs::create_dir(path).unwrap();
        for level in 0..self.levels.len() {
            self.write_level(path, level);
        }
        fs::write(path.join("Header"), self.header()).unwrap();
        fs::write(path.join("job_info"), "a run\n").unwrap();
    }

    fn write_level(&self, path: &Path, level: usize) {
        // An unusual path: the reader must take it from `Header`.
        let folder = path.join(format!("Lev_{level}"));
        fs::create_dir(&folder).unwrap();
        let boxes = &self.levels[level].boxes;
        let mut order: Vec<_> = (0..boxes.len()).collect();
        if self.shuffled {
            order.reverse();
        }
        let mut files = vec![Vec::new(); self.files];
        let mut places = vec![(0, 0); boxes.len()];
        for (turn, index) in order.into_iter().enumerate() {
            let number = turn % self.files;
            places[index] = (number, files[number].len());
            files[number].extend(self.line(level, index).into_bytes());
            for field in 0..self.fields.len() {
                for value in self.values(level, index, field, self.ghosts) {
                    files[number].extend(self.bytes(value));
                }
            }
        }
        for (number, bytes) in files
            .iter()
            .enumerate()
            .filter(|(_, bytes)| !bytes.is_empty())
        {
            fs::write(folder.join(format!("State_D_{number:05}")), bytes).unwrap();
        }
        let mut text = format!("1\n0\n{}\n{}\n", self.fields.len(), self.ghosts);
        let _ = writeln!(text, "({} 0", boxes.len());
        boxes.iter().for_each(|b| text += &(boxed(b) + "\n"));
        let _ = writeln!(text, ")\n{}", boxes.len());
        for (number, offset) in places {
            let _ = writeln!(text, "FabOnDisk: State_D_{number:05} {offset}");
        }
        for largest in [false, true] {
            let _ = writeln!(text, "\n{},{}", boxes.len(), self.fields.len());
            for index in 0..boxes.len() {
                for field in 0..self.fields.len() {
                    let values = self.values(level, index, field, 0).into_iter();
                    let value = match largest {
                        true => values.fold(f64::NEG_INFINITY, f64::max),
                        false => values.fold(f64::INFINITY, f64::min),
                    };
                    let text_of = format!("{value:.17e}");
                    let (mantissa, power) = text_of.split_once('e').unwrap();
                    let power: i32 = power.parse().unwrap();
                    let sign = if power < 0 { '-' } else { '+' };
                    let _ = write!(text, "{mantissa}e{sign}{:02},", power.abs());
                }
                text.push('\n');
            }
        }
        fs::write(folder.join("State_H"), text + "\n").unwrap();
    }

    fn header(&self) -> String {
        let row = |x: f64| format!("{x} ").repeat(self.ndim) + "\n";
        let mut text = format!("HyperCLaw-V1.1\n{}\n", self.fields.len());
        self.fields
            .iter()
            .for_each(|name| text += &format!("{name}\n"));
        let finest = self.levels.len() - 1;
        let _ = writeln!(text, "{}\n0.5\n{finest}", self.ndim);
        text += &(row(-2.0) + &row(4.0));
        let _ = writeln!(text, "{}", self.ratios);
        self.levels
            .iter()
            .for_each(|level| text += &(boxed(&level.domain) + " "));
        text.push('\n');
        (0..self.levels.len()).for_each(|step| text += &format!("{} ", step + 3));
        text.push('\n');
        let sizes = |level: &Level| {
            let cells = |d: usize| (level.domain[1][d] - level.domain[0][d] + 1) as f64;
            (0..self.ndim).map(|d| 6.0 / cells(d)).collect::<Vec<_>>()
        };
        for level in &self.levels {
            sizes(level)
                .iter()
                .for_each(|size| text += &format!("{size} "));
            text.push('\n');
        }
        text += "0\n0\n";
        for (number, level) in self.levels.iter().enumerate() {
            let _ = writeln!(text, "{number} {} 0.5\n{}", level.boxes.len(), number + 3);
            for [lo, hi] in &level.boxes {
                for (d, size) in sizes(level).iter().enumerate() {
                    let side = |x: i64| size * (x - level.domain[0][d]) as f64 - 2.0;
                    let _ = writeln!(text, "{} {}", side(lo[d]), side(hi[d] + 1));
                }
            }
            let _ = writeln!(text, "Lev_{number}/State");
        }
        text
    }
}

fn boxed([lo, hi]: &[Vec<i64>; 2]) -> String {
    let list = |x: &[i64]| x.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let zeros = vec![0; lo.len()];
    format!("(({}) ({}) ({}))", list(lo), list(hi), list(&zeros))
}

/// Particles on the first boxes of both levels.
pub fn particles(root: &Path, version: &str, ints: bool) {
    let folder = root.join("DM");
    let one = version.contains("One_Dot_") && !version.contains("Two");
    let names = if one { "1\n" } else { "1\nmass\n1\nkind\n1\n" };
    let columns = match (ints, one) {
        (false, _) => 0,
        (true, true) => 4,
        (true, false) => 3,
    };
    let single = version.ends_with("single");
    let mut table = String::new();
    for (level, boxes, counts) in [(0, 2, [3, 0]), (1, 3, [2, 1])] {
        let mut bytes = Vec::new();
        for index in 0..boxes {
            let count = counts.get(index).copied().unwrap_or(0);
            table += &format!("0 {count} {}\n", bytes.len());
            for row in 0..count {
                let ints = (0..columns).map(|column| match column {
                    0 if version.contains("Two_Dot_One") => (1 << 31) | (row + 1) >> 8,
                    1 if version.contains("Two_Dot_One") => (row + 1) << 24 | 7,
                    0 => row + 1,
                    column => column as u32,
                });
                bytes.extend(ints.flat_map(|value: u32| value.to_le_bytes()));
            }
            for row in 0..count {
                for value in [0.25, 0.5, f64::from(row)] {
                    match single {
                        true => bytes.extend((value as f32).to_le_bytes()),
                        false => bytes.extend(value.to_le_bytes()),
                    }
                }
            }
        }
        let folder = folder.join(format!("Level_{level}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("DATA_00000"), bytes).unwrap();
    }
    let text = format!("{version}\n2\n{names}6\n99\n1\n2\n3\n{table}");
    fs::write(folder.join("Header"), text).unwrap();
}
