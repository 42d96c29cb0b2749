//! The fields of a group of patches: their names, types and the names of their arrays.

use super::gather::Field;
use super::options::PatchOptions;
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::kinds::amr::patches::PatchSource;
use crate::kinds::amr::patches::hierarchy::nest::Nest;
use crate::kinds::amr::patches::read::derived_columns::DerivedColumn;
use crate::kinds::bound::Compression;
use crate::metadata::broken_rule_of_names;

/// Checks that no field has the name of another, or of a derived column.
pub(crate) fn check_names(nest: &Nest, fields: &[String]) -> Result<()> {
    for (i, name) in fields.iter().enumerate() {
        if fields[..i].contains(name) {
            return Err(Error::invalid(format!(
                "expected unique names of fields, found {name:?} twice"
            )));
        }
        if DerivedColumn::parse(name, nest).is_some() {
            return Err(Error::invalid(format!(
                "a field cannot have the name {name:?} of a derived column; exclude the field, or \
                 rename it"
            )));
        }
    }
    Ok(())
}

/// The fields of `source` that `options` select.
pub(super) fn chosen_fields(
    nest: &Nest,
    source: &dyn PatchSource,
    options: &PatchOptions,
) -> Result<Vec<Field>> {
    let names = options.fields.as_deref().unwrap_or(source.fields());
    let finest = nest.levels().saturating_sub(1) as u64;
    options
        .compression
        .check_parts(nest.ndim(), Some([0, finest]))?;
    let dtypes = names.iter().map(|name| source.dtype(name));
    named_fields(
        nest,
        names,
        &dtypes.collect::<Result<Vec<_>>>()?,
        &options.compression,
    )
}

/// Fields of these names and types, after checking them.
pub(crate) fn named_fields(
    nest: &Nest,
    names: &[String],
    dtypes: &[DataType],
    compression: &Compression,
) -> Result<Vec<Field>> {
    check_names(nest, names)?;
    compression.check_names(names)?;
    names
        .iter()
        .zip(dtypes)
        .enumerate()
        .map(|(i, (name, dtype))| {
            let size = dtype.size().ok_or_else(|| {
                Error::unsupported(format!(
                    "expected fields of values of fixed size, found {name:?} of {dtype}"
                ))
            })?;
            Ok(Field {
                name: name.clone(),
                array: array_name(i, names),
                dtype: dtype.clone(),
                size,
            })
        })
        .collect()
}

/// The name of the arrays of a field: its own name if that is valid and unused, otherwise `field_N`.
fn array_name(place: usize, names: &[String]) -> String {
    let name = &names[place];
    let taken = ["box", "origin", "index"].contains(&name.as_str());
    if !taken && !name.contains('/') && broken_rule_of_names(&format!("amr/{name}")).is_none() {
        return name.clone();
    }
    let mut other = format!("field_{place}");
    while names.contains(&other) {
        other.push('_');
    }
    other
}
