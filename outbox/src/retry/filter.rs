//! [`Filter`]: which errors are retried. Its rules check an error and all its causes.

use std::{
    any::{TypeId, type_name},
    borrow::Cow,
    error::Error,
    fmt,
    sync::Arc,
};

use crate::handler::HandlerError;

/// An error type with its name in the configuration.
#[derive(Clone)]
pub(crate) struct ErrorType {
    pub(crate) name: Cow<'static, str>,
    /// Whether a value is of this type.
    pub(crate) is: fn(&(dyn Error + 'static)) -> bool,
    /// Identifies the type. Two types may share a name, and function pointers cannot be compared.
    pub(crate) id: TypeId,
}

impl ErrorType {
    pub(crate) fn of<E: Error + 'static>() -> Self {
        Self::named::<E>(type_name::<E>())
    }

    pub(crate) fn named<E: Error + 'static>(name: impl Into<Cow<'static, str>>) -> Self {
        Self {
            name: name.into(),
            is: |error| error.is::<E>(),
            id: TypeId::of::<E>(),
        }
    }

    fn in_chain_of(&self, error: &HandlerError) -> bool {
        error.chain().any(self.is)
    }
}

type Predicate = Arc<dyn Fn(&HandlerError) -> bool + Send + Sync>;

/// The rules of one policy, in the order in which they decide.
#[derive(Clone, Default)]
pub(crate) struct Filter {
    pub(super) never: Vec<ErrorType>,
    pub(super) only: Vec<ErrorType>,
    pub(super) predicates: Vec<Predicate>,
}

impl Filter {
    pub(super) const fn new() -> Self {
        Self {
            never: Vec::new(),
            only: Vec::new(),
            predicates: Vec::new(),
        }
    }

    /// The first rule that applies decides: a type in `never` → no; no other rule exists → yes; a type
    /// in `only` → yes; a predicate → yes. Otherwise no.
    pub(super) fn allows(&self, error: &HandlerError) -> bool {
        if self.never.iter().any(|ty| ty.in_chain_of(error)) {
            return false;
        }
        if self.only.is_empty() && self.predicates.is_empty() {
            return true;
        }
        self.only.iter().any(|ty| ty.in_chain_of(error))
            || self.predicates.iter().any(|allows| allows(error))
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |types: &[ErrorType]| {
            let names: Vec<&str> = types.iter().map(|ty| &*ty.name).collect();
            names.join(", ")
        };
        if !self.only.is_empty() {
            write!(f, ", only on {}", names(&self.only))?;
        }
        match (self.predicates.is_empty(), self.only.is_empty()) {
            (true, _) => {}
            (false, true) => f.write_str(", only if a predicate says so")?,
            (false, false) => f.write_str(", or if a predicate says so")?,
        }
        if !self.never.is_empty() {
            write!(f, ", never on {}", names(&self.never))?;
        }
        Ok(())
    }
}
