//! A particle species: the `Header` of its folder, and the columns its particles have.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ambar::{DataType, Error, Result};

use super::text::Text;

const AXES: [&str; 3] = ["x", "y", "z"];

/// How the two integers that every particle has give its number and its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ids {
    /// One each.
    Plain,
    /// Both in 64 bits, the first integer being the upper half: a bit for the sign (1: not
    /// negative), 39 for the number, 24 for the process.
    Packed,
}

/// The particles of one grid: where they lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// The number of the file.
    pub file: u32,
    /// Their number.
    pub count: u64,
    /// Where they begin.
    pub offset: u64,
}

/// The `Header` of a species.
#[derive(Clone, Debug, PartialEq)]
pub struct SpeciesHeader {
    /// The format, as `Version_Two_Dot_Zero_double`.
    pub version: String,
    /// Dimensions.
    pub ndim: usize,
    /// Names of the real components beyond the position; none in the format one, which only counts
    /// them.
    pub reals: Vec<String>,
    /// Names of the integer components beyond number and process.
    pub ints: Vec<String>,
    /// Whether it says that integers are written; the format one does not say it.
    pub checkpoint: bool,
    /// Number of particles.
    pub particles: u64,
    /// The number that the run gives next.
    pub next_id: i64,
    /// The grids of each level.
    pub levels: Vec<Vec<Grid>>,
}

impl SpeciesHeader {
    /// Parses the text of a species' `Header`.
    ///
    /// # Errors
    /// `Corrupt`, naming line, expected and found; `Unsupported` for other versions.
    pub fn parse(text: &str, path: &Path) -> Result<Self> {
        let mut text = Text::new(text, path);
        let version = text
            .line("the version of the particles' format")?
            .to_owned();
        let mut header = Self {
            version,
            ndim: 0,
            reals: Vec::new(),
            ints: Vec::new(),
            checkpoint: true,
            particles: 0,
            next_id: 0,
            levels: Vec::new(),
        };
        header
            .check_version()
            .map_err(|e| e.in_file(path.display()))?;
        header.ndim = text.integer("the number of dimensions", 1..=3)? as usize;
        if header.is_one() {
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
            header.checkpoint = text.integer("whether integers are written", 0..=1)? == 1;
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
                grids.push(Grid {
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
                "{} particles expected, but the grids have {counted}: copy the plotfile again",
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
                "particles of the format {:?}: only Version_One_Dot_Zero to Version_Two_Dot_One \
                 are read",
                self.version
            ))),
        }
    }

    /// Whether it is of the format one: no names, and integers of which it does not tell.
    pub fn is_one(&self) -> bool {
        self.version.starts_with("Version_One")
    }

    /// The type of real numbers.
    pub fn real(&self) -> DataType {
        if self.version.ends_with("_single") {
            DataType::Float32
        } else {
            DataType::Float64
        }
    }

    /// How number and process are written.
    pub fn ids(&self) -> Ids {
        if self.version.starts_with("Version_Two_Dot_One") {
            Ids::Packed
        } else {
            Ids::Plain
        }
    }

    /// The text as AMReX writes it.
    pub fn format(&self) -> String {
        let mut text = format!("{}\n{}\n", self.version, self.ndim);
        // Writing to a String cannot fail.
        if self.is_one() {
            let _ = writeln!(text, "{}", self.reals.len());
        } else {
            for names in [&self.reals, &self.ints] {
                let _ = writeln!(text, "{}", names.len());
                for name in names {
                    let _ = writeln!(text, "{name}");
                }
            }
            let _ = writeln!(text, "{}", u8::from(self.checkpoint));
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

fn names(text: &mut Text<'_>, what: &str) -> Result<Vec<String>> {
    let number = text.count(&format!("the number of {what}s"))?;
    text.line("the end of the line")?;
    let mut names = Vec::new();
    for _ in 0..number {
        names.push(text.line(&format!("the name of a {what}"))?.to_owned());
    }
    Ok(names)
}

/// What a particle consists of in the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Integers; 0 where the files have none.
    pub ints: usize,
    /// Real numbers.
    pub reals: usize,
    /// Bytes of a real number.
    pub real_size: usize,
}

impl Record {
    /// Bytes of a particle.
    pub fn bytes(self) -> usize {
        self.ints * 4 + self.reals * self.real_size
    }
}

/// A species' files, checked.
#[derive(Debug)]
pub struct SpeciesFiles {
    /// Their folder.
    pub folder: PathBuf,
    /// What its `Header` says.
    pub header: SpeciesHeader,
    /// What a particle consists of.
    pub record: Record,
    /// Digits of the numbers in the files' names: `DATA_00000` has 5.
    pub digits: usize,
}

impl SpeciesFiles {
    /// Opens a species' folder.
    ///
    /// # Errors
    /// `Corrupt` where its texts are damaged, or files missing or cut short; `Unsupported`; `Io`.
    pub fn open(folder: &Path, ndim: usize) -> Result<Self> {
        let path = folder.join("Header");
        let text = super::text::read_text(&path)?;
        let header = SpeciesHeader::parse(&text, &path)?;
        if header.ndim != ndim {
            return Err(Error::corrupt(format!(
                "particles in {ndim} dimensions expected, {} found: copy the plotfile again",
                header.ndim
            ))
            .in_file(path.display()));
        }
        let reals = header.ndim + header.reals.len();
        let mut files = Self {
            folder: folder.to_owned(),
            record: Record {
                ints: 2 + header.ints.len(),
                reals,
                real_size: header.real().size().unwrap_or(8),
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

    /// Some runs use other than five digits.
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
        let there = |digits: &usize| self.folder.join(name(*digits)).is_file();
        [5, 4, 6, 7, 3]
            .into_iter()
            .find(there)
            .unwrap_or(self.digits)
    }

    /// Finds out whether the files hold integers: their lengths tell, where the header does not,
    /// or says otherwise.
    fn find_record(&mut self) -> Result<()> {
        let with = self.record;
        let without = Record { ints: 0, ..with };
        let lengths = self.lengths()?;
        let (likely, other) = match self.header.checkpoint {
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
                    place.insert(super::files::DataFile::open(&path)?.len);
                }
            }
        }
        Ok(lengths)
    }

    /// Whether no grid's particles lie in another's place.
    pub fn places_apart(&self) -> bool {
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

    /// Checks that the grids' particles lie in their files, none in another's; with `exactly`, that
    /// they end where the file does.
    fn check(
        &self,
        record: Record,
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
                            "{} particles of {} bytes each expected from byte {} on, but the file \
                             has {len} bytes and the particles before end at {end}: it was cut \
                             short, or Header is of another plotfile; copy it again",
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
            Some(_) => Err(Error::corrupt("more bytes than particles")),
            None => Ok(()),
        }
    }

    /// The columns: positions, real components, number and process, integer components, and `level`
    /// and `grid`, which a writer needs.
    pub fn columns(&self) -> Vec<(String, DataType)> {
        let real = self.header.real();
        let axes = AXES.iter().take(self.header.ndim);
        let mut columns: Vec<_> = axes
            .map(|axis| (format!("position_{axis}"), real.clone()))
            .collect();
        let mut taken: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
        taken.extend(["id", "cpu", "level", "grid"].map(String::from));
        let mut unique = |name: &str, prefix: &str| {
            let mut unique = name.to_owned();
            let mut number = 1;
            while taken.contains(&unique) {
                unique = match number {
                    1 => format!("{prefix}_{name}"),
                    _ => format!("{prefix}_{name}_{number}"),
                };
                number += 1;
            }
            taken.push(unique.clone());
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
