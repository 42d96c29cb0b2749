//! Loss of power: of what was written since a file was last made durable, any sectors may be lost.

#![expect(clippy::print_stderr)] // the counts of a campaign

use std::fs;

use super::super::faults::contents_made_durable;
use super::super::{self as container, Durability};
use super::history_tests::History;
use crate::cases;
use crate::limits::Limits;

/// Disks write sectors of this size whole.
const SECTOR: usize = 512;

/// The file at one moment at which it was made durable, and the commits that were complete until then.
struct Moment {
    content: Vec<u8>,
    complete: usize,
}

/// Makes commits by some writers, and notes the moments. The last one is after the end of the last writer.
fn moments(history: &mut History) -> Vec<Moment> {
    let mut moments = Vec::new();
    let mut note = |complete, contents: Vec<Vec<u8>>| {
        moments.extend(
            contents
                .into_iter()
                .map(|content| Moment { content, complete }),
        );
    };
    for _ in 0..=history.below(3) {
        let mut writer = None;
        let contents = contents_made_durable(|| writer = Some(history.open_writer()));
        note(history.commits.len(), contents);
        let mut writer = writer.unwrap();
        for _ in 0..=history.below(8) {
            let complete = history.commits.len();
            note(
                complete,
                contents_made_durable(|| history.commit(&mut *writer)),
            );
        }
        if history.below(2) == 0 {
            // It is never committed.
            writer.put("lost", &[&[7; 5000]]).unwrap();
        }
        drop(writer);
    }
    note(
        history.commits.len(),
        vec![fs::read(history.path()).unwrap()],
    );
    moments
}

/// What a loss of power may leave of a file after it was made durable as `old`, and before it is as `new`.
fn image(old: &[u8], new: &[u8], history: &mut History) -> Vec<u8> {
    let (short, long) = (old.len().min(new.len()), old.len().max(new.len()));
    let len = match history.below(4) {
        0 => old.len(),
        1 => short + history.below((long - short) as u64 + 1) as usize,
        _ => new.len(),
    };
    let mut image = old.to_vec();
    image.resize(len, 0);
    // All sectors, none, or about as many as are lost.
    let kept = history.below(5);
    for start in (0..len.min(new.len())).step_by(SECTOR) {
        if history.below(4) < kept {
            let range = start..(start + SECTOR).min(len).min(new.len());
            image[range.clone()].copy_from_slice(&new[range]);
        }
    }
    image
}

#[test]
fn a_loss_of_power_leaves_the_last_complete_commit_or_the_next() {
    let images = cases::cases(3000);
    let (mut made, mut early, mut late) = (0, 0, 0);
    while made < images {
        let mut history = History::with(Durability::Full, cases::seed() + made);
        let moments = moments(&mut history);
        let path = history.folder.path().join("image.ambar");
        for _ in 0..300 {
            let at = history.below(moments.len() as u64 - 1) as usize;
            let (old, new) = (&moments[at], &moments[at + 1]);
            fs::write(&path, image(&old.content, &new.content, &mut history)).unwrap();
            let store = container::open(&path).unwrap();
            let found = store.commit_id().unwrap().number as usize;
            assert!(
                found == new.complete || found == new.complete + 1,
                "found commit {found} where {} were complete",
                new.complete
            );
            history.check(&*store, found);
            early += u64::from(found == new.complete);
            late += u64::from(found > new.complete);
            made += 1;
            if history.below(4) > 0 {
                continue;
            }
            let mut next = container::append(&path, Durability::None, &Limits::default()).unwrap();
            next.put("next", &[b"x"]).unwrap();
            next.commit().unwrap();
            drop(next);
            let store = container::open(&path).unwrap();
            assert_eq!(store.read_whole("next", 9).unwrap().unwrap(), b"x");
            store.verify_records().unwrap();
            history.check(&*store.at_commit(found as u64).unwrap(), found);
        }
    }
    eprintln!("{made} images: {early} of the last complete commit, {late} of the next");
    assert!(early > images / 10 && late > images / 10, "{early}, {late}");
}
