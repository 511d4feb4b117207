// SPDX-License-Identifier: Apache-2.0

//! Reads hardware file lists, in the form that `tools/filelist.py` describes.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The sources, include folders and lint waivers of one or more lists, each once, in order. All
/// paths are relative to the repository root; in a list they may be relative to its folder, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileList {
    /// SystemVerilog sources, packages before their users.
    pub sources: Vec<PathBuf>,
    /// Where includes are looked for.
    pub incdirs: Vec<PathBuf>,
    /// Verilator control files: `hw/lint/common.vlt`, and every `lint/*.vlt` beside a list.
    pub waivers: Vec<PathBuf>,
    lists: Vec<PathBuf>,
}

impl Default for FileList {
    fn default() -> Self {
        FileList {
            sources: Vec::new(),
            incdirs: Vec::new(),
            waivers: vec![PathBuf::from("hw/lint/common.vlt")],
            lists: Vec::new(),
        }
    }
}

impl FileList {
    /// Adds one list and the lists that it includes.
    pub fn add(&mut self, root: &Path, list: &Path) -> Result<()> {
        if self.lists.iter().any(|known| known == list) {
            return Ok(());
        }
        self.lists.push(list.to_path_buf());
        let path = root.join(list);
        let text = std::fs::read_to_string(&path).map_err(|e| Error::io(&path, e))?;
        // Relative to the root, or to the list's folder.
        let place = |entry: &str| -> PathBuf {
            let beside = list.parent().unwrap_or(Path::new("")).join(entry);
            match !root.join(entry).exists() && root.join(&beside).exists() {
                true => beside,
                false => PathBuf::from(entry),
            }
        };
        for (index, line) in text.lines().enumerate() {
            let line = line.split("//").next().unwrap_or("");
            let entry = line.split('#').next().unwrap_or("").trim();
            if entry.is_empty() {
                continue;
            }
            let bad =
                |what: &str| Error::FileList(format!("{}:{}: {what}", path.display(), index + 1));
            if let Some(other) = entry.strip_prefix("-f ") {
                self.add(root, &place(other.trim()))?;
            } else if let Some(dir) = entry.strip_prefix("+incdir+") {
                push_unique(&mut self.incdirs, place(dir));
            } else if entry.starts_with(['-', '+']) {
                return Err(bad(&format!(
                    "only paths, -f and +incdir+ are allowed here, not '{entry}'"
                )));
            } else if !root.join(place(entry)).is_file() {
                return Err(bad(&format!("{entry} does not exist")));
            } else {
                push_unique(&mut self.sources, place(entry));
            }
        }
        let lint = list.parent().unwrap_or(Path::new("")).join("lint");
        for waiver in sorted_files(&root.join(&lint), |name| name.ends_with(".vlt")) {
            push_unique(&mut self.waivers, lint.join(waiver));
        }
        Ok(())
    }

    /// Every file whose content matters to a build.
    pub fn inputs(&self, root: &Path) -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> = self.waivers.iter().chain(&self.sources).cloned().collect();
        for dir in &self.incdirs {
            let headers = sorted_files(&root.join(dir), |name| {
                name.ends_with(".svh") || name.ends_with(".vh")
            });
            all.extend(headers.into_iter().map(|name| dir.join(name)));
        }
        all
    }
}

fn push_unique(items: &mut Vec<PathBuf>, item: PathBuf) {
    if !items.contains(&item) {
        items.push(item);
    }
}

fn sorted_files(dir: &Path, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Vec::new(); // most lists have no lint folder
    };
    let names = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| wanted(name)).collect();
    names.sort();
    names
}
