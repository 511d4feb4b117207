// SPDX-License-Identifier: Apache-2.0

//! Commands of pages together with stores, registers and a full page.

use sim::Random;

use super::scan::{SCAN_INVALID, SCAN_READ_ERROR};
use super::*;

mod sampled {
    use super::*;

    #[test]
    fn page_command_reads_earlier_stores() {
        let mut b = Bench::new("");
        // A line is held back for more than a microsecond, in each channel.
        b.slow("dram", Some(0.05));
        let mut random = Random::new(1);
        for turn in 0..12 {
            let len = [1, 64, 500, 9000][turn % 4];
            let data = bytes(&mut random, len);
            let at = random.below(4096);
            let last = len.min(50);
            b.store(at, &data);
            let from = at + (len - last) as u64;
            let copy = b.submit(COPY0, &[from, MIB, last as u64]);
            assert_eq!(
                b.finish(COPY0, copy),
                CommandResult {
                    result: 0,
                    value: 0
                }
            );
            assert!(b.load(MIB, last) == data[len - last..]);
        }
    }

    #[test]
    fn page_command_survives_a_stop_of_the_registers() {
        let mut b = Bench::new("");
        b.store(0, &[5; 4096]);
        let base = b.registers(COPY0).base;
        let long = b.submit(COPY0, &[0, 8 * MIB, MIB]);
        b.start(COPY0, &[0, 32 * MIB, 4096]);
        b.set(base, 2);
        // It has not begun, so it ends at once.
        assert_eq!(b.word(base + 0xC), 1);
        assert_eq!(b.wait(COPY0), STOPPED);
        assert_eq!(b.finish(COPY0, long).result, 0);
        assert_eq!(b.load(32 * MIB, 1), [0]);
    }
}

#[test]
fn page_full_delays_no_other_access() {
    let mut b = Bench::new("");
    let slow = b.submit(SCAN0, &[0, 8 * MIB, 0, 0, 0, 0]);
    let others: Vec<_> = (0..63)
        .map(|n| b.submit(SCAN0, &[0, 4, 0, n, 0, 0]))
        .collect();
    let full = b.pages[SCAN0].submit(&mut b.host, &[0, 4, 0, 0, 0, 0]);
    assert!(full.unwrap_err().to_string().contains("all 64 lines"));
    b.store(MIB, b"meanwhile");
    assert_eq!(b.load(MIB, 9), b"meanwhile");
    assert_eq!(b.pages[SCAN0].ended(&mut b.host, others[62]).unwrap(), None);
    assert_eq!(b.finish(SCAN0, others[62]).value, 1);
    assert_eq!(b.finish(SCAN0, slow).value, 2 * MIB - 3);
    let again = b.submit(SCAN0, &[0, 4, 0, u64::MAX, 0, 0]);
    assert_eq!(
        b.finish(SCAN0, again),
        CommandResult {
            result: 0,
            value: 1
        }
    );
    for (arguments, result) in [
        ([0, 0, 0, 1, 0, 0], SCAN_INVALID),
        ([0, 8, 0, 1, 8, 0], SCAN_INVALID),
        ([0, 8, 0, 1, 1 << 63, 0], SCAN_INVALID),
        ([1 << 62, 8, 0, 1, 1, 0], SCAN_READ_ERROR),
    ] {
        let wrong = b.submit(SCAN0, &arguments);
        assert_eq!(b.finish(SCAN0, wrong).result, result);
    }
}

#[test]
fn page_command_longer_than_all_memories_is_refused() {
    let mut b = Bench::new("");
    // Only a reset of the function could end it.
    let endless = b.submit(COPY0, &[0, 0, 1 << 62]);
    assert_eq!(b.finish(COPY0, endless).result, INVALID);
}
