// SPDX-License-Identifier: Apache-2.0

//! The commands that need data.

use pm::Result;

use super::command_table::truncated_word;
use super::reply::Reply;
use super::request::parse_integer;
use super::session::Session;
use crate::table::Table;
use crate::MAX_VALUE;

/// Runs a validated command in a transaction; `info` is the reply of INFO. An error aborts the
/// transaction.
pub fn apply(
    table: &mut Table<'_, '_>,
    words: &[Vec<u8>],
    info: &str,
    session: &mut Session,
    out: &mut Reply,
) -> Result<()> {
    if session.apply(words, out) {
        return out.check();
    }
    let name = words[0].to_ascii_uppercase();
    match &name[..] {
        b"INFO" => out.text(info),
        // One transaction: refused if the log has no room for all keys.
        b"FLUSHALL" | b"FLUSHDB" => {
            for key in table.keys()? {
                table.remove(&key)?;
            }
            out.ok();
        }
        b"GET" => out.bulk_or_null(table.get(&words[1])?.as_ref().map(|e| &e.value[..])),
        b"STRLEN" => {
            let bytes = table.get(&words[1])?.map_or(0, |e| e.value.len());
            out.integer(bytes as i64);
        }
        b"MGET" => {
            out.array(words.len() - 1);
            for key in &words[1..] {
                out.bulk_or_null(table.get(key)?.as_ref().map(|e| &e.value[..]));
                out.check()?;
            }
        }
        b"EXISTS" | b"DEL" | b"UNLINK" => {
            let mut found = 0;
            for key in &words[1..] {
                found += i64::from(match &name[..] {
                    b"EXISTS" => table.get(key)?.is_some(),
                    _ => table.remove(key)?,
                });
            }
            out.integer(found);
        }
        b"SET" | b"SETNX" => {
            let option = match &name[..] {
                b"SETNX" => Some(true),
                _ => words.get(3).map(|w| w.eq_ignore_ascii_case(b"NX")),
            };
            let there = match option {
                Some(_) => table.get(&words[1])?.is_some(),
                None => false,
            };
            let done = option.is_none_or(|only_new| only_new != there);
            if done {
                table.put(&words[1], &words[2], 0)?;
            }
            match (&name[..], done) {
                (b"SETNX", done) => out.integer(i64::from(done)),
                (_, true) => out.ok(),
                (_, false) => out.null(),
            }
        }
        b"MSET" => {
            for pair in words[1..].chunks_exact(2) {
                table.put(&pair[0], &pair[1], 0)?;
            }
            out.ok();
        }
        b"APPEND" => {
            let mut value = table.get(&words[1])?.map(|e| e.value).unwrap_or_default();
            value.extend(&words[2]);
            if value.len() > MAX_VALUE {
                out.error(&format!("a value has at most {MAX_VALUE} bytes"));
                return Ok(());
            }
            table.put(&words[1], &value, 0)?;
            out.integer(value.len() as i64);
        }
        b"INCR" | b"DECR" | b"INCRBY" | b"DECRBY" => add_to_counter(table, words, &name, out)?,
        b"DBSIZE" => out.integer(table.len() as i64),
        _ => out.error(&format!("unknown command '{}'", truncated_word(&words[0]))),
    }
    out.check()
}

/// `INCR`, `DECR`, `INCRBY`, `DECRBY`.
fn add_to_counter(
    table: &mut Table<'_, '_>,
    words: &[Vec<u8>],
    name: &[u8],
    out: &mut Reply,
) -> Result<()> {
    let old = table.get(&words[1])?;
    let old = old.map_or(Some(0), |e| parse_integer(&e.value));
    let by = words.get(2).map_or(Some(1), |w| parse_integer(w));
    let (Some(old), Some(by)) = (old, by) else {
        out.error("value is not an integer or out of range");
        return Ok(());
    };
    if name == b"DECRBY" && by == i64::MIN {
        out.error("decrement would overflow");
        return Ok(());
    }
    let new = match name.starts_with(b"DECR") {
        true => old.checked_sub(by),
        false => old.checked_add(by),
    };
    let Some(new) = new else {
        out.error("increment or decrement would overflow");
        return Ok(());
    };
    table.put(&words[1], new.to_string().as_bytes(), 0)?;
    out.integer(new);
    Ok(())
}
