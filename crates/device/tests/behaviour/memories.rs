// SPDX-License-Identifier: Apache-2.0

//! Two memories in a device: each has separate bytes, channels and granule; what resets and losses
//! of power leave in both.

use driver::control::Inventory;
use sim::{Bar, Media, Random};
use spec::regs::engine::{ARGUMENTS, ARGUMENTS_STRIDE};

use crate::common::{self, two_memories, Copying};

/// The second memory: two channels that take turns every 8 KiB.
const STORAGE: u64 = 16 << 20;
const LOCAL: u64 = STORAGE;
const LOCAL_BYTES: u64 = 1 << 20;

impl Copying {
    /// What the local memory holds, read through the window.
    fn local(&mut self, at: u64, len: usize) -> Vec<u8> {
        let mut data = Vec::new();
        let (mut at, end) = (LOCAL + at, LOCAL + at + len as u64);
        while at < end {
            let piece = (end - at).min(4096 - at % 4096);
            data.extend(self.read(Bar::Pm, at, piece as u32).unwrap());
            at += piece;
        }
        data
    }

    /// Return value of the copy that has ended.
    fn result(&mut self) -> u32 {
        let at = self.copy + 0x10;
        self.read32(Bar::Control, at)
    }

    fn copy(&mut self, src: u64, dst: u64, bytes: u64) {
        for (n, value) in (0..).zip([src, dst, bytes]) {
            let at = self.copy + ARGUMENTS + ARGUMENTS_STRIDE * n;
            self.write32(Bar::Control, at, value as u32);
            self.write32(Bar::Control, at + 4, (value >> 32) as u32);
        }
        let control = self.copy;
        self.write32(Bar::Control, control, 1);
    }
}

mod sampled {
    use super::*;

    #[test]
    fn memories_share_the_window_without_overlap() {
        let mut b = Copying::new();
        let mut random = Random::new(1);
        let ends = [
            0,
            STORAGE - 4096,
            LOCAL,
            LOCAL + 8192 - 64,
            LOCAL + LOCAL_BYTES - 4096,
        ];
        for turn in 0..40 {
            let at = match turn < ends.len() {
                true => ends[turn],
                false => LOCAL + random.below(LOCAL_BYTES / 64 - 64) * 64,
            };
            let data: Vec<u8> = (0..1 + random.below(4096 - at % 4096))
                .map(|_| random.below(256) as u8)
                .collect();
            b.post(Bar::Pm, at, &data);
            let len = data.len();
            assert_eq!(b.read(Bar::Pm, at, len as u32), Some(data.clone()));
            let (stored, other) = match at < LOCAL {
                true => (b.stored(at, len), b.local(at % LOCAL_BYTES, len)),
                false => (b.local(at - LOCAL, len), b.stored(at - LOCAL, len)),
            };
            assert_eq!(stored, data);
            assert_ne!((other, len > 8), (data, true));
        }
        // After both memories there is nothing. It reads as all ones, or fails, and stores are
        // lost.
        let before = (b.stored(0, 1 << 20), b.local(0, 1 << 20));
        for at in [LOCAL + LOCAL_BYTES, 2 * LOCAL - 64, 2 * LOCAL, 1 << 40] {
            b.post(Bar::Pm, at, &[0x5A; 64]);
            assert_ne!(b.read(Bar::Pm, at, 64), Some(vec![0x5A; 64]));
        }
        assert!(before == (b.stored(0, 1 << 20), b.local(0, 1 << 20)));
    }

    #[test]
    fn memories_local_is_kept_in_a_file() {
        let folder = std::env::temp_dir().join(format!("nearside-local-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let media = folder.join("media.img"); // the file of the local memory is next to it
        let values = format!("[media]\nfile = {media:?}");
        let design = two_memories().with_values(&values).unwrap();
        {
            let mut b = Copying::of(&design);
            b.post(Bar::Pm, LOCAL + 12_345, b"what is kept");
            b.read(Bar::Pm, LOCAL, 1).unwrap();
            let other = Media::memory(STORAGE).unwrap();
            let error = common::factory(&design).device(other).err();
            let error = error.map(|error| error.to_string());
            assert!(error.is_some_and(|text| text.contains("another device has it")));
        }
        let mut b = Copying::of(&design);
        let kept = b.read(Bar::Pm, LOCAL + 12_345, 12);
        assert_eq!(kept.as_deref(), Some(&b"what is kept"[..]));
        drop(b);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn memories_are_listed_in_the_status_block() {
        let design = two_memories();
        let device = common::device(&common::factory(&design), &design);
        let mut host = common::host_of(&design, device);
        let inventory = Inventory::read(&mut host).unwrap();
        let memories = inventory.memories();
        let places: Vec<_> = memories
            .iter()
            .map(|m| (m.name(), m.base, m.bytes, m.first_channel, m.turns.channels))
            .collect();
        assert_eq!(
            places,
            [
                ("storage", 0, STORAGE, 0, 2),
                ("local", LOCAL, LOCAL_BYTES, 2, 2)
            ]
        );
        assert_eq!(memories[1].turns.granule, 8192);
        assert_eq!(inventory.delays().len(), 4);
    }
}

#[test]
fn memories_copies_end_with_a_function_reset_at_any_moment() {
    let mut random = Random::new(2);
    for turn in 0..24u64 {
        let mut b = Copying::new();
        let bytes = 40_000;
        let old: Vec<u8> = (0..bytes).map(|_| random.below(256) as u8).collect();
        b.store(0x1_0000, &old);
        let around = b.local(0, LOCAL_BYTES as usize);
        let dst = 0x2_0000 + random.below(64);
        b.copy(0x1_0000, LOCAL + dst, bytes);
        b.post(Bar::Pm, LOCAL + 0x8_0000, &[turn as u8 + 1; 4096]);
        b.cycles(20 + random.below(900));
        match turn % 2 {
            0 => b.device.function_reset(),
            _ => {
                b.device.power_off();
                b.device.power_on();
            }
        }
        b.host.forget();
        let now = b.local(0, LOCAL_BYTES as usize);
        for (at, (new, before)) in (0u64..).zip(now.iter().zip(&around)) {
            let copied = at
                .checked_sub(dst)
                .and_then(|n| old.get(n as usize).copied());
            let stored = (0x8_0000..0x8_1000).contains(&at);
            let allowed = new == before || copied == Some(*new) || stored && *new == turn as u8 + 1;
            assert!(allowed, "turn {turn}: byte {at:#x} is {new:#x}");
        }
        // The engine works again, and the contents are still there.
        b.cycles(100);
        let first = b.read(Bar::Pm, LOCAL + dst, 64).unwrap();
        assert_eq!(first, now[dst as usize..dst as usize + 64]);
        b.copy(0x1_0000, LOCAL + dst, bytes);
        b.cycles(6000);
        assert_eq!(b.result(), 0);
        assert_eq!(b.local(dst, bytes as usize), old);
    }
}
