// SPDX-License-Identifier: Apache-2.0

//! SMART / Health Information (NVMe 1.4, 5.14.1.2) and its counters.
//!
//! No counter survives a loss of power. All count from power-on, which is the one power cycle
//! reported. A reset of the controller does not change them.

use spec::nvme::{io, status, Sqe, Status};

/// WCTEMP in kelvins, and the default over temperature threshold.
pub const WARNING_TEMPERATURE: u16 = 343;
/// CCTEMP in kelvins.
pub const CRITICAL_TEMPERATURE: u16 = 353;
/// Temperature of the device in kelvins; it has no sensor.
pub const ROOM_TEMPERATURE: u16 = 298;
/// Bytes of the log.
pub const BYTES: usize = 512;
/// Blocks of a data unit.
const UNIT: u64 = 1000;

/// Time since power-on in cycles of the device's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uptime {
    /// Cycles.
    pub cycles: u64,
    /// The clock in kHz.
    pub khz: u32,
}

impl Uptime {
    /// Whole milliseconds since a cycle.
    pub fn ms_since(self, cycles: u64) -> u64 {
        self.cycles.saturating_sub(cycles) / u64::from(self.khz.max(1))
    }

    /// Power On Hours.
    pub fn hours(self) -> u64 {
        self.ms_since(0) / 3_600_000
    }
}

/// How an I/O command is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoCount {
    /// Read, Compare or Verify of a number of blocks.
    Read(u64),
    /// Write of a number of blocks.
    Write(u64),
    /// Write Zeroes and Dataset Management: only errors and time are counted.
    None,
}

impl IoCount {
    /// The count of an I/O command for the data path.
    pub fn of(sqe: &Sqe) -> IoCount {
        let blocks = sqe.blocks().into();
        match sqe.opcode() {
            io::READ | io::COMPARE | io::VERIFY => IoCount::Read(blocks),
            io::WRITE => IoCount::Write(blocks),
            _ => IoCount::None,
        }
    }
}

/// Accumulated time of a condition.
#[derive(Clone, Copy, Debug, Default)]
struct AccumulatedTime {
    cycles: u64,
    since: Option<u64>,
}

impl AccumulatedTime {
    fn set(&mut self, on: bool, now: u64) {
        match (on, self.since) {
            (true, None) => self.since = Some(now),
            (false, Some(since)) => {
                self.cycles = self.cycles.wrapping_add(now.saturating_sub(since));
                self.since = None;
            }
            _ => {}
        }
    }

    fn minutes(&self, now: Uptime) -> u64 {
        let present = self.since.map_or(0, |t| now.cycles.saturating_sub(t));
        self.cycles.saturating_add(present) / (u64::from(now.khz.max(1)) * 60_000)
    }
}

/// Counts of one direction.
#[derive(Clone, Copy, Debug, Default)]
struct DirectionCounts {
    commands: u64,
    blocks: u64,
}

/// The counters.
#[derive(Clone, Debug)]
pub struct Smart {
    temperature: u16,
    in_flight: u64,
    read: DirectionCounts,
    written: DirectionCounts,
    media_errors: u64,
    busy: AccumulatedTime,
    warm: AccumulatedTime,
    critical: AccumulatedTime,
}

impl Default for Smart {
    fn default() -> Smart {
        Smart {
            temperature: ROOM_TEMPERATURE,
            in_flight: 0,
            read: DirectionCounts::default(),
            written: DirectionCounts::default(),
            media_errors: 0,
            busy: AccumulatedTime::default(),
            warm: AccumulatedTime::default(),
            critical: AccumulatedTime::default(),
        }
    }
}

impl Smart {
    /// An I/O command was started.
    pub fn started(&mut self, now: Uptime) {
        self.in_flight += 1;
        self.busy.set(true, now.cycles);
    }

    /// An I/O command has ended. Commands are always counted, data units only after success.
    pub fn ended(&mut self, counts: IoCount, answer: Status, now: Uptime) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.busy.set(self.in_flight > 0, now.cycles);
        let media = [status::UNRECOVERED_READ_ERROR, status::WRITE_FAULT];
        self.media_errors += u64::from(media.contains(&answer.bare()));
        let (moved, blocks) = match counts {
            IoCount::Read(blocks) => (&mut self.read, blocks),
            IoCount::Write(blocks) => (&mut self.written, blocks),
            IoCount::None => return,
        };
        moved.commands += 1;
        if answer.is_success() {
            moved.blocks = moved.blocks.saturating_add(blocks);
        }
    }

    /// Composite Temperature in kelvins.
    pub fn temperature(&self) -> u16 {
        self.temperature
    }

    /// Sets the Composite Temperature.
    pub fn set_temperature(&mut self, kelvins: u16, now: Uptime) {
        let critical = kelvins >= CRITICAL_TEMPERATURE;
        self.temperature = kelvins;
        self.critical.set(critical, now.cycles);
        let warm = kelvins >= WARNING_TEMPERATURE && !critical;
        self.warm.set(warm, now.cycles);
    }

    /// The log page, with Critical Warning and the number of entries of the Error Information log.
    pub fn page(&self, warning: u8, errors: u64, now: Uptime) -> [u8; BYTES] {
        let mut page = [0; BYTES];
        let mut write_field =
            |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
        write_field(0, &[warning]);
        write_field(1, &self.temperature.to_le_bytes());
        write_field(3, &[100]); // Available Spare, %: the medium does not wear
        let counters = [
            (32, self.read.blocks.div_ceil(UNIT)),
            (48, self.written.blocks.div_ceil(UNIT)),
            (64, self.read.commands),
            (80, self.written.commands),
            (96, self.busy.minutes(now)),
            (112, 1), // Power Cycles: this one
            (128, now.hours()),
            (160, self.media_errors),
            (176, errors),
        ];
        for (at, value) in counters {
            write_field(at, &value.to_le_bytes());
        }
        write_field(192, &(self.warm.minutes(now) as u32).to_le_bytes());
        write_field(196, &(self.critical.minutes(now) as u32).to_le_bytes());
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KHZ: u32 = 1000;
    const MINUTE: u64 = 60_000 * KHZ as u64;

    fn at(cycles: u64) -> Uptime {
        Uptime { cycles, khz: KHZ }
    }

    fn word(page: &[u8; BYTES], at: usize) -> u64 {
        u64::from_le_bytes(page[at..at + 8].try_into().unwrap())
    }

    #[test]
    fn smart_counters_of_a_new_device_are_zero() {
        let page = Smart::default().page(0, 0, at(0));
        let mut expected = [0; BYTES];
        expected[1..3].copy_from_slice(&298u16.to_le_bytes());
        expected[3] = 100;
        expected[112] = 1;
        assert_eq!(page, expected);
    }

    #[test]
    fn smart_counts_all_commands_but_only_successful_data_units() {
        let mut smart = Smart::default();
        let answers = [
            (IoCount::Read(8), status::SUCCESS),
            (IoCount::Read(1000), status::SUCCESS),
            (IoCount::Read(9), status::UNRECOVERED_READ_ERROR),
            (IoCount::Write(1000), status::SUCCESS),
            (IoCount::None, status::WRITE_FAULT),
            (IoCount::None, status::SUCCESS),
        ];
        for (counts, answer) in answers {
            smart.started(at(0));
            smart.ended(counts, answer, at(0));
        }
        let page = smart.page(2, 7, at(3 * 60 * MINUTE));
        assert_eq!((word(&page, 32), word(&page, 48)), (2, 1));
        assert_eq!((word(&page, 64), word(&page, 80)), (3, 1));
        assert_eq!((word(&page, 160), word(&page, 176)), (2, 7));
        assert_eq!((word(&page, 96), word(&page, 128), page[0]), (0, 3, 2));
    }

    #[test]
    fn smart_busy_minutes_count_time_with_commands_in_flight() {
        let mut smart = Smart::default();
        smart.started(at(5));
        smart.started(at(MINUTE));
        smart.ended(IoCount::Read(1), status::SUCCESS, at(MINUTE + 1));
        assert_eq!(word(&smart.page(0, 0, at(2 * MINUTE + 4)), 96), 1);
        smart.ended(IoCount::Read(1), status::SUCCESS, at(2 * MINUTE + 5));
        assert_eq!(word(&smart.page(0, 0, at(9 * MINUTE)), 96), 2);
        smart.set_temperature(WARNING_TEMPERATURE, at(9 * MINUTE));
        smart.set_temperature(CRITICAL_TEMPERATURE, at(11 * MINUTE));
        let page = smart.page(0, 0, at(12 * MINUTE));
        assert_eq!((page[192], page[196]), (2, 1));
    }
}
