// SPDX-License-Identifier: Apache-2.0

//! Lookup of namespaces.

use nvme::{Namespace, Namespaces};
use spec::nvme::{status, Status};

/// Looks an NSID up for a command: an error if it is invalid or inactive.
pub fn find(namespaces: &Namespaces, nsid: u32) -> Result<Namespace, Status> {
    match namespaces.get(nsid) {
        None => Err(status::INVALID_NAMESPACE_OR_FORMAT),
        Some(n) if !n.is_active() => Err(status::INVALID_FIELD),
        Some(n) => Ok(n),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespace_that_is_inactive_is_known_but_unusable() {
        let all = Namespaces::new(&[16, 9, 0, 1]);
        for nsid in [0, 5, u32::MAX] {
            assert_eq!(find(&all, nsid), Err(status::INVALID_NAMESPACE_OR_FORMAT));
        }
        assert_eq!(find(&all, 3), Err(status::INVALID_FIELD));
        assert_eq!(find(&all, 4).map(|n| n.base), Ok(32));
    }
}
