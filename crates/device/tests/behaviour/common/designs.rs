// SPDX-License-Identifier: Apache-2.0

//! Designs for tests; `crates/rtl/tests` uses some of them, too.
#![allow(dead_code)]

use std::path::PathBuf;

use design::Design;

/// The repository.
pub fn root() -> PathBuf {
    design::checkout().unwrap()
}

/// A design of `designs/`.
pub fn design(name: &str) -> Design {
    Design::find(name).unwrap()
}

/// The default device with another number of channels, each in turns of 8 KiB.
pub fn channels(channels: u32) -> Design {
    let values = format!("channels = {channels}\ngranule = \"8 KiB\"");
    design("default").with_values(&values).unwrap()
}

/// An engine of a design, in TOML.
fn engine(name: &str, engine: &str) -> String {
    format!("[[engine]]\nname = \"{name}\"\nengine = \"{engine}\"\n")
}

fn two_memories_and(engines: &str) -> Design {
    let text = format!(
        r#"
name = "mailboxes"
clock_mhz = 10
[media]
bytes = "16 MiB"
profile = "dram"
[nvme]
io_queues = 2
namespaces = ["8 MiB", "4 MiB"]
[[memory]]
name = "local"
bytes = "1 MiB"
channels = 2
granule = "8 KiB"
{engines}"#
    );
    Design::parse(&text, &root().join("mailboxes.toml")).unwrap()
}

/// Two memories, two mailboxes (`tests/engines/mailbox`), a copy, and `tests/engines/hold` at the
/// access hook, with two I/O queues and two namespaces.
///
/// The second mailbox has commands in one namespace only. Mailboxes and hold exist only in
/// SystemVerilog.
pub fn mailboxes() -> Design {
    let all = [
        engine("a", "tests/engines/mailbox"),
        engine("copy0", "copy"),
        engine("b", "tests/engines/mailbox"),
        "namespaces = [2]\nopcodes = [0x94, 0xA3]\n".to_string(),
        engine("hold", "tests/engines/hold"),
    ];
    two_memories_and(&all.concat())
}

/// That design with only its copy, for either model.
pub fn copy_alone() -> Design {
    two_memories_and(&engine("copy0", "copy"))
}

/// The engines of tables on a small device, each within the second namespace and the local memory.
/// What follows that namespace belongs to none.
pub fn tables() -> Design {
    let engines: String = [
        ("sorter0", "sorter"),
        ("shuffle0", "row_shuffle"),
        ("decode0", "dict_decode"),
        ("pipeline0", "pipeline"),
    ]
    .iter()
    .map(|(name, kind)| engine(name, kind) + "namespaces = [2]\n")
    .collect();
    let text = format!(
        r#"
name = "tables"
clock_mhz = 250
channels = 2
granule = "4 KiB"
[media]
bytes = "16 MiB"
profile = "dram"
[nvme]
io_queues = 2
namespaces = ["2 MiB", "8 MiB"]
[[memory]]
name = "local"
bytes = "1 MiB"
channels = 1
profile = "dram"
{engines}"#
    );
    Design::parse(&text, &root().join("tables.toml")).unwrap()
}
