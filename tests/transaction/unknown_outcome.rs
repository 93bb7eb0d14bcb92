//! A connection is cut between `commit` and its answer.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use outbox::{
    OutboxEvent,
    transaction::{Reason, Stopped},
};
use outbox_tests::database;
use sqlx::{mysql::MySqlPoolOptions, postgres::PgPoolOptions};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::scene::{Oops, Scene};

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "transaction.paid", key = id)]
struct Paid {
    id: i64,
}

/// How the proxy cuts the connection at the next commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// The commit reaches the server; its answer is lost.
    Answer,
    /// The commit does not reach the server.
    Commit,
    /// The answer is lost, and the proxy refuses every later connection.
    AnswerAndLater,
}

/// Forwards the connections of a pool to its server, and cuts one on demand.
#[derive(Clone)]
struct Proxy {
    address: SocketAddr,
    next: Arc<Mutex<Option<Cut>>>,
    down: Arc<Mutex<bool>>,
    cuts: Arc<AtomicU32>,
}

impl Proxy {
    async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self {
            address: listener.local_addr().unwrap(),
            next: Arc::default(),
            down: Arc::default(),
            cuts: Arc::default(),
        };
        let accepting = proxy.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if !*accepting.down.lock().unwrap() {
                    let forwarding = accepting.clone();
                    tokio::spawn(async move { forwarding.forward(client, server).await });
                }
            }
        });
        proxy
    }

    /// Forwards until one side closes or the proxy cuts the connection by dropping both ends.
    async fn forward(&self, mut client: TcpStream, server: SocketAddr) -> Option<()> {
        let mut server = TcpStream::connect(server).await.ok()?;
        let (mut request, mut answer) = (vec![0; 65536], vec![0; 65536]);
        loop {
            tokio::select! {
                read = client.read(&mut request) => {
                    let sent = &request[..read.ok().filter(|read| *read > 0)?];
                    let cut = if is_commit(sent) { self.next.lock().unwrap().take() } else { None };
                    if cut == Some(Cut::Commit) {
                        self.cuts.fetch_add(1, Ordering::Relaxed);
                        return None;
                    }
                    server.write_all(sent).await.ok()?;
                    if let Some(cut) = cut {
                        // The server has answered, so the transaction is committed.
                        assert!(server.read(&mut answer).await.ok()? > 0);
                        *self.down.lock().unwrap() = cut == Cut::AnswerAndLater;
                        self.cuts.fetch_add(1, Ordering::Relaxed);
                        return None;
                    }
                }
                read = server.read(&mut answer) => {
                    let sent = &answer[..read.ok().filter(|read| *read > 0)?];
                    client.write_all(sent).await.ok()?;
                }
            }
        }
    }
}

/// Whether the bytes contain a `commit`, as a simple query of PostgreSQL or a query of MySQL.
fn is_commit(sent: &[u8]) -> bool {
    let contains = |wanted: &[u8]| sent.windows(wanted.len()).any(|bytes| bytes == wanted);
    contains(b"COMMIT\0") || contains(b"\x03commit")
}

macro_rules! unknown_outcome {
    ($($database:ident: $Options:ty, $own_id:literal, $kill:literal;)*) => {$(
        mod $database {
            use super::{*, database::$database as database};

            /// The database, a scene that connects through a proxy, and the proxy.
            macro_rules! scene {
                ($db:ident, $scene:ident, $proxy:ident) => {
                    let $db = database::fresh().await;
                    database::execute(&$db.pool, "create table effects (id bigint not null)").await;
                                        let direct = (*$db.pool.connect_options()).clone();
                                        let server = tokio::net::lookup_host((direct.get_host(), direct.get_port()))
                        .await.unwrap().next().unwrap();
                    let $proxy = Proxy::to(server).await;
                    let through_proxy = direct.host("127.0.0.1").port($proxy.address.port());
                    let pool = <$Options>::new()
                        .acquire_timeout(Duration::from_secs(2))
                        .connect_with(through_proxy).await.unwrap();
                    let $scene = Scene::on(pool);
                };
            }

            macro_rules! effects {
                ($db:ident) => {(
                    database::number(&$db.pool, "select count(*) from effects").await,
                    database::number(&$db.pool, "select count(*) from outbox_record").await,
                )};
            }

            #[tokio::test]
            async fn a_command_with_an_id_has_one_effect_and_returns_its_result() {
                for (cut, expected_runs) in [(Cut::Answer, 1), (Cut::Commit, 2)] {
                    scene!(db, scene, proxy);
                    let runs = AtomicU32::new(0);
                    *proxy.next.lock().unwrap() = Some(cut);
                    let result = scene.transactions.transaction("Pay").command_id("c-1").run(async |mut tx| {
                        sqlx::query("insert into effects values (1)").execute(&mut *tx).await?;
                        db.outbox.publish(&mut tx, &Paid { id: 1 }).await?;
                        runs.fetch_add(1, Ordering::Relaxed);
                        Ok::<_, Oops>("receipt".to_owned())
                    }).await.unwrap();
                    assert_eq!(result, "receipt");
                    assert_eq!(proxy.cuts.load(Ordering::Relaxed), 1, "the connection was cut");
                    assert_eq!(runs.into_inner(), expected_runs, "{cut:?}");
                    assert_eq!(effects!(db), (1, 1), "{cut:?}");
                    assert_eq!(scene.counted.all(), ["retry Pay commit_unknown", "success Pay 2"]);
                }
            }

            #[tokio::test]
            async fn a_transaction_without_a_command_id_reports_an_unknown_outcome() {
                for (cut, committed) in [(Cut::Answer, 1), (Cut::Commit, 0)] {
                    scene!(db, scene, proxy);
                    *proxy.next.lock().unwrap() = Some(cut);
                    let policy = outbox::transaction::TxRetry::background().retry_on(Reason::CommitUnknown);
                    let error = scene.transactions.transaction("Pay").policy(policy).run(async |mut tx| {
                        sqlx::query("insert into effects values (1)").execute(&mut *tx).await?;
                        db.outbox.publish(&mut tx, &Paid { id: 1 }).await?;
                        Ok::<_, Oops>(())
                    }).await.unwrap_err();
                    assert!(error.outcome_is_unknown());
                    assert_eq!((error.attempts(), error.reason(), error.stopped()), (1, Reason::CommitUnknown, Stopped::NotRetryable));
                    assert!(error.to_string().contains("the outcome is unknown"), "{error}");
                    assert_eq!(effects!(db), (committed, committed), "{cut:?}");
                }
            }

            #[tokio::test]
            async fn the_outcome_stays_unknown_while_the_database_is_unreachable() {
                scene!(db, scene, proxy);
                *proxy.next.lock().unwrap() = Some(Cut::AnswerAndLater);
                let error = scene.transactions.transaction("Pay").command_id("c-1").run(async |mut tx| {
                    sqlx::query("insert into effects values (1)").execute(&mut *tx).await?;
                    Ok::<_, Oops>(())
                }).await.unwrap_err();
                assert!(error.outcome_is_unknown(), "{error:?}");
                assert!(error.attempts() >= 2, "{error:?}");
                // The database is reachable again, and the caller repeats the command.
                *proxy.down.lock().unwrap() = false;
                let again = scene.transactions.transaction("Pay").command_id("c-1");
                again.run(async |_| -> Result<(), Oops> { panic!("the command had already run") }).await.unwrap();
                assert_eq!(effects!(db), (1, 0));
            }

            /// The second attempt finds that the first was not committed, so its own result is final.
            #[tokio::test]
            async fn the_outcome_is_known_after_a_later_attempt_has_checked_it() {
                scene!(db, scene, proxy);
                *proxy.next.lock().unwrap() = Some(Cut::Commit);
                let error = scene.transactions.transaction("Pay").command_id("c-1").run(async |mut tx| {
                    sqlx::query("insert into effects values (1)").execute(&mut *tx).await?;
                    if tx.attempt() == 1 { Ok(()) } else { Err(Oops::No) }
                }).await.unwrap_err();
                assert_eq!((error.attempts(), error.reason()), (2, Reason::Rejected));
                assert!(!error.outcome_is_unknown(), "{error}");
                assert_eq!(effects!(db), (0, 0));
            }

            /// Before the commit the outcome is known: nothing was written. The policy decides.
            #[tokio::test]
            async fn the_background_policy_retries_a_connection_that_was_lost_before_the_commit() {
                scene!(db, scene, proxy);
                let (kill, calls) = (($own_id, $kill), AtomicU32::new(0));
                let background = outbox::transaction::TxRetry::background();
                scene.transactions.transaction("Pay").policy(background).run(async |mut tx| {
                    sqlx::query("insert into effects values (1)").execute(&mut *tx).await?;
                    if calls.fetch_add(1, Ordering::Relaxed) == 0 {
                        let own: i64 = sqlx::query_scalar(kill.0).fetch_one(&mut *tx).await?;
                        let kill = sqlx::AssertSqlSafe(kill.1.replace("{}", &own.to_string()));
                        sqlx::query(kill).execute(&db.pool).await?;
                    }
                    sqlx::query("insert into effects values (2)").execute(&mut *tx).await?;
                    Ok::<_, Oops>(())
                }).await.unwrap();
                assert_eq!(scene.counted.all(), ["retry Pay connection_lost", "success Pay 2"]);
                assert_eq!(effects!(db), (2, 0));
            }
        }
    )*};
}

unknown_outcome! {
    postgres: PgPoolOptions, "select pg_backend_pid()::bigint", "select pg_terminate_backend({})";
    mysql: MySqlPoolOptions, "select cast(connection_id() as signed)", "kill {}";
}
