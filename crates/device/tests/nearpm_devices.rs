// SPDX-License-Identifier: Apache-2.0

//! Several devices with the crash-consistency engine `nearpm`. Their logs are deleted when all of
//! them have completed a transaction, and nothing else waits for that. After a loss of power of any
//! of them, all come to the same transaction.
//!
//! A run continues while copies of it are cut off at many moments, as in `nearpm.rs`.

#[allow(dead_code)] // some of what `behaviour` uses
#[path = "behaviour/common/mod.rs"]
mod common;
#[path = "nearpm_devices/halves.rs"]
mod extended_halves;
#[path = "nearpm_devices/numbers.rs"]
mod extended_numbers;
#[path = "nearpm_devices/times.rs"]
mod extended_times;
#[path = "nearpm_devices/waits.rs"]
mod extended_waits;
#[path = "nearpm_devices/zeros.rs"]
mod extended_zeros;
#[path = "nearpm_devices/begun.rs"]
mod sampled_begun;
#[path = "nearpm_devices/lives.rs"]
mod sampled_lives;
#[path = "nearpm_devices/races.rs"]
mod sampled_races;
#[path = "nearpm_devices/unmaps.rs"]
mod sampled_unmaps;
#[path = "nearpm_devices/units.rs"]
mod units;

use std::sync::{Mutex, MutexGuard, PoisonError};

use driver::page::{CommandPage, CommandResult, SubmittedCommand};
use driver::{Host, SimHost};
use sim::fork::Fork;
use sim::{Bar, HostConfig, LinkConfig, Time};
use spec::nearpm::{register, Command, Completion, Descriptor, ErrorBit, LogState, Operation};

use common::nearpm::{Kit, Pool};
use common::{design, root, rounds};

/// Objects that a transaction changes on each device: offset, bytes.
const OBJECTS: [(u64, usize); 3] = [(0, 64), (3000, 2000), (8200, 8)];
const TRANSACTIONS: u8 = 24;
/// The answer of a copy that has found some objects changed and others not.
const TORN: u8 = 0xFF;
/// Results of a recovery: a log was pending whose peers were complete, or one whose peers were not.
const WAITED: u8 = 1;
const WROTE_BACK: u8 = 2;
/// Threads whose logs the transactions use in turn.
const LOGS: u8 = 2;

impl Kit {
    /// The power fails for this time; then the page is new.
    fn lose_power(&mut self, design: &design::Design, off: Time) {
        let number = self.host.device();
        self.host.system_mut().power_off(number);
        common::rest(&mut self.host, off);
        self.host.system_mut().power_on(number);
        self.page = Kit::page_of(design);
    }
}

/// A host of several devices, and a pool on each of them.
struct Devices {
    host: SimHost,
    pages: Vec<CommandPage>,
    /// The engine's registers in BAR4.
    registers: u64,
    pool: Pool,
    /// Devices know each other; otherwise the host reports to each what the others did.
    peers: bool,
}

impl Devices {
    fn new(count: usize) -> Devices {
        Devices::with(count, true)
    }

    fn with(count: usize, peers: bool) -> Devices {
        let mut devices = Devices::bare(count, peers);
        devices.set_up();
        for device in devices.each() {
            for log in 0..LOGS {
                let open = devices.pool.open(log, 1);
                devices.fine(device, &open);
            }
        }
        devices
    }

    /// They have neither numbers nor pools.
    fn bare(count: usize, peers: bool) -> Devices {
        let design = design("nearpm");
        let factory = common::factory(&design);
        let devices = (0..count).map(|_| {
            let device = common::device(&factory, &design);
            (device, LinkConfig::default(), design.window_bytes())
        });
        let system = testbed::attach(&HostConfig::default(), devices).unwrap();
        let costs = testbed::driver_costs(&design::Cpu::default());
        Devices {
            host: SimHost::new(system, 0, costs, 0),
            pages: vec![Kit::page_of(&design); count],
            registers: design.engines().unwrap()[0].offset,
            pool: Pool::new(1, 7, 1 << 20),
            peers,
        }
    }

    fn each(&self) -> std::ops::Range<usize> {
        0..self.pages.len()
    }

    /// A bit for each device.
    fn all(&self) -> u64 {
        (1 << self.pages.len()) - 1
    }

    fn rest(&mut self, span: Time) {
        common::rest(&mut self.host, span);
    }

    fn submit(&mut self, device: usize, command: &Command) -> SubmittedCommand {
        let page = &mut self.pages[device];
        let arguments = command.arguments();
        let host = &mut self.host;
        host.with_device(device, |host| page.submit(host, &arguments).unwrap())
    }

    fn finish(&mut self, device: usize, command: SubmittedCommand) -> CommandResult {
        let deadline = self.host.now() + Time::ms(5);
        let (page, host) = (&mut self.pages[device], &mut self.host);
        let ended = host.with_device(device, |host| {
            page.wait(host, command, Time::ns(200), deadline, &mut || true)
        });
        ended.unwrap().expect("it has not ended in 5 ms")
    }

    fn ends(&mut self, device: usize, command: &Command) -> CommandResult {
        let submitted = self.submit(device, command);
        self.finish(device, submitted)
    }

    fn fine(&mut self, device: usize, command: &Command) -> u64 {
        let ended = self.ends(device, command);
        assert_eq!(ended.result, 0, "device {device}: {command:?}");
        ended.value
    }

    fn refused(&mut self, device: usize, command: &Command, refusal: ErrorBit) {
        let ended = self.ends(device, command);
        assert_eq!(ended.result, refusal as u32, "device {device}: {command:?}");
    }

    fn store(&mut self, device: usize, offset: u64, data: &[u8]) {
        let at = self.pool.media + offset;
        let host = &mut self.host;
        host.with_device(device, |host| host.write(Bar::Pm, at, data).unwrap());
    }

    fn load(&mut self, device: usize, offset: u64, len: usize) -> Vec<u8> {
        let at = self.pool.media + offset;
        let mut data = vec![0; len];
        let host = &mut self.host;
        host.with_device(device, |host| host.read(Bar::Pm, at, &mut data).unwrap());
        data
    }

    fn descriptor(&mut self, device: usize, log: u8) -> Descriptor {
        let at = self.pool.log(log) - self.pool.media;
        let line = self.load(device, at, 64).try_into().unwrap();
        Descriptor::from_line(&line).expect("a descriptor")
    }

    fn set_word(&mut self, device: usize, register: u64, value: u32) {
        let at = self.registers + register;
        let host = &mut self.host;
        host.with_device(device, |host| {
            host.write(Bar::Control, at, &value.to_le_bytes()).unwrap();
        });
    }

    /// A register of 64 bits.
    fn set(&mut self, device: usize, register: u64, value: u64) {
        let at = self.registers + register;
        let host = &mut self.host;
        host.with_device(device, |host| {
            host.write(Bar::Control, at, &value.to_le_bytes()).unwrap();
        });
    }

    fn get(&mut self, device: usize, register: u64) -> u64 {
        let at = self.registers + register;
        let mut value = [0; 8];
        let host = &mut self.host;
        host.with_device(device, |host| {
            host.read(Bar::Control, at, &mut value).unwrap();
        });
        u64::from_le_bytes(value)
    }

    /// Selects the log of `SEEN` and `ALL`: 16 * pool + thread.
    fn select(&mut self, device: usize, log: u8) {
        let number = self.pool.number << 4 | log;
        self.set_word(device, register::SELECT, number.into());
    }

    /// The last transaction of a log that a device has completed, and the last one that it knows
    /// all to have completed.
    fn seen(&mut self, device: usize, log: u8) -> (u64, u64) {
        self.select(device, log);
        let own = self.get(device, register::SEEN + 8 * device as u64);
        (own, self.get(device, register::ALL))
    }

    /// Gives a device the address of a peer.
    fn introduce(&mut self, device: usize, peer: usize) {
        let window = self.host.system().window(peer, Bar::Control).unwrap();
        let address = window + self.registers;
        self.set(device, register::PEER + 8 * peer as u64, address);
    }

    /// What a host does first, and after each loss of power, with all of them.
    fn set_up(&mut self) {
        self.name();
        self.introduce_all();
    }

    /// Each device gets a number and its pool. When it answers the command it has restored
    /// everything.
    fn name(&mut self) {
        for device in self.each() {
            let number = register::DEVICE_IS_SET | device as u32;
            self.set_word(device, register::DEVICE, number);
        }
        for device in self.each() {
            let map = self.pool.map();
            self.fine(device, &map);
        }
    }

    /// Introduces the devices to each other.
    fn introduce_all(&mut self) {
        if !self.peers {
            return;
        }
        for device in self.each() {
            for peer in self.each().filter(|peer| *peer != device) {
                self.introduce(device, peer);
            }
        }
    }

    /// The host reports to each device that all the others have completed a transaction of a log.
    fn tell(&mut self, log: u8, sequence: u64) {
        let log = self.pool.number << 4 | log;
        let word = Completion { log, sequence }.to_word();
        for device in self.each() {
            for peer in self.each().filter(|peer| *peer != device) {
                self.set(device, register::DONE + 8 * peer as u64, word);
            }
        }
    }

    fn power(&mut self, lost: u64, off: Time) {
        let lost: Vec<_> = self.each().filter(|n| lost >> n & 1 == 1).collect();
        for device in &lost {
            self.host.system_mut().power_off(*device);
        }
        self.rest(off);
        for device in lost {
            self.host.system_mut().power_on(device);
            self.pages[device] = Kit::page_of(&design("nearpm"));
        }
    }

    fn commit(&self, log: u8, transaction: u64, participants: u64) -> Command {
        Command {
            transaction,
            value: participants,
            ..self.pool.command(Operation::Commit, log)
        }
    }

    /// Recovers all devices to the last transaction that all of them have ("Several devices" in the
    /// README of the engine). Returns what had to be done.
    fn recover(&mut self) -> u8 {
        let mut did = 0;
        self.name();
        // Devices without a loss of power end what was sent to them.
        for device in self.each() {
            for log in 0..LOGS {
                let sync = self.pool.command(Operation::Sync, log);
                self.ends(device, &sync);
            }
        }
        // Logs that hold a commit record, and whether all participants have one.
        let mut pending = Vec::new();
        for device in self.each() {
            for log in 0..LOGS {
                let descriptor = self.descriptor(device, log);
                let LogState::Pending(participants) = descriptor.state else {
                    // Without a commit record it is the newest one of its thread here.
                    let recover = self.pool.command(Operation::Recover, log);
                    self.fine(device, &recover);
                    continue;
                };
                let transaction = descriptor.transaction;
                let mut whole = true;
                for peer in self.each() {
                    let (own, all) = self.seen(peer, log);
                    whole &= participants >> peer & 1 == 0 || own >= transaction;
                    if all >= transaction {
                        whole = true;
                        break;
                    }
                }
                pending.push((transaction, device, log, whole));
            }
        }
        self.introduce_all();
        pending.sort_unstable_by(|a, b| b.cmp(a));
        for (transaction, device, log, whole) in pending {
            if whole {
                did |= WAITED;
                if !self.peers {
                    self.tell(log, transaction);
                }
                self.until_all(device, log, transaction);
            } else {
                did |= WROTE_BACK;
                let recover = self.pool.command(Operation::Recover, log);
                self.fine(device, &recover);
            }
        }
        did
    }

    /// Waits until a device knows that all have completed a transaction, without the host.
    fn until_all(&mut self, device: usize, log: u8, transaction: u64) {
        for _ in 0..1000 {
            if self.seen(device, log).1 >= transaction {
                return;
            }
            self.rest(Time::ns(200));
        }
        panic!("device {device}, log {log}: transaction {transaction} waits for ever");
    }
}

/// Who deletes logs, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Deletion {
    /// The devices do, when all are complete.
    Together,
    /// The devices do, when the host has waited for all of them and said so.
    Software,
    /// Each device at once without the others, which has to be noticed.
    Alone,
}

struct Run {
    devices: Devices,
    deletion: Deletion,
    cuts: Vec<Fork>,
    moments: u64,
    every: u64,
    /// The last transaction that reads of all devices have proven to be persistent.
    sure: u8,
}

impl Run {
    fn moment(&mut self) {
        self.moments += 1;
        if self.moments % self.every == 0 {
            let moment = self.moments;
            let fork = Fork::start(|| self.cut(moment)).unwrap();
            self.cuts.push(fork);
        }
    }

    fn transaction(&mut self, value: u8) {
        let log = value % LOGS;
        let pool = self.devices.pool;
        if value > LOGS && self.deletion != Deletion::Alone {
            // Its log has to be empty; the one before used the other.
            for device in self.devices.each() {
                let before = u64::from(value - LOGS);
                self.devices.until_all(device, log, before);
            }
        }
        for (at, len) in OBJECTS {
            for device in self.devices.each() {
                let undo = pool.undo(log, at, len as u64);
                self.devices.submit(device, &undo);
                self.moment();
                self.devices.store(device, at, &vec![value; len]);
                self.moment();
            }
        }
        let participants = match self.deletion {
            Deletion::Together | Deletion::Software => self.devices.all(),
            Deletion::Alone => 0,
        };
        let mut commits = Vec::new();
        for device in self.devices.each() {
            let commit = self.devices.commit(log, value.into(), participants);
            commits.push(self.devices.submit(device, &commit));
            self.moment();
        }
        if self.deletion == Deletion::Software {
            for (device, commit) in (0..).zip(commits) {
                assert_eq!(self.devices.finish(device, commit).result, 0);
                self.moment();
            }
            self.devices.tell(log, value.into());
            self.moment();
        }
    }

    /// The value that all objects of all devices have, if they agree.
    fn value(&mut self) -> u8 {
        let mut bytes = Vec::new();
        for device in self.devices.each() {
            for (at, len) in OBJECTS {
                bytes.extend(self.devices.load(device, at, len));
            }
        }
        match bytes.iter().all(|byte| *byte == bytes[0]) {
            true => bytes[0],
            false => TORN,
        }
    }

    /// One end of the run: some devices lose their power. Returns the value that is left, and what
    /// the recovery did.
    fn cut(&mut self, moment: u64) -> Vec<u8> {
        let (turn, all) = (moment / self.every, self.devices.all());
        self.devices.rest(Time::ns(61 * (moment % 32)));
        self.devices.power(1 + turn % all, Time::us(5));
        if turn % 3 == 0 {
            // Others, while the first ones restore what they had, or a program recovers.
            self.devices.rest(Time::ns(97 * (moment % 128)));
            if turn % 2 == 0 {
                self.devices.set_up();
                self.devices
                    .submit(0, &self.devices.pool.command(Operation::Sync, 0));
                self.devices.rest(Time::ns(97 * (moment % 64)));
            }
            self.devices.power(1 + turn / 3 % all, Time::us(5));
        }
        if self.deletion == Deletion::Alone {
            self.devices.set_up();
            for device in self.devices.each() {
                for log in 0..LOGS {
                    let recover = self.devices.pool.command(Operation::Recover, log);
                    self.devices.fine(device, &recover);
                }
            }
            return vec![self.value(), 0];
        }
        let did = self.devices.recover();
        let value = self.value();
        assert!(value != TORN, "devices or objects differ: moment {moment}");
        assert!(value >= self.sure, "{value} after {}", self.sure);
        // The program continues from there: no log waits any more.
        let mut next = 0;
        for device in self.devices.each() {
            next = self.devices.get(device, register::HIGHEST).max(next) + 1;
        }
        for log in 0..LOGS {
            for device in self.devices.each() {
                let undo = self.devices.pool.undo(log, 0, 64);
                assert_eq!(self.devices.fine(device, &undo), 64);
                self.devices.store(device, 0, &[value; 64]);
                let commit = self.devices.commit(log, next, all);
                self.devices.submit(device, &commit);
            }
            if self.deletion == Deletion::Software {
                self.devices.rest(Time::us(5));
                self.devices.tell(log, next);
            }
            for device in self.devices.each() {
                self.devices.until_all(device, log, next);
            }
        }
        vec![value, did]
    }
}

/// Copies have only the thread that makes them: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn program(count: usize, deletion: Deletion, every: u64) -> Vec<u8> {
    let _alone = alone();
    let mut run = Run {
        devices: Devices::with(count, deletion == Deletion::Together),
        deletion,
        cuts: Vec::new(),
        moments: 0,
        every,
        sure: 0,
    };
    for value in 1..=TRANSACTIONS {
        run.transaction(value);
        if value % 3 == 0 {
            for device in run.devices.each() {
                run.devices.load(device, 1 << 18, 1);
            }
            run.sure = value;
        }
    }
    for _ in 0..20 {
        run.devices.rest(Time::ns(100));
        run.moment();
    }
    assert_eq!(run.value(), TRANSACTIONS);
    let cuts = std::mem::take(&mut run.cuts).into_iter();
    let ends: Vec<_> = cuts.map(|cut| cut.answer().unwrap()).collect();
    let values: Vec<u8> = ends.iter().map(|end| end[0]).collect();
    let those = |did: u8| ends.iter().filter(|end| end[1] & did != 0).count();
    let (waited, wrote_back) = (those(WAITED), those(WROTE_BACK));
    let different = (0..=TRANSACTIONS).filter(|value| values.contains(value));
    let (cuts, different) = (values.len(), different.count());
    println!(
        "{count} devices, {deletion:?}: {cuts} cuts, {different} different ends, {waited} waited, \
            {wrote_back} wrote back"
    );
    assert!(different > 3, "{values:?}");
    if deletion != Deletion::Alone {
        assert!(waited > 0 && wrote_back > 0, "{ends:?}");
    }
    values
}

/// A pool on two devices, with a record of log 0 on each, and the object changed.
fn changed() -> Devices {
    let mut devices = Devices::new(2);
    for device in devices.each() {
        let undo = devices.pool.undo(0, 0, 64);
        devices.fine(device, &undo);
        devices.store(device, 0, &[1; 64]);
    }
    devices
}

#[test]
fn crash_of_four_devices_is_recovered() {
    program(4, Deletion::Together, rounds(4, 13));
}

#[test]
fn crash_of_devices_synchronised_by_the_host_is_recovered() {
    program(2, Deletion::Software, rounds(4, 23));
}

#[test]
fn crash_after_early_log_deletion_is_noticed() {
    let values = program(2, Deletion::Alone, rounds(5, 11));
    assert!(values.contains(&TORN), "{values:?}");
}

/// Mean nanoseconds of a transaction, as the host sees it.
fn pace(count: usize, deletion: Deletion) -> f64 {
    let mut run = Run {
        devices: Devices::with(count, deletion == Deletion::Together),
        deletion,
        cuts: Vec::new(),
        moments: 0,
        every: u64::MAX,
        sure: 0,
    };
    let from = run.devices.host.now();
    for value in 1..=TRANSACTIONS {
        run.transaction(value);
    }
    let span = run.devices.host.now() - from;
    let mean = span.as_ns() / f64::from(TRANSACTIONS);
    println!("{count} devices, {deletion:?}: {mean:.0} simulated ns for a transaction");
    mean
}

#[test]
fn synchronisation_by_the_host_takes_longer() {
    for count in [2, 4] {
        assert!(pace(count, Deletion::Together) < pace(count, Deletion::Software));
    }
}

/// What `make test` runs on the RTL model, too.
mod sampled {
    use super::*;

    #[test]
    fn crash_of_two_devices_is_recovered() {
        program(2, Deletion::Together, rounds(2, 11));
    }

    #[test]
    fn log_deletion_needs_no_host_and_delays_nothing() {
        let mut devices = changed();
        let (pool, all) = (devices.pool, devices.all());
        let commit = devices.commit(0, 5, all);
        assert_eq!(devices.fine(0, &commit), 1, "its generation is the same");
        devices.rest(Time::us(50));
        let pending = devices.descriptor(0, 0);
        assert_eq!(pending.state, LogState::Pending(0b11));
        assert_eq!((pending.generation, pending.records), (1, 1));
        assert_eq!((devices.seen(0, 0), devices.seen(1, 0)), ((5, 0), (0, 0)));
        devices.select(1, 0);
        assert_eq!(devices.get(1, register::SEEN), 5, "it has been notified");
        // Its log accepts nothing; everything else works.
        let abort = pool.command(Operation::Abort, 0);
        let next = devices.commit(0, 6, all);
        for command in [pool.undo(0, 64, 64), next, abort, pool.open(0, 9)] {
            devices.refused(0, &command, ErrorBit::Busy);
        }
        devices.refused(0, &commit, ErrorBit::Invalid);
        devices.fine(0, &pool.command(Operation::Sync, 0));
        assert_eq!(devices.fine(0, &pool.undo(1, 0, 64)), 64);
        devices.store(0, 0, &[2; 64]);
        assert_eq!(devices.load(0, 0, 64), [2; 64]);
        devices.fine(0, &pool.copy(1, 0, 4096, 65_536));
        devices.fine(0, &pool.command(Operation::Abort, 1));
        assert_eq!(devices.load(0, 0, 64), [1; 64]);
        // The peer completes its part.
        devices.fine(1, &commit);
        for device in devices.each() {
            devices.until_all(device, 0, 5);
            let empty = devices.descriptor(device, 0);
            assert_eq!((empty.state, empty.generation), (LogState::Open, 2));
            assert_eq!((empty.records, empty.transaction), (0, 5));
            assert_eq!(devices.seen(device, 0), (5, 5));
            assert_eq!(devices.get(device, register::HIGHEST), 5);
            assert_eq!(devices.fine(device, &pool.undo(0, 0, 64)), 64);
        }
    }

    #[test]
    fn peer_that_was_off_is_notified_again() {
        for both in [false, true] {
            let mut devices = changed();
            let commit = devices.commit(0, 5, devices.all());
            devices.fine(1, &commit);
            // Device 1 has no power when device 0 notifies it.
            let pool = devices.pool;
            devices.host.system_mut().power_off(1);
            devices.fine(0, &commit);
            if both {
                devices.until_all(0, 0, 5);
                devices.fine(0, &pool.undo(0, 0, 64));
                devices.power(0b01, Time::us(5));
            }
            devices.power(0b10, Time::us(5));
            assert_eq!(devices.descriptor(1, 0).state, LogState::Pending(0b11));
            assert_eq!(devices.recover() & WROTE_BACK, 0);
            for device in devices.each() {
                devices.until_all(device, 0, 5);
                assert_eq!(devices.load(device, 0, 64), [1; 64]);
            }
            // However often it is notified, and even if the report is old.
            let old = Completion {
                log: pool.number << 4,
                sequence: 3,
            };
            devices.set(1, register::DONE, old.to_word());
            devices.introduce(0, 1);
            devices.rest(Time::us(5));
            assert_eq!(devices.seen(1, 0), (5, 5));
        }
    }

    /// Figures 4c and 7 of the paper: one device has committed when the power fails, the other one
    /// has not. Its log is still there.
    #[test]
    fn transaction_that_a_participant_lacks_is_written_back() {
        for (first, lost) in [(0, 0b10), (0, 0b11), (1, 0b10), (1, 0b11)] {
            let mut devices = changed();
            let commit = devices.commit(0, 5, devices.all());
            devices.fine(first, &commit);
            devices.power(lost, Time::us(5));
            let log = devices.descriptor(first, 0);
            assert_eq!(log.state, LogState::Pending(0b11), "{first}, {lost:#b}");
            assert_eq!(devices.recover(), WROTE_BACK);
            for device in devices.each() {
                assert_eq!(devices.load(device, 0, 64), [0; 64]);
                assert_eq!(devices.descriptor(device, 0).generation, 2);
            }
            // The next one has another number: what was reported of this one is not forgotten.
            devices.refused(first, &commit, ErrorBit::Invalid);
        }
    }

    #[test]
    fn commit_names_its_device_and_a_new_transaction() {
        let mut devices = changed();
        let wrong = [(5, 0b10), (5, 0b10011), (0, 0b11), (1 << 48, 0b11)];
        for (transaction, participants) in wrong {
            let commit = devices.commit(0, transaction, participants);
            devices.refused(0, &commit, ErrorBit::Invalid);
        }
        // A device that takes part alone.
        let alone = devices.commit(0, 7, 0b01);
        devices.fine(0, &alone);
        devices.until_all(0, 0, 7);
        let again = devices.commit(0, 7, 0b01);
        devices.refused(0, &again, ErrorBit::Invalid);
        // Under another number nothing is known of earlier reports.
        devices.set_word(0, register::DEVICE, register::DEVICE_IS_SET | 3);
        assert_eq!(devices.get(0, register::HIGHEST), 0);
        devices.refused(0, &again, ErrorBit::Invalid);
        devices.set_word(0, register::DEVICE, 0);
        assert_eq!(devices.get(0, register::DEVICE) as u32, 0);
        devices.refused(0, &again, ErrorBit::Invalid);
    }
}
