// SPDX-License-Identifier: Apache-2.0

//! Further parts of the protocols: RESP3, quoted lines, sizes, meta commands, a password.

mod common;

use std::io::Write;
use std::net::TcpStream;

use common::*;
use kv_server::{Access, Limits, Protocol};
use pm::Mechanism;

/// Sends requests one after the other, and checks each reply.
fn exchange(one: &mut TcpStream, lines: &[(&str, &str)]) {
    for (request, reply) in lines {
        expect_reply(
            one,
            format!("{request}\r\n").as_bytes(),
            format!("{reply}\r\n").as_bytes(),
        );
    }
}

const HELLO: &str =
    "$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$5\r\nproto\r\n";
const HELLO_END: &str =
    "$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0";

#[test]
fn redis_hello_selects_the_version_of_replies() {
    let server = simple(Protocol::Redis);
    let mut one = connect(&server);
    let hello = |kind: &str, version: u8| {
        format!("{kind}\r\n{HELLO}:{version}\r\n$2\r\nid\r\n:1\r\n{HELLO_END}")
    };
    exchange(
        &mut one,
        &[
            ("HELLO", &hello("*14", 2)),
            ("GET no", "$-1"),
            ("HELLO 3", &hello("%7", 3)),
            ("HELLO", &hello("%7", 3)),
            ("GET no", "_"),
            ("SET a 1", "+OK"),
            ("SET a 2 NX", "_"),
            ("SETNX a 2", ":0"),
            ("MGET a no", "*2\r\n$1\r\n1\r\n_"),
            ("EXISTS a no", ":1"),
            ("STRLEN a", ":1"),
            ("APPEND a 0", ":2"),
            ("INCR a", ":11"),
            ("CLIENT ID", ":1"),
            ("CLIENT GETNAME", "_"),
            ("CLIENT SETNAME me", "+OK"),
            ("CLIENT GETNAME", "$2\r\nme"),
            ("CONFIG GET time*", "%1\r\n$7\r\ntimeout\r\n$1\r\n0"),
            ("CONFIG GET nothing", "%0"),
            ("COMMAND DOCS get", "%0"),
            (
                "COMMAND INFO get no",
                "*2\r\n*10\r\n$3\r\nget\r\n:2\r\n~1\r\n+readonly\r\n:1\r\n:1\r\n:1\r\n~0\r\n~0\r\n\
                  ~0\r\n*0\r\n_",
            ),
            (
                "MULTI\r\nGET no\r\nMGET no\r\nHELLO 2\r\nGET no\r\nEXEC",
                &format!(
                    "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*4\r\n_\r\n*1\r\n_\r\n\
                      {}\r\n$-1",
                    hello("*14", 2)
                ),
            ),
            ("GET no", "$-1"),
            ("CONFIG GET timeout", "*2\r\n$7\r\ntimeout\r\n$1\r\n0"),
            ("HELLO 3 SETNAME x", &hello("%7", 3)),
            ("CLIENT GETNAME", "$1\r\nx"),
            ("RESET", "+RESET"),
            ("GET no", "$-1"),
            ("CLIENT GETNAME", "$-1"),
        ],
    );
    // A text keeps its type: verbatim in RESP3.
    exchange(&mut one, &[("HELLO 3", &hello("%7", 3))]);
    let info = "id=1 name= db=0 resp=3 lib-name= lib-ver= user=default\n";
    let text = format!("={}\r\ntxt:{info}", info.len() + 4);
    exchange(&mut one, &[("CLIENT INFO", &text)]);
    // Another client has a separate version and number.
    exchange(
        &mut connect(&server),
        &[("GET no\r\nCLIENT ID", "$-1\r\n:2")],
    );
}

#[test]
fn redis_hello_client_and_config_refuse_unsupported_options() {
    let server = simple(Protocol::Redis);
    let mut one = connect(&server);
    for (request, reply) in [
        ("HELLO 4", "-NOPROTO unsupported protocol version"),
        ("HELLO 1", "-NOPROTO unsupported protocol version"),
        (
            "HELLO x",
            "-ERR Protocol version is not an integer or out of range",
        ),
        (
            "HELLO 03",
            "-ERR Protocol version is not an integer or out of range",
        ),
        (
            "HELLO 3 SETNAME",
            "-ERR Syntax error in HELLO option 'SETNAME'",
        ),
        (
            "HELLO 3 AUTH default",
            "-ERR Syntax error in HELLO option 'AUTH'",
        ),
        (
            "HELLO 3 AUTH other x",
            "-WRONGPASS invalid username-password pair or user is disabled.",
        ),
        (
            "HELLO 3 SETNAME \"a b\"",
            "-ERR Client names cannot contain spaces, newlines or special characters.",
        ),
        (
            "AUTH x",
            "-ERR AUTH <password> called without any password configured",
        ),
        (
            "CLIENT",
            "-ERR wrong number of arguments for 'CLIENT' command",
        ),
        (
            "CLIENT ID x",
            "-ERR wrong number of arguments for 'client|id' command",
        ),
        (
            "CLIENT REPLY OFF",
            "-ERR unknown subcommand or wrong number of arguments for 'REPLY OFF'",
        ),
        (
            "CLIENT TRACKING ON",
            "-ERR unknown subcommand or wrong number of arguments for 'TRACKING ON'",
        ),
        (
            "CLIENT NO-EVICT ON",
            "-ERR unknown subcommand or wrong number of arguments for",
        ),
        (
            "CONFIG SET timeout 5",
            "-ERR unknown subcommand or wrong number of arguments for 'SET timeout'",
        ),
        (
            "CONFIG GET",
            "-ERR unknown subcommand or wrong number of arguments for 'GET'",
        ),
        (
            "COMMAND NO",
            "-ERR unknown subcommand or wrong number of arguments for 'NO'",
        ),
        (
            "FLUSHALL now",
            "-ERR syntax error: allowed are SYNC or ASYNC",
        ),
        ("SUBSCRIBE a", "-ERR unknown command 'SUBSCRIBE'"),
        ("NO\\r\\n", "-ERR unknown command 'NO\\r\\n'"),
    ] {
        let mut got = vec![0; reply.len()];
        one.write_all(format!("{request}\r\n").as_bytes()).unwrap();
        std::io::Read::read_exact(&mut one, &mut got).unwrap();
        assert_eq!(String::from_utf8_lossy(&got), reply, "{request}");
        let mut byte = [0];
        while byte != *b"\n" {
            std::io::Read::read_exact(&mut one, &mut byte).unwrap();
        }
        exchange(&mut one, &[("GET no", "$-1")]);
    }
}

#[test]
fn redis_auth_is_required_before_any_command() {
    let access = Access {
        password: Some("a b".into()),
        ..Access::loopback(0)
    };
    let store = store(Mechanism::Undo, false, None);
    let (server, _) = serve(store, Protocol::Redis, &access, Limits::default());
    let mut one = connect(&server);
    let no = "-NOAUTH Authentication required.";
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.";
    exchange(
        &mut one,
        &[
            ("PING", no),
            ("SET a 1", no),
            ("MULTI", no),
            ("DEBUG POWERCUT", no),
            ("AUTH a", wrong),
            ("AUTH \"a  b\"", wrong),
            ("AUTH other \"a b\"", wrong),
            ("HELLO 3 AUTH default a", wrong),
            ("SET a 1", no),
            ("AUTH \"a b\"", "+OK"),
            ("GET a", "$-1"),
            ("SET a 1", "+OK"),
            ("RESET", "+RESET"),
            ("GET a", no),
            ("AUTH default \"a b\"", "+OK"),
            ("GET a", "$1\r\n1"),
        ],
    );
    expect_reply(
        &mut connect(&server),
        b"HELLO 3\r\n",
        b"-NOAUTH HELLO must be called",
    );
    let mut three = connect(&server);
    expect_reply(&mut three, b"HELLO 3 AUTH default \"a b\"\r\n", b"%7\r\n");
    for large in [&b"*11\r\n"[..], b"*2\r\n$3\r\nGET\r\n$16385\r\n"] {
        assert!(reply_until_end(&server, large).contains("unauthenticated"));
    }
}

#[test]
fn redis_quoted_inline_requests_are_split_as_by_redis() {
    let server = simple(Protocol::Redis);
    let mut one = connect(&server);
    exchange(
        &mut one,
        &[
            ("SET q \"a b\"", "+OK"),
            ("GET q", "$3\r\na b"),
            ("SET q 'it\\'s'", "+OK"),
            ("GET q", "$4\r\nit's"),
            (r#"SET q "\x41\n""#, "+OK"),
            ("GET q", "$2\r\nA\n"),
            ("SET q \"\"", "+OK"),
            ("GET q", "$0\r\n"),
        ],
    );
    for line in ["SET q \"hello", "SET q 'hello", "SET q \"a\"b"] {
        let got = reply_until_end(&server, format!("{line}\r\nSET q no\r\n").as_bytes());
        assert_eq!(
            got, "-ERR Protocol error: unbalanced quotes in request\r\n",
            "{line}"
        );
    }
    exchange(&mut one, &[("GET q", "$0\r\n")]);
}

#[test]
fn redis_oversized_requests_are_refused_and_the_next_ones_served() {
    let server = simple(Protocol::Redis);
    let mut one = connect(&server);
    let set = |bytes: usize| {
        let mut request = format!("*3\r\n$3\r\nSET\r\n$1\r\nb\r\n${bytes}\r\n").into_bytes();
        request.extend(b"\r\nFLUSHALL\r\n".iter().cycle().take(bytes));
        request.extend(b"\r\nPING\r\n");
        request
    };
    expect_reply(&mut one, &set(256 << 10), b"+OK\r\n+PONG\r\n");
    let value = b"-ERR a value or word has at most 262144 bytes\r\n+PONG\r\n";
    for bytes in [(256 << 10) + 1, 300 << 10, 8 << 20] {
        expect_reply(&mut one, &set(bytes), value);
    }
    let mut words = b"*1025\r\n$3\r\nDEL\r\n".to_vec();
    words.extend(b"$1\r\nb\r\n".repeat(1024));
    words.extend(b"PING\r\n");
    expect_reply(
        &mut one,
        &words,
        b"-ERR a request has at most 1024 words\r\n+PONG\r\n",
    );
    let mut many = b"*6\r\n$4\r\nMGET\r\n".to_vec();
    for _ in 0..5 {
        many.extend(b"$262144\r\n");
        many.extend(vec![b'k'; 256 << 10]);
        many.extend(b"\r\n");
    }
    many.extend(b"PING\r\n");
    expect_reply(
        &mut one,
        &many,
        b"-ERR a request has at most 1048576 bytes\r\n+PONG\r\n",
    );
    // A refused command aborts its transaction.
    one.write_all(b"MULTI\r\n").unwrap();
    expect_reply(&mut one, b"", b"+OK\r\n");
    expect_reply(
        &mut one,
        &set(300 << 10),
        b"-ERR a value or word has at most 262144 bytes\r\n+QUEUED\r\n",
    );
    exchange(
        &mut one,
        &[
            (
                "EXEC",
                "-EXECABORT Transaction discarded because of previous errors.",
            ),
            ("STRLEN b", ":262144"),
        ],
    );
    // Sizes that Redis refuses end the connection, with the reason, even if more bytes are on their
    // way.
    let mut absurd = b"*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$536870913\r\n".to_vec();
    absurd.extend(vec![b'x'; 4 << 20]);
    assert_eq!(
        reply_until_end(&server, &absurd),
        "-ERR Protocol error: invalid bulk length\r\n"
    );
}

#[test]
fn memcached_meta_commands() {
    let server = simple(Protocol::Memcached);
    let mut one = connect(&server);
    exchange(
        &mut one,
        &[
            ("mn", "MN"),
            ("mg k v", "EN"),
            ("mg k v k O7", "EN k O7".replace("EN k", "EN kk").as_str()),
            ("mg k v q\r\nmn", "MN"),
            ("ms k 2 F5 s\r\n99", "HD s2"),
            ("mg k v f s t k Oab", "VA 2 f5 s2 t-1 kk Oab\r\n99"),
            ("mg k", "HD"),
            ("get k", "VALUE k 5 2\r\n99\r\nEND"),
            ("ms k 2 q\r\n98\r\nmn", "MN"),
            ("ms k 1 ME\r\n1", "NS"),
            ("ms new 1 MR\r\n1", "NS"),
            ("ms new 1 MA\r\n1", "NS"),
            ("ms new 1 MA N0\r\n1", "HD"),
            ("ms new 1 MP\r\n0", "HD"),
            ("mg new v", "VA 2\r\n01"),
            ("ma k", "HD"),
            ("ma k v D2", "VA 3\r\n101"),
            ("ma k v MD D200", "VA 1\r\n0"),
            ("ma none", "NF"),
            ("ma none N0 J13 v", "VA 2\r\n13"),
            ("ma k C1", "EX"),
            ("md k C1 O9", "EX O9"),
            ("ms k 1 C1\r\n1", "EX"),
            ("ms gone 1 C1\r\n1", "NF"),
            ("md k q\r\nmn", "MN"),
            ("md k", "NF"),
            ("ms Zm9v 1 b k\r\n1", "HD kZm9v b"),
            ("get foo", "VALUE foo 0 1\r\n1\r\nEND"),
            ("me nothing", "EN"),
            ("ms t 1\r\nx", "HD"),
            (
                "ma t",
                "CLIENT_ERROR cannot increment or decrement non-numeric value",
            ),
        ],
    );
    // The number of a change, as the next command needs it.
    let mut got = [0; 64];
    one.write_all(b"mg t c\r\n").unwrap();
    let bytes = std::io::Read::read(&mut one, &mut got).unwrap();
    let number = String::from_utf8_lossy(&got[4..bytes - 2]).into_owned();
    exchange(
        &mut one,
        &[
            (&format!("ms t 1 C{number}\r\ny"), "HD"),
            ("mg t v", "VA 1\r\ny"),
        ],
    );
}

#[test]
fn memcached_data_blocks_are_never_commands() {
    let server = simple(Protocol::Memcached);
    expect_reply(
        &mut connect(&server),
        b"set keep 0 0 1\r\n1\r\n",
        b"STORED\r\n",
    );
    // Each line is followed by a block of 11 bytes, `flush_all\r\n`; its reply begins like this.
    for (line, reply) in [
        ("ms k 11", "HD\r\n"),
        ("ms k 11 S300", "CLIENT_ERROR"),
        ("ms k 11 T30", "CLIENT_ERROR times to live"),
        ("ms k 11 Mx", "CLIENT_ERROR invalid mode"),
        ("ms k 11 Fx", "CLIENT_ERROR bad token"),
        ("ms k 11 k k", "CLIENT_ERROR duplicate flag"),
        ("ms k 11 I", "CLIENT_ERROR invalid flag"),
        ("ms !! 11 b", "CLIENT_ERROR"),
        ("ms k", "CLIENT_ERROR"),
        ("ms k x", "CLIENT_ERROR"),
        ("ms", "CLIENT_ERROR"),
        ("set k 0 0 11", "STORED"),
        ("set k x 0 11", "CLIENT_ERROR"),
        ("set k 0 1 11", "CLIENT_ERROR"),
        ("set k 0 0 11 x", "CLIENT_ERROR"),
        ("set k 0 0 2147483648", "CLIENT_ERROR"),
        ("cas k 0 0 11", "CLIENT_ERROR"),
        ("cas k 0 0 11 x", "CLIENT_ERROR"),
        ("SET k 0 0 11", "ERROR"),
        ("put k 11", "ERROR"),
        ("xs k 11", "ERROR"),
        ("POST / HTTP/1.1", ""),
    ] {
        let long = "k".repeat(251);
        for line in [line.to_owned(), line.replace(" k ", &format!(" {long} "))] {
            let mut one = connect(&server);
            let request = format!("{line}\r\nflush_all\r\n\r\nquit\r\n");
            one.write_all(request.as_bytes()).unwrap();
            let got = read_to_end(one);
            assert!(
                got.starts_with(reply) || (line.contains(&long) && got.contains("ERROR")),
                "{line}: {got}"
            );
            assert!(!got.contains("OK"), "{line}: {got}");
            expect_reply(
                &mut connect(&server),
                b"get keep\r\n",
                b"VALUE keep 0 1\r\n1\r\nEND\r\n",
            );
        }
    }
    // Nor is a byte of a block that is longer than its line says.
    for line in [
        "set k 0 0 4",
        "set k 0 9 4",
        "ms k 4",
        "ms k 4 T9",
        "set k 0 0 4 noreply",
        "set k 0 9 4 noreply",
    ] {
        let got = reply_until_end(
            &server,
            format!("{line}\r\nabc\r\nflush_all\r\n").as_bytes(),
        );
        assert!(!got.contains("OK"), "{line}: {got}");
        expect_reply(
            &mut connect(&server),
            b"get keep\r\n",
            b"VALUE keep 0 1\r\n1\r\nEND\r\n",
        );
    }
    // The same for blocks that are too large.
    let mut large = b"ms k 300000\r\n".to_vec();
    large.extend(b"\r\nflush_all\r\n".iter().cycle().take(300_000));
    large.extend(b"\r\nget keep\r\n");
    expect_reply(
        &mut connect(&server),
        &large,
        b"SERVER_ERROR object too large for cache\r\nVALUE keep 0 1\r\n1\r\nEND\r\n",
    );
}
