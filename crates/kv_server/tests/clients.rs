// SPDX-License-Identifier: Apache-2.0

//! Raw bytes to both protocols: replies, hostile clients, power losses. Real clients:
//! `tests/test_kv_server.py`.

mod common;

use std::collections::BTreeMap;
use std::io::{Read, Write};

use common::*;
use kv_server::{Access, Endpoint, Limits, Protocol, Server};
use pm::Mechanism;
use sim::Random;

fn server(
    protocol: Protocol,
    mechanism: Mechanism,
    offload: bool,
    cut_after: Option<u64>,
) -> Server {
    let store = store(mechanism, offload, cut_after);
    serve(store, protocol, &Access::loopback(0), Limits::default()).0
}

#[test]
fn server_removes_only_the_socket_it_created() {
    let path = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("front.sock");
    let _ = std::fs::remove_file(&path);
    let start = || {
        let access = Access {
            endpoint: Endpoint::Unix(path.clone()),
            ..Access::loopback(0)
        };
        let store = store(Mechanism::Undo, true, None);
        serve(store, Protocol::Redis, &access, Limits::default()).0
    };
    let first = start();
    std::fs::remove_file(&path).unwrap();
    let second = start();
    drop(first);
    assert!(path.exists());
    std::os::unix::net::UnixStream::connect(&path).unwrap();
    drop(second);
    assert!(!path.exists());
}

#[test]
fn redis_transactions_work_fragmented_and_pipelined() {
    let server = server(Protocol::Redis, Mechanism::Undo, true, None);
    let mut one = connect(&server);
    let request =
        b"*3\r\n$3\r\nSET\r\n$3\r\na\0\n\r\n$2\r\n\r\n\r\n*2\r\n$3\r\nGET\r\n$3\r\na\0\n\r\n";
    for byte in &request[..] {
        one.write_all(&[*byte]).unwrap();
    }
    expect_reply(&mut one, b"", b"+OK\r\n$2\r\n\r\n\r\n");
    let queue = b"MULTI\r\nSET n 41\r\nINCR n\r\nGET n\r\nEXEC\r\nDBSIZE\r\n";
    expect_reply(
        &mut one,
        queue,
        b"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n+OK\r\n:42\r\n$2\r\n42\r\n:2\r\n",
    );
    expect_reply(
        &mut one,
        b"MULTI\r\nSET n 1 EX 5\r\nEXEC\r\n",
        b"+OK\r\n-ERR syntax error",
    );
    let mut two = connect(&server);
    expect_reply(
        &mut two,
        b"GET n\r\nFLUSHALL\r\nDBSIZE\r\n",
        b"$2\r\n42\r\n+OK\r\n:0\r\n",
    );
}

/// As Redis does: any other form is no number, and changes nothing.
#[test]
fn redis_counters_accept_integers_only() {
    let server = server(Protocol::Redis, Mechanism::Undo, true, None);
    let mut one = connect(&server);
    let wrong = "-ERR value is not an integer or out of range\r\n";
    for text in ["007", "-0", "00", "-07", "1x", "9223372036854775808"] {
        expect_reply(
            &mut one,
            format!("SET n {text}\r\nINCR n\r\nSET m 5\r\nINCRBY m {text}\r\nGET m\r\n").as_bytes(),
            format!("+OK\r\n{wrong}+OK\r\n{wrong}$1\r\n5\r\n").as_bytes(),
        );
    }
    expect_reply(
        &mut one,
        b"SET n -1\r\nDECRBY n -9223372036854775808\r\nINCRBY n -9223372036854775807\r\nDECR n\r\n\
          SET n 0\r\nINCR n\r\n",
        b"+OK\r\n-ERR decrement would overflow\r\n:-9223372036854775808\r\n\
          -ERR increment or decrement would overflow\r\n+OK\r\n:1\r\n",
    );
}

#[test]
fn memcached_requests_are_answered() {
    let server = server(Protocol::Memcached, Mechanism::Redo, true, None);
    let mut one = connect(&server);
    expect_reply(
        &mut one,
        b"set k 7 0 2\r\n99\r\nget k\r\n",
        b"STORED\r\nVALUE k 7 2\r\n99\r\nEND\r\n",
    );
    expect_reply(
        &mut one,
        b"add k 0 0 1\r\n1\r\nincr k 1\r\ndecr k 200\r\n",
        b"NOT_STORED\r\n100\r\n0\r\n",
    );
    expect_reply(
        &mut one,
        b"cas k 0 0 1 999\r\n1\r\nset q 0 0 1 noreply\r\n1\r\nget q\r\n",
        b"EXISTS\r\nVALUE q 0 1\r\n1\r\nEND\r\n",
    );
    // No byte of a refused value is a request.
    let mut large = b"set big 0 0 300000\r\n".to_vec();
    large.extend(b"flush_all\r\n".repeat(40000).into_iter().take(300_000));
    large.extend(b"\r\nget k\r\n");
    expect_reply(
        &mut one,
        &large,
        b"SERVER_ERROR object too large for cache\r\nVALUE k 7 1\r\n0\r\nEND\r\n",
    );
    expect_reply(
        &mut one,
        b"set k 0 9 1\r\n1\r\nflush_all\r\nget k\r\n",
        b"CLIENT_ERROR times to live are not kept: allowed is 0\r\nOK\r\nEND\r\n",
    );
}

#[test]
fn redis_multi_queues_all_commands() {
    let server = server(Protocol::Redis, Mechanism::Undo, true, None);
    let mut one = connect(&server);
    expect_reply(
        &mut one,
        b"MULTI\r\nPING\r\nPING a\r\nECHO b\r\nSELECT 0\r\nSELECT 1\r\nCLIENT SETNAME x\r\n\
          CONFIG GET x\r\nSET k 1\r\nFLUSHALL\r\nDBSIZE\r\nFLUSHDB\r\nSET k 2\r\nEXEC\r\n",
        &[
            b"+OK\r\n",
            &b"+QUEUED\r\n".repeat(12)[..],
            b"*12\r\n+PONG\r\n$1\r\na\r\n$1\r\nb\r\n+OK\r\n\
              -ERR DB index is out of range: allowed is 0\r\n",
            b"+OK\r\n*0\r\n+OK\r\n+OK\r\n:0\r\n+OK\r\n+OK\r\n",
        ]
        .concat(),
    );
    expect_reply(
        &mut one,
        b"GET k\r\nMULTI\r\nINFO\r\nFLUSHALL\r\nDISCARD\r\nGET k\r\nDISCARD\r\nEXEC\r\nPING\r\n",
        b"$1\r\n2\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+OK\r\n$1\r\n2\r\n-ERR DISCARD without MULTI\r\n\
          -ERR EXEC without MULTI\r\n+PONG\r\n",
    );
    let aborted = "-EXECABORT Transaction discarded because of previous errors.\r\n";
    for (wrong, error) in [
        ("ECHO", "wrong number of arguments for 'ECHO' command"),
        ("PING a b", "wrong number of arguments for 'PING' command"),
        ("EXEC a", "wrong number of arguments for 'exec' command"),
        ("NOTHING", "unknown command 'NOTHING'"),
        ("DEBUG POWERCUT", "unknown command 'DEBUG'"),
    ] {
        expect_reply(
            &mut one,
            format!("MULTI\r\nSET k 3\r\n{wrong}\r\nEXEC\r\nGET k\r\n").as_bytes(),
            format!("+OK\r\n+QUEUED\r\n-ERR {error}\r\n{aborted}$1\r\n2\r\n").as_bytes(),
        );
    }
}

#[test]
fn memcached_noreply_gets_no_reply() {
    let server = server(Protocol::Memcached, Mechanism::Undo, true, None);
    let mut one = connect(&server);
    let mut large = b"set big 0 0 300000 noreply\r\n".to_vec();
    large.extend([b'x'; 300_000]);
    for quiet in [
        &large[..],
        b"set k 0 9 1 noreply\r\n1",
        b"set k x 0 1 noreply\r\n1",
        b"add k 0 0 1 noreply\r\na\r\nincr k 1 noreply",
        b"append none 0 0 1 noreply\r\n1",
        b"cas k 0 0 1 999 noreply\r\n1",
        b"cas k 0 0 1 x noreply\r\n1",
        b"incr k x noreply",
        b"incr none 1 noreply",
        b"delete none noreply",
        b"delete k 0 noreply",
        b"touch k 0 noreply",
        b"flush_all 10 noreply",
        b"verbosity 1 noreply",
    ] {
        expect_reply(&mut one, &[quiet, b"\r\nget k2\r\n"].concat(), b"END\r\n");
    }
    // It is a key, too.
    expect_reply(
        &mut one,
        b"get k\r\nset noreply 0 0 1\r\n1\r\ndelete noreply\r\ndelete noreply noreply\r\n\
          delete noreply\r\n",
        b"VALUE k 0 1\r\na\r\nEND\r\nSTORED\r\nDELETED\r\nNOT_FOUND\r\n",
    );
    one.write_all(b"set k 0 0 1 noreply\r\nabc\r\n").unwrap();
    assert_eq!(read_to_end(one), "");
}

#[test]
fn hostile_clients_get_an_error_and_block_no_other() {
    for protocol in [Protocol::Redis, Protocol::Memcached] {
        let server = server(protocol, Mechanism::Undo, false, None);
        // A half of a request, and nothing more.
        let mut half = connect(&server);
        half.write_all(b"*2\r\n$3\r\nGE").unwrap();
        let redis: [&[u8]; 5] = [
            b"*99999999999999999999\r\n",
            b"*1\r\n$4294967296\r\n",
            b"*1\r\n$-1\r\n",
            b"*1\r\n:1\r\n",
            b"*1\r\n$1\r\nabc\r\n",
        ];
        let memcached: [&[u8]; 3] = [
            b"set a 0 0 99999999999999999999999\r\n",
            b"set a 0 0 -1\r\n",
            b"set a 0 0 1\r\nabc\r\n",
        ];
        let bad: &[&[u8]] = if protocol == Protocol::Redis {
            &redis
        } else {
            &memcached
        };
        for bytes in bad {
            let mut one = connect(&server);
            one.write_all(bytes).unwrap();
            let got = read_to_end(one);
            assert!(got.contains("ERR"), "{bytes:?}: {got:?}");
        }
        let mut random = Random::new(1);
        for _ in 0..20 {
            let mut one = connect(&server);
            let bytes: Vec<u8> = (0..4000).map(|_| random.below(256) as u8).collect();
            // The server may have ended the connection by now.
            let _ = one.write_all(&bytes);
        }
        let mut one = connect(&server);
        let _ = one.write_all(&vec![b'a'; 2 << 20]);
        assert!(read_to_end(one).contains("ERR"));
        let (ask, reply): (&[u8], &[u8]) = match protocol {
            Protocol::Redis => (b"SET a b\r\nGET a\r\n", b"+OK\r\n$1\r\nb\r\n"),
            Protocol::Memcached => (b"set a 0 0 1\r\nb\r\n", b"STORED\r\n"),
        };
        expect_reply(&mut connect(&server), ask, reply);
    }
}

#[test]
fn power_loss_keeps_acknowledged_writes() {
    for mechanism in Mechanism::ALL {
        for offload in [false, true] {
            let server = server(Protocol::Redis, mechanism, offload, Some(40));
            let mut random = Random::new(7);
            let mut known: BTreeMap<u64, String> = BTreeMap::new();
            let mut one = connect(&server);
            // The write during the power loss, which was not acknowledged.
            let cut = loop {
                let (key, value) = (random.below(12), random.next().to_string().repeat(9));
                one.write_all(format!("SET k{key} {value}\r\n").as_bytes())
                    .unwrap();
                let mut reply = [0; 5];
                match one.read_exact(&mut reply) {
                    Ok(()) => {
                        assert_eq!(&reply, b"+OK\r\n");
                        known.insert(key, value);
                    }
                    Err(_) => break (key, value),
                }
            };
            let mut two = connect(&server);
            for (key, value) in &known {
                two.write_all(format!("GET k{key}\r\n").as_bytes()).unwrap();
                let mut got = vec![0; 4096];
                let bytes = two.read(&mut got).unwrap();
                let reply = |value: &str| format!("${}\r\n{value}\r\n", value.len());
                let text = String::from_utf8_lossy(&got[..bytes]).into_owned();
                let may = [
                    reply(value),
                    reply(if *key == cut.0 { &cut.1 } else { value }),
                ];
                assert!(
                    may.contains(&text),
                    "{mechanism:?}, {offload}: k{key} is {text:?}"
                );
            }
            assert_eq!(
                server.report()["power_losses"],
                1,
                "{mechanism:?}, {offload}"
            );
            expect_reply(&mut two, b"SET new 1\r\n", b"+OK\r\n");
        }
    }
}

/// Pipelined requests are answered in their order, and all answered ones survive a power loss.
#[test]
fn pipelined_requests_are_answered_when_they_are_durable() {
    for offload in [false, true] {
        let server = server(Protocol::Redis, Mechanism::Undo, offload, Some(100));
        let mut one = connect(&server);
        let mut answered = 0;
        // The power fails during one of these pipelines.
        'power: for pipeline in 0..20 {
            let mut requests = String::new();
            for n in 0..12 {
                requests += &format!("SET k{} v\r\n", pipeline * 12 + n);
            }
            one.write_all(requests.as_bytes()).unwrap();
            for _ in 0..12 {
                let mut reply = [0; 5];
                if one.read_exact(&mut reply).is_err() {
                    break 'power;
                }
                assert_eq!(&reply, b"+OK\r\n");
                answered += 1;
            }
        }
        assert!((84..228).contains(&answered), "{offload}: {answered}");
        let mut two = connect(&server);
        for n in 0..answered {
            let request = format!("EXISTS k{n}\r\n");
            expect_reply(&mut two, request.as_bytes(), b":1\r\n");
        }
        assert_eq!(server.report()["power_losses"], 1);
    }
}
