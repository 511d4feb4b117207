// SPDX-License-Identifier: Apache-2.0

//! Hostile arguments: an error with a one-line message, never a crash.

use std::ffi::{c_int, CStr};
use std::ptr::{null, null_mut};

use nearside_pm::*;

const NUMBERS: [u64; 12] = [
    0,
    1,
    63,
    64,
    4096,
    65_537,
    1 << 20,
    1 << 32,
    1 << 40,
    1 << 63,
    u64::MAX - 4095,
    u64::MAX,
];

/// The message of an error, or nothing.
fn answer(code: c_int) -> c_int {
    // SAFETY: it is a text until the next call.
    let text = unsafe { CStr::from_ptr(nspm_message()) };
    let text = text.to_str().unwrap();
    assert!((0..10).contains(&code), "{code}: {text}");
    assert_eq!(text.lines().count(), usize::from(!text.is_empty()));
    assert!(code == 0 || !text.is_empty());
    code
}

fn options(offload: u32) -> NspmOptions {
    NspmOptions {
        offload,
        group_commit: 0,
        words: 0,
        fence: 0,
        number: 0,
        engine_recovers: 0,
    }
}

fn layout() -> NspmLayout {
    NspmLayout {
        name: c"hostile".as_ptr(),
        mechanism: 0,
        threads: 0,
        log_bytes: 0,
        spare_pages: 0,
        tracked: 0,
    }
}

#[test]
fn hostile_arguments_return_an_error() {
    // SAFETY: pointers are NULL, or valid for the given sizes.
    unsafe {
        let mut system = NspmSystem { id: 0 };
        let name = c"nearpm".as_ptr();
        assert_ne!(
            answer(nspm_system_open(null(), null(), null(), &mut system)),
            0
        );
        assert_ne!(
            answer(nspm_system_open(name, null(), null(), null_mut())),
            0
        );
        for bad in [c"", c"/no/such.toml", c"\xFF"] {
            assert_ne!(
                answer(nspm_system_open(bad.as_ptr(), null(), null(), &mut system)),
                0
            );
            assert_ne!(
                answer(nspm_system_open(name, bad.as_ptr(), null(), &mut system)),
                0
            );
            assert_ne!(answer(NearPM_init_device(bad.as_ptr(), &mut system)), 0);
        }
        assert_ne!(
            answer(nspm_system_open(
                name,
                null(),
                c"x = ".as_ptr(),
                &mut system
            )),
            0
        );
        // A design without the engine.
        assert_ne!(
            answer(NearPM_init_device(c"default".as_ptr(), &mut system)),
            0
        );
        assert_eq!(
            answer(nspm_system_open(name, null(), null(), &mut system)),
            0
        );

        let mut other = NspmSystem { id: 0 };
        for n in NUMBERS.into_iter().chain([2, 3, 4, 5]) {
            let (small, by) = (n as u32, 1);
            for (devices, by) in [(small, 0), (small, by), (2, small)] {
                let open = nspm_system_open_over(name, null(), null(), devices, by, &mut other);
                let allowed = matches!(devices, 1 | 2 | 4) && by < 2;
                assert_eq!(answer(open), c_int::from(!allowed), "{devices}, {by}");
                if allowed {
                    let mut pool = NspmPool { id: 0 };
                    let mut used = options(1);
                    used.fence = 1;
                    let create = nspm_pool_create(other, 0, 64 << 20, &layout(), &used, &mut pool);
                    // With posted fences several devices may recover different transactions.
                    assert_eq!(answer(create), c_int::from(devices > 1));
                    assert_eq!(answer(nspm_system_close(other)), 0);
                }
            }
        }

        let mut pool = NspmPool { id: 0 };
        for n in NUMBERS {
            assert_ne!(
                answer(nspm_pool_create(system, n, n, null(), null(), &mut pool)),
                0
            );
            let none = nspm_pool_open(system, n, c"x".as_ptr(), null(), &mut pool);
            assert_ne!(answer(none), 0);
            let small = n as u32;
            for change in 0..10 {
                let (mut made_of, mut used) = (layout(), options(0));
                let (mut place, mut bytes) = (0, 16 << 20);
                match change {
                    0 => place = n,
                    1 => bytes = n.min(64 << 20),
                    2 => made_of.mechanism = small,
                    3 => made_of.threads = small,
                    4 => made_of.log_bytes = n,
                    5 => (made_of.spare_pages, made_of.mechanism) = (n, 3),
                    6 => used.fence = small,
                    7 => (used.offload, used.number) = (1, small),
                    8 => used.offload = small,
                    _ => made_of.tracked = small,
                }
                if answer(nspm_pool_create(
                    system, place, bytes, &made_of, &used, &mut pool,
                )) == 0
                {
                    assert_eq!(answer(nspm_pool_close(pool)), 0);
                }
            }
            answer(nspm_load(system, n, null_mut(), n as usize));
            answer(nspm_store(system, n, null(), n as usize));
            answer(nspm_power_cut(system, n.max(2) as c_int | 2, null_mut()));
            for (other, thread) in [(small, 0), (1, small), (1, 1)] {
                let (s, p, t) = (system, other, thread);
                answer(NearPM_pool_map(s, p, n, n, n, n, small, n));
                answer(NearPM_undolog_create(s, p, t, n, n, null_mut()));
                answer(NearPM_ckpoint_create(s, p, t, n, n, null_mut()));
                answer(NearPM_redolog_create(s, p, t, n, n, n, null_mut()));
                answer(NearPM_applylog(s, p, t, n, n, n));
                answer(NearPM_shadowcpy(s, p, t, n, n, n));
                answer(NearPM_recover(s, p, t, null_mut()));
                answer(NearPM_pool_unmap(s, p));
            }
        }

        let (made_of, mut thread) = (layout(), NspmThread { id: 0 });
        let create = nspm_pool_create(system, 0, 16 << 20, &made_of, null(), &mut pool);
        assert_eq!(answer(create), 0);
        // An open pool can't be opened again.
        let again = nspm_pool_open(system, 0, layout().name, null(), &mut NspmPool { id: 0 });
        assert_ne!(answer(again), 0);
        assert_ne!(answer(nspm_thread_open(pool, u32::MAX, &mut thread)), 0);
        assert_eq!(answer(nspm_thread_open(pool, 0, &mut thread)), 0);
        assert_ne!(answer(nspm_pool_close(pool)), 0);
        assert_ne!(answer(nspm_pool_resize(pool, 32 << 20)), 0);
        assert_ne!(answer(nspm_commit(thread)), 0);
        assert_ne!(answer(nspm_fail(thread)), 0);
        assert_ne!(answer(nspm_abort(thread)), 0);
        assert_ne!(answer(nspm_alloc(thread, 64, null_mut())), 0);
        assert_eq!(answer(nspm_begin(thread)), 0);
        assert_ne!(answer(nspm_begin(thread)), 0);
        let mut object = 0;
        assert_eq!(answer(nspm_alloc(thread, 64, &mut object)), 0);
        assert_ne!(answer(nspm_write(thread, object, null(), 64)), 0);
        for n in NUMBERS {
            let mut other = 0;
            answer(nspm_alloc(thread, n, &mut other));
            answer(nspm_add_range(thread, n, n));
            answer(nspm_add_range(thread, object, n));
            answer(nspm_write(thread, n, null(), n as usize));
            answer(nspm_read(thread, object, null_mut(), n as usize));
            answer(nspm_free(thread, n));
            answer(nspm_set_root(thread, n));
        }
        answer(nspm_abort(thread));
        assert_eq!(answer(nspm_pool_check(pool, null_mut())), 0);
        assert_eq!(answer(nspm_begin(thread)), 0);
        assert_eq!(answer(nspm_fail(thread)), 0);
        assert_eq!(answer(nspm_commit(thread)), 6);

        // A pool grows up to the next open one, whose bytes stay untouched.
        assert_eq!(answer(nspm_thread_close(thread)), 0);
        let mut next = NspmPool { id: 0 };
        let other = nspm_pool_create(system, 32 << 20, 16 << 20, &made_of, null(), &mut next);
        assert_eq!(answer(other), 0);
        for n in NUMBERS {
            assert_ne!(answer(nspm_pool_resize(pool, n)), 0);
        }
        assert_ne!(answer(nspm_pool_resize(pool, (32 << 20) + 4096)), 0);
        assert_eq!(answer(nspm_pool_resize(pool, 32 << 20)), 0);
        let within = nspm_pool_create(system, 20 << 20, 8 << 20, &made_of, null(), &mut next);
        assert_ne!(answer(within), 0);
        // A closed pool is not opened while another open one overlaps it.
        assert_eq!(answer(nspm_pool_close(next)), 0);
        assert_eq!(answer(nspm_pool_close(pool)), 0);
        let within = nspm_pool_create(system, 20 << 20, 8 << 20, &made_of, null(), &mut next);
        assert_eq!(answer(within), 0);
        let over = nspm_pool_open(system, 0, layout().name, null(), &mut pool);
        assert_ne!(answer(over), 0);
        assert_eq!(answer(nspm_pool_check(next, null_mut())), 0);
        assert_eq!(answer(nspm_pool_close(next)), 0);
        let over = nspm_pool_open(system, 0, layout().name, null(), &mut pool);
        assert_eq!(answer(over), 0);
        assert_eq!(answer(nspm_pool_check(pool, null_mut())), 0);
        assert_eq!(answer(nspm_thread_open(pool, 0, &mut thread)), 0);

        // Void handles are reported.
        assert_eq!(answer(nspm_begin(thread)), 0);
        assert_eq!(answer(nspm_power_cut(system, 1, null_mut())), 0);
        assert_ne!(answer(nspm_power_cut(system, 1, null_mut())), 0);
        assert_eq!(answer(nspm_alloc(thread, 64, &mut object)), 7);
        assert_eq!(answer(nspm_power_on(system)), 0);
        assert_ne!(answer(nspm_power_on(system)), 0);
        assert_ne!(answer(nspm_commit(thread)), 0);
        assert_eq!(answer(nspm_system_close(system)), 0);
        for code in [
            nspm_system_close(system),
            nspm_pool_close(pool),
            nspm_thread_close(thread),
            nspm_power_on(NspmSystem { id: u64::MAX }),
        ] {
            assert_eq!(answer(code), 9);
        }
    }
}

/// All functions that need power, of a pool and a thread.
///
/// # Safety None: pointers are valid for the given sizes.
unsafe fn needing_power(
    system: NspmSystem,
    pool: NspmPool,
    thread: NspmThread,
    object: u64,
    windows: bool,
) -> Vec<(&'static str, c_int)> {
    let (mut bytes, mut number) = ([0u8; 8], 0);
    let (mut other, mut opened) = (NspmPool { id: 0 }, NspmThread { id: 0 });
    let (at, data) = (bytes.as_mut_ptr(), bytes.as_ptr());
    // SAFETY: the caller's.
    unsafe {
        let mut all = vec![
            ("begin", nspm_begin(thread)),
            ("add_range", nspm_add_range(thread, object, 8)),
            ("write", nspm_write(thread, object, data, 8)),
            ("read", nspm_read(thread, object, at, 8)),
            ("alloc", nspm_alloc(thread, 64, &mut number)),
            ("free", nspm_free(thread, object)),
            ("root", nspm_root(thread, &mut number)),
            ("set_root", nspm_set_root(thread, object)),
            ("fail", nspm_fail(thread)),
            ("commit", nspm_commit(thread)),
            ("abort", nspm_abort(thread)),
            ("finish", nspm_finish(thread)),
            ("check", nspm_pool_check(pool, null_mut())),
            ("resize", nspm_pool_resize(pool, 32 << 20)),
            ("thread_open", nspm_thread_open(pool, 1, &mut opened)),
        ];
        if windows {
            let name = layout().name;
            let (made_of, used) = (layout(), options(0));
            all.extend([
                ("load", nspm_load(system, 0, at, 8)),
                ("store", nspm_store(system, 40 << 20, data, 8)),
                (
                    "map",
                    NearPM_pool_map(system, 9, 40 << 20, 1 << 20, 0, 4096, 1, 1),
                ),
                ("unmap", NearPM_pool_unmap(system, 9)),
                ("cut", nspm_power_cut(system, 1, null_mut())),
                ("cut_after", nspm_power_cut_after(system, 1000)),
                ("open", nspm_pool_open(system, 0, name, &used, &mut other)),
                (
                    "create",
                    nspm_pool_create(system, 0, 16 << 20, &made_of, &used, &mut other),
                ),
            ]);
        }
        all
    }
}

/// A cut at once, a scheduled cut while a program hits only its cache, and a cut of the life
/// before.
#[test]
fn power_loss_is_reported_by_every_call() {
    const POWER: c_int = 7;
    // SAFETY: pointers are NULL, or valid for the given sizes.
    unsafe {
        let mut system = NspmSystem { id: 0 };
        assert_eq!(
            answer(nspm_system_open(
                c"nearpm".as_ptr(),
                null(),
                null(),
                &mut system
            )),
            0
        );
        let power = |calls: Vec<(&str, c_int)>, when: &str| {
            for (name, code) in calls {
                assert_eq!(code, POWER, "{name}, {when}");
            }
        };
        for offload in [0, 1] {
            for ordered in [false, true] {
                let (mut pool, mut thread) = (NspmPool { id: 0 }, NspmThread { id: 0 });
                let (made_of, used) = (layout(), options(offload));
                let create = nspm_pool_create(system, 0, 16 << 20, &made_of, &used, &mut pool);
                assert_eq!(answer(create), 0);
                assert_eq!(answer(nspm_thread_open(pool, 0, &mut thread)), 0);
                let mut object = 0;
                assert_eq!(answer(nspm_begin(thread)), 0);
                assert_eq!(answer(nspm_alloc(thread, 64, &mut object)), 0);
                assert_eq!(answer(nspm_commit(thread)), 0);
                let when = if ordered { "ordered" } else { "at once" };
                if ordered {
                    assert_eq!(answer(nspm_power_cut_after(system, 1_000_000)), 0);
                    // Within a microsecond of cache hits.
                    let mut bytes = [0; 8];
                    let read = || nspm_read(thread, object, bytes.as_mut_ptr(), 8);
                    let code = std::iter::repeat_with(read)
                        .take(1 << 20)
                        .find(|code| *code != 0);
                    assert_eq!(code, Some(POWER));
                } else {
                    assert_eq!(answer(nspm_begin(thread)), 0);
                    assert_eq!(answer(nspm_power_cut(system, 1, null_mut())), 0);
                }
                let calls = needing_power(system, pool, thread, object, !ordered);
                power(calls, when);
                assert_eq!(answer(nspm_power_on(system)), 0);
                power(
                    needing_power(system, pool, thread, object, false),
                    "of the life before",
                );
                assert_eq!(answer(nspm_thread_close(thread)), 0);
                assert_eq!(answer(nspm_pool_close(pool)), 0);
            }
        }
        assert_eq!(answer(nspm_system_close(system)), 0);
    }
}

/// Closing a system with open pools is at worst a power loss: committed data are in its media file.
#[test]
fn committed_data_outlives_a_closed_system() {
    let file = std::env::temp_dir().join(format!("nearside-pm-c-{}", std::process::id()));
    let values = format!(
        "media.file = \"{}\"\nmedia.bytes = \"32 MiB\"\nnvme.namespaces = [\"4 MiB\"]\0",
        file.display()
    );
    let values = CStr::from_bytes_with_nul(values.as_bytes()).unwrap();
    let open = || {
        let mut system = NspmSystem { id: 0 };
        let name = c"nearpm".as_ptr();
        // SAFETY: texts, and pointers valid for a handle.
        let opened = unsafe { nspm_system_open(name, null(), values.as_ptr(), &mut system) };
        assert_eq!(answer(opened), 0);
        system
    };
    const PAGES: u64 = 12;
    for mechanism in 0..4 {
        let _ = std::fs::remove_file(&file);
        let made_of = NspmLayout {
            mechanism,
            log_bytes: 128 << 10,
            ..layout()
        };
        let (mut pool, mut thread) = (NspmPool { id: 0 }, NspmThread { id: 0 });
        let (mut at, used) = (0, options(1));
        // SAFETY: pointers are valid for the given sizes.
        unsafe {
            let system = open();
            let create = nspm_pool_create(system, 0, 8 << 20, &made_of, &used, &mut pool);
            assert_eq!(answer(create), 0);
            assert_eq!(answer(nspm_thread_open(pool, 0, &mut thread)), 0);
            for n in 0..12u64 {
                assert_eq!(answer(nspm_begin(thread)), 0);
                if n == 0 {
                    assert_eq!(answer(nspm_alloc(thread, PAGES << 12, &mut at)), 0);
                    assert_eq!(answer(nspm_set_root(thread, at)), 0);
                }
                for page in 0..PAGES {
                    let word = n.to_le_bytes();
                    let write = nspm_write(thread, at + (page << 12), word.as_ptr(), 8);
                    assert_eq!(answer(write), 0);
                }
                assert_eq!(answer(nspm_commit(thread)), 0);
            }
            // One more is under way.
            assert_eq!(answer(nspm_begin(thread)), 0);
            assert_eq!(answer(nspm_write(thread, at, [0xFF; 8].as_ptr(), 8)), 0);
            assert_eq!(answer(nspm_system_close(system)), 0);
            assert_eq!(std::fs::metadata(&file).unwrap().len(), 32 << 20);

            let system = open();
            let opened = nspm_pool_open(system, 0, layout().name, &used, &mut pool);
            assert_eq!(answer(opened), 0);
            assert_eq!(answer(nspm_thread_open(pool, 0, &mut thread)), 0);
            for page in 0..PAGES {
                let mut word = [0; 8];
                let read = nspm_read(thread, at + (page << 12), word.as_mut_ptr(), 8);
                assert_eq!(answer(read), 0);
                assert_eq!(
                    u64::from_le_bytes(word),
                    11,
                    "mechanism {mechanism}, page {page}"
                );
            }
            assert_eq!(answer(nspm_pool_check(pool, null_mut())), 0);
            assert_eq!(answer(nspm_system_close(system)), 0);
        }
    }
    let _ = std::fs::remove_file(&file);
}
