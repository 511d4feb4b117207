// SPDX-License-Identifier: Apache-2.0

//! Values in persistent memory, and pointers to them.

use std::fmt;
use std::marker::PhantomData;

/// A type that can be stored in persistent memory: a fixed number of bytes with the same meaning in
/// each run of a program.
pub trait Value: Sized {
    /// Its size in bytes.
    const BYTES: usize;
    /// Encodes it to `out`, which has that size.
    fn encode(&self, out: &mut [u8]);
    /// Decodes it; any bytes are a value.
    fn decode(bytes: &[u8]) -> Self;
}

macro_rules! integers {
    ($($t:ty)*) => {$(
        impl Value for $t {
            const BYTES: usize = std::mem::size_of::<$t>();
            fn encode(&self, out: &mut [u8]) {
                out.copy_from_slice(&self.to_le_bytes());
            }
            fn decode(bytes: &[u8]) -> $t {
                let mut own = [0; std::mem::size_of::<$t>()];
                own.copy_from_slice(bytes);
                <$t>::from_le_bytes(own)
            }
        }
    )*};
}

integers!(u8 u16 u32 u64 i8 i16 i32 i64);

impl<T: Value, const N: usize> Value for [T; N] {
    const BYTES: usize = T::BYTES * N;
    fn encode(&self, out: &mut [u8]) {
        for (n, value) in self.iter().enumerate() {
            value.encode(&mut out[n * T::BYTES..][..T::BYTES]);
        }
    }
    fn decode(bytes: &[u8]) -> [T; N] {
        std::array::from_fn(|n| T::decode(&bytes[n * T::BYTES..][..T::BYTES]))
    }
}

/// A pointer to a value of a pool: its offset there, independent of where the pool is mapped. 0 is
/// null.
pub struct Ptr<T> {
    offset: u64,
    what: PhantomData<fn() -> T>,
}

impl<T> Ptr<T> {
    /// Null.
    pub const NULL: Ptr<T> = Ptr::at(0);

    /// A pointer to an offset.
    pub const fn at(offset: u64) -> Ptr<T> {
        Ptr {
            offset,
            what: PhantomData,
        }
    }

    /// The offset in the pool.
    pub const fn offset(self) -> u64 {
        self.offset
    }

    /// True when it points to nothing.
    pub const fn is_null(self) -> bool {
        self.offset == 0
    }

    /// A pointer to a field, `at` bytes from the start of the value.
    pub const fn field<U>(self, at: usize) -> Ptr<U> {
        Ptr::at(self.offset.wrapping_add(at as u64))
    }
}

impl<T: Value, const N: usize> Ptr<[T; N]> {
    /// A pointer to an element of an array.
    pub const fn element(self, n: usize) -> Ptr<T> {
        self.field(n * T::BYTES)
    }
}

impl<T> Value for Ptr<T> {
    const BYTES: usize = 8;
    fn encode(&self, out: &mut [u8]) {
        self.offset.encode(out);
    }
    fn decode(bytes: &[u8]) -> Ptr<T> {
        Ptr::at(u64::decode(bytes))
    }
}

impl<T> Clone for Ptr<T> {
    fn clone(&self) -> Ptr<T> {
        *self
    }
}

impl<T> Copy for Ptr<T> {}

impl<T> PartialEq for Ptr<T> {
    fn eq(&self, other: &Ptr<T>) -> bool {
        self.offset == other.offset
    }
}

impl<T> Eq for Ptr<T> {}

impl<T> fmt::Debug for Ptr<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Ptr({:#x})", self.offset)
    }
}

/// Declares a structure of values, stored without gaps. For each field it has a function from a
/// pointer to the structure to a pointer to the field.
///
/// ```
/// pm::record! {
///     /// A point.
///     #[derive(Clone, Debug, PartialEq)]
///     pub struct Point {
///         /// Across.
///         pub x: u32,
///         /// Up.
///         pub y: u32,
///     }
/// }
/// let point: pm::Ptr<Point> = pm::Ptr::at(4096);
/// assert_eq!(Point::y(point).offset(), 4100);
/// ```
#[macro_export]
macro_rules! record {
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[$fmeta:meta])* $fvis:vis $field:ident: $type:ty,)*
    }) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[$fmeta])* $fvis $field: $type,)*
        }

        impl $crate::Value for $name {
            const BYTES: usize = 0 $(+ <$type as $crate::Value>::BYTES)*;
            fn encode(&self, out: &mut [u8]) {
                let rest = out;
                $(let (part, rest) = rest.split_at_mut(<$type as $crate::Value>::BYTES);
                  $crate::Value::encode(&self.$field, part);)*
                let _ = rest;
            }
            fn decode(bytes: &[u8]) -> $name {
                let rest = bytes;
                $(let (part, rest) = rest.split_at(<$type as $crate::Value>::BYTES);
                  let $field = $crate::Value::decode(part);)*
                let _ = rest;
                $name { $($field,)* }
            }
        }

        $crate::record!(@fields $name (0) $($(#[$fmeta])* $fvis $field: $type,)*);
    };
    (@fields $name:ident ($at:expr)) => {};
    (
        @fields $name:ident ($at:expr)
        $(#[$fmeta:meta])* $fvis:vis $field:ident: $type:ty, $($rest:tt)*
    ) => {
        #[allow(dead_code)]
        impl $name {
            $(#[$fmeta])*
            $fvis const fn $field(whole: $crate::Ptr<$name>) -> $crate::Ptr<$type> {
                whole.field($at)
            }
        }
        $crate::record!(@fields $name ($at + <$type as $crate::Value>::BYTES) $($rest)*);
    };
}
