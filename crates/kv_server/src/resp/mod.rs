// SPDX-License-Identifier: Apache-2.0

//! Redis's protocol, RESP2 and RESP3. What the store can't keep, such as times to live, is refused,
//! not ignored.

mod command_table;
mod commands;
mod reply;
mod request;
mod session;

use std::sync::{Arc, Mutex};

use sim::Time;

use self::command_table::{check, wrong_arity};
use self::commands::apply;
use self::reply::Reply;
use self::request::{Reader, Request, Words};
use self::session::{Session, VERSION};
use crate::store::{AccessMode, RequestError, Store};
use crate::{lock, number, ForeignProtocol, ProtocolHandler, Step, MAX_REQUEST};

/// Most commands of a transaction.
const MAX_QUEUED: usize = 1024;

/// The server's side of the protocol, for one client.
pub struct Resp {
    reader: Reader,
    session: Session,
    /// Commands after MULTI.
    queue: Option<Vec<Words>>,
    /// A command after MULTI was refused.
    failed: bool,
}

/// Detects HTTP. A web page can make a browser on this machine send requests with commands in their
/// lines and bodies. So a client that sends a line of an HTTP head is rejected. Redis itself looks
/// for `POST` and `Host:`.
fn is_http(words: &[Vec<u8>], line: bool) -> bool {
    let first = &words[0];
    let named = |name: &[u8]| first.eq_ignore_ascii_case(name);
    let request = || words.len() == 3 && words[2].starts_with(b"HTTP/") && check(words).is_err();
    let header = || first.ends_with(b":");
    named(b"POST") || named(b"Host:") || (line && (request() || header()))
}

/// Writes the result of a request; false after a power loss.
fn write_result(result: Result<Reply, RequestError>, out: &mut Reply) -> bool {
    match result {
        Ok(reply) => out.bytes.extend(reply.bytes),
        Err(RequestError::Refused(text)) => out.error(&text),
        Err(RequestError::Power) => return false,
    }
    true
}

/// The reply `OK`.
fn ok_reply(session: &Session) -> Reply {
    let mut reply = Reply::new(session.resp3);
    reply.ok();
    reply
}

impl Resp {
    /// A handler for the client with this number, who has to send the password if there is one.
    pub fn new(number: u64, password: Option<Arc<str>>) -> Resp {
        Resp {
            reader: Reader::default(),
            session: Session::new(number, password),
            queue: None,
            failed: false,
        }
    }

    /// Executes a command. False: the connection ends.
    fn execute(&mut self, words: Words, store: &Mutex<Store>, out: &mut Reply) -> bool {
        let name = words[0].to_ascii_uppercase();
        let only = words.len() == 1;
        match &name[..] {
            _ if !self.session.is_allowed(&name) => {
                out.error_of("NOAUTH", "Authentication required.");
                self.fail();
            }
            b"QUIT" => {
                out.ok();
                return false;
            }
            b"MULTI" | b"EXEC" | b"DISCARD" | b"RESET" if !only => {
                out.error(&wrong_arity(&name.to_ascii_lowercase()));
                self.fail();
            }
            b"RESET" => {
                self.queue = None;
                self.session.reset();
                out.simple("RESET");
            }
            b"MULTI" if self.queue.is_none() => {
                self.queue = Some(Vec::new());
                self.failed = false;
                out.ok();
            }
            b"MULTI" => out.error("MULTI calls can not be nested"),
            b"DISCARD" if self.queue.take().is_some() => out.ok(),
            b"DISCARD" => out.error("DISCARD without MULTI"),
            b"EXEC" => match self.queue.take() {
                None => out.error("EXEC without MULTI"),
                Some(_) if self.failed => out.error_of(
                    "EXECABORT",
                    "Transaction discarded because of previous errors.",
                ),
                Some(queue) => return self.run(&queue, true, store, out),
            },
            _ if self.queue.is_some() => self.enqueue(words, out),
            _ if check(&words).is_ok() && self.session.apply(&words, out) => {}
            b"INFO" => out.text(&info(&lock(store))),
            b"FLUSHALL" | b"FLUSHDB" if check(&words).is_ok() => {
                let flushed = lock(store).flush();
                return write_result(flushed.map(|()| ok_reply(&self.session)), out);
            }
            // An extension: the power fails now, or after a number of simulated ns.
            b"DEBUG"
                if words
                    .get(1)
                    .is_some_and(|w| w.eq_ignore_ascii_case(b"POWERCUT")) =>
            {
                let later = words.get(2).map_or(Some(0), |w| number::<u32>(w));
                let Some(later) = later.filter(|_| words.len() <= 3) else {
                    out.error("DEBUG POWERCUT [NS]: allowed are 0 to 4294967295");
                    return true;
                };
                let ordered = lock(store).cut(Time::ns(u64::from(later)));
                return write_result(ordered.map(|()| ok_reply(&self.session)), out);
            }
            _ => return self.run(&[words], false, store, out),
        }
        true
    }

    fn enqueue(&mut self, words: Words, out: &mut Reply) {
        let checked = check(&words);
        let Some(queue) = &mut self.queue else { return };
        let size = |words: &Words| words.iter().map(|w| w.len() + 32).sum::<usize>();
        let bytes: usize = queue.iter().map(size).sum::<usize>() + size(&words);
        match checked {
            Ok(_) if queue.len() < MAX_QUEUED && bytes <= MAX_REQUEST => {
                queue.push(words);
                return out.simple("QUEUED");
            }
            Ok(_) => out.error(&format!(
                "a transaction has at most {MAX_QUEUED} commands of {MAX_REQUEST} bytes"
            )),
            Err(text) => out.error(&text),
        }
        self.fail();
    }

    /// Drops the queue of a transaction that will be refused.
    fn fail(&mut self) {
        if let Some(queue) = &mut self.queue {
            queue.clear();
            self.failed = true;
        }
    }

    /// Runs commands as one transaction. False after a power loss.
    fn run(&mut self, queue: &[Words], array: bool, store: &Mutex<Store>, out: &mut Reply) -> bool {
        let mut kind = AccessMode::Read;
        for words in queue {
            match check(words) {
                Ok(AccessMode::Write) => kind = AccessMode::Write,
                Ok(AccessMode::Read) => {}
                Err(text) => {
                    out.error(&text);
                    return true;
                }
            }
        }
        // An aborted transaction leaves the client's session unchanged.
        let mut session = self.session.clone();
        let mut store = lock(store);
        let info = info(&store);
        let result = store.run(kind, |table| {
            let mut reply = Reply::new(session.resp3);
            if array {
                reply.array(queue.len());
            }
            for words in queue {
                apply(table, words, &info, &mut session, &mut reply)?;
            }
            Ok(reply)
        });
        if result.is_ok() {
            self.session = session;
        }
        write_result(result, out)
    }
}

fn info(store: &Store) -> String {
    format!(
        "# Server\r\nredis_version:{VERSION}\r\nredis_mode:standalone\r\n# \
         Nearside\r\nreport:{}\r\n",
        store.report()
    )
}

impl ProtocolHandler for Resp {
    fn step(&mut self, input: &[u8], store: &Mutex<Store>, out: &mut Vec<u8>) -> Step {
        let mut reply = Reply {
            bytes: std::mem::take(out),
            resp3: self.session.resp3,
        };
        let step = match self.reader.read(input, self.session.authenticated) {
            Ok((0, Request::Unfinished)) => Step::NeedMore,
            Ok((used, Request::Unfinished)) => Step::Partial(used),
            Ok((_, Request::NotText)) => Step::Reject(ForeignProtocol::NotText),
            Ok((used, Request::TooLarge(text))) => {
                reply.error(&text);
                self.fail();
                Step::Complete(used)
            }
            Ok((used, Request::Words { words, .. })) if words.is_empty() => Step::Complete(used),
            Ok((_, Request::Words { words, line })) if is_http(&words, line) => {
                Step::Reject(ForeignProtocol::Http)
            }
            Ok((used, Request::Words { words, .. })) => {
                match self.execute(words, store, &mut reply) {
                    true => Step::Complete(used),
                    false => Step::Close,
                }
            }
            Err(text) => {
                reply.error(&format!("Protocol error: {text}"));
                Step::Close
            }
        };
        *out = reply.bytes;
        step
    }

    fn in_request(&self) -> bool {
        self.reader.in_request()
    }
}
