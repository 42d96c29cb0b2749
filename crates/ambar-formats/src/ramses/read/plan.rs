//! The plan of a read of cells: columns, variables in the files, and levels.

use ambar::{DataType, Error, Result};

use super::request::CellsRequest;
use crate::ramses::component::{Component, Field};
use crate::ramses::files::cell_files::CellFiles;
use crate::ramses::output::Output;
use crate::ramses::tree::lattice::LevelRange;

/// The columns of a read, and the variables that fill them.
pub struct ReadPlan<'a> {
    /// Names of the columns.
    pub names: Vec<String>,
    /// Types of the columns.
    pub dtypes: Vec<DataType>,
    /// The components to read.
    pub components: Vec<ComponentPlan<'a>>,
}

/// The variables of a component to read.
pub struct ComponentPlan<'a> {
    /// The component's files.
    pub files: &'a CellFiles,
    /// The variables, ascending.
    pub variables: Vec<VariableColumn>,
}

/// A variable of a component's files, and the column for its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VariableColumn {
    /// Index of the variable in the file.
    pub variable: usize,
    /// Index of the column.
    pub column: usize,
}

/// A field of one of several components.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FieldIndex {
    component: usize,
    field: usize,
}

impl<'a> ReadPlan<'a> {
    /// Finds the fields of `request`.
    ///
    /// # Errors
    /// `NotFound` for a field or component that does not exist; `Corrupt` for a component with
    /// damaged or missing files; `Invalid` for a field requested twice.
    pub fn new(output: &'a Output, request: &CellsRequest<'_>) -> Result<Self> {
        let is_whole = request.fields.is_none();
        let components = output.cell_components(request.components.as_deref(), is_whole)?;
        let fields = match &request.fields {
            None => all_fields(&components),
            Some(names) => find_fields(output, &components, names)?,
        };
        let field = |at: &FieldIndex| &components[at.component].fields[at.field];
        let mut names: Vec<_> = fields.iter().map(|at| field(at).name.clone()).collect();
        let mut dtypes: Vec<_> = fields.iter().map(|at| field(at).dtype.clone()).collect();
        let plans = components.iter().enumerate().filter_map(|(c, component)| {
            let columns = fields.iter().enumerate();
            let mut variables: Vec<_> = columns
                .filter(|(_, at)| at.component == c)
                .map(|(column, at)| VariableColumn {
                    variable: at.field,
                    column,
                })
                .collect();
            variables.sort_unstable();
            let mut files = output.cell_files.iter();
            let files = files.find(|files| files.kind == component.kind)?;
            (!variables.is_empty()).then_some(ComponentPlan { files, variables })
        });
        let components = plans.collect();
        if request.domain {
            names.push("domain".into());
            dtypes.push(DataType::UInt32);
        }
        Ok(Self {
            names,
            dtypes,
            components,
        })
    }

    /// The variables that fill `columns`, whose places in this list become the variables' columns.
    pub fn components_of(&self, columns: &[usize]) -> Vec<ComponentPlan<'a>> {
        let place = |variable: &VariableColumn| {
            let column = columns
                .iter()
                .position(|column| *column == variable.column)?;
            Some(VariableColumn {
                column,
                ..*variable
            })
        };
        let components = self.components.iter().map(|component| ComponentPlan {
            files: component.files,
            variables: component.variables.iter().filter_map(place).collect(),
        });
        components
            .filter(|component| !component.variables.is_empty())
            .collect()
    }
}

fn all_fields(components: &[&Component]) -> Vec<FieldIndex> {
    let of_component = |component: usize| {
        let fields = 0..components[component].fields.len();
        fields.map(move |field| FieldIndex { component, field })
    };
    (0..components.len()).flat_map(of_component).collect()
}

/// Finds fields by name. An alias counts only if no field has it as its name.
fn find_fields(
    output: &Output,
    components: &[&Component],
    names: &[String],
) -> Result<Vec<FieldIndex>> {
    let mut fields = Vec::new();
    for name in names {
        let find = |matches: &dyn Fn(&Field) -> bool| {
            let mut found = components.iter().enumerate().filter_map(|(c, component)| {
                Some(FieldIndex {
                    component: c,
                    field: component.fields.iter().position(matches)?,
                })
            });
            found.next()
        };
        let found = find(&|field| field.name == *name)
            .or_else(|| find(&|field| field.alias.as_ref() == Some(name)))
            .ok_or_else(|| output.unknown_field(name, components))?;
        if fields.contains(&found) {
            return Err(Error::invalid(format!(
                "expected distinct fields, found {name:?} twice; request it once"
            )));
        }
        fields.push(found);
    }
    Ok(fields)
}

/// The levels to read. The last one has octs.
///
/// # Errors
/// `Invalid` if the request selects no level; `Corrupt` if the output has no octs.
pub fn levels(output: &Output, request: &CellsRequest<'_>) -> Result<LevelRange> {
    let octs = &output.mesh.totals;
    let finest = octs
        .iter()
        .rposition(|&octs| octs > 0)
        .map_or(0, |at| at + 1);
    let Ok(finest @ 1..) = u8::try_from(finest) else {
        let path = output.folder.domain("amr", 0)?;
        return Err(Error::corrupt(format!(
            "expected the finest level with octs to be from 1 to 255, found {finest}; copy the \
             output again"
        ))
        .at_node("record \"numbtot\"")
        .in_file(path.display()));
    };
    let (first, last) = request.levels.unwrap_or((0, u8::MAX));
    if first > last {
        return Err(Error::invalid(format!(
            "invalid levels: {first} to {last}; expected a first level that is not above the last"
        )));
    }
    let max_level = request.max_level.unwrap_or(u8::MAX);
    if last == 0 || max_level == 0 {
        return Err(Error::invalid(
            "invalid levels: up to 0; expected at least 1, the level of the coarsest cells that an \
             output stores",
        ));
    }
    let deepest = max_level.min(finest);
    Ok(LevelRange {
        first,
        last: last.min(deepest),
        deepest,
    })
}
