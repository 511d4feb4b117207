// SPDX-License-Identifier: Apache-2.0

//! Engines: their description in a design (`[[engine]]`), their manifest (`engine.toml`), and the
//! device top that contains them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sim::parse_digits;
use spec::bar4::{PAGES, PAGE_STEP, REGISTERS};
use spec::regs::engine::{ARGUMENTS, ARGUMENTS_STRIDE};

use crate::error::{self, check, Error};
use crate::shipped::Shipped;
use crate::{Bytes, Design};

/// Maximum number of engines of a device (`nearside_pkg::MaxEngines`).
pub const MAX_ENGINES: usize = 6;
/// Maximum number of arguments of a page command: 64 bytes without the first 8.
const MOST_PAGE_ARGUMENTS: usize = 7;
/// Offset of the first of `words`.
const FIRST_WORD: u64 = 0x100;
/// Maximum number of NVMe I/O commands of an engine (`nearside_pkg::MaxEngineCommands`).
const MAX_COMMANDS: usize = 8;
/// The vendor specific I/O opcodes (NVMe 1.4, figure 346).
const OPCODES: std::ops::RangeInclusive<u8> = 0x80..=0xFF;
/// Kinds below this are those of the device's fixed blocks.
const FIRST_KIND: u32 = 16;
/// Reserved names: the other masters in `qos`, and the shell's instance in the top.
const TAKEN: [&str; 3] = ["pm", "nvme", "shell"];
/// Argument names that the generated Python functions use.
const OWN_ARGUMENTS: [&str; 2] = ["self", "timeout_us"];
/// The folder of the program's engines, and the file that describes one.
const FOLDER: &str = "hw/engine";
const MANIFEST: &str = "engine.toml";
/// The device top that engines are inserted into.
pub const TOP: &str = "hw/top/rtl/nearside_top.sv";

/// An engine of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Engine {
    /// Name for programs, and of its instance: letters, digits and `_`, starting with a letter.
    pub name: String,
    /// Its folder: a name means `hw/engine/<name>`, a value with `/` is a path, relative to the
    /// checkout, or to the working directory where there is no checkout.
    pub engine: String,
    /// Numbers of the namespaces that it may access, consecutive and at least one. Without this
    /// key: the whole media.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<u32>>,
    /// Memories that it may access in addition to the storage. Without this key: all memories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memories: Option<Vec<String>>,
    /// Opcodes of its NVMe I/O commands, in the order of `engine.toml`. Without this key the first
    /// engine of a kind has those of `engine.toml` and the others have no commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opcodes: Option<Vec<u8>>,
    /// Values of its parameters. The others have the defaults of `engine.toml`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, u64>,
}

impl Engine {
    /// The first and the last namespace that it may access, if the design lists them.
    fn first_and_last(&self) -> Option<(u32, u32)> {
        let namespaces = self.namespaces.as_deref()?;
        Some((*namespaces.first()?, *namespaces.last()?))
    }
}

/// An NVMe I/O command that an engine executes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// Its name.
    pub name: String,
    /// 80h to FFh. The lowest two bits are the data direction: 0 none, 1 from the host, 2 to the
    /// host, 3 both.
    pub opcode: u8,
    /// It may change namespace data.
    #[serde(default)]
    pub changes: bool,
}

/// A parameter of an engine's module that a design may set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Its name in the module.
    pub module: String,
    /// Its default value.
    pub default: u64,
    /// The minimum value.
    pub least: u64,
    /// The maximum value.
    pub most: u64,
}

/// A field of an argument or of a word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// The number of a bit, or `high:low`.
    pub bits: String,
    /// Its meaning.
    pub description: String,
}

/// Read-only registers of 32 bits, beyond arguments and outputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Word {
    /// Its name.
    pub name: String,
    /// Offset of the first one, a multiple of 4 from `0x100` on.
    pub offset: u64,
    /// Number of consecutive registers; without this key 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Its meaning.
    pub description: String,
}

/// The contents of `engine.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Name of the engine and of its module.
    pub name: String,
    /// Its function, in a sentence.
    #[serde(default)]
    pub description: String,
    /// Its type in the status block. Those below 0x8000_0000 are Nearside's.
    pub kind: u32,
    /// `major.minor`.
    pub version: String,
    /// Its file list, in its folder.
    pub filelist: PathBuf,
    /// Bytes of its registers: a power of two from 4 KiB to 512 KiB.
    pub registers: Bytes,
    /// It has a memory master in each channel of the storage.
    #[serde(default)]
    pub memory: bool,
    /// It has a memory master in each channel of the local memory.
    #[serde(default)]
    pub local: bool,
    /// It has a command page. Its commands have up to 7 arguments and at most one output.
    #[serde(default)]
    pub page: bool,
    /// It has the access filter: accesses of the PM window and of the NVMe controller to each
    /// channel pass through it. At most one engine of a device has it.
    #[serde(default)]
    pub hook: bool,
    /// Bytes at the end of the media that are reserved for the engine. It saves its state there at
    /// a function reset or a power loss. Only with the access filter and `memory`.
    #[serde(default)]
    pub reserved: Bytes,
    /// It has a master to host memory.
    #[serde(default)]
    pub host: bool,
    /// Its MSI-X vectors, up to 8.
    #[serde(default)]
    pub interrupts: u8,
    /// Names of its arguments, 64 bits each; number n is at register `0x20 + 0x10 * n`.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Optional arguments, which are 0 if a program leaves them out.
    #[serde(default)]
    pub optional: Vec<String>,
    /// Names of its outputs, 64 bits each, in the registers after the arguments.
    #[serde(default)]
    pub outputs: Vec<String>,
    /// Names of the bits of its return value, from bit 0 on. Each of them is an error.
    #[serde(default)]
    pub results: Vec<String>,
    /// Further registers.
    #[serde(default)]
    pub words: Vec<Word>,
    /// Meanings of arguments, outputs and results.
    #[serde(default)]
    pub descriptions: BTreeMap<String, String>,
    /// Fields of arguments and words.
    #[serde(default)]
    pub fields: BTreeMap<String, BTreeMap<String, Field>>,
    /// NVMe I/O commands, up to 8.
    #[serde(default)]
    pub commands: Vec<Command>,
    /// Parameters of its module that a design may set.
    #[serde(default)]
    pub parameters: BTreeMap<String, Parameter>,
}

/// An engine of a device with its resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineInstance {
    /// Its description in the design.
    pub engine: Engine,
    /// Its manifest.
    pub manifest: Manifest,
    /// Its file list.
    pub filelist: PathBuf,
    /// Number among the engines of its kind.
    pub instance: u32,
    /// Registers in BAR4.
    pub offset: u64,
    /// Its command page in BAR4, if it has one.
    pub page: Option<u64>,
    /// Media addresses that it may access.
    pub media: std::ops::Range<u64>,
    /// It may access the local memory.
    pub local: bool,
    /// Its first MSI-X vector, if it has any.
    pub vector: u16,
    /// Its NVMe I/O commands, with their opcodes in this device.
    pub commands: Vec<Command>,
    /// The namespaces in which they may be used, by their numbers.
    pub namespaces: std::ops::RangeInclusive<u32>,
}

/// Each of these names occurs once, in upper or lower case, since constants of the C header have no
/// other distinction.
fn once<'a>(
    key: impl Fn(usize) -> String,
    names: impl Iterator<Item = &'a String>,
) -> Result<(), Error> {
    let mut seen: Vec<String> = Vec::new();
    for (n, name) in names.enumerate() {
        let upper = name.to_ascii_uppercase();
        check(&key(n), name, !seen.contains(&upper), "each name once")?;
        seen.push(upper);
    }
    Ok(())
}

fn identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.len() <= 32
}

impl Manifest {
    /// Reads a manifest from text. Errors name `path`. An embedded one has no files beside it.
    fn parse(text: &str, path: &Path, embedded: bool) -> Result<Manifest, Error> {
        let manifest: Manifest = error::parse(text, path)?;
        let there = embedded || path.with_file_name(&manifest.filelist).is_file();
        let given = manifest.filelist.display();
        manifest
            .validate()
            .and_then(|()| check("filelist", given, there, "a file in its folder"))
            .map_err(|e| e.in_text(path, text))?;
        Ok(manifest)
    }

    fn validate(&self) -> Result<(), Error> {
        let allowed = "up to 32 letters, digits and '_', a letter first";
        check("name", &self.name, identifier(&self.name), allowed)?;
        let allowed = "16 and more, from 0x80000000 on for those that are not Nearside's";
        check("kind", self.kind, self.kind >= FIRST_KIND, allowed)?;
        let size = self.registers.0;
        let fits = size.is_power_of_two() && (4096..=512 << 10).contains(&size);
        let allowed = "a power of two from 4 KiB to 512 KiB";
        check("registers", self.registers, fits, allowed)?;
        let allowed = "only with memory = true";
        check("local", self.local, self.memory || !self.local, allowed)?;
        let reserves = self.reserved.0;
        let ok = reserves == 0 || (self.hook && self.memory && reserves % 4096 == 0);
        let allowed = "a multiple of 4096, with hook = true and memory = true";
        check("reserved", self.reserved, ok, allowed)?;
        let allowed = "at most 8";
        check("interrupts", self.interrupts, self.interrupts <= 8, allowed)?;
        let version = self.version_word();
        let allowed = "\"major.minor\", each below 65536";
        check("version", &self.version, version.is_some(), allowed)?;
        let commands: Vec<String> = self.commands.iter().map(|c| c.name.clone()).collect();
        let allowed = format!("at most {MAX_COMMANDS}");
        let few = commands.len() <= MAX_COMMANDS;
        check("commands", commands.len(), few, &allowed)?;
        let key = |n| format!("commands[{n}].opcode");
        opcodes(key, self.commands.iter().map(|c| c.opcode))?;
        for (n, name) in commands.iter().enumerate() {
            let key = format!("commands[{n}].name");
            check(&key, name, identifier(name), "letters, digits and '_'")?;
        }
        once(|n| format!("commands[{n}].name"), commands.iter())?;
        for (key, names) in [
            ("arguments", &self.arguments),
            ("outputs", &self.outputs),
            ("results", &self.results),
        ] {
            let allowed = "names of letters, digits and '_'";
            (names.iter()).try_for_each(|name| check(key, name, identifier(name), allowed))?;
        }
        once(
            |n| match n < self.arguments.len() {
                true => "arguments".into(),
                false => "outputs".into(),
            },
            self.arguments.iter().chain(&self.outputs),
        )?;
        once(|_| "results".into(), self.results.iter())?;
        for name in &self.arguments {
            let allowed = format!("other names than {}", OWN_ARGUMENTS.join(", "));
            let free = !OWN_ARGUMENTS.contains(&name.as_str());
            check("arguments", name, free, &allowed)?;
        }
        let (arguments, outputs) = (self.arguments.len(), self.outputs.len());
        let fits = (1..=MOST_PAGE_ARGUMENTS).contains(&arguments) && outputs <= 1;
        let given = format!("true with {arguments} arguments and {outputs} outputs");
        let allowed = "1 to 7 arguments and at most one output with a page";
        check("page", given, !self.page || fits, allowed)?;
        for name in &self.optional {
            let known = self.arguments.contains(name);
            check("optional", name, known, "names of `arguments`")?;
        }
        let most = (size - ARGUMENTS) / ARGUMENTS_STRIDE;
        let words = (self.arguments.len() + self.outputs.len()) as u64;
        let allowed = format!("at most {most} together with outputs, as the registers have room");
        check("arguments", words, words <= most, &allowed)?;
        let results = self.results.len();
        check("results", results, results <= 32, "at most 32")?;
        for word in &self.words {
            let count = word.count.unwrap_or(1);
            let fits = word.offset % 4 == 0 && (FIRST_WORD..size).contains(&word.offset);
            let fits = fits && (1..=(size - word.offset) / 4).contains(&count);
            let given = format!("{count} at {:#x}", word.offset);
            let allowed = "multiples of 4 from 0x100 on, within the registers";
            check("words", given, fits, allowed)?;
        }
        let values = || self.arguments.iter().chain(&self.outputs);
        for name in self.descriptions.keys() {
            let known = values().chain(&self.results).any(|n| n == name);
            let allowed = "names of `arguments`, `outputs` and `results`";
            check("descriptions", name, known, allowed)?;
        }
        for (name, fields) in &self.fields {
            let known = values()
                .chain(self.words.iter().map(|w| &w.name))
                .any(|n| n == name);
            let allowed = "names of `arguments`, `outputs` and `words`";
            check("fields", name, known, allowed)?;
            for (field, Field { bits, .. }) in fields {
                let (high, low) = bits.split_once(':').unwrap_or((bits, bits));
                let (high, low): (Option<u8>, Option<u8>) = (parse_digits(high), parse_digits(low));
                let ok = low.is_some() && low <= high && high < Some(64);
                let key = format!("fields.{name}.{field}");
                check(
                    &key,
                    bits,
                    ok,
                    "the number of a bit, or \"high:low\", below 64",
                )?;
            }
        }
        for (name, parameter) in &self.parameters {
            let key = format!("parameters.{name}");
            let allowed = "a module's name of letters, digits and '_'";
            let module = &parameter.module;
            check(&key, module, identifier(module), allowed)?;
            let Parameter {
                default,
                least,
                most,
                ..
            } = *parameter;
            let ok = (least..=most).contains(&default) && most <= u64::from(u32::MAX);
            let given = format!("default {default}, least {least}, most {most}");
            check(&key, given, ok, "least <= default <= most < 2^32")?;
        }
        Ok(())
    }

    fn version_word(&self) -> Option<u32> {
        let (major, minor) = self.version.split_once('.')?;
        let (major, minor): (u16, u16) = (parse_digits(major)?, parse_digits(minor)?);
        Some(u32::from(major) << 16 | u32::from(minor))
    }
}

/// Checks the opcodes of one engine.
fn opcodes(key: impl Fn(usize) -> String, opcodes: impl Iterator<Item = u8>) -> Result<(), Error> {
    let mut seen = Vec::new();
    for (n, opcode) in opcodes.enumerate() {
        let key = key(n);
        let given = format!("{opcode:#x}");
        let allowed = "0x80 to 0xff, the vendor specific ones";
        check(&key, &given, OPCODES.contains(&opcode), allowed)?;
        check(&key, &given, !seen.contains(&opcode), "each opcode once")?;
        seen.push(opcode);
    }
    Ok(())
}

impl EngineInstance {
    /// The value of one of its parameters, if it has it.
    pub fn parameter(&self, name: &str) -> Option<u64> {
        let given = self.engine.parameters.get(name).copied();
        given.or_else(|| self.manifest.parameters.get(name).map(|p| p.default))
    }
}

impl Engine {
    /// Its commands in this device; `first`: it is the first engine of its kind.
    fn commands(&self, manifest: &Manifest, first: bool) -> Vec<Command> {
        let mut commands = manifest.commands.clone();
        let Some(own) = &self.opcodes else {
            return if first { commands } else { Vec::new() };
        };
        commands.truncate(own.len());
        for (command, opcode) in commands.iter_mut().zip(own) {
            command.opcode = *opcode;
        }
        commands
    }
}

impl Design {
    /// The engines of this design, each with its manifest and its resources in the device.
    pub fn engines(&self) -> Result<Vec<EngineInstance>, Error> {
        let shipped = Shipped::new()?;
        let mut next = REGISTERS.start;
        let mut instances: BTreeMap<u32, u32> = BTreeMap::new();
        let mut placed = Vec::new();
        let mut vector = self.nvme.io_queues as u16 + 1;
        for (n, engine) in self.engine.iter().enumerate() {
            let check = |field: &str, value: String, ok: bool, allowed: &str| {
                let key = format!("engine[{n}].{field}");
                error::check(&key, value, ok, allowed).map_err(|e| self.origin.locate(e))
            };
            let named = !engine.engine.contains('/');
            let parent = Path::new(if named { FOLDER } else { "" });
            let found = shipped.read(&parent.join(&engine.engine).join(MANIFEST))?;
            let Some((file, text)) = found else {
                let names = shipped.names(FOLDER, &format!("/{MANIFEST}"));
                let allowed = format!("{names}, or a folder with an {MANIFEST}");
                check("engine", engine.engine.clone(), false, &allowed)?;
                continue;
            };
            let manifest = Manifest::parse(&text, &file, named && shipped.root.is_none())?;
            let size = manifest.registers.0;
            let offset = next.next_multiple_of(size);
            next = offset + size;
            let allowed = "registers of all engines that fit into 512 KiB of BAR4";
            let given = format!("{:?} with {}", engine.engine, manifest.registers);
            check("engine", given, next <= REGISTERS.end, allowed)?;
            let instance = instances.entry(manifest.kind).or_default();
            let first = vector;
            vector += u16::from(manifest.interrupts);
            let allowed = "MSI-X vectors of queues and engines that are at most 128 together";
            let given = format!("{:?} with {} of them", engine.engine, manifest.interrupts);
            check("engine", given, vector <= 128, allowed)?;
            let commands = engine.commands(&manifest, *instance == 0);
            let mut others = placed.iter();
            let alone = !manifest.hook || !others.any(|e: &EngineInstance| e.manifest.hook);
            let allowed = "at most one engine with the access hook";
            check("engine", format!("{:?}", engine.engine), alone, allowed)?;
            if let Some(own) = &engine.opcodes {
                let most = manifest.commands.len();
                let allowed = format!("at most one for each of its {most} commands");
                check("opcodes", format!("{own:x?}"), own.len() <= most, &allowed)?;
            }
            for (name, value) in &engine.parameters {
                let key = format!("parameters.{name}");
                let Some(parameter) = manifest.parameters.get(name) else {
                    let names: Vec<&str> = manifest.parameters.keys().map(String::as_str).collect();
                    let allowed = match names.is_empty() {
                        true => format!("none: {:?} has no parameters", engine.engine),
                        false => format!("one of {}", names.join(", ")),
                    };
                    check(&key, value.to_string(), false, &allowed)?;
                    continue;
                };
                let Parameter { least, most, .. } = *parameter;
                let allowed = format!("{least} to {most}");
                let fits = (least..=most).contains(value);
                check(&key, value.to_string(), fits, &allowed)?;
            }
            for (command, standard) in commands.iter().zip(&manifest.commands) {
                let (given, own) = (command.opcode, standard.opcode);
                let allowed = format!(
                    "one whose lowest two bits are those of {own:#x}, which say what data is moved"
                );
                check(
                    "opcodes",
                    format!("{given:#x}"),
                    given & 3 == own & 3,
                    &allowed,
                )?;
                let mut others = placed.iter().flat_map(|e: &EngineInstance| &e.commands);
                let alone = others.all(|other| other.opcode != command.opcode);
                let allowed = "a unique opcode: `opcodes` in the design sets others";
                let opcode = format!("{:#x}", command.opcode);
                check("opcodes", opcode, alone, allowed)?;
            }
            let all = 1..=self.nvme.namespaces.len().max(1) as u32;
            let own = engine.first_and_last();
            placed.push(EngineInstance {
                commands,
                namespaces: own.map_or(all, |(first, last)| first..=last),
                vector: first,
                filelist: file.with_file_name(&manifest.filelist),
                instance: *instance,
                offset,
                page: manifest
                    .page
                    .then(|| PAGES.start + PAGE_STEP * placed.len() as u64),
                media: self.reach(engine),
                local: manifest.local && self.reaches_local(engine),
                engine: engine.clone(),
                manifest,
            });
            *instance += 1;
        }
        self.reserve(&mut placed)?;
        Ok(placed)
    }

    /// Checks that an engine's reserved range at the end of the media overlaps no namespace and no
    /// other engine, and excludes it from the latter.
    fn reserve(&self, instances: &mut [EngineInstance]) -> Result<(), Error> {
        let Some(owner) = instances.iter().position(|e| e.manifest.reserved.0 > 0) else {
            return Ok(());
        };
        let engine = &instances[owner];
        let reserved = engine.manifest.reserved;
        let check = |key: &str, value: String, ok: bool, allowed: &str| {
            error::check(key, value, ok, allowed).map_err(|e| self.origin.locate(e))
        };
        let whole = engine.engine.namespaces.is_none();
        let allowed = format!(
            "no such key: {:?} reaches the whole media",
            engine.engine.engine
        );
        let key = format!("engine[{owner}].namespaces");
        check(
            &key,
            format!("{:?}", engine.engine.namespaces),
            whole,
            &allowed,
        )?;
        let given = match self.nvme.namespaces.is_empty() {
            true => "none".to_string(),
            false => format!("{:?}", self.nvme.namespaces),
        };
        let free = self.nvme.unclaimed_bytes(self.media.bytes) >= reserved.0;
        let allowed = format!(
            "sizes that leave the last {reserved} of the media to {:?}",
            engine.engine.engine
        );
        check("nvme.namespaces", given, free, &allowed)?;
        let end = self.media.bytes.0 - reserved.0;
        for (n, other) in instances.iter_mut().enumerate() {
            if n != owner {
                other.media.end = other.media.end.min(end);
            }
        }
        Ok(())
    }

    /// MSI-X vectors of the device: one for each queue, then those of its engines.
    pub fn vectors(&self) -> Result<u16, Error> {
        let engines = self.engines()?;
        let raised: u16 = engines
            .iter()
            .map(|e| u16::from(e.manifest.interrupts))
            .sum();
        Ok(self.nvme.io_queues as u16 + 1 + raised)
    }

    /// Media addresses that an engine may access.
    fn reach(&self, engine: &Engine) -> std::ops::Range<u64> {
        let Some((first, last)) = engine.first_and_last() else {
            return 0..self.media.bytes.0;
        };
        let start = self.nvme.extent(first, self.media.bytes).start;
        // The bytes between a namespace's end and the next page belong to no namespace.
        let end = self.nvme.extent(last, self.media.bytes).end;
        start..end.next_multiple_of(4096)
    }

    /// An engine may access the local memory of this design.
    fn reaches_local(&self, engine: &Engine) -> bool {
        let allowed = |name: &String| engine.memories.as_ref().is_none_or(|m| m.contains(name));
        self.memory.iter().any(|memory| allowed(&memory.name))
    }

    pub(crate) fn validate_engines(&self) -> Result<(), Error> {
        let count = self.engine.len();
        let allowed = format!("at most {MAX_ENGINES} of them");
        check("engine", count, count <= MAX_ENGINES, &allowed)?;
        for (n, engine) in self.engine.iter().enumerate() {
            let key = |field: &str| format!("engine[{n}].{field}");
            let allowed = "up to 32 letters, digits and '_', a letter first";
            check(
                &key("name"),
                &engine.name,
                identifier(&engine.name),
                allowed,
            )?;
            let same = |e: &Engine| e.name.eq_ignore_ascii_case(&engine.name);
            let alone = !self.engine[..n].iter().any(same);
            let allowed = "a unique name, in upper or lower case";
            check(&key("name"), &engine.name, alone, allowed)?;
            let free = !TAKEN.contains(&engine.name.as_str());
            let allowed = format!("other names than {}", TAKEN.join(", "));
            check(&key("name"), &engine.name, free, &allowed)?;
            let of = |_| key("opcodes");
            opcodes(of, engine.opcodes.iter().flatten().copied())?;
            let number = self.nvme.namespaces.len().max(1);
            if let Some(namespaces) = &engine.namespaces {
                let known = namespaces
                    .iter()
                    .all(|&ns| (1..=number).contains(&(ns as usize)));
                let row = namespaces.windows(2).all(|pair| pair[1] == pair[0] + 1);
                let good = known && row && !namespaces.is_empty();
                let allowed = format!(
                    "numbers from 1 to {number} that follow each other, one at least, or no such \
                     line"
                );
                check(
                    &key("namespaces"),
                    format!("{namespaces:?}"),
                    good,
                    &allowed,
                )?;
            }
            let memories: Vec<&str> = self.memory.iter().map(|m| m.name.as_str()).collect();
            let own = engine.memories.iter().flatten();
            let unknown = own
                .map(String::as_str)
                .find(|name| !memories.contains(name));
            let allowed = match memories.is_empty() {
                true => "none, for this design has no [[memory]]".to_string(),
                false => format!("names of [[memory]]: {}", memories.join(", ")),
            };
            let known = unknown.is_none();
            check(
                &key("memories"),
                unknown.unwrap_or_default(),
                known,
                &allowed,
            )?;
        }
        Ok(())
    }
}

/// The device top of the repository with these engines inserted.
pub fn top(root: &Path, engines: &[EngineInstance]) -> Result<String, Error> {
    let path = root.join(TOP);
    let mut text = error::read(&path)?;
    if engines.is_empty() {
        return Ok(text);
    }
    let count = engines.len();
    let entries: Vec<String> = engines.iter().rev().map(entry).collect();
    let mut instances: Vec<String> = engines.iter().enumerate().map(instance).collect();
    if engines.iter().all(|e| e.manifest.reserved.0 == 0) {
        instances.push("  logic unused;\n  assign unused = engine_stop;\n".into());
    }
    let begin = "  // begin engines\n";
    let end = "  // end engines\n";
    let region = text.find(begin).zip(text.find(end));
    let Some((from, to)) = region.filter(|(from, to)| from < to) else {
        return Err(Error::NoEngineRegion.in_file(&path, None));
    };
    text.replace_range(from + begin.len()..to, &instances.concat());
    for (old, new) in [
        ("NumEngines = 0;", format!("NumEngines = {count};")),
        ("Slots = 1;", format!("Slots = {count};")),
        (
            "Engines = '0;",
            format!("Engines = {{\n{}\n  }};", entries.join(",\n")),
        ),
    ] {
        if !text.contains(old) {
            return Err(Error::NoText(old).in_file(&path, None));
        }
        text = text.replacen(old, &new, 1);
    }
    Ok(text)
}

fn entry(engine: &EngineInstance) -> String {
    let manifest = &engine.manifest;
    let version = manifest.version_word().unwrap_or_default();
    let commands = engine.commands.iter().zip(0..);
    let opcodes = commands
        .clone()
        .fold(0u64, |all, (c, n)| all | u64::from(c.opcode) << (8 * n));
    let changes = commands.fold(0u8, |all, (c, n)| all | u8::from(c.changes) << n);
    let namespaces = (engine.namespaces.clone()).fold(0u16, |all, ns| all | 1 << (ns - 1));
    format!(
        "    engine_t'{{kind: 32'd{}, version: 32'h{version:08x}, instance_: 32'd{}, offset: \
         32'h{:x}, size: 32'h{:x}, \
         cap0: 32'h{:x}, cap1: '0, memory: 1'b{}, local_: 1'b{}, local_open: 1'b{}, host: 1'b{}, \
         vectors: 8'd{}, first: 64'h{:x}, limit: 64'h{:x}, page: 1'b{}, filter: 1'b{}, reserved: \
         64'h{:x}, commands: 8'd{}, \
         opcodes: 64'h{opcodes:x}, changes: 8'h{changes:x}, namespaces: 16'h{namespaces:x}}}",
        manifest.kind,
        engine.instance,
        engine.offset,
        manifest.registers.0,
        manifest.reserved.0,
        u32::from(manifest.memory),
        u32::from(manifest.local),
        u32::from(engine.local),
        u32::from(manifest.host),
        manifest.interrupts,
        engine.media.start,
        engine.media.end,
        u32::from(manifest.page),
        u32::from(manifest.hook),
        manifest.reserved.0,
        engine.commands.len(),
    )
}

/// An engine's instance. Ports that it lacks are not connected.
fn instance((number, engine): (usize, &EngineInstance)) -> String {
    let manifest = &engine.manifest;
    let (module, name) = (&manifest.name, &engine.engine.name);
    let mut sizes = Vec::new();
    if manifest.memory || manifest.hook {
        sizes.extend([
            ".NumChannels(NumChannels)",
            ".Granule    (Granule)",
            ".MediaBytes (MediaBytes)",
        ]);
    }
    if manifest.local {
        sizes.extend([
            ".LocalChannels(LocalChannels)",
            ".LocalGranule (LocalGranule)",
            ".LocalBase    (local_base(MediaBytes, LocalBytes))",
            ".LocalBytes   (LocalBytes)",
        ]);
    }
    let mut sizes: Vec<String> = sizes.into_iter().map(String::from).collect();
    for (name, value) in &engine.engine.parameters {
        let parameter = manifest.parameters.get(name);
        if let Some(parameter) = parameter.filter(|p| p.default != *value) {
            sizes.push(format!(".{}({value})", parameter.module));
        }
    }
    let sizes = match sizes.is_empty() {
        true => String::new(),
        false => format!(" #(\n    {}\n  )", sizes.join(",\n    ")),
    };
    let mut idle = String::new();
    let mut ports = vec![
        format!(".clk_i (engine_clk[{number}])"),
        format!(".rst_ni(engine_rst_n[{number}])"),
        format!(".busy_o(engine_busy[{number}])"),
        format!(".s_axil(engine_axil[{number}])"),
    ];
    if manifest.memory {
        ports.push(format!(
            ".m_mem (engine_mem[{number}*NumChannels+:NumChannels])"
        ));
    }
    if manifest.local {
        ports.push(format!(
            ".m_local(engine_local[{number}*LocalPorts+:LocalPorts])"
        ));
    }
    if manifest.hook {
        for (port, bus) in [
            ("s_hook_pm", "filter_pm"),
            ("m_hook_pm", "filtered_pm"),
            ("s_hook_nvme", "filter_nvme"),
            ("m_hook_nvme", "filtered_nvme"),
        ] {
            ports.push(format!(".{port}({bus})"));
        }
    }
    if manifest.reserved.0 > 0 {
        ports.push(".stop_i(engine_stop)".into());
        ports.push(format!(".saved_o(engine_saved[{number}])"));
        ports.push(format!(".open_o(engine_open[{number}])"));
    } else {
        idle += &format!(
            "  assign engine_saved[{number}] = 1'b1;\n  assign engine_open[{number}] = 1'b1;\n"
        );
    }
    if manifest.host {
        ports.push(format!(".m_host(engine_host[{number}])"));
    }
    let vectors = manifest.interrupts;
    if manifest.commands.is_empty() {
        let port = format!("engine_nvme[{number}]");
        idle += &format!(
            "  assign {port}.cmd_ready = 1'b0;\n  assign {port}.done = '0;\n  assign \
         {port}.done_valid = 1'b0;\n"
        );
    } else {
        ports.push(format!(".s_nvme(engine_nvme[{number}])"));
    }
    if manifest.page {
        ports.push(format!(".s_page(engine_page[{number}])"));
    } else {
        let port = format!("engine_page[{number}]");
        idle += &format!(
            "  assign {port}.cmd_ready = 1'b0;\n  assign {port}.done = '0;\n  assign \
         {port}.done_valid = 1'b0;\n"
        );
    }
    if vectors > 0 {
        ports.push(format!(".irq_o (engine_irq[{number}][{}:0])", vectors - 1));
    }
    if vectors < 8 {
        idle += &format!("  assign engine_irq[{number}][7:{vectors}] = '0;\n");
    }
    let ports = ports.join(",\n    ");
    format!("  {module}{sizes} u_{name} (\n    {ports}\n  );\n{idle}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> PathBuf {
        crate::checkout().unwrap()
    }

    fn parse(engines: &str) -> Result<Design, String> {
        let text = format!(
            "name = \"x\"\n[media]\nbytes = \"1 MiB\"\n[nvme]\nnamespaces = [\"256 \
         KiB\", 512, \"64 KiB\"]\n{engines}"
        );
        Design::parse(&text, Path::new("x.toml")).map_err(|e| e.to_string())
    }

    #[test]
    fn engines_are_placed_in_bar4_and_on_the_media() {
        let design = parse(
            "[[engine]]\nname = \"a\"\nengine = \"copy\"\n[[engine]]\nname = \"b\"\nengine = \
             \"copy\"\nnamespaces = [2, 3]\n",
        )
        .unwrap();
        let engines = design.engines().unwrap();
        let places: Vec<_> = engines
            .iter()
            .map(|e| (e.instance, e.offset, e.media.clone()))
            .collect();
        assert_eq!(places[0], (0, 0x8_0000, 0..1 << 20));
        assert_eq!(places[1], (1, 0x8_1000, 256 << 10..(256 + 4 + 64) << 10));
        let text = top(&root(), &engines).unwrap();
        assert!(
            text.contains("NumEngines = 2;")
                && text.contains(") u_a (")
                && text.contains(") u_b (")
        );
        assert!(!text.contains("assign engine_busy = '0;"));
    }

    #[test]
    fn engine_errors_name_the_file_and_the_allowed_values() {
        let one = |extra: &str| format!("[[engine]]\nname = \"a\"\nengine = \"copy\"\n{extra}");
        for (text, why) in [
            (
                one("").replace("\"a\"", "\"1a\""),
                "x.toml:7: engine[0].name = 1a: allowed is up to 32 letters",
            ),
            (
                format!("{}{}", one(""), one("")),
                "x.toml:10: engine[1].name = a: allowed is a unique name",
            ),
            (
                one("namespaces = [4]\n"),
                "engine[0].namespaces = [4]: allowed is numbers from 1 to 3",
            ),
            (
                one("namespaces = []\n"),
                "engine[0].namespaces = []: allowed is numbers from 1 to 3 that follow each other, \
                 one at least",
            ),
            (
                format!(
                    "{}{}",
                    one("").replace("\"a\"", "\"b\""),
                    one("namespaces = [1, 3]\n")
                ),
                "x.toml:12: engine[1].namespaces = [1, 3]: allowed is numbers",
            ),
            (
                one("opcodes = [0x80, 0x7F]\n"),
                "x.toml:9: engine[0].opcodes = 0x7f: allowed is 0x80 to 0xff",
            ),
            (
                one("opcodes = [0x90, 0x90]\n"),
                "x.toml:9: engine[0].opcodes = 0x90: allowed is each opcode once",
            ),
            (one("speed = 3\n"), "x.toml:9: unknown key `engine.speed`"),
            (
                one("").repeat(7),
                "x.toml:6: engine = 7: allowed is at most 6 of them",
            ),
            // The names of the other masters in qos, and of the shell's instance.
            (
                one("").replace("\"a\"", "\"pm\""),
                "x.toml:7: engine[0].name = pm: allowed is",
            ),
            (
                one("").replace("\"a\"", "\"nvme\""),
                "x.toml:7: engine[0].name = nvme: allowed is",
            ),
            (
                one("").replace("\"a\"", "\"shell\""),
                "x.toml:7: engine[0].name = shell: allowed is",
            ),
            // One constant of the C header.
            (
                format!("{}{}", one(""), one("").replace("\"a\"", "\"A\"")),
                "x.toml:10: engine[1].name = A: allowed is a unique name",
            ),
        ] {
            let error = parse(&text).unwrap_err();
            assert!(error.contains(why) && !error.contains('\n'), "{error}");
        }
        for (engine, there) in [
            (
                "nonesuch",
                "allowed is copy, dict_decode, nearpm, pipeline, row_shuffle, scan, sorter, or a \
                 folder with an engine.toml",
            ),
            (
                "no/such",
                "allowed is copy, dict_decode, nearpm, pipeline, row_shuffle, scan, sorter, or a \
                 folder with an engine.toml",
            ),
            (
                "",
                "allowed is copy, dict_decode, nearpm, pipeline, row_shuffle, scan, sorter, or a \
             folder with an engine.toml",
            ),
        ] {
            let design = parse(&one("").replace("\"copy\"", &format!("{engine:?}"))).unwrap();
            let error = design.engines().unwrap_err().to_string();
            let why = format!("x.toml:8: engine[0].engine = {engine}: {there}");
            assert_eq!(error, why);
        }
        for (opcodes, why) in [
            (
                "[0x80, 0x81]",
                "x.toml:9: engine[0].opcodes = [80, 81]: allowed is at most one for each of its 1 \
                 commands",
            ),
            (
                "[0xC0]",
                "x.toml:10: engine[1].opcodes = 0xc0: allowed is a unique opcode",
            ),
            // A command without data has no data with another opcode, either.
            (
                "[0xD1]",
                "x.toml:9: engine[0].opcodes = 0xd1: allowed is one whose lowest two bits are \
                 those of 0xc4",
            ),
        ] {
            let text = format!(
                "{}[[engine]]\nname = \"b\"\nengine = \"scan\"\n",
                one(&format!("opcodes = {opcodes}\n"))
            );
            let error = parse(&text).unwrap().engines().unwrap_err();
            assert!(error.to_string().starts_with(why), "{error}");
        }
    }

    #[test]
    fn engines_reach_the_local_memory_unless_the_design_excludes_it() {
        let local = "[[memory]]\nname = \"local\"\nbytes = \"1 MiB\"\n";
        let one = |name: &str, kind: &str, extra: &str| {
            format!("[[engine]]\nname = \"{name}\"\nengine = \"{kind}\"\n{extra}")
        };
        let engines = [
            one("a", "copy", ""),
            one("b", "copy", "memories = []\n"),
            one("c", "copy", "memories = [\"local\"]\nnamespaces = [2]\n"),
            one("d", "scan", ""),
        ]
        .concat();
        let reaches = |text: &str| -> Vec<bool> {
            let engines = parse(text).unwrap().engines().unwrap();
            engines.iter().map(|e| e.local).collect()
        };
        assert_eq!(
            reaches(&format!("{local}{engines}")),
            [true, false, true, false]
        );
        let without = one("a", "copy", "");
        assert_eq!(reaches(&without), [false]);
        for (text, why) in [
            (
                format!("{local}{}", one("a", "copy", "memories = [\"locals\"]\n")),
                "x.toml:12: engine[0].memories = locals: allowed is names of [[memory]]: local",
            ),
            (
                one("a", "copy", "memories = [\"local\"]\n"),
                "x.toml:9: engine[0].memories = local: allowed is none, for this design has no \
                 [[memory]]",
            ),
        ] {
            let error = parse(&text).unwrap_err();
            assert!(error.starts_with(why), "{error}");
        }
    }

    #[test]
    fn engine_opcodes_of_the_first_of_a_kind_are_those_of_its_manifest() {
        let one = |name: &str, extra: &str| {
            format!("[[engine]]\nname = \"{name}\"\nengine = \"scan\"\n{extra}")
        };
        let text = [
            one("a", ""),
            one("b", ""),
            one("c", "opcodes = [0xD0, 0xD8]\nnamespaces = [2]\n"),
        ]
        .concat();
        let design = parse(&text).unwrap();
        let engines = design.engines().unwrap();
        let opcodes = |n: usize| {
            engines[n]
                .commands
                .iter()
                .map(|c| c.opcode)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            [opcodes(0), opcodes(1), opcodes(2)],
            [vec![0xC0, 0xC8], vec![], vec![0xD0, 0xD8]]
        );
        let namespaces: Vec<_> = engines.iter().map(|e| e.namespaces.clone()).collect();
        assert_eq!(namespaces, [1..=3, 1..=3, 2..=2]);
        let text = top(&root(), &engines).unwrap();
        let wanted = "commands: 8'd2, opcodes: 64'hd8d0, changes: 8'h2, namespaces: 16'h2}";
        assert!(text.contains(wanted), "{text}");
    }

    #[test]
    fn engine_parameters_reach_the_module_within_their_bounds() {
        let one = |parameters: &str| {
            let text = format!("[[engine]]\nname = \"a\"\nengine = \"nearpm\"\n{parameters}");
            let head = "name = \"x\"\n[media]\nbytes = \"1 MiB\"\n[nvme]\nnamespaces = [512]\n";
            Design::parse(&format!("{head}{text}"), Path::new("x.toml")).map_err(|e| e.to_string())
        };
        let engines = |parameters: &str| one(parameters).unwrap().engines();
        let plain = engines("").unwrap();
        assert_eq!(plain[0].parameter("units"), Some(4));
        assert_eq!(plain[0].parameter("speed"), None);
        assert!(!top(&root(), &plain).unwrap().contains(".Units("));
        let given = engines("parameters = { units = 16, unit_lines = 1024 }\n").unwrap();
        assert_eq!(given[0].parameter("units"), Some(16));
        let text = top(&root(), &given).unwrap();
        assert!(text.contains(".Units(16)") && !text.contains(".UnitLines("));
        for (parameters, why) in [
            (
                "parameters = { units = 17 }\n",
                "x.toml:9: engine[0].parameters.units = 17: allowed is 1 to 16",
            ),
            (
                "parameters = { unit = 4 }\n",
                "x.toml:9: engine[0].parameters.unit = 4: \
                 allowed is one of rate_units, unit_lines, units",
            ),
            (
                "[engine.parameters]\n# None.\nunits = 17\n",
                "x.toml:11: engine[0].parameters.units = 17: allowed is 1 to 16",
            ),
            (
                "[engine.parameters]\nunits = 4\nunit = 4\n",
                "x.toml:11: engine[0].parameters.unit = 4: \
                 allowed is one of rate_units, unit_lines, units",
            ),
            (
                "[engine.parameters]\nunits = 4\nunit_lines = \"x\"\n",
                "x.toml:11: engine.parameters.unit_lines: invalid type",
            ),
            (
                "[engine.parameters]\nunits = 4\nunit_lines = -1\n",
                "x.toml:11: engine.parameters.unit_lines: invalid value",
            ),
        ] {
            let placed = |design: Design| design.engines().map_err(|e| e.to_string());
            let error = one(parameters).and_then(placed).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn engine_manifest_errors_name_the_line() {
        let folder = std::env::temp_dir().join(format!("nearside-engine-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("copy.f"), "").unwrap();
        let good = std::fs::read_to_string(root().join("hw/engine/copy/engine.toml")).unwrap();
        let text = format!(
            "[[engine]]\nname = \"a\"\nengine = \"{}/\"\n",
            folder.display()
        );
        let design = parse(&text).unwrap();
        for (from, to, why) in [
            (
                "kind = 16",
                "kinds = 16",
                "engine.toml:4: unknown key `kinds`",
            ),
            (
                "\"4 KiB\"",
                "\"5 KiB\"",
                "engine.toml:7: registers = 5 KiB: allowed is a power of two",
            ),
            (
                "\"1.0\"",
                "\"1\"",
                "engine.toml:5: version = 1: allowed is \"major.minor\"",
            ),
            (
                "\"copy\"",
                "\"2copy\"",
                "engine.toml:2: name = 2copy: allowed is up to 32 letters",
            ),
            ("\"src\"", "\"s c\"", "arguments = s c: allowed is"),
            (
                "interrupts = 1",
                "optional = [\"to\"]",
                "engine.toml:11: optional = to: allowed is names of `arguments`",
            ),
            (
                "[\"src\", \"dst\", \"bytes\"]",
                "[]",
                "engine.toml:10: page = true with 0 arguments and 0 outputs: allowed is 1 to 7",
            ),
            (
                "src = ",
                "source = ",
                "descriptions = source: allowed is names of `arguments`, `outputs` and `results`",
            ),
            (
                "[descriptions]",
                "[fields.kind]\n\n[descriptions]",
                "fields = kind: allowed is names of `arguments`",
            ),
            (
                "[descriptions]",
                "[fields.src]\nlow = { bits = \"0:4\", description = \"\" }\n\n[descriptions]",
                "fields.src.low = 0:4: allowed is the number of a bit",
            ),
            (
                "[descriptions]",
                "[[words]]\nname = \"w\"\noffset = 0xFFC\ncount = 2\ndescription = \"\"\n\n\
                 [descriptions]",
                "words = 2 at 0xffc: allowed is multiples of 4 from 0x100 on",
            ),
            (
                "0xC4",
                "0x02",
                "engine.toml:17: commands[0].opcode = 0x2: allowed is 0x80 to 0xff",
            ),
            // Kinds of the fixed blocks.
            (
                "kind = 16",
                "kind = 2",
                "engine.toml:4: kind = 2: allowed is 16 and more",
            ),
            (
                "\"dst\"",
                "\"src\"",
                "engine.toml:12: arguments = src: allowed is each name once",
            ),
            (
                "\"dst\"",
                "\"SRC\"",
                "engine.toml:12: arguments = SRC: allowed is each name once",
            ),
            (
                "interrupts = 1",
                "outputs = [\"bytes\"]",
                "engine.toml:11: outputs = bytes: allowed is each name once",
            ),
            (
                "\"write_error\"",
                "\"read_error\"",
                "engine.toml:13: results = read_error: allowed is each name once",
            ),
            (
                "opcode = 0xC4",
                "opcode = 0xC4\n[[commands]]\nname = \"copy\"\nopcode = 0xC8",
                "engine.toml:19: commands[1].name = copy: allowed is each name once",
            ),
            // `launch` has these parameters.
            (
                "\"dst\"",
                "\"timeout_us\"",
                "engine.toml:12: arguments = timeout_us: allowed is",
            ),
            (
                "\"dst\"",
                "\"self\"",
                "engine.toml:12: arguments = self: allowed is",
            ),
            (
                "[\"read_error\", \"write_error\", \"stopped\", \"invalid\"]",
                &format!("{:?}", (0..33).map(|n| format!("r{n}")).collect::<Vec<_>>()),
                "engine.toml:13: results = 33: allowed is at most 32",
            ),
            (
                "\"copy.f\"",
                "\"nonesuch.f\"",
                "engine.toml:6: filelist = nonesuch.f: allowed is a file in its folder",
            ),
        ] {
            assert!(good.contains(from));
            std::fs::write(folder.join("engine.toml"), good.replacen(from, to, 1)).unwrap();
            let error = design.engines().unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains('\n'), "{error}");
        }
        // Found in the design when all engines have addresses.
        let large = good.replacen("\"4 KiB\"", "\"512 KiB\"", 1);
        std::fs::write(folder.join("engine.toml"), large).unwrap();
        let second = text.replace("\"a\"", "\"b\"");
        let design = parse(&format!("{text}{second}")).unwrap();
        let error = design.engines().unwrap_err().to_string();
        let why = "with 512 KiB: allowed is registers of all engines";
        assert!(
            error.starts_with("x.toml:11: engine[1].engine = "),
            "{error}"
        );
        assert!(error.contains(why), "{error}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
