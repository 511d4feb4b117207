// SPDX-License-Identifier: Apache-2.0

//! NVMe I/O commands of engines: what reaches an engine, how a command ends, and what ends it
//! early.

mod common;

use driver::{Completion, DriverConfig, Host, NvmeDriver, SimHost};
use sim::{Bar, Time};
use spec::nvme::properties::{CC, CSTS};
use spec::nvme::{Sqe, Status};

/// Two engines in BAR4. Each keeps its commands until a register write or the controller ends them,
/// see `tests/engines/mailbox`.
const A: u64 = 0x8_0000;
const B: u64 = 0x8_4000;
const RELEASE: u64 = 0x100;
const KEPT: u64 = 0x100;
const TAKEN: u64 = 0x104;
const DEAF: u64 = 0x108;
/// Opcodes of the first engine, in both namespaces.
const KEEP: u8 = 0x90;
const CHANGE: u8 = 0xFF;
/// An opcode of the second engine, in namespace 2.
const KEEP_B: u8 = 0x94;
/// Commands that a mailbox holds.
const ROOM: u32 = 4;
/// Blocks of the first namespace, where the second one begins.
const FIRST: u32 = (8 << 20) / 512;
const SECOND: u32 = (4 << 20) / 512;

const ABORT: u8 = 0x08;
const SUCCESS: (u8, u8) = (0, 0);
const INVALID_OPCODE: (u8, u8) = (0, 0x01);
const INVALID_FIELD: (u8, u8) = (0, 0x02);
const ABORTED: (u8, u8) = (0, 0x07);
const QUEUE_DELETED: (u8, u8) = (0, 0x08);
const MISSING_FUSED: (u8, u8) = (0, 0x0A);
const INVALID_NAMESPACE: (u8, u8) = (0, 0x0B);

struct Device {
    c: NvmeDriver<SimHost>,
}

fn config() -> DriverConfig {
    DriverConfig {
        admin_entries: 16,
        io_queues: 2,
        io_entries: 64,
        ..DriverConfig::default()
    }
}

fn device() -> Device {
    let costs = testbed::driver_costs(&design::Cpu::default());
    let host = common::host_of("mailboxes", common::mailboxes(), 16 << 20, costs, 0);
    Device {
        c: NvmeDriver::start(host, config()).unwrap(),
    }
}

fn code(status: Status) -> (u8, u8) {
    ((status.0 >> 8 & 7) as u8, status.0 as u8)
}

impl Device {
    fn register(&mut self, at: u64) -> u32 {
        self.c.host_mut().read32(Bar::Control, at).unwrap()
    }

    fn set(&mut self, at: u64, value: u32) {
        self.c.host_mut().write32(Bar::Control, at, value).unwrap();
    }

    /// Lets time pass.
    fn rest(&mut self, us: u64) {
        let system = self.c.host_mut().system_mut();
        let until = system.now() + Time::ns(1000 * us);
        system.advance_until(until).unwrap();
    }

    /// Submits commands of a queue and lets them arrive.
    fn submit(&mut self, queue: usize, commands: &[Sqe]) {
        for (tag, sqe) in (0..).zip(commands) {
            self.c.submit_raw(queue, *sqe, tag).unwrap();
        }
        self.c.ring(queue).unwrap();
        self.rest(100);
    }

    /// The completions that have arrived in a queue.
    fn completions(&mut self, queue: usize) -> Vec<Completion> {
        let mut all = Vec::new();
        self.rest(10); // the CPU may be busy
        while let Some(completion) = self.c.poll(queue).unwrap() {
            all.push(completion);
            self.rest(1);
        }
        self.c.ring(queue).unwrap();
        all
    }

    /// The tags and statuses of these completions, sorted.
    fn ended(&mut self, queue: usize) -> Vec<(u64, (u8, u8))> {
        let all = self.completions(queue);
        let mut all: Vec<_> = all.iter().map(|c| (c.tag, code(c.status))).collect();
        all.sort_unstable();
        all
    }

    /// Aborts a command; returns whether it was aborted.
    fn abort(&mut self, queue: u32, cid: u32) -> bool {
        let sqe = Sqe::new(ABORT).with_cdw(10, cid << 16 | (queue + 1));
        self.c.admin(sqe, "Abort").unwrap().result & 1 == 0
    }
}

/// The exclusive or of all dwords that an engine gets.
fn sum(sqe: Sqe, cid: u16, command: u32, base: u32, blocks: u32) -> u32 {
    let bytes = sqe.with_cid(cid).to_bytes();
    let words = bytes
        .chunks(4)
        .map(|word| u32::from_le_bytes(word.try_into().unwrap()));
    words.fold(base ^ blocks ^ command << 28, |all, word| all ^ word)
}

/// A command in which every dword differs.
fn full(opcode: u8, nsid: u32, seed: u32) -> Sqe {
    let mut sqe = Sqe::new(opcode).with_nsid(nsid);
    for n in 2..16 {
        sqe = sqe.with_cdw(n, (seed + n as u32).wrapping_mul(0x9E37_79B9));
    }
    sqe
}

#[test]
#[ignore = "compiles a separate device"]
fn offloaded_commands_reach_their_engine_whole() {
    let mut d = device();
    let sqes = [
        full(KEEP, 1, 3),
        full(CHANGE, 2, 4),
        full(KEEP_B, 2, 5),
        full(KEEP, 2, 6),
    ];
    d.submit(0, &sqes);
    assert_eq!((d.register(A + KEPT), d.register(B + KEPT)), (3, 1));
    assert_eq!(d.completions(0), []);
    // The device rests meanwhile, so a second costs little time to simulate.
    d.rest(1_000_000);
    d.set(A + RELEASE, 0);
    d.set(B + RELEASE, 0);
    d.rest(100);
    let mut ended = d.completions(0);
    ended.sort_by_key(|c| c.tag);
    let expected = [
        sum(sqes[0], 0, 0, 0, FIRST),
        sum(sqes[1], 1, 1, FIRST, SECOND),
        sum(sqes[2], 2, 0, FIRST, SECOND),
        sum(sqes[3], 3, 0, FIRST, SECOND),
    ];
    let results: Vec<u32> = ended.iter().map(|c| c.result).collect();
    assert_eq!(results, expected);
    assert!(ended.iter().all(|c| c.status.is_success()));
    // The engine decides the status.
    d.submit(1, &[full(KEEP, 1, 9)]);
    d.set(A + RELEASE, 0x2C5 << 17);
    d.rest(100);
    let ended = d.completions(1);
    assert_eq!(code(ended[0].status), (2, 0xC5));
}

#[test]
#[ignore = "compiles a separate device"]
fn offloaded_unknown_commands_end() {
    let mut d = device();
    let fused = |sqe: Sqe| {
        let mut bytes = sqe.to_bytes();
        bytes[1] |= 3;
        Sqe::from_bytes(&bytes)
    };
    for (sqe, status) in [
        (Sqe::new(0x91).with_nsid(1), INVALID_OPCODE),
        (Sqe::new(0x10).with_nsid(1), INVALID_OPCODE),
        (Sqe::new(KEEP_B).with_nsid(1), INVALID_NAMESPACE),
        (Sqe::new(KEEP).with_nsid(0), INVALID_NAMESPACE),
        (Sqe::new(KEEP).with_nsid(3), INVALID_NAMESPACE),
        (Sqe::new(KEEP).with_nsid(u32::MAX), INVALID_NAMESPACE),
        (fused(Sqe::new(KEEP).with_nsid(1)), INVALID_FIELD),
        (Sqe::new(KEEP).with_nsid(1).with_fuse(true), MISSING_FUSED),
        (Sqe::new(KEEP).with_nsid(1).with_fuse(false), MISSING_FUSED),
    ] {
        let completion = d.c.execute_raw(0, sqe).unwrap();
        assert_eq!(code(completion.status), status, "{sqe:?}");
    }
    // The first command of a pair waits for its partner. A command of an engine cannot be first,
    // and starts.
    let compare = Sqe::of_blocks(0x05, 1, 0, 1).with_fuse(false);
    d.submit(0, &[compare, full(KEEP, 1, 1)]);
    assert_eq!(d.ended(0), [(0, MISSING_FUSED)]);
    // It cannot be second either.
    let second = Sqe::new(KEEP).with_nsid(1).with_fuse(true);
    d.submit(1, &[compare, second]);
    assert_eq!(d.ended(1), [(0, (0, 0x09)), (1, INVALID_FIELD)]);
    assert_eq!((d.register(A + KEPT), d.register(A + TAKEN)), (1, 1));
    d.set(A + RELEASE, 0);
    d.rest(100);
    assert_eq!(d.ended(0), [(1, SUCCESS)]);
}

#[test]
#[ignore = "compiles a separate device"]
fn offloaded_commands_are_in_the_effects_log() {
    let mut d = device();
    let buffer = d.c.host_mut().alloc(4096, 4096).unwrap();
    let log = Sqe::new(0x02)
        .with_cdw(10, 5 | 1023 << 16)
        .with_prps(buffer, 0);
    d.c.admin(log, "Get Log Page").unwrap();
    let mut page = [0; 4096];
    d.c.host_mut().dma_read(buffer, &mut page);
    let io = |opcode: usize| u32::from_le_bytes(page[1024 + 4 * opcode..][..4].try_into().unwrap());
    let there: Vec<(usize, u32)> = (0x80..0x100).map(|o| (o, io(o))).collect();
    let there: Vec<_> = there.into_iter().filter(|(_, e)| *e != 0).collect();
    assert_eq!(
        there,
        [(0x90, 1), (0x94, 1), (0xA3, 3), (0xC4, 3), (0xFF, 3)]
    );
}

#[test]
#[ignore = "compiles a separate device"]
fn offloaded_commands_beyond_capacity_block_no_others() {
    let mut d = device();
    let many: Vec<Sqe> = (0..30).map(|n| full(KEEP, 1, n)).collect();
    d.submit(0, &many);
    assert_eq!(d.register(A + KEPT), ROOM);
    // Other commands still work.
    let written = d.c.write(0, &[7; 4096]);
    written.unwrap_err(); // the queue is in use
    d.submit(1, &[full(KEEP_B, 2, 1), Sqe::flush(1)]);
    assert_eq!(d.ended(1), [(1, SUCCESS)]);
    let mut ended = 0;
    while ended < many.len() {
        d.set(A + RELEASE, 0);
        d.rest(50);
        let now = d.completions(0);
        assert!(!now.is_empty() && now.len() <= ROOM as usize);
        ended += now.len();
    }
    assert_eq!(d.register(A + TAKEN), 30);
    d.set(B + RELEASE, 0);
    d.rest(50);
    assert_eq!(d.ended(1), [(0, SUCCESS)]);
}

#[test]
#[ignore = "compiles a separate device"]
fn abort_ends_offloaded_commands_running_and_waiting() {
    let mut d = device();
    let commands: Vec<Sqe> = (0..8).map(|n| full(KEEP, 1, n)).collect();
    d.submit(0, &commands);
    assert_eq!(d.register(A + KEPT), ROOM);
    for cid in [6, 1] {
        assert!(d.abort(0, cid));
    }
    assert_eq!(d.ended(0), [(1, ABORTED), (6, ABORTED)]);
    // A slot became free, so another command has it.
    assert_eq!((d.register(A + KEPT), d.register(A + TAKEN)), (4, 5));
    // No such command, or one that has completed.
    assert!(!d.abort(0, 1));
    assert!(!d.abort(1, 0));
    d.set(A + RELEASE, 0);
    d.rest(50);
    d.set(A + RELEASE, 0);
    d.rest(50);
    assert_eq!(d.ended(0).len(), 6);
    // Slots are used again: an aborted command leaves nothing in its slot.
    d.submit(0, &commands[..4]);
    assert_eq!(d.ended(0), []);
    d.set(A + RELEASE, 0);
    d.rest(50);
    assert_eq!(d.ended(0).len(), 4);
}

#[test]
#[ignore = "compiles a separate device"]
fn queue_deletion_ends_offloaded_commands() {
    let mut d = device();
    let commands: Vec<Sqe> = (0..10).map(|n| full(KEEP, 1, n)).collect();
    d.submit(0, &commands);
    d.submit(1, &[full(KEEP_B, 2, 0), full(KEEP, 1, 5)]);
    let delete = Sqe::delete_io_sq(1);
    d.c.admin(delete, "Delete I/O Submission Queue").unwrap();
    let ended = d.ended(0);
    assert_eq!(ended.len(), 10);
    assert!(ended.iter().all(|(_, status)| *status == QUEUE_DELETED));
    assert_eq!((d.register(A + KEPT), d.register(B + KEPT)), (1, 1));
    d.set(A + RELEASE, 0);
    d.set(B + RELEASE, 0);
    d.rest(50);
    assert_eq!(d.ended(1), [(0, SUCCESS), (1, SUCCESS)]);
}

#[test]
#[ignore = "compiles a separate device"]
fn shutdown_waits_for_engines() {
    for shutdown in [false, true] {
        let mut d = device();
        let commands: Vec<Sqe> = (0..7).map(|n| full(KEEP, 1, n)).collect();
        d.submit(0, &commands);
        d.set(A + DEAF, 1);
        let host = d.c.host_mut();
        let cc = host.read32(Bar::Nvme, CC).unwrap();
        let stopped = if shutdown { cc | 1 << 14 } else { cc & !1 };
        host.write32(Bar::Nvme, CC, stopped).unwrap();
        d.rest(500);
        let state = |d: &mut Device| {
            let csts = d.c.host_mut().read32(Bar::Nvme, CSTS).unwrap();
            if shutdown {
                csts >> 2 & 3 == 2
            } else {
                csts & 1 == 0
            }
        };
        assert!(!state(&mut d), "it is still in use by the engine");
        assert_eq!(d.register(A + KEPT), ROOM);
        d.set(A + DEAF, 0);
        d.rest(500);
        assert!(state(&mut d));
        assert_eq!((d.register(A + KEPT), d.register(A + TAKEN)), (0, ROOM));
        d.c.reset().unwrap();
        d.submit(1, &commands[..2]);
        assert_eq!(d.register(A + KEPT), 2);
        d.set(A + RELEASE, 0);
        d.rest(50);
        assert_eq!(d.ended(1).len(), 2);
    }
}

#[test]
#[ignore = "compiles a separate device"]
fn function_reset_leaves_no_offloaded_command() {
    for power in [false, true] {
        let mut d = device();
        for round in 0..4 {
            let commands: Vec<Sqe> = (0..3 * round + 1).map(|n| full(KEEP, 1, n)).collect();
            d.submit(0, &commands);
            d.set(A + DEAF, round & 1);
            let host = d.c.host_mut();
            let number = host.device();
            let system = host.system_mut();
            if power {
                system.power_off(number);
                system.power_on(number);
            } else {
                system.function_reset(number);
            }
            d = Device {
                c: NvmeDriver::start(d.c.into_host(), config()).unwrap(),
            };
            assert_eq!((d.register(A + KEPT), d.register(A + TAKEN)), (0, 0));
            d.submit(0, &[full(KEEP, 2, 1)]);
            d.set(A + RELEASE, 0);
            d.rest(50);
            assert_eq!(d.ended(0), [(0, SUCCESS)]);
        }
    }
}

#[test]
#[ignore = "compiles a separate device"]
fn format_waits_for_engines() {
    let mut d = device();
    d.submit(0, &[full(CHANGE, 2, 1), full(KEEP, 1, 1)]);
    // Format NVM of namespace 2, with erasure, while an engine works in it. This calls the parts
    // itself, as the Format does not complete.
    let error = d.c.admin(Sqe::format_nvm(2, 1), "Format NVM");
    let error = error.unwrap_err().to_string();
    assert!(error.contains("Format NVM did not happen"), "{error}");
    let late = full(KEEP_B, 2, 7);
    d.submit(1, &[late]);
    assert_eq!(d.ended(1), [(0, (0, 0x84))], "Format In Progress");
    d.set(A + RELEASE, 0);
    d.rest(20_000);
    assert_eq!(d.ended(0), [(0, SUCCESS), (1, SUCCESS)]);
    d.submit(1, &[late]);
    assert_eq!(d.register(B + KEPT), 1);
}
