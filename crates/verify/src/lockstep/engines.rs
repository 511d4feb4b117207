// SPDX-License-Identifier: Apache-2.0

//! Engines: jobs for the engines of a device, and their results (engines of tables: `tables`). A
//! job is started in registers, in a command page, or by an NVMe I/O command.

use design::engine::EngineInstance;

use crate::commands::{COPY, COUNT, DECODE, FILTER, PIPELINE, SHUFFLE, SORT};

/// Types of the engines in the status block.
const COPY_KIND: u32 = 16;
const SCAN_KIND: u32 = 17;
const DECODE_KIND: u32 = 18;
const SORT_KIND: u32 = 19;
const SHUFFLE_KIND: u32 = 20;
const PIPELINE_KIND: u32 = 21;
/// Alignment of a bitmap and its source, in bytes.
pub const LINE: u64 = 64;
/// Kind of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// `hw/engine/copy`.
    Copy,
    /// `hw/engine/scan`.
    Scan,
    /// `hw/engine/sorter`.
    Sort,
    /// `hw/engine/row_shuffle`.
    Shuffle,
    /// `hw/engine/dict_decode`.
    Decode,
    /// `hw/engine/pipeline`.
    Pipeline,
}

/// An engine of a device.
#[derive(Clone, Debug)]
pub struct Engine {
    /// Its kind.
    pub kind: EngineKind,
    /// Offset of its registers in BAR4.
    pub registers: u64,
    /// Offset of its command page in BAR4.
    pub page: u64,
    /// Numbers of arguments and outputs.
    pub words: u64,
    /// True if it has NVMe I/O commands, with their default opcodes.
    pub commands: bool,
}

impl Engine {
    /// The engine of a design. An error states why its jobs cannot be compared.
    pub fn of(plugged: &EngineInstance, media: u64) -> Result<Engine, String> {
        let manifest = &plugged.manifest;
        let name = &plugged.engine.name;
        let kind = match manifest.kind {
            COPY_KIND => EngineKind::Copy,
            SCAN_KIND => EngineKind::Scan,
            SORT_KIND => EngineKind::Sort,
            SHUFFLE_KIND => EngineKind::Shuffle,
            DECODE_KIND => EngineKind::Decode,
            PIPELINE_KIND => EngineKind::Pipeline,
            _ => {
                return Err(format!(
                    "engine {name}: differential runs know those of hw/engine alone"
                ))
            }
        };
        if plugged.media != (0..media) || plugged.local || plugged.engine.opcodes.is_some() {
            return Err(format!(
                "engine {name}: differential runs support engines that access all of the media and \
                 nothing else, with their default opcodes"
            ));
        }
        Ok(Engine {
            kind,
            registers: plugged.offset,
            page: plugged.page.unwrap_or_default(),
            words: (manifest.arguments.len() + manifest.outputs.len()) as u64,
            commands: !plugged.commands.is_empty(),
        })
    }

    /// Opcodes of its NVMe I/O commands.
    pub fn opcodes(&self) -> &'static [u8] {
        match (self.commands, self.kind) {
            (false, _) => &[],
            (true, EngineKind::Copy) => &[COPY],
            (true, EngineKind::Scan) => &[COUNT, FILTER],
            (true, EngineKind::Sort) => &[SORT],
            (true, EngineKind::Shuffle) => &[SHUFFLE],
            (true, EngineKind::Decode) => &[DECODE],
            (true, EngineKind::Pipeline) => &[PIPELINE],
        }
    }
}

/// A job of an engine, and its results.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its arguments.
    pub arguments: Vec<u64>,
    /// Blocks that it writes, and their content; empty where it is unknown.
    pub writes: Vec<(u64, Vec<u8>)>,
    /// Blocks that have to hold some content before.
    pub lays: Vec<(u64, Vec<u8>)>,
    /// Return value and output, if they are known.
    pub ends: Option<(u32, u64)>,
}
