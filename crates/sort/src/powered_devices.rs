// SPDX-License-Identifier: Apache-2.0

//! A host with several devices of a design, and a driver for each device.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use design::{Design, DeviceInstance, Identity, Profile};
use device::Factory;
use driver::{DriverConfig, NvmeDriver, SharedHost};
use host::{HostParameters, Machine, Program, SharedMachine};
use sim::Time;
use testbed::{set_media_profile, Testbed};

use crate::job::{JobResult, SortJob};
use crate::transfer::QUEUES;
use crate::{Error, Progress, Result};

/// Limit of the simulated time of a command. A sort takes long.
const COMMAND_TIMEOUT: Time = Time::ms(10_000);

/// Simulated time between two checks whether any device still works.
const EVENT_POLL: Time = Time::us(20);

/// The driver of one device.
pub type Driver = NvmeDriver<SharedHost>;
/// Builds the job of a partition.
pub type MakeJob<'a> = dyn Fn(usize) -> Result<SortJob> + Sync + 'a;

/// Partitions to sort.
pub struct SortRequest<'a> {
    /// Partition numbers, by device.
    pub queues: Vec<Vec<usize>>,
    /// True if another device can sort a partition.
    pub movable: bool,
    pub make: &'a MakeJob<'a>,
    /// Called when a partition is sorted: its source data can be released.
    pub done: &'a (dyn Fn(usize) + Sync + 'a),
}

/// A sorted partition.
pub struct SortedPartition {
    pub partition: usize,
    pub device: usize,
    pub done: JobResult,
}

/// A device that has failed. It is not used any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceFailure {
    pub device: usize,
    pub error: String,
}

/// Partitions that a device has sorted, and the error of the next one.
type QueueResult = (Vec<(usize, JobResult)>, Option<driver::Error>);

/// How a concurrent program ended.
enum TaskResult<R> {
    Device(usize, R),
    /// An event whose time did not come while a device worked.
    Later(Time, MachineEvent),
    Happened,
}

/// Devices of a host, and their drivers.
pub struct PoweredDevices {
    shared: SharedMachine,
    pub drivers: Vec<Driver>,
    /// Events with their times. Tests inject failures with them.
    pub events: Vec<(Time, MachineEvent)>,
}

/// A change of the machine at a given time.
pub type MachineEvent = Box<dyn FnOnce(&mut Machine) + Send>;

impl PoweredDevices {
    /// Powers the devices of a testbed, starts their drivers, and sets the design's media profile.
    pub fn new(testbed: testbed::Builder, design: &Design) -> Result<PoweredDevices> {
        let testbed = testbed.host(HostParameters::default());
        let testbed = testbed.build()?;
        let profile = Profile::find(&design.media.profile)?;
        let config = DriverConfig {
            io_queues: QUEUES as u16,
            command_timeout: COMMAND_TIMEOUT,
            ..DriverConfig::default()
        };
        let start = |number: usize| -> testbed::Result<Driver> {
            let host = testbed.host(number, 0, QUEUES * number);
            let mut driver = NvmeDriver::start(host, config)?;
            set_media_profile(driver.host_mut(), &profile)?;
            Ok(driver)
        };
        let drivers: testbed::Result<Vec<_>> = (0..testbed.devices()).map(start).collect();
        Ok(PoweredDevices {
            shared: testbed.machine().clone(),
            drivers: drivers?,
            events: Vec::new(),
        })
    }

    /// Devices whose media are in memory.
    pub fn of_memory(factory: &Factory, count: usize) -> Result<PoweredDevices> {
        let design = factory.design();
        let identity = |number| Identity::of(design, DeviceInstance::Number(number));
        let identities = (0..count as u32)
            .map(identity)
            .collect::<std::result::Result<_, _>>();
        let testbed = Testbed::of(factory).devices(count);
        let testbed = testbed.identities(identities?);
        PoweredDevices::new(testbed, design)
    }

    /// Runs `work` on every device, concurrently.
    pub fn on_each_device<R: Send>(
        &mut self,
        work: impl Fn(usize, &mut Driver) -> driver::Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let work = &work;
        let devices = (0..self.drivers.len()).collect();
        let mut done = self.run_concurrently(devices, |device, driver| work(device, driver))?;
        first_cause(&mut done, |outcome| outcome.as_ref().err());
        let named = |(device, outcome): (usize, driver::Result<R>)| {
            outcome.map_err(|e| device_error(device, e))
        };
        done.into_iter().map(named).collect()
    }

    /// Runs `work` on these devices, concurrently.
    fn run_concurrently<R: Send>(
        &mut self,
        devices: Vec<usize>,
        work: impl Fn(usize, &mut Driver) -> R + Sync,
    ) -> Result<Vec<(usize, R)>> {
        let (work, left) = (&work, &AtomicUsize::new(devices.len()));
        let chosen = |(device, _): &(usize, &mut Driver)| devices.contains(device);
        let drivers = self.drivers.iter_mut().enumerate().filter(chosen);
        let mut programs: Vec<(usize, Program<'_, TaskResult<R>>)> = Vec::new();
        for (device, driver) in drivers {
            let work = move |_: &host::Cpu| {
                let done = work(device, driver);
                left.fetch_sub(1, Relaxed);
                TaskResult::Device(device, done)
            };
            programs.push((QUEUES * device, Box::new(work)));
        }
        // The CPUs after those of the drivers.
        let first = QUEUES * devices.iter().max().map_or(0, |last| last + 1);
        for (n, (time, event)) in std::mem::take(&mut self.events).into_iter().enumerate() {
            let shared = self.shared.clone();
            let happen = move |cpu: &host::Cpu| {
                while cpu.now() < time && left.load(Relaxed) > 0 {
                    let step = time.min(cpu.now() + EVENT_POLL);
                    if cpu.sleep_until(step).is_err() {
                        break;
                    }
                }
                if cpu.now() < time {
                    return TaskResult::Later(time, event);
                }
                shared.with_machine(event);
                TaskResult::Happened
            };
            programs.push((first + n, Box::new(happen)));
        }
        let mut done = Vec::new();
        for result in self.shared.run(programs)? {
            match result {
                TaskResult::Device(device, outcome) => done.push((device, outcome)),
                TaskResult::Later(time, event) => self.events.push((time, event)),
                TaskResult::Happened => {}
            }
        }
        Ok(done)
    }

    /// Has each device sort its partitions one after another, all devices concurrently. Partitions
    /// that a failed device leaves go to the other devices, if they are movable. The result is in
    /// the order of the partitions.
    pub fn sort(
        &mut self,
        work: SortRequest,
        progress: &Progress,
    ) -> Result<(Vec<SortedPartition>, Vec<DeviceFailure>)> {
        let (mut outcomes, mut failures) = (Vec::new(), Vec::<DeviceFailure>::new());
        let mut queues: Vec<VecDeque<usize>> =
            work.queues.iter().cloned().map(VecDeque::from).collect();
        loop {
            let before = failures.len();
            let mut results = self.sort_queues(&queues, &work, progress)?;
            first_cause(&mut results, |(_, error)| error.as_ref());
            for (device, (done, error)) in results {
                let fresh = done.len();
                outcomes.extend(done.into_iter().map(|(partition, done)| SortedPartition {
                    partition,
                    device,
                    done,
                }));
                queues[device].drain(..fresh);
                match error {
                    None => {}
                    Some(error @ (driver::Error::Interrupted | driver::Error::Caller(_))) => {
                        return Err(device_error(device, error))
                    }
                    Some(error) => failures.push(DeviceFailure {
                        device,
                        error: error.to_string(),
                    }),
                }
            }
            if failures.len() == before {
                break;
            }
            let left: Vec<usize> = queues.iter_mut().flat_map(std::mem::take).collect();
            let failed = |device: &usize| failures.iter().any(|f| f.device == *device);
            let alive: Vec<usize> = (0..queues.len()).filter(|d| !failed(d)).collect();
            if !work.movable || alive.is_empty() {
                let DeviceFailure { device, error } = &failures[0];
                return Err(Error::new(format!("device {device}: {error}")));
            }
            for (n, partition) in left.into_iter().enumerate() {
                queues[alive[n % alive.len()]].push_back(partition);
            }
        }
        outcomes.sort_by_key(|outcome| outcome.partition);
        Ok((outcomes, failures))
    }

    /// Lets each device work through its queue until it fails.
    fn sort_queues(
        &mut self,
        queues: &[VecDeque<usize>],
        work: &SortRequest,
        progress: &Progress,
    ) -> Result<Vec<(usize, QueueResult)>> {
        let busy = |device: &usize| !queues[*device].is_empty();
        let devices = (0..self.drivers.len()).filter(busy).collect();
        self.run_concurrently(devices, |device, driver| {
            sort_queue(driver, &queues[device], work, progress)
        })
    }
}

/// The error of a device. An error of the host concerns no device.
fn device_error(device: usize, error: driver::Error) -> Error {
    match error {
        driver::Error::Caller(_) => error.into(),
        error => Error::from(error).of(format!("device {device}")),
    }
}

/// Moves an error of the host to the front: it has interrupted the other devices.
fn first_cause<R>(results: &mut [(usize, R)], error: impl Fn(&R) -> Option<&driver::Error>) {
    results.sort_by_key(|(_, result)| !matches!(error(result), Some(driver::Error::Caller(_))));
}

fn sort_queue(
    driver: &mut Driver,
    queue: &VecDeque<usize>,
    work: &SortRequest,
    progress: &Progress,
) -> QueueResult {
    let mut done = Vec::new();
    for &partition in queue {
        let job = match (work.make)(partition) {
            Ok(job) => job,
            Err(error) => return (done, Some(driver::Error::caller(error))),
        };
        match job.run(driver, progress) {
            Ok(one) => {
                (work.done)(partition);
                done.push((partition, one));
            }
            Err(error) => return (done, Some(error)),
        }
    }
    (done, None)
}
