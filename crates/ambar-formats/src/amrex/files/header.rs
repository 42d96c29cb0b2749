//! The `Header` of a plotfile: fields, time, and levels with the paths of their files.

use std::fmt::Write as _;
use std::path::Path;

use ambar::kinds::amr::patches::IndexBox;
use ambar::{Error, Result};

use super::number_text::general;
use super::text::{TextParser, format_box};

/// Maximum level: columns store levels as `uint8`.
const MAX_LEVEL: i64 = 255;

/// The contents of `Header`.
#[derive(Clone, Debug, PartialEq)]
pub struct PlotfileHeader {
    /// The format's name, such as `HyperCLaw-V1.1`.
    pub version: String,
    /// Names of the fields.
    pub fields: Vec<String>,
    /// Dimensions, 1 to 3.
    pub ndim: usize,
    /// The run's time.
    pub time: f64,
    /// Lower corner of the problem domain.
    pub lower: [f64; 3],
    /// Upper corner of the problem domain.
    pub upper: [f64; 3],
    /// Refinement ratio from each level to the next, as far as the text has them.
    pub ratios: Vec<[i64; 3]>,
    /// 0 Cartesian, 1 cylindrical, 2 spherical.
    pub coordinates: i64,
    /// Width of the boundary data; 0.
    pub boundary: i64,
    /// The levels, the coarsest first.
    pub levels: Vec<HeaderLevel>,
    /// The text after the last level.
    pub rest: String,
}

/// The part of `Header` about one level.
#[derive(Clone, Debug, PartialEq)]
pub struct HeaderLevel {
    /// The domain of the level: the box of all its possible cells.
    pub domain: IndexBox,
    /// Sides of a cell; 0 in unused dimensions.
    pub cell_size: [f64; 3],
    /// The level's step, from the list of all levels.
    pub step: i64,
    /// The level's time.
    pub time: f64,
    /// The level's step, from the part about this level.
    pub own_step: i64,
    /// Number of boxes.
    pub boxes: usize,
    /// Common prefix of its files' paths, relative to the plotfile; empty without fields.
    pub path: String,
}

impl PlotfileHeader {
    /// Parses the text of a `Header`.
    ///
    /// # Errors
    /// `Corrupt` with the line, what was expected and what was found; `Unsupported` for domains of nodes
    /// or faces.
    pub fn parse(text: &str, path: &Path) -> Result<Self> {
        let mut text = TextParser::new(text, path);
        // Codes have versions of their own, even numbers: then the number of fields follows.
        let expected = "the version of a plotfile, such as HyperCLaw-V1.1";
        let mut lines = text.rest().lines().map(str::trim);
        let (first, second) = (
            lines.next().unwrap_or_default(),
            lines.next().unwrap_or_default(),
        );
        let is_count = first.parse::<u32>().is_ok() && second.parse::<u32>().is_err();
        if first.is_empty() || is_count {
            return Err(text.error(expected));
        }
        let version = text.line(expected)?.to_owned();
        let fields = fields(&mut text, path)?;
        let ndim = text.integer("the number of dimensions", 1..=3)? as usize;
        let time = text.number("the time")?;
        let finest = text.integer("the finest level", 0..=MAX_LEVEL)? as usize;
        let lower = reals(&mut text, "the domain's lower corner", ndim)?;
        let upper = reals(&mut text, "the domain's upper corner", ndim)?;
        if (0..ndim).any(|d| upper[d] <= lower[d]) {
            return Err(text.error(&format!(
                "an upper corner of the domain above the lower one, {:?}, before this position",
                &lower[..ndim]
            )));
        }
        text.line("the end of the upper corner's line")?;
        let ratios = ratios(&mut text, ndim)?;
        let mut levels = Vec::new();
        for _ in 0..=finest {
            levels.push(HeaderLevel {
                domain: text.index_box("a level's domain", ndim)?,
                cell_size: [0.0; 3],
                step: 0,
                time: 0.0,
                own_step: 0,
                boxes: 0,
                path: String::new(),
            });
        }
        text.line("the end of the domains' line")?;
        for level in &mut levels {
            level.step = text.number("a level's step")?;
        }
        text.line("the end of the steps' line")?;
        for level in &mut levels {
            level.cell_size = reals(&mut text, "the size of a level's cells", ndim)?;
        }
        let coordinates = text.integer("the coordinate system (0, 1 or 2)", 0..=2)?;
        text.line("the end of the coordinate system's line")?;
        let mut header = Self {
            version,
            fields,
            ndim,
            time,
            lower,
            upper,
            ratios,
            coordinates,
            boundary: text.number("the width of the boundary data")?,
            levels,
            rest: String::new(),
        };
        for number in 0..header.levels.len() {
            header.parse_level(&mut text, number)?;
        }
        header.rest = text.rest().to_owned();
        Ok(header)
    }

    fn parse_level(&mut self, text: &mut TextParser<'_>, number: usize) -> Result<()> {
        let own = number as i64;
        text.integer("the level's number", own..=own)?;
        let boxes = text.count("the level's number of boxes")?;
        let time = text.number("the level's time")?;
        let own_step = text.number("the level's step")?;
        for _ in 0..boxes * self.ndim {
            text.number::<f64>("a box's lower side")?;
            text.number::<f64>("a box's upper side")?;
        }
        text.line("the end of a line")?;
        let path = match self.fields.len() {
            0 => "",
            _ => text.line("the path of the level's files")?,
        };
        if let Some(level) = self.levels.get_mut(number) {
            level.boxes = boxes;
            level.time = time;
            level.own_step = own_step;
            level.path = path.to_owned();
        }
        Ok(())
    }

    /// The text that AMReX writes, with numbers of `precision` digits and the `boxes` of each level.
    pub fn format(&self, boxes: &[Vec<IndexBox>], precision: usize) -> String {
        let mut text = format!("{}\n{}\n", self.version, self.fields.len());
        let number = |value: f64| general(value, precision);
        let row = |values: &[f64]| -> String {
            let each = values.iter().take(self.ndim);
            each.map(|value| number(*value) + " ").collect()
        };
        for field in &self.fields {
            text += field;
            text.push('\n');
        }
        // Writing to a String cannot fail.
        let finest = self.levels.len().saturating_sub(1);
        let _ = writeln!(text, "{}\n{}\n{finest}", self.ndim, number(self.time));
        let _ = writeln!(text, "{}\n{}", row(&self.lower), row(&self.upper));
        for ratio in &self.ratios {
            let _ = write!(text, "{} ", ratio[0]);
        }
        text.push('\n');
        for level in &self.levels {
            let _ = write!(text, "{} ", format_box(&level.domain, self.ndim));
        }
        text.push('\n');
        for level in &self.levels {
            let _ = write!(text, "{} ", level.step);
        }
        text.push('\n');
        for level in &self.levels {
            let _ = writeln!(text, "{}", row(&level.cell_size));
        }
        let _ = writeln!(text, "{}\n{}", self.coordinates, self.boundary);
        for (number, (level, boxes)) in self.levels.iter().zip(boxes).enumerate() {
            let time = general(level.time, precision);
            let _ = writeln!(text, "{number} {} {time}", boxes.len());
            let _ = writeln!(text, "{}", level.own_step);
            for index_box in boxes {
                for d in 0..self.ndim {
                    let side = |index: i64| {
                        let cells = (index - level.domain.lo[d]) as f64;
                        general(self.lower[d] + level.cell_size[d] * cells, precision)
                    };
                    let (low, high) = (side(index_box.lo[d]), side(index_box.hi[d]));
                    let _ = writeln!(text, "{low} {high}");
                }
            }
            if !self.fields.is_empty() {
                let _ = writeln!(text, "{}", level.path);
            }
        }
        text + &self.rest
    }

    /// The header without refinement ratios, of which the text has only those of the first dimension.
    pub fn without_ratios(mut self) -> Self {
        self.ratios.clear();
        self
    }

    /// The refinement ratio from each level to the next. It follows from the domains in each dimension;
    /// the text has that of the first dimension only.
    ///
    /// # Errors
    /// `Corrupt` if a domain is not a refinement of the coarser one, or the text has another ratio.
    pub fn refinement(&self) -> Result<Vec<[i64; 3]>> {
        let mut found = Vec::new();
        for (number, (level, next)) in self
            .levels
            .iter()
            .zip(self.levels.iter().skip(1))
            .enumerate()
        {
            let (coarse, fine) = (level.domain.shape(), next.domain.shape());
            let ratio = std::array::from_fn(|d| (fine[d] / coarse[d].max(1)).max(1) as i64);
            let is_valid = ratio.iter().all(|ratio| (1..=1024).contains(ratio));
            if !is_valid || level.domain.refined(ratio) != next.domain {
                return Err(Error::corrupt(format!(
                    "level {}: expected a domain that refines the one of level {number} ({}), \
                     found {}; copy the plotfile again",
                    number + 1,
                    level.domain,
                    next.domain
                )));
            }
            let written = self.ratios.get(number);
            if let Some(written) = written.filter(|written| written[0] != ratio[0]) {
                return Err(Error::corrupt(format!(
                    "level {number}: expected the refinement ratio {} according to the domains, \
                     found {}; copy the plotfile again",
                    ratio[0], written[0]
                )));
            }
            found.push(ratio);
        }
        Ok(found)
    }
}

fn fields(text: &mut TextParser<'_>, path: &Path) -> Result<Vec<String>> {
    let number = text.count("the number of fields")?;
    text.line("the end of the line")?;
    let mut fields: Vec<String> = Vec::new();
    for _ in 0..number {
        let name = text.line("a field's name")?;
        if name.is_empty() {
            return Err(text.error("the name of a field before this line"));
        }
        fields.push(name.to_owned());
    }
    let mut sorted: Vec<_> = fields.iter().collect();
    sorted.sort();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(twice) => Err(Error::corrupt(format!(
            "expected unique names of fields, found {:?} twice; rename one of them in Header",
            twice[0]
        ))
        .in_file(path.display())),
        None => Ok(fields),
    }
}

fn reals(text: &mut TextParser<'_>, expected: &str, ndim: usize) -> Result<[f64; 3]> {
    let mut values = [0.0; 3];
    for value in values.iter_mut().take(ndim) {
        *value = text.number(expected)?;
        if !f64::is_finite(*value) {
            return Err(text.error(&format!(
                "a finite number ({expected}) before this position"
            )));
        }
    }
    Ok(values)
}

/// The refinement ratios of a line: one number for all dimensions, or `(2,2,1)`. Some codes write none.
fn ratios(text: &mut TextParser<'_>, ndim: usize) -> Result<Vec<[i64; 3]>> {
    let mut ratios = Vec::new();
    while text.has_more_on_line() {
        ratios.push(match text.peek() {
            Some('(') => text.indices("a refinement ratio", ndim, 1)?,
            _ => [text.integer("a refinement ratio", 1..=1024)?; 3],
        });
    }
    text.line("the end of the ratios' line")?;
    Ok(ratios)
}
