// SPDX-License-Identifier: Apache-2.0

//! Workloads by name: transactions over an index structure.

use pm::{Error, Layout, Mechanism, Ptr, Result, Thread, Ticket, Transaction};
use sim::Random;

use crate::logic::{Cache, KeyValue, Logic, Tatp, Tpcc};
use crate::map::{BPlus, BTree, HashMap, Map, RbTree, SkipList};
use crate::operations::Recorder;
use crate::store::{unpack, Tables};
use crate::{Contents, Operation};

/// All workloads: a structure with values of one size, or a benchmark.
pub const NAMES: [&str; 9] = [
    "btree",
    "rbtree",
    "skiplist",
    "hashmap",
    "pmemkv",
    "tatp",
    "tpcc",
    "redis",
    "memcached",
];

/// The size of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Keys, subscribers, items.
    pub records: u64,
    /// Bytes of each value, for structures.
    pub value_bytes: usize,
}

impl Scale {
    /// Small enough for a complete check after each cut.
    pub const SMALL: Scale = Scale {
        records: 48,
        value_bytes: 64,
    };
    /// The same with values that span two stripes of a pool over several devices.
    pub const WIDE: Scale = Scale {
        value_bytes: 4160,
        ..Scale::SMALL
    };
}

/// A workload on a pool, whose transactions are generated from a seed.
pub struct Workload {
    name: &'static str,
    logic: Box<dyn Logic>,
    map: Box<dyn Map>,
}

/// The complete content of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// All rows.
    pub contents: Contents,
    /// Offsets of all objects that belong to the workload, in order.
    pub objects: Vec<u64>,
}

/// The root object: the roots of the tables.
type Roots = [u64; MAX_TABLES];
const MAX_TABLES: usize = 9;

/// Derives a seed from a seed and a number.
fn derive_seed(seed: u64, number: u64) -> u64 {
    Random::new(seed ^ number.wrapping_mul(0xD6E8_FEB8_6659_FD93)).next()
}

impl Workload {
    /// The workload of a name, one of [`NAMES`].
    pub fn new(name: &str, scale: Scale) -> Result<Workload> {
        let records = scale.records.max(2);
        let values = || {
            Box::new(KeyValue {
                keys: records,
                bytes: scale.value_bytes.max(16),
            })
        };
        let hashed = |buckets| Box::new(HashMap { buckets });
        let (logic, map): (Box<dyn Logic>, Box<dyn Map>) = match name {
            "btree" => (values(), Box::new(BTree)),
            "rbtree" => (values(), Box::new(RbTree)),
            "skiplist" => (values(), Box::new(SkipList)),
            "hashmap" => (values(), hashed(records.div_ceil(2))),
            "pmemkv" => (values(), Box::new(BPlus)),
            "tatp" => {
                let subscribers = records.div_ceil(4);
                (Box::new(Tatp { subscribers }), Box::new(BTree))
            }
            "tpcc" => {
                let customers = records.div_ceil(16);
                let logic = Tpcc {
                    customers,
                    items: records,
                };
                (Box::new(logic), Box::new(BTree))
            }
            "redis" | "memcached" => {
                let max_bytes = if name == "redis" { 512 } else { 1024 };
                let logic = Cache {
                    keys: records,
                    max_bytes,
                };
                (Box::new(logic), hashed(records))
            }
            _ => {
                let names = NAMES.join(", ");
                return Err(Error::Invalid(format!(
                    "workload = {name:?}: allowed are {names}"
                )));
            }
        };
        let name = NAMES.into_iter().find(|n| *n == name).unwrap_or_default();
        Ok(Workload { name, logic, map })
    }

    /// The name of the workload.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// A layout with sufficient logs and spare pages at [`Scale::SMALL`] and [`Scale::WIDE`], for
    /// two threads.
    pub fn layout(&self, mechanism: Mechanism) -> Layout {
        let pages = match self.name {
            "tpcc" => 128,
            "tatp" => 64,
            _ => 32,
        };
        Layout {
            threads: 2,
            log_bytes: (pages * 4096 + 4096) * 5 / 4 / 4096 * 4096,
            spare_pages: pages,
            ..Layout::new(self.name).with_mechanism(mechanism)
        }
    }

    /// Bytes of a pool at these scales, with such a layout.
    pub fn pool_bytes(&self) -> u64 {
        match self.name {
            "tpcc" => 8 << 20,
            _ => 4 << 20,
        }
    }

    fn tables<'a, 'b>(&'a self, tx: &'a mut Transaction<'b>, roots: &'a Roots) -> Tables<'a, 'b> {
        let map = self.map.as_ref();
        Tables { tx, map, roots }
    }

    /// Creates its tables with their initial contents.
    pub fn create(&self, thread: &mut Thread, seed: u64) -> Result<()> {
        let roots = thread.run(|tx| {
            let mut roots: Roots = [0; MAX_TABLES];
            for root in &mut roots[..self.logic.tables()] {
                *root = self.map.create(tx)?;
            }
            let at = tx.create(&roots)?;
            tx.set_root(at)?;
            Ok::<_, Error>(roots)
        })?;
        (0..self.logic.population_steps()).try_for_each(|step| {
            let mut random = Random::new(derive_seed(!seed, step));
            thread.run(|tx| {
                let mut store = self.tables(tx, &roots);
                self.logic.populate(step, &mut random, &mut store)
            })
        })
    }

    /// The initial contents, as [`Workload::create`] stores them.
    pub fn initial_contents(&self, seed: u64) -> Result<Contents> {
        let mut contents = Contents::new();
        for step in 0..self.logic.population_steps() {
            let mut random = Random::new(derive_seed(!seed, step));
            self.logic.populate(step, &mut random, &mut contents)?;
        }
        Ok(contents)
    }

    /// Performs transaction `number`, counted from 0. False if it was aborted.
    pub fn perform(&self, thread: &mut Thread, seed: u64, number: u64) -> Result<bool> {
        match thread.run(|tx| self.transaction(tx, seed, number)) {
            Ok(()) => Ok(true),
            Err(Error::Aborted) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The same for a transaction that becomes durable later: its ticket, or nothing if it was
    /// aborted.
    pub fn perform_later(
        &self,
        thread: &mut Thread,
        seed: u64,
        number: u64,
    ) -> Result<Option<Ticket>> {
        match thread.run_later(|tx| self.transaction(tx, seed, number)) {
            Ok(((), ticket)) => Ok(Some(ticket)),
            Err(Error::Aborted) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn transaction(&self, tx: &mut Transaction<'_>, seed: u64, number: u64) -> Result<()> {
        let mut random = Random::new(derive_seed(seed, number));
        let at: Ptr<Roots> = tx.root()?;
        let roots = tx.get(at)?;
        let mut store = self.tables(tx, &roots);
        match self.logic.transaction(&mut random, &mut store)? {
            true => Ok(()),
            false => Err(Error::Aborted),
        }
    }

    /// Applies the transaction to contents. False if it is aborted, and the contents stay.
    pub fn apply(&self, contents: &mut Contents, seed: u64, number: u64) -> Result<bool> {
        let mut random = Random::new(derive_seed(seed, number));
        let mut next = contents.clone();
        let committed = self.logic.transaction(&mut random, &mut next)?;
        if committed {
            *contents = next;
        }
        Ok(committed)
    }

    /// The operations of the transactions that make the initial contents, and then of `count`
    /// transactions, each with whether it is committed. Only workloads with one table have them.
    pub fn operations(&self, seed: u64, count: u64) -> Result<Vec<(Vec<Operation>, bool)>> {
        if self.logic.tables() != 1 {
            let text = format!(
                "{} has several tables: allowed are workloads with one",
                self.name
            );
            return Err(Error::Invalid(text));
        }
        let mut contents = Contents::new();
        let mut all = Vec::new();
        for step in 0..self.logic.population_steps() {
            let mut random = Random::new(derive_seed(!seed, step));
            let mut recorder = Recorder::new(&mut contents);
            self.logic.populate(step, &mut random, &mut recorder)?;
            all.push((recorder.operations, true));
        }
        for number in 0..count {
            let mut random = Random::new(derive_seed(seed, number));
            let mut next = contents.clone();
            let mut recorder = Recorder::new(&mut next);
            let committed = self.logic.transaction(&mut random, &mut recorder)?;
            all.push((recorder.operations, committed));
            if committed {
                contents = next;
            }
        }
        Ok(all)
    }

    /// Reads the complete content, and checks the structures; the error names the damage.
    pub fn inspect(&self, thread: &mut Thread) -> Result<Inspection> {
        thread.run(|tx| {
            let at: Ptr<Roots> = tx.root()?;
            let roots = tx.get(at)?;
            let mut found = Inspection::default();
            found.objects.push(at.offset());
            for (table, root) in roots[..self.logic.tables()].iter().enumerate() {
                found.objects.extend(self.map.check(tx, *root)?);
                for (key, value) in self.map.items(tx, *root)? {
                    let row = self.tables(tx, &roots).row(value)?;
                    found.objects.push(unpack(value).0);
                    found.contents.insert((table, key), row);
                }
            }
            found.objects.sort_unstable();
            Ok(found)
        })
    }
}
