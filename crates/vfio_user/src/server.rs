// SPDX-License-Identifier: Apache-2.0

//! The server: a socket and three threads per device.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::{flock, FlockOperation};
use rustix::io::Errno;
use sim::HostConfig;

use crate::channel::{Channel, Emulator};
use crate::clock::{Clock, Dilation};
use crate::connection::Connection;
use crate::inbox::{Inbox, PacedQueue};
use crate::meter::{PaceMeter, PacingReport};
use crate::paced::Pacer;
use crate::peer::{hung_up, Peer};
use crate::port::{DevicePort, QueuePort, WorkerQueue};
use crate::served::ServedDevice;
use crate::shared::SharedState;
use crate::stop::StopSignal;
use crate::time_page::TimePage;
use crate::timed::{TimedHost, TimedPort, TimedState};
use crate::wire;
use crate::worker::Worker;
use crate::{Error, Function};

/// Most requests in flight to a worker. A client that sends more waits.
const MAX_REQUESTS: usize = 256;
/// How long the end waits for a thread. A thread that a client blocks, for example in a page fault,
/// ends with the process.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the server waits for the first message of a rejected client, which is answered.
const REJECT_TIMEOUT: Duration = Duration::from_millis(200);
/// Most rejected clients that are waited for. The connections of further ones are closed at once.
const MAX_REJECTED: usize = 64;
/// How long a client may occupy the device without agreeing on a version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

/// A device that is being served.
struct RunningDevice {
    name: String,
    socket: BoundSocket,
    shared: Arc<SharedState>,
    clients: Arc<Clients>,
    threads: Vec<JoinHandle<()>>,
}

/// Served devices, each with a dedicated socket. They are served until [`Server::stop`] or until it
/// is dropped.
pub struct Server {
    devices: Vec<RunningDevice>,
    channel: Option<RunningChannel>,
    pacer: Option<RunningPacer>,
    stop: Arc<StopSignal>,
}

/// Makes the port of a connection.
type NewPort = Box<dyn Fn() -> Box<dyn DevicePort> + Send>;

/// A device whose socket is bound.
struct Bound {
    listener: UnixListener,
    unit: RunningDevice,
}

impl Bound {
    fn new(served: &ServedDevice) -> Result<Bound, Error> {
        served.function.check()?;
        let (listener, socket) = bind(&served.socket)?;
        let (name, log) = (served.name.clone(), served.log.clone());
        let shared = SharedState::new(name.clone(), log, served.function.vectors);
        Ok(Bound {
            listener,
            unit: RunningDevice {
                name,
                socket,
                shared: Arc::new(shared),
                clients: Arc::default(),
                threads: Vec::new(),
            },
        })
    }
}

/// The channel for simulated time.
struct RunningChannel {
    socket: BoundSocket,
    state: Arc<TimedState>,
    emulator: Arc<Emulator>,
    thread: JoinHandle<()>,
}

/// The thread that paces the devices.
struct RunningPacer {
    clock: Arc<dyn Clock>,
    meter: Arc<PaceMeter>,
    thread: JoinHandle<()>,
}

impl Server {
    /// Binds the sockets and starts the devices, in wall-clock time. Sockets of dead servers are
    /// replaced.
    pub fn start(devices: Vec<ServedDevice>) -> Result<Server, Error> {
        let mut server = Server::new()?;
        for served in devices {
            let mut bound = Bound::new(&served)?;
            let (requests, inbox) = sync_channel(MAX_REQUESTS);
            let worker = Worker::new(
                served.device,
                inbox,
                bound.unit.shared.clone(),
                served.setup,
                served.function.vectors,
                served.tracer,
            );
            let run = spawn("device", move || worker.run())?;
            bound.unit.threads.push(run);
            let shared = bound.unit.shared.clone();
            let port = move || -> Box<dyn DevicePort> {
                Box::new(QueuePort(WorkerQueue {
                    shared: shared.clone(),
                    requests: requests.clone(),
                }))
            };
            server.serve(bound, served.function, Box::new(port))?;
        }
        Ok(server)
    }

    /// The same in simulated time: the devices are attached to one host, and an emulator that has
    /// connected to the socket `clock` says how far they may run.
    pub fn start_in_simulated_time(
        devices: Vec<ServedDevice>,
        host: &HostConfig,
        clock: &Path,
    ) -> Result<Server, Error> {
        let mut server = Server::new()?;
        let (listener, clock) = bind(clock)?;
        let page = Arc::new(TimePage::new().map_err(|e| Error::Start("a memfd".into(), e))?);
        let (bound, served) = bind_all(devices)?;
        let host = TimedHost::new(host, served, page.clone(), server.stop.clone())?;
        let state = Arc::new(TimedState::new(host));
        for (device, (bound, function)) in bound.into_iter().enumerate() {
            let (shared, state) = (bound.unit.shared.clone(), state.clone());
            let port = move || -> Box<dyn DevicePort> {
                Box::new(TimedPort {
                    state: state.clone(),
                    device,
                    shared: shared.clone(),
                })
            };
            server.serve(bound, function, Box::new(port))?;
        }
        let emulator = Arc::<Emulator>::default();
        let channel = Channel {
            listener,
            page,
            state: state.clone(),
            stop: server.stop.clone(),
            emulator: emulator.clone(),
        };
        let thread = spawn("clock", move || channel.run())?;
        server.channel = Some(RunningChannel {
            socket: clock,
            state,
            emulator,
            thread,
        });
        Ok(server)
    }

    /// The same, paced: no client sees what a device has done before its modelled time on `clock`,
    /// on which devices are slower by `dilation`.
    pub fn start_paced(
        devices: Vec<ServedDevice>,
        host: &HostConfig,
        dilation: Dilation,
        clock: Arc<dyn Clock>,
    ) -> Result<Server, Error> {
        let mut server = Server::new()?;
        let (bound, served) = bind_all(devices)?;
        let meter = Arc::new(PaceMeter::new(clock.clone(), dilation, served.len())?);
        let inbox = Arc::new(Inbox::new(served.len(), meter.clone()));
        let pacer = Pacer::new(
            host,
            served,
            meter.clone(),
            inbox.clone(),
            server.stop.clone(),
        )?;
        let thread = spawn("pacer", move || pacer.run())?;
        server.pacer = Some(RunningPacer {
            clock,
            meter,
            thread,
        });
        for (device, (bound, function)) in bound.into_iter().enumerate() {
            let inbox = inbox.clone();
            let port = move || -> Box<dyn DevicePort> {
                let inbox = inbox.clone();
                Box::new(QueuePort(PacedQueue { inbox, device }))
            };
            server.serve(bound, function, Box::new(port))?;
        }
        Ok(server)
    }

    fn new() -> Result<Server, Error> {
        let stop = StopSignal::new().map_err(|e| Error::Start("an eventfd".into(), e))?;
        Ok(Server {
            devices: Vec::new(),
            channel: None,
            pacer: None,
            stop: Arc::new(stop),
        })
    }

    /// Starts the threads that serve a device's clients.
    fn serve(&mut self, bound: Bound, function: Function, port: NewPort) -> Result<(), Error> {
        let Bound { listener, mut unit } = bound;
        let acceptor = Acceptor {
            listener,
            shared: unit.shared.clone(),
            clients: unit.clients.clone(),
            stop: self.stop.clone(),
        };
        let connections = ConnectionLoop {
            function,
            shared: unit.shared.clone(),
            port,
            clients: unit.clients.clone(),
            stop: self.stop.clone(),
        };
        unit.threads
            .push(spawn("acceptor", move || acceptor.run())?);
        unit.threads
            .push(spawn("connection", move || connections.run())?);
        self.devices.push(unit);
        Ok(())
    }

    /// Names and values of each device's counters, since the start.
    pub fn counters(&self) -> Vec<Vec<(&'static str, u64)>> {
        self.devices.iter().map(|u| u.shared.stats.list()).collect()
    }

    /// How precisely each device was paced so far; empty if they are not paced.
    pub fn pacing(&self) -> Vec<PacingReport> {
        let pacer = self.pacer.as_ref();
        pacer.map_or(Vec::new(), |pacer| pacer.meter.report())
    }

    /// Names of the devices and their sockets.
    pub fn sockets(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.devices
            .iter()
            .map(|u| (&u.name[..], u.socket.path.as_path()))
    }

    /// Ends all connections, removes the sockets, and drops the devices, which flushes their media.
    pub fn stop(mut self) {
        self.shut_down();
    }

    fn shut_down(&mut self) {
        self.stop.set();
        for unit in &self.devices {
            unit.socket.remove();
            unit.shared.stop.store(true, Ordering::Relaxed);
            unit.shared.request_pending.store(true, Ordering::Relaxed);
            unit.clients.close();
        }
        if let Some(channel) = &self.channel {
            channel.socket.remove();
            channel.emulator.close();
        }
        if let Some(pacer) = &self.pacer {
            pacer.clock.wake();
        }
        let deadline = Instant::now() + END_TIMEOUT;
        for unit in self.devices.drain(..) {
            for thread in unit.threads {
                while !thread.is_finished() && Instant::now() < deadline {
                    std::thread::sleep(Duration::from_millis(2));
                }
                if thread.is_finished() {
                    let _ = thread.join();
                } else {
                    unit.shared.report("a thread does not end");
                }
            }
        }
        if let Some(channel) = self.channel.take() {
            let _ = channel.thread.join();
            channel.state.lock().finish();
        }
        if let Some(pacer) = self.pacer.take() {
            let _ = pacer.thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// A device whose socket is bound, for its threads.
type BoundFunction = (Bound, Function);

/// A device, with the state that its connections share.
type SharedDevice = (ServedDevice, Arc<SharedState>);

/// Binds the sockets of devices that have one host.
fn bind_all(devices: Vec<ServedDevice>) -> Result<(Vec<BoundFunction>, Vec<SharedDevice>), Error> {
    let (mut bound, mut shared) = (Vec::new(), Vec::new());
    for served in devices {
        let one = Bound::new(&served)?;
        let (state, function) = (one.unit.shared.clone(), served.function.clone());
        bound.push((one, function));
        shared.push((served, state));
    }
    Ok((bound, shared))
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    std::thread::Builder::new()
        .name(name.into())
        .spawn(run)
        .map_err(|e| Error::Start("a thread".into(), e))
}

/// A socket of this server in the file system: its path and its file.
struct BoundSocket {
    path: PathBuf,
    file: Option<(u64, u64)>,
}

impl BoundSocket {
    /// Removes the socket, unless another file has replaced it.
    fn remove(&self) {
        if self.file.is_some() && file_id(&self.path) == self.file {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Drop for BoundSocket {
    fn drop(&mut self) {
        self.remove();
    }
}

/// The device and inode of a path.
fn file_id(path: &Path) -> Option<(u64, u64)> {
    let meta = std::fs::symlink_metadata(path).ok()?;
    Some((meta.dev(), meta.ino()))
}

/// Binds a socket. A dead one is replaced.
fn bind(path: &Path) -> Result<(UnixListener, BoundSocket), Error> {
    let fail = |e| Error::Start(format!("the socket {}", path.display()), e);
    if path.as_os_str().is_empty() {
        // The kernel would choose an abstract name.
        let e = io::Error::new(io::ErrorKind::InvalidInput, "its name is empty");
        return Err(Error::Start("the socket \"\"".into(), e));
    }
    // If two servers find the same dead socket, the second one would remove the socket of the
    // first. A socket that is being bound looks dead for a moment as well.
    let lock = lock_directory(path);
    if let Ok(meta) = std::fs::symlink_metadata(path) {
        let found = file_id(path);
        if !meta.file_type().is_socket() || !is_abandoned(path) || file_id(path) != found {
            return Err(Error::InUse(path.into()));
        }
        if let Err(e) = &lock {
            let text = format!(
                "nobody has it any more, but its directory can't be locked to \
                replace it ({e}): remove it first"
            );
            return Err(fail(io::Error::new(e.kind(), text)));
        }
        std::fs::remove_file(path).map_err(fail)?;
    }
    let listener = UnixListener::bind(path).map_err(fail)?;
    let path = path.to_path_buf();
    let file = file_id(&path);
    Ok((listener, BoundSocket { path, file }))
}

/// Locks the directory of a socket (`flock`) against other servers that start there, until it is
/// dropped.
fn lock_directory(path: &Path) -> io::Result<File> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    let mut options = File::options();
    options.read(true).custom_flags(libc::O_DIRECTORY);
    let directory = options.open(parent.unwrap_or(Path::new(".")))?;
    let deadline = Instant::now() + END_TIMEOUT;
    loop {
        match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(directory),
            // Servers hold the lock for a moment. Other programs may hold it forever.
            Err(Errno::WOULDBLOCK) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(Errno::WOULDBLOCK) => {
                let text = "another program keeps it locked";
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, text));
            }
            Err(e) => return Err(e.into()),
        }
    }
}

/// True if no process has the socket open. The probe must not become a client of a live server, so
/// it uses a datagram socket. A live stream socket refuses it, and a datagram socket does not
/// notice it.
fn is_abandoned(path: &Path) -> bool {
    let asked = UnixDatagram::unbound().and_then(|socket| socket.connect(path));
    asked.is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused)
}

/// The clients of a device: the current one, and its successor once the current one has hung up.
#[derive(Default)]
struct Clients {
    queue: Mutex<ClientQueue>,
    changed: Condvar,
}

#[derive(Default)]
struct ClientQueue {
    serving: Option<UnixStream>,
    next: Option<UnixStream>,
    closed: bool,
}

impl Clients {
    fn lock_queue(&self) -> MutexGuard<'_, ClientQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a client, unless another one has the device. Otherwise it is returned.
    fn admit(&self, stream: UnixStream) -> Result<(), UnixStream> {
        let mut queue = self.lock_queue();
        let busy = queue.serving.as_ref().is_some_and(|s| !hung_up(s));
        let before = queue.next.as_ref().is_some_and(|s| !hung_up(s));
        if busy || before || queue.closed {
            return Err(stream);
        }
        queue.next = Some(stream);
        self.changed.notify_all();
        Ok(())
    }

    /// The next client, once the last one is gone. `None`: the server ends.
    fn next(&self) -> Option<UnixStream> {
        let mut queue = self.lock_queue();
        queue.serving = None;
        loop {
            if queue.closed {
                return None;
            }
            if let Some(stream) = queue.next.take() {
                queue.serving = stream.try_clone().ok();
                return Some(stream);
            }
            let waited = self.changed.wait(queue);
            queue = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn close(&self) {
        let mut queue = self.lock_queue();
        queue.closed = true;
        for stream in queue.serving.iter().chain(&queue.next) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
        self.changed.notify_all();
    }
}

/// The thread that accepts clients.
struct Acceptor {
    listener: UnixListener,
    shared: Arc<SharedState>,
    clients: Arc<Clients>,
    stop: Arc<StopSignal>,
}

/// A rejected client, and the deadline of its first message.
struct RejectedClient {
    stream: UnixStream,
    until: Instant,
}

impl Acceptor {
    fn run(self) {
        let mut refused: Vec<RejectedClient> = Vec::new();
        while let Some(ready) = self.wait(&refused) {
            let now = Instant::now();
            let (answered, silent) = std::mem::take(&mut refused)
                .into_iter()
                .zip(ready.refused)
                .partition::<Vec<_>, _>(|(_, ready)| *ready);
            for (client, _) in answered {
                wire::reject_client(client.stream, libc::EBUSY as u32);
            }
            let silent = silent.into_iter().map(|(client, _)| client);
            refused.extend(silent.filter(|client| client.until > now));
            if ready.listener_ready {
                self.accept_client(&mut refused);
            }
        }
    }

    /// Accepts a client: it is admitted or rejected.
    fn accept_client(&self, refused: &mut Vec<RejectedClient>) {
        let Ok((stream, _)) = self.listener.accept() else {
            // The process may be out of file descriptors for a while.
            std::thread::sleep(Duration::from_millis(100));
            return;
        };
        if let Err(stream) = self.clients.admit(stream) {
            if refused.len() >= MAX_REJECTED {
                refused.remove(0);
            }
            let until = Instant::now() + REJECT_TIMEOUT;
            refused.push(RejectedClient { stream, until });
            let refused = &self.shared.stats.refused_clients;
            refused.add(1);
            // Repeated clients do not fill the log.
            let count = refused.get();
            if count.is_power_of_two() {
                self.shared.report(&format!(
                    "another client was rejected: one at a time ({count} so far; reported \
                     at 1, 2, 4, 8 and so on)"
                ));
            }
        }
    }

    /// Waits for a client, or for a message of a rejected one. `None`: the server ends.
    fn wait(&self, refused: &[RejectedClient]) -> Option<ReadySockets> {
        let mut fds = vec![
            PollFd::new(&self.listener, PollFlags::IN),
            PollFd::new(self.stop.event(), PollFlags::IN),
        ];
        fds.extend(
            refused
                .iter()
                .map(|client| PollFd::new(&client.stream, PollFlags::IN)),
        );
        // The first one has waited longest.
        let limit = refused.first().map(|client| {
            let left = client.until.saturating_duration_since(Instant::now());
            Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: i64::from(left.subsec_nanos()),
            }
        });
        let _ = poll(&mut fds, limit.as_ref());
        let ready = |fd: &PollFd| !fd.revents().is_empty();
        (!self.stop.is_set()).then(|| ReadySockets {
            listener_ready: ready(&fds[0]),
            refused: fds[2..].iter().map(ready).collect(),
        })
    }
}

/// Which sockets are ready: the listener, and those of the rejected clients.
struct ReadySockets {
    listener_ready: bool,
    refused: Vec<bool>,
}

/// The thread that serves one client after another.
struct ConnectionLoop {
    function: Function,
    shared: Arc<SharedState>,
    port: NewPort,
    clients: Arc<Clients>,
    stop: Arc<StopSignal>,
}

impl ConnectionLoop {
    fn run(self) {
        while let Some(stream) = self.clients.next() {
            if let Err(error) = self.serve(stream) {
                self.shared.stats.refused_messages.add(1);
                if !self.stop.is_set() {
                    self.shared.report(&format!("connection ended: {error}"));
                }
            }
        }
    }

    /// Serves a client until it is gone.
    fn serve(&self, mut stream: UnixStream) -> io::Result<()> {
        let (shared, port) = (self.shared.clone(), (self.port)());
        let peer = Peer::of(&stream);
        let mut connection = Connection::new(&self.function, shared, port, peer)?;
        // A silent client would keep the device from other clients forever.
        let mut deadline = Some(Instant::now() + VERSION_TIMEOUT);
        stream.set_write_timeout(Some(VERSION_TIMEOUT))?;
        let late = |e: io::Error| match e.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
                let text = format!(
                    "no version was agreed on within {} s",
                    VERSION_TIMEOUT.as_secs()
                );
                io::Error::new(io::ErrorKind::TimedOut, text)
            }
            _ => e,
        };
        while let Some(mut message) = wire::receive(&mut stream, deadline).map_err(late)? {
            let (id, command, no_reply) = (message.id, message.command, message.no_reply);
            let reply = connection.handle(&mut message);
            if reply.is_err() {
                self.shared.stats.refused_messages.add(1);
            }
            if !no_reply {
                wire::send(&mut stream, id, command, reply.map_err(|e| e as u32))?;
            }
            if deadline.is_some() && connection.negotiated() {
                deadline = None;
                stream.set_read_timeout(None)?;
                stream.set_write_timeout(None)?;
            }
        }
        Ok(())
    }
}
