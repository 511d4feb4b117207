// SPDX-License-Identifier: Apache-2.0

//! A program without a checkout has all files that devices on the fast model need.

use std::process::Command;

use design::Design;
use device::Model;
use driver::DriverConfig;
use testbed::Testbed;

/// The checkout is found by the environment and the working directory, so a child process has
/// others.
#[test]
fn testbed_runs_without_a_checkout() {
    if std::env::var_os("NEARSIDE_ROOT").is_none_or(|root| !root.is_empty()) {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "testbed_runs_without_a_checkout", "--nocapture"]);
        child
            .env("NEARSIDE_ROOT", "")
            .current_dir(std::env::temp_dir());
        let done = child.output().unwrap();
        let text = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{text}");
        return;
    }
    for name in ["default", "nearpm", "sort", "engines"] {
        let design = Design::find(name).unwrap();
        let testbed = Testbed::builder(&design).model(Model::Fast);
        let testbed = testbed.media_profile().build().unwrap();
        assert_eq!(testbed.engines(0).len(), design.engine.len(), "{name}");
        let mut nvme = testbed.driver(0, DriverConfig::default()).unwrap();
        nvme.write(8, &[0x5A; 512]).unwrap();
        let mut data = [0; 512];
        nvme.read(8, &mut data).unwrap();
        assert_eq!(data, [0x5A; 512], "{name}");
    }
    let error = Design::find("nonesuch").unwrap_err().to_string();
    assert!(error.contains("in the program; there: "), "{error}");
    // Only the RTL is compiled from a checkout.
    let design = Design::find("default").unwrap();
    let error = Testbed::builder(&design).model(Model::Rtl).build().err();
    let error = error.unwrap().to_string();
    let text = "this needs a checkout of Nearside, and none was found: run inside one or set \
                NEARSIDE_ROOT";
    assert_eq!(error, text);
}
