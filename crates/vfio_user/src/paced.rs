// SPDX-License-Identifier: Apache-2.0

//! Devices that follow the wall clock: nothing that they do is seen before its modelled time.
//!
//! One thread owns the devices of a server. It lets their time pass as far as the wall clock has
//! come, divided by the dilation, and then waits for the next effect or request. A request is
//! performed at the time at which it arrived. If the simulation is slower than the dilated clock,
//! what the devices do is late until they are idle again. If they do not come to rest, their clock
//! is set back.
//!
//! Devices run ahead by the latency of a link, as in simulated time: nothing can reach them sooner.
//! So a completion is computed before its time, if the simulation is fast enough.

use std::collections::VecDeque;
use std::sync::mpsc::SyncSender;
use std::sync::Arc;
use std::time::Duration;

use sim::{Bar, HostConfig, Mmio, Time};

use crate::attached::AttachedDevices;
use crate::inbox::Inbox;
use crate::meter::{Kind, PaceMeter};
use crate::served::ServedDevice;
use crate::shared::SharedState;
use crate::stop::StopSignal;
use crate::worker::WorkerRequest;
use crate::Error;

/// Simulated time of busy devices between two checks whether the server ends.
const SLICE: Time = Time::us(1);
/// How long devices may run to reach the present. If they are too slow, their clock is set back, so
/// that a client of a busy device gets its answers.
const CATCH_UP_LIMIT: Duration = Duration::from_millis(200);

/// What follows the stores of a request.
enum Then {
    Nothing,
    /// A read. `None`: the device fails it.
    Load {
        tag: u32,
        answer: SyncSender<Option<Vec<u8>>>,
    },
    /// The device takes everything before this mark. The client may wait for it.
    Settle {
        mark: Option<u64>,
        done: Option<SyncSender<()>>,
    },
}

/// A request that is being performed.
struct Task {
    /// Stores that wait for space in the link's queue.
    stores: VecDeque<Mmio>,
    then: Then,
    /// The device does not answer later than this.
    limit: Time,
}

/// The thread that paces the devices of a server.
pub(crate) struct Pacer {
    attached: AttachedDevices,
    /// What each device does for its client.
    tasks: Vec<Option<Task>>,
    meter: Arc<PaceMeter>,
    inbox: Arc<Inbox>,
    stop: Arc<StopSignal>,
    timeout: Time,
}

impl Pacer {
    /// Powers the devices. Their states are shared with connections.
    pub(crate) fn new(
        host: &HostConfig,
        served: Vec<(ServedDevice, Arc<SharedState>)>,
        meter: Arc<PaceMeter>,
        inbox: Arc<Inbox>,
        stop: Arc<StopSignal>,
    ) -> Result<Pacer, Error> {
        let host = HostConfig {
            // Each client loads with another CPU, so none waits for another.
            cpu_loads: host.cpu_loads.max(served.len()),
            ..host.clone()
        };
        let attached = AttachedDevices::new(&host, served, Some(meter.clone()))?;
        let mut pacer = Pacer {
            tasks: (0..attached.count()).map(|_| None).collect(),
            attached,
            meter,
            inbox,
            stop,
            timeout: Time::us(host.completion_timeout_us),
        };
        for device in 0..pacer.tasks.len() {
            let writes = pacer.attached.reset(device);
            pacer.begin(device, writes, settle(None));
        }
        Ok(pacer)
    }

    /// Paces the devices until the server stops, and flushes their media.
    pub(crate) fn run(mut self) {
        self.meter.clock().prepare();
        while !self.stop.is_set() {
            let (due, device) = self.inbox.next(|device| self.tasks[device].is_none());
            if !self.pass_time(due) {
                continue;
            }
            if let Some(device) = device {
                if let Some(request) = self.inbox.take(device) {
                    self.perform(device, request);
                }
                continue;
            }
            // What is due at the present time passes with the clock's next step.
            let present = self.attached.system.now();
            let wake = self.next_wake().max(Time(present.0.saturating_add(1)));
            if wake > self.meter.now() {
                let until = (wake != Time::MAX).then(|| self.meter.wall_time(wake));
                self.meter.clock().wait(until);
            }
        }
        // Whoever waits for an answer is released.
        self.inbox.close();
        self.tasks.clear();
        self.attached.finish();
    }

    /// Lets the devices' time pass until `limit`; false if something else is to be done before.
    fn pass_time(&mut self, limit: Time) -> bool {
        let begin = self.meter.clock().now();
        while !self.attached.stopped && self.attached.system.now() < limit {
            if self.stop.is_set() {
                return false;
            }
            if self.meter.clock().now() - begin > CATCH_UP_LIMIT {
                self.inbox.set_back(self.attached.system.now());
                return false;
            }
            let step = self.next_step();
            let system = &mut self.attached.system;
            // While the devices are idle, all the time passes at once.
            let effect = system.next_effect().max(system.now());
            let until = Time(effect.0.saturating_add(SLICE.0)).min(step).min(limit);
            let passed = system.wait_event(until, true);
            system.memory_mut().clear_attention();
            if let Err(error) = passed {
                self.attached.stop(&error);
            }
            for interrupt in self.attached.take_interrupts() {
                // The signal may wake a thread that takes this one's CPU.
                let late = self.meter.lateness(interrupt.time);
                if self.attached.signal(interrupt) {
                    self.meter.record(interrupt.device, Kind::Interrupt, late);
                }
            }
            if self.advance_tasks() {
                return false;
            }
        }
        true
    }

    /// Continues all tasks; true if one has ended.
    fn advance_tasks(&mut self) -> bool {
        let mut ended = false;
        for device in 0..self.tasks.len() {
            if let Some(task) = self.tasks[device].take() {
                self.tasks[device] = self.advance_task(device, task);
                ended |= self.tasks[device].is_none();
            }
        }
        ended
    }

    /// Continues a task as far as it is possible now; `None` if it has ended.
    fn advance_task(&mut self, device: usize, mut task: Task) -> Option<Task> {
        let system = &mut self.attached.system;
        let now = system.now();
        // A device that can't continue answers nothing.
        let gone = self.attached.stopped || now >= task.limit;
        while !gone && system.has_room(device) {
            let Some(Mmio::Write { bar, offset, data }) = task.stores.pop_front() else {
                break;
            };
            // The window of each region has its size, so this can't fail.
            let _ = system.mmio_write(device, bar, offset, &data);
        }
        if !gone && !task.stores.is_empty() {
            return Some(task);
        }
        match &mut task.then {
            Then::Nothing => None,
            Then::Load { tag, answer } => {
                let answered = system.completed_loads().find(|load| load.1 == *tag);
                match answered {
                    Some((done, _)) if done <= now => {
                        let load = system.take_completed_load(*tag);
                        let late = self.meter.lateness(done);
                        self.meter.record(device, Kind::Read, late);
                        let _ = answer.try_send(load.and_then(|load| load.data.ok()));
                        None
                    }
                    _ if gone => {
                        let _ = answer.try_send(None);
                        None
                    }
                    _ => Some(task),
                }
            }
            Then::Settle { mark, done } => {
                let mark = *mark.get_or_insert_with(|| system.mark(device).unwrap_or(0));
                let taken = system.peek_completed(device, mark);
                if !gone && taken.is_none_or(|taken| taken > now) {
                    return Some(task);
                }
                system.completed(device, mark);
                if let Some(done) = done {
                    let _ = done.try_send(());
                }
                None
            }
        }
    }

    /// Begins a request at the present time.
    fn perform(&mut self, device: usize, request: WorkerRequest) {
        match request {
            WorkerRequest::Write { bar, offset, data } => {
                self.attached.shared(device).stats.register_accesses.add(1);
                let stores = self.split(device, bar, offset, &data);
                self.begin(device, stores, Then::Nothing);
            }
            WorkerRequest::Read {
                bar,
                offset,
                len,
                answer,
            } => {
                self.attached.shared(device).stats.register_accesses.add(1);
                let system = &mut self.attached.system;
                match system.load(device, bar, offset, len as usize) {
                    Ok(tag) => self.begin(device, Vec::new(), Then::Load { tag, answer }),
                    Err(_) => _ = answer.try_send(None),
                }
            }
            WorkerRequest::Interrupts { enable, mask, open } => {
                let writes = self.attached.set_interrupts(device, enable, mask, open);
                self.begin(device, writes, Then::Nothing);
            }
            // No client can map the doorbells of a paced device.
            WorkerRequest::Connect(_) => {}
            WorkerRequest::Disconnect => {
                let writes = self.attached.disconnect(device);
                self.drop_failed_loads();
                self.begin(device, writes, settle(None));
            }
            WorkerRequest::Reset(done) => {
                let writes = self.attached.reset(device);
                self.drop_failed_loads();
                self.begin(device, writes, settle(Some(done)));
            }
        }
    }

    /// Drops the loads that a reset has ended, as nobody waits for them.
    fn drop_failed_loads(&mut self) {
        let system = &mut self.attached.system;
        let waits = |tag: u32| {
            let mut tasks = self.tasks.iter().flatten();
            tasks.any(|task| matches!(task.then, Then::Load { tag: of, .. } if of == tag))
        };
        let ended = system.completed_loads().map(|load| load.1);
        let stale: Vec<u32> = ended.filter(|&tag| !waits(tag)).collect();
        for tag in stale {
            system.take_completed_load(tag);
        }
    }

    fn begin(&mut self, device: usize, stores: Vec<Mmio>, then: Then) {
        let task = Task {
            stores: stores.into(),
            then,
            limit: self.attached.system.now() + self.timeout,
        };
        self.tasks[device] = self.advance_task(device, task);
    }

    /// The stores of a write, one for each TLP, so that none of them waits within the system.
    fn split(&self, device: usize, bar: Bar, offset: u64, data: &[u8]) -> Vec<Mmio> {
        let link = self.attached.system.link(device);
        let unit = link.map_or(64, |link| u64::from(link.config().max_payload_bytes));
        let (mut stores, mut at) = (Vec::new(), 0);
        while at < data.len() {
            let offset = offset + at as u64;
            let len = ((unit - offset % unit) as usize).min(data.len() - at);
            let data = data[at..at + len].to_vec();
            stores.push(Mmio::Write { bar, offset, data });
            at += len;
        }
        stores
    }

    /// The time of the next effect, or of the next step of a task.
    fn next_wake(&mut self) -> Time {
        if self.attached.stopped {
            return Time::MAX;
        }
        if let Err(error) = self.attached.system.run_ahead() {
            self.attached.stop(&error);
            self.advance_tasks();
            return Time::ZERO;
        }
        self.attached.system.next_effect().min(self.next_step())
    }

    /// The next time at which a task can continue, as far as known.
    fn next_step(&self) -> Time {
        let system = &self.attached.system;
        let step = |(device, task): (usize, &Task)| {
            let step = match &task.then {
                Then::Load { tag, .. } => {
                    let answered = system.completed_loads().find(|load| load.1 == *tag);
                    answered.map(|(done, _)| done)
                }
                Then::Settle {
                    mark: Some(mark), ..
                } => system.peek_completed(device, *mark),
                Then::Settle { .. } | Then::Nothing => None,
            };
            step.unwrap_or(task.limit)
        };
        let tasks = self.tasks.iter().enumerate();
        let tasks = tasks.filter_map(|(device, task)| Some((device, task.as_ref()?)));
        tasks.map(step).min().unwrap_or(Time::MAX)
    }
}

fn settle(done: Option<SyncSender<()>>) -> Then {
    Then::Settle { mark: None, done }
}
