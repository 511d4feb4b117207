// SPDX-License-Identifier: Apache-2.0

//! Asynchronous events (NVMe 1.4, 5.2), and the requests that wait for them.
//!
//! One event of each type is pending or reported. Further ones are masked until the host reads the
//! log with Retain Asynchronous Event 0. An event without a request stays pending; reading its log
//! clears it. A controller that is not ready raises no events.

use nvme::log;
use spec::nvme::{status, Status};

/// Asynchronous Event Requests that can wait (AERL, the number itself).
pub const MAX_PARKED: usize = 4;
/// SMART critical warning "temperature", in Asynchronous Event Configuration and in Critical
/// Warning.
const TEMPERATURE: u32 = 1 << 1;
/// Namespace Attribute Notices, in Asynchronous Event Configuration.
const NAMESPACE_NOTICES: u32 = 1 << 8;

/// An error at a doorbell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoorbellError {
    /// The register is no doorbell: information 00h.
    InvalidRegister,
    /// The value is impossible: information 01h.
    InvalidValue,
}

/// Asynchronous Event Types, in the order of their reports.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EventType {
    Error = 0,
    Smart = 1,
    Notice = 2,
}

impl EventType {
    const ALL: [EventType; 3] = [EventType::Error, EventType::Smart, EventType::Notice];

    fn log(self) -> u8 {
        match self {
            EventType::Error => log::ERROR,
            EventType::Smart => log::SMART,
            EventType::Notice => log::CHANGED_NAMESPACES,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct EventState {
    /// Information of the pending event.
    pending: Option<u8>,
    /// The event was reported, and its log was not read.
    masked: bool,
}

/// Events and requests. `R` identifies a request for the controller.
#[derive(Clone, Debug)]
pub struct Events<R> {
    ready: bool,
    types: [EventState; 3],
    parked: Vec<(u16, R)>,
    /// The temperature is past a threshold.
    outside: bool,
    /// Asynchronous Event Configuration.
    enabled: u32,
    /// The Changed Namespace List has an entry.
    listed: bool,
}

impl<R> Default for Events<R> {
    fn default() -> Events<R> {
        Events {
            ready: false,
            types: [EventState::default(); 3],
            parked: Vec::new(),
            outside: false,
            enabled: 0,
            listed: false,
        }
    }
}

impl<R> Events<R> {
    /// Sets CSTS.RDY.
    pub fn set_ready(&mut self, ready: bool) {
        self.ready = ready;
        if !ready {
            self.types = [EventState::default(); 3];
        }
        self.raise_notice();
    }

    /// Resets the events and returns all requests, the latest first.
    pub fn reset(&mut self) -> Vec<R> {
        self.set_ready(false);
        self.enabled = 0;
        self.listed = false;
        self.parked.drain(..).rev().map(|(_, r)| r).collect()
    }

    /// Raises the event of an error at a doorbell.
    pub fn doorbell(&mut self, what: DoorbellError) {
        let info = match what {
            DoorbellError::InvalidRegister => 0x00,
            DoorbellError::InvalidValue => 0x01,
        };
        self.raise(EventType::Error, info);
    }

    /// Updates composite temperature, its thresholds (over, under) and Asynchronous Event
    /// Configuration. A warning raises an event when it begins.
    pub fn update(&mut self, kelvins: u16, thresholds: (u16, u16), enabled: u32) {
        let before = self.outside && self.enabled & TEMPERATURE != 0;
        self.outside = kelvins >= thresholds.0 || kelvins <= thresholds.1;
        self.enabled = enabled;
        if self.outside && enabled & TEMPERATURE != 0 && !before {
            self.raise(EventType::Smart, 0x01);
        }
        self.raise_notice();
    }

    /// Sets whether the Changed Namespace List has an entry.
    pub fn set_listed(&mut self, listed: bool) {
        self.listed = listed;
        self.raise_notice();
    }

    /// Critical Warning of the SMART log.
    pub fn warning(&self) -> u8 {
        if self.outside {
            TEMPERATURE as u8
        } else {
            0
        }
    }

    /// Clears the event of a log that the host has read with Retain Asynchronous Event 0.
    pub fn log_was_read(&mut self, lid: u8) {
        for kind in EventType::ALL {
            if kind.log() == lid {
                self.types[kind as usize] = EventState::default();
            }
        }
        self.raise_notice();
    }

    /// Parks an Asynchronous Event Request, if there is room.
    pub fn park(&mut self, cid: u16, request: R) -> Result<(), Status> {
        if self.parked.len() >= MAX_PARKED {
            return Err(status::ASYNC_EVENT_REQUEST_LIMIT_EXCEEDED);
        }
        self.parked.push((cid, request));
        Ok(())
    }

    /// Number of parked requests.
    pub fn parked(&self) -> usize {
        self.parked.len()
    }

    /// Whether a request with this identifier is parked.
    pub fn is_parked(&self, cid: u16) -> bool {
        self.parked.iter().any(|p| p.0 == cid)
    }

    /// Removes the request with this identifier, as an Abort does.
    pub fn abort(&mut self, cid: u16) -> Option<R> {
        let at = self.parked.iter().rposition(|p| p.0 == cid)?;
        // The last request takes its place, as in the RTL: the host can see which one the next
        // event completes.
        Some(self.parked.swap_remove(at).1)
    }

    /// An event and a request are available.
    pub fn is_due(&self) -> bool {
        !self.parked.is_empty() && self.types.iter().any(|t| t.pending.is_some())
    }

    /// Reports an event. Returns the latest request, which it completes, and dword 0 of the
    /// completion (5.2). The completion queue has to have room.
    pub fn report(&mut self) -> Option<(R, u32)> {
        let due = |kind: &EventType| self.types[*kind as usize].pending.map(|info| (*kind, info));
        let (kind, info) = EventType::ALL.iter().find_map(due)?;
        let (_, request) = self.parked.pop()?;
        self.types[kind as usize] = EventState {
            pending: None,
            masked: true,
        };
        let dw0 = u32::from(kind.log()) << 16 | u32::from(info) << 8 | kind as u32;
        Some((request, dw0))
    }

    /// Raises a notice while its list has entries.
    fn raise_notice(&mut self) {
        if self.listed && self.enabled & NAMESPACE_NOTICES != 0 {
            self.raise(EventType::Notice, 0x00);
        }
    }

    fn raise(&mut self, kind: EventType, info: u8) {
        let state = &mut self.types[kind as usize];
        if self.ready && state.pending.is_none() && !state.masked {
            state.pending = Some(info);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ERROR_VALUE: u32 = 0x01_0100;
    const ERROR_REGISTER: u32 = 0x01_0000;
    const HOT: u32 = 0x02_0101;
    const CHANGED: u32 = 0x04_0002;
    const LIMITS: (u16, u16) = (343, 0);

    fn events() -> Events<u8> {
        let mut events = Events::default();
        events.doorbell(DoorbellError::InvalidValue);
        events.set_ready(true);
        events
    }

    #[test]
    fn events_of_a_type_are_masked_until_its_log_is_read() {
        let mut e = events();
        for n in 0..3 {
            e.park(n, n as u8).unwrap();
        }
        assert!(e.report().is_none(), "before it was ready there were none");
        e.doorbell(DoorbellError::InvalidValue);
        e.doorbell(DoorbellError::InvalidRegister);
        assert!(e.is_due());
        assert_eq!(e.report(), Some((2, ERROR_VALUE)));
        e.doorbell(DoorbellError::InvalidRegister);
        assert_eq!(e.report(), None);
        e.log_was_read(log::SMART);
        e.doorbell(DoorbellError::InvalidRegister);
        assert_eq!(e.report(), None);
        e.log_was_read(log::ERROR);
        assert_eq!(e.report(), None);
        e.doorbell(DoorbellError::InvalidRegister);
        assert_eq!(e.report(), Some((1, ERROR_REGISTER)));
        e.log_was_read(log::ERROR);
        e.doorbell(DoorbellError::InvalidRegister);
        e.log_was_read(log::ERROR);
        assert!(!e.is_due(), "the log was read before it was reported");
    }

    #[test]
    fn events_are_reported_in_the_order_of_their_types() {
        let mut e = events();
        e.set_listed(true);
        e.update(343, LIMITS, 0x102);
        e.doorbell(DoorbellError::InvalidValue);
        assert!(!e.is_due());
        for n in 0..4 {
            e.park(n, n as u8).unwrap();
        }
        let order: Vec<u32> = std::iter::from_fn(|| e.report()).map(|n| n.1).collect();
        assert_eq!(order, [ERROR_VALUE, HOT, CHANGED]);
    }

    #[test]
    fn event_of_a_warning_is_raised_once_when_it_begins() {
        let mut e = events();
        e.park(0, 0).unwrap();
        e.park(1, 1).unwrap();
        e.update(343, LIMITS, 0);
        assert_eq!((e.warning(), e.is_due()), (2, false));
        e.update(343, LIMITS, 2);
        assert_eq!(e.report(), Some((1, HOT)));
        e.log_was_read(log::SMART);
        e.update(350, LIMITS, 2);
        assert!(!e.is_due(), "it lasts");
        e.update(300, LIMITS, 2);
        assert_eq!(e.warning(), 0);
        e.update(300, (343, 300), 2);
        assert_eq!((e.warning(), e.report()), (2, Some((0, HOT))));
    }

    #[test]
    fn event_notice_repeats_while_the_list_has_entries() {
        let mut e = events();
        e.park(0, 0).unwrap();
        e.park(1, 1).unwrap();
        e.set_listed(true);
        assert!(!e.is_due());
        e.update(298, LIMITS, 0x100);
        assert_eq!(e.report(), Some((1, CHANGED)));
        assert!(!e.is_due());
        e.set_listed(true);
        e.log_was_read(log::CHANGED_NAMESPACES);
        assert_eq!(e.report(), Some((0, CHANGED)));
        e.set_listed(false);
        e.log_was_read(log::CHANGED_NAMESPACES);
        e.park(0, 0).unwrap();
        assert!(!e.is_due());
    }

    #[test]
    fn event_requests_have_a_limit_and_can_be_aborted() {
        let mut e = events();
        for n in 0..4 {
            e.park(n, n as u8).unwrap();
        }
        let limit = e.park(4, 4).unwrap_err();
        assert_eq!(limit, status::ASYNC_EVENT_REQUEST_LIMIT_EXCEEDED);
        assert!(!limit.do_not_retry());
        assert_eq!((e.abort(9), e.abort(1), e.parked()), (None, Some(1), 3));
        assert!(e.is_parked(3) && !e.is_parked(1));
        e.doorbell(DoorbellError::InvalidValue);
        assert_eq!(
            e.report().map(|n| n.0),
            Some(2),
            "3 has taken the place of 1"
        );
        assert_eq!(e.reset(), [3, 0]);
        assert_eq!(e.parked(), 0);
    }
}
