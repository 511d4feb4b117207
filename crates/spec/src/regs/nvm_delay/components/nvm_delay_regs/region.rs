//! Regfile: Address region (shadow)

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

// Instances of named component types
pub use _root::components::nvm_delay_regs::named_types::page_r as first;
pub use _root::components::nvm_delay_regs::named_types::page_r as last;
pub use _root::components::nvm_delay_regs::named_types::times_f as timing;

/// Address region (shadow)
///
/// A transaction belongs to the lowest enabled region that its address lies in.
#[derive(Eq, PartialEq)]
pub struct Region<'io, IO = peakrdl_rust::io::PtrIO> {
    ptr: *mut u8,
    io: &'io IO,
}

unsafe impl<IO: Sync> Send for Region<'_, IO> {}
unsafe impl<IO: Sync> Sync for Region<'_, IO> {}

// manually implement Copy to ease generic bounds
// (IO does not need to be Copy)
impl<IO> Copy for Region<'_, IO> {}

// manually implement Clone to ease generic bounds
// (IO does not need to be Clone)
impl<IO> Clone for Region<'_, IO> {
    fn clone(&self) -> Self {
        *self
    }
}

impl Region<'static> {
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

impl<'io, IO> Region<'io, IO> {
    /// Size in bytes of the underlying memory
    pub const SIZE: usize = 0x20;

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

impl<'io, IO: peakrdl_rust::io::RegisterIO> Region<'io, IO> {
    /// first
    #[inline(always)]
    #[must_use]
    pub const fn first(&self) -> peakrdl_rust::reg::Reg<'io, first::PageR, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x0).cast(), self.io)
        }
    }

    /// last
    #[inline(always)]
    #[must_use]
    pub const fn last(&self) -> peakrdl_rust::reg::Reg<'io, last::PageR, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x4).cast(), self.io)
        }
    }

    /// Times of a region, or of all addresses outside of them (shadow)
    #[inline(always)]
    #[must_use]
    pub const fn timing(&self) -> timing::TimesF<'io, IO> {
        unsafe { timing::TimesF::from_ptr_with(self.ptr.wrapping_byte_add(0x10).cast(), self.io) }
    }
}
