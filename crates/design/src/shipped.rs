// SPDX-License-Identifier: Apache-2.0

//! The files that belong to the program: designs, media profiles and manifests of engines. They are
//! those of a checkout if there is one, otherwise those that the program was built with.

use std::path::{Path, PathBuf};

use crate::error::{self, Error};

/// Path in the checkout, and text.
static EMBEDDED: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// The checkout, which compiling the RTL needs: `$NEARSIDE_ROOT`, the working directory or one
/// above it, or where the program was built. With `NEARSIDE_ROOT` set to the empty text there is
/// none.
pub fn checkout() -> Result<PathBuf, Error> {
    find_checkout()?.ok_or(Error::NoCheckout)
}

fn find_checkout() -> Result<Option<PathBuf>, Error> {
    let is_root = |dir: &Path| dir.join("hw/lib/lib.f").is_file();
    if let Some(dir) = std::env::var_os("NEARSIDE_ROOT") {
        let dir = PathBuf::from(dir);
        return match dir.as_os_str().is_empty() {
            true => Ok(None),
            false if is_root(&dir) => Ok(Some(dir)),
            false => Err(Error::NotACheckout(dir)),
        };
    }
    let here = std::env::current_dir().unwrap_or_default();
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = here.ancestors().chain([built.as_path()]);
    let found = all.find(|dir| is_root(dir));
    Ok(found.and_then(|dir| dir.canonicalize().ok()))
}

/// Where the program's files come from.
pub(crate) struct Shipped {
    /// The checkout; without one they are [`EMBEDDED`].
    pub root: Option<PathBuf>,
}

impl Shipped {
    pub fn new() -> Result<Shipped, Error> {
        let root = find_checkout()?;
        Ok(Shipped { root })
    }

    /// A file by its path in the checkout: its path for messages, and its text. `None` if there is
    /// no such file.
    pub fn read(&self, file: &Path) -> Result<Option<(PathBuf, String)>, Error> {
        let embedded = || EMBEDDED.iter().find(|(path, _)| Path::new(path) == file);
        let path = match &self.root {
            Some(root) => root.join(file),
            None => match embedded() {
                Some((_, text)) => return Ok(Some((file.into(), text.to_string()))),
                None => file.into(),
            },
        };
        match path.exists() {
            true => Ok(Some((path.clone(), error::read(&path)?))),
            false => Ok(None),
        }
    }

    /// The names in a folder of the checkout whose path there continues with `end`.
    pub fn names(&self, folder: &str, end: &str) -> String {
        let mut names: Vec<String> = match &self.root {
            Some(root) => {
                let entries = std::fs::read_dir(root.join(folder));
                let entries = entries.into_iter().flatten().flatten();
                let paths = entries.map(|entry| match end.strip_prefix('/') {
                    Some(file) => entry.path().join(file),
                    None => entry.path(),
                });
                let files = paths.filter(|path| path.is_file());
                let relative = |path: PathBuf| Some(path.strip_prefix(root).ok()?.to_str()?.into());
                files.filter_map(relative).collect()
            }
            None => EMBEDDED.iter().map(|(path, _)| path.to_string()).collect(),
        };
        let folder = format!("{folder}/");
        let name = |path: &String| Some(path.strip_prefix(&folder)?.strip_suffix(end)?.to_string());
        names = names.iter().filter_map(name).collect();
        names.sort();
        match names.is_empty() {
            true => "none".into(),
            false => names.join(", "),
        }
    }
}

/// A design or a media profile: a name means `<folder>/<name>.toml` of the program, a value with
/// `/` or `.toml` is a path. Returns the path and the text.
pub(crate) fn find(
    kind: &'static str,
    folder: &str,
    name: &str,
) -> Result<(PathBuf, String), Error> {
    if name.contains('/') || name.ends_with(".toml") {
        return Ok((name.into(), error::read(Path::new(name))?));
    }
    let shipped = Shipped::new()?;
    let found = shipped.read(&Path::new(folder).join(format!("{name}.toml")))?;
    found.ok_or_else(|| {
        let place = match &shipped.root {
            Some(root) => root.join(folder).display().to_string(),
            None => "the program".into(),
        };
        let (name, there) = (name.into(), shipped.names(folder, ".toml"));
        Error::NotFound {
            kind,
            name,
            place,
            there,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_files_without_a_checkout_are_those_of_the_checkout() {
        let embedded = Shipped { root: None };
        let checkout = Shipped {
            root: Some(checkout().unwrap()),
        };
        for (folder, end) in [
            ("designs", ".toml"),
            ("media", ".toml"),
            ("hw/engine", "/engine.toml"),
        ] {
            let names = embedded.names(folder, end);
            assert_eq!(names, checkout.names(folder, end));
            for name in names.split(", ") {
                let file = PathBuf::from(format!("{folder}/{name}{end}"));
                let (_, text) = embedded.read(&file).unwrap().unwrap();
                let (path, same) = checkout.read(&file).unwrap().unwrap();
                assert_eq!(text, same, "{}", path.display());
            }
            let file = format!("{folder}/nonesuch{end}");
            assert_eq!(embedded.read(Path::new(&file)).unwrap(), None);
        }
    }
}
