//! Channels of a memory: credits, `nvm_delay`, DRAM.
