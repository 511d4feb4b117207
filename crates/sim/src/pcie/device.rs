// SPDX-License-Identifier: Apache-2.0

//! The device's side of a link.

use super::credits::credit_bytes;
use super::tlp::{split_at_boundaries, DeviceRead, ReadRequest, UpstreamKind, UpstreamTlp};
use super::wire::{dwords, request_overhead, COMPLETION};
use super::Link;
use crate::{HostPort, Mmio, ReadData, Time};

/// Length of the list of accesses that the device has accepted.
const TAKEN: usize = 256;

impl HostPort for Link {
    fn write(&mut self, now: Time, addr: u64, data: &[u8]) -> bool {
        if self.up.free > now + self.tx_buffer {
            self.refused.refused_wire += 1;
            self.refused_until = Time(self.up.free.0 - self.tx_buffer.0);
            return false;
        }
        let unit = self.config.max_payload_bytes;
        let (mut headers, mut bytes) = (0, 0);
        for (_, _, len) in split_at_boundaries(addr, data.len(), unit) {
            headers += 1;
            bytes += credit_bytes(len);
        }
        if !self.posted.consume(now, headers, bytes) {
            self.refused.refused_credit += 1;
            self.refused_until = self.posted.available(headers, bytes).unwrap_or(Time::MAX);
            return false;
        }
        let unit = unit as usize;
        for (at, from, len) in split_at_boundaries(addr, data.len(), self.config.max_payload_bytes)
        {
            let slot = self.free_slots.pop().unwrap_or_else(|| {
                let slot = self.slots.len() / unit;
                self.slots.resize(self.slots.len() + unit, 0);
                slot as u32
            });
            let place = slot as usize * unit;
            self.slots[place..place + len].copy_from_slice(&data[from..from + len]);
            let start = self.up.free.max(now);
            let arrival = self.up.send(now, dwords(at, len), request_overhead(at)) + self.latency;
            self.up_queue.push_back(UpstreamTlp {
                arrival,
                start,
                kind: UpstreamKind::Write {
                    addr: at,
                    slot,
                    len: len as u32,
                },
            });
        }
        true
    }

    fn read(&mut self, now: Time, tag: u32, addr: u64, len: u32) -> bool {
        debug_assert!(len > 0, "a read of no bytes");
        // Read requests have a separate buffer, so that a stream of writes does not block them.
        while self.tx_requests.front().is_some_and(|&start| start <= now) {
            self.tx_requests.pop_front();
        }
        if self.tx_requests.len() >= self.config.device_tx_requests as usize {
            self.refused.refused_wire += 1;
            self.refused_until = self.tx_requests.front().copied().unwrap_or(now);
            return false;
        }
        let unit = self.config.max_read_request_bytes;
        let requests = split_at_boundaries(addr, len as usize, unit).count() as u32;
        if self.free_tags < requests || self.free_buffer < len {
            self.refused.refused_tag += 1;
            // Tags and buffer space are freed when the device takes data.
            self.refused_until = self.next_data().unwrap_or(Time::MAX);
            return false;
        }
        if !self.nonposted.consume(now, requests, 0) {
            self.refused.refused_credit += 1;
            self.refused_until = self.nonposted.available(requests, 0).unwrap_or(Time::MAX);
            return false;
        }
        self.free_tags -= requests;
        if self.config.device_completion_bytes != 0 {
            self.free_buffer -= len;
        }
        let state = DeviceRead {
            tag,
            failed: false,
            ready: Time::ZERO,
            answered: 0,
            early: Vec::new(),
            live: true,
        };
        let read = match self.free_reads.pop() {
            Some(read) => {
                self.reads[read as usize] = state;
                read
            }
            None => {
                self.reads.push(state);
                self.reads.len() as u32 - 1
            }
        };
        for (place, (at, from, part)) in (0..).zip(split_at_boundaries(addr, len as usize, unit)) {
            let start = self.up.free.max(now);
            self.tx_requests.push_back(start);
            let arrival = self.up.send(now, 0, request_overhead(at)) + self.latency;
            let kind = UpstreamKind::Read(ReadRequest {
                addr: at,
                len: part as u32,
                read,
                place,
                last: from + part == len as usize,
            });
            self.up_queue.push_back(UpstreamTlp {
                arrival,
                start,
                kind,
            });
        }
        true
    }

    fn mmio_part(&mut self, now: Time, tag: u32, data: Vec<u8>) {
        if !self.unanswered.contains(&tag) {
            return;
        }
        // The bridge may be built for a larger payload than the link's.
        for part in data.chunks(self.config.max_payload_bytes as usize) {
            self.send_answer(now, tag, Some(part.to_vec()), false);
        }
    }

    fn mmio_data(&mut self, now: Time, tag: u32, data: Option<Vec<u8>>) {
        let Some(place) = self.unanswered.iter().position(|&t| t == tag) else {
            return;
        };
        self.unanswered.swap_remove(place);
        let Some(mut data) = data else {
            self.send_answer(now, tag, None, true);
            return;
        };
        let unit = self.config.max_payload_bytes as usize;
        while data.len() > unit {
            let rest = data.split_off(unit);
            self.send_answer(now, tag, Some(data), false);
            data = rest;
        }
        self.send_answer(now, tag, Some(data), true);
    }

    #[inline]
    fn mmio(&mut self, now: Time) -> Option<Mmio> {
        if self.in_mmio.front()?.0 > now {
            return None;
        }
        let (_, mmio) = self.in_mmio.pop_front()?;
        self.up.acknowledge(now, &self.config);
        if let Some(taken) = &mut self.taken {
            if taken.len() == TAKEN {
                taken.pop_front();
            }
            taken.push_back((now, mmio.clone()));
        }
        match &mmio {
            Mmio::Write { data, .. } => {
                self.marks.taken(now);
                self.device_posted
                    .return_credits(now + self.latency, 1, credit_bytes(data.len()))
            }
            Mmio::Read { tag, .. } => {
                self.device_nonposted
                    .return_credits(now + self.latency, 1, 0);
                self.unanswered.push(*tag);
            }
        }
        Some(mmio)
    }

    #[inline]
    fn read_data(&mut self, now: Time) -> Option<ReadData> {
        while self.in_data.front()?.at <= now {
            let arrived = self.in_data.pop_front()?;
            self.up.acknowledge(now, &self.config);
            if arrived.ends_request {
                self.free_tags += 1;
                if self.config.device_completion_bytes != 0 {
                    self.free_buffer += arrived.frees;
                }
            }
            if arrived.piece.is_some() {
                return arrived.piece;
            }
        }
        None
    }

    #[inline]
    fn next_mmio(&self) -> Option<Time> {
        self.in_mmio.front().map(|mmio| mmio.0)
    }

    #[inline]
    fn next_data(&self) -> Option<Time> {
        self.in_data.front().map(|data| data.at)
    }

    #[inline]
    fn refused_until(&self) -> Time {
        self.refused_until
    }

    /// Never: the scheduler lets a device run at most one link latency ahead, and checks the host
    /// in between.
    #[inline]
    fn attention(&self) -> bool {
        false
    }
}

impl Link {
    /// Puts a completion of an MMIO read on the wire.
    fn send_answer(&mut self, now: Time, tag: u32, data: Option<Vec<u8>>, last: bool) {
        let start = self.up.free.max(now);
        let payload = data.as_ref().map_or(0, |d| (d.len() as u64 + 3) & !3);
        let arrival = self.up.send(now, payload, COMPLETION) + self.latency;
        let kind = UpstreamKind::Answer { tag, data, last };
        self.up_queue.push_back(UpstreamTlp {
            arrival,
            start,
            kind,
        });
    }
}
