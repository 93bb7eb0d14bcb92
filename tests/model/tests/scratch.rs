//! Scratch.
use outbox_model::{explore::explore, protocol::Protocol, scenario::*, mistake::Mistake::{self, *}};
fn run(name: &str, s: Scenario, m: Option<Mistake>) {
    let t = std::time::Instant::now();
    let p = Protocol { scenario: s, mistake: m, strict: false };
    let r = explore(&p, 3_000_000);
    println!("{name} {m:?}: {} states {} steps depth {} complete {} in {:?}", r.states, r.steps, r.depth, r.complete, t.elapsed());
    if let Some(c) = r.counterexample { println!("{c}");  }
}
const C: Scenario = Scenario::CALM;
fn f(crashes: u8, expiries: u8, sessions: u8, databases: u8) -> Faults { Faults{crashes,expiries,sessions,databases} }
#[test]
fn sizes() {
    let _ = NoFence;


    run("reading", Scenario { partitions: 2, key_parts: [0,1], transactions: &[&[0],&[1],&[0]], instant: true, rollbacks: true, ..C }, None);
    run("reading page 1", Scenario { partitions: 2, key_parts: [0,1], transactions: &[&[0],&[1],&[0]], instant: true, page: 1, rollbacks: true, ..C }, None);
    run("reading slow", Scenario { partitions: 1, key_parts: [0,0], transactions: &[&[0],&[1]], rollbacks: true, ..C }, None);
    run("owner", Scenario { workers: 2, running: 2, transactions: &[&[0,0]], committed: 1, faults: f(1,2,0,0), ..C }, None);
    run("sessions", Scenario { workers: 2, running: 2, transactions: &[&[0, 0]],committed: 1,  faults: f(0,1,1,0), ..C }, None);
    run("handover", Scenario { workers: 2, running: 1, partitions: 2, key_parts: [0,1], transactions: &[&[0,1]], leaves: 1, committed: 0, ..C }, None);
    run("sleep", Scenario { sleep: true, instant: true, transactions: &[&[0],&[1],&[0]], rollbacks: true, ..C }, None);
    run("nap", Scenario { sleep: true, instant: true, nap: true, transactions: &[&[0],&[1], &[0]], ..C }, None);
    run("sleep2", Scenario { workers: 2, running: 2, sleep: true, transactions: &[&[0]], faults: f(1,0,1,0), ..C }, None);
    run("db", Scenario { workers: 2, running: 2, transactions: &[&[0],&[0]], committed: 1, faults: f(0,0,0,1), ..C }, None);
}
