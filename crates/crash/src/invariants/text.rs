//! Events as text.

use sim::{LineRange, OrderEvent, OrderedCommand};
use spec::nearpm::Operation;

/// What a device does, for a timeline; what only names something again is left out.
pub(crate) fn of_order(event: &OrderEvent) -> Option<String> {
    use OrderEvent::*;
    Some(match event {
        StoreArrived { lines, .. } => format!("has a store, {}", place(lines)),
        StoreIssued { queued: true, .. } => "keeps a store in its queue".into(),
        StoreReachedMemory { .. } => "brings a store to the memory".into(),
        StorePersisted { .. } => "answers a store".into(),
        QueueLineIssued { channel } => format!("brings a line of queue {channel} to the memory"),
        LoadArrived { lines, .. } => format!("has a load, {}", place(lines)),
        LoadIssued { .. } => "reads for a load".into(),
        LoadServed { .. } => "answers a load".into(),
        CommandAccepted(command) => format!("takes {}", name(command)),
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
        CommandRestored(command) => format!("has {} back", name(command)),
        QueueLineRestored { line, .. } => format!("has a store back, PM {:#x}", line * 64),
        WindowOpened => "has ended all that came back".into(),
        StoreIssued { queued: false, .. } | QueueLineWritten { .. } => return None,
    })
}

pub(super) fn place(lines: &LineRange) -> String {
    match lines.last - lines.first {
        0 => format!("PM {:#x}", lines.first * 64),
        more => format!("PM {:#x}, {} lines", lines.first * 64, more + 1),
    }
}

/// A command, by its line, its operation, and whose it is.
pub(super) fn name(command: &OrderedCommand) -> String {
    let operation = Operation::from_number(command.operation);
    let operation = operation.map_or("an operation".into(), |o| format!("{o:?}"));
    format!(
        "command {}, {operation} of pool {} thread {},",
        command.number,
        command.log >> 4,
        command.log & 15
    )
}
