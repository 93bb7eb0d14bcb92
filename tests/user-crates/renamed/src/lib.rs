//! A user's crate that renames the dependency.
#![forbid(unsafe_code)]
#![deny(warnings, missing_docs)]

use serde::{Deserialize, Serialize};

/// An event.
#[derive(Serialize, Deserialize, letters::OutboxEvent)]
#[outbox_event(crate = letters, name = "renamed.created", key = id)]
pub struct Created {
    id: i64,
}

/// An error with a name.
#[letters::error_name("renamed.declined", crate = letters)]
#[derive(Debug)]
pub struct Declined;

impl std::fmt::Display for Declined {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("declined")
    }
}

impl std::error::Error for Declined {}

/// A function.
#[letters::retryable(fixed("1s"), jitter = equal)]
#[letters::outbox_handler(crate = letters)]
pub async fn on_created(_event: Created) {}

/// An instance.
pub struct Handlers;

#[letters::outbox_handler(crate = letters, marker = HandlersOfCreated)]
impl Handlers {
    /// A method.
    #[letters::outbox_handler]
    #[letters::retryable(policy = letters::Retry::builder())]
    pub async fn on_created(&self, _event: Created) {}
}

#[letters::outbox_handler(crate = letters)]
impl letters::Handler<Created> for Handlers {
    async fn handle(&self, _event: Created, _meta: &letters::Metadata) {}
}

#[cfg(test)]
mod tests {
    use super::{Created, Handlers, HandlersOfCreated, on_created};

    #[test]
    fn all_handlers_register_under_the_renamed_dependency() {
        let registry = letters::Registry::builder()
            .handler::<on_created>()
            .handler::<HandlersOfCreated>()
            .handler_for::<Handlers, Created>()
            .state(Handlers)
            .build()
            .unwrap();
        let ids: Vec<_> = registry
            .handlers()
            .iter()
            .map(|handler| handler.id)
            .collect();
        assert_eq!(
            ids,
            [
                "renaming_user::Handlers::on_created",
                "renaming_user::Handlers<Created>",
                "renaming_user::on_created"
            ]
        );
    }
}
