//! Features, as Set and Get Features see them (NVM Express 1.4, 5.21; the controller's README).

use std::collections::BTreeMap;
use std::rc::Rc;

use spec::nvme::{status, Status};

use crate::namespaces::{Namespaces, NSID_ALL};

/// Feature Identifier of the Timestamp.
pub const TIMESTAMP: u8 = 0x0E;
/// Feature Identifier of the Keep Alive Timer.
pub const KEEP_ALIVE: u8 = 0x0F;
/// Feature Identifier of Host Behavior Support.
pub const BEHAVIOR: u8 = 0x16;
/// Select: supported capabilities.
pub const CAPABILITIES: u32 = 3;
const ARBITRATION: u8 = 0x01;
const POWER: u8 = 0x02;
const TEMPERATURE: u8 = 0x04;
const ERROR_RECOVERY: u8 = 0x05;
const NUMBER_OF_QUEUES: u8 = 0x07;
const COALESCING: u8 = 0x08;
const VECTOR: u8 = 0x09;
const ATOMICITY: u8 = 0x0A;
const EVENTS: u8 = 0x0B;
/// Granularity of the Keep Alive Timer (KAS) in ms.
const GRANULARITY: u32 = 100;

/// What a Set or Get Features asks for.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Set, else Get.
    pub set: bool,
    /// Command dword 10.
    pub cdw10: u32,
    /// Command dword 11.
    pub cdw11: u32,
    /// Namespace.
    pub nsid: u32,
}

impl Request {
    /// Feature Identifier.
    pub fn fid(self) -> u8 {
        self.cdw10 as u8
    }

    /// Select of Get Features: current, default, saved, supported capabilities.
    pub fn select(self) -> u32 {
        if self.set {
            0
        } else {
            self.cdw10 >> 8 & 7
        }
    }
}

/// Values of all features.
#[derive(Clone, Debug)]
pub struct Features {
    queues: u16,
    namespaces: Rc<Namespaces>,
    coalesced: bool,
    /// By identifier, Threshold Type Select, and namespace (0 if it is none's).
    values: BTreeMap<(u8, bool, u32), u32>,
    /// Coalescing Disable of each vector.
    uncoalesced: BTreeMap<u16, bool>,
}

impl Features {
    /// The defaults of a controller with so many I/O queue pairs, and these namespaces.
    pub fn new(queues: u16, namespaces: Rc<Namespaces>) -> Features {
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
            (TEMPERATURE, false, _) => 0x157,
            _ => 0,
        }
    }

    fn value(&self, key: (u8, bool, u32)) -> u32 {
        let value = self.values.get(&key).copied();
        value.unwrap_or(Features::default(key))
    }

    /// True if coalescing was ever on: completions may then be reported later than they come.
    pub fn coalesced(&self) -> bool {
        self.coalesced
    }

    /// The Keep Alive Timeout in ms.
    pub fn keep_alive(&self) -> u32 {
        self.value((KEEP_ALIVE, false, 0))
    }

    /// True if a temperature threshold isn't at its default.
    pub fn temperature_set(&self) -> bool {
        let keys = [(TEMPERATURE, false, 0), (TEMPERATURE, true, 0)];
        keys.iter().any(|&k| self.value(k) != Features::default(k))
    }

    /// Bits that are kept of a feature's value.
    fn mask(fid: u8) -> u32 {
        match fid {
            ARBITRATION => 0xFFFF_FF07,
            POWER => 0xE0,
            TEMPERATURE | ERROR_RECOVERY | COALESCING => 0xFFFF,
            ATOMICITY => 1,
            EVENTS => 0x1FF,
            _ => 0,
        }
    }

    /// What stands against a request, in the order of the README: feature or value, save, namespace, not a namespace's.
    fn refuse(&self, r: Request, queues_exist: bool) -> Option<Status> {
        let w = r.cdw11;
        let bad = match r.fid() {
            ARBITRATION | COALESCING | ATOMICITY | EVENTS => false,
            TIMESTAMP | KEEP_ALIVE | BEHAVIOR => false,
            POWER => r.set && w & 0x1F != 0,
            TEMPERATURE => {
                let select = w >> 16 & 0xF;
                w >> 21 & 1 != 0 || (select != 0 && !(r.set && select == 0xF))
            }
            ERROR_RECOVERY => r.set && w >> 16 & 1 != 0,
            NUMBER_OF_QUEUES => r.set && (w & 0xFFFF == 0xFFFF || w >> 16 == 0xFFFF),
            VECTOR => w & 0xFFFF > u32::from(self.queues),
            _ => true,
        };
        if bad || r.select() > CAPABILITIES {
            return Some(status::INVALID_FIELD.dnr());
        }
        if r.fid() == NUMBER_OF_QUEUES && r.set && queues_exist {
            return Some(status::COMMAND_SEQUENCE_ERROR.dnr());
        }
        if r.set && r.cdw10 >> 31 == 1 {
            return Some(status::FEATURE_NOT_SAVEABLE.dnr());
        }
        let of_namespace = r.fid() == ERROR_RECOVERY;
        // A namespace's feature can be set for all of them, but not asked for.
        let unclear = r.nsid == 0 || !r.set && r.nsid == NSID_ALL;
        let one = self.namespaces.valid(r.nsid);
        if !one && r.nsid != 0 && r.nsid != NSID_ALL || of_namespace && unclear {
            return Some(status::INVALID_NAMESPACE_OR_FORMAT.dnr());
        }
        if one && self.namespaces.find(r.nsid).is_err() {
            return Some(status::INVALID_FIELD.dnr());
        }
        if r.set && !of_namespace && one {
            return Some(status::FEATURE_NOT_NAMESPACE_SPECIFIC.dnr());
        }
        None
    }

    /// Serves a request: dword 0 of the completion, or the error.
    pub fn serve(&mut self, r: Request, queues_exist: bool) -> Result<u32, Status> {
        if let Some(status) = self.refuse(r, queues_exist) {
            return Err(status);
        }
        let (fid, w) = (r.fid(), r.cdw11);
        if r.select() == CAPABILITIES {
            // Changeable; Error Recovery a namespace's; none can be saved.
            return Ok(if fid == ERROR_RECOVERY { 6 } else { 4 });
        }
        // Nothing can be saved: what is saved are the defaults.
        let current = r.select() == 0;
        match fid {
            NUMBER_OF_QUEUES => {
                let n = u32::from(self.queues).saturating_sub(1);
                Ok(n << 16 | n)
            }
            VECTOR => {
                let vector = w as u16;
                if r.set {
                    self.uncoalesced.insert(vector, w >> 16 & 1 == 1);
                    return Ok(0);
                }
                let off = current && self.uncoalesced.get(&vector).is_some_and(|&off| off);
                Ok(u32::from(off) << 16 | w & 0xFFFF)
            }
            TIMESTAMP | BEHAVIOR => Ok(0),
            KEEP_ALIVE if r.set => {
                // Rounded up; what 32 bits cannot say then is too long.
                let rounded = w.checked_next_multiple_of(GRANULARITY);
                let value = rounded.ok_or(status::KEEP_ALIVE_TIMEOUT_INVALID.dnr())?;
                self.values.insert((fid, false, 0), value);
                Ok(0)
            }
            _ => {
                let under = fid == TEMPERATURE && w >> 20 & 1 == 1;
                let nsid = if fid == ERROR_RECOVERY { r.nsid } else { 0 };
                if r.set {
                    self.coalesced |= fid == COALESCING && w & 0xFFFF != 0;
                    let all = nsid == NSID_ALL;
                    let nsids = if all {
                        1..=self.namespaces.count()
                    } else {
                        nsid..=nsid
                    };
                    for nsid in nsids {
                        let value = w & Features::mask(fid);
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

    fn request(set: bool, cdw10: u32, cdw11: u32, nsid: u32) -> Request {
        Request {
            set,
            cdw10,
            cdw11,
            nsid,
        }
    }

    #[test]
    fn values_are_kept_as_far_as_they_are_implemented() {
        let mut f = Features::new(4, Rc::new(Namespaces::new(&[8, 0, 8])));
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
            f.serve(request(true, ERROR_RECOVERY.into(), 5, NSID_ALL), true),
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
            f.serve(request(true, VECTOR.into(), 1 << 16 | 4, 0), true),
            Ok(0)
        );
        assert_eq!(
            f.serve(request(false, VECTOR.into(), 4, 0), true),
            Ok(1 << 16 | 4)
        );
        assert_eq!(
            f.serve(request(false, NUMBER_OF_QUEUES.into(), 0, 0), true),
            Ok(3 << 16 | 3)
        );
    }

    #[test]
    fn keep_alive_timeouts_are_rounded_up() {
        let mut f = Features::new(4, Rc::new(Namespaces::new(&[8])));
        let fid = u32::from(KEEP_ALIVE);
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
    fn errors_come_in_the_order_of_the_contract() {
        let mut f = Features::new(4, Rc::new(Namespaces::new(&[8, 0, 8])));
        let mut refused = |set, cdw10: u32, cdw11, nsid| {
            f.serve(
                Request {
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
