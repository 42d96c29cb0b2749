//! What ranks find out together: ranges, of which each tells those of its own values, and what rank 0
//! writes of them once all have sealed.

use std::collections::BTreeMap;

use super::definition::Definition;
use super::writer::RankWriter;
use crate::array::{ArrayData, ArraySpec, Strings};
use crate::dtype::DataType;
use crate::error::Result;
use crate::metadata::Attributes;
use crate::store::StoreWriter;

/// Writes what becomes of ranges: by place, `[inf, -inf]` where no rank has told any.
pub(crate) type Finish = Box<dyn FnOnce(&mut StoreWriter, &[[f64; 2]]) -> Result<()> + Send>;

/// Ranges that were declared since the last commit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RangesId(usize);

/// A range as it travels: its place, and the bits of both ends, for JSON has no infinity.
pub(super) type Told = (u64, u64, u64);

/// Ranges of one declaration.
pub(super) struct Gathered {
    places: usize,
    own: BTreeMap<u64, [f64; 2]>,
    /// Rank 0's.
    finish: Option<Finish>,
}

const NONE: [f64; 2] = [f64::INFINITY, f64::NEG_INFINITY];

fn union(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    [a[0].min(b[0]), a[1].max(b[1])]
}

impl RankWriter {
    /// Declares so many ranges: all ranks the same, in the same order. Rank 0 calls `finish` in the next
    /// commit, with the union of what all have told.
    pub(crate) fn declare_ranges(&mut self, places: usize, finish: Finish) -> RangesId {
        self.gathered.push(Gathered {
            places,
            own: BTreeMap::new(),
            finish: (self.rank == 0).then_some(finish),
        });
        RangesId(self.gathered.len() - 1)
    }

    /// Writes a text, an array of one value, in the next commit: all ranks call it with the same text, rank
    /// 0 writes it.
    ///
    /// # Errors
    /// What has failed before; nothing can be committed then.
    pub fn write_text(&mut self, path: &str, text: &str) -> Result<()> {
        self.check_usable()?;
        let properties = [("text".to_owned(), text.into())].into_iter().collect();
        self.definitions
            .push(Definition::new("text", path, properties));
        let path = path.to_owned();
        let texts: Strings = [text].into_iter().collect();
        let finish = move |store: &mut StoreWriter, _: &[[f64; 2]]| {
            let spec = ArraySpec::new(DataType::String, &[1]);
            store.write_array(&path, &spec, ArrayData::Strings(&texts))
        };
        self.declare_ranges(0, Box::new(finish));
        Ok(())
    }

    /// Makes a group as [`RankWriter::group`], which all ranks describe alike: by its attributes, and by
    /// `more`, which is not written.
    ///
    /// # Errors
    /// As `group`.
    pub fn define_group(
        &mut self,
        kind: &'static str,
        path: &str,
        attributes: Attributes,
        more: Attributes,
    ) -> Result<()> {
        self.check_usable()?;
        let mut properties = attributes.clone();
        properties.extend(more);
        self.definitions
            .push(Definition::new(kind, path, properties));
        self.group(path, attributes)
    }

    /// Tells a range of values of this rank's, without NaN.
    pub(crate) fn tell_range(&mut self, ranges: RangesId, place: usize, range: [f64; 2]) {
        if let Some(gathered) = self.gathered.get_mut(ranges.0)
            && range[0] <= range[1]
        {
            let known = gathered.own.entry(place as u64).or_insert(NONE);
            *known = union(*known, range);
        }
    }

    /// What this rank has told, for rank 0.
    pub(super) fn told(&mut self) -> Vec<Vec<Told>> {
        let told = |gathered: &mut Gathered| {
            let own = std::mem::take(&mut gathered.own).into_iter();
            own.map(|(place, [lo, hi])| (place, lo.to_bits(), hi.to_bits()))
                .collect()
        };
        self.gathered.iter_mut().map(told).collect()
    }
}

impl Gathered {
    /// Has the ranges written: `told` by each rank.
    pub fn finish<'a>(
        self,
        store: &mut StoreWriter,
        told: impl Iterator<Item = &'a [Told]>,
    ) -> Result<()> {
        let mut all = vec![NONE; self.places];
        for (place, lo, hi) in told.flatten() {
            if let Some(known) = usize::try_from(*place).ok().and_then(|at| all.get_mut(at)) {
                *known = union(*known, [f64::from_bits(*lo), f64::from_bits(*hi)]);
            }
        }
        match self.finish {
            Some(finish) => finish(store, &all),
            None => Ok(()),
        }
    }
}
