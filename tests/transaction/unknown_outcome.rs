//! The connection is cut between `commit` and its answer.

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

/// What happens to the next commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// It reaches the server, and its answer does not come back.
    Answer,
    /// It does not reach the server.
    Commit,
    /// As `Answer`, and every later connection is refused.
    AnswerAndLine,
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
        let ours = proxy.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if !*ours.down.lock().unwrap() {
                    let ours = ours.clone();
                    tokio::spawn(async move { ours.forward(client, server).await });
                }
            }
        });
        proxy
    }

    /// Forwards until one side closes, or until the cut: dropping both ends.
    async fn forward(&self, mut client: TcpStream, server: SocketAddr) -> Option<()> {
        let mut server = TcpStream::connect(server).await.ok()?;
        let (mut asked, mut answered) = (vec![0; 65536], vec![0; 65536]);
        loop {
            tokio::select! {
                read = client.read(&mut asked) => {
                    let sent = &asked[..read.ok().filter(|read| *read > 0)?];
                    let cut = if is_commit(sent) { self.next.lock().unwrap().take() } else { None };
                    if cut == Some(Cut::Commit) {
                        self.cuts.fetch_add(1, Ordering::Relaxed);
                        return None;
                    }
                    server.write_all(sent).await.ok()?;
                    if let Some(cut) = cut {
                        // It has answered, so it has committed.
                        assert!(server.read(&mut answered).await.ok()? > 0);
                        *self.down.lock().unwrap() = cut == Cut::AnswerAndLine;
                        self.cuts.fetch_add(1, Ordering::Relaxed);
                        return None;
                    }
                }
                read = server.read(&mut answered) => {
                    let sent = &answered[..read.ok().filter(|read| *read > 0)?];
                    client.write_all(sent).await.ok()?;
                }
            }
        }
    }
}

/// PostgreSQL's simple query, or a query of MySQL.
fn is_commit(sent: &[u8]) -> bool {
    let is = |wanted: &[u8]| sent.windows(wanted.len()).any(|part| part == wanted);
    is(b"COMMIT\0") || is(b"\x03commit")
}

macro_rules! unknown_outcome {
    ($($database:ident: $Options:ty, $who:literal, $kill:literal;)*) => {$(
        mod $database {
            use super::{*, database::$database as database};

            /// The database, a scene on the other side of a proxy, and the proxy.
            macro_rules! scene {
                ($db:ident, $scene:ident, $proxy:ident) => {
                    let $db = database::fresh().await;
                    database::execute(&$db.pool, "create table effects (id bigint not null)").await;
                    let options = (*$db.pool.connect_options()).clone();
                    let server = tokio::net::lookup_host((options.get_host(), options.get_port()))
                        .await.unwrap().next().unwrap();
                    let $proxy = Proxy::to(server).await;
                    let options = options.host("127.0.0.1").port($proxy.address.port());
                    let pool = <$Options>::new()
                        .acquire_timeout(Duration::from_secs(2))
                        .connect_with(options).await.unwrap();
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
            async fn with_a_command_id_there_is_one_effect_and_its_result() {
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
            async fn without_it_the_error_says_that_the_outcome_is_unknown() {
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
            async fn it_stays_unknown_if_nobody_can_find_out() {
                scene!(db, scene, proxy);
                *proxy.next.lock().unwrap() = Some(Cut::AnswerAndLine);
                let error = scene.transactions.transaction("Pay").command_id("c-1").run(async |mut tx| {
                    sqlx::query("insert into effects values (1)").execute(&mut *tx).await?;
                    Ok::<_, Oops>(())
                }).await.unwrap_err();
                assert!(error.outcome_is_unknown(), "{error:?}");
                assert!(error.attempts() >= 2, "{error:?}");
                // The line is back, and the caller asks again.
                *proxy.down.lock().unwrap() = false;
                let again = scene.transactions.transaction("Pay").command_id("c-1");
                again.run(async |_| -> Result<(), Oops> { panic!("it was done before") }).await.unwrap();
                assert_eq!(effects!(db), (1, 0));
            }

            /// The second attempt finds that the first was not committed: then its word is final.
            #[tokio::test]
            async fn it_is_known_once_a_later_attempt_has_looked() {
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

            /// Before the commit nothing is open: it is simply tried again, where the policy says so.
            #[tokio::test]
            async fn a_connection_that_is_lost_before_the_commit_is_retried_in_the_background() {
                scene!(db, scene, proxy);
                let (kill, calls) = (($who, $kill), AtomicU32::new(0));
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
