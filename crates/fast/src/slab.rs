// SPDX-License-Identifier: Apache-2.0

//! Numbered items. The number of a removed item is used again.

pub(crate) struct Slab<T> {
    items: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) fn new() -> Slab<T> {
        Slab {
            items: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(crate) fn insert(&mut self, item: T) -> u32 {
        match self.free.pop() {
            Some(n) => {
                self.items[n as usize] = Some(item);
                n
            }
            None => {
                self.items.push(Some(item));
                self.items.len() as u32 - 1
            }
        }
    }

    pub(crate) fn remove(&mut self, n: u32) -> Option<T> {
        let item = self.items.get_mut(n as usize)?.take();
        if item.is_some() {
            self.free.push(n);
        }
        item
    }

    /// Drops an item in place.
    pub(crate) fn drop_item(&mut self, n: u32) {
        if let Some(item @ Some(_)) = self.items.get_mut(n as usize) {
            *item = None;
            self.free.push(n);
        }
    }

    pub(crate) fn get(&self, n: u32) -> Option<&T> {
        self.items.get(n as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, n: u32) -> Option<&mut T> {
        self.items.get_mut(n as usize)?.as_mut()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..)
            .zip(&self.items)
            .filter_map(|(n, item)| Some((n, item.as_ref()?)))
    }
}
