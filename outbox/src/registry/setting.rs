//! [`Setting`]: a value of a builder, with the call that set it.

use std::panic;

use super::{Location, Problem};

/// A value that a call of a builder sets, and the place of that call.
#[derive(Debug)]
pub(crate) struct Setting<T> {
    value: T,
    location: Location,
}

impl<T> Setting<T> {
    /// Remembers the place of the call of the nearest function that is not `#[track_caller]`.
    #[track_caller]
    pub(crate) fn new(value: T) -> Self {
        let caller = panic::Location::caller();
        Self {
            value,
            location: Location {
                file: caller.file(),
                line: caller.line(),
                column: caller.column(),
            },
        }
    }

    pub(crate) fn into_value(self) -> T {
        self.value
    }

    pub(crate) fn value(&self) -> &T {
        &self.value
    }
}

/// Sets `slot`, unless another call did. That is a problem, which names both calls.
pub(crate) fn set_once<T>(
    slot: &mut Option<Setting<T>>,
    setting: Setting<T>,
    call: &str,
    problems: &mut Vec<Problem>,
) {
    match slot {
        Some(first) => problems.push(Problem::SetTwice {
            call: call.to_owned(),
            first: first.location,
            second: setting.location,
        }),
        None => *slot = Some(setting),
    }
}
