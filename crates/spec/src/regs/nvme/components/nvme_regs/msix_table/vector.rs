//! Regfile: vector

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

// Anonymous component instances
pub mod address_high;
pub mod address_low;
pub mod control;
pub mod data;

/// vector
#[derive(Eq, PartialEq)]
pub struct Vector<'io, IO = peakrdl_rust::io::PtrIO> {
    ptr: *mut u8,
    io: &'io IO,
}

unsafe impl<IO: Sync> Send for Vector<'_, IO> {}
unsafe impl<IO: Sync> Sync for Vector<'_, IO> {}

// manually implement Copy to ease generic bounds
// (IO does not need to be Copy)
impl<IO> Copy for Vector<'_, IO> {}

// manually implement Clone to ease generic bounds
// (IO does not need to be Clone)
impl<IO> Clone for Vector<'_, IO> {
    fn clone(&self) -> Self {
        *self
    }
}

impl Vector<'static> {
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

impl<'io, IO> Vector<'io, IO> {
    /// Size in bytes of the underlying memory
    pub const SIZE: usize = 0x10;

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

impl<'io, IO: peakrdl_rust::io::RegisterIO> Vector<'io, IO> {
    /// Message address
    #[inline(always)]
    #[must_use]
    pub const fn address_low(&self) -> peakrdl_rust::reg::Reg<'io, address_low::AddressLow, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x0).cast(), self.io)
        }
    }

    /// Message upper address
    #[inline(always)]
    #[must_use]
    pub const fn address_high(&self) -> peakrdl_rust::reg::Reg<'io, address_high::AddressHigh, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x4).cast(), self.io)
        }
    }

    /// Message data
    #[inline(always)]
    #[must_use]
    pub const fn data(&self) -> peakrdl_rust::reg::Reg<'io, data::Data, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x8).cast(), self.io)
        }
    }

    /// Vector control
    #[inline(always)]
    #[must_use]
    pub const fn control(&self) -> peakrdl_rust::reg::Reg<'io, control::Control, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0xC).cast(), self.io)
        }
    }
}
