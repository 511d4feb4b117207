// SPDX-License-Identifier: Apache-2.0

//! Finds a program's instructions that flush, fence and store past the cache.
//!
//! The search is sound where functions are known. Their bounds come from the unwind information
//! (`.eh_frame`), which compilers emit for each function, and from symbols. Everything within a
//! function is code. Bytes elsewhere may be data, and are counted, not followed.

use std::collections::BTreeMap;

use gimli::{BaseAddresses, CieOrFde, EhFrame, EndianSlice, LittleEndian, UnwindSection};
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{elf, Endianness, Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};
use pm::{Error, Result};

/// The longest instruction.
const LONGEST: usize = 15;
/// No register.
const NONE: u8 = 0xFF;

/// The effect of an instruction on persistent memory. Numbers are those of `shim/instructions.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Effect {
    /// Requests the write-back of a line, unordered: `clwb`, `clflushopt`.
    Flush = 1,
    /// Writes a line back before any later store: `clflush`.
    OrderedFlush = 2,
    /// Waits for requested write-backs: `sfence`, `mfence`.
    Fence = 3,
    /// The same, and changes memory: instructions with `lock`, and `xchg` with memory.
    Locked = 4,
    /// Stores past the cache: `movnti` and others.
    Stream = 5,
}

/// An instruction in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundInstruction {
    /// Its address, relative to where the file is loaded.
    pub address: u64,
    /// What it does.
    pub effect: Effect,
    code: Vec<u8>,
    /// Bytes of memory that it affects.
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
    /// Segment register of the address, 1: `fs`, 2: `gs`.
    segment: u8,
    /// Only the lower 32 bits of the address count.
    is_32_bit: bool,
    /// Offset of the displacement in the code, if it is relative to the instruction.
    relative_at: u8,
}

/// The instructions of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstructionList {
    /// In the order of their addresses.
    pub places: Vec<FoundInstruction>,
    /// Flushes, fences and stores past the cache in bytes that may not be code, which are not
    /// followed.
    pub left_alone: u64,
}

impl InstructionList {
    /// The number of instructions with an effect.
    pub fn count(&self, effect: Effect) -> usize {
        self.places.iter().filter(|p| p.effect == effect).count()
    }

    /// Encodes the result for the shim: the number of instructions, the number of those left alone,
    /// and 40 bytes for each instruction, little-endian.
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

/// The effect of an instruction, and the bytes of memory that it affects.
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

/// The number of a register of 64 or 32 bits, as instructions encode it.
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

/// The register with the address, for an instruction with an implied operand in memory.
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

/// The operand in memory of an effect. An address relative to the instruction is reported for any
/// operand.
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
                // `es` has no base address.
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

/// The result of decoding a part of a file.
#[derive(Default)]
struct DecodedRange {
    places: Vec<FoundInstruction>,
    /// The targets of branches.
    targets: Vec<u64>,
}

/// Decodes bytes, one instruction after the other; false if the last one is incomplete.
fn decode_range(code: &[u8], address: u64, into: &mut DecodedRange) -> bool {
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
        into.places.push(FoundInstruction {
            address: instruction.ip(),
            effect,
            code: code[at..decoder.position()].to_vec(),
            bytes,
            memory: memory_of(&instruction, &decoder),
        });
    }
    true
}

/// The number of byte sequences outside of known code that look like flushes. Other instructions
/// are too short to be distinguished from data.
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

/// The functions of a file: the begin and end of each.
fn functions(file: &File<'_>) -> Result<BTreeMap<u64, u64>> {
    let mut found = BTreeMap::new();
    if let Some(section) = file.section_by_name(".eh_frame") {
        let data = section.data().map_err(format_error)?;
        let frames = EhFrame::new(data, LittleEndian);
        let bases = BaseAddresses::default().set_eh_frame(section.address());
        let mut entries = frames.entries(&bases);
        while let Some(entry) = entries.next().map_err(format_error)? {
            let CieOrFde::Fde(partial) = entry else {
                continue;
            };
            let cie = |_: &EhFrame<EndianSlice<'_, LittleEndian>>, bases: &BaseAddresses, at| {
                frames.cie_from_offset(bases, at)
            };
            let frame = partial.parse(cie).map_err(format_error)?;
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
        // Unwind information is more precise.
        let before = found.range(..end).next_back();
        if before.is_none_or(|(_, &other)| other <= start) {
            found.insert(start, end);
        }
    }
    Ok(found)
}

fn format_error(error: impl std::fmt::Display) -> Error {
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

/// Finds the instructions of a program or a library for x86-64; other files have none.
pub fn find(data: &[u8]) -> Result<InstructionList> {
    let is_ours = data.len() >= 20
        && data.starts_with(b"\x7fELF\x02\x01")
        && u16::from_le_bytes([data[18], data[19]]) == elf::EM_X86_64;
    if !is_ours {
        return Ok(InstructionList::default());
    }
    let file = File::parse(data).map_err(format_error)?;
    let mut segments = Vec::new();
    for header in file.elf_program_headers() {
        let endian = Endianness::Little;
        if header.p_type(endian) == elf::PT_LOAD && header.p_flags(endian) & elf::PF_X != 0 {
            let code = header
                .data(endian, data)
                .map_err(|()| format_error("a segment lies outside of it"))?;
            segments.push((header.p_vaddr(endian), code));
        }
    }
    segments.sort_unstable_by_key(|(first, _)| *first);
    let mut found = InstructionList::default();
    let mut whole = DecodedRange::default();
    let mut known = Vec::new();
    for (start, end) in functions(&file)? {
        let Some(code) = bytes_of(&segments, start, end) else {
            continue;
        };
        known.push((start, end));
        let mut of_this = DecodedRange::default();
        if decode_range(code, start, &mut of_this) {
            whole.places.append(&mut of_this.places);
        } else {
            // A byte within it is no code, or the instruction is unknown.
            found.left_alone += of_this
                .places
                .iter()
                .filter(|p| p.effect != Effect::Locked)
                .count() as u64;
        }
        whole.targets.append(&mut of_this.targets);
    }
    for section in file.sections().filter(|s| s.kind() == SectionKind::Text) {
        let (code, mut at) = (section.data().map_err(format_error)?, section.address());
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
    // A branch into an instruction means that another instruction begins there.
    let split = |p: &FoundInstruction| {
        let next = whole.targets.partition_point(|&target| target <= p.address);
        let end = p.address.saturating_add(p.code.len() as u64);
        whole.targets.get(next).is_some_and(|&target| target < end)
    };
    let (left, places): (Vec<_>, Vec<_>) = whole.places.into_iter().partition(split);
    found.left_alone += left.iter().filter(|p| p.effect != Effect::Locked).count() as u64;
    found.places = places;
    // A locked instruction is a fence where a write-back was requested, which requires other
    // instructions of this kind.
    if !found
        .places
        .iter()
        .any(|p| matches!(p.effect, Effect::Flush | Effect::Stream))
    {
        found.places.retain(|p| p.effect != Effect::Locked);
    }
    Ok(found)
}
