// SPDX-License-Identifier: Apache-2.0

//! Clients of other protocols, and silent ones: none changes the store or blocks other clients.

mod common;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use common::*;
use kv_server::{Access, Endpoint, Limits, Protocol};
use pm::Mechanism;

/// A command of each protocol that empties the store, in the body of another protocol's request.
const FLUSH: &str = "FLUSHALL\r\nflush_all\r\n*1\r\n$8\r\nFLUSHALL\r\n";

fn put(protocol: Protocol, server: &kv_server::Server) {
    match protocol {
        Protocol::Redis => expect_reply(&mut connect(server), b"SET keep 1\r\n", b"+OK\r\n"),
        Protocol::Memcached => expect_reply(
            &mut connect(server),
            b"set keep 0 0 1\r\n1\r\n",
            b"STORED\r\n",
        ),
    }
}

fn there(protocol: Protocol, server: &kv_server::Server) {
    match protocol {
        Protocol::Redis => expect_reply(&mut connect(server), b"GET keep\r\n", b"$1\r\n1\r\n"),
        Protocol::Memcached => expect_reply(
            &mut connect(server),
            b"get keep\r\n",
            b"VALUE keep 0 1\r\n1\r\n",
        ),
    }
}

#[test]
fn foreign_protocols_reach_no_command() {
    let heads = [
        "POST / HTTP/1.1\r\nHost: 127.0.0.1:6380\r\nContent-Length: 60\r\n\r\n",
        "post / HTTP/1.0\r\n\r\n",
        "PUT /x HTTP/1.1\r\nX-A: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "get / HTTP/1.1\r\nhost: localhost\r\n\r\n",
        "DELETE /x HTTP/1.1\nAccept: */*\n\n",
        "FLUSHALL / HTTP/1.1\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "Host: localhost\r\n",
        "User-Agent: x\r\n",
        // TLS, memcached's binary protocol, others.
        "\x16\x03\x01\x02\r\n",
        "\0\r\n",
        "\x1B[A\r\n",
    ];
    for protocol in [Protocol::Redis, Protocol::Memcached] {
        let (server, log) = limited(protocol, Limits::default());
        put(protocol, &server);
        for head in heads {
            for cut in [0, 1, head.len()] {
                let request = format!("{head}{FLUSH}");
                let mut one = connect(&server);
                // The server may reject the client before everything is sent.
                let _ = one.write_all(&request.as_bytes()[..cut]);
                let _ = one.write_all(&request.as_bytes()[cut..]);
                let got = read_to_end(one);
                assert!(!got.contains("OK"), "{head:?}: {got}");
                there(protocol, &server);
            }
        }
        assert!(log.times("it speaks HTTP") > 0);
        assert!(log.times("begins with a byte that no request") > 0);
        let hung_up = &server.report()["connections"]["hung_up"];
        assert!(hung_up.as_u64().unwrap() > 12, "{hung_up}");
    }
}

#[test]
fn foreign_http_is_rejected_by_redis_anywhere() {
    let (server, _) = limited(Protocol::Redis, Limits::default());
    put(Protocol::Redis, &server);
    for (before, replies) in [
        ("PING\r\n", "+PONG\r\n"),
        ("MULTI\r\nPING\r\n", "+OK\r\n+QUEUED\r\n"),
        ("*1\r\n$4\r\nPING\r\n", "+PONG\r\n"),
    ] {
        for http in [
            "POST / HTTP/1.1\r\n",
            "*1\r\n$5\r\nHost:\r\n",
            "*1\r\n$4\r\npOsT\r\n",
        ] {
            let got = reply_until_end(&server, format!("{before}{http}{FLUSH}EXEC\r\n").as_bytes());
            assert_eq!(got, replies, "{before}{http}");
        }
    }
    there(Protocol::Redis, &server);
    // Similar bytes within data are data.
    expect_reply(
        &mut connect(&server),
        b"SET x HTTP/1.1\r\nGET x\r\nECHO POST\r\nECHO Host:\r\n",
        b"+OK\r\n$8\r\nHTTP/1.1\r\n$4\r\nPOST\r\n$5\r\nHost:\r\n",
    );
}

#[test]
fn foreign_memcached_binary_requests_are_rejected_at_once() {
    let (server, log) = limited(Protocol::Memcached, Limits::default());
    let mut version = [0; 24];
    (version[0], version[1]) = (0x80, 0x0B);
    assert_eq!(reply_until_end(&server, &version), "");
    // After a request, and in the middle of the connection.
    assert_eq!(
        reply_until_end(&server, b"version\r\n\x80"),
        "VERSION 1.6.0-nearside\r\n"
    );
    assert_eq!(log.times("rejected a client"), 2);
}

#[test]
fn access_from_other_machines_needs_a_password_or_no_protection() {
    let open = |protected, password: Option<&str>| Access {
        endpoint: Endpoint::Tcp("0.0.0.0".parse().unwrap(), 0),
        password: password.map(str::to_owned),
        protected,
    };
    for protocol in [Protocol::Redis, Protocol::Memcached] {
        let refused = kv_server::Server::start(
            store(Mechanism::Undo, false, None),
            protocol,
            &open(true, None),
            Limits::default(),
            |_| {},
        );
        let text = refused.err().unwrap().to_string();
        assert!(
            text.contains("host = 0.0.0.0") && text.contains("--no-protected"),
            "{text}"
        );
        let store = store(Mechanism::Undo, false, None);
        let (server, _) = serve(store, protocol, &open(false, None), Limits::default());
        put(protocol, &server);
    }
    let store = store(Mechanism::Undo, false, None);
    let (server, _) = serve(
        store,
        Protocol::Redis,
        &open(true, Some("x")),
        Limits::default(),
    );
    expect_reply(
        &mut connect(&server),
        b"PING\r\nAUTH x\r\nPING\r\n",
        b"-NOAUTH Authentication required.\r\n+OK\r\n+PONG\r\n",
    );
}

fn short() -> Limits {
    Limits {
        request: Duration::from_millis(100),
        ..Limits::default()
    }
}

#[test]
fn admission_keeps_clients_silent_between_requests() {
    for protocol in [Protocol::Redis, Protocol::Memcached] {
        let (server, _) = limited(protocol, short());
        let (request, reply): (&[u8], &[u8]) = match protocol {
            Protocol::Redis => (b"PING\r\n", b"+PONG\r\n"),
            Protocol::Memcached => (b"mn\r\n", b"MN\r\n"),
        };
        let (mut new, mut old) = (connect(&server), connect(&server));
        expect_reply(&mut old, request, reply);
        std::thread::sleep(Duration::from_millis(300));
        expect_reply(&mut old, request, reply);
        expect_reply(&mut new, request, reply);
    }
}

#[test]
fn deadline_ends_unfinished_requests() {
    let halves: [(Protocol, &[&[u8]]); 2] = [
        (
            Protocol::Redis,
            &[
                b"PIN",
                b"*",
                b"*2\r\n$3\r\nGET\r\n",
                b"*2\r\n$3\r\nGE",
                b"*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$300000\r\nxx",
                b"PING\r\n\"",
            ],
        ),
        (
            Protocol::Memcached,
            &[
                b"ge",
                b"set k 0 0 5\r\nab",
                b"set k 0 0 300000\r\nab",
                b"ms k 5\r\nab",
            ],
        ),
    ];
    for (protocol, halves) in halves {
        let (server, log) = limited(protocol, short());
        let all: Vec<TcpStream> = halves
            .iter()
            .map(|half| {
                let mut one = connect(&server);
                one.write_all(half).unwrap();
                one
            })
            .collect();
        for one in all {
            let got = read_to_end(one);
            assert!(
                got.contains("a request has to be whole within 0.1 s"),
                "{got}"
            );
        }
        // Single bytes do not extend the time.
        let mut one = connect(&server);
        let mut sent = 0;
        while one.write_all(b"a").is_ok() && sent < 10_000 {
            std::thread::sleep(Duration::from_millis(10));
            sent += 1;
        }
        assert!(sent < 10_000);
        assert!(log.times("ended a connection") > 0);
        let late = &server.report()["connections"]["late"];
        assert_eq!(late.as_u64().unwrap() as usize, halves.len() + 1);
    }
}

#[test]
fn eviction_of_silent_clients_admits_new_ones() {
    for protocol in [Protocol::Redis, Protocol::Memcached] {
        let limits = Limits {
            stalled: Duration::ZERO,
            ..Limits::default()
        };
        let (server, log) = limited(protocol, limits);
        // Clients that have never sent anything, and those that have stopped within a request.
        let half: &[u8] = b"set";
        let mut silent: Vec<TcpStream> = (0..64).map(|_| connect(&server)).collect();
        silent[5..10]
            .iter_mut()
            .for_each(|one| one.write_all(half).unwrap());
        put(protocol, &server);
        let busy: Vec<TcpStream> = (0..20)
            .map(|_| {
                let mut one = connect(&server);
                match protocol {
                    Protocol::Redis => expect_reply(&mut one, b"GET keep\r\n", b"$1\r\n1\r\n"),
                    Protocol::Memcached => expect_reply(&mut one, b"mn\r\n", b"MN\r\n"),
                }
                one
            })
            .collect();
        assert!(log.times("a silent one has lost its place") > 0);
        // A client that is being served keeps its place.
        for mut one in busy {
            match protocol {
                Protocol::Redis => expect_reply(&mut one, b"GET keep\r\n", b"$1\r\n1\r\n"),
                Protocol::Memcached => expect_reply(&mut one, b"mn\r\n", b"MN\r\n"),
            }
        }
        assert_eq!(server.report()["connections"]["turned_away"], 0);
        silent
            .iter()
            .for_each(|one| drop(one.shutdown(Shutdown::Both)));
    }
}

#[test]
fn rejection_is_reported_when_all_clients_are_busy() {
    for (protocol, text) in [
        (Protocol::Redis, "-ERR max number of clients reached\r\n"),
        (Protocol::Memcached, "SERVER_ERROR too many clients\r\n"),
    ] {
        let limits = Limits {
            clients: 2,
            ..Limits::default()
        };
        let (server, _) = limited(protocol, limits);
        let (mut one, mut two) = (connect(&server), connect(&server));
        let (request, reply): (&[u8], &[u8]) = match protocol {
            Protocol::Redis => (b"PING\r\n", b"+PONG\r\n"),
            Protocol::Memcached => (b"mn\r\n", b"MN\r\n"),
        };
        expect_reply(&mut one, request, reply);
        expect_reply(&mut two, request, reply);
        assert_eq!(reply_until_end(&server, request), text);
        drop(one);
        // The place of a client that has gone is free, after a while.
        loop {
            let mut next = connect(&server);
            let _ = next.write_all(request);
            let mut got = vec![0; reply.len()];
            if next.read_exact(&mut got).is_ok() && got == reply {
                break;
            }
        }
        expect_reply(&mut two, request, reply);
    }
}

#[test]
fn client_reading_no_replies_blocks_no_other() {
    let (server, _) = limited(Protocol::Redis, Limits::default());
    let mut one = connect(&server);
    let mut set = b"*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$262144\r\n".to_vec();
    set.extend(vec![b'x'; 256 << 10]);
    expect_reply(&mut one, &[&set[..], b"\r\n"].concat(), b"+OK\r\n");
    one.write_all(&b"GET b\r\n".repeat(200)).unwrap();
    for _ in 0..5 {
        expect_reply(&mut connect(&server), b"STRLEN b\r\n", b":262144\r\n");
    }
    // The server shuts down although it waits for that client.
    drop(server);
}
