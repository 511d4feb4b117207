// SPDX-License-Identifier: Apache-2.0

//! Cache prefetches of the machine: accesses to random addresses miss its caches.

/// Prefetches the machine's cache line in which `of` begins, where the machine supports it; no
/// other effect.
#[inline]
pub fn prefetch<T>(of: &T) {
    line(std::ptr::from_ref(of).cast());
}

/// As [`prefetch`], for any address; an unmapped one is ignored.
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
