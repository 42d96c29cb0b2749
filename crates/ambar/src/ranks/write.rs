//! Writes the values of a rank: whole shards to the file, pieces of other shards to their owners.

use std::borrow::Cow;

use super::declared::{ArrayId, Declared};
use super::message::{self, Failure, Piece};
use super::pending::Waiting;
use super::writer::RankWriter;
use crate::array::{Region, copy_common};
use crate::container::{NewEntry, entry_bytes};
use crate::dtype::DataType;
use crate::error::{Error, Result};

impl RankWriter {
    /// Writes a region, which is in one of the rank's blocks; `values` in C order, native byte
    /// order. Each value is written once before a commit.
    ///
    /// # Errors
    /// `Invalid` where data and region do not fit, or values were written before; `Io`. After an error
    /// nothing can be committed.
    pub fn write(&mut self, array: ArrayId, region: &Region, values: &[u8]) -> Result<()> {
        self.check_usable()?;
        let written = self.write_here(array, region, values);
        self.noting(written)
    }

    fn write_here(&mut self, id: ArrayId, region: &Region, values: &[u8]) -> Result<()> {
        let mut array = self.take(id)?;
        let written = self.write_part((id, &mut array), region, values);
        let error = |error: Error| {
            error
                .at_node(&array.name)
                .in_file(self.file.path().display())
        };
        let written = written.map_err(error);
        array.written += region.values();
        self.put_back(id, array);
        written
    }

    /// The place of an array in the list.
    fn place(&self, id: ArrayId) -> Result<usize> {
        let place = id.0.checked_sub(self.first_id).map(|place| place as usize);
        let known = |place: &usize| self.arrays.get(*place).is_some_and(Option::is_some);
        place.filter(known).ok_or_else(|| {
            Error::invalid(format!(
                "array number {} was not defined since the last commit; define it again, and use the \
                 number that this returns",
                id.0
            ))
        })
    }

    /// Takes an array out of the list, to be put back.
    fn take(&mut self, id: ArrayId) -> Result<Declared> {
        let place = self.place(id)?;
        let array = self.arrays.get_mut(place).and_then(Option::take);
        array.ok_or_else(|| Error::invalid("this array is being written by another thread"))
    }

    fn put_back(&mut self, id: ArrayId, array: Declared) {
        if let Some(place) = self.arrays.get_mut((id.0 - self.first_id) as usize) {
            *place = Some(array);
        }
    }

    /// The type of an array's values, and its number of dimensions.
    ///
    /// # Errors
    /// `Invalid` where it was not declared since the last commit; what has failed before.
    pub fn type_of(&self, id: ArrayId) -> Result<(&DataType, usize)> {
        self.check_usable()?;
        let place = self.place(id)?;
        let metadata = self
            .arrays
            .get(place)
            .and_then(Option::as_ref)
            .map(|array| &array.metadata);
        let metadata = metadata.ok_or_else(|| Error::invalid("no such array"))?;
        Ok((&metadata.dtype, metadata.shape.len()))
    }

    /// Refuses a region that this rank may not write, before its values are copied.
    ///
    /// # Errors
    /// As `write`.
    pub fn check_region(&self, id: ArrayId, region: &Region) -> Result<()> {
        let place = self.place(id)?;
        match self.arrays.get(place).and_then(Option::as_ref) {
            Some(array) => check_place(array, self.rank, region),
            None => Ok(()),
        }
    }

    fn write_part(
        &mut self,
        (id, array): (ArrayId, &mut Declared),
        region: &Region,
        values: &[u8],
    ) -> Result<()> {
        check(array, self.rank, region, values)?;
        let (mut whole, mut parts) = (Vec::new(), Vec::new());
        array.shards.try_for_each(region, |shard| {
            let holds = region.holds(&array.shards.region(shard));
            if holds { &mut whole } else { &mut parts }.push(shard.to_vec());
            Ok(())
        })?;
        for shard in &whole {
            array.pending.whole(shard, &array.shards.region(shard))?;
        }
        if !whole.is_empty() {
            let part = self.encoding(|| array.part(region.clone(), values))?;
            let alike = array.metadata.chain.is_plain(&array.metadata.dtype);
            for (done, shard) in whole.iter().enumerate() {
                let entry = self.encoding(|| part.encode(shard))?;
                let left = whole.len() - 1 - done;
                // What follows should lie behind it: a file is read faster in long runs. Raw shards are
                // equally long; of others no more room is taken than for what was written already.
                self.emit(entry, if alike { left } else { left.min(done) })?;
            }
        }
        for shard in &parts {
            let owners = array.owners.as_ref();
            let owner = owners.map_or(self.rank, |owners| owners.of(shard));
            if owner == self.rank {
                self.add(array, shard, (region, values))?;
            } else {
                self.send(id, array, (owner, shard), (region, values))?;
            }
        }
        Ok(())
    }

    /// Adds values to a shard of this rank's, and writes it once it is complete.
    fn add(&mut self, array: &mut Declared, shard: &[u64], values: (&Region, &[u8])) -> Result<()> {
        let whole = array
            .pending
            .add((&array.shards, &array.metadata), shard, values)?;
        match whole {
            Some(whole) => self.encode(array, shard, &whole),
            None => Ok(()),
        }
    }

    /// Encodes a shard of this rank's, and has it written.
    pub(super) fn encode(
        &mut self,
        array: &Declared,
        shard: &[u64],
        whole: &Waiting,
    ) -> Result<()> {
        let part = array.part(whole.region.clone(), &whole.values)?;
        let entry = self.encoding(|| part.encode(shard))?;
        self.emit(entry, 0)
    }

    /// Puts values of a shard that another rank owns into its outbox.
    fn send(
        &mut self,
        id: ArrayId,
        array: &Declared,
        (owner, shard): (u32, &[u64]),
        (region, values): (&Region, &[u8]),
    ) -> Result<()> {
        let size = array.metadata.dtype.size().unwrap_or(1);
        let Some(common) = array.shards.region(shard).intersection(region) else {
            return Ok(());
        };
        let mut piece = vec![0; common.values() as usize * size];
        copy_common((region, values), (&common, &mut piece), size)?;
        let piece = Piece {
            array: id.0,
            region: common,
            values: &piece,
        };
        piece.encode(self.outbox.entry(owner).or_default());
        Ok(())
    }

    /// Finds a place for an entry, to be followed by `more` of about its length, and has it written.
    fn emit(&mut self, entry: NewEntry<'_>, more: usize) -> Result<()> {
        let len = entry.parts.iter().map(|part| part.len() as u64).sum();
        match self
            .extents
            .place(entry_bytes(&entry.key, len), more as u64)?
        {
            Some(offset) => self.file.write(offset, entry),
            None => {
                let parts = entry.parts.into_iter();
                let parts = parts.map(|part| Cow::Owned(part.into_owned())).collect();
                self.late.push(NewEntry { parts, ..entry });
                Ok(())
            }
        }
    }

    /// What rank `to` must get once all has been written here; empty where its blocks and this rank's
    /// meet between shards.
    pub fn outbox(&mut self, to: u32) -> Vec<u8> {
        if self.failure.is_some() {
            self.outbox.clear();
        }
        self.outbox.remove(&to).unwrap_or_default()
    }

    /// Takes what another rank had in its outbox for this one.
    ///
    /// # Errors
    /// As `write`.
    pub fn inbox(&mut self, from: u32, bytes: &[u8]) -> Result<()> {
        self.check_usable()?;
        let taken = self
            .inbox_here(bytes)
            .map_err(|error| error.at_node(format!("values from rank {from}")));
        if let Err(error) = &taken {
            self.failure = Some(Failure::received(error));
        }
        taken
    }

    fn inbox_here(&mut self, bytes: &[u8]) -> Result<()> {
        for piece in message::pieces(bytes)? {
            let id = ArrayId(piece.array);
            let mut array = self.take(id)?;
            let added = self.add_piece(&mut array, &piece);
            self.put_back(id, array);
            added?;
        }
        Ok(())
    }

    fn add_piece(&mut self, array: &mut Declared, piece: &Piece<'_>) -> Result<()> {
        let Piece { region, values, .. } = piece;
        if !region.lies_in(&array.metadata.shape) {
            return Err(Error::invalid("values that lie outside of the array"));
        }
        check_length(array, region, values)?;
        let mut touched = Vec::new();
        array.shards.try_for_each(region, |shard| {
            touched.push(shard.to_vec());
            Ok(())
        })?;
        let mut touched = touched.iter();
        touched.try_for_each(|shard| self.add(array, shard, (region, values)))
    }
}

/// Checks that a rank may write these values.
fn check(array: &Declared, rank: u32, region: &Region, values: &[u8]) -> Result<()> {
    check_place(array, rank, region)?;
    check_length(array, region, values)
}

/// Checks that a rank may write this region.
fn check_place(array: &Declared, rank: u32, region: &Region) -> Result<()> {
    if !region.lies_in(&array.metadata.shape) {
        let message = format!(
            "a region of {:?} from {:?} on does not lie in an array of {:?}",
            region.shape, region.start, array.metadata.shape
        );
        return Err(Error::invalid(message));
    }
    if array
        .held
        .as_ref()
        .is_some_and(|held| !held.holds(rank, region))
    {
        let message = format!(
            "a region of {:?} from {:?} on does not lie in a block of rank {rank}",
            region.shape, region.start
        );
        return Err(Error::invalid(message));
    }
    Ok(())
}

fn check_length(array: &Declared, region: &Region, values: &[u8]) -> Result<()> {
    let size = array.metadata.dtype.size().unwrap_or(1) as u64;
    if region.values().checked_mul(size) != Some(values.len() as u64) {
        let message = format!(
            "{} bytes of data for {:?} values of {size} bytes",
            values.len(),
            region.shape
        );
        return Err(Error::invalid(message));
    }
    Ok(())
}
