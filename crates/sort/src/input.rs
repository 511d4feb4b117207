// SPDX-License-Identifier: Apache-2.0

//! The bytes of an input: an open file, or memory.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};

use crate::Progress;

/// Bytes that can be read in any order. Clones share them.
#[derive(Clone, Debug)]
pub struct Input {
    storage: InputStorage,
    /// When set, every read fails.
    stop: Option<Arc<AtomicBool>>,
}

#[derive(Clone, Debug)]
enum InputStorage {
    /// All bytes in memory.
    Memory(Bytes),
    /// A file, and its length.
    File(Arc<File>, u64),
}

impl Input {
    /// Opens a regular file.
    pub fn open(path: &std::path::Path) -> io::Result<Input> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Input::new(InputStorage::File(file.into(), bytes)))
    }

    /// Bytes in memory.
    pub fn of(bytes: impl AsRef<[u8]> + Send + 'static) -> Input {
        Input::new(InputStorage::Memory(Bytes::from_owner(bytes)))
    }

    fn new(storage: InputStorage) -> Input {
        Input {
            storage,
            stop: None,
        }
    }

    /// Makes reads fail once `progress` is stopped. A file may be long.
    pub fn stopped_by(self, progress: &Progress) -> Input {
        let stop = Some(progress.stopper());
        Input { stop, ..self }
    }

    fn check(&self) -> io::Result<()> {
        match &self.stop {
            Some(stop) if stop.load(Relaxed) => Err(io::Error::other("interrupted")),
            _ => Ok(()),
        }
    }

    /// Number of bytes.
    pub fn bytes(&self) -> u64 {
        match &self.storage {
            InputStorage::Memory(bytes) => bytes.len() as u64,
            InputStorage::File(_, bytes) => *bytes,
        }
    }

    /// `count` bytes from `place` on. It is an error if there are fewer.
    pub fn read_at(&self, place: u64, count: usize) -> io::Result<Bytes> {
        self.check()?;
        let end = place.checked_add(count as u64);
        if end.is_none_or(|end| end > self.bytes()) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match &self.storage {
            InputStorage::Memory(bytes) => Ok(bytes.slice(place as usize..place as usize + count)),
            InputStorage::File(file, _) => {
                let mut out = vec![0; count];
                file.read_exact_at(&mut out, place)?;
                Ok(out.into())
            }
        }
    }

    /// A reader that starts at `place`.
    pub fn from(&self, place: u64) -> BufReader<Cursor> {
        let input = self.clone();
        BufReader::new(Cursor { input, place })
    }
}

impl From<Vec<u8>> for Input {
    fn from(bytes: Vec<u8>) -> Input {
        Input::new(InputStorage::Memory(bytes.into()))
    }
}

/// A position in an input.
pub struct Cursor {
    input: Input,
    place: u64,
}

impl Read for Cursor {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.input.check()?;
        let left = self.input.bytes().saturating_sub(self.place);
        let count = left.min(out.len() as u64) as usize;
        if count == 0 {
            return Ok(0);
        }
        let count = match &self.input.storage {
            InputStorage::Memory(bytes) => {
                out[..count].copy_from_slice(&bytes[self.place as usize..][..count]);
                count
            }
            InputStorage::File(file, _) => file.read_at(&mut out[..count], self.place)?,
        };
        self.place += count as u64;
        Ok(count)
    }
}

impl Seek for Cursor {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let to = match to {
            SeekFrom::Start(place) => Some(place),
            SeekFrom::Current(by) => self.place.checked_add_signed(by),
            SeekFrom::End(by) => self.input.bytes().checked_add_signed(by),
        };
        self.place = to.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.place)
    }
}

impl Length for Input {
    fn len(&self) -> u64 {
        self.bytes()
    }
}

impl ChunkReader for Input {
    type T = BufReader<Cursor>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(self.from(start))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        self.read_at(start, length)
            .map_err(|e| ParquetError::External(Box::new(e)))
    }
}
