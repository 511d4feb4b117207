// SPDX-License-Identifier: Apache-2.0

//! Consistency checks of open pools.

use std::sync::atomic::Ordering;

use host::Cpu;
use spec::nearpm::LINE;

use crate::header::Header;
use crate::pool::{missing_part, reload_heap};
use crate::{multi_device, recovery, Error, Pool, Result};

/// The result of a check of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckReport {
    /// Allocated objects: the offset of each, and the bytes that are set aside for it.
    pub objects: Vec<(u64, u64)>,
    /// Bytes of the pool.
    pub bytes: u64,
    /// How often the pool's header was written: 1, and once more for each growth.
    pub generation: u32,
}

impl Pool {
    /// Reads the pool's metadata again. Compares them with each other and with the state of the
    /// open pool. No transaction may be under way.
    pub fn check(&self, cpu: &Cpu) -> Result<CheckReport> {
        self.0.check_usable()?;
        if self.0.under_way.load(Ordering::Relaxed) > 0 {
            let text = "a pool is checked between transactions: one is under way";
            return Err(Error::Invalid(text.into()));
        }
        if self.0.is_pending() {
            let text = "a pool is checked when its transactions are durable: some are not, `sync` \
                        waits for them";
            return Err(Error::Invalid(text.into()));
        }
        let mut m = self.0.memory(cpu);
        let header = Header::from_lines(&m.read_line_direct(0)?, &m.read_line_direct(LINE)?)?;
        let corrupt = |what: &str| Err(Error::Corrupt(format!("the pool is damaged: {what}")));
        if header != *self.0.header() {
            return corrupt("its header has changed since it was opened");
        }
        if let Some(index) = missing_part(&mut m, &header)? {
            let device = self.0.devices.number(index);
            return corrupt(&format!("device {device} does not have part {index} of it"));
        }
        let ended = "a log has records of a transaction that has ended";
        for thread in 0..header.layout.threads {
            let (place, bytes) = (header.cpu_log(thread), header.layout.log_bytes);
            if !recovery::is_empty(&m, place, bytes, thread)? {
                return corrupt(ended);
            }
        }
        if header.devices > 1 {
            self.wait_for_peers(&mut m)?;
            match multi_device::refuse_unless_empty(&mut m, &header) {
                Err(Error::Invalid(_)) => return corrupt(ended),
                empty => empty?,
            }
        }
        let loaded = reload_heap(&mut m, &header, self.0.pages.as_deref());
        self.0.pages.iter().for_each(|pages| pages.forget_cached());
        let loaded = loaded?;
        if !self.0.heap().agrees(&loaded) {
            return corrupt("its objects differ from those of the transactions");
        }
        Ok(CheckReport {
            objects: loaded.objects(),
            bytes: header.bytes,
            generation: header.generation,
        })
    }
}
