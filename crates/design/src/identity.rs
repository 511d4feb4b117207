// SPDX-License-Identifier: Apache-2.0

//! The identity of a device: its serial number, and the names derived from it.

use std::fmt;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::error::{check, Error};
use crate::Design;

/// Characters of a serial number (Identify Controller, SN).
const SERIAL_CHARACTERS: usize = 20;
/// The subsystem's NVMe Qualified Name up to the serial number. `nvme_identify.sv` has the same
/// constants.
const NQN_PREFIX: &str = "nqn.2026-11.example.nearside:nvme_ctrl:sn";
/// The first half of every NGUID: locally administered.
const NGUID_HIGH: u64 = 0x0200_4E56_4D45_0000;
/// The first half of every UUID, of version 8.
const UUID_HIGH: u64 = 0x4E65_6172_7369_8465;

/// The distinction between devices of the same design without a serial number.
#[derive(Clone, Copy, Debug)]
pub enum DeviceInstance<'a> {
    /// The path of the socket that serves it.
    Socket(&'a Path),
    /// Its number among the devices of a process.
    Number(u32),
}

/// The identity of a device. The model gives it to the hardware at power-on (`serial_i`,
/// `eui64_i`), so that it is no part of the bitstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    serial: String,
}

impl Identity {
    /// A device with this serial number.
    pub fn new(serial: &str) -> Result<Identity, Error> {
        let known = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let ok = (1..=SERIAL_CHARACTERS).contains(&serial.len()) && serial.chars().all(known);
        let allowed = "1 to 20 letters, digits, '-', '_' and '.'";
        check("nvme.serial", format!("{serial:?}"), ok, allowed)?;
        Ok(Identity {
            serial: serial.into(),
        })
    }

    /// The identity of a design's device. It is the design's serial number if there is one.
    /// Otherwise it is derived from the media file, so that it does not depend on where the device
    /// is served. Without a media file it is derived from the device instance.
    pub fn of(design: &Design, place: DeviceInstance) -> Result<Identity, Error> {
        if let Some(serial) = &design.nvme.serial {
            return Identity::new(serial);
        }
        Ok(match (&design.media.file, place) {
            (Some(file), _) => Identity::derived("media", &absolute(file)),
            (None, DeviceInstance::Socket(path)) => Identity::derived("socket", &absolute(path)),
            (None, DeviceInstance::Number(number)) => {
                Identity::derived("number", number.to_string().as_bytes())
            }
        })
    }

    fn derived(kind: &str, what: &[u8]) -> Identity {
        // 32 unambiguous characters: 5 bits each.
        const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
        let hash = Sha256::digest([kind.as_bytes(), b":", what].concat());
        let digits = hash.iter().take(SERIAL_CHARACTERS - 2);
        let digits: String = digits
            .map(|byte| char::from(DIGITS[usize::from(byte % 32)]))
            .collect();
        Identity {
            serial: format!("NS{digits}"),
        }
    }

    /// The serial number.
    pub fn serial(&self) -> &str {
        &self.serial
    }

    /// The serial number in the hardware's format: padded with spaces.
    pub fn serial_bytes(&self) -> [u8; SERIAL_CHARACTERS] {
        let mut bytes = [b' '; SERIAL_CHARACTERS];
        bytes[..self.serial.len()].copy_from_slice(self.serial.as_bytes());
        bytes
    }

    /// EUI-64 of a namespace: locally administered, 52 bits of the serial number's hash, and the
    /// namespace.
    pub fn eui64(&self, nsid: u32) -> u64 {
        let hash = Sha256::digest(format!("serial:{}", self.serial));
        let mut high = [0; 8];
        high.copy_from_slice(&hash[..8]);
        0x02 << 56 | u64::from_be_bytes(high) >> 8 & !0xF | u64::from(nsid.wrapping_sub(1) & 0xF)
    }

    /// NGUID of a namespace.
    pub fn nguid(&self, nsid: u32) -> [u8; 16] {
        (u128::from(NGUID_HIGH) << 64 | u128::from(self.eui64(nsid))).to_be_bytes()
    }

    /// UUID of a namespace.
    pub fn uuid(&self, nsid: u32) -> [u8; 16] {
        let low = self.eui64(nsid) & (1 << 62) - 1 | 1 << 63;
        (u128::from(UUID_HIGH) << 64 | u128::from(low)).to_be_bytes()
    }

    /// NVMe Qualified Name of the subsystem (SUBNQN).
    pub fn subnqn(&self) -> String {
        format!("{NQN_PREFIX}{}", self.serial)
    }
}

impl Default for Identity {
    /// The identity of a process's first device.
    fn default() -> Identity {
        Identity::derived("number", b"0")
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.serial)
    }
}

/// The bytes of the absolute path, which need not be UTF-8. The file need not exist.
fn absolute(path: &Path) -> Vec<u8> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let whole = path.canonicalize().or_else(|_| {
        let name = path.file_name().unwrap_or_default();
        folder.canonicalize().map(|folder| folder.join(name))
    });
    let whole = whole.or_else(|_| std::path::absolute(path));
    let whole = whole.as_deref().unwrap_or(path);
    whole.as_os_str().as_encoded_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn design(more: &str) -> Design {
        let text = format!("name = \"x\"\n[media]\nbytes = \"1 MiB\"\n{more}");
        Design::parse(&text, Path::new("x.toml")).unwrap()
    }

    fn of(design: &Design, place: DeviceInstance) -> Identity {
        Identity::of(design, place).unwrap()
    }

    #[test]
    fn identity_differs_by_socket_number_and_file_and_is_stable() {
        let plain = design("");
        let mut all = BTreeSet::new();
        for number in 0..1000 {
            all.insert(of(&plain, DeviceInstance::Number(number)).serial);
            let path = format!("/tmp/{number}.sock");
            all.insert(of(&plain, DeviceInstance::Socket(Path::new(&path))).serial);
            let file = design(&format!("file = \"/tmp/{number}.img\"\n"));
            let here = of(&file, DeviceInstance::Socket(Path::new(&path)));
            assert_eq!(
                here,
                of(&file, DeviceInstance::Number(0)),
                "the file's, wherever"
            );
            all.insert(here.serial);
        }
        assert_eq!(all.len(), 3000);
        assert!(all
            .iter()
            .all(|s| s.len() == 20 && Identity::new(s).is_ok()));
        // Unchanged since the last version: a change would give existing devices another identity.
        let socket = DeviceInstance::Socket(Path::new("/tmp/0.sock"));
        assert_eq!(of(&plain, socket).serial, of(&plain, socket).serial);
        assert_eq!(Identity::default(), of(&plain, DeviceInstance::Number(0)));
    }

    #[test]
    fn identity_differs_for_paths_that_are_no_text() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        let plain = design("");
        let serials = [
            &b"/tmp/\xff.sock"[..],
            b"/tmp/\xfe.sock",
            b"/tmp/\xef\xbf\xbd.sock",
        ]
        .map(|bytes| {
            let path = Path::new(OsStr::from_bytes(bytes));
            let mut file = design("");
            file.media.file = Some(path.into());
            assert_ne!(
                of(&file, DeviceInstance::Number(0)),
                of(&plain, DeviceInstance::Socket(path))
            );
            of(&plain, DeviceInstance::Socket(path)).serial
        });
        assert_eq!(BTreeSet::from(serials).len(), 3);
    }

    #[test]
    fn identity_of_a_text_path_is_that_of_the_first_release() {
        let socket = DeviceInstance::Socket(Path::new("/nonexistent/0.sock"));
        assert_eq!(of(&design(""), socket).serial, "NS322XDN25ANYBMR9M1A");
    }

    #[test]
    fn identity_of_a_file_is_the_same_under_all_of_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let file = folder.join("a.img");
        let dots = folder
            .join("../")
            .join(folder.file_name().unwrap())
            .join("a.img");
        let name = |path: &Path| absolute(path);
        assert_eq!(name(&file), name(&dots), "before it is there");
        let before = name(&file);
        std::fs::write(&file, "").unwrap();
        let link = folder.join("link.img");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!((name(&file), name(&link)), (before.clone(), before));
    }

    #[test]
    fn identity_prefers_the_serial_number_of_the_design_and_checks_it() {
        let named = design("file = \"x.img\"\n[nvme]\nserial = \"bench-3\"\n");
        assert_eq!(of(&named, DeviceInstance::Number(7)).serial(), "bench-3");
        assert_eq!(
            &of(&named, DeviceInstance::Number(7)).serial_bytes(),
            b"bench-3             "
        );
        for bad in ["", "123456789012345678901", "a b", "\u{e4}"] {
            let text =
                format!("name = \"x\"\n[media]\nbytes = \"1 MiB\"\n[nvme]\nserial = \"{bad}\"\n");
            let error = Design::parse(&text, Path::new("x.toml"))
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("nvme.serial") && error.contains("1 to 20"),
                "{error}"
            );
        }
    }

    #[test]
    fn identity_gives_namespaces_well_formed_distinct_identifiers() {
        let identity = Identity::new("bench-3").unwrap();
        let other = Identity::new("bench-4").unwrap();
        let mut all = BTreeSet::new();
        for nsid in 1..=16 {
            for identity in [&identity, &other] {
                let eui = identity.eui64(nsid);
                assert_eq!(eui >> 56, 2, "locally administered, of one device");
                let uuid = identity.uuid(nsid);
                assert_eq!((uuid[6] >> 4, uuid[8] >> 6), (8, 2), "version, variant");
                all.insert(identity.nguid(nsid));
                all.insert(uuid);
            }
        }
        assert_eq!(all.len(), 64);
        assert_ne!(identity.subnqn(), other.subnqn());
    }
}
