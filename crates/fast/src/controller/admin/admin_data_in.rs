// SPDX-License-Identifier: Apache-2.0

//! Data of a Set Features, read from the host (nvme_admin_data_in).

use nvme::{WalkStep, Walker};
use spec::nvme::{status, Sqe, Status};

use crate::context::SimContext;
use crate::host_port::{HostReadData, ReadPurpose, BEAT};

use super::super::features::FeatureData;
use super::super::{timing, Controller};
use super::AdminState;

/// Data of a Set Features that is read from the host.
pub(super) struct HostDataFetch {
    what: FeatureData,
    /// Segments of host pages: address, bytes, offset.
    segments: Vec<(u64, u32, u32)>,
    received: Vec<u32>,
    bytes: Vec<u8>,
    /// Reads that are not complete.
    open: usize,
    failed: bool,
}

impl Controller {
    /// Reads the data of a Set Features.
    pub(super) fn fetch_host_data(
        &mut self,
        sqe: &Sqe,
        what: FeatureData,
        ctx: &mut SimContext,
    ) -> Result<(), Status> {
        let bytes = what.bytes();
        let mut walker = Walker::new(sqe, bytes, false);
        let mut segments = Vec::new();
        loop {
            match walker.step() {
                WalkStep::Data(piece) => {
                    segments.push((piece.addr, piece.len as u32, piece.offset as u32))
                }
                WalkStep::Failed(fault) => return Err(fault.status()),
                _ => break,
            }
        }
        for (n, &(addr, len, _)) in (0..).zip(&segments) {
            let skip = addr % BEAT;
            let whole = ((skip + u64::from(len)).next_multiple_of(BEAT) - skip) as u32;
            ctx.read_host(timing::LIST, ReadPurpose::AdminData(n), addr, whole);
        }
        self.admin.state = AdminState::HostData(HostDataFetch {
            what,
            received: vec![0; segments.len()],
            open: segments.len(),
            segments,
            bytes: vec![0; bytes as usize],
            failed: false,
        });
        Ok(())
    }

    /// Receives data of a Set Features.
    pub(crate) fn accept_admin_data(
        &mut self,
        piece: u8,
        arrival: &HostReadData,
        ctx: &mut SimContext,
    ) {
        let AdminState::HostData(fetch) = &mut self.admin.state else {
            unreachable!("a Set Features waits for all of its data");
        };
        let (_, len, offset) = fetch.segments[usize::from(piece)];
        let received = &mut fetch.received[usize::from(piece)];
        match &arrival.data {
            None => fetch.failed = true,
            Some(data) => {
                let some = data.len().min((len - *received) as usize);
                let at = (offset + *received) as usize;
                fetch.bytes[at..at + some].copy_from_slice(&data[..some]);
                *received += some as u32;
            }
        }
        if !arrival.last {
            return;
        }
        fetch.failed |= *received < len;
        fetch.open -= 1;
        if fetch.open > 0 {
            return;
        }
        let (failed, what, bytes) = (fetch.failed, fetch.what, std::mem::take(&mut fetch.bytes));
        let outcome = match (failed, what) {
            (true, _) => Err(status::DATA_TRANSFER_ERROR),
            (false, FeatureData::Behavior) => self.features.set_behavior(bytes[0]),
            (false, FeatureData::Timestamp) => {
                let bytes = bytes.try_into().expect("a Timestamp has 8 bytes");
                let now = self.uptime(ctx);
                self.features.set_timestamp(bytes, now);
                Ok(())
            }
        };
        self.complete_admin(outcome.err().unwrap_or(status::SUCCESS), 0, ctx);
    }
}
