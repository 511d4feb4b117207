//! Regfile: Times of a region, or of all addresses outside of them (shadow)

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

// Instances of named component types
pub use _root::components::nvm_delay_regs::named_types::time_r as read_base;
pub use _root::components::nvm_delay_regs::named_types::time_r as read_beat;
pub use _root::components::nvm_delay_regs::named_types::time_r as write_base;
pub use _root::components::nvm_delay_regs::named_types::time_r as write_beat;

/// Times of a region, or of all addresses outside of them (shadow)
#[derive(Eq, PartialEq)]
pub struct TimesF<'io, IO = peakrdl_rust::io::PtrIO> {
    ptr: *mut u8,
    io: &'io IO,
}

unsafe impl<IO: Sync> Send for TimesF<'_, IO> {}
unsafe impl<IO: Sync> Sync for TimesF<'_, IO> {}

// manually implement Copy to ease generic bounds
// (IO does not need to be Copy)
impl<IO> Copy for TimesF<'_, IO> {}

// manually implement Clone to ease generic bounds
// (IO does not need to be Clone)
impl<IO> Clone for TimesF<'_, IO> {
    fn clone(&self) -> Self {
        *self
    }
}

impl TimesF<'static> {
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

impl<'io, IO> TimesF<'io, IO> {
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

impl<'io, IO: peakrdl_rust::io::RegisterIO> TimesF<'io, IO> {
    /// read_base
    #[inline(always)]
    #[must_use]
    pub const fn read_base(&self) -> peakrdl_rust::reg::Reg<'io, read_base::TimeR, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x0).cast(), self.io)
        }
    }

    /// read_beat
    #[inline(always)]
    #[must_use]
    pub const fn read_beat(&self) -> peakrdl_rust::reg::Reg<'io, read_beat::TimeR, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x4).cast(), self.io)
        }
    }

    /// write_base
    #[inline(always)]
    #[must_use]
    pub const fn write_base(&self) -> peakrdl_rust::reg::Reg<'io, write_base::TimeR, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x8).cast(), self.io)
        }
    }

    /// write_beat
    #[inline(always)]
    #[must_use]
    pub const fn write_beat(&self) -> peakrdl_rust::reg::Reg<'io, write_beat::TimeR, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0xC).cast(), self.io)
        }
    }
}
