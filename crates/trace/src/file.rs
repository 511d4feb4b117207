// SPDX-License-Identifier: Apache-2.0

//! Trace files.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use sim::{Output, Time, TraceEvent, TraceSink};

use crate::chrome::Chrome;
use crate::collect::Collector;
use crate::json;

enum FileFormat {
    Lines,
    Chrome(Chrome),
}

/// A file to which commands are written when they end.
pub struct TraceFile {
    out: BufWriter<Output>,
    format: FileFormat,
    collector: Collector,
    commands: u64,
    error: Option<io::Error>,
    ended: bool,
}

impl TraceFile {
    /// Creates the file: with the extension `jsonl` one line a command, with `json` a trace for
    /// Perfetto. The file is locked (`flock`) until this is dropped. A file that a device already
    /// uses, for its media, another trace or a waveform, is not changed.
    pub fn create(path: &Path) -> io::Result<TraceFile> {
        let format = match path.extension().and_then(|e| e.to_str()) {
            Some("jsonl") => FileFormat::Lines,
            Some("json") => FileFormat::Chrome(Chrome::default()),
            _ => {
                let text =
                    "the name of a trace ends in .jsonl (a line a command) or .json (for Perfetto)";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
        };
        let out = Output::open(path)?;
        out.clear()?;
        let mut file = TraceFile {
            out: BufWriter::new(out),
            format,
            collector: Collector::new(),
            commands: 0,
            error: None,
            ended: false,
        };
        if let FileFormat::Chrome(chrome) = &mut file.format {
            chrome.begin(&mut file.out)?;
        }
        Ok(file)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.out.get_ref().path()
    }

    /// Writes the remaining commands, including those in flight, and returns the number of
    /// commands. Later events are not written. An error is the first that occurred.
    pub fn finish(&mut self) -> io::Result<u64> {
        if !self.ended {
            self.collector.end();
            self.write();
            self.ended = true;
            if let FileFormat::Chrome(chrome) = &mut self.format {
                let done = chrome.end(&mut self.out);
                self.error = self.error.take().or(done.err());
            }
            let done = self.out.flush();
            self.error = self.error.take().or(done.err());
        }
        match self.error.take() {
            Some(error) => Err(error),
            None => Ok(self.commands),
        }
    }

    fn write(&mut self) {
        for command in self.collector.take_finished() {
            if self.error.is_some() {
                return; // the disk is full, perhaps: the rest would only leave holes
            }
            let done = match &mut self.format {
                FileFormat::Lines => json::line(&mut self.out, &command),
                FileFormat::Chrome(chrome) => chrome.command(&mut self.out, &command),
            };
            match done {
                Ok(()) => self.commands += 1,
                Err(error) => self.error = Some(error),
            }
        }
    }
}

impl TraceSink for TraceFile {
    fn event(&mut self, time: Time, event: &TraceEvent) {
        if !self.ended {
            self.collector.event(time, event);
            self.write();
        }
    }
}

impl Drop for TraceFile {
    fn drop(&mut self) {
        // Callers that need the error have called it before.
        let _ = self.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_file_leaves_a_file_in_use_unchanged_under_all_of_its_names() {
        let dir = tempfile::tempdir().unwrap();
        let names = ["m.jsonl", "hard.json", "soft.jsonl"].map(|name| dir.path().join(name));
        let media = sim::Media::file(&names[0], 4096).unwrap();
        std::fs::hard_link(&names[0], &names[1]).unwrap();
        std::os::unix::fs::symlink(&names[0], &names[2]).unwrap();
        let refused = |whose: &str| {
            for name in &names {
                let error = TraceFile::create(name).err().unwrap().to_string();
                assert!(error.contains("name another file"), "{whose}: {error}");
            }
        };
        refused("media");
        assert_eq!(std::fs::read(&names[0]).unwrap(), [0; 4096]);
        drop(media);
        // A file that is not in use is replaced, and locked.
        let mut trace = TraceFile::create(&names[1]).unwrap();
        refused("a trace");
        assert!(sim::Media::file(&names[0], 4096).is_err());
        trace.finish().unwrap();
        refused("a trace that has ended but is there");
        let text = std::fs::read_to_string(&names[0]).unwrap();
        assert!(text.starts_with('{') && !text.contains('\0'), "{text:?}");
        drop(trace);
        assert_eq!(TraceFile::create(&names[2]).unwrap().finish().unwrap(), 0);
        assert_eq!(std::fs::read(&names[0]).unwrap(), []);
    }

    #[test]
    fn trace_file_locks_only_regular_files() {
        let dir = tempfile::tempdir().unwrap();
        let null = dir.path().join("null.jsonl");
        std::os::unix::fs::symlink("/dev/null", &null).unwrap();
        let both = [(); 2].map(|()| TraceFile::create(&null).unwrap());
        drop(both);
        assert!(std::fs::symlink_metadata(&null).unwrap().is_symlink());
    }
}
