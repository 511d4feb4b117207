// SPDX-License-Identifier: Apache-2.0

//! Other engines, which do not pass through the access hook of `nearpm`, and accesses that wait for
//! a full queue.

use ::device::Model;
use driver::page::CommandPage;
use driver::Host;
use sim::{Bar, Time};
use spec::nearpm::{Operation, QUEUE_LINES};
use spec::regs::nearpm::LINES;

use crate::common::nearpm::{Kit, Pool};
use crate::common::{design, model, rest};

/// A device with the engine `copy` in addition: its page, and the other engine's registers.
fn kit() -> Option<(Kit, Pool, CommandPage, u64)> {
    // The RTL model has no such design. It would do the same, since engines' masters bypass the
    // hook.
    if model() != Model::Fast {
        return None;
    }
    let both = "[[engine]]\nname = \"nearpm0\"\nengine = \"nearpm\"\n[[engine]]\nname = \
        \"copy0\"\nengine = \"copy\"\n";
    let design = design("nearpm").with_values(both).unwrap();
    let engines = design.engines().unwrap();
    let copies = CommandPage::new(engines[1].page.unwrap());
    let registers = engines[0].offset;
    let mut kit = Kit::of(&design);
    let pool = Pool::new(1, 7, 1 << 20);
    kit.fine(&pool.map());
    kit.fine(&pool.open(0, 1));
    Some((kit, pool, copies, registers))
}

fn copy(kit: &mut Kit, page: &mut CommandPage, from: u64, to: u64) {
    let submitted = page.submit(&mut kit.host, &[from, to, 64]).unwrap();
    let deadline = kit.host.now() + Time::ms(5);
    let ended = page.wait(
        &mut kit.host,
        submitted,
        Time::ns(200),
        deadline,
        &mut || true,
    );
    assert_eq!(ended.unwrap().expect("it has not ended").result, 0);
}

#[test]
fn nearpm_stores_are_visible_to_other_engines_once_complete() {
    let Some((mut kit, pool, mut copies, registers)) = kit() else {
        return;
    };
    let (from, to) = (pool.media, pool.media + (1 << 18));
    let mut seen = Vec::new();
    for (n, wait) in (1..).zip(["nothing", "a load", "registers"].repeat(3)) {
        // The store waits for the command, and has been answered.
        let undo = kit.submit(&pool.undo(0, 0, 60_000));
        kit.store(from, &[n; 64]);
        match wait {
            "a load" => drop(kit.load(from + 17, 1)),
            "registers" => {
                for channel in 0..2 {
                    let at = registers + LINES + 4 * channel;
                    while kit.host.read32(Bar::Control, at).unwrap() != 0 {}
                }
            }
            _ => {}
        }
        copy(&mut kit, &mut copies, from, to);
        let is = kit.load(to, 64) == [n; 64];
        match wait {
            "nothing" => seen.push(is),
            _ => assert!(is, "{wait}"),
        }
        kit.finish(undo);
        kit.fine(&pool.command(Operation::Commit, 0));
    }
    assert!(seen.contains(&false), "it waits by itself: say so");
}

/// A store overlaps a command and finds the queue of its channel full. Everything after it waits
/// until that command has ended.
#[test]
fn nearpm_full_queue_holds_stores_and_pages() {
    let Some((mut kit, pool, mut copies, _)) = kit() else {
        return;
    };
    let elsewhere = pool.media + (1 << 18) + 4096;
    let mut took = Vec::new();
    for full in [false, true] {
        kit.load(elsewhere, 1);
        rest(&mut kit.host, Time::us(20));
        let undo = kit.submit(&pool.undo(0, 0, 65_536));
        let begun = kit.host.now();
        // Addresses of one channel: a page, and a line of the next page of that channel.
        let lines = QUEUE_LINES + usize::from(full);
        for n in 0..lines as u64 {
            let at = n / 64 * 8192 + n % 64 * 64;
            kit.store(pool.media + at, &[7; 64]);
        }
        let stored = kit.host.now();
        kit.load(elsewhere, 1);
        let loaded = kit.host.now() - stored;
        kit.store(elsewhere, &[8; 64]);
        copy(&mut kit, &mut copies, elsewhere, elsewhere + 128);
        took.push((stored - begun, loaded, kit.host.now() - stored));
        kit.finish(undo);
        eprintln!(
            "full {full}: {:?}, undo {:?}",
            took.last(),
            kit.host.now() - begun
        );
        kit.fine(&pool.command(Operation::Commit, 0));
    }
    let [early, late] = [took[0].2, took[1].2];
    assert!(late > early + Time::us(3), "{took:?}");
}
