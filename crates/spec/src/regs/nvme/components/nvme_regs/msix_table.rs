//! Regfile: MSI-X table

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

// Anonymous component instances
pub mod vector;

/// MSI-X table
#[derive(Eq, PartialEq)]
pub struct MsixTable<'io, IO = peakrdl_rust::io::PtrIO> {
    ptr: *mut u8,
    io: &'io IO,
}

unsafe impl<IO: Sync> Send for MsixTable<'_, IO> {}
unsafe impl<IO: Sync> Sync for MsixTable<'_, IO> {}

// manually implement Copy to ease generic bounds
// (IO does not need to be Copy)
impl<IO> Copy for MsixTable<'_, IO> {}

// manually implement Clone to ease generic bounds
// (IO does not need to be Clone)
impl<IO> Clone for MsixTable<'_, IO> {
    fn clone(&self) -> Self {
        *self
    }
}

impl MsixTable<'static> {
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

impl<'io, IO> MsixTable<'io, IO> {
    /// Size in bytes of the underlying memory
    pub const SIZE: usize = 0x1000;

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

impl<'io, IO: peakrdl_rust::io::RegisterIO> MsixTable<'io, IO> {
    /// vector
    #[inline(always)]
    #[must_use]
    pub const fn vector(&self) -> [vector::Vector<'io, IO>; 256] {
        // SAFETY: We will initialize every element before using the array
        let mut array = [core::mem::MaybeUninit::uninit(); 256];

        let mut i0 = 0;
        while i0 < 256 {
            array[i0].write(unsafe {
                vector::Vector::<IO>::from_ptr_with(
                    self.ptr.wrapping_byte_add(0x0 + i0 * 0x10).cast(),
                    self.io,
                )
            });
            i0 += 1;
        }

        // SAFETY: All elements have been initialized above
        unsafe { core::mem::transmute(array) }
    }
}
