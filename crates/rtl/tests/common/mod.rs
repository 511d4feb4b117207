//! What the tests share.
#![allow(dead_code)]

use std::path::PathBuf;
use std::sync::Arc;

use rtl::bitstream::{compile, repo_root, stderr_progress, Bitstream, BitstreamSpec};

/// The spec of the fixture device.
pub fn fixture_spec(trace: bool) -> BitstreamSpec {
    BitstreamSpec {
        root: repo_root().unwrap(),
        top: "rtl_fixture".to_string(),
        filelists: vec![PathBuf::from("hw/top/sim/rtl_fixture.f")],
        trace,
        ..BitstreamSpec::default()
    }
}

/// Builds and loads a design.
pub fn load(spec: &BitstreamSpec) -> Arc<Bitstream> {
    let path = compile(spec, &mut stderr_progress(&spec.top)).unwrap();
    Bitstream::open(&path).unwrap()
}
