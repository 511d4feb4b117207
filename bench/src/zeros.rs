// SPDX-License-Identifier: Apache-2.0

//! Commands that zero all of the media: Deallocate and Format, of 1 GiB that has been written
//! before.

use fast::FastDevice;
use sim::Time;
use spec::nvme::Sqe;

use crate::commands::{device, first_command, Host, Session};
use crate::process::cpu_seconds;

/// Bytes written and looked at in one go.
const PIECE: usize = 1 << 20;
/// Where the list of ranges is in host memory.
const LIST: u64 = 1 << 20;

/// Cost of a command.
pub struct Zeroed {
    /// Name of the command.
    pub name: &'static str,
    /// Bytes that are zeros now and were not before.
    pub bytes: u64,
    /// From the doorbell to the entry of its completion, simulated.
    pub simulated: Time,
    /// CPU seconds for that.
    pub seconds: f64,
}

/// Fills the media, has them made zeros, and looks whether they are; by each command.
pub fn measure() -> Result<Vec<Zeroed>, String> {
    let mut device = device()?;
    let mut host = Host::new();
    let mut session = Session::set_up(&mut device, &mut host)?;
    let bytes = device.media().size();
    let blocks = u32::try_from(bytes / 512).map_err(|e| e.to_string())?;
    let mut range = [0; 16];
    range[4..8].copy_from_slice(&blocks.to_le_bytes());
    host.write_memory(LIST as usize, &range);
    let deallocate = Sqe::deallocate(1, 1).with_prps(LIST, 0);
    let commands = [
        ("Deallocate", false, deallocate),
        ("Format NVM", true, Sqe::format_nvm(1, 0)),
    ];
    let mut all = Vec::new();
    for (name, admin, sqe) in commands {
        fill(&mut device, bytes);
        let (begin, start) = (sim::Device::now(&device), cpu_seconds());
        let end = match admin {
            true => session.admin(&mut device, &mut host, &sqe)?,
            false => first_command(&mut device, &mut host, &sqe)?,
        };
        let seconds = cpu_seconds() - start;
        check(&device, bytes).map_err(|e| format!("{name}: {e}"))?;
        all.push(Zeroed {
            name,
            bytes,
            simulated: end - begin,
            seconds,
        });
    }
    Ok(all)
}

fn fill(device: &mut FastDevice, bytes: u64) {
    let piece = vec![0xA5; PIECE];
    for at in (0..bytes).step_by(PIECE) {
        device.media_mut().write(at, &piece);
    }
}

fn check(device: &FastDevice, bytes: u64) -> Result<(), String> {
    let mut piece = vec![0; PIECE];
    for at in (0..bytes).step_by(PIECE) {
        if !device.media().read(at, &mut piece) || piece.iter().any(|&b| b != 0) {
            return Err(format!("not all zeros from byte {at} on"));
        }
    }
    Ok(())
}
