// SPDX-License-Identifier: Apache-2.0

//! A restored command waits for what it waited for before the power failed: lines of the access
//! hook's queue, or none of them, even if other lines are queued.

use std::fs::File;
use std::os::unix::fs::FileExt;

use device::{InitialValues, Model, PowerUpRegisters, RtlOptions};
use sim::{Media, Random};
use spec::regs::nearpm::{LINES, LINES_STRIDE};

use super::*;

/// Lines of the saved range: see "Persistence domain" in the README of the engine.
const LINE: usize = 64;
const FIRST_QUEUE: usize = 305;
const QUEUE: usize = 96;
const CHANNELS: usize = 2;
/// Bytes of the pool that commands and stores touch.
const OBJECTS: usize = 1 << 19;
/// Consecutive bytes of one channel.
const GRANULE: u64 = 4096;
/// Sources and targets of the long copies, and their length.
const LONG: u64 = 65_536;
const COPIES: [(u64, u64); 3] = [(0, 0x1_0000), (0x2_0000, 0x3_0000), (0x4_0000, 0x5_0000)];
/// The same for a copy that ends soon.
const SOON: (u64, u64, u64) = (0x6_0000, 0x6_4000, 16_384);
/// Stores to each channel's lines of the first long copy, and of the one that ends soon.
const LATER: u64 = 3;
const SOONER: u64 = 4;

/// A device with a program under way, and the expected contents of its pool.
struct WaitProgram {
    kit: Kit,
    pool: Pool,
    design: design::Design,
    media: File,
    wanted: Vec<u8>,
    /// Commands that wait for no line, and one that waits for lines of channel 0.
    lineless: Vec<u64>,
    with: u64,
    /// Of these, the commands that wait for the first long copy, and those that wait for nothing.
    after_long_copy: Vec<u64>,
    first: Vec<u64>,
}

/// What was saved of a command.
#[derive(Debug, PartialEq)]
struct SavedCommand {
    commands: u64,
    lines: [u8; CHANNELS],
}

impl WaitProgram {
    fn new(contents: InitialValues) -> WaitProgram {
        let design = design("nearpm");
        let options = RtlOptions {
            registers: Some(PowerUpRegisters::Always(contents)),
            ..RtlOptions::default()
        };
        let factory = common::made_with(&design, options);
        let media = Media::shared(design.media.bytes.0).unwrap();
        let file: File = media
            .shared_file()
            .unwrap()
            .try_clone_to_owned()
            .unwrap()
            .into();
        let pool = Pool::new(1, 7, 1 << 20);
        let mut random = Random::new(9);
        let wanted: Vec<u8> = (0..OBJECTS).map(|_| random.next() as u8).collect();
        file.write_all_at(&wanted, pool.media).unwrap();
        let mut kit = Kit::before(factory.device(media).unwrap(), &design);
        kit.fine(&pool.map());
        WaitProgram {
            kit,
            pool,
            design,
            media: file,
            wanted,
            lineless: Vec::new(),
            with: 0,
            after_long_copy: Vec::new(),
            first: Vec::new(),
        }
    }

    fn copy(&mut self, thread: u8, from: u64, bytes: u64, to: u64) -> u64 {
        let source = from as usize..(from + bytes) as usize;
        self.wanted.copy_within(source, to as usize);
        self.kit
            .submit(&self.pool.copy(thread, from, bytes, to))
            .line
    }

    fn store(&mut self, offset: u64, value: u8) {
        self.wanted[offset as usize..][..LINE].fill(value);
        self.kit.store(self.pool.media + offset, &[value; LINE]);
    }

    /// Commands that wait for nothing, for commands, and for lines, while lines of both channels
    /// wait for some of them.
    fn program(&mut self) {
        // It comes first and takes most units, so the long copies are not divided.
        let (from, to, bytes) = SOON;
        self.copy(1, from, bytes, to);
        for (from, to) in COPIES {
            let line = self.copy(0, from, LONG, to);
            self.first.push(line);
        }
        // Lines that leave soon: the first ones of the queues. Half of them are older than the next
        // command.
        for n in 0..SOONER {
            if n == SOONER / 2 {
                let line = self.copy(2, COPIES[0].1 + 5000, 300, 0x7_0000);
                self.after_long_copy.push(line);
            }
            for channel in 0..2 {
                self.store(from + channel * GRANULE + 64 * n, 1 + n as u8);
            }
        }
        // Lines that leave when the first copy has ended.
        for n in 0..LATER {
            for channel in 0..2 {
                self.store(COPIES[0].0 + channel * GRANULE + 64 * n, 11 + n as u8);
            }
        }
        let line = self.copy(2, COPIES[0].1 + 0x100, 300, 0x7_1000);
        self.after_long_copy.push(line);
        // It reads what was copied, and not this.
        self.store(COPIES[0].1 + 0x100, 21);
        self.with = self.copy(2, COPIES[0].0, 64 * LATER, 0x7_2000);
        // It touches nothing of these, and waits for the copies of its thread.
        let switch = self.pool.switch(0, 0x7_3000, 0x1234_5678);
        self.wanted[0x7_3000..0x7_3008].copy_from_slice(&0x1234_5678u64.to_le_bytes());
        let line = self.kit.submit(&switch).line;
        self.after_long_copy.push(line);
        self.lineless = [&self.first[..], &self.after_long_copy].concat();
        // Nothing delays this load; it is answered after all stores.
        self.kit.load(self.pool.media + 0x7_8000, 1);
    }

    fn range(&self) -> Vec<u8> {
        let reserved = self.design.engines().unwrap()[0].manifest.reserved.0;
        let mut range = vec![0; LINE * (FIRST_QUEUE + QUEUE * CHANNELS)];
        let at = self.design.media.bytes.0 - reserved;
        self.media.read_exact_at(&mut range, at).unwrap();
        assert_eq!(range[..8], *b"NPMSAVE\x01");
        range
    }

    /// What was saved of the command in a line of the page, if it was there.
    fn saved(&self, number: u64) -> Option<SavedCommand> {
        let range = self.range();
        let line = &range[(2 + 2 * number as usize) * LINE..][..LINE];
        (line[0] & 1 == 1).then(|| SavedCommand {
            commands: u64::from_le_bytes(line[8..16].try_into().unwrap()),
            lines: line[16..16 + CHANNELS].try_into().unwrap(),
        })
    }

    /// Lines of a channel's queue that were saved.
    fn queued(&self, channel: usize) -> usize {
        let range = self.range();
        let first = (FIRST_QUEUE + QUEUE * channel) * LINE;
        let entries = range[first..first + LINE * 32].chunks(32);
        entries.filter(|entry| entry[7] >> 7 == 1).count()
    }

    /// The power fails, and what was saved is what there was: `gone` lines of each queue have left.
    fn cut(&mut self, gone: u64) {
        let number = self.kit.host.device();
        self.kit.host.system_mut().power_off(number);
        common::rest(&mut self.kit.host, Time::us(20));
        let queued = (SOONER + LATER - gone) as usize;
        assert_eq!([self.queued(0), self.queued(1)], [queued + 1, queued]);
        for number in &self.lineless {
            let saved = self.saved(*number).expect("it has not ended");
            assert_eq!(saved.lines, [0, 0], "command {number}: {saved:?}");
        }
        for number in &self.first {
            assert_eq!(self.saved(*number).unwrap().commands, 0, "{number}");
        }
        for number in &self.after_long_copy {
            let saved = self.saved(*number).unwrap();
            assert!(saved.commands >> self.first[0] & 1 == 1, "{saved:?}");
        }
        let saved = self.saved(self.with).unwrap();
        assert_eq!(saved.lines, [queued as u8 + 1, 0], "{saved:?}");
        self.on();
    }

    fn on(&mut self) {
        let number = self.kit.host.device();
        self.kit.host.system_mut().power_on(number);
        self.kit.page = Kit::page_of(&self.design);
    }

    /// The whole pool is as the order of the program makes it.
    fn ends(&mut self, what: &str) {
        self.kit.fine(&self.pool.map());
        // The window opens when everything restored has ended.
        self.kit.load(self.pool.media, 1);
        let mut is = vec![0; OBJECTS];
        self.media.read_exact_at(&mut is, self.pool.media).unwrap();
        let lines = is.chunks(LINE).zip(self.wanted.chunks(LINE));
        let wrong = lines.enumerate().filter(|(_, (is, wanted))| is != wanted);
        let wrong: Vec<usize> = wrong.map(|(n, _)| n * LINE).collect();
        assert!(wrong.is_empty(), "{what}: not as ordered: {wrong:#x?}");
    }
}

/// What registers hold at power-on; the fast model has none.
fn each() -> &'static [InitialValues] {
    match common::model() {
        Model::Fast => &[InitialValues::Zeros],
        Model::Rtl => &[
            InitialValues::Zeros,
            InitialValues::Ones,
            InitialValues::Random(5),
        ],
    }
}

/// A program, cut off when some of its lines have left the queues: everything that commands waited
/// for is as it was.
fn cut_off(contents: InitialValues, gone: u64) -> WaitProgram {
    let mut waits = WaitProgram::new(contents);
    waits.program();
    // The first lines of each queue leave, and the later ones stay.
    let registers = waits.design.engines().unwrap()[0].offset;
    for (channel, more) in [(0, 1), (1, 0)] {
        let at = registers + LINES + LINES_STRIDE * channel;
        let wanted = (SOONER + LATER - gone) as u32 + more;
        let most = waits.kit.host.now() + Time::us(20);
        while waits.kit.host.read32(Bar::Control, at).unwrap() != wanted {
            assert!(waits.kit.host.now() < most, "no {wanted} lines are left");
        }
    }
    waits.cut(gone);
    waits
}

/// The command begins neither before the lines that it waits for have left, nor only after those
/// that wait for it, which would be never.
#[test]
fn restored_commands_wait_for_the_same_lines() {
    let _alone = alone();
    for contents in each() {
        for gone in [0, SOONER] {
            cut_off(*contents, gone).ends(&format!("{contents:?}, {gone} gone"));
        }
    }
}

/// The second save is made from what was restored.
#[test]
fn restored_commands_wait_for_the_same_lines_over_two_losses() {
    let _alone = alone();
    let contents = each()[each().len() - 1];
    // Before, during and after the restore, which takes some 25 us.
    for n in 1..=rounds(8, 2) {
        let mut waits = cut_off(contents, SOONER);
        let wait = Time::ns(n * rounds(3_607, 9_003));
        common::rest(&mut waits.kit.host, wait);
        waits.kit.lose_power(&waits.design, Time::us(20));
        waits.ends(&format!("again after {wait}"));
    }
}
