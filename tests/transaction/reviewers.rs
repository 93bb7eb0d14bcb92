//! The example of the reference for retried transactions: two transactions remove one reviewer each
//! at the same time, and one reviewer stays.

use std::sync::Arc;

use outbox::transaction::{Isolation, Stopped};
use outbox_tests::on_each_database;
use tokio::sync::Barrier;

use crate::scene::{Scene, stubborn};

#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("the last reviewer cannot be removed")]
    LastReviewer,
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

on_each_database! {
    async fn the_last_reviewer_stays(db) {
        database::execute(&db.pool, "create table reviewers (id bigint primary key, active bigint not null)").await;
        database::execute(&db.pool, "insert into reviewers values (1, 1), (2, 1)").await;
        let scene = Scene::of(&db);
        // Both transactions count two reviewers before either removes one. With one writer at a time
                // they run one after the other.
        let both_counted = Arc::new(Barrier::new(if database::ONE_WRITER { 1 } else { 2 }));
        let remove = |reviewer: i64| {
            let (transactions, both_counted) = (scene.transactions.clone(), Arc::clone(&both_counted));
            tokio::spawn(async move {
                transactions.transaction("RemoveReviewer")
                    .isolation(Isolation::Serializable)
                    .policy(stubborn())
                    .run(async |mut tx| {
                        let active: i64 = sqlx::query_scalar("select count(*) from reviewers where active = 1")
                            .fetch_one(&mut *tx).await?;
                        if tx.attempt() == 1 {
                            both_counted.wait().await;
                        }
                        if active <= 1 {
                            return Err(Refused::LastReviewer);
                        }
                        let deactivate = format!("update reviewers set active = 0 where id = {reviewer}");
                        sqlx::query(sqlx::AssertSqlSafe(deactivate)).execute(&mut *tx).await?;
                        Ok(tx.attempt())
                    }).await
            })
        };
        let (first, second) = (remove(1), remove(2));
        let (refused, attempts) = match (first.await.unwrap(), second.await.unwrap()) {
            (Ok(_), Err(refused)) | (Err(refused), Ok(_)) => {
                let attempts = refused.attempts();
                (refused, attempts)
            }
            both => panic!("one must succeed and one must be refused: {both:?}"),
        };
        assert!(matches!(refused.rejection(), Some(Refused::LastReviewer)), "{refused:?}");
        assert_eq!(refused.stopped(), Stopped::NotRetryable);
        if !database::ONE_WRITER {
            // There are more than two if a retry came before the other transaction had committed.
            assert!(attempts >= 2, "the refusal comes after a retry, not at attempt {attempts}");
        }
        let left = "select count(*) from reviewers where active = 1";
        assert_eq!(database::number(&db.pool, left).await, 1);
    }
}
