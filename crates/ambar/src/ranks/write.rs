//! A rank's values on their way: whole shards into the file, pieces of others to their owners.

use std::borrow::Cow;

use super::declare::{ArrayId, Declared};
use super::message::{self, Piece};
use super::pending::Waiting;
use super::writer::RankWriter;
use crate::array::{Region, copy_common};
use crate::container::entry_bytes;
use crate::error::{Error, Result};

impl RankWriter {
    /// Writes a region, which lies in one of the rank's blocks; `values` in C order, native byte
    /// order. Each value is written once before a commit.
    ///
    /// # Errors
    /// `Invalid` where data and region do not fit, or values were written before; `Io`. After an error
    /// nothing can be committed.
    pub fn write(&mut self, array: ArrayId, region: &Region, values: &[u8]) -> Result<()> {
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
        self.arrays[id.0 as usize] = Some(array);
        written
    }

    /// Takes an array out of the list, to be put back.
    fn take(&mut self, id: ArrayId) -> Result<Declared> {
        let array = self.arrays.get_mut(id.0 as usize).and_then(Option::take);
        array.ok_or_else(|| {
            let message = "this array was not declared since the last commit; declare it";
            Error::invalid(message)
        })
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
                let (key, bytes) = self.encoding(|| part.encode(shard))?;
                let left = whole.len() - 1 - done;
                // What follows should lie behind it: a file is read faster in long runs. Raw shards are
                // equally long; of others no more room is taken than for what was written already.
                self.emit(key, bytes, if alike { left } else { left.min(done) })?;
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
        let (key, parts) = self.encoding(|| part.encode(shard))?;
        self.emit(key, parts, 0)
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
    fn emit(&mut self, key: String, parts: Vec<Cow<'_, [u8]>>, more: usize) -> Result<()> {
        let len = parts.iter().map(|part| part.len() as u64).sum();
        match self.extents.place(entry_bytes(&key, len), more as u64)? {
            Some(offset) => self.file.write(offset, key, parts),
            None => {
                let parts = parts.into_iter().map(Cow::into_owned).collect();
                self.late.push((key, parts));
                Ok(())
            }
        }
    }

    /// What rank `to` must get once all has been written here; empty where its blocks and this rank's
    /// meet between shards.
    pub fn outbox(&mut self, to: u32) -> Vec<u8> {
        self.outbox.remove(&to).unwrap_or_default()
    }

    /// Takes what another rank had in its outbox for this one.
    ///
    /// # Errors
    /// As `write`.
    pub fn inbox(&mut self, from: u32, bytes: &[u8]) -> Result<()> {
        let taken = self
            .inbox_here(bytes)
            .map_err(|error| error.at_node(format!("values from rank {from}")));
        self.noting(taken)
    }

    fn inbox_here(&mut self, bytes: &[u8]) -> Result<()> {
        for piece in message::pieces(bytes)? {
            let id = ArrayId(piece.array);
            let mut array = self.take(id)?;
            let added = self.add_piece(&mut array, &piece);
            self.arrays[id.0 as usize] = Some(array);
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
    check_length(array, region, values)
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
