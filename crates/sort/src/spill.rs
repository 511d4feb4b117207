// SPDX-License-Identifier: Apache-2.0

//! Data that the host keeps during a sort: in memory up to a common limit, then in unnamed files.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

use crate::{Error, Result};

/// Bytes of a copy.
const CHUNK_BYTES: usize = 1 << 20;

/// Shared by the spills of a sort.
#[derive(Debug)]
struct MemoryBudget {
    /// Bytes of memory that are free.
    free: AtomicU64,
    /// Bytes that were written to files.
    filed: AtomicU64,
}

/// Creates spills that share a limit of memory.
#[derive(Clone, Debug)]
pub struct Spills(Arc<MemoryBudget>);

#[derive(Debug)]
enum SpillStorage {
    Memory(Vec<u8>),
    File(File),
}

/// Bytes that are written once, and read in any order.
#[derive(Debug)]
pub struct Spill {
    budget: Arc<MemoryBudget>,
    storage: SpillStorage,
    len: u64,
}

fn fail(what: &str, error: std::io::Error) -> Error {
    let folder = std::env::temp_dir();
    Error::new(format!(
        "temporary files in {} can't be {what}: {error}",
        folder.display()
    ))
}

impl Spills {
    /// At most `memory` bytes in memory.
    pub fn new(memory: u64) -> Spills {
        Spills(Arc::new(MemoryBudget {
            free: AtomicU64::new(memory),
            filed: AtomicU64::new(0),
        }))
    }

    /// An empty spill.
    pub fn empty(&self) -> Spill {
        Spill {
            budget: self.0.clone(),
            storage: SpillStorage::Memory(Vec::new()),
            len: 0,
        }
    }

    /// A spill of `len` zeros.
    pub fn zeros(&self, len: u64) -> Result<Spill> {
        let mut spill = self.empty();
        spill.grow(len)?;
        match &mut spill.storage {
            SpillStorage::Memory(bytes) => bytes.resize(len as usize, 0),
            SpillStorage::File(file) => file.set_len(len).map_err(|e| fail("written", e))?,
        }
        spill.len = len;
        Ok(spill)
    }

    /// Bytes that were written to files.
    pub fn filed(&self) -> u64 {
        self.0.filed.load(Relaxed)
    }
}

impl Spill {
    /// Number of bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Reserves `bytes` more bytes. If memory is short, the spill becomes a file.
    fn grow(&mut self, bytes: u64) -> Result<()> {
        let SpillStorage::Memory(held) = &mut self.storage else {
            self.budget.filed.fetch_add(bytes, Relaxed);
            return Ok(());
        };
        let take = |free: u64| free.checked_sub(bytes);
        if self
            .budget
            .free
            .fetch_update(Relaxed, Relaxed, take)
            .is_ok()
        {
            // Exactly: the vector would reserve twice as much.
            held.reserve_exact(bytes as usize);
            return Ok(());
        }
        let file = tempfile::tempfile().map_err(|e| fail("made", e))?;
        file.write_all_at(held, 0).map_err(|e| fail("written", e))?;
        self.budget.free.fetch_add(self.len, Relaxed);
        self.budget.filed.fetch_add(self.len + bytes, Relaxed);
        self.storage = SpillStorage::File(file);
        Ok(())
    }

    /// Appends bytes.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.grow(bytes.len() as u64)?;
        match &mut self.storage {
            SpillStorage::Memory(held) => held.extend_from_slice(bytes),
            SpillStorage::File(file) => file
                .write_all_at(bytes, self.len)
                .map_err(|e| fail("written", e))?,
        }
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Appends the bytes of another spill.
    pub fn append_all(&mut self, other: &Spill) -> Result<()> {
        let mut piece = vec![0; CHUNK_BYTES.min(other.len as usize)];
        let mut at = 0;
        while at < other.len {
            let here = CHUNK_BYTES.min((other.len - at) as usize);
            other.read(at, &mut piece[..here])?;
            self.append(&piece[..here])?;
            at += here as u64;
        }
        Ok(())
    }

    /// True if the range is within the spill.
    pub fn has(&self, at: u64, bytes: usize) -> bool {
        at.checked_add(bytes as u64)
            .is_some_and(|end| end <= self.len)
    }

    fn check(&self, at: u64, bytes: usize) -> Result<()> {
        match self.has(at, bytes) {
            true => Ok(()),
            false => Err(Error::new(format!(
                "bytes {at} to {} of {} are wanted",
                at.saturating_add(bytes as u64),
                self.len
            ))),
        }
    }

    /// Reads a range.
    pub fn read(&self, at: u64, out: &mut [u8]) -> Result<()> {
        self.check(at, out.len())?;
        match &self.storage {
            SpillStorage::Memory(held) => out.copy_from_slice(&held[at as usize..][..out.len()]),
            SpillStorage::File(file) => file.read_exact_at(out, at).map_err(|e| fail("read", e))?,
        }
        Ok(())
    }

    /// Overwrites a range.
    pub fn write(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        self.check(at, bytes.len())?;
        match &mut self.storage {
            SpillStorage::Memory(held) => held[at as usize..][..bytes.len()].copy_from_slice(bytes),
            SpillStorage::File(file) => file
                .write_all_at(bytes, at)
                .map_err(|e| fail("written", e))?,
        }
        Ok(())
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        if let SpillStorage::Memory(_) = self.storage {
            self.budget.free.fetch_add(self.len, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spill_reads_back_from_memory_and_files() {
        let bytes: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
        for memory in [0, 1000, 4 << 20] {
            let spills = Spills::new(memory);
            let mut one = spills.empty();
            bytes
                .chunks(777)
                .for_each(|piece| one.append(piece).unwrap());
            let mut other = spills.zeros(bytes.len() as u64).unwrap();
            for at in (0..bytes.len()).step_by(1000).rev() {
                other.write(at as u64, &bytes[at..at + 1000]).unwrap();
            }
            let mut twice = spills.empty();
            twice.append_all(&one).unwrap();
            twice.append_all(&other).unwrap();
            let mut found = vec![0; 2 * bytes.len()];
            twice.read(0, &mut found).unwrap();
            assert!(found[..bytes.len()] == bytes && found[bytes.len()..] == bytes);
            one.read(7, &mut found[..1001]).unwrap();
            assert_eq!(found[..1001], bytes[7..1008]);
            assert!(one.read(1, &mut found[..bytes.len()]).is_err());
            assert!(one.write(u64::MAX, &[1]).is_err());
            assert_eq!(spills.filed() > 0, memory < 4 << 20);
        }
    }

    #[test]
    fn spill_returns_its_memory() {
        let spills = Spills::new(1000);
        for _ in 0..10 {
            let held = spills.zeros(1000).unwrap();
            assert!(matches!(held.storage, SpillStorage::Memory(_)));
            assert!(matches!(
                spills.zeros(1).unwrap().storage,
                SpillStorage::File(_)
            ));
        }
        let mut grown = spills.zeros(600).unwrap();
        grown.append(&[7; 600]).unwrap();
        assert!(matches!(grown.storage, SpillStorage::File(_)));
        assert!(matches!(
            spills.zeros(1000).unwrap().storage,
            SpillStorage::Memory(_)
        ));
    }
}
