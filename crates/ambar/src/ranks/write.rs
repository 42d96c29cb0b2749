//! Writes the values of a rank: whole shards to the file, pieces of other shards to their owners.

use std::sync::Arc;

use super::declarations::{ArrayId, DeclaredArray};
use super::message::{self, Failure, Piece};
use super::output::{ShardJob, Values};
use super::writer::{RankWriter, Sink};
use crate::array::{Region, copy_intersection};
use crate::dtype::DataType;
use crate::error::{Error, Result};

impl RankWriter {
    /// Writes a region, which is in one of the rank's blocks; `values` in C order, native byte
    /// order. Each value is written once before a commit. With a queue, the values are copied.
    ///
    /// # Errors
    /// `Invalid` if data and region do not fit, or values were written before; `Io`. After an error
    /// nothing can be committed.
    pub fn write(&mut self, array: ArrayId, region: &Region, values: &[u8]) -> Result<()> {
        self.write_values(array, region, Values::Call(values))
    }

    /// Writes a region as `write`; a queue takes the values without a copy.
    ///
    /// # Errors
    /// As `write`.
    pub fn write_owned(&mut self, array: ArrayId, region: &Region, values: Vec<u8>) -> Result<()> {
        self.write_values(array, region, Values::Owned(values))
    }

    /// Writes a region as `write`; a queue takes the values without a copy. They are no longer used after
    /// [`RankWriter::seal`], and after this writer was dropped.
    ///
    /// # Errors
    /// As `write`.
    pub fn write_borrowed(
        &mut self,
        array: ArrayId,
        region: &Region,
        values: &'static [u8],
    ) -> Result<()> {
        self.write_values(array, region, Values::Commit(values))
    }

    fn write_values(&mut self, array: ArrayId, region: &Region, values: Values<'_>) -> Result<()> {
        self.check_usable()?;
        let written = self.write_here(array, region, values);
        self.record_failure(written)
    }

    fn write_here(&mut self, id: ArrayId, region: &Region, values: Values<'_>) -> Result<()> {
        let mut array = self.take(id)?;
        let written = self.write_to(id, &mut array, region, values);
        let error = |error: Error| {
            error
                .at_node(&array.encoding.name)
                .in_file(self.path.display())
        };
        let written = written.map_err(error);
        array.written += region.values();
        self.put_back(id, array);
        written
    }

    /// The index of an array in the list.
    fn index_of(&self, id: ArrayId) -> Result<usize> {
        let index = id.0.checked_sub(self.first_id).map(|index| index as usize);
        let exists = |index: &usize| self.arrays.get(*index).is_some_and(Option::is_some);
        index.filter(exists).ok_or_else(|| {
            Error::invalid(format!(
                "array number {} was not defined since the last commit; define it again, and use the \
                 returned number",
                id.0
            ))
        })
    }

    /// Takes an array from the list, to be put back.
    fn take(&mut self, id: ArrayId) -> Result<DeclaredArray> {
        let index = self.index_of(id)?;
        let array = self.arrays.get_mut(index).and_then(Option::take);
        array.ok_or_else(|| {
            Error::invalid("another thread writes this array; write it from one thread")
        })
    }

    fn put_back(&mut self, id: ArrayId, array: DeclaredArray) {
        if let Some(slot) = self.arrays.get_mut((id.0 - self.first_id) as usize) {
            *slot = Some(array);
        }
    }

    /// The type of an array's values, and its number of dimensions.
    ///
    /// # Errors
    /// `Invalid` if it was not declared since the last commit; an earlier failure.
    pub fn type_of(&self, id: ArrayId) -> Result<(&DataType, usize)> {
        self.check_usable()?;
        let index = self.index_of(id)?;
        let metadata = self
            .arrays
            .get(index)
            .and_then(Option::as_ref)
            .map(|array| &array.encoding.metadata);
        let metadata =
            metadata.ok_or_else(|| Error::invalid("the array does not exist; declare it"))?;
        Ok((&metadata.dtype, metadata.shape.len()))
    }

    /// Checks that this rank may write a region, before its values are copied.
    ///
    /// # Errors
    /// As `write`.
    pub fn check_region(&self, id: ArrayId, region: &Region) -> Result<()> {
        let index = self.index_of(id)?;
        match self.arrays.get(index).and_then(Option::as_ref) {
            Some(array) => check_region(array, self.rank, region),
            None => Ok(()),
        }
    }

    fn write_to(
        &mut self,
        id: ArrayId,
        array: &mut DeclaredArray,
        region: &Region,
        values: Values<'_>,
    ) -> Result<()> {
        check(array, self.rank, region, values.bytes())?;
        let (mut whole, mut parts) = (Vec::new(), Vec::new());
        array.shards.try_for_each(region, |shard| {
            let is_whole = region.contains(&array.shards.region(shard));
            if is_whole { &mut whole } else { &mut parts }.push(shard.to_vec());
            Ok(())
        })?;
        for shard in &whole {
            array
                .incomplete
                .complete(shard, &array.shards.region(shard))?;
        }
        for shard in &parts {
            let owners = array.owners.as_ref();
            let owner = owners.map_or(self.rank, |owners| owners.of(shard));
            if owner == self.rank {
                self.add(array, shard, region, values.bytes())?;
            } else {
                let message = self.messages.entry(owner).or_default();
                send(message, id, array, shard, region, values.bytes())?;
            }
        }
        if whole.is_empty() {
            return Ok(());
        }
        self.encode(ShardJob {
            array: Arc::clone(&array.encoding),
            region: region.clone(),
            values,
            shards: whole,
        })
    }

    /// Adds values to a shard that this rank owns, and writes the shard if that completes it.
    fn add(
        &mut self,
        array: &mut DeclaredArray,
        shard: &[u64],
        region: &Region,
        values: &[u8],
    ) -> Result<()> {
        let (shards, metadata) = (&array.shards, &array.encoding.metadata);
        let complete = (array.incomplete).add(shards, metadata, shard, region, values)?;
        match complete {
            Some(complete) => self.encode(complete.job(&array.encoding, shard)),
            None => Ok(()),
        }
    }

    /// Encodes shards and writes them, or queues them.
    pub(super) fn encode(&mut self, job: ShardJob<'_>) -> Result<()> {
        match &mut self.sink {
            Sink::Direct(output) => job.run(output),
            Sink::Background(background) => background.write(job),
        }
    }

    /// The message for rank `to` after all values were written here; empty if its blocks and this rank's
    /// have no shard in common.
    pub fn message_to(&mut self, to: u32) -> Vec<u8> {
        if self.failure.is_some() {
            self.messages.clear();
        }
        self.messages.remove(&to).unwrap_or_default()
    }

    /// Receives the message of another rank.
    ///
    /// # Errors
    /// As `write`.
    pub fn receive(&mut self, from: u32, bytes: &[u8]) -> Result<()> {
        self.check_usable()?;
        let received = self
            .add_received(bytes)
            .map_err(|error| error.at_node(format!("values from rank {from}")));
        if let Err(error) = &received {
            self.failure = Some(Failure::received(error));
        }
        received
    }

    fn add_received(&mut self, bytes: &[u8]) -> Result<()> {
        for piece in message::pieces(bytes)? {
            let id = ArrayId(piece.array);
            let mut array = self.take(id)?;
            let added = self.add_piece(&mut array, &piece);
            self.put_back(id, array);
            added?;
        }
        Ok(())
    }

    fn add_piece(&mut self, array: &mut DeclaredArray, piece: &Piece<'_>) -> Result<()> {
        let Piece { region, values, .. } = piece;
        if !region.is_inside(&array.encoding.metadata.shape) {
            return Err(Error::invalid(
                "received values outside of the array; pass the messages unchanged",
            ));
        }
        check_length(array, region, values)?;
        let mut shards = Vec::new();
        array.shards.try_for_each(region, |shard| {
            shards.push(shard.to_vec());
            Ok(())
        })?;
        let mut shards = shards.iter();
        shards.try_for_each(|shard| self.add(array, shard, region, values))
    }
}

/// Appends the values of a shard that another rank owns to the message for it.
fn send(
    message: &mut Vec<u8>,
    id: ArrayId,
    array: &DeclaredArray,
    shard: &[u64],
    region: &Region,
    values: &[u8],
) -> Result<()> {
    let size = array.encoding.metadata.dtype.size().unwrap_or(1);
    let Some(common) = array.shards.region(shard).intersection(region) else {
        return Ok(());
    };
    let mut piece = vec![0; common.values() as usize * size];
    copy_intersection(region, values, &common, &mut piece, size)?;
    let piece = Piece {
        array: id.0,
        region: common,
        values: &piece,
    };
    piece.encode(message);
    Ok(())
}

/// Checks that a rank may write these values.
fn check(array: &DeclaredArray, rank: u32, region: &Region, values: &[u8]) -> Result<()> {
    check_region(array, rank, region)?;
    check_length(array, region, values)
}

/// Checks that a rank may write this region.
fn check_region(array: &DeclaredArray, rank: u32, region: &Region) -> Result<()> {
    if !region.is_inside(&array.encoding.metadata.shape) {
        let message = format!(
            "the region of {:?} at {:?} is outside of an array of {:?}",
            region.shape, region.start, array.encoding.metadata.shape
        );
        return Err(Error::invalid(message));
    }
    if array
        .held
        .as_ref()
        .is_some_and(|held| !held.owns(rank, region))
    {
        let message = format!(
            "the region of {:?} at {:?} is not inside of a block of rank {rank}; write the rank's own blocks",
            region.shape, region.start
        );
        return Err(Error::invalid(message));
    }
    Ok(())
}

fn check_length(array: &DeclaredArray, region: &Region, values: &[u8]) -> Result<()> {
    let size = array.encoding.metadata.dtype.size().unwrap_or(1) as u64;
    if region.values().checked_mul(size) != Some(values.len() as u64) {
        let message = format!(
            "the data have {} bytes; expected {:?} values of {size} bytes",
            values.len(),
            region.shape
        );
        return Err(Error::invalid(message));
    }
    Ok(())
}
