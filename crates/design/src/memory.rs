// SPDX-License-Identifier: Apache-2.0

//! Memories of the device in addition to the storage (`[[memory]]`). At present there is one, the
//! local memory.
//!
//! It holds no namespace. Engines access it directly, peers and the host through the PM window,
//! above the storage. Its contents persist like those of the storage, since the device reports all
//! of BAR2 as persistent memory region.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sim::DramConfig;

use spec::nvm_delay::{Interleave, Registers};

use crate::error::{check, one_of, Error};
use crate::media::DelaySizes;
use crate::{Bytes, Delay, Design, Profile};

/// Name of the memory.
pub const LOCAL: &str = "local";

/// A memory with separate channels, timing and DRAM.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// [`LOCAL`].
    pub name: String,
    /// Its bytes: a power of two from 1 MiB to 1 TiB.
    pub bytes: Bytes,
    /// Channels: 1, 2 or 4.
    #[serde(default = "one")]
    pub channels: u32,
    /// Bytes that go to one channel before the next one: a power of two from 4 KiB to 1 MiB.
    #[serde(default = "crate::default_granule")]
    pub granule: Bytes,
    /// The media profile whose timing `nvm_delay` gives to each of its channels.
    #[serde(default = "crate::default_profile")]
    pub profile: String,
    /// Sizes of each channel's `nvm_delay` that override those of the profile.
    #[serde(default, skip_serializing_if = "Delay::is_empty")]
    pub delay: Delay,
    /// The DDR4 channel of each of its channels. Without this key it is that of the storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dram: Option<DramConfig>,
}

fn one() -> u32 {
    1
}

impl Memory {
    /// How its channels are interleaved.
    pub fn interleave(&self) -> Interleave {
        Interleave {
            channels: self.channels,
            granule: self.granule.0,
        }
    }
}

impl Design {
    /// The local memory, if there is one.
    pub fn local(&self) -> Option<&Memory> {
        self.memory.first()
    }

    /// The DDR4 channel of each of its channels.
    pub fn local_dram<'a>(&'a self, memory: &'a Memory) -> &'a DramConfig {
        memory.dram.as_ref().unwrap_or(&self.dram)
    }

    /// Its file, if the media has a file: the same name with `.local` appended.
    pub fn local_file(&self) -> Option<PathBuf> {
        let mut name = self.media.file.clone()?.into_os_string();
        name.push(".local");
        self.local().map(|_| PathBuf::from(name))
    }

    /// Its address in the PM window: the first multiple of its size above the storage.
    pub fn local_base(&self) -> Option<u64> {
        Some(self.local()?.bytes.0.max(self.media.bytes.0))
    }

    /// End of the last memory in the PM window.
    pub fn window_end(&self) -> u64 {
        let end = self.local().zip(self.local_base());
        end.map_or(self.media.bytes.0, |(memory, base)| base + memory.bytes.0)
    }

    /// Bytes of BAR2, a power of two: the storage and the local memory.
    pub fn window_bytes(&self) -> u64 {
        self.local_base()
            .map_or(self.media.bytes.0, |base| base.saturating_mul(2))
    }

    /// The sizes of each of its channels' `nvm_delay`.
    pub fn local_sizes(&self, memory: &Memory, profile: &Profile) -> DelaySizes {
        memory
            .delay
            .sizes(profile.sizes(self.clock(), memory.channels))
    }

    /// The registers of each of its channels' `nvm_delay`; none without local memory.
    pub fn local_registers(&self) -> Result<Vec<Registers>, Error> {
        let Some(memory) = self.local() else {
            return Ok(Vec::new());
        };
        Profile::find(&memory.profile)?.registers(self.clock(), memory.interleave())
    }

    /// The hardware parameters of the local memory as SystemVerilog literals.
    pub fn local_parameters(
        &self,
        memory: &Memory,
        sizes: DelaySizes,
    ) -> Vec<(&'static str, String)> {
        vec![
            ("LocalChannels", memory.channels.to_string()),
            ("LocalGranule", memory.granule.0.to_string()),
            ("LocalBytes", format!("64'd{}", memory.bytes.0)),
            ("LocalReadSlots", sizes.read_slots.to_string()),
            ("LocalWriteSlots", sizes.write_slots.to_string()),
            ("LocalBufferBeats", sizes.buffer_beats.to_string()),
        ]
    }

    pub(crate) fn validate_memories(&self) -> Result<(), Error> {
        let allowed = "at most one, the local memory; the storage is `media`";
        if let Some(second) = self.memory.get(1) {
            check("memory[1].name", &second.name, false, allowed)?;
        }
        let Some(memory) = self.local() else {
            return Ok(());
        };
        let key = |field: &str| format!("memory[0].{field}");
        let allowed = format!("{LOCAL:?}; the storage is `media`");
        check(&key("name"), &memory.name, memory.name == LOCAL, &allowed)?;
        one_of(&key("channels"), memory.channels, &[1, 2, 4])?;
        let granule = memory.granule.0;
        let ok = granule.is_power_of_two() && (4 << 10..=1 << 20).contains(&granule);
        let allowed = "a power of two from 4 KiB to 1 MiB";
        check(&key("granule"), memory.granule, ok, allowed)?;
        let bytes = memory.bytes.0;
        let ok = bytes.is_power_of_two() && (1 << 20..=1 << 40).contains(&bytes);
        let allowed = "a power of two from 1 MiB to 1 TiB";
        check(&key("bytes"), memory.bytes, ok, allowed)?;
        let ok = granule * u64::from(memory.channels) <= bytes;
        let allowed = "at most bytes / channels";
        check(&key("granule"), memory.granule, ok, allowed)?;
        Profile::check_named(&key("profile"), &memory.profile)?;
        memory.delay.validate(&key("delay"))?;
        let own = memory.dram.as_ref().map_or(Ok(()), DramConfig::validate);
        own.map_err(|e| e.in_table(&key("dram")))?;
        let most = self
            .local_dram(memory)
            .bytes()
            .saturating_mul(u64::from(memory.channels));
        let allowed = format!("at most {}, the DRAM of its channels", Bytes(most));
        check(&key("bytes"), memory.bytes, bytes <= most, &allowed)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::{Bytes, Design, Profile};

    fn parse(memories: &str) -> Result<Design, String> {
        let text = format!("name = \"x\"\n[media]\nbytes = \"1 MiB\"\n{memories}");
        Design::parse(&text, Path::new("x.toml")).map_err(|e| e.to_string())
    }

    #[test]
    fn local_memory_follows_the_storage_in_the_window() {
        assert_eq!(parse("").unwrap().window_bytes(), 1 << 20);
        let with = |bytes: &str| {
            let text = format!("[[memory]]\nname = \"local\"\nbytes = \"{bytes}\"\n");
            parse(&text).unwrap()
        };
        let larger = with("4 MiB");
        assert_eq!(
            (larger.local_base(), larger.window_bytes()),
            (Some(4 << 20), 8 << 20)
        );
        let smaller = with("1 MiB").with_values("[media]\nbytes = \"8 MiB\"\n");
        let smaller = smaller.unwrap();
        assert_eq!(
            (smaller.local_base(), smaller.window_bytes()),
            (Some(8 << 20), 16 << 20)
        );
        assert_ne!(with("4 MiB").hash(), with("2 MiB").hash());
    }

    #[test]
    fn local_memory_sizes_follow_from_its_own_profile() {
        let design = parse(
            "[[memory]]\nname = \"local\"\nbytes = \"2 MiB\"\nchannels = 2\nprofile = \
             \"nand\"\n[memory.delay]\nbuffer_beats = 1024\n",
        )
        .unwrap();
        let memory = design.local().unwrap();
        let profile = Profile::find(&memory.profile).unwrap();
        let sizes = design.local_sizes(memory, &profile);
        let own = profile.sizes(design.clock(), 2);
        assert_eq!(
            (sizes.read_slots, sizes.buffer_beats),
            (own.read_slots, 1024)
        );
        let parameters = design.local_parameters(memory, sizes);
        assert!(parameters.contains(&("LocalBytes", "64'd2097152".to_string())));
        assert_eq!(memory.granule, Bytes(4096));
    }

    #[test]
    fn local_memory_errors_name_the_line_and_the_allowed_values() {
        let one = |extra: &str| format!("[[memory]]\nname = \"local\"\nbytes = \"1 MiB\"\n{extra}");
        for (text, why) in [
            (
                one("").repeat(2),
                "x.toml:8: memory[1].name = local: allowed is at most one",
            ),
            (
                one("").replace("\"local\"", "\"storage\""),
                "x.toml:5: memory[0].name = storage: allowed is \"local\"",
            ),
            (
                one("channels = 3\n"),
                "x.toml:7: memory[0].channels = 3: allowed are 1, 2, 4",
            ),
            (
                one("granule = \"2 KiB\"\n"),
                "x.toml:7: memory[0].granule = 2 KiB: allowed is a power of two",
            ),
            (
                one("granule = \"1 MiB\"\nchannels = 2\n"),
                "x.toml:7: memory[0].granule = 1 MiB: allowed is at most bytes / channels",
            ),
            (
                one("").replace("1 MiB", "3 MiB"),
                "x.toml:6: memory[0].bytes = 3 MiB: allowed is a power of two",
            ),
            (
                one("").replace("1 MiB", "1 TiB"),
                "x.toml:6: memory[0].bytes = 1 TiB: allowed is at most",
            ),
            (
                one("[memory.delay]\nread_slots = 5\n"),
                "x.toml:8: memory[0].delay.read_slots = 5: allowed are",
            ),
            (one("speed = 3\n"), "x.toml:7: unknown key `memory.speed`"),
        ] {
            let error = parse(&text).unwrap_err();
            assert!(error.contains(why) && !error.contains('\n'), "{error}");
        }
    }
}
