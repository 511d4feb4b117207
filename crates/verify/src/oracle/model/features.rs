// SPDX-License-Identifier: Apache-2.0

//! Features, for Set and Get Features (NVM Express 1.4, 5.21; `docs/hardware/nvme_ctrl.md`).

use std::collections::BTreeMap;
use std::sync::Arc;

use nvme::feature::select::CAPABILITIES;
use nvme::feature::{
    capability, deallocated_error, keep_alive, mask, power_state, queues, FeatureRequest,
    Threshold, Vector,
};
use nvme::Namespaces;
use spec::nvme::feature::*;
use spec::nvme::{status, Status, ALL_NAMESPACES};

use crate::oracle::namespaces::find;

/// Values of all features.
#[derive(Clone, Debug)]
pub struct Features {
    queues: u16,
    namespaces: Arc<Namespaces>,
    coalesced: bool,
    /// Values by identifier, Threshold Type Select, and namespace (0 for features of the
    /// controller).
    values: BTreeMap<(u8, bool, u32), u32>,
    /// Coalescing Disable of each vector.
    uncoalesced: BTreeMap<u16, bool>,
}

impl Features {
    /// The defaults of a controller with `queues` I/O queue pairs, and these namespaces.
    pub fn new(queues: u16, namespaces: Arc<Namespaces>) -> Features {
        Features {
            queues,
            namespaces,
            coalesced: false,
            values: BTreeMap::new(),
            uncoalesced: BTreeMap::new(),
        }
    }

    fn default(key: (u8, bool, u32)) -> u32 {
        match key {
            (ARBITRATION, ..) => 7,
            (TEMPERATURE_THRESHOLD, false, _) => 0x157,
            _ => 0,
        }
    }

    fn value(&self, key: (u8, bool, u32)) -> u32 {
        let value = self.values.get(&key).copied();
        value.unwrap_or(Features::default(key))
    }

    /// True if coalescing was ever enabled: interrupts may then follow their completions later.
    pub fn coalesced(&self) -> bool {
        self.coalesced
    }

    /// The Keep Alive Timeout in ms.
    pub fn keep_alive(&self) -> u32 {
        self.value((KEEP_ALIVE_TIMER, false, 0))
    }

    /// True if a temperature threshold differs from its default.
    pub fn temperature_set(&self) -> bool {
        let keys = [
            (TEMPERATURE_THRESHOLD, false, 0),
            (TEMPERATURE_THRESHOLD, true, 0),
        ];
        keys.iter().any(|&k| self.value(k) != Features::default(k))
    }

    /// The error of a request, checked in the documented order: feature or value, save, namespace,
    /// scope.
    fn refuse(&self, r: FeatureRequest, queues_exist: bool) -> Option<Status> {
        let w = r.cdw11;
        let bad = match r.fid() {
            ARBITRATION
            | INTERRUPT_COALESCING
            | WRITE_ATOMICITY_NORMAL
            | ASYNC_EVENT_CONFIGURATION => false,
            TIMESTAMP | KEEP_ALIVE_TIMER | HOST_BEHAVIOR_SUPPORT => false,
            POWER_MANAGEMENT => r.set && power_state(w) != 0,
            TEMPERATURE_THRESHOLD => {
                let (threshold, all) = (Threshold(w), 0xF);
                let sensor = threshold.sensor();
                threshold.kind() > 1 || (sensor != 0 && !(r.set && sensor == all))
            }
            ERROR_RECOVERY => r.set && deallocated_error(w),
            NUMBER_OF_QUEUES => {
                let (submission, completion) = queues(w);
                r.set && (submission == u16::MAX || completion == u16::MAX)
            }
            INTERRUPT_VECTOR_CONFIGURATION => Vector(w).vector() > self.queues,
            _ => true,
        };
        if bad || r.select() > CAPABILITIES {
            return Some(status::INVALID_FIELD.dnr());
        }
        if r.fid() == NUMBER_OF_QUEUES && r.set && queues_exist {
            return Some(status::COMMAND_SEQUENCE_ERROR.dnr());
        }
        if r.save() {
            return Some(status::FEATURE_NOT_SAVEABLE.dnr());
        }
        let of_namespace = r.fid() == ERROR_RECOVERY;
        // A feature of a namespace can be set for all namespaces, but not read for all.
        let unclear = r.nsid == 0 || !r.set && r.nsid == ALL_NAMESPACES;
        let one = self.namespaces.valid(r.nsid);
        if !one && r.nsid != 0 && r.nsid != ALL_NAMESPACES || of_namespace && unclear {
            return Some(status::INVALID_NAMESPACE_OR_FORMAT.dnr());
        }
        if one && find(&self.namespaces, r.nsid).is_err() {
            return Some(status::INVALID_FIELD.dnr());
        }
        if r.set && !of_namespace && one {
            return Some(status::FEATURE_NOT_NAMESPACE_SPECIFIC.dnr());
        }
        None
    }

    /// Executes a request: dword 0 of the completion, or the error.
    pub fn serve(&mut self, r: FeatureRequest, queues_exist: bool) -> Result<u32, Status> {
        if let Some(status) = self.refuse(r, queues_exist) {
            return Err(status);
        }
        let (fid, w) = (r.fid(), r.cdw11);
        if r.select() == CAPABILITIES {
            // Changeable; Error Recovery belongs to a namespace; none can be saved.
            let of_namespace = match fid {
                ERROR_RECOVERY => capability::NAMESPACE,
                _ => 0,
            };
            return Ok(capability::CHANGEABLE | of_namespace);
        }
        // No value can be saved: the saved values are the defaults.
        let current = r.select() == 0;
        match fid {
            NUMBER_OF_QUEUES => {
                let n = u32::from(self.queues).saturating_sub(1);
                Ok(n << 16 | n)
            }
            INTERRUPT_VECTOR_CONFIGURATION => {
                let vector = Vector(w).vector();
                if r.set {
                    let off = Vector(w).uncoalesced();
                    self.uncoalesced.insert(vector, off);
                    return Ok(0);
                }
                let off = current && self.uncoalesced.get(&vector).is_some_and(|&off| off);
                Ok(u32::from(off) << 16 | w & 0xFFFF)
            }
            TIMESTAMP | HOST_BEHAVIOR_SUPPORT => Ok(0),
            KEEP_ALIVE_TIMER if r.set => {
                // Rounded up; a value that exceeds 32 bits then is too long.
                let value = keep_alive(w).ok_or(status::KEEP_ALIVE_TIMEOUT_INVALID.dnr())?;
                self.values.insert((fid, false, 0), value);
                Ok(0)
            }
            _ => {
                let under = fid == TEMPERATURE_THRESHOLD && Threshold(w).kind() == 1;
                let nsid = if fid == ERROR_RECOVERY { r.nsid } else { 0 };
                if r.set {
                    self.coalesced |= fid == INTERRUPT_COALESCING && w & 0xFFFF != 0;
                    let all = nsid == ALL_NAMESPACES;
                    let nsids = if all {
                        1..=self.namespaces.count()
                    } else {
                        nsid..=nsid
                    };
                    for nsid in nsids {
                        let value = w & mask(fid);
                        self.values.insert((fid, under, nsid), value);
                    }
                    return Ok(0);
                }
                let key = (fid, under, nsid);
                Ok(if current {
                    self.value(key)
                } else {
                    Features::default(key)
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(set: bool, cdw10: u32, cdw11: u32, nsid: u32) -> FeatureRequest {
        FeatureRequest {
            set,
            cdw10,
            cdw11,
            nsid,
        }
    }

    #[test]
    fn features_keep_values_as_far_as_they_are_implemented() {
        let mut f = Features::new(4, Arc::new(Namespaces::new(&[8, 0, 8])));
        assert_eq!(
            f.serve(request(false, ARBITRATION.into(), 0, 0), true),
            Ok(7)
        );
        assert_eq!(
            f.serve(request(true, ARBITRATION.into(), u32::MAX, 0), true),
            Ok(0)
        );
        assert_eq!(
            f.serve(request(false, ARBITRATION.into(), 0, 0), true),
            Ok(0xFFFF_FF07)
        );
        assert_eq!(
            f.serve(request(false, 1 << 8 | u32::from(ARBITRATION), 0, 0), true),
            Ok(7)
        );
        assert_eq!(
            f.serve(
                request(false, 3 << 8 | u32::from(ERROR_RECOVERY), 0, 1),
                true
            ),
            Ok(6)
        );
        assert_eq!(
            f.serve(
                request(true, ERROR_RECOVERY.into(), 5, ALL_NAMESPACES),
                true
            ),
            Ok(0)
        );
        assert_eq!(
            f.serve(request(true, ERROR_RECOVERY.into(), 6, 3), true),
            Ok(0)
        );
        assert_eq!(
            f.serve(request(false, ERROR_RECOVERY.into(), 0, 1), true),
            Ok(5)
        );
        assert_eq!(
            f.serve(request(false, ERROR_RECOVERY.into(), 0, 3), true),
            Ok(6)
        );
        assert_eq!(
            f.serve(
                request(true, INTERRUPT_VECTOR_CONFIGURATION.into(), 1 << 16 | 4, 0),
                true
            ),
            Ok(0)
        );
        assert_eq!(
            f.serve(
                request(false, INTERRUPT_VECTOR_CONFIGURATION.into(), 4, 0),
                true
            ),
            Ok(1 << 16 | 4)
        );
        assert_eq!(
            f.serve(request(false, NUMBER_OF_QUEUES.into(), 0, 0), true),
            Ok(3 << 16 | 3)
        );
    }

    #[test]
    fn keep_alive_timeouts_are_rounded_up() {
        let mut f = Features::new(4, Arc::new(Namespaces::new(&[8])));
        let fid = u32::from(KEEP_ALIVE_TIMER);
        for (value, kept) in [
            (1, 100),
            (200, 200),
            (201, 300),
            (u32::MAX - 95, u32::MAX - 95),
        ] {
            assert_eq!(f.serve(request(true, fid, value, 0), true), Ok(0));
            assert_eq!(f.serve(request(false, fid, 0, 0), true), Ok(kept));
            let refused = f.serve(request(true, fid, u32::MAX - 94, 0), true);
            assert_eq!(refused, Err(status::KEEP_ALIVE_TIMEOUT_INVALID.dnr()));
            assert_eq!(f.keep_alive(), kept);
            assert_eq!(f.serve(request(false, 1 << 8 | fid, 0, 0), true), Ok(0));
        }
    }

    #[test]
    fn features_report_errors_in_the_order_of_the_contract() {
        let mut f = Features::new(4, Arc::new(Namespaces::new(&[8, 0, 8])));
        let mut refused = |set, cdw10: u32, cdw11, nsid| {
            f.serve(
                FeatureRequest {
                    set,
                    cdw10,
                    cdw11,
                    nsid,
                },
                true,
            )
            .map_err(Status::bare)
        };
        assert_eq!(refused(true, 0x33, 0, 7), Err(status::INVALID_FIELD));
        assert_eq!(refused(true, 0x07, 0xFFFF, 0), Err(status::INVALID_FIELD));
        assert_eq!(
            refused(true, 0x07, 3, 0),
            Err(status::COMMAND_SEQUENCE_ERROR)
        );
        assert_eq!(
            refused(true, 1 << 31 | 1, 0, 7),
            Err(status::FEATURE_NOT_SAVEABLE)
        );
        assert_eq!(
            refused(true, 1, 0, 7),
            Err(status::INVALID_NAMESPACE_OR_FORMAT)
        );
        assert_eq!(
            refused(true, 1, 0, 1),
            Err(status::FEATURE_NOT_NAMESPACE_SPECIFIC)
        );
        assert_eq!(refused(false, 1, 0, 2), Err(status::INVALID_FIELD));
        assert_eq!(refused(false, 4 << 8 | 1, 0, 7), Err(status::INVALID_FIELD));
        for nsid in [0, u32::MAX] {
            assert_eq!(
                refused(false, 5, 0, nsid),
                Err(status::INVALID_NAMESPACE_OR_FORMAT)
            );
        }
    }
}
