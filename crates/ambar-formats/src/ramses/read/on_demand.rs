//! Cells and particles whose fields are read on first use.

use std::sync::Arc;

use ambar::kinds::amr::AmrTree;
use ambar::kinds::particles::Particles;
use ambar::kinds::region::Region;
use ambar::kinds::select::Selection;
use ambar::process::SetOnce;
use ambar::{Column, DataType, Error, Result};

use super::request::{CellsRequest, ParticlesRequest};
use super::{cells, particles};
use crate::ramses::component::ComponentKind;
use crate::ramses::output::Output;

/// The leaf cells of an output. The tree and each field are read on first use, and kept. Before the
/// tree is read, reading a region reads only the domains around it.
pub struct OutputCells {
    output: Arc<Output>,
    fields: Vec<String>,
    dtypes: Vec<DataType>,
    tree: SetOnce<AmrTree>,
}

impl OutputCells {
    /// The cells of `output` with these fields (names, not aliases). Reads nothing.
    ///
    /// # Errors
    /// `NotFound` for a field that does not exist.
    pub fn new(output: Arc<Output>, fields: Vec<String>) -> Result<Self> {
        let known = output.components().iter();
        let known: Vec<_> = known
            .filter(|component| component.kind.is_on_cells())
            .flat_map(|component| &component.fields)
            .collect();
        let dtype = |name: &String| {
            let field = known.iter().find(|field| field.name == *name);
            let field = field.ok_or_else(|| {
                let names: Vec<_> = known.iter().map(|field| field.name.as_str()).collect();
                Error::unknown("field", name, &names).in_file(output.path().display())
            })?;
            Ok(field.dtype.clone())
        };
        let dtypes = fields.iter().map(dtype).collect::<Result<_>>()?;
        Ok(Self {
            output,
            fields,
            dtypes,
            tree: SetOnce::new(),
        })
    }

    /// Names of the fields.
    pub fn fields(&self) -> &[String] {
        &self.fields
    }

    /// Names of the derived columns, as `AmrTree::derived`.
    pub fn derived(&self) -> Vec<String> {
        let derived = AmrTree::derived_in(self.ndim()).into_iter();
        derived.map(|(name, _)| name).collect()
    }

    /// Dimensions.
    pub fn ndim(&self) -> usize {
        self.output.info().ndim
    }

    /// The type of a field or a derived column.
    ///
    /// # Errors
    /// `NotFound`, naming the available columns.
    pub fn dtype(&self, name: &str) -> Result<DataType> {
        let derived = AmrTree::derived_in(self.ndim());
        let fields = self.fields.iter().zip(&self.dtypes);
        let mut known = fields.chain(derived.iter().map(|(name, dtype)| (name, dtype)));
        known
            .find(|(other, _)| *other == name)
            .map(|(_, dtype)| dtype.clone())
            .ok_or_else(|| {
                let names = [self.fields.clone(), self.derived()].concat();
                Error::unknown("column", name, &names)
            })
    }

    /// The tree of all leaf cells. Its fields are read on first use.
    ///
    /// # Errors
    /// As `Output::read_cells`.
    pub fn tree(&self) -> Result<&AmrTree> {
        if let Some(tree) = self.tree.get() {
            return Ok(tree);
        }
        let (tree, leaves) = cells::read_leaves(&self.output, &CellsRequest::default())?;
        let (output, rows) = (Arc::clone(&self.output), leaves.levels.rows());
        let fields = self.fields.iter().cloned().zip(self.dtypes.iter().cloned());
        let load = move |names: &[&str]| cells::read_fields(&output, &tree, rows, names);
        let tree = AmrTree::loading(leaves, fields.collect(), Box::new(load))?;
        // Two threads may read the tree at the same time; their results are equal.
        Ok(self.tree.get_or_set(tree))
    }

    /// As `AmrTree::cells`.
    ///
    /// # Errors
    /// As `AmrTree::cells` and `Output::read_cells`.
    pub fn cells(&self, columns: &[&str], selection: &Selection) -> Result<Vec<(String, Column)>> {
        // Domains are chosen by the centres of cells.
        let is_by_centre = |region: &Region| !region.is_by_volume();
        let is_of_region =
            selection.region.as_ref().is_some_and(is_by_centre) && selection.chunks.is_none();
        if !is_of_region || self.tree.get().is_some() {
            return self.tree()?.cells(columns, selection);
        }
        let named = selection
            .condition
            .iter()
            .flat_map(|condition| condition.fields());
        let named: Vec<&str> = columns.iter().copied().chain(named).collect();
        let mut needed: Vec<String> = Vec::new();
        for name in selection.computed.needed(&named) {
            self.dtype(name)?;
            let is_field = self.fields.iter().any(|field| field == name);
            if is_field && !needed.iter().any(|other| other == name) {
                needed.push(name.to_owned());
            }
        }
        let part = self.output.read_cells(&CellsRequest {
            fields: Some(needed),
            region: selection.region.clone(),
            levels: selection.levels,
            ..CellsRequest::default()
        })?;
        let rest = Selection {
            condition: selection.condition.clone(),
            computed: Arc::clone(&selection.computed),
            ..Selection::default()
        };
        AmrTree::from_leaves(part.leaves, part.columns)?.cells(columns, &rest)
    }
}

/// The particles of an output with these columns. Each column is read on first use, and kept. Reads the
/// headers.
///
/// # Errors
/// As `Output::read_particles`.
pub fn particles_on_demand(output: Arc<Output>, fields: &[String]) -> Result<Particles> {
    let rows = particles::count(&output)?;
    let known = output.fields(ComponentKind::Particles);
    let dtype = |name: &String| {
        let field = known.iter().find(|field| field.name == *name);
        field.map(|field| (name.clone(), field.dtype.clone()))
    };
    let columns: Vec<_> = fields.iter().filter_map(dtype).collect();
    let (ndim, boxlen) = (output.info().ndim, output.info().boxlen);
    let load = move |names: &[&str]| -> Result<Vec<Column>> {
        let request = ParticlesRequest {
            fields: Some(names.iter().map(|name| (*name).to_owned()).collect()),
            ..ParticlesRequest::default()
        };
        let columns = output.read_particles(&request)?.into_iter();
        Ok(columns.map(|(_, column)| column).collect())
    };
    Particles::loading(columns, rows, ndim, boxlen, Box::new(load))
}
