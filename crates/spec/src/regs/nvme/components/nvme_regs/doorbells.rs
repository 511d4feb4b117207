//! Regfile: Doorbells

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

// Anonymous component instances
pub mod queue;

/// Doorbells
#[derive(Eq, PartialEq)]
pub struct Doorbells<'io, IO = peakrdl_rust::io::PtrIO> {
    ptr: *mut u8,
    io: &'io IO,
}

unsafe impl<IO: Sync> Send for Doorbells<'_, IO> {}
unsafe impl<IO: Sync> Sync for Doorbells<'_, IO> {}

// manually implement Copy to ease generic bounds
// (IO does not need to be Copy)
impl<IO> Copy for Doorbells<'_, IO> {}

// manually implement Clone to ease generic bounds
// (IO does not need to be Clone)
impl<IO> Clone for Doorbells<'_, IO> {
    fn clone(&self) -> Self {
        *self
    }
}

impl Doorbells<'static> {
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

impl<'io, IO> Doorbells<'io, IO> {
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

impl<'io, IO: peakrdl_rust::io::RegisterIO> Doorbells<'io, IO> {
    /// queue
    #[inline(always)]
    #[must_use]
    pub const fn queue(&self) -> [queue::Queue<'io, IO>; 512] {
        // SAFETY: We will initialize every element before using the array
        let mut array = [core::mem::MaybeUninit::uninit(); 512];

        let mut i0 = 0;
        while i0 < 512 {
            array[i0].write(unsafe {
                queue::Queue::<IO>::from_ptr_with(
                    self.ptr.wrapping_byte_add(0x0 + i0 * 0x8).cast(),
                    self.io,
                )
            });
            i0 += 1;
        }

        // SAFETY: All elements have been initialized above
        unsafe { core::mem::transmute(array) }
    }
}
