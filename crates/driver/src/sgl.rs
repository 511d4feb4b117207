// SPDX-License-Identifier: Apache-2.0

//! Scatter Gather Lists: the alternative to PRPs (NVMe 1.4, 4.4).

use spec::nvme::{sgl_type, PAGE_BYTES};

use crate::prp::Buffer;
use crate::{Error, Result};

/// Bytes of a descriptor.
const DESCRIPTOR_BYTES: u64 = 16;
/// Descriptors of a page.
const PAGE_DESCRIPTORS: usize = (PAGE_BYTES / DESCRIPTOR_BYTES) as usize;

/// An SGL descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Type and sub type.
    pub kind: u8,
    /// Bus address.
    pub addr: u64,
    /// Bytes.
    pub length: u32,
}

impl Descriptor {
    /// The format in memory.
    pub fn to_bytes(self) -> [u8; DESCRIPTOR_BYTES as usize] {
        let mut bytes = [0; DESCRIPTOR_BYTES as usize];
        bytes[..8].copy_from_slice(&self.addr.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.length.to_le_bytes());
        bytes[15] = self.kind;
        bytes
    }
}

/// The descriptor of a command, and the segments that it refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sgl {
    /// The descriptor in the command.
    pub first: Descriptor,
    /// Address and descriptors of each segment. None crosses a page.
    pub segments: Vec<(u64, Vec<Descriptor>)>,
}

/// The contiguous ranges of the buffer.
fn segments_of(buffer: &Buffer, bytes: u64) -> Result<Vec<(u64, u64)>> {
    let (offset, pages) = match buffer {
        Buffer::Contiguous(addr) => return Ok(vec![(*addr, bytes)]),
        Buffer::Pages { offset, pages } => (offset, pages),
    };
    let mut out: Vec<(u64, u64)> = Vec::new();
    let (mut left, mut offset) = (bytes, *offset);
    for page in pages {
        if left == 0 {
            break;
        }
        let here = (PAGE_BYTES - offset).min(left);
        let addr = page + offset;
        match out.last_mut() {
            Some((start, length)) if start.checked_add(*length) == Some(addr) => *length += here,
            _ => out.push((addr, here)),
        }
        (left, offset) = (left - here, 0);
    }
    if left > 0 {
        return Err(Error::Invalid(format!("the buffer lacks {left} bytes")));
    }
    Ok(out)
}

/// Builds the SGL of `bytes` bytes at `buffer`: a Data Block for a contiguous range, else segments
/// in pages from `page()`.
pub fn build(buffer: &Buffer, bytes: u64, page: impl FnMut() -> Result<u64>) -> Result<Sgl> {
    if let Buffer::Pages { offset, pages } = buffer {
        if *offset >= PAGE_BYTES || pages.iter().any(|page| page % PAGE_BYTES != 0) {
            return Err(Error::Invalid("a page of the buffer is not aligned".into()));
        }
    }
    let blocks = segments_of(buffer, bytes)?
        .into_iter()
        .map(|(addr, length)| match u32::try_from(length) {
            Ok(length) if length % 4 == 0 && addr % 4 == 0 => Ok(Descriptor {
                kind: sgl_type::DATA_BLOCK,
                addr,
                length,
            }),
            _ => Err(Error::Invalid(format!(
                "{length} bytes at {addr:#x} are not dword-aligned"
            ))),
        })
        .collect::<Result<Vec<_>>>()?;
    let [first] = blocks[..] else {
        return chain(&blocks, page);
    };
    Ok(Sgl {
        first,
        segments: Vec::new(),
    })
}

/// Distributes blocks over segments of a page each; the last descriptor of all but the last segment
/// refers to the next.
fn chain(blocks: &[Descriptor], mut page: impl FnMut() -> Result<u64>) -> Result<Sgl> {
    let mut segments = Vec::new();
    let mut rest = blocks;
    loop {
        let at = page()?;
        if rest.len() <= PAGE_DESCRIPTORS {
            segments.push((at, rest.to_vec()));
            break;
        }
        let (here, others) = rest.split_at(PAGE_DESCRIPTORS - 1);
        segments.push((at, here.to_vec()));
        rest = others;
    }
    let count = segments.len();
    let lead = |segments: &[(u64, Vec<Descriptor>)], n: usize| Descriptor {
        kind: if n + 1 == count {
            sgl_type::LAST_SEGMENT
        } else {
            sgl_type::SEGMENT
        },
        addr: segments[n].0,
        length: (segments[n].1.len() as u64 * DESCRIPTOR_BYTES) as u32,
    };
    for n in (1..count).rev() {
        let next = lead(&segments, n);
        segments[n - 1].1.push(next);
    }
    Ok(Sgl {
        first: lead(&segments, 0),
        segments,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Walks an SGL and returns the address of every dword in order.
    fn walk(sgl: &Sgl) -> Vec<u64> {
        let mut out = Vec::new();
        let mut next = Some(sgl.first);
        let mut segments = sgl.segments.iter();
        while let Some(lead) = next.take() {
            if lead.kind == sgl_type::DATA_BLOCK {
                out.extend((lead.addr..lead.addr + u64::from(lead.length)).step_by(4));
                continue;
            }
            let (at, descriptors) = segments.next().unwrap();
            assert_eq!(lead.addr, *at);
            assert_eq!(u64::from(lead.length), descriptors.len() as u64 * 16);
            assert!(descriptors.len() <= PAGE_DESCRIPTORS);
            for (i, d) in descriptors.iter().enumerate() {
                if d.kind == sgl_type::DATA_BLOCK {
                    out.extend((d.addr..d.addr + u64::from(d.length)).step_by(4));
                } else {
                    assert_eq!((lead.kind, i + 1), (sgl_type::SEGMENT, descriptors.len()));
                    next = Some(*d);
                }
            }
            assert_eq!(next.is_none(), lead.kind == sgl_type::LAST_SEGMENT);
        }
        assert_eq!(segments.next(), None);
        out
    }

    fn pool() -> impl FnMut() -> Result<u64> {
        let mut at = 0x100_0000;
        move || {
            at += PAGE_BYTES;
            Ok(at)
        }
    }

    #[test]
    fn sgl_describes_any_number_of_segments() {
        for pages in [1u64, 2, 3, 255, 256, 257, 510, 511, 512, 1000] {
            for offset in [0, 4, 4092] {
                // Every other page: none is adjacent to the one before it.
                let buffer = Buffer::Pages {
                    offset,
                    pages: (0..pages)
                        .map(|n| 0x4000_0000 + 2 * n * PAGE_BYTES)
                        .collect(),
                };
                let bytes = pages * PAGE_BYTES - offset;
                let sgl = build(&buffer, bytes, pool()).unwrap();
                assert_eq!(sgl.segments.is_empty(), pages == 1);
                let want: Vec<u64> = (offset..pages * PAGE_BYTES)
                    .step_by(4)
                    .map(|at| 0x4000_0000 + at + at / PAGE_BYTES * PAGE_BYTES)
                    .collect();
                assert!(walk(&sgl) == want, "{pages} pages at {offset}");
            }
        }
    }

    #[test]
    fn sgl_joins_adjacent_pages() {
        let pages = vec![0x1000, 0x2000, 0x3000, 0x9000, 0xA000];
        let sgl = build(&Buffer::Pages { offset: 8, pages }, 17000, pool()).unwrap();
        let lengths: Vec<u32> = sgl.segments[0].1.iter().map(|d| d.length).collect();
        assert_eq!(lengths, [3 * 4096 - 8, 17000 - (3 * 4096 - 8)]);
        let sgl = build(&Buffer::Contiguous(0x1234), 1 << 20, pool()).unwrap();
        assert_eq!((sgl.first.length, sgl.segments.len()), (1 << 20, 0));
        assert_eq!(sgl.first.to_bytes()[..4], [0x34, 0x12, 0, 0]);
    }

    #[test]
    fn sgl_refuses_bad_buffers() {
        let pages = vec![0x1000, 0x2001];
        assert!(build(&Buffer::Pages { offset: 0, pages }, 8192, pool()).is_err());
        let pages = vec![0x1000];
        assert!(build(&Buffer::Pages { offset: 0, pages }, 4100, pool()).is_err());
        assert!(build(&Buffer::Contiguous(2), 512, pool()).is_err());
        assert!(build(&Buffer::Contiguous(0), 510, pool()).is_err());
    }
}
