//! Empty: only the build scripts of the dependencies matter.
