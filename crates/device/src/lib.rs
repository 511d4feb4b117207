// SPDX-License-Identifier: Apache-2.0

//! The device of a design, simulated by either of two models: the RTL model, exact to the clock
//! cycle, or the fast model, which works transaction by transaction.
//!
//! A [`Factory`] makes devices of a design. They are [`sim::Device`]s, and code that uses one need
//! not know which model it is.
//!
//! ```
//! use device::{Factory, RtlOptions};
//! use sim::{Device, Media};
//!
//! let design = design::Design::find("default")?;
//! let model = "fast".parse()?;
//! let factory = Factory::new(&design, model, &RtlOptions::default(), &mut |_| true)?;
//! let device = factory.device(Media::memory(16 << 20)?)?;
//! assert_eq!(device.now(), sim::Time::ZERO);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Not here: the models themselves (`rtl`, `fast`), designs (`design`), and hosts (`host`,
//! `driver`). The README lists how the models differ.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Once};

use design::engine::EngineInstance;
use design::{Design, Identity};
pub use fast::FaultInjection;
use rtl::bitstream::{Bitstream, Progress, Purpose};
pub use rtl::{InitialValues, PowerUpRegisters};
use rtl::{RtlDevice, TraceWindow};
use sim::memctrl::MemoryModel;
use sim::{Device, Media, MediaError, Time};

/// What simulates a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Model {
    /// The RTL model: the RTL, clock by clock.
    #[default]
    Rtl,
    /// The fast model: transaction by transaction, a hundred times faster.
    Fast,
}

/// The former name of [`Model`].
#[deprecated(note = "it is Model now")]
pub type Engine = Model;

impl Model {
    /// All of them.
    pub const ALL: [Model; 2] = [Model::Rtl, Model::Fast];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Model::Rtl => "rtl",
            Model::Fast => "fast",
        }
    }

    /// The one that `NEARSIDE_MODEL` names in the environment, else `otherwise`.
    ///
    /// Where it is not set, its former name `NEARSIDE_ENGINE` is read, with a warning on stderr.
    pub fn named(otherwise: Model) -> Result<Model, Error> {
        let set = |variable| std::env::var(variable).ok();
        chosen(set(VARIABLE), set(FORMER), otherwise)
    }
}

const VARIABLE: &str = "NEARSIDE_MODEL";
const FORMER: &str = "NEARSIDE_ENGINE";

/// The model that variables of these values name; without any of them, or with empty ones,
/// `otherwise`.
fn chosen(model: Option<String>, former: Option<String>, otherwise: Model) -> Result<Model, Error> {
    let is_set = |name: &String| !name.is_empty();
    let (variable, name) = match (model.filter(is_set), former.filter(is_set)) {
        (Some(name), _) => (VARIABLE, name),
        (None, Some(name)) => {
            static WARNED: Once = Once::new();
            WARNED.call_once(|| {
                eprintln!("nearside: warning: {FORMER} is deprecated: it is {VARIABLE} now")
            });
            (FORMER, name)
        }
        (None, None) => return Ok(otherwise),
    };
    name.parse().map_err(|source| Error::Variable {
        variable,
        source: Box::new(source),
    })
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Model {
    type Err = Error;

    fn from_str(text: &str) -> Result<Model, Error> {
        let named = Model::ALL.into_iter().find(|model| model.name() == text);
        named.ok_or_else(|| Error::Model(text.into()))
    }
}

/// Why there is no device: one line that names what is wrong and what is allowed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name that no model has.
    #[error("model = {0:?}: allowed are \"rtl\", \"fast\"")]
    Model(String),
    /// An environment variable has a wrong value.
    #[error("{variable}: {source}")]
    Variable {
        /// The variable.
        variable: &'static str,
        /// What is wrong with its value.
        source: Box<Error>,
    },
    /// An engine of this name would lose data if the process is killed.
    #[error(
        "media.file: {0} keeps what it has taken in registers of the simulated hardware until its \
         power fails, and would lose it if this process is killed; allowed with it are model = \
         \"fast\", or media in memory"
    )]
    NotDurable(String),
    /// Waveforms of the fast model.
    #[error("trace: the fast model has no waveforms; use model = \"rtl\"")]
    NoWaveforms,
    /// A fault in the RTL model.
    #[error("the RTL model leaves nothing out; use model = \"fast\"")]
    NoFaults,
    /// The design, a profile or an engine is not usable.
    #[error(transparent)]
    Design(#[from] design::Error),
    /// The RTL can't be built, or does not come up.
    #[error(transparent)]
    Rtl(#[from] rtl::Error),
    /// The fast model can't simulate it.
    #[error(transparent)]
    Fast(#[from] fast::Error),
    /// The media can't be opened.
    #[error(transparent)]
    Media(#[from] MediaError),
}

/// How the RTL is built and run; the fast model ignores it.
#[derive(Clone, Debug)]
pub struct RtlOptions {
    /// With assertions or without.
    pub purpose: Purpose,
    /// Write waveforms.
    pub trace: Option<TraceWindow>,
    /// Skip the cycles in which nothing can happen.
    pub skip_idle: bool,
    /// A busy device is hung after this number of cycles without any handshake; `None` is the
    /// default of the RTL model.
    pub hang_cycles: Option<u64>,
    /// An answer that the link owes for longer than this is a hang. `None` is the default of the
    /// RTL model, which is less than the time after which the device gives up.
    pub link_patience: Option<Time>,
    /// Every block's clock always runs, as in an FPGA. The simulation is slower.
    pub free_clocks: bool,
    /// What registers and memories hold at each power-on. `None` is what `POWER_UP` names in the
    /// environment, else different values in each life.
    pub registers: Option<PowerUpRegisters>,
}

impl Default for RtlOptions {
    fn default() -> RtlOptions {
        RtlOptions {
            purpose: Purpose::Checked,
            trace: None,
            skip_idle: true,
            hang_cycles: None,
            link_patience: None,
            free_clocks: false,
            registers: None,
        }
    }
}

enum Ready {
    Rtl(Box<rtl::DeviceConfig>, Arc<Bitstream>),
    Fast(Box<fast::Config>),
}

/// Refuses a design that a model cannot simulate; [`Factory::new`] does so, too.
///
/// The RTL model refuses a media file together with an engine that would have to keep something
/// there when this process is killed.
pub fn check(design: &Design, model: Model) -> Result<(), Error> {
    if model == Model::Fast {
        return Ok(());
    }
    let engines = design.engines()?;
    let keeps = engines.iter().find(|e| e.manifest.reserved.0 > 0);
    match (keeps, &design.media.file) {
        (Some(keeps), Some(_)) => Err(Error::NotDurable(keeps.manifest.name.clone())),
        _ => Ok(()),
    }
}

/// Makes devices of a design, which is compiled for the RTL model.
pub struct Factory {
    design: Design,
    ready: Ready,
}

impl Factory {
    /// For the RTL model, compiles the design's hardware if that was not done before. `progress`
    /// gets each step, and stops the build by answering false.
    pub fn new(
        design: &Design,
        model: Model,
        options: &RtlOptions,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Factory, Error> {
        check(design, model)?;
        let ready = match model {
            Model::Rtl => {
                let mut config = rtl::DeviceConfig::from_design(design)?;
                config.purpose = options.purpose;
                config.trace = options.trace.clone();
                config.skip_idle = options.skip_idle;
                config.free_clocks = options.free_clocks;
                config.registers = options.registers.unwrap_or(config.registers);
                if let Some(cycles) = options.hang_cycles {
                    config.hang_cycles = cycles;
                }
                if let Some(patience) = options.link_patience {
                    config.link_patience = patience;
                }
                config.check_buildable()?;
                let path = config.compile(design.media.bytes.0, progress)?;
                let bitstream = Bitstream::open(&path)?;
                Ready::Rtl(Box::new(config), bitstream)
            }
            Model::Fast => {
                if options.trace.is_some() {
                    return Err(Error::NoWaveforms);
                }
                Ready::Fast(Box::new(fast::Config::of(design)?))
            }
        };
        let design = design.clone();
        Ok(Factory { design, ready })
    }

    /// The design of its devices.
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// The engines of its devices, in the order of the design.
    pub fn engines(&self) -> &[EngineInstance] {
        match &self.ready {
            Ready::Rtl(config, _) => &config.engines,
            Ready::Fast(config) => &config.engines,
        }
    }

    /// What simulates its devices.
    pub fn model(&self) -> Model {
        match self.ready {
            Ready::Rtl(..) => Model::Rtl,
            Ready::Fast(_) => Model::Fast,
        }
    }

    /// What its devices were built as: "checked" or "running" for the RTL model, with ", trained"
    /// if it was trained; "fast" for the fast model.
    pub fn build(&self) -> String {
        match &self.ready {
            Ready::Rtl(_, bitstream) => bitstream.build().to_string(),
            Ready::Fast(_) => "fast".to_string(),
        }
    }

    /// The media that the design names.
    pub fn media(&self) -> Result<Media, Error> {
        let media = &self.design.media;
        let opened = match &media.file {
            Some(path) => Media::file(path, media.bytes.0),
            None => Media::memory(media.bytes.0),
        };
        Ok(opened?)
    }

    /// Sets the memory of each channel of the storage, for its next devices.
    pub fn set_memory(&mut self, memory: MemoryModel) {
        match &mut self.ready {
            Ready::Rtl(config, _) => config.memory = memory,
            Ready::Fast(config) => config.storage.dram = memory,
        }
    }

    /// Sets the seed of what registers hold at power-on in its next devices, unless the same is
    /// wanted in each life.
    pub fn vary_registers(&mut self, seed: u64) {
        if let Ready::Rtl(config, _) = &mut self.ready {
            if let PowerUpRegisters::Each(_) = config.registers {
                config.registers = PowerUpRegisters::Each(seed);
            }
        }
    }

    /// A device with power, whose storage holds these media.
    pub fn device(&self, media: Media) -> Result<Box<dyn Device + Send>, Error> {
        self.device_with(media, None, None)
    }

    /// The same with an identity, by default that of the first device of a process, and with a
    /// fault injected, as a negative control. Only the fast model has faults.
    pub fn device_with(
        &self,
        media: Media,
        identity: Option<Identity>,
        fault: Option<FaultInjection>,
    ) -> Result<Box<dyn Device + Send>, Error> {
        Ok(match &self.ready {
            Ready::Rtl(..) if fault.is_some() => {
                return Err(Error::NoFaults);
            }
            Ready::Rtl(config, bitstream) => {
                let mut config = (**config).clone();
                config.identity = identity.unwrap_or(config.identity);
                Box::new(RtlDevice::new(bitstream.clone(), config, media)?)
            }
            Ready::Fast(config) => {
                let mut config = (**config).clone();
                config.identity = identity.unwrap_or(config.identity);
                config.fault_injection = fault;
                Box::new(fast::FastDevice::new(config, media)?)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The former name of the variable counts where the present one is not set.
    #[test]
    fn model_of_the_environment() {
        let of = |model: &str, former: &str| {
            chosen(Some(model.into()), Some(former.into()), Model::Rtl).map_err(|e| e.to_string())
        };
        assert_eq!(of("", ""), Ok(Model::Rtl));
        assert_eq!(of("fast", "none"), Ok(Model::Fast));
        assert_eq!(of("", "fast"), Ok(Model::Fast));
        assert_eq!(chosen(None, None, Model::Fast).unwrap(), Model::Fast);
        let allowed = "model = \"slow\": allowed are \"rtl\", \"fast\"";
        assert_eq!(
            of("slow", "fast"),
            Err(format!("NEARSIDE_MODEL: {allowed}"))
        );
        assert_eq!(of("", "slow"), Err(format!("NEARSIDE_ENGINE: {allowed}")));
    }

    /// Nothing is compiled, and no file is made.
    #[test]
    fn factory_refuses_media_files_that_the_rtl_model_could_lose() {
        let file = std::env::temp_dir().join(format!("nearside-device-{}", std::process::id()));
        let design = Design::find("nearpm").unwrap();
        let values = format!("media.file = \"{}\"", file.display());
        let design = design.with_values(&values).unwrap();
        let make = |model| Factory::new(&design, model, &RtlOptions::default(), &mut |_| true);
        let error = make(Model::Rtl).err().unwrap().to_string();
        assert!(
            error.contains("nearpm") && error.contains("allowed"),
            "{error}"
        );
        assert!(make(Model::Fast).is_ok() && !file.exists());
    }
}
