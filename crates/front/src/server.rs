//! Connections: a thread each, which holds the store for one request at a time and never while it waits for its client.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::memcached::Memcached;
use crate::resp::Resp;
use crate::{lock, Dialect, Protocol, Step, Store, MOST_CLIENTS, MOST_REQUEST};

/// How often a thread looks whether it is to end.
const TICK: Duration = Duration::from_millis(20);
/// A client that neither sends nor takes anything for so long gives its place to others.
const IDLE: Duration = Duration::from_secs(60);
/// Replies that are gathered before they are sent.
const GATHERED: usize = 64 << 10;

/// Where clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A port of the loopback interface; 0 is any.
    Port(u16),
    /// A Unix socket.
    Socket(PathBuf),
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

impl Listener {
    fn accept(&self) -> io::Result<Box<dyn Stream>> {
        match self {
            Listener::Tcp(listener) => {
                let stream: TcpStream = listener.accept()?.0;
                stream.set_nonblocking(false)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(TICK))?;
                stream.set_write_timeout(Some(TICK))?;
                Ok(Box::new(stream))
            }
            Listener::Unix(listener) => {
                let stream: UnixStream = listener.accept()?.0;
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(TICK))?;
                stream.set_write_timeout(Some(TICK))?;
                Ok(Box::new(stream))
            }
        }
    }
}

/// A store that is being served.
pub struct Server {
    store: Arc<Mutex<Store>>,
    ended: Arc<AtomicBool>,
    accepts: Option<JoinHandle<()>>,
    address: Option<SocketAddr>,
    /// Its file, and which one that is.
    socket: Option<(PathBuf, Option<(u64, u64)>)>,
}

/// Which file a path names: device and inode.
fn which(path: &Path) -> Option<(u64, u64)> {
    let meta = std::fs::symlink_metadata(path).ok()?;
    Some((meta.dev(), meta.ino()))
}

impl Server {
    /// Serves a store until this is dropped.
    pub fn start(store: Store, protocol: Protocol, place: &Place) -> io::Result<Server> {
        let (listener, address, socket) = match place {
            Place::Port(port) => {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, *port))?;
                listener.set_nonblocking(true)?;
                let address = listener.local_addr()?;
                (Listener::Tcp(listener), Some(address), None)
            }
            Place::Socket(path) => {
                let listener = UnixListener::bind(path)?;
                listener.set_nonblocking(true)?;
                let socket = (path.clone(), which(path));
                (Listener::Unix(listener), None, Some(socket))
            }
        };
        let (store, ended) = (
            Arc::new(Mutex::new(store)),
            Arc::new(AtomicBool::new(false)),
        );
        let (shared, end) = (store.clone(), ended.clone());
        let accepts = spawn(move || accept(&listener, protocol, &shared, &end));
        Ok(Server {
            store,
            ended,
            accepts: Some(accepts),
            address,
            socket,
        })
    }

    /// The port that it has got.
    pub fn port(&self) -> Option<u16> {
        self.address.map(|address| address.port())
    }

    /// What the store has done until now.
    pub fn report(&self) -> Value {
        lock(&self.store).report()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(accepts) = self.accepts.take() {
            // A thread that has panicked has told so.
            let _ = accepts.join();
        }
        if let Some((path, file)) = &self.socket {
            // Somebody else may have removed it, and put another one there.
            if file.is_some() && which(path) == *file {
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

fn accept(
    listener: &Listener,
    protocol: Protocol,
    store: &Arc<Mutex<Store>>,
    ended: &Arc<AtomicBool>,
) {
    let clients = Arc::new(AtomicUsize::new(0));
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    while !ended.load(Ordering::Relaxed) {
        let Ok(mut stream) = listener.accept() else {
            sleep(TICK);
            continue;
        };
        threads.retain(|thread| !thread.is_finished());
        if clients.load(Ordering::Relaxed) >= MOST_CLIENTS {
            let text: &[u8] = match protocol {
                Protocol::Redis => b"-ERR max number of clients reached\r\n",
                Protocol::Memcached => b"SERVER_ERROR too many clients\r\n",
            };
            // Whoever doesn't take it sees the end.
            let _ = stream.write_all(text);
            continue;
        }
        let dialect: Box<dyn Dialect> = match protocol {
            Protocol::Redis => Box::<Resp>::default(),
            Protocol::Memcached => Box::<Memcached>::default(),
        };
        clients.fetch_add(1, Ordering::Relaxed);
        let (store, ended, clients) = (store.clone(), ended.clone(), clients.clone());
        threads.push(spawn(move || {
            // An error is a client that has gone.
            let _ = serve(stream.as_mut(), dialect, &store, &ended);
            clients.fetch_sub(1, Ordering::Relaxed);
        }));
    }
    for thread in threads {
        let _ = thread.join();
    }
}

/// True for a wait that was too long, which is none of an error yet.
fn waits(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

fn send(stream: &mut dyn Stream, out: &mut Vec<u8>, ended: &AtomicBool) -> io::Result<()> {
    let (mut at, start) = (0, Instant::now());
    while at < out.len() {
        if ended.load(Ordering::Relaxed) || start.elapsed() > IDLE {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match stream.write(&out[at..]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(bytes) => at += bytes,
            Err(error) if waits(&error) => {}
            Err(error) => return Err(error),
        }
    }
    *out = Vec::new();
    Ok(())
}

fn serve(
    stream: &mut dyn Stream,
    mut dialect: Box<dyn Dialect>,
    store: &Mutex<Store>,
    ended: &AtomicBool,
) -> io::Result<()> {
    let life = lock(store).losses;
    let (mut input, mut out) = (Vec::new(), Vec::new());
    let mut piece = vec![0; 16 << 10];
    let mut heard = Instant::now();
    while !ended.load(Ordering::Relaxed) {
        // A host that has lost its power has lost its connections.
        if lock(store).losses != life {
            return Ok(());
        }
        let mut at = 0;
        loop {
            match dialect.step(&input[at..], store, &mut out) {
                Step::Done(used) => at += used,
                Step::More => break,
                Step::Close => return send(stream, &mut out, ended),
            }
            if out.len() > GATHERED {
                send(stream, &mut out, ended)?;
            }
            if lock(store).losses != life || ended.load(Ordering::Relaxed) {
                return send(stream, &mut out, ended);
            }
        }
        input.drain(..at);
        send(stream, &mut out, ended)?;
        if input.len() > MOST_REQUEST + (64 << 10) || heard.elapsed() > IDLE {
            return Ok(());
        }
        match stream.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(bytes) => {
                input.extend(&piece[..bytes]);
                heard = Instant::now();
            }
            Err(error) if waits(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
