// SPDX-License-Identifier: Apache-2.0

//! The link and the scheduler compared with arithmetic, with devices made for these tests.

mod borders;
mod clocked;
mod loads;
mod order;
mod peers;
mod power;
mod throughput;
mod timing;
