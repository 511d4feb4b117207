// SPDX-License-Identifier: Apache-2.0

//! Commands as slices in the Trace Event Format, which Perfetto and chrome://tracing show.
//!
//! A track holds commands that do not overlap; a queue has as many tracks as commands at a time. A
//! command is one slice that contains the slices of its stages.

use std::collections::BTreeMap;
use std::io::{self, Write};

use sim::Time;

use crate::command::{Command, TracePoint};
use crate::json;

/// Maximum number of tracks of a queue, which is above the number of concurrent commands.
const TRACKS: usize = 1 << 16;

/// Consecutive stages: the trace point at the end of each, and its name.
const STAGES: [(TracePoint, &str); 12] = [
    (TracePoint::Doorbell, "doorbell"),
    (TracePoint::Fetch, "queue"),
    (TracePoint::Decoded, "fetch and decode"),
    (TracePoint::Started, "to data path"),
    (TracePoint::FirstJob, "PRP"),
    (TracePoint::FirstData, "source"),
    (TracePoint::Done, "data"),
    (TracePoint::Posted, "to completion"),
    (TracePoint::Sent, "completion"),
    (TracePoint::Landed, "entry to host"),
    (TracePoint::Message, "to interrupt"),
    (TracePoint::Interrupt, "interrupt"),
];

#[derive(Default)]
pub(crate) struct Chrome {
    /// By queue: end of the last command on each track.
    tracks: BTreeMap<u16, Vec<Time>>,
    any: bool,
}

impl Chrome {
    pub(crate) fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        self.next(out)?;
        out.write_all(
            b"{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\
         \"args\":{\"name\":\"NVMe commands\"}}",
        )
    }

    pub(crate) fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"\n]}\n")
    }

    pub(crate) fn command(&mut self, out: &mut dyn Write, command: &Command) -> io::Result<()> {
        let (start, end) = command.span();
        let tid = self.track(out, command.queue, start, end)?;
        let what = match command.blocks() {
            Some((lba, blocks)) => format!("{} {blocks} at {lba}", command.name()),
            None => command.name().to_string(),
        };
        self.slice(out, &what, tid, start, end)?;
        out.write_all(b",\"args\":{")?;
        json::fields(out, command)?;
        out.write_all(b"}}")?;
        let mut from = start;
        for (name, to) in stages(command) {
            self.slice(out, name, tid, from, to)?;
            out.write_all(b"}")?;
            from = to;
        }
        Ok(())
    }

    /// A track of the queue that is free from `start` on; it is used until `end`.
    fn track(
        &mut self,
        out: &mut dyn Write,
        queue: u16,
        start: Time,
        end: Time,
    ) -> io::Result<usize> {
        let tracks = self.tracks.entry(queue).or_default();
        let free = tracks.iter().position(|&until| until <= start);
        let track = free.unwrap_or(tracks.len());
        if track < tracks.len() {
            tracks[track] = end;
            return Ok(usize::from(queue) * TRACKS + track + 1);
        }
        tracks.push(end);
        let tid = usize::from(queue) * TRACKS + track + 1;
        let name = if queue == 0 {
            "admin queue".to_string()
        } else {
            format!("queue {queue}")
        };
        for (what, args) in [
            ("thread_name", format!("\"name\":\"{name} · {track}\"")),
            ("thread_sort_index", format!("\"sort_index\":{tid}")),
        ] {
            self.next(out)?;
            write!(
                out,
                "{{\"ph\":\"M\",\"pid\":1,\"tid\":{tid},\"name\":\"{what}\",\"args\":{{{args}}}}}"
            )?;
        }
        Ok(tid)
    }

    /// The start of a slice, up to its arguments.
    fn slice(
        &mut self,
        out: &mut dyn Write,
        name: &str,
        tid: usize,
        from: Time,
        to: Time,
    ) -> io::Result<()> {
        self.next(out)?;
        let (ts, dur) = (us(from), us(Time(to.0 - from.0)));
        write!(
            out,
            "{{\"ph\":\"X\",\"pid\":1,\"tid\":{tid},\"name\":\"{name}\",\"ts\":{ts},\"dur\":{dur}"
        )
    }

    fn next(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let comma: &[u8] = if self.any { b",\n" } else { b"\n" };
        self.any = true;
        out.write_all(comma)
    }
}

/// Names and ends of the stages of a command, in order of time. If data arrives during the PRP
/// walk, the time after it is a separate stage.
fn stages(command: &Command) -> Vec<(&'static str, Time)> {
    let mut stages = Vec::new();
    let mut last = command.span().0;
    let mut add = |name, to: Option<Time>| {
        if let Some(to) = to.filter(|&to| to > last) {
            stages.push((name, to));
            last = to;
        }
    };
    let time = |point| command.time(point);
    for (point, name) in STAGES {
        match point {
            TracePoint::FirstJob => {
                let walked = time(TracePoint::LastJob);
                let data = time(TracePoint::FirstData);
                match (walked, data) {
                    (Some(w), Some(d)) if w > d => {
                        add(name, Some(d));
                        add("PRP list and data", Some(w));
                    }
                    _ => add(name, walked),
                }
            }
            _ => add(name, time(point)),
        }
    }
    stages
}

/// Microseconds with all digits.
fn us(time: Time) -> String {
    format!("{}.{:06}", time.0 / 1_000_000, time.0 % 1_000_000)
}
