//! Regfile: MSI-X pending bits

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

// Anonymous component instances
pub mod word;

/// MSI-X pending bits
#[derive(Eq, PartialEq)]
pub struct MsixPending<'io, IO = peakrdl_rust::io::PtrIO> {
    ptr: *mut u8,
    io: &'io IO,
}

unsafe impl<IO: Sync> Send for MsixPending<'_, IO> {}
unsafe impl<IO: Sync> Sync for MsixPending<'_, IO> {}

// manually implement Copy to ease generic bounds
// (IO does not need to be Copy)
impl<IO> Copy for MsixPending<'_, IO> {}

// manually implement Clone to ease generic bounds
// (IO does not need to be Clone)
impl<IO> Clone for MsixPending<'_, IO> {
    fn clone(&self) -> Self {
        *self
    }
}

impl MsixPending<'static> {
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

impl<'io, IO> MsixPending<'io, IO> {
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

impl<'io, IO: peakrdl_rust::io::RegisterIO> MsixPending<'io, IO> {
    /// word
    #[inline(always)]
    #[must_use]
    pub const fn word(&self) -> [peakrdl_rust::reg::Reg<'io, word::Word, IO>; 4] {
        // SAFETY: We will initialize every element before using the array
        let mut array = [core::mem::MaybeUninit::uninit(); 4];

        let mut i0 = 0;
        while i0 < 4 {
            array[i0].write(unsafe {
                peakrdl_rust::reg::Reg::<'io, word::Word, IO>::from_ptr_with(
                    self.ptr.wrapping_byte_add(0x0 + i0 * 0x4).cast(),
                    self.io,
                )
            });
            i0 += 1;
        }

        // SAFETY: All elements have been initialized above
        unsafe { core::mem::transmute(array) }
    }
}
