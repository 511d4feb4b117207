//! The link and the scheduler against arithmetic, with devices made for the purpose.

mod borders;
mod clocked;
mod loads;
mod order;
mod peers;
mod power;
mod throughput;
mod timing;
