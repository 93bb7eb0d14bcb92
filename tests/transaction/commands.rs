//! A command runs once, however often it is sent.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use outbox::transaction::{Cause, CommandError, Isolation, Reason, Stopped};
use outbox_tests::on_each_database;

use crate::scene::{Oops, Scene, stubborn};

const EFFECTS: &str = "create table effects (id bigint not null)";
const EFFECT: &str = "insert into effects values (1)";
const COUNT: &str = "select count(*) from effects";

#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
struct Receipt {
    number: u32,
    note: Option<String>,
}

on_each_database! {
    async fn a_repeated_command_returns_its_result_and_does_not_run(db) {
        database::execute(&db.pool, EFFECTS).await;
        let runs = AtomicU32::new(0);
        let mut receipts = Vec::new();
        for _ in 0..3 {
            let receipt = db.outbox.transaction("Pay").command_id("c-1").request(&("ann", 7)).run(async |mut tx| {
                sqlx::query(EFFECT).execute(&mut *tx).await?;
                let number = runs.fetch_add(1, Ordering::Relaxed);
                Ok::<_, sqlx::Error>(Receipt { number, note: Some("ä \" ☃".to_owned()) })
            }).await.unwrap();
            receipts.push(receipt);
        }
        assert!(receipts.iter().all(|receipt| *receipt == receipts[0]), "{receipts:?}");
        assert_eq!(runs.into_inner(), 1);
        assert_eq!(database::number(&db.pool, COUNT).await, 1);
    }

    async fn concurrent_transactions_of_one_command_run_it_once(db) {
        database::execute(&db.pool, EFFECTS).await;
        for (round, isolation) in [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable].into_iter().enumerate() {
            let (scene, runs) = (Scene::of(&db), Arc::new(AtomicU32::new(0)));
            let tasks: Vec<_> = (0..5).map(|_| {
                let (transactions, runs) = (scene.transactions.clone(), Arc::clone(&runs));
                tokio::spawn(async move {
                    let pay = transactions.transaction("Pay").isolation(isolation).policy(stubborn());
                    pay.command_id(round).run(async |mut tx| {
                        sqlx::query(EFFECT).execute(&mut *tx).await?;
                        // In 50 ms the other tasks reach this point too.
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        Ok::<_, sqlx::Error>(runs.fetch_add(1, Ordering::Relaxed))
                    }).await
                })
            }).collect();
            for task in tasks {
                assert_eq!(task.await.unwrap().unwrap(), 0, "{isolation}");
            }
            assert_eq!(runs.load(Ordering::Relaxed), 1, "{isolation}");
            let effects = i64::try_from(round).unwrap() + 1;
            assert_eq!(database::number(&db.pool, COUNT).await, effects, "{isolation}");
        }
    }

    async fn a_different_request_under_the_same_id_is_an_error(db) {
        let pay = |cents: i64| {
            let outbox = db.outbox.clone();
            async move {
                outbox.transaction("Pay").command_id("c-1").request(&cents)
                    .run(async |_| Ok::<_, Oops>(cents)).await
            }
        };
        assert_eq!(pay(5).await.unwrap(), 5);
        assert_eq!(pay(5).await.unwrap(), 5);
        let error = pay(6).await.unwrap_err();
        assert!(matches!(error.cause(), Cause::Command(CommandError::DifferentRequest)), "{error:?}");
        assert_eq!((error.reason(), error.stopped(), error.attempts()), (Reason::Command, Stopped::NotRetryable, 1));
        // Each operation has its own ids.
        let refund = db.outbox.transaction("Refund").command_id("c-1").request(&6);
        assert_eq!(refund.run(async |_| Ok::<_, Oops>(6)).await.unwrap(), 6);
    }

    async fn a_rejected_command_is_not_stored(db) {
        for n in 0..2 {
            let answer = db.outbox.transaction("Pay").command_id("c-1").run(async |_| {
                if n == 0 { Err(Oops::No) } else { Ok(n) }
            }).await;
            assert_eq!(answer.is_ok(), n == 1);
        }
        let claimed = db.outbox.transaction("Pay").command_id("c-2").run(async |_| Err::<(), _>(Oops::No)).await;
        assert!(claimed.is_err());
        assert_eq!(database::number(&db.pool, "select count(*) from outbox_command").await, 1);
    }

    async fn an_id_that_cannot_be_stored_is_an_error_before_any_sql(db) {
        for id in [String::new(), "x".repeat(256), "a\0b".to_owned()] {
            let error = db.outbox.transaction("Pay").command_id(&id).run(async |_| Ok::<_, Oops>(())).await.unwrap_err();
            assert!(matches!(error.cause(), Cause::Command(CommandError::BadId { .. })), "{error:?}");
            assert_eq!(error.attempts(), 0);
        }
                let ids = ["a", "A", "a ", &"x".repeat(255)];
                for (n, id) in ids.into_iter().enumerate() {
            let ran = db.outbox.transaction("Pay").command_id(id).run(async |_| Ok::<_, Oops>(n)).await.unwrap();
            assert_eq!(ran, n, "all ids are different");
        }
    }

    async fn a_stored_result_of_another_type_is_an_error(db) {
        db.outbox.transaction("Pay").command_id(1).run(async |_| Ok::<_, Oops>("text".to_owned())).await.unwrap();
        let error = db.outbox.transaction("Pay").command_id(1).run(async |_| Ok::<_, Oops>(7u32)).await.unwrap_err();
        assert!(matches!(error.cause(), Cause::Command(CommandError::DecodeResult(_))), "{error:?}");
    }

    async fn prune_commands_deletes_old_commands(db) {
        let runs = AtomicU32::new(0);
        let run = || db.outbox.transaction("Pay").command_id("c-1").run(async |_| {
            Ok::<_, Oops>(runs.fetch_add(1, Ordering::Relaxed))
        });
        assert_eq!(run().await.unwrap(), 0);
        let operations = db.outbox.operations();
        assert_eq!(operations.prune_commands(Duration::from_secs(3600)).await.unwrap(), 0);
        assert_eq!(run().await.unwrap(), 0);
        assert_eq!(operations.prune_commands(Duration::ZERO).await.unwrap(), 1);
        assert_eq!(run().await.unwrap(), 1);
    }
}
