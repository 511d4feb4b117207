// SPDX-License-Identifier: Apache-2.0

//! New devices with the crash-consistency engine, and how many of them a measurement may use.

use std::sync::Arc;

use design::Design;
use device::Factory;
use pm::EngineHandle;
use testbed::Testbed;

use crate::{Error, Result};

/// A host with new devices, which have the design's media profile, and their engines.
pub fn testbed(factory: &Factory, devices: usize) -> Result<(Testbed, Vec<Arc<EngineHandle>>)> {
    let testbed = Testbed::of(factory).devices(devices).media_profile();
    let testbed = testbed.build()?;
    let engines = EngineHandle::of_testbed(&testbed);
    match engines.is_empty() {
        false => Ok((testbed, engines)),
        true => Err(Error::NoEngine(factory.design().name.clone())),
    }
}

/// The engines of an offloaded mechanism: those of all devices, or none.
pub(crate) fn executors(engines: &[Arc<EngineHandle>], offloaded: bool) -> &[Arc<EngineHandle>] {
    match offloaded {
        true => engines,
        false => &[],
    }
}

/// Refuses to rely on an order of posted stores that is not kept: with engines, several channels,
/// several devices.
pub(crate) fn validate_order(
    design: &Design,
    ordered: bool,
    offloaded: bool,
    devices: usize,
) -> Result<()> {
    let kept = !offloaded && devices == 1 && design.channels == 1;
    match ordered && !kept {
        true => {
            let allowed = "with offloaded = false, one device, and a design of one channel only";
            Err(Error::refused("fence", "ordered", allowed))
        }
        false => Ok(()),
    }
}

/// Refuses numbers of devices that no pool spans.
pub(crate) fn validate_devices(devices: usize) -> Result<()> {
    match devices {
        1 | 2 | 4 => Ok(()),
        _ => Err(Error::refused("devices", devices, "1, 2 and 4")),
    }
}

/// Refuses groups that would not be durable together.
pub(crate) fn validate_group(group: Option<u64>, devices: usize) -> Result<()> {
    match group {
        Some(0) => Err(Error::refused("group", 0, "1 and more")),
        Some(group) if devices > 1 => {
            let allowed = "none with several devices, whose transactions are durable on return";
            Err(Error::refused("group", group, allowed))
        }
        _ => Ok(()),
    }
}
