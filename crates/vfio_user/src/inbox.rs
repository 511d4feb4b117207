// SPDX-License-Identifier: Apache-2.0

//! Requests of the connections of paced devices, each with the time of its arrival.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use sim::Time;

use crate::meter::PaceMeter;
use crate::port::RequestQueue;
use crate::worker::WorkerRequest;

/// Most requests of a device that wait. A client that sends more waits.
const MAX_REQUESTS: usize = 256;

struct Queues {
    /// By device, in order of arrival.
    waiting: Vec<VecDeque<(Time, WorkerRequest)>>,
    closed: bool,
}

/// The requests of all devices that wait for the pacing thread.
pub(crate) struct Inbox {
    queues: Mutex<Queues>,
    taken: Condvar,
    meter: Arc<PaceMeter>,
}

impl Inbox {
    pub(crate) fn new(devices: usize, meter: Arc<PaceMeter>) -> Inbox {
        Inbox {
            queues: Mutex::new(Queues {
                waiting: (0..devices).map(|_| VecDeque::new()).collect(),
                closed: false,
            }),
            taken: Condvar::new(),
            meter,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, device: usize, request: WorkerRequest) {
        let mut queues = self.lock();
        while queues.waiting[device].len() >= MAX_REQUESTS && !queues.closed {
            let waited = self.taken.wait(queues);
            queues = waited.unwrap_or_else(PoisonError::into_inner);
        }
        if queues.closed {
            return;
        }
        // Under the lock: see `next`.
        let arrival = self.meter.now();
        queues.waiting[device].push_back((arrival, request));
        drop(queues);
        self.meter.clock().wake();
    }

    /// The arrival of the first request of the devices that are free, and its device. Without one,
    /// the present time: whatever comes later arrives then or later.
    pub(crate) fn next(&self, free: impl Fn(usize) -> bool) -> (Time, Option<usize>) {
        let queues = self.lock();
        let waiting = queues.waiting.iter().enumerate();
        let heads = waiting.filter(|(device, _)| free(*device));
        let heads = heads.filter_map(|(device, queue)| Some((queue.front()?.0, device)));
        match heads.min() {
            Some((arrival, device)) => (arrival, Some(device)),
            None => (self.meter.now(), None),
        }
    }

    /// Takes the first request of a device.
    pub(crate) fn take(&self, device: usize) -> Option<WorkerRequest> {
        let taken = self.lock().waiting[device].pop_front();
        self.taken.notify_all();
        taken.map(|(_, request)| request)
    }

    /// Sets the device's time back to `now`. Requests that have arrived since arrive then.
    pub(crate) fn set_back(&self, now: Time) {
        let mut queues = self.lock();
        let span = self.meter.now().saturating_sub(now);
        self.meter.set_back(span);
        for (arrival, _) in queues.waiting.iter_mut().flatten() {
            *arrival = arrival.saturating_sub(span);
        }
    }

    /// Drops all requests, and those to come.
    pub(crate) fn close(&self) {
        let mut queues = self.lock();
        queues.closed = true;
        queues.waiting.iter_mut().for_each(VecDeque::clear);
        self.taken.notify_all();
    }
}

/// The requests of a connection.
pub(crate) struct PacedQueue {
    pub inbox: Arc<Inbox>,
    pub device: usize,
}

impl RequestQueue for PacedQueue {
    /// A doorbell has to arrive at its time, so it is a message.
    const MAPS_DOORBELLS: bool = false;

    fn send(&self, request: WorkerRequest) {
        self.inbox.push(self.device, request);
    }
}
