//! The inbox: each message is handled once.

use std::time::Duration;

use outbox::transaction::Seen;
use outbox_tests::on_each_database;

use crate::scene::{Oops, Scene, stubborn};

on_each_database! {
    async fn a_message_is_new_once_per_source(db) {
        let inbox = db.outbox.inbox();
        let mut tx = db.pool.begin().await.unwrap();
        assert_eq!(inbox.once(&mut tx, "payments", "m-1").await.unwrap(), Seen::First);
        assert_eq!(inbox.once(&mut tx, "payments", "m-1").await.unwrap(), Seen::Again);
        assert_eq!(inbox.once(&mut tx, "payments", "M-1").await.unwrap(), Seen::First);
        assert_eq!(inbox.once(&mut tx, "parcels", "m-1").await.unwrap(), Seen::First);
        tx.commit().await.unwrap();
        let mut tx = db.pool.begin().await.unwrap();
        assert_eq!(inbox.once(&mut tx, "payments", "m-1").await.unwrap(), Seen::Again);
    }

    async fn a_message_whose_transaction_rolled_back_is_still_new(db) {
        for expected in [Seen::First, Seen::First] {
            let error = db.outbox.transaction("Receive").run(async |mut tx| {
                assert_eq!(db.outbox.inbox().once(&mut tx, "payments", "m-1").await?, expected);
                Err::<(), _>(Oops::No)
            }).await.unwrap_err();
            assert!(error.rejection().is_some());
        }
    }

    async fn a_batch_gets_an_answer_for_each_message(db) {
        let inbox = db.outbox.inbox();
        let mut tx = db.pool.begin().await.unwrap();
        let _ = inbox.once(&mut tx, "payments", "m-2").await.unwrap();
        let batch = ["m-3", "m-2", "m-1", "m-3", "m ä"];
        let seen = inbox.once_each(&mut tx, "payments", &batch).await.unwrap();
        assert_eq!(seen, [Seen::First, Seen::Again, Seen::First, Seen::Again, Seen::First]);
        assert!(inbox.once_each(&mut tx, "payments", &[] as &[&str]).await.unwrap().is_empty());
        let many: Vec<String> = (0..1200).map(|n| format!("n-{n}")).collect();
        let seen = inbox.once_each(&mut tx, "payments", &many).await.unwrap();
        assert!(seen.iter().all(|seen| *seen == Seen::First));
        let seen = inbox.once_each(&mut tx, "payments", &many).await.unwrap();
        assert!(seen.iter().all(|seen| *seen == Seen::Again));
        tx.commit().await.unwrap();
    }

    async fn a_message_that_arrives_twice_at_once_has_one_effect(db) {
        database::execute(&db.pool, "create table account (cents bigint not null)").await;
        database::execute(&db.pool, "insert into account values (0)").await;
        let scene = Scene::of(&db);
        let consumers: Vec<_> = (0..4).map(|_| {
            let (transactions, outbox) = (scene.transactions.clone(), db.outbox.clone());
            tokio::spawn(async move {
                for message in 0..5 {
                    transactions.transaction("Receive").policy(stubborn()).run(async |mut tx| {
                        if outbox.inbox().once(&mut tx, "payments", &message.to_string()).await? == Seen::Again {
                            return Ok(());
                        }
                        sqlx::query("update account set cents = cents + 1").execute(&mut *tx).await?;
                        Ok::<_, Oops>(())
                    }).await.unwrap();
                }
            })
        }).collect();
        for consumer in consumers {
            consumer.await.unwrap();
        }
        assert_eq!(database::number(&db.pool, "select cents from account").await, 5);
    }

    async fn the_inbox_refuses_invalid_sources_and_messages(db) {
        let inbox = db.outbox.inbox();
        let mut tx = db.pool.begin().await.unwrap();
        let long = "x".repeat(256);
        for (source, message) in [("", "m"), ("s", ""), ("s", "a\0"), (long.as_str(), "m"), ("s", long.as_str())] {
            assert!(inbox.once(&mut tx, source, message).await.is_err());
        }
        assert_eq!(inbox.once(&mut tx, "s", "m").await.unwrap(), Seen::First, "the transaction is still usable");
    }

    async fn prune_inbox_deletes_old_messages(db) {
        let (inbox, operations) = (db.outbox.inbox(), db.outbox.operations());
        let many: Vec<String> = (0..2500).map(|n| n.to_string()).collect();
        let mut tx = db.pool.begin().await.unwrap();
        let _ = inbox.once_each(&mut tx, "payments", &many).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(operations.prune_inbox(Duration::from_secs(3600)).await.unwrap(), 0);
        assert_eq!(operations.prune_inbox(Duration::ZERO).await.unwrap(), 2500);
        let mut tx = db.pool.begin().await.unwrap();
        assert_eq!(inbox.once(&mut tx, "payments", "1").await.unwrap(), Seen::First);
    }
}
