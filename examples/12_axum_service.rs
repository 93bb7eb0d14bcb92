//! A web service with a graceful shutdown. `cargo run --example axum_service` sends itself two
//! requests and ends. `cargo run --example axum_service 127.0.0.1:3000` serves until ctrl-c or SIGTERM.

use std::net::SocketAddr;

use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    routing::{get, post},
};
use outbox::{Outbox, OutboxEvent, Tx, outbox_handler};
use outbox_examples::{http, say, sqlite, stop_signal, until};
use sqlx::{Sqlite, SqlitePool};
use tokio::{net::TcpListener, sync::oneshot};

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "order.created", key = order_id)]
struct OrderCreated {
    order_id: i64,
}

#[outbox_handler(id = "charge-card")]
async fn charge_card(event: OrderCreated, mut tx: Tx<'_, Sqlite>) -> Result<(), sqlx::Error> {
    let update = "update orders set status = 'charged' where id = ?1";
    let update = sqlx::query(update).bind(event.order_id);
    update.execute(&mut *tx).await?;
    say(format!("  order {} is charged", event.order_id));
    Ok(())
}

#[derive(Clone)]
struct App {
    pool: SqlitePool,
    outbox: Outbox<Sqlite>,
}

#[derive(serde::Deserialize)]
struct NewOrder {
    item: String,
}

type Answer<T> = Result<T, (StatusCode, String)>;

fn failed(error: impl std::fmt::Display) -> (StatusCode, String) {
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

async fn create(State(app): State<App>, Json(order): Json<NewOrder>) -> Answer<String> {
    let mut tx = app.pool.begin().await.map_err(failed)?;
    let insert = "insert into orders (item, status) values (?1, 'created') returning id";
    let insert = sqlx::query_scalar(insert).bind(order.item);
    let order_id: i64 = insert.fetch_one(&mut *tx).await.map_err(failed)?;
    let event = OrderCreated { order_id };
    app.outbox.publish(&mut tx, &event).await.map_err(failed)?;
    tx.commit().await.map_err(failed)?; // the order and its event, or neither
    Ok(order_id.to_string())
}

async fn show(State(app): State<App>, Path(id): Path<i64>) -> Answer<String> {
    let select = sqlx::query_scalar("select status from orders where id = ?1").bind(id);
    let status: Option<String> = select.fetch_optional(&app.pool).await.map_err(failed)?;
    status.ok_or((StatusCode::NOT_FOUND, "no such order".to_owned()))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let db = sqlite().await?;
    sqlx::query("create table orders (id integer primary key, item text, status text)")
        .execute(&db.pool)
        .await?;
    let pool = db.pool.clone();
    let outbox = Outbox::builder(pool.clone()).build().await?;
    let dispatcher = outbox.start().await?;
    let routes = Router::new()
        .route("/orders", post(create))
        .route("/orders/{id}", get(show))
        .with_state(App {
            pool,
            outbox: outbox.clone(),
        });

    let argument = std::env::args().nth(1);
    let listener = TcpListener::bind(argument.as_deref().unwrap_or("127.0.0.1:0")).await?;
    let address = listener.local_addr()?;
    say(format!("serving on http://{address}"));
    let (stop, stopped) = oneshot::channel::<()>();
    let server = axum::serve(listener, routes).with_graceful_shutdown(async {
        let _ = stopped.await;
    });
    let server = tokio::spawn(server.into_future());
    match argument {
        Some(_) => stop_signal().await?,
        None => demonstrate(address, &outbox).await?,
    }

    // The server stops first, because requests that are still running may publish. Then the
    // dispatcher stops: running handlers finish, and the remaining records are delivered after the
    // next start.
    say("stopping");
    let _ = stop.send(());
    server.await??;
    dispatcher.shutdown().await?;
    say("stopped");
    Ok(())
}

async fn demonstrate(address: SocketAddr, outbox: &Outbox<Sqlite>) -> anyhow::Result<()> {
    let id = http(address, "POST", "/orders", r#"{"item": "a book"}"#).await?;
    say(format!("POST /orders: {id}"));
    until(outbox, |now| now.completed == 1).await?;
    let path = format!("/orders/{id}");
    let status = http(address, "GET", &path, "").await?;
    say(format!("GET {path}: {status}"));
    anyhow::ensure!(status == "charged");
    Ok(())
}
