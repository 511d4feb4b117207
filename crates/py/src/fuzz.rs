//! The fuzzer, on a design's device.

use ::fuzz::{Campaign, Conditions, Replay};
use pyo3::prelude::*;
use rtl::bitstream::Bitstream;
use rtl::{Memory, RtlDevice};
use sim::{Device, Media};

use crate::build::{BuildTeller, Design};
use crate::error::raise;
use crate::progress::Teller;

/// Cycles without any handshake while busy that are a hang: the fuzzer's waits are short.
const HANG_CYCLES: u64 = 200_000;

/// Runs a campaign of so many commands, or bytes if `calm` (a soak); returns its report as JSON. `replay` is
/// `SEED:EPISODE` or `SEED:EPISODE:STEPS`.
#[pyfunction]
#[pyo3(signature = (design, amount, seed=1, *, calm=false, first_episode=0, replay=None, shrinks=60,
    per_episode=2000, torn_blocks=false, progress=None))]
#[allow(clippy::too_many_arguments)] // keyword arguments in Python
pub fn fuzz(
    py: Python<'_>,
    design: &Design,
    amount: u64,
    seed: u64,
    calm: bool,
    first_episode: u32,
    replay: Option<&str>,
    shrinks: u32,
    per_episode: u64,
    torn_blocks: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let design = &design.inner;
    if per_episode == 0 {
        return Err(raise("per_episode = 0: at least 1 is needed"));
    }
    let mut config = rtl::DeviceConfig::of(design).map_err(raise)?;
    config.hang_cycles = HANG_CYCLES;
    let replay = replay
        .map(|r| r.parse::<Replay>().map_err(raise))
        .transpose()?;
    let campaign = Campaign {
        seed,
        amount,
        calm,
        media_bytes: design.media.bytes.0,
        torn_blocks,
        first_episode,
        per_episode,
        shrinks,
        replay,
    };
    let bytes = design.media.bytes.0;
    let mut teller = BuildTeller::new(None);
    let built = py.detach(|| config.compile(bytes, &mut |p| teller.tell(p)));
    let path = teller.settle(built.map_err(raise))?;
    let bitstream = Bitstream::open(&path).map_err(raise)?;
    let mut teller = Teller::new(progress);
    let outcome = py.detach(|| {
        let mut make = |conditions: &Conditions| -> Result<Box<dyn Device + Send>, String> {
            let media = Media::memory(bytes).map_err(|e| e.to_string())?;
            let mut config = config.clone();
            if let Some(most) = conditions.late_memory {
                let seed = conditions.seed;
                config.memory = Memory::Late { most, seed };
            }
            let device = RtlDevice::new(bitstream.clone(), config, media);
            Ok(Box::new(device.map_err(|e| e.to_string())?))
        };
        ::fuzz::run(&mut make, &campaign, &mut |done, all| {
            teller.tell(done, all)
        })
    });
    serde_json::to_string(&teller.settle(outcome)?).map_err(raise)
}
