//! What cannot be done is said in one line, without the password.

use outbox_tests::{database, on_each_database};

use crate::program::{command, outbox, run};

on_each_database! {
    async fn tables_that_are_missing_are_named_with_what_to_do(db) {
        database::execute(&db.pool, "drop table outbox_record").await;
        for arguments in ["status", "list", "show 1", "watch --count 1", "prune --older-than 1h", "replay 1"] {
            let line = outbox(&db.url(), arguments).await.badly(3);
            assert!(line.contains("the outbox tables were not found (") && line.contains("create them with `outbox migrate`"), "{line}");
        }
        let line = outbox(&db.url(), "status --schema nowhere").await.badly(3);
        assert!(line.contains("the outbox tables were not found"), "{line}");
        let line = outbox(&db.url(), "status --table-prefix a;b").await.badly(2);
        assert!(line.contains("is not a valid table prefix"), "{line}");
    }
}

#[tokio::test]
async fn a_wrong_url_is_told_without_its_password() {
    for (url, code, says) in [
        (
            "postgres://me:hunter2@127.0.0.1:1/shop",
            3,
            "cannot connect to the database",
        ),
        (
            "mysql://me:hunter2@127.0.0.1:1/shop",
            3,
            "cannot connect to the database",
        ),
        (
            "postgres://me:hunter2@no-such-host.invalid/shop",
            3,
            "cannot connect to the database",
        ),
        (
            "postgres://me:hunter2@host:port/shop",
            3,
            "the database URL is invalid",
        ),
        (
            "mysql://me:hunter2@host:99999/shop",
            3,
            "the database URL is invalid",
        ),
        (
            "oracle://me:hunter2@host/shop",
            2,
            "must start with postgres://, mysql:// or sqlite://",
        ),
        (
            "me:hunter2@host/shop",
            2,
            "must start with postgres://, mysql:// or sqlite://",
        ),
        (
            "sqlite:///nowhere/at/all.db",
            3,
            "the database file cannot be opened",
        ),
        (
            "",
            2,
            "use --url, or set OUTBOX_DATABASE_URL or DATABASE_URL",
        ),
    ] {
        let line = outbox(url, "status").await.badly(code);
        assert!(line.contains(says), "{url}: {line}");
        assert!(!line.contains("hunter2"), "{line}");
    }
    // On the command line as well as in either variable.
    let line = run(command("")
        .env_remove("OUTBOX_DATABASE_URL")
        .env("DATABASE_URL", "x:hunter2@")
        .arg("status"))
    .await
    .badly(2);
    assert!(
        line.contains("must start with") && !line.contains("hunter2"),
        "{line}"
    );
    let line = run(command("").args(["status", "--url", "sqlite:///nowhere/at/all.db"]))
        .await
        .badly(3);
    assert!(
        line.contains("the database file cannot be opened"),
        "{line}"
    );
}

#[tokio::test]
async fn postgres_without_permission() {
    let db = database::postgres::fresh().await;
    let role = database_name(&db.url());
    database::postgres::execute(&db.pool, &format!("create role {role} login")).await;
    let url = db.url().replace("//outbox@", &format!("//{role}:hunter2@"));
    for arguments in [
        "status",
        "list",
        "replay --all",
        "pause x",
        "migrate --table-prefix shop_",
    ] {
        let line = outbox(&url, arguments).await.badly(3);
        assert!(
            line.contains("permission denied (") && line.contains("grant the permission"),
            "{line}"
        );
        assert!(!line.contains("hunter2"), "{line}");
    }
    // Who may read can look, and nothing else.
    database::postgres::execute(
        &db.pool,
        &format!("grant select on all tables in schema public to {role}"),
    )
    .await;
    outbox(&url, "status").await.well();
    outbox(&url, "pause x").await.badly(3);
    database::postgres::execute(&db.pool, &format!("drop owned by {role}")).await;
    database::postgres::execute(&db.pool, &format!("drop role {role}")).await;
    let line = outbox(&url, "status").await.badly(3);
    assert!(line.contains("check user, password and database"), "{line}");
}

#[tokio::test]
async fn mysql_without_permission() {
    let db = database::mysql::fresh().await;
    let name = database_name(&db.url());
    let user = &name[..30];
    database::mysql::execute(
        &db.pool,
        &format!("create user {user}@'127.0.0.1' identified by 'hunter2'"),
    )
    .await;
    let url = db
        .url()
        .replace("//outbox:outbox@", &format!("//{user}:hunter2@"));
    let line = outbox(&url, "status").await.badly(3);
    assert!(line.contains("check user, password and database"), "{line}");
    database::mysql::execute(
        &db.pool,
        &format!("grant select on {name}.* to {user}@'127.0.0.1'"),
    )
    .await;
    outbox(&url, "status").await.well();
    for arguments in ["pause x", "migrate --table-prefix shop_"] {
        let line = outbox(&url, arguments).await.badly(3);
        assert!(
            line.contains("permission denied (") && !line.contains("hunter2"),
            "{line}"
        );
    }
    let wrong = url.replace("hunter2", "hunter3");
    let line = outbox(&wrong, "status").await.badly(3);
    assert!(
        line.contains("check user, password and database") && !line.contains("hunter3"),
        "{line}"
    );
    database::mysql::execute(&db.pool, &format!("drop user {user}@'127.0.0.1'")).await;
}

#[tokio::test]
async fn sqlite_without_permission() {
    let db = database::sqlite::fresh().await;
    let url = db.url();
    let url = format!("{}?mode=ro", url.split('?').next().unwrap());
    outbox(&url, "status").await.well();
    for arguments in ["pause x", "migrate --table-prefix shop_"] {
        let line = outbox(&url, arguments).await.badly(3);
        assert!(line.contains("permission denied ("), "{line}");
    }
}

/// The name of the database at the end of a URL; nothing else has it.
fn database_name(url: &str) -> String {
    let path = url.rsplit('/').next().unwrap();
    path.split('?').next().unwrap().to_owned()
}
