//! The bitstream: a design compiled by Verilator into a shared object, and models made from it.

mod compile;
mod filelist;
mod load;

pub use compile::{
    compile, compile_trained, digest, find_verilator, repo_root, stderr_progress, BitstreamSpec,
    Progress, Purpose, Training,
};
pub use filelist::FileList;
pub use load::{Bitstream, Dir, Field, Model, Port};
