//! Memory that is looked at soon can be on its way already: random places are not in the machine's
//! caches.

/// Asks the machine for the cache line in which `of` begins, if it can be asked; changes nothing
/// else.
#[inline]
pub fn prefetch<T>(of: &T) {
    line(std::ptr::from_ref(of).cast());
}

/// The same for an address, which may be anywhere: what isn't there is not fetched.
#[inline]
pub(crate) fn line(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which accesses nothing that a program could notice.
    unsafe {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
