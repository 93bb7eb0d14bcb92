//! The checks of a registry at start-up: ids, arguments, names of error types.              (pure)

use std::{any::TypeId, collections::HashMap};

use super::{Problem, Registration, handler_entry::Transactions};
use crate::{
    config::error_names::ErrorNames,
    handler::{Requirements, States},
    record::LONGEST_NAME,
    retry::filter::ErrorType,
};

/// Checks ids and aliases, which share one namespace.
pub(super) fn ids(registrations: &[&'static Registration], problems: &mut Vec<Problem>) {
    let mut known = HashMap::new();
    for registration in registrations {
        for id in [registration.id].iter().chain(registration.aliases) {
            let location = registration.location;
            if id.len() > LONGEST_NAME {
                problems.push(Problem::LongId { id, location });
            }
            if let Some(first) = known.insert(*id, location) {
                problems.push(Problem::DuplicateId {
                    id,
                    first,
                    second: location,
                });
            }
        }
    }
}

/// Checks what a handler and its fallback take: every state is there, and a `Tx` is of the outbox's
/// database. Without an outbox there is no database to compare with, and an attempt of such a handler
/// fails.
pub(super) fn arguments(
    registration: &Registration,
    states: &States,
    database: Option<(TypeId, &'static str)>,
    problems: &mut Vec<Problem>,
) -> Transactions {
    let (handler, location) = (registration.id, registration.location);
    let required_by = |requires: fn(&mut Requirements)| {
        let mut requirements = Requirements::default();
        requires(&mut requirements);
        requirements
    };
    let by_handler = required_by(registration.requires);
    let fallback = registration.fallback;
    let by_fallback = fallback.map_or_else(Requirements::default, |f| required_by(f.requires));
    if by_handler.needs_failure {
        problems.push(Problem::FailureArgument { handler, location });
    }
    let mut missing = [by_handler.states, by_fallback.states].concat();
    missing.retain(|state| !states.has(state.ty));
    missing.sort_by_key(|state| state.name);
    missing.dedup();
    problems.extend(missing.iter().map(|state| Problem::MissingState {
        handler,
        ty: state.name,
        location,
    }));
    let taken = [by_handler.transaction, by_fallback.transaction];
    if let Some((ty, outbox)) = database
        && let Some(other) = taken.iter().flatten().find(|taken| taken.ty != ty)
    {
        problems.push(Problem::OtherDatabase {
            handler,
            taken: other.name,
            outbox,
            location,
        });
    }
    let [handler, fallback] = taken.map(|transaction| transaction.is_some());
    Transactions { handler, fallback }
}

/// The names of all error types: built-in, linked, and given to the builder.
pub(super) fn error_names(own: Vec<ErrorType>, problems: &mut Vec<Problem>) -> ErrorNames {
    let mut names = ErrorNames::linked().unwrap_or_else(|duplicate| {
        problems.push(duplicate.into());
        ErrorNames::built_in().clone()
    });
    for ty in own {
        if let Err(duplicate) = names.insert(ty.name.clone(), ty) {
            problems.push(duplicate.into());
        }
    }
    names
}
