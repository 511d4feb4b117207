// SPDX-License-Identifier: Apache-2.0

//! The conflict filter in front of the storage (nearside_filter), as PM window and controller see
//! it. An engine implements it.
//!
//! It holds accesses that conflict with the engine's commands. Channels are those of the storage.

use std::any::Any;

use sim::OrderedCommand;

/// The decision about a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreDecision {
    /// It has no dependency.
    Pass,
    /// Its lines are queued.
    Queue,
    /// The queue has no room for its lines.
    Wait,
}

/// The records that a store needs before it is looked up.
#[derive(Debug, Default)]
pub(crate) struct TrackedStore {
    /// Not all records are in the table: the store waits.
    pub(crate) waits: bool,
    /// Cycles that the store is late; 0: it needs no records.
    pub(crate) cycles: u64,
    /// The records that are new in the table.
    pub(crate) records: Vec<OrderedCommand>,
}

/// The conflict filter of a device. After a change an event `ConflictFilter` is scheduled, at which
/// the waiting accesses are checked again.
pub(crate) trait ConflictFilter: Any + Send {
    /// The filter as its engine knows it.
    fn as_any(&self) -> &dyn Any;

    /// The same, to be changed.
    fn as_any_mut(&mut self) -> &mut dyn Any;

    /// Number of channels.
    fn channels(&self) -> usize;

    /// No access waits, and the engine has no command.
    fn is_idle(&self) -> bool;

    /// PM window and command pages accept nothing.
    fn is_closed(&self) -> bool;

    /// The access overlaps the engine's reserved range.
    fn is_reserved(&self, addr: u64, bytes: u64) -> bool;

    /// A channel has lines that have not been issued.
    fn has_waiting_lines(&self, channel: usize) -> bool;

    /// Has the engine make the records that a store needs in a tracked pool: channel, address and
    /// bytes of a store that has come at the edge `from`.
    fn track_store(&mut self, store: (usize, u64, u64), from: u64) -> TrackedStore;

    /// Decides about a store to a channel, which may be one of another memory.
    fn check_store(&self, channel: usize, addr: u64, bytes: u64) -> StoreDecision;

    /// Queues the lines of a store, whose data are available at an edge. The store is answered
    /// then.
    fn queue_store(&mut self, channel: usize, addr: u64, data: &[u8], from: u64, number: u32);

    /// Takes a queued store whose answer is due.
    fn next_answer(&mut self, now: u64) -> Option<u32>;

    /// The number of PM window stores that have been answered in order.
    fn set_answered_stores(&mut self, stores: u64);

    /// True: a load may go to its channel, which may be one of another memory. Otherwise it is
    /// kept.
    fn check_load(&mut self, channel: usize, addr: u64, bytes: u64, number: u32) -> bool;

    /// True: an access of the NVMe controller may start. Otherwise it is checked again after the
    /// next end of a command or line.
    fn admit_nvme(&mut self, write: bool, channel: usize, addr: u64, bytes: u64) -> bool;

    /// A write of the controller has passed.
    fn nvme_write_issued(&mut self, channel: usize);

    /// The media have answered a write of the controller.
    fn nvme_write_done(&mut self, channel: usize);
}
