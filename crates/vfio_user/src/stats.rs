// SPDX-License-Identifier: Apache-2.0

//! Counters of a served device since the start of the server.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter that several threads may advance.
#[derive(Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        #[derive(Default)]
        pub(crate) struct Stats { $(pub(crate) $name: Count,)* }

        impl Stats {
            /// Names and values.
            pub(crate) fn list(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name.get()),)*]
            }
        }
    };
}

counters! {
    connections,
    // Clients that were rejected, as another one had the device.
    refused_clients,
    messages,
    // Messages that were answered with an error, or that ended the connection.
    refused_messages,
    // DMA_MAP messages among them.
    refused_maps,
    register_accesses,
    // Doorbells that arrived through the shared page.
    doorbells,
    bytes_read,
    bytes_written,
    // DMA outside the client's maps, or without bus mastering.
    refused_accesses,
    interrupts,
    resets,
    faults,
}
