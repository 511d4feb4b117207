//! Addrmap: NVMe controller

#[allow(unused_imports)]
use super::_root; // alias to root module of generated code

// Anonymous component instances
pub mod acq;
pub mod aqa;
pub mod asq;
pub mod cap;
pub mod cc;
pub mod csts;
pub mod doorbells;
pub mod intmc;
pub mod intms;
pub mod msix_pending;
pub mod msix_table;
pub mod nssr;
pub mod pmrcap;
pub mod pmrctl;
pub mod pmrebs;
pub mod pmrsts;
pub mod pmrswtp;
pub mod vs;

/// NVMe controller
///
/// Controller properties, doorbells and MSI-X structures of BAR0.
#[derive(Eq, PartialEq)]
pub struct NvmeRegs<'io, IO = peakrdl_rust::io::PtrIO> {
    ptr: *mut u8,
    io: &'io IO,
}

unsafe impl<IO: Sync> Send for NvmeRegs<'_, IO> {}
unsafe impl<IO: Sync> Sync for NvmeRegs<'_, IO> {}

// manually implement Copy to ease generic bounds
// (IO does not need to be Copy)
impl<IO> Copy for NvmeRegs<'_, IO> {}

// manually implement Clone to ease generic bounds
// (IO does not need to be Clone)
impl<IO> Clone for NvmeRegs<'_, IO> {
    fn clone(&self) -> Self {
        *self
    }
}

impl NvmeRegs<'static> {
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

impl<'io, IO> NvmeRegs<'io, IO> {
    /// Size in bytes of the underlying memory
    pub const SIZE: usize = 0x3010;

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

impl<'io, IO: peakrdl_rust::io::RegisterIO> NvmeRegs<'io, IO> {
    /// Controller capabilities
    #[inline(always)]
    #[must_use]
    pub const fn cap(&self) -> peakrdl_rust::reg::Reg<'io, cap::Cap, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x0).cast(), self.io)
        }
    }

    /// Version
    #[inline(always)]
    #[must_use]
    pub const fn vs(&self) -> peakrdl_rust::reg::Reg<'io, vs::Vs, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x8).cast(), self.io)
        }
    }

    /// Interrupt mask set
    ///
    /// For pin-based and MSI interrupts, of which there are none: it is stored, and masks nothing.
    #[inline(always)]
    #[must_use]
    pub const fn intms(&self) -> peakrdl_rust::reg::Reg<'io, intms::Intms, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0xC).cast(), self.io)
        }
    }

    /// Interrupt mask clear
    #[inline(always)]
    #[must_use]
    pub const fn intmc(&self) -> peakrdl_rust::reg::Reg<'io, intmc::Intmc, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x10).cast(), self.io)
        }
    }

    /// Controller configuration
    #[inline(always)]
    #[must_use]
    pub const fn cc(&self) -> peakrdl_rust::reg::Reg<'io, cc::Cc, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x14).cast(), self.io)
        }
    }

    /// Controller status
    #[inline(always)]
    #[must_use]
    pub const fn csts(&self) -> peakrdl_rust::reg::Reg<'io, csts::Csts, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x1C).cast(), self.io)
        }
    }

    /// NVM subsystem reset
    #[inline(always)]
    #[must_use]
    pub const fn nssr(&self) -> peakrdl_rust::reg::Reg<'io, nssr::Nssr, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x20).cast(), self.io)
        }
    }

    /// Admin queue attributes
    #[inline(always)]
    #[must_use]
    pub const fn aqa(&self) -> peakrdl_rust::reg::Reg<'io, aqa::Aqa, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x24).cast(), self.io)
        }
    }

    /// Admin submission queue base address
    #[inline(always)]
    #[must_use]
    pub const fn asq(&self) -> peakrdl_rust::reg::Reg<'io, asq::Asq, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x28).cast(), self.io)
        }
    }

    /// Admin completion queue base address
    #[inline(always)]
    #[must_use]
    pub const fn acq(&self) -> peakrdl_rust::reg::Reg<'io, acq::Acq, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0x30).cast(), self.io)
        }
    }

    /// Persistent memory region capabilities
    #[inline(always)]
    #[must_use]
    pub const fn pmrcap(&self) -> peakrdl_rust::reg::Reg<'io, pmrcap::Pmrcap, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0xE00).cast(), self.io)
        }
    }

    /// Persistent memory region control
    #[inline(always)]
    #[must_use]
    pub const fn pmrctl(&self) -> peakrdl_rust::reg::Reg<'io, pmrctl::Pmrctl, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0xE04).cast(), self.io)
        }
    }

    /// Persistent memory region status
    #[inline(always)]
    #[must_use]
    pub const fn pmrsts(&self) -> peakrdl_rust::reg::Reg<'io, pmrsts::Pmrsts, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0xE08).cast(), self.io)
        }
    }

    /// Persistent memory region elasticity buffer size
    #[inline(always)]
    #[must_use]
    pub const fn pmrebs(&self) -> peakrdl_rust::reg::Reg<'io, pmrebs::Pmrebs, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0xE0C).cast(), self.io)
        }
    }

    /// Persistent memory region sustained write throughput
    #[inline(always)]
    #[must_use]
    pub const fn pmrswtp(&self) -> peakrdl_rust::reg::Reg<'io, pmrswtp::Pmrswtp, IO> {
        unsafe {
            peakrdl_rust::reg::Reg::from_ptr_with(self.ptr.wrapping_byte_add(0xE10).cast(), self.io)
        }
    }

    /// Doorbells
    #[inline(always)]
    #[must_use]
    pub const fn doorbells(&self) -> doorbells::Doorbells<'io, IO> {
        unsafe {
            doorbells::Doorbells::from_ptr_with(self.ptr.wrapping_byte_add(0x1000).cast(), self.io)
        }
    }

    /// MSI-X table
    #[inline(always)]
    #[must_use]
    pub const fn msix_table(&self) -> msix_table::MsixTable<'io, IO> {
        unsafe {
            msix_table::MsixTable::from_ptr_with(self.ptr.wrapping_byte_add(0x2000).cast(), self.io)
        }
    }

    /// MSI-X pending bits
    #[inline(always)]
    #[must_use]
    pub const fn msix_pending(&self) -> msix_pending::MsixPending<'io, IO> {
        unsafe {
            msix_pending::MsixPending::from_ptr_with(
                self.ptr.wrapping_byte_add(0x3000).cast(),
                self.io,
            )
        }
    }
}
