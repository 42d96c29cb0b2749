//! A particle species: the `Header` of its folder, and the columns of its particles.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ambar::{DataType, Error, Result};

use super::open_files::DataFile;
use super::text::{TextParser, read_text};

const AXES: [&str; 3] = ["x", "y", "z"];

/// Encoding of the id and the process number of a particle in its first two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdEncoding {
    /// One integer each.
    Plain,
    /// Both in 64 bits, with the first integer as the upper half: 1 bit for the sign (1: id >= 0), 39
    /// bits for the id, 24 bits for the process.
    Packed,
}

/// The position of the particles of one grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParticleGrid {
    /// Number of the file.
    pub file: u32,
    /// Number of particles.
    pub count: u64,
    /// Position of the first one in the file.
    pub offset: u64,
}

/// The `Header` of a species.
#[derive(Clone, Debug, PartialEq)]
pub struct SpeciesHeader {
    /// The format, such as `Version_Two_Dot_Zero_double`.
    pub version: String,
    /// Dimensions.
    pub ndim: usize,
    /// Names of the real components except the position. Version one has no names, only their number.
    pub reals: Vec<String>,
    /// Names of the integer components except id and process.
    pub ints: Vec<String>,
    /// True if the header says that integers are written. Version one does not say it.
    pub has_integers: bool,
    /// Number of particles.
    pub particles: u64,
    /// The id of the next particle that the run creates.
    pub next_id: i64,
    /// The grids of each level.
    pub levels: Vec<Vec<ParticleGrid>>,
}

impl SpeciesHeader {
    /// Parses the text of a species' `Header`.
    ///
    /// # Errors
    /// `Corrupt` with the line, what was expected and what was found; `Unsupported` for other versions.
    pub fn parse(text: &str, path: &Path) -> Result<Self> {
        let mut text = TextParser::new(text, path);
        let version = text
            .line("the version of the particles' format")?
            .to_owned();
        let mut header = Self {
            version,
            ndim: 0,
            reals: Vec::new(),
            ints: Vec::new(),
            has_integers: true,
            particles: 0,
            next_id: 0,
            levels: Vec::new(),
        };
        header
            .check_version()
            .map_err(|e| e.in_file(path.display()))?;
        header.ndim = text.integer("the number of dimensions", 1..=3)? as usize;
        if header.is_version_one() {
            let number = text.integer("the number of real components", 0..=4096)?;
            header.reals = (0..number).map(|i| format!("real_comp{i}")).collect();
            header.ints = AXES
                .iter()
                .take(header.ndim)
                .map(|x| format!("cell_{x}"))
                .collect();
        } else {
            header.reals = names(&mut text, "real component")?;
            header.ints = names(&mut text, "integer component")?;
            header.has_integers = text.integer("whether integers are written", 0..=1)? == 1;
        }
        header.particles = text.integer("the number of particles", 0..=i64::MAX)? as u64;
        header.next_id = text.number("the next particle's number")?;
        let finest = text.integer("the finest level", 0..=255)?;
        let mut numbers = Vec::new();
        for _ in 0..=finest {
            numbers.push(text.count("a level's number of grids")?);
        }
        for number in numbers {
            let mut grids = Vec::new();
            for _ in 0..number {
                grids.push(ParticleGrid {
                    file: text.integer("a file's number", 0..=i64::from(i32::MAX))? as u32,
                    count: text.integer("a grid's number of particles", 0..=i64::MAX)? as u64,
                    offset: text.integer("an offset", 0..=i64::MAX)? as u64,
                });
            }
            header.levels.push(grids);
        }
        if text.peek().is_some() {
            return Err(text.error("the end of the file"));
        }
        let counted = header.levels.iter().flatten();
        let counted: u128 = counted.map(|grid| u128::from(grid.count)).sum();
        if counted != u128::from(header.particles) {
            return Err(Error::corrupt(format!(
                "expected {} particles, found {counted} in the grids; copy the plotfile again",
                header.particles
            ))
            .in_file(path.display()));
        }
        Ok(header)
    }

    fn check_version(&self) -> Result<()> {
        let family = ["One_Dot_Zero", "One_Dot_One", "Two_Dot_Zero", "Two_Dot_One"];
        let rest = self.version.strip_prefix("Version_").unwrap_or_default();
        let known = family.iter().find_map(|family| rest.strip_prefix(family));
        match known {
            Some("_single" | "_double") => Ok(()),
            Some("") if rest == family[0] => Ok(()),
            _ => Err(Error::unsupported(format!(
                "expected a particle format from Version_One_Dot_Zero to Version_Two_Dot_One, found \
                 {:?}; write the particles in one of these formats",
                self.version
            ))),
        }
    }

    /// True for version one, which has no names and does not say whether integers are written.
    pub fn is_version_one(&self) -> bool {
        self.version.starts_with("Version_One")
    }

    /// The type of real components.
    pub fn real_dtype(&self) -> DataType {
        if self.version.ends_with("_single") {
            DataType::Float32
        } else {
            DataType::Float64
        }
    }

    /// Encoding of id and process.
    pub fn id_encoding(&self) -> IdEncoding {
        if self.version.starts_with("Version_Two_Dot_One") {
            IdEncoding::Packed
        } else {
            IdEncoding::Plain
        }
    }

    /// The text that AMReX writes.
    pub fn format(&self) -> String {
        let mut text = format!("{}\n{}\n", self.version, self.ndim);
        // Writing to a String cannot fail.
        if self.is_version_one() {
            let _ = writeln!(text, "{}", self.reals.len());
        } else {
            for names in [&self.reals, &self.ints] {
                let _ = writeln!(text, "{}", names.len());
                for name in names {
                    let _ = writeln!(text, "{name}");
                }
            }
            let _ = writeln!(text, "{}", u8::from(self.has_integers));
        }
        let finest = self.levels.len().saturating_sub(1);
        let _ = writeln!(text, "{}\n{}\n{finest}", self.particles, self.next_id);
        for grids in &self.levels {
            let _ = writeln!(text, "{}", grids.len());
        }
        for grid in self.levels.iter().flatten() {
            let _ = writeln!(text, "{} {} {}", grid.file, grid.count, grid.offset);
        }
        text
    }
}

fn names(text: &mut TextParser<'_>, what: &str) -> Result<Vec<String>> {
    let number = text.count(&format!("the number of {what}s"))?;
    text.line("the end of the line")?;
    let mut names = Vec::new();
    for _ in 0..number {
        names.push(text.line(&format!("the name of a {what}"))?.to_owned());
    }
    Ok(names)
}

/// The numbers of one particle in the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParticleRecord {
    /// Number of integers; 0 if the files have none.
    pub ints: usize,
    /// Number of reals.
    pub reals: usize,
    /// Bytes of a real.
    pub real_size: usize,
}

impl ParticleRecord {
    /// Bytes of a particle.
    pub fn bytes(self) -> usize {
        self.ints * 4 + self.reals * self.real_size
    }
}

/// The checked files of a species.
#[derive(Debug)]
pub struct SpeciesFiles {
    /// The species' folder.
    pub folder: PathBuf,
    /// The contents of `Header`.
    pub header: SpeciesHeader,
    /// The numbers of one particle.
    pub record: ParticleRecord,
    /// Digits of the numbers in file names: `DATA_00000` has 5.
    pub digits: usize,
}

impl SpeciesFiles {
    /// Opens a species' folder.
    ///
    /// # Errors
    /// `Corrupt` if headers are damaged, or files are missing or truncated; `Unsupported`; `Io`.
    pub fn open(folder: &Path, ndim: usize) -> Result<Self> {
        let path = folder.join("Header");
        let text = read_text(&path)?;
        let header = SpeciesHeader::parse(&text, &path)?;
        if header.ndim != ndim {
            return Err(Error::corrupt(format!(
                "expected particles in {ndim} dimensions, found {}; copy the plotfile again",
                header.ndim
            ))
            .in_file(path.display()));
        }
        let reals = header.ndim + header.reals.len();
        let mut files = Self {
            folder: folder.to_owned(),
            record: ParticleRecord {
                ints: 2 + header.ints.len(),
                reals,
                real_size: header.real_dtype().size().unwrap_or(8),
            },
            header,
            digits: 5,
        };
        files.digits = files.find_digits();
        files.find_record()?;
        Ok(files)
    }

    /// The path of a file of a level.
    pub fn file(&self, level: usize, number: u32) -> PathBuf {
        let name = format!("Level_{level}/DATA_{number:0digits$}", digits = self.digits);
        self.folder.join(name)
    }

    /// Finds the number of digits in file names; some runs do not use five.
    fn find_digits(&self) -> usize {
        let levels = self.header.levels.iter().enumerate();
        let mut used = levels.flat_map(|(level, grids)| {
            grids
                .iter()
                .filter(|grid| grid.count > 0)
                .map(move |grid| (level, grid.file))
        });
        let Some((level, number)) = used.next() else {
            return self.digits;
        };
        let name = |digits: usize| format!("Level_{level}/DATA_{number:0digits$}");
        let exists = |digits: &usize| self.folder.join(name(*digits)).is_file();
        [5, 4, 6, 7, 3]
            .into_iter()
            .find(exists)
            .unwrap_or(self.digits)
    }

    /// Finds out from the files' lengths whether they hold integers: the header may not say it, or be
    /// wrong.
    fn find_record(&mut self) -> Result<()> {
        let with = self.record;
        let without = ParticleRecord { ints: 0, ..with };
        let lengths = self.lengths()?;
        let (likely, other) = match self.header.has_integers {
            true => (with, without),
            false => (without, with),
        };
        self.record = likely;
        if self.check(likely, &lengths, true).is_err() && self.check(other, &lengths, true).is_ok()
        {
            self.record = other;
        }
        self.check(self.record, &lengths, false)
    }

    /// The length of each file that holds particles, by level and number.
    fn lengths(&self) -> Result<HashMap<(usize, u32), u64>> {
        let mut lengths = HashMap::new();
        for (level, grids) in self.header.levels.iter().enumerate() {
            for grid in grids.iter().filter(|grid| grid.count > 0) {
                let key = (level, grid.file);
                if let std::collections::hash_map::Entry::Vacant(place) = lengths.entry(key) {
                    let path = self.file(level, grid.file);
                    place.insert(DataFile::open(&path)?.len);
                }
            }
        }
        Ok(lengths)
    }

    /// True if the particles of different grids do not overlap in the files.
    pub fn grids_are_disjoint(&self) -> bool {
        let mut lengths = HashMap::new();
        for (level, grids) in self.header.levels.iter().enumerate() {
            lengths.extend(
                grids
                    .iter()
                    .map(|grid| ((level, grid.file), i64::MAX as u64)),
            );
        }
        self.check(self.record, &lengths, false).is_ok()
    }

    /// Checks that the particles of each grid are inside their file, and do not overlap those of another.
    /// With `exactly`, the last ones must end at the end of the file.
    fn check(
        &self,
        record: ParticleRecord,
        lengths: &HashMap<(usize, u32), u64>,
        exactly: bool,
    ) -> Result<()> {
        let mut ends = HashMap::new();
        for (level, grids) in self.header.levels.iter().enumerate() {
            let mut order: Vec<_> = grids.iter().filter(|grid| grid.count > 0).collect();
            order.sort_by_key(|grid| (grid.file, grid.offset));
            for grid in order {
                let end = ends.entry((level, grid.file)).or_insert(0);
                let bytes = grid.count.checked_mul(record.bytes() as u64);
                let next = bytes.and_then(|bytes| grid.offset.checked_add(bytes));
                let len = lengths.get(&(level, grid.file)).copied().unwrap_or(0);
                match next {
                    Some(next) if *end <= grid.offset && next <= len => *end = next,
                    _ => {
                        return Err(Error::corrupt(format!(
                            "expected {} particles of {} bytes each from byte {} on, found a file of \
                             {len} bytes whose preceding particles end at byte {end}: it is \
                             truncated, or Header is of another plotfile; copy it again",
                            grid.count,
                            record.bytes(),
                            grid.offset
                        ))
                        .in_file(self.file(level, grid.file).display()));
                    }
                }
            }
        }
        match ends
            .iter()
            .find(|(key, end)| exactly && lengths.get(*key) != Some(*end))
        {
            Some(_) => Err(Error::corrupt(
                "expected the end of the file after the last particle",
            )),
            None => Ok(()),
        }
    }

    /// The columns: positions, real components, `id` and `cpu`, integer components, and `level` and
    /// `grid`, which a writer needs.
    pub fn columns(&self) -> Vec<(String, DataType)> {
        let real = self.header.real_dtype();
        let axes = AXES.iter().take(self.header.ndim);
        let mut columns: Vec<_> = axes
            .map(|axis| (format!("position_{axis}"), real.clone()))
            .collect();
        let mut used: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
        used.extend(["id", "cpu", "level", "grid"].map(String::from));
        let mut unique = |name: &str, prefix: &str| {
            let mut unique = name.to_owned();
            let mut number = 1;
            while used.contains(&unique) {
                unique = match number {
                    1 => format!("{prefix}_{name}"),
                    _ => format!("{prefix}_{name}_{number}"),
                };
                number += 1;
            }
            used.push(unique.clone());
            unique
        };
        for name in &self.header.reals {
            columns.push((unique(name, "real"), real.clone()));
        }
        if self.record.ints > 0 {
            columns.push(("id".into(), DataType::Int64));
            columns.push(("cpu".into(), DataType::Int32));
            for name in &self.header.ints {
                columns.push((unique(name, "int"), DataType::Int32));
            }
        }
        columns.push(("level".into(), DataType::UInt8));
        columns.push(("grid".into(), DataType::UInt32));
        columns
    }
}
