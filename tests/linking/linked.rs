//! A crate that the code names once is linked, so its handlers are registered, in debug and release
//! builds.

use linked_handlers as _;
use outbox::Registry;

#[test]
fn every_handler_of_a_linked_crate_is_registered_sorted_by_id() {
    let registry = Registry::linked()
        .state("audit".to_owned())
        .build()
        .unwrap();
    let report = registry.handlers();
    let ids: Vec<&str> = report.iter().map(|handler| handler.id).collect();
    assert_eq!(ids, ["linked.audit", "linked.send-mail"]);
    assert!(
        report
            .iter()
            .all(|handler| handler.location.file.ends_with("src/lib.rs"))
    );
    registry.require(["linked.created"]).unwrap();
}
