// SPDX-License-Identifier: Apache-2.0

//! A command as one line of JSON.

use std::io::{self, Write};

use spec::nvme::Status;

use crate::command::{Command, TRACE_POINTS};

/// Writes `command` as a line. No name has characters that JSON escapes.
pub(crate) fn line(out: &mut dyn Write, command: &Command) -> io::Result<()> {
    out.write_all(b"{")?;
    fields(out, command)?;
    out.write_all(b",\"times_ps\":{")?;
    let mut comma = "";
    for (point, name) in TRACE_POINTS {
        if let Some(time) = command.time(point) {
            write!(out, "{comma}\"{name}\":{}", time.0)?;
            comma = ",";
        }
    }
    out.write_all(b"}}\n")
}

/// The command and its result, without the times.
pub(crate) fn fields(out: &mut dyn Write, command: &Command) -> io::Result<()> {
    let Command {
        queue,
        cid,
        slot,
        opcode,
        nsid,
        cdw,
        ..
    } = command;
    write!(out, "\"queue\":{queue},\"cid\":{cid},\"slot\":{slot}")?;
    write!(
        out,
        ",\"opcode\":{opcode},\"command\":\"{}\",\"nsid\":{nsid}",
        command.name()
    )?;
    match command.blocks() {
        Some((lba, blocks)) => write!(out, ",\"lba\":{lba},\"blocks\":{blocks}")?,
        None => out.write_all(b",\"lba\":null,\"blocks\":null")?,
    }
    write!(
        out,
        ",\"cdw10\":{},\"cdw11\":{},\"cdw12\":{}",
        cdw[0], cdw[1], cdw[2]
    )?;
    match command.status {
        Some(status) => {
            let name = Status(status).name().unwrap_or("unnamed status");
            write!(out, ",\"status\":{status},\"status_name\":\"{name}\"")?;
        }
        None => out.write_all(b",\"status\":null,\"status_name\":null")?,
    }
    match command.vector {
        Some(vector) => write!(out, ",\"vector\":{vector}"),
        None => out.write_all(b",\"vector\":null"),
    }
}
