// SPDX-License-Identifier: Apache-2.0

//! Empty: only the build scripts of the dependencies matter.
