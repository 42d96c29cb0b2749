//! What an output tells about its run: `info_NNNNN.txt`, headers and the namelist, typed.

/// The run and the moment of an output.
#[derive(Clone, Debug, PartialEq)]
pub struct Info {
    /// The output's number: 300 for `output_00300`.
    pub number: u32,
    /// Domains (MPI ranks that wrote it).
    pub ncpu: u32,
    /// Dimensions, 1 to 3.
    pub ndim: usize,
    /// The level that is refined everywhere.
    pub levelmin: u8,
    /// The finest level the run may use (not all may be in use).
    pub levelmax: u8,
    /// Octs that one domain may hold.
    pub ngridmax: u64,
    /// Coarse steps since the start.
    pub nstep_coarse: i64,
    /// Side of the box in code length.
    pub boxlen: f64,
    /// Time in code units (in cosmological runs: conformal).
    pub time: f64,
    /// Expansion factor; 1 in runs that are not cosmological.
    pub aexp: f64,
    /// Hubble constant in km/s/Mpc; 1 in runs that are not cosmological.
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
    /// How space was divided: `hilbert`, `bisection`, `planar`, `angular`.
    pub ordering: String,
    /// Adiabatic index, from the hydro files' header.
    pub gamma: Option<f64>,
    /// Whether the run is cosmological (`cosmo` in the namelist; without one, `h0` other than 1).
    pub cosmological: bool,
    /// Coarse cells per dimension, boundary cells included (`nx, ny, nz`).
    pub coarse: [u64; 3],
    /// Boundary regions.
    pub nboundary: u64,
    /// Bytes of a real number in the files: 8, or 4 for runs compiled with `NPRE=4`.
    pub real_bytes: u8,
    /// Number of particles by family, from `header_NNNNN.txt`; `total` alone in old outputs.
    pub families: Vec<(String, u64)>,
    /// `info_rt_NNNNN.txt`: names and values, one number or several.
    pub rt: Vec<(String, Vec<f64>)>,
    /// The run's namelist, word for word.
    pub namelist: Option<String>,
    /// Further lines of `info_NNNNN.txt`, as they are: name, value.
    pub other: Vec<(String, String)>,
}
