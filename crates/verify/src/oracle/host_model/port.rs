// SPDX-License-Identifier: Apache-2.0

//! The host port of the model: accesses as they arrive, with random timing.

use sim::{HostPort, Mmio, ReadData, Time};

use super::HostModel;

impl HostPort for HostModel {
    fn write(&mut self, now: Time, addr: u64, data: &[u8]) -> bool {
        self.now = now;
        if now < self.stall {
            return false;
        }
        if self.random.below(256) == 0 {
            self.stall = now + Time::ns(self.random.below(300));
            return false;
        }
        self.written(now, addr, data);
        true
    }

    fn read(&mut self, now: Time, tag: u32, addr: u64, len: u32) -> bool {
        let data = self.asked(now, addr, len);
        let mut time = now + Time::ns(100 + self.random.below(400));
        let Some(data) = data else {
            self.sequence += 1;
            self.data.insert(
                (time, self.sequence),
                ReadData {
                    tag,
                    data: None,
                    last: true,
                },
            );
            return true;
        };
        let piece = 64 << self.random.below(4);
        let pieces = data.chunks(piece).count();
        for (n, chunk) in data.chunks(piece).enumerate() {
            self.sequence += 1;
            let answer = ReadData {
                tag,
                data: Some(chunk.to_vec()),
                last: n + 1 == pieces,
            };
            self.data.insert((time, self.sequence), answer);
            time += Time::ns(self.random.below(12));
        }
        true
    }

    fn mmio_part(&mut self, _now: Time, tag: u32, data: Vec<u8>) {
        self.parts.add(tag, data);
    }

    fn mmio_data(&mut self, _now: Time, tag: u32, data: Option<Vec<u8>>) {
        self.answer(tag, data);
        self.wake = true;
    }

    fn mmio(&mut self, now: Time) -> Option<Mmio> {
        if self.mmio.front()?.0 > now {
            return None;
        }
        self.mmio.pop_front().map(|(_, access)| access)
    }

    fn read_data(&mut self, now: Time) -> Option<ReadData> {
        let first = self.data.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    fn next_mmio(&self) -> Option<Time> {
        self.mmio.front().map(|m| m.0)
    }

    fn next_data(&self) -> Option<Time> {
        self.data.first_key_value().map(|(k, _)| k.0)
    }

    fn refused_until(&self) -> Time {
        self.stall
    }

    fn attention(&self) -> bool {
        self.wake || self.failure.is_some()
    }
}

impl HostModel {
    /// The device has answered a read of its registers or media.
    pub fn answer(&mut self, tag: u32, data: Option<Vec<u8>>) {
        self.messages.answered(tag);
        let data = self.parts.end(tag, data);
        self.answers.push((tag, data));
    }

    /// The device has written something.
    pub fn written(&mut self, now: Time, addr: u64, data: &[u8]) {
        self.tick(now);
        if self.silent {
            self.fail(format!(
                "a write of {} bytes at {addr:#x} at {now}, after CSTS said silence",
                data.len()
            ));
        }
        if let Err(text) = self.handle_write(addr, data) {
            self.fail(format!("at {now}: {text}"));
        }
    }

    /// The device has read something; `None` if there is no memory.
    pub fn asked(&mut self, now: Time, addr: u64, len: u32) -> Option<Vec<u8>> {
        self.tick(now);
        if self.silent {
            self.fail(format!(
                "a read of {len} bytes at {addr:#x} at {now}, after CSTS said silence"
            ));
        }
        self.handle_read(addr, len).unwrap_or_else(|text| {
            self.fail(format!("at {now}: {text}"));
            None
        })
    }

    /// Advances the time of the model to an access of the device.
    fn tick(&mut self, now: Time) {
        self.now = now;
        if !self.model.closing && self.may_have_expired(now) {
            self.may_stop();
        }
    }

    /// Clears the wake-up of the host.
    pub fn clear_wake(&mut self) {
        self.wake = false;
    }

    /// True if the host was woken.
    pub fn woken(&self) -> bool {
        self.wake
    }
}
