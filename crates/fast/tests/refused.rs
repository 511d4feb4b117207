// SPDX-License-Identifier: Apache-2.0

//! Engines that the fast model does not have.

use design::Design;
use fast::{Config, FastDevice};
use sim::Media;

#[test]
fn engine_of_the_rtl_alone_is_refused_by_name() {
    let values = "engine = [{ name = \"box\", engine = \"tests/engines/mailbox\" }]";
    let design = Design::find("engines")
        .unwrap()
        .with_values(values)
        .unwrap();
    let config = Config::of(&design).unwrap();
    let media = Media::memory(design.media.bytes.0).unwrap();
    let error = FastDevice::new(config, media).err().unwrap();
    let expected =
        "engine box (tests/engines/mailbox): the fast model does not have it, only the rtl \
                    model can run it";
    assert_eq!(error.to_string(), expected);
}
