// SPDX-License-Identifier: Apache-2.0

//! The events of CPU and device before a power loss, as lines of text.

use host::{CrashReport, Fence, HostEvent, LostStores, LINE};
use sim::{Bar, Mmio, System, Time};
use spec::nearpm::Command;

use crate::cut::{Cut, HoldUp};
use crate::invariants::{order_event_text, DeviceEvent, Violation};

/// Most lines before the cut: the last ones.
const MAX_LINES: usize = 48;
/// Most lost cache lines that are listed.
const MAX_LOST: usize = 8;
/// Bit of a process's addresses in the PM window.
const WINDOW: u64 = 1 << 44;

/// The events before a cut, or before a violation of an invariant.
#[derive(Default)]
pub(crate) struct Timeline {
    lines: Vec<(Time, String)>,
    lost: Vec<String>,
}

impl Timeline {
    /// Events since a time, with those of the devices. Lost lines are listed up to an end of the
    /// window.
    pub fn new(
        events: Vec<(Time, HostEvent)>,
        from: Time,
        system: &System,
        crash: &CrashReport,
        cut: &Cut,
        end: u64,
    ) -> Timeline {
        let keeps = |device: usize| cut.later(device) == HoldUp::Indefinite;
        let mut lines: Vec<(Time, String)> = events
            .into_iter()
            .filter_map(|(at, event)| Some((at, event_text(event)?)))
            .collect();
        // Events after the cut reach no device.
        lines.retain(|line| line.0 <= crash.at);
        lines.push((crash.at, "host      loses its power".into()));
        let taken = (0..system.devices()).flat_map(|n| system.accepted(n).map(move |t| (n, t)));
        for (device, (at, mmio)) in taken.filter(|(_, taken)| taken.0 >= from) {
            if let Mmio::Write { bar, offset, data } = mmio {
                let what = write_text(*bar, *offset, data);
                let text = match keeps(device) || *at <= crash.devices[device] {
                    true => format!("device {device}  takes {what}"),
                    false => format!("link      loses {what}, on its way to device {device}"),
                };
                lines.push((*at, text));
            }
        }
        for (device, at) in crash.devices.iter().enumerate().filter(|d| !keeps(d.0)) {
            lines.push((*at, format!("device {device}  loses its power")));
        }
        lines.sort_by_key(|line| line.0);
        let mut timeline = Timeline {
            lines,
            lost: Vec::new(),
        };
        timeline.add_lost(crash, end);
        timeline
    }

    /// The events of CPUs and devices, until the second event of a violation.
    pub fn until_violation(
        events: Vec<(Time, HostEvent)>,
        devices: &[DeviceEvent],
        violation: &Violation,
    ) -> Timeline {
        let host = events
            .into_iter()
            .filter_map(|(at, event)| Some((at, event_text(event)?)));
        let devices = devices.iter().filter_map(|(at, device, event)| {
            Some((
                *at,
                format!("device {device}  {}", order_event_text(event)?),
            ))
        });
        let mut lines: Vec<(Time, String)> = host.chain(devices).collect();
        lines.retain(|line| line.0 <= violation.at);
        lines.sort_by_key(|line| line.0);
        let mut timeline = Timeline {
            lines: lines.split_off(lines.len().saturating_sub(MAX_LINES)),
            lost: Vec::new(),
        };
        timeline.add(format!("found     {violation}"));
        timeline
    }

    /// Adds what the host has lost, up to an end of the window.
    fn add_lost(&mut self, crash: &CrashReport, end: u64) {
        let lines = |what: &str, lost: &[LostStores]| {
            let own = lost
                .iter()
                .map(|lost| lost.line.offset)
                .filter(|at| *at < end);
            let mut text: Vec<String> = own.map(pm_address).collect();
            if text.len() > MAX_LOST {
                let more = format!("{} more", text.len() - MAX_LOST);
                text.truncate(MAX_LOST);
                text.push(more);
            }
            (!text.is_empty()).then(|| format!("host      loses {what} {}", text.join(", ")))
        };
        self.lost.extend(lines("dirty lines", &crash.dirty));
        self.lost
            .extend(lines("gathered stores to", &crash.gathered));
    }

    /// Adds an event after the cut.
    pub fn add(&mut self, text: String) {
        self.lost.push(text);
    }

    /// All lines of text.
    pub fn text(self) -> Vec<String> {
        let mut out = Vec::new();
        let mut joined: Vec<(Time, String, usize)> = Vec::new();
        for (at, text) in self.lines {
            match joined.last_mut() {
                Some((_, last, count)) if *last == text => *count += 1,
                _ => joined.push((at, text, 1)),
            }
        }
        let begin = joined.len().saturating_sub(MAX_LINES);
        if begin > 0 {
            out.push(format!("({begin} events of the same transaction before)"));
        }
        for (at, text, count) in joined.drain(begin..) {
            let times = match count {
                1 => String::new(),
                _ => format!(", {count} times"),
            };
            out.push(format!("{:>14.3} ns  {text}{times}", at.0 as f64 / 1e3));
        }
        let blank = " ".repeat(17);
        out.extend(self.lost.into_iter().map(|line| format!("{blank}  {line}")));
        out
    }
}

fn event_text(event: HostEvent) -> Option<String> {
    Some(match event {
        HostEvent::Stored { cpu, line, bytes } => {
            let at = pm_address(line.offset + bytes.0 as u64);
            format!("CPU {cpu}     stores {} bytes in the cache, {at}", bytes.1)
        }
        HostEvent::Flushed { cpu, line } => {
            format!("CPU {cpu}     clwb {}", pm_address(line.offset))
        }
        HostEvent::Fenced { cpu, what } => {
            let what = match what {
                Fence::Posted => "sfence",
                Fence::ReadBack => "sfence, and a read-back",
                Fence::Completion => "sfence, and completions",
            };
            format!("CPU {cpu}     {what}")
        }
        HostEvent::Posted {
            device,
            bar,
            offset,
            data,
        } => {
            format!(
                "host      sends device {device} {}",
                write_text(bar, offset, &data)
            )
        }
        HostEvent::Issued { .. } => return None,
        HostEvent::Answered { .. } => {
            "host      has a load's answer: what it sent before is there".into()
        }
    })
}

fn pm_address(offset: u64) -> String {
    format!("PM {offset:#x}")
}

fn write_text(bar: Bar, offset: u64, data: &[u8]) -> String {
    let command = (bar == Bar::Control && data.len() == LINE).then(|| {
        let long = |n: usize| {
            let bytes = data[8 * n..8 * n + 8].try_into();
            bytes.map_or(0, u64::from_le_bytes)
        };
        Command::from_words(&std::array::from_fn(long))
    });
    match (bar, command.flatten()) {
        (_, Some(c)) => {
            let mut text = format!("{:?} of pool {} thread {}", c.operation, c.pool, c.thread);
            for (what, value) in [("from", c.address), ("to", c.target)] {
                if value >= WINDOW {
                    text += &format!(", {what} {}", pm_address(value - WINDOW));
                }
            }
            if c.bytes > 0 {
                text += &format!(", {} bytes", c.bytes);
            }
            text
        }
        (Bar::Pm, _) => format!("{} bytes, {}", data.len(), pm_address(offset)),
        _ => format!("{} bytes, {bar:?} {offset:#x}", data.len()),
    }
}
