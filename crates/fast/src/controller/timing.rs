//! Cycles from one stage to the next, as the RTL's registers make them; what waits for a resource waits besides.

/// A doorbell, from the bridge to the queues.
pub(crate) const DOORBELL: u64 = 6;
/// Choice and lookups of a command that is to be fetched, until its read leaves.
pub(crate) const FETCH: u64 = 10;
/// From one command that is fetched to the next.
pub(crate) const FETCH_STEP: u64 = 7;
/// Classes are looked at before queues.
pub(crate) const FETCH_CLASSES: u64 = 2;
/// From the entry's arrival to the data path.
pub(crate) const DECODE: u64 = 4;
/// From the data path's port to the first piece.
pub(crate) const WALK: u64 = 7;
/// From the first page to what comes behind it.
pub(crate) const FIRST_PAGE: u64 = 2;
/// From one entry of a list to the next one.
pub(crate) const PAGE_STEP: u64 = 6;
/// More, where parts wait for each other.
pub(crate) const GROUP_SPLIT: u64 = 3;
/// A list read, from the walker to the host port.
pub(crate) const LIST: u64 = 0;
/// And back.
pub(crate) const LIST_BACK: u64 = 3;
/// A job, from its mover's queue to the channel's multiplexer.
pub(crate) const READ_ISSUE: u64 = 3;
/// A beat of the media, to the host port.
pub(crate) const READ_BACK: u64 = 4;
/// A read of host data, from the mover's queue to the host port.
pub(crate) const DATA_READ: u64 = 3;
/// Its data, to where a burst is begun.
pub(crate) const DATA_BACK: u64 = 4;
/// A burst, to the channel's multiplexer.
pub(crate) const WRITE_ISSUE: u64 = 2;
/// Zeros, to where a burst is begun.
pub(crate) const ZERO: u64 = 3;
/// A page of the admin buffer.
pub(crate) const PAGE: u64 = 8;
/// The link has taken a burst: its response, to the mover.
pub(crate) const HOST_RESPONSE: u64 = 3;
/// And the media's, from the channel's multiplexer.
pub(crate) const MEDIA_RESPONSE: u64 = 1;
/// The end of a transfer's last job, to the front end.
pub(crate) const TRANSFER_DONE: u64 = 4;
/// A completion, from its cause to its entry in the line.
pub(crate) const COMPLETE: u64 = 6;
/// From one completion to the next.
pub(crate) const COMPLETE_STEP: u64 = 5;
/// A message behind its entry.
pub(crate) const MESSAGE: u64 = 6;
/// An admin command without data.
pub(crate) const ADMIN: u64 = 5;
/// Setting features back.
pub(crate) const DEFAULTS: u64 = 16;
