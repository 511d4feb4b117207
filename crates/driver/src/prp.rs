// SPDX-License-Identifier: Apache-2.0

//! Physical Region Pages: the data pointer of a command.

use spec::nvme::PAGE_BYTES;

use crate::{Error, Result};

/// Entries of a list page.
const LIST_ENTRIES: u64 = PAGE_BYTES / 8;

/// The memory of a command's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// Physically contiguous from this bus address.
    Contiguous(u64),
    /// Scattered pages: the data starts `offset` bytes into the first one.
    Pages {
        /// Bytes into the first page.
        offset: u64,
        /// Bus addresses of whole pages.
        pages: Vec<u64>,
    },
}

impl Buffer {
    /// Bytes into the first page.
    fn offset(&self) -> u64 {
        match self {
            Buffer::Contiguous(addr) => addr % PAGE_BYTES,
            Buffer::Pages { offset, .. } => *offset,
        }
    }

    /// Address of page `n`.
    fn page(&self, n: u64) -> Option<u64> {
        match self {
            Buffer::Contiguous(addr) => {
                (addr - addr % PAGE_BYTES).checked_add(n.checked_mul(PAGE_BYTES)?)
            }
            Buffer::Pages { pages, .. } => pages.get(usize::try_from(n).ok()?).copied(),
        }
    }
}

/// The two PRP entries of a command, and the content of the list pages.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Prps {
    /// PRP Entry 1.
    pub prp1: u64,
    /// PRP Entry 2: unused (0), the second page, or a list.
    pub prp2: u64,
    /// The lists: address and entries of each. None crosses a page.
    pub lists: Vec<(u64, Vec<u64>)>,
}

/// Builds the PRP entries of `bytes` bytes at `buffer`. List pages come from `page()`. The first
/// list starts `list_offset` bytes into its page (the specification allows any multiple of 8),
/// chained ones at the start of their page.
pub fn build(
    buffer: &Buffer,
    bytes: u64,
    list_offset: u64,
    mut page: impl FnMut() -> Result<u64>,
) -> Result<Prps> {
    let offset = buffer.offset();
    if bytes == 0 || bytes % 4 != 0 || offset % 4 != 0 || offset >= PAGE_BYTES {
        return Err(Error::Invalid(format!(
            "a buffer of {bytes} bytes at page offset {offset} is not dword-aligned"
        )));
    }
    if list_offset % 8 != 0 || list_offset >= PAGE_BYTES {
        return Err(Error::Invalid(format!(
            "a PRP list can't start at page offset {list_offset}"
        )));
    }
    let at = |n: u64| match buffer.page(n) {
        Some(addr) if addr % PAGE_BYTES == 0 => Ok(addr),
        Some(addr) => Err(Error::Invalid(format!(
            "page {n} of the buffer, {addr:#x}, is not aligned"
        ))),
        None => Err(Error::Invalid(format!("the buffer has no page {n}"))),
    };
    let pages = bytes
        .checked_add(offset)
        .ok_or_else(|| Error::Invalid(format!("a buffer of {bytes} bytes")))?
        .div_ceil(PAGE_BYTES);
    let mut prps = Prps {
        prp1: at(0)? + offset,
        ..Prps::default()
    };
    match pages {
        1 => {}
        2 => prps.prp2 = at(1)?,
        _ => {
            let mut list = page()? + list_offset;
            let mut room = LIST_ENTRIES - list_offset / 8;
            prps.prp2 = list;
            let mut next = 1;
            loop {
                let left = pages - next;
                let here = if left > room { room - 1 } else { left };
                let mut entries = (next..next + here).map(at).collect::<Result<Vec<_>>>()?;
                next += here;
                if next == pages {
                    prps.lists.push((list, entries));
                    break;
                }
                let chained = page()?;
                entries.push(chained);
                prps.lists.push((list, entries));
                list = chained;
                room = LIST_ENTRIES;
            }
        }
    }
    Ok(prps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Walks PRPs as the specification requires of a controller, and returns the address of every
    /// dword in order.
    fn walk(prps: &Prps, bytes: u64) -> Vec<u64> {
        let memory: HashMap<u64, u64> = prps
            .lists
            .iter()
            .flat_map(|(at, entries)| {
                entries
                    .iter()
                    .enumerate()
                    .map(move |(i, e)| (at + 8 * i as u64, *e))
            })
            .collect();
        let mut out = Vec::new();
        let mut take = |from: u64, left: &mut u64| {
            let here = (PAGE_BYTES - from % PAGE_BYTES).min(*left);
            out.extend((from..from + here).step_by(4));
            *left -= here;
        };
        let mut left = bytes;
        take(prps.prp1, &mut left);
        if left > 0 && left <= PAGE_BYTES {
            assert_eq!(prps.prp2 % PAGE_BYTES, 0);
            take(prps.prp2, &mut left);
        } else if left > 0 {
            let mut pointer = prps.prp2;
            while left > 0 {
                let entry = memory[&pointer];
                assert_eq!(entry % PAGE_BYTES, 0);
                let last_of_page = pointer % PAGE_BYTES == PAGE_BYTES - 8;
                if last_of_page && left > PAGE_BYTES {
                    pointer = entry;
                } else {
                    take(entry, &mut left);
                    pointer += 8;
                }
            }
        }
        out
    }

    fn pool() -> impl FnMut() -> Result<u64> {
        let mut next = 0xF000_0000;
        move || {
            next += PAGE_BYTES;
            Ok(next)
        }
    }

    #[test]
    fn prp_walk_finds_every_dword_of_any_buffer() {
        for bytes in [
            4,
            512,
            4092,
            4096,
            4100,
            8192,
            8196,
            12288,
            65536,
            1 << 20,
            (2 << 20) + 512,
            8 << 20,
        ] {
            for offset in [0, 4, 512, 2048, 4088, 4092] {
                for list_offset in [0, 8, 2048, 4080, 4088] {
                    let addr = 0x12_3450_0000 + offset;
                    let prps =
                        build(&Buffer::Contiguous(addr), bytes, list_offset, pool()).unwrap();
                    let want: Vec<u64> = (addr..addr + bytes).step_by(4).collect();
                    assert_eq!(
                        walk(&prps, bytes),
                        want,
                        "{bytes} at {offset}, list at {list_offset}"
                    );
                }
            }
        }
    }

    #[test]
    fn prp_describes_scattered_pages_in_any_order() {
        let pages: Vec<u64> = (0..700u64)
            .map(|i| (i * 7919 % 1024 + 16) * PAGE_BYTES)
            .collect();
        let bytes = 699 * PAGE_BYTES;
        let buffer = Buffer::Pages {
            offset: 36,
            pages: pages.clone(),
        };
        let prps = build(&buffer, bytes, 0, pool()).unwrap();
        let found = walk(&prps, bytes);
        let want: Vec<u64> = (36..36 + bytes)
            .step_by(4)
            .map(|i| pages[(i / PAGE_BYTES) as usize] + i % PAGE_BYTES)
            .collect();
        assert_eq!(found, want);
        assert_eq!(prps.lists.len(), 2, "699 entries need a chained list");
    }

    #[test]
    fn prp_full_list_page_is_not_chained() {
        let prps = build(&Buffer::Contiguous(0), 513 * PAGE_BYTES, 0, pool()).unwrap();
        assert_eq!((prps.lists.len(), prps.lists[0].1.len()), (1, 512));
        let prps = build(&Buffer::Contiguous(0), 514 * PAGE_BYTES, 0, pool()).unwrap();
        assert_eq!((prps.lists[0].1.len(), prps.lists[1].1.len()), (512, 2));
    }

    #[test]
    fn prp_refuses_what_it_cannot_express() {
        let refuse = |buffer, bytes, list| build(&buffer, bytes, list, pool()).unwrap_err();
        refuse(Buffer::Contiguous(2), 512, 0);
        refuse(Buffer::Contiguous(0), 510, 0);
        refuse(Buffer::Contiguous(0), 0, 0);
        refuse(Buffer::Contiguous(0), 1 << 20, 4);
        refuse(
            Buffer::Pages {
                offset: 0,
                pages: vec![4096],
            },
            8192,
            0,
        );
        refuse(
            Buffer::Pages {
                offset: 0,
                pages: vec![4096, 4100],
            },
            8192,
            0,
        );
        refuse(Buffer::Contiguous(u64::MAX - 3), 8192, 0);
    }
}
