//! [`ErrorNames`]: the error type of each name that a configuration may use.

use std::{borrow::Cow, collections::BTreeMap, error::Error, sync::LazyLock};

use crate::{
    registry::nearest::nearest,
    retry::{UnknownErrorName, filter::ErrorType},
};

/// The names that `include-exceptions` and `exclude-exceptions` may contain.
#[derive(Clone, Default)]
pub(crate) struct ErrorNames {
    types: BTreeMap<Cow<'static, str>, ErrorType>,
}

/// Two error types have the same name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("two different error types are registered under the name `{name}`; rename one of them")]
#[non_exhaustive]
pub struct DuplicateErrorName {
    /// The name.
    pub name: String,
}

impl ErrorNames {
    /// The names of common error types.
    pub(crate) fn built_in() -> &'static Self {
        static BUILT_IN: LazyLock<ErrorNames> = LazyLock::new(|| ErrorNames {
            types: common().map(|ty| (ty.name.clone(), ty)).into(),
        });
        &BUILT_IN
    }

    /// The common names, and the names of every linked `#[error_name]`.
    pub(crate) fn linked() -> Result<Self, DuplicateErrorName> {
        let names = Self::built_in().clone();
        #[cfg(feature = "inventory")]
        let names = crate::registry::linked::linked_error_types()
            .try_fold(names, |mut names, (name, ty)| {
                names.insert(name, ty).map(|()| names)
            })?;
        Ok(names)
    }

    /// Adds a name. Adding the same name and type again changes nothing.
    pub(crate) fn insert(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        ty: ErrorType,
    ) -> Result<(), DuplicateErrorName> {
        let (name, id) = (name.into(), ty.id);
        if self.types.entry(name.clone()).or_insert(ty).id == id {
            return Ok(());
        }
        let name = name.into_owned();
        Err(DuplicateErrorName { name })
    }

    /// The type of this name. The error has the most similar name.
    pub(crate) fn find(&self, name: &str) -> Result<&ErrorType, UnknownErrorName> {
        self.types.get(name).ok_or_else(|| UnknownErrorName {
            name: name.to_owned(),
            nearest: nearest(name, self.types.keys().map(|known| &**known)).map(str::to_owned),
            place: None,
        })
    }
}

fn common() -> [ErrorType; 23] {
    fn ty<E: Error + 'static>(name: &'static str) -> ErrorType {
        ErrorType::named::<E>(name)
    }
    [
        ty::<std::array::TryFromSliceError>("std::array::TryFromSliceError"),
        ty::<std::char::ParseCharError>("std::char::ParseCharError"),
        ty::<std::env::VarError>("std::env::VarError"),
        ty::<std::ffi::NulError>("std::ffi::NulError"),
        ty::<std::fmt::Error>("std::fmt::Error"),
        ty::<std::io::Error>("std::io::Error"),
        ty::<std::net::AddrParseError>("std::net::AddrParseError"),
        ty::<std::num::ParseFloatError>("std::num::ParseFloatError"),
        ty::<std::num::ParseIntError>("std::num::ParseIntError"),
        ty::<std::num::TryFromIntError>("std::num::TryFromIntError"),
        ty::<std::str::ParseBoolError>("std::str::ParseBoolError"),
        ty::<std::str::Utf8Error>("std::str::Utf8Error"),
        ty::<std::string::FromUtf16Error>("std::string::FromUtf16Error"),
        ty::<std::string::FromUtf8Error>("std::string::FromUtf8Error"),
        ty::<std::sync::mpsc::RecvError>("std::sync::mpsc::RecvError"),
        ty::<std::time::SystemTimeError>("std::time::SystemTimeError"),
        ty::<jiff::Error>("jiff::Error"),
        ty::<serde_json::Error>("serde_json::Error"),
        ty::<tokio::time::error::Elapsed>("tokio::time::error::Elapsed"),
        ty::<uuid::Error>("uuid::Error"),
        ty::<crate::handler::Panicked>("outbox::Panicked"),
        ty::<crate::retry::PolicyError>("outbox::PolicyError"),
        ty::<crate::handler::TimedOut>("outbox::TimedOut"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_finds_its_type_and_a_wrong_one_the_nearest() {
        let names = ErrorNames::built_in();
        let found = names.find("std::io::Error").unwrap();
        assert!((found.is)(&std::io::Error::other("x")) && !(found.is)(&std::fmt::Error));

        let nearest = |name| names.find(name).err().and_then(|unknown| unknown.nearest);
        assert_eq!(nearest("std::io::Eror").as_deref(), Some("std::io::Error"));
        assert_eq!(
            nearest("ParseIntError").as_deref(),
            Some("std::num::ParseIntError")
        );
        assert_eq!(nearest("java.lang.IllegalArgumentException"), None);
    }

    #[test]
    fn a_name_stands_for_one_type() {
        let mut names = ErrorNames::built_in().clone();
        names
            .insert("shop::Declined", ErrorType::of::<std::fmt::Error>())
            .unwrap();
        names
            .insert("shop::Declined", ErrorType::of::<std::fmt::Error>())
            .unwrap();
        let error = names
            .insert("shop::Declined", ErrorType::of::<std::io::Error>())
            .unwrap_err();
        assert_eq!(error.name, "shop::Declined");
        assert!((names.find("shop::Declined").unwrap().is)(&std::fmt::Error));
    }
}
