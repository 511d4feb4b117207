//! One host with several devices of a design, and a driver for each.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use design::{Design, DeviceInstance, HostProfile, Identity, Profile};
use device::Factory;
use driver::control::Inventory;
use driver::{DriverConfig, NvmeDriver, SharedHost};
use host::{Machine, Program, SharedMachine};
use sim::{Bar, Media, System, Time};

use crate::job::{Done, Job};
use crate::transfer::QUEUES;
use crate::{Error, Progress, Result};

/// Simulated time that a command may take: sorting is long.
const PATIENCE: Time = Time::ms(10_000);

/// Simulated time between two looks of an event at whether there is work.
const LOOK: Time = Time::us(20);

/// A driver of one of the devices.
pub type Driver = NvmeDriver<SharedHost>;
/// Makes the work for a partition.
pub type Make<'a> = dyn Fn(usize) -> Result<Job> + Sync + 'a;

/// Partitions that are to be sorted.
pub struct Work<'a> {
    /// By device.
    pub queues: Vec<Vec<usize>>,
    /// Another device can do it, too.
    pub movable: bool,
    pub make: &'a Make<'a>,
    /// Hears of partitions that are sorted: what they were made of is not needed any more.
    pub done: &'a (dyn Fn(usize) + Sync + 'a),
}

/// A sorted partition.
pub struct Outcome {
    pub partition: usize,
    pub device: usize,
    pub done: Done,
}

/// A device that failed, and is used no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub device: usize,
    pub error: String,
}

/// What ended a device's work early.
enum Trouble {
    Stopped,
    Host(Error),
    Device(driver::Error),
}

/// What one device did: partitions, and what ended it at the next one.
type Round = (Vec<(usize, Done)>, Option<Trouble>);

/// How a program ended.
enum Went<R> {
    Device(usize, R),
    /// An event whose time has not come while there was work.
    Later(Time, Event),
    Happened,
}

/// A host with its devices.
pub struct Bench {
    shared: SharedMachine,
    pub drivers: Vec<Driver>,
    /// What else happens to the machine, and when: failures in tests.
    pub events: Vec<(Time, Event)>,
}

/// Happens to a machine at a time.
pub type Event = Box<dyn FnOnce(&mut Machine) + Send>;

impl Bench {
    /// Gives devices with these media power, starts their drivers, and sets the design's media profile.
    pub fn new(
        root: &Path,
        design: &Design,
        factory: &mut Factory,
        media: Vec<(Media, Identity)>,
    ) -> Result<Bench> {
        let (host, link) = design.attached().map_err(Error::new)?;
        let mut system = System::new(&host).map_err(Error::new)?;
        let count = media.len();
        for (media, identity) in media {
            factory.set_identity(identity);
            let device = factory.device(media).map_err(Error::new)?;
            let windows = [
                (Bar::Nvme, 64 << 10),
                (Bar::Pm, design.window_bytes()),
                (Bar::Control, 1 << 20),
            ];
            let added = system.add_device(device, &link, &windows);
            added.map_err(Error::new)?;
        }
        let free = HostProfile::shipped("none").ok_or_else(|| Error::new("no host profile"))?;
        let shared = SharedMachine::new(Machine::new(system, free));
        let profile = Profile::find(root, &design.media.profile).map_err(Error::new)?;
        let registers = profile.registers(design.clock(), design.interleave());
        let registers = registers.map_err(Error::new)?;
        let config = DriverConfig {
            io_queues: QUEUES as u16,
            command_timeout: PATIENCE,
            ..DriverConfig::default()
        };
        let start = |number: usize| -> driver::Result<Driver> {
            let host = SharedHost::new(&shared, number, design.cpu.costs(), 0, QUEUES * number);
            let mut controller = NvmeDriver::start(host, config)?;
            let inventory = Inventory::read(controller.host_mut())?;
            // Those of the storage come first.
            for (delay, registers) in inventory.delays().iter().zip(&registers) {
                delay.set(controller.host_mut(), registers)?;
            }
            Ok(controller)
        };
        let drivers: driver::Result<Vec<_>> = (0..count).map(start).collect();
        let drivers = drivers.map_err(Error::new)?;
        Ok(Bench {
            shared,
            drivers,
            events: Vec::new(),
        })
    }

    /// Devices whose storage is memory.
    pub fn of_memory(
        root: &Path,
        design: &Design,
        factory: &mut Factory,
        count: usize,
    ) -> Result<Bench> {
        let one = |number: usize| {
            let identity = Identity::of(design, DeviceInstance::Number(number as u32));
            let media = factory.media().map_err(Error::new)?;
            Ok((media, identity.map_err(Error::new)?))
        };
        let media: Result<Vec<_>> = (0..count).map(one).collect();
        Bench::new(root, design, factory, media?)
    }

    /// Has each device do something, all at the same time.
    pub fn each<R: Send>(
        &mut self,
        work: impl Fn(usize, &mut Driver) -> driver::Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let work = &work;
        let devices = (0..self.drivers.len()).collect();
        let done = self.together(devices, |device, driver| work(device, driver))?;
        let named = |(device, outcome): (usize, driver::Result<R>)| {
            outcome.map_err(|e| Error::new(format!("device {device}: {e}")))
        };
        done.into_iter().map(named).collect()
    }

    /// Has these devices do something, all at the same time.
    fn together<R: Send>(
        &mut self,
        devices: Vec<usize>,
        work: impl Fn(usize, &mut Driver) -> R + Sync,
    ) -> Result<Vec<(usize, R)>> {
        let (work, left) = (&work, &AtomicUsize::new(devices.len()));
        let chosen = |(device, _): &(usize, &mut Driver)| devices.contains(device);
        let drivers = self.drivers.iter_mut().enumerate().filter(chosen);
        let mut programs: Vec<(usize, Program<'_, Went<R>>)> = Vec::new();
        for (device, driver) in drivers {
            let work = move |_: &host::Cpu| {
                let done = work(device, driver);
                left.fetch_sub(1, Relaxed);
                Went::Device(device, done)
            };
            programs.push((QUEUES * device, Box::new(work)));
        }
        // Behind the CPUs of the drivers.
        let first = QUEUES * devices.iter().max().map_or(0, |last| last + 1);
        for (n, (time, event)) in std::mem::take(&mut self.events).into_iter().enumerate() {
            let shared = self.shared.clone();
            let happen = move |cpu: &host::Cpu| {
                while cpu.now() < time && left.load(Relaxed) > 0 {
                    let step = time.min(cpu.now() + LOOK);
                    if cpu.sleep_until(step).is_err() {
                        break;
                    }
                }
                if cpu.now() < time {
                    return Went::Later(time, event);
                }
                shared.with_machine(event);
                Went::Happened
            };
            programs.push((first + n, Box::new(happen)));
        }
        let mut done = Vec::new();
        for went in self.shared.run(programs).map_err(Error::new)? {
            match went {
                Went::Device(device, outcome) => done.push((device, outcome)),
                Went::Later(time, event) => self.events.push((time, event)),
                Went::Happened => {}
            }
        }
        Ok(done)
    }

    /// Has each device sort its partitions one after another, all devices at the same time. What a device that fails leaves undone others do, if
    /// they can. Outcomes come in the order of their partitions.
    pub fn sort(
        &mut self,
        work: Work,
        progress: &Progress,
    ) -> Result<(Vec<Outcome>, Vec<Failure>)> {
        let (mut outcomes, mut failures) = (Vec::new(), Vec::<Failure>::new());
        let mut queues: Vec<VecDeque<usize>> =
            work.queues.iter().cloned().map(VecDeque::from).collect();
        loop {
            let before = failures.len();
            for (device, (done, trouble)) in self.round(&queues, &work, progress)? {
                let fresh = done.len();
                outcomes.extend(done.into_iter().map(|(partition, done)| Outcome {
                    partition,
                    device,
                    done,
                }));
                queues[device].drain(..fresh);
                match trouble {
                    None => {}
                    Some(Trouble::Stopped) => {
                        return Err(progress.why(&format!("device {device}: ")))
                    }
                    Some(Trouble::Host(error)) => return Err(error),
                    Some(Trouble::Device(error)) => failures.push(Failure {
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
                let Failure { device, error } = &failures[0];
                return Err(Error::new(format!("device {device}: {error}")));
            }
            for (n, partition) in left.into_iter().enumerate() {
                queues[alive[n % alive.len()]].push_back(partition);
            }
        }
        outcomes.sort_by_key(|outcome| outcome.partition);
        Ok((outcomes, failures))
    }

    /// Lets each device with work do it until it fails.
    fn round(
        &mut self,
        queues: &[VecDeque<usize>],
        work: &Work,
        progress: &Progress,
    ) -> Result<Vec<(usize, Round)>> {
        let busy = |device: &usize| !queues[*device].is_empty();
        let devices = (0..self.drivers.len()).filter(busy).collect();
        self.together(devices, |device, driver| {
            run(driver, &queues[device], work, progress)
        })
    }
}

fn run(driver: &mut Driver, queue: &VecDeque<usize>, work: &Work, progress: &Progress) -> Round {
    let mut done = Vec::new();
    for &partition in queue {
        let job = match (work.make)(partition) {
            Ok(job) => job,
            Err(error) => return (done, Some(Trouble::Host(error))),
        };
        match job.run(driver, progress) {
            Ok(one) => {
                (work.done)(partition);
                done.push((partition, one));
            }
            Err(driver::Error::Interrupted) => return (done, Some(Trouble::Stopped)),
            Err(error) => return (done, Some(Trouble::Device(error))),
        }
    }
    (done, None)
}
