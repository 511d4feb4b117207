//! The device's side of its link: reads of host memory with their tags, and the line of what the front end writes.
//!
//! A beat of 64 bytes passes in a cycle, each way.

use std::collections::VecDeque;

use sim::{Clock, HostPort, ReadData, Time, TraceEvent, Tracer};

use crate::patience::{Patience, Stream};

/// Bytes of a beat.
pub(crate) const BEAT: u64 = 64;

/// Writes of the front end that wait for the link.
const LINE: usize = 30;
/// Pieces of write data that may wait for the link.
const MOST_PIECES: usize = 8;
/// Bytes of the largest burst.
pub(crate) const BURST: usize = 512;
/// Bursts that there is room for: each that waits has a piece that waits.
const BURSTS: usize = 2 * MOST_PIECES;

/// Who has asked for host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The submission queue entry of the command in this slot.
    Fetch(u16),
    /// A part of a list of PRPs or descriptors of the command in this slot.
    List(u16),
    /// Data of a job: the piece with this number, for the mover of a channel.
    Data(u32, u16, u8),
    /// A shadow doorbell.
    Shadow,
    /// What a Set Features brings along: the piece with this number.
    AdminData(u8),
    /// A line of a list of ranges.
    Ranges,
    /// A line of the segments that say where a list of ranges lies.
    RangesList,
}

impl Purpose {
    /// Reads whose answers come in order: the RTL has an ID for each of these.
    fn stream(self) -> Stream {
        match self {
            Purpose::Fetch(_) => Stream::Fetch,
            Purpose::List(slot) => Stream::List(slot),
            Purpose::Data(_, _, channel) => Stream::Data(channel),
            Purpose::Shadow => Stream::Shadow,
            Purpose::AdminData(_) => Stream::AdminData,
            Purpose::Ranges | Purpose::RangesList => Stream::Ranges,
        }
    }
}

/// What comes back.
pub(crate) struct Arrival {
    pub(crate) purpose: Purpose,
    /// When the last of it has passed the port, clock edge.
    pub(crate) cycle: u64,
    /// Where it begins in what was asked for.
    pub(crate) offset: u32,
    /// The bytes; `None`: the read has failed.
    pub(crate) data: Option<Vec<u8>>,
    /// Beats at the port.
    pub(crate) beats: u32,
    /// Nothing more comes of this read.
    pub(crate) last: bool,
}

#[derive(Clone, Copy)]
struct Asked {
    purpose: Purpose,
    addr: u64,
    len: u32,
    cycle: u64,
}

#[derive(Clone, Copy)]
struct Outstanding {
    purpose: Purpose,
    /// Bytes of its first beat that are not asked for, and then those that are.
    skip: u32,
    len: u32,
    got: u32,
    /// It was given up: what still comes of it is dropped.
    lost: bool,
}

/// What leaves in the line of completion queue entries.
pub(crate) enum Post {
    /// An entry, a message or an EventIdx: address, bytes, how many of them.
    Write(u64, [u8; 16], u8),
    /// The entry of an admin command. Its sender is told.
    AdminEntry(u64, [u8; 16]),
    /// An EventIdx of a shadow doorbell: address, value. Its sender is told.
    EventIdx(u64, u32),
    /// The answer to a read of BAR0.
    Answer(u32, Option<Vec<u8>>),
}

/// Who wants to know that the link has taken a burst.
pub(crate) enum Taken {
    Nobody,
    /// A job, of a part of its data.
    Job(u32),
    /// The sender of an admin command's entry.
    AdminEntry,
    /// The sender of an EventIdx.
    EventIdx,
    /// The answer to a read of BAR0 follows.
    Answer(u32, Option<Vec<u8>>),
}

/// Bytes that have passed the port and go to the link together.
struct Piece {
    /// Their last beat has passed.
    ready: u64,
    addr: u64,
    len: u16,
    /// Where they are: in which burst, and where in it.
    burst: u8,
    from: u16,
    /// Of the last one of a burst.
    taken: Taken,
}

pub(crate) struct Port {
    clock: Clock,
    /// Bytes of the largest piece, a power of two.
    chunk: u64,
    pieces: VecDeque<Piece>,
    /// What pieces are of, and where the next burst's bytes go.
    bursts: Box<[[u8; BURST]; BURSTS]>,
    next_burst: usize,
    /// Reads that wait for the link.
    asked: VecDeque<Asked>,
    reads: Vec<Option<Outstanding>>,
    free_tags: Vec<u32>,
    /// What the host owes for long.
    patience: Patience,
    /// When the port's read data can have its next beat.
    beats_free: u64,
    /// What the front end sends: from which edge on, what.
    pub(crate) posts: VecDeque<(u64, Post)>,
    /// When the port's write data can have its next beat.
    pub(crate) writes_free: u64,
    /// The link has refused a read; not before this time.
    read_refused: Option<Time>,
    /// The link has refused a write.
    write_refused: Option<Time>,
    beats: [u64; 2],
    /// The link has taken the last EventIdx.
    pub(crate) event_idx_sent: bool,
    /// The link has taken the last entry of an admin command.
    pub(crate) admin_sent: bool,
}

impl Port {
    /// With so many reads outstanding; writes go to the link in pieces of up to `chunk` bytes.
    pub(crate) fn new(clock: Clock, tags: u32, chunk: u32) -> Port {
        Port {
            clock,
            chunk: chunk.into(),
            pieces: VecDeque::with_capacity(2 * MOST_PIECES),
            bursts: Box::new([[0; BURST]; BURSTS]),
            next_burst: 0,
            asked: VecDeque::new(),
            reads: (0..tags).map(|_| None).collect(),
            free_tags: (0..tags).rev().collect(),
            patience: Patience::new(),
            beats_free: 0,
            posts: VecDeque::new(),
            writes_free: 0,
            read_refused: None,
            write_refused: None,
            beats: [0; 2],
            event_idx_sent: false,
            admin_sent: false,
        }
    }

    /// Asks for host memory within a page; the request is at the port at `cycle`.
    pub(crate) fn read(&mut self, cycle: u64, purpose: Purpose, addr: u64, len: u32) {
        // Who comes first goes first, whoever has said so before.
        let behind = self.asked.iter().rposition(|asked| asked.cycle <= cycle);
        let asked = Asked {
            purpose,
            addr,
            len,
            cycle,
        };
        self.asked.insert(behind.map_or(0, |n| n + 1), asked);
    }

    /// Puts something into the front end's line.
    pub(crate) fn post(&mut self, cycle: u64, post: Post) {
        self.posts.push_back((cycle, post));
    }

    /// Writes bytes, at most 16, to host memory in the front end's line.
    pub(crate) fn post_write(&mut self, cycle: u64, addr: u64, data: &[u8]) {
        let mut bytes = [0; 16];
        bytes[..data.len()].copy_from_slice(data);
        self.post(cycle, Post::Write(addr, bytes, data.len() as u8));
    }

    /// Nothing is asked for, under way or to be written.
    pub(crate) fn is_quiet(&self) -> bool {
        self.asked.is_empty() && !self.writes_wait() && !self.is_owed()
    }

    /// The host owes answers that have not been given up.
    fn is_owed(&self) -> bool {
        self.free_tags.len() + self.patience.lost() < self.reads.len()
    }

    /// Answers that were given up may still come.
    pub(crate) fn has_lost(&self) -> bool {
        self.patience.lost() > 0
    }

    /// The front end's line has room.
    pub(crate) fn has_room(&self) -> bool {
        self.posts.len() < LINE
    }

    /// The front end has something to write.
    pub(crate) fn writes_wait(&self) -> bool {
        !self.posts.is_empty() || !self.pieces.is_empty()
    }

    /// A burst may begin to pass the port.
    pub(crate) fn has_pieces(&self) -> bool {
        self.pieces.len() < MOST_PIECES
    }

    /// Writes bytes as one burst; see [`Port::pass`].
    pub(crate) fn write(&mut self, now: u64, addr: u64, data: &[u8], taken: Taken) -> u64 {
        self.burst()[..data.len()].copy_from_slice(data);
        self.pass(now, addr, data.len(), taken)
    }

    /// Where the bytes of the next burst go.
    pub(crate) fn burst(&mut self) -> &mut [u8; BURST] {
        &mut self.bursts[self.next_burst]
    }

    /// The next burst, of so many bytes, passes the port from `now` on, a beat a cycle, without strobes for what is not in it.
    pub(crate) fn pass(&mut self, now: u64, addr: u64, len: usize, taken: Taken) -> u64 {
        let beats = (addr % BEAT + len as u64).div_ceil(BEAT);
        self.writes_free = now + beats;
        self.beats[1] += beats;
        let mut from = 0;
        while from < len {
            let at = addr.wrapping_add(from as u64);
            let part = (len - from).min((self.chunk - at % self.chunk) as usize);
            self.pieces.push_back(Piece {
                ready: now + (addr % BEAT + (from + part) as u64).div_ceil(BEAT),
                addr: at,
                len: part as u16,
                burst: self.next_burst as u8,
                from: from as u16,
                taken: Taken::Nobody,
            });
            from += part;
        }
        self.next_burst = (self.next_burst + 1) % BURSTS;
        if let Some(last) = self.pieces.back_mut() {
            last.taken = taken;
        }
        beats
    }

    /// An answer goes behind all that has passed.
    pub(crate) fn answer(&mut self, now: u64, tag: u32, data: Option<Vec<u8>>) {
        self.pieces.push_back(Piece {
            ready: now,
            addr: 0,
            len: 0,
            burst: 0,
            from: 0,
            taken: Taken::Answer(tag, data),
        });
    }

    /// Gives the link a piece, if one is due that it takes. Else when to look again, if that is known.
    pub(crate) fn send_piece(
        &mut self,
        now: u64,
        host: &mut dyn HostPort,
    ) -> Result<Taken, Option<u64>> {
        let Some(piece) = self.pieces.front() else {
            return Err(None);
        };
        if piece.ready > now {
            return Err(Some(piece.ready));
        }
        let time = self.clock.edge(now);
        if piece.len > 0 {
            let (from, len) = (usize::from(piece.from), usize::from(piece.len));
            let bytes = &self.bursts[usize::from(piece.burst)][from..from + len];
            if self.write_refused.is_some_and(|until| until > time)
                || !host.write(time, piece.addr, bytes)
            {
                if self.write_refused.is_none_or(|until| until <= time) {
                    self.write_refused = Some(host.refused_until());
                }
                return Err(self.retry(now, self.write_refused));
            }
            self.write_refused = None;
        }
        let taken = self.pieces.pop_front().map_or(Taken::Nobody, |p| p.taken);
        match taken {
            Taken::Answer(tag, data) => {
                host.mmio_data(time, tag, data);
                Ok(Taken::Nobody)
            }
            taken => Ok(taken),
        }
    }

    /// Sends reads that are due, as far as the link takes them. When to call again, clock edge.
    pub(crate) fn send_reads(
        &mut self,
        now: u64,
        tracer: Option<&Tracer>,
        host: &mut dyn HostPort,
    ) -> Option<u64> {
        let time = self.clock.edge(now);
        if self.read_refused.is_some_and(|until| until > time) {
            return self.retry(now, self.read_refused);
        }
        self.read_refused = None;
        while let Some(&asked) = self.asked.front() {
            if asked.cycle > now {
                return Some(asked.cycle);
            }
            let &tag = self.free_tags.last()?;
            if !host.read(time, tag, asked.addr, asked.len) {
                self.read_refused = Some(host.refused_until());
                return self.retry(now, self.read_refused);
            }
            if let Some(tracer) = tracer.filter(|tracer| tracer.wants_ports()) {
                tracer.record(time, &TraceEvent::HostRead { addr: asked.addr });
            }
            self.free_tags.pop();
            self.asked.pop_front();
            self.reads[tag as usize] = Some(Outstanding {
                purpose: asked.purpose,
                skip: (asked.addr % BEAT) as u32,
                len: asked.len,
                got: 0,
                lost: false,
            });
        }
        None
    }

    /// True once when somebody has to look at what the host owes, a while from now.
    pub(crate) fn wants_look(&mut self) -> bool {
        self.is_owed() && self.patience.plan()
    }

    /// Looks at what the host owes: reads that have got nothing since the last look but one end without data.
    pub(crate) fn look(&mut self, now: u64) -> Vec<Arrival> {
        let open = self.reads.iter().flatten().filter(|read| !read.lost);
        let stuck = self.patience.look(open.map(|read| read.purpose.stream()));
        let mut ended = Vec::new();
        for (tag, place) in (0..).zip(&mut self.reads) {
            let Some(read) = place.as_mut().filter(|read| !read.lost) else {
                continue;
            };
            let stream = read.purpose.stream();
            if !stuck.contains(&stream) {
                continue;
            }
            let before = (read.skip + read.got) / BEAT as u32;
            let beats = (read.skip + read.len).div_ceil(BEAT as u32) - before;
            let cycle = self.beats_free.max(now) + u64::from(beats);
            self.beats_free = cycle;
            ended.push(Arrival {
                purpose: read.purpose,
                cycle,
                offset: read.got,
                data: None,
                beats,
                last: true,
            });
            // What waited behind another answer is here already.
            if self.patience.forget(tag) {
                *place = None;
                self.free_tags.push(tag);
            } else {
                read.lost = true;
                self.patience.lose(stream);
            }
        }
        ended
    }

    /// What has come and waited behind an answer that was given up.
    pub(crate) fn released(&mut self) -> Option<ReadData> {
        self.patience.released()
    }

    /// The edge to try again at after a refusal until `until`; `None` if the link doesn't know.
    pub(crate) fn retry(&self, now: u64, until: Option<Time>) -> Option<u64> {
        match until {
            None | Some(Time::MAX) => None,
            Some(until) => Some((self.clock.edge_strictly_before(until) + 1).max(now + 1)),
        }
    }

    /// The link has refused something, and does not know until when.
    pub(crate) fn is_refused(&self) -> bool {
        [self.read_refused, self.write_refused].contains(&Some(Time::MAX))
    }

    /// The link may know more than when it refused; false if it has not.
    pub(crate) fn look_again(&mut self) -> bool {
        let unknown =
            |refused: &mut Option<Time>| refused.take_if(|until| *until == Time::MAX).is_some();
        unknown(&mut self.read_refused) | unknown(&mut self.write_refused)
    }

    /// A piece of a read has come.
    pub(crate) fn arrived(
        &mut self,
        now: u64,
        piece: ReadData,
        tracer: Option<&Tracer>,
    ) -> Option<Arrival> {
        let read = self.reads.get_mut(piece.tag as usize)?.as_mut()?;
        let stream = read.purpose.stream();
        if read.lost {
            if piece.last {
                self.reads[piece.tag as usize] = None;
                self.free_tags.push(piece.tag);
                self.patience.found(stream);
            }
            return None;
        }
        let piece = self.patience.comes(stream, piece)?;
        let offset = read.got;
        let len = piece.data.as_ref().map_or(0, |data| data.len() as u32);
        read.got += len;
        let purpose = read.purpose;
        let before = (read.skip + offset) / BEAT as u32;
        let beats = match piece.last {
            true => (read.skip + read.len).div_ceil(BEAT as u32) - before,
            false => (read.skip + read.got) / BEAT as u32 - before,
        };
        let all = beats;
        let beats = u64::from(beats);
        self.beats[0] += beats;
        let cycle = self.beats_free.max(now) + beats;
        self.beats_free = cycle;
        tell_beats(self.clock, cycle, beats, TraceEvent::HostData, tracer);
        if piece.last {
            self.reads[piece.tag as usize] = None;
            self.free_tags.push(piece.tag);
        }
        Some(Arrival {
            purpose,
            cycle,
            offset,
            data: piece.data,
            beats: all,
            last: piece.last,
        })
    }
}

/// Tells of a beat at the port in each of so many cycles, the last one before `end`.
pub(crate) fn tell_beats(
    clock: Clock,
    end: u64,
    beats: u64,
    event: TraceEvent,
    tracer: Option<&Tracer>,
) {
    if let Some(tracer) = tracer.filter(|tracer| tracer.wants_ports()) {
        for cycle in end - beats..end {
            tracer.record(clock.edge(cycle), &event);
        }
    }
}
