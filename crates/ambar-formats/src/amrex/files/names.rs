//! Names in a plotfile: of files, and of fields.

use std::collections::BTreeMap;

use ambar::kinds::amr::patches::is_derived;

/// Checks that a path stays inside the plotfile.
///
/// # Errors
/// What is expected instead, as part of a message.
pub fn check_path(path: &str) -> Result<(), &'static str> {
    let mut parts = path.split('/');
    if parts.any(|part| matches!(part, "" | "." | "..")) || path.contains('\0') {
        return Err("the name of a file in the plotfile");
    }
    Ok(())
}

/// The names under which fields are stored. They are the names in `Header`, except for fields with the
/// name of a derived column (`level`, `x`, `dx`, `ix`, ...), which get the suffix `_field`.
pub fn field_names(fields: &[String], ndim: usize) -> Vec<String> {
    let stored = |field: &String| {
        let mut name = field.clone();
        if is_derived(field, ndim) {
            name += "_field";
            while fields.contains(&name) {
                name.push('_');
            }
        }
        name
    };
    fields.iter().map(stored).collect()
}

/// The names in `Header` of the fields that are stored under another name, by the stored name.
pub fn renamed(stored: &[String], fields: &[String]) -> BTreeMap<String, String> {
    let pairs = stored.iter().zip(fields).filter(|(new, old)| new != old);
    pairs.map(|(new, old)| (new.clone(), old.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_must_stay_in_the_plotfile() {
        for path in ["../Cell", "/etc/passwd", "a//b", ""] {
            assert!(check_path(path).is_err(), "{path}");
        }
        assert!(check_path("Level_0/Cell").is_ok());
    }
}
