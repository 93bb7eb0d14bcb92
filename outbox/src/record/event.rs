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
/// | `name = "order.created"` | what is stored; stays the same when the type is renamed or moved |
/// | `key = order_id` | events of one key are handled in order; a field, or an expression over fields and `self` |
/// | `aliases = ["order.new"]` | older names that are still handled |
/// | `version = 2` | stored with the record, for handlers and people; 1 unless given |
/// | `validate = path` | `fn(&E) -> Result<(), impl Error>`; refused events are neither published nor handled |
/// | `crate = path` | where `outbox` is, if the dependency was renamed |
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an outbox event",
    label = "not an outbox event",
    note = "derive it: `#[derive(serde::Serialize, serde::Deserialize, outbox::OutboxEvent)]` with `#[outbox_event(name = \"order.created\")]`",
    note = "a handler takes its event by value, as the first argument; `outbox::AnyEvent` takes every event"
)]
pub trait OutboxEvent: EventData {
    /// The name that is stored with each record of this event.
    const NAME: &'static str;

    /// Older names under which records may still be stored.
    const ALIASES: &'static [&'static str] = &[];

    /// The version of the payload's shape.
    const VERSION: u32 = 1;

    /// Events of the same key are handled in order. `None`: no order, even spread.
    fn key(&self) -> Option<String> {
        None
    }

    /// Whether the event may be published and handled.
    ///
    /// # Errors
    /// When it may not, with the reason.
    fn validate(&self) -> Result<(), BoxError> {
        Ok(())
    }
}

/// Data that can be stored and read back: implemented for everything that serde can do both ways.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored as an outbox event",
    label = "needs serde's `Serialize` and `Deserialize`",
    note = "add `#[derive(serde::Serialize, serde::Deserialize)]`; the type must own its data (`String`, not `&str`) and be `Send + Sync`"
)]
pub trait EventData: Sized + Send + Sync + 'static {
    // Methods instead of serde's traits as supertraits, which the compiler would report by name
    // instead of the message above.
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

/// What can be an event's key: everything that can be displayed.
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
