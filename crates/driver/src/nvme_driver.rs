// SPDX-License-Identifier: Apache-2.0

//! The driver of an NVMe controller: start, queues, commands, shutdown.

use sim::{Bar, Time};
use spec::nvme::identify::{self, DatasetLimits, Namespace};
use spec::nvme::properties::{self, Cap, Cc, Csts, ShutdownNotification};
use spec::nvme::{cns, io, Priority, Sqe, Weights, IDENTIFY_BYTES, PAGE_BYTES};
use spec::regs::nvme::msix_table::vector as vector_of;

use crate::prp::{self, Buffer};
use crate::queue::QueuePair;
use crate::sgl;
use crate::{Completion, Error, Host, Result};

/// Largest logical block that this driver handles.
const MAX_BLOCK_BYTES: u32 = 64 << 10;
/// Most entries of a queue that this driver creates.
const MAX_ENTRIES: u32 = 4096;

/// The configuration of a controller's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverConfig {
    /// Entries of the admin queues.
    pub admin_entries: u32,
    /// I/O queue pairs requested; the controller may grant fewer.
    pub io_queues: u16,
    /// Entries of each I/O queue; at most CAP.MQES.
    pub io_entries: u32,
    /// Timeout of one command, in simulated time.
    pub command_timeout: Time,
    /// Weighted round robin with urgent priority class, with these weights; else round robin.
    pub weights: Option<Weights>,
}

impl Default for DriverConfig {
    fn default() -> DriverConfig {
        DriverConfig {
            admin_entries: 32,
            io_queues: 16,
            io_entries: 1024,
            command_timeout: Time::ms(100),
            weights: None,
        }
    }
}

/// A data command of an I/O queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoCommand {
    /// Read `blocks` from `lba` on.
    Read {
        /// First logical block.
        lba: u64,
        /// The number of blocks, 1 to 65536.
        blocks: u32,
    },
    /// Write `blocks` from `lba` on.
    Write {
        /// First logical block.
        lba: u64,
        /// The number of blocks, 1 to 65536.
        blocks: u32,
    },
    /// Compare `blocks` from `lba` on with the buffer.
    Compare {
        /// First logical block.
        lba: u64,
        /// The number of blocks, 1 to 65536.
        blocks: u32,
    },
    /// Flush.
    Flush,
}

/// A started controller with its I/O queues.
#[derive(Debug)]
pub struct NvmeDriver<H: Host> {
    host: H,
    config: DriverConfig,
    cap: Cap,
    version: identify::Version,
    /// `None` while the controller is stopped.
    admin: Option<QueuePair>,
    io: Vec<QueuePair>,
    identity: identify::Controller,
    dataset_limits: DatasetLimits,
    nsid: u32,
    namespace: Namespace,
    namespaces: Vec<(u32, Namespace)>,
    pages: Vec<u64>,
    /// Memory that commands in flight may still use: address, bytes.
    deferred_frees: Vec<(u64, u64)>,
    list_offset: u64,
    sgl: bool,
}

/// A page of a PRP list or an SGL segment: its address and content.
type Table = (u64, Vec<u8>);

impl<H: Host> NvmeDriver<H> {
    /// Resets and starts the controller, identifies it, and creates the I/O queues.
    pub fn start(host: H, config: DriverConfig) -> Result<NvmeDriver<H>> {
        if !(2..=4096).contains(&config.admin_entries)
            || config.io_entries < 2
            || config.io_queues == 0
        {
            return Err(Error::Invalid(
                "a queue needs 2 entries, and there must be an I/O queue".into(),
            ));
        }
        let mut this = NvmeDriver {
            host,
            config,
            cap: Cap(0),
            version: identify::Version(0),
            admin: None,
            io: Vec::new(),
            identity: identify::Controller::parse(&[0; IDENTIFY_BYTES]),
            dataset_limits: DatasetLimits::NONE,
            nsid: 1,
            namespace: Namespace {
                size: 0,
                capacity: 0,
                utilization: 0,
                block_bytes: 512,
                metadata_bytes: 0,
                atomic_write_unit: None,
                atomic_write_unit_power_fail: None,
                nguid: [0; 16],
            },
            namespaces: Vec::new(),
            pages: Vec::new(),
            deferred_frees: Vec::new(),
            list_offset: 0,
            sgl: false,
        };
        this.bring_up()?;
        Ok(this)
    }

    /// Brings the controller from any state to one with I/O queues.
    fn bring_up(&mut self) -> Result<()> {
        let (host, config) = (&mut self.host, self.config);
        host.run_on(0);
        let cap = Cap(host.read64(Bar::Nvme, properties::CAP)?);
        if cap.0 == u64::MAX {
            return Err(Error::Gone);
        }
        if !cap.nvm_command_set() {
            return Err(Error::Unsupported(
                "CAP.CSS lacks the NVM command set".into(),
            ));
        }
        if cap.min_page() > PAGE_BYTES {
            return Err(Error::Unsupported("CAP.MPSMIN excludes 4 KiB pages".into()));
        }
        self.cap = cap;
        self.version = identify::Version(host.read32(Bar::Nvme, properties::VS)?);
        disable(host, cap)?;

        let admin = QueuePair::new(host, 0, 0, config.admin_entries, cap.doorbell_stride())?;
        let (sq, cq) = (admin.sq, admin.cq);
        self.admin = Some(admin);
        let aqa = properties::aqa(config.admin_entries, config.admin_entries);
        host.write32(Bar::Nvme, properties::AQA, aqa)?;
        host.write64(Bar::Nvme, properties::ASQ, sq)?;
        host.write64(Bar::Nvme, properties::ACQ, cq)?;
        if config.weights.is_some() && !cap.weighted_round_robin() {
            return Err(Error::Unsupported(
                "CAP.AMS lacks weighted round robin".into(),
            ));
        }
        let cc = Cc::DEFAULT.with_weighted_round_robin(config.weights.is_some());
        host.write32(Bar::Nvme, properties::CC, cc.with_enable(true).0)?;
        wait_status(host, cap, "CSTS.RDY = 1 after enabling", |csts| {
            csts.ready()
        })?;

        self.identity = identify::Controller::parse(self.identify(cns::CONTROLLER, 0)?.as_ref());
        // Optional before version 2.0.
        if let Ok(data) = self.identify(cns::COMMAND_SET, 0) {
            self.dataset_limits = DatasetLimits::parse(data.as_ref());
        }
        let list = identify::active_namespaces(self.identify(cns::ACTIVE_NAMESPACES, 0)?.as_ref());
        self.namespaces.clear();
        for &nsid in &list {
            let namespace = Namespace::parse(self.identify(cns::NAMESPACE, nsid)?.as_ref())
                .map_err(|e| Error::Misbehaviour(e.to_string()))?;
            self.namespaces.push((nsid, namespace));
        }
        let first = *list
            .first()
            .ok_or_else(|| Error::Unsupported("no active namespace".into()))?;
        self.select_namespace(first)?;
        if let Some(weights) = config.weights {
            self.admin(Sqe::arbitration(weights), "Set Features (Arbitration)")?;
        }
        self.create_io_queues()
    }

    fn create_io_queues(&mut self) -> Result<()> {
        let wanted = self.config.io_queues;
        let granted = self
            .admin(
                Sqe::number_of_queues(wanted),
                "Set Features (Number of Queues)",
            )?
            .result;
        let granted = ((granted & 0xFFFF).min(granted >> 16) + 1).min(u32::from(wanted)) as u16;
        let entries = self
            .config
            .io_entries
            .min(self.cap.max_queue_entries())
            .min(MAX_ENTRIES);
        let vectors = self.host.vectors();
        for n in 0..granted {
            let qid = n + 1;
            let vector = (vectors > 0).then(|| qid % vectors);
            if let Some(vector) = vector {
                self.program_vector(vector)?;
            }
            let stride = self.cap.doorbell_stride();
            let mut queue = QueuePair::new(&mut self.host, qid, usize::from(n), entries, stride)?;
            queue.vector = vector;
            let (sq, cq) = (queue.sq, queue.cq);
            self.io.push(queue);
            let create_cq = Sqe::create_io_cq(qid, entries, cq, vector);
            self.admin(create_cq, "Create I/O Completion Queue")?;
            self.admin(
                Sqe::create_io_sq(qid, entries, sq, qid).with_priority(Priority::Medium),
                "Create I/O Submission Queue",
            )?;
        }
        Ok(())
    }

    /// Fills an entry of the MSI-X table and unmasks it.
    fn program_vector(&mut self, vector: u16) -> Result<()> {
        let (addr, data) = self.host.message(vector);
        let entry = properties::MSIX_TABLE + properties::MSIX_ENTRY * u64::from(vector);
        self.host
            .write64(Bar::Nvme, entry + vector_of::ADDRESS_LOW, addr)?;
        self.host
            .write32(Bar::Nvme, entry + vector_of::DATA, data)?;
        self.host.write32(Bar::Nvme, entry + vector_of::CONTROL, 0)
    }

    /// The host.
    pub fn host(&self) -> &H {
        &self.host
    }

    /// The host, mutable.
    pub fn host_mut(&mut self) -> &mut H {
        &mut self.host
    }

    /// Returns the host without notifying the controller.
    pub fn into_host(self) -> H {
        self.host
    }

    /// CAP.
    pub fn capabilities(&self) -> Cap {
        self.cap
    }

    /// VS.
    pub fn version(&self) -> identify::Version {
        self.version
    }

    /// The limits of a Dataset Management command.
    pub fn dataset_limits(&self) -> DatasetLimits {
        self.dataset_limits
    }

    /// The data of Identify Controller.
    pub fn identity(&self) -> &identify::Controller {
        &self.identity
    }

    /// The active namespaces (up to 1024) with their identifiers, in ascending order.
    pub fn namespaces(&self) -> &[(u32, Namespace)] {
        &self.namespaces
    }

    /// Selects another active namespace for later commands; initially the first one is selected.
    pub fn select_namespace(&mut self, nsid: u32) -> Result<()> {
        let found = self.namespaces.iter().find(|(id, _)| *id == nsid);
        let Some((_, ns)) = found else {
            let known: Vec<String> = self.namespaces.iter().map(|n| n.0.to_string()).collect();
            return Err(Error::Invalid(format!(
                "nsid = {nsid}: the active namespaces are {}",
                known.join(", ")
            )));
        };
        if ns.block_bytes > MAX_BLOCK_BYTES || ns.metadata_bytes > 0 {
            let text = format!("blocks of {} + {} bytes", ns.block_bytes, ns.metadata_bytes);
            return Err(Error::Unsupported(text));
        }
        (self.nsid, self.namespace) = (nsid, ns.clone());
        Ok(())
    }

    /// The selected namespace.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The identifier of the selected namespace.
    pub fn nsid(&self) -> u32 {
        self.nsid
    }

    /// The number of I/O queues created.
    pub fn io_queues(&self) -> usize {
        self.io.len()
    }

    /// Entries of each I/O queue.
    pub fn io_entries(&self) -> u32 {
        self.io.first().map_or(0, |q| q.entries)
    }

    /// Most blocks that one command may move.
    pub fn max_blocks(&self) -> u32 {
        let blocks =
            self.identity.max_transfer.unwrap_or(u64::MAX) / u64::from(self.namespace.block_bytes);
        blocks.clamp(1, 65536) as u32
    }

    /// Sets the offset of later commands' PRP lists in their page (a multiple of 8). The default is
    /// 0; tests use others.
    pub fn set_list_offset(&mut self, offset: u64) {
        self.list_offset = offset;
    }

    /// Makes later data commands of the I/O queues use SGLs, or again PRPs.
    pub fn set_sgl(&mut self, on: bool) -> Result<()> {
        if on && self.identity.sgls & 3 == 0 {
            return Err(Error::Unsupported("SGLS lacks SGLs".into()));
        }
        self.sgl = on;
        Ok(())
    }

    /// Runs an admin command to its end.
    pub fn admin(&mut self, sqe: Sqe, name: &'static str) -> Result<Completion> {
        self.admin_within(sqe, name, self.config.command_timeout)
    }

    /// Runs an admin command with a longer timeout.
    pub(crate) fn admin_within(
        &mut self,
        sqe: Sqe,
        name: &'static str,
        timeout: Time,
    ) -> Result<Completion> {
        let stopped = || Error::Invalid("the controller is stopped: reset it".into());
        let (host, admin) = (&mut self.host, self.admin.as_mut().ok_or_else(stopped)?);
        if admin.outstanding() > 0 {
            // Its completion would be mistaken for that of the new command.
            return Err(Error::Invalid(
                "an admin command that has timed out is still in flight: reset the controller"
                    .into(),
            ));
        }
        host.run_on(admin.cpu);
        let submitted = host.now();
        host.spend(crate::CpuWork::Submit);
        admin.push(host, sqe, name, 0, submitted, Vec::new())?;
        admin.ring(host)?;
        let limit = submitted + timeout;
        loop {
            let (host, admin) = (&mut self.host, self.admin.as_mut().ok_or_else(stopped)?);
            host.run_on(admin.cpu);
            if let Some(cqe) = admin.peek(host) {
                host.spend(crate::CpuWork::Complete);
                let (completion, _) = admin.accept(cqe, host.now())?;
                admin.ring(host)?;
                completion.check()?;
                return Ok(completion);
            }
            self.wait_or_time_out(limit, name, timeout)?;
        }
    }

    /// Waits for an event; past `limit` it determines the error.
    fn wait_or_time_out(&mut self, limit: Time, what: &str, after: Time) -> Result<()> {
        if self.host.now() < limit {
            return self.host.wait(limit);
        }
        let csts = Csts(self.host.read32(Bar::Nvme, properties::CSTS)?);
        if csts.device_removed() {
            return Err(Error::Gone);
        }
        if csts.fatal() {
            return Err(Error::Fatal);
        }
        Err(Error::Timeout {
            what: format!("the completion of {what}"),
            after,
        })
    }

    /// Identify: the 4096 bytes of a CNS value.
    pub fn identify(&mut self, cns: u8, nsid: u32) -> Result<Box<[u8; IDENTIFY_BYTES]>> {
        let page = self.alloc_page()?;
        let outcome = self.admin(Sqe::identify(cns, nsid).with_prps(page, 0), "Identify");
        let mut data = Box::new([0; IDENTIFY_BYTES]);
        self.host.dma_read(page, &mut data[..]);
        if self.admin.as_ref().is_some_and(|a| a.outstanding() > 0) {
            self.deferred_frees.push((page, PAGE_BYTES));
        } else {
            self.pages.push(page);
        }
        outcome.map(|_| data)
    }

    /// A page of memory that the device can reach, from the pool.
    fn alloc_page(&mut self) -> Result<u64> {
        match self.pages.pop() {
            Some(page) => Ok(page),
            None => self.host.alloc(PAGE_BYTES, PAGE_BYTES),
        }
    }

    /// Frees memory of commands that have ended. If some have not, as after a timeout, the device
    /// may still write there, so the memory is freed at the next reset.
    pub fn free_buffer(&mut self, addr: u64, bytes: u64) {
        if self
            .io
            .iter()
            .chain(&self.admin)
            .any(|q| q.outstanding() > 0)
        {
            self.deferred_frees.push((addr, bytes));
        } else {
            self.host.free(addr, bytes);
        }
    }

    /// Refuses a queue with abandoned commands.
    pub(crate) fn check_idle(&self, n: usize) -> Result<()> {
        if self.outstanding(n) > 0 {
            return Err(Error::Invalid(format!(
                "I/O queue {n} has other commands in flight (of a call that has failed? a reset \
                    ends them)"
            )));
        }
        Ok(())
    }

    fn queue(&self, n: usize) -> Result<&QueuePair> {
        let have = self.io.len();
        self.io
            .get(n)
            .ok_or_else(|| Error::Invalid(format!("I/O queue {n} of {have} does not exist")))
    }

    /// Whether queue `n` (from 0) accepts another command.
    pub fn has_room(&self, n: usize) -> bool {
        self.io.get(n).is_some_and(QueuePair::has_room)
    }

    /// Commands in flight on queue `n`.
    pub fn outstanding(&self, n: usize) -> usize {
        self.io.get(n).map_or(0, QueuePair::outstanding)
    }

    /// Whether the CPU of queue `n` is still working.
    pub fn busy(&mut self, n: usize) -> Result<bool> {
        let cpu = self.queue(n)?.cpu;
        self.host.run_on(cpu);
        Ok(self.host.busy())
    }

    /// Whether the controller has to be notified of changes of queue `n`.
    pub fn unrung(&self, n: usize) -> bool {
        self.io.get(n).is_some_and(QueuePair::unrung)
    }

    /// Places a command in queue `n`; `ring` notifies the controller. `tag` is returned with the
    /// completion.
    ///
    /// The arguments are passed to the controller unchecked: a rejected one results in a status.
    pub fn submit(&mut self, n: usize, io: IoCommand, buffer: &Buffer, tag: u64) -> Result<()> {
        let cpu = self.queue(n)?.cpu;
        if !self.has_room(n) {
            return Err(Error::Invalid(format!("I/O queue {n} is full")));
        }
        self.host.run_on(cpu);
        let submitted = self.host.now();
        let (sqe, name, blocks) = match io {
            IoCommand::Read { lba, blocks } => {
                (Sqe::transfer(false, self.nsid, lba, blocks), "Read", blocks)
            }
            IoCommand::Write { lba, blocks } => {
                (Sqe::transfer(true, self.nsid, lba, blocks), "Write", blocks)
            }
            IoCommand::Compare { lba, blocks } => {
                let sqe = Sqe::of_blocks(io::COMPARE, self.nsid, lba, blocks);
                (sqe, "Compare", blocks)
            }
            IoCommand::Flush => (Sqe::flush(self.nsid), "Flush", 0),
        };
        if blocks == 0 && io != IoCommand::Flush || blocks > 65536 {
            return Err(Error::Invalid(format!(
                "blocks = {blocks}: allowed are 1 to 65536"
            )));
        }
        let (sqe, lists) = if blocks == 0 {
            (sqe, Vec::new())
        } else {
            let bytes = u64::from(blocks) * u64::from(self.namespace.block_bytes);
            self.describe(sqe, buffer, bytes)?
        };
        self.host.spend(crate::CpuWork::Submit);
        self.io[n].push(&mut self.host, sqe, name, tag, submitted, lists)
    }

    /// Adds PRPs or an SGL to a command; also returns the pages of their lists.
    pub(crate) fn describe(
        &mut self,
        sqe: Sqe,
        buffer: &Buffer,
        bytes: u64,
    ) -> Result<(Sqe, Vec<u64>)> {
        let (host, pages, list_offset) = (&mut self.host, &mut self.pages, self.list_offset);
        let mut lists = Vec::new();
        let page = || {
            let page = match pages.pop() {
                Some(page) => page,
                None => host.alloc(PAGE_BYTES, PAGE_BYTES)?,
            };
            lists.push(page);
            Ok(page)
        };
        let built: Result<(Sqe, Vec<Table>)> = if self.sgl {
            sgl::build(buffer, bytes, page).map(|sgl| {
                let bytes =
                    |list: &[sgl::Descriptor]| list.iter().flat_map(|d| d.to_bytes()).collect();
                let tables = sgl.segments.iter().map(|(at, list)| (*at, bytes(list)));
                (sqe.with_sgl(sgl.first.to_bytes()), tables.collect())
            })
        } else {
            prp::build(buffer, bytes, list_offset, page).map(|prps| {
                let bytes = |list: &[u64]| list.iter().flat_map(|e| e.to_le_bytes()).collect();
                let tables = prps.lists.iter().map(|(at, list)| (*at, bytes(list)));
                (sqe.with_prps(prps.prp1, prps.prp2), tables.collect())
            })
        };
        match built {
            Ok((sqe, tables)) => {
                for (at, bytes) in &tables {
                    self.host.dma_write(*at, bytes);
                }
                Ok((sqe, lists))
            }
            Err(error) => {
                self.pages.append(&mut lists);
                Err(error)
            }
        }
    }

    /// Places two consecutive commands in queue `n`, which must be empty, and runs them to their
    /// end with one doorbell.
    pub(crate) fn execute_pair(
        &mut self,
        n: usize,
        pair: [(Sqe, &'static str, Vec<u64>); 2],
    ) -> Result<[Completion; 2]> {
        let cpu = self.queue(n)?.cpu;
        if self.outstanding(n) != 0 || self.io[n].entries < 3 {
            return Err(Error::Invalid(format!(
                "I/O queue {n} has no room for two commands"
            )));
        }
        self.host.run_on(cpu);
        for (tag, (sqe, name, lists)) in pair.into_iter().enumerate() {
            let submitted = self.host.now();
            self.host.spend(crate::CpuWork::Submit);
            self.io[n].push(&mut self.host, sqe, name, tag as u64, submitted, lists)?;
        }
        self.ring(n)?;
        let limit = self.host.now() + self.config.command_timeout;
        let mut done = [None, None];
        loop {
            if let Some(completion) = self.poll(n)? {
                self.ring(n)?;
                let tag = completion.tag as usize;
                done[tag & 1] = Some(completion);
            } else {
                self.wait(limit, "a fused operation")?;
            }
            if let [Some(first), Some(second)] = &done {
                return Ok([first.clone(), second.clone()]);
            }
        }
    }

    /// Places any command unchanged in queue `n`.
    pub fn submit_raw(&mut self, n: usize, sqe: Sqe, tag: u64) -> Result<()> {
        let cpu = self.queue(n)?.cpu;
        self.host.run_on(cpu);
        let submitted = self.host.now();
        self.host.spend(crate::CpuWork::Submit);
        self.io[n].push(&mut self.host, sqe, "command", tag, submitted, Vec::new())
    }

    /// Writes the doorbells of queue `n` that have to change.
    pub fn ring(&mut self, n: usize) -> Result<()> {
        let cpu = self.queue(n)?.cpu;
        self.host.run_on(cpu);
        self.io[n].ring(&mut self.host)
    }

    /// Writes one of the doorbells of queue `n` that have to change.
    pub fn ring_next(&mut self, n: usize) -> Result<()> {
        let cpu = self.queue(n)?.cpu;
        self.host.run_on(cpu);
        self.io[n].ring_next(&mut self.host)
    }

    /// The next completion of queue `n`, if its CPU is free and there is one. `ring` writes the
    /// doorbell.
    pub fn poll(&mut self, n: usize) -> Result<Option<Completion>> {
        let cpu = self.queue(n)?.cpu;
        self.host.run_on(cpu);
        if self.host.busy() {
            return Ok(None);
        }
        if let Some(vector) = self.io[n].vector {
            self.io[n].awake |= self.host.take_interrupt(vector);
            if !self.io[n].awake {
                return Ok(None);
            }
        }
        let Some(cqe) = self.io[n].peek(&mut self.host) else {
            self.io[n].awake = false;
            return Ok(None);
        };
        self.host.spend(crate::CpuWork::Complete);
        let (completion, mut lists) = self.io[n].accept(cqe, self.host.now())?;
        self.pages.append(&mut lists);
        Ok(Some(completion))
    }

    /// Lets time pass until a CPU is free or something arrives, at most until `limit`; past `limit`
    /// it is an error.
    pub fn wait(&mut self, limit: Time, what: &str) -> Result<()> {
        self.wait_or_time_out(limit, what, self.config.command_timeout)
    }

    /// The present time.
    pub fn now(&self) -> Time {
        self.host.now()
    }

    /// The timeout of one command.
    pub fn command_timeout(&self) -> Time {
        self.config.command_timeout
    }

    /// Runs one command on queue `n` to its end.
    pub fn execute(&mut self, n: usize, io: IoCommand, buffer: &Buffer) -> Result<Completion> {
        self.check_idle(n)?;
        self.submit(n, io, buffer, 0)?;
        self.run_to_end(n)
    }

    /// Runs one command unchanged on queue `n` to its end.
    pub fn execute_raw(&mut self, n: usize, sqe: Sqe) -> Result<Completion> {
        self.check_idle(n)?;
        self.submit_raw(n, sqe, 0)?;
        self.run_to_end(n)
    }

    /// As [`NvmeDriver::execute_raw`] while `keep_going` returns true, which is called every
    /// `interval`. Otherwise the command is aborted and its end awaited, so that the queue is free
    /// again.
    pub fn execute_raw_while(
        &mut self,
        n: usize,
        sqe: Sqe,
        interval: Time,
        keep_going: &mut dyn FnMut(&mut H) -> bool,
    ) -> Result<Completion> {
        self.check_idle(n)?;
        self.submit_raw(n, sqe, 0)?;
        self.ring(n)?;
        let mut limit = self.host.now() + self.config.command_timeout;
        let mut stopped = false;
        loop {
            if let Some(completion) = self.poll(n)? {
                self.ring(n)?;
                return match stopped {
                    true => Err(Error::Interrupted),
                    false => Ok(completion),
                };
            }
            if !stopped && !keep_going(&mut self.host) {
                stopped = true;
                self.abort_all(n)?;
                limit = self.host.now() + self.config.command_timeout;
            }
            let until = limit.min(self.host.now() + interval);
            match self.host.now() < limit {
                true => self.host.wait(until)?,
                false => self.wait(limit, "an I/O command")?,
            }
        }
    }

    /// Aborts each command in flight on queue `n`. Whether or not an Abort succeeds, its command
    /// ends.
    fn abort_all(&mut self, n: usize) -> Result<()> {
        let (qid, cids) = (self.io[n].qid, self.io[n].in_flight());
        for cid in cids {
            let id = u32::from(cid) << 16 | u32::from(qid);
            let abort = Sqe::new(spec::nvme::admin::ABORT).with_cdw(10, id);
            self.admin(abort, "Abort")?.check()?;
        }
        Ok(())
    }

    fn run_to_end(&mut self, n: usize) -> Result<Completion> {
        self.ring(n)?;
        let limit = self.host.now() + self.config.command_timeout;
        loop {
            if let Some(completion) = self.poll(n)? {
                self.ring(n)?;
                return Ok(completion);
            }
            self.wait(limit, "an I/O command")?;
        }
    }

    /// Writes `data`, whole blocks from `lba`, one command after the other on the first queue.
    pub fn write(&mut self, lba: u64, data: &[u8]) -> Result<()> {
        self.transfer(lba, data.len(), |this, at, part, buffer| {
            this.host.dma_write(buffer, &data[at..at + part]);
            let blocks = (part / this.namespace.block_bytes as usize) as u32;
            let lba = lba + at as u64 / u64::from(this.namespace.block_bytes);
            this.execute(
                0,
                IoCommand::Write { lba, blocks },
                &Buffer::Contiguous(buffer),
            )?
            .check()
        })
    }

    /// Reads whole blocks from `lba` into `data`, one command after the other on the first queue.
    pub fn read(&mut self, lba: u64, data: &mut [u8]) -> Result<()> {
        self.transfer(lba, data.len(), |this, at, part, buffer| {
            let blocks = (part / this.namespace.block_bytes as usize) as u32;
            let lba = lba + at as u64 / u64::from(this.namespace.block_bytes);
            this.execute(
                0,
                IoCommand::Read { lba, blocks },
                &Buffer::Contiguous(buffer),
            )?
            .check()?;
            this.host.dma_read(buffer, &mut data[at..at + part]);
            Ok(())
        })
    }

    /// Calls `part` with a buffer for each part of `bytes` that one command may move: (offset,
    /// bytes, buffer).
    pub(crate) fn transfer(
        &mut self,
        lba: u64,
        bytes: usize,
        mut part: impl FnMut(&mut Self, usize, usize, u64) -> Result<()>,
    ) -> Result<()> {
        let block = self.namespace.block_bytes as usize;
        if bytes % block != 0 {
            return Err(Error::Invalid(format!(
                "{bytes} bytes are not whole blocks of {block}"
            )));
        }
        if lba.checked_add((bytes / block) as u64).is_none() {
            return Err(Error::Invalid(format!(
                "LBA {lba} + {} overflows",
                bytes / block
            )));
        }
        let most = (self.max_blocks() as usize * block).min(1 << 20);
        let room = most.min(bytes.max(block)) as u64;
        let buffer = self.host.alloc(room, PAGE_BYTES)?;
        let mut outcome = Ok(());
        let mut at = 0;
        while at < bytes && outcome.is_ok() {
            let here = most.min(bytes - at);
            outcome = part(self, at, here, buffer);
            at += here;
        }
        self.free_buffer(buffer, room);
        outcome
    }

    /// Flush.
    pub fn flush(&mut self) -> Result<()> {
        self.execute(0, IoCommand::Flush, &Buffer::Contiguous(0))?
            .check()
    }

    /// Deletes I/O queue pair `n` (from 0): later commands must not use it; the others keep their
    /// numbers.
    pub fn delete_io_queue(&mut self, n: usize) -> Result<()> {
        let qid = self.queue(n)?.qid;
        self.admin(Sqe::delete_io_sq(qid), "Delete I/O Submission Queue")?;
        self.admin(Sqe::delete_io_cq(qid), "Delete I/O Completion Queue")?;
        Ok(())
    }

    /// Recreates the deleted queue pair `n`, with medium priority.
    pub fn create_io_queue(&mut self, n: usize) -> Result<()> {
        self.create_io_queue_of(n, Priority::Medium)
    }

    /// Changes the priority of queue pair `n`: deletes and recreates it. Effective only with
    /// `DriverConfig::weights`.
    pub fn set_priority(&mut self, n: usize, priority: Priority) -> Result<()> {
        self.delete_io_queue(n)?;
        self.create_io_queue_of(n, priority)
    }

    /// Recreates the deleted queue pair `n`.
    pub fn create_io_queue_of(&mut self, n: usize, priority: Priority) -> Result<()> {
        let queue = self.queue(n)?;
        let (qid, entries, cpu, vector) = (queue.qid, queue.entries, queue.cpu, queue.vector);
        let mut fresh = QueuePair::new(
            &mut self.host,
            qid,
            cpu,
            entries,
            self.cap.doorbell_stride(),
        )?;
        fresh.vector = vector;
        let (sq, cq) = (fresh.sq, fresh.cq);
        let mut old = std::mem::replace(&mut self.io[n], fresh);
        self.pages.append(&mut old.abandon());
        old.release(&mut self.host);
        self.admin(
            Sqe::create_io_cq(qid, entries, cq, vector),
            "Create I/O Completion Queue",
        )?;
        self.admin(
            Sqe::create_io_sq(qid, entries, sq, qid).with_priority(priority),
            "Create I/O Submission Queue",
        )?;
        Ok(())
    }

    /// Normal shutdown: deletes the queues, notifies the controller, waits for SHST, and returns
    /// the host.
    pub fn shutdown(mut self) -> Result<H> {
        for n in 0..self.io.len() {
            self.delete_io_queue(n)?;
        }
        let cc = Cc::DEFAULT
            .with_weighted_round_robin(self.config.weights.is_some())
            .with_enable(true)
            .with_shutdown(ShutdownNotification::Normal);
        self.host.write32(Bar::Nvme, properties::CC, cc.0)?;
        wait_status(
            &mut self.host,
            self.cap,
            "CSTS.SHST = 10b after the shutdown",
            |csts| csts.shutdown_complete(),
        )?;
        disable(&mut self.host, self.cap)?;
        self.free_queues();
        Ok(self.host)
    }

    /// Resets the controller (CC.EN 1 to 0) with any commands in flight, and starts it again. If
    /// that fails the controller is stopped, the host is unchanged, and another reset may follow.
    pub fn reset(&mut self) -> Result<()> {
        disable(&mut self.host, self.cap)?;
        self.free_queues();
        self.bring_up()
    }

    /// Frees all memory of the queues, which the controller must not use any more.
    fn free_queues(&mut self) {
        for mut queue in self.io.drain(..).chain(self.admin.take()) {
            self.pages.append(&mut queue.abandon());
            queue.release(&mut self.host);
        }
        for page in self.pages.drain(..) {
            self.host.free(page, PAGE_BYTES);
        }
        for (addr, bytes) in self.deferred_frees.drain(..) {
            self.host.free(addr, bytes);
        }
    }
}

/// Clears CC.EN and waits for CSTS.RDY to follow.
fn disable<H: Host>(host: &mut H, cap: Cap) -> Result<()> {
    let cc = Cc(host.read32(Bar::Nvme, properties::CC)?);
    if cc.enabled() {
        // A start in progress has to end first: EN must not change before RDY has followed.
        let csts = Csts(host.read32(Bar::Nvme, properties::CSTS)?);
        if !csts.fatal() {
            wait_status(host, cap, "CSTS.RDY = 1 before disabling", |csts| {
                csts.ready()
            })?;
        }
        let off = cc
            .with_enable(false)
            .with_shutdown(ShutdownNotification::None);
        host.write32(Bar::Nvme, properties::CC, off.0)?;
    }
    // A fatal controller still has to clear RDY; CFS itself is cleared by the reset.
    let limit = host.now() + ready_timeout(cap);
    loop {
        let csts = Csts(host.read32(Bar::Nvme, properties::CSTS)?);
        if csts.device_removed() {
            return Err(Error::Gone);
        }
        if !csts.ready() {
            return Ok(());
        }
        pause(host, limit, "CSTS.RDY = 0 after disabling", cap)?;
    }
}

/// CAP.TO, and at least half a second.
fn ready_timeout(cap: Cap) -> Time {
    Time::ms(500 * u64::from(cap.timeout_500ms().max(1)))
}

/// Polls CSTS every microsecond.
fn wait_status<H: Host>(
    host: &mut H,
    cap: Cap,
    what: &str,
    done: impl Fn(Csts) -> bool,
) -> Result<()> {
    let limit = host.now() + ready_timeout(cap);
    loop {
        let csts = Csts(host.read32(Bar::Nvme, properties::CSTS)?);
        if csts.device_removed() {
            return Err(Error::Gone);
        }
        if csts.fatal() {
            return Err(Error::Fatal);
        }
        if done(csts) {
            return Ok(());
        }
        pause(host, limit, what, cap)?;
    }
}

fn pause<H: Host>(host: &mut H, limit: Time, what: &str, cap: Cap) -> Result<()> {
    let now = host.now();
    if now >= limit {
        return Err(Error::Timeout {
            what: what.into(),
            after: ready_timeout(cap),
        });
    }
    host.wait(now + Time::us(10))
}
