//! Ranks that write together in one process, for tests.

#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions only, not in their helpers

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::array::{ArraySpec, Region};
use crate::container::{CreateOptions, Durability};
use crate::error::Result;

/// Ranks in one process, with a network in memory.
pub(crate) struct Team(pub Vec<RankWriter>);

impl Team {
    pub fn create(path: &Path, options: RankOptions) -> Self {
        let create = CreateOptions::default();
        Self::joined(RankWriter::create(path, &create, options).unwrap())
    }

    pub fn append(path: &Path, options: RankOptions) -> Self {
        Self::joined(RankWriter::append(path, Durability::Full, options).unwrap())
    }

    fn joined(mut first: RankWriter) -> Self {
        let invitation = first.invitation().unwrap();
        let ranks = first.options().ranks;
        let others = (1..ranks).map(|rank| RankWriter::join(&invitation, rank).unwrap());
        let mut team: Vec<_> = [first].into_iter().chain(others).collect();
        let counter = Arc::new(AtomicU64::new(0));
        for rank in &mut team {
            let counter = Arc::clone(&counter);
            rank.count_with(Box::new(move |bytes| {
                Ok(counter.fetch_add(bytes, Ordering::SeqCst))
            }));
        }
        Self(team)
    }

    pub fn gather(&self, shape: &[u64], blocks: &[Vec<Region>]) -> Arc<Decomposition> {
        let parts: Vec<Vec<u8>> = blocks
            .iter()
            .map(|own| Decomposition::encode(shape, own).unwrap())
            .collect();
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        Arc::new(Decomposition::gather(&parts).unwrap())
    }

    pub fn declare(&mut self, path: &str, spec: &ArraySpec, held: &Arc<Decomposition>) -> ArrayId {
        let ids: Vec<ArrayId> = (self.0.iter_mut())
            .map(|rank| rank.declare(path, spec, Some(held)).unwrap())
            .collect();
        ids[0]
    }

    pub fn commit(&mut self) -> Result<()> {
        let ranks = self.0.len();
        for from in 0..ranks {
            for to in 0..ranks {
                let bytes = self.0[from].message_to(to as u32);
                if !bytes.is_empty() {
                    assert_ne!(from, to);
                    let _ = self.0[to].receive(from as u32, &bytes);
                }
            }
        }
        let indices: Vec<Vec<u8>> = self.0.iter_mut().map(|rank| rank.seal().unwrap()).collect();
        let indices: Vec<&[u8]> = indices.iter().map(Vec::as_slice).collect();
        let outcome = self.0[0].commit(&indices).unwrap();
        let ends: Vec<Result<()>> = self
            .0
            .iter_mut()
            .map(|rank| rank.conclude(&outcome))
            .collect();
        ends.into_iter().collect()
    }
}
