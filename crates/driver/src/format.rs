// SPDX-License-Identifier: Apache-2.0

//! Format NVM.

use sim::Time;
use spec::nvme::{oacs, Sqe, ALL_NAMESPACES};

use crate::{Error, Host, NvmeDriver, Result};

/// Time allowed for Format NVM: one second per this number of bytes, in addition to that of any
/// command.
const BYTES_PER_SECOND: u64 = 100_000_000;

/// Secure Erase Settings of Format NVM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Erase {
    /// No secure erase. The controller returns no earlier data all the same.
    #[default]
    None,
    /// User Data Erase.
    UserData,
    /// Cryptographic Erase.
    Cryptographic,
}

impl<H: Host> NvmeDriver<H> {
    /// Formats a namespace, or all of them (`ALL_NAMESPACES`), with LBA format 0. Their content is
    /// lost.
    ///
    /// No other command should be in flight in them. The selected namespace stays the same.
    pub fn format(&mut self, nsid: u32, erase: Erase) -> Result<()> {
        if self.identity().oacs & oacs::FORMAT_NVM == 0 {
            return Err(Error::Unsupported("OACS lacks Format NVM".into()));
        }
        let affected = self.namespaces().iter();
        let bytes = affected
            .filter(|(id, _)| nsid == *id || nsid == ALL_NAMESPACES)
            .fold(0u64, |sum, (_, ns)| sum.saturating_add(ns.bytes()));
        let span = Time::ms((bytes / (BYTES_PER_SECOND / 1000)).min(1 << 40));
        let ses = match erase {
            Erase::None => 0,
            Erase::UserData => 1,
            Erase::Cryptographic => 2,
        };
        let timeout = self.command_timeout() + span;
        self.admin_within(Sqe::format_nvm(nsid, ses), "Format NVM", timeout)?;
        Ok(())
    }
}
