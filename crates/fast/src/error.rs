// SPDX-License-Identifier: Apache-2.0

//! Why there is no device.

use sim::MediaError;

/// A device that the fast model can't simulate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An engine that exists only in RTL.
    #[error(
        "engine {name} ({engine}): the fast model does not have it, only the rtl model can run it"
    )]
    Engine {
        /// The engine's name in the design.
        name: String,
        /// Its kind, or its folder.
        engine: String,
    },
    /// The journal of the media, or the local memory, can't be opened.
    #[error(transparent)]
    Media(#[from] MediaError),
}
