// SPDX-License-Identifier: Apache-2.0

//! Features (NVMe 1.4, 5.21): the values of Set and Get Features. A reset of the controller
//! restores the defaults.

use std::sync::Arc;

use nvme::feature::{
    self, capability, select, Arbitration, Coalescing, FeatureRequest, Threshold, Vector,
};
use nvme::Namespaces;
use spec::nvme::feature::*;
use spec::nvme::{status, Status, Weights, ALL_NAMESPACES};

use super::smart::{Uptime, WARNING_TEMPERATURE};

/// Arbitration: no limit on the burst.
const DEFAULT_ARBITRATION: u32 = 7;
/// Threshold Temperature Select of Set Features: all sensors.
const ALL_SENSORS: u32 = 0xF;
/// Bits of the Timestamp.
const TIMESTAMP_MASK: u64 = (1 << 48) - 1;
/// Timestamp Origin: set by the host (figure 291), at its place in the data structure.
const SET_BY_HOST: u64 = 1 << (48 + 1);

/// Data that a Set Features needs from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureData {
    /// A Timestamp, for [`Features::set_timestamp`].
    Timestamp,
    /// Host Behavior Support, for [`Features::set_behavior`].
    Behavior,
}

impl FeatureData {
    /// Bytes of the data.
    pub fn bytes(self) -> u64 {
        match self {
            FeatureData::Timestamp => feature::TIMESTAMP_BYTES,
            FeatureData::Behavior => feature::BEHAVIOR_BYTES,
        }
    }
}

/// The next step of a valid Set or Get Features.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeatureOutcome {
    /// It ends with this dword 0.
    Done(u32),
    /// A Keep Alive Timeout was set. The timer restarts when the command completes.
    KeepAlive,
    /// The host's data is needed first.
    NeedsData(FeatureData),
    /// These bytes are sent to the host.
    SendsData(Vec<u8>),
}

/// Values of all features.
#[derive(Clone, Debug)]
pub struct Features {
    io_queues: u16,
    namespaces: Arc<Namespaces>,
    arbitration: u32,
    power: u32,
    over_threshold: u32,
    under: u32,
    /// By namespace.
    recovery: Vec<u32>,
    coalescing: u32,
    /// By vector.
    uncoalesced: Vec<bool>,
    atomicity: u32,
    events: u32,
    keep_alive: u32,
    acre: bool,
    /// The Timestamp at `since`, and whether the host has set it.
    timestamp: u64,
    since: u64,
    by_host: bool,
}

impl Features {
    /// The features of a controller with `io_queues` I/O queue pairs at power-on.
    pub fn new(io_queues: u16, namespaces: Arc<Namespaces>) -> Features {
        Features {
            io_queues,
            recovery: vec![0; namespaces.count() as usize],
            namespaces,
            arbitration: DEFAULT_ARBITRATION,
            power: 0,
            over_threshold: WARNING_TEMPERATURE.into(),
            under: 0,
            coalescing: 0,
            uncoalesced: vec![false; usize::from(io_queues) + 1],
            atomicity: 0,
            events: 0,
            keep_alive: 0,
            acre: false,
            timestamp: 0,
            since: 0,
            by_host: false,
        }
    }

    /// Restores all defaults. The Timestamp counts from 0.
    pub fn reset(&mut self, now: Uptime) {
        *self = Features {
            since: now.cycles,
            ..Features::new(self.io_queues, self.namespaces.clone())
        };
    }

    /// Set Features. `queues_exist`: there is an I/O queue.
    pub fn set(
        &mut self,
        cdw10: u32,
        cdw11: u32,
        nsid: u32,
        queues_exist: bool,
    ) -> Result<FeatureOutcome, Status> {
        let request = FeatureRequest {
            set: true,
            cdw10,
            cdw11,
            nsid,
        };
        self.check(request, queues_exist)?;
        let fid = request.fid();
        let value = cdw11 & feature::mask(fid);
        match fid {
            ARBITRATION => self.arbitration = value,
            POWER_MANAGEMENT => self.power = value,
            TEMPERATURE_THRESHOLD if Threshold(cdw11).kind() == 1 => self.under = value,
            TEMPERATURE_THRESHOLD => self.over_threshold = value,
            ERROR_RECOVERY => {
                for (n, recovery) in (1..).zip(&mut self.recovery) {
                    if nsid == n || nsid == ALL_NAMESPACES {
                        *recovery = value;
                    }
                }
            }
            NUMBER_OF_QUEUES => return Ok(FeatureOutcome::Done(self.queues())),
            INTERRUPT_COALESCING => self.coalescing = value,
            INTERRUPT_VECTOR_CONFIGURATION => {
                let vector = Vector(cdw11);
                if let Some(off) = self.uncoalesced.get_mut(usize::from(vector.vector())) {
                    *off = vector.uncoalesced();
                }
            }
            WRITE_ATOMICITY_NORMAL => self.atomicity = value,
            ASYNC_EVENT_CONFIGURATION => self.events = value,
            TIMESTAMP => return Ok(FeatureOutcome::NeedsData(FeatureData::Timestamp)),
            HOST_BEHAVIOR_SUPPORT => return Ok(FeatureOutcome::NeedsData(FeatureData::Behavior)),
            KEEP_ALIVE_TIMER => {
                let rounded = feature::keep_alive(cdw11);
                self.keep_alive = rounded.ok_or(status::KEEP_ALIVE_TIMEOUT_INVALID.dnr())?;
                return Ok(FeatureOutcome::KeepAlive);
            }
            _ => {}
        }
        Ok(FeatureOutcome::Done(0))
    }

    /// Get Features.
    pub fn get(
        &self,
        cdw10: u32,
        cdw11: u32,
        nsid: u32,
        now: Uptime,
    ) -> Result<FeatureOutcome, Status> {
        let request = FeatureRequest {
            set: false,
            cdw10,
            cdw11,
            nsid,
        };
        self.check(request, false)?;
        let fid = request.fid();
        if request.select() == select::CAPABILITIES {
            let of_namespace = match fid {
                ERROR_RECOVERY => capability::NAMESPACE,
                _ => 0,
            };
            return Ok(FeatureOutcome::Done(capability::CHANGEABLE | of_namespace));
        }
        // Nothing can be saved, so saved values are the defaults.
        let current = request.select() == select::CURRENT;
        let or_default = |value: u32, default: u32| if current { value } else { default };
        Ok(FeatureOutcome::Done(match fid {
            ARBITRATION => or_default(self.arbitration, DEFAULT_ARBITRATION),
            POWER_MANAGEMENT => or_default(self.power, 0),
            TEMPERATURE_THRESHOLD if Threshold(cdw11).kind() == 1 => or_default(self.under, 0),
            TEMPERATURE_THRESHOLD => or_default(self.over_threshold, WARNING_TEMPERATURE.into()),
            ERROR_RECOVERY => {
                let index = (nsid as usize).checked_sub(1);
                let value = index.and_then(|n| self.recovery.get(n).copied());
                or_default(value.unwrap_or(0), 0)
            }
            NUMBER_OF_QUEUES => self.queues(),
            INTERRUPT_COALESCING => or_default(self.coalescing, 0),
            INTERRUPT_VECTOR_CONFIGURATION => {
                let vector = Vector(cdw11).vector();
                let off = current && self.uncoalesced(vector);
                u32::from(off) << 16 | u32::from(vector)
            }
            WRITE_ATOMICITY_NORMAL => or_default(self.atomicity, 0),
            ASYNC_EVENT_CONFIGURATION => or_default(self.events, 0),
            KEEP_ALIVE_TIMER => or_default(self.keep_alive, 0),
            TIMESTAMP => {
                let value = if current { self.timestamp(now) } else { 0 };
                return Ok(FeatureOutcome::SendsData(value.to_le_bytes().to_vec()));
            }
            HOST_BEHAVIOR_SUPPORT => {
                let mut data = vec![0; feature::BEHAVIOR_BYTES as usize];
                data[0] = u8::from(current && self.acre);
                return Ok(FeatureOutcome::SendsData(data));
            }
            _ => 0,
        }))
    }

    /// Accepts the data of a Set Features, Timestamp.
    pub fn set_timestamp(&mut self, data: [u8; 8], now: Uptime) {
        self.timestamp = u64::from_le_bytes(data) & TIMESTAMP_MASK;
        self.since = now.cycles;
        self.by_host = true;
    }

    /// Accepts the data of a Set Features, Host Behavior Support. The first byte is ACRE, the
    /// others are reserved.
    pub fn set_behavior(&mut self, acre: u8) -> Result<(), Status> {
        self.acre = match acre {
            0 => false,
            1 => true,
            _ => return Err(status::INVALID_FIELD.dnr()),
        };
        Ok(())
    }

    /// The data structure of the Timestamp (figure 291).
    fn timestamp(&self, now: Uptime) -> u64 {
        let value = self.timestamp.wrapping_add(now.ms_since(self.since)) & TIMESTAMP_MASK;
        let origin = if self.by_host { SET_BY_HOST } else { 0 };
        value | origin
    }

    /// Number of I/O submission and completion queues, 0's based.
    fn queues(&self) -> u32 {
        let n = u32::from(self.io_queues).saturating_sub(1);
        n << 16 | n
    }

    /// Checks a request in this order: feature and value, Select, save, namespace.
    fn check(&self, r: FeatureRequest, queues_exist: bool) -> Result<(), Status> {
        let w = r.cdw11;
        let bad = match r.fid() {
            POWER_MANAGEMENT => r.set && feature::power_state(w) != 0,
            TEMPERATURE_THRESHOLD => {
                // The composite temperature is the only sensor.
                let sensor = Threshold(w).sensor();
                let known = sensor == 0 || r.set && sensor == ALL_SENSORS;
                !known || Threshold(w).kind() > 1
            }
            ERROR_RECOVERY => r.set && feature::deallocated_error(w),
            NUMBER_OF_QUEUES => {
                let (submission, completion) = feature::queues(w);
                r.set && (submission == u16::MAX || completion == u16::MAX)
            }
            INTERRUPT_VECTOR_CONFIGURATION => Vector(w).vector() > self.io_queues,
            ARBITRATION
            | INTERRUPT_COALESCING
            | WRITE_ATOMICITY_NORMAL
            | ASYNC_EVENT_CONFIGURATION
            | TIMESTAMP
            | KEEP_ALIVE_TIMER
            | HOST_BEHAVIOR_SUPPORT => false,
            _ => true,
        };
        if bad {
            return Err(status::INVALID_FIELD.dnr());
        }
        if r.set && r.fid() == NUMBER_OF_QUEUES && queues_exist {
            return Err(status::COMMAND_SEQUENCE_ERROR.dnr());
        }
        if r.select() > select::CAPABILITIES {
            return Err(status::INVALID_FIELD.dnr());
        }
        if r.save() {
            return Err(status::FEATURE_NOT_SAVEABLE.dnr());
        }
        self.check_namespace(r)
    }

    /// Only Error Recovery is namespace specific. All namespaces can be set together, but not read.
    fn check_namespace(&self, r: FeatureRequest) -> Result<(), Status> {
        let of_namespace = r.fid() == ERROR_RECOVERY;
        let Some(namespace) = self.namespaces.get(r.nsid) else {
            let allowed = match r.nsid {
                0 => !of_namespace,
                ALL_NAMESPACES => !of_namespace || r.set,
                _ => false,
            };
            return match allowed {
                true => Ok(()),
                false => Err(status::INVALID_NAMESPACE_OR_FORMAT.dnr()),
            };
        };
        if !namespace.is_active() {
            return Err(status::INVALID_FIELD.dnr());
        }
        if r.set && !of_namespace {
            return Err(status::FEATURE_NOT_NAMESPACE_SPECIFIC.dnr());
        }
        Ok(())
    }

    /// Weights of weighted round robin. Each burst is one command, which every Arbitration Burst
    /// allows.
    pub fn weights(&self) -> Weights {
        Arbitration(self.arbitration).weights()
    }

    /// Over and under temperature thresholds in kelvins.
    pub fn thresholds(&self) -> (u16, u16) {
        (self.over_threshold as u16, self.under as u16)
    }

    /// Interrupt Coalescing, unless it is off.
    pub fn coalescing(&self) -> Option<Coalescing> {
        let value = Coalescing(self.coalescing);
        (value.threshold() > 1 && value.time() > 0).then_some(value)
    }

    /// Coalescing Disable of a vector.
    pub fn uncoalesced(&self, vector: u16) -> bool {
        let off = self.uncoalesced.get(usize::from(vector));
        off.is_some_and(|off| *off)
    }

    /// Asynchronous Event Configuration.
    pub fn events(&self) -> u32 {
        self.events
    }

    /// The Keep Alive Timeout in ms; 0 is none.
    pub fn keep_alive(&self) -> u32 {
        self.keep_alive
    }

    /// The host accepts Command Interrupted (Host Behavior Support, ACRE).
    pub fn acre(&self) -> bool {
        self.acre
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Uptime = Uptime {
        cycles: 0,
        khz: 1000,
    };

    fn features() -> Features {
        Features::new(4, Arc::new(Namespaces::new(&[8, 0, 8])))
    }

    fn set(f: &mut Features, fid: u8, value: u32, nsid: u32) -> Result<FeatureOutcome, Status> {
        f.set(fid.into(), value, nsid, true)
    }

    fn get(f: &Features, fid: u8, select: u32, value: u32, nsid: u32) -> u32 {
        match f.get(select << 8 | u32::from(fid), value, nsid, NOW) {
            Ok(FeatureOutcome::Done(dw0)) => dw0,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn features_keep_the_bits_that_are_implemented() {
        let mut f = features();
        let cases = [
            (0x01, 0xFFFF_FF07, 7),
            (0x04, 0xFFFF, 0x157),
            (0x08, 0xFFFF, 0),
            (0x0A, 1, 0),
            (0x0B, 0x1FF, 0),
        ];
        for (fid, kept, default) in cases {
            assert_eq!(get(&f, fid, 0, 0, 0), default);
            let all = if fid == 4 { 0xFFC0_FFFF } else { u32::MAX };
            assert_eq!(set(&mut f, fid, all, 0), Ok(FeatureOutcome::Done(0)));
            assert_eq!(get(&f, fid, 0, 0, ALL_NAMESPACES), kept, "{fid:#x}");
            assert_eq!(get(&f, fid, 1, 0, 1), default);
            assert_eq!(get(&f, fid, 2, 0, 0), default);
            assert_eq!(get(&f, fid, 3, 0, 0), 4);
        }
        assert_eq!(
            set(&mut f, 0x02, 0xFFFF_FFE0, 0),
            Ok(FeatureOutcome::Done(0))
        );
        assert_eq!(get(&f, 0x02, 0, 0, 0), 0xE0);
        assert_eq!(set(&mut f, 0x04, 0x1F_0123, 0), Ok(FeatureOutcome::Done(0)));
        assert_eq!(get(&f, 0x04, 0, 1 << 20, 0), 0x123);
        assert_eq!(
            (get(&f, 0x04, 1, 1 << 20, 0), f.thresholds()),
            (0, (0xFFFF, 0x123))
        );
        assert_eq!(
            (get(&f, 0x07, 0, 0, 0), get(&f, 0x07, 1, 0, 0)),
            (0x3_0003, 0x3_0003)
        );
        assert_eq!(
            set(&mut f, 0x09, 1 << 16 | 4, 0),
            Ok(FeatureOutcome::Done(0))
        );
        assert_eq!(get(&f, 0x09, 0, 0xABCD_0004, 0), 1 << 16 | 4);
        assert_eq!((get(&f, 0x09, 1, 4, 0), get(&f, 0x09, 0, 3, 0)), (4, 3));
        assert!(f.uncoalesced(4) && !f.uncoalesced(0) && !f.uncoalesced(99));
        assert_eq!(f.coalescing(), Some(Coalescing(0xFFFF)));
        assert_eq!(f.weights().high, 256);
        f.reset(NOW);
        assert_eq!((get(&f, 0x0B, 0, 0, 0), f.coalescing()), (0, None));
        assert!(!f.uncoalesced(4));
    }

    #[test]
    fn features_keep_error_recovery_for_each_namespace() {
        let mut f = features();
        assert_eq!(
            set(&mut f, 5, 5, ALL_NAMESPACES),
            Ok(FeatureOutcome::Done(0))
        );
        assert_eq!(set(&mut f, 5, 6, 3), Ok(FeatureOutcome::Done(0)));
        assert_eq!((get(&f, 5, 0, 0, 1), get(&f, 5, 0, 0, 3)), (5, 6));
        assert_eq!((get(&f, 5, 1, 0, 3), get(&f, 5, 3, 0, 1)), (0, 6));
    }

    #[test]
    fn features_timestamp_counts_from_the_value_of_the_host_or_from_the_reset() {
        let mut f = features();
        let at = |ms: u64| Uptime {
            cycles: ms * 1000 + 999,
            khz: 1000,
        };
        let bytes = |f: &Features, select: u32, now: Uptime| {
            let got = f.get(select << 8 | 0x0E, 0, 0, now);
            let Ok(FeatureOutcome::SendsData(bytes)) = got else {
                panic!("{got:?}");
            };
            u64::from_le_bytes(bytes.try_into().unwrap())
        };
        assert_eq!(bytes(&f, 0, at(5)), 5);
        let needs = FeatureOutcome::NeedsData(FeatureData::Timestamp);
        assert_eq!(set(&mut f, 0x0E, 0, 0), Ok(needs));
        f.set_timestamp([0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xAA, 0xBB], at(10));
        assert_eq!(bytes(&f, 0, at(11)), 0x0002_FFFF_FFFF_FFFF);
        assert_eq!(bytes(&f, 0, at(13)), 0x0002_0000_0000_0001);
        assert_eq!((bytes(&f, 1, at(13)), bytes(&f, 2, at(13))), (0, 0));
        f.reset(at(20));
        assert_eq!(bytes(&f, 0, at(22)), 2);
        assert_eq!(FeatureData::Timestamp.bytes(), 8);
    }

    #[test]
    fn features_host_behavior_is_one_bit() {
        let mut f = features();
        let needs = FeatureOutcome::NeedsData(FeatureData::Behavior);
        assert_eq!(set(&mut f, 0x16, 0, ALL_NAMESPACES), Ok(needs));
        assert_eq!(f.set_behavior(1), Ok(()));
        assert_eq!(f.set_behavior(2), Err(status::INVALID_FIELD.dnr()));
        assert!(f.acre());
        for (select, acre) in [(0, 1), (1, 0), (2, 0)] {
            let mut expected = vec![0; 512];
            expected[0] = acre;
            let got = f.get(select << 8 | 0x16, 0, 0, NOW);
            assert_eq!(got, Ok(FeatureOutcome::SendsData(expected)));
        }
        f.reset(NOW);
        assert!(!f.acre());
    }

    #[test]
    fn features_keep_alive_timeout_is_rounded_up() {
        let mut f = features();
        for (value, kept) in [
            (1, 100),
            (200, 200),
            (201, 300),
            (u32::MAX - 95, u32::MAX - 95),
        ] {
            assert_eq!(set(&mut f, 0x0F, value, 0), Ok(FeatureOutcome::KeepAlive));
            let refused = set(&mut f, 0x0F, u32::MAX - 94, 0);
            assert_eq!(refused, Err(status::KEEP_ALIVE_TIMEOUT_INVALID.dnr()));
            assert_eq!((get(&f, 0x0F, 0, 0, 0), f.keep_alive()), (kept, kept));
            assert_eq!(get(&f, 0x0F, 1, 0, 0), 0);
        }
    }

    #[test]
    fn features_report_errors_in_the_order_of_the_contract() {
        let mut f = features();
        let mut refused = |set: bool, cdw10: u32, cdw11: u32, nsid: u32| {
            let done = match set {
                true => f.set(cdw10, cdw11, nsid, true),
                false => f.get(cdw10, cdw11, nsid, NOW),
            };
            let status = done.unwrap_err();
            assert!(status.do_not_retry());
            status.bare()
        };
        let field = status::INVALID_FIELD;
        for fid in [0x00, 0x03, 0x06, 0x0C, 0x0D, 0x10, 0x17, 0x33, 0x80, 0xC1] {
            assert_eq!(refused(true, fid, 0, 7), field);
            assert_eq!(refused(false, fid, 0, 7), field);
        }
        assert_eq!(refused(true, 0x02, 1, 0), field);
        assert_eq!(refused(true, 0x04, 2 << 20, 0), field);
        assert_eq!(refused(true, 0x04, 1 << 16, 0), field);
        assert_eq!(refused(false, 0x04, 0xF << 16, 0), field);
        assert_eq!(refused(true, 0x05, 1 << 16, 1), field);
        assert_eq!(refused(true, 0x07, 0xFFFF, 0), field);
        assert_eq!(refused(true, 0x07, 0xFFFF_0000, 0), field);
        assert_eq!(refused(false, 0x09, 5, 0), field);
        assert_eq!(
            refused(true, 1 << 31 | 7, 3, 7),
            status::COMMAND_SEQUENCE_ERROR
        );
        assert_eq!(
            refused(true, 1 << 31 | 1, 0, 7),
            status::FEATURE_NOT_SAVEABLE
        );
        let no_namespace = status::INVALID_NAMESPACE_OR_FORMAT;
        assert_eq!(refused(true, 1, 0, 7), no_namespace);
        assert_eq!(
            refused(true, 1, 0, 1),
            status::FEATURE_NOT_NAMESPACE_SPECIFIC
        );
        assert_eq!(refused(true, 1, 0, 2), field);
        assert_eq!(refused(false, 1, 0, 2), field);
        assert_eq!(refused(false, 4 << 8 | 1, 0, 7), field);
        for nsid in [0, u32::MAX] {
            assert_eq!(refused(false, 5, 0, nsid), no_namespace);
        }
        assert_eq!(refused(true, 5, 0, 0), no_namespace);
        assert_eq!(refused(true, 5, 0, 2), field);
    }
}
