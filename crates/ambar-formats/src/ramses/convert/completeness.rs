//! Whether RAMSES has finished writing an output, according to its small files.
//!
//! RAMSES writes the files of an output component by component: info and header, then amr, hydro, rt,
//! part, grav, and in newer versions a timer file at the end. An output that is being written or copied
//! may lack the later ones.

use ambar::{Error, Result};

use crate::ramses::component::ComponentKind;
use crate::ramses::files::folder::{Folder, Survey};
use crate::ramses::files::info::Info;

/// Kinds of files that an output has.
#[derive(Clone, Debug)]
pub struct FileKinds(Vec<&'static str>);

impl FileKinds {
    /// The kinds of files in `folder`.
    pub fn in_folder(folder: &Folder) -> Self {
        let kinds = ["hydro", "rt", "part", "grav", "timer"];
        let there = kinds.into_iter().filter(|kind| folder.has_any(kind));
        Self(there.collect())
    }
}

/// Checks that the output has all the files that it announces for the `requested` components (`None`:
/// all). `previous` has the kinds of files of the preceding output, if this output is the newest one of
/// a run, which may still be writing it.
///
/// # Errors
/// `Corrupt`, naming the missing files and what announces them.
pub fn check(
    folder: &Folder,
    info: &Info,
    survey: &Survey,
    requested: Option<&[ComponentKind]>,
    previous: Option<&FileKinds>,
) -> Result<()> {
    let is_requested = |kind: ComponentKind| requested.is_none_or(|kinds| kinds.contains(&kind));
    let kinds = [
        ComponentKind::Hydro,
        ComponentKind::Rt,
        ComponentKind::Particles,
        ComponentKind::Gravity,
    ];
    for kind in kinds.into_iter().filter(|kind| is_requested(*kind)) {
        let start = kind.file_prefix();
        if folder.has_any(start) {
            continue;
        }
        let announced = announcement(folder, info, kind).or_else(|| {
            previous?.0.contains(&start).then(|| {
                format!("the preceding output has {start} files, and this is the newest one")
            })
        });
        if let Some(announced) = announced {
            let missing = format!(
                "expected files {start}_{}.outNNNNN, found none",
                folder.number
            );
            return Err(incomplete(
                folder,
                &format!("{missing}, although {announced}"),
                &format!(
                    "; if its {start} files were removed on purpose, name the components to convert"
                ),
            ));
        }
    }
    let is_of_requested = |name: &&String| {
        let is_of = |kind: ComponentKind| name.starts_with(&format!("{}_", kind.file_prefix()));
        name.starts_with("amr_")
            || kinds
                .into_iter()
                .any(|kind| is_requested(kind) && is_of(kind))
    };
    if let Some(name) = survey.empty.iter().find(is_of_requested) {
        return Err(incomplete(
            folder,
            &format!("expected content in {name}, found 0 bytes"),
            "",
        ));
    }
    let has_timer = previous.is_some_and(|previous| previous.0.contains(&"timer"));
    if has_timer && !folder.has_any("timer") {
        let missing = format!(
            "expected timer_{}.txt, which RAMSES writes last and the preceding output has, found \
             none in the newest output",
            folder.number
        );
        return Err(incomplete(folder, &missing, ""));
    }
    Ok(())
}

/// What announces files of a component, as part of a message.
fn announcement(folder: &Folder, info: &Info, kind: ComponentKind) -> Option<String> {
    let particles: u64 = info.families.iter().map(|(_, count)| count).sum();
    if kind == ComponentKind::Particles && particles > 0 {
        let number = &folder.number;
        return Some(format!("header_{number}.txt counts {particles} particles"));
    }
    let descriptor = format!("{}_file_descriptor.txt", kind.file_prefix());
    if folder.file(&descriptor).is_some() {
        return Some(format!("it has {descriptor}"));
    }
    let option = match kind {
        ComponentKind::Hydro => "hydro",
        ComponentKind::Gravity => "poisson",
        ComponentKind::Particles => "pic",
        // RAMSES compiled without radiation ignores `rt`.
        _ => return None,
    };
    let is_set = info.namelist_flag(option) == Some(true);
    is_set.then(|| format!("namelist.txt says {option}=.true."))
}

fn incomplete(folder: &Folder, what: &str, advice: &str) -> Error {
    Error::corrupt(format!(
        "the output is not complete: {what}; convert it again when the run has written it, or when \
         it is copied completely{advice}"
    ))
    .in_file(folder.path.display())
}
