// SPDX-License-Identifier: Apache-2.0

//! Served stores, and raw connections to them.
#![allow(dead_code)] // each test file uses some of it

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use design::Design;
use kv_server::{Access, Config, Limits, Protocol, Server, Store};
use pm::Mechanism;

/// The lines that the server has logged.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub fn times(&self, text: &str) -> usize {
        let lines = self.0.lock().unwrap();
        lines.iter().filter(|line| line.contains(text)).count()
    }
}

pub fn store(mechanism: Mechanism, offload: bool, cut_after: Option<u64>) -> Store {
    let design = Design::find("nearpm").unwrap();
    let config = Config {
        mechanism,
        offload,
        bytes: 16 << 20,
        cut_after,
        cut_at: None,
    };
    Store::create(&design, device::Model::Fast, config).unwrap()
}

pub fn serve(store: Store, protocol: Protocol, access: &Access, limits: Limits) -> (Server, Log) {
    let log = Log::default();
    let lines = log.0.clone();
    let tell = move |line: &str| lines.lock().unwrap().push(line.into());
    let server = Server::start(store, protocol, access, limits, tell).unwrap();
    (server, log)
}

/// A store as most tests need it.
pub fn simple(protocol: Protocol) -> Server {
    limited(protocol, Limits::default()).0
}

pub fn limited(protocol: Protocol, limits: Limits) -> (Server, Log) {
    let store = store(Mechanism::Undo, true, None);
    serve(store, protocol, &Access::loopback(0), limits)
}

pub fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port().unwrap())).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    stream
}

/// Sends bytes, and checks that the reply has exactly the expected ones.
pub fn expect_reply(stream: &mut TcpStream, request: &[u8], reply: &[u8]) {
    stream.write_all(request).unwrap();
    let mut got = vec![0; reply.len()];
    let mut at = 0;
    while at < got.len() {
        match stream.read(&mut got[at..]) {
            Ok(0) | Err(_) => break,
            Ok(bytes) => at += bytes,
        }
    }
    assert_eq!(
        String::from_utf8_lossy(&got[..at]),
        String::from_utf8_lossy(reply)
    );
}

/// Reads until the server ends the connection, which it has to do without a reset.
pub fn read_to_end(mut stream: TcpStream) -> String {
    let mut got = Vec::new();
    stream.read_to_end(&mut got).expect("an end, and no reset");
    String::from_utf8_lossy(&got).into_owned()
}

/// Sends bytes, and reads until the server ends the connection.
pub fn reply_until_end(server: &Server, request: &[u8]) -> String {
    let mut one = connect(server);
    one.write_all(request).unwrap();
    read_to_end(one)
}
