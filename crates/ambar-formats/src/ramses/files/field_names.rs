//! Names and types of fields: from descriptors of both versions, or the names RAMSES uses by default.

use std::collections::{HashMap, HashSet};

use ambar::{DataType, Error, Result};

use crate::ramses::component::Field;

/// An entry of a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptorEntry {
    /// The name.
    pub name: String,
    /// The letter of the type (`d f i q h b ?`); `d` in version 0.
    pub letter: char,
}

/// Parses a descriptor: `nvar = N` and lines `variable #i: name` (version 0), or lines `i, name, type`
/// (version 1).
///
/// # Errors
/// `Corrupt` for any other line, or numbers that are not 1, 2, 3, ...
pub fn read_descriptor(text: &str) -> Result<Vec<DescriptorEntry>> {
    let mut entries = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || line.starts_with("nvar") {
            continue;
        }
        let parsed = match line.strip_prefix("variable #") {
            Some(rest) => rest.split_once(':').map(|(i, name)| (i, name, "d")),
            None => {
                let mut parts = line.splitn(3, ',');
                parts
                    .next()
                    .zip(parts.next())
                    .zip(parts.next())
                    .map(|((i, n), t)| (i, n, t))
            }
        };
        let entry = parsed.and_then(|(i, name, letter)| {
            let is_next = i.trim().parse() == Ok(entries.len() + 1);
            let name = name.trim();
            let letter = letter.trim().chars().next()?;
            let entry = DescriptorEntry {
                name: name.to_owned(),
                letter,
            };
            (is_next && !name.is_empty()).then_some(entry)
        });
        match entry {
            Some(entry) => entries.push(entry),
            None => {
                return Err(Error::corrupt(format!(
                    "expected the number {}, a name and a type, found the line {line:?}; the \
                     descriptor is damaged: copy it again, or remove it to read the fields under \
                     default names",
                    entries.len() + 1
                )));
            }
        }
    }
    let names = distinct(
        entries
            .iter()
            .map(|entry: &DescriptorEntry| entry.name.clone()),
    );
    let letters = entries.iter().map(|entry| entry.letter);
    let named = names.into_iter().zip(letters);
    Ok(named
        .map(|(name, letter)| DescriptorEntry { name, letter })
        .collect())
}

/// The type of a descriptor's letter.
pub fn letter_type(letter: char) -> Option<DataType> {
    Some(match letter {
        'd' => DataType::Float64,
        'f' => DataType::Float32,
        'i' => DataType::Int32,
        'q' => DataType::Int64,
        'h' => DataType::Int16,
        'b' => DataType::Int8,
        '?' | 'l' => DataType::Bool,
        _ => return None,
    })
}

/// The name in current RAMSES of a field of an older version.
pub fn alias(name: &str) -> Option<String> {
    if name == "thermal_pressure" {
        return Some("pressure".into());
    }
    if let Some(number) = name.strip_prefix("passive_scalar_") {
        let number: u32 = number.parse().ok()?;
        return Some(format!("scalar_{:02}", number.checked_sub(1)?));
    }
    let (side, axis) = name.strip_prefix("B_")?.split_once('_')?;
    let is_old = matches!(side, "left" | "right") && matches!(axis, "x" | "y" | "z");
    is_old.then(|| format!("B_{axis}_{side}"))
}

/// A field of that name.
pub fn field(name: impl Into<String>, dtype: DataType) -> Field {
    let name = name.into();
    let alias = alias(&name);
    Field {
        name,
        alias,
        dtype,
        unit: None,
    }
}

/// Makes names unique: columns without a name get `column_NN`, repeated names a suffix (`vx`, `vx_2`).
pub fn distinct(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut used = HashSet::new();
    let mut counts: HashMap<String, u64> = HashMap::new();
    for (name, number) in names.into_iter().zip(1..) {
        let name = match name.as_str() {
            "" => format!("column_{number:02}"),
            _ => name,
        };
        let mut unique = name.clone();
        while !used.insert(unique.clone()) {
            let count = counts.entry(name.clone()).or_insert(1);
            *count += 1;
            unique = format!("{name}_{count}");
        }
        all.push(unique);
    }
    all
}

/// `start` followed by each of the first `ndim` axes.
fn axes(start: &str, ndim: usize) -> impl Iterator<Item = String> + use<> {
    let start = start.to_owned();
    ["x", "y", "z"]
        .into_iter()
        .take(ndim)
        .map(move |axis| format!("{start}{axis}"))
}

/// Names of hydro variables without a descriptor. A run of 11 or more variables may be magnetic, whose
/// order differs: then only the names common to both orders are used, and numbers for the others.
pub fn hydro(nvar: usize, ndim: usize) -> Vec<String> {
    let mut names = vec!["density".to_owned()];
    names.extend(axes("velocity_", ndim));
    if nvar < 11 {
        names.push("pressure".into());
        names.extend((0..nvar).map(|i| format!("scalar_{i:02}")));
    } else {
        names.extend((names.len() + 1..=nvar).map(|i| format!("variable_{i:02}")));
    }
    names.truncate(nvar);
    names
}

/// Names of gravity variables. `OUTPUT_PARTICLE_DENSITY` adds one before the potential.
pub fn gravity(nvar: usize, ndim: usize) -> Vec<String> {
    if nvar < ndim || nvar > ndim + 2 {
        return (1..=nvar).map(|i| format!("variable_{i:02}")).collect();
    }
    let mut names: Vec<_> = axes("acceleration_", ndim).collect();
    if nvar > ndim {
        names.insert(0, "potential".into());
    }
    if nvar > ndim + 1 {
        names.insert(0, "particle_density".into());
    }
    names
}

/// Names of photon variables without a descriptor: for each group the density, then the flux.
pub fn rt(nvar: usize, ndim: usize) -> Vec<String> {
    let group = |g: usize| {
        let name = format!("photon_flux_{g:02}");
        std::iter::once(name.clone()).chain(axes(&format!("{name}_"), ndim))
    };
    (1..).flat_map(group).take(nvar).collect()
}

/// Particle columns according to the words under "Particle fields" of the header file.
pub fn particle_words(words: &str, ndim: usize) -> Option<Vec<DescriptorEntry>> {
    let mut entries = Vec::new();
    for word in words.split_whitespace() {
        let (names, letter): (Vec<String>, char) = match word {
            "pos" => (axes("position_", ndim).collect(), 'd'),
            "vel" => (axes("velocity_", ndim).collect(), 'd'),
            "mass" => (vec!["mass".into()], 'd'),
            "iord" => (vec!["identity".into()], 'i'),
            "level" => (vec!["levelp".into()], 'i'),
            "family" => (vec!["family".into()], 'b'),
            "tag" => (vec!["tag".into()], 'b'),
            "phi" => (vec!["potential".into()], 'd'),
            "tform" => (vec!["birth_time".into()], 'd'),
            "metal" => (vec!["metallicity".into()], 'd'),
            _ => return None,
        };
        entries.extend(
            names
                .into_iter()
                .map(|name| DescriptorEntry { name, letter }),
        );
    }
    Some(entries)
}

/// Particle columns without a descriptor, according to their number (the 17_09 layout).
pub fn particles(columns: usize, ndim: usize) -> Option<Vec<DescriptorEntry>> {
    let words = match columns.checked_sub(2 * ndim)? {
        3 => "pos vel mass iord level",
        4 => "pos vel mass iord level tform",
        5 => "pos vel mass iord level tform metal",
        _ => return None,
    };
    particle_words(words, ndim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_of_descriptors_are_read() {
        let old = "nvar =   2\nvariable # 1: density\nvariable # 2: thermal_pressure\n";
        let new =
            "# version:  1\n# ivar, variable_name, variable_type\n 1, density, d\n 2, family, b\n";
        let old = read_descriptor(old).unwrap();
        assert_eq!(
            old[1],
            DescriptorEntry {
                name: "thermal_pressure".into(),
                letter: 'd'
            }
        );
        let new = read_descriptor(new).unwrap();
        assert_eq!(
            new[1],
            DescriptorEntry {
                name: "family".into(),
                letter: 'b'
            }
        );
        assert!(read_descriptor(" 2, density, d\n").is_err());
        assert!(read_descriptor("gibberish\n").is_err());
    }

    #[test]
    fn repeated_names_become_unique() {
        let names = ["vx", "", "vx", "vx_2", "vx"].map(String::from);
        assert_eq!(
            distinct(names),
            ["vx", "column_02", "vx_2", "vx_2_2", "vx_3"]
        );
    }

    #[test]
    fn old_names_have_current_aliases() {
        for (old, new) in [
            ("thermal_pressure", Some("pressure")),
            ("passive_scalar_1", Some("scalar_00")),
            ("B_left_x", Some("B_x_left")),
            ("B_x_left", None),
            ("density", None),
            ("scalar_00", None),
        ] {
            assert_eq!(alias(old).as_deref(), new, "{old}");
        }
    }

    #[test]
    fn fields_without_a_descriptor_are_named_only_where_they_are_known() {
        assert_eq!(
            hydro(4, 2),
            ["density", "velocity_x", "velocity_y", "pressure"]
        );
        assert_eq!(hydro(6, 3)[5], "scalar_00");
        assert_eq!(hydro(11, 3)[4], "variable_05");
        assert_eq!(
            gravity(3, 1),
            ["particle_density", "potential", "acceleration_x"]
        );
        assert_eq!(rt(4, 1)[3], "photon_flux_02_x");
        assert_eq!(particles(11, 3).unwrap()[10].name, "metallicity");
        assert!(particles(12, 3).is_none());
    }
}
