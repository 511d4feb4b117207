//! Addrmap: NVM timing emulator

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

// Anonymous component instances
pub mod cap0;
pub mod cap1;
pub mod command;
pub mod control;
pub mod counters;
pub mod id;
pub mod read_cap;
pub mod region;
pub mod status;
pub mod version;
pub mod write_cap;

/// Named types defined within this component's body
pub mod named_types {
    #[allow(unused_imports)]
    use super::_root; // alias to root module of generated code
    pub mod page_r;
    pub mod time_r;
    pub mod times_f;
}

// Instances of named component types
pub use _root::components::nvm_delay_regs::named_types::times_f as timing;

/// NVM timing emulator
///
/// Identification, timing parameters, commands and counters of one nvm_delay.
#[derive(Eq, PartialEq)]
pub struct NvmDelayRegs<'io, IO = peakrdl_rust::io::PtrIO> {
    ptr: *mut u8,
    io: &'io IO,
}

unsafe impl<IO: Sync> Send for NvmDelayRegs<'_, IO> {}
unsafe impl<IO: Sync> Sync for NvmDelayRegs<'_, IO> {}

// manually implement Copy to ease generic bounds
// (IO does not need to be Copy)
impl<IO> Copy for NvmDelayRegs<'_, IO> {}

// manually implement Clone to ease generic bounds
// (IO does not need to be Clone)
impl<IO> Clone for NvmDelayRegs<'_, IO> {
    fn clone(&self) -> Self {
        *self
    }
}

impl NvmDelayRegs<'static> {
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

impl<'io, IO> NvmDelayRegs<'io, IO> {
    /// Size in bytes of the underlying memory
    pub const SIZE: usize = 0xB00;

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

impl<'io, IO: peakrdl_rust::io::RegisterIO> NvmDelayRegs<'io, IO> {
    /// Identification
    #[inline(always)]
    #[must_use]
    pub const fn id(&self) -> peakrdl_rust::reg::Reg<'io, id::Id, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x0).cast(), self.io)
        }
    }

    /// Version of this block
    #[inline(always)]
    #[must_use]
    pub const fn version(&self) -> peakrdl_rust::reg::Reg<'io, version::Version, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x4).cast(), self.io)
        }
    }

    /// Capabilities 0
    #[inline(always)]
    #[must_use]
    pub const fn cap0(&self) -> peakrdl_rust::reg::Reg<'io, cap0::Cap0, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x8).cast(), self.io)
        }
    }

    /// Capabilities 1
    #[inline(always)]
    #[must_use]
    pub const fn cap1(&self) -> peakrdl_rust::reg::Reg<'io, cap1::Cap1, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0xC).cast(), self.io)
        }
    }

    /// Control (shadow)
    #[inline(always)]
    #[must_use]
    pub const fn control(&self) -> peakrdl_rust::reg::Reg<'io, control::Control, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x10).cast(), self.io)
        }
    }

    /// Command
    ///
    /// Each bit starts an action when written 1 and reads as 0; bits written together act in the same cycle.
    #[inline(always)]
    #[must_use]
    pub const fn command(&self) -> peakrdl_rust::reg::Reg<'io, command::Command, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x14).cast(), self.io)
        }
    }

    /// Status
    #[inline(always)]
    #[must_use]
    pub const fn status(&self) -> peakrdl_rust::reg::Reg<'io, status::Status, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x18).cast(), self.io)
        }
    }

    /// Read bandwidth cap (shadow)
    #[inline(always)]
    #[must_use]
    pub const fn read_cap(&self) -> peakrdl_rust::reg::Reg<'io, read_cap::ReadCap, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x20).cast(), self.io)
        }
    }

    /// Write bandwidth cap (shadow)
    #[inline(always)]
    #[must_use]
    pub const fn write_cap(&self) -> peakrdl_rust::reg::Reg<'io, write_cap::WriteCap, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x24).cast(), self.io)
        }
    }

    /// Times of a region, or of all addresses outside of them (shadow)
    #[inline(always)]
    #[must_use]
    pub const fn timing(&self) -> timing::TimesF<'io, IO> {
        unsafe { timing::TimesF::from_ptr_with(self.ptr.wrapping_byte_add(0x40).cast(), self.io) }
    }

    /// Address region (shadow)
    ///
    /// A transaction belongs to the lowest enabled region that its address lies in.
    #[inline(always)]
    #[must_use]
    pub const fn region(&self) -> [region::Region<'io, IO>; 4] {
        // SAFETY: We will initialize every element before using the array
        let mut array = [core::mem::MaybeUninit::uninit(); 4];

        let mut i0 = 0;
        while i0 < 4 {
            array[i0].write(unsafe {
                region::Region::<IO>::from_ptr_with(
                    self.ptr.wrapping_byte_add(0x80 + i0 * 0x20).cast(),
                    self.io,
                )
            });
            i0 += 1;
        }

        // SAFETY: All elements have been initialized above
        unsafe { core::mem::transmute(array) }
    }

    /// Counters as of the last snapshot
    #[inline(always)]
    #[must_use]
    pub const fn counters(&self) -> counters::Counters<'io, IO> {
        unsafe {
            counters::Counters::from_ptr_with(self.ptr.wrapping_byte_add(0x800).cast(), self.io)
        }
    }
}
