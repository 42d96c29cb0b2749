//! Reading cells: the own octs of all domains, sorted into one tree, then the values of its leaves.

use ambar::kinds::amr::Leaves;
use ambar::{Column, DataType, Error, Result};
use rayon::prelude::*;

use super::Output;
use super::amr::{self, AmrFile};
use super::blocks::{BlockFile, Level, Shape};
use super::cover::Bounds;
use super::fortran::FortranFile;
use super::gather::{self, Source, Target};
use super::hilbert;
use super::key::Key;
use super::octs::{self, Cut, Lattice, Levels, Oct, Octs};
use super::plan::{self, Plan, Wanted};
use super::progress::Counter;
use super::request::{Cells, CellsRequest};
use super::rows::{self, Order};

/// One domain after the first pass.
pub struct Domain {
    /// Its levels, for finding its blocks.
    pub levels: Vec<Level>,
    /// The id of its first oct.
    pub first: usize,
    /// Whether any of its cells are wanted.
    pub wanted: bool,
}

/// The tree of wanted cells.
pub struct Tree {
    /// The domains, in order.
    pub domains: Vec<Domain>,
    /// Wanted cells of each oct by its id.
    pub masks: Vec<u8>,
    /// Their rows.
    pub order: Order,
    /// The finest level read.
    pub last: u8,
}

/// Reads cells as `Output::read_cells` says.
pub fn read(output: &Output, request: &CellsRequest<'_>) -> Result<Cells> {
    let Plan {
        names,
        dtypes,
        wanted,
    } = Plan::new(output, request)?;
    let files = output.mesh.ncpu * (1 + wanted.len() as u64);
    let counter = Counter::new(request.progress, files);
    let FirstPass {
        tree,
        leaves,
        mut columns,
    } = read_tree(output, request, dtypes, &counter)?;
    fill(output, &tree, &wanted, &mut columns, &counter)?;
    if let Some(column) = columns.last_mut().filter(|_| request.domain) {
        gather::write_domains(&tree, column);
    }
    Ok(Cells {
        leaves,
        columns: names.into_iter().zip(columns).collect(),
    })
}

/// Reads the tree alone. The fields of all its leaves can be read later, by `read_fields`.
pub fn read_leaves(output: &Output, request: &CellsRequest<'_>) -> Result<(Tree, Leaves)> {
    let counter = Counter::new(request.progress, output.mesh.ncpu);
    let read = read_tree(output, request, Vec::new(), &counter)?;
    Ok((read.tree, read.leaves))
}

/// Reads fields of the `rows` leaves of `tree`.
pub fn read_fields(
    output: &Output,
    tree: &Tree,
    rows: usize,
    names: &[&str],
) -> Result<Vec<Column>> {
    let request = CellsRequest {
        fields: Some(names.iter().map(|name| (*name).to_owned()).collect()),
        ..CellsRequest::default()
    };
    let plan = Plan::new(output, &request)?;
    let mut columns = Column::allocate(&plan.dtypes, rows)?;
    let counter = Counter::new(None, output.mesh.ncpu * plan.wanted.len() as u64);
    fill(output, tree, &plan.wanted, &mut columns, &counter)?;
    Ok(columns)
}

/// What the first pass gives.
struct FirstPass {
    tree: Tree,
    leaves: Leaves,
    /// Columns for values of the leaves, not yet filled.
    columns: Vec<Column>,
}

/// The first pass; `dtypes` are the types of the columns that it allocates.
fn read_tree(
    output: &Output,
    request: &CellsRequest<'_>,
    mut dtypes: Vec<DataType>,
    counter: &Counter<'_>,
) -> Result<FirstPass> {
    let mesh = &output.mesh;
    if let Some(region) = &request.region {
        region.check(mesh.ndim)?;
    }
    let levels = plan::levels(output, request)?;
    let lattice = lattice(output, levels.last)?;
    let region = request.region.as_ref();
    let cut = Cut {
        levels,
        region: region.map(|region| (region, Bounds::new(region, &lattice))),
    };
    dtypes.push(DataType::UInt8);
    let bits = mesh.ndim as u32 * lattice.coordinate_bits();
    let (mut tree, mut columns) = if bits <= u64::BITS {
        tree::<u64>(output, &lattice, &cut, &dtypes, counter)?
    } else if bits <= u128::BITS && lattice.coordinate_bits() <= 62 {
        tree::<u128>(output, &lattice, &cut, &dtypes, counter)?
    } else {
        return Err(Error::unsupported(format!(
            "level {} in {} dimensions: positions do not fit into 128 bits; read fewer levels",
            lattice.level, mesh.ndim
        )));
    };
    let levels = columns
        .pop()
        .ok_or_else(|| Error::invalid("no column of levels"))?;
    let leaves = leaves(&lattice, &mut tree.order, levels, mesh.boxlen);
    Ok(FirstPass {
        tree,
        leaves,
        columns,
    })
}

/// Root cells of the box in each dimension, and the first among the coarse cells. Looked for once:
/// in runs with boundaries that takes the first level of every amr file.
pub fn root_cells(output: &Output) -> Result<([u64; 3], [u64; 3])> {
    if output.mesh.coarse == [1; 3] {
        return Ok(([1; 3], [0; 3]));
    }
    if let Some(found) = output.root.get() {
        return Ok(*found);
    }
    let found = root(output)?;
    Ok(*output.root.get_or_set(found))
}

/// The lattice whose cells are those of `level`.
fn lattice(output: &Output, level: u8) -> Result<Lattice> {
    let mesh = &output.mesh;
    let (root, shift) = root_cells(output)?;
    Ok(Lattice {
        ndim: mesh.ndim,
        root,
        shift,
        level,
        side: mesh.boxlen / root[0] as f64,
    })
}

/// The coarse cells of the box itself, without those of boundaries around it: where the domains'
/// own octs of level 1 lie. Returns how many there are in each dimension, and the first.
fn root(output: &Output) -> Result<([u64; 3], [u64; 3])> {
    let mesh = &output.mesh;
    let whole = Lattice {
        ndim: mesh.ndim,
        root: mesh.coarse,
        shift: [0; 3],
        level: 1,
        side: 1.0,
    };
    let cut = Cut {
        levels: Levels {
            first: 1,
            last: 1,
            deepest: 1,
        },
        region: None,
    };
    let shape = amr::shape(mesh);
    let domains = (0..mesh.ncpu)
        .into_par_iter()
        .map_init(Buffers::default, |buffers, domain| {
            let (octs, _) = read_domain::<u128>(output, domain, &shape, &whole, &cut, buffers)?;
            Ok(octs
                .octs
                .iter()
                .map(|oct| oct.key.down(mesh.ndim as u32).decode(mesh.ndim))
                .collect())
        });
    let domains: Vec<Vec<[u64; 3]>> = domains.collect::<Result<_>>()?;
    let corners = || domains.iter().flatten();
    let side = |d: usize| {
        let first = corners().map(|at| at[d]).min().unwrap_or(0);
        let last = corners().map(|at| at[d]).max().unwrap_or(0);
        (last - first + 1, first)
    };
    let sides: [(u64, u64); 3] = std::array::from_fn(side);
    Ok((sides.map(|side| side.0), sides.map(|side| side.1)))
}

/// Memory that a thread uses again for every file.
#[derive(Default)]
pub struct Buffers {
    /// For records one by one.
    pub window: Vec<u8>,
    /// For blocks.
    pub block: Vec<u8>,
}

fn read_domain<K: Key>(
    output: &Output,
    domain: u64,
    shape: &Shape,
    lattice: &Lattice,
    cut: &Cut<'_>,
    buffers: &mut Buffers,
) -> Result<(Octs<K>, Vec<Level>)> {
    let path = output.folder.domain("amr", domain)?;
    let file = FortranFile::open(&path, std::mem::take(&mut buffers.window))?;
    let amr = AmrFile::new(file)?;
    amr.check(&output.mesh)?;
    let levels = amr.levels(domain as usize);
    let mut blocks = BlockFile::new(amr.file, shape, amr.start, &levels, Some(&amr.numbers))?;
    let octs = octs::read(&mut blocks, lattice, cut, &mut buffers.block)?;
    buffers.window = blocks.file.into_buffer();
    Ok((octs, levels))
}

/// The first pass: the wanted cells of all domains, in order; and columns for them, of which the
/// last one, the levels, is filled.
fn tree<K: Key>(
    output: &Output,
    lattice: &Lattice,
    cut: &Cut<'_>,
    dtypes: &[DataType],
    counter: &Counter<'_>,
) -> Result<(Tree, Vec<Column>)> {
    let mut needed = domains_needed(output, lattice, cut);
    let read = loop {
        let read: Vec<_> = read_domains::<K>(output, lattice, cut, needed.as_deref(), counter)?;
        let covered = read.iter().map(|(octs, _)| octs.covered).sum();
        match check_cover(output, cut, covered) {
            Ok(()) => break read,
            // The curve left out a domain that holds some of the region's cells.
            Err(error) => {
                needed.take().ok_or(error)?;
                counter.more(output.mesh.ncpu);
            }
        }
    };
    let total: usize = read.iter().map(|(octs, _)| octs.masks.len()).sum();
    if u32::try_from(total).is_err() {
        return Err(Error::limit(format!(
            "{total} octs: at most 2^32 can be read at once; read a region or fewer levels"
        )));
    }
    let mut all: Vec<Oct<K>> = Vec::with_capacity(read.iter().map(|(o, _)| o.octs.len()).sum());
    let mut masks = Vec::with_capacity(total);
    let mut domains = Vec::with_capacity(read.len());
    for (octs, levels) in read {
        let first = masks.len();
        let moved = octs.octs.into_iter().map(|oct| Oct {
            id: oct.id + first as u32,
            ..oct
        });
        all.extend(moved);
        let wanted = octs.masks.iter().any(|mask| *mask != 0);
        masks.extend(octs.masks);
        domains.push(Domain {
            levels,
            first,
            wanted,
        });
    }
    if needed.is_none() {
        check_totals(output, &domains, cut)?;
    }
    all.par_sort_unstable_by_key(|oct| (oct.key, oct.level));
    let rows = masks.iter().map(|mask| mask.count_ones() as usize).sum();
    let mut columns = Column::allocate(dtypes, rows)?;
    let complete = cut.region.is_none();
    let levels = columns.last_mut().map_or(&mut [][..], Column::bytes_mut);
    let order = rows::walk(&all, &masks, lattice, complete, levels)
        .map_err(|error| error.in_file(output.folder.path.display()))?;
    let tree = Tree {
        domains,
        masks,
        order,
        last: cut.levels.last,
    };
    Ok((tree, columns))
}

/// A flag for each domain: whether it can hold cells of the region; `None` to read them all.
fn domains_needed(output: &Output, lattice: &Lattice, cut: &Cut<'_>) -> Option<Vec<bool>> {
    let mesh = &output.mesh;
    let (region, _) = cut.region.as_ref()?;
    if mesh.coarse != [1; 3] || output.bounds.len() as u64 != mesh.ncpu + 1 {
        return None;
    }
    let levels = u32::try_from(mesh.nlevelmax + 1).ok()?;
    // Levels whose cells are all refined hold no leaves, but the last one that is read.
    let refined = |octs: &&[u64]| octs[1] == octs[0].saturating_mul(1 << mesh.ndim);
    let full = mesh.totals.windows(2).take_while(refined).count() as u32;
    let coarsest = (full + 1).min(u32::from(cut.levels.last));
    hilbert::domains(
        region,
        &output.bounds,
        mesh.ndim,
        levels,
        coarsest,
        lattice.side,
    )
}

/// The own octs of every domain needed; none of the others.
fn read_domains<K: Key>(
    output: &Output,
    lattice: &Lattice,
    cut: &Cut<'_>,
    needed: Option<&[bool]>,
    counter: &Counter<'_>,
) -> Result<Vec<(Octs<K>, Vec<Level>)>> {
    let shape = amr::shape(&output.mesh);
    let domains = (0..output.mesh.ncpu).into_par_iter();
    let read = domains.map_init(Buffers::default, |buffers, domain| {
        let read = if needed.is_none_or(|needed| needed[domain as usize]) {
            read_domain(output, domain, &shape, lattice, cut, buffers)?
        } else {
            (Octs::default(), Vec::new())
        };
        counter.step()?;
        Ok(read)
    });
    read.collect()
}

/// The domains' own octs must sum up to the numbers of all octs in the headers.
fn check_totals(output: &Output, domains: &[Domain], cut: &Cut<'_>) -> Result<()> {
    for (index, total) in output.mesh.totals.iter().enumerate() {
        let own: u64 = domains.iter().map(|domain| domain.levels[index].own).sum();
        if own != *total && index < usize::from(cut.levels.last) {
            return Err(Error::corrupt(format!(
                "the domains' files hold {own} octs of level {}, their headers tell of {total}: \
                 files of different outputs are mixed, or one is damaged; copy the output again",
                index + 1
            ))
            .in_file(output.folder.path.display()));
        }
    }
    Ok(())
}

/// The leaves must cover the bounds of the region.
fn check_cover(output: &Output, cut: &Cut<'_>, covered: u128) -> Result<()> {
    let expected = cut.region.as_ref().map_or(0, |(_, bounds)| bounds.volume());
    if covered == expected {
        return Ok(());
    }
    Err(Error::corrupt(format!(
        "the leaf cells do not fill the region: they cover {covered} cells of the finest level, it \
         has {expected}; files of the output are missing or damaged: copy it again"
    ))
    .in_file(output.folder.path.display()))
}

/// The second pass: the values.
fn fill(
    output: &Output,
    tree: &Tree,
    wanted: &[Wanted<'_>],
    columns: &mut [Column],
    counter: &Counter<'_>,
) -> Result<()> {
    let targets: Vec<Target> = columns.iter_mut().map(Target::new).collect();
    let sources: Vec<Source> = wanted
        .iter()
        .map(|wanted| Source::new(output, wanted.files, &wanted.variables))
        .collect();
    let tasks: Vec<(usize, u64)> = (0..output.mesh.ncpu)
        .flat_map(|domain| (0..sources.len()).map(move |source| (source, domain)))
        .collect();
    tasks
        .into_par_iter()
        .try_for_each_init(Buffers::default, |buffers, (source, domain)| {
            // SAFETY: `targets` borrow the columns until the end of this function. Each column
            // belongs to one source, each cell to one domain, and the walk gave every cell a row
            // of its own: no two tasks write the same place.
            unsafe { sources[source].read(tree, domain, &targets, buffers)? };
            counter.step()
        })
}

fn leaves(lattice: &Lattice, order: &mut Order, levels: Column, boxlen: f64) -> Leaves {
    let finest = if order.finest == 0 {
        lattice.level
    } else {
        order.finest
    };
    let coarser = lattice.level - finest;
    let mut jumps = std::mem::take(&mut order.jumps);
    for jump in &mut jumps {
        jump.corner = jump.corner.map(|x| x >> coarser);
    }
    Leaves {
        ndim: lattice.ndim,
        root: lattice.root,
        boxlen,
        lattice_level: finest,
        levels,
        jumps,
    }
}
