//! A user's crate without the `inventory` feature. It uses the same attributes and names every
//! handler. Test it alone (`-p explicit-user`): otherwise the features of other packages are on.
#![forbid(unsafe_code)]
#![deny(warnings, missing_docs)]

use outbox::{
    Handler, Metadata, OutboxEvent, Registry, error_name, outbox_handler, registry::RegistryError,
    retryable,
};
use serde::{Deserialize, Serialize};

/// An event.
#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "explicit.created", key = id)]
pub struct Created {
    id: i64,
}

/// A builder call has to register the name, because no type registers itself here.
#[error_name("explicit.declined")]
#[derive(Debug, thiserror::Error)]
#[error("declined")]
pub struct Declined;

#[outbox_handler]
#[retryable(max_retries = 1)]
async fn function(_event: Created) {}

struct Instance;

#[outbox_handler]
impl Instance {
    #[outbox_handler]
    async fn method(&self, _event: Created) {}
}

#[outbox_handler]
impl Handler<Created> for Instance {
    async fn handle(&self, _event: Created, _meta: &Metadata) {}
}

/// Every handler of this crate.
///
/// # Errors
/// Never.
pub fn registry() -> Result<Registry, RegistryError> {
    Registry::builder()
        .handler::<function>()
        .handler::<Instance>()
        .handler_for::<Instance, Created>()
        .state(Instance)
        .build()
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_named_handler_is_registered() {
        let registry = super::registry().unwrap();
        let ids: Vec<_> = registry
            .route("explicit.created")
            .map(outbox::registry::HandlerEntry::id)
            .collect();
        assert_eq!(
            ids,
            [
                "explicit_user::Instance::method",
                "explicit_user::Instance<Created>",
                "explicit_user::function"
            ]
        );
    }
}
