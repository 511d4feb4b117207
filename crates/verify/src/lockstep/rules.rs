// SPDX-License-Identifier: Apache-2.0

//! Permitted differences between two correct devices: each rule, its extent, and its source. After
//! a step with such a difference, the state is made the same in both devices.
//!
//! - Times, except for means (`timed`). `crates/fast/tests/delay.rs` and `channel.rs` compare
//!   them.
//! - Order of completions of I/O commands, and order and number of their messages, within a
//!   burst. NVM Express 1.4, 4.1: commands are processed in any order. MSI-X pending bits merge.
//! - SQHD, within a burst on the queue. 4.6.1: its value is that at the creation of the
//!   completion.
//! - Order of entries in the error log, and their phases, if they belong to one burst. 5.14.1.1:
//!   in the order of completions.
//! - Blocks that two commands of a step write, or that a failing command writes. Each block is
//!   atomic and holds a written content or the old one (`docs/hardware/nvme_ctrl_data_path.md`,
//!   "A logical block is atomic").
//! - Data and status of a Read or Compare beside a Write of the same blocks: by the same section.
//! - Buffers of failing commands. 4.1: their content is undefined.
//! - A Compare with an error in its SGL and other data may report either error, as in
//!   `oracle`.
//! - Whether a command of an Abort, or of a deleted queue, was in time: status and dword 0. For a
//!   deleted queue this includes the existence of the completion and its message. 5.1: best
//!   effort; `docs/hardware/nvme_ctrl.md`, "Abort".
//! - Which commands a reset has cut off: completions, blocks as above, SMART and error log until
//!   the next reset of the function. 7.3.2; `docs/hardware/nvme_ctrl.md`.
//! - EventIdx of heads, and EventIdx of a queue that was deleted during its work. A head is read
//!   when a command waits for room (`docs/hardware/nvme_ctrl.md`, "Shadow doorbells").
//! - Pending bits and messages of masked vectors while shadow doorbells are in use. A queue is
//!   known to be empty only when its head is read (`docs/hardware/nvme_ctrl.md`, "Left out").
//! - Addresses and data in the MSI-X table, after a reset of the function and before they are
//!   written. PCI Express 4.0, 7.7.2.5 to 7.7.2.7: no default. The mask bit (7.7.2.8) has one,
//!   and is compared.
//! - Cycles in reports of lists, as they are times.
//! - Timestamp, by 1 ms. 5.21.1.14: a command is fetched some cycles earlier or later.
//! - Return value and outputs of registers, and written data, of a job that was stopped or cut by
//!   a reset. Outputs also after a return value other than 0, and a target also if the job
//!   extends beyond the media. `copy` and `scan` write whole pieces from the start on: each line,
//!   or byte of a bitmap, is old or new.
//! - Counters of `nvm_delay`, if jobs or commands failed or were cut off since they were cleared.
//!   The progress of a transfer depends on timing.

use nvme::log::GetLogPage;
use spec::nvme::{admin, feature, status, Sqe, Status};

use crate::lockstep::host_state::HostState;

/// Bytes of an entry of the error log.
const ENTRY: usize = 64;
/// Entries of the error log.
const ENTRIES: usize = 64;
/// Bytes of SMART that commands do not affect: temperature, spare, usage.
const SMART_FIXED: usize = 32;

/// Rule for the comparison of a command's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataRule {
    /// Byte by byte.
    Same,
    /// As an error log with some unordered entries.
    ErrorLog,
    /// As a SMART log with undetermined counts.
    Smart,
    /// As a time.
    Timestamp,
}

/// The rule for the data of a successful command.
pub fn of_data(sqid: u16, sqe: &Sqe, state: &HostState) -> DataRule {
    if sqid != 0 {
        return DataRule::Same;
    }
    match sqe.opcode() {
        admin::GET_LOG_PAGE => match GetLogPage::of(sqe).lid {
            1 if !state.groups.is_empty() || state.loose_logs => DataRule::ErrorLog,
            2 if state.loose_logs => DataRule::Smart,
            _ => DataRule::Same,
        },
        admin::GET_FEATURES if sqe.dw[10] as u8 == feature::TIMESTAMP => DataRule::Timestamp,
        _ => DataRule::Same,
    }
}

/// Compares data by a rule.
pub fn compare(
    rule: DataRule,
    sqe: &Sqe,
    data: &[Vec<u8>; 2],
    state: &HostState,
) -> Result<(), String> {
    let [a, b] = data;
    let fine = match rule {
        DataRule::Same => a == b,
        DataRule::Timestamp => same_time(a, b),
        // NVM Express 1.4, 5.14.1.2: counts of commands, of which a reset has ended some.
        DataRule::Smart => {
            let skip = GetLogPage::of(sqe).offset as usize;
            let fixed = SMART_FIXED.saturating_sub(skip).min(a.len());
            a[..fixed] == b[..fixed]
        }
        DataRule::ErrorLog => same_errors(sqe, a, b, state),
    };
    match fine {
        true => Ok(()),
        false => Err(format!(
            "data of {:08x?} differ: {}",
            sqe.dw,
            first_difference(a, b)
        )),
    }
}

/// Compares elapsed milliseconds: concurrent commands may be fetched at different times.
fn same_time(a: &[u8], b: &[u8]) -> bool {
    let ms = |data: &[u8]| {
        let bytes = data.iter().take(6).rev();
        bytes.fold(0u64, |value, &byte| value << 8 | u64::from(byte))
    };
    ms(a).abs_diff(ms(b)) <= 1 && a.get(6..) == b.get(6..)
}

/// Compares error logs. The log has the order of the completions (5.14.1.1), and concurrent
/// commands complete in any order (4.1).
fn same_errors(sqe: &Sqe, a: &[u8], b: &[u8], state: &HostState) -> bool {
    let offset = GetLogPage::of(sqe).offset as usize;
    if state.loose_logs || offset % ENTRY != 0 || a.len() % ENTRY != 0 {
        return true;
    }
    entries(a, state) == entries(b, state)
}

/// The entries. Those of an unordered group are a sorted set without numbers and phases. A group
/// that the log holds in part is left out.
fn entries(data: &[u8], state: &HostState) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let mut groups: Vec<Vec<Vec<u8>>> = vec![Vec::new(); state.groups.len()];
    for entry in data.chunks(ENTRY) {
        let number = entry
            .iter()
            .take(8)
            .rev()
            .fold(0u64, |n, &b| n << 8 | u64::from(b));
        match state
            .groups
            .iter()
            .position(|group| group.contains(&number))
        {
            None => out.push(entry.to_vec()),
            Some(group) => {
                let mut entry = entry[8..].to_vec();
                // The phase.
                entry[4] &= !1;
                groups[group].push(entry);
            }
        }
    }
    for (range, mut group) in state.groups.iter().zip(groups) {
        if group.len() as u64 == range.end - range.start {
            group.sort();
            out.extend(group);
        }
    }
    out
}

/// Drops groups that the log holds no more.
pub fn forget_old(state: &mut HostState) {
    let oldest = state.errors.saturating_sub(ENTRIES as u64);
    state.groups.retain(|group| group.end > oldest);
}

/// True for the status of a command that has written nothing: it was refused before its data moved.
/// For others each block is old or new (`docs/hardware/nvme_ctrl_data_path.md`, "A logical block is
/// atomic").
pub fn changes_nothing(of: Status) -> bool {
    let bare = of.bare();
    let refused = [
        status::INVALID_OPCODE,
        status::INVALID_FIELD,
        status::INVALID_NAMESPACE_OR_FORMAT,
        status::LBA_OUT_OF_RANGE,
        status::FORMAT_IN_PROGRESS,
        status::ABORTED_FAILED_FUSED,
        status::ABORTED_MISSING_FUSED,
    ];
    refused.iter().any(|r| r.bare() == bare)
}

/// The name of a status in reports.
pub fn status(of: Status) -> String {
    match of.is_success() {
        true => "ok".into(),
        false => format!("{:x}/{:02x}", of.type_code(), of.code()),
    }
}

/// Compares EventIdx pages of idle devices. EventIdx of tails are equal, except for a queue that
/// was deleted during its work. EventIdx of heads show whether a command has waited for room, which
/// depends on timing (`docs/hardware/nvme_ctrl.md`, "Shadow doorbells").
pub fn same_event_idx(a: &[u8], b: &[u8], deleted: Option<u16>) -> bool {
    let mut pairs = (0..).zip(a.chunks(8).zip(b.chunks(8)));
    pairs.all(|(qid, (a, b)): (u16, _)| a[..4] == b[..4] || deleted == Some(qid))
}

/// Describes the first difference of two contents.
pub fn first_difference(a: &[u8], b: &[u8]) -> String {
    if a.len() != b.len() {
        return format!("{} bytes and {}", a.len(), b.len());
    }
    let at = a.iter().zip(b).position(|(a, b)| a != b).unwrap_or(0);
    let near = at / 16 * 16..(at / 16 * 16 + 16).min(a.len());
    format!("at {at:#x}: {:02x?}, {:02x?}", &a[near.clone()], &b[near])
}
