//! Files of traces.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use sim::{Time, TraceEvent, TraceSink};

use crate::chrome::Chrome;
use crate::collect::Collector;
use crate::json;

/// As Linux has it on x86-64 and AArch64.
const O_NONBLOCK: i32 = 0o4000;

enum Format {
    Lines,
    Chrome(Chrome),
}

/// A file that commands are written to as they end.
pub struct TraceFile {
    out: BufWriter<File>,
    format: Format,
    collector: Collector,
    commands: u64,
    error: Option<io::Error>,
    ended: bool,
}

impl TraceFile {
    /// Creates the file: with the extension `jsonl` one line a command, with `json` a trace for Perfetto.
    pub fn create(path: &Path) -> io::Result<TraceFile> {
        let format = match path.extension().and_then(|e| e.to_str()) {
            Some("jsonl") => Format::Lines,
            Some("json") => Format::Chrome(Chrome::default()),
            _ => {
                let text =
                    "the name of a trace ends in .jsonl (a line a command) or .json (for Perfetto)";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
        };
        let mut file = TraceFile {
            out: BufWriter::new(create(path)?),
            format,
            collector: Collector::new(),
            commands: 0,
            error: None,
            ended: false,
        };
        if let Format::Chrome(chrome) = &mut file.format {
            chrome.begin(&mut file.out)?;
        }
        Ok(file)
    }

    /// Writes what is left, commands that have not ended included, and returns the number of commands. What comes later is not
    /// written. An error is the first that there was.
    pub fn finish(&mut self) -> io::Result<u64> {
        if !self.ended {
            self.collector.end();
            self.write();
            self.ended = true;
            if let Format::Chrome(chrome) = &mut self.format {
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
        for command in self.collector.take() {
            if self.error.is_some() {
                return; // the disk is full, perhaps: the rest would only leave holes
            }
            let done = match &mut self.format {
                Format::Lines => json::line(&mut self.out, &command),
                Format::Chrome(chrome) => chrome.command(&mut self.out, &command),
            };
            match done {
                Ok(()) => self.commands += 1,
                Err(error) => self.error = Some(error),
            }
        }
    }
}

/// Like [`File::create`], but a pipe that nobody reads is an error, instead of a wait for ever.
fn create(path: &Path) -> io::Result<File> {
    let pipe = std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_fifo());
    // It keeps a reader that is there from being missed while the file is opened.
    let _probe = if pipe {
        let mut options = File::options();
        let probe = options.write(true).custom_flags(O_NONBLOCK).open(path);
        Some(probe.map_err(|_| io::Error::other("nobody reads from this pipe"))?)
    } else {
        None
    };
    File::create(path)
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
        // Whoever wants to know of errors has called it before.
        let _ = self.finish();
    }
}
