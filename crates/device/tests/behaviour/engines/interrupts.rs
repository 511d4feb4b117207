// SPDX-License-Identifier: Apache-2.0

//! Interrupts of engines.

use spec::nvme::properties::{MSIX_ENTRY, MSIX_TABLE};
use spec::regs::nvme::MSIX_PENDING;

use super::*;

mod sampled {
    use super::*;

    #[test]
    fn interrupts_announce_the_end_of_a_launch() {
        let mut b = Bench::new("");
        let (vector, base) = (u64::from(b.engines[COPY0].vector), b.registers(COPY0).base);
        let entry = MSIX_TABLE + MSIX_ENTRY * vector;
        // The message goes to host memory, where it is a write.
        let place = b.host.alloc(4096, 4096).unwrap();
        for (n, value) in [place as u32, (place >> 32) as u32, 0x77, 0]
            .into_iter()
            .enumerate()
        {
            b.host
                .write32(Bar::Nvme, entry + 4 * n as u64, value)
                .unwrap();
        }
        let message_came = |b: &mut Bench| {
            let until = b.host.now() + Time::us(5);
            while b.host.now() < until {
                b.host.wait(until).unwrap();
            }
            let mut word = [0; 4];
            b.host.dma_read(place, &mut word);
            b.host.dma_write(place, &[0; 4]);
            u32::from_le_bytes(word) == 0x77
        };
        for (enable, sources, expected) in
            [(0, 1, false), (1, 0, false), (1, 1, true), (1, 1, true)]
        {
            b.set(base + 0xC, 1);
            b.set(base + 8, sources);
            b.set(base + 4, enable);
            assert_eq!(b.launch(COPY0, &[0, MIB, 4096]), 0);
            assert_eq!(message_came(&mut b), expected, "{enable} {sources}");
        }
        // The message is sent when the condition becomes true.
        b.set(base + 4, 0);
        b.set(base + 4, 1);
        assert!(message_came(&mut b));
        b.set(base + 4, 1);
        assert!(!message_came(&mut b));
        // While masked it is pending.
        b.host.write32(Bar::Nvme, entry + 12, 1).unwrap();
        assert_eq!(b.launch(COPY0, &[0, MIB, 4096]), 0);
        assert!(!message_came(&mut b));
        let pending = MSIX_PENDING + vector / 32 * 4;
        for at in (MSIX_PENDING..MSIX_PENDING + 0x1000).step_by(4) {
            let here = u32::from(at == pending) << (vector % 32);
            assert_eq!(b.host.read32(Bar::Nvme, at).unwrap(), here, "{at:#x}");
        }
        b.host.write32(Bar::Nvme, entry + 12, 0).unwrap();
        assert!(message_came(&mut b));
    }
}
