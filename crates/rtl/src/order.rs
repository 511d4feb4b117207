// SPDX-License-Identifier: Apache-2.0

//! The order in which an engine of the RTL works, for [`OrderWatch`].

use sim::{LineRange, OrderEvent, OrderWatch, OrderedCommand, Time};

use crate::bitstream::{RawOrder, VerilatedModel};

/// Events taken at a time.
const BATCH: usize = 16;

/// Passes on the order events of a model since the last call, all of them at `now`.
pub(crate) fn record_events(model: &mut VerilatedModel, watch: &OrderWatch, now: Time) {
    let mut raw = [RawOrder::default(); BATCH];
    loop {
        let count = model.take_order_events(&mut raw);
        let events = raw[..count.min(BATCH)].iter().filter_map(event);
        events.for_each(|event| watch.record(now, event));
        if count < BATCH {
            return;
        }
    }
}

/// The event with the number of hw/engine/nearpm/rtl/nearpm_order_pkg.sv; `None` for other numbers.
fn event(raw: &RawOrder) -> Option<OrderEvent> {
    let [a, b, c, ..] = raw.values;
    let channel = raw.small as u8;
    let number = raw.small as u8;
    let lines = LineRange { first: a, last: b };
    Some(match raw.kind {
        0 => OrderEvent::StoreArrived { channel, lines },
        1 => OrderEvent::StoreIssued {
            channel,
            number: a as u32,
            queued: b != 0,
        },
        2 => OrderEvent::StoreReachedMemory {
            channel,
            number: a as u32,
        },
        3 => OrderEvent::StorePersisted {
            channel,
            number: a as u32,
        },
        4 => OrderEvent::QueueLineIssued { channel },
        5 => OrderEvent::QueueLineWritten { channel },
        6 => OrderEvent::LoadArrived {
            channel,
            id: c as u32,
            lines,
        },
        7 => OrderEvent::LoadIssued {
            channel,
            id: a as u32,
        },
        8 => OrderEvent::LoadServed {
            channel,
            id: a as u32,
        },
        9 => OrderEvent::CommandAccepted(command(raw)),
        10 => OrderEvent::CommandSkipped { number },
        11 => OrderEvent::CommandStarted { number },
        12 => OrderEvent::CommandEnded {
            number,
            fine: a != 0,
        },
        13 => OrderEvent::LogVoid {
            log: raw.small as u8,
            transaction: a,
        },
        14 => OrderEvent::CommandRestored(command(raw)),
        15 => OrderEvent::QueueLineRestored { channel, line: a },
        16 => OrderEvent::WindowOpened,
        _ => return None,
    })
}

fn command(raw: &RawOrder) -> OrderedCommand {
    let [transaction, reads_first, reads_last, writes_first, writes_last] = raw.values;
    let [number, operation, log, participants] = raw.small.to_le_bytes();
    // An empty range has its first line after its last.
    let lines = |first, last| (first <= last).then_some(LineRange { first, last });
    OrderedCommand {
        number,
        operation,
        log,
        transaction,
        participants,
        reads: lines(reads_first, reads_last),
        writes: lines(writes_first, writes_last),
    }
}
