// SPDX-License-Identifier: Apache-2.0

//! Parameters of host, link and DRAM: plain structs with defaults, each checked by `validate()`.
//!
//! A design file uses the same keys; units are part of the names. `validate` answers with one line
//! that names the key and the allowed values.

use std::fmt::Display;

use serde::{Deserialize, Serialize};

/// Bytes of a memory page, and the boundary that no TLP crosses.
pub const PAGE: u64 = 4096;

/// A text on one line for an error: control characters and line separators are escaped as
/// [`char::escape_default`] does, and the rest is unchanged.
pub fn escape_controls(text: impl Display) -> String {
    let text = text.to_string();
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match breaks(c) {
            true => escaped.extend(c.escape_default()),
            false => escaped.push(c),
        }
    }
    escaped
}

/// A number from 0 on, of digits only. Rust's own parser accepts a plus sign, too.
pub fn parse_digits<T: std::str::FromStr>(text: &str) -> Option<T> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

/// A value that is not allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", escape_controls(format_args!("{key} = {value}: {rule}")))]
pub struct InvalidValue {
    /// The key, with the tables that it is in: `pcie.lanes`, `engine[0].name`.
    pub key: String,
    /// The value.
    pub value: String,
    /// Which values are allowed.
    pub rule: String,
}

impl InvalidValue {
    /// The value `value` of `key`, where `rule` says which values are allowed.
    pub fn new(key: impl Display, value: impl Display, rule: impl Display) -> InvalidValue {
        InvalidValue {
            key: key.to_string(),
            value: value.to_string(),
            rule: rule.to_string(),
        }
    }

    /// The same for a key in `table`.
    pub fn in_table(mut self, table: &str) -> InvalidValue {
        self.key = format!("{table}.{}", self.key);
        self
    }
}

/// `Ok` if `ok`, otherwise an error that lists the allowed values.
pub(crate) fn check(
    key: &str,
    value: impl Display,
    ok: bool,
    allowed: &str,
) -> Result<(), InvalidValue> {
    ok.then_some(())
        .ok_or_else(|| InvalidValue::new(key, value, format_args!("allowed are {allowed}")))
}

/// Checks that `value` is between `low` and `high`.
pub(crate) fn check_range(key: &str, value: u64, low: u64, high: u64) -> Result<(), InvalidValue> {
    let ok = (low..=high).contains(&value);
    check(key, value, ok, &format!("{low} to {high}"))
}

/// Checks that `value` is a power of two between `low` and `high`.
pub(crate) fn check_power_of_two(
    key: &str,
    value: u64,
    low: u64,
    high: u64,
) -> Result<(), InvalidValue> {
    let ok = value.is_power_of_two() && (low..=high).contains(&value);
    check(
        key,
        value,
        ok,
        &format!("powers of two from {low} to {high}"),
    )
}

/// The host: memory, root complex, CPU side of MMIO.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostConfig {
    /// First address of host memory. Above 4 GiB, so that TLPs carry 64-bit addresses.
    pub memory_base: u64,
    /// Host memory, MiB. Only touched pages cost memory of the machine.
    pub memory_mib: u64,
    /// From a read request at the root complex to its first data, ns.
    pub read_ns: u64,
    /// Up to this much more per read request, drawn from `seed`, ns. Requests then return out of
    /// order.
    pub read_jitter_ns: u64,
    /// How long a posted write holds its buffer and its credits in the root complex, ns.
    pub write_ns: u64,
    /// Between the CPU and the root complex for an MMIO access, one way, ns.
    pub mmio_ns: u64,
    /// Posted MMIO writes that may wait for a link before the CPU stalls; also the length of a
    /// link's peer-to-peer queue.
    pub mmio_queue: usize,
    /// Loads of devices that the CPU may have in flight. A core holds each in a line fill buffer,
    /// of which it has 10 (Intel, Nehalem to Broadwell) or 12 (Skylake), so the default stands for
    /// six cores. The root complex sets no further limit.
    pub cpu_loads: usize,
    /// Extra latency through the root complex from one device to another, ns.
    pub peer_ns: u64,
    /// A read of a device fails after this time, us.
    pub completion_timeout_us: u64,
    /// Seed of everything that the host draws at random.
    pub seed: u64,
}

impl Default for HostConfig {
    fn default() -> Self {
        HostConfig {
            memory_base: 1 << 32,
            memory_mib: 1024,
            read_ns: 250,
            read_jitter_ns: 0,
            write_ns: 100,
            mmio_ns: 50,
            mmio_queue: 64,
            cpu_loads: 64,
            peer_ns: 100,
            completion_timeout_us: 10_000,
            seed: 1,
        }
    }
}

impl HostConfig {
    /// An error is one line that names the first key whose value is not allowed.
    pub fn validate(&self) -> Result<(), InvalidValue> {
        let base = self.memory_base;
        let ok = base % PAGE == 0 && ((1 << 32)..=(1 << 39)).contains(&base);
        check(
            "memory_base",
            base,
            ok,
            "multiples of 4096 from 2^32 to 2^39",
        )?;
        check_range("memory_mib", self.memory_mib, 1, 1 << 18)?;
        check_range("read_ns", self.read_ns, 0, 1_000_000)?;
        check_range("read_jitter_ns", self.read_jitter_ns, 0, 1_000_000)?;
        check_range("write_ns", self.write_ns, 0, 1_000_000)?;
        check_range("mmio_ns", self.mmio_ns, 0, 1_000_000)?;
        check_range("mmio_queue", self.mmio_queue as u64, 1, 65_536)?;
        check_range("cpu_loads", self.cpu_loads as u64, 1, 4096)?;
        check_range("peer_ns", self.peer_ns, 0, 1_000_000)?;
        check_range(
            "completion_timeout_us",
            self.completion_timeout_us,
            1,
            100_000_000,
        )
    }
}

/// One PCIe link and the buffers at its two ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkConfig {
    /// PCIe generation: 2.5, 5, 8, 16 or 32 GT/s.
    pub generation: u8,
    /// Lanes.
    pub lanes: u8,
    /// Largest payload of a TLP (MPS), bytes.
    pub max_payload_bytes: u32,
    /// Largest read request (MRRS), bytes.
    pub max_read_request_bytes: u32,
    /// Read completion boundary (RCB) of the host, bytes.
    pub read_completion_boundary_bytes: u32,
    /// Largest completion that the host sends, bytes; 64 is a host that answers in cache lines.
    pub max_completion_bytes: u32,
    /// Read requests that the device may have outstanding.
    pub tags: u32,
    /// Posted header credits of the host.
    pub host_posted_headers: u32,
    /// Posted data credits of the host, bytes.
    pub host_posted_bytes: u32,
    /// Non-posted header credits of the host.
    pub host_nonposted_headers: u32,
    /// Posted header credits of the device. The defaults of this key and the next two are those
    /// that a Gen3 endpoint block states: 127 headers, 750 units of 16 bytes, 115 non-posted
    /// headers. Source: Intel, L- and H-Tile Avalon Streaming IP for PCI Express User Guide,
    /// 683111, "Flow Control Credit Allocation".
    pub device_posted_headers: u32,
    /// Posted data credits of the device, bytes.
    pub device_posted_bytes: u32,
    /// Non-posted header credits of the device.
    pub device_nonposted_headers: u32,
    /// The device's buffer for read data that it requested, bytes; reads wait for room in it. 0: no
    /// limit.
    pub device_completion_bytes: u32,
    /// Bytes that may wait for the wire before the device's writes are refused.
    pub device_tx_buffer_bytes: u32,
    /// Read requests that may wait for the wire before the device's reads are refused.
    pub device_tx_requests: u32,
    /// Latency of the device's PHY, MAC and bridge, each way, ns.
    pub device_phy_ns: u64,
    /// Time of flight, ns.
    pub propagation_ns: u64,
    /// Latency of the root port's PHY and MAC, each way, ns.
    pub root_phy_ns: u64,
    /// TLPs received per ACK DLLP.
    pub ack_every_tlps: u32,
    /// TLPs received per UpdateFC DLLP.
    pub update_fc_every_tlps: u32,
}

impl Default for LinkConfig {
    fn default() -> Self {
        LinkConfig {
            generation: 3,
            lanes: 8,
            max_payload_bytes: 256,
            max_read_request_bytes: 512,
            read_completion_boundary_bytes: 64,
            max_completion_bytes: 256,
            tags: 64,
            host_posted_headers: 128,
            host_posted_bytes: 32_768,
            host_nonposted_headers: 128,
            device_posted_headers: 127,
            device_posted_bytes: 12_000,
            device_nonposted_headers: 115,
            device_completion_bytes: 0,
            device_tx_buffer_bytes: 512,
            device_tx_requests: 8,
            device_phy_ns: 150,
            propagation_ns: 10,
            root_phy_ns: 100,
            ack_every_tlps: 4,
            update_fc_every_tlps: 4,
        }
    }
}

impl LinkConfig {
    /// An error is one line that names the first key whose value is not allowed.
    pub fn validate(&self) -> Result<(), InvalidValue> {
        check_range("generation", self.generation.into(), 1, 5)?;
        let ok = [1, 2, 4, 8, 16].contains(&self.lanes);
        check("lanes", self.lanes, ok, "1, 2, 4, 8, 16")?;
        let mps = self.max_payload_bytes;
        check_power_of_two("max_payload_bytes", mps.into(), 128, 4096)?;
        check_power_of_two(
            "max_read_request_bytes",
            self.max_read_request_bytes.into(),
            128,
            4096,
        )?;
        check_power_of_two(
            "read_completion_boundary_bytes",
            self.read_completion_boundary_bytes.into(),
            64,
            128,
        )?;
        check_power_of_two(
            "max_completion_bytes",
            self.max_completion_bytes.into(),
            self.read_completion_boundary_bytes.into(),
            4096,
        )?;
        // A device reads up to a page at once and takes all tags of that read together.
        let page_requests = PAGE / u64::from(self.max_read_request_bytes);
        check_range("tags", self.tags.into(), page_requests, 1024)?;
        check_range(
            "host_nonposted_headers",
            self.host_nonposted_headers.into(),
            page_requests,
            4096,
        )?;
        let page_writes = PAGE / u64::from(mps);
        check_range(
            "host_posted_headers",
            self.host_posted_headers.into(),
            page_writes,
            65_536,
        )?;
        check_range(
            "host_posted_bytes",
            self.host_posted_bytes.into(),
            PAGE + 16 * page_writes,
            1 << 24,
        )?;
        check_range(
            "device_posted_headers",
            self.device_posted_headers.into(),
            1,
            65_536,
        )?;
        check_range(
            "device_posted_bytes",
            self.device_posted_bytes.into(),
            u64::from(mps) + 16,
            1 << 24,
        )?;
        check_range(
            "device_nonposted_headers",
            self.device_nonposted_headers.into(),
            1,
            4096,
        )?;
        if self.device_completion_bytes != 0 {
            check_range(
                "device_completion_bytes",
                self.device_completion_bytes.into(),
                PAGE,
                1 << 24,
            )?;
        }
        check_range(
            "device_tx_buffer_bytes",
            self.device_tx_buffer_bytes.into(),
            64,
            1 << 20,
        )?;
        check_range(
            "device_tx_requests",
            self.device_tx_requests.into(),
            1,
            4096,
        )?;
        check_range("device_phy_ns", self.device_phy_ns, 0, 1_000_000)?;
        check_range("propagation_ns", self.propagation_ns, 0, 1_000_000)?;
        check_range("root_phy_ns", self.root_phy_ns, 0, 1_000_000)?;
        let latency = self.device_phy_ns + self.propagation_ns + self.root_phy_ns;
        check(
            "device_phy_ns + propagation_ns + root_phy_ns",
            latency,
            latency >= 10,
            "sums of at least 10: the scheduler runs devices apart for that long",
        )?;
        check_range("ack_every_tlps", self.ack_every_tlps.into(), 1, 1024)?;
        check_range(
            "update_fc_every_tlps",
            self.update_fc_every_tlps.into(),
            1,
            1024,
        )
    }

    /// Bytes that one direction carries, per ns: GT/s and lanes after line encoding and SKP ordered
    /// sets.
    pub fn bytes_per_ns(&self) -> f64 {
        let lanes = f64::from(self.lanes);
        match self.generation {
            // 8b/10b; one SKP ordered set of 4 symbols at most every 1538.
            1 => 2.5 * lanes * 0.8 / 8.0 * (1.0 - 4.0 / 1538.0),
            2 => 5.0 * lanes * 0.8 / 8.0 * (1.0 - 4.0 / 1538.0),
            // 128b/130b; one SKP block every 371.
            g => {
                8.0 * f64::from(1u32 << (g - 3)) * lanes * (128.0 / 130.0) / 8.0
                    * (1.0 - 1.0 / 371.0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key, and a change that makes its value invalid.
    type Change<T> = (&'static str, fn(&mut T));

    /// Each change is refused with a message that names the key, the value and the allowed values.
    fn refuses<T: Default>(changes: &[Change<T>], validate: fn(&T) -> Result<(), InvalidValue>) {
        assert_eq!(validate(&T::default()), Ok(()));
        for (key, change) in changes {
            let mut config = T::default();
            change(&mut config);
            let message = validate(&config).expect_err(key).to_string();
            assert!(
                message.starts_with(key) && message.contains("allowed are"),
                "{key}: {message}"
            );
        }
    }

    #[test]
    fn config_names_bad_link_values() {
        refuses::<LinkConfig>(
            &[
                ("generation", |c| c.generation = 6),
                ("generation", |c| c.generation = 0),
                ("lanes", |c| c.lanes = 3),
                ("max_payload_bytes", |c| c.max_payload_bytes = 300),
                ("max_payload_bytes", |c| c.max_payload_bytes = 64),
                ("max_read_request_bytes", |c| {
                    c.max_read_request_bytes = 8192
                }),
                ("read_completion_boundary_bytes", |c| {
                    c.read_completion_boundary_bytes = 32
                }),
                ("max_completion_bytes", |c| c.max_completion_bytes = 32),
                ("tags", |c| c.tags = 7),
                ("host_posted_headers", |c| c.host_posted_headers = 15),
                ("host_posted_bytes", |c| c.host_posted_bytes = 4096),
                ("host_nonposted_headers", |c| c.host_nonposted_headers = 0),
                ("device_posted_headers", |c| c.device_posted_headers = 0),
                ("device_posted_bytes", |c| c.device_posted_bytes = 256),
                ("device_nonposted_headers", |c| {
                    c.device_nonposted_headers = 0
                }),
                ("device_completion_bytes", |c| {
                    c.device_completion_bytes = 512
                }),
                ("device_tx_buffer_bytes", |c| c.device_tx_buffer_bytes = 0),
                ("device_tx_requests", |c| c.device_tx_requests = 0),
                ("device_phy_ns", |c| c.device_phy_ns = u64::MAX),
                ("device_phy_ns + propagation_ns + root_phy_ns", |c| {
                    (c.device_phy_ns, c.propagation_ns, c.root_phy_ns) = (0, 9, 0);
                }),
                ("propagation_ns", |c| c.propagation_ns = 2_000_000),
                ("root_phy_ns", |c| c.root_phy_ns = 2_000_000),
                ("ack_every_tlps", |c| c.ack_every_tlps = 0),
                ("update_fc_every_tlps", |c| c.update_fc_every_tlps = 0),
            ],
            LinkConfig::validate,
        );
    }

    #[test]
    fn config_errors_are_one_line_and_digits_have_no_sign() {
        let error = InvalidValue::new("a\nb", "é\r\u{85}\u{2028}\u{1b}\"", "allowed is none");
        let wanted = "a\\nb = é\\r\\u{85}\\u{2028}\\u{1b}\": allowed is none";
        assert_eq!(error.to_string(), wanted);
        assert_eq!(parse_digits::<u8>("255"), Some(255));
        for text in ["", "+7", "-7", " 7", "7 ", "256", "٣"] {
            assert_eq!(parse_digits::<u8>(text), None, "{text:?}");
        }
    }

    #[test]
    fn config_names_bad_host_values() {
        refuses::<HostConfig>(
            &[
                ("memory_base", |c| c.memory_base = 0xFEE0_0000),
                ("memory_base", |c| c.memory_base += 1),
                ("memory_mib", |c| c.memory_mib = 0),
                ("read_ns", |c| c.read_ns = u64::MAX),
                ("read_jitter_ns", |c| c.read_jitter_ns = u64::MAX),
                ("write_ns", |c| c.write_ns = u64::MAX),
                ("mmio_ns", |c| c.mmio_ns = u64::MAX),
                ("mmio_queue", |c| c.mmio_queue = 0),
                ("cpu_loads", |c| c.cpu_loads = 0),
                ("peer_ns", |c| c.peer_ns = u64::MAX),
                ("completion_timeout_us", |c| c.completion_timeout_us = 0),
            ],
            HostConfig::validate,
        );
    }
}
