//! [`OutboxEvent`]: a type that can be published and handled.

use serde::{Serialize, de::DeserializeOwned};

use crate::handler::BoxError;

/// A type that can be published and handled. Derive it:
///
/// ```
/// use outbox::OutboxEvent;
///
/// #[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
/// #[outbox_event(name = "order.created", key = order_id)]
/// struct OrderCreated {
///     order_id: i64,
///     total_cents: i64,
/// }
///
/// let event = OrderCreated { order_id: 7, total_cents: 1250 };
/// assert_eq!(OrderCreated::NAME, "order.created");
/// assert_eq!(event.key().as_deref(), Some("7"));
/// ```
///
/// | `#[outbox_event(..)]` | |
/// |---|---|
/// | `name = "order.created"` | the stored name; keep it when the type is renamed or moved |
/// | `key = order_id` | a field, or an expression over fields and `self`; handlers get the events of one key in order |
/// | `aliases = ["order.new"]` | older names of the event, which may still be stored |
/// | `version = 2` | the version of the payload, stored with the record; default 1 |
/// | `validate = path` | `fn(&E) -> Result<(), impl Error>`; an event that it refuses is neither published nor handled |
/// | `crate = path` | the path of `outbox`, if the dependency was renamed |
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an outbox event",
    label = "not an outbox event",
    note = "derive it: `#[derive(serde::Serialize, serde::Deserialize, outbox::OutboxEvent)]` with `#[outbox_event(name = \"order.created\")]`",
    note = "a handler takes its event by value, as the first argument; `outbox::AnyEvent` takes every event"
)]
pub trait OutboxEvent: EventData {
    /// The name, stored with each record of this event.
    const NAME: &'static str;

    /// Older names, which stored records may still have.
    const ALIASES: &'static [&'static str] = &[];

    /// The version of the payload.
    const VERSION: u32 = 1;

    /// Handlers get the events of one key in order. `None`: each event gets a key of its own.
    fn key(&self) -> Option<String> {
        None
    }

    /// Whether the event may be published and handled.
    ///
    /// # Errors
    /// The reason, if it may not.
    fn validate(&self) -> Result<(), BoxError> {
        Ok(())
    }
}

/// Data that can be stored and read back. Implemented for every type with serde's `Serialize` and
/// `DeserializeOwned`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored as an outbox event",
    label = "needs serde's `Serialize` and `Deserialize`",
    note = "add `#[derive(serde::Serialize, serde::Deserialize)]`; the type must own its data (`String`, not `&str`) and be `Send + Sync`"
)]
pub trait EventData: Sized + Send + Sync + 'static {
    // Methods, not serde's traits as supertraits: the compiler would report those by name instead of
    // the message above.
    #[doc(hidden)]
    fn to_json(&self) -> Result<String, serde_json::Error>;

    #[doc(hidden)]
    fn from_json(json: &str) -> Result<Self, serde_json::Error>;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> EventData for T {
    fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn from_json(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }
}

/// A type that can be the key of an event. Implemented for every type with `Display`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an event key",
    label = "does not implement `Display`",
    note = "a key is stored as text: use a field that implements `std::fmt::Display`, or an expression such as `key = format!(\"{{tenant}}/{{order_id}}\")`"
)]
pub trait EventKey {
    /// The key as it is stored.
    fn to_key(&self) -> String;
}

#[diagnostic::do_not_recommend]
impl<T: std::fmt::Display + ?Sized> EventKey for T {
    fn to_key(&self) -> String {
        self.to_string()
    }
}
