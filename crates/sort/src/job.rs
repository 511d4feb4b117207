//! What one device does with its part of a table.

use std::ops::Range;

use driver::{Controller, Host};
use sim::Time;
use spec::nvme::Sqe;

use crate::pages::Pages;
use crate::report::Stage;
use crate::room::{unit, Room};
use crate::transfer::{get, put};
use crate::{Progress, Result};

/// Keys up to which the sorter writes nothing but indexes to its target.
const TWO_PASSES: u64 = 8 << 20;
/// Simulated time between two looks at whether to go on.
const PIECE: Time = Time::us(200);

/// Opcodes of the engines' commands.
#[derive(Clone, Copy, Debug)]
pub struct Opcodes {
    pub sort: u8,
    pub shuffle: u8,
    pub decode: Option<u8>,
}

/// A part's sizes.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub rows: usize,
    /// Rows whose key is not null; they come first.
    pub sorted: usize,
    pub row_bytes: usize,
    pub key_bytes: usize,
}

/// Where a device has what.
#[derive(Debug)]
struct Places {
    keys: Range<u64>,
    indexes: Range<u64>,
    scratch: Range<u64>,
    table: Range<u64>,
    target: Range<u64>,
    dictionary: Range<u64>,
    encoded: Range<u64>,
}

/// Keys as they go to a device.
pub enum Keys {
    Plain(Vec<u8>),
    Pages(Pages),
}

/// A device's work.
pub struct Job {
    shape: Shape,
    places: Places,
    keys: Keys,
    rows: Vec<u8>,
    opcodes: Opcodes,
    kind: u32,
}

impl Job {
    /// Bytes that it moves over the link.
    pub fn bytes(&self) -> u64 {
        let keys = match &self.keys {
            Keys::Plain(keys) => keys.len(),
            Keys::Pages(pages) => pages.dictionary.len() + pages.encoded.len(),
        };
        (keys + 2 * self.rows.len()) as u64
    }

    /// Does it; the sorted rows and behind them those without a key.
    pub fn run<H: Host>(
        &self,
        controller: &mut Controller<H>,
        progress: &Progress,
    ) -> driver::Result<(Vec<u8>, Vec<Stage>)> {
        let mut stages = Stages {
            controller,
            progress,
            done: Vec::new(),
        };
        let Job { shape, places, .. } = self;
        let count = shape.sorted as u32;
        match &self.keys {
            Keys::Plain(keys) => {
                stages.put(&[(&places.keys, keys), (&places.table, &self.rows)])?;
            }
            Keys::Pages(pages) => {
                stages.put(&[
                    (&places.dictionary, &pages.dictionary),
                    (&places.encoded, &pages.encoded),
                    (&places.table, &self.rows),
                ])?;
                if let Some(opcode) = self.opcodes.decode {
                    let bytes = pages.encoded.len();
                    let decode = Sqe::new(opcode)
                        .with_cdw(10, unit(&places.dictionary))
                        .with_cdw(11, unit(&places.encoded))
                        .with_cdw(12, unit(&places.keys))
                        .with_cdw(13, count)
                        .with_cdw(14, bytes as u32)
                        .with_cdw(15, pages.dword());
                    stages.command("decode", decode, bytes)?;
                }
            }
        }
        if count > 0 {
            let sort = Sqe::new(self.opcodes.sort)
                .with_cdw(10, unit(&places.keys))
                .with_cdw(11, unit(&places.indexes))
                .with_cdw(12, unit(&places.scratch))
                .with_cdw(13, count)
                .with_cdw(14, self.kind);
            stages.command("sort", sort, shape.sorted * shape.key_bytes)?;
            let shuffle = Sqe::new(self.opcodes.shuffle)
                .with_cdw(10, unit(&places.indexes))
                .with_cdw(11, unit(&places.table))
                .with_cdw(12, unit(&places.target))
                .with_cdw(13, count)
                .with_cdw(14, shape.rows as u32)
                .with_cdw(15, shape.row_bytes as u32);
            stages.command("shuffle", shuffle, shape.sorted * shape.row_bytes)?;
        }
        let mut out = vec![0; self.rows.len()];
        let (sorted, nulls) = out.split_at_mut(shape.sorted * shape.row_bytes);
        let behind = places.table.start + sorted.len() as u64;
        stages.get([(places.target.start, sorted), (behind, nulls)])?;
        Ok((out, stages.done))
    }
}

/// Room for a job.
pub struct Vacant {
    shape: Shape,
    places: Places,
}

impl Vacant {
    /// Finds room for a job in a namespace.
    pub fn find(shape: Shape, pages: Option<(usize, usize)>, namespace: u64) -> Result<Vacant> {
        let mut room = Room::default();
        let (sorted, rows, row) = (
            shape.sorted as u64,
            shape.rows as u64,
            shape.row_bytes as u64,
        );
        let record = sorted
            * if shape.key_bytes == 4 {
                8
            } else {
                2 * shape.key_bytes as u64
            };
        let indexes = if sorted > TWO_PASSES {
            record
        } else {
            4 * sorted
        };
        let (dictionary, encoded) = pages.unwrap_or_default();
        let places = Places {
            keys: room.take(sorted * shape.key_bytes as u64),
            indexes: room.take(indexes),
            scratch: room.take(record),
            table: room.take(rows * row),
            target: room.take(sorted * row),
            dictionary: room.take(dictionary as u64),
            encoded: room.take(encoded as u64),
        };
        room.check(namespace, shape.rows)?;
        Ok(Vacant { shape, places })
    }

    /// The job, with what goes to the device.
    pub fn with(self, keys: Keys, rows: Vec<u8>, opcodes: Opcodes, kind: u32) -> Job {
        Job {
            shape: self.shape,
            places: self.places,
            keys,
            rows,
            opcodes,
            kind,
        }
    }
}

struct Stages<'a, H: Host> {
    controller: &'a mut Controller<H>,
    progress: &'a Progress,
    done: Vec<Stage>,
}

impl<H: Host> Stages<'_, H> {
    fn end(&mut self, name: &'static str, begin: Time, bytes: usize, commands: u64) {
        self.done.push(Stage {
            name,
            begin,
            end: self.controller.now(),
            bytes: bytes as u64,
            commands,
        });
    }

    fn put(&mut self, parts: &[(&Range<u64>, &[u8])]) -> driver::Result<()> {
        let (begin, mut bytes, mut commands) = (self.controller.now(), 0, 0);
        for (place, data) in parts {
            commands += put(self.controller, place.start, data, self.progress)?;
            bytes += data.len();
        }
        self.end("put", begin, bytes, commands);
        Ok(())
    }

    fn get(&mut self, parts: [(u64, &mut [u8]); 2]) -> driver::Result<()> {
        let (begin, mut bytes, mut commands) = (self.controller.now(), 0, 0);
        for (place, out) in parts {
            bytes += out.len();
            commands += get(self.controller, place, out, self.progress)?;
        }
        self.end("get", begin, bytes, commands);
        Ok(())
    }

    fn command(&mut self, name: &'static str, sqe: Sqe, bytes: usize) -> driver::Result<()> {
        let begin = self.controller.now();
        let sqe = sqe.with_nsid(self.controller.nsid());
        let progress = self.progress;
        let mut go_on = || progress.go_on();
        let mut completion = self
            .controller
            .execute_raw_while(0, sqe, PIECE, &mut go_on)?;
        completion.command = name;
        completion.check()?;
        self.end(name, begin, bytes, 1);
        Ok(())
    }
}
