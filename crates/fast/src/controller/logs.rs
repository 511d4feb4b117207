// SPDX-License-Identifier: Apache-2.0

//! Get Log Page (NVMe 1.4, 5.14): checks and pages.

use nvme::log::{self, GetLogPage};
use spec::nvme::{admin, io, status, Status, ALL_NAMESPACES};

use super::error_log::ErrorLog;
use super::identify::{FIRMWARE_REVISION, MDTS};
use super::smart::{Smart, Uptime};

/// Bytes of the largest log.
const BYTES: usize = 4096;
/// Command supported (CSUPP), in Commands Supported and Effects.
const SUPPORTED: u32 = 1 << 0;
/// The command may change the content of blocks (LBCC).
const CHANGES_CONTENT: u32 = 1 << 1;
/// Command Submission and Execution 001b: no other command to the same namespace.
const NAMESPACE_ALONE: u32 = 1 << 16;

/// Checks a Get Log Page.
pub fn check(request: &GetLogPage) -> Result<(), Status> {
    let size = log::size(request.lid).ok_or(status::INVALID_LOG_PAGE.dnr())?;
    // Logs belong to the controller (LPA bit 0 is 0).
    let namespace = request.nsid != 0 && request.nsid != ALL_NAMESPACES;
    let large = request.bytes > spec::nvme::PAGE_BYTES << MDTS;
    if namespace || large || request.offset % 4 != 0 || request.offset > size {
        return Err(status::INVALID_FIELD.dnr());
    }
    Ok(())
}

/// Changed Namespace List (5.14.1.4): changes since the host has read the list.
#[derive(Clone, Debug, Default)]
pub struct ChangedNamespaces {
    /// A bit for each namespace, namespace 1 in the lowest.
    changed: u32,
    /// Namespaces of the last list that was read.
    shown: u32,
}

impl ChangedNamespaces {
    /// Adds a namespace, 1 to 16, whose Identify data has changed.
    pub fn mark_changed(&mut self, nsid: u32) {
        let bit = nsid.checked_sub(1).and_then(|n| 1u32.checked_shl(n));
        let bit = bit.unwrap_or(0);
        self.changed |= bit;
        // A change after the list was read stays in the list.
        self.shown &= !bit;
    }

    /// The list has an entry.
    pub fn has_entries(&self) -> bool {
        self.changed != 0
    }

    fn show(&mut self) -> Vec<u8> {
        self.shown = self.changed;
        let listed = (0..32).filter(|n| self.shown >> n & 1 == 1);
        listed.flat_map(|n| (n + 1u32).to_le_bytes()).collect()
    }

    fn release(&mut self) {
        self.changed &= !self.shown;
    }
}

/// The logs. All but the Changed Namespace List survive a reset of the controller.
#[derive(Clone, Debug)]
pub struct Logs {
    /// Error Information.
    pub errors: ErrorLog,
    /// SMART / Health Information.
    pub smart: Smart,
    /// Changed Namespace List.
    pub changed: ChangedNamespaces,
    effects: Vec<u8>,
}

impl Logs {
    /// The logs after power-on, with the I/O commands of engines, and with Doorbell Buffer Config
    /// if it is supported.
    pub fn new<'a>(
        engines: impl IntoIterator<Item = &'a design::engine::Command>,
        doorbell_buffer: bool,
    ) -> Logs {
        Logs {
            errors: ErrorLog::default(),
            smart: Smart::default(),
            changed: ChangedNamespaces::default(),
            effects: effects(engines, doorbell_buffer),
        }
    }

    /// Resets the logs with the controller.
    pub fn reset(&mut self) {
        self.changed = ChangedNamespaces::default();
    }

    /// The data of a valid Get Log Page, with zeros past the end of the log. `warning` is the
    /// Critical Warning.
    pub fn read(&mut self, request: &GetLogPage, warning: u8, now: Uptime) -> Vec<u8> {
        let mut page = match request.lid {
            log::SUPPORTED => log::ALL.iter().fold(vec![0; BYTES], |mut page, &lid| {
                page[4 * usize::from(lid)] = 1;
                page
            }),
            log::ERROR => self.errors.page(),
            log::SMART => self.smart.page(warning, self.errors.count(), now).to_vec(),
            log::FIRMWARE => firmware(),
            log::CHANGED_NAMESPACES => self.changed.show(),
            log::EFFECTS => self.effects.clone(),
            _ => Vec::new(),
        };
        let start = usize::try_from(request.offset).unwrap_or(usize::MAX);
        let mut data = page.split_off(start.min(page.len()));
        let most = spec::nvme::PAGE_BYTES << MDTS;
        data.resize(request.bytes.min(most) as usize, 0);
        data
    }

    /// Releases a log that the host has received in full without retaining its event.
    /// `Events::log_was_read` follows.
    pub fn release(&mut self, lid: u8) {
        if lid == log::CHANGED_NAMESPACES {
            self.changed.release();
        }
    }
}

/// Firmware Slot Information (5.14.1.3): one slot, active.
fn firmware() -> Vec<u8> {
    let mut page = vec![0; BYTES];
    page[0] = 1; // AFI
    page[8..16].copy_from_slice(FIRMWARE_REVISION); // FRS1
    page
}

/// Commands Supported and Effects (5.14.1.5): a dword for each opcode, 256 admin commands, then 256
/// I/O commands.
fn effects<'a>(
    engines: impl IntoIterator<Item = &'a design::engine::Command>,
    doorbell_buffer: bool,
) -> Vec<u8> {
    let mut effects = [0u32; BYTES / 4];
    let supported = [
        admin::DELETE_IO_SQ,
        admin::CREATE_IO_SQ,
        admin::GET_LOG_PAGE,
        admin::DELETE_IO_CQ,
        admin::CREATE_IO_CQ,
        admin::IDENTIFY,
        admin::ABORT,
        admin::SET_FEATURES,
        admin::GET_FEATURES,
        admin::ASYNC_EVENT_REQUEST,
        admin::KEEP_ALIVE,
    ];
    let optional = doorbell_buffer.then_some(admin::DOORBELL_BUFFER_CONFIG);
    for opcode in supported.into_iter().chain(optional) {
        effects[usize::from(opcode)] = SUPPORTED;
    }
    effects[usize::from(admin::FORMAT_NVM)] = SUPPORTED | CHANGES_CONTENT | NAMESPACE_ALONE;
    let mut io = |opcode: u8, changes: bool| {
        let effect = if changes { CHANGES_CONTENT } else { 0 };
        effects[256 + usize::from(opcode)] = SUPPORTED | effect;
    };
    for opcode in [io::FLUSH, io::READ, io::COMPARE, io::VERIFY] {
        io(opcode, false);
    }
    for opcode in [io::WRITE, io::WRITE_ZEROES, io::DATASET_MANAGEMENT] {
        io(opcode, true);
    }
    for command in engines {
        if command.opcode >= 0x80 {
            io(command.opcode, command.changes);
        }
    }
    effects.iter().flat_map(|e| e.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Uptime = Uptime {
        cycles: 0,
        khz: 250_000,
    };

    fn request(lid: u8, offset: u64, bytes: u64) -> GetLogPage {
        GetLogPage {
            lid,
            retain: false,
            bytes,
            offset,
            nsid: 0,
        }
    }

    fn read(logs: &mut Logs, lid: u8, offset: u64, bytes: u64) -> Vec<u8> {
        let request = request(lid, offset, bytes);
        assert_eq!(check(&request), Ok(()));
        logs.read(&request, 0, NOW)
    }

    fn dwords(values: &[(usize, u32)]) -> Vec<u8> {
        let mut page = vec![0; BYTES];
        for &(at, value) in values {
            page[4 * at..4 * at + 4].copy_from_slice(&value.to_le_bytes());
        }
        page
    }

    #[test]
    fn log_pages_are_those_of_the_rtl_test_bench() {
        // As in hw/ip/nvme_ctrl/dv/identify_model.py.
        let commands = [(0xC0, false), (0xC8, true), (0x10, true)];
        let commands = commands.map(|(opcode, changes)| design::engine::Command {
            name: "x".into(),
            opcode,
            changes,
        });
        let mut logs = Logs::new(&commands, true);
        let supported: Vec<(usize, u32)> = (0..6).map(|lid| (lid, 1)).collect();
        assert_eq!(read(&mut logs, 0, 0, 4096), dwords(&supported));
        assert_eq!(read(&mut logs, 1, 0, 4096), dwords(&[]));
        let mut firmware = dwords(&[(0, 1)]);
        firmware[8..16].copy_from_slice(b"1.0     ");
        assert_eq!(read(&mut logs, 3, 0, 512), firmware[..512]);
        assert_eq!(read(&mut logs, 4, 0, 4096), dwords(&[]));
        let plain = [0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 0x18, 0x7C];
        let mut expected: Vec<(usize, u32)> = plain.iter().map(|&opcode| (opcode, 1)).collect();
        expected.push((0x80, 1 | 1 << 1 | 1 << 16));
        let io = [(0, 1), (1, 3), (2, 1), (5, 1), (8, 3), (9, 3), (0xC, 1)];
        let engines = [(0xC0, 1), (0xC8, 3)];
        expected.extend(io.iter().chain(&engines).map(|&(op, e)| (256 + op, e)));
        assert_eq!(read(&mut logs, 5, 0, 4096), dwords(&expected));
        let mut logs = Logs::new(&commands, false);
        expected.retain(|&(opcode, _)| opcode != 0x7C);
        assert_eq!(read(&mut logs, 5, 0, 4096), dwords(&expected));
    }

    #[test]
    fn log_read_returns_any_range_and_zeros_past_the_end() {
        let mut logs = Logs::new([], true);
        assert_eq!(read(&mut logs, 3, 8, 4), b"1.0 ");
        assert_eq!(read(&mut logs, 3, 12, 8), b"    \0\0\0\0");
        assert_eq!(read(&mut logs, 3, 512, 1 << 20), vec![0; 1 << 20]);
        assert_eq!(read(&mut logs, 5, 4096, 4), [0; 4]);
        assert_eq!(read(&mut logs, 0, 1024, 4), [0; 4]);
        assert_eq!(read(&mut logs, 4, 4096, 4), [0; 4]);
    }

    #[test]
    fn log_errors_are_those_of_the_contract() {
        let refused = |request: GetLogPage| check(&request).unwrap_err().bare();
        for lid in [6, 0x7F, 0x80, 0xFF] {
            let bad = GetLogPage {
                nsid: 1,
                ..request(lid, 1, 1 << 30)
            };
            assert_eq!(refused(bad), status::INVALID_LOG_PAGE);
        }
        let field = status::INVALID_FIELD;
        let namespace = GetLogPage {
            nsid: 1,
            ..request(1, 0, 4)
        };
        assert_eq!(refused(namespace), field);
        assert_eq!(refused(request(1, 0, (1 << 20) + 4)), field);
        assert_eq!(refused(request(1, 2, 4)), field);
        for (lid, size) in [
            (0, 1024),
            (1, 4096),
            (2, 512),
            (3, 512),
            (4, 4096),
            (5, 4096),
        ] {
            assert_eq!(refused(request(lid, size + 4, 4)), field);
            assert_eq!(refused(request(lid, u64::MAX - 3, 4)), field);
            assert_eq!(check(&request(lid, size, 1 << 20)), Ok(()));
        }
    }

    #[test]
    fn log_of_changed_namespaces_keeps_changes_made_after_it_was_shown() {
        let mut logs = Logs::new([], true);
        logs.changed.mark_changed(4);
        logs.changed.mark_changed(2);
        logs.changed.mark_changed(0);
        assert_eq!(read(&mut logs, 4, 0, 12), dwords(&[(0, 2), (1, 4)])[..12]);
        logs.changed.mark_changed(3);
        logs.changed.mark_changed(2);
        logs.release(log::CHANGED_NAMESPACES);
        assert_eq!(read(&mut logs, 4, 0, 12), dwords(&[(0, 2), (1, 3)])[..12]);
        logs.release(log::CHANGED_NAMESPACES);
        assert!(!logs.changed.has_entries());
        logs.changed.mark_changed(1);
        logs.reset();
        assert!(!logs.changed.has_entries());
    }
}
