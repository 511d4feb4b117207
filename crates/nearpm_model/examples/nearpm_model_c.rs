// SPDX-License-Identifier: Apache-2.0

//! The reference model as a shared library, which `hw/engine/nearpm/dv/nearpm_model.py` loads.

use std::slice;

use nearpm_model::{Engine, Words};
use spec::nearpm::{payload_crc, Descriptor, Header, LogState, RecordKind, RecordWriter};

/// A line of 64 bytes.
type Line = [u8; 64];

/// An engine whose pools are in the first `media` bytes. It exists until the process ends.
#[no_mangle]
pub extern "C" fn nearpm_new(media: u64) -> &'static mut Engine {
    Box::leak(Box::new(Engine::new(media)))
}

/// Executes a command; returns its return value.
///
/// # Safety
///
/// The memory has this size, and nothing else uses it during the call.
#[no_mangle]
pub unsafe extern "C" fn nearpm_execute(
    engine: &mut Engine,
    memory: *mut u8,
    bytes: usize,
    words: &Words,
    value: &mut u64,
) -> u32 {
    // SAFETY: the caller guarantees it.
    let memory = unsafe { slice::from_raw_parts_mut(memory, bytes) };
    let result = engine.execute(memory, words);
    *value = result.unwrap_or(0);
    result.err().map_or(0, |refusal| refusal as u32)
}

/// Writes the CRC of a descriptor or header.
#[no_mangle]
pub extern "C" fn nearpm_seal(line: &mut Line) {
    spec::nearpm::seal(line);
}

/// A descriptor. The fields are its generation, state, records and transaction.
#[no_mangle]
pub extern "C" fn nearpm_descriptor(fields: &[u64; 4], line: &mut Line) {
    let [generation, state, records, transaction] = *fields;
    let descriptor = Descriptor {
        generation,
        state: [LogState::Open, LogState::Committed, LogState::Pending(0)][state as usize],
        records: records as u32,
        transaction,
    };
    *line = descriptor.to_line();
}

/// The header of an undo record. The fields are its pool, thread, generation, object, number,
/// preceding record and transaction.
///
/// # Safety
///
/// The payload has this size.
#[no_mangle]
pub unsafe extern "C" fn nearpm_header(
    fields: &[u64; 7],
    payload: *const u8,
    bytes: usize,
    line: &mut Line,
) {
    // SAFETY: the caller guarantees it.
    let payload = unsafe { slice::from_raw_parts(payload, bytes) };
    let [pool, thread, generation, object, number, previous, transaction] = *fields;
    let header = Header {
        kind: RecordKind::Undo,
        pool: pool as u8,
        thread: thread as u8,
        writer: RecordWriter::Engine,
        generation,
        object,
        bytes: bytes as u32,
        number: number as u32,
        previous,
        transaction,
        payload_crc: payload_crc(payload),
    };
    *line = header.to_line();
}
