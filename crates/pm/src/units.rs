// SPDX-License-Identifier: Apache-2.0

//! Sizes that several modules share.

/// Bytes of a page of the paged mechanisms, and of a stripe.
pub(crate) const PAGE: u64 = 4096;
