// SPDX-License-Identifier: Apache-2.0

//! The server: accepts clients, supervises their connections, and shuts down.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{sleep, spawn, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use serde_json::Value;

use crate::admission::choose_evicted;
use crate::connection::{Client, ConnectionCounts, ServerState, Socket};
use crate::memcached::Memcached;
use crate::resp::Resp;
use crate::{lock, Access, Endpoint, Limits, Protocol, ProtocolHandler, Store};

/// Interval at which the acceptor supervises all clients.
const SUPERVISION_INTERVAL: Duration = Duration::from_millis(20);
/// Most rejected clients that get a message; further ones are disconnected at once.
const MAX_REJECTED: usize = 64;

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// Waits for a client, for at most a supervision interval.
    fn wait(&self) {
        let listener = match self {
            Listener::Tcp(listener) => listener.as_fd(),
            Listener::Unix(listener) => listener.as_fd(),
        };
        let limit = Timespec {
            tv_sec: 0,
            tv_nsec: SUPERVISION_INTERVAL.subsec_nanos().into(),
        };
        // An error of the call means that there is no client.
        let _ = poll(&mut [PollFd::new(&listener, PollFlags::IN)], Some(&limit));
    }

    fn accept(&self) -> io::Result<Socket> {
        match self {
            Listener::Tcp(listener) => {
                let stream = listener.accept()?.0;
                stream.set_nonblocking(false)?;
                stream.set_nodelay(true)?;
                Ok(Socket::Tcp(stream))
            }
            Listener::Unix(listener) => {
                let stream = listener.accept()?.0;
                stream.set_nonblocking(false)?;
                Ok(Socket::Unix(stream))
            }
        }
    }
}

/// A store that is being served. Dropping it shuts the server down.
pub struct Server {
    shared: Arc<ServerState>,
    acceptor: Option<JoinHandle<()>>,
    address: Option<SocketAddr>,
    /// Path of the socket's file, and its identity.
    socket: Option<(PathBuf, Option<(u64, u64)>)>,
}

/// The identity of a file: device and inode.
fn file_identity(path: &Path) -> Option<(u64, u64)> {
    let meta = std::fs::symlink_metadata(path).ok()?;
    Some((meta.dev(), meta.ino()))
}

impl Server {
    /// Serves a store until this is dropped. Lines for the operator go to `log`, from any thread.
    pub fn start(
        store: Store,
        protocol: Protocol,
        access: &Access,
        limits: Limits,
        log: impl Fn(&str) + Send + Sync + 'static,
    ) -> io::Result<Server> {
        access
            .validate(protocol)
            .map_err(|text| io::Error::new(io::ErrorKind::InvalidInput, text))?;
        let (listener, address, socket) = match &access.endpoint {
            Endpoint::Tcp(host, port) => {
                let listener = TcpListener::bind((*host, *port))?;
                listener.set_nonblocking(true)?;
                let address = listener.local_addr()?;
                (Listener::Tcp(listener), Some(address), None)
            }
            Endpoint::Unix(path) => {
                let listener = UnixListener::bind(path)?;
                listener.set_nonblocking(true)?;
                let socket = (path.clone(), file_identity(path));
                (Listener::Unix(listener), None, Some(socket))
            }
        };
        let shared = Arc::new(ServerState {
            losses: store.losses.clone(),
            store: store.into(),
            ended: AtomicBool::new(false),
            limits,
            protocol,
            counts: ConnectionCounts::default(),
            log: Box::new(log),
        });
        let acceptor = Acceptor {
            listener,
            shared: shared.clone(),
            password: access.password.clone().map(Arc::from),
            clients: Vec::new(),
            leaving: Vec::new(),
            rejected: Vec::new(),
            next: 1,
        };
        let acceptor = spawn(move || acceptor.run());
        Ok(Server {
            shared,
            acceptor: Some(acceptor),
            address,
            socket,
        })
    }

    /// The port in use; none with a Unix socket.
    pub fn port(&self) -> Option<u16> {
        self.address.map(|address| address.port())
    }

    /// The counters of the store and of connections.
    pub fn report(&self) -> Value {
        let mut report = lock(&self.shared.store).report();
        report["connections"] = self.shared.counts.report();
        report
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        if let Some(acceptor) = self.acceptor.take() {
            // A panic of the thread has been reported.
            let _ = acceptor.join();
        }
        if let Some((path, file)) = &self.socket {
            // Another program may have replaced the file.
            if file.is_some() && file_identity(path) == *file {
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

/// The thread that accepts clients and supervises them.
struct Acceptor {
    listener: Listener,
    shared: Arc<ServerState>,
    password: Option<Arc<str>>,
    clients: Vec<(Arc<Client>, JoinHandle<()>)>,
    /// Threads of evicted clients.
    leaving: Vec<JoinHandle<()>>,
    /// Threads that send a message to rejected clients.
    rejected: Vec<JoinHandle<()>>,
    /// Number of the next client.
    next: u64,
}

impl Acceptor {
    fn run(mut self) {
        let mut last_supervision = Instant::now();
        while !self.shared.ended.load(Ordering::Relaxed) {
            self.listener.wait();
            match self.listener.accept() {
                Ok(socket) => self.admit_client(socket),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Probably out of file descriptors, for a while.
                Err(_) => sleep(SUPERVISION_INTERVAL),
            }
            let now = Instant::now();
            if now.saturating_duration_since(last_supervision) >= SUPERVISION_INTERVAL {
                last_supervision = now;
                self.clients.retain(|(_, thread)| !thread.is_finished());
                self.leaving.retain(|thread| !thread.is_finished());
                self.rejected.retain(|thread| !thread.is_finished());
                for (client, _) in &self.clients {
                    client.supervise(&self.shared, now);
                }
            }
        }
        for (client, _) in &self.clients {
            client.end();
        }
        let threads = self.clients.into_iter().map(|(_, thread)| thread);
        for thread in threads.chain(self.leaving).chain(self.rejected) {
            let _ = thread.join();
        }
    }

    fn admit_client(&mut self, socket: Socket) {
        let limits = &self.shared.limits;
        if self.clients.len() >= limits.clients {
            self.clients.retain(|(_, thread)| !thread.is_finished());
        }
        if self.clients.len() >= limits.clients {
            let all: Vec<_> = self.clients.iter().map(|(c, _)| c.activity()).collect();
            let Some(choose_evicted) = choose_evicted(&all, limits, Instant::now()) else {
                return self.reject_client(socket);
            };
            let (client, thread) = self.clients.swap_remove(choose_evicted);
            client.end();
            self.leaving.push(thread);
            let what = format!(
                "all {} places for clients are taken: a silent one has lost its place to a \
                 newcomer",
                limits.clients
            );
            self.shared
                .count_and_log(&self.shared.counts.evicted, &what);
        }
        let number = self.next;
        self.next += 1;
        let handler: Box<dyn ProtocolHandler> = match self.shared.protocol {
            Protocol::Redis => Box::new(Resp::new(number, self.password.clone())),
            Protocol::Memcached => Box::<Memcached>::default(),
        };
        let power_epoch = self.shared.losses.load(Ordering::Acquire);
        let Ok(client) = Client::new(&socket, power_epoch) else {
            return;
        };
        let client = Arc::new(client);
        let (mut socket, mine, shared) = (socket, client.clone(), self.shared.clone());
        let thread = spawn(move || {
            // An error means that the client has gone.
            let _ = mine.serve(&mut socket, handler, &shared);
            mine.end();
        });
        self.clients.push((client, thread));
    }

    fn reject_client(&mut self, mut socket: Socket) {
        let what = format!(
            "a client was rejected: {} others are busy",
            self.shared.limits.clients
        );
        self.shared
            .count_and_log(&self.shared.counts.rejected, &what);
        self.rejected.retain(|thread| !thread.is_finished());
        if self.rejected.len() >= MAX_REJECTED {
            return;
        }
        let text: &[u8] = match self.shared.protocol {
            Protocol::Redis => b"-ERR max number of clients reached\r\n",
            Protocol::Memcached => b"SERVER_ERROR too many clients\r\n",
        };
        let limit = self.shared.limits.linger;
        self.rejected.push(spawn(move || {
            // A client that does not read the message sees the end of the connection.
            let _ = socket.send_and_close(text, limit);
        }));
    }
}
