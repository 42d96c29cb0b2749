//! Collective definitions: ranges of values that all ranks report, strings, and groups. Rank 0 writes them
//! after all ranks have sealed.

use std::collections::BTreeMap;

use super::declarations::ranges::{Finish, NONE, union};
use super::declarations::{Definition, GatheredRanges, RangesId};
use super::message::ReportedRange;
use super::writer::RankWriter;
use crate::array::{ArrayData, ArraySpec, Strings};
use crate::dtype::DataType;
use crate::error::Result;
use crate::metadata::Attributes;
use crate::store::StoreWriter;

impl RankWriter {
    /// Declares ranges of values; all ranks declare the same, in the same order. Rank 0 calls `finish` in the
    /// next commit with the unions of the reported ranges.
    pub(crate) fn declare_ranges(&mut self, places: usize, finish: Finish) -> RangesId {
        self.gathered.push(GatheredRanges {
            places,
            own: BTreeMap::new(),
            finish: (self.rank == 0).then_some(finish),
        });
        RangesId(self.gathered.len() - 1)
    }

    /// Writes a string, as an array of one value, with the next commit. All ranks call it with the same
    /// string, and rank 0 writes it.
    ///
    /// # Errors
    /// The first failure of this writer, after which nothing can be committed.
    pub fn write_text(&mut self, path: &str, text: &str) -> Result<()> {
        self.check_usable()?;
        let properties = [("text".to_owned(), text.into())].into_iter().collect();
        self.definitions
            .push(Definition::new("text", path, properties));
        let path = path.to_owned();
        let strings: Strings = [text].into_iter().collect();
        let finish = move |store: &mut StoreWriter, _: &[[f64; 2]]| {
            let spec = ArraySpec::new(DataType::String, &[1]);
            store.write_array(&path, &spec, ArrayData::Strings(&strings))
        };
        self.declare_ranges(0, Box::new(finish));
        Ok(())
    }

    /// Creates a group as [`RankWriter::group`], which must have the same attributes on all ranks, and the
    /// same properties `more`, which are not written.
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

    /// Reports a range of this rank's values, without NaN.
    pub(crate) fn report_range(&mut self, ranges: RangesId, place: usize, range: [f64; 2]) {
        if let Some(gathered) = self.gathered.get_mut(ranges.0)
            && range[0] <= range[1]
        {
            let known = gathered.own.entry(place as u64).or_insert(NONE);
            *known = union(*known, range);
        }
    }

    /// The ranges that this rank reports to rank 0.
    pub(super) fn reported_ranges(&mut self) -> Vec<Vec<ReportedRange>> {
        let reported = |gathered: &mut GatheredRanges| {
            let own = std::mem::take(&mut gathered.own).into_iter();
            own.map(|(index, ends)| ReportedRange {
                index,
                bits: ends.map(f64::to_bits),
            })
            .collect()
        };
        self.gathered.iter_mut().map(reported).collect()
    }
}
