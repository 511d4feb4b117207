// SPDX-License-Identifier: Apache-2.0

//! Embeds the designs, media profiles and manifests of engines, which an installed program has no
//! checkout to read from.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The entries of a folder of the checkout, by name.
fn entries(root: &Path, folder: &str) -> io::Result<Vec<String>> {
    println!("cargo::rerun-if-changed={}", root.join(folder).display());
    let entries = fs::read_dir(root.join(folder))?;
    let mut names = entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

fn main() -> io::Result<()> {
    let variable = |name| env::var_os(name).map(PathBuf::from).unwrap_or_default();
    let root = variable("CARGO_MANIFEST_DIR")
        .join("../..")
        .canonicalize()?;
    let mut files = Vec::new();
    for folder in ["designs", "media"] {
        let names = entries(&root, folder)?;
        let toml = names.iter().filter(|name| name.ends_with(".toml"));
        files.extend(toml.map(|name| format!("{folder}/{name}")));
    }
    let engines = entries(&root, "hw/engine")?;
    let manifests = engines
        .iter()
        .map(|name| format!("hw/engine/{name}/engine.toml"));
    files.extend(manifests.filter(|file| root.join(file).is_file()));
    let mut text = String::from("[\n");
    for file in files {
        // The compiler notes included files as dependencies.
        writeln!(text, "({file:?}, include_str!({:?})),", root.join(&file))
            .map_err(io::Error::other)?;
    }
    fs::write(variable("OUT_DIR").join("shipped.rs"), text + "]\n")
}
