//! Instructions of a program's own that flush, fence and store past the cache: where they are in its files.
//!
//! Sound as far as functions are known: their bounds are those of the unwind information (`.eh_frame`), which compilers make for
//! each function, and of symbols. Within one all is code. What is elsewhere may be data, and is counted, not followed.

use std::collections::BTreeMap;

use gimli::{BaseAddresses, CieOrFde, EhFrame, EndianSlice, LittleEndian, UnwindSection};
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{elf, Endianness, Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};
use pm::{Error, Result};

/// The longest that an instruction can be.
const LONGEST: usize = 15;
/// No register.
const NONE: u8 = 0xFF;

/// What an instruction does to persistent memory. Numbers are those of `shim/instructions.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Effect {
    /// Asks for a line to be written back, in no order: `clwb`, `clflushopt`.
    Flush = 1,
    /// Writes a line back before any later store: `clflush`.
    OrderedFlush = 2,
    /// Waits for what was asked for: `sfence`, `mfence`.
    Fence = 3,
    /// Waits for it, too, and changes memory: what has `lock`, and `xchg` with memory.
    Locked = 4,
    /// Stores past the cache: `movnti` and the like.
    Stream = 5,
}

/// An instruction in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Where it is, relative to where the file is loaded.
    pub address: u64,
    /// What it does.
    pub effect: Effect,
    code: Vec<u8>,
    /// How many bytes of memory it is about.
    bytes: u8,
    memory: Memory,
}

/// The address of an operand in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Memory {
    displacement: u64,
    base: u8,
    index: u8,
    scale: u8,
    /// 1: that of `fs` is added, 2: that of `gs`.
    segment: u8,
    /// Only the lower 32 bits count.
    is_32_bit: bool,
    /// Where in the code the displacement is, if it is relative to the instruction.
    relative_at: u8,
}

/// What has been found in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// In order of their addresses.
    pub places: Vec<Place>,
    /// Flushes, fences and stores past the cache that look like some, and are not followed, as it isn't known whether they are code.
    pub left_alone: u64,
}

impl Found {
    /// How many there are with an effect.
    pub fn count(&self, effect: Effect) -> usize {
        self.places.iter().filter(|p| p.effect == effect).count()
    }

    /// As the shim reads it: how many places, how many are left alone, and each place in 40 bytes, little-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(16 + 40 * self.places.len());
        bytes.extend((self.places.len() as u64).to_le_bytes());
        bytes.extend(self.left_alone.to_le_bytes());
        for place in &self.places {
            let memory = place.memory;
            bytes.extend(place.address.to_le_bytes());
            bytes.extend(memory.displacement.to_le_bytes());
            bytes.extend([place.effect as u8, place.code.len() as u8, place.bytes]);
            bytes.extend([memory.base, memory.index, memory.scale, memory.segment]);
            bytes.extend([u8::from(memory.is_32_bit), memory.relative_at]);
            let mut code = [0; LONGEST];
            code[..place.code.len()].copy_from_slice(&place.code);
            bytes.extend(code);
        }
        bytes
    }
}

/// The effect of an instruction, and how many bytes of memory it is about.
fn effect_of(instruction: &Instruction) -> Option<(Effect, u8)> {
    let effect = match instruction.mnemonic() {
        Mnemonic::Clwb | Mnemonic::Clflushopt => return Some((Effect::Flush, 1)),
        Mnemonic::Clflush => return Some((Effect::OrderedFlush, 1)),
        Mnemonic::Sfence | Mnemonic::Mfence => return Some((Effect::Fence, 0)),
        Mnemonic::Xchg if has_memory(instruction) => return Some((Effect::Locked, 0)),
        _ if instruction.has_lock_prefix() => return Some((Effect::Locked, 0)),
        _ => Effect::Stream,
    };
    let bytes = match instruction.code() {
        Code::Movnti_m32_r32 | Code::Movntss_m32_xmm | Code::Movdiri_m32_r32 => 4,
        Code::Movnti_m64_r64 | Code::Movntq_m64_mm | Code::Movntsd_m64_xmm => 8,
        Code::Movdiri_m64_r64 | Code::Maskmovq_rDI_mm_mm => 8,
        Code::Movntdq_m128_xmm | Code::Movntps_m128_xmm | Code::Movntpd_m128_xmm => 16,
        Code::VEX_Vmovntdq_m128_xmm | Code::EVEX_Vmovntdq_m128_xmm => 16,
        Code::VEX_Vmovntps_m128_xmm | Code::EVEX_Vmovntps_m128_xmm => 16,
        Code::VEX_Vmovntpd_m128_xmm | Code::EVEX_Vmovntpd_m128_xmm => 16,
        Code::Maskmovdqu_rDI_xmm_xmm | Code::VEX_Vmaskmovdqu_rDI_xmm_xmm => 16,
        Code::VEX_Vmovntdq_m256_ymm | Code::EVEX_Vmovntdq_m256_ymm => 32,
        Code::VEX_Vmovntps_m256_ymm | Code::EVEX_Vmovntps_m256_ymm => 32,
        Code::VEX_Vmovntpd_m256_ymm | Code::EVEX_Vmovntpd_m256_ymm => 32,
        Code::EVEX_Vmovntdq_m512_zmm | Code::EVEX_Vmovntps_m512_zmm => 64,
        Code::EVEX_Vmovntpd_m512_zmm | Code::Movdir64b_r32_m512 | Code::Movdir64b_r64_m512 => 64,
        Code::Clzerod | Code::Clzeroq => 64,
        _ => return None,
    };
    Some((effect, bytes))
}

fn has_memory(instruction: &Instruction) -> bool {
    (0..instruction.op_count()).any(|n| instruction.op_kind(n) == OpKind::Memory)
}

/// The number of a register of 64 or 32 bits, as instructions have it.
fn number(register: Register) -> u8 {
    let (register, first) = (register as u32, Register::RAX as u32);
    let (half, last) = (Register::EAX as u32, Register::R15 as u32);
    if (first..=last).contains(&register) {
        (register - first) as u8
    } else if (half..first).contains(&register) {
        (register - half) as u8
    } else {
        NONE
    }
}

/// Of an instruction whose operand in memory is none of its own: the register that has the address.
fn implied(instruction: &Instruction) -> Option<Register> {
    match instruction.code() {
        Code::Maskmovq_rDI_mm_mm => Some(Register::RDI),
        Code::Maskmovdqu_rDI_xmm_xmm | Code::VEX_Vmaskmovdqu_rDI_xmm_xmm => Some(Register::RDI),
        Code::Movdir64b_r32_m512 | Code::Movdir64b_r64_m512 => Some(instruction.op0_register()),
        Code::Clzerod => Some(Register::EAX),
        Code::Clzeroq => Some(Register::RAX),
        _ => None,
    }
}

/// The operand in memory that an effect is about; where the code has it relative to itself that is told of any operand.
fn memory_of(instruction: &Instruction, decoder: &Decoder<'_>) -> Memory {
    let offsets = decoder.get_constant_offsets(instruction);
    let relative = instruction.is_ip_rel_memory_operand();
    let relative_at = if relative {
        offsets.displacement_offset() as u8
    } else {
        0
    };
    let none = Memory {
        base: NONE,
        index: NONE,
        scale: 1,
        relative_at,
        ..Memory::default()
    };
    let is_32_bit = |register: Register| {
        (Register::EAX as u32..Register::RAX as u32).contains(&(register as u32))
    };
    if let Some(register) = implied(instruction) {
        return Memory {
            base: number(register),
            is_32_bit: is_32_bit(register) || instruction.op0_kind() == OpKind::MemorySegEDI,
            segment: match instruction.code() {
                // `es` has no address.
                Code::Movdir64b_r32_m512 | Code::Movdir64b_r64_m512 => 0,
                _ => segment(instruction.memory_segment()),
            },
            ..none
        };
    }
    Memory {
        displacement: instruction.memory_displacement64(),
        base: number(instruction.memory_base()),
        index: number(instruction.memory_index()),
        scale: instruction.memory_index_scale() as u8,
        segment: segment(instruction.memory_segment()),
        is_32_bit: is_32_bit(instruction.memory_base())
            || is_32_bit(instruction.memory_index())
            || instruction.memory_base() == Register::EIP,
        relative_at,
    }
}

fn segment(register: Register) -> u8 {
    match register {
        Register::FS => 1,
        Register::GS => 2,
        _ => 0,
    }
}

/// What a sweep over a part of a file has come to.
#[derive(Default)]
struct Sweep {
    places: Vec<Place>,
    /// Where branches go to.
    targets: Vec<u64>,
}

/// Decodes bytes one instruction after the other; false if they don't end with one.
fn sweep(code: &[u8], address: u64, into: &mut Sweep) -> bool {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        let at = decoder.position();
        decoder.decode_out(&mut instruction);
        if instruction.is_invalid() {
            return false;
        }
        if instruction.op0_kind() == OpKind::NearBranch64 {
            into.targets.push(instruction.near_branch_target());
        }
        let Some((effect, bytes)) = effect_of(&instruction) else {
            continue;
        };
        into.places.push(Place {
            address: instruction.ip(),
            effect,
            code: code[at..decoder.position()].to_vec(),
            bytes,
            memory: memory_of(&instruction, &decoder),
        });
    }
    true
}

/// How many bytes that aren't known to be code look like flushes. Other instructions are too short to be told from data.
fn count_in_gap(code: &[u8], address: u64) -> u64 {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    let mut count = 0;
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        let found = effect_of(&instruction).map(|(effect, _)| effect);
        count += u64::from(matches!(found, Some(Effect::Flush | Effect::OrderedFlush)));
    }
    count
}

type File<'a> = ElfFile64<'a, Endianness>;

/// The functions of a file: where each begins, and ends.
fn functions(file: &File<'_>) -> Result<BTreeMap<u64, u64>> {
    let mut found = BTreeMap::new();
    if let Some(section) = file.section_by_name(".eh_frame") {
        let data = section.data().map_err(broken)?;
        let frames = EhFrame::new(data, LittleEndian);
        let bases = BaseAddresses::default().set_eh_frame(section.address());
        let mut entries = frames.entries(&bases);
        while let Some(entry) = entries.next().map_err(broken)? {
            let CieOrFde::Fde(partial) = entry else {
                continue;
            };
            let cie = |_: &EhFrame<EndianSlice<'_, LittleEndian>>, bases: &BaseAddresses, at| {
                frames.cie_from_offset(bases, at)
            };
            let frame = partial.parse(cie).map_err(broken)?;
            let end = frame.initial_address().saturating_add(frame.len());
            found.insert(frame.initial_address(), end);
        }
    }
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let (start, end) = (
            symbol.address(),
            symbol.address().saturating_add(symbol.size()),
        );
        if symbol.kind() != SymbolKind::Text || !symbol.is_definition() || end == start {
            continue;
        }
        // What unwind information has been made for is known better.
        let before = found.range(..end).next_back();
        if before.is_none_or(|(_, &other)| other <= start) {
            found.insert(start, end);
        }
    }
    Ok(found)
}

fn broken(error: impl std::fmt::Display) -> Error {
    Error::Invalid(format!("the program's file is broken: {error}"))
}

/// The bytes from one address to another, if they are code.
fn bytes_of<'a>(segments: &[(u64, &'a [u8])], start: u64, end: u64) -> Option<&'a [u8]> {
    let (first, data) = segments
        .iter()
        .rev()
        .find(|(first, data)| *first <= start && start < first.saturating_add(data.len() as u64))?;
    data.get((start - first) as usize..end.checked_sub(*first)? as usize)
}

/// Finds the instructions of a file, a program or a library for x86-64; others have none.
pub fn find(data: &[u8]) -> Result<Found> {
    let is_ours = data.len() >= 20
        && data.starts_with(b"\x7fELF\x02\x01")
        && u16::from_le_bytes([data[18], data[19]]) == elf::EM_X86_64;
    if !is_ours {
        return Ok(Found::default());
    }
    let file = File::parse(data).map_err(broken)?;
    let mut segments = Vec::new();
    for header in file.elf_program_headers() {
        let endian = Endianness::Little;
        if header.p_type(endian) == elf::PT_LOAD && header.p_flags(endian) & elf::PF_X != 0 {
            let code = header
                .data(endian, data)
                .map_err(|()| broken("a segment lies outside of it"))?;
            segments.push((header.p_vaddr(endian), code));
        }
    }
    segments.sort_unstable_by_key(|(first, _)| *first);
    let mut found = Found::default();
    let mut whole = Sweep::default();
    let mut known = Vec::new();
    for (start, end) in functions(&file)? {
        let Some(code) = bytes_of(&segments, start, end) else {
            continue;
        };
        known.push((start, end));
        let mut of_this = Sweep::default();
        if sweep(code, start, &mut of_this) {
            whole.places.append(&mut of_this.places);
        } else {
            // Something within it is no code, or is none of this processor's.
            found.left_alone += of_this
                .places
                .iter()
                .filter(|p| p.effect != Effect::Locked)
                .count() as u64;
        }
        whole.targets.append(&mut of_this.targets);
    }
    for section in file.sections().filter(|s| s.kind() == SectionKind::Text) {
        let (code, mut at) = (section.data().map_err(broken)?, section.address());
        let (first, last) = (at, at.saturating_add(code.len() as u64));
        for (start, end) in known.iter().copied().chain([(last, last)]) {
            if at < start && start <= last {
                let gap = (at - first) as usize..(start - first) as usize;
                found.left_alone += count_in_gap(&code[gap], at);
            }
            at = at.max(end.min(last));
        }
    }
    whole.places.sort_unstable_by_key(|p| p.address);
    whole.places.dedup_by_key(|p| p.address);
    whole.targets.sort_unstable();
    // Where something jumps into an instruction there is another one, too.
    let split = |p: &Place| {
        let next = whole.targets.partition_point(|&target| target <= p.address);
        let end = p.address.saturating_add(p.code.len() as u64);
        whole.targets.get(next).is_some_and(|&target| target < end)
    };
    let (left, places): (Vec<_>, Vec<_>) = whole.places.into_iter().partition(split);
    found.left_alone += left.iter().filter(|p| p.effect != Effect::Locked).count() as u64;
    found.places = places;
    // A locked instruction is a fence where something was asked for, which happens where there are other instructions of this kind.
    if !found
        .places
        .iter()
        .any(|p| matches!(p.effect, Effect::Flush | Effect::Stream))
    {
        found.places.retain(|p| p.effect != Effect::Locked);
    }
    Ok(found)
}
