//! A command that fails prints one line, without the password.

use outbox_tests::{database, on_each_database};

use crate::program::{command, outbox, run};

on_each_database! {
    async fn the_message_for_missing_tables_names_the_remedy(db) {
        database::execute(&db.pool, "drop table outbox_record").await;
        for arguments in ["status", "list", "show 1", "watch --count 1", "prune --older-than 1h", "replay 1"] {
            let line = outbox(&db.url(), arguments).await.fails_with(3);
            assert!(line.contains("the outbox tables were not found (") && line.contains("create them with `outbox migrate`"), "{line}");
        }
        let line = outbox(&db.url(), "status --schema nowhere").await.fails_with(3);
        assert!(line.contains("the outbox tables were not found"), "{line}");
        let line = outbox(&db.url(), "status --table-prefix a;b").await.fails_with(2);
        assert!(line.contains("is not a valid table prefix"), "{line}");
    }
}

#[tokio::test]
async fn the_message_for_a_wrong_url_hides_its_password() {
    for (url, code, expected) in [
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
        let line = outbox(url, "status").await.fails_with(code);
        assert!(line.contains(expected), "{url}: {line}");
        assert!(!line.contains("hunter2"), "{line}");
    }
    // The same holds for a URL on the command line and in the other variable.
    let line = run(command("")
        .env_remove("OUTBOX_DATABASE_URL")
        .env("DATABASE_URL", "x:hunter2@")
        .arg("status"))
    .await
    .fails_with(2);
    assert!(
        line.contains("must start with") && !line.contains("hunter2"),
        "{line}"
    );
    let line = run(command("").args(["status", "--url", "sqlite:///nowhere/at/all.db"]))
        .await
        .fails_with(3);
    assert!(
        line.contains("the database file cannot be opened"),
        "{line}"
    );
}

#[tokio::test]
async fn a_postgres_user_without_permission_gets_a_message() {
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
        let line = outbox(&url, arguments).await.fails_with(3);
        assert!(
            line.contains("permission denied (") && line.contains("grant the permission"),
            "{line}"
        );
        assert!(!line.contains("hunter2"), "{line}");
    }
    // A user that may only read can run `status` and no command that changes rows.
    database::postgres::execute(
        &db.pool,
        &format!("grant select on all tables in schema public to {role}"),
    )
    .await;
    outbox(&url, "status").await.succeeds();
    outbox(&url, "pause x").await.fails_with(3);
    database::postgres::execute(&db.pool, &format!("drop owned by {role}")).await;
    database::postgres::execute(&db.pool, &format!("drop role {role}")).await;
    let line = outbox(&url, "status").await.fails_with(3);
    assert!(line.contains("check user, password and database"), "{line}");
}

#[tokio::test]
async fn a_mysql_user_without_permission_gets_a_message() {
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
    let line = outbox(&url, "status").await.fails_with(3);
    assert!(line.contains("check user, password and database"), "{line}");
    database::mysql::execute(
        &db.pool,
        &format!("grant select on {name}.* to {user}@'127.0.0.1'"),
    )
    .await;
    outbox(&url, "status").await.succeeds();
    for arguments in ["pause x", "migrate --table-prefix shop_"] {
        let line = outbox(&url, arguments).await.fails_with(3);
        assert!(
            line.contains("permission denied (") && !line.contains("hunter2"),
            "{line}"
        );
    }
    let wrong = url.replace("hunter2", "hunter3");
    let line = outbox(&wrong, "status").await.fails_with(3);
    assert!(
        line.contains("check user, password and database") && !line.contains("hunter3"),
        "{line}"
    );
    database::mysql::execute(&db.pool, &format!("drop user {user}@'127.0.0.1'")).await;
}

#[tokio::test]
async fn a_read_only_sqlite_file_gives_a_message() {
    let db = database::sqlite::fresh().await;
    let writable = db.url();
    let url = format!("{}?mode=ro", writable.split('?').next().unwrap());
    outbox(&url, "status").await.succeeds();
    for arguments in ["pause x", "migrate --table-prefix shop_"] {
        let line = outbox(&url, arguments).await.fails_with(3);
        assert!(line.contains("permission denied ("), "{line}");
    }
}

/// The name of the database at the end of a URL; it is unique on the server.
fn database_name(url: &str) -> String {
    let path = url.rsplit('/').next().unwrap();
    path.split('?').next().unwrap().to_owned()
}
