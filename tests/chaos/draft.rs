//! The events that a transaction is about to publish.

use std::time::Duration;

use rand::{RngExt as _, rngs::StdRng};

use crate::history::Handler;

/// The delay of delayed events. One transaction in ten publishes delayed events, on keys that have
/// no others. All have the same delay, and only one transaction at a time writes to a key. So the
/// events of a key become due in the order of their numbers.
pub(crate) const DELAY: Duration = Duration::from_millis(700);
const DELAYED_KEYS: u32 = 10;

/// The keys of a run.
pub(crate) fn keys(keys: u32) -> impl Iterator<Item = String> {
    let delayed = (0..DELAYED_KEYS).map(|n| format!("d{n}"));
    (0..keys).map(|n| format!("k{n}")).chain(delayed)
}

/// An event that is about to be published.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) key: String,
    pub(crate) handler: Handler,
    pub(crate) dedup: Option<String>,
}

impl Draft {
    pub(crate) fn is_delayed(&self) -> bool {
        self.key.starts_with('d')
    }
}

/// The events of one transaction: a repeated one with a used dedup key, or one to five new ones.
pub(crate) fn drafts(random: &mut StdRng, tx: i64, keys: u32, used: &[Draft]) -> Vec<Draft> {
    if !used.is_empty() && random.random_bool(0.05) {
        return vec![used[random.random_range(0..used.len())].clone()];
    }
    let is_delayed = random.random_bool(0.1);
    (0..random.random_range(1..=5))
        .map(|n| Draft {
            key: if is_delayed {
                format!("d{}", random.random_range(0..DELAYED_KEYS))
            } else {
                format!("k{}", random.random_range(0..keys))
            },
            handler: if random.random_bool(0.4) {
                Handler::Tx
            } else {
                Handler::Plain
            },
            dedup: random.random_bool(0.03).then(|| format!("{tx}/{n}")),
        })
        .collect()
}
