// SPDX-License-Identifier: Apache-2.0

//! The bitstreams that tests across the crates use. `make test` runs these first, two at a time, so
//! that all other tests find their device built. Each is built for [`rtl::Purpose`]'s default, as
//! in the other tests.

mod common;

use std::path::{Path, PathBuf};

use rtl::bitstream::{compile, Bitstream, BitstreamSpec, Purpose, VerilatedModel};
use rtl::{DeviceConfig, TraceWindow};
use sim::Time;

/// Builds it, and checks whether an assertion could end a run.
fn builds(config: DeviceConfig) {
    let bitstream = common::load(&config.bitstream());
    assert_eq!(bitstream.build(), "checked");
    assert!(VerilatedModel::new(&bitstream)
        .unwrap()
        .field("idle_o")
        .is_ok());
}

#[test]
fn default() {
    builds(common::design("default"));
}

#[test]
fn namespaces() {
    builds(common::design("namespaces"));
}

#[test]
fn fuzz() {
    builds(common::design("fuzz"));
}

#[test]
#[ignore = "compiles a separate device"]
fn engines() {
    builds(common::design("engines"));
}

#[test]
#[ignore = "compiles a separate device"]
fn engines_in_separate_folders() {
    builds(common::mailboxes());
}

#[test]
fn purpose_defaults_to_checked() {
    assert_eq!(BitstreamSpec::default().purpose, Purpose::Checked);
    assert_eq!(DeviceConfig::new().unwrap().purpose, Purpose::Checked);
    let design = common::design("default");
    assert_eq!(design.bitstream().purpose, Purpose::Checked);
}

fn object(spec: &BitstreamSpec) -> PathBuf {
    compile(spec, &mut |_| true).unwrap()
}

#[test]
fn purpose_running_is_a_separate_build() {
    let checked = common::fixture_spec(false);
    let running = BitstreamSpec {
        purpose: Purpose::Running,
        ..checked.clone()
    };
    let folder = |path: &Path| path.parent().unwrap().to_path_buf();
    assert_ne!(folder(&object(&checked)), folder(&object(&running)));
    let build = |spec| Bitstream::open(&object(spec)).unwrap().build().to_string();
    assert_eq!(build(&checked), "checked");
    // Another test trains it, maybe at this time.
    assert!(build(&running).starts_with("running"));
}

mod long {
    use super::*;

    #[test]
    #[ignore = "compiles a separate device"]
    fn one_channel_with_waveforms() {
        let window = TraceWindow {
            from: Time::ZERO,
            to: Time::us(1),
            path: PathBuf::from("/dev/null"),
        };
        let config = DeviceConfig {
            trace: Some(window),
            ..common::channels(1)
        };
        builds(config.clone());
        // Waveforms are for finding faults, so such a build has assertions.
        let running = DeviceConfig {
            purpose: Purpose::Running,
            ..config.clone()
        };
        assert_eq!(running.bitstream(), config.bitstream());
    }

    #[test]
    #[ignore = "compiles a separate device"]
    fn four_channels() {
        builds(DeviceConfig::from_design(&common::designs::channels(4)).unwrap());
    }

    #[test]
    #[ignore = "compiles a separate device"]
    fn default_with_fills_inside() {
        builds(common::fill_inside());
    }
}
