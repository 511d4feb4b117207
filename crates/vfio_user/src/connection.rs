// SPDX-License-Identifier: Apache-2.0

//! A connection: answers the messages of one client.

use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::Arc;

use sim::Bar;

use crate::config::{self, ConfigSpace, Control, MSIX_TABLE};
use crate::doorbells::{self, Doorbells};
use crate::irq::Mask;
use crate::memory::{MapError, Permissions};
use crate::peer::Peer;
use crate::port::DevicePort;
use crate::shared::SharedState;
use crate::wire::{command, u16_at, u32_at, u64_at, Message, Reply, MAX_FDS, MAX_TRANSFER};
use crate::{Function, BAR0_BYTES, BAR4_BYTES};

/// VFIO's region numbers of a PCI function, and their count.
mod region {
    pub const BAR0: u32 = 0;
    pub const BAR2: u32 = 2;
    pub const BAR4: u32 = 4;
    pub const CONFIG: u32 = 7;
    pub const COUNT: u32 = 9;
}

/// VFIO's interrupt numbers of a PCI function: INTx, MSI, MSI-X, error, request.
mod irq {
    pub const MSIX: u32 = 2;
    pub const COUNT: u32 = 5;
}

mod flag {
    pub const DEVICE_RESET: u32 = 1;
    pub const DEVICE_PCI: u32 = 1 << 1;
    pub const REGION_READ: u32 = 1;
    pub const REGION_WRITE: u32 = 1 << 1;
    pub const REGION_MMAP: u32 = 1 << 2;
    pub const REGION_CAPS: u32 = 1 << 3;
    pub const IRQ_EVENTFD: u32 = 1;
    pub const DATA_NONE: u32 = 1;
    pub const DATA_BOOL: u32 = 1 << 1;
    pub const DATA_EVENTFD: u32 = 1 << 2;
    pub const ACTION_MASK: u32 = 1 << 3;
    pub const ACTION_UNMASK: u32 = 1 << 4;
    pub const ACTION_TRIGGER: u32 = 1 << 5;
    pub const DMA_READ: u32 = 1;
    pub const DMA_WRITE: u32 = 1 << 1;
    pub const UNMAP_ALL: u32 = 1 << 1;
}

/// Region capability: only some areas can be mapped.
const SPARSE_MMAP: u16 = 1;
/// Bytes of the fields of `DEVICE_GET_REGION_INFO`.
const REGION_INFO: u32 = 32;
/// Most files of a client that are checked for private mappings.
const MAX_CHECKED_FILES: usize = 64;
/// How to share the client's memory.
const SHARE_HINT: &str = "QEMU: -object memory-backend-memfd,id=m0,size=...,share=on -machine \
    memory-backend=m0,aux-ram-share=on";
type ReplyResult<'a> = Result<Reply<'a>, i32>;

pub(crate) struct Connection {
    function: Function,
    shared: Arc<SharedState>,
    port: Box<dyn DevicePort>,
    config: ConfigSpace,
    control: Control,
    /// The client's MSI-X table. Only its mask bits have an effect, as messages go to eventfds.
    table: Vec<u8>,
    /// The page that the client maps; `None`: each doorbell is a message.
    doorbells: Option<Arc<Doorbells>>,
    negotiated: bool,
    peer: Peer,
    /// Files that the client has sent, by device and inode. Enough of them to detect memory that is
    /// not shared.
    files: HashSet<(u64, u64)>,
    unshared_reported: bool,
    refused_maps: u64,
}

impl Connection {
    /// Connects a client. It finds the device as after power-on.
    pub(crate) fn new(
        function: &Function,
        shared: Arc<SharedState>,
        mut port: Box<dyn DevicePort>,
        peer: Peer,
    ) -> std::io::Result<Connection> {
        let doorbells = port.connect()?;
        let connection = Connection {
            config: ConfigSpace::new(function),
            control: Control::default(),
            table: fresh_table(function.vectors),
            doorbells,
            negotiated: false,
            peer,
            files: HashSet::new(),
            unshared_reported: false,
            refused_maps: 0,
            function: function.clone(),
            shared,
            port,
        };
        connection.take_master_abort();
        connection.shared.stats.connections.add(1);
        Ok(connection)
    }

    /// True once the client has agreed on the version. Only then does it use the device.
    pub(crate) fn negotiated(&self) -> bool {
        self.negotiated
    }

    /// Answers a message with a reply or an error number.
    pub(crate) fn handle(&mut self, message: &mut Message) -> ReplyResult<'_> {
        self.shared.stats.messages.add(1);
        let fds = std::mem::take(&mut message.fds);
        let body = &message.body[..];
        if message.command == command::VERSION {
            return self.version(body);
        }
        if !self.negotiated {
            return Err(libc::EINVAL);
        }
        match message.command {
            command::DMA_MAP => match self.dma_map(body, fds) {
                Ok(()) => Ok(Reply::default()),
                Err(refused) => {
                    self.report_refused_map(body, refused.why);
                    Err(refused.errno)
                }
            },
            command::DMA_UNMAP => self.dma_unmap(body).ok_or(libc::EINVAL)?,
            command::DEVICE_GET_INFO => {
                let flags = flag::DEVICE_RESET | flag::DEVICE_PCI;
                Ok(words(&[16, flags, region::COUNT, irq::COUNT]))
            }
            command::DEVICE_GET_REGION_INFO => self.region_info(body).ok_or(libc::EINVAL),
            command::DEVICE_GET_IRQ_INFO => self.irq_info(body).ok_or(libc::EINVAL),
            command::DEVICE_SET_IRQS => self.set_irqs(body, fds).ok_or(libc::EINVAL),
            command::REGION_READ => self.region_read(body).ok_or(libc::EINVAL),
            command::REGION_WRITE => self.region_write(body).ok_or(libc::EINVAL),
            command::DEVICE_RESET => {
                self.reset();
                Ok(Reply::default())
            }
            _ => Err(libc::ENOTSUP),
        }
    }

    fn version(&mut self, body: &[u8]) -> ReplyResult<'_> {
        let (major, minor) = (u16_at(body, 0), u16_at(body, 2));
        let (Some(0), Some(minor)) = (major, minor) else {
            return Err(libc::EINVAL);
        };
        self.negotiated = true;
        let mut reply = Vec::new();
        reply.extend(0u16.to_le_bytes());
        reply.extend(minor.min(1).to_le_bytes());
        let capabilities = format!(
            "{{\"capabilities\":{{\"max_msg_fds\":{MAX_FDS},\
             \"max_data_xfer_size\":{MAX_TRANSFER}}}}}\0"
        );
        reply.extend(capabilities.bytes());
        Ok(Reply::of(reply))
    }

    fn dma_map(&mut self, body: &[u8], mut fds: Vec<OwnedFd>) -> Result<(), MapError> {
        let refused = |why| MapError {
            errno: libc::EINVAL,
            why,
        };
        let fields = || {
            Some((
                u32_at(body, 4)?,
                u64_at(body, 8)?,
                u64_at(body, 16)?,
                u64_at(body, 24)?,
            ))
        };
        let (flags, offset, address, size) = fields().ok_or(refused("the message is too short"))?;
        let allowed = Permissions {
            read: flags & flag::DMA_READ != 0,
            write: flags & flag::DMA_WRITE != 0,
        };
        if flags & !(flag::DMA_READ | flag::DMA_WRITE) != 0 {
            return Err(refused("it has flags that there are none of"));
        }
        let file = fds.pop().map(|fd| (fd, offset));
        if !fds.is_empty() {
            return Err(refused("more than one file descriptor came with it"));
        }
        // Checked before this process maps the file, as in tests the client is this process.
        let private = file.as_ref().is_some_and(|(fd, _)| self.is_private(fd));
        let fileless = file.is_none();
        self.port.catch_up();
        self.shared.memory.map(address, size, allowed, file)?;
        let what = if private {
            "the client has mapped its file privately"
        } else if fileless && !self.shared.memory.has_memory() {
            // Windows of other devices have no file either, but clients map them after their
            // memory.
            "no file descriptor came with it"
        } else {
            return Ok(());
        };
        if !std::mem::replace(&mut self.unshared_reported, true) {
            self.shared.report(&format!(
                "the client's memory is not shared: DMA_MAP of {size:#x} bytes at {address:#x}, \
                    and {what}. The device doesn't see \
                 what the client writes there, nor the other way round, so its driver waits in \
                 vain. {SHARE_HINT}"
            ));
        }
        Ok(())
    }

    /// True if the client has mapped a file only privately. Each file is checked once.
    fn is_private(&mut self, file: &OwnedFd) -> bool {
        let Ok(stat) = rustix::fs::fstat(file) else {
            return false;
        };
        let new =
            self.files.len() < MAX_CHECKED_FILES && self.files.insert((stat.st_dev, stat.st_ino));
        new && self.peer.maps_only_privately(file)
    }

    /// Counts and reports a refused DMA_MAP. Repeated ones do not fill the log.
    fn report_refused_map(&mut self, body: &[u8], why: &str) {
        self.shared.stats.refused_maps.add(1);
        self.refused_maps += 1;
        if self.refused_maps.is_power_of_two() {
            let (address, size) = (u64_at(body, 16).unwrap_or(0), u64_at(body, 24).unwrap_or(0));
            self.shared.report(&format!(
                "DMA_MAP of {size:#x} bytes at {address:#x} was refused: {why}. The device can't \
                    reach that memory \
                 ({} so far; reported at 1, 2, 4, 8 and so on)",
                self.refused_maps
            ));
        }
    }

    fn dma_unmap(&mut self, body: &[u8]) -> Option<ReplyResult<'_>> {
        let (argsz, flags) = (u32_at(body, 0)?, u32_at(body, 4)?);
        let (address, size) = (u64_at(body, 8)?, u64_at(body, 16)?);
        let known = flags & !flag::UNMAP_ALL == 0;
        self.port.catch_up();
        let unmapped = match flags & flag::UNMAP_ALL != 0 {
            _ if !known => Err(libc::ENOTSUP), // a bitmap of dirty pages
            true if (address, size) == (0, 0) => {
                self.shared.memory.unmap_all();
                Ok(())
            }
            true => Err(libc::EINVAL),
            false => self.shared.memory.unmap(address, size),
        };
        let mut reply = words(&[argsz, flags]);
        reply.body.extend(address.to_le_bytes());
        reply.body.extend(size.to_le_bytes());
        Some(unmapped.map(|()| reply))
    }

    fn region_info(&self, body: &[u8]) -> Option<Reply<'_>> {
        let (room, index) = (u32_at(body, 0)?, u32_at(body, 8)?);
        if index >= region::COUNT {
            return None;
        }
        let size = self.region_size(index);
        let mut flags = match size {
            0 => 0,
            _ => flag::REGION_READ | flag::REGION_WRITE,
        };
        let mut argsz = REGION_INFO;
        let mut capability = Vec::new();
        let doorbells = self.doorbells.as_ref().filter(|_| index == region::BAR0);
        if doorbells.is_some() {
            flags |= flag::REGION_MMAP | flag::REGION_CAPS;
            capability.extend(SPARSE_MMAP.to_le_bytes());
            capability.extend(1u16.to_le_bytes()); // its version
            capability.extend(0u32.to_le_bytes()); // no further capability
            capability.extend(1u32.to_le_bytes()); // areas
            capability.extend(0u32.to_le_bytes());
            capability.extend(doorbells::OFFSET.to_le_bytes());
            capability.extend(doorbells::BYTES.to_le_bytes());
            argsz += capability.len() as u32;
        }
        let pm_file = self.function.pm_file.as_ref();
        let mapped = pm_file.filter(|_| index == region::BAR2);
        if mapped.is_some() {
            flags |= flag::REGION_MMAP;
        }
        let first = if capability.is_empty() {
            0
        } else {
            REGION_INFO
        };
        let mut reply = words(&[argsz, flags, index, first]);
        reply.body.extend(size.to_le_bytes());
        reply.body.extend(0u64.to_le_bytes()); // offset of the region in the file
        if let Some(doorbells) = doorbells.filter(|_| room >= argsz) {
            reply.body.extend(capability);
            reply.fd = Some(doorbells.file());
        }
        if let Some(file) = mapped {
            reply.fd = Some(file.as_fd());
        }
        Some(reply)
    }

    fn region_size(&self, index: u32) -> u64 {
        match index {
            region::BAR0 => BAR0_BYTES,
            region::BAR2 => self.function.pm_bytes,
            region::BAR4 => BAR4_BYTES,
            region::CONFIG => config::BYTES as u64,
            _ => 0,
        }
    }

    fn irq_info(&self, body: &[u8]) -> Option<Reply<'_>> {
        let index = u32_at(body, 8)?;
        let (flags, count) = match index {
            irq::MSIX => (flag::IRQ_EVENTFD, u32::from(self.function.vectors)),
            0..irq::COUNT => (0, 0),
            _ => return None,
        };
        Some(words(&[16, flags, index, count]))
    }

    fn set_irqs(&mut self, body: &[u8], fds: Vec<OwnedFd>) -> Option<Reply<'_>> {
        let (flags, index) = (u32_at(body, 4)?, u32_at(body, 8)?);
        let (start, count) = (u32_at(body, 12)? as usize, u32_at(body, 16)? as usize);
        let vectors = match index {
            irq::MSIX => usize::from(self.function.vectors),
            0..irq::COUNT => 0,
            _ => return None,
        };
        let data = flags & (flag::DATA_NONE | flag::DATA_BOOL | flag::DATA_EVENTFD);
        let action = flags & (flag::ACTION_MASK | flag::ACTION_UNMASK | flag::ACTION_TRIGGER);
        if flags != data | action || !data.is_power_of_two() || !action.is_power_of_two() {
            return None;
        }
        let everything = (data, action, count) == (flag::DATA_NONE, flag::ACTION_TRIGGER, 0);
        if everything {
            if vectors > 0 {
                self.shared.vectors.clear();
                self.update_interrupts();
            }
            return Some(Reply::default());
        }
        let end = start.checked_add(count)?;
        if count == 0 || end > vectors {
            return None;
        }
        let chosen = |n: usize| match data {
            flag::DATA_BOOL => body.get(20 + n).is_some_and(|&b| b != 0),
            _ => true,
        };
        match (data, action) {
            (flag::DATA_EVENTFD, flag::ACTION_TRIGGER) if fds.is_empty() => {
                for vector in start..end {
                    self.shared.vectors.attach(vector, None);
                }
            }
            (flag::DATA_EVENTFD, flag::ACTION_TRIGGER) if fds.len() == count => {
                let mut all = true;
                for (vector, fd) in (start..end).zip(fds) {
                    all &= self.shared.vectors.attach(vector, Some(fd));
                }
                if !all {
                    self.update_interrupts();
                    return None;
                }
            }
            (flag::DATA_EVENTFD, _) => return None,
            (_, flag::ACTION_TRIGGER) => {
                for n in (0..count).filter(|&n| chosen(n)) {
                    self.shared.vectors.signal(start + n);
                }
            }
            _ => {
                let masked = action == flag::ACTION_MASK;
                for n in (0..count).filter(|&n| chosen(n)) {
                    self.shared.vectors.mask(start + n, Mask::Action, masked);
                }
            }
        }
        self.update_interrupts();
        Some(Reply::default())
    }

    /// Passes the client's interrupt set-up to the device. Attaching eventfds enables MSI-X, as
    /// with VFIO in the kernel: not every client also enables it in configuration space.
    fn update_interrupts(&mut self) {
        let open = self.shared.vectors.open();
        let enable = self.control.msix_enable || open.contains(&true);
        let mask = self.control.msix_enable && self.control.msix_mask;
        self.port.set_interrupts(enable, mask, open);
    }

    fn reset(&mut self) {
        self.shared.stats.resets.add(1);
        self.port.catch_up();
        self.shared.memory.set_bus_master(false);
        self.config.reset();
        self.table = fresh_table(self.function.vectors);
        // The device is reset before the client gets its answer.
        self.port.reset();
        self.take_master_abort();
        self.apply_config();
    }

    /// True if a read of the device was not answered since the last call.
    fn take_master_abort(&self) -> bool {
        self.shared.master_abort.swap(false, Ordering::Relaxed)
    }

    /// Records such a read in configuration space.
    fn update_master_abort(&mut self) {
        if self.take_master_abort() {
            self.config.receive_master_abort();
        }
    }

    /// Applies changes of configuration space.
    fn apply_config(&mut self) {
        let before = std::mem::replace(&mut self.control, self.config.control());
        if self.control.bus_master != before.bus_master {
            self.port.catch_up();
            self.shared.memory.set_bus_master(self.control.bus_master);
        }
        if (self.control.msix_enable, self.control.msix_mask)
            != (before.msix_enable, before.msix_mask)
        {
            self.update_interrupts();
        }
    }

    /// The fields of a region access: region, offset, bytes. `None`: it is not within the region.
    fn parse_access(&self, body: &[u8]) -> Option<(u32, u64, usize)> {
        let (offset, index) = (u64_at(body, 0)?, u32_at(body, 8)?);
        let count = u32_at(body, 12)?;
        let end = offset.checked_add(u64::from(count))?;
        let fits = end <= self.region_size(index) && count as usize <= MAX_TRANSFER;
        fits.then_some((index, offset, count as usize))
    }

    fn region_read(&mut self, body: &[u8]) -> Option<Reply<'_>> {
        let (index, offset, count) = self.parse_access(body)?;
        let mut reply = body[..16].to_vec();
        let mut data = vec![0; count];
        if index == region::CONFIG {
            self.update_master_abort();
            self.config.read(offset, &mut data);
        } else {
            let bar = bar(index)?;
            for (at, len) in split_access(bar, offset, count) {
                let from = (at - offset) as usize;
                let out = &mut data[from..from + len];
                match self.table_range(bar, at, len) {
                    Some(range) => out.copy_from_slice(&self.table[range]),
                    None => self.port.read(bar, at, out),
                }
            }
        }
        reply.extend(data);
        Some(Reply::of(reply))
    }

    fn region_write(&mut self, body: &[u8]) -> Option<Reply<'_>> {
        let (index, offset, count) = self.parse_access(body)?;
        let data = body.get(16..)?;
        if data.len() != count {
            return None;
        }
        if index == region::CONFIG {
            self.update_master_abort();
            let flr = self.config.write(offset, data)?;
            if flr {
                self.reset();
            } else {
                self.apply_config();
            }
        } else {
            let bar = bar(index)?;
            for (at, len) in split_access(bar, offset, count) {
                let from = (at - offset) as usize;
                let data = &data[from..from + len];
                match self.table_range(bar, at, len) {
                    Some(range) => self.write_table(range.start, data),
                    None => self.port.write(bar, at, data),
                }
            }
        }
        Some(Reply::of(body[..16].to_vec()))
    }

    /// The part of the MSI-X table that an access covers. Accesses are split at its ends.
    fn table_range(&self, bar: Bar, at: u64, len: usize) -> Option<std::ops::Range<usize>> {
        if bar != Bar::Nvme {
            return None;
        }
        let start = usize::try_from(at.checked_sub(MSIX_TABLE)?).ok()?;
        (start + len <= self.table.len()).then_some(start..start + len)
    }

    fn write_table(&mut self, start: usize, data: &[u8]) {
        self.table[start..start + data.len()].copy_from_slice(data);
        for entry in start / 16..(start + data.len()).div_ceil(16) {
            // Mask bits count only once the client has written them. Most clients never do, and a
            // fresh table has all vectors masked.
            let control = entry * 16 + 12;
            if (start..start + data.len()).contains(&control) {
                let masked = self.table[control] & 1 != 0;
                self.shared.vectors.mask(entry, Mask::Table, masked);
            }
        }
        self.update_interrupts();
    }
}

impl Drop for Connection {
    /// After this the device does not access the client's memory.
    fn drop(&mut self) {
        self.shared.memory.clear();
        self.shared.vectors.clear();
        self.port.disconnect();
    }
}

fn fresh_table(vectors: u16) -> Vec<u8> {
    let entry = |at: usize| u8::from(at % 16 == 12); // masked
    (0..16 * usize::from(vectors)).map(entry).collect()
}

fn bar(index: u32) -> Option<Bar> {
    match index {
        region::BAR0 => Some(Bar::Nvme),
        region::BAR2 => Some(Bar::Pm),
        region::BAR4 => Some(Bar::Control),
        _ => None,
    }
}

/// Splits an access at page boundaries and, in BAR0, at entries of the MSI-X table.
fn split_access(bar: Bar, offset: u64, count: usize) -> impl Iterator<Item = (u64, usize)> {
    let end = offset + count as u64;
    let mut at = offset;
    std::iter::from_fn(move || {
        let table = bar == Bar::Nvme && at / 4096 == MSIX_TABLE / 4096;
        let unit = if table { 16 } else { 4096 };
        let next = (at / unit + 1) * unit;
        let piece = (at, (next.min(end) - at) as usize);
        at = next.min(end);
        (piece.1 > 0).then_some(piece)
    })
}

fn words(words: &[u32]) -> Reply<'static> {
    Reply::of(words.iter().flat_map(|w| w.to_le_bytes()).collect())
}
