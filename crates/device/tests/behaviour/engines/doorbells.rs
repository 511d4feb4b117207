// SPDX-License-Identifier: Apache-2.0

//! Doorbells while stores wait for a command of `nearpm`.

use driver::{Buffer, Host, IoCommand, NvmeDriver};
use sim::{Bar, Time};
use spec::nearpm::Operation;

use crate::common::nearpm::{is_there, Kit};

mod sampled {
    use super::*;

    /// A doorbell is ordered after everything that the host has stored before. It is not held up
    /// while the hook can queue all of that: 64 lines in each channel.
    #[test]
    fn doorbells_pass_while_64_lines_wait() {
        if !is_there() {
            return;
        }
        let (kit, pool) = Kit::with_pool("");
        let config = driver::DriverConfig {
            io_queues: 1,
            ..driver::DriverConfig::default()
        };
        let Kit { host, mut page } = kit;
        let mut c = NvmeDriver::start(host, config).unwrap();
        let buffer = c.host_mut().alloc(512, 4096).unwrap();
        // Time of an NVMe read whose doorbell comes after this number of lines of stores, which
        // wait for a command or do not.
        let mut took = |lines: usize, wait: bool| {
            let to = pool.media + if wait { 0 } else { 3 << 18 };
            let commit = pool.command(Operation::Commit, 0);
            let undo = pool.undo(0, 0, 65_536);
            let undo = page.submit(c.host_mut(), &undo.arguments()).unwrap();
            let data = vec![lines as u8; 64 * lines];
            for (page, data) in (0..).zip(data.chunks(4096)) {
                let at = to + 4096 * page;
                c.host_mut().write(Bar::Pm, at, data).unwrap();
            }
            let lba = (pool.media + (1 << 18)) / 512;
            let io = IoCommand::Read { lba, blocks: 1 };
            let done = c.execute(0, io, &Buffer::Contiguous(buffer)).unwrap();
            done.check().unwrap();
            let works = page.ended(c.host_mut(), undo).unwrap().is_none();
            // All of that is over before the next one.
            let mut line = [0; 64];
            c.host_mut().read(Bar::Pm, pool.media, &mut line).unwrap();
            let commit = page.submit(c.host_mut(), &commit.arguments()).unwrap();
            let deadline = c.host().now() + Time::ms(1);
            let interval = Time::us(1);
            let ended = page.wait(c.host_mut(), commit, interval, deadline, &mut || true);
            assert_eq!(ended.unwrap().unwrap().result, 0);
            ((done.completed - done.submitted).0 / 1000, works)
        };
        took(0, true);
        for lines in [1, 32, 64] {
            let ([others, waiting], works) = pair(&mut took, lines);
            println!("{lines} lines wait: {waiting} ns, with other lines {others} ns");
            assert!(works, "the command ends before the read: it shows nothing");
            assert!(waiting < others + 50, "{lines} lines: {waiting} ns");
        }
        let ([others, waiting], _) = pair(&mut took, 512);
        println!("512 lines: {waiting} ns, with other lines {others} ns");
        assert!(waiting > others + 1000, "{waiting} ns: it shows nothing");
    }
}

/// With lines that do not wait, and with lines that do; and whether the command continues after the
/// latter.
fn pair(took: &mut impl FnMut(usize, bool) -> (u64, bool), lines: usize) -> ([u64; 2], bool) {
    let (others, _) = took(lines, false);
    let (waiting, works) = took(lines, true);
    ([others, waiting], works)
}
