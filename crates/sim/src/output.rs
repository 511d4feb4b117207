// SPDX-License-Identifier: Apache-2.0

//! Files that devices write for users: traces and waveforms.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{flock, FlockOperation, OFlags};
use rustix::io::Errno;

use crate::config::escape_controls;
use crate::fork::SharedResource;

/// An output file. A regular one is locked (`flock`) until this is dropped, so that no other device
/// can use it for media or output.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    file: File,
    _shared: SharedResource,
}

impl Output {
    /// Opens or creates the file, and keeps its content. A file that a device uses is an error. So
    /// is a pipe without a reader, which would block forever.
    pub fn open(path: &Path) -> io::Result<Output> {
        let pipe = std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_fifo());
        // It guarantees that the reader is not missed while the file is opened.
        let _probe = if pipe {
            let mut options = File::options();
            let flags = OFlags::NONBLOCK.bits() as i32;
            let probe = options.write(true).custom_flags(flags).open(path);
            Some(probe.map_err(|_| io::Error::other("nobody reads from this pipe"))?)
        } else {
            None
        };
        let mut options = File::options();
        let file = options
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        if file.metadata()?.is_file() {
            lock(&file)?;
        }
        let path: PathBuf = path.into();
        let shared = SharedResource::new(format!("file {}", escape_controls(path.display())));
        Ok(Output {
            path,
            file,
            _shared: shared,
        })
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Truncates a regular file.
    pub fn clear(&self) -> io::Result<()> {
        match self.file.metadata()?.is_file() {
            true => self.file.set_len(0),
            false => Ok(()),
        }
    }
}

fn lock(file: &File) -> io::Result<()> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => {
            let text = "a device has this file for its media, a trace or a waveform, here or in \
                another process; name another file";
            Err(io::Error::new(io::ErrorKind::ResourceBusy, text))
        }
        Err(e) => {
            let error = io::Error::from(e);
            let text = format!("can't lock it: {error}");
            Err(io::Error::new(error.kind(), text))
        }
    }
}

impl Write for Output {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.file.write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl AsFd for Output {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // Closing the file is not enough: a forked process may have the same open file.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Media;

    #[test]
    fn output_refuses_a_file_that_a_device_has() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let refused = || {
            let error = Output::open(&path).unwrap_err().to_string();
            assert!(error.contains("name another file"), "{error}");
        };
        let media = Media::file(&path, 4096).unwrap();
        refused();
        assert_eq!(std::fs::read(&path).unwrap(), [0; 4096]);
        drop(media);
        let output = Output::open(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), [0; 4096], "not yet cleared");
        refused();
        assert!(Media::file(&path, 4096).is_err());
        output.clear().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), []);
        // As a forked process has it.
        let same = output.file.try_clone().unwrap();
        drop(output);
        Output::open(&path).unwrap();
        drop(same);
    }
}
