// SPDX-License-Identifier: Apache-2.0

//! Finds the checkout, and the programs that compile a design in it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, Result};

/// The repository that holds the hardware sources: `$NEARSIDE_ROOT`, the working directory or one
/// above it, or where this crate was built.
pub fn repo_root() -> Result<PathBuf> {
    let is_root = |dir: &Path| dir.join("hw/lib/lib.f").is_file();
    if let Some(dir) = std::env::var_os("NEARSIDE_ROOT") {
        let dir = PathBuf::from(dir);
        if is_root(&dir) {
            return Ok(dir);
        }
        return Err(Error::Config(format!(
            "NEARSIDE_ROOT={} is no checkout of Nearside (no hw/lib/lib.f in it)",
            dir.display()
        )));
    }
    let here = std::env::current_dir().map_err(|e| Error::io(Path::new("."), e))?;
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let found = here
        .ancestors()
        .chain([built.as_path()])
        .find(|dir| is_root(dir));
    found
        .and_then(|dir| dir.canonicalize().ok())
        .ok_or_else(|| {
            Error::Config(
                "the Nearside checkout was not found: run inside it or set NEARSIDE_ROOT"
                    .to_string(),
            )
        })
}

/// The Verilator to use: `$NEARSIDE_VERILATOR`, the repository's own, or the one on PATH.
pub fn find_verilator(root: &Path) -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("NEARSIDE_VERILATOR") {
        let path = PathBuf::from(path);
        if path.is_file() {
            return Ok(path);
        }
        return Err(Error::MissingTool {
            tool: "Verilator",
            advice: format!("NEARSIDE_VERILATOR={} is not a file", path.display()),
        });
    }
    let own = root.join(".venv/bin/verilator");
    if own.is_file() {
        return Ok(own);
    }
    on_path("verilator").ok_or_else(|| Error::MissingTool {
        tool: "Verilator",
        advice: format!("run `make setup` in {}", root.display()),
    })
}

/// A program by its path, or by its name on PATH.
pub(super) fn on_path(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| path.is_file());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|dir| dir.join(program))
        .find(|p| p.is_file())
}

/// What a program says to `--version`; it is called `name` where it fails.
pub(super) fn version_of(program: &Path, name: &'static str) -> Result<String> {
    let done = Command::new(program).arg("--version").output();
    match done {
        Ok(done) if done.status.success() => {
            Ok(String::from_utf8_lossy(&done.stdout).trim().to_string())
        }
        Ok(done) => Err(Error::MissingTool {
            tool: name,
            advice: format!(
                "`{} --version` ended with {}",
                program.display(),
                done.status
            ),
        }),
        Err(error) => Err(Error::io(program, error)),
    }
}
