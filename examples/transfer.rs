// SPDX-License-Identifier: Apache-2.0

//! Transfers between two accounts in persistent memory, while the power fails. `offload`: the
//! device keeps the undo log.

use std::env;
use std::error::Error as AnyError;
use std::sync::Arc;

use design::Design;
use device::Model;
use host::CutScope;
use pm::session::{PoolUse, Session, SessionPool, SessionThread};
use pm::{Error, Layout, Mechanism};
use sim::Time;

const POOL: u64 = 0;
const BYTES: u64 = 8 << 20;
const BESIDE: u64 = 16 << 20;

fn read(thread: &mut SessionThread, at: u64) -> pm::Result<u64> {
    let mut bytes = [0; 8];
    thread.read(at, &mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// The accounts are 64 bytes apart, in two cache lines, which become persistent one by one.
fn amounts(thread: &mut SessionThread) -> pm::Result<(u64, u64, u64)> {
    let at = thread.root()?;
    Ok((at, read(thread, at)?, read(thread, at + 64)?))
}

/// Transfers an amount, atomically.
fn transfer(thread: &mut SessionThread, amount: u64) -> pm::Result<()> {
    let (at, one, other) = amounts(thread)?;
    thread.begin()?;
    // Both lines are logged at once: the CPU waits for its log once, and the device gets one
    // command.
    thread.add_range(at, 72)?;
    thread.write(at, &(one - amount).to_le_bytes())?;
    thread.write(at + 64, &(other + amount).to_le_bytes())?;
    thread.commit()
}

/// Switches power on, opens and recovers the pool, and reads the accounts.
fn recovered(system: &Arc<Session>, usage: PoolUse) -> pm::Result<(SessionPool, u64, u64)> {
    system.power_on()?;
    let pool = system.open(POOL, "accounts", usage)?;
    let (_, one, other) = amounts(&mut pool.thread(0)?)?;
    Ok((pool, one, other))
}

fn print(what: &str, one: u64, other: u64) {
    println!("{what}{one} + {other} = {}", one + other);
}

fn main() -> Result<(), Box<dyn AnyError>> {
    let usage = PoolUse {
        offload: env::args().nth(1).as_deref() == Some("offload"),
        ..PoolUse::default()
    };
    let design = Design::find("nearpm")?.with_values("cpu.profile = \"nearpm\"")?;
    let system = Arc::new(Session::start(&design, Model::Fast)?);

    // Two stores, each persistent when it returns; the power fails between them.
    system.store(BESIDE, &1000_u64.to_le_bytes())?;
    system.store(BESIDE + 64, &1000_u64.to_le_bytes())?;
    system.store(BESIDE, &600_u64.to_le_bytes())?;
    system.cut_power(CutScope::All)?;
    system.power_on()?;
    let (mut one, mut other) = ([0; 8], [0; 8]);
    system.load(BESIDE, &mut one)?;
    system.load(BESIDE + 64, &mut other)?;
    print(
        "two stores:    ",
        u64::from_le_bytes(one),
        u64::from_le_bytes(other),
    );

    // The same in a transaction.
    let layout = Layout {
        name: "accounts".into(),
        mechanism: Mechanism::Undo,
        threads: 4,
        log_bytes: 64 << 10,
        spare_pages: 64,
        tracked: false,
    };
    let pool = system.create(POOL, BYTES, &layout, usage)?;
    let mut thread = pool.thread(0)?;
    thread.begin()?;
    let at = thread.alloc(128)?;
    thread.write(at, &1000_u64.to_le_bytes())?;
    thread.write(at + 64, &1000_u64.to_le_bytes())?;
    thread.set_root(at)?;
    thread.commit()?;
    thread.begin()?;
    thread.write(at, &600_u64.to_le_bytes())?;
    system.cut_power(CutScope::All)?;
    if let Err(error) = thread.commit() {
        println!("a transaction: {error}");
    }
    drop((thread, pool));
    let (mut pool, mut one, mut other) = recovered(&system, usage)?;
    print("recovered:     ", one, other);

    // The power fails at arbitrary times in further transfers.
    let mut done = 0;
    for moment in 0..20 {
        system.cut_power_after(Time::ns(1000 + 777 * moment))?;
        let ended = pool.thread(0).and_then(|mut thread| loop {
            match transfer(&mut thread, 1) {
                Ok(()) => done += 1,
                Err(error) => return Err::<(), Error>(error),
            }
        });
        assert!(matches!(ended, Err(Error::Host(_))), "{ended:?}");
        drop(pool);
        (pool, one, other) = recovered(&system, usage)?;
        assert_eq!(one + other, 2000);
        // A transfer that had not returned may be committed, too.
        assert!([done, done + 1].contains(&(1000 - one)));
        done = 1000 - one;
    }
    print("20 losses:     ", one, other);
    Ok(())
}
