// SPDX-License-Identifier: Apache-2.0

//! What a connection does with its device.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{sync_channel, SyncSender};
use std::sync::Arc;
use std::time::Duration;

use sim::Bar;

use crate::doorbells::Doorbells;
use crate::shared::SharedState;
use crate::worker::WorkerRequest;

/// A register read that takes longer is answered with all ones. The limit of clients is usually
/// lower.
const ANSWER_LIMIT: Duration = Duration::from_secs(50);

/// The device of a connection.
pub(crate) trait DevicePort: Send {
    /// A client has connected. Returns the doorbell page that it can map, if it can map one.
    fn connect(&mut self) -> std::io::Result<Option<Arc<Doorbells>>>;

    /// The client is gone: from now on nothing accesses its memory.
    fn disconnect(&mut self);

    /// What happens before now has happened: the client is about to change what its device
    /// reaches.
    fn catch_up(&mut self) {
        // Only devices in simulated time need it. Others run by themselves.
    }

    /// A posted write, within a page.
    fn write(&mut self, bar: Bar, offset: u64, data: &[u8]);

    /// A read, within a page. All ones if the device does not answer, as on a bus.
    fn read(&mut self, bar: Bar, offset: u64, out: &mut [u8]);

    /// MSI-X state of configuration space (enable, function mask), and which vectors may send.
    fn set_interrupts(&mut self, enable: bool, mask: bool, open: Vec<bool>);

    /// Resets the function.
    fn reset(&mut self);
}

/// The requests of a connection to the thread in which its device runs.
pub(crate) trait RequestQueue: Send {
    /// Whether the client can map the doorbells.
    const MAPS_DOORBELLS: bool;

    /// Sends a request. It is dropped if the server is ending.
    fn send(&self, request: WorkerRequest);
}

/// The requests to a thread that simulates the device as fast as the machine can
/// ([`crate::worker`]).
pub(crate) struct WorkerQueue {
    pub shared: Arc<SharedState>,
    pub requests: SyncSender<WorkerRequest>,
}

impl RequestQueue for WorkerQueue {
    const MAPS_DOORBELLS: bool = true;

    fn send(&self, request: WorkerRequest) {
        // Interrupts the simulation.
        self.shared.request_pending.store(true, Ordering::Relaxed);
        let _ = self.requests.send(request);
        // The worker may have cleared the flag just before this request arrived.
        self.shared.request_pending.store(true, Ordering::Relaxed);
    }
}

/// A device in a thread.
pub(crate) struct QueuePort<Q>(pub Q);

impl<Q: RequestQueue> DevicePort for QueuePort<Q> {
    fn connect(&mut self) -> std::io::Result<Option<Arc<Doorbells>>> {
        if !Q::MAPS_DOORBELLS {
            return Ok(None);
        }
        let page = Arc::new(Doorbells::new()?);
        self.0.send(WorkerRequest::Connect(page.clone()));
        Ok(Some(page))
    }

    fn disconnect(&mut self) {
        self.0.send(WorkerRequest::Disconnect);
    }

    fn write(&mut self, bar: Bar, offset: u64, data: &[u8]) {
        let data = data.to_vec();
        self.0.send(WorkerRequest::Write { bar, offset, data });
    }

    fn read(&mut self, bar: Bar, offset: u64, out: &mut [u8]) {
        let (answer, wait) = sync_channel(1);
        self.0.send(WorkerRequest::Read {
            bar,
            offset,
            len: out.len() as u32,
            answer,
        });
        match wait.recv_timeout(ANSWER_LIMIT) {
            Ok(Some(data)) if data.len() == out.len() => out.copy_from_slice(&data),
            _ => out.fill(0xFF),
        }
    }

    fn set_interrupts(&mut self, enable: bool, mask: bool, open: Vec<bool>) {
        self.0
            .send(WorkerRequest::Interrupts { enable, mask, open });
    }

    fn reset(&mut self) {
        let (done, wait) = sync_channel(1);
        self.0.send(WorkerRequest::Reset(done));
        let _ = wait.recv_timeout(ANSWER_LIMIT);
    }
}
