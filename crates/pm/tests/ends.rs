// SPDX-License-Identifier: Apache-2.0

//! Ends of a process with pools in a media file: exit, drop of the session, SIGTERM, `kill -9`.
//! None closes a pool. The next process finds all acknowledged transactions, and only complete
//! ones.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use design::Design;
use pm::session::{PoolUse, Session, SessionPool, SessionThread};
use pm::{Layout, Mechanism};
use sim::Random;

/// Environment variables with the file of the child, and its parameters.
const FILE: &str = "NEARSIDE_TEST_MEDIA";
const HOW: &str = "NEARSIDE_TEST_HOW";
/// Transactions of a child that ends by itself.
const TRANSACTIONS: u64 = 23;
/// Words that each transaction writes, one in each page.
const WORDS: u64 = 12;
/// Bytes of the object; every third transaction writes two of its pages as a whole.
const BYTES: u64 = WORDS * 4096;

const ENDS: [&str; 4] = ["exit", "drop", "term", "kill"];
/// More kills, with another seed: `KILLS=100 SEED=1000`.
const KILLS: usize = 2;

fn mechanism(name: &str) -> Mechanism {
    name.parse().unwrap()
}

fn session(file: &Path) -> Arc<Session> {
    let design = Design::find("nearpm").unwrap();
    let values = format!(
        "media.bytes = \"32 MiB\"\nmedia.file = \"{}\"\nnvme.namespaces = [\"4 MiB\"]\n",
        file.display()
    );
    let design = design.with_values(&values).unwrap();
    Arc::new(Session::start(&design, device::Model::Fast).unwrap())
}

fn usage(offload: bool, engine_recovers: bool) -> PoolUse {
    PoolUse {
        offload,
        engine_recovers,
        ..PoolUse::default()
    }
}

/// The value of all words, which has to be the same.
fn number(thread: &mut SessionThread) -> u64 {
    let at = thread.root().unwrap();
    let words: Vec<u64> = (0..WORDS)
        .map(|n| {
            let mut word = [0; 8];
            thread.read(at + n * 4096, &mut word).unwrap();
            u64::from_le_bytes(word)
        })
        .collect();
    assert!(
        words.iter().all(|word| *word == words[0]),
        "torn: {words:?}"
    );
    words[0]
}

/// One transaction.
fn step(thread: &mut SessionThread, number: u64) {
    let at = thread.root().unwrap();
    thread.begin().unwrap();
    if number % 3 == 0 {
        let mut data = vec![number as u8; 8192];
        data[..8].copy_from_slice(&number.to_le_bytes());
        data[4096..4104].copy_from_slice(&number.to_le_bytes());
        thread.write(at, &data).unwrap();
    }
    for n in 0..WORDS {
        thread.write(at + n * 4096, &number.to_le_bytes()).unwrap();
    }
    thread.commit().unwrap();
}

fn create(session: &Arc<Session>, mechanism: Mechanism, usage: PoolUse) -> SessionPool {
    let layout = Layout {
        log_bytes: 128 << 10,
        ..Layout::new("ends").with_mechanism(mechanism)
    };
    let pool = session.create(0, 8 << 20, &layout, usage).unwrap();
    let mut thread = pool.thread(0).unwrap();
    thread.begin().unwrap();
    let at = thread.alloc(BYTES).unwrap();
    thread.write(at, &vec![0; BYTES as usize]).unwrap();
    thread.set_root(at).unwrap();
    thread.commit().unwrap();
    thread.finish().unwrap();
    drop(thread);
    pool
}

/// The child program; not a test by itself.
#[test]
fn program_that_ends_with_an_open_pool() {
    let (Ok(file), Ok(how)) = (std::env::var(FILE), std::env::var(HOW)) else {
        return;
    };
    let mut words = how.split(' ');
    let mut word = || words.next().unwrap();
    let (end, by, mechanism) = (word(), word(), mechanism(word()));
    let usage = usage(by == "device", false);
    let session = session(Path::new(&file));
    let pool = match session.open(0, "ends", usage) {
        Ok(pool) => pool,
        Err(pm::Error::NoPool(_)) => create(&session, mechanism, usage),
        Err(error) => panic!("{error}"),
    };
    let mut thread = pool.thread(0).unwrap();
    let first = number(&mut thread) + 1;
    for n in first.. {
        step(&mut thread, n);
        println!("done {n}");
        std::io::stdout().flush().unwrap();
        if n == first + TRANSACTIONS {
            match end {
                "exit" => std::process::exit(0),
                "drop" => return,
                _ => {}
            }
        }
    }
}

fn child(file: &Path, how: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "program_that_ends_with_an_open_pool",
            "--nocapture",
        ])
        .env(FILE, file)
        .env(HOW, how)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Runs a child to its end; returns the last transaction that it has acknowledged.
fn run(file: &Path, end: &str, by: &str, mechanism: Mechanism, random: &mut Random) -> u64 {
    let how = format!("{end} {by} {}", mechanism.name());
    let mut child = child(file, &how);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut last = 0;
    let mut take = |line: std::io::Result<String>| {
        let line = line.unwrap();
        let Some(at) = line.find("done ") else {
            return false;
        };
        last = line[at + 5..].parse().unwrap();
        true
    };
    if matches!(end, "term" | "kill") {
        let mut left = 1 + random.below(TRANSACTIONS);
        while left > 0 {
            let line = lines.next().expect("the program has ended by itself");
            left -= u64::from(take(line));
        }
        std::thread::sleep(Duration::from_micros(random.below(700)));
        match end {
            "kill" => child.kill().unwrap(),
            _ => {
                let pid = child.id().to_string();
                let killed = Command::new("kill").args(["-TERM", &pid]).status();
                assert!(killed.unwrap().success());
            }
        }
    }
    for line in lines {
        take(line);
    }
    child.wait().unwrap();
    last
}

fn lives(mechanism: Mechanism, by: &str, seed: u64) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("media");
    let given = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    let mut random = Random::new(given("SEED").unwrap_or(0) + seed);
    let more = ENDS[2..].iter().cycle();
    let more = more.take(given("KILLS").unwrap_or(KILLS as u64) as usize);
    for (round, end) in ENDS.iter().chain(more).enumerate() {
        let last = run(&file, end, by, mechanism, &mut random);
        assert!(last > 0);
        let what = format!("{mechanism:?} by the {by}, {end}, round {round}");
        let session = session(&file);
        let usage = usage(by == "device", round % 2 == 1);
        let pool = session.open(0, "ends", usage);
        let pool = pool.unwrap_or_else(|error| panic!("{what}: {error}"));
        let mut thread = pool.thread(0).unwrap();
        let is = number(&mut thread);
        // One more may have been under way.
        assert!(
            (last..=last + 1).contains(&is),
            "{what}: {is}, acknowledged {last}"
        );
        if !matches!(*end, "term" | "kill") {
            assert_eq!(is, last, "{what}");
        }
        drop(thread);
        pool.check()
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        pool.close().unwrap();
    }
}

mod mechanisms {
    use super::*;

    #[test]
    fn undo() {
        lives(Mechanism::Undo, "device", 1);
    }

    #[test]
    fn redo() {
        lives(Mechanism::Redo, "device", 2);
    }

    #[test]
    fn checkpoint() {
        lives(Mechanism::Checkpoint, "device", 3);
    }

    #[test]
    fn shadow() {
        lives(Mechanism::Shadow, "device", 4);
    }

    #[test]
    fn by_the_cpu() {
        lives(Mechanism::Undo, "cpu", 5);
    }
}
