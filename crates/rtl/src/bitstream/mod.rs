// SPDX-License-Identifier: Apache-2.0

//! A bitstream is a design compiled by Verilator into a shared object. This module compiles and
//! loads bitstreams and makes models from them.

mod compile;
mod filelist;
mod find;
mod load;

pub use compile::{
    compile, compile_trained, digest, stderr_progress, BitstreamSpec, Progress, Purpose,
    TrainingRun,
};
pub use filelist::FileList;
pub use find::find_verilator;
pub(crate) use load::RawOrder;
pub use load::{Bitstream, Field, ModelPort, PortDirection, VerilatedModel};
