// SPDX-License-Identifier: Apache-2.0

//! The host of a device with the engine `nearpm`: its commands, a pool, and the contents of its
//! logs.

use design::Design;
use device::Model;
use driver::control::DelayRegisters;
use driver::page::{CommandPage, CommandResult, SubmittedCommand};
use driver::{Host, SimHost};
use sim::{Bar, Device, Time};
use spec::nearpm::{Command, Descriptor, ErrorBit, Header, Operation, Tracking};
use spec::nvm_delay::Interleave;

use super::{design, model, root};

/// True if the model under test has it.
pub fn is_there() -> bool {
    model() == Model::Fast || is_there_on_rtl()
}

/// True if the RTL model has it.
pub fn is_there_on_rtl() -> bool {
    root().join("hw/engine/nearpm/rtl/nearpm.sv").exists()
}

/// A pool of a process, mapped somewhere.
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    pub number: u8,
    pub process: u16,
    /// Its virtual address, its address on the media, and its size.
    pub base: u64,
    pub media: u64,
    pub bytes: u64,
    /// Offset of the logs, bytes of each, number of threads.
    pub logs: u64,
    pub log_bytes: u64,
    pub threads: u64,
    pub tracking: Tracking,
}

impl Pool {
    /// A pool of 1 MiB, the second half of which are logs of 128 KiB.
    pub fn new(number: u8, process: u16, media: u64) -> Pool {
        Pool {
            number,
            process,
            base: 0x7F00_0000_0000 + (u64::from(number) << 32),
            media,
            bytes: 1 << 20,
            logs: 1 << 19,
            log_bytes: 1 << 17,
            threads: 4,
            tracking: Tracking::Disabled,
        }
    }

    /// The same with one thread, without commands for records.
    pub fn tracked(self, tracking: Tracking) -> Pool {
        Pool {
            threads: 1,
            tracking,
            ..self
        }
    }

    pub fn map(&self) -> Command {
        Command {
            address: self.base,
            bytes: self.bytes,
            target: self.media,
            transaction: self.logs,
            value: self.log_bytes,
            extra: self.threads | self.tracking.bits(),
            ..self.command(Operation::PoolMap, 0)
        }
    }

    pub fn command(&self, operation: Operation, thread: u8) -> Command {
        Command::new(operation, self.process, self.number, thread)
    }

    /// The virtual address of an offset.
    pub fn at(&self, offset: u64) -> u64 {
        self.base.wrapping_add(offset)
    }

    /// The address of a thread's log in the PM window.
    pub fn log(&self, thread: u8) -> u64 {
        self.media + self.logs + u64::from(thread) * self.log_bytes
    }

    pub fn open(&self, thread: u8, generation: u64) -> Command {
        Command {
            value: generation,
            ..self.command(Operation::LogOpen, thread)
        }
    }

    /// An undo record of `bytes` from an offset on.
    pub fn undo(&self, thread: u8, offset: u64, bytes: u64) -> Command {
        Command {
            address: self.at(offset),
            bytes,
            ..self.command(Operation::Undo, thread)
        }
    }

    /// Undo records of several ranges, each of an offset and bytes.
    pub fn undo_ranges(&self, thread: u8, ranges: &[(u64, u64)]) -> Command {
        let mut command = self.command(Operation::UndoRanges, thread);
        for (to, (offset, bytes)) in command.ranges.iter_mut().zip(ranges) {
            (to.offset, to.bytes) = (*offset, *bytes);
        }
        command
    }

    pub fn redo(&self, thread: u8, from: u64, bytes: u64, to: u64) -> Command {
        Command {
            address: self.at(from),
            bytes,
            target: self.at(to),
            ..self.command(Operation::Redo, thread)
        }
    }

    pub fn copy(&self, thread: u8, from: u64, bytes: u64, to: u64) -> Command {
        Command {
            operation: Operation::Copy,
            ..self.redo(thread, from, bytes, to)
        }
    }

    pub fn apply(&self, thread: u8, record: u64, bytes: u64, to: u64) -> Command {
        Command {
            bytes,
            target: self.at(to),
            value: record,
            ..self.command(Operation::Apply, thread)
        }
    }

    pub fn switch(&self, thread: u8, to: u64, value: u64) -> Command {
        Command {
            target: self.at(to),
            value,
            ..self.command(Operation::Switch, thread)
        }
    }
}

/// The host of a device of `designs/nearpm.toml`.
pub struct Kit {
    pub host: SimHost,
    pub page: CommandPage,
}

impl Kit {
    /// The same design with other values.
    pub fn new(values: &str) -> Kit {
        Kit::of(&design("nearpm").with_values(values).unwrap())
    }

    pub fn of(design: &Design) -> Kit {
        Kit::before(super::device(&super::factory(design), design), design)
    }

    /// For a device whose memory is as slow as the design's profile says.
    pub fn before(device: Box<dyn Device + Send>, design: &Design) -> Kit {
        let mut host = super::host_of(design, device);
        let profile = design::Profile::find(&design.media.profile).unwrap();
        let turns = Interleave {
            channels: design.channels,
            granule: design.granule.0,
        };
        let all = profile.registers(design.clock(), turns).unwrap();
        for (channel, registers) in (0..).zip(&all) {
            let delay = DelayRegisters::of_channel(channel);
            delay.set(&mut host, registers).unwrap();
        }
        Kit {
            host,
            page: Kit::page_of(design),
        }
    }

    /// The engine's page, all of its lines free.
    pub fn page_of(design: &Design) -> CommandPage {
        let engines = design.engines().unwrap();
        let engine = engines.iter().find(|e| e.manifest.name == "nearpm");
        CommandPage::new(engine.and_then(|engine| engine.page).unwrap())
    }

    /// The same with a pool, and an open log of its first thread, of generation 1.
    pub fn with_pool(values: &str) -> (Kit, Pool) {
        let mut kit = Kit::new(values);
        let pool = Pool::new(1, 7, 1 << 20);
        kit.fine(&pool.map());
        kit.fine(&pool.open(0, 1));
        (kit, pool)
    }

    /// The same with a pool that is tracked.
    pub fn with_tracked_pool(values: &str, tracking: Tracking) -> (Kit, Pool) {
        let mut kit = Kit::new(values);
        let pool = Pool::new(1, 7, 1 << 20).tracked(tracking);
        kit.fine(&pool.map());
        kit.fine(&pool.open(0, 1));
        (kit, pool)
    }

    pub fn store(&mut self, at: u64, data: &[u8]) {
        let mut from = 0;
        while from < data.len() {
            let place = at + from as u64;
            let len = (4096 - place % 4096).min((data.len() - from) as u64) as usize;
            let data = &data[from..from + len];
            self.host.write(Bar::Pm, place, data).unwrap();
            from += len;
        }
    }

    pub fn load(&mut self, at: u64, len: usize) -> Vec<u8> {
        let mut data = vec![0; len];
        let mut from = 0;
        while from < len {
            let place = at + from as u64;
            let piece = (4096 - place % 4096).min((len - from) as u64) as usize;
            let data = &mut data[from..from + piece];
            self.host.read(Bar::Pm, place, data).unwrap();
            from += piece;
        }
        data
    }

    pub fn submit(&mut self, command: &Command) -> SubmittedCommand {
        let submitted = self.page.submit_line(&mut self.host, &command.to_line());
        submitted.unwrap()
    }

    pub fn finish(&mut self, command: SubmittedCommand) -> CommandResult {
        let deadline = self.host.now() + Time::ms(50);
        let (host, interval) = (&mut self.host, Time::ns(200));
        let ended = self
            .page
            .wait(host, command, interval, deadline, &mut || true);
        ended.unwrap().expect("it has not ended in 50 ms")
    }

    pub fn ends(&mut self, command: &Command) -> CommandResult {
        let submitted = self.submit(command);
        self.finish(submitted)
    }

    /// A command that succeeds: its value.
    pub fn fine(&mut self, command: &Command) -> u64 {
        let ended = self.ends(command);
        assert_eq!(ended.result, 0, "{command:?}");
        ended.value
    }

    /// A command that is refused.
    pub fn refused(&mut self, command: &Command, refusal: ErrorBit) {
        let wanted = CommandResult {
            result: refusal as u32,
            value: 0,
        };
        assert_eq!(self.ends(command), wanted, "{command:?}");
    }

    fn line(&mut self, at: u64) -> [u8; 64] {
        self.load(at, 64).try_into().unwrap()
    }

    pub fn descriptor(&mut self, pool: &Pool, thread: u8) -> Option<Descriptor> {
        let line = self.line(pool.log(thread));
        Descriptor::from_line(&line)
    }

    /// A record at an offset in a log, and its payload with the padding after it.
    pub fn record(&mut self, pool: &Pool, thread: u8, offset: u64) -> Option<(Header, Vec<u8>)> {
        let at = pool.log(thread) + offset;
        let line = self.line(at);
        let header = Header::from_line(&line)?;
        let bytes = spec::nearpm::padded(header.bytes.into()) as usize;
        Some((header, self.load(at + 64, bytes)))
    }
}
