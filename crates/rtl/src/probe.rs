// SPDX-License-Identifier: Apache-2.0

//! Watches the trace ports of a device, and reports what they show after each clock edge.

use sim::{Time, TraceEvent, Tracer};

use crate::axi::AxiPorts;
use crate::bitstream::{Field, VerilatedModel};
use crate::error::{Error, Result};

// Events of `trace_event_o`, see hw/ip/nvme_ctrl/rtl/front_end/nvme_trace.sv.
const FETCH: u64 = 1 << 0;
const DECODE: u64 = 1 << 1;
const START: u64 = 1 << 2;
const DONE: u64 = 1 << 3;
const POST: u64 = 1 << 4;
const RETIRE: u64 = 1 << 5;
const MESSAGE: u64 = 1 << 6;
const EVENTS: u64 = 0xFF;

/// The trace ports, and their values at the last edge.
pub(crate) struct TraceProbe {
    tracer: Tracer,
    event: Field,
    sqe: Field,
    cqe: Field,
    irq: Field,
    job: Field,
    read: Field,
    data: Field,
    beat: Field,
    last: [u64; 5], // event bits, job bits, reads, first data, data
}

impl TraceProbe {
    /// On the ports of a device; an error when it has none.
    pub(crate) fn new(model: &VerilatedModel, tracer: Tracer) -> Result<TraceProbe> {
        let field = |name: &str, bits: u32| {
            let field = model.field(name)?;
            if field.bits() != bits && bits != 0 {
                let text = format!("port `{name}` must have {bits} bits");
                return Err(Error::Port(text));
            }
            Ok(field)
        };
        let mut probe = TraceProbe {
            tracer,
            event: field("trace_event_o", 64)?,
            sqe: field("trace_sqe_o", 192)?,
            cqe: field("trace_cqe_o", 192)?,
            irq: field("trace_irq_o", 16)?,
            job: field("trace_job_o", 40)?,
            read: field("trace_read_o", 0)?,
            data: field("trace_data_o", 0)?,
            beat: field("trace_beat_o", 0)?,
            last: [0; 5],
        };
        probe.changes(model);
        Ok(probe)
    }

    /// What has changed since the last call.
    fn changes(&mut self, model: &VerilatedModel) -> [u64; 5] {
        let now = [
            model.get(self.event) & EVENTS,
            model.get(self.job) & EVENTS,
            model.get(self.read),
            model.get(self.data),
            model.get(self.beat),
        ];
        let before = std::mem::replace(&mut self.last, now);
        std::array::from_fn(|i| now[i] ^ before[i])
    }

    /// Before the edge at `now`: what its handshakes at the host port will be.
    pub(crate) fn record_port_handshakes(
        &self,
        model: &VerilatedModel,
        host: &AxiPorts,
        now: Time,
    ) {
        if !self.tracer.wants_ports() {
            return;
        }
        let both = |valid, ready| model.is(valid) && model.is(ready);
        if both(host.ar.valid, host.ar.ready) {
            let addr = host.ar.get(model).addr;
            self.tracer.record(now, &TraceEvent::HostRead { addr });
        }
        if both(host.r.valid, host.r.ready) {
            self.tracer.record(now, &TraceEvent::HostData);
        }
        if both(host.w.valid, host.w.ready) {
            self.tracer.record(now, &TraceEvent::HostWrite);
        }
    }

    /// After the edge at `now`; the one before it was at `earlier`.
    pub(crate) fn record_changes(&mut self, model: &VerilatedModel, now: Time, earlier: Time) {
        let [events, jobs, reads, data, beats] = self.changes(model);
        // A decoded command shows one cycle late, so it may come after the event of its start. It
        // is reported first.
        if events & DECODE != 0 {
            self.tracer.record(earlier, &self.decoded_command(model));
        }
        if events & !DECODE != 0 {
            self.record_front_end(model, events, now);
        }
        if jobs != 0 {
            let port = model.get(self.job);
            for direction in 0..2 {
                if jobs >> direction & 1 != 0 {
                    let slot = (port >> (8 + 8 * direction)) as u8;
                    let mover = (port >> (24 + 8 * direction)) as u8;
                    let event = TraceEvent::Segment {
                        slot,
                        mover,
                        to_media: direction == 1,
                    };
                    self.tracer.record(now, &event);
                }
            }
        }
        for mover in bits(reads) {
            self.tracer.record(now, &TraceEvent::Read { mover });
        }
        if self.tracer.wants_ports() {
            for mover in bits(beats) {
                self.tracer.record(now, &TraceEvent::Beat { mover });
            }
        }
        for mover in bits(data) {
            self.tracer.record(now, &TraceEvent::Data { mover });
        }
    }

    fn record_front_end(&self, model: &VerilatedModel, events: u64, now: Time) {
        let port = model.get(self.event);
        let slot = |at: u32| (port >> at) as u8;
        let irq = model.get(self.irq);
        if events & FETCH != 0 {
            let event = TraceEvent::Fetch {
                queue: (port >> 8) as u16 & 0xFF,
                head: (port >> 16) as u16,
                slot: slot(32),
            };
            self.tracer.record(now, &event);
        }
        if events & START != 0 {
            let slot = slot(56);
            self.tracer.record(now, &TraceEvent::Started { slot });
        }
        if events & DONE != 0 {
            let slot = slot(48);
            self.tracer.record(now, &TraceEvent::Done { slot });
        }
        if events & POST != 0 {
            self.tracer.record(now, &TraceEvent::Post);
        }
        let mut cqe = [0; 24];
        if events & (RETIRE | MESSAGE) != 0 {
            model.read(self.cqe, &mut cqe);
        }
        let (entry, addr) = cqe.split_at(16);
        let addr = u64::from_le_bytes(addr.try_into().unwrap_or_default());
        if events & RETIRE != 0 {
            let event = TraceEvent::Sent {
                slot: slot(40),
                addr,
                entry: entry.try_into().unwrap_or_default(),
                vector: (irq & 0x80 != 0).then_some(irq as u8 & 0x7F),
            };
            self.tracer.record(now, &event);
        }
        if events & MESSAGE != 0 {
            let event = TraceEvent::Message {
                vector: (irq >> 8) as u8,
                addr,
                data: u32::from_le_bytes([cqe[0], cqe[1], cqe[2], cqe[3]]),
            };
            self.tracer.record(now, &event);
        }
    }

    fn decoded_command(&self, model: &VerilatedModel) -> TraceEvent {
        let mut sqe = [0; 24];
        model.read(self.sqe, &mut sqe);
        let word = |n: usize| {
            let at = 4 * n;
            u32::from_le_bytes([sqe[at], sqe[at + 1], sqe[at + 2], sqe[at + 3]])
        };
        TraceEvent::Decoded {
            queue: u16::from(sqe[0]),
            slot: sqe[1],
            opcode: sqe[2],
            cid: word(1) as u16,
            nsid: word(2),
            cdw: [word(3), word(4), word(5)],
        }
    }
}

/// The numbers of the bits that are 1.
fn bits(mut word: u64) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let place = (word != 0).then(|| word.trailing_zeros() as u8)?;
        word &= word - 1;
        Some(place)
    })
}
