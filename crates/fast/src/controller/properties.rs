// SPDX-License-Identifier: Apache-2.0

//! Controller properties as the host writes and reads them (hw/ip/nvme_ctrl/regs/nvme_regs.rdl).

use spec::regs::nvme::{self, acq, aqa, asq, cap, cc, csts, pmrcap, pmrctl, pmrsts, vs};
use spec::regs::Field;

/// "NVMe", which resets the subsystem.
const RESET: u32 = 0x4E56_4D65;

/// A register whose fields are constant.
fn fixed(fields: &[Field]) -> u64 {
    fields
        .iter()
        .fold(0, |word, field| word | field.of(field.reset()))
}

/// The properties.
#[derive(Clone, Debug, Default)]
pub(crate) struct Properties {
    queue_entries: u32,
    intms: u32,
    cc: u32,
    aqa: u32,
    asq: u64,
    acq: u64,
    pmrctl: u32,
    nssro: bool,
    /// NSSR holds the value that resets the subsystem.
    pub(crate) reset_wanted: bool,
}

/// The state that CSTS reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Csts {
    pub(crate) rdy: bool,
    pub(crate) cfs: bool,
    pub(crate) shst: u32,
}

impl Properties {
    pub(crate) fn new(queue_entries: u32) -> Properties {
        Properties {
            queue_entries,
            ..Properties::default()
        }
    }

    fn field(&self, field: Field) -> u64 {
        field.get(self.cc.into())
    }

    /// CC.EN.
    pub(crate) fn enabled(&self) -> bool {
        self.field(cc::EN) == 1
    }

    /// CC.SHN asks for a shutdown.
    pub(crate) fn shutdown(&self) -> bool {
        self.field(cc::SHN) != 0
    }

    /// CC.AMS selects weighted round robin with urgent priority class.
    pub(crate) fn weighted(&self) -> bool {
        self.field(cc::AMS) & 1 == 1
    }

    /// CC.IOSQES and CC.IOCQES have the values of the specification.
    pub(crate) fn entry_sizes(&self) -> (bool, bool) {
        (self.field(cc::IOSQES) == 6, self.field(cc::IOCQES) == 4)
    }

    /// Bases and 0's based sizes of the admin submission and completion queue.
    pub(crate) fn admin_queues(&self) -> [(u64, u32); 2] {
        let aqa = u64::from(self.aqa);
        [
            (self.asq, aqa::ASQS.get(aqa) as u32),
            (self.acq, aqa::ACQS.get(aqa) as u32),
        ]
    }

    /// CC, AQA, ASQ and ACQ are valid.
    pub(crate) fn usable(&self) -> bool {
        let selected =
            self.field(cc::CSS) == 0 && self.field(cc::MPS) == 0 && self.field(cc::AMS) <= 1;
        let queues = self.admin_queues();
        selected && queues.iter().all(|&(base, size)| base != 0 && size != 0)
    }

    /// Resets the subsystem: all properties are at their defaults, and CSTS.NSSRO is set.
    pub(crate) fn reset(&mut self) {
        *self = Properties {
            nssro: true,
            ..Properties::new(self.queue_entries)
        };
    }

    /// Reads a word at an offset below the doorbells.
    pub(crate) fn read(&self, offset: u64, csts: Csts) -> u32 {
        let wide = |value: u64, at: u64| (value >> (8 * (offset - at))) as u32;
        match offset {
            nvme::CAP | 0x4 => {
                let fields = [
                    cap::CQR,
                    cap::AMS,
                    cap::TO,
                    cap::DSTRD,
                    cap::NSSRS,
                    cap::CSS,
                    cap::BPS,
                    cap::MPSMIN,
                    cap::MPSMAX,
                    cap::PMRS,
                    cap::CMBS,
                ];
                let entries = u64::from(self.queue_entries - 1);
                wide(fixed(&fields) | cap::MQES.of(entries), nvme::CAP)
            }
            nvme::VS => fixed(&[vs::TER, vs::MNR, vs::MJR]) as u32,
            nvme::INTMS | nvme::INTMC => self.intms,
            nvme::CC => self.cc,
            nvme::CSTS => {
                let status = csts::RDY.of(csts.rdy.into())
                    | csts::CFS.of(csts.cfs.into())
                    | csts::SHST.of(csts.shst.into())
                    | csts::NSSRO.of(self.nssro.into());
                status as u32
            }
            nvme::AQA => self.aqa,
            nvme::ASQ | 0x2C => wide(self.asq, nvme::ASQ),
            nvme::ACQ | 0x34 => wide(self.acq, nvme::ACQ),
            nvme::PMRCAP => {
                let fields = [
                    pmrcap::RDS,
                    pmrcap::WDS,
                    pmrcap::BIR,
                    pmrcap::PMRTU,
                    pmrcap::PMRWBM,
                    pmrcap::PMRTO,
                    pmrcap::CMSS,
                ];
                fixed(&fields) as u32
            }
            nvme::PMRCTL => self.pmrctl,
            nvme::PMRSTS => {
                let not_ready = !pmrctl::EN.is_set(self.pmrctl.into());
                pmrsts::NRDY.of(not_ready.into()) as u32
            }
            _ => 0,
        }
    }

    /// Writes the bits of a word at an offset below the doorbells that `bits` selects.
    pub(crate) fn write(&mut self, offset: u64, value: u32, bits: u32) {
        let put = |old: u32, mask: u64| old & !(bits & mask as u32) | value & bits & mask as u32;
        let wide = |old: u64, mask: u64, high: bool| {
            let shift = if high { 32 } else { 0 };
            let bits = u64::from(bits) << shift & mask;
            old & !bits | u64::from(value) << shift & bits
        };
        match offset {
            nvme::INTMS => self.intms |= value & bits,
            nvme::INTMC => self.intms &= !(value & bits),
            nvme::CC => {
                let fields = [
                    cc::EN,
                    cc::CSS,
                    cc::MPS,
                    cc::AMS,
                    cc::SHN,
                    cc::IOSQES,
                    cc::IOCQES,
                ];
                let mask = fields.iter().fold(0, |mask, field| mask | field.mask());
                self.cc = put(self.cc, mask);
            }
            nvme::CSTS => {
                self.nssro &= !csts::NSSRO.is_set((value & bits).into());
            }
            nvme::NSSR => self.reset_wanted = bits == u32::MAX && value == RESET,
            nvme::AQA => self.aqa = put(self.aqa, aqa::ASQS.mask() | aqa::ACQS.mask()),
            nvme::ASQ | 0x2C => {
                let mask = asq::ASQB_LOW.mask() | asq::ASQB_HIGH.mask();
                self.asq = wide(self.asq, mask, offset != nvme::ASQ);
            }
            nvme::ACQ | 0x34 => {
                let mask = acq::ACQB_LOW.mask() | acq::ACQB_HIGH.mask();
                self.acq = wide(self.acq, mask, offset != nvme::ACQ);
            }
            nvme::PMRCTL => self.pmrctl = put(self.pmrctl, pmrctl::EN.mask()),
            _ => {}
        }
    }
}
