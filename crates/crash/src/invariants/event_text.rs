//! Events as text.

use sim::{Lines, OrderEvent, OrderedCommand};
use spec::nearpm::Operation;

/// The text of a device's event, for a timeline; nothing for an event that only assigns a number.
pub(crate) fn order_event_text(event: &OrderEvent) -> Option<String> {
    use OrderEvent::*;
    Some(match event {
        Store { lines, .. } => format!("has a store, {}", lines_text(lines)),
        Goes { queued: true, .. } => "keeps a store in its queue".into(),
        Reaches { .. } => "brings a store to the memory".into(),
        Kept { .. } => "answers a store".into(),
        Leaves { channel } => format!("brings a line of queue {channel} to the memory"),
        Load { lines, .. } => format!("has a load, {}", lines_text(lines)),
        Reads { .. } => "reads for a load".into(),
        Served { .. } => "answers a load".into(),
        Command(command) => format!("takes {}", command_text(command)),
        Over { number } => format!("has nothing to do for command {number}"),
        Begins { number } => format!("begins command {number}"),
        Ends { number, fine } => {
            let how = if *fine { "" } else { ", with an error" };
            format!("ends command {number}{how}")
        }
        Tells { peer } => format!("tells device number {peer} what it has completed"),
        Void { log, transaction } => format!(
            "deletes the log of pool {} thread {}, transaction {transaction}",
            log >> 4,
            log & 15
        ),
        Fails => "has no power any more".into(),
        Restored(command) => format!("has {} back", command_text(command)),
        RestoredLine { line, .. } => format!("has a store back, PM {:#x}", line * 64),
        Opens => "has ended all that came back".into(),
        Goes { queued: false, .. } | Written { .. } => return None,
    })
}

pub(super) fn lines_text(lines: &Lines) -> String {
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
