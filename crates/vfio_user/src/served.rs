// SPDX-License-Identifier: Apache-2.0

//! What a device to serve is.

use std::path::PathBuf;

use sim::{Device, Tracer};

use crate::log::Log;
use crate::{Function, RegisterWrite};

/// A device that is to be served.
pub struct ServedDevice {
    /// Name for log lines.
    pub name: String,
    /// Path of the socket.
    pub socket: PathBuf,
    /// The device. It has power.
    pub device: Box<dyn Device + Send>,
    /// Its appearance on the bus.
    pub function: Function,
    /// Register writes after each power-on and reset.
    pub setup: Vec<RegisterWrite>,
    /// Receives the events of commands.
    pub tracer: Option<Tracer>,
    /// Receives log lines about the device and its clients.
    pub log: Log,
}
