//! A dependency that the code never names is not linked, so its handlers are not registered. The
//! error explains how to link it.

use outbox::{OutboxEvent, Registry, outbox_handler};

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "own.created")]
struct OwnCreated {}

#[outbox_handler(id = "own")]
async fn own(_event: OwnCreated) {}

#[test]
fn the_error_for_an_event_of_an_unlinked_crate_says_how_to_link_it() {
    let registry = Registry::linked().build().unwrap();
    assert_eq!(registry.handlers().iter().count(), 1);

    let error = registry
        .require(["linked.created", "own.created"])
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the outbox cannot start: no handler takes event `linked.created`; if its handlers are in \
         another crate, name that crate once (`use my_handlers as _;`), or it is not linked and \
         registers nothing"
    );
}
