//! Features, as Set and Get Features see them (NVM Express 1.4, 5.21; the controller's README).

use std::collections::BTreeMap;

use spec::nvme::{status, Status};

/// Feature Identifier of the Timestamp.
pub const TIMESTAMP: u8 = 0x0E;
const ARBITRATION: u8 = 0x01;
const POWER: u8 = 0x02;
const TEMPERATURE: u8 = 0x04;
const ERROR_RECOVERY: u8 = 0x05;
const NUMBER_OF_QUEUES: u8 = 0x07;
const COALESCING: u8 = 0x08;
const VECTOR: u8 = 0x09;
const ATOMICITY: u8 = 0x0A;
const EVENTS: u8 = 0x0B;

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
}

/// Values of all features.
#[derive(Clone, Debug)]
pub struct Features {
    queues: u16,
    namespaces: u32,
    coalesced: bool,
    /// Get of a namespace's feature takes no FFFFFFFFh.
    one_at_a_time: bool,
    /// By identifier, and Threshold Type Select.
    values: BTreeMap<(u8, bool), u32>,
    /// Coalescing Disable of each vector.
    uncoalesced: BTreeMap<u16, bool>,
}

impl Features {
    /// The defaults of a controller with so many I/O queue pairs and namespaces.
    pub fn new(queues: u16, namespaces: u32, one_at_a_time: bool) -> Features {
        Features {
            queues,
            namespaces,
            coalesced: false,
            one_at_a_time,
            values: BTreeMap::from([((ARBITRATION, false), 7), ((TEMPERATURE, false), 0x157)]),
            uncoalesced: BTreeMap::new(),
        }
    }

    /// True if coalescing was ever on: completions may then be reported later than they come.
    pub fn coalesced(&self) -> bool {
        self.coalesced
    }

    /// True if a temperature threshold isn't at its default.
    pub fn temperature_set(&self) -> bool {
        self.values.get(&(TEMPERATURE, false)) != Some(&0x157)
            || self
                .values
                .get(&(TEMPERATURE, true))
                .is_some_and(|&v| v != 0)
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
            ARBITRATION | COALESCING | ATOMICITY | EVENTS | TIMESTAMP => false,
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
        if bad {
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
        let unclear = r.nsid == 0 || !r.set && r.nsid == u32::MAX;
        if r.nsid > self.namespaces && r.nsid != u32::MAX || of_namespace && unclear {
            return Some(status::INVALID_NAMESPACE_OR_FORMAT.dnr());
        }
        if of_namespace && self.one_at_a_time && !r.set && r.nsid == u32::MAX {
            return Some(status::INVALID_NAMESPACE_OR_FORMAT.dnr());
        }
        let one = (1..=self.namespaces).contains(&r.nsid);
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
                let off = self.uncoalesced.get(&vector).copied().unwrap_or(false);
                Ok(u32::from(off) << 16 | w & 0xFFFF)
            }
            TIMESTAMP => Ok(0),
            _ => {
                let key = (fid, fid == TEMPERATURE && w >> 20 & 1 == 1);
                if r.set {
                    self.coalesced |= fid == COALESCING && w & 0xFFFF != 0;
                    self.values.insert(key, w & Features::mask(fid));
                    return Ok(0);
                }
                Ok(self.values.get(&key).copied().unwrap_or(0))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(set: bool, fid: u8, cdw11: u32, nsid: u32) -> Request {
        Request {
            set,
            cdw10: fid.into(),
            cdw11,
            nsid,
        }
    }

    #[test]
    fn values_are_kept_as_far_as_they_are_implemented() {
        let mut f = Features::new(4, 1, true);
        assert_eq!(f.serve(request(false, ARBITRATION, 0, 0), true), Ok(7));
        assert_eq!(
            f.serve(request(true, ARBITRATION, u32::MAX, 0), true),
            Ok(0)
        );
        assert_eq!(
            f.serve(request(false, ARBITRATION, 0, 0), true),
            Ok(0xFFFF_FF07)
        );
        assert_eq!(f.serve(request(true, VECTOR, 1 << 16 | 4, 0), true), Ok(0));
        assert_eq!(f.serve(request(false, VECTOR, 4, 0), true), Ok(1 << 16 | 4));
        assert_eq!(
            f.serve(request(false, NUMBER_OF_QUEUES, 0, 0), true),
            Ok(3 << 16 | 3)
        );
    }

    #[test]
    fn errors_come_in_the_order_of_the_contract() {
        let mut f = Features::new(4, 1, true);
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
        for nsid in [0, u32::MAX] {
            assert_eq!(
                refused(false, 5, 0, nsid),
                Err(status::INVALID_NAMESPACE_OR_FORMAT)
            );
        }
    }
}
