//! The amr files' headers: what the domains have in common, and how many octs each holds.

use ambar::{Error, Result};

use super::blocks::{Level, Shape, Tally};
use super::fortran::{Cursor, FortranFile};

/// What the amr files of one output have in common.
#[derive(Clone, Debug)]
pub struct Mesh {
    /// Domains.
    pub ncpu: u64,
    /// Dimensions.
    pub ndim: usize,
    /// Coarse cells per dimension, boundary cells included.
    pub coarse: [u64; 3],
    /// The finest level there may be.
    pub nlevelmax: u64,
    /// Boundary regions.
    pub nboundary: u64,
    /// Side of the box in code length.
    pub boxlen: f64,
    /// Bytes of a real.
    pub real_bytes: u8,
    /// Time, to tell files of different outputs apart.
    pub time: f64,
    /// How space is divided.
    pub ordering: String,
    /// Octs of all domains on each level, from 1 on.
    pub totals: Vec<u64>,
}

/// One domain's amr file, its header read.
pub struct AmrFile {
    /// The file.
    pub file: FortranFile,
    /// Its header.
    pub mesh: Mesh,
    /// The keys along the Hilbert curve where the domains begin and end; none in other orderings.
    pub bounds: Vec<f64>,
    /// Octs of each domain and boundary, level after level.
    pub numbers: Vec<u64>,
    /// Where its first block begins.
    pub start: u64,
}

impl AmrFile {
    /// Reads the header of `file`.
    ///
    /// # Errors
    /// `Corrupt` where a record is not as expected, naming it; `Unsupported`; `Io`.
    pub fn new(mut file: FortranFile) -> Result<Self> {
        let mut cursor = Cursor::new(&mut file, 0);
        let mut mesh = read_sizes(&mut cursor)?;
        let (levels, ncpu) = (mesh.nlevelmax, mesh.ncpu);
        for name in ["headl", "taill"] {
            cursor.skip(name)?;
        }
        let domains = read_numbers(&mut cursor, "numbl", ncpu, levels)?;
        let totals = read_numbers(&mut cursor, "numbtot", 10, levels)?;
        mesh.totals = totals.iter().step_by(10).copied().collect();
        let mut boundaries = Vec::new();
        // Without simple boundaries the lists are left out; with none of them, they are empty.
        if mesh.nboundary > 0 || cursor.file.locate(cursor.at, "headb")?.len == 0 {
            cursor.skip("headb")?;
            cursor.skip("tailb")?;
            boundaries = read_numbers(&mut cursor, "numbb", mesh.nboundary, levels)?;
        }
        cursor.skip("headf, tailf, numbf, used_mem, used_mem_tot")?;
        let ordering = cursor.record("ordering", 1 << 10)?;
        let text = String::from_utf8_lossy(ordering);
        mesh.ordering = text
            .trim_matches(|c: char| c == '\0' || c.is_whitespace())
            .to_lowercase();
        let mut bounds = Vec::new();
        if mesh.ordering == "bisection" {
            for name in [
                "bisec_wall",
                "bisec_next",
                "bisec_indx",
                "bisec_cpubox_min",
                "bisec_cpubox_max",
            ] {
                cursor.skip(name)?;
            }
        } else {
            let keys = read_keys(cursor.record("bound_key", ncpu << 16)?, ncpu);
            if mesh.ordering == "hilbert" {
                bounds = keys;
            }
        }
        let ncoarse = mesh
            .coarse
            .iter()
            .fold(1, |n: u64, &side| n.saturating_mul(side));
        for name in ["son", "flag1", "cpu_map"] {
            let at = cursor.at;
            let record = cursor.skip(name)?;
            if record.len != ncoarse.saturating_mul(4) {
                let what = format!(
                    "{ncoarse} integers of 4 bytes expected, {} bytes found",
                    record.len
                );
                return Err(file.damaged(name, at, what));
            }
        }
        let start = cursor.at;
        let numbers = merged(
            domains,
            &boundaries,
            mesh.ncpu as usize,
            mesh.nboundary as usize,
        );
        Ok(Self {
            file,
            mesh,
            bounds,
            numbers,
            start,
        })
    }

    /// Checks that the header tells of the same mesh as another domain's.
    ///
    /// # Errors
    /// `Corrupt`, naming what differs.
    pub fn check(&self, other: &Mesh) -> Result<()> {
        let mesh = &self.mesh;
        let says = [
            ("ncpu", mesh.ncpu == other.ncpu),
            ("ndim", mesh.ndim == other.ndim),
            ("nx, ny, nz", mesh.coarse == other.coarse),
            ("nlevelmax", mesh.nlevelmax == other.nlevelmax),
            ("nboundary", mesh.nboundary == other.nboundary),
            ("boxlen", mesh.boxlen == other.boxlen),
            ("t", mesh.time.to_bits() == other.time.to_bits()),
            ("ordering", mesh.ordering == other.ordering),
            ("numbtot", mesh.totals == other.totals),
        ];
        match says.iter().find(|(_, same)| !same) {
            None => Ok(()),
            Some((name, _)) => Err(Error::corrupt(
                "its header contradicts that of the first domain's file: files of different \
                 outputs are mixed, or one is damaged; copy the output again",
            )
            .at_node(format!("record {name:?}"))
            .in_file(self.file.path().display())),
        }
    }

    /// The levels as the files of domain `own` (from 0) have them.
    pub fn levels(&self, own: usize) -> Vec<Level> {
        let blocks = (self.mesh.ncpu + self.mesh.nboundary) as usize;
        let levels = self.numbers.chunks_exact(blocks).map(|level| Level {
            before: Tally::of(level[..own].iter().copied()),
            own: level[own],
            after: Tally::of(level[own + 1..].iter().copied()),
        });
        levels.collect()
    }
}

/// What the blocks of the amr files are made of.
pub fn shape(mesh: &Mesh) -> Shape {
    let cells = 1 << mesh.ndim;
    let integers =
        |name: &'static str, count: usize| (1..=count).map(move |i| (format!("{name} {i}"), 4));
    let reals = u64::from(mesh.real_bytes);
    let records = integers("grid index, next, prev", 3)
        .chain((1..=mesh.ndim).map(move |i| (format!("xg {i}"), reals)))
        .chain(integers("father", 1))
        .chain(integers("nbor", 2 * mesh.ndim))
        .chain(integers("son", cells))
        .chain(integers("cpu_map", cells))
        .chain(integers("flag1", cells));
    Shape::new(false, records)
}

/// Places, in `shape`, of the octs' centres and of their cells' sons.
pub fn wanted(ndim: usize) -> Vec<usize> {
    let son = 3 + ndim + 1 + 2 * ndim;
    (3..3 + ndim).chain(son..son + (1 << ndim)).collect()
}

/// The records before `headl`.
fn read_sizes(cursor: &mut Cursor<'_>) -> Result<Mesh> {
    const MANY: i64 = 1 << 31;
    let ncpu = cursor.integer("ncpu", 1..MANY)? as u64;
    let ndim = cursor.integer("ndim", 1..4)? as usize;
    let at = cursor.at;
    let coarse: Vec<u64> = cursor
        .integers("nx, ny, nz", 3)?
        .iter()
        .filter_map(|&side| u64::try_from(side).ok().filter(|side| *side > 0))
        .collect();
    let Ok(coarse) = <[u64; 3]>::try_from(coarse) else {
        return Err(cursor
            .file
            .damaged("nx, ny, nz", at, "three positive numbers expected"));
    };
    let nlevelmax = cursor.integer("nlevelmax", 1..MANY)? as u64;
    cursor.integer("ngridmax", 0..i64::MAX)?;
    let nboundary = cursor.integer("nboundary", 0..MANY)? as u64;
    cursor.integer("ngrid_current", 0..i64::MAX)?;
    let at = cursor.at;
    let (boxlen, real_bytes) = cursor.real("boxlen")?;
    if !(boxlen > 0.0 && boxlen.is_finite()) {
        let what = format!("a positive length expected, {boxlen} found");
        return Err(cursor.file.damaged("boxlen", at, what));
    }
    cursor.integers("noutput, iout, ifout", 3)?;
    cursor.skip("tout")?;
    cursor.skip("aout")?;
    let (time, _) = cursor.real("t")?;
    for name in [
        "dtold",
        "dtnew",
        "nstep, nstep_coarse",
        "einit, mass_tot_0, rho_tot",
        "omega_m, omega_l, omega_k, omega_b, h0, aexp_ini, boxlen_ini",
        "aexp, hexp, aexp_old, epot_tot_int, epot_tot_old",
        "mass_sph",
    ] {
        cursor.skip(name)?;
    }
    Ok(Mesh {
        ncpu,
        ndim,
        coarse,
        nlevelmax,
        nboundary,
        boxlen,
        real_bytes,
        time,
        ordering: String::new(),
        totals: Vec::new(),
    })
}

/// A record of `width` numbers for each level.
fn read_numbers(cursor: &mut Cursor<'_>, name: &str, width: u64, levels: u64) -> Result<Vec<u64>> {
    let at = cursor.at;
    let numbers = cursor.integers(name, width.saturating_mul(levels))?;
    let numbers: Option<Vec<u64>> = numbers.iter().map(|n| u64::try_from(*n).ok()).collect();
    numbers.ok_or_else(|| cursor.file.damaged(name, at, "a negative number of octs"))
}

/// The octs of each domain, then of each boundary, level after level.
fn merged(domains: Vec<u64>, boundaries: &[u64], ncpu: usize, nboundary: usize) -> Vec<u64> {
    if nboundary == 0 {
        return domains;
    }
    let levels = domains
        .chunks_exact(ncpu)
        .zip(boundaries.chunks_exact(nboundary));
    levels
        .flat_map(|(d, b)| d.iter().chain(b).copied())
        .collect()
}

/// Bound keys of 8 bytes, or of 16 (`QUADHILBERT`): a multiple of `ncpu` and one.
fn read_keys(bytes: &[u8], ncpu: u64) -> Vec<f64> {
    let fits = |size: u64| {
        let len = bytes.len() as u64;
        len.is_multiple_of(size) && len / size > 1 && (len / size - 1).is_multiple_of(ncpu)
    };
    if fits(8) {
        let keys = bytes.as_chunks::<8>().0.iter();
        return keys.map(|b| f64::from_le_bytes(*b)).collect();
    }
    if fits(16) {
        let keys = bytes.as_chunks::<16>().0.iter();
        return keys
            .map(|b| from_quadruple(u128::from_le_bytes(*b)))
            .collect();
    }
    Vec::new()
}

/// A quadruple-precision number (1 sign, 15 exponent, 112 fraction bits), rounded towards zero.
fn from_quadruple(bits: u128) -> f64 {
    let exponent = (bits >> 112) as i32 & 0x7fff;
    if exponent == 0 {
        return 0.0;
    }
    let fraction = (bits >> 60) as u64 & ((1 << 52) - 1);
    let size = f64::from_bits(0x3ff << 52 | fraction) * 2f64.powi(exponent - 16383);
    if bits >> 127 == 1 { -size } else { size }
}
