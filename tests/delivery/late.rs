//! Transactions that commit after transactions that began later.

use std::time::{Duration, Instant};

use outbox_tests::on_each_database;

use crate::scene::{Random, Scene, publish, step};

const MANY: u32 = 3000;

on_each_database! {
    async fn a_record_that_commits_late_is_delivered_within_seconds(db) {
        let scene = Scene::new();
        let outbox = scene.outbox(&db.pool).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        publish(&outbox, &db.pool, "before", [1]).await;
        scene.seen_at_least(1).await;
        // This record draws its id before all others.
        let mut tx = db.pool.begin().await.unwrap();
        outbox.publish(&mut tx, &step("late", 1)).await.unwrap();
        if database::ONE_WRITER {
            // No other transaction can write until this one ends.
            let (others, pool) = (outbox.clone(), db.pool.clone());
            let others = tokio::spawn(async move { publish(&others, &pool, "others", 0..MANY).await });
            tokio::time::sleep(Duration::from_millis(200)).await;
            assert_eq!(scene.seen().len(), 1);
            tx.commit().await.unwrap();
            others.await.unwrap();
        } else {
            for n in (0..MANY).step_by(100) {
                publish(&outbox, &db.pool, &format!("other/{}", n % 7), n..n + 100).await;
            }
            scene.seen_at_least(1 + MANY as usize).await;
            let completed = "select count(*) from outbox_record where status = 'completed'";
            crate::scene::eventually("all to be completed", async || {
                database::number(&db.pool, completed).await == 1 + i64::from(MANY)
            }).await;
            let committed = Instant::now();
            tx.commit().await.unwrap();
            scene.seen_at_least(2 + MANY as usize).await;
            let delay = committed.elapsed();
            println!("late commit: delivered {delay:?} after its commit");
            assert!(delay < Duration::from_secs(5), "{delay:?}");
        }
        scene.seen_at_least(2 + MANY as usize).await;
        dispatcher.shutdown().await.unwrap();
        assert_eq!(scene.attempts("first", "late", 1), [1]);
        assert_eq!(scene.seen().len(), 2 + MANY as usize);
    }

    async fn an_unrelated_long_transaction_stalls_nothing(db) {
        database::execute(&db.pool, "create table unrelated (n integer)").await;
        let scene = Scene::new();
        let outbox = scene.outbox(&db.pool).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        // The unrelated transaction has a snapshot. Where it does not block other writers, it has
                // also written a row.
        let mut unrelated = db.pool.begin().await.unwrap();
        if !database::ONE_WRITER {
            sqlx::query("insert into unrelated values (1)").execute(&mut *unrelated).await.unwrap();
        }
        sqlx::query("select count(*) from outbox_record").execute(&mut *unrelated).await.unwrap();
        let mut late = None;
        if !database::ONE_WRITER {
            let mut tx = db.pool.begin().await.unwrap();
            outbox.publish(&mut tx, &step("late", 1)).await.unwrap();
            late = Some(tx);
        }
        for n in (0..MANY).step_by(100) {
            publish(&outbox, &db.pool, "others", n..n + 100).await;
        }
        scene.seen_at_least(MANY as usize).await;
        let committed = Instant::now();
        match late {
            Some(late) => late.commit().await.unwrap(),
            None => publish(&outbox, &db.pool, "late", [1]).await,
        }
        scene.seen_at_least(1 + MANY as usize).await;
        let delay = committed.elapsed();
        println!("late commit during an unrelated transaction: delivered {delay:?} after its commit");
        assert!(delay < Duration::from_secs(5), "{delay:?}");
        unrelated.rollback().await.unwrap();
        dispatcher.shutdown().await.unwrap();
        assert_eq!(scene.attempts("first", "late", 1), [1]);
    }

    async fn every_event_is_delivered_once_and_in_order_whichever_writer_commits_first(db) {
        let scene = Scene::new();
        let outbox = scene.outbox(&db.pool).build().await.unwrap();
        let dispatcher = outbox.start().await.unwrap();
        // With one writer at a time the pauses are short, because writers wait for each other.
        let longest = if database::ONE_WRITER { 3 } else { 31 };
        let writers: Vec<_> = (0..8_u32).map(|writer| {
            let (outbox, pool) = (outbox.clone(), db.pool.clone());
            tokio::spawn(async move {
                let mut random = Random::of(u64::from(writer) + 1);
                let mut next = [0_u32; 3];
                while next.iter().sum::<u32>() < 250 {
                    let mut written = next;
                    let mut tx = pool.begin().await.unwrap();
                    for _ in 0..=random.below(4) {
                        let key = usize::try_from(random.below(3)).unwrap();
                        let event = step(format!("{writer}/{key}"), written[key]);
                        outbox.publish(&mut tx, &event).await.unwrap();
                        written[key] += 1;
                        if random.below(2) == 0 {
                            tokio::time::sleep(Duration::from_millis(random.below(longest))).await;
                        }
                    }
                    if random.below(5) == 0 {
                        tx.rollback().await.unwrap();
                    } else {
                        tx.commit().await.unwrap();
                        next = written;
                    }
                }
                next
            })
        }).collect();
        let mut expected = Vec::new();
        for (number, writer) in writers.into_iter().enumerate() {
            let counts = writer.await.unwrap();
            expected.extend((0..).zip(counts).map(|(key, count)| (format!("{number}/{key}"), count)));
        }
        let all: u32 = expected.iter().map(|(_, count)| count).sum();
        assert!(all >= 2000);
        scene.seen_at_least(all as usize).await;
        dispatcher.shutdown().await.unwrap();
        assert_eq!(scene.tried().len(), all as usize);
        for (key, count) in expected {
            let steps: Vec<u32> = (0..count).collect();
            assert_eq!(scene.steps("first", &key), steps, "{key}");
        }
    }
}
