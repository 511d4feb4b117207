// SPDX-License-Identifier: Apache-2.0

//! Random batches in which a pool is unmapped and its number given to another process, while
//! commits of the former process are under way. Where either order is right, the end is that of one
//! of them. Everything else has one end, on either model.

use super::*;

/// The pool of the other process, elsewhere on the media.
fn other(old: Pool) -> Pool {
    Pool {
        media: old.media + (64 << 20),
        process: 8,
        ..old
    }
}

/// What is in the log of the former process if its commit has ended, or has had no effect.
fn check_old(devices: &mut Devices, batch: &RandomBatch, what: &str) {
    let descriptor = devices.descriptor(0, 0);
    match descriptor.state {
        LogState::Open => assert_eq!(descriptor.generation, batch.generation + 1, "{what}"),
        LogState::Pending(participants) => {
            assert!(batch.several, "{what}: {descriptor:?}");
            assert_eq!(participants, 1, "{what}: {descriptor:?}");
            assert_eq!(descriptor.generation, batch.generation, "{what}");
            assert_eq!(descriptor.transaction, batch.transaction, "{what}");
            assert_eq!(descriptor.records, batch.records, "{what}");
        }
        state => panic!("{what}: {state:?}"),
    }
}

/// The random choices of a batch that decide how it ends.
struct RandomBatch {
    /// The commit names participants: only this device.
    several: bool,
    transaction: u64,
    generation: u64,
    records: u32,
}

fn run(seed: u64, batches: u64) {
    let mut random = sim::Random::new(seed);
    let mut devices = Devices::bare(1, false);
    devices.set_word(0, register::DEVICE, register::DEVICE_IS_SET);
    let old = devices.pool;
    let new = other(old);
    let mut kinds = [0; 2];
    for number in 1..=batches {
        let batch = RandomBatch {
            several: random.below(3) > 0,
            transaction: 10 * number,
            generation: 100 * number,
            records: random.below(4) as u32,
        };
        let what = format!("seed {seed}, batch {number}");
        devices.pool = old;
        let mut sent = vec![old.map(), old.open(0, batch.generation)];
        for n in 0..batch.records {
            let bytes = [8, 700, 4096, 16_384][random.below(4) as usize];
            sent.push(old.undo(0, u64::from(n) * 16_384, bytes));
        }
        let participants = u64::from(batch.several);
        sent.push(devices.commit(0, batch.transaction, participants));
        sent.push(old.command(Operation::PoolUnmap, 0));
        devices.pool = new;
        sent.extend([new.map(), new.open(0, batch.generation + 50)]);
        sent.push(new.undo(0, 0, 1 + random.below(9000)));
        sent.push(devices.commit(0, batch.transaction + 5, 1));
        let mut ends = Vec::new();
        for command in &sent {
            ends.push(devices.submit(0, command));
            // Mostly at once, sometimes when some of it has ended.
            let bits = random.below(12);
            devices.rest(Time::ns(random.below(1 << bits)));
        }
        let lost = random.below(4) == 0;
        if lost {
            // All of it has been taken; commands under way begin again.
            devices.load(0, 1 << 18, 1);
            devices.power(1, Time::us(20));
            devices.set_word(0, register::DEVICE, register::DEVICE_IS_SET);
            devices.fine(0, &new.map());
        } else {
            for (command, end) in sent.iter().zip(ends) {
                let ended = devices.finish(0, end);
                assert_eq!(ended.result, 0, "{what}: {command:?}");
                if command.operation == Operation::Commit && command.value == 0 {
                    assert_eq!(ended.value, batch.generation + 1, "{what}");
                }
            }
        }
        // The transaction of the new process is complete, and no later one is reported.
        let transaction = batch.transaction + 5;
        devices.until_all(0, 0, transaction);
        devices.rest(Time::us(5));
        assert_eq!(devices.seen(0, 0), (transaction, transaction), "{what}");
        let descriptor = devices.descriptor(0, 0);
        assert_eq!(descriptor.state, LogState::Open, "{what}");
        assert_eq!(descriptor.generation, batch.generation + 51, "{what}");
        assert_eq!(descriptor.transaction, transaction, "{what}");
        devices.fine(0, &new.undo(0, 0, 64));
        devices.fine(0, &new.command(Operation::PoolUnmap, 0));
        devices.pool = old;
        check_old(&mut devices, &batch, &what);
        // The next process that has the pool recovers its log.
        devices.fine(0, &old.map());
        let pending = devices.descriptor(0, 0).state != LogState::Open;
        let recovered = devices.fine(0, &old.command(Operation::Recover, 0));
        let wanted = if pending { batch.records.into() } else { 0 };
        assert_eq!(recovered, wanted, "{what}");
        assert_eq!(devices.descriptor(0, 0).state, LogState::Open, "{what}");
        devices.fine(0, &old.command(Operation::PoolUnmap, 0));
        kinds[usize::from(pending)] += 1;
    }
    println!(
        "seed {seed}: {} commits were done, {} pending",
        kinds[0], kinds[1]
    );
    assert!(kinds.iter().all(|count| *count > 0), "{kinds:?}");
}

#[test]
fn unmap_during_commits_ends_like_one_order() {
    run(1, rounds(300, 40));
}
