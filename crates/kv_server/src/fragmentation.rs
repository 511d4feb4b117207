// SPDX-License-Identifier: Apache-2.0

//! Requests have the same replies and the same effect however their bytes are fragmented.

use std::sync::Mutex;

use design::Design;
use sim::Random;

use crate::memcached::Memcached;
use crate::resp::Resp;
use crate::{lock, Config, Protocol, ProtocolHandler, Step, Store, MAX_VALUE};

fn store() -> Mutex<Store> {
    let design = Design::find("nearpm").unwrap();
    let config = Config {
        mechanism: pm::Mechanism::Undo,
        offload: false,
        bytes: 16 << 20,
        cut_after: None,
        cut_at: None,
    };
    Mutex::new(Store::create(&design, device::Model::Fast, config).unwrap())
}

/// The result of a connection: its replies, whether it ended, and the number of stored entries. At
/// most the bytes of the largest request are kept.
fn session(protocol: Protocol, store: &Mutex<Store>, pieces: &[&[u8]]) -> (Vec<u8>, bool, u64) {
    let flushed = lock(store).flush();
    assert!(flushed.is_ok());
    let mut handler: Box<dyn ProtocolHandler> = match protocol {
        Protocol::Redis => Box::new(Resp::new(1, None)),
        Protocol::Memcached => Box::<Memcached>::default(),
    };
    let (mut input, mut out, mut ended) = (Vec::new(), Vec::new(), false);
    'pieces: for piece in pieces {
        input.extend(*piece);
        let mut at = 0;
        loop {
            let left = input.len() - at;
            match handler.step(&input[at..], store, &mut out) {
                Step::Complete(used) => {
                    assert!(used <= left, "{used} of {left} bytes");
                    at += used;
                }
                Step::Partial(used) => {
                    assert!((1..=left).contains(&used), "{used} of {left} bytes");
                    assert!(handler.in_request());
                    at += used;
                }
                Step::NeedMore => {
                    assert!(left <= MAX_VALUE + (64 << 10) + 2, "{left} bytes are kept");
                    break;
                }
                Step::Close | Step::Reject(_) => {
                    ended = true;
                    break 'pieces;
                }
            }
        }
        input.drain(..at);
    }
    let entries = lock(store).run(crate::store::AccessMode::Read, |table| Ok(table.len()));
    (out, ended, entries.ok().unwrap())
}

fn split_at_every_byte(protocol: Protocol, input: &[u8]) {
    let store = store();
    let whole = session(protocol, &store, &[input]);
    for at in 1..input.len() {
        let (head, tail) = input.split_at(at);
        let got = session(protocol, &store, &[head, tail]);
        assert!(
            got == whole,
            "{protocol:?}, cut at {at}: {}",
            String::from_utf8_lossy(&got.0)
        );
    }
    for bytes in [1, 2, 3] {
        let pieces: Vec<&[u8]> = input.chunks(bytes).collect();
        assert!(
            session(protocol, &store, &pieces) == whole,
            "{protocol:?}, in pieces of {bytes}"
        );
    }
}

#[test]
fn fragmentation_at_each_byte_changes_no_reply() {
    split_at_every_byte(
        Protocol::Redis,
        b"HELLO 3\r\n*3\r\n$3\r\nSET\r\n$3\r\na\r\n\r\n$2\r\n*1\r\nSET \"b c\" 'd\\'e'\nMULTI\r\n\
          INCR n\r\nGET no\r\nEXEC\r\n\
          *2\r\n$3\r\nGET\r\n$3\r\na\r\n\r\n\r\n*0\r\nDBSIZE\r\nNO\r\nPOST / \
          HTTP/1.1\r\n\r\nFLUSHALL\r\n",
    );
    split_at_every_byte(
        Protocol::Memcached,
        b"set k 7 0 2\r\n\r\n\r\nget k\r\nset big 0 9 9\r\nflush_all\r\nms m 4 F3\r\nmn\r\n\r\n\
          mg m v f k\r\nappend k 0 0 2 noreply\r\n99\r\n\
          ms x 5 I\r\nmn\r\nX\r\nincr k 1\r\nset l 0 0 300000 noreply\r\nab",
    );
}

/// Requests of all kinds, valid and invalid ones, some of which end the connection.
fn drawn(protocol: Protocol, random: &mut Random) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..1 + random.below(12) {
        let blob: Vec<u8> = (0..random.below(40))
            .map(|_| b"\r\n *$0aF\"'\\\x00\xFFGET"[random.below(16) as usize])
            .collect();
        let key = random.below(4);
        let len = match random.below(24) {
            0 => 300_000,
            1 => blob.len() as u64 + 1,
            _ => blob.len() as u64,
        };
        let head = match (protocol, random.below(14)) {
            (Protocol::Redis, 0..=3) => format!("*3\r\n$3\r\nSET\r\n$1\r\n{key}\r\n${len}\r\n"),
            (Protocol::Redis, 4) => format!("*2\r\n$6\r\nAPPEND\r\n${len}\r\n"),
            (Protocol::Redis, 5) => format!("*{}\r\n", random.below(3000)),
            (Protocol::Redis, 6) => "MULTI\r\n".into(),
            (Protocol::Redis, 7) => "EXEC\r\n".into(),
            (Protocol::Redis, 8) => format!("GET {key}\r\nHELLO {}\r\n", random.below(5)),
            (Protocol::Redis, 9) => "INCR n\n\n".into(),
            (Protocol::Redis, 10) => "FLUSHALL\r\n".into(),
            (Protocol::Memcached, 0..=3) => format!("set {key} 0 0 {len}\r\n"),
            (Protocol::Memcached, 4) => format!("ms {key} {len} F{key} q\r\n"),
            (Protocol::Memcached, 5) => format!("ms {key} {len} T9\r\n"),
            (Protocol::Memcached, 6) => format!("prepend {key} 0 0 {len} noreply\r\n"),
            (Protocol::Memcached, 7) => format!("get {key}\r\nmg {key} v f t s k\r\n"),
            (Protocol::Memcached, 8) => format!("incr {key} 7\r\nma {key} v N0\r\n"),
            (Protocol::Memcached, 9) => format!("delete {key}\r\nmd {key} q\r\n"),
            (Protocol::Memcached, 10) => format!("set {key} 0 1 {len}\r\n"),
            (_, 11) => "POST / HTTP/1.1\r\n".into(),
            _ => String::new(),
        };
        out.extend(head.bytes());
        let fill = if len == 300_000 {
            len as usize
        } else {
            blob.len()
        };
        out.extend(blob.iter().chain([b'x'].iter()).cycle().take(fill));
        out.extend(b"\r\n");
    }
    out
}

#[test]
fn fragmentation_of_random_bytes_changes_no_reply() {
    for protocol in [Protocol::Redis, Protocol::Memcached] {
        let store = store();
        let mut random = Random::new(11);
        for round in 0..120 {
            let input = drawn(protocol, &mut random);
            let whole = session(protocol, &store, &[&input]);
            let most = 1 + random.below(if input.len() > 10_000 { 20_000 } else { 30 });
            let (mut pieces, mut rest) = (Vec::new(), &input[..]);
            while !rest.is_empty() {
                let (piece, after) =
                    rest.split_at((1 + random.below(most) as usize).min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            let got = session(protocol, &store, &pieces);
            assert!(
                got == whole,
                "{protocol:?}, round {round}: {}",
                input[..input.len().min(2000)].escape_ascii()
            );
        }
    }
}
