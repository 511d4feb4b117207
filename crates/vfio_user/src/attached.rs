// SPDX-License-Identifier: Apache-2.0

//! The devices of a server, attached to one [`sim::System`] whose memory is that of the clients.
//!
//! Whoever owns them decides when time passes: an emulator ([`crate::timed`]) or the wall clock
//! ([`crate::paced`]).

use std::sync::Arc;

use sim::{guard, Bar, ExternalMemory, HostConfig, Mmio, System, Time, MSI_BASE};

use crate::meter::{Kind, PaceMeter};
use crate::served::ServedDevice;
use crate::setup;
use crate::shared::SharedState;
use crate::{Error, RegisterWrite, BAR0_BYTES, BAR4_BYTES};

/// Writes of at most this size are taken for completion queue entries. Larger ones are data, which
/// a client uses once it has found a completion.
const LARGEST_COMPLETION: usize = 64;

/// The memory that each device's client shares with it.
struct ClientMemory {
    shared: Vec<Arc<SharedState>>,
    meter: Option<Arc<PaceMeter>>,
}

impl ExternalMemory for ClientMemory {
    fn write(&mut self, time: Time, device: usize, addr: u64, data: &[u8]) -> bool {
        let shared = &self.shared[device];
        let written = shared.memory.write(addr, data);
        match written {
            true => shared.stats.bytes_written.add(data.len() as u64),
            false => shared.refuse_access(true, addr, data.len()),
        }
        if let (true, 0..=LARGEST_COMPLETION, Some(meter)) = (written, data.len(), &self.meter) {
            meter.record(device, Kind::Completion, meter.lateness(time));
        }
        written
    }

    fn read(&mut self, device: usize, addr: u64, out: &mut [u8]) -> bool {
        let shared = &self.shared[device];
        let found = shared.memory.read(addr, out);
        match found {
            true => shared.stats.bytes_read.add(out.len() as u64),
            false => shared.refuse_access(false, addr, out.len()),
        }
        found
    }
}

/// An interrupt that has arrived and was not signalled.
#[derive(Clone, Copy)]
pub(crate) struct ArrivedInterrupt {
    pub time: Time,
    pub device: usize,
    vector: usize,
}

struct AttachedDevice {
    shared: Arc<SharedState>,
    setup: Vec<RegisterWrite>,
    vectors: u16,
    msix: (bool, bool),
    open: Vec<bool>,
}

/// The devices of a server at one host.
pub(crate) struct AttachedDevices {
    pub system: System,
    devices: Vec<AttachedDevice>,
    /// A device can't continue, and all of them stand still until a reset.
    pub stopped: bool,
}

impl AttachedDevices {
    /// Attaches the devices. Each of them needs a reset before a client may use it. With `meter`,
    /// completions are recorded.
    pub(crate) fn new(
        host: &HostConfig,
        served: Vec<(ServedDevice, Arc<SharedState>)>,
        meter: Option<Arc<PaceMeter>>,
    ) -> Result<AttachedDevices, Error> {
        let shared = served.iter().map(|(_, shared)| shared.clone()).collect();
        let memory = Box::new(ClientMemory { shared, meter });
        let mut system = System::with_external_memory(host, memory).map_err(Error::System)?;
        let mut devices = Vec::new();
        for (served, shared) in served {
            let function = served.function;
            let windows = [
                (Bar::Nvme, BAR0_BYTES),
                (Bar::Pm, function.pm_bytes),
                (Bar::Control, BAR4_BYTES),
            ];
            let device = system.add_device(served.device, &function.link, &windows);
            let device = device.map_err(Error::System)?;
            system.set_tracer(device, served.tracer);
            devices.push(AttachedDevice {
                shared,
                setup: served.setup,
                vectors: function.vectors,
                msix: (false, false),
                open: vec![false; usize::from(function.vectors)],
            });
        }
        Ok(AttachedDevices {
            system,
            devices,
            stopped: false,
        })
    }

    /// Their number.
    pub(crate) fn count(&self) -> usize {
        self.devices.len()
    }

    pub(crate) fn shared(&self, device: usize) -> &SharedState {
        &self.devices[device].shared
    }

    /// Takes the interrupts that have arrived.
    pub(crate) fn take_interrupts(&mut self) -> Vec<ArrivedInterrupt> {
        let mut arrived = Vec::new();
        for device in 0..self.devices.len() {
            let messages = self.system.interrupts(device).into_iter();
            // The table of the device has these messages.
            let vectors = messages.filter(|message| message.addr == MSI_BASE);
            arrived.extend(vectors.map(|message| ArrivedInterrupt {
                time: message.time,
                device,
                vector: message.data as usize,
            }));
        }
        arrived
    }

    /// Signals an interrupt to the client; false if the client does not want it.
    pub(crate) fn signal(&self, interrupt: ArrivedInterrupt) -> bool {
        let shared = &self.devices[interrupt.device].shared;
        let signalled = shared.memory.bus_master() && shared.vectors.signal(interrupt.vector);
        if signalled {
            shared.stats.interrupts.add(1);
        }
        signalled
    }

    /// Reports an error of the system. It stands still until a reset.
    pub(crate) fn stop(&mut self, error: &sim::Error) {
        let (device, text) = match error {
            sim::Error::Fault { device, fault } => (*device, fault.to_string()),
            other => (0, other.to_string()),
        };
        self.devices[device].shared.report_fault(&text);
        self.stopped = true;
    }

    /// Resets a function. Returns the writes that restore the set-up which the client expects.
    pub(crate) fn reset(&mut self, device: usize) -> Vec<Mmio> {
        guard::install_handler();
        self.system.function_reset(device);
        self.stopped = false;
        let AttachedDevice {
            msix,
            setup,
            vectors,
            open,
            ..
        } = &self.devices[device];
        if let Some(device) = self.system.device_mut(device) {
            device.set_msix(msix.0, msix.1);
        }
        let masks = open.iter().enumerate();
        let masks = masks.map(|(vector, open)| setup::mask_vector(vector, !open));
        setup::after_reset(setup, *vectors).chain(masks).collect()
    }

    /// The client is gone: the same, and its interrupts are forgotten.
    pub(crate) fn disconnect(&mut self, device: usize) -> Vec<Mmio> {
        let gone = &mut self.devices[device];
        gone.msix = (false, false);
        gone.open.fill(false);
        gone.shared.report_unmet_accesses();
        self.reset(device)
    }

    /// Whether a device has this MSI-X state of configuration space.
    pub(crate) fn has_msix(&self, device: usize, enable: bool, mask: bool) -> bool {
        self.devices[device].msix == (enable, mask)
    }

    /// Sets MSI-X state. Returns the writes that mask and unmask vectors in the device.
    pub(crate) fn set_interrupts(
        &mut self,
        device: usize,
        enable: bool,
        mask: bool,
        open: Vec<bool>,
    ) -> Vec<Mmio> {
        if let Some(device) = self.system.device_mut(device) {
            device.set_msix(enable, mask);
        }
        let device = &mut self.devices[device];
        device.msix = (enable, mask);
        let before = std::mem::replace(&mut device.open, open);
        let after = device.open.iter().enumerate();
        let changed = after.filter(|&(vector, open)| before.get(vector) != Some(open));
        changed
            .map(|(vector, open)| setup::mask_vector(vector, !open))
            .collect()
    }

    /// Completes and flushes the files of the devices.
    pub(crate) fn finish(&mut self) {
        if let Err(error) = self.system.finish() {
            self.stop(&error);
        }
    }
}
