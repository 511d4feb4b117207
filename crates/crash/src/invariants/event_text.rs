// SPDX-License-Identifier: Apache-2.0

//! Events as text.

use sim::{LineRange, OrderEvent, OrderedCommand};
use spec::nearpm::Operation;

/// The text of a device's event, for a timeline; nothing for an event that only assigns a number.
pub(crate) fn order_event_text(event: &OrderEvent) -> Option<String> {
    use OrderEvent::*;
    Some(match event {
        StoreArrived { lines, .. } => format!("has a store, {}", lines_text(lines)),
        StoreIssued { queued: true, .. } => "keeps a store in its queue".into(),
        StoreReachedMemory { .. } => "brings a store to the memory".into(),
        StorePersisted { .. } => "answers a store".into(),
        QueueLineIssued { channel } => format!("brings a line of queue {channel} to the memory"),
        LoadArrived { lines, .. } => format!("has a load, {}", lines_text(lines)),
        LoadIssued { .. } => "reads for a load".into(),
        LoadServed { .. } => "answers a load".into(),
        CommandAccepted(command) => format!("takes {}", command_text(command)),
        CommandSkipped { number } => format!("has nothing to do for command {number}"),
        CommandStarted { number } => format!("begins command {number}"),
        CommandEnded { number, fine } => {
            let how = if *fine { "" } else { ", with an error" };
            format!("ends command {number}{how}")
        }
        PeerNotified { peer } => format!("tells device number {peer} what it has completed"),
        LogVoid { log, transaction } => format!(
            "deletes the log of pool {} thread {}, transaction {transaction}",
            log >> 4,
            log & 15
        ),
        PowerLost => "has no power any more".into(),
        CommandRestored(command) => format!("has {} back", command_text(command)),
        QueueLineRestored { line, .. } => format!("has a store back, PM {:#x}", line * 64),
        WindowOpened => "has ended all that came back".into(),
        StoreIssued { queued: false, .. } | QueueLineWritten { .. } => return None,
    })
}

pub(super) fn lines_text(lines: &LineRange) -> String {
    match lines.last - lines.first {
        0 => format!("PM {:#x}", lines.first * 64),
        more => format!("PM {:#x}, {} lines", lines.first * 64, more + 1),
    }
}

/// The text of a command: its line, its operation, its pool and thread.
pub(super) fn command_text(command: &OrderedCommand) -> String {
    let operation = Operation::from_number(command.operation);
    let operation = operation.map_or("an operation".into(), |o| format!("{o:?}"));
    format!(
        "command {}, {operation} of pool {} thread {},",
        command.number,
        command.log >> 4,
        command.log & 15
    )
}
