// SPDX-License-Identifier: Apache-2.0

//! Format NVM (nvme_format).

use nvme::format::Format;
use nvme::BLOCK_BYTES;
use spec::nvme::{status, Sqe, Status, ALL_NAMESPACES};

use crate::context::SimContext;

use super::super::data_path::{interrupted, RangeOp, TransferOp};
use super::super::Controller;
use super::AdminState;

/// Blocks that a format zeroes with one range walk.
const FORMAT_BLOCKS: u64 = 65536;

/// Progress of a Format NVM.
pub(super) struct FormatProgress {
    /// Namespaces that are left, and all of the command, with namespace 1 in the lowest bit.
    left: u32,
    pub(super) all: u32,
    /// Blocks of the present namespace that are left: first, end.
    from: u64,
    to: u64,
    /// A range walk is in progress.
    pub(super) transfer_active: bool,
}

impl Controller {
    pub(super) fn format(
        &mut self,
        sqe: &Sqe,
        ctx: &mut SimContext,
    ) -> Result<Option<u32>, Status> {
        let format = Format::of(sqe);
        let namespaces = &self.config.namespaces;
        let all = match format.nsid {
            ALL_NAMESPACES => namespaces
                .active()
                .fold(0, |bits, n| bits | 1 << (n.nsid - 1)),
            nsid => {
                let namespace = namespaces
                    .get(nsid)
                    .ok_or(status::INVALID_NAMESPACE_OR_FORMAT.dnr())?;
                if !namespace.is_active() {
                    return Err(status::INVALID_FIELD.dnr());
                }
                1 << (nsid - 1)
            }
        };
        if format.lbaf != 0 {
            return Err(status::INVALID_FORMAT.dnr());
        }
        match format.pi {
            0 => {}
            1..=3 => return Err(status::INVALID_FORMAT.dnr()),
            _ => return Err(status::INVALID_FIELD.dnr()),
        }
        if format.ses > 1 {
            return Err(status::INVALID_FIELD.dnr());
        }
        self.admin.state = AdminState::Format(FormatProgress {
            left: all,
            all,
            from: 0,
            to: 0,
            transfer_active: false,
        });
        self.format_step(ctx);
        Ok(None)
    }

    /// Namespaces with commands in flight, namespace 1 in the lowest bit.
    fn namespaces_in_flight(&self) -> u32 {
        let in_flight = self
            .slots
            .iter()
            .flatten()
            .filter_map(|owner| owner.in_flight);
        in_flight.fold(0, |bits, nsid| bits | 1 << (nsid - 1))
    }

    pub(super) fn format_step(&mut self, ctx: &mut SimContext) {
        let (stopped, namespaces_in_flight) =
            (!self.accepts_commands(), self.namespaces_in_flight());
        let acre = self.features.acre();
        let (slot, _) = self.admin.in_progress();
        let AdminState::Format(work) = &mut self.admin.state else {
            unreachable!("a format is in progress");
        };
        let started = work.left != work.all || work.to > 0;
        if !started && namespaces_in_flight & work.all != 0 {
            return;
        }
        if work.from == work.to {
            if work.left == 0 {
                self.complete_admin(status::SUCCESS, 0, ctx);
                return;
            }
            let nsid = work.left.trailing_zeros() + 1;
            work.left &= work.left - 1;
            let namespace = self.config.namespaces.get(nsid);
            let namespace = namespace.expect("the command's namespaces exist");
            (work.from, work.to) = (namespace.base, namespace.base + namespace.blocks);
        }
        if stopped {
            self.complete_admin(interrupted(acre), 0, ctx);
            return;
        }
        let blocks = (work.to - work.from).min(FORMAT_BLOCKS);
        let addr = work.from * BLOCK_BYTES;
        work.from += blocks;
        work.transfer_active = true;
        self.start_range_op(
            slot,
            TransferOp::Zero,
            RangeOp::Zero(addr, blocks * BLOCK_BYTES),
            ctx,
        );
    }
}
