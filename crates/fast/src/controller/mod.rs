//! The NVMe controller.
