//! Real conflicts between transactions: every transaction succeeds, and the sum stays right.

use std::sync::Arc;

use outbox::{OutboxEvent, transaction::Isolation};
use outbox_tests::database;
use sqlx::AssertSqlSafe;
use tokio::sync::Barrier;

use crate::scene::{Oops, Scene, stubborn};

const ACCOUNTS: &str = "create table accounts (id bigint primary key, cents bigint not null)";
const FULL: &str = "insert into accounts values (1, 1000), (2, 1000), (3, 1000)";

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "money.moved", key = from)]
struct Moved {
    from: i64,
    to: i64,
}

fn add(cents: i64, id: i64) -> AssertSqlSafe<String> {
    AssertSqlSafe(format!(
        "update accounts set cents = cents + {cents} where id = {id}"
    ))
}

macro_rules! conflicts {
    ($($database:ident)*) => {$(
        mod $database {
            use super::{*, database::$database as database};

            #[tokio::test]
            async fn a_deadlock_is_retried_and_both_transactions_succeed() {
                let db = database::fresh().await;
                database::execute(&db.pool, ACCOUNTS).await;
                database::execute(&db.pool, FULL).await;
                let (scene, meet) = (Scene::of(&db), Arc::new(Barrier::new(2)));
                let transfer = |from: i64, to: i64| {
                    let (transactions, meet, outbox) =
                        (scene.transactions.clone(), Arc::clone(&meet), db.outbox.clone());
                    tokio::spawn(async move {
                        transactions.transaction("Transfer").run(async |mut tx| {
                            outbox.publish(&mut tx, &Moved { from, to }).await?;
                            sqlx::query(add(-10, from)).execute(&mut *tx).await?;
                            if tx.attempt() == 1 {
                                meet.wait().await; // each holds the lock that the other needs
                            }
                            sqlx::query(add(10, to)).execute(&mut *tx).await?;
                            Ok::<_, Oops>(())
                        }).await
                    })
                };
                let (forth, back) = (transfer(1, 2), transfer(2, 1));
                forth.await.unwrap().unwrap();
                back.await.unwrap().unwrap();
                assert!(scene.counted.of("deadlock Transfer") >= 1, "{:?}", scene.counted.all());
                assert_eq!(database::number(&db.pool, "select count(*) from accounts where cents = 1000").await, 3);
                assert_eq!(database::number(&db.pool, "select count(*) from outbox_record").await, 2);
            }

            #[tokio::test]
            async fn a_storm_of_serializable_transfers_keeps_the_sum() {
                let db = database::fresh().await;
                database::execute(&db.pool, ACCOUNTS).await;
                database::execute(&db.pool, FULL).await;
                let scene = Scene::of(&db);
                let clerks: Vec<_> = (0..6i64).map(|clerk| {
                    let (transactions, outbox) = (scene.transactions.clone(), db.outbox.clone());
                    tokio::spawn(async move {
                        for n in 0..10i64 {
                            let (from, to) = ((clerk + n) % 3 + 1, (clerk + 2 * n + 1) % 3 + 1);
                            transactions.transaction("Transfer")
                                .isolation(Isolation::Serializable)
                                .policy(stubborn())
                                .run(async |mut tx| {
                                    let total: i64 = sqlx::query_scalar("select count(*) from accounts where cents > -100000")
                                        .fetch_one(&mut *tx).await?;
                                    assert_eq!(total, 3);
                                    sqlx::query(add(-1, from)).execute(&mut *tx).await?;
                                    tokio::task::yield_now().await;
                                    sqlx::query(add(1, to)).execute(&mut *tx).await?;
                                    outbox.publish(&mut tx, &Moved { from, to }).await?;
                                    Ok::<_, Oops>(())
                                }).await.unwrap();
                        }
                    })
                }).collect();
                for clerk in clerks {
                    clerk.await.unwrap();
                }
                println!("{} retries", scene.counted.of("retry"));
                assert!(scene.counted.of("retry") > 0, "there was no conflict");
                let texts = "select concat(sum(cents), '') from accounts";
                assert_eq!(database::texts(&db.pool, texts).await, ["3000"]);
                assert_eq!(database::number(&db.pool, "select count(*) from outbox_record").await, 60);
            }
        }
    )*};
}

conflicts!(postgres mysql);

mod sqlite {
    use std::time::Duration;

    use sqlx::sqlite::SqlitePoolOptions;

    use super::{database::sqlite as database, *};

    #[tokio::test]
    async fn a_busy_database_is_retried_and_all_transactions_succeed() {
        let db = database::fresh().await;
        database::execute(&db.pool, ACCOUNTS).await;
        database::execute(&db.pool, FULL).await;
        // Without a busy timeout SQLite refuses a second writer at once.
        let options = (*db.pool.connect_options())
            .clone()
            .busy_timeout(Duration::ZERO);
        let pool = SqlitePoolOptions::new().max_connections(8);
        let scene = Scene::on(pool.connect_with(options).await.unwrap());
        let clerks: Vec<_> = (0..6i64)
            .map(|clerk| {
                let (transactions, outbox) = (scene.transactions.clone(), db.outbox.clone());
                tokio::spawn(async move {
                    for n in 0..10 {
                        let (from, to) = ((clerk + n) % 3 + 1, (clerk + n + 1) % 3 + 1);
                        let transfer = transactions.transaction("Transfer").policy(stubborn());
                        let done = transfer.run(async |mut tx| {
                            sqlx::query(add(-1, from)).execute(&mut *tx).await?;
                            tokio::task::yield_now().await;
                            sqlx::query(add(1, to)).execute(&mut *tx).await?;
                            outbox.publish(&mut tx, &Moved { from, to }).await?;
                            Ok::<_, Oops>(())
                        });
                        done.await.unwrap();
                    }
                })
            })
            .collect();
        for clerk in clerks {
            clerk.await.unwrap();
        }
        println!("{} retries", scene.counted.of("retry Transfer busy"));
        assert!(scene.counted.of("retry Transfer busy") > 0);
        let sum = "select sum(cents) from accounts";
        assert_eq!(database::number(&db.pool, sum).await, 3000);
        let records = "select count(*) from outbox_record";
        assert_eq!(database::number(&db.pool, records).await, 60);
    }
}
