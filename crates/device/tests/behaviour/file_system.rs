// SPDX-License-Identifier: Apache-2.0

//! Power that fails under the writes of a file system: acknowledged data is there, blocks are
//! whole, and so are the files that it had flushed.
//!
//! The file system is FAT, as a crate has it. A cache in front of it sends dirty blocks as many
//! commands at a time, in no order, as an operating system does.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Seek, SeekFrom, Write};

use driver::{Buffer, DriverConfig, Host, IoCommand, NvmeDriver, SimHost};
use fatfs::{FatType, FileSystem, FormatVolumeOptions, FsOptions};
use sim::memctrl::MemoryModel;
use sim::{Random, Time};

use crate::common::{self, design, rounds};

const BLOCK: usize = 512;
type Block = [u8; BLOCK];
/// FAT-16 with clusters of a block needs at least 4085 of these. Its entries are within blocks,
/// unlike those of FAT-12.
const BLOCKS: u64 = 32768;
/// Largest number of blocks of a command.
const PER_COMMAND: usize = 8;
const QUEUES: usize = 2;
/// Number of files that exist at a time.
const FILES: usize = 12;
const MOST_BYTES: u64 = 24_000;

/// Blocks of a device, with a cache that keeps writes until a flush.
struct Disk {
    c: Option<NvmeDriver<SimHost>>,
    at: u64,
    /// What was read or written since power-on.
    cache: BTreeMap<u64, Block>,
    dirty: BTreeMap<u64, Block>,
    /// Blocks as the last completed command left them.
    acknowledged: BTreeMap<u64, Block>,
    /// Blocks of commands that had not completed when the power failed.
    flight: BTreeMap<u64, Block>,
    /// The power fails this long after the beginning of that flush; the next flush is number 1.
    cut: Option<(u64, Time)>,
    has_power: bool,
}

fn queues() -> DriverConfig {
    DriverConfig {
        admin_entries: 16,
        io_queues: QUEUES as u16,
        io_entries: 64,
        ..DriverConfig::default()
    }
}

fn powerless() -> io::Error {
    io::Error::other("the power has failed")
}

impl Disk {
    fn new(memory: MemoryModel) -> Disk {
        let design = design("default");
        let device = common::device(&common::factory_with(&design, memory), &design);
        let host = common::host_of(&design, device);
        Disk {
            c: Some(NvmeDriver::start(host, queues()).unwrap()),
            at: 0,
            cache: BTreeMap::new(),
            dirty: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
            flight: BTreeMap::new(),
            cut: None,
            has_power: true,
        }
    }

    fn controller(&mut self) -> &mut NvmeDriver<SimHost> {
        self.c.as_mut().unwrap()
    }

    fn block(&mut self, lba: u64) -> io::Result<&mut Block> {
        if !self.has_power {
            return Err(powerless());
        }
        if !self.cache.contains_key(&lba) {
            let mut block = [0; BLOCK];
            self.controller().read(lba, &mut block).unwrap();
            self.cache.insert(lba, block);
        }
        Ok(self.cache.get_mut(&lba).unwrap())
    }

    /// The part of a block that is at the present position, as far as `len` goes.
    fn part(&self, len: usize) -> (u64, std::ops::Range<usize>) {
        let from = (self.at % BLOCK as u64) as usize;
        (
            self.at / BLOCK as u64,
            from..BLOCK.min(from.saturating_add(len)),
        )
    }

    /// Dirty blocks that follow each other, as commands.
    fn commands(&mut self) -> VecDeque<(u64, Vec<u8>)> {
        let mut commands: VecDeque<(u64, Vec<u8>)> = VecDeque::new();
        for (lba, block) in std::mem::take(&mut self.dirty) {
            match commands.back_mut() {
                Some((first, data))
                    if data.len() < PER_COMMAND * BLOCK
                        && *first + (data.len() / BLOCK) as u64 == lba =>
                {
                    data.extend(block);
                }
                _ => commands.push_back((lba, block.to_vec())),
            }
        }
        commands
    }

    fn fail(&mut self, cut_off: impl Iterator<Item = (u64, Vec<u8>)>) -> io::Error {
        for (lba, data) in cut_off {
            let blocks = data.chunks(BLOCK).map(|b| b.try_into().unwrap());
            self.flight.extend((lba..).zip(blocks));
        }
        let host = self.controller().host_mut();
        let number = host.device();
        host.system_mut().power_off(number);
        self.has_power = false;
        powerless()
    }

    /// After power-on: the host knows nothing of the disk.
    fn restart(&mut self) {
        let mut host = self.c.take().unwrap().into_host();
        let number = host.device();
        host.system_mut().power_on(number);
        self.c = Some(NvmeDriver::start(host, queues()).unwrap());
        self.cache.clear();
        self.dirty.clear();
        self.has_power = true;
    }

    /// Acknowledged blocks are as they were; each of the others is old or new. Returns how many are
    /// old, and new.
    fn check(&mut self, what: &str) -> [usize; 2] {
        let mut known = self.acknowledged.clone();
        let mut seen = [0; 2];
        for (lba, new) in std::mem::take(&mut self.flight) {
            let old = known.get(&lba).copied().unwrap_or([0; BLOCK]);
            let is = *self.block(lba).unwrap();
            assert!(is == old || is == new, "{what}: block {lba} is torn");
            if old != new {
                seen[usize::from(is == new)] += 1;
            }
            known.insert(lba, is);
        }
        for (lba, block) in &known {
            assert!(
                self.block(*lba).unwrap() == block,
                "{what}: block {lba} is not what was acknowledged"
            );
        }
        self.acknowledged = known;
        seen
    }
}

impl Read for Disk {
    fn read(&mut self, data: &mut [u8]) -> io::Result<usize> {
        let (lba, part) = self.part(data.len());
        if lba >= BLOCKS {
            return Ok(0);
        }
        let len = part.len();
        data[..len].copy_from_slice(&self.block(lba)?[part]);
        self.at += len as u64;
        Ok(len)
    }
}

impl Write for Disk {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let (lba, part) = self.part(data.len());
        if lba >= BLOCKS {
            return Ok(0);
        }
        let len = part.len();
        let block = self.block(lba)?;
        block[part].copy_from_slice(&data[..len]);
        let block = *block;
        self.dirty.insert(lba, block);
        self.at += len as u64;
        Ok(len)
    }

    /// All dirty blocks at a time, then a Flush.
    fn flush(&mut self) -> io::Result<()> {
        if !self.has_power {
            return Err(powerless());
        }
        if self.dirty.is_empty() {
            return Ok(());
        }
        let begin = self.controller().now();
        let limit = begin + self.controller().command_timeout();
        let mut cut_at = Time::MAX;
        if let Some((flushes, after)) = &mut self.cut {
            *flushes -= 1;
            if *flushes == 0 {
                cut_at = begin + *after;
                self.cut = None;
            }
        }
        let mut waiting = self.commands();
        let mut sent: BTreeMap<u64, (u64, (u64, Vec<u8>))> = BTreeMap::new();
        loop {
            let c = self.c.as_mut().unwrap();
            while c.has_room(waiting.len() % QUEUES) {
                let Some((lba, data)) = waiting.pop_front() else {
                    break;
                };
                let buffer = c.host_mut().alloc(data.len() as u64, 4096).unwrap();
                c.host_mut().dma_write(buffer, &data);
                let blocks = (data.len() / BLOCK) as u32;
                let queue = waiting.len() % QUEUES;
                let io = IoCommand::Write { lba, blocks };
                let tag = lba;
                c.submit(queue, io, &Buffer::Contiguous(buffer), tag)
                    .unwrap();
                sent.insert(tag, (buffer, (lba, data)));
            }
            if sent.is_empty() {
                break;
            }
            for queue in 0..QUEUES {
                while let Some(done) = c.poll(queue).unwrap() {
                    done.check().unwrap();
                    let (buffer, (lba, data)) = sent.remove(&done.tag).unwrap();
                    c.host_mut().free(buffer, data.len() as u64);
                    let blocks = data.chunks(BLOCK).map(|b| b.try_into().unwrap());
                    self.acknowledged.extend((lba..).zip(blocks));
                }
                c.ring(queue).unwrap();
            }
            let now = c.now();
            assert!(now < limit, "a flush doesn't end");
            if now >= cut_at {
                for (buffer, (_, data)) in sent.values() {
                    c.host_mut().free(*buffer, data.len() as u64);
                }
                return Err(self.fail(sent.into_values().map(|s| s.1).chain(waiting)));
            }
            c.host_mut().wait(limit.min(cut_at)).unwrap();
        }
        if cut_at < Time::MAX {
            return Err(self.fail(std::iter::empty()));
        }
        self.controller().flush().unwrap();
        Ok(())
    }
}

impl Seek for Disk {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => (BLOCKS * BLOCK as u64).checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

fn mounted(disk: &mut Disk) -> FileSystem<&mut Disk> {
    disk.rewind().unwrap();
    FileSystem::new(disk, FsOptions::new()).unwrap()
}

/// What a program has in its files.
#[derive(Default)]
struct Files {
    flushed: VecDeque<(String, Vec<u8>)>,
    /// Files of which nothing is known: they were being written or deleted.
    unsure: Vec<String>,
    written: u64,
}

impl Files {
    /// Writes files and deletes the oldest ones until the power fails.
    fn go_on(&mut self, disk: &mut Disk, random: &mut Random) {
        let fs = mounted(disk);
        let mut step = || -> io::Result<()> {
            let root = fs.root_dir();
            if self.flushed.len() == FILES {
                let (name, _) = self.flushed.pop_front().unwrap();
                self.unsure.push(name.clone());
                root.remove(&name)?;
            }
            let name = format!("file{:04}.txt", self.written);
            self.written += 1;
            self.unsure.push(name.clone());
            let len = 1 + random.below(MOST_BYTES);
            let data: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
            let mut file = root.create_file(&name)?;
            file.write_all(&data)?;
            file.flush()?;
            self.unsure.clear();
            self.flushed.push_back((name, data));
            Ok(())
        };
        while step().is_ok() {}
    }

    /// Everything that was flushed is there; files under way are deleted.
    fn check(&mut self, disk: &mut Disk, what: &str) {
        let fs = mounted(disk);
        let root = fs.root_dir();
        let names: Vec<String> = root.iter().map(|e| e.unwrap().file_name()).collect();
        for (name, data) in &self.flushed {
            let mut is = Vec::new();
            let read = root
                .open_file(name)
                .and_then(|mut f| f.read_to_end(&mut is));
            assert!(read.is_ok(), "{what}: {name}: {read:?}");
            assert!(is == *data, "{what}: {name} is not what was flushed");
        }
        let expected = |name: &String| {
            self.unsure.contains(name) || self.flushed.iter().any(|file| file.0 == *name)
        };
        assert!(names.iter().all(expected), "{what}: {names:?}");
        for name in self.unsure.drain(..).filter(|name| names.contains(name)) {
            root.remove(&name).unwrap();
        }
        drop(root);
        fs.unmount().unwrap();
    }
}

/// The latest power loss after the beginning of a flush; some flushes have ended by then.
const LONGEST: Time = Time::us(6);

/// This number of losses of power, each after some files.
fn fails(memory: MemoryModel, cuts: u64) {
    let mut random = Random::new(16);
    let mut disk = Disk::new(memory);
    let options = FormatVolumeOptions::new()
        .fat_type(FatType::Fat16)
        .bytes_per_cluster(BLOCK as u32);
    fatfs::format_volume(&mut disk, options).unwrap();
    disk.flush().unwrap();
    let mut files = Files::default();
    let mut seen = [0; 2];
    for number in 0..cuts {
        let after = Time(random.below(LONGEST.0));
        disk.cut = Some((1 + random.below(4), after));
        let what = format!("loss of power {number}");
        files.go_on(&mut disk, &mut random);
        assert!(!disk.has_power, "{what}: the file system has an error");
        disk.restart();
        let found = disk.check(&what);
        seen.iter_mut().zip(found).for_each(|(sum, n)| *sum += n);
        files.check(&mut disk, &what);
        disk.flush().unwrap();
    }
    assert!(
        seen.iter().all(|n| *n as u64 > cuts),
        "{seen:?} blocks are old, new: the power doesn't fail under writes"
    );
}

mod sampled {
    use super::*;

    #[test]
    #[ignore = "takes seconds"]
    fn file_system_survives_power_loss() {
        fails(
            MemoryModel::Ddr4(sim::DramConfig::default()),
            rounds(200, 8),
        );
    }
}

#[test]
#[ignore = "takes seconds"]
fn file_system_survives_power_loss_on_slow_memory() {
    fails(MemoryModel::Fixed(Time::ns(900)), rounds(200, 8));
}
