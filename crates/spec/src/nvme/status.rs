// SPDX-License-Identifier: Apache-2.0

//! The Status Field of a completion, with the specification's names.

use std::fmt;

/// The 15 bits of the Status Field above the phase tag: SC in bits 7:0, SCT 10:8, CRD 12:11, More
/// 13, DNR 14.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Status(pub u16);

/// Status Code Type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatusType {
    /// 0h.
    Generic,
    /// 1h.
    CommandSpecific,
    /// 2h.
    MediaAndDataIntegrity,
    /// 3h.
    PathRelated,
    /// 7h.
    VendorSpecific,
    /// 4h to 6h.
    Reserved,
}

impl fmt::Display for StatusType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StatusType::Generic => "Generic Command Status",
            StatusType::CommandSpecific => "Command Specific Status",
            StatusType::MediaAndDataIntegrity => "Media and Data Integrity Errors",
            StatusType::PathRelated => "Path Related Status",
            StatusType::VendorSpecific => "Vendor Specific",
            StatusType::Reserved => "Reserved Status Type",
        })
    }
}

impl Status {
    /// A status from its type and code.
    pub const fn new(sct: u8, sc: u8) -> Status {
        Status((sct as u16 & 7) << 8 | sc as u16)
    }

    /// The same status with Do Not Retry set.
    pub const fn dnr(self) -> Status {
        Status(self.0 | 1 << 14)
    }

    /// The same status with a Command Retry Delay (CRD): none, or the time CRDT1 to CRDT3.
    pub const fn with_delay(self, crd: u8) -> Status {
        Status(self.0 | (crd as u16 & 3) << 11)
    }

    /// SC.
    pub const fn code(self) -> u8 {
        self.0 as u8
    }

    /// SCT as a number.
    pub const fn type_code(self) -> u8 {
        (self.0 >> 8 & 7) as u8
    }

    /// SCT.
    pub fn kind(self) -> StatusType {
        match self.type_code() {
            0 => StatusType::Generic,
            1 => StatusType::CommandSpecific,
            2 => StatusType::MediaAndDataIntegrity,
            3 => StatusType::PathRelated,
            7 => StatusType::VendorSpecific,
            _ => StatusType::Reserved,
        }
    }

    /// Do Not Retry.
    pub const fn do_not_retry(self) -> bool {
        self.0 >> 14 & 1 == 1
    }

    /// True for Successful Completion.
    pub const fn is_success(self) -> bool {
        self.0 & 0x7FF == 0
    }

    /// Status type and code without CRD, More and DNR.
    pub const fn bare(self) -> Status {
        Status(self.0 & 0x7FF)
    }

    /// The specification's name, if it has one.
    pub fn name(self) -> Option<&'static str> {
        let key = self.0 & 0x7FF;
        NAMES
            .binary_search_by_key(&key, |entry| entry.0)
            .ok()
            .map(|i| NAMES[i].1)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sct, sc) = (self.type_code(), self.code());
        match self.name() {
            Some(name) => write!(f, "{name} ({}, SCT {sct:X}h SC {sc:02X}h", self.kind())?,
            None => write!(
                f,
                "unnamed status ({}, SCT {sct:X}h SC {sc:02X}h",
                self.kind()
            )?,
        }
        f.write_str(if self.do_not_retry() {
            ", Do Not Retry)"
        } else {
            ")"
        })
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

macro_rules! statuses {
    ($($value:literal $constant:ident $name:literal)*) => {
        $(#[doc = $name] pub const $constant: Status = Status($value);)*
        /// Every status that the specification names, ordered by value.
        pub const NAMES: &[(u16, &str)] = &[$(($value, $name)),*];
    };
}

statuses! {
    0x000 SUCCESS "Successful Completion"
    0x001 INVALID_OPCODE "Invalid Command Opcode"
    0x002 INVALID_FIELD "Invalid Field in Command"
    0x003 COMMAND_ID_CONFLICT "Command ID Conflict"
    0x004 DATA_TRANSFER_ERROR "Data Transfer Error"
    0x005 ABORTED_POWER_LOSS "Commands Aborted due to Power Loss Notification"
    0x006 INTERNAL_ERROR "Internal Error"
    0x007 ABORT_REQUESTED "Command Abort Requested"
    0x008 ABORTED_SQ_DELETION "Command Aborted due to SQ Deletion"
    0x009 ABORTED_FAILED_FUSED "Command Aborted due to Failed Fused Command"
    0x00A ABORTED_MISSING_FUSED "Command Aborted due to Missing Fused Command"
    0x00B INVALID_NAMESPACE_OR_FORMAT "Invalid Namespace or Format"
    0x00C COMMAND_SEQUENCE_ERROR "Command Sequence Error"
    0x00D INVALID_SGL_SEGMENT_DESCRIPTOR "Invalid SGL Segment Descriptor"
    0x00E INVALID_NUMBER_OF_SGL_DESCRIPTORS "Invalid Number of SGL Descriptors"
    0x00F DATA_SGL_LENGTH_INVALID "Data SGL Length Invalid"
    0x010 METADATA_SGL_LENGTH_INVALID "Metadata SGL Length Invalid"
    0x011 SGL_DESCRIPTOR_TYPE_INVALID "SGL Descriptor Type Invalid"
    0x012 INVALID_USE_OF_CMB "Invalid Use of Controller Memory Buffer"
    0x013 PRP_OFFSET_INVALID "PRP Offset Invalid"
    0x014 ATOMIC_WRITE_UNIT_EXCEEDED "Atomic Write Unit Exceeded"
    0x015 OPERATION_DENIED "Operation Denied"
    0x016 SGL_OFFSET_INVALID "SGL Offset Invalid"
    0x018 HOST_IDENTIFIER_INCONSISTENT_FORMAT "Host Identifier Inconsistent Format"
    0x019 KEEP_ALIVE_TIMER_EXPIRED "Keep Alive Timer Expired"
    0x01A KEEP_ALIVE_TIMEOUT_INVALID "Keep Alive Timeout Invalid"
    0x01B ABORTED_PREEMPT_AND_ABORT "Command Aborted due to Preempt and Abort"
    0x01C SANITIZE_FAILED "Sanitize Failed"
    0x01D SANITIZE_IN_PROGRESS "Sanitize In Progress"
    0x01E SGL_DATA_BLOCK_GRANULARITY_INVALID "SGL Data Block Granularity Invalid"
    0x01F COMMAND_NOT_SUPPORTED_FOR_QUEUE_IN_CMB "Command Not Supported for Queue in CMB"
    0x020 NAMESPACE_WRITE_PROTECTED "Namespace is Write Protected"
    0x021 COMMAND_INTERRUPTED "Command Interrupted"
    0x022 TRANSIENT_TRANSPORT_ERROR "Transient Transport Error"
    0x080 LBA_OUT_OF_RANGE "LBA Out of Range"
    0x081 CAPACITY_EXCEEDED "Capacity Exceeded"
    0x082 NAMESPACE_NOT_READY "Namespace Not Ready"
    0x083 RESERVATION_CONFLICT "Reservation Conflict"
    0x084 FORMAT_IN_PROGRESS "Format In Progress"
    0x100 COMPLETION_QUEUE_INVALID "Completion Queue Invalid"
    0x101 INVALID_QUEUE_IDENTIFIER "Invalid Queue Identifier"
    0x102 INVALID_QUEUE_SIZE "Invalid Queue Size"
    0x103 ABORT_COMMAND_LIMIT_EXCEEDED "Abort Command Limit Exceeded"
    0x105 ASYNC_EVENT_REQUEST_LIMIT_EXCEEDED "Asynchronous Event Request Limit Exceeded"
    0x106 INVALID_FIRMWARE_SLOT "Invalid Firmware Slot"
    0x107 INVALID_FIRMWARE_IMAGE "Invalid Firmware Image"
    0x108 INVALID_INTERRUPT_VECTOR "Invalid Interrupt Vector"
    0x109 INVALID_LOG_PAGE "Invalid Log Page"
    0x10A INVALID_FORMAT "Invalid Format"
    0x10B FIRMWARE_REQUIRES_CONVENTIONAL_RESET "Firmware Activation Requires Conventional Reset"
    0x10C INVALID_QUEUE_DELETION "Invalid Queue Deletion"
    0x10D FEATURE_NOT_SAVEABLE "Feature Identifier Not Saveable"
    0x10E FEATURE_NOT_CHANGEABLE "Feature Not Changeable"
    0x10F FEATURE_NOT_NAMESPACE_SPECIFIC "Feature Not Namespace Specific"
    0x110 FIRMWARE_REQUIRES_SUBSYSTEM_RESET "Firmware Activation Requires NVM Subsystem Reset"
    0x111 FIRMWARE_REQUIRES_CONTROLLER_RESET "Firmware Activation Requires Controller Level Reset"
    0x112 FIRMWARE_REQUIRES_MAXIMUM_TIME_VIOLATION "Firmware Activation Requires Maximum Time \
     Violation"
    0x113 FIRMWARE_ACTIVATION_PROHIBITED "Firmware Activation Prohibited"
    0x114 OVERLAPPING_RANGE "Overlapping Range"
    0x115 NAMESPACE_INSUFFICIENT_CAPACITY "Namespace Insufficient Capacity"
    0x116 NAMESPACE_IDENTIFIER_UNAVAILABLE "Namespace Identifier Unavailable"
    0x118 NAMESPACE_ALREADY_ATTACHED "Namespace Already Attached"
    0x119 NAMESPACE_IS_PRIVATE "Namespace Is Private"
    0x11A NAMESPACE_NOT_ATTACHED "Namespace Not Attached"
    0x11B THIN_PROVISIONING_NOT_SUPPORTED "Thin Provisioning Not Supported"
    0x11C CONTROLLER_LIST_INVALID "Controller List Invalid"
    0x11D DEVICE_SELF_TEST_IN_PROGRESS "Device Self-test In Progress"
    0x11E BOOT_PARTITION_WRITE_PROHIBITED "Boot Partition Write Prohibited"
    0x11F INVALID_CONTROLLER_IDENTIFIER "Invalid Controller Identifier"
    0x120 INVALID_SECONDARY_CONTROLLER_STATE "Invalid Secondary Controller State"
    0x121 INVALID_NUMBER_OF_CONTROLLER_RESOURCES "Invalid Number of Controller Resources"
    0x122 INVALID_RESOURCE_IDENTIFIER "Invalid Resource Identifier"
    0x123 SANITIZE_PROHIBITED_PMR_ENABLED "Sanitize Prohibited While Persistent Memory Region is \
     Enabled"
    0x124 ANA_GROUP_IDENTIFIER_INVALID "ANA Group Identifier Invalid"
    0x125 ANA_ATTACH_FAILED "ANA Attach Failed"
    0x180 CONFLICTING_ATTRIBUTES "Conflicting Attributes"
    0x181 INVALID_PROTECTION_INFORMATION "Invalid Protection Information"
    0x182 WRITE_TO_READ_ONLY_RANGE "Attempted Write to Read Only Range"
    0x183 COMMAND_SIZE_LIMIT_EXCEEDED "Command Size Limit Exceeded"
    0x280 WRITE_FAULT "Write Fault"
    0x281 UNRECOVERED_READ_ERROR "Unrecovered Read Error"
    0x282 GUARD_CHECK_ERROR "End-to-end Guard Check Error"
    0x283 APPLICATION_TAG_CHECK_ERROR "End-to-end Application Tag Check Error"
    0x284 REFERENCE_TAG_CHECK_ERROR "End-to-end Reference Tag Check Error"
    0x285 COMPARE_FAILURE "Compare Failure"
    0x286 ACCESS_DENIED "Access Denied"
    0x287 DEALLOCATED_OR_UNWRITTEN_BLOCK "Deallocated or Unwritten Logical Block"
    0x300 INTERNAL_PATH_ERROR "Internal Path Error"
    0x301 ANA_PERSISTENT_LOSS "Asymmetric Access Persistent Loss"
    0x302 ANA_INACCESSIBLE "Asymmetric Access Inaccessible"
    0x303 ANA_TRANSITION "Asymmetric Access Transition"
    0x360 CONTROLLER_PATHING_ERROR "Controller Pathing Error"
    0x370 HOST_PATHING_ERROR "Host Pathing Error"
    0x371 ABORTED_BY_HOST "Command Aborted By Host"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_names_are_sorted_so_that_the_search_finds_each() {
        assert!(NAMES.windows(2).all(|w| w[0].0 < w[1].0));
        for &(value, name) in NAMES {
            assert_eq!(Status(value).name(), Some(name));
        }
    }

    #[test]
    fn status_name_is_independent_of_do_not_retry() {
        let status = LBA_OUT_OF_RANGE.dnr();
        assert_eq!(status.name(), Some("LBA Out of Range"));
        assert_eq!(status.bare(), LBA_OUT_OF_RANGE);
        assert_eq!(
            status.to_string(),
            "LBA Out of Range (Generic Command Status, SCT 0h SC 80h, Do Not Retry)"
        );
        assert!(!status.is_success() && SUCCESS.dnr().is_success());
    }

    #[test]
    fn status_name_depends_on_the_type_as_well_as_the_code() {
        assert_eq!(Status::new(0, 0x80).name(), Some("LBA Out of Range"));
        assert_eq!(Status::new(1, 0x80).name(), Some("Conflicting Attributes"));
        assert_eq!(Status::new(2, 0x80).name(), Some("Write Fault"));
        assert_eq!(Status::new(5, 0x80).name(), None);
        assert!(Status::new(7, 0x42)
            .to_string()
            .starts_with("unnamed status (Vendor Specific"));
    }
}
