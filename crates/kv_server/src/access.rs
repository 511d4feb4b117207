// SPDX-License-Identifier: Apache-2.0

//! The access of clients to a store.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use crate::Protocol;

/// The address at which clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// An address of this machine, and a port; 0 for any.
    Tcp(IpAddr, u16),
    /// A Unix socket.
    Unix(PathBuf),
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Endpoint::Tcp(host, port) => write!(f, "{}", std::net::SocketAddr::new(*host, *port)),
            Endpoint::Unix(path) => write!(f, "{}", sim::escape_controls(path.display())),
        }
    }
}

impl Endpoint {
    /// A port of the loopback interface.
    pub fn loopback(port: u16) -> Endpoint {
        Endpoint::Tcp(Ipv4Addr::LOCALHOST.into(), port)
    }
}

/// The endpoint of a server, and its clients' permissions.
#[derive(Clone, Debug)]
pub struct Access {
    /// Where clients connect.
    pub endpoint: Endpoint,
    /// The password that a client has to send first (Redis: `AUTH`).
    pub password: Option<String>,
    /// Without a password other machines can't reach the store.
    pub protected: bool,
}

impl Access {
    /// A port of the loopback interface, for everyone on this machine.
    pub fn loopback(port: u16) -> Access {
        Access {
            endpoint: Endpoint::loopback(port),
            password: None,
            protected: true,
        }
    }

    /// Refuses unprotected access from other machines, and options that the protocol does not
    /// support.
    pub fn validate(&self, protocol: Protocol) -> Result<(), AccessError> {
        match &self.password {
            Some(_) if protocol == Protocol::Memcached => {
                return Err(AccessError::PasswordUnsupported);
            }
            Some(text) if text.is_empty() => return Err(AccessError::PasswordEmpty),
            _ => {}
        }
        let Endpoint::Tcp(host, _) = &self.endpoint else {
            return Ok(());
        };
        if self.protected && self.password.is_none() && !host.to_canonical().is_loopback() {
            return Err(AccessError::Unprotected {
                host: *host,
                protocol,
            });
        }
        Ok(())
    }
}

/// Why access is not allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// A password with memcached's protocol.
    #[error("a password: memcached's protocol has none here; allowed with redis")]
    PasswordUnsupported,
    /// A password without characters.
    #[error("the password is empty")]
    PasswordEmpty,
    /// Other machines would have access without a password.
    #[error(
        "host = {host}: whoever reaches this address could use the store; allowed are addresses of \
         the loopback interface (127.0.0.1, ::1), or any {} (--no-protected)",
        match protocol {
            Protocol::Redis => "with a password (--password) or without protection",
            Protocol::Memcached => "without protection",
        }
    )]
    Unprotected {
        /// The address.
        host: IpAddr,
        /// The protocol.
        protocol: Protocol,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_without_a_password_is_local_only() {
        for (host, password, protected, redis, memcached) in [
            ("127.0.0.1", None, true, true, true),
            ("127.9.9.9", None, true, true, true),
            ("::1", None, true, true, true),
            ("::ffff:127.0.0.1", None, true, true, true),
            ("0.0.0.0", None, true, false, false),
            ("::", None, true, false, false),
            ("192.168.0.1", None, true, false, false),
            ("::ffff:192.168.0.1", None, true, false, false),
            ("0.0.0.0", Some("x"), true, true, false),
            ("0.0.0.0", Some(""), true, false, false),
            ("127.0.0.1", Some(""), true, false, false),
            ("0.0.0.0", None, false, true, true),
        ] {
            let access = Access {
                endpoint: Endpoint::Tcp(host.parse().unwrap(), 0),
                password: password.map(str::to_owned),
                protected,
            };
            let case = format!("{access:?}");
            assert_eq!(access.validate(Protocol::Redis).is_ok(), redis, "{case}");
            assert_eq!(
                access.validate(Protocol::Memcached).is_ok(),
                memcached,
                "{case}"
            );
        }
    }
}
