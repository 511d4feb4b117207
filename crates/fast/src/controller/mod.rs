//! The NVMe controller.

pub mod error_log;
pub mod events;
pub mod features;
pub mod identify;
pub mod logs;
pub mod smart;
