//! [`HandlerIx`] and [`PerHandler`]: handlers by their index in the registry.

use std::ops::{Index, IndexMut};

/// The index of a handler in the registry of this process. Only the registry and its router create
/// one, so every [`PerHandler`] has an entry for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct HandlerIx(u16);

/// One `T` per handler, in the registry's order. Indexing cannot miss: both come from the same
/// registry.
#[derive(Debug, Clone)]
pub(crate) struct PerHandler<T>(Vec<T>);

impl HandlerIx {
    #[cfg(test)]
    pub(crate) const fn for_tests(index: u16) -> Self {
        Self(index)
    }

    /// The index in the registry.
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl<T> PerHandler<T> {
    /// One for each handler, in the registry's order.
    pub(super) fn new(all: impl Iterator<Item = T>) -> Self {
        Self(all.collect())
    }

    #[cfg(test)]
    pub(crate) fn for_tests(all: impl Iterator<Item = T>) -> Self {
        Self::new(all)
    }

    pub(crate) fn map<U>(self, of: impl FnMut(T) -> U) -> PerHandler<U> {
        PerHandler(self.0.into_iter().map(of).collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (HandlerIx, &T)> {
        (0..).map(HandlerIx).zip(&self.0)
    }

    /// Every handler. Borrows nothing.
    pub(super) fn indexes(&self) -> impl Iterator<Item = HandlerIx> + use<T> {
        (0..).map(HandlerIx).take(self.0.len())
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (HandlerIx, &mut T)> {
        (0..).map(HandlerIx).zip(&mut self.0)
    }
}

impl<T> Index<HandlerIx> for PerHandler<T> {
    type Output = T;

    fn index(&self, handler: HandlerIx) -> &T {
        &self.0[handler.index()]
    }
}

impl<T> IndexMut<HandlerIx> for PerHandler<T> {
    fn index_mut(&mut self, handler: HandlerIx) -> &mut T {
        &mut self.0[handler.index()]
    }
}
