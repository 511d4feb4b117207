//! Regfile: read

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

// Anonymous component instances
pub mod beats_hi;
pub mod beats_lo;
pub mod late_hi;
pub mod late_lo;
pub mod max;
pub mod min;
pub mod sum_hi;
pub mod sum_lo;
pub mod transactions_hi;
pub mod transactions_lo;

/// read
#[derive(Eq, PartialEq)]
pub struct CountersF<'io, IO = peakrdl_rust::io::PtrIO> {
    ptr: *mut u8,
    io: &'io IO,
}

unsafe impl<IO: Sync> Send for CountersF<'_, IO> {}
unsafe impl<IO: Sync> Sync for CountersF<'_, IO> {}

// manually implement Copy to ease generic bounds
// (IO does not need to be Copy)
impl<IO> Copy for CountersF<'_, IO> {}

// manually implement Clone to ease generic bounds
// (IO does not need to be Clone)
impl<IO> Clone for CountersF<'_, IO> {
    fn clone(&self) -> Self {
        *self
    }
}

impl CountersF<'static> {
    /// # Safety
    ///
    /// The caller must guarantee that the provided address points to a
    /// hardware register block implementing this interface.
    #[inline(always)]
    #[must_use]
    pub const unsafe fn from_ptr(ptr: *mut ()) -> Self {
        Self {
            ptr: ptr.cast::<u8>(),
            io: &peakrdl_rust::io::PtrIO,
        }
    }
}

impl<'io, IO> CountersF<'io, IO> {
    /// Size in bytes of the underlying memory
    pub const SIZE: usize = 0x28;

    /// # Safety
    ///
    /// The caller must guarantee that the provided address points to a
    /// hardware register block implementing this interface.
    #[inline(always)]
    #[must_use]
    pub const unsafe fn from_ptr_with(ptr: *mut (), io: &'io IO) -> Self {
        Self {
            ptr: ptr.cast::<u8>(),
            io,
        }
    }

    #[inline(always)]
    #[must_use]
    pub const fn as_ptr(&self) -> *mut () {
        self.ptr.cast::<()>()
    }
}

impl<'io, IO: peakrdl_rust::io::RegisterIO> CountersF<'io, IO> {
    /// Transactions, low
    #[inline(always)]
    #[must_use]
    pub const fn transactions_lo(
        &self,
    ) -> peakrdl_rust::reg::Reg<'io, transactions_lo::TransactionsLo, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x0).cast(), self.io)
        }
    }

    /// Transactions, high
    #[inline(always)]
    #[must_use]
    pub const fn transactions_hi(
        &self,
    ) -> peakrdl_rust::reg::Reg<'io, transactions_hi::TransactionsHi, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x4).cast(), self.io)
        }
    }

    /// Beats, low
    #[inline(always)]
    #[must_use]
    pub const fn beats_lo(&self) -> peakrdl_rust::reg::Reg<'io, beats_lo::BeatsLo, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x8).cast(), self.io)
        }
    }

    /// Beats, high
    #[inline(always)]
    #[must_use]
    pub const fn beats_hi(&self) -> peakrdl_rust::reg::Reg<'io, beats_hi::BeatsHi, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0xC).cast(), self.io)
        }
    }

    /// Late responses, low
    #[inline(always)]
    #[must_use]
    pub const fn late_lo(&self) -> peakrdl_rust::reg::Reg<'io, late_lo::LateLo, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x10).cast(), self.io)
        }
    }

    /// Late responses, high
    #[inline(always)]
    #[must_use]
    pub const fn late_hi(&self) -> peakrdl_rust::reg::Reg<'io, late_hi::LateHi, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x14).cast(), self.io)
        }
    }

    /// Sum of latencies in cycles, low
    #[inline(always)]
    #[must_use]
    pub const fn sum_lo(&self) -> peakrdl_rust::reg::Reg<'io, sum_lo::SumLo, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x18).cast(), self.io)
        }
    }

    /// Sum of latencies in cycles, high
    #[inline(always)]
    #[must_use]
    pub const fn sum_hi(&self) -> peakrdl_rust::reg::Reg<'io, sum_hi::SumHi, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x1C).cast(), self.io)
        }
    }

    /// Smallest latency in cycles, all ones if there was none
    #[inline(always)]
    #[must_use]
    pub const fn min(&self) -> peakrdl_rust::reg::Reg<'io, min::Min, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x20).cast(), self.io)
        }
    }

    /// Largest latency in cycles
    #[inline(always)]
    #[must_use]
    pub const fn max(&self) -> peakrdl_rust::reg::Reg<'io, max::Max, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x24).cast(), self.io)
        }
    }
}
