// SPDX-License-Identifier: Apache-2.0

//! Finds the programs that compile a design.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, Result};

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
