// SPDX-License-Identifier: Apache-2.0

//! The distribution of a pool's bytes over its devices.
//!
//! Stripes of 4 KiB rotate over the devices, as with interleaved memory modules. So a device's
//! share of any range of the pool is contiguous on that device. With one device an offset in the
//! pool is an offset on the device.

use std::ops::Range;
use std::sync::Arc;

use crate::units::PAGE;
use crate::{Error, Result};

/// Bytes of a stripe: those of a page, so that a page is on one device.
pub(crate) const STRIPE: u64 = PAGE;

/// The devices of a pool, in the order of its stripes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Devices(Arc<[usize]>);

impl From<usize> for Devices {
    fn from(device: usize) -> Devices {
        Devices([device].into())
    }
}

impl From<&[usize]> for Devices {
    fn from(devices: &[usize]) -> Devices {
        Devices(devices.into())
    }
}

impl From<Vec<usize>> for Devices {
    fn from(devices: Vec<usize>) -> Devices {
        Devices(devices.into())
    }
}

/// The part of an access that is on one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StripeSegment {
    /// Index of the device among those of the pool.
    pub index: usize,
    /// Offset in the device's share of the pool.
    pub offset: u64,
    /// Position in the access.
    pub part: Range<usize>,
}

impl Devices {
    /// Refuses a set of devices that no pool can have; the message names it.
    pub(crate) fn validate(&self) -> Result<()> {
        let twice = |n: usize| self.0[..n].contains(&self.0[n]);
        let most = spec::nearpm::DEVICES;
        match matches!(self.0.len(), 1 | 2 | 4) && !(0..self.0.len()).any(twice) {
            true => Ok(()),
            false => Err(Error::Invalid(format!(
                "a pool on devices {:?}: allowed are 1, 2 or {most} different ones",
                self.0
            ))),
        }
    }

    /// Number of devices.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The number in the system of the device at an index.
    pub fn number(&self, index: usize) -> usize {
        self.0[index]
    }

    /// The numbers in the system.
    pub fn numbers(&self) -> &[usize] {
        &self.0
    }

    /// The device of a byte of the pool, and the offset in its share.
    pub(crate) fn locate(&self, offset: u64) -> (usize, u64) {
        match self.count() as u64 {
            1 => (0, offset),
            count => {
                let stripe = offset / STRIPE;
                let place = stripe / count * STRIPE + offset % STRIPE;
                ((stripe % count) as usize, place)
            }
        }
    }

    /// How many of the pool's bytes below an offset a device has.
    fn bytes_below(&self, index: usize, offset: u64) -> u64 {
        let row = self.count() as u64 * STRIPE;
        let own = (offset % row).saturating_sub(index as u64 * STRIPE);
        offset / row * STRIPE + own.min(STRIPE)
    }

    /// A device's share of a range.
    pub(crate) fn local_range(&self, index: usize, range: &Range<u64>) -> Range<u64> {
        match self.count() {
            1 => range.clone(),
            _ => self.bytes_below(index, range.start)..self.bytes_below(index, range.end),
        }
    }

    /// A bit for each device that has a part of a range.
    pub(crate) fn touched_by(&self, range: &Range<u64>) -> u64 {
        let has = |index: &usize| !self.local_range(*index, range).is_empty();
        (0..self.count()).filter(has).map(|index| 1 << index).sum()
    }

    /// The segments of an access, in its order.
    pub(crate) fn segments(
        &self,
        offset: u64,
        len: usize,
    ) -> impl Iterator<Item = StripeSegment> + '_ {
        let mut from = 0;
        std::iter::from_fn(move || {
            let at = offset + from as u64;
            let left = len - from;
            let here = match self.count() {
                1 => left,
                _ => left.min((STRIPE - at % STRIPE) as usize),
            };
            let part = from..from + here;
            from = part.end;
            let (index, offset) = self.locate(at);
            (here > 0).then_some(StripeSegment {
                index,
                offset,
                part,
            })
        })
    }
}

/// The numbers of the bits that are set.
pub(crate) fn bits(mask: u64) -> impl Iterator<Item = usize> {
    (0..64).filter(move |n| mask >> n & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::Random;

    #[test]
    fn stripes_put_each_byte_on_exactly_one_device() {
        let mut random = Random::new(1);
        for devices in [vec![3], vec![0, 1], vec![2, 0, 1, 3]] {
            let devices = Devices::from(devices);
            for _ in 0..200 {
                let start = random.below(10 * STRIPE);
                let end = start + random.below(10 * STRIPE);
                let mut parts: Vec<_> = (0..devices.count())
                    .map(|index| devices.local_range(index, &(start..end)))
                    .collect();
                let touched: Vec<_> = (0..parts.len()).filter(|n| !parts[*n].is_empty()).collect();
                assert!(bits(devices.touched_by(&(start..end))).eq(touched));
                for piece in devices.segments(start, (end - start) as usize) {
                    let at = start + piece.part.start as u64;
                    assert_eq!(devices.locate(at), (piece.index, piece.offset));
                    let last = start + piece.part.end as u64 - 1;
                    let bytes = piece.part.len() as u64;
                    assert_eq!(
                        devices.locate(last),
                        (piece.index, piece.offset + bytes - 1)
                    );
                    // Segments are contiguous on their device.
                    assert_eq!(parts[piece.index].start, piece.offset);
                    parts[piece.index].start += bytes;
                }
                assert!(parts.iter().all(Range::is_empty), "{parts:?}");
            }
        }
    }

    #[test]
    fn devices_with_a_wrong_count_are_refused() {
        for wrong in [vec![], vec![0, 0], vec![0, 1, 2], vec![0, 1, 2, 3, 4]] {
            let error = Devices::from(wrong).validate().unwrap_err().to_string();
            assert!(error.contains("allowed are 1, 2 or 4"), "{error}");
        }
    }
}
