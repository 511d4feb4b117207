// SPDX-License-Identifier: Apache-2.0

//! The host port of the device (nearside_host, nvme_host_writes): every access to host memory
//! passes it.
//!
//! Reads pass in the order of their cycles. Writes have one source for the front end and one for
//! the mover of each channel, which are granted in rotation, a burst at a time. The front end's
//! writes are completion queue entries, interrupt messages and EventIdx. Answers to reads of BAR0
//! keep their order with these.

mod completion_timeout;
mod link;
mod requests;

use std::collections::VecDeque;

use sim::{Clock, Tracer};

pub(crate) use completion_timeout::CHECK_INTERVAL_MS;
pub(crate) use link::{trace_beats, LinkPort, BEAT, BURST_BYTES};
pub(crate) use requests::{BurstOwner, HostReadData, ReadPurpose};

/// Posted writes of the front end that may wait for the port.
const MAX_POSTS: usize = 30;
/// Bytes of the longest posted write of the front end.
const POST_BYTES: usize = 16;

/// A posted write of the front end, or an answer that keeps its order with these.
enum Post {
    Write {
        addr: u64,
        bytes: [u8; POST_BYTES],
        len: u8,
        owner: Option<BurstOwner>,
    },
    /// The answer to a read of BAR0: tag, data.
    RegisterAnswer(u32, Option<Vec<u8>>),
}

/// Data of a descriptor on the way to the host, at most a burst.
pub(crate) struct HostBurst {
    /// The edge from which on it may pass.
    pub(crate) ready: u64,
    pub(crate) descriptor: u32,
    /// Its place in the descriptor.
    pub(crate) from: u32,
    pub(crate) len: u32,
    pub(crate) host: u64,
}

/// A step of the writes at the port.
pub(crate) enum WriteStep {
    /// The mover of a channel is granted: it passes this burst with [`LinkPort::pass_burst`].
    Granted(usize, HostBurst),
    /// The link has accepted all of a burst.
    Sent(BurstOwner),
    /// Nothing more is possible before this edge, if it is known.
    Wait(Option<u64>),
}

/// The arbiter of the host port.
pub(crate) struct HostArbiter {
    pub(crate) link: LinkPort,
    /// The front end's writes, with the edge from which on they may pass.
    posts: VecDeque<(u64, Post)>,
    /// Bursts of each channel's mover, in order.
    bursts: Vec<VecDeque<HostBurst>>,
    /// The next source in rotation: the front end, or a channel.
    next_source: usize,
}

impl HostArbiter {
    /// The port of a device with `tags` outstanding reads and movers of `channels` channels, whose
    /// writes have payloads of up to `max_payload` bytes.
    pub(crate) fn new(clock: Clock, tags: u32, max_payload: u32, channels: u32) -> HostArbiter {
        HostArbiter {
            link: LinkPort::new(clock, tags, max_payload),
            posts: VecDeque::new(),
            bursts: (0..channels).map(|_| VecDeque::new()).collect(),
            next_source: 0,
        }
    }

    /// Queues a posted write of the front end, of at most 16 bytes, from an edge on.
    pub(crate) fn post_write(
        &mut self,
        cycle: u64,
        addr: u64,
        data: &[u8],
        owner: Option<BurstOwner>,
    ) {
        let mut bytes = [0; POST_BYTES];
        bytes[..data.len()].copy_from_slice(data);
        let post = Post::Write {
            addr,
            bytes,
            len: data.len() as u8,
            owner,
        };
        self.posts.push_back((cycle, post));
    }

    /// Queues the answer to a read of BAR0, from an edge on.
    pub(crate) fn post_answer(&mut self, cycle: u64, tag: u32, data: Option<Vec<u8>>) {
        let post = Post::RegisterAnswer(tag, data);
        self.posts.push_back((cycle, post));
    }

    /// The queue of the front end's writes has room.
    pub(crate) fn has_room(&self) -> bool {
        self.posts.len() < MAX_POSTS
    }

    /// The front end's writes that wait for the port.
    pub(crate) fn posts(&self) -> usize {
        self.posts.len()
    }

    /// The edge from which on the oldest of them may pass.
    pub(crate) fn next_post(&self) -> Option<u64> {
        self.posts.front().map(|post| post.0)
    }

    /// Queues a burst of the mover of a channel.
    pub(crate) fn queue_burst(&mut self, channel: usize, burst: HostBurst) {
        self.bursts[channel].push_back(burst);
    }

    /// Writes of the front end wait for the port, or any write waits for the link.
    pub(crate) fn has_pending_writes(&self) -> bool {
        !self.posts.is_empty() || self.link.has_packets()
    }

    /// No read is pending or outstanding, and no write is pending.
    pub(crate) fn is_idle(&self) -> bool {
        self.posts.is_empty() && self.link.is_idle()
    }

    /// Sends a packet, or grants a source.
    pub(crate) fn next_write(
        &mut self,
        now: u64,
        tracer: Option<&Tracer>,
        host: &mut dyn sim::HostPort,
    ) -> WriteStep {
        loop {
            let next_packet = match self.link.send_packet(now, host) {
                Ok(Some(owner)) => return WriteStep::Sent(owner),
                Ok(None) => continue,
                Err(again) => again,
            };
            if !self.link.has_room() {
                return WriteStep::Wait(next_packet);
            }
            let earlier = |at: u64| Some(next_packet.map_or(at, |packet| packet.min(at)));
            if self.link.writes_free() > now {
                return WriteStep::Wait(earlier(self.link.writes_free()));
            }
            let source = match self.arbitrate(now) {
                Ok(source) => source,
                Err(next) => return WriteStep::Wait(next.map_or(next_packet, earlier)),
            };
            self.next_source = (source + 1) % (self.bursts.len() + 1);
            match source.checked_sub(1) {
                None => self.pass_post(now, tracer),
                Some(channel) => {
                    let burst = self.bursts[channel].pop_front();
                    let burst = burst.expect("the arbiter chose a channel with a burst");
                    return WriteStep::Granted(channel, burst);
                }
            }
        }
    }

    /// The next source with a write that may pass. Otherwise the edge at which one may, if a write
    /// waits.
    fn arbitrate(&self, now: u64) -> Result<usize, Option<u64>> {
        let sources = self.bursts.len() + 1;
        let mut next: Option<u64> = None;
        for n in 0..sources {
            let source = (self.next_source + n) % sources;
            let ready = match source {
                0 => self.next_post(),
                n => self.bursts[n - 1].front().map(|burst| burst.ready),
            };
            let Some(ready) = ready else { continue };
            if ready <= now {
                return Ok(source);
            }
            next = Some(next.map_or(ready, |next| next.min(ready)));
        }
        Err(next)
    }

    /// Passes the front end's oldest write through the port.
    fn pass_post(&mut self, now: u64, tracer: Option<&Tracer>) {
        let (_, post) = self
            .posts
            .pop_front()
            .expect("the arbiter chose the front end");
        match post {
            Post::Write {
                addr,
                bytes,
                len,
                owner,
            } => {
                let len = usize::from(len);
                self.link.burst_buffer()[..len].copy_from_slice(&bytes[..len]);
                let beats = self.link.pass_burst(now, addr, len, owner);
                self.link.trace_burst(beats, tracer);
            }
            Post::RegisterAnswer(tag, data) => self.link.queue_answer(now, tag, data),
        }
    }
}
