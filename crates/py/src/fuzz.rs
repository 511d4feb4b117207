//! The fuzzer, on a design's device.

use ::fuzz::{Campaign, Conditions, Replay};
use device::RtlOptions;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use sim::controller::Memory;
use sim::{Device, Media};

use crate::build::{factory, model_of, root, Design};
use crate::error::raise;
use crate::progress::Teller;

/// Cycles without any handshake while busy that are a hang: the fuzzer's waits are short.
const HANG_CYCLES: u64 = 200_000;
/// Slower devices need not keep the limits of the model, which are times.
const LEAST_MHZ: u32 = 50;

/// Runs a campaign of so many commands, or bytes if `calm` (a soak); returns its report as JSON. Of a device with the engine `nearpm` the
/// commands are that engine's. `replay` is
/// `SEED:EPISODE` or `SEED:EPISODE:STEPS`. Ctrl-C while a failure is made shorter ends only that.
#[pyfunction]
#[pyo3(signature = (design, amount, seed=1, *, calm=false, first_episode=0, replay=None, shrinks=60,
    per_episode=2000, torn_blocks=false, model=None, progress=None))]
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
    model: Option<&str>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let design = &design.inner;
    let model = model_of(model)?;
    if per_episode == 0 {
        return Err(raise("per_episode = 0: at least 1 is needed"));
    }
    if design.clock_mhz < LEAST_MHZ {
        let mhz = design.clock_mhz;
        let text = format!("clock_mhz = {mhz}: the time limits of the fuzzer's model are for {LEAST_MHZ} MHz and more");
        return Err(raise(text));
    }
    let engines = design.engines(&root()?).map_err(raise)?;
    // Its commands in place of the controller's; a soak is of these.
    let nearpm = engines
        .iter()
        .find(|e| e.manifest.name == "nearpm" && !calm);
    let nearpm = nearpm.and_then(|engine| engine.page);
    let replay = replay
        .map(|r| r.parse::<Replay>().map_err(raise))
        .transpose()?;
    let campaign = Campaign {
        seed,
        amount,
        valid_only: calm,
        media_bytes: design.media.bytes.0,
        unclaimed_bytes: design.nvme.unclaimed_bytes(design.media.bytes),
        torn_blocks,
        nearpm,
        first_episode,
        per_episode,
        shrinks,
        replay,
    };
    let bytes = design.media.bytes.0;
    // With assertions: it looks for faults.
    let options = RtlOptions {
        hang_cycles: Some(HANG_CYCLES),
        ..RtlOptions::default()
    };
    let mut factory = factory(py, design, model, &options, None)?;
    let own = design.dram.clone();
    let mut teller = Teller::new(progress);
    let outcome = py.detach(|| {
        let mut make = |conditions: &Conditions| -> Result<Box<dyn Device + Send>, String> {
            let media = Media::memory(bytes).map_err(|e| e.to_string())?;
            factory.set_memory(match conditions.late_memory {
                Some(most) => Memory::Late {
                    most,
                    seed: conditions.seed,
                },
                None => Memory::Ddr4(own.clone()),
            });
            factory.vary_registers(conditions.seed);
            factory.device(media).map_err(|e| e.to_string())
        };
        ::fuzz::run(&mut make, &campaign, &mut |done, all| {
            teller.tell(done, all)
        })
    });
    let found = outcome
        .as_ref()
        .is_ok_and(|report| report.failure.is_some());
    let interrupted = |e: &PyErr| e.is_instance_of::<PyKeyboardInterrupt>(py);
    if found && teller.raised.as_ref().is_some_and(interrupted) {
        teller.raised = None;
    }
    serde_json::to_string(&teller.settle(outcome)?).map_err(raise)
}
