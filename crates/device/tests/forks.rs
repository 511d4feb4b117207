// SPDX-License-Identifier: Apache-2.0

//! One run with many ends: copies of the process in which the power fails, while the run itself
//! continues. This is a separate program, since other tests have media that a copy would share.

#[allow(dead_code)] // some of what `behaviour` uses
#[path = "behaviour/common/mod.rs"]
mod common;

use driver::{Buffer, DriverConfig, Host, IoCommand, NvmeDriver, SimHost};
use sim::fork::Fork;
use sim::{Random, Time};

use common::{design, rounds};

const COMMANDS: usize = 24;
const PER_COMMAND: usize = 8;
const BLOCK: usize = 512;
const BYTES: usize = PER_COMMAND * BLOCK;

fn config() -> DriverConfig {
    DriverConfig {
        io_queues: 1,
        io_entries: 64,
        ..DriverConfig::default()
    }
}

struct Run {
    c: Option<NvmeDriver<SimHost>>,
    old: Vec<u8>,
    new: Vec<u8>,
}

impl Run {
    /// Blocks, and commands under way that write all of them.
    fn begin() -> Run {
        let design = design("default");
        let device = common::device(&common::factory(&design), &design);
        let host = common::host_of(&design, device);
        let mut c = NvmeDriver::start(host, config()).unwrap();
        let mut random = Random::new(9);
        let [old, new] = [0, 1].map(|_| {
            let bytes = (0..COMMANDS * BYTES).map(|_| random.next() as u8);
            bytes.collect::<Vec<u8>>()
        });
        c.write(0, &old).unwrap();
        for command in 0..COMMANDS {
            let buffer = c.host_mut().alloc(BYTES as u64, 4096).unwrap();
            let at = command * BYTES;
            c.host_mut().dma_write(buffer, &new[at..at + BYTES]);
            let io = IoCommand::Write {
                lba: (command * PER_COMMAND) as u64,
                blocks: PER_COMMAND as u32,
            };
            c.submit(0, io, &Buffer::Contiguous(buffer), command as u64)
                .unwrap();
        }
        c.ring(0).unwrap();
        let c = Some(c);
        Run { c, old, new }
    }

    fn controller(&mut self) -> &mut NvmeDriver<SimHost> {
        self.c.as_mut().unwrap()
    }

    fn advance(&mut self, time: Time) {
        let system = self.controller().host_mut().system_mut();
        system.advance_until(system.now() + time).unwrap();
    }

    /// The numbers of the commands that have completed, all without an error.
    fn ended(&mut self) -> Vec<u64> {
        let mut tags = Vec::new();
        while let Some(completion) = self.controller().poll(0).unwrap() {
            assert_eq!(completion.status, spec::nvme::status::SUCCESS);
            tags.push(completion.tag);
        }
        tags
    }

    /// The power fails and returns. Returns how many blocks are new. Each block is new or old;
    /// those of the `ended` commands are new.
    fn cut(&mut self, mut ended: Vec<u64>) -> u8 {
        ended.extend(self.ended());
        let mut host = self.c.take().unwrap().into_host();
        let number = host.device();
        host.system_mut().power_off(number);
        host.system_mut().power_on(number);
        let mut c = NvmeDriver::start(host, config()).unwrap();
        let mut is = vec![0; self.old.len()];
        c.read(0, &mut is).unwrap();
        let mut fresh = 0;
        for (block, at) in (0..is.len()).step_by(BLOCK).enumerate() {
            let [is, old, new] = [&is, &self.old, &self.new].map(|all| &all[at..at + BLOCK]);
            let safe = ended.contains(&((block / PER_COMMAND) as u64));
            assert!(is == new || is == old && !safe, "block {block}");
            fresh += u8::from(is == new);
        }
        fresh
    }
}

/// When each command has completed, and the time at the end; the result of each copy.
fn run(copies: u64) -> (Vec<(Time, u64)>, Vec<u8>) {
    let mut run = Run::begin();
    let (mut ended, mut cuts) = (Vec::new(), Vec::new());
    for moment in 0..100 {
        run.advance(Time::ns(250));
        let now = run.controller().host_mut().now();
        ended.extend(run.ended().into_iter().map(|tag| (now, tag)));
        if moment < copies {
            let tags = ended.iter().map(|&(_, tag)| tag).collect();
            cuts.push(Fork::start(|| vec![run.cut(tags)]).unwrap());
        }
    }
    assert_eq!(ended.len(), COMMANDS);
    let tags = ended.iter().map(|&(_, tag)| tag).collect();
    assert!(run.cut(tags) == (COMMANDS * PER_COMMAND) as u8);
    let answers = cuts.into_iter().map(|cut| cut.answer().unwrap()[0]);
    (ended, answers.collect())
}

mod sampled {
    use super::*;

    #[test]
    fn forks_lose_power_at_many_moments_of_one_run() {
        let copies = rounds(100, 25);
        let (ended, fresh) = run(copies);
        assert_eq!(ended, run(0).0, "the run is not what it is without copies");
        let all = (COMMANDS * PER_COMMAND) as u8;
        let some = fresh.iter().filter(|&&n| n > 0 && n < all).count();
        assert!(fresh[0] == 0 && some > 5, "{fresh:?}");
    }
}
