//! What can happen. Each is atomic; between any two of them anything else may happen.

use std::fmt::{self, Display};

/// A step. Numbers are processes `w`, partitions `p`, records `r` by place, transactions `t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is written as a sentence below")]
pub enum Step {
    Snapshot { t: usize },
    Begin { t: usize },
    Insert { t: usize },
    Commit { t: usize },
    End { t: usize },
    RollBack { t: usize },

    Join { w: usize },
    BeginClaim { w: usize },
    Claim { w: usize },
    Claimed { w: usize },
    Drain { w: usize, p: usize },
    Release { w: usize, p: usize },
    Leave { w: usize },
    Left { w: usize },
    FindDead { w: usize, dead: usize },
    Reap { w: usize, dead: usize },
    Reconnect { w: usize },

    Look { w: usize },
    Read { w: usize },
    Arrive { w: usize },

    Start { w: usize, r: usize },
    Return { w: usize, r: usize },
    Send { w: usize },
    Check { w: usize },
    Write { w: usize },

    Flag { w: usize },
    Wake { w: usize },
    TakeFlagDown { w: usize },

    Crash { w: usize, hangs: bool },
    Expire { w: usize },
    LoseSession { w: usize },
    Quiet { w: usize },
    DatabaseCrash { forgets: Option<usize> },
}

impl Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let process = |w: usize| ["A", "B"].get(w).copied().unwrap_or("?");
        match *self {
            Self::Snapshot { t } => write!(f, "transaction {t} takes its snapshot"),
            Self::Begin { t } => write!(f, "transaction {t} locks the table"),
            Self::Insert { t } => write!(f, "transaction {t} writes a record"),
            Self::Commit { t } => write!(f, "transaction {t} commits: its records can be seen"),
            Self::End { t } => write!(f, "transaction {t} is no longer a writer, notifies"),
            Self::RollBack { t } => write!(f, "transaction {t} is rolled back"),
            Self::Join { w } => write!(f, "{} joins", process(w)),
            Self::BeginClaim { w } => write!(f, "{} begins a claim", process(w)),
            Self::Claim { w } => write!(f, "{} claims, in the database", process(w)),
            Self::Claimed { w } => write!(f, "{} learns what it has claimed", process(w)),
            Self::Drain { w, p } => write!(f, "{} starts to drain partition {p}", process(w)),
            Self::Release { w, p } => write!(f, "{} releases partition {p}", process(w)),
            Self::Leave { w } => write!(f, "{} will leave", process(w)),
            Self::Left { w } => write!(f, "{} releases everything and is gone", process(w)),
            Self::FindDead { w, dead } => {
                write!(
                    f,
                    "{} finds that the session of {} is gone",
                    process(w),
                    process(dead)
                )
            }
            Self::Reap { w, dead } => {
                write!(f, "{} deletes the row of {}", process(w), process(dead))
            }
            Self::Reconnect { w } => write!(f, "{} connects again", process(w)),
            Self::Look { w } => write!(f, "{} asks for the writers", process(w)),
            Self::Read { w } => write!(f, "{} reads records", process(w)),
            Self::Arrive { w } => write!(f, "{} puts what it read into lanes", process(w)),
            Self::Start { w, r } => write!(f, "{} starts the handler of {}", process(w), r + 1),
            Self::Return { w, r } => write!(f, "{} has handled {}", process(w), r + 1),
            Self::Send { w } => write!(f, "{} sends completions", process(w)),
            Self::Check { w } => write!(f, "the fence of {} is checked", process(w)),
            Self::Write { w } => write!(f, "the completions of {} are executed", process(w)),
            Self::Flag { w } => write!(f, "{} sets its flag, to listen", process(w)),
            Self::Wake { w } => write!(f, "{} is notified", process(w)),
            Self::TakeFlagDown { w } => write!(f, "the flag of {} is taken down", process(w)),
            Self::Crash { w, hangs: true } => {
                write!(f, "{} is cut off for ever, its session hangs", process(w))
            }
            Self::Crash { w, hangs: false } => write!(f, "{} crashes", process(w)),
            Self::Expire { w } => write!(f, "the leases of {} run out", process(w)),
            Self::LoseSession { w } => write!(f, "{} loses its session, and lives", process(w)),
            Self::Quiet { w } => write!(f, "{} had no session for too long", process(w)),
            Self::DatabaseCrash { forgets: None } => write!(f, "the database crashes"),
            Self::DatabaseCrash { forgets: Some(r) } => {
                write!(
                    f,
                    "the database crashes and forgets that {} is completed",
                    r + 1
                )
            }
        }
    }
}
