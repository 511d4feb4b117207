// SPDX-License-Identifier: Apache-2.0

//! The host port of the model: accesses as they arrive, with random timing.

use sim::Time;

use super::HostModel;
use crate::link::{HostLink, LinkHost};

impl LinkHost for HostModel {
    fn link(&self) -> &HostLink {
        &self.link
    }

    fn link_mut(&mut self) -> &mut HostLink {
        &mut self.link
    }

    fn write(&mut self, now: Time, addr: u64, data: &[u8]) -> bool {
        self.now = now;
        let accepted = self.link.accepts(now);
        if accepted {
            self.written(now, addr, data);
        }
        accepted
    }

    fn read(&mut self, now: Time, tag: u32, addr: u64, len: u32) {
        let data = self.asked(now, addr, len);
        let timing = self.link.answer_timing(now);
        self.link.send(tag, data.as_deref(), timing, 12);
    }

    fn answered(&mut self, tag: u32, data: Option<Vec<u8>>) {
        self.answer(tag, data);
        self.wake = true;
    }

    fn attention(&self) -> bool {
        self.wake || self.failure.is_some()
    }
}

impl HostModel {
    /// The device has answered a read of its registers or media.
    pub fn answer(&mut self, tag: u32, data: Option<Vec<u8>>) {
        self.messages.answered(tag);
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
