// SPDX-License-Identifier: Apache-2.0

//! The allocator: which bytes of a pool are allocated.
//!
//! The heap consists of zones of 64 chunks of 64 KiB. The first chunk of a zone describes the
//! others: a word for each, and a byte for each object of a chunk of small ones. So a transaction
//! changes only bytes of its objects, which no other transaction changes. What its mechanism does
//! to these bytes touches no other transaction.
//!
//! | bytes of a zone's first chunk | what |
//! |---|---|
//! | 8 k, k from 1 to 63 | word of chunk k: bits 7:0 kind, bits 63:8 class or number of chunks |
//! | 512 + 1024 (k - 1) + n | 1: object n of chunk k is allocated; else 0 |
//! | 65,024, of the first zone | the root pointer |
//!
//! Kinds are 0 free, 1 small objects of a class, 2 the first chunk of a large object.
//!
//! The copy in host memory is read from there when the pool is opened. It also records what
//! transactions under way have allocated and freed. The bytes change when these commit, through
//! their mechanism.

use crate::{Error, Result};

const CHUNK: u64 = 64 << 10;
const ZONE_CHUNKS: usize = 64;
const ZONE: u64 = CHUNK * ZONE_CHUNKS as u64;
const STATES: u64 = 512;
const MAX_SLOTS: u64 = 1024;
const ROOT: u64 = STATES + MAX_SLOTS * (ZONE_CHUNKS as u64 - 1);
/// Fewest bytes of a heap.
pub(crate) const MIN_BYTES: u64 = 2 * CHUNK;
/// Most bytes of an object.
pub const MAX_OBJECT_BYTES: u64 = CHUNK * (ZONE_CHUNKS as u64 - 1);
/// Sizes of small objects: multiples of a line. The largest are as long as a fraction of a chunk.
const CLASSES: [u64; 27] = [
    64, 128, 192, 256, 320, 384, 448, 512, 640, 768, 896, 1024, 1280, 1536, 1792, 2048, 2560, 3072,
    4096, 5120, 6144, 8192, 10880, 13056, 16384, 21824, 32768,
];
const FREE: u64 = 0;
const SMALL: u64 = 1;
const LARGE: u64 = 2;

/// The state of a place for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotState {
    Free,
    /// Allocated by a transaction under way.
    Allocating,
    Used,
    /// Freed by a transaction under way.
    Freeing,
}

#[derive(Clone, Debug)]
struct SmallChunk {
    class: usize,
    /// The thread whose transaction has created the chunk and is under way: no other thread uses
    /// it.
    owner: Option<u8>,
    slots: Vec<SlotState>,
    /// Free slots; the last one is used first.
    free: Vec<u16>,
}

#[derive(Clone, Debug)]
enum Chunk {
    /// Describes the other chunks of the zone.
    Meta,
    Free,
    Small(SmallChunk),
    Large {
        chunks: usize,
        slot: SlotState,
    },
    /// A further chunk of a large object.
    Tail,
}

/// Bytes that a transaction has to store at its commit, and their offset.
pub(crate) type MetadataStore = (u64, Vec<u8>);

/// An object that a transaction allocates or frees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeapChange {
    pub offset: u64,
    /// Bytes that are set aside for it.
    pub bytes: u64,
    /// Marks it as allocated, or as free.
    pub state: MetadataStore,
    /// Makes the chunk one of small objects, with its first object.
    pub chunk: Option<MetadataStore>,
}

/// The heap of a pool, in host memory.
pub(crate) struct Heap {
    /// Offset of the heap in the pool.
    base: u64,
    chunks: Vec<Chunk>,
    /// For each class the chunks with a free slot, and maybe others; the last one is tried first.
    open: Vec<Vec<usize>>,
}

/// Offset in the pool of the root pointer.
pub(crate) fn root(base: u64) -> u64 {
    base + ROOT
}

/// The parts of a heap that have to be 0 at its creation or growth: offsets from its start.
pub(crate) fn metadata(from: u64, to: u64) -> Vec<std::ops::Range<u64>> {
    // A partial chunk held no objects.
    let first = (from - from % CHUNK).next_multiple_of(ZONE);
    (first..to)
        .step_by(ZONE as usize)
        .map(|at| at..(at + CHUNK).min(to))
        .collect()
}

/// The parts of the last zone's metadata that describe chunks past the end of the heap: words, then
/// bytes of objects.
pub(crate) fn metadata_beyond(bytes: u64) -> Vec<std::ops::Range<u64>> {
    let chunks = bytes / CHUNK;
    let (zone, first) = (
        chunks - chunks % ZONE_CHUNKS as u64,
        chunks % ZONE_CHUNKS as u64,
    );
    if first == 0 {
        return Vec::new();
    }
    let (zone, states) = (zone * CHUNK, STATES + MAX_SLOTS * (first - 1));
    vec![zone + 8 * first..zone + STATES, zone + states..zone + ROOT]
}

/// True for a range that programs may write: within chunks, or the root pointer.
pub(crate) fn is_for_programs(base: u64, range: &std::ops::Range<u64>) -> bool {
    let Some(start) = range.start.checked_sub(base) else {
        return false;
    };
    let end = range.end - base;
    start % ZONE >= CHUNK && end <= (start - start % ZONE) + ZONE
        || start >= ROOT && end <= ROOT + 8
}

fn class_of(bytes: u64) -> Option<usize> {
    CLASSES.iter().position(|size| *size >= bytes)
}

impl Heap {
    /// Loads the metadata of a heap at an offset of the pool.
    pub fn load(
        base: u64,
        bytes: u64,
        read: &mut dyn FnMut(u64, &mut [u8]) -> Result<()>,
    ) -> Result<Heap> {
        let mut heap = Heap {
            base,
            chunks: Vec::new(),
            open: vec![Vec::new(); CLASSES.len()],
        };
        heap.grow(bytes, read)?;
        Ok(heap)
    }

    /// The same, and an error for metadata of chunks and objects that the heap does not have.
    pub fn load_whole(
        base: u64,
        bytes: u64,
        read: &mut dyn FnMut(u64, &mut [u8]) -> Result<()>,
    ) -> Result<Heap> {
        let mut zones = Vec::new();
        let count = (bytes / CHUNK) as usize;
        for first in (0..count).step_by(ZONE_CHUNKS) {
            // All words, and the bytes of existing chunks: growth clears those of others.
            let own = (count - first).min(ZONE_CHUNKS) as u64 - 1;
            let mut zone = vec![0; (STATES + MAX_SLOTS * own) as usize];
            read(base + first as u64 * CHUNK, &mut zone)?;
            zones.push(zone);
        }
        let mut known = |at: u64, out: &mut [u8]| {
            let (zone, from) = ((at - base) / ZONE, ((at - base) % ZONE) as usize);
            out.copy_from_slice(&zones[zone as usize][from..from + out.len()]);
            Ok(())
        };
        let heap = Heap::load(base, bytes, &mut known)?;
        for n in (0..zones.len() * ZONE_CHUNKS).filter(|n| n % ZONE_CHUNKS > 0) {
            heap.check_unused_metadata(n, &mut known)?;
        }
        Ok(heap)
    }

    /// An error for a word of a chunk past the end, or a byte of an object that its chunk has no
    /// slot for. With the chunk's next use it would become an object.
    fn check_unused_metadata(
        &self,
        chunk: usize,
        read: &mut dyn FnMut(u64, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let slots = match self.chunks.get(chunk) {
            Some(Chunk::Small(small)) => small.slots.len(),
            Some(_) => 0,
            None => {
                let mut word = [0; 8];
                read(self.word_offset(chunk), &mut word)?;
                return match u64::from_le_bytes(word) {
                    0 => Ok(()),
                    word => Err(self.corrupt(chunk, word)),
                };
            }
        };
        let mut states = vec![0; MAX_SLOTS as usize];
        read(self.state_offset(chunk, 0), &mut states)?;
        match (slots..states.len()).find(|n| states[*n] != 0) {
            None => Ok(()),
            Some(n) => Err(Error::Corrupt(format!(
                "the heap is damaged: object {n} of chunk {chunk} is {:#x}, and the chunk has \
                 {slots} objects",
                states[n]
            ))),
        }
    }

    /// Compares this heap with one that was read while no transaction was under way.
    pub fn agrees(&self, read: &Heap) -> bool {
        let same = |(own, read): (&Chunk, &Chunk)| match (own, read) {
            (Chunk::Meta, Chunk::Meta)
            | (Chunk::Free, Chunk::Free)
            | (Chunk::Tail, Chunk::Tail) => true,
            (Chunk::Small(own), Chunk::Small(read)) => {
                own.class == read.class && own.slots == read.slots
            }
            // The chunk had small objects before a large one was freed, or the transaction that
            // would have changed it was aborted.
            (Chunk::Free, Chunk::Small(read)) => read.free.len() == read.slots.len(),
            (Chunk::Large { chunks: own, .. }, Chunk::Large { chunks: read, .. }) => own == read,
            _ => false,
        };
        self.chunks.len() == read.chunks.len() && self.chunks.iter().zip(&read.chunks).all(same)
    }

    /// Loads the metadata of added chunks, up to a new size.
    pub fn grow(
        &mut self,
        bytes: u64,
        read: &mut dyn FnMut(u64, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let count = (bytes / CHUNK) as usize;
        let mut large = 0;
        while self.chunks.len() < count {
            let n = self.chunks.len();
            if n % ZONE_CHUNKS == 0 {
                self.chunks.push(Chunk::Meta);
                continue;
            }
            if large > 0 {
                large -= 1;
                self.chunks.push(Chunk::Tail);
                continue;
            }
            let mut word = [0; 8];
            read(self.word_offset(n), &mut word)?;
            let word = u64::from_le_bytes(word);
            let what = word >> 8;
            let chunk = match word & 0xFF {
                FREE if what == 0 => Chunk::Free,
                SMALL if what < CLASSES.len() as u64 => {
                    let class = what as usize;
                    let mut states = vec![0; (CHUNK / CLASSES[class]) as usize];
                    read(self.state_offset(n, 0), &mut states)?;
                    self.load_small(n, class, &states)?
                }
                LARGE if what > 0 && n % ZONE_CHUNKS + what as usize <= ZONE_CHUNKS => {
                    large = what as usize - 1;
                    if n + what as usize > count {
                        return Err(self.corrupt(n, word));
                    }
                    Chunk::Large {
                        chunks: what as usize,
                        slot: SlotState::Used,
                    }
                }
                _ => return Err(self.corrupt(n, word)),
            };
            self.chunks.push(chunk);
        }
        Ok(())
    }

    fn corrupt(&self, chunk: usize, word: u64) -> Error {
        Error::Corrupt(format!(
            "the heap is damaged: the word of chunk {chunk} is {word:#x}"
        ))
    }

    fn load_small(&mut self, chunk: usize, class: usize, states: &[u8]) -> Result<Chunk> {
        let slots = states.iter().enumerate().map(|(n, state)| match state {
            0 => Ok(SlotState::Free),
            1 => Ok(SlotState::Used),
            _ => Err(Error::Corrupt(format!(
                "the heap is damaged: object {n} of chunk {chunk} is neither free nor allocated, \
                 but {state:#x}"
            ))),
        });
        let slots = slots.collect::<Result<Vec<_>>>()?;
        let free: Vec<u16> = (0..slots.len() as u16)
            .rev()
            .filter(|n| slots[usize::from(*n)] == SlotState::Free)
            .collect();
        if !free.is_empty() {
            self.open[class].push(chunk);
        }
        Ok(Chunk::Small(SmallChunk {
            class,
            owner: None,
            slots,
            free,
        }))
    }

    /// Offset in the pool of a chunk.
    fn chunk_offset(&self, chunk: usize) -> u64 {
        self.base + chunk as u64 * CHUNK
    }

    fn zone_offset(&self, chunk: usize) -> u64 {
        self.chunk_offset(chunk - chunk % ZONE_CHUNKS)
    }

    /// Offset in the pool of a chunk's word.
    fn word_offset(&self, chunk: usize) -> u64 {
        self.zone_offset(chunk) + 8 * (chunk % ZONE_CHUNKS) as u64
    }

    /// Offset in the pool of an object's byte.
    fn state_offset(&self, chunk: usize, slot: usize) -> u64 {
        self.zone_offset(chunk)
            + STATES
            + MAX_SLOTS * (chunk % ZONE_CHUNKS - 1) as u64
            + slot as u64
    }

    /// Allocates an object, for the transaction of a thread.
    pub fn allocate(&mut self, bytes: u64, thread: u8) -> Result<HeapChange> {
        if bytes == 0 || bytes > MAX_OBJECT_BYTES {
            return Err(Error::Invalid(format!(
                "an object of {bytes} bytes: allowed are 1 to {MAX_OBJECT_BYTES}"
            )));
        }
        match class_of(bytes) {
            Some(class) => self.allocate_small(class, thread),
            None => self.allocate_large(bytes.div_ceil(CHUNK) as usize),
        }
    }

    fn full_error(&self, bytes: u64) -> Error {
        Error::Full(format!("the pool has no room for {bytes} bytes"))
    }

    /// The chunk of small objects that a thread allocates the next one from.
    fn next_chunk(&self, class: usize, thread: u8) -> Option<usize> {
        let own = |chunk: &Chunk| match chunk {
            Chunk::Small(small) => small.owner.is_none_or(|owner| owner == thread),
            _ => false,
        };
        let open = self.open[class].iter().rev();
        open.copied().find(|n| own(&self.chunks[*n]))
    }

    /// The place that the next allocation of a thread gets after `skipped` others of this size;
    /// nothing if that is not known, or the object is not small.
    pub fn next_place(&self, bytes: u64, thread: u8, skipped: usize) -> Option<u64> {
        let class = class_of(bytes)?;
        let chunk = self.next_chunk(class, thread)?;
        let Chunk::Small(small) = &self.chunks[chunk] else {
            return None;
        };
        let slot = small.free.iter().rev().nth(skipped)?;
        Some(self.chunk_offset(chunk) + u64::from(*slot) * CLASSES[class])
    }

    fn allocate_small(&mut self, class: usize, thread: u8) -> Result<HeapChange> {
        let mut made = None;
        let chunk = match self.next_chunk(class, thread) {
            Some(chunk) => chunk,
            None => {
                let free = (0..self.chunks.len()).find(|n| matches!(self.chunks[*n], Chunk::Free));
                let free = free.or_else(|| (0..self.chunks.len()).find(|n| self.is_unused(*n)));
                let chunk = free.ok_or_else(|| self.full_error(CLASSES[class]))?;
                self.remove_from_open(chunk);
                let count = (CHUNK / CLASSES[class]) as u16;
                self.chunks[chunk] = Chunk::Small(SmallChunk {
                    class,
                    owner: Some(thread),
                    slots: vec![SlotState::Free; usize::from(count)],
                    free: (0..count).rev().collect(),
                });
                self.open[class].push(chunk);
                let word = (class as u64) << 8 | SMALL;
                made = Some((self.word_offset(chunk), word.to_le_bytes().to_vec()));
                chunk
            }
        };
        let Chunk::Small(small) = &mut self.chunks[chunk] else {
            return Err(self.full_error(CLASSES[class]));
        };
        let Some(slot) = small.free.pop() else {
            return Err(self.full_error(CLASSES[class]));
        };
        small.slots[usize::from(slot)] = SlotState::Allocating;
        if small.free.is_empty() {
            self.remove_from_open(chunk);
        }
        Ok(HeapChange {
            offset: self.chunk_offset(chunk) + u64::from(slot) * CLASSES[class],
            bytes: CLASSES[class],
            state: (self.state_offset(chunk, slot.into()), vec![1]),
            chunk: made,
        })
    }

    fn allocate_large(&mut self, count: usize) -> Result<HeapChange> {
        let free = |n: &usize| matches!(self.chunks[*n], Chunk::Free) || self.is_unused(*n);
        let starts = 0..(self.chunks.len() + 1).saturating_sub(count);
        // A zone's first chunk is never free, so no object crosses it.
        let found = starts
            .into_iter()
            .find(|start| (*start..start + count).all(|n| free(&n)));
        let first = found.ok_or_else(|| self.full_error(count as u64 * CHUNK))?;
        for n in first..first + count {
            self.remove_from_open(n);
            self.chunks[n] = Chunk::Tail;
        }
        self.chunks[first] = Chunk::Large {
            chunks: count,
            slot: SlotState::Allocating,
        };
        let word = (count as u64) << 8 | LARGE;
        Ok(HeapChange {
            offset: self.chunk_offset(first),
            bytes: count as u64 * CHUNK,
            state: (self.word_offset(first), word.to_le_bytes().to_vec()),
            chunk: None,
        })
    }

    /// True for a chunk of small objects that has none and no owner.
    fn is_unused(&self, chunk: usize) -> bool {
        match &self.chunks[chunk] {
            Chunk::Small(small) => small.owner.is_none() && small.free.len() == small.slots.len(),
            _ => false,
        }
    }

    /// Nothing more is allocated from a chunk.
    fn remove_from_open(&mut self, chunk: usize) {
        if let Chunk::Small(small) = &self.chunks[chunk] {
            self.open[small.class].retain(|n| *n != chunk);
        }
    }

    /// Finds the object at an offset: its chunk, and its slot among small ones.
    fn find_object(&self, offset: u64) -> Option<(usize, usize)> {
        let chunk = (offset.checked_sub(self.base)? / CHUNK) as usize;
        let within = (offset - self.base) % CHUNK;
        match self.chunks.get(chunk)? {
            Chunk::Small(small) => {
                let size = CLASSES[small.class];
                let slot = (within / size) as usize;
                (within % size == 0 && slot < small.slots.len()).then_some((chunk, slot))
            }
            Chunk::Large { .. } => (within == 0).then_some((chunk, 0)),
            _ => None,
        }
    }

    /// Frees an object that no transaction under way has allocated or freed.
    pub fn free(&mut self, offset: u64) -> Result<HeapChange> {
        let none = || {
            Err(Error::Invalid(format!(
                "there is no object at {offset:#x} to be freed"
            )))
        };
        let Some((chunk, slot)) = self.find_object(offset) else {
            return none();
        };
        let (bytes, change) = match &self.chunks[chunk] {
            Chunk::Small(small) => (
                CLASSES[small.class],
                (self.state_offset(chunk, slot), vec![0]),
            ),
            Chunk::Large { chunks, .. } => (
                *chunks as u64 * CHUNK,
                (self.word_offset(chunk), vec![0; 8]),
            ),
            _ => return none(),
        };
        match self.slot(chunk, slot) {
            Some(state) if *state == SlotState::Used => *state = SlotState::Freeing,
            _ => return none(),
        }
        Ok(HeapChange {
            offset,
            bytes,
            state: change,
            chunk: None,
        })
    }

    fn slot(&mut self, chunk: usize, slot: usize) -> Option<&mut SlotState> {
        match &mut self.chunks[chunk] {
            Chunk::Small(small) => small.slots.get_mut(slot),
            Chunk::Large { slot, .. } => Some(slot),
            _ => None,
        }
    }

    /// The object exists: a commit has allocated it, or an abort has kept it.
    pub fn mark_used(&mut self, offset: u64) {
        if let Some((chunk, slot)) = self.find_object(offset) {
            if let Some(slot) = self.slot(chunk, slot) {
                *slot = SlotState::Used;
            }
        }
    }

    /// The object does not exist: a commit has freed it, or an abort has discarded it.
    pub fn mark_free(&mut self, offset: u64) {
        let Some((chunk, slot)) = self.find_object(offset) else {
            return;
        };
        match &mut self.chunks[chunk] {
            Chunk::Small(small) => {
                small.slots[slot] = SlotState::Free;
                small.free.push(slot as u16);
                let class = small.class;
                if !self.open[class].contains(&chunk) {
                    self.open[class].push(chunk);
                }
            }
            Chunk::Large { chunks, .. } => {
                let chunks = *chunks;
                self.chunks[chunk..chunk + chunks].fill(Chunk::Free);
            }
            _ => {}
        }
    }

    /// The transaction of a thread has ended: chunks that it has created are shared, or free again.
    pub fn end_transaction(&mut self, thread: u8, committed: bool) {
        for n in 0..self.chunks.len() {
            let Chunk::Small(small) = &mut self.chunks[n] else {
                continue;
            };
            if small.owner != Some(thread) {
                continue;
            }
            if committed {
                small.owner = None;
            } else {
                self.remove_from_open(n);
                self.chunks[n] = Chunk::Free;
            }
        }
    }

    /// All objects: their offsets, and the bytes set aside for them.
    pub fn objects(&self) -> Vec<(u64, u64)> {
        let mut out = Vec::new();
        for (n, chunk) in self.chunks.iter().enumerate() {
            match chunk {
                Chunk::Small(small) => {
                    let size = CLASSES[small.class];
                    let used = small.slots.iter().enumerate();
                    let used =
                        used.filter(|(_, s)| matches!(s, SlotState::Used | SlotState::Freeing));
                    out.extend(
                        used.map(|(slot, _)| (self.chunk_offset(n) + slot as u64 * size, size)),
                    );
                }
                Chunk::Large {
                    chunks,
                    slot: SlotState::Used | SlotState::Freeing,
                } => {
                    out.push((self.chunk_offset(n), *chunks as u64 * CHUNK));
                }
                _ => {}
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use sim::Random;

    const BYTES: u64 = 70 * CHUNK;

    fn load(image: &[u8], bytes: u64) -> Heap {
        let mut read = |at: u64, out: &mut [u8]| {
            let at = at as usize - 4096;
            out.copy_from_slice(&image[at..at + out.len()]);
            Ok(())
        };
        Heap::load_whole(4096, bytes, &mut read).unwrap()
    }

    /// Interleaved transactions of two threads, some aborted: objects never overlap, and after each
    /// transaction the bytes agree with a map.
    #[test]
    fn heap_agrees_with_a_map_of_objects() {
        let mut random = Random::new(7);
        let mut image = vec![0; BYTES as usize];
        let mut heap = load(&image, BYTES);
        let mut all: BTreeMap<u64, u64> = BTreeMap::new();
        let mut full = 0;
        for round in 0..2000 {
            let mut taken: [Vec<HeapChange>; 2] = Default::default();
            let mut given: [Vec<HeapChange>; 2] = Default::default();
            for _ in 0..random.below(12) {
                let thread = random.below(2) as usize;
                let leaving = |o: &u64| given.iter().flatten().any(|g| g.offset == *o);
                if random.below(100) < 48 && !all.is_empty() {
                    let nth = random.below(all.len() as u64) as usize;
                    let offset = *all.keys().nth(nth).unwrap();
                    if leaving(&offset) {
                        assert!(heap.free(offset).is_err());
                        continue;
                    }
                    assert!(heap.free(offset + 8).is_err());
                    given[thread].push(heap.free(offset).unwrap());
                } else {
                    let most = [64, 500, 5000, 40_000, 400_000][random.below(5) as usize];
                    match heap.allocate(1 + random.below(most), thread as u8) {
                        Ok(change) => taken[thread].push(change),
                        Err(Error::Full(_)) => full += 1,
                        Err(error) => panic!("{error}"),
                    }
                }
                let mut live: Vec<(u64, u64)> = all.iter().map(|(o, b)| (*o, *b)).collect();
                live.extend(taken.iter().flatten().map(|g| (g.offset, g.bytes)));
                live.sort_unstable();
                assert!(
                    live.windows(2).all(|w| w[0].0 + w[0].1 <= w[1].0),
                    "{live:x?}"
                );
            }
            for thread in 0..2 {
                let commit = random.below(3) > 0;
                for change in &taken[thread] {
                    match commit {
                        true => heap.mark_used(change.offset),
                        false => heap.mark_free(change.offset),
                    }
                }
                for change in &given[thread] {
                    match commit {
                        true => heap.mark_free(change.offset),
                        false => heap.mark_used(change.offset),
                    }
                }
                heap.end_transaction(thread as u8, commit);
                if commit {
                    for change in taken[thread].iter().chain(&given[thread]) {
                        for (at, data) in change.chunk.iter().chain([&change.state]) {
                            let at = *at as usize - 4096;
                            image[at..at + data.len()].copy_from_slice(data);
                        }
                    }
                    all.extend(taken[thread].iter().map(|g| (g.offset, g.bytes)));
                    given[thread].iter().for_each(|g| {
                        all.remove(&g.offset);
                    });
                }
            }
            let want: Vec<(u64, u64)> = all.iter().map(|(o, b)| (*o, *b)).collect();
            assert_eq!(heap.objects(), want, "round {round}");
            let read = load(&image, BYTES);
            assert_eq!(read.objects(), want, "round {round}");
            assert!(heap.agrees(&read), "round {round}");
            // The heap is loaded again now and then.
            if random.below(50) == 0 {
                heap = read;
            }
        }
        assert!(full > 10, "{full}");
    }

    #[test]
    fn heap_reports_damaged_metadata() {
        let mut image = vec![0; (4 * CHUNK) as usize];
        let load_error = |image: &[u8]| {
            let mut read = |at: u64, out: &mut [u8]| {
                let at = at as usize - 4096;
                out.copy_from_slice(&image[at..at + out.len()]);
                Ok(())
            };
            Heap::load_whole(4096, 4 * CHUNK, &mut read).err()
        };
        for word in [3, SMALL | 27 << 8, LARGE, LARGE | 4 << 8, FREE | 1 << 8] {
            image[8..16].copy_from_slice(&word.to_le_bytes());
            assert!(
                matches!(load_error(&image), Some(Error::Corrupt(_))),
                "{word:#x}"
            );
        }
        image[8..16].copy_from_slice(&SMALL.to_le_bytes());
        assert_eq!(load_error(&image), None);
        // Bytes of no object and of no chunk: number 4 is past the end.
        for at in [512, 512 + 1023, 512 + 1024 * 3 - 1, 8 * 4] {
            image[at] = 2;
            assert!(
                matches!(load_error(&image), Some(Error::Corrupt(_))),
                "{at}"
            );
            image[at] = 0;
        }
        assert_eq!(load_error(&image), None);
    }
}
