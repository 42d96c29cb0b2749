//! Whether RAMSES has finished writing an output: judged by what its small files announce.
//!
//! RAMSES writes the files of an output one kind after the other: info and header, then amr, hydro,
//! rt, part, grav, and in newer versions a timer file at the end. An output that is copied, or still
//! being written, may lack the later ones.

use ambar::{Error, Result};

use super::folder::{Folder, Survey};
use super::request::ComponentKind;
use super::{cellfiles, info::Info};

/// Kinds of files that an output has.
#[derive(Clone, Debug)]
pub struct FileKinds(Vec<&'static str>);

impl FileKinds {
    /// Those in `folder`.
    pub fn of(folder: &Folder) -> Self {
        let kinds = ["hydro", "rt", "part", "grav", "timer"];
        let there = kinds.into_iter().filter(|kind| folder.has_any(kind));
        Self(there.collect())
    }
}

/// Checks that the output has all the files that it announces, of the components `asked` for
/// (`None`: all). `before` are the kinds of files of the output before it, where it is the newest
/// one of a run: the run may still be writing it.
///
/// # Errors
/// `Corrupt`, naming what is missing and what announces it.
pub fn check(
    folder: &Folder,
    info: &Info,
    survey: &Survey,
    asked: Option<&[ComponentKind]>,
    before: Option<&FileKinds>,
) -> Result<()> {
    let is_asked = |kind: ComponentKind| asked.is_none_or(|asked| asked.contains(&kind));
    let kinds = [
        ComponentKind::Hydro,
        ComponentKind::Rt,
        ComponentKind::Particles,
        ComponentKind::Gravity,
    ];
    for kind in kinds.into_iter().filter(|kind| is_asked(*kind)) {
        let start = cellfiles::file_start(kind);
        if folder.has_any(start) {
            continue;
        }
        let announced = announcement(folder, info, kind).or_else(|| {
            before?.0.contains(&start).then(|| {
                format!("the output before it has {start} files, and this is the newest one")
            })
        });
        if let Some(announced) = announced {
            let missing = format!("it has no files {start}_{}.outNNNNN", folder.number);
            return Err(incomplete(
                folder,
                &format!("{missing}, though {announced}"),
                &format!(
                    "; if its {start} files were removed on purpose, name the components to convert"
                ),
            ));
        }
    }
    let is_of_asked = |name: &&String| {
        let is_of = |kind| name.starts_with(&format!("{}_", cellfiles::file_start(kind)));
        name.starts_with("amr_") || kinds.into_iter().any(|kind| is_asked(kind) && is_of(kind))
    };
    if let Some(name) = survey.empty.iter().find(is_of_asked) {
        return Err(incomplete(folder, &format!("{name} has 0 bytes"), ""));
    }
    let timed = before.is_some_and(|before| before.0.contains(&"timer"));
    if timed && !folder.has_any("timer") {
        let missing = format!(
            "it is the newest one and has no timer_{}.txt, which RAMSES writes last and the output \
             before it has",
            folder.number
        );
        return Err(incomplete(folder, &missing, ""));
    }
    Ok(())
}

/// What announces files of a component, in words.
fn announcement(folder: &Folder, info: &Info, kind: ComponentKind) -> Option<String> {
    let particles: u64 = info.families.iter().map(|(_, count)| count).sum();
    if kind == ComponentKind::Particles && particles > 0 {
        let number = &folder.number;
        return Some(format!("header_{number}.txt counts {particles} particles"));
    }
    let descriptor = format!("{}_file_descriptor.txt", cellfiles::file_start(kind));
    if folder.file(&descriptor).is_some() {
        return Some(format!("it has {descriptor}"));
    }
    let option = match kind {
        ComponentKind::Hydro => "hydro",
        ComponentKind::Gravity => "poisson",
        ComponentKind::Particles => "pic",
        // Where RAMSES was compiled without radiation, it ignores `rt`.
        _ => return None,
    };
    let is_set = info.namelist_flag(option) == Some(true);
    is_set.then(|| format!("namelist.txt says {option}=.true."))
}

fn incomplete(folder: &Folder, what: &str, advice: &str) -> Error {
    Error::corrupt(format!(
        "the output is not complete: {what}; convert it again when the run has written it, or when \
         it is copied as a whole{advice}"
    ))
    .in_file(folder.path.display())
}
