// SPDX-License-Identifier: Apache-2.0

//! Cycles between the stages of the controller, as the RTL's registers make them. Waiting for
//! resources adds to these.

/// From the bridge to the queues, for a doorbell.
pub(crate) const DOORBELL: u64 = 6;
/// From the arbitration of a command to its read at the host port.
pub(crate) const FETCH: u64 = 10;
/// Between two fetches.
pub(crate) const FETCH_STEP: u64 = 7;
/// Further cycles of an arbitration by class.
pub(crate) const FETCH_CLASSES: u64 = 2;
/// From the arrival of an entry to the data path.
pub(crate) const DECODE: u64 = 4;
/// From the data path's port to the first PRP segment.
pub(crate) const WALK: u64 = 7;
/// From the first page to the next one.
pub(crate) const FIRST_PAGE: u64 = 2;
/// Between two entries of a list.
pub(crate) const PAGE_STEP: u64 = 6;
/// Further cycles of a group that is split into several segments.
pub(crate) const GROUP_SPLIT: u64 = 3;
/// From the walker to the host port, for a read of a list.
pub(crate) const LIST: u64 = 0;
/// From the host port back to the walker.
pub(crate) const LIST_BACK: u64 = 3;
/// From a mover's queue to the channel's multiplexer, for a read.
pub(crate) const READ_ISSUE: u64 = 3;
/// From the channel to the host port, for a beat of the media.
pub(crate) const READ_BACK: u64 = 4;
/// From a mover's queue to the host port, for a read of write data.
pub(crate) const DATA_READ: u64 = 3;
/// From the host port to where bursts of the media are made.
pub(crate) const DATA_BACK: u64 = 4;
/// From there to the channel's multiplexer.
pub(crate) const WRITE_ISSUE: u64 = 2;
/// From a mover's queue to where bursts of zeros are made.
pub(crate) const ZERO: u64 = 3;
/// A page of the admin buffer.
pub(crate) const PAGE: u64 = 8;
/// From the link's acceptance of a burst to the mover.
pub(crate) const HOST_RESPONSE: u64 = 3;
/// From the channel's write response to the mover.
pub(crate) const MEDIA_RESPONSE: u64 = 1;
/// From the end of a transfer's last descriptor to the front end.
pub(crate) const TRANSFER_DONE: u64 = 4;
/// From the cause of a completion to its entry in the queue of posted writes.
pub(crate) const COMPLETE: u64 = 6;
/// Between two completions.
pub(crate) const COMPLETE_STEP: u64 = 5;
/// From an entry to its interrupt message.
pub(crate) const MESSAGE: u64 = 6;
/// An admin command without data.
pub(crate) const ADMIN: u64 = 5;
/// Restoring the defaults of the features.
pub(crate) const DEFAULTS: u64 = 16;
