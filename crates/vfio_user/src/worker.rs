// SPDX-License-Identifier: Apache-2.0

//! The thread in which a device runs.
//!
//! While the device is busy, simulated time advances as fast as the machine computes it. While the
//! device is idle, simulated time follows the wall clock. Requests of the connection (register
//! accesses, interrupt set-up, resets) arrive through a channel. Doorbells arrive through the
//! shared page, which is polled between two slices of simulated time. An idle device costs little:
//! the thread spins for a moment, and then sleeps between polls, with growing intervals.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sim::{
    guard, Bar, Device, Fault, HostPort, Mmio, ReadData, SplitCompletions, Time, TraceEvent,
    Tracer, MSI_BASE, MSI_LAST,
};

use crate::doorbells::Doorbells;
use crate::setup;
use crate::shared::SharedState;
use crate::RegisterWrite;

/// Simulated time between two polls of the doorbells, while the device is busy.
const SLICE: Time = Time::us(1);
/// How long the thread polls without sleeping after the last work.
const IDLE_SPIN: Duration = Duration::from_micros(50);
/// After this time without work, polls become rarer.
const IDLE_BACKOFF: Duration = Duration::from_secs(2);
/// Interval of idle polls, before and after [`IDLE_BACKOFF`].
const IDLE_POLL: [Duration; 2] = [Duration::from_micros(100), Duration::from_millis(1)];
/// Most accesses that wait for the device. Further ones stay in the channel, and block the client.
const MAX_ACCESSES: usize = 64;
/// Slices in which a device can take earlier accesses before a reset.
const DRAIN_SLICES: usize = 100;

/// A request of the connection.
pub(crate) enum WorkerRequest {
    /// A posted write.
    Write {
        bar: Bar,
        offset: u64,
        data: Vec<u8>,
    },
    /// A read. `None`: the device fails it.
    Read {
        bar: Bar,
        offset: u64,
        len: u32,
        answer: SyncSender<Option<Vec<u8>>>,
    },
    /// MSI-X state of configuration space (enable, function mask), and which vectors may send.
    Interrupts {
        enable: bool,
        mask: bool,
        open: Vec<bool>,
    },
    /// A client has connected. It uses this doorbell page.
    Connect(Arc<Doorbells>),
    /// The client is gone.
    Disconnect,
    /// Power cycle. Answered when it is done.
    Reset(SyncSender<()>),
}

/// The device's port to its client. Memory and interrupts respond at once, without a link.
struct ClientPort {
    shared: Arc<SharedState>,
    mmio: VecDeque<Mmio>,
    data: VecDeque<ReadData>,
    parts: SplitCompletions,
    answers: Vec<(u32, Option<Vec<u8>>)>,
    tracer: Option<Tracer>,
}

impl ClientPort {
    fn clear(&mut self) {
        self.mmio.clear();
        self.data.clear();
        self.parts.clear();
        self.answers.clear();
    }

    fn has_input(&self) -> bool {
        !self.mmio.is_empty() || !self.data.is_empty()
    }
}

impl HostPort for ClientPort {
    fn write(&mut self, now: Time, addr: u64, data: &[u8]) -> bool {
        if let Some(tracer) = &self.tracer {
            let len = data.len();
            tracer.record(now, &TraceEvent::Landed { addr, len });
        }
        let stats = &self.shared.stats;
        if let (MSI_BASE..=MSI_LAST, Ok(message)) = (addr, <[u8; 4]>::try_from(data)) {
            let vector = u32::from_le_bytes(message) as usize;
            if self.shared.memory.bus_master() && self.shared.vectors.signal(vector) {
                stats.interrupts.add(1);
            }
        } else if self.shared.memory.write(addr, data) {
            stats.bytes_written.add(data.len() as u64);
        } else {
            self.shared.refuse_access(true, addr, data.len());
        }
        true
    }

    fn read(&mut self, _now: Time, tag: u32, addr: u64, len: u32) -> bool {
        let mut bytes = vec![0; len as usize];
        let found = self.shared.memory.read(addr, &mut bytes);
        if found {
            self.shared.stats.bytes_read.add(u64::from(len));
        } else {
            self.shared.refuse_access(false, addr, len as usize);
        }
        self.data.push_back(ReadData {
            tag,
            data: found.then_some(bytes),
            last: true,
        });
        true
    }

    fn mmio_part(&mut self, _now: Time, tag: u32, data: Vec<u8>) {
        self.parts.add(tag, data);
    }

    fn mmio_data(&mut self, _now: Time, tag: u32, data: Option<Vec<u8>>) {
        let data = self.parts.end(tag, data);
        self.answers.push((tag, data));
    }

    fn mmio(&mut self, _now: Time) -> Option<Mmio> {
        self.mmio.pop_front()
    }

    fn read_data(&mut self, _now: Time) -> Option<ReadData> {
        self.data.pop_front()
    }

    fn next_mmio(&self) -> Option<Time> {
        (!self.mmio.is_empty()).then_some(Time::ZERO)
    }

    fn next_data(&self) -> Option<Time> {
        (!self.data.is_empty()).then_some(Time::ZERO)
    }

    fn attention(&self) -> bool {
        !self.answers.is_empty() || self.shared.request_pending.load(Ordering::Relaxed)
    }
}

/// A read of the connection that the device has not answered.
struct PendingRead {
    tag: u32,
    answer: SyncSender<Option<Vec<u8>>>,
}

pub(crate) struct Worker {
    device: Box<dyn Device + Send>,
    requests: Receiver<WorkerRequest>,
    port: ClientPort,
    doorbells: Option<Arc<Doorbells>>,
    pending_reads: Vec<PendingRead>,
    next_tag: u32,
    fault: Option<Fault>,
    /// Register writes after each power-on.
    setup: Vec<RegisterWrite>,
    vectors: u16,
    msix: (bool, bool),
    open: Vec<bool>,
    /// When the device became idle.
    idle_since: Option<Instant>,
    /// When simulated time last followed the wall clock.
    clock_followed: Instant,
}

impl Worker {
    pub(crate) fn new(
        mut device: Box<dyn Device + Send>,
        requests: Receiver<WorkerRequest>,
        shared: Arc<SharedState>,
        setup: Vec<RegisterWrite>,
        vectors: u16,
        tracer: Option<Tracer>,
    ) -> Worker {
        if tracer.is_some() {
            device.set_tracer(tracer.clone());
        }
        Worker {
            device,
            requests,
            port: ClientPort {
                shared,
                mmio: VecDeque::new(),
                data: VecDeque::new(),
                parts: SplitCompletions::default(),
                answers: Vec::new(),
                tracer,
            },
            doorbells: None,
            pending_reads: Vec::new(),
            next_tag: 0,
            fault: None,
            setup,
            vectors,
            msix: (false, false),
            open: vec![false; usize::from(vectors)],
            idle_since: None,
            clock_followed: Instant::now(),
        }
    }

    /// Runs the device until the server stops, and flushes its media.
    pub(crate) fn run(mut self) {
        self.run_until_stopped();
        if let Err(fault) = self.device.finish() {
            self.port.shared.report(&fault.to_string());
        }
    }

    fn run_until_stopped(&mut self) {
        self.function_reset();
        while !self.port.shared.stop.load(Ordering::Relaxed) {
            if !self.receive_requests() {
                return;
            }
            self.collect_doorbells();
            if self.is_busy() {
                self.idle_since = None;
                self.advance();
            } else {
                self.wait_idle();
            }
        }
    }

    /// Handles all requests that have arrived. Returns false if the server is gone.
    fn receive_requests(&mut self) -> bool {
        // Cleared before the channel is read. A later request sets it again.
        self.port
            .shared
            .request_pending
            .store(false, Ordering::Relaxed);
        while self.port.mmio.len() < MAX_ACCESSES {
            match self.requests.try_recv() {
                Ok(order) => self.handle_request(order),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
        true
    }

    fn handle_request(&mut self, order: WorkerRequest) {
        // A doorbell that was written before an access precedes it.
        self.collect_doorbells();
        self.idle_since = None;
        match order {
            WorkerRequest::Write { bar, offset, data } => {
                self.push(Mmio::Write { bar, offset, data })
            }
            WorkerRequest::Read {
                bar,
                offset,
                len,
                answer,
            } => {
                let tag = self.next_tag;
                self.next_tag = self.next_tag.wrapping_add(1);
                if self.fault.is_some() {
                    let _ = answer.try_send(None);
                    return;
                }
                self.pending_reads.push(PendingRead { tag, answer });
                self.push(Mmio::Read {
                    bar,
                    offset,
                    len,
                    tag,
                });
            }
            WorkerRequest::Interrupts { enable, mask, open } => {
                self.msix = (enable, mask);
                self.device.set_msix(enable, mask);
                for vector in 0..self.open.len() {
                    let now = open.get(vector).copied().unwrap_or(false);
                    if self.open[vector] != now {
                        self.open[vector] = now;
                        self.mask_vector(vector);
                    }
                }
            }
            WorkerRequest::Connect(doorbells) => self.doorbells = Some(doorbells),
            WorkerRequest::Disconnect => {
                self.doorbells = None;
                self.msix = (false, false);
                self.open.fill(false);
                self.function_reset();
                self.port.shared.report_unmet_accesses();
            }
            WorkerRequest::Reset(done) => {
                self.function_reset();
                let _ = done.try_send(());
            }
        }
    }

    fn push(&mut self, access: Mmio) {
        self.port.shared.stats.register_accesses.add(1);
        if self.fault.is_none() {
            self.port.mmio.push_back(access);
        }
    }

    /// Passes doorbells of the shared page to the device.
    fn collect_doorbells(&mut self) {
        let Some(doorbells) = self.doorbells.clone() else {
            return;
        };
        // A client may write doorbells faster than its device takes them. Only the last value
        // counts.
        if self.port.mmio.len() >= MAX_ACCESSES {
            return;
        }
        doorbells.collect(|offset, value| {
            self.port.shared.stats.doorbells.add(1);
            if self.fault.is_none() {
                self.port
                    .mmio
                    .push_back(setup::write32(Bar::Nvme, offset, value));
            }
        });
    }

    /// Resets the function, and restores the set-up that the client expects.
    fn function_reset(&mut self) {
        // Earlier posted writes arrive before the reset.
        for _ in 0..DRAIN_SLICES {
            if self.fault.is_some() || self.port.mmio.is_empty() {
                break;
            }
            self.advance();
        }
        guard::install_handler();
        self.device.function_reset();
        self.port.clear();
        for question in self.pending_reads.drain(..) {
            let _ = question.answer.try_send(None);
        }
        self.fault = None;
        self.device.set_msix(self.msix.0, self.msix.1);
        let writes = setup::after_reset(&self.setup, self.vectors);
        self.port.mmio.extend(writes);
        for vector in 0..usize::from(self.vectors) {
            self.mask_vector(vector);
        }
    }

    fn mask_vector(&mut self, vector: usize) {
        let masked = !self.open.get(vector).copied().unwrap_or(false);
        self.port.mmio.push_back(setup::mask_vector(vector, masked));
    }

    fn is_busy(&self) -> bool {
        self.fault.is_none() && (self.port.has_input() || !self.device.idle())
    }

    /// Runs the device for a slice of simulated time, or until a request arrives.
    fn advance(&mut self) {
        let until = self.device.now() + SLICE;
        let outcome = self.device_until(until);
        self.clock_followed = Instant::now();
        for (tag, data) in std::mem::take(&mut self.port.answers) {
            if let Some(at) = self.pending_reads.iter().position(|q| q.tag == tag) {
                let _ = self.pending_reads.swap_remove(at).answer.try_send(data);
            }
        }
        if let Err(fault) = outcome {
            self.record_fault(fault);
        }
        if self.fault.is_some() || !self.is_busy() {
            // Pending reads will not be answered any more.
            for question in self.pending_reads.drain(..) {
                let _ = question.answer.try_send(None);
            }
        }
    }

    /// Waits for a request or a doorbell.
    fn wait_idle(&mut self) {
        let since = *self.idle_since.get_or_insert_with(Instant::now);
        let spent = since.elapsed();
        if spent < IDLE_SPIN {
            for _ in 0..64 {
                std::hint::spin_loop();
            }
            return;
        }
        self.follow_wall_clock();
        let order = if self.doorbells.is_some() {
            let nap = IDLE_POLL[usize::from(spent > IDLE_BACKOFF)];
            self.requests.recv_timeout(nap)
        } else {
            // Without a client there are no doorbells.
            self.requests.recv_timeout(Duration::from_millis(200))
        };
        match order {
            Ok(order) => self.handle_request(order),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                self.port.shared.stop.store(true, Ordering::Relaxed)
            }
        }
    }

    /// Advances the simulated time of an idle device by the wall-clock time that has passed.
    fn follow_wall_clock(&mut self) {
        let now = Instant::now();
        let passed = (now - self.clock_followed).as_nanos().min(1 << 40) as u64;
        if passed < 10_000 || self.fault.is_some() {
            return;
        }
        self.clock_followed = now;
        let until = self.device.now() + Time::ns(passed);
        if let Err(fault) = self.device_until(until) {
            self.record_fault(fault);
        }
    }

    /// Other code of this process may have replaced the guard's signal handler since the last
    /// slice.
    fn device_until(&mut self, until: Time) -> Result<(), Fault> {
        guard::install_handler();
        self.device.advance(until, &mut self.port)
    }

    /// The device does nothing from here to its next power-on.
    fn record_fault(&mut self, fault: Fault) {
        self.port.shared.report_fault(&fault.to_string());
        self.fault = Some(fault);
        self.port.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;
    use crate::doorbells;
    use crate::log::Log;

    /// A device that takes no accesses.
    struct UnresponsiveDevice;

    impl Device for UnresponsiveDevice {
        fn now(&self) -> Time {
            Time::ZERO
        }

        fn advance(&mut self, _until: Time, _host: &mut dyn HostPort) -> Result<(), Fault> {
            Ok(())
        }

        fn idle(&self) -> bool {
            true
        }

        fn power_off(&mut self) {}

        fn power_on(&mut self) {}

        fn counters(&self) -> Vec<sim::Counter> {
            Vec::new()
        }
    }

    #[test]
    fn doorbells_do_not_accumulate_while_the_device_is_busy() {
        let shared = Arc::new(SharedState::new("deaf".into(), Log::new(|_| {}), 1));
        let (_orders, inbox) = sync_channel(1);
        let mut worker = Worker::new(
            Box::new(UnresponsiveDevice),
            inbox,
            shared,
            Vec::new(),
            1,
            None,
        );
        let page = Arc::new(Doorbells::new().unwrap());
        worker.doorbells = Some(page.clone());
        let words = doorbells::BYTES as usize / 4;
        for round in 0..50u8 {
            let all = [round; doorbells::BYTES as usize];
            rustix::io::pwrite(page.file(), &all, doorbells::OFFSET).unwrap();
            worker.collect_doorbells();
            assert!(
                worker.port.mmio.len() < MAX_ACCESSES + words,
                "round {round}"
            );
        }
        // Once there is room again, the last values arrive.
        worker.port.mmio.clear();
        worker.collect_doorbells();
        let last = |access: &Mmio| matches!(access, Mmio::Write { data, .. } if data == &[49; 4]);
        assert_eq!(worker.port.mmio.len(), words);
        assert!(worker.port.mmio.iter().all(last));
    }
}
