//! Regfile: Counters as of the last snapshot

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

// Anonymous component instances
pub mod read_bucket;
pub mod write_bucket;

/// Named types defined within this component's body
pub mod named_types {
    #[allow(unused_imports)]
    use super::_root; // alias to root module of generated code
    pub mod counters_f;
}

// Instances of named component types
pub use _root::components::nvm_delay_regs::counters::named_types::counters_f as read;
pub use _root::components::nvm_delay_regs::counters::named_types::counters_f as write;

/// Counters as of the last snapshot
#[derive(Eq, PartialEq)]
pub struct Counters<'io, IO = peakrdl_rust::io::PtrIO> {
    ptr: *mut u8,
    io: &'io IO,
}

unsafe impl<IO: Sync> Send for Counters<'_, IO> {}
unsafe impl<IO: Sync> Sync for Counters<'_, IO> {}

// manually implement Copy to ease generic bounds
// (IO does not need to be Copy)
impl<IO> Copy for Counters<'_, IO> {}

// manually implement Clone to ease generic bounds
// (IO does not need to be Clone)
impl<IO> Clone for Counters<'_, IO> {
    fn clone(&self) -> Self {
        *self
    }
}

impl Counters<'static> {
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

impl<'io, IO> Counters<'io, IO> {
    /// Size in bytes of the underlying memory
    pub const SIZE: usize = 0x300;

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

impl<'io, IO: peakrdl_rust::io::RegisterIO> Counters<'io, IO> {
    /// Read transactions in a latency bucket
    #[inline(always)]
    #[must_use]
    pub const fn read_bucket(
        &self,
    ) -> [peakrdl_rust::reg::Reg<'io, read_bucket::ReadBucket, IO>; 64] {
        // SAFETY: We will initialize every element before using the array
        let mut array = [core::mem::MaybeUninit::uninit(); 64];

        let mut i0 = 0;
        while i0 < 64 {
            array[i0].write(unsafe {
                peakrdl_rust::reg::Reg::<'io, read_bucket::ReadBucket, IO>::from_ptr_with(
                    self.ptr.wrapping_byte_add(0x100 + i0 * 0x4).cast(),
                    self.io,
                )
            });
            i0 += 1;
        }

        // SAFETY: All elements have been initialized above
        unsafe { core::mem::transmute(array) }
    }

    /// Write transactions in a latency bucket
    #[inline(always)]
    #[must_use]
    pub const fn write_bucket(
        &self,
    ) -> [peakrdl_rust::reg::Reg<'io, write_bucket::WriteBucket, IO>; 64] {
        // SAFETY: We will initialize every element before using the array
        let mut array = [core::mem::MaybeUninit::uninit(); 64];

        let mut i0 = 0;
        while i0 < 64 {
            array[i0].write(unsafe {
                peakrdl_rust::reg::Reg::<'io, write_bucket::WriteBucket, IO>::from_ptr_with(
                    self.ptr.wrapping_byte_add(0x200 + i0 * 0x4).cast(),
                    self.io,
                )
            });
            i0 += 1;
        }

        // SAFETY: All elements have been initialized above
        unsafe { core::mem::transmute(array) }
    }

    /// read
    #[inline(always)]
    #[must_use]
    pub const fn read(&self) -> read::CountersF<'io, IO> {
        unsafe { read::CountersF::from_ptr_with(self.ptr.wrapping_byte_add(0x0).cast(), self.io) }
    }

    /// write
    #[inline(always)]
    #[must_use]
    pub const fn write(&self) -> write::CountersF<'io, IO> {
        unsafe { write::CountersF::from_ptr_with(self.ptr.wrapping_byte_add(0x40).cast(), self.io) }
    }
}
