//! [`State`]: values that the application gives to its handlers, one per type.

use std::{any, any::TypeId, fmt};

use hashbrown::HashMap;

use super::{Context, FromContext, HandlerError, Requirements};

/// A handler argument: a clone of the value given with `.state(value)`.
///
/// Start-up fails if a handler's state was not given; the error names the handler and the type. Put
/// a value that is large or not `Clone` into an `Arc`.
///
/// ```
/// # use outbox::{outbox_handler, OutboxEvent, Registry, State};
/// # #[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
/// # #[outbox_event(name = "order.created")]
/// # struct OrderCreated {}
/// #[derive(Clone)]
/// struct Bank;
///
/// #[outbox_handler]
/// async fn charge_card(event: OrderCreated, State(bank): State<Bank>) {}
///
/// let missing = Registry::builder().handler::<charge_card>().build().unwrap_err();
/// assert!(missing.to_string().contains("State<"));
/// Registry::builder().handler::<charge_card>().state(Bank).build()?;
/// # Ok::<(), outbox::registry::RegistryError>(())
/// ```
#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::exhaustive_structs,
    reason = "destructured in argument position"
)]
pub struct State<T>(pub T);

impl<'a, T: Clone + Send + Sync + 'static> FromContext<'a> for State<T> {
    fn from_context(context: &'a Context) -> Result<Self, HandlerError> {
        context.state::<T>().cloned().map(Self)
    }

    fn requires(requirements: &mut Requirements) {
        requirements.state::<T>();
    }
}

/// The application's values, one per type. The builder writes them; after that they are only read.
#[derive(Default)]
pub(crate) struct States {
    values: HashMap<TypeId, Box<dyn any::Any + Send + Sync>>,
}

impl States {
    pub(crate) fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        self.values.insert(TypeId::of::<T>(), Box::new(value));
    }

    /// Adds the values of another builder. Values of the same type stay.
    pub(crate) fn merge(&mut self, other: Self) {
        for (ty, value) in other.values {
            self.values.entry(ty).or_insert(value);
        }
    }

    pub(crate) fn get<T: 'static>(&self) -> Option<&T> {
        self.values.get(&TypeId::of::<T>())?.downcast_ref()
    }

    pub(crate) fn has(&self, ty: TypeId) -> bool {
        self.values.contains_key(&ty)
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "States({} values)", self.values.len())
    }
}

impl Context {
    /// The value of type `T` that the application gave with `.state(..)`.
    ///
    /// # Errors
    /// There is no such value. [`FromContext::requires`] makes start-up fail instead.
    pub fn state<T: Send + Sync + 'static>(&self) -> Result<&T, HandlerError> {
        // Start-up finds missing state. This error happens only if a user's `FromContext` takes a
        // value that its `requires` does not name.
        self.states.get::<T>().ok_or_else(|| {
            let name = any::type_name::<T>();
            format!("no state of type `{name}`: give it with `.state(..)`").into()
        })
    }
}
