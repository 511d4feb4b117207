// SPDX-License-Identifier: Apache-2.0

//! Incomplete logs at the opening of a pool: either the transaction is undone completely, or the
//! pool is refused.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use design::Design;
use host::CutScope;
use pm::session::{PoolUse, Session};
use pm::{Error, Layout, Mechanism};
use spec::nearpm::{Descriptor, Header, RecordWriter, FIRST_RECORD, INCOMPLETE, RESERVED_BYTES};

const PLACE: u64 = 1 << 20;
const BYTES: u64 = 1 << 20;
/// The log of the only thread.
const LOG: u64 = PLACE + 4096;
/// Offsets of three records of 64 bytes.
const RECORDS: [u64; 3] = [FIRST_RECORD, FIRST_RECORD + 128, FIRST_RECORD + 256];

fn session() -> Arc<Session> {
    let design = Design::find("nearpm").unwrap();
    let design = design.with_values("[cpu]\nprofile = \"nearpm\"\n").unwrap();
    Arc::new(Session::start(&design, device::Model::Fast).unwrap())
}

fn line(session: &Session, at: u64) -> [u8; 64] {
    let mut line = [0; 64];
    session.load(at, &mut line).unwrap();
    line
}

/// A pool whose power has failed within a transaction that had changed three lines of an object;
/// returns the object's place.
fn cut_off(session: &Arc<Session>, usage: PoolUse) -> u64 {
    let layout = Layout {
        threads: 1,
        log_bytes: 64 << 10,
        ..Layout::new("n").with_mechanism(Mechanism::Undo)
    };
    let pool = session.create(PLACE, BYTES, &layout, usage).unwrap();
    let mut thread = pool.thread(0).unwrap();
    thread.begin().unwrap();
    let at = thread.alloc(4096).unwrap();
    thread.write(at, &[b'A'; 4096]).unwrap();
    thread.set_root(at).unwrap();
    thread.commit().unwrap();
    thread.begin().unwrap();
    for n in 0..3 {
        thread.write(at + 1024 * n, &[b'B'; 64]).unwrap();
    }
    // After all stores.
    line(session, LOG);
    session.cut_power(CutScope::All).unwrap();
    drop((thread, pool));
    session.power_on().unwrap();
    // The cache may have written the lines back before the cut.
    for n in 0..3 {
        session.store(PLACE + at + 1024 * n, &[b'B'; 64]).unwrap();
    }
    at
}

fn uses() -> impl Iterator<Item = PoolUse> {
    let of = |(offload, engine_recovers)| PoolUse {
        offload,
        engine_recovers,
        ..PoolUse::default()
    };
    [(false, false), (true, false), (true, true)]
        .into_iter()
        .map(of)
}

#[test]
fn recovery_refuses_incomplete_logs() {
    for usage in uses() {
        let session = session();
        let at = cut_off(&session, usage);
        let descriptor = Descriptor::from_line(&line(&session, LOG)).unwrap();
        let demanding = |records| {
            let descriptor = Descriptor {
                records,
                ..descriptor
            };
            (LOG, descriptor.to_line().to_vec())
        };
        let headers = RECORDS.map(|at| Header::from_line(&line(&session, LOG + at)).unwrap());
        assert_eq!(headers.map(|header| header.number), [0, 1, 2]);
        let generations = headers.map(|header| header.generation);
        assert_eq!(generations, [descriptor.generation; 3]);
        let writer = match usage.offload {
            true => RecordWriter::Engine,
            false => RecordWriter::CpuOrdered,
        };
        assert_eq!(headers.map(|header| header.writer), [writer; 3]);
        let mut cases = vec![
            ((LOG + RECORDS[0], vec![0; 64]), "record 0 is missing"),
            ((LOG + RECORDS[1] + 9, vec![77]), "record 1 is missing"),
            (demanding(4), "it had 4 records, 3 are whole"),
            (demanding(INCOMPLETE), "could not make a record"),
        ];
        if usage.offload {
            // Lines of a CPU's last record may have been lost.
            let payload = (LOG + RECORDS[2] + 64, vec![b'C']);
            cases.push((payload, "the payload of record 2 is not whole"));
        }
        for ((place, bytes), what) in cases {
            let mut was = vec![0; bytes.len()];
            session.load(place, &mut was).unwrap();
            session.store(place, &bytes).unwrap();
            for _ in 0..2 {
                match session.open(PLACE, "n", usage).map(drop) {
                    Err(Error::Corrupt(text)) => {
                        assert!(text.contains("the log of thread 0"), "{text}");
                        assert!(text.contains(what), "{text} and not {what}");
                    }
                    other => panic!("{other:?} with {what}, {usage:?}"),
                }
            }
            session.store(place, &was).unwrap();
        }
        let pool = session.open(PLACE, "n", usage).unwrap();
        let mut now = vec![0; 4096];
        session.load(PLACE + at, &mut now).unwrap();
        assert!(now == [b'A'; 4096]);
        pool.check().unwrap();
    }
}

/// Of the records that a CPU has written before one fence any may be missing: their bytes have not
/// been changed yet.
#[test]
fn recovery_accepts_missing_records_before_one_fence() {
    let usage = PoolUse::default();
    let session = session();
    let at = cut_off(&session, usage);
    for record in &RECORDS[1..] {
        let place = LOG + record;
        let header = Header::from_line(&line(&session, place)).unwrap();
        let header = Header {
            writer: RecordWriter::Cpu,
            ..header
        };
        session.store(place, &header.to_line()).unwrap();
    }
    session.store(LOG + RECORDS[1], &[0; 64]).unwrap();
    session.open(PLACE, "n", usage).unwrap();
    let mut now = [0; 64];
    session.load(PLACE + at, &mut now).unwrap();
    assert_eq!(now, [b'A'; 64]);
}

/// A power cut may lose any line of the record that a CPU writes last. Its object is unchanged,
/// so recovery accepts each loss. The engine reports `torn`, and the CPU recovers in its place.
#[test]
fn recovery_accepts_a_torn_last_record_of_a_cpu() {
    for engine_recovers in [false, true] {
        accept_torn_last_record(PoolUse {
            offload: engine_recovers,
            engine_recovers,
            ..PoolUse::default()
        });
    }
}

fn accept_torn_last_record(opened: PoolUse) {
    for writer in [RecordWriter::Cpu, RecordWriter::CpuOrdered] {
        for lost in [0, 64] {
            let session = session();
            let at = cut_off(&session, PoolUse::default());
            let last = LOG + RECORDS[2];
            let header = Header::from_line(&line(&session, last)).unwrap();
            let header = Header { writer, ..header };
            session.store(last, &header.to_line()).unwrap();
            session.store(last + lost, &[0; 64]).unwrap();
            let place = PLACE + at + 2048;
            session.store(place, &[b'A'; 64]).unwrap();
            if let Err(error) = session.open(PLACE, "n", opened) {
                panic!("{error}: {writer:?}, line {lost} of the record is lost");
            }
            for line_at in [0, 1024, 2048] {
                assert_eq!(line(&session, PLACE + at + line_at), [b'A'; 64]);
            }
        }
    }
}

/// Recovery by the engine and by the CPU has one outcome, whichever byte of the log is damaged.
#[test]
fn recovery_by_engine_and_cpu_agrees_on_damaged_logs() {
    for offload in [false, true] {
        let written = PoolUse {
            offload,
            ..PoolUse::default()
        };
        for damaged in (0..FIRST_RECORD + 3 * 128).step_by(7) {
            let [by_cpu, by_engine] = [false, true].map(|engine_recovers| {
                let session = session();
                let at = cut_off(&session, written);
                let mut byte = [0];
                session.load(LOG + damaged, &mut byte).unwrap();
                session.store(LOG + damaged, &[!byte[0]]).unwrap();
                let usage = PoolUse {
                    offload: true,
                    engine_recovers,
                    ..PoolUse::default()
                };
                let is_open = session.open(PLACE, "n", usage).is_ok();
                let lines = [0, 1024, 2048].map(|line_at| line(&session, PLACE + at + line_at));
                (is_open, lines)
            });
            assert_eq!(by_cpu, by_engine, "byte {damaged}, {written:?}");
        }
    }
}

/// A device that has lost state, or can't restore it, reports that until the loss is acknowledged.
#[test]
fn recovery_refuses_a_device_that_lost_state() {
    const MEDIA: u64 = 64 << 20;
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pm-lost");
    let values = format!(
        "[media]\nbytes = \"64 MiB\"\nfile = {path:?}\n[nvme]\nnamespaces = [\"1 \
         MiB\"]\n[cpu]\nprofile = \"nearpm\"\n"
    );
    let design = Design::find("nearpm").unwrap();
    let design = design.with_values(&values).unwrap();
    let start = || Arc::new(Session::start(&design, device::Model::Fast).unwrap());
    let usage = PoolUse {
        offload: true,
        ..PoolUse::default()
    };
    for (header, what, again) in [
        (b"NPMLIVE\x01", "could not save what", false),
        (b"NPMSAVE\x02", "could not restore", true),
    ] {
        let _ = std::fs::remove_file(&path);
        let session = start();
        let at = cut_off(&session, usage);
        drop(session);
        // The header of a saved life that was not completed, and an invalid header.
        let mut line = [0; 64];
        line[..8].copy_from_slice(header);
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.write_all_at(&line, MEDIA - RESERVED_BYTES).unwrap();
        drop(file);
        let session = start();
        for _ in 0..2 {
            match session.open(PLACE, "n", usage).map(drop) {
                Err(Error::Corrupt(text)) => assert!(text.contains(what), "{text}"),
                other => panic!("{other:?} and not {what}"),
            }
            session.cut_power(CutScope::All).unwrap();
            session.power_on().unwrap();
        }
        session.forget().unwrap();
        if again {
            session.cut_power(CutScope::All).unwrap();
            session.power_on().unwrap();
        }
        session.open(PLACE, "n", usage).unwrap();
        let mut now = [0; 64];
        session.load(PLACE + at, &mut now).unwrap();
        assert_eq!(now, [b'A'; 64]);
    }
    let _ = std::fs::remove_file(&path);
}
/// The engine takes records of another number for none. The CPU reads them all.
#[test]
fn recovery_by_engine_refuses_another_pool_number_while_a_log_has_records() {
    for usage in uses() {
        for engine_recovers in [false, true] {
            let session = session();
            let at = cut_off(&session, usage);
            let engine = PoolUse {
                offload: true,
                engine_recovers,
                ..PoolUse::default()
            };
            let other = PoolUse {
                number: 1,
                ..engine
            };
            if engine_recovers {
                let error = session.open(PLACE, "n", other).err().unwrap().to_string();
                assert!(error.contains("pool number 0: open"), "{error}");
                drop(session.open(PLACE, "n", engine).unwrap());
            } else {
                drop(session.open(PLACE, "n", other).unwrap());
            }
            for line_at in [0, 1024, 2048] {
                let now = line(&session, PLACE + at + line_at);
                assert_eq!(now, [b'A'; 64], "{usage:?} {engine_recovers}");
            }
            session.open(PLACE, "n", other).unwrap();
        }
    }
}
