//! What NVMe commands mean: walkers of PRPs and SGLs, namespaces, features, logs. For models of controllers, which decide by themselves
//! what they do about it.

#![warn(missing_docs)]
