//! What a request for cells means for an output: columns, variables in files, levels.

use ambar::{DataType, Error, Result};

use super::Output;
use super::cellfiles::CellFiles;
use super::octs::Levels;
use super::request::{CellsRequest, Component, Field};

/// The columns of a read, and where their values come from.
pub struct Plan<'a> {
    /// The columns' names.
    pub names: Vec<String>,
    /// Their types.
    pub dtypes: Vec<DataType>,
    /// The components that are read.
    pub wanted: Vec<Wanted<'a>>,
}

/// A component that is read.
pub struct Wanted<'a> {
    /// Its files.
    pub files: &'a CellFiles,
    /// The variables: place in the file (ascending), place of the column.
    pub variables: Vec<(usize, usize)>,
}

impl<'a> Plan<'a> {
    /// Finds the fields of `request`.
    ///
    /// # Errors
    /// `NotFound` for a field or component that is not there, `Corrupt` for a component with
    /// damaged or missing files, `Invalid` for a field asked for twice.
    pub fn new(output: &'a Output, request: &CellsRequest<'_>) -> Result<Self> {
        let whole = request.fields.is_none();
        let components = output.cell_components(request.components.as_deref(), whole)?;
        let places = match &request.fields {
            None => all_places(&components),
            Some(names) => find_places(output, &components, names)?,
        };
        let field = |&(c, v): &(usize, usize)| &components[c].fields[v];
        let mut names: Vec<_> = places.iter().map(|at| field(at).name.clone()).collect();
        let mut dtypes: Vec<_> = places.iter().map(|at| field(at).dtype.clone()).collect();
        let wanted = components.iter().enumerate().filter_map(|(c, component)| {
            let columns = places.iter().enumerate().filter(|(_, place)| place.0 == c);
            let mut variables: Vec<_> = columns.map(|(column, place)| (place.1, column)).collect();
            variables.sort_unstable();
            let mut files = output.cell_files.iter();
            let files = files.find(|files| files.kind == component.kind)?;
            (!variables.is_empty()).then_some(Wanted { files, variables })
        });
        let wanted = wanted.collect();
        if request.domain {
            names.push("domain".into());
            dtypes.push(DataType::UInt32);
        }
        Ok(Self {
            names,
            dtypes,
            wanted,
        })
    }
}

/// Places of all fields: of the component, and in it.
fn all_places(components: &[&Component]) -> Vec<(usize, usize)> {
    let fields = |c: usize| (0..components[c].fields.len()).map(move |v| (c, v));
    (0..components.len()).flat_map(fields).collect()
}

/// Places of the fields of these names; an alias counts where no field has it as its name.
fn find_places(
    output: &Output,
    components: &[&Component],
    names: &[String],
) -> Result<Vec<(usize, usize)>> {
    let mut places = Vec::new();
    for name in names {
        let find = |same: &dyn Fn(&Field) -> bool| {
            let mut found = components
                .iter()
                .enumerate()
                .filter_map(|(c, component)| Some((c, component.fields.iter().position(same)?)));
            found.next()
        };
        let place = find(&|field| field.name == *name)
            .or_else(|| find(&|field| field.alias.as_ref() == Some(name)))
            .ok_or_else(|| output.no_field(name, components))?;
        if places.contains(&place) {
            return Err(Error::invalid(format!(
                "the field {name:?} is asked for twice"
            )));
        }
        places.push(place);
    }
    Ok(places)
}

/// The levels to be read. There are octs of the last one.
///
/// # Errors
/// `Invalid` where the request names none that could be read, `Corrupt` where the output has none.
pub fn levels(output: &Output, request: &CellsRequest<'_>) -> Result<Levels> {
    let octs = &output.mesh.totals;
    let finest = octs
        .iter()
        .rposition(|&octs| octs > 0)
        .map_or(0, |at| at + 1);
    let Ok(finest @ 1..) = u8::try_from(finest) else {
        let path = output.folder.domain("amr", 0)?;
        return Err(Error::corrupt(format!(
            "{finest} is the finest level with octs: a number from 1 to 255 expected"
        ))
        .at_node("record \"numbtot\"")
        .in_file(path.display()));
    };
    let (first, last) = request.levels.unwrap_or((0, u8::MAX));
    if first > last {
        return Err(Error::invalid(format!(
            "levels from {first} to {last}: the first must not be above the last"
        )));
    }
    let max_level = request.max_level.unwrap_or(u8::MAX);
    if last == 0 || max_level == 0 {
        return Err(Error::invalid(
            "levels up to 0: the coarsest cells that an output holds are those of level 1",
        ));
    }
    let deepest = max_level.min(finest);
    Ok(Levels {
        first,
        last: last.min(deepest),
        deepest,
    })
}
