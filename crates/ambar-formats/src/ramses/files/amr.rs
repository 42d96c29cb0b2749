//! Headers of the amr files: the mesh of the output, and the number of octs of each domain.

use ambar::{Error, Result};

use super::blocks::{BlockShape, BlockTally, LevelBlocks};
use super::fortran::{Cursor, FortranFile};

/// The mesh: what the headers of all amr files of an output have in common.
#[derive(Clone, Debug)]
pub struct Mesh {
    /// Number of domains.
    pub ncpu: u64,
    /// Dimensions.
    pub ndim: usize,
    /// Coarse cells in each dimension, including boundary cells.
    pub coarse: [u64; 3],
    /// The finest level that the run may use.
    pub nlevelmax: u64,
    /// Number of boundary regions.
    pub nboundary: u64,
    /// Side of the box in code length.
    pub boxlen: f64,
    /// Bytes of a real.
    pub real_bytes: u8,
    /// Time, to detect files of different outputs.
    pub time: f64,
    /// Domain decomposition.
    pub ordering: String,
    /// Octs of all domains on each level; the first is level 1.
    pub totals: Vec<u64>,
}

/// One domain's amr file, with its header read.
pub struct AmrFile {
    /// The file.
    pub file: FortranFile,
    /// Its header.
    pub mesh: Mesh,
    /// Keys along the Hilbert curve where the domains begin and end; empty in other orderings.
    pub bounds: Vec<f64>,
    /// Octs of each domain and boundary region, level by level.
    pub octs: Vec<u64>,
    /// Position of its first block.
    pub start: u64,
}

impl AmrFile {
    /// Reads the header of `file`.
    ///
    /// # Errors
    /// `Corrupt`, naming the unexpected record; `Unsupported`; `Io`.
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
        // Runs without simple boundaries do not write these lists; runs with simple boundaries but none
        // defined write empty ones.
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
                    "expected {ncoarse} integers of 4 bytes, found {} bytes",
                    record.len
                );
                return Err(file.damaged(name, at, what));
            }
        }
        let start = cursor.at;
        let octs = interleave(domains, &boundaries, &mesh);
        Ok(Self {
            file,
            mesh,
            bounds,
            octs,
            start,
        })
    }

    /// Checks that the header describes the same mesh as another domain's.
    ///
    /// # Errors
    /// `Corrupt`, naming the record that differs.
    pub fn check(&self, other: &Mesh) -> Result<()> {
        let mesh = &self.mesh;
        let comparisons = [
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
        match comparisons.iter().find(|(_, is_equal)| !is_equal) {
            None => Ok(()),
            Some((name, _)) => Err(Error::corrupt(
                "expected the value in the first domain's file, found another: files of different \
                 outputs are mixed, or one is damaged; copy the output again",
            )
            .at_node(format!("record {name:?}"))
            .in_file(self.file.path().display())),
        }
    }

    /// The blocks of each level in the files of domain `own` (counted from 0).
    pub fn levels(&self, own: usize) -> Vec<LevelBlocks> {
        let blocks = (self.mesh.ncpu + self.mesh.nboundary) as usize;
        let levels = self.octs.chunks_exact(blocks).map(|level| LevelBlocks {
            before: BlockTally::of(level[..own].iter().copied()),
            own: level[own],
            after: BlockTally::of(level[own + 1..].iter().copied()),
        });
        levels.collect()
    }
}

/// The records of the blocks of the amr files.
pub fn block_shape(mesh: &Mesh) -> BlockShape {
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
    BlockShape::new(false, records)
}

/// Indices, in `block_shape`, of the octs' centres and of their cells' sons.
pub fn centre_and_son_records(ndim: usize) -> Vec<usize> {
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
            .damaged("nx, ny, nz", at, "expected three positive numbers"));
    };
    let nlevelmax = cursor.integer("nlevelmax", 1..MANY)? as u64;
    cursor.integer("ngridmax", 0..i64::MAX)?;
    let nboundary = cursor.integer("nboundary", 0..MANY)? as u64;
    cursor.integer("ngrid_current", 0..i64::MAX)?;
    let at = cursor.at;
    let (boxlen, real_bytes) = cursor.real("boxlen")?;
    if !(boxlen > 0.0 && boxlen.is_finite()) {
        let what = format!("expected a positive length, found {boxlen}");
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
    numbers.ok_or_else(|| {
        cursor.file.damaged(
            name,
            at,
            "expected numbers of octs >= 0, found a negative one",
        )
    })
}

/// For each level, the octs of each domain, then of each boundary region.
fn interleave(domains: Vec<u64>, boundaries: &[u64], mesh: &Mesh) -> Vec<u64> {
    if mesh.nboundary == 0 {
        return domains;
    }
    let (ncpu, nboundary) = (mesh.ncpu as usize, mesh.nboundary as usize);
    let levels = domains
        .chunks_exact(ncpu)
        .zip(boundaries.chunks_exact(nboundary));
    levels
        .flat_map(|(d, b)| d.iter().chain(b).copied())
        .collect()
}

/// Bound keys of 8 bytes, or of 16 (`QUADHILBERT`): one more than a multiple of `ncpu`.
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

/// A quadruple-precision number (1 sign, 15 exponent, 112 fraction bits), rounded toward zero.
fn from_quadruple(bits: u128) -> f64 {
    let exponent = (bits >> 112) as i32 & 0x7fff;
    if exponent == 0 {
        return 0.0;
    }
    let fraction = (bits >> 60) as u64 & ((1 << 52) - 1);
    let size = f64::from_bits(0x3ff << 52 | fraction) * 2f64.powi(exponent - 16383);
    if bits >> 127 == 1 { -size } else { size }
}
