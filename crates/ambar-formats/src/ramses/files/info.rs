//! Run information of an output: `info_NNNNN.txt`, `header_NNNNN.txt` and the namelist.

use std::collections::HashMap;

use ambar::{Error, Result};

use super::fortran_real::parse_real;

/// Run information: parameters of the run, and the time of the output.
#[derive(Clone, Debug, PartialEq)]
pub struct Info {
    /// The output's number: 300 for `output_00300`.
    pub number: u32,
    /// Number of domains: the MPI ranks that wrote the output.
    pub ncpu: u64,
    /// Dimensions, 1 to 3.
    pub ndim: usize,
    /// The level that is refined everywhere.
    pub levelmin: u8,
    /// The finest level that the run may use; the output may have fewer levels.
    pub levelmax: u8,
    /// Maximum octs of a domain.
    pub ngridmax: u64,
    /// Coarse steps since the start.
    pub nstep_coarse: u64,
    /// Side of the box in x, in code length.
    pub boxlen: f64,
    /// Time in code units (conformal time in cosmological runs).
    pub time: f64,
    /// Expansion factor; 1 in non-cosmological runs.
    pub aexp: f64,
    /// Hubble constant in km/s/Mpc; 1 in non-cosmological runs.
    pub h0: f64,
    /// Density parameter of matter.
    pub omega_m: f64,
    /// Density parameter of the cosmological constant.
    pub omega_l: f64,
    /// Density parameter of curvature.
    pub omega_k: f64,
    /// Density parameter of baryons.
    pub omega_b: f64,
    /// Code length in cm.
    pub unit_l: f64,
    /// Code density in g/cm^3.
    pub unit_d: f64,
    /// Code time in s.
    pub unit_t: f64,
    /// Domain decomposition: `hilbert`, `bisection`, `planar`, `angular`.
    pub ordering: String,
    /// Adiabatic index, from the header of the hydro files.
    pub gamma: Option<f64>,
    /// True for a cosmological run: `cosmo` in the namelist; without a namelist, `h0` other than 1.
    pub cosmological: bool,
    /// Coarse cells in each dimension, including boundary cells (`nx, ny, nz`).
    pub coarse: [u64; 3],
    /// Number of boundary regions.
    pub nboundary: u64,
    /// Bytes of a real number in the amr files: 8, or 4 for runs compiled with `NPRE=4`.
    pub real_bytes: u8,
    /// Number of particles by family, from `header_NNNNN.txt`; only `total` in old outputs.
    pub families: Vec<(String, u64)>,
    /// `info_rt_NNNNN.txt`: names, each with one value or several.
    pub rt: Vec<(String, Vec<f64>)>,
    /// The run's namelist, verbatim.
    pub namelist: Option<String>,
    /// Other lines of `info_NNNNN.txt`: names and verbatim values.
    pub other: Vec<(String, String)>,
}

impl Info {
    /// Parses `info_NNNNN.txt`. Fields that come from other files are left at 0, empty or `None`.
    ///
    /// # Errors
    /// `Corrupt`, naming the line that is missing or invalid; `Invalid` if the size of the box or a unit is not a finite
    /// number > 0.
    pub fn read(text: &str, number: u32) -> Result<Self> {
        let mut lines = InfoLines::new(text);
        let info = Self {
            number,
            ncpu: lines.count("ncpu")?,
            ndim: lines.count("ndim")? as usize,
            levelmin: lines.level("levelmin")?,
            levelmax: lines.level("levelmax")?,
            ngridmax: lines.count("ngridmax")?,
            nstep_coarse: lines.count("nstep_coarse")?,
            boxlen: lines.scale("boxlen")?,
            time: lines.real("time")?,
            aexp: lines.real("aexp")?,
            h0: lines.real("H0")?,
            omega_m: lines.real("omega_m")?,
            omega_l: lines.real("omega_l")?,
            omega_k: lines.real("omega_k")?,
            omega_b: lines.real("omega_b")?,
            unit_l: lines.scale("unit_l")?,
            unit_d: lines.scale("unit_d")?,
            unit_t: lines.scale("unit_t")?,
            ordering: lines
                .take("ordering type")
                .unwrap_or_default()
                .to_lowercase(),
            gamma: None,
            cosmological: false,
            coarse: [1; 3],
            nboundary: 0,
            real_bytes: 8,
            families: Vec::new(),
            rt: Vec::new(),
            namelist: None,
            other: Vec::new(),
        };
        lines.take("ordering type");
        let other = lines.rest();
        Ok(Self { other, ..info })
    }

    /// Sets the namelist, and whether the run is cosmological.
    pub fn set_namelist(&mut self, namelist: Option<String>) {
        self.namelist = namelist;
        self.cosmological = self.namelist_flag("cosmo").unwrap_or(self.h0 != 1.0);
    }

    /// The logical value of an option in the namelist; `None` if the namelist does not set it.
    pub fn namelist_flag(&self, option: &str) -> Option<bool> {
        let lines = self.namelist.as_deref()?.lines();
        let lines = lines.map(|line| line.split('!').next().unwrap_or(""));
        let mut values = lines.filter_map(|line| line.split_once('='));
        let (_, value) = values.find(|(name, _)| name.trim().eq_ignore_ascii_case(option))?;
        let value = value.trim().trim_start_matches('.');
        Some(value.starts_with(['t', 'T']))
    }
}

/// The lines `name = value` of an info file. Each line can be taken once.
struct InfoLines<'a> {
    order: Vec<&'a str>,
    values: HashMap<&'a str, &'a str>,
}

impl<'a> InfoLines<'a> {
    fn new(text: &'a str) -> Self {
        let mut lines = Self {
            order: Vec::new(),
            values: HashMap::new(),
        };
        for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
            if lines.values.insert(name.trim(), value.trim()).is_none() {
                lines.order.push(name.trim());
            }
        }
        lines
    }

    fn take(&mut self, name: &str) -> Option<&'a str> {
        self.values.remove(name)
    }

    fn number<T>(&mut self, name: &str, read: impl Fn(&str) -> Option<T>) -> Result<T> {
        let text = self.take(name).ok_or_else(|| {
            Error::corrupt(format!(
                "expected a line \"{name} = ...\", found none: the file is truncated; copy it again"
            ))
        })?;
        read(text).ok_or_else(|| {
            Error::corrupt(format!(
                "line \"{name} = {text}\": expected a number, found {text:?}; copy the file again"
            ))
        })
    }

    fn count(&mut self, name: &str) -> Result<u64> {
        self.number(name, |text| text.parse().ok())
    }

    fn level(&mut self, name: &str) -> Result<u8> {
        self.number(name, |text| text.parse().ok())
    }

    fn real(&mut self, name: &str) -> Result<f64> {
        self.number(name, parse_real)
    }

    /// A number by which positions or values are multiplied.
    fn scale(&mut self, name: &str) -> Result<f64> {
        let text = self.values.get(name).copied().unwrap_or_default();
        let scale = self.real(name)?;
        if scale > 0.0 && scale.is_finite() {
            return Ok(scale);
        }
        Err(Error::invalid(format!(
            "invalid {name}: {text}; expected a finite number > 0; correct the file"
        )))
    }

    fn rest(self) -> Vec<(String, String)> {
        let pair = |name: &&str| Some((name.to_string(), (*self.values.get(*name)?).to_owned()));
        self.order.iter().filter_map(pair).collect()
    }
}

/// Numbers of particles by family: the table of a current header, or the total of an old one.
pub fn read_families(text: &str) -> Vec<(String, u64)> {
    let mut lines = text.lines().map(str::trim);
    let Some(first) = lines.next() else {
        return Vec::new();
    };
    if !first.starts_with('#') {
        let is_old = first.eq_ignore_ascii_case("Total number of particles");
        let total = lines.next().and_then(|line| line.parse().ok());
        return total
            .filter(|_| is_old)
            .map(|n| ("total".to_owned(), n))
            .into_iter()
            .collect();
    }
    let pairs = lines.map_while(|line| {
        let (name, count) = line.split_once(char::is_whitespace)?;
        Some((name.to_owned(), count.trim().parse().ok()?))
    });
    pairs.collect()
}

/// The words under "Particle fields" of a header.
pub fn read_particle_words(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("Particle fields")?;
    rest.trim_start().lines().next()
}

/// The lines `name = numbers` of `info_rt_NNNNN.txt`. Names in a photon group get the prefix `group N `.
pub fn read_rt(text: &str) -> Vec<(String, Vec<f64>)> {
    let mut values = Vec::new();
    let mut group = String::new();
    for line in text.lines() {
        if let Some(name) = line.trim().strip_prefix("---Group") {
            group = format!("group {} ", name.trim());
        }
        let Some((name, numbers)) = line.split_once('=') else {
            continue;
        };
        let numbers: Option<Vec<f64>> = numbers.split_whitespace().map(parse_real).collect();
        if let Some(numbers) = numbers.filter(|numbers| !numbers.is_empty()) {
            values.push((format!("{group}{}", name.trim()), numbers));
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn current_and_old_headers_are_read() {
        let new = "#      Family     Count\n star_tracer         0\n DM     80000\n Particle fields\npos vel \n";
        assert_eq!(read_families(new)[1], ("DM".to_owned(), 80000));
        assert_eq!(read_families(new).len(), 2);
        assert_eq!(read_particle_words(new), Some("pos vel "));
        let old = " Total number of particles\n        4000\n Total number of dark matter particles\n 1\n";
        assert_eq!(read_families(old), [("total".to_owned(), 4000)]);
        assert!(read_families("").is_empty());
    }

    #[test]
    fn photon_groups_keep_their_names() {
        let text = "nGroups =  2\n\n ---Group 1\n  egy [eV] = 1.885E+01\n csn = 1.0 2.0\n";
        let read = read_rt(text);
        assert_eq!(read[0], ("nGroups".to_owned(), vec![2.0]));
        assert_eq!(read[2], ("group 1 csn".to_owned(), vec![1.0, 2.0]));
    }

    #[test]
    fn a_missing_line_is_named() {
        let error = Info::read("ncpu = 3\nndim = x\n", 1).unwrap_err();
        assert!(error.to_string().contains("ndim = x"), "{error}");
        let error = Info::read("ncpu = 3\n", 1).unwrap_err();
        assert!(error.to_string().contains("ndim = ..."), "{error}");
    }
}
