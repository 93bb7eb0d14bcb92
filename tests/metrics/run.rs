//! Every metric of a run, compared with the counts of handlers and with the tables.

use std::{sync::Arc, time::Duration};

use outbox::{
    Config, Database, Outbox, OutboxEvent, Registry,
    metrics::{Metric, names},
};
use outbox_tests::{database::Fresh, on_each_database};
use tokio::sync::Semaphore;

use crate::{
    events::{Gate, Mail, Order, Script, Slow, Unhandled, send, ship, wait},
    scrape::{Page, Scraped},
    truth::Truth,
};

/// An outbox that samples its gauges every 100 ms.
async fn outbox<Db: Database>(db: &Fresh<Db>, truth: &Truth, gate: &Arc<Gate>) -> Outbox<Db> {
    let mut config = Config::default();
    config.poll_interval = Duration::from_millis(500);
    config.metrics.sample_interval = Duration::from_millis(100);
    let handlers = Registry::builder()
        .handler::<ship>()
        .handler::<send>()
        .handler::<wait>()
        .state(truth.clone())
        .state(Arc::clone(gate));
    let builder = Outbox::builder(db.pool.clone()).registry(handlers);
    builder.config(config).build().await.expect("an outbox")
}

fn gate() -> Arc<Gate> {
    Arc::new(Gate(Semaphore::new(0)))
}

async fn publish<Db: Database, E: OutboxEvent>(db: &Fresh<Db>, outbox: &Outbox<Db>, events: &[E]) {
    let mut tx = db.pool.begin().await.expect("a transaction");
    outbox.publish_all(&mut tx, events).await.expect("events");
    tx.commit().await.expect("a commit");
}

/// The orders of a round: script, number of keys, and number of orders behind the first of each key.
const ORDERS: [(Script, u32, u32); 9] = [
    (Script::Succeed, 150, 1),
    (Script::Fail(1), 20, 0),
    (Script::Fail(3), 10, 1),
    (Script::Panic(1), 5, 0),
    (Script::TimeOut(1), 2, 0),
    (Script::FailAlways, 6, 2),
    (Script::Permanent, 4, 2),
    (Script::Later, 3, 1),
    (Script::Fail(2), 7, 3),
];
/// The final states of these orders, per round.
const FAILED: f64 = 6.0 + 4.0;
const LATER: f64 = 3.0;
const BEHIND: f64 = 6.0 * 2.0 + 4.0 * 2.0 + 3.0 * 1.0;
const UNHANDLED: u32 = 7;
const SCHEDULED: u32 = 2;
const WANTED: u32 = 5;
const UNWANTED: u32 = 4;

fn orders(round: u32) -> Vec<Order> {
    let mut orders = Vec::new();
    for (kind, (script, count, behind)) in ORDERS.into_iter().enumerate() {
        for n in 0..count {
            let key = format!("{round}/{kind}/{n}");
            let order = |script| Order {
                key: key.clone(),
                script,
            };
            orders.push(order(script));
            orders.extend((0..behind).map(|_| order(Script::Succeed)));
        }
    }
    orders
}

/// Checks that no counter has decreased, and that no metric exceeds the counts of handlers.
fn check_during(before: &Page, page: &Page, truth: &Truth) {
    for (name, value) in before.growing() {
        assert!(page.series(name).is_some_and(|now| now >= value), "{name}");
    }
    let attempts = page.total(&names::ATTEMPTS);
    assert!(attempts <= truth.all("attempt") + skipped(99), "{attempts}");
    let completed = page.value(&names::ATTEMPTS, &["ship", "completed"]);
    assert!(completed.unwrap_or(0.0) <= truth.of("ship", "completed"));
}

fn skipped(rounds: u32) -> f64 {
    f64::from(UNWANTED * rounds)
}

/// Whether all records up to this round have reached their final states.
fn is_settled(page: &Page, round: u32) -> bool {
    let rounds = f64::from(round);
    let records = |status| page.value(&names::RECORDS, &[status]);
    records("pending") == Some(0.0)
        && records("failed") == Some(FAILED * rounds)
        && records("retrying") == Some(LATER * rounds)
        && records("waiting") == Some(BEHIND * rounds)
        && records("unhandled") == Some(f64::from(UNHANDLED * round))
        && records("scheduled") == Some(f64::from(SCHEDULED * round))
        && page.value(&names::IN_MEMORY, &[]) == Some(0.0)
}

fn check(page: &Page, truth: &Truth, round: u32) {
    let is_equal = |metric: Metric, labels: &[&str], value: f64| {
        let shown = page.value(&metric, labels);
        assert_eq!(shown, Some(value), "{} {labels:?}", metric.name);
    };
    let rounds = f64::from(round);
    for outcome in ["completed", "retry", "failed"] {
        is_equal(
            names::ATTEMPTS,
            &["ship", outcome],
            truth.of("ship", outcome),
        );
    }
    is_equal(names::ATTEMPTS, &["ship", "skipped"], 0.0);
    is_equal(names::ATTEMPTS, &["ship", "fell_back"], 0.0);
    is_equal(
        names::ATTEMPTS,
        &["send", "fell_back"],
        truth.of("send", "fell_back"),
    );
    is_equal(names::ATTEMPTS, &["send", "skipped"], skipped(round));
    let attempts = truth.all("attempt") + skipped(round);
    assert_eq!(page.total(&names::ATTEMPTS), attempts);

    let retries = truth.of("ship", "retry of an earlier one");
    is_equal(names::RETRIES, &["ship"], retries);
    is_equal(names::RETRIES, &["send"], 0.0);
    assert!(retries > 0.0);

    for cause in ["error", "panicked", "timed_out", "permanent", "retry_after"] {
        let counted = truth.of("ship", cause);
        assert!(counted > 0.0, "{cause}");
        is_equal(names::FAILED_ATTEMPTS, &["ship", cause], counted);
    }
    is_equal(
        names::FAILED_ATTEMPTS,
        &["send", "error"],
        truth.of("send", "error"),
    );
    let failures = truth.of("ship", "retry") + truth.of("ship", "failed");
    assert_eq!(
        page.total(&names::FAILED_ATTEMPTS),
        failures + truth.of("send", "error")
    );

    let permanent = truth.of("ship", "permanent");
    let exhausted = truth.of("ship", "failed") - permanent;
    is_equal(names::PERMANENT_FAILURES, &["ship", "permanent"], permanent);
    is_equal(
        names::PERMANENT_FAILURES,
        &["ship", "retries_exhausted"],
        exhausted,
    );
    assert_eq!(
        page.total(&names::PERMANENT_FAILURES),
        permanent + exhausted
    );

    let count = |metric: Metric, labels: &[&str], value: f64| {
        assert_eq!(
            page.count(&metric, labels),
            value,
            "{} {labels:?}",
            metric.name
        );
    };
    count(
        names::HANDLER_DURATION,
        &["ship"],
        truth.of("ship", "attempt"),
    );
    count(
        names::HANDLER_DURATION,
        &["send"],
        truth.of("send", "attempt") + skipped(round),
    );
    let done_with_mail = truth.of("send", "fell_back") + skipped(round);
    count(
        names::DELIVERY_LATENCY,
        &["ship"],
        truth.of("ship", "completed"),
    );
    count(names::DELIVERY_LATENCY, &["send"], done_with_mail);
    // Each attempt that timed out took 200 ms.
    let timed_out = truth.of("ship", "timed_out") * 0.2;
    let took = page.sum(&names::HANDLER_DURATION, &["ship"]);
    assert!((timed_out..timed_out + 60.0).contains(&took), "{took}");

    let done = truth.of("ship", "completed") + done_with_mail;
    is_equal(names::COMPLETIONS, &[], done);
    is_equal(names::RECORDS, &["completed"], done);
    is_equal(names::RECORDS, &["discarded"], 0.0);
    assert!(page.sum(&names::BATCH_SIZE, &[]) >= done);
    assert!((1.0..=done * 4.0).contains(&page.count(&names::BATCH_SIZE, &[])));

    is_equal(
        names::UNHANDLED_EVENTS,
        &["unhandled"],
        f64::from(UNHANDLED * round),
    );
    is_equal(names::BLOCKED_LANES, &["failed"], FAILED * rounds);
    is_equal(names::BLOCKED_LANES, &["retrying"], LATER * rounds);
    is_equal(names::OLDEST_PENDING_AGE, &[], 0.0);
    is_equal(names::PARTITIONS_OWNED, &[], 64.0);
    is_equal(names::PARTITIONS_UNOWNED, &[], 0.0);
    is_equal(names::INSTANCES, &[], 1.0);
    is_equal(names::RUNNING, &[], 0.0);
    is_equal(names::LEASE_LOSSES, &[], 0.0);
    is_equal(names::LATE_COMMITS, &[], 0.0);
    assert_eq!(page.total(&names::DATABASE_ERRORS), 0.0);
    let published = page.value(&names::WAKE_UPS, &["published"]).unwrap_or(0.0);
    // One wake-up may follow several publishes.
    assert!((1.0..=13.0 * rounds).contains(&published), "{published}");
}

on_each_database! {
    async fn every_metric_equals_the_counts_of_the_handlers(db) {
        let scraped = Scraped::start().await;
        let (truth, gate) = (Truth::default(), gate());
        let outbox = outbox(&db, &truth, &gate).await;
        let dispatcher = outbox.start().await.unwrap();
        let mut page = scraped.scrape().await;
        for round in 1..=2 {
            for orders in orders(round).chunks(60) {
                publish(&db, &outbox, orders).await;
                let now = scraped.scrape().await;
                check_during(&page, &now, &truth);
                page = now;
            }
            let key = |n: u32| format!("{round}/{n}");
            let mail = |n| Mail { key: key(n), wanted: n < WANTED };
            publish(&db, &outbox, &(0..WANTED + UNWANTED).map(mail).collect::<Vec<_>>()).await;
                        let unhandled = |n| Unhandled { key: key(n) };
                        publish(&db, &outbox, &(0..UNHANDLED).map(unhandled).collect::<Vec<_>>()).await;
            for n in 0..SCHEDULED {
                let mut tx = db.pool.begin().await.unwrap();
                let order = Order { key: key(n), script: Script::Succeed };
                let delay = Duration::from_secs(3600);
                let _ = outbox.schedule(&order).delay(delay).send(&mut tx).await.unwrap();
                tx.commit().await.unwrap();
            }
            page = scraped.until("all records to reach their final states", |page| is_settled(page, round)).await;
            check(&page, &truth, round);
                        let select = "select count(*) from outbox_record where status = 'completed'";
                        let completed = database::number(&db.pool, select).await;
            assert_eq!(page.value(&names::RECORDS, &["completed"]), Some(f64::from(i32::try_from(completed).unwrap())));
        }
        // Each metric has its documented kind.
        for metric in names::ALL {
            if let Some(kind) = page.types.get(metric.name) {
                assert_eq!(kind, metric.kind.as_str(), "{}", metric.name);
            }
        }
        dispatcher.shutdown().await.unwrap();
        // A stopped dispatcher clears its gauges, so the maximum over processes ignores it.
        let page = scraped.scrape().await;
        assert_eq!(page.total(&names::RECORDS), 0.0);
        assert_eq!(page.value(&names::PARTITIONS_OWNED, &[]), Some(0.0));
        assert_eq!(page.value(&names::ATTEMPTS, &["ship", "failed"]), Some(truth.of("ship", "failed")));
    }

    async fn gauges_show_records_while_their_handlers_run(db) {
        let scraped = Scraped::start().await;
        let (truth, gate) = (Truth::default(), gate());
        let outbox = outbox(&db, &truth, &gate).await;
        let dispatcher = outbox.start().await.unwrap();
        let slow = |n: u32| Slow { key: n.to_string() };
        publish(&db, &outbox, &(0..5).map(slow).collect::<Vec<_>>()).await;
        let age = |page: &Page| page.value(&names::OLDEST_PENDING_AGE, &[]).unwrap_or(0.0);
        let page = scraped.until("a second to pass", |page| age(page) >= 1.0).await;
        assert!(age(&page) < 60.0);
        assert_eq!(page.value(&names::RECORDS, &["pending"]), Some(5.0));
        assert_eq!(page.value(&names::RUNNING, &[]), Some(5.0));
        assert_eq!(page.value(&names::IN_MEMORY, &[]), Some(5.0));
        assert_eq!(page.count(&names::HANDLER_DURATION, &["wait"]), 0.0);
        gate.0.add_permits(5);
        let page = scraped.until("the gate to open", |page| {
            // A page may show gauges of two samples.
            page.value(&names::RECORDS, &["completed"]) == Some(5.0) && age(page) == 0.0
        }).await;
        assert_eq!(page.count(&names::HANDLER_DURATION, &["wait"]), 5.0);
        let latency = page.sum(&names::DELIVERY_LATENCY, &["wait"]);
        assert!((5.0..300.0).contains(&latency), "{latency}");
        let duration = page.sum(&names::HANDLER_DURATION, &["wait"]);
        // The handlers started shortly after the publish.
        assert!((4.0..latency).contains(&duration), "{duration} of {latency}");
        dispatcher.shutdown().await.unwrap();
    }

    async fn records_that_commit_late_are_counted(db) {
        let scraped = Scraped::start().await;
        let truth = Truth::default();
        let outbox = outbox(&db, &truth, &gate()).await;
        let dispatcher = outbox.start().await.unwrap();
        let order = |key: &str| Order { key: key.to_owned(), script: Script::Succeed };
        let completed = |page: &Page| page.value(&names::COMPLETIONS, &[]);
        publish(&db, &outbox, &[order("before")]).await;
        scraped.until("the first record", |page| completed(page) == Some(1.0)).await;
                let late = if database::ONE_WRITER {
                    // With one writer at a time no transaction can commit late.
                    0
                } else {
                    let mut tx = db.pool.begin().await.unwrap();
                    // The records that commit first have the same keys, so they are in the same partitions.
                    let late: Vec<Order> = (0..3).map(|n| order(&format!("{n}"))).collect();
                    outbox.publish_all(&mut tx, &late).await.unwrap();
                    publish(&db, &outbox, &[order("0"), order("1"), order("2"), order("after")]).await;
                    scraped.until("the records that commit first", |page| completed(page) == Some(5.0)).await;
                    tx.commit().await.unwrap();
                    scraped.until("the records that commit late", |page| completed(page) == Some(8.0)).await;
                    3
                };
        let page = scraped.scrape().await;
        assert_eq!(page.value(&names::LATE_COMMITS, &[]), Some(f64::from(late)));
        dispatcher.shutdown().await.unwrap();
    }

    async fn lost_leases_and_requested_wake_ups_are_counted(db) {
        let scraped = Scraped::start().await;
        let outbox = outbox(&db, &Truth::default(), &gate()).await;
        let dispatcher = outbox.start().await.unwrap();
        let page = scraped.scrape().await;
        assert_eq!(page.value(&names::PARTITIONS_OWNED, &[]), Some(64.0));
        assert_eq!(page.value(&names::LEASE_LOSSES, &[]), Some(0.0));
        // This has the effect of another process that owned the partitions in between.
        database::execute(&db.pool, "update outbox_lease set epoch = epoch + 1 where part < 5").await;
        let page = scraped.until("the loss", |page| page.value(&names::LEASE_LOSSES, &[]) != Some(0.0)).await;
        assert_eq!(page.value(&names::LEASE_LOSSES, &[]), Some(5.0));
        assert_eq!(page.value(&names::PARTITIONS_OWNED, &[]), Some(64.0));
                for requests in 1..=3 {
                    outbox.wake();
                    let expected = Some(f64::from(requests));
                    scraped.until("the wake-up", |page| page.value(&names::WAKE_UPS, &["requested"]) == expected).await;
        }
        dispatcher.shutdown().await.unwrap();
    }

    async fn database_errors_are_counted_by_operation(db) {
        let scraped = Scraped::start().await;
        let truth = Truth::default();
        let outbox = outbox(&db, &truth, &gate()).await;
        let dispatcher = outbox.start().await.unwrap();
        assert_eq!(scraped.scrape().await.total(&names::DATABASE_ERRORS), 0.0);
        database::execute(&db.pool, "alter table outbox_record rename to hidden").await;
        let errors = |page: &Page, operation| page.value(&names::DATABASE_ERRORS, &[operation]);
        scraped.until("errors", |page| {
            errors(page, "fetch") >= Some(2.0) && errors(page, "sample") >= Some(1.0)
        }).await;
        database::execute(&db.pool, "alter table hidden rename to outbox_record").await;
        publish(&db, &outbox, &[Order { key: "a".to_owned(), script: Script::Succeed }]).await;
        let page = scraped.until("the database to answer", |page| {
            page.value(&names::RECORDS, &["completed"]) == Some(1.0)
        }).await;
        assert_eq!(errors(&page, "claim").unwrap_or(0.0), 0.0);
        dispatcher.shutdown().await.unwrap();
    }
}
