// SPDX-License-Identifier: Apache-2.0

//! Copies: any bytes within the bounds of the design, until they are stopped.

use driver::Host;
use sim::{Bar, Random};

use super::*;

#[test]
fn copy_of_any_alignment_and_length() {
    let mut b = Bench::new("");
    let mut random = Random::new(1);
    let span = 40_000u64;
    for base in [0, 5 * MIB, 1024 * MIB - 40_000] {
        let mut model = bytes(&mut random, span as usize);
        b.store(base, &model);
        for turn in 0..40 {
            let most = [1, 63, 64, 65, 4096, 300, 15_000][turn % 7];
            let len = 1 + random.below(most);
            let src = random.below(span / 2 - len);
            let dst = span / 2 + random.below(span / 2 - len);
            assert_eq!(b.launch(COPY0, &[base + src, base + dst, len]), 0);
            model.copy_within(src as usize..(src + len) as usize, dst as usize);
            assert!(b.load(base, span as usize) == model, "{src} {dst} {len}");
        }
    }
}

mod sampled {
    use super::*;

    #[test]
    fn copy_between_the_memories() {
        let mut b = Bench::new("");
        let data = bytes(&mut Random::new(2), 70_000);
        let local = 1024 * MIB;
        b.store(100, &data);
        assert_eq!(b.launch(COPY0, &[100, local + 7, data.len() as u64]), 0);
        assert!(b.load(local + 7, data.len()) == data);
        assert_eq!(
            b.launch(COPY0, &[local + 7, 90 * MIB + 1, data.len() as u64]),
            0
        );
        assert!(b.load(90 * MIB + 1, data.len()) == data);
        // The design excludes the second memory.
        assert_eq!(b.launch(COPY1, &[600 * MIB, local, 64]), WRITE_ERROR);
        assert_eq!(b.launch(COPY1, &[local, 600 * MIB, 64]), READ_ERROR);
        // After the end of the local memory.
        assert_eq!(
            b.launch(COPY0, &[0, local + 64 * MIB - 64, 128]),
            WRITE_ERROR
        );
        assert_eq!(b.launch(COPY0, &[0, 1, local + 64 * MIB + 1]), INVALID);
    }

    #[test]
    fn copy_stays_within_its_bounds() {
        let mut b = Bench::new("");
        let mut random = Random::new(4);
        for (src, dst, len, wrong) in [
            (0, 513 * MIB, 64, READ_ERROR), // another namespace
            (512 * MIB - 64, 513 * MIB, 128, READ_ERROR),
            (513 * MIB, 0, 64, WRITE_ERROR),
            (513 * MIB, 768 * MIB - 4096, 4097, WRITE_ERROR),
            (513 * MIB, 768 * MIB, 1, WRITE_ERROR),
            (64, 0, 64, READ_ERROR | WRITE_ERROR),
            (u64::MAX - 63, 513 * MIB, 64, READ_ERROR),
            (513 * MIB, 1 << 63, 64, WRITE_ERROR),
            (u64::MAX - 63, 513 * MIB, 65, INVALID),
            (513 * MIB, u64::MAX, 2, INVALID),
            (513 * MIB, 514 * MIB, 0, INVALID),
            (1, 2, u64::MAX, INVALID),
        ] {
            let mut around: Vec<u64> = [src, dst]
                .into_iter()
                .filter(|at| *at < 1024 * MIB)
                .map(|at| at.saturating_sub(8192))
                .collect();
            around.dedup();
            let before: Vec<Vec<u8>> = around
                .iter()
                .map(|&at| {
                    let data = bytes(&mut random, 16384);
                    b.store(at, &data);
                    data
                })
                .collect();
            assert_eq!(
                b.launch(COPY1, &[src, dst, len]),
                wrong,
                "{src:#x} {dst:#x}"
            );
            for (&at, before) in around.iter().zip(&before) {
                let now = b.load(at, before.len());
                for n in (0..before.len()).filter(|&n| now[n] != before[n]) {
                    let at = at + n as u64;
                    assert!((512 * MIB..768 * MIB).contains(&at));
                    assert!((dst..dst + len).contains(&at));
                }
            }
            // Everything that could be copied was copied, and the engine still works.
            let data = bytes(&mut random, 4096);
            b.store(520 * MIB, &data);
            assert_eq!(b.launch(COPY1, &[520 * MIB, 530 * MIB, 4096]), 0);
            assert!(b.load(530 * MIB, 4096) == data);
        }
        let data = bytes(&mut random, 192);
        b.store(512 * MIB - 64, &data);
        let wrong = b.launch(COPY1, &[512 * MIB - 64, 514 * MIB + 3, 192]);
        assert_eq!(wrong, READ_ERROR);
        // The line with the last byte that could not be read is not written.
        assert!(b.load(514 * MIB + 128, 67) == data[125..]);
    }
}

#[test]
fn copy_can_be_stopped() {
    let mut b = Bench::new("");
    let data = bytes(&mut Random::new(5), 4096);
    b.store(0, &data);
    b.start(COPY0, &[0, 64 * MIB, 32 * MIB]);
    let registers = b.registers(COPY0);
    let again = registers.start(&mut b.host, &[0, 64 * MIB, 64]);
    assert!(again.unwrap_err().to_string().contains("works already"));
    assert_eq!(registers.ended(&mut b.host).unwrap(), None);
    registers.stop(&mut b.host).unwrap();
    assert_eq!(b.wait(COPY0), STOPPED);
    assert!(b.load(64 * MIB, 4096) == data);
    registers.stop(&mut b.host).unwrap(); // a stop without effect
    assert_eq!(b.launch(COPY0, &[0, 64 * MIB, 64]), 0);
    // Next to its start.
    let base = registers.base;
    b.host.write32(Bar::Control, base + 0xC, 1).unwrap();
    b.host.write32(Bar::Control, base, 3).unwrap();
    assert_eq!(b.wait(COPY0), STOPPED);
}

#[test]
fn copy_registers_match_their_map() {
    let mut b = Bench::new("");
    let base = b.registers(COPY0).base;
    let read = |b: &mut Bench, at: u64| b.host.read32(Bar::Control, base + at).unwrap();
    for (at, value) in [(0, 4), (4, 0), (8, 0), (0xC, 0), (0x10, 0), (0x20, 0)] {
        assert_eq!(read(&mut b, at), value, "{at:#x}");
    }
    for at in (4..0x1000).step_by(4) {
        b.host.write32(Bar::Control, base + at, u32::MAX).unwrap();
    }
    let kept = |at| match at {
        0 => 4,
        4 | 8 => 1,
        0x20 | 0x24 | 0x30 | 0x34 | 0x40 | 0x44 => u32::MAX,
        _ => 0,
    };
    for at in (0..0x1000).step_by(4) {
        assert_eq!(read(&mut b, at), kept(at), "{at:#x}");
    }
    // Bytes of words, and words in one access.
    b.host.write(Bar::Control, base + 0x21, &[1, 2]).unwrap();
    assert_eq!(read(&mut b, 0x20), 0xFF02_01FF);
    b.host.write(Bar::Control, base + 0x20, &[7; 8]).unwrap();
    assert_eq!(
        (read(&mut b, 0x20), read(&mut b, 0x24)),
        (0x0707_0707, 0x0707_0707)
    );
    // Invalid; only a 1 clears the status.
    b.host.write32(Bar::Control, base, 1).unwrap();
    assert_eq!(b.wait(COPY0), INVALID);
    b.host.write32(Bar::Control, base + 0xC, 0).unwrap();
    assert_eq!(read(&mut b, 0xC), 1);
    b.host.write32(Bar::Control, base + 0x10, 0).unwrap();
    b.host.write32(Bar::Control, base + 0xC, 1).unwrap();
    assert_eq!((read(&mut b, 0xC), read(&mut b, 0x10)), (0, INVALID));
    // After the last engine's registers there is nothing.
    let mut word = [0; 4];
    let end = base + 0x1000 * b.engines.len() as u64;
    assert!(b.host.read(Bar::Control, end, &mut word).is_err());
}
